//! `surehand show`: one entry of the log, with its diff, or a run of the agent.

use std::io::{self, IsTerminal};

use serde_json::Value;
use surehand_agent::past_runs::{self, PastRun, PastRunError};
use surehand_engine::{Workspace, activity::Activity, json, render::count, repo_state::rfc3339, session_names::IdError};

use super::{entry_format::EntryFormat, show_run};
use crate::{args::ShowArgs, display::diff::coloured, output, pager, workspace};

pub(crate) fn run(args: &ShowArgs) -> anyhow::Result<()> {
    let workspace = workspace::open_read_only(&args.state.place)?;
    let shown = match find(&workspace, &args.id, args.turn)? {
        NamedItem::Entry(entry) => ShownText::of_entry(&workspace, &entry)?,
        NamedItem::Run(run) => show_run::read(&workspace, &run, args.turn)?,
    };
    match args.state.json {
        true => output::print_json(&shown.json),
        false => pager::print(&shown.text, &args.pager),
    }
}

/// The entry or run that an id refers to.
enum NamedItem {
    Entry(Box<Activity>),
    Run(Box<PastRun>),
}

/// Finds the entry or run for an id. Only runs have turns.
fn find(workspace: &Workspace, typed: &str, turn: Option<u32>) -> anyhow::Result<NamedItem> {
    let typed = typed.trim();
    let run = past_runs::find(workspace, typed);
    if let (Some(_), Err(PastRunError::Id(error @ IdError::Unknown { .. }))) = (turn, &run) {
        anyhow::bail!("{error}\nhint: `surehand runs` lists them; nothing else has turns");
    }
    if turn.is_some() {
        return Ok(NamedItem::Run(Box::new(run?)));
    }
    match (workspace.find_activity(typed), run) {
        (Err(IdError::Unknown { .. }), Err(PastRunError::Id(IdError::Unknown { .. }))) => {
            anyhow::bail!(
                "there is no change, checkpoint or run {typed}\nhint: `surehand log` and `surehand runs` list what there is"
            )
        }
        (Ok(entry), Ok(run)) if entry.id() != typed && run.id != typed => {
            anyhow::bail!("{typed} is ambiguous: it may be {} of the log, or the run {}", entry.id(), run.id)
        }
        (_, Ok(run)) if run.id == typed => Ok(NamedItem::Run(Box::new(run))),
        (Ok(entry), _) => Ok(NamedItem::Entry(Box::new(entry))),
        (Err(IdError::Unknown { .. }), run) => Ok(NamedItem::Run(Box::new(run?))),
        (Err(error), _) => Err(error.into()),
    }
}

pub(super) struct ShownText {
    pub text: String,
    pub json: Value,
}

impl ShownText {
    fn of_entry(workspace: &Workspace, entry: &Activity) -> anyhow::Result<Self> {
        let files = workspace.diffs_of(entry)?;
        let format = EntryFormat::of(workspace)?;
        let mut text = format.entry(None, entry);
        text.push_str(&format!("    {}\n\n", rfc3339(entry.at())));
        let is_terminal = io::stdout().is_terminal();
        for (path, diff) in &files {
            match diff {
                Some(diff) if is_terminal => text.push_str(&coloured(diff)),
                Some(diff) => text.push_str(&diff.to_string()),
                None => text.push_str(&format!("{}: its diff cannot be shown\n", format.local_paths.shown(path.as_str()))),
            }
        }
        if let (Activity::Checkpoint(checkpoint), Some(commit)) = (entry, commit_of(entry)) {
            let other = checkpoint.files.saturating_sub(files.len());
            let other = if other > 0 { format!(", and {} without text", count(other, "entry")) } else { String::new() };
            text.push_str(&format!("This is what differs from commit {commit}{other}.\n"));
        }
        let json = json::activity_with_diffs(entry, &files);
        Ok(Self { text, json })
    }
}

fn commit_of(entry: &Activity) -> Option<&str> {
    match entry {
        Activity::Checkpoint(checkpoint) => checkpoint.commit.as_deref().and_then(|commit| commit.get(..8)),
        Activity::Change(_) | Activity::Incident(_) | Activity::Rescue(_) => None,
    }
}
