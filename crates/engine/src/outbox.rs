//! The outbox: records of changes on their way to the store, written to a file before the reply. Any process can then
//! undo an acknowledged change, even if the process that made it is killed immediately.
//!
//! The recorder empties the outbox when the store has the records. The next process to start imports the outbox of a
//! killed one, and a process that reads the log imports those of living ones too. Appending a line to a file costs a
//! microsecond, an SQLite row ten.

use std::{
    borrow::Cow,
    collections::HashMap,
    fs::File,
    io::{self, IoSlice, Read, Write},
    os::fd::AsFd,
    sync::Arc,
    thread::{self, ThreadId},
};

use rustix::fs as sys;
use serde::{Deserialize, Serialize};
use surehand_core::{ContentHash, RelPath};
use surehand_store::{ContentDelta, FileEvent, Millis, SharedBytes, SqliteStore, Store, StoreRecord};

use crate::{
    disk::{self, journal, recovery, staging, working_copy::WorkingCopy},
    state_dir,
    time::now,
};

/// The outbox of a process: two files, one that is being written and one whose records the recorder is moving to the
/// store. They are created on first use, because most processes change nothing, and locked while the process lives.
#[derive(Debug)]
pub(crate) struct Outbox {
    dir: Arc<File>,
    name: String,
    /// The path from the work tree to the root that records refer to.
    below: Option<RelPath>,
    files: [Option<OutboxFile>; 2],
    current: usize,
    /// Incomplete groups of records, by thread.
    groups: HashMap<ThreadId, Vec<u8>>,
}

/// A longer file is not read: an outbox holds the records of a few seconds.
const MAX_FILE: u64 = 1 << 30;

#[derive(Debug)]
struct OutboxFile {
    handle: File,
    size: u64,
}

/// A record as one line of JSON, followed by its bytes, because these may not be text.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(clippy::large_enum_variant, reason = "one at a time, and most are the large one")]
enum OutboxEntry<'a> {
    Happened {
        #[serde(flatten)]
        event: Cow<'a, FileEvent>,
        /// The length of the common prefix and suffix, and of the middle that follows the line.
        delta: Option<(usize, usize, usize)>,
    },
    Kept {
        version: ContentHash,
        at: Millis,
        size: usize,
    },
}

impl Outbox {
    /// An outbox with this unique name.
    pub(crate) fn new(dir: Arc<File>, name: String, below: Option<RelPath>) -> Self {
        Self { dir, name, below, files: [None, None], current: 0, groups: HashMap::new() }
    }

    /// Starts a group: the records that this thread adds from now on are imported all or none.
    pub(crate) fn begin_group(&mut self) {
        self.groups.entry(thread::current().id()).or_default();
    }

    pub(crate) fn end_group(&mut self) {
        if let Some(group) = self.groups.remove(&thread::current().id()) {
            self.append(&group);
        }
    }

    pub(crate) fn add_record(&mut self, record: &StoreRecord) {
        let Some((line, bytes)) = line_of(record, self.below.as_ref()) else { return };
        if let Some(group) = self.groups.get_mut(&thread::current().id()) {
            return add(group, &line, bytes);
        }
        let mut group = Vec::new();
        add(&mut group, &line, bytes);
        self.append(&group);
    }

    /// An error is ignored: the record still goes to the store, and only a crash before that would lose it.
    fn append(&mut self, group: &[u8]) {
        if group.is_empty() {
            return;
        }
        let file = match &mut self.files[self.current] {
            Some(file) => file,
            none => {
                let Ok(handle) = journal::open_new(self.dir.as_fd(), &file_name(&self.name, self.current)) else { return };
                none.insert(OutboxFile { handle, size: 0 })
            }
        };
        let size = format!("{}\n", group.len()).into_bytes();
        let mut parts = [IoSlice::new(&size), IoSlice::new(group)];
        match write_all(&file.handle, &mut parts) {
            Ok(()) => file.size += (size.len() + group.len()) as u64,
            // A partial group would corrupt the next one.
            Err(_) => drop(file.handle.set_len(file.size)),
        }
    }

    /// Switches to the other file, while the records in this one go to the store.
    pub(crate) fn switch_file(&mut self) {
        self.current = 1 - self.current;
    }

    /// Empties the other file: the store has its records.
    pub(crate) fn clear_other_file(&mut self) {
        if let Some(file) = self.files[1 - self.current].as_mut().filter(|file| file.size > 0) {
            // If clearing fails, the next process imports the records again, and the store takes each event once.
            if file.handle.set_len(0).is_ok() {
                file.size = 0;
            }
        }
    }

    /// Closes the outbox after its last record, and removes the files whose records the store has.
    pub(crate) fn close(&mut self) {
        for (number, file) in self.files.iter_mut().enumerate() {
            if file.take().is_some_and(|file| file.size == 0) {
                staging::remove(self.dir.as_fd(), &file_name(&self.name, number));
            }
        }
    }
}

fn file_name(name: &str, number: usize) -> String {
    format!("{name}-{number}")
}

/// Writes the parts in order without copying them into one buffer.
fn write_all(mut file: &File, mut parts: &mut [IoSlice<'_>]) -> io::Result<()> {
    while !parts.is_empty() {
        match file.write_vectored(parts) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => IoSlice::advance_slices(&mut parts, written),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Whether a record must outlive the process: changes, and content that undo needs. The texts that sessions have seen
/// can be read again.
pub(crate) fn must_outlive_process(record: &StoreRecord) -> bool {
    matches!(record, StoreRecord::Happened(_) | StoreRecord::Kept { .. })
}

fn line_of<'a>(record: &'a StoreRecord, below: Option<&RelPath>) -> Option<(OutboxEntry<'a>, &'a [u8])> {
    match record {
        StoreRecord::Happened(event) => {
            let delta = event.delta.as_ref();
            let size = delta.map(|delta| (delta.prefix, delta.suffix, delta.middle.len()));
            // Use paths relative to the work tree, because the process that imports them may have another root.
            let event = match below {
                None => Cow::Borrowed(event),
                below => {
                    let in_tree = |path: &RelPath| path.in_directory(below);
                    let (path, moved_to) = (in_tree(&event.path), event.moved_to.as_ref().map(in_tree));
                    Cow::Owned(FileEvent { path, moved_to, ..event.clone() })
                }
            };
            Some((OutboxEntry::Happened { event, delta: size }, delta.map_or(&[], |delta| &delta.middle)))
        }
        StoreRecord::Kept { version, content, at } => {
            let bytes = content.bytes();
            Some((OutboxEntry::Kept { version: *version, at: *at, size: bytes.len() }, bytes))
        }
        _ => None,
    }
}

fn add(group: &mut Vec<u8>, line: &OutboxEntry<'_>, bytes: &[u8]) {
    serde_json::to_writer(&mut *group, line).expect("a line is plain data");
    group.push(b'\n');
    group.extend_from_slice(bytes);
}

/// The records of an outbox file. An incomplete group at the end was never acknowledged, and is left out.
fn records(mut content: &[u8]) -> Vec<StoreRecord> {
    let mut records = Vec::new();
    while let Some(group) = take_group(&mut content) {
        records.extend(records_of(group).unwrap_or_default());
    }
    records
}

fn take_group<'a>(content: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = std::str::from_utf8(take_line(content)?).ok()?.parse().ok()?;
    content.split_off(..length)
}

fn take_line<'a>(content: &mut &'a [u8]) -> Option<&'a [u8]> {
    let end = content.iter().position(|byte| *byte == b'\n')?;
    content.split_off(..=end).map(|line| &line[..end])
}

/// The records of a group, all or none.
fn records_of(mut group: &[u8]) -> Option<Vec<StoreRecord>> {
    let mut records = Vec::new();
    while !group.is_empty() {
        let line = serde_json::from_slice(take_line(&mut group)?).ok()?;
        records.push(record_of(line, &mut group)?);
    }
    Some(records)
}

fn record_of(line: OutboxEntry<'_>, rest: &mut &[u8]) -> Option<StoreRecord> {
    Some(match line {
        OutboxEntry::Happened { event, delta } => {
            let mut event = event.into_owned();
            if let Some((prefix, suffix, size)) = delta {
                event.delta = Some(ContentDelta { prefix, suffix, middle: rest.split_off(..size)?.to_vec() });
            }
            StoreRecord::Happened(event)
        }
        OutboxEntry::Kept { version, at, size } => {
            let content = rest.split_off(..size)?.to_vec();
            StoreRecord::Kept { version, content: SharedBytes::new(content), at }
        }
    })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OutboxOwners {
    /// Only those of dead processes, which cannot import them.
    Dead,
    /// Those of living processes as well, for a caller that needs every acknowledged change now. Their owners write the
    /// same events to the store soon after, and the store takes each event once.
    All,
}

/// Imports outbox files into the store. A file that cannot be imported now is kept.
pub(crate) fn import_outboxes(copy: &WorkingCopy, store: &mut SqliteStore, whose: OutboxOwners) {
    let dir = copy.state.outbox();
    let Ok(names) = recovery::list_names(&dir) else { return };
    if names.is_empty() {
        return;
    }
    store.set_directory(None);
    let mut has_imported = false;
    for name in names {
        // A file that cannot be read now may be readable next time.
        let Ok(Some(file)) = open_outbox(&dir, &name, whose) else { continue };
        let records = records(&file.content);
        let is_imported = records.is_empty() || {
            let present = present_contents(copy, &records);
            store.record(&[&present[..], &records].concat()).is_ok()
        };
        if is_imported && file.left_behind.is_some() {
            staging::remove(dir.as_fd(), &name);
            has_imported |= !records.is_empty();
        }
    }
    store.set_directory(copy.below.clone());
    if has_imported {
        // The killed process may not have announced its change.
        copy.state.announce();
    }
}

struct FoundOutbox {
    content: Vec<u8>,
    /// The file, locked, if no living process holds it.
    left_behind: Option<File>,
}

/// Reads an outbox file. A living process may empty and rewrite its file meanwhile, which garbles the rest. But the
/// store then has the earlier records, and an incomplete group is left out.
fn open_outbox(dir: &File, name: &str, whose: OutboxOwners) -> io::Result<Option<FoundOutbox>> {
    let mut file = match state_dir::open_file(dir, name, MAX_FILE) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let is_left_behind = file.try_lock().is_ok();
    let is_wanted = is_left_behind || whose == OutboxOwners::All;
    if !is_wanted || sys::fstat(&file)?.st_nlink == 0 {
        return Ok(None);
    }
    let mut content = Vec::new();
    file.read_to_end(&mut content)?;
    Ok(Some(FoundOutbox { content, left_behind: is_left_behind.then_some(file) }))
}

/// Deltas start from the content that the changes wrote, so it is stored in full if it is still on disk.
fn present_contents(copy: &WorkingCopy, records: &[StoreRecord]) -> Vec<StoreRecord> {
    let written: HashMap<&RelPath, ContentHash> = records
        .iter()
        .filter_map(|record| match record {
            StoreRecord::Happened(event) => Some((event.name_after(), event.after?)),
            _ => None,
        })
        .collect();
    let present = |(path, version): (&RelPath, ContentHash)| {
        let Ok(disk::read_file::FoundPath::File { mut file, .. }) = disk::read_file::find(&copy.tree, path) else { return None };
        let mut content = Vec::new();
        file.read_to_end(&mut content).ok()?;
        (ContentHash::of(&content) == version).then(|| StoreRecord::Kept {
            version,
            content: SharedBytes::new(content),
            at: now(),
        })
    };
    written.into_iter().filter_map(present).collect()
}

#[cfg(test)]
mod tests {
    use surehand_store::{ChangeId, SessionId};

    use super::*;

    fn event(path: &str, delta: Option<ContentDelta>) -> StoreRecord {
        StoreRecord::Happened(FileEvent {
            change: ChangeId("0badcafe".to_owned()),
            at: 7,
            session: SessionId("s".to_owned()),
            tool: "edit_file".to_owned(),
            path: RelPath::new(path).unwrap(),
            moved_to: None,
            before: Some(ContentHash::of(b"before")),
            after: None,
            mode: Some(0o644),
            undoes: vec![ChangeId("1".to_owned())],
            delta,
            lines: Some("3 1-1+2".parse().unwrap()),
            undone: Vec::new(),
            entry: None,
        })
    }

    fn file(groups: &[&[StoreRecord]]) -> Vec<u8> {
        let mut content = Vec::new();
        for group in groups {
            let mut lines = Vec::new();
            for record in *group {
                let (line, bytes) = line_of(record, None).unwrap();
                add(&mut lines, &line, bytes);
            }
            content.extend(format!("{}\n", lines.len()).bytes().chain(lines));
        }
        content
    }

    /// The debug form of records, because shared bytes cannot be compared.
    fn debug(records: &[StoreRecord]) -> Vec<String> {
        let bytes = |record: &StoreRecord| line_of(record, None).map(|(_, bytes)| bytes.to_vec());
        records.iter().map(|record| format!("{record:?} {:?}", bytes(record))).collect()
    }

    #[test]
    fn records_are_read_back() {
        let delta = ContentDelta { prefix: 3, suffix: 4, middle: b"\xff\n\0{}\n12\n".to_vec() };
        let kept = StoreRecord::Kept { version: ContentHash::of(b"\n\n"), content: SharedBytes::new(b"\n\n".to_vec()), at: 9 };
        let first = [event("a\nb.txt", Some(delta)), kept];
        let second = [event("c.txt", None)];
        let read = records(&file(&[&first, &second]));
        assert_eq!(debug(&read), debug(&[&first[..], &second[..]].concat()));
    }

    #[test]
    fn a_group_that_was_cut_off_is_left_out_entirely() {
        let first = [event("a.txt", None)];
        let second = [event("b.txt", None), event("c.txt", Some(ContentDelta { prefix: 0, suffix: 0, middle: b"xyz".to_vec() }))];
        let (whole, kept) = (file(&[&first, &second]), file(&[&first]).len());
        for cut in kept..whole.len() {
            assert_eq!(debug(&records(&whole[..cut])), debug(&first), "{cut}");
        }
        (0..kept).for_each(|cut| assert_eq!(records(&whole[..cut]).len(), 0, "{cut}"));
    }

    #[test]
    fn a_malformed_file_holds_nothing() {
        for content in ["", "\n", "x\n", "99999999999999999999\n{}", "3\n{}\n", "-1\n", "2\n[]"] {
            assert_eq!(records(content.as_bytes()).len(), 0, "{content:?}");
        }
    }
}
