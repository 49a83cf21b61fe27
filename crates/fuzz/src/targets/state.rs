//! Our own state, damaged in any way: by a crash, a full disk or another program. A workspace opens or says why not, files stay as they are, and
//! an edit is refused rather than made by what is no longer known.

use std::{fs, path::PathBuf};

use serde_json::json;
use surehand_engine::{RepoTracker, Session, SessionId, Workspace, scan};

use crate::{
    place::{Place, difference},
    source::Source,
};

pub(super) const WORDS: &[&str] =
    &["SQLite format 3", "\"files\":", "{", "}", "null", "\u{ff}", "../outside/o.txt", "a.txt", "begin", "end"];

pub(super) fn run(data: &[u8]) {
    let mut source = Source::new(data);
    let place = Place::new();
    let id = SessionId("s".to_owned());
    work(&mut Session::continued(place.open().expect("a workspace"), id.clone()));
    let files = state_files(&place);
    for _ in 0..=source.below(3) {
        damage(&mut source, &files);
    }
    let (before, around) = (place.tree(), place.surroundings());
    if let Ok(workspace) = place.open() {
        let after = place.tree();
        assert_eq!(before, after, "{}", difference(&before, &after));
        look(&workspace);
        let mut session = Session::continued(workspace, id);
        let reply = session.call("edit_file", &json!({ "path": "src/b.rs", "old_string": "// b", "new_string": "// c" }));
        assert!(reply.is_error, "it was never read: {}", reply.text);
        assert_eq!(place.tree(), before);
        work(&mut session);
    }
    assert_eq!(around, place.surroundings());
}

/// A session that reads, edits, plans and looks around.
fn work(session: &mut Session) {
    for (tool, arguments) in [
        ("read_file", json!({ "path": "a.txt" })),
        ("edit_file", json!({ "path": "a.txt", "old_string": "two", "new_string": "2" })),
        ("update_tasks", json!({ "add": [{ "description": "more" }] })),
        ("repo_state", json!({})),
        ("undo", json!({ "all": true })),
    ] {
        let reply = session.call(tool, &arguments);
        assert!(!reply.text.is_empty());
    }
    look(&session.workspace().clone());
}

fn look(workspace: &std::sync::Arc<Workspace>) {
    // What cannot be scanned is said; here it is enough that it is.
    drop(scan::scan(workspace, &|_| ()));
    RepoTracker::load(workspace.clone()).snapshot();
}

fn state_files(place: &Place) -> Vec<PathBuf> {
    let dir = place.root().join(".surehand");
    let mut files: Vec<PathBuf> =
        vec![dir.join("journals/1"), dir.join("index"), dir.join("repostate.json"), dir.join("state.db")];
    let others =
        fs::read_dir(dir).into_iter().flatten().flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()));
    files.extend(others.map(|entry| entry.path()));
    files.sort();
    files.dedup();
    files
}

fn damage(source: &mut Source<'_>, files: &[PathBuf]) {
    let file = &files[source.below(files.len())];
    let mut content = fs::read(file).unwrap_or_default();
    match source.below(5) {
        0 => content = source.until_zero(400).to_vec(),
        1 => content.truncate(source.below(256) * content.len() / 256),
        2 => content.extend(source.until_zero(100)),
        _ => {
            let at = (source.below(256) * 256 + source.below(256)) * content.len() / 65536;
            for (byte, new) in content[at..].iter_mut().zip(source.take(8)) {
                *byte = *new;
            }
        }
    }
    drop(fs::write(file, content));
}
