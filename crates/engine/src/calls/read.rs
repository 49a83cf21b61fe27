//! The `read` call: shows lines of a file.

use serde::Serialize;
use surehand_core::{
    Cause, Done, LineNo, LineRange, LineSet, Present, Refusal,
    outcome::{ReadResult, UnchangedRead},
    render::LineNumbers,
};

use crate::session::Session;

/// Shows lines of a file. Lines that are shown in full count as read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ReadCall {
    /// The file, in any spelling.
    pub path: String,
    /// The lines to show.
    pub lines: WantedLines,
    /// Whether each line comes with its anchor.
    pub anchors: bool,
}

/// The requested lines.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum WantedLines {
    /// From this line to the end of the file.
    From(LineNo),
    /// The lines with these numbers.
    These(LineSet),
    /// The last lines of the file.
    Last {
        /// The number of lines, counted from the end.
        lines: u32,
        /// Shows only the first lines of these, up to this number.
        limit: Option<u32>,
    },
}

impl ReadCall {
    /// All lines of a file, without anchors.
    pub fn whole(path: impl Into<String>) -> Self {
        Self { path: path.into(), lines: WantedLines::From(LineNo::FIRST), anchors: false }
    }

    /// This call, with an anchor for each line.
    #[must_use]
    pub fn with_anchors(self) -> Self {
        Self { anchors: true, ..self }
    }
}

impl WantedLines {
    fn of(&self, total: usize) -> LineSet {
        match self {
            WantedLines::These(lines) => lines.clone(),
            WantedLines::From(start) => {
                let end = LineNo::at_index(total.saturating_sub(1)).max(*start);
                [LineRange { start: *start, end }].into_iter().collect()
            }
            WantedLines::Last { lines, limit } => {
                let start = total.saturating_sub(*lines as usize);
                let end = limit.map_or(total, |limit| total.min(start + limit as usize));
                let (start, end) = (LineNo::at_index(start), LineNo::at_index(end.saturating_sub(1)));
                [LineRange { start, end: end.max(start) }].into_iter().collect()
            }
        }
    }
}

pub(super) fn read(session: &mut Session, call: &ReadCall) -> Result<Done, Refusal> {
    let gathered = session.gather(&call.path)?;
    let path = gathered.path;
    let text = match gathered.present {
        Present::Text(text) => text,
        Present::Absent if gathered.view.is_some() => return Err(Refusal::of(&path, Cause::Deleted)),
        Present::Absent => return Err(Refusal::of(&path, Cause::NoSuchFile)),
        Present::Blob(_, cause) | Present::Unreadable(cause) => return Err(Refusal::of(&path, cause)),
    };
    let wanted = call.lines.of(text.line_count());
    if let Some(view) = gathered.view.as_ref().filter(|_| session.policy().short_rereads && !call.anchors) {
        let lines = wanted.clipped(text.line_count());
        if !lines.is_empty() && view.version() == text.version() && !view.is_unknown() && view.are_fresh(&lines) {
            let is_whole = view.is_whole();
            return Ok(Done::Unchanged(UnchangedRead { path, text, lines, is_whole }));
        }
    }
    let numbers = LineNumbers::with_anchors(call.anchors);
    Ok(Done::Read(ReadResult::of(path, text, wanted, numbers, session.limits())))
}
