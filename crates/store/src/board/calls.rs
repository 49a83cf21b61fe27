//! Calls of an agent to a board, as values: another process carries out the call and returns the answer.

use serde::{Deserialize, Serialize};
use surehand_core::{TaskStatus, timestamp::Millis};

use super::{
    AgentId, Board, BoardError, BoardTask, BoardTaskId, ClaimId, Fence, NewTask, PathClaim, PathClaimRequest, TaskClaimRequest,
    TaskEdit, TaskEnd,
};

/// One operation of [`Board`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BoardCall {
    /// [`Board::add_tasks`]
    AddTasks {
        /// The story that the tasks belong to.
        story: String,
        /// The tasks to add.
        tasks: Vec<NewTask>,
    },
    /// [`Board::edit_task`]
    EditTask(TaskEdit),
    /// [`Board::tasks`]
    Tasks {
        /// The story whose tasks are listed.
        story: String,
    },
    /// [`Board::claim_task`]
    ClaimTask(TaskClaimRequest),
    /// [`Board::end_task`]
    EndTask {
        /// The task that the claim is on.
        task: BoardTaskId,
        /// The fencing number of the claim.
        fence: Fence,
        /// The new status of the task.
        end: TaskEnd,
    },
    /// [`Board::claim_paths`]
    ClaimPaths(PathClaimRequest),
    /// [`Board::release_paths`]
    ReleasePaths {
        /// The id of the claim.
        claim: ClaimId,
        /// The agent that ends it; `None` for a person, who may end the claims of agents.
        by: Option<AgentId>,
    },
    /// [`Board::leave`]
    Leave(AgentId),
}

/// The result of a [`BoardCall`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BoardAnswer {
    /// The numbers of the added tasks.
    Added(Vec<BoardTaskId>),
    /// Tasks: the changed one, the claimed one, those of a story; none if no task is free.
    Tasks(Vec<BoardTask>),
    /// The claim on paths.
    Paths(PathClaim),
    /// The call returns no value.
    Done,
}

impl BoardCall {
    /// Carries out the call on this board.
    pub fn carry_out(&self, board: &mut dyn Board) -> Result<BoardAnswer, BoardError> {
        Ok(match self {
            Self::AddTasks { story, tasks } => BoardAnswer::Added(board.add_tasks(story, tasks)?),
            Self::EditTask(edit) => BoardAnswer::Tasks(vec![board.edit_task(edit)?]),
            Self::Tasks { story } => BoardAnswer::Tasks(board.tasks(story)?),
            Self::ClaimTask(request) => BoardAnswer::Tasks(board.claim_task(request)?.into_iter().collect()),
            Self::EndTask { task, fence, end } => {
                board.end_task(*task, *fence, *end)?;
                BoardAnswer::Done
            }
            Self::ClaimPaths(request) => BoardAnswer::Paths(board.claim_paths(request)?),
            Self::ReleasePaths { claim, .. } => {
                board.release_paths(claim)?;
                BoardAnswer::Done
            }
            Self::Leave(agent) => {
                board.leave(agent)?;
                BoardAnswer::Done
            }
        })
    }
}

/// A [`BoardError`] that another process met.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "each is the variant of BoardError with its name")]
pub enum BoardFailure {
    NoSuchTask(BoardTaskId),
    TaskClosed { task: BoardTaskId, status: TaskStatus },
    TaskHeld { task: BoardTaskId, by: AgentId, until: Millis },
    LostClaim { task: BoardTaskId, given: Fence, newest: Fence },
    PathsHeld { pattern: String, held: String, by: AgentId, until: Millis },
    BadValue(String),
    Newer { place: String, found: i64, known: i64 },
    Unreachable { place: String, why: String },
    Denied { place: String, why: String },
    Server { place: String, why: String },
}

impl From<BoardError> for BoardFailure {
    fn from(error: BoardError) -> Self {
        match error {
            BoardError::NoSuchTask(task) => Self::NoSuchTask(task),
            BoardError::TaskClosed { task, status } => Self::TaskClosed { task, status },
            BoardError::TaskHeld { task, by, until } => Self::TaskHeld { task, by, until },
            BoardError::LostClaim { task, given, newest } => Self::LostClaim { task, given, newest },
            BoardError::PathsHeld { pattern, held, by, until } => Self::PathsHeld { pattern, held, by, until },
            BoardError::BadValue(why) => Self::BadValue(why),
            BoardError::Newer { place, found, known } => Self::Newer { place, found, known },
            BoardError::Unreachable { place, why } => Self::Unreachable { place, why },
            BoardError::Denied { place, why } => Self::Denied { place, why },
            BoardError::Store(error) => Self::Server { place: "the file of the board".to_owned(), why: error.to_string() },
            BoardError::Server { place, error } => Self::Server { place, why: error.to_string() },
        }
    }
}

impl From<BoardFailure> for BoardError {
    fn from(failure: BoardFailure) -> Self {
        match failure {
            BoardFailure::NoSuchTask(task) => Self::NoSuchTask(task),
            BoardFailure::TaskClosed { task, status } => Self::TaskClosed { task, status },
            BoardFailure::TaskHeld { task, by, until } => Self::TaskHeld { task, by, until },
            BoardFailure::LostClaim { task, given, newest } => Self::LostClaim { task, given, newest },
            BoardFailure::PathsHeld { pattern, held, by, until } => Self::PathsHeld { pattern, held, by, until },
            BoardFailure::BadValue(why) => Self::BadValue(why),
            BoardFailure::Newer { place, found, known } => Self::Newer { place, found, known },
            BoardFailure::Unreachable { place, why } => Self::Unreachable { place, why },
            BoardFailure::Denied { place, why } => Self::Denied { place, why },
            BoardFailure::Server { place, why } => Self::Server { place, error: why.into() },
        }
    }
}
