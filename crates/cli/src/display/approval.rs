//! Asks whether a command may run. The command is shown in full, every line behind a bar, so that nothing in it can pass for the question
//! itself.

use std::io::{self, Write};

use surehand_engine::core::render::count;

use super::{
    escape,
    style::{Painter, Style},
    wrap,
};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ApprovalAnswer {
    Once,
    /// Now and whenever the command comes again.
    Always,
    /// Also when the input ends or the run is stopped at the question.
    No,
    /// The model reads this text instead.
    Instead(String),
    Nobody,
}

/// Asks until the answer is clear. `hear` returns the next line that is typed, or `None` at the end of the input.
pub(super) fn ask(
    command: &str,
    painter: Painter,
    out: &mut dyn Write,
    hear: &mut dyn FnMut() -> io::Result<Option<String>>,
) -> io::Result<ApprovalAnswer> {
    let mut say = |text: &str| out.write_all(text.as_bytes()).and_then(|()| out.flush());
    say(&question(command, painter))?;
    loop {
        say(&prompt(painter))?;
        let Some(typed) = hear()? else {
            say("\n")?;
            return Ok(ApprovalAnswer::No);
        };
        if let Some(answer) = understood(&typed) {
            return Ok(answer);
        }
    }
}

fn question(command: &str, painter: Painter) -> String {
    let mut out = format!("\n{}\n", painter.paint(Style::BoldYellow, "? The model wants to run this command:"));
    for line in command.split('\n') {
        for (at, row) in wrap::split_columns(&escape::code(line), painter.room(4)).iter().enumerate() {
            // A line of the command starts behind a whole bar, and continues behind a broken one.
            let bar = if at == 0 { "│" } else { "┊" };
            out.push_str(&format!("  {} {row}\n", painter.paint(Style::Yellow, bar)));
        }
    }
    for note in notes(command) {
        for row in wrap::wrap_words(&note, painter.room(2).max(1)) {
            out.push_str(&format!("  {}\n", painter.paint(Style::Yellow, &row)));
        }
    }
    out
}

const NAMED: usize = 8;

/// What is easily overlooked in a command.
fn notes(command: &str) -> Vec<String> {
    let mut notes = Vec::new();
    let spelled = command.chars().filter(|c| *c != '\n' && escape::code(c.encode_utf8(&mut [0; 4])) == escape::spell(*c)).count();
    if spelled > 0 {
        let it_is = if spelled == 1 { "is spelled out as <U+…>: it is" } else { "are spelled out as <U+…>: they are" };
        notes.push(format!("{} {it_is} not seen otherwise, or would change how the rest looks", count(spelled, "character")));
    }
    let mut foreign: Vec<char> =
        command.chars().filter(|c| !c.is_ascii() && escape::code(c.encode_utf8(&mut [0; 4])) != escape::spell(*c)).collect();
    foreign.sort_unstable();
    foreign.dedup();
    if !foreign.is_empty() {
        let mut named: Vec<String> = foreign.iter().take(NAMED).map(|c| format!("{c} U+{:04X}", u32::from(*c))).collect();
        if foreign.len() > NAMED {
            named.push(format!("{} more", foreign.len() - NAMED));
        }
        notes.push(format!("not ASCII: {}", named.join(", ")));
    }
    notes
}

fn prompt(painter: Painter) -> String {
    let key = |key| painter.paint(Style::Bold, key);
    format!("  {} once, {} always, {} no, or write what to do instead > ", key("y"), key("a"), key("n"))
}

/// Parses an answer. Only a clear yes is a yes; a stray key is no answer.
fn understood(typed: &str) -> Option<ApprovalAnswer> {
    let typed = typed.trim();
    match typed.to_lowercase().as_str() {
        "y" | "yes" => return Some(ApprovalAnswer::Once),
        "a" | "always" => return Some(ApprovalAnswer::Always),
        "n" | "no" => return Some(ApprovalAnswer::No),
        _ => {}
    }
    // Cursor keys arrive as control characters.
    let is_slip = typed.chars().count() < 2 || typed.chars().any(char::is_control);
    (!is_slip).then(|| ApprovalAnswer::Instead(typed.to_owned()))
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;
    use crate::display::style::Colours;

    const PLAIN: Painter = Painter { width: 40, colours: Colours::Off };

    #[track_caller]
    fn check(typed: &str, expected: Option<ApprovalAnswer>) {
        assert_eq!(understood(typed), expected);
    }

    #[test]
    fn only_a_yes_is_a_yes() {
        check("y\n", Some(ApprovalAnswer::Once));
        check(" YES \n", Some(ApprovalAnswer::Once));
        check("a\n", Some(ApprovalAnswer::Always));
        check("always", Some(ApprovalAnswer::Always));
        check("n", Some(ApprovalAnswer::No));
        check("No\n", Some(ApprovalAnswer::No));
        check("yes, but only the tests\n", Some(ApprovalAnswer::Instead("yes, but only the tests".to_owned())));
    }

    #[test]
    fn slips_are_no_answers() {
        for typed in ["", "\n", "  ", "x", "ß", "\x1b[A", "y\x1b[D"] {
            check(typed, None);
        }
    }

    fn asked(lines: &[&str]) -> (ApprovalAnswer, String) {
        let mut lines = lines.iter();
        let mut out = Vec::new();
        let answer = ask("ls", PLAIN, &mut out, &mut || Ok(lines.next().map(|line| (*line).to_owned()))).unwrap();
        (answer, String::from_utf8(out).unwrap())
    }

    #[test]
    fn it_is_asked_until_the_answer_is_clear() {
        let (answer, written) = asked(&["\n", "q\n", "y\n"]);
        assert_eq!((answer, written.matches("y once").count(), written.matches("│ ls").count()), (ApprovalAnswer::Once, 3, 1));
    }

    #[test]
    fn the_end_of_input_is_a_no() {
        let (answer, written) = asked(&[]);
        assert_eq!(answer, ApprovalAnswer::No);
        assert!(written.ends_with(" > \n"));
    }

    #[test]
    fn every_line_of_a_command_is_shown() {
        assert_snapshot!(question("cargo test \\\n  --all-features --no-fail-fast --workspace\n\nrm -r target", PLAIN), @r"

        ? The model wants to run this command:
          │ cargo test \
          │   --all-features --no-fail-fast --w
          ┊ orkspace
          │ 
          │ rm -r target
        ");
    }

    #[test]
    fn a_command_cannot_hide_or_imitate() {
        assert_snapshot!(question("ls\r\x1b[2K\x1b[1A  y once > y\n? May it run:\n\u{202e}c\u{430}t", PLAIN), @r"

        ? The model wants to run this command:
          │ ls<U+000D><U+001B>[2K<U+001B>[1A  y
          ┊  once > y
          │ ? May it run:
          │ <U+202E>cаt
          4 characters are spelled out as
          <U+…>: they are not seen otherwise,
          or would change how the rest looks
          not ASCII: а U+0430
        ");
    }

    #[test]
    fn what_is_far_to_the_right_is_shown() {
        let command = format!("ls{};rm -r x", " ".repeat(300));
        let shown = question(&command, PLAIN);
        assert!(shown.contains(";rm -r x\n"));
        assert!(shown.lines().all(|line| wrap::width(line) < 40), "{shown}");
    }

    #[test]
    fn narrow_terminals_show_all_of_it() {
        for width in 0..12 {
            let shown = question("abc漢def", Painter { width, ..PLAIN });
            let rows: String = shown.lines().filter_map(|line| line.strip_prefix("  │ ").or(line.strip_prefix("  ┊ "))).collect();
            assert_eq!(rows, "abc漢def");
        }
    }
}
