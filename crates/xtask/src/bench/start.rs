//! The time from the start of a server to its first answers: in a fresh workspace, and in one with its own state.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Result, ensure};

use crate::bench::growth;
use crate::bench::server::Launch;
use crate::bench::tool_dialect::Edit;
use crate::bench::{Bench, Contender};
use crate::files::{content, create, is_whole};
use crate::machine;
use crate::measurement::{PerServer, ServerId, Summary};

/// A peer starts once for this many starts of ours and the floor.
const SHARE: usize = 3;

/// The times of the servers in one kind of workspace.
pub(crate) struct StartRow {
    /// The kind of workspace.
    pub workspace: String,
    /// From the spawn to the answer to `initialize`.
    pub greeting: PerServer<Summary>,
    /// From the spawn to the answer to `tools/list`.
    pub tools: PerServer<Summary>,
    /// From the spawn to the answer to the first read.
    pub read: PerServer<Summary>,
}

/// Measures starts in fresh workspaces. For servers with state, also in a workspace with little state and in those of
/// `grown`.
pub(super) fn measure(bench: &Bench, grown: &PerServer<PathBuf>, files: usize) -> Result<Vec<StartRow>> {
    let path = growth::path(0);
    let starts = bench.pace.pick(10, 30);
    let fresh: Vec<_> = (0..starts).map(|_| workspaces(bench, &path)).collect::<Result<_>>()?;
    let used = without_peers(&workspaces(bench, &path)?);
    let kept = without_peers(&bench.full);
    leave_state(&kept, &used, &path)?;
    machine::settle();
    Ok(vec![
        row("cold: fresh workspace".into(), &bench.full, &fresh, &path)?,
        row("warm: state of 1 file".into(), &kept, &vec![used; starts], &path)?,
        row(format!("warm: state of {files} files"), &kept, &vec![without_peers(grown); starts], &path)?,
    ])
}

/// Only ours and the floor: the peers keep no state, so they always start in a fresh workspace.
fn without_peers<T: Clone>(each: &PerServer<T>) -> PerServer<T> {
    PerServer { surehand: each.surehand.clone(), floor: each.floor.clone(), peers: Vec::new() }
}

/// A workspace with one file for each server.
fn workspaces(bench: &Bench, path: &str) -> Result<PerServer<PathBuf>> {
    let roots = bench.workspaces()?;
    roots.iter().try_for_each(|root| create(root, path, &content(0, 1 << 10)))?;
    Ok(roots)
}

/// Lets each server read and edit a file, so that its workspace has state.
fn leave_state(launches: &PerServer<Launch>, roots: &PerServer<PathBuf>, path: &str) -> Result<()> {
    for (server, root) in roots.by_server() {
        let mut contender = Contender::start(launches.at(server), root)?;
        contender.read(path)?;
        contender.edit(&Edit { path: path.into(), from: 0, to: 1 })?;
    }
    Ok(())
}

/// Starts the servers in turn, once for every entry of `roots`; peers less often.
fn row(workspace: String, launches: &PerServer<Launch>, roots: &[PerServer<PathBuf>], path: &str) -> Result<StartRow> {
    let mut times = [(); 3].map(|()| launches.map(|_| Vec::<Duration>::new()));
    for (round, roots) in roots.iter().enumerate() {
        for server in roots.order(round) {
            if matches!(server, ServerId::Peer(_)) && round % SHARE != 0 {
                continue;
            }
            let answers = start(launches.at(server), roots.at(server), path)?;
            times.iter_mut().zip(answers).for_each(|(times, answer)| times.at_mut(server).push(answer));
        }
    }
    let [greeting, tools, read] = times.map(|times| times.map(|all| Summary::of(all)));
    Ok(StartRow { workspace, greeting, tools, read })
}

/// One start: the times to the greeting, to the list of tools and to the first read.
fn start(launch: &Launch, root: &Path, path: &str) -> Result<[Duration; 3]> {
    let mut contender = Contender::start(launch, root)?;
    let listed = contender.client.list_tools()?;
    let answer = contender.read(path)?;
    ensure!(is_whole(&answer.text, 0, 100), "{path} is not shown whole");
    let Contender { client, .. } = &contender;
    Ok([client.greeted, listed, answer.ended].map(|moment| moment - client.spawned))
}
