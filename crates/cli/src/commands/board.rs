//! `surehand board`: the state that all checkouts of a repository share.

use std::{thread, time::Duration};

use anyhow::Context;
use serde_json::json;
use surehand_engine::{
    Workspace,
    core::{PathPattern, TaskStatus, render::count},
    fleet::{FleetOverview, host},
    store::board::{AgentId, BoardCall, BoardTaskId, ClaimId, NewTask, PathClaimRequest, TaskEdit},
};

use crate::{
    args::{BoardAct, BoardArgs},
    display::board::as_text,
    fleet,
    local_paths::LocalPaths,
    output, workspace,
};

pub(crate) fn run(args: &BoardArgs) -> anyhow::Result<()> {
    let workspace = workspace::open(&args.place)?;
    anyhow::ensure!(workspace.config().board.enabled, "the board is switched off: board.enabled is false in your settings");
    match &args.act {
        Some(act) => change(args, act, &workspace),
        None if args.watch => watch(args, &workspace),
        None => {
            let trouble = refresh(&workspace);
            show(args, &workspace, trouble)
        }
    }
}

/// Makes the local copy current. Returns the reason if that fails.
fn refresh(workspace: &Workspace) -> Option<String> {
    let looked = fleet::helper().and_then(|helper| Ok(helper.look(&fleet::place_of(workspace))?));
    looked.err().map(|error| output::in_words(&error))
}

fn overview(workspace: &Workspace, trouble: Option<String>) -> anyhow::Result<FleetOverview> {
    workspace.repository_id()?;
    let mut overview = workspace.fleet_overview()?.context("the id of the repository was lost")?;
    overview.trouble = overview.trouble.or(trouble);
    Ok(overview)
}

fn show(args: &BoardArgs, workspace: &Workspace, trouble: Option<String>) -> anyhow::Result<()> {
    let overview = overview(workspace, trouble)?;
    match args.json {
        true => output::print_json(&json!(overview)),
        false => output::print(&as_text(&overview, &LocalPaths::to(workspace.path()))),
    }
}

/// Shows the board again whenever it changes.
fn watch(args: &BoardArgs, workspace: &Workspace) -> anyhow::Result<()> {
    const LOOK_EVERY: Duration = Duration::from_millis(250);
    const REFRESH_EVERY: u32 = 20;
    let mut shown = None;
    for look in 0_u32.. {
        let trouble = if look % REFRESH_EVERY == 0 { refresh(workspace) } else { None };
        let mut now = overview(workspace, trouble)?;
        // The board has not changed if only its age has.
        now.age = now.age.map(|_| 0);
        now.agents.iter_mut().for_each(|agent| agent.seen_ago = 0);
        now.claims.iter_mut().for_each(|claim| claim.lasts = 0);
        now.stories.iter_mut().flat_map(|story| &mut story.tasks).for_each(|task| task.lasts = None);
        if shown.as_ref() != Some(&now) {
            if args.json {
                output::print(&format!("{}\n", json!(overview(workspace, None)?)))?;
            } else {
                // This clears a terminal; elsewhere the escape sequences are removed.
                let text = as_text(&overview(workspace, None)?, &LocalPaths::to(workspace.path()));
                output::clear_screen()?;
                output::print(&text)?;
            }
            shown = Some(now);
        }
        thread::sleep(LOOK_EVERY);
    }
    Ok(())
}

fn change(args: &BoardArgs, act: &BoardAct, workspace: &Workspace) -> anyhow::Result<()> {
    let done = match act {
        BoardAct::Join { id } => {
            let joined = workspace.join_repository(id)?;
            refresh(workspace);
            format!("This repository is {} from now on, in all its worktrees.", &joined.id.0[..12])
        }
        BoardAct::Claim { pattern, lasts } => claim(workspace, pattern, *lasts)?,
        BoardAct::Release { pattern } => release(workspace, pattern)?,
        BoardAct::Add { description, story, priority } => {
            let key = format!("{} {}", person().0, fleet::random_id()?);
            let task = NewTask { key, description: description.trim().to_owned(), priority: *priority };
            let added = call(workspace, &BoardCall::AddTasks { story: story.clone(), tasks: vec![task] })?;
            let surehand_engine::store::board::BoardAnswer::Added(ids) = added else {
                anyhow::bail!("unexpected answer from the helper")
            };
            format!("Added task {}.", ids.first().context("no task was added")?)
        }
        BoardAct::Reopen(ids) => set_status(workspace, &ids.ids, TaskStatus::Pending)?,
        BoardAct::Complete(ids) => set_status(workspace, &ids.ids, TaskStatus::Completed)?,
        BoardAct::Cancel(ids) => set_status(workspace, &ids.ids, TaskStatus::Cancelled)?,
    };
    match args.json {
        true => show(args, workspace, refresh(workspace)),
        false => output::print(&format!("{done}\n")),
    }
}

fn claim(workspace: &Workspace, pattern: &str, lasts: Duration) -> anyhow::Result<String> {
    let pattern = in_workspace(workspace, pattern)?;
    let request = PathClaimRequest { id: claim_id(&pattern), by: person(), pattern: pattern.clone(), lease: lasts };
    call(workspace, &BoardCall::ClaimPaths(request))?;
    Ok(format!("Claimed {pattern} for {}.", output::span(lasts.as_secs())))
}

fn release(workspace: &Workspace, pattern: &str) -> anyhow::Result<String> {
    refresh(workspace);
    let pattern = in_workspace(workspace, pattern)?;
    let overview = overview(workspace, None)?;
    let claims: Vec<_> = overview.claims.iter().filter(|claim| claim.pattern == pattern).collect();
    anyhow::ensure!(!claims.is_empty(), "{pattern} is not claimed; `surehand board` lists the claims");
    for claim in &claims {
        call(workspace, &BoardCall::ReleasePaths { claim: claim.id.clone(), by: None })?;
    }
    let by: Vec<&str> = claims.iter().map(|claim| &*claim.by).collect();
    Ok(format!("Released {pattern}, which {} had claimed.", by.join(" and ")))
}

fn set_status(workspace: &Workspace, ids: &[u32], status: TaskStatus) -> anyhow::Result<String> {
    for id in ids {
        let edit =
            TaskEdit { task: BoardTaskId((*id).into()), by: None, description: None, priority: None, status: Some(status) };
        call(workspace, &BoardCall::EditTask(edit))?;
    }
    let (these, are) = (count(ids.len(), "task"), if ids.len() == 1 { "is" } else { "are" });
    Ok(format!("{these} {are} {}.", status.name().replace('_', " ")))
}

fn call(workspace: &Workspace, call: &BoardCall) -> anyhow::Result<surehand_engine::store::board::BoardAnswer> {
    Ok(fleet::helper()?.call(&fleet::place_of(workspace), call)?)
}

/// A pattern as typed in the current directory, made relative to the work tree.
fn in_workspace(workspace: &Workspace, typed: &str) -> anyhow::Result<PathPattern> {
    let pattern = LocalPaths::to(workspace.path()).typed(typed);
    workspace.pattern_in_tree(&pattern).with_context(|| format!("{typed} is not a pattern for paths"))
}

/// The person at this machine, as the holder of claims.
fn person() -> AgentId {
    let name = std::env::var("USER").ok().filter(|name| !name.is_empty());
    AgentId(format!("{}@{}", name.unwrap_or_else(|| "somebody".to_owned()), host()))
}

/// The id of this person's claim on this pattern. It depends only on both, so claiming again extends the claim.
fn claim_id(pattern: &PathPattern) -> ClaimId {
    ClaimId(format!("{} {pattern}", person()))
}
