//! The report: markdown tables for people and documents, or one JSON object for programs.

use std::time::Duration;

use serde_json::{Value, json};

use crate::bench::Pace;
use crate::calls::CallRow;
use crate::depth::{Depth, LINES};
use crate::growth::Growth;
use crate::sample::{Pair, Side, Summary, ratio};
use crate::scan::Scan;
use crate::search::Search;
use crate::start::StartRow;

/// Everything that was measured.
pub struct Report {
    /// Where the numbers come from.
    pub machine: String,
    /// How much was measured.
    pub pace: Pace,
    /// Round trips.
    pub calls: Vec<CallRow>,
    /// What else an edit may need.
    pub depth: Depth,
    /// Early and late calls of a long session.
    pub growth: Growth,
    /// Starts.
    pub start: Vec<StartRow>,
    /// Searches.
    pub search: Search,
    /// Scans.
    pub scan: Scan,
    /// How long the whole run took.
    pub took: Duration,
}

impl Report {
    /// One table for each part, ready to be pasted into a document.
    pub fn to_markdown(&self) -> String {
        let pace = self.pace.pick("quick run", "full run");
        let parts = [
            format!(
                "{}; {pace}, {:.0} s. Both servers in turn in one run, each on one core together with its client.",
                self.machine,
                self.took.as_secs_f64()
            ),
            "Round trips over MCP stdio, µs (floor = a bare server: read, hash, write a temporary file, swap):".into(),
            self.calls_table(),
            format!("A file of {LINES} lines, µs:"),
            self.depth_table(),
            format!("Growth: {} files read and edited once each in one session, median µs:", self.growth.files),
            self.growth_table(),
            format!("Resident memory after those {} calls:", self.growth.operations()),
            self.memory_table(),
            "Start: from spawn to answer, median ms:".into(),
            self.start_table(),
            format!("Search of {} files on all cores, {}, median ms:", self.search.files, self.ripgrep()),
            self.search_table(),
            format!("Scan of {} files on all cores, median ms:", self.scan.files),
            self.scan_table(),
        ];
        parts.map(|part| part + "\n").join("\n")
    }

    /// The same numbers for programs; durations in µs.
    pub fn to_json(&self) -> Value {
        json!({
            "machine": self.machine,
            "pace": self.pace.pick("quick", "full"),
            "took_s": self.took.as_secs_f64(),
            "calls": self.calls.iter().map(|row| json!({
                "call": row.kind.label(), "bytes": row.bytes, "times": summaries(&row.times),
            })).collect::<Vec<_>>(),
            "depth": self.depth.rows.iter().map(|(label, times)| json!({ "call": label, "times": summary(times) })).collect::<Vec<_>>(),
            "growth": {
                "files": self.growth.files,
                "operations": self.growth.operations(),
                "rows": self.growth.rows.iter().map(|row| json!({
                    "call": row.label,
                    "surehand": windows(row.early.surehand, row.late.surehand),
                    "floor": windows(row.early.floor, row.late.floor),
                })).collect::<Vec<_>>(),
                "resident_kib": {"surehand": self.growth.resident_kib.surehand, "floor": self.growth.resident_kib.floor},
            },
            "start": self.start.iter().map(|row| json!({
                "workspace": row.workspace, "initialize": summaries(&row.greeting), "first_read": summaries(&row.read),
            })).collect::<Vec<_>>(),
            "search": {
                "files": self.search.files,
                "ripgrep": self.search.ripgrep,
                "rows": self.search.rows.iter().map(|row| json!({
                    "pattern": row.label,
                    "surehand_p50_us": exact_micros(row.surehand.p50),
                    "ripgrep_p50_us": row.ripgrep.map(|ripgrep| exact_micros(ripgrep.p50)),
                    "ratio": row.ripgrep.map(|ripgrep| ratio(row.surehand.p50, ripgrep.p50)),
                })).collect::<Vec<_>>(),
            },
            "scan": {
                "files": self.scan.files,
                "rows": self.scan_rows().map(|(label, surehand, beside, other)| json!({
                    "scan": label,
                    "surehand_p50_us": exact_micros(surehand.p50),
                    "beside": beside,
                    "beside_p50_us": exact_micros(other.p50),
                    "ratio": ratio(surehand.p50, other.p50),
                })),
            },
        })
    }

    fn calls_table(&self) -> String {
        let header = ["call", "size", "surehand p50", "surehand p95", "floor p50", "floor p95", "surehand / floor"];
        let rows = self.calls.iter().map(|CallRow { kind, size, times, .. }| {
            let Pair { surehand, floor } = times;
            [
                kind.label().into(),
                (*size).into(),
                micros(surehand.p50),
                micros(surehand.p95),
                micros(floor.p50),
                micros(floor.p95),
                times_as_long(surehand.p50, floor.p50),
            ]
        });
        table(2, header, rows)
    }

    fn growth_table(&self) -> String {
        let header = ["call", "server", "files 10 to 110", "last 100 files", "late / early"];
        let rows = self.growth.rows.iter().flat_map(|row| {
            [("surehand", Side::Surehand), ("floor", Side::Floor)].map(|(name, side)| {
                let (early, late) = (*row.early.side(side), *row.late.side(side));
                [row.label.into(), name.into(), micros(early), micros(late), times_as_long(late, early)]
            })
        });
        table(2, header, rows)
    }

    fn depth_table(&self) -> String {
        let rows = self.depth.rows.iter().map(|(label, times)| [label.to_string(), micros(times.p50), micros(times.p95)]);
        table(1, ["call", "p50", "p95"], rows)
    }

    fn memory_table(&self) -> String {
        let Pair { surehand, floor } = self.growth.resident_kib.map(|&kib| format!("{:.1}", kib as f64 / 1024.0));
        table(1, ["server", "VmRSS, MiB"], [["surehand".into(), surehand], ["floor".into(), floor]])
    }

    fn start_table(&self) -> String {
        let header = ["workspace", "answer", "surehand", "floor", "surehand / floor"];
        let rows = self.start.iter().flat_map(|row| {
            [("initialize", &row.greeting), ("first read_file", &row.read)].map(|(answer, Pair { surehand, floor })| {
                let ratio = times_as_long(surehand.p50, floor.p50);
                [row.workspace.clone(), answer.into(), millis(surehand.p50), millis(floor.p50), ratio]
            })
        });
        table(2, header, rows)
    }

    fn ripgrep(&self) -> String {
        match &self.search.ripgrep {
            Some(version) => format!("search_files over MCP beside a run of {version}"),
            None => "search_files over MCP (ripgrep is not installed, so there is nothing beside it)".into(),
        }
    }

    fn search_table(&self) -> String {
        let header = ["pattern", "surehand", "ripgrep", "surehand / ripgrep"];
        let rows = self.search.rows.iter().map(|row| {
            let ours = row.surehand.p50;
            let none = || "—".to_owned();
            let theirs = row.ripgrep.map(|ripgrep| ripgrep.p50);
            [
                row.label.into(),
                millis(ours),
                theirs.map_or_else(none, millis),
                theirs.map_or_else(none, |theirs| times_as_long(ours, theirs)),
            ]
        });
        table(1, header, rows)
    }

    /// Each kind of scan with what it is compared to.
    fn scan_rows(&self) -> [(&'static str, Summary, &'static str, Summary); 4] {
        let Scan { warm, warm_inside, git, bare, cold, sums, .. } = self.scan;
        [
            ("nothing changed, surehand scan", warm, "git status", git),
            ("nothing changed, surehand scan", warm, "bare walk + stat", bare),
            ("nothing changed, without the process", warm_inside, "bare walk + stat", bare),
            ("first, surehand scan", cold, "sha256sum on all cores", sums),
        ]
    }

    fn scan_table(&self) -> String {
        let rows = self.scan_rows().map(|(label, surehand, beside, other)| {
            let ratio = times_as_long(surehand.p50, other.p50);
            [label.into(), beside.into(), millis(surehand.p50), millis(other.p50), ratio]
        });
        table(2, ["scan", "beside", "surehand", "the other", "surehand / other"], rows)
    }
}

/// A markdown table whose columns line up as plain text too; the first `left` columns are words, the rest numbers.
pub fn table<const N: usize>(left: usize, header: [&str; N], rows: impl IntoIterator<Item = [String; N]>) -> String {
    let rows: Vec<_> = rows.into_iter().collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0).max(header[column].len());
    let line = |cells: [&str; N]| {
        let padded: Vec<_> = (0..N)
            .map(|column| match (cells[column], width(column)) {
                (cell, width) if column < left => format!("{cell:<width$}"),
                (cell, width) => format!("{cell:>width$}"),
            })
            .collect();
        format!("| {} |", padded.join(" | "))
    };
    let rule: Vec<_> = (0..N)
        .map(|column| match "-".repeat(width(column)) {
            dashes if column < left => format!("-{dashes}-"),
            dashes => format!("-{dashes}:"),
        })
        .collect();
    let mut lines = vec![line(header), format!("|{}|", rule.join("|"))];
    lines.extend(rows.iter().map(|row| line(row.each_ref().map(String::as_str))));
    lines.join("\n")
}

fn micros(duration: Duration) -> String {
    format!("{:.0}", duration.as_secs_f64() * 1e6)
}

fn millis(duration: Duration) -> String {
    format!("{:.2}", duration.as_secs_f64() * 1e3)
}

fn times_as_long(a: Duration, b: Duration) -> String {
    format!("{:.2}", ratio(a, b))
}

/// Both servers' percentiles and the ratio of the medians.
fn summaries(times: &Pair<Summary>) -> Value {
    let Pair { surehand, floor } = times.map(summary);
    json!({"surehand": surehand, "floor": floor, "ratio": ratio(times.surehand.p50, times.floor.p50)})
}

fn summary(times: &Summary) -> Value {
    json!({"p50_us": exact_micros(times.p50), "p95_us": exact_micros(times.p95), "calls": times.calls})
}

/// The two windows of a long session and their ratio.
fn windows(early: Duration, late: Duration) -> Value {
    json!({"early_p50_us": exact_micros(early), "late_p50_us": exact_micros(late), "ratio": ratio(late, early)})
}

/// Microseconds with the clock's resolution.
fn exact_micros(duration: Duration) -> f64 {
    duration.as_nanos() as f64 / 1e3
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
