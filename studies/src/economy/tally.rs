//! What was found, edit by edit, and what of it goes together.

use super::change::Contact;
use super::dialect::Dialect;
use super::play::{Again, Cost, End, Outcome, Reading, Strategy};

/// One edit, played once.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sample {
    /// Which of the sources it is from.
    pub source: usize,
    /// What somebody else did meanwhile; nothing if nobody did anything.
    pub contact: Option<Contact>,
    /// How changes were put.
    pub dialect: Dialect,
    /// How much was read.
    pub reading: Reading,
    /// What happened to a call that came too late.
    pub strategy: Strategy,
    /// Lines of the file.
    pub lines: usize,
    /// Lines that the edit replaced or removed.
    pub replaced: usize,
    /// What came of it.
    pub outcome: Outcome,
    /// What the same edit costs after the read if nobody does anything.
    pub undisturbed: Cost,
}

impl Sample {
    /// From the first read to the end.
    pub(crate) fn total(&self) -> f64 {
        (self.outcome.read.weighted() + self.outcome.rest.weighted()) as f64
    }

    /// After the first read.
    pub(crate) fn rest(&self) -> f64 {
        self.outcome.rest.weighted() as f64
    }

    /// What came on top because somebody else changed the file.
    pub(crate) fn extra(&self) -> f64 {
        self.rest() - self.undisturbed.weighted() as f64
    }
}

/// Everything that was found.
#[derive(Default)]
pub(crate) struct Tally {
    /// Every edit that was played.
    pub samples: Vec<Sample>,
    /// What it costs to do again what was done.
    pub again: Vec<Again>,
    /// Where the edits come from.
    pub sources: Vec<Source>,
}

/// A succession, and how much of it there is.
#[derive(Debug, Default)]
pub(crate) struct Source {
    /// What it is called.
    pub name: String,
    /// Files that were edited.
    pub files: usize,
    /// Edits: changes of a file from one version to the next.
    pub edits: usize,
    /// Edits after an outside change of other lines.
    pub elsewhere: usize,
    /// Edits after an outside change of the same lines.
    pub same_lines: usize,
    /// Changes that are too large to be an edit.
    pub too_large: usize,
    /// Edits that a tool would not make at all, in some dialect.
    pub unmade: usize,
}

impl Tally {
    /// The samples of which this is true.
    pub(crate) fn of<'a>(&'a self, wanted: impl Fn(&Sample) -> bool + 'a) -> Group<'a> {
        Group { samples: self.samples.iter().filter(|sample| wanted(sample)).collect() }
    }
}

/// Samples that go together.
pub(crate) struct Group<'a> {
    samples: Vec<&'a Sample>,
}

impl Group<'_> {
    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.samples.len()
    }

    /// How many ended so.
    pub(crate) fn ended(&self, end: End) -> usize {
        self.samples.iter().filter(|sample| sample.outcome.end == end).count()
    }

    /// For how many this is true, in percent.
    pub(crate) fn share(&self, of: impl Fn(&Sample) -> bool) -> f64 {
        self.mean(|sample| f64::from(u8::from(of(sample)))) * 100.0
    }

    /// The mean of a number of each.
    pub(crate) fn mean(&self, of: impl Fn(&Sample) -> f64) -> f64 {
        self.samples.iter().map(|sample| of(sample)).sum::<f64>() / self.samples.len() as f64
    }

    /// The median of a number of each.
    pub(crate) fn median(&self, of: impl Fn(&Sample) -> f64) -> f64 {
        median(self.samples.iter().map(|sample| of(sample)).collect())
    }
}

/// The middle one; not a number if there is none.
pub(super) fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    match numbers.len() {
        0 => f64::NAN,
        count if count % 2 == 1 => numbers[count / 2],
        count => f64::midpoint(numbers[count / 2 - 1], numbers[count / 2]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_median_is_the_middle() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(vec![4.0, 1.0, 2.0, 3.0]), 2.5);
        assert!(median(Vec::new()).is_nan());
    }
}
