//! Finds out whether anything was recorded since the last check, with a few system calls. For programs that show the
//! state while other programs change it.

use crate::{disk::change_counter::ChangeCounter, workspace::Workspace};

/// The state of the records at one moment. If two marks are equal, nothing was recorded in between.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StateMark {
    /// Counts changes as soon as they are acknowledged.
    acknowledged: u64,
    /// Changes when another connection has written to the database, for views and refusals, which `acknowledged` does
    /// not count.
    written: i64,
}

impl Workspace {
    /// The present mark. With a custom store, only acknowledged changes count.
    pub fn state_mark(&self) -> StateMark {
        let acknowledged = self.state().dir().map(|dir| ChangeCounter::load(&dir).changed).unwrap_or_default();
        let written = self.store.ask_database(|store| store.data_version()).unwrap_or_default();
        StateMark { acknowledged, written }
    }
}
