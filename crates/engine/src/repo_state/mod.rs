//! The state of the repository: touched files with their status, and tasks. The store holds it, and all processes share
//! it. Each process keeps a copy in memory, updates it when another process has changed something, and exports it to
//! `.surehand/repostate.json`. That file is an output; Surehand never trusts it.

mod file_check;
mod file_count;
mod json;
mod store;

use std::{
    collections::{BTreeMap, HashSet},
    fs::File,
    hash::{DefaultHasher, Hash, Hasher},
    io,
    sync::Arc,
    time::{Duration, Instant},
};

use surehand_core::{
    ContentHash, FileList, FileRecord, FileState, FileStatus, Notice, OutsideState, RelPath, RepoState, Stamp, TaskList,
    TaskOwner, Touch, outcome::TouchedFile, timestamp::Millis,
};
use surehand_store::{KnownFile, StoreError, StoreRecord, StoreTurn, StoryTasks, TrackedFile, TrackedFiles};

pub use self::json::to_json;
pub(crate) use self::{
    file_check::check_file,
    store::{RepoStore, WritersStore},
};
use self::{
    file_check::in_parallel,
    file_count::{FileCount, TouchedPaths, UntouchedFiles},
    json::{FileJson, json_of, named_paths, put_together},
};
use crate::{
    disk::{
        change_counter::{ChangeCounter, ChangeCounterFile, LockedCounter},
        export_dir::EXPORT_DIR,
        working_copy::WorkingCopy,
    },
    scan_index::ScanIndex,
    time::now,
    watch::{FileWatcher, HintCursor, WatchHints},
};
pub use surehand_core::timestamp::rfc3339;

const NAME: &str = "repostate.json";

/// A larger file is not written after every change, but after a short delay.
const WRITTEN_AT_ONCE: usize = 256 << 10;

/// The number of changes in a row that are each exported at once. In a longer burst, they are exported together after a
/// short delay.
const BURST: f64 = 32.0;

/// The number of changes per second that can each be exported at once indefinitely.
const PACE: f64 = 20.0;

/// How long to wait for another process to export. It takes less than a millisecond, unless that process is suspended.
const PATIENCE: Duration = Duration::from_secs(1);

#[derive(Clone, Copy)]
pub(crate) struct RepoSources<'a> {
    pub copy: &'a WorkingCopy,
    /// The touched files and the tasks.
    pub store: &'a dyn RepoStore,
    /// The files that may have changed, if the tree is watched.
    pub watch: Option<&'a FileWatcher>,
}

/// Selects tasks; by default all tasks of the current story, as a person sees them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TaskScope {
    /// The owner of the tasks.
    pub owner: Option<TaskOwner>,
    /// The story, if not the current one.
    pub story: Option<String>,
}

impl TaskScope {
    /// The tasks of any session: all sessions share one list.
    pub fn of_any_session() -> Self {
        Self { owner: Some(TaskOwner::Session(String::new())), story: None }
    }
}

/// Whether the store already has an event for a touch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TouchSource {
    /// Yes, if the touch is a change.
    Event,
    NoEvent,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExportPace {
    Now,
    /// At once if the file is small and changes are rare, otherwise after a short delay.
    InTime,
    /// Like `InTime`, but before the replies to a group of calls are sent.
    WithReplies,
}

/// The files of a workspace as this process knows them.
#[derive(Debug)]
pub(crate) struct RepoStateCache {
    files: BTreeMap<RelPath, RepoEntry>,
    tasks: StoryTasks,
    /// The turn up to which the store was read; `None` before the first read.
    read_to: Option<StoreTurn>,
    /// The generation of the copy in memory.
    generation: u64,
    /// How often this process had announced its own reads when `generation` was read.
    announced: u64,
    generation_file: Option<Arc<ChangeCounterFile>>,
    /// Whether the store has records that are not in memory, even if the generation is equal.
    is_stale: bool,
    is_behind: bool,
    /// Whether replies wait for an export.
    is_export_due: bool,
    last_updated: Millis,
    bytes: usize,
    /// Digests of path and version of the reads that are in the store.
    recorded_reads: HashSet<u64>,
    cursor: Option<HintCursor>,
    /// The index of the last scan, with its stamp.
    index: Option<(Option<(u64, i64)>, ScanIndex)>,
    /// The list that was last returned; `None` after a change.
    listed: Option<Arc<FileList>>,
    /// The result of counting the files, if they were counted.
    census: Option<FileCount>,
    /// The number of changes that may still be exported at once, as of the last check.
    room: f64,
    asked: Instant,
    /// Whether this process answers one call and exits. In that case, a large state is not loaded only to be updated.
    pub(crate) is_passing_by: bool,
    /// Whether the last export failed. The failure is reported once.
    is_export_broken: bool,
    /// The path from the work tree to the root. Files are stored by their paths in the tree, because all roots in it
    /// share one export. Sessions use paths in the root.
    below: Option<RelPath>,
}

#[derive(Debug)]
struct RepoEntry {
    state: FileState,
    at: Millis,
    stamp: Option<Stamp>,
    /// The exported form, once an export needed it.
    json: Option<String>,
}

impl RepoEntry {
    fn tracked(&self) -> FileRecord {
        let FileState { hash, status, changed_outside, .. } = self.state;
        FileRecord { version: hash, status, changed_outside, at: self.at }
    }

    /// Whether size and modification time of the file are known.
    fn is_measured(&self) -> bool {
        self.stamp.is_some() || self.state.status == FileStatus::Deleted
    }
}

/// The approximate size of an entry in bytes, without the path.
const ENTRY_BYTES: usize = 200;

impl RepoStateCache {
    pub(crate) fn new(below: Option<RelPath>) -> Self {
        Self {
            files: BTreeMap::new(),
            tasks: StoryTasks::default(),
            read_to: None,
            generation: 0,
            announced: 0,
            generation_file: None,
            is_stale: false,
            is_behind: false,
            is_export_due: false,
            last_updated: now(),
            bytes: 0,
            recorded_reads: HashSet::new(),
            cursor: None,
            index: None,
            listed: None,
            census: None,
            room: BURST,
            asked: Instant::now(),
            is_passing_by: false,
            is_export_broken: false,
            below,
        }
    }

    /// Records touches of files. Returns whether one of them was a change.
    ///
    /// `stamp_of` returns the stamp of a file, if it exists.
    pub(crate) fn take_touched(
        &mut self,
        store: &dyn RepoStore,
        touched: Vec<TouchedFile>,
        source: TouchSource,
        stamp_of: impl Fn(&RelPath) -> Option<Stamp>,
    ) -> bool {
        let mut is_change = false;
        for TouchedFile { path, touch } in touched {
            is_change |= touch.is_change();
            let is_news = match touch {
                Touch::Read(version) => self.recorded_reads.insert(digest(&path, version)),
                _ => source == TouchSource::NoEvent,
            };
            let (at, stamp) = (now(), stamp_of(&path));
            if is_news {
                store.record(StoreRecord::Touched { path: path.clone(), touch: touch.clone(), at });
            }
            self.apply_touch(&path.in_directory(self.below.as_ref()), &self.in_tree(touch), at, stamp);
        }
        is_change
    }

    /// Records that a file differs from the version that the sessions saw. `stamp` is that of the current file, if
    /// known.
    pub(crate) fn changed_outside(&mut self, store: &dyn RepoStore, path: &RelPath, now_is: OutsideState, stamp: Option<Stamp>) {
        let in_tree = path.in_directory(self.below.as_ref());
        if self.read_to.is_some() && self.next(&in_tree, &Touch::Outside(now_is), now()).is_none() {
            return;
        }
        self.mark_changed(store, path, now_is, stamp);
        if stamp.is_none() && now_is != OutsideState::Gone {
            // Hash, size and time of an entry must belong to one version, so the entry is read from the store, which
            // has all three.
            self.is_stale = true;
        } else {
            self.apply_touch(&in_tree, &Touch::Outside(now_is), now(), stamp);
        }
    }

    fn mark_changed(&mut self, store: &dyn RepoStore, path: &RelPath, now_is: OutsideState, stamp: Option<Stamp>) {
        if let OutsideState::Version(version) = now_is {
            self.recorded_reads.remove(&digest(path, version));
            if let Some(stamp) = stamp {
                store.record(StoreRecord::Found { path: path.clone(), file: KnownFile { version, stamp } });
            }
        }
        store.record(StoreRecord::Touched { path: path.clone(), touch: Touch::Outside(now_is), at: now() });
    }

    /// Marks the copy as out of date: the store has records that are not in memory.
    pub(crate) fn mark_stale(&mut self) {
        self.is_stale = true;
    }

    /// The current state for this scope. Files that may have changed are checked first.
    pub(crate) fn snapshot(&mut self, sources: &RepoSources<'_>, scope: &TaskScope) -> RepoState {
        if let Err(error) = self.load(sources).and_then(|()| self.catch_up(sources, self.look_at_generation(sources.copy))) {
            sources.copy.state.notify(Notice::NotRemembered { why: error.to_string() });
        }
        self.validate(sources);
        RepoState {
            work_dir: sources.copy.root().path().display().to_string(),
            files: self.list(sources.copy),
            tasks: self.tasks(sources, scope),
            last_updated: self.last_updated,
        }
    }

    /// The tasks for this scope. Those of the current story are in memory.
    fn tasks(&self, sources: &RepoSources<'_>, scope: &TaskScope) -> TaskList {
        let other = scope.story.as_ref().filter(|story| **story != self.tasks.story);
        let plan = other.and_then(|story| sources.store.story_tasks(Some(story)).ok()).unwrap_or_else(|| self.tasks.clone());
        TaskList::of(scope.story.as_ref().unwrap_or(&plan.story), plan.tasks, scope.owner.as_ref())
    }

    /// The files of the root. The list is built again only if an entry has changed.
    fn list(&mut self, copy: &WorkingCopy) -> Arc<FileList> {
        self.look_at_index(copy);
        // Files that were counted and never touched are checked on every call.
        let listed = self.listed.take().filter(|_| self.census.as_ref().is_none_or(|census| !census.is_few()));
        let list = listed.unwrap_or_else(|| {
            let touched = self.files.values().filter_map(|entry| in_root(copy, &entry.state)).collect();
            let UntouchedFiles { counts, few } = self.untouched(copy);
            Arc::new(FileList::new(touched, counts, few))
        });
        self.listed.insert(list).clone()
    }

    /// Counts the files of the tree, which takes a walk.
    pub(crate) fn count_files(&mut self, copy: &WorkingCopy) -> io::Result<()> {
        self.census = Some(FileCount::take(copy)?);
        self.listed = None;
        Ok(())
    }

    /// The counted or scanned files that no session has touched.
    fn untouched(&mut self, copy: &WorkingCopy) -> UntouchedFiles {
        let touched = TouchedPaths { copy, files: &self.files };
        if let Some(census) = &mut self.census {
            return UntouchedFiles::of_census(census, &touched);
        }
        self.index.as_ref().map(|(_, index)| UntouchedFiles::of_index(index, &touched)).unwrap_or_default()
    }

    /// Loads the index of the last scan, if it is new.
    fn look_at_index(&mut self, copy: &WorkingCopy) {
        let stamp = ScanIndex::stamp(copy);
        if self.index.as_ref().is_none_or(|(known, _)| *known != stamp) {
            // An unreadable index counts as missing.
            self.index = ScanIndex::load(copy).ok().map(|index| (stamp, index));
            self.listed = None;
        }
    }

    pub(crate) fn load(&mut self, sources: &RepoSources<'_>) -> Result<(), StoreError> {
        if self.read_to.is_some() {
            return Ok(());
        }
        let generation = self.look_at_generation(sources.copy);
        self.is_stale = true;
        self.catch_up(sources, generation)?;
        // A state just read from the store has been exported, unless its process was interrupted.
        self.is_behind = generation.exported != generation.changed;
        if self.files.is_empty() {
            self.rebuild(sources);
        }
        Ok(())
    }

    /// Reads records of the store that are not in memory. If no process has changed anything, this only compares a
    /// number.
    fn catch_up(&mut self, sources: &RepoSources<'_>, generation: ChangeCounter) -> Result<(), StoreError> {
        if !self.is_stale && self.is_current(sources.copy, generation) {
            return Ok(());
        }
        let announced = sources.copy.state.own_announcements();
        sources.store.import_acknowledged();
        self.tasks = sources.store.story_tasks(None)?;
        let TrackedFiles { files, turn } = sources.store.tracked(self.read_to)?;
        for TrackedFile { path, tracked, stamp } in files {
            self.put_file(path, tracked, stamp);
        }
        (self.read_to, self.is_stale) = (Some(turn), false);
        (self.generation, self.announced) = (generation.changed, announced);
        self.look_at_files(sources, |_, entry| !entry.is_measured());
        Ok(())
    }

    /// Whether memory is up to date: since the last check, no other process has announced changes.
    fn is_current(&mut self, copy: &WorkingCopy, generation: ChangeCounter) -> bool {
        let announced = copy.state.own_announcements();
        let is_current = generation.changed == self.generation.wrapping_add(announced - self.announced);
        if is_current {
            (self.generation, self.announced) = (generation.changed, announced);
        }
        is_current
    }

    fn look_at_generation(&self, copy: &WorkingCopy) -> ChangeCounter {
        copy.state.dir().map(|dir| ChangeCounter::load(&dir)).unwrap_or_default()
    }

    /// Rebuilds the state if the store was lost: it is empty, but an exported file exists. That file names the files to
    /// check; how they were touched is lost.
    fn rebuild(&mut self, sources: &RepoSources<'_>) {
        let state = &sources.copy.state;
        let Ok(exported) = state.dir().and_then(|dir| state.export.read_back(&dir, NAME)) else { return };
        let in_root = named_paths(&exported).into_iter().filter(|path| sources.copy.in_root(path).is_some());
        let existing: Vec<_> =
            in_root.filter_map(|path| check_file(sources.copy, &path, None).map(|found| (path, found))).collect();
        if existing.is_empty() {
            return;
        }
        for (path, (version, stamp)) in existing {
            let Some(in_root) = sources.copy.in_root(&path) else { continue };
            self.mark_changed(sources.store, &in_root, OutsideState::Version(version), Some(stamp));
            self.apply_touch(&path, &Touch::Outside(OutsideState::Version(version)), now(), Some(stamp));
        }
        state.notify(Notice::RepoStateRebuilt);
    }

    /// Announces a change to other processes, and exports it.
    pub(crate) fn announce(&mut self, sources: &RepoSources<'_>, pace: ExportPace) -> Result<(), ExportError> {
        let state = &sources.copy.state;
        let (false, Ok(dir)) = (state.is_read_only(), state.dir()) else { return Ok(()) };
        self.is_behind = true;
        let is_left_to_others = self.is_passing_by && self.read_to.is_none() && self.is_large(sources.copy);
        if !is_left_to_others {
            self.load(sources)?;
        }
        let file = self.generation_file(&dir)?;
        let Some(mut held) = file.hold(PATIENCE)? else { return Err(ExportError::Busy) };
        self.is_stale |= !self.is_current(sources.copy, held.now());
        held.advance();
        self.generation = held.now().changed;
        match pace {
            _ if is_left_to_others => Ok(()),
            ExportPace::WithReplies => {
                self.is_export_due = true;
                Ok(())
            }
            ExportPace::InTime if !self.may_export_at_once() => Ok(()),
            ExportPace::InTime | ExportPace::Now => self.export(sources, &dir, held),
        }
    }

    /// Exports the changes of a group of calls before their replies are sent.
    pub(crate) fn export_for_replies(&mut self, sources: &RepoSources<'_>) -> Result<(), ExportError> {
        let is_due = std::mem::take(&mut self.is_export_due);
        if is_due && self.may_export_at_once() { self.persist(sources) } else { Ok(()) }
    }

    /// Whether the file is small, and changes have been rare lately.
    fn may_export_at_once(&mut self) -> bool {
        self.bytes <= WRITTEN_AT_ONCE && self.has_time()
    }

    fn generation_file(&mut self, dir: &Arc<File>) -> io::Result<Arc<ChangeCounterFile>> {
        let file = match self.generation_file.take().filter(|file| file.is_in(dir)) {
            Some(file) => file,
            None => Arc::new(ChangeCounterFile::open(dir)?),
        };
        Ok(self.generation_file.insert(file).clone())
    }

    /// Exports the state, if the exported file is out of date.
    pub(crate) fn persist(&mut self, sources: &RepoSources<'_>) -> Result<(), ExportError> {
        let state = &sources.copy.state;
        let (false, Some(_), Ok(dir)) = (state.is_read_only(), self.read_to, state.dir()) else { return Ok(()) };
        let generation = ChangeCounter::load(&dir);
        if !self.is_behind && generation.exported == generation.changed {
            return Ok(());
        }
        let file = self.generation_file(&dir)?;
        match file.hold(PATIENCE)? {
            Some(held) => self.export(sources, &dir, held),
            None => Err(ExportError::Busy),
        }
    }

    /// Whether [`RepoStateCache::persist`] would first have to read from the store.
    pub(crate) fn is_stale(&mut self, copy: &WorkingCopy) -> bool {
        self.is_stale || !self.is_current(copy, self.look_at_generation(copy))
    }

    /// Exports the state of all processes. If `.surehand` cannot be written, nothing is exported, and `surehand doctor`
    /// reports it.
    fn export(&mut self, sources: &RepoSources<'_>, dir: &File, mut held: LockedCounter<'_>) -> Result<(), ExportError> {
        self.catch_up(sources, held.now())?;
        self.last_updated = now();
        let state = &sources.copy.state;
        for entry in self.files.values_mut().filter(|entry| entry.json.is_none()) {
            entry.json = Some(json_of(&FileJson::of(&entry.state)));
        }
        let entries = self.files.values().filter_map(|entry| entry.json.as_deref());
        let content = put_together(&state.work_dir, &self.tasks(sources, &TaskScope::default()), entries, self.last_updated);
        let put = state.export.put(dir, NAME, &content);
        let was_broken = std::mem::replace(&mut self.is_export_broken, put.is_err());
        held.mark_exported();
        self.is_behind = false;
        match put {
            Err(error) if error.raw_os_error().is_some() && !was_broken => Err(ExportError::Export(error)),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// Whether changes have been rare enough lately to export each one.
    fn has_time(&mut self) -> bool {
        let now = Instant::now();
        self.room = (self.room + PACE * now.duration_since(self.asked).as_secs_f64()).min(BURST);
        self.asked = now;
        let has_time = self.room >= 1.0;
        self.room -= if has_time { 1.0 } else { 0.0 };
        has_time
    }

    fn is_large(&self, copy: &WorkingCopy) -> bool {
        copy.state.export.size(NAME) > WRITTEN_AT_ONCE as u64
    }

    /// Checks the files that the watcher reports, or all files with a changed stamp.
    fn validate(&mut self, sources: &RepoSources<'_>) {
        let hints = match sources.watch {
            Some(watch) => watch.hints(self.cursor.get_or_insert_with(|| watch.cursor())),
            None => WatchHints::Everything,
        };
        if hints != WatchHints::Paths(Vec::new()) {
            self.look_at_files(sources, |path, _| hints.covers(path));
        }
    }

    fn look_at_files(&mut self, sources: &RepoSources<'_>, is_wanted: impl Fn(&RelPath, &RepoEntry) -> bool) {
        let is_wanted =
            |(path, entry): &(&RelPath, &RepoEntry)| sources.copy.in_root(path).is_some_and(|path| is_wanted(&path, entry));
        let wanted: Vec<(&RelPath, &RepoEntry)> = self.files.iter().filter(is_wanted).collect();
        let found = in_parallel(&wanted, |(path, entry)| {
            let known = entry.stamp.as_ref().map(|stamp| (entry.state.hash, stamp));
            let found = check_file(sources.copy, path, known);
            let is_deleted = entry.state.status == FileStatus::Deleted;
            let is_as_known = match &found {
                Some((_, stamp)) => !is_deleted && entry.stamp.is_some_and(|known| !known.is_racy() && known.agrees_with(stamp)),
                None => is_deleted,
            };
            (!is_as_known).then(|| ((*path).clone(), found))
        });
        for (path, found) in found.into_iter().flatten() {
            let now_is = found.map_or(OutsideState::Gone, |(version, _)| OutsideState::Version(version));
            let stamp = found.map(|(_, stamp)| stamp);
            if self.next(&path, &Touch::Outside(now_is), now()).is_some()
                && let Some(in_root) = sources.copy.in_root(&path)
            {
                self.mark_changed(sources.store, &in_root, now_is, stamp);
            }
            self.apply_touch(&path, &Touch::Outside(now_is), now(), stamp);
        }
    }

    /// The record of a file after a touch.
    fn next(&self, path: &RelPath, touch: &Touch, at: Millis) -> Option<FileRecord> {
        let known = |path: &RelPath| self.files.get(path).map(RepoEntry::tracked);
        FileRecord::after(known(path), touch, at, known)
    }

    /// Applies a touch to the copy in memory, if that is loaded.
    fn apply_touch(&mut self, path: &RelPath, touch: &Touch, at: Millis, stamp: Option<Stamp>) {
        if self.read_to.is_none() {
            return;
        }
        let known = self.files.get(path).map(RepoEntry::tracked);
        match (self.next(path, touch, at).or(known), stamp) {
            (Some(next), stamp) if Some(next) != known || stamp.is_some() => self.put_file(path.clone(), next, stamp),
            _ => {}
        }
    }

    fn put_file(&mut self, path: RelPath, tracked: FileRecord, stamp: Option<Stamp>) {
        let FileRecord { version: hash, status, changed_outside, at } = tracked;
        let before = self.files.get_mut(&path);
        let same = before.as_ref().filter(|before| before.state.hash == hash);
        let stamp = stamp.or(same.and_then(|before| before.stamp));
        let (size, modified) = match (status, stamp, &before) {
            (FileStatus::Deleted, _, Some(before)) => (before.state.size, at),
            (_, Some(stamp), _) => (stamp.size, if status == FileStatus::Deleted { at } else { stamp.modified / 1_000_000 }),
            (_, None, Some(before)) if before.state.hash == hash => (before.state.size, before.state.modified),
            (_, None, _) => (0, at),
        };
        let state = FileState { path, hash, size, modified, status, changed_outside };
        match before {
            Some(before) if before.state == state => (before.at, before.stamp) = (at, stamp),
            Some(before) => {
                *before = RepoEntry { state, at, stamp, json: None };
                (self.is_behind, self.listed) = (true, None);
            }
            None => {
                self.bytes += state.path.as_str().len() + ENTRY_BYTES;
                self.files.insert(state.path.clone(), RepoEntry { state, at, stamp, json: None });
                (self.is_behind, self.listed) = (true, None);
            }
        }
    }

    fn in_tree(&self, touch: Touch) -> Touch {
        match touch {
            Touch::Moved { from, to } => Touch::Moved { from: from.in_directory(self.below.as_ref()), to },
            touch => touch,
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum ExportError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("{NAME}: {0}")]
    State(#[from] std::io::Error),
    #[error("{EXPORT_DIR}/{NAME}: {0}")]
    Export(std::io::Error),
    #[error("{EXPORT_DIR}/{NAME}: another process has locked it and does not finish; is that process suspended?")]
    Busy,
}

/// A file by its path in the root, if it is below the root.
fn in_root(copy: &WorkingCopy, state: &FileState) -> Option<FileState> {
    Some(FileState { path: copy.in_root(&state.path)?.into_owned(), ..state.clone() })
}

fn digest(path: &RelPath, version: ContentHash) -> u64 {
    let mut hasher = DefaultHasher::new();
    (path.as_str(), version.as_bytes()).hash(&mut hasher);
    hasher.finish()
}
