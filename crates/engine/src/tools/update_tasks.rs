//! `update_tasks`: adds and changes tasks.

use schemars::JsonSchema;
use serde::Deserialize;
use surehand_core::{Refusal, TaskStatus, Tool, ToolNames};

use super::{ToolArguments, WholeNumber};
use crate::calls::{Call, ClaimTarget, NewTask, SetTask, TasksCall};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct UpdateTasks {
    add: Option<Vec<TaskToAdd>>,
    set: Option<Vec<TaskToSet>>,
    remove: Option<Vec<WholeNumber>>,
    story: Option<String>,
    // Every word of the schema is part of each request of each model. So the schema leaves out the arguments for shared
    // tasks: the reply to a claim says how to end it, and the guide says the rest.
    #[schemars(with = "Option<String>")]
    claim: Option<ClaimArgument>,
    #[schemars(skip)]
    shared: Option<bool>,
    #[schemars(skip)]
    complete: Option<TaskNumbers>,
    #[schemars(skip)]
    release: Option<ReleaseArgument>,
}

/// `"next"`, the number of a task, or a pattern for paths.
#[derive(Deserialize)]
#[serde(untagged, expecting = "\"next\", a number or a pattern for paths")]
enum ClaimArgument {
    Number(WholeNumber),
    Word(String),
}

/// Numbers of tasks, or a pattern for paths.
#[derive(Deserialize)]
#[serde(untagged, expecting = "a number, a list of numbers or a pattern for paths")]
enum ReleaseArgument {
    Tasks(TaskNumbers),
    Paths(String),
}

/// A task to add.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct TaskToAdd {
    description: String,
    /// 1 comes first.
    priority: Option<WholeNumber>,
}

/// A task to change.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct TaskToSet {
    #[schemars(with = "WholeNumber")]
    id: TaskNumbers,
    #[schemars(with = "Option<String>", extend("enum" = ["pending", "in_progress", "completed", "cancelled"]))]
    status: Option<TaskStatus>,
    description: Option<String>,
    priority: Option<WholeNumber>,
}

/// One number, as the schema says. A list of numbers is accepted too.
#[derive(Deserialize)]
#[serde(untagged, expecting = "a number or a list of numbers")]
enum TaskNumbers {
    One(WholeNumber),
    Many(Vec<WholeNumber>),
}

impl TaskNumbers {
    fn ids(self) -> Vec<u32> {
        match self {
            TaskNumbers::One(id) => vec![id.0],
            TaskNumbers::Many(ids) => ids.into_iter().map(|id| id.0).collect(),
        }
    }
}

impl ToolArguments for UpdateTasks {
    fn describe(names: &ToolNames) -> String {
        let shown = names.get(Tool::RepoState).map(|state| format!("; {state} shows what is left"));
        format!(
            "Keep the task list: add tasks, set a task to in_progress when you begin it, then to completed. The list \
             outlives your context{}.",
            shown.unwrap_or_else(|| ", and every call shows what is left, so read its reply".to_owned())
        )
    }

    fn into_call(self) -> Result<Call, Refusal> {
        let new = |task: TaskToAdd| NewTask { description: task.description, priority: task.priority.map(|priority| priority.0) };
        let set = |task: TaskToSet| {
            let ids = task.id.ids();
            let set = SetTask {
                id: 0,
                status: task.status,
                description: task.description,
                priority: task.priority.map(|priority| priority.0),
            };
            ids.into_iter().map(move |id| SetTask { id, ..set.clone() })
        };
        let (release, release_paths) = match self.release {
            None => (Vec::new(), Vec::new()),
            Some(ReleaseArgument::Tasks(numbers)) => (numbers.ids(), Vec::new()),
            Some(ReleaseArgument::Paths(pattern)) => (Vec::new(), vec![pattern]),
        };
        let (add, changes) = (self.add.unwrap_or_default(), self.set.unwrap_or_default());
        Ok(Call::Tasks(TasksCall {
            add: add.into_iter().map(new).collect(),
            set: changes.into_iter().flat_map(set).collect(),
            remove: self.remove.unwrap_or_default().into_iter().map(|id| id.0).collect(),
            story: self.story,
            shared: self.shared.unwrap_or_default(),
            claim: self.claim.map(|claim| match claim {
                ClaimArgument::Number(id) => ClaimTarget::Task(id.0),
                ClaimArgument::Word(word) if word == "next" => ClaimTarget::NextTask,
                ClaimArgument::Word(pattern) => ClaimTarget::Paths(pattern),
            }),
            complete: self.complete.map(TaskNumbers::ids).unwrap_or_default(),
            release,
            release_paths,
        }))
    }
}
