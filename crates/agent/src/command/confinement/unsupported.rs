//! Systems without a way to confine a command.

use std::{
    ffi::{OsStr, OsString},
    io,
    path::Path,
};

use super::ConfinementSupport;

const MISSING: &str = "commands can be confined on Linux only";

pub(super) struct Restrictions;

pub(super) struct GrantedEntry {
    pub(super) is_dir: bool,
    pub(super) is_writable_file: bool,
    pub(super) identity: (u64, u64),
}

pub(super) fn try_out() -> io::Result<ConfinementSupport> {
    Ok(ConfinementSupport::Missing { why: MISSING.to_owned() })
}

pub(super) fn open(_: &Path) -> io::Result<GrantedEntry> {
    Err(io::Error::other(MISSING))
}

impl Restrictions {
    pub(super) fn new(_: bool) -> io::Result<Self> {
        Err(io::Error::other(MISSING))
    }

    pub(super) fn grant_dir(&mut self, _: &GrantedEntry) -> io::Result<()> {
        Err(io::Error::other(MISSING))
    }

    pub(super) fn grant_file(&mut self, _: &GrantedEntry) -> io::Result<()> {
        Err(io::Error::other(MISSING))
    }

    pub(super) fn apply(&self) -> io::Result<()> {
        Err(io::Error::other(MISSING))
    }
}

impl GrantedEntry {
    pub(super) fn open(&self, _: &OsStr) -> io::Result<Self> {
        Err(io::Error::other(MISSING))
    }

    pub(super) fn names(&self) -> io::Result<Vec<OsString>> {
        Err(io::Error::other(MISSING))
    }
}
