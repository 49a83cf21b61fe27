//! Displays a run: on a terminal with a spinner and colours, as plain lines, or as JSON events. It shows and asks, and decides nothing.

mod approval;
mod call_summary;
pub(crate) mod diff;
pub(crate) mod escape;
mod keyboard;
mod plain_lines;
mod progress;
mod status_line;
mod stream;
pub(crate) mod style;
mod terminal;
mod terminal_lines;
mod wrap;

use std::io::{self, IsTerminal, Write};

use anyhow::Context;
use rustix::termios::tcgetwinsize;
use surehand_agent::{CancelToken, RunEvent};

pub(crate) use self::{approval::ApprovalAnswer, keyboard::Keyboard};
use self::{
    progress::RunProgress,
    style::{Colours, Painter},
    terminal::RunTerminal,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DisplayMode {
    Terminal,
    Plain(Attendance),
    Json,
}

/// Whether a person is there to answer a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Attendance {
    Attended,
    /// The output goes to a file or a pipe, where a question would get lost.
    Unattended,
}

pub(crate) struct RunDisplay(DisplayKind);

enum DisplayKind {
    Terminal(RunTerminal),
    Plain { out: Box<dyn Write + Send>, progress: Box<RunProgress>, attendance: Attendance },
    Json(Box<dyn Write + Send>),
}

impl DisplayMode {
    /// The mode for standard output, or JSON if requested.
    pub(crate) fn here(json: bool) -> Self {
        let variable = |name| std::env::var_os(name).unwrap_or_default();
        let term = variable("TERM");
        match (json, io::stdout().is_terminal()) {
            (true, _) => Self::Json,
            (false, is_terminal) => Self::of_text(is_terminal, &term.to_string_lossy(), !variable("NO_COLOR").is_empty()),
        }
    }

    /// A terminal without a type or without colours gets plain lines.
    fn of_text(is_terminal: bool, term: &str, no_color: bool) -> Self {
        match (is_terminal, term) {
            (false, _) => Self::Plain(Attendance::Unattended),
            (true, "" | "dumb") => Self::Plain(Attendance::Attended),
            (true, _) if no_color => Self::Plain(Attendance::Attended),
            (true, _) => Self::Terminal,
        }
    }
}

impl RunDisplay {
    pub(crate) fn new(manner: DisplayMode) -> Self {
        let out = Box::new(io::stdout());
        match manner {
            DisplayMode::Terminal => Self::terminal(out, Box::new(columns)),
            DisplayMode::Plain(attendance) => Self::plain(out, attendance),
            DisplayMode::Json => Self::json(out),
        }
    }

    /// With colours and a status line. `width` is asked at each line.
    pub(crate) fn terminal(out: Box<dyn Write + Send>, width: Box<dyn Fn() -> usize + Send>) -> Self {
        Self(DisplayKind::Terminal(RunTerminal::new(out, width)))
    }

    pub(crate) fn plain(out: Box<dyn Write + Send>, attendance: Attendance) -> Self {
        Self(DisplayKind::Plain { out, progress: Box::default(), attendance })
    }

    pub(crate) fn json(out: Box<dyn Write + Send>) -> Self {
        Self(DisplayKind::Json(out))
    }

    /// Shows what happened.
    pub(crate) fn show(&mut self, event: &RunEvent) -> anyhow::Result<()> {
        let shown = match &mut self.0 {
            DisplayKind::Terminal(terminal) => terminal.show(event),
            DisplayKind::Plain { out, progress, .. } => {
                let lines = plain_lines::format_event(event, progress);
                progress.note(event);
                write(out, &lines)
            }
            DisplayKind::Json(out) => write(out, &format!("{}\n", serde_json::to_string(event)?)),
        };
        shown.context("standard output")
    }

    /// Asks whether a command may run. Returns `Nobody` if the question would not be seen, and `No` if the run is stopped at it.
    pub(crate) fn ask(&mut self, command: &str, cancel: &CancelToken) -> anyhow::Result<ApprovalAnswer> {
        let answer = match &mut self.0 {
            DisplayKind::Terminal(terminal) => terminal.ask(command, cancel),
            DisplayKind::Plain { out, attendance: Attendance::Attended, .. } => ask_plainly(out, command, cancel),
            DisplayKind::Plain { attendance: Attendance::Unattended, .. } | DisplayKind::Json(_) => Ok(ApprovalAnswer::Nobody),
        };
        answer.context("asking whether a command may run")
    }
}

fn ask_plainly(out: &mut dyn Write, command: &str, cancel: &CancelToken) -> io::Result<ApprovalAnswer> {
    let Some(keyboard) = Keyboard::find() else { return Ok(ApprovalAnswer::Nobody) };
    keyboard.forget();
    let painter = Painter { width: columns(), colours: Colours::Off };
    approval::ask(command, painter, out, &mut || keyboard.line(cancel))
}

fn write(out: &mut dyn Write, text: &str) -> io::Result<()> {
    out.write_all(text.as_bytes()).and_then(|()| out.flush())
}

/// The current width of the terminal.
pub(crate) fn columns() -> usize {
    const USUAL: usize = 80;
    let known = tcgetwinsize(io::stdout()).map(|size| usize::from(size.ws_col));
    known.ok().filter(|columns| *columns > 0).unwrap_or(USUAL)
}

#[cfg(test)]
mod tests;
