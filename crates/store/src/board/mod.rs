//! The board: the data that several checkouts of one repository share. It holds the agents and the places where they
//! work, the tasks of a story, claims on tasks and paths, changed lines, and headlines.
//!
//! [`Board`] is the interface. [`SqliteBoard`] implements it for all checkouts of one user on one machine. A backend
//! for several machines is a separate crate. Every backend passes [`contract`].
//!
//! Three rules make a board safe on an unreliable network:
//!
//! - **The clock of the board decides.** Callers give the duration of a lease, never its end.
//! - **Every operation can be repeated.** Callers choose the ids of the values they send (requests, tasks, events).
//!   After a broken connection they send the same values again, and nothing happens twice.
//! - **A claim has a [`Fence`]**, a number that rises with each new holder and never falls. The board refuses late
//!   updates of a former holder.

mod calls;
pub mod checks;
pub mod contract;
mod copy;
mod error;
mod sqlite;
mod task_state;
mod values;

use std::time::Duration;

pub use calls::{BoardAnswer, BoardCall};
pub use copy::{BoardCopy, CopyChange};
pub use error::BoardError;
pub use sqlite::{BoardSummary, SqliteBoard};
pub use task_state::{ClaimEnd, TaskState};
pub use values::{
    Agent, AgentId, BoardBounds, BoardTask, BoardTaskId, Checkout, CheckoutId, ClaimId, ContentChange, Cursor, Fence, FileChange,
    Headline, Heartbeat, Holdings, NewTask, News, PathClaim, PathClaimRequest, PostedHeadline, Presence, RepositoryId,
    SharedHunk, TaskChoice, TaskClaim, TaskClaimRequest, TaskEdit, TaskEnd,
};

/// The data that the checkouts of one repository share.
///
/// An operation that fails with [`BoardError::Unreachable`] may or may not have happened. Send it again unchanged.
pub trait Board: Send {
    /// Registers a checkout, or updates its path.
    fn join(&mut self, checkout: &Checkout) -> Result<(), BoardError>;

    /// Reports that agents are alive, and extends everything they hold by their leases. An expired claim is extended,
    /// too, if no other agent has taken it. Returns the claims that each agent holds, in the given order; a claim that
    /// is missing there is lost.
    fn heartbeat(&mut self, beats: &[Heartbeat]) -> Result<Vec<Holdings>, BoardError>;

    /// Reports that an agent has ended, and releases everything it holds.
    fn leave(&mut self, agent: &AgentId) -> Result<(), BoardError>;

    /// Adds tasks to a story. A task whose key exists already is left unchanged. Returns their numbers, in the given
    /// order.
    fn add_tasks(&mut self, story: &str, tasks: &[NewTask]) -> Result<Vec<BoardTaskId>, BoardError>;

    /// Changes a task, and ends the claim on it if the task is no longer in progress.
    fn edit_task(&mut self, edit: &TaskEdit) -> Result<BoardTask, BoardError>;

    /// The tasks of a story, by number.
    fn tasks(&mut self, story: &str) -> Result<Vec<BoardTask>, BoardError>;

    /// Claims one task; `None` if the story has no free task. The same request returns the same claim while it lasts.
    fn claim_task(&mut self, request: &TaskClaimRequest) -> Result<Option<BoardTask>, BoardError>;

    /// Ends a claim on a task. The holder may do so after its lease has expired, unless another agent has taken the
    /// task.
    fn end_task(&mut self, task: BoardTaskId, fence: Fence, end: TaskEnd) -> Result<(), BoardError>;

    /// Claims the paths that match a pattern. No other agent gets a claim that could match one of them.
    fn claim_paths(&mut self, request: &PathClaimRequest) -> Result<PathClaim, BoardError>;

    /// Ends a claim on paths.
    fn release_paths(&mut self, claim: &ClaimId) -> Result<(), BoardError>;

    /// Reports how files of a checkout differ from its fork point. An entry replaces the previous one of its path,
    /// unless that has a higher revision.
    fn report_changes(&mut self, checkout: &CheckoutId, changes: &[FileChange]) -> Result<(), BoardError>;

    /// Posts headlines. A headline whose id exists already is left unchanged.
    fn post(&mut self, headlines: &[Headline]) -> Result<(), BoardError>;

    /// Returns everything new since the cursor of the last news, or everything. Nothing is missing, but an item may
    /// come twice.
    fn news(&mut self, since: Option<&Cursor>) -> Result<News, BoardError>;

    /// Waits for news, at most this long. Returns whether news may have arrived.
    fn wait(&mut self, timeout: Duration) -> Result<bool, BoardError>;

    /// Deletes a part of the data that exceeds the bounds. Returns whether more is left.
    fn prune(&mut self, bounds: &BoardBounds) -> Result<bool, BoardError>;
}
