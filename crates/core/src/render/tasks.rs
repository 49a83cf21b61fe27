//! The list of tasks, in words.

use crate::{
    excerpt::clip,
    render::count,
    state::{Task, TaskStatus, open_tasks},
    tool::ToolNames,
};

/// So many tasks are listed; the rest is counted.
const MOST: usize = 50;

/// Characters of a description.
const CHARS: usize = 200;

/// The open tasks in the order in which they are to be done, and how many are done. When none is open, that is said.
pub fn tasks(tasks: &[Task], names: &ToolNames) -> String {
    let open = open_tasks(tasks);
    let done = tasks.len() - open.len();
    if open.is_empty() {
        return if tasks.is_empty() {
            "There are no tasks.\n".to_owned()
        } else {
            let finish = names.done().map(|done| format!(" If that is so, finish by calling {done}.")).unwrap_or_default();
            format!("No task is open, {done} completed: everything is done.{finish}\n")
        };
    }
    let mut text = format!("{} open, {done} completed:\n", count(open.len(), "task"));
    for task in open.iter().take(MOST) {
        text.push_str(&line(task));
    }
    if open.len() > MOST {
        text.push_str(&format!("… and {} more\n", open.len() - MOST));
    }
    text
}

/// `3. [in_progress] Write the tests`
pub fn line(task: &Task) -> String {
    format!("{}. [{}] {}\n", task.id, status(task.status), clip(&one_line(&task.description), CHARS))
}

/// The word for a status.
pub fn status(status: TaskStatus) -> &'static str {
    match status {
        TaskStatus::Pending => "pending",
        TaskStatus::InProgress => "in_progress",
        TaskStatus::Completed => "completed",
    }
}

fn one_line(description: &str) -> String {
    description.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;

    fn tasks(list: &[Task]) -> String {
        super::tasks(list, &ToolNames::default().with_done("done"))
    }

    fn task(id: u32, status: TaskStatus, priority: u32, description: &str) -> Task {
        Task { id, description: description.to_owned(), status, priority }
    }

    #[test]
    fn what_is_begun_comes_first_then_what_is_urgent() {
        let list = [
            task(1, TaskStatus::Pending, 2, "later"),
            task(2, TaskStatus::Completed, 1, "done"),
            task(3, TaskStatus::InProgress, 9, "begun\n  on two lines"),
            task(4, TaskStatus::Pending, 1, "soon"),
        ];
        assert_snapshot!(tasks(&list), @r"
        3 tasks open, 1 completed:
        3. [in_progress] begun on two lines
        4. [pending] soon
        1. [pending] later
        ");
        assert_snapshot!(tasks(&list[1..2]), @"No task is open, 1 completed: everything is done. If that is so, finish by calling done.");
        assert_snapshot!(tasks(&[]), @"There are no tasks.");
    }
}
