//! Round trips of reads and edits at four file sizes, the two servers in alternating rounds.

use std::ops::Range;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::json;

use crate::bench::{Bench, Contender, Pace, contenders};
use crate::files::{content, create, token};
use crate::machine;
use crate::sample::{Pair, Summary, order};
use crate::server::Launch;

/// What is called again and again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The same unchanged file.
    Read,
    /// Another file with every call, round-robin.
    ReadOther,
    /// A token is replaced, and the next edit turns it back.
    Edit,
    /// A token is replaced by one that was never there, so that no version of the file comes twice.
    EditNew,
    /// As `Edit`, with both servers syncing.
    EditSynced,
}

impl Kind {
    /// Measured in every run.
    pub const UNSYNCED: [Self; 4] = [Self::Read, Self::ReadOther, Self::Edit, Self::EditNew];
    /// Measured on request.
    pub const SYNCED: [Self; 1] = [Self::EditSynced];

    /// The name in the report.
    pub fn label(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::ReadOther => "read, other file each time",
            Self::Edit => "edit",
            Self::EditNew => "edit, new content each time",
            Self::EditSynced => "edit, synced",
        }
    }

    /// What the token is changed from and to in the given turn.
    fn tokens(self, turn: usize) -> (String, String) {
        match self {
            Self::EditNew => (token(turn), token(turn + 1)),
            _ => (token(turn % 2), token((turn + 1) % 2)),
        }
    }
}

/// A file size and how often it is measured.
struct Size {
    label: &'static str,
    bytes: usize,
    /// Over how many files `ReadOther` goes.
    files: usize,
    /// Calls in a round.
    quick: usize,
    full: usize,
}

/// The sizes; large files take longer, so they are called less often.
const SIZES: [Size; 4] = [
    Size { label: "1 KB", bytes: 1 << 10, files: 64, quick: 100, full: 500 },
    Size { label: "10 KB", bytes: 10 << 10, files: 64, quick: 100, full: 400 },
    Size { label: "100 KB", bytes: 100 << 10, files: 64, quick: 40, full: 200 },
    Size { label: "1 MB", bytes: 1 << 20, files: 16, quick: 6, full: 32 },
];

/// What one kind of call cost at one size.
pub struct CallRow {
    /// The kind of call.
    pub kind: Kind,
    /// The size of the file, for people.
    pub size: &'static str,
    /// The size of the file.
    pub bytes: usize,
    /// The times of both servers.
    pub times: Pair<Summary>,
}

/// Measures the kinds at all sizes, with both servers running side by side.
pub fn measure(bench: &Bench, launches: &Pair<Launch>, kinds: &[Kind]) -> Result<Vec<CallRow>> {
    let roots = bench.workspaces()?;
    let workloads: Vec<_> = kinds.iter().flat_map(|&kind| SIZES.iter().map(move |size| Workload { kind, size })).collect();
    for workload in &workloads {
        for root in [&roots.surehand, &roots.floor] {
            workload.paths().enumerate().try_for_each(|(seed, path)| create(root, &path, &content(seed, workload.size.bytes)))?;
        }
    }
    machine::settle();
    let mut pair = contenders(launches, &roots)?;
    workloads.iter().map(|workload| workload.measure(bench.pace, &mut pair)).collect()
}

/// One kind of call at one size, on files of its own.
struct Workload {
    kind: Kind,
    size: &'static Size,
}

impl Workload {
    fn measure(&self, pace: Pace, pair: &mut Pair<Contender>) -> Result<CallRow> {
        let calls = pace.pick(self.size.quick, self.size.full);
        let rounds = pace.pick(4, 8);
        let mut times = Pair::<Vec<Duration>>::default();
        // The first turns only warm up; every file has been read once after them, which an edit requires.
        let mut first = self.size.files.max(calls / 2);
        for side in order(0) {
            self.prepare(pair.side_mut(side), first)?;
        }
        for round in 0..rounds {
            let turns = first..first + calls;
            for side in order(round) {
                times.side_mut(side).extend(self.round(pair.side_mut(side), turns.clone())?);
            }
            first = turns.end;
        }
        Ok(CallRow { kind: self.kind, size: self.size.label, bytes: self.size.bytes, times: times.map(|all| Summary::of(all)) })
    }

    /// Reads every file once and makes the calls that are not counted.
    fn prepare(&self, contender: &mut Contender, turns: usize) -> Result<()> {
        for path in self.paths() {
            contender.client.call("read_file", json!({"path": path}))?;
        }
        self.round(contender, 0..turns).map(drop)
    }

    /// The calls of some turns, and a look at what they left on the disk.
    fn round(&self, contender: &mut Contender, turns: Range<usize>) -> Result<Vec<Duration>> {
        let last = turns.end - 1;
        let times = turns.map(|turn| self.call(contender, turn)).collect::<Result<_>>()?;
        if !matches!(self.kind, Kind::Read | Kind::ReadOther) {
            let path = contender.root.join(self.path(last));
            let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
            ensure!(text.contains(&self.kind.tokens(last).1), "{}: the edit is not on the disk", path.display());
        }
        Ok(times)
    }

    /// One timed call.
    fn call(&self, contender: &mut Contender, turn: usize) -> Result<Duration> {
        let path = self.path(turn);
        if matches!(self.kind, Kind::Read | Kind::ReadOther) {
            let answer = contender.client.call("read_file", json!({"path": path}))?;
            // Every line gains its number, so a whole file makes a text that is longer than the file.
            ensure!(answer.text.len() > self.size.bytes, "{path}: only {} bytes were returned", answer.text.len());
            return Ok(answer.took());
        }
        let (old, new) = self.kind.tokens(turn);
        let answer = contender.client.call("edit_file", json!({"path": path, "old_string": old, "new_string": new}))?;
        Ok(answer.took())
    }

    /// The file of a turn.
    fn path(&self, turn: usize) -> String {
        format!("{:?}-{}/file-{:02}.txt", self.kind, self.size.bytes, turn % self.files())
    }

    fn paths(&self) -> impl Iterator<Item = String> {
        (0..self.files()).map(|file| self.path(file))
    }

    fn files(&self) -> usize {
        if self.kind == Kind::ReadOther { self.size.files } else { 1 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_edit_starts_from_what_the_one_before_left() {
        for kind in [Kind::Edit, Kind::EditNew, Kind::EditSynced] {
            assert_eq!(kind.tokens(0).0, token(0));
            for turn in 0..5 {
                let (old, new) = kind.tokens(turn);
                assert_ne!(old, new);
                assert_eq!(kind.tokens(turn + 1).0, new);
            }
        }
    }
}
