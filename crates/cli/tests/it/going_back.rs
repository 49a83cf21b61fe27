//! Uncommitted work of a person that an agent's command destroys is restored: every byte, every permission, every link.
#![expect(clippy::disallowed_methods, reason = "tests play the other programs")]

use std::{
    collections::BTreeMap,
    fs,
    io::Write,
    os::unix::fs::{PermissionsExt, symlink},
    path::PathBuf,
    process::{Command, Output, Stdio},
    time::SystemTime,
};

use proptest::prelude::*;
use serde_json::{Value, json};

pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_surehand");

/// A person's repository and home directory.
pub(crate) struct Stage {
    dir: tempfile::TempDir,
}

/// The kind and content of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Thing {
    File(Vec<u8>, u32),
    Link(PathBuf),
    Directory,
}

impl Stage {
    pub(crate) fn new() -> Self {
        let stage = Self { dir: tempfile::tempdir().unwrap() };
        fs::create_dir_all(stage.root()).unwrap();
        stage.git(&["init", "-q", "-b", "trunk"]);
        stage
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join("project")
    }

    pub(crate) fn at(&self, path: &str) -> PathBuf {
        self.root().join(path)
    }

    pub(crate) fn write(&self, path: &str, content: impl AsRef<[u8]>, mode: u32) {
        let path = self.at(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    }

    pub(crate) fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        for variable in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "XDG_CONFIG_HOME"] {
            command.env_remove(variable);
        }
        let home = self.dir.path().join("home");
        command.current_dir(self.root()).env("HOME", &home).env("XDG_STATE_HOME", home.join("state"));
        command.env("SUREHAND_POLICY_DURABILITY", "fast");
        command
    }

    #[track_caller]
    pub(crate) fn shell(&self, line: &str) {
        let output = self.command("sh").args(["-c", line]).output().unwrap();
        assert!(output.status.success(), "{line}: {output:?}");
    }

    #[track_caller]
    pub(crate) fn git(&self, arguments: &[&str]) {
        let settings = ["user.name=a", "user.email=a@b", "commit.gpgsign=false"].iter().flat_map(|setting| ["-c", setting]);
        let output = self.command("git").args(settings).args(arguments).output().unwrap();
        assert!(output.status.success(), "git {arguments:?}: {output:?}");
    }

    pub(crate) fn commit(&self) {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "-m", "x"]);
    }

    pub(crate) fn surehand(&self, words: &[&str]) -> Output {
        let output = self.command(PROGRAM).args(words).output().unwrap();
        self.wait_for_the_clock_of_files();
        output
    }

    #[track_caller]
    pub(crate) fn json(&self, words: &[&str]) -> Value {
        let output = self.command(PROGRAM).args(words).arg("--json").output().unwrap();
        assert!(output.status.success(), "{words:?}: {output:?}");
        self.wait_for_the_clock_of_files();
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// Returns once new files are younger than everything before. Until then, a restore cannot know whether a file that
    /// a checkpoint does not have came after it, and leaves the file: the times of files move in steps of milliseconds.
    fn wait_for_the_clock_of_files(&self) {
        let (before, probe) = (SystemTime::now(), self.dir.path().join("probe"));
        let written = || {
            fs::write(&probe, "").unwrap();
            fs::metadata(&probe).unwrap().modified().unwrap()
        };
        while written() <= before {}
        fs::remove_file(&probe).unwrap();
    }

    /// Runs a hook of Claude Code, one process per event, as Claude Code does.
    #[track_caller]
    pub(crate) fn hook(&self, fields: &Value) -> String {
        let mut input = json!({ "session_id": "s1", "cwd": self.root(), "transcript_path": self.at(".git/none.jsonl") });
        input.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        let mut command = self.command(PROGRAM);
        let mut child = command.args(["hook", "claude"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(input.to_string().as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success() && !said.contains("deny"), "{said}");
        self.wait_for_the_clock_of_files();
        said
    }

    /// The agent runs a command.
    #[track_caller]
    pub(crate) fn agent_runs(&self, line: &str) {
        let input = json!({ "command": line });
        let mut fields =
            json!({ "hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_use_id": line, "tool_input": input });
        self.hook(&fields);
        self.shell(line);
        fields["hook_event_name"] = json!("PostToolUse");
        fields["tool_response"] = json!({ "stdout": "", "stderr": "", "interrupted": false, "isImage": false });
        self.hook(&fields);
    }

    /// All files by path.
    fn files(&self) -> BTreeMap<String, Thing> {
        let mut files = BTreeMap::new();
        let mut open = vec![self.root()];
        while let Some(dir) = open.pop() {
            for entry in fs::read_dir(dir).unwrap() {
                let path = entry.unwrap().path();
                let name = path.strip_prefix(self.root()).unwrap().to_str().unwrap().to_owned();
                if name == ".git" || name == ".surehand" {
                    continue;
                }
                let meta = fs::symlink_metadata(&path).unwrap();
                let thing = if meta.is_symlink() {
                    Thing::Link(fs::read_link(&path).unwrap())
                } else if meta.is_dir() {
                    open.push(path);
                    Thing::Directory
                } else {
                    Thing::File(fs::read(&path).unwrap(), meta.permissions().mode() & 0o7777)
                };
                files.insert(name, thing);
            }
        }
        files
    }

    /// The size of all files below a directory, in bytes.
    pub(crate) fn disk_usage(&self, path: &str) -> u64 {
        let (mut bytes, mut open) = (0, vec![self.at(path)]);
        while let Some(path) = open.pop() {
            match fs::read_dir(&path) {
                Ok(entries) => open.extend(entries.map(|entry| entry.unwrap().path())),
                Err(_) => bytes += fs::symlink_metadata(&path).unwrap().len(),
            }
        }
        bytes
    }

    #[track_caller]
    pub(crate) fn last_checkpoint(&self) -> String {
        let log = self.json(&["log", "-n", "100"]);
        let found = log.as_array().unwrap().iter().find_map(|entry| entry["checkpoint"].as_str());
        found.unwrap_or_else(|| panic!("no checkpoint: {log:#}")).to_owned()
    }
}

/// Files of a person, some of them committed.
fn work(stage: &Stage) {
    stage.write("src/main.rs", "fn main() {}\n", 0o644);
    stage.write("src/lib.rs", "// as committed\n", 0o644);
    stage.write("run.sh", "#!/bin/sh\n", 0o755);
    stage.write("gone.txt", "deleted by the person\n", 0o644);
    stage.write("staged.txt", "one\n", 0o644);
    stage.write(".gitignore", ".env\nbuild/\n", 0o644);
    symlink("src/main.rs", stage.at("main")).unwrap();
    stage.commit();
    // Nothing below is committed.
    stage.write("src/main.rs", "fn main() { mine() }\r\n", 0o644);
    stage.write("run.sh", "#!/bin/sh\necho mine\n", 0o700);
    stage.write("staged.txt", "two\n", 0o644);
    stage.git(&["add", "staged.txt"]);
    stage.write("staged.txt", "three\n", 0o644);
    fs::remove_file(stage.at("gone.txt")).unwrap();
    fs::remove_file(stage.at("main")).unwrap();
    symlink("run.sh", stage.at("main")).unwrap();
    stage.write("notes/plan.md", "# never added\n", 0o600);
    stage.write("notes/picture.bin", (0..5000_u32).flat_map(u32::to_le_bytes).collect::<Vec<u8>>(), 0o640);
    stage.write("surehand.toml", "[limits]\nread_lines = 1000\n", 0o644);
    stage.write(".env", "KEY=secret\n", 0o600);
    stage.write("build/out.o", "made anew any time", 0o644);
    symlink("../nowhere", stage.at("notes/dangling")).unwrap();
    fs::create_dir_all(stage.at("empty/inner")).unwrap();
}

#[test]
fn checkout_and_clean_cost_a_person_nothing() {
    let stage = Stage::new();
    work(&stage);
    let before = stage.files();
    stage.hook(&json!({ "hook_event_name": "SessionStart", "source": "startup" }));
    const LINE: &str = "git checkout . && git clean -fd && rm -f .env";
    stage.agent_runs(LINE);
    assert_ne!(stage.files(), before);
    let checkpoint = stage.last_checkpoint();
    let preview = stage.json(&["restore", "--to", &checkpoint[..6], "--dry-run"]);
    assert_eq!((&preview["restored"], preview["left"].as_array().unwrap().len()), (&json!(false), 0), "{preview:#}");
    assert_ne!(stage.files(), before);
    let restored = stage.json(&["restore", "--to", &checkpoint, "--yes"]);
    assert_eq!(restored["failed"], json!([]), "{restored:#}");
    assert_eq!(stage.files(), before);
    // Restoring again has nothing to do.
    assert_eq!(stage.json(&["restore", "--to", &checkpoint, "--dry-run"])["files"], json!([]));
}

#[test]
fn a_restore_is_taken_back() {
    let stage = Stage::new();
    work(&stage);
    const LINE: &str =
        "rm -rf src notes && mv run.sh walk.sh && echo new > made.txt && git add -A && git commit -qm y --author 'a <a@b>'";
    stage.git(&["config", "user.name", "a"]);
    stage.git(&["config", "user.email", "a@b"]);
    let before = stage.files();
    stage.agent_runs(LINE);
    let after = stage.files();
    let checkpoint = stage.last_checkpoint();
    let restored = stage.json(&["restore", "--to", &checkpoint, "--yes"]);
    assert_eq!(restored["failed"], json!([]), "{restored:#}");
    assert_eq!(stage.files(), before);
    let again = stage.json(&["restore", "--to", restored["before"].as_str().unwrap(), "--yes"]);
    assert_eq!(again["failed"], json!([]), "{again:#}");
    assert_eq!(stage.files(), after);
    stage.json(&["restore", "--to", &checkpoint, "--yes"]);
    // Undo and redo restore it, too, any number of times. Directories that were made for files stay.
    let files = |files: BTreeMap<String, Thing>| {
        files.into_iter().filter(|(_, thing)| *thing != Thing::Directory).collect::<BTreeMap<String, Thing>>()
    };
    stage.json(&["undo"]);
    assert_eq!(files(stage.files()), files(after.clone()));
    stage.json(&["redo"]);
    assert_eq!(files(stage.files()), files(before));
    stage.json(&["undo"]);
    assert_eq!(files(stage.files()), files(after));
}

#[test]
fn links_directories_and_permissions_come_back_by_undo() {
    let stage = Stage::new();
    stage.write("run.sh", "#!/bin/sh\n", 0o755);
    stage.commit();
    stage.write("becomes-link", "a file\n", 0o640);
    stage.write("target", "target\n", 0o644);
    symlink("target", stage.at("link")).unwrap();
    symlink("target", stage.at("becomes-file")).unwrap();
    fs::create_dir(stage.at("empty")).unwrap();
    let before = stage.files();
    stage.json(&["checkpoint", "mine"]);
    stage.shell("chmod 600 run.sh; rm -r becomes-link becomes-file link empty");
    symlink("run.sh", stage.at("becomes-link")).unwrap();
    symlink("run.sh", stage.at("link")).unwrap();
    stage.write("becomes-file", "a file now\n", 0o600);
    stage.write("empty", "no directory\n", 0o644);
    let after = stage.files();
    let change = stage.json(&["restore", "--to", "mine", "--yes"])["changes"][0].as_str().unwrap().to_owned();
    assert_eq!(stage.files(), before);
    let log = stage.json(&["log", "-n", "1"]);
    assert_eq!(log[0]["files"].as_array().unwrap().len(), 5, "{log:#}");
    let output = stage.surehand(&["undo", &change]);
    assert!(output.status.success(), "{output:?}");
    let said = String::from_utf8(output.stdout).unwrap();
    for line in ["link is a link to run.sh", "empty is a file", "run.sh has permissions 600"] {
        assert!(said.lines().any(|said| said == line), "{line}: {said}");
    }
    assert_eq!(stage.files(), after);
    stage.json(&["redo"]);
    assert_eq!(stage.files(), before);
    // Files that others have changed since stay, and are named.
    fs::remove_file(stage.at("link")).unwrap();
    symlink("elsewhere", stage.at("link")).unwrap();
    let undone = stage.json(&["undo", &change]);
    assert_eq!((&undone["left"][0]["path"], &undone["left"][0]["why"]), (&json!("link"), &json!("entry_changed")));
    let expected = |path: &str| if path == "link" { Some(Thing::Link("elsewhere".into())) } else { after.get(path).cloned() };
    stage.files().into_iter().for_each(|(path, thing)| assert_eq!(Some(thing), expected(&path), "{path}"));
}

#[test]
fn only_what_is_named_is_restored() {
    let stage = Stage::new();
    work(&stage);
    let before = stage.files();
    stage.json(&["checkpoint", "mine"]);
    stage.shell("rm -rf notes src/main.rs run.sh");
    stage.write("notes/new.md", "later\n", 0o644);
    stage.json(&["restore", "notes", "--to", "mine", "--yes"]);
    let now = stage.files();
    for (path, thing) in &before {
        let is_named = path.starts_with("notes");
        let is_lost = ["src/main.rs", "run.sh"].contains(&path.as_str());
        assert_eq!(now.get(path) == Some(thing), is_named || !is_lost, "{path}");
    }
    assert!(!now.contains_key("notes/new.md"));
}

#[test]
fn nothing_is_restored_unasked() {
    let stage = Stage::new();
    work(&stage);
    stage.json(&["checkpoint", "mine"]);
    stage.shell("rm -rf notes");
    let without = stage.files();
    let output = stage.surehand(&["restore", "--to", "mine"]);
    assert!(!output.status.success(), "{output:?}");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(said.contains("create     notes/plan.md") && said.contains("--yes"), "{said}");
    assert_eq!(stage.files(), without);
    for (to, why) in [("zzz", "neither a time"), ("2001-01-01", "nothing is known of that time")] {
        let output = stage.surehand(&["restore", "--to", to, "--yes"]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && said.contains(why), "{said}");
    }
}

#[test]
fn a_preview_takes_no_checkpoint_and_a_time_that_is_too_early_names_the_oldest() {
    let stage = Stage::new();
    work(&stage);
    let none = stage.surehand(&["restore", "--to", "10m"]);
    assert!(String::from_utf8_lossy(&none.stderr).contains("there is no checkpoint"), "{none:?}");
    let oldest = stage.json(&["checkpoint"]);
    stage.write("src/main.rs", "fn main() { later() }\n", 0o644);
    let count = || stage.json(&["log", "--kind", "checkpoint"]).as_array().unwrap().len();
    let preview = stage.json(&["restore", "--to", "0s", "--dry-run"]);
    assert_eq!((preview["files"][0]["path"].as_str(), &preview["before"]), (Some("src/main.rs"), &Value::Null), "{preview:#}");
    assert!(!stage.surehand(&["restore", "--to", "0s"]).status.success());
    assert_eq!(count(), 1);
    let early = stage.surehand(&["restore", "--to", "10m", "--dry-run"]);
    let said = String::from_utf8_lossy(&early.stderr).into_owned();
    assert!(said.contains(&format!("the oldest checkpoint is {}", oldest["checkpoint"].as_str().unwrap())), "{said}");
    stage.json(&["restore", "--to", "0s", "--yes"]);
    assert_eq!(count(), 2);
}

/// A file that existed before the checkpoint but is not in it stays: it was ignored then.
#[test]
fn what_a_checkpoint_does_not_know_of_is_not_deleted() {
    let stage = Stage::new();
    work(&stage);
    stage.json(&["checkpoint", "mine"]);
    stage.write(".gitignore", "", 0o644);
    let restored = stage.json(&["restore", "build", "--to", "mine", "--yes"]);
    assert_eq!(restored["left"][0]["path"], "build/out.o", "{restored:#}");
    assert!(stage.at("build/out.o").exists());
    // Files that are too large are named.
    stage.write("film.bin", vec![0; 2000], 0o644);
    let output =
        stage.command(PROGRAM).args(["checkpoint", "--json"]).env("SUREHAND_CHECKPOINT_FILE_BYTES", "1000").output().unwrap();
    let said: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(said["not_kept"].to_string().contains("film.bin"), "{said:#}");
}

/// Repositories below the root: a clone, and a submodule that contains another one.
fn repositories_within(stage: &Stage) {
    stage.write("main.c", "int main;\n", 0o644);
    for top in ["vendor/lib", "source", "source/inner"] {
        stage.write(&format!("{top}/clean.c"), "clean\n", 0o644);
        stage.write(&format!("{top}/changed.c"), "committed\n", 0o644);
        stage.write(&format!("{top}/.gitignore"), "*.o\nbuild/\n.env\n", 0o644);
        stage.git(&["init", "-q", top]);
        stage.git(&["-C", top, "add", "-A"]);
        stage.git(&["-C", top, "commit", "-q", "-m", "x"]);
    }
    stage.git(&["-c", "protocol.file.allow=always", "submodule", "add", "-q", "./source", "sub"]);
    stage.write(".gitignore", "*.c.orig\n", 0o644);
    stage.commit();
    for top in ["vendor/lib", "source/inner", "sub"] {
        stage.write(&format!("{top}/changed.c"), format!("mine in {top}\n"), 0o600);
        stage.write(&format!("{top}/src/new.c"), format!("new in {top}\n"), 0o644);
        stage.write(&format!("{top}/kept.c.orig"), "the rules of the repository around it do not count\n", 0o644);
        stage.write(&format!("{top}/.env"), "SECRET=1\n", 0o600);
        stage.write(&format!("{top}/build/a.o"), "made anew", 0o644);
        symlink("changed.c", stage.at(&format!("{top}/link"))).unwrap();
    }
}

#[test]
fn uncommitted_work_in_repositories_within_comes_back() {
    let stage = Stage::new();
    repositories_within(&stage);
    let before = stage.files();
    stage.agent_runs("rm -rf vendor source sub");
    let last = stage.last_checkpoint();
    assert!(stage.surehand(&["restore", "--to", &last, "--yes"]).status.success());
    let after = stage.files();
    for top in ["vendor/lib", "source/inner", "sub"] {
        for name in ["changed.c", "src/new.c", "kept.c.orig", ".env", "link"] {
            let path = format!("{top}/{name}");
            assert_eq!((&path, after.get(&path)), (&path, before.get(&path)));
        }
        // Files that a repository has committed, and directories that it ignores, are not copied.
        assert_eq!(after.get(&format!("{top}/clean.c")), None);
        assert_eq!(after.get(&format!("{top}/build/a.o")), None);
    }
}

#[test]
fn a_repository_within_takes_no_room_from_the_one_around_it() {
    let stage = Stage::new();
    stage.git(&["init", "-q", "lib"]);
    stage.write("lib/small.txt", "small\n", 0o644);
    stage.write("large.txt", "x".repeat(2000), 0o644);
    let output = stage.command(PROGRAM).args(["checkpoint", "--json"]).env("SUREHAND_CHECKPOINT_BYTES", "2003").output().unwrap();
    let checkpoint: Value = serde_json::from_slice(&output.stdout).unwrap();
    let not_kept = checkpoint["not_kept"].as_array().unwrap();
    assert_eq!(
        not_kept.iter().map(|left| left["path"].as_str().unwrap()).collect::<Vec<_>>(),
        ["lib/small.txt"],
        "{checkpoint:#}"
    );
}

#[test]
fn a_restore_leaves_what_a_repository_within_has_done_since() {
    let stage = Stage::new();
    repositories_within(&stage);
    stage.surehand(&["checkpoint", "one"]);
    // No file of the clone is deleted, although the checkpoint does not contain it.
    fs::remove_file(stage.at("vendor/lib/clean.c")).unwrap();
    stage.write("vendor/lib/clean.c", "changed after\n", 0o644);
    stage.write("vendor/lib/after.c", "made after\n", 0o644);
    stage.write("vendor/lib/src/new.c", "changed again\n", 0o644);
    stage.shell("cd vendor/lib && git checkout -q changed.c && rm .env");
    let restored = stage.json(&["restore", "--to", "one", "--yes"]);
    let read = |path: &str| fs::read_to_string(stage.at(path)).unwrap();
    assert_eq!(read("vendor/lib/clean.c"), "changed after\n");
    assert_eq!(read("vendor/lib/after.c"), "made after\n");
    assert_eq!(read("vendor/lib/src/new.c"), "changed again\n");
    assert_eq!(restored["left"][0]["path"], "vendor/lib/src/new.c", "{restored:#}");
    // It had no uncommitted changes there.
    assert_eq!(read("vendor/lib/changed.c"), "mine in vendor/lib\n");
    assert_eq!(read("vendor/lib/.env"), "SECRET=1\n");
}

#[test]
fn a_file_that_a_person_made_a_directory_comes_back_as_one() {
    let stage = Stage::new();
    stage.write("a", "a file\n", 0o644);
    stage.write("d/x", "in a directory\n", 0o644);
    stage.write("e", "a file\n", 0o644);
    stage.commit();
    stage.shell("rm -r a d e && mkdir -p a/deep e && echo in > a/deep/in && echo file > d");
    let before = stage.files();
    stage.agent_runs("rm -rf a d e; git checkout .");
    let (committed, last) = (stage.files(), stage.last_checkpoint());
    let restored = stage.surehand(&["restore", "--to", &last, "--yes"]).stdout;
    assert_eq!(stage.files(), before);
    // Undo cannot revert this, so the output does not offer it.
    let said = String::from_utf8(restored).unwrap();
    let back = said.lines().find_map(|line| line.strip_prefix("To take it back: surehand restore --to ")).expect(&said);
    assert!(stage.surehand(&["restore", "--to", back, "--yes"]).status.success());
    assert_eq!(stage.files(), committed);
}

#[test]
fn a_checkpoint_gets_no_name_that_is_taken_for_a_time() {
    let stage = Stage::new();
    stage.write("a.txt", "one\n", 0o644);
    stage.commit();
    for name in ["10m", "14:05", "2026-01-31"] {
        let refused = stage.surehand(&["checkpoint", name]);
        assert_eq!(refused.status.code(), Some(2), "{refused:?}");
        assert!(String::from_utf8_lossy(&refused.stderr).contains("choose another name"), "{refused:?}");
    }
    assert!(stage.surehand(&["checkpoint", "10 minutes"]).status.success());
}

#[test]
fn a_directory_that_was_empty_and_is_not_stays() {
    let stage = Stage::new();
    stage.write("a.txt", "one\n", 0o644);
    stage.commit();
    fs::create_dir(stage.at("empty")).unwrap();
    stage.surehand(&["checkpoint", "one"]);
    stage.write("empty/new.txt", "new\n", 0o644);
    let restored = stage.json(&["restore", "--to", "one", "--yes"]);
    assert_eq!(restored["files"].as_array().unwrap().len(), 1, "{restored:#}");
    assert_eq!(stage.files().get("empty"), Some(&Thing::Directory));
    assert!(stage.surehand(&["undo"]).status.success());
    assert!(stage.at("empty/new.txt").exists());
}

#[test]
fn what_the_oldest_checkpoint_has_was_there_before() {
    let stage = Stage::new();
    stage.write("a.txt", "committed\n", 0o644);
    stage.commit();
    stage.write("mine.txt", "for days\n", 0o644);
    stage.agent_runs("rm -f mine.txt nothing");
    let last = stage.last_checkpoint();
    assert!(stage.surehand(&["restore", "--to", &last, "--yes"]).status.success());
    // The restore is recorded as the author of the file.
    let plan = stage.json(&["restore", "--to", "1h", "--dry-run"]);
    assert_eq!(plan["files"], json!([]), "{plan:#}");
}

#[test]
fn a_checkpoint_is_not_made_twice_of_one_state() {
    let stage = Stage::new();
    work(&stage);
    let first = stage.json(&["checkpoint"]);
    let second = stage.json(&["checkpoint"]);
    assert_eq!(first["checkpoint"], second["checkpoint"]);
    stage.agent_runs("ls; cat run.sh");
    stage.agent_runs("true > other.txt");
    let count = || {
        let log = stage.json(&["log", "-n", "100"]);
        log.as_array().unwrap().iter().filter(|entry| entry["checkpoint"].is_string()).count()
    };
    assert_eq!(count(), 1);
    stage.agent_runs("make -n || true");
    assert_eq!(count(), 2);
}

#[derive(Debug, Clone)]
enum Act {
    Write(String, Vec<u8>, u32),
    Link(String),
    Directory(String),
    Remove(String),
    Add,
    Commit,
}

fn act() -> impl Strategy<Value = Act> {
    let path = || "(a|b|c)(/(a|b)){0,2}";
    prop_oneof![
        6 => (path(), "[a-z\n]{0,6}", prop_oneof![Just(0o644), Just(0o755), Just(0o600)])
            .prop_map(|(path, content, mode)| Act::Write(path, content.into_bytes(), mode)),
        1 => path().prop_map(Act::Link),
        1 => path().prop_map(Act::Directory),
        2 => path().prop_map(Act::Remove),
        1 => Just(Act::Add),
        1 => Just(Act::Commit),
    ]
}

fn carry_out(stage: &Stage, act: &Act) {
    match act {
        // If a file is in the way of a directory or the other way round, the first one stays.
        Act::Write(path, content, mode) => {
            let path = stage.at(path);
            let _ = fs::create_dir_all(path.parent().unwrap());
            if !path.is_symlink() && fs::write(&path, content).is_ok() {
                fs::set_permissions(&path, fs::Permissions::from_mode(*mode)).unwrap();
            }
        }
        Act::Link(path) => {
            let path = stage.at(path);
            let _ = fs::create_dir_all(path.parent().unwrap());
            let _ = symlink("to/nowhere", path);
        }
        Act::Directory(path) => drop(fs::create_dir_all(stage.at(path))),
        Act::Remove(path) => {
            let path = stage.at(path);
            if path.is_symlink() || path.is_file() {
                fs::remove_file(path).unwrap();
            } else if path.is_dir() {
                fs::remove_dir_all(path).unwrap();
            }
        }
        Act::Add => stage.git(&["add", "-A"]),
        Act::Commit => stage.git(&["commit", "-q", "--allow-empty", "-m", "x"]),
    }
}

/// Empty directories that were added later stay, because they do no harm.
fn without_empty_directories(mut files: BTreeMap<String, Thing>) -> BTreeMap<String, Thing> {
    files.retain(|_, thing| *thing != Thing::Directory);
    files
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 8, max_shrink_iters: 60, ..ProptestConfig::default() })]
    #[test]
    fn whatever_is_done_a_restore_brings_it_back(
        first in prop::collection::vec(act(), 1..12),
        then in prop::collection::vec(act(), 1..12),
    ) {
        let stage = Stage::new();
        stage.git(&["commit", "-q", "--allow-empty", "-m", "x"]);
        first.iter().for_each(|act| carry_out(&stage, act));
        let before = stage.files();
        stage.json(&["checkpoint", "mine"]);
        then.iter().for_each(|act| carry_out(&stage, act));
        let restored = stage.json(&["restore", "--to", "mine", "--yes"]);
        prop_assert!(restored["failed"].as_array().is_none_or(Vec::is_empty), "{:#}", restored);
        let now = stage.files();
        prop_assert_eq!(without_empty_directories(now.clone()), without_empty_directories(before.clone()));
        for (path, thing) in before {
            prop_assert_eq!(now.get(&path), Some(&thing), "{}", path);
        }
    }
}
