//! `undo`: takes back what this session did.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use surehand_core::{
    Cause, ChangeId, Edit, Refusal, Tool, ToolNames,
    edit::{UndoRequest, UndoTarget, Whose},
};

use super::{ToolDefinition, arguments, schema};
use crate::calls::Call;

pub(super) const DEFINITION: ToolDefinition = ToolDefinition { describe, schema: schema::<UndoArguments>, parse };

fn describe(_: &ToolNames) -> String {
    "Take back a change that these tools made: the last one of this session, the last one of a file, or a named one with all its files. If a file has changed\n\
     since, nothing is undone and the refusal shows what would be lost. Undoing again goes further back; what comes back is shown and counts as read."
        .to_owned()
}

/// The arguments.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct UndoArguments {
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

fn parse(value: &Value) -> Result<Call, Refusal> {
    let call: UndoArguments = arguments(Tool::Undo.name(), value)?;
    let which = match (call.path, call.change, call.all) {
        (None, None, false) => UndoTarget::Last,
        (Some(path), None, false) => UndoTarget::File(path),
        (None, Some(change), false) => UndoTarget::Change(ChangeId(change)),
        (None, None, true) => UndoTarget::All,
        _ => {
            let why = format!("{}: give one of path, change and all, or none of them", Tool::Undo.name());
            return Err(Refusal::of_call(Cause::BadArguments { why }));
        }
    };
    Ok(Call::Edit(Edit::Undo(UndoRequest { which, by: Whose::Mine, force: call.force })))
}
