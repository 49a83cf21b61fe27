//! The `surehand` command. It reads the environment and the command line; the other crates do the work.

mod api_keys;
mod args;
mod commands;
mod display;
mod fleet;
mod hook_log;
mod installation;
mod local_paths;
mod output;
mod pager;
mod question;
mod user_dirs;
mod workspace;

use std::process::ExitCode;

use clap::Parser;

use args::{Args, CliCommand, HookArgs};

fn main() -> ExitCode {
    let args = match HookArgs::plain(std::env::args_os()) {
        Some(hook) => Args { command: CliCommand::Hook(hook) },
        None => match Args::try_parse() {
            Ok(args) => args,
            Err(error) => return mistyped(&error),
        },
    };
    let is_hook = matches!(args.command, CliCommand::Hook(_));
    let result = match args.command {
        CliCommand::Run(args) => commands::run::run(&args),
        CliCommand::Mcp(args) => commands::mcp::run(&args).map(done),
        CliCommand::Hook(args) => commands::hook::run(&args),
        CliCommand::Init(args) => commands::init::run(&args),
        CliCommand::Doctor(args) => commands::doctor::run(&args),
        CliCommand::Call(args) => commands::call::run(&args),
        CliCommand::Status(args) => commands::status::run(&args).map(done),
        CliCommand::Snapshot(args) => commands::snapshot::run(&args).map(done),
        CliCommand::Tasks(args) => commands::tasks::run(&args).map(done),
        CliCommand::Log(args) => commands::log::run(&args).map(done),
        CliCommand::Show(args) => commands::show::run(&args).map(done),
        CliCommand::Runs(args) => commands::runs::run(&args).map(done),
        CliCommand::Sessions(args) => commands::sessions::run(&args).map(done),
        CliCommand::Rescued(args) => commands::rescued::run(&args),
        CliCommand::Blame(args) => commands::blame::run(&args).map(done),
        CliCommand::Diff(args) => commands::diff::run(&args).map(done),
        CliCommand::Undo(args) => commands::undo::run(&args),
        CliCommand::Redo(args) => commands::redo::run(&args),
        CliCommand::Commit(args) => commands::commit::run(&args),
        CliCommand::Checkpoint(args) => commands::checkpoint::run(&args).map(done),
        CliCommand::Restore(args) => commands::restore::run(&args),
        CliCommand::Scan(args) => commands::scan::run(&args).map(done),
        CliCommand::Usage(args) => commands::usage::run(&args).map(done),
        CliCommand::Clean(args) => commands::clean::run(&args),
        CliCommand::Ui(args) => commands::ui::run(&args).map(done),
        CliCommand::Board(args) => commands::board::run(&args).map(done),
        CliCommand::Helper(args) => commands::helper::run(&args).map(done),
        CliCommand::Demo(args) => commands::demo::run(&args).map(done),
        CliCommand::Completions(args) => commands::completions::run(&args).map(done),
        CliCommand::Man(args) => commands::man::run(&args).map(done),
        CliCommand::SelfInfo(args) => commands::self_info::run(&args).map(done),
    };
    match result {
        Ok(code) => code,
        // The reader of the output has closed the pipe.
        Err(error) if output::is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) if is_hook => {
            anstream::eprintln!("error: {}", output::in_words(&error));
            HOOK_FAILED.into()
        }
        Err(error) => {
            output::print_error(&output::in_words(&error), wants_json());
            ExitCode::from(2)
        }
    }
}

/// The exit code of a command that has nothing to refuse.
fn done((): ()) -> ExitCode {
    ExitCode::SUCCESS
}

/// Clients take exit code 2 of a hook for a denial, and one of them takes every other code except 0 for one. A failing
/// hook must not deny anything.
const HOOK_FAILED: u8 = 0;

/// Handles clap's errors, which include `--help` and `--version`; those exit with 0.
fn mistyped(error: &clap::Error) -> ExitCode {
    match error.use_stderr() && wants_json() {
        true => output::print_error(error.render().to_string().trim().trim_start_matches("error: "), true),
        // An error cannot be reported if its output is closed.
        false => drop(error.print()),
    }
    match std::env::args_os().nth(1) {
        _ if !error.use_stderr() => ExitCode::SUCCESS,
        Some(word) if word == "hook" => HOOK_FAILED.into(),
        _ => ExitCode::from(2),
    }
}

/// Whether errors are printed as JSON. No option takes `--json` as its value, so the arguments show it even if they
/// cannot be parsed.
fn wants_json() -> bool {
    std::env::args_os().skip(1).take_while(|word| word != "--").any(|word| word == "--json")
}
