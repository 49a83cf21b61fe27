//! What a walk visits, compared with ripgrep's own walk.

#![expect(clippy::disallowed_methods, reason = "tests lay out files and play the other program")]

use std::{fs, os::unix::fs::symlink, path::Path};

use proptest::prelude::*;

use super::*;

struct Names(Vec<(String, EntryKind)>);

impl WalkVisitor for Names {
    fn visit(&mut self, entry: &WalkEntry<'_>) {
        self.0.push((entry.path.to_owned(), entry.kind));
    }
}

fn lay_out(root: &Path, files: &[(&str, &str)]) {
    for (path, content) in files {
        fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
        fs::write(root.join(path), content).unwrap();
    }
}

fn files(root: &Path, start: Option<&str>, globs: &Globs) -> String {
    let start = start.map(|start| RelPath::new(start).unwrap());
    let walked = walk(&RootDir::open(root).unwrap(), start.as_ref(), globs, || Names(Vec::new())).unwrap();
    let mut names: Vec<String> = walked
        .visitors
        .into_iter()
        .flat_map(|names| names.0)
        .filter(|(_, kind)| *kind == EntryKind::File)
        .map(|(path, _)| path)
        .collect();
    names.sort();
    names.join(" ")
}

#[track_caller]
fn check(layout: &[(&str, &str)], start: Option<&str>, glob: Option<&str>, found: &str) {
    let dir = tempfile::tempdir().unwrap();
    lay_out(dir.path(), layout);
    let globs = glob.map_or_else(Globs::all, |glob| Globs::of(glob).unwrap());
    assert_eq!(files(dir.path(), start, &globs), found);
}

#[test]
fn ignored_files_and_internals_are_left_out_and_hidden_ones_are_not() {
    let layout = [
        (".gitignore", "*.log\n/target\n!keep.log\n"),
        (".github/ci.yml", ""),
        (".git/config", ""),
        (".git/info/exclude", "private\n"),
        (".surehand/state.db", ""),
        ("a.log", ""),
        ("keep.log", ""),
        ("private", ""),
        ("target/a", ""),
        ("sub/target/a", ""),
        ("sub/.gitignore", "!a.log\n"),
        ("sub/a.log", ""),
        ("sub/.ignore", "secret\n"),
        ("sub/secret", ""),
        ("sub/.Git/config", ""),
    ];
    let found = ".github/ci.yml .gitignore keep.log sub/.gitignore sub/.ignore sub/a.log sub/target/a";
    check(&layout, None, None, found);
    check(&layout, Some("sub"), None, "sub/.gitignore sub/.ignore sub/a.log sub/target/a");
    // An ignored directory is shown if it is asked for by name, and the rules above it hold in it.
    check(&[(".gitignore", "/target\n*.log\n"), ("target/a", ""), ("target/a.log", "")], Some("target"), None, "target/a");
}

#[test]
fn another_repository_has_its_own_rules() {
    let layout = [(".gitignore", "*.log\n"), (".ignore", "*.tmp\n"), ("in/.git/x", ""), ("in/a.log", ""), ("in/a.tmp", "")];
    check(&layout, None, None, ".gitignore .ignore in/a.log");
}

#[test]
fn globs_choose_and_do_not_bring_back_what_is_ignored() {
    let layout = [(".gitignore", "gen\n"), ("a.rs", ""), ("gen/b.rs", ""), ("src/c.rs", ""), ("src/d.min.js", "")];
    check(&layout, None, Some("*.rs"), "a.rs src/c.rs");
    check(&layout, None, Some("src/**"), "src/c.rs src/d.min.js");
    check(&layout, Some("src"), Some("!*.min.js"), "src/c.rs");
    check(&layout, None, Some("*.{rs,js}"), "a.rs src/c.rs src/d.min.js");
    check(&layout, None, Some("!src"), ".gitignore a.rs");
    assert!(Globs::of("a[").is_err());
}

#[test]
fn every_file_of_a_large_directory_is_visited_once() {
    let dir = tempfile::tempdir().unwrap();
    let names: Vec<String> = (0..1000).map(|n| format!("d/{n:04}")).collect();
    lay_out(dir.path(), &names.iter().map(|name| (name.as_str(), "")).collect::<Vec<_>>());
    assert_eq!(files(dir.path(), None, &Globs::all()), names.join(" "));
}

#[test]
fn names_that_are_not_utf8_are_counted_and_special_files_are_distinguished() {
    use std::{ffi::OsStr, os::unix::ffi::OsStrExt};
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join(OsStr::from_bytes(b"caf\xe9")), "").unwrap();
    sys::mkfifoat(sys::CWD, dir.path().join("pipe"), Mode::from_raw_mode(0o600)).unwrap();
    symlink("pipe", dir.path().join("link")).unwrap();
    let walked = walk(&RootDir::open(dir.path()).unwrap(), None, &Globs::all(), || Names(Vec::new())).unwrap();
    assert_eq!(walked.left_out.unnamed, 1);
    let mut names: Vec<_> = walked.visitors.into_iter().flat_map(|names| names.0).collect();
    names.sort_by(|a, b| a.0.cmp(&b.0));
    assert_eq!(names, [("link".to_owned(), EntryKind::Link), ("pipe".to_owned(), EntryKind::Special)]);
}

/// Puts a symlink to another place where a directory or file has just been found.
struct Swapper<'a> {
    root: &'a Path,
    elsewhere: &'a Path,
    read: Vec<String>,
}

impl WalkVisitor for Swapper<'_> {
    fn visit(&mut self, entry: &WalkEntry<'_>) {
        let path = self.root.join(entry.path);
        fs::rename(&path, self.root.join(format!("{}.moved", entry.path))).unwrap();
        symlink(self.elsewhere.join(if entry.kind == EntryKind::Dir { "" } else { "secret" }), &path).unwrap();
        if let EntryKind::File = entry.kind
            && entry.open().unwrap().is_some()
        {
            self.read.push(entry.path.to_owned());
        }
    }
}

#[test]
fn a_link_swapped_in_during_a_walk_leads_nowhere() {
    let (dir, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    lay_out(dir.path(), &[("a/inside", ""), ("file", "")]);
    lay_out(elsewhere.path(), &[("secret", "")]);
    let root = RootDir::open(dir.path()).unwrap();
    let swapper = || Swapper { root: dir.path(), elsewhere: elsewhere.path(), read: Vec::new() };
    let walked = walk(&root, None, &Globs::all(), swapper).unwrap();
    assert!(walked.visitors.iter().all(|swapper| swapper.read.is_empty()));
    assert!(walked.left_out.unreadable.is_empty(), "{:?}", walked.left_out);
    // The directory is a symlink now, and as the start of a walk it is not followed either.
    assert!(walk(&root, Some(&RelPath::new("a").unwrap()), &Globs::all(), swapper).is_err());
}

#[test]
fn a_place_is_a_directory_or_a_file_inside() {
    let (dir, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    lay_out(dir.path(), &[("src/a.rs", ""), (".git/config", "")]);
    symlink("src", dir.path().join("alias")).unwrap();
    symlink(".git", dir.path().join("git")).unwrap();
    symlink(".", dir.path().join("self")).unwrap();
    symlink(elsewhere.path(), dir.path().join("out")).unwrap();
    sys::mkfifoat(sys::CWD, dir.path().join("pipe"), Mode::from_raw_mode(0o600)).unwrap();
    let root = RootDir::open(dir.path()).unwrap();
    let path = |path: &str| RelPath::new(path).unwrap();
    for (spelling, expected) in [
        ("", PathTarget::Dir(None)),
        ("self", PathTarget::Dir(None)),
        ("src/", PathTarget::Dir(Some(path("src")))),
        ("alias", PathTarget::Dir(Some(path("src")))),
        ("alias/a.rs", PathTarget::File(path("src/a.rs"))),
    ] {
        assert_eq!(path_target(&root, spelling).unwrap(), expected, "{spelling}");
    }
    for (spelling, code) in [
        ("out", "outside_workspace"),
        ("out/x", "outside_workspace"),
        ("none", "not_found"),
        ("src/a.rs/b", "not_found"),
        (".git", "bad_arguments"),
        ("git/config", "bad_arguments"),
        ("pipe", "io"),
    ] {
        assert_eq!(path_target(&root, spelling).unwrap_err().code().as_str(), code, "{spelling}");
    }
}

/// A few names, so that rules and files meet.
fn line() -> impl Strategy<Value = String> {
    let pattern = "(!)?(/)?(a|b|\\*|\\*\\*|\\*\\.x|\\.h)(/(a|b|\\*|c\\.x))?(/)?";
    prop_oneof![8 => pattern, 1 => Just("# note".to_owned()), 1 => Just(String::new())]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn the_walk_finds_what_ripgrep_finds(
        names in prop::collection::vec("(a|b|\\.h)(/(a|b)){0,2}/(a|c\\.x|d)", 1..12),
        rules in prop::collection::vec(("((a|b|a/b)/)?\\.(git)?ignore", prop::collection::vec(line(), 0..4)), 0..4),
        repository in prop::option::of("(a|b|a/b)/\\.git/x"),
    ) {
        let dir = tempfile::tempdir().unwrap();
        // Outside a repository, ripgrep does not look for repositories further down.
        fs::create_dir(dir.path().join(".git")).unwrap();
        for path in names.iter().chain(&repository) {
            let path = dir.path().join(path);
            // If a file is in the way of a directory or the other way round, the first one stays.
            let _ = fs::create_dir_all(path.parent().unwrap());
            let _ = fs::write(&path, "");
        }
        for (path, lines) in &rules {
            let _ = fs::create_dir_all(dir.path().join(path).parent().unwrap());
            let _ = fs::write(dir.path().join(path), lines.join("\n"));
        }
        let mut builder = ignore::WalkBuilder::new(dir.path());
        builder.hidden(false).parents(false).git_global(false);
        builder.filter_entry(|entry| !is_internal(&entry.file_name().to_string_lossy()));
        let mut expected: Vec<String> = builder
            .build()
            .map(Result::unwrap)
            .filter(|entry| entry.file_type().unwrap().is_file())
            .map(|entry| entry.path().strip_prefix(dir.path()).unwrap().to_str().unwrap().to_owned())
            .collect();
        expected.sort();
        prop_assert_eq!(files(dir.path(), None, &Globs::all()), expected.join(" "));
    }
}
