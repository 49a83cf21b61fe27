//! Replaces a file by exchanging it with a staged one. This is the usual way to write.
//!
//! 1. Stage the new file out of sight, with the mode, owner and attributes of the old one.
//! 2. Take a write lease on the old file (see [`crate::disk::lease`]) and compare its bytes with those that the plan
//!    was made for.
//! 3. Exchange the two files in one system call. At any instant the name leads to one of them.
//! 4. Verify the file that came out. If it is the file from step 2, has one name, and its lease still holds, no program
//!    has written to it. Otherwise compare its bytes again; if they differ, another program's newer version came out,
//!    and the two are exchanged back. Changes to mode, owner or attributes since step 1 are carried over to the new
//!    file.
//! 5. Keep the old file for a second look (see [`crate::disk::rescue`]): a program that opened it before the exchange
//!    may still write to it, or change its mode.
//!
//! The trap is the time between steps 2 and 3. A comparison alone proves nothing there: a program may open the file
//! after the comparison and write after the exchange. The lease closes this gap, because the kernel holds back such an
//! open and notifies us. Where leases are not available, only steps 4 and 5 catch the late writer: its bytes are saved,
//! but in `rescued/`.
//!
//! If the file system cannot exchange files, the old file gets a second name and the new one is renamed over the first.
//! If it has no hard links either (exFAT), a copy of the old content is kept, and late writes can only be seen through
//! the open file.

use std::{
    fs::File,
    io::{self, Read, Seek, Write},
    os::fd::AsFd,
};

use rustix::{
    fs::{self as sys, AtFlags, Mode, OFlags, RenameFlags, Stat},
    io::Errno,
};
use surehand_core::Stamp;

use super::{
    CommitError,
    target::{CommitTarget, OldFile, StagedName, identity, is_file_at, rename_to_free_name, same_bytes},
};
use crate::disk::{
    lease::LeaseState,
    metadata::Metadata,
    read_file::{link_count, open_at, open_patiently},
    rescue::{DisplacedFile, ReplacementFile},
    staging,
};

pub(super) struct FileExchange {
    pub(super) old: OldFile,
    pub(super) new: File,
    pub(super) written: Stamp,
    pub(super) metadata: Metadata,
    /// Whether `metadata` has changed since the new file was staged.
    has_carried_over: bool,
    pub(super) staged: StagedName,
    phase: ExchangePhase,
    /// The stamp of the old file after the exchange, if no other process had it open.
    out: Option<Stamp>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ExchangePhase {
    Staged,
    /// The new file is in place, and the old one has the staged name.
    Exchanged,
    /// The new file is in place, and the old one has a name of its own ([`OLD_NAME`]).
    RenamedOver,
    /// The new file is in place, and a copy of the old one has that name.
    Replaced,
}

/// Ending of the old file's name in the staging place, on file systems that cannot exchange files.
pub(in crate::disk) const OLD_NAME: &str = ".old";

impl FileExchange {
    /// Stages the new file; `None` if owner or attributes of the old file cannot be given to a new one.
    pub(super) fn stage(place: &CommitTarget<'_>, old: OldFile, staged: StagedName) -> Result<Option<Box<Self>>, CommitError> {
        place.announce(&staged)?;
        match write_new(place, &old, &staged) {
            Ok((new, stat, metadata)) => {
                let (written, phase) = (place.copy.clock().stamp(&stat), ExchangePhase::Staged);
                Ok(Some(Box::new(Self { old, new, written, metadata, has_carried_over: false, staged, phase, out: None })))
            }
            Err(error) => {
                staged.remove();
                match error {
                    NotWritten::Metadata(Errno::PERM | Errno::ACCESS | Errno::OPNOTSUPP) => Ok(None),
                    NotWritten::Metadata(errno) => Err(place.failed("write", errno)),
                    NotWritten::Content(error) => Err(place.failed_unless_gone("write", error)),
                }
            }
        }
    }

    /// The metadata, if it has changed since the new file was staged.
    pub(super) fn carried_over(&self) -> Option<&Metadata> {
        self.has_carried_over.then_some(&self.metadata)
    }

    pub(super) fn is_exchanged(&self) -> bool {
        matches!(self.phase, ExchangePhase::Staged | ExchangePhase::Exchanged)
    }

    pub(super) fn swap(&mut self, place: &CommitTarget<'_>) -> Result<(), CommitError> {
        let exchanged = match place.copy.can_exchange() {
            true => sys::renameat_with(&self.staged.dir, &self.staged.name, &place.dir, place.name(), RenameFlags::EXCHANGE),
            false => Err(Errno::OPNOTSUPP),
        };
        match exchanged {
            Ok(()) => {
                self.phase = ExchangePhase::Exchanged;
                Ok(())
            }
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => self.rename_over(place),
            Err(errno) => Err(place.refuse_rename(errno, "replace", &self.staged)),
        }
    }

    /// Replaces the file on a file system without exchange: the old file gets a second name, then the new one takes its
    /// place.
    fn rename_over(&mut self, place: &CommitTarget<'_>) -> Result<(), CommitError> {
        let kept = self.staged.with_ending(OLD_NAME);
        let renamed = keep_old(place, &kept).and_then(|phase| {
            let renamed = sys::renameat(&self.staged.dir, &self.staged.name, &place.dir, place.name());
            renamed.map(|()| phase).map_err(|errno| place.refuse_rename(errno, "replace", &self.staged))
        });
        match renamed {
            Ok(phase) => {
                (self.staged, self.phase) = (kept, phase);
                Ok(())
            }
            Err(error) => {
                // A second name of the file, which still has its first one, or a copy of it.
                kept.remove();
                Err(error)
            }
        }
    }

    /// Verifies that the file that came out has the content that the plan was made for.
    pub(super) fn verify(&mut self, place: &CommitTarget<'_>) -> Result<(), CommitError> {
        if self.phase == ExchangePhase::Replaced {
            return place.check_base(&self.old);
        }
        let at = (&*self.staged.dir, self.staged.name.as_str());
        // A hard link that was added meanwhile must not lose its file. After a rename the count is not checked again,
        // because `keep_old` did so: some FUSE file systems keep a replaced file under a name of their own while we
        // have it open.
        let is_renamed_over = self.phase == ExchangePhase::RenamedOver;
        let came_out = verify_old(place, &self.old, at, |stat| is_renamed_over || link_count(stat) == 1)?;
        self.out = came_out.stamp;
        self.carry_over_metadata(&came_out).map_err(|_| place.changed())
    }

    /// Applies changes of the old file's metadata since staging to the new file.
    fn carry_over_metadata(&mut self, came_out: &VerifiedOld) -> io::Result<()> {
        let now = Metadata::of(came_out.other.as_ref().unwrap_or(&self.old.file), &came_out.stat)?;
        if let Some(change) = now.change_from(&self.metadata) {
            change.apply(&self.new)?;
            (self.metadata, self.has_carried_over) = (now, true);
        }
        Ok(())
    }

    /// Completes the exchange: the old file waits for its second look.
    pub(super) fn finish(self, place: &CommitTarget<'_>) {
        let Some(version) = place.base_version() else { return };
        let handle = (self.phase == ExchangePhase::Replaced).then_some(self.old.file);
        let replacement = ReplacementFile { dir: place.dir.clone(), metadata: self.metadata };
        let displaced = DisplacedFile::taken_back(self.staged.dir, self.staged.name, place.path().clone(), version);
        place.copy.displace(DisplacedFile { stamp: self.out, replacement: Some(replacement), handle, ..displaced });
    }

    pub(super) fn roll_back(mut self, place: &CommitTarget<'_>) {
        if let Some(lease) = self.old.lease.take() {
            lease.release(&self.old.file);
        }
        match self.phase {
            ExchangePhase::Staged => {
                if let (false, Some(version)) = (self.staged.remove(), place.content_version()) {
                    // If nothing may be removed now, the second look tries again.
                    let StagedName { dir, name } = self.staged;
                    place.copy.displace(DisplacedFile::taken_back(dir, name, place.path().clone(), version));
                }
            }
            ExchangePhase::Exchanged => self.exchange_back(place),
            ExchangePhase::RenamedOver | ExchangePhase::Replaced => {
                let is_kept_current = self.phase == ExchangePhase::RenamedOver || self.write_back().is_ok();
                if !is_kept_current || !self.put_over_ours(place) {
                    place.copy.rescue(self.staged.dir.as_fd(), &self.staged.name, place.path());
                }
            }
        }
    }

    /// Exchanges the two back. If another program has replaced our file by now, its file stays and the old one is
    /// rescued.
    fn exchange_back(self, place: &CommitTarget<'_>) {
        let (staged, target) = ((&*self.staged.dir, self.staged.name.as_str()), (&*place.dir, place.name()));
        let exchange = || sys::renameat_with(staged.0, staged.1, target.0, target.1, RenameFlags::EXCHANGE);
        if exchange().is_err() {
            // Nothing has the name any more, so the old file gets it back.
            if rename_to_free_name(staged, target).is_err() {
                place.copy.rescue(self.staged.dir.as_fd(), &self.staged.name, place.path());
            }
        } else if self.staged.is_same_file(&self.new) {
            self.displace_ours(place);
        } else {
            let _ = exchange();
            place.copy.rescue(self.staged.dir.as_fd(), &self.staged.name, place.path());
        }
    }

    /// Displaces our own file, which other programs could see for a moment. A change of its mode was meant for the file
    /// in its place, and a program may be writing to it, so it gets a second look, too.
    fn displace_ours(self, place: &CommitTarget<'_>) {
        let Some(version) = place.content_version() else { return };
        let replacement = ReplacementFile { dir: place.dir.clone(), metadata: self.metadata };
        let displaced = DisplacedFile::taken_back(self.staged.dir, self.staged.name, place.path().clone(), version);
        let mut displaced = DisplacedFile { replacement: Some(replacement), ..displaced };
        // A change that cannot be carried over now is tried again at the second look.
        let _ = displaced.carry_over_metadata(&self.new);
        place.copy.displace(displaced);
    }

    /// Renames the kept file over the file in place, if that is still ours.
    fn put_over_ours(&self, place: &CommitTarget<'_>) -> bool {
        is_file_at(&place.dir, place.name(), &self.new)
            && sys::renameat(&self.staged.dir, &self.staged.name, &place.dir, place.name()).is_ok()
    }

    /// Updates the copy to the present bytes and metadata of the old file.
    fn write_back(&mut self) -> io::Result<()> {
        let mut bytes = Vec::new();
        self.old.file.rewind()?;
        self.old.file.read_to_end(&mut bytes)?;
        let flags = OFlags::RDWR | OFlags::TRUNC | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let mut copy = File::from(sys::openat(&self.staged.dir, &self.staged.name, flags, Mode::empty())?);
        copy.write_all(&bytes)?;
        let now = Metadata::of(&copy, &sys::fstat(&copy)?)?;
        let wanted = Metadata::of(&self.old.file, &sys::fstat(&self.old.file)?)?;
        Ok(wanted.change_from(&now).map_or(Ok(()), |change| change.apply(&copy))?)
    }
}

/// Gives the file in place a second name or, on file systems without hard links, copies it.
fn keep_old(place: &CommitTarget<'_>, kept: &StagedName) -> Result<ExchangePhase, CommitError> {
    match sys::linkat(&place.dir, place.name(), &kept.dir, &kept.name, AtFlags::empty()) {
        Ok(()) => match sys::statat(&kept.dir, &kept.name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) if link_count(&stat) <= 2 => Ok(ExchangePhase::RenamedOver),
            // A hard link that was added meanwhile must not lose its file.
            Ok(_) | Err(Errno::NOENT) => Err(place.changed()),
            Err(errno) => Err(place.failed("replace", errno)),
        },
        Err(Errno::PERM | Errno::OPNOTSUPP | Errno::NOSYS) => {
            let copied = staging::write_copy(kept.dir.as_fd(), &kept.name, place.base());
            let copied = copied.and_then(|copy| if place.is_durable() { copy.sync_all() } else { Ok(()) });
            copied.map(|()| ExchangePhase::Replaced).map_err(|error| place.failed("keep a copy", error))
        }
        Err(errno) => Err(place.refuse_rename(errno, "replace", kept)),
    }
}

enum NotWritten {
    Content(io::Error),
    Metadata(Errno),
}

/// Writes the new file and gives it the metadata of the old one. Also returns its status after the write.
fn write_new(place: &CommitTarget<'_>, old: &OldFile, staged: &StagedName) -> Result<(File, Stat, Metadata), NotWritten> {
    let metadata = Metadata::of(&old.file, &old.stat).map_err(NotWritten::Metadata)?;
    // Created with its final mode, which saves setting it. If it will belong to another owner, only we may read it
    // until then.
    let mode =
        if place.copy.is_owner(&old.stat) { Mode::from_raw_mode(old.stat.st_mode & 0o777) } else { Mode::RUSR | Mode::WUSR };
    let new = staging::create_new(staged.dir.as_fd(), &staged.name, mode).map_err(NotWritten::Content)?;
    (&new).write_all(place.content()).map_err(NotWritten::Content)?;
    let stat = sys::fstat(&new).map_err(|errno| NotWritten::Content(errno.into()))?;
    let now = Metadata::of(&new, &stat).map_err(NotWritten::Metadata)?;
    // The new file keeps the security labels that the system gave it.
    let change = metadata.change_from(&now.without_labels());
    change.map_or(Ok(()), |change| change.apply(&new)).map_err(NotWritten::Metadata)?;
    Ok((new, stat, metadata))
}

/// An old file that came out of its place and has the content that the plan was made for.
pub(super) struct VerifiedOld {
    pub(super) stat: Stat,
    /// Its stamp, if it is the file that was checked and no other process had it open.
    pub(super) stamp: Option<Stamp>,
    /// The file that came out, if it is not the one that was checked.
    other: Option<File>,
}

/// Verifies that the file that came out has the content that the plan was made for. `may_go`
/// says whether a file with this status may leave its place, which a file with other hard links may not in an exchange.
pub(super) fn verify_old(
    place: &CommitTarget<'_>,
    old: &OldFile,
    (dir, name): (&File, &str),
    may_go: impl Fn(&Stat) -> bool,
) -> Result<VerifiedOld, CommitError> {
    let stat = sys::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW).map_err(|errno| place.failed("look at the old file", errno))?;
    let stamp = place.copy.clock().stamp(&stat);
    if !may_go(&stat) {
        return Err(place.changed());
    }
    if identity(&stat) != identity(&old.stat) {
        // Another program has replaced the checked file. A file with the same bytes is as good.
        let other = open_patiently(|| open_at(dir, name)).ok().filter(|file| same_bytes(file, place.base()).unwrap_or(false));
        return other.map(|file| VerifiedOld { stat, stamp: None, other: Some(file) }).ok_or_else(|| place.changed());
    }
    // The lease is asked after the stamp was taken, so a later write changes the stamp.
    match old.lease.as_ref().map(|lease| lease.state(&old.file)) {
        Some(LeaseState::Held | LeaseState::ReaderWaits) => Ok(VerifiedOld { stat, stamp: Some(stamp), other: None }),
        // A writer waits for the old file. Give way to it, and plan again afterwards.
        Some(LeaseState::Broken) => Err(place.changed()),
        None => place.check_base(old).map(|()| VerifiedOld { stat, stamp: None, other: None }),
    }
}
