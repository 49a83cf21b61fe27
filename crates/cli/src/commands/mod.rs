//! One file per command.

pub mod call;
pub mod completions;
pub mod demo;
pub mod diff;
pub mod doctor;
pub mod hook;
pub mod init;
pub mod log;
pub mod man;
pub mod mcp;
pub mod run;
pub mod scan;
pub mod snapshot;
pub mod status;
pub mod tasks;
pub mod undo;
