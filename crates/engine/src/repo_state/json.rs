//! The JSON form of the repository state: `.surehand/repostate.json`, and the output of `--json`.

use serde::{Deserialize, Serialize};
use serde_json::json;
use surehand_core::{
    ContentHash, FileState, FileStatus, RelPath, RepoState, Task, TaskList, TaskStatus,
    file_kind::type_of,
    timestamp::{Millis, rfc3339},
};

/// A state in the documented format and order.
#[derive(Serialize)]
struct StateJson<'a> {
    work_dir: &'a str,
    story_id: &'a str,
    files: Vec<FileJson<'a>>,
    open_tasks: Vec<TaskJson<'a>>,
    last_updated: String,
}

#[derive(Serialize)]
pub(super) struct FileJson<'a> {
    path: &'a RelPath,
    hash: ContentHash,
    size: u64,
    mod_time: String,
    r#type: String,
    status: FileStatus,
    /// Checking a file updates its hash, so only this still says that no session has seen the new version.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    changed_outside: bool,
}

#[derive(Serialize)]
struct TaskJson<'a> {
    description: &'a str,
    status: TaskStatus,
    priority: u32,
}

impl<'a> FileJson<'a> {
    pub(super) fn of(state: &'a FileState) -> Self {
        let FileState { path, hash, size, modified, status, changed_outside } = state;
        let (mod_time, r#type) = (rfc3339(*modified), type_of(path));
        Self { path, hash: *hash, size: *size, mod_time, r#type, status: *status, changed_outside: *changed_outside }
    }
}

/// The JSON document.
pub fn to_json(state: &RepoState) -> String {
    let written = StateJson {
        work_dir: &state.work_dir,
        story_id: &state.tasks.story,
        files: state.files.iter().map(FileJson::of).collect(),
        open_tasks: state.tasks.open().into_iter().map(TaskJson::of).collect(),
        last_updated: rfc3339(state.last_updated),
    };
    serde_json::to_string_pretty(&written).expect("a state is plain data") + "\n"
}

impl<'a> TaskJson<'a> {
    fn of(task: &'a Task) -> Self {
        Self { description: &task.description, status: task.status, priority: task.priority }
    }
}

pub(super) fn json_of(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("a state is plain data")
}

/// Joins serialized entries, most of which have not changed since the last export.
pub(super) fn put_together<'a>(
    work_dir: &str,
    tasks: &TaskList,
    entries: impl Iterator<Item = &'a str>,
    last_updated: Millis,
) -> Vec<u8> {
    let mut out = format!("{{\"work_dir\":{},\"story_id\":{},\"files\":[", json!(work_dir), json!(tasks.story));
    for (index, entry) in entries.enumerate() {
        out.push_str(if index == 0 { "\n" } else { ",\n" });
        out.push_str(entry);
    }
    out.push_str("],\"open_tasks\":");
    out.push_str(&json_of(&tasks.open().into_iter().map(TaskJson::of).collect::<Vec<_>>()));
    out.push_str(&format!(",\"last_updated\":\"{}\"}}\n", rfc3339(last_updated)));
    out.into_bytes()
}

/// The paths in an exported file. Nothing else in it is trusted.
pub(super) fn named_paths(content: &[u8]) -> Vec<RelPath> {
    #[derive(Deserialize)]
    struct ExportedState {
        files: Vec<ExportedEntry>,
    }
    #[derive(Deserialize)]
    struct ExportedEntry {
        path: String,
    }
    let entries = serde_json::from_slice::<ExportedState>(content).map(|exported| exported.files).unwrap_or_default();
    entries.into_iter().filter_map(|entry| RelPath::new(&entry.path).ok()).collect()
}
