//! Hooks: what an agent's own tools are about to do is judged, what they did is recorded. A hook is a process that is told one thing and
//! answers at once; all it knows is in the state of the workspace. If anything of ours fails, the agent goes on as if we were not there.

mod claude;
mod cline;
mod codex;
pub(crate) mod conversation;
mod copilot;
mod cursor;
mod gemini;
mod generic;
mod goose;
mod goose_database;
mod handle;
mod opencode;
mod patch;
mod pending_notes;
mod prompt_files;
mod qwen;
mod reasonix;
mod search_hits;
mod transcript;
mod truncation;
mod workspaces;

use serde_json::Value;
use surehand_engine::{ClientInstructions, Edit, SessionId, ToolNames, core::edit::TextReplacement};

pub use self::{
    goose::with_environment as with_goose_environment,
    opencode::plugin as opencode_plugin,
    workspaces::{HookEnvironment, OpenedWorkspace},
};
use self::{handle::HookVerdict, workspaces::SessionWorkspaces};
use crate::session_roots::SessionRoots;

/// An agent that has hooks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HookClient {
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
pub struct HookAnswer {
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
struct ClientAdapter {
    names: fn() -> ToolNames,
    /// How many bytes of context it takes at once.
    room: usize,
    /// The events at which the model hears what we have to say.
    hears_at: &'static [&'static str],
    event: &'static str,
    denial: DenialChannel,
    /// What its model must know with each denial, because of what the client does by itself.
    beside_denial: &'static str,
    /// What it tells, in our words; nothing if it is none of our business.
    hear: fn(&Value) -> Option<HookInput>,
    /// An answer in its words; null says nothing.
    say: fn(&Value, &HookVerdict) -> Value,
    /// The field of an answer that is shown to the person.
    person: Option<&'static str>,
    instructions: &'static ClientInstructions,
    /// What its record of the conversation is good for.
    transcript: TranscriptUse,
}

impl ClientAdapter {
    /// Whether the model hears what there is to say about the use of a tool, before its next one.
    fn hears_of_tools(&self) -> bool {
        self.hears_at.iter().any(|event| !event.eq_ignore_ascii_case("sessionstart"))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DenialChannel {
    Answered,
    /// By exit code 2, with the reason on standard error.
    ExitCode,
}

/// What a client's record of the conversation is good for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TranscriptUse {
    /// Nothing.
    Unread,
    TellsLoss,
    /// It has files in it that the client put into the context by itself.
    HoldsFiles,
    /// It is goose's database of sessions, which has the results of the tools: its hooks do not tell them.
    HoldsResults,
}

/// What a client tells a hook, in our words.
#[derive(Debug, Clone, PartialEq)]
struct HookInput {
    session: String,
    /// Of a part of it that has a context of its own.
    agent: Option<String>,
    directory: String,
    /// Where it keeps its record of the conversation.
    transcript: Option<String>,
    /// Files that it has just given the model as instructions.
    gave: Vec<String>,
    what: HookEvent,
}

#[derive(Debug, Clone, PartialEq)]
enum HookEvent {
    Begins(SessionStart),
    Forgot,
    /// The person has said something, and the client has put these lines of files into the context with it.
    Prompted(Vec<ShownLines>),
    Before(ToolUse),
    After(ToolUse, ToolOutcome),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SessionStart {
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
enum ToolUse {
    Read,
    Change(Edit),
    Patch(String),
    Shell {
        command: String,
        /// Where, if not where the client works.
        directory: Option<String>,
    },
    Search {
        /// The files or directories that are searched; none is where the client works.
        paths: Vec<String>,
    },
}

#[derive(Debug, Clone, PartialEq)]
enum ToolOutcome {
    Done,
    Showed(Vec<ShownLines>),
    /// It has shown the cells of a notebook (`.ipynb`): this is their text, without the JSON around it.
    ShowedNotebook {
        path: String,
        cells: String,
    },
    Printed(String),
    /// Nothing.
    Failed,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct ShownLines {
    path: String,
    /// The number of the first.
    start: u32,
    content: String,
}

impl HookClient {
    /// All of them.
    pub const ALL: &[HookClient] = &[
        HookClient::Claude,
        HookClient::Codex,
        HookClient::Gemini,
        HookClient::Cursor,
        HookClient::Opencode,
        HookClient::Qwen,
        HookClient::Copilot,
        HookClient::Goose,
        HookClient::Cline,
        HookClient::Reasonix,
        HookClient::Generic,
    ];

    /// As it is called on the command line.
    pub fn name(self) -> &'static str {
        match self {
            HookClient::Claude => "claude",
            HookClient::Codex => "codex",
            HookClient::Gemini => "gemini",
            HookClient::Cursor => "cursor",
            HookClient::Opencode => "opencode",
            HookClient::Qwen => "qwen",
            HookClient::Copilot => "copilot",
            HookClient::Goose => "goose",
            HookClient::Cline => "cline",
            HookClient::Reasonix => "reasonix",
            HookClient::Generic => "generic",
        }
    }

    /// The client of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|client| client.name() == name).copied()
    }

    /// The variable in which it names the project of the session to its hooks. Others name it in what they send, or not at all.
    pub fn project_variable(self) -> Option<&'static str> {
        match self {
            HookClient::Claude => Some("CLAUDE_PROJECT_DIR"),
            HookClient::Gemini => Some("GEMINI_PROJECT_DIR"),
            HookClient::Cursor => Some("CURSOR_PROJECT_DIR"),
            HookClient::Qwen => Some("QWEN_PROJECT_DIR"),
            _ => None,
        }
    }

    fn dialect(self) -> &'static ClientAdapter {
        match self {
            HookClient::Claude => &claude::DIALECT,
            HookClient::Codex => &codex::DIALECT,
            HookClient::Gemini => &gemini::DIALECT,
            HookClient::Cursor => &cursor::DIALECT,
            HookClient::Opencode => &opencode::DIALECT,
            HookClient::Qwen => &qwen::DIALECT,
            HookClient::Copilot => &copilot::DIALECT,
            HookClient::Goose => &goose::DIALECT,
            HookClient::Cline => &cline::DIALECT,
            HookClient::Reasonix => &reasonix::DIALECT,
            HookClient::Generic => &generic::DIALECT,
        }
    }

    /// What lets everything pass, whatever has become of us.
    pub fn pass(self) -> HookAnswer {
        let stdout = match self {
            // Cursor may take no answer at all for a broken one, and that for a no.
            HookClient::Cursor => "{}\n".to_owned(),
            HookClient::Generic => generic::line(&generic::allow()),
            _ => String::new(),
        };
        HookAnswer { stdout, ..HookAnswer::default() }
    }

    /// An answer to what is none of our business. Who writes to our own protocol should hear of a slip.
    fn unheard(self, input: &Value) -> HookAnswer {
        if self == HookClient::Generic { self.fail(generic::slip(input)) } else { self.pass() }
    }

    /// What a client is told, in its words, and what it shows the person.
    fn answer(self, input: &Value, verdict: HookVerdict, person: Option<&str>) -> HookAnswer {
        let dialect = self.dialect();
        if let (HookVerdict::Deny(why), DenialChannel::ExitCode) = (&verdict, dialect.denial) {
            return HookAnswer { stderr: why.clone(), exit_code: 2, ..HookAnswer::default() };
        }
        let mut said = (dialect.say)(input, &verdict);
        if let (Some(field), Some(text), Some(said)) = (dialect.person, person, said.as_object_mut()) {
            said.insert(field.to_owned(), text.trim_end().into());
        }
        match said {
            Value::Null => self.pass(),
            said => HookAnswer { stdout: format!("{said}\n"), ..HookAnswer::default() },
        }
    }

    /// The same, with what went wrong.
    pub fn fail(self, why: impl Into<String>) -> HookAnswer {
        let why = why.into();
        let pass = self.pass();
        let stdout = if self == HookClient::Generic { generic::line(&generic::failed(&why)) } else { pass.stdout };
        HookAnswer { stdout, failed: Some(why), ..pass }
    }
}

/// Answers a hook. `event` is what happens, for a client that does not say it. Where there is no workspace, everything passes.
pub fn answer(client: HookClient, event: Option<&str>, input: &str, around: &HookEnvironment<'_>) -> HookAnswer {
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
    if matches!(heard.what, HookEvent::Before(ToolUse::Read | ToolUse::Search { .. })) {
        // There is nothing to judge, and what there is to say can wait until it has read.
        return client.pass();
    }
    let agent = heard.agent.as_ref().map(|agent| format!("-{agent}")).unwrap_or_default();
    let id = SessionId(format!("{}-{}{agent}", client.name(), heard.session));
    let hears = input[dialect.event].as_str().is_some_and(|event| dialect.hears_at.contains(&event));
    let (verdict, troubles) = match SessionWorkspaces::open(around, id.clone(), &heard.directory) {
        Ok(mut places) => {
            if matches!(heard.what, HookEvent::Begins(_)) && heard.agent.is_none() {
                conversation::enter(places.home().workspace(), &id);
            }
            let verdict = handle::decide(&mut places, &heard, dialect, hears);
            let troubles = std::mem::take(&mut places.troubles);
            places.leave();
            (verdict, troubles)
        }
        Err(why) => (HookVerdict::Pass, vec![format!("cannot guard this session: {why}")]),
    };
    let failed = (!troubles.is_empty()).then(|| troubles.join("; "));
    // Every client hears a denial.
    let hears = hears || matches!(verdict, HookVerdict::Deny(_));
    let warning = if hears { warning(&troubles, &heard, &id, around) } else { None };
    let answer = client.answer(&input, beside(verdict, warning.as_deref(), dialect), warning.as_deref());
    HookAnswer { failed, ..answer }
}

/// What the person and the model hear, once in a session, where Surehand does not guard as it should.
fn warning(troubles: &[String], heard: &HookInput, session: &SessionId, around: &HookEnvironment<'_>) -> Option<String> {
    // Where it cannot be remembered that it was said, it is said when a conversation begins.
    let is_news = |trouble: &&String| match SessionRoots::can_be_kept(&around.state) {
        true => SessionRoots::change(&around.state, session, |places| places.tell(trouble)),
        false => matches!(heard.what, HookEvent::Begins(_)),
    };
    let news: Vec<&str> = troubles.iter().filter(is_news).map(String::as_str).collect();
    let what = news.join("; it ");
    (!news.is_empty()).then(|| format!("Surehand {what}. `surehand doctor` tells more.\n"))
}

/// A verdict with what else the model is told.
fn beside(verdict: HookVerdict, warning: Option<&str>, dialect: &ClientAdapter) -> HookVerdict {
    let warning = warning.unwrap_or_default();
    match verdict {
        HookVerdict::Pass if warning.is_empty() => HookVerdict::Pass,
        HookVerdict::Pass => HookVerdict::Context(warning.to_owned()),
        HookVerdict::Context(text) => HookVerdict::Context(format!("{warning}{text}")),
        HookVerdict::Deny(why) => HookVerdict::Deny(format!("{why}{}{warning}", dialect.beside_denial)),
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
fn edit(path: &str, old: &str, new: &str, all: bool) -> ToolUse {
    ToolUse::Change(Edit::Replace(replacement(path, old, new, all)))
}

/// The edits in a field: each has an old and a new text under these names, and whether all are meant. `None` if one of them cannot
/// be understood.
fn replacements(path: &str, edits: &Value, [old, new, all]: [&str; 3]) -> Option<Vec<TextReplacement>> {
    let of = |edit: &Value| Some(replacement(path, edit[old].as_str()?, edit[new].as_str()?, edit[all] == true));
    edits.as_array()?.iter().map(of).collect()
}

/// Several edits of one file; if one of them cannot be understood, that it is edited.
fn several_edits(path: &str, edits: Option<Vec<TextReplacement>>) -> ToolUse {
    edits.map_or_else(|| some_edit(path), |edits| ToolUse::Change(Edit::ReplaceMany(edits)))
}

/// An edit of which only the file is known: no text has this character.
fn some_edit(path: &str) -> ToolUse {
    edit(path, "\u{0}", "", false)
}

fn replacement(path: &str, old: &str, new: &str, all: bool) -> TextReplacement {
    TextReplacement { path: path.to_owned(), old: old.to_owned(), new: new.to_owned(), all }
}

fn write(path: &str, content: &str) -> ToolUse {
    ToolUse::Change(Edit::write(path, content))
}

/// An answer as Claude Code and those who follow it take it. Nothing else may be in it: some would not take any of it then.
fn say_as_claude(input: &Value, verdict: &HookVerdict) -> Value {
    let event = input[EVENT].clone();
    match verdict {
        HookVerdict::Pass => Value::Null,
        HookVerdict::Deny(why) => serde_json::json!({ "hookSpecificOutput": {
            "hookEventName": event, "permissionDecision": "deny", "permissionDecisionReason": why,
        } }),
        HookVerdict::Context(text) => serde_json::json!({ "hookSpecificOutput": {
            "hookEventName": event, "additionalContext": text,
        } }),
    }
}

/// How a conversation begins, as most clients say it.
fn beginning(source: Option<&str>) -> SessionStart {
    match source {
        Some("resume" | "fork") => SessionStart::Resumed,
        Some("clear") => SessionStart::Cleared,
        Some("compact") => SessionStart::Compacted,
        _ => SessionStart::New,
    }
}
