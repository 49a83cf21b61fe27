//! Why an operation fails, and which board error that is.

use std::{error::Error, fmt::Write as _, time::Duration};

use surehand_store::board::BoardError;

#[derive(Debug)]
pub(crate) enum Failure {
    Board(BoardError),
    /// No server can be reached, for this reason.
    Unreachable(String),
    /// The server, or the connection to it, failed.
    Server(tokio_postgres::Error),
    TimedOut(Duration),
    /// Another transaction was faster. The operation can be repeated at once.
    Conflict,
    /// The server may have lost its last transactions, and a new timeline must begin.
    OtherTimeline,
}

impl From<BoardError> for Failure {
    fn from(error: BoardError) -> Self {
        Self::Board(error)
    }
}

impl From<tokio_postgres::Error> for Failure {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Server(error)
    }
}

/// The consequence of a failure for the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    /// The connection is broken, or the server is unable to work. This is temporary.
    Outage,
    Denied,
    /// Another transaction was faster.
    Conflict,
    /// The server refuses the operation, or we refuse the server.
    Refused,
}

impl Failure {
    fn class(&self) -> Class {
        match self {
            Self::Unreachable(_) | Self::TimedOut(_) => Class::Outage,
            Self::Board(_) => Class::Refused,
            Self::Conflict | Self::OtherTimeline => Class::Conflict,
            Self::Server(error) => match error.code() {
                Some(code) => class_of_state(code.code()),
                None => class_of_connection(error),
            },
        }
    }

    /// Whether the same operation can succeed at once.
    pub(crate) fn is_conflict(&self) -> bool {
        self.class() == Class::Conflict
    }

    /// Whether the operation can succeed later, on a new connection.
    pub(crate) fn is_outage(&self) -> bool {
        self.class() == Class::Outage
    }

    /// Whether the connection broke, rather than the server being slow.
    pub(crate) fn is_broken_connection(&self) -> bool {
        matches!(self, Self::Server(_)) && self.is_outage()
    }

    /// Whether the server does not let the user in.
    pub(crate) fn is_denied(&self) -> bool {
        self.class() == Class::Denied
    }

    pub(crate) fn why(&self) -> String {
        match self {
            Self::Unreachable(why) | Self::Board(BoardError::Denied { why, .. }) => why.clone(),
            Self::Board(error) => error.to_string(),
            Self::TimedOut(patience) => format!("no answer within {patience:?}"),
            Self::Conflict | Self::OtherTimeline => "too many conflicts with other agents".to_owned(),
            Self::Server(error) => describe(error),
        }
    }

    pub(crate) fn into_board_error(self, place: &str) -> BoardError {
        let place = place.to_owned();
        let (class, why) = (self.class(), self.why());
        match (self, class) {
            (Self::Board(error), _) => error,
            (_, Class::Outage | Class::Conflict) => BoardError::Unreachable { place, why },
            (_, Class::Denied) => BoardError::Denied { place, why },
            (_, Class::Refused) => BoardError::Server { place, why },
        }
    }
}

/// Classifies an error code by appendix A of PostgreSQL's manual.
fn class_of_state(state: &str) -> Class {
    match state {
        // Wrong password, no entry in pg_hba.conf, unknown role, or a right that was not granted.
        "28P01" | "28000" | "0P000" | "42501" => Class::Denied,
        // Serialization failure, deadlock, and the same claim at the same time.
        "40001" | "40P01" | "23505" => Class::Conflict,
        // A standby, a statement that took too long, a lock that was not free in time, and an idle transaction.
        "25006" | "57014" | "55P03" | "25P03" => Class::Outage,
        // Connection exceptions, shutdown and start-up, no free connection or memory or disk space, system errors.
        _ if ["08", "57P", "53", "58"].iter().any(|class| state.starts_with(class)) => Class::Outage,
        _ => Class::Refused,
    }
}

/// Classifies an error that did not come from the server.
fn class_of_connection(error: &tokio_postgres::Error) -> Class {
    // The driver exposes the kind of an error only in its text.
    match error.to_string().as_str() {
        // The server asks for a password and there is none, or wants a way of checking it that is not supported.
        "invalid configuration" | "authentication error" => Class::Denied,
        "error performing TLS handshake" if !is_broken_stream(error) => Class::Refused,
        text if text.starts_with("error serializing") || text.starts_with("error deserializing") => Class::Refused,
        _ => Class::Outage,
    }
}

/// Whether a handshake failed because the stream broke, not because of a certificate or because the server has no TLS.
fn is_broken_stream(error: &tokio_postgres::Error) -> bool {
    let source = error.source().and_then(|source| source.downcast_ref::<std::io::Error>());
    source.is_some_and(|error| !error.get_ref().is_some_and(|inner| inner.is::<rustls::Error>()))
}

/// The message of the server, or the chain of errors.
fn describe(error: &tokio_postgres::Error) -> String {
    if let Some(error) = error.as_db_error() {
        let hint = error.hint().map(|hint| format!("; {hint}"));
        return format!("{}{}", error.message(), hint.unwrap_or_default());
    }
    let mut why = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        let _ = write!(why, ": {error}");
        source = error.source();
    }
    if why.contains("certificate") {
        why.push_str("; name the file of its authority with sslrootcert=FILE in board.url");
    } else if why.contains("does not support TLS") {
        why.push_str("; switch TLS on in the server, or allow an open connection with sslmode=disable in board.url");
    }
    why
}
