//! Taking back what was done to one file. What somebody else has made of it meanwhile stays where it is.

use std::{fs::File, os::fd::AsFd, sync::Arc};

use rustix::fs::{self as sys, AtFlags, RenameFlags};
use surehand_core::Content;

use super::{Progress, Work, identity, new_copy, same_bytes};
use crate::disk::{journal::How, rescue::Displaced, stage};

impl Work<'_> {
    /// Takes back what has been done.
    pub(crate) fn undo(&mut self) {
        match (self.how, std::mem::replace(&mut self.progress, Progress::Untouched)) {
            (_, Progress::Untouched) => self.remove_staged(),
            (How::InPlace, progress) => self.restore_in_place(progress),
            (How::Create, _) => self.take_out_new(),
            (How::Swap, _) => self.exchange_back(),
            (How::Rename, _) => self.rename_back(),
            (How::Remove, _) => self.put_back(),
            (How::Move, _) => self.move_back(),
        }
        self.release();
        for dir in self.made.iter().rev() {
            self.copy.root().remove_dir_if_empty(dir);
        }
    }

    /// Nothing but ourselves has ever seen the staged file.
    pub(super) fn remove_staged(&mut self) {
        let Some((dir, name)) = self.staged.take() else { return };
        if self.how == How::InPlace {
            stage::remove(dir.as_fd(), &new_copy(&name));
        }
        let held = if self.how == How::InPlace { self.base_version() } else { self.planned.after().map(Content::version) };
        if let (false, Some(version)) = (stage::remove(dir.as_fd(), &name), held) {
            // Where nothing may be removed now, it is tried again later.
            let path = self.path().clone();
            self.copy.displace(Displaced { dir, name, path, version, stamp: None, reusable: false, held: None });
        }
    }

    /// A torn write is ours to mend. A complete one may have been followed by somebody else's, which stays.
    fn restore_in_place(&mut self, progress: Progress) {
        let (old, _) = self.old();
        let ours = progress == Progress::Begun || same_bytes(old, self.content()).unwrap_or(false);
        if ours {
            drop(self.write_in_place(self.base()));
        }
        if same_bytes(old, self.base()).unwrap_or(false) {
            self.remove_staged();
        } else if let Some((dir, name)) = self.staged.take() {
            // The old content is not back, for whatever reason: the copy of it is all there is.
            stage::remove(dir.as_fd(), &new_copy(&name));
            self.copy.rescue(dir.as_fd(), &name, self.path());
        }
    }

    /// Where a new file goes when it is taken back. The journal names the place, so that it is found after a crash.
    pub(super) fn retreat(&self) -> Option<(Arc<File>, String)> {
        let place = || {
            let device = self.written.map_or(self.copy.state().device(), |stamp| stamp.device);
            self.stage_place(self.own_name.clone(), device)
        };
        Some(self.staged.clone().unwrap_or_else(place))
    }

    /// Takes a created file out again, unless it has become somebody else's.
    fn take_out_new(&mut self) {
        let Some(place) = self.retreat() else { return };
        if let Some((dir, name)) = self.staged.take() {
            stage::remove(dir.as_fd(), &name);
        }
        let Some((dir, name)) = self.move_out(place) else { return };
        if self.is_ours(&dir, &name) {
            self.displace_ours(dir, name);
        } else if sys::renameat_with(&*dir, &name, self.dir(), self.name(), RenameFlags::NOREPLACE).is_err() {
            self.copy.rescue(dir.as_fd(), &name, self.path());
        }
    }

    /// Moves what is at the target to this place or, if that turns out to be on another file system, or not ours to write any more,
    /// beside itself.
    fn move_out(&self, (home, name): (Arc<File>, String)) -> Option<(Arc<File>, String)> {
        if sys::renameat(self.dir(), self.name(), &*home, &name).is_ok() {
            return Some((home, name));
        }
        let (dir, name) = (self.dir().clone(), format!(".surehand-{name}"));
        sys::renameat(self.dir(), self.name(), &*dir, &name).ok()?;
        Some((dir, name))
    }

    /// Puts back what came out. If by now somebody has replaced our file, theirs stays and what came out is rescued.
    fn exchange_back(&mut self) {
        let Some((dir, name)) = self.staged.take() else { return };
        let exchange = || sys::renameat_with(&*dir, &name, self.dir(), self.name(), RenameFlags::EXCHANGE);
        if exchange().is_err() {
            // Nothing has the name any more: what came out gets it back.
            if sys::renameat_with(&*dir, &name, self.dir(), self.name(), RenameFlags::NOREPLACE).is_err() {
                self.copy.rescue(dir.as_fd(), &name, self.path());
            }
        } else if self.is_ours(&dir, &name) {
            self.displace_ours(dir, name);
        } else {
            let _ = exchange();
            self.copy.rescue(dir.as_fd(), &name, self.path());
        }
    }

    fn rename_back(&mut self) {
        let Some((dir, name)) = self.staged.take() else { return };
        if !self.is_ours(self.dir(), self.name()) || sys::renameat(&*dir, &name, self.dir(), self.name()).is_err() {
            self.copy.rescue(dir.as_fd(), &name, self.path());
        }
    }

    /// Whether the file of this name is the one that we made.
    fn is_ours(&self, dir: &File, name: &str) -> bool {
        let ours = self.new.as_ref().and_then(|new| sys::fstat(new).ok());
        let there = sys::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW).ok();
        ours.is_some() && ours.map(|stat| identity(&stat)) == there.map(|stat| identity(&stat))
    }

    /// Our file was in the open for a moment, and somebody may have begun to write into it: it gets a second look, too.
    fn displace_ours(&self, dir: Arc<File>, name: String) {
        let Some(version) = self.planned.after().map(Content::version) else { return };
        let path = self.path().clone();
        self.copy.displace(Displaced { dir, name, path, version, stamp: None, reusable: false, held: None });
    }
}
