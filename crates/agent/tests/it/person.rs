//! Runs with a person: questions, input between turns, approval of edits, and further stories.
#![expect(clippy::disallowed_methods, reason = "tests lay out files, and play the other program")]

use std::{cell::RefCell, collections::VecDeque, rc::Rc};

use serde_json::json;
use surehand_agent::{
    CancelToken, EditApproval, EditRequest, Person, RunError, RunEvent,
    event::StopReason,
    model::{
        ChatMessage, Prompt,
        scripted::{ScriptedModel, ScriptedTurn},
    },
    prompt,
};
use surehand_engine::{TaskScope, core::ContextMode};

use super::{
    prompt_text,
    run::{Played, Stage, Told, call, complete, done, plan, read, turn, write},
};

/// A person who answers as scripted, and records the questions.
#[derive(Default)]
pub(super) struct ScriptedPerson {
    is_there: bool,
    answers: VecDeque<Option<&'static str>>,
    questions: Vec<String>,
    /// The next input.
    words: Rc<RefCell<Vec<String>>>,
    approvals: VecDeque<EditApproval>,
    /// The diffs, and whether a file had changed since an approval.
    edits: Vec<(String, bool)>,
    /// Runs while they think about an edit.
    meanwhile: Option<Box<dyn FnMut()>>,
}

impl Person for ScriptedPerson {
    fn is_there(&self) -> bool {
        self.is_there
    }

    fn take_words(&mut self) -> Vec<String> {
        std::mem::take(&mut self.words.borrow_mut())
    }

    fn answer(&mut self, question: &str) -> Option<String> {
        self.questions.push(question.to_owned());
        self.answers.pop_front().expect("a question that was foreseen").map(str::to_owned)
    }

    fn approve_edit(&mut self, request: &EditRequest<'_>) -> EditApproval {
        self.edits.push((request.diffs.iter().map(ToString::to_string).collect(), request.has_changed));
        if let Some(meanwhile) = &mut self.meanwhile {
            meanwhile();
        }
        self.approvals.pop_front().expect("a question that was foreseen")
    }
}

fn stage() -> Stage {
    let stage = Stage::new(&[("a.txt", "one\ntwo\n")]);
    stage.person.borrow_mut().is_there = true;
    stage
}

fn talk(text: &str) -> ScriptedTurn {
    ScriptedTurn { text: text.to_owned(), ..ScriptedTurn::default() }
}

fn notes(played: &Played) -> Vec<&str> {
    let notes = played.events.iter().filter_map(|event| match event {
        RunEvent::Note { text } => Some(text.as_str()),
        _ => None,
    });
    notes.collect()
}

/// The user's input in the events.
fn heard(played: &Played) -> Vec<(&str, Option<&str>)> {
    let words = played.events.iter().filter_map(|event| match event {
        RunEvent::User { text, answers } => Some((text.as_str(), answers.as_deref())),
        _ => None,
    });
    words.collect()
}

#[track_caller]
fn finishes(stage: &Stage, turns: Vec<ScriptedTurn>) -> Played {
    let played = stage.play(turns);
    assert_eq!(played.outcome.stop, StopReason::Done, "{}", played.outcome.text);
    played
}

// Questions.

#[test]
fn a_question_is_answered_by_the_person_and_stays_answered() {
    let stage = stage();
    stage.person.borrow_mut().answers = VecDeque::from([Some(" tabs \n")]);
    let question = "I have a question.\n\nTabs or spaces?";
    let played = finishes(&stage, vec![talk(question), plan(&["t"]), turn(vec![complete(&[1])]), done()]);
    assert_eq!(stage.person.borrow().questions, ["Tabs or spaces?"]);
    assert_eq!(heard(&played), [("tabs", Some("Tabs or spaces?"))]);
    assert_eq!(notes(&played), [""; 0], "it is no turn without a call");
    for prompt in &played.prompts[1..] {
        assert!(prompt.system.contains("After turn 0, asked \"Tabs or spaces?\": tabs\n"), "{}", prompt.system);
    }
    assert!(played.prompts[0].system.contains(prompt::ASK) && !played.prompts[0].system.contains("has said besides"));
}

#[test]
fn questions_that_are_answered_are_no_loop() {
    let stage = stage();
    stage.person.borrow_mut().answers = VecDeque::from([Some("go on"); 12]);
    let asking = (1..=12).map(|number| talk(&format!("Is it the {number}th?")));
    finishes(&stage, asking.chain([plan(&["t"]), turn(vec![complete(&[1])]), done()]).collect());
}

#[test]
fn an_answer_may_be_left_to_the_model() {
    let stage = stage();
    stage.person.borrow_mut().answers = VecDeque::from([None, Some("\n")]);
    let played = finishes(&stage, vec![talk("This?"), talk("Or that?"), plan(&["t"]), turn(vec![complete(&[1])]), done()]);
    assert_eq!((notes(&played), heard(&played)), (vec![prompt::UNANSWERED; 2], vec![]));
    assert!(played.user(2).contains(prompt::UNANSWERED), "{}", played.user(2));
}

#[test]
fn without_a_person_the_model_gets_a_note_and_the_run_stops_in_the_end() {
    let stage = Stage::new(&[]);
    let played = stage.play((0..20).map(|_| talk("Tabs or spaces?")).collect());
    assert_eq!((played.outcome.stop, played.outcome.turns), (StopReason::Stuck, 6));
    assert!(notes(&played).contains(&prompt::NOBODY_ANSWERS), "{:?}", notes(&played));
    assert!(played.user(2).contains(prompt::NOBODY_ANSWERS) && !played.prompts[0].system.contains(prompt::ASK));
}

// Input between turns.

/// Plays a run in which the user gives input in the second turn.
fn steered(stage: &Stage, turns: Vec<ScriptedTurn>) -> Played {
    let words = stage.person.borrow().words.clone();
    stage.play_with(turns, |event, _| {
        if matches!(event, RunEvent::Turn { turn: 2, .. }) {
            words.borrow_mut().push("use tabs".to_owned());
        }
    })
}

fn resumed(stage: &Stage, turns: Vec<ScriptedTurn>) -> Played {
    stage.try_play(None, ScriptedModel::new(turns), CancelToken::default(), |_, _| {}).unwrap()
}

#[test]
fn what_is_said_in_between_reaches_the_next_prompt_and_stays() {
    let stage = stage();
    let played = steered(&stage, vec![plan(&["t"]), turn(vec![read("a.txt")]), turn(vec![complete(&[1])]), done()]);
    assert_eq!((played.outcome.stop, heard(&played)), (StopReason::Done, vec![("use tabs", None)]));
    let has = |prompt: &Prompt| prompt.system.contains("After turn 2: use tabs\n");
    assert_eq!(played.prompts.iter().map(has).collect::<Vec<_>>(), [false, false, true, true]);
}

#[test]
fn what_is_said_survives_a_resume_in_both_modes() {
    for mode in [ContextMode::Snapshot, ContextMode::History] {
        let stage = stage().with(|settings| (settings.mode, settings.limits.turns) = (mode, Some(3)));
        let played = steered(&stage, vec![plan(&["t"]), turn(vec![read("a.txt")]), turn(vec![read("a.txt")])]);
        assert_eq!(played.outcome.stop, StopReason::Budget);
        let stage = stage.with(|settings| settings.limits.turns = Some(30));
        let played = resumed(&stage, vec![turn(vec![complete(&[1])]), done()]);
        assert_eq!((played.outcome.stop, heard(&played)), (StopReason::Done, vec![]));
        for prompt in &played.prompts {
            let all = prompt_text(prompt);
            assert_eq!(all.matches("use tabs").count(), 1, "{mode:?}: {all}");
        }
    }
}

#[test]
fn what_is_said_stands_in_the_conversation_where_it_was_said() {
    let stage = stage().with(|settings| (settings.mode, settings.limits.turns) = (ContextMode::History, Some(3)));
    let played = steered(&stage, vec![plan(&["t"]), turn(vec![read("a.txt")]), turn(vec![read("a.txt")])]);
    let kinds = |prompt: &Prompt| -> String {
        let kind = |message: &ChatMessage| match message {
            ChatMessage::User(text) if text == "use tabs" => 'w',
            ChatMessage::User(_) => 'u',
            ChatMessage::Assistant { .. } => 'a',
            ChatMessage::Results(_) => 'r',
        };
        prompt.messages.iter().map(kind).collect()
    };
    assert_eq!(kinds(&played.prompts[2]), "uararw");
    let stage = stage.with(|settings| settings.limits.turns = Some(30));
    let played = resumed(&stage, vec![turn(vec![complete(&[1])]), done()]);
    assert!(kinds(&played.prompts[0]).contains("ararwar"), "{}", kinds(&played.prompts[0]));
}

#[test]
fn a_conversation_that_is_folded_keeps_what_the_user_said() {
    let long: String = (1..=400).map(|number| format!("line number {number}\n")).collect();
    let stage = stage().with(|settings| (settings.mode, settings.window) = (ContextMode::History, 5000));
    std::fs::write(stage.dir.path().join("long.txt"), long).unwrap();
    let pages = (0..12).map(|page| {
        turn(vec![call("read_file", json!({ "path": "long.txt", "offset": page * 33 + 1, "limit": 33 })), read("a.txt")])
    });
    let played =
        steered(&stage, std::iter::once(plan(&["t"])).chain(pages).chain([turn(vec![complete(&[1])]), done()]).collect());
    assert!(played.events.iter().any(|event| matches!(event, RunEvent::Folded { .. })), "{:?}", played.outcome);
    assert!(played.prompts[2..].iter().all(|prompt| prompt_text(prompt).contains("use tabs")));
}

#[test]
fn done_waits_for_what_was_just_said() {
    let stage = stage();
    let turns = vec![plan(&["t"]), turn(vec![complete(&[1]), call("done", json!({}))]), turn(vec![read("a.txt")]), done()];
    let played = steered(&stage, turns);
    assert_eq!((played.outcome.stop, played.outcome.turns), (StopReason::Done, 4));
    assert!(played.user(3).contains(prompt::USER_SPOKE), "{}", played.user(3));
    assert!(played.prompts[2].system.contains("use tabs"));
}

#[test]
fn what_is_said_too_late_is_for_the_next_process() {
    let stage = stage().with(|settings| settings.limits.turns = Some(2));
    let played = steered(&stage, vec![plan(&["t"]), turn(vec![read("a.txt")])]);
    assert_eq!((played.outcome.stop, heard(&played)), (StopReason::Budget, vec![("use tabs", None)]));
    let stage = stage.with(|settings| settings.limits.turns = Some(30));
    let played = resumed(&stage, vec![turn(vec![complete(&[1])]), done()]);
    assert!(played.prompts[0].system.contains("After turn 2: use tabs\n"), "{}", played.prompts[0].system);
}

#[test]
fn new_words_are_new_instructions_for_the_loop_detector() {
    let stage = stage();
    let words = stage.person.borrow().words.clone();
    let played = stage.play_with((0..30).map(|_| talk("I am thinking.")).collect(), |event, _| {
        if matches!(event, RunEvent::Turn { turn: 4, .. }) {
            words.borrow_mut().push("go on".to_owned());
        }
    });
    assert_eq!((played.outcome.stop, played.outcome.turns), (StopReason::Stuck, 9));
}

#[test]
fn a_secret_in_the_users_words_is_redacted() {
    let mut stage = stage();
    stage = stage.with(|settings| settings.secrets.add("a-secret-word"));
    stage.person.borrow_mut().words.borrow_mut().push("it is a-secret-word".to_owned());
    let played = finishes(&stage, vec![plan(&["t"]), turn(vec![complete(&[1])]), done()]);
    assert_eq!(heard(&played), [("it is …", None)]);
    assert!(played.prompts.iter().all(|prompt| !prompt.system.contains("a-secret-word")));
}

// Edits.

fn asking(approvals: &[EditApproval]) -> Stage {
    let stage = stage().with(|settings| settings.ask_edits = true);
    stage.person.borrow_mut().approvals = approvals.iter().cloned().collect();
    stage
}

fn edit(old: &str, new: &str) -> ScriptedTurn {
    turn(vec![call("edit_file", json!({ "path": "a.txt", "old_string": old, "new_string": new }))])
}

/// Plans, reads the file, makes this call, and is done.
fn story(turns: Vec<ScriptedTurn>) -> Vec<ScriptedTurn> {
    let begin = [plan(&["t"]), turn(vec![read("a.txt")])];
    begin.into_iter().chain(turns).chain([turn(vec![complete(&[1])]), done()]).collect()
}

const DIFF: &str = "diff --git a/a.txt b/a.txt\n--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n";

#[test]
fn an_edit_is_made_when_it_is_approved() {
    let stage = asking(&[EditApproval::Yes, EditApproval::Yes]);
    finishes(&stage, story(vec![edit("two", "2"), turn(vec![write("new.txt", "x\n")])]));
    let edits = &stage.person.borrow().edits;
    assert_eq!((edits.len(), edits[0].0.as_str()), (2, DIFF));
    assert!(edits[1].0.contains("new file mode") && edits[1].0.contains("+x\n"), "{}", edits[1].0);
    assert_eq!((stage.content("a.txt").as_str(), stage.content("new.txt").as_str()), ("one\n2\n", "x\n"));
}

#[test]
fn an_edit_that_is_declined_leaves_nothing_behind() {
    let stage = asking(&[EditApproval::No(None), EditApproval::No(Some("write it in words".to_owned())), EditApproval::No(None)]);
    let turns = vec![edit("two", "2"), edit("two", "2"), turn(vec![write("new/deep.txt", "x\n")])];
    let played = finishes(&stage, story(turns));
    assert_eq!(stage.content("a.txt"), "one\ntwo\n");
    assert!(!stage.dir.path().join("new").exists());
    assert!(played.user(4).contains("the user declined the edit, and nothing was written\n"), "{}", played.user(4));
    let again = "nothing was written: write it in words\nThis is refusal 2 of the same call";
    assert!(played.user(5).contains(again), "{}", played.user(5));
    assert!(stage.workspace().net_changes(&surehand_engine::change_log::ChangeSelection::Last(None)).unwrap().is_none());
}

#[test]
fn all_edits_may_be_approved_at_once() {
    let stage = asking(&[EditApproval::Always]);
    finishes(&stage, story(vec![edit("two", "2"), edit("2", "3"), turn(vec![write("new.txt", "x\n")])]));
    assert_eq!((stage.content("a.txt").as_str(), stage.person.borrow().edits.len()), ("one\n3\n", 1));
}

#[test]
fn what_the_gate_refuses_is_not_asked_about() {
    let stage = asking(&[]);
    let played = finishes(&stage, story(vec![edit("three", "3")]));
    assert!(played.user(4).contains("refused"), "{}", played.user(4));
}

#[test]
fn an_edit_is_asked_about_again_if_the_file_has_changed_meanwhile() {
    let stage = asking(&[EditApproval::Yes, EditApproval::No(None)]);
    let path = stage.dir.path().join("a.txt");
    let mut is_first = true;
    stage.person.borrow_mut().meanwhile = Some(Box::new(move || {
        if std::mem::take(&mut is_first) {
            std::fs::write(&path, "one\ntwo\nthree\n").unwrap();
        }
    }));
    let stage = stage.with(|settings| settings.dialect = None);
    let played = stage.play(story(vec![edit("two", "2")]));
    // The gate refuses an edit that it cannot rebase. The user sees a rebased edit with its new diff.
    let edits = &stage.person.borrow().edits;
    assert!(edits.len() == 1 || edits[1].1, "{edits:?}");
    assert_eq!(stage.content("a.txt"), "one\ntwo\nthree\n", "{:?}", played.outcome);
}

#[test]
fn what_cannot_be_shown_before_is_not_done_without_approval() {
    let stage = asking(&[EditApproval::Yes]);
    let restore = turn(vec![call("restore", json!({ "paths": ["a.txt"], "to": "1m" }))]);
    let played = finishes(&stage, story(vec![edit("two", "2"), restore]));
    assert_eq!((stage.content("a.txt").as_str(), stage.person.borrow().edits.len()), ("one\n2\n", 1));
    assert!(played.calls().contains(&"restore -".to_owned()), "{:?}", played.calls());
}

#[test]
fn without_a_person_there_is_no_run_with_approval() {
    let stage = asking(&[]);
    stage.person.borrow_mut().is_there = false;
    let run = stage.try_play(Some("x"), ScriptedModel::new(vec![done()]), CancelToken::default(), |_, _| {});
    assert!(matches!(run, Err(RunError::NobodyToAsk)));
}

// Further stories.

#[test]
fn a_further_story_has_its_own_tasks_and_the_old_ones_are_kept() {
    for mode in [ContextMode::Snapshot, ContextMode::History] {
        let stage = stage().with(|settings| settings.mode = mode);
        let first = finishes(&stage, story(vec![edit("two", "2")]));
        let turns = vec![plan(&["test it"]), turn(vec![read("a.txt")]), edit("2", "3"), turn(vec![complete(&[2])]), done()];
        let input = Told::FurtherStory("Now three.");
        let played = stage.try_tell(input, ScriptedModel::new(turns), CancelToken::default(), |_, _| {}).unwrap();
        assert_eq!((played.outcome.stop, played.outcome.run.as_str()), (StopReason::Done, first.outcome.run.as_str()));
        assert_eq!((played.outcome.turns, stage.content("a.txt").as_str()), (first.outcome.turns + 5, "one\n3\n"));
        let system = &played.prompts[0].system;
        assert!(system.contains("# Story\nNow three.\n"), "{system}");
        match mode {
            ContextMode::Snapshot => assert!(system.contains("as the story, which is over: Make it work."), "{system}"),
            ContextMode::History => assert!(prompt_text(&played.prompts[0]).contains(prompt::FURTHER_STORY)),
        }
        let tasks = |story: &str| {
            let scope = TaskScope { story: Some(story.to_owned()), ..TaskScope::default() };
            stage.workspace().snapshot_for(&scope).tasks.tasks.iter().map(|task| task.description.clone()).collect::<Vec<_>>()
        };
        let run = &played.outcome.run;
        assert_eq!((tasks(run), tasks(&format!("{run}.2"))), (vec!["t".to_owned()], vec!["test it".to_owned()]));
    }
}

#[test]
fn open_tasks_of_the_story_before_do_not_keep_the_next_one_from_being_done() {
    let stage = stage().with(|settings| settings.limits.turns = Some(1));
    stage.play(vec![plan(&["left"])]);
    let stage = stage.with(|settings| settings.limits.turns = Some(30));
    let turns = vec![plan(&["other"]), turn(vec![complete(&[2])]), done()];
    let input = Told::FurtherStory("Something else.");
    let played = stage.try_tell(input, ScriptedModel::new(turns), CancelToken::default(), |_, _| {}).unwrap();
    assert_eq!(played.outcome.stop, StopReason::Done, "{}", played.outcome.text);
    assert!(played.user(1).contains("Of other stories and runs, not to be done here: 1 open task"), "{}", played.user(1));
}

#[test]
fn a_further_story_can_be_resumed_too() {
    for mode in [ContextMode::Snapshot, ContextMode::History] {
        let stage = stage().with(|settings| settings.mode = mode);
        finishes(&stage, story(vec![edit("two", "2")]));
        let stage = stage.with(|settings| settings.limits.turns = Some(6));
        let input = Told::FurtherStory("Now three.");
        let script = ScriptedModel::new(vec![plan(&["test it"])]);
        let played = stage.try_tell(input, script, CancelToken::default(), |_, _| {}).unwrap();
        assert_eq!(played.outcome.stop, StopReason::Budget);
        let stage = stage.with(|settings| settings.limits.turns = Some(30));
        let played = resumed(&stage, vec![turn(vec![complete(&[2])]), done()]);
        assert_eq!(played.outcome.stop, StopReason::Done, "{}", played.outcome.text);
        let all = prompt_text(&played.prompts[0]);
        assert!(all.contains("Now three.") && all.contains("test it"), "{all}");
    }
}
