//! Rebase over real histories: of two successive commits of a file, the first is the outside change, and the second is
//! the edit of a session that has only seen the file before both. If the edit is rebased, the result must be that of a
//! session that saw the first commit. If it touches lines that the commit changed, it must be refused. [`divided`]
//! takes both from one commit.

pub(crate) mod divided;

use std::path::Path;

use anyhow::{Result, ensure};
use surehand_core::edit::lines::LineEdit;
use surehand_core::edit::replace::Replace;
use surehand_core::gate::Tracking;
use surehand_core::{
    Anchor, Hunk, Limits, LineMap, LineNo, OnChange, Planned, Policy, Present, Refusal, RefusalCode, RelPath, Target, Text, View,
    plan,
};

use crate::git;

/// The results of the edits.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// Pairs of successive commits of one file.
    pub pairs: usize,
    /// Edits that a session could have sent.
    pub edits: usize,
    /// Made at their new place, with the right result.
    pub rebased: usize,
    /// Refused, because the edited lines or their neighbours had changed or could not be distinguished.
    pub refused: usize,
}

/// Replays the history of a repository, newest commits first, with at most this many pairs.
pub(crate) fn replay(repository: &Path, most: usize) -> Result<Tally> {
    let mut tally = Tally::default();
    let mut objects = git::Objects::open(repository)?;
    for versions in git::versions(repository)?.into_values() {
        // Newest first: the edit, the outside change, and the text before both.
        for three in versions.windows(3) {
            if tally.pairs == most {
                return Ok(tally);
            }
            let texts = three.iter().map(|id| objects.text(id)).collect::<Result<Option<Vec<Text>>>>()?;
            if let Some([edited, outside, seen]) = texts.as_deref() {
                tally.pairs += 1;
                replay_pair(&mut tally, seen, outside, edited)?;
            }
        }
    }
    Ok(tally)
}

fn replay_pair(tally: &mut Tally, seen: &Text, outside: &Text, edited: &Text) -> Result<()> {
    if seen == outside {
        return Ok(());
    }
    let theirs = LineMap::between(seen, outside);
    for hunk in LineMap::between(outside, edited).hunks() {
        let edit = EditOf { theirs: &theirs, outside, edited, hunk };
        for dialect in [EditOf::by_text, EditOf::by_lines] {
            let Some((rebased, known)) = dialect(&edit, seen) else { continue };
            if known.as_ref().is_err_and(|refusal| refusal.code() == RefusalCode::NoChange) {
                // For example, a last line that only gets an ending: by lines, that is not an edit.
                continue;
            }
            tally.edits += 1;
            match rebased {
                Ok(rebased) => {
                    let known = known.map_err(|refusal| anyhow::anyhow!("refused to who saw it: {}", refusal.code()))?;
                    ensure!(rebased.text() == known.text(), "another result than that of who saw the change");
                    ensure!(!edit.touches_theirs(), "an edit of a changed line was made");
                    tally.rebased += 1;
                }
                Err(refusal) => {
                    ensure!(refusal.code() == RefusalCode::Stale, "refused as {}", refusal.code());
                    tally.refused += 1;
                }
            }
        }
    }
    Ok(())
}

/// The plans of a session that saw only the old text, and of one that saw the new one.
type Plans = (Result<Planned, Refusal>, Result<Planned, Refusal>);

/// One hunk of the second commit, as an edit.
struct EditOf<'a> {
    /// The change of the first commit.
    theirs: &'a LineMap,
    outside: &'a Text,
    edited: &'a Text,
    hunk: &'a Hunk,
}

impl EditOf<'_> {
    /// As a replacement of text, with a line of context on each side; only if the session could have sent it.
    fn by_text(&self, seen: &Text) -> Option<Plans> {
        let above = self.hunk.before.start.saturating_sub(1);
        let shown = |text: &Text, from: usize, to: usize| {
            (from..to).map(|line| text.full_line(LineNo::at_index(line))).collect::<String>()
        };
        let below = (self.hunk.before.end + 1).min(self.outside.line_count());
        let old = shown(self.outside, above, below);
        let new = shown(self.outside, above, self.hunk.before.start)
            + &shown(self.edited, self.hunk.after.start, self.hunk.after.end)
            + &shown(self.outside, self.hunk.before.end, below);
        let is_once = seen.as_str().matches(&old).count() == 1;
        if old.is_empty() || old == new || !is_once {
            return None;
        }
        let edit = Replace { old: &old, new: &new, all: false };
        Some(plans(seen, self.outside, |target| plan::edit_file(target, &edit), |target| plan::edit_file(target, &edit)))
    }

    /// The edit as a replacement of lines by their anchors, if the session saw those lines once.
    fn by_lines(&self, seen: &Text) -> Option<Plans> {
        let old: Vec<&str> = self.hunk.before.clone().map(|line| self.outside.full_line(LineNo::at_index(line))).collect();
        let (first, last) = (self.hunk.before.start, self.hunk.before.end.checked_sub(1).filter(|_| !old.is_empty())?);
        let lines: Vec<&str> = seen.full_lines().collect();
        let mut places = (0..lines.len().saturating_sub(old.len() - 1)).filter(|at| lines[*at..at + old.len()] == old);
        let (place, None) = (places.next()?, places.next()) else { return None };
        // The first commit may have added the same lines a second time: then these are not the ones that the session
        // saw.
        if self.theirs.new_place(LineNo::at_index(place)).is_some_and(|line| line.index() != first) {
            return None;
        }
        let new: String = self.hunk.after.clone().map(|line| self.edited.full_line(LineNo::at_index(line))).collect();
        let edit = |text: &Text, from: usize, to: usize| {
            let anchor = |line: usize| Anchor::of(LineNo::at_index(line), text.line(LineNo::at_index(line)));
            let (at, to) = (anchor(from), anchor(to));
            if new.is_empty() { LineEdit::Delete { at, to } } else { LineEdit::Replace { at, to, text: new.clone() } }
        };
        let meant = edit(seen, place, place + old.len() - 1);
        let known = edit(self.outside, first, last);
        Some(plans(seen, self.outside, |t| plan::edit_lines(t, &[meant]), |t| plan::edit_lines(t, &[known])))
    }

    /// Whether it replaces a line that the first commit added.
    fn touches_theirs(&self) -> bool {
        self.theirs.hunks().iter().any(|hunk| hunk.after.start < self.hunk.before.end && self.hunk.before.start < hunk.after.end)
    }
}

fn plans(
    seen: &Text,
    now: &Text,
    meant: impl FnOnce(&Target<'_>) -> Result<Planned, Refusal>,
    known: impl FnOnce(&Target<'_>) -> Result<Planned, Refusal>,
) -> Plans {
    let (path, limits, present) = (RelPath::new("file").expect("a name"), Limits::default(), Present::Text(now.clone()));
    let policy = Policy { on_change: OnChange::Rebase, ..Policy::default() };
    let target = |view, text| {
        let tracking = Tracking::Seen { view, text: Some(text), provenance: None };
        Target { path: &path, tracking, present: &present, policy: &policy, limits: &limits }
    };
    (meant(&target(&View::whole(seen), seen)), known(&target(&View::whole(now), now)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A small history of our own: one edit beside the change of another, one in it, one elsewhere.
    #[test]
    fn a_history_is_replayed() {
        let dir = tempfile::tempdir().unwrap();
        let run = |words: &[&str]| drop(git::git(dir.path(), words).unwrap());
        run(&["init", "-q"]);
        let lines = |change: &dyn Fn(usize) -> String| (1..=20).map(|line| change(line) + "\n").collect::<String>();
        let plain = |line: usize| format!("line {line}");
        let versions = [
            lines(&plain),
            lines(&|line| if line == 3 { "theirs\nmore".to_owned() } else { plain(line) }),
            lines(&|line| match line {
                3 => "theirs\nand ours".to_owned(),
                12 => "ours".to_owned(),
                line => plain(line),
            }),
        ];
        for (number, content) in versions.iter().enumerate() {
            std::fs::write(dir.path().join("a.txt"), content).unwrap();
            run(&["add", "."]);
            let author = ["-c", "user.name=a", "-c", "user.email=a@b.c"];
            run(&[&author[..], &["commit", "-q", "-m", &number.to_string()]].concat());
        }
        let tally = replay(dir.path(), 10).unwrap();
        assert_eq!((tally.pairs, tally.rebased), (1, 2), "{tally:?}");
    }
}
