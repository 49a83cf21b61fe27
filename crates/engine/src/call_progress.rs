//! Progress and cancellation of a long call. The thread that waits for the call reads the progress and may stop it.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

/// The progress of one call. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct CallProgress(Arc<ProgressCounters>);

#[derive(Debug, Default)]
struct ProgressCounters {
    files: AtomicU64,
    is_stopped: AtomicBool,
}

impl CallProgress {
    /// Cancels the call. It ends at the next check; a commit that has begun is finished.
    pub fn stop(&self) {
        self.0.is_stopped.store(true, Ordering::Relaxed);
    }

    /// Whether the call was cancelled.
    pub fn is_stopped(&self) -> bool {
        self.0.is_stopped.load(Ordering::Relaxed)
    }

    /// The number of files visited so far.
    pub fn files(&self) -> u64 {
        self.0.files.load(Ordering::Relaxed)
    }

    pub(crate) fn pass(&self, files: usize) {
        self.0.files.fetch_add(files as u64, Ordering::Relaxed);
    }
}
