//! Directories that are not watched: those that git ignores, and git's and our own. This saves watches on
//! `node_modules` and `target`; nothing depends on it.

use std::{collections::HashMap, os::fd::AsFd, path::Path, sync::Arc};

use ignore::{Match, gitignore::Gitignore};
use rustix::fs::{CWD, FileType, Mode, OFlags, fstat, openat};

use crate::disk::{export_dir::EXPORT_DIR, walk::rules_in};

pub(super) const RULES: &str = ".gitignore";

#[derive(Debug)]
pub(super) struct IgnoredDirs {
    rules: HashMap<Arc<str>, Gitignore>,
    /// The rules of the directories above the root, each with the path from there to the root.
    above: Vec<(Gitignore, String)>,
}

impl IgnoredDirs {
    /// The rules for a root, without those inside it.
    pub(super) fn new(root: &Path) -> Self {
        Self { rules: HashMap::new(), above: rules_above(root).unwrap_or_default() }
    }

    pub(super) fn set(&mut self, path: &Arc<str>, rules: Option<Gitignore>) {
        match rules {
            Some(rules) => drop(self.rules.insert(path.clone(), rules)),
            None => drop(self.rules.remove(path)),
        }
    }

    /// Whether a directory is ignored, if its parent is not. The nearest rule decides.
    pub(super) fn is_ignored(&self, path: &str) -> bool {
        let name = path.rsplit_once('/').map_or(path, |(_, name)| name);
        if name == ".git" || name == EXPORT_DIR {
            return true;
        }
        let mut parent = path;
        while !parent.is_empty() {
            parent = parent.rsplit_once('/').map_or("", |(parent, _)| parent);
            let from_there = if parent.is_empty() { path } else { &path[parent.len() + 1..] };
            if let Some(verdict) = self.rules.get(parent).and_then(|rules| judge(rules, from_there)) {
                return verdict;
            }
        }
        self.above.iter().find_map(|(rules, to_root)| judge(rules, &format!("{to_root}/{path}"))).unwrap_or(false)
    }
}

fn judge(rules: &Gitignore, path: &str) -> Option<bool> {
    match rules.matched(path, true) {
        Match::None => None,
        Match::Ignore(_) => Some(true),
        Match::Whitelist(_) => Some(false),
    }
}

/// The rules from the root's parent to the top of the repository; `None` outside repositories.
fn rules_above(root: &Path) -> Option<Vec<(Gitignore, String)>> {
    let mut above = Vec::new();
    for dir in root.ancestors() {
        if dir != root
            && let Some(rules) = read_rules(CWD, dir.join(RULES))
        {
            above.push((rules, root.strip_prefix(dir).ok()?.to_str()?.to_owned()));
        }
        if dir.join(".git").exists() {
            return Some(above);
        }
    }
    None
}

/// The rules in a file, if it exists. A call waits for this, so a file on which another program holds a lease has none.
pub(super) fn read_rules(dir: impl AsFd, path: impl rustix::path::Arg) -> Option<Gitignore> {
    // A named pipe of this name must not block.
    let file = openat(dir, path, OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty()).ok()?;
    let is_file = FileType::from_raw_mode(fstat(&file).ok()?.st_mode) == FileType::RegularFile;
    is_file.then(|| rules_in(file.into()))?
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests lay out files")]
mod tests {
    use std::fs;

    use super::*;

    /// Checks a repository at `.` with rules in some directories, and the root at `root`.
    #[track_caller]
    fn check(root: &str, rules: &[(&str, &str)], ignored: &[&str], not: &[&str]) {
        let repository = tempfile::tempdir().unwrap();
        fs::create_dir(repository.path().join(".git")).unwrap();
        let root = if root == "." { repository.path().to_owned() } else { repository.path().join(root) };
        for (dir, text) in rules {
            fs::create_dir_all(repository.path().join(dir)).unwrap();
            fs::write(repository.path().join(dir).join(RULES), text).unwrap();
        }
        let mut found = IgnoredDirs::new(&root);
        for (dir, _) in rules {
            let dir = repository.path().join(dir).canonicalize().unwrap();
            if let Ok(inside) = dir.strip_prefix(root.canonicalize().unwrap()) {
                found.set(&inside.to_str().unwrap().into(), read_rules(CWD, dir.join(RULES)));
            }
        }
        for path in ignored {
            assert!(found.is_ignored(path), "{path}");
        }
        for path in not {
            assert!(!found.is_ignored(path), "{path}");
        }
    }

    #[test]
    fn directories_of_git_and_surehand_are_ignored_anywhere() {
        check(".", &[], &[".git", ".surehand", "a/b/.git"], &["a", ".github"]);
    }

    #[test]
    fn rules_hold_beneath_their_directory() {
        let rules = [(".", "target/\n/top\n# comment\n[bad\n"), ("a", "/local\n")];
        check(".", &rules, &["target", "x/target", "top", "a/local"], &["x/top", "local", "a/b/local", "src"]);
    }

    #[test]
    fn the_nearest_rule_decides() {
        check(".", &[(".", "out\n"), ("a", "!out\n")], &["out", "b/out"], &["a/out", "a/b/out"]);
    }

    #[test]
    fn rules_above_the_root_hold_too() {
        check(
            "part",
            &[(".", "node_modules\n/part/made\n"), ("part", "")],
            &["node_modules", "x/node_modules", "made"],
            &["x/made"],
        );
    }

    #[test]
    fn a_pipe_has_no_rules_and_does_not_block() {
        use rustix::fs::{FileType, Mode};
        let dir = tempfile::tempdir().unwrap();
        rustix::fs::mknodat(CWD, dir.path().join(RULES), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        assert!(read_rules(fs::File::open(dir.path()).unwrap(), RULES).is_none());
    }
}
