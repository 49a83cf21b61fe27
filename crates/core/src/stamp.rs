//! A file's stamp: what the system says about it without reading it.

use serde::{Deserialize, Serialize};

/// Identity, size and times of a file at one moment. Equal stamps mean equal bytes, unless the stamp is racy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Stamp {
    /// The device that holds it.
    pub device: u64,
    /// Its number there.
    pub inode: u64,
    /// Its length in bytes.
    pub size: u64,
    /// Last change of the content, in nanoseconds since 1970; programs can set it as they like.
    pub modified: i64,
    /// Last change of the file in any way, in nanoseconds since 1970; no program can set it.
    pub changed: i64,
    /// When the stamp was taken, by the same clock. Where every change after a look gets a time of its own, at least one
    /// [`CLOCK_STEP`] after `changed`.
    pub taken: i64,
}

/// The coarsest step in which systems count file times. Two changes within one step may leave the same stamp.
pub const CLOCK_STEP: i64 = 20_000_000;

impl Stamp {
    /// Whether a change right after it was taken could go unseen, because the clock had not moved on.
    pub fn is_racy(&self) -> bool {
        self.taken - self.changed < CLOCK_STEP
    }

    /// Whether both speak of the same file in the same state.
    pub fn agrees_with(&self, other: &Stamp) -> bool {
        Self { taken: 0, ..*self } == Self { taken: 0, ..*other }
    }

    /// Whether both speak of the same file, in whatever state.
    pub fn same_file(&self, other: &Stamp) -> bool {
        (self.device, self.inode) == (other.device, other.inode)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_is_racy_until_the_clock_has_moved_on() {
        let stamp = Stamp { device: 1, inode: 2, size: 3, modified: 1_000_000_000, changed: 1_000_000_000, taken: 1_005_000_000 };
        assert!(stamp.is_racy());
        assert!(!Stamp { taken: 1_100_000_000, ..stamp }.is_racy());
        assert!(Stamp { taken: 900_000_000, ..stamp }.is_racy(), "a clock that was set back");
    }
}
