//! The helper: one process per user and machine that connects agents to the boards of their repositories.
//!
//! A hook lives for milliseconds, so another process must report that its agent is alive, renew leases, report the
//! changes of its checkout, and read those of other agents. [`Helper`] is the caller's side: it starts the process when
//! it is needed and never waits for it, except for the answer to a claim. [`serve`] is the process itself.
//!
//! Nothing is lost if the helper is killed at any moment. Its reports are derived from the store and the files of a
//! workspace, and from the last call of each agent, and the next helper begins with all of that. Everything it sends
//! has an id, so a board that receives it twice applies it once.

mod board_worker;
mod client;
mod delivery;
mod held_claims;
mod living_agents;
mod protocol;
mod remote_board;
mod runtime_dir;
mod server;
mod socket;
mod spool;

pub use client::{Helper, HelperError, StartHelper};
pub use protocol::{AgentReport, BoardStatus, HelperStatus, WorkspacePlace};
pub use remote_board::RemoteBoard;
pub use runtime_dir::RuntimeDir;
pub use server::{ConnectServer, ServeError, ServeOptions, serve};
