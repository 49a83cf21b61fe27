//! The tests that every store must pass. A store's tests call [`check`] with a function that opens the same store
//! repeatedly and, if the store outlives its process, [`check_persistence`].

use std::sync::atomic::{AtomicI64, Ordering};

use serde_json::json;
use surehand_core::{ContentHash, FileStatus, RelPath, Stamp, TaskOwner, TaskStatus, Text, Touch, View};

use crate::{
    ChangeId, Checkpoint, CheckpointFile, CheckpointId, CheckpointInfo, ContentDelta, EntryChange, EventFilter, FileContent,
    FileEvent, FileState, Incident, IncidentId, IncidentKind, KnownFile, Millis, NotKept, PathEntry, RefusedCall, SessionId,
    SharedBytes, Store, StoreBounds, StoreError, StoreRecord, StoryTasks, TaskChange, TaskUpdate, TrackedFile,
};

/// Runs the whole contract. Each call of `open` returns another handle to the same store, which is empty at first.
///
/// # Panics
/// When the backend breaks the contract.
pub fn check<S: Store>(mut open: impl FnMut() -> S) {
    views_are_per_session_and_the_last_one_counts(open(), open());
    given_instructions_are_per_session_until_forgotten(open(), open());
    a_reset_forgets_the_session_and_nothing_else(open(), open());
    files_are_found_by_path_and_by_identity(open(), open());
    versions_come_back_byte_for_byte(open(), open());
    refused_calls_are_counted_until_their_cause_is_removed(open(), open());
    events_come_newest_first(open(), open());
    an_event_that_is_brought_twice_is_stored_once(open(), open());
    sessions_are_known_by_their_records(open(), open());
    touched_files_are_tracked(open(), open());
    replaced_content_is_computed_from_its_successors(open(), open());
    trimming_drops_the_least_recently_used(open(), open());
    records_of_old_days_are_dropped(open(), open());
    the_sessions_that_were_used_last_are_kept(open(), open());
    checkpoints_come_newest_first_with_their_files(open(), open());
    versions_of_a_checkpoint_are_kept_as_long_as_it(open(), open());
    incidents_come_newest_first(open(), open());
    an_update_of_tasks_is_applied_as_a_whole(open(), open());
    every_story_has_a_list_of_its_own(open(), open());
    handles_see_each_other_while_both_are_open(open(), open());
}

/// Checks that records are still there after all handles of a store were dropped. The store is empty at first.
///
/// # Panics
/// When the backend breaks the contract.
pub fn check_persistence<S: Store>(mut open: impl FnMut() -> S) {
    let (happened, checkpointed) = (event("p", 1, "a", None), checkpoint("p-1", 2, Vec::new()));
    let refused = RefusedCall { call: ContentHash::of(b"call"), path: None, count: 2 };
    let mut store = open();
    store
        .record(&[
            viewed("p", "a", "1\n"),
            kept(1, 1),
            StoreRecord::Happened(happened.clone()),
            StoreRecord::Refused { session: session("p"), refused: refused.clone() },
            StoreRecord::Checkpointed(checkpointed.clone()),
        ])
        .unwrap();
    let plan = store.update_tasks(&TaskUpdate { add: vec![("task".to_owned(), None)], ..TaskUpdate::default() }).unwrap();
    drop(store);
    let store = open();
    assert_eq!(store.view(&session("p"), &path("a")).unwrap(), Some(view("1\n")));
    assert_eq!(store.version(&ContentHash::of(&noise(1))).unwrap(), Some(noise(1)));
    assert_eq!(store.events(&EventFilter::default(), 9).unwrap(), [happened]);
    assert_eq!(store.refused_calls(&session("p")).unwrap(), [refused]);
    assert_eq!(store.checkpoint(&checkpointed.info.id).unwrap(), Some(checkpointed));
    assert_eq!(store.tracked(None).unwrap().files.len(), 1);
    assert_eq!(store.story_tasks(None).unwrap(), plan);
}

fn session(name: &str) -> SessionId {
    SessionId(name.to_owned())
}

fn path(path: &str) -> RelPath {
    RelPath::new(path).unwrap()
}

fn view(content: &str) -> View {
    View::whole(&Text::new(content.as_bytes().to_vec()).unwrap())
}

fn viewed(who: &str, what: &str, content: &str) -> StoreRecord {
    StoreRecord::Viewed { session: session(who), path: path(what), view: view(content) }
}

fn views_are_per_session_and_the_last_one_counts(mut store: impl Store, again: impl Store) {
    store
        .record(&[viewed("v1", "a", "1\n"), viewed("v1", "a", "2\n"), viewed("v1", "b", "3\n"), viewed("v2", "a", "4\n")])
        .unwrap();
    assert_eq!(again.view(&session("v1"), &path("a")).unwrap(), Some(view("2\n")));
    assert_eq!(again.view(&session("v2"), &path("a")).unwrap(), Some(view("4\n")));
    assert_eq!(again.view(&session("v2"), &path("b")).unwrap(), None);
    assert_eq!(again.viewed_paths(&session("v1")).unwrap(), [path("a"), path("b")]);
    assert_eq!(again.sessions().unwrap(), [(session("v1"), 2), (session("v2"), 1)]);
    assert_eq!(again.lately_viewed(&session("v1"), 9).unwrap(), [path("b"), path("a")]);
    store.record(&[viewed("v1", "a", "2\n")]).unwrap();
    assert_eq!(again.lately_viewed(&session("v1"), 1).unwrap(), [path("a")]);
    store.record(&[StoreRecord::Forgot { session: session("v1"), path: path("a") }]).unwrap();
    assert_eq!(again.viewed_paths(&session("v1")).unwrap(), [path("b")]);
}

fn given(who: &str, what: &str, content: &[u8]) -> StoreRecord {
    StoreRecord::Given { session: session(who), path: path(what), version: ContentHash::of(content) }
}

fn given_instructions_are_per_session_until_forgotten(mut store: impl Store, again: impl Store) {
    store.record(&[given("g1", "b", b"1"), given("g1", "a", b"2"), given("g1", "a", b"3"), given("g2", "a", b"4")]).unwrap();
    let (a, b) = ((path("a"), ContentHash::of(b"3")), (path("b"), ContentHash::of(b"1")));
    assert_eq!(again.given(&session("g1")).unwrap(), [a, b.clone()]);
    assert_eq!(again.given(&session("g2")).unwrap(), [(path("a"), ContentHash::of(b"4"))]);
    assert_eq!(again.given(&session("g3")).unwrap(), []);
    store.record(&[StoreRecord::Forgot { session: session("g1"), path: path("a") }]).unwrap();
    assert_eq!(again.given(&session("g1")).unwrap(), [b]);
}

fn a_reset_forgets_the_session_and_nothing_else(mut store: impl Store, again: impl Store) {
    let rewrote = StoreRecord::Rewrote { session: session("r1"), path: path("a"), count: 3 };
    let kept = StoreRecord::Kept { version: ContentHash::of(b"r"), content: SharedBytes::new(b"r"), at: 1 };
    let refused = |who: &str| StoreRecord::Refused {
        session: session(who),
        refused: RefusedCall { call: ContentHash::of(b"call"), path: Some(path("a")), count: 1 },
    };
    let seen = [viewed("r1", "a", "1\n"), viewed("r2", "a", "1\n"), given("r1", "i", b"1"), given("r2", "i", b"1")];
    store.record(&seen).unwrap();
    store.record(&[refused("r1"), refused("r2")]).unwrap();
    store.record(&[rewrote, kept]).unwrap();
    assert_eq!(again.rewrite_count(&session("r1"), &path("a")).unwrap(), 3);
    store.record(&[StoreRecord::Cleared { session: session("r1") }]).unwrap();
    assert_eq!(again.viewed_paths(&session("r1")).unwrap(), []);
    assert_eq!(again.rewrite_count(&session("r1"), &path("a")).unwrap(), 0);
    assert_eq!(again.given(&session("r1")).unwrap(), []);
    assert_eq!(again.refused_calls(&session("r1")).unwrap(), []);
    assert_eq!(again.refused_calls(&session("r2")).unwrap().len(), 1);
    assert_eq!(again.viewed_paths(&session("r2")).unwrap(), [path("a")]);
    assert_eq!(again.given(&session("r2")).unwrap().len(), 1);
    assert_eq!(again.version(&ContentHash::of(b"r")).unwrap().as_deref(), Some(&b"r"[..]));
}

fn files_are_found_by_path_and_by_identity(mut store: impl Store, again: impl Store) {
    let stamp = Stamp { device: u64::MAX, inode: 7, size: 3, modified: -5, changed: 6, taken: 8 };
    let file = KnownFile { version: ContentHash::of(b"x"), stamp };
    let found = |at: &str| StoreRecord::Found { path: path(at), file: file.clone() };
    store.record(&[found("f/1"), found("f/2")]).unwrap();
    assert_eq!(again.file(&path("f/1")).unwrap(), Some(file.clone()));
    assert_eq!(again.file(&path("f/3")).unwrap(), None);
    assert_eq!(again.paths_of(&stamp).unwrap(), [path("f/1"), path("f/2")]);
    assert_eq!(again.paths_of(&Stamp { inode: 8, ..stamp }).unwrap(), []);
}

fn versions_come_back_byte_for_byte(mut store: impl Store, again: impl Store) {
    let contents = [b"".to_vec(), b"\0\xff\r\n".to_vec(), vec![b'a'; 300_000]];
    let kept =
        contents.iter().map(|c| StoreRecord::Kept { version: ContentHash::of(c), content: SharedBytes::new(c.clone()), at: 5 });
    store.record(&kept.collect::<Vec<_>>()).unwrap();
    for content in &contents {
        assert_eq!(again.version(&ContentHash::of(content)).unwrap().as_ref(), Some(content));
    }
    assert_eq!(again.version(&ContentHash::of(b"never kept")).unwrap(), None);
}

fn refused_calls_are_counted_until_their_cause_is_removed(mut store: impl Store, again: impl Store) {
    let call =
        |call: &[u8], about: Option<&str>, count| RefusedCall { call: ContentHash::of(call), path: about.map(path), count };
    let refused = |refused| StoreRecord::Refused { session: session("c"), refused };
    let (first, second) = (call(b"1", Some("a"), 1), call(b"1", Some("a"), 2));
    let (without_file, of_other_file) = (call(b"2", None, 3), call(b"3", Some("b"), 4));
    store.record(&[first, second.clone(), without_file.clone(), of_other_file.clone()].map(refused)).unwrap();
    let calls = || {
        let mut calls = again.refused_calls(&session("c")).unwrap();
        calls.sort_by_key(|call| call.count);
        calls
    };
    assert_eq!(calls(), [second, without_file.clone(), of_other_file.clone()]);
    store.record(&[StoreRecord::Mended { session: session("c"), path: path("a") }]).unwrap();
    assert_eq!(calls(), [without_file, of_other_file]);
}

fn event(of: &str, at: Millis, name: &str, before: Option<&[u8]>) -> FileEvent {
    FileEvent {
        change: ChangeId(format!("change{at}")),
        at,
        session: session(of),
        tool: "write_file".to_owned(),
        path: path(name),
        moved_to: None,
        before: before.map(ContentHash::of),
        after: Some(ContentHash::of(b"after")),
        mode: None,
        undoes: Vec::new(),
        delta: None,
        lines: None,
        undone: Vec::new(),
        entry: None,
    }
}

fn events_come_newest_first(mut store: impl Store, again: impl Store) {
    let event = |at, name: &str, before: Option<&[u8]>| event("e", at, name, before);
    let first = event(1, "e", None);
    let second = FileEvent {
        mode: Some(0o755),
        undoes: vec![ChangeId("change0".to_owned()), ChangeId("change1".to_owned())],
        lines: Some("9 0-0+2 5-2+3".parse().unwrap()),
        undone: serde_json::from_value(json!([{ "change": "change0", "hunks": [[2, 1, 2, 3, [[3, 1]], true]], "of": 2 }]))
            .unwrap(),
        ..event(2, "f", Some(b"before"))
    };
    let entry = EntryChange { before: PathEntry::Link("to".to_owned()), after: PathEntry::File(Some(0o600)) };
    let third =
        FileEvent { session: session("e2"), moved_to: Some(path("e")), entry: Some(entry), ..event(3, "g", Some(b"before")) };
    let all = [&first, &second, &third].map(|event| StoreRecord::Happened(event.clone()));
    store.record(&all).unwrap();
    let found = |which: EventFilter, limit| again.events(&which, limit).unwrap();
    assert_eq!(found(EventFilter::default(), 9), [third.clone(), second.clone(), first.clone()]);
    assert_eq!(found(EventFilter::default(), 1), std::slice::from_ref(&third));
    assert_eq!(found(EventFilter { session: Some(session("e")), ..EventFilter::default() }, 9), [second.clone(), first.clone()]);
    assert_eq!(found(EventFilter { path: Some(path("e")), ..EventFilter::default() }, 9), [third, first]);
    assert_eq!(found(EventFilter { change: Some(second.change.clone()), ..EventFilter::default() }, 9), [second]);
}

/// A process that finds the outbox of another one brings its records again.
fn an_event_that_is_brought_twice_is_stored_once(mut store: impl Store, again: impl Store) {
    let delta = ContentDelta { prefix: 1, suffix: 2, middle: b"m".to_vec() };
    let event = FileEvent { delta: Some(delta), ..event("twice", 981, "twice", Some(b"before")) };
    for _ in 0..2 {
        store.record(&[StoreRecord::Happened(event.clone())]).unwrap();
    }
    let mut which = EventFilter { session: Some(session("twice")), with_deltas: true, ..EventFilter::default() };
    assert_eq!(again.events(&which, 9).unwrap(), std::slice::from_ref(&event));
    which.with_deltas = false;
    assert_eq!(again.events(&which, 9).unwrap(), [FileEvent { delta: None, ..event }]);
}

fn sessions_are_known_by_their_records(mut store: impl Store, again: impl Store) {
    let info = CheckpointInfo { session: Some(session("k3")), ..checkpoint("k-1", 5, Vec::new()).info };
    let change = event("k2", 901, "k", None);
    let dropped = IncidentKind::RescueDropped { rescue: "k".to_owned(), version: ContentHash::of(b"k") };
    let records = [
        viewed("k1", "a", "1\n"),
        viewed("k1", "b", "1\n"),
        viewed("k2", "a", "1\n"),
        StoreRecord::Happened(change.clone()),
        StoreRecord::Happened(FileEvent { path: path("k/2"), ..change }),
        StoreRecord::Happened(event("k2", 902, "k", None)),
        StoreRecord::Checkpointed(Checkpoint { info, files: Vec::new() }),
        StoreRecord::Noticed(Incident { session: session("k4"), ..incident("k-2", 903, None, dropped) }),
    ];
    store.record(&records).unwrap();
    let known = again.known_sessions().unwrap();
    let counts_of = |who: &str| {
        let known = known.iter().find(|known| known.id == session(who));
        known.map(|known| (known.viewed, known.changes))
    };
    let expected = [Some((2, 0)), Some((1, 2)), Some((0, 0)), Some((0, 0)), None];
    assert_eq!(["k1", "k2", "k3", "k4", "k5"].map(counts_of), expected);
    let last_active = |who: &str| known.iter().find(|known| known.id == session(who)).and_then(|known| known.last_active);
    assert_eq!(["k3", "k4"].map(last_active), [Some(5), Some(903)]);
    // A view has no time of its own, so the clock of the store counts.
    assert!(last_active("k2") >= Some(902));
}

fn replaced_content_is_computed_from_its_successors(mut store: impl Store, again: impl Store) {
    let event = |name: &str, before: &[u8], after: &[u8], (prefix, suffix, middle): (usize, usize, &[u8])| FileEvent {
        change: ChangeId("replaced".to_owned()),
        after: Some(ContentHash::of(after)),
        delta: Some(ContentDelta { prefix, suffix, middle: middle.to_vec() }),
        ..event("r", 0, name, Some(before))
    };
    // A file that is edited, moved with an edit, returned to an earlier content, and edited again.
    let versions: [&[u8]; 5] = [b"one two three", b"one 2 three", b"1 2 three", b"one two three", b"one two three four"];
    let first = event("r", versions[0], versions[1], (4, 6, b"two"));
    let second = FileEvent { moved_to: Some(path("r2")), ..event("r", versions[1], versions[2], (0, 8, b"one")) };
    let third = event("r2", versions[2], versions[3], (0, 6, b"1 2"));
    let fourth = event("r2", versions[3], versions[4], (13, 0, b""));
    let last =
        StoreRecord::Kept { version: ContentHash::of(versions[4]), content: SharedBytes::new(versions[4].to_vec()), at: 1 };
    let events = [first, second, third, fourth].map(StoreRecord::Happened);
    store.record(&events.into_iter().chain([last]).collect::<Vec<_>>()).unwrap();
    for (name, version) in ["r", "r", "r2", "r2", "r2"].into_iter().zip(versions) {
        assert_eq!(again.replaced_content(&path(name), &ContentHash::of(version)).unwrap().as_deref(), Some(version));
    }
    assert_eq!(again.replaced_content(&path("r"), &ContentHash::of(b"never")).unwrap(), None);
    // The deltas of the events lead to the same content.
    let which = EventFilter { session: Some(session("r")), with_deltas: true, ..EventFilter::default() };
    let mut content = versions[4].to_vec();
    for (event, version) in again.events(&which, 9).unwrap().iter().zip(versions.iter().rev().skip(1)) {
        content = event.delta.as_ref().unwrap().apply(&content).unwrap();
        assert_eq!(content, *version);
    }
}

/// Random-looking bytes, which compression cannot shrink.
fn noise(seed: u64) -> Vec<u8> {
    let mut state = seed;
    let next = |_| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 56) as u8
    };
    (0..100_000).map(next).collect()
}

fn kept(seed: u64, at: Millis) -> StoreRecord {
    StoreRecord::Kept { version: ContentHash::of(&noise(seed)), content: SharedBytes::new(noise(seed)), at }
}

const UNBOUNDED: StoreBounds = StoreBounds { bytes: u64::MAX, days: u32::MAX, sessions: usize::MAX };
const DAY: Millis = 24 * 60 * 60 * 1000;

fn trim(store: &mut impl Store, bounds: StoreBounds) {
    while store.trim(&bounds).unwrap() {}
}

fn trimming_drops_the_least_recently_used(mut store: impl Store, again: impl Store) {
    let is_kept = |seed| again.version(&ContentHash::of(&noise(seed))).unwrap().is_some();
    store.record(&[kept(1, 10)]).unwrap();
    trim(&mut store, StoreBounds { bytes: 0, ..UNBOUNDED });
    assert!(!is_kept(1));
    // The order of use counts, not the times.
    for (seed, at) in [(1, 40), (2, 30), (3, 20), (1, 10)] {
        store.record(&[kept(seed, at)]).unwrap();
    }
    trim(&mut store, StoreBounds { bytes: 250_000, ..UNBOUNDED });
    assert_eq!([is_kept(1), is_kept(2), is_kept(3)], [true, false, true]);
    trim(&mut store, UNBOUNDED);
    assert_eq!([is_kept(1), is_kept(3)], [true, true]);
}

/// Only days with records count, so a wrong clock ages nothing by more than a day.
fn records_of_old_days_are_dropped(mut store: impl Store, again: impl Store) {
    let is_kept = |seed| again.version(&ContentHash::of(&noise(seed))).unwrap().is_some();
    let bounds = StoreBounds { days: 3, ..UNBOUNDED };
    // Scopes of the same store share days, so each run uses its own.
    static RUNS: AtomicI64 = AtomicI64::new(0);
    let first = 1000 * RUNS.fetch_add(1, Ordering::Relaxed) + 1000;
    for (seed, day) in [(11, 0), (12, 1), (13, 61), (14, 1), (15, -900)] {
        store.record(&[kept(seed, (first + day) * DAY), viewed(&format!("d{seed}"), "a", "1\n")]).unwrap();
        trim(&mut store, bounds);
    }
    // The last three days, in the order of their first records.
    assert_eq!([11, 12, 13, 14, 15].map(is_kept), [false, true, true, true, true]);
    let seen = |seed: u64| !again.viewed_paths(&session(&format!("d{seed}"))).unwrap().is_empty();
    assert_eq!([11, 12, 13, 14, 15].map(seen), [false, true, true, true, true]);
    store.record(&[StoreRecord::InUse { session: session("d12") }, kept(16, (first + 2) * DAY)]).unwrap();
    trim(&mut store, bounds);
    assert_eq!([11, 12, 13, 14, 15, 16].map(is_kept), [false, false, true, true, true, true]);
    assert_eq!([12, 13].map(seen), [true, true]);
}

fn the_sessions_that_were_used_last_are_kept(mut store: impl Store, again: impl Store) {
    let bounds = StoreBounds { sessions: 3, ..UNBOUNDED };
    for who in ["u1", "u2", "u3", "u1", "u4"] {
        store.record(&[viewed(who, "a", &format!("{who}\n")), viewed(who, "b", "1\n"), given(who, "i", b"1")]).unwrap();
    }
    trim(&mut store, bounds);
    let has = |who: &str| (again.viewed_paths(&session(who)).unwrap().len(), again.given(&session(who)).unwrap().len());
    assert_eq!(["u1", "u2", "u3", "u4"].map(has), [(2, 1), (0, 0), (2, 1), (2, 1)]);
}

fn checkpoint(id: &str, at: Millis, files: Vec<CheckpointFile>) -> Checkpoint {
    let not_kept = vec![NotKept { path: "film.mp4".to_owned(), why: "it is too large".to_owned() }];
    let info = CheckpointInfo {
        id: CheckpointId(id.to_owned()),
        at,
        until: at,
        session: Some(session("c1")),
        occasion: "command: make".to_owned(),
        name: None,
        commit: Some("c0ffee".to_owned()),
        is_whole: true,
        took: 7,
        files: files.len(),
        not_kept,
    };
    Checkpoint { info, files }
}

fn checkpoint_file(at: &str, version: ContentHash) -> CheckpointFile {
    let stamp = Stamp { device: 1, inode: u64::MAX, size: 3, modified: -4, changed: 5, taken: 6 };
    let state = FileState::File { content: FileContent::Version(version), mode: 0o640, stamp };
    CheckpointFile { path: path(at), state }
}

fn checkpoints_come_newest_first_with_their_files(mut store: impl Store, again: impl Store) {
    let of = |at: &str, state: FileState| CheckpointFile { path: path(at), state };
    let files = vec![
        checkpoint_file("a b", ContentHash::of(b"c")),
        of("b", FileState::Link { target: "../x".to_owned() }),
        of("c", FileState::Directory { mode: 0o700 }),
        of("d", FileState::Absent),
        of("e", FileState::NotKept),
    ];
    let (first, second) = (checkpoint("c-1", 10, files), checkpoint("c-2", 20, Vec::new()));
    store.record(&[StoreRecord::Checkpointed(first.clone()), StoreRecord::Checkpointed(second.clone())]).unwrap();
    assert_eq!(again.checkpoints(9).unwrap(), [second.info.clone(), first.info.clone()]);
    assert_eq!(again.checkpoints(1).unwrap(), [second.info]);
    assert_eq!(again.checkpoint(&first.info.id).unwrap(), Some(first.clone()));
    assert_eq!(again.checkpoint(&CheckpointId("none".to_owned())).unwrap(), None);
    store.record(&[StoreRecord::StillSo { checkpoint: first.info.id.clone(), at: 30, took: 8 }]).unwrap();
    let later = CheckpointInfo { until: 30, took: 8, ..first.info };
    assert_eq!(again.checkpoints(9).unwrap()[1], later);
    // A check that began earlier may be recorded later.
    store.record(&[StoreRecord::StillSo { checkpoint: later.id.clone(), at: 25, took: 9 }]).unwrap();
    assert_eq!(again.checkpoints(9).unwrap()[1], CheckpointInfo { took: 9, ..later });
}

fn incident(id: &str, at: Millis, about: Option<&str>, kind: IncidentKind) -> Incident {
    Incident { id: IncidentId(id.to_owned()), at, session: session("i"), path: about.map(path), kind }
}

fn incidents_come_newest_first(mut store: impl Store, again: impl Store) {
    let version = |content: &str| (!content.is_empty()).then(|| ContentHash::of(content.as_bytes()));
    let outside = |id: &str, before: &str, after: &str| {
        incident(id, 3, Some("i/a"), IncidentKind::Outside { before: version(before), after: version(after) })
    };
    let refused = IncidentKind::Refused { tool: "edit_file".to_owned(), code: "unread".to_owned(), repeat: 2 };
    let dropped = IncidentKind::RescueDropped { rescue: "r".to_owned(), version: ContentHash::of(b"r") };
    let mut note = |incident: &Incident| store.record(&[StoreRecord::Noticed(incident.clone())]).unwrap();
    let noticed = [
        incident("i-1", 1, None, refused),
        incident("i-2", 2, Some("i/b"), dropped),
        outside("i-3", "1", "2"),
        // Another session had seen a different content.
        outside("i-4", "0", "2"),
        outside("i-5", "2", ""),
        outside("i-6", "", "2"),
    ];
    noticed.iter().for_each(&mut note);
    let [first, second, third, _, fifth, sixth] = noticed;
    let known = |count| again.incidents(count).unwrap();
    assert_eq!(known(9), [sixth.clone(), fifth, third, second, first]);
    assert_eq!(known(1), std::slice::from_ref(&sixth));
    // A return to an earlier outside content after a change of ours is recorded.
    note(&outside("i-7", "0", "2"));
    assert_eq!(known(1), [sixth]);
    let by_us = FileEvent { before: version("2"), after: version("1"), path: path("i/a"), ..event("i", 950, "i/a", None) };
    store.record(&[StoreRecord::Happened(by_us)]).unwrap();
    let eighth = outside("i-8", "1", "2");
    store.record(&[StoreRecord::Noticed(eighth.clone())]).unwrap();
    assert_eq!(known(1), [eighth]);
    trim(&mut store, StoreBounds { bytes: 0, ..UNBOUNDED });
    assert_eq!(known(9), []);
}

fn versions_of_a_checkpoint_are_kept_as_long_as_it(mut store: impl Store, again: impl Store) {
    store.record(&[kept(901, 1)]).unwrap();
    let StoreRecord::Kept { version, .. } = kept(901, 1) else { unreachable!() };
    for seed in 902..910 {
        store.record(&[kept(seed, 1)]).unwrap();
    }
    let needs = checkpoint("c-9", 10, vec![checkpoint_file("a", version)]);
    store.record(&[StoreRecord::Checkpointed(needs.clone())]).unwrap();
    // Anything older than the checkpoint is dropped before the versions that the checkpoint needs, although those came
    // first.
    trim(&mut store, StoreBounds { bytes: 250_000, ..UNBOUNDED });
    assert_eq!(again.checkpoint(&needs.info.id).unwrap(), Some(needs.clone()));
    assert!(again.has_version(&version).unwrap());
    trim(&mut store, StoreBounds { bytes: 0, ..UNBOUNDED });
    assert_eq!(again.checkpoint(&needs.info.id).unwrap(), None);
    assert!(!again.has_version(&version).unwrap());
}

fn touched_files_are_tracked(mut store: impl Store, again: impl Store) {
    let version = |content: &str| ContentHash::of(content.as_bytes());
    let since = again.tracked(None).unwrap().turn;
    let tracked = |since| {
        let found = again.tracked(Some(since)).unwrap();
        let of = |file: &TrackedFile| (file.path.to_string(), file.tracked.version, file.tracked.status, file.stamp.is_some());
        (found.files.iter().map(of).collect::<Vec<_>>(), found.turn)
    };
    let stamp = Stamp { device: 1, inode: 7, size: 3, modified: 1, changed: 1, taken: i64::MAX };
    let found = |path: RelPath, version| StoreRecord::Found { path, file: KnownFile { version, stamp } };
    let read = |path: RelPath, version, at| StoreRecord::Touched { path, touch: Touch::Read(version), at };
    store
        .record(&[found(path("t/a"), version("1")), read(path("t/a"), version("1"), 1), read(path("t/b"), version("2"), 1)])
        .unwrap();
    let entry = |path: &str, content: &str, status, has_stamp| (path.to_owned(), version(content), status, has_stamp);
    let (files, seen) = tracked(since);
    assert_eq!(files, [entry("t/a", "1", FileStatus::Unchanged, true), entry("t/b", "2", FileStatus::Unchanged, false)]);
    // Events count too. A record that arrives late does not undo their effect.
    let made = FileEvent { after: Some(version("3")), ..event("t", 5, "t/c", None) };
    let moved = FileEvent { moved_to: Some(path("t/d")), after: Some(version("2")), ..event("t", 6, "t/b", Some(b"2")) };
    store.record(&[StoreRecord::Happened(made), StoreRecord::Happened(moved), read(path("t/c"), version("0"), 4)]).unwrap();
    let (files, last) = tracked(seen);
    let expected = [
        entry("t/b", "2", FileStatus::Deleted, false),
        entry("t/c", "3", FileStatus::Created, false),
        entry("t/d", "2", FileStatus::Modified, false),
    ];
    assert_eq!(files, expected);
    store.record(&[read(path("t/a"), version("1"), 9)]).unwrap();
    assert_eq!(tracked(last).0, [], "the read changed no record");
    let all = again.tracked(None).unwrap().files;
    assert_eq!(all.iter().filter(|file| file.path.as_str().starts_with("t/")).count(), 4);
}

fn an_update_of_tasks_is_applied_as_a_whole(mut store: impl Store, again: impl Store) {
    assert_eq!(again.story_tasks(None).unwrap(), StoryTasks::default());
    // Tasks added before there was a story belong to the first story.
    store.update_tasks(&TaskUpdate { add: vec![("first".to_owned(), None)], ..TaskUpdate::default() }).unwrap();
    let add = vec![("second".to_owned(), None), ("urgent".to_owned(), Some(1))];
    let begun = TaskUpdate { add, story: Some("S-1".to_owned()), begins_story: true, ..TaskUpdate::default() };
    let plan = store.update_tasks(&begun).unwrap();
    assert_eq!(plan.tasks.iter().map(|task| (task.id, task.priority)).collect::<Vec<_>>(), [(1, 1), (2, 2), (3, 1)]);
    assert!(plan.tasks.iter().all(|task| task.story == "S-1"));
    assert_eq!(again.story_tasks(None).unwrap(), plan);
    let set = |id, status| TaskChange { id, status: Some(status), description: None, priority: None };
    let refused = store.update_tasks(&TaskUpdate {
        set: vec![set(1, TaskStatus::Completed), set(9, TaskStatus::Completed)],
        ..TaskUpdate::default()
    });
    assert!(matches!(refused, Err(StoreError::NoSuchTask { id: 9 })));
    assert_eq!(again.story_tasks(None).unwrap(), plan, "nothing of it was done");
    let plan = store.update_tasks(&TaskUpdate { set: vec![set(1, TaskStatus::InProgress)], ..TaskUpdate::default() }).unwrap();
    assert_eq!((plan.story.as_str(), plan.tasks[0].status), ("S-1", TaskStatus::InProgress));
    assert_eq!(again.story_tasks(None).unwrap(), plan);
}

fn every_story_has_a_list_of_its_own(mut store: impl Store, again: impl Store) {
    let run = |id: &str| Some(TaskOwner::Run(id.to_owned()));
    let add = |words: &str| vec![(words.to_owned(), None)];
    let ids = |plan: &StoryTasks| plan.tasks.iter().map(|task| task.id).collect::<Vec<_>>();
    let last = again.story_tasks(Some("S-1")).unwrap().tasks.last().map_or(0, |task| task.id);
    let story = |story: &str| TaskUpdate { story: Some(story.to_owned()), ..TaskUpdate::default() };
    let begun = store.update_tasks(&TaskUpdate { add: add("a"), by: run("k"), begins_story: true, ..story("k") }).unwrap();
    let (task, elsewhere) = (last + 1, last + 2);
    assert_eq!((begun.story.as_str(), begun.tasks.last().unwrap().priority), ("k", 1), "it begins at the first");
    // An update of another list does not change the current story.
    let other = store.update_tasks(&TaskUpdate { add: add("b"), ..story("S-2") }).unwrap();
    assert_eq!((other.story.as_str(), other.tasks.last().unwrap().id), ("S-2", elsewhere));
    assert_eq!(again.story_tasks(None).unwrap().story, "k");
    // Only open tasks of other stories are listed.
    let done = |id| TaskChange { id, status: Some(TaskStatus::Completed), description: None, priority: None };
    store.update_tasks(&TaskUpdate { set: vec![done(elsewhere)], ..TaskUpdate::default() }).unwrap();
    assert!(ids(&again.story_tasks(Some("S-2")).unwrap()).contains(&elsewhere));
    assert!(!ids(&again.story_tasks(None).unwrap()).contains(&elsewhere));
    // A model cannot close a person's task of another story.
    let kept = store.update_tasks(&TaskUpdate { add: add("kept"), ..story("S-3") }).unwrap().tasks.last().unwrap().id;
    let refused = store.update_tasks(&TaskUpdate { remove: vec![kept], by: run("k"), ..story("k") });
    assert!(matches!(refused, Err(StoreError::TaskOfOthers { whose, .. }) if whose == "story S-3"));
    store.update_tasks(&TaskUpdate { remove: vec![kept], ..TaskUpdate::default() }).unwrap();
    // The largest priority is the last.
    let largest = TaskUpdate { add: vec![("p".to_owned(), Some(u32::MAX)), ("q".to_owned(), None)], ..story("S-4") };
    let priorities: Vec<u32> =
        store.update_tasks(&largest).unwrap().tasks.iter().rev().take(2).map(|task| task.priority).collect();
    assert_eq!(priorities, [u32::MAX, u32::MAX]);
    // Tasks that a run added belong to the run, and to people.
    for by in [run("other"), Some(TaskOwner::Session("s".to_owned()))] {
        let refused = store.update_tasks(&TaskUpdate { set: vec![done(task)], by, ..TaskUpdate::default() });
        assert!(matches!(refused, Err(StoreError::TaskOfOthers { id, .. }) if id == task));
    }
    store.update_tasks(&TaskUpdate { set: vec![done(task)], by: run("k"), ..TaskUpdate::default() }).unwrap();
    // The number of a removed task is not used again.
    store.update_tasks(&TaskUpdate { remove: vec![task, elsewhere], ..TaskUpdate::default() }).unwrap();
    let plan = store.update_tasks(&TaskUpdate { add: add("c"), ..TaskUpdate::default() }).unwrap();
    assert_eq!(plan.tasks.last().map(|task| task.id), Some(last + 6));
    let refused = store.update_tasks(&TaskUpdate { remove: vec![task], ..TaskUpdate::default() });
    assert!(matches!(refused, Err(StoreError::NoSuchTask { .. })));
}

fn handles_see_each_other_while_both_are_open(mut one: impl Store, mut other: impl Store) {
    for round in 0..20 {
        one.record(&[viewed("h1", "a", &format!("{round}\n"))]).unwrap();
        other.record(&[viewed("h2", "a", &format!("{round}\n"))]).unwrap();
        assert_eq!(one.view(&session("h2"), &path("a")).unwrap(), other.view(&session("h1"), &path("a")).unwrap());
    }
}
