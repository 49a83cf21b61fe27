//! The errors of a board.

use serde::{Deserialize, Serialize};
use surehand_core::{TaskStatus, timestamp::Millis};

use super::{AgentId, BoardTaskId, Fence};
use crate::StoreError;

/// The reason why a board refused or failed. Unless a variant says otherwise, nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum BoardError {
    /// The board has no task with this number.
    #[error("the board has no task {0}")]
    NoSuchTask(BoardTaskId),
    /// The task was completed or cancelled.
    #[error("task {task} is {}; claim another one", status.name().replace('_', " "))]
    TaskClosed {
        /// The number of the task.
        task: BoardTaskId,
        /// The status, completed or cancelled.
        status: TaskStatus,
    },
    /// Another agent holds the task.
    #[error("task {task} is held by {by}; claim another one, or wait until it is released or its lease ends")]
    TaskHeld {
        /// The number of the task.
        task: BoardTaskId,
        /// The agent that holds it.
        by: AgentId,
        /// When its lease ends, by the clock of the board.
        until: Millis,
    },
    /// The caller no longer holds the task: the claim was released, or the task was claimed again or taken away. The
    /// caller's update comes too late.
    #[error("the claim {given} on task {task} is over, the last one is {newest}; claim the task again")]
    LostClaim {
        /// The number of the task.
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
        /// The pattern in the request.
        pattern: String,
        /// The pattern that the other agent has claimed.
        held: String,
        /// The agent that holds it.
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
        /// The path of the file, or the address of the server.
        place: String,
        /// The format of the board.
        found: i64,
        /// The newest format that this program knows.
        known: i64,
    },
    /// The board cannot be reached, or the connection broke. The operation may have happened; it can be sent again.
    #[error("{place}: the board cannot be reached: {why}")]
    Unreachable {
        /// The address of the server.
        place: String,
        /// The error of the system or the server.
        why: String,
    },
    /// The server denies this user access or this operation. Sending the operation again does not help.
    #[error("{place}: the server of the board refused: {why}")]
    Denied {
        /// The address of the server.
        place: String,
        /// The denied operation, and what to do.
        why: String,
    },
    /// The file of the board cannot be read or written.
    #[error("{0}")]
    #[serde(skip)]
    Store(String),
    /// The server of the board refused or failed.
    #[error("{place}: {why}")]
    Server {
        /// The address of the server.
        place: String,
        /// The error of the server.
        why: String,
    },
}

impl BoardError {
    /// The error as sent to another process, for which the file of the board is like a server.
    #[must_use]
    pub fn for_another_process(self) -> Self {
        match self {
            Self::Store(why) => Self::Server { place: "the file of the board".to_owned(), why },
            error => error,
        }
    }
}

impl From<StoreError> for BoardError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Newer { path: place, found, known } => Self::Newer { place, found, known },
            error => Self::Store(error.to_string()),
        }
    }
}
