//! `surehand status`: the files, outside changes, sessions and open tasks.

use serde_json::{Value, json};
use surehand_engine::{
    SessionViews, ToolNames, Workspace,
    change_log::{ChangeSelection, LoggedChange},
    core::{FileState, FileStatus, RepoState, render},
    json,
    repo_state::rfc3339,
    rescued::{Rescue, RescuePlace},
    store::EventFilter,
    views_by_session,
};

use super::entry_format::EntryFormat;
use crate::{args::StateArgs, output, workspace};

/// The number of names of each kind that are listed; the rest are counted.
const MOST: usize = 10;

pub(crate) fn run(args: &StateArgs) -> anyhow::Result<()> {
    let workspace = workspace::open_read_only(&args.place)?;
    let state = workspace.snapshot();
    let last = workspace.log(&EventFilter::default(), 1)?.into_iter().next();
    let rescued = rescued(&workspace);
    let views = views_by_session(&workspace)?;
    // The last change may be an undo, or may be undone.
    let next_undo = workspace.net_changes(&ChangeSelection::Last(None))?.unwrap_or_default();
    let is_undoable = last.as_ref().is_some_and(|last| next_undo.iter().any(|file| file.changes.contains(&last.change)));
    let notices: Vec<String> = workspace.take_notices().iter().map(render::notice::notice).collect();
    if args.json {
        let mut value = json::state(&state);
        let holder = |holder: &SessionViews| json!({ "session": holder.session, "files": holder.files, "stale": holder.stale });
        value["sessions"] = views.iter().map(holder).collect();
        value["last_change"] = last.as_ref().map_or(
            Value::Null,
            |change| json!({ "change": change.change, "at": rfc3339(change.at), "tool": change.tool, "session": change.session }),
        );
        (value["rescued"], value["notices"]) = (json!(rescued), json!(notices));
        return output::print_json(&value);
    }
    let last = last.as_ref().map(|last| last_change(last, is_undoable)).unwrap_or_default();
    output::print(&as_text(&state, &last, &rescued, &views, &EntryFormat::of(&workspace)?))?;
    for notice in notices {
        output::print(&format!("note: {notice}\n"))?;
    }
    Ok(())
}

fn as_text(state: &RepoState, last: &str, rescued: &[String], views: &[SessionViews], format: &EntryFormat) -> String {
    let shown = |paths: Vec<String>| paths.iter().map(|path| format.local_paths.shown(path)).collect::<Vec<_>>();
    let mut text = format!("workspace {}\n", state.work_dir);
    for (word, status) in [("created", FileStatus::Created), ("modified", FileStatus::Modified), ("deleted", FileStatus::Deleted)]
    {
        text.push_str(&named(word, &shown(paths(state, |file| file.status == status))));
    }
    text.push_str(&named("changed outside since it was read", &shown(paths(state, |file| file.changed_outside))));
    text.push_str(last);
    text.push_str(&named("rescued, with text that other programs wrote while a file was replaced (surehand rescued)", rescued));
    let sessions = if views.len() == 1 { "session has seen files" } else { "sessions have seen files" };
    text.push_str(&named(sessions, &views.iter().rev().map(|views| holder(views, format)).collect::<Vec<_>>()));
    text.push_str(&render::tasks::tasks(&state.tasks, &ToolNames::default()));
    text
}

fn last_change(last: &LoggedChange, is_undoable: bool) -> String {
    let ago = output::ago(output::now() - last.at);
    let hint = if is_undoable { "; surehand undo takes it back" } else { "" };
    format!("last change {} ({}, {ago}{hint})\n", last.change, last.tool)
}

/// The number of files that a session has seen, and of the stale ones among them.
fn holder(holder: &SessionViews, format: &EntryFormat) -> String {
    let (files, name) = (render::count(holder.files, "file"), format.names.name(&holder.session));
    if holder.stale.is_empty() {
        return format!("{name}: {files}");
    }
    let stale: Vec<String> = holder.stale.iter().map(|path| format.local_paths.shown(path.as_str())).collect();
    format!("{name}: {files}, changed since: {}", output::first_names(&stale, 3))
}

fn named(word: &str, names: &[String]) -> String {
    if names.is_empty() {
        return String::new();
    }
    let listed = output::listed(names, MOST, |name| format!("    {name}\n"), |more| format!("    … and {more} more\n"));
    format!("{} {word}:\n{listed}", names.len())
}

fn paths(state: &RepoState, fits: impl Fn(&FileState) -> bool) -> Vec<String> {
    state.files.iter().filter(|file| fits(file)).map(|file| file.path.to_string()).collect()
}

fn rescued(workspace: &Workspace) -> Vec<String> {
    let file = |rescue: Rescue| match rescue.place {
        RescuePlace::File { path, .. } => Some(path.display().to_string()),
        RescuePlace::Store(_) => None,
    };
    workspace.rescues().into_iter().filter_map(file).collect()
}
