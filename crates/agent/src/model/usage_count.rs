//! Figures as servers send them: whole numbers, floats, text, negative numbers, and nonsense.

use serde_json::Value;

/// No answer has more tokens. A larger figure is a server error, and would end a run that has a budget.
const MOST_TOKENS: u64 = 1_000_000_000;

/// A number of tokens; 0 if the value is not a plausible one.
pub(super) fn token_count(value: &Value) -> u64 {
    let number = value.as_u64().or_else(|| whole(value.as_f64()?)).or_else(|| value.as_str()?.trim().parse().ok());
    number.filter(|count| *count <= MOST_TOKENS).unwrap_or_default()
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked to be in range")]
fn whole(number: f64) -> Option<u64> {
    #[expect(clippy::cast_precision_loss, reason = "far below 2^53")]
    let is_count = (0.0..=MOST_TOKENS as f64).contains(&number);
    is_count.then_some(number as u64)
}

/// A cost in dollars; `None` if the value is not a plausible one.
pub(super) fn dollars(value: &Value) -> Option<f64> {
    const MOST_DOLLARS: f64 = 1e6;
    let number = value.as_f64().or_else(|| value.as_str()?.trim().parse().ok())?;
    (0.0..=MOST_DOLLARS).contains(&number).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_is_a_count_or_nothing() {
        for (json, expected) in [
            ("7", 7),
            ("7.9", 7),
            ("1e3", 1000),
            ("\" 12 \"", 12),
            ("-1", 0),
            ("-0.5", 0),
            ("18446744073709551615", 0),
            ("18446744073709551616", 0),
            ("1e300", 0),
            ("\"many\"", 0),
            ("null", 0),
            ("[7]", 0),
            ("true", 0),
        ] {
            assert_eq!(token_count(&serde_json::from_str(json).unwrap()), expected, "{json}");
        }
    }

    #[test]
    fn a_cost_is_not_negative_and_not_absurd() {
        for (json, expected) in [
            ("0.25", Some(0.25)),
            ("\"0.5\"", Some(0.5)),
            ("0", Some(0.0)),
            ("-1", None),
            ("1e30", None),
            ("\"nan\"", None),
            ("null", None),
        ] {
            assert_eq!(dollars(&serde_json::from_str(json).unwrap()), expected, "{json}");
        }
    }
}
