//! The amount of data in a store.

use std::ops::AddAssign;

/// The number and the size of items of one kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct KeptAmount {
    /// The number of items.
    pub count: u64,
    /// Their total size in bytes.
    pub bytes: u64,
}

impl AddAssign for KeptAmount {
    fn add_assign(&mut self, other: Self) {
        self.count += other.count;
        self.bytes += other.bytes;
    }
}

/// The data that a store keeps for all checkouts of a repository. Sizes are estimates, because a database keeps its
/// rows in pages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StoreUsage {
    /// Contents of files, with their compressed sizes.
    pub versions: KeptAmount,
    /// Changes, with the deltas to the previous versions.
    pub changes: KeptAmount,
    /// Checkpoints, without the contents of files, which count as versions.
    pub checkpoints: KeptAmount,
    /// The other entries of the log.
    pub incidents: KeptAmount,
    /// The views of sessions, each of one file.
    pub views: KeptAmount,
    /// The number of sessions that have these views.
    pub sessions: u64,
}
