//! `surehand show RUN [TURN]`: the events of a run, as a pipe would have received them, or one whole turn: the prompt,
//! the answer, and each call with its arguments, its result and its diff.

use serde_json::{Value, json};
use surehand_agent::{
    RunEvent,
    model::{ChatMessage, Prompt},
    past_runs::{self, PastRun, RecordedEvent},
};
use surehand_engine::Workspace;

use super::{runs, show::ShownText};
use crate::{
    display::{
        escape, replay,
        style::{duration, format_usage},
    },
    output,
};

/// A run, or one turn of it.
pub(super) fn read(workspace: &Workspace, run: &PastRun, turn: Option<u32>) -> anyhow::Result<ShownText> {
    let record = past_runs::read(workspace, run)?;
    let mut json = past_runs::run_json(run);
    let Some(number) = turn else {
        json["events"] = record.events.iter().map(|recorded| recorded.json.clone()).collect();
        let text = format!("{}\n{}", runs::as_text(run, output::now()), replay(&record.events));
        return Ok(ShownText { text, json });
    };
    let events = record.turn(number);
    if events.is_empty() {
        anyhow::bail!("run {} has no turn {number}: {}", run.id, known(&record.turns()));
    }
    let prompt = record.prompts.get(&number);
    json["turn"] = json!(record.turn_json(number));
    let (begin, rest) = events.split_at(1);
    let rest: String = rest.iter().map(event).collect();
    let begin: String = begin.iter().map(event).collect();
    Ok(ShownText { text: begin + &prompt_text(prompt) + &rest, json })
}

fn known(turns: &[u32]) -> String {
    match turns {
        [] => "it has none".to_owned(),
        [only] => format!("it has only turn {only}"),
        [first, .., last] => format!("it has turns {first} to {last}"),
    }
}

/// A part of a turn under its title. The bar prevents text of a model from looking like a title.
fn part(title: &str, body: &str) -> String {
    let lines: String = escape::prose(body).lines().map(|line| format!("| {line}\n")).collect();
    format!("\x1b[1m{title}\x1b[0m\n{lines}")
}

fn prompt_text(prompt: Option<&Prompt>) -> String {
    let Some(Prompt { system, messages, tools, .. }) = prompt else {
        return "The prompt was not recorded: `surehand run --record-prompts` keeps the prompts of a run, also with --resume.\n"
            .to_owned();
    };
    let mut text = part("prompt, system", system);
    for message in messages {
        text.push_str(&match message {
            ChatMessage::User(said) => part("prompt, user", said),
            ChatMessage::Assistant { text, calls, .. } => {
                let calls =
                    calls.iter().map(|call| part(&format!("prompt, call of {}", escape::name(&call.name)), &call.arguments));
                part("prompt, model", text) + &calls.collect::<String>()
            }
            ChatMessage::Results(results) => results.iter().map(|result| part("prompt, result", &result.text)).collect(),
        });
    }
    let names: Vec<String> = tools.iter().map(|tool| escape::name(&tool.name)).collect();
    text + &part("prompt, tools", &names.join(", "))
}

fn event(recorded: &RecordedEvent) -> String {
    match &recorded.event {
        RunEvent::Said { text } if text.trim().is_empty() => String::new(),
        RunEvent::Said { text } => part("answer", text),
        RunEvent::Call { tool, arguments, repair, .. } => {
            let repair = if *repair { ", to repair a refused edit" } else { "" };
            part(&format!("call of {}{repair}", escape::name(tool)), &arguments_text(arguments))
        }
        RunEvent::Result { tool, is_error, text, .. } => {
            let refused = if *is_error { ", refused" } else { "" };
            let diff = recorded.json["diff"].as_str().filter(|diff| !diff.is_empty());
            let result = part(&format!("result of {}{refused}", escape::name(tool)), text);
            result + &diff.map(|diff| part("diff", diff)).unwrap_or_default()
        }
        RunEvent::TurnEnded { usage, seconds, .. } => {
            format!("took {}, {:.1} s\n", format_usage(usage), duration(*seconds).as_secs_f64())
        }
        _ => replay(std::slice::from_ref(recorded)),
    }
}

/// The arguments of a call. Multi-line strings are shown as lines.
fn arguments_text(arguments: &Value) -> String {
    let Value::Object(fields) = arguments else {
        return arguments.as_str().map_or_else(|| arguments.to_string(), str::to_owned);
    };
    let field = |(name, value): (&String, &Value)| match value {
        Value::String(text) if text.contains('\n') => {
            let lines: String = text.lines().map(|line| format!("  {line}\n")).collect();
            format!("{name}:\n{lines}")
        }
        Value::String(text) => format!("{name}: {text}\n"),
        value => format!("{name}: {value:#}\n"),
    };
    fields.iter().map(field).collect()
}
