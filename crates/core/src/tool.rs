//! The tools that a model can have, their kinds, and the names by which a model knows them. Tools are named only here:
//! code that depends on the tool matches on [`Tool`] or [`ToolKind`], so that a new tool does not compile until it is
//! placed everywhere.

use std::borrow::Cow;

use serde::Serialize;

/// A tool of Surehand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Tool {
    /// Shows lines of a file.
    ReadFile,
    /// Shows the names of files.
    ListFiles,
    /// Shows lines that match a pattern.
    SearchFiles,
    /// Replaces one text by another.
    EditFile,
    /// Replaces several texts in several files.
    MultiEdit,
    /// Replaces lines that are named by anchors.
    EditLines,
    /// Applies a patch to one or more files.
    ApplyPatch,
    /// Writes a whole file.
    WriteFile,
    /// Deletes one file, not a directory.
    DeleteFile,
    /// Gives a file another path.
    MoveFile,
    /// Undoes or redoes recorded changes.
    Undo,
    /// Restores files from a checkpoint.
    Restore,
    /// Shows the state of the repository.
    RepoState,
    /// Shows and changes the list of tasks.
    UpdateTasks,
    /// Declares that earlier reads left the context of the model.
    Forget,
}

/// The effect of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolKind {
    /// It reads, and changes nothing.
    Reads,
    /// It changes files of the workspace.
    Edits,
    /// It changes the list of tasks.
    Tasks,
    /// It changes what counts as read.
    Forgets,
}

/// A way to express an edit. Models differ in which one they are good at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EditDialect {
    /// Exact text and its replacement.
    #[default]
    Text,
    /// Lines that are named by anchors.
    Lines,
    /// Patches with several files.
    Patch,
}

impl EditDialect {
    /// Every dialect, in the order of preference.
    pub const ALL: [EditDialect; 3] = [EditDialect::Text, EditDialect::Lines, EditDialect::Patch];
}

impl Tool {
    /// All tools, in the order in which they are listed.
    pub const ALL: [Tool; 15] = [
        Tool::ReadFile,
        Tool::ListFiles,
        Tool::SearchFiles,
        Tool::EditFile,
        Tool::MultiEdit,
        Tool::EditLines,
        Tool::ApplyPatch,
        Tool::WriteFile,
        Tool::DeleteFile,
        Tool::MoveFile,
        Tool::Undo,
        Tool::Restore,
        Tool::RepoState,
        Tool::UpdateTasks,
        Tool::Forget,
    ];

    /// The table of tools, with the properties of each.
    const fn traits(self) -> ToolTraits {
        use EditDialect::{Lines, Patch, Text};
        use ToolKind::{Edits, Forgets, Reads, Tasks};
        match self {
            Tool::ReadFile => ToolTraits::new("read_file", Reads),
            Tool::ListFiles => ToolTraits { walks_directories: true, ..ToolTraits::new("list_files", Reads) },
            Tool::SearchFiles => ToolTraits { walks_directories: true, ..ToolTraits::new("search_files", Reads) },
            Tool::EditFile => ToolTraits { dialect: Some(Text), ..ToolTraits::new("edit_file", Edits) },
            Tool::MultiEdit => {
                ToolTraits { dialect: Some(Text), changes_several_files: true, ..ToolTraits::new("multi_edit", Edits) }
            }
            Tool::EditLines => ToolTraits { dialect: Some(Lines), ..ToolTraits::new("edit_lines", Edits) },
            Tool::ApplyPatch => {
                ToolTraits { dialect: Some(Patch), changes_several_files: true, ..ToolTraits::new("apply_patch", Edits) }
            }
            Tool::WriteFile => ToolTraits::new("write_file", Edits),
            Tool::DeleteFile => ToolTraits::new("delete_file", Edits),
            Tool::MoveFile => ToolTraits::new("move_file", Edits),
            Tool::Undo => ToolTraits { changes_several_files: true, ..ToolTraits::new("undo", Edits) },
            Tool::Restore => ToolTraits { changes_several_files: true, ..ToolTraits::new("restore", Edits) },
            Tool::RepoState => ToolTraits::new("repo_state", Reads),
            Tool::UpdateTasks => ToolTraits::new("update_tasks", Tasks),
            Tool::Forget => ToolTraits::new("forget", Forgets),
        }
    }

    /// The name of the tool, which is a stable interface.
    pub const fn name(self) -> &'static str {
        self.traits().name
    }

    /// The tool with this name, if it exists.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tool| tool.name() == name)
    }

    /// The effect of the tool.
    pub const fn kind(self) -> ToolKind {
        self.traits().kind
    }

    /// The dialect that it belongs to; `None` for most tools, which belong to every dialect.
    pub const fn dialect(self) -> Option<EditDialect> {
        self.traits().dialect
    }

    /// Whether one call may change several files.
    pub const fn changes_several_files(self) -> bool {
        self.traits().changes_several_files
    }

    /// Whether a call may read many files, which can take seconds.
    pub const fn walks_directories(self) -> bool {
        self.traits().walks_directories
    }
}

struct ToolTraits {
    name: &'static str,
    kind: ToolKind,
    dialect: Option<EditDialect>,
    changes_several_files: bool,
    walks_directories: bool,
}

impl ToolTraits {
    const fn new(name: &'static str, kind: ToolKind) -> Self {
        Self { name, kind, dialect: None, changes_several_files: false, walks_directories: false }
    }
}

/// The names by which a model knows its tools. A text for this model mentions only these: a client with its own tools
/// has other names for some of ours, and lacks the rest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolNames {
    /// The tool that reads files, which every model has.
    read: Cow<'static, str>,
    /// The other tools, indexed as in [`Tool::ALL`].
    others: [Option<Cow<'static, str>>; Tool::ALL.len()],
    /// The tool that ends the work, if the agent has one.
    done: Option<Cow<'static, str>>,
    /// The tools that have no counterpart in Surehand, for a list of all tools.
    besides: Vec<Cow<'static, str>>,
}

impl Default for ToolNames {
    /// All Surehand tools, under their own names.
    fn default() -> Self {
        Self::offering(Tool::ALL)
    }
}

impl ToolNames {
    /// These Surehand tools, under their own names.
    pub fn offering(tools: impl IntoIterator<Item = Tool>) -> Self {
        let none = Self::reading_with(Tool::ReadFile.name());
        tools.into_iter().fold(none, |names, tool| names.with(tool, tool.name()))
    }

    /// The Surehand tools that belong to these dialects, and those that belong to none.
    pub fn of_dialects(dialects: &[EditDialect]) -> Self {
        let is_offered = |tool: &Tool| tool.dialect().is_none_or(|dialect| dialects.contains(&dialect));
        Self::offering(Tool::ALL.into_iter().filter(is_offered))
    }

    /// A model that reads with this tool, and has no other tool.
    pub fn reading_with(name: impl Into<Cow<'static, str>>) -> Self {
        Self { read: name.into(), others: [const { None }; Tool::ALL.len()], done: None, besides: Vec::new() }
    }

    /// Adds the model's counterpart of this Surehand tool.
    #[must_use]
    pub fn with(mut self, tool: Tool, name: impl Into<Cow<'static, str>>) -> Self {
        match tool {
            Tool::ReadFile => self.read = name.into(),
            _ => self.others[tool as usize] = Some(name.into()),
        }
        self
    }

    /// Adds a tool that ends the work.
    #[must_use]
    pub fn with_done(mut self, name: impl Into<Cow<'static, str>>) -> Self {
        self.done = Some(name.into());
        self
    }

    /// Adds a tool that has no counterpart in Surehand.
    #[must_use]
    pub fn with_other(mut self, name: impl Into<Cow<'static, str>>) -> Self {
        self.besides.push(name.into());
        self
    }

    /// The names of all tools of the model.
    pub fn all(&self) -> Vec<&str> {
        let others = self.besides.iter().chain(&self.done).map(AsRef::as_ref);
        Tool::ALL.iter().filter_map(|tool| self.get(*tool)).chain(others).collect()
    }

    /// The model's name for this tool; `None` if it has no counterpart.
    pub fn get(&self, tool: Tool) -> Option<&str> {
        match tool {
            Tool::ReadFile => Some(&self.read),
            _ => self.others[tool as usize].as_deref(),
        }
    }

    /// The model's name for this tool between `before` and `after`; empty if it has no counterpart.
    pub(crate) fn phrase(&self, tool: Tool, before: &str, after: &str) -> String {
        self.get(tool).map(|name| format!("{before}{name}{after}")).unwrap_or_default()
    }

    /// The name of the tool that reads files.
    pub fn read(&self) -> &str {
        &self.read
    }

    /// The name of the tool for a small change of a file.
    pub fn edit(&self) -> Option<&str> {
        [Tool::EditFile, Tool::EditLines, Tool::ApplyPatch, Tool::MultiEdit].into_iter().find_map(|tool| self.get(tool))
    }

    /// The name of the tool that ends the work.
    pub fn done(&self) -> Option<&str> {
        self.done.as_deref()
    }

    /// The tools among these that the model has, as a list: `a, b or c`.
    pub fn any_of(&self, tools: &[Tool]) -> String {
        self.list(tools, "or")
    }

    /// Like [`ToolNames::any_of`], as `a, b and c`.
    pub fn all_of(&self, tools: &[Tool]) -> String {
        self.list(tools, "and")
    }

    fn list(&self, tools: &[Tool], last: &str) -> String {
        let mut names: Vec<&str> = tools.iter().filter_map(|tool| self.get(*tool)).collect();
        names.dedup();
        match names.split_last() {
            None => String::new(),
            Some((only, [])) => (*only).to_owned(),
            Some((end, start)) => format!("{} {last} {end}", start.join(", ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tool_is_listed_once_and_found_by_its_name() {
        for (place, tool) in Tool::ALL.into_iter().enumerate() {
            assert_eq!(tool as usize, place);
            assert_eq!(Tool::named(tool.name()), Some(tool));
            assert_eq!(serde_json::to_value(tool).unwrap(), tool.name());
        }
        assert_eq!(Tool::named("bash"), None);
    }

    #[test]
    fn a_dialect_that_is_not_chosen_leaves_out_its_tools_only() {
        let missing = |dialects: &[EditDialect]| {
            let names = ToolNames::of_dialects(dialects);
            Tool::ALL.into_iter().filter(|tool| names.get(*tool).is_none()).map(Tool::name).collect::<Vec<_>>()
        };
        assert_eq!(missing(&EditDialect::ALL), [""; 0]);
        assert_eq!(missing(&[EditDialect::Text]), ["edit_lines", "apply_patch"]);
        assert_eq!(missing(&[EditDialect::Patch, EditDialect::Lines]), ["edit_file", "multi_edit"]);
        assert_eq!(missing(&[]), ["edit_file", "multi_edit", "edit_lines", "apply_patch"]);
    }

    #[test]
    fn tools_that_a_model_lacks_are_not_listed() {
        let names = ToolNames::reading_with("Read").with(Tool::EditFile, "Edit").with(Tool::MultiEdit, "Edit");
        assert_eq!(names.any_of(&[Tool::EditFile, Tool::MultiEdit, Tool::Undo]), "Edit");
        assert_eq!(names.all_of(&[Tool::ReadFile, Tool::ApplyPatch, Tool::EditFile]), "Read and Edit");
        assert_eq!(ToolNames::default().any_of(&[Tool::Undo, Tool::Forget, Tool::ReadFile]), "undo, forget or read_file");
        assert_eq!(names.any_of(&[Tool::Undo]), "");
    }
}
