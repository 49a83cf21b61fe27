//! Failures that the torture tests found: they left something behind, or prevented the next edit.
#![expect(clippy::disallowed_methods, reason = "tests play the other programs")]

use std::{
    fs,
    os::unix::{
        fs::{MetadataExt, PermissionsExt},
        process::CommandExt,
    },
    path::{Path, PathBuf},
};

use crate::fixture::*;
use surehand_engine::testing::CommitStep;
use surehand_testkit::as_unprivileged;

fn names(dir: &Path, part: &str) -> Vec<PathBuf> {
    fs::read_dir(dir.join(".git/surehand/checkouts/main").join(part)).unwrap().map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn a_part_of_the_state_directory_that_vanishes_is_made_again() {
    for part in ["staged", "journal", "locks"] {
        let dir = lay_out(&[("a.txt", "one\n")]);
        let mut session = session(dir.path());
        read(&mut session, "a.txt");
        assert!(!session.call("edit_file", &edit("a.txt", "one", "two")).is_error);
        fs::remove_dir_all(dir.path().join(".git/surehand/checkouts/main").join(part)).unwrap();
        let reply = session.call("edit_file", &edit("a.txt", "two", "three"));
        assert!(!reply.is_error, "{part}: {}", reply.text);
        drop(session);
        // The journal of the previous process is settled at the next start.
        drop(self::session(dir.path()));
        assert_tidy(dir.path());
    }
}

/// A superuser is not affected by permissions; a process of another user is.
#[test]
fn a_file_that_may_not_be_removed_now_is_removed_later() {
    if rustix::process::geteuid().is_root() {
        // Run this very test as another user.
        let open_dir = tempfile::tempdir().unwrap();
        let copy = open_dir.path().join("test");
        fs::copy(std::env::current_exe().unwrap(), &copy).unwrap();
        fs::set_permissions(open_dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let mut command = std::process::Command::new(copy);
        command
            .args(["--exact", "trouble::a_file_that_may_not_be_removed_now_is_removed_later"])
            .env("TMPDIR", "/tmp")
            .uid(65534)
            .gid(65534);
        let output = command.output().unwrap();
        let report = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && report.contains("1 passed"), "{report}");
        return;
    }
    let dir = lay_out(&[("a.txt", "one\n")]);
    let staged = dir.path().join(".git/surehand/checkouts/main/staged");
    let mode = |mode| fs::set_permissions(&staged, fs::Permissions::from_mode(mode)).unwrap();
    let mut ours = session(dir.path());
    read(&mut ours, "a.txt");
    assert!(!ours.call("edit_file", &edit("a.txt", "one", "two")).is_error);
    // The process ends, and others start and end, while displaced files may not be removed.
    mode(0o555);
    drop(ours);
    drop(session(dir.path()));
    assert_eq!(names(dir.path(), "staged").len(), 1);
    mode(0o755);
    drop(session(dir.path()));
    assert_tidy(dir.path());
}

/// Nothing of a process is forgotten when it ends.
#[test]
fn displaced_files_are_not_forgotten_when_a_process_ends_well() {
    let dir = lay_out(&[("a.txt", "one\n")]);
    let mut ours = session(dir.path());
    read(&mut ours, "a.txt");
    ours.call("edit_file", &edit("a.txt", "one", "two"));
    let journal = names(dir.path(), "journal")[0].file_name().unwrap().to_str().unwrap().to_owned();
    fs::write(dir.path().join(format!(".git/surehand/checkouts/main/staged/{journal}-9-0")), "left\n").unwrap();
    drop(ours);
    drop(session(dir.path()));
    assert_eq!(names(dir.path(), "staged"), Vec::<PathBuf>::new());
    assert_eq!(names(dir.path(), "journal"), Vec::<PathBuf>::new());
    assert_eq!(rescued(dir.path()), ["left\n"]);
}

/// Where a move needs a second hard link, a kill may come before the first one is removed.
#[test]
fn a_move_that_was_cut_off_between_its_two_names_is_finished_or_taken_back() {
    for is_batch in [false, true] {
        let dir = lay_out(&[("a.txt", "one\n"), ("c.txt", "one\n")]);
        let mut crashing = session_with(dir.path(), crash_after(CommitStep::Check(0)));
        read(&mut crashing, "a.txt");
        read(&mut crashing, "c.txt");
        let update = if is_batch { "*** Update File: c.txt\n@@\n-one\n+two\n" } else { "" };
        let patch = format!("*** Begin Patch\n*** Update File: a.txt\n*** Move to: b.txt\n{update}*** End Patch\n");
        assert!(crashing.call("apply_patch", &serde_json::json!({ "patch": patch })).is_error);
        std::mem::forget(crashing);
        fs::hard_link(dir.path().join("a.txt"), dir.path().join("b.txt")).unwrap();
        drop(session(dir.path()));
        assert_eq!(dir.path().join("a.txt").exists(), is_batch, "a batch of which nothing else was done is taken back");
        assert_eq!(dir.path().join("b.txt").exists(), !is_batch);
        assert_tidy(dir.path());
    }
}

/// An editor saves by renaming the old file, while we are about to write into it because it has several hard links.
#[test]
fn a_write_in_place_goes_to_the_file_that_has_the_name() {
    for after in [CommitStep::Stage(0), CommitStep::Begin, CommitStep::Check(0)] {
        let dir = lay_out(&[("a.txt", "one\n")]);
        fs::hard_link(dir.path().join("a.txt"), dir.path().join("b.txt")).unwrap();
        let root = dir.path().to_owned();
        let save = move || {
            fs::rename(root.join("a.txt"), root.join("a.txt~")).unwrap();
            fs::write(root.join("a.txt"), "theirs\n").unwrap();
        };
        let mut session = session_with(dir.path(), once(move |step| step == after, save));
        read(&mut session, "a.txt");
        let reply = session.call("edit_file", &edit("a.txt", "one", "ours"));
        assert!(reply.is_error, "{after:?}: {}", reply.text);
        let now = ["a.txt", "a.txt~", "b.txt"].map(|path| content(dir.path(), path));
        assert_eq!(now, ["theirs\n", "one\n", "one\n"], "{after:?}");
        drop(session);
        assert_tidy(dir.path());
    }
}

/// A FUSE file system gives an open file a second name when another file is renamed over it.
#[test]
fn a_file_that_is_renamed_over_may_get_a_second_name_from_the_file_system() {
    let dir = lay_out(&[("a.txt", "one\n")]);
    let staged = dir.path().join(".git/surehand/checkouts/main/staged");
    let hide = move || {
        let old = fs::read_dir(&staged).unwrap().map(|entry| entry.unwrap().path()).find(|path| path.extension().is_some());
        fs::hard_link(old.unwrap(), staged.join("hidden")).unwrap();
    };
    let mut session = session_with(dir.path(), once(|step| step == CommitStep::Swap(0), hide));
    surehand_engine::testing::without_exchange(session.workspace());
    read(&mut session, "a.txt");
    let reply = session.call("edit_file", &edit("a.txt", "one", "two"));
    assert!(!reply.is_error, "{}", reply.text);
    assert_eq!(content(dir.path(), "a.txt"), "two\n");
}

/// A batch creates a file and then may not remove another one: the new one is rolled back, wherever there is room for
/// it.
#[test]
fn a_new_file_is_taken_back_also_when_nothing_may_be_staged() {
    let dir = lay_out(&[("a.txt", "one\ntwo\n")]);
    drop(session(dir.path()));
    as_unprivileged(dir.path(), || {
        let mut ours = session(dir.path());
        read(&mut ours, "a.txt");
        let staged = dir.path().join(".git/surehand/checkouts/main/staged");
        fs::set_permissions(&staged, fs::Permissions::from_mode(0o555)).unwrap();
        let patch = "*** Begin Patch\n*** Update File: a.txt\n*** Move to: b.txt\n@@\n-one\n+1\n two\n*** End Patch\n";
        let reply = ours.call("apply_patch", &serde_json::json!({ "patch": patch }));
        assert!(reply.is_error, "{}", reply.text);
        assert_eq!((content(dir.path(), "a.txt").as_str(), dir.path().join("b.txt").exists()), ("one\ntwo\n", false));
        fs::set_permissions(&staged, fs::Permissions::from_mode(0o755)).unwrap();
        drop(ours);
        drop(session(dir.path()));
    });
    assert_tidy(dir.path());
}

/// A file of another owner in a directory of ours, with a mode that lets us write: it keeps its owner, and no program
/// is reported to have it open.
#[test]
fn a_file_of_another_owner_is_edited_in_place() {
    if !rustix::process::geteuid().is_root() {
        // Only root can make such a file.
        return;
    }
    let dir = lay_out(&[("ours.txt", "one\n")]);
    let nobodys = tempfile::tempdir().unwrap();
    as_unprivileged(dir.path(), || {});
    let theirs = dir.path().join("theirs.txt");
    fs::write(&theirs, "one\n").unwrap();
    fs::set_permissions(&theirs, fs::Permissions::from_mode(0o666)).unwrap();
    let inode = fs::metadata(&theirs).unwrap().ino();
    as_unprivileged(nobodys.path(), || {
        let mut session = session(dir.path());
        read(&mut session, "theirs.txt");
        let reply = session.call("edit_file", &edit("theirs.txt", "one", "two"));
        assert!(!reply.is_error, "{}", reply.text);
        drop(session);
    });
    let after = fs::metadata(&theirs).unwrap();
    assert_eq!((content(dir.path(), "theirs.txt").as_str(), after.uid(), after.ino()), ("two\n", 0, inode));
    assert_tidy(dir.path());
}
