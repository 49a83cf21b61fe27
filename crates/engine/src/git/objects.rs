//! Git's object database: loose objects, packs, and the databases in `info/alternates`.
//!
//! Like git, this trusts the hashes in the database of a repository. Sizes are bounded, whatever an object claims.

use std::{
    cell::{OnceCell, RefCell},
    collections::HashSet,
    fmt, fs,
    io::Read,
    path::{Path, PathBuf},
};

use super::{CannotTell, pack::Pack, work_tree::read_small};

/// An object id: 20 bytes or, in repositories with the format `sha256`, 32.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct ObjectId {
    length: u8,
    bytes: [u8; 32],
}

impl ObjectId {
    /// From 20 or 32 bytes.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        if !matches!(bytes.len(), 20 | 32) {
            return None;
        }
        let mut id = Self { length: bytes.len() as u8, bytes: [0; 32] };
        id.bytes[..bytes.len()].copy_from_slice(bytes);
        Some(id)
    }

    /// From 40 or 64 hexadecimal digits.
    pub(crate) fn from_hex(hex: &str) -> Option<Self> {
        if !matches!(hex.len(), 40 | 64) || !hex.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        let digits = hex.as_bytes().chunks(2).map(|pair| u8::from_str_radix(str::from_utf8(pair).ok()?, 16).ok());
        Self::from_bytes(&digits.collect::<Option<Vec<u8>>>()?)
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }
}

impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_bytes().iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ObjectKind {
    Commit,
    Tree,
    Blob,
    Tag,
}

impl ObjectKind {
    fn named(name: &[u8]) -> Option<Self> {
        Some(match name {
            b"commit" => Self::Commit,
            b"tree" => Self::Tree,
            b"blob" => Self::Blob,
            b"tag" => Self::Tag,
            _ => return None,
        })
    }
}

pub(crate) type GitObject = (ObjectKind, Vec<u8>);

/// A larger object is not read.
pub(crate) const MAX_OBJECT: usize = 1 << 30;

/// The maximum number of linked databases.
const MOST_DATABASES: usize = 32;

/// A longer list of alternates is not read.
const MAX_ALTERNATES: u64 = 64 * 1024;

pub(crate) struct Objects {
    databases: Vec<PathBuf>,
    packs: OnceCell<Vec<Pack>>,
    /// The pack that had the last object, which usually has the next one too.
    last: RefCell<usize>,
}

impl Objects {
    /// The objects of the repository with this common git directory.
    pub(crate) fn of(common: &Path) -> Self {
        Self { databases: databases(common.join("objects")), packs: OnceCell::new(), last: RefCell::new(0) }
    }

    /// The kind and content of an object; `None` if it does not exist or is larger than `limit`.
    pub(crate) fn read(&self, id: &ObjectId, limit: usize) -> Result<Option<GitObject>, CannotTell> {
        let limit = limit.min(MAX_OBJECT);
        if let Some(found) = self.read_packed(id, limit)? {
            return Ok(found);
        }
        for database in &self.databases {
            if let Some(found) = read_loose(database, id, limit)? {
                return Ok(found);
            }
        }
        Ok(None)
    }

    /// The content of a blob; `None` if it does not exist or is larger than `limit`.
    pub(crate) fn blob(&self, id: &ObjectId, limit: usize) -> Result<Option<Vec<u8>>, CannotTell> {
        Ok(self.read(id, limit)?.filter(|(kind, _)| *kind == ObjectKind::Blob).map(|(_, content)| content))
    }

    /// Reads from a pack. The inner `None` means that the object is too large.
    fn read_packed(&self, id: &ObjectId, limit: usize) -> Result<Option<Option<GitObject>>, CannotTell> {
        let packs = self.packs.get_or_init(|| self.databases.iter().flat_map(|database| Pack::all_in(database)).collect());
        let last = *self.last.borrow();
        let order = (last..packs.len()).chain(0..last.min(packs.len()));
        for nth in order {
            let Some(offset) = packs[nth].find(id)? else { continue };
            *self.last.borrow_mut() = nth;
            let of_base = |base: &ObjectId| self.read(base, limit);
            return packs[nth].read(offset, limit, &of_base).map(Some);
        }
        Ok(None)
    }
}

/// A database with all that it links to, directly or indirectly.
fn databases(first: PathBuf) -> Vec<PathBuf> {
    let mut found = vec![first];
    let mut known: HashSet<PathBuf> = found.iter().cloned().collect();
    let mut next = 0;
    while let Some(database) = found.get(next).cloned() {
        next += 1;
        let list = read_small(&database.join("info/alternates"), MAX_ALTERNATES).unwrap_or_default();
        let names = list.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
        for alternate in names.filter_map(|name| database.join(name).canonicalize().ok()) {
            if found.len() < MOST_DATABASES && known.insert(alternate.clone()) {
                found.push(alternate);
            }
        }
    }
    found
}

fn read_loose(database: &Path, id: &ObjectId, limit: usize) -> Result<Option<Option<GitObject>>, CannotTell> {
    /// The kind, a number, and the separators.
    const LONGEST_HEADER: usize = 32;
    let hex = id.to_string();
    let path = database.join(&hex[..2]).join(&hex[2..]);
    let Ok(file) = fs::File::open(&path) else { return Ok(None) };
    let bad = || CannotTell::of(&path, "this is not an object of git");
    let size = file.metadata().ok().filter(fs::Metadata::is_file).ok_or_else(bad)?.len();
    // Incompressible data becomes slightly longer.
    if size > limit as u64 + limit as u64 / 8 + 1024 {
        return Ok(Some(None));
    }
    let mut packed = Vec::with_capacity(size as usize);
    file.take(size).read_to_end(&mut packed).map_err(|error| CannotTell::of(&path, error))?;
    let (kind, length, header) = {
        let mut beginning = [0; LONGEST_HEADER];
        inflate_beginning(&packed, &mut beginning);
        let header = memchr::memchr(0, &beginning).ok_or_else(bad)?;
        let space = memchr::memchr(b' ', &beginning[..header]).ok_or_else(bad)?;
        let length = str::from_utf8(&beginning[space + 1..header]).ok().and_then(|length| length.parse::<usize>().ok());
        (ObjectKind::named(&beginning[..space]).ok_or_else(bad)?, length.ok_or_else(bad)?, header + 1)
    };
    if length > limit {
        return Ok(Some(None));
    }
    let mut content = miniz_oxide::inflate::decompress_to_vec_zlib_with_limit(&packed, header + length).map_err(|_| bad())?;
    if content.len() != header + length {
        return Err(bad());
    }
    content.drain(..header);
    Ok(Some(Some((kind, content))))
}

/// Decompresses as much as fits into `room`.
fn inflate_beginning(packed: &[u8], room: &mut [u8]) {
    use miniz_oxide::inflate::core::{DecompressorOxide, decompress, inflate_flags};
    let flags = inflate_flags::TINFL_FLAG_PARSE_ZLIB_HEADER | inflate_flags::TINFL_FLAG_USING_NON_WRAPPING_OUTPUT_BUF;
    decompress(&mut DecompressorOxide::new(), packed, room, 0, flags);
}
