//! Ignore rules: `.gitignore`, `.ignore` and `.git/info/exclude`, from the workspace root down. Rules above the root
//! and the user's global rules are not read. ripgrep's crate matches patterns; this module decides which file has the
//! last word.

use std::{ffi::CStr, fs::File, io::Read, os::fd::OwnedFd, sync::Arc};

use ignore::{
    Match,
    gitignore::{Gitignore, GitignoreBuilder},
};
use rustix::fs::{self as sys, Mode};

use super::{DIR_FLAGS, open_file};

/// Entries that give a directory rules of its own.
pub(super) const NAMES: [&CStr; 3] = [c".gitignore", c".ignore", c".git"];

/// The most bytes that are read of an ignore file.
const MAX_BYTES: u64 = 1 << 20;

/// The rules of a directory and of those above it.
#[derive(Debug)]
pub(super) struct IgnoreRules {
    /// The length in bytes of the path to this directory, with a trailing `/`.
    prefix: usize,
    ignore: Gitignore,
    gitignore: Gitignore,
    exclude: Gitignore,
    /// Whether this is the root of a repository, where git's rules from further up end.
    is_repository: bool,
    above: Option<Arc<IgnoreRules>>,
}

impl IgnoreRules {
    /// The rules of a directory and of those above it; `None` if there are none.
    pub(super) fn here(dir: &OwnedFd, prefix: usize, above: Option<Arc<IgnoreRules>>) -> Option<Arc<IgnoreRules>> {
        let rules = IgnoreRules {
            prefix,
            ignore: parse(dir, c".ignore"),
            gitignore: parse(dir, c".gitignore"),
            exclude: exclude(dir),
            is_repository: sys::statat(dir, c".git", sys::AtFlags::SYMLINK_NOFOLLOW).is_ok(),
            above,
        };
        let is_empty = rules.ignore.is_empty() && rules.gitignore.is_empty() && rules.exclude.is_empty();
        if is_empty && !rules.is_repository { rules.above } else { Some(Arc::new(rules)) }
    }

    /// Whether these rules ignore a path. The nearest file has the last word, and `.ignore` precedes `.gitignore`.
    pub(super) fn ignores(&self, path: &str, is_dir: bool) -> bool {
        let (mut ignore, mut gitignore, mut exclude) = (Match::None, Match::None, Match::None);
        let mut is_same_repository = true;
        let mut next = Some(self);
        while let Some(rules) = next {
            let path = &path[rules.prefix..];
            if ignore.is_none() {
                ignore = rules.ignore.matched(path, is_dir);
            }
            if is_same_repository && gitignore.is_none() {
                gitignore = rules.gitignore.matched(path, is_dir);
            }
            if is_same_repository && exclude.is_none() {
                exclude = rules.exclude.matched(path, is_dir);
            }
            is_same_repository &= !rules.is_repository;
            next = rules.above.as_deref();
        }
        ignore.or(gitignore).or(exclude).is_ignore()
    }
}

fn exclude(dir: &OwnedFd) -> Gitignore {
    let open = |dir: &OwnedFd, name: &CStr| sys::openat(dir, name, DIR_FLAGS, Mode::empty());
    match open(dir, c".git").and_then(|git| open(&git, c"info")) {
        Ok(info) => parse(&info, c"exclude"),
        Err(_) => Gitignore::empty(),
    }
}

fn parse(dir: &OwnedFd, name: &CStr) -> Gitignore {
    let opened = open_file(dir, name).ok().flatten();
    opened.and_then(|(fd, _)| rules_in(File::from(fd))).unwrap_or_else(Gitignore::empty)
}

/// The patterns of an open ignore file; `None` if it cannot be read. Invalid patterns are skipped.
pub(crate) fn rules_in(file: File) -> Option<Gitignore> {
    let mut bytes = Vec::new();
    file.take(MAX_BYTES).read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let mut builder = GitignoreBuilder::new("");
    for line in text.strip_prefix('\u{feff}').unwrap_or(&text).lines() {
        // Git skips them, too.
        let _ = builder.add_line(None, line);
    }
    builder.build().ok()
}
