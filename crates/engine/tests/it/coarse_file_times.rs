//! File systems with coarse times: a change within one or two seconds leaves the same size and the same times. Then no
//! answer may come from memory.
#![cfg(target_os = "linux")]
#![expect(clippy::disallowed_methods, reason = "tests play the other programs")]

use std::{
    fs::{self, File, FileTimes},
    path::Path,
    sync::Arc,
    time::{Duration, UNIX_EPOCH},
};

use crate::fixture::*;
use serde_json::json;
use surehand_core::RelPath;
use surehand_engine::{
    Config, Session, SessionId, StateHome, Workspace,
    scan::{ScanReport, scan},
};
use surehand_testkit::{Mounted, make_repository};

/// Runs a test with settings, and a repository on this file system, if it can be had.
fn on(mounted: Option<Mounted>, test: impl FnOnce(&Path, &Config)) {
    let Some(mounted) = mounted else { return };
    let root = mounted.path().join("project");
    fs::create_dir(&root).unwrap();
    make_repository(&root);
    // For trees whose git directory cannot hold the state.
    let home = tempfile::tempdir().unwrap();
    let state = StateHome { user: Some(home.path().to_owned()), ..StateHome::default() };
    test(&root, &Config { state, ..fast() });
}

fn open(root: &Path, config: &Config) -> Arc<Workspace> {
    Workspace::open(root, config.clone()).unwrap()
}

/// Reads a file again and again, each time right after another program has replaced its bytes by as many others.
fn every_read_shows_the_present_content(root: &Path, config: &Config, after_write: impl Fn()) {
    let mut session = Session::new(open(root, config));
    for round in 0..100 {
        let text = format!("round {round:03}");
        fs::write(root.join("a.txt"), &text).unwrap();
        after_write();
        let reply = session.call("read_file", &json!({ "path": "a.txt" }));
        assert!(reply.text.contains(&text), "{text}: {}", reply.text);
    }
}

/// Like [`every_read_shows_the_present_content`], with another process each time, which knows the file from the store
/// alone.
fn every_process_finds_the_present_content(root: &Path, config: &Config) {
    let continued = || Session::continued(open(root, config), SessionId("one".to_owned()));
    fs::write(root.join("b.txt"), "round 000\n").unwrap();
    read(&mut continued(), "b.txt");
    for round in 1..10 {
        fs::write(root.join("b.txt"), format!("round {round:03}\n")).unwrap();
        let mut session = continued();
        let reply = session.call("list_files", &json!({}));
        assert!(reply.text.contains("changed since you read it: b.txt"), "round {round}: {}", reply.text);
        read(&mut session, "b.txt");
    }
}

fn every_scan_finds_the_present_content(root: &Path, config: &Config) {
    let workspace = open(root, config);
    scan(&workspace, &|_| {}).unwrap();
    for round in 0..10 {
        fs::write(root.join("c.txt"), format!("round {round:03}\n")).unwrap();
        let ScanReport { created, modified, .. } = scan(&workspace, &|_| {}).unwrap();
        assert_eq!([created, modified].concat(), [RelPath::new("c.txt").unwrap()], "round {round}");
    }
}

#[test]
fn times_in_whole_seconds_show_nothing_old() {
    on(Mounted::kernel_image(24, &["mkfs.ext4", "-q", "-F", "-I", "128"]), |root, config| {
        every_read_shows_the_present_content(root, config, || {});
        every_process_finds_the_present_content(root, config);
        every_scan_finds_the_present_content(root, config);
    });
}

/// exFAT has one time for modification and change, so a program that sets one sets the other.
#[test]
fn times_that_programs_can_set_show_nothing_old() {
    on(Mounted::image(24, &["mkfs.exfat"], &["mount", "-t", "exfat-fuse", "-o", "loop"]), |root, config| {
        every_read_shows_the_present_content(root, config, || {});
        let long_ago = FileTimes::new().set_modified(UNIX_EPOCH + Duration::from_secs(1_000_000_000));
        let set_back = || File::options().write(true).open(root.join("a.txt")).unwrap().set_times(long_ago).unwrap();
        every_read_shows_the_present_content(root, config, set_back);
        every_process_finds_the_present_content(root, config);
        every_scan_finds_the_present_content(root, config);
    });
}
