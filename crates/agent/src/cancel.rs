//! Cancellation of a run and of its parts.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Instant,
};

/// A shared cancellation flag, perhaps with a deadline. Everything that waits polls it; a commit in progress is
/// finished first.
#[derive(Debug, Clone, Default)]
pub struct CancelToken {
    flag: Arc<AtomicBool>,
    /// The flag of the run or call that this token is a part of.
    parent: Option<Arc<AtomicBool>>,
    deadline: Option<Instant>,
}

impl CancelToken {
    /// Requests cancellation of this work and of its parts. Returns at once.
    pub fn cancel(&self) {
        self.flag.store(true, Ordering::Relaxed);
    }

    /// A token for a part of this work. It can be cancelled alone, and is cancelled with this one.
    pub fn part(&self) -> Self {
        Self { flag: Arc::default(), parent: Some(self.flag.clone()), deadline: self.deadline }
    }

    /// Whether cancellation was requested, or the deadline has passed.
    pub fn is_cancelled(&self) -> bool {
        let is_parent_cancelled = || self.parent.as_ref().is_some_and(|parent| parent.load(Ordering::Relaxed));
        self.flag.load(Ordering::Relaxed) || is_parent_cancelled() || self.is_out_of_time()
    }

    /// The flag itself, for a signal handler.
    pub fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.flag)
    }

    /// Like this token, but also cancelled from this time on.
    pub(crate) fn with_deadline(self, deadline: Instant) -> Self {
        Self { deadline: Some(deadline), ..self }
    }

    pub(crate) fn is_out_of_time(&self) -> bool {
        self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }
}
