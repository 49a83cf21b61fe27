//! Files that cannot be shown, because they are binary or too large: they are replaced only by a call that is sent
//! twice, and are stored first.
#![expect(clippy::disallowed_methods, reason = "tests play the other programs")]

use std::{
    fs::{self, File},
    os::unix::fs::PermissionsExt,
    path::Path,
};

use crate::fixture::*;
use serde_json::{Value, json};
use surehand_engine::{
    Config, Reply, Session, SessionId, Workspace,
    core::{ContentHash, Limits},
    testing::CommitStep,
};

const BINARY: &[u8] = b"\x89PNG\r\n\x1a\n\0\0";
const BROKEN: &[u8] = b"\xff\xfeh\0i";

fn write(path: &str, content: &str) -> Value {
    json!({ "path": path, "content": content })
}

fn lay_out_bytes(path: &str, bytes: &[u8]) -> tempfile::TempDir {
    let dir = lay_out(&[]);
    fs::write(dir.path().join(path), bytes).unwrap();
    dir
}

/// A session in which a file has at most 1000 bytes.
fn limited(dir: &Path) -> Session {
    let limits = Limits { file_bytes: 1000, ..Limits::default() };
    Session::new(Workspace::open(dir, Config { limits, ..fast() }).unwrap())
}

#[track_caller]
fn refused(reply: &Reply, code: &str) {
    assert_eq!(reply.result["refusal"]["code"], code, "{}", reply.text);
}

#[track_caller]
fn done(reply: &Reply) {
    assert!(!reply.is_error, "{}", reply.text);
}

#[test]
fn undo_brings_back_a_file_that_could_not_be_shown() {
    let large: Vec<u8> = b"all kinds of words\n".repeat(100);
    for (bytes, code) in [(BINARY, "binary"), (BROKEN, "encoding"), (&large, "too_large"), (&[0; 5000], "too_large")] {
        let dir = lay_out_bytes("f", bytes);
        let file = dir.path().join("f");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        let mut session = limited(dir.path());
        refused(&session.call("write_file", &write("f", "new\n")), code);
        assert_eq!(fs::read(&file).unwrap(), bytes, "a refusal changes nothing");
        done(&session.call("write_file", &write("f", "new\n")));
        assert_eq!(content(dir.path(), "f"), "new\n");
        done(&session.call("edit_file", &edit("f", "new", "newer")));
        done(&session.call("undo", &json!({})));
        done(&session.call("undo", &json!({})));
        assert_eq!(fs::read(&file).unwrap(), bytes);
        refused(&session.call("read_file", &json!({ "path": "f" })), code);
        done(&session.call("delete_file", &json!({ "path": "f" })));
        assert!(!file.exists());
        done(&session.call("undo", &json!({})));
        assert_eq!(fs::read(&file).unwrap(), bytes);
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o640);
    }
}

/// Undone and redone: the content that replaced the file can be had again, too.
#[test]
fn the_content_that_replaced_it_can_be_had_again() {
    let dir = lay_out_bytes("f", &[b'x'; 2000]);
    let mut session = limited(dir.path());
    session.call("write_file", &write("f", "new\n"));
    done(&session.call("write_file", &write("f", "new\n")));
    let undone = session.call("undo", &json!({}));
    done(&session.call("undo", &json!({ "change": undone.result["change"] })));
    assert_eq!(content(dir.path(), "f"), "new\n");
}

#[test]
fn a_change_in_between_is_reported_and_needs_another_confirmation() {
    let dir = lay_out_bytes("f", BINARY);
    let mut session = session(dir.path());
    assert!(session.call("write_file", &write("f", "x")).text.contains("10 bytes"));
    fs::write(dir.path().join("f"), b"\0\0\0").unwrap();
    let again = session.call("write_file", &write("f", "x"));
    refused(&again, "binary");
    assert!(again.text.contains("3 bytes") && again.text.contains("send the same call again"), "{}", again.text);
    assert!(!again.text.contains("do not retry"), "{}", again.text);
    // The content at the time of the first refusal.
    fs::write(dir.path().join("f"), BINARY).unwrap();
    done(&session.call("write_file", &write("f", "x")));
}

#[test]
fn a_file_that_becomes_text_must_be_read() {
    let dir = lay_out_bytes("f", BINARY);
    let mut session = session(dir.path());
    refused(&session.call("write_file", &write("f", "x")), "binary");
    fs::write(dir.path().join("f"), "words\n").unwrap();
    refused(&session.call("write_file", &write("f", "x")), "unread");
}

#[test]
fn only_the_same_call_of_the_same_session_means_it() {
    let dir = lay_out_bytes("f", BINARY);
    let (mut one, mut other) = (session(dir.path()), session(dir.path()));
    refused(&one.call("write_file", &write("f", "x")), "binary");
    refused(&other.call("write_file", &write("f", "x")), "binary");
    refused(&one.call("write_file", &write("f", "y")), "binary");
    refused(&one.call("edit_file", &edit("f", "", "x")), "binary");
    one.call("forget", &json!({ "paths": ["f"] }));
    refused(&one.call("write_file", &write("f", "x")), "binary");
    one.reset();
    refused(&one.call("write_file", &write("f", "x")), "binary");
    assert_eq!(fs::read(dir.path().join("f")).unwrap(), BINARY);
    done(&other.call("write_file", &write("f", "x")));
    refused(&one.call("write_file", &write("f", "y")), "unread");
}

#[test]
fn the_second_call_may_come_from_another_process() {
    let dir = lay_out_bytes("f", BINARY);
    let process = || Session::continued(Workspace::open(dir.path(), fast()).unwrap(), SessionId("s".to_owned()));
    refused(&process().call("write_file", &write("f", "x")), "binary");
    done(&process().call("write_file", &write("f", "x")));
    done(&process().call("undo", &json!({})));
    assert_eq!(fs::read(dir.path().join("f")).unwrap(), BINARY);
}

/// The calls of an untracked session are not counted, so the refusal does not ask to send one again.
#[test]
fn without_a_tracker_it_must_be_deleted() {
    let dir = lay_out_bytes("f", BINARY);
    let mut session = Session::untracked(Workspace::open(dir.path(), fast()).unwrap());
    for _ in 0..2 {
        let reply = session.call("write_file", &write("f", "x"));
        refused(&reply, "binary");
        assert!(!reply.text.contains("again") && reply.text.contains("delete_file"), "{}", reply.text);
    }
    done(&session.call("delete_file", &json!({ "path": "f" })));
    done(&session.call("write_file", &write("f", "x")));
}

#[test]
fn it_is_kept_before_anything_is_done_to_it() {
    for (tool, arguments) in [("write_file", write("f", "x")), ("delete_file", json!({ "path": "f" }))] {
        let dir = lay_out_bytes("f", BINARY);
        let mut crashing = session_with(dir.path(), crash_after(CommitStep::Lock));
        crashing.call(tool, &arguments);
        crashing.call(tool, &arguments);
        let kept = crashing.workspace().ask(|store| store.version(&ContentHash::of(BINARY))).unwrap();
        assert_eq!(kept.as_deref(), Some(BINARY), "{tool}");
        assert_eq!(fs::read(dir.path().join("f")).unwrap(), BINARY);
    }
}

/// It would not fit into memory, so only its size is checked.
#[test]
fn a_huge_file_is_left_alone() {
    const HUGE: u64 = 100 << 30;
    let dir = lay_out(&[("a.txt", "one\n")]);
    File::create(dir.path().join("huge")).unwrap().set_len(HUGE).unwrap();
    let mut session = session(dir.path());
    read(&mut session, "a.txt");
    let patch = |lines: &str| json!({ "patch": format!("*** Begin Patch\n{lines}\n*** End Patch\n") });
    for (tool, arguments) in [
        ("write_file", write("huge", "x")),
        ("write_file", write("huge", "x")),
        ("edit_file", edit("huge", "", "x")),
        ("edit_file", edit("huge", "a", "x")),
        ("multi_edit", edits(&[edit("a.txt", "one", "two"), edit("huge", "", "x")])),
        ("delete_file", json!({ "path": "huge" })),
        ("move_file", json!({ "from": "huge", "to": "elsewhere" })),
        ("apply_patch", patch("*** Add File: huge\n+x")),
        ("apply_patch", patch("*** Delete File: huge")),
    ] {
        let reply = session.call(tool, &arguments);
        refused(&reply, "too_large");
        assert!(reply.text.contains(&HUGE.to_string()) && reply.text.contains("shell command"), "{tool}: {}", reply.text);
    }
    refused(&session.call("move_file", &json!({ "from": "a.txt", "to": "huge" })), "exists");
    assert_eq!(fs::metadata(dir.path().join("huge")).unwrap().len(), HUGE);
    assert_eq!(content(dir.path(), "a.txt"), "one\n");
}

/// A file with several hard links is written in place; its bytes come back under all of them.
#[test]
fn a_file_with_several_names_comes_back_under_all_of_them() {
    let dir = lay_out_bytes("f", BINARY);
    fs::hard_link(dir.path().join("f"), dir.path().join("g")).unwrap();
    let mut session = session(dir.path());
    refused(&session.call("write_file", &write("f", "x\n")), "binary");
    done(&session.call("write_file", &write("f", "x\n")));
    assert_eq!(content(dir.path(), "g"), "x\n");
    done(&session.call("undo", &json!({})));
    assert_eq!(fs::read(dir.path().join("g")).unwrap(), BINARY);
}
