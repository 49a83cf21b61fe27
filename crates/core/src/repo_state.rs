//! The state of a repository as far as sessions touched it: which files there are, what was done to them, and what is left to do.
//! [`crate::render::snapshot`] puts it into a few hundred tokens.

use std::{fmt, sync::Arc};

use serde::{Deserialize, Serialize};

use crate::{file_list::FileList, hash::ContentHash, path::RelPath};

/// Milliseconds since 1970, UTC.
pub type Millis = i64;

/// What is known of a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepoState {
    /// The workspace, as an absolute path.
    pub work_dir: String,
    /// The files that were touched, by path, and how many others there are.
    pub files: Arc<FileList>,
    /// What there is to do.
    pub tasks: TaskList,
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
    /// A number that stays with it. No other task of the workspace ever has it.
    pub id: u32,
    /// What is to be done.
    pub description: String,
    /// How far it is.
    pub status: TaskStatus,
    /// What comes first: 1 before 2.
    pub priority: u32,
    /// The story that it belongs to; empty for none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub story: String,
    /// Whose it is; nobody's where a person has added it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<TaskOwner>,
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
    /// Not to be done any more.
    Cancelled,
}

/// A model that has tasks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", from = "String")]
pub enum TaskOwner {
    /// That of a run. Its list is its plan, and nobody else's.
    Run(String),
    /// That of a session. All sessions work on one list: a session begins anew with every conversation, and the work goes on.
    Session(String),
}

impl TaskOwner {
    /// Whether a task of this owner is for somebody else to change. A person is nobody here, and may change everything.
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

/// What there is to do, for somebody.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TaskList {
    /// The story that it is about; empty for none.
    pub story: String,
    /// All tasks of the story that are for him, by number; completed ones too.
    pub tasks: Vec<Task>,
    /// The open tasks that are not, by number.
    pub of_others: Vec<Task>,
}

impl TaskList {
    /// What of all these is for somebody who works on a story.
    pub fn of(story: &str, tasks: Vec<Task>, me: Option<&TaskOwner>) -> Self {
        let is_for_me = |task: &Task| task.story == story && !TaskOwner::is_others(task.owner.as_ref(), me);
        let (tasks, mut of_others): (Vec<Task>, Vec<Task>) = tasks.into_iter().partition(is_for_me);
        of_others.retain(Task::is_open);
        Self { story: story.to_owned(), tasks, of_others }
    }

    /// The tasks that are still open, in the order in which they are to be done.
    pub fn open(&self) -> Vec<&Task> {
        let mut open: Vec<&Task> = self.tasks.iter().filter(|task| task.is_open()).collect();
        open.sort_by_key(|task| (task.status != TaskStatus::InProgress, task.priority, task.id));
        open
    }

    /// Whether there were tasks, and none of them is open.
    pub fn is_done(&self) -> bool {
        !self.tasks.is_empty() && !self.tasks.iter().any(Task::is_open)
    }

    /// How many tasks have this status.
    pub fn count(&self, status: TaskStatus) -> usize {
        self.tasks.iter().filter(|task| task.status == status).count()
    }
}

impl Task {
    /// Whether there is still something to do.
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
    fn a_list_is_for_whom_it_is() {
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
