//! Closes files that a hook leaks on purpose.

use std::sync::Arc;

/// Drops the value that a hook leaked. A hook leaves it to the end of the process to close its files; a test that plays
/// many hooks would run out of files. Pass another owner of the same value after the hook has answered: if exactly one
/// more owner is left, that one was leaked.
#[expect(unsafe_code, reason = "what was forgotten on purpose can be had back in no other way")]
pub fn close_leaked<T>(owned: Arc<T>) {
    let is_forgotten = Arc::strong_count(&owned) == 2;
    let kept = Arc::into_raw(owned);
    // SAFETY: the pointer comes from `into_raw`, and this releases the count of the forgotten owner.
    unsafe {
        if is_forgotten {
            Arc::decrement_strong_count(kept);
        }
        drop(Arc::from_raw(kept));
    }
}
