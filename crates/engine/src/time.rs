//! What time it is, in the unit that the store and the log use.

use surehand_store::Millis;

/// Milliseconds since 1970.
pub(crate) fn now() -> Millis {
    jiff::Timestamp::now().as_millisecond()
}
