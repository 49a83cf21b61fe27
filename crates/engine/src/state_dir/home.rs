//! The directories of a user that matter for the state, as the environment names them.

use std::{
    ffi::OsString,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use crate::user::effective_user;

/// The directories of a user that matter for the state. The environment names them; this crate does not read it.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct StateHome {
    /// Holds all state, instead of any other place (`SUREHAND_STATE_DIR`).
    pub fixed: Option<PathBuf>,
    /// Holds the state of trees whose git directory cannot hold it (`$XDG_STATE_HOME/surehand`).
    pub user: Option<PathBuf>,
    /// The home directory, which is a work tree only if it is named as the root.
    pub home: Option<PathBuf>,
    /// The directory of the user's own settings, which no tool may write.
    pub settings: Option<PathBuf>,
}

/// An environment variable that does not name a usable directory.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{STATE_DIR} must be an absolute path: {}", path.display())]
pub struct StateHomeError {
    /// The relative path that the variable has as its value.
    pub path: PathBuf,
}

/// Overrides the directory of all state.
const STATE_DIR: &str = "SUREHAND_STATE_DIR";

impl StateHome {
    /// The directories that this environment names. `variable` returns the value of a variable.
    pub fn of_environment(variable: impl Fn(&str) -> Option<OsString>) -> Result<Self, StateHomeError> {
        let fixed = match variable(STATE_DIR).filter(|dir| !dir.is_empty()).map(PathBuf::from) {
            Some(path) if path.is_relative() => return Err(StateHomeError { path }),
            fixed => fixed,
        };
        let home = absolute(&variable, "HOME");
        let config = absolute(&variable, "XDG_CONFIG_HOME").or_else(|| Some(home.as_ref()?.join(".config")));
        let settings = config.map(|dir| dir.join("surehand"));
        Ok(Self { fixed, user: user_state_dir(&variable), home, settings })
    }
}

/// The `surehand` directory in `XDG_STATE_HOME`; `None` without a home directory.
///
/// With `sudo` the environment may name the directories of the calling user. State there would be owned by root and
/// lock that user out, so the home of the account is used instead.
pub fn user_state_dir(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let in_home = |home: PathBuf| home.join(".local/state");
    let named = absolute(&variable, "XDG_STATE_HOME").or_else(|| absolute(&variable, "HOME").map(in_home));
    let dir = named.filter(|dir| is_ours(dir)).or_else(|| account_home().map(in_home).filter(|dir| is_ours(dir)))?;
    Some(dir.join("surehand"))
}

fn absolute(variable: impl Fn(&str) -> Option<OsString>, name: &str) -> Option<PathBuf> {
    variable(name).map(PathBuf::from).filter(|path| path.is_absolute())
}

/// Whether a directory belongs to this user, or would if it were created.
fn is_ours(dir: &Path) -> bool {
    let existing = dir.ancestors().find_map(|dir| dir.metadata().ok());
    existing.is_some_and(|existing| existing.uid() == effective_user())
}

fn account_home() -> Option<PathBuf> {
    let accounts = std::fs::read_to_string("/etc/passwd").ok()?;
    let id = effective_user().to_string();
    accounts.lines().find_map(|account| {
        let fields: Vec<&str> = account.split(':').collect();
        (fields.get(2) == Some(&id.as_str())).then(|| fields.get(5).map(PathBuf::from))?
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_names_the_directories() {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().to_owned();
        let variables = |set: &[(&str, &str)]| {
            let set: Vec<(String, String)> = set.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
            let home = home.clone();
            move |name: &str| match set.iter().find(|(known, _)| known == name) {
                Some((_, value)) => Some(OsString::from(value)),
                None => (name == "HOME").then(|| home.clone().into()),
            }
        };
        let of = |set: &[(&str, &str)]| StateHome::of_environment(variables(set));
        let usual = StateHome {
            fixed: None,
            user: Some(home.join(".local/state/surehand")),
            home: Some(home.clone()),
            settings: Some(home.join(".config/surehand")),
        };
        assert_eq!(of(&[]), Ok(usual.clone()));
        assert_eq!(of(&[("SUREHAND_STATE_DIR", ""), ("XDG_CONFIG_HOME", "relative")]), Ok(usual.clone()));
        assert_eq!(of(&[("SUREHAND_STATE_DIR", "/s")]), Ok(StateHome { fixed: Some("/s".into()), ..usual.clone() }));
        assert_eq!(of(&[("XDG_CONFIG_HOME", "/c")]), Ok(StateHome { settings: Some("/c/surehand".into()), ..usual }));
        let relative = of(&[("SUREHAND_STATE_DIR", "here")]).unwrap_err();
        assert_eq!(relative.to_string(), "SUREHAND_STATE_DIR must be an absolute path: here");
    }
}
