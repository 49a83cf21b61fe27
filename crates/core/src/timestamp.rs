//! Times as the store keeps them and as people read them.

use jiff::Timestamp;

/// Milliseconds since 1970, UTC.
pub type Millis = i64;

/// A time in UTC, formatted as RFC 3339. A time before the year 0 or after the year 9999 is moved to that limit.
pub fn rfc3339(time: Millis) -> String {
    const YEAR_0: Millis = -62_167_219_200_000;
    Timestamp::from_millisecond(time.max(YEAR_0)).unwrap_or(Timestamp::MAX).to_string()
}

/// Like [`rfc3339`], without fractions of a second.
pub fn rfc3339_seconds(time: Millis) -> String {
    rfc3339(time.div_euclid(1000).saturating_mul(1000))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_rfc_3339() {
        assert_eq!(rfc3339(1_767_323_045_678), "2026-01-02T03:04:05.678Z");
        assert_eq!(rfc3339(1_767_323_045_000), "2026-01-02T03:04:05Z");
        let check = |time: Millis, expected: &str| assert_eq!(rfc3339_seconds(time), expected);
        check(0, "1970-01-01T00:00:00Z");
        check(-1, "1969-12-31T23:59:59Z");
        check(951_782_400_000, "2000-02-29T00:00:00Z");
        check(1_709_251_199_999, "2024-02-29T23:59:59Z");
        check(1_767_323_045_678, "2026-01-02T03:04:05Z");
        check(-62_167_219_200_000, "0000-01-01T00:00:00Z");
        check(Millis::MIN, "0000-01-01T00:00:00Z");
        assert!(rfc3339_seconds(Millis::MAX).starts_with("9999-12-3"));
    }
}
