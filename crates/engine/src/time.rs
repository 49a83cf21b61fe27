//! The time, in the unit of the store and the log.

use surehand_store::Millis;

/// Milliseconds since 1970.
pub(crate) fn now() -> Millis {
    jiff::Timestamp::now().as_millisecond()
}
