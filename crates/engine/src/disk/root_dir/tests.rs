//! Paths that lead beneath the root, and paths that try to lead out of it.

#![expect(clippy::disallowed_methods, reason = "tests lay out files")]

use std::{fs, os::unix::fs::symlink};

use super::*;

#[test]
fn spellings_of_one_file_are_one_path() {
    let dir = tempfile::tempdir().unwrap();
    let root = RootDir::open(dir.path()).unwrap();
    let absolute = dir.path().join("src/./x/../a.rs");
    for spelling in ["src/a.rs", "./src//a.rs", absolute.to_str().unwrap()] {
        assert_eq!(root.normalize(spelling).unwrap().as_str(), "src/a.rs");
    }
    let elsewhere = tempfile::tempdir().unwrap();
    symlink(dir.path(), elsewhere.path().join("link")).unwrap();
    for spelling in ["link/src/a.rs", "link/./src/new/../a.rs"] {
        assert_eq!(root.normalize(elsewhere.path().join(spelling).to_str().unwrap()).unwrap().as_str(), "src/a.rs");
    }
    for outside in ["../a", "/etc/passwd", "src/../../a"] {
        assert_eq!(root.normalize(outside).unwrap_err().cause, Cause::OutsideWorkspace, "{outside}");
        assert_eq!(root.normalize_place(outside).unwrap_err().cause, Cause::OutsideWorkspace, "{outside}");
    }
}

#[test]
fn a_root_that_is_made_again_is_another() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("project");
    fs::create_dir(&path).unwrap();
    let root = RootDir::open(&path).unwrap();
    assert_eq!(root.now(), RootStatus::Same);
    fs::remove_dir(&path).unwrap();
    assert_eq!(root.now(), RootStatus::Gone);
    fs::create_dir(&path).unwrap();
    assert_eq!(root.now(), RootStatus::Another);
    let root = RootDir::open(&path).unwrap();
    fs::rename(&path, dir.path().join("moved")).unwrap();
    assert_eq!(root.now(), RootStatus::Same, "nothing is in its place");
    fs::create_dir(&path).unwrap();
    assert_eq!(root.now(), RootStatus::Another);
}

#[test]
fn a_directory_may_be_spelled_as_one() {
    let dir = tempfile::tempdir().unwrap();
    let root = RootDir::open(dir.path()).unwrap();
    let absolute = dir.path().to_str().unwrap();
    for (spelling, place) in [("src/", "src"), ("./src//a/..", "src"), (&*format!("{absolute}/src/"), "src")] {
        assert_eq!(root.normalize_place(spelling).unwrap().unwrap().as_str(), place, "{spelling}");
    }
    for spelling in ["", ".", "./", "src/..", absolute, &format!("{absolute}/")] {
        assert_eq!(root.normalize_place(spelling).unwrap(), None, "{spelling}");
    }
}

#[test]
fn links_are_settled_inside_and_refused_outside() {
    let dir = tempfile::tempdir().unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("real")).unwrap();
    fs::write(dir.path().join("real/a"), "").unwrap();
    symlink("real", dir.path().join("alias")).unwrap();
    symlink(dir.path().join("real/a"), dir.path().join("absolute")).unwrap();
    symlink(elsewhere.path(), dir.path().join("out")).unwrap();
    symlink("nowhere", dir.path().join("dangling")).unwrap();
    symlink("../", dir.path().join("real/up")).unwrap();
    let root = RootDir::open(dir.path()).unwrap();
    let settle = |path: &str| root.resolve(&RelPath::new(path).unwrap());
    assert_eq!(settle("alias/a").unwrap().as_str(), "real/a");
    assert_eq!(settle("absolute").unwrap().as_str(), "real/a");
    assert_eq!(settle("alias/new").unwrap().as_str(), "real/new");
    assert_eq!(settle("out/x").unwrap_err().cause, Cause::OutsideWorkspace);
    assert_eq!(settle("dangling").unwrap_err().code().as_str(), "io");
    assert_eq!(root.resolve_place(&RelPath::new("real/up").unwrap()).unwrap(), None);
    assert_eq!(root.resolve_place(&RelPath::new("real/up/alias").unwrap()).unwrap().unwrap().as_str(), "real");
}

#[test]
fn opening_follows_no_link_with_or_without_openat2() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir_all(dir.path().join("real/deep")).unwrap();
    fs::write(dir.path().join("real/deep/a"), "").unwrap();
    symlink("real", dir.path().join("alias")).unwrap();
    symlink("a", dir.path().join("real/deep/b")).unwrap();
    let root = RootDir::open(dir.path()).unwrap();
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW;
    for open in [open_beneath, open_by_steps] {
        assert!(open(root.dir(), "real/deep/a", flags).is_ok());
        assert_eq!(open(root.dir(), "alias/deep/a", flags).unwrap_err(), Errno::LOOP);
        assert_eq!(open(root.dir(), "real/deep/b", flags).unwrap_err(), Errno::LOOP);
        assert_eq!(open(root.dir(), "real/none/a", flags).unwrap_err(), Errno::NOENT);
    }
}
