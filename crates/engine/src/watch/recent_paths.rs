//! The paths of recent events, numbered so that each reader can ask for those since its last call. The number of paths
//! is bounded; a reader that asks too late must assume that everything has changed.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use surehand_core::RelPath;

/// The kernel's default limit for queued events. Checking everything costs no more than this many hints.
pub(super) const MOST_PATHS: usize = 16_384;

#[derive(Debug)]
pub(super) struct RecentPaths {
    by_number: BTreeMap<u64, Arc<RelPath>>,
    numbers: HashMap<Arc<RelPath>, u64>,
    next: u64,
    /// A reader behind this number has missed something. A new cursor, at zero, always has.
    oldest: u64,
    most: usize,
}

impl RecentPaths {
    pub(super) fn new(most: usize) -> Self {
        Self { by_number: BTreeMap::new(), numbers: HashMap::new(), next: 1, oldest: 1, most }
    }

    pub(super) fn note(&mut self, path: RelPath) {
        let path = match self.numbers.remove_entry(&path) {
            Some((path, number)) => {
                self.by_number.remove(&number);
                path
            }
            None => Arc::new(path),
        };
        self.by_number.insert(self.next, path.clone());
        self.numbers.insert(path, self.next);
        self.next += 1;
        if self.by_number.len() > self.most
            && let Some((number, path)) = self.by_number.pop_first()
        {
            self.numbers.remove(&path);
            self.oldest = number + 1;
        }
    }

    /// Forgets all paths because events were lost: all readers must assume that everything has changed.
    pub(super) fn forget_all(&mut self) {
        self.by_number.clear();
        self.numbers.clear();
        self.next += 1;
        self.oldest = self.next;
    }

    /// The unsorted paths since a reader's last call; `None` if they are no longer known.
    pub(super) fn since(&self, cursor: &mut u64) -> Option<Vec<RelPath>> {
        let from = std::mem::replace(cursor, self.next);
        (from >= self.oldest).then(|| self.by_number.range(from..).map(|(_, path)| RelPath::clone(path)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noted(recent: &mut RecentPaths, paths: &[&str]) {
        paths.iter().for_each(|path| recent.note(RelPath::new(path).unwrap()));
    }

    #[track_caller]
    fn check(recent: &RecentPaths, cursor: &mut u64, expected: Option<&[&str]>) {
        let paths = recent.since(cursor);
        let paths: Option<Vec<&str>> = paths.as_ref().map(|paths| paths.iter().map(RelPath::as_str).collect());
        assert_eq!(paths.as_deref(), expected);
    }

    #[test]
    fn a_fresh_reader_has_missed_something() {
        let recent = RecentPaths::new(MOST_PATHS);
        let mut cursor = 0;
        check(&recent, &mut cursor, None);
        check(&recent, &mut cursor, Some(&[]));
    }

    #[test]
    fn every_reader_gets_each_path_once() {
        let mut recent = RecentPaths::new(MOST_PATHS);
        let (mut one, mut two) = (1, 1);
        noted(&mut recent, &["a", "b", "a"]);
        check(&recent, &mut one, Some(&["b", "a"]));
        noted(&mut recent, &["b"]);
        check(&recent, &mut one, Some(&["b"]));
        check(&recent, &mut two, Some(&["a", "b"]));
        check(&recent, &mut two, Some(&[]));
    }

    #[test]
    fn only_a_reader_that_comes_too_late_has_missed_something() {
        let mut recent = RecentPaths::new(2);
        let (mut late, mut early) = (1, 1);
        noted(&mut recent, &["a"]);
        check(&recent, &mut early, Some(&["a"]));
        noted(&mut recent, &["b", "c"]);
        check(&recent, &mut early, Some(&["b", "c"]));
        check(&recent, &mut late, None);
        check(&recent, &mut late, Some(&[]));
        noted(&mut recent, &["d"]);
        check(&recent, &mut late, Some(&["d"]));
    }

    #[test]
    fn a_repeated_path_takes_one_place() {
        let mut recent = RecentPaths::new(2);
        let mut cursor = 1;
        noted(&mut recent, &["b"]);
        noted(&mut recent, &["a"; 100]);
        check(&recent, &mut cursor, Some(&["b", "a"]));
    }

    #[test]
    fn lost_events_are_missed_by_all_readers() {
        let mut recent = RecentPaths::new(MOST_PATHS);
        let (mut one, mut two) = (1, 1);
        recent.forget_all();
        check(&recent, &mut one, None);
        noted(&mut recent, &["a"]);
        check(&recent, &mut one, Some(&["a"]));
        check(&recent, &mut two, None);
    }
}
