//! What a call did, as values: what was read, found or changed, or why it was refused, plus notes. Programs match on these
//! values; [`crate::render`] turns them into text and JSON, which is never parsed back.
//!
//! This module also decides how much a model is shown, because what is shown counts as seen.

pub mod change;
pub mod list;
pub mod read;
pub mod scope;
pub mod search;

pub use self::{
    change::{ChangeOutcome, ChangedBefore, FileOutcome, Landed, RewrittenFile, SameContent, UndoneChange, WriteMethod},
    list::Listing,
    read::{ReadResult, UnchangedRead},
    scope::{SearchArea, SearchScope, SkippedFiles},
    search::{FileMatches, SearchResult},
};
use crate::{
    content::Content,
    excerpt::KnownLines,
    ids::ChangeId,
    instructions::ToldInstructions,
    lines::LineSet,
    notice::{ChangedFile, Notice},
    path::RelPath,
    plan::FileAction,
    refusal::{Refusal, RefusalCode},
    repo_state::{RepoState, TaskList},
    text::Text,
    tracked::Touch,
};

/// What came of a call.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
#[must_use = "it says whether the call was refused"]
pub struct Outcome {
    /// What was done, or why nothing was.
    pub result: Result<Done, RefusedOutcome>,
    /// What else there is to say.
    pub notes: OutcomeNotes,
}

/// What was done.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Done {
    /// Lines of a file were read.
    Read(ReadResult),
    /// Lines were asked for that the session has seen and that have not changed.
    Unchanged(UnchangedRead),
    /// Files were listed.
    Listed(Listing),
    /// Files were searched.
    Found(SearchResult),
    /// Files were changed.
    Changed(ChangeOutcome),
    /// A file was to be written that holds that content already.
    SameContent(SameContent),
    /// The state of the repository was asked for.
    State(ShownState),
    /// The list of tasks was changed; this is all of it.
    Tasks(TaskList),
    /// What was read no longer counts.
    Forgotten(Forgotten),
}

/// A call that was refused.
#[derive(Debug, Clone, PartialEq)]
pub struct RefusedOutcome {
    /// Why.
    pub refusal: Box<Refusal>,
    /// How often the very same call has been refused, this time included.
    pub repeat: u32,
    /// The text of the file that the refusal shows lines of, if it counts as seen.
    pub text: Option<Text>,
}

/// The state of the repository, and how it is shown.
#[derive(Debug, Clone, PartialEq)]
pub struct ShownState {
    /// The state.
    pub state: RepoState,
    /// All of it as a document for programs, if that was asked for instead of a summary.
    pub document: Option<String>,
}

/// What no longer counts as read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Forgotten {
    /// Everything.
    Everything,
    /// These files; others that were named had not been read.
    Files(Vec<RelPath>),
}

/// What a reply says besides its result.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct OutcomeNotes {
    /// What the owner of the repository asks of whoever works in the directories of the call.
    pub instructions: Option<ToldInstructions>,
    /// Files that the session has seen and that somebody else has changed since.
    pub changed_elsewhere: Vec<ChangedFile>,
    /// What happened to the workspace without anybody asking.
    pub warnings: Vec<Notice>,
}

/// What a command in a shell has shown and changed.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CommandEffects {
    /// Files that the session has seen and that are something else now, with who did it.
    pub changed: Vec<ChangedFile>,
    /// Other files in which something happened meanwhile.
    pub touched: Vec<RelPath>,
    /// The lines that it printed, which count as read.
    pub read: Vec<KnownLines>,
}

/// A file that a call has read or changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TouchedFile {
    /// The file.
    pub path: RelPath,
    /// What was done to it.
    pub touch: Touch,
}

impl Outcome {
    /// An outcome with nothing else to say.
    pub fn new(result: Result<Done, RefusedOutcome>) -> Self {
        Self { result, notes: OutcomeNotes::default() }
    }

    /// Whether the call was refused.
    pub fn is_refused(&self) -> bool {
        self.result.is_err()
    }

    /// Why it was refused, if it was.
    pub fn refusal(&self) -> Option<&Refusal> {
        self.result.as_ref().err().map(|refused| &*refused.refusal)
    }

    /// The change that was made, if one was.
    pub fn changed(&self) -> Option<&ChangeOutcome> {
        match &self.result {
            Ok(Done::Changed(changed)) => Some(changed),
            _ => None,
        }
    }

    /// The name of the change that was made, if one was.
    pub fn change(&self) -> Option<&ChangeId> {
        self.changed().map(|changed| &changed.change)
    }

    /// Whether nothing was done because there was nothing to do.
    pub fn is_noop(&self) -> bool {
        match &self.result {
            Ok(done) => matches!(done, Done::SameContent(_)),
            Err(refused) => refused.refusal.code() == RefusalCode::NoChange,
        }
    }

    /// The file that the session has written over with nearly what it held, and how often, if it has.
    pub fn rewrites(&self) -> Option<(&RelPath, u32)> {
        match &self.result {
            Ok(Done::SameContent(same)) => Some((&same.path, same.rewrites)),
            Ok(Done::Changed(changed)) => changed.files.first().map(|file| (file.path(), changed.rewrites)),
            _ => None,
        }
    }

    /// The files that it was about, by their names before and after, as they are known now.
    pub fn paths(&self) -> Vec<RelPath> {
        self.result.as_ref().map(Done::paths).unwrap_or_default()
    }

    /// The lines of files that the model knows from it: those that it is shown, and those that it has written itself.
    pub fn shown(&self) -> Vec<KnownLines> {
        let lines = |path: &RelPath, text: &Text, lines: &LineSet| KnownLines {
            path: path.clone(),
            text: text.clone(),
            lines: lines.clone(),
        };
        match &self.result {
            // A line that is cut is not known, but it is among those that the model wants to see.
            Ok(Done::Read(reading)) if reading.lines.is_empty() && reading.text.line_count() > 0 => Vec::new(),
            Ok(Done::Read(reading)) => vec![lines(&reading.path, &reading.text, &reading.lines)],
            Ok(Done::Found(found)) => found.files.iter().map(|file| lines(&file.path, &file.text, &file.lines)).collect(),
            Ok(Done::Changed(changed)) => {
                let known = |file: &FileOutcome| file.known_lines().map(|(text, known)| lines(file.path(), text, &known));
                changed.files.iter().filter_map(known).collect()
            }
            Ok(Done::SameContent(same)) => vec![lines(&same.path, &same.text, &LineSet::whole(same.text.line_count()))],
            Ok(Done::Unchanged(_) | Done::Listed(_) | Done::State(_) | Done::Tasks(_) | Done::Forgotten(_)) => Vec::new(),
            Err(refused) => match (&refused.text, refused.refusal.known_path()) {
                (Some(text), Some(path)) => vec![lines(&path, text, &refused.refusal.affected_ranges())],
                _ => Vec::new(),
            },
        }
    }

    /// The files that it has read or changed.
    pub fn touched(&self) -> Vec<TouchedFile> {
        let read = |path: &RelPath, text: &Text| TouchedFile { path: path.clone(), touch: Touch::Read(text.version()) };
        match &self.result {
            Ok(Done::Read(reading)) => vec![read(&reading.path, &reading.text)],
            Ok(Done::Unchanged(unchanged)) => vec![read(&unchanged.path, &unchanged.text)],
            Ok(Done::Found(found)) => found.files.iter().map(|file| read(&file.path, &file.text)).collect(),
            Ok(Done::Changed(changed)) => changed.files.iter().flat_map(touched_by).collect(),
            Ok(Done::Listed(_) | Done::SameContent(_) | Done::State(_) | Done::Tasks(_) | Done::Forgotten(_)) | Err(_) => {
                Vec::new()
            }
        }
    }
}

impl Done {
    /// The files that it was about, by their names before and after, as they are known now.
    pub fn paths(&self) -> Vec<RelPath> {
        match self {
            Done::Read(reading) => vec![reading.path.clone()],
            Done::Unchanged(unchanged) => vec![unchanged.path.clone()],
            Done::Found(found) => found.files.iter().map(|file| file.path.clone()).collect(),
            Done::Changed(changed) => changed.files.iter().flat_map(FileOutcome::paths).collect(),
            Done::SameContent(same) => vec![same.path.clone()],
            Done::Listed(_) | Done::State(_) | Done::Tasks(_) | Done::Forgotten(_) => Vec::new(),
        }
    }
}

/// What became of the names of a file.
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
    // What it was under its old name is asked before that is gone.
    let now = touch.map(|touch| TouchedFile { path: file.path().clone(), touch });
    now.into_iter().chain(left.map(gone)).collect()
}
