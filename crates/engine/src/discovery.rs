//! Finds the workspace root and the git checkout of a directory.

use std::{
    io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use crate::{
    git,
    state_dir::{StateHome, is_known_root},
    user::effective_user,
};

/// Why a path is in no workspace.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FindRootError {
    /// The path cannot be read.
    #[error("{path}: {error}", path = path.display())]
    Unreadable {
        /// The path as given.
        path: PathBuf,
        /// The error of the system.
        #[source]
        error: io::Error,
    },
    /// The path is not a directory.
    #[error("{path}: not a directory", path = path.display())]
    NotADirectory {
        /// The path, without symlinks.
        path: PathBuf,
    },
    /// The root would be that of the file system or the user's home directory.
    #[error("{path}: not a workspace: everything below it would be one", path = path.display())]
    Everything {
        /// The root that was found.
        path: PathBuf,
    },
    /// The path is in a bare repository.
    #[error("{path}: a bare repository has no workspace; go to one of its worktrees", path = path.display())]
    Bare {
        /// The root that was found.
        path: PathBuf,
    },
}

/// The top of the work tree that contains a path, which need not exist; `None` if there is none.
pub fn work_tree_of(file: &Path, state: &StateHome) -> Option<PathBuf> {
    let directory = file.parent()?.ancestors().find_map(|dir| dir.canonicalize().ok())?;
    git::discover(&directory, state.home.as_deref()).map(|tree| tree.root)
}

/// A checkout of a git repository, for programs that put files into it. Git is not started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GitCheckout {
    root: PathBuf,
    git_dir: PathBuf,
    common_dir: PathBuf,
}

impl GitCheckout {
    /// The checkout that contains a directory.
    pub fn around(dir: &Path, state: &StateHome) -> Option<Self> {
        let tree = git::discover(&dir.canonicalize().ok()?, state.home.as_deref())?;
        let git = tree.git?;
        Some(Self { root: tree.root, git_dir: git.own, common_dir: git.common })
    }

    /// Whether git tracks a file, or anything below a directory. If the index cannot be parsed, the answer is yes.
    pub fn tracks(&self, path: &Path) -> bool {
        self.relative(path).is_some_and(|path| git::tracks(&self.git_dir, &path))
    }

    /// The file with this user's ignore patterns for all worktrees.
    pub fn exclude_file(&self) -> PathBuf {
        self.common_dir.join("info/exclude")
    }

    /// The pattern that makes git ignore exactly this file; `None` if the file is outside the tree or its name is not
    /// UTF-8.
    pub fn exclude_pattern(&self, path: &Path) -> Option<String> {
        let is_special = |char: char| matches!(char, '*' | '?' | '[' | '\\');
        let escaped = |char: char| if is_special(char) { vec!['\\', char] } else { vec![char] };
        let path = self.relative(path).filter(|path| !path.contains('\n') && !path.ends_with(' '))?;
        Some(format!("/{}", path.chars().flat_map(escaped).collect::<String>()))
    }

    fn relative(&self, path: &Path) -> Option<String> {
        let path = path.strip_prefix(&self.root).ok()?;
        path.to_str().filter(|path| !path.is_empty()).map(str::to_owned)
    }
}

/// The top of the work tree around a directory. Without version control, it is the nearest parent that has a state
/// directory, or else the directory itself.
pub fn find_root(from: &Path, state: &StateHome) -> Result<PathBuf, FindRootError> {
    let from = from.canonicalize().map_err(|error| FindRootError::Unreadable { path: from.to_owned(), error })?;
    if !from.is_dir() {
        return Err(FindRootError::NotADirectory { path: from });
    }
    if let Some(tree) = git::discover(&from, state.home.as_deref()) {
        return Ok(tree.root);
    }
    let is_home = |dir: &Path| state.home.as_deref().is_some_and(|home| git::is_same_file(home, dir));
    let may_be_root = |dir: &Path| dir.parent().is_some() && !is_home(dir);
    let is_ours = |dir: &Path| dir.metadata().is_ok_and(|dir| dir.uid() == effective_user());
    let is_known = |dir: &&Path| may_be_root(dir) && is_ours(dir) && is_known_root(dir, state);
    let root = from.ancestors().find(is_known).map_or_else(|| from.clone(), Path::to_owned);
    if git::is_in_bare_repository(&root) {
        return Err(FindRootError::Bare { path: root });
    }
    if may_be_root(&root) { Ok(root) } else { Err(FindRootError::Everything { path: root }) }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests lay out repositories")]
mod tests {
    use std::{fs, process::Command};

    use super::*;

    fn git(dir: &Path, arguments: &[&str]) -> String {
        let mut git = Command::new("git");
        git.env_remove("GIT_DIR").env_remove("GIT_INDEX_FILE").env_remove("GIT_WORK_TREE");
        let output = git.current_dir(dir).args(arguments).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    #[test]
    fn git_does_not_see_excluded_files() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        git(&root, &["init", "-q"]);
        fs::create_dir(root.join("a")).unwrap();
        for name in ["a/committed", "a/mine", "a/min*", "a/[x]"] {
            fs::write(root.join(name), name).unwrap();
        }
        git(&root, &["add", "a/committed"]);
        let checkout = GitCheckout::around(&root.join("a"), &StateHome::default()).unwrap();
        assert!(checkout.tracks(&root.join("a/committed")) && checkout.tracks(&root.join("a")));
        assert!(!checkout.tracks(&root.join("a/mine")) && !checkout.tracks(dir.path().parent().unwrap()));
        let patterns = ["a/min*", "a/[x]"].map(|name| checkout.exclude_pattern(&root.join(name)).unwrap());
        fs::write(checkout.exclude_file(), patterns.join("\n")).unwrap();
        assert_eq!(git(&root, &["status", "--short", "-uall"]), "A  a/committed\n?? a/mine\n");
        assert_eq!(checkout.exclude_pattern(Path::new("/elsewhere")), None);
    }

    #[test]
    fn worktrees_share_the_exclude_file() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        git(&root, &["init", "-q", "main"]);
        git(
            &root.join("main"),
            &["-c", "user.name=a", "-c", "user.email=a@localhost", "commit", "-q", "--allow-empty", "-m", "a"],
        );
        git(&root.join("main"), &["worktree", "add", "-q", "../other"]);
        let checkout = |name: &str| GitCheckout::around(&root.join(name), &StateHome::default()).unwrap();
        assert_eq!(checkout("main").exclude_file(), checkout("other").exclude_file());
        assert_eq!(checkout("other").exclude_pattern(&root.join("other/x")).as_deref(), Some("/x"));
        assert_eq!(GitCheckout::around(&root, &StateHome::default()), None);
    }
}
