//! Whole runs with a model that follows a script, on real files.
#![expect(clippy::disallowed_methods, reason = "tests lay out files, and play the other program")]

use std::{cell::RefCell, path::Path, rc::Rc, sync::Arc};

use serde_json::{Value, json};
use surehand_agent::{
    AgentRun, CancelToken, Ports, RunError, RunEvent, RunOutcome, RunSettings,
    command::{ApprovalMode, ApprovalRules, NoApprover, RuleApprover},
    event::{RunPhase, StopReason},
    model::{
        ChatModel, ModelAnswer, ModelError, Prompt, StreamEvent,
        scripted::{ScriptedCall, ScriptedModel, ScriptedTurn},
    },
    transcript::ResumeError,
};
use surehand_engine::{
    Config, Workspace,
    core::{Anchor, ContextMode, EditDialect, LineNo, file_diff::FileDiff},
};

use super::{person::ScriptedPerson, prompt_text};

/// A scripted model that records its prompts.
struct Recorded {
    script: ScriptedModel,
    prompts: Rc<RefCell<Vec<Prompt>>>,
}

impl ChatModel for Recorded {
    fn name(&self) -> &str {
        "recorded"
    }

    fn ask(
        &mut self,
        prompt: &Prompt,
        cancel: &CancelToken,
        hear: &mut dyn FnMut(StreamEvent<'_>),
    ) -> Result<ModelAnswer, ModelError> {
        self.prompts.borrow_mut().push(prompt.clone());
        self.script.ask(prompt, cancel, hear)
    }
}

/// The outcome of a run.
pub(super) struct Played {
    pub(super) outcome: RunOutcome,
    pub(super) events: Vec<RunEvent>,
    pub(super) prompts: Vec<Prompt>,
}

impl Played {
    pub(super) fn user(&self, turn: usize) -> String {
        prompt_text(&Prompt { system: String::new(), ..self.prompts[turn - 1].clone() })
    }

    /// The calls, each with its outcome: `+` or `-`, and an `r` for a repair.
    pub(super) fn calls(&self) -> Vec<String> {
        let mut calls = Vec::new();
        for event in &self.events {
            match event {
                RunEvent::Call { tool, repair, .. } => calls.push(format!("{tool}{}", if *repair { " r" } else { "" })),
                RunEvent::Result { is_error, .. } => {
                    let call = calls.last_mut().unwrap();
                    *call = format!("{call} {}", if *is_error { "-" } else { "+" });
                }
                _ => {}
            }
        }
        calls
    }

    fn result(&self, index: usize) -> &str {
        let texts = self.events.iter().filter_map(|event| match event {
            RunEvent::Result { text, .. } => Some(text.as_str()),
            _ => None,
        });
        texts.collect::<Vec<_>>()[index]
    }
}

fn diffs(event: &RunEvent) -> &[FileDiff] {
    match event {
        RunEvent::Result { diff, .. } => diff,
        _ => &[],
    }
}

/// How a run begins.
pub(super) enum Told<'a> {
    Story(&'a str),
    Resumed,
    FurtherStory(&'a str),
}

pub(super) struct Stage {
    pub(super) dir: tempfile::TempDir,
    /// [`NoPerson`], unless a test sets a person.
    pub(super) person: RefCell<ScriptedPerson>,
    settings: Option<RunSettings>,
    dialect: Option<EditDialect>,
    runs_commands: bool,
}

pub(super) fn call(tool: &str, arguments: Value) -> ScriptedCall {
    ScriptedCall { tool: tool.to_owned(), arguments }
}

pub(super) fn turn(calls: Vec<ScriptedCall>) -> ScriptedTurn {
    ScriptedTurn { calls, ..ScriptedTurn::default() }
}

pub(super) fn plan(tasks: &[&str]) -> ScriptedTurn {
    let add: Vec<Value> = tasks.iter().map(|task| json!({ "description": task })).collect();
    turn(vec![call("update_tasks", json!({ "add": add }))])
}

pub(super) fn complete(ids: &[u32]) -> ScriptedCall {
    let set: Vec<Value> = ids.iter().map(|id| json!({ "id": id, "status": "completed" })).collect();
    call("update_tasks", json!({ "set": set }))
}

pub(super) fn done() -> ScriptedTurn {
    turn(vec![call("done", json!({ "summary": "all done" }))])
}

pub(super) fn read(path: &str) -> ScriptedCall {
    call("read_file", json!({ "path": path }))
}

pub(super) fn write(path: &str, content: &str) -> ScriptedCall {
    call("write_file", json!({ "path": path, "content": content }))
}

impl Stage {
    pub(super) fn new(files: &[(&str, &str)]) -> Self {
        let dir = surehand_testkit::repository();
        for (path, content) in files {
            put(dir.path(), path, content);
        }
        Self { dir, person: RefCell::default(), settings: None, dialect: None, runs_commands: false }
    }

    pub(super) fn workspace(&self) -> Arc<Workspace> {
        Workspace::open(self.dir.path(), Config::default()).unwrap()
    }

    pub(super) fn content(&self, path: &str) -> String {
        std::fs::read_to_string(self.dir.path().join(path)).unwrap()
    }

    pub(super) fn with(mut self, change: impl FnOnce(&mut RunSettings)) -> Self {
        let mut settings = self.settings.take().unwrap_or_else(|| RunSettings::for_workspace(&self.workspace()));
        change(&mut settings);
        self.settings = Some(settings);
        self
    }

    /// Every command is approved.
    pub(super) fn running_commands(mut self) -> Self {
        self.runs_commands = true;
        self
    }

    pub(super) fn play(&self, turns: Vec<ScriptedTurn>) -> Played {
        self.play_with(turns, |_, _| {})
    }

    /// Plays a script; `outside` sees each event before the run goes on, with the directory.
    pub(super) fn play_with(&self, turns: Vec<ScriptedTurn>, outside: impl FnMut(&RunEvent, &Path)) -> Played {
        self.try_play(Some("Make it work."), ScriptedModel::new(turns), CancelToken::default(), outside).unwrap()
    }

    /// Plays a script in a new run with a story, or in the last one without.
    pub(super) fn try_play(
        &self,
        story: Option<&str>,
        script: ScriptedModel,
        cancel: CancelToken,
        outside: impl FnMut(&RunEvent, &Path),
    ) -> Result<Played, RunError> {
        self.try_tell(story.map_or(Told::Resumed, Told::Story), script, cancel, outside)
    }

    pub(super) fn try_tell(
        &self,
        input: Told<'_>,
        script: ScriptedModel,
        cancel: CancelToken,
        mut outside: impl FnMut(&RunEvent, &Path),
    ) -> Result<Played, RunError> {
        let prompts = Rc::new(RefCell::new(Vec::new()));
        let mut model = Recorded { script, prompts: prompts.clone() };
        let mut events = Vec::new();
        let mut listener = |event: &RunEvent| {
            outside(event, self.dir.path());
            events.push(event.clone());
        };
        let mode = if self.runs_commands { ApprovalMode::All } else { ApprovalMode::Ask };
        let mut permission = RuleApprover::new(ApprovalRules { mode, ..ApprovalRules::default() }, NoApprover);
        let (permission, person) = (&mut permission, &mut *self.person.borrow_mut());
        let ports = Ports { model: &mut model, permission, person, listener: &mut listener, cancel };
        let workspace = self.workspace();
        let settings = RunSettings {
            dialect: self.dialect,
            ..self.settings.clone().unwrap_or_else(|| RunSettings::for_workspace(&workspace))
        };
        let run = match input {
            Told::Story(story) => AgentRun::new(workspace, story, settings, ports)?,
            Told::Resumed => AgentRun::resume(workspace, None, settings, ports)?,
            Told::FurtherStory(story) => AgentRun::tell_further_story(workspace, None, story, settings, ports)?,
        };
        let outcome = run.run()?;
        let prompts = prompts.borrow().clone();
        Ok(Played { outcome, events, prompts })
    }
}

fn put(dir: &Path, path: &str, content: &str) {
    let path = dir.join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, content).unwrap();
}

fn numbered(lines: u32) -> String {
    (1..=lines).map(|n| format!("line number {n}\n")).collect()
}

#[test]
fn a_story_is_planned_worked_on_and_done() {
    let stage = Stage::new(&[("a.txt", "one\ntwo\n")]);
    let edit = call("edit_file", json!({ "path": "a.txt", "old_string": "two", "new_string": "2" }));
    let played = stage.play(vec![turn(vec![read("a.txt")]), plan(&["change two"]), turn(vec![edit, complete(&[1])]), done()]);
    assert_eq!((played.outcome.stop, played.outcome.text.as_str(), played.outcome.turns), (StopReason::Done, "all done", 4));
    assert_eq!(stage.content("a.txt"), "one\n2\n");
    assert_eq!(played.calls(), ["read_file +", "update_tasks +", "edit_file +", "update_tasks +", "done +"]);
    let phases = played.events.iter().filter_map(|event| match event {
        RunEvent::Turn { phase, .. } => Some(*phase),
        _ => None,
    });
    assert_eq!(phases.collect::<Vec<_>>(), [RunPhase::Planning, RunPhase::Planning, RunPhase::Coding, RunPhase::Coding]);
}

#[test]
fn the_prompt_shows_files_as_they_are_now() {
    let stage = Stage::new(&[("a.txt", "one\ntwo\n")]);
    let played =
        stage.play_with(vec![turn(vec![read("a.txt")]), plan(&["look"]), turn(vec![complete(&[1])]), done()], |event, dir| {
            if matches!(event, RunEvent::TurnEnded { turn: 2, .. }) {
                put(dir, "a.txt", "zero\none\n2\n");
            }
        });
    assert!(played.user(2).contains("1|one\n2|two\n"), "{}", played.user(2));
    assert!(played.user(4).contains("2|one\n3|2\n"), "{}", played.user(3));
    assert!(!played.user(3).contains("|two"), "{}", played.user(3));
    assert!(played.user(3).contains("a.txt was changed by someone else"), "{}", played.user(3));
    assert!(!played.user(4).contains("changed by someone else"), "it is said once: {}", played.user(4));
}

#[test]
fn what_is_shown_can_be_edited_and_what_has_left_cannot() {
    let long = numbered(900);
    let stage = Stage::new(&[("long.txt", &long), ("second.txt", &long), ("third.txt", &long)]);
    let edit = |line: u32| {
        call(
            "edit_file",
            json!({ "path": "long.txt", "old_string": format!("line number {line}\n"), "new_string": format!("LINE {line}\n") }),
        )
    };
    let played = stage.play(vec![
        plan(&["edit"]),
        turn(vec![read("long.txt")]),
        turn(vec![edit(3)]),
        turn(vec![read("second.txt")]),
        turn(vec![read("third.txt")]),
        turn(vec![edit(5)]),
    ]);
    assert!(played.user(3).contains("3|line number 3\n"), "{}", played.user(3));
    assert!(played.user(3).contains("No room for: long.txt lines "), "{}", played.user(3));
    assert!(stage.content("long.txt").contains("LINE 3\n"));
    assert!(!played.user(6).contains("long.txt ("), "{}", played.user(6));
    assert!(!stage.content("long.txt").contains("LINE 5\n"), "what was not shown is not edited");
    assert!(played.result(5).contains("was not read this session"), "{}", played.result(5));
    for prompt in &played.prompts {
        assert!(prompt.tokens() <= 5000, "{}", prompt.tokens());
    }
}

/// The anchor of a line.
fn anchor(number: u32, text: &str) -> String {
    Anchor::of(LineNo::new(number).unwrap(), text).to_string()
}

#[test]
fn a_stale_anchored_edit_is_repaired_where_it_is_proven() {
    let before = numbered(30);
    let after = format!("new first line\n{}", before.replace("line number 4\n", "line number four\n"));
    let mut stage = Stage::new(&[("a.txt", &before)]);
    stage.dialect = Some(EditDialect::Lines);
    let edit = json!({ "path": "a.txt", "edits": [{ "op": "replace", "at": anchor(20, "line number 20"), "text": "twenty" }] });
    let played = stage.play_with(
        vec![plan(&["edit"]), turn(vec![read("a.txt")]), turn(vec![call("edit_lines", edit), complete(&[1])]), done()],
        |event, dir| {
            if matches!(event, RunEvent::Call { tool, repair: false, .. } if tool == "edit_lines") {
                put(dir, "a.txt", &after);
            }
        },
    );
    assert_eq!(stage.content("a.txt"), after.replace("line number 20\n", "twenty\n"));
    assert_eq!(
        played.calls(),
        ["update_tasks +", "read_file +", "edit_lines -", "read_file r +", "edit_lines r +", "update_tasks +", "done +"]
    );
    let reads = played.events.iter().filter_map(|event| match event {
        RunEvent::Call { tool, arguments, repair: true, .. } => Some((tool.as_str(), arguments.clone())),
        _ => None,
    });
    let reads: Vec<(&str, Value)> = reads.collect();
    assert_eq!(reads[0].1["ranges"], json!([{ "start": 1, "end": 1 }, { "start": 5, "end": 5 }, { "start": 21, "end": 21 }]));
    assert_eq!(reads[1].1["edits"][0]["at"], json!(anchor(21, "line number 20")));
    assert!(played.user(4).contains("new first line"), "the context is fresh: {}", played.user(4));
}

#[test]
fn an_edit_of_a_changed_line_is_left_to_the_model() {
    let before = numbered(30);
    let mut stage = Stage::new(&[("a.txt", &before)]);
    stage.dialect = Some(EditDialect::Lines);
    let edit =
        |at: &str| call("edit_lines", json!({ "path": "a.txt", "edits": [{ "op": "replace", "at": at, "text": "twenty" }] }));
    let (old, new) = (anchor(20, "line number 20"), anchor(20, "their twenty"));
    let played = stage.play_with(
        vec![plan(&["edit"]), turn(vec![read("a.txt")]), turn(vec![edit(&old)]), turn(vec![edit(&new), complete(&[1])]), done()],
        |event, dir| {
            if matches!(event, RunEvent::Turn { turn: 3, .. }) {
                put(dir, "a.txt", &before.replace("line number 20\n", "their twenty\n"));
            }
        },
    );
    assert_eq!(played.calls()[2..5], ["edit_lines -", "read_file r +", "edit_lines +"]);
    assert!(played.user(4).contains("|their twenty"), "{}", played.user(4));
    assert!(stage.content("a.txt").contains("\ntwenty\n"));
}

#[test]
fn files_are_not_changed_before_there_are_tasks() {
    let stage = Stage::new(&[]);
    let played =
        stage.play(vec![turn(vec![write("a.txt", "x")]), plan(&["t"]), turn(vec![write("a.txt", "x"), complete(&[1])]), done()]);
    assert!(played.result(0).contains("first write the tasks"), "{}", played.result(0));
    assert_eq!(stage.content("a.txt"), "x");
    assert!(!played.prompts[0].tools.iter().any(|tool| tool.name == "write_file"));
    assert!(played.prompts[2].tools.iter().any(|tool| tool.name == "write_file"));
}

#[test]
fn done_with_open_tasks_is_refused() {
    let stage = Stage::new(&[]);
    let played = stage.play(vec![plan(&["one", "two"]), done(), turn(vec![complete(&[1, 2])]), done()]);
    assert!(played.result(1).contains("Not done: 2 tasks open: 1 (one), 2 (two)"), "{}", played.result(1));
    assert_eq!(played.outcome.stop, StopReason::Done);
}

#[test]
fn nonsense_is_answered_and_the_run_goes_on() {
    let stage = Stage::new(&[("a.txt", "x\n")]);
    let broken = ScriptedCall { tool: "read_file".to_owned(), arguments: json!("{\"path\": ") };
    let list = ScriptedCall { tool: "read_file".to_owned(), arguments: json!("[1]") };
    let played = stage.play(vec![
        turn(vec![
            broken,
            list,
            call("launch_rocket", json!({})),
            call("read_file", json!({ "path": 7 })),
            read("../x"),
            read("a.txt"),
        ]),
        done(),
    ]);
    assert!(played.result(0).contains("not JSON"), "{}", played.result(0));
    assert!(played.result(1).contains("must be a JSON object"), "{}", played.result(1));
    assert!(played.result(2).contains("there is no tool"), "{}", played.result(2));
    assert!(played.result(5).contains("1|x"), "{}", played.result(5));
    assert_eq!(played.outcome.stop, StopReason::Done);
}

#[test]
fn a_run_that_gets_nowhere_stops() {
    let stage = Stage::new(&[("a.txt", "x\n")]);
    let edit = || turn(vec![call("edit_file", json!({ "path": "a.txt", "old_string": "nothing like it", "new_string": "y" }))]);
    let played = stage.play(vec![plan(&["t"]), edit(), edit(), edit(), edit(), edit(), edit(), edit()]);
    assert_eq!(played.outcome.stop, StopReason::Stuck);
    assert!(played.outcome.text.contains("refused 5 times"), "{}", played.outcome.text);
    assert!(played.user(5).contains("had no effect"), "{}", played.user(5));
    let silent = || ScriptedTurn { text: "I am thinking.".to_owned(), ..ScriptedTurn::default() };
    let played = stage.play((0..9).map(|_| silent()).collect());
    assert_eq!((played.outcome.stop, played.outcome.turns), (StopReason::Stuck, 6));
    assert!(played.user(2).contains("You called no tool"), "{}", played.user(2));
}

#[test]
fn budgets_stop_a_run_and_it_can_go_on() {
    let stage = Stage::new(&[("a.txt", "one\n")]).with(|settings| settings.limits.turns = Some(2));
    let played = stage.play(vec![turn(vec![read("a.txt")]), plan(&["t"]), done()]);
    assert_eq!((played.outcome.stop, played.outcome.turns), (StopReason::Budget, 2));
    let stage = stage.with(|settings| settings.limits.turns = None);
    let edit = call("edit_file", json!({ "path": "a.txt", "old_string": "one", "new_string": "1" }));
    let script = ScriptedModel::new(vec![turn(vec![edit, complete(&[1])]), done()]);
    let resumed = stage.try_play(None, script, CancelToken::default(), |_, _| {}).unwrap();
    assert_eq!((resumed.outcome.stop, resumed.outcome.turns), (StopReason::Done, 4));
    assert_eq!(resumed.outcome.run, played.outcome.run);
    assert!(resumed.user(1).contains("1|one"), "what was open is open again: {}", resumed.user(1));
    assert!(resumed.user(1).contains("update_tasks"), "the last exchange is there: {}", resumed.user(1));
    assert_eq!(stage.content("a.txt"), "1\n");
    let nothing = stage.try_play(None, ScriptedModel::new(vec![done()]), CancelToken::default(), |_, _| {});
    assert!(matches!(nothing, Err(RunError::Resume(ResumeError::Nothing))));
}

#[test]
fn a_stop_is_heeded_between_calls() {
    let stage = Stage::new(&[]);
    let cancel = CancelToken::default();
    let wish = cancel.clone();
    let script = ScriptedModel::new(vec![plan(&["t"]), turn(vec![write("a.txt", "a"), write("b.txt", "b")]), done()]);
    let played = stage
        .try_play(Some("story"), script, cancel, move |event, _| {
            if matches!(event, RunEvent::Result { tool, .. } if tool == "write_file") {
                wish.cancel();
            }
        })
        .unwrap();
    assert_eq!(played.outcome.stop, StopReason::Cancelled);
    assert_eq!(stage.content("a.txt"), "a");
    assert!(!stage.dir.path().join("b.txt").exists());
}

#[test]
fn a_run_ends_when_its_minutes_are_over_and_goes_on_with_more() {
    let stage = Stage::new(&[]).with(|settings| settings.limits.minutes = Some(0.0));
    let stopped = stage.play(vec![done()]);
    assert_eq!((stopped.outcome.stop, stopped.outcome.turns), (StopReason::Budget, 0));
    assert_eq!(stopped.outcome.text, "0 minutes are used up; to continue: surehand run --resume");
    let stage = stage.with(|settings| settings.limits.minutes = Some(60.0));
    let resumed = stage.try_play(None, ScriptedModel::new(vec![done()]), CancelToken::default(), |_, _| {}).unwrap();
    assert_eq!(resumed.outcome.stop, StopReason::Done);
}

#[test]
fn a_note_to_the_model_is_reported() {
    let played = Stage::new(&[]).play(vec![says("Hm."), done()]);
    let note = "You called no tool. Go on with the open tasks, or call done if the story is done.";
    assert!(played.events.contains(&RunEvent::Note { text: note.to_owned() }));
    assert!(played.user(2).contains(note));
}

fn says(text: &str) -> ScriptedTurn {
    ScriptedTurn { text: text.to_owned(), ..ScriptedTurn::default() }
}

#[test]
fn a_story_is_done_with_calls_in_the_text() {
    for mode in [ContextMode::Snapshot, ContextMode::History] {
        let stage = Stage::new(&[("a.txt", "one\n")]).with(|settings| settings.mode = mode);
        let played = stage.play(vec![
            says("I plan.\n<tool_call>{\"name\": \"update_tasks\", \"arguments\": {\"add\": [{\"description\": \"do it\"}]}}</tool_call>"),
            says("```json\n{\"name\": \"read_file\", \"arguments\": {\"path\": \"a.txt\"}}\n```"),
            says("<function=write_file>\n<parameter=path>\na.txt\n</parameter>\n<parameter=content>\ntwo\n\n</parameter>\n</function>"),
            says(
                "<invoke name=\"update_tasks\"><parameter name=\"set\">[{\"id\": 1, \"status\": \"completed\"}]</parameter></invoke>\n\
                 <invoke name=\"done\"><parameter name=\"summary\">two</parameter></invoke>",
            ),
        ]);
        assert_eq!((played.outcome.stop, &*played.outcome.text), (StopReason::Done, "two"));
        assert_eq!(stage.content("a.txt"), "two\n");
        assert!(played.events.contains(&RunEvent::Said { text: "I plan.".to_owned() }), "{:?}", played.events);
    }
}

#[test]
fn an_example_of_a_call_is_answered_with_how_to_call() {
    let stage = Stage::new(&[("a.txt", "one\n")]);
    let example = "<tool_call>{\"name\": \"write_file\", \"arguments\": {\"path\": \"a.txt\", \"content\": \"\"}}</tool_call>";
    let unknown = "<tool_call>{\"name\": \"edit\", \"arguments\": {}}</tool_call>";
    let played =
        stage.play(vec![plan(&["do it"]), says(&format!("{example}\nempties it.")), says(unknown), complete_and_finish()]);
    assert_eq!(stage.content("a.txt"), "one\n");
    assert_eq!(played.calls(), ["update_tasks +", "update_tasks +", "done +"]);
    assert!(played.user(3).contains("was not carried out: it is not complete, or not at the very end"), "{}", played.user(3));
    let tools = "There are these tools: read_file, list_files, search_files, edit_file, write_file, delete_file, move_file, undo, \
                 restore, update_tasks, run_command, done.";
    assert!(played.user(4).contains("there is no tool \"edit\""), "{}", played.user(4));
    let note = |event: &RunEvent| match event {
        RunEvent::Note { text } => Some(text.clone()),
        _ => None,
    };
    let notes: Vec<String> = played.events.iter().filter_map(note).collect();
    assert!(notes.len() == 2 && notes.iter().all(|note| note.contains(tools)), "{notes:?}");
}

fn complete_and_finish() -> ScriptedTurn {
    turn(vec![complete(&[1]), call("done", json!({ "summary": "all done" }))])
}

#[test]
fn an_unknown_tool_is_answered_with_those_that_are_offered() {
    let unknown = || turn(vec![call("str_replace", json!({}))]);
    let played = Stage::new(&[]).play(vec![unknown(), plan(&["do it"]), unknown(), complete_and_finish()]);
    let planning = "there are read_file, list_files, search_files, update_tasks, run_command, done\n";
    assert!(played.result(0).ends_with(planning), "{}", played.result(0));
    assert!(
        played.result(2).contains("write_file, ") && played.result(2).contains("run_command, done\n"),
        "{}",
        played.result(2)
    );
}

#[test]
fn a_story_is_done_in_a_small_context() {
    let stage = Stage::new(&[("a.txt", &numbered(500)), ("b.txt", "b\n")]);
    let played = stage.with(|settings| settings.budget = 1500).play(vec![
        plan(&["do it"]),
        turn(vec![read("a.txt"), read("b.txt")]),
        turn(vec![call("read_file", json!({ "path": "a.txt", "offset": 7, "limit": 1 }))]),
        turn(vec![call("edit_file", json!({ "path": "a.txt", "old_string": "line number 7\n", "new_string": "seven\n" }))]),
        complete_and_finish(),
    ]);
    assert_eq!(played.calls().last().map(String::as_str), Some("done +"), "{:?}", played.events);
    for (number, prompt) in played.prompts.iter().enumerate() {
        assert!(prompt.tokens() <= 1500, "{number}: {}", prompt.tokens());
    }
    let left = played.events.iter().any(|event| matches!(event, RunEvent::Left { .. }));
    assert!(left && played.user(3).contains("No room for: a.txt"), "{}", played.user(3));
}

#[test]
fn a_budget_that_holds_nothing_is_refused_with_one_that_would() {
    let stage = Stage::new(&[]).with(|settings| settings.budget = 900);
    let error = stage.try_play(Some("story"), ScriptedModel::new(vec![done()]), CancelToken::default(), |_, _| {}).err().unwrap();
    let RunError::BudgetTooSmall { budget: 900, needed } = error else { panic!("{error}") };
    assert!(needed < 1500 && error.to_string().contains(&format!("give --budget {needed} or more")), "{error}");
    let stage = stage.with(|settings| settings.budget = needed);
    assert_eq!(stage.play(vec![done()]).outcome.stop, StopReason::Done);
}

#[test]
fn no_op_results_are_kept_in_no_context() {
    for mode in [ContextMode::Snapshot, ContextMode::History] {
        let stage = Stage::new(&[]).with(|settings| settings.mode = mode);
        let same = || turn(vec![write("a.txt", "same content\n")]);
        let played = stage.play(vec![plan(&["t"]), same(), same(), turn(vec![complete(&[1])]), done()]);
        let said = "nothing was written";
        assert!(played.user(4).contains(said), "{mode:?}: the model reads it once: {}", played.user(4));
        assert!(!played.user(5).contains(said), "{mode:?}: {}", played.user(5));
    }
}

#[test]
fn a_conversation_that_gets_long_is_folded_and_what_was_read_forgotten() {
    let stage = Stage::new(&[("a.txt", &numbered(300)), ("b.txt", "b\n")]).with(|settings| {
        settings.mode = ContextMode::History;
        settings.window = 6000;
    });
    let edit = || call("edit_file", json!({ "path": "b.txt", "old_string": "b", "new_string": "B" }));
    let played = stage.play(vec![
        plan(&["t"]),
        turn(vec![read("b.txt"), read("a.txt")]),
        turn(vec![read("a.txt")]),
        turn(vec![edit()]),
        turn(vec![read("b.txt")]),
        turn(vec![edit(), complete(&[1])]),
        done(),
    ]);
    assert!(played.events.iter().any(|event| matches!(event, RunEvent::Folded { .. })));
    assert!(played.user(4).contains("was folded into this state"), "{}", played.user(4));
    assert!(played.result(4).contains("was not read this session"), "{}", played.result(4));
    assert_eq!((stage.content("b.txt").as_str(), played.outcome.stop), ("B\n", StopReason::Done));
    for prompt in &played.prompts {
        assert!(prompt.tokens() < 6000 + 3000, "{}", prompt.tokens());
    }
}

#[test]
fn a_run_changes_its_mode_and_loses_nothing() {
    let stage = Stage::new(&[("a.txt", "one\n")]).with(|settings| settings.limits.turns = Some(2));
    stage.play(vec![turn(vec![read("a.txt")]), plan(&["t"]), done()]);
    let stage = stage.with(|settings| {
        settings.mode = ContextMode::History;
        settings.limits.turns = Some(3);
    });
    let resumed =
        stage.try_play(None, ScriptedModel::new(vec![turn(vec![read("a.txt")])]), CancelToken::default(), |_, _| {}).unwrap();
    assert_eq!(resumed.outcome.stop, StopReason::Budget);
    assert!(resumed.user(1).contains("1|one"), "the transcript is the conversation: {}", resumed.user(1));
    let stage = stage.with(|settings| {
        settings.mode = ContextMode::Snapshot;
        settings.limits.turns = None;
    });
    let script = ScriptedModel::new(vec![turn(vec![complete(&[1])]), done()]);
    let resumed = stage.try_play(None, script, CancelToken::default(), |_, _| {}).unwrap();
    assert_eq!(resumed.outcome.stop, StopReason::Done);
}

#[test]
fn instructions_have_their_place_and_stay() {
    let stage = Stage::new(&[("AGENTS.md", "Write tests.\n"), ("sub/AGENTS.md", "Use tabs.\n"), ("sub/a.txt", "one\n")]);
    let played = stage.play(vec![turn(vec![read("sub/a.txt")]), plan(&["t"]), turn(vec![complete(&[1])]), done()]);
    assert!(played.prompts[0].system.contains("Write tests."), "{}", played.prompts[0].system);
    for prompt in &played.prompts[1..] {
        let text = prompt_text(prompt);
        assert_eq!(text.matches("Write tests.").count(), 1, "{text}");
        assert_eq!(text.matches("Use tabs.").count(), 1, "{text}");
    }
}

#[test]
fn without_a_person_commands_are_declined() {
    let stage = Stage::new(&[]);
    let played = stage.play(vec![turn(vec![call("run_command", json!({ "command": "touch x" }))]), done()]);
    assert!(played.calls()[0].ends_with('-'), "{:?}", played.calls());
    assert!(!stage.dir.path().join("x").exists());
}

#[test]
fn what_comes_to_light_in_an_answer_does_not_allow_its_other_calls() {
    // The model wrote all of them before it had seen the present file.
    let theirs = "one\ntheir two\n";
    let edit = |old: &str, new: &str| call("edit_file", json!({ "path": "a.txt", "old_string": old, "new_string": new }));
    let check = |first: ScriptedCall, second: ScriptedCall| {
        let stage = Stage::new(&[("a.txt", "one\ntwo\n")]);
        let turns = vec![plan(&["t"]), turn(vec![read("a.txt")]), turn(vec![first, second]), turn(vec![complete(&[1])]), done()];
        let played = stage.play_with(turns, |event, dir| {
            if matches!(event, RunEvent::Turn { turn: 3, .. }) {
                put(dir, "a.txt", theirs);
            }
        });
        assert_eq!(stage.content("a.txt"), theirs, "{:?}", played.calls());
        let prompt = played.user(4);
        assert!(prompt.contains("you had not seen the current content of a.txt"), "{prompt}");
        assert!(prompt.contains("2|their two"), "{prompt}");
    };
    check(edit("two", "2"), write("./a.txt", "one\n2\n"));
    check(edit("two", "2"), edit("one", "1"));
    check(read("a.txt"), write("a.txt", "one\n2\n"));
    check(edit("two", "2"), call("delete_file", json!({ "path": "a.txt" })));
    let patch = "*** Begin Patch\n*** Update File: a.txt\n@@\n-one\n+1\n*** End Patch\n";
    check(edit("two", "2"), call("apply_patch", json!({ "patch": patch })));
}

#[test]
fn a_file_that_is_read_and_written_over_in_one_answer_stays() {
    let stage = Stage::new(&[("a.txt", "unseen\n")]);
    let played =
        stage.play(vec![plan(&["t"]), turn(vec![read("a.txt"), write("a.txt", "blind\n")]), turn(vec![complete(&[1])]), done()]);
    assert_eq!(stage.content("a.txt"), "unseen\n");
    assert!(played.result(2).contains("you had not seen"), "{}", played.result(2));
    // The model may write its own content as often as it likes.
    let stage = Stage::new(&[]);
    stage.play(vec![plan(&["t"]), turn(vec![write("a.txt", "first\n"), write("a.txt", "second\n"), complete(&[1])]), done()]);
    assert_eq!(stage.content("a.txt"), "second\n");
}

#[test]
fn a_repaired_edit_does_not_allow_to_write_over_what_made_it_needed() {
    let before = numbered(30);
    let after = format!("their first line\n{before}");
    let mut stage = Stage::new(&[("a.txt", &before)]);
    stage.dialect = Some(EditDialect::Lines);
    let edit = json!({ "path": "a.txt", "edits": [{ "op": "replace", "at": anchor(20, "line number 20"), "text": "twenty" }] });
    let calls = vec![call("edit_lines", edit), write("a.txt", "mine\n")];
    let turns = vec![plan(&["t"]), turn(vec![read("a.txt")]), turn(calls), turn(vec![complete(&[1])]), done()];
    let played = stage.play_with(turns, |event, dir| {
        if matches!(event, RunEvent::Turn { turn: 3, .. }) {
            put(dir, "a.txt", &after);
        }
    });
    assert_eq!(stage.content("a.txt"), after.replace("line number 20\n", "twenty\n"), "{:?}", played.calls());
}

#[test]
fn done_is_not_taken_from_an_answer_in_which_something_failed() {
    let stage = Stage::new(&[("a.txt", "one\n")]);
    let edit = call("edit_file", json!({ "path": "a.txt", "old_string": "two", "new_string": "2" }));
    let say_done = call("done", json!({ "summary": "all done" }));
    let played = stage.play(vec![plan(&["t"]), turn(vec![read("a.txt"), edit, complete(&[1]), say_done]), turn(vec![]), done()]);
    assert_eq!((played.outcome.stop, played.outcome.turns), (StopReason::Done, 4));
    assert!(played.result(4).contains("another call of the same answer has failed"), "{}", played.result(4));
}

#[test]
fn what_the_model_has_just_asked_for_is_not_folded_away() {
    let stage = Stage::new(&[("a.txt", &numbered(300)), ("b.txt", &numbered(300)), ("c.txt", "c\n")]).with(|settings| {
        settings.mode = ContextMode::History;
        settings.window = 6500;
    });
    let edit = |path: &str, old: &str| call("edit_file", json!({ "path": path, "old_string": old, "new_string": "new" }));
    let played = stage.play(vec![
        plan(&["t"]),
        turn(vec![read("c.txt"), read("a.txt")]),
        turn(vec![read("b.txt")]),
        turn(vec![edit("b.txt", "line number 300"), edit("c.txt", "c")]),
        turn(vec![complete(&[1])]),
        done(),
    ]);
    let prompt = played.user(4);
    assert!(prompt.contains("was folded into this state") && prompt.contains("300|line number 300"), "{prompt}");
    assert_eq!(played.calls()[4..6], ["edit_file +", "edit_file -"], "what is in the context can be edited, and nothing else");
    for prompt in &played.prompts {
        assert!(prompt.tokens() <= 6500, "{}", prompt.tokens());
    }
}

#[test]
fn what_is_longer_than_the_window_is_said_to_be() {
    let long = numbered(600);
    let stage = Stage::new(&[("a.txt", &long), ("b.txt", &long), ("c.txt", &long)]).with(|settings| {
        settings.mode = ContextMode::History;
        settings.window = 8000;
    });
    let played = stage.play(vec![
        plan(&["t"]),
        turn(vec![read("a.txt"), read("b.txt"), read("c.txt")]),
        turn(vec![complete(&[1])]),
        done(),
    ]);
    let prompt = played.user(3);
    assert!(prompt.contains("was too long: ask for less at once") && !prompt.contains("|line number"), "{prompt}");
    assert!(played.prompts.iter().all(|prompt| prompt.tokens() <= 8000));
}

/// Plays until an event at which the program is killed.
fn killed_at(stage: &Stage, turns: Vec<ScriptedTurn>, fatal: impl Fn(&RunEvent) -> bool) {
    let play = || {
        stage.play_with(turns, |event, _| {
            if fatal(event) {
                std::panic::resume_unwind(Box::new("killed"))
            }
        })
    };
    assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(play)).is_err());
}

#[test]
fn a_run_that_was_killed_in_its_first_turn_goes_on() {
    let stage = Stage::new(&[]);
    killed_at(&stage, vec![plan(&["t"])], |event| matches!(event, RunEvent::Said { .. }));
    let resumed = stage.try_play(None, ScriptedModel::new(vec![done()]), CancelToken::default(), |_, _| {}).unwrap();
    assert!(resumed.prompts[0].system.contains("Make it work."), "{}", resumed.prompts[0].system);
}

#[test]
fn a_diff_with_a_secret_is_redacted_and_complete() {
    let secret = "sk-12345678";
    let stage = Stage::new(&[("a.txt", &format!("one\nkey = {secret}\ntwo\n"))]).with(|settings| settings.secrets.add(secret));
    let edit = call("edit_file", json!({ "path": "a.txt", "old_string": "two", "new_string": "2" }));
    let delete = call("delete_file", json!({ "path": "a.txt" }));
    let work = turn(vec![edit, delete, complete(&[1])]);
    let played = stage.play(vec![turn(vec![read("a.txt")]), plan(&["change two"]), work, done()]);
    let diffs: Vec<&FileDiff> = played.events.iter().flat_map(diffs).collect();
    let counts: Vec<_> = diffs.iter().map(|diff| (diff.path_after().as_str(), diff.added(), diff.removed())).collect();
    assert_eq!(counts, [("a.txt", 1, 1), ("a.txt", 0, 3)]);
    let heading = "diff --git a/a.txt b/a.txt\n";
    let edited = format!("{heading}--- a/a.txt\n+++ b/a.txt\n@@ -1,3 +1,3 @@\n one\n key = …\n-two\n+2\n");
    let deleted = format!("{heading}deleted file mode 100644\n--- a/a.txt\n+++ /dev/null\n@@ -1,3 +0,0 @@\n-one\n-key = …\n-2\n");
    assert_eq!(diffs.iter().map(ToString::to_string).collect::<Vec<_>>(), [edited.as_str(), deleted.as_str()]);
    let runs = stage.dir.path().join(".git/surehand/checkouts/main/runs");
    let transcript = std::fs::read_to_string(runs.join(&played.outcome.run).join("transcript.jsonl")).unwrap();
    let lines = transcript.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let written: Vec<Value> =
        lines.map(|line| line["diff"].clone()).filter(|diff| diff.as_str().is_some_and(|diff| !diff.is_empty())).collect();
    assert_eq!(written, [edited, deleted]);
    assert!(!transcript.contains(secret));
}

#[test]
fn a_record_does_not_say_where_it_is() {
    let stage = Stage::new(&[]).with(|settings| settings.limits.turns = Some(1));
    let run = stage.play(vec![plan(&["t"]), done()]).outcome.run;
    let place = stage.dir.path().join(".git/surehand/checkouts/main/runs").join(&run).join("run.json");
    let content = std::fs::read_to_string(&place).unwrap();
    std::fs::write(&place, content.replacen(&format!("\"run\":\"{run}\""), "\"run\":\"../../outside\"", 1)).unwrap();
    let stage = stage.with(|settings| settings.limits.turns = None);
    let script = ScriptedModel::new(vec![turn(vec![complete(&[1])]), done()]);
    let resumed = stage.try_play(None, script, CancelToken::default(), |_, _| {}).unwrap();
    assert_eq!(resumed.outcome.run, run);
    assert!(!stage.dir.path().join("outside").exists());
}

#[test]
fn a_conversation_that_goes_on_has_the_refusal_and_not_the_read_that_followed() {
    let stage = Stage::new(&[("a.txt", "one\n")]).with(|settings| {
        settings.mode = ContextMode::History;
        settings.limits.turns = Some(3);
    });
    let edit = call("edit_file", json!({ "path": "a.txt", "old_string": "one", "new_string": "1" }));
    stage.play_with(vec![plan(&["t"]), turn(vec![read("a.txt")]), turn(vec![edit])], |event, dir| {
        if matches!(event, RunEvent::Turn { turn: 3, .. }) {
            put(dir, "a.txt", "zero\none\n");
        }
    });
    let stage = stage.with(|settings| settings.limits.turns = None);
    let script = ScriptedModel::new(vec![turn(vec![complete(&[1])]), done()]);
    let resumed = stage.try_play(None, script, CancelToken::default(), |_, _| {}).unwrap();
    assert!(resumed.user(1).contains("modified since last read"), "{}", resumed.user(1));
}

#[test]
fn a_repaired_edit_never_hits_a_line_that_only_looks_like_it() {
    let line = |n: u32| if n.is_multiple_of(4) { "}\n".to_owned() } else { format!("line {n}\n") };
    let before: String = (1..=40).map(line).collect();
    let mut stage = Stage::new(&[("a.txt", &before)]);
    stage.dialect = Some(EditDialect::Lines);
    let edit = json!({ "path": "a.txt", "edits": [{ "op": "replace", "at": anchor(20, "}"), "text": "} // twenty" }] });
    let turns = vec![plan(&["edit"]), turn(vec![read("a.txt")]), turn(vec![call("edit_lines", edit), complete(&[1])]), done()];
    stage.play_with(turns, |event, dir| match event {
        RunEvent::Call { tool, repair: false, .. } if tool == "edit_lines" => put(dir, "a.txt", &format!("new\n{before}")),
        // Once more, so that another brace is where the intended one was before.
        RunEvent::Call { repair: true, .. } => put(dir, "a.txt", &format!("new\nx\nx\nx\nx\n{before}")),
        _ => {}
    });
    let now = stage.content("a.txt");
    assert!(!now.contains("twenty") || now.contains("line 19\n} // twenty\n"), "{now}");
}

#[test]
fn in_a_conversation_the_model_gets_the_lines_that_a_repair_read() {
    let stage = Stage::new(&[("a.txt", "one\n")]).with(|settings| settings.mode = ContextMode::History);
    let edit = call("edit_file", json!({ "path": "a.txt", "old_string": "one", "new_string": "1" }));
    let turns = vec![plan(&["t"]), turn(vec![read("a.txt")]), turn(vec![edit]), turn(vec![complete(&[1])]), done()];
    let played = stage.play_with(turns, |event, dir| {
        if matches!(event, RunEvent::Turn { turn: 3, .. }) {
            put(dir, "a.txt", &format!("one\n{}", numbered(500)));
        }
    });
    assert!(played.user(4).contains("|line number 400\n"), "what counts as read is in the conversation: {}", played.user(4));
}

#[test]
fn instructions_have_their_place_however_they_came_up() {
    let mut stage = Stage::new(&[
        ("sub/AGENTS.md", "Use tabs.\n"),
        ("sub/a.txt", "one\n"),
        ("other/AGENTS.md", "Use blanks.\n"),
        ("AGENTS.md", "Be brief.\n"),
    ]);
    stage.dialect = Some(EditDialect::Patch);
    let search = call("search_files", json!({ "pattern": "one", "glob": "*.txt" }));
    let add = call("apply_patch", json!({ "patch": "*** Begin Patch\n*** Add File: other/c.txt\n+x\n*** End Patch\n" }));
    let played = stage.play_with(
        vec![turn(vec![search]), plan(&["t"]), turn(vec![add]), turn(vec![complete(&[1])]), done()],
        |event, dir| {
            if matches!(event, RunEvent::TurnEnded { turn: 3, .. }) {
                put(dir, "AGENTS.md", "Be long.\n");
            }
        },
    );
    let system = &played.prompts[4].system;
    assert!(system.contains("Use tabs.") && system.contains("Use blanks.") && system.contains("Be long."), "{system}");
    assert!(!system.contains("Be brief."), "what they were is no longer there: {system}");
}

#[test]
fn instructions_come_again_after_a_kill() {
    let stage = Stage::new(&[("sub/AGENTS.md", "Use tabs.\n"), ("sub/a.txt", "one\n")]);
    let is_read = |event: &RunEvent| matches!(event, RunEvent::Result { tool, .. } if tool == "read_file");
    killed_at(&stage, vec![plan(&["t"]), turn(vec![read("sub/a.txt")])], is_read);
    let script = ScriptedModel::new(vec![turn(vec![read("sub/a.txt")]), turn(vec![complete(&[1])]), done()]);
    let resumed = stage.try_play(None, script, CancelToken::default(), |_, _| {}).unwrap();
    assert!(resumed.prompts[1].system.contains("Use tabs."), "{}", resumed.prompts[1].system);
}

#[test]
fn no_prompt_is_larger_than_the_budget_whatever_is_in_it() {
    let path = |n: u32| format!("some/long/directory/name_{n}/file_with_a_long_name_{n}.rs");
    let instructions = "Always do the right thing. ".repeat(2000);
    for budget in [3300, 5000] {
        let stage = Stage::new(&[("AGENTS.md", &instructions)]).with(|settings| settings.budget = budget);
        (0..60).for_each(|n| put(stage.dir.path(), &path(n), &numbered(40)));
        let calls = || (0..60).map(|n| read(&path(n))).chain((0..20).map(|n| read(&format!("missing{n}")))).collect();
        let talk = || ScriptedTurn { text: "word and word ".repeat(900), calls: calls() };
        let tasks: Vec<String> = (0..200).map(|n| format!("task {n} with a rather long description of it")).collect();
        let tasks: Vec<&str> = tasks.iter().map(String::as_str).collect();
        let script = ScriptedModel::new(vec![talk(), talk(), talk(), plan(&tasks), talk(), talk(), done()]);
        let story = "story of a great many words ".repeat(3000);
        let played = stage.try_play(Some(&story), script, CancelToken::default(), |event, dir| {
            if let RunEvent::TurnEnded { turn, .. } = event {
                (0..60).for_each(|n| put(dir, &path(n), &format!("{turn}\n{}", numbered(40))));
            }
        });
        for prompt in &played.unwrap().prompts {
            assert!(prompt.tokens() <= budget, "{} of {budget}", prompt.tokens());
        }
    }
}

#[test]
fn tasks_of_an_earlier_story_are_no_plan() {
    let stage = Stage::new(&[("a.txt", "x\n")]).with(|settings| settings.limits.turns = Some(1));
    stage.play(vec![plan(&["left over"])]);
    let stage = stage.with(|settings| settings.limits.turns = None);
    // The first task is that of the other run, which neither blocks this one nor can be closed by it.
    let played = stage.play(vec![
        turn(vec![read("a.txt")]),
        plan(&["mine"]),
        turn(vec![complete(&[1])]),
        turn(vec![complete(&[2])]),
        done(),
    ]);
    let phases = played.events.iter().filter_map(|event| match event {
        RunEvent::Turn { phase, .. } => Some(*phase),
        _ => None,
    });
    assert_eq!(
        phases.collect::<Vec<_>>(),
        [RunPhase::Planning, RunPhase::Planning, RunPhase::Coding, RunPhase::Coding, RunPhase::Coding]
    );
    let first = played.user(1);
    assert!(first.contains("No tasks.") && first.contains("1. [pending] left over (run "), "{first}");
    assert!(played.user(4).contains("task 1 belongs to run "), "{}", played.user(4));
    assert_eq!(played.outcome.stop, StopReason::Done);
}
