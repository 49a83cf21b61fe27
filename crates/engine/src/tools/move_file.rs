//! `move_file`: a file, by another name.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use surehand_core::{Refusal, plan, render::Numbers};

use super::{arguments, change};
use crate::session::{Session, Success};

/// Move or rename a file; missing directories are made. A text file must have been read in this session (any part) and be unchanged since. Nothing may be
/// at the new path. What was read of the file counts for its new path.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MoveFile {
    /// Path of the file, relative to the workspace root or absolute.
    from: String,
    /// The path that it gets.
    to: String,
}

pub fn run(session: &mut Session, call: &Value) -> Result<Success, Refusal> {
    let call: MoveFile = arguments("move_file", call)?;
    let done = session.change("move_file", |session| {
        let gathered = session.gather_by_name(&call.from)?;
        let there = session.gather_for_writing(&call.to)?;
        let planned = plan::move_file(&session.target(&gathered), &there.path, &there.present)?;
        Ok(vec![(planned, gathered.facts())])
    })?;
    Ok(change::say_one(session, &done, Numbers::Plain))
}
