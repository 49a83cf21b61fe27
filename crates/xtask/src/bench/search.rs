//! The time to search a large tree, beside ripgrep if it is installed. Nothing is pinned to a core, because both use
//! all of them.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::json;

use crate::bench::Bench;
use crate::bench::client::Client;
use crate::files::{content, create};
use crate::machine;
use crate::measurement::Summary;

/// Size of a file in bytes.
const BYTES: usize = 4 << 10;
/// One in this many files has a match.
const RARE: usize = 2_000;

/// The patterns: rare words, a word that does not occur, and a pattern without a literal to search for first.
const PATTERNS: [(&str, &str); 3] = [
    ("rare words", "needle in the haystack"),
    ("nothing", "there is no such line"),
    ("rare, by classes", r"\w+ \w+ \w+ haystack$"),
];

pub(crate) struct Search {
    /// How many files were searched.
    pub files: usize,
    /// The version of ripgrep, if it is installed.
    pub ripgrep: Option<String>,
    /// One row for each pattern.
    pub rows: Vec<SearchRow>,
}

pub(crate) struct SearchRow {
    /// The kind of pattern.
    pub label: &'static str,
    /// Round trips of `search_files`.
    pub surehand: Summary,
    /// Runs of `rg` from its start to its end.
    pub ripgrep: Option<Summary>,
}

/// Measures searches in turn with ripgrep.
pub(super) fn measure(bench: &Bench) -> Result<Search> {
    let files = bench.pace.pick(5_000, 20_000);
    let root = bench.workspace()?;
    for file in 0..files {
        let mut text = content(file, BYTES);
        if file % RARE == 0 {
            text.push_str("// needle in the haystack\n");
        }
        create(&root, &format!("directory-{:03}/sub-{}/file-{file:05}.rs", file / 100, file % 5), &text)?;
    }
    machine::settle();
    let mut client = Client::start(&bench.fast.surehand, &root)?;
    let ripgrep = version();
    let rounds = bench.pace.pick(5, 15);
    let rows = PATTERNS.iter().map(|&(label, pattern)| row(&mut client, &root, ripgrep.is_some(), label, pattern, rounds));
    Ok(Search { files, rows: rows.collect::<Result<_>>()?, ripgrep })
}

fn row(
    client: &mut Client,
    root: &Path,
    has_ripgrep: bool,
    label: &'static str,
    pattern: &str,
    rounds: usize,
) -> Result<SearchRow> {
    let (mut ours, mut theirs): (Vec<Duration>, Vec<Duration>) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        let answer = client.call("search_files", json!({ "pattern": pattern }))?;
        ours.push(answer.took());
        if has_ripgrep {
            let (took, lines) = ripgrep(root, pattern)?;
            let shown = answer.text.lines().filter(|line| line.contains("|// needle")).count();
            ensure!(shown == lines, "{pattern}: {shown} lines, ripgrep has {lines}");
            theirs.push(took);
        }
    }
    Ok(SearchRow { label, surehand: Summary::of(&ours), ripgrep: has_ripgrep.then(|| Summary::of(&theirs)) })
}

/// `ripgrep 15.1.0` from its own output; `None` if it is not installed.
fn version() -> Option<String> {
    let output = Command::new("rg").arg("--version").output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    Some(text.lines().next()?.split(" (").next()?.to_owned())
}

/// Searches by the rules of `search_files`. Returns the time and the number of lines.
fn ripgrep(root: &Path, pattern: &str) -> Result<(Duration, usize)> {
    let mut command = Command::new("rg");
    command.args(["--hidden", "--no-require-git", "--no-ignore-parent", "--no-ignore-global", "--line-number"]);
    command.args(["--glob", "!.git", "--glob", "!.surehand", pattern, "."]).current_dir(root);
    let began = Instant::now();
    let output = command.output().context("rg")?;
    let took = began.elapsed();
    Ok((took, output.stdout.iter().filter(|&&byte| byte == b'\n').count()))
}
