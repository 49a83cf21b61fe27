//! The course of a call that may take a while: how far it has come, and whether anybody still wants it. Whoever waits for the call
//! looks at it from another thread.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

/// The course of one call. Copies are about the same call.
#[derive(Debug, Clone, Default)]
pub struct CallProgress(Arc<ProgressCounters>);

#[derive(Debug, Default)]
struct ProgressCounters {
    files: AtomicU64,
    is_stopped: AtomicBool,
}

impl CallProgress {
    /// Says that nobody wants the call any more. It ends as soon as it notices; a change that has begun is made.
    pub fn stop(&self) {
        self.0.is_stopped.store(true, Ordering::Relaxed);
    }

    /// Whether nobody wants it any more.
    pub fn is_stopped(&self) -> bool {
        self.0.is_stopped.load(Ordering::Relaxed)
    }

    /// How many files it has come by.
    pub fn files(&self) -> u64 {
        self.0.files.load(Ordering::Relaxed)
    }

    pub(crate) fn pass(&self, files: usize) {
        self.0.files.fetch_add(files as u64, Ordering::Relaxed);
    }
}
