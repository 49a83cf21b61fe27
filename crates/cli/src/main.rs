//! The `surehand` command. Reads the environment and the command line; everything else is done by the library and the doors.

mod args;
mod commands;
mod hook_log;
mod keys;
mod output;
mod place;
mod user;
mod view;

use std::process::ExitCode;

use clap::Parser;

use args::{Args, Command, HookArgs};

fn main() -> ExitCode {
    let args = match HookArgs::plain(std::env::args_os()) {
        Some(hook) => Args { command: Command::Hook(hook) },
        None => match Args::try_parse() {
            Ok(args) => args,
            Err(error) => return mistyped(&error),
        },
    };
    let (json, is_hook) = (args.command.json(), matches!(args.command, Command::Hook(_)));
    let done = match args.command {
        Command::Run(args) => commands::run::run(&args),
        Command::Mcp(args) => commands::mcp::run(&args),
        Command::Hook(args) => commands::hook::run(&args),
        Command::Init(args) => commands::init::run(&args),
        Command::Doctor(args) => commands::doctor::run(&args),
        Command::Call(args) => commands::call::run(&args),
        Command::Status(args) => commands::status::run(&args),
        Command::Snapshot(args) => commands::snapshot::run(&args),
        Command::Tasks(args) => commands::tasks::run(&args),
        Command::Log(args) => commands::log::run(&args),
        Command::Diff(args) => commands::diff::run(&args),
        Command::Undo(args) => commands::undo::run(&args),
        Command::Scan(args) => commands::scan::run(&args),
        Command::Demo(args) => commands::demo::run(&args),
        Command::Completions(args) => commands::completions::run(&args),
        Command::Man(args) => commands::man::run(&args),
    };
    match done {
        Ok(code) => code,
        // Whoever read our output has seen enough.
        Err(error) if output::is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) if is_hook => {
            anstream::eprintln!("error: {error:#}");
            HOOK_FAILED.into()
        }
        Err(error) => {
            output::fail(&format!("{error:#}"), json);
            ExitCode::from(2)
        }
    }
}

/// To most clients exit code 2 of a hook is a no, and to one of them every other code as well. A hook that does not work says no to nobody.
const HOOK_FAILED: u8 = 0;

/// What was typed is no command of ours. So it is when help is asked for, too, which is no mistake.
fn mistyped(error: &clap::Error) -> ExitCode {
    let typed: Vec<_> = std::env::args_os().skip(1).take_while(|word| word != "--").collect();
    let wants_json = typed.iter().any(|word| word == "--json");
    match (error.use_stderr(), typed.first()) {
        (true, _) if wants_json => output::fail(error.render().to_string().trim().trim_start_matches("error: "), true),
        // Where nobody reads it nothing can be done about it.
        _ => drop(error.print()),
    }
    match typed.first() {
        _ if !error.use_stderr() => ExitCode::SUCCESS,
        Some(word) if word == "hook" => HOOK_FAILED.into(),
        _ => ExitCode::from(2),
    }
}
