//! The data that the page gets, and its actions.

use serde_json::{Value, json};
use surehand_engine::{Edit, SessionId};

use crate::server::{Server, edit};

/// The text of a file now.
fn text(server: &Server, path: &str) -> String {
    std::fs::read_to_string(server.dir.path().join(path)).unwrap()
}

#[test]
fn a_page_begins_with_sessions_and_what_they_know() {
    let server = Server::start();
    let mut one = server.session_that_read("claude-one", "src/a.txt", "one\ntwo\n");
    let _other = server.session_that_read("codex-two", "src/a.txt", "one\ntwo\n");
    let change = edit(&mut one, "src/a.txt", "two", "2");
    let start = server.get("start").json();
    let session = |name: &str| {
        let sessions = start["sessions"].as_array().unwrap();
        sessions.iter().find(|session| session["session"] == name).unwrap().clone()
    };
    assert_eq!((&session("claude-one")["stale"], &session("claude-one")["edited"]), (&json!([]), &json!(["src/a.txt"])));
    assert_eq!((&session("codex-two")["stale"], &session("codex-two")["seen"]), (&json!(["src/a.txt"]), &json!(["src/a.txt"])));
    assert_eq!((&start["entries"][0]["id"], &start["entries"][0]["by"]), (&json!(change), &json!("claude one")));
    assert_eq!(start["state"]["files"]["modified"], json!(["src/a.txt"]));
}

#[test]
fn what_is_recorded_by_another_process_arrives_by_itself() {
    let server = Server::start();
    let mut session = server.session_that_read("claude-one", "a.txt", "one\n");
    server.get("start").json();
    let mut feed = server.feed();
    let change = edit(&mut session, "a.txt", "one", "1");
    let has = |news: &Value, fits: &dyn Fn(&Value) -> bool| news["entries"].as_array().is_some_and(|all| all.iter().any(fits));
    assert!(feed.any(|news| has(&news, &|entry| entry["id"] == json!(change))));
    // A refusal is not a change, but arrives as well.
    assert!(session.edit(&Edit::replace("b.txt", "x", "y")).is_refused());
    session.workspace().flush();
    assert!(feed.any(|news| has(&news, &|entry| entry["kind"] == "refusal")));
    // So does a read of another session.
    let _other = server.session_that_read("codex-two", "c.txt", "three\n");
    let is_read = |read: &Value| read["session"] == "codex-two" && read["path"] == "c.txt";
    assert!(feed.any(|news| news["reads"].as_array().is_some_and(|reads| reads.iter().any(is_read))));
}

#[test]
fn a_feed_begins_with_the_revision_that_it_goes_on_from() {
    let server = Server::start();
    let mut session = server.session_that_read("claude-one", "a.txt", "one\n");
    let before = server.get("start").json()["revision"].clone();
    assert_eq!(server.feed_from().0, before);
    edit(&mut session, "a.txt", "one", "1");
    let after = server.get("start").json()["revision"].clone();
    assert_ne!(before, after);
    // A page that requested the state earlier learns that it has missed something.
    let (from, mut news) = server.feed_from();
    assert_eq!(from, after);
    edit(&mut session, "a.txt", "1", "eins");
    assert_eq!(news.next().unwrap()["revision"], after.as_u64().unwrap() + 1);
}

#[test]
fn an_edit_after_a_refusal_is_a_repair() {
    let server = Server::start();
    let mut session = server.session_that_read("claude-one", "a.txt", "one\ntwo\n");
    let mut other = server.session_that_read("codex-two", "a.txt", "one\ntwo\n");
    edit(&mut other, "a.txt", "one", "1");
    assert!(session.edit(&Edit::replace("a.txt", "one", "eins")).is_refused());
    edit(&mut session, "a.txt", "1", "eins");
    let start = server.get("start").json();
    let kinds: Vec<&Value> = start["entries"].as_array().unwrap().iter().map(|entry| &entry["kind"]).collect();
    assert_eq!(kinds, ["change", "refusal", "change"]);
    assert_eq!(start["entries"][0]["repairs"], start["entries"][1]["id"]);
    assert!(start["entries"][2]["repairs"].is_null());
}

#[test]
fn a_change_is_undone_after_a_preview_and_redone() {
    let server = Server::start();
    let mut session = server.session_that_read("claude-one", "a.txt", "one\ntwo\n");
    let change = edit(&mut session, "a.txt", "two", "2");
    let undo = json!({ "act": "undo", "what": { "change": change } });
    let preview = server.post("preview", &undo).json();
    assert!(preview["files"][0]["diff"].as_str().unwrap().contains("-2\n+two"), "{preview:#}");
    assert_eq!(text(&server, "a.txt"), "one\n2\n", "a preview changes nothing");
    assert_eq!(server.post("act", &undo).json()["success"], true);
    assert_eq!(text(&server, "a.txt"), "one\ntwo\n");
    let start = server.get("start").json();
    assert_eq!((&start["entries"][0]["kind"], &start["entries"][0]["by"]), (&json!("undo"), &json!("command line")));
    assert_eq!(start["entries"][1]["undone"], true);
    let redo = json!({ "act": "redo" });
    assert!(server.post("preview", &redo).json()["files"][0]["diff"].as_str().unwrap().contains("+2"));
    assert_eq!(server.post("act", &redo).json()["success"], true);
    assert_eq!(text(&server, "a.txt"), "one\n2\n");
}

#[test]
fn an_undo_that_would_lose_later_work_says_so_and_does_nothing() {
    let server = Server::start();
    let mut session = server.session_that_read("claude-one", "a.txt", "one\n");
    let change = edit(&mut session, "a.txt", "one", "1");
    edit(&mut session, "a.txt", "1", "I");
    let undo = json!({ "act": "undo", "what": { "change": change } });
    assert!(server.post("preview", &undo).json()["refused"].is_string());
    let done = server.post("act", &undo).json();
    assert_eq!((&done["success"], text(&server, "a.txt")), (&json!(false), "I\n".to_owned()));
}

#[test]
fn files_are_restored_to_a_change() {
    let server = Server::start();
    let mut session = server.session_that_read("claude-one", "a.txt", "one\n");
    let change = edit(&mut session, "a.txt", "one", "two");
    edit(&mut session, "a.txt", "two", "three");
    let restore = json!({ "act": "restore", "to": change });
    let preview = server.post("preview", &restore).json();
    assert_eq!((&preview["files"], &preview["restored"]), (&json!([{ "path": "a.txt", "act": "overwrite" }]), &json!(false)));
    assert_eq!(server.post("act", &restore).json()["restored"], true);
    assert_eq!(text(&server, "a.txt"), "two\n");
}

#[test]
fn a_file_says_who_wrote_each_line_and_who_has_seen_it() {
    let server = Server::start();
    let mut one = server.session_that_read("claude-one", "a.txt", "one\ntwo\nthree\n");
    let _other = server.session_that_read("codex-two", "a.txt", "one\ntwo\nthree\n");
    edit(&mut one, "a.txt", "two", "2");
    let file = server.get("file?path=a.txt").json();
    let by: Vec<&Value> = file["runs"].as_array().unwrap().iter().map(|run| &run["by"]).collect();
    assert_eq!(by, ["outside", "session", "outside"]);
    let seen = |name: &str| file["seen_by"].as_array().unwrap().iter().find(|seen| seen["session"] == name).unwrap().clone();
    assert_eq!((&seen("claude-one")["stale"], &seen("claude-one")["lines"]), (&json!(false), &json!([[1, 3]])));
    assert_eq!((&seen("codex-two")["stale"], &seen("codex-two")["lines"]), (&json!(true), &json!([[1, 1], [3, 3]])));
}

#[test]
fn what_makes_no_sense_is_an_answer_with_a_reason() {
    let server = Server::start();
    for (question, status) in [
        ("file?path=../../etc/passwd", 400),
        ("file?path=%2Fetc%2Fpasswd", 400),
        ("file?path=%2e%2e%2f%2e%2e%2fetc%2fpasswd", 400),
        ("file?path=a%00b", 400),
        ("file?path=%ff", 400),
        ("file?path=", 400),
        ("file", 400),
        ("file?path=missing.txt", 404),
        ("entry?id=zzzz", 404),
        ("run?id=zzzz", 404),
        ("turn?id=zzzz&turn=x", 400),
        ("entries?from=-1", 400),
        ("nothing", 404),
    ] {
        let answer = server.get(question);
        assert_eq!(answer.status, status, "{question}: {}", answer.body);
        assert!(answer.body.starts_with("{\"error\":\""), "{question}: {}", answer.body);
    }
    for request in [json!(null), json!({}), json!({ "act": "format" }), json!({ "act": "redo", "more": 1 }), json!([])] {
        assert_eq!(server.post("act", &request).status, 400, "{request}");
    }
    assert_eq!(server.post("act", &json!({ "act": "undo", "what": { "change": "zzzz" } })).status, 404);
    assert_eq!(server.post("act", &json!({ "act": "drop", "rescue": "zzzz" })).status, 404);
    assert_eq!(server.post("act", &json!({ "act": "restore", "to": "zzzz" })).status, 404);
}

#[test]
fn a_report_has_no_script_and_nothing_that_a_file_contains_is_markup() {
    let server = Server::start();
    let path = "<img src=x onerror=alert(1)>\u{202e}.txt";
    let name = "claude-<script>";
    let mut session = server.session_that_read(name, path, "</pre><script>alert(1)</script>\u{1b}[2J\n");
    edit(&mut session, path, "alert(1)", "alert(2)");
    let report = surehand_ui::report(&server.workspace(), &SessionId(name.to_owned())).unwrap();
    assert!(report.contains("&lt;script&gt;alert(2)&lt;/script&gt;&lt;U+001B&gt;[2J"), "{report}");
    assert!(report.contains("&lt;img src=x onerror=alert(1)&gt;&lt;U+202E&gt;.txt"), "{report}");
    for word in ["<script", "<img", "<link", "\u{202e}", "\u{1b}", "http://", "https://"] {
        assert!(!report.contains(word), "{word}");
    }
    assert!(report.contains("content=\"default-src 'none'; style-src 'sha256-"));
}
