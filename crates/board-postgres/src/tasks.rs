//! Tasks, and the claims on them.

use surehand_core::TaskStatus;
use surehand_store::board::{
    AgentId, BoardError, BoardTask, BoardTaskId, ClaimEnd, Fence, NewTask, TaskChoice, TaskClaim, TaskClaimRequest, TaskEdit,
    TaskEnd, TaskState, checks::millis,
};
use tokio_postgres::{Row, types::ToSql};

use crate::{
    failure::Failure,
    session::{NOW, Params, Session, TIMELINE, TURN, TransactionStart},
};

/// The columns for [`read`], of the table `t`.
pub(crate) const COLUMNS: &str = "t.id, t.story, t.description, t.priority, t.status, t.holder, t.until, t.timeline, t.counter";

/// Parses a row with the columns of [`COLUMNS`].
pub(crate) fn read(row: &Row) -> Result<TaskState, Failure> {
    let status = TaskStatus::named(row.try_get(4)?).unwrap_or(TaskStatus::Pending);
    let last_fence = Fence { timeline: row.try_get(7)?, counter: row.try_get(8)? };
    let holder = row.try_get::<_, Option<String>>(5)?.zip(row.try_get::<_, Option<i64>>(6)?);
    let claim = holder.map(|(by, until)| TaskClaim { by: AgentId(by), fence: last_fence, until });
    let task = BoardTask {
        id: BoardTaskId(row.try_get(0)?),
        story: row.try_get(1)?,
        description: row.try_get(2)?,
        priority: u32::try_from(row.try_get::<_, i64>(3)?).unwrap_or(u32::MAX),
        status,
        claim: claim.filter(|_| status == TaskStatus::InProgress),
    };
    Ok(TaskState { task, last_fence })
}

pub(crate) async fn of_story(session: &Session, story: &str) -> Result<Vec<BoardTask>, Failure> {
    let sql = format!("SELECT {COLUMNS} FROM surehand.tasks t WHERE t.repository = $1 AND t.story = $2 ORDER BY t.id");
    let rows = session.rows(&sql, &[&session.repository, &story]).await?;
    rows.iter().map(|row| Ok(read(row)?.task)).collect()
}

pub(crate) async fn add(session: &Session, story: &str, tasks: &[NewTask]) -> Result<Vec<BoardTaskId>, Failure> {
    let keys: Vec<&str> = tasks.iter().map(|task| task.key.as_str()).collect();
    let descriptions: Vec<&str> = tasks.iter().map(|task| task.description.as_str()).collect();
    let priorities: Vec<i64> = tasks.iter().map(|task| i64::from(task.priority)).collect();
    let sql = format!(
        "INSERT INTO surehand.tasks (repository, story, key, description, priority, status, seen, turn)
            SELECT $1, $2, key, description, priority, 'pending', {NOW}, {TURN}
                FROM unnest($3::text[], $4::text[], $5::bigint[]) WITH ORDINALITY AS task (key, description, priority, place)
                ORDER BY place
            ON CONFLICT (repository, key) DO NOTHING"
    );
    session.run(&sql, &[&session.repository, &story, &keys, &descriptions, &priorities]).await?;
    let sql = "SELECT t.id FROM unnest($2::text[]) WITH ORDINALITY AS task (key, place)
        JOIN surehand.tasks t ON t.repository = $1 AND t.key = task.key ORDER BY task.place";
    let rows = session.rows(sql, &[&session.repository, &keys]).await?;
    if rows.len() != tasks.len() {
        // A task that existed already has just been pruned.
        return Err(Failure::Conflict);
    }
    rows.iter().map(|row| Ok(BoardTaskId(row.try_get(0)?))).collect()
}

/// Locks a task until the end of the transaction.
async fn lock(session: &Session, id: BoardTaskId) -> Result<TaskState, Failure> {
    let sql = format!("SELECT {COLUMNS} FROM surehand.tasks t WHERE t.repository = $1 AND t.id = $2 FOR UPDATE");
    match session.row(&sql, &[&session.repository, &id.0]).await? {
        Some(row) => read(&row),
        None => Err(BoardError::NoSuchTask(id).into()),
    }
}

pub(crate) async fn claim(session: &Session, request: &TaskClaimRequest) -> Result<Option<BoardTask>, Failure> {
    if let TaskChoice::NextOf(story) = &request.choice
        && let Some(task) = claim_unlocked(session, request, story).await?
    {
        return Ok(Some(task));
    }
    session.write(async |head| claim_locked(session, head, request).await).await
}

/// The next task of the story `$5` with this status, locked until the end of the transaction.
fn next(status: &str, locked: &str) -> String {
    format!(
        "SELECT id FROM surehand.tasks WHERE repository = $1 AND story = $5 AND {status}
            ORDER BY priority, id LIMIT 1 FOR UPDATE {locked}"
    )
}

/// The next task of the story `$5`: first one whose holder has disappeared, then one that is pending.
fn next_of_story(locked: &str) -> String {
    let abandoned = next(&format!("status = 'in_progress' AND until <= {NOW}"), locked);
    format!("coalesce(({abandoned}), ({}))", next("status = 'pending'", locked))
}

/// Claims the next task that no other transaction has locked, in one statement. Finds none if the request is not new,
/// or if the timeline must be renewed.
async fn claim_unlocked(session: &Session, request: &TaskClaimRequest, story: &str) -> Result<Option<BoardTask>, Failure> {
    let which = format!(
        "s.timeline = {TIMELINE} AND NOT EXISTS (SELECT 1 FROM surehand.tasks WHERE repository = $1 AND claim = $3)
            AND t.id = {}",
        next_of_story("SKIP LOCKED")
    );
    hold(session, request, &which, &story).await
}

/// Claims a task, and waits for other transactions, so that none is overlooked.
async fn claim_locked(
    session: &Session,
    head: &TransactionStart,
    request: &TaskClaimRequest,
) -> Result<Option<BoardTask>, Failure> {
    let sql = format!("SELECT {COLUMNS} FROM surehand.tasks t WHERE t.repository = $1 AND t.claim = $2 FOR UPDATE");
    let earlier = session.row(&sql, &[&session.repository, &request.id.0]).await?;
    if let Some(earlier) = earlier.as_ref().map(read).transpose()? {
        let is_held = earlier.task.claim.as_ref().is_some_and(|claim| claim.by == request.by);
        return if is_held { hold(session, request, "t.id = $5", &earlier.task.id.0).await } else { Ok(None) };
    }
    match &request.choice {
        TaskChoice::This(id) => {
            lock(session, *id).await?.check_free(&request.by, head.now)?;
            hold(session, request, "t.id = $5", &id.0).await
        }
        TaskChoice::NextOf(story) => hold(session, request, &format!("t.id = {}", next_of_story("")), story).await,
    }
}

/// Gives the task `t` that matches, if there is one, to an agent. `which` may use the parameter `$5` and the row `s` of
/// the server. An agent that has the task already keeps its fencing number.
async fn hold(
    session: &Session,
    request: &TaskClaimRequest,
    which: &str,
    parameter: &(dyn ToSql + Sync),
) -> Result<Option<BoardTask>, Failure> {
    let sql = format!(
        "UPDATE surehand.tasks t SET status = 'in_progress', claim = $3, holder = $2, seen = {NOW}, turn = {TURN},
                timeline = CASE WHEN t.holder = $2 THEN t.timeline ELSE s.timeline END,
                counter = t.counter + CASE WHEN t.holder = $2 THEN 0 ELSE 1 END,
                until = greatest({NOW} + $4::bigint, CASE WHEN t.holder = $2 THEN t.until END)
            FROM surehand.server s WHERE t.repository = $1 AND {which} RETURNING {COLUMNS}"
    );
    let lease = millis(request.lease);
    let row = session.row(&sql, &[&session.repository, &request.by.0, &request.id.0, &lease, parameter]).await?;
    row.map(|row| Ok(read(&row)?.task)).transpose()
}

pub(crate) async fn end_claim(session: &Session, id: BoardTaskId, fence: Fence, end: TaskEnd) -> Result<(), Failure> {
    let sql = format!(
        "UPDATE surehand.tasks SET status = $5, holder = NULL, until = NULL, seen = {NOW}, turn = {TURN}
            WHERE repository = $1 AND id = $2 AND timeline = $3 AND counter = $4 AND status = 'in_progress' AND holder IS NOT NULL"
    );
    let status = end.status().name();
    let params: Params<'_> = &[&session.repository, &id.0, &fence.timeline, &fence.counter, &status];
    if session.run(&sql, params).await? == 1 {
        return Ok(());
    }
    session
        .write(async |_| {
            match lock(session, id).await?.ends_claim(fence, end)? {
                // The claim came back between the two statements.
                ClaimEnd::Now => Err(Failure::Conflict),
                ClaimEnd::Repeated => {
                    // After a crash the server may have lost its replica but not this row. To write it again makes the
                    // commit wait until the replica has it as well.
                    let sql = format!("UPDATE surehand.tasks SET seen = {NOW} WHERE repository = $1 AND id = $2");
                    session.run(&sql, &[&session.repository, &id.0]).await.map(drop)
                }
            }
        })
        .await
}

pub(crate) async fn edit(session: &Session, edit: &TaskEdit) -> Result<BoardTask, Failure> {
    session
        .write(async |head| {
            lock(session, edit.task).await?.check_editable(edit.by.as_ref(), head.now)?;
            // The fencing number rises with a new status, so that later messages of the former holder are recognised as
            // late.
            let sql = format!(
                "UPDATE surehand.tasks t SET description = coalesce($3, description), priority = coalesce($4, priority),
                        counter = counter + CASE WHEN $5::text IS NOT NULL AND holder IS NOT NULL THEN 1 ELSE 0 END,
                        holder = CASE WHEN $5 IS NULL THEN holder END, until = CASE WHEN $5 IS NULL THEN until END,
                        status = coalesce($5, status), seen = {NOW}, turn = {TURN}
                    WHERE repository = $1 AND id = $2 RETURNING {COLUMNS}"
            );
            let (priority, status) = (edit.priority.map(i64::from), edit.status.map(TaskStatus::name));
            let params: Params<'_> = &[&session.repository, &edit.task.0, &edit.description, &priority, &status];
            let row = session.row(&sql, params).await?.ok_or(Failure::Conflict)?;
            Ok(read(&row)?.task)
        })
        .await
}
