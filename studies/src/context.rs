//! The size of the agent's prompt over a long story, in both modes, through the real loop: the tokens at some turns and
//! the maximum, how much of a prompt equals the previous one, and the time from the end of a turn until the model is
//! asked again.

mod gauge;
mod other;
mod sources;
mod story;

use std::cell::Cell;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use surehand_agent::command::CommandRequest;
use surehand_agent::event::StopReason;
use surehand_agent::model::{ChatModel, ModelAnswer, ModelError, Prompt, StreamEvent, TokenUsage};
use surehand_agent::{AgentRun, Approval, Approver, CancelToken, NoPerson, Ports, RunEvent, RunLimits, RunSettings};
use surehand_engine::core::ContextMode;
use surehand_engine::{Config, Durability, Workspace};
use surehand_testkit::rng::Rng;

use self::gauge::{Gauge, Sample};
use self::other::Other;
pub(crate) use self::sources::FEWEST_FILES;
pub(crate) use self::story::FEWEST_TURNS;
use self::story::Story;
use crate::machine;
use crate::table::table;

/// Fixed, so that every run plays the same story.
const SEED: u64 = 20;

/// The results of the study.
pub(crate) struct Context {
    machine: String,
    turns: usize,
    files: usize,
    tasks: usize,
    snapshot: Found,
    history: Found,
}

/// The results in one mode.
struct Found {
    samples: Vec<Sample>,
    /// From the end of each turn to the next question, in order of length.
    waits: Vec<Duration>,
    work: Work,
}

/// Counts of what the loop did.
#[derive(Debug, Default)]
struct Work {
    folds: usize,
    reads: usize,
    changes: usize,
    refusals: usize,
    outside: usize,
}

/// Plays the story in both modes.
pub(crate) fn measure(turns: usize, files: usize) -> Result<Context> {
    let machine = machine::describe();
    let (snapshot, tasks) = play(ContextMode::Snapshot, turns, files)?;
    let (history, _) = play(ContextMode::History, turns, files)?;
    Ok(Context { machine, turns, files, tasks, snapshot, history })
}

fn play(mode: ContextMode, turns: usize, files: usize) -> Result<(Found, usize)> {
    eprintln!("playing {turns} turns over {files} files, {} ...", mode_name(mode));
    let directory = tempfile::Builder::new().prefix("surehand-context-").tempdir().context("a temporary directory")?;
    let root = directory.path();
    surehand_testkit::make_repository(root);
    let areas = sources::lay_out(root, files, &mut Rng::new(SEED))?;
    let config = Config { durability: Durability::Fast, ..Config::default() };
    let workspace = Workspace::open(root, config)?;
    let settings = RunSettings::for_workspace(&workspace);
    let settings = RunSettings { mode, limits: RunLimits { turns: None, ..settings.limits }, ..settings };
    let story = Story::new(root.to_owned(), areas, turns, Rng::new(SEED + 1));
    let tasks = story.tasks();
    let mut player = Player { story, gauge: Gauge::default(), ended: Rc::default(), waits: Vec::new() };
    let work = listen(workspace, settings, &mut player, root)?;
    ensure!(player.gauge.samples.len() == turns, "{} turns were played", player.gauge.samples.len());
    let Player { gauge, mut waits, .. } = player;
    waits.sort_unstable();
    Ok((Found { samples: gauge.samples, waits, work }, tasks))
}

/// Runs the loop, and counts what it does.
fn listen(workspace: Arc<Workspace>, settings: RunSettings, player: &mut Player, root: &Path) -> Result<Work> {
    let ended = Rc::clone(&player.ended);
    let mut other = Other::new(root.to_owned(), Rng::new(SEED + 2));
    let mut work = Work::default();
    let mut listener = |event: &RunEvent| {
        work.hear(event);
        other.hear(event);
        // Last, so that changes by the other program are not counted.
        if matches!(event, RunEvent::TurnEnded { .. }) {
            ended.set(Some(Instant::now()));
        }
    };
    let ports = Ports {
        model: player,
        permission: &mut Everything,
        person: &mut NoPerson,
        listener: &mut listener,
        cancel: CancelToken::default(),
    };
    let outcome = AgentRun::new(workspace, Story::text(), settings, ports)?.run()?;
    ensure!(outcome.stop == StopReason::Done, "the run stopped after {} turns: {}", outcome.turns, outcome.text);
    work.outside = other.changes;
    Ok(work)
}

impl Work {
    fn hear(&mut self, event: &RunEvent) {
        match event {
            RunEvent::Folded { .. } => self.folds += 1,
            RunEvent::Result { is_error: true, .. } => self.refusals += 1,
            RunEvent::Result { tool, .. } if tool == "read_file" => self.reads += 1,
            RunEvent::Result { diff, .. } if !diff.is_empty() => self.changes += 1,
            _ => {}
        }
    }
}

/// The story as a model, which measures its prompts.
struct Player {
    story: Story,
    gauge: Gauge,
    /// When the last turn was over.
    ended: Rc<Cell<Option<Instant>>>,
    waits: Vec<Duration>,
}

impl ChatModel for Player {
    fn name(&self) -> &str {
        "story"
    }

    fn ask(&mut self, prompt: &Prompt, _: &CancelToken, _: &mut dyn FnMut(StreamEvent<'_>)) -> Result<ModelAnswer, ModelError> {
        self.waits.extend(self.ended.take().map(|ended| ended.elapsed()));
        let input = self.gauge.take(prompt) as u64;
        let story::Reply { text, calls } = self.story.answer(prompt);
        Ok(ModelAnswer { text, calls, usage: TokenUsage { input, ..TokenUsage::default() }, ..ModelAnswer::default() })
    }
}

/// Allows every command: the story has only harmless ones.
struct Everything;

impl Approver for Everything {
    fn approve(&mut self, _: &CommandRequest<'_>) -> Approval {
        Approval::Yes
    }
}

fn mode_name(mode: ContextMode) -> &'static str {
    match mode {
        ContextMode::Snapshot => "snapshot",
        ContextMode::History => "history",
    }
}

impl Context {
    /// A table, ready to be pasted into a document.
    pub(crate) fn to_markdown(&self) -> String {
        let Self { machine, turns, files, tasks, .. } = self;
        format!(
            "{machine}. A story of {turns} turns and {tasks} tasks over {files} files, through the loop, in both modes. Tokens of whole prompts \
             (tools, rules, story, messages) by the tokenizer o200k:\n\n{}\n",
            self.table()
        )
    }

    fn table(&self) -> String {
        let both = |of: &dyn Fn(&Found) -> String| [of(&self.snapshot), of(&self.history)];
        let turns = marks(self.turns)
            .into_iter()
            .map(|turn| (format!("tokens, turn {turn}"), both(&|found| found.samples[turn - 1].tokens.to_string())));
        let rest = [
            ("tokens, most of all turns", both(&|found| found.most().to_string())),
            ("tokens, all turns together", both(&|found| found.all().to_string())),
            ("times folded", both(&|found| found.work.folds.to_string())),
            ("stable prefix, median of a prompt", both(&|found| format!("{:.0} %", found.median_share()))),
            ("stable prefix, of all tokens", both(&|found| format!("{:.0} %", found.share_of_all()))),
            ("tokens behind it, all turns together", both(&|found| (found.all() - found.stable()).to_string())),
            ("from turn to turn, median ms", both(&|found| format!("{:.2}", found.wait(50)))),
            ("from turn to turn, p99 ms", both(&|found| format!("{:.2}", found.wait(99)))),
            ("reads", both(&|found| found.work.reads.to_string())),
            ("changes of files", both(&|found| found.work.changes.to_string())),
            ("calls refused", both(&|found| found.work.refusals.to_string())),
            ("changes by another program", both(&|found| found.work.outside.to_string())),
        ];
        let rows = turns.chain(rest.into_iter().map(|(label, both)| (label.to_owned(), both)));
        table(1, ["", "snapshot", "history"], rows.map(|(label, [snapshot, history])| [label, snapshot, history]))
    }

    /// The results as JSON.
    pub(crate) fn to_json(&self) -> Value {
        json!({
            "machine": self.machine, "turns": self.turns, "files": self.files, "tasks": self.tasks,
            "snapshot": self.snapshot.to_json(), "history": self.history.to_json(),
        })
    }
}

/// The turns that are shown.
fn marks(turns: usize) -> Vec<usize> {
    let mut marks: Vec<usize> = [1, 10, 100, 1_000].into_iter().filter(|turn| *turn < turns).collect();
    marks.push(turns);
    marks
}

impl Found {
    fn most(&self) -> usize {
        self.samples.iter().map(|sample| sample.tokens).max().unwrap_or_default()
    }

    fn all(&self) -> usize {
        self.samples.iter().map(|sample| sample.tokens).sum()
    }

    fn stable(&self) -> usize {
        self.samples.iter().map(|sample| sample.stable).sum()
    }

    /// Without the first turn, which has none before it.
    fn median_share(&self) -> f64 {
        let mut shares: Vec<f64> = self.samples.iter().skip(1).map(Sample::share).collect();
        shares.sort_by(f64::total_cmp);
        shares.get(shares.len() / 2).copied().unwrap_or_default()
    }

    fn share_of_all(&self) -> f64 {
        self.stable() as f64 / self.all() as f64 * 100.0
    }

    fn wait(&self, percent: usize) -> f64 {
        let rank = (self.waits.len() * percent).div_ceil(100).max(1);
        self.waits[rank - 1].as_secs_f64() * 1e3
    }

    fn to_json(&self) -> Value {
        let Work { folds, reads, changes, refusals, outside } = self.work;
        json!({
            "tokens": self.samples.iter().map(|sample| sample.tokens).collect::<Vec<_>>(),
            "stable": self.samples.iter().map(|sample| sample.stable).collect::<Vec<_>>(),
            "most": self.most(), "all": self.all(),
            "stable_median_percent": self.median_share(), "stable_of_all_percent": self.share_of_all(),
            "wait_p50_ms": self.wait(50), "wait_p99_ms": self.wait(99),
            "folds": folds, "reads": reads, "changes": changes, "refusals": refusals, "outside": outside,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_story_is_played_to_its_end() {
        let context = measure(30, 60).unwrap();
        assert!(context.snapshot.most() < 5_000, "{}", context.snapshot.most());
        assert!(context.snapshot.work.changes > 0, "{:?}", context.snapshot.work);
        assert!(context.to_markdown().contains("| tokens, turn 10 "), "{}", context.to_markdown());
    }
}
