//! `update_tasks`: adds and changes tasks.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use surehand_core::{Refusal, TaskStatus, Tool, ToolNames};

use super::{ToolDefinition, WholeNumber, arguments, schema};
use crate::calls::{Call, NewTask, SetTask, TasksCall};

pub(super) const DEFINITION: ToolDefinition = ToolDefinition { describe, schema: schema::<UpdateTasks>, parse };

fn describe(names: &ToolNames) -> String {
    let shown = names.get(Tool::RepoState).map(|state| format!("; {state} shows what is left"));
    format!(
        "Keep the list of tasks: add what is to be done, set a task to in_progress when you begin it and to completed when it is done. The list outlives your \
         context{}. When no task is open, everything is done.",
        shown.unwrap_or_else(|| ", and every call shows what is left, so read its reply".to_owned())
    )
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct UpdateTasks {
    add: Option<Vec<TaskToAdd>>,
    set: Option<Vec<TaskToSet>>,
    remove: Option<Vec<WholeNumber>>,
    /// A name or number.
    story: Option<String>,
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
    status: Option<StatusArgument>,
    description: Option<String>,
    priority: Option<WholeNumber>,
}

/// One number, as the schema says; several are understood as well.
#[derive(Deserialize)]
#[serde(untagged, expecting = "a number or a list of numbers")]
enum TaskNumbers {
    One(WholeNumber),
    Many(Vec<WholeNumber>),
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum StatusArgument {
    Pending,
    InProgress,
    Completed,
    Cancelled,
}

fn parse(value: &Value) -> Result<Call, Refusal> {
    let call: UpdateTasks = arguments(Tool::UpdateTasks.name(), value)?;
    let new = |task: TaskToAdd| NewTask { description: task.description, priority: task.priority.map(|priority| priority.0) };
    let set = |task: TaskToSet| {
        let ids = match task.id {
            TaskNumbers::One(id) => vec![id.0],
            TaskNumbers::Many(ids) => ids.into_iter().map(|id| id.0).collect(),
        };
        let set = SetTask {
            id: 0,
            status: task.status.map(|status| match status {
                StatusArgument::Pending => TaskStatus::Pending,
                StatusArgument::InProgress => TaskStatus::InProgress,
                StatusArgument::Completed => TaskStatus::Completed,
                StatusArgument::Cancelled => TaskStatus::Cancelled,
            }),
            description: task.description,
            priority: task.priority.map(|priority| priority.0),
        };
        ids.into_iter().map(move |id| SetTask { id, ..set.clone() })
    };
    let (add, changes) = (call.add.unwrap_or_default(), call.set.unwrap_or_default());
    Ok(Call::Tasks(TasksCall {
        add: add.into_iter().map(new).collect(),
        set: changes.into_iter().flat_map(set).collect(),
        remove: call.remove.unwrap_or_default().into_iter().map(|id| id.0).collect(),
        story: call.story,
    }))
}
