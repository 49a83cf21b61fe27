//! Where there is no watcher. What others offer reports a change some time after it happened; to be relied on, it would have to
//! be tried out on the systems themselves. Without it stamps are looked at, which is right everywhere.

use std::path::Path;

use surehand_core::RelPath;

use super::{Progress, Trouble};

/// There is none.
#[derive(Debug)]
pub(crate) enum Tree {}

impl Tree {
    /// Says so.
    pub(crate) fn open(_: &Path, _: usize) -> Result<Self, Trouble> {
        Err(Trouble::NotHere)
    }

    /// Cannot be called.
    pub(crate) fn place_all(&mut self, _: impl Fn() -> bool) -> Result<(), Trouble> {
        match *self {}
    }

    /// Cannot be called.
    pub(crate) fn catch_up(&mut self) -> Result<Progress, Trouble> {
        match *self {}
    }

    /// Cannot be called.
    pub(crate) fn also(&mut self, _: &RelPath) -> Result<(), Trouble> {
        match *self {}
    }

    /// Cannot be called.
    pub(crate) fn since(&self, _: &mut u64) -> Option<Vec<RelPath>> {
        match *self {}
    }
}
