//! `surehand clean`: removes the stored data that the user selects.

use std::{path::PathBuf, process::ExitCode, sync::Arc};

use serde_json::{Value, json};
use surehand_adapters::session_roots::SessionRoots;
use surehand_agent::{
    event::StopReason,
    past_runs::{self, RunState},
};
use surehand_engine::{
    StateHome, Workspace,
    clean::{GoneState, gone_boards, gone_states},
    core::{excerpt::clip, render::count},
    repo_state::rfc3339,
    rescued::Rescue,
    store::{KeptAmount, OldHistory, StoreUsage},
    usage::{BoardUsage, StateUsage, state_directories},
};

use super::{
    entry_format::EntryFormat,
    usage::{amount_as_json, size},
};
use crate::{args::CleanArgs, output, question, user_dirs, workspace};

pub(crate) fn run(args: &CleanArgs) -> anyhow::Result<ExitCode> {
    let home = user_dirs::state_home()?;
    let workspace = args.is_about_a_workspace().then(|| workspace::open(&args.consent.place)).transpose()?;
    let found = Found::gather(args, workspace, home)?;
    if !args.consent.json {
        output::print(&found.preview()?)?;
    }
    let is_preview = found.is_nothing() || args.consent.dry_run;
    let is_wanted = !is_preview && (args.consent.yes || question::ask("Remove this?", args.consent.json)?);
    let removed = is_wanted.then(|| found.remove()).transpose()?;
    match (&removed, args.consent.json) {
        (removed, true) => output::print_json(&found.as_json(removed.as_ref()))?,
        (Some(removed), false) => output::print(&removed.report())?,
        (None, false) => {}
    }
    let is_done = removed.map_or(is_preview, |removed| removed.failed.is_empty());
    Ok(output::exit_code(is_done))
}

/// What `surehand clean` would remove.
struct Found {
    home: StateHome,
    workspace: Option<Arc<Workspace>>,
    /// Data from before this time is removed, in milliseconds since the Unix epoch.
    before: i64,
    history: Option<OldHistory>,
    sessions: Option<StoreUsage>,
    runs: Vec<OldRun>,
    /// Ids of runs that a process is still working on, which are kept.
    busy_runs: Vec<String>,
    rescues: Vec<Rescue>,
    gone: Vec<GoneState>,
    boards: Vec<BoardUsage>,
    gone_sessions: KeptAmount,
}

/// A run that no process is working on.
struct OldRun {
    id: String,
    story: Option<String>,
    is_resumable: bool,
}

#[derive(Default)]
struct Removed {
    /// Freed space in bytes.
    freed: u64,
    /// The things that could not be removed, each with the reason.
    failed: Vec<(String, String)>,
}

impl Found {
    fn gather(args: &CleanArgs, workspace: Option<Arc<Workspace>>, home: StateHome) -> anyhow::Result<Self> {
        let age = i64::try_from(args.older_than.unwrap_or_default().as_millis()).unwrap_or(i64::MAX);
        let before = output::now().saturating_sub(age);
        let selected = |is_selected: bool| workspace.as_ref().filter(|_| is_selected);
        let history = selected(args.versions).map(|workspace| workspace.old_history(before)).transpose()?;
        let sessions = selected(args.sessions).map(|workspace| workspace.idle_sessions(before)).transpose()?;
        let runs = selected(args.runs).map(|workspace| old_runs(workspace, before)).transpose()?;
        let (runs, busy_runs) = runs.unwrap_or_default();
        let rescues = selected(args.rescued).map(|workspace| workspace.rescues()).unwrap_or_default();
        let rescues = rescues.into_iter().filter(|rescue| rescue.at <= before).collect();
        let (mut gone, mut boards, mut gone_sessions) = (Vec::new(), Vec::new(), KeptAmount::default());
        if args.gone {
            let sessions = SessionRoots::usage(&home)?;
            let mut trees = sessions.roots;
            // The repository around the current directory, if any.
            trees.extend(workspace::root(&args.consent.place).ok());
            gone = gone_states(&home, &state_directories(&home, &trees)?)?;
            boards = gone_boards(&home)?;
            gone_sessions = sessions.gone;
        }
        Ok(Self { home, workspace, before, history, sessions, runs, busy_runs, rescues, gone, boards, gone_sessions })
    }

    fn is_nothing(&self) -> bool {
        let has_history = self.history.as_ref().is_some_and(|old| !amounts(&old.usage).is_empty());
        let has_sessions = self.sessions.as_ref().is_some_and(|usage| usage.sessions > 0);
        let has_more = !self.runs.is_empty() || !self.rescues.is_empty() || !self.gone.is_empty() || !self.boards.is_empty();
        !(has_history || has_sessions || has_more || self.gone_sessions.count > 0)
    }

    fn preview(&self) -> anyhow::Result<String> {
        let mut text = String::new();
        if let Some(old) = self.history.as_ref().filter(|old| !amounts(&old.usage).is_empty()) {
            text.push_str(&format!("  {} from before {}\n", amounts(&old.usage).join(", "), rfc3339(self.before)));
            text.push_str("    after that, undo, restore, log and diff know only what came later\n");
            if !old.named_checkpoints.is_empty() {
                text.push_str(&format!(
                    "    with the checkpoints that you named {}\n",
                    output::first_names(&old.named_checkpoints, MOST_NAMES)
                ));
            }
        }
        if let Some(usage) = self.sessions.as_ref().filter(|usage| usage.sessions > 0) {
            let (sessions, files) = (number(usage.sessions, "session"), number(usage.views.count, "view"));
            text.push_str(&format!("  what {sessions} have seen: {files}, {}\n", size(usage.views.bytes)));
            text.push_str("    a session that goes on must read a file again before it edits it; changes stay in the log\n");
        }
        text.push_str(&listed(&self.runs, "run", run_line));
        text.push_str(&self.rescue_lines()?);
        text.push_str(&listed(&self.gone, "work tree", gone_line));
        text.push_str(&listed(&self.boards, "board", |board| {
            let roots = board.roots.as_deref().unwrap_or_default();
            let roots: Vec<String> = roots.iter().map(|root| root.display().to_string()).collect();
            format!("the board of {}, which are gone: {}", output::first_names(&roots, MOST_NAMES), size(board.bytes))
        }));
        if self.gone_sessions.count > 0 {
            let sessions = number(self.gone_sessions.count, "session");
            text.push_str(&format!("  where {sessions} worked, in work trees that are gone\n"));
        }
        let text = match text.is_empty() {
            true => "There is nothing to remove.\n".to_owned(),
            false if self.gone.is_empty() && self.boards.is_empty() && self.gone_sessions.count == 0 => {
                format!("To remove, for good:\n{text}")
            }
            false => format!("To remove, for good:\n{text}  a work tree on a disk that is not mounted looks gone as well\n"),
        };
        let kept = self.busy_runs.iter().map(|run| format!("Kept: run {run}, another process is working on it.\n"));
        Ok(text + &kept.collect::<String>())
    }

    fn rescue_lines(&self) -> anyhow::Result<String> {
        let Some(workspace) = &self.workspace else { return Ok(String::new()) };
        let format = EntryFormat::of(workspace)?;
        Ok(listed(&self.rescues, "rescued file", |rescue| format!("{} {}", rescue.id, format.rescue(rescue))))
    }

    fn remove(&self) -> anyhow::Result<Removed> {
        let mut removed = Removed::default();
        let size_before = self.size()?;
        if let Some(workspace) = &self.workspace {
            self.remove_here(workspace, &mut removed)?;
        }
        for gone in &self.gone {
            removed.note(gone.root.display().to_string(), gone.remove());
        }
        for board in &self.boards {
            removed.note(board.path.display().to_string(), board.remove());
        }
        if self.gone_sessions.count > 0 {
            removed.note("records of sessions".to_owned(), SessionRoots::remove_gone(&self.home));
        }
        removed.freed = size_before.saturating_sub(self.size()?);
        Ok(removed)
    }

    fn remove_here(&self, workspace: &Arc<Workspace>, removed: &mut Removed) -> anyhow::Result<()> {
        for run in &self.runs {
            removed.note(format!("run {}", run.id), past_runs::remove(workspace, &run.id));
        }
        for rescue in &self.rescues {
            removed.note(format!("rescued file {}", rescue.id), workspace.remove_rescue(rescue));
        }
        if self.sessions.is_some() {
            workspace.drop_idle_sessions(self.before)?;
        }
        if self.history.is_some() {
            workspace.drop_history(self.before)?;
        }
        if self.sessions.is_some() || self.history.is_some() {
            // A process that is reading keeps the space for a while longer.
            drop(workspace.give_back_space());
        }
        Ok(())
    }

    /// The total size in bytes of everything that data may be removed from.
    fn size(&self) -> anyhow::Result<u64> {
        let mut states: Vec<PathBuf> = self.gone.iter().map(|gone| gone.state.clone()).collect();
        let here = self.workspace.as_ref().and_then(|workspace| workspace.state_report().paths);
        states.extend(here.map(|paths| paths.repository));
        states.sort();
        states.dedup();
        let mut bytes = SessionRoots::usage(&self.home)?.records.bytes;
        for state in &states {
            bytes += StateUsage::of(state)?.map_or(0, |usage| usage.bytes);
        }
        bytes += gone_boards(&self.home)?.iter().map(|board| board.bytes).sum::<u64>();
        Ok(bytes)
    }

    fn as_json(&self, removed: Option<&Removed>) -> Value {
        let run = |run: &OldRun| json!({ "run": run.id, "story": run.story, "resumable": run.is_resumable });
        let gone =
            |gone: &GoneState| json!({ "state": gone.state, "checkout": gone.checkout, "root": gone.root, "bytes": gone.bytes });
        let old = self.history.clone().unwrap_or_default();
        let sessions = self.sessions.unwrap_or_default();
        let mut object = json!({
            "before": rfc3339(self.before),
            "versions": amount_as_json(old.usage.versions),
            "changes": amount_as_json(old.usage.changes),
            "checkpoints": amount_as_json(old.usage.checkpoints),
            "named_checkpoints": old.named_checkpoints,
            "other_entries": amount_as_json(old.usage.incidents),
            "sessions": sessions.sessions,
            "views": amount_as_json(sessions.views),
            "runs": self.runs.iter().map(run).collect::<Vec<_>>(),
            "busy_runs": self.busy_runs,
            "rescued": self.rescues.iter().map(surehand_engine::json::rescue).collect::<Vec<_>>(),
            "gone": self.gone.iter().map(gone).collect::<Vec<_>>(),
            "boards": self.boards.iter().map(|board| json!({ "path": board.path, "roots": board.roots.as_ref().ok() })).collect::<Vec<_>>(),
            "gone_sessions": self.gone_sessions.count,
            "removed": removed.is_some(),
        });
        if let Some(removed) = removed {
            let failed = removed.failed.iter().map(|(what, why)| json!({ "what": what, "why": why }));
            (object["freed"], object["failed"]) = (removed.freed.into(), failed.collect());
        }
        object
    }
}

/// The runs that were last saved before a time, and the ids of those that a process is still working on.
fn old_runs(workspace: &Workspace, before: i64) -> anyhow::Result<(Vec<OldRun>, Vec<String>)> {
    let unsaved = past_runs::list_unsaved(workspace)?;
    let mut old: Vec<OldRun> = unsaved.into_iter().map(|id| OldRun { id, story: None, is_resumable: false }).collect();
    let mut busy = Vec::new();
    for run in past_runs::list(workspace)?.into_iter().filter(|run| run.last_active <= before) {
        if run.state == RunState::Running {
            busy.push(run.id);
            continue;
        }
        let is_resumable = run.saved.is_ok() && run.state != RunState::Stopped(StopReason::Done);
        old.push(OldRun { id: run.id, story: run.saved.ok().map(|saved| saved.story), is_resumable });
    }
    Ok((old, busy))
}

impl Removed {
    fn note<E: std::fmt::Display>(&mut self, what: String, done: Result<(), E>) {
        if let Err(error) = done {
            self.failed.push((what, error.to_string()));
        }
    }

    fn report(&self) -> String {
        let line = |(what, why): &(String, String)| format!("Kept: {what} ({why})\n");
        let kept = output::listed(&self.failed, MOST, line, |more| format!("Kept: {more} more (--json lists them)\n"));
        format!("Removed. {} are free again.\n{kept}", size(self.freed))
    }
}

/// This many of each kind are listed; the rest are counted.
const MOST: usize = 20;
const MOST_NAMES: usize = 5;

fn listed<T>(items: &[T], what: &str, line: impl Fn(&T) -> String) -> String {
    let more = |others| format!("  and {} more (--json lists them)\n", count(others, what));
    output::listed(items, MOST, |item| format!("  {}\n", line(item)), more)
}

fn number(amount: u64, what: &str) -> String {
    count(usize::try_from(amount).unwrap_or(usize::MAX), what)
}

/// The non-empty parts of a history, each with its size.
fn amounts(usage: &StoreUsage) -> Vec<String> {
    let kinds = [
        (usage.versions, "version"),
        (usage.changes, "change"),
        (usage.checkpoints, "checkpoint"),
        (usage.incidents, "other log entry"),
    ];
    let present = kinds.into_iter().filter(|(amount, _)| amount.count > 0);
    let plural = |amount: KeptAmount, what: &str| match (amount.count, what.strip_suffix('y')) {
        (2.., Some(stem)) => format!("{} {stem}ies", amount.count),
        _ => number(amount.count, what),
    };
    present.map(|(amount, what)| format!("{} ({})", plural(amount, what), size(amount.bytes))).collect()
}

fn run_line(run: &OldRun) -> String {
    let story = run.story.as_deref().and_then(|story| story.lines().next());
    let story = story.map(|story| format!(": {}", clip(story, 60))).unwrap_or_default();
    let hint = if run.is_resumable { " (could be resumed)" } else { "" };
    format!("run {}{hint}{story}", run.id)
}

fn gone_line(gone: &GoneState) -> String {
    let mut with = amounts(&gone.store);
    if gone.rescued > 0 {
        with.push(number(gone.rescued, "rescued file"));
    }
    let with = if with.is_empty() { String::new() } else { format!(" with {}", with.join(", ")) };
    let name = match gone.root.as_os_str().is_empty() {
        true => format!("{} of {}", gone.checkout.as_deref().unwrap_or("a work tree"), gone.state.display()),
        false => gone.root.display().to_string(),
    };
    format!("data of {name}, which is gone: {}{with}", size(gone.bytes))
}
