//! Commands that an agent runs in a shell: lines that they print count as read, and their changes are attributed to
//! them.
#![expect(clippy::disallowed_methods, reason = "tests play the other programs")]

use std::{fs, path::Path, process};

use crate::fixture::*;
use serde_json::json;
use surehand_engine::{
    Session, ShellCommand, Workspace,
    core::{ChangeAuthor, outcome::CommandEffects},
    render,
    store::EventFilter,
};

/// Runs a command in the workspace, like an agent's shell tool.
fn run(session: &mut Session, dir: &Path, line: &str) -> CommandEffects {
    let directory = dir.to_str().unwrap();
    let running = session.command_begins(&ShellCommand { line, directory, output: "" });
    let output = process::Command::new("sh").args(["-c", line]).current_dir(dir).output().unwrap();
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    let output = String::from_utf8(output.stdout).unwrap();
    session.command_ended(running, &ShellCommand { line, directory, output: &output })
}

fn watching(dir: &Path) -> Session {
    let workspace = Workspace::open(dir, fast()).unwrap();
    workspace.start_watching();
    Session::new(workspace)
}

#[test]
fn lines_that_a_command_prints_count_as_read() {
    let ten: String = (1..=10).map(|line| format!("line {line}\n")).collect();
    let dir = lay_out(&[("a.txt", &ten), ("sub/b.txt", "alpha\nbeta\n"), ("c.txt", &ten)]);
    let mut session = watching(dir.path());
    let reply = run(&mut session, dir.path(), "sed -n '3,5p' a.txt");
    let read: Vec<(&str, String)> = reply.read.iter().map(|read| (read.path.as_str(), read.lines.to_string())).collect();
    assert_eq!(read, [("a.txt", "3-5".to_owned())]);
    assert!(!session.call("edit_file", &edit("a.txt", "line 4", "LINE 4")).is_error);
    // Lines that only went through a pipe do not count.
    let overwrite = json!({ "path": "a.txt", "content": "all\n" });
    assert_eq!(session.call("write_file", &overwrite).result["refusal"]["code"], "partial");
    run(&mut session, dir.path(), "cat c.txt | wc -l");
    assert_eq!(session.call("edit_file", &edit("c.txt", "line 1\n", "x\n")).result["refusal"]["code"], "unread");
    let reply = run(&mut session, dir.path(), "cat c.txt | head -3");
    assert_eq!(reply.read[0].lines.to_string(), "1-3");
    // A directory before the file names, and two files.
    let reply = run(&mut session, dir.path(), "cd sub && cat b.txt ../c.txt");
    assert_eq!(reply.read.len(), 2, "{reply:?}");
    assert!(!session.call("edit_file", &edit("sub/b.txt", "beta", "BETA")).is_error);
    assert!(!session.call("write_file", &json!({ "path": "c.txt", "content": "all\n" })).is_error);
}

#[test]
fn printed_files_are_in_the_state_of_the_repository() {
    let dir = lay_out(&[("a.txt", "one\n"), ("b.txt", "two\n"), ("c.txt", "three\n")]);
    let mut session = Session::new(Workspace::open(dir.path(), fast()).unwrap());
    run(&mut session, dir.path(), "cat a.txt b.txt");
    run(&mut session, dir.path(), "cat c.txt | wc -l");
    drop(session);
    fs::write(dir.path().join("b.txt"), "TWO\n").unwrap();
    let state = Workspace::open(dir.path(), fast()).unwrap().snapshot();
    let files: Vec<_> = state.files.iter().map(|file| (file.path.as_str(), file.changed_outside)).collect();
    assert_eq!(files, [("a.txt", false), ("b.txt", true)]);
}

#[test]
fn moves_and_deletions_of_unseen_files_are_undone() {
    let dir = lay_out(&[("old.txt", "text\n"), ("gone.txt", "more\n"), ("sub/c.txt", "three\n")]);
    let mut session = session(dir.path());
    for line in ["mv old.txt new.txt", "rm gone.txt", "mv sub/c.txt d.txt && echo 4 >> d.txt"] {
        run(&mut session, dir.path(), line);
    }
    let undo = json!({ "all": true });
    let reply = session.call("undo", &undo);
    assert!(!reply.is_error, "{}", reply.text);
    let content_of = |path: &str| fs::read_to_string(dir.path().join(path)).ok();
    assert_eq!(
        ["old.txt", "gone.txt", "sub/c.txt"].map(content_of),
        ["text\n", "more\n", "three\n"].map(|text| Some(text.to_owned()))
    );
    assert_eq!(["new.txt", "d.txt"].map(content_of), [None, None]);
}

#[test]
fn changes_of_a_command_are_attributed_to_it() {
    let dir = lay_out(&[("a.txt", "one\n"), ("b.txt", "two\n"), ("c.txt", "three\n")]);
    let mut session = watching(dir.path());
    ["a.txt", "b.txt", "c.txt"].iter().for_each(|path| read(&mut session, path));
    surehand_engine::testing::wait_for_watcher(session.workspace());
    // Another program changed it before the command began.
    fs::write(dir.path().join("c.txt"), "3\n").unwrap();
    let reply = run(&mut session, dir.path(), "sed -i s/one/1/ a.txt; rm b.txt; echo new > generated.txt");
    assert_eq!(
        json!(reply.changed),
        json!([
            { "path": "a.txt", "deleted": false, "by": "command" },
            { "path": "b.txt", "deleted": true, "by": "command" },
            { "path": "c.txt", "deleted": false, "by": "unknown" },
        ])
    );
    let rendered = render::command(&reply);
    assert!(rendered.contains("a.txt (by your command), b.txt (gone by your command), c.txt\n"), "{rendered}");
    assert!(reply.touched.iter().any(|path| path.as_str() == "generated.txt"), "{reply:?}");
    assert_eq!(session.call("edit_file", &edit("a.txt", "one", "two")).result["refusal"]["code"], "not_found");
    assert_eq!(session.call("edit_file", &edit("c.txt", "three", "two")).result["refusal"]["code"], "stale");

    // Another session sees the author, and people can undo the change.
    session.workspace().flush();
    let log = session.workspace().log(&EventFilter::default(), 10).unwrap();
    assert_eq!(log.len(), 1);
    assert_eq!(
        (log[0].files.len(), log[0].tool.as_str()),
        (3, "command: sed -i s/one/1/ a.txt; rm b.txt; echo new > generated.txt")
    );
    let reply = session.call("undo", &json!({}));
    assert!(!reply.is_error, "{}", reply.text);
    assert_eq!((content(dir.path(), "a.txt"), content(dir.path(), "b.txt")), ("one\n".to_owned(), "two\n".to_owned()));
    assert!(!dir.path().join("generated.txt").exists());
}

/// The view of a file follows it through the session's own commands.
#[test]
fn an_edit_after_an_own_command_is_not_refused() {
    let text = "first line\nsecond line\nthird line\n";
    let dir = lay_out(&[("a.txt", text), ("b.txt", text), ("c.txt", text)]);
    let mut session = session(dir.path());
    ["a.txt", "b.txt"].iter().for_each(|path| read(&mut session, path));
    run(&mut session, dir.path(), "sed -i 's/second/2nd/' a.txt; echo 'fourth line' >> b.txt");
    // It has not seen the second line after sed, but it knows the line that it appended.
    let overwrite = |path: &str| json!({ "path": path, "content": "all\n" });
    assert_eq!(session.call("write_file", &overwrite("a.txt")).result["refusal"]["code"], "partial");
    let edited = session.call("edit_file", &edit("a.txt", "third line", "3rd line"));
    assert!(!edited.is_error && !edited.text.contains("changed"), "{}", edited.text);
    assert!(!session.call("write_file", &overwrite("b.txt")).is_error);
    // In a file that it had not seen, it knows the line that it appended.
    run(&mut session, dir.path(), "printf 'fourth line\\nfifth line\\n' | tee -a c.txt > /dev/null");
    assert_eq!(session.call("write_file", &overwrite("c.txt")).result["refusal"]["code"], "partial");
    assert!(!session.call("edit_file", &edit("c.txt", "fifth line", "5th line")).is_error);
}

#[test]
fn a_here_document_is_known_to_its_author() {
    let dir = lay_out(&[("old.txt", "old text\n")]);
    let mut session = session(dir.path());
    run(
        &mut session,
        dir.path(),
        "mkdir -p sub && cat > sub/new.rs <<'EOF'\nfn main() {\n    run();\n}\nEOF\ncat > old.txt <<E\nnew text\nE",
    );
    for path in ["sub/new.rs", "old.txt"] {
        let reply = session.call("write_file", &json!({ "path": path, "content": "all\n" }));
        assert!(!reply.is_error, "{path}: {}", reply.text);
    }
    // It is recorded like any other change.
    let undone = session.call("undo", &json!({ "path": "old.txt" }));
    assert!(!undone.is_error, "{}", undone.text);
    session.call("undo", &json!({ "path": "old.txt" }));
    assert_eq!(content(dir.path(), "old.txt"), "old text\n");
}

#[test]
fn text_of_another_program_during_a_command_is_not_known() {
    let dir = lay_out(&[("a.txt", "one line\n")]);
    let mut session = session(dir.path());
    // The text of a program that the command only names is not in the command.
    run(&mut session, dir.path(), "sh -c \"printf 'made %s\\n' up > made.txt\"; cp a.txt copy.txt");
    for path in ["made.txt", "copy.txt"] {
        assert_eq!(session.call("edit_file", &edit(path, "x", "y")).result["refusal"]["code"], "unread", "{path}");
    }
}

#[test]
fn a_view_follows_a_file_that_a_command_moves() {
    let dir = lay_out(&[
        ("a.txt", "one line\n"),
        ("src/b.txt", "two lines\nof text\n"),
        ("src/deep/c.txt", "three lines\n"),
        ("to/x", ""),
    ]);
    let mut session = session(dir.path());
    ["a.txt", "src/b.txt", "src/deep/c.txt"].iter().for_each(|path| read(&mut session, path));
    run(&mut session, dir.path(), "mv a.txt z.txt && mv src lib");
    for (path, old) in [("z.txt", "one line"), ("lib/b.txt", "of text"), ("lib/deep/c.txt", "three lines")] {
        let reply = session.call("edit_file", &edit(path, old, "new"));
        assert!(!reply.is_error, "{path}: {}", reply.text);
    }
    run(&mut session, dir.path(), "cd lib; mv b.txt ../to");
    assert!(!session.call("edit_file", &edit("to/b.txt", "two lines", "2")).is_error);
    session.workspace().flush();
    let log = session.workspace().log(&EventFilter::default(), 10).unwrap();
    let moves: Vec<String> = log
        .iter()
        .flat_map(|change| &change.files)
        .filter(|event| event.moved_to.is_some())
        .map(surehand_engine::change_log::what_happened)
        .collect();
    assert_eq!(
        moves,
        [
            "lib/b.txt moved to to/b.txt",
            "a.txt moved to z.txt",
            "src/b.txt moved to lib/b.txt",
            "src/deep/c.txt moved to lib/deep/c.txt"
        ]
    );
    // A copy is not a move, and the old name has no file.
    run(&mut session, dir.path(), "cp z.txt y.txt");
    assert_eq!(session.call("edit_file", &edit("y.txt", "new", "x")).result["refusal"]["code"], "unread");
    assert_eq!(session.call("edit_file", &edit("a.txt", "new", "x")).result["refusal"]["code"], "not_found");
}

#[test]
fn without_a_watcher_the_files_are_checked() {
    let dir = lay_out(&[("a.txt", "one\n"), ("b.txt", "two\n")]);
    let mut session = session(dir.path());
    let mut other = self::session(dir.path());
    for session in [&mut session, &mut other] {
        ["a.txt", "b.txt"].iter().for_each(|path| read(session, path));
    }
    let reply = run(&mut session, dir.path(), "printf 'more\\n' >> a.txt; touch b.txt");
    assert_eq!(json!(reply.changed), json!([{ "path": "a.txt", "deleted": false, "by": "command" }]));
    // Also with more files than one call checks.
    let names: Vec<String> = (0..120).map(|number| format!("{number}.txt")).collect();
    names.iter().for_each(|name| fs::write(dir.path().join(name), "x\n").unwrap());
    names.iter().for_each(|name| read(&mut session, name));
    let reply = run(&mut session, dir.path(), "for file in [0-9]*.txt; do echo y > $file; done");
    assert_eq!((reply.changed.len(), reply.changed.iter().all(|file| file.by == ChangeAuthor::Command)), (120, true));
    session.workspace().flush();
    let reply = other.call("forget", &json!({ "paths": [] }));
    assert!(reply.text.contains("a.txt (by a command of another session)"), "{}", reply.text);
}

/// Another program changes a file, whether the session is notified or not. Then a command changes it again: only that
/// change belongs to the command.
#[test]
fn undoing_a_command_keeps_earlier_changes_of_others() {
    for (watches, is_notified) in [(false, false), (true, false), (false, true), (true, true)] {
        let dir = lay_out(&[("a.txt", "one\n")]);
        let mut session = if watches { watching(dir.path()) } else { session(dir.path()) };
        read(&mut session, "a.txt");
        surehand_engine::testing::wait_for_watcher(session.workspace());
        fs::write(dir.path().join("a.txt"), "one\ntheirs\n").unwrap();
        if is_notified {
            let reply = session.call("forget", &json!({ "paths": [] }));
            assert!(reply.text.contains("a.txt"), "{}", reply.text);
        }
        run(&mut session, dir.path(), "echo more >> a.txt");
        let reply = session.call("undo", &json!({}));
        assert!(!reply.is_error, "{}", reply.text);
        assert_eq!(content(dir.path(), "a.txt"), "one\ntheirs\n", "watches: {watches}, is notified: {is_notified}");
    }
}
