//! Servers that are killed, restarted, frozen or missing.

use std::{
    collections::BTreeSet,
    net::{Ipv4Addr, TcpListener},
    sync::atomic::{AtomicUsize, Ordering},
    thread,
    time::{Duration, Instant},
};

use surehand_board_postgres::{Patience, PostgresBoard};
use surehand_store::board::{Board, BoardError, RepositoryId, TaskEnd};
use surehand_testkit::postgres_server::PostgresServer;

use crate::{add_tasks, again, beat, board, claim, headline};

#[test]
fn each_task_is_claimed_once_though_the_server_is_killed() {
    const AGENTS: usize = 6;
    let mut server = PostgresServer::start(&[]);
    let url = server.url("postgres", "postgres");
    let added = add_tasks(&mut board(&url), 240);
    let done = AtomicUsize::new(0);
    let claimed: Vec<_> = thread::scope(|scope| {
        let work = |name: String| {
            let (mut board, mut claimed) = (board(&url), Vec::new());
            while let Some(task) = claim(&mut board, &format!("{name} {}", claimed.len()), &name) {
                let fence = task.claim.unwrap().fence;
                again(|| board.end_task(task.id, fence, TaskEnd::Complete));
                claimed.push(task.id);
                done.fetch_add(1, Ordering::Relaxed);
            }
            claimed
        };
        let agents: Vec<_> = (0..AGENTS).map(|agent| scope.spawn(move || work(format!("agent {agent}")))).collect();
        for kill in 1..=3 {
            while done.load(Ordering::Relaxed) < kill * 50 {
                thread::yield_now();
            }
            server.kill();
            server.launch();
        }
        agents.into_iter().flat_map(|agent| agent.join().unwrap()).collect()
    });
    assert_eq!(claimed.len(), added.len(), "none twice");
    assert_eq!(claimed.into_iter().collect::<BTreeSet<_>>(), added.into_iter().collect(), "none lost");
}

#[test]
fn a_restart_between_two_operations_is_not_noticed() {
    let mut server = PostgresServer::start(&[]);
    let mut board = board(&server.url("postgres", "postgres"));
    board.post(&[headline("before")]).unwrap();
    let cursor = board.news(None).unwrap().cursor;
    server.stop();
    server.launch();
    board.post(&[headline("after")]).unwrap();
    assert!(board.wait(Duration::from_secs(60)).unwrap());
    let news = board.news(Some(&cursor)).unwrap();
    assert!(!news.is_everything && news.headlines.len() == 1);
}

/// After a crash, ids of transactions that did not reach the disk are reused, and a cursor may have seen them.
#[test]
fn nothing_is_missed_after_a_crash() {
    let mut server = PostgresServer::start(&["synchronous_commit = off"]);
    let mut board = board(&server.url("postgres", "postgres"));
    board.post(&[headline("before")]).unwrap();
    server.query("postgres", "CHECKPOINT");
    (0..50).for_each(|number| board.post(&[headline(&format!("lost {number}"))]).unwrap());
    let cursor = board.news(None).unwrap().cursor;
    server.kill();
    server.launch();
    again(|| board.post(&[headline("after")]));
    assert!(board.wait(Duration::from_secs(60)).unwrap());
    let news = board.news(Some(&cursor)).unwrap();
    assert!(news.headlines.iter().any(|posted| posted.headline.id == "after"));
    assert!(news.is_everything, "the reader must forget what is lost");
}

#[test]
fn a_server_that_is_away_is_said_to_be_unreachable_until_it_is_back() {
    let mut server = PostgresServer::start(&[]);
    let mut board = board(&server.url("postgres", "postgres"));
    board.news(None).unwrap();
    server.kill();
    for _ in 0..3 {
        let error = board.heartbeat(&[beat("a")]).unwrap_err();
        assert!(matches!(error, BoardError::Unreachable { .. }), "{error:?}");
    }
    // A reader in a loop neither spins nor gives up.
    assert!(matches!(board.wait(Duration::from_secs(60)), Err(BoardError::Unreachable { .. })));
    server.launch();
    assert!(again(|| board.wait(Duration::from_secs(60))), "what happened during an outage is news");
    again(|| board.heartbeat(&[beat("a")]));
}

/// Runs an operation that must fail as unreachable within its patience, plus a margin for a busy machine.
#[track_caller]
fn check_bounded<T: std::fmt::Debug>(patience: Patience, operation: impl FnOnce() -> Result<T, BoardError>) {
    let begun = Instant::now();
    let error = operation().unwrap_err();
    assert!(matches!(error, BoardError::Unreachable { .. }), "{error:?}");
    assert!(begun.elapsed() < patience.connect + patience.answer + Duration::from_secs(30), "{:?}", begun.elapsed());
}

#[test]
fn a_frozen_server_blocks_no_caller_beyond_a_bound() {
    let patience = Patience { connect: Duration::from_millis(300), answer: Duration::from_millis(300) };
    let server = PostgresServer::start(&[]);
    let open = || PostgresBoard::new(&server.url("postgres", "postgres"), &RepositoryId("r".to_owned()), patience).unwrap();
    let mut connected = again(|| {
        let mut board = open();
        board.news(None).map(|_| board)
    });
    server.freeze();
    assert!(!connected.wait(Duration::from_millis(200)).unwrap(), "to wait in vain is no error");
    check_bounded(patience, || connected.post(&[headline("a")]));
    check_bounded(patience, || connected.post(&[headline("a")]));
    check_bounded(patience, || open().news(None));
    server.thaw();
    again(|| connected.post(&[headline("a")]));
    assert_eq!(again(|| connected.news(None)).headlines.len(), 1, "what is sent again happens once");
}

#[test]
fn a_host_that_takes_connections_and_says_nothing_leaves_time_for_the_others() {
    let patience = Patience { connect: Duration::from_millis(500), ..Patience::default() };
    let silent = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let server = PostgresServer::start(&[]);
    let hosts = format!("127.0.0.1:{},127.0.0.1:{}", silent.local_addr().unwrap().port(), server.port());
    let url = format!("postgres://postgres@{hosts}/postgres?sslmode=disable");
    let mut board = PostgresBoard::new(&url, &RepositoryId("r".to_owned()), patience).unwrap();
    again(|| board.news(None));
}
