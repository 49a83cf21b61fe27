//! `surehand status`: the files, outside changes, sessions and open tasks.

use std::process::ExitCode;

use serde_json::json;
use surehand_engine::{
    RESCUED, SessionViews, ToolNames, Workspace,
    change_log::LoggedChange,
    core::{FileState, FileStatus, RepoState, render},
    repo_state::rfc3339,
    store::EventFilter,
    views_by_session,
};

use crate::{args::StateArgs, output, workspace};

/// How many names of each kind are listed; the rest is counted.
const MOST: usize = 10;

pub(crate) fn run(args: &StateArgs) -> anyhow::Result<ExitCode> {
    let workspace = workspace::open_read_only(&args.place)?;
    let state = workspace.snapshot();
    let last = workspace.log(&EventFilter::default(), 1)?.into_iter().next();
    let rescued = rescued(&workspace);
    let views = views_by_session(&workspace)?;
    let notices: Vec<String> = workspace.take_notices().iter().map(render::notice::notice).collect();
    if args.json {
        let value = json!({
            "work_dir": state.work_dir,
            "story_id": state.tasks.story,
            "files": {
                "created": paths(&state, |file| file.status == FileStatus::Created),
                "modified": paths(&state, |file| file.status == FileStatus::Modified),
                "deleted": paths(&state, |file| file.status == FileStatus::Deleted),
                "unchanged": state.files.iter().filter(|file| file.status == FileStatus::Unchanged).count(),
                "changed_outside": paths(&state, |file| file.changed_outside),
            },
            "sessions": views.iter().map(|holder| json!({ "session": holder.session, "files": holder.files, "stale": holder.stale })).collect::<Vec<_>>(),
            "open_tasks": state.tasks.open(),
            "last_change": last.as_ref().map(|change| json!({ "change": change.change, "at": rfc3339(change.at), "tool": change.tool, "session": change.session })),
            "rescued": rescued,
            "notices": notices,
        });
        output::print(&format!("{value:#}\n"))?;
        return Ok(ExitCode::SUCCESS);
    }
    output::print(&as_text(&state, last.as_ref(), &rescued, &views))?;
    for notice in notices {
        output::print(&format!("note: {notice}\n"))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn as_text(state: &RepoState, last: Option<&LoggedChange>, rescued: &[String], views: &[SessionViews]) -> String {
    let mut text = format!("workspace {}\n", state.work_dir);
    for (word, status) in [("created", FileStatus::Created), ("modified", FileStatus::Modified), ("deleted", FileStatus::Deleted)]
    {
        text.push_str(&named(word, &paths(state, |file| file.status == status)));
    }
    text.push_str(&named("changed outside since it was read", &paths(state, |file| file.changed_outside)));
    if let Some(last) = last {
        let ago = output::ago(output::now() - last.at);
        text.push_str(&format!("last change {} ({}, {ago}; surehand undo takes it back)\n", last.change, last.tool));
    }
    text.push_str(&named("rescued, with text that other programs wrote while a file was replaced", rescued));
    let sessions = if views.len() == 1 { "session has seen files" } else { "sessions have seen files" };
    text.push_str(&named(sessions, &views.iter().rev().map(holder).collect::<Vec<_>>()));
    text.push_str(&render::tasks::tasks(&state.tasks, &ToolNames::default()));
    text
}

/// How many files a session has seen, and how many of them are stale.
fn holder(holder: &SessionViews) -> String {
    let files = render::count(holder.files, "file");
    if holder.stale.is_empty() {
        return format!("{}: {files}", holder.session.0);
    }
    let stale: Vec<&str> = holder.stale.iter().take(3).map(|path| path.as_str()).collect();
    let more = if holder.stale.len() > 3 { format!(" and {} more", holder.stale.len() - 3) } else { String::new() };
    format!("{}: {files}, changed since: {}{more}", holder.session.0, stale.join(", "))
}

fn named(word: &str, names: &[String]) -> String {
    if names.is_empty() {
        return String::new();
    }
    let mut text = format!("{} {word}:\n", names.len());
    names.iter().take(MOST).for_each(|name| text.push_str(&format!("    {name}\n")));
    if names.len() > MOST {
        text.push_str(&format!("    … and {} more\n", names.len() - MOST));
    }
    text
}

fn paths(state: &RepoState, fits: impl Fn(&FileState) -> bool) -> Vec<String> {
    state.files.iter().filter(|file| fits(file)).map(|file| file.path.to_string()).collect()
}

fn rescued(workspace: &Workspace) -> Vec<String> {
    let dir = workspace.state_report().paths.map(|state| state.checkout.join(RESCUED));
    let entries = dir.and_then(|dir| std::fs::read_dir(dir).ok()).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries.map(|entry| entry.path().display().to_string()).collect();
    names.sort();
    names
}
