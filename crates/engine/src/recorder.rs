//! Writes records to the store in the background and in batches. A record that a later one replaces is not written. A
//! crash loses the views of the last moment, which costs another read. Records of changes survive in the outbox.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread::{self, JoinHandle, ThreadId},
    time::{Duration, Instant},
};

use surehand_core::{ContentHash, Notice, RelPath};
use surehand_store::{SessionId, SqliteStore, Store, StoreBounds, StoreError, StoreRecord};

use crate::{
    config::VersionConfig,
    disk::checkout_state::CheckoutState,
    outbox::{Outbox, must_outlive_process},
};

pub(crate) struct Recorder {
    queue: Arc<RecordQueue>,
    runs: RecorderThread,
}

enum RecorderThread {
    /// On a thread of its own.
    Background(Option<JoinHandle<()>>),
    /// On the thread that flushes, and on drop: for a process that exits immediately.
    OnFlush(Mutex<StoreWriter>),
}

#[derive(Debug)]
struct RecordQueue {
    pending: Mutex<PendingRecords>,
    /// Signals a record in an empty queue, or an urgent request.
    wake: Condvar,
    /// Signals that a batch has been written, or that the thread has ended.
    written: Condvar,
    /// Whether a caller that records a change waits for the store.
    writes_through: bool,
}

#[derive(Debug, Default)]
struct PendingRecords {
    records: Vec<StoreRecord>,
    outbox: Option<Outbox>,
    /// The index in `records` of the latest record about a subject.
    last: HashMap<RecordSubject, usize>,
    bytes: usize,
    /// The number of the last batch requested and of the last one written.
    asked: u64,
    written: u64,
    urgent: bool,
    closed: bool,
    ended: bool,
    held: Vec<HoldOwner>,
    /// Whether the records are due and only holds keep them back.
    is_due: bool,
    /// Whether the thread must be woken by the next record.
    is_asleep: bool,
}

#[derive(Debug)]
struct HoldOwner {
    thread: ThreadId,
    /// Whether this thread has recorded a change during the hold.
    has_change: bool,
}

#[derive(Clone)]
pub(crate) enum SharedStore {
    Database(Arc<Mutex<SqliteStore>>),
    Other(Arc<Mutex<Box<dyn Store>>>),
}

impl SharedStore {
    pub(crate) fn with<T>(&self, act: impl FnOnce(&mut dyn Store) -> T) -> T {
        match self {
            Self::Database(store) => act(&mut *lock_store(store)),
            Self::Other(store) => act(&mut **lock_store(store)),
        }
    }
}

/// A store that has panicked is used again: its implementation must keep its data consistent.
pub(crate) fn lock_store<S>(store: &Mutex<S>) -> MutexGuard<'_, S> {
    store.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How the record of a change survives a crash.
#[derive(Debug)]
pub(crate) enum CrashSafety {
    /// The outbox has it before the change is acknowledged, and the store soon after.
    Outbox(Outbox),
    /// The store has it before the change is acknowledged.
    WriteThrough,
    /// Not at all, because the store ends with the process too.
    Nothing,
}

pub(crate) struct IdleMoment<'a> {
    pub store: &'a SharedStore,
    queue: &'a RecordQueue,
}

impl IdleMoment<'_> {
    pub(crate) fn is_all_written(&self) -> bool {
        self.queue.lock().records.is_empty()
    }
}

/// While a hold exists, nothing is written, and all records of that time are written together.
#[derive(Debug)]
pub(crate) struct RecorderHold {
    queue: Arc<RecordQueue>,
    thread: ThreadId,
}

impl Drop for RecorderHold {
    fn drop(&mut self) {
        let mut pending = self.queue.lock();
        let has_change = pending.release(self.thread);
        if let Some(outbox) = &mut pending.outbox {
            outbox.end_group();
        }
        let is_due = pending.is_due;
        drop(pending);
        if is_due {
            self.queue.wake.notify_one();
        }
        if self.queue.writes_through && has_change {
            self.queue.flush();
        }
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
enum RecordSubject {
    View(SessionId, RelPath),
    File(RelPath),
    Text(SessionId, RelPath),
}

/// How long records wait for others, to be written as a batch.
const PATIENCE: Duration = Duration::from_millis(100);
/// How long the thread polls for records before it sleeps.
const AWAKE: Duration = Duration::from_secs(2);
const MAX_RECORDS: usize = 1000;
const MAX_BYTES: usize = 1 << 20;
/// With more records than this, callers wait: the thread has low priority, and a backlog would fill the memory.
const MOST_RECORDS: usize = 3_000;
const MOST_BYTES: usize = 4 << 20;
/// The number of sessions whose views are kept. A session that is dropped must read its files again.
const MOST_SESSIONS: usize = 500;
/// How often a process marks its idle sessions as in use.
const MARK_IN_USE_AFTER: Duration = Duration::from_secs(60 * 60);

impl Recorder {
    /// Starts the thread. `housekeeping` is run now and then and returns whether there is more to do soon.
    pub(crate) fn start(
        writer: StoreWriter,
        safety: CrashSafety,
        housekeeping: impl Fn(&IdleMoment<'_>) -> bool + Send + 'static,
    ) -> std::io::Result<Self> {
        let queue = Arc::new(RecordQueue::new(safety));
        let thread_queue = queue.clone();
        let run = move || run(writer, &thread_queue, &housekeeping);
        let thread = std::thread::Builder::new().name("surehand-recorder".to_owned()).spawn(run)?;
        Ok(Self { queue, runs: RecorderThread::Background(Some(thread)) })
    }

    pub(crate) fn without_thread(writer: StoreWriter, safety: CrashSafety) -> Self {
        Self { queue: Arc::new(RecordQueue::new(safety)), runs: RecorderThread::OnFlush(Mutex::new(writer)) }
    }

    pub(crate) fn record(&self, record: StoreRecord) {
        let subject = match &record {
            StoreRecord::Viewed { session, path, .. } => Some(RecordSubject::View(session.clone(), path.clone())),
            StoreRecord::Found { path, .. } => Some(RecordSubject::File(path.clone())),
            _ => None,
        };
        let mut pending = self.queue.lock();
        // Under one lock, or this record could be confused with one that is just being written.
        if let Some(outbox) = &mut pending.outbox {
            outbox.add_record(&record);
        }
        let is_wanted_now = self.queue.writes_through && must_outlive_process(&record) && !pending.waits_for_hold();
        self.add(pending, record, subject, |_| true);
        if is_wanted_now {
            self.flush();
        }
    }

    /// Records the current text of a file as the session knows it. If the text that it replaces has not been written
    /// yet, that one is dropped: the session never compares with it again, and the change has its own record.
    pub(crate) fn record_text(&self, owner: &SessionId, path: &RelPath, replaced: Option<ContentHash>, record: StoreRecord) {
        let is_replaced = |last: &StoreRecord| matches!(last, StoreRecord::Kept { version, .. } if Some(*version) == replaced);
        self.add(self.queue.lock(), record, Some(RecordSubject::Text(owner.clone(), path.clone())), is_replaced);
    }

    fn add(
        &self,
        mut pending: MutexGuard<'_, PendingRecords>,
        record: StoreRecord,
        subject: Option<RecordSubject>,
        is_overtaken: impl Fn(&StoreRecord) -> bool,
    ) {
        if matches!(record, StoreRecord::Cleared { .. } | StoreRecord::Forgot { .. }) {
            // Later records must not move before this one.
            pending.last.retain(|subject, _| !matches!(subject, RecordSubject::View(..)));
        }
        let is_too_much = (pending.bytes > MOST_BYTES || pending.records.len() > MOST_RECORDS) && pending.held.is_empty();
        pending.bytes += size_of_content(&record);
        let last = subject.as_ref().and_then(|subject| pending.last.get(subject)).copied();
        match last.filter(|place| is_overtaken(&pending.records[*place])) {
            Some(place) => {
                let overtaken = std::mem::replace(&mut pending.records[place], record);
                pending.bytes -= size_of_content(&overtaken);
            }
            None => {
                let place = pending.records.len();
                pending.records.push(record);
                pending.last.extend(subject.map(|subject| (subject, place)));
                pending.urgent |= place >= MAX_RECORDS;
            }
        }
        pending.urgent |= pending.bytes > MAX_BYTES;
        let wakes = pending.urgent || pending.is_asleep;
        pending.is_asleep = false;
        drop(pending);
        if wakes {
            self.queue.wake.notify_one();
        }
        if is_too_much {
            self.flush();
        }
    }

    /// Holds back all records until the value is dropped. The holder must not flush.
    pub(crate) fn hold(&self) -> RecorderHold {
        let mut pending = self.queue.lock();
        let thread = thread::current().id();
        pending.held.push(HoldOwner { thread, has_change: false });
        if let Some(outbox) = &mut pending.outbox {
            outbox.begin_group();
        }
        drop(pending);
        RecorderHold { queue: self.queue.clone(), thread }
    }

    pub(crate) fn flush(&self) {
        match &self.runs {
            RecorderThread::Background(_) => self.queue.flush(),
            RecorderThread::OnFlush(writer) => {
                let mut pending = self.queue.lock();
                pending.asked += 1;
                let batch = pending.take();
                drop(pending);
                lock_store(writer).write(&self.queue, &batch);
            }
        }
    }
}

fn size_of_content(record: &StoreRecord) -> usize {
    match record {
        StoreRecord::Kept { content, .. } => content.bytes().len(),
        StoreRecord::Happened(event) => event.delta.as_ref().map_or(0, |delta| delta.middle.len()),
        _ => 0,
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        let mut pending = self.queue.lock();
        pending.closed = true;
        pending.urgent = true;
        self.queue.wake.notify_one();
        drop(pending);
        match &mut self.runs {
            RecorderThread::Background(thread) => drop(thread.take().map(JoinHandle::join)),
            RecorderThread::OnFlush(_) => self.flush(),
        }
    }
}

impl RecordQueue {
    fn new(safety: CrashSafety) -> Self {
        let writes_through = matches!(safety, CrashSafety::WriteThrough);
        let outbox = match safety {
            CrashSafety::Outbox(outbox) => Some(outbox),
            CrashSafety::WriteThrough | CrashSafety::Nothing => None,
        };
        let pending = Mutex::new(PendingRecords { outbox, ..PendingRecords::default() });
        Self { pending, wake: Condvar::new(), written: Condvar::new(), writes_through }
    }

    fn lock(&self) -> MutexGuard<'_, PendingRecords> {
        self.pending.lock().expect("no thread panics while it holds the lock")
    }

    /// Waits until everything recorded so far is written, or the thread has ended.
    fn flush(&self) {
        let mut pending = self.lock();
        pending.asked += 1;
        pending.urgent = true;
        let batch = pending.asked;
        self.wake.notify_one();
        while pending.written < batch && !pending.ended {
            pending = self.written.wait(pending).expect("no thread panics while it holds the lock");
        }
    }

    fn mark_written(&self, batch: u64, stored: &Result<(), StoreError>) {
        let mut pending = self.lock();
        if let (Ok(()), Some(outbox)) = (stored, &mut pending.outbox) {
            outbox.clear_other_file();
        }
        pending.written = batch;
        self.written.notify_all();
    }

    /// Waits for a batch. `None` after `patience` without one.
    ///
    /// Waking a thread takes longer than recording. So the thread polls while calls come in, and sleeps only after a
    /// while without any.
    fn next(&self, patience: Duration) -> Option<RecordBatch> {
        let wait = |pending, time| self.wake.wait_timeout(pending, time).expect("no thread panics while it holds the lock").0;
        let began = Instant::now();
        let mut first_may_be_from = began;
        let mut pending = self.lock();
        while pending.records.is_empty() && !pending.urgent {
            let now = Instant::now();
            let left = patience.checked_sub(now.duration_since(began))?;
            pending.is_asleep = now.duration_since(began) >= AWAKE;
            if pending.is_asleep {
                pending = wait(pending, left);
                first_may_be_from = Instant::now();
            } else {
                pending = wait(pending, left.min(PATIENCE));
                first_may_be_from = now;
            }
        }
        pending.is_asleep = false;
        while !pending.urgent {
            let Some(left) = PATIENCE.checked_sub(first_may_be_from.elapsed()).filter(|left| !left.is_zero()) else { break };
            pending = wait(pending, left);
        }
        pending.is_due = true;
        while !pending.held.is_empty() {
            pending = self.wake.wait(pending).expect("no thread panics while it holds the lock");
        }
        Some(pending.take())
    }
}

struct RecordBatch {
    records: Vec<StoreRecord>,
    number: u64,
    is_last: bool,
}

impl PendingRecords {
    fn take(&mut self) -> RecordBatch {
        self.is_due = false;
        self.urgent = false;
        self.bytes = 0;
        self.last.clear();
        if let Some(outbox) = &mut self.outbox {
            outbox.switch_file();
        }
        RecordBatch { records: std::mem::take(&mut self.records), number: self.asked, is_last: self.closed }
    }

    /// Ends a hold of this thread. Returns whether it kept back a change that may now be written.
    fn release(&mut self, thread: ThreadId) -> bool {
        let Some(place) = self.held.iter().position(|holder| holder.thread == thread) else { return false };
        let released = self.held.swap_remove(place);
        match self.held.iter_mut().find(|holder| holder.thread == thread) {
            // An outer hold still keeps it back.
            Some(outer) => {
                outer.has_change |= released.has_change;
                false
            }
            None => released.has_change,
        }
    }

    /// Notes the record of a change. Returns whether it must wait for the other records of this thread's hold.
    fn waits_for_hold(&mut self) -> bool {
        let this_thread = thread::current().id();
        let holder = self.held.iter_mut().find(|holder| holder.thread == this_thread);
        holder.map(|holder| holder.has_change = true).is_some()
    }
}

/// Wakes all waiting callers when the thread ends, even by a panic of the store.
struct ThreadEnd<'a>(&'a RecordQueue);

impl Drop for ThreadEnd<'_> {
    fn drop(&mut self) {
        if let Ok(mut pending) = self.0.pending.lock() {
            pending.ended = true;
        }
        self.0.written.notify_all();
    }
}

fn run(mut writer: StoreWriter, queue: &RecordQueue, housekeeping: &dyn Fn(&IdleMoment<'_>) -> bool) {
    // Calls are more urgent than records. On other systems, this would change the priority of the whole process.
    #[cfg(target_os = "linux")]
    let _ = rustix::process::setpriority_process(None, 10);
    let _end = ThreadEnd(queue);
    let mut busy = true;
    loop {
        if let Some(batch) = queue.next(Duration::from_millis(if busy { 300 } else { 30_000 })) {
            writer.write(queue, &batch);
            if batch.is_last {
                break;
            }
        }
        let moment = IdleMoment { store: &writer.store, queue };
        busy = housekeeping(&moment) | writer.tidy_store(Instant::now());
    }
}

pub(crate) struct StoreWriter {
    store: SharedStore,
    versions: VersionConfig,
    /// Where errors and changes are announced; `None` in tests.
    state: Option<Arc<CheckoutState>>,
    has_failed: bool,
    /// The sessions of this process with records in the store, and when they were last marked as in use.
    in_use: HashSet<SessionId>,
    marked_at: Instant,
}

impl StoreWriter {
    pub(crate) fn new(store: SharedStore, versions: VersionConfig, state: Option<Arc<CheckoutState>>) -> Self {
        Self { store, versions, state, has_failed: false, in_use: HashSet::new(), marked_at: Instant::now() }
    }

    fn write(&mut self, queue: &RecordQueue, batch: &RecordBatch) {
        let stored = if batch.records.is_empty() { Ok(()) } else { self.store.with(|store| store.record(&batch.records)) };
        queue.mark_written(batch.number, &stored);
        // Report the error once, because the next batches would only repeat it.
        if let (Err(error), false) = (&stored, self.has_failed) {
            self.has_failed = true;
            self.state.iter().for_each(|state| state.notify(Notice::NotRemembered { why: error.to_string() }));
        }
        if batch.records.iter().any(|record| matches!(record, StoreRecord::Touched { .. })) {
            // A change was announced when it was acknowledged. Other processes learn of reads here.
            self.state.iter().for_each(|state| state.announce_own());
        }
        if !batch.records.is_empty() {
            self.note_sessions(&batch.records);
            // Each batch trims a part, so that even short-lived processes delete as much as they add.
            self.trim();
        }
        if let (true, Some(outbox)) = (batch.is_last, &mut queue.lock().outbox) {
            outbox.close();
        }
    }

    fn note_sessions(&mut self, records: &[StoreRecord]) {
        for record in records {
            match record {
                StoreRecord::Viewed { session, .. } if !self.in_use.contains(session) => {
                    self.in_use.insert(session.clone());
                }
                StoreRecord::Cleared { session } => drop(self.in_use.remove(session)),
                _ => {}
            }
        }
    }

    /// Deletes a part of what exceeds the bounds. Returns whether there is more.
    fn trim(&self) -> bool {
        let days = u32::try_from(self.versions.days).unwrap_or(u32::MAX);
        let bounds = StoreBounds { bytes: self.versions.bytes, days, sessions: MOST_SESSIONS };
        // A failed deletion is tried again with the next record.
        self.store.with(|store| store.trim(&bounds)).unwrap_or(false)
    }

    /// Trims the store and releases space, one part at a time. Returns whether there is more to do soon.
    fn tidy_store(&mut self, now: Instant) -> bool {
        if now.duration_since(self.marked_at) > MARK_IN_USE_AFTER && !self.in_use.is_empty() {
            self.marked_at = now;
            let in_use: Vec<StoreRecord> = self.in_use.iter().cloned().map(|session| StoreRecord::InUse { session }).collect();
            drop(self.store.with(|store| store.record(&in_use)));
        }
        self.trim() || self.store.with(|store| store.release_space()).unwrap_or(false)
    }
}

#[cfg(test)]
mod tests {
    use surehand_core::{Text, View};
    use surehand_store::SharedBytes;

    use super::*;

    #[test]
    fn waiting_callers_are_released_when_the_thread_ends() {
        let queue = RecordQueue::new(CrashSafety::Nothing);
        thread::scope(|scope| {
            scope.spawn(|| queue.flush());
            drop(ThreadEnd(&queue));
        });
    }

    /// A session that is idle for a long time while other sessions begin and end.
    #[test]
    fn a_session_of_a_process_that_goes_on_counts_as_used() {
        let store = SharedStore::Database(Arc::new(Mutex::new(SqliteStore::in_memory().unwrap())));
        let mut writer = StoreWriter::new(store.clone(), crate::Config::default().versions, None);
        let view = View::whole(&Text::new(b"x\n".to_vec()).unwrap());
        let viewed = |session: &str| StoreRecord::Viewed {
            session: SessionId(session.to_owned()),
            path: RelPath::new("a").unwrap(),
            view: view.clone(),
        };
        let queue = RecordQueue::new(CrashSafety::Nothing);
        let batch = |records| RecordBatch { records, number: 1, is_last: false };
        writer.write(&queue, &batch(vec![viewed("idle"), viewed("ended")]));
        writer.write(&queue, &batch(vec![StoreRecord::Cleared { session: SessionId("ended".to_owned()) }]));
        store.with(|store| store.record(&[viewed("another")])).unwrap();
        writer.tidy_store(Instant::now() + 2 * MARK_IN_USE_AFTER);
        store.with(|store| {
            store.record(&[viewed("third")]).unwrap();
            let bounds = StoreBounds { bytes: u64::MAX, days: u32::MAX, sessions: 2 };
            while store.trim(&bounds).unwrap() {}
            assert_eq!(store.sessions().unwrap(), ["idle", "third"].map(|session| (SessionId(session.to_owned()), 1)));
        });
    }

    #[test]
    fn a_change_waits_for_the_outermost_hold() {
        let recorder =
            Recorder { queue: Arc::new(RecordQueue::new(CrashSafety::WriteThrough)), runs: RecorderThread::Background(None) };
        let (outer, inner) = (recorder.hold(), recorder.hold());
        recorder.record(StoreRecord::Kept { version: ContentHash::of(b"a"), content: SharedBytes::new(b"a"), at: 1 });
        drop(inner);
        assert_eq!(recorder.queue.lock().asked, 0);
        drop(ThreadEnd(&recorder.queue));
        drop(outer);
        assert_eq!(recorder.queue.lock().asked, 1);
    }

    #[test]
    fn records_of_a_hold_are_written_together() {
        let dir = Arc::new(std::fs::File::open(std::env::temp_dir()).unwrap());
        let outbox = Outbox::new(dir, "never-written-to".to_owned(), None);
        let recorder =
            Recorder { queue: Arc::new(RecordQueue::new(CrashSafety::Outbox(outbox))), runs: RecorderThread::Background(None) };
        let cleared = |number: usize| StoreRecord::Cleared { session: SessionId(number.to_string()) };
        std::thread::scope(|scope| {
            let hold = recorder.hold();
            let taken = scope.spawn(|| recorder.queue.next(Duration::from_secs(60)));
            (0..3 * MAX_RECORDS).for_each(|number| recorder.record(cleared(number)));
            drop(hold);
            assert_eq!(taken.join().unwrap().unwrap().records.len(), 3 * MAX_RECORDS);
        });
    }
}
