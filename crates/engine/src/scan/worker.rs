//! One thread of a scan: compares the stamp of each file with the index and hashes the file if the stamp does not prove
//! it unchanged.

use std::{
    os::fd::OwnedFd,
    sync::atomic::{AtomicU64, AtomicUsize, Ordering},
};

use rustix::{fs as sys, io::Errno};
use surehand_core::{ContentHash, ContentHasher, Stamp};

use super::ScanProgress;
use crate::{
    disk::{
        file_times::FileClock,
        walk::{EntryKind, WalkEntry, WalkVisitor},
    },
    scan_index::{IndexedDir, IndexedFile, ScanIndex, split_path},
};

pub(super) struct ScanInput<'a> {
    pub index: &'a ScanIndex,
    pub clock: FileClock,
    pub tally: ScanTally<'a>,
}

pub(super) struct ScanTally<'a> {
    pub expected: Option<usize>,
    files: AtomicUsize,
    bytes: AtomicU64,
    report: &'a (dyn Fn(ScanProgress) + Sync),
}

impl<'a> ScanTally<'a> {
    pub(super) fn new(expected: Option<usize>, report: &'a (dyn Fn(ScanProgress) + Sync)) -> Self {
        Self { expected, files: AtomicUsize::new(0), bytes: AtomicU64::new(0), report }
    }

    fn add(&self, files: usize, bytes: u64) {
        let files = self.files.fetch_add(files, Ordering::Relaxed) + files;
        let bytes_hashed = self.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        (self.report)(ScanProgress { files, expected: self.expected, bytes_hashed });
    }
}

/// A file that was hashed, because it was new or its stamp did not prove it unchanged.
#[derive(Debug)]
pub(super) struct HashedFile {
    pub path: Box<str>,
    pub now: IndexedFile,
    pub result: HashResult,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HashResult {
    Created,
    Modified,
    /// Unchanged content with a new or racy stamp.
    Same,
}

/// One thread of a scan with its results.
pub(super) struct ScanWorker<'a> {
    scene: &'a ScanInput<'a>,
    /// The directory of the last file, because a walk visits the files of a directory in a row.
    dir: IndexedDir<'a>,
    dir_path: String,
    buffer: Vec<u8>,
    unreported_files: usize,
    unreported_bytes: u64,
    pub seen: SeenFiles,
    pub hashed: Vec<HashedFile>,
    pub bytes_hashed: u64,
    pub unreadable: Vec<(String, String)>,
}

/// The size of a read.
const BUFFER: usize = 1 << 20;
/// Progress is reported after this many files.
const REPORT_AFTER: usize = 256;
/// How often a file is read again if it is written meanwhile. A large one is left for the next scan.
const ATTEMPTS: usize = 3;

impl WalkVisitor for ScanWorker<'_> {
    fn visit(&mut self, entry: &WalkEntry<'_>) {
        if entry.kind != EntryKind::File {
            return;
        }
        if let Err(errno) = self.visit_file(entry) {
            self.unreadable.push((entry.path.to_owned(), std::io::Error::from(errno).to_string()));
        }
        self.unreported_files += 1;
        if self.unreported_files >= REPORT_AFTER {
            self.report_progress();
        }
    }
}

impl<'a> ScanWorker<'a> {
    pub(super) fn new(scene: &'a ScanInput<'a>) -> Self {
        Self {
            scene,
            dir: IndexedDir::default(),
            // No directory has this path.
            dir_path: "/".to_owned(),
            buffer: Vec::new(),
            unreported_files: 0,
            unreported_bytes: 0,
            seen: SeenFiles::of(scene.index.files()),
            hashed: Vec::new(),
            bytes_hashed: 0,
            unreadable: Vec::new(),
        }
    }

    fn visit_file(&mut self, entry: &WalkEntry<'_>) -> rustix::io::Result<()> {
        let (dir, name) = split_path(entry.path);
        self.enter_directory(dir);
        let Some(nth) = self.dir.find(name) else {
            return self.hash(entry, None);
        };
        let stat = entry.stat();
        if let Ok(None) = stat {
            return Ok(());
        }
        // The file exists, whatever the error, so its old entry stays until it can be read.
        self.seen.mark(self.dir.first + nth);
        let known = self.dir.file(nth);
        match stat? {
            Some(stat) if !known.stamp.is_racy() && known.stamp.agrees_with(&self.scene.clock.stamp(&stat)) => Ok(()),
            _ => self.hash(entry, Some(&known)),
        }
    }

    fn enter_directory(&mut self, dir: &str) {
        if self.dir_path != dir {
            self.dir = self.scene.index.dir(dir).unwrap_or_default();
            dir.clone_into(&mut self.dir_path);
        }
    }

    fn hash(&mut self, entry: &WalkEntry<'_>, known: Option<&IndexedFile>) -> rustix::io::Result<()> {
        // If the file vanishes between two checks, the next scan reports that.
        let Some((file, stat)) = entry.open()? else { return Ok(()) };
        let now = self.read(&file, self.scene.clock.stamp(&stat))?;
        let result = match known {
            None => HashResult::Created,
            Some(known) if known.version == now.version => HashResult::Same,
            Some(_) => HashResult::Modified,
        };
        self.hashed.push(HashedFile { path: entry.path.into(), now, result });
        Ok(())
    }

    /// The version of an open file, with a stamp from before the read, so that later writes show in the times. For a
    /// file that is written constantly, this is the version read, which the next scan must check again.
    fn read(&mut self, file: &OwnedFd, mut stamp: Stamp) -> rustix::io::Result<IndexedFile> {
        for attempt in 1.. {
            let (version, length) = self.read_once(file, stamp.size)?;
            let after = self.scene.clock.stamp(&sys::fstat(file)?);
            if stamp.agrees_with(&after) && length == stamp.size {
                return Ok(IndexedFile { version, stamp });
            }
            if attempt == ATTEMPTS || after.size > BUFFER as u64 {
                return Ok(IndexedFile { version, stamp: Stamp { taken: after.changed, ..after } });
            }
            stamp = after;
        }
        unreachable!("it is tried once at least")
    }

    fn read_once(&mut self, file: &OwnedFd, size: u64) -> rustix::io::Result<(ContentHash, u64)> {
        self.buffer.resize(BUFFER, 0);
        let mut hasher = ContentHasher::default();
        let mut length = 0;
        loop {
            let read = match rustix::io::pread(file, &mut self.buffer[..], length) {
                Err(Errno::INTR) => continue,
                read => read?,
            };
            hasher.update(&self.buffer[..read]);
            length += read as u64;
            self.unreported_bytes += read as u64;
            if read == 0 || length >= size {
                return Ok((hasher.finish(), length));
            }
            if read == BUFFER {
                self.report_progress();
            }
        }
    }

    fn report_progress(&mut self) {
        let (files, bytes) = (std::mem::take(&mut self.unreported_files), std::mem::take(&mut self.unreported_bytes));
        self.bytes_hashed += bytes;
        self.scene.tally.add(files, bytes);
    }

    pub(super) fn finish(mut self) -> Self {
        self.report_progress();
        self
    }
}

#[derive(Debug, Clone)]
pub(super) struct SeenFiles(Vec<u64>);

impl SeenFiles {
    pub(super) fn of(files: usize) -> Self {
        Self(vec![0; files.div_ceil(64)])
    }

    pub(super) fn mark(&mut self, file: usize) {
        self.0[file / 64] |= 1 << (file % 64);
    }

    pub(super) fn has(&self, file: usize) -> bool {
        self.0[file / 64] & (1 << (file % 64)) != 0
    }

    pub(super) fn add(&mut self, other: &SeenFiles) {
        self.0.iter_mut().zip(&other.0).for_each(|(word, other)| *word |= other);
    }
}
