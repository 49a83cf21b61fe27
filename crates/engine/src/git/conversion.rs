//! How git converts files between the work tree and its objects: line endings, encodings, filters.

use std::{
    cell::OnceCell,
    collections::{HashMap, HashSet},
    path::Path,
};

use super::{
    GitDirs, ObjectId,
    program::{GitError, output_of, reading_git_in, run_with},
    scratch::ScratchRepository,
};

/// The conversions of some files of a work tree.
#[derive(Debug)]
pub(crate) struct Conversions<'a> {
    tree: &'a Path,
    git: &'a GitDirs,
    kinds: HashMap<String, ConversionKind>,
    scratch: OnceCell<ScratchRepository>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ConversionKind {
    /// Of line endings. Git leaves them alone if those in the commit differ.
    Endings,
    /// By a filter, to another encoding, or of `$Id$`.
    Content,
}

const ATTRIBUTES: [&str; 6] = ["text", "crlf", "eol", "filter", "ident", "working-tree-encoding"];

impl<'a> Conversions<'a> {
    /// Asks git about these paths of a work tree.
    pub(crate) fn of(tree: &'a Path, git: &'a GitDirs, paths: &HashSet<String>) -> Result<Self, GitError> {
        let none = Self { tree, git, kinds: HashMap::new(), scratch: OnceCell::new() };
        if paths.is_empty() {
            return Ok(none);
        }
        let is_automatic = converts_by_itself(tree)?;
        let mut command = reading_git_in(tree);
        command.args(["check-attr", "-z", "--stdin"]).args(ATTRIBUTES);
        let input: Vec<u8> = paths.iter().flat_map(|path| [path.as_bytes(), b"\0"].concat()).collect();
        let output = output_of(command, &input)?;
        let output = String::from_utf8_lossy(&output);
        let words: Vec<&str> = output.split('\0').collect();
        let mut kinds = HashMap::new();
        let mut never = HashSet::new();
        for answer in words.chunks_exact(3) {
            let &[path, attribute, value] = answer else { continue };
            let kind = match (attribute, value) {
                ("text" | "crlf", "unset") => {
                    never.insert(path);
                    continue;
                }
                (_, "unspecified" | "unset") => continue,
                ("text" | "crlf" | "eol", _) => ConversionKind::Endings,
                _ => ConversionKind::Content,
            };
            let known = kinds.entry(path.to_owned()).or_insert(kind);
            *known = kind.max(*known);
        }
        if is_automatic {
            let other = paths.iter().filter(|path| !never.contains(path.as_str()));
            other.for_each(|path| {
                kinds.entry(path.clone()).or_insert(ConversionKind::Endings);
            });
        }
        Ok(Self { kinds, ..none })
    }

    /// The conversion of a file, if it has one.
    pub(crate) fn kind(&self, path: &str) -> Option<ConversionKind> {
        self.kinds.get(path).copied()
    }

    /// A blob as git would check it out at a path.
    pub(crate) fn checked_out(&self, path: &str, blob: &ObjectId) -> Result<Vec<u8>, GitError> {
        let mut git = reading_git_in(self.tree);
        git.args(["cat-file", "--filters", &format!("--path={path}"), &blob.to_string()]);
        output_of(git, b"")
    }

    /// The content that git would store for a file.
    pub(crate) fn stored(&self, path: &str, content: &[u8]) -> Result<Vec<u8>, GitError> {
        if self.scratch.get().is_none() {
            let _ = self.scratch.set(ScratchRepository::new(Some(self.git))?);
        }
        let scratch = self.scratch.get().expect("it was just made");
        scratch.stored(self.tree, self.git, path, content)
    }
}

/// Whether git converts line endings of files that no attribute mentions.
fn converts_by_itself(tree: &Path) -> Result<bool, GitError> {
    let mut git = reading_git_in(tree);
    git.args(["config", "--get", "core.autocrlf"]);
    let output = run_with(&mut git, b"")?;
    let value = String::from_utf8_lossy(&output.stdout).trim().to_ascii_lowercase();
    Ok(output.status.success() && !matches!(value.as_str(), "" | "false" | "no" | "off" | "0"))
}
