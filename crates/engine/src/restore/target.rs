//! What a person names to go back to: a time, a change or a checkpoint.

use surehand_core::ChangeId;
use surehand_store::{CheckpointId, EventFilter, Millis, StoreError};

use crate::workspace::Workspace;

/// What is restored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RestoreTo {
    /// What was there at this moment.
    Time(Millis),
    /// What was there right after this change.
    Change(ChangeId),
    /// What a checkpoint says.
    Checkpoint(CheckpointId),
}

/// Why a name says nothing.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TargetError {
    /// Nothing has it.
    #[error("{0}: neither a time (10m, 14:05, 2026-01-31T14:05:00Z) nor a checkpoint or change that `surehand log` lists")]
    Unknown(String),
    /// Several have it.
    #[error("{name}: may be any of {}", .of.join(", "))]
    Ambiguous {
        /// As it was given.
        name: String,
        /// The names that begin with it.
        of: Vec<String>,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// So many changes are looked at.
const MOST_EVENTS: usize = 100_000;

/// So many names are given where several are possible.
const MOST_NAMES: usize = 5;

/// The checkpoint or change of a name, or of the beginning of one that no other has. A name that a person has given comes first.
pub fn find_target(workspace: &Workspace, name: &str) -> Result<RestoreTo, TargetError> {
    workspace.flush();
    let checkpoints = workspace.ask(|store| store.checkpoints(usize::MAX))?;
    if let Some(named) = checkpoints.iter().find(|checkpoint| checkpoint.name.as_deref() == Some(name)) {
        return Ok(RestoreTo::Checkpoint(named.id.clone()));
    }
    let events = workspace.ask(|store| store.events(&EventFilter::default(), MOST_EVENTS))?;
    let mut found: Vec<(String, RestoreTo)> = Vec::new();
    if !name.is_empty() {
        let of_checkpoints = checkpoints.into_iter().map(|known| (known.id.0.clone(), RestoreTo::Checkpoint(known.id)));
        let of_changes = events.into_iter().map(|event| (event.change.0.clone(), RestoreTo::Change(event.change)));
        found.extend(of_checkpoints.chain(of_changes).filter(|(id, _)| id.starts_with(name)));
        found.sort_by(|(one, _), (other, _)| one.cmp(other));
        found.dedup_by(|(one, _), (other, _)| one == other);
    }
    match (found.len(), found.iter().position(|(id, _)| id == name)) {
        (0, _) => Err(TargetError::Unknown(name.to_owned())),
        (1, _) => Ok(found.remove(0).1),
        (_, Some(exact)) => Ok(found.remove(exact).1),
        _ => {
            let of = found.into_iter().map(|(id, _)| id).take(MOST_NAMES).collect();
            Err(TargetError::Ambiguous { name: name.to_owned(), of })
        }
    }
}
