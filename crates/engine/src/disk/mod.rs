//! Everything that touches the files of a workspace. Nothing else in Surehand writes them.

pub(crate) mod clock;
pub(crate) mod commit;
pub(crate) mod export;
pub(crate) mod generation;
pub(crate) mod journal;
mod lease;
pub(crate) mod lock;
mod metadata;
pub(crate) mod read;
pub(crate) mod recover;
mod replace;
pub(crate) mod rescue;
pub(crate) mod root;
pub(crate) mod settings_file;
pub(crate) mod stage;
pub(crate) mod state;
pub(crate) mod walk;
pub(crate) mod working_copy;
