//! The report: what the torture did, where every token went, and the violations that it found. Only text and tables.

use std::{fmt, path::PathBuf};

use serde_json::{Value, json};

/// Counts of calls, kills and other events.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Workspaces that were set up, and checked at the end.
    pub rounds: u64,
    /// Processes that were killed.
    pub kills: u64,
    /// Kills in the middle of a batch, which recovery must settle.
    pub half_done: u64,
    /// Calls that were acknowledged as changes.
    pub acknowledged: u64,
    /// Changes that were refused.
    pub refused: u64,
    /// Changes that were rebased over an outside change.
    pub rebased: u64,
    /// Calls whose process was killed before it answered.
    pub unanswered: u64,
    /// Writes and other interference by programs that do not use Surehand.
    pub foreign: u64,
    /// Tokens that are in a file.
    pub present: u64,
    /// Tokens of refused or unanswered calls that are in no file.
    pub not_written: u64,
    /// Tokens that a writer who had seen them removed.
    pub replaced: u64,
    /// Tokens that are in a rescued file.
    pub rescued: u64,
}

impl Tally {
    /// Names and numbers, in the order of the tables.
    fn columns(&self) -> [(&'static str, u64); 12] {
        [
            ("rounds", self.rounds),
            ("kills", self.kills),
            ("found half done", self.half_done),
            ("edits acknowledged", self.acknowledged),
            ("refused", self.refused),
            ("rebased", self.rebased),
            ("killed before the answer", self.unanswered),
            ("foreign acts", self.foreign),
            ("tokens present", self.present),
            ("not written", self.not_written),
            ("replaced", self.replaced),
            ("rescued", self.rescued),
        ]
    }

    /// Adds another tally to this one.
    pub fn add(&mut self, other: &Tally) {
        self.rounds += other.rounds;
        self.kills += other.kills;
        self.half_done += other.half_done;
        self.acknowledged += other.acknowledged;
        self.refused += other.refused;
        self.rebased += other.rebased;
        self.unanswered += other.unanswered;
        self.foreign += other.foreign;
        self.present += other.present;
        self.not_written += other.not_written;
        self.replaced += other.replaced;
        self.rescued += other.rescued;
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts: Vec<String> =
            self.columns().iter().filter(|(_, times)| *times > 0).map(|(name, times)| format!("{name} {times}")).collect();
        write!(out, "{}", counts.join(", "))
    }
}

/// An event that must never happen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Which round of the part, from 0.
    pub round: usize,
    /// A description with the values.
    pub what: String,
    /// The workspace that was kept for inspection.
    pub kept: PathBuf,
}

/// The outcome of one part, on one file system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartOutcome {
    /// The name of the part, followed by the file system if there are several.
    pub name: String,
    /// The events of all rounds.
    pub tally: Tally,
    /// In the order in which they were found.
    pub violations: Vec<Violation>,
    /// Tests that this machine cannot run, with the reason.
    pub skipped: Vec<String>,
}

impl PartOutcome {
    /// An outcome without events.
    pub fn new(name: &str) -> Self {
        Self { name: name.to_owned(), tally: Tally::default(), violations: Vec::new(), skipped: Vec::new() }
    }

    /// Adds a reason to `skipped`, once.
    pub fn skip(&mut self, what: String) {
        if !self.skipped.contains(&what) {
            self.skipped.push(what);
        }
    }
}

/// The outcomes of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// The seed, which repeats the run as far as the timing allows.
    pub seed: u64,
    /// One or more for each part.
    pub outcomes: Vec<PartOutcome>,
}

impl Report {
    /// The violations of all parts.
    pub fn violations(&self) -> impl Iterator<Item = &Violation> {
        self.outcomes.iter().flat_map(|outcome| &outcome.violations)
    }

    /// A table with a row for each outcome, then the skipped tests, then the violations.
    pub fn to_markdown(&self) -> String {
        let Some(first) = self.outcomes.first() else { return String::new() };
        let names: Vec<&str> = first.tally.columns().iter().map(|(name, _)| *name).collect();
        let mut said =
            format!("| seed {} | {} | violations |\n|---|{}\n", self.seed, names.join(" | "), "---:|".repeat(names.len() + 1));
        for outcome in &self.outcomes {
            let numbers: Vec<String> = outcome.tally.columns().iter().map(|(_, number)| number.to_string()).collect();
            said.push_str(&format!("| {} | {} | {} |\n", outcome.name, numbers.join(" | "), outcome.violations.len()));
        }
        for outcome in &self.outcomes {
            for skipped in &outcome.skipped {
                said.push_str(&format!("\nskipped, {}: {skipped}\n", outcome.name));
            }
        }
        for outcome in &self.outcomes {
            for violation in &outcome.violations {
                let Violation { round, what, kept } = violation;
                said.push_str(&format!("\nVIOLATION, {}, seed {}, round {round}: {what}\n", outcome.name, self.seed));
                said.push_str(&format!("kept: {}\n", kept.display()));
            }
        }
        said
    }

    /// The report as JSON.
    pub fn to_json(&self) -> Value {
        let outcomes: Vec<Value> = self.outcomes.iter().map(outcome_json).collect();
        json!({ "seed": self.seed, "outcomes": outcomes })
    }
}

fn outcome_json(outcome: &PartOutcome) -> Value {
    let columns = outcome.tally.columns();
    let tally: serde_json::Map<String, Value> = columns.iter().map(|(name, times)| ((*name).to_owned(), json!(times))).collect();
    let violations: Vec<Value> = outcome
        .violations
        .iter()
        .map(|violation| json!({ "round": violation.round, "what": violation.what, "kept": violation.kept }))
        .collect();
    json!({ "name": outcome.name, "tally": tally, "skipped": outcome.skipped, "violations": violations })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_violation_is_told_with_all_that_is_needed_to_look_into_it() {
        let mut outcome = PartOutcome::new("kill");
        outcome.tally.kills = 3;
        outcome.violations.push(Violation { round: 7, what: "half a batch".to_owned(), kept: "/kept".into() });
        let report = Report { seed: 9, outcomes: vec![outcome] };
        let said = report.to_markdown();
        assert!(said.contains("| kill | 0 | 3 | 0 | 0 | 0 | 0 | 0 | 0 | 0 | 0 | 0 | 0 | 1 |"), "{said}");
        assert!(said.contains("VIOLATION, kill, seed 9, round 7: half a batch\nkept: /kept"), "{said}");
        assert_eq!(report.to_json()["outcomes"][0]["violations"][0]["round"], 7);
    }
}
