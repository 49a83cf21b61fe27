//! Open directories of displaced files, each open once: a burst of edits would otherwise use up the open files of the
//! process.

use std::{
    collections::HashMap,
    fs::File,
    sync::{Arc, Mutex, Weak},
};

use rustix::fs as sys;

use super::checkout_state::lock;

/// With more directories than this, displaced files no longer wait for their second look. Many systems allow a process
/// 1024 open files, and some 256.
const MOST: usize = 128;

#[derive(Debug, Default)]
pub(crate) struct SharedDirs(Mutex<HashMap<(u64, u64), Weak<File>>>);

impl SharedDirs {
    /// The handle of this directory that is already in use, or else this one.
    #[allow(clippy::unnecessary_cast, reason = "signed or narrower on some systems")]
    pub(crate) fn share(&self, dir: Arc<File>) -> Arc<File> {
        let Ok(stat) = sys::fstat(&*dir) else { return dir };
        let mut dirs = lock(&self.0);
        let known = dirs.entry((stat.st_dev as u64, stat.st_ino as u64)).or_default();
        known.upgrade().unwrap_or_else(|| {
            *known = Arc::downgrade(&dir);
            dir
        })
    }

    pub(crate) fn are_too_many(&self) -> bool {
        let mut dirs = lock(&self.0);
        if dirs.len() > MOST {
            dirs.retain(|_, dir| dir.strong_count() > 0);
        }
        dirs.len() > MOST
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_open_once_while_it_is_in_use() {
        let parent = tempfile::tempdir().unwrap();
        let dirs = SharedDirs::default();
        let open = |number: usize| {
            let path = parent.path().join(number.to_string());
            std::fs::create_dir_all(&path).unwrap();
            dirs.share(Arc::new(File::open(path).unwrap()))
        };
        let first = open(0);
        assert!(Arc::ptr_eq(&first, &open(0)));
        let all: Vec<_> = (0..=MOST).map(open).collect();
        assert!(Arc::ptr_eq(&first, &all[0]) && dirs.are_too_many());
        drop((first, all));
        assert!(!dirs.are_too_many());
    }
}
