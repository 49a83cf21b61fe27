//! A primary that crashes, and its replica that takes over.

use std::{
    collections::BTreeSet,
    sync::atomic::{AtomicUsize, Ordering},
    thread,
    time::Duration,
};

use surehand_store::board::{Board, BoardError, TaskEnd};
use surehand_testkit::postgres_server::PostgresServer;

use crate::{add_tasks, again, beat, board, claim, headline};

/// Two servers, and a URL with both.
fn pair(settings: &[&str]) -> (PostgresServer, PostgresServer, String) {
    let primary = PostgresServer::start(settings);
    let replica = PostgresServer::replica(&primary, "replica");
    let hosts = format!("127.0.0.1:{},127.0.0.1:{}", primary.port(), replica.port());
    (primary, replica, format!("postgres://postgres@{hosts}/postgres?sslmode=disable"))
}

#[test]
fn no_claim_is_lost_or_granted_twice_in_a_failover_to_a_synchronous_replica() {
    const AGENTS: usize = 6;
    let (mut primary, replica, url) = pair(&["synchronous_standby_names = 'replica'"]);
    let added = add_tasks(&mut board(&url), 240);
    let done = AtomicUsize::new(0);
    let claimed: Vec<_> = thread::scope(|scope| {
        let work = |name: String| {
            let (mut board, mut claimed) = (board(&url), Vec::new());
            while let Some(task) = claim(&mut board, &format!("{name} {}", claimed.len()), &name) {
                let fence = task.claim.unwrap().fence;
                again(|| board.end_task(task.id, fence, TaskEnd::Complete));
                claimed.push((task.id, fence));
                done.fetch_add(1, Ordering::Relaxed);
            }
            claimed
        };
        let agents: Vec<_> = (0..AGENTS).map(|agent| scope.spawn(move || work(format!("agent {agent}")))).collect();
        while done.load(Ordering::Relaxed) < 100 {
            thread::yield_now();
        }
        primary.kill();
        replica.promote();
        agents.into_iter().flat_map(|agent| agent.join().unwrap()).collect()
    });
    assert_eq!(claimed.len(), added.len(), "none twice");
    assert_eq!(claimed.iter().map(|(task, _)| *task).collect::<BTreeSet<_>>(), added.into_iter().collect(), "none lost");
    let timelines: BTreeSet<i64> = claimed.iter().map(|(_, fence)| fence.timeline).collect();
    assert_eq!(timelines.len(), 2, "the numbers of the new primary are higher");
}

#[test]
fn a_number_rises_though_an_asynchronous_replica_missed_the_last_claim() {
    let (mut primary, replica, url) = pair(&[]);
    let mut agent = board(&url);
    let tasks = add_tasks(&mut agent, 2);
    let cursor = agent.news(None).unwrap().cursor;
    let position = primary.query("postgres", "SELECT pg_current_wal_lsn()");
    while replica.query("postgres", &format!("SELECT pg_last_wal_replay_lsn() >= '{position}'")) != "t" {
        thread::yield_now();
    }
    // The replica receives nothing any more.
    replica.query("postgres", "ALTER SYSTEM SET primary_conninfo = ''");
    replica.reload();
    while replica.query("postgres", "SELECT count(*) FROM pg_stat_wal_receiver") != "0" {
        thread::yield_now();
    }
    let lost = claim(&mut agent, "lost", "a").unwrap().claim.unwrap().fence;
    let seen = agent.news(Some(&cursor)).unwrap();
    assert_eq!(seen.tasks.len(), 1);
    primary.kill();
    replica.promote();

    // The new primary never received the claim. The agent learns that, and another agent gets the task with a higher
    // number.
    assert_eq!(again(|| agent.heartbeat(&[beat("a")]))[0].tasks, []);
    let second = claim(&mut board(&url), "second", "b").unwrap();
    let fence = second.claim.unwrap().fence;
    assert_eq!(second.id, tasks[0]);
    assert!(fence > lost, "{fence} {lost}");
    let late = agent.end_task(tasks[0], lost, TaskEnd::Complete).unwrap_err();
    assert!(matches!(late, BoardError::LostClaim { newest, .. } if newest == fence), "{late:?}");
    // A cursor that has seen lost transactions is not valid any more.
    assert!(agent.news(Some(&seen.cursor)).unwrap().is_everything);

    // The former primary comes back as a second primary. A program that has seen the new one does not return to it.
    primary.launch();
    drop(replica);
    for _ in 0..3 {
        let error = agent.post(&[headline("h")]).unwrap_err();
        assert!(matches!(&error, BoardError::Unreachable { .. }), "{error:?}");
        let _ = agent.wait(Duration::from_secs(5));
    }
    assert_eq!(primary.query("postgres", "SELECT count(*) FROM surehand.headlines"), "0");
}

#[test]
fn a_replica_is_not_written() {
    let (primary, replica, url) = pair(&[]);
    board(&url).news(None).unwrap();
    let error = board(&replica.url("postgres", "postgres")).news(None).unwrap_err();
    assert!(error.to_string().contains("does not allow writes"), "{error}");
    drop(primary);
}
