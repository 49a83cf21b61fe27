//! Places, owners and keys of the state, on real directories.

use std::{
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt, symlink},
};

use super::*;
use crate::git;

struct Fixture {
    dir: tempfile::TempDir,
    home: StateHome,
}

impl Fixture {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let home = StateHome { user: Some(dir.path().join("home/state/surehand")), ..StateHome::default() };
        let fixture = Self { dir, home };
        for part in ["repo/.git/objects", "repo/.git/refs", "plain"] {
            fs::create_dir_all(fixture.at(part)).unwrap();
        }
        fs::write(fixture.at("repo/.git/HEAD"), "ref: refs/heads/main\n").unwrap();
        fixture
    }

    fn at(&self, path: &str) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join(path)
    }

    fn tree(&self, path: &str) -> WorkTree {
        let root = self.at(path);
        git::discover(&root, None).unwrap_or(WorkTree::without_git(root))
    }

    fn open(&self, path: &str) -> StateDir {
        StateDir::open(&self.tree(path), &self.home).unwrap()
    }
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o7777
}

#[test]
fn a_repository_holds_its_state_and_other_trees_are_in_the_users_directory() {
    let fixture = Fixture::new();
    assert!(StateDir::find(&fixture.tree("repo"), &fixture.home).unwrap().is_none());
    assert!(StateDir::find(&fixture.tree("plain"), &fixture.home).unwrap().is_none());
    assert!(!fixture.at("repo/.git/surehand").exists() && !fixture.at("home").exists(), "looking makes nothing");
    let repo = fixture.open("repo");
    assert_eq!(repo.checkout_path, fixture.at("repo/.git/surehand/checkouts/main"));
    assert_eq!(mode(&fixture.at("repo/.git/surehand")), 0o700);
    let plain = fixture.open("plain");
    assert!(plain.path.starts_with(fixture.dir.path().join("home/state/surehand/roots")), "{plain:?}");
    assert!(plain.path.file_name().unwrap().to_str().unwrap().starts_with("plain-"));
    assert_eq!(mode(&plain.path), 0o700);
    assert_eq!(fixture.open("repo").key, repo.key);
    assert_eq!(StateDir::find(&fixture.tree("plain"), &fixture.home).unwrap().unwrap().key, plain.key);
    assert!(is_known_root(&fixture.at("plain"), &fixture.home) && !is_known_root(&fixture.at("repo"), &fixture.home));
}

#[test]
fn the_reason_why_no_state_can_be_made_is_known_in_advance() {
    let fixture = Fixture::new();
    let why = |path: &str| why_not_made(&fixture.tree(path), &fixture.home).map(|error| error.to_string());
    assert_eq!((why("repo"), why("plain")), (None, None));
    assert!(!fixture.at("repo/.git/surehand").exists() && !fixture.at("home").exists(), "asking makes nothing");
    fs::write(fixture.at("home"), "in the way").unwrap();
    assert!(why("plain").is_some_and(|why| why.contains("home/state/surehand: cannot use the state directory")));
    assert_eq!(why("repo"), None);
    let nowhere = StateHome::default();
    assert!(matches!(why_not_made(&fixture.tree("plain"), &nowhere), Some(StateDirError::NoPlace)));
    if !rustix::process::geteuid().is_root() {
        fs::set_permissions(fixture.at("repo/.git"), fs::Permissions::from_mode(0o500)).unwrap();
        let why = why("repo");
        fs::set_permissions(fixture.at("repo/.git"), fs::Permissions::from_mode(0o700)).unwrap();
        assert!(why.is_some_and(|why| why.contains(".git/surehand: cannot use")));
    }
}

#[test]
fn a_state_directory_that_others_could_touch_is_passed_over_and_left_as_it_is() {
    let fixture = Fixture::new();
    let state = fixture.at("repo/.git/surehand");
    fs::create_dir(&state).unwrap();
    for shape in ["open", "link", "file"] {
        match shape {
            "open" => fs::set_permissions(&state, fs::Permissions::from_mode(0o755)).unwrap(),
            "link" => {
                fs::remove_dir(&state).unwrap();
                fs::create_dir(fixture.at("elsewhere")).unwrap();
                symlink(fixture.at("elsewhere"), &state).unwrap();
            }
            _ => {
                fs::remove_file(&state).unwrap();
                fs::write(&state, "mine").unwrap();
            }
        }
        let opened = fixture.open("repo");
        assert!(opened.path.starts_with(fixture.dir.path().join("home")), "{shape}: {opened:?}");
        assert_eq!(opened.passed_over.as_ref().unwrap().path, state, "{shape}");
    }
    assert_eq!(fs::read_to_string(&state).unwrap(), "mine");
    assert_eq!(fs::read_dir(fixture.at("elsewhere")).unwrap().count(), 0);
}

#[test]
fn a_fixed_place_holds_everything() {
    let mut fixture = Fixture::new();
    fixture.home.fixed = Some(fixture.at("fixed"));
    assert!(fixture.open("repo").path.starts_with(fixture.at("fixed")));
    assert!(fixture.open("plain").path.starts_with(fixture.at("fixed")));
    assert!(!fixture.at("repo/.git/surehand").exists());
}

#[test]
fn without_a_place_there_is_no_state() {
    let fixture = Fixture::new();
    let error = StateDir::open(&fixture.tree("plain"), &StateHome::default()).unwrap_err();
    assert!(matches!(error, StateDirError::NoPlace));
    assert!(StateDir::find(&fixture.tree("plain"), &StateHome::default()).unwrap().is_none());
}

#[test]
fn the_state_of_another_tree_is_set_aside() {
    let fixture = Fixture::new();
    let first = fixture.open("repo");
    fs::write(first.checkout_path.join("journal"), "theirs").unwrap();
    // The same directory under another name goes on.
    fs::rename(fixture.at("repo"), fixture.at("moved")).unwrap();
    assert_eq!(fixture.open("moved").key, first.key);
    // A copy does not.
    assert!(
        std::process::Command::new("cp").arg("-a").arg(fixture.at("moved")).arg(fixture.at("copy")).status().unwrap().success()
    );
    let copy = fixture.open("copy");
    assert_ne!(copy.key, first.key);
    assert!(!copy.checkout_path.join("journal").exists());
    let names: Vec<String> = fs::read_dir(fixture.at("copy/.git/surehand/checkouts"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert!(names.iter().any(|name| name.starts_with("old-")), "{names:?}");
    assert!(fixture.at("moved/.git/surehand/checkouts/main/journal").exists());
}

#[test]
fn a_malformed_identity_belongs_to_no_tree() {
    let fixture = Fixture::new();
    let key = fixture.open("repo").key.clone();
    for nonsense in [" ", "{}", "{\"path\":\"/\",\"device\":1,\"inode\":1,\"key\":\"\"}", &"x".repeat(20_000)] {
        fs::write(fixture.at("repo/.git/surehand/checkouts/main/root"), nonsense).unwrap();
        assert!(StateDir::find(&fixture.tree("repo"), &fixture.home).unwrap().is_none(), "{nonsense:.40}");
        assert_ne!(fixture.open("repo").key, key);
    }
}

#[test]
fn the_state_of_a_newer_program_is_not_touched() {
    let fixture = Fixture::new();
    fixture.open("repo");
    let root = fixture.at("repo/.git/surehand/checkouts/main/root");
    fs::write(&root, "{\"format\":2,\"anything\":[]}").unwrap();
    let error = StateDir::open(&fixture.tree("repo"), &fixture.home).unwrap_err();
    assert!(error.to_string().contains("update surehand"), "{error}");
    assert!(StateDir::find(&fixture.tree("repo"), &fixture.home).is_err());
    assert_eq!(fs::read_to_string(&root).unwrap(), "{\"format\":2,\"anything\":[]}");
}

#[test]
fn the_users_directory_may_be_behind_a_link() {
    let mut fixture = Fixture::new();
    fs::create_dir(fixture.at("real")).unwrap();
    symlink(fixture.at("real"), fixture.at("linked")).unwrap();
    fixture.home.user = Some(fixture.at("linked/state"));
    assert!(fixture.open("plain").path.starts_with(fixture.at("real/state/roots")));
    fixture.home.fixed = Some(fixture.at("linked"));
    assert!(fixture.open("repo").path.starts_with(fixture.at("real/roots")));
}

#[test]
fn processes_that_meet_a_foreign_state_at_once_agree_on_a_key() {
    for _ in 0..20 {
        let fixture = Fixture::new();
        fixture.open("repo");
        fs::write(fixture.at("repo/.git/surehand/checkouts/main/root"), "another tree's").unwrap();
        check_that_all_agree(&fixture);
    }
}

#[test]
fn processes_that_start_at_once_agree_on_a_key() {
    check_that_all_agree(&Fixture::new());
}

#[track_caller]
fn check_that_all_agree(fixture: &Fixture) {
    let keys: Vec<CheckoutKey> = std::thread::scope(|scope| {
        let open = || scope.spawn(|| fixture.open("repo").key.clone());
        let threads: Vec<_> = (0..8).map(|_| open()).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(keys.iter().all(|key| *key == keys[0]), "{keys:?}");
}

#[test]
fn a_database_that_is_a_link_is_not_opened() {
    let fixture = Fixture::new();
    let state = fixture.open("repo");
    assert_eq!(state.database().unwrap(), fixture.at("repo/.git/surehand/state.db"));
    assert_eq!(mode(&state.database().unwrap()), 0o600);
    fs::remove_file(state.database().unwrap()).unwrap();
    symlink(fixture.at("elsewhere.db"), state.path.join("state.db")).unwrap();
    assert!(state.database().is_err());
}
