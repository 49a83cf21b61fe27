//! The doors of Surehand that speak somebody else's protocol. They translate and decide nothing.
//!
//! A hook is told what an agent is about to do, and says whether it may:
//!
//! ```
//! use surehand_adapters::hooks::{Client, Surroundings, answer};
//! use surehand_engine::{Config, StateHome, Workspace, WorkspaceOptions};
//!
//! let (dir, state) = (tempfile::tempdir()?, tempfile::tempdir()?);
//! let state = StateHome { user: Some(state.path().to_owned()), ..StateHome::default() };
//! let config = Config { state: state.clone(), ..Config::for_hooks() };
//! std::fs::write(dir.path().join("a.txt"), "one\n")?;
//! let input = serde_json::json!({
//!     "hook_event_name": "PreToolUse", "session_id": "s", "cwd": dir.path(), "tool_name": "Edit",
//!     "tool_input": { "file_path": dir.path().join("a.txt"), "old_string": "one", "new_string": "two" },
//! });
//! let open = |root: &std::path::Path| {
//!     let options = WorkspaceOptions { config: config.clone(), is_for_one_call: true, ..WorkspaceOptions::default() };
//!     Workspace::open_with(root, options).map(Into::into).map_err(|error| error.to_string())
//! };
//! let said = answer(Client::Claude, None, &input.to_string(), &Surroundings { state, project: None, open: &open });
//! assert!(said.stdout.contains("was not read this session"), "{}", said.stdout);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod client_instructions;
mod client_process;
pub mod hooks;
mod locked_json;
pub mod mcp;
pub mod session_roots;
