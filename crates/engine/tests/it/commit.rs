//! The promises of commit: files are whole, a batch happens completely or not at all, and no change is lost, whatever
//! happens in between.
#![expect(clippy::disallowed_methods, reason = "tests play the other programs")]

use std::{
    collections::BTreeMap,
    fs::{self, File, OpenOptions},
    io::Write,
    os::unix::{
        fs::{MetadataExt, PermissionsExt, symlink},
        process::CommandExt,
    },
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use crate::fixture::*;
use serde_json::{Value, json};
use surehand_engine::{
    Session, SessionId, Workspace,
    testing::{CommitStep, ProbeVerdict, steps},
};
use surehand_testkit::scenario::tree;

const BATCH: &[(&str, &str)] = &[("a.txt", "one a\n"), ("b/b.txt", "one b\n"), ("hard.txt", "one hard\n")];

fn batch() -> Value {
    let created = edit("new/c.txt", "", "two c\n");
    json!({ "edits": [edit("a.txt", "one", "two"), edit("b/b.txt", "one", "two"), edit("hard.txt", "one", "two"), created] })
}

/// Any prefix of the steps of a commit, then a crash, then recovery: every file is complete, the batch happened fully
/// or not at all, and nothing is left over.
#[test]
fn a_crash_after_any_step_leaves_all_or_nothing() {
    let count = steps(4).len();
    for stop_after in 0..count {
        for exchange in [true, false] {
            let dir = lay_out(BATCH);
            fs::hard_link(dir.path().join("hard.txt"), dir.path().join("other-name.txt")).unwrap();
            let before = tree(dir.path());
            let stop = move |number, _| if number == stop_after { ProbeVerdict::Stop } else { ProbeVerdict::GoOn };
            let mut crashing = session_with(dir.path(), stop);
            if !exchange {
                surehand_engine::testing::without_exchange(crashing.workspace());
            }
            BATCH.iter().for_each(|(path, _)| read(&mut crashing, path));
            let reply = crashing.call("multi_edit", &batch());
            assert!(reply.is_error, "stopped after step {stop_after}: {}", reply.text);
            // The process dies without cleaning up.
            std::mem::forget(crashing);

            let mut next = session(dir.path());
            let after = tree(dir.path());
            let all = [
                ("a.txt", "two a\n"),
                ("b/b.txt", "two b\n"),
                ("hard.txt", "two hard\n"),
                ("other-name.txt", "two hard\n"),
                ("new/c.txt", "two c\n"),
            ];
            let all: BTreeMap<String, Vec<u8>> = all.map(|(path, content)| (path.to_owned(), content.as_bytes().to_vec())).into();
            assert!(after == before || after == all, "stopped after step {stop_after} (exchange {exchange}): {after:?}");
            assert_eq!(dir.path().join("new").exists(), after == all, "no empty directory is left after step {stop_after}");
            let reply = next.call("forget", &json!({})).text;
            let in_the_middle = stop_after > 4 && stop_after < count - 1;
            assert_eq!(reply.contains("a change that a crash interrupted"), in_the_middle, "step {stop_after}: {reply}");
            drop(next);
            assert_tidy(dir.path());
        }
    }
}

/// A crash in every way to write one file, after every step: the file is old or new, and nothing is left over.
#[test]
fn a_crash_in_any_way_to_write_one_file_is_clean() {
    let ways: [(&str, Value); 5] = [
        ("edit_file", edit("a.txt", "one", "two")),
        ("edit_file", edit("hard.txt", "one", "two")),
        ("write_file", json!({ "path": "new/c.txt", "content": "two\n" })),
        ("delete_file", json!({ "path": "a.txt" })),
        ("move_file", json!({ "from": "a.txt", "to": "new/a.txt" })),
    ];
    let start = || {
        let dir = lay_out(&[("a.txt", "one\n"), ("hard.txt", "one\n")]);
        fs::hard_link(dir.path().join("hard.txt"), dir.path().join("other-name.txt")).unwrap();
        dir
    };
    for (tool, arguments) in ways {
        let whole = start();
        let mut session = self::session(whole.path());
        ["a.txt", "hard.txt"].iter().for_each(|path| read(&mut session, path));
        let reply = session.call(tool, &arguments);
        assert!(!reply.is_error, "{}", reply.text);
        let done = tree(whole.path());
        for (stop_after, exchange) in (0..steps(1).len()).flat_map(|stop| [(stop, true), (stop, false)]) {
            let dir = start();
            let before = tree(dir.path());
            let stop = move |number, _| if number == stop_after { ProbeVerdict::Stop } else { ProbeVerdict::GoOn };
            let mut crashing = session_with(dir.path(), stop);
            if !exchange {
                surehand_engine::testing::without_exchange(crashing.workspace());
            }
            ["a.txt", "hard.txt"].iter().for_each(|path| read(&mut crashing, path));
            assert!(crashing.call(tool, &arguments).is_error, "{tool} stopped after step {stop_after}");
            std::mem::forget(crashing);
            drop(self::session(dir.path()));
            let after = tree(dir.path());
            assert!(after == before || after == done, "{tool} {arguments}, step {stop_after} (exchange {exchange}): {after:?}");
            assert_tidy(dir.path());
        }
    }
}

/// A change of a file's metadata by another program.
fn change_metadata(path: &Path) {
    fs::set_permissions(path, fs::Permissions::from_mode(0o751)).unwrap();
    let _ = rustix::fs::setxattr(path, "user.theirs", b"kept", rustix::fs::XattrFlags::empty());
    // Only the superuser may give files away.
    let _ = std::os::unix::fs::chown(path, None, Some(23456));
}

#[track_caller]
fn assert_changed_metadata(path: &Path, when: &str) {
    let model = path.with_file_name("model");
    fs::write(&model, "").unwrap();
    change_metadata(&model);
    let wanted = fs::metadata(&model).unwrap();
    let now = fs::metadata(path).unwrap();
    assert_eq!((now.mode(), now.uid(), now.gid()), (wanted.mode(), wanted.uid(), wanted.gid()), "{when}");
    let attribute = |path: &Path| rustix::fs::getxattr(path, "user.theirs", &mut [0; 8][..]);
    assert_eq!(attribute(path), attribute(&model), "{when}");
}

/// Another program changes mode, group and attributes between each pair of steps. The edit is made, and the change
/// stays.
#[test]
fn a_change_of_metadata_at_any_instant_survives() {
    for how in [Target::Plain, Target::NoExchange, Target::HardLink] {
        for at in 0..steps(1).len() {
            let dir = lay_out(&[("a.txt", "one\n")]);
            let target = dir.path().join("a.txt");
            if how == Target::HardLink {
                fs::hard_link(&target, dir.path().join("b.txt")).unwrap();
            }
            let path = target.clone();
            let mut session = session_with(dir.path(), move |number, _| {
                if number == at {
                    change_metadata(&path);
                }
                ProbeVerdict::GoOn
            });
            if how == Target::NoExchange {
                surehand_engine::testing::without_exchange(session.workspace());
            }
            read(&mut session, "a.txt");
            let reply = session.call("edit_file", &edit("a.txt", "one", "two"));
            assert!(!reply.is_error, "{}", reply.text);
            drop(session);
            assert_eq!(content(dir.path(), "a.txt"), "two\n");
            assert_changed_metadata(&target, &format!("{how:?}, after step {at}"));
        }
    }
}

/// A program that has looked up the file before it was replaced, and changes its mode afterwards.
#[test]
fn a_late_change_of_metadata_reaches_the_file_in_its_place() {
    let dir = lay_out(&[("a.txt", "one\n")]);
    let target = dir.path().join("a.txt");
    let found = File::open(&target).unwrap();
    let mut session = session(dir.path());
    read(&mut session, "a.txt");
    assert!(!session.call("edit_file", &edit("a.txt", "one", "two")).is_error);
    found.set_permissions(fs::Permissions::from_mode(0o751)).unwrap();
    let _ = rustix::fs::fsetxattr(&found, "user.theirs", b"kept", rustix::fs::XattrFlags::empty());
    let _ = std::os::unix::fs::fchown(&found, None, Some(23456));
    drop(found);
    // Closing takes the second look at displaced files.
    drop(session);
    assert_eq!(content(dir.path(), "a.txt"), "two\n");
    assert_changed_metadata(&target, "after the edit");
}

/// Like the test above, but the process dies after any step: the file that is found afterwards, old or new, has the
/// change.
#[test]
fn a_change_of_metadata_survives_a_crash() {
    for exchange in [true, false] {
        for (at, stop_after) in (0..steps(1).len()).flat_map(|at| (at..steps(1).len()).map(move |stop| (at, stop))) {
            let dir = lay_out(&[("a.txt", "one\n")]);
            let target = dir.path().join("a.txt");
            let path = target.clone();
            let mut crashing = session_with(dir.path(), move |number, _| {
                if number == at {
                    change_metadata(&path);
                }
                if number == stop_after { ProbeVerdict::Stop } else { ProbeVerdict::GoOn }
            });
            if !exchange {
                surehand_engine::testing::without_exchange(crashing.workspace());
            }
            read(&mut crashing, "a.txt");
            assert!(crashing.call("edit_file", &edit("a.txt", "one", "two")).is_error);
            std::mem::forget(crashing);
            drop(session(dir.path()));
            let when = format!("changed after step {at}, stopped after step {stop_after}, exchange {exchange}");
            assert_changed_metadata(&target, &when);
            assert_tidy(dir.path());
        }
    }
}

/// An open handle always refers to the file that it was opened for: a displaced file never becomes another file.
#[test]
fn a_displaced_file_never_becomes_another() {
    let dir = lay_out(&[("a.txt", "one a\n"), ("b.txt", "one b\n")]);
    let flags = rustix::fs::OFlags::PATH | rustix::fs::OFlags::CLOEXEC;
    let handle = rustix::fs::open(dir.path().join("a.txt"), flags, rustix::fs::Mode::empty()).unwrap();
    let mut session = session(dir.path());
    for path in ["a.txt", "b.txt"] {
        read(&mut session, path);
        for (old, new) in [("one", "two"), ("two", "three"), ("three", "four")] {
            assert!(!session.call("edit_file", &edit(path, old, new)).is_error);
            std::thread::sleep(Duration::from_millis(2));
        }
    }
    let by_handle = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&handle));
    if let Ok(mut late) = OpenOptions::new().append(true).open(by_handle) {
        late.write_all(b"late\n").unwrap();
    }
    assert_eq!((content(dir.path(), "a.txt"), content(dir.path(), "b.txt")), ("four a\n".to_owned(), "four b\n".to_owned()));
    drop(session);
    assert_eq!(rescued(dir.path()), ["one a\nlate\n"]);
}

/// If the system cannot create files without a name, a new file is staged in the directory that was created for it.
/// Both are removed.
#[test]
fn a_new_directory_is_removed_with_the_file_that_was_staged_in_it() {
    let dir = lay_out(&[("a.txt", "one\n")]);
    let mut crashing =
        session_with(dir.path(), |_, step| if step == CommitStep::Stage(0) { ProbeVerdict::Stop } else { ProbeVerdict::GoOn });
    assert!(crashing.call("write_file", &json!({ "path": "new/deep/b.txt", "content": "two\n" })).is_error);
    std::mem::forget(crashing);
    let journals = dir.path().join(".git/surehand/checkouts/main/journal");
    let journal = fs::read_dir(&journals).unwrap().next().unwrap().unwrap();
    let staged = format!(".surehand-{}-1-0", journal.file_name().into_string().unwrap());
    let entry = json!({ "stage": { "commit": 1, "path": "new/deep/b.txt", "staged": staged, "place": "beside" } });
    writeln!(OpenOptions::new().append(true).open(journal.path()).unwrap(), "{entry}").unwrap();
    fs::write(dir.path().join("new/deep").join(staged), "tw").unwrap();
    drop(session(dir.path()));
    assert!(!dir.path().join("new").exists());
    assert_tidy(dir.path());
}

/// A power cut may leave a displaced file without the journal that names it.
#[test]
fn a_staged_file_without_a_journal_is_rescued() {
    let dir = lay_out(&[("a.txt", "one\n")]);
    drop(session(dir.path()));
    let staged = dir.path().join(".git/surehand/checkouts/main/staged");
    fs::write(staged.join("1234-0123456789abcdef-7-0"), "old\n").unwrap();
    let mut living = session(dir.path());
    read(&mut living, "a.txt");
    assert_eq!(rescued(dir.path()), ["old\n"]);
    // The staged files of a living process are its own.
    assert!(!living.call("edit_file", &edit("a.txt", "one", "two")).is_error);
    let left = fs::read_dir(&staged).unwrap().count();
    drop(session(dir.path()));
    assert_eq!((fs::read_dir(&staged).unwrap().count(), rescued(dir.path()).len()), (left, 1));
}

#[test]
fn a_torn_write_in_place_is_taken_back() {
    let dir = lay_out(&[("hard.txt", "old content, quite long\n")]);
    fs::hard_link(dir.path().join("hard.txt"), dir.path().join("other.txt")).unwrap();
    let stop = |_, step| if step == CommitStep::Swap(0) { ProbeVerdict::Stop } else { ProbeVerdict::GoOn };
    let mut crashing = session_with(dir.path(), stop);
    read(&mut crashing, "hard.txt");
    crashing.call("edit_file", &edit("hard.txt", "old", "new"));
    std::mem::forget(crashing);
    // As if the crash had come during the write.
    let mut file = OpenOptions::new().write(true).open(dir.path().join("hard.txt")).unwrap();
    file.write_all(b"new content, q").unwrap();
    file.set_len(14).unwrap();
    drop(file);
    drop(session(dir.path()));
    assert_eq!(content(dir.path(), "hard.txt"), "old content, quite long\n");
    assert_eq!(content(dir.path(), "other.txt"), "old content, quite long\n");
    assert_tidy(dir.path());
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Target {
    Plain,
    NoExchange,
    HardLink,
}

/// Another program changes the file between each pair of steps. Its change is never lost.
#[test]
fn a_foreign_change_at_any_instant_is_never_lost() {
    let in_place = |path: &Path| fs::write(path, "theirs\n").unwrap();
    let by_rename = |path: &Path| {
        fs::write(path.with_extension("tmp"), "theirs\n").unwrap();
        fs::rename(path.with_extension("tmp"), path).unwrap();
    };
    let same_size = |path: &Path| fs::write(path, "thei\n").unwrap();
    let keeping_it_open = |path: &Path| {
        let mut file = OpenOptions::new().append(true).open(path).unwrap();
        file.write_all(b"theirs").unwrap();
        std::thread::sleep(Duration::from_millis(3));
        file.write_all(b"\n").unwrap();
    };
    let writers: [fn(&Path); 4] = [in_place, by_rename, same_size, keeping_it_open];
    let targets = [Target::Plain, Target::NoExchange, Target::HardLink];
    let cases = writers.into_iter().enumerate().flat_map(|writer| targets.map(|target| (writer, target)));
    for ((kind, writer), how) in cases {
        // Where nothing can be exchanged, a rename in the very instant of ours is not seen: the reply says so.
        if kind == 1 && how != Target::Plain {
            continue;
        }
        for at in 0..steps(1).len() {
            let dir = lay_out(&[("a.txt", "one\n")]);
            let target = dir.path().join("a.txt");
            if how == Target::HardLink {
                fs::hard_link(&target, dir.path().join("b.txt")).unwrap();
            }
            let foreign = Foreign::default();
            let mut session = session_with(dir.path(), foreign.after(at, target, writer));
            if how == Target::NoExchange {
                surehand_engine::testing::without_exchange(session.workspace());
            }
            read(&mut session, "a.txt");
            let reply = session.call("edit_file", &edit("a.txt", "one", "ours"));
            foreign.join();
            // A session that continues does not overwrite it either.
            session.call("edit_file", &edit("a.txt", "ours", "more"));
            // Closing takes the second look at displaced files.
            drop(session);
            drop(self::session(dir.path()));
            let now = content(dir.path(), "a.txt");
            let kept = now.contains("thei") || rescued(dir.path()).iter().any(|text| text.contains("thei"));
            assert!(
                kept,
                "writer {kind}, {how:?}, after step {at}: file {now:?}, rescued {:?}, reply {}",
                rescued(dir.path()),
                reply.text
            );
        }
    }
}

/// A program keeps the file open and writes into it after it was replaced.
#[test]
fn a_late_write_into_a_displaced_file_is_rescued() {
    let dir = lay_out(&[("log.txt", "one\n")]);
    let mut open_elsewhere = OpenOptions::new().append(true).open(dir.path().join("log.txt")).unwrap();
    let mut ours = session(dir.path());
    read(&mut ours, "log.txt");
    let reply = ours.call("edit_file", &edit("log.txt", "one", "two"));
    assert!(!reply.is_error, "{}", reply.text);
    open_elsewhere.write_all(b"late\n").unwrap();
    drop(open_elsewhere);
    drop(ours);
    assert_eq!(content(dir.path(), "log.txt"), "two\n");
    assert_eq!(rescued(dir.path()), ["one\nlate\n"]);
}

/// A displaced file that is still open at the end waits for the next start, which reports it.
#[test]
fn a_displaced_file_that_is_still_open_is_kept_for_the_next_start() {
    let dir = lay_out(&[("log.txt", "one\n")]);
    let mut open_elsewhere = OpenOptions::new().append(true).open(dir.path().join("log.txt")).unwrap();
    let mut ours = session(dir.path());
    read(&mut ours, "log.txt");
    ours.call("edit_file", &edit("log.txt", "one", "two"));
    drop(ours);
    open_elsewhere.write_all(b"very late\n").unwrap();
    drop(open_elsewhere);
    let reply = session(dir.path()).call("read_file", &json!({ "path": "log.txt" })).text;
    assert!(reply.contains(".git/surehand/checkouts/main/rescued/"), "{reply}");
    assert_eq!(rescued(dir.path()), ["one\nvery late\n"]);
}

/// So many edits in a row that displaced files accumulate and the journal grows long.
#[test]
fn a_burst_of_edits_loses_and_leaves_nothing() {
    let dir = lay_out(&[("log.txt", "edit 0\n")]);
    let mut ours = session(dir.path());
    read(&mut ours, "log.txt");
    let mut open_elsewhere = None;
    for number in 0..2000 {
        if number == 1500 {
            let journals = fs::read_dir(dir.path().join(".git/surehand/checkouts/main/journal")).unwrap();
            journals.for_each(|journal| assert!(journal.unwrap().metadata().unwrap().len() < 600_000));
            open_elsewhere = OpenOptions::new().append(true).open(dir.path().join("log.txt")).ok();
        }
        let reply = ours.call("edit_file", &edit("log.txt", &format!("edit {number}"), &format!("edit {}", number + 1)));
        assert!(!reply.is_error, "{}", reply.text);
    }
    open_elsewhere.take().unwrap().write_all(b"late\n").unwrap();
    drop(ours);
    assert_eq!(content(dir.path(), "log.txt"), "edit 2000\n");
    assert_eq!(rescued(dir.path()), ["edit 1500\nlate\n"]);
    fs::remove_dir_all(dir.path().join(".git/surehand/checkouts/main/rescued")).unwrap();
    assert_tidy(dir.path());
}

/// Another program appends to the file constantly, and opens it for each line, as logs and editors do.
#[test]
fn a_foreign_program_appending_in_place_loses_nothing() {
    let dir = lay_out(&[("a.txt", "count 0\n")]);
    let path = dir.path().join("a.txt");
    let stop = AtomicUsize::new(0);
    let append = || {
        let mut lines = 0;
        // The loop is bounded, because on a slow machine it could write faster than the test reads.
        while stop.load(Ordering::SeqCst) == 0 && lines < 3000 {
            let mut file = OpenOptions::new().append(true).open(&path).unwrap();
            file.write_all(format!("foreign {lines}\n").as_bytes()).unwrap();
            drop(file);
            lines += 1;
            std::thread::sleep(Duration::from_micros(300));
        }
        lines
    };
    let lines = std::thread::scope(|scope| {
        let appender = scope.spawn(append);
        let mut session = session(dir.path());
        read(&mut session, "a.txt");
        let (mut done, mut tries) = (0, 0);
        while done < 100 && tries < 50_000 {
            // A stale refusal shows the new lines, so that the same call may pass the next time.
            let call = edit("a.txt", &format!("count {done}\n"), &format!("count {}\n", done + 1));
            done += usize::from(!session.call("edit_file", &call).is_error);
            tries += 1;
        }
        stop.store(1, Ordering::SeqCst);
        assert_eq!(done, 100, "after {tries} tries");
        appender.join().unwrap()
    });
    let all = content(dir.path(), "a.txt") + &rescued(dir.path()).concat();
    for line in 0..lines {
        assert!(all.contains(&format!("foreign {line}\n")), "line {line} of {lines} is lost");
    }
    assert!(content(dir.path(), "a.txt").starts_with("count 100\n"));
}

/// Several sessions count up one number in one file: no count is lost.
#[test]
fn sessions_editing_one_file_lose_nothing() {
    const EACH: usize = 25;
    let dir = lay_out(&[("n.txt", "0\n")]);
    let count_up = |session: &mut Session| loop {
        let shown = session.call("read_file", &json!({ "path": "n.txt" })).text;
        let number: usize = shown.lines().find_map(|line| line.strip_prefix("1|")).unwrap().parse().unwrap();
        let call = edit("n.txt", &format!("{number}\n"), &format!("{}\n", number + 1));
        if !session.call("edit_file", &call).is_error {
            break;
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut session = session(dir.path());
                (0..EACH).for_each(|_| count_up(&mut session));
            });
        }
    });
    assert_eq!(content(dir.path(), "n.txt"), format!("{}\n", 4 * EACH));
    drop(session(dir.path()));
    assert_tidy(dir.path());
}

/// A directory of the path becomes a symlink to another place between the plan and the write.
#[test]
fn a_link_swapped_in_during_the_call_leads_nowhere() {
    for at in 0..steps(1).len() {
        let dir = lay_out(&[("d/a.txt", "one\n")]);
        let elsewhere = lay_out(&[("a.txt", "one\n")]);
        let (root, out) = (dir.path().to_owned(), elsewhere.path().to_owned());
        let swapped = AtomicUsize::new(0);
        let probe = move |number: usize, _: CommitStep| {
            if number == at && swapped.fetch_add(1, Ordering::SeqCst) == 0 {
                fs::rename(root.join("d"), root.join("moved")).unwrap();
                symlink(&out, root.join("d")).unwrap();
            }
            ProbeVerdict::GoOn
        };
        let mut session = session_with(dir.path(), probe);
        read(&mut session, "d/a.txt");
        session.call("edit_file", &edit("d/a.txt", "one", "ours"));
        let reply = session.call("write_file", &json!({ "path": "d/new.txt", "content": "ours" }));
        assert_eq!(reply.result["refusal"]["code"], "outside_workspace", "{}", reply.text);
        drop(session);
        assert_eq!(tree(elsewhere.path()).into_keys().collect::<Vec<_>>(), ["a.txt"], "after step {at}");
        assert_eq!(content(elsewhere.path(), "a.txt"), "one\n", "after step {at}");
    }
}

#[test]
fn other_changes_are_shown_also_when_a_formatter_follows() {
    let dir = lay_out(&[("a.txt", "a\nb\nc\nd\n")]);
    let path = dir.path().join("a.txt");
    let format = move || fs::write(&path, "theirs\na\nb\nC\nd\nformatted\n").unwrap();
    let probe = Arc::new(once(|step| step == CommitStep::End, format));
    let mut config = fast();
    config.policy.on_change = surehand_engine::core::OnChange::Rebase;
    let mut session = Session::new(open_with_probe(dir.path(), config, probe));
    read(&mut session, "a.txt");
    fs::write(dir.path().join("a.txt"), "theirs\na\nb\nc\nd\n").unwrap();
    let reply = session.call("edit_file", &edit("a.txt", "c", "C"));
    assert_eq!(reply.result["rewritten"], true, "{}", reply.text);
    // Only lines that were shown count as seen.
    let overwrite = session.call("write_file", &json!({ "path": "a.txt", "content": "all\n" }));
    assert_eq!(reply.text.contains("1|theirs"), !overwrite.is_error, "{}", reply.text);
    assert!(!overwrite.is_error, "{}", overwrite.text);
}

#[test]
fn the_output_of_a_formatter_is_what_counts() {
    let dir = lay_out(&[("a.txt", "one\ntwo\n")]);
    let target = dir.path().join("a.txt");
    let formatted = AtomicUsize::new(0);
    let mut session = session_with(dir.path(), move |_, step| {
        if step == CommitStep::End && formatted.fetch_add(1, Ordering::SeqCst) == 0 {
            fs::write(target.with_extension("new"), "ONE\n  formatted\n").unwrap();
            fs::rename(target.with_extension("new"), &target).unwrap();
        }
        ProbeVerdict::GoOn
    });
    read(&mut session, "a.txt");
    let reply = session.call("edit_file", &edit("a.txt", "two", "formatted"));
    assert!(!reply.is_error && reply.text.contains("a.txt was rewritten right after"), "{}", reply.text);
    assert!(reply.text.contains("2|  formatted"), "{}", reply.text);
    assert_eq!(reply.result["rewritten"], true);
    // Not stale: the session is compared with the content that was written.
    let reply = session.call("edit_file", &edit("a.txt", "  formatted", "\tformatted"));
    assert!(!reply.is_error, "{}", reply.text);
}

#[test]
fn without_a_tracker_there_is_no_gate() {
    let dir = lay_out(&[("a.txt", "one\n")]);
    let mut session = Session::untracked(Workspace::open(dir.path(), fast()).unwrap());
    assert!(!session.call("edit_file", &edit("a.txt", "one", "two")).is_error);
    fs::write(dir.path().join("a.txt"), "three\n").unwrap();
    assert!(!session.call("edit_file", &edit("a.txt", "three", "four")).is_error);
    assert!(!session.call("write_file", &json!({ "path": "a.txt", "content": "five\n" })).is_error);
    assert_eq!(content(dir.path(), "a.txt"), "five\n");
}

#[test]
fn owner_mode_and_attributes_survive() {
    let dir = lay_out(&[("a.sh", "one\n")]);
    let path = dir.path().join("a.sh");
    let has_attributes = rustix::fs::setxattr(&path, "user.mark", b"kept", rustix::fs::XattrFlags::empty()).is_ok();
    // Only the superuser may give files away; for others the owner is ours and stays so.
    let _ = std::os::unix::fs::chown(&path, Some(12345), Some(23456));
    fs::set_permissions(&path, fs::Permissions::from_mode(0o4750)).unwrap();
    let before = fs::metadata(&path).unwrap();
    let mut session = session(dir.path());
    read(&mut session, "a.sh");
    let reply = session.call("edit_file", &edit("a.sh", "one", "two"));
    assert!(!reply.is_error, "{}", reply.text);
    let after = fs::metadata(&path).unwrap();
    assert_eq!((after.mode(), after.uid(), after.gid()), (before.mode(), before.uid(), before.gid()));
    if has_attributes {
        let mut value = [0; 4];
        rustix::fs::getxattr(&path, "user.mark", &mut value[..]).unwrap();
        assert_eq!(&value, b"kept");
    }
}

/// A superuser is not affected by permissions; a process of another user is, if one can be had.
#[test]
fn a_read_only_file_or_directory_leaves_the_original() {
    if rustix::process::geteuid().is_root() {
        // Run this very test as another user.
        let program = std::env::current_exe().unwrap();
        let open_dir = tempfile::tempdir().unwrap();
        let copy = open_dir.path().join("test");
        fs::copy(&program, &copy).unwrap();
        fs::set_permissions(open_dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let name = "commit::a_read_only_file_or_directory_leaves_the_original";
        let mut command = std::process::Command::new(copy);
        let output = command.args(["--exact", name]).env("TMPDIR", "/tmp").uid(65534).gid(65534).output().unwrap();
        let report = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && report.contains("1 passed"), "{report}");
        return;
    }
    let dir = lay_out(&[("file.txt", "one\n"), ("dir/a.txt", "one\n"), ("secret.txt", "one\n")]);
    let mode = |path: &str, mode| fs::set_permissions(dir.path().join(path), fs::Permissions::from_mode(mode)).unwrap();
    let mut session = session(dir.path());
    read(&mut session, "file.txt");
    read(&mut session, "dir/a.txt");
    mode("file.txt", 0o444);
    mode("dir", 0o555);
    mode("secret.txt", 0o000);
    for call in [edit("file.txt", "one", "two"), edit("dir/a.txt", "one", "two"), edit("dir/new.txt", "", "two")] {
        let reply = session.call("edit_file", &call);
        assert_eq!(reply.result["refusal"]["code"], "io", "{}", reply.text);
    }
    let reply = session.call("read_file", &json!({ "path": "secret.txt" }));
    assert!(reply.is_error && reply.text.contains("Permission denied"), "{}", reply.text);
    mode("dir", 0o755);
    assert_eq!(content(dir.path(), "file.txt"), "one\n");
    assert_eq!(content(dir.path(), "dir/a.txt"), "one\n");
    drop(session);
    assert_tidy(dir.path());
}

/// The system counts the bytes that a thread reads.
#[cfg(target_os = "linux")]
#[test]
fn unchanged_files_are_not_read_again() {
    const SIZE: usize = 4_000_000;
    let bytes_read = || {
        let counts = fs::read_to_string("/proc/thread-self/io").unwrap();
        let count = counts.lines().find_map(|line| line.strip_prefix("rchar: ")).unwrap();
        count.parse::<usize>().unwrap()
    };
    let dir = lay_out(&[("a.txt", &"line\n".repeat(SIZE / 5))]);
    // Older than any clock step, so that the stamp is proof everywhere.
    std::thread::sleep(Duration::from_millis(30));
    let mut session = session(dir.path());
    let first_line = json!({ "path": "a.txt", "limit": 1 });
    let start = bytes_read();
    session.call("read_file", &first_line);
    let first = bytes_read();
    assert!(first - start >= SIZE, "the first time the bytes are read");
    for _ in 0..3 {
        assert!(!session.call("read_file", &first_line).is_error);
    }
    assert!(bytes_read() - first < SIZE / 2, "afterwards the stamp is enough");
}

#[test]
fn a_state_directory_that_vanishes_is_made_again() {
    let dir = lay_out(&[("a.txt", "one\n")]);
    let mut session = session(dir.path());
    read(&mut session, "a.txt");
    fs::remove_dir_all(dir.path().join(".git/surehand")).unwrap();
    let reply = session.call("edit_file", &edit("a.txt", "one", "two"));
    assert!(!reply.is_error && reply.text.contains("state directory was removed"), "{}", reply.text);
    assert_eq!(content(dir.path(), "a.txt"), "two\n");
}

/// An entry among the journals that is not one of ours does not prevent opening the workspace, and stays.
#[test]
fn an_entry_that_is_not_a_journal_is_left_alone() {
    let dir = lay_out(&[("a.txt", "one\n")]);
    drop(session(dir.path()));
    let journals = dir.path().join(".git/surehand/checkouts/main/journal");
    fs::create_dir(journals.join("1-directory")).unwrap();
    fs::write(journals.join("1-text"), "hello\n").unwrap();
    std::os::unix::fs::symlink("/dev/zero", journals.join("1-link")).unwrap();
    let pipe = std::ffi::CString::new(journals.join("1-pipe").to_str().unwrap()).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, &*pipe, rustix::fs::Mode::from_raw_mode(0o600)).unwrap();
    let reply = session(dir.path()).call("read_file", &json!({ "path": "a.txt" }));
    assert!(!reply.is_error, "{}", reply.text);
    assert_eq!(fs::read_dir(&journals).unwrap().count(), 4);
}

#[test]
fn a_session_that_continues_in_another_process_knows_what_it_has_seen() {
    let dir = lay_out(&[("a.txt", "one\ntwo\n")]);
    let again = || Session::continued(Workspace::open(dir.path(), fast()).unwrap(), SessionId("s".to_owned()));
    read(&mut again(), "a.txt");
    fs::write(dir.path().join("a.txt"), "ONE\ntwo\n").unwrap();
    let reply = again().call("edit_file", &edit("a.txt", "two", "2"));
    assert_eq!(reply.result["refusal"]["affected_ranges"], json!([{ "start": 1, "end": 1 }]), "{}", reply.text);
    assert!(!again().call("edit_file", &edit("a.txt", "two", "2")).is_error);
    let reply = session(dir.path()).call("edit_file", &edit("a.txt", "2", "two"));
    assert_eq!(reply.result["refusal"]["code"], "unread", "another session has not");
}

#[test]
fn a_file_open_for_reading_elsewhere_does_not_stop_an_edit() {
    let dir = lay_out(&[("a.txt", "one\n")]);
    let reader = File::open(dir.path().join("a.txt")).unwrap();
    let mut ours = session(dir.path());
    read(&mut ours, "a.txt");
    let reply = ours.call("edit_file", &edit("a.txt", "one", "two"));
    assert!(!reply.is_error, "{}", reply.text);
    drop((reader, ours));
    drop(session(dir.path()));
    assert_tidy(dir.path());
}
