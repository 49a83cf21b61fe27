//! Calls of an agent to a board, as values: another process carries out the call and returns the answer.

use serde::{Deserialize, Serialize};

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
