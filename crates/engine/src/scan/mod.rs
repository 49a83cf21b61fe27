//! Scans the workspace for files that were created, modified or deleted since the last scan. A file whose stamp equals
//! the one in the index is not read. The caller decides what to do with the result.

mod worker;

use std::{
    io,
    time::{Duration, Instant},
};

use surehand_core::RelPath;

use self::worker::{HashResult, HashedFile, ScanInput, ScanTally, ScanWorker, SeenFiles};
pub use crate::scan_index::ScanBasis;
use crate::{
    disk::walk::{FileRecheck, Globs, RecheckResult, walk},
    scan_index::{self, IndexWriter, ScanIndex, join_path, split_path},
    workspace::Workspace,
};

/// The result of a scan. Paths are sorted.
#[derive(Debug)]
#[non_exhaustive]
pub struct ScanReport {
    /// The state that the scan compared with. Without one, all files are new, and none of them is listed below.
    pub basis: ScanBasis,
    /// The number of files in the new index.
    pub files: usize,
    /// Files that were not in the index: new ones, those no longer ignored, and those that could not be read before.
    pub created: Vec<RelPath>,
    /// Files with another content.
    pub modified: Vec<RelPath>,
    /// Files that no longer exist.
    pub deleted: Vec<RelPath>,
    /// Files that still exist and are now ignored. The new index does not have them.
    pub ignored: Vec<RelPath>,
    /// Files and directories that could not be read, with the error of the system. Their index entries are kept.
    pub unreadable: Vec<(String, String)>,
    /// The number of names that are not UTF-8 or are too long.
    pub unnamed: usize,
    /// The number of files that were hashed.
    pub hashed: usize,
    /// The number of bytes that were hashed.
    pub bytes_hashed: u64,
    /// The duration of the scan.
    pub took: Duration,
}

impl ScanReport {
    /// Whether there was no index to compare with.
    pub fn is_first(&self) -> bool {
        self.basis != ScanBasis::LastScan
    }
}

/// The progress of a scan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScanProgress {
    /// The number of files checked.
    pub files: usize,
    /// The number of files of the last scan; `None` if there was none.
    pub expected: Option<usize>,
    /// The number of bytes hashed.
    pub bytes_hashed: u64,
}

/// Why a scan failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ScanError {
    /// The root cannot be walked.
    #[error("{root}: cannot walk the workspace: {error}")]
    Walk {
        /// Path of the workspace root.
        root: String,
        /// The error of the system.
        error: io::Error,
    },
    /// The index cannot be read or written.
    #[error("{root}: cannot use the index in the state directory: {error}")]
    Index {
        /// Path of the workspace root.
        root: String,
        /// The error of the system.
        error: io::Error,
    },
}

/// Scans a workspace on all cores. `progress` is called now and then, from any thread.
///
/// Several scans may run at once, in one process or more. Each reports the changes since the last scan that had ended
/// when it began, so two of them may report the same change.
pub fn scan(workspace: &Workspace, progress: &(dyn Fn(ScanProgress) + Sync)) -> Result<ScanReport, ScanError> {
    let began = Instant::now();
    let root = || workspace.root().path().display().to_string();
    let bad_index = |error| ScanError::Index { root: root(), error };
    let bad_walk = |error| ScanError::Walk { root: root(), error };
    let copy = &workspace.copy;
    copy.recreate_state().map_err(bad_index)?;
    let index = ScanIndex::load(copy).map_err(bad_index)?;
    let mut found = walk_tree(workspace, &index, progress).map_err(bad_walk)?;
    let lost = recheck_missing(workspace, &index, &mut found.seen).map_err(bad_walk)?;
    let is_news = index.basis() != ScanBasis::LastScan || !found.hashed.is_empty() || !lost.is_empty();
    let files = if is_news {
        found.hashed.sort_unstable_by(|a, b| split_path(&a.path).cmp(&split_path(&b.path)));
        // If a directory changes while it is listed, a name may come twice.
        found.hashed.dedup_by(|a, b| a.path == b.path);
        scan_index::replace(copy, |writer| write_index(writer, &index, &found)).map_err(bad_index)?
    } else {
        index.files()
    };
    let scanned = scan_report(index.basis(), files, found, lost);
    Ok(ScanReport { took: began.elapsed(), ..scanned })
}

/// The combined results of all threads.
struct ScanFindings {
    /// The known files that were seen, whose entries are kept.
    seen: SeenFiles,
    hashed: Vec<HashedFile>,
    bytes_hashed: u64,
    unreadable: Vec<(String, String)>,
    unnamed: usize,
}

fn walk_tree(workspace: &Workspace, index: &ScanIndex, progress: &(dyn Fn(ScanProgress) + Sync)) -> io::Result<ScanFindings> {
    let expected = (index.basis() == ScanBasis::LastScan).then(|| index.files());
    let scene = ScanInput { index, clock: workspace.copy.clock(), tally: ScanTally::new(expected, progress) };
    let walked = walk(workspace.root(), None, &Globs::all(), || ScanWorker::new(&scene))?;
    let mut found = ScanFindings {
        seen: SeenFiles::of(index.files()),
        hashed: Vec::new(),
        bytes_hashed: 0,
        unreadable: walked.left_out.unreadable,
        unnamed: walked.left_out.unnamed,
    };
    for looker in walked.visitors.into_iter().map(ScanWorker::finish) {
        found.seen.add(&looker.seen);
        found.hashed.extend(looker.hashed);
        found.bytes_hashed += looker.bytes_hashed;
        found.unreadable.extend(looker.unreadable);
    }
    found.unreadable.sort();
    Ok(found)
}

/// Checks the known files that the walk did not find. Those that exist count as seen; the others are returned with
/// their status.
fn recheck_missing(workspace: &Workspace, index: &ScanIndex, seen: &mut SeenFiles) -> io::Result<Vec<(String, RecheckResult)>> {
    let mut lost = Vec::new();
    let mut recheck = None;
    for dir in index.dirs() {
        let unseen: Vec<usize> = (0..dir.len()).filter(|nth| !seen.has(dir.first + nth)).collect();
        if unseen.is_empty() {
            continue;
        }
        let recheck = match &mut recheck {
            Some(recheck) => recheck,
            none => none.insert(FileRecheck::of(workspace.root())?),
        };
        let names: Vec<&str> = unseen.iter().map(|&nth| dir.name(nth).unwrap_or_default()).collect();
        for ((nth, name), result) in unseen.iter().zip(&names).zip(recheck.check(dir.path, &names)) {
            match result {
                RecheckResult::Kept => seen.mark(dir.first + nth),
                RecheckResult::Gone | RecheckResult::Ignored => lost.push((join_path(dir.path, name), result)),
            }
        }
    }
    Ok(lost)
}

/// Writes the new index: the old entries of files that were seen, and new entries of files that were hashed. Both are
/// sorted.
fn write_index<W: io::Write>(mut writer: IndexWriter<W>, index: &ScanIndex, found: &ScanFindings) -> io::Result<usize> {
    let mut hashed = found.hashed.iter().map(|hashed| (split_path(&hashed.path), &hashed.now)).peekable();
    for dir in index.dirs() {
        for nth in (0..dir.len()).filter(|nth| found.seen.has(dir.first + nth)) {
            let Some(name) = dir.name(nth) else { continue };
            let place = (dir.path, name);
            while let Some(((dir, name), now)) = hashed.next_if(|(other, _)| *other < place) {
                writer.push(dir, name, now)?;
            }
            match hashed.next_if(|(other, _)| *other == place) {
                Some((_, now)) => writer.push(dir.path, name, now)?,
                None => writer.push(dir.path, name, &dir.file(nth))?,
            }
        }
    }
    for ((dir, name), now) in hashed {
        writer.push(dir, name, now)?;
    }
    writer.finish()
}

fn scan_report(basis: ScanBasis, files: usize, found: ScanFindings, lost: Vec<(String, RecheckResult)>) -> ScanReport {
    let hashed_as = |result| sorted(found.hashed.iter().filter(|file| file.result == result).map(|file| &*file.path));
    let lost_as = |result| sorted(lost.iter().filter(|(_, was)| *was == result).map(|(path, _)| path.as_str()));
    ScanReport {
        basis,
        files,
        created: if basis == ScanBasis::LastScan { hashed_as(HashResult::Created) } else { Vec::new() },
        modified: hashed_as(HashResult::Modified),
        deleted: lost_as(RecheckResult::Gone),
        ignored: lost_as(RecheckResult::Ignored),
        unreadable: found.unreadable,
        unnamed: found.unnamed,
        hashed: found.hashed.len(),
        bytes_hashed: found.bytes_hashed,
        took: Duration::ZERO,
    }
}

fn sorted<'a>(paths: impl Iterator<Item = &'a str>) -> Vec<RelPath> {
    let mut paths: Vec<RelPath> = paths.filter_map(|path| RelPath::new(path).ok()).collect();
    paths.sort_unstable();
    paths
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests play the other program")]
mod tests {
    use std::fs;

    use surehand_core::{ContentHash, Stamp};

    use super::*;
    use crate::{config::Config, scan_index::IndexedFile};

    /// Simulates a change right after the file was checked, within the clock's resolution.
    #[test]
    fn a_racy_stamp_proves_nothing() {
        let dir = surehand_testkit::repository();
        fs::write(dir.path().join("a"), "after").unwrap();
        let workspace = Workspace::open(dir.path(), Config::default()).unwrap();
        let scan = || scan(&workspace, &|_| ()).unwrap();
        scan();
        let path = RelPath::new("a").unwrap();
        let (version, stamp) = ScanIndex::load(&workspace.copy).unwrap().version_of(&path).unwrap();
        assert_eq!(version, ContentHash::of(b"after"));
        let racy = IndexedFile { version: ContentHash::of(b"befor"), stamp: Stamp { taken: stamp.changed, ..stamp } };
        scan_index::replace(&workspace.copy, |mut writer| {
            writer.push("", "a", &racy)?;
            writer.finish()
        })
        .unwrap();
        let scanned = scan();
        assert_eq!((scanned.modified, scanned.hashed), (vec![path.clone()], 1));
        assert_eq!(ScanIndex::load(&workspace.copy).unwrap().version_of(&path).unwrap().0, version);
    }
}
