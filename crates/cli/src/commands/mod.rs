//! One file per command.

pub(crate) mod call;
pub(crate) mod checkpoint;
pub(crate) mod completions;
pub(crate) mod demo;
pub(crate) mod diff;
pub(crate) mod doctor;
pub(crate) mod hook;
pub(crate) mod init;
pub(crate) mod log;
pub(crate) mod man;
pub(crate) mod mcp;
pub(crate) mod restore;
pub(crate) mod run;
pub(crate) mod scan;
pub(crate) mod snapshot;
pub(crate) mod status;
pub(crate) mod tasks;
pub(crate) mod undo;
