//! Formats events as plain lines for pipes, logs and terminals without colours: one line per event, and the whole text
//! of the model.

use surehand_agent::{RunEvent, command};
use surehand_engine::render::{self, count, cut::cut};

use super::{
    call_summary,
    command_output::OutputDetail,
    diff, escape, plan,
    progress::{RunProgress, mode},
    stream, style,
    terminal_lines::{changed_file, cut_off, next_steps, outcome, took},
};

/// The part of a story that is shown, in tokens. The transcript contains all of it.
const STORY_TOKENS: usize = 200;

/// The lines for an event, given the progress so far.
pub(super) fn format_event(event: &RunEvent, progress: &mut RunProgress) -> String {
    match event {
        RunEvent::Started { run, story, model, mode: made, session, after_turn } => {
            let goes_on = if *after_turn > 0 { format!(", goes on after turn {after_turn}") } else { String::new() };
            let (run, model, session) = (escape::name(run), escape::name(model), escape::name(session));
            let story = cut(story.trim(), STORY_TOKENS);
            format!("run {run}: {model}, {} mode, session {session}{goes_on}\nstory: {}\n", mode(*made), escape::one_line(&story))
        }
        RunEvent::Turn { turn, phase, task, open, completed, prompt_tokens } => {
            let task = task.as_deref().map(|task| format!(": {}", escape::one_line(task))).unwrap_or_default();
            let tasks = format!("{completed} of {} completed", count(open + completed, "task"));
            format!("turn {turn}: {}, {tasks}, {prompt_tokens} tokens{task}\n", style::phase_name(*phase))
        }
        // The whole text follows as `Said`.
        RunEvent::Text { .. } | RunEvent::Calling { .. } | RunEvent::Reasoned { .. } => String::new(),
        RunEvent::Again { why, seconds } => {
            format!("again in {:.1} s: {}\n", style::duration(*seconds).as_secs_f64(), escape::one_line(why))
        }
        RunEvent::Cut { tokens } => format!("{}\n", cut_off(*tokens)),
        RunEvent::Note { text } => format!("note for the model: {}\n", escape::one_line(text)),
        RunEvent::User { text, answers: None } => format!("you: {}\n", escape::one_line(text)),
        RunEvent::User { text, answers: Some(_) } => format!("you answered: {}\n", escape::one_line(text)),
        RunEvent::Said { text } => stream::format_text(text),
        RunEvent::Call { tool, arguments, repair, .. } => {
            let what = if *repair { "repair" } else { "call" };
            format!("{what}: {} {}", escape::name(tool), call_summary::summarize(tool, arguments)).trim_end().to_owned() + "\n"
        }
        RunEvent::Output { id, text } => barred(&progress.output.push(id, text, OutputDetail::All)),
        RunEvent::Result { id, tool, is_error: false, text, .. } if tool == command::NAME => {
            barred(&progress.output.rest(id, text, OutputDetail::All)) + &result(tool, false, text)
        }
        RunEvent::Result { tool, is_error, text, .. } if progress.is_diff_seen => result(tool, *is_error, text),
        RunEvent::Result { tool, is_error, text, diff, .. } => {
            result(tool, *is_error, text) + &diff_lines(&diff.iter().map(ToString::to_string).collect::<String>())
        }
        RunEvent::Plan { tasks } => {
            plan::lines(&progress.plan, tasks, plan::word).iter().map(|line| format!("{line}\n")).collect()
        }
        RunEvent::Left { what } => {
            format!("left the context: {}\n", what.iter().map(|name| escape::name(name)).collect::<Vec<_>>().join(", "))
        }
        RunEvent::Folded { messages } => format!("{} folded into a snapshot\n", count(*messages, "message")),
        RunEvent::TurnEnded { turn, usage, seconds, .. } => {
            format!("turn {turn} took {}, {:.1} s\n", style::format_usage(usage), style::duration(*seconds).as_secs_f64())
        }
        RunEvent::Stopped { stop, text, totals } => {
            let mut out = format!("{}\n{}took {}\n", outcome(*stop), stream::format_text(text), took(totals));
            for file in &totals.files {
                out.push_str(&format!("changed: {}\n", changed_file(file)));
            }
            for (what, command) in next_steps(progress, *stop, totals) {
                out.push_str(&format!("{what}: {command}\n"));
            }
            out
        }
    }
}

/// The number of lines of a diff that are shown.
const DIFF_LINES: usize = 40;

/// Formats diffs in git's format.
pub(super) fn diff_lines(diffs: &str) -> String {
    barred(&diff::plain(diffs, DIFF_LINES))
}

/// Formats lines of output. The bar prevents them from looking like our own lines.
fn barred(lines: &[String]) -> String {
    lines.iter().map(|line| format!("| {line}\n")).collect()
}

fn result(tool: &str, is_error: bool, text: &str) -> String {
    let first = text.lines().find(|line| !line.trim().is_empty()).unwrap_or("done");
    let tool = escape::name(tool);
    let what = if is_error { "refused" } else { "result" };
    // The prefix is for models.
    let message = first.strip_prefix(render::refusal::PREFIX).filter(|_| is_error).unwrap_or(first);
    format!("{what}: {tool}: {}\n", escape::one_line(message))
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use surehand_agent::event::{RunTotals, StopReason};

    use super::*;

    #[track_caller]
    fn check(event: RunEvent, expected: &str) {
        assert_eq!(format_event(&event, &mut RunProgress::default()), expected);
    }

    #[test]
    fn text_is_written_when_it_is_whole() {
        check(RunEvent::Text { text: "Hel".to_owned() }, "");
        check(RunEvent::Said { text: "Hello\x1b[2J.\n\n".to_owned() }, "Hello<U+001B>[2J.\n");
    }

    #[test]
    fn calls_and_results_are_a_line_each() {
        let call = |repair| RunEvent::Call {
            id: "1".to_owned(),
            tool: "read_file".to_owned(),
            arguments: json!({ "path": "a" }),
            repair,
        };
        check(call(false), "call: read_file a\n");
        check(call(true), "repair: read_file a\n");
        let result = |is_error, text: &str| {
            let (id, tool) = ("1".to_owned(), "read_file".to_owned());
            RunEvent::Result { id, tool, is_error, text: text.to_owned(), diff: Vec::new() }
        };
        check(result(false, "a (4 lines)\n1|x\n"), "result: read_file: a (4 lines)\n");
        check(result(true, "Error: a is gone\nmore\n"), "refused: read_file: a is gone\n");
        check(result(true, "exit code 1\n"), "refused: read_file: exit code 1\n");
    }

    #[test]
    fn the_end_is_described_in_words() {
        let (stop, text) = (StopReason::Stuck, "Three times the same.".to_owned());
        let stopped = RunEvent::Stopped { stop, text, totals: RunTotals::default() };
        let expected = "stopped: it went round in circles\nThree times the same.\ntook 0 turns, 0 calls, 0 tokens in, 0 out, 0 s\ngo on: surehand run --resume\n";
        check(stopped, expected);
    }
}
