//! Several repositories, programs and versions in one database.

use std::thread;

use surehand_store::board::{Board, BoardError};
use surehand_testkit::postgres_server::PostgresServer;

use crate::{add_tasks, beat, board, board_of, checkout, claim, headline};

#[test]
fn two_repositories_in_one_database_do_not_see_each_other() {
    let server = PostgresServer::start(&[]);
    let url = server.url("postgres", "postgres");
    let (mut one, mut two) = (board_of(&url, "one"), board_of(&url, "two"));
    let cursor = two.news(None).unwrap().cursor;
    let tasks = add_tasks(&mut one, 2);
    one.join(&checkout()).unwrap();
    one.heartbeat(&[beat("a")]).unwrap();
    one.post(&[headline("h")]).unwrap();
    assert_eq!(two.tasks("s").unwrap(), []);
    assert_eq!(claim(&mut two, "c", "b"), None);
    let news = two.news(Some(&cursor)).unwrap();
    assert_eq!((news.tasks, news.headlines, news.agents, news.checkouts), (vec![], vec![], vec![], vec![]));
    let fence = claim(&mut one, "c", "a").unwrap().claim.unwrap().fence;
    let end = surehand_store::board::TaskEnd::Complete;
    assert!(matches!(two.end_task(tasks[0], fence, end), Err(BoardError::NoSuchTask(_))));
    // Here the same names mean different things.
    let others = add_tasks(&mut two, 2);
    assert!(others.iter().all(|task| !tasks.contains(task)));
    two.leave(&beat("a").agent.id).unwrap();
    assert_eq!(one.heartbeat(&[beat("a")]).unwrap()[0].tasks, [(tasks[0], fence)]);
}

#[test]
fn programs_that_start_at_once_create_the_tables_once() {
    let server = PostgresServer::start(&[]);
    let url = server.url("postgres", "postgres");
    thread::scope(|scope| {
        for number in 0..20 {
            let url = &url;
            scope.spawn(move || board(url).post(&[headline(&format!("{number}"))]).unwrap());
        }
    });
    assert_eq!(board(&url).news(None).unwrap().headlines.len(), 20);
}

#[test]
fn tables_of_a_newer_version_are_refused_and_left_alone() {
    let server = PostgresServer::start(&[]);
    let url = server.url("postgres", "postgres");
    board(&url).post(&[headline("h")]).unwrap();
    server.query("postgres", "UPDATE surehand.server SET format = 1000");
    let error = board(&url).post(&[headline("i")]).unwrap_err();
    assert!(matches!(error, BoardError::Newer { found: 1000, .. }), "{error:?}");
    assert_eq!(server.query("postgres", "SELECT count(*) FROM surehand.headlines"), "1");
}

#[test]
fn a_database_without_unicode_is_refused() {
    let server = PostgresServer::start(&[]);
    server.query("postgres", "CREATE DATABASE old ENCODING 'LATIN1' TEMPLATE template0 LOCALE 'C'");
    let error = board(&server.url("postgres", "old")).news(None).unwrap_err();
    assert!(error.to_string().contains("LATIN1"), "{error}");
}

#[test]
fn a_restored_dump_continues_with_higher_numbers_and_news_that_ends() {
    let (old, new) = (PostgresServer::start(&[]), PostgresServer::start(&[]));
    let mut board_on_old = board(&old.url("postgres", "postgres"));
    let tasks = add_tasks(&mut board_on_old, 1);
    let before = claim(&mut board_on_old, "c", "a").unwrap().claim.unwrap().fence;
    let cursor = board_on_old.news(None).unwrap().cursor;
    // As if the former server had run for years.
    old.query("postgres", "UPDATE surehand.tasks SET turn = 4000000000; UPDATE surehand.repositories SET pruned = 3000000000");
    let dump = new.write("dump.sql", &String::from_utf8(old.run("pg_dump", &["postgres"])).unwrap());
    new.run("psql", &["-q", "-v", "ON_ERROR_STOP=1", "-f", dump.to_str().unwrap(), "postgres"]);
    let mut board = board(&new.url("postgres", "postgres"));
    let news = board.news(Some(&cursor)).unwrap();
    assert!(news.is_everything && news.tasks.len() == 1);
    let news = board.news(Some(&news.cursor)).unwrap();
    assert!(!news.is_everything && news.tasks.is_empty(), "what was seen is not new for ever");
    board.leave(&beat("a").agent.id).unwrap();
    let after = claim(&mut board, "d", "a").unwrap();
    assert_eq!(after.id, tasks[0]);
    assert!(after.claim.unwrap().fence > before);
}
