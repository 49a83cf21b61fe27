//! Everything that touches the files of a workspace. Nothing else in Surehand writes them.

pub mod clock;
pub mod commit;
pub mod export;
pub mod journal;
pub mod lock;
pub mod read;
pub mod recover;
pub mod rescue;
pub mod root;
pub(crate) mod settings_file;
pub mod stage;
pub mod state;
pub mod state_file;
pub mod sys;
pub mod walk;
mod work;
pub mod working_copy;
