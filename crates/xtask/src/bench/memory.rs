//! The memory of a server after many calls, and after a large tree was read file by file.

use std::path::Path;

use anyhow::{Result, ensure};

use crate::bench::{Bench, Contender, scan};
use crate::files::is_whole;

pub(crate) struct Memory {
    /// The number of files read at each point.
    pub files: [usize; 2],
    /// Resident memory of ours at these points, in KiB.
    pub surehand_kib: [u64; 2],
    /// Resident memory of the floor.
    pub floor_kib: [u64; 2],
}

/// Reads the files of the tree from the scan.
pub(super) fn measure(bench: &Bench, tree: &Path, all: usize) -> Result<Memory> {
    let files = [all / 10, all];
    let resident = |launch| -> Result<[u64; 2]> {
        let mut contender = Contender::start(launch, tree)?;
        let (mut seen, mut kib) = (0, [0; 2]);
        for (until, kib) in files.into_iter().zip(&mut kib) {
            for file in seen..until {
                let path = scan::path(file);
                ensure!(is_whole(&contender.read(&path)?.text, file, 100), "{path} is not shown whole");
            }
            seen = until;
            *kib = contender.client.resident_kib()?;
        }
        Ok(kib)
    };
    Ok(Memory { files, surehand_kib: resident(&bench.full.surehand)?, floor_kib: resident(&bench.full.floor)? })
}
