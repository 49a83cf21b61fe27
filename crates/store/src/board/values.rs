//! The plain values on a board.

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
    /// A claim. The caller chooses the id; the same id stands for the same request.
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

/// A work tree, on some machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checkout {
    /// The machine.
    pub host: String,
    /// The device of its root.
    pub device: u64,
    /// The inode of its root.
    pub inode: u64,
    /// The path of its root, for display.
    pub path: String,
}

impl Checkout {
    /// Its id on the board, which stays the same when the directory is moved.
    pub fn id(&self) -> CheckoutId {
        let identity = format!("{}\0{}\0{}", self.host, self.device, self.inode);
        CheckoutId(ContentHash::of(identity.as_bytes()).to_string()[..32].to_owned())
    }
}

/// A session, as other agents see it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Agent {
    /// Its id on the board.
    pub id: AgentId,
    /// Its session.
    pub session: SessionId,
    /// The program, such as `codex`.
    pub client: String,
    /// The machine.
    pub host: String,
    /// The checkout in which it works.
    pub checkout: CheckoutId,
    /// The branch that is checked out there.
    pub branch: Option<String>,
    /// The story that it works on.
    pub story: Option<String>,
}

/// A message that an agent is alive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Heartbeat {
    /// The agent.
    pub agent: Agent,
    /// How long it counts as alive from now on.
    pub alive_for: Duration,
    /// How long its claims last from now on.
    pub lease: Duration,
}

/// What an agent holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Holdings {
    /// Tasks by number.
    pub tasks: Vec<(BoardTaskId, Fence)>,
    /// Paths by the id of the claim.
    pub paths: Vec<(ClaimId, Fence)>,
}

/// An agent, and when it was last seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Presence {
    /// The agent.
    pub agent: Agent,
    /// The time of its last heartbeat.
    pub seen: Millis,
    /// The time until which it counts as alive.
    pub until: Millis,
}

impl Presence {
    /// Whether it is alive at this time of the board.
    pub fn is_alive(&self, now: Millis) -> bool {
        now < self.until
    }
}

/// A task to add.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewTask {
    /// A unique name in the repository, so that the task is added only once.
    pub key: String,
    /// What to do.
    pub description: String,
    /// The order: 1 comes before 2.
    pub priority: u32,
}

/// A task that all checkouts share.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BoardTask {
    /// Its number.
    pub id: BoardTaskId,
    /// The story that it belongs to.
    pub story: String,
    /// What to do.
    pub description: String,
    /// The order: 1 comes before 2.
    pub priority: u32,
    /// The status. A task whose holder is gone stays in progress until it is claimed again.
    pub status: TaskStatus,
    /// The current claim.
    pub claim: Option<TaskClaim>,
}

/// A claim on a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskClaim {
    /// The holder.
    pub by: AgentId,
    /// Its fencing number.
    pub fence: Fence,
    /// When its lease ends, by the clock of the board.
    pub until: Millis,
}

/// A request to claim a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskClaimRequest {
    /// Its id. Sent again, the request returns the same claim.
    pub id: ClaimId,
    /// The new holder.
    pub by: AgentId,
    /// The task.
    pub choice: TaskChoice,
    /// How long the claim lasts without a heartbeat.
    pub lease: Duration,
}

/// Which task to claim.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskChoice {
    /// The next one of this story: first those whose holders are gone, then by priority and number.
    NextOf(String),
    /// This task.
    This(BoardTaskId),
}

/// How a claim on a task ends.
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
    /// The task.
    pub task: BoardTaskId,
    /// The agent that changes it; `None` for a person, who may change tasks that agents hold.
    pub by: Option<AgentId>,
    /// Its new description.
    pub description: Option<String>,
    /// Its new priority.
    pub priority: Option<u32>,
    /// Its new status. Only a claim sets `InProgress`.
    pub status: Option<TaskStatus>,
}

/// A request to claim paths.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathClaimRequest {
    /// Its id. Sent again, the request extends the claim.
    pub id: ClaimId,
    /// The new holder.
    pub by: AgentId,
    /// The paths.
    pub pattern: PathPattern,
    /// How long the claim lasts without a heartbeat.
    pub lease: Duration,
}

impl PathClaimRequest {
    /// The error that its name is that of another claim.
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
    /// Its id.
    pub id: ClaimId,
    /// The holder.
    pub by: AgentId,
    /// The paths.
    pub pattern: PathPattern,
    /// Its fencing number.
    pub fence: Fence,
    /// When its lease ends, by the clock of the board; in the past if the claim was released.
    pub until: Millis,
}

impl PathClaim {
    /// Whether it holds at this time of the board.
    pub fn is_held(&self, now: Millis) -> bool {
        now < self.until
    }
}

/// How a file of a checkout differs from the fork point, the commit that it shares with the other checkouts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileChange {
    /// The file.
    pub path: RelPath,
    /// The fork point.
    pub fork_point: String,
    /// The blob of the file in that commit; `None` if the commit does not have it.
    pub base: Option<String>,
    /// The difference.
    pub change: ContentChange,
    /// The last agent that changed it, if known.
    pub by: Option<AgentId>,
    /// Rises with every report of this path by its checkout.
    pub revision: i64,
}

/// How the content of a file differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ContentChange {
    /// It no longer differs.
    Same,
    /// These lines differ.
    Lines(Vec<SharedHunk>),
    /// The file was deleted.
    Deleted,
    /// It differs, and one of the two contents is binary.
    Binary,
}

/// Lines of the base that were replaced. Indexes are 0-based and half-open.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SharedHunk {
    /// Lines of the base.
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
    /// The checkout.
    pub checkout: CheckoutId,
    /// The agent that did it.
    pub agent: Option<AgentId>,
    /// The kind, such as `edit`.
    pub kind: String,
    /// The file.
    pub path: Option<RelPath>,
    /// The text.
    pub summary: String,
}

/// A headline with the time at which the board received it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PostedHeadline {
    /// The time, by the clock of the board.
    pub at: Millis,
    /// The headline.
    #[serde(flatten)]
    pub headline: Headline,
}

/// The position of a reader. Only the board that created it understands it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Cursor(pub String);

/// What is new on a board.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct News {
    /// The cursor for the next call.
    pub cursor: Cursor,
    /// The time of the board.
    pub now: Millis,
    /// Whether this is everything on the board, so that the reader must forget anything else.
    pub is_everything: bool,
    /// Checkouts.
    pub checkouts: Vec<Checkout>,
    /// Agents.
    pub agents: Vec<Presence>,
    /// Tasks.
    pub tasks: Vec<BoardTask>,
    /// Claims on paths, including ended ones.
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
