//! Claims on paths in the board's file.

use rusqlite::{OptionalExtension, Row, params, types::Type};
use surehand_core::PathPattern;

use super::{Failure, Write};
use crate::board::{AgentId, BoardError, ClaimId, Fence, PathClaim, PathClaimRequest, checks::millis};

/// The columns for [`read`].
pub(super) const COLUMNS: &str = "id, holder, pattern, until, timeline, counter";

pub(super) fn read(row: &Row<'_>) -> rusqlite::Result<PathClaim> {
    let pattern = PathPattern::new(row.get_ref(2)?.as_str()?);
    Ok(PathClaim {
        id: ClaimId(row.get(0)?),
        by: AgentId(row.get(1)?),
        pattern: pattern.map_err(|error| rusqlite::Error::FromSqlConversionFailure(2, Type::Text, Box::new(error)))?,
        until: row.get(3)?,
        fence: Fence { timeline: row.get(4)?, counter: row.get(5)? },
    })
}

impl Write<'_> {
    pub(super) fn held_paths(&self, by: &AgentId) -> rusqlite::Result<Vec<(ClaimId, Fence)>> {
        let sql = format!("SELECT {COLUMNS} FROM path_claims WHERE holder = ?1 AND NOT is_over ORDER BY id");
        let held = |row: &Row<'_>| read(row).map(|claim| (claim.id, claim.fence));
        self.transaction.prepare_cached(&sql)?.query_map([&by.0], held)?.collect()
    }

    pub(super) fn claim_paths(&self, request: &PathClaimRequest) -> Result<PathClaim, Failure> {
        let sql = format!("SELECT {COLUMNS} FROM path_claims WHERE NOT is_over AND holder <> ?1");
        let others: rusqlite::Result<Vec<PathClaim>> =
            self.transaction.prepare_cached(&sql)?.query_map([&request.by.0], read)?.collect();
        for other in others?.into_iter().filter(|other| other.pattern.overlaps(&request.pattern)) {
            if other.is_held(self.now) {
                let (pattern, held) = (request.pattern.to_string(), other.pattern.to_string());
                return Err(BoardError::PathsHeld { pattern, held, by: other.by, until: other.until }.into());
            }
            // The lease has expired, and another agent takes over: the former holder can no longer extend it.
            self.run("UPDATE path_claims SET is_over = 1, turn = ?2 WHERE id = ?1", params![other.id.0, self.turn])?;
        }
        self.hold_paths(request)
    }

    fn hold_paths(&self, request: &PathClaimRequest) -> Result<PathClaim, Failure> {
        let sql = format!("SELECT {COLUMNS}, is_over FROM path_claims WHERE id = ?1");
        let known =
            self.transaction.prepare_cached(&sql)?.query_row([&request.id.0], |row| Ok((read(row)?, row.get(6)?))).optional()?;
        let fence = match known {
            Some((claim, _)) if claim.by != request.by || claim.pattern != request.pattern => {
                return Err(request.name_is_taken(&claim).into());
            }
            Some((claim, false)) => claim.fence,
            _ => Fence { timeline: self.timeline, counter: self.next_counter()? },
        };
        let claim = PathClaim {
            id: request.id.clone(),
            by: request.by.clone(),
            pattern: request.pattern.clone(),
            fence,
            until: self.now + millis(request.lease),
        };
        self.run(
            "INSERT OR REPLACE INTO path_claims VALUES (?1, ?2, ?3, ?4, 0, ?5, ?6, ?7)",
            params![claim.id.0, claim.by.0, claim.pattern.as_str(), claim.until, fence.timeline, fence.counter, self.turn],
        )?;
        Ok(claim)
    }

    fn next_counter(&self) -> rusqlite::Result<i64> {
        self.transaction.query_row("UPDATE board SET counter = counter + 1 RETURNING counter", [], |row| row.get(0))
    }

    pub(super) fn release_paths(&self, claim: &ClaimId) -> Result<(), Failure> {
        self.run(
            "UPDATE path_claims SET is_over = 1, until = min(until, ?2), turn = ?3 WHERE id = ?1 AND NOT is_over",
            params![claim.0, self.now, self.turn],
        )
    }
}
