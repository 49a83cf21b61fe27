//! The time, in the unit of the store and the log.

use surehand_store::Millis;

/// Milliseconds since the Unix epoch.
pub(crate) fn now() -> Millis {
    jiff::Timestamp::now().as_millisecond()
}
