//! Two servers, the hooks of two clients, the command line and a run work in one workspace. After every act all of them
//! know the same state, and so does every reader of `repostate.json`, even if one of them has just been killed.
#![expect(clippy::disallowed_methods, reason = "tests play the other programs")]

use std::{
    collections::BTreeMap,
    fs,
    io::Write,
    path::Path,
    process::{Child, Command, Output, Stdio},
    sync::{
        Arc, Mutex,
        mpsc::{Receiver, Sender, channel},
    },
};

use serde_json::{Value, json};
use surehand_engine::core::ContentHash;
use surehand_testkit::{
    model_server::{ModelServer, Turn},
    rng::Rng,
    tool_client::{McpClient, ToolClient},
};

const PROGRAM: &str = env!("CARGO_BIN_EXE_surehand");
const FAST: &[(&str, &str)] = &[("SUREHAND_POLICY_DURABILITY", "fast")];

fn run(root: &Path, words: &[&str]) -> Output {
    Command::new(PROGRAM).args(words).arg("--root").arg(root).envs(FAST.iter().copied()).output().unwrap()
}

#[track_caller]
fn json_of(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

/// Runs a hook of a client, one process per event.
#[track_caller]
fn hook(root: &Path, client: &str, fields: &Value) {
    let mut input = json!({ "session_id": client, "cwd": root, "transcript_path": root.join(".git/none.jsonl") });
    input.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    let mut command = Command::new(PROGRAM);
    // The user's own directory may have a session of the same name, left by an earlier run.
    command.args(["hook", client]).envs(FAST.iter().copied()).env("XDG_STATE_HOME", root.join(".git/state-home"));
    command.current_dir(root);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.to_string().as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success() && !said.contains("deny"), "{client}: {said}");
}

/// A run whose model answers when the test sends it a turn.
struct Run {
    child: Child,
    server: ModelServer,
    turns: Sender<Turn>,
    asked: usize,
}

impl Run {
    fn start(root: &Path, words: &[&str]) -> Self {
        let (turns, next): (Sender<Turn>, Receiver<Turn>) = channel();
        let next = Arc::new(Mutex::new(next));
        let waits = |_| {
            let next = next.clone();
            Turn::made(move |_| next.lock().unwrap().recv().unwrap_or_else(|_| Turn::close()))
        };
        let server = ModelServer::start((0..200).map(waits).collect());
        let mut command = Command::new(PROGRAM);
        command.arg("run").args(words).args(["--model", "test-model", "--url", &server.url(), "--root"]).arg(root);
        command.envs(FAST.iter().copied()).env("SUREHAND_MODEL_PAUSE", "0").env("OPENAI_API_KEY", "k");
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        server.wait_for_requests(1);
        Self { child, server, turns, asked: 1 }
    }

    /// Plays a turn, and returns the next prompt.
    fn play(&mut self, call: (&str, Value)) -> String {
        self.turns.send(Turn::calls(&[call])).unwrap();
        self.asked += 1;
        self.server.wait_for_requests(self.asked);
        self.server.requests()[self.asked - 1].prompt()
    }

    fn last_prompt(&self) -> String {
        self.server.requests()[self.asked - 1].prompt()
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The workspace, its participants, and the state that all of them must know.
struct Stage<'a> {
    root: &'a Path,
    servers: [McpClient; 2],
    run: Run,
    /// The status of each changed file.
    files: BTreeMap<String, &'static str>,
    /// The open tasks of people, by number.
    of_persons: BTreeMap<u64, String>,
    last_task: u64,
    /// The open tasks of the run, by number.
    of_run: BTreeMap<u64, String>,
    count: usize,
}

impl<'a> Stage<'a> {
    fn new(root: &'a Path) -> Self {
        let server = || McpClient::start(Path::new(PROGRAM), root, FAST);
        let run = Run::start(root, &["Count to ten."]);
        let (files, of_persons, of_run) = Default::default();
        Self { root, servers: [server(), server()], run, files, of_persons, last_task: 0, of_run, count: 0 }
    }

    /// An unused name, and content for it.
    fn fresh(&mut self, who: &str) -> (String, String) {
        self.count += 1;
        (format!("{who}-{}.txt", self.count), format!("{}\n", self.count))
    }

    fn act(&mut self, rng: &mut Rng) {
        match rng.within(0..11) {
            0..3 => self.server_acts(rng),
            3 => self.hook_writes(),
            4 => self.hook_runs_a_command(),
            5 => {
                let (path, content) = self.fresh("shell");
                let arguments = json!({ "path": path, "content": content }).to_string();
                assert!(run(self.root, &["call", "write_file", &arguments]).status.success());
                self.files.insert(path, "created");
            }
            6 => self.person_adds_or_completes(rng),
            7..9 => self.run_acts(rng),
            9 => {
                // Kill it right after its last answer.
                let which = rng.within(0..2);
                self.servers[which].process().kill().unwrap();
                self.servers[which] = McpClient::start(Path::new(PROGRAM), self.root, FAST);
            }
            _ => {
                self.run.child.kill().unwrap();
                self.run.child.wait().unwrap();
                self.run = Run::start(self.root, &["--resume"]);
            }
        }
    }

    fn server_acts(&mut self, rng: &mut Rng) {
        let which = rng.within(0..2);
        let (path, content) = self.fresh("server");
        let mine: Vec<String> = self
            .files
            .iter()
            .filter(|(path, status)| path.starts_with("server") && **status != "deleted")
            .map(|(path, _)| path.clone())
            .collect();
        let old = (!mine.is_empty() && rng.percent(60)).then(|| rng.pick(&mine).clone());
        let server = &mut self.servers[which];
        let (tool, arguments) = match &old {
            Some(old) if rng.percent(30) => ("delete_file", json!({ "path": old })),
            Some(old) if rng.percent(30) => ("move_file", json!({ "from": old, "to": path })),
            Some(old) => ("write_file", json!({ "path": old, "content": content })),
            None => ("write_file", json!({ "path": path, "content": content })),
        };
        if let Some(old) = &old {
            server.call("read_file", &json!({ "path": old }));
        }
        let answer = server.call(tool, &arguments);
        assert!(!answer.is_error, "{tool}: {}", answer.text);
        match (tool, old) {
            ("delete_file", Some(old)) => drop(self.files.insert(old, "deleted")),
            ("move_file", Some(old)) => {
                self.files.insert(old, "deleted");
                self.files.insert(path, "created");
            }
            (_, Some(old)) => drop(self.files.insert(old, "created")),
            (_, None) => drop(self.files.insert(path, "created")),
        }
    }

    fn hook_writes(&mut self) {
        let (path, content) = self.fresh("claude");
        let full = self.root.join(&path);
        let mut fields = json!({ "hook_event_name": "PreToolUse", "tool_name": "Write", "tool_use_id": path,
            "tool_input": { "file_path": full, "content": content } });
        hook(self.root, "claude", &fields);
        fs::write(&full, &content).unwrap();
        fields["hook_event_name"] = "PostToolUse".into();
        fields["tool_response"] = json!({ "type": "create" });
        hook(self.root, "claude", &fields);
        self.files.insert(path, "created");
    }

    fn hook_runs_a_command(&mut self) {
        let (path, content) = self.fresh("codex");
        let command = format!("printf '{}\\n' > {path}", content.trim());
        let mut fields = json!({ "hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_use_id": path, "tool_input": { "command": command } });
        hook(self.root, "codex", &fields);
        assert!(Command::new("sh").args(["-c", &command]).current_dir(self.root).status().unwrap().success());
        fields["hook_event_name"] = "PostToolUse".into();
        fields["tool_response"] = "".into();
        hook(self.root, "codex", &fields);
        self.files.insert(path, "created");
    }

    fn person_adds_or_completes(&mut self, rng: &mut Rng) {
        let open: Vec<u64> = self.of_persons.keys().copied().collect();
        if open.is_empty() || rng.percent(60) {
            self.last_task += 1;
            let words = format!("person {}", self.last_task);
            assert!(run(self.root, &["tasks", "add", &words]).status.success());
            self.of_persons.insert(self.last_task, words);
        } else {
            let id = *rng.pick(&open);
            assert!(run(self.root, &["tasks", "complete", &id.to_string()]).status.success());
            self.of_persons.remove(&id);
        }
    }

    fn run_acts(&mut self, rng: &mut Rng) {
        let open: Vec<u64> = self.of_run.keys().copied().collect();
        if open.is_empty() || rng.percent(20) {
            self.last_task += 1;
            let words = format!("run {}", self.last_task);
            self.run.play(("update_tasks", json!({ "add": [{ "description": words }] })));
            self.of_run.insert(self.last_task, words);
        } else if rng.percent(30) {
            let id = *rng.pick(&open);
            self.run.play(("update_tasks", json!({ "set": [{ "id": id, "status": "completed" }] })));
            self.of_run.remove(&id);
        } else {
            let (path, content) = self.fresh("run");
            let prompt = self.run.play(("write_file", json!({ "path": path, "content": content })));
            assert!(self.root.join(&path).exists(), "{prompt}");
            self.files.insert(path, "created");
        }
    }

    /// Checks that all participants know the same state, and that it is right.
    #[track_caller]
    fn all_agree(&mut self) {
        let exported: Value = serde_json::from_slice(&fs::read(self.root.join(".surehand/repostate.json")).unwrap()).unwrap();
        let changed = |state: &Value| {
            let files = state["files"].as_array().unwrap().iter().filter(|file| file["status"] != "unchanged");
            let entry = |file: &Value| {
                assert!(file.get("changed_outside").is_none(), "{file}");
                let text = |field: &str| file[field].as_str().unwrap().to_owned();
                (text("path"), (text("status"), text("hash")))
            };
            files.map(entry).collect::<BTreeMap<_, _>>()
        };
        for (path, (status, hash)) in &changed(&exported) {
            match fs::read(self.root.join(path)) {
                Ok(content) => assert_eq!(*hash, ContentHash::of(&content).to_string(), "{path}"),
                Err(_) => assert_eq!(status, "deleted", "{path}"),
            }
        }
        let known: BTreeMap<String, &str> = self.files.clone();
        let listed: BTreeMap<String, String> = changed(&exported).into_iter().map(|(path, (status, _))| (path, status)).collect();
        assert!(
            listed.iter().map(|(path, status)| (path, status.as_str())).eq(known.iter().map(|(path, status)| (path, *status))),
            "{listed:?}\n{known:?}"
        );
        let words = |state: &Value| {
            let tasks = state["open_tasks"].as_array().unwrap().iter();
            let mut words: Vec<String> = tasks.map(|task| task["description"].as_str().unwrap().to_owned()).collect();
            words.sort();
            words
        };
        let sorted = |tasks: &mut dyn Iterator<Item = &String>| {
            let mut words: Vec<String> = tasks.cloned().collect();
            words.sort();
            words
        };
        let of_all = sorted(&mut self.of_persons.values().chain(self.of_run.values()));
        assert_eq!(words(&exported), of_all);
        let by_hand = json_of(&run(self.root, &["snapshot", "--json"]));
        assert_eq!((changed(&by_hand), words(&by_hand)), (changed(&exported), of_all));
        for server in &mut self.servers {
            let answer = server.call("repo_state", &json!({ "format": "json" }));
            let shown: Value = serde_json::from_str(&answer.text[..answer.text.rfind('}').unwrap() + 1])
                .unwrap_or_else(|error| panic!("{error}: {}", answer.text));
            assert_eq!(changed(&shown), changed(&exported));
            // The tasks of the run are hidden from them.
            assert_eq!(words(&shown), sorted(&mut self.of_persons.values()));
            assert_eq!(shown["story_id"], exported["story_id"]);
        }
    }
}

#[test]
fn all_processes_know_the_same_through_kills_and_restarts() {
    for seed in 1..=3 {
        let dir = surehand_testkit::repository();
        let (mut stage, mut rng) = (Stage::new(dir.path()), Rng::new(seed));
        stage.run_acts(&mut rng);
        for _ in 0..30 {
            stage.act(&mut rng);
            stage.all_agree();
        }
        // A person's task blocks the run, although the run was not notified of it. A task of another story does not.
        stage.last_task += 1;
        let blocking = stage.last_task;
        assert!(run(stage.root, &["tasks", "add", "one more thing"]).status.success());
        assert!(run(stage.root, &["tasks", "--story", "other", "add", "some day"]).status.success());
        let own: Vec<u64> = stage.of_run.keys().chain(stage.of_persons.keys()).copied().collect();
        stage.run.play(("update_tasks", json!({ "set": [{ "id": own, "status": "completed" }] })));
        let prompt = stage.run.play(("done", json!({ "summary": "all done" })));
        assert!(prompt.contains("one more thing"), "{prompt}");
        assert!(stage.run.last_prompt().contains("some day (story other)"), "{prompt}");
        stage.run.play(("update_tasks", json!({ "set": [{ "id": blocking, "status": "completed" }] })));
        stage.run.turns.send(Turn::calls(&[("done", json!({ "summary": "all done" }))])).unwrap();
        assert!(stage.run.child.wait().unwrap().success());
    }
}
