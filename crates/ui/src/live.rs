//! The state that the page shows, kept current while a page is open. A thread checks whether anything was recorded,
//! reads the new records, and sends the differences to the feeds of all pages. Without a page it sleeps.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, VecDeque},
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use surehand_engine::{
    RootStatus, SessionId, StateMark, Workspace,
    activity::{Activity, ActivityFilter},
    core::{RelPath, TaskList, Text},
    fleet::CopyStamp,
    json,
    repo_state::rfc3339,
    session_list::{ListedSession, SeenFile, SeenLines, SessionLister},
    session_names::SessionNames,
    store::{Incident, IncidentKind, StoreError},
};
use tokio::sync::broadcast;

use crate::board::BoardView;

/// The interval of the check whether anything was recorded.
const CHECK_EVERY: Duration = Duration::from_millis(40);

/// The interval at which files are compared with the lines that sessions have seen: other programs change them without
/// a record.
const COMPARE_EVERY: Duration = Duration::from_secs(3);

/// The most entries of the timeline. `surehand log` shows older ones.
pub(crate) const MOST_ENTRIES: usize = 20_000;

/// The most reads that are kept. They are in memory only.
const MOST_READS: usize = 2000;

/// The most messages that may wait for a slow page before it has to start over.
const MOST_WAITING: usize = 256;

/// The state of a workspace that the pages show.
pub(crate) struct LiveState {
    workspace: Arc<Workspace>,
    board: BoardView,
    present: Mutex<PageState>,
    /// The number of the last update. It grows only while `present` is locked, and before the message is sent.
    revision: AtomicU64,
    messages: broadcast::Sender<Message>,
    pages: Mutex<PageCount>,
    page_came: Condvar,
}

/// A message to the pages, in the format of server-sent events.
pub(crate) type Message = Arc<str>;

#[derive(Default)]
struct PageCount {
    open: usize,
    is_ending: bool,
}

/// The state at the last read.
struct PageState {
    lister: SessionLister,
    mark: Option<StateMark>,
    /// The version of the board's local copy that the pages know.
    copy: Option<CopyStamp>,
    /// The timeline, newest first.
    entries: Vec<TimelineEntry>,
    /// The latest reads, newest first.
    reads: VecDeque<Value>,
    sessions: Vec<ListedSession>,
    edited: HashMap<SessionId, BTreeSet<RelPath>>,
    state: Value,
    rescues: Value,
}

struct TimelineEntry {
    key: String,
    activity: Activity,
    /// The id of the refusal that it repairs.
    repairs: Option<String>,
    json: Value,
    /// Whether it is new or changed since the last read of the timeline.
    is_news: bool,
}

impl LiveState {
    pub(crate) fn new(workspace: Arc<Workspace>, board: BoardView) -> Arc<Self> {
        let present = PageState {
            lister: SessionLister::new(workspace.clone()),
            mark: None,
            copy: None,
            entries: Vec::new(),
            reads: VecDeque::new(),
            sessions: Vec::new(),
            edited: HashMap::new(),
            state: Value::Null,
            rescues: Value::Null,
        };
        let live = Arc::new(Self {
            workspace,
            board,
            present: Mutex::new(present),
            revision: AtomicU64::new(0),
            messages: broadcast::channel(MOST_WAITING).0,
            pages: Mutex::default(),
            page_came: Condvar::new(),
        });
        let watching = live.clone();
        thread::spawn(move || watching.watch());
        live
    }

    pub(crate) fn workspace(&self) -> &Arc<Workspace> {
        &self.workspace
    }

    pub(crate) fn board(&self) -> &BoardView {
        &self.board
    }

    /// Everything that a page needs at its start, with the newest entries.
    pub(crate) fn start(&self) -> Result<Value, StoreError> {
        const FIRST: usize = 200;
        let mut present = self.present();
        self.update(&mut present, Compare::IfRecorded)?;
        let report = self.workspace.state_report();
        Ok(json!({
            "revision": self.revision(),
            "workspace": self.workspace.path().to_string_lossy(),
            "version": env!("CARGO_PKG_VERSION"),
            "read_only": report.is_read_only,
            "state": present.state,
            "rescues": present.rescues,
            "sessions": present.sessions.iter().map(|session| present.session_json(session)).collect::<Vec<_>>(),
            "entries": present.entries.iter().take(FIRST).map(|entry| &entry.json).collect::<Vec<_>>(),
            "reads": present.reads,
            "total": present.entries.len(),
        }))
    }

    /// The entries from this one on, newest first.
    pub(crate) fn entries(&self, from: usize) -> Value {
        let present = self.present();
        let entries: Vec<&Value> = present.entries.iter().skip(from).map(|entry| &entry.json).collect();
        json!({ "revision": self.revision(), "entries": entries })
    }

    /// The lines of a file that each session has seen, with the line numbers of this text.
    pub(crate) fn seen_lines(&self, path: &RelPath, text: &Text) -> Result<Vec<SeenLines>, StoreError> {
        self.present().lister.seen_lines(path, text)
    }

    /// Subscribes to the messages from now on. While the subscription lives, the state is kept current.
    pub(crate) fn subscribe(self: &Arc<Self>) -> Subscription {
        lock(&self.pages).open += 1;
        self.page_came.notify_all();
        let messages = self.messages.subscribe();
        // The revision is read after that, so that every later change arrives as a message.
        Subscription { messages, revision: self.revision(), live: self.clone() }
    }

    /// Ends the thread that keeps the state current.
    pub(crate) fn end(&self) {
        lock(&self.pages).is_ending = true;
        self.page_came.notify_all();
    }

    /// Updates the state at once, because this process has changed something.
    pub(crate) fn look_now(&self) {
        // An error occurs again at the next update.
        drop(self.update(&mut self.present(), Compare::Always));
    }

    fn revision(&self) -> u64 {
        self.revision.load(Ordering::SeqCst)
    }

    fn present(&self) -> MutexGuard<'_, PageState> {
        lock(&self.present)
    }

    fn watch(&self) {
        // The first update reads the whole log, so it is done before a page is opened. The page's own update reports an
        // error.
        drop(self.update(&mut self.present(), Compare::IfRecorded));
        step_back();
        let (mut compared, mut rest) = (Instant::now(), CHECK_EVERY);
        while self.wait_for_page(rest) {
            let began = Instant::now();
            let is_time = compared.elapsed() > COMPARE_EVERY;
            if is_time {
                compared = began;
            }
            let updated = self.update(&mut self.present(), if is_time { Compare::Always } else { Compare::IfRecorded });
            if let Err(error) = updated {
                self.send("trouble", &json!({ "why": error.to_string() }));
            }
            // The more there is to compare, the longer an update takes.
            rest = CHECK_EVERY.max(began.elapsed());
        }
    }

    /// Waits this long, and then until a page is open. Returns `false` when the server ends.
    fn wait_for_page(&self, rest: Duration) -> bool {
        thread::sleep(rest);
        let pages = lock(&self.pages);
        let is_unused = |pages: &mut PageCount| pages.open == 0 && !pages.is_ending;
        let pages = self.page_came.wait_while(pages, is_unused).unwrap_or_else(PoisonError::into_inner);
        !pages.is_ending
    }

    /// Reads new records, and notifies the pages.
    fn update(&self, present: &mut PageState, compare: Compare) -> Result<(), StoreError> {
        self.check_board(present);
        let mark = self.workspace.state_mark();
        let is_recorded = present.mark != Some(mark);
        if !is_recorded && compare == Compare::IfRecorded {
            return Ok(());
        }
        let is_first = present.mark.is_none();
        let rescues: Value = self.workspace.rescues().iter().map(json::rescue).collect();
        let is_rescued = present.rescues != rescues;
        let sessions = present.lister.list()?;
        let mut update = serde_json::Map::new();
        if is_recorded || is_rescued {
            self.read_entries(present, &mut update)?;
            present.rescues = rescues;
            let state = self.state()?;
            if state != present.state || is_rescued {
                update.insert("state".to_owned(), state.clone());
                update.insert("rescues".to_owned(), present.rescues.clone());
                present.state = state;
            }
        }
        if !is_first {
            let reads = reads(&present.sessions, &sessions, &present.edited);
            if !reads.is_empty() {
                update.insert("reads".to_owned(), reads.clone().into());
            }
            reads.into_iter().for_each(|read| present.reads.push_front(read));
            present.reads.truncate(MOST_READS);
        }
        let changed = present.put_sessions(sessions);
        if !changed.is_empty() {
            update.insert("sessions".to_owned(), changed.into());
            update.insert("order".to_owned(), present.sessions.iter().map(|session| json!(session.session.id)).collect());
        }
        present.mark = Some(mark);
        if !update.is_empty() {
            let revision = self.revision.fetch_add(1, Ordering::SeqCst) + 1;
            // The first update is not sent: every page begins with the answer to `start`.
            if !is_first {
                update.insert("revision".to_owned(), revision.into());
                self.send("news", &Value::Object(update));
            }
        }
        if compare == Compare::Always && self.workspace.root_now() != RootStatus::Same {
            let why = "the directory of this workspace was removed or replaced; start surehand ui again";
            self.send("trouble", &json!({ "why": why }));
        }
        Ok(())
    }

    /// Notifies the pages of a newer copy of the board. Pages that show it request it.
    fn check_board(&self, present: &mut PageState) {
        let copy = self.workspace.local_copy_stamp();
        if copy != present.copy {
            present.copy = copy;
            self.send("board", &json!({}));
        }
    }

    /// Reads the timeline, and adds the new, changed and removed entries to the message.
    fn read_entries(&self, present: &mut PageState, update: &mut serde_json::Map<String, Value>) -> Result<(), StoreError> {
        let list = self.workspace.activity(&ActivityFilter::default(), MOST_ENTRIES)?.entries;
        present.edited = edited_files(&list);
        let mut before: HashMap<String, TimelineEntry> =
            present.entries.drain(..).map(|entry| (entry.key.clone(), entry)).collect();
        present.entries = as_entries(list, &self.workspace.session_names()?, &mut before);
        let news: Vec<&Value> = present.entries.iter().filter(|entry| entry.is_news).map(|entry| &entry.json).collect();
        if !news.is_empty() || !before.is_empty() {
            update.insert("entries".to_owned(), json!(news));
            update.insert("gone".to_owned(), before.keys().cloned().collect());
            update.insert("total".to_owned(), present.entries.len().into());
        }
        Ok(())
    }

    fn state(&self) -> Result<Value, StoreError> {
        let mut state = json::state(&self.workspace.snapshot());
        let plan = self.workspace.ask(|store| store.story_tasks(None))?;
        state["tasks"] = json::tasks(&TaskList::of(&plan.story, plan.tasks, None));
        Ok(state)
    }

    fn send(&self, event: &str, data: &Value) {
        // The send fails if no page is open.
        drop(self.messages.send(format!("event: {event}\ndata: {data}\n\n").into()));
    }
}

/// When files are compared with the lines that sessions have seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Compare {
    Always,
    IfRecorded,
}

impl PageState {
    fn session_json(&self, listed: &ListedSession) -> Value {
        let paths = |fits: fn(&&SeenFile) -> bool| -> Vec<RelPath> {
            listed.files.iter().filter(fits).map(|file| file.path.clone()).collect()
        };
        let mut session = json::session(&listed.session, &listed.name, &paths(|_| true), &paths(|file| file.is_stale));
        let partly = listed.files.iter().filter(|file| file.seen_lines < file.total_lines);
        session["partly"] = partly.map(|file| (file.path.to_string(), json!([file.seen_lines, file.total_lines]))).collect();
        session["edited"] = json!(self.edited.get(&listed.session.id));
        session
    }

    /// Replaces the sessions, and returns the changed ones.
    fn put_sessions(&mut self, sessions: Vec<ListedSession>) -> Vec<Value> {
        let before = std::mem::replace(&mut self.sessions, sessions);
        let before: HashMap<&SessionId, &ListedSession> = before.iter().map(|listed| (&listed.session.id, listed)).collect();
        let is_new = |listed: &&ListedSession| before.get(&listed.session.id) != Some(listed);
        let changed: Vec<Value> = self.sessions.iter().filter(is_new).map(|listed| self.session_json(listed)).collect();
        if changed.is_empty() && before.len() > self.sessions.len() { vec![Value::Null] } else { changed }
    }
}

/// The lines that sessions have seen since, in files that they have not changed meanwhile. Reads have no record, so
/// their time is that of the update.
fn reads(before: &[ListedSession], now: &[ListedSession], edited: &HashMap<SessionId, BTreeSet<RelPath>>) -> Vec<Value> {
    let known: HashMap<&SessionId, &ListedSession> = before.iter().map(|listed| (&listed.session.id, listed)).collect();
    let mut reads = Vec::new();
    for listed in now {
        let id = &listed.session.id;
        let before: BTreeMap<&RelPath, _> =
            known.get(id).iter().flat_map(|known| &known.files).map(|file| (&file.path, file)).collect();
        for file in &listed.files {
            let earlier = before.get(&file.path);
            let is_more =
                earlier.is_none_or(|earlier| file.seen_lines > earlier.seen_lines || (earlier.is_stale && !file.is_stale));
            let is_own = edited.get(id).is_some_and(|edited| edited.contains(&file.path));
            let is_own_change = is_own && known.get(id).is_none_or(|known| known.session.changes != listed.session.changes);
            if is_more && !is_own_change && file.seen_lines > 0 {
                let at = listed.session.last_active.unwrap_or_default();
                reads.push(json!({
                    "kind": "read", "id": format!("{id} {} {at}", file.path), "at": rfc3339(at), "session": id,
                    "by": listed.name, "path": file.path, "seen_lines": file.seen_lines, "total_lines": file.total_lines,
                }));
            }
        }
    }
    reads
}

fn edited_files(list: &[Activity]) -> HashMap<SessionId, BTreeSet<RelPath>> {
    let mut edited: HashMap<SessionId, BTreeSet<RelPath>> = HashMap::new();
    for activity in list {
        if let Activity::Change(change) = activity {
            let of_session = edited.entry(change.session.clone()).or_default();
            of_session.extend(change.files.iter().map(|file| file.name_after().clone()));
        }
    }
    edited
}

/// The entries of the timeline, newest first. Known entries are moved over from `before`; those that stay there have
/// been removed.
fn as_entries(list: Vec<Activity>, names: &SessionNames, before: &mut HashMap<String, TimelineEntry>) -> Vec<TimelineEntry> {
    let repairs = repairs(&list);
    let mut known_names: HashMap<SessionId, String> = HashMap::new();
    let mut entry = |(activity, repairs): (Activity, Option<String>)| {
        let by = activity.session().map(|session| match known_names.get(session) {
            Some(name) => name.clone(),
            None => known_names.entry(session.clone()).or_insert_with(|| names.name(session)).clone(),
        });
        let key = format!("{} {}", activity.kind().name(), activity.id());
        match before.remove(&key) {
            Some(known)
                if known.activity == activity && known.repairs == repairs && known.json["by"].as_str() == by.as_deref() =>
            {
                TimelineEntry { is_news: false, ..known }
            }
            _ => {
                let mut json = json::activity(&activity);
                (json["by"], json["repairs"]) = (by.into(), repairs.clone().into());
                TimelineEntry { key, activity, repairs, json, is_news: true }
            }
        }
    };
    list.into_iter().zip(repairs).map(&mut entry).collect()
}

/// For each entry, newest first, the refusal that it repairs: of the last edit of the same file by the same session.
fn repairs(list: &[Activity]) -> Vec<Option<String>> {
    let mut refused: HashMap<(&SessionId, &RelPath), &str> = HashMap::new();
    let mut repairs: Vec<Option<String>> = Vec::with_capacity(list.len());
    for activity in list.iter().rev() {
        repairs.push(match activity {
            Activity::Change(change) => {
                let repaired = change.files.iter().filter_map(|file| refused.remove(&(&change.session, &file.path)));
                repaired.last().map(str::to_owned)
            }
            Activity::Incident(Incident { session, path: Some(path), kind: IncidentKind::Refused { .. }, .. }) => {
                refused.insert((session, path), activity.id());
                None
            }
            Activity::Incident(_) | Activity::Checkpoint(_) | Activity::Rescue(_) => None,
        });
    }
    repairs.reverse();
    repairs
}

/// Lowers the priority of this thread, because agents are more urgent.
fn step_back() {
    // On other systems, this would change the priority of the whole process.
    #[cfg(target_os = "linux")]
    let _ = rustix::process::setpriority_process(None, 10);
}

/// The messages for one page.
pub(crate) struct Subscription {
    pub messages: broadcast::Receiver<Message>,
    /// The revision before the first message.
    pub revision: u64,
    live: Arc<LiveState>,
}

impl Drop for Subscription {
    fn drop(&mut self) {
        lock(&self.live.pages).open -= 1;
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
