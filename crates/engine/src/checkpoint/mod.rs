//! Checkpoints: the state of a workspace's files at one moment, so that it can be restored.
//!
//! Files that git can restore, those of the commit at HEAD, are not copied: the checkpoint names the commit. All other
//! content goes into the store, unless the store has it. One walk finds these files by the stamps in git's index and in
//! the last checkpoint, so a checkpoint costs about as much as `git status`.

mod changed_files;
mod nested;

use std::{
    collections::{HashMap, HashSet},
    io::{self, Read},
    time::Instant,
};

use rustix::{
    fs::{self as sys, AtFlags, FileType, OFlags, Stat},
    io::Errno,
};
use surehand_core::{ContentHash, Notice, RelPath, outcome::SkippedFiles, shell};
use surehand_store::{
    Checkpoint, CheckpointFile, CheckpointId, CheckpointInfo, FileContent, FileState, NotKept, SessionId, SharedBytes, Store,
    StoreError, StoreRecord,
};

use self::changed_files::CheckpointCandidate;
pub(crate) use self::changed_files::{ChangeFinder, WalkContext, usual_mode};
pub(crate) use self::nested::NestedPaths;
use self::nested::NestedRepository;
use crate::{
    change_log::fresh_change,
    disk::walk::{Globs, walk},
    git::{self, CannotTell, GitDirs, GitIndex, Head, HeadTree, ObjectId, Objects},
    session::Session,
    time::now,
    workspace::Workspace,
};

/// Who takes a checkpoint, and why.
#[derive(Debug, Clone, Default)]
pub struct CheckpointRequest {
    /// The session that is about to act.
    pub session: Option<SessionId>,
    /// The action that follows, for the log.
    pub occasion: String,
    /// A name given by a person. A checkpoint with a name is made even if nothing has changed since the last one.
    pub name: Option<String>,
}

/// Why a checkpoint could not be taken.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CheckpointError {
    /// The state of the workspace cannot be written.
    #[error("{root}: the state cannot be written")]
    ReadOnly {
        /// Absolute path of the workspace root.
        root: String,
    },
    /// The root could not be walked.
    #[error("{root}: cannot walk the workspace: {error}")]
    Walk {
        /// Absolute path of the workspace root.
        root: String,
        /// The error of the operating system.
        error: io::Error,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The checkpoint is missing from the store after it was written.
    #[error("{root}: the checkpoint could not be written")]
    NotWritten {
        /// Absolute path of the workspace root.
        root: String,
    },
}

/// The maximum size of an ignored file that is kept, unless a session has seen it.
const MOST_OF_IGNORED: u64 = 1 << 20;

/// The number of files that a session saw last and that are kept even if they are ignored.
const MOST_SEEN: usize = 10_000;

/// The number of bytes that are read before they go to the store.
const BATCH: usize = 16 << 20;

/// The maximum number of files with unusual permissions. If there are more, these are usual in this workspace.
const MOST_UNUSUAL: usize = 10_000;

impl Workspace {
    /// Takes a checkpoint. If nothing has changed since the last one, that one is extended and returned.
    pub fn checkpoint(&self, request: &CheckpointRequest) -> Result<CheckpointInfo, CheckpointError> {
        Ok(self.checkpoint_with_files(request)?.info)
    }

    /// Like [`Workspace::checkpoint`], with the states of the files.
    pub(crate) fn checkpoint_with_files(&self, request: &CheckpointRequest) -> Result<Checkpoint, CheckpointError> {
        let root = || self.root().path().display().to_string();
        if self.state().is_read_only() {
            return Err(CheckpointError::ReadOnly { root: root() });
        }
        let last = self.last_checkpoint()?;
        let checkpoint = self.build_checkpoint(request, last.as_ref(), ContentUse::Keep)?;
        let (at, took) = (checkpoint.info.at, checkpoint.info.took);
        if let Some(mut last) = last.filter(|last| request.name.is_none() && last.says_the_same(&checkpoint)) {
            self.record(StoreRecord::StillSo { checkpoint: last.info.id.clone(), at, took });
            (last.info.until, last.info.took) = (at, took);
            return Ok(last);
        }
        self.record(StoreRecord::Checkpointed(checkpoint.clone()));
        self.flush();
        let written = self.ask(|store| store.checkpoints(8))?;
        if !written.iter().any(|written| written.id == checkpoint.info.id) {
            return Err(CheckpointError::NotWritten { root: root() });
        }
        Ok(checkpoint)
    }

    /// The content of a checkpoint that would be taken now. Nothing is recorded or kept.
    pub(crate) fn survey(&self) -> Result<Checkpoint, CheckpointError> {
        self.build_checkpoint(&CheckpointRequest::default(), self.last_checkpoint()?.as_ref(), ContentUse::Compare)
    }

    fn build_checkpoint(
        &self,
        request: &CheckpointRequest,
        last: Option<&Checkpoint>,
        content_use: ContentUse,
    ) -> Result<Checkpoint, CheckpointError> {
        let (began, at) = (Instant::now(), now());
        let mut builder = CheckpointBuilder::begin(self, last, content_use);
        let walk_failed = |error| CheckpointError::Walk { root: self.root().path().display().to_string(), error };
        builder.find(request).map_err(walk_failed)?;
        builder.keep_all()?;
        let CheckpointBuilder { git, mut files, mut not_kept, is_whole, .. } = builder;
        files.sort_by(|one, other| one.path.cmp(&other.path));
        not_kept.sort_by(|one, other| one.path.cmp(&other.path));
        let info = CheckpointInfo {
            id: CheckpointId(fresh_change().0),
            at,
            until: at,
            session: request.session.clone(),
            occasion: request.occasion.clone(),
            name: request.name.clone(),
            commit: git.and_then(|git| git.commit).map(|commit| commit.to_string()),
            is_whole,
            took: u32::try_from(began.elapsed().as_millis()).unwrap_or(u32::MAX),
            files: files.len(),
            not_kept,
        };
        Ok(Checkpoint { info, files })
    }

    fn last_checkpoint(&self) -> Result<Option<Checkpoint>, StoreError> {
        self.ask(|store| match store.checkpoints(1)?.first() {
            Some(last) => store.checkpoint(&last.id),
            None => Ok(None),
        })
    }

    /// The latest checkpoints, newest first.
    pub fn checkpoints(&self, limit: usize) -> Result<Vec<CheckpointInfo>, StoreError> {
        self.flush();
        self.ask(|store| store.checkpoints(limit))
    }

    /// The git directories of the work tree; `None` without git.
    pub(crate) fn git_dirs(&self) -> Option<GitDirs> {
        let tree = self.copy.tree.path().to_owned();
        // The tree was discovered before, so the rule about the home directory need not be applied again.
        git::discover(&tree, None).filter(|found| found.root == tree)?.git
    }
}

impl Session {
    /// Takes a checkpoint when the session begins.
    pub fn checkpoint_at_start(&self) {
        self.checkpoint_for("session start".to_owned());
    }

    /// Takes a checkpoint before a command, unless the command is known to only read. If checkpoints are slow, one is
    /// taken only before a command that may delete or overwrite files that it is not about.
    pub fn checkpoint_before(&self, command: &str) {
        let is_slow = || {
            let last = self.workspace().ask(|store| store.checkpoints(1)).unwrap_or_default();
            last.first().is_some_and(|last| u64::from(last.took) > self.workspace().config().checkpoint.slow)
        };
        if !shell::only_reads(command) && (shell::may_destroy(command) || !is_slow()) {
            let line = command.trim().lines().next().unwrap_or_default();
            let line: String = line.chars().filter(|char| !char.is_control()).take(LONGEST_OCCASION).collect();
            self.checkpoint_for(format!("before: {line}"));
        }
    }

    /// A failed checkpoint does not stop the session; the next reply reports it.
    fn checkpoint_for(&self, occasion: String) {
        let request = CheckpointRequest { session: Some(self.id()), occasion, name: None };
        if let Err(error) = self.workspace().checkpoint(&request) {
            self.workspace().state().notify(Notice::NotRemembered { why: format!("no checkpoint was taken: {error}") });
        }
    }
}

/// The maximum number of characters of a command that are recorded.
const LONGEST_OCCASION: usize = 200;

/// The state of a git repository.
pub(crate) struct GitState {
    pub objects: Objects,
    pub commit: Option<ObjectId>,
    index: GitIndex,
    head: HeadTree,
}

impl GitState {
    fn read(git: &GitDirs) -> Result<Self, CannotTell> {
        let objects = Objects::of(&git.common);
        let index = GitIndex::read(git)?;
        let (commit, head) = match git::head_of(git)? {
            Head::Unborn => (None, HeadTree::none(&index)),
            Head::Commit(commit) => {
                let tree = git::tree_of(&objects, &commit)?;
                (Some(commit), HeadTree::compare(&objects, &tree, &index)?)
            }
        };
        Ok(Self { objects, commit, index, head })
    }

    /// For a repository that cannot be understood: git is assumed to have no content.
    fn unknown(git: &GitDirs) -> Self {
        let index = GitIndex::empty();
        Self { objects: Objects::of(&git.common), commit: None, head: HeadTree::none(&index), index }
    }
}

/// The use of contents that are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ContentUse {
    /// They go into the store.
    Keep,
    /// They are only compared by version.
    Compare,
}

/// A checkpoint that is being taken.
struct CheckpointBuilder<'a> {
    workspace: &'a Workspace,
    content_use: ContentUse,
    git: Option<GitState>,
    nested: Vec<NestedRepository>,
    last: HashMap<&'a RelPath, &'a FileState>,
    candidates: Vec<CheckpointCandidate>,
    files: Vec<CheckpointFile>,
    not_kept: Vec<NotKept>,
    is_whole: bool,
    /// The total size of the files whose content the store keeps for this checkpoint.
    bytes: u64,
}

/// A file that was read.
struct ReadCandidate {
    candidate: CheckpointCandidate,
    path: RelPath,
    version: ContentHash,
    content: Vec<u8>,
}

impl<'a> CheckpointBuilder<'a> {
    fn begin(workspace: &'a Workspace, last: Option<&'a Checkpoint>, content_use: ContentUse) -> Self {
        let mut not_kept = Vec::new();
        let git = workspace.git_dirs().map(|dirs| {
            GitState::read(&dirs).unwrap_or_else(|error| {
                let why = format!("git cannot be read, so that every file counts as changed: {}", error.why);
                not_kept.push(NotKept { path: ".git".to_owned(), why });
                GitState::unknown(&dirs)
            })
        });
        let last = last.iter().flat_map(|last| &last.files).map(|file| (&file.path, &file.state)).collect();
        let is_whole = git.is_some();
        let (nested, candidates, files) = (Vec::new(), Vec::new(), Vec::new());
        Self { workspace, content_use, git, nested, last, candidates, files, not_kept, is_whole, bytes: 0 }
    }

    /// Finds all files that differ from the commit.
    fn find(&mut self, request: &CheckpointRequest) -> io::Result<()> {
        let below = self.workspace.copy.below.as_ref().map(|below| format!("{below}/")).unwrap_or_default();
        let git = self.git.take();
        let nothing = GitIndex::empty();
        let no_tree = HeadTree::none(&nothing);
        let context = WalkContext {
            index: git.as_ref().map_or(&nothing, |git| &git.index),
            head: git.as_ref().map_or(&no_tree, |git| &git.head),
            clock: self.workspace.copy.clock(),
            below: &below,
            umask: self.workspace.copy.umask(),
        };
        let mut all = ChangeFinder::new(&context);
        if git.is_some() {
            let walked = walk(self.workspace.root(), None, &Globs::all(), || ChangeFinder::new(&context))?;
            for finder in walked.visitors {
                all.add(finder);
            }
            self.note_unreadable("", walked.left_out, all.unreadable.drain(..));
            self.find_unvisited_files(&mut all, &context);
            self.find_in_repositories(&mut all, &context);
            self.note_empty_directories(&all);
        }
        self.find_seen_files(&mut all, &context, request);
        self.candidates = all.candidates;
        self.git = git;
        Ok(())
    }

    /// Notes the files of a walk that cannot be kept. `inside` is the walked directory, with a trailing slash.
    fn note_unreadable(&mut self, inside: &str, skipped: SkippedFiles, unreadable: impl Iterator<Item = (String, String)>) {
        let unreadable = skipped.unreadable.into_iter().chain(unreadable);
        let not_kept = |(path, why)| NotKept { path: format!("{inside}{path}"), why: format!("it cannot be read: {why}") };
        self.not_kept.extend(unreadable.map(not_kept));
        if skipped.unnamed > 0 {
            let path = if inside.is_empty() { "." } else { inside.trim_end_matches('/') }.to_owned();
            let names = if skipped.unnamed == 1 { "1 name is".to_owned() } else { format!("{} names are", skipped.unnamed) };
            self.not_kept.push(NotKept { path, why: format!("{names} not UTF-8, or too long") });
        }
    }

    /// Notes files that git tracks and that the walk did not visit: they are deleted or ignored.
    fn find_unvisited_files(&mut self, all: &mut ChangeFinder<'_>, context: &WalkContext<'_>) {
        let mut met: HashSet<String> = all.candidates.iter().map(|candidate| candidate.path.clone()).collect();
        let entries = context.index.entries();
        let unseen = (0..entries.len()).filter(|place| all.seen[place / 64] & (1 << (place % 64)) == 0);
        let of_index = unseen.map(|place| (context.index.name(&entries[place]).to_vec(), entries[place].mode, Some(place)));
        let of_head = context.head.others.iter().map(|(path, entry)| (path.clone(), entry.mode, None));
        let both: Vec<(Vec<u8>, u32, Option<usize>)> = of_index.chain(of_head).collect();
        let mut absent = HashSet::new();
        for (key, mode, place) in both {
            const SUBMODULE: u32 = 0o160_000;
            let Some(path) = str::from_utf8(&key).ok().and_then(|key| key.strip_prefix(context.below)) else { continue };
            let is_skipped = place.is_some_and(|place| entries[place].is_skipped());
            let Some(rel_path) = RelPath::new(path).ok().filter(|_| mode != SUBMODULE && !met.contains(path)) else { continue };
            match lstat(self.workspace, &rel_path) {
                Ok(stat) if matches!(FileType::from_raw_mode(stat.st_mode), FileType::RegularFile | FileType::Symlink) => {
                    met.insert(path.to_owned());
                    all.judge(path, &stat, false);
                }
                // An empty directory is noted elsewhere.
                Ok(_) if !all.filled.iter().any(|filled| filled == path) => {}
                // The path does not exist, or has become a directory with entries.
                Ok(_) | Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {
                    let is_committed = place.is_none_or(|place| context.head.has(place));
                    if is_committed && !is_skipped && absent.insert(path.to_owned()) {
                        self.files.push(CheckpointFile { path: rel_path, state: FileState::Absent });
                    }
                }
                Err(errno) => {
                    let why = format!("it cannot be examined: {}", io::Error::from(errno));
                    self.not_kept.push(NotKept { path: path.to_owned(), why });
                }
            }
        }
    }

    fn note_empty_directories(&mut self, all: &ChangeFinder<'_>) {
        for path in all.unfilled() {
            let Ok(path) = RelPath::new(path) else { continue };
            if let Ok(stat) = lstat(self.workspace, &path) {
                self.files.push(CheckpointFile { path, state: FileState::Directory { mode: stat.st_mode & 0o7777 } });
            }
        }
    }

    /// Adds files that sessions have seen: ignored ones and, without git, all of them.
    fn find_seen_files(&mut self, all: &mut ChangeFinder<'_>, context: &WalkContext<'_>, request: &CheckpointRequest) {
        let paths = self.workspace.ask(|store| {
            if !self.is_whole {
                return Ok(store.tracked(None)?.files.into_iter().map(|file| file.path).collect());
            }
            let sessions = match &request.session {
                Some(session) => vec![session.clone()],
                None => store.sessions()?.into_iter().map(|(session, _)| session).collect(),
            };
            let mut paths = Vec::new();
            for session in sessions {
                paths.extend(store.lately_viewed(&session, MOST_SEEN)?);
            }
            Ok(paths)
        });
        let mut met: HashSet<String> = all.candidates.iter().map(|candidate| candidate.path.clone()).collect();
        for path in paths.unwrap_or_default() {
            let key = format!("{}{path}", context.below);
            if context.index.find(key.as_bytes()).is_some() {
                continue;
            }
            if !met.insert(path.to_string()) {
                // A file that a session has seen is kept at any size, even if it is ignored.
                if let Some(candidate) = all.candidates.iter_mut().find(|candidate| candidate.path == path.as_str()) {
                    candidate.is_ignored = false;
                }
                continue;
            }
            if let Ok(stat) = lstat(self.workspace, &path) {
                all.judge(path.as_str(), &stat, false);
            }
        }
    }

    /// Keeps the files that were found, as far as there is room: first those of the work tree itself, then those of
    /// nested repositories; in each, files that are not ignored first, and small ones first.
    fn keep_all(&mut self) -> Result<(), StoreError> {
        let mut candidates = std::mem::take(&mut self.candidates);
        let unusual = candidates.iter().filter(|candidate| candidate.is_committed).count();
        candidates.retain(|candidate| !candidate.is_committed || unusual <= MOST_UNUSUAL);
        candidates.sort_by(|one, other| rank(one).cmp(&rank(other)));
        let excluded = excluded(&self.workspace.config().never_kept);
        let mut fresh: Vec<ReadCandidate> = Vec::new();
        let mut waiting = 0;
        for candidate in candidates {
            let Ok(path) = RelPath::new(&candidate.path) else { continue };
            if candidate.is_link {
                let state = self.link(&path);
                self.files.extend(state.map(|state| CheckpointFile { path, state }));
                continue;
            }
            if let Some(state) = self.known(&candidate, &path, &excluded)? {
                self.files.push(CheckpointFile { path, state });
                continue;
            }
            let content = match read_file(self.workspace, &path, self.workspace.config().checkpoint.file_bytes) {
                Ok(Some(content)) => content,
                // It was deleted, or has grown.
                Ok(None) => continue,
                Err(error) => {
                    let state = self.leave(&path, format!("it cannot be read: {error}"));
                    self.files.push(CheckpointFile { path, state });
                    continue;
                }
            };
            if let Some(id) = self.committed_as(&candidate, &content) {
                if candidate.nested.is_none() {
                    let content = FileContent::Blob(id.to_string());
                    let state = FileState::File { content, mode: candidate.mode, stamp: candidate.stamp };
                    self.files.push(CheckpointFile { path, state });
                }
                continue;
            }
            self.bytes += content.len() as u64;
            waiting += content.len();
            fresh.push(ReadCandidate { version: ContentHash::of(&content), candidate, path, content });
            if waiting >= BATCH {
                self.store(std::mem::take(&mut fresh))?;
                waiting = 0;
                self.workspace.flush();
            }
        }
        self.store(fresh)
    }

    /// The state of a file, if it is known without reading the file.
    fn known(
        &mut self,
        candidate: &CheckpointCandidate,
        path: &RelPath,
        excluded: &ignore::gitignore::Gitignore,
    ) -> Result<Option<FileState>, StoreError> {
        let limits = self.workspace.config().checkpoint;
        let (mode, stamp) = (candidate.mode, candidate.stamp);
        let file = |content| Ok(Some(FileState::File { content, mode, stamp }));
        if let (true, Some(place), Some(git)) = (candidate.is_committed, candidate.place, &self.git) {
            return file(FileContent::Blob(git.index.entries()[place].id.to_string()));
        }
        if excluded.matched_path_or_any_parents(path.as_str(), false).is_ignore() {
            return Ok(Some(self.leave(path, "versions.exclude names it".to_owned())));
        }
        if candidate.is_ignored && stamp.size > MOST_OF_IGNORED {
            return Ok(Some(FileState::NotKept));
        }
        if stamp.size > limits.file_bytes {
            let why = format!("{} bytes are more than checkpoint.file_bytes", stamp.size);
            return Ok(Some(self.leave(path, why)));
        }
        let last = match self.last.get(path).copied() {
            Some(FileState::File { content, stamp: last, .. }) if last.agrees_with(&stamp) && !last.is_racy() => Some(content),
            _ => None,
        };
        match last {
            Some(FileContent::Blob(id)) if self.is_at_head(candidate, id) => file(FileContent::Blob(id.clone())),
            _ if self.bytes + stamp.size > limits.bytes => {
                Ok(Some(self.leave(path, "the other files take all of checkpoint.bytes".to_owned())))
            }
            Some(FileContent::Version(version)) if self.workspace.ask(|store| store.has_version(version))? => {
                self.bytes += stamp.size;
                file(FileContent::Version(*version))
            }
            _ => Ok(None),
        }
    }

    fn link(&mut self, path: &RelPath) -> Option<FileState> {
        let target = self.workspace.root().open_parent(path).and_then(|dir| sys::readlinkat(&dir, path.name(), Vec::new()));
        match target.ok()?.into_string() {
            Ok(target) => Some(FileState::Link { target }),
            Err(_) => Some(self.leave(path, "it is a link whose target is not UTF-8".to_owned())),
        }
    }

    /// Whether the commit still has this blob for the file.
    fn is_at_head(&self, candidate: &CheckpointCandidate, id: &str) -> bool {
        candidate.nested.is_none() && self.blob_at_head(candidate).is_some_and(|blob| blob.to_string() == id)
    }

    fn git_of(&self, candidate: &CheckpointCandidate) -> Option<&GitState> {
        match candidate.nested {
            Some(number) => Some(&self.nested[number].git),
            None => self.git.as_ref(),
        }
    }

    fn blob_at_head(&self, candidate: &CheckpointCandidate) -> Option<ObjectId> {
        let git = self.git_of(candidate)?;
        if let Some(place) = candidate.place.filter(|place| git.head.has(*place)) {
            return Some(git.index.entries()[place].id);
        }
        let below = self.workspace.copy.below.as_ref();
        let key = match (candidate.nested, below) {
            (Some(number), _) => self.nested[number].name_inside(&candidate.path).to_owned(),
            (None, Some(below)) => format!("{below}/{}", candidate.path),
            (None, None) => candidate.path.clone(),
        };
        git.head.others.get(key.as_bytes()).map(|entry| entry.id)
    }

    /// The blob of the commit for a file, if it has the same content.
    fn committed_as(&self, candidate: &CheckpointCandidate, content: &[u8]) -> Option<ObjectId> {
        let git = self.git_of(candidate)?;
        let blob = self.blob_at_head(candidate)?;
        if let Some(place) = candidate.place.filter(|place| git.head.has(*place)) {
            // Usually the length decides. Git records no length for a file that it does not trust.
            let size = git.index.entries()[place].size();
            if size != 0 && size != content.len() as u32 {
                return None;
            }
        }
        let committed = git.objects.blob(&blob, content.len()).ok()??;
        (committed == content).then_some(blob)
    }

    /// Sends contents to the store that it does not have.
    fn store(&mut self, fresh: Vec<ReadCandidate>) -> Result<(), StoreError> {
        let held =
            |store: &dyn Store| fresh.iter().map(|fresh| store.has_version(&fresh.version)).collect::<Result<Vec<bool>, _>>();
        let held = self.workspace.ask(held)?;
        for (ReadCandidate { candidate, path, version, content }, is_held) in fresh.into_iter().zip(held) {
            if !is_held && self.content_use == ContentUse::Keep {
                self.workspace.record(StoreRecord::Kept { version, content: SharedBytes::new(content), at: now() });
            }
            let state = FileState::File { content: FileContent::Version(version), mode: candidate.mode, stamp: candidate.stamp };
            self.files.push(CheckpointFile { path, state });
        }
        Ok(())
    }

    fn leave(&mut self, path: &RelPath, why: String) -> FileState {
        self.not_kept.push(NotKept { path: path.to_string(), why });
        FileState::NotKept
    }
}

/// The metadata of a path, without following links.
pub(crate) fn lstat(workspace: &Workspace, path: &RelPath) -> rustix::io::Result<Stat> {
    let dir = workspace.root().open_parent(path)?;
    sys::statat(&dir, path.name(), AtFlags::SYMLINK_NOFOLLOW)
}

/// The bytes of a regular file up to the limit; `None` if there is none.
pub(crate) fn read_file(workspace: &Workspace, path: &RelPath, limit: u64) -> io::Result<Option<Vec<u8>>> {
    let opened = workspace.root().open_at(path.as_str(), OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY);
    let file = match opened {
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::NXIO) => return Ok(None),
        opened => std::fs::File::from(opened?),
    };
    let meta = file.metadata()?;
    if !meta.is_file() || meta.len() > limit {
        return Ok(None);
    }
    let mut content = Vec::with_capacity(meta.len() as usize + 1);
    file.take(limit.saturating_add(1)).read_to_end(&mut content)?;
    Ok((content.len() as u64 <= limit).then_some(content))
}

/// The order in which files are kept while there is room.
fn rank(candidate: &CheckpointCandidate) -> (bool, bool, u64, &str) {
    (candidate.nested.is_some(), candidate.is_ignored, candidate.stamp.size, &candidate.path)
}

/// The patterns of files that are never kept. Invalid patterns are ignored.
fn excluded(patterns: &[String]) -> ignore::gitignore::Gitignore {
    let mut builder = ignore::gitignore::GitignoreBuilder::new("");
    for pattern in patterns {
        let _ = builder.add_line(None, pattern);
    }
    builder.build().unwrap_or_else(|_| ignore::gitignore::Gitignore::empty())
}
