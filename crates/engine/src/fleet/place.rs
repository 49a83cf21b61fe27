//! Finds and opens the board of a repository.

use surehand_store::board::{Board, BoardError, RepositoryId, SqliteBoard};

use crate::{
    config::BoardConfig,
    state_dir::{StateHome, make_board_dir},
};

/// Opens the board of a repository on the server with this URL. The program provides it, so that this crate needs no
/// client for a server.
pub type OpenServer<'a> = dyn Fn(&str, &RepositoryId) -> Result<Box<dyn Board>, BoardError> + 'a;

/// Opens the board of a repository: on the server that the user configured, otherwise in a file that all checkouts of
/// the user on this machine share.
pub fn open_board(
    config: &BoardConfig,
    home: &StateHome,
    repository: &RepositoryId,
    server: &OpenServer<'_>,
) -> Result<Box<dyn Board>, BoardError> {
    match &config.url {
        Some(url) => server(url, repository),
        None => {
            let dir = make_board_dir(home, &repository.0).map_err(|error| BoardError::Unreachable {
                place: "the board of this machine".to_owned(),
                why: error.to_string(),
            })?;
            Ok(Box::new(SqliteBoard::open(&dir.join(BOARD_FILE))?))
        }
    }
}

const BOARD_FILE: &str = "board.db";

/// The place of the board, as people read it, without a password.
pub fn board_place(config: &BoardConfig) -> String {
    let Some(url) = &config.url else { return "this machine".to_owned() };
    let rest = url.split_once("://").map_or(url.as_str(), |(_, rest)| rest);
    let rest = rest.split(['?', '#']).next().unwrap_or_default();
    // A password may contain any characters except these.
    let server = rest.rsplit_once('@').map_or(rest, |(_, server)| server);
    if server.contains('=') { "a server".to_owned() } else { server.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_password_is_shown() {
        let place = |url: &str| board_place(&BoardConfig { url: Some(url.to_owned()), ..BoardConfig::default() });
        assert_eq!(place("postgresql://user:se@cret@db.example.org:5432/boards?sslmode=require"), "db.example.org:5432/boards");
        assert_eq!(place("postgresql:///boards?password=secret"), "/boards");
        assert_eq!(place("host=db password=secret"), "a server");
        assert_eq!(board_place(&BoardConfig::default()), "this machine");
    }
}
