//! The workspace of one round, with its home directory, its log and its violations. It is removed at the end, unless
//! there is a violation.

use std::{
    fs::{self, File},
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::Mutex,
};

use anyhow::{Context, Result};
use surehand_testkit::rng::Rng;
use tempfile::TempDir;

use crate::{
    Torture,
    client::{CallForm, Client},
    report::{PartOutcome, Violation},
    tree,
};

/// The most violations that one round reports: most of the later ones follow from the first.
const TOLD: usize = 5;

/// Characters that a report shows from the start and from the end of a violation.
const SHOWN: usize = 700;

/// Randomly chosen settings of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Settings {
    pub durability: &'static str,
    pub on_change: &'static str,
    /// How its client calls it.
    pub form: CallForm,
}

impl Settings {
    /// For processes that only look or recover.
    pub(crate) const PLAIN: Self = Self { durability: "fast", on_change: "refuse", form: CallForm::Plain };

    pub(crate) fn any(rng: &mut Rng) -> Self {
        Self {
            durability: *rng.pick(&["fast", "full"]),
            on_change: *rng.pick(&["refuse", "rebase"]),
            form: *rng.pick(&[CallForm::Plain, CallForm::WithObject]),
        }
    }
}

/// The workspace of one round.
pub(crate) struct TestWorkspace {
    home: TempDir,
    program: PathBuf,
    round: usize,
    wrong: Mutex<Vec<String>>,
    /// A command prefix, such as a shell that sets limits or changes the user.
    pub wrapper: Vec<String>,
}

impl TestWorkspace {
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

    /// The directory that contains the workspace.
    pub(crate) fn home(&self) -> &Path {
        self.home.path()
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.home.path().join("root")
    }

    /// The standard error of the servers.
    pub(crate) fn log(&self) -> PathBuf {
        self.home.path().join("stderr.log")
    }

    pub(crate) fn server(&self, settings: Settings) -> Result<Client<'_>> {
        let root = self.root();
        Client::start(self, self.command(settings).args(["mcp", "--root"]).arg(root), settings.form)
    }

    /// The program, with only `PATH` from the caller's environment.
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
        command.env("SUREHAND_BOARD_ENABLED", "false");
        command.env("SUREHAND_POLICY_DURABILITY", settings.durability).env("SUREHAND_POLICY_ON_CHANGE", settings.on_change);
        // A read shows the whole file, so that the session is known to have seen all of it.
        command.env("SUREHAND_LIMITS_READ_LINES", "1000000").env("SUREHAND_LIMITS_READ_BYTES", "100000000");
        let log = File::options().create(true).append(true).open(self.log());
        command.stderr(log.map_or_else(|_| Stdio::null(), Stdio::from));
        command
    }

    /// A minimal process: it starts, which runs recovery, and exits.
    pub(crate) fn small_call(&self, settings: Settings) -> Command {
        let mut command = self.command(settings);
        command.args(["call", "forget", "{}", "--root"]).arg(self.root()).stdin(Stdio::null()).stdout(Stdio::piped());
        command
    }

    /// Runs such a process to its end. Afterwards recovery is complete.
    pub(crate) fn clean_start(&self, settings: Settings) -> Result<()> {
        let output = self.small_call(settings).output().context("surehand call")?;
        if !output.status.success() {
            self.violation(format!("a clean start failed: {}: {}", output.status, String::from_utf8_lossy(&output.stdout)));
        }
        Ok(())
    }

    /// Records a violation. Its full text is stored with the workspace.
    pub(crate) fn violation(&self, what: String) {
        let mut wrong = self.wrong.lock().expect("no thread panics while it holds the list");
        if wrong.len() < TOLD {
            let whole = File::options().create(true).append(true).open(self.home.path().join("violations.txt"));
            let _ = whole.and_then(|mut file| writeln!(file, "{what}\n"));
            wrong.push(shorten(&what));
        }
    }

    pub(crate) fn is_spoilt(&self) -> bool {
        !self.wrong.lock().expect("no thread panics while it holds the list").is_empty()
    }

    /// Checks that a clean start leaves no staged files and no journals.
    pub(crate) fn check_state_is_tidy(&self, when: &str) {
        for part in ["staged", "journal"] {
            let left = tree::state_part(&self.root(), part);
            if !left.is_empty() {
                self.violation(format!("{when}, left in {part}: {}", tree::difference(&left, &tree::Files::new())));
            }
        }
    }

    /// Checks that no temporary file is left among the user's files. A running process may have some there if its state
    /// is on another file system.
    pub(crate) fn check_nothing_is_beside(&self, when: &str) {
        for path in tree::files(&self.root(), "").keys().filter(|path| tree::is_ours(path)) {
            self.violation(format!("{when} {path} is left among the files of the user"));
        }
    }

    /// Checks that nothing was rescued from a directory that has no other writer.
    pub(crate) fn check_nothing_is_rescued(&self, below: &str, when: &str) {
        for (name, bytes) in tree::state_part(&self.root(), "rescued") {
            let origin = name.split_once('-').map_or("", |(_, origin)| origin);
            if origin.starts_with(below) || origin == "unknown" {
                self.violation(format!(
                    "{when}, rescued although no other program wrote: {name}: {}",
                    String::from_utf8_lossy(&bytes)
                ));
            }
        }
    }

    /// Ends the round and moves its violations to the outcome. A workspace with violations is kept.
    pub(crate) fn close(self, outcome: &mut PartOutcome) {
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

/// The start and the end of a long text.
fn shorten(what: &str) -> String {
    let chars: Vec<char> = what.chars().collect();
    if chars.len() <= 2 * SHOWN {
        return what.to_owned();
    }
    let part = |from: usize, to: usize| chars[from..to].iter().collect::<String>();
    format!("{} [...] {}", part(0, SHOWN), part(chars.len() - SHOWN, chars.len()))
}
