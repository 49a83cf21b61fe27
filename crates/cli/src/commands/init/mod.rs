//! `surehand init`: sets up clients, or takes out again what it put in. Shows what it will write, asks, and keeps what was there.

pub(crate) mod client;
pub(crate) mod json;
mod jsonc;
pub(crate) mod plan;
pub(crate) mod program;
pub(crate) mod save;
pub(crate) mod toml;

use std::{
    io::{self, IsTerminal},
    path::PathBuf,
    process::ExitCode,
};

use serde_json::{Value, json};
use surehand_agent::Cancel;
use surehand_engine::core::file_diff::DiffHunk;

use self::{
    client::{Client, Places, Scope},
    plan::{Aim, Step, has_any, plan},
    program::Program,
};
use crate::{
    args::InitArgs,
    output, place,
    view::{Keyboard, diff::coloured_hunks},
};

pub(crate) fn run(args: &InitArgs) -> anyhow::Result<ExitCode> {
    let setup = Setup::new(args)?;
    let clients = setup.clients(args);
    if !args.json {
        setup.say_what_comes_first(&clients, args)?;
    }
    let mut outcomes = Vec::new();
    for client in clients {
        let outcome = setup.one(client)?;
        if !args.json {
            output::print(&outcome.ending(&setup))?;
        }
        outcomes.push(outcome);
    }
    if args.json {
        output::print(&format!("{:#}\n", setup.as_json(&outcomes)))?;
    }
    Ok(exit_code(&outcomes, setup.aim))
}

fn exit_code(outcomes: &[Outcome], aim: Aim) -> ExitCode {
    if outcomes.iter().any(|outcome| matches!(outcome.state, State::Failed(_))) {
        return ExitCode::from(2);
    }
    let is_declined = |outcome: &Outcome| matches!(outcome.state, State::Declined | State::NotAsked);
    let found_nobody = outcomes.is_empty() && aim == Aim::Add;
    if found_nobody || outcomes.iter().any(is_declined) { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// How it is decided whether something is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Consent {
    /// It was given beforehand.
    Given,
    /// Nothing is to be written.
    DryRun,
    /// Somebody at the terminal is asked.
    Ask,
    /// Nobody can be asked.
    Nobody,
}

struct Setup {
    places: Places,
    program: Program,
    scope: Scope,
    aim: Aim,
    consent: Consent,
    /// Whether things are told as they come; otherwise they are told as JSON, at the end.
    tells: bool,
}

/// What came of a client.
struct Outcome {
    client: Client,
    state: State,
    /// Each file, with where its copy is.
    files: Vec<(Step, Option<PathBuf>)>,
}

enum State {
    Done,
    Nothing,
    Planned,
    Declined,
    NotAsked,
    Failed(String),
}

impl Setup {
    fn new(args: &InitArgs) -> anyhow::Result<Self> {
        let sees_a_question = io::stdin().is_terminal() && io::stdout().is_terminal() && !args.json;
        let consent = match (args.dry_run, args.yes) {
            (true, _) => Consent::DryRun,
            (_, true) => Consent::Given,
            _ if sees_a_question => Consent::Ask,
            _ => Consent::Nobody,
        };
        Ok(Self {
            places: Places::here(place::root(&args.place)?)?,
            program: Program::here()?,
            scope: if args.user { Scope::User } else { Scope::Project },
            aim: if args.remove { Aim::Remove } else { Aim::Add },
            consent,
            tells: !args.json,
        })
    }

    /// Those that are named or, without any, those that are there; to take out, those that have something of ours.
    fn clients(&self, args: &InitArgs) -> Vec<Client> {
        let is_meant = |client: &Client| match self.aim {
            _ if !args.clients.is_empty() => args.clients.contains(client),
            Aim::Add => client.is_installed(&self.places),
            Aim::Remove => has_any(*client, self.scope, &self.places),
        };
        Client::ALL.into_iter().filter(is_meant).collect()
    }

    fn say_what_comes_first(&self, clients: &[Client], args: &InitArgs) -> anyhow::Result<()> {
        if let Some(note) = self.program.note.as_ref().filter(|_| self.aim == Aim::Add && !clients.is_empty()) {
            output::print(&format!("note: {note}: {}\n", self.program.word))?;
        }
        if !clients.is_empty() || !args.clients.is_empty() {
            return Ok(());
        }
        let names: Vec<&str> = Client::ALL.iter().map(|client| client.name()).collect();
        output::print(&match self.aim {
            Aim::Add => format!("no client was found; name one to set it up all the same: surehand init {}\n", names.join("|")),
            Aim::Remove => format!("nothing to do{}\n", self.elsewhere()),
        })
    }

    /// Where there is something of ours after all.
    fn elsewhere(&self) -> &'static str {
        let (other, hint) = match self.scope {
            Scope::Project => (Scope::User, " in this project; what is set up for you everywhere goes with --user"),
            Scope::User => (Scope::Project, " for you everywhere; what is set up in this project goes without --user"),
        };
        if Client::ALL.iter().any(|client| has_any(*client, other, &self.places)) { hint } else { "" }
    }

    /// Sets up one client. What goes wrong with it is told, and the others go on.
    fn one(&self, client: Client) -> anyhow::Result<Outcome> {
        let outcome = |state, files| Outcome { client, state, files };
        let steps = match plan(client, self.scope, &self.places, &self.program.word, self.aim) {
            Ok(steps) => steps,
            Err(error) => return Ok(outcome(State::Failed(format!("{error:#}")), Vec::new())),
        };
        let untouched = |steps: Vec<Step>| steps.into_iter().map(|step| (step, None)).collect();
        if steps.iter().all(Step::is_nothing) {
            return Ok(outcome(State::Nothing, untouched(steps)));
        }
        if self.tells {
            output::print(&self.announcement(client, &steps))?;
        }
        if let Some(refused) = self.may_write()? {
            return Ok(outcome(refused, untouched(steps)));
        }
        let mut files = Vec::new();
        for step in steps {
            match self.act(&step) {
                Ok(copy) => files.push((step, copy)),
                Err(error) => return Ok(outcome(State::Failed(format!("{error:#}")), files)),
            }
        }
        Ok(outcome(State::Done, files))
    }

    fn announcement(&self, client: Client, steps: &[Step]) -> String {
        let mut text = format!("\x1b[1m{}\x1b[0m\n", client.title());
        for step in steps.iter().filter(|step| !step.is_nothing()) {
            let what = match step.act() {
                "create" => " (new)",
                "remove" => " (removed: nothing else is in it)",
                _ => "",
            };
            text.push_str(&format!("  {}{what}\n", self.places.shown(&step.path)));
            coloured_hunks(step.diff().hunks()).lines().for_each(|line| text.push_str(&format!("    {line}\n")));
        }
        text
    }

    /// Nothing if it may be written, or else why not.
    fn may_write(&self) -> anyhow::Result<Option<State>> {
        Ok(match self.consent {
            Consent::Given => None,
            Consent::DryRun => Some(State::Planned),
            Consent::Nobody => Some(State::NotAsked),
            Consent::Ask => (!ask()?).then_some(State::Declined),
        })
    }

    fn act(&self, step: &Step) -> anyhow::Result<Option<PathBuf>> {
        if step.is_nothing() {
            return Ok(None);
        }
        let top = if self.scope == Scope::Project { &self.places.root } else { &self.places.home };
        let copy = match (&step.before, &step.after) {
            (Some(before), None) => save::remove(&step.path, before, top).map(|()| None)?,
            (before, Some(after)) => {
                let copies = if step.copy.is_some() { save::Copies::None } else { save::Copies::Keep };
                save::replace(&step.path, before.as_deref(), after, copies)?
            }
            (None, None) => None,
        };
        step.copy.iter().for_each(|copy| save::forget(copy));
        Ok(copy)
    }

    fn as_json(&self, outcomes: &[Outcome]) -> Value {
        json!({
            "root": self.places.root,
            "scope": if self.scope == Scope::Project { "project" } else { "user" },
            "program": self.program.word,
            "note": self.program.note,
            "clients": outcomes.iter().map(|outcome| outcome.as_json(self)).collect::<Vec<_>>(),
        })
    }
}

/// Asks until the answer is clear; the end of the input is a no.
fn ask() -> anyhow::Result<bool> {
    let Some(keyboard) = Keyboard::find() else { return Ok(false) };
    keyboard.forget();
    loop {
        output::print("  Write this? \x1b[1my\x1b[0m yes, \x1b[1mn\x1b[0m no > ")?;
        let Some(typed) = keyboard.line(&Cancel::default())? else { return Ok(false) };
        match typed.trim().to_lowercase().as_str() {
            "y" | "yes" => return Ok(true),
            "n" | "no" => return Ok(false),
            _ => {}
        }
    }
}

impl Outcome {
    /// What is said when it is over.
    fn ending(&self, setup: &Setup) -> String {
        let title = self.client.title();
        let mut text = match &self.state {
            State::Nothing => format!("{title}: nothing to do\n"),
            State::Failed(why) => format!("{title}: \x1b[31mfailed\x1b[0m: {why}\n"),
            State::Planned => "  not written: a dry run\n".to_owned(),
            State::Declined => "  not written\n".to_owned(),
            State::NotAsked => "  not written: nobody is there to be asked; --yes writes without asking\n".to_owned(),
            State::Done => String::new(),
        };
        for (step, copy) in &self.files {
            let path = setup.places.shown(&step.path);
            if matches!(self.state, State::Done | State::Failed(_)) && !step.is_nothing() {
                let verb = if step.after.is_none() { "removed" } else { "wrote" };
                let copy = copy.as_ref().map(|copy| format!(" (as it was: {})", setup.places.shown(copy))).unwrap_or_default();
                text.push_str(&format!("  {verb} {path}{copy}\n"));
            }
            text.extend(step.note.iter().map(|note| format!("  {path} {note}\n")));
        }
        self.notes(setup).iter().for_each(|note| text.push_str(&format!("  next: {note}\n")));
        text
    }

    fn notes(&self, setup: &Setup) -> Vec<&'static str> {
        match (&self.state, setup.aim) {
            (State::Done, Aim::Add) => self.client.notes(setup.scope),
            _ => Vec::new(),
        }
    }

    fn as_json(&self, setup: &Setup) -> Value {
        let (state, error) = match &self.state {
            State::Done => ("done", None),
            State::Nothing => ("nothing", None),
            State::Planned => ("planned", None),
            State::Declined | State::NotAsked => ("not_asked", None),
            State::Failed(why) => ("failed", Some(why)),
        };
        let hunks = |step: &Step| step.diff().hunks().iter().map(DiffHunk::to_string).collect::<String>();
        let file = |(step, copy): &(Step, Option<PathBuf>)| json!({ "path": step.path, "act": step.act(), "diff": hunks(step), "backup": copy, "note": step.note });
        json!({
            "client": self.client.name(),
            "installed": self.client.is_installed(&setup.places),
            "state": state,
            "error": error,
            "files": self.files.iter().map(file).collect::<Vec<_>>(),
            "next": self.notes(setup),
        })
    }
}
