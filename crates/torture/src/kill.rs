//! Processes that are killed (SIGKILL) at any instant of a call, of a start, or of the recovery from an earlier kill; every other
//! time as soon as one file of a batch is seen to have changed, when the others may not have. Then, after
//! a clean start: every file is whole, a batch has happened or not, what was acknowledged is there, and nothing is left lying
//! about.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{self, File},
    os::unix::fs::MetadataExt,
    path::Path,
    thread::sleep,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use surehand_testkit::dice::Dice;

use crate::{
    Torture,
    account::{Outcome, Tally},
    client::{Client, Reply},
    ring::{Ring, Turn},
    scene::{Scene, Settings},
    tree::{self, Files},
};

/// Kills in one workspace, before another one is set up with other files.
const KILLS_IN_A_ROUND: usize = 12;

/// Runs it.
pub(crate) fn run(torture: &Torture, name: &str) -> Result<Outcome> {
    let mut durations = Durations::default();
    torture.rounds(name, |round, dice, outcome| {
        let scene = Scene::set(torture, name, round)?;
        let ring = Ring::lay_out(&scene.root(), "ring", dice).with_context(|| scene.root().display().to_string())?;
        let mut victim = Victim { scene: &scene, dice, ring, durations: &mut durations, tally: &mut outcome.tally };
        let until = Instant::now() + torture.time;
        for _ in 0..KILLS_IN_A_ROUND {
            victim.live_and_die()?;
            if scene.is_spoilt() || Instant::now() >= until {
                break;
            }
        }
        scene.close(outcome);
        Ok(())
    })
}

/// How long calls took that were not killed, by tool and durability: a kill is placed anywhere from the beginning of a call to
/// a while after its usual end.
#[derive(Default)]
pub(crate) struct Durations(BTreeMap<(&'static str, &'static str), Vec<Duration>>);

impl Durations {
    /// A call took so long.
    pub(crate) fn note(&mut self, tool: &'static str, durability: &'static str, took: Duration) {
        let seen = self.0.entry((tool, durability)).or_default();
        seen.push(took);
        if seen.len() > 50 {
            seen.remove(0);
        }
    }

    /// An instant from the beginning of a call to half as long again as it usually takes.
    pub(crate) fn instant(&self, tool: &'static str, durability: &'static str, dice: &mut Dice) -> Duration {
        let usual = self.0.get(&(tool, durability)).map_or(Duration::from_millis(5), |seen| {
            let mut seen = seen.clone();
            seen.sort();
            seen[seen.len() / 2]
        });
        usual.mul_f64(dice.unit() * 1.5)
    }
}

/// Waits until something has become of a file, but not for ever: the sight of it may have been missed.
fn wait_for_sight(path: &Path) {
    let look = || fs::symlink_metadata(path).ok().map(|now| (now.ino(), now.size(), now.mtime(), now.mtime_nsec()));
    let (before, until) = (look(), Instant::now() + Duration::from_millis(300));
    while look() == before && Instant::now() < until {}
}

/// A workspace whose servers are killed.
struct Victim<'a> {
    scene: &'a Scene,
    dice: &'a mut Dice,
    ring: Ring,
    durations: &'a mut Durations,
    tally: &'a mut Tally,
}

impl Victim<'_> {
    /// A server does a few things and is killed during the last of them.
    fn live_and_die(&mut self) -> Result<()> {
        let settings = Settings::any(self.dice);
        let mut client = self.scene.server(settings)?;
        let mut last: Option<(Files, usize)> = None;
        for _ in 0..self.dice.within(0..4) {
            let Some(turn) = self.prepare(&mut client, last.take()) else { return Ok(()) };
            let before = (self.ring.files.clone(), self.ring.number());
            let reply = client.call(turn.tool, &turn.arguments);
            self.durations.note(turn.kind, settings.durability, client.took);
            let Reply::Done(_) = reply else {
                self.scene.violation(format!("refused though nobody else is there: {} {}: {reply:?}", turn.tool, turn.arguments));
                return Ok(());
            };
            self.tally.acknowledged += 1;
            let found = self.ring.on_disk(&self.scene.root());
            if found != turn.after {
                let difference = tree::difference(&found, &turn.after);
                self.scene.violation(format!("acknowledged, but not so: {} {}: {difference}", turn.tool, turn.arguments));
                return Ok(());
            }
            self.ring.accept(&turn);
            last = (turn.tool != "undo").then_some(before);
        }
        let Some(turn) = self.prepare(&mut client, last) else { return Ok(()) };
        let instant = self.durations.instant(turn.kind, settings.durability, self.dice);
        let directories = tree::directories(&self.scene.root(), self.ring.directory());
        let path = self.scene.root().join(self.ring.touched(&turn, self.dice));
        let reply = match self.dice.within(0..3) {
            0 => client.call_and_kill(turn.tool, &turn.arguments, || sleep(instant)),
            1 => client.call_and_kill(turn.tool, &turn.arguments, || wait_for_sight(&path)),
            _ => {
                // The server waits a little for others to close a file. So a reader of some holds it up between the others.
                let _readers = self.read_some(&turn);
                let later = Duration::from_micros(self.dice.within(0..10_000) as u64);
                client.call_and_kill(turn.tool, &turn.arguments, || {
                    wait_for_sight(&path);
                    sleep(later);
                })
            }
        };
        self.tally.kills += 1;
        self.check_files_are_whole(&turn);
        self.recover(settings)?;
        self.check(&turn, &reply, &directories);
        Ok(())
    }

    /// Opens some of the files that a change touches, as a program does that only reads.
    fn read_some(&mut self, turn: &Turn) -> Vec<File> {
        let paths: Vec<String> = (0..3).map(|_| self.ring.touched(turn, self.dice)).collect();
        // Neither one that is not there yet nor one with several names, whose change would be refused while it is open.
        let is_plain = |path: &&String| !(self.ring.is_linked && path.ends_with("/u.txt") || path.ends_with("/ul.txt"));
        paths.iter().filter(is_plain).filter_map(|path| File::open(self.scene.root().join(path)).ok()).collect()
    }

    /// Reads what is there and plans the next change; now and then it takes the last one back.
    fn prepare(&mut self, client: &mut Client<'_>, last: Option<(Files, usize)>) -> Option<Turn> {
        for (tool, arguments) in self.ring.reads() {
            let Reply::Done(_) = client.call(tool, &arguments) else {
                self.scene.violation(format!("a read was refused though nobody else is there: {tool} {arguments}"));
                return None;
            };
        }
        match last {
            Some((before, number)) if self.dice.percent(40) => Some(self.ring.undo(&before, number)),
            _ => Some(self.ring.plan(self.dice)),
        }
    }

    /// Even before recovery nobody sees a part of a file, unless it has several names and must be written in place.
    fn check_files_are_whole(&mut self, turn: &Turn) {
        let found = self.ring.on_disk(&self.scene.root());
        self.tally.half_done += u64::from(found != self.ring.files && found != turn.after);
        for (path, bytes) in found {
            let name = path.rsplit('/').next().unwrap_or_default();
            let is_in_place = self.ring.is_linked && name.starts_with('u');
            let is_whole = [&self.ring.files, &turn.after].iter().any(|files| files.get(&path) == Some(&bytes));
            if !is_whole && !is_in_place {
                let what = format!("{path} is neither old nor new before recovery from {} {}", turn.tool, turn.arguments);
                self.scene.violation(format!("{what}: {}", String::from_utf8_lossy(&bytes)));
            }
        }
    }

    /// Starts a process that settles what is left. Now and then some are killed while they do.
    fn recover(&mut self, settings: Settings) -> Result<()> {
        while self.dice.percent(30) {
            let mut child = self.scene.small_call(settings).spawn().context("surehand call")?;
            sleep(self.durations.instant("start", settings.durability, self.dice));
            let _ = child.kill();
            child.wait().context("a process that was killed")?;
            self.tally.kills += 1;
        }
        let began = Instant::now();
        self.scene.clean_start(settings)?;
        self.durations.note("start", settings.durability, began.elapsed());
        Ok(())
    }

    /// What must hold after a clean start.
    fn check(&mut self, turn: &Turn, reply: &Reply, directories: &BTreeSet<String>) {
        let what = format!("after a kill in {} {}", turn.tool, turn.arguments);
        let found = self.ring.on_disk(&self.scene.root());
        let has_happened = found == turn.after;
        match reply {
            Reply::Done(_) => self.tally.acknowledged += 1,
            Reply::Refused(_) => self.tally.refused += 1,
            Reply::Unknown => self.tally.unanswered += 1,
        }
        match reply {
            Reply::Done(_) if !has_happened => {
                let difference = tree::difference(&found, &turn.after);
                self.scene.violation(format!("{what}: acknowledged, but not so: {difference}"));
            }
            Reply::Refused(answer) => {
                self.scene.violation(format!("{what}: refused though nobody else is there: {}", answer.text))
            }
            Reply::Done(_) | Reply::Unknown => {}
        }
        if has_happened {
            self.ring.accept(turn);
        } else if found != self.ring.files {
            let (new, old) = (tree::difference(&found, &turn.after), tree::difference(&found, &self.ring.files));
            self.scene.violation(format!("{what}: half done. From the new state: {new}. From the old: {old}"));
        }
        for directory in tree::directories(&self.scene.root(), self.ring.directory()).difference(directories) {
            let is_empty = !found.keys().any(|path| path.starts_with(&format!("{directory}/")));
            if is_empty && !tree::is_held_by_file_system(&self.scene.root().join(directory)) {
                self.scene.violation(format!("{what}: an empty directory is left: {directory}"));
            }
        }
        self.scene.check_state_is_tidy(&what);
        self.scene.check_nothing_is_rescued("", &what);
        self.scene.check_nothing_is_beside(&what);
    }
}
