//! The benchmark as a whole: which parts run, how long each may take, and where their workspaces are.

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result};
use tempfile::TempDir;

use crate::calls::{self, Kind};
use crate::client::Client;
use crate::floor::Durability;
use crate::report::Report;
use crate::sample::{Pair, Side};
use crate::server::Launch;
use crate::{depth, growth, machine, scan, search, start};

/// How much is measured.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// A look in half a minute.
    Quick,
    /// Numbers to publish, in a few minutes.
    Full,
}

impl Pace {
    /// `quick` or `full`.
    pub fn pick<T>(self, quick: T, full: T) -> T {
        match self {
            Self::Quick => quick,
            Self::Full => full,
        }
    }
}

/// A benchmark that is ready to run; its workspaces vanish with it.
pub struct Bench {
    /// How much is measured.
    pub pace: Pace,
    /// Both servers without syncing.
    pub fast: Pair<Launch>,
    /// Both servers with syncing, if that is measured too.
    pub full: Option<Pair<Launch>>,
    directory: TempDir,
}

/// A server at work and its workspace.
pub struct Contender {
    /// The connection.
    pub client: Client,
    /// The workspace.
    pub root: PathBuf,
}

impl Bench {
    /// Prepares to measure the server binary `server`, with synced edits if `durability` is full.
    pub fn new(server: &Path, pace: Pace, durability: Durability) -> Result<Self> {
        let directory = tempfile::Builder::new().prefix("surehand-bench-").tempdir().context("a temporary directory")?;
        machine::spread(directory.path());
        let launches = |durability| Pair::of(|side| Launch::new(side, server, durability, directory.path()));
        let full = (durability == Durability::Full).then(|| launches(Durability::Full)).transpose()?;
        Ok(Self { pace, fast: launches(Durability::Fast)?, full, directory })
    }

    /// Measures everything, one part after the other.
    pub fn run(&self) -> Result<Report> {
        let began = Instant::now();
        // Described first, because a pinned program sees a single core.
        let machine = machine::describe();
        let pinned = machine::pin()?;
        progress("calls");
        let mut calls = calls::measure(self, &self.fast, &Kind::UNSYNCED)?;
        if let Some(full) = &self.full {
            progress("synced edits");
            calls.extend(calls::measure(self, full, &Kind::SYNCED)?);
        }
        progress("depth");
        let depth = depth::measure(self)?;
        progress("growth");
        let (growth, grown) = growth::measure(self)?;
        progress("start");
        let start = start::measure(self, &grown, growth.files)?;
        drop(pinned);
        // Last, because of the many files that they make: the system goes on writing them for a while.
        progress("search");
        let search = search::measure(self)?;
        progress("scan");
        let scan = scan::measure(self)?;
        Ok(Report { machine, pace: self.pace, calls, depth, growth, start, search, scan, took: began.elapsed() })
    }

    /// A new empty workspace for each server.
    pub fn workspaces(&self) -> Result<Pair<PathBuf>> {
        Pair::of(|_| Ok(tempfile::Builder::new().prefix("workspace-").tempdir_in(self.directory.path())?.keep()))
            .context("a workspace")
    }
}

/// Starts each server on its workspace.
pub fn contenders(launches: &Pair<Launch>, roots: &Pair<PathBuf>) -> Result<Pair<Contender>> {
    Pair::of(|side: Side| {
        let root = roots.side(side).clone();
        Ok(Contender { client: Client::start(launches.side(side), &root)?, root })
    })
}

/// Says on stderr what is being measured, because a run takes a while.
fn progress(part: &str) {
    eprintln!("measuring {part} ...");
}
