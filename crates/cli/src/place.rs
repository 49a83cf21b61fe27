//! Where we are: the workspace of a command, with the settings of its file and of the environment.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::Context;
use surehand_engine::{
    Config, Workspace,
    disk::commit::{Probe, Verdict},
};

use crate::args::PlaceArgs;

/// For tests and the demo: kill this process, as hard as can be, after this many steps of a commit.
pub const KILL_AFTER: &str = "SUREHAND_TEST_KILL_AFTER";

/// Opens the workspace that a command is about.
pub fn open(place: &PlaceArgs) -> anyhow::Result<Arc<Workspace>> {
    let root = match &place.root {
        Some(root) => root.clone(),
        None => nearest_root(&std::env::current_dir().context("the current directory is gone")?),
    };
    anyhow::ensure!(root.is_dir(), "{}: not a directory", root.display());
    let config = Config::load(
        &root,
        std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?))),
    )?;
    Ok(Workspace::open_with(&root, config, killer())?)
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
