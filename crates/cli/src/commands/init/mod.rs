//! `surehand init`: sets up clients, or removes what it added. It shows what it will write, asks, and keeps a backup.

pub(crate) mod backup;
pub(crate) mod changes;
pub(crate) mod clients;
pub(crate) mod config_dirs;
pub(crate) mod config_files;
mod git_exclude;
pub(crate) mod json_config;
mod json_edit;
pub(crate) mod program;
mod summary;
pub(crate) mod toml_config;

use std::{
    io::{self, IsTerminal},
    path::PathBuf,
    process::ExitCode,
};

use serde_json::{Value, json};

use self::{
    changes::{ConfigChange, InitAction, has_any, plan, wants_server},
    clients::InitClient,
    config_dirs::{ConfigDirs, ConfigScope},
    config_files::{InitRequest, files, server_by_hand},
    program::Program,
};
use crate::{args::InitArgs, display::Keyboard, output, question, workspace};

pub(crate) fn run(args: &InitArgs) -> anyhow::Result<ExitCode> {
    let setup = Setup::new(args)?;
    let clients = setup.clients(args);
    if !args.json {
        setup.print_preamble(&clients, args)?;
    }
    let mut outcomes = Vec::new();
    for client in clients {
        for scope in setup.scopes(client) {
            let outcome = setup.one(client, scope);
            if !args.json {
                output::print(&summary::ending(&outcome, &setup))?;
            }
            outcomes.push(outcome);
        }
    }
    if args.json {
        output::print_json(&setup.as_json(&outcomes))?;
    }
    Ok(exit_code(&outcomes, setup.action))
}

fn exit_code(outcomes: &[InitOutcome], action: InitAction) -> ExitCode {
    if outcomes.iter().any(|outcome| matches!(outcome.state, InitStatus::Failed(_))) {
        return ExitCode::from(2);
    }
    let is_declined = |outcome: &InitOutcome| matches!(outcome.state, InitStatus::Declined | InitStatus::NotAsked);
    let found_none = outcomes.is_empty() && action == InitAction::Add;
    if found_none || outcomes.iter().any(is_declined) { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Consent {
    Given,
    DryRun,
    Ask,
    Unattended,
}

struct Setup {
    dirs: ConfigDirs,
    program: Program,
    request: InitRequest,
    scope: Option<ConfigScope>,
    action: InitAction,
    consent: Consent,
    shows_diff: bool,
    prints: bool,
}

struct InitOutcome {
    client: InitClient,
    scope: ConfigScope,
    state: InitStatus,
    files: Vec<(ConfigChange, Option<PathBuf>)>,
}

enum InitStatus {
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
            _ => Consent::Unattended,
        };
        let program = Program::here()?;
        Ok(Self {
            dirs: ConfigDirs::here(workspace::root(&args.place)?)?,
            request: InitRequest { program: program.word.clone(), with_server: args.mcp },
            program,
            scope: args.scope(),
            action: if args.remove { InitAction::Remove } else { InitAction::Add },
            consent,
            shows_diff: args.diff,
            prints: !args.json,
        })
    }

    /// The named clients. Without names: the installed ones, or for a removal, those that are set up.
    fn clients(&self, args: &InitArgs) -> Vec<InitClient> {
        let is_meant = |client: &InitClient| match self.action {
            _ if !args.clients.is_empty() => args.clients.contains(client),
            InitAction::Add => client.is_installed(&self.dirs),
            InitAction::Remove => !self.scopes(*client).is_empty(),
        };
        InitClient::all().filter(is_meant).collect()
    }

    /// The scopes to work on: the requested one, else those in which the client is already set up, else `me`. A removal
    /// takes all scopes of the project.
    fn scopes(&self, client: InitClient) -> Vec<ConfigScope> {
        let has_any = |scope: &ConfigScope| has_any(client, *scope, &self.dirs);
        let here: Vec<ConfigScope> = [ConfigScope::Me, ConfigScope::Project].into_iter().filter(has_any).collect();
        match (self.scope, self.action) {
            (Some(scope), InitAction::Add) => vec![scope],
            (Some(scope), InitAction::Remove) => Some(scope).into_iter().filter(has_any).collect(),
            (None, InitAction::Remove) => here,
            (None, InitAction::Add) if !here.is_empty() => here,
            (None, InitAction::Add) if has_any(&ConfigScope::Everywhere) => vec![ConfigScope::Everywhere],
            (None, InitAction::Add) => vec![ConfigScope::Me],
        }
    }

    fn print_preamble(&self, clients: &[InitClient], args: &InitArgs) -> anyhow::Result<()> {
        let is_anything = clients.iter().any(|client| !self.scopes(*client).is_empty());
        if is_anything {
            return match &self.program.note {
                Some(note) if self.action == InitAction::Add => output::print(&format!("note: {note}{}\n", self.about_program())),
                _ => Ok(()),
            };
        }
        let names: Vec<&str> = InitClient::all().map(|client| client.name()).collect();
        output::print(&match self.action {
            InitAction::Add => {
                format!("no client was found; name one to set it up all the same: surehand init {}\n", names.join("|"))
            }
            InitAction::Remove => format!("nothing to do{}\n", self.elsewhere(&args.clients)),
        })
    }

    fn about_program(&self) -> String {
        match self.scope {
            Some(ConfigScope::Project) => {
                "; what is written for the project looks for it there, and does nothing until it is".to_owned()
            }
            _ => format!(", so the whole path is written: {}", self.program.word),
        }
    }

    fn elsewhere(&self, clients: &[InitClient]) -> String {
        let is_meant = |client: &InitClient| clients.is_empty() || clients.contains(client);
        let has_any = |scope: &ConfigScope| InitClient::all().filter(is_meant).any(|client| has_any(client, *scope, &self.dirs));
        let others = ConfigScope::ALL.into_iter().filter(|scope| self.scope != Some(*scope));
        match others.into_iter().find(has_any) {
            Some(scope) => format!("; --scope {1} removes what is set up {0}", scope.in_words(), scope.name()),
            None => String::new(),
        }
    }

    /// Sets up one client, or removes its setup. An error is part of the outcome, so that the other clients are still
    /// handled.
    fn one(&self, client: InitClient, scope: ConfigScope) -> InitOutcome {
        let mut files = Vec::new();
        let state = self.change_files(client, scope, &mut files);
        let state = state.unwrap_or_else(|error| InitStatus::Failed(format!("{error:#}")));
        InitOutcome { client, scope, state, files }
    }

    /// Adds the changed files to `files`, also if a later one fails; without an error, also the unchanged ones.
    fn change_files(
        &self,
        client: InitClient,
        scope: ConfigScope,
        files: &mut Vec<(ConfigChange, Option<PathBuf>)>,
    ) -> anyhow::Result<InitStatus> {
        let steps = plan(client, scope, &self.dirs, &self.request, self.action)?;
        let untouched = |steps: Vec<ConfigChange>| steps.into_iter().map(|step| (step, None));
        if steps.iter().all(ConfigChange::is_nothing) {
            self.copy_program()?;
            files.extend(untouched(steps));
            return Ok(InitStatus::Nothing);
        }
        if self.prints {
            output::print(&summary::announcement(client, scope, &steps, self))?;
        }
        if let Some(refused) = self.may_write()? {
            files.extend(untouched(steps));
            return Ok(refused);
        }
        self.copy_program()?;
        for step in steps {
            let copy = self.act(&step)?;
            files.push((step, copy));
        }
        Ok(InitStatus::Done)
    }

    /// Copies a program that runs from a package runner's cache. An outdated copy is replaced even if no configuration
    /// changes.
    fn copy_program(&self) -> anyhow::Result<()> {
        match self.action == InitAction::Add && self.consent != Consent::DryRun {
            true => self.program.copy(),
            false => Ok(()),
        }
    }

    /// Returns `None` if the changes may be written, else the reason.
    fn may_write(&self) -> anyhow::Result<Option<InitStatus>> {
        Ok(match self.consent {
            Consent::Given => None,
            Consent::DryRun => Some(InitStatus::Planned),
            Consent::Unattended => Some(InitStatus::NotAsked),
            Consent::Ask => (!ask()?).then_some(InitStatus::Declined),
        })
    }

    fn act(&self, step: &ConfigChange) -> anyhow::Result<Option<PathBuf>> {
        if step.is_nothing() {
            return Ok(None);
        }
        let top = if step.path.starts_with(&self.dirs.root) { &self.dirs.root } else { &self.dirs.home };
        let copy = match (&step.before, &step.after) {
            (Some(before), None) => backup::remove(&step.path, before, top).map(|()| None)?,
            (_, Some(after)) => backup::replace(step, after)?,
            (None, None) => None,
        };
        step.old_copy.iter().for_each(|copy| backup::forget(copy));
        Ok(copy)
    }

    /// The reason that the requested server is not written, and what to do instead.
    fn server_by_hand(&self, client: InitClient, scope: ConfigScope) -> Option<&'static str> {
        let has_place = || files(client, scope, &self.dirs, &self.request).iter().any(wants_server);
        if self.action == InitAction::Add && !client.has_hooks() && scope == ConfigScope::Project && !self.request.with_server {
            return Some("it has no hooks, only the MCP server: that is written for a project with --mcp");
        }
        server_by_hand(client, scope).filter(|_| self.action == InitAction::Add && self.request.with_server && !has_place())
    }

    fn as_json(&self, outcomes: &[InitOutcome]) -> Value {
        json!({
            "root": self.dirs.root,
            "program": self.program.word,
            "note": self.program.note,
            "clients": outcomes.iter().map(|outcome| summary::as_json(outcome, self)).collect::<Vec<_>>(),
        })
    }
}

fn ask() -> anyhow::Result<bool> {
    Keyboard::find().map_or(Ok(false), |keyboard| question::ask_at(&keyboard, "  Write this?"))
}
