//! The file `root` of a checkout: the tree that its state belongs to, and the key that binds records and journals to
//! it.

use std::{
    fs::File,
    io::{self, Read, Write},
    path::{Path, PathBuf},
};

use rustix::fs::{self as sys, AtFlags, Mode, OFlags};
use serde::{Deserialize, Serialize};

use super::{CheckoutError, permissions::open_file};

/// A random key for one checkout at one place. Records and journals carry it, so that those of another tree, or of a
/// user who cannot read this directory, are not mistaken for this tree's.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct CheckoutKey(String);

impl CheckoutKey {
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    pub(super) fn random() -> io::Result<Self> {
        let mut random = [0_u8; 16];
        rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty())?;
        Ok(Self(random.iter().map(|byte| format!("{byte:02x}")).collect()))
    }
}

/// Which tree a checkout directory belongs to. Kept in the file `root`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct TreeIdentity {
    format: u32,
    pub path: PathBuf,
    device: u64,
    inode: u64,
    /// The birth time of the tree's directory in nanoseconds; 0 if unknown. It is needed because a freed inode is soon
    /// reused.
    #[serde(default)]
    born: i64,
    pub key: CheckoutKey,
}

/// The format that this program knows. A newer one is left untouched.
const FORMAT: u32 = 1;

const IDENTITY: &str = "root";
const MAX_IDENTITY: u64 = 16 * 1024;

impl TreeIdentity {
    /// Whether it is the same tree: a directory keeps its inode when it is moved, and its path when a disk gets another
    /// number.
    pub(super) fn is_same_tree(&self, here: &Self) -> bool {
        let is_as_old = self.born == here.born || self.born == 0 || here.born == 0;
        self.inode == here.inode && is_as_old && (self.device == here.device || self.path == here.path)
    }

    /// The error if the state belongs to this tree, and not to the tree `here`.
    pub(super) fn is_not(&self, here: &Self) -> CheckoutError {
        CheckoutError::OfAnotherTree(format!("is the state of {}, not of {}", self.path.display(), here.path.display()))
    }

    pub(super) fn with_key(self, key: CheckoutKey) -> Self {
        Self { key, ..self }
    }

    pub(super) fn is_at_same_place(&self, here: &Self) -> bool {
        (&self.path, self.device) == (&here.path, here.device)
    }
}

pub(super) fn identity_of(root: &Path) -> io::Result<TreeIdentity> {
    let stat = sys::stat(root)?;
    #[allow(clippy::unnecessary_cast, reason = "narrower on some systems")]
    let (device, inode) = (stat.st_dev as u64, stat.st_ino as u64);
    Ok(TreeIdentity { format: FORMAT, path: root.to_owned(), device, inode, born: born(root), key: CheckoutKey::default() })
}

/// The birth time of a file in nanoseconds since the Unix epoch; 0 if unknown.
#[cfg(target_os = "linux")]
fn born(path: &Path) -> i64 {
    use rustix::fs::StatxFlags;
    let stat = sys::statx(rustix::fs::CWD, path, AtFlags::empty(), StatxFlags::BTIME);
    let known = stat.ok().filter(|stat| stat.stx_mask & StatxFlags::BTIME.bits() != 0);
    known.map_or(0, |stat| stat.stx_btime.tv_sec.saturating_mul(1_000_000_000).saturating_add(i64::from(stat.stx_btime.tv_nsec)))
}

#[cfg(not(target_os = "linux"))]
fn born(_: &Path) -> i64 {
    0
}

/// A file that cannot be parsed counts as another tree's. An empty one was being written when the power failed.
pub(super) fn read_identity(checkout: &File) -> io::Result<Option<TreeIdentity>> {
    let key = CheckoutKey::default();
    let unknown = TreeIdentity { format: FORMAT, path: PathBuf::new(), device: 0, inode: 0, born: 0, key };
    let file = match open_file(checkout, IDENTITY, MAX_IDENTITY) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(_) => return Ok(Some(unknown)),
    };
    let mut text = String::with_capacity(256);
    let is_text = file.take(MAX_IDENTITY).read_to_string(&mut text).is_ok();
    if is_text && text.is_empty() {
        return Ok(None);
    }
    if let Ok(FormatNumber { format }) = serde_json::from_str(&text)
        && format > FORMAT
    {
        let why = format!("written by a newer surehand (format {format}, this one knows {FORMAT}); update surehand");
        return Err(io::Error::new(io::ErrorKind::Unsupported, why));
    }
    let known = is_text.then(|| serde_json::from_str::<TreeIdentity>(&text).ok()).flatten();
    Ok(Some(known.filter(|known| known.key.as_str().len() == 32).unwrap_or(unknown)))
}

#[derive(Deserialize)]
struct FormatNumber {
    format: u32,
}

/// Writes the file atomically. Does not sync it.
pub(super) fn write_identity(checkout: &File, identity: &TreeIdentity) -> io::Result<()> {
    write_file(checkout, IDENTITY, &serde_json::to_vec(identity)?, IfThere::Replace)
}

/// What to do if the file exists already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IfThere {
    Replace,
    /// Fails with the kind `AlreadyExists`.
    Keep,
}

/// Writes a small file of the state atomically. Does not sync it.
pub(crate) fn write_file(dir: &File, name: &str, content: &[u8], if_there: IfThere) -> io::Result<()> {
    let new = format!("{name}.{}", CheckoutKey::random()?.as_str());
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut file = File::from(sys::openat(dir, &new, flags, Mode::from_raw_mode(0o600))?);
    let place = || match if_there {
        IfThere::Replace => sys::renameat(dir, &new, dir, name),
        IfThere::Keep => sys::linkat(dir, &new, dir, name, AtFlags::empty()),
    };
    let put = file.write_all(content).and_then(|()| Ok(place()?));
    if put.is_err() || if_there == IfThere::Keep {
        let _ = sys::unlinkat(dir, &new, AtFlags::empty());
    }
    put
}

/// Waits until the file is on disk.
pub(super) fn sync_identity(checkout: &File) -> io::Result<()> {
    open_file(checkout, IDENTITY, MAX_IDENTITY)?.sync_all()?;
    checkout.sync_all()
}
