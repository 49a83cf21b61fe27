//! Faults while a server runs: no space, no inodes, file size limits, a read-only file system, revoked permissions, a
//! removed state directory, and directories that become symbolic links to the outside. The original file must stay
//! intact and the refusal clear, the server must survive and work again after the fault, and nothing outside may be
//! read or written.

mod fault;
mod links;

use std::{
    process::Command,
    thread::sleep,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use surehand_testkit::rng::Rng;

use crate::{
    Torture,
    client::{Client, Reply},
    file_set::{FileSet, SetChange},
    fs_features::FsFeatures,
    hostile::fault::{Fault, Kind},
    mounts,
    report::{PartOutcome, Tally},
    test_workspace::{Settings, TestWorkspace},
    tree,
};

/// How long one kind of fault is tried in one workspace.
const LENGTH: Duration = Duration::from_secs(4);

pub(crate) fn run(torture: &Torture, name: &str) -> Result<PartOutcome> {
    mounts::in_private(|may_mount| {
        torture.rounds(name, |round, rng, outcome| {
            let length = LENGTH.min(torture.time / (Kind::ALL.len() as u32 + 1));
            for kind in Kind::ALL {
                if let Some(why) = kind.obstacle(&may_mount, torture) {
                    outcome.skip(format!("{}: {why}", kind.name()));
                    continue;
                }
                let workspace = TestWorkspace::set(torture, &format!("{name} {}", kind.name()), round)?;
                suffer(workspace, kind, rng, length, outcome)?;
            }
            if !FsFeatures::of(&torture.dir)?.exchange {
                outcome.skip("links: this file system cannot exchange a directory and a link".to_owned());
                return Ok(());
            }
            links::run(TestWorkspace::set(torture, &format!("{name} links"), round)?, rng, length, outcome)
        })
    })
}

/// Tries one kind of fault in one workspace.
fn suffer(mut workspace: TestWorkspace, kind: Kind, rng: &mut Rng, length: Duration, outcome: &mut PartOutcome) -> Result<()> {
    kind.prepare(&mut workspace).with_context(|| format!("{}: {}", kind.name(), workspace.root().display()))?;
    let file_set =
        FileSet::lay_out(&workspace.root(), kind.directory(), rng).with_context(|| workspace.root().display().to_string())?;
    kind.hand_over(&workspace)?;
    let mut patient = Patient { workspace: &workspace, file_set, rng, tally: &mut outcome.tally };
    let until = Instant::now() + length;
    while !workspace.is_spoilt() {
        patient.live(kind, until)?;
        if Instant::now() >= until {
            break;
        }
    }
    if !workspace.is_spoilt() {
        workspace.clean_start(Settings::PLAIN)?;
        check_tidy(&workspace, "in the end");
    }
    kind.leave(&workspace)?;
    workspace.close(outcome);
    Ok(())
}

/// A workspace under faults.
struct Patient<'a> {
    workspace: &'a TestWorkspace,
    file_set: FileSet,
    rng: &'a mut Rng,
    tally: &'a mut Tally,
}

impl Patient<'_> {
    /// Runs a server through one fault after another until its time is over or it is killed.
    fn live(&mut self, kind: Kind, until: Instant) -> Result<()> {
        let settings = Settings::any(self.rng);
        let mut client = self.workspace.server(settings)?;
        while !self.workspace.is_spoilt() && Instant::now() < until {
            let Some(change) = self.ready(&mut client) else { return Ok(()) };
            let Ok(fault) = Fault::begin(kind, self.workspace, client.id(), self.rng) else { continue };
            self.tally.foreign += 1;
            // Without the journal, a killed process leaves debris that nothing can clean up.
            let is_last = self.rng.percent(10) && kind != Kind::NoState;
            let later = Duration::from_micros(self.rng.within(0..20_000) as u64);
            let reply = if is_last {
                self.tally.kills += 1;
                let reply = client.call_and_kill(change.tool, &change.arguments, || sleep(later));
                // A process that starts during a fault may fail but not panic: the log is checked at the end.
                run_quietly(&mut self.workspace.small_call(settings));
                reply
            } else {
                client.call(change.tool, &change.arguments)
            };
            fault.end(self.workspace).context("the end of the fault")?;
            if is_last {
                self.workspace.clean_start(settings)?;
                self.compare(&change, &reply);
                check_tidy(self.workspace, &format!("after a kill in {} {}", change.tool, change.arguments));
                return Ok(());
            }
            self.compare(&change, &reply);
            self.show_health(&mut client);
        }
        client.end();
        Ok(())
    }

    /// Reads everything, which must work without a fault, and plans a change.
    fn ready(&mut self, client: &mut Client<'_>) -> Option<SetChange> {
        for (tool, arguments) in self.file_set.reads() {
            let reply = client.call(tool, &arguments);
            if !matches!(reply, Reply::Done(_)) {
                self.workspace.violation(format!("without trouble a read is refused: {tool} {arguments}: {reply:?}"));
                return None;
            }
        }
        Some(self.file_set.plan(self.rng))
    }

    /// Makes a change right after the fault: it must succeed.
    fn show_health(&mut self, client: &mut Client<'_>) {
        if self.workspace.is_spoilt() {
            return;
        }
        let Some(change) = self.ready(client) else { return };
        let reply = client.call(change.tool, &change.arguments);
        if !matches!(reply, Reply::Done(_)) {
            self.workspace
                .violation(format!("when the trouble was over, {} {} was refused: {reply:?}", change.tool, change.arguments));
        }
        self.compare(&change, &reply);
    }

    /// A refused change must not have happened, an acknowledged one must have, and an unanswered one must be there in
    /// full or not at all.
    fn compare(&mut self, change: &SetChange, reply: &Reply) {
        let found = self.file_set.on_disk(&self.workspace.root());
        let (may_be_old, may_be_new) = match reply {
            Reply::Done(_) => (false, true),
            Reply::Refused(_) => (true, false),
            Reply::Unknown => (true, true),
        };
        match reply {
            Reply::Done(_) => self.tally.acknowledged += 1,
            Reply::Refused(_) => self.tally.refused += 1,
            Reply::Unknown => self.tally.unanswered += 1,
        }
        if may_be_new && found == change.after {
            self.file_set.accept(change);
        } else if !(may_be_old && found == self.file_set.files) {
            let (new, old) = (tree::difference(&found, &change.after), tree::difference(&found, &self.file_set.files));
            let what = format!("{} {} was answered {reply:?}", change.tool, change.arguments);
            self.workspace.violation(format!("{what}. From the new state: {new}. From the old: {old}"));
        }
    }
}

fn check_tidy(workspace: &TestWorkspace, when: &str) {
    workspace.check_state_is_tidy(when);
    workspace.check_nothing_is_rescued("", when);
    workspace.check_nothing_is_beside(when);
}

fn run_quietly(command: &mut Command) {
    let _ = command.output();
}
