//! Other servers in use: the list, and the installation of each by name and version below a directory that is reused.
//! `server` starts them, `tool_dialect` translates calls for them.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use clap::ValueEnum;

use crate::bench::server::RootBy;
use crate::bench::tool_dialect::ToolDialect;

/// Which peers take part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Wanted {
    None,
    /// Those that are already installed.
    Installed,
    /// All; missing ones are installed.
    All,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Registry {
    Npm,
    /// `pip install` into an environment of its own.
    PyPi,
    Crates,
}

impl Registry {
    /// The name in the report.
    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Npm => "npm",
            Self::PyPi => "PyPI",
            Self::Crates => "crates.io",
        }
    }
}

/// Another server that people use.
#[derive(Debug)]
pub(crate) struct Peer {
    /// The name in the tables.
    pub label: &'static str,
    /// The name of the package.
    pub package: &'static str,
    /// The version of the package.
    pub version: &'static str,
    pub registry: Registry,
    /// The runtime, and what else is installed for it, by name and version.
    pub runtime: &'static str,
    with: &'static [&'static str],
    /// Whether an edit is synced before it is acknowledged.
    pub syncs: bool,
    /// How it is spoken to.
    pub dialect: ToolDialect,
    /// How it learns its workspace.
    pub root: RootBy,
    /// The command line. Words that start with `./` are relative to the server's directory.
    words: &'static [&'static str],
}

/// All known peers, the official one first.
pub(crate) static PEERS: [Peer; 5] = [
    Peer {
        label: "official",
        package: "@modelcontextprotocol/server-filesystem",
        version: "2026.8.31",
        registry: Registry::Npm,
        runtime: "Node",
        with: &[],
        syncs: false,
        dialect: ToolDialect::Filesystem,
        root: RootBy::Argument,
        words: &["node", "./node_modules/@modelcontextprotocol/server-filesystem/dist/index.js"],
    },
    Peer {
        label: "rust-mcp",
        package: "rust-mcp-filesystem",
        version: "0.4.5",
        registry: Registry::Crates,
        runtime: "Rust",
        with: &[],
        syncs: false,
        dialect: ToolDialect::Filesystem,
        root: RootBy::Argument,
        words: &["./bin/rust-mcp-filesystem", "--allow-write"],
    },
    Peer {
        label: "text-editor",
        package: "mcp-text-editor",
        version: "1.0.2",
        registry: Registry::PyPi,
        runtime: "Python",
        // It sets no upper bound, and does not start with the second major version of the SDK.
        with: &["mcp==1.30.0"],
        syncs: false,
        dialect: ToolDialect::TextEditor,
        root: RootBy::Directory,
        words: &["./bin/mcp-text-editor"],
    },
    Peer {
        label: "hashline",
        package: "hashline",
        version: "0.2.1",
        registry: Registry::Crates,
        runtime: "Rust",
        with: &[],
        syncs: true,
        dialect: ToolDialect::Hashline,
        root: RootBy::Directory,
        words: &["./bin/hashline", "mcp"],
    },
    Peer {
        label: "hashline-edit",
        package: "mcp-hashline-edit-server",
        version: "0.2.0",
        registry: Registry::Npm,
        runtime: "Bun",
        with: &["bun@1.4.4"],
        syncs: false,
        dialect: ToolDialect::HashlineEdit,
        root: RootBy::Directory,
        words: &["./node_modules/.bin/bun", "./node_modules/mcp-hashline-edit-server/src/index.ts"],
    },
];

pub(crate) struct LeftOut {
    pub peer: &'static Peer,
    pub reason: String,
}

/// The wanted peers that are available, installed below `cache` if necessary, and the others, each with the reason.
pub(crate) fn gather(wanted: Wanted, cache: &Path) -> (Vec<&'static Peer>, Vec<LeftOut>) {
    let (mut ready, mut left_out) = (Vec::new(), Vec::new());
    let all: &[Peer] = if wanted == Wanted::None { &[] } else { &PEERS };
    for peer in all {
        match peer.prepare(wanted, cache) {
            Ok(()) => ready.push(peer),
            Err(error) => left_out.push(LeftOut { peer, reason: format!("{error:#}") }),
        }
    }
    (ready, left_out)
}

impl Peer {
    /// The program and its first arguments.
    pub(crate) fn command(&self, cache: &Path) -> (PathBuf, Vec<OsString>) {
        let home = self.home(cache);
        let word = |word: &&str| match word.strip_prefix("./") {
            Some(inside) => home.join(inside).into_os_string(),
            None => OsString::from(word),
        };
        let mut words = self.words.iter().map(word);
        let program = words.next().expect("every peer has a program");
        (program.into(), words.collect())
    }

    fn prepare(&self, wanted: Wanted, cache: &Path) -> Result<()> {
        let stamp = self.home(cache).join("installed");
        if stamp.exists() {
            return Ok(());
        }
        ensure!(wanted == Wanted::All, "not installed");
        eprintln!("installing {} {} ...", self.package, self.version);
        self.install(&self.home(cache))?;
        // Written last, so that an interrupted installation does not count.
        fs::write(&stamp, self.version).with_context(|| stamp.display().to_string())
    }

    /// The directory of this version.
    fn home(&self, cache: &Path) -> PathBuf {
        cache.join(format!("{}-{}", self.label, self.version))
    }

    fn install(&self, home: &Path) -> Result<()> {
        fs::create_dir_all(home).with_context(|| home.display().to_string())?;
        match self.registry {
            Registry::Npm => {
                let package = format!("{}@{}", self.package, self.version);
                let flags = ["install", "--silent", "--no-fund", "--no-audit", "--prefix"];
                run(Command::new("npm").args(flags).arg(home).arg(package).args(self.with))
            }
            Registry::PyPi => {
                run(Command::new("python3").args(["-m", "venv"]).arg(home))?;
                let package = format!("{}=={}", self.package, self.version);
                run(Command::new(home.join("bin/pip")).args(["install", "--quiet", &package]).args(self.with))
            }
            Registry::Crates => {
                let flags = ["install", "--quiet", "--locked", "--version", self.version, self.package, "--root"];
                run(Command::new("cargo").args(flags).arg(home))
            }
        }
    }
}

/// Runs a command to its end, and ignores its output.
fn run(command: &mut Command) -> Result<()> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.stdin(Stdio::null()).output().with_context(|| program.clone())?;
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    ensure!(output.status.success(), "{program}: {}", said.lines().last().unwrap_or("failed"));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_its_own_directory_are_found_there() {
        let (program, arguments) = PEERS[0].command(Path::new("/cache"));
        assert_eq!(program, Path::new("node"));
        assert!(arguments[0].to_str().unwrap().starts_with("/cache/official-"), "{arguments:?}");
        let (program, arguments) = PEERS[1].command(Path::new("/cache"));
        assert!(program.starts_with("/cache"), "{}", program.display());
        assert_eq!(arguments, ["--allow-write"]);
    }

    #[test]
    fn a_peer_that_is_not_there_is_named_with_the_reason() {
        let empty = tempfile::tempdir().unwrap();
        let (ready, left_out) = gather(Wanted::Installed, empty.path());
        assert!(ready.is_empty());
        assert_eq!(left_out.len(), PEERS.len());
        assert!(left_out.iter().all(|left_out| left_out.reason == "not installed"));
    }

    #[test]
    fn when_none_are_wanted_none_are_missed() {
        let empty = tempfile::tempdir().unwrap();
        let (ready, left_out) = gather(Wanted::None, empty.path());
        assert!(ready.is_empty() && left_out.is_empty());
    }

    #[test]
    fn labels_are_short_enough_for_columns() {
        assert!(PEERS.iter().all(|peer| peer.label.len() <= 13));
    }
}
