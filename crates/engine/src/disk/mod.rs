//! Everything that touches the files of a workspace. Nothing else in Surehand writes them.

pub(crate) mod clock;
pub(crate) mod commit;
pub(crate) mod export;
pub(crate) mod journal;
pub(crate) mod lock;
pub(crate) mod read;
pub(crate) mod recover;
pub(crate) mod rescue;
pub(crate) mod root;
pub(crate) mod settings_file;
pub(crate) mod stage;
pub(crate) mod state;
pub(crate) mod state_file;
pub(crate) mod sys;
pub(crate) mod walk;
mod work;
pub(crate) mod working_copy;
