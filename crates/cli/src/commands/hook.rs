//! `surehand hook`: answers an agent's hook. If Surehand fails, the agent continues, and the failure is logged for
//! `surehand doctor`.

use std::{
    io::Read,
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
    process::ExitCode,
};

use surehand_adapters::hooks::{self, HookAnswer, HookClient, HookEnvironment, HookSession};
use surehand_engine::SessionId;

use crate::{args::HookArgs, fleet, hook_log, output, user_dirs, workspace};

pub(crate) fn run(args: &HookArgs) -> anyhow::Result<ExitCode> {
    // Some clients would show a panic message to the model.
    std::panic::set_hook(Box::new(|_| {}));
    let Some(client) = HookClient::named(&args.client) else {
        // An older program that is called by the hooks of a newer one must not deny anything.
        let names: Vec<&str> = HookClient::ALL.iter().map(|client| client.name()).collect();
        let why = format!("no such client: {}; there are {}", args.client, names.join(", "));
        eprintln!("surehand hook: {why}");
        hook_log::append("unknown", &why);
        return Ok(ExitCode::SUCCESS);
    };
    let answer = catch_unwind(AssertUnwindSafe(|| answer(client, args.event.as_deref())));
    let answer = answer.unwrap_or_else(|panic| client.fail(format!("it panicked: {}", words(&*panic))));
    if let Some(why) = &answer.failed {
        hook_log::append(client.name(), why);
    }
    // Some clients take any other exit code for a denial, so a closed pipe is ignored.
    if !answer.stdout.is_empty() {
        let _ = output::print(&answer.stdout);
    }
    if !answer.stderr.is_empty() {
        eprintln!("{}", answer.stderr.trim_end());
    }
    if let Some(HookSession { session, home }) = answer.session {
        // The client already has its answer, and may kill a hook that panics.
        let _ = catch_unwind(AssertUnwindSafe(|| report(session, client, &home)));
    }
    Ok(ExitCode::from(answer.exit_code))
}

fn report(session: SessionId, client: HookClient, home: &Path) {
    if let Ok((config, _)) = workspace::settings_of_hooks(home) {
        fleet::report_hook(session, client.name(), &fleet::place(home, &config.state, &config.board));
    }
}

fn answer(client: HookClient, event: Option<&str>) -> HookAnswer {
    let mut input = Vec::new();
    if let Err(error) = std::io::stdin().read_to_end(&mut input) {
        return client.fail(format!("standard input: {error}"));
    }
    // A path that is not UTF-8 is not tracked.
    let mut input = String::from_utf8_lossy(&input).into_owned();
    if client == HookClient::Goose {
        let directory = std::env::current_dir().unwrap_or_default();
        input = hooks::with_goose_environment(&input, &directory, |name| std::env::var(name).ok());
    }
    let state = match user_dirs::state_home() {
        Ok(state) => state,
        Err(error) => return client.fail(format!("{error:#}")),
    };
    let project = client.project_variable().and_then(user_dirs::variable);
    let open = |root: &Path| workspace::open_for_hook(root).map_err(|error| format!("{error:#}"));
    hooks::answer(client, event, &input, &HookEnvironment { state, project, open: &open })
}

fn words(panic: &(dyn std::any::Any + Send)) -> &str {
    let owned = panic.downcast_ref::<String>().map(String::as_str);
    owned.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("without a word")
}
