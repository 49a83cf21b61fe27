//! File times: how far they can be trusted to tell that a file has changed.

use std::{
    fs::File,
    os::unix::fs::FileExt,
    time::{SystemTime, UNIX_EPOCH},
};

use rustix::fs::{self as sys, Stat};
use surehand_core::{Stamp, stamp::CLOCK_STEP};

/// Takes stamps.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Clock {
    /// The device on which every change that comes after a look gets a time of its own.
    exact_on: Option<u64>,
}

impl Clock {
    /// Finds out by trying, on a file of ours, how fine the file times of its device are.
    ///
    /// Newer systems give a file a fine time whenever its times have been looked at since the last change. Older ones count in
    /// steps of milliseconds, so that a change right after a look may leave the same stamp. Four changes right after four
    /// looks do not all fall on the edge of a step by chance.
    pub(crate) fn try_out(file: &File) -> Self {
        let look = || sys::fstat(file).ok().map(|stat| (stat.st_dev, stat.st_ctime, stat.st_ctime_nsec));
        let moves_on = |_: usize| {
            let before = look();
            file.write_all_at(b".", 0).is_ok() && before.is_some() && before < look()
        };
        let exact = (0..4).all(moves_on);
        Self { exact_on: look().filter(|_| exact).map(|(device, ..)| device) }
    }

    /// The stamp of a file, taken now.
    #[allow(clippy::unnecessary_cast, reason = "signed or narrower on some systems")]
    pub(crate) fn stamp(&self, stat: &Stat) -> Stamp {
        let nanoseconds = |seconds: i64, rest: i64| seconds.saturating_mul(1_000_000_000).saturating_add(rest);
        let changed = nanoseconds(stat.st_ctime as i64, stat.st_ctime_nsec as i64);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_nanos() as i64);
        // Where a look is enough there is nothing to wait for.
        let taken = if self.exact_on == Some(stat.st_dev as u64) { now.max(changed.saturating_add(CLOCK_STEP)) } else { now };
        Stamp {
            device: stat.st_dev as u64,
            inode: stat.st_ino as u64,
            size: u64::try_from(stat.st_size).unwrap_or_default(),
            modified: nanoseconds(stat.st_mtime as i64, stat.st_mtime_nsec as i64),
            changed,
            taken,
        }
    }
}
