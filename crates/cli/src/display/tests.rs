//! A run from beginning to end, in all display modes.

use std::{
    io::{self, Write},
    sync::{Arc, Mutex},
};

use insta::assert_snapshot;
use proptest::prelude::*;
use serde_json::{Value, json};
use surehand_agent::{
    command::AskedBecause,
    event::{ContextMode, FileChangeWord, FileTotal, PlannedTask, RunPhase, RunTotals, StopReason},
    model::TokenUsage,
};
use surehand_engine::core::{Content, RelPath, TaskStatus, file_diff::FileDiff};

use super::*;

#[derive(Clone, Default)]
pub(super) struct Buffer(Arc<Mutex<Vec<u8>>>);

impl Buffer {
    pub(super) fn take(&self) -> String {
        String::from_utf8(std::mem::take(&mut self.0.lock().unwrap())).unwrap()
    }
}

impl Write for Buffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn call(id: &str, tool: &str, arguments: Value, repair: bool) -> RunEvent {
    RunEvent::Call { id: id.to_owned(), tool: tool.to_owned(), arguments, repair }
}

fn result(id: &str, tool: &str, is_error: bool, text: &str, diff: Vec<FileDiff>) -> RunEvent {
    RunEvent::Result { id: id.to_owned(), tool: tool.to_owned(), is_error, text: text.to_owned(), diff }
}

fn text(text: &str) -> RunEvent {
    RunEvent::Text { text: text.to_owned() }
}

fn said(text: &str) -> RunEvent {
    RunEvent::Said { text: text.to_owned() }
}

fn usage(times: u64) -> TokenUsage {
    TokenUsage { input: 8_211 * times, cached: 6_100 * (times - 1), output: 350 * times, cost: Some(0.0123 * times as f64) }
}

/// One side of a diff: the path of a file, and its content if it exists.
type Side<'a> = (&'a str, Option<&'a str>);

pub(super) fn diff(before: Side<'_>, after: Side<'_>) -> FileDiff {
    let path = |path| RelPath::new(path).unwrap();
    let content = |text: Option<&str>| text.map(|text| Content::new(text.as_bytes().to_vec()));
    FileDiff::between((&path(before.0), content(before.1).as_ref()), (&path(after.0), content(after.1).as_ref()))
}

pub(super) fn edit(path: &str, before: &str, after: &str) -> FileDiff {
    diff((path, Some(before)), (path, Some(after)))
}

/// The diff of the edit in [`run`].
fn greeting() -> FileDiff {
    let main = |name: &str| format!("fn main() {{\n    init();\n    let name = \"{name}\";\n    greet(name);\n}}\n");
    edit("src/main.rs", &main("world"), &main("surehand"))
}

/// The output of a command in [`run`].
fn make() -> String {
    let line = |line| format!("step {line}\n");
    format!("exit code 0\n{}done\x1b[2J\n", (1..=30).map(line).collect::<String>())
}

fn tasks(first: TaskStatus) -> Vec<PlannedTask> {
    let task = |id, what: &str, status| PlannedTask { id, description: what.to_owned(), status };
    vec![task(1, "Greet by name", first), task(2, "Say so in the changelog", TaskStatus::Pending)]
}

/// A run with a model that misbehaves.
fn run() -> Vec<RunEvent> {
    let greet = json!({ "path": "src/main.rs", "old_string": "\"world\"", "new_string": "\"surehand\"" });
    let refusal = "Error: src/main.rs was modified since last read; nothing was written. What changed since (line 2), as it is now; this counts as read:\n2|    init();\n";
    let main = FileTotal {
        path: "src/main.rs".to_owned(),
        from: None,
        change: FileChangeWord::Edited,
        added: Some(1),
        removed: Some(1),
    };
    vec![
        RunEvent::Started {
            run: "calm-otter".to_owned(),
            story: "Greet by name, and say so in the changelog.".to_owned(),
            model: "some/model".to_owned(),
            mode: ContextMode::Snapshot,
            session: "run-calm-otter".to_owned(),
            after_turn: 0,
        },
        RunEvent::Turn { turn: 1, phase: RunPhase::Planning, task: None, open: 0, completed: 0, prompt_tokens: 8_300 },
        text("I shall look "),
        RunEvent::Again { why: "429 Too Many Requests".to_owned(), seconds: 2.1 },
        text("First I look\x1b[2J "),
        text("at the file.\n\n"),
        RunEvent::Calling { tool: "read_file".to_owned() },
        said("First I look\x1b[2J at the file.\n\n"),
        call("1", "read_file", json!({ "path": "src/main.rs" }), false),
        result("1", "read_file", false, "src/main.rs (4 lines, version 83e24e)\n1|fn main() {\n", Vec::new()),
        call("2", "run_command", json!({ "command": "make" }), false),
        RunEvent::Output { id: "2".to_owned(), text: (1..=12).map(|line| format!("step {line}\n")).collect() },
        result("2", "run_command", false, &make(), Vec::new()),
        call("2", "update_tasks", json!({ "add": [{}, {}] }), false),
        result("2", "update_tasks", false, "2 tasks added\n", Vec::new()),
        RunEvent::Plan { tasks: tasks(TaskStatus::Pending) },
        RunEvent::TurnEnded { turn: 1, usage: usage(1), total: usage(1), seconds: 4.2 },
        RunEvent::Turn {
            turn: 2,
            phase: RunPhase::Coding,
            task: Some("Greet by name".to_owned()),
            open: 2,
            completed: 0,
            prompt_tokens: 8_300,
        },
        said(""),
        call("3", "edit_file", greet.clone(), false),
        result("3", "edit_file", true, refusal, Vec::new()),
        call("4", "read_file", json!({ "path": "src/main.rs", "offset": 1, "limit": 5 }), true),
        result("4", "read_file", false, "src/main.rs (5 lines, version 2c61b1)\n", Vec::new()),
        call("5", "edit_file", greet, false),
        result("5", "edit_file", false, "src/main.rs edited (+1 -1, now 5 lines, version 9ab01c)\n", vec![greeting()]),
        RunEvent::Plan { tasks: tasks(TaskStatus::Completed) },
        RunEvent::Left { what: vec!["src/lib.rs 1-40".to_owned(), "README.md".to_owned()] },
        RunEvent::TurnEnded { turn: 2, usage: usage(1), total: usage(2), seconds: 3.0 },
        RunEvent::Stopped {
            stop: StopReason::Budget,
            text: "2 of 2 turns are used up. One task is open.".to_owned(),
            totals: RunTotals { turns: 2, calls: 5, refused: 1, usage: usage(2), seconds: 7.2, files: vec![main] },
        },
    ]
}

fn shown(view: impl FnOnce(Box<dyn Write + Send>) -> RunDisplay) -> String {
    let buffer = Buffer::default();
    let mut view = view(Box::new(buffer.clone()));
    for event in run() {
        view.show(&event).unwrap();
    }
    drop(view);
    buffer.take()
}

/// The screen of a terminal after this output, without its colours.
fn left_on_terminal(bytes: &str) -> String {
    let (mut rows, mut row) = (String::new(), String::new());
    let mut rest = bytes;
    while let Some(c) = rest.chars().next() {
        if let Some(after) = rest.strip_prefix("\r\x1b[2K") {
            row.clear();
            rest = after;
        } else if let Some(after) = rest.strip_prefix("\x1b[") {
            rest = after.trim_start_matches(|c: char| c.is_ascii_digit() || c == ';').strip_prefix('m').expect("a colour");
        } else {
            row.push(c);
            rest = &rest[c.len_utf8()..];
            if c == '\n' {
                rows.push_str(&std::mem::take(&mut row));
            }
        }
    }
    assert_eq!(row, "", "the last row is empty");
    rows
}

#[test]
fn a_terminal_keeps_the_lines_and_nothing_of_the_status() {
    let bytes = shown(|out| RunDisplay::terminal(out, Box::new(|| 72)));
    assert!(bytes.contains("turn 2 · coding"), "there was a status");
    assert_snapshot!(left_on_terminal(&bytes), @r#"
    surehand run calm-otter · some/model · snapshot
    Greet by name, and say so in the changelog.

    ▸ planning
    I shall look 
    ↻ 429 Too Many Requests, again in 2.1 s; its text so far is void
    First I look<U+001B>[2J at the file.
    ● read_file src/main.rs
      └ src/main.rs (4 lines, version 83e24e)
    ● run_command make
        step 1
        step 2
        step 3
        step 4
        step 5
        step 6
        step 7
        step 8
        step 9
        step 10
        … 16 more lines
        step 27
        step 28
        step 29
        step 30
        done<U+001B>[2J
      └ exit code 0
    ● update_tasks 2 added
      └ 2 tasks added
        ○ 1 Greet by name
        ○ 2 Say so in the changelog
      turn 1: 8.2k tokens in, 350 out, $0.01, 4.2 s

    ▸ coding: Greet by name (0 of 2 tasks completed)
    ● edit_file src/main.rs
      └ refused: src/main.rs was modified since last read; nothing was
        written. What changed since (line 2), as it is now; this counts as
        read:
        2|    init();
    ↻ read_file src/main.rs 1-5 (repair)
      └ src/main.rs (5 lines, version 2c61b1)
    ● edit_file src/main.rs
      └ src/main.rs edited (+1 -1, now 5 lines, version 9ab01c)
        src/main.rs +1 -1
        @@ -1,5 +1,5 @@
         fn main() {
             init();
        -    let name = "world";
        +    let name = "surehand";
             greet(name);
         }
        ✔ 1 Greet by name
      left the context: src/lib.rs 1-40, README.md
      turn 2: 8.2k tokens in, 350 out, $0.01, 3.0 s

    ■ stopped: the budget is used up
      2 of 2 turns are used up. One task is open.

      2 turns, 5 calls (1 refused), 16.4k tokens in (6.1k cached), 700 out, $0.02, 7 s
      src/main.rs +1 -1
      see it    surehand diff --session run-calm-otter
      undo it   surehand undo --session run-calm-otter
      go on     surehand run --resume
    "#);
}

#[test]
fn a_pipe_gets_plain_lines() {
    assert_snapshot!(shown(|out| RunDisplay::plain(out, UserPresence::Unattended)), @r#"
    run calm-otter: some/model, snapshot mode, session run-calm-otter
    story: Greet by name, and say so in the changelog.
    turn 1: planning, 0 of 0 tasks completed, 8300 tokens
    again in 2.1 s: 429 Too Many Requests
    First I look<U+001B>[2J at the file.
    call: read_file src/main.rs
    result: read_file: src/main.rs (4 lines, version 83e24e)
    call: run_command make
    | step 1
    | step 2
    | step 3
    | step 4
    | step 5
    | step 6
    | step 7
    | step 8
    | step 9
    | step 10
    | step 11
    | step 12
    | step 13
    | step 14
    | step 15
    | step 16
    | step 17
    | step 18
    | step 19
    | step 20
    | step 21
    | step 22
    | step 23
    | step 24
    | step 25
    | step 26
    | step 27
    | step 28
    | step 29
    | step 30
    | done<U+001B>[2J
    result: run_command: exit code 0
    call: update_tasks 2 added
    result: update_tasks: 2 tasks added
    task: 1 Greet by name
    task: 2 Say so in the changelog
    turn 1 took 8.2k tokens in, 350 out, $0.01, 4.2 s
    turn 2: coding, 0 of 2 tasks completed, 8300 tokens: Greet by name
    call: edit_file src/main.rs
    refused: edit_file: src/main.rs was modified since last read; nothing was written. What changed since (line 2), as it is now; this counts as read:
    repair: read_file src/main.rs 1-5
    result: read_file: src/main.rs (5 lines, version 2c61b1)
    call: edit_file src/main.rs
    result: edit_file: src/main.rs edited (+1 -1, now 5 lines, version 9ab01c)
    | --- a/src/main.rs
    | +++ b/src/main.rs
    | @@ -1,5 +1,5 @@
    |  fn main() {
    |      init();
    | -    let name = "world";
    | +    let name = "surehand";
    |      greet(name);
    |  }
    task completed: 1 Greet by name
    left the context: src/lib.rs 1-40, README.md
    turn 2 took 8.2k tokens in, 350 out, $0.01, 3.0 s
    stopped: the budget is used up
    2 of 2 turns are used up. One task is open.
    took 2 turns, 5 calls (1 refused), 16.4k tokens in (6.1k cached), 700 out, $0.02, 7 s
    changed: src/main.rs +1 -1
    see it: surehand diff --session run-calm-otter
    undo it: surehand undo --session run-calm-otter
    go on: surehand run --resume
    "#);
}

#[test]
fn a_program_gets_the_events_as_they_are() {
    let lines = shown(RunDisplay::json);
    let events: Vec<RunEvent> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let without_diff = |mut event: RunEvent| {
        if let RunEvent::Result { diff, .. } = &mut event {
            diff.clear();
        }
        event
    };
    assert_eq!(events, run().into_iter().map(without_diff).collect::<Vec<_>>());
    let results = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()).filter(|line| line["event"] == "result");
    assert_eq!(results.map(|result| result["diff"].clone()).collect::<Vec<_>>(), ["", "", "", "", "", &greeting().to_string()]);
}

#[test]
fn nobody_is_asked_where_nobody_sees_the_question() {
    let views: [fn(Box<dyn Write + Send>) -> RunDisplay; 2] =
        [|out| RunDisplay::plain(out, UserPresence::Unattended), RunDisplay::json];
    for view in views {
        let buffer = Buffer::default();
        let request = CommandRequest { line: "ls", why: AskedBecause::NotAllowed };
        assert_eq!(view(Box::new(buffer.clone())).ask(&request, &CancelToken::default()).unwrap(), ApprovalAnswer::Unattended);
        assert_eq!(buffer.take(), "");
    }
}

#[test]
fn a_closed_pipe_is_known_as_one() {
    struct Closed;
    impl Write for Closed {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::BrokenPipe.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let views = [
        RunDisplay::plain(Box::new(Closed), UserPresence::Unattended),
        RunDisplay::json(Box::new(Closed)),
        RunDisplay::terminal(Box::new(Closed), Box::new(|| 80)),
    ];
    for mut view in views {
        let error = view.show(&said("Hello.")).unwrap_err();
        assert!(crate::output::is_broken_pipe(&error));
    }
}

#[track_caller]
fn check_manner(is_terminal: bool, term: &str, no_color: bool, expected: DisplayMode) {
    assert_eq!(DisplayMode::of_text(is_terminal, term, no_color), expected);
}

#[test]
fn the_manner_suits_the_output() {
    check_manner(true, "xterm-256color", false, DisplayMode::Terminal);
    check_manner(true, "xterm-256color", true, DisplayMode::Plain(UserPresence::Attended));
    check_manner(true, "dumb", false, DisplayMode::Plain(UserPresence::Attended));
    check_manner(true, "", false, DisplayMode::Plain(UserPresence::Attended));
    check_manner(false, "xterm-256color", false, DisplayMode::Plain(UserPresence::Unattended));
}

/// One event of each kind, with the same text wherever a foreign text can occur.
fn events_with(words: &str) -> Vec<RunEvent> {
    let words = || words.to_owned();
    let keys = ["path", "from", "to", "pattern", "command", "glob", "patch", "story"];
    let arguments: Value = keys.iter().map(|key| ((*key).to_owned(), json!(words()))).collect::<serde_json::Map<_, _>>().into();
    let (from, to, more) = (format!("{}x", words()), format!("{}y", words()), format!("{0}{0}z", words()));
    let diff = || vec![diff((&from, Some(&words())), (&to, Some(&more)))];
    let (run, story, model, session) = (words(), words(), words(), words());
    let mut events = vec![
        RunEvent::Started { run, story, model, mode: ContextMode::History, session, after_turn: 3 },
        RunEvent::Turn { turn: 4, phase: RunPhase::Coding, task: Some(words()), open: 1, completed: 1, prompt_tokens: 1 },
        RunEvent::Calling { tool: words() },
        RunEvent::Again { why: words(), seconds: 1.0 },
        text(&words()),
        said(&words()),
        RunEvent::Left { what: vec![words(), words()] },
        call("1", &words(), json!(words()), false),
        call("1", &words(), json!([words()]), false),
    ];
    for tool in surehand_engine::Tool::ALL {
        events.push(call("1", tool.name(), arguments.clone(), true));
        events.push(result("2", &words(), true, &format!("Error: {}", words()), diff()));
        events.push(result("2", &words(), false, &words(), diff()));
    }
    events.push(RunEvent::Output { id: words(), text: words() });
    events.push(result("2", "run_command", false, &words(), Vec::new()));
    events.push(RunEvent::Plan { tasks: vec![PlannedTask { id: 1, description: words(), status: TaskStatus::Pending }] });
    let (change, lines) = (FileChangeWord::Moved, Some(1));
    let files = vec![FileTotal { path: words(), from: Some(words()), change, added: lines, removed: lines }];
    events.push(RunEvent::Stopped {
        stop: StopReason::Stuck,
        text: words(),
        totals: RunTotals { files, ..RunTotals::default() },
    });
    events
}

proptest! {
    /// Whatever a model, a file or a server says, the terminal obeys only our control sequences.
    #[test]
    fn nobody_else_speaks_to_the_terminal(words in "[a\\x1b\\[2J\r\n\t\u{9b}\u{202e}\u{200b}\u{7}漢]{0,30}", width in 0..100usize) {
        let mut progress = RunProgress::default();
        let mut shown = String::new();
        for event in events_with(&words) {
            shown.push_str(&plain_lines::format_event(&event, &mut progress));
            shown.push_str(&terminal_lines::format_event(&event, &mut progress, Painter { width, colours: Colours::Off }));
            progress.note(&event);
            if let Some(status) = &progress.status {
                shown.push_str(&status_line::render(status, 0, std::time::Duration::ZERO, Painter { width, colours: Colours::Off }));
            }
        }
        let is_obeyed = |c: char| (c.is_control() && c != '\n' && c != '\t') || c == '\u{202e}';
        prop_assert!(!shown.contains(is_obeyed), "{:?}", shown);
    }
}
