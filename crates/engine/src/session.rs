//! A session is one model's context window. It gathers the current content of files and the model's views of them, and
//! records the result of each call.

use std::{collections::HashSet, sync::Arc};

use serde::{Deserialize, Serialize};
use surehand_core::{
    Cause, ChangeAuthor, ChangedFile, ContentHash, Done, Edit, KnownLines, Limits, LineMap, LineSet, Notice, Outcome,
    OutsideState, Policy, Present, Refusal, RefusalCode, RelPath, RepoState, Target, TaskOwner, Text, Tool, ToolKind, ToolNames,
    Touch, View,
    instructions::ToldInstructions,
    outcome::{RefusedOutcome, SearchArea, TouchedFile},
    render,
};
use surehand_store::{IncidentKind, SessionId};

use crate::{
    call_progress::CallProgress,
    disk::walk::{PathTarget, path_target},
    file_cache::{FileCache, GatheredFile},
    file_tracker::FileTracker,
    instructions::{self, InstructionCache},
    random::random,
    repo_state::{ExportPace, TaskScope, TouchSource},
    stale_views::{StaleView, StaleViews, ViewSources, author_and_time},
    time::now,
    watch::{HintCursor, WatchHints},
    workspace::Workspace,
};

/// The maximum number of times that an edit is planned, if its file changes between planning and writing.
pub(crate) const ATTEMPTS: usize = 20;

/// One model's context window in a workspace.
#[derive(Debug)]
pub struct Session {
    pub(crate) workspace: Arc<Workspace>,
    pub(crate) tracker: Option<FileTracker>,
    pub(crate) files: FileCache,
    pub(crate) instructions: InstructionCache,
    /// The position in the watcher's hints up to which this session has read; `None` before the first call.
    cursor: Option<HintCursor>,
    stale_views: StaleViews,
    pub(crate) scope: TaskScope,
    pub(crate) progress: CallProgress,
    pub(crate) replies: ReplyGroup,
    /// The warnings about other checkouts that earlier replies contained, so that each appears once.
    pub(crate) reported_fleet_warnings: HashSet<String>,
    /// The warnings about other checkouts for the next reply.
    pub(crate) fleet_notices: Vec<Notice>,
}

/// How the reply to a call is sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ReplyGroup {
    /// Alone. The call itself does everything that must be done before the reply.
    #[default]
    Alone,
    /// Together with the replies to other calls. They share what must be done before a reply:
    /// [`Workspace::complete_replies`] does it.
    WithOthers,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PlanBasis<'a> {
    Disk,
    /// The content before another program made the edit: the version that the session knows, or else this one.
    Before(&'a [BaseVersion]),
}

/// The version of a file before another program changed it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct BaseVersion {
    pub path: RelPath,
    /// The store has the content of this version.
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

    /// A session that several processes share at the same time, such as an agent's hooks and its MCP server. Each call
    /// reads the views from the store and writes them back before it ends.
    pub fn shared(workspace: Arc<Workspace>, id: SessionId) -> Self {
        Self::tracked_by(workspace, FileTracker::shared(id))
    }

    /// A session that uses this tracker and the session id of the tracker.
    pub fn tracked_by(workspace: Arc<Workspace>, tracker: FileTracker) -> Self {
        let (files, scope) = (FileCache::of(tracker.session().clone()), scope_of(tracker.session()));
        Self { tracker: Some(tracker), files, scope, ..Self::untracked(workspace) }
    }

    /// A session without a tracker: nothing is refused as unread or stale. Commits are as safe as in other sessions.
    pub fn untracked(workspace: Arc<Workspace>) -> Self {
        let id = fresh_id();
        Self {
            workspace,
            tracker: None,
            scope: scope_of(&id),
            files: FileCache::of(id),
            instructions: InstructionCache::default(),
            cursor: None,
            stale_views: StaleViews::default(),
            progress: CallProgress::default(),
            replies: ReplyGroup::Alone,
            reported_fleet_warnings: HashSet::new(),
            fleet_notices: Vec::new(),
        }
    }

    /// Sets how the replies to the next calls are sent. The default is [`ReplyGroup::Alone`].
    pub fn set_reply_group(&mut self, replies: ReplyGroup) {
        self.replies = replies;
    }

    /// The workspace that this session works in.
    pub fn workspace(&self) -> &Arc<Workspace> {
        &self.workspace
    }

    /// The tracker of views and refusals; `None` for an untracked session.
    pub fn tracker(&mut self) -> Option<&mut FileTracker> {
        self.tracker.as_mut()
    }

    /// The session's view of a file; `None` if it has not seen the file, or is untracked.
    pub fn view_of(&mut self, path: &RelPath) -> Option<View> {
        self.tracker.as_mut()?.view(&self.workspace, path)
    }

    /// Forgets everything that the session has seen, as after a reset of the context.
    pub fn reset(&mut self) {
        if let Some(tracker) = &mut self.tracker {
            tracker.clear_session(&self.workspace);
        }
        self.instructions.forget();
        self.flush_if_shared();
    }

    /// Begins a call, and loads what other processes have recorded for this session since the last one.
    pub(crate) fn begin_call(&mut self, progress: &CallProgress) {
        self.progress = progress.clone();
        if let (Some(fleet), Some(tracker)) = (self.workspace.fleet(), &self.tracker) {
            fleet.note_session(tracker.session());
        }
        self.reload_if_shared();
    }

    /// Loads what other processes have recorded for a shared session. Each call does this itself. A long-lived process
    /// calls it before it uses [`Session::foreign_tools`].
    pub fn reload_if_shared(&mut self) {
        if let Some(tracker) = &mut self.tracker {
            tracker.reload_if_shared();
        }
    }

    /// Writes the views of a shared session to the store, so that other processes see them. Each call ends with this.
    pub fn flush_if_shared(&self) {
        if self.tracker.as_ref().is_some_and(FileTracker::is_shared) {
            self.workspace.flush();
        }
    }

    /// The instructions for a file or directory that this session has not received yet: `AGENTS.md` there and in the
    /// parents, parents first, each once. A caller that wants them in the system prompt instead of in replies asks here
    /// before the call. If they exceed the budget, the next call returns the rest.
    pub fn agents_md_if_new(&mut self, path: &str) -> Option<String> {
        self.instructions_if_new(path)
            .map(|instructions| render::instructions::instructions(&instructions, &ToolNames::default()))
    }

    /// [`Session::agents_md_if_new`] as a value.
    pub fn instructions_if_new(&mut self, path: &str) -> Option<ToldInstructions> {
        let directory = match path_target(self.workspace.root(), path) {
            Ok(PathTarget::Dir(directory)) => directory,
            // Also for a file that does not exist yet.
            Ok(PathTarget::File(_)) | Err(_) => self.path_of(path).ok()?.parent(),
        };
        self.take_hints(&[]);
        self.take_instructions(&[directory])
    }

    /// Counts an edit that [`Session::plan`] has refused. The lines that the refusal shows count as seen from now on.
    pub fn refused(&mut self, edit: &Edit, refusal: Refusal) -> Outcome {
        self.refuse(edit, refusal)
    }

    pub(crate) fn refuse(&mut self, call: &impl RequestedCall, refusal: Refusal) -> Outcome {
        self.begin_call(&CallProgress::default());
        self.finish_call(call, Err(refusal))
    }

    /// Ends a call: records its result and collects the notes. `call` identifies repeated calls.
    pub(crate) fn finish_call(&mut self, call: &impl RequestedCall, result: Result<Done, Refusal>) -> Outcome {
        let directories = directories(&result);
        self.finish_call_in(&directories, call, result)
    }

    /// [`Session::finish_call`] with the instructions for these directories.
    pub(crate) fn finish_call_in(
        &mut self,
        directories: &[Option<RelPath>],
        call: &impl RequestedCall,
        result: Result<Done, Refusal>,
    ) -> Outcome {
        let mut outcome = Outcome::new(result.map_err(|refusal| self.record_refusal(call, refusal)));
        self.record(&outcome);
        self.take_hints(&outcome.paths());
        outcome.notes.instructions = self.take_instructions(directories);
        outcome.notes.changed_elsewhere = self.changed_elsewhere(&outcome);
        outcome.notes.warnings = self.workspace.take_notices();
        // Hooks fetch them on their own.
        if self.workspace.fleet().is_some_and(|fleet| fleet.keeps_copy()) {
            let lost = self.lost_claims();
            self.queue_fleet_warnings(lost);
        }
        outcome.notes.warnings.append(&mut self.fleet_notices);
        self.flush_if_shared();
        outcome
    }

    /// Records the effects of a call: lines that were shown count as seen, earlier refusals about these files are
    /// settled, and the repository state is updated.
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

    /// Makes this the session of a run that works on this story.
    pub fn works_for_run(&mut self, run: &str, story: &str) {
        self.scope = TaskScope { owner: Some(TaskOwner::Run(run.to_owned())), story: Some(story.to_owned()) };
    }

    /// The repository state, with the tasks of this session.
    pub fn snapshot(&self) -> RepoState {
        self.workspace.snapshot_for(&self.scope)
    }

    /// Updates the repository state after files were read or changed.
    fn track_touched(&self, touched: Vec<TouchedFile>) {
        let pace = match self.replies {
            ReplyGroup::Alone => ExportPace::InTime,
            ReplyGroup::WithOthers => ExportPace::WithReplies,
        };
        self.workspace.track_touched(touched, TouchSource::Event, pace, |path| self.files.stamp(path));
    }

    /// Updates the repository state after these lines were read.
    pub(crate) fn track_read(&self, read: &[KnownLines]) {
        let touched = |lines: &KnownLines| TouchedFile { path: lines.path.clone(), touch: Touch::Read(lines.text.version()) };
        self.track_touched(read.iter().map(touched).collect());
    }

    pub(crate) fn take_instructions(&mut self, directories: &[Option<RelPath>]) -> Option<ToldInstructions> {
        let tracker = self.tracker.as_mut();
        let mut sources = instructions::InstructionSources { workspace: &self.workspace, tracker, files: &mut self.files };
        self.instructions.take_new(&mut sources, directories)
    }

    /// The files that the session has seen and that have changed since, except those of the outcome.
    fn changed_elsewhere(&mut self, outcome: &Outcome) -> Vec<ChangedFile> {
        let refused = outcome.refusal().and_then(|refusal| Some((refusal.known_path()?, refusal.code())));
        // Not every refusal mentions that its file has changed: a bad range does not.
        let is_in_reply = |changed: &StaleView| {
            refused.as_ref().is_some_and(|(path, code)| {
                *path == changed.path && (changed.now == OutsideState::Gone || *code == RefusalCode::Stale)
            })
        };
        let changed = self.with_stale_views(|stale_views, sources| stale_views.check_next(sources)).unwrap_or_default();
        let (in_reply, news): (Vec<StaleView>, Vec<StaleView>) = changed.into_iter().partition(is_in_reply);
        for changed in &in_reply {
            self.mark_changed(changed);
            self.author_of(changed);
        }
        self.name_changed(news)
    }

    /// Records in the repository state that a file differs from the version that the session saw.
    fn mark_changed(&self, changed: &StaleView) {
        let stamp = match &changed.now {
            OutsideState::Version(version) => self.files.stamp_of(&changed.path, version),
            OutsideState::Gone => None,
        };
        self.workspace.changed_outside(&changed.path, changed.now, stamp);
    }

    /// Describes files that differ from the session's views, with the authors of the changes.
    pub(crate) fn name_changed(&mut self, changed: Vec<StaleView>) -> Vec<ChangedFile> {
        let file = |changed: StaleView| {
            self.mark_changed(&changed);
            let by = self.author_of(&changed);
            ChangedFile { path: changed.path, deleted: changed.now == OutsideState::Gone, by }
        };
        changed.into_iter().map(file).collect()
    }

    /// Takes the watcher's hints since the last call. Files in `fresh`, which the reply concerns, need no check.
    pub(crate) fn take_hints(&mut self, fresh: &[RelPath]) {
        let hints = match self.workspace.watch() {
            Some(watch) => watch.hints(self.cursor.get_or_insert_with(|| watch.cursor())),
            None => WatchHints::Everything,
        };
        self.instructions.note_hints(&hints, &self.workspace.config().instructions);
        self.with_stale_views(|stale_views, sources| stale_views.note_hints(sources, &hints, fresh));
    }

    /// Runs `visit` with the stale views and their sources; `None` without a tracker.
    pub(crate) fn with_stale_views<T>(&mut self, visit: impl FnOnce(&mut StaleViews, &mut ViewSources<'_>) -> T) -> Option<T> {
        let tracker = self.tracker.as_mut()?;
        let mut sources = ViewSources { workspace: &self.workspace, tracker, files: &mut self.files };
        Some(visit(&mut self.stale_views, &mut sources))
    }

    /// Counts a refused call. The lines that the refusal shows count as seen from now on.
    pub(crate) fn record_refusal(&mut self, call: &impl RequestedCall, refusal: Refusal) -> RefusedOutcome {
        let path = refusal.known_path();
        let mut repeat = 1;
        if let Some(tracker) = &mut self.tracker {
            let unshown = match &refusal.cause {
                Cause::Unshown { version, .. } => Some(*version),
                _ => None,
            };
            repeat = tracker.count_refusal(&self.workspace, fingerprint(call, unshown), path.clone());
        }
        self.note_refusal(call, &refusal, repeat);
        let mut text = None;
        if let (Some(view), Some(path)) = (&refusal.view_after, &path) {
            self.set_view(path, view.clone());
            text = self.files.text(&self.workspace, &view.version());
            // Later content will be compared with this text, perhaps in another process.
            text.iter().for_each(|text| self.files.keep(&self.workspace, path, text));
        }
        RefusedOutcome { refusal: Box::new(refusal), repeat, text }
    }

    /// Logs a refused change for people, and the outside change that caused it, if any.
    fn note_refusal(&mut self, call: &impl RequestedCall, refusal: &Refusal, repeat: u32) {
        let Some(tool) = call.tool().filter(|tool| tool.kind() == ToolKind::Edits) else { return };
        let path = refusal.known_path();
        if let (Cause::Stale { .. } | Cause::Deleted, Some(path)) = (&refusal.cause, &path)
            && let Some(view) = self.view_of(path)
        {
            let now = self.files.check(&self.workspace, std::slice::from_ref(path));
            self.author_of(&StaleView { path: path.clone(), was: view.last_known(), now: now[0] });
        }
        let kind = IncidentKind::Refused { tool: tool.name().to_owned(), code: refusal.code().as_str().to_owned(), repeat };
        self.workspace.notice(path, self.id(), kind);
    }

    /// The author of a change. A change that no recorded event explains is recorded as an outside change.
    pub(crate) fn author_of(&self, changed: &StaleView) -> ChangeAuthor {
        let author = || author_and_time(&self.workspace, &self.id(), changed);
        // Another process may have made the change just now, and its record may still be in its outbox.
        let known = author().or_else(|| {
            self.workspace.store.import_outboxes();
            author()
        });
        if known.is_none() && changed.was != changed.now {
            let version = |state: OutsideState| match state {
                OutsideState::Version(version) => Some(version),
                OutsideState::Gone => None,
            };
            let kind = IncidentKind::Outside { before: version(changed.was), after: version(changed.now) };
            self.workspace.notice(Some(changed.path.clone()), self.id(), kind);
        }
        known.map_or(ChangeAuthor::Unknown, |(by, _)| by)
    }

    /// Forgets the refusals about this file, because their cause is gone.
    pub(crate) fn clear_refusals(&mut self, path: &RelPath) {
        if let Some(tracker) = &mut self.tracker {
            tracker.clear_refusals(&self.workspace, path);
        }
    }

    /// The canonical path of a file. The file is not read.
    pub fn path_of(&self, spelling: &str) -> Result<RelPath, Refusal> {
        self.files.path_of(&self.workspace, spelling)
    }

    /// Reads the file at a path, with the session's view of it.
    pub(crate) fn gather(&mut self, spelling: &str) -> Result<GatheredFile, Refusal> {
        self.gather_on(PlanBasis::Disk, spelling)
    }

    /// The canonical path and the current text of a file; `None` if it is not a text.
    pub(crate) fn text_at(&mut self, spelling: &str) -> Option<(RelPath, Text)> {
        let gathered = self.gather(spelling).ok()?;
        match gathered.present {
            Present::Text(text) => Some((gathered.path, text)),
            Present::Absent | Present::Blob(..) | Present::Unreadable(_) => None,
        }
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

    /// [`Session::gather`] for a file that will be written. Protected files are refused.
    pub(crate) fn gather_for_writing(&mut self, basis: PlanBasis<'_>, spelling: &str) -> Result<GatheredFile, Refusal> {
        let mut gathered = self.gather_on(basis, spelling)?;
        self.check_is_ours_to_write(&gathered.path)?;
        gathered.provenance = self.provenance(&gathered);
        Ok(gathered)
    }

    /// The line map from the version that the session saw to the current one, if the changes between them are recorded.
    fn provenance(&self, gathered: &GatheredFile) -> Option<LineMap> {
        let (Some(seen), Present::Text(now)) = (&gathered.seen, &gathered.present) else { return None };
        if seen.version() == now.version() {
            return None;
        }
        let map = self.workspace.provenance(&gathered.path, seen.version(), now.version());
        map.filter(|map| map.fits(seen, now)).map(|map| map.without_restored(seen, now))
    }

    /// [`Session::gather`] for a file that will be replaced or deleted as a whole, even if it cannot be shown.
    pub(crate) fn gather_whole(&mut self, basis: PlanBasis<'_>, spelling: &str) -> Result<GatheredFile, Refusal> {
        let gathered = self.files.gather_whole(&self.workspace, spelling)?;
        self.check_is_ours_to_write(&gathered.path)?;
        Ok(self.with_view(basis, gathered))
    }

    /// [`Session::gather_whole`] for delete and move. If the file has several hard links, the one that the caller named
    /// is removed; reads through any link count.
    pub(crate) fn gather_by_name(&mut self, basis: PlanBasis<'_>, spelling: &str) -> Result<GatheredFile, Refusal> {
        let mut gathered = self.gather_whole(basis, spelling)?;
        if gathered.links > 1 {
            gathered.path = self.files.path_of_name(&self.workspace, spelling)?;
            self.check_is_ours_to_write(&gathered.path)?;
        }
        Ok(gathered)
    }

    /// Like [`Session::gather_by_name`], for a person who restores files. Settings files are allowed.
    pub(crate) fn gather_to_restore(&mut self, path: &RelPath) -> Result<GatheredFile, Refusal> {
        let mut gathered = self.files.gather_whole(&self.workspace, path.as_str())?;
        if gathered.links > 1 {
            gathered.path = self.files.path_of_name(&self.workspace, path.as_str())?;
        }
        self.check_is_not_protected(&gathered.path)?;
        Ok(self.with_view(PlanBasis::Disk, gathered))
    }

    fn check_is_ours_to_write(&self, path: &RelPath) -> Result<(), Refusal> {
        // The settings decide how strict the gate is, so those who are subject to it must not change them.
        if [path, &self.workspace.copy.in_tree(path)].iter().any(|path| path.as_str() == "surehand.toml") {
            return Err(Refusal::of(path, Cause::Protected));
        }
        self.check_is_not_protected(path)
    }

    /// Refuses files that git or Surehand trusts.
    pub(crate) fn check_is_not_protected(&self, path: &RelPath) -> Result<(), Refusal> {
        match self.workspace.copy.is_protected(&self.workspace.copy.in_tree(path)) {
            true => Err(Refusal::of(path, Cause::Protected)),
            false => Ok(()),
        }
    }

    /// Whether this exact call was refused before because the current content cannot be shown.
    pub(crate) fn is_warned(&mut self, call: &impl Serialize, present: &Present) -> bool {
        let (Some(tracker), Present::Blob(blob, _)) = (&mut self.tracker, present) else { return false };
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

    /// Stores the content of a version, if it is cached, so that it can be restored.
    pub(crate) fn keep_version(&mut self, path: &RelPath, version: &ContentHash) {
        if let Some(text) = self.files.text(&self.workspace, version) {
            self.files.keep(&self.workspace, path, &text);
        }
    }

    /// Stores a text of a file, to compare with it later.
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

/// A call, as refusals identify it.
pub(crate) trait RequestedCall: Serialize {
    /// The tool; `None` if there is no such tool.
    fn tool(&self) -> Option<Tool>;
}

impl RequestedCall for Edit {
    fn tool(&self) -> Option<Tool> {
        Some(self.tool())
    }
}

impl RequestedCall for (&str, &serde_json::Value) {
    fn tool(&self) -> Option<Tool> {
        Tool::named(self.0)
    }
}

/// Identifies a repeated call. If a call was refused because the file cannot be shown, `unshown` is the version: after
/// the file has changed, it is a different call.
fn fingerprint(call: &impl Serialize, unshown: Option<ContentHash>) -> ContentHash {
    let mut bytes = serde_json::to_vec(call).unwrap_or_default();
    bytes.extend(unshown.map(|version| format!(" {version}")).unwrap_or_default().bytes());
    ContentHash::of(&bytes)
}

/// The directories that a call concerned. `None` is the root.
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
        Err(refusal) if refusal.cause.leads_back_to_file() => {
            refusal.known_path().map(|path| path.parent()).into_iter().collect()
        }
        Err(_) => Vec::new(),
    };
    directories.dedup();
    directories
}

/// The tasks of a session that is not a run.
fn scope_of(session: &SessionId) -> TaskScope {
    TaskScope { owner: Some(TaskOwner::Session(session.0.clone())), story: None }
}

fn fresh_id() -> SessionId {
    SessionId(format!("{:x}-{:016x}", now(), random()))
}
