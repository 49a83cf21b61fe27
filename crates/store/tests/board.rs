//! The board in SQLite keeps the contract, and handles kills, damage and files of other versions.
#![expect(clippy::disallowed_methods, reason = "tests damage files on purpose")]

use std::{fs, thread, time::Duration};

use surehand_store::{
    SessionId,
    board::{
        Agent, AgentId, Board, BoardError, BoardSummary, Checkout, ClaimId, Heartbeat, NewTask, SqliteBoard, TaskChoice,
        TaskClaim, TaskClaimRequest, contract,
    },
};

fn task(key: &str) -> NewTask {
    NewTask { key: key.to_owned(), description: "do it".to_owned(), priority: 1 }
}

fn claim(board: &mut SqliteBoard, name: &str) -> TaskClaim {
    let by = AgentId(name.to_owned());
    let choice = TaskChoice::NextOf("s".to_owned());
    let request = TaskClaimRequest { id: ClaimId(name.to_owned()), by, choice, lease: Duration::ZERO };
    board.claim_task(&request).unwrap().unwrap().claim.unwrap()
}

#[test]
fn a_board_in_sqlite_keeps_the_contract() {
    let dir = tempfile::tempdir().unwrap();
    contract::check(|| SqliteBoard::open(&dir.path().join("board.db")).unwrap());
}

#[test]
fn many_may_begin_a_board_at_once() {
    for _ in 0..10 {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("board.db");
        thread::scope(|scope| {
            let open = |number: usize| {
                let path = &path;
                scope.spawn(move || SqliteBoard::open(path).unwrap().add_tasks("s", &[task(&number.to_string())]).unwrap())
            };
            (0..8).map(open).collect::<Vec<_>>().into_iter().for_each(|opened| drop(opened.join().unwrap()));
        });
        assert_eq!(SqliteBoard::open(&path).unwrap().tasks("s").unwrap().len(), 8);
    }
}

#[test]
fn a_board_of_a_newer_version_is_refused_and_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("board.db");
    drop(SqliteBoard::open(&path).unwrap());
    rusqlite::Connection::open(&path).unwrap().pragma_update(None, "user_version", 99).unwrap();
    let before = fs::read(&path).unwrap();
    let Err(error) = SqliteBoard::open(&path) else { panic!("opened a newer board") };
    assert!(matches!(error, BoardError::Newer { found: 99, .. }));
    assert!(error.to_string().ends_with("update surehand"), "{error}");
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[test]
fn a_damaged_board_is_begun_anew_with_higher_fencing_numbers() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("board.db");
    let mut board = SqliteBoard::open(&path).unwrap();
    board.add_tasks("s", &[task("a")]).unwrap();
    let old: Vec<_> = (0..3).map(|number| claim(&mut board, &number.to_string()).fence).collect();
    assert!(old.is_sorted_by(|one, other| one < other));
    drop(board);
    // The timeline of a file is the second in which it was created.
    let began = old[0].timeline;
    while std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs() as i64 <= began {
        thread::yield_now();
    }
    fs::write(&path, [0xff; 8192]).unwrap();
    let mut board = SqliteBoard::open(&path).unwrap();
    assert_eq!(board.tasks("s").unwrap(), []);
    board.add_tasks("s", &[task("a")]).unwrap();
    assert!(claim(&mut board, "new").fence > old[2]);
    assert_eq!(fs::read(dir.path().join("board.db.damaged-1")).unwrap(), [0xff; 8192]);
}

#[test]
fn a_board_is_not_opened_through_a_link() {
    let dir = tempfile::tempdir().unwrap();
    drop(SqliteBoard::open(&dir.path().join("real.db")).unwrap());
    std::os::unix::fs::symlink("real.db", dir.path().join("board.db")).unwrap();
    assert!(matches!(SqliteBoard::open(&dir.path().join("board.db")), Err(BoardError::Store(_))));
}

#[test]
fn a_summary_lists_the_checkouts_and_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("board.db");
    assert!(BoardSummary::read(&path).is_err() && !path.exists());
    let mut board = SqliteBoard::open(&path).unwrap();
    assert_eq!(BoardSummary::read(&path).unwrap(), BoardSummary::default());
    let checkout = Checkout { host: "h".to_owned(), device: 1, inode: 2, path: "/p".to_owned() };
    board.join(&checkout).unwrap();
    let agent = Agent {
        id: AgentId("a".to_owned()),
        session: SessionId("s".to_owned()),
        client: "claude".to_owned(),
        host: "h".to_owned(),
        checkout: checkout.id(),
        branch: None,
        story: None,
    };
    let beat = Heartbeat { agent: agent.clone(), alive_for: Duration::from_secs(60), lease: Duration::from_secs(60) };
    board.heartbeat(&[beat]).unwrap();
    let summary = BoardSummary::read(&path).unwrap();
    assert_eq!((&summary.checkouts[..], summary.is_in_use), (&[checkout][..], true));
    board.leave(&agent.id).unwrap();
    assert!(!BoardSummary::read(&path).unwrap().is_in_use);
}
