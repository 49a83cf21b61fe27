//! `surehand run`: works on a story with a model.

use std::{
    cell::RefCell,
    io::{self, IsTerminal, Read},
    process::ExitCode,
    thread,
    time::Duration,
};

use anyhow::Context;
use signal_hook::{consts::signal, flag, iterator::Signals, low_level};
use surehand_agent::{
    AgentRun, Approval, Approver, CancelToken, EditApproval, EditRequest, Person, Ports, RunEvent, RunSettings,
    command::{ApprovalMode, ApprovalRules, CommandRequest, NoApprover, RuleApprover, UnaskedCommands},
    event::StopReason,
    model::{
        self, ChatModel, GenerationSettings, KeyStore, ModelConnection, ModelProtocol, ReasoningEffort, RetryPolicy, TokenPrices,
        scripted::ScriptedModel,
    },
    transcript::{self, SavedRun},
};
use surehand_engine::{Sampling, Workspace, store::board::TaskEnd};

use super::run_fleet::FleetWork;

use crate::{
    api_keys::{self, ApiKeys},
    args::RunArgs,
    display::{ApprovalAnswer, DisplayMode, RunDisplay, restore_mode},
    output, workspace,
};

pub(crate) fn run(args: &RunArgs) -> anyhow::Result<ExitCode> {
    let keys = ApiKeys::take();
    let story = args.story.as_deref().map(story).transpose()?;
    let remote = connect(args, &keys)?;
    let mut secrets = keys.secrets();
    if let Some(model) = &remote {
        model.secrets().iter().for_each(|secret| secrets.add_key(secret));
        api_keys::clear_environment_of(&secrets);
    }
    // This starts threads.
    let workspace = workspace::open_in_fleet(&args.place)?;
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
    let allow = workspace.config().commands.allow.clone();
    let rules = ApprovalRules { allow, mode: asking, unasked: UnaskedCommands::here(&workspace) };
    let mut permission = RuleApprover::new(rules, TerminalPerson(&observer));
    let mut person = TerminalPerson(&observer);
    let mut listener = |event: &RunEvent| observer.borrow_mut().show(event);
    let mut work = |story: Option<&str>, cancel: CancelToken| -> anyhow::Result<StopReason> {
        let (settings, workspace) = (settings.clone(), workspace.clone());
        let ports =
            Ports { model: &mut *model, permission: &mut permission, person: &mut person, listener: &mut listener, cancel };
        let run = match (&args.resume, story) {
            (None, story) => AgentRun::new(workspace, story.unwrap_or_default(), settings, ports)?,
            (Some(name), None) => AgentRun::resume(workspace, named(name), settings, ports)?,
            (Some(name), Some(story)) => AgentRun::tell_further_story(workspace, named(name), story, settings, ports)?,
        };
        Ok(run.run()?.stop)
    };
    let stop = match args.fleet {
        true => work_on_shared_tasks(&FleetWork::on(&workspace, story.as_deref().unwrap_or_default())?, &cancel, &mut work)?,
        false => work(story.as_deref(), cancel)?,
    };
    match observer.into_inner().failed {
        // The reader has closed the pipe. The exit code still reports the result.
        Some(error) if !output::is_broken_pipe(&error) => return Err(error),
        _ => {}
    }
    Ok(match stop {
        StopReason::Done => ExitCode::SUCCESS,
        StopReason::Cancelled => ExitCode::from(130),
        StopReason::Budget | StopReason::Stuck => ExitCode::FAILURE,
        StopReason::Model => ExitCode::from(2),
    })
}

/// Works on the shared tasks of a story until none is free. If a task does not get done, it is given back and the work
/// ends. A task that another agent has taken over is left to that agent.
fn work_on_shared_tasks(
    fleet: &FleetWork,
    cancel: &CancelToken,
    work: &mut dyn FnMut(Option<&str>, CancelToken) -> anyhow::Result<StopReason>,
) -> anyhow::Result<StopReason> {
    while let Some(task) = fleet.claim()? {
        let of_task = cancel.part();
        let watch = fleet.watch(&task, &of_task);
        let stop = work(Some(&task.description), of_task);
        drop(watch);
        let is_done = matches!(stop, Ok(StopReason::Done));
        let was_held = fleet.end(&task, if is_done { TaskEnd::Complete } else { TaskEnd::Release })?;
        let is_left_to_another = !was_held && !cancel.is_cancelled() && matches!(stop, Ok(StopReason::Cancelled));
        if !is_done && !is_left_to_another {
            return stop;
        }
    }
    Ok(StopReason::Done)
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
    settings.mode = args.mode.unwrap_or(settings.mode);
    settings.budget = args.budget.unwrap_or(settings.budget);
    settings.dialect = args.dialect;
    settings.record_prompts = args.record_prompts;
    settings.ask_edits |= args.ask_edits;
    settings.limits.turns = Some(args.max_turns);
    settings.limits.tokens = args.max_tokens;
    settings.limits.cost = args.max_cost;
    settings.limits.minutes = args.max_minutes.or(settings.limits.minutes);
    settings
}

/// The run to resume; `None` for the last one.
fn named(run: &str) -> Option<&str> {
    Some(run).filter(|run| !run.is_empty())
}

fn resumed(args: &RunArgs, workspace: &Workspace) -> anyhow::Result<Option<SavedRun>> {
    let Some(run) = args.resume.as_deref().map(named) else { return Ok(None) };
    let found = match &args.story {
        Some(_) => transcript::find_for_story(workspace, run),
        None => transcript::find_resumable(workspace, run),
    };
    Ok(Some(found?))
}

/// The number of turns of a script that were already played. Another story has a script of its own.
fn turns_played(args: &RunArgs, workspace: &Workspace) -> anyhow::Result<u32> {
    let resumed = resumed(args, workspace)?.filter(|_| args.story.is_none());
    Ok(resumed.map_or(0, |saved| saved.turn - saved.story_turn.min(saved.turn)))
}

/// The model to use: a script, or the model of the command line or the settings.
fn model(args: &RunArgs, remote: Option<Box<dyn ChatModel>>, workspace: &Workspace) -> anyhow::Result<Box<dyn ChatModel>> {
    if let Some(path) = &args.script {
        let script = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
        return Ok(Box::new(ScriptedModel::parse(&script)?.skip_turns(turns_played(args, workspace)?)));
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

/// Connects to the configured model, if any. The workspace is opened later, because that starts threads, and before
/// that the key must be out of the environment.
fn connect(args: &RunArgs, keys: &ApiKeys) -> anyhow::Result<Option<Box<dyn ChatModel>>> {
    let set = workspace::settings(&workspace::root(&args.place)?)?.model;
    let Some(name) = args.model.clone().or(set.name).filter(|_| args.script.is_none()) else { return Ok(None) };
    let protocol = args.protocol.or(match set.protocol.as_deref() {
        Some("openai") => Some(ModelProtocol::OpenAi),
        Some("anthropic") => Some(ModelProtocol::Anthropic),
        Some("responses") => Some(ModelProtocol::Responses),
        _ => None,
    });
    let prices = TokenPrices { input: set.price_input, cached: set.price_cached, output: set.price_output };
    let url = args.url.clone().or(set.url);
    let key_store = KeyStore { command: set.key_command, file: set.key_file };
    let retry = RetryPolicy {
        idle: Duration::from_secs(set.seconds),
        attempts: set.attempts,
        first_pause: Duration::from_secs_f64(set.pause),
        ..RetryPolicy::default()
    };
    let generation = GenerationSettings {
        temperature: set.temperature.map(|Sampling(number)| number),
        top_p: set.top_p.map(|Sampling(number)| number),
        effort: set.effort.as_deref().and_then(ReasoningEffort::parse),
    };
    let (max_output_tokens, headers, query) = (set.max_output_tokens, set.headers, set.query);
    let connection =
        ModelConnection { model: name, url, protocol, key_store, prices, retry, max_output_tokens, generation, headers, query };
    Ok(Some(model::connect(&connection, &|name| keys.variable(name))?))
}

/// The first Ctrl-C lets started work finish; the second one exits at once.
fn stop_on_signals(cancel: &CancelToken) -> anyhow::Result<()> {
    // `nohup` starts a program with this signal ignored, so that the program outlives its terminal.
    let gone = Some(signal::SIGHUP).filter(|signal| !is_ignored(*signal));
    let all: Vec<i32> = [signal::SIGINT, signal::SIGTERM].into_iter().chain(gone).collect();
    for signal in &all {
        flag::register(*signal, cancel.flag()).context("signals")?;
    }
    let mut signals = Signals::new(&all).context("signals")?;
    let wait = move || {
        if signals.forever().nth(1).is_some() {
            restore_mode();
            end_row();
            low_level::exit(130);
        }
    };
    thread::Builder::new().name("signals".to_owned()).spawn(wait).map(drop).context("signals")
}

/// Moves to a new row, below the status. Does not use the lock of standard output, which another thread may hold
/// forever.
fn end_row() {
    let out = io::stdout();
    if out.is_terminal() {
        // If this fails, nothing is left to do: the process ends.
        let _ = rustix::io::write(out, b"\n");
    }
}

/// Whether the parent process set a signal to be ignored. Returns true where `/proc` cannot be read.
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_none_or(|mask| mask & (1 << (signal - 1)) != 0)
}

struct RunObserver {
    view: RunDisplay,
    /// The error of the output, if it failed.
    failed: Option<anyhow::Error>,
    cancel: CancelToken,
}

impl RunObserver {
    fn show(&mut self, event: &RunEvent) {
        if self.failed.is_some() {
            return;
        }
        if let Err(error) = self.view.show(event) {
            // A run without visible output should end soon.
            self.failed = Some(error);
            self.cancel.cancel();
        }
    }
}

struct TerminalPerson<'a>(&'a RefCell<RunObserver>);

impl Approver for TerminalPerson<'_> {
    fn approve(&mut self, request: &CommandRequest<'_>) -> Approval {
        let RunObserver { view, cancel, .. } = &mut *self.0.borrow_mut();
        match view.ask(request, cancel) {
            Ok(ApprovalAnswer::Once) => Approval::Yes,
            Ok(ApprovalAnswer::Always) => Approval::Always,
            Ok(ApprovalAnswer::No) => Approval::No(None),
            Ok(ApprovalAnswer::Instead(words)) => Approval::No(Some(words)),
            Ok(ApprovalAnswer::Unattended) => NoApprover.approve(request),
            Err(error) => Approval::No(Some(could_not_ask(&error))),
        }
    }
}

impl Person for TerminalPerson<'_> {
    fn is_there(&self) -> bool {
        self.0.borrow().view.is_attended()
    }

    fn take_words(&mut self) -> Vec<String> {
        self.0.borrow_mut().view.take_words()
    }

    fn answer(&mut self, _: &str) -> Option<String> {
        let RunObserver { view, cancel, .. } = &mut *self.0.borrow_mut();
        // A terminal that is gone gives no answer.
        view.answer(cancel).ok().flatten()
    }

    fn approve_edit(&mut self, request: &EditRequest<'_>) -> EditApproval {
        let RunObserver { view, cancel, .. } = &mut *self.0.borrow_mut();
        match view.ask_about_edit(request, cancel) {
            Ok(ApprovalAnswer::Once) => EditApproval::Yes,
            Ok(ApprovalAnswer::Always) => EditApproval::Always,
            Ok(ApprovalAnswer::No) => EditApproval::No(None),
            Ok(ApprovalAnswer::Instead(words)) => EditApproval::No(Some(words)),
            Ok(ApprovalAnswer::Unattended) => EditApproval::No(Some("there is no one to ask".to_owned())),
            Err(error) => EditApproval::No(Some(could_not_ask(&error))),
        }
    }
}

fn could_not_ask(error: &anyhow::Error) -> String {
    format!("could not ask: {error:#}")
}
