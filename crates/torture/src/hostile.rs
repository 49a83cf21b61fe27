//! A hostile world: no space, no inodes, files that may not grow, a file system that is read-only, rights that are taken away, a
//! state directory that is gone, directories that become links leading outside. The original stays untouched, the refusal is
//! clear, the server goes on, and works when the trouble is over; and nothing outside is ever read or written.

mod links;
mod trouble;

use std::{
    process::Command,
    thread::sleep,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use surehand_testkit::dice::Dice;

use crate::{
    Torture,
    account::{Outcome, Tally},
    capable::Capable,
    client::{Client, Reply},
    hostile::trouble::{Kind, Trouble},
    mounts,
    ring::{Ring, Turn},
    scene::{Scene, Settings},
    tree,
};

/// How long one kind of trouble lasts in one workspace.
const LENGTH: Duration = Duration::from_secs(4);

/// Runs it.
pub(crate) fn run(torture: &Torture, name: &str) -> Result<Outcome> {
    mounts::in_private(|may_mount| {
        torture.rounds(name, |round, dice, outcome| {
            let length = LENGTH.min(torture.time / (Kind::ALL.len() as u32 + 1));
            for kind in Kind::ALL {
                if let Some(why) = kind.obstacle(&may_mount, torture) {
                    outcome.skip(format!("{}: {why}", kind.name()));
                    continue;
                }
                let scene = Scene::set(torture, &format!("{name} {}", kind.name()), round)?;
                suffer(scene, kind, dice, length, outcome)?;
            }
            if !Capable::of(&torture.dir)?.exchange {
                outcome.skip("links: this file system cannot exchange a directory and a link".to_owned());
                return Ok(());
            }
            links::run(Scene::set(torture, &format!("{name} links"), round)?, dice, length, outcome)
        })
    })
}

/// One kind of trouble in one workspace.
fn suffer(mut scene: Scene, kind: Kind, dice: &mut Dice, length: Duration, outcome: &mut Outcome) -> Result<()> {
    kind.prepare(&mut scene).with_context(|| format!("{}: {}", kind.name(), scene.root().display()))?;
    let ring = Ring::lay_out(&scene.root(), kind.directory(), dice).with_context(|| scene.root().display().to_string())?;
    kind.hand_over(&scene)?;
    let mut patient = Patient { scene: &scene, ring, dice, tally: &mut outcome.tally };
    let until = Instant::now() + length;
    while !scene.is_spoilt() {
        patient.live(kind, until)?;
        if Instant::now() >= until {
            break;
        }
    }
    if !scene.is_spoilt() {
        scene.clean_start(Settings { durability: "fast", on_change: "refuse" })?;
        check_tidy(&scene, "in the end");
    }
    kind.leave(&scene)?;
    scene.close(outcome);
    Ok(())
}

/// A workspace in trouble.
struct Patient<'a> {
    scene: &'a Scene,
    ring: Ring,
    dice: &'a mut Dice,
    tally: &'a mut Tally,
}

impl Patient<'_> {
    /// A server goes from trouble to trouble until its time is over or it is killed.
    fn live(&mut self, kind: Kind, until: Instant) -> Result<()> {
        let settings = Settings::any(self.dice);
        let mut client = self.scene.server(settings)?;
        while !self.scene.is_spoilt() && Instant::now() < until {
            let Some(turn) = self.ready(&mut client) else { return Ok(()) };
            let Ok(trouble) = Trouble::begin(kind, self.scene, client.id(), self.dice) else { continue };
            self.tally.foreign += 1;
            // Whoever removes the journal and then kills the process has made the debris himself.
            let is_last = self.dice.percent(10) && kind != Kind::NoState;
            let later = Duration::from_micros(self.dice.within(0..20_000) as u64);
            let reply = if is_last {
                self.tally.kills += 1;
                let reply = client.call_and_kill(turn.tool, &turn.arguments, || sleep(later));
                // One that starts in trouble may fail, but not fall over: the log is looked through in the end.
                run_quietly(&mut self.scene.small_call(settings));
                reply
            } else {
                client.call(turn.tool, &turn.arguments)
            };
            trouble.end(self.scene).context("the end of the trouble")?;
            if is_last {
                self.scene.clean_start(settings)?;
                self.compare(&turn, &reply);
                check_tidy(self.scene, &format!("after a kill in {} {}", turn.tool, turn.arguments));
                return Ok(());
            }
            self.compare(&turn, &reply);
            self.show_health(&mut client);
        }
        client.end();
        Ok(())
    }

    /// Reads everything, which works because there is no trouble now, and plans a change.
    fn ready(&mut self, client: &mut Client<'_>) -> Option<Turn> {
        for (tool, arguments) in self.ring.reads() {
            let reply = client.call(tool, &arguments);
            if !matches!(reply, Reply::Done(_)) {
                self.scene.violation(format!("without trouble a read is refused: {tool} {arguments}: {reply:?}"));
                return None;
            }
        }
        Some(self.ring.plan(self.dice))
    }

    /// The trouble is over: a change is made at once.
    fn show_health(&mut self, client: &mut Client<'_>) {
        if self.scene.is_spoilt() {
            return;
        }
        let Some(turn) = self.ready(client) else { return };
        let reply = client.call(turn.tool, &turn.arguments);
        if !matches!(reply, Reply::Done(_)) {
            self.scene.violation(format!("when the trouble was over, {} {} was refused: {reply:?}", turn.tool, turn.arguments));
        }
        self.compare(&turn, &reply);
    }

    /// What was refused has not happened, what was done has, and of what nobody knows all or nothing.
    fn compare(&mut self, turn: &Turn, reply: &Reply) {
        let found = self.ring.on_disk(&self.scene.root());
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
        if may_be_new && found == turn.after {
            self.ring.accept(turn);
        } else if !(may_be_old && found == self.ring.files) {
            let (new, old) = (tree::difference(&found, &turn.after), tree::difference(&found, &self.ring.files));
            let what = format!("{} {} was answered {reply:?}", turn.tool, turn.arguments);
            self.scene.violation(format!("{what}. From the new state: {new}. From the old: {old}"));
        }
    }
}

fn check_tidy(scene: &Scene, when: &str) {
    scene.check_state_is_tidy(when);
    scene.check_nothing_is_rescued("", when);
    scene.check_nothing_is_beside(when);
}

fn run_quietly(command: &mut Command) {
    let _ = command.output();
}
