//! The `forget` call: drops the views of files that left the model's context.

use serde::Serialize;
use surehand_core::{Done, Refusal, outcome::Forgotten};

use crate::session::Session;

/// The files that no longer count as seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ForgetCall {
    /// All views of the session.
    Everything,
    /// The views of these files; paths in any spelling.
    Files(Vec<String>),
}

pub(super) fn forget(session: &mut Session, forget: &ForgetCall) -> Result<Done, Refusal> {
    let ForgetCall::Files(paths) = forget else {
        session.reset();
        return Ok(Done::Forgotten(Forgotten::Everything));
    };
    let workspace = session.workspace().clone();
    let paths = paths.iter().map(|path| session.path_of(path)).collect::<Result<Vec<_>, _>>()?;
    let forgotten = session.tracker().map_or_else(Vec::new, |tracker| tracker.forget(&workspace, &paths));
    Ok(Done::Forgotten(Forgotten::Files(forgotten)))
}
