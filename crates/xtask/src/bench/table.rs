//! Markdown tables, and how numbers are written in them.

use std::time::Duration;

use crate::sample::ratio;

/// A markdown table whose columns line up as plain text too; the first `left` columns are words, the rest numbers.
pub(crate) fn table<S: AsRef<str>>(
    left: usize,
    header: impl AsRef<[S]>,
    rows: impl IntoIterator<Item = impl AsRef<[String]>>,
) -> String {
    let header: Vec<&str> = header.as_ref().iter().map(AsRef::as_ref).collect();
    let rows: Vec<_> = rows.into_iter().collect();
    let cells: Vec<Vec<&str>> = rows.iter().map(|row| row.as_ref().iter().map(String::as_str).collect()).collect();
    let widths: Vec<usize> = (0..header.len())
        .map(|column| cells.iter().chain([&header]).map(|row| row[column].chars().count()).max().unwrap_or(0))
        .collect();
    let line = |cells: &Vec<&str>| {
        let padded: Vec<_> = (cells.iter().zip(&widths).enumerate())
            .map(|(column, (cell, width))| if column < left { format!("{cell:<width$}") } else { format!("{cell:>width$}") })
            .collect();
        format!("| {} |", padded.join(" | "))
    };
    let rule: Vec<_> = (widths.iter().enumerate())
        .map(|(column, &width)| format!("-{}{}", "-".repeat(width), if column < left { '-' } else { ':' }))
        .collect();
    let mut lines = vec![line(&header), format!("|{}|", rule.join("|"))];
    lines.extend(cells.iter().map(line));
    lines.join("\n")
}

/// In microseconds.
pub(super) fn micros(duration: Duration) -> String {
    format!("{:.0}", duration.as_secs_f64() * 1e6)
}

/// In milliseconds.
pub(super) fn millis(duration: Duration) -> String {
    format!("{:.2}", duration.as_secs_f64() * 1e3)
}

/// How many times as long `a` is as `b`.
pub(super) fn times_as_long(a: Duration, b: Duration) -> String {
    format!("{:.2}", ratio(a, b))
}

/// What stands where there is nothing.
pub(super) fn none() -> String {
    "—".into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_lines_up_words_left_and_numbers_right() {
        let rows = [["read".into(), "7".into()], ["edit, synced".into(), "1234567".into()]];
        let expected = "\
| call         |     p50 |
|--------------|--------:|
| read         |       7 |
| edit, synced | 1234567 |";
        assert_eq!(table(1, ["call", "p50"], rows), expected);
    }

    #[test]
    fn durations_are_rounded_for_people() {
        assert_eq!(micros(Duration::from_nanos(15_600)), "16");
        assert_eq!(millis(Duration::from_micros(1_534)), "1.53");
        assert_eq!(times_as_long(Duration::from_micros(30), Duration::from_micros(20)), "1.50");
    }
}
