//! Renders the reply to an edit: a short diff with current numbers, and the shifts of the numbers below.

use crate::{
    content::Content,
    excerpt::clip,
    hash::Anchor,
    line_map::LineShift,
    line_numbers::LineNumbers,
    lines::LineNo,
    outcome::{ChangeOutcome, ChangedBefore, FileOutcome, Landed, RewrittenFile, SameContent, undo::UndoKind},
    path::RelPath,
    plan::{FileAction, Planned, Rebased},
    render::{
        ReplyAudience, count, describe_lines, join_first, notice,
        refusal::rows_below,
        undo::{entries, not_undone, undone_changes},
    },
    short_diff::{ROW_CHARS, ShortDiff, ShortDiffRow},
    text::{LineEnding, Text},
    tool::Tool,
};

/// From this rewrite on, the reply mentions that a file is rewritten repeatedly.
pub(super) const REWRITES_SAID_FROM: u32 = 3;

/// The reply to a change.
pub fn changed(changed: &ChangeOutcome, audience: ReplyAudience<'_>) -> String {
    let mut text = undone_changes(changed, audience);
    changed.described_files().for_each(|file| text.push_str(&file_outcome(file, changed, audience)));
    text.push_str(&entries(&changed.entries, audience));
    text.push_str(&not_undone(changed.undo, &changed.left, audience));
    if let Some(file) = changed.files.first() {
        text.push_str(&rewrites(file.planned.path(), changed.rewrites, audience));
    }
    text
}

/// The reply to a write of content that the file already has.
pub fn same_content(same: &SameContent, audience: ReplyAudience<'_>) -> String {
    let SameContent { path, text, rewrites: times } = same;
    let version = text.version().short();
    let warning = rewrites(path, *times, audience);
    format!("{SAME_CONTENT}: {path} (version {version}); nothing was written.\n{warning}")
}

fn file_outcome(file: &FileOutcome, changed: &ChangeOutcome, audience: ReplyAudience<'_>) -> String {
    let (planned, numbers) = (&file.planned, changed.numbers());
    let headline = headline(planned, changed, audience);
    if !matches!(planned.act(), FileAction::Write { .. }) {
        return format!("{headline}\n");
    }
    let (after, change_of_others) = match &file.landed {
        Landed::AsPlanned => (diff(file, numbers, audience), planned.rebased()),
        Landed::Rewritten(rewritten) => {
            (rewritten_after(planned.path(), rewritten, numbers, audience), rewritten.rebased.as_ref())
        }
        Landed::Gone => (removed_after(planned.path(), audience), None),
    };
    let others = change_of_others.map(|others| rebased(others, numbers, audience)).unwrap_or_default();
    format!("{headline}\n{after}{others}")
}

/// Describes the change of a file as a whole.
fn headline(planned: &Planned, changed: &ChangeOutcome, audience: ReplyAudience<'_>) -> String {
    let path = audience.path(planned.path());
    let back = |what: &str| {
        let undo = audience.names.get(Tool::Undo).map(|undo| match (changed.tool, changed.undo) {
            (Tool::Undo, UndoKind::Undo) => "redo",
            _ => undo,
        });
        undo.map(|undo| format!("; {undo} brings {what}")).unwrap_or_default()
    };
    match (planned.act(), planned.text()) {
        (FileAction::Remove, _) => format!("{path} deleted ({}{})", size(planned.base()), back("it back")),
        (FileAction::Move { to }, _) => format!("{path} moved to {} ({})", audience.path(to), size(planned.base())),
        (FileAction::Write { content, .. }, None) => format!("{path} written ({})", size(Some(content))),
        (FileAction::Write { content, .. }, Some(_)) if planned.is_new() && planned.origin().is_none() => {
            let anew = if planned.is_made_anew() { "; it was gone since you read it, deleted or moved" } else { "" };
            format!("{path} created ({}{anew})", size(Some(content)))
        }
        (FileAction::Write { content, .. }, Some(_)) if matches!(planned.base(), Some(Content::Blob(_))) => {
            let held = back(&format!("back the {} that it held", size(planned.base())));
            format!("{path} replaced ({}{held})", size(Some(content)))
        }
        (FileAction::Write { .. }, Some(text)) => {
            let version = text.version().short();
            let lines = count(text.line_count(), "line");
            let hunks = planned.map().hunks();
            let added: usize = hunks.iter().map(|hunk| hunk.after.len()).sum();
            let removed: usize = hunks.iter().map(|hunk| hunk.before.len()).sum();
            let places = if planned.replacements() > 1 { format!("{} places, ", planned.replacements()) } else { String::new() };
            let moved = planned.origin().map(|origin| format!("{} moved to {path} and", audience.path(&origin.path)));
            let subject = moved.unwrap_or_else(|| path.to_string());
            format!("{subject} edited ({places}+{added} -{removed}, now {lines}, version {version})")
        }
    }
}

/// For example `12 lines, version 6ea1b0`, or the size in bytes of a binary file.
fn size(content: Option<&Content>) -> String {
    match content {
        None => "nothing".to_owned(),
        Some(Content::Text(text)) => format!("{}, version {}", count(text.line_count(), "line"), text.version().short()),
        Some(Content::Blob(blob)) => count(blob.bytes().len(), "byte"),
    }
}

/// The diff of a change, and the shifts of the numbers below.
pub(super) fn diff(file: &FileOutcome, numbers: LineNumbers, audience: ReplyAudience<'_>) -> String {
    let planned = &file.planned;
    let base = planned.origin().map(|origin| &origin.text).or(planned.base().and_then(Content::text));
    let (FileAction::Write { .. }, Some(base), Some(text)) = (planned.act(), base, planned.text()) else { return String::new() };
    rows(&file.diff, base, text, numbers, audience) + &shifts(&planned.map().shifts())
}

/// `-12|old`, `+12|new`, ` 13|around`.
fn rows(diff: &ShortDiff, base: &Text, text: &Text, numbers: LineNumbers, audience: ReplyAudience<'_>) -> String {
    let mut out = String::new();
    let is_line = |row: &&ShortDiffRow| {
        matches!(row, ShortDiffRow::Gap | ShortDiffRow::Same(_) | ShortDiffRow::Removed(_) | ShortDiffRow::Added(_))
    };
    for row in diff.rows.iter().filter(|row| audience.sees_lines() || !is_line(row)) {
        match row {
            ShortDiffRow::Gap => out.push_str("…\n"),
            ShortDiffRow::Same(line) => new_row(&mut out, ' ', text, *line, numbers),
            ShortDiffRow::Added(line) => new_row(&mut out, '+', text, *line, numbers),
            ShortDiffRow::Removed(line) => {
                let content = clip(base.line(*line), ROW_CHARS);
                out.push_str(&format!("-{line}|{content}{}\n", open_end(base, *line)));
            }
            ShortDiffRow::MoreRemoved(lines) => out.push_str(&format!("[{} more removed]\n", count(*lines, "line"))),
            ShortDiffRow::MoreAdded(lines) => {
                let anchor = match numbers {
                    LineNumbers::Plain => lines.end.to_string(),
                    LineNumbers::Anchors => Anchor::of(lines.end, text.line(lines.end)).to_string(),
                };
                out.push_str(&format!("[{} more added, up to {anchor}]\n", count(lines.count() as usize, "line")));
            }
            ShortDiffRow::MoreChanges(changes, lines) => {
                let at = if lines.is_empty() { String::new() } else { format!(": {}", describe_lines(lines)) };
                out.push_str(&format!("[{} more not shown{at}]\n", count(*changes, "change")));
            }
        }
    }
    out
}

fn new_row(out: &mut String, sign: char, text: &Text, line: LineNo, numbers: LineNumbers) {
    let content = text.line(line);
    out.push(sign);
    numbers.write(out, line, content);
    out.push_str(&clip(content, ROW_CHARS));
    if sign == '+' {
        out.push_str(open_end(text, line));
    }
    out.push('\n');
}

/// Names files that changed while a command ran.
pub(super) fn touched_files(paths: &[RelPath], most: usize) -> String {
    format!("note: touched while the command ran: {}\n", join_first(paths.iter(), most, "more"))
}

/// A note for a model before another agent's tool creates a file that existed when the model last read it.
pub(super) fn gone_before(path: &RelPath) -> String {
    format!("note: {path} was deleted or moved since you read it; this makes it anew\n")
}

/// A note for a model before another agent's tool edits a file that others have changed.
pub(super) fn changed_before(changed: &ChangedBefore, audience: ReplyAudience<'_>) -> String {
    let ChangedBefore { path, rebased, by, seconds_ago } = changed;
    let who = notice::by(*by).map(|by| format!(" {by}")).unwrap_or_default();
    let when = seconds_ago.map(ago).unwrap_or_default();
    format!(
        "note: {path} was modified since last read{who}{when}; the lines of this edit were not, so it goes ahead. What changed ({}), as it is \
         before the edit; this counts as read{}",
        describe_lines(&rebased.affected),
        rows_below(&rebased.fresh, LineNumbers::Plain, audience)
    )
}

/// For example `, 5 minutes ago`.
pub(super) fn ago(seconds: u64) -> String {
    let (number, unit) = match seconds {
        0..60 => (seconds, "second"),
        60..3600 => (seconds / 60, "minute"),
        3600..86_400 => (seconds / 3600, "hour"),
        86_400.. => (seconds / 86_400, "day"),
    };
    format!(", {} ago", count(number as usize, unit))
}

/// Describes the changes by others in a file whose edit was rebased.
fn rebased(rebased: &Rebased, numbers: LineNumbers, audience: ReplyAudience<'_>) -> String {
    format!(
        "note: the file had been modified since last read; the lines of this edit had not, so it was made at their new place. \
         What else changed ({}), as it is now; this counts as read{}",
        describe_lines(&rebased.affected),
        rows_below(&rebased.fresh, numbers, audience)
    )
}

/// Describes on one line how the numbers below moved.
fn shifts(shifts: &[LineShift]) -> String {
    const MAX: usize = 8;
    if shifts.is_empty() {
        return String::new();
    }
    let moves: Vec<String> =
        shifts.iter().take(MAX).map(|shift| format!("after {} moved by {:+}", shift.after, shift.by)).collect();
    let more = if shifts.len() > MAX { format!(" and so on ({} more)", shifts.len() - MAX) } else { String::new() };
    format!("lines {}{more}\n", moves.join(", "))
}

/// A note after a last line without an ending.
fn open_end(text: &Text, line: LineNo) -> &'static str {
    if text.ending(line) == LineEnding::None { " [no newline at the end]" } else { "" }
}

/// The current lines, if another program rewrote the file right after we wrote it.
fn rewritten_after(path: &RelPath, rewritten: &RewrittenFile, numbers: LineNumbers, audience: ReplyAudience<'_>) -> String {
    let (path, version) = (audience.path(path), rewritten.text.version().short());
    format!(
        "note: {path} was rewritten right after; it is version {version} now. What differs from what you sent ({}), as it is now{}",
        describe_lines(&rewritten.affected),
        rows_below(&rewritten.fresh, numbers, audience)
    )
}

/// A note that another program removed the file right after we wrote it.
fn removed_after(path: &RelPath, audience: ReplyAudience<'_>) -> String {
    let path = audience.path(path);
    format!("note: another program removed {path} right after it was written\n")
}

/// The reply to a write of the content that the file already has.
pub(super) const SAME_CONTENT: &str = "File already exists with identical content";

/// A warning that a session rewrites the same file again and again.
fn rewrites(path: &RelPath, times: u32, audience: ReplyAudience<'_>) -> String {
    if times < REWRITES_SAID_FROM {
        return String::new();
    }
    let path = audience.path(path);
    let small = audience.names.edit().map(|edit| format!("; for a small change use {edit}")).unwrap_or_default();
    format!(
        "note: this is rewrite {times} of {path} in this session, each nearly the same as the one before. \
         The file is there and holds what you wrote. If it does what it should, go on to what is still open{small}.\n"
    )
}
