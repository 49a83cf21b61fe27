//! The part of a store that the repository state needs.

use surehand_store::{StoreError, StoreRecord, StoreTurn, StoryTasks, TrackedFiles};

use crate::{
    disk::working_copy::WorkingCopy,
    outbox::{self, OutboxOwners},
    recorder::{SharedStore, lock_store},
    store_handle::{StoreHandle, tracked_in_root, tracked_in_tree},
};

/// The store, as the repository state uses it. Paths are relative to the work tree.
pub(crate) trait RepoStore {
    /// Makes sure that the store has everything that any process has acknowledged.
    fn import_acknowledged(&self);

    fn tracked(&self, since: Option<StoreTurn>) -> Result<TrackedFiles, StoreError>;

    /// The tasks of this story; `None` means the current one.
    fn story_tasks(&self, story: Option<&str>) -> Result<StoryTasks, StoreError>;

    /// Writes a record, whose path is relative to the root.
    fn record(&self, record: StoreRecord);
}

impl RepoStore for StoreHandle {
    fn import_acknowledged(&self) {
        self.flush();
        self.import_outboxes();
    }

    fn tracked(&self, since: Option<StoreTurn>) -> Result<TrackedFiles, StoreError> {
        self.tracked_in_tree(since)
    }

    fn story_tasks(&self, story: Option<&str>) -> Result<StoryTasks, StoreError> {
        self.ask(|store| store.story_tasks(story))
    }

    fn record(&self, record: StoreRecord) {
        self.record(record);
    }
}

/// The store of the writer thread, which must not wait for records that it has to write itself.
pub(crate) struct WritersStore<'a> {
    pub copy: &'a WorkingCopy,
    pub store: &'a SharedStore,
    /// Whether the store is the database in the state directory.
    pub is_in_state_directory: bool,
}

impl RepoStore for WritersStore<'_> {
    fn import_acknowledged(&self) {
        if let (SharedStore::Database(store), true) = (self.store, self.is_in_state_directory) {
            outbox::import_outboxes(self.copy, &mut lock_store(store), OutboxOwners::All);
        }
    }

    fn tracked(&self, since: Option<StoreTurn>) -> Result<TrackedFiles, StoreError> {
        match self.store {
            SharedStore::Database(store) if self.is_in_state_directory => {
                tracked_in_tree(self.copy, &mut lock_store(store), since)
            }
            store => tracked_in_root(self.copy, store, since),
        }
    }

    fn story_tasks(&self, story: Option<&str>) -> Result<StoryTasks, StoreError> {
        self.store.with(|store| store.story_tasks(story))
    }

    fn record(&self, _: StoreRecord) {
        // A change by another program is found again by the next process that checks.
    }
}
