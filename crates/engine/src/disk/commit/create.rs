//! Creates a file. It gets its name only when it is complete, and only if that name is free.

use std::{fs::File, os::fd::AsFd};

use rustix::{
    fs::{self as sys, Mode},
    io::Errno,
};
use surehand_core::{FileAction, RelPath, Stamp, plan::NewFileAttributes};

use super::{
    CommitError,
    target::{CommitTarget, StagedName, rename_to_free_name},
};
use crate::disk::{
    metadata::Metadata,
    read_file::{FoundPath, find},
    rescue::DisplacedFile,
    staging,
};

pub(super) struct FileCreation {
    pub(super) new: File,
    /// Its name until it is put in place; `None` if the system can create files without a name.
    staged: Option<StagedName>,
    /// Where a rollback moves the file. The journal names it, so that the file is found after a crash.
    pub(super) rollback_place: StagedName,
    pub(super) written: Option<Stamp>,
    is_put: bool,
}

impl FileCreation {
    pub(super) fn stage(place: &CommitTarget<'_>) -> Result<Self, CommitError> {
        let nameless = staging::nameless(place.dir.as_fd(), place.content()).map_err(|error| place.failed("write", error))?;
        let (new, staged) = match nameless {
            Some(new) => (new, None),
            None => {
                let (new, staged) = stage_with_name(place)?;
                (new, Some(staged))
            }
        };
        if let Err(error) = give_metadata(place, &new) {
            remove(staged.as_ref());
            return Err(error);
        }
        let written = place.stamp_of(&new);
        let device = written.map_or(place.copy.state.device, |stamp| stamp.device);
        let rollback_place = staged.clone().unwrap_or_else(|| place.stage_on(device));
        Ok(Self { new, staged, rollback_place, written, is_put: false })
    }

    pub(super) fn put(&mut self, place: &CommitTarget<'_>) -> Result<(), CommitError> {
        let put = match &self.staged {
            None => staging::name_it(&self.new, place.dir.as_fd(), place.name()),
            Some(staged) => rename_to_free_name((&staged.dir, &staged.name), (&place.dir, place.name())),
        };
        match put {
            Ok(()) => {
                self.is_put = true;
                Ok(())
            }
            Err(Errno::EXIST) => Err(place.changed()),
            Err(errno) => Err(place.failed_unless_gone("create", errno)),
        }
    }

    /// Removes the new file, unless another program has replaced it.
    pub(super) fn roll_back(self, place: &CommitTarget<'_>) {
        if !self.is_put {
            remove(self.staged.as_ref());
            return;
        }
        let Some(out) = take_out(place, &self.rollback_place) else { return };
        if out.is_same_file(&self.new) {
            // Other programs could see it, and one may be writing to it: it gets a second look.
            let Some(version) = place.content_version() else { return };
            place.copy.displace(DisplacedFile::taken_back(out.dir, out.name, place.path().clone(), version));
        } else if rename_to_free_name((&out.dir, &out.name), (&place.dir, place.name())).is_err() {
            place.copy.rescue(out.dir.as_fd(), &out.name, place.path());
        }
    }
}

/// Removes a staged file that no other program has ever seen.
fn remove(staged: Option<&StagedName>) {
    if let Some(staged) = staged {
        staged.remove();
    }
}

/// Stages the file beside its target, so that it gets the owner, group and rights of new files there.
fn stage_with_name(place: &CommitTarget<'_>) -> Result<(File, StagedName), CommitError> {
    let staged = place.stage_beside();
    place.announce(&staged)?;
    let written = staging::write_copy(staged.dir.as_fd(), &staged.name, place.content());
    let mode = Mode::from_raw_mode(0o666 & !place.copy.umask());
    let written = written.and_then(|new| sys::fchmod(&new, mode).map(|()| new).map_err(Into::into));
    match written {
        Ok(new) => Ok((new, staged)),
        Err(error) => {
            staged.remove();
            Err(place.failed_unless_gone("write", error))
        }
    }
}

/// Gives a new file the mode of the file that it continues and, as far as we are permitted, its owner and
/// attributes.
fn give_metadata(place: &CommitTarget<'_>, new: &File) -> Result<(), CommitError> {
    let FileAction::Write { marks, .. } = place.planned.act() else { return Ok(()) };
    let given = match marks {
        NewFileAttributes::Usual => Ok(()),
        NewFileAttributes::Mode(mode) => sys::fchmod(new, Mode::from_raw_mode(mode & 0o777)),
        NewFileAttributes::Of(other) => give_metadata_of(place, other, new)?,
    };
    given.map_err(|errno| place.failed("write", errno))
}

fn give_metadata_of(place: &CommitTarget<'_>, other: &RelPath, new: &File) -> Result<rustix::io::Result<()>, CommitError> {
    let Ok(FoundPath::File { file, stat }) = find(place.copy.root(), other) else {
        return Err(CommitError::Changed(other.clone()));
    };
    let give = || {
        let wanted = Metadata::of(&file, &stat)?;
        let now = Metadata::of(new, &sys::fstat(new)?)?.without_labels();
        wanted.without_labels().change_from(&now).map_or(Ok(()), |change| change.apply(new))
    };
    Ok(match give() {
        Err(Errno::PERM | Errno::ACCESS | Errno::OPNOTSUPP) => sys::fchmod(new, Mode::from_raw_mode(stat.st_mode & 0o777)),
        given => given,
    })
}

/// Moves the file at the target to this place or, if that turns out to be on another file system or not writable any
/// more, beside the target.
fn take_out(place: &CommitTarget<'_>, rollback_place: &StagedName) -> Option<StagedName> {
    let beside = StagedName { dir: place.dir.clone(), name: format!(".surehand-{}", rollback_place.name) };
    [rollback_place.clone(), beside].into_iter().find(|to| sys::renameat(&place.dir, place.name(), &to.dir, &to.name).is_ok())
}
