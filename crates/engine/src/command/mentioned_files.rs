//! Finds the files that a command and its output may be about, from the words in both. Files outside the workspace are
//! ignored.

use std::{
    cell::RefCell,
    collections::{HashMap, HashSet},
    path::Path,
    sync::atomic::{AtomicUsize, Ordering},
};

use surehand_core::{RelPath, shell::mentions::Mentions};

use crate::{
    call_progress::CallProgress,
    discovery::work_tree_of,
    disk::walk::{EntryKind, Globs, PathTarget, WalkEntry, WalkVisitor, path_target, walk_on},
    workspace::Workspace,
};

/// The maximum number of directories of a command (`cd`) that are followed.
const MOST_BASES: usize = 6;

/// The maximum number of files from globs, directories and base names.
const MOST_POSSIBLE: usize = 200;

/// The maximum number of files visited to find them, in all walks together.
const MOST_WALKED: usize = 20_000;

/// Globs beyond this number are not expanded.
const MOST_GLOBS: usize = 4;

/// The files of a workspace that a command mentions.
#[derive(Debug)]
pub(super) struct MentionedFiles {
    /// The directories that its paths are relative to: where it runs and where it changes to.
    bases: Vec<String>,
    pub(super) files: Vec<RelPath>,
    /// Directories that it names; `None` is the root.
    pub(super) directories: Vec<Option<RelPath>>,
    /// Paths that it names and that do not exist.
    pub(super) absent: HashSet<RelPath>,
    known: HashSet<String>,
    reach: CommandReach,
    reached: RefCell<HashMap<Option<RelPath>, bool>>,
}

/// The files below the root that a session is responsible for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CommandReach {
    Everything,
    /// Not those of nested repositories, which have a workspace of their own.
    OwnTree,
}

impl MentionedFiles {
    /// Looks up the paths of a command that runs in this directory.
    pub(super) fn of(workspace: &Workspace, directory: &str, mentions: &Mentions, reach: CommandReach) -> Self {
        let located = |path_target: &String| Path::new(directory).join(path_target).to_string_lossy().into_owned();
        let bases = [directory.to_owned()].into_iter().chain(mentions.directories.iter().map(located)).take(MOST_BASES).collect();
        let mut mentioned = Self {
            bases,
            files: Vec::new(),
            directories: Vec::new(),
            absent: HashSet::new(),
            known: HashSet::new(),
            reach,
            reached: RefCell::default(),
        };
        mentioned.look_up(workspace, &mentions.paths);
        mentioned
    }

    /// Looks up further names, such as those in the output.
    pub(super) fn look_up(&mut self, workspace: &Workspace, names: &[String]) {
        let spellings = |name: &String| {
            self.bases.iter().map(|base| Path::new(base).join(name).to_string_lossy().into_owned()).collect::<Vec<_>>()
        };
        for spelling in names.iter().flat_map(spellings).collect::<Vec<_>>() {
            if !self.known.insert(spelling.clone()) {
                continue;
            }
            match path_target(workspace.root(), &spelling) {
                Ok(PathTarget::File(path)) if !self.reaches(workspace, &path) => {}
                Ok(PathTarget::File(path)) => add(&mut self.files, path),
                Ok(PathTarget::Dir(directory)) => add(&mut self.directories, directory),
                Err(_) => self.absent.extend(workspace.root().normalize(&spelling)),
            }
        }
    }

    /// Other files that the command may be about: files in directories that it names, files that match its globs, and
    /// files with a base name that it mentions.
    pub(super) fn possible_paths(&self, workspace: &Workspace, mentions: &Mentions) -> Vec<RelPath> {
        let mut found = HashSet::new();
        let walked = AtomicUsize::new(0);
        for directory in self.directories.iter().filter(|directory| directory.is_some()) {
            found.extend(files_below(workspace, directory.as_ref(), &Globs::all(), &|_| true, &walked));
        }
        let Ok(PathTarget::Dir(here)) = path_target(workspace.root(), &self.bases[0]) else { return Vec::new() };
        for glob in mentions.globs.iter().take(MOST_GLOBS) {
            let name = glob.rsplit('/').next().unwrap_or(glob);
            if let Ok(globs) = Globs::of(name) {
                found.extend(files_below(workspace, here.as_ref(), &globs, &|_| true, &walked));
            }
        }
        let is_found = |name: &str| self.files.iter().any(|file| file.name() == name);
        let names: HashSet<&str> =
            self.absent.iter().map(RelPath::name).filter(|name| name.contains('.') && !is_found(name)).collect();
        if !names.is_empty() {
            found.extend(files_below(workspace, here.as_ref(), &Globs::all(), &|name| names.contains(name), &walked));
        }
        let is_new = |path: &RelPath| !self.files.contains(path) && self.reaches(workspace, path);
        let mut found: Vec<RelPath> = found.into_iter().filter(is_new).collect();
        found.sort_unstable();
        found.truncate(MOST_POSSIBLE);
        found
    }

    fn reaches(&self, workspace: &Workspace, path: &RelPath) -> bool {
        let is_own = || {
            let tree = work_tree_of(&workspace.path().join(path.as_str()), &workspace.config().state);
            tree.is_none_or(|tree| tree == workspace.path())
        };
        self.reach == CommandReach::Everything || *self.reached.borrow_mut().entry(path.parent()).or_insert_with(is_own)
    }
}

fn add<T: PartialEq>(all: &mut Vec<T>, one: T) {
    if !all.contains(&one) {
        all.push(one);
    }
}

/// The files below a directory with matching names, within the limit of the walk.
fn files_below(
    workspace: &Workspace,
    below: Option<&RelPath>,
    globs: &Globs,
    fits: &(dyn Fn(&str) -> bool + Sync),
    walked: &AtomicUsize,
) -> Vec<RelPath> {
    if walked.load(Ordering::Relaxed) > MOST_WALKED {
        return Vec::new();
    }
    let progress = CallProgress::default();
    let finder = || NameFinder { fits, found: Vec::new(), walked, progress: &progress };
    let done = walk_on(&progress, workspace.root(), below, globs, finder);
    done.map(|done| done.visitors.into_iter().flat_map(|finder| finder.found).collect()).unwrap_or_default()
}

struct NameFinder<'a> {
    fits: &'a (dyn Fn(&str) -> bool + Sync),
    found: Vec<RelPath>,
    walked: &'a AtomicUsize,
    progress: &'a CallProgress,
}

impl WalkVisitor for NameFinder<'_> {
    fn visit(&mut self, entry: &WalkEntry<'_>) {
        let name = entry.path.rsplit('/').next().unwrap_or(entry.path);
        if entry.kind == EntryKind::File && (self.fits)(name) {
            self.found.push(entry.rel_path());
        }
        if self.walked.fetch_add(1, Ordering::Relaxed) > MOST_WALKED {
            self.progress.stop();
        }
    }
}
