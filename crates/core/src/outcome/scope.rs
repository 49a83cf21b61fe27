//! The scope of a listing or a search, and the files that it had to skip.

use crate::path::RelPath;

/// The area that was searched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SearchArea {
    /// All files of the workspace.
    Workspace,
    /// All files below a directory.
    Dir(RelPath),
    /// Only the file at this path.
    File(RelPath),
}

/// The part of the workspace that was searched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchScope {
    /// The directory or file to which the search was limited.
    pub area: SearchArea,
    /// The glob that file names had to match.
    pub glob: Option<String>,
}

/// Files that could not be searched or shown.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SkippedFiles {
    /// Unreadable directories and files, with the error of the system.
    pub unreadable: Vec<(String, String)>,
    /// The number of names that are not UTF-8 or are too long.
    pub unnamed: usize,
    /// Files over the size limit, with their sizes.
    pub too_large: Vec<(RelPath, u64)>,
    /// Matching files that cannot be shown, with their kind.
    pub not_shown: Vec<(RelPath, &'static str)>,
}

impl SkippedFiles {
    /// Sorts every list, so that the result does not depend on the order of the walk.
    pub fn sort(&mut self) {
        self.unreadable.sort();
        self.too_large.sort();
        self.not_shown.sort();
    }
}
