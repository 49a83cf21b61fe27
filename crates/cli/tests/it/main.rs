//! The tests of the program, in one binary.

mod command_line;
mod going_back;
mod init;
mod mcp_http;
mod mcp_stdio;
mod one_state;
mod processes;
mod reference;
mod run;
mod scenarios;
mod torture;
mod trust;
mod workspaces;
