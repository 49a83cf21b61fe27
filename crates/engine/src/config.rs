//! Settings: the user's own file, then `surehand.toml` in the root as far as a repository may set a key, then the
//! environment. `config::keys` lists the keys. The error for an unknown key names the nearest known one.

mod keys;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    time::Duration,
};

use serde::{Deserialize, Serialize};
use surehand_core::{ContextMode, Limits, OnChange, Policy, instructions};
use toml::{Value, de::DeTable};

pub use self::keys::{ConfigKey, KEYS, RepositoryRule};
use crate::{
    disk::{commit::Durability, settings_file},
    state_dir::StateHome,
};

/// The settings of a workspace.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Config {
    /// How strict the gate is.
    pub policy: Policy,
    /// How much one call may read or show.
    pub limits: Limits,
    /// How safe a commit is against a power cut.
    pub durability: Durability,
    /// How many old versions are kept for undo.
    pub versions: VersionConfig,
    /// How much of uncommitted work is kept before it may be lost.
    pub checkpoint: CheckpointConfig,
    /// Files that no checkpoint keeps, as in a `.gitignore` file.
    pub never_kept: Vec<String>,
    /// Where the board is, and which data goes there.
    pub board: BoardConfig,
    /// Which files hold instructions, and how many tokens of them a reply may have.
    pub instructions: instructions::InstructionSettings,
    /// How the agent makes its prompt.
    pub context: ContextConfig,
    /// The model of the agent.
    pub model: ModelConfig,
    /// Limits of a run of the agent.
    pub run: RunConfig,
    /// Which commands the agent may run without asking, and their limits.
    pub commands: CommandConfig,
    /// Where the state is kept.
    pub state: StateHome,
    /// The settings of the repository's file that are ignored.
    pub ignored: Vec<IgnoredSetting>,
}

/// A setting in the repository's file that does not count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IgnoredSetting {
    /// The key, or `surehand.toml` if nothing in it counts.
    pub what: String,
    /// Why it does not count, as a message.
    pub why: String,
    /// The line of the key, from 1; `None` if the whole file does not count.
    pub line: Option<usize>,
}

/// How the agent makes its prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContextConfig {
    /// Whether the prompt contains the present state or the conversation.
    pub mode: ContextMode,
    /// Limit in tokens of a whole prompt, if it is made from the present state.
    pub budget: usize,
    /// Limit in tokens of a conversation before it is folded.
    pub window: usize,
}

impl Default for ContextConfig {
    fn default() -> Self {
        Self { mode: ContextMode::Snapshot, budget: 5000, window: 100_000 }
    }
}

/// Limits of a run of the agent.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct RunConfig {
    /// Limit in minutes, over all resumes of the run; `None` for no limit.
    pub minutes: Option<f64>,
    /// Whether a person is asked about each edit.
    pub ask_edits: bool,
}

/// The model of the agent. An API key is not a setting, but the place where it is kept is one.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelConfig {
    /// Its name at the provider.
    pub name: Option<String>,
    /// The URL of the provider; `None` for the one that follows from the name.
    pub url: Option<String>,
    /// The protocol: `openai`, `responses` or `anthropic`; `None` if it follows from the name.
    pub protocol: Option<String>,
    /// A file that holds the key.
    pub key_file: Option<String>,
    /// A command line that prints the key.
    pub key_command: Option<String>,
    /// Headers of each request, besides those of the protocol.
    pub headers: BTreeMap<String, String>,
    /// Query parameters of each request.
    pub query: BTreeMap<String, String>,
    /// How random the answers are; `None` leaves it to the provider.
    pub temperature: Option<Sampling>,
    /// From which share of the likely tokens the model chooses; `None` leaves it to the provider.
    pub top_p: Option<Sampling>,
    /// How long the model may think, in one word; `None` leaves it to the provider.
    pub effort: Option<String>,
    /// Dollars for a million tokens of a prompt; `None` if unknown.
    pub price_input: Option<f64>,
    /// Dollars for a million tokens that the provider has cached; `None` if unknown.
    pub price_cached: Option<f64>,
    /// Dollars for a million tokens of an answer; `None` if unknown.
    pub price_output: Option<f64>,
    /// Limit in tokens of one answer.
    pub max_output_tokens: u32,
    /// Seconds without a piece of an answer until a request counts as failed.
    pub seconds: u64,
    /// The most attempts for a request.
    pub attempts: u32,
    /// Maximum seconds before the second attempt, doubled before each further one.
    pub pause: f64,
}

impl Default for ModelConfig {
    fn default() -> Self {
        Self {
            name: None,
            url: None,
            protocol: None,
            key_file: None,
            key_command: None,
            headers: BTreeMap::new(),
            query: BTreeMap::new(),
            temperature: None,
            top_p: None,
            effort: None,
            price_input: None,
            price_cached: None,
            price_output: None,
            max_output_tokens: 16_384,
            seconds: 120,
            attempts: 6,
            pause: 2.0,
        }
    }
}

/// A number for the sampling of answers. Unlike a price, it may be 0.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sampling(pub f64);

/// The user's own settings: `surehand/surehand.toml` in the configuration directory.
pub(crate) fn user_file(environment: &[(String, String)]) -> Option<PathBuf> {
    let variable = |name: &str| {
        environment.iter().find(|(known, value)| known == name && value.starts_with('/')).map(|(_, value)| Path::new(value))
    };
    let directory = variable("XDG_CONFIG_HOME").map(Path::to_owned).or_else(|| Some(variable("HOME")?.join(".config")))?;
    Some(directory.join("surehand/surehand.toml"))
}

/// How many old versions are kept for undo.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VersionConfig {
    /// Limit in bytes, after compression.
    pub bytes: u64,
    /// Limit in days; only days on which Surehand recorded something count.
    pub days: i64,
}

impl Default for VersionConfig {
    fn default() -> Self {
        Self { bytes: 256_000_000, days: 30 }
    }
}

/// How much uncommitted work a checkpoint keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CheckpointConfig {
    /// Limit in bytes of all files together.
    pub bytes: u64,
    /// Limit in bytes of one file.
    pub file_bytes: u64,
    /// If a checkpoint takes longer than this many milliseconds, the next are taken only before commands that may
    /// delete or overwrite files.
    pub slow: u64,
}

impl Default for CheckpointConfig {
    fn default() -> Self {
        Self { bytes: 256_000_000, file_bytes: 20_000_000, slow: 300 }
    }
}

/// Where the board of a repository is, and which data goes there.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct BoardConfig {
    /// Whether agents appear on the board, and see the work of other agents.
    pub enabled: bool,
    /// The URL of a server; `None` means a file on this machine.
    pub url: Option<String>,
    /// Whether the text of changed lines is sent to that server. A file on this machine always has it.
    pub hunks: bool,
    /// Seconds for which a claim of an agent lasts without a heartbeat.
    pub lease: u64,
}

impl Default for BoardConfig {
    fn default() -> Self {
        Self { enabled: true, url: None, hunks: false, lease: 120 }
    }
}

impl BoardConfig {
    /// How long a claim of an agent lasts without a heartbeat. Long enough to survive an outage, short enough for other
    /// agents to wait.
    pub fn lease(&self) -> Duration {
        Duration::from_secs(self.lease)
    }

    /// Whether the text of changed lines is put on the board.
    pub fn takes_text(&self) -> bool {
        self.hunks || self.url.is_none()
    }
}

/// Hides the URL, which may hold a password.
impl std::fmt::Debug for BoardConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let url = self.url.as_ref().map(|_| "(not shown)");
        let Self { enabled, url: _, hunks, lease } = self;
        let mut shown = f.debug_struct("BoardConfig");
        shown.field("enabled", enabled).field("url", &url).field("hunks", hunks).field("lease", lease).finish()
    }
}

impl VersionConfig {
    /// The largest file in bytes that is kept whole. Half of the room is left for existing versions, and the file
    /// passes through memory.
    pub(crate) fn most_of_one(&self) -> u64 {
        const MOST_BYTES: u64 = 256_000_000;
        (self.bytes / 2).min(MOST_BYTES)
    }
}

/// How the agent runs commands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandConfig {
    /// Commands that run without asking; see [`surehand_core::shell::covered`].
    pub allow: Vec<String>,
    /// Paths that such a command may write besides the workspace: absolute ones, ones that begin with `~/`, and names
    /// of directories in the root, which are created if missing.
    pub writable: Vec<String>,
    /// Whether a command that runs without asking may use the network.
    pub network: bool,
    /// The time limit of a command in seconds, unless the call sets another.
    pub seconds: u64,
    /// Limit in bytes of a command's output; the middle of a longer one is left out.
    pub output_bytes: usize,
}

impl Default for CommandConfig {
    fn default() -> Self {
        Self { allow: Vec::new(), writable: Vec::new(), network: false, seconds: 120, output_bytes: 16_000 }
    }
}

/// Why settings cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("{place}: {why}")]
    Unreadable {
        /// Path of the settings file.
        place: String,
        /// The error of the system.
        why: String,
    },
    /// The file is not valid TOML.
    #[error("{place}: not valid TOML: {why}")]
    Syntax {
        /// Path of the settings file.
        place: String,
        /// The error of the parser.
        why: String,
    },
    /// There is no such key.
    #[error("{place}: unknown key {key}; did you mean {nearest}?")]
    UnknownKey {
        /// Where the key was set: the file with the line, or the variable.
        place: String,
        /// The key as given.
        key: String,
        /// The known key that is most like it.
        nearest: &'static str,
    },
    /// The value does not fit the key.
    #[error("{place}: {key} must be {wanted}: {found}")]
    BadValue {
        /// Where the key was set: the file with the line, or the variable.
        place: String,
        /// The full name of the key, such as `policy.on_change`.
        key: &'static str,
        /// The accepted values, in words.
        wanted: &'static str,
        /// The value as given, or a note that it may be a secret.
        found: String,
    },
}

impl Config {
    /// The settings of a workspace: defaults, then the user's own file, then what `surehand.toml` in `root` may set,
    /// then these variables of the environment.
    pub fn load(root: &Path, environment: impl IntoIterator<Item = (String, String)>) -> Result<Self, ConfigError> {
        Self::default().load_over(root, environment)
    }

    /// Like [`Config::load`], with these settings as the defaults.
    pub fn load_over(
        mut self,
        root: &Path,
        environment: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Self, ConfigError> {
        let environment: Vec<(String, String)> = environment.into_iter().collect();
        if let Some(file) = user_file(&environment) {
            self.read_user_file(&file)?;
        }
        self.read_repository_file(root);
        self.read_environment(environment)?;
        Ok(self)
    }

    /// Sets a key to a value that a program gives, such as `policy.on_change` to `"rebase"`.
    pub fn set_key(&mut self, name: &str, value: &serde_json::Value) -> Result<(), ConfigError> {
        let value = Value::try_from(value).unwrap_or_else(|_| Value::String(value.to_string()));
        self.set("settings", name, &value)
    }

    /// The defaults for hooks of other agents: their own tool matches the text again, so an edit of lines that are
    /// proven to be those that were seen need not be sent twice.
    pub fn for_hooks() -> Self {
        let policy = Policy { on_change: OnChange::Rebase, ..Policy::default() };
        Self { policy, ..Self::default() }
    }

    fn read_user_file(&mut self, file: &Path) -> Result<(), ConfigError> {
        let place = file.display().to_string();
        if let Some(why) = settings_file::why_untrusted(file) {
            // With `sudo -E` these are the settings of the user who called it.
            self.ignored.push(IgnoredSetting { what: place, why, line: None });
            return Ok(());
        }
        let text = settings_file::of_user(file).map_err(|why| ConfigError::Unreadable { place: place.clone(), why })?;
        let settings = text.as_deref().map(settings).unwrap_or_else(|| Ok(Vec::new()));
        for ParsedSetting { name, value, line } in settings.map_err(|why| ConfigError::Syntax { place: place.clone(), why })? {
            self.set(&format!("{place}:{line}"), &name, &value)?;
        }
        Ok(())
    }

    /// Takes the keys from the repository's file that a repository may set, and lists the others as ignored. Nothing in
    /// it is an error, not even a key of a newer version: a clone that could stop Surehand could switch its hooks off.
    fn read_repository_file(&mut self, root: &Path) {
        let text = settings_file::of_repository(&root.join(REPOSITORY_FILE));
        let read = text.and_then(|text| match text.as_deref().map(settings) {
            Some(parsed) => parsed.map_err(|why| format!("it is not valid TOML: {why}")),
            None => Ok(Vec::new()),
        });
        let settings = match read {
            Ok(settings) => settings,
            Err(why) => return self.ignore(REPOSITORY_FILE, &why, None),
        };
        let user = self.clone();
        for ParsedSetting { name, value, line } in settings {
            if let Err(why) = self.set_for_repository(&user, &name, &value) {
                self.ignore(&name, &why, Some(line));
            }
        }
    }

    fn set_for_repository(&mut self, user: &Config, name: &str, value: &Value) -> Result<(), String> {
        let key = find_key(name).map_err(|nearest| format!("unknown key; did you mean {nearest}?"))?;
        let RepositoryRule::Only { what, fits } = key.repository else {
            return Err("only you can set it, in your own settings or in the environment".to_owned());
        };
        let mut wanted = user.clone();
        if !key.set(&mut wanted, value) {
            return Err(format!("must be {}: {value}", key.wanted));
        }
        if !fits(user, &wanted) {
            return Err(format!("a repository may only set {what}: {value}"));
        }
        key.set(self, value);
        Ok(())
    }

    fn ignore(&mut self, what: &str, why: &str, line: Option<usize>) {
        self.ignored.push(IgnoredSetting { what: harmless(what), why: harmless(why), line });
    }

    /// `policy.durability` is set by `SUREHAND_POLICY_DURABILITY`. Variables of other sections are ignored.
    fn read_environment(&mut self, environment: impl IntoIterator<Item = (String, String)>) -> Result<(), ConfigError> {
        for (name, text) in environment {
            let Some(rest) = name.strip_prefix("SUREHAND_") else { continue };
            let sections =
                ["POLICY", "LIMITS", "VERSIONS", "CHECKPOINT", "INSTRUCTIONS", "CONTEXT", "MODEL", "RUN", "COMMANDS", "BOARD"];
            let Some((section, key)) = rest.split_once('_').filter(|(section, _)| sections.contains(section)) else { continue };
            let value = match (text.parse::<bool>(), text.parse::<i64>()) {
                (Ok(truth), _) => Value::Boolean(truth),
                (_, Ok(number)) => Value::Integer(number),
                _ => Value::String(text),
            };
            self.set(&name, &format!("{}.{}", section.to_lowercase(), key.to_lowercase()), &value)?;
        }
        Ok(())
    }

    fn set(&mut self, place: &str, name: &str, value: &Value) -> Result<(), ConfigError> {
        let place = place.to_owned();
        let key = match find_key(name) {
            Ok(key) => key,
            Err(nearest) => return Err(ConfigError::UnknownKey { place, key: name.to_owned(), nearest }),
        };
        if key.set(self, value) {
            return Ok(());
        }
        let found = if key.may_be_secret { "(not shown: it may hold a key)".to_owned() } else { value.to_string() };
        Err(ConfigError::BadValue { place, key: key.name, wanted: key.wanted, found })
    }
}

const REPOSITORY_FILE: &str = "surehand.toml";

struct ParsedSetting {
    name: String,
    value: Value,
    line: usize,
}

/// The keys of a file with their values. An unknown section without keys is returned as a key.
fn settings(text: &str) -> Result<Vec<ParsedSetting>, String> {
    let line_at = |place: usize| 1 + text.bytes().take(place).filter(|byte| *byte == b'\n').count();
    let in_words = |error: toml::de::Error| match error.span() {
        Some(span) => format!("line {}: {}", line_at(span.start), error.message()),
        None => error.message().to_owned(),
    };
    let table: toml::Table = text.parse().map_err(in_words)?;
    let places = DeTable::parse(text).map_err(in_words)?;
    let mut settings = Vec::new();
    for (section, value) in table {
        let is_known = KEYS.iter().any(|key| key.name.split('.').next() == Some(&section));
        let keys_at = places.get_ref().get_key_value(section.as_str());
        let line = keys_at.map_or(1, |(key, _)| line_at(key.span().start));
        match value {
            Value::Table(keys) if is_known || !keys.is_empty() => {
                let places = keys_at.and_then(|(_, keys)| keys.get_ref().as_table());
                settings.extend(keys.into_iter().map(|(key, value)| {
                    let place = places.and_then(|keys| keys.get_key_value(key.as_str()));
                    let line = place.map_or(line, |(key, _)| line_at(key.span().start));
                    ParsedSetting { name: format!("{section}.{key}"), value, line }
                }));
            }
            value => settings.push(ParsedSetting { name: section, value, line }),
        }
    }
    Ok(settings)
}

/// Finds a key by its name, or else the name of the known key that is most like it.
fn find_key(name: &str) -> Result<&'static ConfigKey, &'static str> {
    if let Some(key) = KEYS.iter().find(|key| key.name == name) {
        return Ok(key);
    }
    // If only a section is given, it is the mistyped part.
    let alike = |known: &str| {
        let section = known.split('.').next().unwrap_or(known);
        distance(if name.contains('.') { known } else { section }, name)
    };
    Err(KEYS.iter().map(|key| key.name).min_by_key(|known| alike(known)).expect("there are keys"))
}

/// Makes text from a clone safe for a terminal: short, and without control characters.
fn harmless(text: &str) -> String {
    const MOST_CHARS: usize = 200;
    text.chars().take(MOST_CHARS).map(|char| if char.is_control() { '\u{fffd}' } else { char }).collect()
}

/// The edit distance of two names.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, to) in b.iter().enumerate() {
            let changed = diagonal + usize::from(from != *to);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests;
