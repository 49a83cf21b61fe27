//! The files of the local copy: its content, its index and its age, as several processes see them.
#![expect(clippy::disallowed_methods, reason = "the tests play another program, and a crash")]

use std::{path::PathBuf, process::Command, sync::Arc};

use surehand_engine::{
    Config, SessionId, StateHome, Workspace,
    core::RelPath,
    fleet::{CopyVersion, LocalCopy},
    store::board::{Agent, AgentId, BoardCopy, Checkout, ContentChange, FileChange, Presence},
};
use tempfile::TempDir;

struct Clone {
    dir: TempDir,
}

impl Clone {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let made = Command::new("git").current_dir(dir.path()).args(["init", "-q", "-b", "main", "clone"]).output().unwrap();
        assert!(made.status.success(), "{made:?}");
        Self { dir }
    }

    /// Opens the workspace like another process.
    fn open(&self) -> Arc<Workspace> {
        let root = self.dir.path().canonicalize().unwrap();
        let state = StateHome { user: Some(root.join("state/surehand")), ..StateHome::default() };
        Workspace::open(&root.join("clone"), Config { state, ..Config::default() }).unwrap()
    }

    fn state_file(&self, name: &str) -> PathBuf {
        self.dir.path().join("clone/.git/surehand").join(name)
    }
}

fn agent(number: usize, checkout: &Checkout) -> Presence {
    let id = format!("codex-{number:08x}-9c1e-4b57-8a44-0f6c2b1d9e77");
    let agent = Agent {
        id: AgentId(id.clone()),
        session: SessionId(id),
        client: "codex".to_owned(),
        host: checkout.host.clone(),
        checkout: checkout.id(),
        branch: Some(format!("branch-{number}")),
        story: Some("login".to_owned()),
    };
    Presence { agent, seen: 1, until: 30_000 }
}

/// A copy of a board with this many agents, each with ten changed files.
fn copy_of(agents: usize, read_at: i64) -> LocalCopy {
    let mut board = BoardCopy { now: read_at + 7, ..BoardCopy::default() };
    for number in 0..agents {
        let checkout = Checkout { host: "h".to_owned(), device: 1, inode: number as u64, path: format!("/home/{number}") };
        let presence = agent(number, &checkout);
        let change = |file: usize| FileChange {
            path: RelPath::new(&format!("src/{number}/{file}.rs")).unwrap(),
            fork_point: "f".repeat(40),
            base: None,
            change: ContentChange::Deleted,
            by: Some(presence.agent.id.clone()),
            revision: 1,
        };
        let files = (0..10).map(change).map(|change| (change.path.clone(), change)).collect();
        board.changes.insert(checkout.id(), files);
        board.agents.insert(presence.agent.id.clone(), presence);
        board.checkouts.insert(checkout.id(), checkout);
    }
    LocalCopy { read_at: Some(read_at), board, version: CopyVersion::fresh(), ..LocalCopy::default() }
}

fn at(copy: LocalCopy, read_at: i64) -> LocalCopy {
    LocalCopy { read_at: Some(read_at), board: BoardCopy { now: read_at + 7, ..copy.board }, ..copy }
}

/// The bytes that this thread has read and written with system calls.
fn traffic() -> [u64; 2] {
    let counters = std::fs::read_to_string("/proc/thread-self/io").unwrap();
    ["rchar: ", "wchar: "].map(|name| counters.lines().find_map(|line| line.strip_prefix(name)).unwrap().parse().unwrap())
}

#[test]
fn a_newer_age_costs_the_same_on_a_board_of_a_thousand_agents_as_on_one_of_ten() {
    let cost = |agents: usize| {
        let clone = Clone::new();
        let (writer, reader) = (clone.open(), clone.open());
        let copy = copy_of(agents, 1_000);
        writer.write_local_copy(&copy).unwrap();
        let copy = at(copy, 2_000);
        let (stamp, age_stamp) = (reader.local_copy_stamp(), reader.copy_age_stamp());
        // The cost of reading the counters themselves.
        let idle = [traffic(), traffic()];
        let before = traffic();
        assert!(writer.refresh_local_copy(&copy).unwrap());
        let between = traffic();
        let age = reader.copy_age().unwrap().unwrap();
        let after = traffic();
        assert_eq!((age.read_at, age.version), (2_000, copy.version));
        assert_eq!(reader.local_copy_stamp(), stamp, "its content is the same");
        assert_ne!(reader.copy_age_stamp(), age_stamp);
        assert_eq!(reader.local_copy().unwrap().unwrap(), copy);
        let counting = idle[1][0] - idle[0][0];
        let written = [between[1] - before[1], after[1] - between[1]];
        [between[0] - before[0] - counting, after[0] - between[0] - counting].into_iter().chain(written).collect::<Vec<_>>()
    };
    let (small, large) = (cost(10), cost(1_000));
    // The counters are decimal text, so their length varies by a digit.
    let is_near = |(one, other): (&u64, &u64)| one.abs_diff(*other) <= 8;
    assert!(small.iter().zip(&large).all(is_near), "{small:?} {large:?}");
    assert_eq!(large[2..], [32, 0]);
}

#[test]
fn an_age_counts_only_for_the_version_that_it_names() {
    let clone = Clone::new();
    let workspace = clone.open();
    let read_at = || clone.open().local_copy().unwrap().unwrap().read_at;
    let in_index = || clone.open().board_about(&[]).unwrap().unwrap().read_at;
    let first = copy_of(1, 1_000);
    workspace.write_local_copy(&first).unwrap();
    assert!(workspace.refresh_local_copy(&at(first.clone(), 9_000)).unwrap());
    assert_eq!((read_at(), in_index()), (Some(9_000), Some(9_000)));
    let age_of_first = std::fs::read(clone.state_file("board.age")).unwrap();
    // The power fails before the age of the second version reaches the disk.
    let second = copy_of(2, 5_000);
    workspace.write_local_copy(&second).unwrap();
    write(&clone.state_file("board.age"), &age_of_first);
    assert_eq!((read_at(), in_index()), (Some(5_000), Some(5_000)));
    // If the content of a writer did not reach the disk, the old content must not look current.
    assert!(!workspace.refresh_local_copy(&at(first, 20_000)).unwrap());
    assert_eq!(read_at(), Some(5_000));
    assert!(workspace.refresh_local_copy(&at(second.clone(), 20_000)).unwrap());
    assert_eq!((read_at(), in_index()), (Some(20_000), Some(20_000)));
    for name in ["board.json", "board.index"] {
        std::fs::remove_file(clone.state_file(name)).unwrap();
        assert!(!workspace.refresh_local_copy(&second).unwrap(), "{name} must be written again");
        workspace.write_local_copy(&second).unwrap();
    }
}

#[test]
fn files_of_another_format_are_ignored() {
    let clone = Clone::new();
    let workspace = clone.open();
    let copy = copy_of(1, 1_000);
    let plain = serde_json::to_vec(&copy).unwrap();
    let with_head = |head: &str| [head.as_bytes(), &plain].concat();
    let digits = "0123456789abcdef";
    for content in [
        plain.clone(),
        with_head(&format!("surehand board 1 {digits}\n")),
        with_head(&format!("surehand board 3 {digits}\n")),
        with_head(&format!("surehand board 2 {digits}0\n")),
        with_head("surehand board 2 \n"),
        Vec::new(),
        vec![0; 4096],
    ] {
        workspace.write_local_copy(&copy).unwrap();
        write(&clone.state_file("board.json"), &content);
        assert_eq!(workspace.local_copy().unwrap(), None, "{}", String::from_utf8_lossy(&content));
        assert!(!workspace.refresh_local_copy(&copy).unwrap());
    }
    workspace.write_local_copy(&copy).unwrap();
    let mut index = std::fs::read(clone.state_file("board.index")).unwrap();
    let format = index.iter().position(|byte| *byte == b'2').unwrap();
    index[format] = b'1';
    write(&clone.state_file("board.index"), &index);
    assert_eq!(workspace.board_about(&[]).unwrap(), None);
    assert!(!workspace.refresh_local_copy(&copy).unwrap());
    for age in [Vec::new(), vec![0; 32], b"SHBAGE99".repeat(4)] {
        workspace.write_local_copy(&copy).unwrap();
        write(&clone.state_file("board.age"), &age);
        assert_eq!(workspace.local_copy().unwrap().unwrap().read_at, Some(1_000), "{age:?}");
        assert!(workspace.refresh_local_copy(&at(copy.clone(), 2_000)).unwrap());
        assert_eq!(workspace.local_copy().unwrap().unwrap().read_at, Some(2_000), "{age:?}");
    }
}

/// A reader in another process gets one complete version, with an age that was written for it.
#[test]
fn a_reader_beside_a_writer_never_mixes_versions() {
    const ROUNDS: i64 = 100;
    let clone = Clone::new();
    let (writer, reader) = (clone.open(), clone.open());
    let content = |round: i64| LocalCopy { place: round.to_string(), ..copy_of(20, round * 100) };
    writer.write_local_copy(&content(1)).unwrap();
    std::thread::scope(|scope| {
        let writing = scope.spawn(|| {
            for round in 2..=ROUNDS {
                let copy = content(round);
                writer.write_local_copy(&copy).unwrap();
                for later in 1..5 {
                    assert!(writer.refresh_local_copy(&at(copy.clone(), round * 100 + later)).unwrap());
                }
            }
        });
        let mut last = 0;
        while !writing.is_finished() {
            let seen = reader.local_copy().unwrap().expect("there is always one");
            let read_at = seen.read_at.unwrap();
            assert_eq!((read_at / 100).to_string(), seen.place);
            assert_eq!((seen.board.now, seen.board.agents.len()), (read_at + 7, 20));
            assert!(read_at >= last, "{read_at} after {last}");
            last = read_at;
            let in_index = reader.board_about(&[]).unwrap().expect("there is always one");
            assert_eq!(in_index.read_at.map(|read_at| read_at + 7), Some(in_index.board.now));
        }
    });
    assert_eq!(reader.local_copy().unwrap().unwrap().read_at, Some(ROUNDS * 100 + 4));
}

fn write(path: &std::path::Path, content: &[u8]) {
    std::fs::write(path, content).unwrap();
}
