//! `update_tasks`: what there is to do.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use surehand_core::{Cause, Refusal, TaskStatus, render};
use surehand_store::{PlanChange, StoreError, TaskChange};

use super::{Number, arguments};
use crate::session::{Session, Success};

/// Keep the list of tasks: add what is to be done, set a task to in_progress when you begin it and to completed when it is done. The list outlives your context and
/// restarts; repo_state shows what is open, so you can read there what is left. When no task is open, everything is done.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UpdateTasks {
    /// Tasks to add, in order.
    add: Option<Vec<NewTask>>,
    /// Tasks to change.
    set: Option<Vec<SetTask>>,
    /// What the work is about: the name or number of a story or ticket.
    story: Option<String>,
}

/// A task to add.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NewTask {
    /// What is to be done, in a line.
    description: String,
    /// 1 comes first. Without it the task comes last.
    priority: Option<Number>,
}

/// A task to change.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SetTask {
    /// The number of the task.
    id: Number,
    /// How far it is.
    status: Option<Status>,
    /// Another description.
    description: Option<String>,
    /// Another priority.
    priority: Option<Number>,
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Status {
    Pending,
    InProgress,
    Completed,
}

/// More tasks than this are no plan.
const MOST_TASKS: usize = 500;

pub fn run(session: &mut Session, call: &Value) -> Result<Success, Refusal> {
    let call: UpdateTasks = arguments("update_tasks", call)?;
    let change = change(call)?;
    let plan = match session.workspace().change_plan(&change) {
        Ok(plan) => plan,
        Err(StoreError::NoSuchTask { id }) => return Err(bad(format!("there is no task {id}; repo_state lists the open ones"))),
        Err(error) => return Err(Refusal::of_call(Cause::Io { why: error.to_string() })),
    };
    let open = plan.tasks.iter().filter(|task| task.is_open()).count();
    let text = render::tasks::tasks(&plan.tasks);
    let result = Map::from_iter([("tasks".to_owned(), json!(plan.tasks)), ("open_tasks".to_owned(), json!(open))]);
    Ok(Success { text, result, ..Success::default() })
}

fn change(call: UpdateTasks) -> Result<PlanChange, Refusal> {
    let (add, set) = (call.add.unwrap_or_default(), call.set.unwrap_or_default());
    if add.is_empty() && set.is_empty() && call.story.is_none() {
        return Err(bad("nothing to do: give add, set or story".to_owned()));
    }
    if add.len() > MOST_TASKS {
        return Err(bad(format!("{} tasks at once; make fewer, larger ones (at most {MOST_TASKS})", add.len())));
    }
    if let Some(task) = add.iter().map(|task| &task.description).find(|description| description.trim().is_empty()) {
        return Err(bad(format!("a task needs a description: {task:?}")));
    }
    let new = |task: NewTask| (task.description.trim().to_owned(), task.priority.map(|priority| priority.0));
    let set_task = |task: SetTask| TaskChange {
        id: task.id.0,
        status: task.status.map(|status| match status {
            Status::Pending => TaskStatus::Pending,
            Status::InProgress => TaskStatus::InProgress,
            Status::Completed => TaskStatus::Completed,
        }),
        description: task.description,
        priority: task.priority.map(|priority| priority.0),
    };
    Ok(PlanChange { add: add.into_iter().map(new).collect(), set: set.into_iter().map(set_task).collect(), story: call.story })
}

fn bad(why: String) -> Refusal {
    Refusal::of_call(Cause::BadArguments { why: format!("update_tasks: {why}") })
}
