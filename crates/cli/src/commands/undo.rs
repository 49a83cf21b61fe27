//! `surehand undo`: takes changes back.

use std::{path::PathBuf, process::ExitCode};

use serde_json::Value;
use surehand_engine::{
    Outcome, Session, SessionId, ToolNames, Workspace,
    change_log::ChangeSelection,
    core::{Cause, Refusal, edit::UndoRequest},
    render::{Reply, refusal::for_person},
};

use crate::{args::UndoArgs, local_paths::LocalPaths, output, workspace};

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
        return report(&session.undo(&request), session.workspace(), args.json);
    }
    // Open all before changing any.
    let mut sessions = vec![(here, session)];
    for root in elsewhere {
        let session = Session::continued(workspace::open(&workspace::at(&root))?, SessionId("cli".to_owned()));
        sessions.push((root, session));
    }
    undo_everywhere(sessions, &request, args.json)
}

/// Reports what an undo or redo did, or on standard error why it did nothing.
pub(super) fn report(outcome: &Outcome, workspace: &Workspace, json: bool) -> anyhow::Result<ExitCode> {
    let Some(refusal) = outcome.refusal() else {
        return output::print_reply(Reply::of(outcome, &ToolNames::default()), json);
    };
    let why = why_not(refusal, &LocalPaths::to(workspace.path()));
    let mut reply = Reply::of(outcome, &ToolNames::default());
    if json {
        reply.text = why;
        return output::print_reply(reply, json);
    }
    output::print_error(&why, json);
    Ok(ExitCode::FAILURE)
}

/// Why nothing was undone, for a person.
fn why_not(refusal: &Refusal, local_paths: &LocalPaths) -> String {
    let why = for_person(refusal, |path| local_paths.shown(path));
    match refusal.cause {
        Cause::ChangedSince { .. } => format!("{why}\nhint: --force takes back the change, and what was written over it"),
        _ => why,
    }
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
    if json {
        let objects = outcomes.iter().map(|(root, outcome)| {
            let Reply { text, mut result, .. } = Reply::of(outcome, &ToolNames::default());
            let why = outcome.refusal().map(|refusal| why_not(refusal, &LocalPaths::to(root)));
            (result["text"], result["workspace"]) = (why.unwrap_or(text).into(), root.to_string_lossy().into());
            result
        });
        output::print(&format!("{:#}\n", Value::Array(objects.collect())))?;
    } else {
        for (root, outcome) in &outcomes {
            let local_paths = LocalPaths::to(root);
            match outcome.refusal() {
                Some(refusal) => {
                    output::print_error(&format!("in {}: {}", root.display(), why_not(refusal, &local_paths)), false)
                }
                None => output::print(&format!("in {}:\n{}", root.display(), Reply::of(outcome, &ToolNames::default()).text))?,
            }
        }
    }
    Ok(if is_refused { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
