//! Files that are taken from their place: deleted, or moved to another name.

use std::{fs::File, os::fd::AsFd};

use rustix::{
    fs::{self as sys, AtFlags, OFlags, RenameFlags},
    io::Errno,
};
use surehand_core::RelPath;

use super::{Work, identity};
use crate::disk::{commit::CommitError, journal::How};

impl Work<'_> {
    /// Opens the file that is to go. Nothing is staged: its name there is where it will be taken.
    pub(super) fn stage_removal(&mut self, name: String) -> Result<(), CommitError> {
        self.how = How::Remove;
        let (old, stat) = self.open_old(OFlags::RDONLY)?;
        self.staged = Some(self.stage_place(name, identity(&stat).0));
        self.written = Some(self.copy.clock().stamp(&stat));
        self.old = Some((old, stat));
        Ok(())
    }

    /// Opens the file that is to be moved, and the directory that it is moved to.
    pub(super) fn stage_move(&mut self, to: &RelPath) -> Result<(), CommitError> {
        self.how = How::Move;
        self.make_directories(to)?;
        self.dir_to = Some(self.open_parent(to)?);
        let (old, stat) = self.open_old(OFlags::RDONLY)?;
        self.written = Some(self.copy.clock().stamp(&stat));
        self.old = Some((old, stat));
        Ok(())
    }

    /// Where the old file is after the swap.
    pub(super) fn place_of_old(&self) -> (&File, &str) {
        match (self.to(), &self.dir_to) {
            (Some(to), Some(dir)) => (dir, to.name()),
            _ => self.staged(),
        }
    }

    /// Takes the file out of its place.
    pub(super) fn take_out(&self) -> Result<(), CommitError> {
        let (dir, staged) = self.staged();
        match sys::renameat(self.dir(), self.name(), dir, staged) {
            Ok(()) => Ok(()),
            Err(Errno::NOENT) => Err(self.changed()),
            Err(Errno::XDEV) => {
                self.staged_too_far();
                Err(self.changed())
            }
            Err(errno) => Err(self.failed("delete", errno)),
        }
    }

    /// Gives the file its other name, unless something has that name by now.
    pub(super) fn move_over(&self) -> Result<(), CommitError> {
        let (dir_to, name_to) = self.place_of_old();
        match rename_to_free_name((self.dir(), self.name()), (dir_to, name_to)) {
            Ok(()) => Ok(()),
            Err(Errno::NOENT | Errno::EXIST) => Err(self.changed()),
            Err(errno) => Err(self.failed("move", errno)),
        }
    }

    /// Puts a file back that was to be deleted. If somebody has made another one meanwhile, that stays and this one is rescued.
    pub(super) fn put_back(&mut self) {
        let Some((dir, name)) = self.staged.take() else { return };
        if rename_to_free_name((&dir, &name), (self.dir(), self.name())).is_err() {
            self.copy.rescue(dir.as_fd(), &name, self.path());
        }
    }

    /// Gives a file that was moved its first name back.
    pub(super) fn move_back(&mut self) {
        let (dir_to, name_to) = self.place_of_old();
        // Only if it is the one that we moved: whatever else is there now is somebody's, and stays.
        let there = sys::statat(dir_to, name_to, AtFlags::SYMLINK_NOFOLLOW).ok();
        if there.map(|stat| identity(&stat)) != Some(identity(self.old().1)) {
            return;
        }
        if rename_to_free_name((dir_to, name_to), (self.dir(), self.name())).is_err() {
            self.copy.rescue(dir_to.as_fd(), name_to, self.path());
        }
    }
}

/// Renames a file to a name that nothing has, else [`Errno::EXIST`].
pub(in crate::disk) fn rename_to_free_name(from: (&File, &str), to: (&File, &str)) -> rustix::io::Result<()> {
    match sys::renameat_with(from.0, from.1, to.0, to.1, RenameFlags::NOREPLACE) {
        // Where the system has no such call a second name does the same, which also fails if the name is taken.
        Err(Errno::INVAL | Errno::NOSYS) => {
            sys::linkat(from.0, from.1, to.0, to.1, AtFlags::empty())?;
            sys::unlinkat(from.0, from.1, AtFlags::empty())
        }
        renamed => renamed,
    }
}
