//! `surehand hook`: answers an agent's hook. Whatever goes wrong with us, the agent goes on: it is logged, and `surehand doctor` says so.

use std::{
    io::Read,
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
    process::ExitCode,
};

use surehand_adapters::hooks::{self, Answer, Surroundings};

use crate::{args::HookArgs, hook_log, output, place, user};

pub(crate) fn run(args: &HookArgs) -> anyhow::Result<ExitCode> {
    // What a panic prints, some clients would show to the model.
    std::panic::set_hook(Box::new(|_| {}));
    let answer = catch_unwind(AssertUnwindSafe(|| answer(args)));
    let answer = answer.unwrap_or_else(|panic| args.client.fail(format!("it panicked: {}", words(&*panic))));
    if let Some(why) = &answer.failed {
        hook_log::add(args.client.name(), why);
    }
    if !answer.stdout.is_empty() {
        output::print(&answer.stdout)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn answer(args: &HookArgs) -> Answer {
    let mut input = Vec::new();
    if let Err(error) = std::io::stdin().read_to_end(&mut input) {
        return args.client.fail(format!("standard input: {error}"));
    }
    // A name of a file that is not UTF-8 is not one that we know.
    let input = String::from_utf8_lossy(&input);
    let state = match user::state_home() {
        Ok(state) => state,
        Err(error) => return args.client.fail(format!("{error:#}")),
    };
    let project = args.client.project_variable().and_then(std::env::var_os).map(PathBuf::from).filter(|dir| dir.is_absolute());
    let open = |root: &Path| place::open_for_hook(root).map_err(|error| format!("{error:#}"));
    hooks::answer(args.client, args.event.as_deref(), &input, &Surroundings { state, project, open: &open })
}

fn words(panic: &(dyn std::any::Any + Send)) -> &str {
    let owned = panic.downcast_ref::<String>().map(String::as_str);
    owned.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("without a word")
}
