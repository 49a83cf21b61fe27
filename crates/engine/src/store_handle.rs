//! The store of a workspace as its sessions use it: questions are answered at once, records are written in the background.
//! The caller chooses the store; the journal, the locks and the staged files do not depend on that choice.

use std::{
    fmt, io,
    sync::{Arc, Mutex},
};

use surehand_core::{ContentHash, RelPath};
use surehand_store::{
    SessionId, SqliteStore, Store, StoreError, StoreRecord, StoreScope, StoreTurn, StoryTasks, TaskUpdate, TrackedFiles,
};

use crate::{
    config::VersionConfig,
    disk::{
        checkout_state::lock,
        working_copy::{WorkingCopy, process_name},
    },
    outbox::{self, Outbox, OutboxOwners},
    recorder::{CrashSafety, IdleMoment, Recorder, RecorderHold, SharedStore, StoreWriter, lock_store},
    state_dir::StateDir,
};

/// The store of a workspace for views, versions, events and tasks.
///
/// Commits are as safe with any of them: journal, locks and staged files are in the state directory always.
#[derive(Default)]
pub enum StoreChoice {
    /// In SQLite in the state directory, which all processes share.
    #[default]
    StateDirectory,
    /// In memory. It ends with the workspace, and no other process sees it.
    InMemory,
    /// In a store that the caller brings. It must be of this root alone, since paths are relative to the root. A change is in it
    /// before the reply says that it was made; everything else follows within about 100 ms.
    Custom(Box<dyn Store>),
}

impl fmt::Debug for StoreChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::StateDirectory => "StateDirectory",
            Self::InMemory => "InMemory",
            Self::Custom(_) => "Custom",
        })
    }
}

pub(crate) enum OpenStore {
    StateDirectory(surehand_store::OpenedStore),
    /// One in memory, which ends with the process.
    InMemory(SqliteStore),
    Custom(Box<dyn Store>),
}

/// Opens the chosen store before anything else in the state directory is used: only the database says whether a newer
/// Surehand wrote it.
pub(crate) fn open_store(choice: StoreChoice, dir: &StateDir, below: Option<RelPath>) -> Result<OpenStore, OpenStoreError> {
    match choice {
        StoreChoice::StateDirectory => {
            let database = dir.database().map_err(OpenStoreError::Directory)?;
            Ok(OpenStore::StateDirectory(SqliteStore::open(&database, &scope(dir, below))?))
        }
        StoreChoice::InMemory => {
            check_format(dir)?;
            Ok(OpenStore::InMemory(SqliteStore::in_memory()?))
        }
        StoreChoice::Custom(store) => {
            check_format(dir)?;
            Ok(OpenStore::Custom(store))
        }
    }
}

#[derive(Debug)]
pub(crate) enum OpenStoreError {
    Directory(io::Error),
    Store(StoreError),
}

impl From<StoreError> for OpenStoreError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

fn scope(dir: &StateDir, below: Option<RelPath>) -> StoreScope {
    StoreScope { checkout: dir.key.as_str().to_owned(), below }
}

/// A database of a newer Surehand forbids the whole directory. One that is damaged does not, where it is not used.
fn check_format(dir: &StateDir) -> Result<(), StoreError> {
    if !dir.path.join("state.db").exists() {
        return Ok(());
    }
    let Ok(database) = dir.database() else { return Ok(()) };
    match SqliteStore::open_read_only(&database, &scope(dir, None)) {
        Err(error @ StoreError::Newer { .. }) => Err(error),
        Ok(_) | Err(_) => Ok(()),
    }
}

/// The store of an open workspace, with the recorder that writes to it.
pub(crate) struct StoreHandle {
    copy: Arc<WorkingCopy>,
    reader: StoreReader,
    /// `None` where the state is only looked at.
    recorder: Option<Recorder>,
}

enum StoreReader {
    /// A connection to the database in the state directory: that of the recorder, or one of its own that is opened with the first
    /// question.
    StateDirectory(Mutex<Option<Arc<Mutex<SqliteStore>>>>),
    Shared(SharedStore),
}

impl StoreHandle {
    /// Starts the recorder of a store. `housekeeping` is run now and then on its thread; it says whether there is more to do soon.
    pub(crate) fn start(
        copy: Arc<WorkingCopy>,
        store: OpenStore,
        versions: VersionConfig,
        housekeeping: impl Fn(&IdleMoment<'_>) -> bool + Send + 'static,
    ) -> io::Result<Self> {
        let (store, safety) = prepare(&copy, store)?;
        let reader = match &store {
            SharedStore::Database(_) if matches!(safety, CrashSafety::Outbox(_)) => StoreReader::StateDirectory(Mutex::new(None)),
            store => StoreReader::Shared(store.clone()),
        };
        let writer = StoreWriter::new(store, versions, Some(copy.state.clone()));
        let recorder = Recorder::start(writer, safety, housekeeping)?;
        Ok(Self { copy, reader, recorder: Some(recorder) })
    }

    /// [`Self::start`] for a process that exits at once: one connection, no thread.
    pub(crate) fn start_for_one_call(copy: Arc<WorkingCopy>, store: OpenStore, versions: VersionConfig) -> io::Result<Self> {
        let (store, safety) = prepare(&copy, store)?;
        let reader = match (&store, &safety) {
            (SharedStore::Database(database), CrashSafety::Outbox(_)) => {
                StoreReader::StateDirectory(Mutex::new(Some(database.clone())))
            }
            (store, _) => StoreReader::Shared(store.clone()),
        };
        let writer = StoreWriter::new(store, versions, Some(copy.state.clone()));
        Ok(Self { copy, reader, recorder: Some(Recorder::when_asked(writer, safety)) })
    }

    /// The database in the state directory, only to be asked.
    pub(crate) fn open_read_only(copy: Arc<WorkingCopy>) -> Self {
        Self { copy, reader: StoreReader::StateDirectory(Mutex::new(None)), recorder: None }
    }

    /// Whether it is the database in the state directory.
    pub(crate) fn is_in_state_directory(&self) -> bool {
        matches!(self.reader, StoreReader::StateDirectory(_))
    }

    pub(crate) fn record(&self, record: StoreRecord) {
        if let Some(recorder) = &self.recorder {
            recorder.record(record);
        }
    }

    /// Holds back what is handed to the recorder, until it is dropped.
    pub(crate) fn hold(&self) -> Option<RecorderHold> {
        self.recorder.as_ref().map(Recorder::hold)
    }

    /// Hands the text of a file to the recorder, to be kept, with the version that it replaced if it was this owner who did.
    pub(crate) fn record_text(&self, owner: &SessionId, path: &RelPath, replaced: Option<ContentHash>, record: StoreRecord) {
        if let Some(recorder) = &self.recorder {
            recorder.record_text(owner, path, replaced, record);
        }
    }

    /// Waits until everything that was handed to the recorder is written.
    pub(crate) fn flush(&self) {
        if let Some(recorder) = &self.recorder {
            recorder.flush();
        }
    }

    pub(crate) fn close(&mut self) {
        drop(self.recorder.take());
    }

    /// Brings to the database what other processes have answered for and not written yet. That is not for another store: it would be gone
    /// with that, or be missing in the database.
    pub(crate) fn import_outboxes(&self) {
        if let (StoreReader::StateDirectory(reader), false) = (&self.reader, self.copy.state.is_read_only()) {
            // If the store cannot be opened, the next question reports the error.
            drop(self.with_database(reader, |store| {
                outbox::import_outboxes(&self.copy, store, OutboxOwners::Everybodys);
                Ok(())
            }));
        }
    }

    /// The files of the work tree that sessions have touched.
    pub(crate) fn tracked_in_tree(&self, since: Option<StoreTurn>) -> Result<TrackedFiles, StoreError> {
        match &self.reader {
            StoreReader::StateDirectory(reader) => self.with_database(reader, |store| tracked_in_tree(&self.copy, store, since)),
            StoreReader::Shared(store) => tracked_in_root(&self.copy, store, since),
        }
    }

    /// Asks the store. What the recorder has not written yet is not in it.
    pub(crate) fn ask<T>(&self, question: impl FnOnce(&dyn Store) -> Result<T, StoreError>) -> Result<T, StoreError> {
        match &self.reader {
            StoreReader::StateDirectory(reader) => self.with_database(reader, |store| question(store)),
            StoreReader::Shared(store) => store.with(|store| question(store)),
        }
    }

    /// Changes what there is to do, all of it or nothing.
    pub(crate) fn update_tasks(&self, change: &TaskUpdate) -> Result<StoryTasks, StoreError> {
        match &self.reader {
            StoreReader::StateDirectory(reader) => self.with_database(reader, |store| store.update_tasks(change)),
            StoreReader::Shared(store) => store.with(|store| store.update_tasks(change)),
        }
    }

    fn with_database<T>(
        &self,
        reader: &Mutex<Option<Arc<Mutex<SqliteStore>>>>,
        act: impl FnOnce(&mut SqliteStore) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let mut reader = lock(reader);
        if reader.is_none() {
            *reader = Some(Arc::new(Mutex::new(open_database(&self.copy)?)));
        }
        act(&mut lock_store(reader.as_ref().expect("opened above")))
    }
}

/// Brings the store what is left for it, and says how the record of a change is saved from a crash.
fn prepare(copy: &WorkingCopy, store: OpenStore) -> io::Result<(SharedStore, CrashSafety)> {
    Ok(match store {
        OpenStore::StateDirectory(mut opened) => {
            outbox::import_outboxes(copy, &mut opened.store, OutboxOwners::OfTheDead);
            let outbox = Outbox::new(copy.state.outbox(), process_name()?, copy.below.clone());
            (SharedStore::Database(Arc::new(Mutex::new(opened.store))), CrashSafety::Outbox(outbox))
        }
        // These use no outbox: the next process would import it into the database.
        OpenStore::InMemory(store) => (SharedStore::Database(Arc::new(Mutex::new(store))), CrashSafety::Nothing),
        OpenStore::Custom(store) => (SharedStore::Other(Arc::new(Mutex::new(store))), CrashSafety::WriteThrough),
    })
}

/// The files of the whole work tree, from the database that all roots in it share.
pub(crate) fn tracked_in_tree(
    copy: &WorkingCopy,
    store: &mut SqliteStore,
    since: Option<StoreTurn>,
) -> Result<TrackedFiles, StoreError> {
    store.set_directory(None);
    let tracked = store.tracked(since);
    store.set_directory(copy.below.clone());
    tracked
}

/// The files of the root, from any other store.
pub(crate) fn tracked_in_root(
    copy: &WorkingCopy,
    store: &SharedStore,
    since: Option<StoreTurn>,
) -> Result<TrackedFiles, StoreError> {
    let mut tracked = store.with(|store| store.tracked(since))?;
    tracked.files.iter_mut().for_each(|file| file.path = copy.in_tree(&file.path));
    Ok(tracked)
}

/// Opens the database, in the way in which the state is used.
fn open_database(copy: &WorkingCopy) -> Result<SqliteStore, StoreError> {
    let Some(dir) = copy.state.state_dir() else { return SqliteStore::in_memory() };
    let path = dir.path.join("state.db");
    let failed = |error: io::Error| StoreError::Backend { path: path.display().to_string(), error: error.into() };
    let (path, scope) = (dir.database().map_err(failed)?, scope(&dir, copy.below.clone()));
    match copy.state.is_read_only() {
        false => Ok(SqliteStore::open(&path, &scope)?.store),
        true if path.exists() => SqliteStore::open_read_only(&path, &scope),
        true => SqliteStore::in_memory(),
    }
}

#[cfg(test)]
mod tests {
    use surehand_store::{ChangeId, EventFilter, FileEvent};

    use super::*;
    use crate::{
        config::Config,
        workspace::{Workspace, WorkspaceOptions},
    };

    fn open(dir: &std::path::Path, store: StoreChoice) -> Arc<Workspace> {
        let options = WorkspaceOptions { config: Config::default(), store, ..WorkspaceOptions::default() };
        Workspace::open_with(dir, options).unwrap()
    }

    /// Leaves the record of a change in the outbox, as a process that was killed does.
    fn leave_behind(workspace: &Workspace) {
        let mut outbox = Outbox::new(workspace.state().outbox(), "1-dead".to_owned(), None);
        outbox.add_record(&StoreRecord::Happened(FileEvent {
            change: ChangeId("0badcafe".to_owned()),
            at: 7,
            session: SessionId("s".to_owned()),
            tool: "edit_file".to_owned(),
            path: RelPath::new("a.txt").unwrap(),
            moved_to: None,
            before: None,
            after: None,
            mode: None,
            undoes: Vec::new(),
            delta: None,
            lines: None,
        }));
    }

    #[test]
    fn what_a_dead_process_left_waits_for_the_database() {
        let dir = surehand_testkit::repository();
        let changes = |workspace: &Workspace| workspace.log(&EventFilter::default(), 10).unwrap().len();
        let in_memory = open(dir.path(), StoreChoice::InMemory);
        leave_behind(&in_memory);
        assert_eq!(changes(&in_memory), 0);
        assert_eq!(changes(&open(dir.path(), StoreChoice::InMemory)), 0);
        let custom = StoreChoice::Custom(Box::new(SqliteStore::in_memory().unwrap()));
        assert_eq!(changes(&open(dir.path(), custom)), 0);
        assert_eq!(changes(&open(dir.path(), StoreChoice::StateDirectory)), 1);
    }
}
