//! The number of calls per second that a server answers with many in flight.

use std::time::Duration;

use anyhow::Result;

use crate::bench::server::Launch;
use crate::bench::tool_dialect::Edit;
use crate::bench::{Bench, Contender, contenders};
use crate::files::{content, create};
use crate::machine;
use crate::measurement::{PerServer, median};

/// The number of calls in flight.
pub(super) const IN_FLIGHT: usize = 64;
/// The number of files. A burst calls each of them once, so no two calls in flight are for the same file.
const FILES: usize = 256;
/// Size of a file in bytes.
const BYTES: usize = 1 << 10;

#[derive(Clone)]
pub(crate) struct ThroughputRow {
    /// The kind of call.
    pub label: &'static str,
    /// Calls in a second.
    pub per_second: PerServer<f64>,
}

/// The two kinds of burst.
#[derive(Clone, Copy)]
enum Burst {
    Reads,
    Edits,
}

/// Measures bursts of reads and of edits, those by servers that sync first.
pub(super) fn measure(bench: &Bench) -> Result<Vec<ThroughputRow>> {
    let full = [("read, 1 KB", Burst::Reads), ("edit, 1 KB", Burst::Edits)];
    let fast = [("edit, 1 KB, fast", Burst::Edits)];
    Ok([bursts(bench, &bench.full, &full)?, bursts(bench, &bench.fast, &fast)?].concat())
}

/// Bursts of each kind, the servers in turn.
fn bursts(bench: &Bench, launches: &PerServer<Launch>, kinds: &[(&'static str, Burst)]) -> Result<Vec<ThroughputRow>> {
    let roots = bench.workspaces()?;
    for root in roots.iter() {
        (0..FILES).try_for_each(|file| create(root, &path(file), &content(file, BYTES)))?;
    }
    machine::settle();
    let mut field = contenders(launches, &roots)?;
    for server in field.order(0) {
        // Our edits require a read.
        (0..FILES).try_for_each(|file| field.at_mut(server).read(&path(file)).map(drop))?;
    }
    let mut row = |&(label, burst): &(&'static str, Burst)| -> Result<ThroughputRow> {
        let mut times = field.map(|_| Vec::<Duration>::new());
        for round in 0..=bench.pace.pick(5, 20) {
            for server in field.order(round) {
                let took = go(field.at_mut(server), burst, round)?;
                // The first burst is a warm-up.
                if round > 0 {
                    times.at_mut(server).push(took);
                }
            }
        }
        Ok(ThroughputRow { label, per_second: times.map(|all| FILES as f64 / median(all).as_secs_f64()) })
    };
    kinds.iter().map(&mut row).collect()
}

/// One burst. Edits are checked in the files afterwards; the other parts have checked that reads are complete.
fn go(contender: &mut Contender, burst: Burst, round: usize) -> Result<Duration> {
    let edits: Vec<_> = (0..FILES).map(|file| Edit { path: path(file), from: round, to: round + 1 }).collect();
    let Contender { client, root, dialect } = contender;
    let calls: Vec<_> = match burst {
        Burst::Reads => edits.iter().map(|edit| dialect.read(root, &edit.path)).collect(),
        Burst::Edits => edits.iter().map(|edit| dialect.edit(client, root, edit)).collect::<Result<_>>()?,
    };
    let took = client.pipeline(&calls, IN_FLIGHT)?;
    if matches!(burst, Burst::Edits) {
        edits.iter().try_for_each(|edit| contender.check(edit))?;
    }
    Ok(took)
}

fn path(file: usize) -> String {
    format!("throughput/file-{file:03}.txt")
}
