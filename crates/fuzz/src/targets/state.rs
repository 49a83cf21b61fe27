//! Our own state, damaged or forged: by a crash, a full disk, another program, or the author of the repository. A
//! workspace opens or reports why it cannot, an edit is refused if its basis is lost, and the only files that change
//! are those named by this user's own commits.

use std::{
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt, symlink},
    path::{Path, PathBuf},
};

use serde_json::{Value, json};
use surehand_engine::{Session, SessionId, Workspace, core::ContentHash, scan};
use surehand_testkit::state_of;

use crate::{
    sandbox::{Sandbox, Tree, difference},
    source::Source,
};

pub(super) const WORDS: &[&str] = &[
    "SQLite format 3",
    "\"files\":",
    "{",
    "}",
    "null",
    "\u{ff}",
    "../outside/o.txt",
    "a.txt",
    "begin",
    "end",
    "{\"start\":{\"checkout\":\"",
    ".git/hooks/post-commit",
];

pub(super) fn run(data: &[u8]) {
    let mut source = Source::new(data);
    let sandbox = Sandbox::new();
    let id = SessionId("s".to_owned());
    if source.below(4) > 0 {
        work(&mut Session::continued(sandbox.open().expect("a workspace"), id.clone()));
    }
    for _ in 0..=source.below(3) {
        match source.below(4) {
            0 => damage(&mut source, &state_files(&sandbox)),
            1 => transplant(&sandbox),
            _ => forge(&mut source, &sandbox),
        }
    }
    let (before, around) = (sandbox.tree(), sandbox.surroundings());
    let unchanged = |what: &str| {
        let after = sandbox.tree();
        assert_eq!(before, after, "{what}: {}", difference(&before, &after));
    };
    if let Ok(workspace) = sandbox.look() {
        look(&workspace);
        unchanged("looking");
    }
    if let Ok(workspace) = sandbox.open() {
        unchanged("opening");
        look(&workspace);
        let mut session = Session::continued(workspace, id);
        let reply = session.call("edit_file", &json!({ "path": "src/b.rs", "old_string": "// b", "new_string": "// c" }));
        assert!(reply.is_error, "it was never read: {}", reply.text);
        unchanged("an edit that was refused");
        work(&mut session);
        let named =
            |tree: &Tree| tree.iter().filter(|(name, _)| *name != "a.txt").map(|(name, _)| name.clone()).collect::<Vec<_>>();
        assert_eq!(named(&before), named(&sandbox.tree()), "files came or went");
    }
    assert_eq!(around, sandbox.surroundings());
}

/// A session that reads, edits, plans and lists.
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
    // A failed scan is reported, which is enough here.
    if !workspace.state_report().is_read_only {
        drop(scan::scan(workspace, &|_| ()));
    }
    workspace.snapshot();
}

/// The state directories: ours, and that of release 0.1, which a repository can ship.
fn state_directories(sandbox: &Sandbox) -> [PathBuf; 3] {
    [sandbox.root().join(".surehand"), sandbox.root().join(".git/surehand"), state_of(sandbox.root())]
}

fn state_files(sandbox: &Sandbox) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for dir in state_directories(sandbox) {
        files.extend(
            ["journal/1", "index", "repostate.json", "generation", "state.db", "root", "export"].map(|name| dir.join(name)),
        );
        let others = fs::read_dir(dir).into_iter().flatten().flatten();
        files.extend(others.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file())).map(|entry| entry.path()));
    }
    files.sort();
    files.dedup();
    files
}

fn damage(source: &mut Source<'_>, files: &[PathBuf]) {
    let file = &files[source.below(files.len())];
    let is_file = fs::symlink_metadata(file).is_ok_and(|file| file.is_file());
    let mut content = if is_file { fs::read(file).unwrap_or_default() } else { Vec::new() };
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
    put(file, &content);
}

/// Copies the complete state of another tree into this one, as copying a repository does.
fn transplant(sandbox: &Sandbox) {
    let other = Sandbox::new();
    work(&mut Session::continued(other.open().expect("a workspace"), SessionId("s".to_owned())));
    let (from, to) = (other.root().join(".git/surehand"), sandbox.root().join(".git/surehand"));
    drop(fs::remove_dir_all(&to));
    copy(&from, &to);
}

fn copy(from: &Path, to: &Path) {
    drop(fs::create_dir(to));
    drop(fs::set_permissions(to, fs::Permissions::from_mode(0o700)));
    for entry in fs::read_dir(from).into_iter().flatten().flatten() {
        let to = to.join(entry.file_name());
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => copy(&entry.path(), &to),
            _ => drop(fs::copy(entry.path(), to)),
        }
    }
}

/// Journal names as our processes choose them.
const JOURNALS: [&str; 3] = ["1-aaaa", "4711-00000000deadbeef", "1"];

/// Paths that a forger might target.
const TARGETS: &[&str] = &[
    ".git/hooks/post-commit",
    ".git/HEAD",
    ".git/config",
    ".GIT/hooks/post-commit",
    "src/../.git/hooks/post-commit",
    "a.txt",
    "src/b.rs",
    "new.txt",
    "src/new/x.txt",
    "empty",
    "data.bin",
    "hard.txt",
    "link.txt",
    "out/o.txt",
    "../outside/o.txt",
    "/etc/passwd",
    ".surehand/x",
    ".git/surehand/state.db",
];

/// Writes what an attacker who knows our formats would write, into any place that may be read.
fn forge(source: &mut Source<'_>, sandbox: &Sandbox) {
    let dirs = state_directories(sandbox);
    let dir = &dirs[source.below(dirs.len())];
    let journal = JOURNALS[source.below(JOURNALS.len())];
    match source.below(8) {
        0..=3 => {
            let lines: String = (0..=source.below(4)).map(|_| format!("{}\n", entry(source, sandbox, journal))).collect();
            let start = match source.below(3) {
                0 => String::new(),
                1 => "{\"start\":{\"checkout\":\"\"}}\n".to_owned(),
                _ => format!("{{\"start\":{{\"checkout\":\"{}\"}}}}\n", "0".repeat(32)),
            };
            put(&dir.join("journal").join(journal), format!("{start}{lines}").as_bytes());
            let script = dir.join("staged").join(format!("{journal}-1"));
            put(&script, b"#!/bin/sh\ntouch ../owned\n");
            drop(fs::set_permissions(script, fs::Permissions::from_mode(0o755)));
        }
        4 => {
            // A staged file beside a target without a journal of ours belongs to another program.
            sandbox.write(&format!("src/.surehand-{journal}-1-0"), b"somebody's\n");
            put(&dir.join("locks/00"), format!("{journal:<48}").as_bytes());
        }
        5 => {
            let name =
                ["root", "index", "repostate.json", "generation", "export", "outbox/1-0", "hooks/0", "state.db"][source.below(8)];
            special(source, sandbox, &dir.join(name));
        }
        6 => {
            let (path, hash) = (TARGETS[source.below(TARGETS.len())], ContentHash::of(source.until_zero(20)));
            let file = json!({ "path": path, "hash": hash, "size": 1, "mod_time": "2026-01-01T00:00:00Z", "type": "x", "status": "created" });
            put(&dir.join("repostate.json"), json!({ "files": [file], "open_tasks": [] }).to_string().as_bytes());
            put(&dir.join("generation"), source.until_zero(20));
        }
        _ => {
            let happened = json!({ "happened": { "change": "0badcafe", "at": 7, "session": "s", "tool": "edit_file",
                "path": TARGETS[source.below(TARGETS.len())], "moved_to": null, "before": null, "after": ContentHash::of(b"x"),
                "mode": null, "undoes": [], "delta": null } });
            let parcel = format!("{happened}\n");
            put(&dir.join("outbox").join(format!("{journal}-0")), format!("{}\n{parcel}", parcel.len()).as_bytes());
        }
    }
}

/// A line of a journal, in our format or in that of release 0.1.
fn entry(source: &mut Source<'_>, sandbox: &Sandbox, journal: &str) -> Value {
    let path = TARGETS[source.below(TARGETS.len())];
    let real = fs::symlink_metadata(sandbox.root().join(FILES[source.below(FILES.len())])).ok();
    let hash = |source: &mut Source<'_>| match source.below(4) {
        0 => Value::Null,
        1 => json!("0".repeat(64)),
        2 => json!(ContentHash::of(b"#!/bin/sh\ntouch ../owned\n")),
        _ => json!(ContentHash::of(&fs::read(sandbox.root().join(path)).unwrap_or_default())),
    };
    let staged = match source.below(5) {
        0 => format!("{journal}-1"),
        1 => format!(".surehand-{journal}-1-0"),
        2 => "../../../a.txt".to_owned(),
        3 => "a.txt".to_owned(),
        _ => format!("{journal}-1-0"),
    };
    let staging = match source.below(4) {
        0 => json!("state"),
        1 => json!("beside"),
        _ => json!({ "tree": "staged-0123456789abcdef" }),
    };
    let commit = source.below(3);
    match source.below(7) {
        0 => json!({ "stage": { "commit": commit, "path": path, "staged": staged, "place": staging, "beside": true } }),
        1 => json!({ "reuse": { "staged": staged } }),
        2 => json!({ "make": { "commit": commit, "dirs": [path, "src", "deep/er"] } }),
        3 => json!({ "stage_dir": { "name": "staged-0123456789abcdef" } }),
        4 => json!({ "end": { "commit": commit, "done": source.below(2) == 0 } }),
        _ => {
            let how = ["swap", "rename", "create", "in_place", "remove", "move"][source.below(6)];
            let file = json!({
                "path": path, "to": TARGETS[source.below(TARGETS.len())], "how": how, "base": hash(source), "new": hash(source),
                "staged": staged, "place": staging, "beside": source.below(2) == 0,
                "inode": real.as_ref().map_or(0, MetadataExt::ino),
                "modified": real.as_ref().map_or(0, |real| real.mtime() * 1_000_000_000 + real.mtime_nsec()),
            });
            json!({ "begin": { "commit": commit, "files": [file] } })
        }
    }
}

const FILES: [&str; 4] = ["a.txt", "src/b.rs", "empty", "hard.txt"];

/// A special file in the place of a regular one.
fn special(source: &mut Source<'_>, sandbox: &Sandbox, at: &Path) {
    drop(fs::create_dir_all(at.parent().expect("it is in a directory")));
    drop(fs::remove_file(at));
    match source.below(4) {
        0 => drop(symlink("/dev/zero", at)),
        1 => drop(symlink(sandbox.outside().join("o.txt"), at)),
        2 => drop(fs::create_dir(at)),
        _ => drop(rustix::fs::mkfifoat(rustix::fs::CWD, at, rustix::fs::Mode::from_raw_mode(0o600))),
    }
}

fn put(at: &Path, content: &[u8]) {
    // If it cannot be created, it is missing.
    drop(fs::create_dir_all(at.parent().expect("it is in a directory")));
    for dir in at.ancestors().skip(1).take_while(|dir| !dir.ends_with(".git") && !dir.ends_with("ws")) {
        drop(fs::set_permissions(dir, fs::Permissions::from_mode(0o700)));
    }
    if fs::symlink_metadata(at).is_ok_and(|there| !there.is_file()) {
        // Never through a link, and never into a pipe.
        drop(fs::remove_file(at));
    }
    drop(fs::write(at, content));
}
