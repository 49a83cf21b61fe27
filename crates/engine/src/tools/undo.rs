//! `undo`: takes back what this session did.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use surehand_core::{Cause, Refusal, render, render::Numbers};
use surehand_store::ChangeId;

use super::{arguments, change};
use crate::{
    changes::Selection,
    session::{Session, Success},
    undo::Since,
};

/// Take back a change that these tools made: the last one of this session, the last one of a file, or a named one with all its files. If a file has changed
/// since, nothing is undone and the refusal shows what would be lost. Undoing again goes further back; what comes back is shown and counts as read.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Undo {
    /// Take back the last change of this file only.
    path: Option<String>,
    /// The name of a change, as the result of an edit or the log gives it.
    change: Option<String>,
    /// Take back everything that this session changed.
    #[serde(default)]
    all: bool,
    /// Overwrite what has been done since.
    #[serde(default)]
    force: bool,
}

pub fn run(session: &mut Session, call: &Value) -> Result<Success, Refusal> {
    let call: Undo = arguments("undo", call)?;
    let id = session.id();
    let selection = match (&call.path, &call.change, call.all) {
        (None, None, false) => Selection::Last(Some(id)),
        (Some(path), None, false) => Selection::File(session.path_of(path)?, Some(id)),
        (None, Some(change), false) => Selection::Change(ChangeId(change.clone())),
        (None, None, true) => Selection::Session(id),
        _ => {
            let why = "undo: give one of path, change and all, or none of them".to_owned();
            return Err(Refusal::of_call(Cause::BadArguments { why }));
        }
    };
    take_back(session, &selection, if call.force { Since::Overwrite } else { Since::Keep })
}

/// Takes changes back and says what came back.
pub fn take_back(session: &mut Session, selection: &Selection, since: Since) -> Result<Success, Refusal> {
    let (events, done) = session.undo(selection, since)?;
    let mut success = change::say_all(session, &done, Numbers::Plain);
    let mut changes: Vec<(&str, &ChangeId)> = events.iter().map(|event| (event.tool.as_str(), &event.change)).collect();
    changes.dedup_by_key(|(_, change)| *change);
    let tools: Vec<&str> = changes.iter().map(|(tool, _)| *tool).collect();
    success.text.insert_str(0, &render::change::undone(&tools));
    success.result.insert("undone".to_owned(), json!(changes.iter().map(|(_, change)| change).collect::<Vec<_>>()));
    Ok(success)
}
