//! The `tasks` call: updates the list of tasks.

use serde::Serialize;
use surehand_core::{Cause, Done, Refusal, TaskList, TaskStatus};
use surehand_store::{StoreError, TaskChange, TaskUpdate};

use super::shared_tasks::{self, refuse};
use crate::session::Session;

/// An update of the session's tasks, or of tasks and claims on the board.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct TasksCall {
    /// Tasks to add, in order.
    pub add: Vec<NewTask>,
    /// Tasks to change, by their numbers.
    pub set: Vec<SetTask>,
    /// Numbers of tasks to remove.
    pub remove: Vec<u32>,
    /// The new current story; for shared tasks, the story that they belong to.
    pub story: Option<String>,
    /// Whether the added tasks are for the agents of all checkouts.
    pub shared: bool,
    /// A shared task or paths to claim.
    pub claim: Option<ClaimTarget>,
    /// Numbers of shared tasks that are done.
    pub complete: Vec<u32>,
    /// Numbers of shared tasks that others may claim.
    pub release: Vec<u32>,
    /// Claimed paths to release, by the patterns of their claims.
    pub release_paths: Vec<String>,
}

/// The target of a claim.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ClaimTarget {
    /// The next free shared task of the story.
    NextTask,
    /// The shared task with this number.
    Task(u32),
    /// The paths that match this pattern.
    Paths(String),
}

/// A task to add.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NewTask {
    /// The text of the task.
    pub description: String,
    /// The order: 1 comes first. `None` puts the task last.
    pub priority: Option<u32>,
}

/// A task to change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SetTask {
    /// The number of the task.
    pub id: u32,
    /// The new status; `None` keeps it.
    pub status: Option<TaskStatus>,
    /// The new text; `None` keeps it.
    pub description: Option<String>,
    /// The new priority; `None` keeps it.
    pub priority: Option<u32>,
}

impl TasksCall {
    fn is_for_board(&self) -> bool {
        let ends_nothing = self.complete.is_empty() && self.release.is_empty() && self.release_paths.is_empty();
        self.shared || self.claim.is_some() || !ends_nothing
    }
}

/// The maximum number of tasks in one call.
const MOST_TASKS: usize = 500;

pub(super) fn update(session: &mut Session, tasks: &TasksCall) -> Result<Done, Refusal> {
    check(tasks)?;
    if tasks.is_for_board() {
        return shared_tasks::update(session, tasks);
    }
    let add = tasks.add.iter().map(|task| (task.description.trim().to_owned(), task.priority)).collect();
    let set = |task: &SetTask| TaskChange {
        id: task.id,
        status: task.status,
        description: task.description.clone(),
        priority: task.priority,
    };
    let scope = &session.scope;
    // A run keeps its own story, whatever name its model chooses.
    let begun = tasks.story.clone().filter(|_| scope.story.is_none());
    let change = TaskUpdate {
        by: scope.owner.clone(),
        begins_story: begun.is_some(),
        story: begun.or_else(|| scope.story.clone()),
        add,
        set: tasks.set.iter().map(set).collect(),
        remove: tasks.remove.clone(),
    };
    match session.workspace().update_tasks(&change) {
        Ok(plan) => Ok(Done::Tasks(TaskList::of(&plan.story, plan.tasks, scope.owner.as_ref()))),
        Err(StoreError::NoSuchTask { id }) => Err(Refusal::of_call(Cause::NoSuchTask { id })),
        Err(StoreError::TaskOfOthers { id, whose }) => Err(Refusal::of_call(Cause::TaskOfOthers { id, whose })),
        Err(StoreError::BadTaskUpdate { why }) => refuse(why),
        Err(error) => Err(Refusal::of_call(Cause::Io { why: error.to_string() })),
    }
}

fn check(tasks: &TasksCall) -> Result<(), Refusal> {
    if tasks.add.is_empty() && tasks.set.is_empty() && tasks.remove.is_empty() && tasks.story.is_none() && !tasks.is_for_board() {
        return refuse("nothing to do: give add, set, remove or story".to_owned());
    }
    if tasks.add.len() > MOST_TASKS {
        return refuse(format!("{} tasks at once; make fewer, larger ones (at most {MOST_TASKS})", tasks.add.len()));
    }
    Ok(())
}
