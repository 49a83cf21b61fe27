//! What every tool that changes files says afterwards.

use serde_json::{Map, Value, json};
use surehand_core::{
    LineMap, Planned,
    render::{self, Numbers},
};

use crate::{
    disk::journal::How,
    session::{Done, Landed, Session, Success},
};

/// The answer to a change of one file: a short diff with fresh numbers, which count as shown.
pub fn say_one(session: &mut Session, done: &Done, numbers: Numbers) -> Success {
    let mut success = Success::default();
    for (planned, how) in done.planned.iter().zip(&done.how) {
        let (text, result) = say(session, done, planned, *how, numbers);
        success = Success { text, result, paths: vec![planned.path().clone()] };
    }
    success
}

/// The answer to a change of several files: all of them in a list. If it is one, its fields stand outside the list as well, as
/// those of every other change of one file.
pub fn say_all(session: &mut Session, done: &Done, numbers: Numbers) -> Success {
    let mut success = Success::default();
    let mut files = Vec::new();
    for (planned, how) in done.planned.iter().zip(&done.how) {
        let (text, result) = say(session, done, planned, *how, numbers);
        success.text.push_str(&text);
        success.paths.push(planned.path().clone());
        files.push(result);
    }
    if let [only] = &files[..] {
        success.result = only.clone();
    }
    success.result.insert("files".to_owned(), json!(files));
    success
}

fn say(session: &mut Session, done: &Done, planned: &Planned, how: How, numbers: Numbers) -> (String, Map<String, Value>) {
    match done.rewritten.iter().find(|(path, _)| path == planned.path()) {
        None => say_written(session, planned, how, numbers),
        Some((_, landed)) => say_landed(session, planned, landed, numbers),
    }
}

fn say_written(session: &mut Session, planned: &Planned, how: How, numbers: Numbers) -> (String, Map<String, Value>) {
    let diff = render::change::diff(planned, numbers);
    if let Some(view) = planned.view_after() {
        let mut view = view.clone();
        view.show_set(&diff.shown);
        session.set_view(planned.path(), view);
    }
    let mut result = describe(planned, how, &diff.text);
    result.insert("shown".to_owned(), json!(diff.shown));
    (format!("{}\n{}", render::change::headline(planned), diff.text), result)
}

/// What landed on the disk counts, not what was sent.
fn say_landed(session: &mut Session, planned: &Planned, landed: &Landed, numbers: Numbers) -> (String, Map<String, Value>) {
    let path = planned.path();
    let mut result = Map::from_iter([("path".to_owned(), json!(path)), ("rewritten".to_owned(), json!(true))]);
    let headline = render::change::headline(planned);
    let Landed::Text(text) = landed else {
        return (format!("{headline}\n{}", render::change::removed_after(path)), result);
    };
    let map = LineMap::between(planned.text(), text);
    let said = render::change::rewritten_after(path, text, &map, numbers);
    if let Some(view) = planned.view_after() {
        let mut view = view.carried(planned.text(), &map, text);
        view.show_set(&said.shown);
        session.set_view(path, view);
    }
    result.insert("version".to_owned(), json!(text.version()));
    result.insert("total_lines".to_owned(), json!(text.line_count()));
    result.insert("shown".to_owned(), json!(said.shown));
    (format!("{headline}\n{}", said.text), result)
}

/// More moves than this are not listed; the numbers are in the next read.
const MAX_SHIFTS: usize = 200;

fn describe(planned: &Planned, how: How, diff: &str) -> Map<String, Value> {
    let mut result = Map::from_iter([
        ("path".to_owned(), json!(planned.path())),
        ("version".to_owned(), json!(planned.text().version())),
        ("total_lines".to_owned(), json!(planned.text().line_count())),
        ("diff".to_owned(), json!(diff)),
        ("shifted".to_owned(), json!(planned.map().shifts().iter().take(MAX_SHIFTS).collect::<Vec<_>>())),
    ]);
    if let Some(line) = render::change::first_changed_line(planned) {
        result.insert("first_changed_line".to_owned(), json!(line));
    }
    if planned.is_new() {
        result.insert("created".to_owned(), json!(true));
    }
    match how {
        How::Swap | How::Create => {}
        How::Rename => {
            result.insert(
                "written".to_owned(),
                json!("renamed: this file system cannot exchange files, so a change at the same instant may go unseen"),
            );
        }
        How::InPlace => {
            result.insert(
                "written".to_owned(),
                json!("in place: the file has several names or marks that a new file could not have"),
            );
        }
    }
    result
}
