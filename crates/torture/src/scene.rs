//! A scene: the workspace of one round, with everything that belongs to it, and the list of what went wrong in it. It is removed
//! afterwards, unless something did.

use std::{
    fs::{self, File},
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::Mutex,
};

use anyhow::{Context, Result};
use surehand_testkit::dice::Dice;
use tempfile::TempDir;

use crate::{
    Torture,
    account::{Outcome, Violation},
    client::Client,
    tree,
};

/// How many violations of one round are told; what follows from the first is noise.
const TOLD: usize = 5;

/// Characters of a violation that are told, from its beginning and from its end.
const SHOWN: usize = 700;

/// The settings of a server that the dice choose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Settings {
    /// `policy.durability`
    pub durability: &'static str,
    /// `policy.on_change`
    pub on_change: &'static str,
}

impl Settings {
    /// Any of them.
    pub(crate) fn any(dice: &mut Dice) -> Self {
        Self { durability: *dice.pick(&["fast", "full"]), on_change: *dice.pick(&["refuse", "rebase"]) }
    }
}

/// The workspace of one round.
pub(crate) struct Scene {
    home: TempDir,
    program: PathBuf,
    round: usize,
    wrong: Mutex<Vec<String>>,
    /// Words that are put before the program: a shell that sets limits, or one that becomes another user.
    pub wrapper: Vec<String>,
}

impl Scene {
    /// An empty workspace.
    pub(crate) fn set(torture: &Torture, part: &str, round: usize) -> Result<Self> {
        let (dir, part) = (&torture.dir, part.replace(|char: char| !char.is_ascii_alphanumeric(), "-"));
        let prefix = format!("surehand-torture-{part}-{}-{round}-", torture.seed);
        let home = tempfile::Builder::new().prefix(&prefix).tempdir_in(dir);
        let home = home.with_context(|| format!("{}: a directory for workspaces", dir.display()))?;
        for name in ["root", "home"] {
            fs::create_dir(home.path().join(name)).with_context(|| home.path().display().to_string())?;
        }
        surehand_testkit::make_repository(&home.path().join("root"));
        Ok(Self { home, program: torture.program.clone(), round, wrong: Mutex::default(), wrapper: Vec::new() })
    }

    /// The directory that holds the workspace, and is no part of it.
    pub(crate) fn home(&self) -> &Path {
        self.home.path()
    }

    /// The workspace.
    pub(crate) fn root(&self) -> PathBuf {
        self.home.path().join("root")
    }

    /// What the servers have written to standard error.
    pub(crate) fn log(&self) -> PathBuf {
        self.home.path().join("stderr.log")
    }

    /// Starts a server.
    pub(crate) fn server(&self, settings: Settings) -> Result<Client<'_>> {
        let root = self.root();
        Client::start(self, self.command(settings).args(["mcp", "--root"]).arg(root))
    }

    /// The program with nothing of the caller's environment but the path.
    pub(crate) fn command(&self, settings: Settings) -> Command {
        let mut command = match self.wrapper.split_first() {
            Some((first, rest)) => {
                let mut command = Command::new(first);
                command.args(rest).arg(&self.program);
                command
            }
            None => Command::new(&self.program),
        };
        command.env_clear().env("HOME", self.home.path().join("home"));
        command.envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
        command.env("SUREHAND_POLICY_DURABILITY", settings.durability).env("SUREHAND_POLICY_ON_CHANGE", settings.on_change);
        // A read shows the whole file, so that it is known what was seen.
        command.env("SUREHAND_LIMITS_READ_LINES", "1000000").env("SUREHAND_LIMITS_READ_BYTES", "100000000");
        let log = File::options().create(true).append(true).open(self.log());
        command.stderr(log.map_or_else(|_| Stdio::null(), Stdio::from));
        command
    }

    /// A process that does as little as any can: it starts, which settles what others left, and ends.
    pub(crate) fn small_call(&self, settings: Settings) -> Command {
        let mut command = self.command(settings);
        command.args(["call", "forget", "{}", "--root"]).arg(self.root()).stdin(Stdio::null()).stdout(Stdio::piped());
        command
    }

    /// Starts such a process and waits for its end: after it nothing is left half done.
    pub(crate) fn clean_start(&self, settings: Settings) -> Result<()> {
        let output = self.small_call(settings).output().context("surehand call")?;
        if !output.status.success() {
            self.violation(format!("a clean start failed: {}: {}", output.status, String::from_utf8_lossy(&output.stdout)));
        }
        Ok(())
    }

    /// Notes something that must never happen. The whole of it is kept with the workspace.
    pub(crate) fn violation(&self, what: String) {
        let mut wrong = self.wrong.lock().expect("no thread panics while it holds the list");
        if wrong.len() < TOLD {
            let whole = File::options().create(true).append(true).open(self.home.path().join("violations.txt"));
            let _ = whole.and_then(|mut file| writeln!(file, "{what}\n"));
            wrong.push(shorten(&what));
        }
    }

    /// Whether something went wrong.
    pub(crate) fn is_spoilt(&self) -> bool {
        !self.wrong.lock().expect("no thread panics while it holds the list").is_empty()
    }

    /// What a clean start must not leave: staged files, journals, rescued files where nobody else wrote.
    pub(crate) fn check_state_is_tidy(&self, when: &str) {
        for part in ["staged", "journal"] {
            let left = tree::state_part(&self.root(), part);
            if !left.is_empty() {
                self.violation(format!("{when}, left in {part}: {}", tree::difference(&left, &tree::Files::new())));
            }
        }
    }

    /// Nothing of ours is left among the files of the user, where it may be while a process lives whose state is on another file
    /// system.
    pub(crate) fn check_nothing_is_beside(&self, when: &str) {
        for path in tree::files(&self.root(), "").keys().filter(|path| tree::is_ours(path)) {
            self.violation(format!("{when} {path} is left among the files of the user"));
        }
    }

    /// Nothing is rescued from files below a directory where nobody else writes.
    pub(crate) fn check_nothing_is_rescued(&self, below: &str, when: &str) {
        for (name, bytes) in tree::state_part(&self.root(), "rescued") {
            let origin = name.split_once('-').map_or("", |(_, origin)| origin);
            if origin.starts_with(below) || origin == "unknown" {
                self.violation(format!("{when}, rescued though nobody else wrote: {name}: {}", String::from_utf8_lossy(&bytes)));
            }
        }
    }

    /// Ends the round. What went wrong goes into the outcome, and then the workspace is kept.
    pub(crate) fn close(self, outcome: &mut Outcome) {
        let log = fs::read_to_string(self.log()).unwrap_or_default();
        if log.contains("panicked") {
            let from = log.find("panicked").unwrap_or_default().saturating_sub(100);
            self.violation(format!("a panic: {}", log.chars().skip(from).take(600).collect::<String>()));
        }
        let wrong = self.wrong.into_inner().expect("no thread panics while it holds the list");
        if wrong.is_empty() {
            return;
        }
        let kept = self.home.keep();
        let violations = wrong.into_iter().map(|what| Violation { round: self.round, what, kept: kept.clone() });
        outcome.violations.extend(violations);
    }
}

/// The beginning and the end of a long account.
fn shorten(what: &str) -> String {
    let chars: Vec<char> = what.chars().collect();
    if chars.len() <= 2 * SHOWN {
        return what.to_owned();
    }
    let part = |from: usize, to: usize| chars[from..to].iter().collect::<String>();
    format!("{} [...] {}", part(0, SHOWN), part(chars.len() - SHOWN, chars.len()))
}
