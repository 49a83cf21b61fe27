//! `undo`: reverts changes of this session.

use schemars::JsonSchema;
use serde::Deserialize;
use surehand_core::{
    Cause, ChangeId, Edit, Refusal, Tool,
    edit::{UndoRequest, UndoTarget, WhoseChanges},
};

use super::ToolArguments;
use crate::calls::Call;

/// Undo this session's last change, the last one of a file, or a named one in all its files. Lines that others have
/// changed since stay, and are shown.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct UndoArguments {
    path: Option<String>,
    /// Its id.
    change: Option<String>,
    /// All of this session.
    #[serde(default)]
    all: bool,
    /// Take back the last undo.
    #[serde(default)]
    redo: bool,
    /// Overwrite later changes.
    #[serde(default)]
    force: bool,
}

impl ToolArguments for UndoArguments {
    fn into_call(self) -> Result<Call, Refusal> {
        let which = match (self.path, self.change, self.all, self.redo) {
            (None, None, false, false) => UndoTarget::Last,
            (None, None, false, true) => UndoTarget::LastUndo,
            (Some(path), None, false, false) => UndoTarget::File(path),
            (None, Some(change), false, false) => UndoTarget::Change(ChangeId(change)),
            (None, None, true, false) => UndoTarget::All,
            _ => {
                let why = format!("{}: give one of path, change, all and redo, or none of them", Tool::Undo.name());
                return Err(Refusal::of_call(Cause::BadArguments { why }));
            }
        };
        Ok(Call::Edit(Edit::Undo(UndoRequest { which, by: WhoseChanges::Mine, force: self.force })))
    }
}
