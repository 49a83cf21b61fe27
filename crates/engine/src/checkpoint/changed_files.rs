//! One thread of a checkpoint's walk: it skips files that git has unchanged, and collects all others.

use std::collections::HashSet;

use rustix::fs::{FileType, Stat};
use surehand_core::Stamp;

use crate::{
    disk::{
        file_times::FileClock,
        walk::{EntryKind, WalkEntry, WalkVisitor},
    },
    git::{GitIndex, HeadTree},
};

/// The context that the threads of a walk share.
pub(crate) struct WalkContext<'a> {
    pub index: &'a GitIndex,
    pub head: &'a HeadTree,
    pub clock: FileClock,
    /// The directory of the work tree that is walked, with a trailing slash; empty for the top.
    pub below: &'a str,
    pub umask: u32,
}

/// A file or link that differs from the commit, or that the commit does not have.
#[derive(Debug, Clone)]
pub(crate) struct CheckpointCandidate {
    pub path: String,
    pub is_link: bool,
    /// The permissions of a file.
    pub mode: u32,
    pub stamp: Stamp,
    /// Whether ignore files exclude it.
    pub is_ignored: bool,
    /// The number of the nested repository that it is in.
    pub nested: Option<usize>,
    /// The position of its entry in git's index.
    pub place: Option<usize>,
    /// Whether the commit has its content, so that only its permissions are unusual.
    pub is_committed: bool,
}

/// One thread of a walk, and its results.
pub(crate) struct ChangeFinder<'a> {
    context: &'a WalkContext<'a>,
    key: String,
    /// The entries of git's index that were visited, one bit each.
    pub seen: Vec<u64>,
    pub candidates: Vec<CheckpointCandidate>,
    /// Directories that were visited, and those that have entries.
    pub directories: Vec<String>,
    pub filled: Vec<String>,
    pub unreadable: Vec<(String, String)>,
}

/// The default permissions of a file that git creates.
pub(crate) fn usual_mode(is_executable: bool, umask: u32) -> u32 {
    (if is_executable { 0o777 } else { 0o666 }) & !umask
}

impl WalkVisitor for ChangeFinder<'_> {
    fn visit(&mut self, entry: &WalkEntry<'_>) {
        self.fill(entry.path);
        match entry.kind {
            EntryKind::File | EntryKind::Link => self.visit_path(entry, false),
            EntryKind::Dir => self.directories.push(entry.path.to_owned()),
            EntryKind::Special => {}
        }
    }

    fn visit_ignored(&mut self, entry: &WalkEntry<'_>) {
        self.fill(entry.path);
        if matches!(entry.kind, EntryKind::File | EntryKind::Link) {
            self.visit_path(entry, true);
        }
    }

    fn passes_over_repositories(&self) -> bool {
        true
    }
}

impl<'a> ChangeFinder<'a> {
    pub(crate) fn new(context: &'a WalkContext<'a>) -> Self {
        Self {
            context,
            key: context.below.to_owned(),
            seen: vec![0; context.index.entries().len().div_ceil(64)],
            candidates: Vec::new(),
            directories: Vec::new(),
            filled: Vec::new(),
            unreadable: Vec::new(),
        }
    }

    /// The directories without entries: empty ones, and repositories that the walk skipped.
    pub(crate) fn unfilled(&self) -> Vec<&str> {
        let filled: HashSet<&str> = self.filled.iter().map(String::as_str).collect();
        self.directories.iter().map(String::as_str).filter(|path| !filled.contains(path)).collect()
    }

    /// Merges the results of another thread.
    pub(crate) fn add(&mut self, other: ChangeFinder<'_>) {
        self.seen.iter_mut().zip(other.seen).for_each(|(word, other)| *word |= other);
        self.candidates.extend(other.candidates);
        self.directories.extend(other.directories);
        self.filled.extend(other.filled);
        self.unreadable.extend(other.unreadable);
    }

    /// Notes that the directory of this path has entries. A walk visits many files of a directory in a row.
    fn fill(&mut self, path: &str) {
        let directory = path.rsplit_once('/').map_or("", |(directory, _)| directory);
        if !directory.is_empty() && self.filled.last().is_none_or(|last| last != directory) {
            self.filled.push(directory.to_owned());
        }
    }

    fn visit_path(&mut self, entry: &WalkEntry<'_>, is_ignored: bool) {
        match entry.lstat() {
            Ok(stat) => self.judge(entry.path, &stat, is_ignored),
            // It was deleted meanwhile.
            Err(rustix::io::Errno::NOENT) => {}
            Err(errno) => self.unreadable.push((entry.path.to_owned(), std::io::Error::from(errno).to_string())),
        }
    }

    /// Collects a path, unless git has it unchanged.
    pub(crate) fn judge(&mut self, path: &str, stat: &Stat, is_ignored: bool) {
        let kind = FileType::from_raw_mode(stat.st_mode);
        if !matches!(kind, FileType::RegularFile | FileType::Symlink) {
            return;
        }
        self.key.truncate(self.context.below.len());
        self.key.push_str(path);
        let place = self.context.index.find(self.key.as_bytes());
        let mode = stat.st_mode & 0o7777;
        let mut is_committed = false;
        if let Some(place) = place {
            self.seen[place / 64] |= 1 << (place % 64);
            is_committed =
                self.context.head.has(place) && self.context.index.vouches_for(&self.context.index.entries()[place], stat);
            let is_usual = kind == FileType::Symlink || mode == usual_mode(mode & 0o100 != 0, self.context.umask);
            if is_committed && is_usual {
                return;
            }
        }
        self.candidates.push(CheckpointCandidate {
            path: path.to_owned(),
            is_link: kind == FileType::Symlink,
            mode,
            stamp: self.context.clock.stamp(stat),
            // Files that git tracks are not ignored, whatever ignore files say.
            is_ignored: is_ignored && place.is_none(),
            nested: None,
            place,
            is_committed,
        });
    }
}
