//! `surehand run --fleet`: works on the shared tasks of a story one after another, until none is left.

use std::{
    sync::{
        Arc,
        mpsc::{self, RecvTimeoutError},
    },
    thread,
    time::Duration,
};

use anyhow::Context;
use surehand_agent::CancelToken;
use surehand_engine::{
    SessionId, Workspace,
    fleet::{FleetLink, LostClaim, LostThing, agent_of},
    store::board::{BoardAnswer, BoardCall, BoardError, BoardTask, ClaimId, TaskChoice, TaskClaimRequest, TaskEnd},
};

/// The number of attempts for a call if the board cannot be reached, and the pause between them, which grows with each.
const ATTEMPTS: u32 = 5;
const PAUSE: Duration = Duration::from_secs(2);

/// An agent that works on the shared tasks of a story.
pub(super) struct FleetWork {
    link: Arc<FleetLink>,
    session: SessionId,
    story: String,
    /// How long a claim lasts without a heartbeat. The helper sends one every few seconds while this process runs.
    lease: Duration,
}

impl FleetWork {
    /// Registers the agent.
    pub(super) fn on(workspace: &Workspace, story: &str) -> anyhow::Result<Self> {
        let link = workspace.fleet().cloned().context("the board is switched off: board.enabled is false in your settings")?;
        let session = SessionId(format!("surehand-{}", crate::fleet::random_id()?));
        link.note_story(&session, story);
        Ok(Self { link, session, story: story.to_owned(), lease: workspace.config().board.lease() })
    }

    /// Claims the next free task; `None` if there is none.
    pub(super) fn claim(&self) -> anyhow::Result<Option<BoardTask>> {
        let request = TaskClaimRequest {
            id: ClaimId(crate::fleet::random_id()?),
            by: agent_of(&self.session),
            choice: TaskChoice::NextOf(self.story.clone()),
            lease: self.lease,
        };
        match self.ask(&BoardCall::ClaimTask(request))? {
            BoardAnswer::Tasks(tasks) => Ok(tasks.into_iter().next()),
            other => anyhow::bail!("unexpected answer from the board: {other:?}"),
        }
    }

    /// Cancels the work on a task if its claim is lost. Stops watching when the result is dropped.
    pub(super) fn watch(&self, task: &BoardTask, cancel: &CancelToken) -> LossWatch {
        const LOOK_EVERY: Duration = Duration::from_millis(250);
        let (done, looked) = mpsc::channel::<()>();
        let (link, task, cancel) = (self.link.clone(), task.clone(), cancel.clone());
        // Without the thread, the loss is noticed when the task ends.
        let _ = thread::Builder::new().name("surehand-claim".to_owned()).spawn(move || {
            while looked.recv_timeout(LOOK_EVERY) == Err(RecvTimeoutError::Timeout) {
                if has_lost(&link, &task) {
                    return cancel.cancel();
                }
            }
        });
        LossWatch { _done: done }
    }

    /// Ends the claim on a task. If another agent holds the task by now, prints a warning, and that agent's work
    /// stands. Returns whether the claim was still held.
    pub(super) fn end(&self, task: &BoardTask, end: TaskEnd) -> anyhow::Result<bool> {
        let Some(claim) = &task.claim else { return Ok(true) };
        match self.ask(&BoardCall::EndTask { task: task.id, fence: claim.fence, end }) {
            Err(error) if error.downcast_ref::<BoardError>().is_some_and(is_over) => {
                anstream::eprintln!("warning: task {} is no longer held by this run: {error:#}", task.id);
                Ok(false)
            }
            done => done.map(|_| true),
        }
    }

    /// Sends a call, several times if the board cannot be reached. Every call may be repeated, so an outage costs only
    /// time.
    fn ask(&self, call: &BoardCall) -> anyhow::Result<BoardAnswer> {
        let mut attempt = 1;
        loop {
            match self.link.call(call) {
                Err(error @ BoardError::Unreachable { .. }) if attempt < ATTEMPTS => {
                    anstream::eprintln!("warning: {error}; trying again");
                    std::thread::sleep(PAUSE * attempt);
                    attempt += 1;
                }
                answer => return Ok(answer?),
            }
        }
    }
}

/// Whether the claim has ended: another agent has the task, or a person has taken it back or closed it.
fn is_over(error: &BoardError) -> bool {
    matches!(error, BoardError::LostClaim { .. } | BoardError::TaskClosed { .. } | BoardError::NoSuchTask(_))
}

/// Whether the claim on a task has ended, according to the local copy of the board.
fn has_lost(link: &FleetLink, task: &BoardTask) -> bool {
    let (Some(copy), Some(claim)) = (link.kept_copy(), &task.claim) else { return false };
    let is_it = |lost: &LostClaim| lost.what == LostThing::Task(task.id) && lost.fence == claim.fence;
    copy.lost.iter().any(|lost| lost.agent == claim.by && is_it(lost))
}

/// Ends the thread of [`FleetWork::watch`] when dropped.
pub(super) struct LossWatch {
    _done: mpsc::Sender<()>,
}
