//! Renders the changes that an undo took back, and those that it left with the reason.

use serde_json::{Value, json};

use crate::{
    excerpt::clip,
    lines::{LineNo, LineRange},
    outcome::{
        ChangeOutcome, UndoneEdit,
        undo::{EntryOutcome, EntryState, LeftHunk, NotUndone, NotUndoneCause, UndoExtent, UndoKind},
    },
    render::{ReplyAudience, count, join_first},
    short_diff::ROW_CHARS,
    tool::Tool,
};

/// The changes that were undone or redone and how far, named by their tools, newest first. For a person, it adds the id
/// of each change and its author.
pub(super) fn undone_changes(changed: &ChangeOutcome, audience: ReplyAudience<'_>) -> String {
    const MAX: usize = 8;
    let ChangeOutcome { undo, undid, left, .. } = changed;
    if undid.is_empty() {
        return String::new();
    }
    let edits: Vec<String> = undid
        .iter()
        .flat_map(|undid| undid.edits.iter().map(|edit| name(edit, undid.extent == UndoExtent::Partly, audience)))
        .collect();
    let own = if edits.len() == 1 { "Only the lines that it wrote" } else { "Only the lines that they wrote" };
    let edits = join_first(edits.into_iter(), MAX, "more");
    let is_whole = undid.iter().all(|undid| undid.extent == UndoExtent::Whole);
    let (did, before) = match undo {
        UndoKind::Undo => ("Undid", "before"),
        UndoKind::Redo => ("Redid", "before the undo"),
    };
    let rest = match (left.is_empty(), is_whole) {
        (true, true) => format!("The files are as they were {before}:"),
        (true, false) => format!("{own}; later changes are kept:"),
        (false, _) => format!("Later changes are kept; what could not be {} is listed below:", past(*undo)),
    };
    format!("{did} {edits}. {rest}\n")
}

/// For example `edit_file`; for a person `edit_file 1f3a5b7c by claude 3f2a`.
fn name(edit: &UndoneEdit, is_partly: bool, audience: ReplyAudience<'_>) -> String {
    let tool = match Tool::named(&edit.tool) {
        Some(tool) => audience.names.get(tool).unwrap_or("an edit"),
        None => &edit.tool,
    };
    let by = audience.person.map(|person| format!(" {} by {}", edit.change, (person.session)(&edit.session)));
    let partly = if is_partly { " (in part)" } else { "" };
    format!("{tool}{}{partly}", by.unwrap_or_default())
}

pub(super) fn past(undo: UndoKind) -> &'static str {
    match undo {
        UndoKind::Undo => "undone",
        UndoKind::Redo => "redone",
    }
}

/// The results for paths other than the content of files.
pub(super) fn entries(entries: &[EntryOutcome], audience: ReplyAudience<'_>) -> String {
    const MAX: usize = 20;
    let line = |entry: &EntryOutcome| format!("{} {}\n", audience.path(&entry.path), state(&entry.is));
    let mut text: String = entries.iter().take(MAX).map(line).collect();
    if entries.len() > MAX {
        text.push_str(&format!("[{} more]\n", count(entries.len() - MAX, "path")));
    }
    text
}

fn state(is: &EntryState) -> String {
    match is {
        EntryState::Nothing => "removed".to_owned(),
        EntryState::Link(target) => format!("is a link to {target}"),
        EntryState::Directory => "is a directory".to_owned(),
        EntryState::File => "is a file".to_owned(),
        EntryState::Permissions(mode) => format!("has permissions {mode:o}"),
    }
}

/// Like [`entries`], for programs.
pub(super) fn entries_json(entries: &[EntryOutcome]) -> Value {
    let entry = |entry: &EntryOutcome| match &entry.is {
        EntryState::Nothing => json!({ "path": entry.path, "is": "nothing" }),
        EntryState::Link(target) => json!({ "path": entry.path, "is": "link", "target": target }),
        EntryState::Directory => json!({ "path": entry.path, "is": "directory" }),
        EntryState::File => json!({ "path": entry.path, "is": "file" }),
        EntryState::Permissions(mode) => json!({ "path": entry.path, "is": "file", "mode": format!("{mode:o}") }),
    };
    entries.iter().map(entry).collect()
}

/// The parts of each file that were left, and why.
pub(super) fn not_undone(undo: UndoKind, left: &[NotUndone], audience: ReplyAudience<'_>) -> String {
    const MAX_FILES: usize = 10;
    let mut text: String = left.iter().take(MAX_FILES).map(|left| file(undo, left, audience)).collect();
    if left.len() > MAX_FILES {
        text.push_str(&format!("[{} more not {}]\n", count(left.len() - MAX_FILES, "file"), past(undo)));
    }
    text
}

fn file(undo: UndoKind, left: &NotUndone, audience: ReplyAudience<'_>) -> String {
    let (undone, path) = (past(undo), audience.path(&left.path));
    let mut text = match &left.why {
        Some(why) => format!("not {undone} in {path}: {}\n", cause(why, audience)),
        None => String::new(),
    };
    let hunks = left.shown_hunks();
    text.extend(hunks.iter().map(|hunk| {
        let rows = if audience.sees_lines() { rows(left, hunk) } else { String::new() };
        format!("not {undone} in {path}, {}: {}\n{rows}", place(hunk), cause(&hunk.why, audience))
    }));
    if left.hunks.len() > hunks.len() {
        text.push_str(&format!("[{} more not {undone} in {path}]\n", count(left.hunks.len() - hunks.len(), "place")));
    }
    text
}

/// `line 3`, `lines 3-5`, `below line 2`.
fn place(hunk: &LeftHunk) -> String {
    match LineRange::from_indexes(hunk.now.clone()) {
        Some(lines) if lines.count() == 1 => format!("line {}", lines.start),
        Some(lines) => format!("lines {}-{}", lines.start, lines.end),
        None if hunk.now.start == 0 => "at the top".to_owned(),
        None => format!("below line {}", hunk.now.start),
    }
}

/// The present lines (-), and the lines that would replace them (+).
fn rows(left: &NotUndone, hunk: &LeftHunk) -> String {
    let Some(now) = &left.text else { return String::new() };
    let shown = hunk.shown_lines();
    let mut text = String::new();
    for line in shown.clone().map(LineNo::at_index) {
        text.push_str(&format!("-{line}|{}\n", clip(now.line(line), ROW_CHARS)));
    }
    if shown.len() < hunk.now.len() {
        text.push_str(&format!("[{} more]\n", count(hunk.now.len() - shown.len(), "line")));
    }
    let wanted = hunk.shown_wanted();
    wanted.iter().for_each(|line| text.push_str(&format!("+|{}\n", clip(line, ROW_CHARS))));
    if wanted.len() < hunk.wanted.len() {
        text.push_str(&format!("[{} more]\n", count(hunk.wanted.len() - wanted.len(), "line")));
    }
    text
}

fn cause(why: &NotUndoneCause, audience: ReplyAudience<'_>) -> String {
    let why = match why {
        NotUndoneCause::LinesChanged => "changed since",
        NotUndoneCause::LinesInDoubt => "cannot be told from equal lines beside it",
        NotUndoneCause::Unencodable => "the old text does not fit the encoding that the file has now",
        NotUndoneCause::EncodingChanged => "the change was one of the encoding, and the file has changed since",
        NotUndoneCause::Deleted => "it was deleted or moved since",
        NotUndoneCause::NotText => "it has changed since and is not text, or too large to compare",
        NotUndoneCause::NotKept => "it has changed since, and the versions to compare are no longer kept",
        NotUndoneCause::Moved => "it was moved since, and keeps its name",
        NotUndoneCause::EntryChanged => "its permissions have changed since, or it is something else now",
        NotUndoneCause::NameTaken(name) => {
            return format!("another file is called {} now, so it keeps its name", audience.path(name));
        }
        NotUndoneCause::Failed(why) => return why.clone(),
    };
    why.to_owned()
}

/// The name of a cause for programs.
fn code(why: &NotUndoneCause) -> &'static str {
    match why {
        NotUndoneCause::LinesChanged => "lines_changed",
        NotUndoneCause::LinesInDoubt => "lines_in_doubt",
        NotUndoneCause::Unencodable => "unencodable",
        NotUndoneCause::EncodingChanged => "encoding_changed",
        NotUndoneCause::Deleted => "deleted",
        NotUndoneCause::NotText => "not_text",
        NotUndoneCause::NotKept => "not_kept",
        NotUndoneCause::Moved => "moved",
        NotUndoneCause::NameTaken(_) => "name_taken",
        NotUndoneCause::EntryChanged => "entry_changed",
        NotUndoneCause::Failed(_) => "failed",
    }
}

/// Like [`not_undone`], for programs.
pub(super) fn not_undone_json(left: &[NotUndone]) -> Value {
    let hunk = |hunk: &LeftHunk| {
        json!({
            "change": hunk.change,
            "why": code(&hunk.why),
            "lines": LineRange::from_indexes(hunk.now.clone()),
            "below": hunk.now.start,
            "wanted": hunk.wanted,
        })
    };
    let file = |left: &NotUndone| {
        let mut file = json!({ "path": left.path, "hunks": left.hunks.iter().map(hunk).collect::<Vec<_>>() });
        if let Some(why) = &left.why {
            file["why"] = json!(code(why));
            if let NotUndoneCause::Failed(reason) = why {
                file["reason"] = json!(reason);
            }
        }
        file
    };
    left.iter().map(file).collect()
}
