//! Starts git for requests of a person that only git should carry out: commits, and who committed a line.
//!
//! The variables by which a caller's environment could point git to another repository are removed.

use std::{
    ffi::OsStr,
    io::{self, Write},
    path::Path,
    process::{Command, Output, Stdio},
};

/// Why a git command failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GitError {
    /// The program `git` could not be started.
    #[error("git cannot be started: {0}")]
    NotStarted(#[source] io::Error),
    /// No temporary directory could be made for the files that it needs.
    #[error("no temporary directory can be made: {0}")]
    NoScratch(#[source] io::Error),
    /// The index cannot be read or put back.
    #[error("{}: {error}", path.display())]
    Index {
        /// Path of the index.
        path: std::path::PathBuf,
        /// The error of the operating system.
        error: io::Error,
    },
    /// Its output cannot be understood.
    #[error("git {command} gave an answer that cannot be understood")]
    Strange {
        /// The git subcommand, such as `rev-parse`.
        command: String,
    },
    /// It exited with an error.
    #[error("git {command} failed: {said}")]
    Failed {
        /// The git subcommand, such as `rev-parse`.
        command: String,
        /// Its error output, or a note that there was none.
        said: String,
    },
}

/// Variables that say which repository, index or objects git uses.
const REPOSITORY_VARIABLES: [&str; 12] = [
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_COMMON_DIR",
    "GIT_INDEX_FILE",
    "GIT_INDEX_VERSION",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_NAMESPACE",
    "GIT_PREFIX",
    "GIT_INTERNAL_SUPER_PREFIX",
    "GIT_GRAFT_FILE",
    "GIT_SHALLOW_FILE",
];

pub(crate) fn git_in(tree: &Path) -> Command {
    let mut git = plain_git_in(tree);
    git.env("LC_ALL", "C.UTF-8").env("GIT_TERMINAL_PROMPT", "0").env("GIT_LITERAL_PATHSPECS", "1");
    git
}

/// A git command as a person would type it: hooks that it runs see the person's environment.
pub(crate) fn plain_git_in(tree: &Path) -> Command {
    let mut git = Command::new("git");
    REPOSITORY_VARIABLES.iter().for_each(|name| {
        git.env_remove(name);
    });
    git.current_dir(tree);
    git
}

/// A git command that only reads: it starts no program of the repository's configuration, and takes no locks.
pub(crate) fn reading_git_in(tree: &Path) -> Command {
    let mut git = git_in(tree);
    git.env("GIT_OPTIONAL_LOCKS", "0").env("GIT_NO_LAZY_FETCH", "1");
    git.args(["-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "core.pager=cat"]);
    git
}

/// Runs a command with this input, and returns its output.
pub(crate) fn output_of(mut git: Command, input: &[u8]) -> Result<Vec<u8>, GitError> {
    let Output { status, stdout, stderr } = run_with(&mut git, input)?;
    if status.success() {
        return Ok(stdout);
    }
    Err(failed(&git, &stderr))
}

/// Runs a command with this input to its end.
pub(crate) fn run_with(git: &mut Command, input: &[u8]) -> Result<Output, GitError> {
    git.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = git.spawn().map_err(GitError::NotStarted)?;
    let mut stdin = child.stdin.take().expect("it is piped");
    std::thread::scope(|scope| {
        // A command that does not read all of its input reports the problem itself.
        scope.spawn(move || drop(stdin.write_all(input)));
        child.wait_with_output().map_err(GitError::NotStarted)
    })
}

pub(crate) fn failed(git: &Command, stderr: &[u8]) -> GitError {
    let is_option = |word: &&OsStr| word.as_encoded_bytes().starts_with(b"-");
    let mut words = git.get_args();
    let mut command = words.next();
    while command.as_ref().is_some_and(is_option) {
        // `-c` is followed by a setting.
        words.next();
        command = words.next();
    }
    let said = String::from_utf8_lossy(stderr).trim().to_owned();
    let said = if said.is_empty() { "it does not say why".to_owned() } else { said };
    GitError::Failed { command: command.unwrap_or_default().to_string_lossy().into_owned(), said }
}
