//! Fixtures for the tests of Surehand: clients of the real program, scenarios, and a server that plays a model.
#![expect(clippy::disallowed_methods, reason = "tests play the other programs")]

mod leaked;
pub mod model_server;
mod model_turn;
mod mounted;
pub mod postgres_server;
mod privileges;
mod repository;
pub mod rng;
pub mod scenario;
pub mod terminal;
pub mod tool_client;

pub use leaked::close_leaked;
pub use mounted::Mounted;
pub use privileges::as_unprivileged;
pub use repository::{make_repository, repository, state_of};
