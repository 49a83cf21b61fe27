//! One file of a commit, whichever way it is written: stage, check, swap, verify, then finish or roll back.

use std::{fs::File, sync::Arc};

use rustix::{
    fs::{self as sys, Access, AtFlags, Mode, OFlags},
    io::Errno,
};
use surehand_core::{Content, FileAction, RelPath, Stamp};

use super::{
    CommitError, FileChange,
    create::FileCreation,
    exchange::FileExchange,
    in_place::InPlaceWrite,
    remove::{FileMove, FileRemoval},
    target::{CommitTarget, StagedName, identity},
};
use crate::disk::{
    journal::{CommitIntent, CommitMethod, StagingPlace},
    metadata::Metadata,
    read_file::link_count,
    working_copy::WorkingCopy,
};

pub(super) struct StagedFile<'a> {
    pub(super) place: CommitTarget<'a>,
    strategy: WriteStrategy,
}

/// How a file is written, with the data that this way needs.
enum WriteStrategy {
    Create(FileCreation),
    Exchange(Box<FileExchange>),
    InPlace(InPlaceWrite),
    Remove(FileRemoval),
    Move(FileMove),
}

impl<'a> StagedFile<'a> {
    pub(super) fn stage(copy: &'a WorkingCopy, change: FileChange<'a>, commit: u64, name: String) -> Result<Self, CommitError> {
        let mut place = CommitTarget::open(copy, change.planned, commit, name)?;
        match WriteStrategy::stage(&mut place) {
            Ok(strategy) => Ok(Self { place, strategy }),
            Err(error) => {
                place.remove_made_directories();
                Err(error)
            }
        }
    }

    pub(super) fn method(&self) -> CommitMethod {
        match &self.strategy {
            WriteStrategy::Create(_) => CommitMethod::Create,
            WriteStrategy::Exchange(exchange) if exchange.is_exchanged() => CommitMethod::Swap,
            WriteStrategy::Exchange(_) => CommitMethod::Rename,
            WriteStrategy::InPlace(_) => CommitMethod::InPlace,
            WriteStrategy::Remove(_) => CommitMethod::Remove,
            WriteStrategy::Move(_) => CommitMethod::Move,
        }
    }

    pub(super) fn intent(&self) -> CommitIntent {
        let place = &self.place;
        let staged = self.staged();
        let written = self.written();
        let in_tree = |path: &RelPath| place.copy.in_tree(path).to_string();
        CommitIntent {
            path: in_tree(place.path()),
            to: place.planned.moved_to().map(in_tree),
            how: self.method(),
            base: place.planned.base().map(Content::version),
            new: place.planned.after().map(Content::version),
            place: staged.map_or(StagingPlace::State, |staged| place.copy.place_of(&staged.dir, &staged.name)),
            staged: staged.map(|staged| staged.name.clone()),
            inode: written.map_or(0, |stamp| stamp.inode),
            modified: written.map_or(0, |stamp| stamp.modified),
            metadata: match &self.strategy {
                WriteStrategy::Exchange(exchange) => exchange.metadata.for_journal(),
                _ => None,
            },
        }
    }

    /// The old file's metadata when it came out, if it had changed since the new file was staged.
    pub(super) fn carried_over(&self) -> Option<&Metadata> {
        match &self.strategy {
            WriteStrategy::Exchange(exchange) => exchange.carried_over(),
            _ => None,
        }
    }

    /// The file in the staging place, or the place where it will be moved.
    fn staged(&self) -> Option<&StagedName> {
        match &self.strategy {
            WriteStrategy::Create(create) => Some(&create.rollback_place),
            WriteStrategy::Exchange(exchange) => Some(&exchange.staged),
            WriteStrategy::InPlace(in_place) => Some(&in_place.old_copy.0),
            WriteStrategy::Remove(remove) => Some(&remove.staged),
            WriteStrategy::Move(_) => None,
        }
    }

    /// The stamp of the file that is put in place.
    fn written(&self) -> Option<Stamp> {
        match &self.strategy {
            WriteStrategy::Create(create) => create.written,
            WriteStrategy::Exchange(exchange) => Some(exchange.written),
            WriteStrategy::InPlace(in_place) => in_place.written,
            WriteStrategy::Remove(FileRemoval { old, .. }) | WriteStrategy::Move(FileMove { old, .. }) => {
                Some(self.place.copy.clock().stamp(&old.stat))
            }
        }
    }

    /// The files that must be on disk before the new content is put in place.
    pub(super) fn to_sync_before(&self) -> Vec<&File> {
        match &self.strategy {
            WriteStrategy::Create(create) => vec![&create.new],
            WriteStrategy::Exchange(exchange) => vec![&exchange.new],
            WriteStrategy::InPlace(in_place) => in_place.to_sync().to_vec(),
            WriteStrategy::Remove(_) | WriteStrategy::Move(_) => Vec::new(),
        }
    }

    /// The handles to sync afterwards: the directories with the names, or the file that was written in place.
    pub(super) fn to_sync_after(&self) -> Vec<SyncTarget<'_>> {
        let dir = |dir: &Arc<File>| SyncTarget::Directory(dir.clone());
        let mut files = match &self.strategy {
            WriteStrategy::InPlace(in_place) => vec![SyncTarget::File(&in_place.old.file)],
            WriteStrategy::Move(moved) => vec![dir(&self.place.dir), dir(moved.destination().0)],
            WriteStrategy::Create(_) | WriteStrategy::Exchange(_) | WriteStrategy::Remove(_) => vec![dir(&self.place.dir)],
        };
        files.extend(self.place.parents_of_made_directories().into_iter().map(SyncTarget::Directory));
        files
    }

    /// Checks that the file still has the content that the plan was made for.
    pub(super) fn check(&mut self) -> Result<(), CommitError> {
        match &mut self.strategy {
            WriteStrategy::Create(_) => Ok(()),
            WriteStrategy::Exchange(exchange) => exchange.old.check(&self.place),
            WriteStrategy::InPlace(in_place) => in_place.check(&self.place),
            WriteStrategy::Remove(remove) => remove.old.check(&self.place),
            WriteStrategy::Move(moved) => moved.old.check(&self.place),
        }
    }

    /// Puts the new content in its place.
    pub(super) fn swap(&mut self) -> Result<(), CommitError> {
        match &mut self.strategy {
            WriteStrategy::Create(create) => create.put(&self.place),
            WriteStrategy::Exchange(exchange) => exchange.swap(&self.place),
            WriteStrategy::InPlace(in_place) => in_place.write(&self.place),
            WriteStrategy::Remove(remove) => remove.take_out(&self.place),
            WriteStrategy::Move(moved) => moved.rename(&self.place),
        }
    }

    /// Verifies that the file that came out has the content that the plan was made for.
    pub(super) fn verify(&mut self) -> Result<(), CommitError> {
        match &mut self.strategy {
            WriteStrategy::Create(_) => Ok(()),
            WriteStrategy::Exchange(exchange) => exchange.verify(&self.place),
            WriteStrategy::InPlace(in_place) => in_place.verify(&self.place),
            WriteStrategy::Remove(remove) => remove.verify(&self.place),
            WriteStrategy::Move(moved) => moved.verify(&self.place),
        }
    }

    /// The present stamp of the target, if it still holds the content that we put there.
    pub(super) fn stamp_now(&self) -> Option<Stamp> {
        let (dir, name) = match &self.strategy {
            WriteStrategy::Move(moved) => moved.destination(),
            _ => (&self.place.dir, self.place.name()),
        };
        let stat = sys::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        let (now, then) = (self.place.copy.clock().stamp(&stat), self.written()?);
        // A rename changes neither size nor time of the content.
        (now.same_file(&then) && (now.size, now.modified) == (then.size, then.modified)).then_some(now)
    }

    pub(super) fn finish(self) {
        match self.strategy {
            WriteStrategy::Exchange(exchange) => exchange.finish(&self.place),
            WriteStrategy::InPlace(in_place) => in_place.finish(),
            WriteStrategy::Remove(remove) => remove.finish(&self.place),
            WriteStrategy::Create(_) | WriteStrategy::Move(_) => {}
        }
    }

    /// Rolls the file back. Another program's later changes stay.
    pub(super) fn roll_back(self) {
        match self.strategy {
            WriteStrategy::Create(create) => create.roll_back(&self.place),
            WriteStrategy::Exchange(exchange) => exchange.roll_back(&self.place),
            WriteStrategy::InPlace(in_place) => in_place.roll_back(&self.place),
            WriteStrategy::Remove(remove) => remove.roll_back(&self.place),
            WriteStrategy::Move(moved) => moved.roll_back(&self.place),
        }
        self.place.remove_made_directories();
    }
}

pub(super) enum SyncTarget<'f> {
    File(&'f File),
    Directory(Arc<File>),
}

impl SyncTarget<'_> {
    pub(super) fn file(&self) -> &File {
        match self {
            Self::File(file) => file,
            Self::Directory(dir) => dir,
        }
    }

    pub(super) fn into_directory(self) -> Option<Arc<File>> {
        match self {
            Self::File(_) => None,
            Self::Directory(dir) => Some(dir),
        }
    }
}

impl WriteStrategy {
    fn stage(place: &mut CommitTarget<'_>) -> Result<Self, CommitError> {
        match place.planned.act() {
            FileAction::Write { .. } if place.planned.is_new() => FileCreation::stage(place).map(WriteStrategy::Create),
            FileAction::Write { .. } => stage_replacement(place),
            FileAction::Remove => FileRemoval::stage(place).map(WriteStrategy::Remove),
            FileAction::Move { to } => FileMove::stage(place, to).map(WriteStrategy::Move),
        }
    }
}

fn stage_replacement(place: &CommitTarget<'_>) -> Result<WriteStrategy, CommitError> {
    let old = place.open_old(OFlags::RDONLY)?;
    // If we own the file and its mode lets us write, that is enough; otherwise the system is asked.
    let is_writable = place.copy.is_owner(&old.stat) && Mode::from_raw_mode(old.stat.st_mode).contains(Mode::WUSR);
    if !is_writable && sys::accessat(&place.dir, place.name(), Access::WRITE_OK, AtFlags::EACCESS) == Err(Errno::ACCESS) {
        return Err(place.failed("write (the file is read-only)", Errno::ACCESS));
    }
    let (has_one_name, staged) = (link_count(&old.stat) == 1, place.stage_on(identity(&old.stat).0));
    if has_one_name && let Some(exchange) = FileExchange::stage(place, old, staged.clone())? {
        return Ok(WriteStrategy::Exchange(exchange));
    }
    InPlaceWrite::stage(place, staged).map(WriteStrategy::InPlace)
}
