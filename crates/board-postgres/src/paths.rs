//! Claims on paths: granted, taken over after they expire, and released.

use surehand_core::PathPattern;
use surehand_store::board::{AgentId, BoardError, ClaimId, Fence, PathClaim, PathClaimRequest, checks::millis};
use tokio_postgres::Row;

use crate::{
    failure::Failure,
    session::{NOW, Session, TURN, TransactionStart},
};

/// The columns for [`read`].
pub(crate) const COLUMNS: &str = "id, holder, pattern, until, timeline, counter";

/// Parses a row with the columns of [`COLUMNS`].
pub(crate) fn read(row: &Row) -> Result<PathClaim, Failure> {
    let pattern = PathPattern::new(row.try_get(2)?);
    Ok(PathClaim {
        id: ClaimId(row.try_get(0)?),
        by: AgentId(row.try_get(1)?),
        pattern: pattern.map_err(|error| BoardError::BadValue(format!("the board has a claim on a bad pattern: {error}")))?,
        until: row.try_get(3)?,
        fence: Fence { timeline: row.try_get(4)?, counter: row.try_get(5)? },
    })
}

pub(crate) async fn claim(session: &Session, request: &PathClaimRequest) -> Result<PathClaim, Failure> {
    session
        .write(async |head| {
            // No index knows which patterns overlap, so agents claim paths of a repository one after the other.
            let sql = "SELECT 1 FROM surehand.repositories WHERE id = $1 FOR UPDATE";
            session.row(sql, &[&session.repository]).await?;
            take_over(session, head, request).await?;
            hold(session, head, request).await
        })
        .await
}

/// Ends expired claims of other agents on these paths. Fails if one is held.
async fn take_over(session: &Session, head: &TransactionStart, request: &PathClaimRequest) -> Result<(), Failure> {
    let sql = format!("SELECT {COLUMNS} FROM surehand.path_claims WHERE repository = $1 AND NOT is_over AND holder <> $2");
    for row in session.rows(&sql, &[&session.repository, &request.by.0]).await? {
        let other = read(&row)?;
        if !other.pattern.overlaps(&request.pattern) {
            continue;
        }
        if other.is_held(head.now) {
            let (pattern, held) = (request.pattern.to_string(), other.pattern.to_string());
            return Err(BoardError::PathsHeld { pattern, held, by: other.by, until: other.until }.into());
        }
        // After this, its former holder can no longer extend it.
        let sql = format!(
            "UPDATE surehand.path_claims SET is_over = true, turn = {TURN}
                WHERE repository = $1 AND id = $2 AND NOT is_over AND until = $3"
        );
        if session.run(&sql, &[&session.repository, &other.id.0, &other.until]).await? == 0 {
            // Its holder has just extended or released it.
            return Err(Failure::Conflict);
        }
    }
    Ok(())
}

async fn hold(session: &Session, head: &TransactionStart, request: &PathClaimRequest) -> Result<PathClaim, Failure> {
    let sql = format!("SELECT {COLUMNS}, is_over FROM surehand.path_claims WHERE repository = $1 AND id = $2 FOR UPDATE");
    let known = session.row(&sql, &[&session.repository, &request.id.0]).await?;
    let known = known.map(|row| Ok::<_, Failure>((read(&row)?, row.try_get::<_, bool>(6)?))).transpose()?;
    let fence = match known {
        Some((claim, _)) if claim.by != request.by || claim.pattern != request.pattern => {
            return Err(request.name_is_taken(&claim).into());
        }
        Some((claim, false)) => claim.fence,
        _ => Fence { timeline: head.timeline, counter: next_counter(session).await? },
    };
    let sql = format!(
        "INSERT INTO surehand.path_claims VALUES ($1, $2, $3, $4, {NOW} + $5::bigint, false, $6, $7, {TURN})
            ON CONFLICT (repository, id) DO UPDATE SET until = excluded.until, is_over = false, timeline = excluded.timeline,
                counter = excluded.counter, turn = excluded.turn
            RETURNING {COLUMNS}"
    );
    let (by, pattern, lease) = (&request.by.0, request.pattern.as_str(), millis(request.lease));
    let row =
        session.row(&sql, &[&session.repository, &request.id.0, by, &pattern, &lease, &fence.timeline, &fence.counter]).await?;
    read(&row.ok_or(Failure::Conflict)?)
}

async fn next_counter(session: &Session) -> Result<i64, Failure> {
    let sql = "UPDATE surehand.repositories SET counter = counter + 1 WHERE id = $1 RETURNING counter";
    Ok(session.row(sql, &[&session.repository]).await?.ok_or(Failure::Conflict)?.try_get(0)?)
}

pub(crate) async fn release(session: &Session, claim: &ClaimId) -> Result<(), Failure> {
    let sql = format!(
        "UPDATE surehand.path_claims SET is_over = true, until = least(until, {NOW}), turn = {TURN}
            WHERE repository = $1 AND id = $2 AND NOT is_over"
    );
    session.run(&sql, &[&session.repository, &claim.0]).await?;
    Ok(())
}
