//! Where a listing or a search looked, and what it had to leave out.

use crate::path::RelPath;

/// Where was looked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SearchArea {
    /// In the whole workspace.
    Workspace,
    /// Below a directory.
    Dir(RelPath),
    /// At one file.
    File(RelPath),
}

/// The part of the workspace that was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchScope {
    /// Where.
    pub area: SearchArea,
    /// The glob that file names had to match.
    pub glob: Option<String>,
}

/// What could not be looked at or shown.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SkippedFiles {
    /// Directories and files that could not be read, with what the system said.
    pub unreadable: Vec<(String, String)>,
    /// How many names are not UTF-8 or longer than we take.
    pub unnamed: usize,
    /// Files over the limit, with their sizes.
    pub too_large: Vec<(RelPath, u64)>,
    /// Files that match but are no text that can be shown, with what they are.
    pub not_shown: Vec<(RelPath, &'static str)>,
}

impl SkippedFiles {
    /// Brings it into one order, whoever found it first.
    pub fn sort(&mut self) {
        self.unreadable.sort();
        self.too_large.sort();
        self.not_shown.sort();
    }
}
