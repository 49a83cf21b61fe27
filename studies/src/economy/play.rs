//! One edit, from the first read to the right content, through a real session: the tokens of the model's calls and of
//! the answers. The model is a program that makes no mistakes: it sends the calls of [`super::dialect`] for the changes
//! that are left, and learns from each answer.

use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use bpe_openai::o200k_base;
use serde_json::{Value, json};
use surehand_core::excerpt::Excerpt;
use surehand_core::{Anchor, LineMap, LineNo, LineRange, LineSet, OnChange, Policy, Text, instructions};
use surehand_engine::{Config, Durability, Session, Workspace};
use tempfile::TempDir;

use super::change::{Change, applied, between, joined};
use super::dialect::{Call, Dialect, Picture, named, shifted};

/// The price of an output token, in input tokens.
pub(super) const OUTPUT_PRICE: usize = 5;

/// The treatment of a file that has changed since it was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Strategy {
    /// The call is refused in a sentence, the model reads again and sends it again.
    Reread,
    /// Surehand's default: the refusal shows what changed.
    Repair,
    /// Surehand with `policy.on_change = "rebase"`.
    Rebase,
    /// No check.
    Blind,
}

/// All of them, as they stand in the tables.
pub(super) const STRATEGIES: [Strategy; 4] = [Strategy::Reread, Strategy::Repair, Strategy::Rebase, Strategy::Blind];

/// How much the model reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Reading {
    /// Reads the whole file.
    Whole,
    /// The lines that it will change, with some around them; the whole file where the dialect asks for that.
    Needed,
}

pub(super) const READINGS: [Reading; 2] = [Reading::Whole, Reading::Needed];

/// The number of lines around a change that are read by a model that reads only what it needs.
pub(super) const AROUND: usize = 20;

/// An edit to be played.
#[derive(Clone, Copy)]
pub(super) struct Script<'a> {
    /// The name of the file.
    pub path: &'a str,
    /// The content when it is read.
    pub seen: &'a Text,
    /// The content after the outside change.
    pub outside: Option<&'a Text>,
    /// The changes that the model means to make, in the text that it has seen.
    pub meant: &'a [Change],
    /// The right content at the end.
    pub goal: &'a Text,
    /// How changes are put.
    pub dialect: Dialect,
    /// How much is read.
    pub reading: Reading,
    /// The treatment of a call that comes too late.
    pub strategy: Strategy,
}

/// The cost of an act.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Cost {
    /// Tokens that the model wrote.
    pub output: usize,
    /// Tokens of the answers.
    pub input: usize,
    /// The number of calls.
    pub calls: usize,
}

impl Cost {
    /// The cost in input tokens.
    pub(crate) fn weighted(&self) -> usize {
        self.input + OUTPUT_PRICE * self.output
    }

    fn minus(&self, other: &Self) -> Self {
        Self { output: self.output - other.output, input: self.input - other.input, calls: self.calls - other.calls }
    }
}

/// The result of an edit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// The cost of the first read.
    pub read: Cost,
    /// The cost of everything after the first read.
    pub rest: Cost,
    /// The final content.
    pub end: End,
}

/// A final content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// The content that an author would have written who saw everything.
    Right,
    /// The same lines in another order: both sides added lines at the end of the file.
    OtherOrder,
    /// Something else: a change was lost, or made where it does not belong.
    Wrong,
}

impl End {
    fn of(found: &Text, goal: &Text) -> Self {
        let sorted = |text: &Text| {
            let mut lines: Vec<String> = text.full_lines().map(str::to_owned).collect();
            lines.sort();
            lines
        };
        match found == goal {
            true => End::Right,
            false if sorted(found) == sorted(goal) => End::OtherOrder,
            false => End::Wrong,
        }
    }
}

/// The answer of a tool that asks for another read, in the words of a widespread agent.
pub(super) const READ_AGAIN: &str =
    "File has been modified since read, either by the user or by a linter. Read it again before attempting to write it.";

/// Where edits are played: a workspace for each policy.
pub(super) struct Stage {
    refusing: Place,
    rebasing: Place,
    /// A workspace with `policy.short_rereads`.
    brief: Place,
    scales: Scales,
}

struct Place {
    workspace: Arc<Workspace>,
    directory: TempDir,
}

impl Place {
    fn open(policy: Policy) -> Result<Self> {
        let directory = tempfile::Builder::new().prefix("surehand-economy-").tempdir().context("a temporary directory")?;
        surehand_testkit::make_repository(directory.path());
        // Instructions in a history are not part of an edit.
        let instructions =
            instructions::InstructionSettings { names: Vec::new(), ..instructions::InstructionSettings::default() };
        let config = Config { policy, instructions, durability: Durability::Fast, ..Config::default() };
        Ok(Self { workspace: Workspace::open(directory.path(), config)?, directory })
    }
}

/// Weighs texts. Many are weighed again and again, above all whole files.
#[derive(Default)]
struct Scales {
    known: HashMap<String, usize>,
}

impl Scales {
    fn weigh(&mut self, text: &str) -> usize {
        if let Some(tokens) = self.known.get(text) {
            return *tokens;
        }
        let tokens = o200k_base().count(text);
        self.known.insert(text.to_owned(), tokens);
        tokens
    }
}

/// The cost of unnecessary repetitions, which models make.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Again {
    /// Another read of the file.
    pub read: Cost,
    /// A repeated read with `policy.short_rereads`.
    pub short_read: Cost,
    /// A write that changes something.
    pub write: Cost,
    /// A repeated write.
    pub same_write: Cost,
}

impl Stage {
    /// Empty workspaces.
    pub(super) fn open() -> Result<Self> {
        let refusing = Place::open(Policy::default())?;
        let rebasing = Place::open(Policy { on_change: OnChange::Rebase, ..Policy::default() })?;
        let brief = Place::open(Policy { short_rereads: true, ..Policy::default() })?;
        Ok(Self { refusing, rebasing, brief, scales: Scales::default() })
    }

    /// Texts that were tokenized before will hardly occur again, because the next file is a different one.
    pub(super) fn next_file(&mut self) {
        self.scales.known.clear();
    }

    /// Plays an edit to its end.
    pub(super) fn play(&mut self, script: Script<'_>) -> Result<Outcome> {
        let place = match script.strategy {
            Strategy::Reread | Strategy::Repair | Strategy::Blind => &self.refusing,
            Strategy::Rebase => &self.rebasing,
        };
        let mut player = Player::new(script, place, &mut self.scales)?;
        player.read()?;
        let read = player.cost;
        if let Some(outside) = script.outside {
            player.save(outside)?;
        }
        player.edit().with_context(|| {
            format!("{} by {} ({:?}, {:?})", script.path, script.dialect.name(), script.strategy, script.reading)
        })?;
        let end = if player.is_misplaced { End::OtherOrder } else { End::of(&player.on_disk()?, script.goal) };
        let outcome = Outcome { read, rest: player.cost.minus(&read), end };
        fs::remove_file(&player.file)?;
        Ok(outcome)
    }

    /// Reads twice and writes twice.
    pub(super) fn play_again(&mut self, script: Script<'_>) -> Result<Again> {
        let (refusing, brief) = (&self.refusing, &self.brief);
        let scales = &mut self.scales;
        let read = read_twice(Player::new(script, refusing, scales)?)?;
        let short_read = read_twice(Player::new(script, brief, scales)?)?;
        let mut player = Player::new(Script { dialect: Dialect::WholeFile, ..script }, refusing, scales)?;
        player.read()?;
        let before = player.cost;
        let (call, _) = player.next_call();
        player.send(&call);
        let write = player.cost.minus(&before);
        player.send(&call);
        let same_write = player.cost.minus(&before).minus(&write);
        fs::remove_file(&player.file)?;
        Ok(Again { read, short_read, write, same_write })
    }
}

/// The cost of the second of two reads.
fn read_twice(mut player: Player<'_>) -> Result<Cost> {
    player.read()?;
    let first = player.cost;
    player.read()?;
    fs::remove_file(&player.file)?;
    Ok(player.cost.minus(&first))
}

/// A model at work.
struct Player<'a> {
    session: Session,
    scales: &'a mut Scales,
    file: PathBuf,
    script: Script<'a>,
    /// The file as it knows it.
    picture: Text,
    /// The number under which it was last shown each line of that.
    numbers: Vec<usize>,
    /// The remaining changes of that text.
    left: Vec<Change>,
    /// Whether a change was made elsewhere than where it belongs.
    is_misplaced: bool,
    cost: Cost,
}

impl<'a> Player<'a> {
    fn new(script: Script<'a>, place: &Place, scales: &'a mut Scales) -> Result<Self> {
        let workspace = place.workspace.clone();
        let session = match script.strategy {
            Strategy::Blind => Session::untracked(workspace),
            Strategy::Reread | Strategy::Repair | Strategy::Rebase => Session::new(workspace),
        };
        let mut player = Player {
            session,
            scales,
            file: place.directory.path().join(script.path),
            script,
            picture: script.seen.clone(),
            numbers: (1..=script.seen.line_count()).collect(),
            left: Vec::new(),
            is_misplaced: false,
            cost: Cost::default(),
        };
        player.left = player.put(script.meant.to_vec());
        player.save(script.seen)?;
        Ok(player)
    }

    /// A model that has to repeat existing text joins changes that are close to each other.
    fn put(&self, changes: Vec<Change>) -> Vec<Change> {
        match self.script.dialect {
            Dialect::Replace | Dialect::Replacements => joined(&self.picture, &changes),
            Dialect::WholeFile | Dialect::Lines | Dialect::Patch | Dialect::UnifiedDiff => changes,
        }
    }

    /// Sends calls until nothing is left to be done.
    fn edit(&mut self) -> Result<()> {
        let most = self.left.len() + 12;
        let mut is_refused_elsewhere = self.script.strategy == Strategy::Reread && self.script.outside.is_some();
        for _ in 0..most {
            if self.left.is_empty() {
                return Ok(());
            }
            let (call, made) = self.next_call();
            if std::mem::take(&mut is_refused_elsewhere) {
                self.count(&call, READ_AGAIN);
                self.learn()?;
                self.read()?;
                continue;
            }
            let (is_error, result) = self.send(&call);
            if is_error {
                self.take_refusal(&result)?;
            } else {
                self.take_success(made, &result)?;
            }
        }
        ensure!(self.left.is_empty(), "not done after {most} calls");
        Ok(())
    }

    fn next_call(&self) -> (Call, usize) {
        let picture = Picture { path: self.script.path, text: &self.picture, numbers: &self.numbers };
        self.script.dialect.call(&picture, &self.left)
    }

    fn take_success(&mut self, made: usize, result: &Value) -> Result<()> {
        let done: Vec<Change> = self.left.drain(..made).collect();
        let more: i64 = done.iter().map(|change| change.with.len() as i64 - change.lines.len() as i64).sum();
        self.picture = applied(&self.picture, &done);
        self.numbers = (1..=self.picture.line_count()).collect();
        self.left = self.left.iter().map(|change| shifted(change, more)).collect();
        if result.get("rebased").is_some() && !self.left.is_empty() {
            // A model would hardly notice a wrong result. Repairing it here must not hide it.
            let all = between(self.script.outside.unwrap_or(self.script.seen), self.script.goal).len();
            self.learn()?;
            self.is_misplaced |= between(&self.picture, self.script.goal).len() >= all;
        }
        Ok(())
    }

    /// Learns from a refusal what it shows, and reads what it needs but does not get shown.
    fn take_refusal(&mut self, result: &Value) -> Result<()> {
        let refusal = &result["refusal"];
        match (self.script.strategy, refusal["code"].as_str().unwrap_or_default()) {
            (Strategy::Repair | Strategy::Rebase, "stale") => {
                let seen = self.picture.clone();
                self.learn()?;
                let omitted = self.take_stale(&seen, refusal);
                self.read_if_needed(&omitted)
            }
            (Strategy::Repair | Strategy::Rebase, "partial") => {
                let unseen: LineSet = serde_json::from_value(refusal["affected_ranges"].clone()).unwrap_or_default();
                self.take_partial(&unseen);
                Ok(())
            }
            (Strategy::Repair | Strategy::Rebase, "anchor_mismatch") => {
                self.take_mismatches(refusal);
                Ok(())
            }
            _ => {
                self.learn()?;
                self.read()
            }
        }
    }

    /// Takes the present content as known, and derives the remaining changes from it.
    fn learn(&mut self) -> Result<()> {
        self.picture = self.on_disk()?;
        self.numbers = (1..=self.picture.line_count()).collect();
        self.left = self.put(between(&self.picture, self.script.goal));
        Ok(())
    }

    /// Lines that a refusal does not show keep their numbers, unless it shows another line under such a number: then
    /// the model can tell by how much they moved. Returns the lines that changed and are not fully shown.
    fn take_stale(&mut self, seen: &Text, refusal: &Value) -> LineSet {
        let map = LineMap::between(seen, &self.picture);
        let fresh = Excerpt::of(&self.picture, &map.affected());
        for (run, shift) in map.kept() {
            for old in run.filter(|old| !fresh.shown.contains(LineNo::at_index(*old))) {
                let new = usize::try_from(old as i64 + shift).expect("a kept line has a place");
                self.numbers[new] = old + 1;
            }
        }
        self.take_shown(&fresh.shown);
        self.take_remaps(refusal);
        map.affected().minus(&fresh.shown)
    }

    /// Missing lines are shown and count as read, except for lines that are too many or too long.
    fn take_partial(&mut self, unseen: &LineSet) {
        let fresh = Excerpt::of(&self.picture, unseen);
        self.take_shown(&fresh.shown);
        let hidden = unseen.minus(&fresh.shown);
        if !hidden.is_empty() {
            self.read_ranges(&hidden);
        }
    }

    /// Anchors that do not fit are answered with lines; where these are not the ones that were meant, it takes a read.
    fn take_mismatches(&mut self, refusal: &Value) {
        let bad: Vec<&str> =
            refusal["mismatches"].as_array().into_iter().flatten().filter_map(|one| one["anchor"].as_str()).collect();
        let picture = Picture { path: self.script.path, text: &self.picture, numbers: &self.numbers };
        let meant: Vec<usize> =
            self.left.iter().flat_map(named).filter(|line| bad.contains(&picture.anchor(*line).as_str())).collect();
        let shown: LineSet = serde_json::from_value(refusal["affected_ranges"].clone()).unwrap_or_default();
        self.take_shown(&shown);
        let remapped = self.take_remaps(refusal);
        if !meant.iter().all(|line| shown.contains(LineNo::at_index(*line)) || remapped.contains(line)) {
            self.read_ranges(&self.around());
        }
    }

    fn take_shown(&mut self, shown: &LineSet) {
        shown.iter().for_each(|line| self.numbers[line.index()] = line.index() + 1);
    }

    /// Takes the new anchors of lines. Returns these lines.
    fn take_remaps(&mut self, refusal: &Value) -> Vec<usize> {
        let to = |anchor: &Value| anchor.as_str().and_then(|anchor| anchor.parse::<Anchor>().ok());
        let remaps = refusal["remaps"].as_object().into_iter().flat_map(|remaps| remaps.values());
        let lines: Vec<usize> = remaps.filter_map(to).map(|anchor| anchor.line.index()).collect();
        lines.iter().for_each(|line| self.numbers[*line] = line + 1);
        lines
    }

    /// A write of the whole file must know all of it, any other edit the lines that it changes.
    fn read_if_needed(&mut self, omitted: &LineSet) -> Result<()> {
        let touches = |change: &Change| {
            let around = change.lines.start.saturating_sub(1)..=change.lines.end;
            omitted.iter().any(|line| around.contains(&line.index()))
        };
        if omitted.is_empty() || (self.script.dialect != Dialect::WholeFile && !self.left.iter().any(touches)) {
            return Ok(());
        }
        self.read_ranges(omitted);
        Ok(())
    }

    fn read(&mut self) -> Result<()> {
        if self.script.reading == Reading::Needed && self.script.dialect != Dialect::WholeFile {
            self.read_ranges(&self.around());
            return Ok(());
        }
        let mut arguments = json!({ "path": self.script.path });
        loop {
            let result = self.send_read(arguments.clone());
            if result["unchanged"].as_bool() == Some(true) {
                return Ok(());
            }
            let last = result["shown"].as_array().and_then(|ranges| ranges.last()?["end"].as_u64());
            match (last, result["total_lines"].as_u64()) {
                (Some(last), Some(total)) if last < total => arguments["offset"] = json!(last + 1),
                (Some(_), Some(_)) => return Ok(()),
                _ => anyhow::bail!("a read showed nothing: {result}"),
            }
        }
    }

    /// The lines that are left to be changed, with some around them.
    fn around(&self) -> LineSet {
        let total = self.picture.line_count();
        let around = |change: &Change| change.lines.start.saturating_sub(AROUND)..(change.lines.end + AROUND).min(total);
        self.left.iter().filter_map(|change| LineRange::from_indexes(around(change))).collect()
    }

    fn read_ranges(&mut self, wanted: &LineSet) {
        let arguments = match wanted.ranges() {
            [only] => json!({ "path": self.script.path, "offset": only.start, "limit": only.count() }),
            ranges => json!({ "path": self.script.path, "ranges": ranges }),
        };
        self.send_read(arguments);
        self.take_shown(wanted);
    }

    fn send_read(&mut self, mut arguments: Value) -> Value {
        if self.script.dialect.needs_anchors() {
            arguments["anchors"] = json!(true);
        }
        self.send(&Call { tool: "read_file", arguments }).1
    }

    /// Sends a call. Returns whether it was refused, and the result object.
    fn send(&mut self, call: &Call) -> (bool, Value) {
        let reply = self.session.call(call.tool, &call.arguments);
        self.count(call, &reply.text);
        (reply.is_error, reply.result)
    }

    fn count(&mut self, call: &Call, answer: &str) {
        self.cost.calls += 1;
        self.cost.output += self.scales.weigh(call.tool) + self.scales.weigh(&call.arguments.to_string());
        self.cost.input += self.scales.weigh(answer);
    }

    /// Saves the file as another program.
    fn save(&self, text: &Text) -> Result<()> {
        if let Some(directory) = self.file.parent() {
            fs::create_dir_all(directory)?;
        }
        fs::write(&self.file, text.bytes()).with_context(|| self.file.display().to_string())
    }

    fn on_disk(&self) -> Result<Text> {
        let bytes = fs::read(&self.file).with_context(|| self.file.display().to_string())?;
        Text::new(bytes).map_err(|_| anyhow::anyhow!("what was written is no text"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::economy::change::{Contact, meant};
    use crate::economy::dialect::DIALECTS;

    fn text(lines: &[&str]) -> Text {
        Text::of(lines.iter().map(|line| format!("{line}\n")).collect()).unwrap()
    }

    /// Thirty lines, some of them changed.
    fn changed(changes: &[(usize, &str)]) -> Text {
        let all: Vec<String> = (1..=30).map(|line| format!("line {line}")).collect();
        let mut all: Vec<&str> = all.iter().map(String::as_str).collect();
        changes.iter().for_each(|(line, new)| all[line - 1] = new);
        text(&all)
    }

    /// How an edit ends and how many calls it takes after the read, with each strategy, in each dialect.
    #[track_caller]
    fn check(seen: &Text, outside: &Text, goal: &Text, contact: Contact, expected: impl Fn(Strategy, Dialect) -> (End, usize)) {
        let mut stage = Stage::open().unwrap();
        let (meant, found) = meant(seen, outside, goal).unwrap();
        assert_eq!(found, contact);
        for dialect in DIALECTS {
            for strategy in STRATEGIES {
                for reading in READINGS {
                    let outside = Some(outside);
                    let script = Script { path: "src/a.rs", seen, outside, meant: &meant, goal, dialect, reading, strategy };
                    let outcome = stage.play(script).unwrap();
                    let found = (outcome.end, outcome.rest.calls);
                    assert_eq!(found, expected(strategy, dialect), "{strategy:?} {dialect:?} {reading:?}");
                }
            }
        }
    }

    #[test]
    fn a_change_of_other_lines_costs_a_read_a_refusal_or_nothing() {
        let (seen, outside) = (changed(&[]), changed(&[(2, "theirs\nmore")]));
        let goal = changed(&[(2, "theirs\nmore"), (20, "ours")]);
        check(&seen, &outside, &goal, Contact::Elsewhere, |strategy, dialect| match (strategy, dialect) {
            (Strategy::Reread, _) => (End::Right, 3),
            (Strategy::Repair, _) | (Strategy::Rebase, Dialect::WholeFile) => (End::Right, 2),
            (Strategy::Rebase, _) => (End::Right, 1),
            (Strategy::Blind, Dialect::WholeFile) => (End::Wrong, 1),
            // The line has moved, and its anchor shows that. It costs a refusal, a read and another call.
            (Strategy::Blind, Dialect::Lines) => (End::Right, 3),
            (Strategy::Blind, _) => (End::Right, 1),
        });
    }

    #[test]
    fn a_change_of_the_same_line_is_always_looked_at() {
        let (seen, outside, goal) = (changed(&[]), changed(&[(20, "theirs")]), changed(&[(20, "ours")]));
        check(&seen, &outside, &goal, Contact::SameLines, |strategy, dialect| match (strategy, dialect) {
            (Strategy::Reread, _) => (End::Right, 3),
            (Strategy::Repair | Strategy::Rebase, _) => (End::Right, 2),
            (Strategy::Blind, Dialect::WholeFile) => (End::Right, 1),
            (Strategy::Blind, _) => (End::Right, 3),
        });
    }

    /// Both add lines at the end. The last line is where it was, so an edit of it is rebased, above the lines of the
    /// other author.
    #[test]
    fn two_additions_to_a_file_may_change_places() {
        let (seen, outside) = (changed(&[]), changed(&[(30, "line 30\ntheirs")]));
        let goal = changed(&[(30, "line 30\ntheirs\nours")]);
        let (meant, _) = meant(&seen, &outside, &goal).unwrap();
        let mut stage = Stage::open().unwrap();
        let mut end = |dialect: Dialect, strategy: Strategy| {
            let (path, reading) = ("a.rs", Reading::Whole);
            let (seen, outside, goal) = (&seen, Some(&outside), &goal);
            stage.play(Script { path, seen, outside, meant: &meant, goal, dialect, reading, strategy }).unwrap().end
        };
        assert_eq!(end(Dialect::Replace, Strategy::Repair), End::Right);
        assert_eq!(end(Dialect::Replace, Strategy::Rebase), End::OtherOrder);
        assert_eq!(end(Dialect::Lines, Strategy::Rebase), End::Right);
        assert_eq!(end(Dialect::WholeFile, Strategy::Blind), End::Wrong);
    }

    #[test]
    fn without_a_change_every_dialect_ends_right_at_once() {
        let (seen, goal) = (changed(&[]), changed(&[(5, "ours"), (6, "\n"), (20, "more\n")]));
        let mut stage = Stage::open().unwrap();
        for dialect in DIALECTS {
            let meant = between(&seen, &goal);
            let (reading, strategy) = (Reading::Needed, Strategy::Repair);
            let script =
                Script { path: "a.rs", seen: &seen, outside: None, meant: &meant, goal: &goal, dialect, reading, strategy };
            let outcome = stage.play(script).unwrap();
            let calls = if dialect == Dialect::Replace { 2 } else { 1 };
            assert_eq!((outcome.end, outcome.rest.calls, outcome.read.calls), (End::Right, calls, 1), "{dialect:?}");
        }
    }

    #[test]
    fn what_is_done_again_is_answered_in_a_line() {
        let (seen, goal) = (changed(&[]), changed(&[(5, "ours")]));
        let meant = between(&seen, &goal);
        let (dialect, reading, strategy) = (Dialect::Replace, Reading::Whole, Strategy::Repair);
        let script = Script { path: "a.rs", seen: &seen, outside: None, meant: &meant, goal: &goal, dialect, reading, strategy };
        let again = Stage::open().unwrap().play_again(script).unwrap();
        assert!(again.short_read.input < again.read.input / 2, "{again:?}");
        assert!(again.same_write.input < again.write.input, "{again:?}");
    }
}
