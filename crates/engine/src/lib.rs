//! Reads, gates and commits files for coding agents. This is the library of Surehand: no protocol, no async runtime.
//!
//! A [`Workspace`] is a directory tree with its state; a [`Session`] is one model's context window in it. A session
//! takes an [`Edit`], or any other [`Call`], and returns an [`Outcome`]; [`render`] turns that into text for the model
//! and into JSON for programs:
//!
//! ```
//! use surehand_engine::{Call, Config, Edit, ReadCall, Session, StateHome, ToolNames, Workspace};
//! use surehand_engine::{core::RefusalCode, render};
//!
//! let (dir, state) = (tempfile::tempdir()?, tempfile::tempdir()?);
//! std::fs::write(dir.path().join("a.txt"), "one\ntwo\n")?;
//! // In a git repository of yours the state is kept in `.git/surehand`, and no other place is needed.
//! let state = StateHome { user: Some(state.path().to_owned()), ..StateHome::default() };
//! let workspace = Workspace::open(dir.path(), Config { state, ..Config::default() })?;
//! let mut session = Session::new(workspace);
//!
//! let edit = Edit::replace("a.txt", "two", "2");
//! let refused = session.edit(&edit);
//! assert_eq!(refused.refusal().map(|refusal| refusal.code()), Some(RefusalCode::Unread));
//! assert!(render::text(&refused, &ToolNames::default()).contains("was not read this session — read_file first"));
//!
//! session.run(&Call::Read(ReadCall::whole("a.txt"))).result?;
//! session.edit(&edit).result?;
//! assert_eq!(std::fs::read_to_string(dir.path().join("a.txt"))?, "one\n2\n");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A host that gets the calls of a model as JSON passes them to [`Session::run_tool`], with the names and schemas of
//! [`tools`]. A host with tools of its own reports their edits to a session through [`Session::foreign_tools`].

pub mod activity;
mod apply;
pub mod attribution;
mod call_progress;
mod calls;
pub mod change_log;
mod change_record;
pub mod checkpoint;
pub mod clean;
pub mod client_process;
mod command;
pub mod config;
mod discovery;
mod disk;
mod event_log;
mod file_cache;
mod file_tracker;
pub mod fleet;
mod fleet_link;
mod foreign_tools;
mod git;
mod instructions;
pub mod json;
mod known_files;
mod outbox;
mod plan;
mod prompt_views;
mod protected_paths;
mod provenance;
mod random;
mod recorder;
pub mod repo_state;
mod repo_tracker;
pub mod rescued;
pub mod restore;
pub mod scan;
mod scan_index;
mod session;
pub mod session_list;
pub mod session_names;
mod stale_views;
mod state_dir;
mod state_mark;
mod store_handle;
mod text_cache;
mod time;
pub mod tools;
mod undo;
pub mod usage;
mod user;
mod watch;
mod workspace;

pub use call_progress::CallProgress;
pub use calls::{
    Call, ClaimTarget, ForgetCall, ListCall, NewTask, ReadCall, RestoreCall, SearchCall, SetTask, StateFormat, TasksCall,
    WantedLines,
};
pub use command::{RunningCommand, ShellCommand};
pub use config::{BoardConfig, CommandConfig, Config, ConfigError, ConfigKey, IgnoredSetting, KEYS, RepositoryRule, Sampling};
pub use discovery::{FindRootError, GitCheckout, find_root, work_tree_of};
pub use disk::{commit::Durability, export_dir::EXPORT_DIR, rescue::RESCUED, root_dir::RootStatus};
pub use file_tracker::{FileTracker, SessionViews, stale_files, views_by_session};
pub use foreign_tools::{AllowedEdit, EditPermit, FileIntent, ForeignTools};
pub use instructions::ClientInstructions;
pub use plan::EditPlan;
pub use prompt_views::PromptViews;
pub use repo_state::TaskScope;
pub use repo_tracker::{RepoError, RepoTracker};
pub use session::{ReplyGroup, Session};
pub use state_dir::{PassedOver, StateDirError, StateHome, StateHomeError, user_state_dir};
pub use state_mark::StateMark;
pub use store_handle::StoreChoice;
pub use surehand_core::{
    self as core, ChangeId, Done, Edit, Outcome, Refusal, Tool, ToolNames,
    render::{self, Reply},
};
pub use surehand_store::{self as store, SessionId};
pub use watch::{WatchTrouble, try_watching};
pub use workspace::{OpenError, StatePaths, StateReport, Workspace, WorkspaceOptions};

/// For the tests of this project: stops a commit after one of its steps, or lets another program act in between.
#[doc(hidden)]
pub mod testing {
    use std::{collections::BTreeMap, io, path::Path};

    use surehand_core::{ContentHash, RelPath, Stamp};

    pub use crate::disk::commit::{CommitProbe, CommitStep, ProbeVerdict, steps};
    use crate::{
        scan_index::ScanIndex,
        watch::{FileWatcher, WatchHints},
        workspace::Workspace,
    };

    /// The version and stamp of each file as of the last scan.
    pub fn scanned_files(workspace: &Workspace) -> io::Result<BTreeMap<RelPath, (ContentHash, Stamp)>> {
        let index = ScanIndex::load(&workspace.copy)?;
        Ok(index.iter().map(|(path, version, stamp)| (path, (version, stamp))).collect())
    }

    /// Watches a tree. Each call returns the paths that may have changed since the previous one, or `None` if any path
    /// may have.
    pub fn watch(root: &Path) -> impl FnMut() -> Option<Vec<RelPath>> {
        let watch = FileWatcher::start(root);
        let mut cursor = watch.cursor();
        let mut is_laid = false;
        move || {
            if !std::mem::replace(&mut is_laid, true) {
                watch.wait();
            }
            match watch.hints(&mut cursor) {
                WatchHints::Paths(paths) => Some(paths),
                WatchHints::Everything => None,
            }
        }
    }

    /// Waits until the watcher of a workspace is ready, if there is one.
    pub fn wait_for_watcher(workspace: &Workspace) {
        workspace.watch().into_iter().for_each(FileWatcher::wait);
    }

    /// Treats the file system of a workspace as one that cannot exchange files from now on.
    pub fn without_exchange(workspace: &Workspace) {
        workspace.copy.without_exchange();
    }
}
