//! `multi_edit`: several replacements in several files, all or none.

use std::collections::HashMap;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use surehand_core::{Refusal, edit::replace::Replace, plan, render::Numbers};

use super::{arguments, change, check_count};
use crate::{
    files::Gathered,
    session::{Session, Success},
};

/// Make several replacements in one or more files, all or nothing: if one cannot be made, none is. Every file must have been read in this session
/// and be unchanged since. Later edits see the result of earlier ones on the same file. An empty `old_string` creates a new file.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MultiEdit {
    /// The edits, in order.
    edits: Vec<OneEdit>,
}

/// One replacement.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct OneEdit {
    /// Path of the file, relative to the workspace root or absolute.
    path: String,
    /// The exact text to replace. Empty to create the file.
    old_string: String,
    /// The text to put in its place.
    new_string: String,
    /// Replace every occurrence.
    #[serde(default)]
    replace_all: bool,
}

pub fn run(session: &mut Session, call: &Value) -> Result<Success, Refusal> {
    let call: MultiEdit = arguments("multi_edit", call)?;
    check_count(session, "multi_edit", call.edits.len())?;
    let done = session.change("multi_edit", |session| {
        let batch = gather(session, &call.edits)?;
        let targets: Vec<_> = batch.files.iter().map(|gathered| session.target(gathered)).collect();
        let planned = plan::multi_edit(&targets, &batch.edits)?;
        Ok(planned.into_iter().zip(batch.files.iter().map(Gathered::facts)).collect())
    })?;
    Ok(change::say_all(session, &done, Numbers::Plain))
}

struct Batch<'a> {
    /// Each once, however it is spelled.
    files: Vec<Gathered>,
    /// Every edit, with the index of the file that it is about.
    edits: Vec<(usize, Replace<'a>)>,
}

fn gather<'a>(session: &mut Session, edits: &'a [OneEdit]) -> Result<Batch<'a>, Refusal> {
    let mut batch = Batch { files: Vec::new(), edits: Vec::with_capacity(edits.len()) };
    let mut by_spelling: HashMap<&str, usize> = HashMap::new();
    for (index, edit) in edits.iter().enumerate() {
        let file = match by_spelling.get(edit.path.as_str()) {
            Some(file) => *file,
            None => {
                let gathered =
                    session.gather_for_writing(&edit.path).map_err(|refusal| refusal.in_batch(index + 1, edits.len()))?;
                let file = batch.files.iter().position(|known| known.path == gathered.path).unwrap_or_else(|| {
                    batch.files.push(gathered);
                    batch.files.len() - 1
                });
                by_spelling.insert(&edit.path, file);
                file
            }
        };
        batch.edits.push((file, Replace { old: &edit.old_string, new: &edit.new_string, all: edit.replace_all }));
    }
    Ok(batch)
}
