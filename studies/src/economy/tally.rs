//! The results, edit by edit, and their aggregation.

use super::change::Contact;
use super::dialect::Dialect;
use super::play::{Again, Cost, End, Outcome, Reading, Strategy};

/// One edit, played once.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sample {
    /// Which of the sources it is from.
    pub source: usize,
    /// How the outside change met the edit; `None` without one.
    pub contact: Option<Contact>,
    /// How changes were put.
    pub dialect: Dialect,
    /// How much was read.
    pub reading: Reading,
    /// The treatment of a call that comes too late.
    pub strategy: Strategy,
    /// Lines of the file.
    pub lines: usize,
    /// Lines that the edit replaced or removed.
    pub replaced: usize,
    pub outcome: Outcome,
    /// The cost of the same edit after the read, without an outside change.
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

    /// The additional cost because of the outside change.
    pub(crate) fn extra(&self) -> f64 {
        self.rest() - self.undisturbed.weighted() as f64
    }
}

/// Everything that was found.
#[derive(Default)]
pub(crate) struct Tally {
    /// Every edit that was played.
    pub samples: Vec<Sample>,
    /// The cost of repetitions.
    pub again: Vec<Again>,
    /// The measured successions.
    pub sources: Vec<Source>,
}

/// A succession, and its size.
#[derive(Debug, Default)]
pub(crate) struct Source {
    /// The name in the report.
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
    /// Edits that a tool would not make in some dialect.
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

/// The median; NaN if there are no numbers.
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
