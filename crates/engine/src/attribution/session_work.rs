//! The work of one session: its lines, without the changes of others to the same files.
//!
//! The work on each file is applied to one of two bases: to the content at HEAD, which gives the content of a commit of
//! the session, or to the content that the session found, committed or not. Work that cannot be separated from the work
//! of others is left out and reported.

use std::{
    collections::{BTreeMap, HashSet},
    ops::Range,
};

use serde::Serialize;
use surehand_core::{Content, ContentHash, RelPath, Text, attribution::LeftCause, file_diff::FileDiff};
use surehand_store::{ChangeId, SessionId, StoreError};

use super::{
    blame::LineAuthor,
    committed::{CommittedFile, HeadCommit},
    session_file::{FileReading, OwnLines},
};
use crate::{
    change_log::NetChange,
    git::{
        conversion::Conversions,
        git_mode,
        program::GitError,
        scratch::{ScratchRepository, TreeFile},
    },
    workspace::Workspace,
};

/// The base that the work of a session is applied to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkBase {
    /// The commit at HEAD: the work left to commit. For a file without a commit, the base is the content that the
    /// session found.
    Commit,
    /// The content that the session found: all of its work, committed or not.
    Found,
}

/// The work of a session on all files.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SessionWork {
    /// Sorted by path. If all work on a file is left out, its two sides are equal.
    pub files: Vec<SessionFile>,
    /// The reason why git's data could not be read.
    pub git_trouble: Option<String>,
}

/// The work of a session on one file.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SessionFile {
    /// The path before the work, relative to the workspace root.
    pub path_before: RelPath,
    /// The path after the work, relative to the workspace root.
    pub path_after: RelPath,
    /// The base; `None` if there was no file.
    pub before: Option<WorkSide>,
    /// The base with the work of the session; `None` if it deleted the file.
    pub after: Option<WorkSide>,
    /// The work that is left out, from top to bottom.
    pub left: Vec<LeftWork>,
    /// Whether `before` is the content at HEAD.
    pub is_on_commit: bool,
    /// The lines of the session, for applying them to other texts.
    pub(crate) own_lines: Option<Box<OwnLines>>,
}

/// A file on one side of a comparison.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct WorkSide {
    /// The content in the work tree.
    pub content: Content,
    /// The content in git's object database. It differs if git converts line endings or encodings, or runs filters.
    pub stored: Content,
    /// As git records it: 0o100644, 0o100755 or 0o120000.
    pub mode: u32,
}

/// Work that is left out.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LeftWork {
    /// Zero-based indexes of lines in the present file; empty if this concerns the whole file or deleted lines.
    pub lines: Range<usize>,
    /// Zero-based indexes of removed lines in the base.
    pub removed: Range<usize>,
    /// The reason for leaving it out.
    pub why: LeftWhy,
    /// The authors whose work it cannot be separated from.
    pub others: Vec<LineAuthor>,
}

/// Why work is left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum LeftWhy {
    /// The lines replaced lines of others that the commit does not have.
    ReplacesOthers,
    /// Others have replaced the lines since.
    ReplacedByOthers,
    /// The lines are among lines of others that the commit does not have.
    AmongOthers,
    /// The file is binary, and others have changed it, too.
    NotText,
    /// Others have deleted or moved the file since.
    Removed,
    /// The file was deleted and created again, once by the session and once by others.
    Recreated,
    /// Both the session and others moved the file.
    Moved,
    /// Others created the file, and the commit does not have it.
    NotCommitted,
    /// Git ignores the file.
    Ignored,
    /// The index has other changes in the same place.
    Staged,
    /// Git converts the file, and its lines cannot be found in the stored form.
    Converted,
    /// The content before the work is no longer kept.
    NotKept,
    /// The path is not a regular file, or the file is too large.
    NotAFile,
    /// The file belongs to a submodule, or to another nested repository.
    Submodule,
}

impl From<LeftCause> for LeftWhy {
    fn from(cause: LeftCause) -> Self {
        match cause {
            LeftCause::ReplacesOthers => Self::ReplacesOthers,
            LeftCause::ReplacedByOthers => Self::ReplacedByOthers,
            LeftCause::AmongOthers => Self::AmongOthers,
        }
    }
}

impl LeftWork {
    pub(crate) fn whole(why: LeftWhy, others: Vec<LineAuthor>) -> Self {
        Self { lines: 0..0, removed: 0..0, why, others }
    }
}

/// Why the work of a session is not available.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SessionWorkError {
    /// A file could not be read.
    #[error("{path}: {error}")]
    Io {
        /// Path relative to the workspace root.
        path: RelPath,
        /// The error of the operating system.
        error: std::io::Error,
    },
    /// Git failed.
    #[error(transparent)]
    Git(#[from] GitError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl SessionFile {
    pub(crate) fn unchanged(path: RelPath, before: Option<WorkSide>) -> Self {
        Self {
            path_before: path.clone(),
            path_after: path,
            after: before.clone(),
            before,
            left: Vec::new(),
            is_on_commit: false,
            own_lines: None,
        }
    }

    /// Whether the file has work of the session that is not left out.
    pub fn is_changed(&self) -> bool {
        self.before != self.after || self.path_before != self.path_after
    }

    /// The difference between the two sides, by their content in the work tree.
    pub fn diff(&self) -> FileDiff {
        let content = |side: &Option<WorkSide>| side.as_ref().map(|side| side.content.clone());
        let (before, after) = (content(&self.before), content(&self.after));
        let mode = |side: &Option<WorkSide>| side.as_ref().map(|side| side.mode);
        let diff = FileDiff::between((&self.path_before, before.as_ref()), (&self.path_after, after.as_ref()));
        diff.with_modes(mode(&self.before), mode(&self.after))
    }
}

/// The sources for reading the work of a session.
pub(crate) struct WorkSources<'a> {
    pub workspace: &'a Workspace,
    pub head: Option<&'a HeadCommit>,
    pub conversions: Option<Conversions<'a>>,
    /// The ids of the session's changes.
    pub changes: HashSet<ChangeId>,
    pub base: WorkBase,
}

impl Workspace {
    /// Collects the work of a session on the files of this workspace.
    pub fn session_work(&self, session: &SessionId, base: WorkBase) -> Result<SessionWork, SessionWorkError> {
        let log = self.event_log()?;
        let (changes, names) = (log.work_of(session), log.names_changed_by(session));
        let mut git_trouble = None;
        let head = match base {
            WorkBase::Found => None,
            WorkBase::Commit => HeadCommit::of(self).inspect_err(|error| git_trouble = Some(error.to_string())).ok().flatten(),
        };
        let git = self.git_dirs().filter(|_| base == WorkBase::Commit);
        let mut sources = WorkSources { workspace: self, head: head.as_ref(), conversions: None, changes, base };
        let readings = names.iter().filter_map(|name| FileReading::read(&sources, name).transpose());
        let readings: Vec<FileReading> = readings.collect::<Result<_, _>>()?;
        if let Some(git) = &git {
            let paths = readings.iter().flat_map(|reading| reading.names_in_tree(self)).collect();
            sources.conversions = Conversions::of(self.copy.tree.path(), git, &paths)
                .inspect_err(|error| git_trouble = Some(error.to_string()))
                .ok();
        }
        let moved: HashSet<RelPath> = readings.iter().filter_map(FileReading::old_name).cloned().collect();
        let mut files = BTreeMap::new();
        for reading in readings {
            // This path is the old name of another file in the list.
            if moved.contains(&reading.path) && reading.old_name().is_none() {
                continue;
            }
            if let Some(file) = reading.work(&sources)? {
                files.insert(file.path_after.clone(), file);
            }
        }
        Ok(SessionWork { files: files.into_values().collect(), git_trouble })
    }

    /// The work of a session on these files as a patch for `git apply`, with paths from the top of the work tree.
    pub fn patch_of(&self, files: &[SessionFile]) -> Result<Vec<u8>, GitError> {
        fn tree<'a>(sides: &'a [(RelPath, &'a WorkSide)]) -> Vec<TreeFile<'a>> {
            let file = |(path, side): &'a (RelPath, &'a WorkSide)| TreeFile {
                path: path.as_str(),
                mode: side.mode,
                content: side.stored.bytes(),
            };
            sides.iter().map(file).collect()
        }
        let (mut before, mut after) = (Vec::new(), Vec::new());
        for file in files.iter().filter(|file| file.is_changed()) {
            before.extend(file.before.as_ref().map(|side| (self.copy.in_tree(&file.path_before), side)));
            after.extend(file.after.as_ref().map(|side| (self.copy.in_tree(&file.path_after), side)));
        }
        if before.is_empty() && after.is_empty() {
            return Ok(Vec::new());
        }
        ScratchRepository::new(self.git_dirs().as_ref())?.patch(&tree(&before), &tree(&after))
    }
}

impl Workspace {
    /// Recorded changes as a patch for `git apply`.
    pub fn patch_of_changes(&self, changes: &[NetChange]) -> Result<Vec<u8>, PatchError> {
        let side = |path: &RelPath, version: Option<ContentHash>| {
            self.content_of_version(path, version).ok_or_else(|| PatchError::NotKept { path: path.clone() })
        };
        let mut files = Vec::new();
        for change in changes {
            let (before, after) = (side(&change.path_before, change.before)?, side(&change.path_after, change.after)?);
            let mode = mode_at(self, &change.path_after).or(change.mode.map(git_mode)).unwrap_or(0o100_644);
            let (mode_before, mode_after) = change.modes.map_or((mode, mode), |(one, other)| (git_mode(one), git_mode(other)));
            let before = before.map(|content| WorkSide::of(content, mode_before));
            let after = after.map(|content| WorkSide::of(content, mode_after));
            let path_after = change.path_after.clone();
            files.push(SessionFile { path_after, after, ..SessionFile::unchanged(change.path_before.clone(), before) });
        }
        Ok(self.patch_of(&files)?)
    }
}

/// Why a patch of changes is not available.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PatchError {
    /// A version is no longer kept.
    #[error("{path}: what it was is no longer kept")]
    NotKept {
        /// Path relative to the workspace root.
        path: RelPath,
    },
    /// Git failed.
    #[error(transparent)]
    Git(#[from] GitError),
}

/// The mode of a regular file, as git records it.
pub(super) fn mode_at(workspace: &Workspace, path: &RelPath) -> Option<u32> {
    use std::os::unix::fs::PermissionsExt;
    let meta = workspace.path().join(path.as_str()).symlink_metadata().ok().filter(std::fs::Metadata::is_file)?;
    Some(git_mode(meta.permissions().mode()))
}

impl WorkSide {
    pub(crate) fn of(content: Content, mode: u32) -> Self {
        Self { stored: content.clone(), content, mode }
    }

    pub(crate) fn text(&self) -> Option<&Text> {
        self.content.text()
    }

    /// The committed file, as git would check it out.
    pub(crate) fn committed(
        sources: &WorkSources<'_>,
        path: &RelPath,
        file: &CommittedFile,
        known: &HashSet<ContentHash>,
    ) -> Result<Self, GitError> {
        let side = Self::of(file.content.clone(), file.mode);
        let Some(conversions) = &sources.conversions else { return Ok(side) };
        let in_tree = sources.workspace.copy.in_tree(path);
        let is_as_it_was = |side: &Self| known.contains(&side.content.version());
        match conversions.kind(in_tree.as_str()) {
            None => Ok(side),
            Some(crate::git::conversion::ConversionKind::Endings) if is_as_it_was(&side) => Ok(side),
            Some(_) => {
                let content = Content::new(conversions.checked_out(in_tree.as_str(), &file.id)?);
                Ok(Self { content, ..side })
            }
        }
    }
}
