//! Restores files to their state at a checkpoint, at a time, or right after a change. Deleted, renamed and binary
//! files, permissions, links and empty directories are restored, too.
//!
//! Before any write, a checkpoint is taken, so that everything a restore overwrites or deletes can be recovered.
//! Contents go through a commit like every other change, and undo can revert them.

mod apply;
mod entry_undo;
mod kept_work;
mod picture;
mod target;

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    fs,
};

use rustix::fs::FileType;

use surehand_core::{ContentHash, OutsideState, Refusal, RelPath, outcome::undo::EntryOutcome};
use surehand_store::{Checkpoint, CheckpointId, CheckpointInfo, EventFilter, FileEvent, Millis, NotKept, StoreError};

use self::picture::{Content, Picture, Thing, is_same_content};
pub use self::{
    apply::Restored,
    kept_work::KeptFile,
    target::{RestoreTo, RestoreToError, reads_as_time},
};
pub(crate) use self::{apply::TOOL, entry_undo::EntryUndo};
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
    /// The checkpoint of the present state; `None` for a preview.
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
    have: Thing,
    want: Thing,
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
        let (base, moment, later) = self.base(&request.to, &events)?;
        let first = match base {
            Some(_) => None,
            None => workspace.ask(|store| match store.checkpoints(usize::MAX)?.last() {
                Some(first) => store.checkpoint(&first.id),
                None => Ok(None),
            })?,
        };
        let then = Then { base: base.as_ref(), first: first.as_ref(), events: &events, later };
        let found = self.compare(&then, present, &chosen)?;
        let checkpoint = base.map(|base| base.info);
        let Found { files, left, empty, standing } = found;
        Ok(RestorePlan { moment, checkpoint, before: None, files, left, empty, standing })
    }

    /// A plan that restores one file to a version that is in the store.
    pub(crate) fn plan_of_version(&self, path: RelPath, version: ContentHash) -> RestorePlan {
        let want = Thing::File { content: Content::Version(version), mode: None };
        let file = RestoreFile { path, act: RestoreAct::Overwrite, have: Thing::NotKept, want };
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

    /// The checkpoint to start from, the time that is meant, and the number of events after it. Events are newest
    /// first.
    fn base(&self, to: &RestoreTo, events: &[FileEvent]) -> Result<(Option<Checkpoint>, Millis, usize), RestoreError> {
        let workspace = self.workspace();
        let read = |id: &CheckpointId| workspace.ask(|store| store.checkpoint(id));
        let (moment, later) = match to {
            RestoreTo::Checkpoint(id) => {
                let checkpoint = read(id)?.ok_or_else(|| RestoreError::Gone(format!("checkpoint {id}")))?;
                let at = checkpoint.info.at;
                let later = events.iter().take_while(|event| event.at > at).count();
                // A change in the same millisecond may be in the checkpoint or not; the checkpoint decides.
                return Ok((Some(checkpoint), at, later));
            }
            RestoreTo::Change(change) => {
                let later = events.iter().position(|event| event.change == *change);
                let later = later.ok_or_else(|| RestoreError::Gone(format!("change {change}")))?;
                (events[later].at, later)
            }
            RestoreTo::Time(moment) => (*moment, events.iter().take_while(|event| event.at > *moment).count()),
        };
        let checkpoints = workspace.ask(|store| store.checkpoints(usize::MAX))?;
        let base = match checkpoints.iter().find(|checkpoint| checkpoint.at <= moment) {
            Some(info) => read(&info.id)?,
            None if later == 0 => {
                return Err(RestoreError::TooEarly { oldest: checkpoints.into_iter().next_back().map(Box::new) });
            }
            None => None,
        };
        Ok((base, moment, later))
    }

    fn compare(&self, then: &Then<'_>, now: &Checkpoint, chosen: &[RelPath]) -> Result<Found, RestoreError> {
        let workspace = self.workspace().clone();
        let now_picture = Picture::of(&workspace, Some(now)).map_err(RestoreError::Git)?;
        let then_picture = Picture::of(&workspace, then.base).map_err(RestoreError::Git)?;
        let mut by_events = then.by_events();
        if let Some(first) = then.first {
            // A file of the oldest checkpoint existed earlier too, unless a recorded change is older than the
            // checkpoint.
            let picture = Picture::of(&workspace, Some(first)).map_err(RestoreError::Git)?;
            let oldest = oldest_by_path(&then.events[..then.later]);
            let is_older = |path: &RelPath| oldest.get(path).is_none_or(|at| *at >= first.info.at);
            by_events.iter_mut().filter(|(path, _)| is_older(path)).for_each(|(path, thing)| *thing = picture.at(path));
        }
        let mut paths: BTreeSet<RelPath> = now.files.iter().map(|file| file.path.clone()).collect();
        if then.base.is_some() {
            paths.extend(then.base.iter().flat_map(|base| &base.files).map(|file| file.path.clone()));
            paths.extend(then_picture.committed_otherwise(&now_picture));
            paths.extend(by_events.keys().map(|path| (*path).clone()));
        } else {
            paths = by_events.keys().map(|path| (*path).clone()).collect();
        }
        let is_chosen = |path: &RelPath| {
            let is_in = |dir: &RelPath| {
                path.as_str().strip_prefix(dir.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            };
            chosen.is_empty() || chosen.iter().any(is_in)
        };
        let mut found = Found::default();
        let (mut ignored, mut older, mut nested) = (Ignored::default(), Vec::new(), NestedPaths::default());
        for path in paths.into_iter().filter(is_chosen) {
            let have = now_picture.at(&path);
            let want = match by_events.get(&path) {
                Some(after) => after.clone(),
                None => then_picture.at(&path),
            };
            if nested.contain(&workspace, &path) {
                self.judge_nested(&mut found, path, &now_picture, want);
                continue;
            }
            // A checkpoint lists only empty directories.
            if let (Thing::Nothing, Thing::Directory { .. }) = (&have, &want)
                && let there @ Thing::Directory { .. } = on_disk(&workspace, &path)
            {
                found.standing.push(path.clone());
                self.judge(&mut found, path, there, want);
                continue;
            }
            let is_on_record = by_events.contains_key(&path);
            let is_known_absent = is_on_record || then.base.is_some_and(|base| base.info.is_whole);
            if want == Thing::Nothing && !is_known_absent {
                continue;
            }
            if want == Thing::Nothing && matches!(have, Thing::File { .. } | Thing::Link { .. }) {
                if ignored.is_ignored(self, &path) {
                    continue;
                }
                if !is_on_record && !self.is_born_after(&path, then) {
                    older.push((path, have));
                    continue;
                }
            }
            self.judge(&mut found, path, have, want);
        }
        self.judge_older(&mut found, older);
        Ok(found)
    }

    /// A file of a nested repository is restored if it is gone, or if that repository itself has its present content.
    fn judge_nested(&self, found: &mut Found, path: RelPath, now: &Picture<'_>, want: Thing) {
        let have = on_disk(self.workspace(), &path);
        let is_free = match (&have, &want) {
            (Thing::File { content, .. }, Thing::File { content: wanted, .. }) if content == wanted => true,
            (Thing::Nothing, Thing::File { .. } | Thing::Link { .. }) => true,
            (_, Thing::File { .. } | Thing::Link { .. }) => have == want || !now.lists(&path),
            // Other files there are unknown, and nothing is deleted on a guess.
            _ => return,
        };
        if is_free {
            self.judge(found, path, have, want);
        } else {
            let why = "it has other changes by now, in a repository of its own".to_owned();
            found.left.push(NotKept { path: path.to_string(), why });
        }
    }

    /// Judges files that are older than the checkpoint but not in it. A file that was moved since is deleted, because
    /// it is restored under its old name. Any other existed as an ignored file, so it stays.
    fn judge_older(&self, found: &mut Found, older: Vec<(RelPath, Thing)>) {
        if older.is_empty() {
            return;
        }
        let comes_back = |file: &&RestoreFile| matches!(file.act, RestoreAct::Create | RestoreAct::Overwrite);
        let identities = found.files.iter().filter(comes_back).filter_map(|file| self.identity(&file.path, &file.want));
        let identities: HashSet<Identity> = identities.collect();
        for (path, have) in older {
            if self.identity(&path, &have).is_some_and(|identity| identities.contains(&identity)) {
                self.judge(found, path, have, Thing::Nothing);
            } else {
                let why = "it was there before the checkpoint, which does not know of it".to_owned();
                found.left.push(NotKept { path: path.to_string(), why });
            }
        }
    }

    fn identity(&self, path: &RelPath, thing: &Thing) -> Option<Identity> {
        match thing {
            Thing::File { content: Content::Version(version), .. } => Some(Identity::Content(*version)),
            Thing::File { content, .. } => {
                content.load(self.workspace(), path).ok().map(|content| Identity::Content(ContentHash::of(&content)))
            }
            Thing::Link { target } => Some(Identity::Target(target.clone())),
            Thing::Nothing | Thing::Directory { .. } | Thing::NotKept => None,
        }
    }

    /// Decides the effect on a path. A file that did not exist then may be deleted.
    fn judge(&self, found: &mut Found, path: RelPath, have: Thing, want: Thing) {
        let mut leave = |why: String| found.left.push(NotKept { path: path.to_string(), why });
        let act = match (&have, &want) {
            (Thing::Nothing, Thing::Nothing) | (Thing::NotKept, Thing::NotKept) => return,
            // An extra empty directory does no harm.
            (Thing::Directory { .. }, Thing::Nothing) => return found.empty.push(path),
            (Thing::Directory { mode }, Thing::Directory { mode: wanted }) if mode == wanted => return,
            (Thing::Link { target }, Thing::Link { target: wanted }) if target == wanted => return,
            (_, Thing::NotKept) => return leave("what it was then was not kept".to_owned()),
            (Thing::NotKept, _) => return leave("what it is now is not kept, so it is not overwritten".to_owned()),
            (Thing::File { content, mode }, Thing::File { content: wanted, mode: wanted_mode })
                if is_same_content(self.workspace(), &path, content, wanted) =>
            {
                if wanted_mode.is_none() || mode == wanted_mode {
                    return;
                }
                RestoreAct::SetMode
            }
            (Thing::Nothing, _) => RestoreAct::Create,
            (_, Thing::Nothing) => RestoreAct::Delete,
            (Thing::Directory { .. }, Thing::Directory { .. }) => RestoreAct::SetMode,
            _ => RestoreAct::Overwrite,
        };
        match self.check_is_not_protected(&path) {
            Ok(()) => found.files.push(RestoreFile { path, act, have, want }),
            Err(refusal) => leave(refusal.to_string()),
        }
    }

    /// Whether a file is younger than the checkpoint. If its age is unknown, it counts as older, because nothing is
    /// deleted on a guess.
    fn is_born_after(&self, path: &RelPath, then: &Then<'_>) -> bool {
        let at = then.base.map_or(Millis::MAX, |base| base.info.at);
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
                Thing::File { content: Content::Version(version), .. } if file.act != RestoreAct::SetMode => {
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
fn on_disk(workspace: &Workspace, path: &RelPath) -> Thing {
    let Ok(stat) = lstat(workspace, path) else { return Thing::Nothing };
    let mode = stat.st_mode & 0o7777;
    let content = || read_file(workspace, path, u64::MAX).ok().flatten();
    let target = || fs::read_link(workspace.path().join(path.as_str())).ok()?.into_os_string().into_string().ok();
    let thing = match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => {
            content().map(|bytes| Thing::File { content: Content::Version(ContentHash::of(&bytes)), mode: Some(mode) })
        }
        FileType::Symlink => target().map(|target| Thing::Link { target }),
        FileType::Directory => Some(Thing::Directory { mode }),
        _ => None,
    };
    thing.unwrap_or(Thing::NotKept)
}

/// The state to restore.
struct Then<'a> {
    base: Option<&'a Checkpoint>,
    /// The oldest checkpoint, if that state is older than every checkpoint.
    first: Option<&'a Checkpoint>,
    /// Newest first.
    events: &'a [FileEvent],
    /// The number of events after the time that is meant.
    later: usize,
}

impl Then<'_> {
    /// The states that events imply where the checkpoint does not know them: it is older, or there is none.
    fn by_events(&self) -> HashMap<&RelPath, Thing> {
        let mut things = HashMap::new();
        let file = |version: Option<ContentHash>, mode: Option<u32>| match version {
            Some(version) => Thing::File { content: Content::Version(version), mode },
            None => Thing::Nothing,
        };
        match self.base {
            // Oldest first, so that the last event of a path wins.
            Some(base) => {
                let since = self.events[self.later..].iter().take_while(|event| event.at > base.info.at);
                for event in since.collect::<Vec<_>>().into_iter().rev() {
                    if event.moved_to.is_some() {
                        things.insert(&event.path, Thing::Nothing);
                    }
                    let after = match &event.entry {
                        Some(entry) => entry_undo::thing(&entry.after, event.after),
                        None => file(event.after, None),
                    };
                    things.insert(event.name_after(), after);
                }
            }
            // Newest first, so that the state before the first event after that time wins.
            None => {
                for event in &self.events[..self.later] {
                    if event.moved_to.is_some() {
                        things.insert(event.name_after(), Thing::Nothing);
                    }
                    let before = match &event.entry {
                        Some(entry) => entry_undo::thing(&entry.before, event.before),
                        None => file(event.before, event.mode),
                    };
                    things.insert(&event.path, before);
                }
            }
        }
        things
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

#[derive(Default)]
struct Found {
    files: Vec<RestoreFile>,
    left: Vec<NotKept>,
    empty: Vec<RelPath>,
    standing: Vec<RelPath>,
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
