//! Directories that commits have left to be synced together, before the replies that depend on them go out.

use std::{
    fs::File,
    io,
    sync::{Arc, Mutex},
};

use rustix::fs as sys;

use super::checkout_state::lock;

#[derive(Debug, Default)]
pub(crate) struct UnsyncedDirs(Mutex<PendingSyncs>);

#[derive(Debug, Default)]
struct PendingSyncs {
    dirs: Vec<Arc<File>>,
    /// The error of an earlier sync, for the replies that wait for it: the system reports it only once.
    failed: Option<io::Error>,
}

impl UnsyncedDirs {
    /// Adds directories, each once.
    pub(crate) fn add(&self, dirs: impl IntoIterator<Item = Arc<File>>) {
        let mut pending = lock(&self.0);
        for dir in dirs {
            if !pending.dirs.iter().any(|known| is_same(known, &dir)) {
                pending.dirs.push(dir);
            }
        }
    }

    /// Syncs all of them for the replies that wait. Fails if one could not be synced, now or earlier.
    pub(crate) fn sync(&self) -> io::Result<()> {
        let mut pending = lock(&self.0);
        pending.sync();
        pending.failed.take().map_or(Ok(()), Err)
    }

    /// Syncs all of them because something other than a reply depends on it. Returns whether they are on disk.
    pub(crate) fn sync_early(&self) -> bool {
        let mut pending = lock(&self.0);
        pending.sync();
        pending.failed.is_none()
    }
}

impl PendingSyncs {
    fn sync(&mut self) {
        for dir in self.dirs.drain(..) {
            if let Err(error) = dir.sync_all() {
                self.failed.get_or_insert(error);
            }
        }
    }
}

fn is_same(one: &File, other: &File) -> bool {
    let identity = |file: &File| sys::fstat(file).ok().map(|stat| (stat.st_dev, stat.st_ino));
    let identity_of_one = identity(one);
    identity_of_one.is_some() && identity_of_one == identity(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_synced_once_and_an_error_reaches_the_replies() {
        let dir = tempfile::tempdir().unwrap();
        let open = || Arc::new(File::open(dir.path()).unwrap());
        let unsynced = UnsyncedDirs::default();
        unsynced.add([open(), open()]);
        assert_eq!(lock(&unsynced.0).dirs.len(), 1);
        unsynced.sync().unwrap();
        assert!(lock(&unsynced.0).dirs.is_empty());
        // A device without a disk refuses to sync.
        unsynced.add([Arc::new(File::open("/dev/null").unwrap())]);
        assert!(!unsynced.sync_early());
        assert!(unsynced.sync().is_err(), "the replies still learn of it");
        unsynced.sync().unwrap();
    }
}
