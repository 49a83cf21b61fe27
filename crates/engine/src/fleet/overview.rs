//! Everything on the board, as people and the window see it. It is made from the local copy alone.

use std::{collections::BTreeMap, io};

use serde::Serialize;
use surehand_core::{Collision, LineRange, PathPattern, RelPath, TaskStatus, timestamp::Millis};
use surehand_store::board::{
    AgentId, BoardCopy, BoardTaskId, CheckoutId, ClaimId, ContentChange, Fence, FileChange, PathClaim, PostedHeadline, Presence,
    SharedHunk,
};

use super::{KnownRepository, LocalCopy, file_forecasts::FileForecasts};
use crate::{SessionId, session_names::SessionNames, time::now, workspace::Workspace};

/// What is on the board of a repository.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct FleetOverview {
    /// The repository.
    pub repository: KnownRepository,
    /// Where the board is.
    pub place: String,
    /// How old this is, in milliseconds; `None` if the board was never read.
    pub age: Option<Millis>,
    /// Why the board cannot be reached at present.
    pub trouble: Option<String>,
    /// The agents that are alive, then those that have ended not long ago.
    pub agents: Vec<AgentEntry>,
    /// The stories with shared tasks, by name.
    pub stories: Vec<StoryEntry>,
    /// The claims on paths.
    pub claims: Vec<ClaimEntry>,
    /// The files that differ from the fork point, by checkout.
    pub changes: Vec<ChangeEntry>,
    /// The changes of other checkouts that will conflict with those of this one.
    pub forecasts: Vec<Collision>,
    /// The last headlines, oldest first.
    pub headlines: Vec<PostedHeadline>,
}

/// An agent on the board.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AgentEntry {
    /// Its short name.
    pub name: String,
    /// Its session.
    pub session: SessionId,
    /// The program.
    pub client: String,
    /// Whether it is alive.
    pub alive: bool,
    /// How long ago it was last seen, in milliseconds.
    pub seen_ago: Millis,
    /// The machine.
    pub host: String,
    /// The root of its checkout.
    pub root: String,
    /// Whether this is the checkout from which the board is looked at.
    pub here: bool,
    /// The branch.
    pub branch: Option<String>,
    /// The story.
    pub story: Option<String>,
    /// The tasks that it holds.
    pub tasks: Vec<BoardTaskId>,
    /// The paths that it holds.
    pub claims: Vec<PathPattern>,
}

/// A story with its shared tasks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StoryEntry {
    /// Its name.
    pub story: String,
    /// Its tasks, by number.
    pub tasks: Vec<TaskEntry>,
}

/// A shared task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TaskEntry {
    /// Its number.
    pub id: BoardTaskId,
    /// What to do.
    pub description: String,
    /// The order: 1 comes before 2.
    pub priority: u32,
    /// Its status.
    pub status: TaskStatus,
    /// The short name of its holder.
    pub by: Option<String>,
    /// The fencing number of the claim.
    pub fence: Option<Fence>,
    /// How long the claim lasts unless it is renewed, in milliseconds.
    pub lasts: Option<Millis>,
    /// Whether its holder is gone, so that another agent may take it.
    pub abandoned: bool,
}

/// A claim on paths.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ClaimEntry {
    /// Its id.
    pub id: ClaimId,
    /// The paths.
    pub pattern: PathPattern,
    /// The short name of its holder.
    pub by: String,
    /// How long it lasts unless it is renewed, in milliseconds.
    pub lasts: Millis,
}

/// A file of a checkout that differs from the fork point.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ChangeEntry {
    /// The machine.
    pub host: String,
    /// The root of the checkout.
    pub root: String,
    /// Whether this is the checkout from which the board is looked at.
    pub here: bool,
    /// The file.
    pub path: RelPath,
    /// The kind of the change: `lines`, `deleted` or `binary`.
    pub kind: &'static str,
    /// The changed lines, by the numbers that they have there.
    pub lines: Vec<LineRange>,
    /// The short name of the agent that changed it last.
    pub by: Option<String>,
}

impl Workspace {
    /// What is on the board of its repository, from the local copy. `None` if the repository has no id yet.
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
        let Ok(forecasts) = FileForecasts::new(self) else { return Vec::new() };
        let of_file = |path: &RelPath| {
            let content = self.content_in_tree(path)?;
            Some(forecasts.of(path, content.as_deref(), copy, here))
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
    /// The short name of an agent.
    pub fn name_of(&self, agent: &AgentId) -> String {
        let known = self.names.get(agent).cloned();
        known.unwrap_or_else(|| names_of(&self.board).short(&SessionId(agent.0.clone())))
    }
}

/// The short names of all agents on a board.
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
        let entry = |checkout: &CheckoutId, change: &FileChange| {
            let (host, root) = self.root(checkout);
            let (kind, lines) = match &change.change {
                ContentChange::Lines(hunks) => ("lines", hunks.iter().filter_map(lines_after).collect()),
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

/// The lines of a hunk in the changed file; `None` if it only removes lines.
fn lines_after(hunk: &SharedHunk) -> Option<LineRange> {
    LineRange::from_indexes(hunk.after.start as usize..hunk.after.end as usize)
}
