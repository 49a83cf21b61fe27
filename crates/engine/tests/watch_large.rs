//! The watcher on a large tree, alone in its process: it takes two handles and a watch per directory, however many
//! files there are, and its thread ends with it.
#![cfg(target_os = "linux")]
#![expect(clippy::disallowed_methods, reason = "tests play the other programs")]

use std::fs::{self, File};

use surehand_engine::{core::RelPath, testing::watch};

const DIRECTORIES: usize = 20_000;

fn open_handles() -> usize {
    fs::read_dir("/proc/self/fd").unwrap().count()
}

/// How many directories the process watches.
fn watches() -> usize {
    let described = fs::read_dir("/proc/self/fdinfo").unwrap().flatten().map(|entry| fs::read_to_string(entry.path()));
    described.flatten().map(|text| text.lines().filter(|line| line.starts_with("inotify wd:")).count()).sum()
}

fn watcher_threads() -> usize {
    let threads = fs::read_dir("/proc/self/task").unwrap().flatten();
    threads
        .filter(|thread| fs::read_to_string(thread.path().join("comm")).is_ok_and(|name| name.trim() == "surehand-watch"))
        .count()
}

#[test]
fn a_hundred_thousand_files_take_two_handles() {
    // In memory if possible, and each file with many hard links, because creating that many files takes long.
    let dir = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
    surehand_testkit::make_repository(dir.path());
    for number in 0..DIRECTORIES {
        let outer = dir.path().join((number % 100).to_string());
        let inner = outer.join(number.to_string());
        fs::create_dir_all(&inner).unwrap();
        if number < 100 {
            File::create(outer.join("file")).unwrap();
        }
        ["a", "b", "c", "d", "e"].iter().for_each(|name| fs::hard_link(outer.join("file"), inner.join(name)).unwrap());
    }
    let before = open_handles();

    drop(watch(dir.path()));
    assert_eq!((watcher_threads(), open_handles()), (0, before), "it ends in the middle of its work");

    let mut hints = watch(dir.path());
    assert_eq!(hints(), None, "a new reader knows nothing");
    assert_eq!((open_handles() - before, watches()), (2, DIRECTORIES + 101));
    fs::write(dir.path().join("99/19999/e"), "new").unwrap();
    assert_eq!(hints(), Some(vec![RelPath::new("99/19999/e").unwrap()]));
    drop(hints);
    assert_eq!(open_handles(), before);
}
