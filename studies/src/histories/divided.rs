//! Commits that change a file in several places, divided: every second change is made by another author, and the first
//! of the remaining ones is the edit of a session that saw the file before both, in one read that was cut where reads
//! are cut. The commit contains both, so the right place of the edit is known: it is made there, or refused. The study
//! counts how many are made, and why the others are not.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use surehand_core::edit::lines::LineEdit;
use surehand_core::edit::patch::{self, FilePatch};
use surehand_core::edit::replace::Replace;
use surehand_core::gate::Tracking;
use surehand_core::outcome::ReadResult;
use surehand_core::plan::{self, PatchStep};
use surehand_core::render::LineNumbers;
use surehand_core::{
    Anchor, Limits, LineNo, LineRange, LineSet, OnChange, Planned, Policy, Present, Refusal, RefusalCode, RelPath, Target, Text,
    View,
};

use crate::economy::change::{Change, applied, between};
use crate::economy::dialect::{Dialect, Picture};
use crate::economy::succession::is_plain;
use crate::git;

/// How the edits are put, as a careful model would.
const DIALECTS: [Dialect; 4] = [Dialect::Replace, Dialect::Patch, Dialect::UnifiedDiff, Dialect::Lines];

/// Why an edit was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Reason {
    /// It names lines that the read did not show.
    Unshown,
    /// The context that its patch quotes was changed, and the lines were not shown either.
    ContextChanged,
    /// The quoted text occurs more than once now.
    Ambiguous,
    /// Its place was not proven.
    Unproven,
}

/// Which changes of a commit are edits of the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Which {
    /// The first: every commit counts once.
    First,
    /// All but the first, because a commit that makes the same change all over a file counts that often.
    Further,
}

impl Which {
    fn name(self) -> &'static str {
        match self {
            Which::First => "first",
            Which::Further => "further",
        }
    }
}

/// The results of the edits in one dialect.
#[derive(Debug, Default)]
struct Tally {
    rebased: usize,
    wrong: usize,
    refused: BTreeMap<Reason, usize>,
    /// Edits that replace changed lines or their neighbours, whatever their result: these are not edits of other lines.
    beside: usize,
}

/// The results of all edits.
#[derive(Debug, Default)]
pub(crate) struct Report {
    commits: usize,
    tallies: BTreeMap<(Which, Dialect), Tally>,
    /// The location of each edit that was not made in its place.
    pub failures: Vec<String>,
}

impl Report {
    /// How many edits were made in a wrong place.
    pub(crate) fn wrong(&self) -> usize {
        self.tallies.values().map(|tally| tally.wrong).sum()
    }
}

impl Tally {
    fn refused_for(&self, reason: Reason) -> usize {
        self.refused.get(&reason).copied().unwrap_or_default()
    }

    /// Edits of lines that no other author has touched.
    fn of_other_lines(&self) -> usize {
        self.rebased + self.wrong + self.refused.values().sum::<usize>()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} changes of a file in several places, divided between somebody else and the session:\n", self.commits)?;
        let columns = "edit | dialect | edits of other lines | rebased | | not proven | twice | context changed | not shown | wrong | beside the change";
        writeln!(f, "| {columns} |\n|{}", "---|".repeat(columns.split('|').count()))?;
        for ((which, dialect), tally) in &self.tallies {
            let (all, rebased) = (tally.of_other_lines(), tally.rebased);
            let share = rebased as f64 * 100.0 / all.max(1) as f64;
            write!(f, "| {} | {} | {all} | {rebased} | {share:.2} % |", which.name(), dialect.name())?;
            for reason in [Reason::Unproven, Reason::Ambiguous, Reason::ContextChanged, Reason::Unshown] {
                write!(f, " {} |", tally.refused_for(reason))?;
            }
            writeln!(f, " {} | {} |", tally.wrong, tally.beside)?;
        }
        Ok(())
    }
}

/// Replays the history of a repository, newest commits first, with at most this many changes of a file in several
/// places.
pub(crate) fn replay(repository: &Path, most: usize) -> Result<Report> {
    let mut report = Report::default();
    let mut objects = git::Objects::open(repository)?;
    for modification in git::modifications(repository)? {
        if report.commits == most {
            break;
        }
        let (Some(before), Some(after)) = (objects.text(&modification.before)?, objects.text(&modification.after)?) else {
            continue;
        };
        let changes = between(&before, &after);
        if changes.len() >= 2 && is_plain(&before) && is_plain(&after) {
            report.commits += 1;
            let name = format!("{} {}..{}", modification.path, &modification.before[..10], &modification.after[..10]);
            replay_changes(&mut report, &name, &before, &changes).with_context(|| name)?;
        }
    }
    Ok(report)
}

fn replay_changes(report: &mut Report, name: &str, before: &Text, changes: &[Change]) -> Result<()> {
    let theirs: Vec<Change> = changes.iter().skip(1).step_by(2).cloned().collect();
    let now = applied(before, &theirs);
    let view = view_after_a_read(before);
    for (index, ours) in changes.iter().enumerate().step_by(2) {
        let mut both = [&theirs[..], std::slice::from_ref(ours)].concat();
        both.sort_by_key(|change| change.lines.start);
        let case = Case { before, now: &now, view: &view, theirs: &theirs, ours, expected: applied(before, &both) };
        for dialect in DIALECTS {
            let which = if index == 0 { Which::First } else { Which::Further };
            let tally = report.tallies.entry((which, dialect)).or_default();
            let played = case.play(dialect)?;
            match played {
                Played::Made { is_right: true } => tally.rebased += 1,
                Played::Made { is_right: false } => tally.wrong += 1,
                Played::Beside => tally.beside += 1,
                Played::Refused(reason) => *tally.refused.entry(reason).or_default() += 1,
            }
            if !matches!(played, Played::Made { is_right: true }) {
                let line = LineNo::at_index(ours.lines.start);
                report.failures.push(format!("{name}, line {line}, {}: {played:?}", dialect.name()));
            }
        }
    }
    Ok(())
}

/// The view of a session after one `read_file` of the whole file.
fn view_after_a_read(text: &Text) -> View {
    let path = RelPath::new("file").expect("a name");
    let wanted = LineSet::whole(text.line_count());
    let mut view = View::of(text);
    view.show_set(&ReadResult::of(path, text.clone(), wanted, LineNumbers::Anchors, &Limits::default()).full);
    view
}

/// An edit, and the texts around it.
struct Case<'a> {
    before: &'a Text,
    now: &'a Text,
    view: &'a View,
    theirs: &'a [Change],
    ours: &'a Change,
    expected: Text,
}

/// The result of one edit.
#[derive(Debug, Clone, Copy)]
enum Played {
    Made { is_right: bool },
    Beside,
    Refused(Reason),
}

impl Case<'_> {
    fn play(&self, dialect: Dialect) -> Result<Played> {
        let numbers: Vec<usize> = (1..=self.before.line_count()).collect();
        let picture = Picture { path: "file", text: self.before, numbers: &numbers };
        let (call, _) = dialect.call(&picture, std::slice::from_ref(self.ours));
        let word = |name: &str| call.arguments[name].as_str().unwrap_or_default();
        let (planned, quoted) = match dialect {
            Dialect::Replace => {
                let edit = Replace { old: word("old_string"), new: word("new_string"), all: false };
                (self.planned(|target| plan::edit_file(target, &edit)), self.quoted(edit.old))
            }
            Dialect::Patch | Dialect::UnifiedDiff => {
                let patch = patch::parse(word("patch"))?;
                let step = PatchStep { file: &patch.files[0], target: 0, to: None };
                let planned = self.planned(|target| plan::apply_patch(&[*target], &[step]).map(|mut plans| plans.remove(0).1));
                let FilePatch::Update { chunks, .. } = &patch.files[0] else { bail!("a patch that changes nothing") };
                (planned, self.quoted(&chunks[0].old_rows().collect::<Vec<_>>().join("\n")))
            }
            _ => (self.planned(|target| plan::edit_lines(target, &[self.line_edit(&new_text(&call.arguments))])), None),
        };
        Ok(match planned {
            Ok(planned) if planned.text() != Some(&self.expected) => Played::Made { is_right: false },
            // Counted whatever the result: leaving out only refused edits would flatter the share.
            _ if self.is_beside(dialect, quoted.as_ref()) => Played::Beside,
            Ok(_) => Played::Made { is_right: true },
            Err(refusal) => Played::Refused(self.reason(dialect, quoted, &refusal)),
        })
    }

    fn planned(&self, plan: impl FnOnce(&Target<'_>) -> Result<Planned, Refusal>) -> Result<Planned, Refusal> {
        let (path, limits, present) = (RelPath::new("file").expect("a name"), Limits::default(), Present::Text(self.now.clone()));
        let policy = Policy { on_change: OnChange::Rebase, ..Policy::default() };
        let tracking = Tracking::Seen { view: self.view, text: Some(self.before), provenance: None };
        plan(&Target { path: &path, tracking, present: &present, policy: &policy, limits: &limits })
    }

    fn line_edit(&self, text: &str) -> LineEdit {
        let text = text.to_owned();
        let anchor = |line: usize| Anchor::of(LineNo::at_index(line), self.before.line(LineNo::at_index(line)));
        match (self.ours.lines.clone(), self.ours.with.is_empty()) {
            (Range { start: 0, end: 0 }, _) => LineEdit::InsertBefore { at: anchor(0), text },
            (Range { start, end }, _) if start == end => LineEdit::InsertAfter { at: anchor(start - 1), text },
            (Range { start, end }, true) => LineEdit::Delete { at: anchor(start), to: anchor(end - 1) },
            (Range { start, end }, false) => LineEdit::Replace { at: anchor(start), to: anchor(end - 1), text },
        }
    }

    /// The lines that a text is quoted from.
    fn quoted(&self, old: &str) -> Option<Range<usize>> {
        let start = self.before.as_str().find(old).filter(|_| !old.is_empty())?;
        Some(self.before.line_at(start).index()..self.before.line_at(start + old.len() - 1).index() + 1)
    }

    /// Whether lines that it replaces, or lines beside them, were changed. A replacement of text replaces everything
    /// that it quotes; a patch leaves its context alone.
    fn is_beside(&self, dialect: Dialect, quoted: Option<&Range<usize>>) -> bool {
        let replaced = quoted.filter(|_| dialect == Dialect::Replace).unwrap_or(&self.ours.lines);
        self.is_changed(&self.with_neighbours(replaced))
    }

    fn with_neighbours(&self, lines: &Range<usize>) -> Range<usize> {
        lines.start.saturating_sub(1)..(lines.end + 1).min(self.before.line_count())
    }

    /// Whether one of these lines was changed, or something was put between them.
    fn is_changed(&self, lines: &Range<usize>) -> bool {
        let changes = |theirs: &Change| match theirs.lines.clone() {
            Range { start, end } if start == end => lines.start < start && start < lines.end,
            Range { start, end } => start < lines.end && lines.start < end,
        };
        self.theirs.iter().any(changes)
    }

    fn reason(&self, dialect: Dialect, quoted: Option<Range<usize>>, refusal: &Refusal) -> Reason {
        let named: LineSet = LineRange::from_indexes(self.with_neighbours(&self.ours.lines)).into_iter().collect();
        let is_shown = named.minus(&self.view.seen_lines()).is_empty();
        match quoted {
            None if dialect == Dialect::Lines && !is_shown => Reason::Unshown,
            Some(quoted) if !is_shown && self.is_changed(&quoted) => Reason::ContextChanged,
            Some(quoted) if self.stands_twice(&quoted) => Reason::Ambiguous,
            _ if refusal.code() == RefusalCode::Ambiguous => Reason::Ambiguous,
            _ => Reason::Unproven,
        }
    }

    fn stands_twice(&self, lines: &Range<usize>) -> bool {
        let quote = &self.before.as_str()[self.before.start_of(lines.start)..self.before.start_of(lines.end)];
        self.now.as_str().matches(quote.trim_end_matches('\n')).count() > 1
    }
}

fn new_text(arguments: &serde_json::Value) -> String {
    arguments["edits"][0]["text"].as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Plays changes of lines, given as (first, one past the last, replacement), and checks how many are rebased in
    /// each dialect.
    #[track_caller]
    fn check(before: &str, changes: &[(usize, usize, &str)], rebased: [usize; 4], reason: Option<Reason>) {
        let lines = |content: &str| content.split_inclusive('\n').map(str::to_owned).collect();
        let changes: Vec<Change> =
            changes.iter().map(|(start, end, with)| Change { lines: *start..*end, with: lines(with) }).collect();
        let mut report = Report::default();
        replay_changes(&mut report, "file", &Text::of(before.to_owned()).unwrap(), &changes).unwrap();
        assert_eq!(report.wrong(), 0);
        let of = |dialect: Dialect| report.tallies.iter().filter(move |((_, of), _)| *of == dialect).map(|(_, tally)| tally);
        assert_eq!(DIALECTS.map(|dialect| of(dialect).map(|tally| tally.rebased).sum::<usize>()), rebased);
        let refused: Vec<Reason> = report.tallies.values().flat_map(|tally| tally.refused.keys().copied()).collect();
        assert!(refused.iter().all(|refused| Some(*refused) == reason), "{refused:?}");
    }

    #[test]
    fn edits_of_other_lines_are_made() {
        check("a\nb\nc\nd\ne\nf\ng\n", &[(0, 1, "A\n"), (3, 4, "D\nDD\n"), (6, 7, "G\n")], [2; 4], None);
        check("a\nb\nc\nd\ne\nf\n", &[(1, 1, "x\n"), (4, 5, "")], [1; 4], None);
        check("a\nb\nc\nd\ne\nf\n", &[(0, 1, ""), (3, 3, "x\n"), (5, 6, "")], [2; 4], None);
    }

    #[test]
    fn a_refusal_has_a_reason() {
        // The first is beside a changed line, and does not count.
        check("a\nb\nc\nd\n", &[(0, 1, "A\n"), (1, 2, "B\n"), (3, 4, "D\n")], [1; 4], None);
        check("p\nq\n}\n}\n}\n}\nr\ns\n", &[(0, 1, "P\n"), (2, 3, ""), (5, 6, "]\n")], [1; 4], Some(Reason::Unproven));
    }
}
