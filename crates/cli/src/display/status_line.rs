//! The status line at the bottom of the terminal. Parts that do not fit are left out, the least important first.

use std::time::Duration;

use surehand_agent::{event::RunPhase, model::TokenUsage};

use super::{
    escape,
    style::{self, Painter, Style},
    wrap,
};

#[derive(Debug, Clone, PartialEq)]
pub(super) struct StatusLine {
    pub turn: u32,
    pub phase: RunPhase,
    /// What the run is waiting for.
    pub doing: StatusActivity,
    pub task: Option<String>,
    pub open: usize,
    pub completed: usize,
    pub prompt_tokens: usize,
    /// The tokens and cost of all earlier turns.
    pub total: TokenUsage,
    /// The last line that a running command has printed. Shown instead of the task.
    pub output: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum StatusActivity {
    Thinking,
    /// The model is writing a call of this tool.
    Writing(String),
    Running(String),
    Waiting,
}

const FRAMES: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];

/// A task is left out if it has less room than this, in columns.
const SHORTEST_TASK: usize = 12;

/// The task gets this many columns before the numbers get any.
const TASK_BEFORE_NUMBERS: usize = 24;

/// Parts of this rank and above are numbers that are also shown elsewhere.
const NUMBERS: u8 = 3;

/// Renders the status in one row.
pub(super) fn render(status: &StatusLine, frame: usize, time: Duration, painter: Painter) -> String {
    let spinner = FRAMES[frame % FRAMES.len()];
    let room = painter.room(2);
    let task = status.output.as_ref().or(status.task.as_ref()).map(|text| escape::one_line(text)).unwrap_or_default();
    let mut parts = fitting(parts(status, time), wrap::width(&task), room);
    let left = room.saturating_sub(wrap::width(&joined(&parts)) + SEPARATOR_WIDTH);
    if !task.is_empty() && left >= SHORTEST_TASK.min(wrap::width(&task)) {
        let at = parts.len().min(2);
        parts.insert(at, StatusPart { rank: 0, text: wrap::truncate(&task, left) });
    }
    format!("{} {}", painter.paint(Style::Cyan, spinner), painter.paint(Style::Dim, &wrap::truncate(&joined(&parts), room)))
}

/// A part with a higher rank is left out sooner.
struct StatusPart {
    rank: u8,
    text: String,
}

/// The parts that fit beside a task of this width.
fn fitting(mut parts: Vec<StatusPart>, task: usize, room: usize) -> Vec<StatusPart> {
    let for_task = if task == 0 { 0 } else { task.min(TASK_BEFORE_NUMBERS) + SEPARATOR_WIDTH };
    while let Some(least) = parts.iter().map(|part| part.rank).max().filter(|least| *least > 0) {
        let beside = if least >= NUMBERS { for_task } else { 0 };
        if wrap::width(&joined(&parts)) + beside <= room {
            break;
        }
        parts.retain(|part| part.rank != least);
    }
    parts
}

fn parts(status: &StatusLine, time: Duration) -> Vec<StatusPart> {
    let part = |rank, text| StatusPart { rank, text };
    let doing = match &status.doing {
        StatusActivity::Thinking => "thinking".to_owned(),
        StatusActivity::Writing(tool) => format!("writing {}", escape::name(tool)),
        StatusActivity::Running(tool) => format!("running {}", escape::name(tool)),
        StatusActivity::Waiting => "waiting".to_owned(),
    };
    let mut parts =
        vec![part(0, format!("turn {}", status.turn)), part(2, format!("{}, {doing}", style::phase_name(status.phase)))];
    let tasks = status.open + status.completed;
    if tasks > 0 {
        parts.push(part(3, format!("{}/{tasks} tasks", status.completed)));
    }
    parts.push(part(1, style::format_duration(time)));
    parts.push(part(4, format!("prompt {}", style::abbreviate(status.prompt_tokens as u64))));
    let TokenUsage { input, cached, output, cost } = status.total;
    if input > 0 {
        let text = format!(
            "total {} in, {} cached, {} out",
            style::abbreviate(input),
            style::abbreviate(cached),
            style::abbreviate(output)
        );
        parts.push(part(6, text));
    }
    if let Some(cost) = cost {
        parts.push(part(5, style::dollars(cost)));
    }
    parts
}

const SEPARATOR: &str = " · ";
const SEPARATOR_WIDTH: usize = 3;

fn joined(parts: &[StatusPart]) -> String {
    parts.iter().map(|part| part.text.as_str()).collect::<Vec<_>>().join(SEPARATOR)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::display::style::Colours;

    fn status() -> StatusLine {
        StatusLine {
            turn: 3,
            phase: RunPhase::Coding,
            doing: StatusActivity::Thinking,
            task: Some("Teach the parser about\ncomments that end with the file".to_owned()),
            open: 2,
            completed: 1,
            prompt_tokens: 8_211,
            total: TokenUsage { input: 40_100, cached: 30_000, output: 2_100, cost: Some(0.042) },
            output: None,
        }
    }

    fn drawn(status: &StatusLine, width: usize) -> String {
        render(status, 2, Duration::from_secs(12), Painter { width, colours: Colours::Off })
    }

    #[track_caller]
    fn check(width: usize, expected: &str) {
        assert_eq!(drawn(&status(), width), expected);
    }

    #[test]
    fn a_wide_terminal_shows_everything() {
        check(
            180,
            "⠹ turn 3 · coding, thinking · Teach the parser about comments that end with the file · 1/3 tasks · 12 s · prompt 8.2k · total 40.1k in, 30.0k cached, 2.1k out · $0.04",
        );
    }

    #[test]
    fn less_room_shows_less() {
        check(
            140,
            "⠹ turn 3 · coding, thinking · Teach the parser about com… · 1/3 tasks · 12 s · prompt 8.2k · total 40.1k in, 30.0k cached, 2.1k out · $0.04",
        );
        check(
            120,
            "⠹ turn 3 · coding, thinking · Teach the parser about comments that end with t… · 1/3 tasks · 12 s · prompt 8.2k · $0.04",
        );
        check(80, "⠹ turn 3 · coding, thinking · Teach the parser about commen… · 1/3 tasks · 12 s");
        check(60, "⠹ turn 3 · coding, thinking · Teach the parser abou… · 12 s");
        check(40, "⠹ turn 3 · coding, thinking · 12 s");
        check(20, "⠹ turn 3 · 12 s");
        check(12, "⠹ turn 3");
        check(8, "⠹ turn…");
        check(0, "⠹ ");
    }

    #[test]
    fn unknown_values_are_left_out() {
        let status = StatusLine {
            task: None,
            open: 0,
            completed: 0,
            total: TokenUsage::default(),
            doing: StatusActivity::Writing("edit_file".to_owned()),
            ..status()
        };
        assert_eq!(drawn(&status, 120), "⠹ turn 3 · coding, writing edit_file · 12 s · prompt 8.2k");
    }

    #[test]
    fn the_words_of_a_model_are_not_obeyed() {
        let status =
            StatusLine { task: Some("\x1b[2Jx".to_owned()), doing: StatusActivity::Running("\r\n".to_owned()), ..status() };
        let drawn = drawn(&status, 180);
        assert!(drawn.contains("running <U+000D><U+000A> · <U+001B>[2Jx · "), "{drawn}");
    }

    proptest! {
        #[test]
        fn it_never_takes_two_rows(width in 4..200usize, task in "[a 漢👍\n\x1b]{0,80}", turn: u32) {
            let status = StatusLine { task: Some(task), turn, ..status() };
            prop_assert!(wrap::width(&drawn(&status, width)) < width);
        }
    }
}
