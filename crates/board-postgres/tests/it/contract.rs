//! The contract of a board, on a real server.

use surehand_board_postgres::{Patience, PostgresBoard};
use surehand_store::board::{RepositoryId, contract};
use surehand_testkit::postgres_server::PostgresServer;

#[test]
fn a_board_in_postgresql_keeps_the_contract() {
    let server = PostgresServer::start(&[]);
    let url = server.url("postgres", "postgres");
    contract::check(|| PostgresBoard::new(&url, &RepositoryId("r".to_owned()), Patience::default()).unwrap());
}
