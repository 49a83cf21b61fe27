//! `read_file`: shows lines of a file, and marks exactly those as seen.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use surehand_core::{
    Cause, LineNo, LineRange, LineSet, Present, Refusal,
    render::{self, Numbers},
};

use super::{Number, arguments};
use crate::session::{Session, Success};

/// Read a text file of the workspace, whole or in part. Lines come as `LINE|text`, with anchors as `LINE#HASH|text` for edit_lines.
/// What is shown counts as read: any part of a file allows edit_file and multi_edit in it, edit_lines needs the lines it names, write_file needs the whole file.
/// After your context was compacted or reset, read again what you want to edit.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReadFile {
    /// Path of the file, relative to the workspace root or absolute.
    path: String,
    /// First line to show, from 1.
    offset: Option<Number>,
    /// How many lines to show.
    limit: Option<Number>,
    /// Several ranges at once, 1-based and inclusive; overrides offset and limit.
    ranges: Option<Vec<Range>>,
    /// Show each line with its anchor, for edit_lines.
    #[serde(default)]
    anchors: bool,
}

/// A range of lines, both ends included.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Range {
    /// First line, from 1.
    start: Number,
    /// Last line, included.
    end: Number,
}

pub fn run(session: &mut Session, call: &Value) -> Result<Success, Refusal> {
    let call: ReadFile = arguments("read_file", call)?;
    let wanted = wanted(&call)?;
    let gathered = session.gather(&call.path)?;
    let path = &gathered.path;
    let text = match &gathered.present {
        Present::Text(text) => text,
        Present::Absent if gathered.view.is_some() => return Err(Refusal::of(path, Cause::Deleted)),
        Present::Absent => return Err(Refusal::of(path, Cause::NoSuchFile)),
        Present::Blob(_, cause) | Present::Unreadable(cause) => return Err(Refusal::of(path, cause.clone())),
    };
    let wanted = wanted.lines(text.line_count());
    let mut result = Map::from_iter([
        ("path".to_owned(), json!(path)),
        ("version".to_owned(), json!(text.version())),
        ("total_lines".to_owned(), json!(text.line_count())),
    ]);
    if let Some(view) = gathered.view.as_ref().filter(|_| session.policy().short_rereads && !call.anchors) {
        let inside = wanted.clipped(text.line_count());
        if !inside.is_empty() && view.version() == text.version() && !view.is_unknown() && view.are_fresh(&inside) {
            result.insert("unchanged".to_owned(), json!(true));
            let text = render::read::unchanged(path, text, &inside, view);
            return Ok(Success { text, result, paths: vec![path.clone()], ..Success::default() });
        }
    }
    let shown = render::read::read(path, text, &wanted, Numbers::with_anchors(call.anchors), session.limits());
    if !shown.lines.is_empty() || text.line_count() == 0 {
        session.show(path, text, &shown.full);
        // A line that is cut is not known, but it is among those that the model wants to see.
        session.note(path, text, &shown.lines);
    }
    result.insert("shown".to_owned(), json!(shown.lines));
    Ok(Success { text: shown.text, result, paths: vec![path.clone()], ..Success::default() })
}

/// The lines that were asked for.
enum Wanted {
    /// From this line to the end.
    From(LineNo),
    /// These.
    Lines(LineSet),
}

impl Wanted {
    fn lines(self, total: usize) -> LineSet {
        match self {
            Wanted::Lines(lines) => lines,
            Wanted::From(start) => {
                let end = LineNo::at_index(total.saturating_sub(1)).max(start);
                [LineRange { start, end }].into_iter().collect()
            }
        }
    }
}

fn wanted(call: &ReadFile) -> Result<Wanted, Refusal> {
    let bad = |why: String| Refusal::of_spelling(&call.path, Cause::BadRange { why });
    if let Some(ranges) = &call.ranges {
        let range = |range: &Range| match (LineNo::new(range.start.0), LineNo::new(range.end.0)) {
            (Some(start), Some(end)) if start <= end => Ok(LineRange { start, end }),
            (Some(start), Some(end)) => Err(bad(format!("the range {start}-{end} ends before it starts"))),
            _ => Err(bad(format!("the range {}-{}: lines are counted from 1", range.start.0, range.end.0))),
        };
        if ranges.is_empty() {
            return Err(bad("ranges is empty: leave it out to read the whole file".to_owned()));
        }
        return Ok(Wanted::Lines(ranges.iter().map(range).collect::<Result<_, _>>()?));
    }
    let start = LineNo::new(call.offset.map_or(1, |offset| offset.0))
        .ok_or_else(|| bad("offset 0: lines are counted from 1".to_owned()))?;
    let end = match call.limit {
        Some(Number(0)) => return Err(bad("limit 0 shows nothing: ask for at least one line".to_owned())),
        Some(Number(limit)) => LineNo::new(start.get().saturating_add(limit - 1)).unwrap_or(start),
        None => return Ok(Wanted::From(start)),
    };
    Ok(Wanted::Lines([LineRange { start, end }].into_iter().collect()))
}
