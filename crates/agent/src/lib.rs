//! A coding agent on top of Surehand's tools. Its prompt is rendered from the current files and the state of the
//! repository instead of replaying the conversation.
//!
//! ```
//! use serde_json::json;
//! use surehand_agent::{
//!     AgentRun, Approval, Approver, CancelToken, NoPerson, Ports, RunEvent, RunSettings,
//!     command::CommandRequest,
//!     event::StopReason,
//!     model::scripted::{ScriptedCall, ScriptedModel, ScriptedTurn},
//! };
//! use surehand_engine::{Config, StateHome, Workspace};
//!
//! struct Never;
//! impl Approver for Never {
//!     fn approve(&mut self, _: &CommandRequest<'_>) -> Approval {
//!         Approval::No(None)
//!     }
//! }
//!
//! // A model that needs no network. Others are in `model`.
//! let turn = |tool: &str, arguments| {
//!     let calls = vec![ScriptedCall { tool: tool.into(), arguments }];
//!     ScriptedTurn { calls, ..ScriptedTurn::default() }
//! };
//! let mut model = ScriptedModel::new([
//!     turn("update_tasks", json!({ "add": [{ "description": "write a.txt" }] })),
//!     turn("write_file", json!({ "path": "a.txt", "content": "one\n" })),
//!     turn("update_tasks", json!({ "set": [{ "id": 1, "status": "completed" }] })),
//!     turn("done", json!({ "summary": "written" })),
//! ]);
//! let (dir, state) = (tempfile::tempdir()?, tempfile::tempdir()?);
//! let state = StateHome { user: Some(state.path().to_owned()), ..StateHome::default() };
//! let workspace = Workspace::open(dir.path(), Config { state, ..Config::default() })?;
//! let settings = RunSettings::for_workspace(&workspace);
//! let mut listener = |_: &RunEvent| {};
//! let ports = Ports {
//!     model: &mut model,
//!     permission: &mut Never,
//!     person: &mut NoPerson,
//!     listener: &mut listener,
//!     cancel: CancelToken::default(),
//! };
//! let outcome = AgentRun::new(workspace, "Write a.txt.", settings, ports)?.run()?;
//! assert_eq!(outcome.stop, StopReason::Done);
//! assert_eq!(std::fs::read_to_string(dir.path().join("a.txt"))?, "one\n");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod call_outcome;
mod cancel;
pub mod command;
pub mod event;
mod history_context;
mod loop_detector;
pub mod model;
pub mod past_runs;
mod person;
pub mod prompt;
mod question;
mod recorded_prompts;
mod repair;
mod run;
mod run_files;
mod secrets;
mod snapshot_context;
mod text_calls;
pub mod tool;
pub mod transcript;
mod unseen_results;
mod user_messages;

pub use cancel::CancelToken;
pub use command::{Approval, Approver, CommandOutcome, run_command};
pub use event::RunEvent;
pub use person::{EditApproval, EditRequest, NoPerson, Person};
pub use run::{AgentRun, Ports, RunError, RunLimits, RunOutcome, RunSettings};
pub use secrets::Secrets;
