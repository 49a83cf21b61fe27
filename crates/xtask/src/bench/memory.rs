//! How much memory a server keeps of what it has shown: after many calls, and when a large tree has been read file by file.

use std::path::Path;

use anyhow::{Result, ensure};

use crate::bench::{Bench, Contender, scan};
use crate::files::is_whole;

/// What was found.
pub(crate) struct Memory {
    /// How many files had been read at each point.
    pub files: [usize; 2],
    /// Resident memory of ours at these points, in KiB.
    pub surehand_kib: [u64; 2],
    /// That of the floor.
    pub floor_kib: [u64; 2],
}

/// Reads the files of the tree that `scan` left.
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
