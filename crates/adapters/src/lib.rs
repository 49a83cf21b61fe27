//! The protocols of other programs: the MCP server, and the hooks of other agents. They translate calls for the engine,
//! which judges them.
//!
//! A hook reads what an agent is about to do, and answers whether it may:
//!
//! ```
//! use surehand_adapters::hooks::{HookClient, HookEnvironment, answer};
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
//! let environment = HookEnvironment { state, project: None, open: &open };
//! let said = answer(HookClient::Claude, None, &input.to_string(), &environment);
//! assert!(said.stdout.contains("was not read this session"), "{}", said.stdout);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod client_instructions;
pub mod hooks;
mod locked_json;
pub mod mcp;
pub mod session_roots;
