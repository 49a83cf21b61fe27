//! The values on a board.

use std::{fmt, ops::Range, str::FromStr, time::Duration};

use serde::{Deserialize, Serialize};
use surehand_core::{ContentHash, PathPattern, RelPath, SessionId, TaskStatus, string_ids, timestamp::Millis};

use super::BoardError;

string_ids! {
    /// A repository. All its worktrees and clones have the same id.
    RepositoryId
    /// A checkout, by [`Checkout::id`].
    CheckoutId
    /// An agent. Its name is unique in the repository, on all machines.
    AgentId
    /// A claim. The caller chooses the id; the same id means the same request.
    ClaimId
}

/// The number of a task, unique in the repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct BoardTaskId(pub i64);

impl fmt::Display for BoardTaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// The fencing number of a claim. Each new holder gets a higher one.
///
/// The timeline is compared first. It rises when a server takes over that may have missed the last writes, so the
/// number rises even if the counter starts again at a lower value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Fence {
    /// The timeline of the board's data.
    pub timeline: i64,
    /// The counter within the timeline.
    pub counter: i64,
}

impl fmt::Display for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.timeline, self.counter)
    }
}

impl FromStr for Fence {
    type Err = BoardError;

    fn from_str(text: &str) -> Result<Self, BoardError> {
        let number = |text: &str| text.parse::<i64>().ok().filter(|number| *number >= 0);
        let parts = text.split_once('.').and_then(|(timeline, counter)| Some((number(timeline)?, number(counter)?)));
        let (timeline, counter) =
            parts.ok_or_else(|| BoardError::BadValue(format!("{text:?} is not a fencing number, which is like 1.5")))?;
        Ok(Self { timeline, counter })
    }
}

/// A work tree on one of the machines.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checkout {
    /// The name of the machine.
    pub host: String,
    /// The device that holds its root.
    pub device: u64,
    /// The inode of its root on that device.
    pub inode: u64,
    /// The path of its root, for display.
    pub path: String,
}

impl Checkout {
    /// The id on the board, which stays the same if the directory is moved.
    pub fn id(&self) -> CheckoutId {
        let identity = format!("{}\0{}\0{}", self.host, self.device, self.inode);
        CheckoutId(ContentHash::of(identity.as_bytes()).to_string()[..32].to_owned())
    }
}

/// A session, as other agents see it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Agent {
    /// The id on the board.
    pub id: AgentId,
    /// The session of the agent.
    pub session: SessionId,
    /// The agent program, such as `codex`.
    pub client: String,
    /// The machine on which it runs.
    pub host: String,
    /// The checkout in which it works.
    pub checkout: CheckoutId,
    /// The branch that is checked out there; `None` for a detached HEAD.
    pub branch: Option<String>,
    /// The story that it works on, if any.
    pub story: Option<String>,
}

/// A message that an agent is alive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Heartbeat {
    /// The agent that is alive.
    pub agent: Agent,
    /// How long the agent counts as alive from now on.
    pub alive_for: Duration,
    /// How long its claims last from now on.
    pub lease: Duration,
}

/// The claims that an agent holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Holdings {
    /// The claimed tasks by number, with their fencing numbers.
    pub tasks: Vec<(BoardTaskId, Fence)>,
    /// The claimed paths by the id of the claim, with their fencing numbers.
    pub paths: Vec<(ClaimId, Fence)>,
}

/// An agent, and the time when it was last seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Presence {
    /// The agent, as of its last heartbeat.
    pub agent: Agent,
    /// The time of its last heartbeat.
    pub seen: Millis,
    /// The time until which it counts as alive.
    pub until: Millis,
}

impl Presence {
    /// Whether the agent is alive at this time of the board.
    pub fn is_alive(&self, now: Millis) -> bool {
        now < self.until
    }
}

/// A task to add.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewTask {
    /// A unique name in the repository, so that the task is added only once.
    pub key: String,
    /// The work to do, in words.
    pub description: String,
    /// The rank: tasks with 1 come before those with 2.
    pub priority: u32,
}

/// A task that all checkouts share.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BoardTask {
    /// The number of the task.
    pub id: BoardTaskId,
    /// The story that it belongs to.
    pub story: String,
    /// The work to do, in words.
    pub description: String,
    /// The rank: tasks with 1 come before those with 2.
    pub priority: u32,
    /// The status. A task whose holder has ended stays in progress until it is claimed again.
    pub status: TaskStatus,
    /// The current claim, if the task is in progress.
    pub claim: Option<TaskClaim>,
}

/// A claim on a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskClaim {
    /// The agent that holds it.
    pub by: AgentId,
    /// The fencing number of the claim.
    pub fence: Fence,
    /// When its lease ends, by the clock of the board.
    pub until: Millis,
}

/// A request to claim a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskClaimRequest {
    /// The id of the claim. If sent again, the request returns the same claim.
    pub id: ClaimId,
    /// The agent that will hold it.
    pub by: AgentId,
    /// The task, or how to choose it.
    pub choice: TaskChoice,
    /// How long the claim lasts without a heartbeat.
    pub lease: Duration,
}

/// Selects the task to claim.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskChoice {
    /// The next task of this story: abandoned tasks first, then by priority and number.
    NextOf(String),
    /// The task with this number.
    This(BoardTaskId),
}

/// The end of a claim on a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskEnd {
    /// The task is done.
    Complete,
    /// The task is no longer needed.
    Cancel,
    /// The task is free for other agents.
    Release,
}

impl TaskEnd {
    /// The status of the task after the claim has ended.
    pub fn status(self) -> TaskStatus {
        match self {
            Self::Complete => TaskStatus::Completed,
            Self::Cancel => TaskStatus::Cancelled,
            Self::Release => TaskStatus::Pending,
        }
    }
}

/// A change of a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskEdit {
    /// The number of the task.
    pub task: BoardTaskId,
    /// The agent that changes it; `None` for a person, who may change tasks that agents hold.
    pub by: Option<AgentId>,
    /// The new description, if it changes.
    pub description: Option<String>,
    /// The new priority, if it changes.
    pub priority: Option<u32>,
    /// The new status, if it changes. Only a claim sets `InProgress`.
    pub status: Option<TaskStatus>,
}

/// A request to claim paths.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathClaimRequest {
    /// The id of the claim. If sent again, the request extends the claim.
    pub id: ClaimId,
    /// The agent that will hold it.
    pub by: AgentId,
    /// The pattern of the paths.
    pub pattern: PathPattern,
    /// How long the claim lasts without a heartbeat.
    pub lease: Duration,
}

impl PathClaimRequest {
    /// The error that the id belongs to a different claim.
    pub fn name_is_taken(&self, known: &PathClaim) -> BoardError {
        BoardError::BadValue(format!(
            "the claim {} is there, of {} on {}; give this one a name of its own",
            known.id, known.by, known.pattern
        ))
    }
}

/// A claim on paths, current or ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathClaim {
    /// The id of the claim.
    pub id: ClaimId,
    /// The agent that holds it.
    pub by: AgentId,
    /// The pattern of the paths.
    pub pattern: PathPattern,
    /// The fencing number of the claim.
    pub fence: Fence,
    /// When its lease ends, by the clock of the board; in the past if the claim was released.
    pub until: Millis,
}

impl PathClaim {
    /// Whether the claim is held at this time of the board.
    pub fn is_held(&self, now: Millis) -> bool {
        now < self.until
    }
}

/// The difference of a file from the fork point, the commit that its checkout shares with the others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileChange {
    /// The path, relative to the top of the work tree.
    pub path: RelPath,
    /// The id of the commit at the fork point.
    pub fork_point: String,
    /// The blob of the file in that commit; `None` if the commit does not have it.
    pub base: Option<String>,
    /// How the content differs.
    pub change: ContentChange,
    /// The last agent that changed it, if known.
    pub by: Option<AgentId>,
    /// Rises with every report of this path by its checkout.
    pub revision: i64,
}

/// The difference of a file's content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ContentChange {
    /// The file no longer differs.
    Same,
    /// The file differs in these lines.
    Lines(Vec<SharedHunk>),
    /// The file was deleted.
    Deleted,
    /// The file differs, and one of the two contents is binary.
    Binary,
}

/// Lines of the base that were replaced. Indexes are 0-based and half-open.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SharedHunk {
    /// The lines of the base.
    pub before: Range<u32>,
    /// The lines of the file in their place.
    pub after: Range<u32>,
    /// The text of those lines, if the user allows it to leave the machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// A short description of an event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Headline {
    /// A unique id, so that the headline is posted only once.
    pub id: String,
    /// The checkout in which it happened.
    pub checkout: CheckoutId,
    /// The agent that caused it, if known.
    pub agent: Option<AgentId>,
    /// The kind of the event, such as `edit`.
    pub kind: String,
    /// The file that it concerns, if any.
    pub path: Option<RelPath>,
    /// The text of the headline.
    pub summary: String,
}

/// A headline with the time at which the board received it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PostedHeadline {
    /// The time when it was received, by the clock of the board.
    pub at: Millis,
    /// The headline as it was posted.
    #[serde(flatten)]
    pub headline: Headline,
}

/// The position of a reader. Only the board that created it understands it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Cursor(pub String);

/// The news on a board, for one reader.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct News {
    /// The cursor for the reader's next call.
    pub cursor: Cursor,
    /// The current time of the board.
    pub now: Millis,
    /// Whether this is everything on the board, so that the reader must forget anything else.
    pub is_everything: bool,
    /// New or changed checkouts.
    pub checkouts: Vec<Checkout>,
    /// New or changed agents.
    pub agents: Vec<Presence>,
    /// New or changed tasks.
    pub tasks: Vec<BoardTask>,
    /// New or changed claims on paths, including ended ones.
    pub paths: Vec<PathClaim>,
    /// Changed files, including those that no longer differ.
    pub changes: Vec<(CheckoutId, FileChange)>,
    /// Headlines, in the order in which the board received them.
    pub headlines: Vec<PostedHeadline>,
}

/// The bounds of a board.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BoardBounds {
    /// How long headlines are kept.
    pub headlines: Duration,
    /// How long agents, ended claims and files that no longer differ are kept after their last update.
    pub ended: Duration,
    /// How long completed and cancelled tasks are kept.
    pub closed_tasks: Duration,
    /// How long a checkout and its changes are kept after its last update.
    pub checkouts: Duration,
}

impl Default for BoardBounds {
    fn default() -> Self {
        let days = |days: u64| Duration::from_secs(days * 24 * 3600);
        Self { headlines: days(7), ended: days(7), closed_tasks: days(90), checkouts: days(30) }
    }
}
