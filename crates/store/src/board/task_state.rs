//! Decides which agent may do what with a task, for all backends.

use surehand_core::{TaskStatus, timestamp::Millis};

use super::{AgentId, BoardError, BoardTask, Fence, TaskEnd};

/// A task as a backend stores it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskState {
    /// The task as agents see it.
    pub task: BoardTask,
    /// The fencing number of its last claim, which the next claim exceeds.
    pub last_fence: Fence,
}

/// The effect of a message that ends a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClaimEnd {
    /// The message ends the claim.
    Now,
    /// The message arrived before, and changes nothing.
    Repeated,
}

impl TaskState {
    fn check_not_held_by_another(&self, agent: &AgentId, now: Millis) -> Result<(), BoardError> {
        match &self.task.claim {
            Some(claim) if claim.by != *agent && now < claim.until => {
                Err(BoardError::TaskHeld { task: self.task.id, by: claim.by.clone(), until: claim.until })
            }
            _ => Ok(()),
        }
    }

    fn check_open(&self) -> Result<(), BoardError> {
        match self.task.status {
            status @ (TaskStatus::Completed | TaskStatus::Cancelled) => {
                Err(BoardError::TaskClosed { task: self.task.id, status })
            }
            TaskStatus::Pending | TaskStatus::InProgress => Ok(()),
        }
    }

    /// Checks that an agent may claim the task at this time of the board.
    pub fn check_free(&self, by: &AgentId, now: Millis) -> Result<(), BoardError> {
        self.check_open()?;
        self.check_not_held_by_another(by, now)
    }

    /// Checks that an agent, or a person for `None`, may change the task at this time of the board.
    pub fn check_editable(&self, by: Option<&AgentId>, now: Millis) -> Result<(), BoardError> {
        by.map_or(Ok(()), |by| self.check_not_held_by_another(by, now))
    }

    /// Checks that the claim with this fencing number may end in this way.
    pub fn ends_claim(&self, fence: Fence, end: TaskEnd) -> Result<ClaimEnd, BoardError> {
        if fence == self.last_fence && self.task.status == end.status() {
            return Ok(ClaimEnd::Repeated);
        }
        self.check_open()?;
        if fence != self.last_fence || self.task.claim.is_none() {
            return Err(BoardError::LostClaim { task: self.task.id, given: fence, newest: self.last_fence });
        }
        Ok(ClaimEnd::Now)
    }
}
