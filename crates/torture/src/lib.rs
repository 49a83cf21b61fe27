//! Torture: a repeatable proof that Surehand loses nothing. It kills, races and starves real processes on real files,
//! and then compares the disk with every answer that the processes gave. Every choice comes from a seed, and the timing
//! from the machine. Each check is a law that holds for any timing.
#![allow(clippy::disallowed_methods, reason = "it plays the other programs")]

mod client;
mod file_set;
mod filesystems;
mod fs_features;
mod hostile;
mod kill;
mod metadata;
mod mounts;
mod race;
mod report;
mod test_workspace;
mod tree;

use std::{
    path::PathBuf,
    time::{Duration, Instant},
};

use anyhow::Result;
pub use report::{PartOutcome, Report, Tally, Violation};
use surehand_testkit::rng::Rng;

/// A run of the torture.
#[derive(Debug, Clone)]
pub struct Torture {
    /// The path of the `surehand` binary.
    pub program: PathBuf,
    /// The seed of every choice.
    pub seed: u64,
    /// How long each part runs. A round that has begun is finished.
    pub time: Duration,
    /// The directory for the workspaces.
    pub dir: PathBuf,
    /// Where to report progress.
    pub progress: Progress,
}

/// Where to report progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// On standard error.
    Reported,
    /// Progress is not reported.
    Silent,
}

/// The parts of the torture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Kills processes at any instant of a call: files stay whole, batches are all or nothing, and no temporary file is
    /// left.
    Kill,
    /// Runs several processes and other programs on the same files, and accounts for every token written.
    Race,
    /// Changes mode, group and attributes of files during edits: all of these changes survive.
    Metadata,
    /// Takes away space, permissions and state, and swaps in links to the outside: originals survive, and so does the
    /// server.
    Hostile,
    /// Runs kills and races on every available file system.
    Filesystems,
}

impl Part {
    /// All parts, in the order in which they run.
    pub const ALL: [Part; 5] = [Part::Kill, Part::Race, Part::Metadata, Part::Hostile, Part::Filesystems];

    /// The name on the command line and in reports.
    pub fn name(self) -> &'static str {
        match self {
            Part::Kill => "kill",
            Part::Race => "race",
            Part::Metadata => "metadata",
            Part::Hostile => "hostile",
            Part::Filesystems => "filesystems",
        }
    }
}

impl Torture {
    /// Runs one part and reports its outcomes.
    pub fn run(&self, part: Part) -> Result<Report> {
        let outcomes = match part {
            Part::Kill => vec![kill::run(self, part.name())?],
            Part::Race => vec![race::run(self, part.name())?],
            Part::Metadata => vec![metadata::run(self, part.name())?],
            Part::Hostile => vec![hostile::run(self, part.name())?],
            Part::Filesystems => filesystems::run(self, part.name())?,
        };
        Ok(Report { seed: self.seed, outcomes })
    }

    /// Plays at least one round, then more until the time is over. Each has its own random numbers.
    fn rounds(&self, name: &str, mut play: impl FnMut(usize, &mut Rng, &mut PartOutcome) -> Result<()>) -> Result<PartOutcome> {
        let mut outcome = PartOutcome::new(name);
        let until = Instant::now() + self.time;
        for round in 0.. {
            let mut rng = Rng::new(self.seed.wrapping_mul(1_000_003).wrapping_add(round as u64));
            play(round, &mut rng, &mut outcome)?;
            outcome.tally.rounds += 1;
            self.tell(&outcome, until);
            if Instant::now() >= until {
                break;
            }
        }
        Ok(outcome)
    }

    fn tell(&self, outcome: &PartOutcome, until: Instant) {
        if self.progress == Progress::Reported {
            let left = until.saturating_duration_since(Instant::now()).as_secs();
            eprintln!("{}: {}, {} violations, {left} s to go", outcome.name, outcome.tally, outcome.violations.len());
        }
    }
}
