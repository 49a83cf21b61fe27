//! The user's directories, from the environment.

use std::{env::var_os, path::PathBuf};

use surehand_engine::{StateHome, StateHomeError, user_state_dir};

pub(crate) fn state_home() -> Result<StateHome, StateHomeError> {
    StateHome::of_environment(|name| var_os(name))
}

/// The path in an environment variable, if it is absolute.
pub(crate) fn variable(name: &str) -> Option<PathBuf> {
    var_os(name).map(PathBuf::from).filter(|path| path.is_absolute())
}

/// The directory of the user's own state; `None` without a home directory.
pub(crate) fn state_dir() -> Option<PathBuf> {
    user_state_dir(|name| var_os(name))
}
