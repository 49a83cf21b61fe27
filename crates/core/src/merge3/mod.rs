//! The three-way merge of `git merge-file`: which changes of two versions can be combined, and which conflict.
//!
//! The result equals git's, byte by byte: the same differences ([`hunks`]), the same conflicts, the same lines between
//! the markers. The work is bounded: above the limit the merge fails, but it never gives a wrong result.

mod myers;
mod refine;
mod regions;
mod slide;
mod written;

use std::{collections::HashMap, ops::Range};

pub use self::written::MarkerNames;
use self::{
    myers::ChangedLines,
    refine::MergePart,
    regions::{Origin, Region, regions},
};
use crate::line_map::Hunk;

/// The number of a line; equal lines share it.
type Token = u32;

/// The reason why two versions were not merged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotMerged {
    /// Git treats one of the versions as binary, and does not merge it.
    #[error("a version is binary")]
    Binary,
    /// The versions are so large, or so different, that comparing them would take too long.
    #[error("the comparison would take too long")]
    TooMuchWork,
}

/// Lines that both versions changed in different ways. Indexes are 0-based and half-open, and may be empty.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Conflict {
    /// The lines of my version between the markers.
    pub mine: Range<usize>,
    /// The lines of their version between the markers.
    pub theirs: Range<usize>,
    /// The lines of my version that I changed there.
    pub my_change: Range<usize>,
    /// The lines of my version where they changed something.
    pub their_change: Range<usize>,
}

/// The merge of two versions that come from the same base.
#[derive(Debug)]
pub struct Merge3<'a> {
    base: Vec<&'a [u8]>,
    mine: Vec<&'a [u8]>,
    theirs: Vec<&'a [u8]>,
    parts: Vec<MergePart>,
    my_hunks: Vec<Hunk>,
    their_hunks: Vec<Hunk>,
}

/// Merges two versions of a text with the same base.
///
/// ```
/// use surehand_core::merge3::merge3;
///
/// let base = b"a\nb\nc\nd\n";
/// assert!(merge3(base, b"A\nb\nc\nd\n", b"a\nb\nc\nD\n")?.is_clean());
/// let merge = merge3(base, b"a\nB\nc\nd\n", b"a\nb\nC\nd\n")?;
/// assert_eq!(merge.conflicts()[0].mine, 1..3, "changes of adjacent lines conflict");
/// # Ok::<(), surehand_core::merge3::NotMerged>(())
/// ```
pub fn merge3<'a>(base: &'a [u8], mine: &'a [u8], theirs: &'a [u8]) -> Result<Merge3<'a>, NotMerged> {
    if [base, mine, theirs].into_iter().any(is_binary) {
        return Err(NotMerged::Binary);
    }
    let mut comparison = Comparison::default();
    let (base_lines, base_tokens) = comparison.lines(base)?;
    let (my_lines, my_tokens) = comparison.lines(mine)?;
    let (their_lines, their_tokens) = comparison.lines(theirs)?;
    let my_hunks = comparison.hunks(&base_tokens, &my_tokens)?;
    let their_hunks = comparison.hunks(&base_tokens, &their_tokens)?;
    let is_same =
        |my: &Hunk, their: &Hunk| my.before == their.before && my_tokens[my.after.clone()] == their_tokens[their.after.clone()];
    let regions = regions(&my_hunks, &their_hunks, is_same);
    let parts = refine::parts(regions, &my_lines, [&my_tokens, &their_tokens], &mut comparison)?;
    Ok(Merge3 { base: base_lines, mine: my_lines, theirs: their_lines, parts, my_hunks, their_hunks })
}

/// The differences between two texts, as the merge computes them.
///
/// They are git's, without its heuristic for indented lines, which only improves how a diff reads.
pub fn hunks(old: &[u8], new: &[u8]) -> Result<Vec<Hunk>, NotMerged> {
    if [old, new].into_iter().any(is_binary) {
        return Err(NotMerged::Binary);
    }
    let mut comparison = Comparison::default();
    let (_, old) = comparison.lines(old)?;
    let (_, new) = comparison.lines(new)?;
    comparison.hunks(&old, &new)
}

/// Where two lists of differences overlap or touch, regardless of their contents. Each overlap is a conflict, unless
/// both sides have the same lines there.
pub(crate) fn overlaps(my_hunks: &[Hunk], their_hunks: &[Hunk]) -> Vec<Conflict> {
    let regions = regions(my_hunks, their_hunks, |_, _| false);
    let both = regions.into_iter().filter(|region| region.origin == Origin::Both);
    both.map(|region| MergePart::of(region).conflict(my_hunks, their_hunks)).collect()
}

/// Whether git treats this content as binary.
pub fn is_binary(content: &[u8]) -> bool {
    const LOOKED_AT: usize = 8000;
    memchr::memchr(0, &content[..content.len().min(LOOKED_AT)]).is_some()
}

/// The lines of a text, each with its ending.
pub(crate) fn split_lines(content: &[u8]) -> impl Iterator<Item = &[u8]> {
    content.split_inclusive(|byte| *byte == b'\n')
}

impl Merge3<'_> {
    /// Whether the merge has no conflict.
    pub fn is_clean(&self) -> bool {
        self.parts.iter().all(|part| part.origin != Origin::Both)
    }

    /// The conflicts, from top to bottom.
    pub fn conflicts(&self) -> Vec<Conflict> {
        let both = self.parts.iter().filter(|part| part.origin == Origin::Both);
        both.map(|part| part.conflict(&self.my_hunks, &self.their_hunks)).collect()
    }
}

/// The work that one comparison may take. One unit is about a nanosecond.
const MOST_EFFORT: usize = 100_000_000;

#[derive(Debug)]
struct Effort(usize);

impl Effort {
    fn spend(&mut self, units: usize) -> Result<(), NotMerged> {
        self.0 = self.0.checked_sub(units).ok_or(NotMerged::TooMuchWork)?;
        Ok(())
    }
}

/// State shared by the comparisons of several texts.
struct Comparison<'a> {
    tokens: HashMap<&'a [u8], Token, foldhash::fast::RandomState>,
    /// A zero for each token; scratch space of [`myers::mark`].
    counts: Vec<u32>,
    effort: Effort,
}

impl Default for Comparison<'_> {
    fn default() -> Self {
        Self { tokens: HashMap::default(), counts: Vec::new(), effort: Effort(MOST_EFFORT) }
    }
}

impl<'a> Comparison<'a> {
    fn lines(&mut self, text: &'a [u8]) -> Result<(Vec<&'a [u8]>, Vec<Token>), NotMerged> {
        self.effort.spend(text.len())?;
        let lines: Vec<&[u8]> = split_lines(text).collect();
        let mut token_of = |line: &&'a [u8]| {
            let next = self.tokens.len() as Token;
            *self.tokens.entry(line).or_insert(next)
        };
        let tokens = lines.iter().map(&mut token_of).collect();
        self.counts.resize(self.tokens.len(), 0);
        Ok((lines, tokens))
    }

    fn hunks(&mut self, old: &[Token], new: &[Token]) -> Result<Vec<Hunk>, NotMerged> {
        let ChangedLines { old: mut removed, new: mut added } = myers::mark(old, new, &mut self.counts, &mut self.effort)?;
        slide::settle(old, &mut removed, &added, &mut self.effort)?;
        slide::settle(new, &mut added, &removed, &mut self.effort)?;
        Ok(hunks_of(&removed, &added))
    }
}

fn hunks_of(removed: &[bool], added: &[bool]) -> Vec<Hunk> {
    let (mut hunks, mut old, mut new) = (Vec::new(), 0, 0);
    while old < removed.len() || new < added.len() {
        let hunk = Hunk { before: old..slide::run_end(removed, old), after: new..slide::run_end(added, new) };
        (old, new) = (hunk.before.end + 1, hunk.after.end + 1);
        if !hunk.before.is_empty() || !hunk.after.is_empty() {
            hunks.push(hunk);
        }
    }
    hunks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comparison_that_would_take_too_long_ends_without_an_answer() {
        let text = |step: u32| -> String { (0..3000).map(|line| format!("{}\n", line * step % 61)).collect() };
        let (old, new) = (text(7), text(11));
        let hunks = |effort: usize| {
            let mut comparison = Comparison { effort: Effort(effort), ..Comparison::default() };
            let (_, old) = comparison.lines(old.as_bytes())?;
            let (_, new) = comparison.lines(new.as_bytes())?;
            comparison.hunks(&old, &new)
        };
        assert_eq!(hunks(100_000), Err(NotMerged::TooMuchWork));
        assert!(!hunks(MOST_EFFORT).unwrap().is_empty());
    }
}
