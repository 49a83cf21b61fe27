//! Finds the work tree around a directory.
//!
//! Nothing that a clone or an archive can ship below its top directory may redirect us. A directory that looks like a
//! bare repository is never used as one, and a `.git` file counts only if the git directory that it names agrees.

use std::{
    fs::{self, Metadata},
    io::{ErrorKind, Read},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use super::CannotTell;
use crate::user::effective_user;

/// A directory tree under version control.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WorkTree {
    /// Its top directory, without symlinks.
    pub root: PathBuf,
    /// The git directories that belong to it. `None` for other systems (`.jj`, `.hg`, `.sl`), and if `.git` is a
    /// symlink or names a directory that does not point back here.
    pub git: Option<GitDirs>,
    /// Where a `.git` file or symlink points, whether the target agrees or not: git uses it.
    pub points_to: Option<PathBuf>,
}

impl WorkTree {
    pub(crate) fn without_git(root: PathBuf) -> Self {
        Self { root, git: None, points_to: None }
    }
}

/// The git directories of a work tree, without symlinks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct GitDirs {
    /// Holds the files that belong to this checkout alone: `HEAD`, `index`.
    pub own: PathBuf,
    /// The git directory that all worktrees share; equal to `own` if there is only one.
    pub common: PathBuf,
    /// `main`, or the id that git gave a linked worktree.
    pub checkout: String,
}

/// Name of the first checkout of a repository.
const MAIN: &str = "main";

/// A longer `.git` file does not count.
pub(super) const MAX_GITFILE: u64 = 4096;

/// A longer git configuration is not searched for `core.worktree`.
pub(super) const MAX_CONFIG: u64 = 256 * 1024;

/// Entries that mark the top of a work tree of another system.
const OTHER_SYSTEMS: [&str; 3] = [".jj", ".hg", ".sl"];

/// Finds the work tree around a directory: the nearest directory, itself or above, that is the top of one. `from` is
/// absolute and contains no symlinks.
///
/// `/` and the home directory are skipped: a repository of dotfiles must not turn everything below it into one
/// workspace. A work tree that belongs neither to us nor to root nor to the owner of `from` is skipped, too. Another
/// user could have created it just to be found, and put instructions and settings into it (CVE-2022-24765 of git).
pub(crate) fn discover(from: &Path, home: Option<&Path>) -> Option<WorkTree> {
    let owner = fs::metadata(from).ok()?.uid();
    let find = |tree_at: fn(&Path, u32) -> Option<WorkTree>| {
        let above = from.ancestors().filter(|dir| dir.parent().is_some());
        let mut trees = above.filter_map(|dir| tree_at(dir, owner));
        trees.find(|tree| home.is_none_or(|home| !is_same_file(&tree.root, home)))
    };
    // A clone can ship a directory called `.hg`, but none called `.git`. So inside git's work trees only git's marks
    // count.
    find(git_tree_at).or_else(|| find(other_tree_at))
}

/// Whether a directory is a bare repository, or inside one.
pub(crate) fn is_in_bare_repository(dir: &Path) -> bool {
    dir.ancestors().take_while(|dir| fs::symlink_metadata(dir.join(".git")).is_err()).any(is_repository)
}

pub(crate) fn is_same_file(one: &Path, other: &Path) -> bool {
    let identity = |path: &Path| fs::metadata(path).ok().map(|meta| (meta.dev(), meta.ino()));
    identity(one).is_some_and(|one| Some(one) == identity(other))
}

fn git_tree_at(dir: &Path, owner: u32) -> Option<WorkTree> {
    let marker = exact_entry(dir, ".git").filter(|marker| is_trusted(marker, owner))?;
    let dot_git = dir.join(".git");
    let mut points_to = None;
    let git = match () {
        () if marker.is_dir() && is_repository(&dot_git) => Some(main_checkout(dot_git)),
        // An empty or broken directory: git skips it, too.
        () if marker.is_dir() => return None,
        () if marker.is_file() => {
            points_to = read_gitfile(dir, marker.len());
            points_to.clone().and_then(|target| verify_git_dirs(dir, target))
        }
        // A symlink. Git never checks one out under this name, but an archive can contain one.
        () => {
            points_to = dot_git.canonicalize().ok();
            None
        }
    };
    Some(WorkTree { root: dir.to_owned(), git, points_to })
}

fn other_tree_at(dir: &Path, owner: u32) -> Option<WorkTree> {
    let is_mark = |marker: &Metadata| marker.is_dir() && is_trusted(marker, owner);
    let is_top = OTHER_SYSTEMS.iter().any(|name| exact_entry(dir, name).is_some_and(|marker| is_mark(&marker)));
    is_top.then(|| WorkTree::without_git(dir.to_owned()))
}

/// Whether a `.git` entry counts for a directory of this owner.
fn is_trusted(marker: &Metadata, owner: u32) -> bool {
    [0, effective_user(), owner].contains(&marker.uid())
}

/// The entry with exactly this name. On a file system that ignores case, `.GIT` is found as `.git` but is not git's.
fn exact_entry(dir: &Path, name: &str) -> Option<Metadata> {
    let entry = fs::symlink_metadata(dir.join(name)).ok()?;
    let same_in_capitals = fs::symlink_metadata(dir.join(name.to_uppercase()))
        .is_ok_and(|other| (other.dev(), other.ino()) == (entry.dev(), entry.ino()));
    if same_in_capitals && !fs::read_dir(dir).ok()?.flatten().any(|entry| entry.file_name() == name) {
        return None;
    }
    Some(entry)
}

/// The directory keeps its literal path: resolving it could follow a symlink that was swapped in.
fn main_checkout(git_dir: PathBuf) -> GitDirs {
    GitDirs { own: git_dir.clone(), common: git_dir, checkout: MAIN.to_owned() }
}

fn is_repository(git_dir: &Path) -> bool {
    has_head(git_dir) && git_dir.join("objects").is_dir() && git_dir.join("refs").is_dir()
}

fn has_head(git_dir: &Path) -> bool {
    // A symlink in old repositories.
    fs::symlink_metadata(git_dir.join("HEAD")).is_ok_and(|head| !head.is_dir())
}

fn read_gitfile(dir: &Path, size: u64) -> Option<PathBuf> {
    let text = (size <= MAX_GITFILE).then(|| read_small(&dir.join(".git"), MAX_GITFILE)).flatten()?;
    let target = text.strip_prefix("gitdir:")?.trim_matches([' ', '\t', '\r', '\n']);
    let target = dir.join(target).canonicalize().ok()?;
    has_head(&target).then_some(target)
}

/// The git directories behind a `.git` file, if they agree that this is their work tree.
fn verify_git_dirs(dir: &Path, target: PathBuf) -> Option<GitDirs> {
    if fs::symlink_metadata(target.join("commondir")).is_ok() {
        return linked_worktree(dir, target);
    }
    // Git writes the path of its work tree into a submodule's configuration: a second directory that points there is
    // not it.
    let config = |name: &str| {
        let text = read_small(&target.join(name), MAX_CONFIG)?;
        config_value(&text, "core", "worktree")
    };
    let is_ours = match config("config.worktree").or_else(|| config("config")) {
        Some(path) => target.join(path).canonicalize().is_ok_and(|path| path == dir),
        None => lies_in_modules_above(dir, &target),
    };
    (is_ours && is_repository(&target)).then(|| main_checkout(target))
}

/// `<target>/gitdir` must name the `.git` file back, and `<target>` must be where its repository keeps worktrees.
fn linked_worktree(dir: &Path, target: PathBuf) -> Option<GitDirs> {
    let back = read_small(&target.join("gitdir"), MAX_GITFILE)?;
    let common = read_small(&target.join("commondir"), MAX_GITFILE)?;
    let common = target.join(common.trim_end_matches(['\r', '\n'])).canonicalize().ok()?;
    let leads_back = target.join(back.trim_end_matches(['\r', '\n'])).canonicalize().is_ok_and(|back| back == dir.join(".git"));
    let is_kept_there = target.parent() == Some(&common.join("worktrees"));
    let checkout = target.file_name()?.to_str()?.to_owned();
    // The first checkout has the name `main`; git makes no id with `~` in it.
    let checkout = if checkout == MAIN { format!("{MAIN}~worktree") } else { checkout };
    (leads_back && is_kept_there && is_repository(&common)).then_some(GitDirs { own: target, common, checkout })
}

/// Whether the worktree with this checkout name was removed, by git's own rules. A locked worktree may be on a disk
/// that is not mounted.
pub(crate) fn is_worktree_gone(common: &Path, checkout: &str) -> bool {
    if checkout == MAIN {
        return false;
    }
    let id = if checkout == format!("{MAIN}~worktree") { MAIN } else { checkout };
    let own = common.join("worktrees").join(id);
    let is_missing = |path: &Path| fs::symlink_metadata(path).is_err_and(|error| error.kind() == ErrorKind::NotFound);
    let leads_nowhere = || {
        let dot_git = read_small(&own.join("gitdir"), MAX_GITFILE);
        dot_git.is_some_and(|dot_git| is_missing(&own.join(dot_git.trim_end_matches(['\r', '\n']))))
    };
    is_missing(&own) || (is_missing(&own.join("locked")) && leads_nowhere())
}

/// Whether a git directory belongs to a submodule of a repository around this directory.
fn lies_in_modules_above(dir: &Path, target: &Path) -> bool {
    let is_below = |git_dir: &Path| target.starts_with(git_dir.join("modules"));
    // The git directory of a nested submodule lies below that of the outermost repository. So submodules in between
    // need not be verified, which could take any number of steps.
    let above = dir.ancestors().skip(1).filter_map(|above| {
        let marker = exact_entry(above, ".git")?;
        match marker.is_dir() {
            true => Some(main_checkout(above.join(".git"))).filter(|git| is_repository(&git.own)),
            false => linked_worktree(above, read_gitfile(above, marker.len())?),
        }
    });
    above.into_iter().any(|git| is_below(&git.own) || is_below(&git.common))
}

/// The last value of a key in one section of a git configuration. Included files are not read.
pub(super) fn config_value(config: &str, section: &str, key: &str) -> Option<String> {
    let mut is_in_section = false;
    let mut found = None;
    for line in config.lines().map(str::trim) {
        if let Some(header) = line.strip_prefix('[') {
            is_in_section = header.split(']').next().is_some_and(|name| name.trim().eq_ignore_ascii_case(section));
        } else if let (true, Some((name, value))) = (is_in_section, line.split_once('='))
            && name.trim().eq_ignore_ascii_case(key)
        {
            found = Some(unquoted(value.trim()));
        }
    }
    found
}

/// A value without its quotes and escapes, as git writes them for paths with `#`, `;`, `"`, `\\` or blanks at an end.
fn unquoted(value: &str) -> String {
    let (mut out, mut is_quoted) = (String::new(), false);
    let mut chars = value.chars();
    while let Some(char) = chars.next() {
        match char {
            '"' => is_quoted = !is_quoted,
            '\\' => out.extend(chars.next().map(|escaped| match escaped {
                'n' => '\n',
                't' => '\t',
                'b' => '\u{8}',
                other => other,
            })),
            '#' | ';' if !is_quoted => break,
            other => out.push(other),
        }
    }
    if value.ends_with('"') { out } else { out.trim_end().to_owned() }
}

/// Opens a file for reading, unless it is a symlink.
pub(super) fn open_plain(path: &Path) -> rustix::io::Result<fs::File> {
    use rustix::fs::{Mode, OFlags};
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::empty()).map(fs::File::from)
}

/// Reads a regular file of at most `limit` bytes that is not a symlink.
pub(super) fn read_small(path: &Path, limit: u64) -> Option<String> {
    let file = open_plain(path).ok()?;
    let meta = file.metadata().ok().filter(|meta| meta.is_file() && meta.len() <= limit)?;
    let mut text = String::with_capacity(meta.len() as usize);
    file.take(limit).read_to_string(&mut text).ok()?;
    Some(text)
}

/// Reads a list in a git directory; empty if it does not exist.
pub(super) fn read_list(path: &Path, limit: u64) -> Result<String, CannotTell> {
    if fs::symlink_metadata(path).is_err() {
        return Ok(String::new());
    }
    read_small(path, limit).ok_or_else(|| CannotTell::of(path, "it cannot be read"))
}

#[cfg(test)]
mod tests;
