//! The table of settings: every key with its type, its meaning, and what a repository may do to it. The default is the
//! one of [`Config`].

use std::collections::BTreeMap;

use surehand_core::{ContextMode, OnChange, OnOverlap, shell};
use toml::Value;

use super::{Config, Sampling};
use crate::disk::commit::Durability;

/// A key that may be set.
pub struct ConfigKey {
    /// Section and name, such as `policy.on_change`.
    pub name: &'static str,
    /// The accepted values, in words.
    pub wanted: &'static str,
    /// A description for people.
    pub meaning: &'static str,
    /// Whether a repository may set it, and within which bounds.
    pub repository: RepositoryRule,
    /// Whether its value may hold a secret, which no error shows.
    pub may_be_secret: bool,
    /// Takes a value; `false` if it has another type.
    take: fn(&mut Config, &Value) -> bool,
    /// Whether a value of the right type makes sense.
    fits: fn(&Config) -> bool,
    /// Its value in the form of a settings file.
    show: fn(&Config) -> String,
}

/// Whether the settings of a repository may set a key. A clone brings them along, so they can make protection stricter
/// than the user has it, never weaker, and they neither spend the user's money nor choose what runs.
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

impl ConfigKey {
    /// The default value, in the form of a settings file.
    pub fn default(&self) -> String {
        (self.show)(&Config::default())
    }

    /// Sets it. Returns `false` if the value does not fit.
    pub(super) fn set(&self, config: &mut Config, value: &Value) -> bool {
        let mut changed = config.clone();
        let fits = (self.take)(&mut changed, value) && (self.fits)(&changed);
        if fits {
            *config = changed;
        }
        fits
    }

    /// Narrows the accepted values.
    const fn accepting(self, wanted: &'static str, fits: fn(&Config) -> bool) -> Self {
        Self { wanted, fits, ..self }
    }

    /// Keeps its value out of errors.
    const fn secret(self) -> Self {
        Self { may_be_secret: true, ..self }
    }

    /// Lets a repository set it within these bounds.
    const fn only(self, what: &'static str, fits: fn(&Config, &Config) -> bool) -> Self {
        Self { repository: RepositoryRule::Only { what, fits }, ..self }
    }
}

trait ConfigValue: Sized {
    /// The accepted values, in words.
    const WANTED: &'static str;

    fn parse(value: &Value) -> Option<Self>;

    fn show(&self) -> String;
}

impl ConfigValue for bool {
    const WANTED: &'static str = "true or false";

    fn parse(value: &Value) -> Option<Self> {
        value.as_bool()
    }

    fn show(&self) -> String {
        self.to_string()
    }
}

macro_rules! whole_numbers {
    ($($number:ty),*) => {
        $(impl ConfigValue for $number {
            const WANTED: &'static str = "a whole number from 1 up";

            fn parse(value: &Value) -> Option<Self> {
                value.as_integer().filter(|number| *number > 0)?.try_into().ok()
            }

            fn show(&self) -> String {
                self.to_string()
            }
        })*
    };
}

whole_numbers!(usize, u64, u32, i64);

impl ConfigValue for f64 {
    const WANTED: &'static str = "a number from 0 up";

    fn parse(value: &Value) -> Option<Self> {
        let number = match value {
            Value::Integer(number) => *number as f64,
            Value::Float(number) => *number,
            // In the environment.
            Value::String(text) => text.parse().ok()?,
            _ => return None,
        };
        (number.is_finite() && number >= 0.0).then_some(number)
    }

    fn show(&self) -> String {
        self.to_string()
    }
}

/// 0 means that the number is unknown.
impl ConfigValue for Option<f64> {
    const WANTED: &'static str = f64::WANTED;

    fn parse(value: &Value) -> Option<Self> {
        f64::parse(value).map(|number| Some(number).filter(|number| *number > 0.0))
    }

    fn show(&self) -> String {
        self.unwrap_or_default().show()
    }
}

/// An empty string leaves it to the provider.
impl ConfigValue for Option<Sampling> {
    const WANTED: &'static str = "a number from 0 up, or \"\"";

    fn parse(value: &Value) -> Option<Self> {
        if value.as_str() == Some("") { Some(None) } else { f64::parse(value).map(|number| Some(Sampling(number))) }
    }

    fn show(&self) -> String {
        self.map_or_else(|| "\"\"".to_owned(), |Sampling(number)| number.show())
    }
}

/// In the environment, one string with a line `NAME=VALUE` for each entry.
impl ConfigValue for BTreeMap<String, String> {
    const WANTED: &'static str = "a table of texts (in the environment, lines with NAME=VALUE)";

    fn parse(value: &Value) -> Option<Self> {
        let entry = |(name, value): (&str, &str)| (name.trim().to_owned(), value.trim().to_owned());
        match value {
            Value::String(lines) => {
                let lines = lines.lines().filter(|line| !line.trim().is_empty());
                lines.map(|line| line.split_once('=').map(entry)).collect()
            }
            value => value.as_table()?.iter().map(|(name, value)| Some(entry((name, value.as_str()?)))).collect(),
        }
    }

    fn show(&self) -> String {
        let entries: Vec<String> = self.iter().map(|(name, value)| format!("{name:?} = {value:?}")).collect();
        format!("{{{}}}", entries.join(", "))
    }
}

/// An empty string counts as none.
impl ConfigValue for Option<String> {
    const WANTED: &'static str = "a text";

    fn parse(value: &Value) -> Option<Self> {
        let text = match value {
            Value::String(text) => text.clone(),
            // A name that happens to be a number, in the environment.
            Value::Integer(number) => number.to_string(),
            _ => return None,
        };
        Some(Some(text).filter(|text| !text.is_empty()))
    }

    fn show(&self) -> String {
        format!("{:?}", self.as_deref().unwrap_or_default())
    }
}

/// In the environment, one string with commas between the items.
impl ConfigValue for Vec<String> {
    const WANTED: &'static str = "a list of texts";

    fn parse(value: &Value) -> Option<Self> {
        match value {
            Value::String(items) => {
                Some(items.split(',').map(str::trim).filter(|item| !item.is_empty()).map(str::to_owned).collect())
            }
            value => value.as_array()?.iter().map(|item| item.as_str().map(str::to_owned)).collect(),
        }
    }

    fn show(&self) -> String {
        format!("{self:?}")
    }
}

/// A choice between words.
macro_rules! choice {
    ($choice:ty, $wanted:literal, $($word:literal: $value:path),*) => {
        impl ConfigValue for $choice {
            const WANTED: &'static str = $wanted;

            fn parse(value: &Value) -> Option<Self> {
                match value.as_str()? {
                    $($word => Some($value),)*
                    _ => None,
                }
            }

            fn show(&self) -> String {
                match self {
                    $($value => format!("{:?}", $word),)*
                }
            }
        }
    };
}

choice!(OnChange, r#""refuse" or "rebase""#, "refuse": OnChange::Refuse, "rebase": OnChange::Rebase);
choice!(OnOverlap, r#""warn" or "refuse""#, "warn": OnOverlap::Warn, "refuse": OnOverlap::Refuse);
choice!(Durability, r#""full" or "fast""#, "full": Durability::Full, "fast": Durability::Fast);
choice!(ContextMode, r#""snapshot" or "history""#, "snapshot": ContextMode::Snapshot, "history": ContextMode::History);

const fn wanted<T: ConfigValue>(_: fn(&Config) -> &T) -> &'static str {
    T::WANTED
}

fn take<T: ConfigValue>(field: &mut T, value: &Value) -> bool {
    T::parse(value).map(|value| *field = value).is_some()
}

/// A key whose name is not that of its field.
macro_rules! named_key {
    ($name:expr, $($field:ident).+, $meaning:literal) => {
        ConfigKey {
            name: $name,
            wanted: wanted(|config| &config.$($field).+),
            meaning: $meaning,
            repository: RepositoryRule::Nothing,
            may_be_secret: false,
            take: |config, value| take(&mut config.$($field).+, value),
            fits: |_| true,
            show: |config| config.$($field).+.show(),
        }
    };
}

/// A key with the name of its field. A repository may set it to smaller or to larger values, or not at all.
macro_rules! key {
    ($section:ident . $field:ident, $meaning:literal) => {
        named_key!(concat!(stringify!($section), ".", stringify!($field)), $section.$field, $meaning)
    };
    ($section:ident . $field:ident, $meaning:literal, smaller) => {
        key!($section.$field, $meaning)
            .only("a number up to yours", |user, wanted| wanted.$section.$field <= user.$section.$field)
    };
    ($section:ident . $field:ident, $meaning:literal, larger) => {
        key!($section.$field, $meaning).only("a number from yours to 4 times that", |user, wanted| {
            (user.$section.$field..=user.$section.$field.saturating_mul(4)).contains(&wanted.$section.$field)
        })
    };
}

/// Every key that can be set.
pub const KEYS: &[ConfigKey] = &[
    key!(
        policy.require_read,
        "an edit needs a read first; if off, only edits of files that changed since they were read are refused"
    )
    .only("`true`", |_, wanted| wanted.policy.require_read),
    key!(
        policy.on_change,
        "what happens to an edit of a file that changed since it was read: refuse shows what changed; rebase applies the edit if its lines are proven unchanged; under hooks the default is \"rebase\""
    )
    .only("`\"refuse\"`", |_, wanted| wanted.policy.on_change == OnChange::Refuse),
    key!(
        policy.short_rereads,
        "a read of unchanged lines that were shown before returns a note; for clients that call `forget` after every compaction"
    )
    .only("`false`", |_, wanted| !wanted.policy.short_rereads),
    // The board belongs to the user, so a clone does not decide how claims on it count.
    key!(policy.claims, "what happens to an edit of a path that another agent has claimed on the board"),
    key!(
        policy.collisions,
        "what happens to an edit that will conflict with what another checkout of the repository has changed"
    ),
    named_key!(
        "policy.durability",
        durability,
        "full syncs files, directories and the journal; fast syncs nothing, and still survives crashes of programs"
    )
    .only("`\"full\"`", |_, wanted| wanted.durability == Durability::Full),
    key!(limits.read_lines, "lines in one read", smaller),
    key!(limits.read_bytes, "bytes in one read", smaller),
    key!(limits.line_chars, "characters shown of one line; a longer one is cut and counts as partly seen", smaller),
    // A file over this limit is not read, so the gate cannot compare it, and hooks leave it to the client's own tool: a
    // smaller limit would switch protection off. A larger one would take memory.
    key!(limits.file_bytes, "size limit in bytes for files that are read or written"),
    // Hooks leave a larger batch to the client's own tool.
    key!(limits.batch_edits, "edits in one call"),
    // Versions that are kept can be undone, so more is stricter; but a clone must not fill the user's disk.
    key!(
        versions.bytes,
        "bytes that the undo history may take in the state, with replaced content compressed; the oldest goes first",
        larger
    ),
    key!(
        versions.days,
        "days for which the undo history, and what a session has seen, are kept; only days on which Surehand recorded something count",
        larger
    )
    .accepting(i64::WANTED, |config| config.versions.days <= 36_500),
    // A clone could exclude its user's work.
    named_key!("versions.exclude", never_kept, "files whose content no checkpoint keeps")
        .accepting("a list of patterns as in a `.gitignore` file (in the environment with commas between)", |config| {
            config.never_kept.iter().all(|pattern| !pattern.is_empty())
        }),
    key!(checkpoint.bytes, "bytes of uncommitted work that one checkpoint keeps; the log names what goes beyond"),
    key!(checkpoint.file_bytes, "bytes of a file that a checkpoint keeps; the log names larger ones"),
    key!(
        checkpoint.slow,
        "milliseconds: if the last checkpoint took longer, the next are taken only before commands that may delete or overwrite files"
    ),
    key!(
        board.enabled,
        "whether your agents appear on the board of the repository, and see what agents in its other checkouts do"
    ),
    key!(
        board.url,
        "the PostgreSQL server that holds the board of all your repositories, as `postgresql://USER:PASSWORD@HOST/DATABASE`; empty means a file on this machine"
    )
    .secret(),
    key!(board.hunks, "whether the text of changed lines is sent to that server, besides their numbers; forecasts are better with it"),
    key!(board.lease, "seconds for which a claim of an agent lasts without a sign of life")
        .accepting("a number from 1 to 86,400", |config| (1..=86_400).contains(&config.board.lease)),
    // The model gets these files unasked, so `.env` must not be among them.
    key!(
        instructions.names,
        "names of instruction files, which apply to their directory and below; the first one in each directory is shown, and an empty list switches this off"
    )
    .accepting("a list of file names (comma-separated in the environment)", |config| {
        config.instructions.names.iter().all(|name| !matches!(&**name, "" | "." | "..") && !name.contains(['/', '\0']))
    })
    .only("plain names that end in `.md`", |_, wanted| wanted.instructions.names.iter().all(|name| is_plain_markdown(name))),
    key!(instructions.tokens, "about how many tokens of one instruction file are shown; the rest is cut", smaller),
    key!(
        instructions.total_tokens,
        "about how many tokens of instructions one reply shows; the rest comes with the next replies",
        smaller
    ),
    // A conversation costs more than a snapshot.
    key!(context.mode, "what the agent's prompt contains: the current state, or the whole conversation"),
    key!(context.budget, "limit in tokens for the agent's whole prompt, tools included, in snapshot mode", smaller),
    key!(context.window, "limit in tokens for the agent's conversation before it is folded, in history mode", smaller),
    key!(model.name, "the agent's model, by its provider's name"),
    key!(model.url, "the URL of the model; empty means the provider's own"),
    key!(model.protocol, "the protocol of the model; empty means that it follows from the name")
        .accepting("\"openai\", \"responses\", \"anthropic\" or \"\"", |config| {
            matches!(config.model.protocol.as_deref(), None | Some("openai" | "responses" | "anthropic"))
        }),
    key!(
        model.key_file,
        "a file with the key for the model, readable only by you; an absolute path, or one that begins with `~/`"
    ),
    key!(
        model.key_command,
        "a command line for `sh` that prints the key for the model, for example from a password manager; it has 60 seconds, and comes before `model.key_file`"
    ),
    key!(
        model.headers,
        "headers of each request; `{key}` in one of them stands for the key, which is then sent nowhere else"
    )
    .secret(),
    key!(model.query, "query parameters of each request, such as the `api-version` of Azure").secret(),
    key!(model.temperature, "how random the answers are; \"\" leaves it to the provider, and some models take no other")
        .accepting("a number from 0 to 2, or \"\"", |config| {
            config.model.temperature.is_none_or(|Sampling(number)| number <= 2.0)
        }),
    key!(
        model.top_p,
        "the share of the most likely tokens among which the model chooses; \"\" leaves it to the provider, and some models take no other"
    )
    .accepting("a number from 0 to 1, or \"\"", |config| config.model.top_p.is_none_or(|Sampling(number)| number <= 1.0)),
    key!(model.effort, "how long the model may think before it answers; \"\" leaves it to the provider").accepting(
        "\"none\", \"minimal\", \"low\", \"medium\", \"high\", \"xhigh\", \"max\" or \"\"",
        |config| {
            let words = ["none", "minimal", "low", "medium", "high", "xhigh", "max"];
            config.model.effort.as_deref().is_none_or(|effort| words.contains(&effort))
        },
    ),
    key!(model.price_input, "dollars for a million tokens of a prompt; 0 is unknown"),
    key!(model.price_cached, "dollars for a million tokens from the provider's cache; 0 is unknown"),
    key!(model.price_output, "dollars for a million tokens of an answer; 0 is unknown"),
    key!(
        model.max_output_tokens,
        "limit in tokens for one answer, with its reasoning; a longer answer is cut off; its complete parts count, and the model gets a note"
    ),
    key!(
        model.seconds,
        "seconds without a piece of an answer until a request counts as failed, whatever else the server sends; a local model may need more"
    ),
    key!(model.attempts, "maximum attempts for a request if the model is busy, silent or breaks off"),
    key!(
        model.pause,
        "maximum seconds before the second attempt, doubled before each further one; longer if the provider asks for it, up to 60"
    )
    .accepting("a number from 0 to 60", |config| config.model.pause <= 60.0),
    key!(run.minutes, "limit in minutes for a run of the agent, over all its resumes; 0 is none"),
    key!(run.ask_edits, "whether a run of the agent shows each edit and asks before it is made"),
    key!(
        commands.allow,
        "commands that the agent runs without asking, but confined: `cargo test` covers any command that begins with these words, \"*\" everything; the agent still asks about a line with substitutions, variables, subshells or redirections"
    )
    .accepting("a list of commands by their first words, or \"*\" (comma-separated in the environment)", |config| {
        config.commands.allow.iter().all(|entry| shell::is_entry(entry))
    }),
    key!(
        commands.writable,
        "what a command that runs without asking may write besides what is in the directories of the workspace, for example `~/.cargo/registry`; the name of a directory in the root is one that Surehand makes if it is not there, such as `target`"
    )
    .accepting(
        "a list of paths that are absolute or begin with `~/`, or names of directories in the root (comma-separated in the environment)",
        |config| config.commands.writable.iter().all(|path| is_place_to_write(path)),
    ),
    key!(commands.network, "whether a command that runs without asking may use the network, and sockets of any kind"),
    key!(commands.seconds, "time limit in seconds for a command of the agent, unless the call sets another"),
    key!(
        commands.output_bytes,
        "limit in bytes for a command's output, half from its beginning and half from its end"
    ),
];

fn is_place_to_write(path: &str) -> bool {
    let is_normal = |part: &str| !matches!(part, "" | "." | "..");
    match path.strip_prefix('/').or_else(|| path.strip_prefix("~/")) {
        Some(below) => below.split('/').all(is_normal),
        None => is_normal(path) && !path.contains('/') && path != "~",
    }
}

/// Whether a repository may give this name to files with instructions. None may begin with a dot: such files are not
/// written to be read.
fn is_plain_markdown(name: &str) -> bool {
    let is_markdown = |(stem, extension): (&str, &str)| !stem.is_empty() && extension.eq_ignore_ascii_case("md");
    !name.contains(['/', '\\']) && !name.starts_with('.') && name.rsplit_once('.').is_some_and(is_markdown)
}
