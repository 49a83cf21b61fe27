//! Overwrites the bytes of a file in place. This is for files with several hard links, which must all show the change,
//! and for files whose owner or attributes cannot be given to another file.
//!
//! Only this way of writing can leave a file half written. So copies of the old and the new content are made first;
//! with both, recovery can tell a torn file from one that another program has changed. A write lease keeps other
//! programs from opening the file meanwhile. If a program has the file open already, the edit is refused, because its
//! writes would be lost without a trace.
//!
//! Only the owner of a file can take a lease on it. A file of another owner is written without one: its bytes are
//! compared right before and after, and only a write between that comparison and ours is lost.

use std::{
    fs::File,
    io::{self, Seek, Write},
    os::fd::AsFd,
};

use rustix::fs::OFlags;
use surehand_core::{Cause, Refusal, Stamp};

use super::{
    CommitError,
    target::{CommitTarget, OldFile, StagedName, is_file_at, same_bytes},
};
use crate::disk::{
    lease::{Lease, NoLease},
    rescue::DisplacedFile,
    staging,
};

pub(super) struct InPlaceWrite {
    pub(super) old: OldFile,
    pub(super) old_copy: (StagedName, File),
    new_copy: (StagedName, File),
    pub(super) written: Option<Stamp>,
    progress: InPlacePhase,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum InPlacePhase {
    Untouched,
    /// It may be torn.
    Begun,
    Complete,
}

/// Ending that is added to the staged name for the copy of the new content.
pub(in crate::disk) const NEW_COPY: &str = ".new";

impl InPlaceWrite {
    pub(super) fn stage(place: &CommitTarget<'_>, staged: StagedName) -> Result<Self, CommitError> {
        place.announce(&staged)?;
        let with_new = staged.with_ending(NEW_COPY);
        let keep = |staged: &StagedName, content| {
            staging::write_copy(staged.dir.as_fd(), &staged.name, content).map_err(|error| place.failed("keep a copy", error))
        };
        let kept = keep(&staged, place.base())
            .and_then(|old| Ok((old, keep(&with_new, place.content())?, place.open_old(OFlags::RDWR)?)));
        match kept {
            Ok((old_copy, new_copy, old)) => Ok(Self {
                old,
                old_copy: (staged, old_copy),
                new_copy: (with_new, new_copy),
                written: None,
                progress: InPlacePhase::Untouched,
            }),
            Err(error) => {
                with_new.remove();
                staged.remove();
                Err(error)
            }
        }
    }

    /// The files to sync before the first byte is written: the copies, and the directory with their names.
    pub(super) fn to_sync(&self) -> [&File; 3] {
        [&self.old_copy.1, &self.new_copy.1, &self.old_copy.0.dir]
    }

    pub(super) fn check(&mut self, place: &CommitTarget<'_>) -> Result<(), CommitError> {
        match Lease::take_patiently(&self.old.file) {
            Ok(lease) => self.old.lease = Some(lease),
            Err(NoLease::IsOpen) if place.copy.state.rescued.leases_exist() => {
                let why = "has several hard links or belongs to another user, so it can only be written in place, and another \
                           program has it open; try again when it is closed";
                return Err(CommitError::Refused(Box::new(Refusal::of(place.path(), Cause::Conflict { why: why.to_owned() }))));
            }
            Err(NoLease::IsOpen | NoLease::NotOurs | NoLease::NotHere) => {}
        }
        place.check_base(&self.old)
    }

    pub(super) fn write(&mut self, place: &CommitTarget<'_>) -> Result<(), CommitError> {
        self.progress = InPlacePhase::Begun;
        overwrite(&self.old.file, place.content()).map_err(|error| place.failed("write", error))?;
        self.written = place.stamp_of(&self.old.file);
        self.progress = InPlacePhase::Complete;
        Ok(())
    }

    /// Another program may have put a new file in place of the open one; then the new file did not get the content.
    /// Without a lease, a program may also have written to the open one.
    pub(super) fn verify(&self, place: &CommitTarget<'_>) -> Result<(), CommitError> {
        let is_there = is_file_at(&place.dir, place.name(), &self.old.file);
        let is_ours = || self.old.lease.is_some() || same_bytes(&self.old.file, place.content()).unwrap_or(false);
        if is_there && is_ours() { Ok(()) } else { Err(place.changed()) }
    }

    pub(super) fn finish(self) {
        self.new_copy.0.remove();
        self.old_copy.0.remove();
    }

    /// Restores a torn write. A complete one stays, because another program may have written after it.
    pub(super) fn roll_back(self, place: &CommitTarget<'_>) {
        let old = &self.old.file;
        let is_ours = match self.progress {
            InPlacePhase::Untouched => false,
            InPlacePhase::Begun => true,
            InPlacePhase::Complete => same_bytes(old, place.content()).unwrap_or(false),
        };
        if is_ours {
            drop(overwrite(old, place.base()));
        }
        let is_back = self.progress == InPlacePhase::Untouched || same_bytes(old, place.base()).unwrap_or(false);
        self.new_copy.0.remove();
        let (staged, _) = self.old_copy;
        if !is_back {
            // For whatever reason, the copy is all that is left of the old content.
            place.copy.rescue(staged.dir.as_fd(), &staged.name, place.path());
        } else if let (false, Some(version)) = (staged.remove(), place.base_version()) {
            // If nothing may be removed now, the second look tries again.
            place.copy.displace(DisplacedFile::taken_back(staged.dir, staged.name, place.path().clone(), version));
        }
    }
}

fn overwrite(mut file: &File, content: &[u8]) -> io::Result<()> {
    file.rewind()?;
    file.write_all(content)?;
    file.set_len(content.len() as u64)
}
