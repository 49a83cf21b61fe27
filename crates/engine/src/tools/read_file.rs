//! `read_file`: shows lines of a file, which then count as seen.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use surehand_core::{Cause, LineNo, LineRange, Refusal, Tool, ToolNames};

use super::{LineOffset, ToolArguments, WholeNumber};
use crate::calls::{Call, ReadCall, WantedLines};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ReadFile {
    /// Relative to the workspace root, or absolute.
    path: String,
    /// First line, from 1; from the end if negative.
    offset: Option<LineOffset>,
    /// How many lines.
    limit: Option<WholeNumber>,
    /// Several ranges, both ends included, instead of offset and limit.
    ranges: Option<Vec<RangeArguments>>,
    /// Show lines as LINE#HASH|text.
    #[serde(default)]
    anchors: bool,
}

/// A range of lines, both ends included.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RangeArguments {
    start: WholeNumber,
    end: WholeNumber,
}

impl ToolArguments for ReadFile {
    fn describe(names: &ToolNames) -> String {
        let any_part = names.all_of(&[Tool::EditFile, Tool::MultiEdit, Tool::ApplyPatch]);
        let any_part = if any_part.is_empty() { any_part } else { format!("any part for {any_part}") };
        let lines = names.get(Tool::EditLines).map(|edit| format!("the edited lines for {edit}")).unwrap_or_default();
        let whole = names.get(Tool::WriteFile).map(|write| format!("the whole file for {write}")).unwrap_or_default();
        let needs: Vec<String> = [any_part, lines, whole].into_iter().filter(|need| !need.is_empty()).collect();
        let needs = if needs.is_empty() { String::new() } else { format!(": {}", needs.join(", ")) };
        format!(
            "Read a text file, whole or in part, as `LINE|text`. Shown lines count as read{needs}. Read again after your \
             context was compacted or reset."
        )
    }

    fn into_call(self) -> Result<Call, Refusal> {
        let lines = wanted(&self)?;
        Ok(Call::Read(ReadCall { path: self.path, lines, anchors: self.anchors }))
    }
}

pub(super) fn written(read: &ReadCall) -> Value {
    let ReadCall { path, lines, anchors } = read;
    match lines {
        WantedLines::From(start) => json!({ "path": path, "offset": start, "anchors": anchors }),
        WantedLines::These(lines) => json!({ "path": path, "ranges": lines, "anchors": anchors }),
        WantedLines::Last { lines, limit: None } => json!({ "path": path, "offset": -i64::from(*lines), "anchors": anchors }),
        WantedLines::Last { lines, limit } => {
            json!({ "path": path, "offset": -i64::from(*lines), "limit": limit, "anchors": anchors })
        }
    }
}

fn wanted(call: &ReadFile) -> Result<WantedLines, Refusal> {
    let bad = |why: String| Refusal::of_spelling(&call.path, Cause::BadRange { why });
    // Some models send an empty list for "all".
    if let Some(ranges) = call.ranges.as_ref().filter(|ranges| !ranges.is_empty()) {
        let range = |range: &RangeArguments| match (LineNo::new(range.start.0), LineNo::new(range.end.0)) {
            (Some(start), Some(end)) if start <= end => Ok(LineRange { start, end }),
            (Some(start), Some(end)) => Err(bad(format!("the range {start}-{end} ends before it starts"))),
            _ => Err(bad(format!("the range {}-{}: lines are counted from 1", range.start.0, range.end.0))),
        };
        return Ok(WantedLines::These(ranges.iter().map(range).collect::<Result<_, _>>()?));
    }
    let LineOffset(offset) = call.offset.unwrap_or(LineOffset(1));
    let limit = match call.limit {
        Some(WholeNumber(0)) => return Err(bad("limit 0 shows nothing: ask for at least one line".to_owned())),
        limit => limit.map(|limit| limit.0),
    };
    let number = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
    if offset < 0 {
        return Ok(WantedLines::Last { lines: number(offset.unsigned_abs()), limit });
    }
    let start = LineNo::new(number(offset.unsigned_abs())).ok_or_else(|| bad("offset 0: lines are counted from 1".to_owned()))?;
    let Some(limit) = limit else { return Ok(WantedLines::From(start)) };
    let end = LineNo::new(start.get().saturating_add(limit - 1)).unwrap_or(start);
    Ok(WantedLines::These([LineRange { start, end }].into_iter().collect()))
}
