//! The economy of tokens: the cost of an edit in each dialect, with and without outside changes, over real histories.
//! Every edit goes through a real session, from the first read to the right content. The tokens are counted by a real
//! tokenizer.

pub(crate) mod change;
pub(crate) mod dialect;
mod packages;
mod play;
mod report;
pub(crate) mod succession;
mod tally;

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use surehand_core::Text;

use self::change::{Change, Contact, between, meant};
use self::dialect::DIALECTS;
use self::packages::PACKAGES;
use self::play::{Cost, End, Outcome, READINGS, Reading, STRATEGIES, Script, Stage, Strategy};
use self::succession::Succession;
use self::tally::{Sample, Source, Tally};

/// The inputs of the study.
pub(crate) struct Economy {
    /// Paths of git repositories.
    pub repositories: Vec<PathBuf>,
    /// Whether well-known packages are fetched and measured too.
    pub packages: Packages,
    /// At most this many edits of each succession, spread evenly over it.
    pub limit: usize,
}

/// Whether well-known packages are measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Packages {
    /// They are fetched, once.
    Fetched,
    /// Only repositories, no packages.
    None,
}

/// A change from one version of a file to the next, which a model could make in one go.
struct Edit<'a> {
    path: &'a str,
    /// The version before, if its difference is an edit, too.
    seen: Option<&'a Text>,
    base: &'a Text,
    goal: &'a Text,
    changes: Vec<Change>,
}

impl Economy {
    /// Plays all edits.
    pub(crate) fn measure(&self) -> Result<Tally> {
        let mut tally = Tally::default();
        for succession in self.successions()? {
            measure_succession(&mut tally, &succession, self.limit)?;
        }
        Ok(tally)
    }

    fn successions(&self) -> Result<Vec<Succession>> {
        let mut successions = Vec::new();
        for repository in &self.repositories {
            successions.push(Succession::of_repository(repository_name(repository), repository)?);
        }
        if self.packages == Packages::Fetched {
            let below = workspace_root().join("target/economy");
            std::fs::create_dir_all(&below).with_context(|| below.display().to_string())?;
            for package in &PACKAGES {
                successions.push(Succession::of_releases(package.title(), &package.fetch(&below)?)?);
            }
        }
        Ok(successions)
    }
}

/// The repository that this program is of.
fn workspace_root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn repository_name(repository: &Path) -> String {
    if repository == Path::new(".") {
        return "this repository, Rust, commit by commit".to_owned();
    }
    let name =
        repository.file_name().map_or_else(|| repository.display().to_string(), |name| name.to_string_lossy().into_owned());
    format!("{name}, commit by commit")
}

/// Puts a report between the marks of the page about the economy.
pub(crate) fn write(report: &str) -> Result<()> {
    const BEGIN: &str = "<!-- economy: begin -->\n";
    const END: &str = "<!-- economy: end -->";
    let page = workspace_root().join("docs/economy.md");
    let text = std::fs::read_to_string(&page).with_context(|| page.display().to_string())?;
    let (head, rest) = text.split_once(BEGIN).context("the page has no mark where the report begins")?;
    let (_, tail) = rest.split_once(END).context("the page has no mark where the report ends")?;
    std::fs::write(&page, format!("{head}{BEGIN}\n{report}\n{END}{tail}")).with_context(|| page.display().to_string())
}

fn measure_succession(tally: &mut Tally, succession: &Succession, limit: usize) -> Result<()> {
    let mut source = Source { name: succession.name.clone(), ..Source::default() };
    let edits = spread(edits(succession, &mut source), limit);
    eprintln!("{}: {} edits ...", succession.name, edits.len());
    let first = tally.samples.len();
    let mut stage = Stage::open()?;
    let mut last_path = "";
    for edit in &edits {
        if std::mem::replace(&mut last_path, edit.path) != edit.path {
            source.files += 1;
        }
        stage.next_file();
        measure_edit(tally, &mut source, &mut stage, edit)?;
    }
    tally.samples[first..].iter_mut().for_each(|sample| sample.source = tally.sources.len());
    tally.sources.push(source);
    Ok(())
}

fn edits<'a>(succession: &'a Succession, source: &mut Source) -> Vec<Edit<'a>> {
    let mut edits = Vec::new();
    for (path, versions) in &succession.files {
        let mut seen = None;
        for pair in versions.windows(2) {
            let [base, goal] = pair else { unreachable!("windows of two") };
            let changes = between(base, goal);
            let is_edit = is_edit(base, &changes);
            if is_edit {
                edits.push(Edit { path, seen, base, goal, changes });
            } else {
                source.too_large += 1;
            }
            seen = is_edit.then_some(base);
        }
    }
    edits
}

/// Nobody changes more than this without reading again: it is a rewrite, or the work of several days.
fn is_edit(base: &Text, changes: &[Change]) -> bool {
    const MOST_PLACES: usize = 12;
    const MOST_LINES: usize = 150;
    let lines: usize = changes.iter().map(|change| change.lines.len().max(change.with.len())).sum();
    let gone: usize = changes.iter().map(|change| change.lines.len()).sum();
    changes.len() <= MOST_PLACES && lines <= MOST_LINES && gone * 2 <= base.line_count()
}

/// At most this many items, spread evenly over all.
fn spread<T>(all: Vec<T>, most: usize) -> Vec<T> {
    let count = all.len();
    if count <= most {
        return all;
    }
    let is_taken = |index: &usize| (index * most) / count != ((index + 1) * most) / count;
    all.into_iter().enumerate().filter(|(index, _)| is_taken(index)).map(|(_, one)| one).collect()
}

fn measure_edit(tally: &mut Tally, source: &mut Source, stage: &mut Stage, edit: &Edit<'_>) -> Result<()> {
    let Some(quiet) = play_quiet(stage, edit)? else {
        source.unmade += 1;
        return Ok(());
    };
    source.edits += 1;
    let undisturbed = |sample: &Sample| {
        let like = quiet.iter().find(|quiet| (quiet.dialect, quiet.reading) == (sample.dialect, sample.reading));
        like.expect("every dialect was played quietly").outcome.rest
    };
    let (seen, contact, meant) = match edit.seen.map(|seen| (seen, meant(seen, edit.base, edit.goal))) {
        Some((seen, Some((meant, contact)))) => (seen, contact, meant),
        Some((_, None)) | None => {
            tally.samples.extend(quiet);
            return Ok(());
        }
    };
    match contact {
        Contact::Elsewhere => source.elsewhere += 1,
        Contact::SameLines => source.same_lines += 1,
    }
    for dialect in DIALECTS {
        for reading in READINGS {
            for strategy in STRATEGIES {
                let (path, goal, outside) = (edit.path, edit.goal, Some(edit.base));
                let outcome = stage.play(Script { path, seen, outside, meant: &meant, goal, dialect, reading, strategy })?;
                let is_good = match strategy {
                    Strategy::Reread | Strategy::Repair => outcome.end == End::Right,
                    Strategy::Rebase => outcome.end != End::Wrong,
                    Strategy::Blind => true,
                };
                ensure!(is_good, "{path}: {strategy:?} ended wrong by {}", dialect.name());
                let mut sample = edit.sample(dialect, reading, strategy, outcome);
                (sample.contact, sample.undisturbed) = (Some(contact), undisturbed(&sample));
                tally.samples.push(sample);
            }
        }
    }
    let (dialect, reading, strategy) = (dialect::Dialect::Replace, Reading::Whole, Strategy::Repair);
    tally.again.push(stage.play_again(edit.script(dialect, reading, strategy))?);
    tally.samples.extend(quiet);
    Ok(())
}

/// Plays the edit in every dialect without outside changes; `None` if a tool does not accept the file.
fn play_quiet(stage: &mut Stage, edit: &Edit<'_>) -> Result<Option<Vec<Sample>>> {
    let mut samples = Vec::new();
    for dialect in DIALECTS {
        for reading in READINGS {
            let Ok(outcome) = stage.play(edit.script(dialect, reading, Strategy::Repair)) else { return Ok(None) };
            ensure!(outcome.end == End::Right, "{}: ended wrong by {}", edit.path, dialect.name());
            samples.push(edit.sample(dialect, reading, Strategy::Repair, outcome));
        }
    }
    Ok(Some(samples))
}

impl Edit<'_> {
    fn script(&self, dialect: dialect::Dialect, reading: Reading, strategy: Strategy) -> Script<'_> {
        let Self { path, base, goal, changes, .. } = self;
        Script { path, seen: base, outside: None, meant: changes, goal, dialect, reading, strategy }
    }

    fn sample(&self, dialect: dialect::Dialect, reading: Reading, strategy: Strategy, outcome: Outcome) -> Sample {
        let replaced = self.changes.iter().map(|change| change.lines.len()).sum();
        let lines = self.base.line_count();
        Sample { source: 0, contact: None, dialect, reading, strategy, lines, replaced, outcome, undisturbed: Cost::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_is_spread_over_all() {
        assert_eq!(spread(vec![1, 2, 3], 5), [1, 2, 3]);
        assert_eq!(spread((0..10).collect(), 5), [1, 3, 5, 7, 9]);
        assert_eq!(spread((0..10).collect(), 3).len(), 3);
    }

    #[test]
    fn a_succession_is_measured_in_every_dialect() {
        let version = |change: (usize, &str)| {
            let line = |line: usize| if line == change.0 { change.1.to_owned() } else { format!("line {line}") };
            Text::of((1..=40).map(|number| line(number) + "\n").collect()).unwrap()
        };
        let versions = vec![version((0, "")), version((3, "theirs")), version((3, "theirs\nmore"))];
        let succession = Succession { name: "a".to_owned(), files: vec![("a.rs".to_owned(), versions)] };
        let mut tally = Tally::default();
        measure_succession(&mut tally, &succession, 10).unwrap();
        assert_eq!((tally.sources[0].edits, tally.sources[0].files), (2, 1));
        let quiet = DIALECTS.len() * READINGS.len();
        assert_eq!(tally.samples.len(), 2 * quiet + quiet * STRATEGIES.len());
        assert!(tally.to_markdown().contains("anchored lines"));
    }
}
