//! The texts of a prompt and their assembly, as pure functions. `snapshot_context` decides how much fits.

use std::borrow::Cow;

use serde_json::{Value, json};
use surehand_engine::{
    Tool, ToolNames,
    core::{
        ContextMode, EditDialect, RepoState,
        render::{
            cut::{cut, ends, on_one_line},
            snapshot::{LEAST_TOKENS, MOST_TOKENS, SnapshotText, snapshot_within},
        },
        tokens::estimate,
    },
    tools,
};

use crate::{
    event::RunPhase,
    model::{ChatMessage, Prompt, ToolSpec},
    tool::{self, DONE},
};

/// The parts of a prompt that stay the same from turn to turn.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PromptTemplate {
    /// The model's role and rules.
    pub rules: String,
    /// The story, as the user gave it.
    pub story: String,
    /// The user's other input, one line each.
    pub words: String,
    /// Instructions of the repository (`AGENTS.md`).
    pub instructions: String,
}

/// The level of detail of the fixed parts of a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PromptDetail {
    /// All rules, and all tools with descriptions.
    #[default]
    Full,
    /// For small contexts: short rules, and fewer tools, with little more than their names.
    Terse,
}

impl PromptDetail {
    /// The fullest prompt that leaves room for files and replies within a budget, or else the least budget.
    pub fn for_budget(budget: usize, dialect: EditDialect) -> Result<Self, usize> {
        let least = |detail: PromptDetail| detail.least_budget(dialect);
        let fitting = [Self::Full, Self::Terse].into_iter().find(|detail| budget >= least(*detail));
        fitting.ok_or_else(|| least(Self::Terse))
    }

    fn least_budget(self, dialect: EditDialect) -> usize {
        let room = match self {
            Self::Full => 1000,
            Self::Terse => 500,
        };
        let tools = tools_tokens(&tool_specs(RunPhase::Coding, dialect, self));
        tools + estimate(&rules(ContextMode::Snapshot, dialect, self)) + self.state_tokens() + room
    }

    /// The most tokens for the state of the repository.
    fn state_tokens(self) -> usize {
        match self {
            Self::Full => MOST_TOKENS,
            Self::Terse => LEAST_TOKENS,
        }
    }
}

/// The parts of a prompt that change every turn, besides the state of the repository.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PromptExtra {
    /// The open lines of files, as they are now.
    pub open_files: String,
    /// One line for each turn before the last.
    pub earlier: String,
    /// The model's text and calls of the last turn, with the replies.
    pub last_turn: String,
    /// Removed lines, changes by others, and warnings of the loop detector.
    pub notes: String,
    /// The phase of the run.
    pub phase: RunPhase,
    /// How long the state of the repository may be.
    pub detail: PromptDetail,
}

/// Builds the prompt of a turn: the system text, then one message with the state of the repository, the open
/// files and the current request.
///
/// The most stable parts come first, so that providers can cache them: rules and story, then tasks, then open
/// files in the order of their last change, then the parts that differ every turn.
pub fn build_snapshot_prompt(template: &PromptTemplate, state: &RepoState, extra: &PromptExtra) -> Prompt {
    let mut text = String::new();
    let mut part = |title: &str, body: &str| {
        if !body.is_empty() {
            let gap = if text.is_empty() { "" } else { "\n" };
            // Only newlines are trimmed: other white space may belong to the last line of a file.
            text.push_str(&format!("{gap}# {title}\n{}\n", body.trim_end_matches('\n')));
        }
    };
    let SnapshotText { tasks, files } = state_parts(state, extra.phase, extra.detail);
    part("State", &tasks);
    part("Open files, as they are now", &extra.open_files);
    part("All files", &files);
    part("Earlier turns", &extra.earlier);
    part("Your last turn", &extra.last_turn);
    part("Notes", &extra.notes);
    part("Now", &turn_request(state, extra.phase));
    Prompt { system: system_text(template), messages: vec![ChatMessage::User(text)], ..Prompt::default() }
}

/// The state of the repository for a prompt, in two parts.
pub fn state_parts(state: &RepoState, phase: RunPhase, detail: PromptDetail) -> SnapshotText {
    snapshot_within(state, &tool::tool_names(phase, EditDialect::Text, detail), detail.state_tokens())
}

/// Both parts of the state in one text.
pub fn state_text(state: &RepoState, phase: RunPhase) -> String {
    let SnapshotText { tasks, files } = state_parts(state, phase, PromptDetail::Full);
    tasks + &files
}

/// The system text: rules, story, the user's other input, and instructions.
pub fn system_text(template: &PromptTemplate) -> String {
    let mut text = format!("{}\n# Story\n{}\n", template.rules, template.story.trim_end());
    if !template.words.is_empty() {
        text.push_str(&format!("\n# What the user has said besides\n{}\n", template.words));
    }
    if !template.instructions.is_empty() {
        text.push_str(&format!("\n# Instructions\n{}\n", template.instructions.trim_end()));
    }
    text
}

/// The request at the end of a prompt.
pub fn turn_request(state: &RepoState, phase: RunPhase) -> String {
    let tasks = Tool::UpdateTasks.name();
    match phase {
        RunPhase::Planning if !state.tasks.open().is_empty() => format!(
            "Planning. Look around as far as you need, then write the list of tasks with {tasks}: few, in order, each of them something \
             that can be checked. The open tasks were added by a person and are part of it."
        ),
        RunPhase::Planning => format!(
            "Planning. Look around as far as you need, then write the list of tasks with {tasks}: few, in order, each of them something \
             that can be checked. Files can be changed once there are tasks. If nothing is to be done, call {DONE}."
        ),
        RunPhase::Coding if state.tasks.is_done() => {
            format!("No task is open. If the story is done, call {DONE} with a summary; else add the tasks that are missing.")
        }
        RunPhase::Coding | RunPhase::Done => format!(
            "Complete the remaining open tasks, the first one first. Do not recreate files that exist; read before you write; set a \
             task to completed when it is; call {DONE} when finished."
        ),
    }
}

/// The rules for a mode, with the line format of a dialect.
pub fn rules(mode: ContextMode, dialect: EditDialect, detail: PromptDetail) -> String {
    match (mode, detail) {
        (ContextMode::Snapshot, PromptDetail::Full) => snapshot_rules(dialect),
        (ContextMode::History, PromptDetail::Full) => history_rules(dialect),
        (mode, PromptDetail::Terse) => terse_rules(mode, dialect),
    }
}

/// The rule about questions. It applies only if someone is there to answer them.
pub const ASK: &str = "- If only the user can decide something, ask in your answer, without a call.\n";

const ROLE: &str = "You are a coding agent. You work on the story below, in a repository, with tools, until it is done.\n";

fn snapshot_rules(dialect: EditDialect) -> String {
    let [read, search, write, tasks, lines] =
        [Tool::ReadFile, Tool::SearchFiles, Tool::WriteFile, Tool::UpdateTasks, Tool::EditLines].map(Tool::name);
    let (form, prefix) = match dialect {
        EditDialect::Lines => {
            (format!("`LINE#HASH|text`, where LINE#HASH is the anchor for {lines}"), "The anchor and the bar are")
        }
        EditDialect::Text | EditDialect::Patch => ("`LINE|text`".to_owned(), "The number and the bar are"),
    };
    format!(
        "{ROLE}
There is no conversation: each turn you are shown the present. What is not shown is not known to you; put what matters later into the tasks.
- Open files are shown as they are now, as {form}: use them, do not read them again. {read} and {search} open more lines. What you use \
least leaves when there is no room, and is named; read it again when you need it.
- You can edit what is shown. Over an existing file, {write} needs all of it shown; prefer small edits.
- {prefix} not part of a line. Indentation counts.
- A refusal has changed nothing: do what it says, do not send the same call again.
- Paths are relative to the root of the workspace.
- Call several tools in one turn where they do not depend on each other.
- Keep the tasks up to date with {tasks}. Do not do again what is done.
"
    )
}

fn history_rules(dialect: EditDialect) -> String {
    let [write, tasks, lines] = [Tool::WriteFile, Tool::UpdateTasks, Tool::EditLines].map(Tool::name);
    let form = match dialect {
        EditDialect::Lines => format!("`LINE|text`, or as `LINE#HASH|text` with `anchors: true` for {lines},"),
        EditDialect::Text | EditDialect::Patch => "`LINE|text`".to_owned(),
    };
    format!(
        "{ROLE}
- Read before you edit: what a reply shows as {form} counts as read. Over an existing file, {write} needs the whole file read; prefer small edits.
- The number and the bar are not part of a line. Indentation counts.
- A file that changed since you read it is not written: the refusal shows what changed.
- A refusal has changed nothing: do what it says, do not send the same call again.
- Paths are relative to the root of the workspace.
- Call several tools in one turn where they do not depend on each other.
- Keep the tasks up to date with {tasks}. Do not do again what is done.
- When the conversation gets too long it is folded into a summary; then read again what you want to edit.
"
    )
}

fn terse_rules(mode: ContextMode, dialect: EditDialect) -> String {
    let [read, tasks] = [Tool::ReadFile, Tool::UpdateTasks].map(Tool::name);
    let form = match dialect {
        EditDialect::Lines => "LINE#HASH|text",
        EditDialect::Text | EditDialect::Patch => "LINE|text",
    };
    let context = match mode {
        ContextMode::Snapshot => "There is no conversation: you see only the present. What you use least leaves. ",
        ContextMode::History => "",
    };
    format!(
        "{ROLE}
- {context}{read} shows lines as `{form}`; what is before `|` is not part of a line. Edit only what you have read.
- A refusal has changed nothing: do what it says.
- Keep the tasks up to date with {tasks}.
"
    )
}

/// The note after an answer without a call.
pub fn no_call_note() -> String {
    format!("You called no tool. Go on with the open tasks, or call {DONE} if the story is done.")
}

/// The note after an answer with something in its text that was probably meant as a call.
pub fn text_call_note(why: &str, names: &ToolNames) -> String {
    format!(
        "What looks like a tool call in your text was not carried out: {why}. Call tools through the interface for tool calls. If you have \
         none, end your answer with one block for each call, and nothing after it: <tool_call>{{\"name\": \"TOOL\", \"arguments\": \
         {{…}}}}</tool_call>. There are these tools: {}.",
        names.all().join(", ")
    )
}

/// The note after a question that no one can answer.
pub const NOBODY_ANSWERS: &str = "You asked a question, and there is no one to answer it. Decide yourself and go on.";

/// The note after a question that the user did not answer.
pub const UNANSWERED: &str = "The user leaves the answer to your question to you. Decide yourself and go on.";

/// The refusal of `done` after the user has said something that the model has not read.
pub const USER_SPOKE: &str = "Not done: the user has just said something more, which you see now.";

/// The message with which a conversation comes to another story.
pub const FURTHER_STORY: &str = "The story before is over, and the user has told the one that you see now. Write its list of tasks first. \
                                 Read again what you want to edit.";

/// The note after an answer that was cut off.
pub const CUT: &str = "Your answer was too long and was cut off. Answer shorter: one small step at a time. What is missing at its end has not happened.";

/// The message with which a resumed conversation continues.
pub const GOES_ON: &str = "The run was interrupted and continues now. Read again what you want to edit.";

/// The note after the process was killed in the middle of a turn.
pub const KILLED: &str = "The last turn was interrupted. What it had done by then is done: see the state and the files.";

/// The edit dialect for a model, by its name: OpenAI's models were trained on patches.
pub fn dialect_for_model(name: &str) -> EditDialect {
    let name = name.rsplit('/').next().unwrap_or(name);
    if name.starts_with("gpt-") || name.contains("codex") { EditDialect::Patch } else { EditDialect::Text }
}

/// The tools of a phase with short descriptions. Rules and refusals say the rest.
pub fn tool_specs(phase: RunPhase, dialect: EditDialect, detail: PromptDetail) -> Vec<ToolSpec> {
    let spec = |tool| match detail {
        PromptDetail::Full => short_spec(tool, phase, dialect),
        PromptDetail::Terse => terse_spec(tool, short_spec(tool, phase, dialect)),
    };
    let mut specs: Vec<ToolSpec> = tool::offered_tools(phase, dialect, detail).map(spec).collect();
    specs.push(match detail {
        PromptDetail::Full => crate::command::tool_spec(),
        PromptDetail::Terse => terse_command_spec(),
    });
    specs.push(done_spec());
    specs
}

/// The short form of a tool for small contexts, with only its indispensable arguments.
fn terse_spec(tool: Tool, spec: ToolSpec) -> ToolSpec {
    let (description, fields): (&str, &[&str]) = match tool {
        Tool::ReadFile => ("Read lines of a file", &["path", "offset", "limit"]),
        Tool::ListFiles => ("List files", &["path", "glob"]),
        Tool::SearchFiles => ("Find lines by a regular expression", &["pattern", "path"]),
        Tool::WriteFile => ("Write a whole file", &["path", "content"]),
        Tool::EditFile => ("Replace a text that is in the file exactly once", &["path", "old_string", "new_string"]),
        Tool::UpdateTasks => ("Add tasks, set their status", &["add", "set", "id", "description", "status"]),
        // Not offered in small contexts, or as short as they can be.
        Tool::MultiEdit
        | Tool::EditLines
        | Tool::ApplyPatch
        | Tool::DeleteFile
        | Tool::MoveFile
        | Tool::Undo
        | Tool::Restore
        | Tool::RepoState
        | Tool::Forget => return spec,
    };
    let mut schema = Value::Object(spec.schema);
    keep_fields(&mut schema, fields);
    ToolSpec::new(&spec.name, description, schema)
}

/// Keeps only these properties of a schema, and removes their descriptions.
fn keep_fields(schema: &mut Value, names: &[&str]) {
    match schema {
        Value::Object(fields) => {
            if fields.get("description").is_some_and(Value::is_string) {
                fields.remove("description");
            }
            if let Some(Value::Object(properties)) = fields.get_mut("properties") {
                properties.retain(|name, _| names.contains(&name.as_str()));
            }
            fields.values_mut().for_each(|field| keep_fields(field, names));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| keep_fields(item, names)),
        _ => {}
    }
}

fn terse_command_spec() -> ToolSpec {
    let schema = json!({ "type": "object", "properties": { "command": { "type": "string" } }, "required": ["command"] });
    ToolSpec::new(crate::command::NAME, "Run a shell command, if a person allows it", schema)
}

fn done_spec() -> ToolSpec {
    let schema = json!({ "type": "object", "properties": { "summary": { "type": "string" } }, "required": ["summary"] });
    ToolSpec::new(DONE, "Say that the story is done, with a summary. Only when no task is open.", schema)
}

/// A tool with the first sentence of its description and a stripped schema.
fn short_spec(tool: Tool, phase: RunPhase, dialect: EditDialect) -> ToolSpec {
    let names = tool::tool_names(phase, dialect, PromptDetail::Full);
    // Reads during planning serve later edits, so anchors are offered already.
    let later = tool::tool_names(RunPhase::Coding, dialect, PromptDetail::Full);
    let description = short_description(tool).map_or_else(|| tools::description(tool, &names), str::to_owned);
    let description = first_sentence(&description).replace('\n', " ");
    let mut schema = Value::Object(tools::input_schema(tool, &later));
    strip_schema(&mut schema);
    ToolSpec::new(tool.name(), &description, schema)
}

/// Descriptions of tools whose first sentence is not enough.
fn short_description(tool: Tool) -> Option<&'static str> {
    match tool {
        Tool::EditFile => Some(
            "Replace a piece of text that is in the file exactly once, white space included, or every one with replace_all; an empty \
             old_string makes a new file",
        ),
        Tool::ApplyPatch => Some(
            "Apply a patch: `*** Begin Patch`, then for each file `*** Add File: P`, `*** Delete File: P` or `*** Update File: P` (then perhaps \
             `*** Move to: P`) with chunks under `@@ function or class` whose lines begin with ` `, `-` or `+`, at last `*** End Patch`",
        ),
        _ => None,
    }
}

fn first_sentence(text: &str) -> &str {
    let end = [". ", ".\n"].iter().filter_map(|stop| text.find(stop)).min();
    &text[..end.map_or(text.len(), |end| end + 1)]
}

/// Arguments that need no description. Tools take a good part of each prompt.
const PLAIN: &[&str] = &[
    "case_insensitive",
    "content",
    "context",
    "description",
    "end",
    "from",
    "id",
    "limit",
    "new_string",
    "patch",
    "path",
    "pattern",
    "start",
    "status",
    "text",
];

/// Removes the parts of a schema that a model does not need.
fn strip_schema(schema: &mut Value) {
    let Value::Object(fields) = schema else {
        if let Value::Array(items) = schema {
            items.iter_mut().for_each(strip_schema);
        }
        return;
    };
    for name in ["additionalProperties", "default", "minimum", "$schema"] {
        if !fields.get(name).is_some_and(Value::is_object) {
            fields.remove(name);
        }
    }
    if fields.get("items").is_some() || fields.get("type").is_some_and(|kind| kind == "object") {
        fields.remove("description");
    }
    if let Some(Value::String(description)) = fields.get("description") {
        let sentence = first_sentence(description);
        let short = sentence.split(';').next().unwrap_or(sentence).trim_end_matches('.').to_owned();
        fields.insert("description".to_owned(), Value::String(short));
    }
    if let Some(Value::Array(values)) = fields.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
    if let Some(Value::Object(properties)) = fields.get_mut("properties") {
        for name in PLAIN {
            if let Some(Value::Object(property)) = properties.get_mut(*name) {
                property.remove("description");
            }
        }
    }
    fields.values_mut().for_each(strip_schema);
}

/// One line for a call, with long texts replaced by their length.
pub fn call_line(tool: &str, arguments: &Value, tokens: usize) -> String {
    let shown = match arguments {
        Value::String(text) => on_one_line(text),
        other => shorten_argument(other).to_string(),
    };
    format!("{tool} {}", cut(&shown, tokens))
}

fn shorten_argument(value: &Value) -> Value {
    const LONGEST: usize = 160;
    match value {
        Value::String(text) if text.len() > LONGEST => {
            let lines = text.lines().count();
            json!(format!("({lines} lines, {} bytes)", text.len()))
        }
        Value::Array(items) => Value::Array(items.iter().map(shorten_argument).collect()),
        Value::Object(fields) => {
            Value::Object(fields.iter().map(|(name, value)| (name.clone(), shorten_argument(value))).collect())
        }
        other => other.clone(),
    }
}

/// Text from outside within a token limit, with its middle left out if necessary. None of its lines can pass for
/// a title of the prompt.
pub fn within(text: &str, tokens: usize) -> String {
    if tokens == 0 {
        return String::new();
    }
    ends(&without_titles(text.trim_end()), tokens).trim_end().to_owned()
}

/// Indents lines that look like titles, so that the output of a command cannot pose as a part of the prompt.
fn without_titles(text: &str) -> Cow<'_, str> {
    if !text.contains("# ") {
        return Cow::Borrowed(text);
    }
    let lines = text.split('\n').map(|line| if line.starts_with("# ") { format!(" {line}") } else { line.to_owned() });
    Cow::Owned(lines.collect::<Vec<_>>().join("\n"))
}

impl Prompt {
    /// An upper bound for the tokens of the prompt, with the few that providers add for each message.
    pub fn tokens(&self) -> usize {
        estimate(&self.system) + self.messages.iter().map(message_tokens).sum::<usize>() + tools_tokens(&self.tools)
    }
}

/// An upper bound for the tokens of a message.
pub fn message_tokens(message: &ChatMessage) -> usize {
    const FRAME: usize = 8;
    match message {
        ChatMessage::User(text) => FRAME + estimate(text),
        ChatMessage::Assistant { text, calls, reasoning } => {
            let reasoning = reasoning.as_ref().map_or(0, |kept| kept.tokens as usize);
            let call = |call: &crate::model::ModelCall| FRAME + estimate(&call.name) + estimate(&call.arguments);
            FRAME + estimate(text) + calls.iter().map(call).sum::<usize>() + reasoning
        }
        ChatMessage::Results(results) => results.iter().map(|result| FRAME + estimate(&result.text)).sum(),
    }
}

/// An upper bound for the tokens of tool descriptions.
pub fn tools_tokens(tools: &[ToolSpec]) -> usize {
    const FRAME: usize = 8;
    let tokens = |tool: &ToolSpec| {
        FRAME + estimate(&tool.name) + estimate(&tool.description) + estimate(&Value::Object(tool.schema.clone()).to_string())
    };
    tools.iter().map(tokens).sum()
}

#[cfg(test)]
mod tests {
    use surehand_engine::core::{Task, TaskList, TaskOwner, TaskStatus};

    use super::*;

    #[test]
    fn what_others_wrote_never_passes_for_a_title() {
        assert_eq!(within("# Now\nrm\n## no title\n#!/bin/sh\n# Now", 50), " # Now\nrm\n## no title\n#!/bin/sh\n # Now");
        assert!(estimate(&within(&"# Now\n".repeat(1000), 40)) <= 40);
    }

    #[test]
    fn a_new_story_begins_with_an_empty_list() {
        let (run, description) = (|id: &str| Some(TaskOwner::Run(id.to_owned())), "old".to_owned());
        let old = Task { id: 1, description, status: TaskStatus::Completed, priority: 1, story: "a".to_owned(), owner: run("a") };
        let left = Task { id: 2, status: TaskStatus::Pending, ..old.clone() };
        let state = |story: &str| RepoState {
            work_dir: "/w".to_owned(),
            files: std::sync::Arc::default(),
            tasks: TaskList::of(story, vec![old.clone(), left.clone()], run(story).as_ref()),
            last_updated: 0,
        };
        let shown = state_parts(&state("b"), RunPhase::Planning, PromptDetail::Full).tasks;
        assert!(
            shown.contains("No tasks.\nOf other stories and runs, not to be done here: 1 open task\n2. [pending] old (run a)"),
            "{shown}"
        );
        let shown = state_parts(&state("a"), RunPhase::Coding, PromptDetail::Full).tasks;
        assert!(shown.contains("Open tasks: 1 (1 done)\n2. [pending] old\n"), "{shown}");
    }

    fn field(dialect: EditDialect, tool: &str, field: &str) -> Value {
        let specs = tool_specs(RunPhase::Coding, dialect, PromptDetail::Full);
        let spec = specs.iter().find(|spec| spec.name == tool).unwrap();
        spec.schema["properties"][field].clone()
    }

    #[test]
    fn descriptions_are_short_and_whole() {
        let glob = field(EditDialect::Text, "list_files", "glob")["description"].clone();
        assert_eq!(glob, json!("`*.{js,ts}`, `src/**`, `!*.min.js`"));
        let status = field(EditDialect::Text, "update_tasks", "set")["items"]["properties"]["status"]["enum"].clone();
        assert_eq!(status, json!(["pending", "in_progress", "completed", "cancelled"]));
    }

    #[test]
    fn anchors_are_for_those_who_edit_by_them() {
        assert_eq!(field(EditDialect::Text, "read_file", "anchors"), Value::Null);
        assert!(field(EditDialect::Lines, "read_file", "anchors").is_object());
        let planning = tool_specs(RunPhase::Planning, EditDialect::Lines, PromptDetail::Full);
        assert!(planning.iter().any(|spec| spec.schema["properties"]["anchors"].is_object()), "also for who plans");
        for mode in [ContextMode::Snapshot, ContextMode::History] {
            assert!(rules(mode, EditDialect::Lines, PromptDetail::Full).contains("`LINE#HASH|text`"), "{mode:?}");
            assert!(!rules(mode, EditDialect::Patch, PromptDetail::Full).contains('#'), "{mode:?}");
        }
    }

    #[test]
    fn what_names_say_is_not_said_again() {
        let specs = tool_specs(RunPhase::Coding, EditDialect::Text, PromptDetail::Full);
        let schemas: String = specs.iter().map(|tool| json!(tool.schema).to_string()).collect();
        assert!(!schemas.contains("relative to the workspace root or absolute") && !schemas.contains("null"), "{schemas}");
    }

    #[test]
    fn a_small_context_has_room_for_work() {
        for dialect in [EditDialect::Text, EditDialect::Lines, EditDialect::Patch] {
            let least = PromptDetail::for_budget(0, dialect).unwrap_err();
            assert!(least < 1600, "{dialect:?}: {least}");
            assert_eq!(PromptDetail::for_budget(least, dialect), Ok(PromptDetail::Terse));
            assert_eq!(PromptDetail::for_budget(5000, dialect), Ok(PromptDetail::Full));
            let specs = tool_specs(RunPhase::Coding, dialect, PromptDetail::Terse);
            let required = |spec: &ToolSpec| spec.schema.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
            for spec in &specs {
                let missing = required(spec).into_iter().find(|name| spec.schema["properties"][name.as_str().unwrap()].is_null());
                assert_eq!(missing, None, "{spec:?}");
            }
        }
    }
}
