//! Everything that touches the files of a workspace. No other module of Surehand writes them.

pub(crate) mod change_counter;
pub(crate) mod checkout_state;
pub(crate) mod commit;
pub(crate) mod export_dir;
pub(crate) mod file_times;
pub(crate) mod journal;
mod lease;
mod metadata;
pub(crate) mod path_locks;
pub(crate) mod put_back;
pub(crate) mod read_file;
pub(crate) mod recovery;
pub(crate) mod replace_file;
pub(crate) mod rescue;
pub(crate) mod rescued_files;
pub(crate) mod root_dir;
pub(crate) mod settings_file;
pub(crate) mod shared_dirs;
pub(crate) mod staging;
pub(crate) mod unsynced_dirs;
pub(crate) mod walk;
pub(crate) mod working_copy;
