//! Asks git which commit wrote which line.

use std::{collections::HashMap, ops::Range, path::Path};

use surehand_core::timestamp::Millis;

use super::{
    ObjectId,
    program::{GitError, output_of, reading_git_in},
};

/// A commit that wrote lines.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CommitInfo {
    /// The commit's id, in hexadecimal digits.
    pub id: String,
    /// Name of the author.
    pub author: String,
    /// When the author wrote it, in milliseconds since the Unix epoch.
    pub at: Millis,
    /// When it was committed, in milliseconds since the Unix epoch. A rebase commits it anew.
    pub committed_at: Millis,
    /// The first line of its message.
    pub summary: String,
}

/// Runs of lines with their commits. The ranges are 0-based.
pub(crate) type CommittedRuns = Vec<(Range<usize>, CommitInfo)>;

/// If there are more runs of lines, git is asked about all lines.
const MOST_RUNS: usize = 100;

/// Finds the commits that wrote these lines of a file in a commit. The ranges are 0-based.
pub(crate) fn commits_of_lines(
    tree: &Path,
    commit: &ObjectId,
    path: &str,
    wanted: &[Range<usize>],
) -> Result<CommittedRuns, GitError> {
    if wanted.is_empty() {
        return Ok(Vec::new());
    }
    let mut git = reading_git_in(tree);
    git.args(["blame", "--incremental", "--no-textconv"]);
    if wanted.len() <= MOST_RUNS {
        git.args(wanted.iter().map(|lines| format!("-L{},{}", lines.start + 1, lines.end)));
    }
    git.arg(commit.to_string()).arg("--").arg(path);
    let mut runs = parse(&String::from_utf8_lossy(&output_of(git, b"")?));
    runs.sort_by_key(|(lines, _)| lines.start);
    Ok(runs)
}

/// Each run begins with `COMMIT LINE-THERE LINE-HERE COUNT` and ends with `filename`. The details of a commit come with
/// its first run.
fn parse(output: &str) -> CommittedRuns {
    let (mut runs, mut known) = (Vec::new(), HashMap::<String, CommitInfo>::new());
    let (mut lines, mut commit) = (0..0, CommitInfo::of(""));
    for line in output.lines() {
        let (key, value) = line.split_once(' ').unwrap_or((line, ""));
        let seconds = || value.parse::<i64>().unwrap_or_default().saturating_mul(1000);
        match key {
            "author" => value.clone_into(&mut commit.author),
            "author-time" => commit.at = seconds(),
            "committer-time" => commit.committed_at = seconds(),
            "summary" => value.clone_into(&mut commit.summary),
            "filename" => {
                known.insert(commit.id.clone(), commit.clone());
                runs.push((lines.clone(), commit.clone()));
            }
            id if matches!(id.len(), 40 | 64) && id.bytes().all(|byte| byte.is_ascii_hexdigit()) => {
                let mut numbers = value.split(' ').skip(1).filter_map(|number| number.parse::<usize>().ok());
                let (first, count) = (numbers.next().unwrap_or(1), numbers.next().unwrap_or_default());
                let start = first.saturating_sub(1);
                lines = start..start + count;
                commit = known.get(id).cloned().unwrap_or_else(|| CommitInfo::of(id));
            }
            _ => {}
        }
    }
    runs
}

impl CommitInfo {
    fn of(id: &str) -> Self {
        Self { id: id.to_owned(), author: String::new(), at: 0, committed_at: 0, summary: String::new() }
    }
}
