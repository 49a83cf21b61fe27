//! The words of a prompt, and how they are put together: pure functions. How much of what there is fits is decided in `context`.

use std::borrow::Cow;

use serde_json::{Map, Value, json};
use surehand_engine::{
    core::{
        Mode, RepoState,
        render::{
            self,
            cut::{cut, ends, on_one_line, shorten},
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
/// What stays the same for longest comes first, so that providers can take it from their caches: the rules and the story, then the
/// tasks, then the open files, those that have not changed for longest first, then what is different in every turn.
pub fn build_snapshot_prompt(template: &Template, state: &RepoState, extra: &Extra) -> Prompt {
    let mut text = String::new();
    let mut part = |title: &str, body: &str| {
        if !body.is_empty() {
            let gap = if text.is_empty() { "" } else { "\n" };
            // Blanks at the end of the last line of a file are part of it.
            text.push_str(&format!("{gap}# {title}\n{}\n", body.trim_end_matches('\n')));
        }
    };
    let state_text = state_text(state, extra.phase);
    let (tasks, files) = state_text.split_at(files_heading(&state_text));
    part("State", tasks);
    part("Open files, as they are now", &extra.open_files);
    part("All files", files);
    part("Earlier turns", &extra.earlier);
    part("Your last turn", &extra.last_turn);
    part("Notes", &extra.notes);
    part("Now", &request(state, extra.phase));
    Prompt { system: system(template), messages: vec![Message::User(text)], tools: Vec::new() }
}

/// The state for a prompt. Who plans a new story is not told that the tasks of the one before are done, and to call `done`.
pub fn state_text(state: &RepoState, phase: Phase) -> String {
    if phase == Phase::Planning && is_done(state) {
        return format_for_prompt(&RepoState { tasks: Vec::new(), ..state.clone() });
    }
    format_for_prompt(state)
}

/// Where in the text of a state the files begin. No line above it begins like that heading.
fn files_heading(state: &str) -> usize {
    let headings = ["\nFiles: ", "\nNo files."];
    headings.iter().filter_map(|heading| state.find(heading)).min().map_or(state.len(), |at| at + 1)
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
        Phase::Planning if !state.open_tasks().is_empty() => "Planning. Look around as far as you need, then write the list of tasks with \
                            update_tasks: few, in order, each of them something that can be checked. The open tasks are from an earlier story: keep \
                            those that belong to this one, set the others to completed."
            .to_owned(),
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

/// What a model is held to, in the form in which it is shown lines.
pub fn rules(mode: Mode, dialect: Dialect) -> String {
    match (mode, dialect) {
        (Mode::Snapshot, Dialect::Lines) => SNAPSHOT_RULES
            .replace("`LINE|text`", "`LINE#HASH|text`, where LINE#HASH is the anchor for edit_lines")
            .replace("The number and the bar are", "The anchor and the bar are"),
        (Mode::History, Dialect::Lines) => {
            HISTORY_RULES.replace("`LINE|text`", "`LINE|text`, or as `LINE#HASH|text` with `anchors: true` for edit_lines,")
        }
        (Mode::Snapshot, _) => SNAPSHOT_RULES.to_owned(),
        (Mode::History, _) => HISTORY_RULES.to_owned(),
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
- Paths are relative to the root of the workspace.
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
- Paths are relative to the root of the workspace.
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
    let mut specs: Vec<ToolSpec> = names.filter_map(|name| tools::find(name)).map(|tool| brief(tool, dialect)).collect();
    specs.push(bare_spec(crate::command::spec(), dialect));
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
fn brief(tool: &Tool, dialect: Dialect) -> ToolSpec {
    let description = in_short(tool.name).map_or_else(|| tool.description(), str::to_owned);
    let description = first_sentence(&description).replace('\n', " ");
    bare_spec(ToolSpec { name: tool.name.to_owned(), description, schema: tool.input_schema() }, dialect)
}

fn bare_spec(spec: ToolSpec, dialect: Dialect) -> ToolSpec {
    let mut schema = Value::Object(spec.schema);
    bare(&mut schema, dialect);
    let Value::Object(schema) = schema else { unreachable!("what was an object is one") };
    ToolSpec { schema, ..spec }
}

/// Tools whose first sentence is not enough to call them well.
fn in_short(tool: &str) -> Option<&'static str> {
    match tool {
        "edit_file" => Some(
            "Replace a piece of text that is in the file exactly once, white space included, or every one with replace_all; an empty \
             old_string makes a new file",
        ),
        "apply_patch" => Some(
            "Apply a patch: `*** Begin Patch`, then for each file `*** Add File: P`, `*** Delete File: P` or `*** Update File: P` (then perhaps \
             `*** Move to: P`) with chunks under `@@ function or class` whose lines begin with ` `, `-` or `+`, at last `*** End Patch`",
        ),
        _ => None,
    }
}

/// With its full stop, if there is one.
fn first_sentence(text: &str) -> &str {
    let end = [". ", ".\n"].iter().filter_map(|stop| text.find(stop)).min();
    &text[..end.map_or(text.len(), |end| end + 1)]
}

/// Arguments whose names say enough: tools take a good part of each prompt.
const PLAIN: &[&str] = &[
    "case_insensitive",
    "command",
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
    "summary",
    "text",
    "timeout",
];

/// Takes out of a schema what a model does well without.
fn bare(schema: &mut Value, dialect: Dialect) {
    let Value::Object(fields) = schema else {
        if let Value::Array(items) = schema {
            items.iter_mut().for_each(|item| bare(item, dialect));
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
        bare_properties(properties, dialect);
    }
    fields.values_mut().for_each(|field| bare(field, dialect));
}

fn bare_properties(properties: &mut Map<String, Value>, dialect: Dialect) {
    if dialect != Dialect::Lines {
        properties.remove("anchors");
    }
    for name in PLAIN {
        if let Some(Value::Object(property)) = properties.get_mut(*name) {
            property.remove("description");
        }
    }
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

/// What a reply says besides the lines of files: those are among the open files. There a long line is shown from its beginning; so
/// one that a search has cut elsewhere, to show what was found, stays.
pub fn without_rows(text: &str) -> String {
    const LONGEST: usize = 300;
    let mut kept = String::new();
    for line in text.lines() {
        match row(line) {
            None => kept.push_str(line),
            Some(content) if content.starts_with("[+") && content.contains(" chars]…") => {
                // What was found is near the beginning, unless the line ends soon after it.
                let goes_on = content.ends_with(" chars]");
                kept.push_str(&if goes_on { cut(line, LONGEST) } else { shorten(line, LONGEST) });
            }
            Some(_) => {
                // What announced the lines would announce nothing.
                if kept.ends_with(":\n") {
                    kept.insert_str(kept.len() - 1, " (see the open files)");
                }
                continue;
            }
        }
        kept.push('\n');
    }
    kept
}

/// The lines of files that a reply shows.
pub fn only_rows(text: &str) -> String {
    text.lines().filter(|line| row(line).is_some()).map(|line| format!("{line}\n")).collect()
}

/// The same as [`render::row`], with the gaps between lines.
fn row(line: &str) -> Option<&str> {
    if line == "…" {
        return Some("");
    }
    render::row(line)
}

/// A text of others within so many tokens, its middle left out if need be. None of its lines passes for a title of the prompt.
pub fn within(text: &str, tokens: usize) -> String {
    if tokens == 0 {
        return String::new();
    }
    ends(&without_titles(text.trim_end()), tokens).trim_end().to_owned()
}

/// The text with a blank before each line that would pass for a title: what a command prints does not tell the model what to do.
fn without_titles(text: &str) -> Cow<'_, str> {
    if !text.contains("# ") {
        return Cow::Borrowed(text);
    }
    let lines = text.split('\n').map(|line| if line.starts_with("# ") { format!(" {line}") } else { line.to_owned() });
    Cow::Owned(lines.collect::<Vec<_>>().join("\n"))
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

#[cfg(test)]
mod tests {
    use surehand_engine::core::{Task, TaskStatus};

    use super::*;

    #[track_caller]
    fn check_rows(reply: &str, expected: &str) {
        assert_eq!(without_rows(reply), expected);
    }

    #[test]
    fn the_lines_of_files_are_among_the_open_files() {
        check_rows("a.rs (2 lines)\n1|fn\n20#ab|x\n", "a.rs (2 lines)\n");
        check_rows(
            "a.rs edited (+1 -1)\n-1|old\n+1|new\n 2|around\n…\n9|y\nlines after 9 moved by +1\n",
            "a.rs edited (+1 -1)\nlines after 9 moved by +1\n",
        );
        check_rows("1. [pending] t\nsrc/12|a\n|x\n", "1. [pending] t\nsrc/12|a\n|x\n");
    }

    #[test]
    fn what_announced_them_says_where_they_are() {
        check_rows(
            "What changed, as it is now:\n1|x\n2|y\nSend it again.\n",
            "What changed, as it is now: (see the open files)\nSend it again.\n",
        );
    }

    #[test]
    fn what_a_search_found_far_inside_a_line_stays() {
        check_rows("1|[+900 chars]…found…[+7 chars]\n", "1|[+900 chars]…found…[+7 chars]\n");
        check_rows("1|the beginning…[+900 chars]\n", "");
        let long = format!("1|[+900 chars]…found {}\n", "word ".repeat(1000));
        assert!(estimate(&without_rows(&long)) < 320);
    }

    #[test]
    fn what_others_wrote_never_passes_for_a_title() {
        assert_eq!(within("# Now\nrm\n## no title\n#!/bin/sh\n# Now", 50), " # Now\nrm\n## no title\n#!/bin/sh\n # Now");
        assert!(estimate(&within(&"# Now\n".repeat(1000), 40)) <= 40);
    }

    #[test]
    fn who_plans_is_not_told_that_all_is_done() {
        let task = Task { id: 1, description: "old".to_owned(), status: TaskStatus::Completed, priority: 1 };
        let state = RepoState {
            work_dir: "/w".to_owned(),
            story_id: String::new(),
            files: Vec::new(),
            untouched: Vec::new(),
            tasks: vec![task],
            last_updated: 0,
        };
        assert!(state_text(&state, Phase::Planning).contains("No tasks."));
        assert!(state_text(&state, Phase::Coding).contains("call `done`"));
    }

    fn field(dialect: Dialect, tool: &str, field: &str) -> Value {
        let specs = tool_specs(Phase::Coding, dialect);
        let spec = specs.iter().find(|spec| spec.name == tool).unwrap();
        spec.schema["properties"][field].clone()
    }

    #[test]
    fn descriptions_are_short_and_whole() {
        let glob = field(Dialect::Text, "list_files", "glob")["description"].clone();
        assert_eq!(glob, json!("Only files that match: `*.rs`, `src/**`, `*.{js,ts}`, or `!*.min.js` for all others"));
        let status = field(Dialect::Text, "update_tasks", "set")["items"]["properties"]["status"]["enum"].clone();
        assert_eq!(status, json!(["pending", "in_progress", "completed"]));
    }

    #[test]
    fn anchors_are_for_those_who_edit_by_them() {
        assert_eq!(field(Dialect::Text, "read_file", "anchors"), Value::Null);
        assert!(field(Dialect::Lines, "read_file", "anchors").is_object());
        for mode in [Mode::Snapshot, Mode::History] {
            assert!(rules(mode, Dialect::Lines).contains("`LINE#HASH|text`"), "{mode:?}");
            assert!(!rules(mode, Dialect::Patch).contains('#'), "{mode:?}");
        }
    }

    #[test]
    fn what_names_say_is_not_said_again() {
        let specs = tool_specs(Phase::Coding, Dialect::Text);
        let schemas: String = specs.iter().map(|tool| json!(tool.schema).to_string()).collect();
        assert!(!schemas.contains("relative to the workspace root or absolute") && !schemas.contains("null"), "{schemas}");
    }

    /// What is above and below the open files.
    #[track_caller]
    fn splits(state: &str, tasks: &str) {
        assert_eq!(&state[..files_heading(state)], tasks);
    }

    #[test]
    fn tasks_are_told_from_files() {
        splits("Repository state\nNo tasks.\nNo files.\nUpdated\n", "Repository state\nNo tasks.\n");
        splits("Open tasks: 1\n1. id 1, pending: Files: 3\nFiles: 2\na\n", "Open tasks: 1\n1. id 1, pending: Files: 3\n");
        splits("nothing of the kind\n", "nothing of the kind\n");
    }
}
