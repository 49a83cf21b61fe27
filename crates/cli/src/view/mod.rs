//! What people and programs see of a run: a terminal with a spinner and colours, plain lines, or the events as JSON. Shows events and
//! asks; decides nothing.

mod call;
mod course;
pub(crate) mod diff;
mod fit;
mod keyboard;
mod lines;
pub(crate) mod look;
mod plain;
mod question;
pub(crate) mod safe;
mod speech;
mod status;
mod terminal;

use std::io::{self, IsTerminal, Write};

use anyhow::Context;
use rustix::termios::tcgetwinsize;
use surehand_agent::{CancelToken, RunEvent};

use self::{
    course::Course,
    look::{Colours, Look},
    terminal::Terminal,
};
pub(crate) use self::{keyboard::Keyboard, question::Answer};

/// In which manner a run is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Manner {
    /// For a terminal that can do something.
    Terminal,
    /// In lines, and whether somebody may be asked.
    Plain(Asking),
    /// As JSON.
    Json,
}

/// Whether somebody sees a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asking {
    /// Somebody does.
    Somebody,
    /// It would get lost in a file or pipe.
    Nobody,
}

/// A run as it is shown.
pub(crate) struct View(Kind);

enum Kind {
    Terminal(Terminal),
    Plain { out: Box<dyn Write + Send>, course: Box<Course>, asking: Asking },
    Json(Box<dyn Write + Send>),
}

impl Manner {
    /// The manner that suits standard output, or JSON if that is asked for.
    pub(crate) fn here(json: bool) -> Self {
        let variable = |name| std::env::var_os(name).unwrap_or_default();
        let term = variable("TERM");
        match (json, io::stdout().is_terminal()) {
            (true, _) => Self::Json,
            (false, is_terminal) => Self::of_text(is_terminal, &term.to_string_lossy(), !variable("NO_COLOR").is_empty()),
        }
    }

    /// A terminal must say what it is; without colours it gets lines as well.
    fn of_text(is_terminal: bool, term: &str, no_color: bool) -> Self {
        match (is_terminal, term) {
            (false, _) => Self::Plain(Asking::Nobody),
            (true, "" | "dumb") => Self::Plain(Asking::Somebody),
            (true, _) if no_color => Self::Plain(Asking::Somebody),
            (true, _) => Self::Terminal,
        }
    }
}

impl View {
    /// Shows a run on standard output.
    pub(crate) fn new(manner: Manner) -> Self {
        let out = Box::new(io::stdout());
        match manner {
            Manner::Terminal => Self::terminal(out, Box::new(columns)),
            Manner::Plain(asking) => Self::plain(out, asking),
            Manner::Json => Self::json(out),
        }
    }

    /// With colours and a status line, for a terminal that is so wide whenever it is asked.
    pub(crate) fn terminal(out: Box<dyn Write + Send>, width: Box<dyn Fn() -> usize + Send>) -> Self {
        Self(Kind::Terminal(Terminal::new(out, width)))
    }

    /// In lines.
    pub(crate) fn plain(out: Box<dyn Write + Send>, asking: Asking) -> Self {
        Self(Kind::Plain { out, course: Box::default(), asking })
    }

    /// Each event as it is, in a line of JSON.
    pub(crate) fn json(out: Box<dyn Write + Send>) -> Self {
        Self(Kind::Json(out))
    }

    /// Shows what happened.
    pub(crate) fn show(&mut self, event: &RunEvent) -> anyhow::Result<()> {
        let shown = match &mut self.0 {
            Kind::Terminal(terminal) => terminal.show(event),
            Kind::Plain { out, course, .. } => {
                let lines = plain::lines(event, course);
                course.note(event);
                write(out, &lines)
            }
            Kind::Json(out) => write(out, &format!("{}\n", serde_json::to_string(event)?)),
        };
        shown.context("standard output")
    }

    /// Asks whether a command may run. The answer is `Nobody` where nobody would see the question, and `No` if the run is stopped at it.
    pub(crate) fn ask(&mut self, command: &str, cancel: &CancelToken) -> anyhow::Result<Answer> {
        let answer = match &mut self.0 {
            Kind::Terminal(terminal) => terminal.ask(command, cancel),
            Kind::Plain { out, asking: Asking::Somebody, .. } => ask_plainly(out, command, cancel),
            Kind::Plain { asking: Asking::Nobody, .. } | Kind::Json(_) => Ok(Answer::Nobody),
        };
        answer.context("asking whether a command may run")
    }
}

fn ask_plainly(out: &mut dyn Write, command: &str, cancel: &CancelToken) -> io::Result<Answer> {
    let Some(keyboard) = Keyboard::find() else { return Ok(Answer::Nobody) };
    keyboard.forget();
    let look = Look { width: columns(), colours: Colours::Off };
    question::ask(command, look, out, &mut || keyboard.line(cancel))
}

fn write(out: &mut dyn Write, text: &str) -> io::Result<()> {
    out.write_all(text.as_bytes()).and_then(|()| out.flush())
}

/// The columns of the terminal, which may change at any time.
pub(crate) fn columns() -> usize {
    const USUAL: usize = 80;
    let known = tcgetwinsize(io::stdout()).map(|size| usize::from(size.ws_col));
    known.ok().filter(|columns| *columns > 0).unwrap_or(USUAL)
}

#[cfg(test)]
mod tests;
