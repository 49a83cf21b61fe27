//! Whether a session slows down as it touches more files: every file of a large workspace is read and edited once.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use serde_json::json;

use crate::bench::{Bench, Contender, contenders};
use crate::files::{content, create, token};
use crate::machine;
use crate::sample::{Pair, median, order};

/// Size of a file in bytes.
const BYTES: usize = 200;
/// Files in a directory; also the files that one server does before it is the other's turn.
const CHUNK: usize = 100;
/// Files before the early window: the first calls find everything cold.
const SKIPPED: usize = 10;
/// Files in the early and in the late window.
const WINDOW: usize = 100;

/// What was found.
pub struct Growth {
    /// How many files were read and edited.
    pub files: usize,
    /// One row for reads and one for edits.
    pub rows: [GrowthRow; 2],
    /// Resident memory of the servers after all calls, in KiB.
    pub resident_kib: Pair<u64>,
}

/// Medians at the beginning and at the end of the session.
pub struct GrowthRow {
    /// The kind of call.
    pub label: &'static str,
    /// Around the first files.
    pub early: Pair<Duration>,
    /// Around the last files.
    pub late: Pair<Duration>,
}

impl Growth {
    /// The calls that each server answered.
    pub fn operations(&self) -> usize {
        self.files * self.rows.len()
    }
}

/// Measures growth, and returns the workspaces with the state that it left in them.
pub fn measure(bench: &Bench) -> Result<(Growth, Pair<PathBuf>)> {
    let files = bench.pace.pick(5_000, 10_000);
    let roots = bench.workspaces()?;
    for root in [&roots.surehand, &roots.floor] {
        (0..files).try_for_each(|file| create(root, &path(file), &content(file, BYTES)))?;
    }
    machine::settle();
    let mut pair = contenders(&bench.fast, &roots)?;
    let mut reads = Pair::<Vec<Duration>>::default();
    let mut edits = Pair::<Vec<Duration>>::default();
    for chunk in 0..files / CHUNK {
        for side in order(chunk) {
            for file in chunk * CHUNK..(chunk + 1) * CHUNK {
                let (read, edit) = visit(pair.side_mut(side), file)?;
                reads.side_mut(side).push(read);
                edits.side_mut(side).push(edit);
            }
        }
    }
    let resident_kib = Pair::of(|side| pair.side(side).client.resident_kib())?;
    Ok((Growth { files, rows: [row("read", &reads), row("edit", &edits)], resident_kib }, roots))
}

/// Reads and edits a file.
fn visit(contender: &mut Contender, file: usize) -> Result<(Duration, Duration)> {
    let path = path(file);
    let read = contender.client.call("read_file", json!({"path": path}))?;
    let edit = json!({"path": path, "old_string": token(0), "new_string": token(1)});
    let edit = contender.client.call("edit_file", edit)?;
    Ok((read.took(), edit.took()))
}

/// Reduces the times of all files to the two windows.
fn row(label: &'static str, times: &Pair<Vec<Duration>>) -> GrowthRow {
    let early = times.map(|all| median(&all[SKIPPED..SKIPPED + WINDOW]));
    let late = times.map(|all| median(&all[all.len() - WINDOW..]));
    GrowthRow { label, early, late }
}

/// The path of a file in the workspace.
pub fn path(file: usize) -> String {
    format!("directory-{:03}/file-{:02}.txt", file / CHUNK, file % CHUNK)
}
