//! A session is one model's context window. It collects the present content of files and the model's views of them, and
//! records the result of each call.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use surehand_core::{
    Cause, ChangedFile, ContentHash, Done, Edit, KnownLines, Limits, LineMap, LineSet, Outcome, OutsideState, Policy, Present,
    Refusal, RefusalCode, RelPath, RepoState, Target, TaskOwner, Text, ToolNames, Touch, View,
    instructions::{ToldInstructions, is_about_to_work},
    outcome::{RefusedOutcome, SearchArea, TouchedFile},
    render,
};
use surehand_store::SessionId;

use crate::{
    call_progress::CallProgress,
    disk::walk::{PathTarget, path_target},
    file_cache::{FileCache, GatheredFile},
    file_tracker::FileTracker,
    instructions::{self, InstructionCache},
    random::random,
    repo_state::{TaskScope, TouchSource},
    stale_views::{StaleView, StaleViews, ViewSources, author_of},
    time::now,
    watch::{HintCursor, WatchHints},
    workspace::Workspace,
};

/// One model's context window in a workspace.
#[derive(Debug)]
pub struct Session {
    pub(crate) workspace: Arc<Workspace>,
    pub(crate) tracker: Option<FileTracker>,
    pub(crate) files: FileCache,
    pub(crate) instructions: InstructionCache,
    /// Its position in the hints of the watcher.
    cursor: Option<HintCursor>,
    stale_views: StaleViews,
    /// The tasks that it works on.
    scope: TaskScope,
    /// The progress of the present call.
    pub(crate) progress: CallProgress,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PlanBasis<'a> {
    Disk,
    /// For what was there before another program made the edit: what the session takes to be there, or these.
    Before(&'a [BaseVersion]),
}

/// The version of a file before another program changed it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct BaseVersion {
    pub path: RelPath,
    /// What it held; it is in the store.
    pub version: ContentHash,
}

impl Session {
    /// A new session with a tracker of its own.
    pub fn new(workspace: Arc<Workspace>) -> Self {
        Self::tracked_by(workspace, FileTracker::new(fresh_id()))
    }

    /// A session that continues in another process under its old name: one context window, several calls. A client that
    /// resumes an old conversation starts a new session, because its context has changed.
    pub fn continued(workspace: Arc<Workspace>, id: SessionId) -> Self {
        Self::tracked_by(workspace, FileTracker::continued(id))
    }

    /// A session that several processes share at the same time, such as an agent's hooks and its server. Each call reads the
    /// views from the store and writes them back before it ends.
    pub fn shared(workspace: Arc<Workspace>, id: SessionId) -> Self {
        Self::tracked_by(workspace, FileTracker::shared(id))
    }

    /// A session with this tracker.
    pub fn tracked_by(workspace: Arc<Workspace>, tracker: FileTracker) -> Self {
        let (files, scope) = (FileCache::of(tracker.session().clone()), scope_of(tracker.session()));
        Self { tracker: Some(tracker), files, scope, ..Self::untracked(workspace) }
    }

    /// A session without a tracker: nothing is refused as unread or stale. Writes are as safe as ever.
    pub fn untracked(workspace: Arc<Workspace>) -> Self {
        let id = fresh_id();
        let (scope, files) = (scope_of(&id), FileCache::of(id));
        let (instructions, stale_views) = (InstructionCache::default(), StaleViews::default());
        Self {
            workspace,
            tracker: None,
            files,
            instructions,
            cursor: None,
            stale_views,
            scope,
            progress: CallProgress::default(),
        }
    }

    /// The workspace.
    pub fn workspace(&self) -> &Arc<Workspace> {
        &self.workspace
    }

    /// The tracker, if there is one.
    pub fn tracker(&mut self) -> Option<&mut FileTracker> {
        self.tracker.as_mut()
    }

    /// The view of a file, if there is one.
    pub fn view_of(&mut self, path: &RelPath) -> Option<View> {
        self.tracker.as_mut()?.view(&self.workspace, path)
    }

    /// Forgets everything that was seen, as after a reset of the context.
    pub fn reset(&mut self) {
        if let Some(tracker) = &mut self.tracker {
            tracker.clear_session(&self.workspace);
        }
        self.instructions.forget();
        self.flush_if_shared();
    }

    /// A call begins. What others have put into the store for this session since the last one counts.
    pub(crate) fn begin_call(&mut self, progress: &CallProgress) {
        self.progress = progress.clone();
        if let Some(tracker) = &mut self.tracker {
            tracker.reload_if_shared();
        }
    }

    /// Writes the views of a shared session to the store before the call ends.
    fn flush_if_shared(&self) {
        if self.tracker.as_ref().is_some_and(FileTracker::is_shared) {
            self.workspace.flush();
        }
    }

    /// The instructions for work on a file or in a directory that this session does not have yet: `AGENTS.md` there and in
    /// the parents, parents first, each once. A caller that wants them in the system prompt instead of at the end of replies
    /// asks here before the call. If they exceed the budget, the next question returns the rest.
    pub fn agents_md_if_new(&mut self, path: &str) -> Option<String> {
        self.instructions_if_new(path).map(|told| render::instructions::instructions(&told, &ToolNames::default()))
    }

    /// [`Session::agents_md_if_new`] as a value.
    pub fn instructions_if_new(&mut self, path: &str) -> Option<ToldInstructions> {
        let directory = match path_target(self.workspace.root(), path) {
            Ok(PathTarget::Dir(directory)) => directory,
            // Also where there is no file yet.
            Ok(PathTarget::File(_)) | Err(_) => self.path_of(path).ok()?.parent(),
        };
        self.take_hints(&[]);
        self.take_instructions(&[directory])
    }

    /// Counts an edit that [`Session::plan`] has refused. The lines that the refusal shows count as seen from here on.
    pub fn refused(&mut self, edit: &Edit, refusal: Refusal) -> Outcome {
        self.refuse(edit, refusal)
    }

    pub(crate) fn refuse(&mut self, call: &impl Serialize, refusal: Refusal) -> Outcome {
        self.begin_call(&CallProgress::default());
        self.finish_call(call, Err(refusal))
    }

    /// A call ends: records what came of it, and finds out what else there is to say. `call` is what a repetition is known by.
    pub(crate) fn finish_call(&mut self, call: &impl Serialize, result: Result<Done, Refusal>) -> Outcome {
        let directories = directories(&result);
        self.finish_call_in(&directories, call, result)
    }

    /// [`Session::finish_call`] with the instructions for these directories.
    pub(crate) fn finish_call_in(
        &mut self,
        directories: &[Option<RelPath>],
        call: &impl Serialize,
        result: Result<Done, Refusal>,
    ) -> Outcome {
        let mut outcome = Outcome::new(result.map_err(|refusal| self.record_refusal(call, refusal)));
        self.record(&outcome);
        self.take_hints(&outcome.paths());
        outcome.notes.instructions = self.take_instructions(directories);
        outcome.notes.changed_elsewhere = self.changed_elsewhere(&outcome);
        outcome.notes.warnings = self.workspace.take_notices();
        self.flush_if_shared();
        outcome
    }

    /// Records what a call has shown and done: lines that were shown count as seen, what calls about these files were refused for
    /// has been mended, and the state of the repository is kept up to date.
    pub(crate) fn record(&mut self, outcome: &Outcome) {
        match &outcome.result {
            Ok(Done::Read(reading)) if !reading.lines.is_empty() || reading.text.line_count() == 0 => {
                self.record_shown(&reading.path, &reading.text, &reading.full);
            }
            Ok(Done::Found(found)) => found.files.iter().for_each(|file| self.record_shown(&file.path, &file.text, &file.full)),
            _ => {}
        }
        outcome.paths().iter().for_each(|path| self.clear_refusals(path));
        self.track_touched(outcome.touched());
    }

    /// Makes it the session of a run, whose story has the name of the run.
    pub fn works_for_run(&mut self, run: &str) {
        self.scope = TaskScope { owner: Some(TaskOwner::Run(run.to_owned())), story: Some(run.to_owned()) };
    }

    pub(crate) fn task_scope(&self) -> &TaskScope {
        &self.scope
    }

    /// The state of the repository, as far as it is this session's.
    pub fn snapshot(&self) -> RepoState {
        self.workspace.snapshot_for(&self.scope)
    }

    /// Keeps the state of the repository up to date with what was done to files.
    fn track_touched(&self, touched: Vec<TouchedFile>) {
        self.workspace.track_touched(touched, TouchSource::Event, |path| self.files.stamp(path));
    }

    /// Tracks files of which these lines were read.
    pub(crate) fn track_read(&self, read: &[KnownLines]) {
        let touched = |lines: &KnownLines| TouchedFile { path: lines.path.clone(), touch: Touch::Read(lines.text.version()) };
        self.track_touched(read.iter().map(touched).collect());
    }

    pub(crate) fn take_instructions(&mut self, directories: &[Option<RelPath>]) -> Option<ToldInstructions> {
        let tracker = self.tracker.as_mut();
        let mut sources = instructions::InstructionSources { workspace: &self.workspace, tracker, files: &mut self.files };
        self.instructions.take_new(&mut sources, directories)
    }

    /// The files that the session has seen and that are something else now, but for those that the outcome is about.
    fn changed_elsewhere(&mut self, outcome: &Outcome) -> Vec<ChangedFile> {
        let refused = outcome.refusal().and_then(|refusal| Some((refusal.known_path()?, refusal.code())));
        // Not every refusal says that its file has changed: a bad range does not.
        let is_said = |changed: &StaleView| {
            refused.as_ref().is_some_and(|(path, code)| {
                *path == changed.path && (changed.now == OutsideState::Gone || *code == RefusalCode::Stale)
            })
        };
        let changed = self.with_stale_views(|stale_views, sources| stale_views.check_next(sources)).unwrap_or_default();
        let (said, news): (Vec<StaleView>, Vec<StaleView>) = changed.into_iter().partition(is_said);
        said.iter().for_each(|changed| self.mark_changed(changed));
        self.name_changed(news)
    }

    /// Notes in the state of the repository that a file is not what the session saw.
    fn mark_changed(&self, changed: &StaleView) {
        let stamp = match &changed.now {
            OutsideState::Version(version) => self.files.stamp_of(&changed.path, version),
            OutsideState::Gone => None,
        };
        self.workspace.changed_outside(&changed.path, changed.now, stamp);
    }

    /// Files that are not what the session saw, with who did it.
    pub(crate) fn name_changed(&mut self, changed: Vec<StaleView>) -> Vec<ChangedFile> {
        let id = self.id();
        let file = |changed: StaleView| {
            self.mark_changed(&changed);
            let by = author_of(&self.workspace, &id, &changed);
            ChangedFile { path: changed.path, deleted: changed.now == OutsideState::Gone, by }
        };
        changed.into_iter().map(file).collect()
    }

    /// Takes the hints of the watcher since the last time. Files in `fresh`, which the reply is about, need no check.
    pub(crate) fn take_hints(&mut self, fresh: &[RelPath]) {
        let hints = match self.workspace.watch() {
            Some(watch) => watch.hints(self.cursor.get_or_insert_with(|| watch.cursor())),
            None => WatchHints::Everything,
        };
        self.instructions.note_hints(&hints, &self.workspace.config().instructions);
        self.with_stale_views(|stale_views, sources| stale_views.note_hints(sources, &hints, fresh));
    }

    /// Calls `look` with the stale views and what they need; `None` without a tracker.
    pub(crate) fn with_stale_views<T>(&mut self, look: impl FnOnce(&mut StaleViews, &mut ViewSources<'_>) -> T) -> Option<T> {
        let tracker = self.tracker.as_mut()?;
        let mut sources = ViewSources { workspace: &self.workspace, tracker, files: &mut self.files };
        Some(look(&mut self.stale_views, &mut sources))
    }

    /// Counts a refused call. The lines that the refusal shows count as seen from here on.
    pub(crate) fn record_refusal(&mut self, call: &impl Serialize, refusal: Refusal) -> RefusedOutcome {
        let path = refusal.known_path();
        let mut repeat = 1;
        if let Some(tracker) = &mut self.tracker {
            let unshown = match &refusal.cause {
                Cause::Unshown { version, .. } => Some(*version),
                _ => None,
            };
            repeat = tracker.count_refusal(&self.workspace, fingerprint(call, unshown), path.clone());
        }
        let mut text = None;
        if let (Some(view), Some(path)) = (&refusal.view_after, &path) {
            self.set_view(path, view.clone());
            text = self.files.text(&self.workspace, &view.version());
            // What comes next is compared with it, perhaps in another process.
            text.iter().for_each(|text| self.files.keep(&self.workspace, path, text));
        }
        RefusedOutcome { refusal: Box::new(refusal), repeat, text }
    }

    /// Forgets the refusals about this file: their cause is gone.
    pub(crate) fn clear_refusals(&mut self, path: &RelPath) {
        if let Some(tracker) = &mut self.tracker {
            tracker.clear_refusals(&self.workspace, path);
        }
    }

    /// The one spelling of a file, without reading it.
    pub fn path_of(&self, spelling: &str) -> Result<RelPath, Refusal> {
        self.files.path_of(&self.workspace, spelling)
    }

    /// Reads the file at a path, with the session's view of it.
    pub(crate) fn gather(&mut self, spelling: &str) -> Result<GatheredFile, Refusal> {
        self.gather_on(PlanBasis::Disk, spelling)
    }

    fn gather_on(&mut self, basis: PlanBasis<'_>, spelling: &str) -> Result<GatheredFile, Refusal> {
        let gathered = self.files.gather(&self.workspace, spelling)?;
        Ok(self.with_view(basis, gathered))
    }

    fn with_view(&mut self, basis: PlanBasis<'_>, mut gathered: GatheredFile) -> GatheredFile {
        if let Some(tracker) = &mut self.tracker {
            gathered.view = tracker.view(&self.workspace, &gathered.path);
            gathered.seen = match (&gathered.view, &gathered.present) {
                (Some(view), Present::Text(text)) if view.version() == text.version() => Some(text.clone()),
                (Some(view), _) => self.files.text(&self.workspace, &view.version()),
                (None, _) => None,
            };
        }
        if let PlanBasis::Before(files) = basis {
            let before = || files.iter().find(|before| before.path == gathered.path);
            gathered.present = match &gathered.seen {
                Some(seen) => Present::Text(seen.clone()),
                None => before().map_or(Present::Absent, |before| self.files.kept_content(&self.workspace, before.version)),
            };
        }
        gathered
    }

    /// [`Session::gather`] for a file that is to be written. Protected files are refused.
    pub(crate) fn gather_for_writing(&mut self, basis: PlanBasis<'_>, spelling: &str) -> Result<GatheredFile, Refusal> {
        let mut gathered = self.gather_on(basis, spelling)?;
        self.check_is_ours_to_write(&gathered.path)?;
        gathered.provenance = self.provenance(&gathered);
        Ok(gathered)
    }

    /// The line map from the version that the session saw to the present one, if the changes between them are on record.
    fn provenance(&self, gathered: &GatheredFile) -> Option<LineMap> {
        let (Some(seen), Present::Text(now)) = (&gathered.seen, &gathered.present) else { return None };
        if seen.version() == now.version() {
            return None;
        }
        let map = self.workspace.provenance(&gathered.path, seen.version(), now.version());
        map.filter(|map| map.fits(seen, now)).map(|map| map.without_restored(seen, now))
    }

    /// [`Session::gather`] for a file that is to be replaced or deleted as a whole, whether it can be shown or not.
    pub(crate) fn gather_whole(&mut self, basis: PlanBasis<'_>, spelling: &str) -> Result<GatheredFile, Refusal> {
        let gathered = self.files.gather_whole(&self.workspace, spelling)?;
        self.check_is_ours_to_write(&gathered.path)?;
        Ok(self.with_view(basis, gathered))
    }

    /// [`Session::gather_whole`] for delete and move. If the file has several hard links, the one that the caller named is
    /// removed; reads through any link count.
    pub(crate) fn gather_by_name(&mut self, basis: PlanBasis<'_>, spelling: &str) -> Result<GatheredFile, Refusal> {
        let mut gathered = self.gather_whole(basis, spelling)?;
        if gathered.links > 1 {
            gathered.path = self.files.path_of_name(&self.workspace, spelling)?;
            self.check_is_ours_to_write(&gathered.path)?;
        }
        Ok(gathered)
    }

    /// The same for a person who restores files: the settings are among them.
    pub(crate) fn gather_to_restore(&mut self, path: &RelPath) -> Result<GatheredFile, Refusal> {
        let mut gathered = self.files.gather_whole(&self.workspace, path.as_str())?;
        if gathered.links > 1 {
            gathered.path = self.files.path_of_name(&self.workspace, path.as_str())?;
        }
        self.check_is_not_protected(&gathered.path)?;
        Ok(self.with_view(PlanBasis::Disk, gathered))
    }

    fn check_is_ours_to_write(&self, path: &RelPath) -> Result<(), Refusal> {
        // The settings say how strict we are: who is held to them does not change them.
        if [path, &self.workspace.copy.in_tree(path)].iter().any(|path| path.as_str() == "surehand.toml") {
            return Err(Refusal::of(path, Cause::Protected));
        }
        self.check_is_not_protected(path)
    }

    /// What git or we believe is written for nobody.
    pub(crate) fn check_is_not_protected(&self, path: &RelPath) -> Result<(), Refusal> {
        match self.workspace.copy.is_protected(&self.workspace.copy.in_tree(path)) {
            true => Err(Refusal::of(path, Cause::Protected)),
            false => Ok(()),
        }
    }

    /// Whether this very call was refused before because what is there, as it is now, cannot be shown.
    pub(crate) fn is_warned(&mut self, call: &impl Serialize, there: &Present) -> bool {
        let (Some(tracker), Present::Blob(blob, _)) = (&mut self.tracker, there) else { return false };
        tracker.was_refused(&self.workspace, &fingerprint(call, Some(blob.version())))
    }

    pub(crate) fn target<'a>(&'a self, gathered: &'a GatheredFile) -> Target<'a> {
        Target {
            path: &gathered.path,
            tracking: gathered.tracking(self.tracker.is_some()),
            present: &gathered.present,
            policy: self.policy(),
            limits: self.limits(),
        }
    }

    pub(crate) fn policy(&self) -> &Policy {
        &self.workspace.config().policy
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.workspace.config().limits
    }

    pub(crate) fn id(&self) -> SessionId {
        self.tracker.as_ref().map_or_else(|| SessionId("untracked".to_owned()), |tracker| tracker.session().clone())
    }

    pub(crate) fn set_view(&mut self, path: &RelPath, view: View) {
        if let Some(tracker) = &mut self.tracker {
            let is_new = tracker.view(&self.workspace, path).is_none();
            tracker.set_view(&self.workspace, path, view);
            if is_new {
                self.workspace.watch_file(path);
            }
        }
    }

    /// Keeps what a file held, if that is at hand, so that it can be brought back.
    pub(crate) fn keep_version(&mut self, path: &RelPath, version: &ContentHash) {
        if let Some(text) = self.files.text(&self.workspace, version) {
            self.files.keep(&self.workspace, path, &text);
        }
    }

    /// Keeps a text of a file, to compare with later.
    pub(crate) fn keep_text(&mut self, path: &RelPath, text: &Text) {
        self.files.keep(&self.workspace, path, text);
    }

    pub(crate) fn record_shown(&mut self, path: &RelPath, text: &Text, lines: &LineSet) {
        if let Some(tracker) = &mut self.tracker {
            let is_new = tracker.view(&self.workspace, path).is_none();
            tracker.record_shown(&self.workspace, &mut self.files, path, text, lines);
            if is_new {
                self.workspace.watch_file(path);
            }
        }
    }

    pub(crate) fn count_rewrite(&mut self, path: &RelPath, alike: bool) -> u32 {
        match &mut self.tracker {
            Some(tracker) => tracker.count_rewrite(&self.workspace, path, alike),
            None => 0,
        }
    }
}

/// Identifies a repeated call. A call that was refused because the file cannot be shown is another one when the file has
/// changed.
fn fingerprint(call: &impl Serialize, unshown: Option<ContentHash>) -> ContentHash {
    let mut bytes = serde_json::to_vec(call).unwrap_or_default();
    bytes.extend(unshown.map(|version| format!(" {version}")).unwrap_or_default().bytes());
    ContentHash::of(&bytes)
}

/// The directories in which a call did something, or was about to. `None` is the root.
fn directories(result: &Result<Done, Refusal>) -> Vec<Option<RelPath>> {
    let of_area = |area: &SearchArea| match area {
        SearchArea::Workspace => None,
        SearchArea::Dir(directory) => Some(directory.clone()),
        SearchArea::File(path) => path.parent(),
    };
    let mut directories: Vec<Option<RelPath>> = match result {
        Ok(Done::Listed(listing)) => vec![of_area(&listing.scope.area)],
        Ok(Done::Found(found)) => {
            [of_area(&found.scope.area)].into_iter().chain(found.files.iter().map(|file| file.path.parent())).collect()
        }
        Ok(done) => done.paths().iter().map(RelPath::parent).collect(),
        Err(refusal) if is_about_to_work(&refusal.cause) => refusal.known_path().map(|path| path.parent()).into_iter().collect(),
        Err(_) => Vec::new(),
    };
    directories.dedup();
    directories
}

/// The tasks of a session that is no run.
fn scope_of(session: &SessionId) -> TaskScope {
    TaskScope { owner: Some(TaskOwner::Session(session.0.clone())), story: None }
}

fn fresh_id() -> SessionId {
    SessionId(format!("{:x}-{:016x}", now(), random()))
}
