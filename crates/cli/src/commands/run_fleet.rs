//! `surehand run --fleet`: takes the shared tasks of a story one after the other, until none is left.

use std::{sync::Arc, time::Duration};

use anyhow::Context;
use surehand_engine::{
    SessionId, Workspace,
    fleet::{FleetLink, agent_of},
    store::board::{BoardAnswer, BoardCall, BoardError, BoardTask, ClaimId, TaskChoice, TaskClaimRequest, TaskEnd},
};

/// How long a claim lasts without a heartbeat. The helper sends one every few seconds while this process runs.
const LEASE: Duration = Duration::from_secs(120);

/// How often a call is sent again if the board cannot be reached, and the pause before that.
const ATTEMPTS: u32 = 5;
const PAUSE: Duration = Duration::from_secs(2);

/// An agent that works on the shared tasks of a story.
pub(super) struct FleetWork {
    link: Arc<FleetLink>,
    session: SessionId,
    story: String,
}

impl FleetWork {
    /// Registers the agent.
    pub(super) fn on(workspace: &Workspace, story: &str) -> anyhow::Result<Self> {
        let link = workspace.fleet().cloned().context("the board is switched off: board.enabled is false in your settings")?;
        let session = SessionId(format!("surehand-{}", unique()?));
        link.note_story(&session, story);
        Ok(Self { link, session, story: story.to_owned() })
    }

    /// Claims the next free task; `None` if there is none.
    pub(super) fn claim(&self) -> anyhow::Result<Option<BoardTask>> {
        let request = TaskClaimRequest {
            id: ClaimId(unique()?),
            by: agent_of(&self.session),
            choice: TaskChoice::NextOf(self.story.clone()),
            lease: LEASE,
        };
        match self.ask(&BoardCall::ClaimTask(request))? {
            BoardAnswer::Tasks(tasks) => Ok(tasks.into_iter().next()),
            other => anyhow::bail!("the board answers something else: {other:?}"),
        }
    }

    /// Ends the claim on a task. If another agent has it meanwhile, that is said, and its work stands.
    pub(super) fn end(&self, task: &BoardTask, end: TaskEnd) -> anyhow::Result<()> {
        let Some(claim) = &task.claim else { return Ok(()) };
        match self.ask(&BoardCall::EndTask { task: task.id, fence: claim.fence, end }) {
            Err(error)
                if error.downcast_ref::<BoardError>().is_some_and(|error| matches!(error, BoardError::LostClaim { .. })) =>
            {
                anstream::eprintln!("warning: task {} was lost to another agent: {error:#}", task.id);
                Ok(())
            }
            done => done.map(drop),
        }
    }

    /// Every call may be repeated, so an outage costs time only.
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

fn unique() -> anyhow::Result<String> {
    let mut random = [0_u8; 16];
    rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty()).context("no random number")?;
    Ok(random.iter().map(|byte| format!("{byte:02x}")).collect())
}
