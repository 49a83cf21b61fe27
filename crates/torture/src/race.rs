//! Several Surehand processes and other programs on the same files, with kills in between. Every write carries a token.
//! In the end each token must be in a file, or its write was refused, or a writer who had seen it removed it, or it is
//! rescued.
//!
//! Each directory has other writers, so that a missing token is Surehand's fault:
//! - `counter`: only Surehand writes;
//! - `open`: other programs write into files that they may hold open;
//! - `renamed`: other programs replace files, and keep a file that they did not expect to take out;
//! - `wild`: other programs destroy what they have not seen, so files must only be whole.

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
use surehand_testkit::rng::Rng;

use crate::{
    Torture,
    fs_features::{FsFeatures, names_agree},
    race::{agent::Agent, foreign::Foreign, ledger::Ledger},
    report::{PartOutcome, Tally},
    test_workspace::{Settings, TestWorkspace},
    tree::{self, Files},
};

/// The duration of one round.
const LENGTH: Duration = Duration::from_secs(4);
/// Surehand processes at a time.
const AGENTS: usize = 3;
/// Files in each directory.
const FILES: usize = 3;
/// Other programs in each directory.
const FOREIGNERS: usize = 2;
/// Lines of a file that Surehand changes.
const SLOTS: usize = 4;

/// State that all threads of a race share.
struct Race<'a> {
    workspace: &'a TestWorkspace,
    ledger: Ledger,
    over: AtomicBool,
    tally: Mutex<Tally>,
    /// A lock per directory that keeps the other programs from destroying each other's writes. Surehand does not use
    /// it.
    manners: [Mutex<()>; 3],
    capable: FsFeatures,
}

impl Race<'_> {
    fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    fn add(&self, tally: &Tally) {
        self.tally.lock().expect("no holder of the lock panics").add(tally);
    }
}

pub(crate) fn run(torture: &Torture, name: &str) -> Result<PartOutcome> {
    let capable = FsFeatures::of(&torture.dir)?;
    let has_git = Command::new("git").arg("--version").output().is_ok_and(|output| output.status.success());
    torture.rounds(name, |round, rng, outcome| {
        if !has_git {
            outcome.skip("checkouts, because there is no git".to_owned());
        }
        if let Some(why) = capable.lack() {
            outcome.skip(why.to_owned());
        }
        let workspace = TestWorkspace::set(torture, name, round)?;
        lay_out(&workspace.root(), has_git).with_context(|| workspace.root().display().to_string())?;
        let length = LENGTH.min(torture.time);
        let tally = play(&workspace, rng, capable, length)?;
        outcome.tally.add(&tally);
        workspace.close(outcome);
        Ok(())
    })
}

fn play(workspace: &TestWorkspace, rng: &mut Rng, capable: FsFeatures, length: Duration) -> Result<Tally> {
    let race = Race {
        workspace,
        ledger: Ledger::default(),
        over: AtomicBool::new(false),
        tally: Mutex::default(),
        manners: Default::default(),
        capable,
    };
    let mut seeds = || Rng::new(rng.within(0..usize::MAX) as u64);
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
        while Instant::now() < until && !workspace.is_spoilt() {
            thread::sleep(Duration::from_millis(10));
        }
        race.over.store(true, Ordering::Relaxed);
    });
    workspace.clean_start(Settings::PLAIN)?;
    check(&race);
    let mut tally = *race.tally.lock().expect("no holder of the lock panics");
    race.ledger.settle(workspace, &mut tally);
    Ok(tally)
}

/// Checks the final state, except for the ledger.
fn check(race: &Race<'_>) {
    let root = race.workspace.root();
    race.workspace.check_state_is_tidy("in the end");
    race.workspace.check_nothing_is_rescued("counter", "in the end");
    race.workspace.check_nothing_is_beside("in the end");
    for (path, bytes) in tree::files(&root, "") {
        let text = String::from_utf8_lossy(&bytes);
        if path.starts_with("counter/") && !counts_well(&text) {
            race.workspace.violation(format!("{path} does not count its own lines: {text}"));
        }
        if path.starts_with("wild/") && !is_whole(&text) {
            race.workspace.violation(format!("{path} is not whole: {text:?}"));
        }
    }
}

/// A counter has one line per increment.
fn counts_well(text: &str) -> bool {
    let (first, rest) = text.split_once('\n').unwrap_or((text, ""));
    first.strip_prefix("count ").and_then(|number| number.parse().ok()) == Some(rest.lines().count())
}

/// A whole `wild` file begins and ends with the same words.
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

/// A shared file: lines that Surehand changes, each between lines that stay, then a line for each other program, then
/// appended lines.
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

/// Runs git without the settings of the user or the system.
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
