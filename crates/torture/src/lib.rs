//! The torture: proof, to be had again by anyone, that Surehand loses nothing. Real processes are killed, raced and starved on real
//! files, and what is on the disk afterwards is compared with what everybody was told. Every choice comes from a seed; the
//! timing is the machine's. A check is a law: it holds whatever the timing was.
#![allow(clippy::disallowed_methods, reason = "it plays the other programs")]

mod account;
mod capable;
mod client;
mod filesystems;
mod hostile;
mod kill;
mod metadata;
mod mounts;
mod race;
mod ring;
mod scene;
mod tree;

use std::{
    path::PathBuf,
    time::{Duration, Instant},
};

pub use account::{Outcome, Report, Tally, Violation};
use anyhow::Result;
use surehand_testkit::dice::Dice;

/// What is tortured, and for how long.
#[derive(Debug, Clone)]
pub struct Torture {
    /// The `surehand` binary.
    pub program: PathBuf,
    /// Every choice comes from it.
    pub seed: u64,
    /// How long each part goes on. A round that has begun is finished.
    pub time: Duration,
    /// Where the workspaces are.
    pub dir: PathBuf,
    /// Whether progress is told on standard error.
    pub progress: Progress,
}

/// Whether progress is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// On standard error.
    Told,
    /// Not at all.
    Silent,
}

/// The parts of the torture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Processes are killed at any instant of a call: files are whole, batches all or nothing, nothing is left lying about.
    Kill,
    /// Several processes and other programs on the same files: every token that anybody wrote is accounted for.
    Race,
    /// Other programs change mode, group and attributes of files that are being edited: all of it stays.
    Metadata,
    /// No space, no rights, no state, links that lead outside: the original stays, and the server goes on.
    Hostile,
    /// Kills and races on every file system that can be had here.
    Filesystems,
}

impl Part {
    /// All of them, in the order in which they are run.
    pub const ALL: [Part; 5] = [Part::Kill, Part::Race, Part::Metadata, Part::Hostile, Part::Filesystems];

    /// Its name, as it is typed and reported.
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
    /// Runs one part and says what came of it.
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

    /// Plays rounds until the time is over, at least one, each with dice of its own.
    fn rounds(&self, name: &str, mut play: impl FnMut(usize, &mut Dice, &mut Outcome) -> Result<()>) -> Result<Outcome> {
        let mut outcome = Outcome::new(name);
        let until = Instant::now() + self.time;
        for round in 0.. {
            let mut dice = Dice::new(self.seed.wrapping_mul(1_000_003).wrapping_add(round as u64));
            play(round, &mut dice, &mut outcome)?;
            outcome.tally.rounds += 1;
            self.tell(&outcome, until);
            if Instant::now() >= until {
                break;
            }
        }
        Ok(outcome)
    }

    fn tell(&self, outcome: &Outcome, until: Instant) {
        if self.progress == Progress::Told {
            let left = until.saturating_duration_since(Instant::now()).as_secs();
            eprintln!("{}: {}, {} violations, {left} s to go", outcome.name, outcome.tally, outcome.violations.len());
        }
    }
}
