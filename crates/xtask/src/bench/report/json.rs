//! The report as JSON. Durations are in µs.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::Report;
use crate::bench::calls::CallRow;
use crate::bench::growth::Windows;
use crate::measurement::{PerServer, Summary, ratio};

impl Report {
    /// One object with everything.
    pub(crate) fn to_json(&self) -> Value {
        let named = |each: &PerServer<Summary>| self.named(&each.map(summary));
        let call = |row: &CallRow| json!({"call": row.kind.label(), "bytes": row.bytes, "times": named(&row.times)});
        json!({
            "machine": self.machine,
            "pace": self.pace.pick("quick", "full"),
            "took_s": self.took.as_secs_f64(),
            "peers": self.peers.iter().map(|peer| json!({
                "name": peer.label, "package": peer.package, "version": peer.version, "from": peer.registry.label(), "syncs": peer.syncs,
            })).collect::<Vec<_>>(),
            "left_out": self.left_out.iter().map(|left_out| json!({
                "package": left_out.peer.package, "reason": left_out.reason,
            })).collect::<Vec<_>>(),
            "calls": self.calls.iter().map(call).collect::<Vec<_>>(),
            "calls_on_one_core": self.calls_on_one_core.iter().map(call).collect::<Vec<_>>(),
            "batches": self.batches.iter().map(|row| json!({ "batch": row.label, "times": named(&row.times) })).collect::<Vec<_>>(),
            "writes": self.writes.iter().map(|row| json!({
                "call": row.label, "times": self.named(&row.times.map(|times| json!(times.as_ref().map(summary)))),
            })).collect::<Vec<_>>(),
            "throughput": self.throughput.iter().map(|row| json!({
                "call": row.label, "per_second": self.named(&row.per_second.map(|&rate| json!(rate))),
            })).collect::<Vec<_>>(),
            "depth": self.depth.rows.iter().map(|(label, times)| json!({ "call": label, "times": summary(times) })).collect::<Vec<_>>(),
            "growth": {
                "files": self.growth.files,
                "files_of_peers": self.growth.files_of_peers,
                "rows": self.growth.rows.iter().map(|(label, each)| json!({
                    "call": label, "times": self.named(&each.map(windows)),
                })).collect::<Vec<_>>(),
                "resident_kib": self.named(&self.growth.resident_kib.map(|&kib| json!(kib))),
                "resident_kib_after_all": self.growth.resident_kib_after_all,
            },
            "start": self.start.iter().map(|row| json!({
                "workspace": row.workspace, "initialize": named(&row.greeting), "tools_list": named(&row.tools),
                "first_read": named(&row.read),
            })).collect::<Vec<_>>(),
            "hook": self.hook.rows.iter().map(|(label, times)| json!({ "process": label, "times": summary(times) })).collect::<Vec<_>>(),
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
            "snapshot": {
                "tokens": self.snapshot.tokens, "call": summary(&self.snapshot.call), "command": summary(&self.snapshot.command),
            },
            "going_back": self.going_back.rows.iter().map(|row| json!({
                "what": row.label, "files": row.files, "surehand": summary(&row.surehand), "git_status": row.git.as_ref().map(summary),
            })).collect::<Vec<_>>(),
            "memory": {
                "files": self.memory.files, "surehand_kib": self.memory.surehand_kib, "floor_kib": self.memory.floor_kib,
            },
        })
    }

    /// An object with the names of the servers; those that took no part are missing.
    fn named(&self, each: &PerServer<Value>) -> Value {
        self.names.iter().cloned().zip(each.iter().cloned()).collect::<Map<_, _>>().into()
    }
}

fn summary(times: &Summary) -> Value {
    json!({"p50_us": exact_micros(times.p50), "p95_us": exact_micros(times.p95), "calls": times.calls})
}

/// The two windows of a long session and their ratio.
fn windows(windows: &Windows) -> Value {
    let Windows { early, late } = *windows;
    json!({"early_p50_us": exact_micros(early), "late_p50_us": exact_micros(late), "ratio": ratio(late, early)})
}

/// Microseconds with the clock's resolution.
fn exact_micros(duration: Duration) -> f64 {
    duration.as_nanos() as f64 / 1e3
}
