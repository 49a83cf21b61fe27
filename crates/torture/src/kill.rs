//! Kills processes (SIGKILL) at any instant of a call, a start, or the recovery from an earlier kill. Every other kill
//! comes as soon as one file of a batch has changed, when the others may not have. After a clean start every file must
//! be whole, a batch must have happened in full or not at all, acknowledged changes must be there, and no temporary
//! file may be left.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{self, File},
    os::unix::fs::MetadataExt,
    path::Path,
    thread::sleep,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use surehand_testkit::rng::Rng;

use crate::{
    Torture,
    client::{Client, Reply},
    file_set::{FileSet, SetChange},
    report::{PartOutcome, Tally},
    test_workspace::{Settings, TestWorkspace},
    tree::{self, Files},
};

/// Kills in one workspace, before another one is set up with other files.
const KILLS_IN_A_ROUND: usize = 12;

pub(crate) fn run(torture: &Torture, name: &str) -> Result<PartOutcome> {
    let mut durations = Durations::default();
    torture.rounds(name, |round, rng, outcome| {
        let workspace = TestWorkspace::set(torture, name, round)?;
        let file_set =
            FileSet::lay_out(&workspace.root(), "ring", rng).with_context(|| workspace.root().display().to_string())?;
        let mut victim = Victim { workspace: &workspace, rng, file_set, durations: &mut durations, tally: &mut outcome.tally };
        let until = Instant::now() + torture.time;
        for _ in 0..KILLS_IN_A_ROUND {
            victim.live_and_die()?;
            if workspace.is_spoilt() || Instant::now() >= until {
                break;
            }
        }
        workspace.close(outcome);
        Ok(())
    })
}

/// Durations of calls that were not killed, by kind and durability. A kill is timed at a random instant between the
/// start of a call and some time after its usual end.
#[derive(Default)]
pub(crate) struct Durations(BTreeMap<(&'static str, &'static str), Vec<Duration>>);

impl Durations {
    /// Records the duration of a call.
    pub(crate) fn note(&mut self, tool: &'static str, durability: &'static str, took: Duration) {
        let seen = self.0.entry((tool, durability)).or_default();
        seen.push(took);
        if seen.len() > 50 {
            seen.remove(0);
        }
    }

    /// A random instant up to one and a half times the usual duration of a call.
    pub(crate) fn instant(&self, tool: &'static str, durability: &'static str, rng: &mut Rng) -> Duration {
        let usual = self.0.get(&(tool, durability)).map_or(Duration::from_millis(5), |seen| {
            let mut seen = seen.clone();
            seen.sort();
            seen[seen.len() / 2]
        });
        usual.mul_f64(rng.unit() * 1.5)
    }
}

/// Waits until the file at `path` changes, with a limit, because the change may already have happened.
fn wait_for_sight(path: &Path) {
    let look = || fs::symlink_metadata(path).ok().map(|now| (now.ino(), now.size(), now.mtime(), now.mtime_nsec()));
    let (before, until) = (look(), Instant::now() + Duration::from_millis(300));
    while look() == before && Instant::now() < until {}
}

/// A workspace whose servers are killed.
struct Victim<'a> {
    workspace: &'a TestWorkspace,
    rng: &'a mut Rng,
    file_set: FileSet,
    durations: &'a mut Durations,
    tally: &'a mut Tally,
}

impl Victim<'_> {
    /// Runs a few calls on a server and kills it during the last one.
    fn live_and_die(&mut self) -> Result<()> {
        let settings = Settings::any(self.rng);
        let mut client = self.workspace.server(settings)?;
        let mut last: Option<(Files, usize)> = None;
        for _ in 0..self.rng.within(0..4) {
            let Some(change) = self.prepare(&mut client, last.take()) else { return Ok(()) };
            let before = (self.file_set.files.clone(), self.file_set.number());
            let reply = client.call(change.tool, &change.arguments);
            self.durations.note(change.kind, settings.durability, client.took);
            let Reply::Done(_) = reply else {
                self.workspace.violation(format!(
                    "refused although no other writer is running: {} {}: {reply:?}",
                    change.tool, change.arguments
                ));
                return Ok(());
            };
            self.tally.acknowledged += 1;
            let found = self.file_set.on_disk(&self.workspace.root());
            if found != change.after {
                let difference = tree::difference(&found, &change.after);
                self.workspace.violation(format!("acknowledged, but not so: {} {}: {difference}", change.tool, change.arguments));
                return Ok(());
            }
            self.file_set.accept(&change);
            last = (change.tool != "undo").then_some(before);
        }
        let Some(change) = self.prepare(&mut client, last) else { return Ok(()) };
        let instant = self.durations.instant(change.kind, settings.durability, self.rng);
        let directories = tree::directories(&self.workspace.root(), self.file_set.directory());
        let path = self.workspace.root().join(self.file_set.touched(&change, self.rng));
        let reply = match self.rng.within(0..3) {
            0 => client.call_and_kill(change.tool, &change.arguments, || sleep(instant)),
            1 => client.call_and_kill(change.tool, &change.arguments, || wait_for_sight(&path)),
            _ => {
                // The server waits briefly for other programs to close a file, so a reader of some files delays it
                // between the files.
                let _readers = self.read_some(&change);
                let later = Duration::from_micros(self.rng.within(0..10_000) as u64);
                client.call_and_kill(change.tool, &change.arguments, || {
                    wait_for_sight(&path);
                    sleep(later);
                })
            }
        };
        self.tally.kills += 1;
        self.check_files_are_whole(&change);
        self.recover(settings)?;
        self.check(&change, &reply, &directories);
        Ok(())
    }

    /// Opens some of the files that a change touches, as another reader would.
    fn read_some(&mut self, change: &SetChange) -> Vec<File> {
        let paths: Vec<String> = (0..3).map(|_| self.file_set.touched(change, self.rng)).collect();
        // Skip files that do not exist yet, and files with several hard links, whose change is refused while they are
        // open.
        let is_plain = |path: &&String| !(self.file_set.is_linked && path.ends_with("/u.txt") || path.ends_with("/ul.txt"));
        paths.iter().filter(is_plain).filter_map(|path| File::open(self.workspace.root().join(path)).ok()).collect()
    }

    /// Reads the files and plans the next change, which is sometimes the undo of the last one.
    fn prepare(&mut self, client: &mut Client<'_>, last: Option<(Files, usize)>) -> Option<SetChange> {
        for (tool, arguments) in self.file_set.reads() {
            let Reply::Done(_) = client.call(tool, &arguments) else {
                self.workspace.violation(format!("a read was refused although no other writer is running: {tool} {arguments}"));
                return None;
            };
        }
        match last {
            Some((before, number)) if self.rng.percent(40) => Some(self.file_set.undo(&before, number)),
            _ => Some(self.file_set.plan(self.rng)),
        }
    }

    /// Even before recovery no file may be partly written, except one with several hard links, which is written in
    /// place.
    fn check_files_are_whole(&mut self, change: &SetChange) {
        let found = self.file_set.on_disk(&self.workspace.root());
        self.tally.half_done += u64::from(found != self.file_set.files && found != change.after);
        for (path, bytes) in found {
            let name = path.rsplit('/').next().unwrap_or_default();
            let is_in_place = self.file_set.is_linked && name.starts_with('u');
            let is_whole = [&self.file_set.files, &change.after].iter().any(|files| files.get(&path) == Some(&bytes));
            if !is_whole && !is_in_place {
                let what = format!("{path} is neither old nor new before recovery from {} {}", change.tool, change.arguments);
                self.workspace.violation(format!("{what}: {}", String::from_utf8_lossy(&bytes)));
            }
        }
    }

    /// Starts a process that recovers. Sometimes other processes are killed during recovery first.
    fn recover(&mut self, settings: Settings) -> Result<()> {
        while self.rng.percent(30) {
            let mut child = self.workspace.small_call(settings).spawn().context("surehand call")?;
            sleep(self.durations.instant("start", settings.durability, self.rng));
            let _ = child.kill();
            child.wait().context("a process that was killed")?;
            self.tally.kills += 1;
        }
        let began = Instant::now();
        self.workspace.clean_start(settings)?;
        self.durations.note("start", settings.durability, began.elapsed());
        Ok(())
    }

    /// Checks the state after a clean start.
    fn check(&mut self, change: &SetChange, reply: &Reply, directories: &BTreeSet<String>) {
        let what = format!("after a kill in {} {}", change.tool, change.arguments);
        let found = self.file_set.on_disk(&self.workspace.root());
        let has_happened = found == change.after;
        match reply {
            Reply::Done(_) => self.tally.acknowledged += 1,
            Reply::Refused(_) => self.tally.refused += 1,
            Reply::Unknown => self.tally.unanswered += 1,
        }
        match reply {
            Reply::Done(_) if !has_happened => {
                let difference = tree::difference(&found, &change.after);
                self.workspace.violation(format!("{what}: acknowledged, but not so: {difference}"));
            }
            Reply::Refused(answer) => {
                self.workspace.violation(format!("{what}: refused although no other writer is running: {}", answer.text))
            }
            Reply::Done(_) | Reply::Unknown => {}
        }
        if has_happened {
            self.file_set.accept(change);
        } else if found != self.file_set.files {
            let (new, old) = (tree::difference(&found, &change.after), tree::difference(&found, &self.file_set.files));
            self.workspace.violation(format!("{what}: half done. From the new state: {new}. From the old: {old}"));
        }
        for directory in tree::directories(&self.workspace.root(), self.file_set.directory()).difference(directories) {
            let is_empty = !found.keys().any(|path| path.starts_with(&format!("{directory}/")));
            if is_empty && !tree::is_held_by_file_system(&self.workspace.root().join(directory)) {
                self.workspace.violation(format!("{what}: an empty directory is left: {directory}"));
            }
        }
        self.workspace.check_state_is_tidy(&what);
        self.workspace.check_nothing_is_rescued("", &what);
        self.workspace.check_nothing_is_beside(&what);
    }
}
