//! What a change has done to files, and what the model is shown of it.

use crate::{
    content::Content,
    excerpt::Excerpt,
    file_diff::FileDiff,
    ids::ChangeId,
    line_map::LineMap,
    line_numbers::LineNumbers,
    lines::{LineNo, LineRange, LineSet},
    notice::ChangeAuthor,
    path::RelPath,
    plan::{FileAction, Planned, Rebased},
    short_diff::ShortDiff,
    text::Text,
    tool::Tool,
    view::View,
};

/// A change of files that was made.
#[derive(Debug, Clone, PartialEq)]
pub struct ChangeOutcome {
    /// Its name.
    pub change: ChangeId,
    /// The tool of ours that makes such a change.
    pub tool: Tool,
    /// What was done to each file.
    pub files: Vec<FileOutcome>,
    /// The changes that it took back, newest first.
    pub undid: Vec<UndoneChange>,
    /// How often the session has written this file over with nearly what it held; 0 for any other change.
    pub rewrites: u32,
}

/// A change that was taken back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UndoneChange {
    /// Its name.
    pub change: ChangeId,
    /// What had made it, as the log names it.
    pub tool: String,
}

/// A write of what the file held already: nothing was written.
#[derive(Debug, Clone, PartialEq)]
pub struct SameContent {
    /// The file.
    pub path: RelPath,
    /// What it holds.
    pub text: Text,
    /// How often the session has written this file over with nearly what it held.
    pub rewrites: u32,
}

/// What was done to one file.
#[derive(Debug, Clone, PartialEq)]
pub struct FileOutcome {
    /// What was planned and carried out.
    pub planned: Planned,
    /// What the model is shown of it; nothing for a file that was deleted or moved, or is no text.
    pub diff: ShortDiff,
    /// What is at the path now.
    pub landed: Landed,
    /// How it got there.
    pub written: WriteMethod,
}

/// What is at the path of a file right after it was written.
#[derive(Debug, Clone, PartialEq)]
pub enum Landed {
    /// What was planned.
    AsPlanned,
    /// Another program, a formatter say, has made something else of it.
    Rewritten(Box<RewrittenFile>),
    /// Another program has removed it, or it is no text any more.
    Gone,
}

/// What another program made of a file right after it was written.
#[derive(Debug, Clone, PartialEq)]
pub struct RewrittenFile {
    /// What the file holds now.
    pub text: Text,
    /// From what was written to what is there.
    pub map: LineMap,
    /// The lines that differ from what was written, as they are numbered now.
    pub affected: LineSet,
    /// What they are.
    pub fresh: Excerpt,
    /// What else had changed before, where it is now, if the edit was moved to its new place.
    pub rebased: Option<Rebased>,
}

/// What else had changed in a file that a tool of somebody else's is about to edit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedBefore {
    /// The file.
    pub path: RelPath,
    /// What is new to the session.
    pub rebased: Rebased,
    /// Who made the last of these changes.
    pub by: ChangeAuthor,
    /// How many seconds ago, if that is known.
    pub seconds_ago: Option<u64>,
}

/// How a file was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteMethod {
    /// The new file took the place of the old one, and what came out was what was planned for.
    Exchanged,
    /// By a rename, where the file system cannot exchange files: a change at the same instant may go unseen.
    Renamed,
    /// In place: the file has several names, or marks that a new file could not have.
    InPlace,
}

impl ChangeOutcome {
    /// How the lines of its files are numbered.
    pub fn numbers(&self) -> LineNumbers {
        LineNumbers::with_anchors(self.tool == Tool::EditLines)
    }

    /// The files that are told: that the old name of a file is gone is said with the new one.
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
    /// The name that the file has now; of one that was deleted, that it had.
    pub fn path(&self) -> &RelPath {
        self.planned.path_after().unwrap_or(self.planned.path())
    }

    /// The names that it had and has.
    pub fn paths(&self) -> Vec<RelPath> {
        let after = self.planned.path_after().filter(|after| *after != self.planned.path());
        [self.planned.path()].into_iter().chain(after).cloned().collect()
    }

    /// The text that it holds now, if it is a file that was written and holds text.
    pub fn text(&self) -> Option<&Text> {
        match (&self.landed, self.planned.act()) {
            (Landed::AsPlanned, FileAction::Write { .. }) => self.planned.text(),
            (Landed::Rewritten(rewritten), FileAction::Write { .. }) => Some(&rewritten.text),
            (Landed::Gone, _) | (_, FileAction::Remove | FileAction::Move { .. }) => None,
        }
    }

    /// What it holds now.
    pub fn content(&self) -> Option<Content> {
        match &self.landed {
            Landed::AsPlanned => self.planned.after().cloned(),
            Landed::Rewritten(rewritten) => Some(Content::Text(rewritten.text.clone())),
            Landed::Gone => None,
        }
    }

    /// Whether another program has made something else of it right after it was written.
    pub fn is_rewritten(&self) -> bool {
        self.landed != Landed::AsPlanned
    }

    /// What the session knows of the file once the model has been shown this; `None` when nobody keeps track, or there is nothing
    /// to see.
    pub fn view_after(&self) -> Option<View> {
        let mut view = self.view_untold()?;
        if self.landed == Landed::AsPlanned {
            view.show_set(&self.diff.shown);
        }
        Some(view)
    }

    /// The same for a model that is not shown the diff, because a tool that is not ours has made the change.
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

    /// The lines of the file that the model knows from this change: those that it is shown, and of a new file all that it wrote.
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

    /// What became of the file, for people.
    pub fn unified_diff(&self) -> FileDiff {
        let (path, content) = match self.planned.origin() {
            Some(origin) => (&origin.path, Some(Content::Text(origin.text.clone()))),
            None => (self.planned.path(), self.planned.base().cloned()),
        };
        FileDiff::between((path, content.as_ref()), (self.path(), self.content().as_ref()))
    }

    /// The first line that was touched, as it is numbered now.
    pub fn first_changed_line(&self) -> Option<LineNo> {
        let last = self.planned.text()?.last_line()?;
        let first = self.planned.map().hunks().first();
        Some(first.map_or(LineNo::FIRST, |hunk| LineNo::at_index(hunk.after.start)).min(last))
    }
}

impl FileOutcome {
    /// A file that was changed by plan.
    pub fn of(planned: Planned, landed: Landed, written: WriteMethod) -> Self {
        let base = planned.origin().map(|origin| &origin.text).or(planned.base().and_then(Content::text));
        // A new file is not repeated to its author.
        let diff = match (planned.act(), base, planned.text()) {
            (FileAction::Write { .. }, Some(base), Some(text)) => ShortDiff::between(base, text, planned.map()),
            _ => ShortDiff::default(),
        };
        Self { planned, diff, landed, written }
    }
}

impl RewrittenFile {
    /// What became of a text that was written by plan.
    pub fn of(planned: &Planned, sent: &Text, text: Text) -> Self {
        let map = LineMap::between(sent, &text);
        let affected = map.affected();
        let fresh = Excerpt::of(&text, &affected);
        // What had changed before counts as seen, so it is shown, where it landed.
        let rebased = planned.rebased().map(|rebased| {
            let affected: LineSet = rebased.affected.iter().filter_map(|line| map.new_place(line)).map(LineRange::line).collect();
            Rebased { fresh: Excerpt::of(&text, &affected), affected }
        });
        Self { text, map, affected, fresh, rebased }
    }
}
