//! Renders everything a model reads from values: [`text`] and [`json`] of an outcome. The length is bounded, and what
//! does not fit is counted or named. The outcome decides which lines are shown; rendering never changes what counts as
//! seen.

pub mod change;
pub mod collision;
pub mod cut;
mod first_difference;
pub mod instructions;
mod json;
pub mod list;
pub mod notice;
pub mod read;
pub mod refusal;
pub mod rules;
pub mod scope;
pub mod search;
pub mod snapshot;
pub mod tasks;
mod undo;

pub use self::json::json;
pub use crate::line_numbers::LineNumbers;
use std::fmt;

use crate::{
    excerpt::clip,
    ids::SessionId,
    lines::LineSet,
    notice::Notice,
    outcome::{ChangedBefore, CommandEffects, Done, Forgotten, Outcome, OutcomeNotes},
    path::RelPath,
    text_sink::{JsonString, TextSink},
    tool::ToolNames,
};

/// A rendered outcome, for a model and for a program.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    /// The text for the model, which ends with a newline.
    pub text: String,
    /// Whether the call was refused.
    pub is_error: bool,
    /// The same outcome as JSON, for programs.
    pub result: serde_json::Value,
}

impl Reply {
    /// Renders an outcome for a model that knows the tools by these names.
    pub fn of(outcome: &Outcome, names: &ToolNames) -> Self {
        Self { text: text(outcome, names), is_error: outcome.is_refused(), result: json(outcome, names) }
    }
}

/// The reader of a text: a model or a person.
#[derive(Debug, Clone, Copy)]
pub struct ReplyAudience<'a> {
    /// The tool names that the model knows.
    pub names: &'a ToolNames,
    lines: LinesOfFiles,
    person: Option<PersonWords<'a>>,
}

/// The names of paths and sessions in a text for a person.
#[derive(Clone, Copy)]
pub struct PersonWords<'a> {
    /// Renders a path of the workspace.
    pub path: &'a dyn Fn(&str) -> String,
    /// Renders the id of a session.
    pub session: &'a dyn Fn(&SessionId) -> String,
}

impl fmt::Debug for PersonWords<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PersonWords").finish_non_exhaustive()
    }
}

/// Whether a text shows the lines of files to the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LinesOfFiles {
    /// The text shows them.
    Here,
    /// The model's prompt shows them elsewhere.
    Elsewhere,
}

impl<'a> ReplyAudience<'a> {
    /// A model that knows the tools by these names.
    pub fn new(names: &'a ToolNames) -> Self {
        Self { names, lines: LinesOfFiles::Here, person: None }
    }

    /// A person, who knows the tools by these names.
    fn person(names: &'a ToolNames, person: PersonWords<'a>) -> Self {
        Self { names, lines: LinesOfFiles::Here, person: Some(person) }
    }

    /// A path as the reader knows it.
    fn path(self, path: &RelPath) -> String {
        self.person.map_or_else(|| path.to_string(), |person| (person.path)(path.as_str()))
    }

    /// A model whose prompt shows the lines of files elsewhere.
    pub fn with_open_files(names: &'a ToolNames) -> Self {
        Self { names, lines: LinesOfFiles::Elsewhere, person: None }
    }

    fn sees_lines(self) -> bool {
        self.lines == LinesOfFiles::Here
    }
}

/// An outcome as text, for a model that knows the tools by these names.
pub fn text(outcome: &Outcome, names: &ToolNames) -> String {
    text_for(outcome, ReplyAudience::new(names))
}

/// The outcome of an undo as text, for the person who asked for it.
pub fn text_for_person(outcome: &Outcome, person: PersonWords<'_>) -> String {
    match &outcome.result {
        Ok(_) => text_for(outcome, ReplyAudience::person(&ToolNames::default(), person)),
        Err(refused) => refusal::for_person(&refused.refusal, person),
    }
}

/// The text as the content of a JSON string, appended to `out`.
pub fn text_in_json(outcome: &Outcome, names: &ToolNames, out: &mut Vec<u8>) {
    let (audience, mut out) = (ReplyAudience::new(names), JsonString(out));
    match &outcome.result {
        Ok(Done::Read(reading)) => {
            read::write(&mut out, reading, audience);
            out.put(&notes(&outcome.notes, audience));
        }
        // Every other text is short.
        Ok(_) | Err(_) => out.put(&text_for(outcome, audience)),
    }
}

/// The text without the lines of files, for a model whose prompt shows them elsewhere.
pub fn text_beside_files(outcome: &Outcome, names: &ToolNames) -> String {
    text_for(outcome, ReplyAudience::with_open_files(names))
}

fn text_for(outcome: &Outcome, audience: ReplyAudience<'_>) -> String {
    let mut text = match &outcome.result {
        Ok(done) => done_text(done, audience),
        Err(refused) => refusal::refusal(&refused.refusal, refused.repeat, audience),
    };
    text.push_str(&notes(&outcome.notes, audience));
    text
}

fn done_text(done: &Done, audience: ReplyAudience<'_>) -> String {
    match done {
        Done::Read(reading) => read::read(reading, audience),
        Done::Unchanged(unchanged) => read::unchanged(unchanged, audience),
        Done::Listed(listing) => list::list(listing),
        Done::Found(found) => search::search(found, audience),
        Done::Changed(changed) => change::changed(changed, audience),
        Done::SameContent(same) => change::same_content(same, audience),
        Done::State(shown) => match &shown.document {
            Some(document) => document.clone(),
            None => snapshot::format_for_prompt(&shown.state, audience.names),
        },
        Done::Tasks(tasks) => tasks::tasks(tasks, audience.names),
        Done::SharedTasks(tasks) => tasks::shared_tasks(tasks),
        Done::Forgotten(forgotten) => forgotten_text(forgotten, audience.names),
    }
}

fn forgotten_text(forgotten: &Forgotten, names: &ToolNames) -> String {
    let read = names.read();
    match forgotten {
        Forgotten::Everything => format!("Everything that was read in this session is forgotten: {read} before the next edit.\n"),
        Forgotten::Files(paths) if paths.is_empty() => "None of these files had been read in this session.\n".to_owned(),
        Forgotten::Files(paths) => {
            let named: Vec<&str> = paths.iter().map(crate::path::RelPath::as_str).collect();
            format!("Forgotten ({}): {}. {read} before the next edit.\n", count(named.len(), "file"), named.join(", "))
        }
    }
}

fn notes(notes: &OutcomeNotes, audience: ReplyAudience<'_>) -> String {
    let mut text = notes.instructions.as_ref().map(|given| instructions::instructions(given, audience.names)).unwrap_or_default();
    if !notes.changed_elsewhere.is_empty() {
        text.push_str(&changed_elsewhere(&notes.changed_elsewhere));
    }
    for warning in &notes.warnings {
        text.push_str(&format!("note: {}\n", notice::notice_naming(warning, |path| audience.path(path))));
    }
    text
}

/// Names files that differ from what the session saw; empty if there are none.
pub fn changed_elsewhere(files: &[crate::notice::ChangedFile]) -> String {
    if files.is_empty() {
        return String::new();
    }
    format!("note: {}\n", notice::notice(&Notice::ChangedOutside { files: files.to_vec() }))
}

/// Notes on changes by others in files that a tool of the model's own client is about to edit.
pub fn changed_before(files: &[ChangedBefore], names: &ToolNames) -> String {
    files.iter().map(|file| change::changed_before(file, ReplyAudience::new(names))).collect()
}

/// Notes on files that a tool of the model's own client is about to create, and that existed when the model last read them.
pub fn gone_before(paths: &[RelPath]) -> String {
    paths.iter().map(change::gone_before).collect()
}

/// Notes for the model on the effects of a command.
pub fn command(effects: &CommandEffects) -> String {
    // Files beyond this number are only counted.
    const MOST_TOUCHED: usize = 20;
    let mut text = changed_elsewhere(&effects.changed);
    if !effects.touched.is_empty() {
        text.push_str(&change::touched_files(&effects.touched, MOST_TOUCHED));
    }
    text
}

/// `line 3`, `lines 3-4, 9`; only the first ranges if there are many.
pub fn describe_lines(lines: &LineSet) -> String {
    const MAX: usize = 20;
    let ranges = lines.ranges();
    if ranges.len() > MAX {
        let first: LineSet = ranges[..MAX].iter().copied().collect();
        let more = ranges.len() - MAX;
        return format!("lines {first} and {more} more ranges up to {}", ranges[ranges.len() - 1].end);
    }
    if lines.count() == 1 { format!("line {lines}") } else { format!("lines {lines}") }
}

/// The first items separated by commas, and the number of the remaining ones: `a, b and 3 more`.
fn join_first(items: impl ExactSizeIterator<Item: ToString>, most: usize, more: &str) -> String {
    let rest = items.len().saturating_sub(most);
    let first = items.take(most).map(|item| item.to_string()).collect::<Vec<_>>().join(", ");
    if rest > 0 { format!("{first} and {rest} {more}") } else { first }
}

/// `1 line`, `2 lines`.
pub fn count(number: usize, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}

/// A string of the caller in quotes, shortened.
struct Quote<'a>(&'a str);

impl std::fmt::Display for Quote<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "\"{}\"", clip(self.0, 100).replace('\n', "\\n"))
    }
}
