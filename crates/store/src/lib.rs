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

pub mod contract;
mod sqlite;

use std::{fmt, sync::Arc};

use serde::{Deserialize, Serialize};
use surehand_core::{ContentHash, LineMap, Owner, RelPath, Stamp, Task, TaskStatus, Touch, Tracked, View};

pub use sqlite::{OpenedStore, SqliteStore};
pub use surehand_core::{ChangeId, SessionId};

/// Milliseconds since 1970, UTC.
pub type Millis = i64;

/// Which part of a store is meant: several checkouts of a repository share one.
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
    /// What the system said about it.
    pub stamp: Stamp,
}

/// A file that sessions have touched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrackedFile {
    /// Where.
    pub path: RelPath,
    /// What became of it.
    pub tracked: Tracked,
    /// The stamp of that version, if it is known.
    pub stamp: Option<Stamp>,
}

/// Files that sessions have touched, as they are at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TrackedFiles {
    /// By path.
    pub files: Vec<TrackedFile>,
    /// To be given to [`Store::tracked`] to learn what comes after that moment.
    pub turn: StoreTurn,
}

/// How often something has been written to a store.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct StoreTurn(pub i64);

/// Something that a session did to a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileEvent {
    /// Which change it was part of.
    pub change: ChangeId,
    /// When.
    pub at: Millis,
    /// Who.
    pub session: SessionId,
    /// By which tool.
    pub tool: String,
    /// To which file.
    pub path: RelPath,
    /// The name that the file got.
    pub moved_to: Option<RelPath>,
    /// What it was; `None` when the file was created.
    pub before: Option<ContentHash>,
    /// What it is; `None` when the file was deleted.
    pub after: Option<ContentHash>,
    /// The mode of a file that was deleted.
    pub mode: Option<u32>,
    /// The changes of this file that this one took back.
    pub undoes: Vec<ChangeId>,
    /// How to make what it was from what it is. Without it, what it was is kept by itself, if at all.
    #[serde(skip)]
    pub delta: Option<ContentDelta>,
    /// Which line became which, if the change itself was a sum of edits. A comparison of both versions would only guess among
    /// equal lines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lines: Option<LineMap>,
}

impl FileEvent {
    /// What the tool of an event begins with that a command of a session did, before the command itself.
    pub const COMMAND: &str = "command: ";

    /// The name that the file has after it.
    pub fn name_after(&self) -> &RelPath {
        self.moved_to.as_ref().unwrap_or(&self.path)
    }

    /// Whether it is about this file, by its name before or after.
    pub fn is_about(&self, path: &RelPath) -> bool {
        self.path == *path || self.moved_to.as_ref() == Some(path)
    }

    /// What it did to the files that it is about. What a file was under its old name is asked for before that is gone.
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

/// Which events are asked for; those that fit all that is given.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EventFilter {
    /// Of this session.
    pub session: Option<SessionId>,
    /// About this file, by its name before or after.
    pub path: Option<RelPath>,
    /// Of this change.
    pub change: Option<ChangeId>,
}

/// What must be done to one content to get another: the middle of it is replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContentDelta {
    /// How many bytes at the start are the same.
    pub prefix: usize,
    /// How many bytes at the end are the same.
    pub suffix: usize,
    /// What is between.
    pub middle: Vec<u8>,
}

/// A call that was refused: which one, about which file, and how often in a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedCall {
    /// Tool and arguments, as a digest.
    pub call: ContentHash,
    /// The file it was about, if any.
    pub path: Option<RelPath>,
    /// How often.
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
        /// Who.
        session: SessionId,
        /// Of what.
        path: RelPath,
        /// What exactly.
        view: View,
    },
    /// A session was given this version of a file as instructions for the directory that it is in.
    Given {
        /// Who.
        session: SessionId,
        /// Which file.
        path: RelPath,
        /// What it said.
        version: ContentHash,
    },
    /// A session no longer has a view of a file, nor what it said as instructions.
    Forgot {
        /// Who.
        session: SessionId,
        /// Of what.
        path: RelPath,
    },
    /// A session is still in use, although it has nothing new to record: its views must be kept.
    InUse {
        /// Which.
        session: SessionId,
    },
    /// A session was reset: views, instructions, refused calls and counts are gone. Versions and events stay.
    Cleared {
        /// Who.
        session: SessionId,
    },
    /// A file was found to be this.
    Found {
        /// Where.
        path: RelPath,
        /// What.
        file: KnownFile,
    },
    /// The content of a version, to be given back by [`Store::version`].
    Kept {
        /// Its name.
        version: ContentHash,
        /// The bytes.
        content: SharedBytes,
        /// When it was last of use.
        at: Millis,
    },
    /// A file was changed. It is tracked from there on.
    Happened(FileEvent),
    /// A file was read, or was found changed by another program. It is tracked from now on.
    Touched {
        /// Which.
        path: RelPath,
        /// What was done.
        touch: Touch,
        /// When.
        at: Millis,
    },
    /// A call was refused.
    Refused {
        /// Whose.
        session: SessionId,
        /// Which, and how often.
        refused: RefusedCall,
    },
    /// What refused calls about this file were refused for has been mended.
    Mended {
        /// Whose calls.
        session: SessionId,
        /// Which file.
        path: RelPath,
    },
    /// A session has rewritten a file this often without changing much.
    Rewrote {
        /// Who.
        session: SessionId,
        /// Which file.
        path: RelPath,
        /// How often.
        count: u32,
    },
}

/// What there is to do, and what it is about.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StoryTasks {
    /// The story that is worked on: new tasks belong to it.
    pub story: String,
    /// The tasks of all stories, by number; of other stories only the open ones.
    pub tasks: Vec<Task>,
}

/// A change of what there is to do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TaskUpdate {
    /// The session or run that makes it; `None` for a person, who may change everything.
    pub by: Option<Owner>,
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
    /// How far it is now.
    pub status: Option<TaskStatus>,
    /// What is to be done.
    pub description: Option<String>,
    /// What comes first.
    pub priority: Option<u32>,
}

/// How much is remembered.
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
        /// What the system said.
        error: std::io::Error,
    },
    /// The backend failed.
    #[error("{path}: {error}")]
    Backend {
        /// The file.
        path: String,
        /// What it said.
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

    /// So many of them, the view that came last first.
    fn lately_viewed(&self, session: &SessionId, limit: usize) -> Result<Vec<RelPath>, StoreError>;

    /// Every session that has a view of something, with how many files, by name.
    fn sessions(&self) -> Result<Vec<(SessionId, usize)>, StoreError>;

    /// The files that a session was given as instructions, by path, with the version of each that it was given last.
    fn given(&self, session: &SessionId) -> Result<Vec<(RelPath, ContentHash)>, StoreError>;

    /// What was last found at a path.
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

    /// The content that a file had at this path, if it is still kept or can be made from what came in its place.
    fn replaced_content(&self, path: &RelPath, version: &ContentHash) -> Result<Option<Vec<u8>>, StoreError>;

    /// The calls of a session that were refused and not mended since.
    fn refused_calls(&self, session: &SessionId) -> Result<Vec<RefusedCall>, StoreError>;

    /// How often a session has rewritten a file without changing much.
    fn rewrite_count(&self, session: &SessionId, path: &RelPath) -> Result<u32, StoreError>;

    /// The latest of these events, newest first, without their deltas: what was replaced is asked for by [`Store::replaced_content`].
    fn events(&self, which: &EventFilter, limit: usize) -> Result<Vec<FileEvent>, StoreError>;

    /// What there is to do in this story, or in the one that is worked on.
    fn story_tasks(&self, story: Option<&str>) -> Result<StoryTasks, StoreError>;

    /// Changes what there is to do, all of it or nothing, and gives the result for the story that the change is about.
    fn update_tasks(&mut self, change: &TaskUpdate) -> Result<StoryTasks, StoreError>;

    /// The files that sessions have touched; those about which there is something new since, or all.
    fn tracked(&self, since: Option<StoreTurn>) -> Result<TrackedFiles, StoreError>;

    /// Drops what is beyond the bounds, what was of use longest ago first. Does a part of it, so that others can write in between;
    /// says whether there is more to drop. To be asked after everything that is recorded.
    fn trim(&mut self, bounds: &StoreBounds) -> Result<bool, StoreError>;

    /// Returns a part of the free space to the system. Says whether there is more to return.
    fn release_space(&mut self) -> Result<bool, StoreError> {
        Ok(false)
    }
}
