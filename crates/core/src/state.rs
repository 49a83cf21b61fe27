//! The state of a repository as far as sessions touched it: which files there are, what was done to them, and what is left to do.
//! [`crate::render::snapshot`] puts it into a few hundred tokens.

use serde::{Deserialize, Serialize};

use crate::{hash::ContentHash, path::RelPath};

/// Milliseconds since 1970, UTC.
pub type Millis = i64;

/// What is known of a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepoState {
    /// The workspace, as an absolute path.
    pub work_dir: String,
    /// What the work is about, as whoever gave it out calls it; empty when nobody did.
    pub story_id: String,
    /// The files that were touched, by path.
    pub files: Vec<FileState>,
    /// How many other files a scan has found in each directory, by path, with a slash at the end; the root's is empty.
    pub untouched: Vec<(String, usize)>,
    /// All tasks, in the order in which they are to be done; completed ones too.
    pub tasks: Vec<Task>,
    /// When it was last brought up to date.
    pub last_updated: Millis,
}

/// One file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileState {
    /// Relative to the workspace.
    pub path: RelPath,
    /// What it holds, or held when it was deleted.
    pub hash: ContentHash,
    /// How many bytes.
    pub size: u64,
    /// When its content last changed.
    pub modified: Millis,
    /// What was done to it.
    pub status: FileStatus,
    /// Whether somebody else has changed it since a session last saw it.
    pub changed_outside: bool,
}

/// What was done to a file since it is tracked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileStatus {
    /// It was made.
    Created,
    /// It was changed.
    Modified,
    /// It was looked at.
    Unchanged,
    /// It is gone.
    Deleted,
}

/// Something to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    /// A number that stays with it.
    pub id: u32,
    /// What is to be done.
    pub description: String,
    /// How far it is.
    pub status: TaskStatus,
    /// What comes first: 1 before 2.
    pub priority: u32,
}

/// How far a task is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskStatus {
    /// Not begun.
    Pending,
    /// Begun.
    InProgress,
    /// Done.
    Completed,
}

impl Task {
    /// Whether there is still something to do.
    pub fn is_open(&self) -> bool {
        self.status != TaskStatus::Completed
    }
}

/// The tasks that are still open, those in progress first, then by priority, then in the order in which they came.
pub fn open_tasks(tasks: &[Task]) -> Vec<&Task> {
    let mut open: Vec<&Task> = tasks.iter().filter(|task| task.is_open()).collect();
    open.sort_by_key(|task| (task.status != TaskStatus::InProgress, task.priority, task.id));
    open
}

impl RepoState {
    /// The tasks that are still open, in the order in which they are to be done.
    pub fn open_tasks(&self) -> Vec<&Task> {
        open_tasks(&self.tasks)
    }
}
