//! An overview of the board for people and the page, made from the local copy alone.

use std::{collections::BTreeMap, io};

use serde::Serialize;
use surehand_core::{Collision, LineRange, PathPattern, RelPath, TaskStatus, timestamp::Millis};
use surehand_store::board::{
    AgentId, BoardCopy, BoardTaskId, CheckoutId, ClaimId, ContentChange, Fence, FileChange, PathClaim, PostedHeadline, Presence,
    SharedHunk,
};

use super::{Forecaster, KnownRepository, LocalCopy};
use crate::{SessionId, session_names::SessionNames, time::now, workspace::Workspace};

/// The content of the board of a repository.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct FleetOverview {
    /// The id of the repository, and its origin.
    pub repository: KnownRepository,
    /// The place of the board: `this machine`, or the server without user and password.
    pub place: String,
    /// The age of this content in milliseconds; `None` if the board was never read.
    pub age: Option<Millis>,
    /// Why the board is unreachable at present; `None` if it is reachable.
    pub trouble: Option<String>,
    /// The agents that are alive, then those that ended recently.
    pub agents: Vec<AgentEntry>,
    /// The stories with shared tasks, sorted by name.
    pub stories: Vec<StoryEntry>,
    /// The claims on paths that have not expired.
    pub claims: Vec<ClaimEntry>,
    /// The files that differ from the fork point: this checkout's first, then sorted by host, root and path.
    pub changes: Vec<ChangeEntry>,
    /// The changes of other checkouts that will conflict with those of this one.
    pub forecasts: Vec<Collision>,
    /// The latest headlines, oldest first.
    pub headlines: Vec<PostedHeadline>,
}

/// An agent on the board.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AgentEntry {
    /// The short name, such as `claude 3f2a`.
    pub name: String,
    /// The session id, which is also its id on the board.
    pub session: SessionId,
    /// The program that the agent runs in, such as `claude`.
    pub client: String,
    /// Whether its process counts as running.
    pub alive: bool,
    /// Milliseconds since it was last seen.
    pub seen_ago: Millis,
    /// The host name of its machine.
    pub host: String,
    /// Absolute path of its checkout.
    pub root: String,
    /// Whether it works in the checkout of this workspace.
    pub here: bool,
    /// The branch that it works on; `None` with a detached HEAD.
    pub branch: Option<String>,
    /// The story that it works on, if any.
    pub story: Option<String>,
    /// The shared tasks that it has claimed.
    pub tasks: Vec<BoardTaskId>,
    /// The paths that it has claimed.
    pub claims: Vec<PathPattern>,
}

/// A story with its shared tasks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StoryEntry {
    /// The name of the story.
    pub story: String,
    /// The shared tasks of the story, sorted by number.
    pub tasks: Vec<TaskEntry>,
}

/// A shared task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TaskEntry {
    /// The number of the task on this board.
    pub id: BoardTaskId,
    /// The text of the task.
    pub description: String,
    /// Tasks with smaller numbers come first.
    pub priority: u32,
    /// The status on the board.
    pub status: TaskStatus,
    /// The short name of the agent that has claimed it.
    pub by: Option<String>,
    /// The fencing number of the claim.
    pub fence: Option<Fence>,
    /// Milliseconds until the claim expires, unless it is renewed.
    pub lasts: Option<Millis>,
    /// Whether the claim has expired, so that another agent may take the task.
    pub abandoned: bool,
}

/// A claim on paths.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ClaimEntry {
    /// The id of the claim.
    pub id: ClaimId,
    /// The pattern for paths in the work tree.
    pub pattern: PathPattern,
    /// The short name of the agent that holds it.
    pub by: String,
    /// Milliseconds until the claim expires, unless it is renewed.
    pub lasts: Millis,
}

/// A file of a checkout that differs from the fork point.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ChangeEntry {
    /// The host name of its machine.
    pub host: String,
    /// Absolute path of the checkout.
    pub root: String,
    /// Whether this is the checkout of this workspace.
    pub here: bool,
    /// Path relative to the top of the work tree.
    pub path: RelPath,
    /// The kind of change: `lines`, `deleted` or `binary`.
    pub kind: &'static str,
    /// The changed lines, by their numbers in the changed file.
    pub lines: Vec<LineRange>,
    /// The short name of the agent that changed it last.
    pub by: Option<String>,
}

impl Workspace {
    /// The content of the board, from the local copy; `None` if the repository has no id yet.
    pub fn fleet_overview(&self) -> io::Result<Option<FleetOverview>> {
        let Some(repository) = self.known_repository() else { return Ok(None) };
        let copy = self.local_copy()?.unwrap_or_default();
        let here = self.checkout().ok().map(|checkout| checkout.id());
        let forecasts = here.as_ref().map(|here| self.collisions(&copy, here)).unwrap_or_default();
        Ok(Some(FleetOverview { forecasts, ..FleetOverview::of(repository, copy, here.as_ref(), now()) }))
    }

    /// The changes of other checkouts that will conflict with those of this one.
    fn collisions(&self, copy: &LocalCopy, here: &CheckoutId) -> Vec<Collision> {
        const MOST: usize = 200;
        let Some(mine) = copy.board.changes.get(here) else { return Vec::new() };
        let shared = mine.keys().filter(|path| copy.board.changes_elsewhere(path, here).next().is_some());
        let Ok(forecasts) = Forecaster::of(self) else { return Vec::new() };
        let of_file = |path: &RelPath| {
            let content = self.content_in_tree(path)?;
            Some(forecasts.collisions(path, content.as_deref(), copy, here))
        };
        shared.take(MOST).filter_map(of_file).flatten().map(|found| found.collision).collect()
    }
}

impl FleetOverview {
    fn of(repository: KnownRepository, copy: LocalCopy, here: Option<&CheckoutId>, now: Millis) -> Self {
        let (age, board_now) = (copy.age(now), copy.board_time(now));
        let LocalCopy { place, trouble, board, .. } = copy;
        let reader = BoardReader { board: &board, here, now: board_now, names: names_of(&board) };
        Self {
            repository,
            place,
            age,
            trouble,
            agents: reader.agents(),
            stories: reader.stories(),
            claims: board.claims.values().filter(|claim| claim.is_held(board_now)).map(|claim| reader.claim(claim)).collect(),
            changes: reader.changes(),
            forecasts: Vec::new(),
            headlines: board.headlines.iter().cloned().collect(),
        }
    }
}

impl LocalCopy {
    /// The short name of an agent, unique on this board.
    pub fn name_of(&self, agent: &AgentId) -> String {
        let known = self.names.get(agent).cloned();
        known.unwrap_or_else(|| names_of(&self.board).short(&SessionId(agent.0.clone())))
    }
}

pub(crate) fn names_of(board: &BoardCopy) -> SessionNames {
    SessionNames::of(board.agents.values().map(|presence| presence.agent.session.clone()))
}

struct BoardReader<'a> {
    board: &'a BoardCopy,
    here: Option<&'a CheckoutId>,
    now: Millis,
    names: SessionNames,
}

impl BoardReader<'_> {
    fn name(&self, agent: &AgentId) -> String {
        self.names.short(&SessionId(agent.0.clone()))
    }

    fn root(&self, checkout: &CheckoutId) -> (String, String) {
        let known = self.board.checkouts.get(checkout);
        known.map(|known| (known.host.clone(), known.path.clone())).unwrap_or_default()
    }

    fn agents(&self) -> Vec<AgentEntry> {
        let mut agents: Vec<AgentEntry> = self.board.agents.values().map(|presence| self.agent(presence)).collect();
        agents.sort_by(|one, other| {
            (!one.alive, one.seen_ago / 60_000, &one.name).cmp(&(!other.alive, other.seen_ago / 60_000, &other.name))
        });
        agents
    }

    fn agent(&self, presence: &Presence) -> AgentEntry {
        let agent = &presence.agent;
        let tasks = self.board.tasks.values().filter(|task| task.claim.as_ref().is_some_and(|claim| claim.by == agent.id));
        let claims = self.board.claims.values().filter(|claim| claim.by == agent.id && claim.is_held(self.now));
        AgentEntry {
            name: self.name(&agent.id),
            session: agent.session.clone(),
            client: agent.client.clone(),
            alive: presence.is_alive(self.now),
            seen_ago: (self.now - presence.seen).max(0),
            host: agent.host.clone(),
            root: self.root(&agent.checkout).1,
            here: self.here == Some(&agent.checkout),
            branch: agent.branch.clone(),
            story: agent.story.clone(),
            tasks: tasks.map(|task| task.id).collect(),
            claims: claims.map(|claim| claim.pattern.clone()).collect(),
        }
    }

    fn stories(&self) -> Vec<StoryEntry> {
        let mut stories: BTreeMap<&str, Vec<TaskEntry>> = BTreeMap::new();
        for task in self.board.tasks.values() {
            let claim = task.claim.as_ref();
            stories.entry(&task.story).or_default().push(TaskEntry {
                id: task.id,
                description: task.description.clone(),
                priority: task.priority,
                status: task.status,
                by: claim.map(|claim| self.name(&claim.by)),
                fence: claim.map(|claim| claim.fence),
                lasts: claim.map(|claim| (claim.until - self.now).max(0)),
                abandoned: claim.is_some_and(|claim| claim.until <= self.now),
            });
        }
        stories.into_iter().map(|(story, tasks)| StoryEntry { story: story.to_owned(), tasks }).collect()
    }

    fn claim(&self, claim: &PathClaim) -> ClaimEntry {
        let (id, pattern) = (claim.id.clone(), claim.pattern.clone());
        ClaimEntry { id, pattern, by: self.name(&claim.by), lasts: claim.until - self.now }
    }

    fn changes(&self) -> Vec<ChangeEntry> {
        // A hunk that only removes lines has none in the changed file.
        let lines = |hunk: &SharedHunk| LineRange::from_indexes(hunk.after.start as usize..hunk.after.end as usize);
        let entry = |checkout: &CheckoutId, change: &FileChange| {
            let (host, root) = self.root(checkout);
            let (kind, lines) = match &change.change {
                ContentChange::Lines(hunks) => ("lines", hunks.iter().filter_map(lines).collect()),
                ContentChange::Deleted => ("deleted", Vec::new()),
                ContentChange::Binary | ContentChange::Same => ("binary", Vec::new()),
            };
            let by = change.by.as_ref().map(|by| self.name(by));
            ChangeEntry { host, root, here: self.here == Some(checkout), path: change.path.clone(), kind, lines, by }
        };
        let mut changes: Vec<ChangeEntry> = self
            .board
            .changes
            .iter()
            .flat_map(|(checkout, files)| files.values().map(move |change| entry(checkout, change)))
            .collect();
        changes.sort_by(|one, other| {
            (!one.here, &one.host, &one.root, &one.path).cmp(&(!other.here, &other.host, &other.root, &other.path))
        });
        changes
    }
}
