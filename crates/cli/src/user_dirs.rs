//! The user's directories, from the environment.

use std::{
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use surehand_engine::StateHome;

/// Overrides the directory of all state.
const STATE_DIR: &str = "SUREHAND_STATE_DIR";

pub(crate) fn state_home() -> anyhow::Result<StateHome> {
    let fixed = match std::env::var_os(STATE_DIR).filter(|dir| !dir.is_empty()).map(PathBuf::from) {
        Some(dir) if dir.is_relative() => anyhow::bail!("{STATE_DIR} must be an absolute path: {}", dir.display()),
        fixed => fixed,
    };
    let home = variable("HOME");
    let settings = variable("XDG_CONFIG_HOME").or_else(|| Some(home.as_ref()?.join(".config"))).map(|dir| dir.join("surehand"));
    Ok(StateHome { fixed, user: state_dir(), home, settings })
}

/// The `surehand` directory in `XDG_STATE_HOME`; `None` without a home directory.
///
/// With `sudo` the environment may name the directories of the calling user. State there would be owned by root and lock that user out, so
/// the home of the account is used instead.
pub(crate) fn state_dir() -> Option<PathBuf> {
    let in_home = |home: PathBuf| home.join(".local/state");
    let named = variable("XDG_STATE_HOME").or_else(|| variable("HOME").map(in_home));
    let dir = named.filter(|dir| is_ours(dir)).or_else(|| account_home().map(in_home).filter(|dir| is_ours(dir)))?;
    Some(dir.join("surehand"))
}

fn variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute())
}

/// Whether a directory belongs to this user, or would if it were created.
fn is_ours(dir: &Path) -> bool {
    let there = dir.ancestors().find_map(|dir| dir.metadata().ok());
    there.is_some_and(|there| there.uid() == rustix::process::geteuid().as_raw())
}

fn account_home() -> Option<PathBuf> {
    let accounts = std::fs::read_to_string("/etc/passwd").ok()?;
    let id = rustix::process::geteuid().as_raw().to_string();
    accounts.lines().find_map(|account| {
        let fields: Vec<&str> = account.split(':').collect();
        (fields.get(2) == Some(&id.as_str())).then(|| fields.get(5).map(PathBuf::from))?
    })
}
