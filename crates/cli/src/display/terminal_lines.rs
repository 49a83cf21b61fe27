//! Formats events as the lines of a terminal. They end with a line break, except pieces of the model's text.

use surehand_agent::{
    RunEvent, command,
    event::{FileChangeWord, FileTotal, RunPhase, RunTotals, StopReason},
};
use surehand_engine::render::{self, count};

use crate::output;

use super::{
    call_summary,
    command_output::{OutputDetail, dimmed},
    diff, escape,
    line_editor::MARK,
    plan,
    progress::{RunProgress, mode},
    stream,
    style::{self, Painter, Style},
    wrap,
};

/// Rows for a story, a refusal, and the final text of a run.
const STORY_ROWS: usize = 4;
const REFUSAL_ROWS: usize = 6;
const END_ROWS: usize = 20;

/// The summary of a call gets at least this many columns, even if the terminal wraps the line.
const ABOUT: usize = 24;

/// Limit in columns for a reason, which may be a whole web page.
const REASON: usize = 240;

const DIFF_LINES: usize = 20;

const OUTPUT: OutputDetail = OutputDetail::Ends { first: 10, last: 5 };

const FILES: usize = 20;

/// The lines for an event, given the progress so far. Updates the model's text in `progress`.
pub(super) fn format_event(event: &RunEvent, progress: &mut RunProgress, painter: Painter) -> String {
    match event {
        RunEvent::Text { text } => return progress.stream.piece(text),
        RunEvent::Calling { .. } => return progress.stream.pause().to_owned(),
        _ => {}
    }
    let was_said = progress.stream.has_begun();
    let end_of_line = progress.stream.end();
    let lines = match event {
        RunEvent::Started { run, story, model, mode: made, after_turn, .. } => {
            let facts = [escape::name(model), mode(*made).to_owned()].into_iter().chain(goes_on(*after_turn));
            let hint = if progress.listens { hint(painter) } else { String::new() };
            header(run, story, &facts.collect::<Vec<_>>().join(" · "), painter) + &hint
        }
        RunEvent::Turn { phase, task, completed, open, .. } => {
            work(progress, *phase, task.as_deref(), (*completed, *open), painter)
        }
        // The user has typed it on this terminal.
        RunEvent::User { .. } => String::new(),
        RunEvent::Text { .. } | RunEvent::Calling { .. } | RunEvent::Reasoned { .. } => String::new(),
        RunEvent::Again { why, seconds } => again(why, *seconds, was_said, painter),
        RunEvent::Said { .. } if was_said => String::new(),
        RunEvent::Said { text } => stream::format_text(text),
        RunEvent::Call { tool, arguments, repair, .. } => {
            called(tool, &call_summary::summarize(tool, arguments), *repair, painter)
        }
        RunEvent::Result { id, tool, is_error, text, diff } => {
            let whose = if progress.call.as_ref() == Some(id) { String::new() } else { format!("{}: ", escape::name(tool)) };
            if tool == command::NAME && !is_error {
                let rest = dimmed(&progress.output.rest(id, text, OUTPUT), painter);
                return format!("{end_of_line}{rest}{}", done(&whose, text, painter));
            }
            let came = if *is_error { refused(&whose, text, painter) } else { done(&whose, text, painter) };
            if progress.is_diff_seen { came } else { came + &diff::shown(diff, DIFF_LINES, painter) }
        }
        RunEvent::Output { id, text } => dimmed(&progress.output.push(id, text, OUTPUT), painter),
        RunEvent::Cut { tokens } => dim(&cut_off(*tokens), painter),
        RunEvent::Note { text } => dim(&format!("note for the model: {}", escape::one_line(text)), painter),
        RunEvent::Left { what } => left(what, painter),
        RunEvent::Folded { messages } => dim(&format!("{} folded into a snapshot", count(*messages, "message")), painter),
        RunEvent::TurnEnded { turn, usage, seconds, .. } => {
            let text = format!("turn {turn}: {}, {:.1} s", style::format_usage(usage), style::duration(*seconds).as_secs_f64());
            dim(&text, painter) + "\n"
        }
        RunEvent::Plan { tasks } => plan_rows(&plan::lines(&progress.plan, tasks, plan::sign), painter),
        RunEvent::Stopped { stop, text, totals } => summary(progress, *stop, text, totals, painter),
    };
    format!("{end_of_line}{lines}")
}

pub(super) fn cut_off(tokens: u64) -> String {
    format!("the answer was cut off after {tokens} tokens; the limit is model.max_output_tokens, or the model's own")
}

const HINT: &str = "type a line to tell the model something; Ctrl-C stops";

fn hint(painter: Painter) -> String {
    let rows = wrap::wrap_words(HINT, painter.room(2).max(1));
    rows.iter().map(|row| dim(row, painter)).collect::<String>() + "\n"
}

/// Formats a line that the user has typed.
pub(super) fn words_of_user(text: &str, painter: Painter) -> String {
    let line: String = wrap::wrap_words(&format!("{MARK} {}", escape::one_line(text)), painter.room(0).max(1))
        .iter()
        .map(|row| format!("{}\n", painter.paint(Style::Bold, row)))
        .collect();
    line + &dim("the model reads it in its next turn", painter)
}

fn goes_on(after_turn: u32) -> Option<String> {
    (after_turn > 0).then(|| format!("goes on after turn {after_turn}"))
}

fn header(run: &str, story: &str, facts: &str, painter: Painter) -> String {
    let title = painter.paint(Style::Bold, &format!("surehand run {}", escape::name(run)));
    format!("{title} · {facts}\n{}\n", rows(story, STORY_ROWS, "", painter).join(""))
}

/// The phase and task, if they have changed.
fn work(
    progress: &RunProgress,
    phase: RunPhase,
    task: Option<&str>,
    (completed, open): (usize, usize),
    painter: Painter,
) -> String {
    if progress.shown_work.as_ref().is_some_and(|(shown, shown_task)| *shown == phase && shown_task.as_deref() == task) {
        return String::new();
    }
    let tasks = if completed + open > 0 {
        format!(" ({completed} of {} completed)", count(completed + open, "task"))
    } else {
        String::new()
    };
    let phase = style::phase_name(phase);
    let what = match task {
        Some(task) => {
            format!(
                "{phase}: {}",
                wrap::truncate(&escape::one_line(task), painter.room(4 + phase.len() + tasks.len()).max(ABOUT))
            )
        }
        None => phase.to_owned(),
    };
    format!("{}{}\n", painter.paint(Style::Bold, &format!("▸ {what}")), painter.paint(Style::Dim, &tasks))
}

fn again(why: &str, seconds: f64, was_said: bool, painter: Painter) -> String {
    let void = if was_said { "; its text so far is void" } else { "" };
    let why = wrap::truncate(&escape::one_line(why), REASON);
    let text = format!("↻ {why}, again in {:.1} s{void}", style::duration(seconds).as_secs_f64());
    format!("{}\n", painter.paint(Style::Yellow, &text))
}

fn called(tool: &str, about: &str, repair: bool, painter: Painter) -> String {
    let (sign, note) = if repair { ("↻", " (repair)") } else { ("●", "") };
    let tool = escape::name(tool);
    let about = wrap::truncate(about, painter.room(3 + wrap::width(&tool) + note.len()).max(ABOUT));
    let line = format!("{} {} {about}", painter.paint(Style::Cyan, sign), painter.paint(Style::Bold, &tool));
    format!("{}{}\n", line.trim_end(), painter.paint(Style::Dim, note))
}

fn done(whose: &str, text: &str, painter: Painter) -> String {
    let first = text.lines().find(|line| !line.trim().is_empty()).unwrap_or("done");
    let line = format!("{whose}{}", escape::one_line(first));
    format!("  {}\n", painter.paint(Style::Dim, &format!("└ {}", wrap::truncate(&line, painter.room(4)))))
}

fn refused(whose: &str, text: &str, painter: Painter) -> String {
    // The prefix is for models.
    let why = text.strip_prefix(render::refusal::PREFIX).unwrap_or(text);
    let text = format!("{whose}refused: {why}");
    let mut out = String::new();
    for (at, row) in rows(&text, REFUSAL_ROWS, "    ", painter).iter().enumerate() {
        let row = if at == 0 { format!("  └ {}", row.trim()) } else { row.trim_end().to_owned() };
        out.push_str(&format!("{}\n", painter.paint(Style::Yellow, &row)));
    }
    out
}

fn left(what: &[String], painter: Painter) -> String {
    let names = what.iter().map(|name| escape::name(name)).collect::<Vec<_>>().join(", ");
    dim(&wrap::truncate(&format!("left the context: {names}"), painter.room(2)), painter)
}

fn dim(text: &str, painter: Painter) -> String {
    format!("  {}\n", painter.paint(Style::Dim, text))
}

/// Wraps a text into at most this many indented rows.
fn rows(text: &str, most: usize, indent: &str, painter: Painter) -> Vec<String> {
    let room = painter.room(indent.len()).max(1);
    let safe = escape::prose(text.trim_end()).replace('\t', "    ");
    let all: Vec<String> = safe.lines().flat_map(|line| wrap::wrap_words(line, room)).collect();
    let mut shown: Vec<String> = all.iter().take(most).map(|row| format!("{indent}{row}\n")).collect();
    if all.len() > most {
        shown.push(format!("{indent}… {}\n", count(all.len() - most, "more line")));
    }
    shown
}

pub(super) fn outcome(stop: StopReason) -> &'static str {
    match stop {
        StopReason::Done => "done",
        StopReason::Budget => "stopped: the budget is used up",
        StopReason::Stuck => "stopped: it went round in circles",
        StopReason::Cancelled => "stopped, as you asked",
        StopReason::Model => "stopped: the model does not answer",
    }
}

/// The end of a run: the reason, time and tokens, changed files, and next steps.
fn summary(progress: &RunProgress, stop: StopReason, text: &str, totals: &RunTotals, painter: Painter) -> String {
    let (sign, style) = if stop == StopReason::Done { ("✔", Style::Green) } else { ("■", Style::Yellow) };
    let mut out = format!("{} {}\n", painter.paint(style, sign), painter.paint(Style::Bold, outcome(stop)));
    out.push_str(&rows(text, END_ROWS, "  ", painter).join(""));
    out.push_str(&format!("\n  {}\n", took(totals)));
    out.push_str(&changed(&totals.files, painter));
    for (what, command) in next_steps(progress, stop, totals) {
        out.push_str(&format!("  {}{command}\n", painter.paint(Style::Dim, &format!("{what:<10}"))));
    }
    out
}

/// Formats `7 turns, 9 calls (1 refused), 52.3k tokens in (40.1k cached), 3.1k out, $0.21, 1 min 03 s`.
pub(super) fn took(totals: &RunTotals) -> String {
    let (turns, calls) = (count(totals.turns as usize, "turn"), count(totals.calls as usize, "call"));
    let refused = if totals.refused > 0 { format!(" ({} refused)", totals.refused) } else { String::new() };
    let time = style::format_duration(style::duration(totals.seconds));
    format!("{turns}, {calls}{refused}, {}, {time}", style::format_usage(&totals.usage))
}

/// `old.rs → src/a.rs (new) +3 -0`
pub(super) fn changed_file(file: &FileTotal) -> String {
    let from = file.from.as_ref().map(|from| format!("{} → ", escape::name(from))).unwrap_or_default();
    let note = match (file.change, file.added) {
        (FileChangeWord::Created, _) => " (new)",
        (FileChangeWord::Deleted, _) => " (deleted)",
        (FileChangeWord::Edited, None) => " (changed)",
        (FileChangeWord::Edited | FileChangeWord::Moved, _) => "",
    };
    let lines = file.added.zip(file.removed).map(|(added, removed)| format!(" +{added} -{removed}")).unwrap_or_default();
    format!("{from}{}{note}{lines}", escape::name(&file.path))
}

fn plan_rows(lines: &[String], painter: Painter) -> String {
    lines.iter().map(|line| format!("    {}\n", wrap::truncate(line, painter.room(4)))).collect()
}

fn changed(files: &[FileTotal], painter: Painter) -> String {
    if files.is_empty() {
        return "  no file is changed\n".to_owned();
    }
    let row = |file: &FileTotal| format!("  {}\n", wrap::truncate(&changed_file(file), painter.room(2)));
    output::listed(files, FILES, row, |more| dim(&format!("… {}", count(more, "more file")), painter))
}

/// What the user can do now, each with its command.
pub(super) fn next_steps(progress: &RunProgress, stop: StopReason, totals: &RunTotals) -> Vec<(&'static str, String)> {
    let mut steps = Vec::new();
    if !totals.files.is_empty() {
        let session = escape::name(&progress.session);
        steps.push(("see it", format!("surehand diff --session {session}")));
        steps.push(("undo it", format!("surehand undo --session {session}")));
    }
    if stop != StopReason::Done {
        steps.push(("go on", "surehand run --resume".to_owned()));
    }
    steps
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use surehand_agent::{event::ContextMode, model::TokenUsage};

    use super::*;
    use crate::display::style::Colours;

    const PLAIN: Painter = Painter { width: 60, colours: Colours::Off };

    #[track_caller]
    fn check(event: RunEvent, expected: &str) {
        assert_eq!(format_event(&event, &mut RunProgress::default(), PLAIN), expected);
    }

    fn call(tool: &str, arguments: Value, repair: bool) -> RunEvent {
        RunEvent::Call { id: "1".to_owned(), tool: tool.to_owned(), arguments, repair }
    }

    fn result(is_error: bool, text: &str) -> RunEvent {
        RunEvent::Result { id: "1".to_owned(), tool: "edit_file".to_owned(), is_error, text: text.to_owned(), diff: Vec::new() }
    }

    /// The lines for an event after other events.
    fn after(before: &[RunEvent], event: &RunEvent) -> String {
        let mut progress = RunProgress::default();
        for event in before {
            format_event(event, &mut progress, PLAIN);
            progress.note(event);
        }
        format_event(event, &mut progress, PLAIN)
    }

    fn text(text: &str) -> RunEvent {
        RunEvent::Text { text: text.to_owned() }
    }

    fn said(text: &str) -> RunEvent {
        RunEvent::Said { text: text.to_owned() }
    }

    #[test]
    fn a_call_is_one_line() {
        check(call("edit_file", json!({ "path": "src/a.rs", "old_string": "x" }), false), "● edit_file src/a.rs\n");
        check(
            call("read_file", json!({ "path": "src/a.rs", "offset": 10, "limit": 5 }), true),
            "↻ read_file src/a.rs 10-14 (repair)\n",
        );
        check(call("repo_state", json!({}), false), "● repo_state\n");
        check(call("run_command", json!({ "command": "x".repeat(99) }), false), &format!("● run_command {}…\n", "x".repeat(44)));
        check(call("\x1b[2J", json!({ "path": "\n" }), false), "● <U+001B>[2J <U+000A>\n");
    }

    #[test]
    fn a_result_is_its_first_line() {
        let shown = |before: &[RunEvent]| after(before, &result(false, "\nsrc/a.rs edited (+1 -1)\n 1|x\n"));
        assert_eq!(shown(&[call("edit_file", json!({}), false)]), "  └ src/a.rs edited (+1 -1)\n");
        assert_eq!(shown(&[]), "  └ edit_file: src/a.rs edited (+1 -1)\n", "of a call that is not right above");
        check(result(false, ""), "  └ edit_file: done\n");
    }

    #[test]
    fn a_refusal_is_shown_at_some_length() {
        let refusal = "Error: src/a.rs was modified since last read; nothing was written. What changed since (line 2), as it is now:\n2|    init();\n";
        let expected = "  └ refused: src/a.rs was modified since last read; nothing\n    was written. What changed since (line 2), as it is now:\n    2|    init();\n";
        assert_eq!(after(&[call("edit_file", json!({}), false)], &result(true, refusal)), expected);
        let long: String = (1..=9).map(|line| format!("{line}\n")).collect();
        check(result(true, &long), "  └ edit_file: refused: 1\n    2\n    3\n    4\n    5\n    6\n    … 3 more lines\n");
    }

    #[test]
    fn what_is_said_is_written_once() {
        check(said("\nHello.\n\n"), "Hello.\n");
        check(said(""), "");
        check(text("\n\nHel"), "Hel");
        assert_eq!(after(&[text("Hel"), text("lo.")], &said("Hello.")), "\n");
        assert_eq!(after(&[text("Hello.\n")], &said("Hello.\n")), "");
        assert_eq!(after(&[text("Hello.")], &RunEvent::Calling { tool: "x".to_owned() }), "\n");
        assert_eq!(after(&[text("Hello."), RunEvent::Calling { tool: "x".to_owned() }], &said("Hello.")), "");
        assert_eq!(after(&[text("Hello."), said("Hello.")], &text("New.")), "New.");
    }

    #[test]
    fn another_attempt_makes_void_what_was_said() {
        let again = RunEvent::Again { why: "429 too\nmany requests".to_owned(), seconds: 2.14 };
        assert_eq!(after(&[], &again), "↻ 429 too many requests, again in 2.1 s\n");
        assert_eq!(after(&[text("Hel")], &again), "\n↻ 429 too many requests, again in 2.1 s; its text so far is void\n");
        assert_eq!(after(&[text("Hel"), again], &said("Hello.")), "Hello.\n");
    }

    fn turn(phase: RunPhase, task: Option<&str>) -> RunEvent {
        RunEvent::Turn { turn: 1, phase, task: task.map(str::to_owned), open: 2, completed: 1, prompt_tokens: 1 }
    }

    #[test]
    fn the_task_is_shown_when_it_changes() {
        let coding = turn(RunPhase::Coding, Some("Do it"));
        assert_eq!(after(&[], &coding), "▸ coding: Do it (1 of 3 tasks completed)\n");
        assert_eq!(after(&[turn(RunPhase::Planning, Some("Do it"))], &coding), "▸ coding: Do it (1 of 3 tasks completed)\n");
        assert_eq!(after(&[turn(RunPhase::Coding, Some("Do it"))], &coding), "");
        check(
            RunEvent::Turn { turn: 1, phase: RunPhase::Planning, task: None, open: 0, completed: 0, prompt_tokens: 1 },
            "▸ planning\n",
        );
    }

    #[test]
    fn the_header_says_who_does_what() {
        let started = |story: &str, after_turn| RunEvent::Started {
            run: "calm-otter".to_owned(),
            story: story.to_owned(),
            model: "some/model".to_owned(),
            mode: ContextMode::Snapshot,
            session: "s1".to_owned(),
            after_turn,
        };
        check(started("Fix it", 0), "surehand run calm-otter · some/model · snapshot\nFix it\n\n");
        check(
            started("1\n2\n3\n4\n5", 7),
            "surehand run calm-otter · some/model · snapshot · goes on after turn 7\n1\n2\n3\n4\n… 1 more line\n\n",
        );
    }

    #[test]
    fn what_left_the_context_and_what_a_turn_took_is_dimmed() {
        check(
            RunEvent::Left { what: vec!["src/a.rs 1-40".to_owned(), "b\x1b".to_owned()] },
            "  left the context: src/a.rs 1-40, b<U+001B>\n",
        );
        check(RunEvent::Folded { messages: 12 }, "  12 messages folded into a snapshot\n");
        let usage = TokenUsage { input: 8_211, cached: 6_100, output: 350, cost: Some(0.0123) };
        let ended = RunEvent::TurnEnded { turn: 3, usage, total: usage, seconds: 4.21 };
        check(ended, "  turn 3: 8.2k tokens in (6.1k cached), 350 out, $0.01, 4.2 s\n\n");
    }

    #[test]
    fn the_end_says_how_to_go_on() {
        let stopped = |stop| RunEvent::Stopped { stop, text: "All is well.".to_owned(), totals: RunTotals::default() };
        check(
            stopped(StopReason::Done),
            "✔ done\n  All is well.\n\n  0 turns, 0 calls, 0 tokens in, 0 out, 0 s\n  no file is changed\n",
        );
        let expected = "■ stopped: the budget is used up\n  All is well.\n\n  0 turns, 0 calls, 0 tokens in, 0 out, 0 s\n  no file is changed\n  \
                        go on     surehand run --resume\n";
        check(stopped(StopReason::Budget), expected);
    }

    #[test]
    fn the_end_names_the_files_and_what_it_took() {
        let file = |path: &str, change, lines: Option<usize>| FileTotal {
            path: path.to_owned(),
            from: (change == FileChangeWord::Moved).then(|| "old\n".to_owned()),
            change,
            added: lines,
            removed: lines,
        };
        let mut files = vec![
            file("a", FileChangeWord::Edited, Some(1)),
            file("b", FileChangeWord::Created, None),
            file("c", FileChangeWord::Deleted, Some(2)),
            file("d", FileChangeWord::Moved, Some(0)),
            file("e\x1b", FileChangeWord::Edited, None),
        ];
        files.extend((5..21).map(|at| file(&format!("{at}"), FileChangeWord::Edited, Some(1))));
        let usage = TokenUsage { input: 52_300, cached: 0, output: 10, cost: None };
        let totals = RunTotals { turns: 7, calls: 9, refused: 1, usage, seconds: 63.0, files };
        let end = after(&[], &RunEvent::Stopped { stop: StopReason::Done, text: String::new(), totals });
        assert!(end.contains("\n  7 turns, 9 calls (1 refused), 52.3k tokens in, 10 out, 1 min 03 s\n"), "{end}");
        let named = "  a +1 -1\n  b (new)\n  c (deleted) +2 -2\n  old<U+000A> → d +0 -0\n  e<U+001B> (changed)\n";
        assert!(end.contains(named), "{end}");
        assert!(end.contains("  19 +1 -1\n  … 1 more file\n  see it    surehand diff --session"), "{end}");
    }

    #[test]
    fn narrow_terminals_still_show_what_a_line_is_about() {
        let painter = Painter { width: 20, ..PLAIN };
        let shown = |event| format_event(&event, &mut RunProgress::default(), painter);
        assert_eq!(shown(call("read_file", json!({ "path": "src/main.rs" }), true)), "↻ read_file src/main.rs (repair)\n");
        assert_eq!(shown(turn(RunPhase::Coding, Some("Greet by name"))), "▸ coding: Greet by name (1 of 3 tasks completed)\n");
    }

    #[test]
    fn narrow_terminals_and_colours_do_no_harm() {
        let events = [
            call("read_file", json!({ "path": "src/漢字.rs" }), true),
            result(true, "Error: 漢字漢字漢字漢字漢字漢字"),
            result(false, "漢字漢字漢字漢字漢字漢字"),
            turn(RunPhase::Coding, Some("漢字漢字漢字漢字漢字漢字")),
        ];
        for width in 0..40 {
            for event in &events {
                format_event(event, &mut RunProgress::default(), Painter { width, colours: Colours::On });
            }
        }
    }
}
