//! The state of the repository as sessions leave it: which files they touched and what became of them. It is kept in the state
//! directory, and a copy in `.surehand/repostate.json` is for other programs to read; that one is never read back. What is to be
//! done is kept in the store and shown with it.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    fs::File,
    time::Instant,
};

use serde::{Deserialize, Serialize};
use serde_json::json;
use surehand_core::{
    ContentHash, FileState, FileStatus, Notice, Outside, RelPath, RepoState, Stamp, Task, TaskStatus,
    kinds::type_of,
    outcome::{self, TouchedFile},
    state::{self, Millis},
};
use surehand_store::Plan;

use crate::{
    disk::{
        export::EXPORT_DIR,
        read::{Found, find, read_whole, stat_of_file},
        state::State,
        state_file::StateFile,
        walk::threads,
        working_copy::WorkingCopy,
    },
    index::Index,
    later,
    store_handle::StoreHandle,
    time::now,
    watch::{Cursor, Hints, Watch},
};

/// The name of the file, in the state directory and where other programs read it.
const NAME: &str = "repostate.json";

/// More than this is not written after every change, but a moment later.
const WRITTEN_AT_ONCE: usize = 256 << 10;

/// So many changes in a row are each written at once; in a longer burst they are written together, a moment later.
const BURST: f64 = 32.0;

/// How many changes a second are written at once for good.
const PACE: f64 = 20.0;

/// What the state of a repository is made from.
#[derive(Clone, Copy)]
pub(crate) struct RepoSources<'a> {
    /// The files, and the state directory.
    pub copy: &'a WorkingCopy,
    /// Knows what was touched and what there is to do.
    pub store: &'a StoreHandle,
    /// Names the files that may have changed, where the tree is watched.
    pub watch: Option<&'a Watch>,
}

impl RepoSources<'_> {
    /// What there is to do, as the store knows it now.
    fn plan(&self) -> Option<Plan> {
        self.store.ask(|store| store.plan()).ok()
    }
}

/// What is known of the files of a workspace.
#[derive(Debug)]
pub(crate) struct Repo {
    files: BTreeMap<RelPath, Tracked>,
    /// What was touched before the state was loaded, which is put off until it is needed; the last of each file.
    waiting: HashMap<RelPath, Did>,
    is_loaded: bool,
    plan: Plan,
    last_updated: Millis,
    /// The bytes of all entries.
    bytes: usize,
    file: StateFile,
    /// Whether the file on the disk is behind.
    is_behind: bool,
    /// How far we have heard the watcher.
    cursor: Option<Cursor>,
    /// What the last scan found, as long as that is the last one.
    index: Option<(Option<(u64, i64)>, Index)>,
    /// How many changes may still be written at once, when that was last asked.
    room: f64,
    asked: Instant,
    /// What we touched since we last wrote it: there nobody else knows better.
    ours: HashSet<RelPath>,
    /// Whether this process ends at once: then a large state is not loaded to be changed.
    pub(crate) is_passing_by: bool,
    /// Whether the copy for other programs could not be written the last time, which is told once.
    is_export_broken: bool,
    /// The way from the work tree to the root. Files are known by their paths in the tree, because all roots in it share what is
    /// written down; sessions name them by their paths in the root.
    below: Option<RelPath>,
}

#[derive(Debug)]
struct Tracked {
    state: FileState,
    stamp: Option<Stamp>,
    /// Its entry in the file, once that was needed.
    json: Option<String>,
}

/// About how many bytes an entry takes besides the path.
const ENTRY_BYTES: usize = 200;

/// What a tool did to a file.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Touch {
    path: RelPath,
    did: Did,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
enum Did {
    /// It was read, and found like this.
    Read { hash: ContentHash, size: u64, modified: Millis },
    /// It was found, made or left like this.
    Put { hash: ContentHash, stamp: Option<Box<Stamp>>, status: FileStatus },
    /// It had another name before, and was left like this.
    Move { from: RelPath, hash: ContentHash, stamp: Option<Box<Stamp>> },
    /// It was taken away.
    Delete,
}

impl Did {
    /// The same in little room, for the many files that a session may read: the store knows the rest of their stamps.
    fn in_short(self) -> Self {
        match self {
            Did::Put { hash, stamp: Some(stamp), status: FileStatus::Unchanged } => {
                Did::Read { hash, size: stamp.size, modified: millis(&stamp) }
            }
            as_it_is => as_it_is,
        }
    }
}

impl Touch {
    fn of(touched: TouchedFile, stamp_of: impl Fn(&RelPath) -> Option<Stamp>) -> Self {
        let (hash, status) = match touched.touch {
            outcome::FileTouch::Read(hash) => (hash, FileStatus::Unchanged),
            outcome::FileTouch::Created(hash) => (hash, FileStatus::Created),
            outcome::FileTouch::Modified(hash) => (hash, FileStatus::Modified),
            outcome::FileTouch::Moved(from, hash) => {
                let stamp = stamp_of(&touched.path).map(Box::new);
                return Self { path: touched.path, did: Did::Move { from, hash, stamp } };
            }
            outcome::FileTouch::Deleted => return Self { path: touched.path, did: Did::Delete },
        };
        let stamp = stamp_of(&touched.path).map(Box::new);
        Self { path: touched.path, did: Did::Put { hash, stamp, status } }
    }

    /// By its paths in the work tree.
    fn put_in(&mut self, below: Option<&RelPath>) {
        self.path = self.path.in_directory(below);
        if let Did::Move { from, .. } = &mut self.did {
            *from = from.in_directory(below);
        }
    }

    fn is_change(&self) -> bool {
        !matches!(self.did, Did::Read { .. } | Did::Put { status: FileStatus::Unchanged, .. })
    }
}

impl Repo {
    /// One that has not looked at anything yet.
    pub(crate) fn new(below: Option<RelPath>) -> Self {
        Self {
            below,
            is_export_broken: false,
            files: BTreeMap::new(),
            waiting: HashMap::new(),
            is_loaded: false,
            plan: Plan::default(),
            last_updated: now(),
            bytes: 0,
            file: StateFile::new(NAME),
            is_behind: false,
            cursor: None,
            index: None,
            room: BURST,
            asked: Instant::now(),
            ours: HashSet::new(),
            is_passing_by: false,
        }
    }

    /// Takes in what was done to files. Says whether one was changed.
    ///
    /// `stamp_of` gives what the system says about a file, for those that are there.
    pub(crate) fn take_touched(&mut self, touched: Vec<TouchedFile>, stamp_of: impl Fn(&RelPath) -> Option<Stamp>) -> bool {
        let mut touches: Vec<Touch> = touched.into_iter().map(|touched| Touch::of(touched, &stamp_of)).collect();
        touches.iter_mut().for_each(|touch| touch.put_in(self.below.as_ref()));
        let is_change = touches.iter().any(Touch::is_change);
        match self.is_loaded {
            true => touches.into_iter().for_each(|touch| self.take_in(touch)),
            false => self.waiting.extend(touches.into_iter().map(|touch| (touch.path, touch.did.in_short()))),
        }
        self.is_behind |= is_change;
        is_change
    }

    /// Notes that a file is not what the sessions saw.
    ///
    /// `stamp` is that of what it is now. Where it is not known, the file is only marked: hash, size and time are of one moment.
    pub(crate) fn changed_outside(&mut self, path: &RelPath, now_is: Outside, stamp: Option<Stamp>) {
        self.mark_changed(&path.in_directory(self.below.as_ref()), now_is, stamp);
    }

    fn mark_changed(&mut self, path: &RelPath, now_is: Outside, stamp: Option<Stamp>) {
        let Some(tracked) = self.files.get_mut(path) else { return };
        let mut state = FileState { changed_outside: true, ..tracked.state.clone() };
        match (now_is, stamp) {
            (Outside::Gone, _) => state.status = FileStatus::Deleted,
            (Outside::Version(hash), Some(stamp)) => {
                (state.hash, state.size, state.modified) = (hash, stamp.size, millis(&stamp));
                state.status = if state.status == FileStatus::Created { FileStatus::Created } else { FileStatus::Modified };
            }
            (Outside::Version(_), None) => {}
        }
        self.ours.insert(path.clone());
        self.put(state, stamp);
        self.is_behind = true;
    }

    /// The state as it is: files that are not what they were are looked at again.
    pub(crate) fn snapshot(&mut self, sources: &RepoSources<'_>) -> RepoState {
        self.load(sources);
        self.catch_up(sources);
        self.validate(sources);
        let untouched = self.untouched(sources.copy);
        RepoState {
            work_dir: sources.copy.root().path().display().to_string(),
            story_id: self.plan.story.clone(),
            files: self.files.values().filter_map(|tracked| in_root(sources.copy, &tracked.state)).collect(),
            untouched,
            tasks: self.plan.tasks.clone(),
            last_updated: self.last_updated,
        }
    }

    /// The files that the last scan found and that nobody touched, by directory.
    fn untouched(&mut self, copy: &WorkingCopy) -> Vec<(String, usize)> {
        let stamp = Index::stamp(copy);
        if self.index.as_ref().is_none_or(|(known, _)| *known != stamp) {
            // An index that cannot be read is as good as none.
            self.index = Index::load(copy).ok().map(|index| (stamp, index));
        }
        let Some((_, index)) = &self.index else { return Vec::new() };
        let mut counts = index.counts();
        let here = self.files.keys().filter_map(|path| copy.in_root(path));
        for path in here.filter(|path| index.known(path).is_some()) {
            let dir = path.parent().map_or_else(String::new, |parent| format!("{parent}/"));
            if let Ok(at) = counts.binary_search_by(|(known, _)| known.as_str().cmp(&dir)) {
                counts[at].1 = counts[at].1.saturating_sub(1);
            }
        }
        counts
    }

    /// Takes over what other processes have done since: one look at a counter, and one at the tasks.
    fn catch_up(&mut self, sources: &RepoSources<'_>) {
        if let Some(plan) = sources.plan().filter(|plan| *plan != self.plan) {
            self.set_plan(plan);
        }
        let Ok(dir) = sources.copy.state().dir() else { return };
        if !self.file.is_replaced(&dir) {
            return;
        }
        if let Some(theirs) = self.file.read(&dir).ok().flatten().as_deref().and_then(parse) {
            // What they have written down, we need not.
            let was_behind = self.is_behind;
            self.merge(theirs);
            self.is_behind = was_behind;
        }
    }

    /// Takes over what there is to do. It is written down with the next [`Repo::persist`].
    pub(crate) fn set_plan(&mut self, plan: Plan) {
        self.plan = plan;
        self.is_behind = true;
    }

    /// Writes the state down, unless it is so large or changes so fast that this is better done a moment later.
    pub(crate) fn persist_soon(&mut self, sources: &RepoSources<'_>) {
        if self.is_passing_by && !self.is_loaded && self.is_large(sources.copy) {
            return;
        }
        self.load(sources);
        if self.bytes <= WRITTEN_AT_ONCE && self.has_time() {
            self.persist(sources.copy.state(), &|| sources.plan());
        }
    }

    /// Whether there have been few enough changes lately to write each by itself.
    fn has_time(&mut self) -> bool {
        let now = Instant::now();
        self.room = (self.room + PACE * now.duration_since(self.asked).as_secs_f64()).min(BURST);
        self.asked = now;
        let has_time = self.room >= 1.0;
        self.room -= if has_time { 1.0 } else { 0.0 };
        has_time
    }

    /// Writes down what was only read, at the end of a process. A large state is not worth it.
    pub(crate) fn persist_reads(&mut self, sources: &RepoSources<'_>) {
        match (self.waiting.is_empty(), self.is_large(sources.copy)) {
            (true, _) => {}
            (false, false) => self.load(sources),
            (false, true) => self.leave_for_later(sources.copy),
        }
        self.persist(sources.copy.state(), &|| sources.plan());
    }

    /// Leaves what was changed to whoever loads the state next.
    fn leave_for_later(&mut self, copy: &WorkingCopy) {
        let touches = std::mem::take(&mut self.waiting).into_iter().map(|(path, did)| Touch { path, did });
        let changes: Vec<Touch> = touches.filter(Touch::is_change).collect();
        if !changes.is_empty() {
            let _ = copy.state().dir().and_then(|dir| later::add(&dir, &changes));
        }
    }

    fn is_large(&self, copy: &WorkingCopy) -> bool {
        copy.state().dir().is_ok_and(|dir| self.file.size(&dir) > WRITTEN_AT_ONCE as u64)
    }

    /// Writes the state down, if what is written is behind. That it could not be is told once.
    ///
    /// `plan` is asked while nobody else writes: whoever changes the plan writes it down after that, so the last one to write has the
    /// last one.
    pub(crate) fn persist(&mut self, state: &State, plan: &dyn Fn() -> Option<Plan>) {
        if state.is_read_only() || !self.is_loaded || !std::mem::take(&mut self.is_behind) {
            return;
        }
        self.last_updated = now();
        let Ok(dir) = state.dir() else { return };
        let mut file = std::mem::replace(&mut self.file, StateFile::new(NAME));
        let written = file.replace(&dir, |file, is_theirs| {
            if is_theirs && let Some(theirs) = file.read(&dir)?.as_deref().and_then(parse) {
                self.merge(theirs);
            }
            self.take_in_later(later::take(&dir));
            if let Some(plan) = plan() {
                self.plan = plan;
            }
            let content = self.write_out(state.work_dir());
            self.export(state, &dir, &content);
            Ok(content)
        });
        self.file = file;
        self.ours.clear();
        if let Err(error) = written {
            state.notify(Notice::NotRemembered { why: format!("repostate.json: {error}") });
        }
    }

    /// Gives other programs what was written down. Where `.surehand` is not ours to write into, they get nothing, and
    /// `surehand doctor` says so.
    fn export(&mut self, state: &State, dir: &File, content: &[u8]) {
        let put = state.export().put(dir, NAME, content);
        let was_broken = std::mem::replace(&mut self.is_export_broken, put.is_err());
        if let Err(error) = put
            && error.raw_os_error().is_some()
            && !was_broken
        {
            state.notify(Notice::NotRemembered { why: format!("{EXPORT_DIR}/{NAME}: {error}") });
        }
    }

    /// Brings in what another process has written, but for the files that we touched since.
    fn merge(&mut self, theirs: Vec<FileState>) {
        for state in theirs {
            if !self.ours.contains(&state.path) {
                self.put(state, None);
            }
        }
    }

    /// Loads what is written, once. What is damaged is made anew from the files.
    pub(crate) fn load(&mut self, sources: &RepoSources<'_>) {
        if std::mem::replace(&mut self.is_loaded, true) {
            return;
        }
        self.plan = sources.plan().unwrap_or_default();
        let dir = sources.copy.state().dir();
        let written = match &dir {
            Ok(dir) => self.file.read(dir),
            // There is no state yet.
            Err(_) => Ok(None),
        };
        match written.map(|content| content.map(|content| parse(&content))) {
            Ok(Some(Some(files))) => {
                let was_behind = self.is_behind;
                files.into_iter().for_each(|state| self.put(state, None));
                self.is_behind = was_behind;
            }
            Ok(None) => self.rebuild(sources),
            Ok(Some(None)) | Err(_) => {
                self.rebuild(sources);
                sources.copy.state().notify(Notice::RepoStateRebuilt);
            }
        }
        if let Ok(dir) = dir {
            self.take_in_later(later::read(&dir));
        }
        for (path, did) in std::mem::take(&mut self.waiting) {
            self.take_in(Touch { path, did });
        }
    }

    /// Takes in what others left, but for the files that we touched since.
    fn take_in_later(&mut self, touches: Vec<Touch>) {
        for touch in touches {
            if !self.ours.contains(&touch.path) {
                self.take_in(touch);
            }
        }
    }

    /// Makes the state anew from what the store knows was touched. What is on its way there is among what waits.
    fn rebuild(&mut self, sources: &RepoSources<'_>) {
        for (path, before) in sources.store.touched_in_tree() {
            let status = if before.is_some() { FileStatus::Modified } else { FileStatus::Created };
            match look(sources.copy, &path, None) {
                Some((hash, stamp)) => {
                    self.take_in(Touch { path, did: Did::Put { hash, stamp: Some(Box::new(stamp)), status } });
                }
                None => {
                    let Some(hash) = before else { continue };
                    self.take_in(Touch { path: path.clone(), did: Did::Put { hash, stamp: None, status } });
                    self.take_in(Touch { path, did: Did::Delete });
                }
            }
        }
        self.is_behind = true;
    }

    /// Looks at the files that may have changed: those that the watcher names, or all, whose stamp is not the one that it was.
    fn validate(&mut self, sources: &RepoSources<'_>) {
        let hints = match sources.watch {
            Some(watch) => watch.hints(self.cursor.get_or_insert_with(|| watch.cursor())),
            None => Hints::Everything,
        };
        if hints == Hints::Paths(Vec::new()) {
            return;
        }
        let is_hinted = |path: &RelPath| sources.copy.in_root(path).is_some_and(|path| hints.covers(&path));
        self.recall_stamps(sources, is_hinted);
        let hinted: Vec<(&RelPath, &Tracked)> = self.files.iter().filter(|(path, _)| is_hinted(path)).collect();
        let found = in_parallel(&hinted, |(path, tracked)| {
            let state = &tracked.state;
            match look(sources.copy, path, tracked.stamp.as_ref().map(|stamp| (state.hash, stamp))) {
                Some((hash, stamp)) if hash == state.hash && state.status != FileStatus::Deleted => {
                    Some(((*path).clone(), None, Some(stamp)))
                }
                Some((hash, stamp)) => Some(((*path).clone(), Some(Outside::Version(hash)), Some(stamp))),
                None if state.status == FileStatus::Deleted => None,
                None => Some(((*path).clone(), Some(Outside::Gone), None)),
            }
        });
        for (path, changed, stamp) in found.into_iter().flatten() {
            if let Some(now_is) = changed {
                self.mark_changed(&path, now_is, stamp);
            }
            if let (Some(stamp), Some(tracked)) = (stamp, self.files.get(&path)) {
                let is_news = tracked.stamp.is_none_or(|known| !known.agrees_with(&stamp));
                if is_news {
                    let state = FileState { size: stamp.size, modified: millis(&stamp), ..tracked.state.clone() };
                    self.put(state, Some(stamp));
                }
            }
        }
    }

    /// Asks the store for the stamps of files that were loaded without one, so that they need not be read.
    fn recall_stamps(&mut self, sources: &RepoSources<'_>, is_wanted: impl Fn(&RelPath) -> bool) {
        let lacks = |(path, tracked): &(&RelPath, &mut Tracked)| tracked.stamp.is_none() && is_wanted(path);
        let (paths, mut lacking): (Vec<RelPath>, Vec<&mut Tracked>) =
            self.files.iter_mut().filter(lacks).map(|(path, tracked)| (path.clone(), tracked)).unzip();
        for (tracked, known) in lacking.iter_mut().zip(sources.store.known_in_tree(&paths)) {
            tracked.stamp = known.filter(|known| known.version == tracked.state.hash).map(|known| known.stamp);
        }
    }

    fn take_in(&mut self, touch: Touch) {
        self.ours.insert(touch.path.clone());
        let known = self.files.get(&touch.path).map(|tracked| tracked.state.clone());
        let (hash, stamp, measures, status) = match touch.did {
            Did::Read { hash, size, modified } => (hash, None, Some((size, modified)), FileStatus::Unchanged),
            Did::Put { hash, stamp, status } => {
                let measures = stamp.as_ref().map(|stamp| (stamp.size, millis(stamp)));
                (hash, stamp.map(|stamp| *stamp), measures, status)
            }
            Did::Move { from, hash, stamp } => {
                let was_created = self.files.get(&from).is_some_and(|before| before.state.status == FileStatus::Created);
                let status = if was_created { FileStatus::Created } else { FileStatus::Modified };
                return self.take_in(Touch { path: touch.path, did: Did::Put { hash, stamp, status } });
            }
            Did::Delete => {
                if let Some(known) = known {
                    self.put(FileState { status: FileStatus::Deleted, modified: now(), changed_outside: false, ..known }, None);
                }
                return;
            }
        };
        let status = match (known.as_ref().map(|known| known.status), status) {
            (Some(FileStatus::Created), _) => FileStatus::Created,
            (Some(FileStatus::Modified | FileStatus::Deleted), _) => FileStatus::Modified,
            (Some(FileStatus::Unchanged), FileStatus::Unchanged) if known.as_ref().is_some_and(|known| known.hash != hash) => {
                FileStatus::Modified
            }
            (_, status) => status,
        };
        let measures = measures.or(known.map(|known| (known.size, known.modified)));
        let (size, modified) = measures.unwrap_or_else(|| (0, now()));
        self.put(FileState { path: touch.path, hash, size, modified, status, changed_outside: false }, stamp);
    }

    fn put(&mut self, state: FileState, stamp: Option<Stamp>) {
        match self.files.get_mut(&state.path) {
            Some(last) if last.state == state => last.stamp = stamp.or(last.stamp),
            Some(last) => {
                *last = Tracked { state, stamp, json: None };
                self.is_behind = true;
            }
            None => {
                self.bytes += state.path.as_str().len() + ENTRY_BYTES;
                self.files.insert(state.path.clone(), Tracked { state, stamp, json: None });
                self.is_behind = true;
            }
        }
    }

    /// The promised shape, put together from the entries: most of them are as they were.
    fn write_out(&mut self, work_dir: &str) -> Vec<u8> {
        let mut out = String::with_capacity(self.bytes + 2 * self.files.len() + 4096);
        out.push_str(&format!("{{\"work_dir\":{},\"story_id\":{},\"files\":[", json!(work_dir), json!(self.plan.story)));
        for (index, tracked) in self.files.values_mut().enumerate() {
            out.push_str(if index == 0 { "\n" } else { ",\n" });
            out.push_str(tracked.json.get_or_insert_with(|| json_of(&FileJson::of(&tracked.state))));
        }
        out.push_str("],\"open_tasks\":");
        out.push_str(&json_of(&open_tasks(&self.plan.tasks)));
        out.push_str(&format!(",\"last_updated\":\"{}\"}}\n", rfc3339(self.last_updated)));
        out.into_bytes()
    }
}

/// A file by its path in the root, if it is below that.
fn in_root(copy: &WorkingCopy, state: &FileState) -> Option<FileState> {
    Some(FileState { path: copy.in_root(&state.path)?.into_owned(), ..state.clone() })
}

/// A state in the shape and order in which it is promised to other programs.
#[derive(Serialize)]
struct StateJson<'a> {
    work_dir: &'a str,
    story_id: &'a str,
    files: Vec<FileJson<'a>>,
    open_tasks: Vec<TaskJson<'a>>,
    last_updated: String,
}

#[derive(Serialize)]
struct FileJson<'a> {
    path: &'a RelPath,
    hash: ContentHash,
    size: u64,
    mod_time: String,
    r#type: String,
    status: FileStatus,
    /// Whoever looks brings the hash up to date, so that only this still tells that no session has seen it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    changed_outside: bool,
}

#[derive(Serialize)]
struct TaskJson<'a> {
    description: &'a str,
    status: TaskStatus,
    priority: u32,
}

impl<'a> FileJson<'a> {
    fn of(state: &'a FileState) -> Self {
        let FileState { path, hash, size, modified, status, changed_outside } = state;
        let (mod_time, r#type) = (rfc3339(*modified), type_of(path));
        Self { path, hash: *hash, size: *size, mod_time, r#type, status: *status, changed_outside: *changed_outside }
    }
}

/// A state as other programs read it.
pub fn to_json(state: &RepoState) -> String {
    let written = StateJson {
        work_dir: &state.work_dir,
        story_id: &state.story_id,
        files: state.files.iter().map(FileJson::of).collect(),
        open_tasks: open_tasks(&state.tasks),
        last_updated: rfc3339(state.last_updated),
    };
    serde_json::to_string_pretty(&written).expect("a state is plain data") + "\n"
}

fn open_tasks(tasks: &[Task]) -> Vec<TaskJson<'_>> {
    let tasks = state::open_tasks(tasks).into_iter();
    tasks
        .map(|Task { description, status, priority, .. }| TaskJson { description, status: *status, priority: *priority })
        .collect()
}

fn json_of(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("a state is plain data")
}

/// A moment as programs read it.
pub fn rfc3339(millis: Millis) -> String {
    jiff::Timestamp::from_millisecond(millis).map(|moment| moment.to_string()).unwrap_or_default()
}

fn millis(stamp: &Stamp) -> Millis {
    stamp.modified / 1_000_000
}

/// The files of a written state; `None` when it is damaged.
fn parse(content: &[u8]) -> Option<Vec<FileState>> {
    #[derive(Deserialize)]
    struct Written {
        files: Vec<Entry>,
    }
    #[derive(Deserialize)]
    struct Entry {
        path: String,
        hash: String,
        size: u64,
        mod_time: String,
        status: FileStatus,
        #[serde(default)]
        changed_outside: bool,
    }
    let written: Written = serde_json::from_slice(content).ok()?;
    let state = |entry: Entry| {
        Some(FileState {
            path: RelPath::new(&entry.path).ok()?,
            hash: entry.hash.parse().ok()?,
            size: entry.size,
            modified: entry.mod_time.parse::<jiff::Timestamp>().ok()?.as_millisecond(),
            status: entry.status,
            changed_outside: entry.changed_outside,
        })
    };
    written.files.into_iter().map(state).collect()
}

/// Looks at many files, on all processors if there are enough of them.
fn in_parallel<T: Sync, R: Send>(items: &[T], look: impl Fn(&T) -> R + Sync) -> Vec<R> {
    const FEW: usize = 500;
    let threads = if items.len() < FEW { 1 } else { threads() };
    let part = items.len().div_ceil(threads).max(1);
    std::thread::scope(|scope| {
        let parts: Vec<_> = items.chunks(part).skip(1).map(|part| scope.spawn(|| part.iter().map(&look).collect())).collect();
        let mut found: Vec<R> = items.iter().take(part).map(&look).collect();
        for part in parts {
            found.extend(part.join().unwrap_or_else(|panic| -> Vec<R> { std::panic::resume_unwind(panic) }));
        }
        found
    })
}

/// What a file holds now and what the system says about it; opened and read only if the stamp does not tell. `None` when it is gone.
fn look(copy: &WorkingCopy, path: &RelPath, known: Option<(ContentHash, &Stamp)>) -> Option<(ContentHash, Stamp)> {
    if let (Some((hash, known)), Some(stat)) = (known.filter(|(_, known)| !known.is_racy()), stat_of_file(copy.tree(), path)) {
        let stamp = copy.clock().stamp(&stat);
        if known.agrees_with(&stamp) {
            return Some((hash, stamp));
        }
    }
    let Ok(Found::File { mut file, .. }) = find(copy.tree(), path) else { return None };
    let now = read_whole(path, &mut file, u64::MAX, copy.clock()).ok()?;
    Some((ContentHash::of(&now.bytes), now.stamp))
}
