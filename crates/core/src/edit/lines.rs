//! `edit_lines`: edits of lines that are named by `LINE#HASH`. All edits of a call refer to one numbering, that of the
//! last read.
//!
//! The short hash only catches slips. An edit passes only if its number was last shown for that very line: a number
//! that now belongs to another line is refused, even if both lines are equal.

use serde::{Deserialize, Serialize};

use crate::{
    excerpt::Excerpt,
    gate::Target,
    hash::{Anchor, LineHash},
    line_map::Splice,
    lines::{LineNo, LineRange, LineSet},
    refusal::{Cause, Mismatch, MismatchKind, PartialUse, Refusal, Remap},
    text::{LineEnding, Text},
    view::View,
};

/// One edit of lines.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LineEdit {
    /// Replace the lines from `at` to `to`.
    Replace {
        /// The first line to replace.
        at: Anchor,
        /// The last line to replace; may equal `at`.
        to: Anchor,
        /// The new lines, joined by `\n`; a final newline is optional.
        text: String,
    },
    /// Remove the lines from `at` to `to`.
    Delete {
        /// The first line to remove.
        at: Anchor,
        /// The last line to remove; may equal `at`.
        to: Anchor,
    },
    /// Insert lines above `at`.
    InsertBefore {
        /// The line below the new ones.
        at: Anchor,
        /// The new lines, joined by `\n`; a final newline is optional.
        text: String,
    },
    /// Insert lines below `at`.
    InsertAfter {
        /// The line above the new ones.
        at: Anchor,
        /// The new lines, joined by `\n`; a final newline is optional.
        text: String,
    },
    /// Append lines to the file.
    Append {
        /// The new lines, joined by `\n`; a final newline is optional.
        text: String,
    },
    /// Prepend lines to the file.
    Prepend {
        /// The new lines, joined by `\n`; a final newline is optional.
        text: String,
    },
}

impl LineEdit {
    /// The anchors in the edit.
    pub fn anchors(&self) -> impl Iterator<Item = Anchor> + use<> {
        let (first, second) = match *self {
            LineEdit::Replace { at, to, .. } | LineEdit::Delete { at, to } => (Some(at), (at != to).then_some(to)),
            LineEdit::InsertBefore { at, .. } | LineEdit::InsertAfter { at, .. } => (Some(at), None),
            LineEdit::Append { .. } | LineEdit::Prepend { .. } => (None, None),
        };
        first.into_iter().chain(second)
    }

    pub(super) fn text(&self) -> Option<&str> {
        match self {
            LineEdit::Delete { .. } => None,
            LineEdit::Replace { text, .. }
            | LineEdit::InsertBefore { text, .. }
            | LineEdit::InsertAfter { text, .. }
            | LineEdit::Append { text }
            | LineEdit::Prepend { text } => Some(text),
        }
    }
}

/// The lines to remove (0-based, half-open; empty for an insertion), and the lines to insert, without endings.
pub(super) struct LineReplacement<'a> {
    pub(super) number: usize,
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) lines: Vec<&'a str>,
}

/// The splices for these edits, if every anchor names the line that the session was shown under it.
pub(crate) fn line_splices<'a>(target: &Target<'_>, text: &Text, edits: &'a [LineEdit]) -> Result<Vec<Splice<'a>>, Refusal> {
    check_pasted(target, edits)?;
    check_anchors(target, text, edits)?;
    let mut placed = place(target, text, edits)?;
    check_seen(target, text, &placed)?;
    placed.sort_by_key(|edit| (edit.start, edit.end, edit.number));
    for pair in placed.windows(2) {
        let [first, second] = pair else { unreachable!("windows of two") };
        if second.start < first.end {
            let (first, second) = (first.number.min(second.number), first.number.max(second.number));
            return Err(target.refuse(Cause::Overlap { first, second }));
        }
    }
    Ok(splices_of(text, &placed))
}

/// The splices for edits that are in order and do not overlap. A last line without a newline stays without one.
pub(super) fn splices_of<'a>(text: &Text, placed: &[LineReplacement<'a>]) -> Vec<Splice<'a>> {
    let tail = open_tail(text, placed);
    let mut splices: Vec<Splice<'a>> = placed[..tail].iter().map(|edit| to_splice(text, edit)).collect();
    splices.extend(tail_splice(text, &placed[tail..]));
    splices
}

/// Refuses new text that has the prefixes of a read, because it was copied from our output.
fn check_pasted(target: &Target<'_>, edits: &[LineEdit]) -> Result<(), Refusal> {
    let pasted = |line: &str| line.split_once('|').is_some_and(|(prefix, _)| prefix.parse::<Anchor>().is_ok());
    for (index, edit) in edits.iter().enumerate() {
        if let Some(line) = edit.text().unwrap_or_default().lines().find(|line| pasted(line)) {
            let line: String = line.chars().take(60).collect();
            let number = index + 1;
            let why = format!("edit {number} has a LINE#HASH| prefix in its text ({line:?}): send only what follows the |");
            return Err(target.refuse(Cause::BadArguments { why }));
        }
    }
    Ok(())
}

/// Checks that every anchor names the line that the session was last shown under that number.
fn check_anchors(target: &Target<'_>, text: &Text, edits: &[LineEdit]) -> Result<(), Refusal> {
    let mut mismatches = Vec::new();
    let mut remaps: Vec<Remap> = Vec::new();
    let mut around = LineSet::new();
    for anchor in edits.iter().flat_map(LineEdit::anchors) {
        let Err((why, meant)) = judge(anchor, target.view(), text) else { continue };
        let line = |line: LineNo| text.has_line(line).then(|| text.line(line).to_owned());
        let shown = meant.or_else(|| target.view().and_then(|view| view.line_shown_as(anchor.line)));
        mismatches.push(Mismatch { anchor, expected: shown.and_then(line), found: line(anchor.line), why });
        around.insert(beside(anchor.line));
        if let Some(meant) = meant {
            around.insert(beside(meant));
            let remap = Remap { from: anchor, to: Anchor::of(meant, text.line(meant)) };
            if why == MismatchKind::Moved && !remaps.contains(&remap) {
                remaps.push(remap);
            }
        }
    }
    if mismatches.is_empty() {
        return Ok(());
    }
    let fresh = Excerpt::of(text, &around);
    let view_after = target.view().map(|view| {
        let mut view = view.clone().showing(&fresh.shown);
        remaps.iter().for_each(|remap| view.show(LineRange::line(remap.to.line)));
        view
    });
    Err(Refusal { view_after, ..target.refuse(Cause::AnchorMismatch { mismatches, fresh, remaps }) })
}

/// The two lines above and below, and the line itself.
fn beside(line: LineNo) -> LineRange {
    let by = |by: i64| line.moved(by).unwrap_or(LineNo::FIRST);
    LineRange { start: by(-2), end: by(2) }
}

/// Checks an anchor. An error says why it is wrong, and which line was meant.
fn judge(anchor: Anchor, view: Option<&View>, text: &Text) -> Result<(), (MismatchKind, Option<LineNo>)> {
    let reads_so = |line: LineNo| text.has_line(line) && LineHash::of(text.line(line)) == anchor.hash;
    let fits_here = reads_so(anchor.line);
    let other = match (text.has_line(anchor.line), fits_here) {
        (false, _) => MismatchKind::PastEnd,
        (true, false) => MismatchKind::OtherText,
        (true, true) => MismatchKind::Unseen,
    };
    let Some(view) = view else { return if fits_here { Ok(()) } else { Err((other, None)) } };
    let shown = view.line_shown_as(anchor.line);
    let moved = shown.filter(|line| *line != anchor.line && reads_so(*line));
    let once = || view.line_once_shown_as(anchor.line).filter(|line| reads_so(*line));
    match (fits_here && view.has_seen(anchor.line), moved) {
        // The line that was shown under this number is gone; an equal one has the number now.
        (true, None) if view.is_gone(anchor.line) => Err((MismatchKind::Gone, None)),
        (true, None) => Ok(()),
        (true, Some(meant)) => Err((MismatchKind::TwoFit, Some(meant))),
        (false, Some(meant)) => Err((MismatchKind::Moved, Some(meant))),
        (false, None) => Err(once().map_or((other, None), |meant| (MismatchKind::Moved, Some(meant)))),
    }
}

fn place<'a>(target: &Target<'_>, text: &Text, edits: &'a [LineEdit]) -> Result<Vec<LineReplacement<'a>>, Refusal> {
    let place = |(index, edit): (usize, &'a LineEdit)| {
        let number = index + 1;
        let (start, end) = match edit {
            LineEdit::Replace { at, to, .. } | LineEdit::Delete { at, to } => {
                if to.line < at.line {
                    let why = format!("edit {number}: to ({to}) is before at ({at})");
                    return Err(target.refuse(Cause::BadRange { why }));
                }
                (at.line.index(), to.line.index() + 1)
            }
            LineEdit::InsertBefore { at, .. } => (at.line.index(), at.line.index()),
            LineEdit::InsertAfter { at, .. } => (at.line.index() + 1, at.line.index() + 1),
            LineEdit::Append { .. } => (text.line_count(), text.line_count()),
            LineEdit::Prepend { .. } => (0, 0),
        };
        let without_return = |line: &'a str| line.strip_suffix('\r').unwrap_or(line);
        let lines = edit.text().map(|new| new.strip_suffix('\n').unwrap_or(new).split('\n').map(without_return));
        Ok(LineReplacement { number, start, end, lines: lines.into_iter().flatten().collect() })
    };
    edits.iter().enumerate().map(place).collect()
}

/// Lines between two anchors are replaced, too, so they must have been seen.
fn check_seen(target: &Target<'_>, text: &Text, placed: &[LineReplacement<'_>]) -> Result<(), Refusal> {
    let Some(view) = target.view() else { return Ok(()) };
    let touched: LineSet = placed.iter().filter_map(|edit| LineRange::from_indexes(edit.start..edit.end)).collect();
    let unseen = touched.minus(&view.seen_lines());
    if unseen.is_empty() || !target.policy.require_read {
        return Ok(());
    }
    let fresh = Excerpt::of(text, &unseen);
    let view_after = view.clone().showing(&fresh.shown);
    Err(target.refuse(Cause::Partial { unseen, fresh, by: PartialUse::Lines }).teaching(view_after))
}

/// The splice for an edit; every new line gets an ending.
pub(super) fn to_splice<'a>(text: &Text, edit: &LineReplacement<'a>) -> Splice<'a> {
    let with: String = new_lines(text, edit).flat_map(|(line, ending)| [line, ending.as_str()]).collect();
    Splice { range: text.start_of(edit.start)..text.start_of(edit.end), with: with.into() }
}

/// The new lines of an edit with their endings: that of the line they replace, else that of the neighbours.
fn new_lines<'a>(text: &Text, edit: &LineReplacement<'a>) -> impl Iterator<Item = (&'a str, LineEnding)> {
    let ending_at = |index: usize| Some(text.ending(LineNo::at_index(index))).filter(|ending| *ending != LineEnding::None);
    let beside = edit.end.checked_sub(1).and_then(ending_at).or_else(|| edit.end.checked_sub(2).and_then(ending_at));
    let local = beside.or_else(|| ending_at(edit.end)).unwrap_or_else(|| text.usual_ending());
    let (start, end) = (edit.start, edit.end);
    edit.lines.iter().enumerate().map(move |(index, line)| {
        let replaced = (start + index < end).then(|| ending_at(start + index)).flatten();
        (*line, replaced.unwrap_or(local))
    })
}

/// For a text without a final newline: where the edits begin that reach its end, one adjacent to the next.
fn open_tail(text: &Text, placed: &[LineReplacement<'_>]) -> usize {
    let is_open = text.last_line().is_some_and(|last| text.ending(last) == LineEnding::None);
    if !is_open {
        return placed.len();
    }
    let mut start = text.line_count();
    let mut tail = placed.len();
    while let Some(edit) = tail.checked_sub(1).map(|index| &placed[index]).filter(|edit| edit.end == start) {
        start = edit.start;
        tail -= 1;
    }
    // Lines inserted above other new lines are not at the end, so they stay a separate edit.
    let is_above = |edit: &LineReplacement<'_>| edit.start == edit.end && edit.end < text.line_count();
    while placed.get(tail).is_some_and(is_above) && placed[tail + 1..].iter().any(|edit| !edit.lines.is_empty()) {
        tail += 1;
    }
    tail
}

/// Joins the edits at the end of such a text. The new last line has no newline either, unless it is empty: an empty
/// line without a newline would not be a line.
fn tail_splice<'a>(text: &Text, edits: &[LineReplacement<'a>]) -> Option<Splice<'a>> {
    let first = edits.first()?;
    let above = first.start.checked_sub(1).map(LineNo::at_index);
    let from = text.start_of(first.start);
    let new: Vec<(&str, LineEnding)> = edits.iter().flat_map(|edit| new_lines(text, edit)).collect();
    let Some(((last, last_ending), others)) = new.split_last() else {
        // The line above is now the last one.
        let ending = above.filter(|above| !text.line(*above).is_empty()).map_or(LineEnding::None, |above| text.ending(above));
        return Some(Splice { range: from - ending.as_str().len()..text.as_str().len(), with: "".into() });
    };
    let mut with = String::new();
    if above.is_some_and(|above| text.ending(above) == LineEnding::None) {
        with.push_str(text.usual_ending().as_str());
    }
    others.iter().for_each(|(line, ending)| with.extend([*line, ending.as_str()]));
    with.push_str(last);
    if last.is_empty() {
        with.push_str(last_ending.as_str());
    }
    Some(Splice { range: from..text.as_str().len(), with: with.into() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        gate::{Present, Tracking},
        path::RelPath,
        plan,
        policy::{Limits, Policy},
    };

    fn text(content: &str) -> Text {
        Text::new(content.as_bytes().to_vec()).unwrap()
    }

    fn anchor(text: &Text, line: u32) -> Anchor {
        let line = LineNo::new(line).unwrap();
        Anchor::of(line, text.line(line))
    }

    fn edit(content: &Text, view: Option<&View>, edits: &[LineEdit]) -> Result<String, Refusal> {
        planned(content, view, edits).map(|planned| planned.text().unwrap().as_str().to_owned())
    }

    fn planned(content: &Text, view: Option<&View>, edits: &[LineEdit]) -> Result<plan::Planned, Refusal> {
        let path = RelPath::new("f").unwrap();
        let tracking = view.map_or(Tracking::Off, |view| Tracking::Seen { view, text: Some(content), provenance: None });
        let (policy, limits) = (Policy::default(), Limits::default());
        let present = Present::Text(content.clone());
        let target = Target { path: &path, tracking, present: &present, policy: &policy, limits: &limits };
        plan::edit_lines(&target, edits)
    }

    #[track_caller]
    fn check(content: &str, edits: impl Fn(&dyn Fn(u32) -> Anchor) -> Vec<LineEdit>, result: &str) {
        let content = text(content);
        let edits = edits(&|line| anchor(&content, line));
        assert_eq!(edit(&content, Some(&View::whole(&content)), &edits).as_deref(), Ok(result));
        assert_eq!(edit(&content, None, &edits).as_deref(), Ok(result));
    }

    #[test]
    fn every_operation() {
        check("a\nb\nc\n", |at| vec![LineEdit::Replace { at: at(2), to: at(2), text: "B".into() }], "a\nB\nc\n");
        check("a\nb\nc\n", |at| vec![LineEdit::Replace { at: at(1), to: at(2), text: "x\ny\nz\n".into() }], "x\ny\nz\nc\n");
        check("a\nb\nc\n", |at| vec![LineEdit::Delete { at: at(2), to: at(3) }], "a\n");
        check("a\nb\n", |at| vec![LineEdit::InsertBefore { at: at(1), text: "0".into() }], "0\na\nb\n");
        check("a\nb\n", |at| vec![LineEdit::InsertAfter { at: at(1), text: "1".into() }], "a\n1\nb\n");
        check("a\n", |_| vec![LineEdit::Append { text: "z".into() }, LineEdit::Prepend { text: "0".into() }], "0\na\nz\n");
        check("", |_| vec![LineEdit::Append { text: "a".into() }], "a\n");
        check("a\nb\n", |at| vec![LineEdit::Replace { at: at(1), to: at(1), text: "".into() }], "\nb\n");
    }

    #[test]
    fn several_edits_speak_of_one_numbering() {
        check(
            "a\nb\nc\nd\n",
            |at| {
                vec![
                    LineEdit::Delete { at: at(4), to: at(4) },
                    LineEdit::InsertAfter { at: at(1), text: "1\n2".into() },
                    LineEdit::Replace { at: at(2), to: at(2), text: "B".into() },
                    LineEdit::InsertAfter { at: at(1), text: "3".into() },
                ]
            },
            "a\n1\n2\n3\nB\nc\n",
        );
    }

    #[test]
    fn endings_and_a_missing_final_newline_survive() {
        check("a\r\nb\r\n", |at| vec![LineEdit::Replace { at: at(1), to: at(1), text: "x\ny".into() }], "x\r\ny\r\nb\r\n");
        check("a\nb\r\nc\n", |at| vec![LineEdit::Replace { at: at(1), to: at(3), text: "x\ny\nz".into() }], "x\ny\r\nz\n");
        check("a\nb", |at| vec![LineEdit::Replace { at: at(2), to: at(2), text: "B".into() }], "a\nB");
        check("a\nb", |_| vec![LineEdit::Append { text: "c\nd".into() }], "a\nb\nc\nd");
        check("a\r\nb", |at| vec![LineEdit::InsertAfter { at: at(2), text: "c".into() }], "a\r\nb\r\nc");
        check("\u{feff}a\n", |_| vec![LineEdit::Prepend { text: "0".into() }], "\u{feff}0\na\n");
        check("a\nb", |at| vec![LineEdit::Delete { at: at(2), to: at(2) }], "a");
        check("a\nb", |at| vec![LineEdit::Delete { at: at(1), to: at(2) }], "");
        check("a\nb", |at| vec![LineEdit::Delete { at: at(2), to: at(2) }, LineEdit::Append { text: "c".into() }], "a\nc");
        check("a\r\nb", |at| vec![LineEdit::Replace { at: at(1), to: at(2), text: "x\ny\nz".into() }], "x\r\ny\r\nz");
        check("a", |_| vec![LineEdit::Append { text: "b".into() }, LineEdit::Prepend { text: "0".into() }], "0\na\nb");
    }

    #[test]
    fn an_empty_last_line_is_not_lost_for_want_of_a_newline() {
        check("a\nb", |at| vec![LineEdit::Replace { at: at(2), to: at(2), text: "".into() }], "a\n\n");
        check("a\r\n\r\nb", |at| vec![LineEdit::Delete { at: at(3), to: at(3) }], "a\r\n\r\n");
        check("a", |_| vec![LineEdit::Append { text: "".into() }], "a\n\n");
        check("a", |at| vec![LineEdit::Replace { at: at(1), to: at(1), text: "".into() }], "\n");
    }

    #[test]
    fn edits_that_touch_the_same_lines_are_refused() {
        let content = text("a\nb\nc\n");
        let at = |line| anchor(&content, line);
        let edits = [LineEdit::Delete { at: at(2), to: at(3) }, LineEdit::Replace { at: at(1), to: at(2), text: "x".into() }];
        assert_eq!(edit(&content, None, &edits).unwrap_err().cause, Cause::Overlap { first: 1, second: 2 });
        let edits = [LineEdit::Delete { at: at(1), to: at(3) }, LineEdit::InsertAfter { at: at(2), text: "x".into() }];
        assert_eq!(edit(&content, None, &edits).unwrap_err().code(), crate::refusal::RefusalCode::Overlap);
    }

    #[test]
    fn a_pasted_prefix_is_refused() {
        let content = text("a\n");
        let edits = [LineEdit::Replace { at: anchor(&content, 1), to: anchor(&content, 1), text: "1#ab|b".into() }];
        assert_eq!(edit(&content, None, &edits).unwrap_err().code(), crate::refusal::RefusalCode::BadArguments);
    }

    /// A trap for other tools: after the session's own insert, the old number of a `}` is the number of another `}`.
    #[test]
    fn an_old_number_never_hits_another_equal_line() {
        let before = text("a\n}\nb\n}\nc\n}\n");
        let after = text("x\ny\na\n}\nb\n}\nc\n}\n");
        let map = crate::line_map::LineMap::between(&before, &after);
        let view = View::whole(&before).during_own_edits(&map, &after).settled(&after);
        let old = anchor(&before, 4);
        let refusal = edit(&after, Some(&view), &[LineEdit::Delete { at: old, to: old }]).unwrap_err();
        let Cause::AnchorMismatch { mismatches, .. } = &refusal.cause else { panic!("{refusal:?}") };
        assert_eq!(mismatches[0].why, MismatchKind::TwoFit);
        // Both lines have been shown now: the same anchor has one meaning and passes.
        let view = refusal.view_after.unwrap();
        assert_eq!(edit(&after, Some(&view), &[LineEdit::Delete { at: old, to: old }]).as_deref(), Ok("x\ny\na\nb\n}\nc\n}\n"));
    }

    #[test]
    fn a_number_is_not_free_for_another_line_when_its_own_was_shown_elsewhere() {
        let before = text("a\nb\nc\n");
        let at = anchor(&before, 2);
        let insert = [LineEdit::InsertBefore { at, text: "b\nb".into() }];
        let planned = planned(&before, Some(&View::whole(&before)), &insert).unwrap();
        let (after, mut view) = (planned.text().unwrap().clone(), planned.view_after().unwrap().clone());
        // The line that was shown as 2 is shown as 4 now; the line that has number 2 now has the same text.
        view.show(LineRange::line(LineNo::new(4).unwrap()));
        let refusal = edit(&after, Some(&view), &[LineEdit::Delete { at, to: at }]).unwrap_err();
        let Cause::AnchorMismatch { mismatches, .. } = &refusal.cause else { panic!("{refusal:?}") };
        assert_eq!(mismatches[0].why, MismatchKind::TwoFit);
    }

    #[test]
    fn an_old_number_of_a_moved_line_gives_a_remap_that_works() {
        let before = text("a\nb\nc\n");
        let after = text("x\na\nb\nc\n");
        let view =
            View::whole(&before).during_own_edits(&crate::line_map::LineMap::between(&before, &after), &after).settled(&after);
        let old = anchor(&before, 2);
        let refusal = edit(&after, Some(&view), &[LineEdit::Delete { at: old, to: old }]).unwrap_err();
        let new = refusal.remaps()[0].to;
        assert_eq!(new, anchor(&after, 3));
        let known = refusal.view_after.unwrap();
        assert_eq!(edit(&after, Some(&known), &[LineEdit::Delete { at: new, to: new }]).as_deref(), Ok("x\na\nc\n"));
        // A model that computes the new number itself is right, too.
        assert_eq!(edit(&after, Some(&view), &[LineEdit::Delete { at: new, to: new }]).as_deref(), Ok("x\na\nc\n"));
    }

    #[test]
    fn lines_between_two_anchors_must_have_been_seen() {
        let content = text("a\nb\nc\nd\n");
        let mut view = View::of(&content);
        view.show(LineRange::line(LineNo::new(1).unwrap()));
        view.show(LineRange::line(LineNo::new(4).unwrap()));
        let edits = [LineEdit::Delete { at: anchor(&content, 1), to: anchor(&content, 4) }];
        let refusal = edit(&content, Some(&view), &edits).unwrap_err();
        assert_eq!(refusal.affected_ranges().to_string(), "2-3");
        assert_eq!(edit(&content, Some(&refusal.view_after.unwrap()), &edits).as_deref(), Ok(""));
    }
}
