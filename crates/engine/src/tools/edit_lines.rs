//! `edit_lines`: edits lines by their anchors.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use surehand_core::{Anchor, Cause, Edit, Refusal, Tool, ToolNames, edit::lines::LineEdit};

use super::ToolArguments;
use crate::calls::Call;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct EditLines {
    path: String,
    edits: Vec<LineEditArguments>,
}

/// One edit of lines.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct LineEditArguments {
    op: LineOperation,
    /// First line, LINE#HASH; not for append and prepend.
    at: Option<String>,
    /// Last line, for replace and delete of several.
    to: Option<String>,
    /// New lines without anchors; not for delete.
    text: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum LineOperation {
    Replace,
    Delete,
    InsertBefore,
    InsertAfter,
    Append,
    Prepend,
}

impl ToolArguments for EditLines {
    fn describe(names: &ToolNames) -> String {
        let shown_by = names.all_of(&[Tool::ReadFile, Tool::SearchFiles]);
        format!(
            "Edit lines by the anchors (`LINE#HASH`) that {shown_by} show with `anchors: true`. All edits of a call refer to the numbers of the last \
             read and must not overlap. The lines must have been read in this session and be unchanged since; a refusal shows the anchors to use."
        )
    }

    fn into_call(self) -> Result<Call, Refusal> {
        let EditLines { path, edits } = self;
        let numbered = edits.into_iter().enumerate();
        let edits = numbered.map(|(index, edit)| line_edit(&path, index + 1, edit)).collect::<Result<_, _>>()?;
        Ok(Call::Edit(Edit::Lines { path, edits }))
    }
}

pub(super) fn written(path: &str, edits: &[LineEdit]) -> Value {
    let one = |edit: &LineEdit| match edit {
        LineEdit::Replace { at, to, text } => json!({ "op": LineOperation::Replace.name(), "at": at, "to": to, "text": text }),
        LineEdit::Delete { at, to } => json!({ "op": LineOperation::Delete.name(), "at": at, "to": to }),
        LineEdit::InsertBefore { at, text } => json!({ "op": LineOperation::InsertBefore.name(), "at": at, "text": text }),
        LineEdit::InsertAfter { at, text } => json!({ "op": LineOperation::InsertAfter.name(), "at": at, "text": text }),
        LineEdit::Append { text } => json!({ "op": LineOperation::Append.name(), "text": text }),
        LineEdit::Prepend { text } => json!({ "op": LineOperation::Prepend.name(), "text": text }),
    };
    json!({ "path": path, "edits": edits.iter().map(one).collect::<Vec<_>>() })
}

/// Converts one edit; refused if a field is missing or superfluous.
fn line_edit(path: &str, number: usize, edit: LineEditArguments) -> Result<LineEdit, Refusal> {
    let bad = |why: String| Refusal::of_spelling(path, Cause::BadArguments { why: format!("edit {number}: {why}") });
    let op = edit.op.name();
    let no_anchor = |given: &str| {
        let given = given.chars().take(40).collect();
        Refusal::of_spelling(path, Cause::BadAnchor { edit: number, given })
    };
    let anchor = |text: &String| text.parse::<Anchor>().map_err(|_| no_anchor(text));
    let at = || edit.at.as_ref().ok_or_else(|| bad(format!("{op} needs at"))).and_then(anchor);
    let to = |at: Anchor| edit.to.as_ref().map_or(Ok(at), anchor);
    let text = || edit.text.clone().ok_or_else(|| bad(format!("{op} needs text")));
    let unused = |field: &str, given: bool| if given { Err(bad(format!("{op} takes no {field}"))) } else { Ok(()) };
    match edit.op {
        LineOperation::Replace => {
            let at = at()?;
            Ok(LineEdit::Replace { at, to: to(at)?, text: text()? })
        }
        LineOperation::Delete => {
            unused("text", edit.text.as_ref().is_some_and(|text| !text.is_empty()))?;
            let at = at()?;
            Ok(LineEdit::Delete { at, to: to(at)? })
        }
        LineOperation::InsertBefore | LineOperation::InsertAfter => {
            unused("to", edit.to.is_some())?;
            let (at, text) = (at()?, text()?);
            Ok(if edit.op == LineOperation::InsertBefore {
                LineEdit::InsertBefore { at, text }
            } else {
                LineEdit::InsertAfter { at, text }
            })
        }
        LineOperation::Append | LineOperation::Prepend => {
            unused("at", edit.at.is_some())?;
            unused("to", edit.to.is_some())?;
            let text = text()?;
            Ok(if edit.op == LineOperation::Append { LineEdit::Append { text } } else { LineEdit::Prepend { text } })
        }
    }
}

impl LineOperation {
    fn name(self) -> &'static str {
        match self {
            LineOperation::Replace => "replace",
            LineOperation::Delete => "delete",
            LineOperation::InsertBefore => "insert_before",
            LineOperation::InsertAfter => "insert_after",
            LineOperation::Append => "append",
            LineOperation::Prepend => "prepend",
        }
    }
}
