//! The story in a plain loop, for comparison: its tools write whatever they are given, and a long conversation is
//! replaced by a summary without file names.

use std::{fs, path::Path};

use anyhow::Context;
use serde_json::Value;
use surehand_agent::{
    CancelToken, RunEvent,
    event::RunPhase,
    model::{CallResult, ChatMessage, ChatModel, ModelCall, Prompt, TokenUsage},
    prompt::{PromptDetail, PromptTemplate, message_tokens, rules, system_text, tool_specs},
    tool::DONE,
};
use surehand_engine::{
    Tool,
    core::{Anchor, ContextMode, EditDialect, LineNo},
};

use super::{other_programs::save, play::WINDOW, story::STORY};

/// The loop starts again after each summary and would never end, so this limit also decides how many writes are
/// counted.
const MOST_TURNS: u32 = 150;

/// Plays the story. Returns whether the model finished.
pub(super) fn play(root: &Path, model: &mut dyn ChatModel, listener: &mut dyn FnMut(&RunEvent)) -> anyhow::Result<bool> {
    let mut tools = Tools { root, tasks: Vec::new() };
    let template = PromptTemplate {
        rules: rules(ContextMode::History, EditDialect::Text, PromptDetail::Full),
        story: STORY.to_owned(),
        ..PromptTemplate::default()
    };
    let mut prompt = Prompt {
        system: system_text(&template),
        tools: tool_specs(RunPhase::Coding, EditDialect::Lines, PromptDetail::Full),
        is_conversation: true,
        ..Prompt::default()
    };
    let fixed = prompt.tokens();
    let mut tokens = fixed + say(&mut prompt, ChatMessage::User("Work on the story.".to_owned()));
    for turn in 1..=MOST_TURNS {
        if tokens > WINDOW * 4 / 5 {
            listener(&RunEvent::Folded { messages: prompt.messages.len() });
            prompt.messages.clear();
            tokens = fixed + say(&mut prompt, ChatMessage::User("Summary: the story is being worked on. Go on.".to_owned()));
        }
        listener(&turn_event(turn, tokens));
        let answer = model.ask(&prompt, &CancelToken::default(), &mut |_| {})?;
        let mut results = Vec::new();
        for call in &answer.calls {
            if call.name == DONE {
                return Ok(true);
            }
            let arguments: Value = serde_json::from_str(&call.arguments)?;
            listener(&call_event(call, &arguments));
            let text = tools.call(&call.name, &arguments)?;
            results.push(CallResult { id: call.id.clone(), text, is_error: false });
            listener(&result_event(call));
        }
        tokens += say(&mut prompt, ChatMessage::Assistant { text: answer.text, calls: answer.calls, reasoning: None });
        tokens += say(&mut prompt, ChatMessage::Results(results));
        listener(&RunEvent::TurnEnded { turn, usage: answer.usage, total: TokenUsage::default(), seconds: 0.0 });
    }
    Ok(false)
}

/// Adds a message. Returns its tokens.
fn say(prompt: &mut Prompt, message: ChatMessage) -> usize {
    let tokens = message_tokens(&message);
    prompt.messages.push(message);
    tokens
}

fn turn_event(turn: u32, prompt_tokens: usize) -> RunEvent {
    RunEvent::Turn { turn, phase: RunPhase::Coding, task: None, open: 0, completed: 0, prompt_tokens }
}

fn call_event(call: &ModelCall, arguments: &Value) -> RunEvent {
    RunEvent::Call { id: call.id.clone(), tool: call.name.clone(), arguments: arguments.clone(), repair: false }
}

fn result_event(call: &ModelCall) -> RunEvent {
    RunEvent::Result { id: call.id.clone(), tool: call.name.clone(), is_error: false, text: String::new(), diff: Vec::new() }
}

struct Tools<'a> {
    root: &'a Path,
    tasks: Vec<(u64, String)>,
}

impl Tools<'_> {
    fn call(&mut self, tool: &str, arguments: &Value) -> anyhow::Result<String> {
        let tool = Tool::named(tool);
        if tool == Some(Tool::UpdateTasks) {
            return Ok(self.update_tasks(arguments));
        }
        let path = arguments["path"].as_str().context("a file is named")?;
        let file = self.root.join(path);
        match tool {
            Some(Tool::WriteFile) => {
                save(&file, arguments["content"].as_str().unwrap_or_default())?;
                Ok(format!("{path} created\n"))
            }
            Some(Tool::ReadFile) => {
                let text = fs::read_to_string(&file)?;
                Ok(format!("{path} ({} lines)\n{}", text.lines().count(), rows(&text)))
            }
            _ => {
                let text = edited(&fs::read_to_string(&file)?, &arguments["edits"][0]);
                save(&file, &text)?;
                Ok(format!("{path} edited\n{}", rows(&text)))
            }
        }
    }

    fn update_tasks(&mut self, arguments: &Value) -> String {
        let ids = |list: &str| arguments[list].as_array().cloned().unwrap_or_default();
        let done: Vec<u64> = ids("set").iter().filter_map(|task| task["id"].as_u64()).collect();
        self.tasks.retain(|(id, _)| !done.contains(id));
        let added = ids("add");
        if !added.is_empty() {
            let words = added.iter().filter_map(|task| task["description"].as_str());
            self.tasks = words.zip(1..).map(|(words, id)| (id, words.to_owned())).collect();
        }
        let list: String = self.tasks.iter().map(|(id, words)| format!("{id}. [pending] {words}\n")).collect();
        format!("{} tasks open, 0 completed:\n{list}", self.tasks.len())
    }
}

fn rows(text: &str) -> String {
    let numbers = (1..).filter_map(LineNo::new);
    text.lines().zip(numbers).map(|(line, number)| format!("{}|{line}\n", Anchor::of(number, line))).collect()
}

/// Inserts a line at the line number of the anchor, whatever is there now.
fn edited(text: &str, edit: &Value) -> String {
    let mut lines: Vec<&str> = text.lines().collect();
    let number = edit["at"].as_str().and_then(|anchor| anchor.split('#').next()?.parse().ok());
    let at = number.unwrap_or(lines.len()).min(lines.len());
    lines.insert(at, edit["text"].as_str().unwrap_or_default());
    lines.join("\n") + "\n"
}
