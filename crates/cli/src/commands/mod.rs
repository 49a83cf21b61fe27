//! One file per command.

pub mod call;
pub mod demo;
pub mod mcp;
