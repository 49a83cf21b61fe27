//! A change of many files: in one call if the server can do that, otherwise in one call per file.

use std::time::Duration;

use anyhow::Result;

use crate::bench::server::Launch;
use crate::bench::tool_dialect::Edit;
use crate::bench::{Bench, contenders};
use crate::files::{content, create};
use crate::machine;
use crate::measurement::{PerServer, Summary};

/// Files that are changed.
pub(super) const FILES: usize = 100;
/// Size of a file in bytes.
const BYTES: usize = 1 << 10;

/// The times of one kind of batch.
pub(crate) struct BatchRow {
    /// The kind of batch.
    pub label: &'static str,
    /// Per server, the total for all files.
    pub times: PerServer<Summary>,
}

/// Measures batches in turn. The first one of each server is a warm-up.
pub(super) fn measure(bench: &Bench, label: &'static str, launches: &PerServer<Launch>) -> Result<BatchRow> {
    let roots = bench.workspaces()?;
    for root in roots.iter() {
        (0..FILES).try_for_each(|file| create(root, &path(file), &content(file, BYTES)))?;
    }
    machine::settle();
    let mut field = contenders(launches, &roots)?;
    let mut times = field.map(|_| Vec::<Duration>::new());
    for round in 0..=bench.pace.pick(4, 16) {
        for server in field.order(round) {
            let contender = field.at_mut(server);
            if round == 0 {
                (0..FILES).try_for_each(|file| contender.read(&path(file)).map(drop))?;
            }
            let edits: Vec<_> = (0..FILES).map(|file| Edit { path: path(file), from: round, to: round + 1 }).collect();
            let took = contender.batch(&edits)?;
            edits.iter().try_for_each(|edit| contender.check(edit))?;
            if round > 0 {
                times.at_mut(server).push(took);
            }
        }
    }
    Ok(BatchRow { label, times: times.map(|all| Summary::of(all)) })
}

fn path(file: usize) -> String {
    format!("batch/file-{file:02}.txt")
}
