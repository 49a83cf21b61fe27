//! `surehand diff`: what a change did.

use std::{
    io::{self, IsTerminal},
    process::ExitCode,
};

use anyhow::Context;
use serde_json::{Value, json};
use surehand_engine::{Session, core::file_diff::FileDiff};

use crate::{args::DiffArgs, output, place, view::diff::coloured};

pub(crate) fn run(args: &DiffArgs) -> anyhow::Result<ExitCode> {
    let workspace = place::look(&args.place)?;
    let session = Session::untracked(workspace.clone());
    let selection = place::selection(&args.selection, &session)?;
    let changes = workspace.net_changes(&selection)?.context("there is no such change")?;
    let mut files = Vec::new();
    for file in changes {
        let Some(diff) = workspace.diff(&file) else {
            anyhow::bail!("{}: what it was is no longer kept", file.path_before);
        };
        if args.json {
            let (before, after, diff) = (file.before, file.after, diff.to_string());
            files.push(
                json!({ "path": file.path_after, "from": file.path_before, "before": before, "after": after, "diff": diff }),
            );
        } else {
            say(&diff)?;
        }
    }
    if args.json {
        output::print(&format!("{:#}\n", Value::Array(files)))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// To a program it is given as it is, to be applied.
fn say(diff: &FileDiff) -> anyhow::Result<()> {
    if io::stdout().is_terminal() { output::print(&coloured(diff)) } else { output::print_as_it_is(&diff.to_string()) }
}
