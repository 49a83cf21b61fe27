//! Rebase: applies an edit that was made for the text a session saw to the current text, if its place is proven.
//!
//! An edit is placed if the session knows the lines it touches, those lines and their neighbours moved together, and no
//! equal line could be mistaken for one of them. An edit is also placed in a file that was only reformatted, if the
//! lines it touches are unchanged.

mod reformatted;

use std::ops::Range;

use self::reformatted::Reformatted;

use crate::{
    line_map::Splice,
    lines::{LineRange, LineSet},
    proof::Proof,
    text::Text,
};

/// The places in `now` for splices made for `picture`; `None` unless the place of every splice is proven.
///
/// `proof` maps the lines of `picture` to lines of `now`. `known` holds the lines that the session was shown or quotes.
pub(crate) fn place<'a>(
    picture: &Text,
    now: &Text,
    proof: &Proof<'_>,
    known: &LineSet,
    splices: &[Splice<'a>],
) -> Option<Vec<Splice<'a>>> {
    let placer = SplicePlacer { picture, now, proof, known };
    let all = |place: &dyn Fn(&Range<usize>) -> Option<Range<usize>>| -> Option<Vec<Splice<'a>>> {
        splices.iter().map(|splice| Some(Splice { range: place(&splice.range)?, with: splice.with.clone() })).collect()
    };
    all(&|range| placer.place(range)).or_else(|| {
        let reformatted = Reformatted::between(picture, now)?;
        all(&|range| reformatted.place(range).filter(|_| placer.is_known(range)))
    })
}

struct SplicePlacer<'a> {
    picture: &'a Text,
    now: &'a Text,
    proof: &'a Proof<'a>,
    known: &'a LineSet,
}

impl SplicePlacer<'_> {
    fn place(&self, range: &Range<usize>) -> Option<Range<usize>> {
        let touched = touched_lines(self.picture, range);
        let shift = self.shift_of(&touched)?;
        // A place between two lines is anchored by both of them.
        let held_by = if touched.is_empty() { self.with_neighbours(&touched) } else { touched.clone() };
        let held_by: LineSet = LineRange::from_indexes(held_by).into_iter().collect();
        if !held_by.minus(self.known).is_empty() || !self.proof.covers(&held_by) {
            return None;
        }
        let first = usize::try_from(touched.start as i64 + shift).ok()?;
        let start = self.now.start_of(first) + (range.start - self.picture.start_of(touched.start));
        Some(start..start + range.len())
    }

    /// Whether the session knows the lines that a byte range touches.
    fn is_known(&self, range: &Range<usize>) -> bool {
        let touched: LineSet = LineRange::from_indexes(touched_lines(self.picture, range)).into_iter().collect();
        touched.minus(self.known).is_empty()
    }

    /// The distance by which these lines moved, if they and the lines above and below them moved together. For a place
    /// between two lines, the start and the end of the file count as neighbours too, so that text meant to come first
    /// or last stays there.
    fn shift_of(&self, touched: &Range<usize>) -> Option<i64> {
        let window = self.with_neighbours(touched);
        let is_around = |run: &Range<usize>| !run.is_empty() && run.start <= window.start && window.end <= run.end;
        let (_, shift) = self.proof.map().kept().find(|(run, _)| is_around(run))?;
        let lines = self.picture.line_count();
        let stays_first = touched.start > 0 || shift == 0;
        let stays_last = touched.end < lines || lines as i64 + shift == self.now.line_count() as i64;
        let is_place = touched.is_empty();
        (!is_place || (stays_first && stays_last)).then_some(shift)
    }

    fn with_neighbours(&self, lines: &Range<usize>) -> Range<usize> {
        lines.start.saturating_sub(1)..(lines.end + 1).min(self.picture.line_count())
    }
}

/// The lines that a byte range touches. An empty range between two lines touches none.
fn touched_lines(picture: &Text, range: &Range<usize>) -> Range<usize> {
    let lines = picture.line_count();
    let is_end = range.start >= picture.as_str().len();
    let ends_open = picture.as_str().ends_with(|last| last != '\n');
    let first = if is_end && !ends_open { lines } else { picture.line_at(range.start).index().min(lines) };
    let last = picture.line_at(range.end.saturating_sub(1).max(range.start)).index();
    let between_lines = range.is_empty() && picture.start_of(first) == range.start;
    if between_lines || first == lines { first..first } else { first..(last + 1).min(lines) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::{
        Anchor, Limits, LineNo, LineRange, OnChange, Policy, Present, Refusal, RelPath, Target, Text, View,
        edit::{lines::LineEdit, replace::Replace},
        gate::Tracking,
        plan::{self, Planned},
    };

    fn text(content: &str) -> Text {
        Text::of(content.to_owned()).unwrap()
    }

    /// Plans an edit by a session that saw `view` of `seen`, while the file holds `now`.
    fn planned(
        view: &View,
        seen: &Text,
        now: &Text,
        on_change: OnChange,
        plan: impl FnOnce(&Target<'_>) -> Result<Planned, Refusal>,
    ) -> Result<Planned, Refusal> {
        let (path, limits) = (RelPath::new("f").unwrap(), Limits::default());
        let policy = Policy { on_change, ..Policy::default() };
        let present = Present::Text(now.clone());
        let tracking = Tracking::Seen { view, text: Some(seen), provenance: None };
        plan(&Target { path: &path, tracking, present: &present, policy: &policy, limits: &limits })
    }

    fn rebased(seen: &Text, now: &Text, edit: &Replace<'_>) -> Result<Planned, Refusal> {
        planned(&View::whole(seen), seen, now, OnChange::Rebase, |target| plan::edit_file(target, edit))
    }

    #[track_caller]
    fn check(seen: &str, now: &str, old: &str, new: &str, result: Option<&str>) {
        let done = rebased(&text(seen), &text(now), &Replace { old, new, all: false });
        match result {
            Some(result) => {
                let done = done.unwrap();
                assert_eq!(done.text().unwrap().as_str(), result);
                let view = done.view_after().unwrap();
                assert!(view.is_whole(), "all that changed was shown");
                assert_eq!(view.version(), done.text().unwrap().version());
                assert!(done.rebased().is_some());
            }
            None => assert_eq!(done.unwrap_err().code(), crate::refusal::RefusalCode::Stale),
        }
    }

    #[test]
    fn an_edit_moves_with_its_lines() {
        check("a\nb\nc\nd\ne\n", "x\ny\na\nb\nc\nd\ne\n", "c", "C", Some("x\ny\na\nb\nC\nd\ne\n"));
        check("a\nb\nc\nd\ne\n", "b\nc\nd\ne\n", "d", "D", Some("b\nc\nD\ne\n"));
        check("a\nb\nc\nd\ne\n", "a\nb\nc\nd\ne\nf\n", "b\nc", "B", Some("a\nB\nd\ne\nf\n"));
        check("\r\na b c\r\nz\r\n", "1\r\n\r\na b c\r\nz\r\n", "b", "B\nB", Some("1\r\n\r\na B\r\nB c\r\nz\r\n"));
    }

    #[test]
    fn an_edit_of_a_changed_line_or_beside_one_is_refused() {
        check("a\nb\nc\nd\n", "a\nb\nC\nd\n", "c", "x", None);
        check("a\nb\nc\nd\n", "a\nB\nc\nd\n", "c", "x", None);
        check("a\nb\nc\nd\n", "a\nb\nc\nnew\nd\n", "c", "x", None);
        check("a\nb\nc\nd\n", "a\nb\nnew\nc\nd\n", "b\nc", "x", None);
        check("a\nb\nc\nd\n", "a\nd\n", "b\nc", "x", None);
    }

    #[test]
    fn an_edit_beside_lines_that_were_only_formatted_is_made() {
        check("a\nf(x,y)\nc\nd\n", "a\nf(\n  x,\n  y,\n)\nc\nd\n", "c", "C", Some("a\nf(\n  x,\n  y,\n)\nC\nd\n"));
        check("a\nf(x,y)\nc\nd\n", "a\nf(x, z)\nc\nd\n", "c", "C", None);
    }

    #[test]
    fn equal_lines_are_not_taken_for_each_other() {
        // One of three equal lines was removed. Which one is unknown.
        check("x\n}\n}\n}\ny\n", "x\n}\n}\ny\n", "x\n}\n", "x\n", None);
        // Another writer inserted the same text again, so a session that saw the new text would have to say which one
        // it means.
        check("a\nb\nc\nd\ne\n", "b\nq\na\nb\nc\nd\ne\n", "b", "B", None);
        // The last line had no ending. It has one now, if it is the line to which others were appended.
        check("}", "}\nx\n}", "}", "]", None);
    }

    /// A session that was shown the first three of six lines before another writer inserted a line above them.
    fn after_a_cut_read(plan: impl FnOnce(&Target<'_>) -> Result<Planned, Refusal>) -> Result<String, crate::RefusalCode> {
        let (seen, now) = (text("a\nb\nc\nd\ne\nf\n"), text("0\na\nb\nc\nd\ne\nf\n"));
        let mut view = View::of(&seen);
        view.show(LineRange { start: LineNo::FIRST, end: LineNo::new(3).unwrap() });
        let done = planned(&view, &seen, &now, OnChange::Rebase, plan).map_err(|refusal| refusal.code())?;
        Ok(done.text().unwrap().as_str().to_owned())
    }

    #[test]
    fn text_that_is_quoted_is_known_though_it_was_not_shown() {
        let edit = |old| after_a_cut_read(|target| plan::edit_file(target, &Replace { old, new: "x", all: false }));
        assert_eq!(edit("b").unwrap(), "0\na\nx\nc\nd\ne\nf\n");
        assert_eq!(edit("d\ne").unwrap(), "0\na\nb\nc\nx\nf\n");
        assert_eq!(edit("missing").unwrap_err(), crate::RefusalCode::Stale);
        let batch = [(0, Replace { old: "e", new: "E", all: false }), (0, Replace { old: "E\nf", new: "x", all: false })];
        let done = after_a_cut_read(|target| plan::multi_edit(&[*target], &batch).map(|mut plans| plans.remove(0)));
        assert_eq!(done.unwrap(), "0\na\nb\nc\nd\nx\n");
    }

    #[test]
    fn lines_that_a_patch_quotes_are_known_but_numbers_are_no_quotes() {
        let patch = |patch: &str| {
            let patch = crate::edit::patch::parse(patch).unwrap();
            after_a_cut_read(|target| {
                let step = plan::PatchStep { file: &patch.files[0], target: 0, to: None };
                plan::apply_patch(&[*target], &[step]).map(|mut plans| plans.remove(0).1)
            })
        };
        let envelope = |chunk: &str| patch(&format!("*** Begin Patch\n*** Update File: f\n@@\n{chunk}*** End Patch\n"));
        assert_eq!(envelope(" d\n-e\n+x\n f\n").unwrap(), "0\na\nb\nc\nd\nx\nf\n");
        assert_eq!(envelope(" d\n+x\n").unwrap(), "0\na\nb\nc\nd\nx\ne\nf\n");
        assert_eq!(patch("--- a/f\n+++ b/f\n@@ -4,0 +5 @@\n+x\n").unwrap_err(), crate::RefusalCode::Stale);
    }

    #[test]
    fn an_anchor_is_no_quote() {
        let edit = |line: u32, of| {
            let at = Anchor::of(LineNo::new(line).unwrap(), of);
            after_a_cut_read(|target| plan::edit_lines(target, &[LineEdit::Replace { at, to: at, text: "x".into() }]))
        };
        assert_eq!(edit(2, "b").unwrap(), "0\na\nx\nc\nd\ne\nf\n");
        assert_eq!(edit(5, "e").unwrap_err(), crate::RefusalCode::Stale);
    }

    #[test]
    fn text_meant_to_come_first_does_not_move() {
        let (seen, now) = (text("a"), text("x\ny\na"));
        let at = Anchor::of(LineNo::FIRST, "a");
        let edit = |edits: &[LineEdit]| {
            let plan = |target: &Target<'_>| plan::edit_lines(target, edits);
            planned(&View::whole(&seen), &seen, &now, OnChange::Rebase, plan)
        };
        let replace = LineEdit::Replace { at, to: at, text: "A".into() };
        assert_eq!(edit(std::slice::from_ref(&replace)).unwrap().text().unwrap().as_str(), "x\ny\nA");
        assert_eq!(
            edit(&[replace, LineEdit::Prepend { text: "first".into() }]).unwrap_err().code(),
            crate::refusal::RefusalCode::Stale
        );
    }

    /// Plans an edit by a session that saw `seen`, with a recorded line map.
    fn planned_by_provenance(
        (seen, now, provenance): (&str, &str, &str),
        plan: impl FnOnce(&Target<'_>) -> Result<Planned, Refusal>,
    ) -> Result<String, Refusal> {
        let (seen, present, map) = (text(seen), Present::Text(text(now)), provenance.parse().unwrap());
        let (path, limits, view) = (RelPath::new("f").unwrap(), Limits::default(), View::whole(&seen));
        let policy = Policy { on_change: OnChange::Rebase, ..Policy::default() };
        let tracking = Tracking::Seen { view: &view, text: Some(&seen), provenance: Some(&map) };
        let done = plan(&Target { path: &path, tracking, present: &present, policy: &policy, limits: &limits })?;
        assert!(done.view_after().unwrap().is_whole());
        Ok(done.text().unwrap().as_str().to_owned())
    }

    fn replaced_line(line: u32, of: &str) -> LineEdit {
        let at = Anchor::of(LineNo::new(line).unwrap(), of);
        LineEdit::Replace { at, to: at, text: "x".into() }
    }

    #[test]
    fn provenance_distinguishes_equal_lines() {
        // The first of three equal lines was removed. Contents cannot show which one.
        let (seen, now) = ("a\n}\n}\n}\nb\n", "a\n}\n}\nb\n");
        let edit = |line: u32, provenance: &str| {
            planned_by_provenance((seen, now, provenance), |target| plan::edit_lines(target, &[replaced_line(line, "}")]))
        };
        assert_eq!(edit(4, "5 1-1+0").unwrap(), "a\n}\nx\nb\n");
        assert_eq!(edit(2, "5 1-1+0").unwrap_err().code(), crate::RefusalCode::Stale, "it is gone");
        assert_eq!(edit(3, "5 1-1+0").unwrap_err().code(), crate::RefusalCode::Stale, "the line above it is gone");
        // A map that does not fit these texts is ignored, and contents prove nothing here.
        for wrong in ["5", "5 0-1+0", "4 1-1+0", "5 1-1+0 4-0+1"] {
            assert_eq!(edit(4, wrong).unwrap_err().code(), crate::RefusalCode::Stale, "{wrong}");
        }
    }

    #[test]
    fn provenance_holds_through_the_edits_of_a_batch() {
        let (seen, now) = ("a\n}\n}\n}\nb\nc\n", "a\n}\n}\nb\nc\n");
        let edit = |old, new| (0, Replace { old, new, all: false });
        let batch = [edit("b\n", "b2\nb3\n"), edit("}\nb2", "]\nb2"), edit("b3", "B")];
        let done = planned_by_provenance((seen, now, "6 1-1+0"), |target| {
            plan::multi_edit(&[*target], &batch).map(|mut plans| plans.remove(0))
        });
        assert_eq!(done.unwrap(), "a\n}\n]\nb2\nB\nc\n");
    }

    #[test]
    fn a_plan_knows_which_lines_it_made_of_which() {
        let before = text("}\n}\n}\n");
        let batch = |edits: &[LineEdit]| {
            let plan = |target: &Target<'_>| plan::edit_lines(target, edits);
            planned(&View::whole(&before), &before, &before, OnChange::Refuse, plan).unwrap()
        };
        let at = Anchor::of(LineNo::new(2).unwrap(), "}");
        let done = batch(&[LineEdit::Delete { at, to: at }]);
        assert_eq!(done.provenance().unwrap().to_string(), "3 1-1+0");
        let write = |target: &Target<'_>| match plan::write_file(target, "}\n}\n")? {
            plan::WritePlan::Write(planned) => Ok(*planned),
            plan::WritePlan::Same { .. } => unreachable!("it is another text"),
        };
        let done = planned(&View::whole(&before), &before, &before, OnChange::Refuse, write).unwrap();
        assert_eq!(done.provenance(), None, "the deleted line is not recorded");
    }

    #[test]
    fn several_edits_of_a_batch_are_each_moved() {
        let (seen, now) = (text("a\nb\nc\nd\ne\nf\ng\n"), text("0\na\nb\nc\nd\nnew\ne\nf\ng\n"));
        let batch = |edits: &[(usize, Replace<'_>)]| {
            let plan = |target: &Target<'_>| plan::multi_edit(&[*target], edits).map(|mut plans| plans.remove(0));
            planned(&View::whole(&seen), &seen, &now, OnChange::Rebase, plan)
        };
        let edit = |old, new| (0, Replace { old, new, all: false });
        let done = batch(&[edit("b", "B\nB2"), edit("f", "F"), edit("B2", "B3")]).unwrap();
        assert_eq!(done.text().unwrap().as_str(), "0\na\nB\nB3\nc\nd\nnew\ne\nF\ng\n");
        let refusal = batch(&[edit("b", "B"), edit("e", "E")]).unwrap_err();
        assert_eq!((refusal.code(), refusal.batch.unwrap().edit), (crate::refusal::RefusalCode::Stale, 2));
    }

    #[test]
    fn lines_can_be_put_between_lines_that_stayed_together() {
        let (seen, now) = (text("a\nb\nc\nd\n"), text("new\na\nb\nc\nd\n"));
        let insert = |edit: LineEdit| {
            planned(&View::whole(&seen), &seen, &now, OnChange::Rebase, |target| plan::edit_lines(target, &[edit]))
                .map(|done| done.text().unwrap().as_str().to_owned())
        };
        let at = Anchor::of(LineNo::new(2).unwrap(), "b");
        assert_eq!(insert(LineEdit::InsertAfter { at, text: "x".into() }).unwrap(), "new\na\nb\nx\nc\nd\n");
        assert_eq!(insert(LineEdit::Append { text: "x".into() }).unwrap(), "new\na\nb\nc\nd\nx\n");
        assert!(insert(LineEdit::Prepend { text: "x".into() }).is_err(), "the start of the file is another one now");
    }

    /// A text, the text that another writer made of it, and a piece of the first one to replace.
    fn story() -> impl Strategy<Value = (Text, Text, String)> {
        let lines = prop::collection::vec("[a-e]{1,2}", 1..14);
        let changes = prop::collection::vec((0usize..14, 0usize..3, prop::option::of("[a-f]{1,2}")), 1..3);
        (lines, changes, 0usize..14, 1usize..3).prop_map(|(lines, changes, from, count)| {
            let seen: String = lines.iter().map(|line| format!("{line}\n")).collect();
            let from = from.min(lines.len() - 1);
            let old = lines[from..(from + count).min(lines.len())].join("\n");
            let mut theirs = lines;
            for (at, gone, new) in changes {
                let at = at.min(theirs.len());
                theirs.splice(at..(at + gone).min(theirs.len()), new);
            }
            let now: String = theirs.iter().map(|line| format!("{line}\n")).collect();
            (text(&seen), text(&now), old)
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        /// A rebased edit equals the edit of a session that saw the new text, and keeps the other writer's lines.
        #[test]
        fn a_rebased_edit_equals_one_made_for_the_new_text((seen, now, old) in story()) {
            prop_assume!(seen != now);
            let edit = Replace { old: &old, new: "NEW", all: false };
            if let Ok(done) = rebased(&seen, &now, &edit) {
                let knows = planned(&View::whole(&now), &now, &now, OnChange::Refuse, |target| plan::edit_file(target, &edit));
                let knows = knows.unwrap();
                prop_assert_eq!(done.text(), knows.text());
                prop_assert!(done.view_after().unwrap().is_whole());
            }
        }

        /// The same property, for anchors. Every line is unique, so the lines that were meant are known.
        #[test]
        fn a_rebased_line_is_the_line_that_was_meant(
            count in 1usize..20, target in 0usize..20, at in 0usize..20, gone in 0usize..4, come in 0usize..4,
        ) {
            let (target, at) = (target.min(count - 1), at.min(count));
            let lines: Vec<String> = (0..count).map(|index| format!("line {index}")).collect();
            let mut theirs = lines.clone();
            let gone = gone.min(count - at);
            theirs.splice(at..at + gone, (0..come).map(|index| format!("their {index}")));
            prop_assume!(theirs != lines);
            let all = |lines: &[String]| text(&lines.iter().map(|line| format!("{line}\n")).collect::<String>());
            let (seen, now) = (all(&lines), all(&theirs));
            let anchor = Anchor::of(LineNo::at_index(target), &lines[target]);
            let edit = LineEdit::Replace { at: anchor, to: anchor, text: "MINE".into() };
            let done = planned(&View::whole(&seen), &seen, &now, OnChange::Rebase, |t| plan::edit_lines(t, &[edit]));
            let touched = (at..at + gone).contains(&target);
            match done {
                Ok(done) => {
                    prop_assert!(!touched, "a changed line was edited");
                    let expected: Vec<String> = theirs.iter().map(|line| if *line == lines[target] { "MINE".to_owned() } else { line.clone() }).collect();
                    let expected = all(&expected);
                    prop_assert_eq!(done.text(), Some(&expected));
                }
                Err(refusal) => {
                    prop_assert_eq!(refusal.code(), crate::refusal::RefusalCode::Stale);
                    // An edit is refused only if the other change lies in it or touches it.
                    let beside = at <= target + 1 && target <= at + gone;
                    prop_assert!(touched || beside);
                }
            }
        }
    }
}
