//! `surehand run` as a process, with a model behind real HTTP: its effect on files, its transcript, its output, and its
//! end.
#![expect(clippy::disallowed_methods, reason = "tests lay out files, and play the other program")]

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use serde_json::{Value, json};
use surehand_agent::{
    RunEvent,
    command::{ConfinementSupport, confinement_support},
    event::StopReason,
    model::TokenUsage,
};
use surehand_testkit::model_server::{ModelServer, Request, Speaks, Turn};

const PROGRAM: &str = env!("CARGO_BIN_EXE_surehand");
const KEYS: [&str; 3] = ["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "SUREHAND_API_KEY"];
pub(crate) const STORY: &str = "Make two a number.";

pub(crate) struct Stage(tempfile::TempDir);

/// A process that has ended.
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Stage {
    pub(crate) fn new(files: &[(&str, &str)]) -> Self {
        let stage = Self(surehand_testkit::repository());
        for (path, content) in files {
            stage.put(path, content);
        }
        stage
    }

    pub(crate) fn put(&self, path: &str, content: &str) {
        put(&self.path(path), content);
    }

    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.0.path().join(path)
    }

    pub(crate) fn content(&self, path: &str) -> String {
        fs::read_to_string(self.path(path)).unwrap()
    }

    pub(crate) fn command(&self, url: &str, words: &[&str]) -> Command {
        let mut command = Command::new(PROGRAM);
        command.arg("run").args(words).args(["--model", "test-model", "--url", url, "--root"]).arg(self.0.path());
        command.env("SUREHAND_POLICY_DURABILITY", "fast").env("SUREHAND_MODEL_PAUSE", "0").env_remove("NO_COLOR");
        command.env("XDG_CONFIG_HOME", self.path(".home"));
        for key in KEYS {
            command.env_remove(key);
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Runs to the end with a model that plays these turns.
    fn run(&self, turns: Vec<Turn>, words: &[&str]) -> (Ran, Vec<Request>) {
        let server = ModelServer::start(turns);
        let ran = Ran::of(self.command(&server.url(), words).output().unwrap());
        (ran, server.requests())
    }

    /// Like `run`, but checks that the story is done at the end.
    #[track_caller]
    pub(crate) fn finishes(&self, turns: Vec<Turn>, words: &[&str]) -> (Ran, Vec<Request>) {
        let (ran, requests) = self.run(turns, words);
        assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{}", ran.out);
        (ran, requests)
    }

    /// The names of the runs, oldest first.
    fn runs(&self) -> Vec<String> {
        let entries = fs::read_dir(self.path(".git/surehand/checkouts/main/runs")).unwrap();
        let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    pub(crate) fn place(&self, run: &str) -> Value {
        serde_json::from_str(&self.content(&format!(".git/surehand/checkouts/main/runs/{run}/run.json"))).unwrap()
    }

    /// Every line of a transcript. None may be torn.
    #[track_caller]
    fn transcript(&self, run: &str) -> Vec<RunEvent> {
        events(&self.transcript_lines(run))
    }

    pub(crate) fn transcript_values(&self, run: &str) -> Vec<Value> {
        values(&self.transcript_lines(run))
    }

    fn transcript_lines(&self, run: &str) -> String {
        self.content(&format!(".git/surehand/checkouts/main/runs/{run}/transcript.jsonl"))
    }

    /// The transcript is what a run with `--json` printed, except the pieces of a text that follows as a whole.
    #[track_caller]
    fn has_written_down(&self, run: &str, ran: &Ran) {
        let is_kept = |event: &Value| event["event"] != "text" && event["event"] != "calling";
        let printed: Vec<Value> = values(&ran.out).into_iter().filter(is_kept).collect();
        assert_eq!(values(&self.transcript_lines(run)), printed);
        // Every event can be read back.
        assert_eq!(self.transcript(run).len(), printed.len());
    }

    /// The only run.
    #[track_caller]
    pub(crate) fn only_run(&self) -> String {
        let runs = self.runs();
        assert_eq!(runs.len(), 1, "{runs:?}");
        runs[0].clone()
    }
}

impl Ran {
    fn of(output: Output) -> Self {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        Self { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
    }

    #[track_caller]
    fn events(&self) -> Vec<RunEvent> {
        events(&self.out)
    }

    /// The reason and text of the end of a run with `--json`.
    #[track_caller]
    fn stop(&self) -> (StopReason, String) {
        match self.events().pop() {
            Some(RunEvent::Stopped { stop, text, .. }) => (stop, text),
            last => panic!("{last:?}, {}", self.err),
        }
    }
}

fn put(path: &Path, content: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

#[track_caller]
fn events(lines: &str) -> Vec<RunEvent> {
    values(lines).into_iter().map(|line| serde_json::from_value(line).unwrap()).collect()
}

/// Events with their diffs, which a parsed [`RunEvent`] does not have.
#[track_caller]
fn values(lines: &str) -> Vec<Value> {
    lines.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))).collect()
}

/// The result of each call.
fn results(events: &[RunEvent]) -> Vec<String> {
    let texts = events.iter().filter_map(|event| match event {
        RunEvent::Result { text, .. } => Some(text.clone()),
        _ => None,
    });
    texts.collect()
}

/// Waits for another process or thread.
#[track_caller]
pub(crate) fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < Duration::from_secs(60), "{what} does not come");
        thread::sleep(Duration::from_millis(5));
    }
}

/// Waits until the server has received this many requests.
#[track_caller]
fn wait_for_requests(server: &ModelServer, count: usize) {
    wait_until("a request", || server.requests().len() >= count);
}

fn send(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).unwrap();
}

/// Whether the process whose id is in a file is gone, or is a zombie.
fn is_gone(pid: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
    matches!(stat.rsplit(')').next().unwrap_or_default().trim_start().chars().next(), None | Some('Z' | 'X'))
}

fn names_of_tools(request: &Request) -> Vec<String> {
    let tools = request.body["tools"].as_array().unwrap().iter();
    tools.map(|tool| tool["function"]["name"].as_str().or(tool["name"].as_str()).unwrap().to_owned()).collect()
}

// The model's turns.

pub(crate) fn read(path: &str) -> (&str, Value) {
    ("read_file", json!({ "path": path }))
}

fn write<'a>(path: &str, content: &str) -> (&'a str, Value) {
    ("write_file", json!({ "path": path, "content": content }))
}

pub(crate) fn edit<'a>(path: &str, old: &str, new: &str) -> (&'a str, Value) {
    ("edit_file", json!({ "path": path, "old_string": old, "new_string": new }))
}

pub(crate) fn shell(command: &str) -> (&str, Value) {
    ("run_command", json!({ "command": command }))
}

pub(crate) fn complete<'a>(id: u32) -> (&'a str, Value) {
    ("update_tasks", json!({ "set": [{ "id": id, "status": "completed" }] }))
}

pub(crate) fn plan() -> Turn {
    Turn::call("update_tasks", json!({ "add": [{ "description": "make it a number" }] }))
}

pub(crate) fn done() -> Turn {
    Turn::call("done", json!({ "summary": "It is a number." }))
}

/// Two becomes a number: four turns.
pub(crate) fn whole_story() -> Vec<Turn> {
    vec![
        Turn::calls(&[read("a.txt")]).with_text("Let me look at it."),
        plan(),
        Turn::calls(&[edit("a.txt", "two", "2"), complete(1)]).with_text("There it is."),
        done(),
    ]
}

pub(crate) fn stage() -> Stage {
    Stage::new(&[("a.txt", "one\ntwo\n")])
}

// A whole story.

#[track_caller]
fn tells_a_story(protocol: &str, speaks: Speaks) {
    let stage = stage();
    let (ran, requests) = stage.finishes(whole_story(), &[STORY, "--json", "--protocol", protocol]);
    assert_eq!(stage.content("a.txt"), "one\n2\n");
    assert_eq!(ran.stop(), (StopReason::Done, "It is a number.".to_owned()));
    let run = stage.only_run();
    let place = stage.place(&run);
    assert_eq!((&place["stop"], &place["turn"], &place["story"]), (&json!("done"), &json!(4), &json!(STORY)));
    stage.has_written_down(&run, &ran);
    let diffs: Vec<Value> =
        values(&ran.out).into_iter().map(|event| event["diff"].clone()).filter(|diff| !diff.is_null()).collect();
    let edit = "diff --git a/a.txt b/a.txt\n--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n";
    assert!(diffs.contains(&json!(edit)) && diffs.contains(&json!("")), "{diffs:?}");
    let pieces = ran.events().into_iter().filter_map(|event| match event {
        RunEvent::Text { text } => Some(text),
        _ => None,
    });
    assert_eq!(pieces.collect::<String>(), "Let me look at it.There it is.");
    let [first, second, third, fourth] = &requests[..] else { panic!("{} requests", requests.len()) };
    assert!(requests.iter().all(|request| request.speaks() == speaks && request.body["stream"] == true));
    assert!(requests.iter().all(|request| request.prompt().contains(STORY)));
    assert!(
        names_of_tools(first).contains(&"update_tasks".to_owned()) && !names_of_tools(first).contains(&"edit_file".to_owned())
    );
    assert!(names_of_tools(third).contains(&"edit_file".to_owned()), "{:?}", names_of_tools(third));
    assert!(!first.prompt().contains("1|one") && second.prompt().contains("1|one\n2|two\n"), "{}", second.prompt());
    assert!(fourth.prompt().contains("1|one\n2|2\n") && !fourth.prompt().contains("|two"), "{}", fourth.prompt());
}

#[test]
fn a_story_is_done_over_every_protocol() {
    tells_a_story("openai", Speaks::OpenAi);
    tells_a_story("anthropic", Speaks::Anthropic);
    tells_a_story("responses", Speaks::Responses);
}

const PROTOCOLS: [&str; 3] = ["openai", "anthropic", "responses"];

#[test]
fn reasoning_goes_back_to_its_model_even_after_a_resume() {
    for protocol in PROTOCOLS {
        let stage = stage();
        let first = Turn::calls(&[read("a.txt")]).with_text("Let me look at it.").with_thought("hm");
        let words = ["--json", "--mode", "history", "--protocol", protocol];
        let (ran, _) = stage.run(vec![first], &[&[STORY, "--max-turns", "1"], &words[..]].concat());
        assert_eq!(ran.stop().0, StopReason::Budget, "{}", ran.err);
        assert_eq!(ran.events().iter().filter(|event| matches!(event, RunEvent::Reasoned { .. })).count(), 1);
        stage.has_written_down(&stage.only_run(), &ran);
        let turns = vec![plan(), Turn::calls(&[read("a.txt"), edit("a.txt", "two", "2"), complete(1)]), done()];
        let (_, requests) = stage.finishes(turns, &[&["--resume"], &words[..]].concat());
        for request in requests {
            assert!(request.body.to_string().contains("sealed-1-hm"), "{protocol}: {}", request.body);
        }
        assert_eq!(stage.content("a.txt"), "one\n2\n");
    }
}

#[test]
fn a_snapshot_keeps_no_reasoning() {
    for protocol in PROTOCOLS {
        let turns = whole_story().into_iter().map(|turn| turn.with_thought("hm")).collect();
        let (ran, requests) = stage().finishes(turns, &[STORY, "--json", "--protocol", protocol]);
        assert!(!ran.out.contains("sealed") && requests.iter().all(|request| !request.body.to_string().contains("sealed")));
    }
}

#[test]
fn the_address_and_the_model_may_be_settings() {
    let server = ModelServer::start(whole_story());
    let theirs = "[model]\nname = \"their-model\"\nurl = \"https://elsewhere.invalid\"\n";
    let ours = format!("[model]\nname = \"claude-test\"\nurl = \"{}\"\n", server.url());
    let stage = Stage::new(&[("a.txt", "one\ntwo\n"), ("surehand.toml", theirs), (".home/surehand/surehand.toml", &ours)]);
    let mut command = Command::new(PROGRAM);
    command.args(["run", STORY]).current_dir(stage.0.path()).env("XDG_CONFIG_HOME", stage.0.path().join(".home"));
    let ran = Ran::of(command.output().unwrap());
    assert_eq!(ran.code, Some(0));
    for key in ["model.name", "model.url"] {
        let warning = format!("warning: {key} in surehand.toml of the workspace is ignored: only you can set it");
        assert!(ran.err.contains(&warning), "{}", ran.err);
    }
    assert_eq!(
        (server.requests()[0].path.as_str(), &server.requests()[0].body["model"]),
        ("/v1/messages", &json!("claude-test"))
    );
}

#[track_caller]
fn reaches(words: &[&str], environment: &[(&str, &str)], path: &str, header: Option<(&str, &str)>) {
    let (stage, server) = (stage(), ModelServer::start(vec![done()]));
    let placed = |text: &str| text.replace("{server}", &server.url());
    let mut command = Command::new(PROGRAM);
    command.args(["run", STORY]).args(words.iter().map(|word| placed(word))).arg("--root").arg(stage.0.path());
    for key in KEYS {
        command.env_remove(key);
    }
    command.envs(environment.iter().map(|(name, value)| (name, placed(value))));
    assert_eq!(Ran::of(command.output().unwrap()).code, Some(0));
    let request = &server.requests()[0];
    assert_eq!(request.path, path);
    match header {
        Some((name, value)) => assert_eq!(request.header(name), Some(value)),
        None => assert!(request.header("authorization").is_none() && request.header("x-api-key").is_none()),
    }
}

#[test]
fn each_provider_of_the_guide_is_reached_as_it_says() {
    let (chat, key) = ("/v1/chat/completions", "sk-1234567890");
    let bearer = "Bearer sk-1234567890";
    let environment = [("ANTHROPIC_API_KEY", key), ("ANTHROPIC_BASE_URL", "{server}")];
    reaches(&["--model", "claude-sonnet-4-5"], &environment, "/v1/messages", Some(("x-api-key", key)));
    let environment = [("OPENAI_API_KEY", key), ("OPENAI_BASE_URL", "{server}/v1")];
    reaches(&["--model", "gpt-5"], &environment, chat, Some(("authorization", bearer)));
    let responses = ["--model", "gpt-5", "--protocol", "responses"];
    reaches(&responses, &environment, "/v1/responses", Some(("authorization", bearer)));
    let router = ["--model", "qwen/qwen3-coder", "--url", "{server}/api/v1"];
    reaches(&router, &[("SUREHAND_API_KEY", key)], "/api/v1/chat/completions", Some(("authorization", bearer)));
    reaches(&["--model", "qwen3:32b", "--url", "{server}"], &[], chat, None);
}

// Trouble with the model.

#[test]
fn trouble_that_passes_is_waited_out() {
    let trouble = || {
        vec![
            Turn::status(429).header("retry-after", "0"),
            Turn::status(429).header("retry-after-ms", "1"),
            Turn::status(500),
            Turn::close(),
            Turn::calls(&[edit("a.txt", "one", "broken")]).with_text("I will break off").broken(),
        ]
    };
    let others = || {
        vec![
            Turn::calls(&[edit("a.txt", "one", "broken"), write("b.txt", "b")]).unfinished(),
            Turn::calls(&[edit("a.txt", "one", "broken")]).failing("overloaded_error", "too much"),
            Turn::body("<html>a proxy</html>"),
        ]
    };
    for protocol in PROTOCOLS {
        let stage = stage();
        let [first, second, third, fourth] = whole_story().try_into().unwrap();
        let turns =
            [trouble(), vec![first], others(), vec![second, third], others(), trouble()[..2].to_vec(), vec![fourth]].concat();
        let (ran, _) = stage.finishes(turns, &[STORY, "--json", "--protocol", protocol]);
        assert_eq!(stage.content("a.txt"), "one\n2\n");
        assert!(!stage.path("b.txt").exists());
        let again = ran.events().iter().filter(|event| matches!(event, RunEvent::Again { .. })).count();
        assert_eq!(again, 5 + 3 + 3 + 2, "{}", ran.out);
    }
}

#[track_caller]
fn gives_up(trouble: Vec<Turn>, words: &[&str]) {
    let stage = stage();
    let [first, second, third, fourth] = whole_story().try_into().unwrap();
    let server = ModelServer::start([vec![first, second], trouble].concat());
    let mut command = stage.command(&server.url(), &[STORY]);
    let ran = Ran::of(command.env("SUREHAND_MODEL_ATTEMPTS", "2").env("SUREHAND_MODEL_SECONDS", "1").output().unwrap());
    assert_eq!((ran.code, ran.err.as_str()), (Some(2), ""), "{}", ran.out);
    for word in [words, &["stopped: the model does not answer", "go on: surehand run --resume"]].concat() {
        assert!(ran.out.contains(word), "{word} is not in {}", ran.out);
    }
    assert_eq!(stage.content("a.txt"), "one\ntwo\n");
    let (_, requests) = stage.finishes(vec![third, fourth], &["--resume"]);
    assert!(requests[0].prompt().contains("2|two"), "{}", requests[0].prompt());
    assert_eq!(stage.content("a.txt"), "one\n2\n");
}

#[test]
fn trouble_that_stays_ends_the_run_with_its_reason() {
    gives_up(
        vec![Turn::status(429).saying("slow down"); 2],
        &["test-model failed (2 attempts): 429: slow down", "try again later"],
    );
    gives_up(
        vec![Turn::status(401).saying("who are you?")],
        &["test-model refused the request (401): who are you?", "set OPENAI_API_KEY"],
    );
    gives_up(vec![Turn::status(400).saying("prompt is too long")], &["too long for test-model"]);
    gives_up(vec![Turn::text("a half").broken(); 2], &["broke off"]);
    gives_up(vec![Turn::text("a half").stalled(), Turn::hang()], &["nothing came for 1 seconds", "model.seconds"]);
}

#[test]
fn a_model_that_is_not_there_is_told_with_its_address() {
    let stage = stage();
    let url = ModelServer::start(Vec::new()).url();
    let ran = Ran::of(stage.command(&url, &[STORY]).env("SUREHAND_MODEL_ATTEMPTS", "2").output().unwrap());
    assert_eq!(ran.code, Some(2));
    assert!(ran.out.contains("could not be reached (2 attempts)") && ran.out.contains(&url), "{}", ran.out);
}

#[test]
fn nonsense_of_the_model_is_answered_and_the_run_goes_on() {
    for protocol in PROTOCOLS {
        let stage = stage();
        let turns = vec![
            plan(),
            Turn::raw_call("read_file", "{\"path\": \"a.t"),
            Turn::raw_call("read_file", "[\"a.txt\"]"),
            Turn::calls(&[("launch_rocket", json!({})), read("a.txt"), read("no.txt"), edit("a.txt", "two", "2"), complete(1)]),
            Turn::text("I am done, I think."),
            done(),
        ];
        let (ran, requests) = stage.finishes(turns, &[STORY, "--json", "--protocol", protocol]);
        assert_eq!(stage.content("a.txt"), "one\n2\n");
        let results = results(&ran.events());
        assert!(results[1].contains("not JSON"), "{results:?}");
        assert!(results[2].contains("must be a JSON object"), "{results:?}");
        assert!(results[3].contains("there is no tool \"launch_rocket\""), "{results:?}");
        assert!(requests[3].prompt().contains("must be a JSON object"), "{}", requests[3].prompt());
        assert!(requests[5].prompt().contains("You called no tool"), "{}", requests[5].prompt());
    }
}

#[test]
fn an_answer_that_is_cut_off_does_no_half_of_it() {
    for protocol in PROTOCOLS {
        let stage = stage();
        let half = "{\"path\": \"a.txt\", \"content\": \"one\\n2 and much mo";
        let turns = vec![
            Turn::call(read("a.txt").0, read("a.txt").1),
            plan(),
            Turn::raw_call("write_file", half).cut(),
            Turn::text("Once upon a ti").cut(),
            Turn::calls(&[write("a.txt", "one\n2\n"), complete(1)]),
            done(),
        ];
        let (ran, requests) = stage.finishes(turns, &[STORY, "--json", "--protocol", protocol]);
        assert!(results(&ran.events())[2].contains("cut off before the call was complete"), "{}", ran.out);
        assert!(
            requests[3].prompt().contains("make it shorter") && requests[3].prompt().contains("2|two"),
            "{}",
            requests[3].prompt()
        );
        assert!(requests[4].prompt().contains("was cut off. Answer shorter"), "{}", requests[4].prompt());
        assert_eq!(stage.content("a.txt"), "one\n2\n");
        let cuts = ran.events().into_iter().filter(|event| *event == RunEvent::Cut { tokens: 10 }).count();
        assert_eq!(cuts, 2, "{}", ran.out);
    }
}

#[test]
fn an_answer_without_end_costs_its_limit_and_not_the_run() {
    let stage = stage();
    stage.put(".home/surehand/surehand.toml", "[model]\nmax_output_tokens = 50\n");
    let turns = [vec![Turn::text(&"over and over ".repeat(10_000))], whole_story()].concat();
    let (ran, requests) = stage.finishes(turns, &[STORY]);
    assert_eq!(requests[0].body["max_tokens"], 50);
    assert!(ran.out.contains("the answer was cut off after "), "{}", ran.out);
    assert!(requests[1].prompt().contains("was cut off. Answer shorter"), "{}", requests[1].prompt());
}

#[test]
fn a_run_ends_in_the_middle_of_an_answer_when_its_time_is_over() {
    let stage = stage();
    let (ran, requests) = stage.run(vec![Turn::hang()], &[STORY, "--json", "--max-minutes", "0.05"]);
    assert_eq!((ran.code, requests.len()), (Some(1), 1));
    assert_eq!(ran.stop(), (StopReason::Budget, "0.05 minutes are used up; to continue: surehand run --resume".to_owned()));
}

#[test]
fn the_same_call_again_and_again_stops_the_run_within_ten_turns() {
    let same = [plan(), Turn::calls(&[read("a.txt")]), Turn::calls(&[shell("true")]), Turn::text("Is it done?"), done()];
    for (protocol, call) in PROTOCOLS.into_iter().flat_map(|protocol| same.iter().map(move |call| (protocol, call))) {
        let turns = [vec![plan()], vec![call.clone(); 200]].concat();
        let (ran, requests) = stage().run(turns, &[STORY, "--yes", "--json", "--protocol", protocol]);
        assert_eq!((ran.code, ran.stop().0), (Some(1), StopReason::Stuck), "{protocol}, {call:?}: {}", ran.out);
        assert!(requests.len() <= 10, "{protocol}, {call:?}: {} turns", requests.len());
        assert!(requests.iter().any(|request| request.prompt().contains("the run stops")), "the model is warned before");
    }
}

// Interruption.

/// Starts a run, waits for `moment`, sends signals and waits for the end.
#[track_caller]
fn interrupted(stage: &Stage, server: &ModelServer, words: &[&str], moment: impl FnOnce()) -> Ran {
    let child = stage.command(&server.url(), words).spawn().unwrap();
    moment();
    send(&child, Signal::INT);
    Ran::of(child.wait_with_output().unwrap())
}

#[track_caller]
fn stops_while_it_waits(hanging: Turn) {
    let stage = stage();
    let [first, second, third, fourth] = whole_story().try_into().unwrap();
    let server = ModelServer::start(vec![first, second, hanging]);
    let ran = interrupted(&stage, &server, &[STORY], || wait_for_requests(&server, 3));
    assert_eq!((ran.code, ran.err.as_str()), (Some(130), ""), "{}", ran.out);
    assert!(ran.out.contains("stopped, as you asked\n") && ran.out.contains("surehand run --resume\n"), "{}", ran.out);
    assert_eq!(stage.content("a.txt"), "one\ntwo\n");
    let (_, requests) = stage.finishes(vec![third, fourth], &["--resume"]);
    assert!(requests[0].prompt().contains("1|one\n2|two\n"), "what was open is open: {}", requests[0].prompt());
    assert_eq!((stage.content("a.txt").as_str(), stage.runs().len()), ("one\n2\n", 1));
}

#[test]
fn ctrl_c_stops_a_run_that_waits_for_its_model() {
    stops_while_it_waits(Turn::hang());
    stops_while_it_waits(Turn::calls(&[edit("a.txt", "one", "half")]).with_text("I begin to say").stalled());
    stops_while_it_waits(Turn::status(429).header("retry-after", "50"));
}

#[test]
fn ctrl_c_in_the_first_turn_leaves_a_run_that_goes_on() {
    let stage = stage();
    let server = ModelServer::start(vec![Turn::hang()]);
    assert_eq!(interrupted(&stage, &server, &[STORY], || wait_for_requests(&server, 1)).code, Some(130));
    stage.finishes(whole_story(), &["--resume"]);
    assert_eq!(stage.content("a.txt"), "one\n2\n");
}

/// A command that records its processes, reports that it has begun, and takes long.
const LONG: &str = "sleep 100 & echo $! > child; echo $$ > shell; mv shell started; wait";

#[test]
fn ctrl_c_ends_a_command_with_all_its_processes_and_what_follows_is_not_done() {
    let stage = stage();
    let calls = [write("b.txt", "b\n"), shell(LONG), write("c.txt", "c\n")];
    let server = ModelServer::start(vec![plan(), Turn::calls(&calls)]);
    let started = || wait_until("the command", || stage.path("started").exists());
    let ran = interrupted(&stage, &server, &[STORY, "--yes", "--json"], started);
    assert_eq!((ran.code, ran.stop().0), (Some(130), StopReason::Cancelled), "{}", ran.err);
    assert!(ran.stop().1.contains("surehand run --resume"), "{}", ran.stop().1);
    for pid in ["child", "started"] {
        let pid = stage.content(pid);
        wait_until("the end of the command", || is_gone(&pid));
    }
    assert_eq!((stage.content("b.txt").as_str(), stage.path("c.txt").exists()), ("b\n", false));
    let last = Turn::calls(&[write("c.txt", "c\n"), complete(1)]);
    let (_, requests) = stage.finishes(vec![last, done()], &["--resume"]);
    let prompt = requests[0].prompt();
    assert!(prompt.contains("stopped: the run was interrupted"), "{prompt}");
    assert!(prompt.contains("not carried out: the run was stopped") && prompt.contains("b.txt"), "{prompt}");
    assert_eq!(stage.content("c.txt"), "c\n");
}

#[test]
fn a_terminal_that_goes_away_ends_the_command_too() {
    let stage = stage();
    let server = ModelServer::start(vec![Turn::calls(&[shell(LONG)])]);
    let child = stage.command(&server.url(), &[STORY, "--yes"]).spawn().unwrap();
    wait_until("the command", || stage.path("started").exists());
    send(&child, Signal::HUP);
    assert_eq!(Ran::of(child.wait_with_output().unwrap()).code, Some(130));
    let pid = stage.content("child");
    wait_until("the end of the command", || is_gone(&pid));
}

#[test]
fn with_nohup_a_run_outlives_its_terminal() {
    let stage = stage();
    let [first, second, third, fourth] = whole_story().try_into().unwrap();
    let path = stage.path("go");
    let waiting = Turn::made(move |_| {
        wait_until("the signal", || path.exists());
        first.clone()
    });
    let server = ModelServer::start(vec![waiting, second, third, fourth]);
    let run = stage.command(&server.url(), &[STORY]);
    let mut shell = Command::new("sh");
    shell.args(["-c", "trap '' HUP; exec \"$@\"", "sh"]).arg(run.get_program()).args(run.get_args());
    shell.envs(run.get_envs().filter_map(|(name, value)| Some((name, value?)))).stdin(Stdio::null()).stdout(Stdio::piped());
    let child = shell.spawn().unwrap();
    wait_for_requests(&server, 1);
    send(&child, Signal::HUP);
    stage.put("go", "");
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(0));
}

#[test]
fn a_second_ctrl_c_does_not_wait() {
    let stage = stage();
    // It ignores the request to end, so that the first Ctrl-C takes its time.
    let stubborn = "trap '' TERM INT; echo $$ > shell; mv shell started; sleep 100";
    let server = ModelServer::start(vec![Turn::calls(&[shell(stubborn)])]);
    let mut child = stage.command(&server.url(), &[STORY, "--yes", "--json"]).spawn().unwrap();
    wait_until("the command", || stage.path("started").exists());
    wait_until("the end", || {
        send(&child, Signal::INT);
        child.try_wait().unwrap().is_some()
    });
    let ran = Ran::of(child.wait_with_output().unwrap());
    assert_eq!(ran.code, Some(130));
    assert!(!ran.events().iter().any(|event| matches!(event, RunEvent::Result { .. } | RunEvent::Stopped { .. })), "{}", ran.out);
    let group = stage.content("started").trim().parse().unwrap();
    kill_process_group(Pid::from_raw(group).unwrap(), Signal::KILL).unwrap();
    stage.finishes(whole_story(), &["--resume"]);
}

// Kills.

#[test]
fn a_run_that_was_killed_while_it_waited_goes_on() {
    for turns_before in 0..3 {
        let stage = stage();
        let mut turns = whole_story();
        let rest = turns.split_off(turns_before);
        turns.push(Turn::hang());
        let server = ModelServer::start(turns);
        let mut child = stage.command(&server.url(), &[STORY]).spawn().unwrap();
        wait_for_requests(&server, turns_before + 1);
        child.kill().unwrap();
        child.wait().unwrap();
        let (_, requests) = stage.finishes(rest, &["--resume"]);
        assert_eq!(requests[0].prompt().contains("2|two"), turns_before > 0, "{}", requests[0].prompt());
        assert_eq!(stage.content("a.txt"), "one\n2\n");
        assert_eq!(stage.place(&stage.only_run())["turn"], 4);
    }
}

/// The steps: lock, stage, begin, check, swap, verify, end.
const STEPS_OF_EDIT: usize = 7;

#[track_caller]
fn killed_at_step(step: usize, mode: &str) {
    let stage = stage();
    let server = ModelServer::start(whole_story());
    let mut command = stage.command(&server.url(), &[STORY, "--mode", mode]);
    let killed = Ran::of(command.env("SUREHAND_TEST_KILL_AFTER", step.to_string()).output().unwrap());
    assert_eq!(killed.code, None, "killed by a signal: {}", killed.out);
    // A kill may tear the line that is being written.
    let run = stage.only_run();
    let mut transcript = fs::OpenOptions::new()
        .append(true)
        .open(stage.path(&format!(".git/surehand/checkouts/main/runs/{run}/transcript.jsonl")))
        .unwrap();
    transcript.write_all(b"{\"event\":\"resu").unwrap();
    // The model reads its prompt before it does anything.
    let next = Turn::made(|request| {
        let mut calls = vec![read("a.txt"), complete(1)];
        if !request.prompt().contains("2|2\n") {
            calls.insert(1, edit("a.txt", "two", "2"));
        }
        Turn::calls(&calls)
    });
    let (_, requests) = stage.finishes(vec![Turn::calls(&[read("a.txt")]), next, done()], &["--resume", "--mode", mode]);
    let prompt = requests[0].prompt();
    assert!(prompt.contains("The last turn was interrupted"), "{prompt}");
    assert!(requests.iter().all(is_well_formed));
    assert_eq!(stage.content("a.txt"), "one\n2\n");
    assert!(stage.transcript(&run).len() > 10);
    assert_eq!(stage.place(&run)["stop"], "done");
    if step + 1 == STEPS_OF_EDIT {
        assert!(
            prompt.contains("a.txt") && requests[1].prompt().contains("2|2\n"),
            "what was committed is in the state: {prompt}"
        );
    }
}

#[test]
fn a_run_that_was_killed_in_an_edit_goes_on_and_does_nothing_twice() {
    for step in [0, 3, 4, 6] {
        killed_at_step(step, "snapshot");
    }
    for step in [4, 6] {
        killed_at_step(step, "history");
    }
}

#[test]
fn a_plan_that_was_made_before_a_kill_is_not_made_again() {
    let stage = stage();
    let add = json!({ "add": [{ "description": "make it a number" }] });
    let server = ModelServer::start(vec![Turn::calls(&[("update_tasks", add), shell(LONG)])]);
    let mut child = stage.command(&server.url(), &[STORY, "--yes"]).spawn().unwrap();
    wait_until("the command", || stage.path("started").exists());
    child.kill().unwrap();
    child.wait().unwrap();
    // No process is left to end the command.
    kill_process_group(Pid::from_raw(stage.content("started").trim().parse().unwrap()).unwrap(), Signal::KILL).unwrap();
    let turns = vec![Turn::calls(&[read("a.txt"), edit("a.txt", "two", "2"), complete(1)]), done()];
    let (_, requests) = stage.finishes(turns, &["--resume"]);
    let prompt = requests[0].prompt();
    assert!(prompt.contains("make it a number") && !prompt.contains("Planning."), "{prompt}");
    assert!(names_of_tools(&requests[0]).contains(&"edit_file".to_owned()));
}

// Resuming.

#[track_caller]
fn cannot_resume(stage: &Stage, words: &[&str], expected: &str) {
    let (ran, requests) = stage.run(vec![done()], words);
    assert_eq!((ran.code, ran.out.as_str(), requests.len()), (Some(2), "", 0), "{}", ran.err);
    assert!(ran.err.starts_with("error: ") && ran.err.contains(expected), "{}", ran.err);
}

#[test]
fn a_run_that_cannot_go_on_is_told_with_the_reason() {
    let stage = stage();
    cannot_resume(&stage, &["--resume"], "there is no run to resume here; start one with: surehand run \"STORY\"");
    cannot_resume(&stage, &["--resume=nobody"], "there is no run to resume here");
    stage.finishes(whole_story(), &[STORY]);
    let run = stage.only_run();
    cannot_resume(&stage, &["--resume"], "there is no run to resume here");
    cannot_resume(&stage, &["--resume=nobody"], &format!("there is no run \"nobody\" here; there are: {run}"));
    cannot_resume(&stage, &["--resume=../runs"], "there is no run \"../runs\" here");
    cannot_resume(&stage, &[&format!("--resume={run}")], &format!("run {run} is done"));
    cannot_resume(&stage, &[&format!("--resume={}", &run[..run.len() - 2])], &format!("run {run} is done"));
    stage.put(&format!(".git/surehand/checkouts/main/runs/{run}/run.json"), "{\"run\": \"");
    let damaged = format!("runs/{run}/run.json in the state directory is damaged: ");
    cannot_resume(&stage, &["--resume"], &damaged);
    cannot_resume(&stage, &[&format!("--resume={run}")], &damaged);
}

#[test]
fn who_was_asked_before_is_named_when_nobody_is() {
    let stage = stage();
    stage.run(whole_story(), &[STORY, "--max-turns", "1"]);
    let output = Command::new(PROGRAM).args(["run", "--resume", "--root"]).arg(stage.0.path()).output().unwrap();
    let ran = Ran::of(output);
    assert_eq!(ran.code, Some(2));
    assert!(ran.err.starts_with("error: no model is named: the run was with --model test-model;"), "{}", ran.err);
}

#[test]
fn two_runs_at_once_keep_apart() {
    let stage = stage();
    let server = ModelServer::start(vec![plan(), Turn::hang()]);
    let child = stage.command(&server.url(), &["the first story", "--json"]).spawn().unwrap();
    wait_for_requests(&server, 2);
    let first = stage.only_run();
    cannot_resume(&stage, &["--resume"], &format!("another process is working on run {first}"));
    cannot_resume(&stage, &[&format!("--resume={first}")], "another process is working on run");
    let (ran, _) = stage.run(whole_story(), &["the second story", "--json"]);
    send(&child, Signal::INT);
    let stopped = Ran::of(child.wait_with_output().unwrap());
    assert_eq!((ran.events().len() > 10, stopped.code), (true, Some(130)), "{}", stopped.err);
    assert_eq!(stage.runs().len(), 2);
    let second = stage.runs().into_iter().find(|run| *run != first).unwrap();
    for (run, story, ran) in [(&first, "the first story", &stopped), (&second, "the second story", &ran)] {
        assert_eq!(stage.place(run)["story"], story);
        stage.has_written_down(run, ran);
    }
}

// Budgets.

#[track_caller]
fn stops_at(budget: &[&str], words: &str, turns: u32) {
    let stage = stage();
    stage.put(".home/surehand/surehand.toml", "[model]\nprice_input = 2\nprice_output = 10\n");
    let server = ModelServer::start(whole_story());
    let ran = Ran::of(stage.command(&server.url(), &[&[STORY, "--json"], budget].concat()).output().unwrap());
    let (stop, text) = ran.stop();
    assert_eq!((ran.code, stop), (Some(1), StopReason::Budget), "{}", ran.err);
    assert!(text.starts_with(words) && text.ends_with("to continue: surehand run --resume"), "{text}");
    assert_eq!(server.requests().len(), turns as usize);
    let rest = whole_story().split_off(turns as usize);
    let (ran, _) = stage.finishes(rest, &["--resume", "--json"]);
    let mut totals = ran.events().into_iter().filter_map(|event| match event {
        RunEvent::TurnEnded { total, .. } => Some(total),
        _ => None,
    });
    let TokenUsage { input, cached, output, cost } = totals.next_back().unwrap();
    assert_eq!((input, cached, output, format!("{:.6}", cost.unwrap())), (400, 0, 40, "0.001200".to_owned()));
}

#[test]
fn a_budget_stops_a_run_and_with_more_it_goes_on() {
    stops_at(&["--max-turns", "2"], "2 turns are used up", 2);
    stops_at(&["--max-tokens", "300"], "330 of 300 tokens are used up", 3);
    stops_at(&["--max-cost", "0.0005"], "$0.0006 of $0.0005 are used up", 2);
}

#[test]
fn a_budget_in_dollars_needs_prices() {
    let stage = stage();
    let (ran, _) = stage.run(whole_story(), &[STORY, "--json", "--max-cost", "1"]);
    assert_eq!((ran.code, ran.stop().0), (Some(1), StopReason::Budget));
    assert!(ran.stop().1.contains("model.price_input"), "{}", ran.stop().1);
}

#[test]
fn a_budget_holds_where_the_provider_does_not_count() {
    let stage = stage();
    stage.put(".home/surehand/surehand.toml", "[model]\nprice_input = 2\nprice_output = 10\n");
    for budget in [["--max-tokens", "3000"], ["--max-cost", "0.004"]] {
        let turns = whole_story().into_iter().map(Turn::without_usage).collect();
        let (ran, _) = stage.run(turns, &[&[STORY, "--json"], &budget[..]].concat());
        assert_eq!((ran.code, ran.stop().0), (Some(1), StopReason::Budget), "{}", ran.out);
    }
}

// Keys.

const MARKER: &str = "sk-marker-0123456789";

/// Every file of a workspace.
fn files(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { files(&path, found) } else { found.push(path) }
    }
}

#[track_caller]
fn keeps_the_key(variable: &str, protocol: &str, header: &str, turns: Vec<Turn>, expected: &str) {
    let stage = stage();
    let server = ModelServer::start(turns);
    let mut command = stage.command(&server.url(), &[STORY, "--yes", "--json", "--protocol", protocol]);
    let ran = Ran::of(command.env(variable, MARKER).env("SUREHAND_MODEL_ATTEMPTS", "2").output().unwrap());
    assert!(ran.out.contains(expected), "{} {}", ran.out, ran.err);
    assert!(server.requests().iter().all(|request| request.header(header).is_some_and(|value| value.contains(MARKER))));
    assert!(server.requests().iter().all(|request| !request.body.to_string().contains(MARKER)));
    assert!(!ran.out.contains(MARKER) && !ran.err.contains(MARKER));
    let mut all = Vec::new();
    files(stage.0.path(), &mut all);
    assert!(all.iter().any(|path| path.ends_with("transcript.jsonl")));
    for path in all {
        let content = fs::read(&path).unwrap();
        assert!(!content.windows(MARKER.len()).any(|window| window == MARKER.as_bytes()), "{}", path.display());
    }
}

#[test]
fn a_key_is_written_down_and_shown_nowhere() {
    let says = format!("the key {MARKER} is wrong");
    for (variable, protocol, header) in [
        ("OPENAI_API_KEY", "openai", "authorization"),
        ("ANTHROPIC_API_KEY", "anthropic", "x-api-key"),
        ("SUREHAND_API_KEY", "openai", "authorization"),
    ] {
        let keeps = |turns, expected| keeps_the_key(variable, protocol, header, turns, expected);
        keeps(vec![Turn::status(401).saying(&says)], "the key … is wrong");
        keeps(vec![Turn::status(500).saying(&says), Turn::text("hm").failing("api_error", &says)], "the key … is wrong");
        keeps(vec![Turn::calls(&[shell("env; set; echo there it was")]), done()], "there it was");
    }
}

/// Runs the story with a key and these turns, and returns its events and the requests to the server.
#[track_caller]
fn with_key(stage: &Stage, turns: Vec<Turn>, environment: &[(&str, &str)]) -> (Ran, Vec<Request>) {
    let server = ModelServer::start(turns);
    let mut command = stage.command(&server.url(), &[STORY, "--yes", "--json"]);
    let ran = Ran::of(command.envs(environment.iter().copied()).output().unwrap());
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{}", ran.out);
    let bearer = format!("Bearer {MARKER}");
    assert!(server.requests().iter().all(|request| request.header("authorization") == Some(&bearer)));
    (ran, server.requests())
}

#[track_caller]
fn is_without_key(content: &[u8], what: &str) {
    assert!(!content.windows(MARKER.len()).any(|window| window == MARKER.as_bytes()), "the key is in {what}");
}

#[test]
fn a_command_does_not_get_the_key_under_any_name() {
    let stage = stage();
    let header = format!("Authorization: Bearer {MARKER}");
    let environment = [("OPENAI_API_KEY", MARKER), ("MY_KEY", MARKER), ("HEADER", &header), ("OTHER_KEY", "kept")];
    let names = "env | cut -d= -f1 > names; echo \"[$OPENAI_API_KEY$MY_KEY$HEADER][$OTHER_KEY]\"";
    let (ran, _) = with_key(&stage, vec![Turn::calls(&[shell(names)]), done()], &environment);
    assert!(results(&ran.events())[0].starts_with("exit code 0\n[][kept]\n"), "{}", ran.out);
    let names = stage.content("names");
    assert!(names.lines().any(|name| name == "OTHER_KEY"), "{names}");
    assert!(!names.lines().any(|name| ["OPENAI_API_KEY", "MY_KEY", "HEADER"].contains(&name)), "{names}");
}

/// Looks for a key wherever the system shows something of a process, and saves its findings in the directory `loot`.
const ATTACK: &str = r#"
mkdir -p loot
for file in environ cmdline task/*/environ task/*/cmdline; do
    for path in /proc/$1/$file; do cat "$path" >> loot/text 2> /dev/null; done
done
for path in /proc/$1/fd/*; do readlink "$path" >> loot/fd 2> /dev/null; done
if : < /proc/$1/mem; then echo opened > loot/opened; fi 2> /dev/null
while read range rights rest; do
    case $rights in rw*) ;; *) continue ;; esac
    from=$((0x${range%-*} / 4096)) to=$((0x${range#*-} / 4096))
    dd if=/proc/$1/mem bs=4096 skip=$from count=$((to - from)) >> loot/memory 2> /dev/null
done < /proc/$1/maps
true
"#;

/// Runs the attack on an unprotected process.
fn attack_on_an_open_process() -> Vec<u8> {
    let place = tempfile::tempdir().unwrap();
    let mut victim = Command::new("sleep").arg("60").env("OPENAI_API_KEY", MARKER).spawn().unwrap();
    let attack = ["-c", ATTACK, "sh", &victim.id().to_string()];
    assert!(Command::new("sh").args(attack).current_dir(place.path()).status().unwrap().success());
    victim.kill().unwrap();
    victim.wait().unwrap();
    fs::read(place.path().join("loot/text")).unwrap()
}

#[test]
fn a_command_cannot_read_the_key_from_our_process() {
    assert!(String::from_utf8_lossy(&attack_on_an_open_process()).contains(MARKER), "the attack works");
    let stage = Stage::new(&[("attack", ATTACK)]);
    let command = "sh attack $PPID 2> /dev/null; echo attacked";
    with_key(&stage, vec![Turn::calls(&[shell(command)]), done()], &[("OPENAI_API_KEY", MARKER), ("MY_KEY", MARKER)]);
    assert!(!stage.path("loot/opened").exists(), "our memory can be opened");
    assert!(stage.content("loot/text").contains("surehand\0run\0"), "our command line is no secret");
    let mut all = Vec::new();
    files(stage.0.path(), &mut all);
    all.iter().for_each(|path| is_without_key(&fs::read(path).unwrap(), &path.display().to_string()));
}

/// A run as a user who owns nothing but the workspace, with a copy of the program that this user can reach.
fn unprivileged(stage: &Stage, server: &ModelServer) -> Command {
    fs::copy(PROGRAM, stage.path("program")).unwrap();
    let chown = Command::new("chown").args(["-R", "65534:65534"]).arg(stage.0.path()).status().unwrap();
    assert!(chown.success());
    let run = stage.command(&server.url(), &[STORY, "--yes", "--json"]);
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(stage.path("program")).args(run.get_args());
    command.envs(run.get_envs().filter_map(|(name, value)| Some((name, value?)))).env("OPENAI_API_KEY", MARKER);
    command.current_dir(stage.0.path()).env("HOME", stage.path(".home")).stdin(Stdio::null());
    command
}

/// An unprivileged user is a different case from root: the protection against commands also changes who may access our
/// own files in `/proc`.
#[test]
fn an_unprivileged_user_has_the_same_protection_and_can_work() {
    if !rustix::process::geteuid().is_root() {
        // As an unprivileged user, the other tests cover this case.
        eprintln!("not run: needs root");
        return;
    }
    let stage = Stage::new(&[("a.txt", "one\ntwo\n"), ("attack", ATTACK), (".home/surehand/surehand.toml", "")]);
    let turns = vec![
        Turn::calls(&[read("a.txt")]),
        plan(),
        Turn::calls(&[edit("a.txt", "two", "2"), write("b.txt", "new\n"), write("d/c.txt", "new\n"), complete(1)]),
        Turn::calls(&[shell("id -u; sh attack $PPID 2> /dev/null; setsid -f sleep 60")]),
        done(),
    ];
    let server = ModelServer::start(turns);
    let ran = Ran::of(unprivileged(&stage, &server).output().unwrap());
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{}", ran.out);
    let content = ["a.txt", "b.txt", "d/c.txt"].map(|path| stage.content(path));
    assert_eq!(content, ["one\n2\n", "new\n", "new\n"].map(str::to_owned));
    let results = results(&ran.events());
    let result = &results[results.len() - 2];
    assert!(result.starts_with("exit code 0\n65534\n") && result.contains("which were ended"), "{result}");
    assert!(!stage.path("loot/opened").exists() && stage.path("loot/text").exists());
    fs::remove_file(stage.path("program")).unwrap();
    let mut all = Vec::new();
    files(stage.0.path(), &mut all);
    all.iter().for_each(|path| is_without_key(&fs::read(path).unwrap(), &path.display().to_string()));
}

#[test]
fn a_key_that_is_printed_read_or_said_is_redacted_everywhere() {
    for mode in ["snapshot", "history"] {
        let stage = Stage::new(&[("a.txt", "one\ntwo\n"), ("conf", &format!("KEY={MARKER}\nend\n"))]);
        let (first, second) = MARKER.split_at(10);
        let turns = vec![
            Turn::calls(&[read("conf"), ("search_files", json!({ "pattern": "KEY=" }))]).with_text(&format!("It is {MARKER}!")),
            Turn::calls(&[shell(&format!("cat conf; printf {first}; printf '{second}\\n'; echo over"))]),
            Turn::calls(&[shell(&format!("echo {MARKER}"))]),
            done(),
        ];
        let server = ModelServer::start(turns);
        let story = format!("Do not use {MARKER}.");
        let words = [story.as_str(), "--yes", "--json", "--mode", mode];
        let ran = Ran::of(stage.command(&server.url(), &words).env("SUREHAND_API_KEY", MARKER).output().unwrap());
        assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{}", ran.out);
        is_without_key(ran.out.as_bytes(), "the events");
        for request in server.requests() {
            is_without_key(request.body.to_string().as_bytes(), "a prompt");
        }
        let mut all = Vec::new();
        files(&stage.path(".git/surehand/checkouts/main/runs"), &mut all);
        assert_eq!(all.len(), 2, "{all:?}");
        all.iter().for_each(|path| is_without_key(&fs::read(path).unwrap(), &path.display().to_string()));
        let results = results(&ran.events());
        assert!(results[0].contains("KEY=…\n") && results[1].contains("KEY=…"), "{results:?}");
        assert!(results[2].starts_with("exit code 0\nKEY=…\nend\n…\nover\n"), "{results:?}");
        assert!(results[3].starts_with("exit code 0\n…\n"), "{results:?}");
        assert!(ran.events().contains(&RunEvent::Said { text: "It is …!".to_owned() }), "{}", ran.out);
        let prompt = server.requests()[1].prompt();
        assert!(prompt.contains("Do not use ….") && prompt.contains("KEY=…"), "{prompt}");
    }
}

#[test]
fn a_key_comes_from_a_file_or_a_command_of_the_user() {
    for set in ["key_file = \"~/key\"", "key_command = \"cat key\"", "key_file = \"/none\"\nkey_command = \"cat ~/key\""] {
        let stage = Stage::new(&[("a.txt", "one\ntwo\n"), ("key", &format!("{MARKER}\n"))]);
        stage.put(".home/surehand/surehand.toml", &format!("[model]\n{set}\n"));
        make_private(&stage.path("key"));
        let server = ModelServer::start(vec![Turn::calls(&[shell("cat key; echo \"[$MY_KEY][$OPENAI_API_KEY]\"")]), done()]);
        let mut command = stage.command(&server.url(), &[STORY, "--yes", "--json"]);
        command
            .current_dir(stage.0.path())
            .env("HOME", stage.0.path())
            .env("MY_KEY", MARKER)
            .env("OPENAI_API_KEY", "sk-another-one");
        let ran = Ran::of(command.output().unwrap());
        assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{set}: {}", ran.out);
        assert_eq!(server.requests()[0].header("authorization"), Some(format!("Bearer {MARKER}").as_str()), "{set}");
        assert!(results(&ran.events())[0].starts_with("exit code 0\n…\n[][]\n"), "{}", ran.out);
    }
}

#[test]
fn a_header_that_is_a_credential_is_no_more_shown_than_the_key() {
    let stage = Stage::new(&[("conf", &format!("KEY={MARKER}\n"))]);
    let turns = vec![Turn::calls(&[read("conf"), shell(&format!("env | grep -c {}", &MARKER[..8]))]), done()];
    let server = ModelServer::start(turns);
    let mut command = stage.command(&server.url(), &[STORY, "--yes", "--json"]);
    command.env("SUREHAND_MODEL_HEADERS", format!("x-title=mine\nauthorization=Basic {MARKER}"));
    let ran = Ran::of(command.env("SUREHAND_MODEL_QUERY", "api-version=1").output().unwrap());
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{}", ran.out);
    let request = &server.requests()[0];
    assert_eq!(request.header("authorization"), Some(format!("Basic {MARKER}").as_str()));
    assert_eq!((request.header("x-title"), request.path.as_str()), (Some("mine"), "/v1/chat/completions?api-version=1"));
    is_without_key(ran.out.as_bytes(), "the events");
    let results = results(&ran.events());
    assert!(results[0].contains("KEY=…") && results[1].starts_with("exit code 1\n0\n"), "{results:?}");
    let mut all = Vec::new();
    files(&stage.path(".git/surehand/checkouts/main/runs"), &mut all);
    all.iter().for_each(|path| is_without_key(&fs::read(path).unwrap(), &path.display().to_string()));
}

#[test]
fn a_repository_adds_nothing_to_a_request() {
    let stage = stage();
    let set = "[model]\ntemperature = 2\neffort = \"max\"\nquery = { a = \"b\" }\nheaders = { authorization = \"theirs\", x-key = \"{key}\" }\n";
    stage.put("surehand.toml", set);
    let server = ModelServer::start(vec![done()]);
    let mut command = stage.command(&server.url(), &[STORY]);
    let ran = Ran::of(command.env("SUREHAND_API_KEY", MARKER).output().unwrap());
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let request = &server.requests()[0];
    assert_eq!((request.path.as_str(), request.header("x-key")), ("/v1/chat/completions", None));
    assert_eq!(request.header("authorization"), Some(format!("Bearer {MARKER}").as_str()));
    assert!(request.body.get("temperature").is_none() && request.body.get("reasoning_effort").is_none());
    for key in ["temperature", "effort", "query", "headers"] {
        assert!(ran.err.contains(&format!("model.{key} in surehand.toml of the workspace is ignored")), "{}", ran.err);
    }
}

fn make_private(path: &Path) {
    fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
}

#[test]
fn a_repository_does_not_say_where_the_key_is() {
    let stage = stage();
    stage.put("key", MARKER);
    make_private(&stage.path("key"));
    let set = format!("[model]\nkey_file = \"{}\"\nkey_command = \"touch was-run; cat key\"\n", stage.path("key").display());
    stage.put("surehand.toml", &set);
    let (ran, requests) = stage.run(whole_story(), &[STORY]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert!(requests.iter().all(|request| request.header("authorization").is_none()) && !stage.path("was-run").exists());
    for key in ["model.key_file", "model.key_command"] {
        assert!(ran.err.contains(&format!("{key} in surehand.toml of the workspace is ignored")), "{}", ran.err);
    }
}

#[test]
fn a_key_that_cannot_be_had_is_told_before_anything_begins() {
    let stage = stage();
    stage.put("key", MARKER);
    fs::set_permissions(stage.path("key"), std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
    let path = stage.path("key").display().to_string();
    for (variable, value, expected) in [
        ("SUREHAND_MODEL_KEY_FILE", path.as_str(), "other users may read or write the file (mode 0644)\nrun: chmod 600 "),
        ("SUREHAND_MODEL_KEY_FILE", "/none", "error: model.key_file: /none: No such file or directory"),
        (
            "SUREHAND_MODEL_KEY_COMMAND",
            "exit 7",
            "error: model.key_command failed (exit status: 7)\nrun it yourself to see why: exit 7",
        ),
        ("SUREHAND_MODEL_KEY_COMMAND", "true ", "error: model.key_command: there is no key in it"),
    ] {
        let server = ModelServer::start(Vec::new());
        let mut command = stage.command(&server.url(), &[STORY]);
        let ran = Ran::of(command.env(variable, value).env("OPENAI_API_KEY", MARKER).output().unwrap());
        assert_eq!((ran.code, server.requests().len()), (Some(2), 0), "{}", ran.out);
        assert!(ran.err.contains(expected), "{}", ran.err);
        assert!(!stage.path(".git/surehand").exists());
    }
}

// Commands.

/// A command tries every way to leave a process behind.
#[test]
fn nothing_of_a_command_is_alive_when_its_result_is_given() {
    let begun = "while ! test -s pid; do :; done";
    for command in [
        format!("setsid sh -c 'echo $$ > pid; exec sleep 60' & {begun}"),
        format!("(setsid -f env -i sh -c 'echo $$ > pid; exec sleep 60' > /dev/null 2>&1 &); {begun}"),
        format!("setsid -f sh -c 'trap \"\" TERM HUP INT; echo $$ > pid; exec sleep 60'; {begun}"),
        format!("sh -c 'trap \"\" TERM HUP INT; echo $$ > pid; exec sleep 60' & {begun}; kill -KILL $$"),
    ] {
        let stage = stage();
        let pid = stage.path("pid");
        let next = Turn::made(move |_| {
            let pid = fs::read_to_string(&pid).unwrap();
            assert!(!Path::new(&format!("/proc/{}", pid.trim())).exists(), "{pid} is there");
            done()
        });
        let (ran, _) = stage.finishes(vec![Turn::calls(&[shell(&command)]), next], &[STORY, "--yes", "--json"]);
        assert!(results(&ran.events())[0].contains("which were ended"), "{command}: {}", ran.out);
    }
}

#[test]
fn a_process_that_has_become_another_users_is_told() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("not run: needs root");
        return;
    }
    let stage = Stage::new(&[("a.txt", "one\n"), (".home/surehand/surehand.toml", "")]);
    let command = "./as-root --reuid=0 sh -c 'echo $$ > pid; exec sleep 60' > /dev/null & while ! test -s pid; do :; done";
    let server = ModelServer::start(vec![Turn::calls(&[shell(command)]), done()]);
    let mut run = unprivileged(&stage, &server);
    fs::copy("/usr/bin/setpriv", stage.path("as-root")).unwrap();
    fs::set_permissions(stage.path("as-root"), std::os::unix::fs::PermissionsExt::from_mode(0o4755)).unwrap();
    let ran = Ran::of(run.output().unwrap());
    let pid: i32 = stage.content("pid").trim().parse().unwrap();
    kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
    let result = &results(&ran.events())[0];
    assert!(result.contains("note: a process that it started could not be ended and still runs\n"), "{result}");
}

#[test]
fn where_nobody_can_be_asked_commands_are_declined_and_the_model_is_told() {
    for words in [vec![STORY], vec![STORY, "--json"]] {
        let stage = stage();
        let (_, requests) = stage.finishes(vec![Turn::calls(&[shell("touch made")]), done()], &words);
        assert!(!stage.path("made").exists());
        let prompt = requests[1].prompt();
        assert!(prompt.contains("the command was declined: it is not in the list of allowed commands"), "{prompt}");
    }
}

#[test]
fn what_the_settings_allow_runs_and_what_it_changed_is_named() {
    let stage = stage();
    if let ConfinementSupport::Missing { why } = confinement_support() {
        eprintln!("not tested: {why}");
        return;
    }
    stage.put(".home/surehand/surehand.toml", "[commands]\nallow = [\"sh fix\"]\n");
    // A confined command cannot make a file in the root itself.
    stage.put("src/b.txt", "");
    stage.put("fix", "echo 2 > a.txt; echo new > src/new.txt; echo fixed; echo out > new.txt; true\n");
    let turns = vec![Turn::calls(&[read("a.txt")]), Turn::calls(&[shell("sh fix"), shell("sh fix; rm a.txt")]), done()];
    let (ran, requests) = stage.finishes(turns, &[STORY, "--json"]);
    let results = results(&ran.events());
    assert!(results[1].starts_with("exit code 0\nfixed\n") && results[1].contains("denied"), "{results:?}");
    assert!(results[1].contains("a.txt") && results[1].contains("new.txt"), "{results:?}");
    assert!(results[2].contains("declined"), "{results:?}");
    assert!(requests[2].prompt().contains("1|2\n"), "{}", requests[2].prompt());
    assert!(requests[2].prompt().contains("src/new.txt"), "{}", requests[2].prompt());
    assert!(!stage.path("new.txt").exists());
}

#[test]
fn without_a_person_nothing_runs_without_confinement() {
    let stage = stage();
    stage.put(".home/surehand/surehand.toml", "[commands]\nallow = [\"touch\"]\n");
    let unconfined = json!({ "command": "touch made", "unconfined": true });
    let turns = vec![Turn::calls(&[("run_command", unconfined)]), done()];
    let (_, requests) = stage.finishes(turns, &[STORY, "--json"]);
    assert!(!stage.path("made").exists());
    let prompt = requests[1].prompt();
    assert!(prompt.contains("there is no one to ask") && prompt.contains("--yes"), "{prompt}");
}

// Changes by others.

#[test]
fn a_change_of_somebody_else_is_never_overwritten() {
    for protocol in PROTOCOLS {
        let stage = stage();
        let path = stage.path("a.txt");
        let stale = Turn::made(move |_| {
            put(&path, "one\ntwo, as somebody else has it\n");
            Turn::calls(&[edit("a.txt", "two", "2"), write("a.txt", "one\n2\n")])
        });
        let again = Turn::calls(&[edit("a.txt", "two, as", "2, as"), complete(1)]);
        let turns = vec![Turn::calls(&[read("a.txt")]), plan(), stale, again, done()];
        let (ran, requests) = stage.finishes(turns, &[STORY, "--json", "--protocol", protocol]);
        let results = results(&ran.events());
        assert!(results[2].contains("modified since last read"), "{results:?}");
        assert!(requests[3].prompt().contains("you had not seen the current content of a.txt"), "{}", requests[3].prompt());
        assert!(requests[3].prompt().contains("2|two, as somebody else has it"), "{}", requests[3].prompt());
        assert_eq!(stage.content("a.txt"), "one\n2, as somebody else has it\n");
    }
}

/// The anchor of a line, as shown to the model.
fn anchor_of(prompt: &str, line: &str) -> String {
    let row = prompt.lines().find(|row| row.ends_with(&format!("|{line}"))).unwrap_or_else(|| panic!("{line}: {prompt}"));
    row.split('|').next().unwrap().to_owned()
}

#[test]
fn an_anchored_edit_is_repaired_where_the_lines_are_proven() {
    let before: String = (1..=30).map(|number| format!("line {number}\n")).collect();
    let stage = Stage::new(&[("a.txt", &before)]);
    let (path, after) = (stage.path("a.txt"), format!("a new first line\n{before}"));
    let moved = after.clone();
    let stale = Turn::made(move |request| {
        put(&path, &moved);
        let at = anchor_of(&request.prompt(), "line 20");
        Turn::calls(&[
            ("edit_lines", json!({ "path": "a.txt", "edits": [{ "op": "replace", "at": at, "text": "twenty" }] })),
            complete(1),
        ])
    });
    let turns = vec![Turn::calls(&[read("a.txt")]), plan(), stale, done()];
    let (ran, requests) = stage.finishes(turns, &[STORY, "--json", "--dialect", "lines"]);
    assert_eq!(stage.content("a.txt"), after.replace("line 20\n", "twenty\n"));
    let repairs = ran.events().into_iter().filter_map(|event| match event {
        RunEvent::Call { tool, repair: true, .. } => Some(tool),
        _ => None,
    });
    assert_eq!(repairs.collect::<Vec<_>>(), ["read_file", "edit_lines"]);
    let prompt = requests[3].prompt();
    assert!(prompt.contains("found by proof") && prompt.contains("|twenty"), "{prompt}");
}

// Output.

#[test]
fn a_pipe_gets_plain_lines() {
    let stage = stage();
    let (ran, _) = stage.finishes(whole_story(), &[STORY]);
    let run = stage.only_run();
    let lines: Vec<&str> = ran.out.lines().collect();
    assert_eq!(lines[0], format!("run {run}: test-model, snapshot mode, session {run}"));
    assert_eq!(lines[1], format!("story: {STORY}"));
    for line in ["Let me look at it.", "call: read_file a.txt", "done", "It is a number.", "changed: a.txt +1 -1"] {
        assert!(lines.contains(&line), "{line} is not in {}", ran.out);
    }
    assert!(!ran.out.contains(['\u{1b}', '\r']), "{:?}", ran.out);
}

#[test]
fn a_reader_who_leaves_stops_the_run() {
    for words in [vec![STORY], vec![STORY, "--json"]] {
        let stage = stage();
        let server = ModelServer::start(whole_story());
        let mut child = stage.command(&server.url(), &words).spawn().unwrap();
        let mut first = String::new();
        BufReader::with_capacity(1, child.stdout.take().unwrap()).read_line(&mut first).unwrap();
        let ran = Ran::of(child.wait_with_output().unwrap());
        assert_eq!((ran.code, ran.err.as_str()), (Some(130), ""));
        assert!(server.turns_left() > 0 && stage.content("a.txt") == "one\ntwo\n");
        let place = stage.place(&stage.only_run());
        assert_eq!(place["stop"], "cancelled");
        let played = place["turn"].as_u64().unwrap() as usize;
        stage.finishes(whole_story().split_off(played), &["--resume"]);
    }
}

// The story.

#[track_caller]
fn with_input(stage: &Stage, input: &[u8], turns: Vec<Turn>, words: &[&str]) -> (Ran, Vec<Request>) {
    let server = ModelServer::start(turns);
    let mut child = stage.command(&server.url(), words).stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_owned();
    let writer = thread::spawn(move || stdin.write_all(&input));
    let ran = Ran::of(child.wait_with_output().unwrap());
    writer.join().unwrap().unwrap();
    (ran, server.requests())
}

#[test]
fn a_story_may_come_from_standard_input() {
    let stage = stage();
    let (ran, requests) = with_input(&stage, b"Make two\na number.\n", whole_story(), &["-"]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert!(requests[0].prompt().contains("# Story\nMake two\na number.\n"), "{}", requests[0].prompt());
    let (ran, requests) = with_input(&stage, b"\xff\xfe", whole_story(), &["-"]);
    assert_eq!((ran.code, requests.len()), (Some(2), 0));
    assert!(ran.err.starts_with("error: the story from standard input: "), "{}", ran.err);
}

#[test]
fn an_empty_story_is_none() {
    for (words, input) in [(["-"], " \n"), ([" "], ""), ([""], "")] {
        let stage = stage();
        let (ran, _) = with_input(&stage, input.as_bytes(), Vec::new(), &words);
        assert_eq!((ran.code, ran.err.as_str()), (Some(2), "error: the story is empty: say what is to be done\n"));
        assert!(!stage.path(".git/surehand").exists());
    }
}

#[test]
fn a_long_story_is_cut_in_the_prompt_and_kept_whole() {
    for mode in ["snapshot", "history"] {
        let stage = stage();
        stage.put("surehand.toml", "[context]\nwindow = 8000\n");
        let story: String = (0..100_000).map(|number| format!("word{number} ")).collect();
        let (ran, requests) = with_input(&stage, story.as_bytes(), whole_story(), &["-", "--mode", mode]);
        assert_eq!(ran.code, Some(0), "{}", ran.err);
        assert_eq!(stage.place(&stage.only_run())["story"], story);
        for request in &requests {
            let prompt = request.prompt();
            assert!(
                prompt.contains("word0 word1 ") && prompt.contains("…[+") && prompt.len() < 40_000,
                "{mode}: {} bytes",
                prompt.len()
            );
        }
        assert!(ran.out.lines().nth(1).unwrap().len() < 2000, "{}", ran.out.len());
    }
}

// Conversations.

/// Whether a provider would accept it: every call has its result right after it.
#[track_caller]
fn is_well_formed(request: &Request) -> bool {
    if request.speaks() == Speaks::Responses { has_paired_items(request) } else { has_paired_messages(request) }
}

/// Whether the items of the Responses protocol are paired: results follow their calls, with nothing but other calls and
/// results between them.
fn has_paired_items(request: &Request) -> bool {
    let items = request.body["input"].as_array().unwrap();
    let mut open: Vec<&str> = Vec::new();
    for item in items {
        match item["type"].as_str().unwrap() {
            "function_call" => open.push(item["call_id"].as_str().unwrap()),
            "function_call_output" => {
                let Some(at) = open.iter().position(|known| item["call_id"] == *known) else { return false };
                open.remove(at);
            }
            _ if !open.is_empty() => return false,
            _ => {}
        }
    }
    open.is_empty() && items.first().is_some_and(|item| item["role"] == "user")
}

#[track_caller]
fn has_paired_messages(request: &Request) -> bool {
    let messages = request.body["messages"].as_array().unwrap();
    let ids = |parts: &Value, field: &str| -> Vec<String> {
        parts.as_array().into_iter().flatten().filter_map(|part| part[field].as_str()).map(str::to_owned).collect()
    };
    let mut open: Vec<String> = Vec::new();
    for message in messages {
        let (content, role) = (&message["content"], message["role"].as_str().unwrap());
        let answered = match request.speaks() {
            Speaks::OpenAi => message["tool_call_id"].as_str().map(str::to_owned).into_iter().collect(),
            Speaks::Anthropic | Speaks::Responses => ids(content, "tool_use_id"),
        };
        for id in &answered {
            let Some(at) = open.iter().position(|known| known == id) else { return false };
            open.remove(at);
        }
        if !open.is_empty() && role != "tool" {
            return false;
        }
        open.extend(match request.speaks() {
            Speaks::OpenAi => ids(&message["tool_calls"], "id"),
            Speaks::Anthropic | Speaks::Responses => ids(content, "id"),
        });
    }
    open.is_empty() && messages.first().is_some_and(|message| message["role"] != "assistant")
}

#[test]
fn a_conversation_that_gets_long_is_folded_and_goes_on() {
    let long: String = (1..=400).map(|number| format!("line number {number}\n")).collect();
    for protocol in PROTOCOLS {
        let stage = stage();
        stage.put("long.txt", &long);
        stage.put(".home/surehand/surehand.toml", "[context]\nmode = \"history\"\nwindow = 9000\n");
        let turns = vec![
            Turn::calls(&[read("a.txt")]),
            plan(),
            Turn::calls(&[read("long.txt")]).with_text("What else is there?"),
            Turn::calls(&[read("long.txt")]),
            Turn::calls(&[edit("a.txt", "two", "2")]),
            Turn::calls(&[read("a.txt"), edit("a.txt", "two", "2"), complete(1)]),
            done(),
        ];
        let (ran, requests) = stage.finishes(turns, &[STORY, "--json", "--protocol", protocol]);
        assert!(requests.iter().all(is_well_formed), "{protocol}");
        assert!(ran.events().iter().any(|event| matches!(event, RunEvent::Folded { .. })), "{}", ran.out);
        let prompt = requests[4].prompt();
        assert!(prompt.contains("was folded into this state") && prompt.contains("make it a number"), "{prompt}");
        assert!(results(&ran.events())[4].contains("was not read this session"), "{:?}", results(&ran.events()));
        assert_eq!(stage.content("a.txt"), "one\n2\n");
    }
}

#[test]
fn a_conversation_goes_on_after_a_stop() {
    for protocol in PROTOCOLS {
        let stage = stage();
        let words = ["--mode", "history", "--protocol", protocol];
        let (ran, _) = stage.run(whole_story(), &[&[STORY, "--max-turns", "2"], &words[..]].concat());
        assert_eq!(ran.code, Some(1), "{}", ran.err);
        let turns = vec![Turn::calls(&[read("a.txt"), edit("a.txt", "two", "2"), complete(1)]), done()];
        let (_, requests) = stage.finishes(turns, &[&["--resume"], &words[..]].concat());
        assert!(requests.iter().all(is_well_formed), "{:#}", requests[0].body);
        assert!(
            requests[0].prompt().contains("Let me look at it.") && requests[0].prompt().contains("2|two"),
            "{}",
            requests[0].prompt()
        );
        assert_eq!(stage.content("a.txt"), "one\n2\n");
    }
}
