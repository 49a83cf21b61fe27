//! Restores files to their state at a checkpoint, at a time, or right after a change. Deleted, renamed and binary
//! files, permissions, links and empty directories are restored, too.
//!
//! Before any write, a checkpoint is taken, so that everything a restore overwrites or deletes can be recovered.
//! Contents go through a commit like every other change, and undo can revert them.

mod apply;
mod checkpoint_tree;
mod entry_undo;
mod kept_work;
mod target;

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    fs,
};

use rustix::fs::FileType;

use surehand_core::{ContentHash, OutsideState, Refusal, RelPath, outcome::undo::EntryOutcome};
use surehand_store::{Checkpoint, CheckpointId, CheckpointInfo, EventFilter, FileEvent, Millis, NotKept, PathEntry, StoreError};

pub use self::{
    apply::Restored,
    kept_work::KeptFile,
    target::{RestoreTo, RestoreToError, reads_as_time},
};
pub(crate) use self::{apply::TOOL, checkpoint_tree::MOST_OF_BLOB, entry_undo::EntryUndo};
use self::{
    checkpoint_tree::{CheckpointTree, ContentSource, PathState, is_same_content},
    entry_undo::state_of,
};
use crate::{
    checkpoint::{CheckpointError, CheckpointRequest, NestedPaths, lstat, read_file},
    disk::{
        put_back,
        walk::{FileRecheck, RecheckResult},
    },
    repo_state::rfc3339,
    scan_index::split_path,
    session::Session,
    time::now,
    workspace::Workspace,
};

/// The paths to restore, and the state to restore them to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RestoreRequest {
    /// Files and directories; empty means the whole workspace.
    pub paths: Vec<String>,
    /// The time, change or checkpoint to go back to.
    pub to: RestoreTo,
}

/// The effects that a restore would have.
#[derive(Debug)]
#[non_exhaustive]
pub struct RestorePlan {
    /// The time whose state is restored.
    pub moment: Millis,
    /// The checkpoint that the plan is based on; `None` if there is none from before that time.
    pub checkpoint: Option<CheckpointInfo>,
    /// The checkpoint of the present state; `None` if none was taken, as for a preview.
    pub before: Option<CheckpointId>,
    /// The files that would change, sorted by path.
    pub files: Vec<RestoreFile>,
    /// The files that differ but stay, with the reasons.
    pub left: Vec<NotKept>,
    /// Empty directories that did not exist then. They stay, unless they block a restored file.
    empty: Vec<RelPath>,
    /// Directories that were empty then and have entries now. They stay after the entries are deleted.
    standing: Vec<RelPath>,
}

/// The effect of a restore on one path.
#[derive(Debug)]
pub struct RestoreFile {
    /// Path relative to the workspace root.
    pub path: RelPath,
    /// The kind of effect.
    pub act: RestoreAct,
    have: PathState,
    want: PathState,
}

/// The kind of effect on a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RestoreAct {
    /// The path does not exist and is created.
    Create,
    /// The content differs and is replaced.
    Overwrite,
    /// The path did not exist then and is deleted.
    Delete,
    /// Only the permissions differ and are set.
    SetMode,
}

impl RestoreAct {
    /// The name as people read it, such as `set mode`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Overwrite => "overwrite",
            Self::Delete => "delete",
            Self::SetMode => "set mode",
        }
    }
}

/// Why a restore is impossible.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RestoreError {
    /// The checkpoint of the present state failed.
    #[error("what is there now could not be kept, so nothing was restored: {0}")]
    Checkpoint(#[from] CheckpointError),
    /// A requested path is invalid.
    #[error(transparent)]
    Path(Box<Refusal>),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The checkpoint or change no longer exists.
    #[error("there is no {0} any more")]
    Gone(String),
    /// Neither a checkpoint nor a recorded change reaches back to that time.
    #[error("nothing is known of that time: {}", oldest_in_words(.oldest.as_deref()))]
    TooEarly {
        /// The oldest checkpoint; `None` if there is none.
        oldest: Option<Box<CheckpointInfo>>,
    },
    /// Git cannot read the commit of the checkpoint.
    #[error("git does not have the commit of the checkpoint: {0}")]
    Git(String),
}

fn oldest_in_words(oldest: Option<&CheckpointInfo>) -> String {
    match oldest {
        Some(oldest) => format!("the oldest checkpoint is {} of {}", oldest.id, rfc3339(oldest.at)),
        None => "it is before every change, and there is no checkpoint".to_owned(),
    }
}

/// The maximum number of events that are read.
const MOST_EVENTS: usize = 100_000;

impl Session {
    /// Plans a restore. This takes a checkpoint of the present state, but changes no file.
    pub fn plan_restore(&mut self, request: &RestoreRequest) -> Result<RestorePlan, RestoreError> {
        let occasion = CheckpointRequest { session: None, occasion: "before restore".to_owned(), name: None };
        let before = self.workspace().checkpoint_with_files(&occasion)?;
        let plan = self.plan_restore_from(request, &before)?;
        Ok(RestorePlan { before: Some(before.info.id), ..plan })
    }

    /// Like [`Session::plan_restore`], without taking a checkpoint. For display only.
    pub fn preview_restore(&mut self, request: &RestoreRequest) -> Result<RestorePlan, RestoreError> {
        let present = self.workspace().survey()?;
        self.plan_restore_from(request, &present)
    }

    fn plan_restore_from(&mut self, request: &RestoreRequest, present: &Checkpoint) -> Result<RestorePlan, RestoreError> {
        let chosen = self.chosen(&request.paths)?;
        let workspace = self.workspace().clone();
        workspace.flush();
        workspace.store.import_outboxes();
        let events = workspace.ask(|store| store.events(&EventFilter::default(), MOST_EVENTS))?;
        let then = self.restore_point(&request.to, &events)?;
        let plan = self.compare(&then, present, &chosen)?;
        Ok(RestorePlan { moment: then.moment, checkpoint: then.base.map(|base| base.info), ..plan })
    }

    /// A plan that restores one file to a version that is in the store.
    pub(crate) fn plan_of_version(&self, path: RelPath, version: ContentHash) -> RestorePlan {
        let want = PathState::File { content: ContentSource::Version(version), mode: None };
        let file = RestoreFile { path, act: RestoreAct::Overwrite, have: PathState::NotKept, want };
        RestorePlan::of(vec![file])
    }

    /// The requested files and directories in canonical spelling; empty means the whole workspace.
    fn chosen(&self, paths: &[String]) -> Result<Vec<RelPath>, RestoreError> {
        let mut chosen = Vec::new();
        for path in paths {
            match self.workspace().root().normalize_place(path).map_err(|refusal| RestoreError::Path(Box::new(refusal)))? {
                Some(path) => chosen.push(path),
                // The root selects the whole workspace.
                None => return Ok(Vec::new()),
            }
        }
        Ok(chosen)
    }

    /// Finds the state to restore. Events are newest first.
    fn restore_point<'a>(&self, to: &RestoreTo, events: &'a [FileEvent]) -> Result<RestorePoint<'a>, RestoreError> {
        let workspace = self.workspace();
        let read = |id: &CheckpointId| workspace.ask(|store| store.checkpoint(id));
        let (moment, later) = match to {
            RestoreTo::Checkpoint(id) => {
                let checkpoint = read(id)?.ok_or_else(|| RestoreError::Gone(format!("checkpoint {id}")))?;
                let moment = checkpoint.info.at;
                let later = events.iter().take_while(|event| event.at > moment).count();
                // A change in the same millisecond may be in the checkpoint or not; the checkpoint decides.
                return Ok(RestorePoint { moment, base: Some(checkpoint), first: None, events, later });
            }
            RestoreTo::Change(change) => {
                let later = events.iter().position(|event| event.change == *change);
                let later = later.ok_or_else(|| RestoreError::Gone(format!("change {change}")))?;
                (events[later].at, later)
            }
            RestoreTo::Time(moment) => (*moment, events.iter().take_while(|event| event.at > *moment).count()),
        };
        let checkpoints = workspace.ask(|store| store.checkpoints(usize::MAX))?;
        let listed = checkpoints.iter().find(|checkpoint| checkpoint.at <= moment);
        if listed.is_none() && later == 0 {
            return Err(RestoreError::TooEarly { oldest: checkpoints.into_iter().next_back().map(Box::new) });
        }
        let load = |info: Option<&CheckpointInfo>| info.map(|info| read(&info.id)).transpose().map(Option::flatten);
        let base = load(listed)?;
        let first = if base.is_none() { load(checkpoints.last())? } else { None };
        Ok(RestorePoint { moment, base, first, events, later })
    }

    fn compare(&self, then: &RestorePoint<'_>, now: &Checkpoint, chosen: &[RelPath]) -> Result<RestorePlan, RestoreError> {
        let workspace = self.workspace().clone();
        let now_tree = CheckpointTree::of(&workspace, Some(now)).map_err(RestoreError::Git)?;
        let then_tree = CheckpointTree::of(&workspace, then.base.as_ref()).map_err(RestoreError::Git)?;
        let mut by_events = then.by_events();
        if let Some(first) = &then.first {
            // A file of the oldest checkpoint existed earlier too, unless a recorded change is older than the
            // checkpoint.
            let tree = CheckpointTree::of(&workspace, Some(first)).map_err(RestoreError::Git)?;
            let oldest = oldest_by_path(&then.events[..then.later]);
            let is_older = |path: &RelPath| oldest.get(path).is_none_or(|at| *at >= first.info.at);
            by_events.iter_mut().filter(|(path, _)| is_older(path)).for_each(|(path, state)| *state = tree.at(path));
        }
        let mut paths: BTreeSet<RelPath> = by_events.keys().map(|path| (*path).clone()).collect();
        if let Some(base) = &then.base {
            paths.extend(now.files.iter().chain(&base.files).map(|file| file.path.clone()));
            paths.extend(then_tree.committed_otherwise(&now_tree));
        }
        let is_chosen = |path: &RelPath| {
            chosen.is_empty() || chosen.iter().any(|chosen| path == chosen || path.relative_to(chosen).is_some())
        };
        let mut plan = RestorePlan::of(Vec::new());
        let (mut ignored, mut older, mut nested) = (Ignored::default(), Vec::new(), NestedPaths::default());
        for path in paths.into_iter().filter(is_chosen) {
            let have = now_tree.at(&path);
            let want = match by_events.get(&path) {
                Some(after) => after.clone(),
                None => then_tree.at(&path),
            };
            if nested.contain(&workspace, &path) {
                self.judge_nested(&mut plan, path, &now_tree, want);
                continue;
            }
            // A checkpoint lists only empty directories.
            if let (PathState::Nothing, PathState::Directory { .. }) = (&have, &want)
                && let present @ PathState::Directory { .. } = on_disk(&workspace, &path)
            {
                plan.standing.push(path.clone());
                self.judge(&mut plan, path, present, want);
                continue;
            }
            let is_on_record = by_events.contains_key(&path);
            let is_known_absent = is_on_record || then.base.as_ref().is_some_and(|base| base.info.is_whole);
            if want == PathState::Nothing && !is_known_absent {
                continue;
            }
            if want == PathState::Nothing && matches!(have, PathState::File { .. } | PathState::Link { .. }) {
                if ignored.is_ignored(self, &path) {
                    continue;
                }
                if !is_on_record && !self.is_born_after(&path, then) {
                    older.push((path, have));
                    continue;
                }
            }
            self.judge(&mut plan, path, have, want);
        }
        self.judge_older(&mut plan, older);
        Ok(plan)
    }

    /// A file of a nested repository is restored if it is gone, or if that repository itself has its present content.
    fn judge_nested(&self, plan: &mut RestorePlan, path: RelPath, now: &CheckpointTree<'_>, want: PathState) {
        let have = on_disk(self.workspace(), &path);
        let is_free = match (&have, &want) {
            (PathState::File { content, .. }, PathState::File { content: wanted, .. }) if content == wanted => true,
            (PathState::Nothing, PathState::File { .. } | PathState::Link { .. }) => true,
            (_, PathState::File { .. } | PathState::Link { .. }) => have == want || !now.lists(&path),
            // Other files there are unknown, and nothing is deleted on a guess.
            _ => return,
        };
        if is_free {
            self.judge(plan, path, have, want);
        } else {
            let why = "it has other changes by now, in a repository of its own".to_owned();
            plan.left.push(NotKept { path: path.to_string(), why });
        }
    }

    /// Judges files that are older than the checkpoint but not in it. A file that was moved since is deleted, because
    /// it is restored under its old name. Any other existed as an ignored file, so it stays.
    fn judge_older(&self, plan: &mut RestorePlan, older: Vec<(RelPath, PathState)>) {
        if older.is_empty() {
            return;
        }
        let comes_back = |file: &&RestoreFile| matches!(file.act, RestoreAct::Create | RestoreAct::Overwrite);
        let identities = plan.files.iter().filter(comes_back).filter_map(|file| self.identity(&file.path, &file.want));
        let identities: HashSet<Identity> = identities.collect();
        for (path, have) in older {
            if self.identity(&path, &have).is_some_and(|identity| identities.contains(&identity)) {
                self.judge(plan, path, have, PathState::Nothing);
            } else {
                let why = "it may be older than the checkpoint, which does not have it".to_owned();
                plan.left.push(NotKept { path: path.to_string(), why });
            }
        }
    }

    fn identity(&self, path: &RelPath, state: &PathState) -> Option<Identity> {
        match state {
            PathState::File { content: ContentSource::Version(version), .. } => Some(Identity::Content(*version)),
            PathState::File { content, .. } => {
                content.load(self.workspace(), path).ok().map(|content| Identity::Content(ContentHash::of(&content)))
            }
            PathState::Link { target } => Some(Identity::Target(target.clone())),
            PathState::Nothing | PathState::Directory { .. } | PathState::NotKept => None,
        }
    }

    /// Decides the effect on a path. A file that did not exist then may be deleted.
    fn judge(&self, plan: &mut RestorePlan, path: RelPath, have: PathState, want: PathState) {
        let mut leave = |why: String| plan.left.push(NotKept { path: path.to_string(), why });
        let act = match (&have, &want) {
            (PathState::Nothing, PathState::Nothing) | (PathState::NotKept, PathState::NotKept) => return,
            // An extra empty directory does no harm.
            (PathState::Directory { .. }, PathState::Nothing) => return plan.empty.push(path),
            (PathState::Directory { mode }, PathState::Directory { mode: wanted }) if mode == wanted => return,
            (PathState::Link { target }, PathState::Link { target: wanted }) if target == wanted => return,
            (_, PathState::NotKept) => return leave("what it was then was not kept".to_owned()),
            (PathState::NotKept, _) => return leave("what it is now is not kept, so it is not overwritten".to_owned()),
            (PathState::File { content, mode }, PathState::File { content: wanted, mode: wanted_mode })
                if is_same_content(self.workspace(), &path, content, wanted) =>
            {
                if wanted_mode.is_none() || mode == wanted_mode {
                    return;
                }
                RestoreAct::SetMode
            }
            (PathState::Nothing, _) => RestoreAct::Create,
            (_, PathState::Nothing) => RestoreAct::Delete,
            (PathState::Directory { .. }, PathState::Directory { .. }) => RestoreAct::SetMode,
            _ => RestoreAct::Overwrite,
        };
        match self.check_is_not_protected(&path) {
            Ok(()) => plan.files.push(RestoreFile { path, act, have, want }),
            Err(refusal) => leave(refusal.to_string()),
        }
    }

    /// Whether a file is younger than the checkpoint. If its age is unknown, it counts as older, because nothing is
    /// deleted on a guess.
    fn is_born_after(&self, path: &RelPath, then: &RestorePoint<'_>) -> bool {
        let at = then.base.as_ref().map_or(Millis::MAX, |base| base.info.at);
        put_back::born(self.workspace().root(), path).is_some_and(|born| born >= at)
    }
}

impl Session {
    /// Removes files from a plan whose present content a model must not overwrite: git does not have it, and the
    /// session has neither written nor read it. Returns their paths.
    pub(crate) fn leave_unread(&mut self, plan: &mut RestorePlan) -> Vec<RelPath> {
        let mut unread = Vec::new();
        plan.files.retain(|file| {
            let is_known = match &file.have {
                PathState::File { content: ContentSource::Version(version), .. } if file.act != RestoreAct::SetMode => {
                    let seen = self.view_of(&file.path).map(|view| view.last_known());
                    seen == Some(OutsideState::Version(*version)) || self.has_written(&file.path, *version)
                }
                _ => true,
            };
            if !is_known {
                unread.push(file.path.clone());
            }
            is_known
        });
        unread
    }

    fn has_written(&self, path: &RelPath, version: ContentHash) -> bool {
        let which = EventFilter { path: Some(path.clone()), session: Some(self.id()), ..EventFilter::default() };
        let last = self.workspace().ask(|store| store.events(&which, 1)).unwrap_or_default();
        last.first().is_some_and(|event| event.after == Some(version))
    }
}

impl RestorePlan {
    /// A plan that is not based on a checkpoint.
    fn of(files: Vec<RestoreFile>) -> Self {
        let (left, empty, standing) = (Vec::new(), Vec::new(), Vec::new());
        Self { moment: now(), checkpoint: None, before: None, files, left, empty, standing }
    }

    /// The effects of a restore apart from contents.
    pub(crate) fn entries_of(&self, restored: &Restored) -> Vec<EntryOutcome> {
        let is_done = |file: &&RestoreFile| restored.files.iter().any(|(path, _)| *path == file.path);
        let done = self.files.iter().filter(is_done).filter(|file| entry_undo::entry_change(file).is_some());
        done.map(|file| entry_undo::outcome(&file.path, &file.have, &file.want)).collect()
    }
}

/// The present state of a path in the work tree.
fn on_disk(workspace: &Workspace, path: &RelPath) -> PathState {
    let Ok(stat) = lstat(workspace, path) else { return PathState::Nothing };
    let mode = stat.st_mode & 0o7777;
    let content = || read_file(workspace, path, u64::MAX).ok().flatten();
    let target = || fs::read_link(workspace.path().join(path.as_str())).ok()?.into_os_string().into_string().ok();
    let state = match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => {
            content().map(|bytes| PathState::File { content: ContentSource::Version(ContentHash::of(&bytes)), mode: Some(mode) })
        }
        FileType::Symlink => target().map(|target| PathState::Link { target }),
        FileType::Directory => Some(PathState::Directory { mode }),
        _ => None,
    };
    state.unwrap_or(PathState::NotKept)
}

/// The state to restore.
struct RestorePoint<'a> {
    moment: Millis,
    /// The last checkpoint from before that time.
    base: Option<Checkpoint>,
    /// The oldest checkpoint, if that time is before every checkpoint.
    first: Option<Checkpoint>,
    /// Newest first.
    events: &'a [FileEvent],
    /// The number of events after `moment`.
    later: usize,
}

impl RestorePoint<'_> {
    /// The states that events imply where the checkpoint does not know them: it is older, or there is none.
    fn by_events(&self) -> HashMap<&RelPath, PathState> {
        let mut states = HashMap::new();
        match &self.base {
            // Oldest first, so that the last event of a path wins.
            Some(base) => {
                let since = self.events[self.later..].iter().take_while(|event| event.at > base.info.at);
                for event in since.collect::<Vec<_>>().into_iter().rev() {
                    if event.moved_to.is_some() {
                        states.insert(&event.path, PathState::Nothing);
                    }
                    let after = event.entry.as_ref().map_or(&PathEntry::File(None), |entry| &entry.after);
                    states.insert(event.name_after(), state_of(after, event.after));
                }
            }
            // Newest first, so that the state before the first event after that time wins.
            None => {
                for event in &self.events[..self.later] {
                    if event.moved_to.is_some() {
                        states.insert(event.name_after(), PathState::Nothing);
                    }
                    let file = PathEntry::File(event.mode);
                    let before = event.entry.as_ref().map_or(&file, |entry| &entry.before);
                    states.insert(&event.path, state_of(before, event.before));
                }
            }
        }
        states
    }
}

/// The time of the oldest event of each path. Events are newest first.
fn oldest_by_path(events: &[FileEvent]) -> HashMap<&RelPath, Millis> {
    events.iter().flat_map(|event| [(&event.path, event.at), (event.name_after(), event.at)]).collect()
}

/// Recognizes a file under another name.
#[derive(PartialEq, Eq, Hash)]
enum Identity {
    Content(ContentHash),
    Target(String),
}

/// Whether ignore files exclude a path; loaded when first needed.
#[derive(Default)]
struct Ignored(Option<FileRecheck>);

impl Ignored {
    fn is_ignored(&mut self, session: &Session, path: &RelPath) -> bool {
        if self.0.is_none() {
            self.0 = FileRecheck::of(session.workspace().root()).ok();
        }
        let (dir, name) = split_path(path.as_str());
        self.0.as_mut().is_some_and(|recheck| recheck.check(dir, &[name]) == [RecheckResult::Ignored])
    }
}
