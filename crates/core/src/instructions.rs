//! Directory instructions: rules in a repository's `AGENTS.md` for agents that work in a directory.
//! This module decides which instructions are new to a session, and to which calls they belong. The engine finds the
//! files; [`crate::render::instructions`] renders them.

use std::collections::HashMap;

use crate::{hash::ContentHash, lines::LineNo, path::RelPath, text::Text};

/// The settings for directory instructions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstructionSettings {
    /// The names of instruction files; the first one found in a directory counts. An empty list switches instructions
    /// off.
    pub names: Vec<String>,
    /// The maximum number of tokens for one file.
    pub tokens: usize,
    /// The maximum number of tokens for one reply.
    pub total_tokens: usize,
}

impl Default for InstructionSettings {
    fn default() -> Self {
        Self { names: vec!["AGENTS.md".to_owned(), "agents.md".to_owned()], tokens: 2000, total_tokens: 4000 }
    }
}

/// Instructions that a session does not have yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instruction {
    /// The directory that they apply to; `None` for the root.
    pub directory: Option<RelPath>,
    /// The path of the instruction file.
    pub path: RelPath,
    /// The content of the file.
    pub text: Text,
    /// Whether they are new to the session, or have changed.
    pub news: InstructionNews,
}

/// Why instructions are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InstructionNews {
    /// The session has never had them.
    First,
    /// They changed since the session had them.
    Changed,
}

/// The instructions of one reply.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToldInstructions {
    /// The files that are sent, parents before children.
    pub parts: Vec<ToldInstruction>,
    /// The files that did not fit, for later replies.
    pub later: Vec<RelPath>,
}

/// The part of one instruction file that is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToldInstruction {
    /// The whole instruction file.
    pub instruction: Instruction,
    /// The lines of the file that are sent in full.
    pub lines: Vec<LineNo>,
    /// The place where the text was cut, if it did not fit.
    pub cut: Option<InstructionCut>,
}

/// The place where instructions were cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InstructionCut {
    /// The first line that is not sent in full.
    pub from: LineNo,
    /// The number of characters that are sent of that line.
    pub chars: usize,
}

impl ToldInstructions {
    /// The paths of the files that are sent.
    pub fn paths(&self) -> Vec<RelPath> {
        self.parts.iter().map(|part| part.instruction.path.clone()).collect()
    }
}

/// The instruction files that a session has received, each with the version.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InstructionRecord(HashMap<RelPath, ContentHash>);

impl InstructionRecord {
    /// Why this file must be sent to the session; `None` if the session has its text. The same text from another file
    /// is not new.
    pub fn news(&self, path: &RelPath, version: ContentHash) -> Option<InstructionNews> {
        let last = self.0.get(path);
        if last == Some(&version) || self.0.values().any(|given| *given == version) {
            return None;
        }
        Some(if last.is_some() { InstructionNews::Changed } else { InstructionNews::First })
    }

    /// Records that the session received this version.
    pub fn give(&mut self, path: RelPath, version: ContentHash) {
        self.0.insert(path, version);
    }

    /// Records that the session no longer has the instructions of this file. Returns `false` if it had none.
    pub fn forget(&mut self, path: &RelPath) -> bool {
        self.0.remove(path).is_some()
    }
}

impl FromIterator<(RelPath, ContentHash)> for InstructionRecord {
    fn from_iter<T: IntoIterator<Item = (RelPath, ContentHash)>>(given: T) -> Self {
        Self(given.into_iter().collect())
    }
}

/// A directory and its parents, outermost first. The root (`None`) is the empty path.
pub fn chain(directory: Option<&RelPath>) -> impl Iterator<Item = &str> {
    let path = directory.map_or("", RelPath::as_str);
    let above = path.match_indices('/').map(|(at, _)| &path[..at]);
    [""].into_iter().chain(above).chain((!path.is_empty()).then_some(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(path: &str) -> RelPath {
        RelPath::new(path).unwrap()
    }

    #[track_caller]
    fn check_chain(directory: Option<&str>, expected: &[&str]) {
        let directory = directory.map(path);
        assert_eq!(chain(directory.as_ref()).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn parents_come_before_children() {
        check_chain(None, &[""]);
        check_chain(Some("src"), &["", "src"]);
        check_chain(Some("src/a/b"), &["", "src", "src/a", "src/a/b"]);
    }

    #[track_caller]
    fn check_news(given: &[(&str, &str)], file: &str, says: &str, expected: Option<InstructionNews>) {
        let version = |text: &str| ContentHash::of(text.as_bytes());
        let given: InstructionRecord = given.iter().map(|(file, says)| (path(file), version(says))).collect();
        assert_eq!(given.news(&path(file), version(says)), expected);
    }

    #[test]
    fn a_text_that_was_given_is_not_new_from_another_file() {
        check_news(&[], "AGENTS.md", "tabs", Some(InstructionNews::First));
        check_news(&[("AGENTS.md", "tabs")], "AGENTS.md", "tabs", None);
        check_news(&[("AGENTS.md", "tabs")], "src/AGENTS.md", "tabs", None);
        check_news(&[("AGENTS.md", "tabs")], "src/AGENTS.md", "spaces", Some(InstructionNews::First));
    }

    #[test]
    fn a_changed_file_is_reported_as_changed() {
        check_news(&[("AGENTS.md", "tabs")], "AGENTS.md", "spaces", Some(InstructionNews::Changed));
        check_news(&[("AGENTS.md", "tabs"), ("src/AGENTS.md", "spaces")], "AGENTS.md", "spaces", None);
    }

    #[test]
    fn forgotten_instructions_are_new_again() {
        let version = ContentHash::of(b"tabs");
        let mut given = InstructionRecord::default();
        given.give(path("AGENTS.md"), version);
        assert!(given.forget(&path("AGENTS.md")));
        assert!(!given.forget(&path("AGENTS.md")));
        assert_eq!(given.news(&path("AGENTS.md"), version), Some(InstructionNews::First));
    }
}
