//! The answer to an edit: a short diff with fresh numbers, and how the numbers below moved.

use crate::{
    change::{Hunk, LineMap, Shift},
    content::Content,
    hash::Anchor,
    lines::{LineNo, LineRange, LineSet},
    path::RelPath,
    plan::{Act, Planned, Rebased},
    refusal::{Excerpt, clip},
    render::{Numbers, count, which},
    text::{Ending, Text},
};

/// The diff of a planned change, as it is told to the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diff {
    /// Rows: `-12|old`, `+12|new`, ` 13|around`.
    pub text: String,
    /// The lines of the new text that are shown in full.
    pub shown: LineSet,
}

const CONTEXT: usize = 2;
const MAX_ROWS: usize = 60;
const ROW_CHARS: usize = 300;

/// What was done, in one line.
pub fn headline(planned: &Planned) -> String {
    let path = planned.path();
    match (planned.act(), planned.text()) {
        (Act::Remove, _) => format!("{path} deleted ({}; undo brings it back)", size(planned.base())),
        (Act::Move { to }, _) => format!("{path} moved to {to} ({})", size(planned.base())),
        (Act::Write { content, .. }, None) => format!("{path} written ({})", size(Some(content))),
        (Act::Write { content, .. }, Some(_)) if planned.is_new() && planned.origin().is_none() => {
            format!("{path} created ({})", size(Some(content)))
        }
        (Act::Write { content, .. }, Some(_)) if matches!(planned.base(), Some(Content::Blob(_))) => {
            format!("{path} replaced ({}; undo brings back the {} that it held)", size(Some(content)), size(planned.base()))
        }
        (Act::Write { .. }, Some(text)) => {
            let version = text.version().short();
            let lines = count(text.line_count(), "line");
            let hunks = planned.map().hunks();
            let added: usize = hunks.iter().map(|hunk| hunk.after.len()).sum();
            let removed: usize = hunks.iter().map(|hunk| hunk.before.len()).sum();
            let places = if planned.replacements() > 1 { format!("{} places, ", planned.replacements()) } else { String::new() };
            let moved = planned.origin().map(|origin| format!("{} moved to {path} and", origin.path));
            let what = moved.unwrap_or_else(|| path.to_string());
            format!("{what} edited ({places}+{added} -{removed}, now {lines}, version {version})")
        }
    }
}

/// `12 lines, version 6ea1b0`, or how many bytes of something else.
fn size(content: Option<&Content>) -> String {
    match content {
        None => "nothing".to_owned(),
        Some(Content::Text(text)) => format!("{}, version {}", count(text.line_count(), "line"), text.version().short()),
        Some(Content::Blob(blob)) => count(blob.bytes().len(), "byte"),
    }
}

/// The diff of a change. A new file is not repeated to its author.
pub fn diff(planned: &Planned, numbers: Numbers) -> Diff {
    let base = planned.origin().map(|origin| &origin.text).or(planned.base().and_then(Content::text));
    let (Act::Write { .. }, Some(base), Some(text)) = (planned.act(), base, planned.text()) else {
        return Diff { text: String::new(), shown: LineSet::new() };
    };
    let mut diff = between(base, text, planned.map(), numbers);
    diff.text.push_str(&shifts(&planned.map().shifts()));
    diff
}

/// The diff of two texts, without words about moved numbers.
pub fn between(base: &Text, text: &Text, map: &LineMap, numbers: Numbers) -> Diff {
    let mut writer = Writer { base, text, numbers, out: String::new(), shown: LineSet::new(), rows: 0 };
    writer.hunks(map.hunks());
    Diff { text: writer.out, shown: writer.shown }
}

/// Which changes were taken back, by the tools that made them, newest first.
pub fn undone(tools: &[&str]) -> String {
    const MAX: usize = 8;
    let more = if tools.len() > MAX { format!(" and {} more", tools.len() - MAX) } else { String::new() };
    format!("Undid {}{more}. The files are as they were before:\n", tools[..tools.len().min(MAX)].join(", "))
}

/// Files in which something happened while a command ran.
pub fn touched(paths: &[RelPath], most: usize) -> String {
    let named: Vec<&str> = paths.iter().take(most).map(RelPath::as_str).collect();
    let more = if paths.len() > most { format!(" and {} more", paths.len() - most) } else { String::new() };
    format!("note: touched while the command ran: {}{more}\n", named.join(", "))
}

/// Said of an edit that was moved to its new place: what else is new to the session.
pub fn rebased(rebased: &Rebased, numbers: Numbers) -> String {
    format!(
        "note: the file had been modified since last read; the lines of this edit had not, so it was made at their new place. \
         What else changed ({}), as it is now; this counts as read:\n{}",
        which(&rebased.affected),
        super::refusal::rows(&rebased.fresh, numbers)
    )
}

/// How the numbers below moved, in one line.
fn shifts(shifts: &[Shift]) -> String {
    const MAX: usize = 8;
    if shifts.is_empty() {
        return String::new();
    }
    let told: Vec<String> =
        shifts.iter().take(MAX).map(|shift| format!("after {} moved by {:+}", shift.after, shift.by)).collect();
    let more = if shifts.len() > MAX { format!(" and so on ({} more)", shifts.len() - MAX) } else { String::new() };
    format!("lines {}{more}\n", told.join(", "))
}

struct Writer<'a> {
    base: &'a Text,
    text: &'a Text,
    numbers: Numbers,
    out: String,
    shown: LineSet,
    rows: usize,
}

impl Writer<'_> {
    /// Hunks with the lines around them, until there are too many rows.
    fn hunks(&mut self, hunks: &[Hunk]) {
        let mut written = 0;
        for (index, hunk) in hunks.iter().enumerate() {
            if self.rows >= MAX_ROWS {
                let rest: LineSet =
                    hunks[index..].iter().filter_map(|hunk| LineRange::from_indexes(hunk.after.clone())).collect();
                let at = if rest.is_empty() { String::new() } else { format!(": {}", which(&rest)) };
                self.out.push_str(&format!("[{} more not shown{at}]\n", count(hunks.len() - index, "change")));
                return;
            }
            let start = hunk.after.start.saturating_sub(CONTEXT).max(written);
            if index > 0 && start > written {
                self.out.push_str("…\n");
            }
            self.new_rows(' ', start..hunk.after.start);
            self.old_rows(hunk);
            self.new_rows('+', hunk.after.clone());
            let next = hunks.get(index + 1).map_or(self.text.line_count(), |next| next.after.start);
            written = (hunk.after.end + CONTEXT).min(next);
            self.new_rows(' ', hunk.after.end..written);
        }
    }

    fn old_rows(&mut self, hunk: &Hunk) {
        let base = self.base;
        let fits = MAX_ROWS.saturating_sub(self.rows) / 2;
        for index in hunk.before.clone().take(fits) {
            let line = LineNo::at_index(index);
            self.out.push_str(&format!("-{line}|{}{}\n", clip(base.line(line), ROW_CHARS), open_end(base, line)));
            self.rows += 1;
        }
        if hunk.before.len() > fits {
            self.out.push_str(&format!("[{} more removed]\n", count(hunk.before.len() - fits, "line")));
        }
    }

    fn new_rows(&mut self, sign: char, indexes: std::ops::Range<usize>) {
        let fits = if sign == '+' { MAX_ROWS.saturating_sub(self.rows) } else { indexes.len() };
        let text = self.text;
        for index in indexes.clone().take(fits) {
            let line = LineNo::at_index(index);
            let content = text.line(line);
            let row = clip(content, ROW_CHARS);
            self.out.push(sign);
            self.numbers.write(&mut self.out, line, content);
            self.out.push_str(&row);
            if sign == '+' {
                self.out.push_str(open_end(text, line));
            }
            self.out.push('\n');
            if row.len() == content.len() {
                self.shown.insert(LineRange::line(line));
            }
            self.rows += 1;
        }
        if let Some(rest) = LineRange::from_indexes(indexes.start + fits.min(indexes.len())..indexes.end) {
            let anchor = match self.numbers {
                Numbers::Plain => rest.end.to_string(),
                Numbers::Anchors => Anchor::of(rest.end, text.line(rest.end)).to_string(),
            };
            self.out.push_str(&format!("[{} more added, up to {anchor}]\n", count(rest.count() as usize, "line")));
        }
    }
}

/// Said of a last line that does not end.
fn open_end(text: &Text, line: LineNo) -> &'static str {
    if text.ending(line) == Ending::None { " [no newline at the end]" } else { "" }
}

/// The first line that a change touches, as it is numbered now.
pub fn first_changed_line(planned: &Planned) -> Option<LineNo> {
    let last = planned.text()?.last_line()?;
    Some(planned.map().hunks().first().map_or(LineNo::FIRST, |hunk| LineNo::at_index(hunk.after.start)).min(last))
}

/// Said when somebody rewrote a file right after it was written: what is there now instead of what was sent.
pub fn rewritten_after(path: &RelPath, text: &Text, map: &LineMap, numbers: Numbers) -> Diff {
    let affected = map.affected();
    let fresh = Excerpt::of(text, &affected);
    let rows = super::refusal::rows(&fresh, numbers);
    let version = text.version().short();
    let said = format!(
        "note: another program (a formatter?) rewrote {path} right after; it is version {version} now. What differs from what you sent ({}), as it is now:\n{rows}",
        which(&affected)
    );
    Diff { text: said, shown: fresh.shown }
}

/// Said when somebody removed a file right after it was written.
pub fn removed_after(path: &RelPath) -> String {
    format!("note: another program removed {path} right after it was written\n")
}

/// The answer to a write of what is there already.
pub const SAME_CONTENT: &str = "File already exists with identical content";

/// Said when a session keeps writing the same file.
pub fn churn(path: &str, times: u32) -> String {
    format!(
        "note: this is rewrite {times} of {path} in this session, each nearly the same as the one before. \
         The file is there and holds what you wrote. If it does what it should, go on to what is still open; for a small change use edit_file.\n"
    )
}
