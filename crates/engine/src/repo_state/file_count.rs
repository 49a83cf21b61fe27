//! Counts the files of a repository by directory, for a prompt before any file was touched or scanned.

use std::{
    borrow::Cow,
    collections::{BTreeMap, HashSet},
    hash::{DefaultHasher, Hash, Hasher},
    io,
};

use surehand_core::{ContentHash, FileState, FileStatus, RelPath, Stamp};

use super::file_check::check_file;
use crate::{
    call_progress::CallProgress,
    disk::{
        walk::{FilePaths, Globs, walk_on},
        working_copy::WorkingCopy,
    },
    scan_index::ScanIndex,
};

/// Up to this number, each file is named.
pub(super) const FEW: usize = 64;

/// The files of a root, without ignored ones.
#[derive(Debug)]
pub(super) struct FileCount {
    /// By directory with a trailing slash; the root is empty.
    counts: Vec<(String, usize)>,
    /// The digests of all paths.
    paths: HashSet<u64>,
    few: Vec<(RelPath, Option<(ContentHash, Stamp)>)>,
}

impl FileCount {
    pub(super) fn take(copy: &WorkingCopy) -> io::Result<Self> {
        let walked = walk_on(&CallProgress::default(), copy.root(), None, &Globs::all(), FilePaths::default)?;
        let paths: Vec<RelPath> = walked.visitors.into_iter().flat_map(|paths| paths.0).collect();
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        paths.iter().for_each(|path| *counts.entry(directory(path)).or_default() += 1);
        let few = if paths.len() <= FEW { paths.iter().map(|path| (path.clone(), None)).collect() } else { Vec::new() };
        Ok(Self { counts: counts.into_iter().collect(), paths: paths.iter().map(digest).collect(), few })
    }

    pub(super) fn is_few(&self) -> bool {
        !self.few.is_empty()
    }
}

pub(super) struct TouchedPaths<'a> {
    pub copy: &'a WorkingCopy,
    /// Paths in the work tree.
    pub files: &'a BTreeMap<RelPath, super::RepoEntry>,
}

impl<'a> TouchedPaths<'a> {
    /// Paths in the root.
    fn paths(&self) -> impl Iterator<Item = Cow<'a, RelPath>> + use<'a> {
        let copy = self.copy;
        self.files.keys().filter_map(|path| copy.in_root(path))
    }

    fn contains(&self, path: &RelPath) -> bool {
        self.files.contains_key(&self.copy.in_tree(path))
    }
}

#[derive(Debug, Default)]
pub(super) struct UntouchedFiles {
    pub counts: Vec<(String, usize)>,
    pub few: Vec<FileState>,
}

impl UntouchedFiles {
    /// The counted files that were not touched.
    pub(super) fn of_census(census: &mut FileCount, touched: &TouchedPaths<'_>) -> Self {
        let is_counted = |path: &RelPath| census.paths.contains(&digest(path));
        let counts = without(census.counts.clone(), touched.paths().filter(|path| is_counted(path)));
        let mut few = Vec::new();
        for (path, known) in census.few.iter_mut().filter(|(path, _)| !touched.contains(path)) {
            let path_in_tree = touched.copy.in_tree(path);
            *known = check_file(touched.copy, &path_in_tree, known.as_ref().map(|(version, stamp)| (*version, stamp)));
            few.extend(known.map(|(version, stamp)| unchanged(path.clone(), version, stamp)));
        }
        Self { counts, few }
    }

    pub(super) fn of_index(index: &ScanIndex, touched: &TouchedPaths<'_>) -> Self {
        let counts = without(index.counts(), touched.paths().filter(|path| index.version_of(path).is_some()));
        if counts.iter().map(|(_, files)| files).sum::<usize>() > FEW {
            return Self { counts, few: Vec::new() };
        }
        let files = index.iter().filter(|(path, ..)| !touched.contains(path));
        Self { counts, few: files.map(|(path, version, stamp)| unchanged(path, version, stamp)).collect() }
    }
}

fn without<'a>(mut counts: Vec<(String, usize)>, touched: impl Iterator<Item = Cow<'a, RelPath>>) -> Vec<(String, usize)> {
    for path in touched {
        if let Ok(at) = counts.binary_search_by(|(known, _)| known.cmp(&directory(&path))) {
            counts[at].1 = counts[at].1.saturating_sub(1);
        }
    }
    counts
}

fn unchanged(path: RelPath, hash: ContentHash, stamp: Stamp) -> FileState {
    let (size, modified, status) = (stamp.size, stamp.modified / 1_000_000, FileStatus::Unchanged);
    FileState { path, hash, size, modified, status, changed_outside: false }
}

/// The directory of a file with a trailing slash; empty for the root.
fn directory(path: &RelPath) -> String {
    path.parent().map_or_else(String::new, |parent| format!("{parent}/"))
}

fn digest(path: &RelPath) -> u64 {
    let mut hasher = DefaultHasher::new();
    path.as_str().hash(&mut hasher);
    hasher.finish()
}
