//! Hooks: what an agent's own tools are about to do is judged, what they did is recorded. A hook is a process that is told one thing and
//! answers at once; all it knows is in the state of the workspace. If anything of ours fails, the agent goes on as if we were not there.

mod claude;
mod cline;
mod codex;
pub(crate) mod conversation;
mod copilot;
mod cursor;
mod cut;
mod decide;
mod gemini;
mod generic;
mod goose;
mod goose_record;
mod notebook;
mod opencode;
mod patch;
mod places;
mod qwen;
mod reasonix;
mod references;
mod search;
mod transcript;

use serde_json::Value;
use surehand_engine::{ClientInstructions, Edit, SessionId, ToolNames, core::edit::Replacement};

use self::{decide::Verdict, places::Places};
pub use self::{
    goose::with_surroundings as with_goose_surroundings,
    opencode::plugin as opencode_plugin,
    places::{OpenedWorkspace, Surroundings},
};
use crate::session_places::SessionPlaces;

/// An agent that has hooks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Client {
    /// Claude Code.
    Claude,
    /// Codex CLI.
    Codex,
    /// Gemini CLI.
    Gemini,
    /// Cursor.
    Cursor,
    /// opencode, through a plugin of ours.
    Opencode,
    /// Qwen Code.
    Qwen,
    /// GitHub Copilot CLI.
    Copilot,
    /// goose.
    Goose,
    /// Cline.
    Cline,
    /// Reasonix.
    Reasonix,
    /// Any agent that speaks our own protocol (`docs/hook-protocol.md`).
    Generic,
}

/// What a hook prints and how it ends.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Answer {
    /// For the client; nothing lets everything pass.
    pub stdout: String,
    /// For a client that takes a denial from here.
    pub stderr: String,
    /// Zero, unless the client takes another one for a denial. Some take any other for one.
    pub exit_code: u8,
    /// What went wrong with us, for the log.
    pub failed: Option<String>,
}

/// How a client speaks and what it is like.
struct Dialect {
    /// What its tools are called.
    names: fn() -> ToolNames,
    /// How many bytes of context it takes at once.
    room: usize,
    /// The events at which the model hears what we have to say.
    hears_at: &'static [&'static str],
    /// The field in which it says what happens.
    event: &'static str,
    /// How it takes a denial.
    denial: Denial,
    /// What its model must know with each denial, because of what the client does by itself.
    beside_denial: &'static str,
    /// What it tells, in our words; nothing if it is none of our business.
    hear: fn(&Value) -> Option<Heard>,
    /// An answer in its words; null says nothing.
    say: fn(&Value, &Verdict) -> Value,
    /// The field of an answer that is shown to the person.
    person: Option<&'static str>,
    /// Which instructions it gives the model itself.
    instructions: &'static ClientInstructions,
    /// What its record of the conversation is good for.
    transcript: Transcript,
}

impl Dialect {
    /// Whether the model hears what there is to say about the use of a tool, before its next one.
    fn hears_of_tools(&self) -> bool {
        self.hears_at.iter().any(|event| !event.eq_ignore_ascii_case("sessionstart"))
    }
}

/// How a client takes a denial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Denial {
    /// In the answer.
    Answered,
    /// By exit code 2, with the reason on standard error.
    ExitCode,
}

/// What a client's record of the conversation is good for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Transcript {
    /// Nothing.
    Unread,
    /// It tells that the context has lost something.
    TellsLoss,
    /// It has files in it that the client put into the context by itself.
    HoldsFiles,
    /// It is goose's database of sessions, which has the results of the tools: its hooks do not tell them.
    HoldsResults,
}

/// What a client tells a hook, in our words.
#[derive(Debug, Clone, PartialEq)]
struct Heard {
    /// The client's name of its conversation.
    session: String,
    /// Of a part of it that has a context of its own.
    agent: Option<String>,
    /// Where it works.
    directory: String,
    /// Where it keeps its record of the conversation.
    transcript: Option<String>,
    /// Files that it has just given the model as instructions.
    gave: Vec<String>,
    /// What happens.
    what: What,
}

/// What happens.
#[derive(Debug, Clone, PartialEq)]
enum What {
    /// A conversation begins or goes on.
    Begins(Beginning),
    /// The context has lost what was in it.
    Forgot,
    /// The person has said something, and the client has put these lines of files into the context with it.
    Prompted(Vec<Shown>),
    /// A tool is about to run.
    Before(Use),
    /// A tool has run.
    After(Use, ToolOutcome),
}

/// How a conversation begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Beginning {
    /// From nothing.
    New,
    /// With all that was in the context.
    Resumed,
    /// With an empty context.
    Cleared,
    /// With a summary of what was in the context.
    Compacted,
}

/// What a tool is used for. Paths are as the client gave them.
#[derive(Debug, Clone, PartialEq)]
enum Use {
    /// To read files.
    Read,
    /// To change files.
    Change(Edit),
    /// To apply a patch.
    Patch(String),
    /// To run a command.
    Shell {
        /// As it is given to the shell.
        command: String,
        /// Where, if not where the client works.
        directory: Option<String>,
    },
    /// To search in files.
    Search {
        /// The files or directories that are searched; none is where the client works.
        paths: Vec<String>,
    },
}

/// What came of it.
#[derive(Debug, Clone, PartialEq)]
enum ToolOutcome {
    /// It has done what it was to do.
    Done,
    /// It has shown lines of files.
    Showed(Vec<Shown>),
    /// It has shown the cells of a notebook (`.ipynb`): this is their text, without the JSON around it.
    ShowedNotebook { path: String, cells: String },
    /// It has printed this.
    Printed(String),
    /// Nothing.
    Failed,
}

/// Lines of a file that were shown.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Shown {
    path: String,
    /// The number of the first.
    start: u32,
    /// All of them.
    content: String,
}

impl Client {
    /// All of them.
    pub const ALL: &[Client] = &[
        Client::Claude,
        Client::Codex,
        Client::Gemini,
        Client::Cursor,
        Client::Opencode,
        Client::Qwen,
        Client::Copilot,
        Client::Goose,
        Client::Cline,
        Client::Reasonix,
        Client::Generic,
    ];

    /// As it is called on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Client::Claude => "claude",
            Client::Codex => "codex",
            Client::Gemini => "gemini",
            Client::Cursor => "cursor",
            Client::Opencode => "opencode",
            Client::Qwen => "qwen",
            Client::Copilot => "copilot",
            Client::Goose => "goose",
            Client::Cline => "cline",
            Client::Reasonix => "reasonix",
            Client::Generic => "generic",
        }
    }

    /// The client of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|client| client.name() == name).copied()
    }

    /// The variable in which it names the project of the session to its hooks. Others name it in what they send, or not at all.
    pub fn project_variable(self) -> Option<&'static str> {
        match self {
            Client::Claude => Some("CLAUDE_PROJECT_DIR"),
            Client::Gemini => Some("GEMINI_PROJECT_DIR"),
            Client::Cursor => Some("CURSOR_PROJECT_DIR"),
            Client::Qwen => Some("QWEN_PROJECT_DIR"),
            _ => None,
        }
    }

    fn dialect(self) -> &'static Dialect {
        match self {
            Client::Claude => &claude::DIALECT,
            Client::Codex => &codex::DIALECT,
            Client::Gemini => &gemini::DIALECT,
            Client::Cursor => &cursor::DIALECT,
            Client::Opencode => &opencode::DIALECT,
            Client::Qwen => &qwen::DIALECT,
            Client::Copilot => &copilot::DIALECT,
            Client::Goose => &goose::DIALECT,
            Client::Cline => &cline::DIALECT,
            Client::Reasonix => &reasonix::DIALECT,
            Client::Generic => &generic::DIALECT,
        }
    }

    /// What lets everything pass, whatever has become of us.
    pub fn pass(self) -> Answer {
        let stdout = match self {
            // Cursor may take no answer at all for a broken one, and that for a no.
            Client::Cursor => "{}\n".to_owned(),
            Client::Generic => generic::line(&generic::allow()),
            _ => String::new(),
        };
        Answer { stdout, ..Answer::default() }
    }

    /// An answer to what is none of our business. Who writes to our own protocol should hear of a slip.
    fn unheard(self, input: &Value) -> Answer {
        if self == Client::Generic { self.fail(generic::slip(input)) } else { self.pass() }
    }

    /// What a client is told, in its words, and what it shows the person.
    fn answer(self, input: &Value, verdict: Verdict, person: Option<&str>) -> Answer {
        let dialect = self.dialect();
        if let (Verdict::Deny(why), Denial::ExitCode) = (&verdict, dialect.denial) {
            return Answer { stderr: why.clone(), exit_code: 2, ..Answer::default() };
        }
        let mut said = (dialect.say)(input, &verdict);
        if let (Some(field), Some(text), Some(said)) = (dialect.person, person, said.as_object_mut()) {
            said.insert(field.to_owned(), text.trim_end().into());
        }
        match said {
            Value::Null => self.pass(),
            said => Answer { stdout: format!("{said}\n"), ..Answer::default() },
        }
    }

    /// The same, with what went wrong.
    pub fn fail(self, why: impl Into<String>) -> Answer {
        let why = why.into();
        let pass = self.pass();
        let stdout = if self == Client::Generic { generic::line(&generic::failed(&why)) } else { pass.stdout };
        Answer { stdout, failed: Some(why), ..pass }
    }
}

/// Answers a hook. `event` is what happens, for a client that does not say it. Where there is no workspace, everything passes.
pub fn answer(client: Client, event: Option<&str>, input: &str, around: &Surroundings<'_>) -> Answer {
    let mut input: Value = match serde_json::from_str(input) {
        Ok(input) => input,
        Err(error) => return client.fail(format!("the input is no JSON: {error}")),
    };
    let Some(fields) = input.as_object_mut() else { return client.fail("the input is no JSON object") };
    let dialect = client.dialect();
    if let (Some(event), false) = (event, fields.contains_key(dialect.event)) {
        fields.insert(dialect.event.to_owned(), event.into());
    }
    let Some(heard) = (dialect.hear)(&input) else { return client.unheard(&input) };
    if matches!(heard.what, What::Before(Use::Read | Use::Search { .. })) {
        // There is nothing to judge, and what there is to say can wait until it has read.
        return client.pass();
    }
    let agent = heard.agent.as_ref().map(|agent| format!("-{agent}")).unwrap_or_default();
    let id = SessionId(format!("{}-{}{agent}", client.name(), heard.session));
    let hears = input[dialect.event].as_str().is_some_and(|event| dialect.hears_at.contains(&event));
    let (verdict, troubles) = match Places::open(around, id.clone(), &heard.directory) {
        Ok(mut places) => {
            if matches!(heard.what, What::Begins(_)) && heard.agent.is_none() {
                conversation::enter(places.home().workspace(), &id);
            }
            let verdict = decide::decide(&mut places, &heard, dialect, hears);
            let troubles = std::mem::take(&mut places.troubles);
            places.leave();
            (verdict, troubles)
        }
        Err(why) => (Verdict::Pass, vec![format!("cannot guard this session: {why}")]),
    };
    let failed = (!troubles.is_empty()).then(|| troubles.join("; "));
    // Every client hears a denial.
    let hears = hears || matches!(verdict, Verdict::Deny(_));
    let warning = if hears { warning(&troubles, &heard, &id, around) } else { None };
    let answer = client.answer(&input, beside(verdict, warning.as_deref(), dialect), warning.as_deref());
    Answer { failed, ..answer }
}

/// What the person and the model hear, once in a session, where Surehand does not guard as it should.
fn warning(troubles: &[String], heard: &Heard, session: &SessionId, around: &Surroundings<'_>) -> Option<String> {
    // Where it cannot be remembered that it was said, it is said when a conversation begins.
    let is_news = |trouble: &&String| match SessionPlaces::can_be_kept(&around.state) {
        true => SessionPlaces::change(&around.state, session, |places| places.tell(trouble)),
        false => matches!(heard.what, What::Begins(_)),
    };
    let news: Vec<&str> = troubles.iter().filter(is_news).map(String::as_str).collect();
    let what = news.join("; it ");
    (!news.is_empty()).then(|| format!("Surehand {what}. `surehand doctor` tells more.\n"))
}

/// A verdict with what else the model is told.
fn beside(verdict: Verdict, warning: Option<&str>, dialect: &Dialect) -> Verdict {
    let warning = warning.unwrap_or_default();
    match verdict {
        Verdict::Pass if warning.is_empty() => Verdict::Pass,
        Verdict::Pass => Verdict::Context(warning.to_owned()),
        Verdict::Context(text) => Verdict::Context(format!("{warning}{text}")),
        Verdict::Deny(why) => Verdict::Deny(format!("{why}{}{warning}", dialect.beside_denial)),
    }
}

/// The field in which most clients say what happens.
const EVENT: &str = "hook_event_name";

/// A path as seen from nowhere: clients may give one as seen from their own directory.
fn located(directory: &str, path: &str) -> String {
    if path.starts_with('/') { path.to_owned() } else { format!("{}/{path}", directory.trim_end_matches('/')) }
}

/// A text field, if it is there and not empty.
fn text(value: &Value, name: &str) -> Option<String> {
    value[name].as_str().filter(|text| !text.is_empty()).map(str::to_owned)
}

/// The first of these fields that is a text.
fn any_text<'a>(value: &'a Value, names: &[&str]) -> Option<&'a str> {
    names.iter().find_map(|name| value[*name].as_str())
}

/// A number of a line in one of these fields.
fn line_number(value: &Value, name: &str) -> Option<u32> {
    value[name].as_u64().and_then(|number| u32::try_from(number).ok())
}

/// Rows that a tool numbered, as text, with the number of the first; only if they follow one another.
fn in_a_row(rows: Vec<(u32, String)>) -> Option<(u32, String)> {
    let start = rows.first()?.0;
    let follow = rows.windows(2).all(|pair| pair[0].0.checked_add(1) == Some(pair[1].0));
    follow.then(|| (start, rows.into_iter().map(|(_, line)| line).collect::<Vec<_>>().join("\n")))
}

/// An edit of one file that replaces a text.
fn edit(path: &str, old: &str, new: &str, all: bool) -> Use {
    Use::Change(Edit::Replace(replacement(path, old, new, all)))
}

/// The edits in a field: each has an old and a new text under these names, and whether all are meant. `None` if one of them cannot
/// be understood.
fn replacements(path: &str, edits: &Value, [old, new, all]: [&str; 3]) -> Option<Vec<Replacement>> {
    let of = |edit: &Value| Some(replacement(path, edit[old].as_str()?, edit[new].as_str()?, edit[all] == true));
    edits.as_array()?.iter().map(of).collect()
}

/// Several edits of one file; if one of them cannot be understood, that it is edited.
fn several_edits(path: &str, edits: Option<Vec<Replacement>>) -> Use {
    edits.map_or_else(|| some_edit(path), |edits| Use::Change(Edit::ReplaceMany(edits)))
}

/// An edit of which only the file is known: no text has this character.
fn some_edit(path: &str) -> Use {
    edit(path, "\u{0}", "", false)
}

fn replacement(path: &str, old: &str, new: &str, all: bool) -> Replacement {
    Replacement { path: path.to_owned(), old: old.to_owned(), new: new.to_owned(), all }
}

/// A file that is written as a whole.
fn write(path: &str, content: &str) -> Use {
    Use::Change(Edit::write(path, content))
}

/// An answer as Claude Code and those who follow it take it. Nothing else may be in it: some would not take any of it then.
fn say_as_claude(input: &Value, verdict: &Verdict) -> Value {
    let event = input[EVENT].clone();
    match verdict {
        Verdict::Pass => Value::Null,
        Verdict::Deny(why) => serde_json::json!({ "hookSpecificOutput": {
            "hookEventName": event, "permissionDecision": "deny", "permissionDecisionReason": why,
        } }),
        Verdict::Context(text) => serde_json::json!({ "hookSpecificOutput": {
            "hookEventName": event, "additionalContext": text,
        } }),
    }
}

/// How a conversation begins, as most clients say it.
fn beginning(source: Option<&str>) -> Beginning {
    match source {
        Some("resume" | "fork") => Beginning::Resumed,
        Some("clear") => Beginning::Cleared,
        Some("compact") => Beginning::Compacted,
        _ => Beginning::New,
    }
}
