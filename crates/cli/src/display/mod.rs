//! Displays a run: on a terminal with a spinner and colours, as plain lines, or as JSON events. It shows and asks, but
//! decides nothing.

mod approval;
pub(crate) mod board;
mod call_summary;
mod command_output;
pub(crate) mod diff;
mod keyboard;
mod line_editor;
mod plain_lines;
mod plan;
mod progress;
mod status_line;
mod stream;
pub(crate) mod style;
mod terminal;
mod terminal_lines;
pub(crate) mod wrap;

use std::io::{self, IsTerminal, Write};

use anyhow::Context;
use rustix::termios::tcgetwinsize;
use surehand_agent::{CancelToken, EditRequest, RunEvent, command::CommandRequest, past_runs::RecordedEvent};

pub(crate) use surehand_engine::core::visible as escape;

pub(crate) use self::{
    approval::ApprovalAnswer,
    keyboard::{Keyboard, restore_mode},
};
use self::{
    approval::Question,
    progress::RunProgress,
    style::{Colours, Painter},
    terminal::RunTerminal,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DisplayMode {
    Terminal,
    Plain(UserPresence),
    Json,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UserPresence {
    Attended,
    /// The output goes to a file or a pipe, where nobody would see a question.
    Unattended,
}

pub(crate) struct RunDisplay(DisplayKind);

enum DisplayKind {
    Terminal(RunTerminal),
    Plain { out: Box<dyn Write + Send>, progress: Box<RunProgress>, attendance: UserPresence },
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
            (false, _) => Self::Plain(UserPresence::Unattended),
            (true, "" | "dumb") => Self::Plain(UserPresence::Attended),
            (true, _) if no_color => Self::Plain(UserPresence::Attended),
            (true, _) => Self::Terminal,
        }
    }
}

impl RunDisplay {
    pub(crate) fn new(mode: DisplayMode) -> Self {
        let out = Box::new(io::stdout());
        match mode {
            DisplayMode::Terminal => {
                let terminal = RunTerminal::new(out, Box::new(columns));
                let terminal = match Keyboard::find() {
                    Some(keyboard) => terminal.listening(keyboard),
                    None => terminal,
                };
                Self(DisplayKind::Terminal(terminal))
            }
            DisplayMode::Plain(attendance) => Self::plain(out, attendance),
            DisplayMode::Json => Self::json(out),
        }
    }

    /// With colours and a status line, but without a keyboard. `width` is called for each line.
    #[cfg(test)]
    pub(crate) fn terminal(out: Box<dyn Write + Send>, width: Box<dyn Fn() -> usize + Send>) -> Self {
        Self(DisplayKind::Terminal(RunTerminal::new(out, width)))
    }

    pub(crate) fn plain(out: Box<dyn Write + Send>, attendance: UserPresence) -> Self {
        Self(DisplayKind::Plain { out, progress: Box::default(), attendance })
    }

    pub(crate) fn json(out: Box<dyn Write + Send>) -> Self {
        Self(DisplayKind::Json(out))
    }

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

    /// Whether the user would see a question and can answer it.
    pub(crate) fn is_attended(&self) -> bool {
        self.keyboard().is_some()
    }

    /// The keyboard, if the user would see a question.
    fn keyboard(&self) -> Option<Keyboard> {
        match &self.0 {
            DisplayKind::Terminal(_) | DisplayKind::Plain { attendance: UserPresence::Attended, .. } => Keyboard::find(),
            DisplayKind::Plain { attendance: UserPresence::Unattended, .. } | DisplayKind::Json(_) => None,
        }
    }

    /// Asks whether a command may run. Returns `Unattended` if nobody would see the question, and `No` if the run is
    /// stopped at it.
    pub(crate) fn ask(&mut self, request: &CommandRequest<'_>, cancel: &CancelToken) -> anyhow::Result<ApprovalAnswer> {
        let answer = self.put_question(|painter| approval::about_command(request, painter), cancel);
        Ok(answer.context("asking whether a command may run")?.unwrap_or(ApprovalAnswer::Unattended))
    }

    pub(crate) fn ask_about_edit(&mut self, request: &EditRequest<'_>, cancel: &CancelToken) -> anyhow::Result<ApprovalAnswer> {
        let answer = self.put_question(|painter| approval::about_edit(request, painter), cancel);
        match &mut self.0 {
            DisplayKind::Terminal(terminal) => terminal.note_diff_was_seen(),
            DisplayKind::Plain { progress, .. } => progress.is_diff_seen = true,
            DisplayKind::Json(_) => {}
        }
        Ok(answer.context("asking whether an edit may be made")?.unwrap_or(ApprovalAnswer::Unattended))
    }

    /// Reads the answer to a question in the model's text; `None` if there is none.
    pub(crate) fn answer(&mut self, cancel: &CancelToken) -> anyhow::Result<Option<String>> {
        let answer = self.put(|keyboard, painter, out| {
            out.write_all(approval::question_of_model(painter).as_bytes())?;
            out.flush()?;
            let typed = keyboard.line(cancel)?;
            // Ctrl-C leaves the cursor after the question.
            if typed.is_none() { out.write_all(b"\n").map(|()| None) } else { Ok(typed) }
        });
        Ok(answer.context("reading the answer")?.flatten())
    }

    /// The lines that the user has typed since the last call.
    pub(crate) fn take_words(&mut self) -> Vec<String> {
        match &self.0 {
            DisplayKind::Terminal(terminal) => terminal.take_words(),
            DisplayKind::Plain { .. } | DisplayKind::Json(_) => self.keyboard().map_or_else(Vec::new, lines_typed),
        }
    }

    fn put_question(
        &mut self,
        question: impl FnOnce(Painter) -> Question,
        cancel: &CancelToken,
    ) -> io::Result<Option<ApprovalAnswer>> {
        self.put(|keyboard, painter, out| question(painter).ask(painter, out, &mut || keyboard.line(cancel)))
    }

    /// Asks a question where the user sees it; `None` if nobody would.
    fn put<T>(&mut self, ask: impl FnOnce(&Keyboard, Painter, &mut dyn Write) -> io::Result<T>) -> io::Result<Option<T>> {
        let keyboard = self.keyboard();
        match (&mut self.0, keyboard) {
            (DisplayKind::Terminal(terminal), _) => terminal.ask(ask),
            (DisplayKind::Plain { out, .. }, Some(keyboard)) => {
                keyboard.forget();
                ask(&keyboard, Painter { width: columns(), colours: Colours::Off }, out).map(Some)
            }
            _ => Ok(None),
        }
    }
}

/// The lines that wait in a terminal in its own line mode. A terminal that is gone has none.
fn lines_typed(keyboard: Keyboard) -> Vec<String> {
    let mut typed = Vec::new();
    while let Ok(true) = keyboard.has_input() {
        match keyboard.read_typed() {
            Ok(Some(more)) if !more.is_empty() => typed.extend(more),
            _ => break,
        }
    }
    let text = String::from_utf8_lossy(&typed).into_owned();
    text.lines().filter(|line| !line.trim().is_empty()).map(str::to_owned).collect()
}

/// Formats events of a transcript as plain lines.
pub(crate) fn replay(events: &[RecordedEvent]) -> String {
    let mut progress = RunProgress::default();
    let mut text = String::new();
    for RecordedEvent { event, json } in events {
        text.push_str(&plain_lines::format_event(event, &mut progress));
        // An event read from a transcript has its diffs only as text.
        text.push_str(&plain_lines::diff_lines(json["diff"].as_str().unwrap_or_default()));
        progress.note(event);
    }
    text
}

fn write(out: &mut dyn Write, text: &str) -> io::Result<()> {
    out.write_all(text.as_bytes()).and_then(|()| out.flush())
}

pub(crate) fn columns() -> usize {
    const USUAL: usize = 80;
    let known = tcgetwinsize(io::stdout()).map(|size| usize::from(size.ws_col));
    known.ok().filter(|columns| *columns > 0).unwrap_or(USUAL)
}

#[cfg(test)]
mod tests;
