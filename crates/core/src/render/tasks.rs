//! Renders the list of tasks.

use crate::{
    excerpt::clip,
    render::count,
    repo_state::{SharedTask, SharedTaskList, Task, TaskList, TaskStatus},
    tool::ToolNames,
};

/// The maximum number of open tasks that are listed, and of tasks of other owners. The rest is counted.
const MOST: usize = 50;
const MOST_OTHERS: usize = 10;

const CHARS: usize = 200;

/// The open tasks in order, the number of closed ones, and the tasks of other owners; or a note that the list is empty.
pub fn tasks(list: &TaskList, names: &ToolNames) -> String {
    some_tasks(list, names, MOST)
}

fn some_tasks(list: &TaskList, names: &ToolNames, most: usize) -> String {
    let open = list.open();
    let mut text = match &list.story {
        none if none.is_empty() => String::new(),
        story => format!("Story: {}\n", one_line(story)),
    };
    text.push_str(&match (open.len(), list.tasks.is_empty()) {
        (0, true) => "There are no tasks.\n".to_owned(),
        (0, false) => {
            let finish = names.done().map(|done| format!(" If that is so, finish by calling {done}.")).unwrap_or_default();
            format!("No task is open, {}: everything is done.{finish}\n", closed_counts(list))
        }
        (open, _) => format!("{} open, {}:\n", count(open, "task"), closed_counts(list)),
    });
    put_lines(&mut text, &open, most, line);
    if !list.of_others.is_empty() {
        text.push_str("Open tasks of other stories and runs:\n");
        put_lines(&mut text, &list.of_others.iter().collect::<Vec<_>>(), MOST_OTHERS, line_of_others);
    }
    text
}

/// The open tasks of a story on the board, and the one that the caller has just claimed.
pub fn shared_tasks(list: &SharedTaskList) -> String {
    let of_story = if list.story.is_empty() { String::new() } else { format!(" of story {}", one_line(&list.story)) };
    let mut text = match (list.claimed, list.wanted) {
        (Some(id), _) => format!("Task {id} is yours until you send {{\"complete\": {id}}} or {{\"release\": {id}}}.\n"),
        (None, true) => format!("No shared task{of_story} is free.\n"),
        (None, false) => String::new(),
    };
    if let Some(pattern) = &list.claimed_paths {
        let json = serde_json::Value::from(pattern.as_str());
        text.push_str(&format!("{pattern} is yours until you send {{\"release\": {json}}}, or this session ends.\n"));
    }
    list.released_paths.iter().for_each(|pattern| text.push_str(&format!("{pattern} is no longer yours.\n")));
    if list.is_about_paths_alone() {
        return text;
    }
    let mut open: Vec<&SharedTask> =
        list.tasks.iter().filter(|task| matches!(task.status, TaskStatus::Pending | TaskStatus::InProgress)).collect();
    open.sort_by_key(|task| (!task.mine, task.priority, task.id));
    let closed = list.tasks.len() - open.len();
    text.push_str(&match open.len() {
        0 => format!("No shared task{of_story} is open, {closed} closed.\n"),
        all => format!("{}{of_story} open, {closed} closed:\n", count(all, "shared task")),
    });
    for task in open.iter().take(MOST) {
        let by = match (&task.by, task.mine) {
            (_, true) => " (yours)".to_owned(),
            (Some(by), false) => format!(" ({by})"),
            (None, false) => String::new(),
        };
        let description = clip(&one_line(&task.description), CHARS);
        text.push_str(&format!("{}. [{}] {description}{by}\n", task.id, task.status.name()));
    }
    if open.len() > MOST {
        text.push_str(&format!("… and {} more\n", open.len() - MOST));
    }
    text
}

/// Like [`tasks`], followed by the tasks that are no longer open; for people.
pub fn all_tasks(list: &TaskList) -> String {
    let closed: String = list.tasks.iter().filter(|task| !task.is_open()).map(line).collect();
    let heading = if closed.is_empty() { "" } else { "No longer open:\n" };
    format!("{}{heading}{closed}", some_tasks(list, &ToolNames::default(), usize::MAX))
}

fn closed_counts(list: &TaskList) -> String {
    let (completed, cancelled) = (list.count(TaskStatus::Completed), list.count(TaskStatus::Cancelled));
    let cancelled = if cancelled > 0 { format!(", {cancelled} cancelled") } else { String::new() };
    format!("{completed} completed{cancelled}")
}

fn put_lines(text: &mut String, tasks: &[&Task], most: usize, line: impl Fn(&Task) -> String) {
    // The newest tasks are always listed, because a caller that has just added one needs its number.
    const LAST: usize = 5;
    if tasks.len() <= most {
        return tasks.iter().for_each(|task| text.push_str(&line(task)));
    }
    let (first, rest) = tasks.split_at(most.saturating_sub(LAST));
    let mut last = rest.to_vec();
    last.sort_by_key(|task| task.id);
    let cut = last.len().saturating_sub(LAST);
    first.iter().for_each(|task| text.push_str(&line(task)));
    text.push_str(&format!("… {cut} more, and the last that were added:\n"));
    last[cut..].iter().for_each(|task| text.push_str(&line(task)));
}

/// `3. [in_progress] Write the tests`
pub fn line(task: &Task) -> String {
    format!("{}. [{}] {}\n", task.id, task.status.name(), clip(&one_line(&task.description), CHARS))
}

/// Like `line`, with the owner.
fn line_of_others(task: &Task) -> String {
    format!("{} ({})\n", line(task).trim_end(), belongs_to(task))
}

/// The owner of a task, as other readers see it.
pub fn belongs_to(task: &Task) -> String {
    match (&task.owner, task.story.as_str()) {
        (Some(owner), _) => owner.to_string(),
        (None, "") => "no story".to_owned(),
        (None, story) => format!("story {}", one_line(story)),
    }
}

fn one_line(description: &str) -> String {
    description.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;
    use crate::repo_state::TaskOwner;

    fn tasks(list: &[Task]) -> String {
        super::tasks(&TaskList::of("", list.to_vec(), None), &ToolNames::default().with_done("done"))
    }

    fn task(id: u32, status: TaskStatus, priority: u32, description: &str) -> Task {
        Task { id, description: description.to_owned(), status, priority, story: String::new(), owner: None }
    }

    #[test]
    fn started_tasks_come_first_then_urgent_ones() {
        let list = [
            task(1, TaskStatus::Pending, 2, "later"),
            task(2, TaskStatus::Completed, 1, "done"),
            task(3, TaskStatus::InProgress, 9, "begun\n  on two lines"),
            task(4, TaskStatus::Pending, 1, "soon"),
        ];
        assert_snapshot!(tasks(&list), @"
        3 tasks open, 1 completed:
        3. [in_progress] begun on two lines
        4. [pending] soon
        1. [pending] later
        ");
        assert_snapshot!(tasks(&list[1..2]), @"No task is open, 1 completed: everything is done. If that is so, finish by calling done.");
        assert_snapshot!(tasks(&[]), @"There are no tasks.");
    }

    #[test]
    fn tasks_of_others_are_listed_with_their_owner() {
        let of = |task: Task, story: &str, owner: Option<&str>| {
            let owner = owner.map(|run| TaskOwner::Run(run.to_owned()));
            Task { story: story.to_owned(), owner, ..task }
        };
        let list = vec![
            of(task(1, TaskStatus::Pending, 1, "write it"), "S-2", Some("k2")),
            of(task(2, TaskStatus::Cancelled, 2, "not wanted"), "S-2", None),
            of(task(3, TaskStatus::Pending, 1, "paint it"), "S-1", None),
            of(task(4, TaskStatus::InProgress, 1, "sell it"), "k1", Some("k1")),
            task(5, TaskStatus::Pending, 1, "some day"),
            of(task(6, TaskStatus::Completed, 1, "long ago"), "S-1", None),
        ];
        let list = TaskList::of("S-2", list, Some(&TaskOwner::Run("k2".to_owned())));
        assert_snapshot!(super::all_tasks(&list), @"
        Story: S-2
        1 task open, 0 completed, 1 cancelled:
        1. [pending] write it
        Open tasks of other stories and runs:
        3. [pending] paint it (story S-1)
        4. [in_progress] sell it (run k1)
        5. [pending] some day (no story)
        No longer open:
        2. [cancelled] not wanted
        ");
    }
}
