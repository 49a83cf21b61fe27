//! Where we are: the workspace of a command, with the settings of its file and of the environment.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::Context;
use surehand_engine::{
    Config, Session, SessionId, Workspace,
    changes::Selection,
    disk::commit::{Probe, Verdict},
    store::ChangeId,
};

use crate::{
    args::{PlaceArgs, SelectionArgs},
    output,
};

/// For tests: kill this process, as hard as can be, after this many steps of a commit.
const KILL_AFTER: &str = "SUREHAND_TEST_KILL_AFTER";

/// Opens the workspace that a command is about.
pub fn open(place: &PlaceArgs) -> anyhow::Result<Arc<Workspace>> {
    let root = match &place.root {
        Some(root) => root.clone(),
        None => nearest_root(&std::env::current_dir().context("the current directory is gone")?),
    };
    open_at(&root)
}

/// Opens the workspace that a directory is in.
pub fn open_above(directory: &Path) -> anyhow::Result<Arc<Workspace>> {
    open_at(&nearest_root(directory))
}

fn open_at(root: &Path) -> anyhow::Result<Arc<Workspace>> {
    anyhow::ensure!(root.is_dir(), "{}: not a directory", root.display());
    let config = Config::load(
        root,
        std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?))),
    )?;
    Ok(Workspace::open_with(root, config, killer())?)
}

/// Which changes are meant. What is not the name of a change is a file.
pub fn selection(typed: &SelectionArgs, session: &Session) -> anyhow::Result<Selection> {
    if let Some(id) = &typed.session {
        return Ok(Selection::Session(SessionId(id.clone())));
    }
    let Some(what) = &typed.what else { return Ok(Selection::Last(None)) };
    let change = Selection::Change(ChangeId(what.clone()));
    if !session.workspace().select(&change)?.is_empty() {
        return Ok(change);
    }
    Ok(Selection::File(session.path_of(what).map_err(output::refused)?, None))
}

fn nearest_root(from: &Path) -> PathBuf {
    let is_root = |dir: &&Path| dir.join(".surehand").is_dir() || dir.join(".git").exists();
    from.ancestors().find(is_root).unwrap_or(from).to_owned()
}

fn killer() -> Option<Probe> {
    let after: usize = std::env::var(KILL_AFTER).ok()?.parse().ok()?;
    Some(Arc::new(move |number, _| {
        if number == after {
            let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
        }
        Verdict::GoOn
    }))
}
