//! `surehand runs`: the runs of the agent in this workspace.

use serde_json::Value;
use surehand_agent::{
    event::StopReason,
    past_runs::{self, PastRun, RunState},
};
use surehand_engine::render::{count, cut::cut};

use crate::{
    args::ListArgs,
    display::{
        escape,
        style::{duration, format_duration, format_usage},
    },
    output, workspace,
};

pub(crate) fn run(args: &ListArgs) -> anyhow::Result<()> {
    let workspace = workspace::open_read_only(&args.place)?;
    let mut runs = past_runs::list(&workspace)?;
    let all = runs.len();
    runs.truncate(args.limit);
    if args.json {
        return output::print_json(&Value::Array(runs.iter().map(past_runs::run_json).collect()));
    }
    let now = output::now();
    let mut text: String = runs.iter().map(|run| as_text(run, now)).collect();
    if all == 0 {
        text.push_str("There are no runs. `surehand run \"STORY\"` begins one.\n");
    }
    text.push_str(&output::unlisted("run", all - runs.len(), all));
    output::print(&text)
}

/// The part of a story that is shown, in tokens.
const STORY: usize = 40;

/// Formats a run in two lines.
pub(super) fn as_text(run: &PastRun, now: i64) -> String {
    let (id, ago) = (escape::name(&run.id), output::ago(now - run.last_active));
    let saved = match &run.saved {
        Ok(saved) => saved,
        Err(why) => return format!("\x1b[33m{id}\x1b[0m  {ago}  run.json is damaged: {}\n", escape::one_line(why)),
    };
    let facts = [
        count(saved.turn as usize, "turn"),
        format_usage(&saved.usage),
        format_duration(duration(saved.seconds)),
        escape::name(&saved.model),
    ];
    let prompts = if run.has_prompts { ", with prompts" } else { "" };
    let state = state_in_words(run.state);
    let story = escape::one_line(&cut(saved.story.trim(), STORY));
    format!("\x1b[33m{id}\x1b[0m  {ago}  {state}: {}{prompts}\n    {story}\n", facts.join(", "))
}

fn state_in_words(state: RunState) -> &'static str {
    match state {
        RunState::Running => "running",
        RunState::Interrupted => "interrupted",
        RunState::Stopped(StopReason::Done) => "done",
        RunState::Stopped(StopReason::Budget) => "out of budget",
        RunState::Stopped(StopReason::Stuck) => "stopped in a loop",
        RunState::Stopped(StopReason::Cancelled) => "stopped by you",
        RunState::Stopped(StopReason::Model) => "stopped without an answer of the model",
    }
}
