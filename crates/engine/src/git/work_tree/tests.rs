//! Work trees that clones, archives and git itself create.

#![expect(clippy::disallowed_methods, reason = "tests lay out repositories")]

use std::process::Command;

use super::*;

struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn at(&self, path: &str) -> PathBuf {
        self.0.path().canonicalize().unwrap().join(path)
    }

    fn write(&self, path: &str, text: &str) {
        fs::create_dir_all(self.at(path).parent().unwrap()).unwrap();
        fs::write(self.at(path), text).unwrap();
    }

    fn git(&self, dir: &str, arguments: &[&str]) {
        fs::create_dir_all(self.at(dir)).unwrap();
        let mut git = Command::new("git");
        for variable in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR"] {
            git.env_remove(variable);
        }
        let settings = ["user.name=a", "user.email=a@b", "protocol.file.allow=always", "commit.gpgsign=false"];
        let settings = settings.iter().flat_map(|setting| ["-c", setting]);
        let output = git.current_dir(self.at(dir)).args(settings).args(arguments).output().unwrap();
        assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    }

    fn repository(&self, dir: &str) {
        self.git(dir, &["init", "-q", "-b", "trunk"]);
        self.write(&format!("{dir}/a.txt"), "a\n");
        self.git(dir, &["add", "."]);
        self.git(dir, &["commit", "-q", "-m", "a"]);
    }

    #[track_caller]
    fn check(&self, from: &str, root: Option<&str>, common: Option<&str>, checkout: &str) {
        let found = discover(&self.at(from), None);
        assert_eq!(found.as_ref().map(|tree| tree.root.clone()), root.map(|root| self.at(root)));
        let git = found.and_then(|tree| tree.git);
        assert_eq!(git.as_ref().map(|git| git.common.clone()), common.map(|common| self.at(common)));
        assert_eq!(git.map_or(String::new(), |git| git.checkout), checkout);
    }
}

#[test]
fn a_clone_is_found_from_anywhere_below_it() {
    let place = Place::new();
    place.repository("one");
    place.write("one/src/deep/b.txt", "");
    for from in ["one", "one/src", "one/src/deep"] {
        place.check(from, Some("one"), Some("one/.git"), "main");
    }
    place.check("", None, None, "");
}

#[test]
fn worktrees_share_a_repository_and_have_names_of_their_own() {
    let place = Place::new();
    place.repository("one");
    place.git("one", &["worktree", "add", "-q", "../two"]);
    place.git("one", &["worktree", "add", "-q", "../main"]);
    place.check("two", Some("two"), Some("one/.git"), "two");
    place.check("main", Some("main"), Some("one/.git"), "main~worktree");
    place.check("one", Some("one"), Some("one/.git"), "main");
}

#[test]
fn a_submodule_is_a_repository_of_its_own() {
    let place = Place::new();
    place.repository("library");
    place.repository("one");
    place.git("one", &["submodule", "--quiet", "add", "../library", "vendor/lib"]);
    place.check("one/vendor/lib", Some("one/vendor/lib"), Some("one/.git/modules/vendor/lib"), "main");
    place.git("one", &["commit", "-q", "-m", "lib"]);
    place.git("one", &["worktree", "add", "-q", "../two"]);
    place.git("two", &["submodule", "--quiet", "update", "--init"]);
    place.check("two/vendor/lib", Some("two/vendor/lib"), Some("one/.git/worktrees/two/modules/vendor/lib"), "main");
}

#[test]
fn a_nested_clone_is_its_own() {
    let place = Place::new();
    place.repository("one");
    place.repository("one/vendor/other");
    place.check("one/vendor/other", Some("one/vendor/other"), Some("one/vendor/other/.git"), "main");
    place.check("one/vendor", Some("one"), Some("one/.git"), "main");
}

#[test]
fn a_shipped_bare_repository_is_only_a_directory() {
    let place = Place::new();
    place.repository("one");
    place.git("one/bare", &["init", "-q", "--bare"]);
    place.check("one/bare", Some("one"), Some("one/.git"), "main");
    place.check("one/bare/refs", Some("one"), Some("one/.git"), "main");
}

#[test]
fn a_git_file_counts_only_if_its_target_agrees() {
    let place = Place::new();
    place.repository("victim");
    place.repository("one");
    place.git("one", &["worktree", "add", "-q", "../two"]);
    // Another user's repository, directly and through a worktree of it that exists.
    place.write("evil/.git", &format!("gitdir: {}\n", place.at("victim/.git").display()));
    place.check("evil", Some("evil"), None, "");
    place.write("evil/.git", &format!("gitdir: {}\n", place.at("one/.git/worktrees/two").display()));
    place.check("evil", Some("evil"), None, "");
    // A shipped worktree directory with false claims.
    place.write("evil/x/HEAD", "ref: refs/heads/trunk\n");
    place.write("evil/x/commondir", "../../victim/.git\n");
    place.write("evil/x/gitdir", &format!("{}\n", place.at("evil/.git").display()));
    place.write("evil/.git", "gitdir: x\n");
    place.check("evil", Some("evil"), None, "");
    for nonsense in ["", "gitdir:", "gitdir: /nowhere", "hello", &format!("gitdir: {}", "x/".repeat(4000))] {
        place.write("evil/.git", nonsense);
        place.check("evil", Some("evil"), None, "");
    }
}

#[test]
fn a_separate_git_directory_counts_where_it_names_its_work_tree() {
    let place = Place::new();
    place.git("one", &["init", "-q", "--separate-git-dir", "../kept.git"]);
    place.check("one", Some("one"), None, "");
    place.git("one", &["config", "core.worktree", place.at("one").to_str().unwrap()]);
    place.check("one", Some("one"), Some("kept.git"), "main");
    place.git("one", &["config", "core.worktree", "../one"]);
    place.check("one", Some("one"), Some("kept.git"), "main");
}

#[test]
fn other_systems_mark_a_root_and_a_link_does_not_lead_anywhere() {
    let place = Place::new();
    for system in OTHER_SYSTEMS {
        place.write(&format!("{system}-tree/{system}/x"), "");
        place.write(&format!("{system}-tree/src/x"), "");
        place.check(&format!("{system}-tree/src"), Some(&format!("{system}-tree")), None, "");
    }
    place.repository("victim");
    // A mark that a clone ships does not split its work tree.
    place.write("victim/sub/.hg/store/x", "");
    place.check("victim/sub", Some("victim"), Some("victim/.git"), "main");
    fs::create_dir(place.at("linked")).unwrap();
    std::os::unix::fs::symlink(place.at("victim/.git"), place.at("linked/.git")).unwrap();
    place.check("linked", Some("linked"), None, "");
}

#[test]
fn an_empty_git_directory_and_the_home_are_passed_over() {
    let place = Place::new();
    place.repository("home");
    place.write("home/project/src/a.txt", "");
    fs::create_dir(place.at("home/project/.git")).unwrap();
    place.check("home/project/src", Some("home"), Some("home/.git"), "main");
    assert_eq!(discover(&place.at("home/project/src"), Some(&place.at("home"))), None);
    assert_eq!(discover(Path::new("/"), None), None);
}

#[test]
fn the_work_tree_is_found_in_a_configuration() {
    let found = |config: &str| config_value(config, "core", "worktree").unwrap();
    assert_eq!(found("[core]\n\tbare = false\n\tworktree = ../x y\n"), "../x y");
    assert_eq!(found("[Core]\nWorkTree=/a\n[remote \"x\"]\nworktree = /b\n"), "/a");
    assert_eq!(found("[core]\nworktree = \"../c#\\\"lib \"\n"), "../c#\"lib ");
    assert_eq!(found("[core]\nworktree = /a # here\n"), "/a");
    assert_eq!(config_value("[remote]\nworktree = /b\n", "core", "worktree"), None);
}
