//! The content of files in the commit at HEAD.

use surehand_core::{Content, RelPath, Text, text::LineEnding};

use crate::{
    git::{self, CannotTell, Head, ObjectId, Objects, staging_area::head_by_git},
    restore::MOST_OF_BLOB,
    workspace::Workspace,
};

/// The commit at HEAD, with its tree.
pub(crate) struct HeadCommit {
    objects: Objects,
    pub id: ObjectId,
    tree: ObjectId,
}

/// A file of a commit.
#[derive(Debug, Clone)]
pub(crate) struct CommittedFile {
    pub content: Content,
    pub mode: u32,
    pub id: ObjectId,
}

impl HeadCommit {
    /// The commit of a workspace's checkout; `None` without git, or on a branch without a commit.
    pub(crate) fn of(workspace: &Workspace) -> Result<Option<Self>, CannotTell> {
        let Some(dirs) = workspace.git_dirs() else { return Ok(None) };
        let head = match git::head_of(&dirs) {
            // Git may understand formats that this reader does not.
            Err(unknown) => match head_by_git(workspace.copy.tree.path()) {
                Ok(head) => head.map_or(Head::Unborn, Head::Commit),
                Err(_) => return Err(unknown),
            },
            Ok(head) => head,
        };
        let Head::Commit(id) = head else { return Ok(None) };
        let objects = Objects::of(&dirs.common);
        let tree = git::tree_of(&objects, &id)?;
        Ok(Some(Self { objects, id, tree }))
    }

    /// Whether a path is a submodule, or lies in one.
    pub(crate) fn is_in_submodule(&self, in_tree: &RelPath) -> Result<bool, CannotTell> {
        for path in std::iter::successors(Some(in_tree.clone()), RelPath::parent) {
            if git::entry_at(&self.objects, &self.tree, path.as_str())?.is_some_and(|entry| entry.mode == 0o160_000) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The content of a path of the work tree in the commit; `None` for a directory or a submodule.
    pub(crate) fn file(&self, in_tree: &RelPath) -> Result<Option<CommittedFile>, CannotTell> {
        let Some(entry) = git::entry_at(&self.objects, &self.tree, in_tree.as_str())? else { return Ok(None) };
        if !matches!(entry.mode, 0o100_644 | 0o100_755 | 0o100_664 | 0o120_000) {
            return Ok(None);
        }
        let content = self.objects.blob(&entry.id, MOST_OF_BLOB)?;
        Ok(content.map(|content| CommittedFile { content: Content::new(content), mode: entry.mode, id: entry.id }))
    }
}

/// A committed text as git would check it out: with `\r\n` if the committed text has only `\n` and the present text
/// only `\r\n`.
pub(crate) fn as_checked_out(committed: &Text, present: &Text) -> Text {
    let has_only_crlf = present.line_count() > 0
        && present.lines().all(|(line, _)| matches!(present.ending(line), LineEnding::CrLf | LineEnding::None))
        && present.has_crlf();
    if !has_only_crlf || committed.has_crlf() {
        return committed.clone();
    }
    Text::of(committed.as_str().replace('\n', "\r\n")).unwrap_or_else(|_| committed.clone())
}
