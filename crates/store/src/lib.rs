//! What Surehand remembers between calls and between processes.
//!
//! [`Store`] is the interface; [`SqliteStore`] implements it in one file that several processes share. No SQL, row or file
//! name leaves this crate, and [`contract`] is the test suite for any other backend.
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

mod checkpoint;
pub mod contract;
mod sqlite;

use std::{fmt, sync::Arc};

use serde::{Deserialize, Serialize};
use surehand_core::{ContentHash, FileRecord, LineMap, RelPath, Stamp, Task, TaskOwner, TaskStatus, Touch, View};

pub use checkpoint::{Checkpoint, CheckpointFile, CheckpointId, CheckpointInfo, FileContent, FileState, NotKept};
pub use sqlite::{OpenedStore, SqliteStore};
pub use surehand_core::{ChangeId, SessionId};

/// Milliseconds since 1970, UTC.
pub type Millis = i64;

/// One checkout's part of a store that all checkouts of a repository share.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StoreScope {
    /// The name of the checkout. Nothing that was recorded under another name is seen.
    pub checkout: String,
    /// The directory of the work tree that paths are relative to, where that is not its top.
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

/// Files that sessions have touched, as they are at one moment.
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
    /// The change that it is part of.
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
    /// The changes of this file that this one took back.
    pub undoes: Vec<ChangeId>,
    /// How to get from the version after back to the one before. Without it, the one before is kept by itself, if at all.
    #[serde(skip)]
    pub delta: Option<ContentDelta>,
    /// Which line became which, if the change itself was a sum of edits. A comparison of both versions would only guess among
    /// equal lines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lines: Option<LineMap>,
}

impl FileEvent {
    /// The prefix of the tool name in events of shell commands.
    pub const COMMAND: &str = "command: ";

    /// The name that the file has after it.
    pub fn name_after(&self) -> &RelPath {
        self.moved_to.as_ref().unwrap_or(&self.path)
    }

    /// Whether it is about this file, by its name before or after.
    pub fn is_about(&self, path: &RelPath) -> bool {
        self.path == *path || self.moved_to.as_ref() == Some(path)
    }

    /// What it did to its files. The new name of a moved file comes first, because its entry is made from that of the old
    /// name.
    pub fn touches(&self) -> Vec<(&RelPath, Touch)> {
        let deleted = (&self.path, Touch::Deleted { was: self.before });
        match (&self.moved_to, self.before, self.after) {
            (Some(to), _, Some(after)) => vec![(to, Touch::Moved { from: self.path.clone(), to: after }), deleted],
            (_, _, None) => vec![deleted],
            (None, None, Some(after)) => vec![(&self.path, Touch::Created(after))],
            (None, from, Some(to)) => vec![(&self.path, Touch::Modified { from, to })],
        }
    }

    /// Whether a command did it.
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
    /// In this change.
    pub change: Option<ChangeId>,
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

/// A call that was refused: which one, about which file, and how often in a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedCall {
    /// Tool and arguments, as a digest.
    pub call: ContentHash,
    /// The file it was about, if any.
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

/// One thing to remember.
#[derive(Debug, Clone)]
pub enum StoreRecord {
    /// A session has this view of a file now.
    Viewed {
        /// The session.
        session: SessionId,
        /// The file.
        path: RelPath,
        /// The view.
        view: View,
    },
    /// A session was given this version of a file as instructions for the directory that it is in.
    Given {
        /// The session.
        session: SessionId,
        /// The file.
        path: RelPath,
        /// Its version.
        version: ContentHash,
    },
    /// A session no longer has a view of a file, nor what it said as instructions.
    Forgot {
        /// The session.
        session: SessionId,
        /// The file.
        path: RelPath,
    },
    /// A session is still in use, although it has nothing new to record: its views must be kept.
    InUse {
        /// Which one.
        session: SessionId,
    },
    /// A session was reset: views, instructions, refused calls and counts are gone. Versions and events stay.
    Cleared {
        /// The session.
        session: SessionId,
    },
    /// A file was found to be this.
    Found {
        /// Its path.
        path: RelPath,
        /// Its version and stamp.
        file: KnownFile,
    },
    /// The content of a version, to be given back by [`Store::version`].
    Kept {
        /// Its name.
        version: ContentHash,
        /// The bytes.
        content: SharedBytes,
        /// The time of its last use.
        at: Millis,
    },
    /// A file was changed. It is tracked from there on.
    Happened(FileEvent),
    /// A file was read, or was found changed by another program. It is tracked from now on.
    Touched {
        /// Which one.
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
    /// The cause of refused calls about this file was removed, so they are no longer counted.
    Mended {
        /// The session.
        session: SessionId,
        /// The file.
        path: RelPath,
    },
    /// The files of the workspace at one moment. The contents that it names are kept before it, and at least as long.
    Checkpointed(Checkpoint),
    /// What a checkpoint says was still so at a later moment.
    StillSo {
        /// Which one.
        checkpoint: CheckpointId,
        /// When.
        at: Millis,
        /// How long it took to find out, in milliseconds.
        took: u32,
    },
    /// A session has rewritten a file this often without changing much.
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
    /// The story that is worked on: new tasks belong to it.
    pub story: String,
    /// The tasks of all stories, by number; of other stories only the open ones.
    pub tasks: Vec<Task>,
}

/// An update of the tasks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TaskUpdate {
    /// The session or run that makes it; `None` for a person, who may change everything.
    pub by: Option<TaskOwner>,
    /// The story that it is about. The one that is worked on, if none is named.
    pub story: Option<String>,
    /// Whether that story is worked on from here on. The first one takes over the tasks that were added before there was any, unless it is
    /// that of a run.
    pub begins_story: bool,
    /// Tasks to add, in this order, with their priority; without one they come last.
    pub add: Vec<(String, Option<u32>)>,
    /// Tasks to change.
    pub set: Vec<TaskChange>,
    /// Tasks that are not to be there any more.
    pub remove: Vec<u32>,
}

impl TaskUpdate {
    /// The change with the name of its story on one line, if it makes sense.
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

/// Characters of the name of a story, and of the description of a task.
const MOST_OF_STORY: usize = 200;
const MOST_OF_TASK: usize = 10_000;

/// The name of a story as it is kept: on one line, without blanks around it.
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
    /// The most bytes that versions and events take in the store. Views and stamps are not counted.
    pub bytes: u64,
    /// For how many days versions, events and the views of a session are kept after their last use. Only days on which something was recorded count,
    /// in the order in which they were recorded: a clock that is wrong makes nothing older by more than a day. Views are kept for
    /// two days at least.
    pub days: u32,
    /// The views of so many sessions are kept, those that were used last.
    pub sessions: usize,
}

/// Why something could not be remembered or recalled.
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
    /// The change makes no sense.
    #[error("{why}")]
    BadTaskUpdate {
        /// Why.
        why: String,
    },
    /// There is no room for it.
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
        /// Its version.
        error: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// Memory shared by all sessions of a workspace.
pub trait Store: Send {
    /// Remembers all of these, or none.
    fn record(&mut self, records: &[StoreRecord]) -> Result<(), StoreError>;

    /// What a session has seen of a file.
    fn view(&self, session: &SessionId, path: &RelPath) -> Result<Option<View>, StoreError>;

    /// [`Store::view`] for several files, in their order.
    fn views(&self, session: &SessionId, paths: &[RelPath]) -> Result<Vec<Option<View>>, StoreError> {
        paths.iter().map(|path| self.view(session, path)).collect()
    }

    /// The files of which a session has a view, by path.
    fn viewed_paths(&self, session: &SessionId) -> Result<Vec<RelPath>, StoreError>;

    /// The last files of which a session got a view, latest first.
    fn lately_viewed(&self, session: &SessionId, limit: usize) -> Result<Vec<RelPath>, StoreError>;

    /// Every session that has a view of something, with how many files, by name.
    fn sessions(&self) -> Result<Vec<(SessionId, usize)>, StoreError>;

    /// The files that a session was given as instructions, by path, with the version of each that it was given last.
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

    /// Whether there is a content of this version.
    fn has_version(&self, version: &ContentHash) -> Result<bool, StoreError> {
        Ok(self.version(version)?.is_some())
    }

    /// The content of a version that a file had at this path, if it is kept or can be computed from later versions.
    fn replaced_content(&self, path: &RelPath, version: &ContentHash) -> Result<Option<Vec<u8>>, StoreError>;

    /// The refused calls of a session whose cause still stands.
    fn refused_calls(&self, session: &SessionId) -> Result<Vec<RefusedCall>, StoreError>;

    /// The number of times a session has rewritten a file with little change.
    fn rewrite_count(&self, session: &SessionId, path: &RelPath) -> Result<u32, StoreError>;

    /// The latest of these events, newest first, without their deltas: what was replaced is asked for by [`Store::replaced_content`].
    fn events(&self, which: &EventFilter, limit: usize) -> Result<Vec<FileEvent>, StoreError>;

    /// The latest checkpoints of this directory, newest first, without their files.
    fn checkpoints(&self, limit: usize) -> Result<Vec<CheckpointInfo>, StoreError>;

    /// A checkpoint of this directory.
    fn checkpoint(&self, id: &CheckpointId) -> Result<Option<Checkpoint>, StoreError>;

    /// The tasks of this story, or of the current one.
    fn story_tasks(&self, story: Option<&str>) -> Result<StoryTasks, StoreError>;

    /// Applies an update to the tasks, all of it or nothing, and returns the tasks of its story.
    fn update_tasks(&mut self, change: &TaskUpdate) -> Result<StoryTasks, StoreError>;

    /// The files that sessions have touched; those about which there is something new since, or all.
    fn tracked(&self, since: Option<StoreTurn>) -> Result<TrackedFiles, StoreError>;

    /// Drops what exceeds the bounds, the least recently used first. Drops only a part, so that other processes can write in
    /// between, and says whether there is more. Call it after every write.
    fn trim(&mut self, bounds: &StoreBounds) -> Result<bool, StoreError>;

    /// Returns a part of the free space to the system. Says whether there is more to return.
    fn release_space(&mut self) -> Result<bool, StoreError> {
        Ok(false)
    }
}
