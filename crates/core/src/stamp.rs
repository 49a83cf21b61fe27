//! A file's stamp: the metadata by which a change is detected without reading the file.

use serde::{Deserialize, Serialize};

/// Identity, size and times of a file at one moment. Equal stamps mean equal bytes, unless the stamp is racy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Stamp {
    /// The device that holds the file.
    pub device: u64,
    /// The inode number on that device.
    pub inode: u64,
    /// The size of the file in bytes.
    pub size: u64,
    /// Last change of the content, in nanoseconds since 1970; programs can set it.
    pub modified: i64,
    /// Last change of any kind, in nanoseconds since 1970; programs cannot set it.
    pub changed: i64,
    /// The time of the `stat` call, by the same clock. If the file system gives every later change a new time, it is at
    /// least [`settled_at`]; if its times prove nothing, it is never later than `changed`.
    pub taken: i64,
}

/// The coarsest step of the kernel clocks that file times come from. Two changes within one step may leave equal
/// stamps.
const CLOCK_STEP: i64 = 20_000_000;

/// The first moment, in nanoseconds since 1970, at which another change would get a different time.
///
/// File systems truncate times to the precision that they store: two seconds on FAT, one second on ext4 with small
/// inodes, 10 ms on exFAT. A time that such a file system could have stored is assumed to come from one. With a finer
/// clock this happens by chance, and costs one extra read.
pub fn settled_at(changed: i64) -> i64 {
    const SECOND: i64 = 1_000_000_000;
    let precision = match changed.rem_euclid(SECOND) {
        0 => 2 * SECOND,
        rest if rest % (SECOND / 10) == 0 => SECOND / 10,
        rest if rest % (SECOND / 100) == 0 => SECOND / 100,
        _ => 0,
    };
    changed.saturating_add(precision + CLOCK_STEP)
}

impl Stamp {
    /// Whether a change right after the stamp was taken could leave an equal stamp, because the file system's clock had
    /// not advanced.
    pub fn is_racy(&self) -> bool {
        self.taken < settled_at(self.changed)
    }

    /// Whether both stamps describe the same file in the same state.
    pub fn agrees_with(&self, other: &Stamp) -> bool {
        Self { taken: 0, ..*self } == Self { taken: 0, ..*other }
    }

    /// Whether both stamps describe the same file, in any state.
    pub fn same_file(&self, other: &Stamp) -> bool {
        (self.device, self.inode) == (other.device, other.inode)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_is_racy_until_the_clock_has_moved_on() {
        let stamp = Stamp { device: 1, inode: 2, size: 3, modified: 1_000_000_001, changed: 1_000_000_001, taken: 1_005_000_000 };
        assert!(stamp.is_racy());
        assert!(!Stamp { taken: 1_100_000_000, ..stamp }.is_racy());
        assert!(Stamp { taken: 900_000_000, ..stamp }.is_racy(), "a clock that was set back");
    }

    /// After `settles_after` milliseconds, and not before, the stamp of a file with this change time proves its
    /// content.
    #[track_caller]
    fn check_settles(changed: i64, settles_after: i64) {
        let stamp = |millis: i64| Stamp {
            device: 1,
            inode: 2,
            size: 3,
            modified: changed,
            changed,
            taken: changed.saturating_add(millis * 1_000_000),
        };
        assert!(stamp(settles_after - 1).is_racy());
        assert!(!stamp(settles_after).is_racy());
    }

    #[test]
    fn the_precision_of_a_time_shows_in_its_zeros() {
        check_settles(1_700_000_000_123_456_789, 20);
        check_settles(1_700_000_000_123_000_000, 20);
        check_settles(1_700_000_000_120_000_000, 30);
        check_settles(1_700_000_000_100_000_000, 120);
        check_settles(1_700_000_000_000_000_000, 2020);
        check_settles(1_700_000_001_000_000_000, 2020);
        check_settles(-1_000_000_000, 2020);
        check_settles(0, 2020);
    }

    #[test]
    fn a_time_at_the_end_of_all_times_never_settles() {
        let stamp = Stamp { device: 1, inode: 2, size: 3, modified: 0, changed: i64::MAX, taken: i64::MAX - 1 };
        assert!(stamp.is_racy());
    }
}
