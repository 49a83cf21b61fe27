//! The events that clients report to hooks, in one vocabulary for all clients.

use serde_json::Value;
use surehand_engine::{Edit, core::edit::TextReplacement};

/// One call of a hook.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct HookInput {
    pub session: String,
    /// The subagent, which has its own context; `None` for the main agent.
    pub agent: Option<String>,
    pub directory: String,
    /// The client's record of the conversation.
    pub transcript: Option<String>,
    /// Instruction files that the client has just given to the model.
    pub given: Vec<String>,
    pub event: HookEvent,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum HookEvent {
    Starts(SessionStart),
    /// Earlier reads are no longer in the context.
    ContextLost,
    /// The person sent a prompt, to which the client added these lines of files.
    Prompted(Vec<ShownLines>),
    Before(ToolUse),
    After(ToolUse, ToolOutcome),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SessionStart {
    New,
    /// With the whole earlier context.
    Resumed,
    /// With an empty context.
    Cleared,
    Compacted,
}

/// The effect of a client's tool. Paths are as the client gave them.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum ToolUse {
    Read,
    Change(Edit),
    Patch(String),
    Shell {
        command: String,
        /// The directory in which it runs; `None` for the working directory.
        directory: Option<String>,
    },
    Search {
        /// The files or directories to search; empty for the working directory.
        paths: Vec<String>,
    },
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum ToolOutcome {
    Done,
    Showed(Vec<ShownLines>),
    /// The text of the cells of a notebook (`.ipynb`), without the JSON around it.
    ShowedNotebook {
        path: String,
        cells: String,
    },
    Printed(String),
    Failed,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ShownLines {
    pub path: String,
    pub start: u32,
    pub content: String,
}

impl ShownLines {
    pub(super) fn new(path: impl Into<String>, start: u32, content: impl Into<String>) -> Self {
        Self { path: path.into(), start, content: content.into() }
    }
}

impl ToolUse {
    /// Runs the text in the field `command`.
    pub(super) fn shell(arguments: &Value, directory: Option<String>) -> Option<Self> {
        Some(Self::Shell { command: text(arguments, "command")?, directory })
    }

    /// Searches one path, or the working directory.
    pub(super) fn search(path: Option<String>) -> Self {
        Self::Search { paths: path.into_iter().collect() }
    }
}

impl ToolOutcome {
    pub(super) fn showed(shown: Option<ShownLines>) -> Self {
        Self::Showed(shown.into_iter().collect())
    }
}

/// Makes a path absolute: clients may give one relative to their working directory.
pub(super) fn absolute_path(directory: &str, path: &str) -> String {
    if path.starts_with('/') { path.to_owned() } else { format!("{}/{path}", directory.trim_end_matches('/')) }
}

/// A text field, if it is present and not empty.
pub(super) fn text(value: &Value, name: &str) -> Option<String> {
    value[name].as_str().filter(|text| !text.is_empty()).map(str::to_owned)
}

/// The first of these fields that is a text.
pub(super) fn any_text<'a>(value: &'a Value, names: &[&str]) -> Option<&'a str> {
    names.iter().find_map(|name| value[*name].as_str())
}

pub(super) fn line_number(value: &Value, name: &str) -> Option<u32> {
    value[name].as_u64().and_then(|number| u32::try_from(number).ok())
}

/// Joins rows that a tool numbered, and returns the number of the first; `None` if the numbers do not follow one
/// another.
pub(super) fn join_rows(rows: Vec<(u32, String)>) -> Option<(u32, String)> {
    let start = rows.first()?.0;
    let follow = rows.windows(2).all(|pair| pair[0].0.checked_add(1) == Some(pair[1].0));
    follow.then(|| (start, rows.into_iter().map(|(_, line)| line).collect::<Vec<_>>().join("\n")))
}

pub(super) fn edit(path: &str, old: &str, new: &str, all: bool) -> ToolUse {
    ToolUse::Change(Edit::Replace(replacement(path, old, new, all)))
}

/// The names of the fields of an edit: the old text, the new text, and whether to replace every occurrence. The last
/// one is empty if the client has no such field.
pub(super) type EditFields<'a> = [&'a str; 3];

pub(super) fn edit_in(path: &str, arguments: &Value, [old, new, all]: EditFields<'_>) -> Option<ToolUse> {
    Some(edit(path, arguments[old].as_str()?, arguments[new].as_str()?, arguments[all] == true))
}

/// Several edits of one file. If one of them is malformed, only the file is known.
pub(super) fn edits_in(path: &str, edits: &Value, [old, new, all]: EditFields<'_>) -> ToolUse {
    let of = |edit: &Value| Some(replacement(path, edit[old].as_str()?, edit[new].as_str()?, edit[all] == true));
    let edits = edits.as_array().and_then(|edits| edits.iter().map(of).collect());
    edits.map_or_else(|| unknown_edit(path), |edits| ToolUse::Change(Edit::ReplaceMany(edits)))
}

/// An edit of which only the file is known: text files do not hold this character.
pub(super) fn unknown_edit(path: &str) -> ToolUse {
    edit(path, "\u{0}", "", false)
}

fn replacement(path: &str, old: &str, new: &str, all: bool) -> TextReplacement {
    TextReplacement { path: path.to_owned(), old: old.to_owned(), new: new.to_owned(), all }
}

pub(super) fn write(path: &str, content: &str) -> ToolUse {
    ToolUse::Change(Edit::write(path, content))
}
