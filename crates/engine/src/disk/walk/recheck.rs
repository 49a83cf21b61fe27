//! Checks known files that a walk did not find: are they gone, or ignored by now? It follows the rules of the walk and,
//! like it, never leaves the root.

use std::{os::fd::OwnedFd, sync::Arc};

use rustix::{
    fs::{self as sys, AtFlags, FileType, Mode},
    io::Errno,
};

use super::{
    super::{export_dir::is_internal, root_dir::RootDir},
    DIR_FLAGS,
    ignore_rules::IgnoreRules,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RecheckResult {
    /// There is no regular file of that name any more.
    Gone,
    Ignored,
    /// It exists and is not ignored: it was missing for a moment, or its directory cannot be read.
    Kept,
}

/// Checks files, one directory after the other. Directories on the way stay open, so that neighbours are found quickly.
#[derive(Debug)]
pub(crate) struct FileRecheck {
    levels: Vec<RecheckLevel>,
}

#[derive(Debug)]
struct RecheckLevel {
    fd: OwnedFd,
    /// Its path with a trailing `/`; empty for the root.
    prefix: String,
    rules: Option<Arc<IgnoreRules>>,
    is_ignored: bool,
}

impl RecheckLevel {
    fn ignores(&self, path: &str, is_dir: bool) -> bool {
        self.is_ignored
            || is_internal(&path[self.prefix.len()..])
            || self.rules.as_ref().is_some_and(|rules| rules.ignores(path, is_dir))
    }
}

impl FileRecheck {
    pub(crate) fn of(root: &RootDir) -> rustix::io::Result<Self> {
        let fd = rustix::io::fcntl_dupfd_cloexec(root.dir(), 0)?;
        let rules = IgnoreRules::here(&fd, 0, None);
        Ok(Self { levels: vec![RecheckLevel { fd, prefix: String::new(), rules, is_ignored: false }] })
    }

    /// Checks files of a directory, which is empty for the root. Returns one result for each name.
    pub(crate) fn check(&mut self, dir: &str, names: &[&str]) -> Vec<RecheckResult> {
        match self.enter(dir) {
            Ok(level) => names.iter().map(|name| level.check_one(name)).collect(),
            // It is gone, or something else has taken its place.
            Err(Errno::NOENT | Errno::LOOP | Errno::NOTDIR) => vec![RecheckResult::Gone; names.len()],
            Err(_) => vec![RecheckResult::Kept; names.len()],
        }
    }

    fn enter(&mut self, dir: &str) -> rustix::io::Result<&RecheckLevel> {
        let path = if dir.is_empty() { String::new() } else { format!("{dir}/") };
        while !path.starts_with(&self.last().prefix) {
            self.levels.pop();
        }
        let open = self.last().prefix.len();
        for part in path[open..].split_terminator('/') {
            let next = self.last().descend(part)?;
            self.levels.push(next);
        }
        Ok(self.last())
    }

    fn last(&self) -> &RecheckLevel {
        self.levels.last().expect("the root stays, since every path starts with its empty prefix")
    }
}

impl RecheckLevel {
    fn descend(&self, part: &str) -> rustix::io::Result<RecheckLevel> {
        let path = format!("{}{part}", self.prefix);
        let fd = sys::openat(&self.fd, part, DIR_FLAGS, Mode::empty())?;
        let is_ignored = self.ignores(&path, true);
        let prefix = format!("{path}/");
        // Nothing in an ignored directory can be brought back.
        let rules = if is_ignored { None } else { IgnoreRules::here(&fd, prefix.len(), self.rules.clone()) };
        Ok(RecheckLevel { fd, prefix, rules, is_ignored })
    }

    fn check_one(&self, name: &str) -> RecheckResult {
        match sys::statat(&self.fd, name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => RecheckResult::Gone,
            Ok(stat) if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile => RecheckResult::Gone,
            Err(_) => RecheckResult::Kept,
            Ok(_) if self.ignores(&format!("{}{name}", self.prefix), false) => RecheckResult::Ignored,
            Ok(_) => RecheckResult::Kept,
        }
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests lay out files")]
mod tests {
    use std::{fs, os::unix::fs::symlink};

    use super::*;

    #[test]
    fn files_are_gone_ignored_or_kept() {
        let dir = tempfile::tempdir().unwrap();
        for (path, content) in [
            (".gitignore", "*.log\nout/\n"),
            ("a.rs", ""),
            ("a.log", ""),
            ("out/.gitignore", "!*\n"),
            ("out/deep/a.rs", ""),
            ("sub/.gitignore", "!keep.log\n"),
            ("sub/keep.log", ""),
            ("sub/a.log", ""),
            ("sub-b/x/a.rs", ""),
        ] {
            fs::create_dir_all(dir.path().join(path).parent().unwrap()).unwrap();
            fs::write(dir.path().join(path), content).unwrap();
        }
        symlink("a.rs", dir.path().join("link")).unwrap();
        symlink("sub", dir.path().join("alias")).unwrap();
        let mut recheck = FileRecheck::of(&RootDir::open(dir.path()).unwrap()).unwrap();
        for (in_dir, name, expected) in [
            ("", "a.rs", RecheckResult::Kept),
            ("", "a.log", RecheckResult::Ignored),
            ("", "none", RecheckResult::Gone),
            ("", "link", RecheckResult::Gone),
            ("", "sub", RecheckResult::Gone),
            ("a.rs", "b", RecheckResult::Gone),
            ("alias", "keep.log", RecheckResult::Gone),
            ("none/deeper", "b", RecheckResult::Gone),
            ("out/deep", "a.rs", RecheckResult::Ignored),
            ("sub", "keep.log", RecheckResult::Kept),
            ("sub", "a.log", RecheckResult::Ignored),
            ("sub-b/x", "a.rs", RecheckResult::Kept),
            ("sub", "gone.log", RecheckResult::Gone),
        ] {
            assert_eq!(recheck.check(in_dir, &[name]), [expected], "{in_dir}/{name}");
        }
    }
}
