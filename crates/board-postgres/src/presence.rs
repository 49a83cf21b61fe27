//! Checkouts, and agents that are alive.

use std::collections::BTreeMap;

use surehand_store::board::{AgentId, BoardTaskId, Checkout, ClaimId, Fence, Heartbeat, Holdings, checks::millis};
use tokio_postgres::Row;

use crate::{
    failure::Failure,
    news::as_json,
    session::{NOW, Session, TURN},
};

pub(crate) async fn join(session: &Session, checkout: &Checkout) -> Result<(), Failure> {
    let sql = format!(
        "INSERT INTO surehand.checkouts VALUES ($1, $2, $3, {NOW}, {TURN}) ON CONFLICT (repository, id)
            DO UPDATE SET checkout = excluded.checkout, seen = excluded.seen, turn = excluded.turn"
    );
    session.run(&sql, &[&session.repository, &checkout.id().0, &as_json(checkout)]).await?;
    Ok(())
}

/// The agents, tasks and claims are written in the order of their ids, so that two batches seldom lock each other out.
pub(crate) async fn heartbeat(session: &Session, beats: &[Heartbeat]) -> Result<Vec<Holdings>, Failure> {
    let ids: Vec<&str> = beats.iter().map(|beat| beat.agent.id.0.as_str()).collect();
    let leases: Vec<i64> = beats.iter().map(|beat| millis(beat.lease)).collect();
    session
        .write(async |_| {
            show_agents(session, beats, &ids).await?;
            // A lease is written again only after half of its time.
            for (table, is_held) in [("tasks", "t.status = 'in_progress'"), ("path_claims", "NOT t.is_over")] {
                let sql = format!(
                    "UPDATE surehand.{table} t SET until = {NOW} + beat.lease, turn = {TURN}
                        FROM unnest($2::text[], $3::bigint[]) AS beat (id, lease)
                        WHERE t.repository = $1 AND t.holder = beat.id AND {is_held} AND t.until <= {NOW} + beat.lease / 2"
                );
                session.run(&sql, &[&session.repository, &ids, &leases]).await?;
            }
            holdings(session, &ids).await
        })
        .await
}

/// Readers get a new `until` only when half of the shown time is over, not with every heartbeat.
async fn show_agents(session: &Session, beats: &[Heartbeat], ids: &[&str]) -> Result<(), Failure> {
    let agents: Vec<String> = beats.iter().map(|beat| as_json(&beat.agent)).collect();
    let lives: Vec<i64> = beats.iter().map(|beat| millis(beat.alive_for)).collect();
    let is_shown = "a.agent = excluded.agent AND a.until >= excluded.seen
        AND a.shown_until >= excluded.seen + (excluded.until - excluded.seen) / 2";
    let sql = format!(
        "INSERT INTO surehand.agents AS a (repository, id, agent, seen, until, shown_until, turn)
            SELECT $1, id, agent, {NOW}, {NOW} + life, {NOW} + life, {TURN}
                FROM unnest($2::text[], $3::text[], $4::bigint[]) AS beat (id, agent, life) ORDER BY id
            ON CONFLICT (repository, id) DO UPDATE SET agent = excluded.agent, seen = excluded.seen, until = excluded.until,
                shown_until = CASE WHEN {is_shown} THEN a.shown_until ELSE excluded.until END,
                turn = CASE WHEN {is_shown} THEN a.turn ELSE excluded.turn END"
    );
    session.run(&sql, &[&session.repository, &ids, &agents, &lives]).await?;
    // Checkouts are kept for weeks, and many agents share one, so a precision of one minute is enough.
    let checkouts: Vec<&str> = beats.iter().map(|beat| beat.agent.checkout.0.as_str()).collect();
    let sql = format!(
        "UPDATE surehand.checkouts SET seen = {NOW} WHERE repository = $1 AND id = ANY ($2::text[]) AND seen < {NOW} - 60000"
    );
    session.run(&sql, &[&session.repository, &checkouts]).await?;
    Ok(())
}

async fn holdings(session: &Session, ids: &[&str]) -> Result<Vec<Holdings>, Failure> {
    let mut held: BTreeMap<&str, Holdings> = ids.iter().map(|id| (*id, Holdings::default())).collect();
    let fence = |row: &Row| -> Result<Fence, Failure> { Ok(Fence { timeline: row.try_get(2)?, counter: row.try_get(3)? }) };
    let tasks = "SELECT holder, id, timeline, counter FROM surehand.tasks
        WHERE repository = $1 AND holder = ANY ($2::text[]) AND status = 'in_progress' ORDER BY id";
    for row in session.rows(tasks, &[&session.repository, &ids]).await? {
        if let Some(held) = held.get_mut(row.try_get::<_, &str>(0)?) {
            held.tasks.push((BoardTaskId(row.try_get(1)?), fence(&row)?));
        }
    }
    let paths = "SELECT holder, id, timeline, counter FROM surehand.path_claims
        WHERE repository = $1 AND holder = ANY ($2::text[]) AND NOT is_over ORDER BY id";
    for row in session.rows(paths, &[&session.repository, &ids]).await? {
        if let Some(held) = held.get_mut(row.try_get::<_, &str>(0)?) {
            held.paths.push((ClaimId(row.try_get(1)?), fence(&row)?));
        }
    }
    Ok(ids.iter().map(|id| held.get(id).cloned().unwrap_or_default()).collect())
}

pub(crate) async fn leave(session: &Session, agent: &AgentId) -> Result<(), Failure> {
    session
        .write(async |_| {
            for change in [
                format!(
                    "UPDATE surehand.agents SET until = least(until, {NOW}), shown_until = least(until, {NOW}), turn = {TURN}
                        WHERE repository = $1 AND id = $2"
                ),
                format!(
                    "UPDATE surehand.tasks SET status = 'pending', holder = NULL, until = NULL, counter = counter + 1, seen = {NOW},
                        turn = {TURN} WHERE repository = $1 AND holder = $2 AND status = 'in_progress'"
                ),
                format!(
                    "UPDATE surehand.path_claims SET is_over = true, until = least(until, {NOW}), turn = {TURN}
                        WHERE repository = $1 AND holder = $2 AND NOT is_over"
                ),
            ] {
                session.run(&change, &[&session.repository, &agent.0]).await?;
            }
            Ok(())
        })
        .await
}
