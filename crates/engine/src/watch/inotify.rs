//! Watches a directory tree through inotify, with one watch per directory. Events are read when a caller asks, on its
//! thread. So the queue has everything that happened before the call, and there is nothing to wait for. This is why no
//! crate is used: they read events on a thread of their own.
//!
//! A watch reports only what happens after it was added. So a directory is watched first and listed second, and a new
//! or moved directory is itself a hint, which the caller follows after the watches below it are in place. A moved
//! directory loses its watches and gets new ones; the hint covers what the old ones would still have reported. If
//! events were lost, the whole tree is watched again.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    ffi::CStr,
    mem::MaybeUninit,
    os::fd::{AsRawFd, OwnedFd},
    path::Path,
    sync::Arc,
};

use ignore::gitignore::Gitignore;
use rustix::{
    fs::{
        AtFlags, Dir, FileType, OFlags, Stat, fstat, fstatfs,
        inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags},
        statat,
    },
    io::Errno,
};
use surehand_core::RelPath;

use super::{
    PlacingProgress, WatchTrouble,
    ignored_dirs::{IgnoredDirs, RULES, read_rules},
    recent_paths::{MOST_PATHS, RecentPaths},
};
use crate::disk::root_dir::RootDir;

#[derive(Debug)]
pub(super) struct WatchedTree {
    root: RootDir,
    inotify: Arc<OwnedFd>,
    watched: HashMap<WatchId, WatchedDir>,
    /// Watches by path; the root's is empty.
    ids: BTreeMap<Arc<str>, WatchId>,
    to_place: Vec<(Arc<str>, WatchDepth)>,
    /// Devices with file systems that report every change.
    local_devices: Vec<u64>,
    ignored: IgnoredDirs,
    /// Ignored directories that must be watched, with their parents.
    wanted: BTreeSet<Arc<str>>,
    /// Directories that cannot be watched. Every answer includes them.
    unwatched: BTreeSet<RelPath>,
    /// Files that may change under another name. Every answer includes them.
    several_names: BTreeSet<RelPath>,
    recent: RecentPaths,
    most_directories: usize,
    begin_again: bool,
}

type WatchId = i32;

#[derive(Debug)]
struct WatchedDir {
    path: Arc<str>,
    reach: WatchDepth,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WatchDepth {
    Beneath,
    Itself,
}

/// Events for changes of a file or directory. `CLOSE_WRITE` also comes when a memory map is closed.
const CHANGES: WatchFlags = WatchFlags::MODIFY
    .union(WatchFlags::CLOSE_WRITE)
    .union(WatchFlags::ATTRIB)
    .union(WatchFlags::CREATE)
    .union(WatchFlags::DELETE)
    .union(WatchFlags::MOVE)
    .union(WatchFlags::ONLYDIR);
/// The root has no watched parent that would report its move.
const CHANGES_OF_ROOT: WatchFlags = CHANGES.union(WatchFlags::MOVE_SELF).union(WatchFlags::DELETE_SELF);

/// The maximum number of directories that are watched while a caller waits, which takes two or three milliseconds.
const MOST_AT_ONCE: usize = 128;
/// After this many events, there are more hints than are kept. A program that writes constantly must not block us
/// forever.
const MOST_EVENTS: usize = 65_536;

/// File systems that only this kernel changes. Others (NFS, SMB, FUSE, 9p) may be changed by another machine without an
/// event. The numbers are from `statfs(2)`.
const LOCAL: [u32; 11] = [
    0xEF53,      // ext2, ext3, ext4
    0x5846_5342, // XFS
    0x9123_683E, // Btrfs
    0x0102_1994, // tmpfs
    0x794C_7630, // overlayfs
    0xF2F5_2010, // F2FS
    0x2FC1_2FC1, // ZFS
    0xCA45_1A4E, // bcachefs
    0x4D44,      // FAT
    0x2011_BAB0, // exFAT
    0x7366_746E, // NTFS
];

const BUFFER: usize = 32 << 10;

/// The buffer holds at least this many events, whatever their names: an event has 16 bytes and a name of at most 256.
const FEW_EVENTS: usize = BUFFER / (16 + 256);

impl WatchedTree {
    pub(super) fn open(root: &Path, most_directories: usize) -> Result<Self, WatchTrouble> {
        let root = RootDir::open(root).map_err(|error| WatchTrouble::System { act: "open the workspace directory", error })?;
        let ignored = IgnoredDirs::new(root.path());
        Ok(Self {
            root,
            inotify: Arc::new(new_inotify()?),
            watched: HashMap::new(),
            ids: BTreeMap::new(),
            to_place: vec![("".into(), WatchDepth::Beneath)],
            local_devices: Vec::new(),
            ignored,
            wanted: BTreeSet::new(),
            unwatched: BTreeSet::new(),
            several_names: BTreeSet::new(),
            recent: RecentPaths::new(MOST_PATHS),
            most_directories: most_directories.min(fair_share().unwrap_or(usize::MAX)),
            begin_again: false,
        })
    }

    /// Adds all missing watches, or as many as possible before `stop`. All readers must then assume that everything has
    /// changed.
    pub(super) fn watch_all(&mut self, stop: impl Fn() -> bool) -> Result<(), WatchTrouble> {
        if self.begin_again {
            self.reset()?;
        }
        while !stop()
            && let Some((path, reach)) = self.to_place.pop()
        {
            self.watch_directory(&path, reach)?;
        }
        self.recent.forget_all();
        Ok(())
    }

    /// Reads the events so far, and watches new directories.
    pub(super) fn catch_up(&mut self) -> Result<PlacingProgress, WatchTrouble> {
        self.read_events()?;
        if self.begin_again {
            if self.watched.len() > MOST_AT_ONCE {
                return Ok(PlacingProgress::MoreToDo);
            }
            self.reset()?;
        }
        for _ in 0..MOST_AT_ONCE {
            let Some((path, reach)) = self.to_place.pop() else { return Ok(PlacingProgress::Done) };
            self.watch_directory(&path, reach)?;
        }
        Ok(if self.to_place.is_empty() { PlacingProgress::Done } else { PlacingProgress::MoreToDo })
    }

    /// The sorted paths since a reader's last call; `None` if they are no longer known.
    pub(super) fn since(&self, cursor: &mut u64) -> Option<Vec<RelPath>> {
        let mut paths = self.recent.since(cursor)?;
        paths.extend(self.unwatched.iter().chain(&self.several_names).cloned());
        paths.sort();
        paths.dedup();
        Some(paths)
    }

    /// Watches the directory of a file and its parents: moving one of them moves the file.
    pub(super) fn watch_path(&mut self, path: &RelPath) -> Result<(), WatchTrouble> {
        if has_several_names(&self.root, path) {
            self.several_names.insert(path.clone());
        }
        let above = std::iter::successors(path.parent(), RelPath::parent);
        let missing: Vec<RelPath> = above.take_while(|dir| !self.ids.contains_key(dir.as_str())).collect();
        let Some(outermost) = missing.last() else { return Ok(()) };
        self.to_place.push((outermost.as_str().into(), WatchDepth::Itself));
        self.wanted.extend(missing.iter().map(|dir| dir.as_str().into()));
        while let Some((path, reach)) = self.to_place.pop() {
            self.watch_directory(&path, reach)?;
        }
        // They may have changed after the file was read and before they were watched.
        missing.into_iter().for_each(|dir| self.recent.note(dir));
        Ok(())
    }

    /// Drops all watches to start again at the root. The descriptor is kept, because closing it takes the kernel 10 ms
    /// or more.
    fn reset(&mut self) -> Result<(), WatchTrouble> {
        for id in std::mem::take(&mut self.watched).into_keys() {
            self.remove_watch(id);
        }
        self.ids.clear();
        // Every removed watch sends an event. Too many would overflow the queue and start everything again.
        self.read_events()?;
        self.begin_again = false;
        self.ignored = IgnoredDirs::new(self.root.path());
        self.local_devices.clear();
        self.unwatched.clear();
        self.to_place = vec![("".into(), WatchDepth::Beneath)];
        self.recent.forget_all();
        Ok(())
    }

    /// Watches one directory and queues its subdirectories.
    fn watch_directory(&mut self, path: &Arc<str>, reach: WatchDepth) -> Result<(), WatchTrouble> {
        let at = if path.is_empty() { "." } else { path };
        let dir = match self.root.open_at(at, OFlags::RDONLY | OFlags::DIRECTORY) {
            Ok(dir) => dir,
            // It is gone, something else is in its place, or no path in it is valid.
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::NAMETOOLONG) if !path.is_empty() => return Ok(()),
            Err(Errno::MFILE | Errno::NFILE) => return Err(WatchTrouble::NoWatcherLeft),
            Err(errno) => return self.give_up(path, system_error("open a directory", errno)),
        };
        if !self.is_local(&dir) {
            return self.give_up(path, WatchTrouble::NotLocal);
        }
        match self.add_watch(path, &dir) {
            Ok(id) => self.register_watch(id, path, reach),
            Err(Errno::NOSPC) => return Err(WatchTrouble::NoWatchLeft),
            Err(errno) => return self.give_up(path, system_error("watch a directory", errno)),
        }
        if self.watched.len() > self.most_directories {
            return Err(WatchTrouble::TooManyDirectories { limit: self.most_directories });
        }
        match reach {
            WatchDepth::Beneath => self.list(path, dir),
            WatchDepth::Itself => {
                self.list_wanted(path);
                Ok(())
            }
        }
    }

    /// Adds a directory that cannot be watched to every answer. Without the root, there is no answer.
    fn give_up(&mut self, path: &str, trouble: WatchTrouble) -> Result<(), WatchTrouble> {
        let path = RelPath::new(path).map_err(|_| trouble)?;
        self.unwatched.insert(path);
        Ok(())
    }

    fn is_local(&mut self, dir: &OwnedFd) -> bool {
        let Ok(Stat { st_dev: device, .. }) = fstat(dir) else { return false };
        if self.local_devices.contains(&device) {
            return true;
        }
        // The field has another width on other processors; the numbers have 32 bits.
        let is_local = fstatfs(dir).is_ok_and(|system| LOCAL.contains(&(system.f_type as u32)));
        if is_local {
            self.local_devices.push(device);
        }
        is_local
    }

    /// Adds a watch through the directory's handle, so that the watched directory is the one that is listed, even if
    /// the root was moved.
    fn add_watch(&self, path: &str, dir: &OwnedFd) -> rustix::io::Result<WatchId> {
        let changes = if path.is_empty() { CHANGES_OF_ROOT } else { CHANGES };
        inotify::add_watch(&*self.inotify, format!("/proc/self/fd/{}", dir.as_raw_fd()), changes)
    }

    fn register_watch(&mut self, id: WatchId, path: &Arc<str>, reach: WatchDepth) {
        let before = self.watched.insert(id, WatchedDir { path: path.clone(), reach });
        if let Some(before) = before.filter(|before| before.path != *path) {
            // One directory has two paths: it was moved, which we are about to read, or it is mounted twice. Its events
            // only come under the new path.
            self.ids.remove(&before.path);
            self.unwatched.extend(RelPath::new(&before.path));
        }
        let other = self.ids.insert(path.clone(), id).filter(|other| *other != id);
        if let Some(other) = other {
            self.remove_watch(other);
        }
    }

    fn list(&mut self, path: &Arc<str>, dir: OwnedFd) -> Result<(), WatchTrouble> {
        let listed = match list(dir) {
            Ok(listed) => listed,
            Err(errno) => return self.give_up(path, system_error("list a directory", errno)),
        };
        self.ignored.set(path, listed.rules);
        for name in listed.directories {
            let path = join(path, &name);
            self.to_place.extend(self.reach_of(&path, WatchDepth::Beneath).map(|reach| (path, reach)));
        }
        Ok(())
    }

    fn list_wanted(&mut self, dir: &str) {
        let in_dir = self.wanted.iter().filter(|path| parent(path) == Some(dir));
        self.to_place.extend(in_dir.map(|path| (path.clone(), WatchDepth::Itself)));
    }

    /// How a directory must be watched, given the reach of its parent; `None` if it need not be.
    fn reach_of(&self, path: &str, reach_of_parent: WatchDepth) -> Option<WatchDepth> {
        if reach_of_parent == WatchDepth::Beneath && !self.ignored.is_ignored(path) {
            return Some(WatchDepth::Beneath);
        }
        self.wanted.contains(path).then_some(WatchDepth::Itself)
    }

    fn read_events(&mut self) -> Result<(), WatchTrouble> {
        let mut buffer = [MaybeUninit::uninit(); BUFFER];
        let mut reader = Reader::new(self.inotify.clone(), &mut buffer);
        let mut count = 0;
        loop {
            // Events in the buffer are gone from the queue, so they must be processed.
            if count > MOST_EVENTS && reader.is_buffer_empty() {
                self.recent.forget_all();
                break;
            }
            match reader.next() {
                Ok(event) => self.take_in(&event)?,
                Err(Errno::AGAIN) => break,
                Err(Errno::INTR) => {}
                Err(errno) => return Err(system_error("read what has changed", errno)),
            }
            count += 1;
            // The system returns as many events as fit, and so few always fit.
            if count < FEW_EVENTS && reader.is_buffer_empty() {
                break;
            }
        }
        // We hold the root open, and the removal of an open directory is not reported.
        let is_gone = count > 0 && fstat(self.root.dir()).is_ok_and(|stat| stat.st_nlink == 0);
        if is_gone { Err(WatchTrouble::RootGone) } else { Ok(()) }
    }

    fn take_in(&mut self, event: &inotify::Event<'_>) -> Result<(), WatchTrouble> {
        let flags = event.events();
        if flags.contains(ReadFlags::QUEUE_OVERFLOW) {
            self.begin_again = true;
            return Ok(());
        }
        // The watch was removed. The hint at that time covers its events.
        let Some(WatchedDir { path, reach }) = self.watched.get(&event.wd()) else { return Ok(()) };
        let (path, reach) = (path.clone(), *reach);
        match event.file_name() {
            Some(name) => self.take_in_entry(&path, reach, name, flags),
            None if path.is_empty() => return self.take_in_root(flags),
            // The parent reports other events of a directory itself.
            None if flags.intersects(ReadFlags::IGNORED | ReadFlags::UNMOUNT) => self.take_in_lost(path, reach),
            None => {}
        }
        Ok(())
    }

    fn take_in_entry(&mut self, dir: &str, reach: WatchDepth, name: &CStr, flags: ReadFlags) {
        // A file whose name is not UTF-8 cannot have been read.
        let Ok(name) = name.to_str() else { return };
        let path = join(dir, name);
        if flags.contains(ReadFlags::ISDIR) {
            self.unwatch_beneath(&path);
            let exists = flags.intersects(ReadFlags::CREATE | ReadFlags::MOVED_TO | ReadFlags::ATTRIB);
            let reach = self.reach_of(&path, reach).filter(|_| exists);
            self.to_place.extend(reach.map(|reach| (path.clone(), reach)));
        } else if name == RULES && reach == WatchDepth::Beneath {
            self.begin_again = true;
        }
        if let Ok(path) = RelPath::new(&path) {
            self.recent.note(path);
        }
    }

    fn take_in_root(&mut self, flags: ReadFlags) -> Result<(), WatchTrouble> {
        let gone = ReadFlags::MOVE_SELF | ReadFlags::DELETE_SELF | ReadFlags::IGNORED | ReadFlags::UNMOUNT;
        if flags.intersects(gone) {
            return Err(WatchTrouble::RootGone);
        }
        self.recent.forget_all();
        Ok(())
    }

    /// Handles a watch that the kernel removed, because the directory was removed or its file system unmounted.
    fn take_in_lost(&mut self, path: Arc<str>, reach: WatchDepth) {
        self.unwatch_beneath(&path);
        self.recent.note(RelPath::new(&path).expect("it was opened by this name and is not the root"));
        self.to_place.push((path, reach));
    }

    /// Removes the watches on a directory and everything below it.
    fn unwatch_beneath(&mut self, path: &Arc<str>) {
        let beneath: Arc<str> = format!("{path}/").into();
        let mut left: Vec<Arc<str>> = self
            .ids
            .range(beneath.clone()..)
            .map(|(path, _)| path.clone())
            .take_while(|path| path.starts_with(&*beneath))
            .collect();
        left.push(path.clone());
        for path in &left {
            if let Some(id) = self.ids.remove(path) {
                self.remove_watch(id);
            }
        }
        self.unwatched.retain(|dir| dir.as_str() != &**path && !dir.as_str().starts_with(&*beneath));
    }

    fn remove_watch(&mut self, id: WatchId) {
        self.watched.remove(&id);
        // This fails if the kernel was faster.
        let _ = inotify::remove_watch(&*self.inotify, id);
    }
}

fn new_inotify() -> Result<OwnedFd, WatchTrouble> {
    inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).map_err(|errno| match errno {
        Errno::MFILE | Errno::NFILE => WatchTrouble::NoWatcherLeft,
        errno => system_error("watch files", errno),
    })
}

/// Half of the user's watches, because editors need some too.
fn fair_share() -> Option<usize> {
    let limit = std::fs::read_to_string("/proc/sys/fs/inotify/max_user_watches").ok()?;
    Some(limit.trim().parse::<usize>().ok()? / 2)
}

fn has_several_names(root: &RootDir, path: &RelPath) -> bool {
    statat(root.dir(), path.as_str(), AtFlags::SYMLINK_NOFOLLOW).is_ok_and(|stat| stat.st_nlink > 1)
}

struct ListedDir {
    directories: Vec<String>,
    rules: Option<Gitignore>,
}

fn list(dir: OwnedFd) -> rustix::io::Result<ListedDir> {
    let mut dir = Dir::new(dir)?;
    let mut listed = ListedDir { directories: Vec::new(), rules: None };
    let mut has_rules = false;
    while let Some(entry) = dir.read() {
        let entry = entry?;
        // A file whose name is not UTF-8 cannot have been read.
        let Ok(name) = entry.file_name().to_str() else { continue };
        match entry.file_type() {
            // Some file systems do not report the type. If it is not a directory, opening it will fail.
            FileType::Directory | FileType::Unknown if !matches!(name, "." | "..") => listed.directories.push(name.to_owned()),
            _ => {}
        }
        has_rules |= name == RULES;
    }
    if has_rules {
        listed.rules = read_rules(dir.fd()?, RULES);
    }
    Ok(listed)
}

fn join(dir: &str, name: &str) -> Arc<str> {
    if dir.is_empty() { name.into() } else { format!("{dir}/{name}").into() }
}

/// The parent directory; `None` for the root.
fn parent(path: &str) -> Option<&str> {
    if path.is_empty() { None } else { Some(path.rsplit_once('/').map_or("", |(parent, _)| parent)) }
}

fn system_error(act: &'static str, errno: Errno) -> WatchTrouble {
    WatchTrouble::System { act, error: errno.into() }
}
