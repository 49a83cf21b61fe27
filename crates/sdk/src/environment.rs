//! The variables of the environment that settings and the place of the state may come from.

use std::{collections::HashMap, ffi::OsString};

/// Variables of an environment. The default is an empty one.
#[derive(Debug, Clone, Default)]
pub struct Environment(HashMap<String, OsString>);

impl Environment {
    /// The environment of this process, so that settings and state are those of the program `surehand`. A binding calls
    /// it while no other thread can change the environment.
    pub fn of_process() -> Self {
        Self(std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value))).collect())
    }

    pub(crate) fn get(&self, name: &str) -> Option<OsString> {
        self.0.get(name).cloned()
    }

    /// The variables whose values are text.
    pub(crate) fn texts(&self) -> impl Iterator<Item = (String, String)> {
        self.0.iter().filter_map(|(name, value)| Some((name.clone(), value.to_str()?.to_owned())))
    }
}
