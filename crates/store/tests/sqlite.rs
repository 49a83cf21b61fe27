//! The SQLite backend keeps the contract, and copes with files that are not what it left there.
#![expect(clippy::disallowed_methods, reason = "tests damage files on purpose")]

use std::fs;

use surehand_core::{ContentHash, RelPath, Text, View};
use surehand_store::{Record, SessionId, Shared, SqliteStore, Store, StoreError, Which, contract};

#[test]
fn sqlite_keeps_the_contract() {
    let dir = tempfile::tempdir().unwrap();
    contract::check(|| SqliteStore::open(&dir.path().join("state.db")).unwrap().store);
}

#[test]
fn a_damaged_file_is_set_aside_and_reported() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("state.db");
    for garbage in [&b"this is no database, and long enough to be looked at"[..], &[0xff; 8192]] {
        fs::write(&path, garbage).unwrap();
        let opened = SqliteStore::open(&path).unwrap();
        assert_eq!(fs::read(opened.set_aside.expect("reported")).unwrap(), garbage);
        assert_eq!(opened.store.events(&Which::default(), 1).unwrap(), []);
        drop(opened.store);
    }
}

#[test]
fn a_half_written_file_is_set_aside_and_reported() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("state.db");
    let mut store = SqliteStore::open(&path).unwrap().store;
    for number in 0..200 {
        let text = Text::new(format!("{number}\n").into_bytes()).unwrap();
        let path = RelPath::new(&format!("file-{number}")).unwrap();
        store.record(&[Record::Viewed { session: SessionId("s".into()), path, view: View::whole(&text) }]).unwrap();
    }
    drop(store);
    let whole = fs::read(&path).unwrap();
    fs::write(&path, &whole[..whole.len() / 2]).unwrap();
    // Wherever the damage is noticed, there is a state afterwards that works.
    let mut opened = SqliteStore::open(&path).unwrap();
    let text = Text::new(b"after\n".to_vec()).unwrap();
    let record =
        Record::Viewed { session: SessionId("s".into()), path: RelPath::new("after").unwrap(), view: View::whole(&text) };
    let recorded = opened.store.record(std::slice::from_ref(&record));
    assert!(opened.set_aside.is_some() || recorded.is_err(), "damage that nobody notices");
    drop(opened);
    if recorded.is_err() {
        fs::remove_file(&path).unwrap();
    }
    SqliteStore::open(&path).unwrap().store.record(&[record]).unwrap();
}

#[test]
fn a_state_of_a_newer_version_is_refused_and_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("state.db");
    drop(SqliteStore::open(&path).unwrap());
    let newer = rusqlite::Connection::open(&path).unwrap();
    newer.pragma_update(None, "user_version", 99).unwrap();
    drop(newer);
    let Err(error) = SqliteStore::open(&path) else { panic!("opened a newer state") };
    assert!(matches!(error, StoreError::Newer { found: 99, .. }));
    assert!(error.to_string().contains("newer surehand"), "{error}");
}

#[test]
fn many_may_start_at_once() {
    for _ in 0..20 {
        start_many_at_once();
    }
}

fn start_many_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("state.db");
    std::thread::scope(|scope| {
        for number in 0..8 {
            let path = &path;
            scope.spawn(move || {
                let mut store = SqliteStore::open(path).unwrap().store;
                let content = vec![number; 100];
                let kept = Record::Kept { version: ContentHash::of(&content), content: Shared::new(content), at: 1 };
                store.record(&[kept]).unwrap();
            });
        }
    });
    let store = SqliteStore::open(&path).unwrap().store;
    for number in 0..8 {
        assert!(store.version(&ContentHash::of(&[number; 100])).unwrap().is_some());
    }
}

/// A state from before changes had names: each event is a change of its own, so that undo does not take back all of them at once.
#[test]
fn events_from_before_changes_had_names_are_changes_of_their_own() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("state.db");
    drop(SqliteStore::open(&path).unwrap());
    let old = rusqlite::Connection::open(&path).unwrap();
    old.execute_batch(
        "DROP TABLE events; DROP TABLE tasks; DROP TABLE story; DROP TABLE given; DROP INDEX views_by_turn; ALTER TABLE views DROP COLUMN turn;
        CREATE TABLE events (
            id INTEGER PRIMARY KEY, at INTEGER NOT NULL, session TEXT NOT NULL, tool TEXT NOT NULL, path TEXT NOT NULL,
            before BLOB, after BLOB
        );
        INSERT INTO events (at, session, tool, path) VALUES (1, 's', 'edit_file', 'a'), (2, 's', 'edit_file', 'b');
        PRAGMA user_version = 1;",
    )
    .unwrap();
    drop(old);
    let events = SqliteStore::open(&path).unwrap().store.events(&Which::default(), 9).unwrap();
    let changes: Vec<&str> = events.iter().map(|event| event.change.0.as_str()).collect();
    assert_eq!(changes, ["00000002", "00000001"]);
}
