//! One file per command.

pub mod call;
pub mod demo;
pub mod diff;
pub mod hook;
pub mod log;
pub mod mcp;
pub mod run;
pub mod scan;
pub mod snapshot;
pub mod status;
pub mod tasks;
pub mod undo;
