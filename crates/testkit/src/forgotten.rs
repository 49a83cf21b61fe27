//! Closes what a hook has forgotten on purpose.

use std::sync::Arc;

/// A hook leaves it to the system to close what it has open. In a test there is no end of a process, so that it would run out of files. Call
/// this with another owner of the same thing when the hook has answered: if one more is left, it is the one that was forgotten.
#[expect(unsafe_code, reason = "what was forgotten on purpose can be had back in no other way")]
pub fn close_forgotten<T>(owned: Arc<T>) {
    let is_forgotten = Arc::strong_count(&owned) == 2;
    let kept = Arc::into_raw(owned);
    // SAFETY: the pointer is from `into_raw`, and the count that is taken away is that of the forgotten owner.
    unsafe {
        if is_forgotten {
            Arc::decrement_strong_count(kept);
        }
        drop(Arc::from_raw(kept));
    }
}
