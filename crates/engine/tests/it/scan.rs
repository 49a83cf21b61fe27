//! Scans of real trees: they report every change since the previous scan, whatever was done to the files.
#![expect(clippy::disallowed_methods, reason = "tests play the other programs")]

use std::{
    collections::BTreeMap,
    fs::{self, File, FileTimes},
    os::unix::fs::{PermissionsExt, symlink},
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
    time::{Duration, SystemTime},
};

use crate::fixture::{fast, lay_out};
use proptest::prelude::*;
use rustix::fs::{CWD, Mode, mkfifoat};
use surehand_engine::{
    Config, Workspace,
    core::{ContentHash, RelPath},
    scan::{ScanBasis, ScanProgress, ScanReport, scan},
    testing::scanned_files,
};
use surehand_testkit::as_unprivileged;
use surehand_testkit::scenario::tree;
use tempfile::TempDir;

/// A tree that was scanned once.
struct Fixture {
    dir: TempDir,
    workspace: Arc<Workspace>,
}

fn fixture(files: &[(&str, &str)]) -> Fixture {
    let dir = lay_out(files);
    let workspace = Workspace::open(dir.path(), fast()).unwrap();
    let fixture = Fixture { dir, workspace };
    assert!(fixture.scan().is_first());
    fixture
}

impl Fixture {
    fn scan(&self) -> ScanReport {
        scan(&self.workspace, &|_| ()).unwrap()
    }

    fn at(&self, path: &str) -> PathBuf {
        self.dir.path().join(path)
    }

    fn write(&self, path: &str, content: &str) {
        fs::create_dir_all(self.at(path).parent().unwrap()).unwrap();
        fs::write(self.at(path), content).unwrap();
    }

    /// The report of a scan. Checks that the next scan reports and reads nothing.
    #[track_caller]
    fn check(&self, expected: &str) {
        assert_eq!(said(&self.scan()), expected);
        let again = self.scan();
        assert_eq!((said(&again).as_str(), again.hashed), ("", 0), "the second time");
    }

    #[track_caller]
    fn assert_known(&self, path: &str, content: Option<&[u8]>) {
        let files = scanned_files(&self.workspace).unwrap();
        let known = files.get(&RelPath::new(path).unwrap()).map(|(version, _)| *version);
        assert_eq!(known, content.map(ContentHash::of), "{path}");
    }
}

/// `+` created, `*` modified, `-` deleted, `~` ignored, `!` unreadable.
fn said(scanned: &ScanReport) -> String {
    let ScanReport { created, modified, deleted, ignored, unreadable, .. } = scanned;
    let marks = [('+', created), ('*', modified), ('-', deleted), ('~', ignored)];
    let changes = marks.into_iter().flat_map(|(mark, paths)| paths.iter().map(move |path| format!("{mark}{path}")));
    changes.chain(unreadable.iter().map(|(path, _)| format!("!{path}"))).collect::<Vec<_>>().join(" ")
}

fn touch(path: &Path, time: SystemTime) {
    File::options().write(true).open(path).unwrap().set_times(FileTimes::new().set_modified(time)).unwrap();
}

#[test]
fn the_first_scan_names_no_files_and_knows_them_all() {
    let dir = lay_out(&[("a", "one"), ("b/c", "two"), ("empty", "")]);
    let workspace = Workspace::open(dir.path(), fast()).unwrap();
    let scanned = scan(&workspace, &|_| ()).unwrap();
    assert_eq!((scanned.basis, scanned.files, scanned.hashed, scanned.bytes_hashed), (ScanBasis::Nothing, 3, 3, 6));
    assert_eq!(said(&scanned), "");
    let files = scanned_files(&workspace).unwrap().into_iter();
    let known: Vec<_> = files.map(|(path, (version, stamp))| (path.to_string(), version, stamp.size)).collect();
    let file = |path: &str, content: &str| (path.to_owned(), ContentHash::of(content.as_bytes()), content.len() as u64);
    assert_eq!(known, [file("a", "one"), file("b/c", "two"), file("empty", "")]);
}

#[test]
fn a_workspace_without_files_was_scanned_all_the_same() {
    let fixture = fixture(&[]);
    fixture.check("");
    fixture.write("a", "one");
    fixture.check("+a");
}

#[test]
fn unchanged_files_are_not_read() {
    let fixture = fixture(&[("a", "one"), ("b/c", "two")]);
    let scanned = fixture.scan();
    assert_eq!((scanned.basis, scanned.files, scanned.hashed, said(&scanned).as_str()), (ScanBasis::LastScan, 2, 0, ""));
}

#[test]
fn created_modified_and_deleted_files_are_distinguished() {
    let fixture = fixture(&[("a", "one"), ("b/c", "two"), ("b/d", "three"), ("e", "four")]);
    fixture.write("b/c", "2");
    fixture.write("b/b", "new");
    fixture.write("f/g/h", "new");
    fs::remove_file(fixture.at("e")).unwrap();
    fixture.check("+b/b +f/g/h *b/c -e");
    fixture.assert_known("f/g/h", Some(b"new"));
    fixture.assert_known("b/d", Some(b"three"));
    fixture.assert_known("e", None);
    fs::remove_dir_all(fixture.at("f")).unwrap();
    fs::remove_dir_all(fixture.at("b")).unwrap();
    fixture.check("-b/b -b/c -b/d -f/g/h");
}

#[test]
fn touch_is_not_a_change() {
    let fixture = fixture(&[("a", "one")]);
    touch(&fixture.at("a"), SystemTime::now() + Duration::from_secs(60));
    fs::set_permissions(fixture.at("a"), fs::Permissions::from_mode(0o600)).unwrap();
    fixture.check("");
}

#[test]
fn a_file_that_is_replaced_by_its_like_has_not_changed() {
    let fixture = fixture(&[("a", "one")]);
    fixture.write("new", "one");
    fs::rename(fixture.at("new"), fixture.at("a")).unwrap();
    fixture.check("");
}

#[test]
fn a_change_that_keeps_size_and_time_is_found() {
    let fixture = fixture(&[("a", "one")]);
    let time = fs::metadata(fixture.at("a")).unwrap().modified().unwrap();
    fixture.write("a", "two");
    touch(&fixture.at("a"), time);
    fixture.check("*a");
}

#[test]
fn a_rename_is_a_file_gone_and_another_come() {
    let fixture = fixture(&[("a", "one"), ("d/b", "two")]);
    fs::rename(fixture.at("a"), fixture.at("z")).unwrap();
    fs::rename(fixture.at("d"), fixture.at("e")).unwrap();
    fixture.check("+e/b +z -a -d/b");
}

#[test]
fn a_directory_becomes_a_file_and_a_directory_again() {
    let fixture = fixture(&[("a/b", "one"), ("a/c/d", "two"), ("e", "three")]);
    fs::remove_dir_all(fixture.at("a")).unwrap();
    fixture.write("a", "file");
    fixture.check("+a -a/b -a/c/d");
    fs::remove_file(fixture.at("a")).unwrap();
    fixture.write("a/b", "one");
    fixture.check("+a/b -a");
}

#[test]
fn a_file_that_is_ignored_from_now_on_is_not_deleted() {
    let fixture = fixture(&[("a.log", "one"), ("b", "two"), ("gen/c", "three"), ("gen/d.log", "four"), ("x.log", "five")]);
    fs::remove_file(fixture.at("x.log")).unwrap();
    fixture.write(".gitignore", "*.log\n/gen\n");
    fixture.check("+.gitignore -x.log ~a.log ~gen/c ~gen/d.log");
    fixture.assert_known("a.log", None);
    fixture.write("a.log", "nobody looks");
    fs::remove_file(fixture.at("gen/d.log")).unwrap();
    fixture.check("");
    fixture.write(".gitignore", "*.log\n");
    fixture.check("+gen/c *.gitignore");
}

#[test]
fn internals_links_and_special_files_are_left_alone() {
    let fixture = fixture(&[("a/b", "one"), (".git/config", "x"), ("sub/.git/config", "x")]);
    let outside = lay_out(&[("secret", "x")]);
    symlink("..", fixture.at("a/up")).unwrap();
    symlink("loop", fixture.at("loop")).unwrap();
    symlink(outside.path(), fixture.at("out")).unwrap();
    symlink(outside.path().join("secret"), fixture.at("a/secret")).unwrap();
    mkfifoat(CWD, fixture.at("pipe"), Mode::from_raw_mode(0o600)).unwrap();
    fs::write(fixture.at(".git/config"), "y").unwrap();
    fixture.check("");
    fs::remove_file(fixture.at("a/b")).unwrap();
    symlink("../sub", fixture.at("a/b")).unwrap();
    fixture.check("-a/b");
    assert_eq!(fixture.scan().files, 0);
}

#[test]
fn names_that_we_do_not_take_are_counted() {
    use std::{ffi::OsStr, os::unix::ffi::OsStrExt};
    let fixture = fixture(&[]);
    fs::write(fixture.dir.path().join(OsStr::from_bytes(b"caf\xe9")), "").unwrap();
    assert_eq!(fixture.scan().unnamed, 1);
    fixture.check("");
}

#[test]
fn a_file_of_any_size_has_its_version() {
    let dir = lay_out(&[]);
    let sizes = [0, 1, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, 3_500_000];
    let content = |size: usize| (0..size).map(|n| (n / 251 + n) as u8).collect::<Vec<u8>>();
    for size in sizes {
        fs::write(dir.path().join(size.to_string()), content(size)).unwrap();
    }
    // The limit is for files that tools show, not for the index.
    let mut config = Config::default();
    config.limits.file_bytes = 1000;
    let fixture = Fixture { workspace: Workspace::open(dir.path(), config).unwrap(), dir };
    assert_eq!(fixture.scan().bytes_hashed, sizes.iter().sum::<usize>() as u64);
    for size in sizes {
        fixture.assert_known(&size.to_string(), Some(&content(size)));
    }
}

#[test]
fn unreadable_files_are_reported_and_stay_known() {
    let dir = lay_out(&[("closed/a", "one"), ("file", "two"), ("other", "three")]);
    let root = dir.path().to_owned();
    as_unprivileged(&root, move || {
        let fixture = Fixture { workspace: Workspace::open(dir.path(), fast()).unwrap(), dir };
        let mode = |path: &str, mode| fs::set_permissions(fixture.at(path), fs::Permissions::from_mode(mode)).unwrap();
        fixture.scan();
        mode("closed", 0o000);
        mode("file", 0o000);
        fixture.write("new", "four");
        mode("new", 0o000);
        let scanned = fixture.scan();
        assert_eq!(said(&scanned), "!closed/ !file !new");
        assert!(scanned.unreadable.iter().all(|(_, why)| why.starts_with("Permission denied")), "{:?}", scanned.unreadable);
        assert_eq!(scanned.files, 3);
        fixture.assert_known("closed/a", Some(b"one"));
        fixture.assert_known("file", Some(b"two"));
        mode("closed", 0o700);
        mode("new", 0o600);
        mode("file", 0o600);
        fixture.write("closed/a", "1");
        fixture.check("+new *closed/a");
    });
}

/// Damages the index, and expects a first scan that says why.
#[track_caller]
fn check_spoilt(spoil: impl FnOnce(&Path), expected: ScanBasis) {
    let fixture = fixture(&[("a", "one"), ("b", "two")]);
    spoil(&fixture.at(".git/surehand/checkouts/main/index"));
    fixture.write("a", "new");
    let scanned = fixture.scan();
    assert_eq!((scanned.basis, scanned.files, said(&scanned).as_str()), (expected, 2, ""));
    fixture.write("b", "new");
    fixture.check("*b");
}

#[test]
fn a_damaged_index_is_begun_anew() {
    check_spoilt(|index| fs::write(index, "garbage").unwrap(), ScanBasis::Damaged);
    check_spoilt(|index| fs::write(index, "").unwrap(), ScanBasis::Damaged);
    check_spoilt(
        |index| {
            let mut bytes = fs::read(index).unwrap();
            bytes[60] ^= 1;
            fs::write(index, bytes).unwrap();
        },
        ScanBasis::Damaged,
    );
    check_spoilt(|index| fs::remove_file(index).unwrap(), ScanBasis::Nothing);
    check_spoilt(
        |index| {
            fs::rename(index, index.with_extension("moved")).unwrap();
            symlink("index.moved", index).unwrap();
        },
        ScanBasis::Damaged,
    );
}

#[test]
fn an_index_of_a_newer_version_is_begun_anew() {
    check_spoilt(
        |index| {
            let mut bytes = fs::read(index).unwrap();
            bytes[8] += 1;
            fs::write(index, bytes).unwrap();
        },
        ScanBasis::OtherVersion,
    );
}

#[test]
fn a_state_that_was_removed_is_made_anew() {
    let fixture = fixture(&[("a", "one")]);
    fs::remove_dir_all(fixture.at(".git/surehand")).unwrap();
    assert_eq!(fixture.scan().basis, ScanBasis::Nothing);
    fixture.check("");
}

#[test]
fn several_scans_at_once_leave_a_whole_index() {
    let files: Vec<(String, String)> = (0..300).map(|n| (format!("d{}/f{n}", n % 7), format!("{n}"))).collect();
    let dir = lay_out(&files.iter().map(|(path, content)| (path.as_str(), content.as_str())).collect::<Vec<_>>());
    std::thread::scope(|scope| {
        for number in 0..4 {
            let dir = dir.path();
            scope.spawn(move || {
                let workspace = Workspace::open(dir, fast()).unwrap();
                for round in 0..10 {
                    fs::write(dir.join(format!("d{number}/f{number}")), format!("{number} {round}")).unwrap();
                    fs::write(dir.join(format!("d{number}/new{round}")), "new").unwrap();
                    let _ = fs::remove_file(dir.join(format!("d{number}/new{}", round / 2)));
                    let scanned = scan(&workspace, &|_| ()).unwrap();
                    assert!(round == 0 || scanned.basis == ScanBasis::LastScan, "{:?}", scanned.basis);
                }
            });
        }
    });
    let fixture = Fixture { workspace: Workspace::open(dir.path(), fast()).unwrap(), dir };
    fixture.scan();
    fixture.check("");
    let files = scanned_files(&fixture.workspace).unwrap().into_iter();
    let known: BTreeMap<String, ContentHash> = files.map(|(path, (version, _))| (path.to_string(), version)).collect();
    let actual = tree(fixture.dir.path()).into_iter().map(|(path, bytes)| (path, ContentHash::of(&bytes)));
    assert_eq!(known, actual.collect());
}

#[test]
fn ten_thousand_files_and_how_far_it_is() {
    let fixture = fixture(&[]);
    for number in 0..10_000 {
        fixture.write(&format!("{}/{}/{number}", number % 10, number % 100), &number.to_string());
    }
    let reports = Mutex::new(Vec::new());
    let scanned = scan(&fixture.workspace, &|progress| reports.lock().unwrap().push(progress)).unwrap();
    assert_eq!((scanned.files, scanned.created.len(), scanned.hashed), (10_000, 10_000, 10_000));
    assert!(scanned.created.is_sorted());
    let reports = reports.into_inner().unwrap();
    let most = ScanProgress { files: 10_000, expected: Some(0), bytes_hashed: scanned.bytes_hashed };
    assert!(reports.len() > 10 && reports.contains(&most), "{reports:?}");
    fixture.write("3/33/533", "changed");
    fs::remove_dir_all(fixture.at("7")).unwrap();
    let scanned = fixture.scan();
    assert_eq!((scanned.files, scanned.hashed, scanned.deleted.len()), (9_000, 1, 1_000));
    assert_eq!(scanned.modified, [RelPath::new("3/33/533").unwrap()]);
    fixture.check("");
}

/// An operation of another program.
#[derive(Debug, Clone)]
enum Act {
    Write(String, &'static str),
    Remove(String),
    Rename(String, String),
    Touch(String),
    /// Writes as many bytes as before and sets the time back.
    Disguise(String),
    Ignore(bool),
}

impl Act {
    /// Operations that are impossible are skipped.
    fn play(&self, root: &Path) {
        match self {
            Act::Write(path, content) => {
                make_way(root, path);
                let _ = fs::write(root.join(path), content);
            }
            Act::Remove(path) => {
                let _ = fs::remove_file(root.join(path)).or_else(|_| fs::remove_dir_all(root.join(path)));
            }
            Act::Rename(from, to) => {
                let _ = fs::rename(root.join(from), root.join(to));
            }
            Act::Touch(path) if root.join(path).is_file() => touch(&root.join(path), SystemTime::UNIX_EPOCH),
            Act::Disguise(path) if root.join(path).is_file() => {
                let path = root.join(path);
                let time = fs::metadata(&path).unwrap().modified().unwrap();
                let bytes = fs::read(&path).unwrap().into_iter().map(|byte| byte ^ 1);
                fs::write(&path, bytes.collect::<Vec<u8>>()).unwrap();
                touch(&path, time);
            }
            Act::Ignore(true) => fs::write(root.join(".gitignore"), "*.x\n").unwrap(),
            Act::Ignore(false) => {
                let _ = fs::remove_file(root.join(".gitignore"));
            }
            Act::Touch(_) | Act::Disguise(_) => {}
        }
    }
}

/// Directories above a file, in the place of existing files.
fn make_way(root: &Path, path: &str) {
    let above: Vec<&Path> = Path::new(path).ancestors().skip(1).collect();
    for dir in above.into_iter().rev().map(|dir| root.join(dir)) {
        if dir.is_file() {
            fs::remove_file(&dir).unwrap();
        }
        let _ = fs::create_dir(&dir);
    }
}

fn any_act() -> impl Strategy<Value = Act> {
    let path = || "(a|b|a-b)(/(a|b))?(/c\\.x)?";
    prop_oneof![
        6 => (path(), prop::sample::select(vec!["one", "two", "", "longer"])).prop_map(|(path, content)| Act::Write(path, content)),
        2 => path().prop_map(Act::Remove),
        2 => (path(), path()).prop_map(|(from, to)| Act::Rename(from, to)),
        1 => path().prop_map(Act::Touch),
        1 => path().prop_map(Act::Disguise),
        1 => any::<bool>().prop_map(Act::Ignore),
    ]
}

/// The expected report for a tree that was `before` and is `after`.
fn difference(before: &BTreeMap<String, Vec<u8>>, after: &BTreeMap<String, Vec<u8>>) -> String {
    let is_shown = |tree: &BTreeMap<String, Vec<u8>>, path: &str| {
        tree.contains_key(path) && !(tree.contains_key(".gitignore") && path.split('/').any(|part| part.ends_with(".x")))
    };
    let mut said: Vec<(usize, String)> = Vec::new();
    for path in before.keys().chain(after.keys().filter(|path| !before.contains_key(*path))) {
        let mark = match (is_shown(before, path), is_shown(after, path), after.contains_key(path)) {
            (false, true, _) => "+",
            (true, true, _) if before[path] != after[path] => "*",
            (true, false, false) => "-",
            (true, false, true) => "~",
            _ => continue,
        };
        said.push(("+*-~".find(mark).unwrap(), format!("{mark}{path}")));
    }
    said.sort();
    said.into_iter().map(|(_, path)| path).collect::<Vec<_>>().join(" ")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn a_scan_reports_exactly_the_difference(
        rounds in prop::collection::vec(prop::collection::vec(any_act(), 0..8), 1..8),
    ) {
        let fixture = fixture(&[("a", "one"), ("b/a/c.x", "two")]);
        let mut before = tree(fixture.dir.path());
        for acts in rounds {
            acts.iter().for_each(|act| act.play(fixture.dir.path()));
            let after = tree(fixture.dir.path());
            prop_assert_eq!(said(&fixture.scan()), difference(&before, &after), "{:?}", acts);
            before = after;
        }
    }
}
