//! Checks each client: whether it is installed, which files guard its tools, whether its hooks and server work, and
//! what cannot be guarded.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use surehand_adapters::hooks;

use super::{Check, CheckState, dry_run};
use crate::{
    commands::init::{
        backup,
        changes::{files_of, found},
        clients::InitClient,
        config_dirs::{ConfigDirs, ConfigScope},
        json_config::InstalledHook,
        program::{self, is_same, resolve},
        toml_config::{self, HookTrust},
    },
    installation::has_same_bytes,
};

const TRUST: &str = "type /hooks in Codex and trust them";

pub(super) struct ClientReport {
    pub client: InitClient,
    is_installed: bool,
    scopes: Vec<ConfigScope>,
    /// Whether its hooks are set up and work.
    pub is_guarded: bool,
    pub checks: Vec<Check>,
}

impl ClientReport {
    pub(super) fn is_set_up(&self) -> bool {
        !self.scopes.is_empty()
    }

    pub(super) fn as_json(&self) -> Value {
        let scopes: Vec<&str> = self.scopes.iter().map(|scope| scope.name()).collect();
        let profile = self.client.profile();
        json!({
            "client": profile.name,
            "installed": self.is_installed,
            "guarded": self.is_guarded,
            "scopes": scopes,
            "limits": profile.limits,
        })
    }
}

#[derive(Default)]
struct FoundConfig {
    servers: Vec<(ConfigScope, Vec<String>)>,
    hooks: Vec<(ConfigScope, PathBuf, InstalledHook)>,
    troubles: Vec<String>,
}

pub(super) fn check_clients(dirs: &ConfigDirs) -> Vec<ClientReport> {
    let report = |client: InitClient| {
        let is_installed = client.is_installed(dirs);
        let configured = configured(client, dirs);
        ClientFindings { client, dirs, configured, is_installed }.report()
    };
    InitClient::all().map(report).filter(|report| report.is_installed || !report.checks.is_empty()).collect()
}

fn configured(client: InitClient, dirs: &ConfigDirs) -> FoundConfig {
    let mut all = FoundConfig::default();
    for scope in ConfigScope::ALL {
        for file in files_of(client, scope, dirs) {
            match found(&file) {
                Ok(ours) => {
                    all.servers.extend(ours.server.map(|words| (scope, words)));
                    all.hooks.extend(ours.hooks.into_iter().map(|hook| (scope, file.path.clone(), hook)));
                }
                Err(error) => all.troubles.push(format!("{error:#}")),
            }
        }
    }
    all.troubles.dedup();
    all
}

impl FoundConfig {
    fn scopes(&self) -> Vec<ConfigScope> {
        let has_hooks = |scope: &ConfigScope| self.hooks.iter().any(|(of, ..)| of == scope);
        ConfigScope::ALL.into_iter().filter(has_hooks).collect()
    }
}

struct ClientFindings<'a> {
    client: InitClient,
    dirs: &'a ConfigDirs,
    configured: FoundConfig,
    is_installed: bool,
}

impl ClientFindings<'_> {
    fn report(&self) -> ClientReport {
        let FoundConfig { servers, hooks, troubles } = &self.configured;
        let broken = troubles.iter().map(|trouble| self.check(CheckState::Fail, trouble.clone()).remedy("correct the file"));
        let mut checks: Vec<Check> = broken.collect();
        let scopes = self.configured.scopes();
        let (client, is_installed) = (self.client, self.is_installed);
        if servers.is_empty() && hooks.is_empty() {
            checks.extend(is_installed.then(|| self.not_set_up()));
            return ClientReport { client, is_installed, scopes, is_guarded: false, checks };
        }
        if !is_installed {
            checks.push(self.check(CheckState::Note, "is set up, and not found on this machine"));
        }
        checks.extend(self.guard());
        let hooks = self.hooks();
        let is_guarded = !scopes.is_empty() && checks.iter().chain(&hooks).all(|check| check.state != CheckState::Fail);
        checks.extend(self.server());
        checks.extend(hooks);
        let limits = client.profile().limits.iter();
        checks.extend(limits.map(|limit| self.check(CheckState::Note, format!("limit: {limit}"))));
        ClientReport { client, is_installed, scopes, is_guarded, checks }
    }

    fn check(&self, state: CheckState, what: impl Into<String>) -> Check {
        Check::new(self.client.name(), state, what)
    }

    fn init(&self, words: &str) -> String {
        format!("surehand init {}{words}", self.client.name())
    }

    fn not_set_up(&self) -> Check {
        if self.client.has_hooks() {
            return self.check(CheckState::Note, "is installed and not guarded").remedy(self.init(""));
        }
        let limit = self.client.profile().limits.first().copied().unwrap_or_default();
        let what = format!("is installed and cannot be guarded: {limit}");
        self.check(CheckState::Note, what).remedy(format!("{} gives it the MCP server, whose tools are", self.init("")))
    }

    fn guard(&self) -> Option<Check> {
        let hooks = &self.configured.hooks;
        if hooks.is_empty() {
            let what = "has the MCP server and not the hooks, so its own tools are not guarded";
            return self.client.has_hooks().then(|| self.check(CheckState::Warn, what).remedy(self.init("")));
        }
        let mut dirs: Vec<String> = Vec::new();
        for (scope, path, _) in hooks {
            // Each event has its own file, so the directory is shown.
            let path = if self.client == InitClient::Cline { path.parent().unwrap_or(path) } else { path };
            let place = format!("{} ({})", scope.in_words(), self.dirs.shown(path));
            if !dirs.contains(&place) {
                dirs.push(place);
            }
        }
        Some(self.check(CheckState::Ok, format!("has hooks {}", dirs.join(", and "))))
    }

    fn server(&self) -> Option<Check> {
        let (scope, words) = self.configured.servers.first()?;
        let words = program::started(words);
        let arguments: &[&str] =
            if self.client == InitClient::Vscode { &["mcp", "--root", "${workspaceFolder}"] } else { &["mcp"] };
        Some(self.program(*scope, words).or_else(|| self.not_tried(words, arguments)).unwrap_or_else(|| {
            match dry_run::server() {
                Ok(millis) => self.check(CheckState::Ok, format!("the MCP server answers ({millis} ms)")),
                Err(why) => self
                    .check(CheckState::Fail, format!("the MCP server does not answer: {why}"))
                    .remedy(format!("try {}", words.join(" "))),
            }
        }))
    }

    /// The files of a project may come from a clone, so their commands are not run. Only this program is run, with the
    /// arguments that `init` writes. Other arguments are reported.
    fn not_tried(&self, words: &[String], arguments: &[&str]) -> Option<Check> {
        let is_plain = words.split_first().is_some_and(|(_, rest)| rest == arguments);
        let what = || format!("starts surehand with other arguments, which were not tried: {}", words.join(" ").escape_debug());
        (!is_plain).then(|| self.check(CheckState::Note, what()))
    }

    fn program(&self, scope: ConfigScope, words: &[String]) -> Option<Check> {
        let word = words.first()?;
        let again = self.init(&format!(" --scope {}", scope.name()));
        match resolve(word) {
            None => {
                let remedy = if word.contains('/') { again } else { "put surehand on your PATH".to_owned() };
                Some(self.check(CheckState::Fail, format!("starts {word}, which is not there")).remedy(remedy))
            }
            Some(found) => {
                let this = std::env::current_exe().ok()?;
                let what = || format!("starts another surehand than this one, {}", found.display());
                (!is_same(&found, &this) && !has_same_bytes(&found, &this))
                    .then(|| self.check(CheckState::Warn, what()).remedy(again))
            }
        }
    }

    fn hooks(&self) -> Vec<Check> {
        let hooks = &self.configured.hooks;
        if hooks.is_empty() {
            return Vec::new();
        }
        let mut checks = Vec::new();
        let has = |event: &str| hooks.iter().any(|(.., hook)| hook.event == event);
        let missing: Vec<&str> = self.client.events().iter().copied().filter(|event| !has(event)).collect();
        if !missing.is_empty() {
            checks.push(self.check(CheckState::Warn, format!("has no hook for {}", missing.join(", "))).remedy(self.init("")));
        }
        checks.extend(self.old_hooks());
        if let [one, other, ..] = self.configured.scopes()[..] {
            let what = format!("has the hooks twice, {} and {}", one.in_words(), other.in_words());
            checks.push(self.check(CheckState::Warn, what).remedy(self.init(&format!(" --remove --scope {}", one.name()))));
        }
        checks.extend(self.trust());
        checks.extend(self.dry_runs());
        checks
    }

    /// Hooks of an older version, which fail if the program is missing.
    fn old_hooks(&self) -> Option<Check> {
        let is_old = |hook: &InstalledHook| hook.is_unguarded();
        let scope = self.configured.hooks.iter().find(|(.., hook)| is_old(hook)).map(|(scope, ..)| *scope)?;
        let what = format!("has hooks in an older format {}, which fail if surehand is missing", scope.in_words());
        Some(self.check(CheckState::Warn, what).remedy(self.init(&format!(" --scope {}", scope.name()))))
    }

    /// Tries each command once, without its event.
    fn dry_runs(&self) -> Vec<Check> {
        let mut commands: Vec<(ConfigScope, Vec<String>)> = Vec::new();
        for (scope, _, hook) in &self.configured.hooks {
            let words: Vec<String> = program::started(&hook.words).iter().filter(|word| **word != hook.event).cloned().collect();
            if !commands.iter().any(|(_, known)| *known == words) {
                commands.push((*scope, words));
            }
        }
        commands.iter().map(|(scope, words)| self.dry_run(*scope, words)).collect()
    }

    fn dry_run(&self, scope: ConfigScope, words: &[String]) -> Check {
        let wrong = self.program(scope, words);
        if let Some(wrong) = wrong.or_else(|| self.not_tried(words, &["hook", self.client.name()])) {
            return wrong;
        }
        if hooks::HookClient::ALL.iter().all(|client| client.name() != self.client.name()) {
            return self.check(CheckState::Fail, format!("this surehand does not know the hooks of {}", self.client.title()));
        }
        match dry_run::hook(self.client) {
            Ok(millis) => self.check(CheckState::Ok, format!("the hooks answer ({millis} ms)")),
            Err(why) => self.check(CheckState::Fail, format!("a hook does not work: {why}")).remedy(self.init("")),
        }
    }

    /// Codex runs only hooks that the user trusts and has not switched off.
    fn trust(&self) -> Vec<Check> {
        if self.client != InitClient::Codex {
            return Vec::new();
        }
        let settings = self.dirs.in_home("CODEX_HOME", ".codex").join("config.toml");
        let settings = backup::read(&settings).ok().flatten().unwrap_or_default();
        let trust =
            |file: &Path, hook: &InstalledHook| toml_config::trust_in_hook(&settings, &toml_config::name_of_hook(file, hook));
        let events = |wanted: HookTrust| -> Vec<&str> {
            let hooks = self.configured.hooks.iter();
            hooks.filter(|(_, file, hook)| trust(file, hook) == wanted).map(|(.., hook)| hook.event.as_str()).collect()
        };
        let mut checks = Vec::new();
        let not_trusted = events(HookTrust::NotTrusted);
        if not_trusted.len() == self.configured.hooks.len() {
            checks.push(self.check(CheckState::Fail, "hooks are not trusted yet, so they do not run").remedy(TRUST));
        } else if !not_trusted.is_empty() {
            let what = format!("the hooks for {} are not trusted, so they do not run", not_trusted.join(", "));
            checks.push(self.check(CheckState::Fail, what).remedy(TRUST));
        }
        let off = events(HookTrust::SwitchedOff);
        if !off.is_empty() {
            let what = format!("the hooks for {} are switched off", off.join(", "));
            checks.push(self.check(CheckState::Fail, what).remedy("type /hooks in Codex and switch them on"));
        }
        if checks.is_empty() {
            checks.push(self.check(CheckState::Ok, "hooks are trusted"));
        }
        checks
    }
}
