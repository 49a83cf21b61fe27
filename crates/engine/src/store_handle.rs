//! The store of a workspace as its sessions use it: queries are answered at once, records are written in the
//! background. The caller chooses the store. Journal, locks and staged files do not depend on that choice.

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

/// Where a workspace keeps views, versions, events and tasks.
///
/// Commits are equally safe with all of them, because journal, locks and staged files are always in the state
/// directory.
#[derive(Default)]
pub enum StoreChoice {
    /// In SQLite in the state directory, which all processes share.
    #[default]
    StateDirectory,
    /// In memory. It ends with the workspace, and other processes do not see it.
    InMemory,
    /// In a store of the caller. It must belong to this root alone, because paths are relative to the root. It has each
    /// change before the reply acknowledges it; everything else follows within about 100 ms.
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
    /// In memory. It ends with the process.
    InMemory(SqliteStore),
    Custom(Box<dyn Store>),
}

/// Opens the chosen store before anything else in the state directory is used, because only the database says whether a
/// newer Surehand wrote it.
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

/// A database of a newer Surehand forbids the use of the whole directory. A damaged one does not, if it is not used.
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

/// The store of an open workspace, with its recorder.
pub(crate) struct StoreHandle {
    copy: Arc<WorkingCopy>,
    reader: StoreReader,
    /// `None` if the state is read-only.
    recorder: Option<Recorder>,
}

enum StoreReader {
    /// A connection to the database in the state directory: the recorder's, or a separate one that is opened with the
    /// first query.
    StateDirectory(Mutex<Option<Arc<Mutex<SqliteStore>>>>),
    Shared(SharedStore),
}

impl StoreHandle {
    /// Starts the recorder of a store. `housekeeping` is run now and then on its thread, and returns whether there is
    /// more to do soon.
    pub(crate) fn start(
        copy: Arc<WorkingCopy>,
        store: OpenStore,
        versions: VersionConfig,
        housekeeping: impl Fn(&IdleMoment<'_>) -> bool + Send + 'static,
    ) -> io::Result<Self> {
        let (store, safety) = prepare_store(&copy, store)?;
        let reader = match &store {
            SharedStore::Database(_) if matches!(safety, CrashSafety::Outbox(_)) => StoreReader::StateDirectory(Mutex::new(None)),
            store => StoreReader::Shared(store.clone()),
        };
        let writer = StoreWriter::new(store, versions, Some(copy.state.clone()));
        let recorder = Recorder::start(writer, safety, housekeeping)?;
        Ok(Self { copy, reader, recorder: Some(recorder) })
    }

    /// Like [`Self::start`], for a process that exits immediately: one connection, no thread.
    pub(crate) fn start_for_one_call(copy: Arc<WorkingCopy>, store: OpenStore, versions: VersionConfig) -> io::Result<Self> {
        let (store, safety) = prepare_store(&copy, store)?;
        let reader = match (&store, &safety) {
            (SharedStore::Database(database), CrashSafety::Outbox(_)) => {
                StoreReader::StateDirectory(Mutex::new(Some(database.clone())))
            }
            (store, _) => StoreReader::Shared(store.clone()),
        };
        let writer = StoreWriter::new(store, versions, Some(copy.state.clone()));
        Ok(Self { copy, reader, recorder: Some(Recorder::without_thread(writer, safety)) })
    }

    /// The database in the state directory, for queries only.
    pub(crate) fn open_read_only(copy: Arc<WorkingCopy>) -> Self {
        Self { copy, reader: StoreReader::StateDirectory(Mutex::new(None)), recorder: None }
    }

    pub(crate) fn is_in_state_directory(&self) -> bool {
        matches!(self.reader, StoreReader::StateDirectory(_))
    }

    pub(crate) fn record(&self, record: StoreRecord) {
        if let Some(recorder) = &self.recorder {
            recorder.record(record);
        }
    }

    /// Holds back new records until the value is dropped.
    pub(crate) fn hold(&self) -> Option<RecorderHold> {
        self.recorder.as_ref().map(Recorder::hold)
    }

    /// Records the text of a file, with the version that it replaced if this owner replaced it.
    pub(crate) fn record_text(&self, owner: &SessionId, path: &RelPath, replaced: Option<ContentHash>, record: StoreRecord) {
        if let Some(recorder) = &self.recorder {
            recorder.record_text(owner, path, replaced, record);
        }
    }

    /// Waits until everything recorded so far is written.
    pub(crate) fn flush(&self) {
        if let Some(recorder) = &self.recorder {
            recorder.flush();
        }
    }

    pub(crate) fn close(&mut self) {
        drop(self.recorder.take());
    }

    /// Imports records that other processes have acknowledged but not written yet into the database. Other stores do
    /// not need this: records would be lost with the store, or missing in the database.
    pub(crate) fn import_outboxes(&self) {
        if let (StoreReader::StateDirectory(reader), false) = (&self.reader, self.copy.state.is_read_only()) {
            // If the store cannot be opened, the next query reports the error.
            drop(self.with_database(reader, |store| {
                outbox::import_outboxes(&self.copy, store, OutboxOwners::All);
                Ok(())
            }));
        }
    }

    pub(crate) fn tracked_in_tree(&self, since: Option<StoreTurn>) -> Result<TrackedFiles, StoreError> {
        match &self.reader {
            StoreReader::StateDirectory(reader) => self.with_database(reader, |store| tracked_in_tree(&self.copy, store, since)),
            StoreReader::Shared(store) => tracked_in_root(&self.copy, store, since),
        }
    }

    /// Queries the store. Records that are still on their way are missing.
    pub(crate) fn ask<T>(&self, question: impl FnOnce(&dyn Store) -> Result<T, StoreError>) -> Result<T, StoreError> {
        match &self.reader {
            StoreReader::StateDirectory(reader) => self.with_database(reader, |store| question(store)),
            StoreReader::Shared(store) => store.with(|store| question(store)),
        }
    }

    /// Queries or changes the database in the state directory. Fails if the workspace has another store.
    pub(crate) fn ask_database<T>(&self, act: impl FnOnce(&mut SqliteStore) -> Result<T, StoreError>) -> Result<T, StoreError> {
        match &self.reader {
            StoreReader::StateDirectory(reader) => self.with_database(reader, act),
            StoreReader::Shared(_) => {
                let path = self.copy.state.path().unwrap_or_default().display().to_string();
                let error =
                    io::Error::new(io::ErrorKind::Unsupported, "the store of this workspace is not in the state directory");
                Err(StoreError::Backend { path, error: error.into() })
            }
        }
    }

    /// Updates the tasks, completely or not at all.
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

/// Imports pending records into the store, and decides how records of changes survive a crash.
fn prepare_store(copy: &WorkingCopy, store: OpenStore) -> io::Result<(SharedStore, CrashSafety)> {
    Ok(match store {
        OpenStore::StateDirectory(mut opened) => {
            outbox::import_outboxes(copy, &mut opened.store, OutboxOwners::Dead);
            let outbox = Outbox::new(copy.state.outbox(), process_name()?, copy.below.clone());
            (SharedStore::Database(Arc::new(Mutex::new(opened.store))), CrashSafety::Outbox(outbox))
        }
        // These use no outbox, because the next process would import it into the database.
        OpenStore::InMemory(store) => (SharedStore::Database(Arc::new(Mutex::new(store))), CrashSafety::Nothing),
        OpenStore::Custom(store) => (SharedStore::Other(Arc::new(Mutex::new(store))), CrashSafety::WriteThrough),
    })
}

/// The files of the whole work tree, from the database that all its roots share.
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

    /// Leaves the record of a change in the outbox, as a killed process does.
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
            undone: Vec::new(),
            entry: None,
        }));
    }

    #[test]
    fn records_of_a_dead_process_wait_for_the_database() {
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
