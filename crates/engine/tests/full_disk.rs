//! A disk that fills up, and other limits of a process. No file may grow beyond a limit: to one process, a full disk
//! looks like that, and none is needed. The limit applies to the whole process, so these tests have a binary of their
//! own and take turns.
#![cfg(target_os = "linux")]
#![expect(clippy::disallowed_methods, reason = "tests play the other programs")]

#[path = "it/fixture.rs"]
mod fixture;

use std::{
    fs::{self, File},
    io::Write,
    sync::{Mutex, PoisonError},
};

use fixture::*;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::json;
use surehand_engine::{Workspace, testing::CommitStep, views_by_session};
use surehand_testkit::{Mounted, make_repository, scenario::tree};

static TURN: Mutex<()> = Mutex::new(());

/// Runs a test while no other one runs.
fn alone(test: impl FnOnce()) {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    test();
}

/// The result of `act` while no file may grow beyond `bytes`.
fn with_room_for<T>(bytes: u64, act: impl FnOnce() -> T) -> T {
    // SAFETY: sets the disposition of one signal to "ignore"; no handler is installed.
    #[expect(unsafe_code, reason = "a write beyond the limit raises a signal that ends the process, and no safe call ignores it")]
    unsafe {
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
    }
    let old = getrlimit(Resource::Fsize);
    setrlimit(Resource::Fsize, Rlimit { current: Some(bytes), maximum: old.maximum }).unwrap();
    let result = act();
    setrlimit(Resource::Fsize, old).unwrap();
    result
}

/// Displaced files wait for their second look, and must not use up the open files of the process.
#[test]
fn a_burst_of_edits_keeps_few_files_open() {
    alone(|| {
        let names: Vec<String> = (0..400).map(|number| format!("{}/{number}.txt", number % 200)).collect();
        let files: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "one\n")).collect();
        let dir = lay_out(&files);
        let mut session = session(dir.path());
        let old = getrlimit(Resource::Nofile);
        setrlimit(Resource::Nofile, Rlimit { current: Some(256), maximum: old.maximum }).unwrap();
        for name in &names {
            read(&mut session, name);
            let reply = session.call("edit_file", &edit(name, "one", "two"));
            assert!(!reply.is_error, "{}", reply.text);
        }
        setrlimit(Resource::Nofile, old).unwrap();
        drop(session);
        assert_tidy(dir.path());
    });
}

#[test]
fn a_full_disk_leaves_the_original() {
    alone(|| {
        let dir = lay_out(&[("a.txt", "one\n"), ("linked.txt", "one\n")]);
        fs::hard_link(dir.path().join("linked.txt"), dir.path().join("other-name.txt")).unwrap();
        let mut session = session(dir.path());
        read(&mut session, "a.txt");
        read(&mut session, "linked.txt");
        let replies = with_room_for(500_000, || {
            let content = "x".repeat(1_000_000);
            let mut write = |path: &str| session.call("write_file", &json!({ "path": path, "content": content }));
            ["a.txt", "deep/new.txt", "linked.txt"].map(&mut write)
        });
        for reply in replies {
            assert!(reply.is_error && reply.result["refusal"]["code"] == "io", "{}", reply.text);
        }
        let one = |path: &str| (path.to_owned(), b"one\n".to_vec());
        assert_eq!(tree(dir.path()).into_iter().collect::<Vec<_>>(), ["a.txt", "linked.txt", "other-name.txt"].map(one));
        assert!(!dir.path().join("deep").exists());
        assert!(!session.call("edit_file", &edit("a.txt", "one", "two")).is_error);
        drop(session);
        assert_tidy(dir.path());
    });
}

#[test]
fn a_journal_line_that_could_not_be_written_is_not_glued_to_the_next() {
    alone(|| {
        let dir = lay_out(&[("a.txt", "one\n"), ("b.txt", "one\n")]);
        let mut session = session_with(dir.path(), crash_after(CommitStep::Swap(0)));
        read(&mut session, "a.txt");
        read(&mut session, "b.txt");
        let reply = with_room_for(100, || session.call("edit_file", &edit("a.txt", "one", "two")));
        assert!(reply.is_error, "{}", reply.text);
        session.call("multi_edit", &edits(&[edit("a.txt", "one", "two"), edit("b.txt", "one", "two")]));
        std::mem::forget(session);
        drop(self::session(dir.path()));
        assert_eq!(content(dir.path(), "a.txt"), content(dir.path(), "b.txt"));
    });
}

/// Btrfs allocates new space for every write, also to a mapped page, so a full disk could end the process with a
/// signal.
#[test]
fn a_full_disk_ends_no_session_where_every_write_needs_room() {
    alone(fill_up_btrfs);
}

/// A displaced file waits for its second look, and takes an inode until then.
#[test]
fn displaced_files_give_way_when_the_disk_is_full() {
    alone(|| {
        let Some(mounted) = Mounted::kernel_image(8, &["mkfs.ext4", "-q", "-N", "128"]) else { return };
        let root = mounted.path().join("project");
        fs::create_dir(&root).unwrap();
        make_repository(&root);
        fs::write(root.join("a.txt"), "edit 0\n").unwrap();
        let mut session = session(&root);
        read(&mut session, "a.txt");
        for number in 0..500 {
            let reply = session.call("edit_file", &edit("a.txt", &format!("edit {number}"), &format!("edit {}", number + 1)));
            assert!(!reply.is_error, "{}", reply.text);
        }
        drop(session);
        assert_tidy(&root);
    });
}

fn fill_up_btrfs() {
    let Some(mounted) = Mounted::kernel_image(24, &["mkfs.btrfs", "-q", "-M"]) else { return };
    let root = mounted.path().join("project");
    fs::create_dir(&root).unwrap();
    make_repository(&root);
    (0..20).for_each(|number| fs::write(root.join(format!("{number}.txt")), "one\n").unwrap());
    let mut session = session(&root);
    read(&mut session, "0.txt");
    session.workspace().flush();
    let filler = mounted.path().join("filler");
    let mut file = File::create(&filler).unwrap();
    while file.write_all(&[7; 1 << 16]).and_then(|()| file.sync_data()).is_ok() {}
    for number in 0..20 {
        let path = format!("{number}.txt");
        assert!(session.call("read_file", &json!({ "path": path })).text.contains("one"));
        session.workspace().flush();
        let reply = session.call("edit_file", &edit(&path, "one", &"two".repeat(100_000)));
        assert!(reply.is_error && reply.text.contains("No space left on device"), "{}", reply.text);
        assert_eq!(content(&root, &path), "one\n");
    }
    // Reading needs no space.
    assert_eq!(views_by_session(&Workspace::open_read_only(&root, fast()).unwrap()).unwrap().len(), 1);
    drop(file);
    fs::remove_file(filler).unwrap();
    assert!(!session.call("edit_file", &edit("0.txt", "one", "two")).is_error);
    assert_eq!(content(&root, "0.txt"), "two\n");
}
