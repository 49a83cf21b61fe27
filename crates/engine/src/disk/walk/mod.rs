//! Walks a tree on several threads: every file below a directory of the workspace that no rule ignores.
//!
//! ripgrep's own walk opens directories by path, so a symlink that is swapped in during the walk could lead it outside.
//! This one opens each directory relative to its parent and follows no symlink. It gives names and kinds; a visitor
//! decides what to do with a file.

mod ignore_rules;
mod recheck;
mod work_queue;

use std::{
    ffi::{CStr, CString},
    io,
    os::fd::{AsFd, OwnedFd},
    sync::{Arc, OnceLock},
};

use ignore::overrides::{Override, OverrideBuilder};
use rustix::{
    fs::{self as sys, AtFlags, FileType, Mode, OFlags, Stat},
    io::Errno,
    path::Arg,
};
use surehand_core::{
    Cause, Refusal, RelPath,
    outcome::{SearchArea, SkippedFiles},
};

use super::{
    export_dir::is_internal,
    read_file::{kind_of, open_patiently},
    root_dir::{RootDir, refuse_io},
};
use crate::call_progress::CallProgress;
use ignore_rules::IgnoreRules;
pub(crate) use ignore_rules::rules_in;
pub(crate) use recheck::{FileRecheck, RecheckResult};
use work_queue::WorkQueue;

/// Receives everything that a walk finds. Each thread has its own visitor.
pub(crate) trait WalkVisitor: Send {
    /// Visits an entry. A directory comes before its entries.
    fn visit(&mut self, entry: &WalkEntry<'_>);

    /// Visits an ignored entry. The entries of an ignored directory are not visited.
    fn visit_ignored(&mut self, _entry: &WalkEntry<'_>) {}

    /// Whether the walk skips repositories inside the workspace.
    fn passes_over_repositories(&self) -> bool {
        false
    }
}

#[derive(Default)]
pub(crate) struct FilePaths(pub Vec<RelPath>);

impl WalkVisitor for FilePaths {
    fn visit(&mut self, entry: &WalkEntry<'_>) {
        if entry.kind == EntryKind::File {
            self.0.push(entry.rel_path());
        }
    }
}

#[derive(Debug)]
pub(crate) struct WalkEntry<'a> {
    pub path: &'a str,
    pub kind: EntryKind,
    dir: &'a OwnedFd,
    name: &'a CStr,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EntryKind {
    File,
    Dir,
    /// A symlink, which is not followed.
    Link,
    Special,
}

impl EntryKind {
    fn of(kind: FileType) -> Self {
        match kind {
            FileType::RegularFile => EntryKind::File,
            FileType::Directory => EntryKind::Dir,
            FileType::Symlink => EntryKind::Link,
            _ => EntryKind::Special,
        }
    }
}

impl WalkEntry<'_> {
    /// The status of a file, without opening it; `None` if it is not a regular file any more.
    pub(crate) fn stat(&self) -> rustix::io::Result<Option<Stat>> {
        match sys::statat(self.dir, self.name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => Ok(None),
            stat => stat.map(|stat| (FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile).then_some(stat)),
        }
    }

    /// The status of an entry of any kind.
    pub(crate) fn lstat(&self) -> rustix::io::Result<Stat> {
        sys::statat(self.dir, self.name, AtFlags::SYMLINK_NOFOLLOW)
    }

    /// Opens a file for reading; `None` if it is not a regular file any more.
    pub(crate) fn open(&self) -> rustix::io::Result<Option<(OwnedFd, Stat)>> {
        open_file(self.dir, self.name)
    }

    pub(crate) fn rel_path(&self) -> RelPath {
        RelPath::new(self.path).expect("a walk gives no path that is too long")
    }
}

/// Opens a regular file in a directory without following symlinks.
fn open_file(dir: impl AsFd, path: impl Arg + Copy) -> rustix::io::Result<Option<(OwnedFd, Stat)>> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let fd = match open_patiently(|| sys::openat(&dir, path, flags, Mode::empty())) {
        Err(Errno::NOENT | Errno::LOOP | Errno::NXIO) => return Ok(None),
        opened => opened?,
    };
    let stat = sys::fstat(&fd)?;
    Ok((EntryKind::of(FileType::from_raw_mode(stat.st_mode)) == EntryKind::File).then_some((fd, stat)))
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PathTarget {
    /// A directory; `None` is the root itself.
    Dir(Option<RelPath>),
    File(RelPath),
}

impl PathTarget {
    /// The target as replies name it.
    pub(crate) fn area(&self) -> SearchArea {
        match self {
            PathTarget::Dir(None) => SearchArea::Workspace,
            PathTarget::Dir(Some(path)) => SearchArea::Dir(path.clone()),
            PathTarget::File(path) => SearchArea::File(path.clone()),
        }
    }
}

/// Finds the directory or file at a path in any spelling, without opening it.
pub(crate) fn path_target(root: &RootDir, spelling: &str) -> Result<PathTarget, Refusal> {
    let Some(spelled) = root.normalize_place(spelling)? else { return Ok(PathTarget::Dir(None)) };
    let (path, stat) = match stat(root, &spelled) {
        // A symlink before the last component is reported as "not a directory".
        Err(Errno::LOOP | Errno::NOTDIR) => {
            let Some(settled) = root.resolve_place(&spelled)? else { return Ok(PathTarget::Dir(None)) };
            let stat = stat(root, &settled);
            (settled, stat)
        }
        stat => (spelled, stat),
    };
    if path.as_str().split('/').any(is_internal) {
        let why = "git's own files and Surehand's are neither listed nor searched".to_owned();
        return Err(Refusal::of(&path, Cause::BadArguments { why }));
    }
    let stat = stat.map_err(|errno| match errno {
        Errno::NOENT | Errno::NOTDIR => Refusal::of(&path, Cause::NothingThere),
        Errno::LOOP => {
            Refusal::of(&path, Cause::Conflict { why: "a link was put in its way during the call; try again".to_owned() })
        }
        errno => refuse_io(&path, "look at it", &errno.into()),
    })?;
    match (EntryKind::of(FileType::from_raw_mode(stat.st_mode)), kind_of(&stat)) {
        (EntryKind::Dir, _) => Ok(PathTarget::Dir(Some(path))),
        (_, None) => Ok(PathTarget::File(path)),
        (_, Some(kind)) => Err(Refusal::of(&path, Cause::NotAFile { kind })),
    }
}

/// The status of the entry at a path. [`Errno::LOOP`] means that it is a symlink or behind one.
fn stat(root: &RootDir, path: &RelPath) -> rustix::io::Result<Stat> {
    let stat = sys::statat(root.open_parent(path)?, path.name(), AtFlags::SYMLINK_NOFOLLOW)?;
    if FileType::from_raw_mode(stat.st_mode) == FileType::Symlink { Err(Errno::LOOP) } else { Ok(stat) }
}

/// Selects files by name, with the syntax of `.gitignore`: `*.rs`, `src/**`, `!*.min.js` for all others.
#[derive(Debug, Clone)]
pub(crate) struct Globs(Override);

impl Globs {
    pub(crate) fn all() -> Self {
        Self(Override::empty())
    }

    /// Selects the files that match a glob. Fails if the glob is malformed.
    pub(crate) fn of(glob: &str) -> Result<Self, ignore::Error> {
        let mut builder = OverrideBuilder::new("");
        builder.add(glob)?;
        builder.build().map(Self)
    }

    /// Whether a path is not selected. Unlike ripgrep's globs, these do not bring back ignored files.
    fn excludes(&self, path: &str, is_dir: bool) -> bool {
        self.0.matched(path, is_dir).is_ignore()
    }
}

#[derive(Debug)]
pub(crate) struct WalkOutcome<V> {
    pub visitors: Vec<V>,
    /// Directories that could not be read, and the number of names that are not UTF-8 or too long.
    pub left_out: SkippedFiles,
}

/// Walks the tree beneath a directory. The directory itself may be one that is ignored.
pub(crate) fn walk<V: WalkVisitor>(
    root: &RootDir,
    start: Option<&RelPath>,
    globs: &Globs,
    visitor: impl Fn() -> V + Sync,
) -> io::Result<WalkOutcome<V>> {
    walk_on(&CallProgress::default(), root, start, globs, visitor)
}

/// Like [`walk`], but can be cancelled; then not everything was visited.
pub(crate) fn walk_on<V: WalkVisitor>(
    progress: &CallProgress,
    root: &RootDir,
    start: Option<&RelPath>,
    globs: &Globs,
    visitor: impl Fn() -> V + Sync,
) -> io::Result<WalkOutcome<V>> {
    let queue = WorkQueue::new(WalkTask::List(open_start(root, start)?));
    let work = || {
        let (left_out, path, buffer) = (SkippedFiles::default(), String::new(), Vec::new());
        let mut walker = WalkThread { progress, globs, queue: &queue, visitor: visitor(), left_out, path, buffer };
        queue.drain(|work| walker.carry_out(work));
        (walker.visitor, walker.left_out)
    };
    let done: Vec<(V, SkippedFiles)> = std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads()).map(|_| scope.spawn(work)).collect();
        let own = work();
        let joined = others.into_iter().map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        joined.chain([own]).collect()
    });
    let mut walked = WalkOutcome { visitors: Vec::new(), left_out: SkippedFiles::default() };
    for (visitor, left_out) in done {
        walked.visitors.push(visitor);
        walked.left_out.unreadable.extend(left_out.unreadable);
        walked.left_out.unnamed += left_out.unnamed;
    }
    Ok(walked)
}

/// As many threads as there are cores, up to twelve: more would only wait for each other.
pub(crate) fn threads() -> usize {
    static THREADS: OnceLock<usize> = OnceLock::new();
    *THREADS.get_or_init(|| std::thread::available_parallelism().map_or(1, usize::from).min(12))
}

const DIR_FLAGS: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

#[derive(Debug)]
struct OpenDir {
    fd: OwnedFd,
    /// Its path with a trailing `/`; empty for the root.
    prefix: String,
    above: Option<Arc<IgnoreRules>>,
}

/// Opens the directory in which a walk starts, and collects the rules of the ignore files above it.
fn open_start(root: &RootDir, start: Option<&RelPath>) -> io::Result<Arc<OpenDir>> {
    // Opened anew, because a duplicate of the handle would continue an earlier listing where that one ended.
    let fd = sys::openat(root.dir(), c".", DIR_FLAGS, Mode::empty())?;
    let mut dir = OpenDir { fd, prefix: String::new(), above: None };
    for part in start.iter().flat_map(|start| start.as_str().split('/')) {
        let above = IgnoreRules::here(&dir.fd, dir.prefix.len(), dir.above);
        let fd = sys::openat(&dir.fd, part, DIR_FLAGS, Mode::empty())?;
        dir = OpenDir { fd, prefix: format!("{}{part}/", dir.prefix), above };
    }
    Ok(Arc::new(dir))
}

#[derive(Debug)]
enum WalkTask {
    /// Open a directory and list it. Its parent stays open as long as such work is left, so at any time about as many
    /// directories are open as the tree is deep.
    Descend {
        parent: Arc<OpenDir>,
        name: CString,
        above: Option<Arc<IgnoreRules>>,
    },
    List(Arc<OpenDir>),
    Visit {
        dir: Arc<OpenDir>,
        names: Vec<CString>,
    },
}

/// The most files of one directory that a thread visits before others may help.
const BATCH: usize = 64;

struct WalkThread<'a, V> {
    progress: &'a CallProgress,
    globs: &'a Globs,
    queue: &'a WorkQueue<WalkTask>,
    visitor: V,
    left_out: SkippedFiles,
    path: String,
    buffer: Vec<u8>,
}

impl<V: WalkVisitor> WalkThread<'_, V> {
    fn carry_out(&mut self, work: WalkTask) {
        if self.progress.is_stopped() {
            return;
        }
        match work {
            WalkTask::Visit { dir, names } => self.visit_files(&dir, &names),
            WalkTask::List(dir) => self.list_or_report(&dir),
            WalkTask::Descend { parent, name, above } => {
                self.set_path(&parent, &name);
                let prefix = format!("{}/", self.path);
                match sys::openat(&parent.fd, &name, DIR_FLAGS, Mode::empty()) {
                    Ok(fd) => self.list_or_report(&Arc::new(OpenDir { fd, prefix, above })),
                    // It is gone, or a symlink has taken its place.
                    Err(Errno::NOENT | Errno::LOOP | Errno::NOTDIR) => {}
                    Err(errno) => self.left_out.unreadable.push((prefix, error_text(errno))),
                }
            }
        }
    }

    fn list_or_report(&mut self, dir: &Arc<OpenDir>) {
        if let Err(errno) = self.list(dir) {
            self.left_out.unreadable.push((dir.prefix.clone(), error_text(errno)));
        }
    }

    /// Lists a directory, visits some of its files, and queues the rest and its directories for any thread.
    fn list(&mut self, dir: &Arc<OpenDir>) -> rustix::io::Result<()> {
        let entries = entries(dir, &mut self.buffer)?;
        let has = |name: &CStr| entries.iter().any(|(entry, _)| entry.as_c_str() == name);
        if self.visitor.passes_over_repositories() && !dir.prefix.is_empty() && has(c".git") {
            return Ok(());
        }
        let is_ruled = ignore_rules::NAMES.into_iter().any(has);
        let rules = if is_ruled { IgnoreRules::here(&dir.fd, dir.prefix.len(), dir.above.clone()) } else { dir.above.clone() };
        let mut files = Vec::new();
        let mut work = Vec::new();
        for (name, kind) in entries {
            if !self.set_path(dir, &name) {
                self.left_out.unnamed += 1;
                continue;
            }
            if self.is_left_out(dir, kind) {
                continue;
            }
            if rules.as_deref().is_some_and(|rules| rules.ignores(&self.path, kind == EntryKind::Dir)) {
                self.visitor.visit_ignored(&WalkEntry { path: &self.path, kind, dir: &dir.fd, name: &name });
                continue;
            }
            match kind {
                EntryKind::File => files.push(name),
                EntryKind::Link | EntryKind::Special => self.visit(dir, &name, kind),
                EntryKind::Dir => {
                    self.visit(dir, &name, kind);
                    work.push(WalkTask::Descend { parent: dir.clone(), name, above: rules.clone() });
                }
            }
        }
        while files.len() > BATCH {
            work.push(WalkTask::Visit { dir: dir.clone(), names: files.split_off(files.len() - BATCH) });
        }
        self.queue.push(work);
        self.visit_files(dir, &files);
        Ok(())
    }

    /// Whether an entry is left out whatever the ignore rules say: it is internal or not selected.
    fn is_left_out(&self, dir: &OpenDir, kind: EntryKind) -> bool {
        is_internal(&self.path[dir.prefix.len()..]) || self.globs.excludes(&self.path, kind == EntryKind::Dir)
    }

    fn visit_files(&mut self, dir: &OpenDir, names: &[CString]) {
        names.iter().for_each(|name| self.visit(dir, name, EntryKind::File));
        self.progress.pass(names.len());
    }

    fn visit(&mut self, dir: &OpenDir, name: &CStr, kind: EntryKind) {
        self.set_path(dir, name);
        self.visitor.visit(&WalkEntry { path: &self.path, kind, dir: &dir.fd, name });
    }

    fn set_path(&mut self, dir: &OpenDir, name: &CStr) -> bool {
        let Ok(name) = name.to_str() else { return false };
        self.path.clear();
        self.path.push_str(&dir.prefix);
        self.path.push_str(name);
        self.path.len() <= 4096
    }
}

fn error_text(errno: Errno) -> String {
    io::Error::from(errno).to_string()
}

fn entries(dir: &OpenDir, buffer: &mut Vec<u8>) -> rustix::io::Result<Vec<(CString, EntryKind)>> {
    let mut entries = Vec::new();
    each_name(&dir.fd, buffer, |name, kind| {
        if name == c"." || name == c".." {
            return;
        }
        let kind = match kind {
            // Some file systems do not report the kind.
            FileType::Unknown => match sys::statat(&dir.fd, name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => FileType::from_raw_mode(stat.st_mode),
                Err(_) => return,
            },
            kind => kind,
        };
        entries.push((name.to_owned(), EntryKind::of(kind)));
    })?;
    Ok(entries)
}

/// Calls `act` for each name in a directory that was not listed before. `sys::Dir` would open it once more.
#[cfg(target_os = "linux")]
fn each_name(dir: &OwnedFd, buffer: &mut Vec<u8>, mut act: impl FnMut(&CStr, FileType)) -> rustix::io::Result<()> {
    buffer.reserve(32 << 10);
    let mut names = sys::RawDir::new(dir, buffer.spare_capacity_mut());
    while let Some(entry) = names.next() {
        let entry = entry?;
        act(entry.file_name(), entry.file_type());
    }
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn each_name(dir: &OwnedFd, _: &mut Vec<u8>, mut act: impl FnMut(&CStr, FileType)) -> rustix::io::Result<()> {
    for entry in sys::Dir::read_from(dir)? {
        let entry = entry?;
        act(entry.file_name(), entry.file_type());
    }
    Ok(())
}

#[cfg(test)]
mod tests;
