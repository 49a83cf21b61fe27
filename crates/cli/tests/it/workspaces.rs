//! One session of a client that works in several workspaces, with real git and the real program.
#![expect(clippy::disallowed_methods, reason = "tests play the client and its tools")]

use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use serde_json::{Value, json};
use tempfile::TempDir;

const PROGRAM: &str = env!("CARGO_BIN_EXE_surehand");

/// A project with a submodule-like repository in it, and a home.
struct Machine {
    dir: TempDir,
}

impl Machine {
    fn new() -> Self {
        let machine = Self { dir: tempfile::tempdir().unwrap() };
        for repository in ["project", "project/vendor/lib"] {
            fs::create_dir_all(machine.at(repository)).unwrap();
            let made = Command::new("git").args(["init", "-q"]).current_dir(machine.at(repository)).status().unwrap();
            assert!(made.success());
            fs::write(machine.at(repository).join("a.txt"), "one\ntwo\nthree\n").unwrap();
        }
        machine
    }

    fn at(&self, path: &str) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join(path)
    }

    fn run(&self, directory: &Path, arguments: &[&str], input: &str) -> Output {
        let mut child = Command::new(PROGRAM)
            .args(arguments)
            .current_dir(directory)
            .env_clear()
            .env("SUREHAND_BOARD_ENABLED", "false")
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", self.at("home"))
            .env("CLAUDE_PROJECT_DIR", self.at("project"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        child.wait_with_output().unwrap()
    }

    /// Sends the hook an event about an edit by Claude Code, with this current directory, before or after the edit.
    fn hook(&self, directory: &str, event: &str, edit: &Value) -> String {
        let input = json!({ "hook_event_name": event, "session_id": "s", "cwd": self.at(directory), "tool_name": "Edit",
            "tool_input": edit, "tool_response": { "filePath": edit["file_path"] } });
        let output = self.run(&self.at(directory), &["hook", "claude"], &input.to_string());
        assert!(output.status.success());
        String::from_utf8(output.stdout).unwrap()
    }

    /// Edits a file. That takes two calls if the file was not read.
    fn edit(&self, directory: &str, path: &str, old: &str, new: &str) {
        let edit = json!({ "file_path": self.at(path), "old_string": old, "new_string": new });
        let refused = self.hook(directory, "PreToolUse", &edit);
        assert!(refused.contains("was not read this session"), "{refused}");
        assert_eq!(self.hook(directory, "PreToolUse", &edit), "");
        let content = fs::read_to_string(self.at(path)).unwrap();
        fs::write(self.at(path), content.replacen(old, new, 1)).unwrap();
        assert_eq!(self.hook(directory, "PostToolUse", &edit), "");
    }

    fn json(&self, arguments: &[&str]) -> Value {
        let output = self.run(&self.at("project"), arguments, "");
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"))
    }
}

#[test]
fn a_session_is_asked_about_and_undone_in_all_its_workspaces() {
    let machine = Machine::new();
    machine.edit("project/vendor/lib", "project/a.txt", "two", "TWO");
    machine.edit("project/vendor/lib", "project/vendor/lib/a.txt", "three", "THREE");
    let log = machine.json(&["log", "--session", "claude-s", "--kind", "change", "--json"]);
    let workspaces: Vec<&Value> = log.as_array().unwrap().iter().map(|change| &change["workspace"]).collect();
    assert_eq!(workspaces, [&json!(machine.at("project/vendor/lib")), &Value::Null], "newest first: {log}");
    let diff = machine.json(&["diff", "--session", "claude-s", "--json"]);
    assert_eq!(diff.as_array().unwrap().len(), 2, "{diff}");
    let output = machine.run(&machine.at("project"), &["undo", "--session", "claude-s"], "");
    assert!(output.status.success(), "{output:?}");
    let said = String::from_utf8(output.stdout).unwrap();
    let heads: Vec<&str> = said.lines().filter(|line| line.starts_with("in ")).collect();
    let at = |path: &str| format!("in {}:", machine.at(path).display());
    assert_eq!(heads, [at("project"), at("project/vendor/lib")], "{said}");
    assert_eq!(said.matches(" by claude s. The files are as they were before:\na.txt edited (+1 -1").count(), 2, "{said}");
    for path in ["project/a.txt", "project/vendor/lib/a.txt"] {
        assert_eq!(fs::read_to_string(machine.at(path)).unwrap(), "one\ntwo\nthree\n", "{path}");
    }
}

#[test]
fn only_work_trees_with_something_to_commit_are_named() {
    let machine = Machine::new();
    for root in ["project", "project/vendor/lib"] {
        let git = "git add a.txt && git -c user.name=Ada -c user.email=a@b commit -qm first";
        assert!(Command::new("sh").args(["-c", git]).current_dir(machine.at(root)).status().unwrap().success());
    }
    machine.edit("project/vendor/lib", "project/a.txt", "two", "TWO");
    machine.edit("project/vendor/lib", "project/vendor/lib/a.txt", "three", "THREE");
    let notes = |directory: &str, arguments: &[&str]| {
        let output = machine.run(&machine.at(directory), arguments, "");
        String::from_utf8(output.stderr).unwrap().replace(machine.dir.path().canonicalize().unwrap().to_str().unwrap(), "")
    };
    let (dry_run, patch) = (["commit", "--session", "claude-s", "--dry-run"], ["diff", "--session", "claude-s", "--patch"]);
    let there = "note: this session has lines to commit in /project/vendor/lib as well; commit them there\n";
    assert_eq!(notes("project", &dry_run), there);
    assert_eq!(notes("project", &patch), "note: there is more in /project/vendor/lib\n");
    for (name, value) in [("user.name", "Ada"), ("user.email", "a@b")] {
        let set = Command::new("git").args(["config", name, value]).current_dir(machine.at("project/vendor/lib")).status();
        assert!(set.unwrap().success());
    }
    let there = notes("project/vendor/lib", &["commit", "--session", "claude-s", "-m", "work"]);
    assert_eq!(there, "note: this session has lines to commit in /project as well; commit them there\n");
    assert_eq!(notes("project", &dry_run), "", "all of it is committed there");
    assert_eq!(notes("project", &patch), "");
    let found = ["diff", "--session", "claude-s", "--patch", "--committed"];
    assert_eq!(notes("project", &found), "note: there is more in /project/vendor/lib\n");
}
