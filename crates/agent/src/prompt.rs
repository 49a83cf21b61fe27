//! The words of a prompt, and how they are put together: pure functions. How much of what there is fits is decided in `context`.

use serde_json::{Map, Value, json};
use surehand_engine::{
    core::{
        RepoState,
        render::{
            cut::{cut, ends, on_one_line},
            snapshot::{format_for_prompt, is_done},
        },
        tokens::estimate,
    },
    tools::{self, Tool},
};

use crate::{
    event::Phase,
    model::{Message, Prompt, ToolSpec},
};

/// What does not change from turn to turn.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Template {
    /// Who the model is and what it is held to.
    pub rules: String,
    /// What is to be done.
    pub story: String,
    /// What the owner of the repository asks of whoever works there.
    pub instructions: String,
}

/// What else is in the prompt of a turn besides the state of the repository.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Extra {
    /// The open files, as they are now.
    pub open_files: String,
    /// One line for each turn before the last.
    pub earlier: String,
    /// What the model said and called in the last turn, and what came of it.
    pub last_turn: String,
    /// What the model should know besides: what left its context, what others changed.
    pub notes: String,
    /// Where the run is.
    pub phase: Phase,
}

/// The prompt of a turn: system, the state of the repository with the open files, and what is to be done now.
///
/// What stays the same for longest comes first, so that providers can take it from their caches: the rules and the story, then the files
/// that have not changed for longest, then the state.
pub fn build_snapshot_prompt(template: &Template, state: &RepoState, extra: &Extra) -> Prompt {
    let mut text = String::new();
    let mut part = |title: &str, body: &str| {
        if !body.is_empty() {
            let gap = if text.is_empty() { "" } else { "\n" };
            text.push_str(&format!("{gap}# {title}\n{}\n", body.trim_end()));
        }
    };
    part("Open files, as they are now", &extra.open_files);
    part("State", &format_for_prompt(state));
    part("Earlier turns", &extra.earlier);
    part("Your last turn", &extra.last_turn);
    part("Notes", &extra.notes);
    part("Now", &request(state, extra.phase));
    Prompt { system: system(template), messages: vec![Message::User(text)], tools: Vec::new() }
}

/// The first message: rules, story, instructions.
pub fn system(template: &Template) -> String {
    let mut text = format!("{}\n# Story\n{}\n", template.rules, template.story.trim_end());
    if !template.instructions.is_empty() {
        text.push_str(&format!("\n# Instructions\n{}\n", template.instructions.trim_end()));
    }
    text
}

/// What is to be done in this turn.
pub fn request(state: &RepoState, phase: Phase) -> String {
    match phase {
        Phase::Planning => "Planning. Look around as far as you need, then write the list of tasks with update_tasks: few, in order, each \
                            of them something that can be checked. Files can be changed once there are tasks. If nothing is to be done, \
                            call done."
            .to_owned(),
        Phase::Coding if is_done(state) => "No task is open. If the story is done, call done with a summary; else add the tasks that are \
                                            missing."
            .to_owned(),
        Phase::Coding | Phase::Done => "Complete the remaining open tasks, the first one first. Do not recreate files that exist; read \
                                        before you write; set a task to completed when it is; call done when finished."
            .to_owned(),
    }
}

/// The rules in snapshot mode.
pub const SNAPSHOT_RULES: &str = "\
You are a coding agent. You work on the story below, in a repository, with tools, until it is done.

There is no conversation: each turn you are shown the present. What is not shown is not known to you; what matters later belongs into the tasks.
- Open files are shown as they are now, as `LINE|text`: use them, do not read them again. read_file and search_files open more lines. What you use \
least leaves when there is no room, and is named; read it again when you need it.
- You can edit what is shown. Over an existing file, write_file needs all of it shown; prefer small edits.
- The number and the bar are not part of a line. Indentation counts.
- A refusal has changed nothing: do what it says, do not send the same call again.
- Call several tools in one turn where they do not depend on each other.
- Keep the tasks up to date with update_tasks. Do not do again what is done.
";

/// The rules in history mode.
pub const HISTORY_RULES: &str = "\
You are a coding agent. You work on the story below, in a repository, with tools, until it is done.

- Read before you edit: what a reply shows as `LINE|text` counts as read. Over an existing file, write_file needs the whole file read; prefer small edits.
- The number and the bar are not part of a line. Indentation counts.
- A file that changed since you read it is not written: the refusal shows what changed.
- A refusal has changed nothing: do what it says, do not send the same call again.
- Call several tools in one turn where they do not depend on each other.
- Keep the tasks up to date with update_tasks. Do not do again what is done.
- When the conversation gets too long it is folded into a summary; then read again what you want to edit.
";

/// What the model is told when it has called nothing.
pub const NO_CALL: &str = "You called no tool. Go on with the open tasks, or call done if the story is done.";

/// What the model is told when its answer was cut off before it called anything.
pub const CUT: &str = "Your answer was too long and was cut off. Answer shorter: one small step at a time.";

/// What the model is told when a conversation goes on after a stop.
pub const GOES_ON: &str = "The run was interrupted and goes on. Read again what you want to edit.";

/// What the model is told when the process was killed while it carried out what the model had called.
pub const KILLED: &str = "The last turn was interrupted. What it had done by then is done: see the state and the files.";

/// How a model edits files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Dialect {
    /// By text that is replaced.
    #[default]
    Text,
    /// By lines with anchors.
    Lines,
    /// By patches.
    Patch,
}

impl Dialect {
    /// What suits a model, by its name: those of OpenAI are used to patches.
    pub fn of_model(name: &str) -> Self {
        let name = name.rsplit('/').next().unwrap_or(name);
        if name.starts_with("gpt-") || name.contains("codex") { Dialect::Patch } else { Dialect::Text }
    }

    fn tool(self) -> &'static str {
        match self {
            Dialect::Text => "edit_file",
            Dialect::Lines => "edit_lines",
            Dialect::Patch => "apply_patch",
        }
    }
}

/// The tools that look, in planning and later.
const LOOKING: &[&str] = &["read_file", "search_files", "list_files", "update_tasks"];
/// The tools that change files besides the one of the dialect.
const CHANGING: &[&str] = &["write_file", "move_file", "delete_file", "undo"];

/// Whether a tool may be called while the tasks are not written yet.
pub fn is_for_planning(tool: &str) -> bool {
    LOOKING.contains(&tool) || matches!(tool, "done" | "run_command" | "repo_state" | "forget")
}

/// The tools of a phase, in few words: what they are held to is in the rules and in refusals.
pub fn tool_specs(phase: Phase, dialect: Dialect) -> Vec<ToolSpec> {
    let changing = CHANGING.iter().filter(|_| phase != Phase::Planning);
    let editing = [dialect.tool()];
    let names = LOOKING.iter().chain(editing.iter().filter(|_| phase != Phase::Planning)).chain(changing);
    let mut specs: Vec<ToolSpec> = names.filter_map(|name| tools::find(name)).map(brief).collect();
    specs.push(crate::command::spec());
    specs.push(done_spec());
    specs
}

fn done_spec() -> ToolSpec {
    let schema = json!({ "type": "object", "properties": { "summary": { "type": "string" } }, "required": ["summary"] });
    let Value::Object(schema) = schema else { unreachable!("an object was written above") };
    ToolSpec {
        name: "done".to_owned(),
        description: "Say that the story is done, with a summary. Only when no task is open.".to_owned(),
        schema,
    }
}

/// A tool in its first sentence, with the bare schema of its arguments.
fn brief(tool: &Tool) -> ToolSpec {
    let description = tool.description();
    let end = description.find(". ").or_else(|| description.find(".\n")).map_or(description.len(), |end| end + 1);
    let mut schema = Value::Object(tool.input_schema());
    bare(&mut schema);
    let Value::Object(schema) = schema else { return ToolSpec { name: tool.name.to_owned(), description, schema: Map::new() } };
    ToolSpec { name: tool.name.to_owned(), description: description[..end].replace('\n', " "), schema }
}

/// Takes out of a schema what a model does well without.
fn bare(schema: &mut Value) {
    let Value::Object(fields) = schema else {
        if let Value::Array(items) = schema {
            items.iter_mut().for_each(bare);
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
        let end = description.find(['.', ';']).unwrap_or(description.len());
        let short = description[..end].to_owned();
        fields.insert("description".to_owned(), Value::String(short));
    }
    fields.values_mut().for_each(bare);
}

/// A call in a line: long texts are only measured.
pub fn call_line(tool: &str, arguments: &Value, tokens: usize) -> String {
    let shown = match arguments {
        Value::Object(fields) => {
            let fields: Map<String, Value> = fields.iter().map(|(name, value)| (name.clone(), short(value))).collect();
            Value::Object(fields).to_string()
        }
        Value::String(text) => on_one_line(text),
        other => other.to_string(),
    };
    format!("{tool} {}", cut(&shown, tokens))
}

/// A value without its long texts.
fn short(value: &Value) -> Value {
    const LONGEST: usize = 160;
    match value {
        Value::String(text) if text.len() > LONGEST => {
            let lines = text.lines().count();
            json!(format!("({lines} lines, {} bytes)", text.len()))
        }
        Value::Array(items) => Value::Array(items.iter().map(short).collect()),
        Value::Object(fields) => Value::Object(fields.iter().map(|(name, value)| (name.clone(), short(value))).collect()),
        other => other.clone(),
    }
}

/// What a reply says besides the lines of files: those are among the open files.
pub fn without_rows(text: &str) -> String {
    let is_row = |line: &str| {
        let line = line.strip_prefix(['+', '-', ' ']).unwrap_or(line);
        let end = line.find(|c: char| !c.is_ascii_digit()).unwrap_or(line.len());
        let rest = line[end..]
            .strip_prefix('#')
            .map_or(&line[end..], |rest| rest.trim_start_matches(|c: char| c.is_ascii_alphanumeric()));
        end > 0 && rest.starts_with('|') || line == "…"
    };
    text.lines().filter(|line| !is_row(line)).map(|line| format!("{line}\n")).collect()
}

/// A text within so many tokens, its middle left out if need be.
pub fn within(text: &str, tokens: usize) -> String {
    if tokens == 0 {
        return String::new();
    }
    ends(text.trim_end(), tokens).trim_end().to_owned()
}

impl Prompt {
    /// How many tokens it has, at most. Providers add a few for each message; so does this.
    pub fn tokens(&self) -> usize {
        estimate(&self.system) + self.messages.iter().map(message_tokens).sum::<usize>() + tools_tokens(&self.tools)
    }
}

/// How many tokens a message has, at most.
pub fn message_tokens(message: &Message) -> usize {
    const FRAME: usize = 8;
    match message {
        Message::User(text) => FRAME + estimate(text),
        Message::Assistant { text, calls } => {
            let call = |call: &crate::model::Call| FRAME + estimate(&call.name) + estimate(&call.arguments);
            FRAME + estimate(text) + calls.iter().map(call).sum::<usize>()
        }
        Message::Results(results) => results.iter().map(|result| FRAME + estimate(&result.text)).sum(),
    }
}

/// How many tokens the descriptions of tools have, at most.
pub fn tools_tokens(tools: &[ToolSpec]) -> usize {
    const FRAME: usize = 8;
    let tokens = |tool: &ToolSpec| {
        FRAME + estimate(&tool.name) + estimate(&tool.description) + estimate(&Value::Object(tool.schema.clone()).to_string())
    };
    tools.iter().map(tokens).sum()
}
