//! One file of a commit, in whichever way it is written: staged, checked, put in place, verified; or taken back.

use std::{fs::File, sync::Arc};

use rustix::{
    fs::{self as sys, Access, AtFlags, OFlags},
    io::Errno,
};
use surehand_core::{Act, Content, RelPath, Stamp};

use super::{
    Change, CommitError,
    create::Create,
    exchange::{Exchange, Staging},
    in_place::InPlace,
    remove::{Move, Remove},
    target::{Place, Staged, identity},
};
use crate::disk::{
    journal::{How, Intent, StagePlace},
    metadata::Metadata,
    read_file::link_count,
    working_copy::WorkingCopy,
};

/// A file of a commit that is staged.
pub(super) struct StagedFile<'a> {
    place: Place<'a>,
    way: Way,
}

/// How a file is written, with what that takes.
enum Way {
    Create(Create),
    Exchange(Box<Exchange>),
    InPlace(InPlace),
    Remove(Remove),
    Move(Move),
}

impl<'a> StagedFile<'a> {
    /// Writes the new content where nobody looks.
    pub(super) fn stage(copy: &'a WorkingCopy, change: Change<'a>, commit: u64, name: String) -> Result<Self, CommitError> {
        let mut place = Place::open(copy, change.planned, commit, name)?;
        match Way::stage(&mut place) {
            Ok(way) => Ok(Self { place, way }),
            Err(error) => {
                place.remove_made_directories();
                Err(error)
            }
        }
    }

    pub(super) fn failed(&self, what: &str, error: impl Into<std::io::Error>) -> CommitError {
        self.place.failed(what, error)
    }

    /// How it is written.
    pub(super) fn how(&self) -> How {
        match &self.way {
            Way::Create(_) => How::Create,
            Way::Exchange(exchange) if exchange.is_exchanged() => How::Swap,
            Way::Exchange(_) => How::Rename,
            Way::InPlace(_) => How::InPlace,
            Way::Remove(_) => How::Remove,
            Way::Move(_) => How::Move,
        }
    }

    /// For the journal.
    pub(super) fn intent(&self) -> Intent {
        let place = &self.place;
        let staged = self.staged();
        let written = self.written();
        let in_tree = |path: &RelPath| place.copy.in_tree(path).to_string();
        Intent {
            path: in_tree(place.path()),
            to: place.planned.moved_to().map(in_tree),
            how: self.how(),
            base: place.planned.base().map(Content::version),
            new: place.planned.after().map(Content::version),
            place: staged.map_or(StagePlace::State, |staged| place.place_of(staged)),
            staged: staged.map(|staged| staged.name.clone()),
            inode: written.map_or(0, |stamp| stamp.inode),
            modified: written.map_or(0, |stamp| stamp.modified),
            metadata: match &self.way {
                Way::Exchange(exchange) => exchange.metadata().for_journal(),
                _ => None,
            },
        }
    }

    /// What the old file had besides its bytes when it had come out, if that was not what it had when the new one was staged.
    pub(super) fn carried_over(&self) -> Option<&Metadata> {
        match &self.way {
            Way::Exchange(exchange) => exchange.carried_over(),
            _ => None,
        }
    }

    /// The file that waits under a name of ours, or will.
    fn staged(&self) -> Option<&Staged> {
        match &self.way {
            Way::Create(create) => Some(create.retreat()),
            Way::Exchange(exchange) => Some(exchange.staged()),
            Way::InPlace(in_place) => Some(in_place.staged()),
            Way::Remove(remove) => Some(remove.staged()),
            Way::Move(_) => None,
        }
    }

    /// The stamp of what is put in place.
    fn written(&self) -> Option<Stamp> {
        match &self.way {
            Way::Create(create) => create.written(),
            Way::Exchange(exchange) => Some(exchange.written()),
            Way::InPlace(in_place) => in_place.written(),
            Way::Remove(remove) => Some(remove.written(&self.place)),
            Way::Move(moved) => Some(moved.written(&self.place)),
        }
    }

    /// What must be on the disk before it is put in place.
    pub(super) fn to_sync_before(&self) -> Vec<&File> {
        match &self.way {
            Way::Create(create) => vec![create.new_file()],
            Way::Exchange(exchange) => vec![exchange.new_file()],
            Way::InPlace(in_place) => in_place.to_sync().to_vec(),
            Way::Remove(_) | Way::Move(_) => Vec::new(),
        }
    }

    /// What must be on the disk when it is in place: the names, or the bytes themselves.
    pub(super) fn to_sync_after(&self) -> Vec<Synced<'_>> {
        let dir = |dir: &Arc<File>| Synced::Directory(dir.clone());
        let mut files = match &self.way {
            Way::InPlace(in_place) => vec![Synced::File(in_place.file())],
            Way::Move(moved) => vec![dir(&self.place.dir), dir(moved.destination().0)],
            Way::Create(_) | Way::Exchange(_) | Way::Remove(_) => vec![dir(&self.place.dir)],
        };
        files.extend(self.place.parents_of_made_directories().into_iter().map(Synced::Directory));
        files
    }

    /// Looks whether the file is still what the plan was made for.
    pub(super) fn check(&mut self) -> Result<(), CommitError> {
        match &mut self.way {
            Way::Create(_) => Ok(()),
            Way::Exchange(exchange) => exchange.check(&self.place),
            Way::InPlace(in_place) => in_place.check(&self.place),
            Way::Remove(remove) => remove.check(&self.place),
            Way::Move(moved) => moved.check(&self.place),
        }
    }

    /// Puts the new content in its place.
    pub(super) fn swap(&mut self) -> Result<(), CommitError> {
        match &mut self.way {
            Way::Create(create) => create.put(&self.place),
            Way::Exchange(exchange) => exchange.swap(&self.place),
            Way::InPlace(in_place) => in_place.write(&self.place),
            Way::Remove(remove) => remove.take_out(&self.place),
            Way::Move(moved) => moved.rename(&self.place),
        }
    }

    /// What came out must be what the plan was made for.
    pub(super) fn verify(&mut self) -> Result<(), CommitError> {
        match &mut self.way {
            Way::Create(_) => Ok(()),
            Way::Exchange(exchange) => exchange.verify(&self.place),
            Way::InPlace(in_place) => in_place.verify(&self.place),
            Way::Remove(remove) => remove.verify(&self.place),
            Way::Move(moved) => moved.verify(&self.place),
        }
    }

    /// The stamp of what is at the target now, if that is still the content that we put there.
    pub(super) fn stamp_now(&self) -> Option<Stamp> {
        let (dir, name) = match &self.way {
            Way::Move(moved) => moved.destination(),
            _ => (&self.place.dir, self.place.name()),
        };
        let stat = sys::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        let (now, then) = (self.place.copy.clock().stamp(&stat), self.written()?);
        // A rename changes neither size nor time of the content.
        (now.same_file(&then) && (now.size, now.modified) == (then.size, then.modified)).then_some(now)
    }

    /// The commit has happened.
    pub(super) fn settle(self) {
        match self.way {
            Way::Exchange(exchange) => exchange.settle(&self.place),
            Way::InPlace(in_place) => in_place.settle(),
            Way::Remove(remove) => remove.settle(&self.place),
            Way::Create(_) | Way::Move(_) => {}
        }
    }

    /// Takes back what has been done. What somebody else has made of the file meanwhile stays where it is.
    pub(super) fn undo(self) {
        match self.way {
            Way::Create(create) => create.undo(&self.place),
            Way::Exchange(exchange) => exchange.undo(&self.place),
            Way::InPlace(in_place) => in_place.undo(&self.place),
            Way::Remove(remove) => remove.undo(&self.place),
            Way::Move(moved) => moved.undo(&self.place),
        }
        self.place.remove_made_directories();
    }
}

/// Something that is to be on the disk.
pub(super) enum Synced<'f> {
    File(&'f File),
    Directory(Arc<File>),
}

impl Synced<'_> {
    pub(super) fn file(&self) -> &File {
        match self {
            Self::File(file) => file,
            Self::Directory(dir) => dir,
        }
    }
}

impl Way {
    fn stage(place: &mut Place<'_>) -> Result<Self, CommitError> {
        match place.planned.act() {
            Act::Write { .. } if place.planned.is_new() => Create::stage(place).map(Way::Create),
            Act::Write { .. } => stage_replacement(place),
            Act::Remove => Remove::stage(place).map(Way::Remove),
            Act::Move { to } => Move::stage(place, to).map(Way::Move),
        }
    }
}

fn stage_replacement(place: &Place<'_>) -> Result<Way, CommitError> {
    let old = place.open_old(OFlags::RDONLY)?;
    if sys::accessat(&place.dir, place.name(), Access::WRITE_OK, AtFlags::EACCESS) == Err(Errno::ACCESS) {
        return Err(place.failed("write (the file is read-only)", Errno::ACCESS));
    }
    let (has_one_name, staged) = (link_count(&old.stat) == 1, place.stage_on(identity(&old.stat).0));
    if has_one_name && let Staging::Ready(exchange) = Exchange::stage(place, old, staged.clone())? {
        return Ok(Way::Exchange(exchange));
    }
    InPlace::stage(place, staged).map(Way::InPlace)
}
