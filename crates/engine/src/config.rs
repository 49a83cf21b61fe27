//! What the owner of a workspace may set: `surehand.toml` in the root, then the environment. Every key is in one table, so that
//! a wrong one can be answered with the nearest right one.

use std::path::{Path, PathBuf};

use surehand_core::{Limits, Mode, OnChange, Policy, instructions, shell};
use toml::Value;

use crate::workspace::Durability;

/// The settings of a workspace.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Config {
    /// How strict the gate is.
    pub policy: Policy,
    /// How much one call may read or show.
    pub limits: Limits,
    /// How safe a commit is against a power cut.
    pub durability: Durability,
    /// How much of what was replaced is kept.
    pub versions: Versions,
    /// Which files hold instructions for their directories, and how much of them is told.
    pub instructions: instructions::Settings,
    /// How the agent makes its prompt.
    pub context: Context,
    /// Whom the agent asks.
    pub model: Model,
    /// Which commands the agent may run unasked, for how long, and how much of their output is shown.
    pub commands: Commands,
    /// Keys in the repository's file that are not for it to set.
    pub ignored: Vec<&'static str>,
}

/// How the agent makes its prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Context {
    /// From what.
    pub mode: Mode,
    /// Tokens of a whole prompt, if it is made from the present state.
    pub budget: usize,
    /// Tokens that a conversation may take before it is folded.
    pub window: usize,
}

impl Default for Context {
    fn default() -> Self {
        Self { mode: Mode::Snapshot, budget: 5000, window: 100_000 }
    }
}

/// Whom the agent asks. A key is not a setting, but where it is kept is one.
#[derive(Debug, Clone, PartialEq)]
pub struct Model {
    /// As its provider calls it.
    pub name: Option<String>,
    /// Where it is served.
    pub url: Option<String>,
    /// How it is spoken to: `openai` or `anthropic`.
    pub protocol: Option<String>,
    /// A file that holds the key.
    pub key_file: Option<String>,
    /// A command line that prints the key.
    pub key_command: Option<String>,
    /// Dollars for a million tokens of a prompt.
    pub price_input: Option<f64>,
    /// The same for what is in the provider's cache.
    pub price_cached: Option<f64>,
    /// Dollars for a million tokens of an answer.
    pub price_output: Option<f64>,
    /// For how many seconds nothing may come before a request counts as failed.
    pub seconds: u64,
    /// How often a request is made, at most.
    pub attempts: u32,
    /// Seconds before the second attempt, at most.
    pub pause: f64,
}

impl Default for Model {
    fn default() -> Self {
        Self {
            name: None,
            url: None,
            protocol: None,
            key_file: None,
            key_command: None,
            price_input: None,
            price_cached: None,
            price_output: None,
            seconds: 120,
            attempts: 6,
            pause: 2.0,
        }
    }
}

/// Keys that are the user's alone: whoever clones a repository has not agreed to run its commands, or to send a key to its server.
pub const PERSONAL: &[&str] = &["commands.allow", "model.url", "model.key_file", "model.key_command"];

/// Whose word a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Whose {
    User,
    Repository,
}

/// The user's own settings: `surehand/surehand.toml` where configuration is kept.
pub fn user_file(environment: &[(String, String)]) -> Option<PathBuf> {
    let variable = |name: &str| {
        environment.iter().find(|(known, value)| known == name && value.starts_with('/')).map(|(_, value)| Path::new(value))
    };
    let directory = variable("XDG_CONFIG_HOME").map(Path::to_owned).or_else(|| Some(variable("HOME")?.join(".config")))?;
    Some(directory.join("surehand/surehand.toml"))
}

/// How much of what was replaced is kept, to be brought back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Versions {
    /// Bytes, packed.
    pub bytes: u64,
    /// Days since it was of use.
    pub days: i64,
}

impl Default for Versions {
    fn default() -> Self {
        Self { bytes: 256_000_000, days: 30 }
    }
}

/// How the agent runs commands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Commands {
    /// What it may run unasked; see [`shell::covered`].
    pub allow: Vec<String>,
    /// How long one may take, unless the call says otherwise.
    pub seconds: u64,
    /// How much of its output is shown, in bytes.
    pub output_bytes: usize,
}

impl Default for Commands {
    fn default() -> Self {
        Self { allow: Vec::new(), seconds: 120, output_bytes: 16_000 }
    }
}

/// A setting that makes no sense.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("{place}: {why}")]
    Unreadable {
        /// The file.
        place: String,
        /// What the system said.
        why: String,
    },
    /// Not TOML.
    #[error("{place}: not valid TOML: {why}")]
    Syntax {
        /// The file.
        place: String,
        /// What the parser said.
        why: String,
    },
    /// There is no such key.
    #[error("{place}: unknown key {key}; did you mean {nearest}?")]
    UnknownKey {
        /// The file, or the environment.
        place: String,
        /// As given.
        key: String,
        /// The known key most like it.
        nearest: &'static str,
    },
    /// The value does not fit the key.
    #[error("{place}: {key} must be {wanted}: {found}")]
    BadValue {
        /// The file, or the environment.
        place: String,
        /// The key.
        key: &'static str,
        /// What it takes.
        wanted: &'static str,
        /// As given.
        found: String,
    },
}

/// A key that may be set.
pub struct Key {
    /// Section and name.
    pub name: &'static str,
    /// What it takes.
    pub wanted: &'static str,
    /// What it is when nobody sets it.
    pub default: &'static str,
    /// What it does.
    pub meaning: &'static str,
    /// Sets it; `false` says that the value does not fit.
    set: fn(&mut Config, &Value) -> bool,
}

/// Every key there is.
pub const KEYS: &[Key] = &[
    Key {
        name: "policy.require_read",
        wanted: TRUTH,
        default: "true",
        meaning: "an edit needs a read first; off, only files that were read and changed since are refused",
        set: |config, value| put(&mut config.policy.require_read, value.as_bool()),
    },
    Key {
        name: "policy.on_change",
        wanted: "\"refuse\" or \"rebase\"",
        default: "\"refuse\"",
        meaning: "what happens to an edit of a file that changed since it was read: refuse shows what changed; rebase makes it all the same if its lines are proven to be the ones that were seen",
        set: |config, value| put(&mut config.policy.on_change, on_change(value)),
    },
    Key {
        name: "policy.short_rereads",
        wanted: TRUTH,
        default: "false",
        meaning: "a read of unchanged lines that were shown before is answered with a note; for clients that call `forget` after every compaction",
        set: |config, value| put(&mut config.policy.short_rereads, value.as_bool()),
    },
    Key {
        name: "policy.durability",
        wanted: "\"full\" or \"fast\"",
        default: "\"full\"",
        meaning: "full syncs files, directories and the journal; fast syncs nothing and is still safe against crashes of programs",
        set: |config, value| put(&mut config.durability, durability(value)),
    },
    Key {
        name: "limits.read_lines",
        wanted: COUNT,
        default: "2000",
        meaning: "lines in one read",
        set: |config, value| put(&mut config.limits.read_lines, count(value)),
    },
    Key {
        name: "limits.read_bytes",
        wanted: COUNT,
        default: "100000",
        meaning: "bytes in one read",
        set: |config, value| put(&mut config.limits.read_bytes, count(value)),
    },
    Key {
        name: "limits.line_chars",
        wanted: COUNT,
        default: "2000",
        meaning: "characters shown of one line; a longer one is cut and counts as partly seen",
        set: |config, value| put(&mut config.limits.line_chars, count(value)),
    },
    Key {
        name: "limits.file_bytes",
        wanted: COUNT,
        default: "50000000",
        meaning: "bytes of a file that is read or written at all",
        set: |config, value| put(&mut config.limits.file_bytes, count(value).map(|bytes| bytes as u64)),
    },
    Key {
        name: "limits.batch_edits",
        wanted: COUNT,
        default: "1000",
        meaning: "edits in one call",
        set: |config, value| put(&mut config.limits.batch_edits, count(value)),
    },
    Key {
        name: "versions.bytes",
        wanted: COUNT,
        default: "256000000",
        meaning: "packed bytes of replaced content that are kept for undo",
        set: |config, value| put(&mut config.versions.bytes, count(value).map(|bytes| bytes as u64)),
    },
    Key {
        name: "versions.days",
        wanted: COUNT,
        default: "30",
        meaning: "days for which replaced content is kept for undo",
        set: |config, value| put(&mut config.versions.days, count(value).filter(|days| *days <= 36_500).map(|days| days as i64)),
    },
    Key {
        name: "instructions.names",
        wanted: "a list of file names (in the environment with commas between)",
        default: "[\"AGENTS.md\", \"agents.md\"]",
        meaning: "files with instructions for work in their directory and beneath, of which the first in each directory is told; none switches it off",
        set: |config, value| put(&mut config.instructions.names, names(value)),
    },
    Key {
        name: "instructions.tokens",
        wanted: COUNT,
        default: "2000",
        meaning: "tokens told of one file with instructions, about; the rest is cut",
        set: |config, value| put(&mut config.instructions.tokens, count(value)),
    },
    Key {
        name: "instructions.total_tokens",
        wanted: COUNT,
        default: "4000",
        meaning: "tokens of instructions in one reply, about; the rest comes with the next ones",
        set: |config, value| put(&mut config.instructions.total_tokens, count(value)),
    },
    Key {
        name: "context.mode",
        wanted: "\"snapshot\" or \"history\"",
        default: "\"snapshot\"",
        meaning: "what the agent's prompt is made from: the present state, or the whole conversation",
        set: |config, value| put(&mut config.context.mode, mode(value)),
    },
    Key {
        name: "context.budget",
        wanted: COUNT,
        default: "5000",
        meaning: "tokens of the agent's whole prompt, tools included, in snapshot mode",
        set: |config, value| put(&mut config.context.budget, count(value)),
    },
    Key {
        name: "context.window",
        wanted: COUNT,
        default: "100000",
        meaning: "tokens of the agent's conversation before it is folded, in history mode",
        set: |config, value| put(&mut config.context.window, count(value)),
    },
    Key {
        name: "model.name",
        wanted: TEXT,
        default: "\"\"",
        meaning: "the model that the agent asks, as its provider calls it",
        set: |config, value| put(&mut config.model.name, text(value)),
    },
    Key {
        name: "model.url",
        wanted: TEXT,
        default: "\"\"",
        meaning: "where the model is served; none is the provider's own address",
        set: |config, value| put(&mut config.model.url, text(value)),
    },
    Key {
        name: "model.protocol",
        wanted: "\"openai\", \"anthropic\" or \"\"",
        default: "\"\"",
        meaning: "how the model is spoken to; none goes by its name",
        set: |config, value| {
            put(
                &mut config.model.protocol,
                text(value).filter(|name| matches!(name.as_deref(), None | Some("openai" | "anthropic"))),
            )
        },
    },
    Key {
        name: "model.key_file",
        wanted: TEXT,
        default: "\"\"",
        meaning: "a file that holds the key for the model, readable by you only; an absolute path, or one that begins with `~/`",
        set: |config, value| put(&mut config.model.key_file, text(value)),
    },
    Key {
        name: "model.key_command",
        wanted: TEXT,
        default: "\"\"",
        meaning: "a command line for `sh` that prints the key for the model, of a password manager say; it has 60 seconds, and comes before `model.key_file`",
        set: |config, value| put(&mut config.model.key_command, text(value)),
    },
    Key {
        name: "model.price_input",
        wanted: NUMBER,
        default: "0",
        meaning: "dollars for a million tokens of a prompt; 0 is unknown",
        set: |config, value| put(&mut config.model.price_input, price(value)),
    },
    Key {
        name: "model.price_cached",
        wanted: NUMBER,
        default: "0",
        meaning: "the same for tokens from the provider's cache",
        set: |config, value| put(&mut config.model.price_cached, price(value)),
    },
    Key {
        name: "model.price_output",
        wanted: NUMBER,
        default: "0",
        meaning: "dollars for a million tokens of an answer; 0 is unknown",
        set: |config, value| put(&mut config.model.price_output, price(value)),
    },
    Key {
        name: "model.seconds",
        wanted: COUNT,
        default: "120",
        meaning: "seconds without a word from the model until a request counts as failed; a local model may need more",
        set: |config, value| put(&mut config.model.seconds, count(value).map(|seconds| seconds as u64)),
    },
    Key {
        name: "model.attempts",
        wanted: COUNT,
        default: "6",
        meaning: "how often a request is made at most, when the model is busy, silent or breaks off",
        set: |config, value| put(&mut config.model.attempts, count(value).and_then(|attempts| attempts.try_into().ok())),
    },
    Key {
        name: "model.pause",
        wanted: "a number from 0 to 60",
        default: "2",
        meaning: "seconds before the second attempt, at most; twice as many before each further one, and longer when the provider asks for it, up to 60",
        set: |config, value| put(&mut config.model.pause, number(value).filter(|seconds| *seconds <= 60.0)),
    },
    Key {
        name: "commands.allow",
        wanted: "a list of commands by their first words, or \"*\" (in the environment with commas between)",
        default: "[]",
        meaning: "commands that the agent runs without asking: `cargo test` covers any command that begins with these words, \"*\" everything; a line with substitutions, variables, subshells or redirections is asked about all the same",
        set: |config, value| put(&mut config.commands.allow, allowed(value)),
    },
    Key {
        name: "commands.seconds",
        wanted: COUNT,
        default: "120",
        meaning: "seconds after which a command of the agent is stopped, if the call gives no other limit",
        set: |config, value| put(&mut config.commands.seconds, count(value).map(|seconds| seconds as u64)),
    },
    Key {
        name: "commands.output_bytes",
        wanted: COUNT,
        default: "16000",
        meaning: "bytes shown of a command's output, half from its beginning and half from its end",
        set: |config, value| put(&mut config.commands.output_bytes, count(value)),
    },
];

const TEXT: &str = "a text";
const NUMBER: &str = "a number from 0 up";
const TRUTH: &str = "true or false";
const COUNT: &str = "a whole number from 1 up";

fn put<T>(place: &mut T, value: Option<T>) -> bool {
    value.map(|value| *place = value).is_some()
}

fn count(value: &Value) -> Option<usize> {
    value.as_integer().and_then(|number| usize::try_from(number).ok()).filter(|number| *number > 0)
}

/// A text; an empty one is as good as none.
fn text(value: &Value) -> Option<Option<String>> {
    let text = match value {
        Value::String(text) => text.clone(),
        // A name that happens to be a number, in the environment.
        Value::Integer(number) => number.to_string(),
        _ => return None,
    };
    Some(Some(text).filter(|text| !text.is_empty()))
}

fn price(value: &Value) -> Option<Option<f64>> {
    number(value).map(|price| Some(price).filter(|price| *price > 0.0))
}

fn number(value: &Value) -> Option<f64> {
    let number = match value {
        Value::Integer(number) => *number as f64,
        Value::Float(number) => *number,
        // In the environment.
        Value::String(text) => text.parse().ok()?,
        _ => return None,
    };
    (number.is_finite() && number >= 0.0).then_some(number)
}

fn mode(value: &Value) -> Option<Mode> {
    match value.as_str()? {
        "snapshot" => Some(Mode::Snapshot),
        "history" => Some(Mode::History),
        _ => None,
    }
}

/// File names, without directories.
fn names(value: &Value) -> Option<Vec<String>> {
    list(value, |name| !matches!(name, "" | "." | "..") && !name.contains(['/', '\0']))
}

/// The first words of commands.
fn allowed(value: &Value) -> Option<Vec<String>> {
    list(value, shell::is_entry)
}

/// A list of strings, or one string with commas between them.
fn list(value: &Value, fits: impl Fn(&str) -> bool) -> Option<Vec<String>> {
    let items: Vec<&str> = match value {
        Value::String(items) => items.split(',').map(str::trim).filter(|item| !item.is_empty()).collect(),
        value => value.as_array()?.iter().map(Value::as_str).collect::<Option<_>>()?,
    };
    items.iter().all(|item| fits(item)).then(|| items.into_iter().map(str::to_owned).collect())
}

fn on_change(value: &Value) -> Option<OnChange> {
    match value.as_str()? {
        "refuse" => Some(OnChange::Refuse),
        "rebase" => Some(OnChange::Rebase),
        _ => None,
    }
}

fn durability(value: &Value) -> Option<Durability> {
    match value.as_str()? {
        "full" => Some(Durability::Full),
        "fast" => Some(Durability::Fast),
        _ => None,
    }
}

impl Config {
    /// The settings of a workspace: defaults, then the user's own file, then `surehand.toml` in `root`, then these variables of the
    /// environment. What is not for a repository to say is only taken from the user.
    pub fn load(root: &Path, environment: impl IntoIterator<Item = (String, String)>) -> Result<Self, ConfigError> {
        let environment: Vec<(String, String)> = environment.into_iter().collect();
        let mut config = Self::default();
        if let Some(file) = user_file(&environment) {
            config.read_file(&file, Whose::User)?;
        }
        config.read_file(&root.join("surehand.toml"), Whose::Repository)?;
        config.read_environment(environment)?;
        Ok(config)
    }

    fn read_file(&mut self, file: &Path, whose: Whose) -> Result<(), ConfigError> {
        match std::fs::read_to_string(file) {
            Ok(text) => self.read_toml(&file.display().to_string(), &text, whose),
            Err(error) if matches!(error.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory) => Ok(()),
            Err(error) => Err(ConfigError::Unreadable { place: file.display().to_string(), why: error.to_string() }),
        }
    }

    fn read_toml(&mut self, place: &str, text: &str, whose: Whose) -> Result<(), ConfigError> {
        let table: toml::Table = text
            .parse()
            .map_err(|error: toml::de::Error| ConfigError::Syntax { place: place.to_owned(), why: error.message().to_owned() })?;
        for (section, value) in &table {
            match value {
                Value::Table(keys) if keys.is_empty() && !KEYS.iter().any(|key| key.name.starts_with(&format!("{section}."))) => {
                    self.set(place, section, value)?;
                }
                Value::Table(keys) => {
                    for (key, value) in keys {
                        let name = format!("{section}.{key}");
                        match PERSONAL.iter().find(|personal| **personal == name) {
                            Some(personal) if whose == Whose::Repository => self.ignored.push(personal),
                            _ => self.set(place, &name, value)?,
                        }
                    }
                }
                value => self.set(place, section, value)?,
            }
        }
        Ok(())
    }

    /// `policy.durability` is `SUREHAND_POLICY_DURABILITY`. Variables of other sections are not ours to judge.
    fn read_environment(&mut self, environment: impl IntoIterator<Item = (String, String)>) -> Result<(), ConfigError> {
        for (name, text) in environment {
            let Some(rest) = name.strip_prefix("SUREHAND_") else { continue };
            let sections = ["POLICY", "LIMITS", "VERSIONS", "INSTRUCTIONS", "CONTEXT", "MODEL", "COMMANDS"];
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
        let Some(key) = KEYS.iter().find(|key| key.name == name) else {
            // Of a section alone, the section is what was mistyped.
            let alike = |known: &str| {
                let section = known.split('.').next().unwrap_or(known);
                distance(if name.contains('.') { known } else { section }, name)
            };
            let nearest = KEYS.iter().map(|key| key.name).min_by_key(|known| alike(known)).expect("there are keys");
            return Err(ConfigError::UnknownKey { place, key: name.to_owned(), nearest });
        };
        if (key.set)(self, value) {
            return Ok(());
        }
        Err(ConfigError::BadValue { place, key: key.name, wanted: key.wanted, found: value.to_string() })
    }
}

/// How many letters must be changed, added or removed to turn one name into the other.
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
#[expect(clippy::disallowed_methods, reason = "tests lay out files")]
mod tests {
    use super::*;

    fn load(toml: &str, environment: &[(&str, &str)]) -> Result<Config, String> {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("surehand.toml"), toml).unwrap();
        let environment = environment.iter().map(|(name, value)| (name.to_string(), value.to_string()));
        let place = format!("{}/", dir.path().display());
        Config::load(dir.path(), environment).map_err(|error| error.to_string().replace(&place, ""))
    }

    /// The same with the user's own file.
    fn load_user(toml: &str, environment: &[(&str, &str)]) -> Result<Config, String> {
        let home = tempfile::tempdir().unwrap();
        let directory = home.path().join("surehand");
        std::fs::create_dir(&directory).unwrap();
        std::fs::write(directory.join("surehand.toml"), toml).unwrap();
        let configuration = home.path().to_str().unwrap();
        let environment = [&[("XDG_CONFIG_HOME", configuration)], environment].concat();
        load("", &environment).map_err(|error| error.replace(&format!("{}/", directory.display()), ""))
    }

    #[test]
    fn the_environment_wins_over_the_file() {
        let toml = "[policy]\ndurability = \"fast\"\nrequire_read = false\n[limits]\nread_lines = 5\n";
        let config = load(toml, &[("SUREHAND_LIMITS_READ_LINES", "7"), ("HOME", "x"), ("SUREHAND_LOG", "x")]).unwrap();
        assert_eq!((config.durability, config.policy.require_read, config.limits.read_lines), (Durability::Fast, false, 7));
    }

    #[test]
    fn what_runs_and_where_keys_go_is_not_for_a_repository_to_say() {
        let toml = "[commands]\nallow = [\"*\"]\nseconds = 5\n[model]\nurl = \"https://example.org\"\nname = \"m\"\n";
        let config = load(toml, &[]).unwrap();
        assert_eq!((config.commands.allow.len(), config.commands.seconds, config.model.url), (0, 5, None));
        assert_eq!((config.ignored, config.model.name.as_deref()), (vec!["commands.allow", "model.url"], Some("m")));
        let home = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(home.path().join(".config/surehand")).unwrap();
        std::fs::write(home.path().join(".config/surehand/surehand.toml"), toml).unwrap();
        let config = load("[model]\nname = \"n\"\n", &[("HOME", home.path().to_str().unwrap())]).unwrap();
        assert_eq!((config.commands.allow, config.model.url.as_deref()), (vec!["*".to_owned()], Some("https://example.org")));
        assert_eq!((config.ignored.len(), config.model.name.as_deref()), (0, Some("n")));
        assert_eq!(load("", &[("SUREHAND_COMMANDS_ALLOW", "ls")]).unwrap().commands.allow, ["ls"]);
    }

    #[test]
    fn where_the_key_is_kept_is_not_for_a_repository_to_say() {
        let toml = "[model]\nkey_file = \"~/key\"\nkey_command = \"pass show key\"\n";
        let config = load(toml, &[]).unwrap();
        assert_eq!((config.model, config.ignored), (Model::default(), vec!["model.key_file", "model.key_command"]));
        let model = load_user(toml, &[("SUREHAND_MODEL_KEY_FILE", "/key")]).unwrap().model;
        assert_eq!((model.key_file.as_deref(), model.key_command.as_deref()), (Some("/key"), Some("pass show key")));
    }

    #[test]
    fn the_defaults_that_are_documented_are_the_defaults() {
        for key in KEYS {
            let mut config = Config::default();
            let table: toml::Table = format!("value = {}", key.default).parse().unwrap();
            assert!((key.set)(&mut config, &table["value"]), "{}", key.name);
            assert_eq!(config, Config::default(), "{}", key.name);
        }
    }

    #[test]
    fn patience_with_a_model_is_a_setting() {
        let model = |toml| load(toml, &[("SUREHAND_MODEL_PAUSE", "0.5")]).map(|config| config.model);
        let expected = Model { seconds: 600, attempts: 2, pause: 0.5, ..Model::default() };
        assert_eq!(model("[model]\nseconds = 600\nattempts = 2\npause = 3"), Ok(expected));
        let wrong = load("[model]\npause = 61", &[]).unwrap_err();
        assert_eq!(wrong, "surehand.toml: model.pause must be a number from 0 to 60: 61");
    }

    #[test]
    fn commands_are_allowed_by_their_first_words() {
        let toml = "[commands]\nallow = [\"cargo test\", \"git status\"]\nseconds = 30\n";
        let config = load_user(toml, &[("SUREHAND_COMMANDS_OUTPUT_BYTES", "100")]).unwrap();
        let allow = ["cargo test", "git status"].map(str::to_owned).to_vec();
        assert_eq!(config.commands, Commands { allow, seconds: 30, output_bytes: 100 });
        let config = load_user(toml, &[("SUREHAND_COMMANDS_ALLOW", "make check, ls,")]).unwrap();
        assert_eq!(config.commands.allow, ["make check", "ls"]);
        for entry in ["", "a; b", "a > b", "$a", "A=1"] {
            let error = load_user(&format!("[commands]\nallow = [\"ls\", \"{entry}\"]"), &[]).unwrap_err();
            assert!(
                error.starts_with("surehand.toml: commands.allow must be a list of commands by their first words"),
                "{error}"
            );
        }
    }

    #[test]
    fn mistakes_are_named_with_what_would_be_right() {
        let error = |toml| load(toml, &[]).unwrap_err();
        assert_eq!(
            error("[policy]\nrequired_read = true"),
            "surehand.toml: unknown key policy.required_read; did you mean policy.require_read?"
        );
        assert_eq!(error("[limits]\nread_lines = 0"), "surehand.toml: limits.read_lines must be a whole number from 1 up: 0");
        assert_eq!(error("[policy]\ndurability = 3"), "surehand.toml: policy.durability must be \"full\" or \"fast\": 3");
        assert_eq!(error("[polcy]"), "surehand.toml: unknown key polcy; did you mean policy.require_read?");
        assert!(error("[policy").starts_with("surehand.toml: not valid TOML"));
        let error = load("", &[("SUREHAND_POLICY_DURABLITY", "fast")]).unwrap_err();
        assert_eq!(error, "SUREHAND_POLICY_DURABLITY: unknown key policy.durablity; did you mean policy.durability?");
    }
}
