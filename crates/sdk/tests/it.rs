//! The facade as a binding uses it.
#![expect(clippy::disallowed_methods, reason = "tests play the other programs")]

use std::{
    collections::BTreeMap,
    fs,
    path::PathBuf,
    sync::atomic::{AtomicUsize, Ordering},
    thread,
};

use serde_json::{Value, json};
use surehand_sdk::{
    Edit, LineRange, OpenOptions, ReadOptions, RefusalReport, SdkError, Session, SessionOptions, StoreKind, UndoOptions,
    Workspace, edit_of_tool,
};

/// A directory with a file, and a place for the state.
struct Place {
    tree: tempfile::TempDir,
    state: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let place = Self { tree: tempfile::tempdir().unwrap(), state: tempfile::tempdir().unwrap() };
        place.save("a.txt", "one\ntwo\nthree\n");
        place
    }

    fn options(&self) -> OpenOptions {
        OpenOptions { state_dir: Some(self.state.path().to_owned()), ..OpenOptions::default() }
    }

    fn open(&self) -> Workspace {
        Workspace::open(self.tree.path(), self.options()).unwrap()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.tree.path().join(name)
    }

    fn save(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }
}

fn session(workspace: &Workspace) -> Session {
    workspace.session(SessionOptions::default()).unwrap()
}

fn named(workspace: &Workspace, id: &str, is_shared: bool) -> Session {
    workspace.session(SessionOptions { id: Some(id.to_owned()), is_shared, tools: None }).unwrap()
}

fn read(session: &Session, path: &str) {
    session.read(path, &ReadOptions::default()).unwrap();
}

#[track_caller]
fn refusal<T: std::fmt::Debug>(result: Result<T, SdkError>) -> RefusalReport {
    match result {
        Err(SdkError::Refused(report)) => *report,
        other => panic!("not refused: {other:?}"),
    }
}

#[test]
fn a_stale_edit_is_refused_with_what_it_needs_and_then_passes() {
    let place = Place::new();
    let workspace = place.open();
    let session = session(&workspace);
    read(&session, "a.txt");
    place.save("a.txt", "zero\none\ntwo\nthree\n");

    let refused = refusal(session.edit(&Edit::replace("a.txt", "two", "2")));
    assert_eq!((refused.code, refused.path.as_deref(), refused.repeat), ("stale", Some("a.txt"), 1));
    assert_eq!(refused.affected_ranges, [LineRange { start: 1, end: 1 }]);
    assert!(refused.text.contains("1|zero") && refused.remedy.contains("read_file"), "{refused:?}");
    assert_eq!(refused.details["code"], "stale");

    let reply = session.edit(&Edit::replace("a.txt", "two", "2")).unwrap();
    assert_eq!((reply.result["path"].as_str(), &reply.refusal), (Some("a.txt"), &None));
    assert_eq!(place.text("a.txt"), "zero\none\n2\nthree\n");
    session.undo(&UndoOptions::default()).unwrap();
    assert_eq!(place.text("a.txt"), "zero\none\ntwo\nthree\n");
}

#[test]
fn anchors_that_have_moved_come_with_their_new_ones() {
    let place = Place::new();
    let workspace = place.open();
    let session = session(&workspace);
    let shown = session.read("a.txt", &ReadOptions { anchors: true, ..ReadOptions::default() }).unwrap().text;
    let anchor = shown.lines().find_map(|line| line.strip_suffix("|three")).unwrap().to_owned();
    place.save("a.txt", "zero\none\ntwo\nthree\n");

    let edit_at = |anchor: &str| {
        let edits = json!([{ "op": "replace", "at": anchor, "text": "3" }]);
        edit_of_tool("edit_lines", &json!({ "path": "a.txt", "edits": edits })).unwrap()
    };
    let refused = refusal(session.edit(&edit_at(&anchor)));
    session.edit(&edit_at(&refused.remaps[&anchor])).unwrap();
    assert_eq!(place.text("a.txt"), "zero\none\ntwo\n3\n");
}

#[test]
fn an_edit_of_ones_own_tool_is_judged_and_adopted() {
    let place = Place::new();
    let workspace = place.open();
    let session = session(&workspace);
    let edit = Edit::write("a.txt", "new\n");
    assert_eq!(refusal(session.judge(&edit)).code, "unread");

    // The refusal showed the file.
    let permit = session.judge(&edit).unwrap();
    assert_eq!(permit.note, "");
    place.save("a.txt", "new\n");
    assert_eq!(session.adopt(&permit).unwrap(), "");
    assert!(!session.changed_since_read("a.txt").unwrap());
    session.edit(&Edit::replace("a.txt", "new", "newer")).unwrap();
    session.undo(&UndoOptions { all: true, ..UndoOptions::default() }).unwrap();
    assert_eq!(place.text("a.txt"), "one\ntwo\nthree\n");
}

#[test]
fn a_tool_that_wrote_something_else_is_reported() {
    let place = Place::new();
    let workspace = place.open();
    let session = session(&workspace);
    read(&session, "a.txt");
    let permit = session.judge(&Edit::write("a.txt", "new\n")).unwrap();
    place.save("a.txt", "new\n\n// formatted\n");
    let note = session.adopt(&permit).unwrap();
    assert!(note.contains("// formatted"), "{note}");
}

#[test]
fn parallel_edits_of_one_file_are_distinguished() {
    let place = Place::new();
    let workspace = place.open();
    let session = session(&workspace);
    read(&session, "a.txt");
    let first = session.judge(&Edit::replace("a.txt", "one", "1")).unwrap();
    let second = session.judge(&Edit::replace("a.txt", "three", "3")).unwrap();
    place.save("a.txt", "1\ntwo\n3\n");
    assert_eq!((session.adopt(&first).unwrap(), session.adopt(&second).unwrap()), (String::new(), String::new()));
    session.edit(&Edit::replace("a.txt", "two", "2")).unwrap();
    assert_eq!(place.text("a.txt"), "1\n2\n3\n");
}

#[test]
fn a_permit_that_is_not_used_leaves_nothing_behind() {
    let place = Place::new();
    let workspace = place.open();
    let session = session(&workspace);
    read(&session, "a.txt");
    drop(session.judge(&Edit::replace("a.txt", "one", "1")).unwrap());
    let unused = session.judge(&Edit::replace("a.txt", "two", "2")).unwrap();
    assert_eq!(session.adopt(&unused).unwrap(), "");
    place.save("a.txt", "1\ntwo\nthree\n");
    assert_eq!(refusal(session.judge(&Edit::replace("a.txt", "three", "3"))).code, "stale");
    let other = self::session(&workspace);
    assert_eq!(other.adopt(&unused).unwrap_err().code(), "bad_argument");
}

#[test]
fn what_a_tool_of_ones_own_shows_counts_as_read_until_it_is_forgotten() {
    let place = Place::new();
    let workspace = place.open();
    let session = session(&workspace);
    assert_eq!(session.shown("a.txt", "two\nnever", 2).unwrap(), 1);
    session.edit(&Edit::replace("a.txt", "two", "2")).unwrap();
    session.forget(Some(&["a.txt".to_owned()])).unwrap();
    assert_eq!(refusal(session.edit(&Edit::replace("a.txt", "2", "two"))).code, "unread");
    session.shown("a.txt", "one\n2\nthree\n", 1).unwrap();
    session.forget(None).unwrap();
    assert_eq!(refusal(session.judge(&Edit::write("a.txt", ""))).code, "unread");
}

#[test]
fn a_call_of_a_model_is_answered_and_never_an_error() {
    let place = Place::new();
    let workspace = place.open();
    let tools = Some(vec![("read_file".to_owned(), "View".to_owned()), ("edit_file".to_owned(), "Edit".to_owned())]);
    let session = workspace.session(SessionOptions { tools, ..SessionOptions::default() }).unwrap();
    let names: Vec<String> = session.tools().into_iter().map(|tool| tool.name).collect();
    assert_eq!(names, ["View", "Edit"]);

    let edit = json!({ "path": "a.txt", "old_string": "two", "new_string": "2" });
    let refused = session.call("Edit", edit.clone()).unwrap();
    assert_eq!(refused.refusal.as_ref().map(|refusal| refusal.code), Some("unread"));
    assert!(refused.text.contains("View first") && !refused.text.contains("read_file"), "{}", refused.text);
    session.call("View", json!({ "path": "a.txt" })).unwrap();
    assert_eq!(session.call("edit_file", edit).unwrap().refusal, None);
    for (tool, arguments) in [("Nothing", json!({})), ("View", json!([1])), ("Edit", Value::Null), ("Edit", json!({ "path": 1 }))]
    {
        let reply = session.call(tool, arguments).unwrap();
        assert_eq!(reply.refusal.map(|refusal| refusal.code), Some("bad_arguments"), "{tool}");
    }
}

#[test]
fn a_closed_workspace_says_so() {
    let place = Place::new();
    let workspace = place.open();
    let (closed, open) = (session(&workspace), session(&workspace));
    read(&open, "a.txt");
    let permit = open.judge(&Edit::write("a.txt", "")).unwrap();
    closed.close();
    assert_eq!(closed.edit(&Edit::write("b.txt", "")).unwrap_err().to_string(), "the session is closed");
    assert!(!workspace.is_closed() && !open.is_closed());
    workspace.close();
    workspace.close();
    assert!(workspace.is_closed() && open.is_closed());
    assert_eq!(open.adopt(&permit).unwrap_err().code(), "closed");
    assert_eq!(workspace.session(SessionOptions::default()).unwrap_err().to_string(), "the workspace is closed");
    assert_eq!(workspace.repo_state().unwrap_err().code(), "closed");
}

#[test]
fn a_session_outlives_the_handle_of_its_workspace() {
    let place = Place::new();
    let session = session(&place.open());
    session.edit(&Edit::write("b.txt", "b\n")).unwrap();
    assert_eq!(place.text("b.txt"), "b\n");
}

#[test]
fn a_session_goes_on_under_its_id() {
    let place = Place::new();
    let workspace = place.open();
    let first = named(&workspace, "story 7", false);
    read(&first, "a.txt");
    workspace.close();

    let workspace = place.open();
    let again = named(&workspace, first.id(), false);
    again.edit(&Edit::replace("a.txt", "two", "2")).unwrap();
    assert_eq!(refusal(named(&workspace, "another", false).edit(&Edit::replace("a.txt", "2", "two"))).code, "unread");
    for (id, is_shared) in [(Some(""), false), (Some("a\nb"), true), (None, true)] {
        let options = SessionOptions { id: id.map(str::to_owned), is_shared, tools: None };
        assert_eq!(workspace.session(options).unwrap_err().code(), "bad_argument");
    }
}

#[test]
fn a_shared_session_knows_what_it_was_shown_elsewhere() {
    let place = Place::new();
    let (here, there) = (place.open(), place.open());
    let (here, there) = (named(&here, "shared", true), named(&there, "shared", true));
    assert_eq!(here.shown("a.txt", "one\ntwo\nthree\n", 1).unwrap(), 3);
    let permit = there.judge(&Edit::write("a.txt", "new\n")).unwrap();
    place.save("a.txt", "new\n");
    there.adopt(&permit).unwrap();
    here.edit(&Edit::replace("a.txt", "new", "newer")).unwrap();
    assert!(!there.changed_since_read("a.txt").unwrap());
}

#[test]
fn threads_share_a_session() {
    let place = Place::new();
    let workspace = place.open();
    let session = session(&workspace);
    let edits = AtomicUsize::new(0);
    thread::scope(|scope| {
        for number in 0..8 {
            let (session, edits) = (&session, &edits);
            scope.spawn(move || {
                for round in 0..5 {
                    session.edit(&Edit::write(format!("{number}-{round}.txt"), "x\n")).unwrap();
                    edits.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
    assert_eq!(edits.into_inner(), 40);
    assert_eq!(session.repo_state().unwrap().to_json().matches("\"created\"").count(), 40);
}

#[test]
fn settings_and_stores_are_chosen_by_the_program() {
    let place = Place::new();
    let settings = BTreeMap::from([("policy.on_change".to_owned(), json!("rebase"))]);
    let options = OpenOptions { settings, store: StoreKind::InMemory, watch: true, ..place.options() };
    let workspace = Workspace::open(place.tree.path(), options).unwrap();
    let session = session(&workspace);
    read(&session, "a.txt");
    place.save("a.txt", "zero\none\ntwo\nthree\n");
    let permit = session.judge(&Edit::replace("a.txt", "two", "2")).unwrap();
    assert!(permit.note.contains("zero"), "{}", permit.note);

    let open = |settings: &[(&str, Value)]| {
        let settings = settings.iter().map(|(key, value)| (key.to_string(), value.clone())).collect();
        Workspace::open(place.tree.path(), OpenOptions { settings, ..place.options() })
    };
    assert_eq!(open(&[("policy.onchange", json!("rebase"))]).unwrap_err().code(), "bad_settings");
    assert_eq!(open(&[("policy.on_change", json!({ "a": 1 }))]).unwrap_err().code(), "bad_settings");
    assert_eq!(Workspace::open(&place.path("none"), place.options()).unwrap_err().code(), "cannot_open");
    assert_eq!(edit_of_tool("read_file", &json!({ "path": "a" })).unwrap_err().code(), "bad_argument");
    assert_eq!(edit_of_tool("edit_file", &json!({ "path": "a" })).unwrap_err().code(), "bad_arguments");
}

#[test]
fn instructions_come_once_and_the_state_fits_into_a_prompt() {
    let place = Place::new();
    fs::create_dir(place.path("sub")).unwrap();
    place.save("sub/AGENTS.md", "Use tabs.\n");
    place.save("sub/b.txt", "b\n");
    let workspace = place.open();
    let session = session(&workspace);
    assert!(session.instructions_if_new("sub/b.txt").unwrap().unwrap().contains("Use tabs."));
    assert_eq!(session.instructions_if_new("sub").unwrap(), None);
    session.call("update_tasks", json!({ "add": [{ "description": "Write it" }] })).unwrap();
    session.edit(&Edit::write("c.txt", "c\n")).unwrap();
    let state = session.repo_state().unwrap();
    assert!(state.format_for_prompt().contains("Write it"), "{}", state.format_for_prompt());
    assert_eq!(serde_json::from_str::<Value>(&state.to_json()).unwrap()["files"][0]["path"], "c.txt");
    assert!(workspace.repo_state().unwrap().format_for_prompt().contains("c.txt"));
}
