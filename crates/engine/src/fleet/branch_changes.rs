//! The changes of a checkout since its fork point: paths and lines, committed or not.
//!
//! One walk finds the files by the stamps in git's index, as `git status` does. After an edit, only the edited file is
//! checked.

use std::{
    cell::OnceCell,
    collections::{BTreeMap, HashSet},
    ops::Range,
};

use rustix::{
    fs::{FileType, Stat},
    io::Errno,
};
use surehand_core::{RelPath, Stamp, forecast::in_line_endings_of, merge3};
use surehand_store::board::{ContentChange, FileChange, SharedHunk};

use super::fork_point::{ForkPoint, ForkPointError};
use crate::{
    checkpoint::{ChangeFinder, WalkContext, lstat, read_file},
    disk::walk::{Globs, walk},
    git::{self, GitDirs, GitIndex, HeadTree, Objects, TreeEntry},
    workspace::Workspace,
};

/// The files that a checkout has changed since its fork point.
#[derive(Debug)]
pub struct BranchChanges {
    fork: ForkPoint,
    files: BTreeMap<RelPath, KnownChange>,
}

/// A changed file.
#[derive(Debug, Clone, PartialEq, Eq)]
struct KnownChange {
    change: FileChange,
    /// The stamp of the file that was compared; `None` if the file does not exist.
    stamp: Option<Stamp>,
}

/// The maximum number of files that are reported.
const MOST_FILES: usize = 20_000;

/// The lines of a larger file are not compared: it counts as binary.
const MOST_BYTES: u64 = 16 << 20;

/// The maximum size of the text of one file that is put on a board.
const MOST_TEXT: usize = 1 << 20;

const SUBMODULE: u32 = 0o160_000;

impl BranchChanges {
    /// Finds the changes of a checkout.
    pub fn find(workspace: &Workspace) -> Result<Self, ForkPointError> {
        let fork = workspace.fork_point()?;
        let mut changes = Self { fork, files: BTreeMap::new() };
        changes.refresh(workspace)?;
        Ok(changes)
    }

    /// The changed files, by their paths in the work tree.
    pub fn files(&self) -> impl Iterator<Item = &FileChange> {
        self.files.values().map(|known| &known.change)
    }

    /// Checks all files again, and returns those whose change is different now. Files that are as at the fork point
    /// again are [`ContentChange::Same`].
    pub fn refresh(&mut self, workspace: &Workspace) -> Result<Vec<FileChange>, ForkPointError> {
        let git = workspace.git_dirs().ok_or(ForkPointError::NoRepository)?;
        let objects = Objects::of(&git.common);
        let fork = ForkPoint::find(&git, &objects, Some(&self.fork))?;
        let comparison = ForkComparison { workspace, git: &git, objects: &objects, fork: &fork, index: OnceCell::new() };
        let mut candidates = comparison.candidates()?;
        while candidates.len() > MOST_FILES {
            candidates.pop_last();
        }
        let is_same_fork = fork.commit == self.fork.commit;
        let mut files = BTreeMap::new();
        for (path, BranchCandidate { base, stamp }) in candidates {
            let in_tree = workspace.copy.in_tree(&path);
            let last = self.files.get(&in_tree).filter(|last| is_same_fork && last.is_still_true(stamp.as_ref()));
            let now = match last {
                Some(last) => Some(last.clone()),
                None => comparison.change(&path, base)?,
            };
            files.extend(now.map(|now| (in_tree, now)));
        }
        let news = news(&self.files, &files, &fork);
        (self.fork, self.files) = (fork, files);
        Ok(news)
    }

    /// Checks these files again, given by their paths in the workspace, and returns those whose change is different
    /// now. If the fork point has moved, all files are checked.
    pub fn refresh_paths(&mut self, workspace: &Workspace, paths: &[RelPath]) -> Result<Vec<FileChange>, ForkPointError> {
        let git = workspace.git_dirs().ok_or(ForkPointError::NoRepository)?;
        let objects = Objects::of(&git.common);
        let fork = ForkPoint::find(&git, &objects, Some(&self.fork))?;
        if fork.commit != self.fork.commit {
            return self.refresh(workspace);
        }
        let comparison = ForkComparison { workspace, git: &git, objects: &objects, fork: &fork, index: OnceCell::new() };
        let (mut before, mut after) = (BTreeMap::new(), BTreeMap::new());
        for path in paths {
            let in_tree = workspace.copy.in_tree(path);
            let base = git::entry_at(&objects, &fork.tree, in_tree.as_str())?;
            before.extend(self.files.get(&in_tree).map(|last| (in_tree.clone(), last.clone())));
            after.extend(comparison.change(path, base)?.map(|now| (in_tree, now)));
        }
        let news = news(&before, &after, &fork);
        self.fork = fork;
        self.files.retain(|path, _| !before.contains_key(path));
        self.files.extend(after);
        Ok(news)
    }
}

impl KnownChange {
    fn is_still_true(&self, stamp: Option<&Stamp>) -> bool {
        let Some((last, now)) = self.stamp.as_ref().zip(stamp) else { return false };
        last.agrees_with(now) && !last.is_racy()
    }
}

fn unchanged(fork: &ForkPoint, path: RelPath, base: Option<TreeEntry>) -> FileChange {
    let base = base.map(|base| base.id.to_string());
    FileChange { path, fork_point: fork.commit(), base, change: ContentChange::Same, by: None, revision: 0 }
}

/// The changes that differ from those before.
fn news(before: &BTreeMap<RelPath, KnownChange>, after: &BTreeMap<RelPath, KnownChange>, fork: &ForkPoint) -> Vec<FileChange> {
    let is_new = |(path, now): &(&RelPath, &KnownChange)| before.get(*path).is_none_or(|last| last.change != now.change);
    let changed = after.iter().filter(is_new).map(|(_, now)| now.change.clone());
    let gone = before.iter().filter(|(path, _)| !after.contains_key(*path)).map(|(_, last)| FileChange {
        fork_point: fork.commit(),
        change: ContentChange::Same,
        ..last.change.clone()
    });
    changed.chain(gone).collect()
}

/// A file that may have changed.
struct BranchCandidate {
    base: Option<TreeEntry>,
    /// The stamp, if the walk visited the file.
    stamp: Option<Stamp>,
}

/// The present content of a path.
enum Content {
    Nothing,
    Bytes(Vec<u8>),
    Link(Vec<u8>),
    TooLarge,
}

/// A comparison of a checkout's files with a fork point.
struct ForkComparison<'a> {
    workspace: &'a Workspace,
    git: &'a GitDirs,
    objects: &'a Objects,
    fork: &'a ForkPoint,
    /// Read when a file is missing.
    index: OnceCell<Option<GitIndex>>,
}

impl ForkComparison<'_> {
    /// The files that may differ from the fork point, by their paths in the workspace.
    fn candidates(&self) -> Result<BTreeMap<RelPath, BranchCandidate>, ForkPointError> {
        let below = self.workspace.copy.below.as_ref().map(|below| format!("{below}/")).unwrap_or_default();
        let index = GitIndex::read(self.git)?;
        let fork = HeadTree::compare(self.objects, &self.fork.tree, &index)?;
        let copy = &self.workspace.copy;
        let context = WalkContext { index: &index, head: &fork, clock: copy.clock(), below: &below, umask: copy.umask() };
        let mut met = ChangeFinder::new(&context);
        for finder in walk(self.workspace.root(), None, &Globs::all(), || ChangeFinder::new(&context))?.visitors {
            met.add(finder);
        }
        let base_of = |place: Option<usize>, key: &[u8]| match place.filter(|place| fork.has(*place)) {
            Some(place) => Some(TreeEntry { mode: index.entries()[place].mode, id: index.entries()[place].id }),
            None => fork.others.get(key).copied(),
        };
        let mut found = BTreeMap::new();
        let mut add = |key: &[u8], place: Option<usize>, stamp: Option<Stamp>| {
            let path = str::from_utf8(key).ok().and_then(|key| RelPath::new(key.strip_prefix(&below)?).ok());
            let base = base_of(place, key);
            if let Some(path) = path.filter(|_| base.is_none_or(|base| base.mode != SUBMODULE)) {
                found.entry(path).or_insert(BranchCandidate { base, stamp });
            }
        };
        for candidate in met.candidates.iter().filter(|candidate| !candidate.is_ignored && !candidate.is_committed) {
            add(format!("{below}{}", candidate.path).as_bytes(), candidate.place, Some(candidate.stamp));
        }
        // Files that the walk did not visit are deleted or ignored, or git left them out of a sparse checkout.
        for (place, entry) in index.entries().iter().enumerate() {
            let is_met = met.seen[place / 64] & (1 << (place % 64)) != 0;
            if !is_met && !entry.is_skipped() && entry.mode != SUBMODULE {
                add(index.name(entry), index.find(index.name(entry)), None);
            }
        }
        let in_index: HashSet<&[u8]> = index.entries().iter().map(|entry| index.name(entry)).collect();
        for key in fork.others.keys().filter(|key| !in_index.contains(key.as_slice())) {
            add(key, None, None);
        }
        Ok(found)
    }

    /// The difference between a file and its base; `None` if there is none.
    fn change(&self, path: &RelPath, base: Option<TreeEntry>) -> Result<Option<KnownChange>, ForkPointError> {
        let stat = match lstat(self.workspace, path) {
            Ok(stat) => Some(stat),
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => None,
            Err(errno) => return Err(std::io::Error::from(errno).into()),
        };
        let stamp = stat.as_ref().map(|stat| self.workspace.copy.clock().stamp(stat));
        let in_tree = self.workspace.copy.in_tree(path);
        let change = match self.content(path, stat.as_ref())? {
            Content::Nothing if base.is_none() || self.is_skipped(&in_tree) => None,
            Content::Nothing => Some(ContentChange::Deleted),
            Content::TooLarge => Some(ContentChange::Binary),
            Content::Link(target) => {
                let before = base.filter(|base| base.mode == 0o120_000).map(|base| self.objects.blob(&base.id, target.len()));
                let is_same = before.transpose()?.flatten().is_some_and(|before| before == target);
                (!is_same).then_some(ContentChange::Binary)
            }
            Content::Bytes(now) => self.change_of_content(base, &now)?,
        };
        let change = change.map(|change| FileChange { change, ..unchanged(self.fork, in_tree, base) });
        Ok(change.map(|change| KnownChange { change, stamp }))
    }

    fn content(&self, path: &RelPath, stat: Option<&Stat>) -> Result<Content, ForkPointError> {
        let Some(stat) = stat else { return Ok(Content::Nothing) };
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile if stat.st_size as u64 > MOST_BYTES => Ok(Content::TooLarge),
            // If it was deleted or has grown meanwhile, the next check will see that.
            FileType::RegularFile => Ok(read_file(self.workspace, path, MOST_BYTES)?.map_or(Content::Nothing, Content::Bytes)),
            FileType::Symlink => {
                let dir = self.workspace.root().open_parent(path).map_err(std::io::Error::from)?;
                let target = rustix::fs::readlinkat(&dir, path.name(), Vec::new()).map_err(std::io::Error::from)?;
                Ok(Content::Link(target.into_bytes()))
            }
            _ => Ok(Content::Nothing),
        }
    }

    fn change_of_content(&self, base: Option<TreeEntry>, now: &[u8]) -> Result<Option<ContentChange>, ForkPointError> {
        let before = match base {
            None => Vec::new(),
            Some(TreeEntry { mode: 0o100_644 | 0o100_755 | 0o100_664, id }) => {
                match self.objects.blob(&id, MOST_BYTES as usize)? {
                    Some(before) => before,
                    None => return Ok(Some(ContentChange::Binary)),
                }
            }
            Some(_) => return Ok(Some(ContentChange::Binary)),
        };
        let now = in_line_endings_of(&before, now);
        if base.is_some() && before == *now {
            return Ok(None);
        }
        let takes_text = self.workspace.config().board.takes_text();
        Ok(Some(match merge3::hunks(&before, &now) {
            Ok(hunks) => ContentChange::Lines(shared_hunks(&hunks, &now, takes_text)),
            Err(_) => ContentChange::Binary,
        }))
    }

    /// Whether git left a file out of the work tree (sparse checkout).
    fn is_skipped(&self, in_tree: &RelPath) -> bool {
        let index = self.index.get_or_init(|| GitIndex::read(self.git).ok());
        let Some(index) = index else { return false };
        index.find(in_tree.as_str().as_bytes()).is_some_and(|place| index.entries()[place].is_skipped())
    }
}

/// Hunks for a board, with the text of the new lines if it may be shared and is not too large.
fn shared_hunks(hunks: &[surehand_core::Hunk], content: &[u8], takes_text: bool) -> Vec<SharedHunk> {
    let ends = content.split_inclusive(|byte| *byte == b'\n').scan(0, |end, line| {
        *end += line.len();
        Some(*end)
    });
    let starts: Vec<usize> = std::iter::once(0).chain(ends).collect();
    let bytes = |hunk: &surehand_core::Hunk| &content[starts[hunk.after.start]..starts[hunk.after.end]];
    let length: usize = hunks.iter().map(|hunk| bytes(hunk).len()).sum();
    let text = |hunk| Some(str::from_utf8(bytes(hunk)).ok().filter(|text| !text.contains('\0'))?.to_owned());
    let texts: Option<Vec<String>> = if takes_text && length <= MOST_TEXT { hunks.iter().map(text).collect() } else { None };
    let numbers = |lines: &Range<usize>| lines.start as u32..lines.end as u32;
    let shared = hunks.iter().enumerate().map(|(place, hunk)| SharedHunk {
        before: numbers(&hunk.before),
        after: numbers(&hunk.after),
        text: texts.as_ref().map(|texts| texts[place].clone()),
    });
    shared.collect()
}
