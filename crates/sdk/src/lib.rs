//! The facade of Surehand for bindings to other languages. Programs in Rust use `surehand-engine`, which is typed
//! throughout; a binding needs less: handles that any thread may use and close, owned values, JSON where a language has
//! its own types for it, and errors with a code.
//!
//! ```
//! use serde_json::json;
//! use surehand_sdk::{Edit, OpenOptions, SdkError, SessionOptions, Workspace};
//!
//! let (dir, state) = (tempfile::tempdir()?, tempfile::tempdir()?);
//! std::fs::write(dir.path().join("a.txt"), "one\ntwo\n")?;
//! let options = OpenOptions { state_dir: Some(state.path().to_owned()), ..OpenOptions::default() };
//! let workspace = Workspace::open(dir.path(), options)?;
//! let session = workspace.session(SessionOptions::default())?;
//!
//! let edit = Edit::replace("a.txt", "two", "2");
//! let Err(SdkError::Refused(refusal)) = session.edit(&edit) else { panic!("the file was never read") };
//! assert_eq!(refusal.code, "unread");
//!
//! // The call of a model: a refusal is a reply like any other.
//! let reply = session.call("read_file", json!({ "path": "a.txt" }))?;
//! assert!(reply.refusal.is_none() && reply.text.contains("2|two"));
//! session.edit(&edit)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod environment;
mod error;
mod permit;
mod reply;
mod repo_state;
mod session;
mod tools;
mod workspace;

pub use surehand_engine::Edit;

pub use self::{
    environment::Environment,
    error::SdkError,
    permit::Permit,
    reply::{LineRange, RefusalReport, Reply},
    repo_state::RepoState,
    session::{ReadOptions, Session, SessionOptions, UndoOptions},
    tools::{ToolSpec, edit_of_tool},
    workspace::{OpenOptions, StoreKind, Workspace},
};
