//! The past runs of a workspace: the list of runs, and the events of each.

use std::{collections::HashMap, fs, io, time::UNIX_EPOCH};

use rustix::{
    fs::{self as sys, OFlags},
    io::Errno,
};
use serde::Serialize;
use serde_json::{Value, json};
use surehand_engine::{
    Workspace,
    repo_state::rfc3339,
    session_names::{IdError, IdKind, find_id},
};

use crate::{
    event::{RunEvent, StopReason},
    model::{Prompt, TokenUsage},
    recorded_prompts::read_prompts,
    run_files::{
        PROMPTS, RUNS, SAVED_RUN, TRANSCRIPT, if_found, is_busy, lock, open_dir, open_file, open_runs, read_file, run_names,
    },
    transcript::{ResumeError, SavedRun, read_saved},
};

/// A run that this workspace has files of.
#[derive(Debug, Clone, PartialEq)]
pub struct PastRun {
    /// The id of the run. Ids sort by start time.
    pub id: String,
    /// The run after its last complete turn, or why it cannot be read.
    pub saved: Result<SavedRun, String>,
    /// Whether it is running, stopped or interrupted.
    pub state: RunState,
    /// The time of the last save, in milliseconds since the Unix epoch.
    pub last_active: i64,
    /// Whether prompts of it were recorded.
    pub has_prompts: bool,
}

/// The progress of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunState {
    /// A process works on it.
    Running,
    /// It has stopped, for this reason.
    Stopped(StopReason),
    /// Its process ended without recording a reason.
    Interrupted,
}

/// The recorded events and prompts of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct RunRecord {
    /// The events of the transcript.
    pub events: Vec<RecordedEvent>,
    /// The recorded prompts by turn.
    pub prompts: HashMap<u32, Prompt>,
}

/// An event of a transcript.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordedEvent {
    /// The event, without the diffs.
    pub event: RunEvent,
    /// Its JSON in the transcript, with the diffs.
    pub json: Value,
}

/// Why a run cannot be shown.
#[derive(Debug, thiserror::Error)]
pub enum PastRunError {
    /// No run, or several, have this id.
    #[error(transparent)]
    Id(#[from] IdError),
    /// The files of the run cannot be read.
    #[error("cannot access the files of the run: {0}")]
    Unreadable(#[from] io::Error),
}

/// The runs of a workspace, the latest first.
pub fn list(workspace: &Workspace) -> io::Result<Vec<PastRun>> {
    let Some(runs) = open_runs(workspace)? else { return Ok(Vec::new()) };
    let mut all = Vec::new();
    for id in run_names(&runs)? {
        let dir = open_dir(&runs, &id)?;
        let saved = match read_saved(&runs, &id) {
            Ok(Some(saved)) => Ok(saved),
            // It was killed before it was saved for the first time.
            Ok(None) => continue,
            Err(ResumeError::Damaged { why, .. }) => Err(why),
            Err(error) => Err(error.to_string()),
        };
        let stop = saved.as_ref().ok().and_then(|saved| saved.stop);
        let state = match stop {
            _ if is_busy(&runs, &id) => RunState::Running,
            Some(stop) => RunState::Stopped(stop),
            None => RunState::Interrupted,
        };
        let modified = open_file(&dir, SAVED_RUN, OFlags::RDONLY)?.metadata()?.modified()?;
        let last_active = modified.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64);
        let has_prompts = if_found(open_file(&dir, PROMPTS, OFlags::RDONLY))?.is_some();
        all.push(PastRun { id, saved, state, last_active, has_prompts });
    }
    all.sort_by(|a, b| b.last_active.cmp(&a.last_active).then_with(|| b.id.cmp(&a.id)));
    Ok(all)
}

/// The ids of runs that were killed before they were saved for the first time.
pub fn list_unsaved(workspace: &Workspace) -> io::Result<Vec<String>> {
    let Some(runs) = open_runs(workspace)? else { return Ok(Vec::new()) };
    let mut unsaved = run_names(&runs)?;
    unsaved.retain(|id| matches!(read_saved(&runs, id), Ok(None)) && !is_busy(&runs, id));
    Ok(unsaved)
}

/// Removes the files of a run. Fails with `WouldBlock` if a process is working on it.
pub fn remove(workspace: &Workspace, id: &str) -> io::Result<()> {
    let (Some(runs), Some(paths)) = (open_runs(workspace)?, workspace.state_report().paths) else { return Ok(()) };
    let held = if_found(open_file(&open_dir(&runs, id)?, TRANSCRIPT, OFlags::RDONLY))?;
    held.iter().try_for_each(lock)?;
    // It is renamed first: a name that begins with a dot is not listed as a run.
    let nameless = format!(".removed-{id}");
    sys::renameat(&runs, id, &runs, &nameless)?;
    drop(held);
    fs::remove_dir_all(paths.checkout.join(RUNS).join(nameless))
}

/// The run with this id, or the only one whose id begins like this.
pub fn find(workspace: &Workspace, typed: &str) -> Result<PastRun, PastRunError> {
    let known = list(workspace)?.into_iter().map(|run| (run.id.clone(), run));
    Ok(find_id(IdKind::Run, typed, known)?)
}

/// The events and prompts of a run. Lines of the transcript that cannot be read are left out.
pub fn read(workspace: &Workspace, run: &PastRun) -> io::Result<RunRecord> {
    let Some(runs) = open_runs(workspace)? else { return Err(Errno::NOENT.into()) };
    let dir = open_dir(&runs, &run.id)?;
    let lines = read_file(&dir, TRANSCRIPT)?.unwrap_or_default();
    let event = |line| {
        let json: Value = serde_json::from_str(line).ok()?;
        Some(RecordedEvent { event: serde_json::from_value(json.clone()).ok()?, json })
    };
    Ok(RunRecord { events: lines.lines().filter_map(event).collect(), prompts: read_prompts(&dir)? })
}

/// A run, as `surehand runs --json` prints it.
pub fn run_json(run: &PastRun) -> Value {
    let state = match run.state {
        RunState::Running => json!("running"),
        RunState::Interrupted => json!("interrupted"),
        RunState::Stopped(reason) => json!(reason),
    };
    let mut fields = json!({
        "run": run.id,
        "state": state,
        "last_active": rfc3339(run.last_active),
        "prompts": run.has_prompts,
    });
    match &run.saved {
        Ok(saved) => {
            fields["story"] = json!(saved.story);
            fields["turns"] = json!(saved.turn);
            fields["usage"] = json!(saved.usage);
            fields["seconds"] = json!(saved.seconds);
            fields["model"] = json!(saved.model);
            fields["mode"] = json!(saved.mode);
            fields["session"] = json!(saved.session);
        }
        Err(why) => fields["damaged"] = json!(why),
    }
    fields
}

/// Time, tokens and calls of one turn.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct TurnFigures {
    /// Number of the turn, from 1.
    pub turn: u32,
    /// The first open task when it began.
    pub task: Option<String>,
    /// Estimated tokens of the prompt.
    pub prompt_tokens: usize,
    /// Tokens and cost, once it is complete.
    pub usage: Option<TokenUsage>,
    /// Time taken by the model and the tools, once it is complete.
    pub seconds: Option<f64>,
    /// Number of calls that the model made.
    pub calls: usize,
    /// Number of calls that were refused.
    pub refused: usize,
}

impl RunRecord {
    /// The figures of each turn, in order.
    pub fn turn_figures(&self) -> Vec<TurnFigures> {
        self.turns().into_iter().map(|turn| self.figures_of(turn)).collect()
    }

    fn figures_of(&self, turn: u32) -> TurnFigures {
        let mut figures = TurnFigures { turn, ..TurnFigures::default() };
        for recorded in self.turn(turn) {
            match &recorded.event {
                RunEvent::Turn { task, prompt_tokens, .. } => {
                    (figures.task, figures.prompt_tokens) = (task.clone(), *prompt_tokens);
                }
                RunEvent::Call { repair: false, .. } => figures.calls += 1,
                RunEvent::Result { is_error: true, .. } => figures.refused += 1,
                RunEvent::TurnEnded { usage, seconds, .. } => {
                    (figures.usage, figures.seconds) = (Some(*usage), Some(*seconds));
                }
                _ => {}
            }
        }
        figures
    }

    /// A turn with its prompt, if it was recorded, and its events; `None` if there is no such turn.
    pub fn turn_json(&self, turn: u32) -> Option<Value> {
        let events = self.turn(turn);
        let json: Vec<&Value> = events.iter().map(|recorded| &recorded.json).collect();
        (!events.is_empty()).then(|| json!({ "turn": turn, "prompt": self.prompts.get(&turn), "events": json }))
    }

    /// The numbers of the turns, in order.
    pub fn turns(&self) -> Vec<u32> {
        let mut turns: Vec<u32> = self.events.iter().filter_map(|recorded| turn_of(&recorded.event)).collect();
        turns.sort_unstable();
        turns.dedup();
        turns
    }

    /// The events from the start of a turn to the start of the next one; empty if there is no such turn. If the turn
    /// was interrupted and asked again, the last attempt counts.
    pub fn turn(&self, turn: u32) -> &[RecordedEvent] {
        let begins = |recorded: &RecordedEvent| turn_of(&recorded.event) == Some(turn);
        let Some(begin) = self.events.iter().rposition(begins) else { return &[] };
        let is_over = |recorded: &RecordedEvent| {
            matches!(recorded.event, RunEvent::Started { .. } | RunEvent::Turn { .. } | RunEvent::Stopped { .. })
        };
        let length = self.events[begin + 1..].iter().take_while(|recorded| !is_over(recorded)).count();
        &self.events[begin..=begin + length]
    }
}

fn turn_of(event: &RunEvent) -> Option<u32> {
    match event {
        RunEvent::Turn { turn, .. } => Some(*turn),
        _ => None,
    }
}
