//! Formats durations and ratios for the report.

use std::time::Duration;

use crate::measurement::ratio;

pub(super) fn micros(duration: Duration) -> String {
    format!("{:.0}", duration.as_secs_f64() * 1e6)
}

pub(super) fn millis(duration: Duration) -> String {
    format!("{:.2}", duration.as_secs_f64() * 1e3)
}

/// How many times as long `a` is as `b`.
pub(super) fn times_as_long(a: Duration, b: Duration) -> String {
    format!("{:.2}", ratio(a, b))
}

/// The mark for a missing value.
pub(super) fn none() -> String {
    "—".into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_rounded_for_people() {
        assert_eq!(micros(Duration::from_nanos(15_600)), "16");
        assert_eq!(millis(Duration::from_micros(1_534)), "1.53");
        assert_eq!(times_as_long(Duration::from_micros(30), Duration::from_micros(20)), "1.50");
    }
}
