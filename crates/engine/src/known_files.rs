//! Versions and stamps of the files that a session used last, so that unchanged files are not read again. Older entries
//! are dropped, at the cost of one more read; the names of all files stay.

use std::collections::{HashMap, HashSet};

use surehand_core::{RelPath, Stamp};
use surehand_store::KnownFile;

/// The entries of a generation, which fill a hash table of 16,384 buckets.
const GENERATION: usize = 14_336;

/// A file as it was last read or written.
#[derive(Debug)]
pub(crate) struct CachedFile {
    pub(crate) file: KnownFile,
    /// Whether the text was passed to the store.
    pub(crate) is_kept: bool,
}

/// A cache in two generations: when the young one is full it replaces the old one.
#[derive(Debug, Default)]
pub(crate) struct KnownFiles {
    young: HashMap<RelPath, CachedFile>,
    old: HashMap<RelPath, CachedFile>,
    names: HashSet<RelPath>,
    /// Names with upper-case letters by their lower-case form, for case-insensitive file systems.
    by_lower_case: HashMap<String, RelPath>,
}

impl KnownFiles {
    pub(crate) fn get(&self, path: &RelPath) -> Option<&CachedFile> {
        self.young.get(path).or_else(|| self.old.get(path))
    }

    pub(crate) fn get_mut(&mut self, path: &RelPath) -> Option<&mut CachedFile> {
        self.young.get_mut(path).or_else(|| self.old.get_mut(path))
    }

    /// Whether a file of this name was ever known.
    pub(crate) fn has_name(&self, path: &RelPath) -> bool {
        self.names.contains(path)
    }

    pub(crate) fn insert(&mut self, path: &RelPath, known: CachedFile) {
        if self.young.len() >= GENERATION {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(path.clone(), known);
        if self.names.insert(path.clone()) {
            let lower_case = path.as_str().to_lowercase();
            if lower_case != path.as_str() {
                self.by_lower_case.entry(lower_case).or_insert_with(|| path.clone());
            }
        }
    }

    pub(crate) fn remove(&mut self, path: &RelPath) {
        self.young.remove(path);
        self.old.remove(path);
        self.names.remove(path);
    }

    /// The known names that equal this one if case is ignored.
    pub(crate) fn in_other_letters(&self, path: &RelPath) -> Vec<RelPath> {
        let lower_case = path.as_str().to_lowercase();
        let in_lower_case = self.names.get(lower_case.as_str());
        self.by_lower_case.get(&lower_case).into_iter().chain(in_lower_case).cloned().collect()
    }

    /// The cached names with the same inode.
    pub(crate) fn names_of(&self, stamp: &Stamp) -> Vec<RelPath> {
        let all = self.young.iter().chain(&self.old);
        all.filter(|(_, known)| known.file.stamp.same_file(stamp)).map(|(name, _)| name.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use surehand_core::ContentHash;

    use super::*;

    #[test]
    fn old_entries_are_dropped_and_their_names_stay() {
        let stamp = Stamp { device: 1, inode: 2, size: 3, modified: 4, changed: 5, taken: 6 };
        let path = |number: usize| RelPath::new(&format!("Dir/{number}")).unwrap();
        let mut files = KnownFiles::default();
        for number in 0..4 * GENERATION {
            let file = KnownFile { version: ContentHash::of(b""), stamp };
            files.insert(&path(number), CachedFile { file, is_kept: false });
        }
        let known: Vec<usize> = (0..4 * GENERATION).filter(|number| files.get(&path(*number)).is_some()).collect();
        assert_eq!(known, (2 * GENERATION..4 * GENERATION).collect::<Vec<_>>());
        assert!((0..4 * GENERATION).all(|number| files.has_name(&path(number))));
        assert_eq!(files.in_other_letters(&RelPath::new("dir/3").unwrap()), [path(3)]);
    }
}
