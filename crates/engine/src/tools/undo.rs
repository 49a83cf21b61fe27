//! `undo`: reverts changes of this session.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use surehand_core::{
    Cause, ChangeId, Edit, Refusal, Tool, ToolNames,
    edit::{UndoRequest, UndoTarget, WhoseChanges},
};

use super::{ToolDefinition, arguments, schema};
use crate::calls::Call;

pub(super) const DEFINITION: ToolDefinition = ToolDefinition { describe, schema: schema::<UndoArguments>, parse };

fn describe(_: &ToolNames) -> String {
    "Take back the last change of this session, of a file, or a named one with all its files. If a file has changed since, nothing is undone \
     and the refusal shows what would be lost."
        .to_owned()
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct UndoArguments {
    path: Option<String>,
    /// Its name, as the log gives it.
    change: Option<String>,
    /// Everything that this session changed.
    #[serde(default)]
    all: bool,
    /// Overwrite what was done since.
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
    Ok(Call::Edit(Edit::Undo(UndoRequest { which, by: WhoseChanges::Mine, force: call.force })))
}
