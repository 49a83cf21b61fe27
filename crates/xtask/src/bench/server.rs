//! Finds and starts the servers: program, arguments and environment. `client` and `tool_dialect` talk to them, `peer`
//! installs the peers.

use std::env;
use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::bench::floor::Durability;
use crate::bench::peer::Peer;
use crate::bench::tool_dialect::ToolDialect;

/// The server binary at this path.
pub(crate) fn locate(path: &Path) -> Result<PathBuf> {
    path.canonicalize().with_context(|| path.display().to_string())
}

/// A profile of `Cargo.toml`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Profile {
    /// The profile of `cargo install`.
    Release,
    /// The profile of the packages.
    Dist,
}

/// Builds the server and returns its binary.
pub(crate) fn build(profile: Profile) -> Result<PathBuf> {
    let profile = match profile {
        Profile::Release => "release",
        Profile::Dist => "dist",
    };
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["build", "--profile", profile, "-p", "surehand", "--message-format", "json-render-diagnostics"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .stderr(Stdio::inherit())
        .output()
        .context("cargo build")?;
    ensure!(output.status.success(), "cargo build -p surehand failed: {}", output.status);
    executable(&output.stdout).context("cargo build -p surehand made no binary")
}

/// The server binary in cargo's messages, because only cargo knows the target directory.
fn executable(messages: &[u8]) -> Option<PathBuf> {
    messages
        .split(|&byte| byte == b'\n')
        .filter_map(|line| serde_json::from_slice::<Value>(line).ok())
        .filter(|message| message["target"]["name"] == "surehand")
        .find_map(|message| message["executable"].as_str().map(PathBuf::from))
}

/// How a server learns its workspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RootBy {
    /// From its last argument.
    Argument,
    /// From its working directory.
    Directory,
}

/// A server that can be started on any workspace.
#[derive(Clone)]
pub(crate) struct Launch {
    /// The name in the report.
    pub name: String,
    /// How it is spoken to.
    pub dialect: ToolDialect,
    /// The file for its standard error.
    pub log: PathBuf,
    program: PathBuf,
    arguments: Vec<OsString>,
    root: RootBy,
    environment: Vec<(&'static str, &'static str)>,
}

impl Launch {
    /// The server under test. Its log is written to `directory`.
    pub(crate) fn surehand(server: &Path, durability: Durability, directory: &Path) -> Self {
        let arguments = ["mcp", "--root"].map(OsString::from).into();
        let environment = settings(durability).into();
        Self { environment, ..Self::new("surehand", server, arguments, RootBy::Argument, directory) }
    }

    /// The same server with one of the user's settings changed.
    pub(crate) fn with_setting(&self, name: &'static str, value: &'static str) -> Self {
        let mut launch = self.clone();
        launch.environment.push((name, value));
        launch
    }

    /// This program as the floor.
    pub(crate) fn floor(durability: Durability, directory: &Path) -> Result<Self> {
        let program = env::current_exe().context("the path of this program")?;
        let sync = (durability == Durability::Full).then_some("--sync");
        let arguments = ["floor"].into_iter().chain(sync).chain(["--root"]).map(OsString::from).collect();
        Ok(Self::new("floor", &program, arguments, RootBy::Argument, directory))
    }

    /// A peer installed below `cache`.
    pub(crate) fn peer(peer: &Peer, cache: &Path, directory: &Path) -> Self {
        let (program, arguments) = peer.command(cache);
        Self { dialect: peer.dialect, ..Self::new(peer.label, &program, arguments, peer.root, directory) }
    }

    fn new(name: &str, program: &Path, arguments: Vec<OsString>, root: RootBy, directory: &Path) -> Self {
        let log = directory.join(format!("{name}.stderr"));
        Self {
            name: name.into(),
            dialect: ToolDialect::Surehand,
            log,
            program: program.into(),
            arguments,
            root,
            environment: Vec::new(),
        }
    }

    pub(crate) fn program(&self) -> &Path {
        &self.program
    }

    /// The command that serves `root`.
    pub(crate) fn command(&self, root: &Path) -> Result<Command> {
        let mut command = Command::new(&self.program);
        // The caller's environment must not configure the server.
        command.env_clear().envs(["PATH", "HOME"].into_iter().filter_map(|name| Some((name, env::var_os(name)?))));
        // No other server keeps in touch with other checkouts.
        command.env("SUREHAND_BOARD_ENABLED", "false");
        command.envs(self.environment.iter().copied()).args(&self.arguments).current_dir(root);
        if self.root == RootBy::Argument {
            command.arg(root);
        }
        let log = File::create(&self.log).with_context(|| self.log.display().to_string())?;
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(log);
        Ok(command)
    }

    /// Runs a command that [`Launch::command`] made.
    pub(crate) fn spawn(&self, mut command: Command) -> Result<Child> {
        command.spawn().with_context(|| self.program.display().to_string())
    }
}

/// The server's configuration: limits high enough that a read returns the whole file.
fn settings(durability: Durability) -> [(&'static str, &'static str); 3] {
    let durability = match durability {
        Durability::Fast => "fast",
        Durability::Full => "full",
    };
    [
        ("SUREHAND_POLICY_DURABILITY", durability),
        ("SUREHAND_LIMITS_READ_LINES", "1000000"),
        ("SUREHAND_LIMITS_READ_BYTES", "100000000"),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_binary_is_found_among_the_messages_of_cargo() {
        let messages = br#"{"reason":"compiler-artifact","target":{"name":"surehand-core"},"executable":null}
{"reason":"compiler-artifact","target":{"name":"surehand"},"executable":"/target/release/surehand"}
{"reason":"build-finished","success":true}
"#;
        assert_eq!(executable(messages), Some(PathBuf::from("/target/release/surehand")));
    }
}
