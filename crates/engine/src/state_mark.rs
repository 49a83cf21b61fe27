//! Whether anything was recorded since the last look, at the cost of a few system calls. For programs that show the state
//! while others change it.

use crate::{disk::change_counter::ChangeCounter, workspace::Workspace};

/// The state of the records at one moment. Two that are equal mean that nothing was recorded in between.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StateMark {
    /// Counts changes as soon as they are acknowledged.
    acknowledged: u64,
    /// Moves when another connection has written to the database: views and refusals are not counted above.
    written: i64,
}

impl Workspace {
    /// The present mark. A store of the caller has none: there, only acknowledged changes count.
    pub fn state_mark(&self) -> StateMark {
        let acknowledged = self.state().dir().map(|dir| ChangeCounter::load(&dir).changed).unwrap_or_default();
        let written = self.store.ask_database(|store| store.data_version()).unwrap_or_default();
        StateMark { acknowledged, written }
    }
}
