//! `surehand scan`: the changes in the whole workspace since the last scan.

use std::{
    io::{self, IsTerminal, Write},
    sync::Mutex,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use surehand_engine::{
    core::render::count,
    scan::{ScanBasis, ScanProgress, ScanReport, scan},
};

use crate::{args::StateArgs, local_paths::LocalPaths, output, workspace};

pub(crate) fn run(args: &StateArgs) -> anyhow::Result<()> {
    let workspace = workspace::open(&args.place)?;
    let line = ProgressLine::new();
    let scanned = scan(&workspace, &|progress| line.show(progress));
    line.clear();
    let scanned = scanned?;
    match args.json {
        true => output::print_json(&as_json(&scanned)),
        false => output::print(&as_text(&scanned, &LocalPaths::to(workspace.path()))),
    }
}

/// The number of paths of each kind that are listed; the rest are counted.
const NAMED: usize = 20;

fn as_text(scanned: &ScanReport, local_paths: &LocalPaths) -> String {
    let mut text = String::new();
    for (what, colour, paths) in [
        ("created", "32", &scanned.created),
        ("modified", "33", &scanned.modified),
        ("deleted", "31", &scanned.deleted),
        ("now ignored", "2", &scanned.ignored),
    ] {
        text.push_str(&named(what, colour, paths.iter().map(|path| local_paths.shown(path.as_str()))));
    }
    let unreadable = scanned.unreadable.iter().map(|(path, why)| format!("{}: {why}", local_paths.shown(path)));
    text.push_str(&named("cannot be read", "31", unreadable));
    if scanned.unnamed > 0 {
        text.push_str(&format!("left out: {}, not UTF-8 or too long\n", count(scanned.unnamed, "name")));
    }
    text.push_str(&summary(scanned));
    text
}

fn named(what: &str, colour: &str, lines: impl ExactSizeIterator<Item = String>) -> String {
    let more = lines.len().saturating_sub(NAMED);
    let mut text: String = lines.take(NAMED).map(|line| format!("\x1b[{colour}m{what}\x1b[0m {line}\n")).collect();
    if more > 0 {
        text.push_str(&format!("\x1b[{colour}m{what}\x1b[0m {more} more\n"));
    }
    text
}

fn summary(scanned: &ScanReport) -> String {
    let files = format!("{} in {:.2} s", count(scanned.files, "file"), scanned.took.as_secs_f64());
    let first = match scanned.basis {
        ScanBasis::LastScan => {
            let (created, modified, deleted) = (scanned.created.len(), scanned.modified.len(), scanned.deleted.len());
            return match (created, modified, deleted) {
                (0, 0, 0) => format!("{files}: nothing has changed since the last scan\n"),
                _ => format!("{files}: {created} created, {modified} modified, {deleted} deleted since the last scan\n"),
            };
        }
        ScanBasis::Nothing => "the first scan, to which the next one will be compared",
        ScanBasis::Damaged => "the record of the last scan is damaged, so the next one will be compared to this",
        ScanBasis::OtherVersion => {
            "the last scan was made by another version of Surehand, so the next one will be compared to this"
        }
    };
    format!("{files}: {first}\n")
}

fn as_json(scanned: &ScanReport) -> Value {
    let unreadable = scanned.unreadable.iter().map(|(path, why)| json!({ "path": path, "why": why }));
    json!({
        "files": scanned.files,
        "first": scanned.is_first(),
        "created": scanned.created,
        "modified": scanned.modified,
        "deleted": scanned.deleted,
        "ignored": scanned.ignored,
        "unreadable": unreadable.collect::<Vec<_>>(),
        "unnamed": scanned.unnamed,
        "hashed": scanned.hashed,
        "bytes_hashed": scanned.bytes_hashed,
        "seconds": scanned.took.as_secs_f64(),
    })
}

/// A progress line on the terminal, for a long scan.
struct ProgressLine {
    /// The time of the next update; `None` if the output is not a terminal.
    next: Option<Mutex<Instant>>,
    began: Instant,
}

impl ProgressLine {
    const EVERY: Duration = Duration::from_millis(100);

    fn new() -> Self {
        let began = Instant::now();
        Self { next: io::stderr().is_terminal().then(|| Mutex::new(began + 3 * Self::EVERY)), began }
    }

    fn show(&self, progress: ScanProgress) {
        // If the lock is taken, another thread shows the progress.
        let Some(Ok(mut next)) = self.next.as_ref().map(Mutex::try_lock) else { return };
        let now = Instant::now();
        if now < *next {
            return;
        }
        *next = now + Self::EVERY;
        let _ = write!(io::stderr(), "\r\x1b[2K{}", progress_text(progress, now - self.began));
    }

    fn clear(&self) {
        if self.next.is_some() {
            let _ = write!(io::stderr(), "\r\x1b[2K");
        }
    }
}

fn progress_text(progress: ScanProgress, took: Duration) -> String {
    let ScanProgress { files, expected, bytes_hashed } = progress;
    let share = |expected: usize| (files.min(expected) * 100).checked_div(expected).unwrap_or(100);
    let of = expected.map(|expected| format!(" of about {expected} ({} %)", share(expected))).unwrap_or_default();
    format!("scanning: {files}{of} files, {:.1} MB hashed, {:.1} s", bytes_hashed as f64 / 1e6, took.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_is_told_with_and_without_an_end_in_sight() {
        let progress = ScanProgress { files: 150, expected: None, bytes_hashed: 2_500_000 };
        let took = Duration::from_millis(400);
        assert_eq!(progress_text(progress, took), "scanning: 150 files, 2.5 MB hashed, 0.4 s");
        let expected = |expected| progress_text(ScanProgress { expected: Some(expected), ..progress }, took);
        assert_eq!(expected(200), "scanning: 150 of about 200 (75 %) files, 2.5 MB hashed, 0.4 s");
        assert_eq!(expected(100), "scanning: 150 of about 100 (100 %) files, 2.5 MB hashed, 0.4 s");
        assert_eq!(expected(0), "scanning: 150 of about 0 (100 %) files, 2.5 MB hashed, 0.4 s");
    }
}
