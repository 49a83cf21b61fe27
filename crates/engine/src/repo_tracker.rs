//! The repository state for programs that use a workspace without a session.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use serde_json::Value;
use surehand_core::{Outcome, Refusal, RelPath, RepoState, Tool, ToolKind, Touch, outcome::TouchedFile};
use surehand_store::{SessionId, StoreError};

use crate::{
    disk::read_file::stat_of_file,
    file_cache::FileCache,
    repo_state::{ExportError, ExportPace, TouchSource, check_file},
    workspace::Workspace,
};

/// Tracks what tools do to the files of a workspace. All trackers of a workspace share one state, across processes.
/// Errors are returned to the caller and never fail a tool.
#[derive(Debug, Clone)]
pub struct RepoTracker {
    workspace: Arc<Workspace>,
}

/// Why the repository state is not up to date.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RepoError {
    /// The store could not be read or written.
    #[error("the state of the repository cannot be read: {0}")]
    Store(#[from] StoreError),
    /// The state is known, but could not be exported for other programs.
    #[error("the state of the repository could not be stored: {why}")]
    Export {
        /// The error of the export.
        why: String,
    },
    /// There is no tool of this name that reads or changes files.
    #[error("{tool}: there is no such tool that reads or changes files")]
    NoSuchTool {
        /// The name that the caller gave.
        tool: String,
    },
    /// The result of a tool names no file.
    #[error("{tool}: the result names no file; it needs a path, or files with a path each")]
    NothingUsable {
        /// The name that the caller gave, or `the call`.
        tool: String,
    },
    /// The result of a tool names a file outside the workspace.
    #[error("{0}")]
    BadPath(Box<Refusal>),
}

impl From<ExportError> for RepoError {
    fn from(error: ExportError) -> Self {
        match error {
            ExportError::Store(error) => Self::Store(error),
            error => Self::Export { why: error.to_string() },
        }
    }
}

impl RepoTracker {
    /// Loads the state of a workspace from its store. If the store was lost, the exported files are checked, and the
    /// next reply says so.
    pub fn load(workspace: Arc<Workspace>) -> Result<Self, RepoError> {
        workspace.repo().load(&workspace.repo_sources())?;
        Ok(Self { workspace })
    }

    /// Records the outcome of a session's call. Sessions do this themselves.
    pub fn update(&self, outcome: &Outcome) -> Result<(), RepoError> {
        let touched = outcome.touched();
        if touched.is_empty() {
            return Err(RepoError::NothingUsable { tool: "the call".to_owned() });
        }
        let stamp_of = |path: &RelPath| {
            let stat = stat_of_file(self.workspace.root(), path)?;
            Some(self.workspace.copy.clock().stamp(&stat))
        };
        self.workspace.track_touched(touched, TouchSource::NoEvent, ExportPace::InTime, stamp_of);
        Ok(())
    }

    /// Records the result of a tool that is not ours but has the name of one of ours: an object with a `path`, or with
    /// `files` that have a path each. Only the paths are taken from it; the state of the files is read from disk.
    ///
    /// ```
    /// use serde_json::json;
    /// use surehand_engine::{Config, RepoTracker, StateHome, StoreChoice, Workspace, WorkspaceOptions};
    ///
    /// # let (dir, state) = (tempfile::tempdir()?, tempfile::tempdir()?);
    /// # let state = StateHome { user: Some(state.path().to_owned()), ..StateHome::default() };
    /// # let config = Config { state, ..Config::default() };
    /// # let options = WorkspaceOptions { config, store: StoreChoice::InMemory, ..WorkspaceOptions::default() };
    /// # let workspace = Workspace::open_with(dir.path(), options)?;
    /// std::fs::write(dir.path().join("a.txt"), "one\n")?;
    /// let tracker = RepoTracker::load(workspace)?;
    /// tracker.update_from_tool_result("write_file", &json!({ "path": "a.txt" }))?;
    /// assert_eq!(tracker.snapshot().files.len(), 1);
    /// assert!(tracker.update_from_tool_result("write_file", &json!({ "ok": true })).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn update_from_tool_result(&self, tool: &str, result: &Value) -> Result<(), RepoError> {
        let kind = Tool::named(tool).map(Tool::kind).filter(|kind| matches!(kind, ToolKind::Reads | ToolKind::Edits));
        let kind = kind.ok_or_else(|| RepoError::NoSuchTool { tool: tool.to_owned() })?;
        let paths = named_files(result);
        if paths.is_empty() {
            return Err(RepoError::NothingUsable { tool: tool.to_owned() });
        }
        let known = self.snapshot().files;
        let is_known = |path: &RelPath| known.iter().any(|file| file.path == *path);
        let names = FileCache::of(SessionId(String::new()));
        let (mut touched, mut stamps) = (Vec::new(), BTreeMap::new());
        for path in paths {
            let path = names.path_of(&self.workspace, &path).map_err(|refusal| RepoError::BadPath(Box::new(refusal)))?;
            let current = check_file(&self.workspace.copy, &self.workspace.copy.in_tree(&path), None);
            let touch = match &current {
                None => Touch::Deleted { was: None },
                Some((version, _)) if kind == ToolKind::Reads => Touch::Read(*version),
                Some((version, _)) if is_known(&path) => Touch::Modified { from: None, to: *version },
                Some((version, _)) => Touch::Created(*version),
            };
            stamps.extend(current.map(|(_, stamp)| (path.clone(), stamp)));
            touched.push(TouchedFile { path, touch });
        }
        let stamp_of = |path: &RelPath| stamps.get(path).copied();
        self.workspace.track_touched(touched, TouchSource::NoEvent, ExportPace::InTime, stamp_of);
        Ok(())
    }

    /// The current state. Files that may have changed are checked first.
    pub fn snapshot(&self) -> RepoState {
        self.workspace.snapshot()
    }

    /// Exports the state, if the exported file is out of date.
    pub fn persist(&self) -> Result<(), RepoError> {
        Ok(self.workspace.repo().persist(&self.workspace.repo_sources())?)
    }
}

fn named_files(result: &Value) -> BTreeSet<String> {
    let path = |value: &Value| value["path"].as_str().or_else(|| value.as_str()).map(str::to_owned);
    let files = result["files"].as_array().into_iter().flatten();
    let to = ["from", "to", "moved_to"].iter().filter_map(|field| result[field].as_str().map(str::to_owned));
    files.filter_map(path).chain(result["path"].as_str().map(str::to_owned)).chain(to).collect()
}
