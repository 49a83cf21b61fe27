//! Directory instructions: what the owner of a repository asks of whoever works in a directory, in an `AGENTS.md` there. This
//! says which of them are news to a session, and to which calls they belong. The files are found by the engine; the words are in
//! [`crate::render::instructions`].

use std::collections::HashMap;

use crate::{hash::ContentHash, lines::LineNo, path::RelPath, refusal::Cause, text::Text};

/// What the owner of a workspace may set about instructions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstructionSettings {
    /// The names that files with instructions have; of one directory the first that says something counts. None switches
    /// instructions off.
    pub names: Vec<String>,
    /// How much of one file is told.
    pub tokens: usize,
    /// How much is told with one reply.
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
    /// The directory that they are for; `None` is the root.
    pub directory: Option<RelPath>,
    /// The file that they stand in, by its name in that directory.
    pub path: RelPath,
    /// What it says.
    pub text: Text,
    /// Why they are told.
    pub news: InstructionNews,
}

/// Why instructions are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InstructionNews {
    /// The session has never had them.
    First,
    /// They are not what the session was given.
    Changed,
}

/// Instructions that are told with one reply.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToldInstructions {
    /// Those of parents before those of children.
    pub parts: Vec<ToldInstruction>,
    /// The files that did not fit.
    pub later: Vec<RelPath>,
}

/// What of one file is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToldInstruction {
    /// The file.
    pub instruction: Instruction,
    /// The lines that fit.
    pub lines: Vec<LineNo>,
    /// Where it was cut, if it was.
    pub cut: Option<InstructionCut>,
}

/// The place at which instructions were cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InstructionCut {
    /// The first line that is not told in full.
    pub from: LineNo,
    /// How many characters of it are told.
    pub chars: usize,
}

impl ToldInstructions {
    /// The files that are told.
    pub fn paths(&self) -> Vec<RelPath> {
        self.parts.iter().map(|part| part.instruction.path.clone()).collect()
    }
}

/// The files that a session was given as instructions, each with the version that it was given last.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InstructionRecord(HashMap<RelPath, ContentHash>);

impl InstructionRecord {
    /// Whether this file says something that the session was not given. The same words from another file are no news.
    pub fn news(&self, path: &RelPath, version: ContentHash) -> Option<InstructionNews> {
        let last = self.0.get(path);
        if last == Some(&version) || self.0.values().any(|given| *given == version) {
            return None;
        }
        Some(if last.is_some() { InstructionNews::Changed } else { InstructionNews::First })
    }

    /// The session was given this.
    pub fn give(&mut self, path: RelPath, version: ContentHash) {
        self.0.insert(path, version);
    }

    /// The session no longer has what it was given from this file. `false` if there was nothing.
    pub fn forget(&mut self, path: &RelPath) -> bool {
        self.0.remove(path).is_some()
    }
}

impl FromIterator<(RelPath, ContentHash)> for InstructionRecord {
    fn from_iter<T: IntoIterator<Item = (RelPath, ContentHash)>>(given: T) -> Self {
        Self(given.into_iter().collect())
    }
}

/// A directory and those above it, the outermost first. The root, which is `None`, is the empty one.
pub fn chain(directory: Option<&RelPath>) -> impl Iterator<Item = &str> {
    let path = directory.map_or("", RelPath::as_str);
    let above = path.match_indices('/').map(|(at, _)| &path[..at]);
    [""].into_iter().chain(above).chain((!path.is_empty()).then_some(path))
}

/// Whether who is refused for this is about to work on the file all the same, once they have read or corrected something.
pub fn is_about_to_work(cause: &Cause) -> bool {
    match cause {
        Cause::Unread { .. }
        | Cause::Stale { .. }
        | Cause::Invalidated
        | Cause::Partial { .. }
        | Cause::NotFound { .. }
        | Cause::Ambiguous { .. }
        | Cause::NoChange
        | Cause::AnchorMismatch { .. }
        | Cause::Overlap { .. }
        | Cause::Exists { .. }
        | Cause::Unshown { .. }
        | Cause::Unencodable { .. }
        | Cause::ChangedSince { .. }
        | Cause::Conflict { .. } => true,
        Cause::Deleted
        | Cause::NoSuchFile
        | Cause::NothingThere
        | Cause::Binary { .. }
        | Cause::Encoding { .. }
        | Cause::BadPatch { .. }
        | Cause::CannotUndo { .. }
        | Cause::TooLarge { .. }
        | Cause::TooLargeToKeep { .. }
        | Cause::OutsideWorkspace
        | Cause::Protected
        | Cause::BadRange { .. }
        | Cause::BadArguments { .. }
        | Cause::BadAnchor { .. }
        | Cause::EmptyPattern
        | Cause::NoSuchTask { .. }
        | Cause::TaskOfOthers { .. }
        | Cause::NoSuchTool { .. }
        | Cause::NotAFile { .. }
        | Cause::Io { .. } => false,
    }
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
    fn what_was_given_is_no_news_from_whatever_file() {
        check_news(&[], "AGENTS.md", "tabs", Some(InstructionNews::First));
        check_news(&[("AGENTS.md", "tabs")], "AGENTS.md", "tabs", None);
        check_news(&[("AGENTS.md", "tabs")], "src/AGENTS.md", "tabs", None);
        check_news(&[("AGENTS.md", "tabs")], "src/AGENTS.md", "spaces", Some(InstructionNews::First));
    }

    #[test]
    fn what_changed_is_news_as_such() {
        check_news(&[("AGENTS.md", "tabs")], "AGENTS.md", "spaces", Some(InstructionNews::Changed));
        check_news(&[("AGENTS.md", "tabs"), ("src/AGENTS.md", "spaces")], "AGENTS.md", "spaces", None);
    }

    #[test]
    fn what_is_forgotten_is_news_again() {
        let version = ContentHash::of(b"tabs");
        let mut given = InstructionRecord::default();
        given.give(path("AGENTS.md"), version);
        assert!(given.forget(&path("AGENTS.md")));
        assert!(!given.forget(&path("AGENTS.md")));
        assert_eq!(given.news(&path("AGENTS.md"), version), Some(InstructionNews::First));
    }
}
