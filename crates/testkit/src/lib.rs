//! Fixtures and doors for the tests of Surehand. Real files, real processes.
#![expect(clippy::disallowed_methods, reason = "tests play the other programs")]

pub mod dice;
pub mod door;
mod forgotten;
pub mod model_server;
mod model_turn;
mod mounted;
mod privileges;
mod repository;
pub mod scenario;

pub use forgotten::close_forgotten;
pub use mounted::Mounted;
pub use privileges::as_somebody_else;
pub use repository::{make_repository, repository, state_of};
