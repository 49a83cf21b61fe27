//! Lets git work on the index of a checkout, or on a second one beside it.

use std::{
    collections::{BTreeMap, HashSet},
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
    process::Stdio,
};

use rustix::fs::{Mode, OFlags};

use super::{
    GitDirs, ObjectId,
    program::{GitError, failed, git_in, output_of, plain_git_in, reading_git_in, run_with},
};

/// Mode and blob of a file in an index or a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StagedFile {
    pub mode: u32,
    pub id: ObjectId,
}

/// Changes to an index; `None` removes a file.
pub(crate) type IndexUpdate = Vec<(String, Option<StagedFile>)>;

/// A file that differs between two commits.
#[derive(Debug)]
pub(crate) struct ChangedEntry {
    pub path: String,
    pub before: Option<StagedFile>,
    pub after: Option<StagedFile>,
}

#[derive(Debug)]
pub(crate) struct StagingArea<'a> {
    tree: &'a Path,
    git: &'a GitDirs,
    /// The index file, if it is not that of the checkout.
    file: Option<PathBuf>,
}

/// If more paths are asked for, git lists all.
const MOST_NAMED: usize = 500;

/// Operations that git may be in the middle of, by the file or directory that shows it.
const OPERATIONS: [(&str, &str); 6] = [
    ("MERGE_HEAD", "merge"),
    ("rebase-merge", "rebase"),
    ("rebase-apply", "rebase"),
    ("CHERRY_PICK_HEAD", "cherry-pick"),
    ("REVERT_HEAD", "revert"),
    ("sequencer", "series of cherry-picks or reverts"),
];

/// The operation that git is in the middle of in a checkout.
pub(crate) fn operation_in(git: &GitDirs) -> Option<&'static str> {
    let exists = |name: &str| fs::symlink_metadata(git.own.join(name)).is_ok();
    OPERATIONS.iter().find(|(name, _)| exists(name)).map(|(_, operation)| *operation)
}

/// The files that git ignores, among these untracked ones.
pub(crate) fn ignored(tree: &Path, paths: &[String]) -> Result<HashSet<String>, GitError> {
    if paths.is_empty() {
        return Ok(HashSet::new());
    }
    let mut git = reading_git_in(tree);
    git.args(["check-ignore", "-z", "--stdin"]);
    // This command does not take pathspecs.
    git.env_remove("GIT_LITERAL_PATHSPECS");
    let input: Vec<u8> = paths.iter().flat_map(|path| [path.as_bytes(), b"\0"].concat()).collect();
    let output = run_with(&mut git, &input)?;
    match output.status.code() {
        Some(0 | 1) => Ok(String::from_utf8_lossy(&output.stdout).split_terminator('\0').map(str::to_owned).collect()),
        _ => Err(failed(&git, &output.stderr)),
    }
}

impl<'a> StagingArea<'a> {
    pub(crate) fn of(tree: &'a Path, git: &'a GitDirs) -> Self {
        Self { tree, git, file: None }
    }

    /// A second index in this file, with the files of a commit and nothing else. Git's knowledge of the files is taken
    /// over, so that git need not read them again.
    pub(crate) fn of_commit(&self, file: PathBuf, commit: Option<&ObjectId>) -> Result<Self, GitError> {
        if let Some(index) = self.bytes()? {
            write_new(&file, &index).map_err(GitError::NoScratch)?;
        }
        let second = Self { file: Some(file), ..*self };
        let mut git = second.command();
        match commit {
            Some(commit) => git.args(["read-tree", "-i", "-m", &commit.to_string()]),
            None => git.args(["read-tree", "--empty"]),
        };
        output_of(git, b"")?;
        Ok(second)
    }

    pub(crate) fn tree(&self) -> &'a Path {
        self.tree
    }

    fn command(&self) -> std::process::Command {
        let mut git = git_in(self.tree);
        git.args(["-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null"]);
        if let Some(file) = &self.file {
            git.env("GIT_INDEX_FILE", file);
        }
        git
    }

    /// Whether a merge has left unresolved files.
    pub(crate) fn has_conflicts(&self) -> Result<bool, GitError> {
        let mut git = self.command();
        git.args(["ls-files", "-z", "--unmerged"]);
        Ok(!output_of(git, b"")?.is_empty())
    }

    pub(crate) fn files(&self, paths: &HashSet<String>) -> Result<BTreeMap<String, StagedFile>, GitError> {
        let mut git = self.command();
        git.args(["ls-files", "-z", "--stage"]);
        if paths.len() <= MOST_NAMED {
            git.arg("--").args(paths);
        }
        let output = output_of(git, b"")?;
        let entry = |line: &str| {
            let (words, path) = line.split_once('\t')?;
            let mut words = words.split(' ');
            let (mode, id) = (u32::from_str_radix(words.next()?, 8).ok()?, ObjectId::from_hex(words.next()?)?);
            paths.contains(path).then(|| (path.to_owned(), StagedFile { mode, id }))
        };
        Ok(String::from_utf8_lossy(&output).split_terminator('\0').filter_map(entry).collect())
    }

    /// Changes entries in it, all or none.
    pub(crate) fn update(&self, files: &IndexUpdate) -> Result<(), GitError> {
        if files.is_empty() {
            return Ok(());
        }
        let removed = files.iter().filter(|(_, file)| file.is_none());
        let zeros = "0".repeat(2 * super::head::hash_length(self.git));
        // A file may have to make room for a directory.
        let mut input: String = removed.map(|(path, _)| format!("0 {zeros}\t{path}\0")).collect();
        for (path, file) in files {
            if let Some(StagedFile { mode, id }) = file {
                input.push_str(&format!("{mode:o} {id}\t{path}\0"));
            }
        }
        let mut git = self.command();
        git.args(["update-index", "-z", "--index-info"]);
        output_of(git, input.as_bytes()).map(drop)
    }

    /// Compares it with the work tree again. Files that differ are not an error.
    pub(crate) fn refresh(&self) {
        let mut git = self.command();
        git.args(["update-index", "-q", "--refresh"]);
        let _ = run_with(&mut git, b"");
    }

    /// Commits it, with everything that git does for a commit. Returns whether git succeeded. The output of git and its
    /// hooks goes to standard error.
    pub(crate) fn commit(&self, messages: &[String]) -> Result<bool, GitError> {
        let mut git = plain_git_in(self.tree);
        if let Some(file) = &self.file {
            git.env("GIT_INDEX_FILE", file);
        }
        git.args(["commit", "--quiet"]);
        messages.iter().for_each(|message| {
            git.arg("-m").arg(message);
        });
        git.stdin(Stdio::null()).stdout(Stdio::null());
        Ok(git.status().map_err(GitError::NotStarted)?.success())
    }

    /// The content of the index file; `None` if it does not exist.
    pub(crate) fn bytes(&self) -> Result<Option<Vec<u8>>, GitError> {
        match fs::read(self.place()) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(GitError::Index { path: self.place(), error }),
        }
    }

    fn place(&self) -> PathBuf {
        self.file.clone().unwrap_or_else(|| self.git.own.join("index"))
    }

    /// Restores the file to this content, under git's lock.
    pub(crate) fn put_back(&self, bytes: Option<&[u8]>) -> Result<(), GitError> {
        let (place, lock) = (self.place(), self.git.own.join("index.lock"));
        let done = write_new(&lock, bytes.unwrap_or_default()).and_then(|()| match bytes {
            Some(_) => Ok(rustix::fs::rename(&lock, &place)?),
            None => Ok(rustix::fs::unlink(&place).and_then(|()| rustix::fs::unlink(&lock))?),
        });
        done.map_err(|error| GitError::Index { path: place, error })
    }
}

/// Creates a file with the permissions that the umask leaves, as git does.
fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let mut file = fs::File::from(rustix::fs::open(path, flags, Mode::from_raw_mode(0o666))?);
    file.write_all(bytes)
}

/// The commit at HEAD according to git; `None` if there is none yet.
pub(crate) fn head_by_git(tree: &Path) -> Result<Option<ObjectId>, GitError> {
    let mut git = reading_git_in(tree);
    git.args(["rev-parse", "--verify", "--quiet", "HEAD^{commit}"]);
    let output = run_with(&mut git, b"")?;
    match output.status.code() {
        Some(0) => {
            let id = ObjectId::from_hex(String::from_utf8_lossy(&output.stdout).trim());
            id.map(Some).ok_or_else(|| GitError::Strange { command: "rev-parse".to_owned() })
        }
        Some(1) => Ok(None),
        _ => Err(failed(&git, &output.stderr)),
    }
}

/// The first parent of a commit; `None` if it has none.
pub(crate) fn parent_of(tree: &Path, commit: &ObjectId) -> Result<Option<ObjectId>, GitError> {
    let mut git = reading_git_in(tree);
    git.args(["rev-list", "--parents", "--max-count=1", &commit.to_string()]);
    let output = output_of(git, b"")?;
    Ok(String::from_utf8_lossy(&output).split_whitespace().nth(1).and_then(ObjectId::from_hex))
}

/// Moves HEAD, or the branch that it is on, from one commit back to another. Fails if HEAD is elsewhere by now.
pub(crate) fn move_head(tree: &Path, from: &ObjectId, to: &ObjectId) -> Result<(), GitError> {
    let mut git = git_in(tree);
    git.args(["-c", "core.hooksPath=/dev/null", "update-ref", "-m", "surehand: another commit came first", "HEAD"]);
    git.args([to.to_string(), from.to_string()]);
    output_of(git, b"").map(drop)
}

/// The files that differ between two commits, with their entries in both.
pub(crate) fn changed_between(tree: &Path, before: Option<&ObjectId>, after: &ObjectId) -> Result<Vec<ChangedEntry>, GitError> {
    let mut git = reading_git_in(tree);
    match before {
        Some(before) => git.args(["diff-tree", "-r", "-z", "--no-renames", "--raw", &before.to_string(), &after.to_string()]),
        None => git.args(["diff-tree", "--root", "--no-commit-id", "-r", "-z", "--no-renames", "--raw", &after.to_string()]),
    };
    let output = output_of(git, b"")?;
    let output = String::from_utf8_lossy(&output);
    let words: Vec<&str> = output.split_terminator('\0').collect();
    let change = |words: &[&str]| {
        let mut fields = words.first()?.strip_prefix(':')?.split(' ');
        let mut mode = || u32::from_str_radix(fields.next()?, 8).ok();
        let (old_mode, new_mode) = (mode()?, mode()?);
        let mut id = || ObjectId::from_hex(fields.next()?);
        let (old_id, new_id) = (id()?, id()?);
        let file = |mode: u32, id: ObjectId| (mode != 0).then_some(StagedFile { mode, id });
        let path = (*words.get(1)?).to_owned();
        Some(ChangedEntry { path, before: file(old_mode, old_id), after: file(new_mode, new_id) })
    };
    Ok(words.chunks_exact(2).filter_map(change).collect())
}
