//! The boards that the simulation uses, and the failures of their servers.

use std::time::Duration;

use anyhow::Result;
use clap::ValueEnum;
use surehand_board_postgres::{Patience, PostgresBoard};
use surehand_store::board::{Board, RepositoryId, SqliteBoard};
use surehand_testkit::postgres_server::PostgresServer;
use tempfile::TempDir;

use super::{Plan, READERS};

/// Where a board is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum BackendKind {
    /// One file, as for all checkouts of a user on a machine.
    Sqlite,
    /// A server, with the settings of Debian's package except for memory and the number of connections.
    Postgres,
}

impl BackendKind {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Sqlite => "SQLite",
            Self::Postgres => "PostgreSQL",
        }
    }
}

pub(super) enum Backend {
    Sqlite(TempDir),
    Postgres { primary: PostgresServer, replica: Option<PostgresServer>, url: String },
}

impl Backend {
    pub(super) fn start(kind: BackendKind, plan: Plan) -> Result<Self> {
        if kind == BackendKind::Sqlite {
            return Ok(Self::Sqlite(tempfile::tempdir()?));
        }
        let connections = format!("max_connections = {}", plan.agents + READERS + 30);
        // A replica looks for its primary this often after a kill; commits wait for it.
        let mut settings = vec![connections.as_str(), "shared_buffers = 256MB", "wal_retrieve_retry_interval = 500ms"];
        if plan.failover {
            settings.push("synchronous_standby_names = 'replica'");
        }
        let primary = PostgresServer::start(&settings);
        let replica = plan.failover.then(|| PostgresServer::replica(&primary, "replica"));
        let hosts: Vec<_> = [Some(&primary), replica.as_ref()].into_iter().flatten().collect();
        let hosts: Vec<_> = hosts.iter().map(|server| format!("127.0.0.1:{}", server.port())).collect();
        let url = format!("postgres://postgres@{}/postgres?sslmode=disable", hosts.join(","));
        Ok(Self::Postgres { primary, replica, url })
    }

    /// A connection to the board.
    pub(super) fn open(&self) -> Result<Box<dyn Board>> {
        Ok(match self {
            Self::Sqlite(directory) => Box::new(SqliteBoard::open(&directory.path().join("board.db"))?),
            // A thousand connections on a small machine need patience.
            Self::Postgres { url, .. } => {
                let patience = Patience { connect: Duration::from_secs(20), answer: Duration::from_secs(60) };
                Box::new(PostgresBoard::new(url, &RepositoryId("simulated".to_owned()), patience)?)
            }
        })
    }

    /// Kills the server, and starts it again.
    pub(super) fn kill_and_restart(&mut self) {
        if let Self::Postgres { primary, .. } = self {
            primary.kill();
            primary.launch();
        }
    }

    /// Kills the primary, and promotes its replica.
    pub(super) fn fail_over(&mut self) {
        if let Self::Postgres { primary, replica: Some(replica), .. } = self {
            primary.kill();
            replica.promote();
        }
    }
}
