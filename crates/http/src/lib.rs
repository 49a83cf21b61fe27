//! The HTTP listener of Surehand's servers. It decides who may connect, by the owner of the socket at the other end,
//! and how many connections are open; a [`Handler`] answers the requests.

mod connection;
mod server;
mod socket_table;
mod token;

pub use self::{
    connection::{ConnectionLimits, ConnectionPhase, GuardedBody, HttpConnection, RequestGuard},
    server::{
        AllowedCallers, BodyError, Handler, HttpAnswer, HttpServer, ListenError, Listener, Stopper, plain, read_body,
        wait_for_stop,
    },
    socket_table::{SocketOwner, SocketTable},
    token::{Token, are_equal},
};
