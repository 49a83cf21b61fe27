//! Directory instructions: when they are noticed, with and without a watcher, which sessions receive them, and at which
//! directory the search ends.
#![expect(clippy::disallowed_methods, reason = "tests play the other programs")]

use std::{fs, os::unix::fs::symlink, path::Path};

use crate::fixture::*;
use serde_json::{Value, json};
use surehand_engine::{
    Config, Session, SessionId, Workspace,
    core::edit::{UndoRequest, UndoTarget, WhoseChanges},
};

/// A session with or without a file watcher.
fn session_that(watches: bool, dir: &Path) -> Session {
    let workspace = Workspace::open(dir, fast()).unwrap();
    if watches {
        workspace.start_watching();
    }
    Session::new(workspace)
}

/// The files whose instructions come with a listing of a directory.
fn given(session: &mut Session, directory: &str) -> Vec<String> {
    let reply = session.call("list_files", &json!({ "path": directory }));
    assert!(!reply.is_error, "{}", reply.text);
    let paths = reply.result.get("instructions").and_then(Value::as_array).cloned().unwrap_or_default();
    assert_eq!(reply.text.contains("--- instructions for work in "), !paths.is_empty(), "{}", reply.text);
    paths.iter().map(|path| path.as_str().unwrap().to_owned()).collect()
}

fn put(dir: &Path, path: &str, content: &str) {
    fs::create_dir_all(dir.join(path).parent().unwrap()).unwrap();
    fs::write(dir.join(path), content).unwrap();
}

/// Makes a change in a workspace that a session knows, and checks which instructions follow, with and without a
/// watcher.
#[track_caller]
fn check(files: &[(&str, &str)], directory: &str, change: impl Fn(&Path), expected: &[&str]) {
    for watches in [true, false] {
        let dir = lay_out(files);
        let mut session = session_that(watches, dir.path());
        read(&mut session, files[0].0);
        // The watcher needs some time to start. Until then, the session checks everything.
        for _ in 0..2 {
            given(&mut session, directory);
            assert_eq!(given(&mut session, directory), [""; 0]);
            surehand_engine::testing::wait_for_watcher(session.workspace());
        }
        change(dir.path());
        assert_eq!(given(&mut session, directory), expected, "watches: {watches}");
        assert_eq!(given(&mut session, directory), [""; 0], "once, watches: {watches}");
    }
}

const SRC: &[(&str, &str)] = &[("a.txt", "one\n"), ("src/b.txt", "two\n")];

#[test]
fn a_new_file_in_a_known_directory_is_noticed() {
    check(SRC, "src", |dir| put(dir, "src/AGENTS.md", "x\n"), &["src/AGENTS.md"]);
    check(SRC, "src", |dir| put(dir, "AGENTS.md", "x\n"), &["AGENTS.md"]);
    check(SRC, "src", |dir| put(dir, "src/agents.md", "x\n"), &["src/agents.md"]);
    check(SRC, "src", |dir| put(dir, "src/readme.md", "x\n"), &[]);
}

#[test]
fn a_file_that_gets_something_to_say_is_noticed() {
    let files = [SRC, &[("src/AGENTS.md", "\n")]].concat();
    check(&files, "src", |dir| put(dir, "src/AGENTS.md", "x\n"), &["src/AGENTS.md"]);
}

#[test]
fn ignored_files_are_noticed_as_well() {
    let files = [("a.txt", "one\n"), (".gitignore", "/target\n"), ("target/deep/b.txt", "two\n")];
    check(&files, "target/deep", |dir| put(dir, "target/deep/AGENTS.md", "x\n"), &["target/deep/AGENTS.md"]);
    check(&files, "target/deep", |dir| put(dir, "target/AGENTS.md", "x\n"), &["target/AGENTS.md"]);
}

#[test]
fn a_directory_that_is_replaced_is_another_one() {
    let files = [SRC, &[("src/AGENTS.md", "old\n"), ("other/deep/AGENTS.md", "new\n")]].concat();
    let replace = |dir: &Path| {
        fs::rename(dir.join("src"), dir.join("gone")).unwrap();
        fs::rename(dir.join("other/deep"), dir.join("src")).unwrap();
    };
    check(&files, "src", replace, &["src/AGENTS.md"]);
}

#[test]
fn a_link_that_leads_elsewhere_is_noticed() {
    let link = |dir: &Path, to: &str| {
        let _ = fs::remove_file(dir.join("rules"));
        symlink(to, dir.join("rules")).unwrap();
    };
    let files = [SRC, &[("old.md", "old\n"), ("new.md", "new\n")]].concat();
    check(&files, "src", |dir| symlink("../old.md", dir.join("src/AGENTS.md")).unwrap(), &["src/AGENTS.md"]);
    for watches in [true, false] {
        let dir = lay_out(&files);
        link(dir.path(), "old.md");
        symlink("../rules", dir.path().join("src/AGENTS.md")).unwrap();
        let mut session = session_that(watches, dir.path());
        read(&mut session, "a.txt");
        assert_eq!(given(&mut session, "src"), ["src/AGENTS.md"]);
        surehand_engine::testing::wait_for_watcher(session.workspace());
        assert_eq!(given(&mut session, "src"), [""; 0]);
        link(dir.path(), "new.md");
        assert_eq!(given(&mut session, "src"), ["src/AGENTS.md"], "watches: {watches}");
        put(dir.path(), "new.md", "newer\n");
        assert_eq!(given(&mut session, "src"), ["src/AGENTS.md"], "watches: {watches}");
    }
}

#[test]
fn a_link_that_leads_nowhere_is_noticed_when_it_leads_somewhere() {
    for watches in [true, false] {
        let dir = lay_out(SRC);
        symlink("../rules.md", dir.path().join("src/AGENTS.md")).unwrap();
        let mut session = session_that(watches, dir.path());
        read(&mut session, "a.txt");
        assert_eq!(given(&mut session, "src"), [""; 0], "it leads nowhere");
        surehand_engine::testing::wait_for_watcher(session.workspace());
        assert_eq!(given(&mut session, "src"), [""; 0]);
        put(dir.path(), "rules.md", "x\n");
        assert_eq!(given(&mut session, "src"), ["src/AGENTS.md"], "watches: {watches}");
    }
}

#[test]
fn nothing_above_the_root_is_given() {
    let dir = lay_out(&[("AGENTS.md", "not yours\n"), ("root/AGENTS.md", "yours\n"), ("root/src/a.txt", "one\n")]);
    symlink("../../AGENTS.md", dir.path().join("root/src/AGENTS.md")).unwrap();
    let mut session = session(&dir.path().join("root"));
    assert_eq!(given(&mut session, "src"), ["AGENTS.md"]);
    let reply = session.call("read_file", &json!({ "path": "src/a.txt" }));
    assert!(!reply.text.contains("not yours"), "{}", reply.text);
}

#[test]
fn a_session_continued_in_another_process_keeps_its_instructions() {
    let dir = lay_out(&[("AGENTS.md", "one\n"), ("src/AGENTS.md", "two\n")]);
    let session = |name: &str| Session::continued(Workspace::open(dir.path(), fast()).unwrap(), SessionId(name.to_owned()));
    assert_eq!(given(&mut session("s"), "src"), ["AGENTS.md", "src/AGENTS.md"]);
    assert_eq!(given(&mut session("s"), "src"), [""; 0]);
    assert_eq!(given(&mut session("other"), "."), ["AGENTS.md"], "each has its own");
    put(dir.path(), "src/AGENTS.md", "2\n");
    assert_eq!(given(&mut session("s"), "src"), ["src/AGENTS.md"]);
    session("s").call("forget", &json!({ "paths": ["AGENTS.md"] }));
    assert_eq!(given(&mut session("s"), "src"), ["AGENTS.md"]);
    session("s").reset();
    assert_eq!(given(&mut session("s"), "src"), ["AGENTS.md", "src/AGENTS.md"]);
}

#[test]
fn a_library_asks_for_them_by_path() {
    let dir = lay_out(&[("AGENTS.md", "Use tabs.\n"), ("src/AGENTS.md", "No unwrap.\n"), ("src/a.rs", "fn a() {}\n")]);
    let mut session = session(dir.path());
    assert_eq!(session.agents_md_if_new("../x"), None);
    let text = session.agents_md_if_new("src/new/not_there_yet.rs").unwrap();
    assert!(text.find("Use tabs.").unwrap() < text.find("No unwrap.").unwrap(), "{text}");
    assert_eq!(session.agents_md_if_new("src/a.rs"), None);
    let reply = session.call("read_file", &json!({ "path": "src/a.rs" }));
    assert_eq!(reply.result.get("instructions"), None, "they are not in the reply as well");

    let workspace = session.workspace().clone();
    session.tracker().unwrap().clear_session(&workspace);
    assert!(session.agents_md_if_new("src").unwrap().contains("No unwrap."));
    session.reset();
    assert!(!session.agents_md_if_new("").unwrap().contains("No unwrap."));
}

#[test]
fn without_a_tracker_they_are_given_once_all_the_same() {
    let dir = lay_out(&[("AGENTS.md", "Use tabs.\n"), ("a.txt", "one\n")]);
    let mut session = Session::untracked(Workspace::open(dir.path(), fast()).unwrap());
    assert_eq!(given(&mut session, "."), ["AGENTS.md"]);
    assert_eq!(given(&mut session, "."), [""; 0]);
    session.reset();
    assert_eq!(given(&mut session, "."), ["AGENTS.md"]);
}

#[test]
fn people_are_not_instructed() {
    let dir = lay_out(&[("AGENTS.md", "Use tabs.\n")]);
    session(dir.path()).call("write_file", &json!({ "path": "a.txt", "content": "one\n" }));
    let outcome = session(dir.path()).undo(&UndoRequest { which: UndoTarget::Last, by: WhoseChanges::Anyone, force: false });
    assert!(!outcome.is_refused() && outcome.notes.instructions.is_none(), "{outcome:?}");
}

#[test]
fn a_search_through_many_directories_gives_them_over_several_replies() {
    let files: Vec<(String, String)> = (0..100)
        .flat_map(|n| [(format!("d{n}/AGENTS.md"), format!("rule {n}\n")), (format!("d{n}/a.txt"), "needle\n".to_owned())])
        .collect();
    let files: Vec<(&str, &str)> = files.iter().map(|(path, content)| (path.as_str(), content.as_str())).collect();
    let dir = lay_out(&files);
    let mut session = session(dir.path());
    let mut all = Vec::new();
    for _ in 0..5 {
        let reply = session.call("search_files", &json!({ "pattern": "needle" }));
        all.extend(reply.result["instructions"].as_array().unwrap().clone());
    }
    all.sort_by_key(Value::to_string);
    all.dedup();
    assert_eq!(all.len(), 100, "each once");
    assert_eq!(session.call("search_files", &json!({ "pattern": "needle" })).result.get("instructions"), None);
}

#[test]
fn names_can_be_set_in_the_environment() {
    let dir = lay_out(&[("AGENTS.md", "one\n"), ("CLAUDE.md", "two\n"), ("surehand.toml", "[instructions]\nnames = []\n")]);
    let load = |value: &str| Config::load(dir.path(), [("SUREHAND_INSTRUCTIONS_NAMES".to_owned(), value.to_owned())]);
    let names = |value: &str| load(value).unwrap().instructions.names;
    assert_eq!(names(" CLAUDE.md, AGENTS.md,"), ["CLAUDE.md", "AGENTS.md"]);
    assert_eq!(names(""), [""; 0]);
    for bad in ["../AGENTS.md", "AGENTS.md,.."] {
        let error = load(bad).unwrap_err().to_string();
        assert!(error.contains("instructions.names must be a list of file names"), "{error}");
    }
    let mut session = Session::new(Workspace::open(dir.path(), load("CLAUDE.md").unwrap()).unwrap());
    assert_eq!(given(&mut session, "."), ["CLAUDE.md"]);
}
