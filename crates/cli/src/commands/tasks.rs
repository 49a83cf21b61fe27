//! `surehand tasks`: the task list.

use surehand_engine::{
    core::{TaskList, TaskStatus, render},
    json,
    store::{TaskChange, TaskUpdate, story_name},
};

use crate::{
    args::{TaskIds, TasksAct, TasksArgs},
    output, workspace,
};

pub(crate) fn run(args: &TasksArgs) -> anyhow::Result<()> {
    if args.story.is_some() && !matches!(args.act, None | Some(TasksAct::Add { .. })) {
        anyhow::bail!("--story is for looking at a list and for adding to it; a task is found by its number in any story");
    }
    let plan = match &args.act {
        None => workspace::open_read_only(&args.place)?
            .ask(|store| store.story_tasks(args.story.as_deref().map(story_name).as_deref()))?,
        Some(act) => workspace::open(&args.place)?.update_tasks(&change(act, args.story.clone()))?,
    };
    let list = TaskList::of(&plan.story, plan.tasks, None);
    output::print(&if args.json { format!("{:#}\n", json::tasks(&list)) } else { render::tasks::all_tasks(&list) })
}

fn change(act: &TasksAct, story: Option<String>) -> TaskUpdate {
    let none = TaskUpdate { story, ..TaskUpdate::default() };
    let set = |ids: &[u32], status: TaskStatus| {
        let set = |id: &u32| TaskChange { id: *id, status: Some(status), description: None, priority: None };
        ids.iter().map(set).collect()
    };
    match act {
        TasksAct::Add { description, priority } => TaskUpdate { add: vec![(description.clone(), *priority)], ..none },
        TasksAct::Start(TaskIds { ids }) => TaskUpdate { set: set(ids, TaskStatus::InProgress), ..none },
        TasksAct::Complete(TaskIds { ids }) => TaskUpdate { set: set(ids, TaskStatus::Completed), ..none },
        TasksAct::Cancel(TaskIds { ids }) => TaskUpdate { set: set(ids, TaskStatus::Cancelled), ..none },
        TasksAct::Reopen(TaskIds { ids }) => TaskUpdate { set: set(ids, TaskStatus::Pending), ..none },
        TasksAct::Remove(TaskIds { ids }) => TaskUpdate { remove: ids.clone(), ..none },
        TasksAct::Edit { id, description, priority } => {
            let change = TaskChange { id: *id, status: None, description: description.clone(), priority: *priority };
            TaskUpdate { set: vec![change], ..none }
        }
        TasksAct::Story { id } => TaskUpdate { story: Some(id.clone()), begins_story: true, ..none },
    }
}
