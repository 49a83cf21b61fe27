//! Requested data is removed from the store, and the rest is not affected.

use std::fs;

use surehand_core::{ContentHash, RelPath, Text, View};
use surehand_store::{ChangeId, EventFilter, FileEvent, SessionId, SharedBytes, SqliteStore, Store, StoreRecord, StoreScope};

/// A change of a file at this time.
fn change(id: &str, at: i64, path: &str) -> StoreRecord {
    StoreRecord::Happened(FileEvent {
        change: ChangeId(id.to_owned()),
        at,
        session: SessionId("s".into()),
        tool: "edit_file".to_owned(),
        path: RelPath::new(path).unwrap(),
        moved_to: None,
        before: None,
        after: Some(ContentHash::of(id.as_bytes())),
        mode: None,
        undoes: Vec::new(),
        delta: None,
        lines: None,
        undone: Vec::new(),
        entry: None,
    })
}

fn kept(content: &str, at: i64) -> StoreRecord {
    let content = content.as_bytes().to_vec();
    StoreRecord::Kept { version: ContentHash::of(&content), content: SharedBytes::new(content), at }
}

fn seen(session: &str, path: &str, content: &str) -> StoreRecord {
    let view = View::whole(&Text::new(content.as_bytes().to_vec()).unwrap());
    StoreRecord::Viewed { session: SessionId(session.into()), path: RelPath::new(path).unwrap(), view }
}

/// Age follows the order of the records, whatever the clocks show.
#[test]
fn history_is_removed_up_to_a_moment() {
    const DAY: i64 = 24 * 60 * 60 * 1000;
    const ALL: i64 = i64::MAX;
    let dir = tempfile::tempdir().unwrap();
    let mut store = SqliteStore::open(&dir.path().join("state.db"), &StoreScope::default()).unwrap().store;
    store.record(&[kept("one", DAY), change("one", DAY, "a"), kept("seen", DAY), seen("s", "seen", "seen")]).unwrap();
    store.record(&[kept("two", 2 * DAY), change("two", 2 * DAY, "a")]).unwrap();
    // A clock was wrong for a short time.
    store.record(&[kept("wrong", 5), change("wrong", 5, "a")]).unwrap();
    store.record(&[kept("three", 3 * DAY), change("three", 3 * DAY, "b")]).unwrap();
    let left = |store: &SqliteStore| {
        let events = store.events(&EventFilter::default(), 10).unwrap();
        events.into_iter().map(|event| event.change.0).collect::<Vec<_>>()
    };
    let has = |store: &SqliteStore, content: &str| store.has_version(&ContentHash::of(content.as_bytes())).unwrap();
    // Nothing was recorded before the first day, and a wrong clock makes nothing older.
    assert_eq!(store.history_before(DAY, ALL).unwrap().usage, Default::default());
    store.drop_history_before(DAY, ALL).unwrap();
    assert_eq!(left(&store), ["three", "wrong", "two", "one"]);
    let old = store.history_before(2 * DAY, ALL).unwrap().usage;
    assert_eq!((old.changes.count, old.versions.count), (1, 2));
    // Content that an active session has seen stays.
    assert_eq!(store.history_before(2 * DAY, 0).unwrap().usage.versions.count, 1);
    store.drop_history_before(2 * DAY, 0).unwrap();
    assert_eq!(left(&store), ["three", "wrong", "two"]);
    assert_eq!((has(&store, "one"), has(&store, "seen"), has(&store, "two")), (false, true, true));
    let everything = store.usage().unwrap();
    let old = store.history_before(ALL, ALL).unwrap().usage;
    assert_eq!((old.changes, old.versions), (everything.changes, everything.versions));
    store.drop_history_before(ALL, ALL).unwrap();
    assert_eq!((left(&store), store.usage().unwrap().versions.count), (vec![], 0));
    // The store works as before.
    store.record(&[kept("four", 4 * DAY), change("four", 4 * DAY, "b")]).unwrap();
    assert_eq!((left(&store), has(&store, "four")), (vec!["four".to_owned()], true));
}

#[test]
fn idle_sessions_are_removed_and_their_changes_stay() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = SqliteStore::open(&dir.path().join("state.db"), &StoreScope::default()).unwrap().store;
    store.record(&[seen("s", "a", "1"), seen("s", "b", "2"), seen("t", "a", "1"), change("one", 1, "a")]).unwrap();
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_millis() as i64;
    assert_eq!(store.idle_sessions(now - 60_000).unwrap(), Default::default());
    store.drop_idle_sessions(now - 60_000).unwrap();
    assert_eq!(store.sessions().unwrap().len(), 2);
    let idle = store.idle_sessions(now + 60_000).unwrap();
    assert_eq!((idle.sessions, idle.views.count), (2, 3));
    store.drop_idle_sessions(now + 60_000).unwrap();
    assert_eq!(store.sessions().unwrap(), []);
    assert_eq!(store.events(&EventFilter::default(), 10).unwrap().len(), 1);
}

#[test]
fn rows_of_a_checkout_are_removed_and_others_stay() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("state.db");
    let open = |checkout: &str| {
        let scope = StoreScope { checkout: checkout.to_owned(), below: None };
        SqliteStore::open(&path, &scope).unwrap().store
    };
    let (mut one, mut other) = (open("one"), open("other"));
    for store in [&mut one, &mut other] {
        store.record(&[seen("s", "a", "1"), change("change", 1, "a"), kept("x", 1)]).unwrap();
    }
    let usage = one.usage_of_checkout("one").unwrap();
    assert_eq!((usage.changes.count, usage.views.count, usage.sessions), (1, 1, 1));
    other.drop_checkout("one").unwrap();
    assert_eq!(one.usage_of_checkout("one").unwrap(), Default::default());
    assert_eq!((one.sessions().unwrap().len(), one.events(&EventFilter::default(), 10).unwrap().len()), (0, 0));
    assert_eq!((other.sessions().unwrap().len(), other.events(&EventFilter::default(), 10).unwrap().len()), (1, 1));
    assert!(other.has_version(&ContentHash::of(b"x")).unwrap());
}

#[test]
fn free_space_is_given_back() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("state.db");
    let mut store = SqliteStore::open(&path, &StoreScope::default()).unwrap().store;
    // Bytes that do not compress.
    let noise: Vec<u8> = (0..60_000_u64).flat_map(|number| *ContentHash::of(&number.to_le_bytes()).as_bytes()).collect();
    let version = ContentHash::of(&noise);
    store.record(&[StoreRecord::Kept { version, content: SharedBytes::new(noise), at: 1 }]).unwrap();
    store.drop_history_before(i64::MAX, i64::MAX).unwrap();
    store.give_back_space().unwrap();
    assert!(fs::metadata(&path).unwrap().len() < 500_000);
}
