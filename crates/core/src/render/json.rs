//! Renders outcomes as JSON for programs. The fields are a stable interface.

use serde_json::{Map, Value, json};

use super::{
    ReplyAudience,
    change::{REWRITES_SAID_FROM, SAME_CONTENT, diff},
    notice::notice,
    refusal::remedy,
    undo::{entries_json, not_undone_json},
};
use crate::{
    line_numbers::LineNumbers,
    outcome::{
        ChangeOutcome, Done, FileOutcome, Forgotten, Landed, Outcome, RefusedOutcome, SearchResult, UndoneEdit, WriteMethod,
        search::FileMatches,
        undo::{UndoExtent, UndoKind},
    },
    plan::FileAction,
    refusal::{Cause, Mismatch},
    tool::{Tool, ToolNames},
};

/// More ranges than this are merged into fewer, larger ones.
const MAX_RANGES: usize = 200;

/// More remaps than this are left out, because the next read has the numbers.
const MAX_SHIFTS: usize = 200;

/// An outcome as an object. Texts in it use these tool names.
pub fn json(outcome: &Outcome, names: &ToolNames) -> Value {
    let mut object = match &outcome.result {
        Ok(done) => {
            let mut object = object([("success", json!(true))]);
            object.extend(done_fields(done, names));
            object
        }
        Err(refused) => object([("success", json!(false)), ("refusal", refusal(refused, names))]),
    };
    let notes = &outcome.notes;
    if let Some(given) = &notes.instructions {
        object.insert("instructions".to_owned(), json!(given.paths()));
    }
    if !notes.changed_elsewhere.is_empty() {
        object.insert("changed_elsewhere".to_owned(), json!(notes.changed_elsewhere));
    }
    if !notes.warnings.is_empty() {
        object.insert("warnings".to_owned(), json!(notes.warnings.iter().map(notice).collect::<Vec<_>>()));
    }
    Value::Object(object)
}

fn object<const N: usize>(fields: [(&str, Value); N]) -> Map<String, Value> {
    fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

fn done_fields(done: &Done, names: &ToolNames) -> Map<String, Value> {
    match done {
        Done::Read(reading) => object([
            ("path", json!(reading.path)),
            ("version", json!(reading.text.version())),
            ("total_lines", json!(reading.text.line_count())),
            ("shown", json!(reading.lines)),
        ]),
        Done::Unchanged(unchanged) => object([
            ("path", json!(unchanged.path)),
            ("version", json!(unchanged.text.version())),
            ("total_lines", json!(unchanged.text.line_count())),
            ("unchanged", json!(true)),
        ]),
        Done::Listed(listing) => {
            let folded: Vec<Value> = listing.folded.iter().map(|(path, files)| json!({ "path": path, "files": files })).collect();
            object([
                ("cut", json!(listing.is_cut())),
                ("files", json!(listing.files)),
                ("directories", json!(folded)),
                ("total", json!(listing.total)),
            ])
        }
        Done::Found(found) => search(found),
        Done::Changed(changed) => change(changed, names),
        Done::SameContent(same) => {
            let mut fields = object([
                ("noop", json!(true)),
                ("message", json!(SAME_CONTENT)),
                ("path", json!(same.path)),
                ("version", json!(same.text.version())),
            ]);
            add_rewrites(&mut fields, same.rewrites);
            fields
        }
        Done::State(shown) => {
            object([("files_tracked", json!(shown.state.files.len())), ("open_tasks", json!(shown.state.tasks.open().len()))])
        }
        Done::SharedTasks(list) => {
            object([("story_id", json!(list.story)), ("claimed", json!(list.claimed)), ("shared_tasks", json!(list.tasks))])
        }
        Done::Tasks(list) => object([
            ("story_id", json!(list.story)),
            ("tasks", json!(list.tasks)),
            ("open_tasks", json!(list.open().len())),
            ("tasks_of_others", json!(list.of_others)),
        ]),
        Done::Forgotten(Forgotten::Everything) => Map::new(),
        Done::Forgotten(Forgotten::Files(paths)) => object([("forgotten", json!(paths))]),
    }
}

fn search(found: &SearchResult) -> Map<String, Value> {
    let file = |file: &FileMatches| {
        json!({
            "path": file.found_at,
            "version": file.text.version(),
            "total_lines": file.text.line_count(),
            "matches": file.matches,
            "shown": file.lines,
        })
    };
    object([
        ("cut", json!(!found.left.is_empty())),
        ("files", json!(found.files.iter().map(file).collect::<Vec<_>>())),
        ("total", json!(found.hits)),
        ("total_files", json!(found.files_with_hits)),
    ])
}

/// The fields of a change. A tool for one file puts them into the object itself. A tool for several files puts them
/// into a list, and into the object too if there is only one file.
fn change(changed: &ChangeOutcome, names: &ToolNames) -> Map<String, Value> {
    let mut files: Vec<Map<String, Value>> =
        changed.files.iter().map(|file| file_fields(file, changed.numbers(), names)).collect();
    let may_be_several = changed.tool.changes_several_files();
    let mut fields = match &mut files[..] {
        [only] if may_be_several => only.clone(),
        [first, ..] if !may_be_several => std::mem::take(first),
        _ => Map::new(),
    };
    if may_be_several {
        fields.insert("files".to_owned(), json!(files));
    }
    fields.insert("change".to_owned(), json!(changed.change));
    if changed.tool == Tool::Undo {
        let undone = |is_partly: bool| {
            let undone = changed.undid.iter().filter(|undid| (undid.extent == UndoExtent::Partly) == is_partly);
            undone.map(|undid| &undid.change).collect::<Vec<_>>()
        };
        fields.insert("undone".to_owned(), json!(undone(false)));
        if changed.undo == UndoKind::Redo {
            let edit = |edit: &UndoneEdit| json!({ "change": edit.change, "tool": edit.tool, "session": edit.session });
            let edits = changed.undid.iter().flat_map(|undid| &undid.edits);
            fields.insert("redone".to_owned(), edits.map(edit).collect());
        }
        if !changed.left.is_empty() {
            fields.insert("partly_undone".to_owned(), json!(undone(true)));
            fields.insert("left".to_owned(), not_undone_json(&changed.left));
        }
    }
    if !changed.entries.is_empty() {
        fields.insert("entries".to_owned(), entries_json(&changed.entries));
    }
    add_rewrites(&mut fields, changed.rewrites);
    fields
}

fn add_rewrites(fields: &mut Map<String, Value>, times: u32) {
    if times >= REWRITES_SAID_FROM {
        fields.insert("rewrites".to_owned(), json!(times));
    }
}

fn file_fields(file: &FileOutcome, numbers: LineNumbers, names: &ToolNames) -> Map<String, Value> {
    match (file.planned.act(), &file.landed, file.planned.text()) {
        (FileAction::Write { .. }, Landed::AsPlanned, Some(_)) => written(file, numbers, names),
        (FileAction::Write { .. }, Landed::Rewritten(rewritten), Some(_)) => object([
            ("path", json!(file.path())),
            ("rewritten", json!(true)),
            ("version", json!(rewritten.text.version())),
            ("total_lines", json!(rewritten.text.line_count())),
            ("shown", json!(rewritten.fresh.shown)),
        ]),
        (FileAction::Write { .. }, Landed::Gone, Some(_)) => object([("path", json!(file.path())), ("rewritten", json!(true))]),
        _ => whole(file),
    }
}

/// The fields of a file that was deleted, moved, or restored as a binary file.
fn whole(file: &FileOutcome) -> Map<String, Value> {
    let mut fields = object([("path", json!(file.path()))]);
    match file.planned.act() {
        FileAction::Remove => fields.insert("deleted".to_owned(), json!(true)),
        FileAction::Move { .. } => fields.insert("from".to_owned(), json!(file.planned.path())),
        FileAction::Write { .. } => None,
    };
    if let Some(content) = file.planned.after() {
        fields.insert("version".to_owned(), json!(content.version()));
    }
    fields
}

fn written(file: &FileOutcome, numbers: LineNumbers, names: &ToolNames) -> Map<String, Value> {
    let planned = &file.planned;
    let mut fields = object([
        ("path", json!(planned.path())),
        ("version", json!(planned.text().map(crate::text::Text::version))),
        ("total_lines", json!(planned.text().map(crate::text::Text::line_count))),
        ("diff", json!(diff(file, numbers, ReplyAudience::new(names)))),
        ("shifted", json!(planned.map().shifts().iter().take(MAX_SHIFTS).collect::<Vec<_>>())),
        ("shown", json!(file.diff.shown)),
    ]);
    if let Some(line) = file.first_changed_line() {
        fields.insert("first_changed_line".to_owned(), json!(line));
    }
    if planned.is_new() {
        fields.insert("created".to_owned(), json!(true));
    }
    if let Some(origin) = planned.origin() {
        fields.insert("from".to_owned(), json!(origin.path));
    }
    if let Some(rebased) = planned.rebased() {
        fields.insert("rebased".to_owned(), json!({ "changed": rebased.affected }));
    }
    let how = match file.written {
        WriteMethod::Exchanged => None,
        WriteMethod::Renamed => {
            Some("renamed: this file system cannot exchange files, so a change at the same instant may go unseen")
        }
        WriteMethod::InPlace => Some("in place: the file has several names or marks that a new file could not have"),
    };
    if let Some(how) = how {
        fields.insert("written".to_owned(), json!(how));
    }
    fields
}

fn mismatch(mismatch: &Mismatch) -> Value {
    let Mismatch { anchor, expected, found, why } = mismatch;
    json!({ "line": anchor.line, "anchor": anchor, "expected": expected, "found": found, "why": why })
}

fn refusal(refused: &RefusedOutcome, names: &ToolNames) -> Value {
    let refusal = &refused.refusal;
    let mut fields = object([
        ("code", json!(refusal.code())),
        ("path", json!(refusal.path)),
        ("affected_ranges", json!(refusal.affected_ranges().coarsened(MAX_RANGES))),
        ("remaps", Value::Object(refusal.remaps().iter().map(|remap| (remap.from.to_string(), json!(remap.to))).collect())),
        ("repeat", json!(refused.repeat)),
        ("remedy", json!(remedy(refusal, names))),
    ]);
    if let Some(view) = &refusal.view_after {
        // The version that the remaps and ranges refer to.
        fields.insert("version".to_owned(), json!(view.version()));
    }
    if let Cause::ChangedSince { left, .. } = &refusal.cause {
        fields.insert("left".to_owned(), not_undone_json(left));
    }
    if !refusal.mismatches().is_empty() {
        fields.insert("mismatches".to_owned(), refusal.mismatches().iter().map(mismatch).collect());
    }
    Value::Object(fields)
}
