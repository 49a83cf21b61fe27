//! What every tool that changes files says afterwards.

use serde_json::{Map, Value, json};
use surehand_core::{
    Act, LineMap, LineRange, LineSet, Planned, RelPath, Text,
    plan::Rebased,
    refusal::Excerpt,
    render::{self, Numbers},
};

use crate::{
    deed::{Done, Landed},
    disk::journal::How,
    guest::Doer,
    session::{Session, Success},
};

/// The answer to a change of one file: a short diff with fresh numbers, which count as shown.
pub fn say_one(session: &mut Session, done: &Done, numbers: Numbers) -> Success {
    let (Some(planned), Some(how)) = (done.planned.first(), done.how.first()) else { return Success::default() };
    let (text, result) = say(session, done, planned, *how, numbers);
    let mut success = Success { text, result, paths: paths(planned), ..Success::default() };
    name_change(&mut success, done);
    success
}

/// The answer to a change of several files: all of them in a list. If it is one, its fields stand outside the list as well, as
/// those of every other change of one file.
pub fn say_all(session: &mut Session, done: &Done, numbers: Numbers) -> Success {
    let mut success = Success::default();
    let mut files = Vec::new();
    let goes_on = |path: &RelPath| done.planned.iter().any(|planned| planned.origin().is_some_and(|origin| origin.path == *path));
    for (planned, how) in done.planned.iter().zip(&done.how) {
        let (text, result) = say(session, done, planned, *how, numbers);
        // That the old name is gone is said with the new one.
        if !goes_on(planned.path()) {
            success.text.push_str(&text);
        }
        success.paths.extend(paths(planned));
        files.push(result);
    }
    if let [only] = &files[..] {
        success.result = only.clone();
    }
    success.result.insert("files".to_owned(), json!(files));
    name_change(&mut success, done);
    success
}

fn name_change(success: &mut Success, done: &Done) {
    if let Some(change) = &done.change {
        success.result.insert("change".to_owned(), json!(change));
    }
}

fn paths(planned: &Planned) -> Vec<RelPath> {
    let after = planned.path_after().filter(|after| *after != planned.path());
    [planned.path()].into_iter().chain(after).cloned().collect()
}

fn say(session: &mut Session, done: &Done, planned: &Planned, how: How, numbers: Numbers) -> (String, Map<String, Value>) {
    let landed = done.rewritten.iter().find(|(path, _)| path == planned.path()).map(|(_, landed)| landed);
    match (planned.act(), planned.text(), landed) {
        (Act::Write { .. }, Some(text), None) => say_written(session, planned, text, how, numbers),
        (Act::Write { .. }, Some(text), Some(landed)) => say_landed(session, planned, text, landed, numbers),
        _ => (format!("{}\n", render::change::headline(planned)), describe_whole(planned)),
    }
}

fn say_written(
    session: &mut Session,
    planned: &Planned,
    text: &Text,
    how: How,
    numbers: Numbers,
) -> (String, Map<String, Value>) {
    let diff = render::change::diff(planned, numbers);
    if let Some(view) = planned.view_after() {
        let mut view = view.clone();
        if session.doer != Doer::Guest {
            view.show_set(&diff.shown);
        }
        // A new file is not repeated to its author, who knows all of it.
        let known = if planned.is_new() { view.seen_lines() } else { diff.shown.clone() };
        session.note(planned.path(), text, &known);
        session.set_view(planned.path(), view);
    }
    let mut result = describe(planned, text, how, &diff.text);
    result.insert("shown".to_owned(), json!(diff.shown));
    let mut said = format!("{}\n{}", render::change::headline(planned), diff.text);
    if let Some(rebased) = planned.rebased() {
        said.push_str(&render::change::rebased(rebased, numbers));
        result.insert("rebased".to_owned(), json!({ "changed": rebased.affected }));
    }
    (said, result)
}

/// What landed on the disk counts, not what was sent.
fn say_landed(
    session: &mut Session,
    planned: &Planned,
    sent: &Text,
    landed: &Landed,
    numbers: Numbers,
) -> (String, Map<String, Value>) {
    let path = planned.path();
    let mut result = Map::from_iter([("path".to_owned(), json!(path)), ("rewritten".to_owned(), json!(true))]);
    let headline = render::change::headline(planned);
    let Landed::Text(text) = landed else {
        return (format!("{headline}\n{}", render::change::removed_after(path)), result);
    };
    let map = LineMap::between(sent, text);
    let said = render::change::rewritten_after(path, text, &map, numbers);
    if let Some(view) = planned.view_after() {
        let mut view = view.carried(sent, &map, text);
        view.show_set(&said.shown);
        session.note(path, text, &said.shown);
        session.set_view(path, view);
    }
    result.insert("version".to_owned(), json!(text.version()));
    result.insert("total_lines".to_owned(), json!(text.line_count()));
    result.insert("shown".to_owned(), json!(said.shown));
    let mut told = format!("{headline}\n{}", said.text);
    if let Some(rebased) = planned.rebased() {
        // It counts as seen, so it is shown, where it landed.
        let affected: LineSet = rebased.affected.iter().filter_map(|line| map.new_place(line)).map(LineRange::line).collect();
        let fresh = Excerpt::of(text, &affected);
        told.push_str(&render::change::rebased(&Rebased { affected, fresh }, numbers));
    }
    (told, result)
}

/// A file that was deleted, moved, or brought back as something that is no text.
fn describe_whole(planned: &Planned) -> Map<String, Value> {
    let path = planned.path_after().unwrap_or(planned.path());
    let mut result = Map::from_iter([("path".to_owned(), json!(path))]);
    match planned.act() {
        Act::Remove => result.insert("deleted".to_owned(), json!(true)),
        Act::Move { .. } => result.insert("from".to_owned(), json!(planned.path())),
        Act::Write { .. } => None,
    };
    if let Some(content) = planned.after() {
        result.insert("version".to_owned(), json!(content.version()));
    }
    result
}

/// More moves than this are not listed; the numbers are in the next read.
const MAX_SHIFTS: usize = 200;

fn describe(planned: &Planned, text: &Text, how: How, diff: &str) -> Map<String, Value> {
    let mut result = Map::from_iter([
        ("path".to_owned(), json!(planned.path())),
        ("version".to_owned(), json!(text.version())),
        ("total_lines".to_owned(), json!(text.line_count())),
        ("diff".to_owned(), json!(diff)),
        ("shifted".to_owned(), json!(planned.map().shifts().iter().take(MAX_SHIFTS).collect::<Vec<_>>())),
    ]);
    if let Some(line) = render::change::first_changed_line(planned) {
        result.insert("first_changed_line".to_owned(), json!(line));
    }
    if planned.is_new() {
        result.insert("created".to_owned(), json!(true));
    }
    if let Some(origin) = planned.origin() {
        result.insert("from".to_owned(), json!(origin.path));
    }
    match how {
        How::Swap | How::Create | How::Remove | How::Move => {}
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
