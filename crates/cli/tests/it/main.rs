//! The tests of the program, in one binary.

mod attribution;
mod command_line;
mod demo_story;
mod fleet;
mod going_back;
mod history;
mod init;
mod kept;
mod mcp_http;
mod mcp_stdio;
mod one_state;
mod people;
mod processes;
mod reference;
mod run;
mod run_on_terminal;
mod runs;
mod scenarios;
mod session_commit;
mod torture;
mod trust;
mod workspaces;
