//! `surehand undo`: takes a change back.

use std::process::ExitCode;

use surehand_engine::{Session, SessionId, Since};

use crate::{args::UndoArgs, output, place};

pub fn run(args: &UndoArgs) -> anyhow::Result<ExitCode> {
    let workspace = place::open(&args.place)?;
    let mut session = Session::continued(workspace, SessionId("cli".to_owned()));
    let selection = place::selection(&args.selection, &session)?;
    let since = if args.force { Since::Overwrite } else { Since::Keep };
    output::say(session.take_back(&selection, since), args.json)
}
