//! The tracker on its own, as a program with its own tools uses it.
#![expect(clippy::disallowed_methods, reason = "tests play the other programs")]

use std::{fs, path::PathBuf, sync::Arc, time::SystemTime};

use serde_json::json;
use surehand_engine::{
    Config, FileTracker, Session, SessionId, Workspace,
    core::{ContentHash, RefusalCode},
};

struct Fixture {
    _dir: tempfile::TempDir,
    file: PathBuf,
    workspace: Arc<Workspace>,
    tracker: FileTracker,
}

fn fixture(content: &str) -> Fixture {
    let dir = surehand_testkit::repository();
    let file = dir.path().join("a.txt");
    fs::write(&file, content).unwrap();
    let workspace = Workspace::open(dir.path(), Config::default()).unwrap();
    Fixture { _dir: dir, file, workspace, tracker: FileTracker::new(SessionId("t".to_owned())) }
}

impl Fixture {
    fn is_modified(&mut self) -> bool {
        self.tracker.has_been_modified_since_read(&self.workspace, "a.txt").unwrap()
    }

    fn track(&mut self) {
        self.tracker.track_read(&self.workspace, "a.txt").unwrap();
    }

    fn write(&self, content: &str) {
        fs::write(&self.file, content).unwrap();
    }

    fn set_modified(&self, time: SystemTime) {
        fs::File::options().write(true).open(&self.file).unwrap().set_modified(time).unwrap();
    }
}

#[test]
fn content_decides_never_a_time() {
    let mut fixture = fixture("one\n");
    fixture.track();
    assert!(!fixture.is_modified());
    fixture.write("one\n");
    assert!(!fixture.is_modified(), "a save without a change");
    fixture.set_modified(SystemTime::UNIX_EPOCH);
    assert!(!fixture.is_modified(), "a touch");
    fixture.write("two\n");
    fixture.set_modified(SystemTime::UNIX_EPOCH);
    assert!(fixture.is_modified(), "the same size and the old time");
    fixture.write("one\n");
    assert!(!fixture.is_modified(), "the old bytes are back");
}

#[test]
fn a_path_never_tracked_is_not_modified_and_tracking_again_clears() {
    let mut fixture = fixture("one\n");
    assert!(!fixture.is_modified());
    fixture.track();
    fixture.write("two\n");
    assert!(fixture.is_modified());
    fixture.track();
    assert!(!fixture.is_modified());
    fs::remove_file(&fixture.file).unwrap();
    assert!(fixture.is_modified());
    assert_eq!(fixture.tracker.track_read(&fixture.workspace, "a.txt").unwrap_err().code(), RefusalCode::NotFound);
}

#[test]
fn invalidate_means_read_again_and_never_anything_goes() {
    let mut fixture = fixture("one\n");
    fixture.tracker.invalidate(&fixture.workspace, "a.txt").unwrap();
    assert!(!fixture.is_modified(), "a path never tracked stays so");
    fixture.track();
    fixture.tracker.invalidate(&fixture.workspace, "a.txt").unwrap();
    assert!(fixture.is_modified());
    let mut session = Session::tracked_by(fixture.workspace.clone(), fixture.tracker);
    let edit = json!({ "path": "a.txt", "old_string": "one", "new_string": "two" });
    let reply = session.call("edit_file", &edit);
    assert_eq!(reply.result["refusal"]["code"], "stale");
    assert!(reply.text.contains("read_file again"), "{}", reply.text);
    assert!(session.call("edit_file", &edit).is_error, "only a read clears it");
    session.call("read_file", &json!({ "path": "a.txt" }));
    assert!(!session.call("edit_file", &edit).is_error);
}

#[test]
fn clear_session_forgets_views_and_keeps_versions() {
    let mut fixture = fixture("one\n");
    fixture.track();
    fixture.tracker.clear_session(&fixture.workspace);
    fixture.write("two\n");
    assert!(!fixture.is_modified(), "no longer tracked");
    fixture.workspace.flush();
    let kept = fixture.workspace.ask(|store| store.version(&ContentHash::of(b"one\n"))).unwrap();
    assert_eq!(kept.as_deref(), Some(&b"one\n"[..]));
}
