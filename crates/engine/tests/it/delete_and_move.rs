//! Deleting and moving files is as safe as editing them, whatever other programs do meanwhile.
#![expect(clippy::disallowed_methods, reason = "tests play the other programs")]

use std::{
    fs::{self, OpenOptions},
    io::Write,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::Path,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use crate::fixture::*;
use serde_json::{Value, json};
use surehand_engine::{
    Config, Session,
    testing::{CommitStep, ProbeVerdict, steps},
};
use surehand_testkit::scenario::tree;

const FILES: &[(&str, &str)] =
    &[("edit.txt", "one\n"), ("delete.txt", "delete me\n"), ("move.txt", "move me\n"), ("both.txt", "move\nand edit me\n")];

fn patch() -> Value {
    let patch = "*** Begin Patch
*** Update File: edit.txt
@@
-one
+two
*** Delete File: delete.txt
*** Update File: move.txt
*** Move to: deep/down/moved.txt
*** Update File: both.txt
*** Move to: deep/both.txt
@@
 move
-and edit me
+and edited
*** Add File: new/added.txt
+added
*** End Patch
";
    json!({ "patch": patch })
}

/// Deletions, moves, edits and a new file in one patch: any prefix of its steps, then a crash, then recovery.
#[test]
fn a_crash_after_any_step_of_a_patch_leaves_all_or_nothing() {
    let done = [
        ("deep/both.txt", "move\nand edited\n"),
        ("deep/down/moved.txt", "move me\n"),
        ("edit.txt", "two\n"),
        ("new/added.txt", "added\n"),
    ];
    let done = done.map(|(path, content)| (path.to_owned(), content.as_bytes().to_vec())).into_iter().collect();
    for stop_after in 0..steps(6).len() {
        let dir = lay_out(FILES);
        let before = tree(dir.path());
        let stop = move |number, _| if number == stop_after { ProbeVerdict::Stop } else { ProbeVerdict::GoOn };
        let mut crashing = session_with(dir.path(), stop);
        FILES.iter().for_each(|(path, _)| read(&mut crashing, path));
        let reply = crashing.call("apply_patch", &patch());
        assert!(reply.is_error, "stopped after step {stop_after}: {}", reply.text);
        std::mem::forget(crashing);

        drop(session(dir.path()));
        let after = tree(dir.path());
        assert!(after == before || after == done, "stopped after step {stop_after}: {after:?}");
        for made in ["deep", "new"] {
            assert_eq!(dir.path().join(made).exists(), after == done, "no empty directory is left after step {stop_after}");
        }
        assert_tidy(dir.path());
    }
}

/// Another program writes the file in various ways after any step of its deletion or move. Its bytes are always kept.
#[test]
fn a_foreign_change_while_a_file_is_taken_away_is_never_lost() {
    let in_place = |path: &Path| fs::write(path, "theirs\n").unwrap();
    let by_rename = |path: &Path| {
        fs::write(path.with_extension("tmp"), "theirs\n").unwrap();
        fs::rename(path.with_extension("tmp"), path).unwrap();
    };
    let appending = |path: &Path| {
        let Ok(mut file) = OpenOptions::new().append(true).open(path) else { return fs::write(path, "theirs\n").unwrap() };
        file.write_all(b"theirs").unwrap();
        std::thread::sleep(Duration::from_millis(3));
        file.write_all(b"\n").unwrap();
    };
    let writers: [fn(&Path); 3] = [in_place, by_rename, appending];
    let calls = [("delete_file", json!({ "path": "a.txt" })), ("move_file", json!({ "from": "a.txt", "to": "sub/b.txt" }))];
    for (kind, writer) in writers.into_iter().enumerate() {
        for (tool, call) in &calls {
            for at in 0..steps(1).len() {
                let dir = lay_out(&[("a.txt", "one\n")]);
                let target = dir.path().join("a.txt");
                let foreign = Foreign::default();
                let mut session = session_with(dir.path(), foreign.after(at, target, writer));
                read(&mut session, "a.txt");
                let reply = session.call(tool, call);
                foreign.join();
                drop(session);
                drop(self::session(dir.path()));
                assert!(
                    is_somewhere(dir.path(), "theirs"),
                    "writer {kind}, {tool}, after step {at}: {:?}, reply {}",
                    tree(dir.path()),
                    reply.text
                );
            }
        }
    }
}

/// Another program creates a file at the destination of a move. It is not overwritten.
#[test]
fn a_file_that_appears_where_another_is_moved_to_stays() {
    for at in 0..steps(1).len() {
        let dir = lay_out(&[("a.txt", "ours\n")]);
        let target = dir.path().join("b.txt");
        let appear = move || drop(fs::File::create_new(&target).map(|mut file| file.write_all(b"theirs\n")));
        let mut session = session_with(dir.path(), {
            let appear = once(|_| true, appear);
            move |number, step| if number >= at { appear(number, step) } else { ProbeVerdict::GoOn }
        });
        read(&mut session, "a.txt");
        let reply = session.call("move_file", &json!({ "from": "a.txt", "to": "b.txt" }));
        drop(session);
        // After the swap the name is taken.
        let appeared = at < 4;
        assert_eq!(reply.is_error, appeared, "after step {at}: {}", reply.text);
        assert_eq!(is_somewhere(dir.path(), "theirs"), appeared, "after step {at}");
        assert_eq!(content(dir.path(), if appeared { "a.txt" } else { "b.txt" }), "ours\n", "after step {at}");
        assert_tidy(dir.path());
    }
}

#[test]
fn a_moved_file_is_the_same_file() {
    let dir = lay_out(&[("a.txt", "one\n")]);
    let path = dir.path().join("a.txt");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o751)).unwrap();
    fs::hard_link(&path, dir.path().join("other.txt")).unwrap();
    let inode = fs::metadata(&path).unwrap().ino();
    let mut session = session(dir.path());
    read(&mut session, "a.txt");
    let reply = session.call("move_file", &json!({ "from": "a.txt", "to": "b.txt" }));
    assert!(!reply.is_error, "{}", reply.text);
    let moved = fs::metadata(dir.path().join("b.txt")).unwrap();
    assert_eq!((moved.ino(), moved.nlink(), moved.permissions().mode() & 0o777), (inode, 2, 0o751));
}

#[test]
fn a_file_that_is_moved_and_edited_keeps_its_mode() {
    let dir = lay_out(FILES);
    fs::set_permissions(dir.path().join("both.txt"), fs::Permissions::from_mode(0o750)).unwrap();
    let mut session = session(dir.path());
    FILES.iter().for_each(|(path, _)| read(&mut session, path));
    let reply = session.call("apply_patch", &patch());
    assert!(!reply.is_error, "{}", reply.text);
    assert_eq!(fs::metadata(dir.path().join("deep/both.txt")).unwrap().permissions().mode() & 0o777, 0o750);
    let before = fs::metadata(dir.path().join("deep/both.txt")).unwrap().permissions();
    // The whole patch can be undone.
    let reply = session.call("undo", &json!({}));
    assert!(!reply.is_error, "{}", reply.text);
    let expected = FILES.iter().map(|(path, content)| (path.to_string(), content.as_bytes().to_vec())).collect();
    assert_eq!(tree(dir.path()), expected);
    assert_eq!(fs::metadata(dir.path().join("both.txt")).unwrap().permissions(), before);
}

/// A crash during a batch, and its directory is gone before the next start: the deletion was rolled back, so the file
/// is kept.
#[test]
fn a_deleted_file_without_a_place_to_go_back_to_is_rescued() {
    let dir = lay_out(&[("sub/a.txt", "one\n"), ("b.txt", "two\n")]);
    let mut crashing = session_with(dir.path(), crash_after(CommitStep::Verify(0)));
    ["sub/a.txt", "b.txt"].iter().for_each(|path| read(&mut crashing, path));
    let patch = "*** Begin Patch\n*** Delete File: sub/a.txt\n*** Update File: b.txt\n@@\n-two\n+2\n*** End Patch\n";
    crashing.call("apply_patch", &json!({ "patch": patch }));
    std::mem::forget(crashing);
    fs::remove_dir(dir.path().join("sub")).unwrap();

    let reply = session(dir.path()).call("read_file", &json!({ "path": "b.txt" }));
    assert_eq!((content(dir.path(), "b.txt"), rescued(dir.path())), ("two\n".to_owned(), vec!["one\n".to_owned()]));
    assert!(reply.text.contains(".git/surehand/checkouts/main/rescued/1-sub__a.txt"), "{}", reply.text);
}

/// A batch is rolled back whose new files have equal contents and are all open in other programs: each is a file of its
/// own.
#[test]
fn new_files_that_are_taken_back_do_not_replace_each_other() {
    let dir = lay_out(&[("a.txt", "one\n")]);
    let handles: Arc<Mutex<Vec<fs::File>>> = Arc::default();
    let (theirs, root) = (handles.clone(), dir.path().to_owned());
    let open_them = move || {
        let open = |name: &str| OpenOptions::new().append(true).open(root.join(name)).unwrap();
        theirs.lock().unwrap().extend(["x.txt", "y.txt"].map(open));
        fs::write(root.join("a.txt"), "theirs\n").unwrap();
    };
    let mut session = session_with(dir.path(), once(|step| step == CommitStep::Verify(1), open_them));
    read(&mut session, "a.txt");
    let batch = [edit("x.txt", "", "same\n"), edit("y.txt", "", "same\n"), edit("a.txt", "one", "two")];
    assert!(session.call("multi_edit", &edits(&batch)).is_error);
    for (file, late) in handles.lock().unwrap().drain(..).zip(["late x", "late y"]) {
        (&file).write_all(late.as_bytes()).unwrap();
    }
    drop(session);
    assert!(is_somewhere(dir.path(), "late x"));
    assert!(is_somewhere(dir.path(), "late y"));
}

/// A batch was rolled back, and the process died before the second look at the files that it had created.
#[test]
fn a_new_file_that_was_taken_back_is_found_after_a_crash() {
    for is_written in [false, true] {
        let dir = lay_out(&[("a.txt", "one\n")]);
        let handle: Arc<Mutex<Option<fs::File>>> = Arc::default();
        let (theirs, root) = (handle.clone(), dir.path().to_owned());
        let commits = AtomicUsize::new(0);
        let mut crashing = session_with(dir.path(), move |_, step| {
            commits.fetch_add(usize::from(step == CommitStep::Lock), Ordering::SeqCst);
            if commits.load(Ordering::SeqCst) > 1 {
                return ProbeVerdict::Stop;
            }
            if step == CommitStep::Verify(0) {
                *theirs.lock().unwrap() = OpenOptions::new().append(true).open(root.join("new.txt")).ok();
                fs::write(root.join("a.txt"), "theirs\n").unwrap();
            }
            ProbeVerdict::GoOn
        });
        read(&mut crashing, "a.txt");
        let batch = [edit("new.txt", "", "new\n"), edit("a.txt", "one", "two")];
        assert_eq!(crashing.call("multi_edit", &edits(&batch)).result["refusal"]["code"], "stale");
        assert!(crashing.call("write_file", &json!({ "path": "other.txt", "content": "" })).is_error, "it dies here");
        std::mem::forget(crashing);
        let mut handle = handle.lock().unwrap().take().unwrap();
        if is_written {
            handle.write_all(b"late\n").unwrap();
        }
        drop(handle);
        drop(session(dir.path()));
        assert_eq!(rescued(dir.path()), if is_written { vec!["new\nlate\n"] } else { vec![] });
        assert_eq!(fs::read_dir(dir.path().join(".git/surehand/checkouts/main/staged")).unwrap().count(), 0);
        assert!(!dir.path().join("new.txt").exists());
    }
}

/// If a file has several hard links, the link that the caller names is deleted or moved, whichever link it was read by.
#[test]
fn of_several_names_the_one_in_the_call_is_removed() {
    let patch = |patch: &str| json!({ "patch": format!("*** Begin Patch\n{patch}*** End Patch\n") });
    let calls = [
        ("delete_file", json!({ "path": "b.txt" }), vec!["a.txt"]),
        ("move_file", json!({ "from": "b.txt", "to": "c.txt" }), vec!["a.txt", "c.txt"]),
        ("apply_patch", patch("*** Delete File: b.txt\n"), vec!["a.txt"]),
        ("apply_patch", patch("*** Update File: b.txt\n*** Move to: c.txt\n"), vec!["a.txt", "c.txt"]),
        ("apply_patch", patch("*** Update File: b.txt\n*** Move to: c.txt\n@@\n-one\n+two\n"), vec!["a.txt", "c.txt"]),
        ("apply_patch", patch("*** Delete File: a.txt\n*** Delete File: b.txt\n"), vec![]),
    ];
    for (tool, call, left) in calls {
        let dir = lay_out(&[("a.txt", "one\n")]);
        fs::hard_link(dir.path().join("a.txt"), dir.path().join("b.txt")).unwrap();
        let mut session = session(dir.path());
        read(&mut session, "a.txt");
        let reply = session.call(tool, &call);
        assert!(!reply.is_error, "{}", reply.text);
        assert_eq!(tree(dir.path()).into_keys().collect::<Vec<_>>(), left, "{tool} {call}");
        assert!(!session.call("undo", &json!({})).is_error);
        assert_eq!(tree(dir.path()).into_keys().collect::<Vec<_>>(), ["a.txt", "b.txt"], "{tool} {call}, undone");
        drop(session);
        assert_tidy(dir.path());
    }
}

/// A second hard link to one of git's files must not be removed either.
#[test]
fn internals_do_not_go_by_another_name() {
    let dir = lay_out(&[("a.txt", "one\n"), (".git/config", "")]);
    fs::hard_link(dir.path().join("a.txt"), dir.path().join(".git/a")).unwrap();
    let mut session = session(dir.path());
    read(&mut session, "a.txt");
    let reply = session.call("delete_file", &json!({ "path": ".git/a" }));
    assert_eq!(reply.result["refusal"]["code"], "protected", "{}", reply.text);
    assert!(dir.path().join(".git/a").exists());
}

/// One name of a file is deleted, and the file is edited under another name. No other program wrote, so nothing is
/// rescued.
#[test]
fn an_edit_by_another_name_is_not_rescued_from_a_deleted_one() {
    let dir = lay_out(&[("a.txt", "one\n")]);
    fs::hard_link(dir.path().join("a.txt"), dir.path().join("b.txt")).unwrap();
    let mut session = session(dir.path());
    read(&mut session, "a.txt");
    assert!(!session.call("delete_file", &json!({ "path": "a.txt" })).is_error);
    read(&mut session, "b.txt");
    assert!(!session.call("edit_file", &edit("b.txt", "one", "two")).is_error);
    drop(session);
    assert_eq!(content(dir.path(), "b.txt"), "two\n");
    assert_tidy(dir.path());
}

/// The crash came during the commit. Before the next start, another program removed or moved the directory, which was
/// empty by then.
#[test]
fn a_deleted_file_whose_directory_is_gone_is_not_lost_in_recovery() {
    for is_moved in [false, true] {
        let dir = lay_out(&[("sub/a.txt", "precious\n"), ("b.txt", "one\n")]);
        let mut crashing = session_with(dir.path(), crash_after(CommitStep::Verify(0)));
        read(&mut crashing, "sub/a.txt");
        read(&mut crashing, "b.txt");
        let patch =
            "*** Begin Patch\n*** Delete File: sub/a.txt\n*** Update File: b.txt\n@@\n-one\n+two\n*** End Patch\n".to_owned();
        assert!(crashing.call("apply_patch", &json!({ "patch": patch })).is_error);
        std::mem::forget(crashing);
        if is_moved {
            fs::rename(dir.path().join("sub"), dir.path().join("moved")).unwrap();
        } else {
            fs::remove_dir(dir.path().join("sub")).unwrap();
        }
        drop(session(dir.path()));
        assert_eq!(content(dir.path(), "b.txt"), "one\n");
        assert!(is_somewhere(dir.path(), "precious"));
    }
}

/// Recovery settles everything except a file that another program has open, and no later call has to wait for that
/// file.
#[test]
fn a_file_that_waits_after_a_crash_does_not_delay_later_calls() {
    let dir = lay_out(&[("open.txt", "one\n"), ("a.txt", "one\n"), ("hard.txt", "one\n")]);
    fs::hard_link(dir.path().join("hard.txt"), dir.path().join("other-name.txt")).unwrap();
    let held_open = fs::File::open(dir.path().join("open.txt")).unwrap();
    let mut crashing = session_with(dir.path(), crash_after(CommitStep::Verify(1)));
    ["open.txt", "a.txt", "hard.txt"].iter().for_each(|path| read(&mut crashing, path));
    assert!(!crashing.call("edit_file", &edit("open.txt", "one", "two")).is_error);
    let patch = "*** Begin Patch\n*** Update File: a.txt\n*** Move to: to.txt\n*** Update File: hard.txt\n@@\n-one\n+two\n*** Add File: new.txt\n+new\n*** End Patch\n";
    assert!(crashing.call("apply_patch", &json!({ "patch": patch })).is_error);
    std::mem::forget(crashing);

    let began = Instant::now();
    let mut session = session(dir.path());
    let reply = session.call("write_file", &json!({ "path": "to.txt", "content": "mine\n" }));
    assert!(!reply.is_error, "{}", reply.text);
    read(&mut session, "other-name.txt");
    let reply = session.call("edit_file", &edit("other-name.txt", "one", "two"));
    assert!(!reply.is_error, "{}", reply.text);
    assert!(began.elapsed() < Duration::from_secs(5), "it waited {:?}", began.elapsed());
    drop(held_open);
}

/// A file was moved several times and is back. Every change of it is undone, under whatever name it was made.
#[test]
fn all_of_a_session_can_be_undone_once() {
    let dir = lay_out(&[("a.txt", "one\n"), ("other.txt", "one\n")]);
    let mut session = session(dir.path());
    read(&mut session, "a.txt");
    let call = |session: &mut Session, tool: &str, call: Value| {
        let reply = session.call(tool, &call);
        assert!(!reply.is_error, "{}", reply.text);
    };
    call(&mut session, "move_file", json!({ "from": "a.txt", "to": "b.txt" }));
    call(&mut session, "edit_file", edit("b.txt", "one", "two"));
    call(&mut session, "move_file", json!({ "from": "b.txt", "to": "c.txt" }));
    call(&mut session, "edit_file", edit("c.txt", "two", "one"));
    call(&mut session, "undo", json!({ "all": true }));
    assert_eq!(tree(dir.path()).into_keys().collect::<Vec<_>>(), ["a.txt", "other.txt"]);
    for again in [json!({}), json!({ "all": true }), json!({ "path": "b.txt" })] {
        let reply = session.call("undo", &again);
        assert_eq!(reply.result["refusal"]["code"], "no_change", "{again}: {}", reply.text);
    }
    // Also for a file that did not exist before.
    call(&mut session, "write_file", json!({ "path": "new.txt", "content": "new\n" }));
    call(&mut session, "move_file", json!({ "from": "new.txt", "to": "b.txt" }));
    call(&mut session, "undo", json!({ "all": true }));
    assert_eq!(session.call("undo", &json!({})).result["refusal"]["code"], "no_change");
    read(&mut session, "other.txt");
    call(&mut session, "edit_file", edit("other.txt", "one", "two"));
    call(&mut session, "undo", json!({ "all": true }));
    assert_eq!(content(dir.path(), "other.txt"), "one\n");
}

/// Another program removes empty directories while a file is being created in one.
#[test]
fn a_directory_that_vanishes_under_a_new_file_is_made_again() {
    for at in 0..steps(1).len() {
        let dir = lay_out(&[]);
        let sub = dir.path().join("sub");
        let tidy = once(|_| true, move || drop(fs::remove_dir(&sub)));
        let mut session =
            session_with(dir.path(), move |number, step| if number >= at { tidy(number, step) } else { ProbeVerdict::GoOn });
        let reply = session.call("write_file", &json!({ "path": "sub/new.txt", "content": "new\n" }));
        assert!(!reply.is_error, "after step {at}: {}", reply.text);
        assert_eq!(content(dir.path(), "sub/new.txt"), "new\n", "after step {at}");
    }
}

/// The new directory is renamed right after the new file was put into it: that is no reason to roll the file back.
#[test]
fn a_directory_that_is_moved_after_the_swap_is_not_missed() {
    let dir = lay_out(&[]);
    let root = dir.path().to_owned();
    let probe = once(|step| step == CommitStep::Verify(0), move || fs::rename(root.join("one"), root.join("two")).unwrap());
    let workspace = open_with_probe(dir.path(), Config::default(), Arc::new(probe));
    let reply = Session::new(workspace).call("write_file", &json!({ "path": "one/sub/new.txt", "content": "new\n" }));
    assert!(!reply.is_error, "{}", reply.text);
    assert_eq!(content(dir.path(), "two/sub/new.txt"), "new\n");
}

/// A file that was created and deleted again needs no undo, and neither does a change that a person has undone by hand.
/// Later undos skip both.
#[test]
fn changes_without_an_effect_do_not_come_up_again() {
    let dir = lay_out(&[("a.txt", "one\n"), ("b.txt", "one\n")]);
    let mut session = session(dir.path());
    ["a.txt", "b.txt"].iter().for_each(|path| read(&mut session, path));
    session.call("edit_file", &edit("a.txt", "one", "two"));
    session.call("write_file", &json!({ "path": "new.txt", "content": "new\n" }));
    session.call("delete_file", &json!({ "path": "new.txt" }));
    let reply = session.call("undo", &json!({ "all": true }));
    assert!(!reply.is_error && content(dir.path(), "a.txt") == "one\n", "{}", reply.text);
    assert_eq!(session.call("undo", &json!({})).result["refusal"]["code"], "no_change");
    assert!(!dir.path().join("new.txt").exists());

    session.call("edit_file", &edit("a.txt", "one", "two"));
    session.call("edit_file", &edit("b.txt", "one", "two"));
    fs::write(dir.path().join("b.txt"), "one\n").unwrap();
    let reply = session.call("undo", &json!({}));
    assert!(!reply.is_error, "{}", reply.text);
    assert_eq!(content(dir.path(), "a.txt"), "one\n");
}
