//! Cancellation of a run.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Instant,
};

/// A shared cancellation flag, perhaps with a deadline. Everything that waits polls it; a commit in progress is finished
/// first.
#[derive(Debug, Clone, Default)]
pub struct CancelToken {
    flag: Arc<AtomicBool>,
    /// The flag of a larger piece of work that this one belongs to.
    whole: Option<Arc<AtomicBool>>,
    deadline: Option<Instant>,
}

impl CancelToken {
    /// Requests cancellation.
    pub fn cancel(&self) {
        self.flag.store(true, Ordering::Relaxed);
    }

    /// A token for a part of this work: it is cancelled with the whole, or alone.
    pub fn part(&self) -> Self {
        Self { flag: Arc::default(), whole: Some(self.flag.clone()), deadline: self.deadline }
    }

    /// Whether cancellation was requested, or the deadline has passed.
    pub fn is_cancelled(&self) -> bool {
        let is_whole_cancelled = || self.whole.as_ref().is_some_and(|whole| whole.load(Ordering::Relaxed));
        self.flag.load(Ordering::Relaxed) || is_whole_cancelled() || self.is_out_of_time()
    }

    /// The flag itself, for a signal handler.
    pub fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.flag)
    }

    /// The same flag, which also counts as set from this moment on.
    pub(crate) fn with_deadline(self, deadline: Instant) -> Self {
        Self { deadline: Some(deadline), ..self }
    }

    /// Whether the deadline has passed.
    pub(crate) fn is_out_of_time(&self) -> bool {
        self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }
}
