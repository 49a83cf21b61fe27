//! What all connections of a server share: the workspace, the tools that are offered, the sessions, and news of what changes.

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

/// So many sessions are in memory. One that was used longest ago makes room for another, and goes on from the store when it is
/// needed again.
const MOST_SEATS: usize = 32;

/// Opens the workspace at a root, with the settings that count there now; says why not.
pub type OpenRoot = Box<dyn Fn(&Path) -> Result<Arc<Workspace>, String> + Send + Sync>;

pub(super) struct SessionPool {
    /// Another one when its root was removed and made again.
    workspace: Mutex<Arc<Workspace>>,
    open: OpenRoot,
    /// The tools that are offered, by their names.
    pub names: Arc<ToolNames>,
    /// The same as clients get to see them.
    pub tools: Vec<Offered>,
    pub resources: Resources,
    /// The server is about to end.
    pub closing: CancellationToken,
    seats: Mutex<HashMap<SessionId, PooledSession>>,
    uses: AtomicU64,
}

struct PooledSession {
    seat: SharedSession,
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
            seats: Mutex::default(),
            uses: AtomicU64::new(0),
        }
    }

    pub(super) fn workspace(&self) -> Arc<Workspace> {
        lock(&self.workspace).clone()
    }

    /// The same, of the directory that is at the root now. If there is none, the one that was.
    pub(super) fn current_workspace(&self) -> Arc<Workspace> {
        // A call says what is wrong with it.
        drop(self.follow_root());
        self.workspace()
    }

    /// Goes on with the directory that is at the root now, if that is another one: what sessions have seen of the old one counts no
    /// longer. Says why there is nothing to go on with.
    pub(super) fn follow_root(&self) -> Result<(), Outcome> {
        let mut workspace = lock(&self.workspace);
        let fail = |why: String| Err(failure(Cause::Io { why }));
        let root = workspace.path().display().to_string();
        match workspace.root_now() {
            RootStatus::Same => Ok(()),
            RootStatus::Gone => {
                fail(format!("{root}, the directory of this workspace, was removed; make it again and repeat the call"))
            }
            RootStatus::Another => match (self.open)(workspace.path()) {
                Ok(opened) => {
                    opened.take_over_from(&workspace);
                    *workspace = opened;
                    // Whoever looks for a seat asks for the workspace while he has them.
                    drop(workspace);
                    self.seats().clear();
                    Ok(())
                }
                Err(why) => fail(format!("{root}, the directory of this workspace, was made again and cannot be opened: {why}")),
            },
        }
    }

    /// A new session that nobody else knows of.
    pub(super) fn fresh_seat(&self) -> Caller {
        let mut session = Session::new(self.workspace());
        let id = session.tracker().expect("a new session has one").session().clone();
        self.put(&mut self.seats(), &id, session);
        Caller::Own(id)
    }

    pub(super) fn seat(&self, caller: &Caller) -> SharedSession {
        let mut seats = self.seats();
        if let Some(seated) = seats.get_mut(caller.id()) {
            seated.last_use = self.uses.fetch_add(1, Ordering::Relaxed);
            return seated.seat.clone();
        }
        self.make_room(&mut seats);
        let session = match caller {
            Caller::Own(id) => Session::continued(self.workspace(), id.clone()),
            Caller::Shared(id) => Session::shared(self.workspace(), id.clone()),
        };
        self.put(&mut seats, caller.id(), session)
    }

    /// What a caller has read counts no longer: its connection has ended. Others may go on with a session that is shared.
    pub(super) fn leave(&self, caller: &Caller) {
        let left = self.seats().remove(caller.id());
        if let Caller::Own(id) = caller {
            let seat = left.map(|left| left.seat);
            let forget = |session: &mut Session| session.reset();
            match seat {
                Some(seat) => forget(&mut lock(&seat)),
                None => forget(&mut Session::continued(self.workspace(), id.clone())),
            }
        }
    }

    fn put(&self, seats: &mut HashMap<SessionId, PooledSession>, id: &SessionId, session: Session) -> SharedSession {
        let seat = Arc::new(Mutex::new(session));
        let last_use = self.uses.fetch_add(1, Ordering::Relaxed);
        seats.insert(id.clone(), PooledSession { seat: seat.clone(), last_use });
        seat
    }

    fn make_room(&self, seats: &mut HashMap<SessionId, PooledSession>) {
        if seats.len() < MOST_SEATS {
            return;
        }
        // One in which a call is being made stays.
        let idle = seats.iter().filter(|(_, seated)| Arc::strong_count(&seated.seat) == 1);
        if let Some(id) = idle.min_by_key(|(_, seated)| seated.last_use).map(|(id, _)| id.clone()) {
            seats.remove(&id);
            // It will ask the store what it has seen.
            self.workspace().flush();
        }
    }

    fn seats(&self) -> MutexGuard<'_, HashMap<SessionId, PooledSession>> {
        self.seats.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The tool of this name, if it is offered.
    pub(super) fn tool(&self, name: &str) -> Option<&Offered> {
        self.tools.iter().find(|tool| tool.name == name)
    }

    /// What is said to a call of a tool that is not offered, though there is one; nothing about others.
    pub(super) fn refuse_hidden(&self, name: &str) -> Option<Outcome> {
        if self.tool(name).is_some() || Tool::named(name).is_none() {
            return None;
        }
        Some(failure(Cause::NoSuchTool { name: name.to_owned() }))
    }
}

/// Calls a tool and renders what came of it. A fault of ours in one call must not be the end of the others.
pub(super) fn call<T>(
    session: &mut Session,
    course: &CallProgress,
    mut call: ToolCall,
    mut render: impl FnMut(Outcome, &ToolCall) -> T,
) -> T {
    let called = panic::catch_unwind(AssertUnwindSafe(|| {
        session.foreign_tools().were_instructed_at_start(call.instructions);
        let outcome = session.run_owned_tool(course, &call.tool, std::mem::take(&mut call.arguments));
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
    /// What the tools of its model are called.
    pub names: Arc<ToolNames>,
    /// Whether the client wants the outcome as an object as well.
    pub wants_object: bool,
    /// What the client gives the model by itself.
    pub instructions: &'static ClientInstructions,
}

/// What came of a call, as the client gets it. It is rendered where the call was carried out, because that may take a while.
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

/// A call that did not get as far as a session.
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
    // Several clients hide the tools of a server behind a search unless they are marked.
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

    fn hub() -> (tempfile::TempDir, SessionPool) {
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
        let (_dir, hub) = hub();
        let try_edit = |caller: &Caller, old: &str, new: &str| {
            let edit = json!({ "path": "a.txt", "old_string": old, "new_string": new });
            lock(&hub.seat(caller)).call("edit_file", &edit)
        };
        lock(&hub.seat(&own(0))).call("write_file", &json!({ "path": "a.txt", "content": "0\n" }));
        for number in 1..2 * MOST_SEATS {
            assert!(try_edit(&own(number), "0", "x").is_error, "session {number} has read nothing");
        }
        assert!(hub.seats().len() <= MOST_SEATS);
        assert!(!hub.seats().contains_key(own(0).id()));
        assert!(!try_edit(&own(0), "0", "1").is_error);
    }

    #[test]
    fn a_session_that_was_left_knows_nothing_and_a_shared_one_goes_on() {
        let (_dir, hub) = hub();
        let shared = Caller::Shared(SessionId("t".to_owned()));
        for caller in [&own(0), &shared] {
            let path = format!("{}.txt", caller.id().0);
            lock(&hub.seat(caller)).call("write_file", &json!({ "path": path, "content": "0\n" }));
            hub.leave(caller);
            let edit = json!({ "path": path, "old_string": "0", "new_string": "1" });
            assert_eq!(lock(&hub.seat(caller)).call("edit_file", &edit).is_error, *caller == own(0), "{caller:?}");
        }
    }
}
