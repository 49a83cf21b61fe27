//! How long a server takes from its spawn to its first answers: in a fresh workspace, and where it finds its own state.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;
use serde_json::json;

use crate::bench::Bench;
use crate::client::Client;
use crate::files::{content, create, token};
use crate::sample::{Pair, Summary, order};
use crate::server::Launch;
use crate::{growth, machine};

/// The times of both servers in one kind of workspace.
pub struct StartRow {
    /// The kind of workspace.
    pub workspace: String,
    /// From the spawn to the answer to `initialize`.
    pub greeting: Pair<Summary>,
    /// From the spawn to the answer to the first `read_file`.
    pub read: Pair<Summary>,
}

/// Measures starts in fresh workspaces, in one with little state, and in those that `grown` names.
pub fn measure(bench: &Bench, grown: &Pair<PathBuf>, files: usize) -> Result<Vec<StartRow>> {
    let path = growth::path(0);
    let starts = bench.pace.pick(10, 30);
    let fresh: Vec<_> = (0..starts).map(|_| workspaces(bench, &path)).collect::<Result<_>>()?;
    let used = workspaces(bench, &path)?;
    leave_state(&bench.fast, &used, &path)?;
    machine::settle();
    Ok(vec![
        row("cold: fresh workspace".into(), &bench.fast, &fresh, &path)?,
        row("warm: state of 1 file".into(), &bench.fast, &vec![used; starts], &path)?,
        row(format!("warm: state of {files} files"), &bench.fast, &vec![grown.clone(); starts], &path)?,
    ])
}

/// A workspace with one file for each server.
fn workspaces(bench: &Bench, path: &str) -> Result<Pair<PathBuf>> {
    let roots = bench.workspaces()?;
    for root in [&roots.surehand, &roots.floor] {
        create(root, path, &content(0, 1 << 10))?;
    }
    Ok(roots)
}

/// Has each server read and edit a file, so that its workspace is not fresh any more.
fn leave_state(launches: &Pair<Launch>, roots: &Pair<PathBuf>, path: &str) -> Result<()> {
    for side in order(0) {
        let mut client = Client::start(launches.side(side), roots.side(side))?;
        client.call("read_file", json!({"path": path}))?;
        client.call("edit_file", json!({"path": path, "old_string": token(0), "new_string": token(1)}))?;
    }
    Ok(())
}

/// Starts both servers in turn, once for every entry of `roots`.
fn row(workspace: String, launches: &Pair<Launch>, roots: &[Pair<PathBuf>], path: &str) -> Result<StartRow> {
    let mut greetings = Pair::<Vec<Duration>>::default();
    let mut reads = Pair::<Vec<Duration>>::default();
    for (round, roots) in roots.iter().enumerate() {
        for side in order(round) {
            let (greeting, read) = start(launches.side(side), roots.side(side), path)?;
            greetings.side_mut(side).push(greeting);
            reads.side_mut(side).push(read);
        }
    }
    Ok(StartRow { workspace, greeting: greetings.map(|all| Summary::of(all)), read: reads.map(|all| Summary::of(all)) })
}

/// One start: the time to the greeting and the time to the first read.
fn start(launch: &Launch, root: &Path, path: &str) -> Result<(Duration, Duration)> {
    let mut client = Client::start(launch, root)?;
    let answer = client.call("read_file", json!({"path": path}))?;
    Ok((client.greeted - client.spawned, answer.ended - client.spawned))
}
