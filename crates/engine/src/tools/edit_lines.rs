//! `edit_lines`: lines named by their anchors.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use surehand_core::{Anchor, Cause, Refusal, edit::lines::LineEdit, plan, render::Numbers};

use super::{arguments, change, check_count};
use crate::session::{Session, Success};

/// Edit lines of a file by the anchors (`LINE#HASH`) that read_file and search_files with `anchors: true` show. All edits of a call refer to the numbering of the last
/// read and must not overlap. The lines must have been read in this session and be unchanged since; a refusal shows the anchors to use instead.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EditLines {
    /// Path of the file, relative to the workspace root or absolute.
    path: String,
    /// The edits.
    edits: Vec<OneEdit>,
}

/// One edit of lines.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct OneEdit {
    /// What to do.
    op: Op,
    /// The first line, as LINE#HASH. Not for append and prepend.
    at: Option<String>,
    /// The last line, as LINE#HASH, for replace and delete of several lines.
    to: Option<String>,
    /// The new lines, without anchors. Not for delete.
    text: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Op {
    Replace,
    Delete,
    InsertBefore,
    InsertAfter,
    Append,
    Prepend,
}

pub fn run(session: &mut Session, call: &Value) -> Result<Success, Refusal> {
    let call: EditLines = arguments("edit_lines", call)?;
    let edits: Vec<LineEdit<'_>> =
        call.edits.iter().enumerate().map(|(index, edit)| line_edit(&call.path, index + 1, edit)).collect::<Result<_, _>>()?;
    check_count(session, "edit_lines", edits.len())?;
    let done = session.change("edit_lines", |session| {
        let gathered = session.gather_for_writing(&call.path)?;
        let planned = plan::edit_lines(&session.target(&gathered), &edits)?;
        Ok(vec![(planned, gathered.facts())])
    })?;
    Ok(change::say_one(session, &done, Numbers::Anchors))
}

/// What was meant by one edit, or which of its fields is missing or too much.
fn line_edit<'a>(path: &str, number: usize, edit: &'a OneEdit) -> Result<LineEdit<'a>, Refusal> {
    let bad = |why: String| Refusal::of_spelling(path, Cause::BadArguments { why: format!("edit {number}: {why}") });
    let op = serde_name(edit.op);
    let anchor = |text: &String| text.parse::<Anchor>().map_err(|error| bad(error.to_string()));
    let at = || edit.at.as_ref().ok_or_else(|| bad(format!("{op} needs at"))).and_then(anchor);
    let to = |at: Anchor| edit.to.as_ref().map_or(Ok(at), anchor);
    let text = || edit.text.as_deref().ok_or_else(|| bad(format!("{op} needs text")));
    let unused = |field: &str, given: bool| if given { Err(bad(format!("{op} takes no {field}"))) } else { Ok(()) };
    match edit.op {
        Op::Replace => {
            let at = at()?;
            Ok(LineEdit::Replace { at, to: to(at)?, text: text()? })
        }
        Op::Delete => {
            unused("text", edit.text.as_ref().is_some_and(|text| !text.is_empty()))?;
            let at = at()?;
            Ok(LineEdit::Delete { at, to: to(at)? })
        }
        Op::InsertBefore | Op::InsertAfter => {
            unused("to", edit.to.is_some())?;
            let (at, text) = (at()?, text()?);
            Ok(if edit.op == Op::InsertBefore { LineEdit::InsertBefore { at, text } } else { LineEdit::InsertAfter { at, text } })
        }
        Op::Append | Op::Prepend => {
            unused("at", edit.at.is_some())?;
            unused("to", edit.to.is_some())?;
            let text = text()?;
            Ok(if edit.op == Op::Append { LineEdit::Append { text } } else { LineEdit::Prepend { text } })
        }
    }
}

fn serde_name(op: Op) -> &'static str {
    match op {
        Op::Replace => "replace",
        Op::Delete => "delete",
        Op::InsertBefore => "insert_before",
        Op::InsertAfter => "insert_after",
        Op::Append => "append",
        Op::Prepend => "prepend",
    }
}
