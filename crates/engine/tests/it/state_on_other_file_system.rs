//! The state is on another file system than the work tree, as for a tree without git, of another user, or on a network.
//! Files are then staged in a private directory of the tree, and a crash at any step leaves all changes or none, and
//! nothing behind.
#![expect(clippy::disallowed_methods, reason = "tests lay out files")]

use std::{
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::Arc,
};

use crate::fixture::*;
use serde_json::{Value, json};
use surehand_engine::{
    Config, Session, StateHome, Workspace, WorkspaceOptions,
    testing::{CommitProbe, CommitStep, ProbeVerdict, steps},
};

struct Place {
    tree: tempfile::TempDir,
    state: tempfile::TempDir,
}

/// A tree here with its state in memory; nothing if memory is not another file system.
fn place(files: &[(&str, &str)]) -> Option<Place> {
    let state = tempfile::tempdir_in("/dev/shm").ok()?;
    let tree = tempfile::tempdir().unwrap();
    let device = |dir: &tempfile::TempDir| fs::metadata(dir.path()).unwrap().dev();
    if device(&state) == device(&tree) {
        eprintln!("not run: there is only one file system");
        return None;
    }
    for (path, content) in files {
        fs::create_dir_all(tree.path().join(path).parent().unwrap()).unwrap();
        fs::write(tree.path().join(path), content).unwrap();
    }
    Some(Place { tree, state })
}

impl Place {
    fn session(&self, probe: Option<CommitProbe>) -> Session {
        let state = StateHome { user: Some(self.state.path().to_owned()), ..StateHome::default() };
        let options = WorkspaceOptions { config: Config { state, ..fast() }, probe, ..WorkspaceOptions::default() };
        Session::new(Workspace::open_with(self.tree.path(), options).unwrap())
    }

    /// Files in the tree that neither we nor the user put there.
    fn leftovers(&self) -> Vec<PathBuf> {
        let mut found = vec![self.tree.path().to_owned()];
        let mut left = Vec::new();
        while let Some(dir) = found.pop() {
            for entry in fs::read_dir(dir).unwrap() {
                let path = entry.unwrap().path();
                let name = path.file_name().unwrap().to_str().unwrap().to_owned();
                if name.starts_with("staged-") || name.starts_with(".surehand-") {
                    left.push(path);
                } else if path.is_dir() {
                    found.push(path);
                }
            }
        }
        left
    }
}

const FILES: &[(&str, &str)] = &[("a.txt", "one\n"), ("b.txt", "one\n"), ("sub/c.txt", "one\n")];

fn calls() -> Vec<(&'static str, Value, usize)> {
    let both = edits(&[edit("a.txt", "one", "two"), edit("sub/c.txt", "one", "two")]);
    let patch = "*** Begin Patch\n*** Update File: a.txt\n@@\n-one\n+two\n*** Delete File: b.txt\n*** Add File: new/d.txt\n+x\n*** End Patch\n";
    vec![
        ("edit_file", edit("a.txt", "one", "two"), 1),
        ("multi_edit", both, 2),
        ("write_file", json!({ "path": "new/d.txt", "content": "x\n" }), 1),
        ("delete_file", json!({ "path": "b.txt" }), 1),
        ("move_file", json!({ "from": "b.txt", "to": "sub/b.txt" }), 1),
        ("apply_patch", json!({ "patch": patch }), 3),
    ]
}

fn tree(dir: &Path) -> Vec<(String, Vec<u8>)> {
    surehand_testkit::scenario::tree(dir).into_iter().collect()
}

#[test]
fn a_crash_after_any_step_leaves_all_or_nothing_and_nothing_behind() {
    for (tool, arguments, files) in calls() {
        for step in steps(files) {
            let Some(place) = place(FILES) else { return };
            let before = tree(place.tree.path());
            let probe: CommitProbe = Arc::new(crash_after(step));
            let mut dying = place.session(Some(probe));
            FILES.iter().for_each(|(path, _)| read(&mut dying, path));
            let reply = dying.call(tool, &arguments);
            assert!(reply.is_error, "{tool} {step:?}: {}", reply.text);
            std::mem::forget(dying);
            drop(place.session(None));
            let after = tree(place.tree.path());
            if step == CommitStep::End {
                assert_ne!(after, before, "{tool}");
            } else if after != before {
                assert!(
                    matches!(step, CommitStep::Swap(last) | CommitStep::Verify(last) if last + 1 == files),
                    "{tool} {step:?}: {after:?}"
                );
            }
            assert_eq!(place.leftovers(), Vec::<PathBuf>::new(), "{tool} {step:?}");
        }
    }
}

#[test]
fn files_are_staged_in_a_private_directory_of_the_tree() {
    let Some(place) = place(FILES) else { return };
    let root = place.tree.path().to_owned();
    let look = move |_, step| {
        if step == CommitStep::Begin {
            let staged: Vec<PathBuf> = fs::read_dir(root.join(".surehand")).unwrap().map(|entry| entry.unwrap().path()).collect();
            let staged = staged.iter().find(|path| path.file_name().unwrap().to_str().unwrap().starts_with("staged-"));
            assert_eq!(fs::metadata(staged.expect("it is made")).unwrap().mode() & 0o777, 0o700);
        }
        ProbeVerdict::GoOn
    };
    let mut session = place.session(Some(Arc::new(look)));
    read(&mut session, "a.txt");
    for (from, to) in [("one", "two"), ("two", "three")] {
        assert!(!session.call("edit_file", &edit("a.txt", from, to)).is_error);
    }
    assert_eq!(content(place.tree.path(), "a.txt"), "three\n");
    assert!(content(place.tree.path(), ".surehand/repostate.json").contains("a.txt"));
    drop(session);
    assert_eq!(place.leftovers(), Vec::<PathBuf>::new());
}
