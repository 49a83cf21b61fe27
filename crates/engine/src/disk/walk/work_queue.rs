//! A queue for work that creates more work. Several threads drain it until none is left.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Pending work. The latest comes first, so that a walk goes deep before it goes wide and the queue stays short.
#[derive(Debug)]
pub(super) struct WorkQueue<W> {
    state: Mutex<QueueState<W>>,
    changed: Condvar,
}

#[derive(Debug)]
struct QueueState<W> {
    waiting: Vec<W>,
    /// The number of threads at work, which may add more work.
    busy: usize,
}

/// Marks a thread as busy. However its work ends, the other threads must learn of it.
struct BusyGuard<'a, W>(&'a WorkQueue<W>);

impl<W> WorkQueue<W> {
    pub(super) fn new(first: W) -> Self {
        Self { state: Mutex::new(QueueState { waiting: vec![first], busy: 0 }), changed: Condvar::new() }
    }

    pub(super) fn push(&self, work: Vec<W>) {
        if work.is_empty() {
            return;
        }
        self.lock().waiting.extend(work);
        self.changed.notify_all();
    }

    /// Works until the queue is empty and no thread can add to it.
    pub(super) fn drain(&self, mut act: impl FnMut(W)) {
        while let Some((work, _busy)) = self.next() {
            act(work);
        }
    }

    fn next(&self) -> Option<(W, BusyGuard<'_, W>)> {
        let mut state = self.lock();
        loop {
            if let Some(work) = state.waiting.pop() {
                state.busy += 1;
                return Some((work, BusyGuard(self)));
            }
            if state.busy == 0 {
                return None;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn lock(&self) -> MutexGuard<'_, QueueState<W>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<W> Drop for BusyGuard<'_, W> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.busy -= 1;
        if state.busy == 0 && state.waiting.is_empty() {
            self.0.changed.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn all_work_is_done_once_including_work_that_is_added() {
        let queue = WorkQueue::new(12_usize);
        let done = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    queue.drain(|depth| {
                        done.fetch_add(1, Ordering::Relaxed);
                        queue.push(vec![depth - 1; if depth > 1 { 2 } else { 0 }]);
                    });
                });
            }
        });
        assert_eq!(done.into_inner(), (1 << 12) - 1);
    }

    #[test]
    fn a_thread_that_dies_does_not_keep_the_others_waiting() {
        let queue = WorkQueue::new(0);
        std::thread::scope(|scope| {
            let dies = scope.spawn(|| queue.drain(|_| panic!("as it should")));
            assert!(dies.join().is_err());
            scope.spawn(|| queue.drain(|_| ()));
        });
    }
}
