//! How much a store keeps.

use std::ops::AddAssign;

/// How many of a kind are kept, and how large they are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct KeptAmount {
    /// How many.
    pub count: u64,
    /// Their size in bytes.
    pub bytes: u64,
}

impl AddAssign for KeptAmount {
    fn add_assign(&mut self, other: Self) {
        self.count += other.count;
        self.bytes += other.bytes;
    }
}

/// What a store keeps for all checkouts of a repository. The sizes are estimates: a database keeps its rows in pages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StoreUsage {
    /// Contents of files, compressed.
    pub versions: KeptAmount,
    /// Changes, with what leads back from them.
    pub changes: KeptAmount,
    /// Checkpoints. The contents that they need are versions.
    pub checkpoints: KeptAmount,
    /// What else the log lists.
    pub incidents: KeptAmount,
    /// What sessions have seen: the number of views.
    pub views: KeptAmount,
    /// The number of sessions that have these views.
    pub sessions: u64,
}
