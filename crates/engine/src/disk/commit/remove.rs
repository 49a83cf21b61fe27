//! Deletes and moves files. Both keep the file itself and change only its name.

use std::{fs::File, os::fd::AsFd, sync::Arc};

use rustix::{
    fs::{self as sys, OFlags},
    io::Errno,
};
use surehand_core::{RelPath, Stamp};

use super::{
    CommitError,
    exchange::verify_old,
    target::{CommitTarget, OldFile, StagedName, identity, is_file_at, rename_in_other_letters, rename_to_free_name},
};
use crate::disk::rescue::DisplacedFile;

/// A deletion: the file is moved to the staging place, verified, and removed later.
pub(super) struct FileRemoval {
    pub(super) old: OldFile,
    pub(super) staged: StagedName,
    is_taken: bool,
    /// Its stamp after the move, if no other process had it open.
    out: Option<Stamp>,
}

pub(super) struct FileMove {
    pub(super) old: OldFile,
    dir_to: Arc<File>,
    name_to: String,
    is_moved: bool,
}

impl FileRemoval {
    /// Opens the file to be deleted. Nothing is written; the staged name is where the file will be moved.
    pub(super) fn stage(place: &CommitTarget<'_>) -> Result<Self, CommitError> {
        let old = place.open_old(OFlags::RDONLY)?;
        let staged = place.stage_on(identity(&old.stat).0);
        Ok(Self { old, staged, is_taken: false, out: None })
    }

    pub(super) fn take_out(&mut self, place: &CommitTarget<'_>) -> Result<(), CommitError> {
        match sys::renameat(&place.dir, place.name(), &self.staged.dir, &self.staged.name) {
            Ok(()) => {
                self.is_taken = true;
                Ok(())
            }
            Err(errno) => Err(place.refuse_rename(errno, "delete", &self.staged)),
        }
    }

    pub(super) fn verify(&mut self, place: &CommitTarget<'_>) -> Result<(), CommitError> {
        let at = (&*self.staged.dir, self.staged.name.as_str());
        // A file with other hard links loses nothing by losing this name.
        self.out = verify_old(place, &self.old, at, |_| true)?.stamp;
        Ok(())
    }

    /// Completes the deletion: the file waits for its second look.
    pub(super) fn finish(self, place: &CommitTarget<'_>) {
        let Some(version) = place.base_version() else { return };
        let displaced = DisplacedFile::taken_back(self.staged.dir, self.staged.name, place.path().clone(), version);
        place.copy.displace(DisplacedFile { stamp: self.out, ..displaced });
    }

    /// Puts the file back. If another program has created a new one meanwhile, that stays, and this one is rescued.
    pub(super) fn roll_back(self, place: &CommitTarget<'_>) {
        let from = (&*self.staged.dir, self.staged.name.as_str());
        if self.is_taken && rename_to_free_name(from, (&place.dir, place.name())).is_err() {
            place.copy.rescue(self.staged.dir.as_fd(), &self.staged.name, place.path());
        }
    }
}

impl FileMove {
    /// Opens the file to be moved, and the directory that it is moved to.
    pub(super) fn stage(place: &mut CommitTarget<'_>, to: &RelPath) -> Result<Self, CommitError> {
        place.make_directories(to)?;
        let dir_to = place.open_parent(to)?;
        let old = place.open_old(OFlags::RDONLY)?;
        Ok(Self { old, dir_to, name_to: to.name().to_owned(), is_moved: false })
    }

    pub(super) fn destination(&self) -> (&Arc<File>, &str) {
        (&self.dir_to, &self.name_to)
    }

    /// Renames the file, unless something has the new name by now.
    pub(super) fn rename(&mut self, place: &CommitTarget<'_>) -> Result<(), CommitError> {
        let (from, to) = ((&*place.dir, place.name()), (&*self.dir_to, self.name_to.as_str()));
        match rename_in_other_letters(from, to) {
            Ok(()) => {
                self.is_moved = true;
                Ok(())
            }
            Err(Errno::NOENT | Errno::EXIST) => Err(place.changed()),
            Err(errno) => Err(place.failed("move", errno)),
        }
    }

    pub(super) fn verify(&self, place: &CommitTarget<'_>) -> Result<(), CommitError> {
        let at = (&*self.dir_to, self.name_to.as_str());
        verify_old(place, &self.old, at, |_| true).map(drop)
    }

    /// Renames the file back, if it is still the one that we moved. Another program's file stays.
    pub(super) fn roll_back(self, place: &CommitTarget<'_>) {
        let at = (&*self.dir_to, self.name_to.as_str());
        if !self.is_moved || !is_file_at(at.0, at.1, &self.old.file) {
            return;
        }
        if rename_in_other_letters(at, (&place.dir, place.name())).is_err() {
            place.copy.rescue(self.dir_to.as_fd(), &self.name_to, place.path());
        }
    }
}
