//! Why a board refused or failed.

use surehand_core::{TaskStatus, timestamp::Millis};

use super::{AgentId, BoardTaskId, Fence};
use crate::StoreError;

/// Why a board refused or failed. Unless a variant says otherwise, nothing was changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BoardError {
    /// There is no task with this number.
    #[error("the board has no task {0}")]
    NoSuchTask(BoardTaskId),
    /// The task was completed or cancelled.
    #[error("task {task} is {}; claim another one", status.name().replace('_', " "))]
    TaskClosed {
        /// The task.
        task: BoardTaskId,
        /// Its status.
        status: TaskStatus,
    },
    /// Another agent holds the task.
    #[error("task {task} is held by {by}; claim another one, or wait until it is released or its lease ends")]
    TaskHeld {
        /// The task.
        task: BoardTaskId,
        /// The holder.
        by: AgentId,
        /// When its lease ends, by the clock of the board.
        until: Millis,
    },
    /// The caller no longer holds the task: the claim was released, or the task was claimed again or taken away. Its
    /// update comes too late.
    #[error("the claim {given} on task {task} is over, the last one is {newest}; claim the task again")]
    LostClaim {
        /// The task.
        task: BoardTaskId,
        /// The fencing number of the caller.
        given: Fence,
        /// The fencing number of the last claim.
        newest: Fence,
    },
    /// Another agent holds paths that the pattern may match.
    #[error(
        "{pattern} overlaps with {held}, which is held by {by}; claim other paths, or wait until they are released or the lease ends"
    )]
    PathsHeld {
        /// The requested pattern.
        pattern: String,
        /// The pattern of the other agent.
        held: String,
        /// The holder.
        by: AgentId,
        /// When its lease ends, by the clock of the board.
        until: Millis,
    },
    /// A value is out of bounds.
    #[error("{0}")]
    BadValue(String),
    /// A newer Surehand created the board.
    #[error("{place}: this board was made by a newer surehand (format {found}, this one knows {known}); update surehand")]
    Newer {
        /// The file or server.
        place: String,
        /// Its format.
        found: i64,
        /// The newest format that this program knows.
        known: i64,
    },
    /// The board cannot be reached, or the connection broke. The operation may have happened; it can be sent again.
    #[error("{place}: the board cannot be reached: {why}")]
    Unreachable {
        /// The server.
        place: String,
        /// The error of the system or the server.
        why: String,
    },
    /// The server does not let this user in, or not do this. Sending the operation again does not help.
    #[error("{place}: the server of the board refused: {why}")]
    Denied {
        /// The server.
        place: String,
        /// What it refused, and what to do.
        why: String,
    },
    /// The file of the board cannot be read or written.
    #[error(transparent)]
    Store(StoreError),
    /// The server of the board refused or failed.
    #[error("{place}: {error}")]
    Server {
        /// The server.
        place: String,
        /// Its error.
        error: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl From<StoreError> for BoardError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Newer { path: place, found, known } => Self::Newer { place, found, known },
            error => Self::Store(error),
        }
    }
}
