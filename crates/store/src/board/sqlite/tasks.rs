//! Tasks, and the claims on them.

use rusqlite::{Connection, OptionalExtension, Row, params};
use surehand_core::{TaskStatus, timestamp::Millis};

use super::{Failure, Write};
use crate::board::{
    AgentId, BoardError, BoardTask, BoardTaskId, ClaimEnd, Fence, NewTask, TaskChoice, TaskClaim, TaskClaimRequest, TaskEdit,
    TaskEnd, TaskState, checks::millis,
};

/// The columns for [`read`].
pub(super) const COLUMNS: &str = "id, story, description, priority, status, holder, until, timeline, counter";

fn read_state(row: &Row<'_>) -> rusqlite::Result<TaskState> {
    let status = TaskStatus::named(row.get_ref(4)?.as_str()?).unwrap_or(TaskStatus::Pending);
    let last_fence = Fence { timeline: row.get(7)?, counter: row.get(8)? };
    let holder = row.get::<_, Option<String>>(5)?.zip(row.get::<_, Option<Millis>>(6)?);
    let claim = holder.map(|(by, until)| TaskClaim { by: AgentId(by), fence: last_fence, until });
    let task = BoardTask {
        id: BoardTaskId(row.get(0)?),
        story: row.get(1)?,
        description: row.get(2)?,
        priority: row.get(3)?,
        status,
        claim: claim.filter(|_| status == TaskStatus::InProgress),
    };
    Ok(TaskState { task, last_fence })
}

pub(super) fn read(row: &Row<'_>) -> rusqlite::Result<BoardTask> {
    Ok(read_state(row)?.task)
}

pub(super) fn of_story(connection: &Connection, story: &str) -> rusqlite::Result<Vec<BoardTask>> {
    let sql = format!("SELECT {COLUMNS} FROM tasks WHERE story = ?1 ORDER BY id");
    connection.prepare_cached(&sql)?.query_map([story], read)?.collect()
}

impl Write<'_> {
    pub(super) fn held_tasks(&self, by: &AgentId) -> rusqlite::Result<Vec<(BoardTaskId, Fence)>> {
        let sql = "SELECT id, timeline, counter FROM tasks WHERE holder = ?1 AND status = 'in_progress' ORDER BY id";
        let read = |row: &Row<'_>| Ok((BoardTaskId(row.get(0)?), Fence { timeline: row.get(1)?, counter: row.get(2)? }));
        self.transaction.prepare_cached(sql)?.query_map([&by.0], read)?.collect()
    }

    pub(super) fn add_task(&self, story: &str, task: &NewTask) -> Result<BoardTaskId, Failure> {
        self.run(
            "INSERT INTO tasks (key, story, description, priority, status, seen, turn) VALUES (?1, ?2, ?3, ?4, 'pending', ?5, ?6)
                ON CONFLICT DO NOTHING",
            params![task.key, story, task.description, task.priority, self.now, self.turn],
        )?;
        let mut query = self.transaction.prepare_cached("SELECT id FROM tasks WHERE key = ?1")?;
        Ok(BoardTaskId(query.query_row([&task.key], |row| row.get(0))?))
    }

    fn task(&self, id: BoardTaskId) -> Result<TaskState, Failure> {
        let found = self.find_task("id = ?1", params![id.0])?;
        found.ok_or(Failure::Board(BoardError::NoSuchTask(id)))
    }

    fn find_task(&self, which: &str, params: &[&dyn rusqlite::ToSql]) -> rusqlite::Result<Option<TaskState>> {
        let sql = format!("SELECT {COLUMNS} FROM tasks WHERE {which}");
        self.transaction.prepare_cached(&sql)?.query_row(params, read_state).optional()
    }

    pub(super) fn claim_task(&self, request: &TaskClaimRequest) -> Result<Option<BoardTask>, Failure> {
        if let Some(earlier) = self.find_task("claim = ?1", params![request.id.0])? {
            let is_held = earlier.task.claim.as_ref().is_some_and(|claim| claim.by == request.by);
            return if is_held { self.hold(&earlier, request).map(Some) } else { Ok(None) };
        }
        let free = match &request.choice {
            TaskChoice::This(id) => Some(self.task(*id)?),
            TaskChoice::NextOf(story) => self.next_task(story)?,
        };
        let Some(row) = free else { return Ok(None) };
        row.check_free(&request.by, self.now)?;
        self.hold(&row, request).map(Some)
    }

    fn next_task(&self, story: &str) -> rusqlite::Result<Option<TaskState>> {
        let abandoned = "story = ?1 AND status = 'in_progress' AND until <= ?2 ORDER BY priority, id LIMIT 1";
        match self.find_task(abandoned, params![story, self.now])? {
            Some(task) => Ok(Some(task)),
            None => self.find_task("story = ?1 AND status = 'pending' ORDER BY priority, id LIMIT 1", params![story]),
        }
    }

    /// Assigns a task to an agent. An agent that holds it already keeps its fencing number.
    fn hold(&self, row: &TaskState, request: &TaskClaimRequest) -> Result<BoardTask, Failure> {
        let held = row.task.claim.as_ref().filter(|claim| claim.by == request.by);
        let fence = held.map_or(Fence { timeline: self.timeline, counter: row.last_fence.counter + 1 }, |claim| claim.fence);
        let until = (self.now + millis(request.lease)).max(held.map_or(Millis::MIN, |claim| claim.until));
        self.run(
            "UPDATE tasks SET status = 'in_progress', claim = ?2, holder = ?3, until = ?4, timeline = ?5, counter = ?6, seen = ?7,
                turn = ?8 WHERE id = ?1",
            params![
                row.task.id.0,
                request.id.0,
                request.by.0,
                until,
                fence.timeline,
                fence.counter,
                self.now,
                self.turn
            ],
        )?;
        Ok(self.task(row.task.id)?.task)
    }

    pub(super) fn end_task(&self, id: BoardTaskId, fence: Fence, end: TaskEnd) -> Result<(), Failure> {
        let row = self.task(id)?;
        if row.ends_claim(fence, end)? == ClaimEnd::Repeated {
            return Ok(());
        }
        self.run(
            "UPDATE tasks SET status = ?2, holder = NULL, until = NULL, seen = ?3, turn = ?4 WHERE id = ?1",
            params![id.0, end.status().name(), self.now, self.turn],
        )
    }

    pub(super) fn edit_task(&self, edit: &TaskEdit) -> Result<BoardTask, Failure> {
        let row = self.task(edit.task)?;
        row.check_editable(edit.by.as_ref(), self.now)?;
        self.run(
            "UPDATE tasks SET description = coalesce(?2, description), priority = coalesce(?3, priority), seen = ?4, turn = ?5
                WHERE id = ?1",
            params![edit.task.0, edit.description, edit.priority, self.now, self.turn],
        )?;
        if let Some(status) = edit.status {
            // The number rises, so that later messages of the former holder are detected as late.
            self.run(
                "UPDATE tasks SET status = ?2, counter = counter + (holder IS NOT NULL), holder = NULL, until = NULL WHERE id = ?1",
                params![edit.task.0, status.name()],
            )?;
        }
        Ok(self.task(edit.task)?.task)
    }
}
