//! The operations of a board, carried out by the helper.

use std::sync::Arc;

use surehand_engine::{
    fleet::BoardCalls,
    store::board::{BoardAnswer, BoardCall, BoardError},
};

use crate::{
    client::{Helper, HelperError},
    protocol::WorkspacePlace,
};

/// A board that the helper of this user is connected to.
pub struct RemoteBoard {
    /// The client that passes the operations to the helper.
    pub helper: Arc<Helper>,
    /// The workspace whose repository the board belongs to.
    pub place: WorkspacePlace,
}

impl BoardCalls for RemoteBoard {
    fn call(&self, call: &BoardCall) -> Result<BoardAnswer, BoardError> {
        self.helper.call(&self.place, call).map_err(|error| match error {
            HelperError::Board(error) => error,
            error => BoardError::Unreachable { place: "the helper".to_owned(), why: error.to_string() },
        })
    }
}
