//! The effect of a change on files, and the part of it that the model is shown.

use crate::{
    content::Content,
    excerpt::Excerpt,
    file_diff::FileDiff,
    ids::{ChangeId, SessionId},
    line_map::LineMap,
    line_numbers::LineNumbers,
    lines::{LineNo, LineRange, LineSet},
    notice::ChangeAuthor,
    outcome::undo::{EntryOutcome, NotUndone, UndoExtent, UndoKind},
    path::RelPath,
    plan::{FileAction, Planned, Rebased},
    short_diff::ShortDiff,
    text::Text,
    tool::Tool,
    view::View,
};

/// A change of files that was carried out.
#[derive(Debug, Clone, PartialEq)]
pub struct ChangeOutcome {
    /// The id under which the change is recorded.
    pub change: ChangeId,
    /// The Surehand tool for this kind of change.
    pub tool: Tool,
    /// The effect on each file.
    pub files: Vec<FileOutcome>,
    /// Whether it undid changes or, as a redo, restored them. Has no meaning for other changes.
    pub undo: UndoKind,
    /// The changes that it undid, newest first. A redo undoes undos.
    pub undid: Vec<UndoneChange>,
    /// The parts of those changes that it left.
    pub left: Vec<NotUndone>,
    /// The effects of an undo on paths, other than on the content of files.
    pub entries: Vec<EntryOutcome>,
    /// How often the session has overwritten this file with almost the same content; 0 for any other change.
    pub rewrites: u32,
}

/// A change that was undone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UndoneChange {
    /// The id under which the change is recorded.
    pub change: ChangeId,
    /// How much of it was undone.
    pub extent: UndoExtent,
    /// The edits that were undone, newest first: the change itself or, for an undo or redo, the edits that it undid or
    /// restored.
    pub edits: Vec<UndoneEdit>,
}

/// An edit that was undone or restored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UndoneEdit {
    /// The id of the change.
    pub change: ChangeId,
    /// The tool that made it, under the name in the log.
    pub tool: String,
    /// The session that made it.
    pub session: SessionId,
}

/// A write of the content that the file already has. Nothing was written.
#[derive(Debug, Clone, PartialEq)]
pub struct SameContent {
    /// The path of the file.
    pub path: RelPath,
    /// The content that was sent, which the file already has.
    pub text: Text,
    /// How often the session has overwritten this file with almost the same content.
    pub rewrites: u32,
}

/// The effect on one file.
#[derive(Debug, Clone, PartialEq)]
pub struct FileOutcome {
    /// The plan that was carried out.
    pub planned: Planned,
    /// The diff that the model is shown; empty if the file was deleted or moved, or is binary.
    pub diff: ShortDiff,
    /// The file right after the write.
    pub landed: Landed,
    /// How the file was written.
    pub written: WriteMethod,
}

/// The state of a file right after it was written.
#[derive(Debug, Clone, PartialEq)]
pub enum Landed {
    /// The file is as planned.
    AsPlanned,
    /// Another program, such as a formatter, rewrote it.
    Rewritten(Box<RewrittenFile>),
    /// Another program removed it, or made it binary.
    Gone,
}

/// A file that another program rewrote right after we wrote it.
#[derive(Debug, Clone, PartialEq)]
pub struct RewrittenFile {
    /// The text that the other program wrote.
    pub text: Text,
    /// The map from the text we wrote to the current one.
    pub map: LineMap,
    /// The current numbers of the lines that differ from what we wrote.
    pub affected: LineSet,
    /// The text of these lines.
    pub fresh: Excerpt,
    /// The changes that were there before the edit, at their current place, if the edit was rebased.
    pub rebased: Option<Rebased>,
}

/// The changes in a file that another agent's tool is about to edit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedBefore {
    /// The path of the file.
    pub path: RelPath,
    /// The lines that are new to the session.
    pub rebased: Rebased,
    /// The author of the last of these changes.
    pub by: ChangeAuthor,
    /// Seconds since the last of these changes, if known.
    pub seconds_ago: Option<u64>,
}

/// The way in which a file was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteMethod {
    /// The new file was exchanged with the old one, which was the file that the plan was made for.
    Exchanged,
    /// Renamed over the old file, because the file system cannot exchange files. A change at the same instant may go
    /// unnoticed.
    Renamed,
    /// Overwritten in place, because the file has several names, or attributes that a new file could not have.
    InPlace,
}

impl ChangeOutcome {
    /// A change of files that is not an undo.
    pub fn of(change: ChangeId, tool: Tool, files: Vec<FileOutcome>) -> Self {
        Self { change, tool, files, undo: UndoKind::Undo, undid: Vec::new(), left: Vec::new(), entries: Vec::new(), rewrites: 0 }
    }

    /// Whether the reply shows the lines of its files with anchors.
    pub fn numbers(&self) -> LineNumbers {
        LineNumbers::with_anchors(self.tool == Tool::EditLines)
    }

    /// The files that the reply describes. A move is described once, under its new name.
    pub fn described_files(&self) -> impl Iterator<Item = &FileOutcome> {
        let is_continued = |file: &FileOutcome| {
            let is_origin =
                |other: &FileOutcome| other.planned.origin().is_some_and(|origin| origin.path == *file.planned.path());
            self.files.iter().any(is_origin)
        };
        self.files.iter().filter(move |file| !is_continued(file))
    }
}

impl FileOutcome {
    /// The current name, or the last one if the file was deleted.
    pub fn path(&self) -> &RelPath {
        self.planned.path_after().unwrap_or(self.planned.path())
    }

    /// The names before and after.
    pub fn paths(&self) -> Vec<RelPath> {
        let after = self.planned.path_after().filter(|after| *after != self.planned.path());
        [self.planned.path()].into_iter().chain(after).cloned().collect()
    }

    /// The current text, if the change wrote a text file.
    pub fn text(&self) -> Option<&Text> {
        match (&self.landed, self.planned.act()) {
            (Landed::AsPlanned, FileAction::Write { .. }) => self.planned.text(),
            (Landed::Rewritten(rewritten), FileAction::Write { .. }) => Some(&rewritten.text),
            (Landed::Gone, _) | (_, FileAction::Remove | FileAction::Move { .. }) => None,
        }
    }

    /// The current content of the file; `None` if it is gone.
    pub fn content(&self) -> Option<Content> {
        match &self.landed {
            Landed::AsPlanned => self.planned.after().cloned(),
            Landed::Rewritten(rewritten) => Some(Content::Text(rewritten.text.clone())),
            Landed::Gone => None,
        }
    }

    /// Whether another program rewrote or removed it right after we wrote it.
    pub fn is_rewritten(&self) -> bool {
        self.landed != Landed::AsPlanned
    }

    /// The session's view once the model gets this outcome; `None` without a tracker, or for a deleted or binary file.
    pub fn view_after(&self) -> Option<View> {
        let mut view = self.view_untold()?;
        if self.landed == Landed::AsPlanned {
            view.show_set(&self.diff.shown);
        }
        Some(view)
    }

    /// Like `view_after`, for a model that is not shown the diff, because another agent's tool made the change.
    pub fn view_untold(&self) -> Option<View> {
        let view = self.planned.view_after()?;
        match (&self.landed, self.planned.text()) {
            (Landed::Rewritten(rewritten), Some(sent)) => {
                let mut view = view.carried(sent, &rewritten.map, &rewritten.text);
                view.show_set(&rewritten.fresh.shown);
                Some(view)
            }
            _ => Some(view.clone()),
        }
    }

    /// The lines that the model knows from this change: those that it is shown, and all lines of a file that it
    /// created.
    pub fn known_lines(&self) -> Option<(&Text, LineSet)> {
        let text = match self.planned.act() {
            FileAction::Write { .. } => self.text()?,
            FileAction::Move { .. } => self.planned.text()?,
            FileAction::Remove => return None,
        };
        let view = self.view_after()?;
        let lines = match (&self.landed, self.planned.act()) {
            (Landed::AsPlanned, FileAction::Write { .. }) if !self.planned.is_new() => self.diff.shown.clone(),
            (Landed::Rewritten(rewritten), _) => rewritten.fresh.shown.clone(),
            _ => view.seen_lines(),
        };
        Some((text, lines))
    }

    /// The whole change of the file as a diff, for people.
    pub fn unified_diff(&self) -> FileDiff {
        self.planned.diff_to(self.path(), self.content().as_ref())
    }

    /// The first line that the change touched, by its current number.
    pub fn first_changed_line(&self) -> Option<LineNo> {
        let last = self.planned.text()?.last_line()?;
        let first = self.planned.map().hunks().first();
        Some(first.map_or(LineNo::FIRST, |hunk| LineNo::at_index(hunk.after.start)).min(last))
    }
}

impl FileOutcome {
    /// The outcome of a plan that was carried out.
    pub fn of(planned: Planned, landed: Landed, written: WriteMethod) -> Self {
        let base = planned.origin().map(|origin| &origin.text).or(planned.base().and_then(Content::text));
        // The author of a new file is not shown its lines again.
        let diff = match (planned.act(), base, planned.text()) {
            (FileAction::Write { .. }, Some(base), Some(text)) => ShortDiff::between(base, text, planned.map()),
            _ => ShortDiff::default(),
        };
        Self { planned, diff, landed, written }
    }
}

impl RewrittenFile {
    /// The outcome for a file that was planned as `sent` and found as `text`.
    pub fn of(planned: &Planned, sent: &Text, text: Text) -> Self {
        let map = LineMap::between(sent, &text);
        let affected = map.affected();
        let fresh = Excerpt::of(&text, &affected);
        // Lines that had changed before count as seen, so they are shown at their current place.
        let rebased = planned.rebased().map(|rebased| {
            let affected: LineSet = rebased.affected.iter().filter_map(|line| map.new_place(line)).map(LineRange::line).collect();
            Rebased { fresh: Excerpt::of(&text, &affected), affected }
        });
        Self { text, map, affected, fresh, rebased }
    }
}
