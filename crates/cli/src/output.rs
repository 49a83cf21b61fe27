//! Standard output. A closed or full output is an error, not a panic.

use std::{
    io::{self, IsTerminal, Write},
    process::ExitCode,
};

use anyhow::Context;
use surehand_engine::render::{self, Reply};

use crate::display::escape::prose;

/// Prints text. Colours are removed unless the output is a terminal. All other control characters are escaped there,
/// because file names can contain them.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    let text = if io::stdout().is_terminal() { without_commands(text) } else { text.to_owned() };
    let mut out = anstream::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).context("standard output")
}

/// Text for a terminal: with colours if they are wanted, and without any other control sequence.
pub(crate) fn for_terminal(text: &str) -> String {
    let text = without_commands(text);
    match anstream::AutoStream::choice(&io::stdout()) {
        anstream::ColorChoice::Never => anstream::adapter::strip_str(&text).to_string(),
        _ => text,
    }
}

/// Escapes all control sequences except colours.
fn without_commands(text: &str) -> String {
    let mut pieces = text.split("\x1b[");
    let mut out = prose(pieces.next().unwrap_or_default());
    for piece in pieces {
        let colour = piece.find(|char: char| !char.is_ascii_digit() && char != ';').filter(|end| piece[*end..].starts_with('m'));
        match colour {
            Some(end) => out.push_str(&format!("\x1b[{}m{}", &piece[..end], prose(&piece[end + 1..]))),
            None => out.push_str(&prose(&format!("\x1b[{piece}"))),
        }
    }
    out
}

pub(crate) fn print_json(value: &serde_json::Value) -> anyhow::Result<()> {
    print(&format!("{value:#}\n"))
}

/// Clears the screen if the output is a terminal.
pub(crate) fn clear_screen() -> anyhow::Result<()> {
    if !io::stdout().is_terminal() {
        return Ok(());
    }
    let mut out = io::stdout().lock();
    out.write_all(b"\x1b[H\x1b[2J").and_then(|()| out.flush()).context("standard output")
}

/// Prints bytes unchanged.
pub(crate) fn print_bytes(bytes: &[u8]) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(bytes).and_then(|()| out.flush()).context("standard output")
}

/// Prints the reply to a call: its text, or with `json` its result object including the text. A refusal gives exit code
/// 1.
pub(crate) fn print_reply(mut reply: Reply, json: bool) -> anyhow::Result<ExitCode> {
    if json {
        reply.result["text"] = reply.text.into();
        print_json(&reply.result)?;
    } else {
        print(&reply.text)?;
    }
    Ok(exit_code(!reply.is_error))
}

/// The exit code of a command that may refuse.
pub(crate) fn exit_code(is_done: bool) -> ExitCode {
    if is_done { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Reports the reason of a failure: on standard error, or with `json` as an object on standard output.
pub(crate) fn print_error(why: &str, json: bool) {
    if !json {
        anstream::eprintln!("error: {}", prose(why));
    } else if print(&format!("{}\n", serde_json::json!({ "error": why }))).is_err() {
        anstream::eprintln!("error: {why}");
    }
}

/// The first items of a list, each with its line break, and a line about the number of the others.
pub(crate) fn listed<T>(items: &[T], most: usize, line: impl Fn(&T) -> String, more: impl Fn(usize) -> String) -> String {
    let others = items.len().saturating_sub(most);
    let lines: String = items.iter().take(most).map(line).collect();
    if others > 0 { lines + &more(others) } else { lines }
}

/// A line about the items that a list leaves out, if any.
pub(crate) fn unlisted(what: &str, left: usize, all: usize) -> String {
    let are = if left == 1 { "is" } else { "are" };
    let note = || format!("{} {are} not shown: surehand {what}s -n {all} lists all.\n", render::count(left, what));
    (left > 0).then(note).unwrap_or_default()
}

/// The first names and the number of the others: `a, b and 3 more`.
pub(crate) fn first_names(names: &[String], most: usize) -> String {
    let others = names.len().saturating_sub(most);
    let named = names[..names.len() - others].join(", ");
    if others > 0 { format!("{named} and {others} more") } else { named }
}

/// Formats `90 s`, `5 min`, `3 h`, `2 h 59 min`.
pub(crate) fn span(seconds: u64) -> String {
    let minutes = seconds / 60;
    match (seconds, minutes % 60) {
        (0..120, _) => format!("{seconds} s"),
        (120..7200, _) => format!("{minutes} min"),
        (_, 0) => format!("{} h", minutes / 60),
        (_, rest) => format!("{} h {rest} min", minutes / 60),
    }
}

/// The current time in milliseconds since the Unix epoch.
pub(crate) fn now() -> i64 {
    jiff::Timestamp::now().as_millisecond()
}

/// Formats `5 min ago`.
pub(crate) fn ago(millis: i64) -> String {
    let seconds = millis.max(0) / 1000;
    match seconds {
        0..60 => format!("{seconds} s ago"),
        60..3600 => format!("{} min ago", seconds / 60),
        3600..86_400 => format!("{} h ago", seconds / 3600),
        _ => format!("{} d ago", seconds / 86_400),
    }
}

/// An error with its causes, each only once: many errors repeat their cause in their own text.
pub(crate) fn in_words(error: &anyhow::Error) -> String {
    let mut words = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if words.is_empty() {
            words = cause;
        } else if !words.ends_with(&cause) {
            words = format!("{words}: {cause}");
        }
    }
    words
}

pub(crate) fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_that_an_error_repeats_is_said_once() {
        let error = surehand_helper::HelperError::from(std::io::Error::other("broken pipe"));
        let error = anyhow::Error::from(error).context("no board");
        assert_eq!(in_words(&error), "no board: the helper cannot be reached: broken pipe");
    }

    #[test]
    fn a_terminal_gets_colours_and_obeys_nothing_else() {
        assert_eq!(without_commands("\x1b[33ma\x1b[0m b\n"), "\x1b[33ma\x1b[0m b\n");
        for command in ["\x1b]0;title\x07", "\x1b[2J", "\x1b[1;31", "\x1bc", "\x07", "\u{9b}2J", "\x1b[", "\x1b[\x1b[2Jm"] {
            let shown = without_commands(&format!("a{command}b"));
            assert!(!shown.contains(['\x1b', '\x07', '\u{9b}']), "{shown:?}");
        }
    }
}
