//! The id of a repository: its worktrees and clones share it, and no other repository has it.

use std::{
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
};

use surehand_engine::{
    BoardConfig, Config, StateHome, Workspace,
    fleet::{IdOrigin, RepositoryIdError, open_board},
    store::board::BoardError,
};
use tempfile::TempDir;

struct Machine {
    dir: TempDir,
}

impl Machine {
    fn new() -> Self {
        let machine = Self { dir: tempfile::tempdir().unwrap() };
        machine.git(".", "init -q --bare -b main origin.git");
        machine.git(".", "init -q -b main first");
        machine.git("first", "commit -q --allow-empty -m one");
        machine.git("first", "remote add origin ../origin.git");
        machine.git("first", "push -q origin main");
        machine
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn git(&self, place: &str, words: &str) {
        let identity = ["-c", "user.name=n", "-c", "user.email=e@example.org", "-c", "protocol.file.allow=always"];
        let done = Command::new("git").current_dir(self.path(place)).args(identity).args(words.split(' ')).output().unwrap();
        assert!(done.status.success(), "git {words}: {}", String::from_utf8_lossy(&done.stderr));
    }

    fn home(&self) -> StateHome {
        StateHome { user: Some(self.path("state/surehand")), ..StateHome::default() }
    }

    fn open(&self, place: &str) -> Arc<Workspace> {
        Workspace::open(&self.path(place), Config { state: self.home(), ..Config::default() }).unwrap()
    }

    fn id(&self, place: &str) -> (String, IdOrigin) {
        let known = self.open(place).repository_id().unwrap();
        (known.id.0, known.origin)
    }
}

#[test]
fn worktrees_and_clones_are_one_repository_and_a_fork_is_another() {
    let machine = Machine::new();
    machine.git("first", "worktree add -q ../beside");
    machine.git(".", "clone -q origin.git second");
    machine.git(".", "clone -q --bare origin.git fork.git");
    machine.git(".", "clone -q fork.git forked");
    let (first, origin) = machine.id("first");
    assert_eq!(origin, IdOrigin::Computed);
    assert_eq!(machine.id("beside").0, first);
    assert_eq!(machine.id("second").0, first);
    assert_ne!(machine.id("forked").0, first);
    // Before the first commit nothing identifies the repository, and nothing is kept that would be wrong later.
    machine.git(".", "clone -q origin.git early");
    machine.git("early", "checkout -q --orphan unborn");
    assert!(matches!(machine.open("early").repository_id(), Err(RepositoryIdError::NoCommit)));
    machine.git("early", "checkout -q main");
    assert_eq!(machine.id("early").0, first);
    // The id stays when the remote moves.
    machine.git("second", "remote set-url origin https://example.org/moved.git");
    assert_eq!(machine.id("second").0, first);
}

#[test]
fn without_a_remote_or_a_whole_history_it_is_random_until_a_person_joins_it() {
    let machine = Machine::new();
    machine.git("first", "commit -q --allow-empty -m two");
    machine.git("first", "push -q origin main");
    let url = format!("clone -q --depth 1 file://{} shallow", machine.path("origin.git").display());
    machine.git(".", &url);
    machine.git(".", "init -q alone");
    std::fs::create_dir(machine.path("plain")).unwrap();
    let (first, _) = machine.id("first");
    let mut ids = vec![first.clone()];
    for place in ["shallow", "alone", "plain"] {
        let (id, origin) = machine.id(place);
        assert_eq!(origin, IdOrigin::Random, "{place}");
        assert_eq!(machine.id(place).0, id, "it is kept");
        assert!(!ids.contains(&id), "{place}");
        ids.push(id);
    }
    let workspace = machine.open("shallow");
    assert!(workspace.join_repository("../../etc").is_err());
    assert_eq!(workspace.join_repository(&first).unwrap().origin, IdOrigin::Joined);
    assert_eq!(machine.id("shallow"), (first, IdOrigin::Joined));
}

#[test]
fn only_its_owner_can_read_a_board_and_a_server_is_opened_by_the_program() {
    use std::os::unix::fs::MetadataExt;
    let machine = Machine::new();
    let workspace = machine.open("first");
    let id = workspace.repository_id().unwrap().id;
    let nowhere = |url: &str, _: &_| Err(BoardError::Unreachable { place: url.to_owned(), why: "it is a test".to_owned() });
    let mut board = open_board(&BoardConfig::default(), &machine.home(), &id, &nowhere).unwrap();
    board.join(&workspace.checkout().unwrap()).unwrap();
    let file = machine.home().user.unwrap().join("boards").join(&id.0).join("board.db");
    let mode = |path: &Path| std::fs::metadata(path).unwrap().mode() & 0o777;
    assert!(file.is_file());
    assert_eq!((mode(file.parent().unwrap()), mode(file.parent().unwrap().parent().unwrap())), (0o700, 0o700));
    let server = BoardConfig { url: Some("postgresql://host/db".to_owned()), ..BoardConfig::default() };
    let refused = open_board(&server, &machine.home(), &id, &nowhere).err().unwrap();
    assert_eq!(refused.to_string(), "postgresql://host/db: the board cannot be reached: it is a test");
}
