//! The web page of Surehand: who works in a workspace, which lines each session has seen and which of those are stale,
//! all events, and what can be undone. A small HTTP server on loopback serves it from files in the program; the page
//! loads nothing else.
//!
//! The page reads the JSON that the commands print with `--json`, from the same functions, and its buttons make the
//! same calls as the commands.

mod actions;
mod api;
mod board;
mod feed;
mod live;
mod page;
mod report;
mod request_filter;
mod server;

pub use self::{
    board::BoardAccess,
    report::{ReportError, report},
    server::{PageServer, ServeError, serve},
};
pub use surehand_http::Stopper;
