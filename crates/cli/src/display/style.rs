//! Colours, and numbers for people.

use std::time::Duration;

use surehand_agent::{event::RunPhase, model::TokenUsage};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Painter {
    pub width: usize,
    pub colours: Colours,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Colours {
    On,
    Off,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    Bold,
    Dim,
    Red,
    Green,
    Yellow,
    Cyan,
    BoldYellow,
}

impl Painter {
    /// Styles a text. The style ends with the text, so that an interrupted program leaves the terminal unchanged.
    pub(crate) fn paint(self, style: Style, text: &str) -> String {
        if self.colours == Colours::Off || text.is_empty() {
            return text.to_owned();
        }
        let code = match style {
            Style::Bold => "1",
            Style::Dim => "2",
            Style::Red => "31",
            Style::Green => "32",
            Style::Yellow => "33",
            Style::Cyan => "36",
            Style::BoldYellow => "1;33",
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }

    /// The columns left in a line after this many. The last column stays free, because some terminals wrap after it.
    pub(crate) fn room(self, behind: usize) -> usize {
        self.width.saturating_sub(behind + 1)
    }
}

/// Formats `950`, `8.2k`, `123k`, `1.2M`.
pub(crate) fn abbreviate(number: u64) -> String {
    match number {
        0..1_000 => number.to_string(),
        1_000..99_950 => format!("{:.1}k", number as f64 / 1e3),
        99_950..999_500 => format!("{:.0}k", number as f64 / 1e3),
        _ => format!("{:.1}M", number as f64 / 1e6),
    }
}

/// Formats `$0.21`, or four digits below a cent.
pub(crate) fn dollars(cost: f64) -> String {
    if cost > 0.0 && cost < 0.01 { format!("${cost:.4}") } else { format!("${cost:.2}") }
}

/// Formats `12 s`, `3 min 05 s`, `1 h 02 min`.
pub(crate) fn format_duration(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min {:02} s", seconds / 60, seconds % 60),
        _ => format!("{} h {:02} min", seconds / 3600, seconds / 60 % 60),
    }
}

/// Converts seconds. Negative values and NaN become zero.
pub(crate) fn duration(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or_default()
}

/// Formats `8.2k tokens in (6.1k cached), 350 out, $0.01`.
pub(crate) fn format_usage(usage: &TokenUsage) -> String {
    let cached = if usage.cached > 0 { format!(" ({} cached)", abbreviate(usage.cached)) } else { String::new() };
    let cost = usage.cost.map(|cost| format!(", {}", dollars(cost))).unwrap_or_default();
    format!("{} tokens in{cached}, {} out{cost}", abbreviate(usage.input), abbreviate(usage.output))
}

pub(crate) fn phase_name(phase: RunPhase) -> &'static str {
    match phase {
        RunPhase::Planning => "planning",
        RunPhase::Coding => "coding",
        RunPhase::Done => "done",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        for (number, expected) in [
            (0, "0"),
            (999, "999"),
            (1_000, "1.0k"),
            (8_211, "8.2k"),
            (99_949, "99.9k"),
            (99_950, "100k"),
            (999_499, "999k"),
            (999_500, "1.0M"),
        ] {
            assert_eq!(abbreviate(number), expected);
        }
        for (cost, expected) in [(0.0, "$0.00"), (0.0012, "$0.0012"), (0.01, "$0.01"), (12.345, "$12.35")] {
            assert_eq!(dollars(cost), expected);
        }
    }

    #[test]
    fn durations_are_written_for_people() {
        for (time, expected) in [(0, "0 s"), (59, "59 s"), (65, "1 min 05 s"), (3599, "59 min 59 s"), (3725, "1 h 02 min")] {
            assert_eq!(format_duration(Duration::from_secs(time)), expected);
        }
        for nonsense in [-1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(duration(nonsense), Duration::ZERO);
        }
    }

    #[test]
    fn usage_says_what_is_known() {
        let known = TokenUsage { input: 8_211, cached: 6_100, output: 350, cost: Some(0.0123) };
        assert_eq!(format_usage(&known), "8.2k tokens in (6.1k cached), 350 out, $0.01");
        assert_eq!(format_usage(&TokenUsage { cached: 0, cost: None, ..known }), "8.2k tokens in, 350 out");
    }

    #[test]
    fn a_style_ends_where_its_text_ends() {
        let painter = Painter { width: 80, colours: Colours::On };
        assert_eq!(painter.paint(Style::Red, "no"), "\x1b[31mno\x1b[0m");
        assert_eq!(painter.paint(Style::Red, ""), "");
        assert_eq!(Painter { colours: Colours::Off, ..painter }.paint(Style::Red, "no"), "no");
    }
}
