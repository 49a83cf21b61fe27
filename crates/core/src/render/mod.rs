//! Every word that a model reads, made from values: [`text`] and [`json`] of an outcome. Bounded: what does not fit is named, never
//! dropped in silence. Which lines are shown is part of the outcome; nothing here changes what counts as seen.

pub mod change;
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

pub use self::json::json;
pub use crate::line_numbers::LineNumbers;
use crate::{
    excerpt::clip,
    lines::LineSet,
    notice::Notice,
    outcome::{ChangedBefore, CommandEffects, Done, Forgotten, Outcome, OutcomeNotes},
    path::RelPath,
    text_sink::{JsonString, TextSink},
    tool::ToolNames,
};

/// What a model and a program get to read of an outcome.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    /// For the model.
    pub text: String,
    /// Whether the call was refused.
    pub is_error: bool,
    /// The same for programs.
    pub result: serde_json::Value,
}

impl Reply {
    /// An outcome in words and as an object, for a model that knows its tools by these names.
    pub fn of(outcome: &Outcome, names: &ToolNames) -> Self {
        Self { text: text(outcome, names), is_error: outcome.is_refused(), result: json(outcome, names) }
    }
}

/// For whom a text is written.
#[derive(Debug, Clone, Copy)]
pub struct ReplyAudience<'a> {
    /// What the tools of the model are called.
    pub names: &'a ToolNames,
    lines: LinesOfFiles,
}

/// Where the model finds the lines of files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LinesOfFiles {
    /// In the text.
    Here,
    /// Elsewhere in its prompt.
    Elsewhere,
}

impl<'a> ReplyAudience<'a> {
    /// A model that knows its tools by these names.
    pub fn new(names: &'a ToolNames) -> Self {
        Self { names, lines: LinesOfFiles::Here }
    }

    /// A model whose prompt shows the lines of files in another place.
    pub fn with_open_files(names: &'a ToolNames) -> Self {
        Self { names, lines: LinesOfFiles::Elsewhere }
    }

    fn sees_lines(self) -> bool {
        self.lines == LinesOfFiles::Here
    }
}

/// An outcome in words, for a model that knows its tools by these names.
pub fn text(outcome: &Outcome, names: &ToolNames) -> String {
    text_for(outcome, ReplyAudience::new(names))
}

/// The same as it stands inside a JSON string, appended to what is to be sent.
pub fn text_in_json(outcome: &Outcome, names: &ToolNames, out: &mut Vec<u8>) {
    let (audience, mut out) = (ReplyAudience::new(names), JsonString(out));
    match &outcome.result {
        Ok(Done::Read(reading)) => {
            read::write(&mut out, reading, audience);
            out.put(&notes(&outcome.notes, audience));
        }
        // What the others say is short.
        Ok(_) | Err(_) => out.put(&text_for(outcome, audience)),
    }
}

/// The same without the lines of files, for a model whose prompt shows those in another place.
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
        Done::Forgotten(forgotten) => forgot(forgotten, audience.names),
    }
}

fn forgot(forgotten: &Forgotten, names: &ToolNames) -> String {
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

/// What a reply says besides its result.
fn notes(notes: &OutcomeNotes, audience: ReplyAudience<'_>) -> String {
    let mut text = notes.instructions.as_ref().map(|told| instructions::instructions(told, audience.names)).unwrap_or_default();
    if !notes.changed_elsewhere.is_empty() {
        text.push_str(&changed_elsewhere(&notes.changed_elsewhere));
    }
    for warning in &notes.warnings {
        text.push_str(&format!("note: {}\n", notice::notice(warning)));
    }
    text
}

/// Names files that are not what the session saw; nothing where there are none.
pub fn changed_elsewhere(files: &[crate::notice::ChangedFile]) -> String {
    if files.is_empty() {
        return String::new();
    }
    format!("note: {}\n", notice::notice(&Notice::ChangedOutside { files: files.to_vec() }))
}

/// What else has changed in files that a tool of the model's client is about to edit.
pub fn changed_before(files: &[ChangedBefore], names: &ToolNames) -> String {
    files.iter().map(|file| change::changed_before(file, ReplyAudience::new(names))).collect()
}

/// Files that a tool of the model's client is about to make and that were there when the model last saw them.
pub fn gone_before(paths: &[RelPath]) -> String {
    paths.iter().map(change::gone_before).collect()
}

/// What the model should know of what a command changed.
pub fn command(effects: &CommandEffects) -> String {
    // More files than this are not named; their number is.
    const MOST_TOUCHED: usize = 20;
    let mut text = changed_elsewhere(&effects.changed);
    if !effects.touched.is_empty() {
        text.push_str(&change::touched(&effects.touched, MOST_TOUCHED));
    }
    text
}

/// `line 3`, `lines 3-4, 9`; of many ranges the first ones.
pub fn which(lines: &LineSet) -> String {
    const MAX: usize = 20;
    let ranges = lines.ranges();
    if ranges.len() > MAX {
        let first: LineSet = ranges[..MAX].iter().copied().collect();
        let more = ranges.len() - MAX;
        return format!("lines {first} and {more} more ranges up to {}", ranges[ranges.len() - 1].end);
    }
    if lines.count() == 1 { format!("line {lines}") } else { format!("lines {lines}") }
}

/// `1 line`, `2 lines`.
pub fn count(number: usize, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}

/// What somebody typed, in quotes and not too much of it.
struct Quote<'a>(&'a str);

impl std::fmt::Display for Quote<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "\"{}\"", clip(self.0, 100).replace('\n', "\\n"))
    }
}
