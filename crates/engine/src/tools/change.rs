//! What every tool that changes files says afterwards.

use serde_json::{Map, Value, json};
use surehand_core::{
    Planned,
    render::{self, Numbers},
};

use crate::{
    disk::journal::How,
    session::{Done, Session, Success},
};

/// The answer to a change: a short diff of each file with fresh numbers, which count as shown.
pub fn say(session: &mut Session, done: &Done, numbers: Numbers) -> Success {
    let mut text = String::new();
    let mut files = Vec::new();
    for (planned, how) in done.planned.iter().zip(&done.how) {
        let diff = render::change::diff(planned, numbers);
        text.push_str(&render::change::headline(planned));
        text.push('\n');
        text.push_str(&diff.text);
        let landed = done.rewritten.iter().find(|(path, ..)| path == planned.path());
        let mut result = describe(planned, *how, &diff.text);
        match landed {
            None => {
                if let Some(view) = planned.view_after() {
                    let mut view = view.clone();
                    view.show_set(&diff.shown);
                    session.set_view(planned.path(), view);
                }
            }
            Some((path, landed, _)) => {
                let version = landed.version();
                text.push_str(&format!(
                    "note: another program (a formatter?) rewrote {path} right after; it is version {} now, which is not what you sent — read_file before the next edit of those lines\n",
                    version.short()
                ));
                result.insert("version".to_owned(), json!(version));
                result.insert("rewritten".to_owned(), json!(true));
            }
        }
        files.push(result);
    }
    let paths = done.planned.iter().map(|planned| planned.path().clone()).collect();
    let result = match files.len() {
        1 => files.remove(0),
        _ => Map::from_iter([("files".to_owned(), json!(files))]),
    };
    Success { text, result, paths }
}

fn describe(planned: &Planned, how: How, diff: &str) -> Map<String, Value> {
    let mut result = Map::from_iter([
        ("path".to_owned(), json!(planned.path())),
        ("version".to_owned(), json!(planned.text().version())),
        ("total_lines".to_owned(), json!(planned.text().line_count())),
        ("diff".to_owned(), json!(diff)),
        ("shifted".to_owned(), json!(planned.map().shifts())),
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
