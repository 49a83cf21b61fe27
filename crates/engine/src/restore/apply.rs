//! Carries out a restore.

use std::{
    collections::{BTreeSet, HashSet},
    thread,
    time::Duration,
};

use surehand_core::{
    Blob, Content, ContentHash, Refusal, RelPath,
    outcome::FileOutcome,
    plan::{self, RestoredContent},
};
use surehand_store::{ChangeId, FileEvent, NotKept, StoreRecord};

use super::{RestoreAct, RestoreFile, RestorePlan, checkpoint_tree::PathState, entry_undo::entry_change};
use crate::{
    change_log::{ChangeOrigin, fresh_change},
    change_record::MadeBy,
    checkpoint::read_file,
    disk::{
        commit::{CommitError, FileChange, NameSync, commit},
        put_back,
    },
    file_cache::{PlannedFile, keep_first},
    session::{ATTEMPTS, Session},
};

/// The result of a restore.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Restored {
    /// The recorded change, for `undo`; empty if nothing was done.
    pub changes: Vec<ChangeId>,
    /// The files that were restored, with the act for each.
    pub files: Vec<(RelPath, RestoreAct)>,
    /// The contents that were written.
    pub outcomes: Vec<FileOutcome>,
    /// The files that could not be restored, with the reasons.
    pub failed: Vec<NotKept>,
    /// Whether a file replaced a directory, or the reverse. Undo cannot revert that; another restore can.
    pub has_swapped: bool,
}

pub(crate) const TOOL: &str = "restore";

/// The change and the origin under which a restore is recorded.
struct RestoreRecord<'a> {
    change: &'a ChangeId,
    origin: &'a ChangeOrigin<'a>,
}

/// A file with its content after the restore.
struct WantedFile<'a> {
    file: &'a RestoreFile,
    content: Option<Content>,
    mode: Option<u32>,
}

impl Session {
    /// Carries out a plan of [`Session::plan_restore`]. Files that changed after the plan are restored all the same,
    /// and their content is kept for undo.
    pub fn restore(&mut self, plan: &RestorePlan) -> Restored {
        let entries = plan.files.iter().filter_map(|file| Some((file.path.clone(), entry_change(file)?))).collect();
        let origin = ChangeOrigin { entries, ..ChangeOrigin::of(TOOL) };
        self.restore_as(plan, &fresh_change(), &origin, HashSet::new())
    }

    /// Like [`Session::restore`], as a part of this change. `origin` describes changes to paths apart from contents;
    /// the paths in `recorded` already have their events.
    pub(super) fn restore_as(
        &mut self,
        plan: &RestorePlan,
        change: &ChangeId,
        origin: &ChangeOrigin<'_>,
        mut recorded: HashSet<RelPath>,
    ) -> Restored {
        let mut restored = Restored::default();
        let act = RestoreRecord { change, origin };
        let root = self.workspace().clone();
        let root = root.root();
        let mut failed: BTreeSet<RelPath> = BTreeSet::new();
        // First remove whatever occupies the place of something else.
        for file in &plan.files {
            let removed = match (&file.have, &file.want) {
                (PathState::Link { target }, _) => put_back::remove_link(root, &file.path, target),
                (PathState::Directory { .. }, PathState::File { .. } | PathState::Link { .. } | PathState::Nothing) => {
                    put_back::remove_directory(root, &file.path)
                }
                // An empty directory that another program left there would block the path.
                (PathState::Nothing, PathState::File { .. } | PathState::Link { .. }) => {
                    let _ = put_back::remove_directory(root, &file.path);
                    Ok(())
                }
                _ => Ok(()),
            };
            if let Err(error) = removed {
                failed.insert(file.path.clone());
                restored.fail(&file.path, error);
            }
        }
        let files = || plan.files.iter().filter(|file| !failed.contains(&file.path));
        let (deletes, writes): (Vec<&RestoreFile>, Vec<&RestoreFile>) = files()
            .filter(|file| matches!(file.have, PathState::File { .. }) || matches!(file.want, PathState::File { .. }))
            .filter(|file| file.act != RestoreAct::SetMode)
            .partition(|file| !matches!(file.want, PathState::File { .. }));
        if is_in_the_way(&deletes, &writes) {
            restored.has_swapped = true;
            recorded.extend(self.commit_restore(&act, &deletes, &mut restored, &mut failed));
            remove_empty_directories(self, plan);
            recorded.extend(self.commit_restore(&act, &writes, &mut restored, &mut failed));
        } else {
            remove_empty_directories(self, plan);
            let both: Vec<&RestoreFile> = deletes.iter().chain(&writes).copied().collect();
            recorded.extend(self.commit_restore(&act, &both, &mut restored, &mut failed));
        }
        remove_empty_directories(self, plan);
        let mut unmade = failed.clone();
        for file in plan.files.iter().filter(|file| !failed.contains(&file.path)) {
            let put = match &file.want {
                PathState::Link { target } => put_back::make_link(root, &file.path, target),
                PathState::Directory { mode } => put_back::make_directory(root, &file.path, *mode),
                PathState::File { mode: Some(mode), .. } => put_back::set_mode(root, &file.path, *mode),
                PathState::File { mode: None, .. } | PathState::Nothing | PathState::NotKept => Ok(()),
            };
            match put {
                Ok(()) => restored.files.push((file.path.clone(), file.act)),
                Err(error) => {
                    unmade.insert(file.path.clone());
                    restored.fail(&file.path, error);
                }
            }
        }
        let done = plan.files.iter().filter(|file| !unmade.contains(&file.path) && !recorded.contains(&file.path));
        let of_entries: Vec<&RestoreFile> = done.filter(|file| origin.entries.contains_key(&file.path)).collect();
        of_entries.iter().for_each(|file| self.record_entry(&act, file));
        if !of_entries.is_empty() || !recorded.is_empty() {
            restored.changes.push(change.clone());
        }
        self.workspace().flush();
        restored
    }

    /// Records the change to a path without a content write.
    fn record_entry(&self, act: &RestoreRecord<'_>, file: &RestoreFile) {
        let version = match &file.want {
            PathState::File { .. } => {
                let content = read_file(self.workspace(), &file.path, u64::MAX).ok().flatten();
                content.map(|content| ContentHash::of(&content))
            }
            PathState::Nothing | PathState::Link { .. } | PathState::Directory { .. } | PathState::NotKept => None,
        };
        let event = self.event_of(act.origin, act.change, &file.path);
        self.workspace().record(StoreRecord::Happened(FileEvent { before: version, after: version, ..event }));
    }

    /// Commits the files, as many as possible at once, and retries while they keep changing. Returns the files that are
    /// recorded.
    fn commit_restore(
        &mut self,
        act: &RestoreRecord<'_>,
        files: &[&RestoreFile],
        restored: &mut Restored,
        failed: &mut BTreeSet<RelPath>,
    ) -> Vec<RelPath> {
        let mut wanted: Vec<WantedFile<'_>> = Vec::new();
        for file in files {
            match self.wanted(file) {
                Ok(want) => wanted.push(want),
                Err(why) => {
                    failed.insert(file.path.clone());
                    restored.fail(&file.path, why);
                }
            }
        }
        let mut last = String::new();
        for attempt in 0..ATTEMPTS {
            let mut plans = Vec::new();
            wanted.retain(|want| match self.plan_file(want) {
                Ok(planned) => {
                    plans.extend(planned);
                    true
                }
                Err(why) => {
                    failed.insert(want.file.path.clone());
                    restored.fail(&want.file.path, why);
                    false
                }
            });
            if plans.is_empty() {
                return Vec::new();
            }
            let changes: Vec<FileChange<'_>> =
                plans.iter().map(|file| FileChange { planned: &file.planned, identity: file.facts.identity }).collect();
            match commit(&self.workspace().copy, &changes, NameSync::AtOnce) {
                Ok(committed) => {
                    let written = plans.iter().map(|file| file.planned.path().clone()).collect();
                    let outcomes = self.record_change(act.change, act.origin, plans, committed, MadeBy::Us);
                    restored.outcomes.extend(outcomes);
                    return written;
                }
                Err(CommitError::Changed(path)) => {
                    self.forget_file(&path);
                    last = format!("another program keeps writing {path}");
                }
                Err(CommitError::Refused(refusal) | CommitError::NoRoom(refusal)) => {
                    // One file blocks all: leave it out and try the rest again.
                    let path = refusal.known_path().filter(|path| wanted.iter().any(|want| want.file.path == *path));
                    let Some(path) = path else {
                        last = refusal.to_string();
                        break;
                    };
                    wanted.retain(|want| want.file.path != path);
                    failed.insert(path.clone());
                    restored.fail(&path, refusal.to_string());
                }
                Err(error @ CommitError::Stopped) => {
                    last = error.to_string();
                    break;
                }
            }
            if attempt > 3 {
                thread::sleep(Duration::from_millis(1 << attempt.min(6)));
            }
        }
        for want in wanted {
            failed.insert(want.file.path.clone());
            restored.fail(&want.file.path, &last);
        }
        Vec::new()
    }

    fn wanted<'a>(&self, file: &'a RestoreFile) -> Result<WantedFile<'a>, String> {
        let PathState::File { content, mode } = &file.want else { return Ok(WantedFile { file, content: None, mode: None }) };
        let bytes = content.load(self.workspace(), &file.path)?;
        let content =
            if bytes.len() as u64 > self.limits().file_bytes { Content::Blob(Blob::new(bytes)) } else { Content::new(bytes) };
        Ok(WantedFile { file, content: Some(content), mode: *mode })
    }

    /// Plans the write of a file from its present content; `None` if the content is already right.
    fn plan_file(&mut self, want: &WantedFile<'_>) -> Result<Option<PlannedFile>, String> {
        let in_words = |refusal: Refusal| refusal.to_string();
        let gathered = self.gather_to_restore(&want.file.path).map_err(in_words)?;
        if gathered.present.content() == want.content {
            return Ok(None);
        }
        let restored = RestoredContent { content: want.content.clone(), mode: want.mode, lines: None };
        let planned = plan::restore(&self.target(&gathered), restored).map_err(in_words)?;
        keep_first(self.workspace(), &planned).map_err(in_words)?;
        Ok(Some(PlannedFile::of(planned, &gathered)))
    }
}

impl Restored {
    fn fail(&mut self, path: &RelPath, why: impl ToString) {
        self.failed.push(NotKept { path: path.to_string(), why: why.to_string() });
    }
}

/// Whether a file must be deleted before another can be written, because a file becomes a directory or the reverse.
fn is_in_the_way(deletes: &[&RestoreFile], writes: &[&RestoreFile]) -> bool {
    let is_above_any = |above: &[&RestoreFile], below: &[&RestoreFile]| {
        let above: BTreeSet<&RelPath> = above.iter().map(|file| &file.path).collect();
        below.iter().any(|file| parents(&file.path).any(|dir| above.contains(&dir)))
    };
    is_above_any(deletes, writes) || is_above_any(writes, deletes)
}

fn parents(path: &RelPath) -> impl Iterator<Item = RelPath> {
    std::iter::successors(path.parent(), RelPath::parent)
}

/// Removes directories that only held deleted files, and empty ones that block a file.
fn remove_empty_directories(session: &Session, plan: &RestorePlan) {
    let deleted = plan.files.iter().filter(|file| file.act == RestoreAct::Delete);
    let mut directories: BTreeSet<RelPath> = deleted.flat_map(|file| parents(&file.path)).collect();
    let is_file_or_link = |file: &&RestoreFile| matches!(file.want, PathState::File { .. } | PathState::Link { .. });
    let wanted: BTreeSet<&RelPath> = plan.files.iter().filter(is_file_or_link).map(|file| &file.path).collect();
    for empty in plan.empty.iter().filter(|empty| parents(empty).any(|dir| wanted.contains(&dir))) {
        directories.extend(parents(empty).chain([empty.clone()]));
    }
    // Innermost directories first. Directories that are not empty stay.
    for dir in directories.into_iter().rev().filter(|dir| !plan.standing.contains(dir)) {
        let _ = put_back::remove_directory(session.workspace().root(), &dir);
    }
}
