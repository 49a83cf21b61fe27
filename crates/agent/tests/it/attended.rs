//! Runs that a person watches: the live output of commands.
#![expect(clippy::disallowed_methods, reason = "tests lay out files, and play the other program")]

use std::path::Path;

use serde_json::json;
use surehand_agent::{
    AgentRun, CancelToken, NoPerson, Ports, RunEvent, RunOutcome, RunSettings, Secrets,
    command::{self, ApprovalMode, ApprovalRules, NoApprover, RuleApprover},
    event::{FileChangeWord, FileTotal, RunTotals, StopReason},
    model::scripted::{ScriptedCall, ScriptedModel, ScriptedTurn},
};
use surehand_engine::{Config, Workspace};

use super::run::{call, complete, done, plan, turn};

/// A workspace whose runs need no approval for commands.
struct Watched {
    dir: tempfile::TempDir,
    secrets: Secrets,
}

impl Watched {
    fn new() -> Self {
        Self { dir: surehand_testkit::repository(), secrets: Secrets::default() }
    }

    /// Plays a script; `watch` sees each event before the run goes on, with the directory.
    fn play(&self, turns: Vec<ScriptedTurn>, watch: &mut dyn FnMut(&RunEvent, &Path)) -> RunOutcome {
        let mut model = ScriptedModel::new(turns);
        let mut listener = |event: &RunEvent| watch(event, self.dir.path());
        let workspace = Workspace::open(self.dir.path(), Config::default()).unwrap();
        let settings = RunSettings { secrets: self.secrets.clone(), ..RunSettings::for_workspace(&workspace) };
        let mut permission = RuleApprover::new(ApprovalRules { mode: ApprovalMode::All, ..ApprovalRules::default() }, NoApprover);
        let cancel = CancelToken::default();
        let (permission, person) = (&mut permission, &mut NoPerson);
        let ports = Ports { model: &mut model, permission, person, listener: &mut listener, cancel };
        AgentRun::new(workspace, "Make it work.", settings, ports).unwrap().run().unwrap()
    }

    /// The live output of a command, piece by piece; `answer` sees each piece before the command goes on.
    fn output(&self, command: &str, answer: &mut dyn FnMut(&str, &Path)) -> Vec<String> {
        let mut pieces = Vec::new();
        let run = turn(vec![call("run_command", json!({ "command": command }))]);
        let outcome = self.play(vec![plan(&["t"]), run, turn(vec![complete(&[1])]), done()], &mut |event, dir| {
            if let RunEvent::Output { text, .. } = event {
                answer(text, dir);
                pieces.push(text.clone());
            }
        });
        assert_eq!(outcome.stop, StopReason::Done, "{}", outcome.text);
        pieces
    }
}

/// Waits at the end of a command until its output was heard.
const UNTIL_HEARD: &str = "until [ -e heard ]; do sleep 0.01; done";

fn heard(dir: &Path) {
    std::fs::write(dir.join("heard"), "").unwrap();
}

#[test]
fn the_output_of_a_command_comes_while_it_runs() {
    let command = format!("mkfifo go; echo first; cat go; echo last; {UNTIL_HEARD}");
    let pieces = Watched::new().output(&command, &mut |text, dir| {
        if text.contains("first") {
            std::fs::write(dir.join("go"), "second\n").unwrap();
        }
        if text.contains("last") {
            heard(dir);
        }
    });
    assert_eq!((pieces[0].as_str(), pieces.concat().as_str()), ("first\n", "first\nsecond\nlast\n"));
}

#[test]
fn the_output_that_comes_is_bounded_readable_and_redacted() {
    let mut stage = Watched::new();
    stage.secrets.add("a-secret-word");
    let command = format!("printf '\\033[31ma-secret-word\\033[0m\\n\\377\\n'; seq 100000; {UNTIL_HEARD}");
    let pieces = stage.output(&command, &mut |text, dir| {
        if text.contains(command::MUTED) {
            heard(dir);
        }
    });
    let all = pieces.concat();
    assert!(all.starts_with("…\n\u{fffd}\n1\n2\n3\n"), "{}", &all[..40]);
    assert!(all.ends_with(command::MUTED) && all.len() < 17_000, "{}", all.len());
}

fn edit(path: &str, old: &str, new: &str) -> ScriptedCall {
    call("edit_file", json!({ "path": path, "old_string": old, "new_string": new }))
}

/// The last event of a run.
fn totals(stage: &Watched, turns: Vec<ScriptedTurn>) -> RunTotals {
    let mut last = None;
    stage.play(turns, &mut |event, _| {
        if let RunEvent::Stopped { totals, .. } = event {
            last = Some(totals.clone());
        }
    });
    last.unwrap()
}

#[test]
fn the_end_says_what_differs_from_before_the_run() {
    let stage = Watched::new();
    for (path, content) in [("a.txt", "one\ntwo\n"), ("b.txt", "x\n"), ("c.txt", "c\n"), ("d.txt", "d\n")] {
        std::fs::write(stage.dir.path().join(path), content).unwrap();
    }
    let read = |path: &str| call("read_file", json!({ "path": path }));
    let turns = vec![
        plan(&["t"]),
        turn(vec![read("a.txt"), read("b.txt"), read("c.txt"), read("d.txt")]),
        turn(vec![edit("a.txt", "two", "2"), edit("b.txt", "x", "y"), edit("missing.txt", "x", "y")]),
        // A file that was moved away and back has not changed.
        turn(vec![edit("b.txt", "y", "x"), call("write_file", json!({ "path": "new.txt", "content": "1\n2\n" }))]),
        turn(vec![call("run_command", json!({ "command": "printf 'c\\nmore\\n' > c.txt" }))]),
        turn(vec![call("move_file", json!({ "from": "d.txt", "to": "e.txt" })), complete(&[1])]),
        done(),
    ];
    let totals = totals(&stage, turns);
    assert_eq!((totals.turns, totals.calls, totals.refused), (7, 14, 1));
    let file = |path: &str, change, added, removed| FileTotal {
        path: path.to_owned(),
        from: (change == FileChangeWord::Moved).then(|| "d.txt".to_owned()),
        change,
        added: Some(added),
        removed: Some(removed),
    };
    let expected = [
        file("a.txt", FileChangeWord::Edited, 1, 1),
        file("c.txt", FileChangeWord::Edited, 1, 0),
        file("e.txt", FileChangeWord::Moved, 0, 0),
        file("new.txt", FileChangeWord::Created, 2, 0),
    ];
    assert_eq!(totals.files, expected);
}

#[test]
fn the_plan_is_reported_when_it_changes() {
    let stage = Watched::new();
    let mut plans = Vec::new();
    let same = turn(vec![call("update_tasks", json!({ "set": [{ "id": 1, "status": "pending" }] }))]);
    let begin = turn(vec![call("update_tasks", json!({ "set": [{ "id": 1, "status": "in_progress" }] }))]);
    let turns = vec![plan(&["one", "two"]), same, begin, turn(vec![complete(&[1])]), turn(vec![complete(&[2])]), done()];
    stage.play(turns, &mut |event, _| {
        if let RunEvent::Plan { tasks } = event {
            plans
                .push(tasks.iter().map(|task| format!("{} {} {:?}", task.id, task.description, task.status)).collect::<Vec<_>>());
        }
    });
    let expected = [
        ["1 one Pending", "2 two Pending"],
        ["1 one InProgress", "2 two Pending"],
        ["1 one Completed", "2 two Pending"],
        ["1 one Completed", "2 two Completed"],
    ];
    assert_eq!(plans, expected);
}
