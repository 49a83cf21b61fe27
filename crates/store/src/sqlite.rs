//! The store in one SQLite file, shared by all Surehand processes of a workspace.

mod checkpoints;
mod cleaning;
pub(crate) mod database;
pub(crate) mod errors;
mod incidents;
pub(crate) mod journal_mode;
mod retention;
mod schema;
mod sessions;
mod usage;

use std::{
    borrow::Cow,
    path::{Path, PathBuf},
    time::Duration,
};

use rusqlite::{Connection, OpenFlags, OptionalExtension, Row, Transaction, TransactionBehavior, backup::Backup, params};
use serde::{Serialize, de::DeserializeOwned};
use surehand_core::{ContentHash, FileRecord, FileStatus, RelPath, Stamp, Task, TaskOwner, TaskStatus, Touch, View};

pub use self::cleaning::OldHistory;
use self::{
    database::{PATIENCE, attempt, format_of, with_ending},
    errors::failed,
    journal_mode::JournalMode,
    retention::WrittenTurn,
    schema::{FORMAT, MIGRATIONS, SCHEMA},
};
use crate::{
    ChangeId, Checkpoint, CheckpointId, CheckpointInfo, ContentDelta, EventFilter, FileEvent, Incident, KnownFile, KnownSession,
    Millis, RefusedCall, SessionId, Store, StoreBounds, StoreError, StoreRecord, StoreScope, StoreTurn, StoryTasks, TaskUpdate,
    TrackedFile, TrackedFiles,
};

/// With at most this many records, as from one call, the store first checks whether they are new.
const FEW: usize = 8;

const VIEW: &str = "SELECT view FROM views WHERE checkout = ?1 AND session = ?2 AND path = ?3";

/// A connection to the state of a workspace. Several may be open at the same time, in this process and in others.
pub struct SqliteStore {
    connection: Connection,
    path: PathBuf,
    packer: Packer,
    rows: CheckoutRows,
    turn: WrittenTurn,
    /// Whether rewriting the whole file (`VACUUM`) has not been tried yet.
    may_rewrite: bool,
}

#[derive(Debug, Clone)]
struct CheckoutRows {
    checkout: i64,
    /// The directory of the work tree that paths are relative to.
    below: Option<RelPath>,
}

impl CheckoutRows {
    /// The rows of a scope. The name of a checkout is random, so its digest is unique.
    fn of(scope: &StoreScope) -> Self {
        let digest = ContentHash::of(scope.checkout.as_bytes());
        let (number, _) = digest.as_bytes().split_first_chunk().expect("a digest has 32 bytes");
        Self { checkout: i64::from_be_bytes(*number), below: scope.below.clone() }
    }

    fn key<'a>(&self, path: &'a RelPath) -> Cow<'a, str> {
        match &self.below {
            None => Cow::Borrowed(path.as_str()),
            below => Cow::Owned(path.in_directory(below.as_ref()).into()),
        }
    }

    /// The stored form of the directory that paths are relative to; empty for the top of the work tree.
    fn directory(&self) -> &str {
        self.below.as_ref().map_or("", RelPath::as_str)
    }

    /// The path of a stored key; `None` if it is not below the directory or not a path.
    fn path(&self, key: &str) -> Option<RelPath> {
        let path = RelPath::new(key).ok()?;
        match &self.below {
            None => Some(path),
            Some(below) => path.relative_to(below),
        }
    }

    fn paths(&self, keys: Vec<String>) -> Vec<RelPath> {
        keys.iter().filter_map(|key| self.path(key)).collect()
    }

    /// The range of all stored keys below the directory; the end is excluded.
    fn range(&self) -> (String, String) {
        match &self.below {
            None => (String::new(), char::MAX.to_string()),
            // `0` is the character after `/`.
            Some(below) => (format!("{below}/"), format!("{below}0")),
        }
    }
}

/// Created on first use, because the setup takes longer than compressing a small file.
#[derive(Default)]
struct Packer(Option<zstd::bulk::Compressor<'static>>);

impl Packer {
    fn compress(&mut self, content: &[u8]) -> std::io::Result<Vec<u8>> {
        let compressor = match &mut self.0 {
            Some(compressor) => compressor,
            none => none.insert(zstd::bulk::Compressor::new(1)?),
        };
        compressor.compress(content)
    }
}

/// An opened store, and the result of opening it.
pub struct OpenedStore {
    /// The store, ready for use.
    pub store: SqliteStore,
    /// The new path of the damaged file, if one was moved aside.
    pub set_aside: Option<PathBuf>,
}

impl SqliteStore {
    /// Opens the state at this path, or creates it. A damaged file is moved aside and reported; it never causes a
    /// failure.
    pub fn open(path: &Path, scope: &StoreScope) -> Result<OpenedStore, StoreError> {
        let (store, set_aside) = database::open(path, || Self::try_open(path, scope))?;
        Ok(OpenedStore { store, set_aside })
    }

    /// Opens the state at this path read-only. Creates and changes nothing, so it also works in a read-only directory.
    /// The last writes of another process may be missing.
    pub fn open_read_only(path: &Path, scope: &StoreScope) -> Result<Self, StoreError> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_URI;
        // Readers of a write-ahead log share memory through a file, which they would have to create. A rollback journal
        // needs no such file.
        let is_shared = journal_mode::mode_of(path) != Some(JournalMode::WriteAhead) || with_ending(path, "-shm").exists();
        let address = format!("file:{}{}", percent_encoded(path), if is_shared { "" } else { "?immutable=1" });
        let connection = attempt(path, || Connection::open_with_flags(address, flags | OpenFlags::SQLITE_OPEN_NOFOLLOW))?;
        attempt(path, || connection.busy_timeout(PATIENCE))?;
        let store = Self::with_connection(connection, path, scope);
        match attempt(path, || format_of(&store.connection))? {
            FORMAT => Ok(store),
            // Its creator has not written anything yet.
            0 => Self::in_memory(),
            found if found > FORMAT => Err(StoreError::Newer { path: path.display().to_string(), found, known: FORMAT }),
            _ => store.brought_up_to_date(),
        }
    }

    /// A copy in memory, migrated to the current format. The file is not changed.
    fn brought_up_to_date(self) -> Result<Self, StoreError> {
        let connection = attempt(&self.path, || {
            let mut copy = Connection::open_in_memory()?;
            Backup::new(&self.connection, &mut copy)?.run_to_completion(i32::MAX, Duration::ZERO, None)?;
            Ok(copy)
        })?;
        let mut store = Self { connection, ..self };
        store.migrate()?;
        Ok(store)
    }

    /// A store in memory, which ends when it is dropped.
    pub fn in_memory() -> Result<Self, StoreError> {
        let path = Path::new(":memory:");
        let connection = attempt(path, Connection::open_in_memory)?;
        let mut store = Self::with_connection(connection, path, &StoreScope::default());
        store.migrate()?;
        Ok(store)
    }

    /// A number that changes whenever another connection, of this process or another, has written to the file.
    pub fn data_version(&self) -> Result<i64, StoreError> {
        attempt(&self.path, || self.connection.prepare_cached("PRAGMA data_version")?.query_row([], |row| row.get(0)))
    }

    /// Makes paths relative to this directory of the work tree.
    pub fn set_directory(&mut self, below: Option<RelPath>) {
        self.rows.below = below;
    }

    fn with_connection(connection: Connection, path: &Path, scope: &StoreScope) -> Self {
        Self {
            connection,
            path: path.to_owned(),
            packer: Packer::default(),
            rows: CheckoutRows::of(scope),
            turn: WrittenTurn::default(),
            may_rewrite: true,
        }
    }

    fn try_open(path: &Path, scope: &StoreScope) -> Result<Self, StoreError> {
        // Never follow a link, because it could lead anywhere.
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = attempt(path, || Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NOFOLLOW))?;
        let mut store = Self::with_connection(connection, path, scope);
        attempt(path, || store.set_up())?;
        store.migrate()?;
        attempt(path, || store.sync_from_now_on())?;
        // Fails if the tables are not ours. The prepared statement is kept for the first query of a view, so this costs
        // nothing.
        attempt(path, || store.connection.prepare_cached(VIEW).map(drop))?;
        Ok(store)
    }

    fn set_up(&self) -> rusqlite::Result<()> {
        if self.path.metadata().is_ok_and(|file| file.len() == 0) {
            // A database that a power cut leaves half created contains nothing of value; the next start moves it aside.
            // The first page is written in one call, so a killed process needs no journal file for it either.
            self.connection.pragma_update(None, "synchronous", "off")?;
            self.connection.pragma_update_and_check(None, "journal_mode", "memory", |_| Ok(()))?;
            // Applies to new files. Free pages can then be released without rewriting the file.
            self.connection.pragma_update(None, "auto_vacuum", "incremental")?;
        }
        journal_mode::set_journal_mode(&self.connection, &self.path, PATIENCE)?;
        self.connection.pragma_update(None, "cache_size", -1024)?;
        self.connection.set_prepared_statement_cache_capacity(32);
        Ok(())
    }

    /// Other processes rely on the file from now on. A power cut may lose the last views, but a lost view only costs
    /// another read. User files have a journal of their own.
    fn sync_from_now_on(&self) -> rusqlite::Result<()> {
        self.connection.pragma_update(None, "synchronous", "normal")
    }

    fn migrate(&mut self) -> Result<(), StoreError> {
        let steps_from = |found| if found == 0 { &[SCHEMA][..] } else { MIGRATIONS.get(found..).unwrap_or_default() };
        self.turn.is_trim_due |= database::migrate(&mut self.connection, &self.path, FORMAT, steps_from)?;
        Ok(())
    }

    /// An event that replaced this content at this path: the last one or, if an event is given, the next one after it.
    fn replacement(
        &self,
        path: &RelPath,
        version: &ContentHash,
        after: Option<i64>,
    ) -> Result<Option<ContentReplacement>, StoreError> {
        // The next one is nearly always the next row of the path, so even a long chain is followed quickly.
        let order = if after.is_some() { "ASC" } else { "DESC" };
        let sql = format!(
            "SELECT id, after, moved_to, prefix, suffix, middle FROM events
                WHERE checkout = ?4 AND path = ?1 AND before = ?2 AND id > ?3 AND after IS NOT NULL AND middle IS NOT NULL
                ORDER BY id {order} LIMIT 1"
        );
        let keys = params![self.rows.key(path), version.as_bytes(), after.unwrap_or(i64::MIN), self.rows.checkout];
        let row = self.one(&sql, keys, |row| {
            let by = ContentHash::from_bytes(row.get(1)?);
            Ok((row.get(0)?, by, row.get::<_, Option<String>>(2)?, read_delta(row, 3)?))
        })?;
        let Some((event, by, moved_to, Some(delta))) = row else { return Ok(None) };
        let path = moved_to.and_then(|path| self.rows.path(&path)).unwrap_or_else(|| path.clone());
        Ok(Some(ContentReplacement { event, path, by, delta }))
    }

    /// The compressed content of a record, if it will be written.
    fn packed(&mut self, record: &StoreRecord) -> Result<Option<Vec<u8>>, StoreError> {
        let content = match record {
            StoreRecord::Kept { version, content, .. } => (!self.has_version(version)?).then(|| content.bytes()),
            StoreRecord::Happened(event) => event.delta.as_ref().map(|delta| &delta.middle[..]),
            StoreRecord::Checkpointed(checkpoint) => {
                return checkpoints::pack(&mut self.packer, checkpoint).map(Some).map_err(|error| failed(&self.path, error));
            }
            _ => None,
        };
        content.map(|content| pack(&mut self.packer, content)).transpose().map_err(|error| failed(&self.path, error))
    }

    /// Whether these records only confirm that files are unchanged. This is true for most hooks, which then need not
    /// write or lengthen the log.
    fn knows_all(&self, records: &[StoreRecord]) -> Result<bool, StoreError> {
        for record in records {
            let is_known = match record {
                StoreRecord::Found { path, file } => {
                    let is_same = |known: KnownFile| known.version == file.version && known.stamp.agrees_with(&file.stamp);
                    self.file(path)?.is_some_and(|known| !known.stamp.is_racy() && is_same(known))
                }
                StoreRecord::Touched { path, touch, at } => {
                    attempt(&self.path, || follow(&self.connection, &self.rows, path, touch, *at))?.is_none()
                }
                _ => false,
            };
            if !is_known {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Runs several queries in one transaction, which takes its locks once.
    fn at_once<T>(&self, queries: impl FnOnce() -> Result<T, StoreError>) -> Result<T, StoreError> {
        let transaction = attempt(&self.path, || self.connection.unchecked_transaction())?;
        let results = queries()?;
        attempt(&self.path, || transaction.commit())?;
        Ok(results)
    }

    fn one<T>(
        &self,
        sql: &str,
        keys: impl rusqlite::Params,
        read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Option<T>, StoreError> {
        attempt(&self.path, || self.connection.prepare_cached(sql)?.query_row(keys, read).optional())
    }

    fn all<T>(
        &self,
        sql: &str,
        keys: impl rusqlite::Params,
        read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>, StoreError> {
        attempt(&self.path, || self.connection.prepare_cached(sql)?.query_map(keys, read)?.collect())
    }
}

impl Store for SqliteStore {
    fn record(&mut self, records: &[StoreRecord]) -> Result<(), StoreError> {
        if records.len() <= FEW && self.at_once(|| self.knows_all(records))? {
            return Ok(());
        }
        // Compress before the transaction, because no other process can write during it.
        let packed = records.iter().map(|record| self.packed(record)).collect::<Result<Vec<_>, _>>()?;
        let turn = attempt(&self.path, || {
            let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let turn = retention::begin_turn(&transaction, self.rows.checkout, records)?;
            for (record, packed) in records.iter().zip(packed) {
                write_record(&transaction, &self.rows, &mut self.packer, turn.number, record, packed)?;
            }
            let turn = turn.end(&transaction)?;
            transaction.commit()?;
            Ok(turn)
        })?;
        self.turn = turn.after(&self.turn);
        Ok(())
    }

    fn view(&self, session: &SessionId, path: &RelPath) -> Result<Option<View>, StoreError> {
        let keys = params![self.rows.checkout, session.0, self.rows.key(path)];
        let view = self.one(VIEW, keys, |row| row.get::<_, String>(0))?;
        // An unreadable view counts as none; the file is read again.
        Ok(view.and_then(|view| serde_json::from_str(&view).ok()))
    }

    fn views(&self, session: &SessionId, paths: &[RelPath]) -> Result<Vec<Option<View>>, StoreError> {
        self.at_once(|| paths.iter().map(|path| self.view(session, path)).collect())
    }

    fn viewed_paths(&self, session: &SessionId) -> Result<Vec<RelPath>, StoreError> {
        let sql = "SELECT path FROM views WHERE checkout = ?1 AND session = ?2 AND path >= ?3 AND path < ?4 ORDER BY path";
        let (from, to) = self.rows.range();
        Ok(self.rows.paths(self.all(sql, params![self.rows.checkout, session.0, from, to], |row| row.get(0))?))
    }

    fn lately_viewed(&self, session: &SessionId, limit: usize) -> Result<Vec<RelPath>, StoreError> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let sql =
            "SELECT path FROM views INDEXED BY views_by_turn WHERE checkout = ?1 AND session = ?2 AND path >= ?3 AND path < ?4
            ORDER BY turn DESC LIMIT ?5";
        let (from, to) = self.rows.range();
        Ok(self.rows.paths(self.all(sql, params![self.rows.checkout, session.0, from, to, limit], |row| row.get(0))?))
    }

    fn sessions(&self) -> Result<Vec<(SessionId, usize)>, StoreError> {
        let sql = "SELECT session, COUNT(*) FROM views WHERE checkout = ?1 AND path >= ?2 AND path < ?3 GROUP BY session ORDER BY session";
        let (from, to) = self.rows.range();
        self.all(sql, params![self.rows.checkout, from, to], |row| {
            Ok((SessionId(row.get(0)?), usize::try_from(row.get::<_, i64>(1)?).unwrap_or_default()))
        })
    }

    fn known_sessions(&self) -> Result<Vec<KnownSession>, StoreError> {
        sessions::list(self)
    }

    fn given(&self, session: &SessionId) -> Result<Vec<(RelPath, ContentHash)>, StoreError> {
        let sql = "SELECT path, version FROM given WHERE checkout = ?1 AND session = ?2 ORDER BY path";
        let given = self.all(sql, params![self.rows.checkout, session.0], |row| {
            Ok((row.get::<_, String>(0)?, ContentHash::from_bytes(row.get(1)?)))
        })?;
        Ok(given.into_iter().filter_map(|(path, version)| Some((self.rows.path(&path)?, version))).collect())
    }

    fn file(&self, path: &RelPath) -> Result<Option<KnownFile>, StoreError> {
        let sql = "SELECT version, device, inode, size, modified, changed, taken FROM files WHERE checkout = ?1 AND path = ?2";
        self.one(sql, params![self.rows.checkout, self.rows.key(path)], read_file)
    }

    fn files(&self, paths: &[RelPath]) -> Result<Vec<Option<KnownFile>>, StoreError> {
        // For this many paths, reading the whole table is faster than a lookup for each.
        const MANY: usize = 10_000;
        if paths.len() < MANY {
            return self.at_once(|| paths.iter().map(|path| self.file(path)).collect());
        }
        let sql =
            "SELECT version, device, inode, size, modified, changed, taken, path FROM files WHERE checkout = ?1 ORDER BY path";
        let all = self.all(sql, [self.rows.checkout], |row| Ok((row.get::<_, String>(7)?, read_file(row)?)))?;
        // The rows are sorted by bytes, like the table's key.
        let find = |path: &RelPath| all.binary_search_by(|(key, _)| key.as_str().cmp(&self.rows.key(path))).ok();
        Ok(paths.iter().map(|path| find(path).map(|at| all[at].1.clone())).collect())
    }

    fn paths_of(&self, stamp: &Stamp) -> Result<Vec<RelPath>, StoreError> {
        let sql = "SELECT path FROM files WHERE checkout = ?1 AND inode = ?2 AND device = ?3 ORDER BY path";
        let keys = params![self.rows.checkout, stamp.inode as i64, stamp.device as i64];
        Ok(self.rows.paths(self.all(sql, keys, |row| row.get(0))?))
    }

    fn version(&self, version: &ContentHash) -> Result<Option<Vec<u8>>, StoreError> {
        let sql = "SELECT packed FROM versions WHERE version = ?1";
        let Some(packed) = self.one(sql, params![version.as_bytes()], |row| row.get::<_, Vec<u8>>(0))? else { return Ok(None) };
        // Damaged data gives content with another hash, which counts as missing.
        Ok(unpack(packed).filter(|content| ContentHash::of(content) == *version))
    }

    fn has_version(&self, version: &ContentHash) -> Result<bool, StoreError> {
        let sql = "SELECT 1 FROM versions WHERE version = ?1";
        Ok(self.one(sql, params![version.as_bytes()], |_| Ok(()))?.is_some())
    }

    fn replaced_content(&self, path: &RelPath, version: &ContentHash) -> Result<Option<Vec<u8>>, StoreError> {
        let (mut path, mut next, mut event) = (path.clone(), *version, None);
        let mut deltas = Vec::new();
        // The content that replaced it may have been replaced in turn, until one is stored in full. Each replacement is
        // later than the previous one, so the loop ends.
        let mut content = loop {
            if let Some(content) = self.version(&next)? {
                break content;
            }
            let Some(replacement) = self.replacement(&path, &next, event)? else { return Ok(None) };
            (path, next, event) = (replacement.path, replacement.by, Some(replacement.event));
            deltas.push(replacement.delta);
        };
        for delta in deltas.iter().rev() {
            let Some(before) = delta.apply(&content) else { return Ok(None) };
            content = before;
        }
        Ok(Some(content).filter(|content| ContentHash::of(content) == *version))
    }

    fn refused_calls(&self, session: &SessionId) -> Result<Vec<RefusedCall>, StoreError> {
        let sql = "SELECT call, path, count FROM refused WHERE checkout = ?1 AND session = ?2 ORDER BY call";
        self.all(sql, params![self.rows.checkout, session.0], |row| {
            let path = row.get::<_, Option<String>>(1)?.and_then(|path| self.rows.path(&path));
            Ok(RefusedCall { call: ContentHash::from_bytes(row.get(0)?), path, count: row.get(2)? })
        })
    }

    fn rewrite_count(&self, session: &SessionId, path: &RelPath) -> Result<u32, StoreError> {
        let sql = "SELECT count FROM rewrites WHERE checkout = ?1 AND session = ?2 AND path = ?3";
        let keys = params![self.rows.checkout, session.0, self.rows.key(path)];
        Ok(self.one(sql, keys, |row| row.get(0))?.unwrap_or_default())
    }

    fn events(&self, which: &EventFilter, limit: usize) -> Result<Vec<FileEvent>, StoreError> {
        // Events of one file are found through indexes; all others by a scan from the newest on. The `+` keeps SQLite
        // from using an index for the other conditions, because it would then have to sort.
        let about_path = match which.path {
            Some(_) => {
                "id IN (SELECT id FROM events WHERE checkout = ?5 AND path = ?2
                    UNION ALL SELECT id FROM events WHERE checkout = ?5 AND moved_to = ?2)"
            }
            None => "?2 IS NULL",
        };
        let delta = if which.with_deltas { "prefix, suffix, middle" } else { "NULL, NULL, NULL" };
        let sql = format!(
            "SELECT change, at, session, tool, path, moved_to, before, after, mode, undoes, lines, undone, entry, {delta} FROM events
            WHERE {about_path} AND +checkout = ?5 AND +path >= ?6 AND +path < ?7
            AND (?1 IS NULL OR session = ?1) AND (?3 IS NULL OR change = ?3) ORDER BY id DESC LIMIT ?4"
        );
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let (from, to) = self.rows.range();
        let keys = params![
            which.session.as_ref().map(|session| &session.0),
            which.path.as_ref().map(|path| self.rows.key(path)),
            which.change.as_ref().map(|id| &id.0),
            limit,
            self.rows.checkout,
            from,
            to
        ];
        let hash = |bytes: Option<[u8; 32]>| bytes.map(ContentHash::from_bytes);
        let events = self.all(&sql, keys, |row| {
            let Some(path) = self.rows.path(&row.get::<_, String>(4)?) else { return Ok(None) };
            let moved_to = row.get::<_, Option<String>>(5)?;
            let Some(moved_to) = moved_to.map(|path| self.rows.path(&path)).map_or(Some(None), |path| path.map(Some)) else {
                // It was moved out of this root.
                return Ok(None);
            };
            Ok(Some(FileEvent {
                change: ChangeId(row.get(0)?),
                at: row.get(1)?,
                session: SessionId(row.get(2)?),
                tool: row.get(3)?,
                path,
                moved_to,
                before: hash(row.get(6)?),
                after: hash(row.get(7)?),
                mode: row.get(8)?,
                undoes: row
                    .get::<_, Option<String>>(9)?
                    .map(|ids| ids.split(' ').map(|id| ChangeId(id.to_owned())).collect())
                    .unwrap_or_default(),
                delta: read_delta(row, 13)?,
                // Unreadable line maps are dropped.
                lines: row.get::<_, Option<String>>(10)?.and_then(|lines| lines.parse().ok()),
                undone: read_json(row, 11)?.unwrap_or_default(),
                entry: read_json(row, 12)?,
            }))
        })?;
        Ok(events.into_iter().flatten().collect())
    }

    fn checkpoints(&self, limit: usize) -> Result<Vec<CheckpointInfo>, StoreError> {
        checkpoints::list(self, limit)
    }

    fn checkpoint(&self, id: &CheckpointId) -> Result<Option<Checkpoint>, StoreError> {
        checkpoints::read(self, id)
    }

    fn incidents(&self, limit: usize) -> Result<Vec<Incident>, StoreError> {
        incidents::list(self, limit)
    }

    fn story_tasks(&self, story: Option<&str>) -> Result<StoryTasks, StoreError> {
        let checkout = self.rows.checkout;
        self.at_once(|| {
            let begun = || self.one("SELECT id FROM story WHERE checkout = ?1", [checkout], |row| row.get(0));
            let story = match story {
                Some(story) => story.to_owned(),
                None => begun()?.unwrap_or_default(),
            };
            let sql = "SELECT id, description, status, priority, story, owner FROM tasks
                WHERE checkout = ?1 AND NOT removed AND (story = ?2 OR status IN ('pending', 'in_progress')) ORDER BY id";
            let tasks = self.all(sql, params![checkout, story], read_task)?;
            Ok(StoryTasks { story, tasks })
        })
    }

    fn update_tasks(&mut self, change: &TaskUpdate) -> Result<StoryTasks, StoreError> {
        attempt(&self.path, || {
            let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            match change_tasks(&transaction, self.rows.checkout, change)? {
                Ok(()) => transaction.commit().map(Ok),
                refused => Ok(refused),
            }
        })??;
        self.story_tasks(change.story.as_deref())
    }

    fn tracked(&self, since: Option<StoreTurn>) -> Result<TrackedFiles, StoreError> {
        const COLUMNS: &str =
            "SELECT files.version, files.device, files.inode, files.size, files.modified, files.changed, files.taken,
            tracked.path, tracked.version, tracked.status, tracked.changed_outside, tracked.at FROM tracked";
        const WHICH: &str = "LEFT JOIN files ON files.checkout = tracked.checkout AND files.path = tracked.path
            WHERE tracked.checkout = ?1 AND tracked.path >= ?2 AND tracked.path < ?3";
        let (from, to) = self.rows.range();
        let read = |row: &Row<'_>| {
            let Some(path) = self.rows.path(&row.get::<_, String>(7)?) else { return Ok(None) };
            let tracked = read_tracked(row, 8)?;
            let known = row.get::<_, Option<[u8; 32]>>(0)?.map(|_| read_file(row)).transpose()?;
            let stamp = known.filter(|known| known.version == tracked.version).map(|known| known.stamp);
            Ok(Some(TrackedFile { path, tracked, stamp }))
        };
        self.at_once(|| {
            let turn = self.one("SELECT turn FROM counters", [], |row| row.get(0))?.unwrap_or_default();
            let files = match since {
                Some(StoreTurn(since)) => {
                    let sql = format!("{COLUMNS} INDEXED BY tracked_by_turn {WHICH} AND tracked.turn > ?4 ORDER BY tracked.path");
                    self.all(&sql, params![self.rows.checkout, from, to, since], read)?
                }
                None => {
                    let sql = format!("{COLUMNS} {WHICH} ORDER BY tracked.path");
                    self.all(&sql, params![self.rows.checkout, from, to], read)?
                }
            };
            Ok(TrackedFiles { files: files.into_iter().flatten().collect(), turn: StoreTurn(turn) })
        })
    }

    fn trim(&mut self, bounds: &StoreBounds) -> Result<bool, StoreError> {
        attempt(&self.path, || retention::trim(&mut self.connection, bounds, &mut self.turn))
    }

    fn release_space(&mut self) -> Result<bool, StoreError> {
        attempt(&self.path, || retention::release_space(&self.connection, &mut self.may_rewrite))
    }
}

fn write_record(
    transaction: &Transaction<'_>,
    rows: &CheckoutRows,
    packer: &mut Packer,
    turn: i64,
    record: &StoreRecord,
    packed: Option<Vec<u8>>,
) -> rusqlite::Result<()> {
    let run = |sql: &str, values: &[&dyn rusqlite::ToSql]| transaction.prepare_cached(sql)?.execute(values).map(drop);
    let checkout = rows.checkout;
    match record {
        StoreRecord::Viewed { session, path, view } => {
            let view = serde_json::to_string(view).expect("plain data can be serialized");
            let sql = "INSERT OR REPLACE INTO views (checkout, session, path, view, turn) VALUES (?1, ?2, ?3, ?4,
                (SELECT COALESCE(MAX(turn), 0) + 1 FROM views WHERE checkout = ?1 AND session = ?2))";
            run(sql, params![checkout, session.0, rows.key(path), view])
        }
        StoreRecord::Given { session, path, version } => {
            let sql = "INSERT OR REPLACE INTO given VALUES (?1, ?2, ?3, ?4)";
            run(sql, params![checkout, session.0, rows.key(path), version.as_bytes()])
        }
        StoreRecord::Forgot { session, path } => {
            for table in ["views", "given"] {
                let sql = format!("DELETE FROM {table} WHERE checkout = ?1 AND session = ?2 AND path = ?3");
                run(&sql, params![checkout, session.0, rows.key(path)])?;
            }
            Ok(())
        }
        StoreRecord::Cleared { session } => {
            for table in ["views", "given", "refused", "rewrites"] {
                run(&format!("DELETE FROM {table} WHERE checkout = ?1 AND session = ?2"), params![checkout, session.0])?;
            }
            Ok(())
        }
        StoreRecord::Found { path, file } => {
            let stamp = file.stamp;
            run(
                "INSERT OR REPLACE INTO files VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
                params![
                    checkout,
                    rows.key(path),
                    file.version.as_bytes(),
                    stamp.device as i64,
                    stamp.inode as i64,
                    stamp.size as i64,
                    stamp.modified,
                    stamp.changed,
                    stamp.taken
                ],
            )
        }
        // The session is recorded with the turn.
        StoreRecord::InUse { .. } => Ok(()),
        StoreRecord::Kept { version, content, .. } => keep(transaction, version, turn, || match packed {
            Some(packed) => Ok(packed),
            // It existed before the transaction, but has been deleted since.
            None => pack(packer, content.bytes()).map_err(not_packed),
        }),
        StoreRecord::Touched { path, touch, at } => track(transaction, rows, turn, path, touch, *at),
        StoreRecord::Happened(event) => {
            for (path, touch) in event.touches() {
                track(transaction, rows, turn, path, &touch, event.at)?;
            }
            let hash = |version: &Option<ContentHash>| version.map(|version| *version.as_bytes());
            let delta = event.delta.as_ref();
            run(
                "INSERT INTO events
                    (change, at, session, tool, path, moved_to, before, after, mode, undoes, prefix, suffix, middle, checkout, lines, turn,
                    undone, entry)
                    SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18 WHERE NOT EXISTS
                        (SELECT 1 FROM events INDEXED BY events_by_change WHERE change = ?1 AND checkout = ?14 AND path = ?5
                        AND moved_to IS ?6 AND before IS ?7 AND after IS ?8)",
                params![
                    event.change.0,
                    event.at,
                    event.session.0,
                    event.tool,
                    rows.key(&event.path),
                    event.moved_to.as_ref().map(|path| rows.key(path)),
                    hash(&event.before),
                    hash(&event.after),
                    event.mode,
                    joined(&event.undoes),
                    delta.map(|delta| delta.prefix as i64),
                    delta.map(|delta| delta.suffix as i64),
                    packed,
                    checkout,
                    event.lines.as_ref().map(ToString::to_string),
                    turn,
                    (!event.undone.is_empty()).then(|| as_json(&event.undone)),
                    event.entry.as_ref().map(as_json)
                ],
            )
        }
        StoreRecord::Checkpointed(checkpoint) => {
            checkpoints::write(transaction, rows, turn, checkpoint, packed.unwrap_or_default())
        }
        StoreRecord::Noticed(incident) => incidents::write(transaction, rows, turn, incident),
        StoreRecord::StillSo { checkpoint, at, took } => {
            let sql = "UPDATE checkpoints SET until = max(until, ?3), took = ?4 WHERE checkout = ?1 AND id = ?2";
            run(sql, params![checkout, checkpoint.0, at, took])
        }
        StoreRecord::Refused { session, refused } => run(
            "INSERT OR REPLACE INTO refused VALUES (?1, ?2, ?3, ?4, ?5)",
            params![
                checkout,
                session.0,
                refused.call.as_bytes(),
                refused.path.as_ref().map(|path| rows.key(path)),
                refused.count
            ],
        ),
        StoreRecord::Mended { session, path } => {
            let sql = "DELETE FROM refused WHERE checkout = ?1 AND session = ?2 AND path = ?3";
            run(sql, params![checkout, session.0, rows.key(path)])
        }
        StoreRecord::Rewrote { session, path, count } => {
            let sql = "INSERT OR REPLACE INTO rewrites VALUES (?1, ?2, ?3, ?4)";
            run(sql, params![checkout, session.0, rows.key(path), count])
        }
    }
}

fn track(
    transaction: &Transaction<'_>,
    rows: &CheckoutRows,
    turn: i64,
    path: &RelPath,
    touch: &Touch,
    at: Millis,
) -> rusqlite::Result<()> {
    let Some(next) = follow(transaction, rows, path, touch, at)? else { return Ok(()) };
    let status = file_status_name(next.status);
    transaction
        .prepare_cached("INSERT OR REPLACE INTO tracked VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)")?
        .execute(params![rows.checkout, rows.key(path), next.version.as_bytes(), status, next.changed_outside, next.at, turn])
        .map(drop)
}

/// The state of a file after a touch; `None` if the touch changes nothing.
fn follow(
    connection: &Connection,
    rows: &CheckoutRows,
    path: &RelPath,
    touch: &Touch,
    at: Millis,
) -> rusqlite::Result<Option<FileRecord>> {
    let sql = "SELECT version, status, changed_outside, at FROM tracked WHERE checkout = ?1 AND path = ?2";
    let known = |path: &RelPath| {
        let keys = params![rows.checkout, rows.key(path)];
        connection.prepare_cached(sql)?.query_row(keys, |row| read_tracked(row, 0)).optional()
    };
    let from = match touch {
        Touch::Moved { from, .. } => known(from)?,
        _ => None,
    };
    Ok(FileRecord::after(known(path)?, touch, at, |_| from))
}

fn read_tracked(row: &Row<'_>, column: usize) -> rusqlite::Result<FileRecord> {
    let status = match row.get_ref(column + 1)?.as_str()? {
        "created" => FileStatus::Created,
        "modified" => FileStatus::Modified,
        "deleted" => FileStatus::Deleted,
        _ => FileStatus::Unchanged,
    };
    let version = ContentHash::from_bytes(row.get(column)?);
    Ok(FileRecord { version, status, changed_outside: row.get(column + 2)?, at: row.get(column + 3)? })
}

fn file_status_name(status: FileStatus) -> &'static str {
    match status {
        FileStatus::Created => "created",
        FileStatus::Modified => "modified",
        FileStatus::Unchanged => "unchanged",
        FileStatus::Deleted => "deleted",
    }
}

fn change_tasks(transaction: &Transaction<'_>, checkout: i64, change: &TaskUpdate) -> rusqlite::Result<Result<(), StoreError>> {
    let begun = || transaction.query_row("SELECT id FROM story WHERE checkout = ?1", [checkout], |row| row.get(0)).optional();
    let here: String = match &change.story {
        Some(story) => story.clone(),
        None => begun()?.unwrap_or_default(),
    };
    for id in change.set.iter().map(|task| task.id).chain(change.remove.iter().copied()) {
        let sql = "SELECT owner, story FROM tasks WHERE checkout = ?1 AND id = ?2 AND NOT removed";
        let read = |row: &Row<'_>| Ok((row.get::<_, Option<String>>(0)?.map(TaskOwner::from), row.get::<_, String>(1)?));
        let Some((owner, story)) = transaction.query_row(sql, params![checkout, id], read).optional()? else {
            return Ok(Err(StoreError::NoSuchTask { id }));
        };
        match owner {
            Some(owner) if TaskOwner::is_others(Some(&owner), change.by.as_ref()) => {
                return Ok(Err(StoreError::TaskOfOthers { id, whose: owner.to_string() }));
            }
            // A model must not close a person's task of another story.
            None if change.by.is_some() && !story.is_empty() && story != here => {
                return Ok(Err(StoreError::TaskOfOthers { id, whose: format!("story {story}") }));
            }
            _ => {}
        }
    }
    for task in &change.set {
        let sql = "UPDATE tasks SET status = coalesce(?2, status), description = coalesce(?3, description),
            priority = coalesce(?4, priority) WHERE checkout = ?5 AND id = ?1";
        transaction
            .execute(sql, params![task.id, task.status.map(TaskStatus::name), task.description, task.priority, checkout])?;
    }
    for id in &change.remove {
        transaction.execute("UPDATE tasks SET removed = 1 WHERE checkout = ?1 AND id = ?2", params![checkout, id])?;
    }
    if let (Some(story), true) = (&change.story, change.begins_story) {
        if !matches!(change.by, Some(TaskOwner::Run(_))) {
            let sql = "UPDATE tasks SET story = ?2 WHERE checkout = ?1 AND story = ''
                AND NOT EXISTS (SELECT 1 FROM story WHERE checkout = ?1 AND id <> '')";
            transaction.execute(sql, params![checkout, story])?;
        }
        transaction.execute("INSERT OR REPLACE INTO story VALUES (?1, ?2)", params![checkout, story])?;
    }
    for (description, priority) in &change.add {
        let sql = "INSERT INTO tasks (checkout, id, description, status, priority, story, owner)
            SELECT ?3, (SELECT coalesce(max(id), 0) + 1 FROM tasks WHERE checkout = ?3), ?1, 'pending',
                coalesce(?2, (SELECT min(max(priority) + 1, 4294967295) FROM tasks WHERE checkout = ?3 AND story = ?4 AND NOT removed), 1), ?4, ?5";
        let owner = change.by.as_ref().map(ToString::to_string);
        transaction.execute(sql, params![description, priority, checkout, here, owner])?;
    }
    Ok(Ok(()))
}

fn read_task(row: &Row<'_>) -> rusqlite::Result<Task> {
    Ok(Task {
        id: row.get(0)?,
        description: row.get(1)?,
        status: TaskStatus::named(row.get_ref(2)?.as_str()?).unwrap_or(TaskStatus::Pending),
        priority: u32::try_from(row.get::<_, i64>(3)?.max(0)).unwrap_or(u32::MAX),
        story: row.get(4)?,
        owner: row.get::<_, Option<String>>(5)?.map(TaskOwner::from),
    })
}

/// The ids separated by blanks; `None` if there are none.
fn joined(ids: &[ChangeId]) -> Option<String> {
    (!ids.is_empty()).then(|| ids.iter().map(|id| id.0.as_str()).collect::<Vec<_>>().join(" "))
}

/// Stores a content. An existing one is only marked as used.
fn keep(
    transaction: &Transaction<'_>,
    version: &ContentHash,
    turn: i64,
    pack: impl FnOnce() -> rusqlite::Result<Vec<u8>>,
) -> rusqlite::Result<()> {
    let touched = transaction
        .prepare_cached("UPDATE versions SET used_at = max(used_at, ?2) WHERE version = ?1")?
        .execute(params![version.as_bytes(), turn])?;
    if touched > 0 {
        return Ok(());
    }
    let packed = pack()?;
    transaction
        .prepare_cached("INSERT INTO versions VALUES (?1, ?2, ?3, ?4)")?
        .execute(params![version.as_bytes(), packed.len() as i64, turn, packed])
        .map(drop)
}

fn not_packed(error: std::io::Error) -> rusqlite::Error {
    rusqlite::Error::ToSqlConversionFailure(Box::new(error))
}

fn read_file(row: &Row<'_>) -> rusqlite::Result<KnownFile> {
    let stamp = Stamp {
        device: row.get::<_, i64>(1)? as u64,
        inode: row.get::<_, i64>(2)? as u64,
        size: row.get::<_, i64>(3)? as u64,
        modified: row.get(4)?,
        changed: row.get(5)?,
        taken: row.get(6)?,
    };
    Ok(KnownFile { version: ContentHash::from_bytes(row.get(0)?), stamp })
}

/// A delta from three columns; `None` if it cannot be decompressed.
fn read_delta(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<ContentDelta>> {
    let length = |column| row.get::<_, Option<i64>>(column).map(|length| length.unwrap_or_default() as usize);
    let (prefix, suffix) = (length(column)?, length(column + 1)?);
    let middle = row.get::<_, Option<Vec<u8>>>(column + 2)?.and_then(unpack);
    Ok(middle.map(|middle| ContentDelta { prefix, suffix, middle }))
}

fn as_json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("plain data can be serialized")
}

/// A JSON value from a column; `None` if it cannot be parsed.
fn read_json<T: DeserializeOwned>(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<T>> {
    Ok(row.get::<_, Option<String>>(column)?.and_then(|json| serde_json::from_str(&json).ok()))
}

struct ContentReplacement {
    event: i64,
    /// The path of the file at the time of the event.
    path: RelPath,
    by: ContentHash,
    delta: ContentDelta,
}

const PLAIN: u8 = 0;
const ZSTD: u8 = 1;
/// Smaller contents hardly shrink.
const PACK_FROM: usize = 512;

/// The packed form: a byte for the compression, then the content.
fn pack(packer: &mut Packer, content: &[u8]) -> std::io::Result<Vec<u8>> {
    let (how, body) = if content.len() < PACK_FROM { (PLAIN, content.to_vec()) } else { (ZSTD, packer.compress(content)?) };
    Ok([&[how], &body[..]].concat())
}

fn unpack(packed: Vec<u8>) -> Option<Vec<u8>> {
    match packed.split_first()? {
        (&PLAIN, body) => Some(body.to_vec()),
        (&ZSTD, body) => zstd::stream::decode_all(body).ok(),
        _ => None,
    }
}

/// Escapes a path for a URI: SQLite splits it at `?` and `#`.
fn percent_encoded(path: &Path) -> String {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"/-_.~".contains(byte);
    let encode = |byte: &u8| if plain(byte) { char::from(*byte).to_string() } else { format!("%{byte:02X}") };
    path.as_os_str().as_encoded_bytes().iter().map(encode).collect()
}
