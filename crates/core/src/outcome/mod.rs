//! The results of calls, as values: the lines read, found or changed, or the reason for a refusal, plus notes. Programs
//! match on these values; [`crate::render`] turns them into text and JSON, which is never parsed back.
//!
//! This module also decides how much a model is shown, because shown lines count as seen.

pub mod change;
pub mod list;
pub mod read;
pub mod scope;
pub mod search;
pub mod undo;

pub use self::{
    change::{
        ChangeOutcome, ChangedBefore, FileOutcome, Landed, RewrittenFile, SameContent, UndoneChange, UndoneEdit, WriteMethod,
    },
    list::Listing,
    read::{ReadResult, UnchangedRead},
    scope::{SearchArea, SearchScope, SkippedFiles},
    search::{FileMatches, SearchResult},
    undo::{NotUndone, UndoExtent},
};
use crate::{
    content::Content,
    excerpt::KnownLines,
    instructions::ToldInstructions,
    lines::LineSet,
    notice::{ChangedFile, Notice},
    path::RelPath,
    plan::FileAction,
    refusal::{Refusal, RefusalCode},
    repo_state::{RepoState, SharedTaskList, TaskList},
    text::Text,
    tracked::Touch,
};

/// The result of a call, with notes.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
#[must_use = "it says whether the call was refused"]
pub struct Outcome {
    /// The effect of the call, or the refusal.
    pub result: Result<Done, RefusedOutcome>,
    /// Notes in addition to the result.
    pub notes: OutcomeNotes,
}

/// The effect of a call that was not refused.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Done {
    /// Lines of a file were read.
    Read(ReadResult),
    /// The requested lines were shown before and have not changed.
    Unchanged(UnchangedRead),
    /// Files were listed by name.
    Listed(Listing),
    /// Files were searched for a pattern.
    Found(SearchResult),
    /// Files were written, moved or deleted.
    Changed(ChangeOutcome),
    /// The file to write already had this content.
    SameContent(SameContent),
    /// The state of the repository was shown.
    State(ShownState),
    /// The list of tasks was shown or changed. This is the whole list.
    Tasks(TaskList),
    /// Shared tasks were shown, claimed or closed. This is the list of their story.
    SharedTasks(SharedTaskList),
    /// Earlier reads no longer count.
    Forgotten(Forgotten),
}

/// A call that was refused.
#[derive(Debug, Clone, PartialEq)]
pub struct RefusedOutcome {
    /// Why the call was refused.
    pub refusal: Box<Refusal>,
    /// How often this exact call has been refused, including this time.
    pub repeat: u32,
    /// The text of the file whose lines the refusal shows, if those lines count as seen.
    pub text: Option<Text>,
}

/// The state of the repository, with the form in which it is shown.
#[derive(Debug, Clone, PartialEq)]
pub struct ShownState {
    /// The files and tasks of the repository.
    pub state: RepoState,
    /// The state as a document for programs, if it was requested instead of a summary.
    pub document: Option<String>,
}

/// The reads that no longer count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Forgotten {
    /// Every read of the session.
    Everything,
    /// These files. Other files that were named had not been read.
    Files(Vec<RelPath>),
}

/// The notes that a reply adds to its result.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct OutcomeNotes {
    /// The instructions of the repository for the directories of the call.
    pub instructions: Option<ToldInstructions>,
    /// Files that the session has seen and that another writer changed since.
    pub changed_elsewhere: Vec<ChangedFile>,
    /// Unrequested events in the workspace, such as a rescued file.
    pub warnings: Vec<Notice>,
}

/// The effects of a shell command.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CommandEffects {
    /// Files that the session has seen and that differ now, with the author of the change.
    pub changed: Vec<ChangedFile>,
    /// Other files that changed during the command.
    pub touched: Vec<RelPath>,
    /// The printed lines that count as read.
    pub read: Vec<KnownLines>,
}

/// A file that a call read or changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TouchedFile {
    /// The path of the file.
    pub path: RelPath,
    /// The effect of the call on it.
    pub touch: Touch,
}

impl Outcome {
    /// An outcome without notes.
    pub fn new(result: Result<Done, RefusedOutcome>) -> Self {
        Self { result, notes: OutcomeNotes::default() }
    }

    /// Whether the call was refused.
    pub fn is_refused(&self) -> bool {
        self.result.is_err()
    }

    /// The refusal, if the call was refused.
    pub fn refusal(&self) -> Option<&Refusal> {
        self.result.as_ref().err().map(|refused| &*refused.refusal)
    }

    /// The change, if the call made one.
    pub fn changed(&self) -> Option<&ChangeOutcome> {
        match &self.result {
            Ok(Done::Changed(changed)) => Some(changed),
            _ => None,
        }
    }

    /// Whether the call had no effect, because the file has the requested content already.
    pub fn is_noop(&self) -> bool {
        match &self.result {
            Ok(done) => matches!(done, Done::SameContent(_)),
            Err(refused) => refused.refusal.code() == RefusalCode::NoChange,
        }
    }

    /// The file that the session overwrites again and again with almost the same content, and how often.
    pub fn rewrites(&self) -> Option<(&RelPath, u32)> {
        match &self.result {
            Ok(Done::SameContent(same)) => Some((&same.path, same.rewrites)),
            Ok(Done::Changed(changed)) => changed.files.first().map(|file| (file.path(), changed.rewrites)),
            _ => None,
        }
    }

    /// The files of the call, by their paths before and after, as far as known.
    pub fn paths(&self) -> Vec<RelPath> {
        self.result.as_ref().map(Done::paths).unwrap_or_default()
    }

    /// The lines that the model knows from this outcome: those that it is shown and those that it wrote.
    pub fn shown(&self) -> Vec<KnownLines> {
        let lines = |path: &RelPath, text: &Text, lines: &LineSet| KnownLines {
            path: path.clone(),
            text: text.clone(),
            lines: lines.clone(),
        };
        match &self.result {
            // A truncated line does not count as seen, but it is one of the lines that the model requested.
            Ok(Done::Read(reading)) if reading.lines.is_empty() && reading.text.line_count() > 0 => Vec::new(),
            Ok(Done::Read(reading)) => vec![lines(&reading.path, &reading.text, &reading.lines)],
            Ok(Done::Found(found)) => found.files.iter().map(|file| lines(&file.path, &file.text, &file.lines)).collect(),
            Ok(Done::Changed(changed)) => {
                let known = |file: &FileOutcome| file.known_lines().map(|(text, known)| lines(file.path(), text, &known));
                let left = |left: &NotUndone| left.text.as_ref().map(|text| lines(&left.path, text, &left.shown()));
                changed.files.iter().filter_map(known).chain(changed.left.iter().filter_map(left)).collect()
            }
            Ok(Done::SameContent(same)) => vec![lines(&same.path, &same.text, &LineSet::whole(same.text.line_count()))],
            Ok(
                Done::Unchanged(_)
                | Done::Listed(_)
                | Done::State(_)
                | Done::Tasks(_)
                | Done::SharedTasks(_)
                | Done::Forgotten(_),
            ) => Vec::new(),
            Err(refused) => match (&refused.text, refused.refusal.known_path()) {
                (Some(text), Some(path)) => vec![lines(&path, text, &refused.refusal.affected_ranges())],
                _ => Vec::new(),
            },
        }
    }

    /// The files that the call read or changed.
    pub fn touched(&self) -> Vec<TouchedFile> {
        let read = |path: &RelPath, text: &Text| TouchedFile { path: path.clone(), touch: Touch::Read(text.version()) };
        match &self.result {
            Ok(Done::Read(reading)) => vec![read(&reading.path, &reading.text)],
            Ok(Done::Unchanged(unchanged)) => vec![read(&unchanged.path, &unchanged.text)],
            Ok(Done::Found(found)) => found.files.iter().map(|file| read(&file.path, &file.text)).collect(),
            Ok(Done::Changed(changed)) => changed.files.iter().flat_map(touched_by).collect(),
            Ok(
                Done::Listed(_)
                | Done::SameContent(_)
                | Done::State(_)
                | Done::Tasks(_)
                | Done::SharedTasks(_)
                | Done::Forgotten(_),
            )
            | Err(_) => Vec::new(),
        }
    }
}

impl Done {
    /// The files of the call, by their paths before and after, as far as known.
    pub fn paths(&self) -> Vec<RelPath> {
        match self {
            Done::Read(reading) => vec![reading.path.clone()],
            Done::Unchanged(unchanged) => vec![unchanged.path.clone()],
            Done::Found(found) => found.files.iter().map(|file| file.path.clone()).collect(),
            Done::Changed(changed) => changed.files.iter().flat_map(FileOutcome::paths).collect(),
            Done::SameContent(same) => vec![same.path.clone()],
            Done::Listed(_) | Done::State(_) | Done::Tasks(_) | Done::SharedTasks(_) | Done::Forgotten(_) => Vec::new(),
        }
    }
}

/// The effect on each path of a file.
fn touched_by(file: &FileOutcome) -> Vec<TouchedFile> {
    let planned = &file.planned;
    let was = planned.base().map(Content::version);
    let gone = |path: &RelPath| TouchedFile { path: path.clone(), touch: Touch::Deleted { was } };
    let version = file.content().map(|content| content.version());
    let moved = |from: &RelPath| version.map(|to| Touch::Moved { from: from.clone(), to });
    let (left, touch) = match (planned.act(), planned.origin()) {
        (FileAction::Remove, _) => (Some(planned.path()), None),
        (FileAction::Move { .. }, _) => (Some(planned.path()), moved(planned.path())),
        (FileAction::Write { .. }, Some(origin)) if planned.is_new() => (Some(&origin.path), moved(&origin.path)),
        (FileAction::Write { .. }, _) if planned.is_new() => (None, version.map(Touch::Created)),
        (FileAction::Write { .. }, _) => (None, version.map(|to| Touch::Modified { from: was, to })),
    };
    // The old path must be resolved before it is recorded as deleted.
    let now = touch.map(|touch| TouchedFile { path: file.path().clone(), touch });
    now.into_iter().chain(left.map(gone)).collect()
}
