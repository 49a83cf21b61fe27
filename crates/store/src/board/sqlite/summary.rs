//! A summary of a board, for a person who asks which data is kept. Reading it creates and changes nothing.

use std::path::Path;

use rusqlite::{Connection, OpenFlags};

use super::{attempt, now};
use crate::board::{BoardError, Checkout};

/// The checkouts of a board, and whether it is in use.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BoardSummary {
    /// The checkouts that are registered on the board.
    pub checkouts: Vec<Checkout>,
    /// Whether an agent on the board is alive.
    pub is_in_use: bool,
}

impl BoardSummary {
    /// Reads the summary of the board at this path.
    pub fn read(path: &Path) -> Result<Self, BoardError> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_NOFOLLOW;
        Ok(attempt(path, || {
            let connection = Connection::open_with_flags(path, flags)?;
            let mut rows = connection.prepare("SELECT checkout FROM checkouts ORDER BY id")?;
            let checkouts: Vec<String> = rows.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
            let is_in_use =
                connection.query_row("SELECT EXISTS (SELECT 1 FROM agents WHERE until > ?1)", [now()], |row| row.get(0))?;
            // Unreadable checkouts are left out.
            let checkouts = checkouts.iter().filter_map(|checkout| serde_json::from_str(checkout).ok()).collect();
            Ok(Self { checkouts, is_in_use })
        })?)
    }
}
