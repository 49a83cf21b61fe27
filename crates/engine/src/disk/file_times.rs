//! File times, and how far they prove that a file has not changed.

use std::{
    fs::File,
    os::unix::fs::FileExt,
    time::{SystemTime, UNIX_EPOCH},
};

use rustix::fs::{self as sys, Stat, Timespec, Timestamps};
use surehand_core::{Stamp, stamp::settled_at};

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct FileClock {
    /// The device that was tried out, with the reliability of its file times.
    tried: Option<(u64, ChangeTimes)>,
}

/// How reliable the change times of a file system are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ChangeTimes {
    /// Every change after the times were read gets a new time.
    Exact,
    /// Times advance in steps, and no program can set them.
    Stepped,
    /// A program that sets the modification time also sets the change time: the file system has one time for both.
    Settable,
}

impl FileClock {
    /// Tries out, on a file of ours, how reliable the file times of its device are.
    ///
    /// Newer systems use a fine-grained time for a change if the file's times were read since the last one. Others
    /// count in steps of milliseconds to seconds, so that a change right after a look may leave the same stamp. Four
    /// changes right after four looks do not all fall on the edge of a step by chance.
    pub(crate) fn try_out(file: &File) -> Self {
        let change_time = || sys::fstat(file).ok().map(|stat| (stat.st_ctime, stat.st_ctime_nsec));
        let moves_on = |_: usize| {
            let before = change_time();
            file.write_all_at(b".", 0).is_ok() && before.is_some() && before < change_time()
        };
        let times = match (0..4).all(moves_on) {
            true => ChangeTimes::Exact,
            false if is_settable(file) => ChangeTimes::Settable,
            false => ChangeTimes::Stepped,
        };
        #[allow(clippy::unnecessary_cast, reason = "signed or narrower on some systems")]
        let device = sys::fstat(file).ok().map(|stat| stat.st_dev as u64);
        Self { tried: device.map(|device| (device, times)) }
    }

    /// The stamp of a file with this status. The content must be read after this call: from the moment `taken` on, a
    /// change is expected to show in the times.
    #[allow(clippy::unnecessary_cast, reason = "signed or narrower on some systems")]
    pub(crate) fn stamp(&self, stat: &Stat) -> Stamp {
        let nanoseconds = |seconds: i64, rest: i64| seconds.saturating_mul(1_000_000_000).saturating_add(rest);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_nanos() as i64);
        let stamp = Stamp {
            device: stat.st_dev as u64,
            inode: stat.st_ino as u64,
            size: u64::try_from(stat.st_size).unwrap_or_default(),
            modified: nanoseconds(stat.st_mtime as i64, stat.st_mtime_nsec as i64),
            changed: nanoseconds(stat.st_ctime as i64, stat.st_ctime_nsec as i64),
            taken: now,
        };
        Stamp { taken: self.taken(&stamp, now), ..stamp }
    }

    /// The time at which a stamp counts as taken, in nanoseconds since the Unix epoch.
    fn taken(&self, stamp: &Stamp, now: i64) -> i64 {
        let times = self.tried.filter(|(device, _)| *device == stamp.device).map(|(_, times)| times);
        match times {
            // With exact times, nothing has to settle.
            Some(ChangeTimes::Exact) => now.max(settled_at(stamp.changed)),
            Some(ChangeTimes::Stepped) => now,
            Some(ChangeTimes::Settable) => stamp.changed,
            None if may_have_one_time(stamp) => stamp.changed,
            None => now,
        }
    }
}

/// Whether setting the modification time of a file also sets its change time.
fn is_settable(file: &File) -> bool {
    let long_ago = Timespec { tv_sec: 1_000_000_000, tv_nsec: 0 };
    let untouched = Timespec { tv_sec: 0, tv_nsec: sys::UTIME_OMIT };
    let is_set = sys::futimens(file, &Timestamps { last_access: untouched, last_modification: long_ago });
    is_set.is_ok() && sys::fstat(file).is_ok_and(|stat| stat.st_ctime == long_ago.tv_sec)
}

/// Whether a file may be on a file system that has a single time for modification and change, which any program can
/// set: FAT, exFAT and `sshfs` show it in whole seconds for both. A change that sets this time back leaves no trace.
fn may_have_one_time(stamp: &Stamp) -> bool {
    stamp.changed == stamp.modified && stamp.changed % 1_000_000_000 == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000_000;

    /// The stamp of a file that was last changed at `changed`, looked at a minute later.
    fn stamp(times: Option<ChangeTimes>, modified: i64, changed: i64) -> Stamp {
        let clock = FileClock { tried: times.map(|times| (1, times)) };
        let stamp = Stamp { device: 1, inode: 2, size: 3, modified, changed, taken: 0 };
        Stamp { taken: clock.taken(&stamp, changed + 60 * SECOND), ..stamp }
    }

    #[test]
    fn a_change_time_that_programs_can_set_proves_nothing() {
        assert!(stamp(Some(ChangeTimes::Settable), 7, 7).is_racy());
        assert!(stamp(None, 7 * SECOND, 7 * SECOND).is_racy(), "perhaps FAT");
        assert!(!stamp(None, 6 * SECOND, 7 * SECOND).is_racy(), "two times");
        assert!(!stamp(None, 7, 7).is_racy(), "too fine for FAT");
        assert!(!stamp(Some(ChangeTimes::Stepped), 7 * SECOND, 7 * SECOND).is_racy(), "tried out");
    }

    #[test]
    fn an_exact_time_settles_at_once() {
        let clock = FileClock { tried: Some((1, ChangeTimes::Exact)) };
        let stamp = Stamp { device: 1, inode: 2, size: 3, modified: SECOND, changed: SECOND, taken: 0 };
        assert!(!Stamp { taken: clock.taken(&stamp, SECOND), ..stamp }.is_racy());
        let elsewhere = Stamp { device: 2, modified: 0, ..stamp };
        assert!(Stamp { taken: clock.taken(&elsewhere, SECOND), ..elsewhere }.is_racy());
    }
}
