//! The memory of Surehand between calls and between processes.
//!
//! [`Store`] is the interface; [`SqliteStore`] implements it in one file that several processes share. No SQL, row or
//! file name leaves this crate, and [`contract`] is the test suite for any other backend. [`board`] holds the data that
//! several checkouts share.
//!
//! ```
//! use surehand_core::{RelPath, Text, View};
//! use surehand_store::{SessionId, SqliteStore, Store, StoreRecord, StoreScope};
//!
//! let dir = tempfile::tempdir()?;
//! let (session, path) = (SessionId("s".into()), RelPath::new("a.txt")?);
//! let view = View::whole(&Text::new("one\n".into()).expect("valid text"));
//! let mut store = SqliteStore::open(&dir.path().join("state.db"), &StoreScope::default())?.store;
//! store.record(&[StoreRecord::Viewed { session: session.clone(), path: path.clone(), view: view.clone() }])?;
//! assert_eq!(store.view(&session, &path)?, Some(view));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod board;
mod checkpoint;
pub mod contract;
mod incident;
mod sqlite;
mod usage;

use std::{fmt, sync::Arc};

use serde::{Deserialize, Serialize};
use surehand_core::{
    ContentHash, FileRecord, LineMap, RelPath, Stamp, Task, TaskOwner, TaskStatus, Touch, View, undo::UndonePart,
};

pub use checkpoint::{Checkpoint, CheckpointFile, CheckpointId, CheckpointInfo, FileContent, FileState, NotKept};
pub use incident::{Incident, IncidentId, IncidentKind};
pub use sqlite::{OldHistory, OpenedStore, SqliteStore};
pub use surehand_core::{ChangeId, SessionId, timestamp::Millis};
pub use usage::{KeptAmount, StoreUsage};

/// One checkout's part of a store that all checkouts of a repository share.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StoreScope {
    /// The random name of the checkout. Records under other names are invisible.
    pub checkout: String,
    /// The directory of the work tree that paths are relative to; `None` for the top.
    pub below: Option<RelPath>,
}

/// A version of a file that was found at a path, with the stamp it had.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownFile {
    /// The version that the file had.
    pub version: ContentHash,
    /// The stamp of the file at that time.
    pub stamp: Stamp,
}

/// A file that sessions have touched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrackedFile {
    /// The path, relative to the scope's directory.
    pub path: RelPath,
    /// The version and status of the file.
    pub tracked: FileRecord,
    /// The stamp of that version, if it is known.
    pub stamp: Option<Stamp>,
}

/// A session with records in the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownSession {
    /// The id of the session.
    pub id: SessionId,
    /// The number of files that it has a view of.
    pub viewed: usize,
    /// The number of changes that it has made.
    pub changes: usize,
    /// The time of its last activity, if known.
    pub last_active: Option<Millis>,
}

/// The touched files, as of one turn.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TrackedFiles {
    /// The files, sorted by path.
    pub files: Vec<TrackedFile>,
    /// Pass it to [`Store::tracked`] to get what has changed since.
    pub turn: StoreTurn,
}

/// A counter of the writes to a store.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct StoreTurn(pub i64);

/// The effect of a session on one file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileEvent {
    /// The change that the event belongs to.
    pub change: ChangeId,
    /// The time of the change.
    pub at: Millis,
    /// The session that made the change.
    pub session: SessionId,
    /// The tool, or [`FileEvent::COMMAND`] and the command line.
    pub tool: String,
    /// The path of the file, before a move.
    pub path: RelPath,
    /// The new path, if the file was moved.
    pub moved_to: Option<RelPath>,
    /// The version before the event; `None` if the file was created.
    pub before: Option<ContentHash>,
    /// The version after the event; `None` if the file was deleted.
    pub after: Option<ContentHash>,
    /// The mode of the file, if it was deleted.
    pub mode: Option<u32>,
    /// The earlier changes of this file that this event undid.
    pub undoes: Vec<ChangeId>,
    /// The delta from the version after to the one before. Without it, the version before is stored in full, if at all.
    #[serde(skip)]
    pub delta: Option<ContentDelta>,
    /// The line map, if the change consists of edits. Comparing both versions would only guess among equal lines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lines: Option<LineMap>,
    /// The hunks that the event undid. A change that was undone only in part is listed here and not in `undoes`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub undone: Vec<UndonePart>,
    /// The change of the path other than its content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry: Option<EntryChange>,
}

/// A change of a path other than its content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EntryChange {
    /// The state before the change.
    pub before: PathEntry,
    /// The state after the change.
    pub after: PathEntry,
}

impl EntryChange {
    /// The permissions before and after, if both states are files with known permissions.
    pub fn modes(&self) -> Option<(u32, u32)> {
        match (&self.before, &self.after) {
            (PathEntry::File(Some(before)), PathEntry::File(Some(after))) => Some((*before, *after)),
            _ => None,
        }
    }
}

/// The state of a path, without the content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PathEntry {
    /// The path does not exist.
    Nothing,
    /// A regular file with these permissions, if they are known.
    File(Option<u32>),
    /// A symbolic link with this target.
    Link(String),
    /// A directory with these permissions.
    Directory(u32),
}

impl FileEvent {
    /// The prefix of the tool name in events of shell commands.
    pub const COMMAND: &str = "command: ";

    /// The path of the file after the event.
    pub fn name_after(&self) -> &RelPath {
        self.moved_to.as_ref().unwrap_or(&self.path)
    }

    /// Whether the event concerns this file, by its path before or after.
    pub fn is_about(&self, path: &RelPath) -> bool {
        self.path == *path || self.moved_to.as_ref() == Some(path)
    }

    /// The effect on each path. The new path of a moved file comes first, because its entry is derived from that of the
    /// old path.
    pub fn touches(&self) -> Vec<(&RelPath, Touch)> {
        // Only a link, a directory or permissions changed.
        if self.entry.is_some() && self.before == self.after {
            return Vec::new();
        }
        let deleted = (&self.path, Touch::Deleted { was: self.before });
        match (&self.moved_to, self.before, self.after) {
            (Some(to), _, Some(after)) => vec![(to, Touch::Moved { from: self.path.clone(), to: after }), deleted],
            (_, _, None) => vec![deleted],
            (None, None, Some(after)) => vec![(&self.path, Touch::Created(after))],
            (None, from, Some(to)) => vec![(&self.path, Touch::Modified { from, to })],
        }
    }

    /// Whether a shell command caused the event.
    pub fn is_command(&self) -> bool {
        self.tool.starts_with(Self::COMMAND)
    }
}

/// Selects events that match all given fields.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EventFilter {
    /// Only events of this session.
    pub session: Option<SessionId>,
    /// Only events that concern this file, by its path before or after.
    pub path: Option<RelPath>,
    /// Only events of this change.
    pub change: Option<ChangeId>,
    /// Whether to include the deltas, which may be large.
    pub with_deltas: bool,
}

/// The difference between two contents: the middle is replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContentDelta {
    /// The length of the common start, in bytes.
    pub prefix: usize,
    /// The length of the common end, in bytes.
    pub suffix: usize,
    /// The bytes of the other content between them.
    pub middle: Vec<u8>,
}

impl ContentDelta {
    /// The other content; `None` if `base` is too short for this delta.
    pub fn apply(&self, base: &[u8]) -> Option<Vec<u8>> {
        let head = base.get(..self.prefix)?;
        let tail = base.get(base.len().checked_sub(self.suffix)?..)?;
        Some([head, &self.middle, tail].concat())
    }
}

/// A call that was refused, with the number of refusals in a row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusedCall {
    /// A digest of the tool and its arguments.
    pub call: ContentHash,
    /// The path of the file, if the call had one.
    pub path: Option<RelPath>,
    /// The number of refusals in a row.
    pub count: u32,
}

/// Bytes with shared ownership.
#[derive(Clone)]
pub struct SharedBytes(Arc<dyn AsRef<[u8]> + Send + Sync>);

impl SharedBytes {
    /// Shares any value that has a byte representation.
    pub fn new(bytes: impl AsRef<[u8]> + Send + Sync + 'static) -> Self {
        Self(Arc::new(bytes))
    }

    /// The bytes of the shared value.
    pub fn bytes(&self) -> &[u8] {
        (*self.0).as_ref()
    }
}

impl fmt::Debug for SharedBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Shared({} bytes)", self.bytes().len())
    }
}

/// One entry to be written to the store.
#[derive(Debug, Clone)]
pub enum StoreRecord {
    /// A session has a new view of a file.
    Viewed {
        /// The session that read or wrote the file.
        session: SessionId,
        /// The path of the file.
        path: RelPath,
        /// The lines that the session has seen now.
        view: View,
    },
    /// A session was shown this version of a file as instructions for its directory.
    Given {
        /// The session that received the instructions.
        session: SessionId,
        /// The path of the instruction file.
        path: RelPath,
        /// The version of its content.
        version: ContentHash,
    },
    /// A session no longer has a view of a file, nor its instructions.
    Forgot {
        /// The session that forgets the file.
        session: SessionId,
        /// The path of the file.
        path: RelPath,
    },
    /// A session is still active without new records, so its views must be kept.
    InUse {
        /// The session that is still active.
        session: SessionId,
    },
    /// A session was reset: its views, instructions, refused calls and counts are deleted. Versions and events stay.
    Cleared {
        /// The session that was reset.
        session: SessionId,
    },
    /// A file was found with this version.
    Found {
        /// The path at which it was found.
        path: RelPath,
        /// The version and stamp of the file.
        file: KnownFile,
    },
    /// The content of a version, for [`Store::version`].
    Kept {
        /// The version of the content.
        version: ContentHash,
        /// The bytes of the content.
        content: SharedBytes,
        /// The time of its last use.
        at: Millis,
    },
    /// A file was changed. The store tracks it from now on. The same event may be recorded again by another process; it
    /// is stored once.
    Happened(FileEvent),
    /// A file was read, or found changed by another program. The store tracks it from now on.
    Touched {
        /// The path of the file.
        path: RelPath,
        /// The read or the outside change.
        touch: Touch,
        /// The time of the touch.
        at: Millis,
    },
    /// A call was refused.
    Refused {
        /// The session whose call was refused.
        session: SessionId,
        /// The call, with its number of refusals.
        refused: RefusedCall,
    },
    /// The cause of refused calls about this file was removed, so they no longer count.
    Mended {
        /// The session whose calls were refused.
        session: SessionId,
        /// The path of the file.
        path: RelPath,
    },
    /// The state of the workspace's files at one time. The contents that it refers to are recorded before it, and kept
    /// at least as long.
    Checkpointed(Checkpoint),
    /// The files were unchanged since a checkpoint when they were checked again. An earlier check does not move its
    /// time back.
    StillSo {
        /// The checkpoint that still describes the files.
        checkpoint: CheckpointId,
        /// The time of the check.
        at: Millis,
        /// The duration of the check, in milliseconds.
        took: u32,
    },
    /// An event for the log that is neither a change nor a checkpoint.
    Noticed(Incident),
    /// A session has rewritten a file this often with little change.
    Rewrote {
        /// The session that rewrote the file.
        session: SessionId,
        /// The path of the file.
        path: RelPath,
        /// The number of rewrites so far.
        count: u32,
    },
}

/// The tasks, and the current story.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StoryTasks {
    /// The current story, which new tasks belong to.
    pub story: String,
    /// The tasks of all stories, by number; only the open ones of other stories.
    pub tasks: Vec<Task>,
}

/// An update of the tasks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TaskUpdate {
    /// The session or run that makes the update; `None` for a person, who may change all tasks.
    pub by: Option<TaskOwner>,
    /// The story to update; the current one if `None`.
    pub story: Option<String>,
    /// Whether the story becomes the current one. The first story takes over the tasks that were added before it,
    /// unless the story is that of a run.
    pub begins_story: bool,
    /// Tasks to add, in this order, with their priorities; a task without one comes last.
    pub add: Vec<(String, Option<u32>)>,
    /// Tasks to change, by number.
    pub set: Vec<TaskChange>,
    /// Numbers of the tasks to remove.
    pub remove: Vec<u32>,
}

impl TaskUpdate {
    /// Checks the update, and puts the name of its story on one line.
    pub fn checked(mut self) -> Result<Self, StoreError> {
        let bad = |why: String| Err(StoreError::BadTaskUpdate { why });
        self.story = self.story.map(|story| story_name(&story));
        let is_long = |text: &str, most: usize| text.chars().count() > most;
        if let Some(story) = self.story.as_ref().filter(|story| is_long(story, MOST_OF_STORY)) {
            return bad(format!("the name of a story has at most {MOST_OF_STORY} characters, not {}", story.chars().count()));
        }
        let described =
            self.add.iter().map(|(words, _)| words).chain(self.set.iter().filter_map(|task| task.description.as_ref()));
        for description in described {
            if description.trim().is_empty() {
                return bad("a task needs a description".to_owned());
            }
            if is_long(description, MOST_OF_TASK) {
                return bad(format!("a description has at most {MOST_OF_TASK} characters; put the rest into a file"));
            }
        }
        let is_nothing = |task: &&TaskChange| task.status.is_none() && task.description.is_none() && task.priority.is_none();
        if let Some(task) = self.set.iter().find(is_nothing) {
            return bad(format!("task {}: nothing to change; give a status, a description or a priority", task.id));
        }
        Ok(self)
    }
}

/// The maximum number of characters of the name of a story, and of the description of a task.
const MOST_OF_STORY: usize = 200;
const MOST_OF_TASK: usize = 10_000;

/// The name of a story as stored: on one line, trimmed.
pub fn story_name(name: &str) -> String {
    name.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

/// A change of one task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskChange {
    /// The number of the task.
    pub id: u32,
    /// The new status, if it changes.
    pub status: Option<TaskStatus>,
    /// The new description, if it changes.
    pub description: Option<String>,
    /// The new priority, if it changes.
    pub priority: Option<u32>,
}

/// The bounds of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoreBounds {
    /// The maximum size of versions and events. Views and stamps do not count.
    pub bytes: u64,
    /// The number of days for which versions, events and views are kept after their last use. Only days with records
    /// count, in the order of their first records, so a wrong clock ages nothing by more than a day. Views are kept for
    /// at least two days.
    pub days: u32,
    /// The number of sessions whose views are kept, the last used first.
    pub sessions: usize,
}

/// The reason why a record could not be written or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// A newer Surehand wrote the state.
    #[error(
        "{path}: written by a newer surehand (schema {found}, this one knows {known}); update surehand, or move the file away to start anew"
    )]
    Newer {
        /// The path of the file.
        path: String,
        /// The format of the file.
        found: i64,
        /// The newest format that this program knows.
        known: i64,
    },
    /// The list has no task with this number.
    #[error("there is no task {id}")]
    NoSuchTask {
        /// The number in the update.
        id: u32,
    },
    /// The task belongs to another run or session.
    #[error("task {id} belongs to {whose}")]
    TaskOfOthers {
        /// The number of the task.
        id: u32,
        /// The owner: a run, a session or a story.
        whose: String,
    },
    /// The update is not valid.
    #[error("{why}")]
    BadTaskUpdate {
        /// Why it is not valid.
        why: String,
    },
    /// The file system of the file is full.
    #[error("{path}: cannot be written, the disk is full ({error}); make room there and try again")]
    DiskFull {
        /// The path of the file.
        path: String,
        /// The error of the system.
        error: std::io::Error,
    },
    /// The database, or the file system under it, failed.
    #[error("{path}: {error}")]
    Backend {
        /// The path of the file.
        path: String,
        /// The error of the database.
        error: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// Memory shared by all sessions of a workspace.
pub trait Store: Send {
    /// Writes all of these records, or none.
    fn record(&mut self, records: &[StoreRecord]) -> Result<(), StoreError>;

    /// The view that a session has of a file.
    fn view(&self, session: &SessionId, path: &RelPath) -> Result<Option<View>, StoreError>;

    /// [`Store::view`] for several files, in their order.
    fn views(&self, session: &SessionId, paths: &[RelPath]) -> Result<Vec<Option<View>>, StoreError> {
        paths.iter().map(|path| self.view(session, path)).collect()
    }

    /// The files that a session has a view of, by path.
    fn viewed_paths(&self, session: &SessionId) -> Result<Vec<RelPath>, StoreError>;

    /// The files that a session viewed last, latest first.
    fn lately_viewed(&self, session: &SessionId, limit: usize) -> Result<Vec<RelPath>, StoreError>;

    /// Every session with a view, by id, with the number of its views.
    fn sessions(&self) -> Result<Vec<(SessionId, usize)>, StoreError>;

    /// Every session that has a view, a change, an incident or a checkpoint, by id.
    fn known_sessions(&self) -> Result<Vec<KnownSession>, StoreError>;

    /// The files that a session was shown as instructions, by path, with the last version shown.
    fn given(&self, session: &SessionId) -> Result<Vec<(RelPath, ContentHash)>, StoreError>;

    /// The version and stamp last found at a path.
    fn file(&self, path: &RelPath) -> Result<Option<KnownFile>, StoreError>;

    /// [`Store::file`] for several paths, in their order.
    fn files(&self, paths: &[RelPath]) -> Result<Vec<Option<KnownFile>>, StoreError> {
        paths.iter().map(|path| self.file(path)).collect()
    }

    /// The paths at which a file with the identity of this stamp was last found.
    fn paths_of(&self, stamp: &Stamp) -> Result<Vec<RelPath>, StoreError>;

    /// The content of a version, if it is still kept.
    fn version(&self, version: &ContentHash) -> Result<Option<Vec<u8>>, StoreError>;

    /// Whether the content of this version is stored.
    fn has_version(&self, version: &ContentHash) -> Result<bool, StoreError> {
        Ok(self.version(version)?.is_some())
    }

    /// The content of a version that a file had at this path, if it is stored or can be computed from later versions.
    fn replaced_content(&self, path: &RelPath, version: &ContentHash) -> Result<Option<Vec<u8>>, StoreError>;

    /// The refused calls of a session whose cause still exists.
    fn refused_calls(&self, session: &SessionId) -> Result<Vec<RefusedCall>, StoreError>;

    /// The number of times a session has rewritten a file with little change.
    fn rewrite_count(&self, session: &SessionId, path: &RelPath) -> Result<u32, StoreError>;

    /// The latest events that match, newest first.
    fn events(&self, which: &EventFilter, limit: usize) -> Result<Vec<FileEvent>, StoreError>;

    /// The latest checkpoints of this directory, newest first, without their files.
    fn checkpoints(&self, limit: usize) -> Result<Vec<CheckpointInfo>, StoreError>;

    /// A checkpoint of this directory.
    fn checkpoint(&self, id: &CheckpointId) -> Result<Option<Checkpoint>, StoreError>;

    /// The latest incidents, newest first.
    fn incidents(&self, limit: usize) -> Result<Vec<Incident>, StoreError>;

    /// The tasks of this story, or of the current one.
    fn story_tasks(&self, story: Option<&str>) -> Result<StoryTasks, StoreError>;

    /// Applies an update to the tasks, all of it or nothing, and returns the tasks of its story.
    fn update_tasks(&mut self, change: &TaskUpdate) -> Result<StoryTasks, StoreError>;

    /// The touched files that changed after this turn, or all of them.
    fn tracked(&self, since: Option<StoreTurn>) -> Result<TrackedFiles, StoreError>;

    /// Deletes data that exceeds the bounds, the least recently used first. Deletes only a part at a time, so that
    /// other processes can write in between, and returns whether more is left. Call it after every write.
    fn trim(&mut self, bounds: &StoreBounds) -> Result<bool, StoreError>;

    /// Returns a part of the free space to the system. Returns whether more is left.
    fn release_space(&mut self) -> Result<bool, StoreError> {
        Ok(false)
    }
}
