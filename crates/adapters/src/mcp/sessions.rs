//! The state that all connections of a server share: the workspace, the offered tools, the sessions, and the
//! announcements of changes.

use std::{
    collections::HashMap,
    panic::{self, AssertUnwindSafe},
    path::Path,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use rmcp::model::{JsonObject, MetaObject, Tool as Offered, ToolAnnotations};
use serde_json::Value;
use surehand_engine::{
    CallProgress, ClientInstructions, Outcome, Refusal, RootStatus, Session, SessionId, Tool, ToolNames, Workspace,
    core::{Cause, EditDialect, ToolKind, outcome::RefusedOutcome},
    render, tools,
};
use tokio_util::sync::CancellationToken;

use super::{caller::Caller, resources::Resources};

pub(super) type SharedSession = Arc<Mutex<Session>>;

/// The most sessions in memory. The least recently used one makes room for another, and is loaded from the store when
/// it is needed again.
const MOST_SESSIONS: usize = 32;

/// Opens the workspace at a root with its present settings. The error says why that is not possible.
pub type OpenRoot = Box<dyn Fn(&Path) -> Result<Arc<Workspace>, String> + Send + Sync>;

pub(super) struct SessionPool {
    /// Replaced when its root was removed and created again.
    workspace: Mutex<Arc<Workspace>>,
    open: OpenRoot,
    /// The offered tools by their names.
    pub names: Arc<ToolNames>,
    /// The offered tools as clients see them.
    pub tools: Vec<Offered>,
    pub resources: Resources,
    /// Cancelled when the server is about to end.
    pub closing: CancellationToken,
    sessions: Mutex<HashMap<SessionId, PooledSession>>,
    uses: AtomicU64,
}

struct PooledSession {
    session: SharedSession,
    last_use: u64,
}

impl SessionPool {
    pub(super) fn new(workspace: Arc<Workspace>, open: OpenRoot, dialects: &[EditDialect]) -> Self {
        let names = ToolNames::of_dialects(dialects);
        let offered = Tool::ALL.into_iter().filter(|tool| names.get(*tool).is_some());
        Self {
            resources: Resources::new(names.clone()),
            workspace: Mutex::new(workspace),
            open,
            tools: offered.map(|tool| describe(tool, &names)).collect(),
            names: Arc::new(names),
            closing: CancellationToken::new(),
            sessions: Mutex::default(),
            uses: AtomicU64::new(0),
        }
    }

    pub(super) fn workspace(&self) -> Arc<Workspace> {
        lock(&self.workspace).clone()
    }

    /// The workspace of the directory that is at the root now, or else the last one.
    pub(super) fn current_workspace(&self) -> Arc<Workspace> {
        // A call reports the error.
        drop(self.follow_root());
        self.workspace()
    }

    /// Changes to the directory that is at the root now, if it is a new one. Views of the old directory no longer
    /// count. Returns an error if there is no directory, or it cannot be opened.
    pub(super) fn follow_root(&self) -> Result<(), Outcome> {
        let mut workspace = lock(&self.workspace);
        let fail = |why: String| Err(failure(Cause::Io { why }));
        let root = workspace.path().display().to_string();
        match workspace.root_now() {
            RootStatus::Same => Ok(()),
            RootStatus::Gone => {
                fail(format!("{root}, the directory of this workspace, was removed; create it again and repeat the call"))
            }
            RootStatus::Another => match (self.open)(workspace.path()) {
                Ok(opened) => {
                    opened.take_over_from(&workspace);
                    *workspace = opened;
                    // Other threads lock the workspace while they hold the sessions.
                    drop(workspace);
                    lock(&self.sessions).clear();
                    Ok(())
                }
                Err(why) => {
                    fail(format!("{root}, the directory of this workspace, was created again and cannot be opened: {why}"))
                }
            },
        }
    }

    /// A new session for this server alone.
    pub(super) fn new_session(&self) -> Caller {
        let mut session = Session::new(self.workspace());
        let id = session.tracker().expect("a new session has one").session().clone();
        self.put(&mut lock(&self.sessions), &id, session);
        Caller::Own(id)
    }

    pub(super) fn session_of(&self, caller: &Caller) -> SharedSession {
        let mut sessions = lock(&self.sessions);
        if let Some(pooled) = sessions.get_mut(caller.id()) {
            pooled.last_use = self.uses.fetch_add(1, Ordering::Relaxed);
            return pooled.session.clone();
        }
        self.make_room(&mut sessions);
        let session = match caller {
            Caller::Own(id) => Session::continued(self.workspace(), id.clone()),
            Caller::Shared(id) => Session::shared(self.workspace(), id.clone()),
        };
        self.put(&mut sessions, caller.id(), session)
    }

    /// Forgets the views of a caller whose connection has ended. Other processes may still use a shared session.
    pub(super) fn leave(&self, caller: &Caller) {
        let left = lock(&self.sessions).remove(caller.id());
        match (caller, left) {
            (Caller::Own(_), Some(left)) => lock(&left.session).reset(),
            (Caller::Own(id), None) => Session::continued(self.workspace(), id.clone()).reset(),
            (Caller::Shared(_), _) => {}
        }
    }

    fn put(&self, sessions: &mut HashMap<SessionId, PooledSession>, id: &SessionId, session: Session) -> SharedSession {
        let session = Arc::new(Mutex::new(session));
        let last_use = self.uses.fetch_add(1, Ordering::Relaxed);
        sessions.insert(id.clone(), PooledSession { session: session.clone(), last_use });
        session
    }

    fn make_room(&self, sessions: &mut HashMap<SessionId, PooledSession>) {
        if sessions.len() < MOST_SESSIONS {
            return;
        }
        // A session with a running call stays.
        let idle = sessions.iter().filter(|(_, pooled)| Arc::strong_count(&pooled.session) == 1);
        if let Some(id) = idle.min_by_key(|(_, pooled)| pooled.last_use).map(|(id, _)| id.clone()) {
            sessions.remove(&id);
            // It will load its views from the store.
            self.workspace().flush();
        }
    }

    pub(super) fn tool(&self, name: &str) -> Option<&Offered> {
        self.tools.iter().find(|tool| tool.name == name)
    }

    /// The refusal of a call of a tool that exists but is not offered.
    pub(super) fn refuse_hidden(&self, name: &str) -> Option<Outcome> {
        if self.tool(name).is_some() || Tool::named(name).is_none() {
            return None;
        }
        Some(failure(Cause::NoSuchTool { name: name.to_owned() }))
    }
}

/// Calls a tool and renders the outcome. A panic in one call must not end the others.
pub(super) fn call<T>(
    session: &mut Session,
    progress: &CallProgress,
    mut call: ToolCall,
    mut render: impl FnMut(Outcome, &ToolCall) -> T,
) -> T {
    let called = panic::catch_unwind(AssertUnwindSafe(|| {
        session.foreign_tools().were_instructed_at_start(call.instructions);
        let outcome = session.run_owned_tool(progress, &call.tool, std::mem::take(&mut call.arguments));
        render(outcome, &call)
    }));
    called.unwrap_or_else(|_| {
        session.reset();
        let why = "Internal error in Surehand; the call may not have completed. Read the files again before editing.";
        render(failure(Cause::Io { why: why.to_owned() }), &call)
    })
}

pub(super) struct ToolCall {
    pub tool: String,
    pub arguments: Value,
    /// The names of the tools for this client's model.
    pub names: Arc<ToolNames>,
    /// Whether the client wants the outcome as an object as well.
    pub wants_object: bool,
    /// The instruction files that the client loads by itself.
    pub instructions: &'static ClientInstructions,
}

/// The outcome of a call, rendered on the thread of the call, because rendering may take long.
pub(super) struct RenderedAnswer {
    pub outcome: Outcome,
    pub text: String,
    pub object: Option<Value>,
}

impl RenderedAnswer {
    pub(super) fn of(outcome: Outcome, call: &ToolCall) -> Self {
        let text = render::text(&outcome, &call.names);
        let object = call.wants_object.then(|| render::json(&outcome, &call.names));
        Self { outcome, text, object }
    }
}

/// The outcome of a call that failed before it reached a session.
pub(super) fn failure(cause: Cause) -> Outcome {
    Outcome::new(Err(RefusedOutcome { refusal: Box::new(Refusal::of_call(cause)), repeat: 1, text: None }))
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn describe(tool: Tool, names: &ToolNames) -> Offered {
    let annotations = match tool.kind() {
        ToolKind::Reads | ToolKind::Forgets => ToolAnnotations::new().read_only(true).idempotent(true),
        ToolKind::Edits | ToolKind::Tasks => ToolAnnotations::new().read_only(false).destructive(true).idempotent(false),
    };
    // Several clients hide a server's tools behind a search unless they have this mark.
    let always = MetaObject(JsonObject::from_iter([("anthropic/alwaysLoad".to_owned(), Value::Bool(true))]));
    Offered::new(tool.name(), tools::description(tool, names), Arc::new(tools::input_schema(tool, names)))
        .with_annotations(annotations.open_world(false))
        .with_meta(always)
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use surehand_engine::Config;

    use super::*;

    fn pool() -> (tempfile::TempDir, SessionPool) {
        let dir = surehand_testkit::repository();
        let open: OpenRoot = Box::new(|root: &Path| Workspace::open(root, Config::default()).map_err(|error| error.to_string()));
        let workspace = open(dir.path()).unwrap();
        (dir, SessionPool::new(workspace, open, &EditDialect::ALL))
    }

    fn own(number: usize) -> Caller {
        Caller::Own(SessionId(format!("s{number}")))
    }

    #[test]
    fn a_session_that_made_room_for_others_still_knows_what_it_read() {
        let (_dir, pool) = pool();
        let try_edit = |caller: &Caller, old: &str, new: &str| {
            let edit = json!({ "path": "a.txt", "old_string": old, "new_string": new });
            lock(&pool.session_of(caller)).call("edit_file", &edit)
        };
        lock(&pool.session_of(&own(0))).call("write_file", &json!({ "path": "a.txt", "content": "0\n" }));
        for number in 1..2 * MOST_SESSIONS {
            assert!(try_edit(&own(number), "0", "x").is_error, "session {number} has read nothing");
        }
        assert!(lock(&pool.sessions).len() <= MOST_SESSIONS);
        assert!(!lock(&pool.sessions).contains_key(own(0).id()));
        assert!(!try_edit(&own(0), "0", "1").is_error);
    }

    #[test]
    fn a_session_that_was_left_knows_nothing_and_a_shared_one_goes_on() {
        let (_dir, pool) = pool();
        let shared = Caller::Shared(SessionId("t".to_owned()));
        for caller in [&own(0), &shared] {
            let path = format!("{}.txt", caller.id().0);
            lock(&pool.session_of(caller)).call("write_file", &json!({ "path": path, "content": "0\n" }));
            pool.leave(caller);
            let edit = json!({ "path": path, "old_string": "0", "new_string": "1" });
            assert_eq!(lock(&pool.session_of(caller)).call("edit_file", &edit).is_error, *caller == own(0), "{caller:?}");
        }
    }
}
