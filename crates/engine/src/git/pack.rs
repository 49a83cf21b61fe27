//! One pack of git's object database with its version 2 index, which says where an object starts. An object may be a
//! delta of another one.

use std::{
    fs::{self, File},
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
};

use super::{
    CannotTell, ObjectId, ObjectKind,
    objects::{GitObject, MAX_OBJECT},
};

pub(super) struct Pack {
    path: PathBuf,
    index: File,
    index_length: u64,
    /// Opened on first use.
    objects: std::cell::OnceCell<File>,
    count: u32,
    fanout: Vec<u32>,
    hash: usize,
}

/// The maximum length of a delta chain. Git makes chains of 50, and never more than 4,095.
const DEEPEST: usize = 4095;

/// The offset of the table of names: after the magic, the version, and the fan-out table.
const NAMES_AT: u64 = 8 + 256 * 4;

impl Pack {
    /// The packs of a database. A pack whose index is malformed is skipped, and its objects are not found.
    pub(super) fn all_in(database: &Path) -> Vec<Self> {
        let Ok(entries) = fs::read_dir(database.join("pack")) else { return Vec::new() };
        let indexes = entries.flatten().map(|entry| entry.path());
        let indexes = indexes.filter(|path| path.extension().is_some_and(|ending| ending == "idx"));
        indexes.filter_map(|path| Self::open(&path)).collect()
    }

    fn open(index_path: &Path) -> Option<Self> {
        let index = File::open(index_path).ok()?;
        let index_length = index.metadata().ok().filter(fs::Metadata::is_file)?.len();
        let mut head = [0; NAMES_AT as usize];
        index.read_exact_at(&mut head, 0).ok()?;
        if head[..8] != *b"\xfftOc\0\0\0\x02" {
            return None;
        }
        let fanout: Vec<u32> =
            head[8..].chunks(4).map(|number| u32::from_be_bytes(number.try_into().expect("four bytes"))).collect();
        let count = *fanout.last()?;
        if !fanout.is_sorted() {
            return None;
        }
        // Each object has a name, a checksum and an offset. Then come large offsets and two hashes.
        let hash = [20, 32].into_iter().find(|hash| {
            let least = NAMES_AT + u64::from(count) * (hash + 8) + 2 * hash;
            index_length >= least && (index_length - least).is_multiple_of(8) && index_length - least <= u64::from(count) * 8
        })?;
        let path = index_path.with_extension("pack");
        Some(Self { path, index, index_length, objects: std::cell::OnceCell::new(), count, fanout, hash: hash as usize })
    }

    pub(super) fn find(&self, id: &ObjectId) -> Result<Option<u64>, CannotTell> {
        let id = id.as_bytes();
        if id.len() != self.hash {
            return Ok(None);
        }
        let first = usize::from(id[0]);
        let (mut low, mut high) = (if first == 0 { 0 } else { self.fanout[first - 1] }, self.fanout[first]);
        let mut name = [0; 32];
        while low < high {
            let middle = low + (high - low) / 2;
            let name = &mut name[..self.hash];
            self.read_index(name, NAMES_AT + u64::from(middle) * self.hash as u64)?;
            match (*name).cmp(id) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
                std::cmp::Ordering::Equal => return self.object_offset(middle).map(Some),
            }
        }
        Ok(None)
    }

    fn object_offset(&self, nth: u32) -> Result<u64, CannotTell> {
        const IS_LARGE: u32 = 1 << 31;
        let offsets_at = NAMES_AT + u64::from(self.count) * (self.hash as u64 + 4);
        let mut offset = [0; 4];
        self.read_index(&mut offset, offsets_at + u64::from(nth) * 4)?;
        let offset = u32::from_be_bytes(offset);
        if offset & IS_LARGE == 0 {
            return Ok(u64::from(offset));
        }
        let mut large = [0; 8];
        self.read_index(&mut large, offsets_at + u64::from(self.count) * 4 + u64::from(offset & !IS_LARGE) * 8)?;
        Ok(u64::from_be_bytes(large))
    }

    fn read_index(&self, into: &mut [u8], at: u64) -> Result<(), CannotTell> {
        if at.saturating_add(into.len() as u64) > self.index_length {
            return Err(self.damaged());
        }
        self.index.read_exact_at(into, at).map_err(|error| CannotTell::of(&self.path.with_extension("idx"), error))
    }

    fn damaged(&self) -> CannotTell {
        CannotTell::of(&self.path, "the pack is damaged")
    }

    fn file(&self) -> Result<&File, CannotTell> {
        if self.objects.get().is_none() {
            let file = File::open(&self.path).map_err(|error| CannotTell::of(&self.path, error))?;
            let _ = self.objects.set(file);
        }
        Ok(self.objects.get().expect("it was set"))
    }

    /// The object at an offset; `None` if it or a base of it is missing or larger than `limit`.
    pub(super) fn read(
        &self,
        offset: u64,
        limit: usize,
        of_base: &dyn Fn(&ObjectId) -> Result<Option<GitObject>, CannotTell>,
    ) -> Result<Option<GitObject>, CannotTell> {
        let mut deltas = Vec::new();
        let mut next = offset;
        let (kind, mut content) = loop {
            let entry = self.entry(next)?;
            if entry.size > limit.clamp(1 << 20, MAX_OBJECT) {
                return Ok(None);
            }
            let content = self.inflate(&entry)?;
            match entry.kind {
                EntryKind::Whole(kind) => break (kind, content),
                EntryKind::DeltaOf(base) if base < next && deltas.len() < DEEPEST => {
                    deltas.push(content);
                    next = base;
                }
                EntryKind::DeltaOf(_) => return Err(self.damaged()),
                EntryKind::DeltaOfObject(base) => {
                    deltas.push(content);
                    if deltas.len() >= DEEPEST {
                        return Err(self.damaged());
                    }
                    match self.find(&base)? {
                        Some(base) => next = base,
                        // The base of a delta in a fetched pack may be in another pack.
                        None => match of_base(&base)? {
                            Some(found) => break found,
                            None => return Ok(None),
                        },
                    }
                }
            }
        };
        while let Some(delta) = deltas.pop() {
            match apply_delta(&content, &delta, if deltas.is_empty() { limit } else { MAX_OBJECT }) {
                Ok(Some(result)) => content = result,
                Ok(None) => return Ok(None),
                Err(()) => return Err(self.damaged()),
            }
        }
        Ok((content.len() <= limit).then_some((kind, content)))
    }

    fn entry(&self, offset: u64) -> Result<PackEntry, CannotTell> {
        /// A type and a size, then an offset or an id.
        const LONGEST: usize = 10 + 32;
        let mut head = [0; LONGEST];
        let length = self.file()?.read_at(&mut head, offset).map_err(|error| CannotTell::of(&self.path, error))?;
        let head = &head[..length];
        PackEntry::parse(head, offset, self.hash).ok_or_else(|| self.damaged())
    }

    fn inflate(&self, entry: &PackEntry) -> Result<Vec<u8>, CannotTell> {
        use miniz_oxide::inflate::{
            TINFLStatus,
            core::{DecompressorOxide, decompress, inflate_flags},
        };
        const AT_ONCE: usize = 64 * 1024;
        let mut content = vec![0; entry.size];
        let mut state = Box::new(DecompressorOxide::new());
        let mut buffer = vec![0; AT_ONCE.min(entry.size + entry.size / 8 + 64)];
        let (mut at, mut filled) = (entry.data, 0);
        // Each round consumes all of its input, and trailing data without output takes only a few bytes.
        for _ in 0..entry.size / buffer.len().max(1) * 2 + 64 {
            let read = self.file()?.read_at(&mut buffer, at).map_err(|error| CannotTell::of(&self.path, error))?;
            let flags = inflate_flags::TINFL_FLAG_PARSE_ZLIB_HEADER
                | inflate_flags::TINFL_FLAG_USING_NON_WRAPPING_OUTPUT_BUF
                | inflate_flags::TINFL_FLAG_HAS_MORE_INPUT;
            let (status, taken, written) = decompress(&mut state, &buffer[..read], &mut content, filled, flags);
            at += taken as u64;
            filled += written;
            match status {
                TINFLStatus::Done if filled == entry.size => return Ok(content),
                TINFLStatus::NeedsMoreInput if read > 0 => {}
                _ => break,
            }
        }
        Err(self.damaged())
    }
}

struct PackEntry {
    kind: EntryKind,
    size: usize,
    data: u64,
}

enum EntryKind {
    Whole(ObjectKind),
    DeltaOf(u64),
    DeltaOfObject(ObjectId),
}

impl PackEntry {
    fn parse(head: &[u8], offset: u64, hash: usize) -> Option<Self> {
        let mut bytes = head.iter();
        let first = *bytes.next()?;
        let (mut size, mut shift, mut more) = (u64::from(first & 0x0f), 4, first & 0x80 != 0);
        while more {
            let byte = *bytes.next()?;
            if shift > 56 {
                return None;
            }
            size |= u64::from(byte & 0x7f) << shift;
            shift += 7;
            more = byte & 0x80 != 0;
        }
        let kind = match (first >> 4) & 7 {
            1 => EntryKind::Whole(ObjectKind::Commit),
            2 => EntryKind::Whole(ObjectKind::Tree),
            3 => EntryKind::Whole(ObjectKind::Blob),
            4 => EntryKind::Whole(ObjectKind::Tag),
            6 => {
                let mut byte = *bytes.next()?;
                let mut back = u64::from(byte & 0x7f);
                while byte & 0x80 != 0 {
                    byte = *bytes.next()?;
                    back = back.checked_add(1)?.checked_mul(128)?.checked_add(u64::from(byte & 0x7f))?;
                }
                EntryKind::DeltaOf(offset.checked_sub(back).filter(|base| *base < offset)?)
            }
            7 => {
                let id = ObjectId::from_bytes(bytes.as_slice().get(..hash)?)?;
                bytes = bytes.as_slice()[hash..].iter();
                EntryKind::DeltaOfObject(id)
            }
            _ => return None,
        };
        let data = offset + (head.len() - bytes.as_slice().len()) as u64;
        Some(Self { kind, size: usize::try_from(size).ok()?, data })
    }
}

/// Applies a delta to its base; `None` if the result would be larger than `limit`.
fn apply_delta(base: &[u8], delta: &[u8], limit: usize) -> Result<Option<Vec<u8>>, ()> {
    let mut at = 0;
    let mut next = || -> Result<u8, ()> {
        at += 1;
        delta.get(at - 1).copied().ok_or(())
    };
    let mut size = || -> Result<u64, ()> {
        let (mut size, mut shift) = (0_u64, 0);
        loop {
            let byte = next()?;
            if shift > 56 {
                return Err(());
            }
            size |= u64::from(byte & 0x7f) << shift;
            shift += 7;
            if byte & 0x80 == 0 {
                return Ok(size);
            }
        }
    };
    if size()? != base.len() as u64 {
        return Err(());
    }
    let result_size = size()?;
    if result_size > limit as u64 {
        return Ok(None);
    }
    let mut rest = &delta[at..];
    let mut result = Vec::with_capacity(result_size as usize);
    while let Some(&command) = rest.split_off_first() {
        if command & 0x80 == 0 {
            // Zero is reserved.
            let added = rest.split_off(..usize::from(command)).filter(|_| command != 0).ok_or(())?;
            result.extend_from_slice(added);
        } else {
            let (mut from, mut length) = (0_usize, 0_usize);
            for bit in 0..7 {
                if command & (1 << bit) != 0 {
                    let &byte = rest.split_off_first().ok_or(())?;
                    match bit {
                        0..4 => from |= usize::from(byte) << (8 * bit),
                        _ => length |= usize::from(byte) << (8 * (bit - 4)),
                    }
                }
            }
            let length = if length == 0 { 0x10000 } else { length };
            result.extend_from_slice(base.get(from..from.checked_add(length).ok_or(())?).ok_or(())?);
        }
        if result.len() as u64 > result_size {
            return Err(());
        }
    }
    if result.len() as u64 == result_size { Ok(Some(result)) } else { Err(()) }
}
