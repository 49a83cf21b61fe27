//! The answer to an edit: a short diff with fresh numbers, and how the numbers below moved.

use crate::{
    content::Content,
    excerpt::clip,
    hash::Anchor,
    line_map::LineShift,
    line_numbers::LineNumbers,
    lines::LineNo,
    outcome::{ChangeOutcome, ChangedBefore, FileOutcome, Landed, RewrittenFile, SameContent, UndoneChange},
    path::RelPath,
    plan::{FileAction, Planned, Rebased},
    render::{ReplyAudience, count, notice, refusal::listed, which},
    short_diff::{ROW_CHARS, ShortDiff, ShortDiffRow, TextDiff},
    text::{LineEnding, Text},
    tool::{Tool, ToolNames},
};

/// From this rewrite on it is said.
pub(super) const REWRITES_SAID_FROM: u32 = 3;

/// A change, in words.
pub fn changed(changed: &ChangeOutcome, audience: ReplyAudience<'_>) -> String {
    let mut text = undid(&changed.undid, audience.names);
    changed.told().for_each(|file| text.push_str(&file_outcome(file, changed.numbers(), audience)));
    if let Some(file) = changed.files.first() {
        text.push_str(&rewrites(file.planned.path(), changed.rewrites, audience.names));
    }
    text
}

/// A write of what was there already, in words.
pub fn same_content(same: &SameContent, audience: ReplyAudience<'_>) -> String {
    let SameContent { path, text, rewrites: times } = same;
    let version = text.version().short();
    let again = rewrites(path, *times, audience.names);
    format!("{SAME_CONTENT}: {path} (version {version}); nothing was written.\n{again}")
}

fn file_outcome(file: &FileOutcome, numbers: LineNumbers, audience: ReplyAudience<'_>) -> String {
    let planned = &file.planned;
    let headline = headline(planned, audience.names);
    if !matches!(planned.act(), FileAction::Write { .. }) {
        return format!("{headline}\n");
    }
    let (after, change_of_others) = match &file.landed {
        Landed::AsPlanned => (diff(file, numbers, audience), planned.rebased()),
        Landed::Rewritten(rewritten) => {
            (rewritten_after(planned.path(), rewritten, numbers, audience), rewritten.rebased.as_ref())
        }
        Landed::Gone => (removed_after(planned.path()), None),
    };
    let others = change_of_others.map(|others| rebased(others, numbers, audience)).unwrap_or_default();
    format!("{headline}\n{after}{others}")
}

/// What was done, in one line.
fn headline(planned: &Planned, names: &ToolNames) -> String {
    let path = planned.path();
    let back = |what: &str| names.get(Tool::Undo).map(|undo| format!("; {undo} brings {what}")).unwrap_or_default();
    match (planned.act(), planned.text()) {
        (FileAction::Remove, _) => format!("{path} deleted ({}{})", size(planned.base()), back("it back")),
        (FileAction::Move { to }, _) => format!("{path} moved to {to} ({})", size(planned.base())),
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

/// The diff of a change, with how the numbers below moved.
pub(super) fn diff(file: &FileOutcome, numbers: LineNumbers, audience: ReplyAudience<'_>) -> String {
    let planned = &file.planned;
    let base = planned.origin().map(|origin| &origin.text).or(planned.base().and_then(Content::text));
    let (FileAction::Write { .. }, Some(base), Some(text)) = (planned.act(), base, planned.text()) else { return String::new() };
    rows(&file.diff, base, text, numbers, audience) + &shifts(&planned.map().shifts())
}

/// The diff of two texts.
pub(super) fn between(texts: &TextDiff, audience: ReplyAudience<'_>) -> String {
    rows(&texts.diff, &texts.before, &texts.after, LineNumbers::Plain, audience)
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
                let at = if lines.is_empty() { String::new() } else { format!(": {}", which(lines)) };
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

/// Which changes were taken back, by the tools that made them, newest first.
fn undid(undid: &[UndoneChange], names: &ToolNames) -> String {
    const MAX: usize = 8;
    if undid.is_empty() {
        return String::new();
    }
    let name = |undid: &UndoneChange| match Tool::named(&undid.tool) {
        Some(tool) => names.get(tool).unwrap_or("an edit").to_owned(),
        None => undid.tool.clone(),
    };
    let tools: Vec<String> = undid.iter().take(MAX).map(name).collect();
    let more = if undid.len() > MAX { format!(" and {} more", undid.len() - MAX) } else { String::new() };
    format!("Undid {}{more}. The files are as they were before:\n", tools.join(", "))
}

/// Files in which something happened while a command ran.
pub(super) fn touched(paths: &[RelPath], most: usize) -> String {
    let named: Vec<&str> = paths.iter().take(most).map(RelPath::as_str).collect();
    let more = if paths.len() > most { format!(" and {} more", paths.len() - most) } else { String::new() };
    format!("note: touched while the command ran: {}{more}\n", named.join(", "))
}

/// Said before a tool that is not ours makes files that the session has seen and that have gone since.
pub(super) fn gone_before(path: &RelPath) -> String {
    format!("note: {path} was deleted or moved since you read it; this makes it anew\n")
}

/// Said before a tool that is not ours edits files: what else is new to the session in them.
pub(super) fn changed_before(changed: &ChangedBefore, audience: ReplyAudience<'_>) -> String {
    let ChangedBefore { path, rebased, by, seconds_ago } = changed;
    let who = notice::by(*by).map(|by| format!(" {by}")).unwrap_or_default();
    let when = seconds_ago.map(ago).unwrap_or_default();
    format!(
        "note: {path} was modified since last read{who}{when}; the lines of this edit were not, so it goes ahead. What changed ({}), as it is \
         before the edit; this counts as read{}",
        which(&rebased.affected),
        listed(&rebased.fresh, LineNumbers::Plain, audience)
    )
}

/// `, 5 minutes ago`
fn ago(seconds: u64) -> String {
    let (number, unit) = match seconds {
        0..60 => (seconds, "second"),
        60..3600 => (seconds / 60, "minute"),
        3600..86_400 => (seconds / 3600, "hour"),
        86_400.. => (seconds / 86_400, "day"),
    };
    format!(", {} ago", count(number as usize, unit))
}

/// Said of an edit that was moved to its new place: what else is new to the session.
fn rebased(rebased: &Rebased, numbers: LineNumbers, audience: ReplyAudience<'_>) -> String {
    format!(
        "note: the file had been modified since last read; the lines of this edit had not, so it was made at their new place. \
         What else changed ({}), as it is now; this counts as read{}",
        which(&rebased.affected),
        listed(&rebased.fresh, numbers, audience)
    )
}

/// How the numbers below moved, in one line.
fn shifts(shifts: &[LineShift]) -> String {
    const MAX: usize = 8;
    if shifts.is_empty() {
        return String::new();
    }
    let told: Vec<String> =
        shifts.iter().take(MAX).map(|shift| format!("after {} moved by {:+}", shift.after, shift.by)).collect();
    let more = if shifts.len() > MAX { format!(" and so on ({} more)", shifts.len() - MAX) } else { String::new() };
    format!("lines {}{more}\n", told.join(", "))
}

/// Said of a last line that does not end.
fn open_end(text: &Text, line: LineNo) -> &'static str {
    if text.ending(line) == LineEnding::None { " [no newline at the end]" } else { "" }
}

/// Said when another program rewrote a file right after it was written: what is there now instead of what was sent.
fn rewritten_after(path: &RelPath, rewritten: &RewrittenFile, numbers: LineNumbers, audience: ReplyAudience<'_>) -> String {
    let version = rewritten.text.version().short();
    format!(
        "note: {path} was rewritten right after; it is version {version} now. What differs from what you sent ({}), as it is now{}",
        which(&rewritten.affected),
        listed(&rewritten.fresh, numbers, audience)
    )
}

/// Said when another program removed a file right after it was written.
fn removed_after(path: &RelPath) -> String {
    format!("note: another program removed {path} right after it was written\n")
}

/// The answer to a write of what is there already.
pub(super) const SAME_CONTENT: &str = "File already exists with identical content";

/// Said when a session keeps writing the same file.
fn rewrites(path: &RelPath, times: u32, names: &ToolNames) -> String {
    if times < REWRITES_SAID_FROM {
        return String::new();
    }
    let small = names.edit().map(|edit| format!("; for a small change use {edit}")).unwrap_or_default();
    format!(
        "note: this is rewrite {times} of {path} in this session, each nearly the same as the one before. \
         The file is there and holds what you wrote. If it does what it should, go on to what is still open{small}.\n"
    )
}
