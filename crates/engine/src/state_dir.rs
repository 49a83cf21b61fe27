//! Where the state of a work tree is kept, and how it is opened.
//!
//! State is believed: journals are carried out, views let edits pass. So it lives where a checkout cannot put anything, in
//! the git directory that all worktrees share or else in the user's own state directory, and it is used only if this user
//! made it and nobody else can reach it. Everything below is opened relative to a handle, without following links.
//!
//! The place depends on the owner and the file system alone, never on whether this process may write there: a command in a
//! sandbox and the hook beside it must not have two truths.

use std::{
    fs::File,
    io::{self, Read, Write},
    os::fd::AsFd,
    path::{Path, PathBuf},
    sync::Arc,
};

use rustix::{
    fs::{self as sys, Access, AtFlags, FileType, Mode, OFlags, RenameFlags, Stat},
    io::Errno,
};
use serde::{Deserialize, Serialize};
use surehand_core::ContentHash;

use crate::{
    git::{self, GitDirs, WorkTree},
    user::effective_user,
};

/// The directories of a user that matter for the state. The environment names them; this crate does not read it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StateHome {
    /// Holds all state, whatever else would be the place (`SUREHAND_STATE_DIR`).
    pub fixed: Option<PathBuf>,
    /// Holds the state of trees whose git directory cannot (`$XDG_STATE_HOME/surehand`).
    pub user: Option<PathBuf>,
    /// The home directory: it is a work tree only if somebody names it as one.
    pub home: Option<PathBuf>,
    /// The directory of the user's own settings, which no tool may write.
    pub settings: Option<PathBuf>,
}

/// Why the state of a work tree cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum StateDirError {
    /// The git directory cannot hold it, and no other place was given.
    #[error("there is no directory for the state: set SUREHAND_STATE_DIR to one that is yours alone")]
    NoPlace,
    /// It is there, or could be, and cannot be used.
    #[error("{path}: cannot use the state directory: {error}")]
    Unusable {
        /// The directory.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
}

/// A place that would have held the state, and why it does not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PassedOver {
    /// The directory.
    pub path: PathBuf,
    /// What is wrong with it.
    pub why: String,
}

/// The open state directory of a work tree.
#[derive(Debug, Clone)]
pub struct StateDir {
    path: PathBuf,
    checkout_path: PathBuf,
    dir: Arc<File>,
    checkout: Arc<File>,
    key: CheckoutKey,
    is_writable: bool,
    passed_over: Option<PassedOver>,
}

/// A random name for one checkout at one place. Rows of the store and journals carry it, so that what was written for another
/// tree, or by somebody who cannot read this directory, is not taken for this tree's.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CheckoutKey(String);

impl CheckoutKey {
    /// As it is written down.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    fn random() -> io::Result<Self> {
        let mut random = [0_u8; 16];
        rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty())?;
        Ok(Self(random.iter().map(|byte| format!("{byte:02x}")).collect()))
    }
}

/// Which tree a checkout directory belongs to. Kept in the file `root`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Identity {
    /// The format of everything in the directory.
    format: u32,
    path: PathBuf,
    device: u64,
    inode: u64,
    /// When the directory of the tree was made, where the system tells: an inode that is free is soon another's.
    #[serde(default)]
    born: i64,
    key: CheckoutKey,
}

/// The format that this program knows. Whoever meets a newer one touches nothing.
const FORMAT: u32 = 1;

/// The name of the state directory in a git directory.
const IN_GIT: &str = "surehand";
const CHECKOUTS: &str = "checkouts";
const IDENTITY: &str = "root";
const MAX_IDENTITY: u64 = 16 * 1024;
/// For everything that only its owner may look into.
const PRIVATE: u32 = 0o700;

impl StateDir {
    /// Opens the state of a work tree, and makes it if there is none.
    pub fn open(tree: &WorkTree, home: &StateHome) -> Result<Self, StateDirError> {
        let opened = Self::open_or_find(tree, home, Missing::Make)?.expect("it is made if it is missing");
        // One that cannot be written would only fail later.
        match opened.is_writable {
            true => Ok(opened),
            false => Err(StateDirError::Unusable {
                error: may_write(&opened.checkout).err().unwrap_or(Errno::ACCESS).into(),
                path: opened.path,
            }),
        }
    }

    /// Opens the state of a work tree to look at it; `None` where there is none. Makes nothing.
    pub fn find(tree: &WorkTree, home: &StateHome) -> Result<Option<Self>, StateDirError> {
        Self::open_or_find(tree, home, Missing::Leave)
    }

    fn open_or_find(tree: &WorkTree, home: &StateHome, missing: Missing) -> Result<Option<Self>, StateDirError> {
        let Some(place) = Place::of(tree, home, missing, None)? else { return Ok(None) };
        match place.open_checkout(tree, missing) {
            // Then this tree has its state elsewhere.
            Err(CheckoutError::OfAnotherTree(why)) => {
                let passed_over = PassedOver { path: place.path, why };
                let Some(place) = Place::of(tree, home, missing, Some(passed_over))? else { return Ok(None) };
                place.open_checkout(tree, missing).map_err(|error| place.unusable(error))
            }
            opened => opened.map_err(|error| place.unusable(error)),
        }
    }

    /// The directory that all checkouts of a repository share.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The part that belongs to this checkout.
    pub fn checkout_path(&self) -> &Path {
        &self.checkout_path
    }

    /// The directory that all checkouts share, open.
    pub fn dir(&self) -> &Arc<File> {
        &self.dir
    }

    /// The part that belongs to this checkout, open.
    pub fn checkout(&self) -> &Arc<File> {
        &self.checkout
    }

    /// The random name of this checkout.
    pub fn key(&self) -> &CheckoutKey {
        &self.key
    }

    /// Whether this process may change it.
    pub fn is_writable(&self) -> bool {
        self.is_writable
    }

    /// The place that comes first and could not be trusted.
    pub fn passed_over(&self) -> Option<&PassedOver> {
        self.passed_over.as_ref()
    }

    /// The database, checked to be a plain file of ours or not there: SQLite opens it by name. SQLite gives its other files the
    /// rights of this one, so it is made here.
    pub fn database(&self) -> io::Result<PathBuf> {
        if self.is_writable {
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            match sys::openat(&*self.dir, "state.db", flags, Mode::from_raw_mode(0o600)) {
                Ok(_) | Err(Errno::EXIST) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        for name in ["state.db", "state.db-wal", "state.db-shm"] {
            match sys::statat(&*self.dir, name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) if stat.st_nlink > 1 => {
                    return Err(io::Error::other(format!(
                        "{name} has several names (hard links); when nothing runs: cp {name} new && mv new {name}"
                    )));
                }
                Ok(stat) => check_file(&stat).map_err(|why| io::Error::other(format!("{name} {why}")))?,
                Err(Errno::NOENT) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        Ok(self.path.join("state.db"))
    }
}

/// What to do about a directory that is not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Missing {
    Make,
    Leave,
}

/// Why the state is not in the git directory.
enum GitPlace {
    /// It cannot be trusted there. If there is any, that is worth a word.
    PassedOver(Option<PassedOver>),
    /// It could be there, and the system said no.
    Failed(StateDirError),
}

/// Why the part of a checkout cannot be opened.
enum CheckoutError {
    /// Another tree, which is there, has it.
    OfAnotherTree(String),
    /// The system said no, or what is there is not ours.
    Failed(io::Error),
}

impl<E: Into<io::Error>> From<E> for CheckoutError {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}

/// The state that is in the git directory of a tree and is not used, with the reason.
pub fn passed_over(tree: &WorkTree, home: &StateHome) -> Option<PassedOver> {
    let git = tree.git.as_ref().filter(|_| home.fixed.is_none())?;
    match Place::in_git(git, Missing::Leave) {
        Err(GitPlace::PassedOver(place)) => place,
        Ok(_) | Err(GitPlace::Failed(_)) => None,
    }
}

/// The directory for a repository's state.
struct Place {
    path: PathBuf,
    dir: Arc<File>,
    /// The name of the checkout in it.
    checkout: String,
    passed_over: Option<PassedOver>,
}

impl Place {
    fn of(
        tree: &WorkTree,
        home: &StateHome,
        missing: Missing,
        mut passed_over: Option<PassedOver>,
    ) -> Result<Option<Self>, StateDirError> {
        if let Some(fixed) = &home.fixed {
            return Self::in_home(fixed, tree, missing, None);
        }
        if let (Some(git), None) = (&tree.git, &passed_over) {
            match Self::in_git(git, missing) {
                Ok(place) => return Ok(place),
                Err(GitPlace::PassedOver(place)) => passed_over = place,
                Err(GitPlace::Failed(error)) => return Err(error),
            }
        }
        match &home.user {
            Some(user) => Self::in_home(user, tree, missing, passed_over),
            None if missing == Missing::Leave => Ok(None),
            None => Err(StateDirError::NoPlace),
        }
    }

    fn unusable(&self, error: CheckoutError) -> StateDirError {
        let error = match error {
            CheckoutError::OfAnotherTree(why) => io::Error::other(why),
            CheckoutError::Failed(error) => error,
        };
        StateDirError::Unusable { path: self.path.clone(), error }
    }

    /// The state directory in a git directory.
    fn in_git(git: &GitDirs, missing: Missing) -> Result<Option<Self>, GitPlace> {
        let path = git.common.join(IN_GIT);
        let common = match open_if_it_can_hold_state(&git.common) {
            Ok(common) => common,
            // Where there is no state, there is nothing to say about it.
            Err(why) => return Err(GitPlace::PassedOver(path.symlink_metadata().is_ok().then_some(PassedOver { path, why }))),
        };
        match open_private(&common, IN_GIT, missing) {
            Ok(dir) => Ok(dir.map(|dir| Self { path, dir: Arc::new(dir), checkout: git.checkout.clone(), passed_over: None })),
            Err(Untrusted::Foreign(why)) => Err(GitPlace::PassedOver(Some(PassedOver { path, why }))),
            Err(Untrusted::Failed(error)) => Err(GitPlace::Failed(StateDirError::Unusable { path, error })),
        }
    }

    /// A directory named for the tree, in `roots/` of a directory of the user's.
    fn in_home(
        home: &Path,
        tree: &WorkTree,
        missing: Missing,
        passed_over: Option<PassedOver>,
    ) -> Result<Option<Self>, StateDirError> {
        let unusable = |error| StateDirError::Unusable { path: home.to_owned(), error };
        let foreign = |why: Untrusted| unusable(why.into());
        if missing == Missing::Make {
            make_path(home).map_err(unusable)?;
        }
        // Links on the way are the user's own; SQLite would refuse them.
        let home = match home.canonicalize() {
            Ok(home) => home,
            Err(error) if missing == Missing::Leave && error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(unusable(error)),
        };
        let path = home.join("roots").join(name_of(&tree.root));
        let mut dir = open_dir(rustix::fs::CWD, &home).map_err(|errno| unusable(errno.into()))?;
        let stat = sys::fstat(&dir).map_err(|errno| unusable(errno.into()))?;
        // Its mode does not matter: what is put there by others does not belong to us.
        if stat.st_uid != effective_user() {
            return Err(foreign(Untrusted::Foreign(foreign_owner(&stat))));
        }
        for name in ["roots", &name_of(&tree.root)] {
            match open_private(&dir, name, missing).map_err(foreign)? {
                Some(next) => dir = next,
                None => return Ok(None),
            }
        }
        Ok(Some(Self { path, dir: Arc::new(dir), checkout: "main".to_owned(), passed_over }))
    }

    /// Opens the part of this checkout, if it belongs to this very tree. What was left by another tree under the same name, or
    /// came along when a repository was copied, is moved aside and not touched again.
    fn open_checkout(&self, tree: &WorkTree, missing: Missing) -> Result<Option<StateDir>, CheckoutError> {
        let Some(checkouts) = open_private(&self.dir, CHECKOUTS, missing)? else { return Ok(None) };
        let here = identity_of(&tree.root)?;
        let known = match open_private(&checkouts, &self.checkout, missing)? {
            Some(checkout) => read_identity(&checkout)?.map(|known| (checkout, known)),
            None => None,
        };
        let (checkout, key) = match known {
            Some((checkout, known)) if known.is(&here) => {
                if !known.names(&here) && missing == Missing::Make {
                    // It was moved, or its disk has another number today. If this cannot be written, it is next time.
                    let _ = write_identity(&checkout, &Identity { key: known.key.clone(), ..here });
                }
                (checkout, known.key)
            }
            Some((_, known)) if missing == Missing::Leave && self.is_in_use_by(&known) => return Err(known.is_not(&here)),
            _ if missing == Missing::Leave => return Ok(None),
            _ => self.begin_checkout(&checkouts, here)?,
        };
        let is_writable = may_write(&checkout).is_ok();
        Ok(Some(StateDir {
            path: self.path.clone(),
            checkout_path: self.path.join(CHECKOUTS).join(&self.checkout),
            dir: self.dir.clone(),
            checkout: Arc::new(checkout),
            key,
            is_writable,
            passed_over: self.passed_over.clone(),
        }))
    }

    /// Whether the tree that a checkout belongs to is there, and has this very directory: then another tree must not take it away.
    fn is_in_use_by(&self, known: &Identity) -> bool {
        let is_there = identity_of(&known.path).is_ok_and(|now| known.is(&now));
        let git = is_there.then(|| git::discover(&known.path, None)).flatten().and_then(|tree| tree.git);
        git.is_some_and(|git| git::is_same_file(&git.common.join(IN_GIT), &self.path))
    }

    /// Gives a checkout its key. One process at a time: another could take the directory of the first for a foreign one.
    fn begin_checkout(&self, checkouts: &File, here: Identity) -> Result<(File, CheckoutKey), CheckoutError> {
        // A handle of its own, so that the lock goes with this function.
        let lock = open_dir(checkouts, ".")?;
        lock.lock()?;
        loop {
            let checkout = open_private(checkouts, &self.checkout, Missing::Make)?.expect("it is made if it is missing");
            match read_identity(&checkout)? {
                Some(known) if known.is(&here) => return Ok((checkout, known.key)),
                Some(known) if self.is_in_use_by(&known) => return Err(known.is_not(&here)),
                Some(_) => set_aside(checkouts, &self.checkout)?,
                None => {
                    let identity = Identity { key: CheckoutKey::random()?, ..here };
                    write_identity(&checkout, &identity)?;
                    // Recovery after a power cut finds its journals by this.
                    for dir in [&checkout, checkouts, &*self.dir] {
                        dir.sync_all()?;
                    }
                    return Ok((checkout, identity.key));
                }
            }
        }
    }
}

fn may_write(dir: &File) -> rustix::io::Result<()> {
    sys::accessat(dir, ".", Access::WRITE_OK | Access::EXEC_OK, AtFlags::EACCESS)
}

/// Whether state has been made for this directory in the user's own place: then it is the top of a workspace.
pub fn is_known_root(dir: &Path, home: &StateHome) -> bool {
    let bases = home.fixed.iter().chain(&home.user);
    bases.into_iter().any(|base| base.join("roots").join(name_of(dir)).join(CHECKOUTS).is_dir())
}

/// Opens a git directory if it is ours, on a file system of this machine, so that locks and shared memory work there, and where
/// nobody can put another in its place: SQLite opens its files by name.
///
/// The error says what stands against it.
fn open_if_it_can_hold_state(common: &Path) -> Result<File, String> {
    let dir = open_dir(rustix::fs::CWD, common).map_err(|errno| io::Error::from(errno).to_string())?;
    let stat = sys::fstat(&dir).map_err(|errno| io::Error::from(errno).to_string())?;
    match () {
        () if stat.st_uid != effective_user() => Err(foreign_owner(&stat)),
        () if !is_local(&dir) => Err("is on another machine".to_owned()),
        () => match common.ancestors().skip(1).find(|dir| !is_held_in_place(dir)) {
            Some(above) => Err(format!("could be replaced by others, who may rename what is in {}", above.display())),
            None => Ok(dir),
        },
    }
}

/// Whether a directory belongs to us or to root, and nobody else may rename what is in it. Our own group may: on many systems
/// every user is alone in one.
fn is_held_in_place(dir: &Path) -> bool {
    const STICKY: u32 = 0o1000;
    let Ok(stat) = sys::stat(dir) else { return false };
    let is_open_to_group = stat.st_mode & 0o020 != 0 && ![0, rustix::process::getegid().as_raw()].contains(&stat.st_gid);
    let is_open = stat.st_mode & STICKY == 0 && (stat.st_mode & 0o002 != 0 || is_open_to_group);
    (stat.st_uid == effective_user() || is_root(stat.st_uid)) && !is_open
}

/// Whether this is root. In a sandbox that knows only its own user, all others have one and the same number.
fn is_root(user: u32) -> bool {
    const NOBODY: u32 = 65_534;
    let knows_root = || {
        let map = std::fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
        map.is_empty() || map.lines().any(|line| line.split_whitespace().next() == Some("0"))
    };
    user == 0 || (user == NOBODY && user != effective_user() && !knows_root())
}

/// Whether no other machine serves this directory.
#[cfg(target_os = "linux")]
fn is_local(dir: &File) -> bool {
    // NFS, SMB (three kinds), AFS (two), Ceph, 9p, Coda, Lustre, GPFS.
    const REMOTE: [u64; 11] = [
        0x6969,
        0x517b,
        0xff53_4d42,
        0xfe53_4d42,
        0x5346_414f,
        0x6b41_4653,
        0x00c3_6400,
        0x0102_1997,
        0x7375_7245,
        0x0bd0_0bd0,
        0x4750_4653,
    ];
    sys::fstatfs(dir).is_ok_and(|system| !REMOTE.contains(&(system.f_type as u64 & 0xffff_ffff)))
}

#[cfg(not(target_os = "linux"))]
fn is_local(_: &File) -> bool {
    true
}

/// A name for a tree that people recognise and no other tree has.
fn name_of(root: &Path) -> String {
    use std::os::unix::ffi::OsStrExt;
    let plain = |byte: u8| if byte.is_ascii_alphanumeric() || b"-_.".contains(&byte) { char::from(byte) } else { '_' };
    let base: String =
        root.file_name().map(OsStrExt::as_bytes).unwrap_or(b"root").iter().take(40).map(|byte| plain(*byte)).collect();
    let hash = ContentHash::of(root.as_os_str().as_bytes()).to_string();
    format!("{base}-{}", &hash[..12])
}

/// Why a directory is not used.
enum Untrusted {
    /// It is not what we would have made.
    Foreign(String),
    /// The system said no.
    Failed(io::Error),
}

impl From<Errno> for Untrusted {
    fn from(errno: Errno) -> Self {
        Self::Failed(errno.into())
    }
}

impl From<Untrusted> for io::Error {
    fn from(untrusted: Untrusted) -> Self {
        match untrusted {
            Untrusted::Foreign(why) => Self::new(io::ErrorKind::PermissionDenied, why),
            Untrusted::Failed(error) => error,
        }
    }
}

/// Opens a directory that must be ours and closed to everybody else, or makes it.
fn open_private(parent: &File, name: &str, missing: Missing) -> Result<Option<File>, Untrusted> {
    let mut is_made = false;
    loop {
        match open_dir(parent, name) {
            Ok(dir) => {
                return match check_private(&sys::fstat(&dir)?) {
                    Ok(()) => Ok(Some(dir)),
                    Err(why) => {
                        if is_made {
                            // This file system gives rights that nobody asked for.
                            let _ = sys::unlinkat(parent, name, AtFlags::REMOVEDIR);
                        }
                        Err(Untrusted::Foreign(why))
                    }
                };
            }
            Err(Errno::NOENT) if missing == Missing::Leave => return Ok(None),
            Err(Errno::NOENT) if !is_made => match sys::mkdirat(parent, name, Mode::from_raw_mode(PRIVATE)) {
                Ok(()) | Err(Errno::EXIST) => is_made = true,
                Err(errno) => return Err(errno.into()),
            },
            Err(errno @ (Errno::LOOP | Errno::NOTDIR | Errno::ACCESS)) => {
                let what = sys::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW)?;
                let why = check_private(&what).err();
                return Err(why.map_or_else(|| errno.into(), Untrusted::Foreign));
            }
            Err(errno) => return Err(errno.into()),
        }
    }
}

pub(crate) fn open_dir(parent: impl AsFd, name: impl rustix::path::Arg) -> rustix::io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    sys::openat(parent, name, flags, Mode::empty()).map(File::from)
}

pub(crate) fn check_private(stat: &Stat) -> Result<(), String> {
    if FileType::from_raw_mode(stat.st_mode) != FileType::Directory {
        return Err("is not a directory".to_owned());
    }
    if stat.st_uid != effective_user() {
        return Err(foreign_owner(stat));
    }
    match stat.st_mode & 0o077 {
        0 => Ok(()),
        _ => Err(format!("gives rights to others (mode {:o})", stat.st_mode & 0o7777)),
    }
}

fn foreign_owner(stat: &Stat) -> String {
    format!("belongs to user {}, and you are user {}", stat.st_uid, effective_user())
}

/// A file of the state is a plain file of ours. Its mode does not matter: nobody else can enter the directory.
pub(crate) fn check_file(stat: &Stat) -> Result<(), &'static str> {
    match () {
        () if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile => Err("is not a regular file"),
        () if stat.st_uid != effective_user() => Err("belongs to another user"),
        () => Ok(()),
    }
}

/// Opens a file of the state to read it: one of ours, at most so large. [`Errno::NOENT`] where there is none.
pub(crate) fn open_file(dir: &File, name: &str, limit: u64) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = File::from(sys::openat(dir, name, flags, Mode::empty())?);
    let stat = sys::fstat(&file)?;
    check_file(&stat).map_err(|why| io::Error::other(format!("{name} {why}")))?;
    if u64::try_from(stat.st_size).unwrap_or_default() > limit {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("{name} is over {limit} bytes")));
    }
    Ok(file)
}

/// Makes a directory of the user's with those above it, like `mkdir -p`. Links on the way are the user's own.
fn make_path(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    std::fs::DirBuilder::new().recursive(true).mode(PRIVATE).create(path)
}

impl Identity {
    /// Whether it is the same tree: a directory keeps its inode when it is moved, and its path when a disk gets another number.
    fn is(&self, here: &Self) -> bool {
        let is_as_old = self.born == here.born || self.born == 0 || here.born == 0;
        self.inode == here.inode && is_as_old && (self.device == here.device || self.path == here.path)
    }

    /// Why the state of this tree is not that of another.
    fn is_not(&self, here: &Self) -> CheckoutError {
        CheckoutError::OfAnotherTree(format!("is the state of {}, not of {}", self.path.display(), here.path.display()))
    }

    /// Whether it is where it was.
    fn names(&self, here: &Self) -> bool {
        (&self.path, self.device) == (&here.path, here.device)
    }
}

fn identity_of(root: &Path) -> io::Result<Identity> {
    let stat = sys::stat(root)?;
    #[allow(clippy::unnecessary_cast, reason = "narrower on some systems")]
    let (device, inode) = (stat.st_dev as u64, stat.st_ino as u64);
    Ok(Identity { format: FORMAT, path: root.to_owned(), device, inode, born: born(root), key: CheckoutKey::default() })
}

/// When a file was made, in nanoseconds; 0 where nobody knows.
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

/// A file that cannot be understood is treated as another tree's. One that is empty was being written when the power went.
fn read_identity(checkout: &File) -> io::Result<Option<Identity>> {
    let key = CheckoutKey::default();
    let unknown = Identity { format: FORMAT, path: PathBuf::new(), device: 0, inode: 0, born: 0, key };
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
    if let Ok(Numbered { format }) = serde_json::from_str(&text)
        && format > FORMAT
    {
        let why = format!("written by a newer surehand (format {format}, this one knows {FORMAT}); update surehand");
        return Err(io::Error::new(io::ErrorKind::Unsupported, why));
    }
    let known = is_text.then(|| serde_json::from_str::<Identity>(&text).ok()).flatten();
    Ok(Some(known.filter(|known| known.key.as_str().len() == 32).unwrap_or(unknown)))
}

/// The one field that every format has.
#[derive(Deserialize)]
struct Numbered {
    format: u32,
}

/// Writes the file as a whole, and waits until it is on the disk: whoever reads it sees all of it.
fn write_identity(checkout: &File, identity: &Identity) -> io::Result<()> {
    let text = serde_json::to_vec(identity)?;
    let new = format!("{IDENTITY}.{}", CheckoutKey::random()?.as_str());
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut file = File::from(sys::openat(checkout, &new, flags, Mode::from_raw_mode(0o600))?);
    let written = file.write_all(&text).and_then(|()| file.sync_all());
    let put = written.and_then(|()| Ok(sys::renameat(checkout, &new, checkout, IDENTITY)?));
    if put.is_err() {
        let _ = sys::unlinkat(checkout, &new, AtFlags::empty());
    }
    put
}

/// Gives the directory of a checkout another name, that says when it went out of use.
fn set_aside(checkouts: &File, name: &str) -> io::Result<()> {
    let now = jiff::Timestamp::now().as_millisecond();
    for number in 0..100 {
        let old = format!("old-{}", now + number);
        match sys::renameat_with(checkouts, name, checkouts, &old, RenameFlags::NOREPLACE) {
            Err(Errno::EXIST) => {}
            Err(Errno::INVAL | Errno::NOSYS) => return Ok(sys::renameat(checkouts, name, checkouts, &old)?),
            Ok(()) | Err(Errno::NOENT) => return Ok(()),
            Err(errno) => return Err(errno.into()),
        }
    }
    Err(io::Error::other("no name is free"))
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests lay out directories")]
mod tests {
    use std::{
        fs,
        os::unix::fs::{MetadataExt, PermissionsExt, symlink},
    };

    use super::*;
    use crate::git;

    struct Fixture {
        dir: tempfile::TempDir,
        home: StateHome,
    }

    impl Fixture {
        /// A directory with the bones of a repository.
        fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            let home = StateHome { user: Some(dir.path().join("home/state/surehand")), ..StateHome::default() };
            let fixture = Self { dir, home };
            for part in ["repo/.git/objects", "repo/.git/refs", "plain"] {
                fs::create_dir_all(fixture.at(part)).unwrap();
            }
            fs::write(fixture.at("repo/.git/HEAD"), "ref: refs/heads/main\n").unwrap();
            fixture
        }

        fn at(&self, path: &str) -> PathBuf {
            self.dir.path().canonicalize().unwrap().join(path)
        }

        fn tree(&self, path: &str) -> WorkTree {
            let root = self.at(path);
            git::discover(&root, None).unwrap_or(WorkTree::without_git(root))
        }

        fn open(&self, path: &str) -> StateDir {
            StateDir::open(&self.tree(path), &self.home).unwrap()
        }
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().mode() & 0o7777
    }

    #[test]
    fn a_repository_holds_its_state_and_other_trees_are_in_the_users_directory() {
        let fixture = Fixture::new();
        assert!(StateDir::find(&fixture.tree("repo"), &fixture.home).unwrap().is_none());
        assert!(StateDir::find(&fixture.tree("plain"), &fixture.home).unwrap().is_none());
        assert!(!fixture.at("repo/.git/surehand").exists() && !fixture.at("home").exists(), "looking makes nothing");
        let repo = fixture.open("repo");
        assert_eq!(repo.checkout_path(), fixture.at("repo/.git/surehand/checkouts/main"));
        assert_eq!(mode(&fixture.at("repo/.git/surehand")), 0o700);
        let plain = fixture.open("plain");
        assert!(plain.path().starts_with(fixture.dir.path().join("home/state/surehand/roots")), "{plain:?}");
        assert!(plain.path().file_name().unwrap().to_str().unwrap().starts_with("plain-"));
        assert_eq!(mode(plain.path()), 0o700);
        assert_eq!(fixture.open("repo").key(), repo.key());
        assert_eq!(StateDir::find(&fixture.tree("plain"), &fixture.home).unwrap().unwrap().key(), plain.key());
        assert!(is_known_root(&fixture.at("plain"), &fixture.home) && !is_known_root(&fixture.at("repo"), &fixture.home));
    }

    #[test]
    fn a_state_directory_that_others_could_touch_is_passed_over_and_left_as_it_is() {
        let fixture = Fixture::new();
        let state = fixture.at("repo/.git/surehand");
        fs::create_dir(&state).unwrap();
        for shape in ["open", "link", "file"] {
            match shape {
                "open" => fs::set_permissions(&state, fs::Permissions::from_mode(0o755)).unwrap(),
                "link" => {
                    fs::remove_dir(&state).unwrap();
                    fs::create_dir(fixture.at("elsewhere")).unwrap();
                    symlink(fixture.at("elsewhere"), &state).unwrap();
                }
                _ => {
                    fs::remove_file(&state).unwrap();
                    fs::write(&state, "mine").unwrap();
                }
            }
            let opened = fixture.open("repo");
            assert!(opened.path().starts_with(fixture.dir.path().join("home")), "{shape}: {opened:?}");
            assert_eq!(opened.passed_over().unwrap().path, state, "{shape}");
        }
        assert_eq!(fs::read_to_string(&state).unwrap(), "mine");
        assert_eq!(fs::read_dir(fixture.at("elsewhere")).unwrap().count(), 0);
    }

    #[test]
    fn a_fixed_place_holds_everything() {
        let mut fixture = Fixture::new();
        fixture.home.fixed = Some(fixture.at("fixed"));
        assert!(fixture.open("repo").path().starts_with(fixture.at("fixed")));
        assert!(fixture.open("plain").path().starts_with(fixture.at("fixed")));
        assert!(!fixture.at("repo/.git/surehand").exists());
    }

    #[test]
    fn without_a_place_there_is_no_state() {
        let fixture = Fixture::new();
        let error = StateDir::open(&fixture.tree("plain"), &StateHome::default()).unwrap_err();
        assert!(matches!(error, StateDirError::NoPlace));
        assert!(StateDir::find(&fixture.tree("plain"), &StateHome::default()).unwrap().is_none());
    }

    #[test]
    fn what_another_tree_left_is_set_aside() {
        let fixture = Fixture::new();
        let first = fixture.open("repo");
        fs::write(first.checkout_path().join("journal"), "theirs").unwrap();
        // The same directory under another name goes on.
        fs::rename(fixture.at("repo"), fixture.at("moved")).unwrap();
        assert_eq!(fixture.open("moved").key(), first.key());
        // A copy does not.
        assert!(
            std::process::Command::new("cp")
                .arg("-a")
                .arg(fixture.at("moved"))
                .arg(fixture.at("copy"))
                .status()
                .unwrap()
                .success()
        );
        let copy = fixture.open("copy");
        assert_ne!(copy.key(), first.key());
        assert!(!copy.checkout_path().join("journal").exists());
        let names: Vec<String> = fs::read_dir(fixture.at("copy/.git/surehand/checkouts"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        assert!(names.iter().any(|name| name.starts_with("old-")), "{names:?}");
        assert!(fixture.at("moved/.git/surehand/checkouts/main/journal").exists());
    }

    #[test]
    fn an_identity_that_makes_no_sense_is_nobodys() {
        let fixture = Fixture::new();
        let key = fixture.open("repo").key().clone();
        for nonsense in [" ", "{}", "{\"path\":\"/\",\"device\":1,\"inode\":1,\"key\":\"\"}", &"x".repeat(20_000)] {
            fs::write(fixture.at("repo/.git/surehand/checkouts/main/root"), nonsense).unwrap();
            assert!(StateDir::find(&fixture.tree("repo"), &fixture.home).unwrap().is_none(), "{nonsense:.40}");
            assert_ne!(fixture.open("repo").key(), &key);
        }
    }

    #[test]
    fn what_a_newer_program_keeps_is_not_touched() {
        let fixture = Fixture::new();
        fixture.open("repo");
        let root = fixture.at("repo/.git/surehand/checkouts/main/root");
        fs::write(&root, "{\"format\":2,\"anything\":[]}").unwrap();
        let error = StateDir::open(&fixture.tree("repo"), &fixture.home).unwrap_err();
        assert!(error.to_string().contains("update surehand"), "{error}");
        assert!(StateDir::find(&fixture.tree("repo"), &fixture.home).is_err());
        assert_eq!(fs::read_to_string(&root).unwrap(), "{\"format\":2,\"anything\":[]}");
    }

    #[test]
    fn the_users_directory_may_be_behind_a_link() {
        let mut fixture = Fixture::new();
        fs::create_dir(fixture.at("real")).unwrap();
        symlink(fixture.at("real"), fixture.at("linked")).unwrap();
        fixture.home.user = Some(fixture.at("linked/state"));
        assert!(fixture.open("plain").path().starts_with(fixture.at("real/state/roots")));
        fixture.home.fixed = Some(fixture.at("linked"));
        assert!(fixture.open("repo").path().starts_with(fixture.at("real/roots")));
    }

    #[test]
    fn processes_that_meet_a_foreign_state_at_once_agree_on_a_key() {
        for _ in 0..20 {
            let fixture = Fixture::new();
            fixture.open("repo");
            fs::write(fixture.at("repo/.git/surehand/checkouts/main/root"), "another tree's").unwrap();
            check_that_all_agree(&fixture);
        }
    }

    #[test]
    fn processes_that_start_at_once_agree_on_a_key() {
        check_that_all_agree(&Fixture::new());
    }

    #[track_caller]
    fn check_that_all_agree(fixture: &Fixture) {
        let keys: Vec<CheckoutKey> = std::thread::scope(|scope| {
            let open = || scope.spawn(|| fixture.open("repo").key().clone());
            let threads: Vec<_> = (0..8).map(|_| open()).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(keys.iter().all(|key| *key == keys[0]), "{keys:?}");
    }

    #[test]
    fn a_database_that_is_a_link_is_not_opened() {
        let fixture = Fixture::new();
        let state = fixture.open("repo");
        assert_eq!(state.database().unwrap(), fixture.at("repo/.git/surehand/state.db"));
        assert_eq!(mode(&state.database().unwrap()), 0o600);
        fs::remove_file(state.database().unwrap()).unwrap();
        symlink(fixture.at("elsewhere.db"), state.path().join("state.db")).unwrap();
        assert!(state.database().is_err());
    }
}
