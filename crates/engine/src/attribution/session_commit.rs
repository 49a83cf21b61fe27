//! Commits the work of one session, and nothing else.
//!
//! Git makes the commit from a second index, which has the content of HEAD and the lines of the session, so hooks,
//! signatures and settings apply. The index of the checkout gets the same lines first. Therefore, whenever this ends,
//! even by a crash, the work of the session is either staged or committed, and the next commit cannot revert it. If git
//! does not commit, the previous index is restored. The work tree is not touched.

use std::collections::{BTreeMap, HashSet};

use surehand_core::{
    Content, RelPath, Text,
    merge3::{MarkerNames, Merge3, merge3},
};
use surehand_store::SessionId;

use super::{
    committed::HeadCommit,
    session_work::{LeftWhy, LeftWork, SessionFile, SessionWorkError, WorkBase, WorkSide},
};
use crate::{
    git::{
        GitDirs, ObjectId, Objects,
        program::GitError,
        scratch::{ScratchRepository, write_blobs},
        staging_area::{
            ChangedEntry, IndexUpdate, StagedFile, StagingArea, changed_between, head_by_git, ignored, move_head, operation_in,
            parent_of,
        },
    },
    workspace::Workspace,
};

/// The work to commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionCommitRequest {
    /// The session whose work is committed.
    pub session: SessionId,
    /// Commits only these files and directories; empty means everything.
    pub paths: Vec<RelPath>,
}

/// The content of a session commit.
#[derive(Debug)]
#[non_exhaustive]
pub struct SessionCommitPlan {
    /// The files with work to commit, sorted by path.
    pub files: Vec<SessionFile>,
    /// The files with work that is left out. Some of them are also in `files`.
    pub left: Vec<SessionFile>,
    head: Option<ObjectId>,
    entries: Vec<PlannedEntry>,
}

impl SessionCommitPlan {
    /// The number of paths that the commit changes. A renamed file has two.
    pub fn entries(&self) -> usize {
        self.entries.len()
    }
}

/// A commit of a session's work.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionCommit {
    /// The commit id, in hexadecimal digits.
    pub id: String,
    /// The files that the commit changes, including those that hooks added.
    pub files: Vec<String>,
}

/// Why the work of a session was not committed. Except for `NotPutBack`, nothing has changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SessionCommitError {
    /// The workspace is not in a git work tree.
    #[error("this is not a git work tree")]
    NoRepository,
    /// Git is in the middle of an operation that a commit would end.
    #[error("a {what} is in progress; finish or abort it first")]
    InProgress {
        /// The operation, such as `merge` or `rebase`.
        what: &'static str,
    },
    /// A merge left conflicts that are not resolved.
    #[error("some files have conflicts that are not resolved; resolve them first")]
    Conflicts,
    /// The session has no uncommitted work in these paths.
    #[error("there is nothing to commit")]
    Nothing,
    /// Git did not commit, or a hook refused. Git has printed the reason.
    #[error("git made no commit; the index is as it was")]
    Refused,
    /// Git did not commit, and the previous index could not be restored.
    #[error("git made no commit, and the index cannot be put back as it was ({error}): the lines of the session are staged now")]
    NotPutBack {
        /// Why the index could not be restored.
        error: GitError,
    },
    /// Other commits were made during each attempt.
    #[error("other commits came in between each time; try again")]
    HeadMoves,
    /// The work of the session could not be determined.
    #[error(transparent)]
    Work(#[from] SessionWorkError),
    /// Git failed.
    #[error(transparent)]
    Git(#[from] GitError),
    /// Git's files could not be read.
    #[error("git's files cannot be read: {why}")]
    Unreadable {
        /// The reason.
        why: String,
    },
}

/// A path that the commit changes.
#[derive(Debug)]
struct PlannedEntry {
    /// Relative to the top of the work tree.
    path: String,
    /// The file in the commit; `None` if it is deleted.
    commit: Option<NewFile>,
    /// The entry in the index of the checkout.
    index_before: Option<StagedFile>,
    index_after: IndexAfter,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct NewFile {
    mode: u32,
    content: Content,
}

/// The effect on a file in the index of the checkout.
#[derive(Debug, PartialEq, Eq)]
enum IndexAfter {
    /// Unchanged, because it has changes that the person staged.
    Kept,
    /// Like the commit.
    Committed,
    /// The staged content with the lines of the session.
    Staged(NewFile),
}

/// The maximum number of attempts, if others commit in between.
const ATTEMPTS: usize = 3;

impl Workspace {
    /// Plans a commit of a session's work.
    pub fn plan_session_commit(&self, request: &SessionCommitRequest) -> Result<SessionCommitPlan, SessionCommitError> {
        let git = self.git_dirs().ok_or(SessionCommitError::NoRepository)?;
        if let Some(what) = operation_in(&git) {
            return Err(SessionCommitError::InProgress { what });
        }
        let tree = self.copy.tree.path().to_owned();
        let index = StagingArea::of(&tree, &git);
        if index.has_conflicts()? {
            return Err(SessionCommitError::Conflicts);
        }
        let head = HeadCommit::of(self).map_err(|error| SessionCommitError::Unreadable { why: error.to_string() })?;
        let work = self.session_work(&request.session, WorkBase::Commit)?;
        if let Some(why) = work.git_trouble {
            return Err(SessionCommitError::Unreadable { why });
        }
        let is_wanted = |file: &SessionFile| {
            let names = [&file.path_before, &file.path_after];
            let is_below = |path: &RelPath| names.into_iter().any(|name| name == path || name.relative_to(path).is_some());
            request.paths.is_empty() || request.paths.iter().any(is_below)
        };
        let mut files: Vec<SessionFile> = work.files.into_iter().filter(is_wanted).collect();
        let planner = EntryPlanner::new(self, &git, &index, &files)?;
        let mut entries = Vec::new();
        for file in &mut files {
            match planner.plan(file)? {
                Ok(planned) => entries.extend(planned),
                Err(why) => file.leave_out(why),
            }
        }
        let left = files.iter().filter(|file| !file.left.is_empty()).cloned().collect();
        files.retain(SessionFile::is_changed);
        Ok(SessionCommitPlan { files, left, head: head.map(|head| head.id), entries })
    }

    /// Commits the work of a session. Each message is a paragraph. If others commit in between, the work is planned
    /// again.
    pub fn commit_session(
        &self,
        request: &SessionCommitRequest,
        messages: &[String],
    ) -> Result<(SessionCommitPlan, SessionCommit), SessionCommitError> {
        for _ in 0..ATTEMPTS {
            let plan = self.plan_session_commit(request)?;
            if plan.files.is_empty() {
                return Err(SessionCommitError::Nothing);
            }
            match self.commit_planned(&plan, messages) {
                Err(SessionCommitError::HeadMoves) => {}
                Err(error) => return Err(error),
                Ok(commit) => return Ok((plan, commit)),
            }
        }
        Err(SessionCommitError::HeadMoves)
    }

    fn commit_planned(&self, plan: &SessionCommitPlan, messages: &[String]) -> Result<SessionCommit, SessionCommitError> {
        let git = self.git_dirs().ok_or(SessionCommitError::NoRepository)?;
        let tree = self.copy.tree.path();
        let scratch = ScratchRepository::new(Some(&git))?;
        let index = StagingArea::of(tree, &git);
        let (for_commit, for_index) = plan.updates(tree)?;
        let second = index.of_commit(scratch.place("index"), plan.head.as_ref())?;
        second.update(&for_commit)?;
        if head_by_git(tree)? != plan.head {
            return Err(SessionCommitError::HeadMoves);
        }
        let staged = PreStaged::stage(&index, plan, &for_index)?;
        let is_committed = second.commit(messages);
        let now = head_by_git(tree)?;
        let Some(commit) = now.filter(|now| Some(*now) != plan.head) else {
            staged.revert(&index)?;
            is_committed?;
            return Err(SessionCommitError::Refused);
        };
        if !is_committed? {
            // Another process has committed, and git noticed that.
            staged.revert(&index)?;
            return Err(SessionCommitError::HeadMoves);
        }
        let parent = parent_of(tree, &commit)?;
        if parent != plan.head {
            // Another process has committed, and git did not notice: the parent is a commit that was not planned for,
            // and this commit reverts it.
            if let Some(parent) = parent {
                move_head(tree, &commit, &parent)?;
            }
            staged.revert(&index)?;
            return Err(SessionCommitError::HeadMoves);
        }
        let changed = changed_between(tree, plan.head.as_ref(), &commit)?;
        follow_hooks(&index, &git, &changed, &for_commit)?;
        index.refresh();
        Ok(SessionCommit { id: commit.to_string(), files: changed.into_iter().map(|entry| entry.path).collect() })
    }
}

impl SessionFile {
    /// Leaves out all work of the session.
    fn leave_out(&mut self, why: LeftWhy) {
        self.path_after = self.path_before.clone();
        self.after = self.before.clone();
        self.left = vec![LeftWork::whole(why, Vec::new())];
    }
}

/// Plans the entries of files in the commit and in the index.
struct EntryPlanner<'a> {
    workspace: &'a Workspace,
    objects: Objects,
    staged: BTreeMap<String, StagedFile>,
    ignored: HashSet<String>,
}

impl<'a> EntryPlanner<'a> {
    fn new(
        workspace: &'a Workspace,
        git: &GitDirs,
        index: &StagingArea<'_>,
        files: &[SessionFile],
    ) -> Result<Self, SessionCommitError> {
        let in_tree = |path: &RelPath| workspace.copy.in_tree(path).to_string();
        let names = files.iter().flat_map(|file| [in_tree(&file.path_before), in_tree(&file.path_after)]).collect();
        let staged = index.files(&names)?;
        let is_new = |file: &&SessionFile| file.is_changed() && (file.before.is_none() || file.path_before != file.path_after);
        let new = files.iter().filter(is_new).map(|file| in_tree(&file.path_after));
        let new: Vec<String> = new.filter(|path| !staged.contains_key(path)).collect();
        let ignored = ignored(workspace.copy.tree.path(), &new)?;
        Ok(Self { workspace, objects: Objects::of(&git.common), staged, ignored })
    }

    /// The entries of a file. The inner error is the reason to leave it out.
    fn plan(&self, file: &SessionFile) -> Result<Result<Vec<PlannedEntry>, LeftWhy>, SessionCommitError> {
        if !file.is_changed() {
            return Ok(Ok(Vec::new()));
        }
        if !file.is_on_commit {
            return Ok(Err(LeftWhy::NotCommitted));
        }
        let in_tree = |path: &RelPath| self.workspace.copy.in_tree(path).to_string();
        let (old, new) = (in_tree(&file.path_before), in_tree(&file.path_after));
        if self.ignored.contains(&new) {
            return Ok(Err(LeftWhy::Ignored));
        }
        let mut entries = Vec::new();
        if old != new {
            let index_before = self.staged.get(&old).copied();
            let index_after = self.index_after_removal(file.before.as_ref(), index_before)?;
            entries.push(PlannedEntry { path: old, commit: None, index_before, index_after });
        }
        let before = file.before.as_ref().filter(|_| file.path_before == file.path_after);
        let index_before = self.staged.get(&new).copied();
        let index_after = match &file.after {
            None => self.index_after_removal(before, index_before)?,
            Some(after) => match self.index_after(file, before, after, index_before)? {
                Some(index_after) => index_after,
                None => return Ok(Err(LeftWhy::Staged)),
            },
        };
        let commit = file.after.as_ref().map(|after| NewFile { mode: after.mode, content: after.stored.clone() });
        entries.push(PlannedEntry { path: new, commit, index_before, index_after });
        Ok(Ok(entries))
    }

    /// If the session deleted a file, other staged changes of it stay.
    fn index_after_removal(
        &self,
        before: Option<&WorkSide>,
        staged: Option<StagedFile>,
    ) -> Result<IndexAfter, SessionCommitError> {
        Ok(match (before, staged) {
            (Some(before), Some(staged)) if !self.is_as(staged, before)? => IndexAfter::Kept,
            _ => IndexAfter::Committed,
        })
    }

    /// The effect on a file in the index; `None` if other changes are staged in the same place.
    fn index_after(
        &self,
        file: &SessionFile,
        before: Option<&WorkSide>,
        after: &WorkSide,
        staged: Option<StagedFile>,
    ) -> Result<Option<IndexAfter>, SessionCommitError> {
        let staged = match (before, staged) {
            (None, None) => return Ok(Some(IndexAfter::Committed)),
            // The person has staged the deletion.
            (Some(_), None) => return Ok(Some(IndexAfter::Kept)),
            (_, Some(staged)) => staged,
        };
        if let Some(before) = before
            && self.is_as(staged, before)?
        {
            return Ok(Some(IndexAfter::Committed));
        }
        let content = self.blob(staged)?;
        let mode = if before.is_some_and(|before| before.mode == staged.mode) { after.mode } else { staged.mode };
        // An entry without content only marks a file to be added (`git add --intent-to-add`).
        if before.is_none() && content.is_empty() {
            return Ok(Some(IndexAfter::Staged(NewFile { mode: after.mode, content: after.stored.clone() })));
        }
        let base = before.map(|before| before.stored.bytes()).unwrap_or_default();
        let merged = merged(base, &content, after.stored.bytes()).or_else(|| own_lines_on(file, &content));
        Ok(merged.map(|merged| match merged == content && mode == staged.mode {
            true => IndexAfter::Kept,
            false => IndexAfter::Staged(NewFile { mode, content: Content::new(merged) }),
        }))
    }

    fn is_as(&self, staged: StagedFile, side: &WorkSide) -> Result<bool, SessionCommitError> {
        Ok(staged.mode == side.mode && self.blob(staged)? == side.stored.bytes())
    }

    fn blob(&self, staged: StagedFile) -> Result<Vec<u8>, SessionCommitError> {
        // An entry of `git add --intent-to-add` names an object that may not exist.
        let found = self.objects.blob(&staged.id, usize::MAX);
        Ok(found.map_err(|error| SessionCommitError::Unreadable { why: error.to_string() })?.unwrap_or_default())
    }
}

/// Merges both changes of a content; `None` if they conflict.
fn merged(base: &[u8], one: &[u8], other: &[u8]) -> Option<Vec<u8>> {
    let merge = merge3(base, one, other).ok().filter(Merge3::is_clean)?;
    Some(merge.text(MarkerNames { mine: "", theirs: "" }))
}

/// Applies the lines of the session to a staged text, if all of its work is recorded by lines and nothing is left out.
fn own_lines_on(file: &SessionFile, staged: &[u8]) -> Option<Vec<u8>> {
    let is_stored_unchanged = |side: &Option<WorkSide>| side.as_ref().is_none_or(|side| side.content == side.stored);
    let is_plain = file.left.is_empty() && is_stored_unchanged(&file.before) && is_stored_unchanged(&file.after);
    let own = file.own_lines.as_ref().filter(|_| is_plain)?;
    let staged = Text::new(staged.to_vec()).ok()?;
    let text = own.put_on(&staged)?;
    Some(staged.with(text).ok()?.bytes().to_vec())
}

impl SessionCommitPlan {
    /// The updates for the index of the commit and for the index of the checkout. Writes the contents into the object
    /// database.
    fn updates(&self, tree: &std::path::Path) -> Result<(IndexUpdate, IndexUpdate), GitError> {
        let files = self.entries.iter().flat_map(|entry| {
            let staged = match &entry.index_after {
                IndexAfter::Staged(file) => Some(file),
                IndexAfter::Kept | IndexAfter::Committed => None,
            };
            [entry.commit.as_ref(), staged]
        });
        let contents: Vec<&[u8]> = files.flatten().map(|file| file.content.bytes()).collect();
        let mut ids = write_blobs(tree, &contents)?.into_iter();
        let mut file = |file: &NewFile| StagedFile { mode: file.mode, id: ids.next().expect("each content has an id") };
        let (mut for_commit, mut for_index) = (Vec::new(), Vec::new());
        for entry in &self.entries {
            let committed = entry.commit.as_ref().map(&mut file);
            for_commit.push((entry.path.clone(), committed));
            match &entry.index_after {
                IndexAfter::Kept => {}
                IndexAfter::Committed => for_index.push((entry.path.clone(), committed)),
                IndexAfter::Staged(staged) => for_index.push((entry.path.clone(), Some(file(staged)))),
            }
        }
        Ok((for_commit, for_index))
    }
}

/// The index of the checkout with the lines of a session, and the update that reverts it.
struct PreStaged {
    before: Option<Vec<u8>>,
    after: Option<Vec<u8>>,
    way_back: IndexUpdate,
}

impl PreStaged {
    fn stage(index: &StagingArea<'_>, plan: &SessionCommitPlan, update: &IndexUpdate) -> Result<Self, SessionCommitError> {
        let before = index.bytes()?;
        index.update(update)?;
        let is_changed = |entry: &&PlannedEntry| entry.index_after != IndexAfter::Kept;
        let way_back = plan.entries.iter().filter(is_changed).map(|entry| (entry.path.clone(), entry.index_before)).collect();
        Ok(Self { before, after: index.bytes()?, way_back })
    }

    /// Restores the index, byte by byte if no other process has written it.
    fn revert(self, index: &StagingArea<'_>) -> Result<(), SessionCommitError> {
        let put_back = || match index.bytes()? == self.after {
            true => index.put_back(self.before.as_deref()),
            false => index.update(&self.way_back),
        };
        put_back().map_err(|error| SessionCommitError::NotPutBack { error })
    }
}

/// Applies changes that hooks made in the commit to the index as well, unless something else is staged.
fn follow_hooks(index: &StagingArea<'_>, git: &GitDirs, changed: &[ChangedEntry], planned: &IndexUpdate) -> Result<(), GitError> {
    let planned: BTreeMap<&str, Option<StagedFile>> = planned.iter().map(|(path, file)| (path.as_str(), *file)).collect();
    let by_hooks: Vec<&ChangedEntry> =
        changed.iter().filter(|entry| planned.get(entry.path.as_str()) != Some(&entry.after)).collect();
    if by_hooks.is_empty() {
        return Ok(());
    }
    let staged = index.files(&by_hooks.iter().map(|entry| entry.path.clone()).collect())?;
    let objects = Objects::of(&git.common);
    let blob = |file: StagedFile| objects.blob(&file.id, usize::MAX).ok().flatten().unwrap_or_default();
    let mut update = IndexUpdate::new();
    for ChangedEntry { path, before, after } in by_hooks {
        let was = planned.get(path.as_str()).copied().unwrap_or(*before);
        let is = staged.get(path).copied();
        if is == was {
            update.push((path.clone(), *after));
        } else if let (Some(was), Some(is), Some(after)) = (was, is, *after)
            && let Some(content) = merged(&blob(was), &blob(is), &blob(after))
            && let [id] = write_blobs(index.tree(), &[&content])?[..]
        {
            update.push((path.clone(), Some(StagedFile { mode: is.mode, id })));
        }
    }
    index.update(&update)
}
