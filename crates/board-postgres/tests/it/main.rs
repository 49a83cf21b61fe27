//! A board in PostgreSQL, on real servers.

mod access;
mod contract;
mod failover;
mod outages;
mod several;

use std::time::Duration;

use surehand_board_postgres::{Patience, PostgresBoard};
use surehand_core::SessionId;
use surehand_store::board::{
    Agent, AgentId, Board, BoardError, BoardTask, BoardTaskId, Checkout, ClaimId, Headline, Heartbeat, NewTask, RepositoryId,
    TaskChoice, TaskClaimRequest,
};

const LONG: Duration = Duration::from_secs(3600);

fn board(url: &str) -> PostgresBoard {
    board_of(url, "r")
}

fn board_of(url: &str, repository: &str) -> PostgresBoard {
    PostgresBoard::new(url, &RepositoryId(repository.to_owned()), Patience::default()).unwrap()
}

fn add_tasks(board: &mut PostgresBoard, count: usize) -> Vec<BoardTaskId> {
    let task = |number| NewTask { key: format!("task {number}"), description: "do it".to_owned(), priority: 1 };
    board.add_tasks("s", &(0..count).map(task).collect::<Vec<_>>()).unwrap()
}

fn request(claim: &str, by: &str) -> TaskClaimRequest {
    let choice = TaskChoice::NextOf("s".to_owned());
    TaskClaimRequest { id: ClaimId(claim.to_owned()), by: AgentId(by.to_owned()), choice, lease: LONG }
}

fn claim(board: &mut PostgresBoard, claim: &str, by: &str) -> Option<BoardTask> {
    again(|| board.claim_task(&request(claim, by)))
}

fn beat(name: &str) -> Heartbeat {
    let agent = Agent {
        id: AgentId(name.to_owned()),
        session: SessionId("session".to_owned()),
        client: "codex".to_owned(),
        host: "h".to_owned(),
        checkout: checkout().id(),
        branch: None,
        story: None,
    };
    Heartbeat { agent, alive_for: LONG, lease: LONG }
}

fn checkout() -> Checkout {
    Checkout { host: "h".to_owned(), device: 1, inode: 2, path: "/w".to_owned() }
}

fn headline(id: &str) -> Headline {
    let (checkout, kind, summary) = (checkout().id(), "edit".to_owned(), "3 lines".to_owned());
    Headline { id: id.to_owned(), checkout, agent: None, kind, path: None, summary }
}

/// Sends the same operation until the board can be reached.
fn again<T>(mut operation: impl FnMut() -> Result<T, BoardError>) -> T {
    loop {
        match operation() {
            Err(BoardError::Unreachable { .. }) => std::thread::sleep(Duration::from_millis(10)),
            done => return done.unwrap(),
        }
    }
}
