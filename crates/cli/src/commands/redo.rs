//! `surehand redo`: reverts the last undo.

use std::process::ExitCode;

use surehand_engine::core::edit::{UndoRequest, UndoTarget, WhoseChanges};

use crate::{args::RedoArgs, workspace};

pub(crate) fn run(args: &RedoArgs) -> anyhow::Result<ExitCode> {
    let mut session = workspace::open_session(&args.result.place)?;
    let by = match &args.session {
        Some(typed) => WhoseChanges::Session(workspace::find_session(session.workspace(), typed)?),
        None => WhoseChanges::Anyone,
    };
    let redone = session.undo(&UndoRequest { which: UndoTarget::LastUndo, by, force: args.result.force });
    super::undo::report(&redone, session.workspace(), args.result.json)
}
