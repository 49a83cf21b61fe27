//! Repair of refused edits: which lines to read again, and the same edit with fresh anchors if they are proven to
//! name the same lines.

use surehand_engine::{
    Edit, ReadCall, Refusal, WantedLines,
    core::{Anchor, LineRange, LineSet, RefusalCode, Remap, edit::lines::LineEdit},
};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EditRepair {
    pub read: ReadCall,
    /// The edit with fresh anchors, if every anchor has one.
    pub retry: Option<Edit>,
}

/// The repair of a refused edit; `None` if the model has to decide.
pub(crate) fn plan_repair(edit: &Edit, refusal: &Refusal) -> Option<EditRepair> {
    let is_partial = match refusal.code() {
        RefusalCode::Stale | RefusalCode::AnchorMismatch => false,
        RefusalCode::Partial => true,
        _ => return None,
    };
    // For a whole-file write over unseen lines a read would not help. It would reset the count of refusals, and lines
    // that do not fit into the context would be shown to the model again and again. The refusal shows them already, and
    // the refusal of a repeated call says what to do instead.
    if is_partial && matches!(edit, Edit::Write { .. }) {
        return None;
    }
    let affected = refusal.affected_ranges();
    if affected.is_empty() {
        return None;
    }
    let remaps = refusal.remaps();
    let named: LineSet = remaps.iter().map(|remap| LineRange::line(remap.to.line)).collect();
    let lines = affected.ranges().iter().chain(named.ranges()).copied().collect();
    let read =
        ReadCall { path: refusal.path.clone()?, lines: WantedLines::These(lines), anchors: matches!(edit, Edit::Lines { .. }) };
    let retry = match edit {
        Edit::Lines { path, edits } if !is_partial && !remaps.is_empty() => {
            let edits = edits.iter().map(|edit| remapped(edit, remaps)).collect::<Option<_>>();
            edits.map(|edits| Edit::Lines { path: path.clone(), edits })
        }
        _ => None,
    };
    Some(EditRepair { read, retry })
}

/// The edit with every anchor replaced; `None` if one has no replacement.
fn remapped(edit: &LineEdit, remaps: &[Remap]) -> Option<LineEdit> {
    let fresh = |anchor: &Anchor| remaps.iter().find(|remap| remap.from == *anchor).map(|remap| remap.to);
    Some(match edit {
        LineEdit::Replace { at, to, text } => LineEdit::Replace { at: fresh(at)?, to: fresh(to)?, text: text.clone() },
        LineEdit::Delete { at, to } => LineEdit::Delete { at: fresh(at)?, to: fresh(to)? },
        LineEdit::InsertBefore { at, text } => LineEdit::InsertBefore { at: fresh(at)?, text: text.clone() },
        LineEdit::InsertAfter { at, text } => LineEdit::InsertAfter { at: fresh(at)?, text: text.clone() },
        LineEdit::Append { .. } | LineEdit::Prepend { .. } => edit.clone(),
    })
}

#[cfg(test)]
mod tests {
    use surehand_engine::core::{Cause, LineNo, excerpt::Excerpt, refusal::PartialUse};

    use super::*;

    fn anchor(name: &str) -> Anchor {
        name.parse().unwrap()
    }

    fn lines(ranges: &[(u32, u32)]) -> LineSet {
        let line = |number| LineNo::new(number).unwrap();
        ranges.iter().map(|&(start, end)| LineRange { start: line(start), end: line(end) }).collect()
    }

    fn refusal(cause: Cause) -> Refusal {
        Refusal::of_spelling("a.rs", cause)
    }

    fn stale(affected: &[(u32, u32)]) -> Refusal {
        let remap = |from, to| Remap { from: anchor(from), to: anchor(to) };
        refusal(Cause::Stale {
            affected: lines(affected),
            fresh: Excerpt::default(),
            mismatches: Vec::new(),
            remaps: vec![remap("10#aa", "12#aa"), remap("11#bb", "13#bb")],
            anchors: true,
            total_lines: 20,
        })
    }

    fn partial() -> Refusal {
        refusal(Cause::Partial { unseen: lines(&[(2, 3)]), fresh: Excerpt::default(), by: PartialUse::Lines })
    }

    fn edits(anchors: &[&str]) -> Edit {
        let edits = anchors.iter().map(|at| LineEdit::Delete { at: anchor(at), to: anchor(at) }).collect();
        Edit::Lines { path: "a.rs".to_owned(), edits }
    }

    #[test]
    fn every_anchor_gets_its_new_form() {
        let repair = plan_repair(&edits(&["10#aa", "11#bb"]), &stale(&[(2, 3)])).unwrap();
        assert_eq!(repair.retry, Some(edits(&["12#aa", "13#bb"])));
        let lines = WantedLines::These(lines(&[(2, 3), (12, 13)]));
        assert_eq!(repair.read, ReadCall { path: "a.rs".to_owned(), lines, anchors: true });
    }

    #[test]
    fn one_anchor_without_proof_is_left_to_the_model() {
        assert_eq!(plan_repair(&edits(&["10#aa", "99#zz"]), &stale(&[(2, 3)])).unwrap().retry, None);
    }

    #[test]
    fn text_is_never_tried_again_without_the_model() {
        let repair = plan_repair(&Edit::replace("a.rs", "x", "y"), &stale(&[(2, 3)])).unwrap();
        assert_eq!((repair.retry, repair.read.anchors), (None, false));
    }

    #[test]
    fn lines_that_were_never_seen_are_shown_and_not_edited() {
        assert_eq!(plan_repair(&edits(&["10#aa"]), &partial()).unwrap().retry, None);
    }

    #[test]
    fn a_file_that_is_to_be_written_over_is_not_read_again() {
        assert_eq!(plan_repair(&Edit::write("a.rs", ""), &partial()), None);
    }

    #[test]
    fn other_refusals_are_left_alone() {
        assert_eq!(plan_repair(&Edit::replace("a.rs", "x", "y"), &refusal(Cause::Ambiguous { lines: Vec::new() })), None);
        assert_eq!(plan_repair(&Edit::replace("a.rs", "x", "y"), &stale(&[])), None);
    }
}
