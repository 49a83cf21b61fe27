//! `surehand diff`: the diff of a change, or exactly the lines of a session.

use std::{
    io::{self, IsTerminal},
    sync::Arc,
};

use serde_json::Value;
use surehand_engine::{
    Session, SessionId, Workspace,
    attribution::{SessionWork, WorkBase},
    change_log::ChangeSelection,
    core::file_diff::FileDiff,
    json,
};

use super::{entry_format::EntryFormat, session_work::has_work};
use crate::{args::DiffArgs, display::diff::coloured, local_paths::LocalPaths, output, pager, workspace};

pub(crate) fn run(args: &DiffArgs) -> anyhow::Result<()> {
    let workspace = workspace::open_read_only(&args.place)?;
    let session = Session::untracked(workspace.clone());
    let selection = workspace::selection(&args.selection, &session)?;
    drop(session);
    let text = match &selection {
        ChangeSelection::Session(session) => of_session(args, &workspace, session)?,
        _ if args.committed => anyhow::bail!("--committed is for the work of a session; name it with --session"),
        _ => of_change(args, &workspace, &selection)?,
    };
    drop(workspace);
    // A pipe gets it unchanged, so that the diff can be applied.
    match args.json || !io::stdout().is_terminal() {
        true => output::print_bytes(&text),
        false => pager::print(&String::from_utf8_lossy(&text), &args.pager),
    }
}

fn of_change(args: &DiffArgs, workspace: &Workspace, selection: &ChangeSelection) -> anyhow::Result<Vec<u8>> {
    let changes = workspace.net_changes(selection)?;
    if changes.is_none() {
        let of = match selection {
            ChangeSelection::File(path, _) => {
                let shown = LocalPaths::to(workspace.path()).shown(path.as_str());
                let is_there = workspace.path().join(path.as_str()).symlink_metadata().is_ok();
                anyhow::ensure!(is_there, "{shown}: no such file, and no change of one");
                format!(" of {shown}")
            }
            _ => String::new(),
        };
        anstream::eprintln!("note: there is no change{of} to show");
    }
    let changes = changes.unwrap_or_default();
    if args.patch {
        return Ok(workspace.patch_of_changes(&changes)?);
    }
    let (mut files, mut text) = (Vec::new(), String::new());
    for file in changes {
        let Some(diff) = workspace.diff(&file) else {
            anyhow::bail!("{}: what it was is no longer kept", file.path_before);
        };
        if args.json {
            files.push(json::net_change(workspace.path(), &file, &diff));
        } else {
            text.push_str(&shown(&diff));
        }
    }
    Ok(if args.json { format!("{:#}\n", Value::Array(files)) } else { text }.into_bytes())
}

fn shown(diff: &FileDiff) -> String {
    if io::stdout().is_terminal() { coloured(diff) } else { diff.to_string() }
}

/// The work of a session: in all workspaces, or as a patch in this one.
fn of_session(args: &DiffArgs, here: &Arc<Workspace>, session: &SessionId) -> anyhow::Result<Vec<u8>> {
    let base = if args.committed { WorkBase::Found } else { WorkBase::Commit };
    let others = workspace::other_roots(session, here.path())?;
    let work = here.session_work(session, base)?;
    note_git_trouble(&work);
    let mut files = Vec::new();
    let mut text = Vec::new();
    if args.patch {
        text = here.patch_of(&work.files)?;
        for root in &others {
            let other = workspace::open_read_only(&workspace::at(root))?;
            if has_work(&other, session, base)? {
                anstream::eprintln!("note: there is more in {}", root.display());
            }
        }
    }
    let mut is_anything = show(args, here, work, &mut files, &mut text)?;
    for root in others.iter().filter(|_| !args.patch) {
        let other = workspace::open_read_only(&workspace::at(root))?;
        let work = other.session_work(session, base)?;
        note_git_trouble(&work);
        is_anything |= show(args, &other, work, &mut files, &mut text)?;
    }
    if !is_anything {
        let name = here.session_names()?.name(session);
        match args.committed {
            true => anstream::eprintln!("note: {name} has changed no file"),
            false => {
                anstream::eprintln!("note: {name} has nothing left to commit; --committed also shows what is committed")
            }
        }
    }
    Ok(if args.json { format!("{:#}\n", Value::Array(files)).into_bytes() } else { text })
}

fn note_git_trouble(work: &SessionWork) {
    if let Some(trouble) = &work.git_trouble {
        anstream::eprintln!("note: cannot determine what git has committed: {trouble}");
    }
}

/// Adds the files of a workspace. Returns whether there are any.
fn show(
    args: &DiffArgs,
    workspace: &Workspace,
    work: SessionWork,
    files: &mut Vec<Value>,
    text: &mut Vec<u8>,
) -> anyhow::Result<bool> {
    let format = EntryFormat::of(workspace)?;
    for file in &work.files {
        if args.json {
            files.push(json::session_file(workspace.path(), file, &format.names));
            continue;
        }
        if !args.patch {
            text.extend_from_slice(shown(&file.diff()).as_bytes());
        }
        format.left(file).iter().for_each(|note| anstream::eprintln!("note: {note}"));
    }
    Ok(!work.files.is_empty())
}
