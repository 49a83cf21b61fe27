//! An agent that works on a story with the tools of Surehand. Its prompt is rendered from the state of the repository and the
//! files as they are now, not replayed from what was said.

mod cancel;
pub mod command;
pub mod event;
pub mod model;

pub use cancel::Cancel;
pub use command::{Permission, Verdict, run_command};
pub use event::Event;
