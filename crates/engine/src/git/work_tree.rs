//! Finds the work tree around a directory.
//!
//! Nothing that a clone or an archive can ship below its top directory may redirect us. A directory that looks like a bare
//! repository is never used as one, and a `.git` file counts only if the git directory that it names agrees.

use std::{
    fs::{self, Metadata},
    io::{ErrorKind, Read},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use crate::user::effective_user;

/// A directory tree under version control.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WorkTree {
    /// Its top directory, without links.
    pub root: PathBuf,
    /// The git directories that belong to it. `None` for other systems (`.jj`, `.hg`, `.sl`), and where `.git` is a link or
    /// names a directory that does not lead back here.
    pub git: Option<GitDirs>,
    /// Where a `.git` file or link leads, whether that agrees or not: git uses it.
    pub points_to: Option<PathBuf>,
}

impl WorkTree {
    pub(crate) fn without_git(root: PathBuf) -> Self {
        Self { root, git: None, points_to: None }
    }
}

/// The git directories of a work tree, without links.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct GitDirs {
    /// Holds what belongs to this checkout alone: `HEAD`, `index`.
    pub own: PathBuf,
    /// The git directory that all worktrees share; equal to `own` if there is only one.
    pub common: PathBuf,
    /// `main`, or the id that git gave a linked worktree.
    pub checkout: String,
}

/// The name of the checkout that a repository begins with.
const MAIN: &str = "main";

/// A `.git` file that is longer is not one.
pub(super) const MAX_GITFILE: u64 = 4096;

/// A git configuration that is longer is not searched for `core.worktree`.
pub(super) const MAX_CONFIG: u64 = 256 * 1024;

/// Entries that mark the top of a work tree of another system.
const OTHER_SYSTEMS: [&str; 3] = [".jj", ".hg", ".sl"];

/// The work tree around a directory: the nearest directory above it, or itself, that is the top of one. `from` is absolute
/// and has no links in it.
///
/// `/` and the home directory are passed over: a repository of dotfiles must not turn everything below it into one workspace.
/// So is a work tree that belongs neither to us nor to root nor to the owner of `from`. Another user could have created it just to be
/// found, and put instructions and settings into it (CVE-2022-24765 of git).
pub(crate) fn discover(from: &Path, home: Option<&Path>) -> Option<WorkTree> {
    let owner = fs::metadata(from).ok()?.uid();
    let find = |tree_at: fn(&Path, u32) -> Option<WorkTree>| {
        let above = from.ancestors().filter(|dir| dir.parent().is_some());
        let mut trees = above.filter_map(|dir| tree_at(dir, owner));
        trees.find(|tree| home.is_none_or(|home| !is_same_file(&tree.root, home)))
    };
    // A clone can ship a directory called `.hg`, but none called `.git`: so inside of git's work trees only git's marks count.
    find(git_tree_at).or_else(|| find(other_tree_at))
}

/// Whether a directory is git's own: a bare repository, or a part of one.
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
        // An empty or broken directory: git passes over it, too.
        () if marker.is_dir() => return None,
        () if marker.is_file() => {
            points_to = read_gitfile(dir, marker.len());
            points_to.clone().and_then(|target| verify_git_dirs(dir, target))
        }
        // A link. Git never checks one out under this name, but an archive can hold it.
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

/// Whether a `.git` counts for a directory of this owner.
fn is_trusted(marker: &Metadata, owner: u32) -> bool {
    [0, effective_user(), owner].contains(&marker.uid())
}

/// What has exactly this name. Where a file system ignores case, `.GIT` answers to `.git` but is not git's.
fn exact_entry(dir: &Path, name: &str) -> Option<Metadata> {
    let entry = fs::symlink_metadata(dir.join(name)).ok()?;
    let same_in_capitals = fs::symlink_metadata(dir.join(name.to_uppercase()))
        .is_ok_and(|other| (other.dev(), other.ino()) == (entry.dev(), entry.ino()));
    if same_in_capitals && !fs::read_dir(dir).ok()?.flatten().any(|entry| entry.file_name() == name) {
        return None;
    }
    Some(entry)
}

/// The directory keeps its literal path: resolving it could follow a link that was swapped in.
fn main_checkout(git_dir: PathBuf) -> GitDirs {
    GitDirs { own: git_dir.clone(), common: git_dir, checkout: MAIN.to_owned() }
}

fn is_repository(git_dir: &Path) -> bool {
    has_head(git_dir) && git_dir.join("objects").is_dir() && git_dir.join("refs").is_dir()
}

fn has_head(git_dir: &Path) -> bool {
    // A symbolic link in old repositories.
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
    // Git writes into a submodule's configuration where its work tree is: a second directory that points there is not that.
    let config = |name: &str| core_worktree(&read_small(&target.join(name), MAX_CONFIG).unwrap_or_default());
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

/// Whether the worktree behind the name of a checkout was removed, in the way in which git finds that out. One that is locked is on a disk that
/// may not be there.
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
    // A submodule of a submodule has its git directory below that of the outermost repository: so submodules in between need not be
    // verified, which could go on and on.
    let above = dir.ancestors().skip(1).filter_map(|above| {
        let marker = exact_entry(above, ".git")?;
        match marker.is_dir() {
            true => Some(main_checkout(above.join(".git"))).filter(|git| is_repository(&git.own)),
            false => linked_worktree(above, read_gitfile(above, marker.len())?),
        }
    });
    above.into_iter().any(|git| is_below(&git.own) || is_below(&git.common))
}

fn core_worktree(config: &str) -> Option<String> {
    config_value(config, "core", "worktree")
}

/// The last value of a key in a git configuration, of a section without a subsection. Included files are not read.
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

/// The text of a small regular file that is not a link.
pub(super) fn read_small(path: &Path, limit: u64) -> Option<String> {
    use rustix::fs::{Mode, OFlags};
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = fs::File::from(rustix::fs::open(path, flags, Mode::empty()).ok()?);
    let meta = file.metadata().ok().filter(|meta| meta.is_file() && meta.len() <= limit)?;
    let mut text = String::with_capacity(meta.len() as usize);
    file.take(limit).read_to_string(&mut text).ok()?;
    Some(text)
}

#[cfg(test)]
mod tests;
