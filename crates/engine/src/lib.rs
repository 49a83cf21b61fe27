//! Reads, gates and commits files for coding agents. This is the library of Surehand: no protocol, no async runtime.
//!
//! A [`Workspace`] is a directory tree with its state; a [`Session`] is one model's context window in it. A session calls
//! [`tools`] by name and gets back what the model should read:
//!
//! ```
//! use serde_json::json;
//! use surehand_engine::{Config, Session, StateHome, Workspace};
//!
//! let (dir, state) = (tempfile::tempdir()?, tempfile::tempdir()?);
//! std::fs::write(dir.path().join("a.txt"), "one\ntwo\n")?;
//! // In a git repository of yours the state is kept in `.git/surehand`, and no other place is needed.
//! let state = StateHome { user: Some(state.path().to_owned()), ..StateHome::default() };
//! let workspace = Workspace::open(dir.path(), Config { state, ..Config::default() })?;
//! let mut session = Session::new(workspace);
//!
//! let edit = json!({ "path": "a.txt", "old_string": "two", "new_string": "2" });
//! assert!(session.call("edit_file", &edit).text.contains("was not read this session — read_file first"));
//! session.call("read_file", &json!({ "path": "a.txt" }));
//! assert!(!session.call("edit_file", &edit).is_error);
//! assert_eq!(std::fs::read_to_string(dir.path().join("a.txt"))?, "one\n2\n");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod apply;
mod calls;
pub mod changes;
mod command;
pub mod config;
mod course;
mod disk;
mod files;
mod foreign_tools;
pub mod git;
mod index;
mod instructions;
mod later;
mod lookout;
mod outbox;
mod plan;
mod prompt_views;
mod random;
mod recorder;
pub mod repo;
mod repo_tracker;
pub mod scan;
mod session;
pub mod state_dir;
mod store_handle;
mod texts;
mod time;
pub mod tools;
mod tracker;
mod undo;
mod user;
mod watch;
mod workspace;

pub use calls::{Call, Forget, List, NewTask, Read, Search, SetTask, StateFormat, Tasks, WantedLines};
pub use command::{Command, Running};
pub use config::{Commands, Config, ConfigError, IgnoredSetting, KEYS, Key, Repository};
pub use course::Course;
pub use disk::{commit::Durability, export::EXPORT_DIR, rescue::RESCUED};
pub use foreign_tools::{ForeignTools, Intent, OutcomeDiffers};
pub use plan::Plan;
pub use prompt_views::PromptViews;
pub use repo_tracker::RepoTracker;
pub use session::Session;
pub use state_dir::{StateDirError, StateHome};
pub use store_handle::StoreChoice;
pub use surehand_core::{
    self as core, ChangeId, Done, Edit, Outcome, Refusal, Tool, ToolNames,
    render::{self, Reply},
};
pub use surehand_store::{self as store, SessionId};
pub use tracker::{FileTracker, Holder, holders};
pub use user::effective_user;
pub use watch::{Cursor, Hints, Trouble, Watch};
pub use workspace::{OpenError, Workspace, WorkspaceOptions};

/// For the tests of this project: they stop a commit after one of its steps, or act as another program in between.
#[doc(hidden)]
pub mod testing {
    pub use crate::disk::commit::{Probe, Step, Verdict, steps};
}
