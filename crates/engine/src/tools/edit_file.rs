//! `edit_file`: one exact piece of text by another.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use surehand_core::{Refusal, edit::replace::Replace, plan, render::Numbers};

use super::{arguments, change};
use crate::session::{Session, Success};

/// Replace one exact piece of text in a file. The file must have been read in this session and be unchanged since; otherwise nothing is
/// written and the refusal shows what to do. `old_string` must be in the file exactly once, or set `replace_all`. An empty `old_string` creates a new file.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EditFile {
    /// Path of the file, relative to the workspace root or absolute.
    path: String,
    /// The exact text to replace, white space included, without LINE| prefixes. Empty to create the file.
    old_string: String,
    /// The text to put in its place.
    new_string: String,
    /// Replace every occurrence.
    #[serde(default)]
    replace_all: bool,
}

pub fn run(session: &mut Session, call: &Value) -> Result<Success, Refusal> {
    let call: EditFile = arguments("edit_file", call)?;
    let edit = Replace { old: &call.old_string, new: &call.new_string, all: call.replace_all };
    let done = session.change("edit_file", |session| {
        let gathered = session.gather_for_writing(&call.path)?;
        let planned = plan::edit_file(&session.target(&gathered), &edit)?;
        Ok(vec![(planned, gathered.facts())])
    })?;
    Ok(change::say_one(session, &done, Numbers::Plain))
}
