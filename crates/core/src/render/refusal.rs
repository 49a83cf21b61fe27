//! Renders refusals: one fact, then one next step. The text starts with `Error:`, because some models look for it.

use std::fmt;

use crate::{
    excerpt::{Excerpt, clip},
    line_numbers::LineNumbers,
    lines::LineNo,
    outcome::{RefusedOutcome, undo::UndoKind},
    refusal::{
        BatchKind, BatchPlace, Cause, CreatedBy, IfRepeated, Mismatch, MismatchKind, NearestLines, PartialUse, PrefixedText,
        Refusal, Remap, Retry, SameLooks,
    },
    render::{
        PersonWords, ReplyAudience, count, describe_lines,
        first_difference::{first_difference, name_differences},
        join_first,
        undo::{not_undone, past},
    },
    text::Unencodable,
    tool::{Tool, ToolNames},
};

/// How every refusal starts.
pub const PREFIX: &str = "Error: ";

/// The text for the model. `repeat` counts how often this exact call has been refused, including this time.
pub fn refusal(refusal: &Refusal, repeat: u32, audience: ReplyAudience<'_>) -> String {
    format!("{PREFIX}{}\n", body(refusal, repeat, audience))
}

/// The text for a person who requested an undo: the fact only, without tool names.
pub fn for_person(refusal: &Refusal, person: PersonWords<'_>) -> String {
    let path = refusal.path.as_deref().map(person.path).unwrap_or_default();
    let names = ToolNames::reading_with("look at");
    let audience = ReplyAudience::person(&names, person);
    match &refusal.cause {
        Cause::ChangedSince { undo, left } => {
            let (changed, left) = (changed_since(*undo), not_undone(*undo, left, audience));
            format!("{changed}; nothing was {}\n{}", past(*undo), left.trim_end())
        }
        Cause::Claimed { pattern, by } => format!("{path}: {by} has claimed {pattern}"),
        Cause::Collides { collision } => super::collision::collision(collision).unwrap_or_default(),
        Cause::TooLarge { unit, size, limit, setting } => in_file(&path, &format!("{size} {unit}, and {setting} is {limit}")),
        Cause::TooLargeToKeep { size, limit } => {
            in_file(&path, &format!("{size} bytes, more than can be kept for undo ({limit})"))
        }
        Cause::OutsideWorkspace => in_file(&path, "outside the workspace"),
        Cause::Protected => in_file(&path, "it belongs to git or Surehand itself"),
        Cause::NotAFile { kind } => in_file(&path, &format!("{kind}, not a regular file")),
        Cause::NoSuchFile | Cause::NothingThere | Cause::Deleted => in_file(&path, "no such file"),
        Cause::CannotUndo { why } | Cause::BadArguments { why } | Cause::Conflict { why } | Cause::Io { why } => {
            in_file(&path, why)
        }
        _ => explain(refusal, audience),
    }
}

fn changed_since(undo: UndoKind) -> &'static str {
    match undo {
        UndoKind::Undo => "what was written has been changed since",
        UndoKind::Redo => "what the undo left has been changed since",
    }
}

fn body(refusal: &Refusal, repeat: u32, audience: ReplyAudience<'_>) -> String {
    let mut text = String::new();
    if let Some(place) = refusal.batch {
        text.push_str(&batch_place(&place));
    }
    text.push_str(&explain(refusal, audience));
    match refusal.batch.map(|place| place.kind) {
        None => {}
        Some(BatchKind::Edits | BatchKind::Patch { .. }) => text.push_str("\nNo edits were applied."),
        Some(BatchKind::Undo) => text.push_str("\nNothing was undone."),
    }
    if repeat > 1 {
        let step = match refusal.cause.retry() {
            Retry::AfterReading => Some(format!("call {} on the target path first", audience.names.read())),
            Retry::Corrected => Some("correct them".to_owned()),
            Retry::Later => None,
        };
        if let Some(step) = step {
            text.push_str(&format!("\nThis is refusal {repeat} of the same call: do not retry identical args — {step}."));
        }
    }
    text
}

fn batch_place(place: &BatchPlace) -> String {
    let BatchPlace { edit, of, kind } = place;
    match kind {
        BatchKind::Edits => format!("edit {edit} of {of}: "),
        BatchKind::Patch { chunk: 0 } => format!("file {edit} of {of} in the patch: "),
        BatchKind::Patch { chunk } => format!("file {edit} of {of} in the patch, chunk {chunk}: "),
        BatchKind::Undo => format!("file {edit} of {of}: "),
    }
}

/// The next step in a few words, as read by programs.
pub fn remedy(refusal: &Refusal, names: &ToolNames) -> String {
    let read = names.read();
    let or = |what: &str, tool: Tool, rest: &str| match names.get(tool) {
        Some(name) => format!("{what}, or {name}{rest}"),
        None => what.to_owned(),
    };
    match refusal.cause {
        Cause::Unread { ref fresh } if fresh.rows.is_empty() => read.to_owned(),
        Cause::Unread { .. } => format!("send the call again if the lines shown allow it, or {read}"),
        Cause::Stale { .. } => format!("correct the call with the lines shown, or {read} again"),
        Cause::Invalidated => format!("{read} again"),
        Cause::Deleted => match names.get(Tool::WriteFile) {
            Some(write) => or(&format!("{write} to create it anew"), Tool::Forget, ""),
            None => "check the path".to_owned(),
        },
        Cause::Partial { .. } => format!("send the call again if the lines shown allow it, or {read} the unseen lines"),
        Cause::NoSuchFile => or("check the path", Tool::WriteFile, " to create it"),
        Cause::NothingThere => "check the path, or leave it out for the whole workspace".to_owned(),
        Cause::NotFound { .. } => "copy the exact text from the file".to_owned(),
        Cause::Ambiguous { .. } => "add surrounding lines, or replace_all".to_owned(),
        Cause::NoChange => "leave it, or change new_string".to_owned(),
        Cause::AnchorMismatch { .. } => "use the anchors shown".to_owned(),
        Cause::Overlap { .. } => "make one edit of the two".to_owned(),
        Cause::Exists { by: CreatedBy::Creating | CreatedBy::Adding } => {
            match (names.get(Tool::EditFile), names.get(Tool::WriteFile)) {
                (Some(edit), Some(write)) => format!("{edit} with old_string, or {read} and {write}"),
                _ => format!("{read} it, then change a part of it"),
            }
        }
        Cause::Exists { by: CreatedBy::Moving } => or("choose another name", Tool::DeleteFile, " it first"),
        Cause::Binary { .. } | Cause::Encoding { .. } => "use another tool for this file".to_owned(),
        Cause::Unshown { if_repeated: IfRepeated::Replaces, .. } => {
            or("send the same call again to replace it", Tool::DeleteFile, " it")
        }
        Cause::Unshown { if_repeated: IfRepeated::IsRefused, .. } => match names.get(Tool::DeleteFile) {
            Some(delete) => format!("{delete} it first, if it is to be replaced"),
            None => "remove it first, if it is to be replaced".to_owned(),
        },
        Cause::TooLargeToKeep { .. } => "use a shell command for this file".to_owned(),
        Cause::Unencodable { .. } => "write it without that character, or convert the file first".to_owned(),
        Cause::BadPatch { .. } => "correct the patch".to_owned(),
        Cause::ChangedSince { .. } => or("leave it", Tool::Undo, " with force"),
        Cause::CannotUndo { .. } => "leave it".to_owned(),
        Cause::TooLarge { .. } => "work on a part, or raise the limit".to_owned(),
        Cause::OutsideWorkspace | Cause::Protected => "use a path inside the workspace".to_owned(),
        Cause::BadRange { .. }
        | Cause::BadArguments { .. }
        | Cause::BadAnchor { .. }
        | Cause::EmptyPattern
        | Cause::NoSuchTask { .. } => "correct the arguments".to_owned(),
        Cause::TaskOfOthers { .. } => "go on with your own tasks".to_owned(),
        Cause::NoSuchTool { .. } => "call a tool that there is".to_owned(),
        Cause::Conflict { .. } => "try again".to_owned(),
        Cause::Claimed { .. } => "work on something else until the claim ends".to_owned(),
        Cause::Collides { .. } => "change other lines, or merge the other change first".to_owned(),
        Cause::NotAFile { .. } => "use the path of a regular file".to_owned(),
        Cause::Io { .. } => "mend the cause and try again".to_owned(),
    }
}

fn explain(refusal: &Refusal, audience: ReplyAudience<'_>) -> String {
    let path = refusal.path.as_deref().unwrap_or_default();
    let is_patch = refusal.batch.is_some_and(|place| matches!(place.kind, BatchKind::Patch { .. }));
    let sought = if is_patch { &CHUNK } else { &OLD_STRING };
    let names = audience.names;
    let read = names.read();
    match &refusal.cause {
        Cause::Unread { fresh } if fresh.rows.is_empty() => {
            format!("{path} was not read this session — {read} first. An edit must be made from what the file holds now.")
        }
        Cause::Unread { fresh } => {
            let step = match fresh.omitted.is_empty() {
                true => "send the call again if it is still what you want.".to_owned(),
                false => format!("for the rest, {read}."),
            };
            format!(
                "{path} was not read this session — {read} first; nothing was written. What the call is about, as it is now{}This counts as read now: {step}",
                rows_below(fresh, LineNumbers::Plain, audience)
            )
        }
        Cause::Stale { affected, fresh, remaps, anchors, total_lines, .. } => {
            let more = format!("for more, {read} again.");
            let now = match (affected.is_empty(), total_lines) {
                (_, 0) => format!("It is empty now; {more}"),
                (true, _) => format!("Only its byte order mark changed: send the call again if it still fits; {more}"),
                (false, _) => format!(
                    "What changed since ({}), as it is now; this counts as read{}{}Send the call again if it still fits, or correct it using these lines; {more}",
                    describe_lines(affected),
                    rows_below(fresh, LineNumbers::with_anchors(*anchors), audience),
                    moved(remaps)
                ),
            };
            format!("{path} was modified since last read; nothing was written. {now}")
        }
        Cause::Invalidated => {
            format!(
                "{path} may have been modified since last read (it was reported as changed); nothing was written. Call {read} again."
            )
        }
        Cause::Deleted => {
            let anew = names.get(Tool::WriteFile).map(|write| format!("To make it anew, {write}; if")).unwrap_or("If".to_owned());
            format!("{path} was deleted since last read; nothing was written. {anew} it moved, {read} it at its new path.")
        }
        Cause::Partial { unseen, fresh, by } => {
            let what = match by {
                PartialUse::Overwrite => format!("{} replaces the whole file", names.get(Tool::WriteFile).unwrap_or("the call")),
                PartialUse::Lines => "the edit replaces that".to_owned(),
            };
            let step = if fresh.omitted.is_empty() && fresh.shown.count() == unseen.count() {
                "This counts as read now: send the call again if it is still what you want.".to_owned()
            } else {
                let part = names.edit().map(|edit| format!(", or use {edit} for a part")).unwrap_or_default();
                format!("{read} the lines that were not shown in full{part}.")
            };
            format!(
                "{} of {path} {} not read this session, and {what}; nothing was written. What is there{}{step}",
                describe_lines(unseen),
                if unseen.count() == 1 { "was" } else { "were" },
                rows_below(fresh, LineNumbers::with_anchors(names.get(Tool::EditLines).is_some()), audience)
            )
        }
        Cause::NoSuchFile => {
            let create = names.phrase(Tool::WriteFile, "; to create it, use ", "");
            format!("there is no file {path} in the workspace; paths are relative to its root. Check the path{create}.")
        }
        Cause::NothingThere => format!(
            "there is no file or directory {path} in the workspace; paths are relative to its root. Check the path, or leave it out to look everywhere."
        ),
        Cause::NotFound { nearest, already_at, prefixed } => {
            not_found(path, sought, nearest.as_deref(), *already_at, prefixed.as_ref(), audience)
        }
        Cause::Ambiguous { lines } => {
            let mut on: Vec<LineNo> = lines.clone();
            on.dedup();
            format!(
                "{} in {path} {} times, on lines {}; nothing was written. {}",
                sought.old_is,
                lines.len(),
                join_first(on.iter(), 20, "more"),
                sought.how_to_name_one
            )
        }
        Cause::NoChange => format!("the edit would leave {path} as it is; nothing was written. If it is right already, go on."),
        Cause::AnchorMismatch { mismatches, fresh, remaps } => {
            let mut list: String = mismatches.iter().take(20).map(mismatch).collect();
            if mismatches.len() > 20 {
                list.push_str(&format!("  and {} more\n", mismatches.len() - 20));
            }
            let step = if remaps.is_empty() {
                "Send the call again with anchors from these lines."
            } else {
                "Send the call again with these anchors."
            };
            format!(
                "{} of {path} {} not fit; nothing was written.\n{list}As the lines are now (this counts as read){}{}{step}",
                count(mismatches.len(), "anchor"),
                if mismatches.len() == 1 { "does" } else { "do" },
                rows_below(fresh, LineNumbers::Anchors, audience),
                moved(remaps)
            )
        }
        Cause::Overlap { first, second } => {
            format!("edits {first} and {second} of {path} touch the same lines; nothing was written. Make one edit of the two.")
        }
        Cause::Exists { by: CreatedBy::Creating } => format!(
            "{path} exists and is not empty, and an empty old_string only creates files; nothing was written. {read} it, then name the text to replace."
        ),
        Cause::Exists { by: CreatedBy::Adding } => {
            format!("{path} exists already, and the patch adds it; nothing was written. {read} it, then use *** Update File.")
        }
        Cause::Exists { by: CreatedBy::Moving } => {
            let delete = names.phrase(Tool::DeleteFile, ", or ", " it first");
            format!("{path} exists already; nothing was moved. Choose another name{delete}.")
        }
        Cause::Binary { size, kind } => {
            format!("{path} is not text ({kind}, {size} bytes). These tools read and edit text only.")
        }
        Cause::Encoding { size, at } => {
            format!(
                "{path} is broken text (byte {at} of {size} makes no sense in its encoding). Repair it with another tool to work on it with these."
            )
        }
        Cause::Unshown { why, if_repeated, .. } => {
            let delete = names.get(Tool::DeleteFile);
            let step = match (if_repeated, delete) {
                (IfRepeated::Replaces, Some(delete)) => format!("send the same call again, or {delete} it first"),
                (IfRepeated::Replaces, None) => "send the same call again".to_owned(),
                (IfRepeated::IsRefused, Some(delete)) => format!("{delete} it first"),
                (IfRepeated::IsRefused, None) => "remove it first".to_owned(),
            };
            let back = names.phrase(Tool::Undo, "; ", " brings it back");
            format!(
                "{path} {} and cannot be shown; nothing was written. To replace it all the same, {step}{back}.",
                why_not_shown(why)
            )
        }
        Cause::TooLargeToKeep { size, limit } => format!(
            "{path} has {size} bytes, more than can be kept for undo ({limit}), so these tools do not replace, move or delete it; nothing was written. Use a shell command for it."
        ),
        Cause::Unencodable { why, encoding } => unencodable(path, *why, encoding),
        Cause::BadPatch { line, why } => format!("line {line} of the patch: {why}. Nothing was written."),
        Cause::ChangedSince { undo, left } => {
            let force = names
                .get(Tool::Undo)
                .map(|undo| format!(", edit the file, or {undo} with force"))
                .unwrap_or(" or edit the file".to_owned());
            format!(
                "nothing was {}: {}.\n{}Leave it{force}.",
                past(*undo),
                changed_since(*undo),
                not_undone(*undo, left, audience)
            )
        }
        Cause::TooLarge { unit, size, limit, setting } => in_file(
            path,
            &format!(
                "{size} {unit}, and the limit is {limit}. Work on a part (for a file: with a shell command), or have the user raise {setting} in ~/.config/surehand/surehand.toml."
            ),
        ),
        Cause::OutsideWorkspace => format!("{path} leads outside the workspace. Use a path inside it."),
        Cause::Protected => format!("{path} belongs to git or Surehand itself and is not written by these tools."),
        Cause::BadAnchor { edit, given } => in_file(
            path,
            &format!("edit {edit}: not a line anchor: {given:?}; copy LINE#HASH from {read} with anchors: true, like 12#ab"),
        ),
        Cause::EmptyPattern => {
            let names_of_files = names.phrase(Tool::ListFiles, "; for the names of files use ", "");
            format!("{}: pattern: is empty{names_of_files}", Tool::SearchFiles.name())
        }
        Cause::NoSuchTask { id } => {
            let where_they_are = names.phrase(Tool::RepoState, "; ", " lists the open ones");
            format!("{}: there is no task {id}{where_they_are}", Tool::UpdateTasks.name())
        }
        Cause::TaskOfOthers { id, whose } => {
            format!("{}: task {id} belongs to {whose} and is not yours to change; nothing was changed", Tool::UpdateTasks.name())
        }
        Cause::NoSuchTool { name } => {
            let name: String = name.chars().take(60).collect();
            format!("there is no tool {name:?}; there are {}", names.all().join(", "))
        }
        Cause::Claimed { pattern, by } => format!(
            "{path} is claimed: {by} has {pattern} for itself. Nothing was changed. Work on something else until the claim ends."
        ),
        Cause::Collides { collision } => {
            let what = super::collision::collision(collision).unwrap_or_default();
            format!("{what}. Nothing was changed. Change other lines, or merge that change first.")
        }
        Cause::NotAFile { kind } => format!("{path} is {kind}, not a regular file."),
        Cause::CannotUndo { why }
        | Cause::BadRange { why }
        | Cause::BadArguments { why }
        | Cause::Conflict { why }
        | Cause::Io { why } => in_file(path, why),
    }
}

fn why_not_shown(why: &Cause) -> String {
    match why {
        Cause::Binary { size, kind } => format!("is not text ({kind}, {size} bytes)"),
        Cause::Encoding { size, at } => {
            format!("is broken text ({size} bytes, of which byte {at} makes no sense in its encoding)")
        }
        Cause::TooLarge { size, limit, .. } => format!("has {size} bytes, more than the limit of {limit},"),
        _ => "is no text that can be read".to_owned(),
    }
}

fn unencodable(path: &str, why: Unencodable, encoding: &str) -> String {
    let (fact, step) = match why {
        Unencodable::Character(char) => {
            (format!("text, which has no {char:?} (U+{:04X})", u32::from(char)), "Write it with other characters, or convert")
        }
        Unencodable::Inexact => ("text with bytes that could not be written back as they are".to_owned(), "To edit it, convert"),
        Unencodable::Mistakable => {
            ("text, and with this change it would be taken for another encoding".to_owned(), "To make it, convert")
        }
    };
    format!("{path} is {encoding} {fact}; nothing was written. {step} the file to UTF-8 with another tool first.")
}

fn in_file(path: &str, why: &str) -> String {
    if path.is_empty() { why.to_owned() } else { format!("{path}: {why}") }
}

/// The words for the text that was not found in a file, as the call names it.
struct NotFoundWording {
    old_is: &'static str,
    new_is: &'static str,
    how_to_name_one: &'static str,
}

const OLD_STRING: NotFoundWording = NotFoundWording {
    old_is: "old_string is",
    new_is: "new_string is",
    how_to_name_one: "Add surrounding lines to name one, or set replace_all.",
};

const CHUNK: NotFoundWording = NotFoundWording {
    old_is: "the old lines of the chunk are",
    new_is: "its new lines are",
    how_to_name_one: "Add lines of context, or name the function or class above them after @@.",
};

fn not_found(
    path: &str,
    sought: &NotFoundWording,
    nearest: Option<&NearestLines>,
    already_at: Option<LineNo>,
    prefixed: Option<&PrefixedText>,
    audience: ReplyAudience<'_>,
) -> String {
    let mut text = format!("{} not in {path}; nothing was written.", sought.old_is);
    if let Some(prefixed) = prefixed {
        text.push_str(&without_prefix(prefixed));
        if !prefixed.places.is_empty() {
            return text;
        }
    }
    if let Some(line) = already_at {
        text.push_str(&format!(" {} there already, on line {line}: the edit may have been made before.", sought.new_is));
    }
    let Some(nearest) = nearest else {
        let read = audience.names.read();
        text.push_str(&format!(" No line like it was found. Copy the text to replace from {read}, without the LINE| prefix."));
        return text;
    };
    text.push_str(&match &nearest.same_looks {
        Some(same) => same_looks(nearest, same, audience),
        None => format!(" Nearest: {}", nearest_rows(nearest, audience)),
    });
    text.push_str(&match &nearest.diverges {
        Some(diverges) => first_difference(diverges),
        None => "These lines match; what you gave before or after them does not.".to_owned(),
    });
    text
}

fn without_prefix(prefixed: &PrefixedText) -> String {
    let also = if prefixed.also_new { "old_string and new_string" } else { "it" };
    let fact = " It has the LINE| prefixes of a read in front, which are not in the file.";
    match &prefixed.places[..] {
        [] => format!("{fact} Give {also} without the LINE| prefix; yet that is not there either."),
        [lines] => {
            let lines = describe_lines(&[*lines].into_iter().collect());
            format!("{fact} Without them it is on {lines}: send {also} without the LINE| prefix.")
        }
        places => {
            let starts = describe_lines(&places.iter().map(|place| place.start).collect());
            let times = places.len();
            format!(
                "{fact} Without them it is there {times} times, starting on {starts}: send {also} without the LINE| prefix, with lines around to name one."
            )
        }
    }
}

fn same_looks(nearest: &NearestLines, same: &SameLooks, audience: ReplyAudience<'_>) -> String {
    let lines = describe_lines(&[nearest.lines].into_iter().collect());
    let others = match same.others {
        0 => String::new(),
        others => format!(" (and {}: add lines around it to name one)", count(others, "other place")),
    };
    let fact = format!(" It differs from {lines}{others} only in {}.", name_differences(&same.differs_in));
    match &same.exact {
        Some(exact) => format!("{fact} The exact text to use:\n{}\n", exact.strip_suffix('\n').unwrap_or(exact)),
        None => format!("{fact} There: {}", nearest_rows(nearest, audience)),
    }
}

/// Replaces the lines in a text for a model whose prompt shows them elsewhere.
const ELSEWHERE: &str = " (see the open files)";

/// The nearest lines, and those of them that are shown.
fn nearest_rows(nearest: &NearestLines, audience: ReplyAudience<'_>) -> String {
    let lines = describe_lines(&[nearest.lines].into_iter().collect());
    let shown = nearest.fresh.rows.len() + nearest.fresh.omitted.count() as usize;
    let part = if shown < nearest.lines.count() as usize { "; around the first difference" } else { "" };
    format!("{lines}{part}{}", rows_below(&nearest.fresh, LineNumbers::Plain, audience))
}

/// A colon and the lines of an excerpt below it, with a count of those omitted; or a pointer to where the model finds
/// the lines.
pub(super) fn rows_below(excerpt: &Excerpt, numbers: LineNumbers, audience: ReplyAudience<'_>) -> String {
    let is_elsewhere = !audience.sees_lines() && !excerpt.rows.is_empty();
    let mut text = if is_elsewhere { format!(":{ELSEWHERE}\n") } else { ":\n".to_owned() };
    let mut last = None;
    for (line, row) in excerpt.rows.iter().filter(|_| audience.sees_lines()) {
        if last.is_some_and(|last: LineNo| last.moved(1) != Some(*line)) {
            text.push_str("…\n");
        }
        let whole = excerpt.shown.contains(*line);
        // The hash of a truncated line would not be that of the line in the file.
        if whole {
            numbers.write(&mut text, *line, row)
        } else {
            LineNumbers::Plain.write(&mut text, *line, row)
        }
        text.push_str(row);
        text.push('\n');
        last = Some(*line);
    }
    if !excerpt.omitted.is_empty() {
        text.push_str(&format!("[not shown: {}]\n", describe_lines(&excerpt.omitted)));
    }
    text
}

fn mismatch(mismatch: &Mismatch) -> String {
    let anchor = mismatch.anchor;
    let found = mismatch.found.as_deref().map(|line| clip(line, 80)).unwrap_or_default();
    let expected = mismatch.expected.as_deref().map(|line| clip(line, 80));
    match mismatch.why {
        MismatchKind::PastEnd => format!("  {anchor}: the file has no such line\n"),
        MismatchKind::OtherText => match expected {
            Some(expected) if expected != found => {
                format!("  {anchor}: you were shown {expected:?}, line {} is {found:?}\n", anchor.line)
            }
            _ => format!("  {anchor}: line {} is {found:?}\n", anchor.line),
        },
        MismatchKind::Moved => {
            format!("  {anchor}: the line was shown under this number, but has moved; line {} is {found:?} now\n", anchor.line)
        }
        MismatchKind::TwoFit => format!(
            "  {anchor}: two equal lines fit, the one that is line {} now and the one that was when you read it\n",
            anchor.line
        ),
        MismatchKind::Gone => {
            format!("  {anchor}: the line you were shown is gone; another one that reads the same is line {} now\n", anchor.line)
        }
        MismatchKind::Unseen => format!("  {anchor}: this line was not shown in full to this session\n"),
    }
}

fn moved(remaps: &[Remap]) -> String {
    if remaps.is_empty() {
        return String::new();
    }
    let list: Vec<String> = remaps.iter().map(|remap| format!("{} is {} now", remap.from, remap.to)).collect();
    format!("The lines you named: {}.\n", list.join(", "))
}

impl fmt::Display for Refusal {
    /// Renders the text for a model that has all our tools, without `Error: `.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(body(self, 1, ReplyAudience::new(&ToolNames::default())).trim_end())
    }
}

impl std::error::Error for Refusal {}

impl fmt::Display for RefusedOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.refusal.fmt(f)
    }
}

impl std::error::Error for RefusedOutcome {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        hash::ContentHash,
        ids::ChangeId,
        lines::{LineRange, LineSet},
        outcome::undo::{LeftHunk, NotUndone, NotUndoneCause},
        path::RelPath,
        text::Text,
    };

    /// One refusal per cause. If a cause is missing here, this does not compile.
    fn refusals() -> Vec<Refusal> {
        let text = |content: &str| Text::of(content.to_owned()).unwrap();
        let lines = LineSet::whole(2);
        let fresh = || Excerpt::of(&text("one\ntwo\nthree\n"), &LineSet::whole(2));
        let cut = || Excerpt { omitted: [LineRange::line(LineNo::FIRST)].into_iter().collect(), ..Excerpt::default() };
        let why = || "why".to_owned();
        let not_found = Cause::NotFound { nearest: None, already_at: None, prefixed: None };
        let mut causes = vec![Cause::unread()];
        // Each arm adds the next cause.
        while let Some(cause) = causes.last() {
            let next = match cause {
                Cause::Unread { fresh: shown } if shown.rows.is_empty() => Cause::Unread { fresh: fresh() },
                Cause::Unread { .. } => Cause::Stale {
                    affected: lines.clone(),
                    fresh: fresh(),
                    mismatches: Vec::new(),
                    remaps: Vec::new(),
                    anchors: true,
                    total_lines: 3,
                },
                Cause::Stale { .. } => Cause::Invalidated,
                Cause::Invalidated => Cause::Deleted,
                Cause::Deleted => Cause::Partial { unseen: lines.clone(), fresh: cut(), by: PartialUse::Overwrite },
                Cause::Partial { .. } => Cause::NoSuchFile,
                Cause::NoSuchFile => Cause::NothingThere,
                Cause::NothingThere => not_found.clone(),
                Cause::NotFound { .. } => Cause::Ambiguous { lines: vec![LineNo::FIRST] },
                Cause::Ambiguous { .. } => Cause::NoChange,
                Cause::NoChange => Cause::AnchorMismatch { mismatches: Vec::new(), fresh: fresh(), remaps: Vec::new() },
                Cause::AnchorMismatch { .. } => Cause::Overlap { first: 1, second: 2 },
                Cause::Overlap { .. } => Cause::Exists { by: CreatedBy::Moving },
                Cause::Exists { by: CreatedBy::Moving } => Cause::Exists { by: CreatedBy::Adding },
                Cause::Exists { by: CreatedBy::Adding } => Cause::Exists { by: CreatedBy::Creating },
                Cause::Exists { by: CreatedBy::Creating } => Cause::Binary { size: 1, kind: "data" },
                Cause::Binary { .. } => Cause::Encoding { size: 1, at: 0 },
                Cause::Encoding { .. } => Cause::Unshown {
                    why: Box::new(Cause::Binary { size: 1, kind: "data" }),
                    version: ContentHash::of(b""),
                    if_repeated: IfRepeated::Replaces,
                },
                Cause::Unshown { if_repeated: IfRepeated::Replaces, why, version } => {
                    Cause::Unshown { if_repeated: IfRepeated::IsRefused, why: why.clone(), version: *version }
                }
                Cause::Unshown { if_repeated: IfRepeated::IsRefused, .. } => Cause::TooLargeToKeep { size: 2, limit: 1 },
                Cause::TooLargeToKeep { .. } => Cause::Unencodable { why: Unencodable::Inexact, encoding: "latin" },
                Cause::Unencodable { .. } => Cause::BadPatch { line: 1, why: why() },
                Cause::BadPatch { .. } => {
                    let hunk = LeftHunk {
                        change: ChangeId("1".to_owned()),
                        why: NotUndoneCause::LinesChanged,
                        now: 0..1,
                        wanted: vec!["two".to_owned()],
                    };
                    let path = RelPath::new("a.txt").unwrap();
                    Cause::ChangedSince {
                        undo: UndoKind::Undo,
                        left: vec![NotUndone { path, text: Some(text("one\n")), hunks: vec![hunk], why: None }],
                    }
                }
                Cause::ChangedSince { .. } => Cause::CannotUndo { why: why() },
                Cause::CannotUndo { .. } => Cause::TooLarge { unit: "bytes", size: 2, limit: 1, setting: "limits.x" },
                Cause::TooLarge { .. } => Cause::OutsideWorkspace,
                Cause::OutsideWorkspace => Cause::Protected,
                Cause::Protected => Cause::BadRange { why: why() },
                Cause::BadRange { .. } => Cause::BadArguments { why: why() },
                Cause::BadArguments { .. } => Cause::BadAnchor { edit: 1, given: "12".to_owned() },
                Cause::BadAnchor { .. } => Cause::NoSuchTool { name: "bash".to_owned() },
                Cause::NoSuchTool { .. } => Cause::Conflict { why: why() },
                Cause::Conflict { .. } => Cause::Claimed { pattern: "src/**".to_owned(), by: "codex 71c0".to_owned() },
                Cause::Claimed { .. } => {
                    let (agent, path) = (Some("codex 71c0".to_owned()), RelPath::new("a.txt").unwrap());
                    let forecast = crate::Forecast::Deleted { by: crate::forecast::Side::Theirs };
                    let collision = crate::Collision { agent, branch: None, path, seconds_ago: None, forecast };
                    Cause::Collides { collision: Box::new(collision) }
                }
                Cause::Collides { .. } => Cause::NotAFile { kind: "a pipe" },
                Cause::NotAFile { .. } => Cause::Io { why: why() },
                // Only our own server has these tools.
                Cause::Io { .. } | Cause::EmptyPattern | Cause::NoSuchTask { .. } | Cause::TaskOfOthers { .. } => break,
            };
            causes.push(next);
        }
        let path = RelPath::new("a.txt").unwrap();
        causes.into_iter().map(|cause| Refusal::of(&path, cause)).collect()
    }

    #[test]
    fn a_refusal_names_only_tools_that_the_model_has() {
        let names = ToolNames::reading_with("Read").with(Tool::EditFile, "Edit").with(Tool::WriteFile, "Write");
        let patching = ToolNames::of_dialects(&[crate::tool::EditDialect::Patch]);
        for refused in refusals() {
            for names in [&names, &ToolNames::reading_with("cat"), &patching] {
                let audience = ReplyAudience::new(names);
                // The store keeps versions for people as well as for undo.
                let text = format!("{}{}", refusal(&refused, 2, audience), remedy(&refused, names)).replace("kept for undo", "");
                let lacks = |tool: &Tool| names.get(*tool) != Some(tool.name());
                let named = |tool: &Tool| {
                    let is_of_word = |c: char| c.is_alphanumeric() || c == '_';
                    text.split(|c| !is_of_word(c)).any(|word| word == tool.name())
                };
                let wrong: Vec<Tool> = Tool::ALL.into_iter().filter(lacks).filter(named).collect();
                assert!(wrong.is_empty(), "{wrong:?} in {text}");
                assert!(text.contains(names.read()) || !text.contains("read_file"), "{text}");
            }
        }
    }

    #[test]
    fn to_a_model_that_has_the_files_elsewhere_no_lines_are_shown() {
        let names = ToolNames::default();
        for refused in refusals() {
            let text = refusal(&refused, 1, ReplyAudience::with_open_files(&names));
            let is_row =
                |line: &str| line.split_once('|').is_some_and(|(number, _)| number.starts_with(|c: char| c.is_ascii_digit()));
            assert!(!text.lines().any(is_row), "{text}");
        }
    }
}
