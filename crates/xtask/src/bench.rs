//! The benchmark: which servers take part, which parts run, how long each may take, and where their workspaces are.

mod batch;
mod calls;
mod chart;
mod client;
mod depth;
pub(crate) mod floor;
mod going_back;
mod growth;
mod hook;
mod memory;
pub(crate) mod page;
pub(crate) mod peer;
pub(crate) mod report;
mod scan;
mod search;
pub(crate) mod server;
mod snapshot;
mod start;
mod throughput;
mod tool_dialect;
mod units;
mod writes;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use tempfile::TempDir;

use self::calls::Kind;
use self::client::{Answer, Client};
use self::floor::Durability;
use self::peer::{LeftOut, Peer, Wanted};
use self::report::Report;
use self::server::Launch;
use self::tool_dialect::{Edit, ToolDialect};
use crate::files::{content, create, is_whole, text, token};
use crate::machine;
use crate::measurement::{PerServer, ServerId};

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pace {
    /// Half a minute, for a first impression.
    Quick,
    /// A few minutes, for published numbers.
    Full,
}

impl Pace {
    pub(crate) fn pick<T>(self, quick: T, full: T) -> T {
        match self {
            Self::Quick => quick,
            Self::Full => full,
        }
    }
}

/// A benchmark that is ready to run; its workspaces vanish with it.
pub(crate) struct Bench {
    /// How much is measured.
    pub pace: Pace,
    /// All servers, with ours and the floor not syncing.
    pub fast: PerServer<Launch>,
    /// All servers, with ours and the floor syncing.
    pub full: PerServer<Launch>,
    peers: Vec<&'static Peer>,
    left_out: Vec<LeftOut>,
    directory: TempDir,
}

/// A running server with its workspace.
pub(crate) struct Contender {
    pub client: Client,
    pub root: PathBuf,
    /// How it is spoken to.
    pub dialect: ToolDialect,
}

impl Contender {
    /// Starts a server on a workspace.
    pub(crate) fn start(launch: &Launch, root: &Path) -> Result<Self> {
        Ok(Self { client: Client::start(launch, root)?, root: root.to_owned(), dialect: launch.dialect })
    }

    pub(crate) fn read(&mut self, path: &str) -> Result<Answer> {
        let call = self.dialect.read(&self.root, path);
        self.client.send_call(&call)
    }

    /// Edits a file; only the edit itself is timed.
    pub(crate) fn edit(&mut self, edit: &Edit) -> Result<Answer> {
        let call = self.dialect.edit(&mut self.client, &self.root, edit)?;
        self.client.send_call(&call)
    }

    /// Edits many files, in one call or in one for each. Returns the total time of all calls.
    pub(crate) fn batch(&mut self, edits: &[Edit]) -> Result<Duration> {
        let calls = self.dialect.batch(&mut self.client, &self.root, edits)?;
        calls.iter().map(|call| Ok(self.client.send_call(call)?.took())).sum()
    }

    /// Checks that an edit that the server acknowledged is in the file.
    pub(crate) fn check(&self, edit: &Edit) -> Result<()> {
        let is_made = text(&self.root, &edit.path)?.contains(&token(edit.to));
        ensure!(is_made, "{}: the edit is not in the file", edit.path);
        Ok(())
    }
}

impl Bench {
    /// Prepares to measure the server binary `server` beside the wanted peers, which are installed below `cache`.
    pub(crate) fn new(server: &Path, pace: Pace, wanted: Wanted, cache: &Path) -> Result<Self> {
        let directory = tempfile::Builder::new().prefix("surehand-bench-").tempdir().context("a temporary directory")?;
        machine::spread(directory.path());
        let (peers, left_out) = peer::gather(wanted, cache);
        let launches = |durability, peers: &[&Peer]| {
            PerServer::of(peers.len(), |id| match id {
                ServerId::Surehand => Ok(Launch::surehand(server, durability, directory.path())),
                ServerId::Floor => Launch::floor(durability, directory.path()),
                ServerId::Peer(peer) => Ok(Launch::peer(peers[peer], cache, directory.path())),
            })
        };
        let (fast, full) = (launches(Durability::Fast, &peers)?, launches(Durability::Full, &peers)?);
        let mut bench = Self { pace, fast, full, peers, left_out, directory };
        bench.try_out()?;
        Ok(bench)
    }

    /// Leaves out peers that cannot read and edit every file size, so that they do not end a long run.
    fn try_out(&mut self) -> Result<()> {
        for place in (0..self.peers.len()).rev() {
            let root = self.workspace()?;
            if let Err(error) = try_out(&self.fast.peers[place], &root) {
                let reason = format!("{error:#}").lines().next().unwrap_or_default().to_owned();
                self.left_out.push(LeftOut { peer: self.peers.remove(place), reason });
                self.fast.peers.remove(place);
                self.full.peers.remove(place);
            }
        }
        Ok(())
    }

    /// Measures everything, one part after the other.
    pub(crate) fn run(self) -> Result<Report> {
        let began = Instant::now();
        let machine = machine::describe();
        progress("calls");
        let mut calls = calls::measure(&self, &self.full, &Kind::FULL)?;
        calls.extend(calls::measure(&self, &self.fast, &Kind::FAST)?);
        progress("batches");
        let batches =
            vec![batch::measure(&self, "100 edits", &self.full)?, batch::measure(&self, "100 edits, fast", &self.fast)?];
        progress("writes");
        let mut writes = writes::measure(&self, "", &self.full)?;
        writes.extend(writes::measure(&self, ", fast", &self.fast)?);
        progress("throughput");
        let throughput = throughput::measure(&self)?;
        progress("depth");
        let depth = depth::measure(&self)?;
        progress("growth");
        let (growth, grown) = growth::measure(&self)?;
        progress("start");
        let start = start::measure(&self, &grown, growth.files)?;
        progress("hooks");
        let hook = hook::measure(&self)?;
        progress("calls on one core");
        let pinned = machine::pin()?;
        let calls_on_one_core = calls::measure(&self, &self.full, &Kind::PINNED)?;
        drop(pinned);
        // Last, because the system keeps writing their many files for a while.
        progress("search");
        let search = search::measure(&self)?;
        progress("scan");
        let (scan, tree) = scan::measure(&self)?;
        progress("snapshot");
        let snapshot = snapshot::measure(&self, &tree)?;
        progress("memory");
        let memory = memory::measure(&self, &tree, scan.files)?;
        // Last, because it changes files of the tree.
        progress("checkpoints");
        let going_back = going_back::measure(&self, &tree, scan.files)?;
        Ok(Report {
            machine,
            pace: self.pace,
            names: self.fast.map(|launch| launch.name.clone()),
            peers: self.peers,
            left_out: self.left_out,
            calls,
            calls_on_one_core,
            batches,
            writes,
            throughput,
            depth,
            growth,
            start,
            hook,
            search,
            scan,
            snapshot,
            going_back,
            memory,
            took: began.elapsed(),
        })
    }

    /// A new empty workspace.
    pub(crate) fn workspace(&self) -> Result<PathBuf> {
        let directory = tempfile::Builder::new().prefix("workspace-").tempdir_in(self.directory.path());
        let directory = directory.context("a workspace")?.keep();
        // The state is stored in the repository, as for most users.
        surehand_testkit::make_repository(&directory);
        Ok(directory)
    }

    /// A new empty workspace for each server.
    pub(crate) fn workspaces(&self) -> Result<PerServer<PathBuf>> {
        PerServer::of(self.peers.len(), |_| self.workspace())
    }
}

/// Starts each server on its workspace.
pub(crate) fn contenders(launches: &PerServer<Launch>, roots: &PerServer<PathBuf>) -> Result<PerServer<Contender>> {
    PerServer::of(launches.peers.len(), |server| Contender::start(launches.at(server), roots.at(server)))
}

/// Lets a server read and edit a file of each size, and checks the result.
fn try_out(launch: &Launch, root: &Path) -> Result<()> {
    let sizes = calls::SIZES.iter().map(|size| size.bytes);
    let files: Vec<_> = sizes.map(|bytes| (format!("file-{bytes}.txt"), bytes)).collect();
    files.iter().try_for_each(|(path, bytes)| create(root, path, &content(0, *bytes)))?;
    let mut contender = Contender::start(launch, root)?;
    for (path, bytes) in files {
        ensure!(is_whole(&contender.read(&path)?.text, 0, bytes), "{path} is not shown whole");
        let edit = Edit { path, from: 0, to: 1 };
        contender.edit(&edit)?;
        contender.check(&edit)?;
    }
    Ok(())
}

/// Reports on standard error what is being measured, because a run takes a while.
fn progress(part: &str) {
    eprintln!("measuring {part} ...");
}
