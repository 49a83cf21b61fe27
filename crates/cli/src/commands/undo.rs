//! `surehand undo`: undoes changes.

use std::{path::PathBuf, process::ExitCode};

use serde_json::Value;
use surehand_engine::{
    Outcome, Session, SessionId, ToolNames, Workspace,
    change_log::ChangeSelection,
    core::{
        Cause,
        edit::UndoRequest,
        outcome::undo::UndoKind,
        render::{PersonWords, text_for_person},
    },
    render::{self, Reply},
};

use crate::{args::UndoArgs, local_paths::LocalPaths, output, workspace};

pub(crate) fn run(args: &UndoArgs) -> anyhow::Result<ExitCode> {
    let mut session = workspace::open_session(&args.result.place)?;
    let selection = workspace::selection(&args.selection, &session)?;
    let here = session.workspace().path().to_owned();
    let elsewhere = match &selection {
        ChangeSelection::Session(of) => workspace::other_roots(of, &here)?,
        _ => Vec::new(),
    };
    let request = selection.into_undo(args.result.force);
    if elsewhere.is_empty() {
        return report(&session.undo(&request), session.workspace(), args.result.json);
    }
    // Open all workspaces before changing any.
    let mut sessions = vec![(here, session)];
    for root in elsewhere {
        let session = workspace::open_session(&workspace::at(&root))?;
        sessions.push((root, session));
    }
    undo_everywhere(sessions, &request, args.result.json)
}

/// Reports the result of an undo or redo. A refusal goes to standard error.
pub(super) fn report(outcome: &Outcome, workspace: &Workspace, json: bool) -> anyhow::Result<ExitCode> {
    let text = words(outcome, workspace, json);
    if json {
        return output::print_reply(Reply { text, ..Reply::of(outcome, &ToolNames::default()) }, json);
    }
    if outcome.is_refused() {
        output::print_error(&text, json);
        return Ok(ExitCode::FAILURE);
    }
    output::print(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// The result for a person, as text. In JSON, all paths are relative to the root of the workspace.
fn words(outcome: &Outcome, workspace: &Workspace, json: bool) -> String {
    let local_paths = if json { LocalPaths::default() } else { LocalPaths::to(workspace.path()) };
    let names = workspace.session_names();
    // The undo has happened, so it is reported even if the names cannot be read.
    let name = |session: &SessionId| names.as_ref().map_or_else(|_| session.to_string(), |names| names.name(session));
    let person = PersonWords { path: &|path| local_paths.shown(path), session: &name };
    let mut text = text_for_person(outcome, person);
    if let Some(Cause::ChangedSince { undo, .. }) = outcome.refusal().map(|refusal| &refusal.cause) {
        text.push_str(match undo {
            UndoKind::Undo => "\nhint: --force takes back the change, and what was written over it",
            UndoKind::Redo => "\nhint: --force brings the change back, over what was written since",
        });
    }
    text
}

/// Undoes the changes of a session in each of its workspaces, and reports each result.
fn undo_everywhere(sessions: Vec<(PathBuf, Session)>, request: &UndoRequest, json: bool) -> anyhow::Result<ExitCode> {
    let mut outcomes: Vec<(PathBuf, Outcome, String)> = Vec::new();
    for (root, mut session) in sessions {
        let outcome = session.undo(request);
        let text = words(&outcome, session.workspace(), json);
        outcomes.push((root, outcome, text));
    }
    // Nothing to undo is an error only if that is so in every workspace.
    if outcomes.iter().any(|(_, outcome, _)| !outcome.is_refused()) {
        let is_nothing =
            |outcome: &Outcome| outcome.refusal().is_some_and(|refusal| matches!(refusal.cause, Cause::CannotUndo { .. }));
        outcomes.retain(|(_, outcome, _)| !is_nothing(outcome));
    } else {
        outcomes.truncate(1);
    }
    let is_refused = outcomes.iter().any(|(_, outcome, _)| outcome.is_refused());
    if json {
        let objects = outcomes.into_iter().map(|(root, outcome, text)| {
            let mut result = render::json(&outcome, &ToolNames::default());
            (result["text"], result["workspace"]) = (text.into(), root.to_string_lossy().into());
            result
        });
        output::print_json(&Value::Array(objects.collect()))?;
    } else {
        for (root, outcome, text) in &outcomes {
            match outcome.is_refused() {
                true => output::print_error(&format!("in {}: {text}", root.display()), false),
                false => output::print(&format!("in {}:\n{text}", root.display()))?,
            }
        }
    }
    Ok(output::exit_code(!is_refused))
}
