//! The files of a workspace as a session last found them. All spellings of a path share one entry, and a file is read
//! again unless its stamp proves it unchanged.

use std::collections::HashMap;

use rustix::fs::Stat;
use surehand_core::{
    Blob, Cause, Content, ContentHash, FileAction, LineMap, OutsideState, Planned, Present, Refusal, RelPath, Stamp, Text, View,
    gate::Tracking,
    text::{NotText, same_end, same_start},
};
use surehand_store::{ContentDelta, KnownFile, SessionId, SharedBytes, StoreRecord};

use crate::{
    disk::read_file::{FoundPath, find, link_count, read_whole, stat_of_file},
    known_files::{CachedFile, KnownFiles},
    text_cache::TextCache,
    time::now,
    workspace::Workspace,
};

/// The current content at a path, with the session's view of it.
#[derive(Debug)]
pub(crate) struct GatheredFile {
    pub path: RelPath,
    pub present: Present,
    pub stamp: Option<Stamp>,
    pub links: u64,
    pub mode: Option<u32>,
    /// Whether the same call was refused before because the file cannot be shown.
    pub is_warned: bool,
    pub view: Option<View>,
    /// The text that the view refers to.
    pub seen: Option<Text>,
    /// The line map from that text to the current one, if the changes between them are recorded.
    pub provenance: Option<LineMap>,
}

/// Facts about a file that a change needs besides its content.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FileFacts {
    /// Device and inode of a file with several hard links, whose path alone does not identify it.
    pub identity: Option<(u64, u64)>,
    pub mode: Option<u32>,
}

impl GatheredFile {
    fn new(path: RelPath, present: Present) -> Self {
        let (stamp, links, mode, is_warned) = (None, 0, None, false);
        Self { path, present, stamp, links, mode, is_warned, view: None, seen: None, provenance: None }
    }

    fn with_stat(self, stamp: Stamp, stat: &Stat) -> Self {
        Self { stamp: Some(stamp), links: link_count(stat), mode: Some(stat.st_mode), ..self }
    }

    pub(crate) fn facts(&self) -> FileFacts {
        let identity = self.stamp.filter(|_| self.links > 1).map(|stamp| (stamp.device, stamp.inode));
        FileFacts { identity, mode: self.mode }
    }

    pub(crate) fn tracking(&self, tracked: bool) -> Tracking<'_> {
        match (&self.view, tracked) {
            (_, false) => Tracking::Off,
            (_, true) if self.is_warned => Tracking::Warned,
            (None, true) => Tracking::Unseen,
            (Some(view), true) => Tracking::Seen { view, text: self.seen.as_ref(), provenance: self.provenance.as_ref() },
        }
    }
}

/// The planned change of one file, with its facts.
#[derive(Debug)]
pub(crate) struct PlannedFile {
    pub(crate) planned: Planned,
    pub(crate) facts: FileFacts,
}

impl PlannedFile {
    pub(crate) fn of(planned: Planned, gathered: &GatheredFile) -> Self {
        Self { planned, facts: gathered.facts() }
    }
}

/// Caches the versions and stamps of a workspace's files, and the texts read last.
#[derive(Debug)]
pub(crate) struct FileCache {
    owner: SessionId,
    known: KnownFiles,
    texts: TextCache,
}

impl FileCache {
    pub(crate) fn of(owner: SessionId) -> Self {
        Self { owner, known: KnownFiles::default(), texts: TextCache::default() }
    }

    /// The canonical path of a file. The file is not read.
    pub(crate) fn path_of(&self, workspace: &Workspace, spelling: &str) -> Result<RelPath, Refusal> {
        Ok(self.find(workspace, spelling)?.0)
    }

    /// The canonical form of a name. Unlike [`Self::path_of`], a hard link keeps the name given.
    pub(crate) fn path_of_name(&self, workspace: &Workspace, spelling: &str) -> Result<RelPath, Refusal> {
        let path = workspace.root().normalize(spelling)?;
        if find(workspace.root(), &path).is_ok() { Ok(path) } else { workspace.root().resolve(&path) }
    }

    /// Finds a file by any spelling, with its canonical path.
    fn find(&self, workspace: &Workspace, spelling: &str) -> Result<(RelPath, FoundPath), Refusal> {
        let mut path = workspace.root().normalize(spelling)?;
        let found = match find(workspace.root(), &path) {
            Ok(found) => found,
            Err(_) => {
                path = workspace.root().resolve(&path)?;
                find(workspace.root(), &path).map_err(|_| {
                    Refusal::of(&path, Cause::Conflict { why: "a link was put in its way during the call; try again".to_owned() })
                })?
            }
        };
        if let (FoundPath::File { stat, .. }, false) = (&found, self.known.has_name(&path)) {
            path = self.first_name(workspace, path, &workspace.copy.clock().stamp(stat), link_count(stat));
        }
        Ok((path, found))
    }

    /// Reads the file at a path, unless its stamp proves that it is unchanged.
    pub(crate) fn gather(&mut self, workspace: &Workspace, spelling: &str) -> Result<GatheredFile, Refusal> {
        self.gather_up_to(workspace, spelling, workspace.config().limits.file_bytes)
    }

    /// Like [`Self::gather`], for a file that is replaced or deleted as a whole. The limit is the size that undo can
    /// keep, so files too large to be shown are read too.
    pub(crate) fn gather_whole(&mut self, workspace: &Workspace, spelling: &str) -> Result<GatheredFile, Refusal> {
        let limit = workspace.config().versions.most_of_one();
        let gathered = self.gather_up_to(workspace, spelling, limit.max(workspace.config().limits.file_bytes))?;
        let size = match &gathered.present {
            Present::Blob(blob, _) => blob.bytes().len() as u64,
            Present::Unreadable(Cause::TooLarge { size, .. }) => *size,
            Present::Absent | Present::Text(_) | Present::Unreadable(_) => 0,
        };
        if size <= limit {
            return Ok(gathered);
        }
        Ok(GatheredFile { present: Present::Unreadable(Cause::TooLargeToKeep { size, limit }), ..gathered })
    }

    /// Like [`Self::gather`], with a limit in bytes on the size of the file.
    pub(crate) fn gather_up_to(&mut self, workspace: &Workspace, spelling: &str, bytes: u64) -> Result<GatheredFile, Refusal> {
        if let Some(gathered) = self.cached_if_unchanged(workspace, spelling) {
            return Ok(gathered);
        }
        let (path, found) = self.find(workspace, spelling)?;
        let (mut file, stat) = match found {
            FoundPath::Nothing => return Ok(GatheredFile::new(path, Present::Absent)),
            FoundPath::Other(cause) => return Ok(GatheredFile::new(path, Present::Unreadable(cause))),
            FoundPath::File { file, stat } => (file, stat),
        };
        let stamp = workspace.copy.clock().stamp(&stat);
        if let Some(text) = self.unchanged(&path, &stamp) {
            return Ok(GatheredFile::new(path, Present::Text(text)).with_stat(stamp, &stat));
        }
        let now = match read_whole(&path, &mut file, bytes, workspace.copy.clock()) {
            Ok(now) => now,
            Err(refusal) => return Ok(GatheredFile::new(path, Present::Unreadable(refusal.cause))),
        };
        let present = self.present(&path, now.bytes, workspace.config().limits.file_bytes);
        if let Present::Text(text) = &present {
            self.record_found(workspace, &path, text, now.stamp);
        }
        Ok(GatheredFile { links: now.links, ..GatheredFile::new(path, present).with_stat(now.stamp, &stat) })
    }

    /// A cached file whose stamp is unchanged. It is not opened, because a link that was swapped in may lead anywhere,
    /// but equal stamps prove the same file.
    fn cached_if_unchanged(&mut self, workspace: &Workspace, spelling: &str) -> Option<GatheredFile> {
        let path = workspace.root().normalize(spelling).ok()?;
        self.known.get(&path)?;
        let stat = stat_of_file(workspace.root(), &path)?;
        let stamp = workspace.copy.clock().stamp(&stat);
        let present = Present::Text(self.unchanged(&path, &stamp)?);
        Some(GatheredFile::new(path, present).with_stat(stamp, &stat))
    }

    /// The current versions at these paths. A file is read unless its stamp proves it unchanged.
    pub(crate) fn check(&mut self, workspace: &Workspace, paths: &[RelPath]) -> Vec<OutsideState> {
        let unknown: Vec<RelPath> = paths.iter().filter(|path| self.known.get(path).is_none()).cloned().collect();
        let ask = || workspace.ask(|store| store.files(&unknown)).unwrap_or_default();
        let stored = if unknown.is_empty() { Vec::new() } else { ask() };
        let stored: HashMap<RelPath, KnownFile> =
            unknown.into_iter().zip(stored).filter_map(|(path, known)| Some((path, known?))).collect();
        let mut check = |path: &RelPath| {
            let known = self.known.get(path).map(|known| known.file.clone()).or_else(|| stored.get(path).cloned());
            self.check_one(workspace, path, known)
        };
        paths.iter().map(&mut check).collect()
    }

    fn check_one(&mut self, workspace: &Workspace, path: &RelPath, known: Option<KnownFile>) -> OutsideState {
        if let (Some(stat), Some(known)) = (stat_of_file(workspace.root(), path), known)
            && known.stamp.agrees_with(&workspace.copy.clock().stamp(&stat))
            && !known.stamp.is_racy()
        {
            return OutsideState::Version(known.version);
        }
        match self.gather(workspace, path.as_str()).map(|gathered| gathered.present) {
            Ok(Present::Text(text)) => OutsideState::Version(text.version()),
            Ok(Present::Absent | Present::Blob(..) | Present::Unreadable(_)) | Err(_) => OutsideState::Gone,
        }
    }

    /// The name by which a file with several hard links is already known, as long as that name still refers to it. On
    /// case-insensitive file systems, a different case counts as another name.
    fn first_name(&self, workspace: &Workspace, path: RelPath, stamp: &Stamp, links: u64) -> RelPath {
        let mut names = self.known.in_other_letters(&path);
        if links > 1 {
            names.extend(self.known.names_of(stamp));
            names.extend(workspace.ask(|store| store.paths_of(stamp)).unwrap_or_default());
        }
        let leads_here = |name: &RelPath| matches!(find(workspace.root(), name), Ok(FoundPath::File { stat, .. }) if workspace.copy.clock().stamp(&stat).same_file(stamp));
        names.into_iter().filter(leads_here).min().unwrap_or(path)
    }

    /// The text last found at a path, if the stamp proves it unchanged.
    fn unchanged(&mut self, path: &RelPath, stamp: &Stamp) -> Option<Text> {
        let known = &self.known.get(path)?.file;
        if !known.stamp.agrees_with(stamp) || known.stamp.is_racy() {
            return None;
        }
        self.texts.get(&known.version)
    }

    /// Turns bytes into text or blob. If they equal the cached text, it is reused and not hashed again. A file over the
    /// limit is never text.
    fn present(&mut self, path: &RelPath, bytes: Vec<u8>, limit: u64) -> Present {
        let last = self.known.get(path).map(|known| known.file.version);
        if let Some(text) = last.and_then(|version| self.texts.get(&version)).filter(|text| text.bytes() == bytes) {
            return Present::Text(text);
        }
        let size = bytes.len() as u64;
        if size > limit {
            let cause = Cause::TooLarge { unit: "bytes", size, limit, setting: "limits.file_bytes" };
            return Present::Blob(Blob::new(bytes), cause);
        }
        match Content::with_reason(bytes) {
            (Content::Text(text), _) => Present::Text(text),
            (Content::Blob(blob), not_text) => {
                let cause = match not_text {
                    Some(NotText::Encoding { at }) => Cause::Encoding { size, at },
                    Some(NotText::TooLarge) => {
                        Cause::TooLarge { unit: "bytes", size, limit: u64::from(u32::MAX), setting: "limits.file_bytes" }
                    }
                    Some(NotText::Binary) | None => Cause::Binary { size, kind: kind_of(blob.bytes()) },
                };
                Present::Blob(blob, cause)
            }
        }
    }

    /// The stamp with which a file was last found.
    pub(crate) fn stamp(&self, path: &RelPath) -> Option<Stamp> {
        self.known.get(path).map(|known| known.file.stamp)
    }

    /// The cached stamp, if it belongs to this version.
    pub(crate) fn stamp_of(&self, path: &RelPath, version: &ContentHash) -> Option<Stamp> {
        self.known.get(path).filter(|known| known.file.version == *version).map(|known| known.file.stamp)
    }

    /// Forgets a file, so that the next access reads it.
    pub(crate) fn forget(&mut self, path: &RelPath) {
        self.known.remove(path);
    }

    /// Records that this text was found at a path with this stamp.
    pub(crate) fn record_found(&mut self, workspace: &Workspace, path: &RelPath, text: &Text, stamp: Stamp) {
        self.texts.keep(text);
        let file = KnownFile { version: text.version(), stamp };
        let last = self.known.get_mut(path);
        let is_new = last.as_ref().is_none_or(|last| last.file != file);
        match last {
            Some(last) => {
                last.is_kept &= last.file.version == file.version;
                last.file = file.clone();
            }
            None => self.known.insert(path, CachedFile { file: file.clone(), is_kept: false }),
        }
        if is_new {
            workspace.record(StoreRecord::Found { path: path.clone(), file });
        }
    }

    /// Stores the text of a file, so that a later change can be compared with it.
    pub(crate) fn keep(&mut self, workspace: &Workspace, path: &RelPath, text: &Text) {
        self.texts.keep(text);
        if !self.mark_kept(path, text) {
            workspace.store.record_text(&self.owner, path, None, kept_record(&Content::Text(text.clone())));
        }
    }

    /// Marks the text of a file as handed to the store. Returns whether it already was.
    fn mark_kept(&mut self, path: &RelPath, text: &Text) -> bool {
        let known = self.known.get_mut(path).filter(|known| known.file.version == text.version());
        known.is_some_and(|known| std::mem::replace(&mut known.is_kept, true))
    }

    /// Stores the content that a change replaced, so that it can be undone, and the content that it wrote. Returns the
    /// reverse delta if that is enough to restore the old content.
    pub(crate) fn keep_change(&mut self, workspace: &Workspace, planned: &Planned) -> Option<ContentDelta> {
        let (before, after) = (planned.base(), planned.text());
        // The current one comes last: of two large texts, only the last one stays cached.
        for text in before.and_then(Content::text).into_iter().chain(after) {
            self.texts.keep(text);
        }
        match (before, after) {
            (Some(Content::Text(before)), Some(after)) if before.version() != after.version() => {
                self.mark_kept(planned.path(), after);
                let way_back = reverse_delta(before, after);
                if way_back.is_none() {
                    self.keep_replaced(workspace, planned.path(), before);
                }
                let replaced = way_back.is_some().then(|| before.version());
                workspace.store.record_text(&self.owner, planned.path(), replaced, kept_record(&Content::Text(after.clone())));
                way_back
            }
            _ => {
                let is_kept = lost_blob(planned).is_some();
                before.into_iter().filter(|_| !is_kept).for_each(|before| workspace.record(kept_record(before)));
                after.into_iter().for_each(|after| self.keep(workspace, planned.path_after().unwrap_or(planned.path()), after));
                None
            }
        }
    }

    /// Stores a text that was replaced as a whole. Usually the store has it already, since the session read or wrote
    /// it.
    fn keep_replaced(&self, workspace: &Workspace, path: &RelPath, text: &Text) {
        let record = kept_record(&Content::Text(text.clone()));
        match workspace.ask(|store| store.has_version(&text.version())) {
            Ok(true) => workspace.store.record_text(&self.owner, path, None, record),
            Ok(false) | Err(_) => workspace.record(record),
        }
    }

    pub(crate) fn kept_content(&mut self, workspace: &Workspace, version: ContentHash) -> Present {
        if let Some(text) = self.text(workspace, &version) {
            return Present::Text(text);
        }
        let bytes = workspace.ask(|store| store.version(&version)).ok().flatten();
        bytes.map_or(Present::Absent, |bytes| {
            let (size, kind) = (bytes.len() as u64, kind_of(&bytes));
            Present::Blob(Blob::new(bytes), Cause::Binary { size, kind })
        })
    }

    /// The text of a version, from memory or from the store.
    pub(crate) fn text(&mut self, workspace: &Workspace, version: &ContentHash) -> Option<Text> {
        if let Some(text) = self.texts.get(version) {
            return Some(text);
        }
        let ask = || workspace.ask(|store| store.version(version)).ok().flatten();
        let bytes = ask().or_else(|| {
            // It may be on its way to the store.
            workspace.flush();
            ask()
        })?;
        let text = Text::new(bytes).ok()?;
        self.texts.keep(&text);
        Some(text)
    }
}

/// Stores a file that cannot be shown before it is replaced or deleted, and waits for the write: no model has seen it,
/// so none could restore it.
pub(crate) fn keep_first(workspace: &Workspace, planned: &Planned) -> Result<(), Refusal> {
    match lost_blob(planned) {
        Some(blob) => keep_bytes(workspace, planned.path(), blob),
        None => Ok(()),
    }
}

/// Stores the content of a file, and waits for the write.
pub(crate) fn keep_bytes(workspace: &Workspace, path: &RelPath, content: &Content) -> Result<(), Refusal> {
    workspace.record(kept_record(content));
    workspace.flush();
    let kept = workspace.ask(|store| store.version(&content.version()));
    if kept.is_ok_and(|kept| kept.is_some()) {
        return Ok(());
    }
    let why = "its content could not be stored for undo; nothing was written".to_owned();
    Err(Refusal::of(path, Cause::Io { why }))
}

/// The binary content that a change would destroy.
fn lost_blob(planned: &Planned) -> Option<&Content> {
    let stays = matches!(planned.act(), FileAction::Move { .. });
    planned.base().filter(|base| base.text().is_none() && !stays)
}

fn kept_record(content: &Content) -> StoreRecord {
    StoreRecord::Kept { version: content.version(), content: SharedBytes::new(content.clone()), at: now() }
}

/// A larger change gets no delta: the store probably has the text already, and would store it twice.
const MAX_DELTA: usize = 256 << 10;

/// The delta from `after` back to `before`: the part between their common start and end. `None` if it is so large that
/// `before` is stored in full instead.
fn reverse_delta(before: &Text, after: &Text) -> Option<ContentDelta> {
    let (old, new) = (before.bytes(), after.bytes());
    let prefix = same_start(old, new);
    let suffix = same_end(&old[prefix..], &new[prefix..]);
    let middle = &old[prefix..old.len() - suffix];
    if middle.len() > MAX_DELTA {
        return None;
    }
    Some(ContentDelta { prefix, suffix, middle: middle.to_vec() })
}

fn kind_of(bytes: &[u8]) -> &'static str {
    const MAGIC: &[(&[u8], &str)] = &[
        (b"\x7fELF", "an ELF program"),
        (b"\x89PNG", "a PNG image"),
        (b"\xff\xd8\xff", "a JPEG image"),
        (b"GIF8", "a GIF image"),
        (b"PK\x03\x04", "a ZIP archive"),
        (b"\x1f\x8b", "gzip data"),
        (b"%PDF", "a PDF document"),
        (b"SQLite format 3\0", "a SQLite database"),
        (b"\0asm", "a WebAssembly module"),
    ];
    MAGIC.iter().find(|(magic, _)| bytes.starts_with(magic)).map_or("binary data", |(_, kind)| kind)
}
