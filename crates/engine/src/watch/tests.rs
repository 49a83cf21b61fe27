//! Tests the watcher with real files: the answer covers everything that was done before the call.
#![expect(clippy::disallowed_methods, reason = "tests play the other programs")]

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    fs::{self, File},
    io::Write,
    os::unix::{
        ffi::OsStrExt,
        fs::{PermissionsExt, symlink},
    },
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
    time::SystemTime,
};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use surehand_core::RelPath;
use surehand_testkit::as_unprivileged;

use super::{FileWatcher, HintCursor, WatchHints, WatchTrouble};

struct Fixture {
    // Dropped first: the watcher must not depend on the tree.
    watch: FileWatcher,
    cursor: HintCursor,
    dir: tempfile::TempDir,
}

/// A watched tree with these directories and files (`a/` is a directory), without pending hints.
fn fixture(layout: &[&str]) -> Fixture {
    fixture_in(tempfile::tempdir().unwrap(), layout)
}

/// Like [`fixture`], in memory if possible, for tests that create many files.
fn quick_fixture(layout: &[&str]) -> Fixture {
    let dir = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
    fixture_in(dir, layout)
}

fn fixture_in(dir: tempfile::TempDir, layout: &[&str]) -> Fixture {
    for path in layout {
        let at = dir.path().join(path);
        if path.ends_with('/') {
            fs::create_dir_all(at).unwrap();
        } else {
            fs::create_dir_all(at.parent().unwrap()).unwrap();
            fs::write(at, "old").unwrap();
        }
    }
    watched(dir)
}

fn watched(dir: tempfile::TempDir) -> Fixture {
    let watch = FileWatcher::start(dir.path());
    watch.wait();
    let mut cursor = watch.cursor();
    assert_eq!(watch.hints(&mut cursor), WatchHints::Everything, "a new reader knows nothing");
    assert_eq!(watch.hints(&mut cursor), WatchHints::Paths(vec![]));
    Fixture { watch, cursor, dir }
}

fn path(path: &str) -> RelPath {
    RelPath::new(path).unwrap()
}

fn paths(paths: &[&str]) -> WatchHints {
    WatchHints::Paths(paths.iter().map(|name| path(name)).collect())
}

impl Fixture {
    fn hints(&mut self) -> WatchHints {
        self.watch.hints(&mut self.cursor)
    }

    fn write(&self, path: &str) {
        fs::write(self.dir.path().join(path), "new").unwrap();
    }

    fn rename(&self, from: &str, to: &str) {
        fs::rename(self.dir.path().join(from), self.dir.path().join(to)).unwrap();
    }

    /// Checks that these hints are given, and none after them.
    #[track_caller]
    fn check_hints(&mut self, expected: &[&str]) {
        assert_eq!(self.hints(), paths(expected));
        assert_eq!(self.hints(), paths(&[]));
    }

    /// Adds all watches again, as after lost events.
    #[track_caller]
    fn begins_again(&mut self) {
        fs::write(self.dir.path().join(".gitignore"), "made\n").unwrap();
        assert_eq!(self.hints(), WatchHints::Everything);
    }

    /// Checks that a write to this file is reported, so its directory is watched.
    #[track_caller]
    fn is_watched(&mut self, path: &str) {
        self.hints();
        self.write(path);
        self.check_hints(&[path]);
    }
}

/// One operation in a tree with `a`, `b`, `d/f` and the empty directory `e`.
#[track_caller]
fn check(act: impl FnOnce(&Path), expected: &[&str]) {
    let mut fixture = fixture(&["a", "b", "d/f", "e/"]);
    act(fixture.dir.path());
    fixture.check_hints(expected);
}

#[test]
fn a_write_is_reported() {
    check(|root| fs::write(root.join("a"), "new").unwrap(), &["a"]);
    check(|root| fs::write(root.join("d/f"), "new").unwrap(), &["d/f"]);
}

#[test]
fn reading_is_not_reported() {
    check(|root| assert_eq!(fs::read(root.join("d/f")).unwrap(), b"old"), &[]);
}

#[test]
fn a_write_is_reported_while_the_file_is_still_open() {
    let mut fixture = fixture(&["a"]);
    let mut file = File::options().append(true).open(fixture.dir.path().join("a")).unwrap();
    fixture.check_hints(&[]);
    file.write_all(b"more").unwrap();
    fixture.check_hints(&["a"]);
    file.set_len(2).unwrap();
    fixture.check_hints(&["a"]);
}

#[test]
fn a_new_file_is_reported() {
    check(|root| fs::write(root.join("e/new"), "").unwrap(), &["e/new"]);
}

#[test]
fn a_rename_over_another_file_reports_both() {
    check(|root| fs::rename(root.join("a"), root.join("d/f")).unwrap(), &["a", "d/f"]);
}

#[test]
fn an_exchange_reports_both() {
    check(|root| renameat_with(CWD, root.join("a"), CWD, root.join("b"), RenameFlags::EXCHANGE).unwrap(), &["a", "b"]);
}

#[test]
fn a_file_from_outside_the_tree_is_reported() {
    let elsewhere = tempfile::tempdir().unwrap();
    fs::write(elsewhere.path().join("x"), "new").unwrap();
    check(|root| fs::rename(elsewhere.path().join("x"), root.join("a")).unwrap(), &["a"]);
}

#[test]
fn a_removal_is_reported() {
    check(|root| fs::remove_file(root.join("d/f")).unwrap(), &["d/f"]);
    check(|root| fs::remove_dir(root.join("e")).unwrap(), &["e"]);
    check(|root| fs::remove_dir_all(root.join("d")).unwrap(), &["d", "d/f"]);
}

#[test]
fn a_touch_and_a_new_mode_are_reported() {
    check(|root| File::open(root.join("a")).unwrap().set_modified(SystemTime::UNIX_EPOCH).unwrap(), &["a"]);
    check(|root| fs::set_permissions(root.join("a"), fs::Permissions::from_mode(0o600)).unwrap(), &["a"]);
}

#[test]
fn a_new_directory_covers_its_entries() {
    let mut fixture = fixture(&["a"]);
    fs::create_dir(fixture.dir.path().join("new")).unwrap();
    fixture.write("new/x");
    fixture.check_hints(&["new"]);
    fixture.is_watched("new/x");
    fixture.is_watched("new/y");
}

#[test]
fn deep_directories_made_at_once_are_covered_and_watched() {
    let mut fixture = fixture(&["a"]);
    fs::create_dir_all(fixture.dir.path().join("1/2/3/4/5")).unwrap();
    fixture.write("1/2/3/4/5/x");
    fixture.check_hints(&["1"]);
    fixture.is_watched("1/2/3/4/5/x");
    fixture.is_watched("1/2/y");
}

#[test]
fn a_renamed_directory_is_reported_under_both_names_and_watched_under_the_new_one() {
    let mut fixture = fixture(&["old/deep/x", "other/"]);
    fixture.rename("old", "other/new");
    fixture.write("other/new/deep/x");
    fixture.check_hints(&["old", "other/new"]);
    fixture.is_watched("other/new/deep/x");
    fs::create_dir_all(fixture.dir.path().join("old/deep")).unwrap();
    fixture.is_watched("old/deep/x");
}

#[test]
fn exchanged_directories_are_watched_under_their_new_names() {
    let mut fixture = fixture(&["a/1", "b/2"]);
    let root = fixture.dir.path();
    renameat_with(CWD, root.join("a"), CWD, root.join("b"), RenameFlags::EXCHANGE).unwrap();
    fixture.check_hints(&["a", "b"]);
    fixture.is_watched("a/2");
    fixture.is_watched("b/1");
}

#[test]
fn a_directory_that_was_moved_out_of_the_tree_is_not_reported_any_more() {
    let mut fixture = fixture(&["a/1"]);
    let elsewhere = tempfile::tempdir().unwrap();
    fs::rename(fixture.dir.path().join("a"), elsewhere.path().join("a")).unwrap();
    fixture.check_hints(&["a"]);
    fs::write(elsewhere.path().join("a/1"), "new").unwrap();
    fixture.check_hints(&[]);
    fs::rename(elsewhere.path().join("a"), fixture.dir.path().join("b")).unwrap();
    fixture.check_hints(&["b"]);
    fixture.is_watched("b/1");
}

#[test]
fn a_directory_that_was_replaced_is_watched() {
    let mut fixture = fixture(&["a/b/1"]);
    for _ in 0..3 {
        fs::remove_dir_all(fixture.dir.path().join("a")).unwrap();
        fs::create_dir_all(fixture.dir.path().join("a/b")).unwrap();
        fixture.write("a/b/1");
        assert!(fixture.hints().covers(&path("a/b/1")));
        fixture.is_watched("a/b/1");
    }
}

#[test]
fn a_linked_directory_is_not_followed() {
    let elsewhere = tempfile::tempdir().unwrap();
    fs::create_dir(elsewhere.path().join("inner")).unwrap();
    let mut fixture = fixture(&["a/1"]);
    symlink(elsewhere.path(), fixture.dir.path().join("out")).unwrap();
    symlink("a", fixture.dir.path().join("alias")).unwrap();
    fixture.check_hints(&["alias", "out"]);
    fs::write(elsewhere.path().join("inner/x"), "").unwrap();
    fixture.check_hints(&[]);
    fixture.is_watched("a/1");
}

#[test]
fn names_that_are_not_utf8_do_no_harm() {
    let mut fixture = fixture(&["a"]);
    let bad = fixture.dir.path().join(OsStr::from_bytes(b"bad\xff"));
    fs::create_dir(&bad).unwrap();
    fs::write(bad.join("x"), "").unwrap();
    fs::write(fixture.dir.path().join(OsStr::from_bytes(b"\xfe")), "").unwrap();
    fixture.check_hints(&[]);
    fs::rename(bad, fixture.dir.path().join("good")).unwrap();
    fixture.check_hints(&["good"]);
    fixture.is_watched("good/x");
}

#[test]
fn paths_that_are_too_long_do_no_harm() {
    let long = vec!["x".repeat(250); 10].join("/");
    let mut fixture = fixture(&["a", &format!("one/{long}/"), &format!("two/{long}/")]);
    fixture.rename("two", &format!("one/{long}/two"));
    assert!(fixture.hints().covers(&path("two")));
    fixture.begins_again();
    fixture.is_watched("a");
    fixture.is_watched(&format!("one/{long}/two/a"));
    fixture.rename(&format!("one/{long}/two"), "two");
    assert!(fixture.watch.trouble().is_none());
}

#[test]
fn every_reader_gets_the_changes_since_its_own_last_call() {
    let mut fixture = fixture(&["a", "b"]);
    let mut other = fixture.watch.cursor();
    assert_eq!(fixture.watch.hints(&mut other), WatchHints::Everything);
    fixture.write("a");
    fixture.check_hints(&["a"]);
    fixture.write("b");
    assert_eq!(fixture.watch.hints(&mut other), paths(&["a", "b"]));
    fixture.write("a");
    fixture.check_hints(&["a", "b"]);
    assert_eq!(fixture.watch.hints(&mut other), paths(&["a"]));
}

#[test]
fn five_thousand_files_at_once_are_reported_by_name() {
    let mut fixture = quick_fixture(&["d/"]);
    let names: Vec<String> = (0..5000).map(|number| format!("d/{number:05}")).collect();
    for name in &names {
        File::create(fixture.dir.path().join(name)).unwrap();
    }
    fixture.check_hints(&names.iter().map(String::as_str).collect::<Vec<_>>());
}

#[test]
fn ten_thousand_files_at_once_are_covered() {
    let mut fixture = quick_fixture(&["d/"]);
    for number in 0..10_000 {
        fixture.write(&format!("d/{number}"));
    }
    let hints = fixture.hints();
    assert!((0..10_000).all(|number| hints.covers(&path(&format!("d/{number}")))));
    fixture.is_watched("d/1");
}

fn overflow(root: &Path) {
    let limit: usize = fs::read_to_string("/proc/sys/fs/inotify/max_queued_events").unwrap().trim().parse().unwrap();
    // Equal consecutive events are merged.
    let files = [File::open(root.join("a")).unwrap(), File::open(root.join("b")).unwrap()];
    for turn in 0..=limit {
        files[turn % 2].set_modified(SystemTime::UNIX_EPOCH).unwrap();
    }
}

#[test]
fn lost_events_mean_everything_once() {
    let mut fixture = fixture(&["a", "b", "d/x"]);
    overflow(fixture.dir.path());
    // This is no longer in the queue.
    fs::create_dir_all(fixture.dir.path().join("new/deep")).unwrap();
    fixture.rename("d", "e");
    assert_eq!(fixture.hints(), WatchHints::Everything);
    fixture.check_hints(&[]);
    fixture.is_watched("new/deep/x");
    fixture.is_watched("e/x");
    fixture.is_watched("a");
}

#[test]
fn lost_events_in_a_large_tree_mean_everything_until_it_is_watched_again() {
    let directories: Vec<String> = (0..300).map(|number| format!("{number}/")).collect();
    let mut layout = vec!["a", "b"];
    layout.extend(directories.iter().map(String::as_str));
    let mut fixture = quick_fixture(&layout);
    overflow(fixture.dir.path());
    assert_eq!(fixture.hints(), WatchHints::Everything);
    fixture.watch.watch_path(&path("7/x"));
    fixture.watch.wait();
    assert_eq!(fixture.hints(), WatchHints::Everything);
    fixture.check_hints(&[]);
    fixture.is_watched("299/x");
    assert!(fixture.watch.trouble().is_none());
}

#[test]
fn a_large_tree_that_comes_at_once_means_everything_until_it_is_watched() {
    let mut fixture = quick_fixture(&["a"]);
    for number in 0..1000 {
        fs::create_dir_all(fixture.dir.path().join(format!("new/{number}"))).unwrap();
    }
    assert_eq!(fixture.hints(), WatchHints::Everything);
    fixture.watch.wait();
    assert_eq!(fixture.hints(), WatchHints::Everything);
    fixture.is_watched("new/999/x");
}

/// A repository that ignores `made`, with a file in it.
fn ignoring() -> Fixture {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir_all(dir.path().join("made/deep/er")).unwrap();
    fs::create_dir_all(dir.path().join(".git/objects")).unwrap();
    fs::create_dir_all(dir.path().join(".surehand")).unwrap();
    fs::write(dir.path().join("made/deep/x"), "").unwrap();
    fs::write(dir.path().join(".gitignore"), "made\n").unwrap();
    watched(dir)
}

#[test]
fn ignored_files_are_not_reported() {
    let mut fixture = ignoring();
    for path in ["made/x", "made/deep/x", ".git/index", ".surehand/repostate.json"] {
        fixture.write(path);
    }
    fixture.check_hints(&[]);
}

#[test]
fn ignored_files_that_were_asked_for_are_reported() {
    let mut fixture = ignoring();
    fixture.watch.watch_path(&path("made/deep/x"));
    fixture.check_hints(&["made", "made/deep"]);
    fixture.watch.watch_path(&path("made/deep/y"));
    fixture.check_hints(&[]);
    fixture.write("made/deep/x");
    fixture.write("made/deep/er/not_asked_for");
    fixture.check_hints(&["made/deep/x"]);
    fixture.rename("made", "gone");
    assert!(fixture.hints().covers(&path("made/deep/x")));
}

#[test]
fn files_that_were_asked_for_are_watched_again_after_they_are_recreated() {
    let mut fixture = ignoring();
    fixture.watch.watch_path(&path("made/deep/x"));
    fs::remove_dir_all(fixture.dir.path().join("made")).unwrap();
    assert!(fixture.hints().covers(&path("made/deep/x")));
    fs::create_dir(fixture.dir.path().join("made")).unwrap();
    fixture.check_hints(&["made"]);
    fs::create_dir_all(fixture.dir.path().join("made/deep/other")).unwrap();
    fixture.check_hints(&["made/deep"]);
    fixture.is_watched("made/deep/x");
    fixture.write("made/deep/other/not_asked_for");
    fixture.check_hints(&[]);
    fixture.begins_again();
    fixture.is_watched("made/deep/x");
}

#[test]
fn files_that_were_asked_for_before_the_watches_are_in_place_are_watched() {
    let fixture = ignoring();
    let watch = FileWatcher::start(fixture.dir.path());
    watch.watch_path(&path("made/deep/x"));
    watch.wait();
    let mut cursor = watch.cursor();
    assert_eq!(watch.hints(&mut cursor), WatchHints::Everything);
    fixture.write("made/deep/x");
    assert!(watch.hints(&mut cursor).covers(&path("made/deep/x")));
}

#[test]
fn new_rules_are_heeded() {
    let mut fixture = ignoring();
    fs::write(fixture.dir.path().join(".gitignore"), "other\n").unwrap();
    assert_eq!(fixture.hints(), WatchHints::Everything);
    fixture.is_watched("made/deep/er/x");
    fs::create_dir(fixture.dir.path().join("other")).unwrap();
    fixture.check_hints(&["other"]);
    fixture.write("other/x");
    fixture.check_hints(&[]);
}

#[test]
fn a_file_with_several_names_is_in_every_answer() {
    let mut fixture = fixture(&["a", "b"]);
    let elsewhere = tempfile::tempdir_in(fixture.dir.path().parent().unwrap()).unwrap();
    fs::hard_link(fixture.dir.path().join("a"), elsewhere.path().join("a")).unwrap();
    fixture.watch.watch_path(&path("a"));
    fixture.watch.watch_path(&path("b"));
    fixture.hints();
    fs::write(elsewhere.path().join("a"), "new").unwrap();
    assert_eq!(fixture.hints(), paths(&["a"]));
    assert_eq!(fixture.hints(), paths(&["a"]));
    fixture.write("b");
    assert_eq!(fixture.hints(), paths(&["a", "b"]));
}

#[test]
fn a_root_that_was_moved_or_removed_gives_no_hints() {
    let checks: [fn(&Path, &Path); 2] =
        [|root, elsewhere| fs::rename(root, elsewhere.join("moved")).unwrap(), |root, _| fs::remove_dir_all(root).unwrap()];
    for act in checks {
        let outer = tempfile::tempdir().unwrap();
        let root = outer.path().join("root");
        fs::create_dir(&root).unwrap();
        fs::write(root.join("a"), "").unwrap();
        let watch = FileWatcher::start(&root);
        watch.wait();
        let mut cursor = watch.cursor();
        watch.hints(&mut cursor);
        act(&root, outer.path());
        assert_eq!(watch.hints(&mut cursor), WatchHints::Everything);
        assert_eq!(watch.hints(&mut cursor), WatchHints::Everything);
        assert!(matches!(watch.trouble(), Some(WatchTrouble::RootGone)));
        assert!(watch.trouble().is_none(), "it is reported once");
    }
}

#[test]
fn a_root_below_one_that_was_moved_is_watched_on() {
    let outer = tempfile::tempdir().unwrap();
    fs::create_dir_all(outer.path().join("above/root")).unwrap();
    let watch = FileWatcher::start(&outer.path().join("above/root"));
    watch.wait();
    let mut cursor = watch.cursor();
    watch.hints(&mut cursor);
    fs::rename(outer.path().join("above"), outer.path().join("moved")).unwrap();
    fs::create_dir(outer.path().join("moved/root/new")).unwrap();
    assert_eq!(watch.hints(&mut cursor), paths(&["new"]));
    fs::write(outer.path().join("moved/root/new/x"), "").unwrap();
    assert_eq!(watch.hints(&mut cursor), paths(&["new/x"]));
}

#[track_caller]
fn check_trouble(root: &Path, is_expected: impl Fn(&WatchTrouble) -> bool) {
    let watch = FileWatcher::start(root);
    watch.watch_path(&path("a"));
    watch.wait();
    let mut cursor = watch.cursor();
    assert_eq!(watch.hints(&mut cursor), WatchHints::Everything);
    assert_eq!(watch.hints(&mut cursor), WatchHints::Everything);
    let trouble = watch.trouble().unwrap();
    assert!(is_expected(&trouble), "{trouble}");
    assert!(watch.trouble().is_none(), "it is reported once");
}

#[test]
fn a_file_system_that_does_not_report_changes_is_trouble() {
    check_trouble(Path::new("/proc/self"), |trouble| matches!(trouble, WatchTrouble::NotLocal));
}

#[test]
fn a_root_that_cannot_be_opened_is_trouble() {
    let dir = tempfile::tempdir().unwrap();
    check_trouble(&dir.path().join("none"), |trouble| matches!(trouble, WatchTrouble::System { .. }));
    let closed = dir.path().join("closed");
    fs::create_dir(&closed).unwrap();
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o000)).unwrap();
    as_unprivileged(dir.path(), || check_trouble(&closed, |trouble| matches!(trouble, WatchTrouble::System { .. })));
}

#[test]
fn a_directory_that_cannot_be_watched_is_in_every_answer_until_it_can() {
    let fixture = fixture(&["a", "closed/b/x"]);
    let closed = fixture.dir.path().join("closed");
    // A program that knows the name can open a file in it. Only listing and watching are forbidden.
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o311)).unwrap();
    as_unprivileged(fixture.dir.path(), || {
        let watch = FileWatcher::start(fixture.dir.path());
        watch.wait();
        let mut cursor = watch.cursor();
        assert_eq!(watch.hints(&mut cursor), WatchHints::Everything);
        assert_eq!(watch.hints(&mut cursor), paths(&["closed"]));
        watch.watch_path(&path("closed/b/x"));
        watch.hints(&mut cursor);
        assert_eq!(watch.hints(&mut cursor), paths(&["closed"]));
        fs::set_permissions(&closed, fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(watch.hints(&mut cursor), paths(&["closed"]));
        fs::write(closed.join("b/x"), "new").unwrap();
        assert_eq!(watch.hints(&mut cursor), paths(&["closed/b/x"]));
        assert!(watch.trouble().is_none());
    });
}

/// The number of simulated programs.
const SEEDS: u64 = 20;

/// The files as a reader knows them that checks only the hints.
#[derive(Debug, Default, PartialEq, Eq)]
struct Mirror(BTreeMap<String, Vec<u8>>);

impl Mirror {
    fn follow(&mut self, root: &Path, hints: &WatchHints) {
        let WatchHints::Paths(paths) = hints else {
            self.0.clear();
            return self.look(root, "");
        };
        for path in paths.iter().map(RelPath::as_str) {
            self.0.retain(|known, _| known != path && !known.strip_prefix(path).is_some_and(|rest| rest.starts_with('/')));
            self.look(root, path);
        }
    }

    fn look(&mut self, root: &Path, path: &str) {
        let full = root.join(path);
        if let Ok(entries) = fs::read_dir(&full) {
            for entry in entries.flatten() {
                let name = entry.file_name().into_string().unwrap();
                self.look(root, &if path.is_empty() { name } else { format!("{path}/{name}") });
            }
        } else if let Ok(bytes) = fs::read(&full) {
            self.0.insert(path.to_owned(), bytes);
        }
    }
}

/// A program that performs random operations, some of which fail.
struct Busy(u64);

impl Busy {
    fn pick(&mut self, of: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % of
    }

    fn path(&mut self, root: &Path) -> std::path::PathBuf {
        (0..=self.pick(4)).fold(root.to_owned(), |path, _| path.join(["a", "b", "c"][self.pick(3) as usize]))
    }

    fn act(&mut self, root: &Path) {
        let (path, other) = (self.path(root), self.path(root));
        let text = self.0.to_string();
        drop(match self.pick(8) {
            0 | 1 => fs::create_dir_all(&path),
            2..=4 => fs::write(&path, &text),
            5 => File::options().append(true).open(&path).and_then(|mut file| file.write_all(b"more")),
            6 => fs::rename(&path, &other),
            _ if self.pick(4) == 0 => fs::remove_dir_all(&path),
            _ => fs::remove_file(&path),
        });
    }
}

#[test]
fn a_reader_that_checks_only_the_hints_knows_everything() {
    for seed in 0..SEEDS {
        let mut fixture = quick_fixture(&[]);
        let mut busy = Busy(seed);
        let mut mirror = Mirror::default();
        for _ in 0..100 {
            (0..busy.pick(20)).for_each(|_| busy.act(fixture.dir.path()));
            let hints = fixture.hints();
            assert_ne!(hints, WatchHints::Everything);
            mirror.follow(fixture.dir.path(), &hints);
            let mut actual = Mirror::default();
            actual.follow(fixture.dir.path(), &WatchHints::Everything);
            assert_eq!(mirror, actual, "seed {seed}");
        }
    }
}

#[test]
fn a_reader_that_checks_only_the_hints_knows_everything_also_during_changes() {
    for seed in 0..SEEDS {
        let fixture = quick_fixture(&[]);
        let root = fixture.dir.path();
        let mut mirror = Mirror::default();
        let mut busy = Busy(seed);
        (0..100).for_each(|_| busy.act(root));
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                (0..2000).for_each(|_| busy.act(root));
                done.store(true, Ordering::Release);
            });
            // The watcher starts in the middle of the operations.
            let watch = FileWatcher::start(root);
            let mut cursor = watch.cursor();
            loop {
                let is_last = done.load(Ordering::Acquire);
                mirror.follow(root, &watch.hints(&mut cursor));
                if is_last {
                    break;
                }
            }
        });
        let mut actual = Mirror::default();
        actual.follow(root, &WatchHints::Everything);
        assert_eq!(mirror, actual, "seed {seed}");
    }
}

#[test]
fn more_directories_than_allowed_are_trouble_that_is_reported_once() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["a", "b", "c"] {
        std::fs::create_dir(dir.path().join(name)).unwrap();
    }
    let watch = FileWatcher::start_with(dir.path(), 3);
    watch.wait();
    assert_eq!(watch.hints(&mut watch.cursor()), WatchHints::Everything);
    assert!(matches!(watch.trouble(), Some(WatchTrouble::TooManyDirectories { limit: 3 })));
    assert!(watch.trouble().is_none());
}

#[test]
fn one_directory_too_many_later_is_trouble_then() {
    let dir = tempfile::tempdir().unwrap();
    let watch = FileWatcher::start_with(dir.path(), 2);
    watch.wait();
    let mut cursor = watch.cursor();
    assert_eq!(watch.hints(&mut cursor), WatchHints::Everything);
    std::fs::create_dir(dir.path().join("a")).unwrap();
    assert_eq!(watch.hints(&mut cursor), WatchHints::Paths(vec![RelPath::new("a").unwrap()]));
    std::fs::create_dir(dir.path().join("b")).unwrap();
    assert_eq!(watch.hints(&mut cursor), WatchHints::Everything);
    assert!(watch.trouble().is_some());
}

#[test]
fn a_hint_covers_what_is_beneath_it() {
    let hints = WatchHints::Paths(vec![path("a/b"), path("c")]);
    for covered in ["a/b", "a/b/c", "a/b/c/d", "c"] {
        assert!(hints.covers(&path(covered)), "{covered}");
    }
    for not in ["a", "a/bc", "d/c", "cc"] {
        assert!(!hints.covers(&path(not)), "{not}");
    }
    assert!(WatchHints::Everything.covers(&path("a")));
}
