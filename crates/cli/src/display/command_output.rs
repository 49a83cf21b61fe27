//! What a person sees of a command's output: its first lines as they come, and its last ones at the end.

use surehand_agent::command;
use surehand_engine::render::count;

use super::{
    escape,
    style::{Painter, Style},
    wrap,
};

/// The output of the command that runs.
#[derive(Debug, Default)]
pub(super) struct LiveOutput {
    /// The call of the command.
    call: String,
    /// The lines that have come.
    lines: usize,
    /// Whether more came than the run passes on.
    is_muted: bool,
}

/// How much of the output of a command is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OutputDetail {
    /// All that the run passes on.
    All,
    /// So many lines as they come, and so many at the end.
    Ends { first: usize, last: usize },
}

impl LiveOutput {
    /// The lines to show of the next piece.
    pub(super) fn push(&mut self, call: &str, text: &str, detail: OutputDetail) -> Vec<String> {
        if self.call != call {
            *self = Self { call: call.to_owned(), ..Self::default() };
        }
        let mut shown = Vec::new();
        for line in text.lines() {
            if is_note(line, command::MUTED) {
                self.is_muted = true;
                continue;
            }
            if detail.shows(self.lines) {
                shown.push(escape::name(line));
            }
            self.lines += 1;
        }
        shown
    }

    /// The lines to show at the end, by the result of the command, which begins with how it ended.
    pub(super) fn rest(&self, call: &str, result: &str, detail: OutputDetail) -> Vec<String> {
        let lines: Vec<&str> = result.lines().skip(1).collect();
        let came = if self.call == call { self.lines } else { 0 };
        let note = lines.iter().position(|line| line.starts_with("[… ") && line.ends_with(" left out …]"));
        let from = match (detail, note) {
            (OutputDetail::All, Some(note)) if self.call == call && self.is_muted => note,
            (OutputDetail::All, _) => came,
            (OutputDetail::Ends { first, .. }, _) => came.min(first),
        };
        let rest = &lines[from.min(lines.len())..];
        let hidden = match detail {
            OutputDetail::All => 0,
            // A line that says that one line is missing may as well be that line.
            OutputDetail::Ends { first, last } if rest.len() > last + first.saturating_sub(from) + 1 => rest.len() - last,
            OutputDetail::Ends { .. } => 0,
        };
        let mut shown = Vec::new();
        if hidden > 0 {
            let left_out = note.map(|note| lines[note]).filter(|note| rest[..hidden].contains(note));
            let beside = left_out.map(|note| format!(" {note}")).unwrap_or_default();
            shown.push(format!("… {}{beside}", count(hidden, "more line")));
        }
        shown.extend(rest[hidden..].iter().map(|line| escape::name(line)));
        shown
    }
}

impl OutputDetail {
    fn shows(self, before: usize) -> bool {
        match self {
            OutputDetail::All => true,
            OutputDetail::Ends { first, .. } => before < first,
        }
    }
}

fn is_note(line: &str, note: &str) -> bool {
    line == note.trim_end()
}

/// Lines of output for a terminal, indented and cut to its width.
pub(super) fn dimmed(lines: &[String], painter: Painter) -> String {
    let line = |line: &String| format!("    {}\n", painter.paint(Style::Dim, &wrap::truncate(line, painter.room(4))));
    lines.iter().map(line).collect()
}
