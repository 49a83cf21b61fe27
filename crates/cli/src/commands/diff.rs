//! `surehand diff`: what a change did.

use std::{
    io::{self, IsTerminal},
    process::ExitCode,
    sync::Arc,
};

use serde_json::{Value, json};
use surehand_engine::{Session, Workspace, change_log::ChangeSelection, core::file_diff::FileDiff};

use crate::{args::DiffArgs, display::diff::coloured, output, workspace};

pub(crate) fn run(args: &DiffArgs) -> anyhow::Result<ExitCode> {
    let workspace = workspace::open_read_only(&args.place)?;
    let session = Session::untracked(workspace.clone());
    let selection = workspace::selection(&args.selection, &session)?;
    let mut found = false;
    let mut files = Vec::new();
    for workspace in workspaces(&selection, workspace)? {
        let Some(changes) = workspace.net_changes(&selection)? else { continue };
        found = true;
        for file in changes {
            let Some(diff) = workspace.diff(&file) else {
                anyhow::bail!("{}: what it was is no longer kept", file.path_before);
            };
            if args.json {
                let (before, after, diff) = (file.before, file.after, diff.to_string());
                let workspace = workspace.path().to_string_lossy();
                files.push(json!({
                    "path": file.path_after, "from": file.path_before, "before": before, "after": after, "diff": diff,
                    "workspace": workspace,
                }));
            } else {
                say(&diff)?;
            }
        }
    }
    anyhow::ensure!(found, "there is no such change");
    if args.json {
        output::print(&format!("{:#}\n", Value::Array(files)))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The workspaces to search: for a session, all that it has worked in.
fn workspaces(selection: &ChangeSelection, here: Arc<Workspace>) -> anyhow::Result<Vec<Arc<Workspace>>> {
    let roots = match selection {
        ChangeSelection::Session(session) => workspace::other_roots(session, here.path())?,
        _ => Vec::new(),
    };
    let others: anyhow::Result<Vec<_>> = roots.iter().map(|root| workspace::open_read_only(&workspace::at(root))).collect();
    Ok([here].into_iter().chain(others?).collect())
}

/// A pipe gets it unchanged, so that it can be applied.
fn say(diff: &FileDiff) -> anyhow::Result<()> {
    if io::stdout().is_terminal() { output::print(&coloured(diff)) } else { output::print_as_it_is(&diff.to_string()) }
}
