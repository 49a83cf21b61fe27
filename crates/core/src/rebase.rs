//! Rebase: an edit that was meant for the text a session saw, made in the text that is there now. Only on proof: the lines it
//! touches are the lines that were seen, they and their neighbours stand together as they did, and no equal line could be taken
//! for one of them.

use std::ops::Range;

use crate::{
    change::{LineMap, Splice},
    lines::{LineNo, LineRange, LineSet},
    text::Text,
};

/// Where the splices, which are for `picture`, belong in `now`; `None` when that is not proven for every one of them.
///
/// `seen` are the lines of `picture` that the session was really shown.
pub(crate) fn place<'a>(picture: &Text, now: &Text, seen: &LineSet, splices: &[Splice<'a>]) -> Option<Vec<Splice<'a>>> {
    let map = LineMap::between(picture, now);
    let ground = Ground { picture, now, seen, proven: map.proven(picture, now), kept: map.kept().collect() };
    splices.iter().map(|splice| Some(Splice { range: ground.place(&splice.range)?, with: splice.with.clone() })).collect()
}

struct Ground<'a> {
    picture: &'a Text,
    now: &'a Text,
    seen: &'a LineSet,
    proven: LineSet,
    kept: Vec<(Range<usize>, i64)>,
}

impl Ground<'_> {
    fn place(&self, range: &Range<usize>) -> Option<Range<usize>> {
        let touched = self.touched(range);
        let shift = self.shift_of(&touched)?;
        let sure = LineRange::from_indexes(touched.clone()).into_iter().collect::<LineSet>();
        if !sure.minus(&self.proven).is_empty() || !sure.minus(self.seen).is_empty() {
            return None;
        }
        let moved = |index: usize| usize::try_from(index as i64 + shift).ok();
        let start = self.now.start_of(moved(touched.start)?) + (range.start - self.picture.start_of(touched.start));
        Some(start..start + range.len())
    }

    /// The lines that a range of bytes is in. None for an empty range between two lines.
    fn touched(&self, range: &Range<usize>) -> Range<usize> {
        let lines = self.picture.line_count();
        let is_end = range.start >= self.picture.as_str().len();
        let ends_open = self.picture.as_str().ends_with(|last| last != '\n');
        let first = if is_end && !ends_open { lines } else { self.picture.line_at(range.start).index().min(lines) };
        let last = self.picture.line_at(range.end.saturating_sub(1).max(range.start)).index();
        let between_lines = range.is_empty() && self.picture.start_of(first) == range.start;
        if between_lines || first == lines { first..first } else { first..(last + 1).min(lines) }
    }

    /// By how much these lines moved, if they and the lines above and below them moved together. For a place between two lines
    /// the start and the end of the file count as neighbours as well: what was to be first or last must still be that.
    fn shift_of(&self, touched: &Range<usize>) -> Option<i64> {
        let lines = self.picture.line_count();
        let window = touched.start.saturating_sub(1)..(touched.end + 1).min(lines);
        let (run, shift) = self.kept.iter().find(|(run, _)| run.start <= window.start && window.end <= run.end)?;
        if run.is_empty() {
            return None;
        }
        let stays_first = touched.start > 0 || *shift == 0;
        let stays_last = touched.end < lines || lines as i64 + shift == self.now.line_count() as i64;
        let is_place = touched.is_empty();
        if is_place && !(stays_first && stays_last && self.is_proven(&window)) {
            return None;
        }
        Some(*shift)
    }

    fn is_proven(&self, lines: &Range<usize>) -> bool {
        lines.clone().map(LineNo::at_index).all(|line| self.proven.contains(line) && self.seen.contains(line))
    }
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

    /// Plans for a session that saw `view` of `seen`, where `now` is there.
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
        let tracking = Tracking::Seen { view, text: Some(seen) };
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
    fn equal_lines_are_not_taken_for_each_other() {
        // Which of the three went? The text of the edit is there once, but it cannot be told where it was.
        check("x\n}\n}\n}\ny\n", "x\n}\n}\ny\n", "x\n}\n", "x\n", None);
        // Somebody has put the same text in once more: whoever saw that would have to say which.
        check("a\nb\nc\nd\ne\n", "b\nq\na\nb\nc\nd\ne\n", "b", "B", None);
        // The last line has no ending, and has got one now if it was that one to which lines were added.
        check("}", "}\nx\n}", "}", "]", None);
    }

    #[test]
    fn unseen_lines_are_not_rebased() {
        let (seen, now) = (text("a\nb\nc\nd\ne\nf\n"), text("0\na\nb\nc\nd\ne\nf\n"));
        let mut view = View::of(&seen);
        view.show(LineRange { start: LineNo::FIRST, end: LineNo::new(3).unwrap() });
        let edit = |old| {
            let edit = Replace { old, new: "x", all: false };
            planned(&view, &seen, &now, OnChange::Rebase, |target| plan::edit_file(target, &edit))
        };
        assert!(edit("b").is_ok());
        assert_eq!(edit("e").unwrap_err().code(), crate::refusal::RefusalCode::Stale);
    }

    #[test]
    fn what_was_to_be_first_is_not_moved_with_what_is_edited_below_it() {
        let (seen, now) = (text("a"), text("x\ny\na"));
        let at = Anchor::of(LineNo::FIRST, "a");
        let edit = |edits: &[LineEdit<&str>]| {
            let plan = |target: &Target<'_>| plan::edit_lines(target, edits);
            planned(&View::whole(&seen), &seen, &now, OnChange::Rebase, plan)
        };
        let replace = LineEdit::Replace { at, to: at, text: "A" };
        assert_eq!(edit(&[replace]).unwrap().text().unwrap().as_str(), "x\ny\nA");
        assert_eq!(edit(&[replace, LineEdit::Prepend { text: "first" }]).unwrap_err().code(), crate::refusal::RefusalCode::Stale);
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
        let insert = |edit: LineEdit<&str>| {
            planned(&View::whole(&seen), &seen, &now, OnChange::Rebase, |target| plan::edit_lines(target, &[edit]))
                .map(|done| done.text().unwrap().as_str().to_owned())
        };
        let at = Anchor::of(LineNo::new(2).unwrap(), "b");
        assert_eq!(insert(LineEdit::InsertAfter { at, text: "x" }).unwrap(), "new\na\nb\nx\nc\nd\n");
        assert_eq!(insert(LineEdit::Append { text: "x" }).unwrap(), "new\na\nb\nc\nd\nx\n");
        assert!(insert(LineEdit::Prepend { text: "x" }).is_err(), "the start of the file is another one now");
    }

    /// A text, somebody else's text made of it, and a piece of the first one to replace.
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

        /// A rebased edit is the edit that somebody makes who saw the new text, and leaves everybody else's lines alone.
        #[test]
        fn a_rebased_edit_equals_the_edit_of_who_saw_it((seen, now, old) in story()) {
            prop_assume!(seen != now);
            let edit = Replace { old: &old, new: "NEW", all: false };
            if let Ok(done) = rebased(&seen, &now, &edit) {
                let knows = planned(&View::whole(&now), &now, &now, OnChange::Refuse, |target| plan::edit_file(target, &edit));
                let knows = knows.unwrap();
                prop_assert_eq!(done.text(), knows.text());
                prop_assert!(done.view_after().unwrap().is_whole());
            }
        }

        /// The same by anchors, where the lines that were meant are known by construction: the text is unique line by line.
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
            let edit = LineEdit::Replace { at: anchor, to: anchor, text: "MINE" };
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
                    // Refused only where the change is in it or touches it.
                    let beside = at <= target + 1 && target <= at + gone;
                    prop_assert!(touched || beside);
                }
            }
        }
    }
}
