//! The entries of git's index: the tracked files, each with its blob and the metadata of git's last check.

use std::{io::Read, os::unix::fs::MetadataExt, path::Path};

use rustix::fs::Stat;

use super::{
    CannotTell, GitDirs, ObjectId, git_mode,
    head::hash_length,
    index::{MAX_INDEX, name_at, read_name, read_packed_name},
    work_tree::open_plain,
};

#[derive(Debug)]
pub(crate) struct GitIndex {
    names: Vec<u8>,
    entries: Vec<IndexEntry>,
    /// The trees that git recorded for runs of entries.
    pub(super) trees: Option<CachedTree>,
    written: (u32, u32),
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct IndexEntry {
    name: (u32, u32),
    changed: (u32, u32),
    modified: (u32, u32),
    inode: u32,
    owner: u32,
    group: u32,
    size: u32,
    /// The mode as in a tree: 100644, 100755, 120000 or 160000.
    pub mode: u32,
    pub id: ObjectId,
    flags: u16,
    more_flags: u16,
}

/// A tree that git built from a run of entries.
#[derive(Debug)]
pub(super) struct CachedTree {
    pub name: Vec<u8>,
    /// The number of its entries and its id; `None` if an entry has changed since.
    pub made: Option<(usize, ObjectId)>,
    pub below: Vec<CachedTree>,
}

/// The maximum depth of nested directories.
pub(super) const DEEPEST: usize = 2048;

const ASSUME_UNCHANGED: u16 = 0x8000;
const STAGE: u16 = 0x3000;
const SKIP_WORKTREE: u16 = 0x4000;
const INTENT_TO_ADD: u16 = 0x2000;

impl GitIndex {
    /// Reads the index of a checkout. Without an index, nothing is tracked.
    pub(crate) fn read(git: &GitDirs) -> Result<Self, CannotTell> {
        let path = git.own.join("index");
        let mut file = match open_plain(&path) {
            Ok(file) => file,
            Err(rustix::io::Errno::NOENT) => return Ok(Self::empty()),
            Err(error) => return Err(CannotTell::of(&path, std::io::Error::from(error))),
        };
        let meta = file.metadata().map_err(|error| CannotTell::of(&path, error))?;
        if !meta.is_file() || meta.len() > MAX_INDEX {
            return Err(CannotTell::of(&path, "it is not a file, or too large"));
        }
        let mut bytes = Vec::with_capacity(meta.len() as usize + 1);
        (&mut file).take(MAX_INDEX).read_to_end(&mut bytes).map_err(|error| CannotTell::of(&path, error))?;
        let written = (meta.mtime() as u32, meta.mtime_nsec() as u32);
        Self::parse(&bytes, hash_length(git), written, &path)
    }

    pub(crate) fn empty() -> Self {
        Self { names: Vec::new(), entries: Vec::new(), trees: None, written: (0, 0) }
    }

    fn parse(bytes: &[u8], hash: usize, written: (u32, u32), path: &Path) -> Result<Self, CannotTell> {
        let bad = || CannotTell::of(path, "this is not an index that can be understood");
        let number = |at: usize| Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
        let (version, count) = (number(4).ok_or_else(bad)?, number(8).ok_or_else(bad)?);
        if !bytes.starts_with(b"DIRC") || !(2..=4).contains(&version) || bytes.len() < 12 + hash {
            return Err(bad());
        }
        let body = &bytes[..bytes.len() - hash];
        let mut index = Self { written, ..Self::empty() };
        index.entries.reserve(count.min(1 << 20) as usize);
        let (mut at, mut name) = (12, Vec::new());
        for _ in 0..count {
            let start = name_at(body, at, hash).ok_or_else(bad)?;
            let next = match version {
                4 => read_packed_name(body, start, &mut name),
                _ => read_name(body, at, start, &mut name),
            };
            let entry = index.entry(body, at, hash, &name).ok_or_else(bad)?;
            index.entries.push(entry);
            at = next.ok_or_else(bad)?;
        }
        index.read_extensions(body, at, hash, path)?;
        let in_order = |pair: &[IndexEntry]| (index.name(&pair[0]), pair[0].stage()) < (index.name(&pair[1]), pair[1].stage());
        if !index.entries.windows(2).all(in_order) {
            return Err(bad());
        }
        Ok(index)
    }

    fn entry(&mut self, bytes: &[u8], at: usize, hash: usize, name: &[u8]) -> Option<IndexEntry> {
        let fixed = bytes.get(at..at + 42 + hash)?;
        let number = |nth: usize| u32::from_be_bytes(fixed[nth * 4..][..4].try_into().expect("four bytes"));
        let flags = u16::from_be_bytes(fixed[40 + hash..].try_into().ok()?);
        let more_flags = match flags & 0x4000 {
            0 => 0,
            _ => u16::from_be_bytes(bytes.get(at + 42 + hash..at + 44 + hash)?.try_into().ok()?),
        };
        if usize::from(flags & 0x0fff) != name.len().min(0x0fff) {
            return None;
        }
        let start = u32::try_from(self.names.len()).ok()?;
        self.names.extend_from_slice(name);
        Some(IndexEntry {
            name: (start, u32::try_from(name.len()).ok()?),
            changed: (number(0), number(1)),
            modified: (number(2), number(3)),
            inode: number(5),
            mode: number(6),
            owner: number(7),
            group: number(8),
            size: number(9),
            id: ObjectId::from_bytes(&fixed[40..40 + hash])?,
            flags,
            more_flags,
        })
    }

    /// Reads the extensions after the entries. An extension whose name starts with a lower-case letter changes the
    /// meaning of the entries.
    fn read_extensions(&mut self, bytes: &[u8], mut at: usize, hash: usize, path: &Path) -> Result<(), CannotTell> {
        while at < bytes.len() {
            let head = bytes.get(at..at + 8).ok_or_else(|| CannotTell::of(path, "the index is cut short"))?;
            let (name, length) = head.split_at(4);
            let length = u32::from_be_bytes(length.try_into().expect("four bytes")) as usize;
            let content = bytes
                .get(at + 8..at + 8 + length)
                .ok_or_else(|| CannotTell::of(path, "an extension of the index is cut short"))?;
            match name {
                b"TREE" => self.trees = CachedTree::parse(&mut &content[..], hash, 0),
                [b'A'..=b'Z', ..] => {}
                b"link" => return Err(CannotTell::of(path, "the index is split in two, which cannot be read")),
                b"sdir" => return Err(CannotTell::of(path, "the index is sparse, which cannot be read")),
                _ => return Err(CannotTell::of(path, "the index has an extension that is not known")),
            }
            at += 8 + length;
        }
        Ok(())
    }

    pub(crate) fn entries(&self) -> &[IndexEntry] {
        &self.entries
    }

    pub(crate) fn name(&self, entry: &IndexEntry) -> &[u8] {
        &self.names[entry.name.0 as usize..][..entry.name.1 as usize]
    }

    /// The index of the entry with this path, if it is not in conflict.
    pub(crate) fn find(&self, path: &[u8]) -> Option<usize> {
        let place = self.entries.partition_point(|entry| self.name(entry) < path);
        let entry = self.entries.get(place)?;
        (self.name(entry) == path && entry.stage() == 0).then_some(place)
    }

    /// Whether metadata proves that the file is the one that git hashed for an entry.
    pub(crate) fn vouches_for(&self, entry: &IndexEntry, stat: &Stat) -> bool {
        entry.is_plain() && entry.modified < self.written && entry.agrees_with(stat)
    }
}

impl IndexEntry {
    fn stage(&self) -> u16 {
        (self.flags & STAGE) >> 12
    }

    /// Whether git compares the file by its metadata. Git skips some files, and has no content of others.
    pub(crate) fn is_plain(&self) -> bool {
        self.flags & (ASSUME_UNCHANGED | STAGE) == 0 && self.more_flags & (SKIP_WORKTREE | INTENT_TO_ADD) == 0
    }

    /// Whether the file may be absent from the work tree.
    pub(crate) fn is_skipped(&self) -> bool {
        self.more_flags & SKIP_WORKTREE != 0
    }

    pub(crate) fn size(&self) -> u32 {
        self.size
    }

    #[allow(clippy::unnecessary_cast, reason = "narrower on some systems")]
    fn agrees_with(&self, stat: &Stat) -> bool {
        let kind = stat.st_mode & 0o170_000;
        let mode = if kind == 0o100_000 { git_mode(stat.st_mode) } else { kind };
        (self.modified, self.changed)
            == ((stat.st_mtime as u32, stat.st_mtime_nsec as u32), (stat.st_ctime as u32, stat.st_ctime_nsec as u32))
            && (self.inode, self.owner, self.group, self.size)
                == (stat.st_ino as u32, stat.st_uid as u32, stat.st_gid as u32, stat.st_size as u32)
            && self.mode == mode
    }
}

impl CachedTree {
    /// `None` if the extension is malformed; it is then ignored.
    fn parse(bytes: &mut &[u8], hash: usize, depth: usize) -> Option<Self> {
        let until = |bytes: &mut &[u8], end: u8| {
            let length = memchr::memchr(end, bytes)?;
            bytes.split_off(..=length).map(|part| part[..length].to_vec())
        };
        let number = |digits: Vec<u8>| str::from_utf8(&digits).ok()?.parse::<i64>().ok();
        let name = until(bytes, 0)?;
        let count = number(until(bytes, b' ')?)?;
        let below = number(until(bytes, b'\n')?)?;
        let made = match usize::try_from(count) {
            Ok(count) => Some((count, ObjectId::from_bytes(bytes.split_off(..hash)?)?)),
            Err(_) => None,
        };
        if depth > DEEPEST {
            return None;
        }
        let below = (0..below).map(|_| Self::parse(bytes, hash, depth + 1)).collect::<Option<_>>()?;
        Some(Self { name, made, below })
    }
}
