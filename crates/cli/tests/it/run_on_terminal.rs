//! `surehand run` on a terminal with a person: what it shows and asks, and what the person types.

use serde_json::Value;
use surehand_testkit::{
    model_server::{ModelServer, Turn},
    terminal::Terminal,
};

use crate::run::{STORY, Stage, complete, done, edit, plan, read, stage, wait_until, whole_story};

/// Starts a run on a terminal.
fn on_terminal(stage: &Stage, server: &ModelServer, words: &[&str]) -> Terminal {
    Terminal::start(&stage.command(&server.url(), words), 100)
}

/// Waits for the end of a run, and checks that the mode of the terminal is restored.
#[track_caller]
fn ends(mut terminal: Terminal, code: i32) -> String {
    let mode = terminal.wait_for_end();
    let (ended, output) = terminal.finish();
    assert_eq!((ended, mode), (Some(code), true), "{output}");
    output
}

/// Turns of which the second one waits until the file `go` exists.
fn waiting_in_the_second(stage: &Stage, turns: Vec<Turn>) -> Vec<Turn> {
    let path = stage.path("go");
    let waits = |(number, turn): (usize, Turn)| {
        let path = path.clone();
        if number != 1 {
            return turn;
        }
        Turn::made(move |_| {
            wait_until("the signal", || path.exists());
            turn.clone()
        })
    };
    turns.into_iter().enumerate().map(waits).collect()
}

#[test]
fn a_question_of_the_model_is_answered_at_the_terminal() {
    let stage = stage();
    let server = ModelServer::start([vec![Turn::text("May I?\n\nTabs or spaces?")], whole_story()].concat());
    let mut terminal = on_terminal(&stage, &server, &[STORY]);
    terminal.wait_for("Tabs or spaces?");
    terminal.wait_for("? The model asks you.");
    terminal.wait_for("it decides) > ");
    terminal.type_keys("tabs, please\r");
    ends(terminal, 0);
    let prompt = server.requests()[1].prompt();
    assert!(prompt.contains("asked \"Tabs or spaces?\": tabs, please"), "{prompt}");
    assert!(server.requests()[0].prompt().contains("If only the user can decide something, ask"));
}

#[test]
fn in_a_pipe_the_model_is_told_that_nobody_answers() {
    for words in [&[STORY][..], &[STORY, "--json"]] {
        let (ran, requests) = stage().finishes([vec![Turn::text("Tabs or spaces?")], whole_story()].concat(), words);
        assert!(ran.out.contains("there is no one to answer it"), "{}", ran.out);
        assert!(requests[1].prompt().contains("there is no one to answer it"), "{}", requests[1].prompt());
        assert!(!requests[0].prompt().contains("If only the user can decide"));
    }
}

#[test]
fn a_line_that_is_typed_reaches_the_next_prompt_and_survives_a_resume() {
    let stage = stage();
    let [first, second, third, fourth] = whole_story().try_into().unwrap();
    let server = ModelServer::start(waiting_in_the_second(&stage, vec![first, second, Turn::hang()]));
    let mut terminal = on_terminal(&stage, &server, &[STORY]);
    terminal.wait_for("type a line to tell the model something");
    server.wait_for_requests(2);
    terminal.type_keys("use tebs\x7f\x7f\x7fabs");
    // Until Enter, the line is shown in place of the status.
    terminal.wait_for(" use tabs");
    terminal.type_keys("\r");
    terminal.wait_for("the model reads it in its next turn");
    stage.put("go", "");
    server.wait_for_requests(3);
    assert!(server.requests()[2].prompt().contains("After turn 2: use tabs\n"), "{}", server.requests()[2].prompt());
    terminal.type_keys("\x03");
    ends(terminal, 130);
    let user: Vec<Value> =
        stage.transcript_values(&stage.only_run()).into_iter().filter(|event| event["event"] == "user").collect();
    assert_eq!(user, [serde_json::json!({ "event": "user", "text": "use tabs", "answers": null })]);
    let (_, requests) = stage.finishes(vec![third, fourth], &["--resume"]);
    assert!(requests[0].prompt().contains("After turn 2: use tabs\n"), "{}", requests[0].prompt());
}

#[test]
fn a_line_typed_into_a_plain_terminal_is_heard_too() {
    let stage = stage();
    let server = ModelServer::start(waiting_in_the_second(&stage, whole_story()));
    let mut terminal = Terminal::start(stage.command(&server.url(), &[STORY]).env("NO_COLOR", "1"), 80);
    server.wait_for_requests(2);
    terminal.type_keys("use tabs\r");
    // The terminal echoes what is typed.
    terminal.wait_for("use tabs");
    stage.put("go", "");
    terminal.wait_for("you: use tabs");
    ends(terminal, 0);
    assert!(server.requests()[2].prompt().contains("After turn 2: use tabs\n"));
}

#[test]
fn an_edit_is_shown_and_asked_about() {
    let stage = stage();
    let turns = vec![
        plan(),
        Turn::calls(&[read("a.txt")]),
        Turn::calls(&[edit("a.txt", "two", "II")]),
        Turn::calls(&[edit("a.txt", "two", "2")]),
        Turn::calls(&[complete(1)]),
        done(),
    ];
    let server = ModelServer::start(turns);
    let mut terminal = on_terminal(&stage, &server, &[STORY, "--ask-edits"]);
    let question =
        [terminal.wait_for("? The model wants to make this edit:"), terminal.wait_for("what to do instead > ")].concat();
    for part in ["a.txt", "-two", "+II", "all edits in this run"] {
        assert!(question.contains(part), "{part}: {question}");
    }
    terminal.type_keys("an Arabic number\r");
    terminal.wait_for("refused: the user declined the edit, and nothing was written: an Arabic number");
    terminal.wait_for("what to do instead > ");
    assert_eq!(stage.content("a.txt"), "one\ntwo\n");
    terminal.type_keys("y\r");
    let output = ends(terminal, 0);
    assert_eq!((stage.content("a.txt").as_str(), output.matches("+2").count()), ("one\n2\n", 1), "{output}");
    assert!(server.requests()[3].prompt().contains("nothing was written: an Arabic number"));
}

#[test]
fn asking_about_edits_needs_a_person() {
    for (words, environment) in [(&[STORY, "--ask-edits"][..], None), (&[STORY][..], Some(("SUREHAND_RUN_ASK_EDITS", "true")))] {
        let (stage, server) = (stage(), ModelServer::start(Vec::new()));
        let output = stage.command(&server.url(), words).envs(environment).output().unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), server.requests().len()), (Some(2), 0), "{error}");
        assert!(error.contains("there is no one to ask"), "{error}");
    }
}

#[test]
fn a_second_ctrl_c_restores_the_terminal_too() {
    let stage = stage();
    let stubborn = "trap '' TERM INT; echo $$ > shell; mv shell started; sleep 100";
    let server = ModelServer::start(vec![Turn::calls(&[crate::run::shell(stubborn)])]);
    let mut terminal = on_terminal(&stage, &server, &[STORY, "--yes"]);
    wait_until("the command", || stage.path("started").exists());
    terminal.wait_for("run_command");
    assert!(!terminal.has_its_own_mode());
    wait_until("the end", || {
        terminal.type_keys("\x03");
        terminal.has_its_own_mode()
    });
    ends(terminal, 130);
}

#[test]
fn a_run_that_is_done_takes_a_further_story() {
    let stage = stage();
    stage.finishes(whole_story(), &[STORY]);
    let run = stage.only_run();
    for words in [&["Make one a number.", "--resume"][..], &["Make it II.", &format!("--resume={}", &run[..14])]] {
        let number = stage.place(&run)["former_stories"].as_u64().unwrap() as u32 + 2;
        let turns = vec![plan(), Turn::calls(&[complete(number)]), done()];
        let (_, requests) = stage.finishes(turns, words);
        let prompt = requests[0].prompt();
        assert!(prompt.contains(&format!("# Story\n{}\n", words[0])), "{prompt}");
        assert!(prompt.contains("as the story, which is over: Make two a number."), "{prompt}");
    }
    assert_eq!((stage.only_run(), stage.place(&run)["turn"].as_u64()), (run.clone(), Some(10)));
    let tasks = |story: &str| {
        let mut list = std::process::Command::new(env!("CARGO_BIN_EXE_surehand"));
        list.args(["tasks", "--json", "--story", story, "--root"]).arg(stage.path("."));
        let tasks: Value = serde_json::from_slice(&list.output().unwrap().stdout).unwrap();
        tasks["tasks"].as_array().unwrap().len()
    };
    assert_eq!([tasks(&run), tasks(&format!("{run}.2")), tasks(&format!("{run}.3"))], [1, 1, 1]);
}
