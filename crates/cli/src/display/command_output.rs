//! Selects the lines of a command's output that a person sees: the first ones as they arrive, and the last ones at the
//! end.

use surehand_agent::command;
use surehand_engine::render::count;

use super::{
    escape,
    style::{Painter, Style},
    wrap,
};

/// The output of the running command.
#[derive(Debug, Default)]
pub(super) struct LiveOutput {
    /// The id of the command's call.
    call: String,
    /// The number of lines so far.
    lines: usize,
    /// Whether the command printed more than the run passes on.
    is_muted: bool,
}

/// How much of a command's output is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OutputDetail {
    /// Everything that the run passes on.
    All,
    /// This many lines as they arrive, and this many at the end.
    Ends { first: usize, last: usize },
}

impl LiveOutput {
    /// Takes the next piece of output, and returns the lines of it to show.
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

    /// The lines to show at the end. `result` is the result of the call, whose first line says how the command ended.
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
            // Instead of saying that one line is missing, show that line.
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

/// Formats lines of output for a terminal: indented, and truncated to its width.
pub(super) fn dimmed(lines: &[String], painter: Painter) -> String {
    let line = |line: &String| format!("    {}\n", painter.paint(Style::Dim, &wrap::truncate(line, painter.room(4))));
    lines.iter().map(line).collect()
}
