//! Asks whether a command may run or an edit may be made. Every line of the command or diff is behind a bar, so that
//! nothing in it can look like the question itself. If it is long, the beginning and the end are shown, with the number
//! of rows between them, so that no part of it leaves the screen unnoticed.

use std::io::{self, Write};

use surehand_agent::{
    EditRequest,
    command::{AskedBecause, CommandRequest},
};
use surehand_engine::core::{file_diff::FileDiff, render::count};

use super::{
    diff::{self, DiffStat},
    escape,
    style::{Painter, Style},
    wrap,
};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ApprovalAnswer {
    Once,
    /// Allowed now and whenever the command comes again.
    Always,
    /// Refused; also when the input ends or the run is stopped at the question.
    No,
    /// Refused, and the model reads this text instead.
    Instead(String),
    /// Nobody would see the question.
    Unattended,
}

pub(super) fn about_command(request: &CommandRequest<'_>, painter: Painter) -> Question {
    let notes = why(request.why).map(str::to_owned).into_iter().chain(notes(request.line)).collect();
    let rows = rows(request.line, painter);
    Question { title: "The model wants to run this command:", rows, notes, always: "always in this run" }
}

pub(super) fn about_edit(request: &EditRequest<'_>, painter: Painter) -> Question {
    let title = match request.has_changed {
        true => "A file has changed meanwhile; now the edit is this:",
        false => "The model wants to make this edit:",
    };
    let rows = request.diffs.iter().flat_map(|diff| diff_rows(diff, painter)).collect();
    Question { title, rows, notes: Vec::new(), always: "all edits in this run" }
}

/// The prompt after which the user answers a question of the model, which is in the model's text.
pub(super) fn question_of_model(painter: Painter) -> String {
    let title = painter.paint(Style::BoldYellow, "? The model asks you.");
    format!("\n{title}\n  Your answer (Enter: it decides) > ")
}

/// A question about rows that the user has to judge.
pub(super) struct Question {
    title: &'static str,
    rows: Vec<String>,
    /// Warnings about parts that are easily overlooked.
    notes: Vec<String>,
    /// The meaning of the answer `a`.
    always: &'static str,
}

impl Question {
    /// Asks until the answer is clear. `hear` returns the next line that the user types, or `None` at the end of the
    /// input.
    pub(super) fn ask(
        &self,
        painter: Painter,
        out: &mut dyn Write,
        hear: &mut dyn FnMut() -> io::Result<Option<String>>,
    ) -> io::Result<ApprovalAnswer> {
        let mut say = |text: &str| out.write_all(text.as_bytes()).and_then(|()| out.flush());
        let hidden = self.rows.len().saturating_sub(SHOWN_ROWS);
        say(&self.text(painter))?;
        loop {
            say(&self.prompt(hidden, painter))?;
            let Some(typed) = hear()? else {
                say("\n")?;
                return Ok(ApprovalAnswer::No);
            };
            if hidden > 0 && matches!(typed.trim().to_lowercase().as_str(), "s" | "show") {
                say(&self.rows.concat())?;
            } else if let Some(answer) = understood(&typed) {
                return Ok(answer);
            }
        }
    }

    fn text(&self, painter: Painter) -> String {
        let mut out = format!("\n{}\n", painter.paint(Style::BoldYellow, &format!("? {}", self.title)));
        match self.rows.len().checked_sub(SHOWN_ROWS) {
            None | Some(0) => out.push_str(&self.rows.concat()),
            Some(hidden) => {
                let (head, rest) = self.rows.split_at(SHOWN_ROWS / 2);
                let mark = painter.paint(Style::BoldYellow, &format!("… {} hidden", count(hidden, "row")));
                out.push_str(&format!("{}  {mark}\n{}", head.concat(), rest[hidden..].concat()));
            }
        }
        for note in &self.notes {
            for row in wrap::wrap_words(note, painter.room(2).max(1)) {
                out.push_str(&format!("  {}\n", painter.paint(Style::Yellow, &row)));
            }
        }
        out
    }

    fn prompt(&self, hidden: usize, painter: Painter) -> String {
        let key = |key| painter.paint(Style::Bold, key);
        let mut parts = vec![("y", " once,".to_owned()), ("a", format!(" {},", self.always)), ("n", " no,".to_owned())];
        if hidden > 0 {
            parts.push(("s", format!(" shows all {} rows,", hidden + SHOWN_ROWS)));
        }
        parts.push(("", "or write what to do instead > ".to_owned()));
        let (mut out, mut row) = (String::new(), 0);
        for (name, text) in parts {
            let length = 1 + name.len() + text.len();
            // A narrow terminal gets a line break between two answers.
            let gap = if row > 0 && row + length <= painter.room(0) { " " } else { "\n  " };
            row = if gap == " " { row + length } else { 1 + length };
            out.push_str(&format!("{gap}{}{text}", key(name)));
        }
        out.trim_start_matches('\n').to_owned()
    }
}

/// The number of rows of a command that a question shows. With the rest of the question they fit on the smallest usual
/// terminal, which has 24 rows.
const SHOWN_ROWS: usize = 14;

fn rows(command: &str, painter: Painter) -> Vec<String> {
    command.split('\n').flat_map(|line| barred(line, None, painter)).collect()
}

fn diff_rows(diff: &FileDiff, painter: Painter) -> Vec<String> {
    let mut rows = vec![format!("  {}\n", diff::title(&DiffStat::of(diff), painter))];
    for hunk in diff.hunks() {
        rows.extend(barred(&hunk.heading(), Some(diff::PLACE), painter));
        rows.extend(hunk.rows.iter().flat_map(|row| barred(&row.to_string(), diff::style(row.kind), painter)));
    }
    rows
}

/// Splits a line into rows behind a bar, so that nothing in it can look like the question itself.
fn barred(line: &str, style: Option<Style>, painter: Painter) -> Vec<String> {
    let line = escape::code(line);
    let rows = wrap::split_columns(&line, painter.room(4)).into_iter().enumerate().map(|(at, row)| {
        // The first row of a line is behind a solid bar, its continuation behind a broken one.
        let bar = painter.paint(Style::Yellow, if at == 0 { "│" } else { "┊" });
        format!("  {bar} {}\n", style.map_or_else(|| row.to_owned(), |style| painter.paint(style, row)))
    });
    rows.collect()
}

/// The reason for asking about a command that seems to be allowed.
fn why(asked: AskedBecause) -> Option<&'static str> {
    match asked {
        AskedBecause::NotAllowed => None,
        AskedBecause::Unconfined => Some(
            "commands.allow lets it run confined; the model wants it to run with all your rights, writing anywhere, with network",
        ),
        AskedBecause::CannotBeConfined => Some(
            "commands.allow has it, but this system cannot confine it (surehand doctor says why): it would run with all your rights",
        ),
    }
}

const NAMED: usize = 8;

/// Warnings about parts of a command that are easily overlooked.
fn notes(command: &str) -> Vec<String> {
    let mut notes = Vec::new();
    let spelled = command.chars().filter(|c| *c != '\n' && escape::code(c.encode_utf8(&mut [0; 4])) == escape::spell(*c)).count();
    if spelled > 0 {
        let it_is = if spelled == 1 { "is spelled out as <U+…>: it is" } else { "are spelled out as <U+…>: they are" };
        notes.push(format!("{} {it_is} otherwise invisible, or would change how the rest looks", count(spelled, "character")));
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

/// Parses an answer. Only a clear yes is a yes, and a stray key is not an answer.
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
    use crate::display::{
        style::Colours,
        tests::{diff, edit},
    };

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
        asked_about("ls", lines)
    }

    fn asked_about(command: &str, lines: &[&str]) -> (ApprovalAnswer, String) {
        let mut lines = lines.iter();
        let mut out = Vec::new();
        let request = CommandRequest { line: command, why: AskedBecause::NotAllowed };
        let answer =
            about_command(&request, PLAIN).ask(PLAIN, &mut out, &mut || Ok(lines.next().map(|line| (*line).to_owned()))).unwrap();
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

    fn question(command: &str, painter: Painter) -> String {
        question_because(AskedBecause::NotAllowed, command, painter)
    }

    fn question_because(why: AskedBecause, line: &str, painter: Painter) -> String {
        about_command(&CommandRequest { line, why }, painter).text(painter)
    }

    #[test]
    fn the_question_says_why_an_allowed_command_is_asked_about() {
        let painter = Painter { width: 60, ..PLAIN };
        assert_snapshot!(question_because(AskedBecause::Unconfined, "cargo test", painter), @r"

        ? The model wants to run this command:
          │ cargo test
          commands.allow lets it run confined; the model wants it
          to run with all your rights, writing anywhere, with
          network
        ");
        assert_snapshot!(question_because(AskedBecause::CannotBeConfined, "cargo test", painter), @r"

        ? The model wants to run this command:
          │ cargo test
          commands.allow has it, but this system cannot confine it
          (surehand doctor says why): it would run with all your
          rights
        ");
    }

    #[test]
    fn of_a_long_command_the_question_says_how_much_is_hidden() {
        let command = format!("ls{}rm -r x", "\n".repeat(600));
        let (answer, written) = asked_about(&command, &["n\n"]);
        assert_eq!(answer, ApprovalAnswer::No);
        assert!(written.contains("  … 587 rows hidden\n") && written.contains("│ rm -r x\n"), "{written}");
        assert!(written.contains("s shows all 601 rows") && written.lines().count() <= 20, "{written}");
        // The middle is as easy to overlook.
        let command = format!("ls{0}rm -r x{0}ls", "\n".repeat(300));
        let (answer, written) = asked_about(&command, &["s\n", "y\n"]);
        assert_eq!(answer, ApprovalAnswer::Once);
        let (question, shown) = written.split_once("s shows all").unwrap();
        assert!(!question.contains("rm -r x") && shown.contains("│ rm -r x\n"), "{written}");
    }

    #[test]
    fn a_long_line_is_hidden_in_rows_as_well() {
        let (_, written) = asked_about(&format!("ls{};rm -r x", " ".repeat(3000)), &[]);
        assert!(written.contains(" rows hidden\n") && written.contains(";rm -r x\n"), "{written}");
    }

    #[test]
    fn nothing_is_hidden_of_a_short_command() {
        let (answer, written) = asked_about(&"ls\n".repeat(SHOWN_ROWS - 1), &["s\n", "n\n"]);
        assert_eq!(answer, ApprovalAnswer::No);
        assert!(!written.contains("hidden") && !written.contains("shows all"), "{written}");
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
          <U+…>: they are otherwise invisible,
          or would change how the rest looks
          not ASCII: а U+0430
        ");
    }

    #[test]
    fn an_edit_is_shown_as_its_diff() {
        let long = format!("let x = \"{}\u{202e}\";\n", "a".repeat(40));
        let diffs =
            [edit("src/a.rs", "one\ntwo\n", &format!("one\n{long}")), diff(("b.txt", None), ("b.txt", Some("\x1b[2J\n")))];
        let request = EditRequest { diffs: &diffs, has_changed: false };
        let mut out = Vec::new();
        let answer = about_edit(&request, PLAIN).ask(PLAIN, &mut out, &mut || Ok(Some("use tabs\n".to_owned()))).unwrap();
        assert_eq!(answer, ApprovalAnswer::Instead("use tabs".to_owned()));
        assert_snapshot!(String::from_utf8(out).unwrap().trim_end(), @r#"
        ? The model wants to make this edit:
          src/a.rs +1 -1
          │ @@ -1,2 +1,2 @@
          │  one
          │ -two
          │ +let x = "aaaaaaaaaaaaaaaaaaaaaaaaa
          ┊ aaaaaaaaaaaaaaa<U+202E>";
          b.txt (new) +1 -0
          │ @@ -0,0 +1,1 @@
          │ +<U+001B>[2J
          y once, a all edits in this run,
          n no, or write what to do instead >
        "#);
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
