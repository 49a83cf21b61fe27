//! `surehand run`: works on a story with a model.

use std::{cell::RefCell, io::Read, process::ExitCode, time::Duration};

use anyhow::Context;
use signal_hook::{consts::signal, flag};
use surehand_agent::{
    AgentRun, Approval, Approver, CancelToken, Ports, RunEvent, RunSettings,
    command::{ApprovalMode, ApprovalRules, RuleApprover},
    event::StopReason,
    model::{self, ChatModel, KeyStore, ModelConnection, ModelProtocol, RetryPolicy, TokenPrices, scripted::ScriptedModel},
    transcript::{self, SavedRun},
};
use surehand_engine::{
    Workspace,
    core::{ContextMode, EditDialect},
};

use crate::{
    api_keys::{self, Keys},
    args::{DialectArg, ModeArg, ProtocolArg, RunArgs},
    display::{ApprovalAnswer, DisplayMode, RunDisplay},
    output, workspace,
};

pub(crate) fn run(args: &RunArgs) -> anyhow::Result<ExitCode> {
    let keys = Keys::take();
    let story = args.story.as_deref().map(story).transpose()?;
    let remote = connect(args, &keys)?;
    let mut secrets = keys.secrets();
    if let Some(key) = remote.as_ref().and_then(|model| model.key()) {
        secrets.add_key(key);
        api_keys::clear_environment_of(&secrets);
    }
    // This starts threads.
    let workspace = workspace::open(&args.place)?;
    for warning in workspace::ignored_settings(workspace.config()) {
        anstream::eprintln!("warning: {warning}");
    }
    let mut model = model(args, remote, &workspace)?;
    let cancel = CancelToken::default();
    stop_on_signals(&cancel)?;
    let settings = RunSettings { secrets, ..settings(args, &workspace) };
    let observer =
        RefCell::new(RunObserver { view: RunDisplay::new(DisplayMode::here(args.json)), failed: None, cancel: cancel.clone() });
    let asking = if args.yes { ApprovalMode::All } else { ApprovalMode::Ask };
    let rules = ApprovalRules { allow: workspace.config().commands.allow.clone(), mode: asking };
    let mut permission = RuleApprover::new(rules, TerminalPerson(&observer));
    let mut listener = |event: &RunEvent| observer.borrow_mut().show(event);
    let ports = Ports { model: &mut *model, permission: &mut permission, listener: &mut listener, cancel };
    let run = match &args.resume {
        None => AgentRun::new(workspace, &story.unwrap_or_default(), settings, ports)?,
        Some(name) => AgentRun::resume(workspace, named(name), settings, ports)?,
    };
    let outcome = run.run()?;
    match observer.into_inner().failed {
        // The reader has closed the pipe. The exit code still reports the result.
        Some(error) if !output::is_broken_pipe(&error) => return Err(error),
        _ => {}
    }
    Ok(match outcome.stop {
        StopReason::Done => ExitCode::SUCCESS,
        StopReason::Cancelled => ExitCode::from(130),
        StopReason::Budget | StopReason::Stuck => ExitCode::FAILURE,
        StopReason::Model => ExitCode::from(2),
    })
}

fn story(typed: &str) -> anyhow::Result<String> {
    let mut story = typed.to_owned();
    if typed == "-" {
        story.clear();
        std::io::stdin().read_to_string(&mut story).context("the story from standard input")?;
    }
    anyhow::ensure!(!story.trim().is_empty(), "the story is empty: say what is to be done");
    Ok(story)
}

fn settings(args: &RunArgs, workspace: &Workspace) -> RunSettings {
    let mut settings = RunSettings::for_workspace(workspace);
    if let Some(mode) = args.mode {
        settings.mode = match mode {
            ModeArg::Snapshot => ContextMode::Snapshot,
            ModeArg::History => ContextMode::History,
        };
    }
    settings.budget = args.budget.unwrap_or(settings.budget);
    settings.dialect = args.dialect.map(|dialect| match dialect {
        DialectArg::Text => EditDialect::Text,
        DialectArg::Lines => EditDialect::Lines,
        DialectArg::Patch => EditDialect::Patch,
    });
    settings.limits.turns = Some(args.max_turns);
    settings.limits.tokens = args.max_tokens;
    settings.limits.cost = args.max_cost;
    settings
}

/// The run to resume; `None` for the last one.
fn named(run: &str) -> Option<&str> {
    Some(run).filter(|run| !run.is_empty())
}

fn resumed(args: &RunArgs, workspace: &Workspace) -> anyhow::Result<Option<SavedRun>> {
    Ok(args.resume.as_deref().map(|run| transcript::find_resumable(workspace, named(run))).transpose()?)
}

/// The requested model: a script, or the one of the command line or the settings.
fn model(args: &RunArgs, remote: Option<Box<dyn ChatModel>>, workspace: &Workspace) -> anyhow::Result<Box<dyn ChatModel>> {
    if let Some(path) = &args.script {
        let script = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
        let played = resumed(args, workspace)?.map_or(0, |place| place.turn);
        return Ok(Box::new(ScriptedModel::parse(&script)?.skip_turns(played)));
    }
    if let Some(model) = remote {
        return Ok(model);
    }
    if let Some(place) = resumed(args, workspace)? {
        let model = place.model;
        anyhow::bail!("no model is named: the run was with --model {model}; give that again, with its --url if it had one");
    }
    anyhow::bail!(
        "no model is named: give --model NAME, or set model.name in ~/.config/surehand/surehand.toml; --script FILE needs none, and `surehand demo` shows how it works"
    );
}

/// Connects to the named model, if any. The workspace is opened later, because that starts threads, and the key must be out of the
/// environment before.
fn connect(args: &RunArgs, keys: &Keys) -> anyhow::Result<Option<Box<dyn ChatModel>>> {
    let set = workspace::settings(&workspace::root(&args.place)?)?.model;
    let Some(name) = args.model.clone().or(set.name).filter(|_| args.script.is_none()) else { return Ok(None) };
    let protocol = match (args.protocol, set.protocol.as_deref()) {
        (Some(ProtocolArg::Openai), _) | (None, Some("openai")) => Some(ModelProtocol::OpenAi),
        (Some(ProtocolArg::Anthropic), _) | (None, Some("anthropic")) => Some(ModelProtocol::Anthropic),
        (None, _) => None,
    };
    let prices = TokenPrices { input: set.price_input, cached: set.price_cached, output: set.price_output };
    let url = args.url.clone().or(set.url);
    let key_store = KeyStore { command: set.key_command, file: set.key_file };
    let retry = RetryPolicy {
        idle: Duration::from_secs(set.seconds),
        attempts: set.attempts,
        first_pause: Duration::from_secs_f64(set.pause),
        ..RetryPolicy::default()
    };
    let connection = ModelConnection { model: name, url, protocol, key_store, prices, retry };
    Ok(Some(model::connect(&connection, &|name| keys.variable(name))?))
}

/// The first Ctrl-C finishes what has started; the second one exits at once.
fn stop_on_signals(cancel: &CancelToken) -> anyhow::Result<()> {
    // `nohup` starts a program that should outlive its terminal with this signal ignored.
    let gone = Some(signal::SIGHUP).filter(|signal| !is_ignored(*signal));
    for signal in [signal::SIGINT, signal::SIGTERM].into_iter().chain(gone) {
        flag::register_conditional_shutdown(signal, 130, cancel.flag()).context("signals")?;
        flag::register(signal, cancel.flag()).context("signals")?;
    }
    Ok(())
}

/// Whether the parent process set a signal to be ignored. Assumed where `/proc` cannot be read.
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_none_or(|mask| mask & (1 << (signal - 1)) != 0)
}

struct RunObserver {
    view: RunDisplay,
    /// Why the output failed.
    failed: Option<anyhow::Error>,
    cancel: CancelToken,
}

impl RunObserver {
    fn show(&mut self, event: &RunEvent) {
        if self.failed.is_some() {
            return;
        }
        if let Err(error) = self.view.show(event) {
            // A run that cannot be seen should end soon.
            self.failed = Some(error);
            self.cancel.cancel();
        }
    }
}

struct TerminalPerson<'a>(&'a RefCell<RunObserver>);

impl Approver for TerminalPerson<'_> {
    fn approve(&mut self, command: &str) -> Approval {
        let RunObserver { view, cancel, .. } = &mut *self.0.borrow_mut();
        match view.ask(command, cancel) {
            Ok(ApprovalAnswer::Once) => Approval::Yes,
            Ok(ApprovalAnswer::Always) => Approval::Always,
            Ok(ApprovalAnswer::No) => Approval::No(None),
            Ok(ApprovalAnswer::Instead(words)) => Approval::No(Some(words)),
            Ok(ApprovalAnswer::Nobody) => surehand_agent::command::NoApprover.approve(command),
            Err(error) => Approval::No(Some(format!("could not ask: {error:#}"))),
        }
    }
}
