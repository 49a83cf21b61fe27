//! The state of a repository: the files that sessions touched, their status, and the tasks.
//! [`crate::render::snapshot`] renders it in a few hundred tokens.

use std::{fmt, sync::Arc};

use serde::{Deserialize, Serialize};

use crate::{file_list::FileList, hash::ContentHash, path::RelPath, timestamp::Millis};

/// The state of a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepoState {
    /// The workspace, as an absolute path.
    pub work_dir: String,
    /// The files that were touched, by path, and the number of all other files.
    pub files: Arc<FileList>,
    /// The tasks that the reader sees.
    pub tasks: TaskList,
    /// The time of the last change of a file or task.
    pub last_updated: Millis,
}

/// A file that a session touched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileState {
    /// The path, relative to the workspace.
    pub path: RelPath,
    /// The current version; for a deleted file the last one.
    pub hash: ContentHash,
    /// The size in bytes.
    pub size: u64,
    /// The time when the content last changed.
    pub modified: Millis,
    /// The change since the file was first tracked.
    pub status: FileStatus,
    /// Whether another writer has changed it since a session last saw it.
    pub changed_outside: bool,
}

/// The change of a file since it was first tracked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileStatus {
    /// A session created the file.
    Created,
    /// The file was modified.
    Modified,
    /// The file was only read.
    Unchanged,
    /// The file was deleted.
    Deleted,
}

/// A unit of work on the list of tasks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    /// The number of the task. No other task of the workspace ever has it.
    pub id: u32,
    /// The work to do, in one line.
    pub description: String,
    /// How far the work has come.
    pub status: TaskStatus,
    /// The rank: tasks with 1 come before those with 2.
    pub priority: u32,
    /// The story that the task belongs to; empty for none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub story: String,
    /// The run or session that added it; `None` if a person did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<TaskOwner>,
}

/// The progress of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskStatus {
    /// Work has not started.
    Pending,
    /// An agent or a person is working on it.
    InProgress,
    /// The work is done.
    Completed,
    /// The work is no longer needed.
    Cancelled,
}

impl TaskStatus {
    /// Every status, in the order of the work.
    pub const ALL: [Self; 4] = [Self::Pending, Self::InProgress, Self::Completed, Self::Cancelled];

    /// The name for models and programs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::InProgress => "in_progress",
            Self::Completed => "completed",
            Self::Cancelled => "cancelled",
        }
    }

    /// The status with this name, if it exists.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.name() == name)
    }
}

/// The run or session that a task belongs to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", from = "String")]
pub enum TaskOwner {
    /// A run, by its id. Its tasks are its own plan.
    Run(String),
    /// A session, by its id. All sessions share one list, because every conversation starts a new session while the
    /// work goes on.
    Session(String),
}

impl TaskOwner {
    /// Whether `me` may not change a task of this owner. A person (`None`) may change every task.
    pub fn is_others(owner: Option<&Self>, me: Option<&Self>) -> bool {
        match (owner, me) {
            (None, _) | (_, None) | (Some(Self::Session(_)), Some(Self::Session(_))) => false,
            (Some(owner), Some(me)) => owner != me,
        }
    }
}

impl fmt::Display for TaskOwner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Run(id) => write!(f, "run {id}"),
            Self::Session(id) => write!(f, "session {id}"),
        }
    }
}

impl From<TaskOwner> for String {
    fn from(owner: TaskOwner) -> Self {
        owner.to_string()
    }
}

impl From<String> for TaskOwner {
    fn from(text: String) -> Self {
        match text.split_once(' ') {
            Some(("run", id)) => Self::Run(id.to_owned()),
            Some(("session", id)) => Self::Session(id.to_owned()),
            _ => Self::Session(text),
        }
    }
}

/// A task on the board, which agents of all checkouts can claim.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SharedTask {
    /// The number of the task on the board.
    pub id: i64,
    /// The work to do, in one line.
    pub description: String,
    /// How far the work has come.
    pub status: TaskStatus,
    /// The rank: tasks with 1 come before those with 2.
    pub priority: u32,
    /// Whether the caller has claimed it.
    pub mine: bool,
    /// The short name of the agent that has claimed it.
    pub by: Option<String>,
}

/// The tasks of a story on the board.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SharedTaskList {
    /// The story of the tasks; empty for none.
    pub story: String,
    /// The tasks of the story, by number.
    pub tasks: Vec<SharedTask>,
    /// Whether the caller asked for a task.
    pub wanted: bool,
    /// The task that the caller has just claimed.
    pub claimed: Option<i64>,
    /// The pattern of the paths that the caller has just claimed.
    pub claimed_paths: Option<String>,
    /// The patterns of the paths that the caller has just released.
    pub released_paths: Vec<String>,
}

impl SharedTaskList {
    /// Whether the call only claimed or released paths, so that no tasks are reported.
    pub fn is_about_paths_alone(&self) -> bool {
        let has_paths = self.claimed_paths.is_some() || !self.released_paths.is_empty();
        has_paths && !self.wanted && self.tasks.is_empty()
    }
}

/// The tasks that one agent or person sees.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TaskList {
    /// The story of the tasks; empty for none.
    pub story: String,
    /// The reader's tasks of the story by number, including closed ones.
    pub tasks: Vec<Task>,
    /// The open tasks of other owners and stories, by number.
    pub of_others: Vec<Task>,
}

impl TaskList {
    /// Selects the tasks for `me`, who works on this story.
    pub fn of(story: &str, tasks: Vec<Task>, me: Option<&TaskOwner>) -> Self {
        let is_for_me = |task: &Task| task.story == story && !TaskOwner::is_others(task.owner.as_ref(), me);
        let (tasks, mut of_others): (Vec<Task>, Vec<Task>) = tasks.into_iter().partition(is_for_me);
        of_others.retain(Task::is_open);
        Self { story: story.to_owned(), tasks, of_others }
    }

    /// The open tasks, by priority.
    pub fn open(&self) -> Vec<&Task> {
        let mut open: Vec<&Task> = self.tasks.iter().filter(|task| task.is_open()).collect();
        open.sort_by_key(|task| (task.status != TaskStatus::InProgress, task.priority, task.id));
        open
    }

    /// Whether the list has tasks and all are closed.
    pub fn is_done(&self) -> bool {
        !self.tasks.is_empty() && !self.tasks.iter().any(Task::is_open)
    }

    /// The number of tasks with this status.
    pub fn count(&self, status: TaskStatus) -> usize {
        self.tasks.iter().filter(|task| task.status == status).count()
    }
}

impl Task {
    /// Whether the task is pending or in progress.
    pub fn is_open(&self) -> bool {
        matches!(self.status, TaskStatus::Pending | TaskStatus::InProgress)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(id: &str) -> Option<TaskOwner> {
        Some(TaskOwner::Run(id.to_owned()))
    }

    fn session(id: &str) -> Option<TaskOwner> {
        Some(TaskOwner::Session(id.to_owned()))
    }

    #[test]
    fn a_list_has_the_tasks_of_its_reader() {
        let task = |id, story: &str, owner: Option<TaskOwner>, status| {
            let (story, description) = (story.to_owned(), String::new());
            Task { id, description, status, priority: id, story, owner }
        };
        let all = vec![
            task(1, "old", None, TaskStatus::Completed),
            task(2, "old", run("old"), TaskStatus::Pending),
            task(3, "new", run("new"), TaskStatus::Completed),
            task(4, "new", None, TaskStatus::Pending),
            task(5, "new", session("a"), TaskStatus::Pending),
        ];
        let ids = |me: Option<TaskOwner>| {
            let list = TaskList::of("new", all.clone(), me.as_ref());
            let ids = |tasks: &[Task]| tasks.iter().map(|task| task.id).collect::<Vec<_>>();
            (ids(&list.tasks), ids(&list.of_others))
        };
        assert_eq!(ids(run("new")), (vec![3, 4], vec![2, 5]));
        assert_eq!(ids(session("b")), (vec![4, 5], vec![2]));
        assert_eq!(ids(None), (vec![3, 4, 5], vec![2]));
    }

    #[test]
    fn an_owner_is_a_word_and_a_name() {
        for owner in [run("k3"), session("a b")].into_iter().flatten() {
            assert_eq!(TaskOwner::from(owner.to_string()), owner);
        }
        assert_eq!(serde_json::to_string(&run("k3")).unwrap(), "\"run k3\"");
    }
}
