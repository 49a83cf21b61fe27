//! Attacks that once worked: each is the smallest way in, kept closed.
#![expect(clippy::disallowed_methods, reason = "tests play the other programs")]

use std::{
    fs::{self, File, OpenOptions},
    io::Write,
    os::{
        fd::AsRawFd,
        unix::fs::{PermissionsExt, symlink},
    },
    sync::{Arc, Mutex},
    time::Duration,
};

use crate::fixture::*;
use serde_json::{Value, json};
use surehand_engine::{
    Config, Edit, Session, Workspace,
    core::{RefusalCode, edit::TextReplacement},
    testing::CommitStep,
};

/// A program that has the file open writes after the old file was verified, and closes it before the second look.
#[test]
fn a_write_between_verify_and_the_end_is_rescued() {
    let dir = lay_out(&[("log.txt", "one\n")]);
    let handle = Arc::new(Mutex::new(OpenOptions::new().append(true).open(dir.path().join("log.txt")).ok()));
    let theirs = handle.clone();
    let late = move || theirs.lock().unwrap().as_mut().unwrap().write_all(b"late\n").unwrap();
    let mut session = session_with(dir.path(), once(|step| step == CommitStep::End, late));
    read(&mut session, "log.txt");
    session.call("edit_file", &edit("log.txt", "one", "two"));
    drop(handle.lock().unwrap().take());
    drop(session);
    assert!(is_somewhere(dir.path(), "late"));
}

/// `ln a a.bak` while `a` is being edited: the two stay one file, and no later edit of another file shows in it.
#[test]
fn a_hard_link_made_during_an_edit_keeps_its_file() {
    let dir = lay_out(&[("a.txt", "one\n"), ("b.txt", "one\n")]);
    let root = dir.path().to_owned();
    let link = move || fs::hard_link(root.join("a.txt"), root.join("a.bak")).unwrap();
    let mut session = session_with(dir.path(), once(|step| step == CommitStep::Check(0), link));
    read(&mut session, "a.txt");
    read(&mut session, "b.txt");
    assert!(!session.call("edit_file", &edit("a.txt", "one", "two")).is_error);
    std::thread::sleep(Duration::from_millis(2));
    assert!(!session.call("edit_file", &edit("b.txt", "one", "three")).is_error);
    drop(session);
    assert_eq!(content(dir.path(), "a.bak"), "two\n");
    assert_eq!(content(dir.path(), "a.txt"), "two\n");
}

/// A recovery that had to leave its journal for later does not judge the same commit again.
#[test]
fn a_commit_is_settled_once() {
    let dir = lay_out(&[("a.txt", "one\n")]);
    let mut crashing = session_with(dir.path(), crash_after(CommitStep::Verify(1)));
    read(&mut crashing, "a.txt");
    let held_open = File::open(dir.path().join("a.txt")).unwrap();
    crashing.call("multi_edit", &edits(&[edit("a.txt", "one", "two"), edit("new.txt", "", "precious\n")]));
    std::mem::forget(crashing);
    drop(session(dir.path()));
    fs::write(dir.path().join("a.txt"), "theirs\n").unwrap();
    drop(session(dir.path()));
    drop(held_open);
    assert_eq!(content(dir.path(), "new.txt"), "precious\n");
    assert_eq!(content(dir.path(), "a.txt"), "theirs\n");
}

/// A batch is rolled back after a program has opened the new file, and the program writes into it.
#[test]
fn a_writer_into_a_file_that_is_taken_back_is_rescued() {
    for first in ["new.txt", "a.txt"] {
        let dir = lay_out(&[("a.txt", "one\n"), ("b.txt", "one\n")]);
        let handle: Arc<Mutex<Option<File>>> = Arc::default();
        let (theirs, root) = (handle.clone(), dir.path().to_owned());
        let open_it = move || {
            *theirs.lock().unwrap() = OpenOptions::new().append(true).open(root.join(first)).ok();
            fs::write(root.join("b.txt"), "theirs\n").unwrap();
        };
        let mut session = session_with(dir.path(), once(|step| step == CommitStep::Verify(0), open_it));
        read(&mut session, "a.txt");
        read(&mut session, "b.txt");
        let start = if first == "a.txt" { edit("a.txt", "one", "two") } else { edit("new.txt", "", "fresh\n") };
        session.call("multi_edit", &edits(&[start, edit("b.txt", "one", "two")]));
        handle.lock().unwrap().take().unwrap().write_all(b"late\n").unwrap();
        drop(session);
        assert!(is_somewhere(dir.path(), "late"), "{first}");
    }
}

/// The target becomes a symlink, or a directory with files, in the instant of the swap; then the crash.
#[test]
fn the_thing_that_comes_out_is_kept_whatever_it_is() {
    for kind in ["link", "directory"] {
        let dir = lay_out(&[("a.txt", "one\n"), ("real.txt", "real\n")]);
        let root = dir.path().to_owned();
        let swap = move |_, step| {
            if step == CommitStep::Check(0) {
                fs::remove_file(root.join("a.txt")).unwrap();
                if kind == "link" {
                    symlink("real.txt", root.join("a.txt")).unwrap();
                } else {
                    fs::create_dir(root.join("a.txt")).unwrap();
                    fs::write(root.join("a.txt/inner"), "precious\n").unwrap();
                }
            }
            crash_after(CommitStep::Swap(0))(0, step)
        };
        let mut crashing = session_with(dir.path(), swap);
        read(&mut crashing, "a.txt");
        crashing.call("edit_file", &edit("a.txt", "one", "two"));
        std::mem::forget(crashing);
        drop(session(dir.path()));
        let back = dir.path().join("a.txt");
        assert!(if kind == "link" { back.is_symlink() } else { back.join("inner").exists() }, "{kind}");
    }
}

/// After a crash, another program creates the file that the batch would have created.
#[test]
fn recovery_does_not_remove_files_of_other_programs() {
    let dir = lay_out(&[("a.txt", "one\n")]);
    let mut crashing = session_with(dir.path(), crash_after(CommitStep::Begin));
    read(&mut crashing, "a.txt");
    crashing.call("multi_edit", &edits(&[edit("a.txt", "one", "two"), edit("new.txt", "", "precious\n")]));
    std::mem::forget(crashing);
    // Longer than a step of the clock, because a freed inode may be given to the next file.
    std::thread::sleep(Duration::from_millis(20));
    fs::write(dir.path().join("new.txt"), "precious\n").unwrap();
    drop(session(dir.path()));
    assert_eq!(content(dir.path(), "new.txt"), "precious\n");
}

/// All files were replaced, the crash came before that was recorded, and another program has edited one of them since.
#[test]
fn a_batch_that_had_happened_is_not_half_taken_back() {
    let dir = lay_out(&[("a.txt", "one\n"), ("b.txt", "one\n")]);
    let mut crashing = session_with(dir.path(), crash_after(CommitStep::Verify(1)));
    read(&mut crashing, "a.txt");
    read(&mut crashing, "b.txt");
    crashing.call("multi_edit", &edits(&[edit("a.txt", "one", "two"), edit("b.txt", "one", "two")]));
    std::mem::forget(crashing);
    fs::write(dir.path().join("a.txt"), "two\nand theirs\n").unwrap();
    drop(session(dir.path()));
    assert_eq!(
        (content(dir.path(), "a.txt"), content(dir.path(), "b.txt")),
        ("two\nand theirs\n".to_owned(), "two\n".to_owned())
    );
}

/// A file with several hard links can only be written in place, which is not safe while another program has it open.
#[test]
fn a_file_with_several_names_that_is_open_elsewhere_is_not_written() {
    let dir = lay_out(&[("a.txt", "one\n")]);
    fs::hard_link(dir.path().join("a.txt"), dir.path().join("b.txt")).unwrap();
    let mut open_elsewhere = OpenOptions::new().append(true).open(dir.path().join("a.txt")).unwrap();
    let mut session = session(dir.path());
    read(&mut session, "a.txt");
    let reply = session.call("edit_file", &edit("a.txt", "one", "two"));
    assert_eq!(reply.result["refusal"]["code"], "conflict", "{}", reply.text);
    open_elsewhere.write_all(b"late\n").unwrap();
    drop(open_elsewhere);
    assert_eq!(content(dir.path(), "b.txt"), "one\nlate\n");
}

/// The crash came before the first write, so a later change by another program is not a torn write of ours.
#[test]
fn a_change_of_a_file_written_in_place_is_not_taken_for_a_torn_one() {
    let dir = lay_out(&[("a.txt", "one\n")]);
    fs::hard_link(dir.path().join("a.txt"), dir.path().join("b.txt")).unwrap();
    let mut crashing = session_with(dir.path(), crash_after(CommitStep::Begin));
    read(&mut crashing, "a.txt");
    crashing.call("edit_file", &edit("a.txt", "one", "two"));
    std::mem::forget(crashing);
    fs::write(dir.path().join("a.txt"), "theirs\n").unwrap();
    drop(session(dir.path()));
    assert_eq!(content(dir.path(), "b.txt"), "theirs\n");
    assert_tidy(dir.path());
}

/// A repository may ship a journal and a state of its own.
#[test]
fn a_journal_or_a_state_from_elsewhere_leads_nowhere() {
    let outside = lay_out(&[("secret.txt", "secret\n")]);
    let dir = lay_out(&[("a.txt", "one\n")]);
    let secret = outside.path().join("secret.txt");
    let way_out = format!("../../..{}", secret.display());
    drop(session(dir.path()));
    let state = surehand_testkit::state_of(dir.path());
    let root: Value = serde_json::from_slice(&fs::read(state.join("root")).unwrap()).unwrap();
    let hash = "0".repeat(64);
    let intent = json!({ "path": "a.txt", "how": "swap", "base": hash, "new": hash, "staged": way_out, "place": "state", "inode": 1, "modified": 1 });
    let lines = [
        json!({ "start": { "checkout": root["key"] } }),
        json!({ "begin": { "commit": 1, "files": [intent] } }),
        json!({ "stage": { "commit": 2, "path": "a.txt", "staged": way_out, "place": "state" } }),
        json!({ "reuse": { "staged": way_out } }),
        json!({ "make": { "commit": 3, "dirs": ["../x"] } }),
    ];
    fs::write(state.join("journal/1-0"), lines.map(|line| format!("{line}\n")).concat()).unwrap();
    drop(session(dir.path()));
    assert_eq!(fs::read_to_string(&secret).unwrap(), "secret\n");
    assert!(!state.join("journal/1-0").exists(), "it was taken up");

    let dir = lay_out(&[]);
    fs::create_dir(dir.path().join(".git/surehand")).unwrap();
    fs::set_permissions(dir.path().join(".git/surehand"), fs::Permissions::from_mode(0o700)).unwrap();
    symlink(outside.path().join("made.db"), dir.path().join(".git/surehand/state.db")).unwrap();
    assert!(Workspace::open(dir.path(), Config::default()).is_err());
    assert!(!outside.path().join("made.db").exists());
}

/// Changing a part of lines that were never shown does not make them seen.
#[test]
fn editing_unseen_lines_does_not_allow_to_overwrite_them() {
    let lines: String = (0..3000).map(|number| format!("line {number} secret-{number}\n")).collect();
    let dir = lay_out(&[("a.txt", &lines)]);
    let mut session = session(dir.path());
    session.call("read_file", &json!({ "path": "a.txt", "limit": 1 }));
    let all = json!({ "path": "a.txt", "old_string": "line", "new_string": "LINE", "replace_all": true });
    assert!(!session.call("edit_file", &all).is_error);
    let reply = session.call("write_file", &json!({ "path": "a.txt", "content": "gone\n" }));
    assert_eq!(reply.result["refusal"]["code"], "partial", "{}", reply.text);
}

/// A write through a memory map to a page that is dirty already changes no time.
#[test]
fn a_change_through_a_memory_map_is_not_overwritten() {
    let dir = lay_out(&[("a.txt", "one\nxxx\n")]);
    let file = OpenOptions::new().read(true).write(true).open(dir.path().join("a.txt")).unwrap();
    // SAFETY: the mapping is of a file that stays 8 bytes long until it is unmapped, and only those are touched.
    #[expect(unsafe_code, reason = "there is no safe memory map")]
    let store = unsafe {
        let flags = libc::PROT_READ | libc::PROT_WRITE;
        let page = libc::mmap(std::ptr::null_mut(), 8, flags, libc::MAP_SHARED, file.as_raw_fd(), 0).cast::<u8>();
        page.write(b'o');
        move |value: u8| {
            page.add(4).write(value);
            libc::munmap(page.cast(), 8);
        }
    };
    std::thread::sleep(Duration::from_millis(30));
    let mut session = session(dir.path());
    read(&mut session, "a.txt");
    store(b'Y');
    drop(file);
    session.call("edit_file", &edit("a.txt", "one", "two"));
    drop(session);
    assert!(is_somewhere(dir.path(), "Yxx"));
}

/// A line number whose line is gone does not move to another line with the same text.
#[test]
fn the_number_of_a_line_that_is_gone_means_nothing() {
    let dir = lay_out(&[("a.rs", "fn a() {\n    x\n}\nfn b() {\n    y\n}\n")]);
    let mut session = session(dir.path());
    let shown = session.call("read_file", &json!({ "path": "a.rs", "anchors": true })).text;
    let brace = shown.lines().find(|line| line.starts_with("3#")).unwrap().split('|').next().unwrap().to_owned();
    fs::write(dir.path().join("a.rs"), "fn b() {\n    y\n}\n").unwrap();
    let insert = json!({ "path": "a.rs", "edits": [{ "op": "insert_after", "at": brace, "text": "// end of a" }] });
    assert_eq!(session.call("edit_lines", &insert).result["refusal"]["code"], "stale");
    assert_eq!(session.call("edit_lines", &insert).result["refusal"]["code"], "anchor_mismatch");
}

/// One process dies during a batch; another one that lives does not build on the half-done batch.
#[test]
fn a_living_process_settles_the_commit_of_a_dead_one() {
    let dir = lay_out(&[("p.txt", "0\n"), ("q.txt", "0\n")]);
    let mut living = session(dir.path());
    // Its journal has a complete batch, and then an incomplete one.
    let batches = std::sync::atomic::AtomicUsize::new(0);
    let in_the_second = move |number, step| {
        let batch = batches.fetch_add(usize::from(number == 0), std::sync::atomic::Ordering::SeqCst) + usize::from(number == 0);
        if batch == 2 { crash_after(CommitStep::Verify(0))(number, step) } else { surehand_engine::testing::ProbeVerdict::GoOn }
    };
    let mut dying = session_with(dir.path(), in_the_second);
    read(&mut dying, "p.txt");
    read(&mut dying, "q.txt");
    for (old, new) in [("0", "1"), ("1", "2")] {
        dying.call("multi_edit", &edits(&[edit("p.txt", old, new), edit("q.txt", old, new)]));
    }
    std::mem::forget(dying);
    read(&mut living, "p.txt");
    let reply = living.call("edit_file", &edit("p.txt", "2", "2 and more"));
    assert_eq!(reply.result["refusal"]["code"], "stale", "{}", reply.text);
    assert!(reply.text.contains("a crash interrupted"), "{}", reply.text);
    assert_eq!((content(dir.path(), "p.txt"), content(dir.path(), "q.txt")), ("1\n".to_owned(), "1\n".to_owned()));
}

/// A lock mark that no process removed, without a journal: no file stays locked forever.
#[test]
fn a_mark_without_a_journal_locks_no_process_out() {
    let dir = lay_out(&[("a.txt", "one\n")]);
    let mut session = session(dir.path());
    read(&mut session, "a.txt");
    for stripe in 0..256 {
        fs::write(dir.path().join(format!(".git/surehand/checkouts/main/locks/{stripe:02x}")), "1-dead").unwrap();
    }
    let reply = session.call("edit_file", &edit("a.txt", "one", "two"));
    assert!(!reply.is_error, "{}", reply.text);
    assert!(!session.call("edit_file", &edit("a.txt", "two", "three")).is_error);
}

/// A file is staged for a public target first, and then for a private one.
#[test]
fn a_private_file_is_never_readable_by_others_on_its_way() {
    let dir = lay_out(&[("public.txt", "one\n"), ("private.txt", "one\n")]);
    fs::set_permissions(dir.path().join("private.txt"), fs::Permissions::from_mode(0o600)).unwrap();
    let staged = dir.path().join(".git/surehand/checkouts/main/staged");
    let watch = move |_, step| {
        if step == CommitStep::Begin {
            for entry in fs::read_dir(&staged).unwrap() {
                let path = entry.unwrap().path();
                let mode = fs::metadata(&path).unwrap().permissions().mode();
                assert!(mode & 0o077 == 0 || !fs::read_to_string(&path).unwrap().contains("private"), "{mode:o}");
            }
        }
        surehand_engine::testing::ProbeVerdict::GoOn
    };
    let mut session: Session = session_with(dir.path(), watch);
    read(&mut session, "public.txt");
    read(&mut session, "private.txt");
    session.call("edit_file", &edit("public.txt", "one", "two"));
    std::thread::sleep(Duration::from_millis(2));
    assert!(!session.call("edit_file", &edit("private.txt", "one", "private")).is_error);
    let mode = |path: &str| fs::metadata(dir.path().join(path)).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode("private.txt"), 0o600);
    assert_eq!(mode(".git/surehand"), 0o700, "it holds copies of private files");
}

/// A session in a clone that ships settings.
fn session_in_a_clone(dir: &std::path::Path) -> Session {
    Session::new(Workspace::open(dir, Config { durability: fast().durability, ..Config::load(dir, []).unwrap() }).unwrap())
}

#[test]
fn shipped_settings_do_not_open_the_gate() {
    let settings = "[policy]\nrequire_read = false\non_change = \"rebase\"\n";
    let dir = lay_out(&[("surehand.toml", settings), ("a.txt", "one\n")]);
    let reply = session_in_a_clone(dir.path()).call("edit_file", &edit("a.txt", "one", "two"));
    assert_eq!(reply.result["refusal"]["code"], "unread", "{}", reply.text);
}

/// Files that are too large are left to the client's own tool, so a clone must not set the limit.
#[test]
fn shipped_limits_do_not_hide_files_from_hooks() {
    let settings = "[limits]\nfile_bytes = 1\nbatch_edits = 1\n";
    let dir = lay_out(&[("surehand.toml", settings), ("a.txt", "one\ntwo\n")]);
    let replacement =
        |old: &str, new: &str| TextReplacement { path: "a.txt".into(), old: old.into(), new: new.into(), all: false };
    let both = Edit::ReplaceMany(vec![replacement("one", "1"), replacement("two", "2")]);
    for edit in [Edit::write("a.txt", "x"), both] {
        let refused = session_in_a_clone(dir.path()).foreign_tools().judge(&edit, &[]).expect_err("it was never read");
        assert_eq!(refused.refusal().unwrap().code(), RefusalCode::Unread, "{refused:?}");
    }
}

#[test]
fn a_clone_cannot_have_secrets_shown_as_instructions() {
    let settings = "[instructions]\nnames = [\".env\"]\n";
    let dir = lay_out(&[("surehand.toml", settings), (".env", "TOKEN=secret\n"), ("AGENTS.md", "Be kind.\n")]);
    let reply = session_in_a_clone(dir.path()).call("list_files", &json!({}));
    assert!(reply.text.contains("Be kind.") && !reply.text.contains("secret"), "{}", reply.text);
}

/// Like the test above, through a symlink, which git checks out like any other file.
#[test]
fn a_shipped_link_cannot_have_secrets_shown_as_instructions() {
    let dir = lay_out(&[(".env", "TOKEN=secret\n"), ("sub/RULES.md", "Be kind.\n"), ("sub/a.txt", "one\n")]);
    symlink(".env", dir.path().join("AGENTS.md")).unwrap();
    symlink("RULES.md", dir.path().join("sub/AGENTS.md")).unwrap();
    let reply = session(dir.path()).call("read_file", &json!({ "path": "sub/a.txt" }));
    assert!(reply.text.contains("Be kind.") && !reply.text.contains("secret"), "{}", reply.text);
}
