//! Carries out `restore` for a model. A file may be overwritten or deleted only if git has its content, or if the
//! session has written or read it.

use jiff::Zoned;
use serde::Serialize;
use surehand_core::{
    Cause, ChangeId, Done, Refusal, RelPath, Tool,
    outcome::{ChangeOutcome, undo::NotUndone},
};

use crate::{
    restore::{RestoreError, RestoreRequest, RestoreTo, RestoreToError},
    session::Session,
};

/// A request to restore files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RestoreCall {
    /// Files and directories in any spelling; empty means the whole workspace.
    pub paths: Vec<String>,
    /// A time, or the id or name of a change or checkpoint.
    pub to: String,
}

pub(super) fn restore(session: &mut Session, call: &RestoreCall) -> Result<Done, Refusal> {
    let cannot = |why: String| Refusal::of_call(Cause::CannotUndo { why });
    let bad = |error: RestoreToError| Refusal::of_call(Cause::BadArguments { why: error.to_string() });
    let to = RestoreTo::find(session.workspace(), &call.to, &Zoned::now()).map_err(bad)?;
    let request = RestoreRequest { paths: call.paths.clone(), to };
    let mut plan = session.plan_restore(&request).map_err(|error| match error {
        RestoreError::Path(refusal) => *refusal,
        error => cannot(error.to_string()),
    })?;
    let unread = session.leave_unread(&mut plan);
    if plan.files.is_empty() {
        return Err(match unread.first() {
            Some(path) => Refusal::of(path, Cause::unread()),
            None => cannot("the files are already what they were then".to_owned()),
        });
    }
    let restored = session.restore(&plan);
    let entries = plan.entries_of(&restored);
    let failed = restored.failed.into_iter().filter_map(|file| Some(NotUndone::failed(RelPath::new(&file.path).ok()?, file.why)));
    let unread = unread.into_iter().map(|path| NotUndone::failed(path, UNREAD.to_owned()));
    let left = failed.chain(unread).collect();
    let change = restored.changes.into_iter().next().unwrap_or_else(|| ChangeId(String::new()));
    Ok(Done::Changed(ChangeOutcome { entries, left, ..ChangeOutcome::of(change, Tool::Restore, restored.outcomes) }))
}

const UNREAD: &str = "others have changed it, and you have not read that; read it, then restore it";
