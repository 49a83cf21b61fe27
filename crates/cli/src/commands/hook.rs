//! `surehand hook`: answers an agent's hook. Whatever goes wrong with us, the agent goes on: it is logged, and `surehand doctor` says so.

use std::{
    io::Read,
    panic::{AssertUnwindSafe, catch_unwind},
    process::ExitCode,
};

use surehand_adapters::hooks::{self, Answer};

use crate::{args::HookArgs, hook_log, output, place};

pub fn run(args: &HookArgs) -> anyhow::Result<ExitCode> {
    let answer = catch_unwind(AssertUnwindSafe(|| answer(args)));
    let answer = answer.unwrap_or_else(|_| Answer { failed: Some("it panicked".to_owned()), ..Answer::default() });
    if let Some(why) = &answer.failed {
        hook_log::add(args.client.name(), why);
    }
    if !answer.stdout.is_empty() {
        output::print(&answer.stdout)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn answer(args: &HookArgs) -> Answer {
    let mut input = String::new();
    if let Err(error) = std::io::stdin().read_to_string(&mut input) {
        return Answer { failed: Some(format!("standard input: {error}")), ..Answer::default() };
    }
    hooks::answer(args.client, args.event.as_deref(), &input, |directory| {
        place::open_above(directory).map_err(|error| format!("{}: {error:#}", directory.display()))
    })
}
