//! Blame: the author of each line of a file, and the time.
//!
//! A line that a recorded change inserted belongs to that change. Any other line belongs to the commit that has it or,
//! if none does, to another program. Git itself names the commit (`git blame`), because it follows lines through
//! renames and merges, with mail maps and ignored revisions. It is asked only about such lines.

use std::ops::Range;

use surehand_core::{Content, RelPath, Text, attribution::OwnedLines, timestamp::Millis};
use surehand_store::{ChangeId, EventFilter, FileEvent, SessionId, StoreError};

use super::{
    committed::{HeadCommit, as_checked_out},
    history::LineHistory,
    steps::{FileStep, FileSteps, StepAuthor},
};
use crate::{
    checkpoint::read_file,
    git::blame::{CommitInfo, CommittedRuns, commits_of_lines},
    restore::TOOL as RESTORE,
    workspace::Workspace,
};

/// The authors of all lines of a file.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Blame {
    /// Path relative to the workspace root, after links are resolved.
    pub path: RelPath,
    /// The present text; for a deleted file, its last one.
    pub text: Text,
    /// Runs of lines with one author, from top to bottom.
    pub lines: Vec<BlamedLines>,
    /// The author of the deletion, if the file was deleted.
    pub removed_by: Option<LineAuthor>,
    /// The reason why git could not name the commits that wrote lines.
    pub git_trouble: Option<String>,
}

/// Lines with one author.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct BlamedLines {
    /// Zero-based indexes.
    pub lines: Range<usize>,
    /// The author of all these lines.
    pub by: LineAuthor,
}

/// The author of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LineAuthor {
    /// A session, directly or by a command.
    Session {
        /// The id of the session.
        session: SessionId,
        /// The tool that wrote the line; for a command, [`FileEvent::COMMAND`] and its first line.
        tool: String,
        /// The id of the recorded change.
        change: ChangeId,
        /// When the change was recorded.
        at: Millis,
    },
    /// A person or a program that Surehand does not track, or a change so old that its record was deleted.
    Outside {
        /// The latest possible time: when the change was noticed, or the next change was made, or the file was last
        /// written.
        by: Option<Millis>,
    },
    /// A commit; `None` if git could not name it.
    Commit(Option<CommitInfo>),
}

/// Why the authors of a file are not available.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BlameError {
    /// The file does not exist, and no record says that it ever did.
    #[error("{path}: no such file")]
    NotFound {
        /// The requested path, relative to the workspace root.
        path: RelPath,
    },
    /// The file was renamed.
    #[error("{path}: it was renamed to {to}")]
    Renamed {
        /// The requested path, relative to the workspace root.
        path: RelPath,
        /// The name after the rename.
        to: RelPath,
    },
    /// The file is binary.
    #[error("{path}: a binary file has no lines")]
    Binary {
        /// The requested path, relative to the workspace root.
        path: RelPath,
    },
    /// The file is too large, or is not a regular file.
    #[error("{path}: larger than limits.file_bytes ({limit} bytes), or not a regular file")]
    Unreadable {
        /// The requested path, relative to the workspace root.
        path: RelPath,
        /// The value of `limits.file_bytes`.
        limit: u64,
    },
    /// The file was deleted, and its last content is no longer kept.
    #[error("{path}: it was removed, and its content is no longer kept")]
    Forgotten {
        /// The requested path, relative to the workspace root.
        path: RelPath,
    },
    /// The file could not be read.
    #[error("{path}: {error}")]
    Io {
        /// The requested path, relative to the workspace root.
        path: RelPath,
        /// The error of the system.
        error: std::io::Error,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Blame {
    /// The authors of these ranges of line indexes, which are sorted. Each item is a run of lines with one author.
    pub fn runs<'a>(&'a self, wanted: &'a [Range<usize>]) -> impl Iterator<Item = (Range<usize>, &'a LineAuthor)> {
        wanted.iter().flat_map(|wanted| {
            let first = self.lines.partition_point(|run| run.lines.end <= wanted.start);
            let runs = self.lines[first..].iter().take_while(|run| run.lines.start < wanted.end);
            runs.map(|run| (run.lines.start.max(wanted.start)..run.lines.end.min(wanted.end), &run.by))
        })
    }
}

impl Workspace {
    /// Finds the author of each line of a file.
    pub fn blame(&self, path: &RelPath) -> Result<Blame, BlameError> {
        // For a link, the authors of its target.
        let resolved = self.root().resolve(path);
        let path = resolved.as_ref().unwrap_or(path);
        let file = BlamedFile::read(self, path)?;
        let BlamedFile { text, steps, names, removed_by } = file;
        let mut git_trouble = None;
        let head = HeadCommit::of(self).inspect_err(|error| git_trouble = Some(error.to_string())).ok().flatten();
        let committed = head.as_ref().and_then(|head| head_text(self, head, &names, &text));
        let marked: Vec<_> = committed.iter().map(|(_, text)| text.version()).collect();
        let history = LineHistory::follow(self, steps, text, &marked);
        let places = committed.as_ref().map(|(_, text)| history.place(text)).unwrap_or_default();
        let owned = history.weave.lines(&places);
        let commits = match (&head, &committed) {
            (Some(head), Some((in_tree, _))) => {
                let asked = lines_to_ask_about(&history, &owned);
                commits_of_lines(self.copy.tree.path(), &head.id, in_tree.as_str(), &asked)
                    .inspect_err(|error| git_trouble = Some(error.to_string()))
                    .unwrap_or_default()
            }
            _ => Vec::new(),
        };
        let last_written = written_at(self, path);
        let mut lines: Vec<BlamedLines> = Vec::new();
        for (range, by) in owned.iter().flat_map(|owned| authors(&history, owned, &commits, last_written)) {
            match lines.last_mut().filter(|last| last.by == by && last.lines.end == range.start) {
                Some(last) => last.lines.end = range.end,
                None => lines.push(BlamedLines { lines: range, by }),
            }
        }
        Ok(Blame { path: path.clone(), text: history.present, lines, removed_by, git_trouble })
    }
}

/// A file, or its last content if it was deleted, with its history.
struct BlamedFile {
    text: Text,
    steps: Vec<FileStep>,
    names: Vec<RelPath>,
    removed_by: Option<LineAuthor>,
}

impl BlamedFile {
    fn read(workspace: &Workspace, path: &RelPath) -> Result<Self, BlameError> {
        let limit = workspace.config().limits.file_bytes;
        let io = |error| BlameError::Io { path: path.clone(), error };
        let content = read_file(workspace, path, limit).map_err(io)?.map(Content::new);
        let version = content.as_ref().map(Content::version);
        let FileSteps { mut steps, names, .. } = FileSteps::read(workspace, path, version)?;
        let (content, removed_by) = match content {
            Some(content) => (content, None),
            None if workspace.path().join(path.as_str()).symlink_metadata().is_ok() => {
                return Err(BlameError::Unreadable { path: path.clone(), limit });
            }
            None => {
                let not_found = || BlameError::NotFound { path: path.clone() };
                if let Some(to) = new_name(workspace, path)? {
                    return Err(BlameError::Renamed { path: path.clone(), to });
                }
                let last = steps.iter().rposition(|step| step.after.is_none()).ok_or_else(not_found)?;
                steps.truncate(last + 1);
                let removal = steps.pop().ok_or_else(not_found)?;
                let version = removal.before.ok_or_else(not_found)?;
                let content = workspace.content_at(&removal.name_before, &version);
                let content = content.ok_or_else(|| BlameError::Forgotten { path: path.clone() })?;
                (content, Some(LineAuthor::of(&removal.by)))
            }
        };
        let text = content.text().cloned().ok_or_else(|| BlameError::Binary { path: path.clone() })?;
        Ok(Self { text, steps, names, removed_by })
    }
}

/// The modification time of a file.
fn written_at(workspace: &Workspace, path: &RelPath) -> Option<Millis> {
    let written = workspace.path().join(path.as_str()).symlink_metadata().ok()?.modified().ok()?;
    Some(written.duration_since(std::time::UNIX_EPOCH).ok()?.as_millis() as Millis)
}

/// The new name of a file that was renamed.
fn new_name(workspace: &Workspace, path: &RelPath) -> Result<Option<RelPath>, StoreError> {
    let which = EventFilter { path: Some(path.clone()), ..EventFilter::default() };
    let last = workspace.ask(|store| store.events(&which, 1))?;
    let to = last.first().filter(|event| event.path == *path).and_then(|event| event.moved_to.clone());
    Ok(to)
}

/// The most recent path in the work tree that HEAD has for a file, and the text there.
fn head_text(workspace: &Workspace, head: &HeadCommit, names: &[RelPath], present: &Text) -> Option<(RelPath, Text)> {
    names.iter().find_map(|name| {
        let in_tree = workspace.copy.in_tree(name);
        let text = as_checked_out(head.file(&in_tree).ok()??.content.text()?, present);
        Some((in_tree, text))
    })
}

/// The committed lines that no session wrote for certain: a command such as `git pull` may have fetched them.
fn lines_to_ask_about(history: &LineHistory<'_>, owned: &[OwnedLines]) -> Vec<Range<usize>> {
    let mut asked: Vec<Range<usize>> = Vec::new();
    for lines in owned.iter().filter(|lines| may_be_fetched(history.author(lines.step))) {
        let Some(base) = lines.base else { continue };
        let base = base..base + lines.lines.len();
        match asked.last_mut().filter(|last| last.end == base.start) {
            Some(last) => last.end = base.end,
            None => asked.push(base),
        }
    }
    asked
}

/// Whether lines of this step may have been written by another author, in a commit.
fn may_be_fetched(by: Option<&StepAuthor>) -> bool {
    match by {
        None | Some(StepAuthor::Outside { .. }) => true,
        Some(StepAuthor::Change { tool, .. }) => tool.starts_with(FileEvent::COMMAND) || tool == RESTORE,
    }
}

/// The authors of lines that one step inserted.
fn authors(
    history: &LineHistory<'_>,
    owned: &OwnedLines,
    commits: &CommittedRuns,
    last_written: Option<Millis>,
) -> Vec<(Range<usize>, LineAuthor)> {
    let by = history.author(owned.step);
    let own = by.map_or(LineAuthor::Outside { by: history.begins_at() }, LineAuthor::of);
    let own = match own {
        LineAuthor::Outside { by: None } => LineAuthor::Outside { by: last_written },
        own => own,
    };
    let Some(base) = owned.base.filter(|_| may_be_fetched(by)) else { return vec![(owned.lines.clone(), own)] };
    let at = by.and_then(|by| match by {
        StepAuthor::Change { at, .. } => Some(*at),
        StepAuthor::Outside { .. } => None,
    });
    let end = base + owned.lines.len();
    let (mut found, mut next) = (Vec::new(), base);
    let here = |line: usize| owned.lines.start + (line - base);
    let mut push = |lines: Range<usize>, commit: Option<&CommitInfo>| {
        // Lines that a session wrote and then committed belong to the session. Commit times have a resolution of one
        // second.
        let is_older = |commit: &CommitInfo| at.is_none_or(|at| commit.committed_at + 1000 <= at);
        let by = match commit {
            Some(commit) if is_older(commit) => LineAuthor::Commit(Some(commit.clone())),
            None if at.is_none() => LineAuthor::Commit(None),
            _ => own.clone(),
        };
        found.push((here(lines.start)..here(lines.end), by));
    };
    let first = commits.partition_point(|(lines, _)| lines.end <= base);
    for (lines, commit) in commits[first..].iter().take_while(|(lines, _)| lines.start < end) {
        let lines = lines.start.max(next)..lines.end.min(end);
        if lines.is_empty() {
            continue;
        }
        if next < lines.start {
            push(next..lines.start, None);
        }
        next = lines.end;
        push(lines, Some(commit));
    }
    if next < end {
        push(next..end, None);
    }
    found
}

impl LineAuthor {
    pub(super) fn of(by: &StepAuthor) -> Self {
        match by {
            StepAuthor::Change { change, session, tool, at } => {
                Self::Session { session: session.clone(), tool: tool.clone(), change: change.clone(), at: *at }
            }
            StepAuthor::Outside { by } => Self::Outside { by: *by },
        }
    }
}
