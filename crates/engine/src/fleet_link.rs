//! The connection of a workspace to the fleet, as far as calls need it. Reading it makes no system call in a process
//! that keeps a copy of the board: another thread replaces the copy, and reports the sessions.

use std::{
    collections::{BTreeMap, BTreeSet},
    hash::{BuildHasher, RandomState},
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
};

use serde::{Deserialize, Serialize};
use surehand_core::{PathPattern, timestamp::Millis};
use surehand_store::{
    SessionId,
    board::{
        AgentId, Board, BoardAnswer, BoardCall, BoardCopy, BoardError, BoardTaskId, CheckoutId, ClaimId, Fence, RepositoryId,
    },
};

use crate::time::now;

/// Carries out operations of a board, here or in another process. After [`BoardError::Unreachable`] an operation may
/// have happened, and can be repeated.
pub trait BoardCalls: Send + Sync {
    /// Carries out one operation.
    fn call(&self, call: &BoardCall) -> Result<BoardAnswer, BoardError>;
}

/// A board that this process has open.
impl BoardCalls for Mutex<Box<dyn Board>> {
    fn call(&self, call: &BoardCall) -> Result<BoardAnswer, BoardError> {
        call.carry_out(&mut **locked(self))
    }
}

/// Identifies the content of a copy, among all that was ever written to a state directory. The age is not part of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CopyVersion(pub(crate) u64);

impl CopyVersion {
    /// A version that no other content has.
    pub fn fresh() -> Self {
        Self(RandomState::new().hash_one((std::process::id(), now())))
    }
}

/// When a copy of this version was last found to be current.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CopyAge {
    /// The version that the age belongs to.
    pub version: CopyVersion,
    /// The time of that by the clock of this machine, in milliseconds since the Unix epoch.
    pub read_at: Millis,
    /// The time of that by the clock of the board, in milliseconds since the Unix epoch.
    pub now: Millis,
}

/// A copy of the board with its age.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LocalCopy {
    /// The repository that the board belongs to.
    pub repository: Option<RepositoryId>,
    /// When the board was last read, by the clock of this machine; `None` if it never was.
    pub read_at: Option<Millis>,
    /// Where the board is, without a password.
    pub place: String,
    /// Why the board cannot be reached at present.
    pub trouble: Option<String>,
    /// The content of the board.
    pub board: BoardCopy,
    /// The claims that agents of this machine have lost without their doing, oldest first.
    pub lost: Vec<LostClaim>,
    /// The short names of agents, for a copy that does not have all of them.
    #[serde(skip)]
    pub names: BTreeMap<AgentId, String>,
    /// Identifies the content. Code that changes more of it than its age gives it a fresh one.
    #[serde(skip)]
    pub version: CopyVersion,
}

/// A claim that ended without the doing of its holder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LostClaim {
    /// The agent that held it.
    pub agent: AgentId,
    /// The task or the paths that it held.
    pub what: LostThing,
    /// The fencing number of the claim.
    pub fence: Fence,
    /// The agent that holds it now; `None` if a person ended the claim, or if the lease ran out.
    pub taken_by: Option<AgentId>,
}

/// The object of a claim.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LostThing {
    /// A task on the board.
    Task(BoardTaskId),
    /// The paths that match a pattern.
    Paths(PathPattern),
}

impl LocalCopy {
    /// How old it is, in milliseconds; `None` if the board was never read.
    pub fn age(&self, now: Millis) -> Option<Millis> {
        self.read_at.map(|read_at| (now - read_at).max(0))
    }

    /// Its age as it is written; `None` if the board was never read.
    pub(crate) fn age_record(&self) -> Option<CopyAge> {
        Some(CopyAge { version: self.version, read_at: self.read_at?, now: self.board.now })
    }

    /// Takes over an age. Returns `false` if that is the age of another version.
    pub(crate) fn set_age(&mut self, age: CopyAge) -> bool {
        let is_same = age.version == self.version;
        if is_same {
            (self.read_at, self.board.now) = (Some(age.read_at), age.now);
        }
        is_same
    }

    /// The present time of the board, whose clock may differ from that of this machine.
    pub fn board_time(&self, now: Millis) -> Millis {
        self.board.now + self.age(now).unwrap_or_default()
    }
}

/// The knowledge that a workspace has of the fleet.
pub struct FleetLink {
    copy: CopySource,
    calls: Box<dyn BoardCalls>,
    /// The id of this checkout on the board, once it was needed.
    checkout: OnceLock<Option<CheckoutId>>,
    /// The sessions that were active here, with the stories that they work on.
    sessions: Mutex<BTreeMap<SessionId, Option<String>>>,
    /// The fencing numbers of the tasks that sessions of this process have claimed.
    fences: Mutex<BTreeMap<(SessionId, BoardTaskId), Fence>>,
    /// The claims on paths that sessions of this process have asked for.
    paths: Mutex<BTreeSet<ClaimId>>,
}

enum CopySource {
    /// Another thread keeps the copy current.
    Kept(Mutex<Option<Arc<LocalCopy>>>),
    /// The copy is read when it is first needed, in a process that answers one call.
    OnDemand(OnceLock<Option<Arc<LocalCopy>>>),
}

impl std::fmt::Debug for FleetLink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("FleetLink")
    }
}

impl FleetLink {
    /// For a process that lives longer than a call. Another thread calls [`FleetLink::set_copy`].
    pub fn kept(calls: Box<dyn BoardCalls>) -> Self {
        Self::new(CopySource::Kept(Mutex::default()), calls)
    }

    /// For a process that answers one call and exits.
    pub fn on_demand(calls: Box<dyn BoardCalls>) -> Self {
        Self::new(CopySource::OnDemand(OnceLock::new()), calls)
    }

    fn new(copy: CopySource, calls: Box<dyn BoardCalls>) -> Self {
        Self {
            copy,
            calls,
            checkout: OnceLock::new(),
            sessions: Mutex::default(),
            fences: Mutex::default(),
            paths: Mutex::default(),
        }
    }

    /// Replaces the copy of the board.
    pub fn set_copy(&self, copy: Arc<LocalCopy>) {
        match &self.copy {
            CopySource::Kept(kept) => *locked(kept) = Some(copy),
            CopySource::OnDemand(read) => drop(read.set(Some(copy))),
        }
    }

    /// Takes over a newer age of the copy. While a call uses the copy, its age stays; the next age comes soon. Returns
    /// `false` if this process has another version, and must read the new one.
    pub fn refresh_copy(&self, age: CopyAge) -> bool {
        let CopySource::Kept(kept) = &self.copy else { return true };
        match &mut *locked(kept) {
            Some(copy) if copy.version == age.version => Arc::get_mut(copy).is_none_or(|copy| copy.set_age(age)),
            _ => false,
        }
    }

    /// The copy, which `read` reads if this process does not keep one; `None` if there is none yet.
    pub(crate) fn copy(&self, read: impl FnOnce() -> Option<LocalCopy>) -> Option<Arc<LocalCopy>> {
        match &self.copy {
            CopySource::Kept(kept) => locked(kept).clone(),
            CopySource::OnDemand(known) => known.get_or_init(|| read().map(Arc::new)).clone(),
        }
    }

    /// The copy that another thread keeps current; `None` in a process that answers one call.
    pub fn kept_copy(&self) -> Option<Arc<LocalCopy>> {
        match &self.copy {
            CopySource::Kept(kept) => locked(kept).clone(),
            CopySource::OnDemand(_) => None,
        }
    }

    pub(crate) fn keeps_copy(&self) -> bool {
        matches!(self.copy, CopySource::Kept(_))
    }

    /// The id of this checkout on the board, which `find` determines the first time.
    pub(crate) fn checkout(&self, find: impl FnOnce() -> Option<CheckoutId>) -> Option<CheckoutId> {
        self.checkout.get_or_init(find).clone()
    }

    /// Carries out an operation of the board, and waits for the answer.
    pub fn call(&self, call: &BoardCall) -> Result<BoardAnswer, BoardError> {
        self.calls.call(call)
    }

    pub(crate) fn note_session(&self, session: &SessionId) {
        locked(&self.sessions).entry(session.clone()).or_default();
    }

    /// Notes the story that a session works on.
    pub fn note_story(&self, session: &SessionId, story: &str) {
        locked(&self.sessions).insert(session.clone(), Some(story.to_owned()));
    }

    /// The sessions that were active, with their stories.
    pub fn sessions(&self) -> Vec<(SessionId, Option<String>)> {
        locked(&self.sessions).iter().map(|(session, story)| (session.clone(), story.clone())).collect()
    }

    pub(crate) fn note_fence(&self, session: &SessionId, task: BoardTaskId, fence: Fence) {
        locked(&self.fences).insert((session.clone(), task), fence);
    }

    /// The fencing number with which a session has claimed a task in this process.
    pub(crate) fn fence(&self, session: &SessionId, task: BoardTaskId) -> Option<Fence> {
        locked(&self.fences).get(&(session.clone(), task)).copied()
    }

    pub(crate) fn note_paths(&self, claim: &ClaimId) {
        locked(&self.paths).insert(claim.clone());
    }

    /// Forgets a claim on paths. Returns whether a session of this process has asked for it.
    pub(crate) fn forget_paths(&self, claim: &ClaimId) -> bool {
        locked(&self.paths).remove(claim)
    }

    pub(crate) fn forget_fence(&self, session: &SessionId, task: BoardTaskId) {
        locked(&self.fences).remove(&(session.clone(), task));
    }
}

fn locked<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use surehand_store::board::SqliteBoard;

    use super::*;

    #[test]
    fn a_kept_copy_takes_over_the_age_of_its_version_only() {
        let board: Mutex<Box<dyn Board>> = Mutex::new(Box::new(SqliteBoard::in_memory().unwrap()));
        let link = FleetLink::kept(Box::new(board));
        let version = CopyVersion::fresh();
        let age = |read_at| CopyAge { version, read_at, now: read_at + 7 };
        assert!(!link.refresh_copy(age(1)), "there is none yet");
        link.set_copy(Arc::new(LocalCopy { version, ..LocalCopy::default() }));
        let times = || link.kept_copy().map(|copy| (copy.read_at, copy.board.now));
        assert!(link.refresh_copy(age(1)));
        assert_eq!(times(), Some((Some(1), 8)));
        let in_use = link.kept_copy();
        assert!(link.refresh_copy(age(2)));
        assert_eq!(times(), Some((Some(1), 8)), "a call sees one age");
        drop(in_use);
        assert!(!link.refresh_copy(CopyAge { version: CopyVersion::fresh(), ..age(3) }));
        assert!(link.refresh_copy(age(4)));
        assert_eq!(times(), Some((Some(4), 11)));
    }
}
