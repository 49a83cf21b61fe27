//! `surehand tasks`: what there is to do.

use std::process::ExitCode;

use serde_json::json;
use surehand_engine::{
    ToolNames,
    core::{TaskStatus, render},
    store::{Plan, PlanChange, TaskChange},
};

use crate::{
    args::{TasksAct, TasksArgs},
    output, place,
};

pub(crate) fn run(args: &TasksArgs) -> anyhow::Result<ExitCode> {
    let plan = match &args.act {
        None => place::look(&args.place)?.ask(|store| store.plan())?,
        Some(act) => place::open(&args.place)?.change_plan(&change(act))?,
    };
    output::print(&if args.json { as_json(&plan) } else { render::tasks::tasks(&plan.tasks, &ToolNames::default()) })?;
    Ok(ExitCode::SUCCESS)
}

fn as_json(plan: &Plan) -> String {
    format!("{:#}\n", json!({ "story_id": plan.story, "tasks": plan.tasks }))
}

fn change(act: &TasksAct) -> PlanChange {
    let set = |change: TaskChange| PlanChange { set: vec![change], ..PlanChange::default() };
    let moved = |id: u32, status: TaskStatus| set(TaskChange { id, status: Some(status), description: None, priority: None });
    match act {
        TasksAct::Add { description, priority } => {
            PlanChange { add: vec![(description.clone(), *priority)], ..PlanChange::default() }
        }
        TasksAct::Start { id } => moved(*id, TaskStatus::InProgress),
        TasksAct::Complete { id } => moved(*id, TaskStatus::Completed),
        TasksAct::Reopen { id } => moved(*id, TaskStatus::Pending),
        TasksAct::Edit { id, description, priority } => {
            set(TaskChange { id: *id, status: None, description: description.clone(), priority: *priority })
        }
        TasksAct::Story { id } => PlanChange { story: Some(id.clone()), ..PlanChange::default() },
    }
}
