//! Ignore rules: `.gitignore`, `.ignore` and `.git/info/exclude`, from the workspace root down. Rules above the root and the
//! user's global rules are not read. ripgrep's crate matches patterns; this module decides which file has the last word.

use std::{ffi::CStr, os::fd::OwnedFd, sync::Arc};

use ignore::{
    Match,
    gitignore::{Gitignore, GitignoreBuilder},
};
use rustix::fs::{self as sys, Mode};

use super::{DIR_FLAGS, open_file};

/// The names that make a directory one with rules of its own.
pub(super) const NAMES: [&CStr; 3] = [c".gitignore", c".ignore", c".git"];

/// More of an ignore file than this is not read.
const MAX_BYTES: usize = 1 << 20;

/// The rules of a directory and of those above it.
#[derive(Debug)]
pub(super) struct IgnoreRules {
    /// How many bytes of a path lead to this directory.
    prefix: usize,
    ignore: Gitignore,
    gitignore: Gitignore,
    exclude: Gitignore,
    /// Whether it is the root of a repository, where git's rules from further up end.
    is_repository: bool,
    above: Option<Arc<IgnoreRules>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum IgnoreVerdict {
    Ignored,
    Kept,
}

impl IgnoreRules {
    /// The rules in a directory, with those above it.
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

    /// What is said about a path. The nearest file has the last word; `.ignore` has it before `.gitignore`.
    pub(super) fn judge(&self, path: &str, is_dir: bool) -> IgnoreVerdict {
        let (mut ignore, mut gitignore, mut exclude) = (PatternMatch::None, PatternMatch::None, PatternMatch::None);
        let mut is_same_repository = true;
        let mut next = Some(self);
        while let Some(rules) = next {
            let path = &path[rules.prefix..];
            ignore = ignore.or(|| PatternMatch::of(&rules.ignore, path, is_dir));
            if is_same_repository {
                gitignore = gitignore.or(|| PatternMatch::of(&rules.gitignore, path, is_dir));
                exclude = exclude.or(|| PatternMatch::of(&rules.exclude, path, is_dir));
            }
            is_same_repository &= !rules.is_repository;
            next = rules.above.as_deref();
        }
        match ignore.or(|| gitignore).or(|| exclude) {
            PatternMatch::Ignore => IgnoreVerdict::Ignored,
            PatternMatch::Keep | PatternMatch::None => IgnoreVerdict::Kept,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PatternMatch {
    None,
    Ignore,
    Keep,
}

impl PatternMatch {
    fn of(rules: &Gitignore, path: &str, is_dir: bool) -> Self {
        match rules.matched(path, is_dir) {
            Match::None => PatternMatch::None,
            Match::Ignore(_) => PatternMatch::Ignore,
            Match::Whitelist(_) => PatternMatch::Keep,
        }
    }

    fn or(self, other: impl FnOnce() -> PatternMatch) -> Self {
        if self == PatternMatch::None { other() } else { self }
    }
}

fn exclude(dir: &OwnedFd) -> Gitignore {
    let open = |dir: &OwnedFd, name: &CStr| sys::openat(dir, name, DIR_FLAGS, Mode::empty());
    match open(dir, c".git").and_then(|git| open(&git, c"info")) {
        Ok(info) => parse(&info, c"exclude"),
        Err(_) => Gitignore::empty(),
    }
}

/// The patterns of an ignore file. One that is not there or cannot be read has none; a pattern that makes no sense is passed over.
fn parse(dir: &OwnedFd, name: &CStr) -> Gitignore {
    let Some(bytes) = read(dir, name) else { return Gitignore::empty() };
    let text = String::from_utf8_lossy(&bytes);
    let mut builder = GitignoreBuilder::new("");
    for line in text.strip_prefix('\u{feff}').unwrap_or(&text).lines() {
        // Git does the same.
        let _ = builder.add_line(None, line);
    }
    builder.build().unwrap_or_else(|_| Gitignore::empty())
}

fn read(dir: &OwnedFd, name: &CStr) -> Option<Vec<u8>> {
    use std::io::Read;
    let (fd, _) = open_file(dir, name).ok()??;
    let mut bytes = Vec::new();
    std::fs::File::from(fd).take(MAX_BYTES as u64).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}
