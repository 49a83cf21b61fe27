//! A temporary repository in a private directory, where git makes patches and stores converted files. Only the
//! configuration that is given here counts in it.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    process::Command,
};

use tempfile::TempDir;

use super::{
    GitDirs, ObjectId, Objects,
    head::hash_length,
    program::{GitError, git_in, output_of, reading_git_in},
};

/// A bare repository that is removed when this is dropped.
#[derive(Debug)]
pub(crate) struct ScratchRepository {
    dir: TempDir,
}

/// A file of a tree, with its path from the top of the tree.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TreeFile<'a> {
    pub path: &'a str,
    pub mode: u32,
    pub content: &'a [u8],
}

impl ScratchRepository {
    /// Creates one with object ids like those of the repository `like`.
    pub(crate) fn new(like: Option<&GitDirs>) -> Result<Self, GitError> {
        let dir = tempfile::Builder::new().prefix("surehand-").tempdir().map_err(GitError::NoScratch)?;
        let scratch = Self { dir };
        let format = if like.is_some_and(|git| hash_length(git) == 32) { "sha256" } else { "sha1" };
        let mut git = scratch.git();
        git.args(["init", "-q", "--bare", "--template=", &format!("--object-format={format}"), "."]);
        output_of(git, b"")?;
        Ok(scratch)
    }

    fn git(&self) -> Command {
        let mut git = git_in(self.dir.path());
        git.env("GIT_DIR", self.dir.path()).env("GIT_CONFIG_NOSYSTEM", "1").env("GIT_CONFIG_GLOBAL", "/dev/null");
        git
    }

    /// A path in it for a file that git writes.
    pub(crate) fn place(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// The patch from one tree to another, as `git apply` takes it: with modes, renames and binary files.
    pub(crate) fn patch(&self, before: &[TreeFile<'_>], after: &[TreeFile<'_>]) -> Result<Vec<u8>, GitError> {
        let mut stream = Vec::new();
        push_tree(&mut stream, "refs/heads/before", before);
        push_tree(&mut stream, "refs/heads/after", after);
        let mut git = self.git();
        git.args(["fast-import", "--quiet", "--force"]);
        output_of(git, &stream)?;
        let mut git = self.git();
        git.args(["diff-tree", "-r", "-p", "-M", "--binary", "--full-index", "--no-color", "--no-ext-diff", "--no-textconv"]);
        git.args(["--src-prefix=a/", "--dst-prefix=b/", "refs/heads/before", "refs/heads/after"]);
        output_of(git, b"")
    }

    /// The content that git would store for this file of a work tree, after filters and conversion of line endings.
    pub(crate) fn stored(&self, tree: &Path, git: &GitDirs, path: &str, content: &[u8]) -> Result<Vec<u8>, GitError> {
        let mut command = reading_git_in(tree);
        let mut others = OsString::from(git.common.join("objects"));
        // Git takes a path with a colon for two paths, unless it is quoted.
        if others.as_encoded_bytes().iter().any(|byte| matches!(byte, b':' | b'"')) {
            let quoted = others.to_string_lossy().replace('\\', "\\\\").replace('"', "\\\"");
            others = format!("\"{quoted}\"").into();
        }
        command.env("GIT_OBJECT_DIRECTORY", self.dir.path().join("objects")).env("GIT_ALTERNATE_OBJECT_DIRECTORIES", others);
        command.args(["hash-object", "-w", "--stdin", &format!("--path={path}")]);
        let output = output_of(command, content)?;
        let id = ObjectId::from_hex(String::from_utf8_lossy(&output).trim());
        let blob = id.and_then(|id| Objects::of(self.dir.path()).blob(&id, usize::MAX).ok()?.or_else(|| blob_of(git, &id)));
        blob.ok_or_else(|| GitError::Strange { command: "hash-object".to_owned() })
    }
}

/// Reads a blob from the repository itself: git does not write an object that the repository already has.
fn blob_of(git: &GitDirs, id: &ObjectId) -> Option<Vec<u8>> {
    Objects::of(&git.common).blob(id, usize::MAX).ok()?
}

/// Adds a commit of these files, and of no others, to the input of `git fast-import`.
fn push_tree(stream: &mut Vec<u8>, name: &str, files: &[TreeFile<'_>]) {
    stream.extend_from_slice(format!("commit {name}\ncommitter s <s> 0 +0000\ndata 0\n").as_bytes());
    for file in files {
        stream.extend_from_slice(format!("M {:o} inline {}\n", file.mode, quoted(file.path)).as_bytes());
        push_data(stream, file.content);
    }
    stream.push(b'\n');
}

fn push_data(stream: &mut Vec<u8>, content: &[u8]) {
    stream.extend_from_slice(format!("data {}\n", content.len()).as_bytes());
    stream.extend_from_slice(content);
    stream.push(b'\n');
}

fn quoted(path: &str) -> String {
    format!("\"{}\"", path.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n"))
}

/// Writes contents into the object database of a repository, unconverted, and returns their ids.
pub(crate) fn write_blobs(tree: &Path, contents: &[&[u8]]) -> Result<Vec<ObjectId>, GitError> {
    if contents.is_empty() {
        return Ok(Vec::new());
    }
    let mut stream = Vec::new();
    for (mark, content) in (1..).zip(contents) {
        stream.extend_from_slice(format!("blob\nmark :{mark}\n").as_bytes());
        push_data(&mut stream, content);
        stream.extend_from_slice(format!("get-mark :{mark}\n").as_bytes());
    }
    let mut git = git_in(tree);
    git.args(["fast-import", "--quiet"]);
    let output = output_of(git, &stream)?;
    let ids: Vec<ObjectId> = String::from_utf8_lossy(&output).lines().filter_map(ObjectId::from_hex).collect();
    if ids.len() == contents.len() { Ok(ids) } else { Err(GitError::Strange { command: "fast-import".to_owned() }) }
}
