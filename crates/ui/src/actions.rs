//! The actions of the page: the same calls as `surehand undo`, `redo`, `restore`, `rescued` and `board release`. Each
//! has a preview, which changes nothing.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};
use surehand_engine::{
    Edit, Outcome, Session, SessionId, ToolNames, Workspace,
    change_log::ChangeSelection,
    core::{
        Refusal,
        edit::{UndoRequest, UndoTarget, WhoseChanges},
        file_diff::FileDiff,
        render::{self, PersonWords},
    },
    json as shown,
    rescued::{Rescue, RescuePlace},
    restore::{RestoreRequest, RestoreTo},
};

use crate::{
    api::{ApiError, cut, place},
    live::LiveState,
};

/// An action of the page.
#[derive(Debug, Deserialize)]
#[serde(tag = "act", rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Request {
    Undo {
        /// A change, a file for its last change, or a session for all of its changes.
        what: UndoWhat,
        #[serde(default)]
        force: bool,
    },
    Redo {},
    /// Restore files to an earlier state.
    Restore {
        /// The id of a change or a checkpoint.
        to: String,
        /// Files and directories; empty for everything.
        #[serde(default)]
        paths: Vec<String>,
    },
    /// Write a rescued file to its original path.
    Apply {
        rescue: String,
    },
    Drop {
        rescue: String,
    },
    /// End a claim on paths.
    CancelClaim {
        claim: String,
    },
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum UndoWhat {
    Change(String),
    File(String),
    Session(String),
}

/// The session of a person, as on the command line.
const PERSON: &str = "cli";

fn session(workspace: &Arc<Workspace>) -> Session {
    Session::continued(workspace.clone(), SessionId(PERSON.to_owned()))
}

/// The effect that a request would have, with diffs.
pub(crate) fn preview(live: &LiveState, request: &Request) -> Result<Value, ApiError> {
    let workspace = live.workspace();
    let mut session = session(workspace);
    match request {
        Request::Undo { what, force } => preview_undo(&mut session, undo_request(workspace, what, *force)?),
        Request::Redo {} => preview_undo(&mut session, redo_request()),
        Request::Restore { to, paths } => {
            let plan = session.preview_restore(&restore_request(workspace, to, paths)?).map_err(ApiError::absent)?;
            Ok(shown::restore(&plan, None))
        }
        Request::Apply { rescue } | Request::Drop { rescue } => {
            let rescue = workspace.find_rescue(rescue).map_err(ApiError::absent)?;
            let diff = workspace.rescue_diff(&rescue).map_err(ApiError::absent)?;
            let mut answer = shown::rescue(&rescue);
            answer["files"] = json!([file(&diff)]);
            Ok(answer)
        }
        Request::CancelClaim { claim } => live.board().preview_cancel(workspace, claim),
    }
}

pub(crate) fn carry_out(live: &LiveState, request: &Request) -> Result<Value, ApiError> {
    let workspace = live.workspace();
    let mut session = session(workspace);
    match request {
        Request::Undo { what, force } => outcome(workspace, &session.undo(&undo_request(workspace, what, *force)?)),
        Request::Redo {} => outcome(workspace, &session.undo(&redo_request())),
        Request::Restore { to, paths } => {
            let request = restore_request(workspace, to, paths)?;
            let plan = session.plan_restore(&request).map_err(ApiError::absent)?;
            let restored = session.restore(&plan);
            Ok(shown::restore(&plan, Some(&restored)))
        }
        Request::Apply { rescue } => apply(&mut session, &workspace.find_rescue(rescue).map_err(ApiError::absent)?),
        Request::Drop { rescue } => {
            let rescue = workspace.find_rescue(rescue).map_err(ApiError::absent)?;
            if let RescuePlace::Store(_) = rescue.place {
                return Err(ApiError::bad(format!("{}: it was applied or dropped before", rescue.id)));
            }
            workspace.drop_rescue(&rescue).map_err(ApiError::absent)?;
            Ok(json!({ "dropped": [rescue.id] }))
        }
        Request::CancelClaim { claim } => live.board().cancel(workspace, claim),
    }
}

fn apply(session: &mut Session, rescue: &Rescue) -> Result<Value, ApiError> {
    let restored = session.apply_rescue(rescue, None).map_err(ApiError::absent)?;
    match restored.failed.first() {
        Some(failed) => Err(ApiError::bad(format!("{}: {}", failed.path, failed.why))),
        None => Ok(json!({ "applied": true, "path": rescue.path, "changes": restored.changes })),
    }
}

fn undo_request(workspace: &Workspace, what: &UndoWhat, force: bool) -> Result<UndoRequest, ApiError> {
    let selection = match what {
        UndoWhat::Change(id) => ChangeSelection::Change(workspace.find_change(id).map_err(ApiError::absent)?),
        UndoWhat::File(path) => ChangeSelection::File(place(workspace, path)?, None),
        UndoWhat::Session(id) => ChangeSelection::Session(workspace.find_session(id).map_err(ApiError::absent)?),
    };
    Ok(selection.into_undo(force))
}

fn redo_request() -> UndoRequest {
    UndoRequest { which: UndoTarget::LastUndo, by: WhoseChanges::Anyone, force: false }
}

fn restore_request(workspace: &Workspace, to: &str, paths: &[String]) -> Result<RestoreRequest, ApiError> {
    let to = RestoreTo::from(workspace.find_logged(to).map_err(ApiError::absent)?);
    Ok(RestoreRequest { paths: paths.to_vec(), to })
}

fn preview_undo(session: &mut Session, request: UndoRequest) -> Result<Value, ApiError> {
    let plan = match session.plan(&Edit::Undo(request)) {
        Ok(plan) => plan,
        Err(refusal) => return Ok(json!({ "refused": why_not(&refusal), "files": [] })),
    };
    let files = plan.changes().map(|planned| {
        let after = planned.after();
        let path = planned.path_after().unwrap_or(planned.path());
        file(&FileDiff::between((planned.path(), planned.base()), (path, after)))
    });
    Ok(json!({ "files": files.collect::<Vec<_>>() }))
}

fn file(diff: &FileDiff) -> Value {
    let mut text = diff.to_string().into();
    cut(&mut text);
    json!({ "path": diff.path_after(), "diff": text })
}

fn outcome(workspace: &Workspace, outcome: &Outcome) -> Result<Value, ApiError> {
    let mut answer = render::json(outcome, &ToolNames::default());
    let names = workspace.session_names().map_err(ApiError::absent)?;
    let person = PersonWords { path: &str::to_owned, session: &|session| names.name(session) };
    answer["text"] = render::text_for_person(outcome, person).into();
    Ok(answer)
}

fn why_not(refusal: &Refusal) -> String {
    render::refusal::for_person(refusal, PersonWords { path: &str::to_owned, session: &SessionId::to_string })
}
