//! Recovery finishes or rolls back the commits that a crash interrupted. A commit whose files were all replaced is
//! completed; any other is rolled back. Later writes of other programs stay, and nothing is removed that another
//! program may have written.
//!
//! Every start looks for journals without a lock; the system releases the lock of a process that dies. A commit in such
//! a journal is in one of three states. If it never began, its staged files are removed: no other program has seen
//! them. If it began and has no end, each file is compared with the journal. A new file is recognised by its inode and
//! modification time, because another program may have written the same bytes; an old one by its bytes. If all files
//! are in place, the commit is complete. Otherwise the replaced files are put back, from the last to the first. The end
//! is then written to the journal, so that no later start judges the commit again, when the files may hold newer work
//! of other programs. If the commit has ended, only its displaced files are left, and they get the second look that the
//! dead process could not give them (see [`super::rescue`]).
//!
//! Recovery acts on data that it reads, so it trusts as little as possible. A journal counts only if this user wrote it
//! and it starts with the key of this checkout. Targets inside git's or our own directories are skipped, staged files
//! must have names that their process would have given, and a file is put back only if it is the one that was taken.

use std::{
    borrow::Cow,
    fs::File,
    io::{self, Read, Seek, Write},
    os::fd::AsFd,
    sync::Arc,
    time::Duration,
};

use rustix::{
    fs::{self as sys, AtFlags, Dir, FileType, Mode, OFlags, RenameFlags},
    io::Errno,
};
use surehand_core::{ContentHash, Notice, RelPath};

use super::{
    commit::{NEW_COPY, OLD_NAME, rename_to_free_name},
    journal::{CommitIntent, CommitMethod, JournalEntry, StagingPlace, entries, is_plain_name, line},
    read_file::{open_at, open_patiently},
    rescue::{DisplacedFile, ReplacementFile, SecondLookResult},
    staging,
    working_copy::{TREE_STAGING, WorkingCopy},
};
use crate::state_dir;

/// A longer journal is not one of ours: they are emptied long before that.
const MAX_JOURNAL: u64 = 64 << 20;

/// Recovers from every journal that no living process holds. Commits that cannot be settled now are reported and left
/// for a later start.
pub(crate) fn recover(copy: &WorkingCopy) -> io::Result<Vec<Notice>> {
    let journals = copy.state.journals();
    let mut notices = Vec::new();
    for name in list_names(&journals)? {
        if let Err(error) = recover_journal(copy, &journals, &name, &mut notices) {
            notices.push(Notice::NotRecovered { why: error.to_string() });
        }
    }
    rescue_files_without_journal(copy, &mut notices)?;
    Ok(notices)
}

/// Rescues staged files that have no journal. A power cut can leave one, because the journal of a commit of a single
/// file is not synced.
///
/// A living process creates its journal before it stages anything, and removes it last. So the staged files are listed
/// first: if a file's journal does not exist afterwards, no process owns the file, or it is gone already.
fn rescue_files_without_journal(copy: &WorkingCopy, notices: &mut Vec<Notice>) -> io::Result<()> {
    let (staged, journals) = (copy.state.staged(), copy.state.journals());
    let unknown = RelPath::new("unknown").expect("a name");
    for name in list_names(&staged)? {
        let Some(journal) = journal_of(&name) else { continue };
        let journal = sys::statat(&*journals, journal, AtFlags::SYMLINK_NOFOLLOW);
        if !matches!(journal, Err(Errno::NOENT)) {
            continue;
        }
        match copy.state.rescued.take_in(staged.as_fd(), &name, &unknown) {
            Ok(to) => notices.push(Notice::Rescued { path: unknown.clone(), to }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// The journal of a staged file: `JOURNAL-COMMIT-FILE`, perhaps with an ending.
fn journal_of(staged: &str) -> Option<&str> {
    let (rest, _) = staged.rsplit_once('-')?;
    let (journal, _) = rest.rsplit_once('-')?;
    Some(journal)
}

/// Whether this journal has a commit that was neither finished nor rolled back.
pub(crate) fn has_half_done(copy: &WorkingCopy, journal: &str) -> bool {
    if !is_plain_name(journal) {
        return false;
    }
    let mut content = Vec::new();
    let read = match state_dir::open_file(&copy.state.journals(), journal, MAX_JOURNAL) {
        Ok(file) => file.take(MAX_JOURNAL).read_to_end(&mut content),
        // Missing, or not a journal of ours.
        Err(error) if error.raw_os_error().is_none() || error.kind() == io::ErrorKind::NotFound => return false,
        Err(error) => Err(error),
    };
    let entries = entries(&content);
    let is_open = |entry: &JournalEntry| matches!(entry, JournalEntry::Begin { commit, .. } if !has_ended(&entries, *commit));
    // A journal that cannot be read may contain one.
    read.is_err() || (is_of_this_checkout(copy, &entries) && entries.iter().any(is_open))
}

/// Whether a journal was written for this checkout, by a user who may read its key.
fn is_of_this_checkout(copy: &WorkingCopy, entries: &[JournalEntry]) -> bool {
    matches!(entries.first(), Some(JournalEntry::Start { checkout }) if checkout == copy.state.key().as_str())
}

fn has_ended(entries: &[JournalEntry], number: u64) -> bool {
    entries.iter().any(|entry| matches!(entry, JournalEntry::End { commit, .. } if *commit == number))
}

/// The plain names in a directory of the state, sorted.
pub(crate) fn list_names(dir: &File) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(dir)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if is_plain_name(&name) {
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}

/// Recovers from one journal, and removes it once nothing in it is needed.
fn recover_journal(copy: &WorkingCopy, journals: &File, name: &str, notices: &mut Vec<Notice>) -> io::Result<()> {
    let mut content = Vec::new();
    let reader = match state_dir::open_file(journals, name, MAX_JOURNAL) {
        Ok(file) => file,
        // Gone, or not a journal of ours, which is left alone.
        Err(error) if error.raw_os_error().is_none() || error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    let flags = OFlags::RDWR | OFlags::APPEND | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let mut file = match sys::openat(journals, name, flags, Mode::empty()) {
        Ok(fd) => File::from(fd),
        Err(Errno::NOENT) => return Ok(()),
        Err(errno) => return Err(errno.into()),
    };
    let is_same = sys::fstat(&file)?.st_ino == sys::fstat(&reader)?.st_ino;
    if file.try_lock().is_err() || sys::fstat(&file)?.st_nlink == 0 || !is_same {
        // Its process lives, or another process has just recovered from it.
        return Ok(());
    }
    (&mut file).take(MAX_JOURNAL).read_to_end(&mut content)?;
    let entries = entries(&content);
    if content.is_empty() {
        // Its process died before it wrote anything.
        staging::remove(journals.as_fd(), name);
        return Ok(());
    }
    if !is_of_this_checkout(copy, &entries) {
        return Ok(());
    }
    let mut recovery = JournalRecovery { copy, journal: name, file, entries, notices };
    if recovery.recover()? {
        recovery.remove_staging_directories();
        // Removed under its lock: a process that is starting a journal of this name must not come in between.
        staging::remove(journals.as_fd(), name);
    }
    Ok(())
}

struct JournalRecovery<'a> {
    copy: &'a WorkingCopy,
    journal: &'a str,
    file: File,
    entries: Vec<JournalEntry>,
    notices: &'a mut Vec<Notice>,
}

impl JournalRecovery<'_> {
    /// Returns `true` if nothing in this journal has to wait for a later start.
    fn recover(&mut self) -> io::Result<bool> {
        // Names of staged files that must wait for a later start.
        let mut waiting = Vec::new();
        // Half-done commits come first: settling a commit removes the mark of this journal from its locks, and a
        // half-done commit still needs that mark.
        for half_done in [true, false] {
            for place in 0..self.entries.len() {
                let JournalEntry::Begin { commit, files } = self.entries[place].clone() else { continue };
                if has_ended(&self.entries, commit) == half_done {
                    continue;
                }
                let files = self.with_what_was_carried_over(commit, files);
                let files: Vec<CommitIntent> = files.into_iter().filter(|file| self.is_trusted(file)).collect();
                self.settle_commit(commit, &files, &mut waiting)?;
            }
        }
        let is_removed = self.remove_what_was_never_swapped();
        self.rescue_unnamed_files(&waiting)?;
        Ok(waiting.is_empty() && is_removed)
    }

    /// The files of a commit with the metadata that was carried over before it ended. It must not be carried over
    /// twice: a second time would overwrite later changes.
    fn with_what_was_carried_over(&self, number: u64, mut files: Vec<CommitIntent>) -> Vec<CommitIntent> {
        for entry in &self.entries {
            let JournalEntry::End { commit, carried_over, .. } = entry else { continue };
            for (nth, metadata) in carried_over.iter().filter(|_| *commit == number) {
                if let Some(file) = files.get_mut(*nth) {
                    file.metadata = Some(metadata.clone());
                }
            }
        }
        files
    }

    /// Whether the process of this journal can have written this intent. It must not name files of git or of the state,
    /// nor staged files with names that the process would not have given.
    fn is_trusted(&self, file: &CommitIntent) -> bool {
        let may_touch = |path: &str| RelPath::new(path).is_ok_and(|path| !self.copy.is_protected(&path));
        let is_staged = |name: &String| is_plain_name(name) && name.starts_with(&file.place.prefix(self.journal));
        may_touch(&file.path)
            && file.to.as_deref().is_none_or(may_touch)
            && file.staged.as_ref().is_none_or(is_staged)
            && self.knows_place(&file.place)
    }

    /// Whether the journal announced this directory for staging in the tree, under a name of our form. Other places
    /// need no announcement.
    fn knows_place(&self, place: &StagingPlace) -> bool {
        let StagingPlace::Tree(dir) = place else { return true };
        let random = dir.strip_prefix(TREE_STAGING).unwrap_or_default();
        let is_ours = random.len() == 16 && random.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_ours && self.staging_directories().any(|name| name == dir)
    }

    fn staging_directories(&self) -> impl Iterator<Item = &String> {
        self.entries.iter().filter_map(|entry| match entry {
            JournalEntry::StageDir { name } => Some(name),
            _ => None,
        })
    }

    fn remove_staging_directories(&self) {
        for name in self.staging_directories().filter(|name| self.knows_place(&StagingPlace::Tree((*name).clone()))) {
            self.copy.state.export.remove_made(name);
        }
    }

    /// Finishes or rolls back one commit, unless it has ended, and clears its staged files.
    fn settle_commit(&mut self, commit: u64, files: &[CommitIntent], waiting: &mut Vec<String>) -> io::Result<()> {
        let paths: Vec<RelPath> = files.iter().filter_map(|file| RelPath::new(&file.path).ok()).collect();
        let locks_dir = self.copy.state.locks();
        let pool = &self.copy.lock_pool;
        let moved_to: Vec<RelPath> = files.iter().filter_map(|file| RelPath::new(file.to.as_deref()?).ok()).collect();
        let to_lock: Vec<&RelPath> = paths.iter().chain(&moved_to).collect();
        let locks = pool.lock(locks_dir.as_fd(), &to_lock, &[], Duration::from_secs(10))?;
        let Some(locks) = locks else {
            waiting.extend(files.iter().filter_map(|file| file.staged.clone()));
            return Ok(());
        };
        if !has_ended(&self.entries, commit) {
            let done = self.finish_or_roll_back(&self.inspect(files, &paths)?)?;
            // The next start must not judge the commit again: by then, other programs may have changed the files.
            self.file.write_all(&line(&JournalEntry::End { commit, done, carried_over: Vec::new() }))?;
        }
        for left in self.inspect(files, &paths)? {
            if !left.clear(self.notices)? {
                waiting.extend(left.intent.staged.clone());
            }
        }
        locks.unmark_of(self.journal)?;
        pool.give_back(locks);
        Ok(())
    }

    fn inspect<'a>(&self, files: &'a [CommitIntent], paths: &'a [RelPath]) -> io::Result<Vec<LeftFile<'a>>>
    where
        Self: 'a,
    {
        files.iter().zip(paths).map(|(intent, path)| LeftFile::inspect(self.copy, intent, path)).collect()
    }

    /// Returns `true` if the commit turned out to be complete.
    fn finish_or_roll_back(&mut self, files: &[LeftFile<'_>]) -> io::Result<bool> {
        let in_root = |path: &RelPath| self.copy.in_root(path).map_or_else(|| path.clone(), Cow::into_owned);
        let paths = files.iter().map(|file| in_root(file.path)).collect();
        if files.iter().all(LeftFile::is_done) {
            files.iter().for_each(LeftFile::drop_first_name);
            self.notices.push(Notice::Completed { paths });
            return Ok(true);
        }
        let mut kept = Vec::new();
        for file in files.iter().rev() {
            if !file.roll_back()? {
                kept.push(in_root(file.path));
            }
        }
        self.notices.push(Notice::TakenBack { paths, kept });
        Ok(false)
    }

    /// Removes staged files of commits that had not begun, and created directories that are still empty. Returns
    /// `false` if one of the files may not be removed now.
    fn remove_what_was_never_swapped(&self) -> bool {
        let mut is_removed = true;
        let begun = |number: &u64| {
            self.entries.iter().any(|entry| matches!(entry, JournalEntry::Begin { commit, .. } if commit == number))
        };
        // In reverse, because a directory must be empty.
        for entry in self.entries.iter().rev() {
            match entry {
                JournalEntry::Stage { commit, path, staged, place } if !begun(commit) && self.is_staged_name(staged, place) => {
                    let dir = self.staging_directory(place, path);
                    for name in [staged.clone(), with_new(staged)] {
                        is_removed &= dir.iter().all(|dir| staging::remove(dir.as_fd(), &name));
                    }
                }
                JournalEntry::Make { dirs, .. } => {
                    let dirs = dirs.iter().rev().filter_map(|dir| RelPath::new(dir).ok());
                    let dirs = dirs.filter(|dir| !self.copy.is_protected(dir));
                    dirs.for_each(|dir| self.copy.tree.remove_dir_if_empty(&dir));
                }
                _ => {}
            }
        }
        is_removed
    }

    /// The directory in which a file for this target was staged; `None` if it does not exist, or must not be opened.
    fn staging_directory(&self, place: &StagingPlace, target: &str) -> Option<Arc<File>> {
        let target = RelPath::new(target).ok().filter(|path| !self.copy.is_protected(path))?;
        match place {
            StagingPlace::State => Some(self.copy.state.staged()),
            StagingPlace::Tree(name) => self.copy.state.export.open_made(name).ok().map(Arc::new),
            StagingPlace::Beside => self.copy.tree.open_parent(&target).ok().map(|dir| Arc::new(File::from(dir))),
        }
    }

    fn is_staged_name(&self, name: &str, place: &StagingPlace) -> bool {
        is_plain_name(name) && name.starts_with(&place.prefix(self.journal)) && self.knows_place(place)
    }

    /// Rescues the files of that process in the staging directories that no journal entry names: they could hold
    /// anything.
    fn rescue_unnamed_files(&mut self, waiting: &[String]) -> io::Result<()> {
        let unknown = RelPath::new("unknown").expect("a name");
        let in_tree = self.staging_directories().filter(|name| self.knows_place(&StagingPlace::Tree((*name).clone())));
        let in_tree = in_tree.filter_map(|name| self.copy.state.export.open_made(name).ok().map(Arc::new));
        for staged in [self.copy.state.staged()].into_iter().chain(in_tree.collect::<Vec<_>>()) {
            for name in list_names(&staged)? {
                let is_waiting = waiting.iter().any(|waiting| name.starts_with(waiting.as_str()));
                if name.starts_with(&format!("{}-", self.journal)) && !is_waiting {
                    let to = self.copy.state.rescued.take_in(staged.as_fd(), &name, &unknown)?;
                    self.notices.push(Notice::Rescued { path: unknown.clone(), to });
                }
            }
        }
        Ok(())
    }
}

enum FoundThing {
    Nothing,
    File { bytes: Vec<u8>, inode: u64, modified: i64 },
    Other,
}

impl FoundThing {
    fn inspect(copy: &WorkingCopy, dir: &File, name: &str) -> io::Result<Self> {
        let stat = match sys::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => stat,
            Err(Errno::NOENT) => return Ok(FoundThing::Nothing),
            Err(errno) => return Err(errno.into()),
        };
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Ok(FoundThing::Other);
        }
        let mut file = match open_patiently(|| open_at(dir, name)) {
            Ok(file) => file,
            Err(Errno::NOENT) => return Ok(FoundThing::Nothing),
            Err(errno) => return Err(errno.into()),
        };
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        let stamp = copy.clock().stamp(&stat);
        Ok(FoundThing::File { bytes, inode: stamp.inode, modified: stamp.modified })
    }

    fn holds(&self, version: Option<ContentHash>) -> bool {
        matches!(self, FoundThing::File { bytes, .. } if Some(ContentHash::of(bytes)) == version)
    }

    /// Whether it is the new file of an intent, unchanged since it was written.
    fn is_new_file_of(&self, intent: &CommitIntent) -> bool {
        let same = |inode: u64, modified: i64| (inode, modified) == (intent.inode, intent.modified);
        matches!(self, FoundThing::File { inode, modified, .. } if same(*inode, *modified)) && self.holds(intent.new)
    }

    fn has_inode(&self, wanted: u64) -> bool {
        matches!(self, FoundThing::File { inode, .. } if *inode == wanted)
    }
}

/// Opens the directory of a file; `None` if the path does not lead to one any more.
fn open_parent(copy: &WorkingCopy, path: &RelPath) -> io::Result<Option<File>> {
    match copy.tree.open_parent(path) {
        Ok(dir) => Ok(Some(File::from(dir))),
        Err(Errno::NOENT | Errno::LOOP | Errno::NOTDIR) => Ok(None),
        Err(errno) => Err(errno.into()),
    }
}

/// A file of a commit as the crash left it.
struct LeftFile<'a> {
    copy: &'a WorkingCopy,
    intent: &'a CommitIntent,
    path: &'a RelPath,
    /// The target's directory, if it still exists.
    dir: Option<File>,
    target: FoundThing,
    /// The destination of a move: its directory, its path, and what was found there.
    moved: Option<(File, RelPath, FoundThing)>,
    staged_dir: Arc<File>,
    /// The staged file, or the second name of the old file if the new one was renamed over it.
    staged_name: Option<String>,
    staged: FoundThing,
}

impl<'a> LeftFile<'a> {
    fn inspect(copy: &'a WorkingCopy, intent: &'a CommitIntent, path: &'a RelPath) -> io::Result<Self> {
        let dir = open_parent(copy, path)?;
        let target = match &dir {
            Some(dir) => FoundThing::inspect(copy, dir, path.name())?,
            None => FoundThing::Nothing,
        };
        let mut moved = None;
        if let Some(Ok(to)) = intent.to.as_deref().map(RelPath::new)
            && let Some(dir) = open_parent(copy, &to)?
        {
            let thing = FoundThing::inspect(copy, &dir, to.name())?;
            moved = Some((dir, to, thing));
        }
        let mut staged_dir = match (&intent.place, &dir) {
            (StagingPlace::Beside, Some(dir)) => Arc::new(dir.try_clone()?),
            // If that directory is gone, so is the staged file; no file in the state's directory has its name.
            (StagingPlace::Tree(name), _) => copy.state.export.open_made(name).map_or_else(|_| copy.state.staged(), Arc::new),
            _ => copy.state.staged(),
        };
        let (mut staged_name, mut staged) = (intent.staged.clone(), FoundThing::Nothing);
        if let Some(name) = &intent.staged {
            staged = FoundThing::inspect(copy, &staged_dir, name)?;
            let kept = format!("{name}{OLD_NAME}");
            match (&staged, FoundThing::inspect(copy, &staged_dir, &kept)?) {
                (_, FoundThing::Nothing) => {}
                (FoundThing::Nothing, old) => (staged_name, staged) = (Some(kept), old),
                // The old file still has its first name, so the second can go.
                _ => {
                    staging::remove(staged_dir.as_fd(), &kept);
                }
            }
        }
        if let (CommitMethod::Create, FoundThing::Nothing, Some(name), Some(dir)) = (intent.how, &staged, &intent.staged, &dir) {
            // A new file that was rolled back while its staging directory could not be written.
            let beside = format!(".surehand-{name}");
            let thing = FoundThing::inspect(copy, dir, &beside)?;
            if !matches!(thing, FoundThing::Nothing) {
                (staged_dir, staged_name, staged) = (Arc::new(dir.try_clone()?), Some(beside), thing);
            }
        }
        Ok(Self { copy, intent, path, dir, target, moved, staged_dir, staged_name, staged })
    }

    /// Whether the new content is in place, and the file that came out has the expected content.
    fn is_done(&self) -> bool {
        match self.intent.how {
            CommitMethod::Create => self.target.is_new_file_of(self.intent),
            CommitMethod::InPlace => self.target.holds(self.intent.new),
            CommitMethod::Remove => self.staged.holds(self.intent.base),
            CommitMethod::Move => self.was_moved(),
            CommitMethod::Swap | CommitMethod::Rename => self.was_swapped() && self.staged.holds(self.intent.base),
        }
    }

    /// Removes the first name of a moved file. Where a move takes two steps (a hard link, then an unlink), a crash may
    /// have left both names.
    fn drop_first_name(&self) {
        if let (CommitMethod::Move, Some(dir), true) = (self.intent.how, &self.dir, self.target.has_inode(self.intent.inode)) {
            staging::remove(dir.as_fd(), self.path.name());
        }
    }

    fn was_moved(&self) -> bool {
        matches!(&self.moved, Some((_, _, thing)) if thing.has_inode(self.intent.inode))
    }

    /// Whether the staged name holds something other than the new file.
    fn was_swapped(&self) -> bool {
        !matches!(self.staged, FoundThing::Nothing) && !self.staged.has_inode(self.intent.inode)
    }

    /// Rolls this file back. Returns `false` if another program has changed it since; it then stays unchanged.
    fn roll_back(&self) -> io::Result<bool> {
        let Some(dir) = &self.dir else { return Ok(self.rescue_without_directory()) };
        let is_ours = self.target.is_new_file_of(self.intent);
        match self.intent.how {
            CommitMethod::Create if is_ours => self.take_out(dir),
            CommitMethod::Create => Ok(matches!(self.target, FoundThing::Nothing)),
            CommitMethod::Swap | CommitMethod::Rename if !self.was_swapped() => Ok(true),
            CommitMethod::Swap | CommitMethod::Rename if is_ours => self.exchange_back(dir),
            CommitMethod::Swap | CommitMethod::Rename => Ok(false),
            CommitMethod::InPlace => self.restore_in_place(dir),
            CommitMethod::Remove => self.put_back(dir),
            CommitMethod::Move => self.move_back(dir),
        }
    }

    /// Rescues the file that was taken out of a directory that is gone, perhaps because it was empty without the file.
    /// Returns `true` if no file had been taken out.
    fn rescue_without_directory(&self) -> bool {
        let was_taken_out = match self.intent.how {
            CommitMethod::Remove => !matches!(self.staged, FoundThing::Nothing),
            CommitMethod::Swap | CommitMethod::Rename => self.was_swapped(),
            CommitMethod::Move => return !self.was_moved(),
            CommitMethod::Create | CommitMethod::InPlace => false,
        };
        if let (Some(name), true) = (&self.staged_name, was_taken_out) {
            self.copy.rescue(self.staged_dir.as_fd(), name, self.path);
        }
        !was_taken_out
    }

    /// Puts a removed file back. If another program has created a new one meanwhile, that stays, and the removed one is
    /// rescued.
    fn put_back(&self, dir: &File) -> io::Result<bool> {
        let (Some(name), false) = (&self.staged_name, matches!(self.staged, FoundThing::Nothing)) else { return Ok(true) };
        if !self.staged.has_inode(self.intent.inode) && !self.staged.holds(self.intent.base) {
            // This is not the file that was taken out.
            self.copy.rescue(self.staged_dir.as_fd(), name, self.path);
            return Ok(false);
        }
        match rename_to_free_name((&self.staged_dir, name), (dir, self.path.name())) {
            Ok(()) => Ok(true),
            Err(Errno::EXIST) => {
                self.copy.rescue(self.staged_dir.as_fd(), name, self.path);
                Ok(false)
            }
            Err(errno) => Err(errno.into()),
        }
    }

    fn move_back(&self, dir: &File) -> io::Result<bool> {
        let (Some((dir_to, to, _)), true) = (&self.moved, self.was_moved()) else { return Ok(true) };
        if self.target.has_inode(self.intent.inode) {
            // The file still has its first name, so only the second one is removed.
            return Ok(staging::remove(dir_to.as_fd(), to.name()));
        }
        match rename_to_free_name((dir_to, to.name()), (dir, self.path.name())) {
            Ok(()) => Ok(true),
            Err(Errno::EXIST) => Ok(false),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Moves a created file out before inspecting it, so that a file that another program put there is not removed. A
    /// program may have opened ours meanwhile, so it stays where [`LeftFile::clear`] gives it a second look.
    fn take_out(&self, dir: &File) -> io::Result<bool> {
        let Some(name) = &self.intent.staged else { return Ok(false) };
        if self.staged.has_inode(self.intent.inode) {
            // The staged name is a second name of the same file, and a rename onto it would not remove the first.
            staging::remove(self.staged_dir.as_fd(), name);
        }
        let beside = format!(".surehand-{name}");
        let (home, name) = match rename_to_free_name((dir, self.path.name()), (&self.staged_dir, name)) {
            Ok(()) => (&*self.staged_dir, name),
            Err(Errno::NOENT) => return Ok(true),
            Err(Errno::XDEV) => {
                rename_to_free_name((dir, self.path.name()), (dir, &beside))?;
                (dir, &beside)
            }
            Err(errno) => return Err(errno.into()),
        };
        if FoundThing::inspect(self.copy, home, name)?.is_new_file_of(self.intent) {
            if *name == beside {
                staging::remove(home.as_fd(), name);
            }
            return Ok(true);
        }
        if rename_to_free_name((home, name), (dir, self.path.name())).is_err() {
            self.copy.rescue(home.as_fd(), name, self.path);
        }
        Ok(false)
    }

    fn exchange_back(&self, dir: &File) -> io::Result<bool> {
        let name = self.staged_name.as_ref().expect("a swap has a staged file");
        match sys::renameat_with(&*self.staged_dir, name, dir, self.path.name(), RenameFlags::EXCHANGE) {
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => sys::renameat(&*self.staged_dir, name, dir, self.path.name())?,
            // Another program has removed the new file since: it stays removed, and the old file is kept.
            Err(Errno::NOENT) => return Ok(false),
            exchanged => exchanged?,
        }
        Ok(true)
    }

    /// Restores the old bytes only if the file holds our new ones, or a mixture of both that only our torn write can
    /// have left.
    fn restore_in_place(&self, dir: &File) -> io::Result<bool> {
        let FoundThing::File { bytes: now, .. } = &self.target else { return Ok(false) };
        let (FoundThing::File { bytes: base, .. }, true) = (&self.staged, self.staged.holds(self.intent.base)) else {
            return Ok(false);
        };
        if now == base {
            return Ok(true);
        }
        let copy = with_new(self.intent.staged.as_deref().unwrap_or_default());
        let is_torn = match FoundThing::inspect(self.copy, &self.staged_dir, &copy)? {
            FoundThing::File { bytes: new, .. } => is_mixture(now, &new, base),
            FoundThing::Nothing | FoundThing::Other => false,
        };
        if !is_torn {
            return Ok(false);
        }
        let flags = OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let mut file = File::from(open_patiently(|| sys::openat(dir, self.path.name(), flags, Mode::empty()))?);
        file.rewind()?;
        file.write_all(base)?;
        file.set_len(base.len() as u64)?;
        file.sync_all()?;
        Ok(true)
    }

    /// Removes the staged file if it is ours or still the base; anything else is another program's work and is rescued.
    /// Returns `false` if it must wait, because it is open or cannot be removed now.
    fn clear(&self, notices: &mut Vec<Notice>) -> io::Result<bool> {
        let Some(name) = &self.staged_name else { return Ok(true) };
        if self.intent.how == CommitMethod::InPlace {
            // Copies that no other program has ever opened.
            return Ok([&with_new(name), name].iter().all(|name| staging::remove(self.staged_dir.as_fd(), name)));
        }
        let rescued = |to: String, notices: &mut Vec<Notice>| {
            notices.push(Notice::Rescued { path: self.path.clone(), to });
            Ok(true)
        };
        let is_new = self.staged.has_inode(self.intent.inode) && self.intent.how != CommitMethod::Remove;
        let version = match (&self.staged, is_new) {
            (FoundThing::Nothing, _) => return Ok(true),
            (FoundThing::Other, _) => {
                return rescued(self.copy.state.rescued.take_in(self.staged_dir.as_fd(), name, self.path)?, notices);
            }
            (FoundThing::File { .. }, true) => self.intent.new,
            (FoundThing::File { .. }, false) => self.intent.base.or(self.intent.new),
        };
        let Some(version) = version else { return Ok(true) };
        let displaced = DisplacedFile::taken_back(self.staged_dir.clone(), name.clone(), self.path.clone(), version);
        let mut displaced = DisplacedFile { replacement: self.replacement()?, ..displaced };
        match displaced.check_again(&self.copy.state.rescued)? {
            SecondLookResult::Untouched => Ok(displaced.remove()),
            SecondLookResult::InUse => Ok(false),
            SecondLookResult::Rescued(to) => rescued(to, notices),
        }
    }

    /// The file in its place now, if the journal has its metadata.
    fn replacement(&self) -> io::Result<Option<ReplacementFile>> {
        let (Some(dir), Some(metadata)) = (&self.dir, &self.intent.metadata) else { return Ok(None) };
        Ok(Some(ReplacementFile { dir: Arc::new(dir.try_clone()?), metadata: metadata.clone() }))
    }
}

/// Name of the copy of the new content, beside the copy of the old content.
fn with_new(staged: &str) -> String {
    format!("{staged}{NEW_COPY}")
}

/// Whether a write of `new` over `base` that was cut off somewhere can have left these bytes.
fn is_mixture(now: &[u8], new: &[u8], base: &[u8]) -> bool {
    let written = now.iter().zip(new).take_while(|(a, b)| a == b).count();
    let rest_of_base = |from: usize| base.get(from..).unwrap_or_default();
    // The write may have stopped anywhere up to the point where both agree; the rest of the old content may be cut off
    // already.
    (0..=written).rev().any(|at| now[at..] == *rest_of_base(at) || (at == new.len().min(now.len()) && now.len() == at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_torn_file_is_distinguished_from_a_changed_one() {
        let (base, new) = (b"old content\n", b"new stuff\n");
        for at in 0..=new.len() {
            let mut torn = base.to_vec();
            torn[..at].copy_from_slice(&new[..at]);
            assert!(is_mixture(&torn, new, base), "{at}");
        }
        assert!(is_mixture(new, new, base));
        assert!(!is_mixture(b"user content\n", new, base));
        assert!(!is_mixture(b"old content\nand more\n", new, base));
    }
}
