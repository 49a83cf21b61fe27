//! The answer to an edit: a short diff with fresh numbers, and how the numbers below moved.

use crate::{
    change::Hunk,
    hash::Anchor,
    lines::{LineNo, LineRange, LineSet},
    plan::{Base, Planned},
    refusal::clip,
    render::{Numbers, count, which},
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
    let version = planned.text().version().short();
    let lines = count(planned.text().line_count(), "line");
    if planned.is_new() {
        return format!("{path} created ({lines}, version {version})");
    }
    let hunks = planned.map().hunks();
    let added: usize = hunks.iter().map(|hunk| hunk.after.len()).sum();
    let removed: usize = hunks.iter().map(|hunk| hunk.before.len()).sum();
    let places = if planned.replacements() > 1 { format!("{} places, ", planned.replacements()) } else { String::new() };
    format!("{path} edited ({places}+{added} -{removed}, now {lines}, version {version})")
}

/// The diff of a change. A new file is not repeated to its author.
pub fn diff(planned: &Planned, numbers: Numbers) -> Diff {
    let mut writer = Writer { planned, numbers, text: String::new(), shown: LineSet::new(), rows: 0 };
    if let Base::Text(_) = planned.base() {
        let hunks = planned.map().hunks();
        let mut told = 0;
        for group in groups(hunks) {
            if writer.rows + group.iter().map(|hunk| hunk.before.len() + hunk.after.len()).sum::<usize>() > MAX_ROWS && told > 0 {
                break;
            }
            writer.group(group);
            told += group.len();
        }
        if told < hunks.len() {
            let rest: LineSet = hunks[told..].iter().filter_map(|hunk| LineRange::from_indexes(hunk.after.clone())).collect();
            writer.text.push_str(&format!("[{} more not shown: {}]\n", count(hunks.len() - told, "change"), which(&rest)));
        }
        for shift in planned.map().shifts() {
            writer.text.push_str(&format!("lines after {} moved by {:+}\n", shift.after, shift.by));
        }
    }
    Diff { text: writer.text, shown: writer.shown }
}

/// Hunks whose surroundings meet are told together.
fn groups(hunks: &[Hunk]) -> impl Iterator<Item = &[Hunk]> {
    hunks.chunk_by(|a, b| b.after.start <= a.after.end + 2 * CONTEXT)
}

struct Writer<'a> {
    planned: &'a Planned,
    numbers: Numbers,
    text: String,
    shown: LineSet,
    rows: usize,
}

impl Writer<'_> {
    fn group(&mut self, hunks: &[Hunk]) {
        let (Some(first), Some(last)) = (hunks.first(), hunks.last()) else { return };
        let mut next = first.after.start.saturating_sub(CONTEXT);
        let end = (last.after.end + CONTEXT).min(self.planned.text().line_count());
        if !self.text.is_empty() {
            self.text.push_str("…\n");
        }
        for hunk in hunks {
            self.new_rows(' ', next..hunk.after.start);
            self.old_rows(hunk);
            self.new_rows('+', hunk.after.clone());
            next = hunk.after.end;
        }
        self.new_rows(' ', next..end);
    }

    fn old_rows(&mut self, hunk: &Hunk) {
        let Base::Text(base) = self.planned.base() else { return };
        let fits = MAX_ROWS.saturating_sub(self.rows) / 2;
        for index in hunk.before.clone().take(fits) {
            let line = LineNo::at_index(index);
            self.text.push_str(&format!("-{line}|{}\n", clip(base.line(line), ROW_CHARS)));
            self.rows += 1;
        }
        if hunk.before.len() > fits {
            self.text.push_str(&format!("[{} more removed]\n", count(hunk.before.len() - fits, "line")));
        }
    }

    fn new_rows(&mut self, sign: char, indexes: std::ops::Range<usize>) {
        let fits = if sign == '+' { MAX_ROWS.saturating_sub(self.rows) } else { indexes.len() };
        let text = self.planned.text();
        for index in indexes.clone().take(fits) {
            let line = LineNo::at_index(index);
            let content = text.line(line);
            let row = clip(content, ROW_CHARS);
            self.text.push(sign);
            self.numbers.write(&mut self.text, line, content);
            self.text.push_str(&row);
            self.text.push('\n');
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
            self.text.push_str(&format!("[{} more added, up to {anchor}]\n", count(rest.count() as usize, "line")));
        }
    }
}

/// The first line that a change touches, as it is numbered now.
pub fn first_changed_line(planned: &Planned) -> Option<LineNo> {
    let last = planned.text().last_line()?;
    Some(planned.map().hunks().first().map_or(LineNo::FIRST, |hunk| LineNo::at_index(hunk.after.start)).min(last))
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
