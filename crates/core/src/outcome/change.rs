//! What a change did to files, and what the model is shown of it.

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

/// A change that was made.
#[derive(Debug, Clone, PartialEq)]
pub struct ChangeOutcome {
    /// Its id.
    pub change: ChangeId,
    /// Our tool that makes this kind of change.
    pub tool: Tool,
    /// What was done to each file.
    pub files: Vec<FileOutcome>,
    /// Whether it took changes back or, as a redo, brought them back. Not meant of other changes.
    pub undo: UndoKind,
    /// The changes that it undid, newest first. A redo undid undos.
    pub undid: Vec<UndoneChange>,
    /// What it left of them.
    pub left: Vec<NotUndone>,
    /// What an undo did to paths besides the content of files.
    pub entries: Vec<EntryOutcome>,
    /// How often the session has overwritten this file with almost the same content; 0 for any other change.
    pub rewrites: u32,
}

/// A change that was undone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UndoneChange {
    /// Its id.
    pub change: ChangeId,
    /// How much of it was taken back.
    pub extent: UndoExtent,
    /// The edits that it is about, newest first: itself, or if it is an undo or redo, what that took or brought back.
    pub edits: Vec<UndoneEdit>,
}

/// An edit that was taken or brought back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UndoneEdit {
    /// The id of the change.
    pub change: ChangeId,
    /// The tool that made it, as the log names it.
    pub tool: String,
    /// The session that made it.
    pub session: SessionId,
}

/// A write of the content that the file already has. Nothing was written.
#[derive(Debug, Clone, PartialEq)]
pub struct SameContent {
    /// The file.
    pub path: RelPath,
    /// The content.
    pub text: Text,
    /// How often the session has overwritten this file with almost the same content.
    pub rewrites: u32,
}

/// What was done to one file.
#[derive(Debug, Clone, PartialEq)]
pub struct FileOutcome {
    /// What was planned and carried out.
    pub planned: Planned,
    /// The diff that the model is shown; empty for a file that was deleted or moved, or is binary.
    pub diff: ShortDiff,
    /// What is at the path now.
    pub landed: Landed,
    /// How the file was written.
    pub written: WriteMethod,
}

/// What is at the path of a file right after it was written.
#[derive(Debug, Clone, PartialEq)]
pub enum Landed {
    /// What was planned.
    AsPlanned,
    /// Another program, such as a formatter, rewrote it.
    Rewritten(Box<RewrittenFile>),
    /// Another program removed it, or made it binary.
    Gone,
}

/// A file that another program rewrote right after we wrote it.
#[derive(Debug, Clone, PartialEq)]
pub struct RewrittenFile {
    /// The current text.
    pub text: Text,
    /// The map from the text we wrote to the current one.
    pub map: LineMap,
    /// The current numbers of the lines that differ from what we wrote.
    pub affected: LineSet,
    /// The content of these lines.
    pub fresh: Excerpt,
    /// What had changed before the edit, at its current place, if the edit was rebased.
    pub rebased: Option<Rebased>,
}

/// What had changed in a file that a tool of another agent is about to edit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedBefore {
    /// The file.
    pub path: RelPath,
    /// What is new to the session.
    pub rebased: Rebased,
    /// The author of the last of these changes.
    pub by: ChangeAuthor,
    /// How many seconds ago, if that is known.
    pub seconds_ago: Option<u64>,
}

/// How a file was written.
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
    /// A change of files, and nothing else.
    pub fn of(change: ChangeId, tool: Tool, files: Vec<FileOutcome>) -> Self {
        Self { change, tool, files, undo: UndoKind::Undo, undid: Vec::new(), left: Vec::new(), entries: Vec::new(), rewrites: 0 }
    }

    /// How the lines of its files are numbered.
    pub fn numbers(&self) -> LineNumbers {
        LineNumbers::with_anchors(self.tool == Tool::EditLines)
    }

    /// The files that the reply describes. A move is described once, under its new name.
    pub fn told(&self) -> impl Iterator<Item = &FileOutcome> {
        let goes_on = |file: &FileOutcome| {
            let is_origin =
                |other: &FileOutcome| other.planned.origin().is_some_and(|origin| origin.path == *file.planned.path());
            self.files.iter().any(is_origin)
        };
        self.files.iter().filter(move |file| !goes_on(file))
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

    /// The current content.
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

    /// What the session has seen once the model gets this outcome; `None` without a tracker, or if there is nothing to
    /// see.
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

    /// The lines that the model knows from this change: those it is shown, and all lines of a file that it created.
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
        // The author of a new file does not get it repeated.
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
        // Lines that had changed before count as seen, so they are shown where they ended up.
        let rebased = planned.rebased().map(|rebased| {
            let affected: LineSet = rebased.affected.iter().filter_map(|line| map.new_place(line)).map(LineRange::line).collect();
            Rebased { fresh: Excerpt::of(&text, &affected), affected }
        });
        Self { text, map, affected, fresh, rebased }
    }
}
