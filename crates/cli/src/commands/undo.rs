//! `surehand undo`: takes a change back.

use std::process::ExitCode;

use surehand_engine::{
    Session, SessionId, ToolNames,
    changes::Selection,
    core::edit::{UndoRequest, UndoTarget, Whose},
    render::Reply,
};

use crate::{args::UndoArgs, output, place};

pub(crate) fn run(args: &UndoArgs) -> anyhow::Result<ExitCode> {
    let workspace = place::open(&args.place)?;
    let mut session = Session::continued(workspace, SessionId("cli".to_owned()));
    let selection = place::selection(&args.selection, &session)?;
    let outcome = session.undo(&undo(selection, args.force));
    output::say(Reply::of(&outcome, &ToolNames::default()), args.json)
}

fn undo(selection: Selection, force: bool) -> UndoRequest {
    let whose = |session: Option<SessionId>| session.map_or(Whose::Anyone, Whose::Session);
    let (which, by) = match selection {
        Selection::Last(session) => (UndoTarget::Last, whose(session)),
        Selection::File(path, session) => (UndoTarget::File(path.to_string()), whose(session)),
        Selection::Change(change) => (UndoTarget::Change(change), Whose::Anyone),
        Selection::Session(session) => (UndoTarget::All, Whose::Session(session)),
    };
    UndoRequest { which, by, force }
}
