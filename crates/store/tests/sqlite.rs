//! The SQLite backend keeps the contract, and handles files in an unexpected state.
#![expect(clippy::disallowed_methods, reason = "tests damage files on purpose")]

use std::{
    fs,
    path::{Path, PathBuf},
};

use surehand_core::{ContentHash, FileStatus, RelPath, Stamp, Text, View};
use surehand_store::{
    ChangeId, EventFilter, FileEvent, KnownFile, SessionId, SharedBytes, SqliteStore, Store, StoreBounds, StoreError,
    StoreRecord, StoreScope, contract,
};
use surehand_testkit::Mounted;

#[test]
fn sqlite_keeps_the_contract() {
    let dir = tempfile::tempdir().unwrap();
    contract::check(|| SqliteStore::open(&dir.path().join("state.db"), &StoreScope::default()).unwrap().store);
    contract::check_persistence(|| SqliteStore::open(&dir.path().join("other.db"), &StoreScope::default()).unwrap().store);
}

#[test]
fn a_damaged_file_is_set_aside_and_reported() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("state.db");
    for garbage in [&b"this is no database, and long enough to be looked at"[..], &[0xff; 8192]] {
        fs::write(&path, garbage).unwrap();
        let opened = SqliteStore::open(&path, &StoreScope::default()).unwrap();
        assert_eq!(fs::read(opened.set_aside.expect("reported")).unwrap(), garbage);
        assert_eq!(opened.store.events(&EventFilter::default(), 1).unwrap(), []);
        drop(opened.store);
    }
}

#[test]
fn a_half_written_file_is_set_aside_and_reported() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("state.db");
    let mut store = SqliteStore::open(&path, &StoreScope::default()).unwrap().store;
    for number in 0..200 {
        let text = Text::new(format!("{number}\n").into_bytes()).unwrap();
        let path = RelPath::new(&format!("file-{number}")).unwrap();
        store.record(&[StoreRecord::Viewed { session: SessionId("s".into()), path, view: View::whole(&text) }]).unwrap();
    }
    drop(store);
    let whole = fs::read(&path).unwrap();
    fs::write(&path, &whole[..whole.len() / 2]).unwrap();
    // Wherever the damage is noticed, a working state exists afterwards.
    let mut opened = SqliteStore::open(&path, &StoreScope::default()).unwrap();
    let text = Text::new(b"after\n".to_vec()).unwrap();
    let record =
        StoreRecord::Viewed { session: SessionId("s".into()), path: RelPath::new("after").unwrap(), view: View::whole(&text) };
    let recorded = opened.store.record(std::slice::from_ref(&record));
    assert!(opened.set_aside.is_some() || recorded.is_err(), "unnoticed damage");
    drop(opened);
    if recorded.is_err() {
        fs::remove_file(&path).unwrap();
    }
    SqliteStore::open(&path, &StoreScope::default()).unwrap().store.record(&[record]).unwrap();
}

#[test]
fn a_state_of_a_newer_version_is_refused_and_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("state.db");
    drop(SqliteStore::open(&path, &StoreScope::default()).unwrap());
    let newer = rusqlite::Connection::open(&path).unwrap();
    newer.pragma_update(None, "user_version", 99).unwrap();
    drop(newer);
    let Err(error) = SqliteStore::open(&path, &StoreScope::default()) else { panic!("opened a newer state") };
    assert!(matches!(error, StoreError::Newer { found: 99, .. }));
    assert!(error.to_string().contains("newer surehand"), "{error}");
}

#[test]
fn many_may_start_at_once() {
    for _ in 0..20 {
        let dir = tempfile::tempdir().unwrap();
        start_many_at_once(dir.path());
    }
}

fn start_many_at_once(dir: &Path) {
    let path = dir.join("many.db");
    std::thread::scope(|scope| {
        for number in 0..8 {
            let path = &path;
            scope.spawn(move || {
                let mut store = SqliteStore::open(path, &StoreScope::default()).unwrap().store;
                let content = vec![number; 100];
                let kept = StoreRecord::Kept { version: ContentHash::of(&content), content: SharedBytes::new(content), at: 1 };
                store.record(&[kept]).unwrap();
            });
        }
    });
    let store = SqliteStore::open(&path, &StoreScope::default()).unwrap().store;
    for number in 0..8 {
        assert!(store.version(&ContentHash::of(&[number; 100])).unwrap().is_some());
    }
}

/// The records of one checkout are invisible to another, and a directory of a checkout sees the records below it.
#[test]
fn checkouts_share_a_file_and_nothing_else_but_versions() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("state.db");
    let open = |checkout: &str, below: Option<&str>| {
        let below = below.map(|below| RelPath::new(below).unwrap());
        SqliteStore::open(&path, &StoreScope { checkout: checkout.to_owned(), below }).unwrap().store
    };
    contract::check(|| open("one", None));
    contract::check(|| open("two", Some("some/directory")));
    let (session, file) = (SessionId("s".into()), |path: &str| RelPath::new(path).unwrap());
    let view = View::whole(&Text::new(b"x\n".to_vec()).unwrap());
    let viewed = |path: &str| StoreRecord::Viewed { session: session.clone(), path: file(path), view: view.clone() };
    open("three", None).record(&[viewed("package/a"), viewed("package-b/c"), viewed("d")]).unwrap();
    let below = open("three", Some("package"));
    assert_eq!(below.viewed_paths(&session).unwrap(), [file("a")]);
    assert_eq!(below.view(&session, &file("a")).unwrap(), Some(view));
    assert_eq!(below.view(&session, &file("d")).unwrap(), None);
    assert_eq!(below.sessions().unwrap(), [(session.clone(), 1)]);
    assert_eq!(open("four", None).viewed_paths(&session).unwrap(), []);
}

#[test]
fn a_state_is_looked_at_without_a_trace() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a ? # % state.db");
    let scope = StoreScope { checkout: "one".to_owned(), below: None };
    let view = View::whole(&Text::new(b"x\n".to_vec()).unwrap());
    let (session, file) = (SessionId("s".into()), RelPath::new("a").unwrap());
    let viewed = StoreRecord::Viewed { session: session.clone(), path: file.clone(), view: view.clone() };
    SqliteStore::open(&path, &scope).unwrap().store.record(&[viewed]).unwrap();
    let before = fs::read_dir(dir.path()).unwrap().count();
    let mut store = SqliteStore::open_read_only(&path, &scope).unwrap();
    assert_eq!(store.view(&session, &file).unwrap(), Some(view));
    assert!(store.record(&[StoreRecord::Cleared { session: session.clone() }]).is_err());
    let other = SqliteStore::open_read_only(&path, &StoreScope::default()).unwrap();
    assert_eq!(other.viewed_paths(&session).unwrap(), []);
    drop((store, other));
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), before);
    assert!(SqliteStore::open_read_only(&dir.path().join("none"), &scope).is_err());
}

/// Removes the changes that the last formats made to the tables.
const TO_FORMAT_2: &str = "
    DROP TABLE checkpoints; DROP TABLE incidents;
    DROP TRIGGER event_added; DROP TRIGGER event_dropped; DROP TRIGGER version_added; DROP TRIGGER version_dropped;
    DROP TABLE tracked; ALTER TABLE tasks DROP COLUMN story; ALTER TABLE tasks DROP COLUMN owner; ALTER TABLE tasks DROP COLUMN lease;
    ALTER TABLE tasks DROP COLUMN fence; ALTER TABLE tasks DROP COLUMN removed; DROP TABLE counters; DROP TABLE days; DROP TABLE sessions; ALTER TABLE events DROP COLUMN turn;
    ALTER TABLE events DROP COLUMN undone; ALTER TABLE events DROP COLUMN entry; PRAGMA user_version = 2;";

/// A state of the first format, with a view and an event.
fn state_of_format_1(path: &Path) -> (SessionId, RelPath) {
    let (session, file) = (SessionId("s".into()), RelPath::new("a").unwrap());
    let view = View::whole(&Text::new(b"x\n".to_vec()).unwrap());
    let mut store = SqliteStore::open(path, &StoreScope::default()).unwrap().store;
    store.record(&[StoreRecord::Viewed { session: session.clone(), path: file.clone(), view }]).unwrap();
    drop(store);
    let old = rusqlite::Connection::open(path).unwrap();
    old.execute_batch(&format!("{TO_FORMAT_2} ALTER TABLE events DROP COLUMN lines; PRAGMA user_version = 1")).unwrap();
    let number: i64 = old.query_row("SELECT checkout FROM views", [], |row| row.get(0)).unwrap();
    let event = "INSERT INTO events (checkout, at, session, tool, path, change) VALUES (?1, 1, 's', 'edit_file', 'a', 'c')";
    old.execute(event, [number]).unwrap();
    let event = "INSERT INTO events (checkout, at, session, tool, path, moved_to, before, after, change) VALUES (?1, 2, 's', 't', ?2, ?3, ?4, ?5, ?2)";
    let version = |name: &str| (!name.is_empty()).then(|| *ContentHash::of(name.as_bytes()).as_bytes());
    let events = [
        ("made", None, "", "1"),
        ("made", None, "1", "2"),
        ("changed", None, "1", "2"),
        ("old", Some("new"), "3", "3"),
        ("gone", None, "4", ""),
    ];
    for (path, moved_to, before, after) in events {
        old.execute(event, rusqlite::params![number, path, moved_to, version(before), version(after)]).unwrap();
    }
    (session, file)
}

#[test]
fn an_older_state_is_taken_over() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("state.db");
    let (session, file) = state_of_format_1(&path);
    let opened = SqliteStore::open(&path, &StoreScope::default()).unwrap();
    assert_eq!(opened.set_aside, None);
    assert_eq!(opened.store.viewed_paths(&session).unwrap(), [file]);
    let events = opened.store.events(&EventFilter::default(), 9).unwrap();
    assert!(events.iter().all(|event| event.lines.is_none()));
    assert_eq!(events.len(), 6);
    let tracked = opened.store.tracked(None).unwrap().files;
    let expected = [
        ("changed", "2", FileStatus::Modified),
        ("gone", "4", FileStatus::Deleted),
        ("made", "2", FileStatus::Created),
        ("new", "3", FileStatus::Modified),
        ("old", "3", FileStatus::Deleted),
    ];
    let tracked = tracked.iter().map(|file| (file.path.as_str(), file.tracked.version, file.tracked.status));
    assert!(tracked.eq(expected.map(|(path, content, status)| (path, ContentHash::of(content.as_bytes()), status))));
}

#[test]
fn an_older_state_is_looked_at_and_left_as_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("state.db");
    let (session, file) = state_of_format_1(&path);
    let before = fs::read(&path).unwrap();
    let store = SqliteStore::open_read_only(&path, &StoreScope::default()).unwrap();
    assert_eq!(store.viewed_paths(&session).unwrap(), [file]);
    assert_eq!(store.events(&EventFilter::default(), 9).unwrap().len(), 6);
    drop(store);
    assert_eq!(fs::read(&path).unwrap(), before);
}

/// A database with our format number and different tables is damaged, like one without its tables.
#[test]
fn a_foreign_database_is_set_aside() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("state.db");
    for number in [1, -7] {
        let theirs = rusqlite::Connection::open(&path).unwrap();
        theirs.execute_batch("CREATE TABLE views (x); CREATE TABLE IF NOT EXISTS mine (y)").unwrap();
        theirs.pragma_update(None, "user_version", number).unwrap();
        drop(theirs);
        let opened = SqliteStore::open(&path, &StoreScope::default()).unwrap();
        assert!(opened.set_aside.is_some(), "{number}");
        drop(opened);
        fs::remove_file(&path).unwrap();
    }
}

const UNBOUNDED: StoreBounds = StoreBounds { bytes: u64::MAX, days: u32::MAX, sessions: usize::MAX };

/// Unique bytes that compression cannot shrink.
fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(length + 32);
    for part in 0.. {
        if bytes.len() >= length {
            break;
        }
        bytes.extend_from_slice(ContentHash::of(format!("{seed} {part}").as_bytes()).as_bytes());
    }
    bytes.truncate(length);
    bytes
}

fn kept(seed: u64, length: usize) -> StoreRecord {
    let content = noise(seed, length);
    StoreRecord::Kept { version: ContentHash::of(&content), content: SharedBytes::new(content), at: 1 }
}

fn size(path: &Path) -> u64 {
    fs::metadata(path).unwrap().len()
}

/// Many processes one after the other, each of which writes little and has time for only one part of the work.
#[test]
fn the_file_stays_within_its_bound_whoever_writes() {
    let dir = tempfile::tempdir().unwrap();
    for length in [300, 3000, 30_000, 300_000] {
        let path = dir.path().join(format!("{length}.db"));
        let bounds = StoreBounds { bytes: 2_000_000, ..UNBOUNDED };
        let open = || SqliteStore::open(&path, &StoreScope::default()).unwrap().store;
        let records = 8_000_000 / length;
        for process in 0..20 {
            let mut store = open();
            let from = (process * records / 20) as u64;
            let records: Vec<StoreRecord> = (from..from + records as u64 / 20).map(|seed| kept(seed, length)).collect();
            store.record(&records).unwrap();
            store.trim(&bounds).unwrap();
        }
        assert!(size(&path) < 3_000_000, "{length}: {}", size(&path));
        let last = noise((records / 20 * 20 - 1) as u64, length);
        assert!(open().version(&ContentHash::of(&last)).unwrap().is_some(), "{length}: the newest is there");
    }
}

#[test]
fn dropped_space_is_returned() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("state.db");
    let mut store = SqliteStore::open(&path, &StoreScope::default()).unwrap().store;
    store.record(&(0..200).map(|seed| kept(seed, 100_000)).collect::<Vec<_>>()).unwrap();
    while store.trim(&StoreBounds { bytes: 1_000_000, ..UNBOUNDED }).unwrap() {}
    while store.release_space().unwrap() {}
    drop(store);
    assert!(size(&path) < 4_000_000, "{}", size(&path));
}

/// By its own process, and by another one that found its outbox.
#[test]
fn an_event_that_is_brought_twice_is_there_once() {
    let mut store = SqliteStore::in_memory().unwrap();
    let event = |path: &str, moved_to: Option<&str>| {
        StoreRecord::Happened(FileEvent {
            change: ChangeId("0badcafe".to_owned()),
            at: 7,
            session: SessionId("s".to_owned()),
            tool: "apply_patch".to_owned(),
            path: RelPath::new(path).unwrap(),
            moved_to: moved_to.map(|path| RelPath::new(path).unwrap()),
            before: Some(ContentHash::of(b"before")),
            after: None,
            mode: None,
            undoes: Vec::new(),
            delta: None,
            lines: None,
            undone: Vec::new(),
            entry: None,
        })
    };
    // One change may affect a path twice.
    let all = [event("a", Some("b")), event("a", None), event("c", None)];
    for _ in 0..3 {
        store.record(&all).unwrap();
    }
    assert_eq!(store.events(&EventFilter::default(), 100).unwrap().len(), 3);
}

/// The file of an older format that has grown without bounds.
#[test]
fn a_file_that_has_grown_too_large_becomes_small() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("state.db");
    let mut store = SqliteStore::open(&path, &StoreScope::default()).unwrap().store;
    store.record(&(0..300).map(|seed| kept(seed, 100_000)).collect::<Vec<_>>()).unwrap();
    drop(store);
    let old = rusqlite::Connection::open(&path).unwrap();
    old.execute_batch(&format!("{TO_FORMAT_2} PRAGMA journal_mode = delete; PRAGMA auto_vacuum = none; VACUUM;")).unwrap();
    drop(old);
    assert!(size(&path) > 30_000_000);
    let mut store = SqliteStore::open(&path, &StoreScope::default()).unwrap().store;
    store.record(&[kept(1000, 100_000)]).unwrap();
    while store.trim(&StoreBounds { bytes: 2_000_000, ..UNBOUNDED }).unwrap() {}
    while store.release_space().unwrap() {}
    assert!(store.version(&ContentHash::of(&noise(1000, 100_000))).unwrap().is_some());
    assert!(store.version(&ContentHash::of(&noise(299, 100_000))).unwrap().is_some());
    assert!(store.version(&ContentHash::of(&noise(1, 100_000))).unwrap().is_none());
    drop(store);
    assert!(size(&path) < 3_000_000, "{}", size(&path));
}

/// Only a part of a session is dropped at a time, and all of it in the end.
#[test]
fn a_session_that_saw_very_much_is_dropped_in_parts() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = SqliteStore::open(&dir.path().join("state.db"), &StoreScope::default()).unwrap().store;
    let (long, short) = (SessionId("long".into()), SessionId("short".into()));
    let view = View::whole(&Text::new(b"x\n".to_vec()).unwrap());
    let viewed = |session: &SessionId, number: usize| StoreRecord::Viewed {
        session: session.clone(),
        path: RelPath::new(&format!("f{number}")).unwrap(),
        view: view.clone(),
    };
    store.record(&(0..5000).map(|number| viewed(&long, number)).collect::<Vec<_>>()).unwrap();
    store.record(&[viewed(&short, 0)]).unwrap();
    let bounds = StoreBounds { sessions: 1, ..UNBOUNDED };
    assert!(store.trim(&bounds).unwrap());
    let left = store.viewed_paths(&long).unwrap().len();
    assert!((1..5000).contains(&left), "{left}");
    while store.trim(&bounds).unwrap() {}
    assert_eq!(store.sessions().unwrap(), [(short, 1)]);
}

/// A file system that allocates space for every write, if it is available.
fn btrfs(megabytes: u64) -> Option<Mounted> {
    Mounted::kernel_image(megabytes, &["mkfs.btrfs", "-q", "-M"])
}

/// Whether a database has a write-ahead log, according to its header.
fn has_log(path: &Path) -> bool {
    fs::read(path).unwrap()[18..20] == [2, 2]
}

#[test]
fn there_is_no_log_where_every_write_needs_room() {
    let Some(mounted) = btrfs(48) else { return };
    let path = mounted.path().join("state.db");
    contract::check(|| SqliteStore::open(&path, &StoreScope::default()).unwrap().store);
    assert!(!has_log(&path) && !mounted.path().join("state.db-shm").exists());
    start_many_at_once(mounted.path());
    let scope = StoreScope::default();
    let mut store = SqliteStore::open(&path, &scope).unwrap().store;
    store.record(&[kept(7, 1000)]).unwrap();
    let reader = SqliteStore::open_read_only(&path, &scope).unwrap();
    assert!(reader.version(&ContentHash::of(&noise(7, 1000))).unwrap().is_some());
    store.record(&[kept(8, 1000)]).unwrap();
    assert!(reader.version(&ContentHash::of(&noise(8, 1000))).unwrap().is_some());
}

/// The database of an older program, which has a log.
#[test]
fn an_unused_log_is_given_up() {
    let Some(mounted) = btrfs(48) else { return };
    let path = mounted.path().join("state.db");
    let open = || SqliteStore::open(&path, &StoreScope::default()).unwrap();
    drop(open());
    let older = rusqlite::Connection::open(&path).unwrap();
    older.pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(())).unwrap();
    older.execute("INSERT INTO story VALUES (1, 'one')", []).unwrap();
    // While the older program has it open, the log stays, and both work.
    let mut opened = open();
    opened.store.record(&[kept(1, 1000)]).unwrap();
    assert!(opened.set_aside.is_none() && has_log(&path));
    drop(opened);
    // As after a crash: the log has changes that the database does not have yet.
    let log = mounted.path().join("state.db-wal");
    let (database, content) = (fs::read(&path).unwrap(), fs::read(&log).unwrap());
    drop(older);
    fs::write(&path, database).unwrap();
    fs::write(&log, content).unwrap();
    let store = open().store;
    assert!(!has_log(&path) && !mounted.path().join("state.db-shm").exists());
    assert!(store.version(&ContentHash::of(&noise(1, 1000))).unwrap().is_some());
    let story: String =
        rusqlite::Connection::open(&path).unwrap().query_row("SELECT id FROM story", [], |row| row.get(0)).unwrap();
    assert_eq!(story, "one");
}

/// Takes all the free space.
fn fill(dir: &Path) -> PathBuf {
    use std::io::Write;
    let path = dir.join("filler");
    let mut file = fs::File::create(&path).unwrap();
    for size in [1 << 20, 1 << 12, 1] {
        let mut seed = size as u64;
        while file.write_all(&noise(seed, size)).and_then(|()| file.sync_data()).is_ok() {
            seed += 1;
            if size == 1 && seed > 100 {
                break;
            }
        }
    }
    path
}

#[test]
fn a_full_disk_is_reported_and_kills_no_process() {
    let Some(mounted) = btrfs(20) else { return };
    let path = mounted.path().join("state.db");
    let mut store = SqliteStore::open(&path, &StoreScope::default()).unwrap().store;
    store.record(&[kept(1, 1000)]).unwrap();
    let filler = fill(mounted.path());
    let mut refused = 0;
    for seed in 2..30 {
        match store.record(&[kept(seed, 200_000)]) {
            Ok(()) => {}
            Err(error @ StoreError::DiskFull { .. }) => {
                refused += 1;
                let said = error.to_string();
                assert!(said.contains("disk is full") && said.contains(&path.display().to_string()), "{said}");
            }
            Err(error) => panic!("{error}"),
        }
        assert!(store.version(&ContentHash::of(&noise(1, 1000))).unwrap().is_some(), "what is there can be read");
    }
    assert!(refused > 10, "{refused}");
    fs::remove_file(filler).unwrap();
    store.record(&[kept(1000, 1000)]).unwrap();
    assert!(store.version(&ContentHash::of(&noise(1000, 1000))).unwrap().is_some());
}

#[test]
fn many_files_are_found_as_each_of_them_is() {
    let below = Some(RelPath::new("package").unwrap());
    let dir = tempfile::tempdir().unwrap();
    let scope = StoreScope { checkout: "one".to_owned(), below };
    let mut store = SqliteStore::open(&dir.path().join("state.db"), &scope).unwrap().store;
    let path = |number: usize| RelPath::new(&format!("d{}/é{number}", number % 7)).unwrap();
    let found = |number: usize| {
        let stamp = Stamp { device: 1, inode: number as u64, size: 3, modified: 4, changed: 5, taken: 6 };
        StoreRecord::Found { path: path(number), file: KnownFile { version: ContentHash::of(&number.to_le_bytes()), stamp } }
    };
    store.record(&(0..12_000).step_by(2).map(found).collect::<Vec<_>>()).unwrap();
    let paths: Vec<RelPath> = (0..12_000).rev().map(path).collect();
    let each: Vec<Option<KnownFile>> = paths.iter().map(|path| store.file(path).unwrap()).collect();
    assert_eq!(each.iter().flatten().count(), 6_000);
    assert_eq!(store.files(&paths).unwrap(), each);
}

/// Most hooks concern unchanged files.
#[test]
fn known_records_are_not_written_again() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("state.db");
    let stamp = Stamp { device: 1, inode: 2, size: 3, modified: 4, changed: 5_000_000_001, taken: 9_000_000_000 };
    let found = |stamp| StoreRecord::Found {
        path: RelPath::new("a").unwrap(),
        file: KnownFile { version: ContentHash::of(b"one"), stamp },
    };
    let mut store = SqliteStore::open(&path, &StoreScope::default()).unwrap().store;
    let log = || fs::metadata(dir.path().join("state.db-wal")).unwrap().len();
    store.record(&[found(stamp)]).unwrap();
    let before = log();
    let later = Stamp { taken: 10_000_000_000, ..stamp };
    store.record(&[found(later)]).unwrap();
    assert_eq!(log(), before, "the same file, looked at later");
    let changed = Stamp { changed: 6_000_000_001, ..later };
    store.record(&[found(changed)]).unwrap();
    assert!(log() > before);
    assert_eq!(store.file(&RelPath::new("a").unwrap()).unwrap().unwrap().stamp, changed);
}
