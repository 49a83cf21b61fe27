//! The scan index: version and stamp of every file that a scan found, in one file of the state directory.
//!
//! It has a format of its own, because a scan needs all of it at once: reading a hundred thousand entries takes a few
//! milliseconds, where an SQL query takes longer than the walk. It is never repaired: a damaged index, or one with an
//! unknown version, counts as none.
//!
//! Format, with little-endian numbers: a head (magic, version); for each directory a block of fixed-length records for
//! its files, sorted by name, followed by their names; a table of the directories, sorted by path; their paths; and a
//! tail with the counts and a checksum of everything before it. Entries are read in place, and checked when they are
//! read.

use std::{
    cmp::Ordering,
    fs::File,
    io::{self, Write},
    os::{fd::AsFd, unix::fs::FileExt},
    panic::resume_unwind,
    thread,
};

use rustix::{
    fs::{self as sys, Mode, OFlags},
    io::Errno,
};
use surehand_core::{ContentHash, RelPath, Stamp};

use crate::{
    disk::{staging, walk::threads, working_copy::WorkingCopy},
    state_dir,
};

#[derive(Debug)]
pub(crate) struct ScanIndex {
    basis: ScanBasis,
    bytes: Vec<u8>,
    tail: IndexTail,
}

/// The state that a scan compares with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScanBasis {
    /// The index that the previous scan wrote.
    LastScan,
    /// Nothing: this is the first scan.
    Nothing,
    /// Nothing: the index is damaged.
    Damaged,
    /// Nothing: the last scan was made by a version of Surehand with another index format.
    OtherVersion,
}

const NAME: &str = "index";
/// A larger index is not read. This is enough for some ten million files.
const MAX_BYTES: u64 = 4 << 30;
const LOCK_NAME: &str = "index";

const MAGIC: [u8; 8] = *b"SHINDEX\n";
const VERSION: u32 = 1;
const HEAD: usize = 16;
const TAIL: usize = 40;
/// Five numbers and a time of the stamp, the version, and the end of the name.
const RECORD: usize = 6 * 8 + 32 + 8;
/// A directory in the table: the offset of its block, the number of its first file, its number of files, and the end of
/// its path.
const ROW: usize = 8 + 3 * 4;

/// Reads a file on all processors. Most of the time goes into its memory, which the system allocates page by page.
fn read(file: &File) -> io::Result<Vec<u8>> {
    const WORTH_A_THREAD: usize = 1 << 20;
    let length = usize::try_from(file.metadata()?.len()).map_err(io::Error::other)?;
    let mut bytes = vec![0; length];
    let part = length.div_ceil(threads()).max(WORTH_A_THREAD);
    let read_part = |(number, bytes): (usize, &mut [u8])| file.read_exact_at(bytes, (number * part) as u64);
    thread::scope(|scope| {
        let mut parts = bytes.chunks_mut(part).enumerate();
        let first = parts.next();
        let others: Vec<_> = parts.map(|part| scope.spawn(move || read_part(part))).collect();
        let first = first.map_or(Ok(()), read_part);
        others.into_iter().fold(first, |read, part| read.and(part.join().unwrap_or_else(|panic| resume_unwind(panic))))
    })?;
    Ok(bytes)
}

/// The counts and the checksum at the end of the file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct IndexTail {
    files: usize,
    size: u64,
    table: usize,
    dirs: usize,
}

impl ScanIndex {
    pub(crate) fn load(copy: &WorkingCopy) -> io::Result<Self> {
        let opened = copy.state.dir().and_then(|dir| state_dir::open_file(&dir, &name(copy), MAX_BYTES));
        let file = match opened {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::empty(ScanBasis::Nothing)),
            // Not a file that we created.
            Err(error) if error.raw_os_error().is_none_or(|code| code == Errno::LOOP.raw_os_error()) => {
                return Ok(Self::empty(ScanBasis::Damaged));
            }
            opened => opened?,
        };
        Ok(Self::from_bytes(read(&file)?))
    }

    /// Inode and modification time of the index, which identify the scan that wrote it.
    pub(crate) fn stamp(copy: &WorkingCopy) -> Option<(u64, i64)> {
        let dir = copy.state.dir().ok()?;
        let stat = sys::statat(&*dir, name(copy), sys::AtFlags::SYMLINK_NOFOLLOW).ok()?;
        Some((stat.st_ino, copy.clock().stamp(&stat).modified))
    }

    fn empty(basis: ScanBasis) -> Self {
        Self { basis, bytes: Vec::new(), tail: IndexTail::default() }
    }

    fn from_bytes(bytes: Vec<u8>) -> Self {
        let version = bytes.strip_prefix(&MAGIC).and_then(|rest| rest.first_chunk()).copied().map(u32::from_le_bytes);
        if version.is_some_and(|version| version != VERSION) {
            return Self::empty(ScanBasis::OtherVersion);
        }
        match IndexTail::read(&bytes) {
            Some(tail) if version.is_some() => Self { basis: ScanBasis::LastScan, bytes, tail },
            _ => Self::empty(ScanBasis::Damaged),
        }
    }

    pub(crate) fn basis(&self) -> ScanBasis {
        self.basis
    }

    pub(crate) fn files(&self) -> usize {
        self.tail.files
    }

    /// The number of files directly in each directory, by path with a trailing slash; the root's path is empty.
    pub(crate) fn counts(&self) -> Vec<(String, usize)> {
        let count = |dir: IndexedDir<'_>| {
            let path = if dir.path.is_empty() { String::new() } else { format!("{}/", dir.path) };
            (path, dir.len())
        };
        let mut counts: Vec<(String, usize)> = self.dirs().map(count).collect();
        // The trailing slash may have changed the order.
        counts.sort_unstable();
        counts
    }

    /// The recorded version and stamp of a file. If the stamp is racy, the version may be out of date even if the stamp
    /// still matches.
    pub(crate) fn version_of(&self, path: &RelPath) -> Option<(ContentHash, Stamp)> {
        let (dir, name) = split_path(path.as_str());
        let dir = self.dir(dir)?;
        let known = dir.file(dir.find(name)?);
        Some((known.version, known.stamp))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (RelPath, ContentHash, Stamp)> + '_ {
        self.dirs().flat_map(|dir| {
            (0..dir.len()).filter_map(move |nth| {
                let known = dir.file(nth);
                Some((RelPath::new(&join_path(dir.path, dir.name(nth)?)).ok()?, known.version, known.stamp))
            })
        })
    }

    pub(crate) fn dirs(&self) -> impl Iterator<Item = IndexedDir<'_>> {
        (0..self.tail.dirs).filter_map(|nth| self.dir_at(nth))
    }

    /// The files of a directory; its path is empty for the root.
    pub(crate) fn dir(&self, path: &str) -> Option<IndexedDir<'_>> {
        self.dir_at(search(self.tail.dirs, path, |nth| self.dir_path(nth))?)
    }

    fn dir_path(&self, nth: usize) -> Option<&[u8]> {
        let (rows, paths) = self.table()?;
        let ends = |nth: usize| Some(u32_at(rows.get(nth * ROW..)?.first_chunk::<ROW>()?, 16));
        let starts = if nth == 0 { 0 } else { ends(nth - 1)? };
        paths.get(starts..ends(nth)?)
    }

    fn table(&self) -> Option<(&[u8], &[u8])> {
        let table = self.bytes.get(self.tail.table..self.bytes.len() - TAIL)?;
        table.split_at_checked(self.tail.dirs * ROW)
    }

    /// A directory by its index in the table; `None` if the entry is malformed.
    fn dir_at(&self, nth: usize) -> Option<IndexedDir<'_>> {
        let path = str::from_utf8(self.dir_path(nth)?).ok()?;
        let (rows, _) = self.table()?;
        let row = &rows[nth * ROW..][..ROW];
        let (first, files) = (u32_at(row, 8), u32_at(row, 12));
        let block = self.bytes.get(usize::try_from(u64_at(row, 0)).ok()?..self.tail.table)?;
        let (records, names) = block.split_at_checked(files.checked_mul(RECORD)?)?;
        (first.checked_add(files)? <= self.tail.files).then_some(IndexedDir { path, first, records, names })
    }
}

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct IndexedDir<'a> {
    /// The path; empty for the root.
    pub path: &'a str,
    /// The index of its first file among all files.
    pub first: usize,
    records: &'a [u8],
    /// The names of its files, followed by other data.
    names: &'a [u8],
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct IndexedFile {
    pub version: ContentHash,
    pub stamp: Stamp,
}

impl<'a> IndexedDir<'a> {
    pub(crate) fn len(&self) -> usize {
        self.records.len() / RECORD
    }

    pub(crate) fn find(&self, name: &str) -> Option<usize> {
        search(self.len(), name, |nth| self.name_bytes(nth))
    }

    /// The name of a file; `None` if the entry is malformed.
    pub(crate) fn name(&self, nth: usize) -> Option<&'a str> {
        str::from_utf8(self.name_bytes(nth)?).ok()
    }

    fn name_bytes(&self, nth: usize) -> Option<&'a [u8]> {
        let ends = |nth: usize| usize::try_from(u64_at(self.record(nth), RECORD - 8)).ok();
        let starts = if nth == 0 { 0 } else { ends(nth - 1)? };
        self.names.get(starts..ends(nth)?)
    }

    pub(crate) fn file(&self, nth: usize) -> IndexedFile {
        let record = self.record(nth);
        let time = |at: usize| u64_at(record, at).cast_signed();
        let stamp = Stamp {
            device: u64_at(record, 0),
            inode: u64_at(record, 8),
            size: u64_at(record, 16),
            modified: time(24),
            changed: time(32),
            taken: time(40),
        };
        let version = ContentHash::from_bytes(*record[48..].first_chunk().expect("a record has a version"));
        IndexedFile { version, stamp }
    }

    fn record(&self, nth: usize) -> &'a [u8] {
        &self.records[nth * RECORD..][..RECORD]
    }
}

/// The index of a key among sorted ones; `None` also if an entry on the way is malformed.
fn search<'a>(count: usize, wanted: &str, key: impl Fn(usize) -> Option<&'a [u8]>) -> Option<usize> {
    let (mut low, mut high) = (0, count);
    while low < high {
        let middle = low.midpoint(high);
        match key(middle)?.cmp(wanted.as_bytes()) {
            Ordering::Less => low = middle + 1,
            Ordering::Greater => high = middle,
            Ordering::Equal => return Some(middle),
        }
    }
    None
}

fn u32_at(bytes: &[u8], at: usize) -> usize {
    u32::from_le_bytes(*bytes[at..].first_chunk().expect("within a row")) as usize
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(*bytes[at..].first_chunk().expect("within a row, a record or the tail"))
}

/// Splits a path into its directory, which is empty for the root, and its name.
pub(crate) fn split_path(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}

pub(crate) fn join_path(dir: &str, name: &str) -> String {
    if dir.is_empty() { name.to_owned() } else { format!("{dir}/{name}") }
}

impl IndexTail {
    /// `None` if the length or the checksum is wrong.
    fn read(bytes: &[u8]) -> Option<Self> {
        let (before, tail) = bytes.split_at_checked(bytes.len().checked_sub(TAIL)?)?;
        let number = |at: usize| usize::try_from(u64_at(tail, at)).ok();
        let read = Self { files: number(0)?, size: u64_at(tail, 8), table: number(16)?, dirs: number(24)? };
        let checksum = before.chunks(CHUNK).fold(0, checksum);
        let fits = |count: usize, each: usize| count.checked_mul(each).is_some_and(|length| length <= before.len());
        let is_sound = fits(read.dirs, ROW) && fits(read.files, RECORD) && read.table >= HEAD;
        let is_whole = read.bytes(checksum) == *tail;
        (is_sound && is_whole).then_some(read)
    }

    /// The bytes of the tail. Its counts are part of the checksum.
    fn bytes(&self, checksum_before: u64) -> [u8; TAIL] {
        let mut bytes = [0; TAIL];
        let numbers = [self.files as u64, self.size, self.table as u64, self.dirs as u64];
        for (place, number) in bytes.chunks_exact_mut(8).zip(numbers) {
            place.copy_from_slice(&number.to_le_bytes());
        }
        let checksum = checksum(checksum_before, &bytes[..TAIL - 8]);
        bytes[TAIL - 8..].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }
}

/// The unit of writing and of the checksum.
const CHUNK: usize = 1 << 16;

/// Adds a chunk to a checksum, which protects against accidents, not against malice. Four lanes let a processor do the
/// multiplications in parallel. Each step is reversible, so a single different word always changes the result.
fn checksum(so_far: u64, chunk: &[u8]) -> u64 {
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    let step = |strand: u64, word: u64| (strand ^ word).wrapping_mul(FACTOR).rotate_left(29);
    let mut strands = [so_far, 1, 2, 3];
    let mut stripes = chunk.chunks_exact(32);
    for stripe in &mut stripes {
        for (nth, strand) in strands.iter_mut().enumerate() {
            *strand = step(*strand, u64_at(stripe, 8 * nth));
        }
    }
    let rest = stripes.remainder().iter().fold(chunk.len() as u64, |rest, &byte| step(rest, u64::from(byte)));
    strands.into_iter().fold(rest, step)
}

/// Writes an index file by file, sorted by directory and name.
#[derive(Debug)]
pub(crate) struct IndexWriter<W> {
    out: W,
    pending: Vec<u8>,
    checksum: u64,
    /// The number of bytes already written.
    written: usize,
    tail: IndexTail,
    dir: String,
    records: Vec<u8>,
    names: Vec<u8>,
    table: Vec<u8>,
    paths: Vec<u8>,
}

impl<W: Write> IndexWriter<W> {
    pub(crate) fn new(out: W) -> Self {
        let mut pending = MAGIC.to_vec();
        pending.extend(u64::from(VERSION).to_le_bytes());
        Self {
            out,
            pending,
            checksum: 0,
            written: 0,
            tail: IndexTail::default(),
            dir: String::new(),
            records: Vec::new(),
            names: Vec::new(),
            table: Vec::new(),
            paths: Vec::new(),
        }
    }

    pub(crate) fn push(&mut self, dir: &str, name: &str, known: &IndexedFile) -> io::Result<()> {
        if self.dir != dir {
            self.end_dir()?;
            dir.clone_into(&mut self.dir);
        }
        let stamp = &known.stamp;
        let times = [stamp.modified, stamp.changed, stamp.taken].map(i64::cast_unsigned);
        for number in [stamp.device, stamp.inode, stamp.size].into_iter().chain(times) {
            self.records.extend(number.to_le_bytes());
        }
        self.records.extend(known.version.as_bytes());
        self.names.extend(name.as_bytes());
        self.records.extend((self.names.len() as u64).to_le_bytes());
        self.tail.files += 1;
        self.tail.size = self.tail.size.saturating_add(stamp.size);
        Ok(())
    }

    /// Completes the file, and returns the number of files in it.
    pub(crate) fn finish(mut self) -> io::Result<usize> {
        self.end_dir()?;
        self.tail.table = self.position();
        let (table, paths) = (std::mem::take(&mut self.table), std::mem::take(&mut self.paths));
        self.put(&table)?;
        self.put(&paths)?;
        let last = std::mem::take(&mut self.pending);
        let sum = if last.is_empty() { self.checksum } else { checksum(self.checksum, &last) };
        self.out.write_all(&last)?;
        self.out.write_all(&self.tail.bytes(sum))?;
        Ok(self.tail.files)
    }

    fn end_dir(&mut self) -> io::Result<()> {
        let files = self.records.len() / RECORD;
        if files == 0 {
            return Ok(());
        }
        self.paths.extend(self.dir.as_bytes());
        self.table.extend((self.position() as u64).to_le_bytes());
        for number in [self.tail.files - files, files, self.paths.len()] {
            let number = u32::try_from(number).map_err(|_| io::Error::other("more files than an index can hold"))?;
            self.table.extend(number.to_le_bytes());
        }
        self.tail.dirs += 1;
        let (mut records, mut names) = (std::mem::take(&mut self.records), std::mem::take(&mut self.names));
        self.put(&records)?;
        self.put(&names)?;
        records.clear();
        names.clear();
        (self.records, self.names) = (records, names);
        Ok(())
    }

    fn position(&self) -> usize {
        self.written + self.pending.len()
    }

    fn put(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while self.pending.len() + bytes.len() >= CHUNK {
            let (now, later) = bytes.split_at(CHUNK - self.pending.len());
            self.pending.extend(now);
            self.checksum = checksum(self.checksum, &self.pending);
            self.out.write_all(&self.pending)?;
            self.written += CHUNK;
            self.pending.clear();
            bytes = later;
        }
        self.pending.extend(bytes);
        Ok(())
    }
}

/// Replaces the index. If several processes do so at once, the last one wins, and each of them leaves a complete index.
/// The file is not synced: if a power cut loses it, the next scan starts from nothing.
pub(crate) fn replace<T>(copy: &WorkingCopy, write: impl FnOnce(IndexWriter<&File>) -> io::Result<T>) -> io::Result<T> {
    let create = OFlags::WRONLY | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let mode = Mode::from_raw_mode(0o600);
    let state = &copy.state;
    let lock = File::from(sys::openat(&*state.locks(), LOCK_NAME, create, mode)?);
    lock.lock()?;
    let (dir, name) = (state.dir()?, name(copy));
    let new = format!("{name}.new");
    // Never write into an existing file of this name: writing to a pipe would block forever.
    staging::remove((*dir).as_fd(), &new);
    let file = File::from(sys::openat(&*dir, &new, create | OFlags::EXCL, mode)?);
    let written = write(IndexWriter::new(&file))?;
    sys::renameat(&*dir, &new, &*dir, &name)?;
    Ok(written)
}

/// The name of the index: a root below the top of its work tree has its own.
fn name(copy: &WorkingCopy) -> String {
    match &copy.below {
        None => NAME.to_owned(),
        Some(below) => format!("{NAME}-{}", &ContentHash::of(below.as_str().as_bytes()).to_string()[..12]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(nth: u64) -> IndexedFile {
        let [device, inode, size] = [nth % 3, nth, nth * 1000];
        let stamp = Stamp { device, inode, size, modified: -(nth as i64), changed: i64::MAX - nth as i64, taken: nth as i64 };
        IndexedFile { version: ContentHash::of(&nth.to_le_bytes()), stamp }
    }

    fn bytes(files: &[(&str, &str)]) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut writer = IndexWriter::new(&mut bytes);
        for ((dir, name), nth) in files.iter().zip(0..) {
            writer.push(dir, name, &known(nth)).unwrap();
        }
        assert_eq!(writer.finish().unwrap(), files.len());
        bytes
    }

    const FILES: [(&str, &str); 6] = [("", "a"), ("", "é.rs"), ("a-b", "x"), ("a/b", "x"), ("a/b", "xy"), ("z", "x")];

    #[test]
    fn written_entries_are_read_back() {
        let index = ScanIndex::from_bytes(bytes(&FILES));
        assert_eq!((index.basis(), index.files()), (ScanBasis::LastScan, 6));
        let found: Vec<_> = index.iter().collect();
        for (nth, (dir, name)) in FILES.into_iter().enumerate() {
            let path = RelPath::new(&join_path(dir, name)).unwrap();
            let expected = known(nth as u64);
            assert_eq!(index.version_of(&path), Some((expected.version, expected.stamp)), "{path}");
            assert_eq!(found[nth], (path, expected.version, expected.stamp));
        }
        for path in ["b", "a/b/y", "a/x", "a/b", "x", "zz/x"] {
            assert_eq!(index.version_of(&RelPath::new(path).unwrap()), None, "{path}");
        }
    }

    #[test]
    fn an_index_of_many_chunks_is_read_back() {
        let names: Vec<(String, String)> = (0..5_000).map(|n| (format!("dir-{:03}", n / 10), format!("file-{n:05}"))).collect();
        let files: Vec<(&str, &str)> = names.iter().map(|(dir, name)| (dir.as_str(), name.as_str())).collect();
        let index = ScanIndex::from_bytes(bytes(&files));
        assert_eq!(index.files(), 5_000);
        for (nth, (dir, name)) in files.into_iter().enumerate() {
            assert_eq!(index.version_of(&RelPath::new(&join_path(dir, name)).unwrap()).unwrap().1.inode, nth as u64);
        }
    }

    #[test]
    fn an_index_may_be_empty() {
        let index = ScanIndex::from_bytes(bytes(&[]));
        assert_eq!((index.basis(), index.files(), index.iter().count()), (ScanBasis::LastScan, 0, 0));
    }

    #[test]
    fn a_truncated_or_changed_index_is_damaged() {
        let whole = bytes(&FILES);
        for length in 0..whole.len() {
            assert_eq!(ScanIndex::from_bytes(whole[..length].to_vec()).basis(), ScanBasis::Damaged, "cut to {length}");
        }
        for at in 0..whole.len() {
            let mut changed = whole.clone();
            changed[at] ^= 0x10;
            let expected = if (8..12).contains(&at) { ScanBasis::OtherVersion } else { ScanBasis::Damaged };
            assert_eq!(ScanIndex::from_bytes(changed).basis(), expected, "changed at {at}");
        }
    }

    /// An index may come with a cloned repository, so a correct checksum proves nothing.
    #[test]
    fn nonsense_numbers_are_ignored() {
        let whole = bytes(&FILES);
        let tail = whole.len() - TAIL;
        for at in HEAD..whole.len() - 8 {
            let mut changed = whole.clone();
            changed[at] ^= 0xff;
            let sum = changed[..tail].chunks(CHUNK).fold(0, checksum);
            let sum = checksum(sum, &changed[tail..whole.len() - 8]);
            changed[whole.len() - 8..].copy_from_slice(&sum.to_le_bytes());
            let index = ScanIndex::from_bytes(changed);
            assert!(index.iter().count() <= 36 && index.files() <= whole.len(), "changed at {at}");
            for (dir, name) in FILES {
                index.version_of(&RelPath::new(&join_path(dir, name)).unwrap());
            }
        }
    }
}
