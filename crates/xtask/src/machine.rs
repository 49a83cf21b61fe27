//! The machine under the benchmark: its description, and the preparations that make the numbers repeatable.

use std::fs;
use std::path::Path;
use std::thread::available_parallelism;

use anyhow::Result;

/// The machine in one line.
pub(crate) fn describe() -> String {
    let cores = available_parallelism().map_or(1, usize::from);
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpuinfo.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    format!("{cores} cores, {}, Linux {}", model.map_or("unknown CPU", |(_, name)| name), short(&kernel))
}

/// `6.18` of `6.18.44-something`: the rest says more about the machine than about the numbers.
fn short(kernel: &str) -> String {
    kernel.trim().split('.').take(2).collect::<Vec<_>>().join(".")
}

/// Keeps this program and the servers that it starts on one core. Otherwise the scheduler puts client and server
/// sometimes on one core and sometimes on two, and waking an idle core costs more than a small call: the same server
/// would seem four times as slow.
///
/// Dropping the result releases the core.
pub(crate) fn pin() -> Result<Pinned> {
    #[cfg(target_os = "linux")]
    {
        use anyhow::Context;
        use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
        let allowed = sched_getaffinity(None).context("the cores of this program")?;
        let last = (0..CpuSet::MAX_CPU).rev().find(|&core| allowed.is_set(core)).context("no core")?;
        let mut one = CpuSet::new();
        one.set(last);
        sched_setaffinity(None, &one).context("pinning to a core")?;
        Ok(Pinned { allowed })
    }
    #[cfg(not(target_os = "linux"))]
    Ok(Pinned {})
}

/// Keeps this program on one core until it is dropped.
pub(crate) struct Pinned {
    #[cfg(target_os = "linux")]
    allowed: rustix::thread::CpuSet,
}

impl Drop for Pinned {
    fn drop(&mut self) {
        #[cfg(target_os = "linux")]
        // Staying on one core only makes the rest of the run slower.
        let _ = rustix::thread::sched_setaffinity(None, &self.allowed);
    }
}

/// Asks ext4 to place the directories in `directory` far apart, as it does below the root of a disk. Without a journal,
/// ext4 does not reuse the inodes of deleted files for some minutes and searches past all of them to create a file, so
/// the files that one run deletes would slow down the next. Other file systems do not know this flag, and nothing
/// changes there.
pub(crate) fn spread(directory: &Path) {
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{IFlags, ioctl_getflags, ioctl_setflags};
        let Ok(directory) = fs::File::open(directory) else { return };
        if let Ok(flags) = ioctl_getflags(&directory) {
            let _ = ioctl_setflags(&directory, flags | IFlags::TOPDIR);
        }
    }
}

/// Flushes dirty pages from the preparation, so that the kernel does not write them while the clock runs.
pub(crate) fn settle() {
    rustix::fs::sync();
}
