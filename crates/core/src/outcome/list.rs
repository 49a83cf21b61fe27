//! Decides what a listing shows: every file by name or, if they are too many, directories with counts.

use std::ops::Range;

use super::scope::{SearchArea, SearchScope, SkippedFiles};
use crate::path::RelPath;

/// The result of a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listing {
    /// The part of the workspace that was listed.
    pub scope: SearchScope,
    /// The files that are listed by name.
    pub files: Vec<RelPath>,
    /// The directories that are shown as a count, each with a trailing `/` and the number of files below it.
    pub folded: Vec<(String, usize)>,
    /// Entries of one directory that exceed the limit.
    pub rest: UnlistedEntries,
    /// The number of files, listed or not.
    pub total: usize,
    /// Files and directories that could not be listed.
    pub left_out: SkippedFiles,
}

/// The entries of one directory that are not listed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UnlistedEntries {
    /// The directory with a trailing `/`; `None` for the root.
    pub place: Option<String>,
    /// The number of its directories that are not listed.
    pub directories: usize,
    /// The number of files below those.
    pub files_in_directories: usize,
    /// The number of its own files that are not listed.
    pub files: usize,
}

impl Listing {
    /// Chooses at most `limit` lines to list from these sorted paths.
    pub fn of(paths: &[RelPath], scope: SearchScope, limit: usize, left_out: SkippedFiles) -> Self {
        let total = paths.len();
        if paths.is_empty() {
            return Self { scope, files: Vec::new(), folded: Vec::new(), rest: UnlistedEntries::default(), total, left_out };
        }
        let tree = PathTree { paths, limit };
        let FoldedTree { folders, files, rest } = tree.fold(tree.top(&scope.area));
        let files = files.into_iter().map(|file| paths[file].clone()).collect();
        let folded = folders.iter().map(|folder| (tree.name(folder).to_owned(), folder.files.len())).collect();
        Self { scope, files, folded, rest, total, left_out }
    }

    /// Whether some files are not listed by name.
    pub fn is_cut(&self) -> bool {
        self.files.len() < self.total
    }
}

/// Sorted paths, so that everything below a directory is adjacent.
struct PathTree<'a> {
    paths: &'a [RelPath],
    limit: usize,
}

/// A directory with all files below it.
#[derive(Clone)]
struct Folder {
    /// The length in bytes of the path to it, including the last `/`.
    prefix: usize,
    files: Range<usize>,
}

struct FoldedTree {
    folders: Vec<Folder>,
    files: Vec<usize>,
    rest: UnlistedEntries,
}

impl PathTree<'_> {
    fn top(&self, area: &SearchArea) -> Folder {
        let prefix = match area {
            SearchArea::Workspace => 0,
            SearchArea::Dir(dir) => dir.as_str().len() + 1,
            SearchArea::File(file) => file.as_str().len() - file.name().len(),
        };
        Folder { prefix, files: 0..self.paths.len() }
    }

    fn name(&self, folder: &Folder) -> &str {
        &self.paths[folder.files.start].as_str()[..folder.prefix]
    }

    /// The directories and files directly in a directory.
    fn open(&self, folder: &Folder) -> (Vec<Folder>, Vec<usize>) {
        let (mut folders, mut files): (Vec<Folder>, Vec<usize>) = (Vec::new(), Vec::new());
        let mut at = folder.files.start;
        while at < folder.files.end {
            let path = self.paths[at].as_str();
            let Some(slash) = path[folder.prefix..].find('/') else {
                files.push(at);
                at += 1;
                continue;
            };
            let prefix = folder.prefix + slash + 1;
            let inside = self.paths[at..folder.files.end].partition_point(|other| other.as_str().starts_with(&path[..prefix]));
            folders.push(Folder { prefix, files: at..at + inside });
            at += inside;
        }
        (folders, files)
    }

    /// Expands directories from the top down, those with the fewest entries first on each level, while there are lines
    /// left.
    fn fold(&self, top: Folder) -> FoldedTree {
        let (mut level, mut files) = self.open(&top);
        if level.len() + files.len() > self.limit {
            return self.trim(&top, level, files);
        }
        let mut closed: Vec<Folder> = Vec::new();
        while !level.is_empty() {
            let mut lines = closed.len() + level.len() + files.len();
            let mut opened: Vec<_> = level.into_iter().map(|folder| (self.open(&folder), folder)).collect();
            opened.sort_by_key(|((folders, files), folder)| (folders.len() + files.len(), folder.files.start));
            level = Vec::new();
            for ((inner, direct), folder) in opened {
                let cost = inner.len() + direct.len();
                if lines - 1 + cost > self.limit {
                    closed.push(folder);
                    continue;
                }
                lines = lines - 1 + cost;
                level.extend(inner);
                files.extend(direct);
            }
        }
        closed.sort_by_key(|folder| folder.files.start);
        files.sort_unstable();
        FoldedTree { folders: closed, files, rest: UnlistedEntries::default() }
    }

    /// The first entries of a directory that has too many, with the number of the remaining ones.
    fn trim(&self, top: &Folder, mut folders: Vec<Folder>, mut files: Vec<usize>) -> FoldedTree {
        let more_folders = folders.split_off(folders.len().min(self.limit));
        let more_files = files.split_off(files.len().min(self.limit - folders.len()));
        let rest = UnlistedEntries {
            place: if top.prefix == 0 { None } else { Some(self.name(top).to_owned()) },
            directories: more_folders.len(),
            files_in_directories: more_folders.iter().map(|folder| folder.files.len()).sum(),
            files: more_files.len(),
        };
        FoldedTree { folders, files, rest }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_file_is_listed_or_counted_on_so_many_lines(
            names in prop::collection::vec("[ab]{1,2}(/[ab.-]?[ab]){0,4}", 1..60),
            limit in 1_usize..40,
        ) {
            let mut paths: Vec<RelPath> = names.iter().map(|name| RelPath::new(name).unwrap()).collect();
            paths.sort();
            paths.dedup();
            let everywhere = SearchScope { area: SearchArea::Workspace, glob: None };
            let listing = Listing::of(&paths, everywhere, limit, SkippedFiles::default());
            prop_assert!(listing.files.len() + listing.folded.len() <= limit);
            let folded: usize = listing.folded.iter().map(|(_, count)| count).sum();
            let tree = PathTree { paths: &paths, limit };
            let (top_folders, top_files) = tree.open(&tree.top(&SearchArea::Workspace));
            if top_folders.len() + top_files.len() <= limit {
                prop_assert_eq!(listing.files.len() + folded, paths.len());
            }
            if paths.len() <= limit {
                prop_assert_eq!(listing.files, paths);
            }
        }
    }
}
