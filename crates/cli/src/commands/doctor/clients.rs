//! Each client: whether it is there, set up, and whether what it starts works.

use std::path::{Path, PathBuf};

use super::{Check, State, dry_run};
use crate::commands::init::{
    client::{Client, Places, Scope},
    json::OurHook,
    plan::found,
    program::{self, is_same, resolve},
    save,
    toml::{self, Leave},
};

/// What makes Codex run hooks.
const TRUST: &str = "type /hooks in Codex and trust them";

/// What a client has of ours.
#[derive(Default)]
struct Configured {
    servers: Vec<(Scope, Vec<String>)>,
    /// Each hook, with the file that it is in.
    hooks: Vec<(Scope, PathBuf, OurHook)>,
    troubles: Vec<String>,
}

pub(super) fn check(places: &Places) -> Vec<Check> {
    let mut checks = Vec::new();
    for client in Client::ALL {
        let configured = configured(client, places);
        checks.extend(Looked { client, places, configured }.checks());
    }
    if checks.is_empty() {
        checks.push(Check::new("clients", State::Warn, "none was found").remedy("surehand init CLIENT"));
    }
    checks
}

fn configured(client: Client, places: &Places) -> Configured {
    let mut all = Configured::default();
    for scope in [Scope::Project, Scope::User] {
        for file in client.files(scope, places, program::NAME) {
            match found(&file) {
                Ok(ours) => {
                    all.servers.extend(ours.server.map(|words| (scope, words)));
                    all.hooks.extend(ours.hooks.into_iter().map(|hook| (scope, file.path.clone(), hook)));
                }
                Err(error) => all.troubles.push(format!("{error:#}")),
            }
        }
    }
    all
}

struct Looked<'a> {
    client: Client,
    places: &'a Places,
    configured: Configured,
}

impl Looked<'_> {
    fn checks(&self) -> Vec<Check> {
        let Configured { servers, hooks, troubles } = &self.configured;
        let broken = troubles.iter().map(|trouble| self.check(State::Fail, trouble.clone()).remedy("correct the file"));
        let mut checks: Vec<Check> = broken.collect();
        if servers.is_empty() && hooks.is_empty() {
            if self.client.is_installed(self.places) {
                checks.push(self.check(State::Note, "is installed and not set up").remedy(self.init("")));
            }
            return checks;
        }
        if !self.client.is_installed(self.places) {
            checks.push(self.check(State::Note, "is set up, and not found on this machine"));
        }
        checks.extend(self.server());
        checks.extend(self.hooks());
        checks
    }

    fn check(&self, state: State, what: impl Into<String>) -> Check {
        Check::new(self.client.name(), state, what)
    }

    fn init(&self, words: &str) -> String {
        format!("surehand init {}{words}", self.client.name())
    }

    fn server(&self) -> Vec<Check> {
        let Some((scope, words)) = self.configured.servers.first() else {
            return vec![self.check(State::Warn, "has the hooks and not the MCP server").remedy(self.init(""))];
        };
        vec![self.program(*scope, words).or_else(|| self.not_tried(words, &["mcp"])).unwrap_or_else(|| {
            match dry_run::server() {
                Ok(millis) => self.check(State::Ok, format!("the MCP server answers ({millis} ms)")),
                Err(why) => self
                    .check(State::Fail, format!("the MCP server does not answer: {why}"))
                    .remedy(format!("try {}", words.join(" "))),
            }
        })]
    }

    /// The files of a project may have come with it, so nothing that they say is run: only this very program is tried, with the
    /// arguments that we write, and what says more is named.
    fn not_tried(&self, words: &[String], arguments: &[&str]) -> Option<Check> {
        let is_plain = words.split_first().is_some_and(|(_, rest)| rest == arguments);
        let what = || format!("starts surehand in a way of its own, which was not tried: {}", words.join(" ").escape_debug());
        (!is_plain).then(|| self.check(State::Note, what()))
    }

    /// What is wrong with the program that a command starts.
    fn program(&self, scope: Scope, words: &[String]) -> Option<Check> {
        let word = program::program_of(words)?;
        let again = self.init(if scope == Scope::User { " --user" } else { "" });
        match resolve(word) {
            None => Some(self.check(State::Fail, format!("starts {word}, which is not there")).remedy(again)),
            Some(found) => {
                let this = std::env::current_exe().ok()?;
                let what = || format!("starts another surehand than this one, {}", found.display());
                (!is_same(&found, &this)).then(|| self.check(State::Warn, what()).remedy(again))
            }
        }
    }

    fn hooks(&self) -> Vec<Check> {
        let hooks = &self.configured.hooks;
        let mut checks = Vec::new();
        let has = |event: &str| hooks.iter().any(|(.., hook)| hook.event == event);
        let missing: Vec<&str> = self.client.events().iter().map(|(event, _)| *event).filter(|event| !has(event)).collect();
        if hooks.is_empty() || !missing.is_empty() {
            let what = match hooks.is_empty() {
                true => "has the MCP server and not the hooks, so its own tools go unseen".to_owned(),
                false => format!("has no hook for {}", missing.join(", ")),
            };
            checks.push(self.check(State::Warn, what).remedy(self.init("")));
        }
        if [Scope::Project, Scope::User].iter().all(|scope| hooks.iter().any(|(of, ..)| of == scope)) {
            let what = "has the hooks twice, in this project and for you everywhere";
            checks.push(self.check(State::Warn, what).remedy(self.init(" --remove")));
        }
        checks.extend(self.trust());
        let mut commands: Vec<&Vec<String>> = hooks.iter().map(|(.., hook)| &hook.words).collect();
        commands.sort();
        commands.dedup();
        checks.extend(commands.into_iter().map(|words| self.dry_run(words)));
        checks
    }

    fn dry_run(&self, words: &[String]) -> Check {
        // The plugin has no words of its own; it starts what the server is started with.
        let server = || self.configured.servers.first().map_or_else(|| program::NAME.to_owned(), |(_, words)| words[0].clone());
        let words =
            if words.is_empty() { vec![server(), "hook".to_owned(), self.client.name().to_owned()] } else { words.to_vec() };
        let wrong = self.program(Scope::Project, &words);
        if let Some(wrong) = wrong.or_else(|| self.not_tried(&words, &["hook", self.client.name()])) {
            return wrong;
        }
        match dry_run::hook(self.client) {
            Ok(millis) => self.check(State::Ok, format!("the hooks answer ({millis} ms)")),
            Err(why) => self.check(State::Fail, format!("a hook does not work: {why}")).remedy(self.init("")),
        }
    }

    /// Codex runs no hook that nobody has trusted, and none that somebody has switched off.
    fn trust(&self) -> Vec<Check> {
        if self.client != Client::Codex || self.configured.hooks.is_empty() {
            return Vec::new();
        }
        let settings = save::read(&self.places.codex().join("config.toml")).ok().flatten().unwrap_or_default();
        let leave = |file: &Path, hook: &OurHook| toml::leave_of_hook(&settings, &toml::name_of_hook(file, hook));
        let events = |wanted: Leave| -> Vec<&str> {
            let hooks = self.configured.hooks.iter();
            hooks.filter(|(_, file, hook)| leave(file, hook) == wanted).map(|(.., hook)| hook.event.as_str()).collect()
        };
        let mut checks = Vec::new();
        let untold = events(Leave::Untold);
        if untold.len() == self.configured.hooks.len() {
            checks.push(self.check(State::Warn, "hooks are not trusted yet, so they do not run").remedy(TRUST));
        } else if !untold.is_empty() {
            let what = format!("the hooks for {} are not trusted, so they do not run", untold.join(", "));
            checks.push(self.check(State::Warn, what).remedy(TRUST));
        }
        let off = events(Leave::SwitchedOff);
        if !off.is_empty() {
            let what = format!("the hooks for {} are switched off", off.join(", "));
            checks.push(self.check(State::Warn, what).remedy("type /hooks in Codex and switch them on"));
        }
        if checks.is_empty() {
            checks.push(self.check(State::Ok, "hooks are trusted"));
        }
        checks
    }
}
