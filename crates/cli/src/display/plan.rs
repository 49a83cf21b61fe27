//! Formats the plan of a run: the whole list if tasks were added or removed, else only the tasks that have changed.

use surehand_agent::event::PlannedTask;
use surehand_engine::{core::TaskStatus, render::count};

use super::escape;

/// The number of tasks that are shown of a list.
const SHOWN: usize = 12;

/// The lines for a plan, given the plan that was shown last. `mark` is the text for a status.
pub(super) fn lines(before: &[PlannedTask], now: &[PlannedTask], mark: impl Fn(TaskStatus) -> &'static str) -> Vec<String> {
    let line = |task: &PlannedTask| format!("{} {} {}", mark(task.status), task.id, escape::one_line(&task.description));
    let is_known = |task: &PlannedTask| before.iter().any(|known| known.id == task.id && known.description == task.description);
    if before.len() == now.len() && now.iter().all(is_known) {
        let moved = now.iter().filter(|task| !before.contains(task));
        return moved.map(line).collect();
    }
    // A long list is shown from its first open task on.
    let open = now.iter().position(|task| is_open(task.status)).unwrap_or_default();
    let from = if now.len() > SHOWN { open.min(now.len() - SHOWN) } else { 0 };
    let shown = &now[from..(from + SHOWN).min(now.len())];
    let others = |number, what| (number > 0).then(|| format!("… {} {what}", count(number, "task")));
    let after = now.len() - from - shown.len();
    let mut lines: Vec<String> = others(from, "before").into_iter().collect();
    lines.extend(shown.iter().map(line));
    lines.extend(others(after, "after"));
    lines
}

pub(super) fn is_open(status: TaskStatus) -> bool {
    matches!(status, TaskStatus::Pending | TaskStatus::InProgress)
}

/// The text for a status on a terminal.
pub(super) fn sign(status: TaskStatus) -> &'static str {
    match status {
        TaskStatus::Pending => "○",
        TaskStatus::InProgress => "▸",
        TaskStatus::Completed => "✔",
        TaskStatus::Cancelled => "✗",
    }
}

/// The text for a status in plain lines.
pub(super) fn word(status: TaskStatus) -> &'static str {
    match status {
        TaskStatus::Pending => "task:",
        TaskStatus::InProgress => "task in progress:",
        TaskStatus::Completed => "task completed:",
        TaskStatus::Cancelled => "task cancelled:",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(id: u32, status: TaskStatus) -> PlannedTask {
        PlannedTask { id, description: format!("part {id}\n"), status }
    }

    fn tasks(statuses: &[TaskStatus]) -> Vec<PlannedTask> {
        (1..).zip(statuses).map(|(id, status)| task(id, *status)).collect()
    }

    use TaskStatus::{Cancelled, Completed, InProgress, Pending};

    #[test]
    fn a_new_plan_is_shown_whole_and_then_what_moves() {
        let first = tasks(&[Pending, Pending]);
        assert_eq!(lines(&[], &first, sign), ["○ 1 part 1", "○ 2 part 2"]);
        let second = tasks(&[Completed, Pending]);
        assert_eq!(lines(&first, &second, sign), ["✔ 1 part 1"]);
        let third = tasks(&[Completed, InProgress, Cancelled]);
        assert_eq!(lines(&second, &third, sign), ["✔ 1 part 1", "▸ 2 part 2", "✗ 3 part 3"]);
        assert_eq!(lines(&third, &third[..1], word), ["task completed: 1 part 1"]);
        assert!(lines(&third, &third, sign).is_empty() && lines(&third, &[], sign).is_empty());
    }

    #[test]
    fn a_long_plan_is_shown_from_its_first_open_task() {
        let long = tasks(&[vec![Completed; 30], vec![Pending; 30]].concat());
        let shown = lines(&[], &long, sign);
        assert_eq!((shown.len(), shown[0].as_str(), shown[1].as_str()), (14, "… 30 tasks before", "○ 31 part 31"));
        assert_eq!(shown[13], "… 18 tasks after");
        let over = lines(&[], &tasks(&[Completed; 13]), sign);
        assert_eq!((over[0].as_str(), over[12].as_str()), ("✔ 1 part 1", "… 1 task after"));
        assert_eq!(lines(&[], &tasks(&[vec![Completed; 29], vec![Pending; 1]].concat()), sign).last().unwrap(), "○ 30 part 30");
    }
}
