//! The `surehand` command. Reads the environment and the command line; everything else is done by the library and the doors.

mod args;
mod commands;
mod hook_log;
mod output;
mod place;
mod view;

use std::process::ExitCode;

use clap::Parser;

use args::{Args, Command};

fn main() -> ExitCode {
    let args = Args::parse();
    let done = match args.command {
        Command::Run(args) => commands::run::run(&args),
        Command::Mcp(args) => commands::mcp::run(&args),
        Command::Hook(args) => commands::hook::run(&args),
        Command::Call(args) => commands::call::run(&args),
        Command::Status(args) => commands::status::run(&args),
        Command::Snapshot(args) => commands::snapshot::run(&args),
        Command::Tasks(args) => commands::tasks::run(&args),
        Command::Log(args) => commands::log::run(&args),
        Command::Diff(args) => commands::diff::run(&args),
        Command::Undo(args) => commands::undo::run(&args),
        Command::Scan(args) => commands::scan::run(&args),
        Command::Demo(args) => commands::demo::run(&args),
    };
    match done {
        Ok(code) => code,
        // Whoever read our output has seen enough.
        Err(error) if output::is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            anstream::eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}
