//! The permission for an edit that a tool of the program makes itself.

use std::sync::Weak;

use surehand_engine::AllowedEdit;

use crate::session::SessionCell;

/// The permission for an edit. The edit counts as running until it is adopted, or the permit is dropped.
#[derive(Debug)]
pub struct Permit {
    pub(crate) edit: AllowedEdit,
    pub(crate) number: u64,
    pub(crate) session: Weak<SessionCell>,
    /// The other changes in the files of the edit since the model saw them; empty if there are none. Give it to the
    /// model, whether or not the edit succeeds: the lines in it count as read.
    pub note: String,
}

impl Drop for Permit {
    fn drop(&mut self) {
        if let Some(session) = self.session.upgrade() {
            session.end_edit(self.number);
        }
    }
}
