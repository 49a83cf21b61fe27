//! An agent that works on a story with the tools of Surehand. Its prompt is rendered from the state of the repository and the
//! files as they are now, not replayed from what was said.

mod blind;
mod cancel;
pub mod command;
pub mod context;
pub mod event;
mod guard;
mod history;
pub mod model;
pub mod prompt;
pub mod record;
mod repair;
mod run;

pub use cancel::Cancel;
pub use command::{Permission, Verdict, run_command};
pub use event::Event;
pub use guard::Patience;
pub use run::{Company, Most, Outcome, Run, RunError, Settings};
