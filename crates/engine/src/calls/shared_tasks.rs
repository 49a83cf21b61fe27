//! The part of the `tasks` call that concerns shared tasks: those on the board, which agents of all checkouts can
//! claim.

use std::time::Duration;

use rustix::fs::{FileType, Stat};

use surehand_core::{BadPattern, Cause, Done, PathPattern, Refusal, SharedTask, SharedTaskList, Tool};
use surehand_store::board::{
    BoardAnswer, BoardCall, BoardError, BoardTask, BoardTaskId, ClaimId, Fence, NewTask, PathClaimRequest, TaskChoice,
    TaskClaimRequest, TaskEnd,
};

use super::tasks::{ClaimTarget, TasksCall};
use crate::{
    SessionId,
    fleet::{agent_of, names_of},
    fleet_link::FleetLink,
    random::random,
    session::Session,
    workspace::Workspace,
};

/// The priority of a task without one.
const LAST: u32 = 1000;

pub(super) fn update(session: &Session, call: &TasksCall) -> Result<Done, Refusal> {
    if !call.set.is_empty() || !call.remove.is_empty() || (!call.add.is_empty() && !call.shared) {
        return refuse("set, remove and add without shared are for your own tasks; send them in another call".to_owned());
    }
    let Some(fleet) = session.workspace().fleet() else {
        return refuse("there is no board here: board.enabled is false, or this program does not use one".to_owned());
    };
    let story = call.story.clone().unwrap_or_else(|| session.snapshot().tasks.story);
    let shared = SharedTasks { fleet, session: session.id(), story, lease: session.workspace().config().board.lease() };
    shared.add(call)?;
    for (ids, end) in [(&call.complete, TaskEnd::Complete), (&call.release, TaskEnd::Release)] {
        ids.iter().try_for_each(|id| shared.end(BoardTaskId(i64::from(*id)), end))?;
    }
    let paths = PathClaims { board: &shared, workspace: session.workspace() };
    let released_paths = call.release_paths.iter().map(|typed| paths.release(typed)).collect::<Result<_, _>>()?;
    let (mut claimed, mut claimed_paths) = (None, None);
    match &call.claim {
        None => {}
        Some(ClaimTarget::NextTask) => claimed = shared.claim(TaskChoice::NextOf(shared.story.clone()))?,
        Some(ClaimTarget::Task(id)) => claimed = shared.claim(TaskChoice::This(BoardTaskId(i64::from(*id))))?,
        Some(ClaimTarget::Paths(typed)) => claimed_paths = Some(paths.claim(typed)?),
    }
    let tasks = shared.list()?;
    let names = session.workspace().fleet_copy().map(|copy| names_of(&copy.board)).unwrap_or_default();
    let agent = agent_of(&shared.session);
    let line = |task: BoardTask| SharedTask {
        id: task.id.0,
        description: task.description,
        status: task.status,
        priority: task.priority,
        mine: task.claim.as_ref().is_some_and(|claim| claim.by == agent),
        by: task.claim.map(|claim| names.short(&SessionId(claim.by.0))),
    };
    Ok(Done::SharedTasks(SharedTaskList {
        story: shared.story.clone(),
        tasks: tasks.into_iter().map(line).collect(),
        wanted: matches!(call.claim, Some(ClaimTarget::NextTask | ClaimTarget::Task(_))),
        claimed: claimed.map(|task| task.0),
        claimed_paths,
        released_paths,
    }))
}

struct SharedTasks<'a> {
    fleet: &'a FleetLink,
    session: SessionId,
    story: String,
    /// The time that a claim lasts without a heartbeat.
    lease: Duration,
}

impl SharedTasks<'_> {
    fn add(&self, call: &TasksCall) -> Result<(), Refusal> {
        if call.add.is_empty() {
            return Ok(());
        }
        let task = |task: &super::NewTask| NewTask {
            key: unique(),
            description: task.description.trim().to_owned(),
            priority: task.priority.unwrap_or(LAST),
        };
        let tasks = call.add.iter().map(task).collect();
        self.ask(&BoardCall::AddTasks { story: self.story.clone(), tasks }).map(drop)
    }

    fn claim(&self, choice: TaskChoice) -> Result<Option<BoardTaskId>, Refusal> {
        let request = TaskClaimRequest { id: ClaimId(unique()), by: agent_of(&self.session), choice, lease: self.lease };
        let BoardAnswer::Tasks(tasks) = self.ask(&BoardCall::ClaimTask(request))? else { return Ok(None) };
        let Some(task) = tasks.into_iter().next() else { return Ok(None) };
        if let Some(claim) = &task.claim {
            self.fleet.note_fence(&self.session, task.id, claim.fence);
        }
        self.fleet.note_story(&self.session, &task.story);
        Ok(Some(task.id))
    }

    /// Ends a claim with the fencing number that this session received for it, so that it cannot end another agent's
    /// claim.
    fn end(&self, task: BoardTaskId, end: TaskEnd) -> Result<(), Refusal> {
        let fence = match self.fleet.fence(&self.session, task) {
            Some(fence) => fence,
            None => self.fence_on_board(task)?,
        };
        let done = self.ask(&BoardCall::EndTask { task, fence, end });
        self.fleet.forget_fence(&self.session, task);
        done.map(drop)
    }

    /// The fencing number of a claim that this session took in another process.
    fn fence_on_board(&self, task: BoardTaskId) -> Result<Fence, Refusal> {
        let claim = self.list()?.into_iter().find(|known| known.id == task).and_then(|known| known.claim);
        match claim.filter(|claim| claim.by == agent_of(&self.session)) {
            Some(claim) => Ok(claim.fence),
            None => refuse(format!("task {task} of story {:?} is not claimed by you; claim it first", self.story)),
        }
    }

    fn list(&self) -> Result<Vec<BoardTask>, Refusal> {
        match self.ask(&BoardCall::Tasks { story: self.story.clone() })? {
            BoardAnswer::Tasks(tasks) => Ok(tasks),
            _ => Ok(Vec::new()),
        }
    }

    /// Sends a request to the board. After an outage, the same request is sent once more: it has an id, so it is not
    /// carried out twice.
    fn ask(&self, call: &BoardCall) -> Result<BoardAnswer, Refusal> {
        let answer = match self.fleet.call(call) {
            Err(BoardError::Unreachable { .. }) => self.fleet.call(call),
            answer => answer,
        };
        answer.map_err(|error| match error {
            BoardError::Unreachable { .. } | BoardError::Server { .. } | BoardError::Denied { .. } | BoardError::Store(_) => {
                Refusal::of_call(Cause::Io { why: format!("{}: {error}", Tool::UpdateTasks.name()) })
            }
            error => refusal(error.to_string()),
        })
    }
}

/// Claims on paths of the work tree. Callers write the patterns relative to their workspace.
struct PathClaims<'a> {
    board: &'a SharedTasks<'a>,
    workspace: &'a Workspace,
}

impl PathClaims<'_> {
    fn claim(&self, typed: &str) -> Result<String, Refusal> {
        let (pattern, by) = (self.pattern(typed)?, agent_of(&self.board.session));
        let request = PathClaimRequest { id: self.id(&pattern), by, pattern: pattern.clone(), lease: self.board.lease };
        self.board.fleet.note_paths(&request.id);
        self.board.ask(&BoardCall::ClaimPaths(request))?;
        Ok(pattern.to_string())
    }

    fn release(&self, typed: &str) -> Result<String, Refusal> {
        let pattern = self.pattern(typed)?;
        let claim = self.id(&pattern);
        let is_on_board = || self.workspace.fleet_copy().is_some_and(|copy| copy.board.claims.contains_key(&claim));
        if !self.board.fleet.forget_paths(&claim) && !is_on_board() {
            return refuse(format!("{typed} is not claimed by you; release takes the pattern of the claim"));
        }
        let by = Some(agent_of(&self.board.session));
        self.board.ask(&BoardCall::ReleasePaths { claim, by })?;
        Ok(pattern.to_string())
    }

    /// The id depends only on the agent and the pattern, so claiming the same paths again extends the claim.
    fn id(&self, pattern: &PathPattern) -> ClaimId {
        ClaimId(format!("{} {pattern}", agent_of(&self.board.session)))
    }

    fn pattern(&self, typed: &str) -> Result<PathPattern, Refusal> {
        self.workspace.pattern_in_tree(typed).map_err(|error| refusal(format!("{typed:?} is not a pattern for paths: {error}")))
    }
}

impl Workspace {
    /// Converts a pattern for paths of the workspace to one for paths of the work tree. A directory matches everything
    /// below it.
    pub fn pattern_in_tree(&self, typed: &str) -> Result<PathPattern, BadPattern> {
        let root = self.path().to_str().and_then(|root| typed.strip_prefix(root)?.strip_prefix('/'));
        let pattern = PathPattern::new(root.unwrap_or(typed))?;
        let is_directory = typed.ends_with('/') || rustix::fs::stat(self.path().join(pattern.as_str())).is_ok_and(is_directory);
        let pattern = if is_directory { format!("{pattern}/**") } else { pattern.to_string() };
        match &self.copy.below {
            Some(below) => PathPattern::new(&format!("{below}/{pattern}")),
            None => PathPattern::new(&pattern),
        }
    }
}

fn is_directory(stat: Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::Directory
}

fn unique() -> String {
    format!("{:016x}{:016x}", random(), random())
}

pub(super) fn refuse<T>(why: String) -> Result<T, Refusal> {
    Err(refusal(why))
}

fn refusal(why: String) -> Refusal {
    Refusal::of_call(Cause::BadArguments { why: format!("{}: {why}", Tool::UpdateTasks.name()) })
}
