//! Settings: the user's own file, then `surehand.toml` in the root as far as a repository may set a key, then the
//! environment. One table lists every key with what a repository may do to it; an unknown key is answered with the nearest
//! known one.

use std::path::{Path, PathBuf};

use surehand_core::{ContextMode, Limits, OnChange, Policy, instructions, shell};
use toml::{Value, de::DeTable};

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
    /// Which files hold instructions, and how many tokens of them a reply may have.
    pub instructions: instructions::InstructionSettings,
    /// How the agent makes its prompt.
    pub context: ContextConfig,
    /// The model of the agent.
    pub model: ModelConfig,
    /// Which commands the agent may run without asking, and their limits.
    pub commands: CommandConfig,
    /// Where the state is kept.
    pub state: StateHome,
    /// The settings of the repository's file that are ignored.
    pub ignored: Vec<IgnoredSetting>,
}

/// Something in the repository's file that does not count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IgnoredSetting {
    /// The key, or `surehand.toml` if nothing in it counts.
    pub what: String,
    /// Why not.
    pub why: String,
    /// The line of the key.
    pub line: Option<usize>,
}

/// How the agent makes its prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContextConfig {
    /// From what.
    pub mode: ContextMode,
    /// Tokens of a whole prompt, if it is made from the present state.
    pub budget: usize,
    /// Tokens that a conversation may take before it is folded.
    pub window: usize,
}

impl Default for ContextConfig {
    fn default() -> Self {
        Self { mode: ContextMode::Snapshot, budget: 5000, window: 100_000 }
    }
}

/// The model of the agent. An API key is not a setting, but the place where it is kept is one.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelConfig {
    /// Its name at the provider.
    pub name: Option<String>,
    /// The URL of the provider.
    pub url: Option<String>,
    /// The protocol: `openai` or `anthropic`.
    pub protocol: Option<String>,
    /// A file that holds the key.
    pub key_file: Option<String>,
    /// A command line that prints the key.
    pub key_command: Option<String>,
    /// Dollars for a million tokens of a prompt.
    pub price_input: Option<f64>,
    /// The price of input that the provider has cached.
    pub price_cached: Option<f64>,
    /// Dollars for a million tokens of an answer.
    pub price_output: Option<f64>,
    /// For how many seconds nothing may come before a request counts as failed.
    pub seconds: u64,
    /// The most attempts for a request.
    pub attempts: u32,
    /// Seconds before the second attempt, at most.
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
            price_input: None,
            price_cached: None,
            price_output: None,
            seconds: 120,
            attempts: 6,
            pause: 2.0,
        }
    }
}

/// The user's own settings: `surehand/surehand.toml` where configuration is kept.
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
    /// Bytes, packed.
    pub bytes: u64,
    /// Days since it was of use.
    pub days: i64,
}

impl Default for VersionConfig {
    fn default() -> Self {
        Self { bytes: 256_000_000, days: 30 }
    }
}

/// How much of uncommitted work a checkpoint keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CheckpointConfig {
    /// Bytes of all files together.
    pub bytes: u64,
    /// Bytes of one file.
    pub file_bytes: u64,
    /// Milliseconds after which the next checkpoints are taken only before commands that may delete or overwrite.
    pub slow: u64,
}

impl Default for CheckpointConfig {
    fn default() -> Self {
        Self { bytes: 256_000_000, file_bytes: 20_000_000, slow: 300 }
    }
}

impl VersionConfig {
    /// The largest file that is kept whole. Half of the room is left for what is there already, and the file goes through memory.
    pub(crate) fn most_of_one(&self) -> u64 {
        const MOST_BYTES: u64 = 256_000_000;
        (self.bytes / 2).min(MOST_BYTES)
    }
}

/// How the agent runs commands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandConfig {
    /// Commands that run without asking; see [`shell::covered`].
    pub allow: Vec<String>,
    /// The time limit of a command, unless the call gives another.
    pub seconds: u64,
    /// How many bytes of its output are shown.
    pub output_bytes: usize,
}

impl Default for CommandConfig {
    fn default() -> Self {
        Self { allow: Vec::new(), seconds: 120, output_bytes: 16_000 }
    }
}

/// A setting that makes no sense.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("{place}: {why}")]
    Unreadable {
        /// The file.
        place: String,
        /// The error of the system.
        why: String,
    },
    /// Not TOML.
    #[error("{place}: not valid TOML: {why}")]
    Syntax {
        /// The file.
        place: String,
        /// The error of the parser.
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
        /// The accepted values, in words.
        wanted: &'static str,
        /// As given.
        found: String,
    },
}

/// A key that may be set.
pub struct ConfigKey {
    /// Section and name.
    pub name: &'static str,
    /// The accepted values, in words.
    pub wanted: &'static str,
    /// The default.
    pub default: &'static str,
    /// What it does.
    pub meaning: &'static str,
    /// What a repository may do to it.
    pub repository: RepositoryRule,
    /// Sets it; `false` says that the value does not fit.
    set: fn(&mut Config, &Value) -> bool,
}

/// What the settings of a repository may do to a key. A clone brings them along, so they can make protection stricter than the user
/// has it, never weaker, and they neither spend the user's money nor choose what runs.
pub enum RepositoryRule {
    /// Nothing: the key is the user's alone.
    Nothing,
    /// Set it within bounds.
    Only {
        /// The bounds, in words.
        what: &'static str,
        /// Whether the second settings, those of the user with the repository's value, are within them.
        fits: fn(&Config, &Config) -> bool,
    },
}

/// A repository may only make the value of this field smaller.
macro_rules! only_smaller {
    ($($field:ident).+) => {
        RepositoryRule::Only { what: SMALLER, fits: |user, wanted| wanted.$($field).+ <= user.$($field).+ }
    };
}

/// Every key there is.
pub const KEYS: &[ConfigKey] = &[
    ConfigKey {
        name: "policy.require_read",
        wanted: TRUTH,
        default: "true",
        meaning: "an edit needs a read first; if off, only edits of files that changed since they were read are refused",
        repository: RepositoryRule::Only { what: "`true`", fits: |_, wanted| wanted.policy.require_read },
        set: |config, value| set_if_some(&mut config.policy.require_read, value.as_bool()),
    },
    ConfigKey {
        name: "policy.on_change",
        wanted: "\"refuse\" or \"rebase\"",
        default: "\"refuse\"",
        meaning: "what happens to an edit of a file that changed since it was read: refuse shows what changed; rebase applies the edit if its lines are proven unchanged; under hooks the default is \"rebase\"",
        repository: RepositoryRule::Only { what: "`\"refuse\"`", fits: |_, wanted| wanted.policy.on_change == OnChange::Refuse },
        set: |config, value| set_if_some(&mut config.policy.on_change, on_change(value)),
    },
    ConfigKey {
        name: "policy.short_rereads",
        wanted: TRUTH,
        default: "false",
        meaning: "a read of unchanged lines that were shown before returns a note; for clients that call `forget` after every compaction",
        repository: RepositoryRule::Only { what: "`false`", fits: |_, wanted| !wanted.policy.short_rereads },
        set: |config, value| set_if_some(&mut config.policy.short_rereads, value.as_bool()),
    },
    ConfigKey {
        name: "policy.durability",
        wanted: "\"full\" or \"fast\"",
        default: "\"full\"",
        meaning: "full syncs files, directories and the journal; fast syncs nothing, and still survives crashes of programs",
        repository: RepositoryRule::Only { what: "`\"full\"`", fits: |_, wanted| wanted.durability == Durability::Full },
        set: |config, value| set_if_some(&mut config.durability, durability(value)),
    },
    ConfigKey {
        name: "limits.read_lines",
        wanted: COUNT,
        default: "2000",
        meaning: "lines in one read",
        repository: only_smaller!(limits.read_lines),
        set: |config, value| set_if_some(&mut config.limits.read_lines, count(value)),
    },
    ConfigKey {
        name: "limits.read_bytes",
        wanted: COUNT,
        default: "100000",
        meaning: "bytes in one read",
        repository: only_smaller!(limits.read_bytes),
        set: |config, value| set_if_some(&mut config.limits.read_bytes, count(value)),
    },
    ConfigKey {
        name: "limits.line_chars",
        wanted: COUNT,
        default: "2000",
        meaning: "characters shown of one line; a longer one is cut and counts as partly seen",
        repository: only_smaller!(limits.line_chars),
        set: |config, value| set_if_some(&mut config.limits.line_chars, count(value)),
    },
    ConfigKey {
        name: "limits.file_bytes",
        wanted: COUNT,
        default: "50000000",
        meaning: "size limit in bytes for files that are read or written",
        // A file over this limit is not read, so the gate cannot compare it, and hooks leave it to the client's own tool: a smaller
        // limit would switch protection off. A larger one would take memory.
        repository: RepositoryRule::Nothing,
        set: |config, value| set_if_some(&mut config.limits.file_bytes, count(value).map(|bytes| bytes as u64)),
    },
    ConfigKey {
        name: "limits.batch_edits",
        wanted: COUNT,
        default: "1000",
        meaning: "edits in one call",
        // Hooks leave a larger batch to the client's own tool.
        repository: RepositoryRule::Nothing,
        set: |config, value| set_if_some(&mut config.limits.batch_edits, count(value)),
    },
    ConfigKey {
        name: "versions.bytes",
        wanted: COUNT,
        default: "256000000",
        meaning: "bytes that the undo history may take in the state, with replaced content compressed; the oldest goes first",
        // What is kept is what can be undone, so more is stricter; but a clone does not fill the user's disk.
        repository: RepositoryRule::Only {
            what: LARGER,
            fits: |user, wanted| (user.versions.bytes..=user.versions.bytes.saturating_mul(4)).contains(&wanted.versions.bytes),
        },
        set: |config, value| set_if_some(&mut config.versions.bytes, count(value).map(|bytes| bytes as u64)),
    },
    ConfigKey {
        name: "versions.days",
        wanted: COUNT,
        default: "30",
        meaning: "days for which the undo history, and what a session has seen, are kept; only days on which Surehand recorded something count",
        repository: RepositoryRule::Only {
            what: LARGER,
            fits: |user, wanted| (user.versions.days..=user.versions.days.saturating_mul(4)).contains(&wanted.versions.days),
        },
        set: |config, value| {
            set_if_some(&mut config.versions.days, count(value).filter(|days| *days <= 36_500).map(|days| days as i64))
        },
    },
    ConfigKey {
        name: "versions.exclude",
        wanted: "a list of patterns as in a `.gitignore` file (in the environment with commas between)",
        default: "[]",
        meaning: "files whose content no checkpoint keeps",
        // A clone could have its user's work left out.
        repository: RepositoryRule::Nothing,
        set: |config, value| set_if_some(&mut config.never_kept, list(value, |pattern| !pattern.is_empty())),
    },
    ConfigKey {
        name: "checkpoint.bytes",
        wanted: COUNT,
        default: "256000000",
        meaning: "bytes of uncommitted work that one checkpoint keeps; the log names what goes beyond",
        repository: RepositoryRule::Nothing,
        set: |config, value| set_if_some(&mut config.checkpoint.bytes, count(value).map(|bytes| bytes as u64)),
    },
    ConfigKey {
        name: "checkpoint.file_bytes",
        wanted: COUNT,
        default: "20000000",
        meaning: "bytes of a file that a checkpoint keeps; the log names larger ones",
        repository: RepositoryRule::Nothing,
        set: |config, value| set_if_some(&mut config.checkpoint.file_bytes, count(value).map(|bytes| bytes as u64)),
    },
    ConfigKey {
        name: "checkpoint.slow",
        wanted: COUNT,
        default: "300",
        meaning: "milliseconds: if the last checkpoint took longer, the next are taken only before commands that may delete or overwrite files",
        repository: RepositoryRule::Nothing,
        set: |config, value| set_if_some(&mut config.checkpoint.slow, count(value).map(|millis| millis as u64)),
    },
    ConfigKey {
        name: "instructions.names",
        wanted: "a list of file names (comma-separated in the environment)",
        default: "[\"AGENTS.md\", \"agents.md\"]",
        meaning: "names of instruction files, which apply to their directory and below; the first one in each directory is shown, and an empty list switches this off",
        // The model gets these files unasked, so `.env` must not be among them.
        repository: RepositoryRule::Only {
            what: MARKDOWN,
            fits: |_, wanted| wanted.instructions.names.iter().all(|name| is_plain_markdown(name)),
        },
        set: |config, value| set_if_some(&mut config.instructions.names, file_names(value)),
    },
    ConfigKey {
        name: "instructions.tokens",
        wanted: COUNT,
        default: "2000",
        meaning: "about how many tokens of one instruction file are shown; the rest is cut",
        repository: only_smaller!(instructions.tokens),
        set: |config, value| set_if_some(&mut config.instructions.tokens, count(value)),
    },
    ConfigKey {
        name: "instructions.total_tokens",
        wanted: COUNT,
        default: "4000",
        meaning: "about how many tokens of instructions one reply shows; the rest comes with the next replies",
        repository: only_smaller!(instructions.total_tokens),
        set: |config, value| set_if_some(&mut config.instructions.total_tokens, count(value)),
    },
    ConfigKey {
        name: "context.mode",
        wanted: "\"snapshot\" or \"history\"",
        default: "\"snapshot\"",
        meaning: "what the agent's prompt contains: the current state, or the whole conversation",
        // A conversation costs more than a snapshot.
        repository: RepositoryRule::Nothing,
        set: |config, value| set_if_some(&mut config.context.mode, mode(value)),
    },
    ConfigKey {
        name: "context.budget",
        wanted: COUNT,
        default: "5000",
        meaning: "limit in tokens for the agent's whole prompt, tools included, in snapshot mode",
        repository: only_smaller!(context.budget),
        set: |config, value| set_if_some(&mut config.context.budget, count(value)),
    },
    ConfigKey {
        name: "context.window",
        wanted: COUNT,
        default: "100000",
        meaning: "limit in tokens for the agent's conversation before it is folded, in history mode",
        repository: only_smaller!(context.window),
        set: |config, value| set_if_some(&mut config.context.window, count(value)),
    },
    ConfigKey {
        name: "model.name",
        wanted: TEXT,
        default: "\"\"",
        meaning: "the agent's model, by its provider's name",
        repository: RepositoryRule::Nothing,
        set: |config, value| set_if_some(&mut config.model.name, text(value)),
    },
    ConfigKey {
        name: "model.url",
        wanted: TEXT,
        default: "\"\"",
        meaning: "the URL of the model; empty means the provider's own",
        repository: RepositoryRule::Nothing,
        set: |config, value| set_if_some(&mut config.model.url, text(value)),
    },
    ConfigKey {
        name: "model.protocol",
        wanted: "\"openai\", \"anthropic\" or \"\"",
        default: "\"\"",
        meaning: "the protocol of the model; empty means that it follows from the name",
        repository: RepositoryRule::Nothing,
        set: |config, value| {
            set_if_some(
                &mut config.model.protocol,
                text(value).filter(|name| matches!(name.as_deref(), None | Some("openai" | "anthropic"))),
            )
        },
    },
    ConfigKey {
        name: "model.key_file",
        wanted: TEXT,
        default: "\"\"",
        meaning: "a file with the key for the model, readable only by you; an absolute path, or one that begins with `~/`",
        repository: RepositoryRule::Nothing,
        set: |config, value| set_if_some(&mut config.model.key_file, text(value)),
    },
    ConfigKey {
        name: "model.key_command",
        wanted: TEXT,
        default: "\"\"",
        meaning: "a command line for `sh` that prints the key for the model, for example from a password manager; it has 60 seconds, and comes before `model.key_file`",
        repository: RepositoryRule::Nothing,
        set: |config, value| set_if_some(&mut config.model.key_command, text(value)),
    },
    ConfigKey {
        name: "model.price_input",
        wanted: NUMBER,
        default: "0",
        meaning: "dollars for a million tokens of a prompt; 0 is unknown",
        repository: RepositoryRule::Nothing,
        set: |config, value| set_if_some(&mut config.model.price_input, price(value)),
    },
    ConfigKey {
        name: "model.price_cached",
        wanted: NUMBER,
        default: "0",
        meaning: "dollars for a million tokens from the provider's cache; 0 is unknown",
        repository: RepositoryRule::Nothing,
        set: |config, value| set_if_some(&mut config.model.price_cached, price(value)),
    },
    ConfigKey {
        name: "model.price_output",
        wanted: NUMBER,
        default: "0",
        meaning: "dollars for a million tokens of an answer; 0 is unknown",
        repository: RepositoryRule::Nothing,
        set: |config, value| set_if_some(&mut config.model.price_output, price(value)),
    },
    ConfigKey {
        name: "model.seconds",
        wanted: COUNT,
        default: "120",
        meaning: "seconds of silence from the model until a request counts as failed; a local model may need more",
        repository: RepositoryRule::Nothing,
        set: |config, value| set_if_some(&mut config.model.seconds, count(value).map(|seconds| seconds as u64)),
    },
    ConfigKey {
        name: "model.attempts",
        wanted: COUNT,
        default: "6",
        meaning: "maximum attempts for a request if the model is busy, silent or breaks off",
        repository: RepositoryRule::Nothing,
        set: |config, value| set_if_some(&mut config.model.attempts, count(value).and_then(|attempts| attempts.try_into().ok())),
    },
    ConfigKey {
        name: "model.pause",
        wanted: "a number from 0 to 60",
        default: "2",
        meaning: "maximum seconds before the second attempt, doubled before each further one; longer if the provider asks for it, up to 60",
        repository: RepositoryRule::Nothing,
        set: |config, value| set_if_some(&mut config.model.pause, number(value).filter(|seconds| *seconds <= 60.0)),
    },
    ConfigKey {
        name: "commands.allow",
        wanted: "a list of commands by their first words, or \"*\" (comma-separated in the environment)",
        default: "[]",
        meaning: "commands that the agent runs without asking: `cargo test` covers any command that begins with these words, \"*\" everything; the agent still asks about a line with substitutions, variables, subshells or redirections",
        repository: RepositoryRule::Nothing,
        set: |config, value| set_if_some(&mut config.commands.allow, command_prefixes(value)),
    },
    ConfigKey {
        name: "commands.seconds",
        wanted: COUNT,
        default: "120",
        meaning: "time limit in seconds for a command of the agent, unless the call sets another",
        repository: RepositoryRule::Nothing,
        set: |config, value| set_if_some(&mut config.commands.seconds, count(value).map(|seconds| seconds as u64)),
    },
    ConfigKey {
        name: "commands.output_bytes",
        wanted: COUNT,
        default: "16000",
        meaning: "limit in bytes for a command's output, half from its beginning and half from its end",
        repository: RepositoryRule::Nothing,
        set: |config, value| set_if_some(&mut config.commands.output_bytes, count(value)),
    },
];

const TEXT: &str = "a text";
const NUMBER: &str = "a number from 0 up";
const TRUTH: &str = "true or false";
const COUNT: &str = "a whole number from 1 up";
const SMALLER: &str = "a number up to yours";
const LARGER: &str = "a number from yours to 4 times that";
const MARKDOWN: &str = "plain names that end in `.md`";

fn set_if_some<T>(place: &mut T, value: Option<T>) -> bool {
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

fn mode(value: &Value) -> Option<ContextMode> {
    match value.as_str()? {
        "snapshot" => Some(ContextMode::Snapshot),
        "history" => Some(ContextMode::History),
        _ => None,
    }
}

fn file_names(value: &Value) -> Option<Vec<String>> {
    list(value, |name| !matches!(name, "" | "." | "..") && !name.contains(['/', '\0']))
}

/// A name that a repository may give to files with instructions. None that begins with a dot: those are not written to be read.
fn is_plain_markdown(name: &str) -> bool {
    let is_markdown = |(stem, extension): (&str, &str)| !stem.is_empty() && extension.eq_ignore_ascii_case("md");
    !name.contains(['/', '\\']) && !name.starts_with('.') && name.rsplit_once('.').is_some_and(is_markdown)
}

fn command_prefixes(value: &Value) -> Option<Vec<String>> {
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
    /// The settings of a workspace: defaults, then the user's own file, then what `surehand.toml` in `root` may set, then these
    /// variables of the environment.
    pub fn load(root: &Path, environment: impl IntoIterator<Item = (String, String)>) -> Result<Self, ConfigError> {
        Self::default().load_over(root, environment)
    }

    /// [`Config::load`] with these settings as the defaults.
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

    /// The defaults where another agent's tools are guarded: its tool matches the text again, so an edit of lines that are proven to be
    /// those that were seen need not be sent twice.
    pub fn for_hooks() -> Self {
        let policy = Policy { on_change: OnChange::Rebase, ..Policy::default() };
        Self { policy, ..Self::default() }
    }

    fn read_user_file(&mut self, file: &Path) -> Result<(), ConfigError> {
        let place = file.display().to_string();
        if let Some(why) = settings_file::whose_else(file) {
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

    /// Takes the keys from the repository's file that a repository may set, and lists the others as ignored. Nothing in it is
    /// an error, not even a key of a newer version: a clone that could stop Surehand could switch its hooks off.
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
        if !(key.set)(&mut wanted, value) {
            return Err(format!("must be {}: {value}", key.wanted));
        }
        if !fits(user, &wanted) {
            return Err(format!("a repository may only set {what}: {value}"));
        }
        (key.set)(self, value);
        Ok(())
    }

    fn ignore(&mut self, what: &str, why: &str, line: Option<usize>) {
        self.ignored.push(IgnoredSetting { what: harmless(what), why: harmless(why), line });
    }

    /// `policy.durability` is `SUREHAND_POLICY_DURABILITY`. Variables of other sections are not ours to judge.
    fn read_environment(&mut self, environment: impl IntoIterator<Item = (String, String)>) -> Result<(), ConfigError> {
        for (name, text) in environment {
            let Some(rest) = name.strip_prefix("SUREHAND_") else { continue };
            let sections = ["POLICY", "LIMITS", "VERSIONS", "CHECKPOINT", "INSTRUCTIONS", "CONTEXT", "MODEL", "COMMANDS"];
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
        if (key.set)(self, value) {
            return Ok(());
        }
        Err(ConfigError::BadValue { place, key: key.name, wanted: key.wanted, found: value.to_string() })
    }
}

const REPOSITORY_FILE: &str = "surehand.toml";

struct ParsedSetting {
    name: String,
    value: Value,
    line: usize,
}

/// The keys of a file with their values. An unknown section without keys is given as a key.
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

/// A key by its name, or the name of the known key that is most like it.
fn find_key(name: &str) -> Result<&'static ConfigKey, &'static str> {
    if let Some(key) = KEYS.iter().find(|key| key.name == name) {
        return Ok(key);
    }
    // Of a section alone, the section is what was mistyped.
    let alike = |known: &str| {
        let section = known.split('.').next().unwrap_or(known);
        distance(if name.contains('.') { known } else { section }, name)
    };
    Err(KEYS.iter().map(|key| key.name).min_by_key(|known| alike(known)).expect("there are keys"))
}

/// Words of a clone, for a terminal: short, and without control characters.
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
