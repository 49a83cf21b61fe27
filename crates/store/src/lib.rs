//! The memory of Surehand between calls and between processes.
//!
//! [`Store`] is the interface; [`SqliteStore`] implements it in one file that several processes share. No SQL, row or
//! file name leaves this crate, and [`contract`] is the test suite for any other backend. [`board`] is what several
//! checkouts share.
//!
//! ```
//! use surehand_core::{RelPath, Text, View};
//! use surehand_store::{SessionId, SqliteStore, Store, StoreRecord, StoreScope};
//!
//! let dir = tempfile::tempdir()?;
//! let (session, path) = (SessionId("s".into()), RelPath::new("a.txt")?);
//! let view = View::whole(&Text::new("one\n".into()).expect("it is text"));
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
    /// The name of the checkout. Records under other names are invisible.
    pub checkout: String,
    /// The directory of the work tree that paths are relative to, if not the top.
    pub below: Option<RelPath>,
}

/// A version of a file that was found at a path, with the stamp it had.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownFile {
    /// Its content.
    pub version: ContentHash,
    /// Its stamp.
    pub stamp: Stamp,
}

/// A file that sessions have touched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrackedFile {
    /// Its path.
    pub path: RelPath,
    /// Its version and status.
    pub tracked: FileRecord,
    /// The stamp of that version, if it is known.
    pub stamp: Option<Stamp>,
}

/// A session with records in the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownSession {
    /// Its id.
    pub id: SessionId,
    /// The number of files of which it has a view.
    pub viewed: usize,
    /// The number of changes that it has made.
    pub changes: usize,
    /// The time of its last activity, if known.
    pub last_active: Option<Millis>,
}

/// The touched files at one moment.
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

/// Something that a session did to a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileEvent {
    /// The change that it belongs to.
    pub change: ChangeId,
    /// The time.
    pub at: Millis,
    /// The session.
    pub session: SessionId,
    /// The tool, or [`FileEvent::COMMAND`] and the command line.
    pub tool: String,
    /// The file, by its name before.
    pub path: RelPath,
    /// Its new name, if it was moved.
    pub moved_to: Option<RelPath>,
    /// The version before; `None` if the file was created.
    pub before: Option<ContentHash>,
    /// The version after; `None` if the file was deleted.
    pub after: Option<ContentHash>,
    /// The mode of a file that was deleted.
    pub mode: Option<u32>,
    /// The earlier changes of this file that this event undid.
    pub undoes: Vec<ChangeId>,
    /// The delta from the version after to the one before. Without it, the version before is stored in full, if at all.
    #[serde(skip)]
    pub delta: Option<ContentDelta>,
    /// The line map, if the change was made of edits. Comparing both versions would only guess among equal lines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lines: Option<LineMap>,
    /// The hunks that it undid. A change that was undone only in part is named here and not in `undoes`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub undone: Vec<UndonePart>,
    /// What it did to the path besides the content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry: Option<EntryChange>,
}

/// A change of a path besides its content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EntryChange {
    /// The state before.
    pub before: PathEntry,
    /// The state after.
    pub after: PathEntry,
}

impl EntryChange {
    /// The permissions before and after, if it changed nothing else of a file.
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
    /// Nothing.
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

    /// Whether it concerns this file, by its name before or after.
    pub fn is_about(&self, path: &RelPath) -> bool {
        self.path == *path || self.moved_to.as_ref() == Some(path)
    }

    /// What it did to each path. The new name of a moved file comes first, because its entry is derived from that of
    /// the old name.
    pub fn touches(&self) -> Vec<(&RelPath, Touch)> {
        // Only a link, a directory or permissions.
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

    /// Whether a command caused it.
    pub fn is_command(&self) -> bool {
        self.tool.starts_with(Self::COMMAND)
    }
}

/// Selects events that match all given fields.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EventFilter {
    /// By this session.
    pub session: Option<SessionId>,
    /// About this file, by its name before or after.
    pub path: Option<RelPath>,
    /// Of this change.
    pub change: Option<ChangeId>,
    /// Whether to include the deltas.
    pub with_deltas: bool,
}

/// The difference between two contents: the middle is replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContentDelta {
    /// The length of the common start.
    pub prefix: usize,
    /// The length of the common end.
    pub suffix: usize,
    /// The bytes between them.
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
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedCall {
    /// A digest of the tool and its arguments.
    pub call: ContentHash,
    /// The file, if any.
    pub path: Option<RelPath>,
    /// The count.
    pub count: u32,
}

/// Bytes with shared ownership.
#[derive(Clone)]
pub struct SharedBytes(Arc<dyn AsRef<[u8]> + Send + Sync>);

impl SharedBytes {
    /// Shares what can be seen as bytes.
    pub fn new(bytes: impl AsRef<[u8]> + Send + Sync + 'static) -> Self {
        Self(Arc::new(bytes))
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        (*self.0).as_ref()
    }
}

impl fmt::Debug for SharedBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Shared({} bytes)", self.bytes().len())
    }
}

/// One record.
#[derive(Debug, Clone)]
pub enum StoreRecord {
    /// A session has a new view of a file.
    Viewed {
        /// The session.
        session: SessionId,
        /// The file.
        path: RelPath,
        /// The view.
        view: View,
    },
    /// A session was shown this version of a file as instructions for its directory.
    Given {
        /// The session.
        session: SessionId,
        /// The file.
        path: RelPath,
        /// Its version.
        version: ContentHash,
    },
    /// A session no longer has a view of a file, nor its instructions.
    Forgot {
        /// The session.
        session: SessionId,
        /// The file.
        path: RelPath,
    },
    /// A session is still active, although it has nothing to record, so its views must be kept.
    InUse {
        /// Which one.
        session: SessionId,
    },
    /// A session was reset: its views, instructions, refused calls and counts are deleted. Versions and events stay.
    Cleared {
        /// The session.
        session: SessionId,
    },
    /// A file was found with this version.
    Found {
        /// Its path.
        path: RelPath,
        /// Its version and stamp.
        file: KnownFile,
    },
    /// The content of a version, for [`Store::version`].
    Kept {
        /// The version.
        version: ContentHash,
        /// The bytes.
        content: SharedBytes,
        /// The time of its last use.
        at: Millis,
    },
    /// A file was changed. The store tracks it from now on.
    Happened(FileEvent),
    /// A file was read, or found changed by another program. The store tracks it from now on.
    Touched {
        /// The file.
        path: RelPath,
        /// What was done to it.
        touch: Touch,
        /// The time.
        at: Millis,
    },
    /// A call was refused.
    Refused {
        /// The session.
        session: SessionId,
        /// The call, with its count.
        refused: RefusedCall,
    },
    /// The cause of refused calls about this file was removed, so they no longer count.
    Mended {
        /// The session.
        session: SessionId,
        /// The file.
        path: RelPath,
    },
    /// The state of the workspace's files at one moment. The contents it names are recorded before it, and kept at
    /// least as long.
    Checkpointed(Checkpoint),
    /// The files were still as a checkpoint describes them at a later moment.
    StillSo {
        /// The checkpoint.
        checkpoint: CheckpointId,
        /// The time.
        at: Millis,
        /// How long the check took, in milliseconds.
        took: u32,
    },
    /// An incident.
    Noticed(Incident),
    /// A session has rewritten a file this often with little change.
    Rewrote {
        /// The session.
        session: SessionId,
        /// The file.
        path: RelPath,
        /// The count.
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
    /// The session or run that makes it; `None` for a person, who may change all tasks.
    pub by: Option<TaskOwner>,
    /// The story to update; the current one if `None`.
    pub story: Option<String>,
    /// Whether the story becomes the current one. The first story takes over the tasks that were added before, unless
    /// it is that of a run.
    pub begins_story: bool,
    /// Tasks to add, in this order, with their priorities; a task without one comes last.
    pub add: Vec<(String, Option<u32>)>,
    /// Tasks to change.
    pub set: Vec<TaskChange>,
    /// Tasks to remove.
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
    /// Its number.
    pub id: u32,
    /// Its new status.
    pub status: Option<TaskStatus>,
    /// Its new description.
    pub description: Option<String>,
    /// Its new priority.
    pub priority: Option<u32>,
}

/// The bounds of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoreBounds {
    /// The maximum size of versions and events. Views and stamps do not count.
    pub bytes: u64,
    /// How many days versions, events and views are kept after their last use. Only days with records count, in the
    /// order of their first records, so a wrong clock ages nothing by more than a day. Views are kept for at least two
    /// days.
    pub days: u32,
    /// The number of sessions whose views are kept, the last used first.
    pub sessions: usize,
}

/// Why a record could not be written or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The state was written by a newer Surehand.
    #[error(
        "{path}: written by a newer surehand (schema {found}, this one knows {known}); update surehand, or move the file away to start anew"
    )]
    Newer {
        /// The file.
        path: String,
        /// Its schema.
        found: i64,
        /// The newest schema that this program knows.
        known: i64,
    },
    /// There is no task with this number.
    #[error("there is no task {id}")]
    NoSuchTask {
        /// The number.
        id: u32,
    },
    /// The task belongs to another run or session.
    #[error("task {id} belongs to {whose}")]
    TaskOfOthers {
        /// The number.
        id: u32,
        /// A run, a session or a story.
        whose: String,
    },
    /// The update is invalid.
    #[error("{why}")]
    BadTaskUpdate {
        /// The reason.
        why: String,
    },
    /// The disk is full.
    #[error("{path}: cannot be written, the disk is full ({error}); make room there and try again")]
    DiskFull {
        /// The file.
        path: String,
        /// The error of the system.
        error: std::io::Error,
    },
    /// The backend failed.
    #[error("{path}: {error}")]
    Backend {
        /// The file.
        path: String,
        /// The error of the backend.
        error: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// Memory shared by all sessions of a workspace.
pub trait Store: Send {
    /// Records all of these, or none.
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

    /// Every session with a view, by name, with the number of files.
    fn sessions(&self) -> Result<Vec<(SessionId, usize)>, StoreError>;

    /// Every session that has a view, a change, a refused call or a checkpoint, by id.
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

    /// The refused calls of a session whose cause still stands.
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

    /// The touched files that changed since the given turn, or all.
    fn tracked(&self, since: Option<StoreTurn>) -> Result<TrackedFiles, StoreError>;

    /// Deletes what exceeds the bounds, the least recently used first. Deletes only a part, so that other processes can
    /// write in between, and returns whether there is more. Call it after every write.
    fn trim(&mut self, bounds: &StoreBounds) -> Result<bool, StoreError>;

    /// Returns a part of the free space to the system. Returns whether there is more.
    fn release_space(&mut self) -> Result<bool, StoreError> {
        Ok(false)
    }
}
