//! A simulated agent.

use std::{
    sync::atomic::Ordering,
    thread,
    time::{Duration, Instant},
};

use surehand_core::{RelPath, SessionId};
use surehand_store::board::{
    self, AgentId, Board, BoardError, BoardTaskId, Checkout, ClaimId, ContentChange, Fence, FileChange, Headline, Heartbeat,
    SharedHunk, TaskChoice, TaskClaimRequest, TaskEnd,
};
use surehand_testkit::rng::Rng;

use super::{STORY, Shared, ledger::AgentLedger};

/// The pause before an agent without a task looks for a free one again.
const NO_TASK: Duration = Duration::from_secs(1);
/// The pause before an operation is sent again.
const PAUSE: Duration = Duration::from_millis(20);
/// How many files the agent of a checkout changes in turn.
const FILES: usize = 20;

/// Sends an operation until the board answers. Every operation may be sent again.
pub(super) fn patiently<T>(mut operation: impl FnMut() -> Result<T, BoardError>) -> T {
    patiently_or(&mut 0, &mut operation).unwrap_or_else(|error| panic!("{error}"))
}

/// Like [`patiently`], counts how often the operation was sent again, and returns a refusal.
fn patiently_or<T>(again: &mut usize, mut operation: impl FnMut() -> Result<T, BoardError>) -> Result<T, BoardError> {
    loop {
        match operation() {
            // The server is down, or other processes keep a file locked.
            Err(BoardError::Unreachable { .. } | BoardError::Store(_)) => *again += 1,
            done => return done,
        }
        thread::sleep(PAUSE);
    }
}

/// An agent with its connection.
pub(super) struct Agent {
    board: Box<dyn Board>,
    number: usize,
    /// An agent that dies is followed by one with another name.
    life: usize,
    turn: usize,
    revision: i64,
    beaten: Option<Instant>,
    lease: Duration,
    rng: Rng,
    /// Claims of agents that died with them.
    abandoned: Vec<(BoardTaskId, Fence)>,
    ledger: AgentLedger,
}

impl Agent {
    pub(super) fn new(number: usize, board: Box<dyn Board>, lease: Duration) -> Self {
        let (rng, ledger) = (Rng::new(number as u64 + 1), AgentLedger::default());
        Self { board, number, life: 0, turn: 0, revision: 0, beaten: None, lease, rng, abandoned: Vec::new(), ledger }
    }

    fn id(&self) -> AgentId {
        AgentId(format!("agent {} {}", self.number, self.life))
    }

    fn checkout(&self) -> Checkout {
        Checkout { host: "simulated".to_owned(), device: 1, inode: self.number as u64, path: format!("/src/{}", self.number) }
    }

    /// Works until all tasks are done. Returns the record of its work.
    pub(super) fn work(mut self, shared: &Shared) -> AgentLedger {
        let checkout = self.checkout();
        self.send(|board| board.join(&checkout)).expect("a checkout may join");
        while !shared.is_completed() {
            self.beat();
            match self.claim() {
                Some((task, fence)) if self.dies(shared) => {
                    self.abandoned.push((task, fence));
                    self.life += 1;
                    self.beaten = None;
                }
                Some((task, fence)) => self.complete(task, fence, shared),
                None => self.idle(shared),
            }
        }
        self.wake_the_dead();
        self.ledger
    }

    fn idle(&self, shared: &Shared) {
        let until = Instant::now() + NO_TASK;
        while Instant::now() < until && !shared.is_completed() {
            thread::sleep(PAUSE);
        }
    }

    /// Sends an operation until the board answers.
    fn send<T>(&mut self, mut operation: impl FnMut(&mut dyn Board) -> Result<T, BoardError>) -> Result<T, BoardError> {
        let Self { board, ledger, .. } = self;
        patiently_or(&mut ledger.outages, || operation(&mut **board))
    }

    fn beat(&mut self) {
        if self.beaten.is_some_and(|last| last.elapsed() < self.lease / 4) {
            return;
        }
        let agent = board::Agent {
            id: self.id(),
            session: SessionId(format!("session {}", self.number)),
            client: "simulated".to_owned(),
            host: "simulated".to_owned(),
            checkout: self.checkout().id(),
            branch: None,
            story: Some(STORY.to_owned()),
        };
        let beat = Heartbeat { agent, alive_for: 2 * self.lease, lease: self.lease };
        self.send(|board| board.heartbeat(std::slice::from_ref(&beat))).expect("an agent may be alive");
        self.beaten = Some(Instant::now());
    }

    fn claim(&mut self) -> Option<(BoardTaskId, Fence)> {
        self.turn += 1;
        let request = TaskClaimRequest {
            id: ClaimId(format!("{}.{}", self.number, self.turn)),
            by: self.id(),
            choice: TaskChoice::NextOf(STORY.to_owned()),
            lease: self.lease,
        };
        let begun = Instant::now();
        let task = self.send(|board| board.claim_task(&request)).expect("a free task is not refused")?;
        let fence = task.claim.expect("a claimed task has a claim").fence;
        self.ledger.claim_times.push(begun.elapsed());
        self.ledger.claims.push((task.id, fence));
        Some((task.id, fence))
    }

    /// One claim in a hundred ends with the death of its agent, but not at the end, when the others would only wait for
    /// it. The first agent dies with its first claim.
    fn dies(&mut self, shared: &Shared) -> bool {
        let is_first = self.number == 0 && self.turn == 1;
        is_first || (shared.completed.load(Ordering::Acquire) < shared.tasks / 2 && self.rng.within(0..100) == 0)
    }

    /// Works on a task: changes a file, posts a headline, and completes it.
    fn complete(&mut self, task: BoardTaskId, fence: Fence, shared: &Shared) {
        let checkout = self.checkout().id();
        self.revision += 1;
        let path = RelPath::new(&format!("src/file_{}.rs", self.turn % FILES)).expect("it is a relative path");
        let hunk = SharedHunk { before: 10..12, after: 10..15, text: None };
        let change = FileChange {
            path: path.clone(),
            fork_point: "0123456789012345678901234567890123456789".to_owned(),
            base: None,
            change: ContentChange::Lines(vec![hunk]),
            by: Some(self.id()),
            revision: self.revision,
        };
        self.send(|board| board.report_changes(&checkout, std::slice::from_ref(&change))).expect("a change may be reported");
        let headline = Headline {
            id: format!("{}.{}", self.number, self.turn),
            checkout,
            agent: Some(self.id()),
            kind: "edit".to_owned(),
            path: Some(path),
            summary: "5 lines".to_owned(),
        };
        self.send(|board| board.post(std::slice::from_ref(&headline))).expect("a headline may be posted");
        self.ledger.headlines.push(headline.id);
        match self.send(|board| board.end_task(task, fence, TaskEnd::Complete)) {
            Ok(()) => {
                self.ledger.completed.push((task, fence));
                shared.completed.fetch_add(1, Ordering::AcqRel);
            }
            // It took longer than the lease, and another agent does the task.
            Err(BoardError::LostClaim { .. } | BoardError::TaskClosed { .. }) => self.ledger.expired += 1,
            Err(error) => panic!("{error}"),
        }
    }

    /// Agents that were frozen for a long time wake up and complete their claimed tasks.
    fn wake_the_dead(&mut self) {
        for (task, fence) in std::mem::take(&mut self.abandoned) {
            self.ledger.late_sent += 1;
            let refused = self.send(|board| board.end_task(task, fence, TaskEnd::Complete));
            self.ledger.late_refused +=
                usize::from(matches!(refused, Err(BoardError::LostClaim { .. } | BoardError::TaskClosed { .. })));
        }
    }
}
