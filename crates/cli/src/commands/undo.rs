//! `surehand undo`: takes changes back.

use std::{path::PathBuf, process::ExitCode};

use serde_json::Value;
use surehand_engine::{
    Outcome, Session, SessionId, ToolNames,
    change_log::ChangeSelection,
    core::{Cause, edit::UndoRequest},
    render::Reply,
};

use crate::{args::UndoArgs, output, workspace};

pub(crate) fn run(args: &UndoArgs) -> anyhow::Result<ExitCode> {
    let workspace = workspace::open(&args.place)?;
    let mut session = Session::continued(workspace, SessionId("cli".to_owned()));
    let selection = workspace::selection(&args.selection, &session)?;
    let here = session.workspace().path().to_owned();
    let elsewhere = match &selection {
        ChangeSelection::Session(of) => workspace::other_roots(of, &here)?,
        _ => Vec::new(),
    };
    let request = selection.into_undo(args.force);
    if elsewhere.is_empty() {
        return output::print_reply(Reply::of(&session.undo(&request), &ToolNames::default()), args.json);
    }
    // Open all before changing any.
    let mut sessions = vec![(here, session)];
    for root in elsewhere {
        let session = Session::continued(workspace::open(&workspace::at(&root))?, SessionId("cli".to_owned()));
        sessions.push((root, session));
    }
    undo_everywhere(sessions, &request, args.json)
}

/// Takes back the changes of a session in each of its workspaces, and reports each result.
fn undo_everywhere(sessions: Vec<(PathBuf, Session)>, request: &UndoRequest, json: bool) -> anyhow::Result<ExitCode> {
    let undone = |(root, mut session): (PathBuf, Session)| (root, session.undo(request));
    let mut outcomes: Vec<(PathBuf, Outcome)> = sessions.into_iter().map(undone).collect();
    // It is an error only if there is nothing to take back in any of them.
    if outcomes.iter().any(|(_, outcome)| outcome.refusal().is_none()) {
        let is_nothing =
            |outcome: &Outcome| outcome.refusal().is_some_and(|refusal| matches!(refusal.cause, Cause::CannotUndo { .. }));
        outcomes.retain(|(_, outcome)| !is_nothing(outcome));
    } else {
        outcomes.truncate(1);
    }
    let is_refused = outcomes.iter().any(|(_, outcome)| outcome.refusal().is_some());
    let said = outcomes.iter().map(|(root, outcome)| (root, Reply::of(outcome, &ToolNames::default())));
    if json {
        let objects = said.map(|(root, Reply { text, mut result, .. })| {
            (result["text"], result["workspace"]) = (text.into(), root.to_string_lossy().into());
            result
        });
        output::print(&format!("{:#}\n", Value::Array(objects.collect())))?;
    } else {
        let texts = said.map(|(root, reply)| format!("in {}:\n{}", root.display(), reply.text));
        output::print(&texts.collect::<String>())?;
    }
    Ok(if is_refused { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
