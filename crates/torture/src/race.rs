//! Several Surehand processes and other programs on the same files, with kills in between. Everything that anybody writes carries a
//! token, and in the end every token is in a file, or was refused, or was taken away by somebody who had seen it, or is rescued.
//!
//! The directories of the workspace differ in who writes there, so that a token which is gone is Surehand's fault:
//! `counter` only Surehand; `open` programs that write into files which they may hold open; `renamed` programs that put other
//! files in their place, and keep what they did not expect to take out; `wild` programs that destroy what they have not seen,
//! where every file must only be whole.

mod agent;
mod foreign;
mod ledger;

use std::{
    fs,
    path::Path,
    process::Command,
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use surehand_testkit::dice::Dice;

use crate::{
    Torture,
    account::{Outcome, Tally},
    capable::{Capable, names_agree},
    race::{agent::Agent, foreign::Foreign, ledger::Ledger},
    scene::{Scene, Settings},
    tree::{self, Files},
};

/// How long one workspace is fought over.
const LENGTH: Duration = Duration::from_secs(4);
/// Surehand processes at a time.
const AGENTS: usize = 3;
/// Files in each directory.
const FILES: usize = 3;
/// Other programs in each directory.
const FOREIGNERS: usize = 2;
/// Lines of a file that Surehand changes.
const SLOTS: usize = 4;

/// What everybody in a race shares.
struct Race<'a> {
    scene: &'a Scene,
    ledger: Ledger,
    over: AtomicBool,
    tally: Mutex<Tally>,
    /// One lock for each directory with other programs, which keeps these from destroying what each other wrote. Surehand knows
    /// nothing of it.
    manners: [Mutex<()>; 3],
    capable: Capable,
}

impl Race<'_> {
    fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    fn add(&self, tally: &Tally) {
        self.tally.lock().expect("nobody panics while counting").add(tally);
    }
}

/// Runs it.
pub(crate) fn run(torture: &Torture, name: &str) -> Result<Outcome> {
    let capable = Capable::of(&torture.dir)?;
    let has_git = Command::new("git").arg("--version").output().is_ok_and(|output| output.status.success());
    torture.rounds(name, |round, dice, outcome| {
        if !has_git {
            outcome.skip("checkouts, because there is no git".to_owned());
        }
        if let Some(why) = capable.lack() {
            outcome.skip(why.to_owned());
        }
        let scene = Scene::set(torture, name, round)?;
        lay_out(&scene.root(), has_git).with_context(|| scene.root().display().to_string())?;
        let length = LENGTH.min(torture.time);
        let tally = play(&scene, dice, capable, length)?;
        outcome.tally.add(&tally);
        scene.close(outcome);
        Ok(())
    })
}

fn play(scene: &Scene, dice: &mut Dice, capable: Capable, length: Duration) -> Result<Tally> {
    let race = Race {
        scene,
        ledger: Ledger::default(),
        over: AtomicBool::new(false),
        tally: Mutex::default(),
        manners: Default::default(),
        capable,
    };
    let mut seeds = || Dice::new(dice.within(0..usize::MAX) as u64);
    thread::scope(|scope| {
        for who in 0..AGENTS {
            let agent = Agent::new(&race, who, seeds());
            scope.spawn(|| agent.live());
        }
        for who in 0..FOREIGNERS {
            for (place, directory) in ["open", "renamed", "wild"].into_iter().enumerate() {
                let foreign = Foreign::new(&race, directory, place, 10 * (place + 1) + who, seeds());
                scope.spawn(|| foreign.live());
            }
        }
        let until = Instant::now() + length;
        while Instant::now() < until && !scene.is_spoilt() {
            thread::sleep(Duration::from_millis(10));
        }
        race.over.store(true, Ordering::Relaxed);
    });
    scene.clean_start(Settings { durability: "fast", on_change: "refuse" })?;
    check(&race);
    let mut tally = *race.tally.lock().expect("nobody panics while counting");
    race.ledger.settle(scene, &mut tally);
    Ok(tally)
}

/// What must hold in the end besides the account of the tokens.
fn check(race: &Race<'_>) {
    let root = race.scene.root();
    race.scene.check_state_is_tidy("in the end");
    race.scene.check_nothing_is_rescued("counter", "in the end");
    race.scene.check_nothing_is_beside("in the end");
    for (path, bytes) in tree::files(&root, "") {
        let text = String::from_utf8_lossy(&bytes);
        if path.starts_with("counter/") && !counts_well(&text) {
            race.scene.violation(format!("{path} does not count its own lines: {text}"));
        }
        if path.starts_with("wild/") && !is_whole(&text) {
            race.scene.violation(format!("{path} is not whole: {text:?}"));
        }
    }
}

/// A counter has a line for each time that it was counted up.
fn counts_well(text: &str) -> bool {
    let (first, rest) = text.split_once('\n').unwrap_or((text, ""));
    first.strip_prefix("count ").and_then(|number| number.parse().ok()) == Some(rest.lines().count())
}

/// A wild file begins and ends with the same words.
fn is_whole(text: &str) -> bool {
    let lines: Vec<&str> = text.lines().collect();
    let [first, _, last] = lines[..] else { return false };
    text.ends_with('\n') && first.strip_prefix("begin ").is_some_and(|id| last.strip_prefix("end ") == Some(id))
}

/// The content of a wild file.
fn wild(id: &str) -> String {
    format!("begin {id}\nmiddle\nend {id}\n")
}

/// The files at the beginning.
fn lay_out(root: &Path, has_git: bool) -> Result<()> {
    let mut files = Files::new();
    for number in 0..FILES {
        files.insert(format!("counter/{number}.txt"), b"count 0\n".to_vec());
        files.insert(format!("open/{number}.txt"), shared().into_bytes());
        files.insert(format!("renamed/{number}.txt"), shared().into_bytes());
        files.insert(format!("wild/{number}.txt"), wild("nobody").into_bytes());
    }
    tree::lay_out(root, &files)?;
    if names_agree(root) {
        fs::hard_link(root.join("open/0.txt"), root.join("open/0-too.txt"))?;
    }
    if has_git {
        lay_out_branches(root)?;
    }
    Ok(())
}

/// A file that is shared: lines that Surehand changes, each between others that stay, then a line for each foreigner, then what
/// is appended.
fn shared() -> String {
    let slots = (0..SLOTS).map(|slot| format!("above {slot}\nslot {slot}\nbelow {slot}\n"));
    let own = (10..40).map(|who| format!("own {who} {}\n", ledger::token(who, 0)));
    slots.chain(own).chain(["here it grows\n".to_owned()]).collect()
}

/// Two branches that differ in the files of `wild`.
fn lay_out_branches(root: &Path) -> Result<()> {
    git(root, &["init", "-q", "."])?;
    for branch in ["one", "two"] {
        git(root, &["checkout", "-q", "-b", branch])?;
        for number in 0..FILES {
            fs::write(root.join(format!("wild/{number}.txt")), wild(branch))?;
        }
        git(root, &["add", "wild"])?;
        let name = ["-c", "user.name=torture", "-c", "user.email=torture@example.org"];
        git(root, &[&name[..], &["commit", "-q", "--no-gpg-sign", "-m", branch]].concat())?;
    }
    Ok(())
}

/// Runs git, without anybody's settings.
fn git(root: &Path, arguments: &[&str]) -> Result<bool> {
    let mut command = Command::new("git");
    command.args(arguments).current_dir(root).env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_SYSTEM", "/dev/null");
    Ok(command.output().context("git")?.status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_torn_is_not_whole() {
        assert!(is_whole(&wild("a")));
        for torn in
            ["", "begin a\nmiddle\n", "begin a\nmiddle\nend b\n", "begin a\nmiddle\nend a\nend a\n", "begin a\nmiddle\nend a"]
        {
            assert!(!is_whole(torn), "{torn:?}");
        }
    }

    #[test]
    fn a_counter_that_lost_a_line_does_not_count_well() {
        assert!(counts_well("count 0\n") && counts_well("count 2\na\nb\n"));
        assert!(!counts_well("count 2\na\n") && !counts_well("count 1\na\nb\n") && !counts_well(""));
    }
}
