//! `surehand init`: sets up clients, or takes out again what it put in. Says what it will write, asks, and keeps what was there.

pub(crate) mod client;
mod exclude;
pub(crate) mod files;
pub(crate) mod json;
mod jsonc;
pub(crate) mod places;
pub(crate) mod plan;
pub(crate) mod program;
pub(crate) mod save;
mod summary;
pub(crate) mod toml;

use std::{
    io::{self, IsTerminal},
    path::PathBuf,
    process::ExitCode,
};

use serde_json::{Value, json};
use surehand_agent::CancelToken;

use self::{
    client::Client,
    files::{Request, files, server_by_hand},
    places::{Places, Scope},
    plan::{Aim, Step, has_any, plan, wants_server},
    program::Program,
};
use crate::{args::InitArgs, output, place, view::Keyboard};

pub(crate) fn run(args: &InitArgs) -> anyhow::Result<ExitCode> {
    let setup = Setup::new(args)?;
    let clients = setup.clients(args);
    if !args.json {
        setup.say_what_comes_first(&clients, args)?;
    }
    let mut outcomes = Vec::new();
    for client in clients {
        for scope in setup.scopes(client) {
            let outcome = setup.one(client, scope)?;
            if !args.json {
                output::print(&summary::ending(&outcome, &setup))?;
            }
            outcomes.push(outcome);
        }
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
    request: Request,
    scope: Option<Scope>,
    aim: Aim,
    consent: Consent,
    /// Whether each change is shown.
    shows_diff: bool,
    /// Whether things are told as they come; otherwise they are told as JSON, at the end.
    tells: bool,
}

/// What came of a client.
struct Outcome {
    client: Client,
    scope: Scope,
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
        let program = Program::here()?;
        Ok(Self {
            places: Places::here(place::root(&args.place)?)?,
            request: Request { program: program.word.clone(), with_server: args.mcp },
            program,
            scope: args.scope(),
            aim: if args.remove { Aim::Remove } else { Aim::Add },
            consent,
            shows_diff: args.diff,
            tells: !args.json,
        })
    }

    /// Those that are named or, without any, those that are there; to take out, those that have something of ours.
    fn clients(&self, args: &InitArgs) -> Vec<Client> {
        let is_meant = |client: &Client| match self.aim {
            _ if !args.clients.is_empty() => args.clients.contains(client),
            Aim::Add => client.is_installed(&self.places),
            Aim::Remove => !self.scopes(*client).is_empty(),
        };
        Client::ALL.into_iter().filter(is_meant).collect()
    }

    /// Where a client is set up: as asked for, or else where it is set up already, or else for me. To take out, that is all of the
    /// project.
    fn scopes(&self, client: Client) -> Vec<Scope> {
        let has_any = |scope: &Scope| has_any(client, *scope, &self.places);
        let here: Vec<Scope> = [Scope::Me, Scope::Project].into_iter().filter(has_any).collect();
        match (self.scope, self.aim) {
            (Some(scope), Aim::Add) => vec![scope],
            (Some(scope), Aim::Remove) => Some(scope).into_iter().filter(has_any).collect(),
            (None, Aim::Remove) => here,
            (None, Aim::Add) if !here.is_empty() => here,
            (None, Aim::Add) if has_any(&Scope::Everywhere) => vec![Scope::Everywhere],
            (None, Aim::Add) => vec![Scope::Me],
        }
    }

    fn say_what_comes_first(&self, clients: &[Client], args: &InitArgs) -> anyhow::Result<()> {
        let is_anything = clients.iter().any(|client| !self.scopes(*client).is_empty());
        if is_anything {
            return match &self.program.note {
                Some(note) if self.aim == Aim::Add => output::print(&format!("note: {note}{}\n", self.about_program())),
                _ => Ok(()),
            };
        }
        let names: Vec<&str> = Client::ALL.iter().map(|client| client.name()).collect();
        output::print(&match self.aim {
            Aim::Add => format!("no client was found; name one to set it up all the same: surehand init {}\n", names.join("|")),
            Aim::Remove => format!("nothing to do{}\n", self.elsewhere(&args.clients)),
        })
    }

    /// What it means that the name does not lead to this program.
    fn about_program(&self) -> String {
        match self.scope {
            Some(Scope::Project) => {
                "; what is written for the project looks for it there, and does nothing until it is".to_owned()
            }
            _ => format!(", so the whole path is written: {}", self.program.word),
        }
    }

    /// Where there is something of ours after all.
    fn elsewhere(&self, clients: &[Client]) -> String {
        let is_meant = |client: &Client| clients.is_empty() || clients.contains(client);
        let has_any = |scope: &Scope| {
            Client::ALL.iter().filter(|client| is_meant(client)).any(|client| has_any(*client, *scope, &self.places))
        };
        let others = Scope::ALL.into_iter().filter(|scope| self.scope != Some(*scope));
        match others.into_iter().find(has_any) {
            Some(scope) => format!("; what is set up {} goes with --scope {}", scope.in_words(), scope.name()),
            None => String::new(),
        }
    }

    /// Sets up one client. What goes wrong with it is told, and the others go on.
    fn one(&self, client: Client, scope: Scope) -> anyhow::Result<Outcome> {
        let outcome = |state, files| Outcome { client, scope, state, files };
        let steps = match plan(client, scope, &self.places, &self.request, self.aim) {
            Ok(steps) => steps,
            Err(error) => return Ok(outcome(State::Failed(format!("{error:#}")), Vec::new())),
        };
        let untouched = |steps: Vec<Step>| steps.into_iter().map(|step| (step, None)).collect();
        if steps.iter().all(Step::is_nothing) {
            return Ok(outcome(State::Nothing, untouched(steps)));
        }
        if self.tells {
            output::print(&summary::announcement(client, scope, &steps, self))?;
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
        let top = if step.path.starts_with(&self.places.root) { &self.places.root } else { &self.places.home };
        let copy = match (&step.before, &step.after) {
            (Some(before), None) => save::remove(&step.path, before, top).map(|()| None)?,
            (before, Some(after)) => {
                let manner = save::Manner { keeps_copy: step.keeps_copy, is_program: step.is_program };
                save::replace(&step.path, before.as_deref(), after, manner)?
            }
            (None, None) => None,
        };
        step.old_copy.iter().for_each(|copy| save::forget(copy));
        Ok(copy)
    }

    /// Why the server that was asked for is not written, with what to do instead.
    fn server_by_hand(&self, client: Client, scope: Scope) -> Option<&'static str> {
        let has_place = || files(client, scope, &self.places, &self.request).iter().any(wants_server);
        if self.aim == Aim::Add && !client.has_hooks() && scope == Scope::Project && !self.request.with_server {
            return Some("it has no hooks, only the MCP server: that is written for a project with --mcp");
        }
        server_by_hand(client, scope).filter(|_| self.aim == Aim::Add && self.request.with_server && !has_place())
    }

    fn as_json(&self, outcomes: &[Outcome]) -> Value {
        json!({
            "root": self.places.root,
            "program": self.program.word,
            "note": self.program.note,
            "clients": outcomes.iter().map(|outcome| summary::as_json(outcome, self)).collect::<Vec<_>>(),
        })
    }
}

/// Asks until the answer is clear; the end of the input is a no.
fn ask() -> anyhow::Result<bool> {
    let Some(keyboard) = Keyboard::find() else { return Ok(false) };
    keyboard.forget();
    loop {
        output::print("  Write this? \x1b[1my\x1b[0m yes, \x1b[1mn\x1b[0m no > ")?;
        let Some(typed) = keyboard.line(&CancelToken::default())? else { return Ok(false) };
        match typed.trim().to_lowercase().as_str() {
            "y" | "yes" => return Ok(true),
            "n" | "no" => return Ok(false),
            _ => {}
        }
    }
}
