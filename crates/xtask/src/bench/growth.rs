//! Whether a session slows down as it touches more files: every file of a large workspace is read and edited once. The
//! peers, most of which are much slower, do a tenth of it.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, ensure};

use crate::bench::tool_dialect::Edit;
use crate::bench::{Bench, Contender, contenders};
use crate::files::{content, create, is_whole};
use crate::machine;
use crate::measurement::{PerServer, ServerId, median};

/// Size of a file in bytes.
const BYTES: usize = 200;
/// Files in a directory, and files of a server before the next one has its turn.
const CHUNK: usize = 100;
/// A peer does one file for this many of ours and the floor.
const SHARE: usize = 10;
/// Files before the early window: the first calls find everything cold.
const SKIPPED: usize = 10;
/// Files in the early and in the late window.
const WINDOW: usize = 100;

pub(crate) struct Growth {
    /// The files that ours and the floor have read and edited.
    pub files: usize,
    /// The files of the peers.
    pub files_of_peers: usize,
    /// One row for reads, one for edits.
    pub rows: [(&'static str, PerServer<Windows>); 2],
    /// Resident memory of the servers in KiB, after the calls that all of them make.
    pub resident_kib: PerServer<u64>,
    /// Resident memory of ours and the floor after all calls.
    pub resident_kib_after_all: [u64; 2],
}

/// Medians at the beginning and at the end of the session.
#[derive(Clone, Copy)]
pub(crate) struct Windows {
    /// Around the first files.
    pub early: Duration,
    /// Around the last files.
    pub late: Duration,
}

/// The times of one server, and its memory after the calls that all of them make.
#[derive(Default)]
struct Track {
    reads: Vec<Duration>,
    edits: Vec<Duration>,
    resident_kib: u64,
}

/// Measures growth. Returns the workspaces with the state left in them.
pub(super) fn measure(bench: &Bench) -> Result<(Growth, PerServer<PathBuf>)> {
    let files = bench.pace.pick(5_000, 10_000);
    let files_of_peers = files / SHARE;
    let roots = bench.workspaces()?;
    for (server, root) in roots.by_server() {
        (0..files / share(server)).try_for_each(|file| create(root, &path(file), &content(file, BYTES)))?;
    }
    machine::settle();
    let mut field = contenders(&bench.fast, &roots)?;
    let mut tracks = field.map(|_| Track::default());
    for chunk in 0..files / CHUNK {
        for server in field.order(chunk) {
            let size = CHUNK / share(server);
            let (contender, track) = (field.at_mut(server), tracks.at_mut(server));
            for file in chunk * size..(chunk + 1) * size {
                visit(contender, track, file)?;
            }
            if track.reads.len() == files_of_peers {
                track.resident_kib = contender.client.resident_kib()?;
            }
        }
    }
    let growth = Growth {
        files,
        files_of_peers,
        rows: [("read", tracks.map(|track| windows(&track.reads))), ("edit", tracks.map(|track| windows(&track.edits)))],
        resident_kib: tracks.map(|track| track.resident_kib),
        resident_kib_after_all: [field.surehand.client.resident_kib()?, field.floor.client.resident_kib()?],
    };
    Ok((growth, roots))
}

/// How many files ours and the floor do for one of a peer.
fn share(server: ServerId) -> usize {
    match server {
        ServerId::Surehand | ServerId::Floor => 1,
        ServerId::Peer(_) => SHARE,
    }
}

/// Reads and edits a file.
fn visit(contender: &mut Contender, track: &mut Track, file: usize) -> Result<()> {
    let edit = Edit { path: path(file), from: 0, to: 1 };
    let shown = contender.read(&edit.path)?;
    ensure!(is_whole(&shown.text, file, BYTES), "{} is not shown whole", edit.path);
    track.reads.push(shown.took());
    track.edits.push(contender.edit(&edit)?.took());
    contender.check(&edit)
}

/// Reduces the times of all files to the two windows.
fn windows(all: &[Duration]) -> Windows {
    Windows { early: median(&all[SKIPPED..SKIPPED + WINDOW]), late: median(&all[all.len() - WINDOW..]) }
}

/// The path of a file in the workspace.
pub(super) fn path(file: usize) -> String {
    format!("directory-{:03}/file-{:02}.txt", file / CHUNK, file % CHUNK)
}
