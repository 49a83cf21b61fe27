//! The scopes of a configuration, and the directories where clients look for it.

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use surehand_engine::GitCheckout;

use crate::user_dirs;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, ValueEnum)]
pub(crate) enum ConfigScope {
    /// For this user in this project: files that git does not see.
    Me,
    /// For this user in every project.
    Everywhere,
    /// For everyone who works in this project: files to commit.
    Project,
}

impl ConfigScope {
    pub(crate) const ALL: [ConfigScope; 3] = [ConfigScope::Me, ConfigScope::Project, ConfigScope::Everywhere];

    pub(crate) fn name(self) -> &'static str {
        match self {
            ConfigScope::Me => "me",
            ConfigScope::Everywhere => "everywhere",
            ConfigScope::Project => "project",
        }
    }

    pub(crate) fn in_words(self) -> &'static str {
        match self {
            ConfigScope::Me => "for you in this project",
            ConfigScope::Everywhere => "for you in every project",
            ConfigScope::Project => "for everyone in this project",
        }
    }
}

#[derive(Debug, Clone)]
pub(crate) struct ConfigDirs {
    pub root: PathBuf,
    pub home: PathBuf,
    pub checkout: Option<GitCheckout>,
    variable: fn(&str) -> Option<PathBuf>,
}

impl ConfigDirs {
    pub(crate) fn here(root: PathBuf) -> anyhow::Result<Self> {
        let Some(home) = user_dirs::variable("HOME") else {
            anyhow::bail!("HOME is not set, so the clients' configuration cannot be found")
        };
        let checkout = GitCheckout::around(&root, &user_dirs::state_home()?);
        Ok(Self { root, home, checkout, variable: user_dirs::variable })
    }

    #[cfg(test)]
    pub(crate) fn at(root: PathBuf, home: PathBuf) -> Self {
        Self { root, home, checkout: None, variable: |_| None }
    }

    /// The value of an environment variable, if it is an absolute path.
    pub(crate) fn variable(&self, name: &str) -> Option<PathBuf> {
        (self.variable)(name)
    }

    /// The directory that a variable names, or by default this one in the user's home.
    pub(crate) fn in_home(&self, variable: &str, directory: &str) -> PathBuf {
        self.variable(variable).unwrap_or_else(|| self.home.join(directory))
    }

    /// A directory of the user's configuration, `~/.config` by default.
    pub(crate) fn in_config(&self, directory: &str) -> PathBuf {
        self.in_home("XDG_CONFIG_HOME", ".config").join(directory)
    }

    /// A path for people: relative to the root or to the home directory.
    pub(crate) fn shown(&self, path: &Path) -> String {
        match (path.strip_prefix(&self.root), path.strip_prefix(&self.home)) {
            (Ok(path), _) => path.display().to_string(),
            (_, Ok(path)) => format!("~/{}", path.display()),
            _ => path.display().to_string(),
        }
    }
}
