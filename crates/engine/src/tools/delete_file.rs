//! `delete_file`: a file, taken away. It can be brought back.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use surehand_core::{Refusal, plan, render::Numbers};

use super::{arguments, change};
use crate::session::{Session, Success};

/// Delete a file. A text file must have been read in this session (any part) and be unchanged since; otherwise nothing is deleted and the refusal shows
/// what changed. `undo` brings it back. Not for directories.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DeleteFile {
    /// Path of the file, relative to the workspace root or absolute.
    path: String,
}

pub fn run(session: &mut Session, call: &Value) -> Result<Success, Refusal> {
    let call: DeleteFile = arguments("delete_file", call)?;
    let done = session.change("delete_file", |session| {
        let gathered = session.gather_by_name(&call.path)?;
        let planned = plan::delete_file(&session.target(&gathered))?;
        Ok(vec![(planned, gathered.facts())])
    })?;
    Ok(change::say_one(session, &done, Numbers::Plain))
}
