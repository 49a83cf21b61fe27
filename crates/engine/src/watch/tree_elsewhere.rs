//! Where there is no watcher. What others offer reports a change some time after it happened; to be relied on, it would have to
//! be tried out on the systems themselves. Without it stamps are looked at, which is right everywhere.

use std::path::Path;

use surehand_core::RelPath;

use super::{Progress, Trouble};

/// There is none.
#[derive(Debug)]
pub enum Tree {}

impl Tree {
    /// Says so.
    pub fn open(_: &Path, _: usize) -> Result<Self, Trouble> {
        Err(Trouble::NotHere)
    }

    /// Cannot be called.
    pub fn place_all(&mut self, _: impl Fn() -> bool) -> Result<(), Trouble> {
        match *self {}
    }

    /// Cannot be called.
    pub fn catch_up(&mut self) -> Result<Progress, Trouble> {
        match *self {}
    }

    /// Cannot be called.
    pub fn also(&mut self, _: &RelPath) -> Result<(), Trouble> {
        match *self {}
    }

    /// Cannot be called.
    pub fn since(&self, _: &mut u64) -> Option<Vec<RelPath>> {
        match *self {}
    }
}
