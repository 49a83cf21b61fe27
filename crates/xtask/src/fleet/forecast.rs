//! `cargo xtask fleet forecast`: whether the forecast agrees with `git merge-file`, for each file that both sides of a
//! merge changed.

use std::{
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};
use clap::Args;
use serde_json::{Value, json};
use surehand_core::{
    Forecast,
    forecast::{Version, VersionHunk, forecast},
    merge3::{MarkerNames, NotMerged, hunks, merge3},
};

use super::merges::{Algorithm, MergeFile, Repository};
use crate::table::table;

/// The flags of `fleet forecast`.
#[derive(Args)]
pub(crate) struct ForecastArgs {
    /// Repositories with merges in their history; bare ones will do
    #[arg(value_name = "REPO", required = true)]
    repositories: Vec<PathBuf>,
    /// How many merges with files that both sides changed are compared, in all repositories together
    #[arg(long, value_name = "N", default_value_t = 2000)]
    limit: usize,
    /// Print one JSON object instead of a table
    #[arg(long)]
    json: bool,
}

/// The results for a repository.
#[derive(Debug, Default)]
struct Tally {
    name: String,
    /// Merges with files that both sides changed.
    merges: usize,
    files: usize,
    /// Files that git takes for binary.
    binary: usize,
    conflicts: usize,
    /// Conflicts of git that the forecast did not find.
    missed: usize,
    /// Clean merges that the forecast called conflicts.
    wrong: usize,
    /// Files whose merged text, including the markers, differs from git's.
    other_text: usize,
    /// Files of which the whole contents gave no forecast.
    unknown: usize,
    /// The same comparison from the line numbers alone.
    without_text: WithoutText,
    /// Files that git merges otherwise with the algorithm of `git merge`.
    other_in_histogram: usize,
    times: Vec<Duration>,
}

/// The forecasts when the text is not shared.
#[derive(Debug, Default)]
struct WithoutText {
    /// Conflicts that are certain, and are conflicts.
    found: usize,
    /// Overlaps that are reported as conflicts unless they are the same change.
    unknown: usize,
    /// Wrong answers of either kind.
    wrong: usize,
}

/// Compares, and prints the report.
pub(super) fn run(args: &ForecastArgs) -> Result<()> {
    let mut tallies: Vec<Tally> = Vec::new();
    for (place, path) in args.repositories.iter().enumerate() {
        let done: usize = tallies.iter().map(|tally| tally.merges).sum();
        // If a repository has too few, the next ones make up for it.
        let share = (args.limit - done).div_ceil(args.repositories.len() - place);
        tallies.push(compare(path, share)?);
    }
    if args.json {
        println!("{:#}", json!({ "repositories": tallies.iter().map(Tally::to_json).collect::<Vec<_>>() }));
    } else {
        println!("{}", to_markdown(&tallies));
    }
    verdict(&tallies)
}

/// No clean merge may be called a conflict, and no text may differ.
fn verdict(tallies: &[Tally]) -> Result<()> {
    let sum = |of: fn(&Tally) -> usize| tallies.iter().map(of).sum::<usize>();
    let wrong = sum(|tally| tally.wrong + tally.without_text.wrong);
    ensure!(wrong == 0, "{wrong} forecasts are wrong");
    let (missed, conflicts) = (sum(|tally| tally.missed), sum(|tally| tally.conflicts));
    ensure!(missed * 100 <= conflicts, "{missed} of {conflicts} conflicts were not found");
    Ok(())
}

fn compare(path: &Path, limit: usize) -> Result<Tally> {
    let mut repository = Repository::open(path)?;
    let mut tally = Tally { name: repository.name(), ..Tally::default() };
    eprintln!("comparing merges of {} ...", tally.name);
    let dir = tempfile::Builder::new().prefix("surehand-forecast-").tempdir()?;
    for merge in repository.merges()? {
        if tally.merges == limit {
            break;
        }
        let files = repository.common_files(&merge)?.unwrap_or_default();
        tally.merges += usize::from(!files.is_empty());
        for file in files {
            let base = file.base.as_deref().map_or(Ok(Vec::new()), |id| repository.blob(id))?;
            let (mine, theirs) = (repository.blob(&file.mine)?, repository.blob(&file.theirs)?);
            tally.compare_file(dir.path(), [&base, &mine, &theirs], |what| {
                eprintln!("{} {}: {what}", merge.commit, file.path);
            })?;
        }
    }
    Ok(tally)
}

impl Tally {
    fn compare_file(&mut self, dir: &Path, contents: [&[u8]; 3], report: impl Fn(&str)) -> Result<()> {
        let [base, mine, theirs] = contents;
        let git = MergeFile::run(dir, Algorithm::Myers, contents)?;
        let began = Instant::now();
        let forecast = forecast(base, &Version::Content(mine), &Version::Content(theirs));
        self.times.push(began.elapsed());
        self.files += 1;
        let Some(git) = git else {
            self.binary += 1;
            ensure!(forecast == Forecast::Binary, "git takes it for binary, the forecast is {forecast:?}");
            return Ok(());
        };
        self.conflicts += usize::from(!git.is_clean);
        match (&forecast, git.is_clean) {
            (Forecast::Clean, true) | (Forecast::SameLines(_), false) => {}
            (Forecast::SameLines(_), true) => {
                self.wrong += 1;
                report("a clean merge was called a conflict");
            }
            (other, is_clean) => {
                self.missed += usize::from(!is_clean);
                self.unknown += usize::from(matches!(other, Forecast::Unknown(_)));
                report(&format!("the forecast is {other:?}, and git's merge {}", if is_clean { "clean" } else { "a conflict" }));
            }
        }
        match merge3(base, mine, theirs) {
            Ok(merge) if merge.text(MarkerNames { mine: "mine", theirs: "theirs" }) == git.text => {}
            Err(NotMerged::TooMuchWork) => {}
            _ => {
                self.other_text += 1;
                report("the merged text is not git's");
            }
        }
        self.without_text.compare(contents, git.is_clean, report);
        let histogram = MergeFile::run(dir, Algorithm::Histogram, contents)?;
        self.other_in_histogram += usize::from(histogram.is_some_and(|other| other.is_clean != git.is_clean));
        Ok(())
    }

    fn to_json(&self) -> Value {
        json!({
            "name": self.name,
            "merges": self.merges,
            "files": self.files,
            "binary": self.binary,
            "conflicts": self.conflicts,
            "missed": self.missed,
            "wrong": self.wrong,
            "other_text": self.other_text,
            "unknown": self.unknown,
            "without_text": {
                "found": self.without_text.found,
                "unknown": self.without_text.unknown,
                "wrong": self.without_text.wrong,
            },
            "other_in_histogram": self.other_in_histogram,
            "microseconds": { "p50": self.microseconds(50), "p99": self.microseconds(99) },
        })
    }

    fn microseconds(&self, percent: usize) -> u128 {
        let mut times = self.times.clone();
        times.sort_unstable();
        times.get(times.len() * percent / 100).map_or(0, Duration::as_micros)
    }
}

impl WithoutText {
    fn compare(&mut self, [base, mine, theirs]: [&[u8]; 3], is_clean: bool, report: impl Fn(&str)) {
        let Ok(theirs) = hunks(base, theirs) else { return };
        let theirs = theirs.into_iter().map(|lines| VersionHunk { lines, text: None }).collect();
        match (forecast(base, &Version::Content(mine), &Version::Hunks(theirs)), is_clean) {
            (Forecast::Clean, true) => {}
            (Forecast::SameLines(_), false) => self.found += 1,
            (Forecast::Unknown(_), _) => self.unknown += 1,
            (other, _) => {
                self.wrong += 1;
                report(&format!("without their text, the forecast is {other:?}"));
            }
        }
    }
}

fn to_markdown(tallies: &[Tally]) -> String {
    let header = [
        "repository",
        "merges",
        "files",
        "conflicts",
        "found",
        "clean called conflict",
        "other text",
        "not known",
        "binary",
        "without text: found",
        "without text: not known",
        "without text: wrong",
        "other with histogram",
        "p50 µs",
        "p99 µs",
    ];
    let columns: [fn(&Tally) -> usize; 12] = [
        |tally| tally.merges,
        |tally| tally.files,
        |tally| tally.conflicts,
        |tally| tally.conflicts - tally.missed,
        |tally| tally.wrong,
        |tally| tally.other_text,
        |tally| tally.unknown,
        |tally| tally.binary,
        |tally| tally.without_text.found,
        |tally| tally.without_text.unknown,
        |tally| tally.without_text.wrong,
        |tally| tally.other_in_histogram,
    ];
    let row = |tally: &Tally| {
        let numbers = columns.iter().map(|of| of(tally).to_string());
        let times = [50, 99].map(|percent| tally.microseconds(percent).to_string());
        std::iter::once(tally.name.clone()).chain(numbers).chain(times).collect::<Vec<_>>()
    };
    let mut rows: Vec<Vec<String>> = tallies.iter().map(row).collect();
    if tallies.len() > 1 {
        let sums = columns.iter().map(|of| tallies.iter().map(of).sum::<usize>().to_string());
        let times = tallies.iter().flat_map(|tally| tally.times.iter().copied()).collect();
        let all = Tally { times, ..Tally::default() };
        let times = [50, 99].map(|percent| all.microseconds(percent).to_string());
        rows.push(std::iter::once("all".to_owned()).chain(sums).chain(times).collect());
    }
    table(1, header, rows)
}

#[cfg(test)]
mod tests {
    use std::{fs, process::Command};

    use super::*;

    /// A repository whose branches edit the same file; each branch is merged into the one before.
    fn history(merges: u64) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        let git = |words: &[&str]| {
            let identity = ["-c", "user.name=n", "-c", "user.email=e@example.org", "-c", "commit.gpgsign=false"];
            let output = Command::new("git").current_dir(dir.path()).args(identity).args(words).output().unwrap();
            assert!(output.status.success(), "git {words:?}: {}", String::from_utf8_lossy(&output.stderr));
        };
        // A reproducible sequence of pseudo-random numbers.
        let mut state = 7_u64;
        let mut next = move |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        let mut edited = |seed: u64, count: u64| {
            let mut lines: Vec<String> = (0..60).map(|line| format!("line {}\n", line * seed % 23)).collect();
            for number in 0..count {
                let at = next(lines.len() as u64) as usize;
                match next(3) {
                    0 => drop(lines.remove(at)),
                    1 => lines.insert(at, format!("new {number}\n")),
                    _ => lines[at] = format!("changed {}\n", next(4)),
                }
            }
            lines.concat()
        };
        git(&["init", "-q", "-b", "main"]);
        for merge in 1..=merges {
            let mut commit = |edits: u64| {
                fs::write(dir.path().join("file"), edited(merge, edits)).unwrap();
                git(&["add", "-A"]);
                git(&["commit", "-q", "--allow-empty", "-m", "x"]);
            };
            commit(0);
            git(&["checkout", "-q", "-b", &format!("side{merge}")]);
            commit(1 + merge % 5);
            git(&["checkout", "-q", "main"]);
            commit(1 + merge % 7);
            git(&["merge", "-q", "-s", "ours", "-m", "m", &format!("side{merge}")]);
        }
        dir
    }

    #[test]
    fn forecasts_of_a_generated_history_are_what_git_does() {
        let dir = history(40);
        let tally = compare(dir.path(), 35).unwrap();
        assert_eq!((tally.merges, tally.files), (35, 35));
        assert!(tally.conflicts > 5 && tally.conflicts < 35, "{tally:?}");
        assert_eq!((tally.missed, tally.wrong, tally.other_text, tally.unknown, tally.without_text.wrong), (0, 0, 0, 0, 0));
        verdict(&[tally]).unwrap();
    }

    #[test]
    fn a_wrong_forecast_or_too_many_missed_conflicts_end_with_an_error() {
        let tally = |conflicts, missed, wrong| [Tally { conflicts, missed, wrong, ..Tally::default() }];
        assert!(verdict(&tally(100, 1, 0)).is_ok());
        assert!(verdict(&tally(100, 2, 0)).is_err());
        assert!(verdict(&tally(100, 0, 1)).is_err());
    }
}
