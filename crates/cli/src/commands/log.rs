//! `surehand log`: the changes that were made and the checkpoints that were taken.

use std::{path::PathBuf, process::ExitCode};

use serde_json::{Value, json};
use surehand_engine::{
    Session, SessionId,
    change_log::{LoggedChange, what_happened},
    repo_state::rfc3339,
    store::{CheckpointInfo, EventFilter, FileEvent},
};

use super::checkpoint;
use crate::{args::LogArgs, output, workspace};

pub(crate) fn run(args: &LogArgs) -> anyhow::Result<ExitCode> {
    let workspace = workspace::open_read_only(&args.place)?;
    let session = Session::untracked(workspace.clone());
    let path = args.path.as_deref().map(|path| session.path_of(path)).transpose()?;
    let which = EventFilter { path, session: args.session.clone().map(SessionId), change: None };
    let mut log: Vec<(Option<PathBuf>, LoggedChange)> =
        workspace.log(&which, args.limit)?.into_iter().map(|change| (None, change)).collect();
    // A session may have worked in several workspaces.
    if let (Some(session), None) = (&which.session, &which.path) {
        for root in workspace::other_roots(session, workspace.path())? {
            let there = workspace::open_read_only(&workspace::at(&root))?.log(&which, args.limit)?;
            log.extend(there.into_iter().map(|change| (Some(root.clone()), change)));
        }
        log.sort_by_key(|(_, change)| std::cmp::Reverse(change.at));
        log.truncate(args.limit);
    }
    let mut checkpoints = if which.path.is_none() { workspace.checkpoints(args.limit)? } else { Vec::new() };
    checkpoints.retain(|checkpoint| which.session.is_none() || checkpoint.session == which.session);
    let mut entries: Vec<(i64, Entry)> = log.into_iter().map(|change| (change.1.at, Entry::Change(change))).collect();
    entries.extend(checkpoints.into_iter().map(|checkpoint| (checkpoint.at, Entry::Checkpoint(Box::new(checkpoint)))));
    // Of one moment the checkpoint comes before the change that it was taken for.
    entries.sort_by_key(|(at, entry)| (std::cmp::Reverse(*at), matches!(entry, Entry::Checkpoint(_))));
    entries.truncate(args.limit);
    if args.json {
        let said = |(_, entry): &(i64, Entry)| match entry {
            Entry::Change(change) => as_json(change),
            Entry::Checkpoint(checkpoint) => checkpoint::as_json(checkpoint),
        };
        output::print(&format!("{:#}\n", Value::Array(entries.iter().map(said).collect())))?;
        return Ok(ExitCode::SUCCESS);
    }
    if entries.is_empty() {
        output::print("no changes\n")?;
    }
    let now = output::now();
    for (_, entry) in &entries {
        output::print(&match entry {
            Entry::Change(change) => as_text(change, now),
            Entry::Checkpoint(checkpoint) => checkpoint::as_text(checkpoint, now),
        })?;
    }
    Ok(ExitCode::SUCCESS)
}

/// What the log lists.
enum Entry {
    Change((Option<PathBuf>, LoggedChange)),
    Checkpoint(Box<CheckpointInfo>),
}

fn as_text((root, change): &(Option<PathBuf>, LoggedChange), now: i64) -> String {
    let elsewhere = root.as_ref().map(|root| format!("  in {}", root.display())).unwrap_or_default();
    let undone = if change.is_undone { " (undone)" } else { "" };
    let mut text = format!(
        "\x1b[33m{}\x1b[0m {:>9}  {}{undone}  \x1b[2msession {}{elsewhere}\x1b[0m\n",
        change.change,
        output::ago(now - change.at),
        change.tool,
        change.session
    );
    for file in &change.files {
        text.push_str(&format!("    {}\n", what_happened(file)));
    }
    text
}

fn as_json((root, change): &(Option<PathBuf>, LoggedChange)) -> Value {
    let file = |file: &FileEvent| json!({ "path": file.path, "moved_to": file.moved_to, "before": file.before, "after": file.after, "undoes": file.undoes });
    let mut said = json!({
        "change": change.change,
        "at": rfc3339(change.at),
        "session": change.session,
        "tool": change.tool,
        "undone": change.is_undone,
        "files": change.files.iter().map(file).collect::<Vec<_>>(),
    });
    if let Some(root) = root {
        said["workspace"] = root.to_string_lossy().into();
    }
    said
}
