//! Round trips of reads and edits at several file sizes. The servers run in rounds, and each of them starts a round in
//! turn.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use crate::bench::server::Launch;
use crate::bench::tool_dialect::Edit;
use crate::bench::{Bench, Contender, Pace, contenders};
use crate::files::{content, create, is_whole};
use crate::machine;
use crate::measurement::{PerServer, ServerId, Summary};

/// The call that is repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Reads the same unchanged file.
    Read,
    /// Another file with every call, round-robin.
    ReadOther,
    /// Replaces a token, and the next edit restores it.
    Edit,
    /// Replaces a token by a new one, so that no version of the file occurs twice.
    EditNew,
    /// As `Edit`, with ours and the floor not syncing.
    EditFast,
}

impl Kind {
    /// Measured with syncing servers, which is our default.
    pub(crate) const FULL: [Self; 4] = [Self::Read, Self::ReadOther, Self::Edit, Self::EditNew];
    /// Measured with servers that do not sync.
    pub(crate) const FAST: [Self; 1] = [Self::EditFast];
    /// Measured again with server and client on one core.
    pub(crate) const PINNED: [Self; 2] = [Self::Read, Self::Edit];

    /// The name in the report.
    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::ReadOther => "read, other file each time",
            Self::Edit => "edit",
            Self::EditNew => "edit, new content each time",
            Self::EditFast => "edit, fast",
        }
    }

    fn is_read(self) -> bool {
        matches!(self, Self::Read | Self::ReadOther)
    }

    /// The file sizes; the largest file is only read.
    fn sizes(self) -> &'static [Size] {
        if self.is_read() { &SIZES } else { &SIZES[..SIZES.len() - 1] }
    }

    /// The old and new token of a turn.
    fn tokens(self, turn: usize) -> (usize, usize) {
        match self {
            Self::EditNew => (turn, turn + 1),
            _ => (turn % 2, (turn + 1) % 2),
        }
    }
}

/// A file size and the number of calls.
pub(super) struct Size {
    /// The size in the report.
    pub label: &'static str,
    pub bytes: usize,
    /// The number of files for `ReadOther`.
    files: usize,
    /// Calls in a round.
    quick: usize,
    full: usize,
}

/// The sizes. Large files take longer, so they get fewer calls.
pub(super) const SIZES: [Size; 5] = [
    Size { label: "1 KB", bytes: 1 << 10, files: 64, quick: 100, full: 500 },
    Size { label: "10 KB", bytes: 10 << 10, files: 64, quick: 100, full: 400 },
    Size { label: "100 KB", bytes: 100 << 10, files: 64, quick: 40, full: 200 },
    Size { label: "1 MB", bytes: 1 << 20, files: 16, quick: 6, full: 32 },
    Size { label: "10 MB", bytes: 10 << 20, files: 3, quick: 2, full: 4 },
];

/// The times of one kind of call at one size.
pub(crate) struct CallRow {
    /// The kind of call.
    pub kind: Kind,
    /// The size of the file, for people.
    pub size: &'static str,
    /// The size of the file.
    pub bytes: usize,
    /// The times of all servers.
    pub times: PerServer<Summary>,
}

/// Measures the kinds at all sizes, with all servers running side by side.
pub(super) fn measure(bench: &Bench, launches: &PerServer<Launch>, kinds: &[Kind]) -> Result<Vec<CallRow>> {
    let roots = bench.workspaces()?;
    let workloads: Vec<_> = kinds.iter().flat_map(|&kind| kind.sizes().iter().map(move |size| Workload { kind, size })).collect();
    for workload in &workloads {
        roots.iter().try_for_each(|root| workload.create(root))?;
    }
    machine::settle();
    let mut field = contenders(launches, &roots)?;
    workloads.iter().map(|workload| workload.measure(bench.pace, &mut field)).collect()
}

/// One kind of call at one size, with its own files.
struct Workload {
    kind: Kind,
    size: &'static Size,
}

/// The progress of a server.
#[derive(Default)]
struct Track {
    turn: usize,
    times: Vec<Duration>,
}

/// The calls of a server before the next one has its turn: this many, or fewer if they take too long.
#[derive(Clone, Copy)]
struct Stint {
    calls: usize,
    within: Duration,
}

impl Workload {
    fn create(&self, root: &Path) -> Result<()> {
        self.paths().enumerate().try_for_each(|(seed, path)| create(root, &path, &content(seed, self.size.bytes)))
    }

    fn measure(&self, pace: Pace, field: &mut PerServer<Contender>) -> Result<CallRow> {
        let mut tracks = field.map(|_| Track::default());
        for server in field.order(0) {
            self.prepare(field.at_mut(server), tracks.at_mut(server), self.stint(pace, server))?;
        }
        for round in 0..pace.pick(4, 8) {
            for server in field.order(round) {
                self.round(field.at_mut(server), tracks.at_mut(server), self.stint(pace, server))?;
            }
        }
        let times = tracks.map(|track| Summary::of(&track.times));
        Ok(CallRow { kind: self.kind, size: self.size.label, bytes: self.size.bytes, times })
    }

    /// The slowest peers take a thousand times as long as the floor, and need fewer calls for a reliable result.
    fn stint(&self, pace: Pace, server: ServerId) -> Stint {
        let within = match server {
            ServerId::Peer(_) => Duration::from_millis(pace.pick(15, 100)),
            ServerId::Surehand | ServerId::Floor => Duration::MAX,
        };
        Stint { calls: pace.pick(self.size.quick, self.size.full), within }
    }

    /// Reads every file once, which our edits require, and makes warm-up calls.
    fn prepare(&self, contender: &mut Contender, track: &mut Track, stint: Stint) -> Result<()> {
        for path in self.paths() {
            contender.read(&path)?;
        }
        self.round(contender, track, Stint { calls: self.size.files.max(stint.calls / 2), ..stint })?;
        track.times.clear();
        Ok(())
    }

    /// The calls of one stint, and a check of their effect on disk.
    fn round(&self, contender: &mut Contender, track: &mut Track, stint: Stint) -> Result<()> {
        let began = Instant::now();
        for call in 0..stint.calls {
            if call > 0 && began.elapsed() > stint.within {
                break;
            }
            track.times.push(self.call(contender, track.turn)?);
            track.turn += 1;
        }
        if self.kind.is_read() { Ok(()) } else { contender.check(&self.edit(track.turn - 1)) }
    }

    fn call(&self, contender: &mut Contender, turn: usize) -> Result<Duration> {
        if !self.kind.is_read() {
            return Ok(contender.edit(&self.edit(turn))?.took());
        }
        let path = self.path(turn);
        let answer = contender.read(&path)?;
        ensure!(is_whole(&answer.text, turn % self.files(), self.size.bytes), "{path} is not shown whole");
        Ok(answer.took())
    }

    fn edit(&self, turn: usize) -> Edit {
        let (from, to) = self.kind.tokens(turn);
        Edit { path: self.path(turn), from, to }
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
        for kind in [Kind::Edit, Kind::EditNew, Kind::EditFast] {
            assert_eq!(kind.tokens(0).0, 0);
            for turn in 0..5 {
                let (old, new) = kind.tokens(turn);
                assert_ne!(old, new);
                assert_eq!(kind.tokens(turn + 1).0, new);
            }
        }
    }
}
