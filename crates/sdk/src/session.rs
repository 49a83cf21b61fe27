//! The handle of a session. Its calls run one after the other, whichever threads they come from.

use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError, Weak,
    atomic::{AtomicU64, Ordering},
};

use serde_json::{Value, json};
use surehand_engine::{self as engine, AllowedEdit, CallProgress, Edit, Outcome, SessionId, ToolNames, render};

use crate::{
    error::SdkError,
    permit::Permit,
    reply::{LineRange, Reply},
    repo_state::RepoState,
    tools::{OfferedTools, ToolSpec},
    workspace::OwnProcess,
};

/// How to begin a session.
#[derive(Debug, Clone, Default)]
pub struct SessionOptions {
    /// Continues the session with this id, or begins it. Without an id, a new one is made.
    pub id: Option<String>,
    /// Whether other processes use the session at the same time. Each call then reads from the store what they did.
    pub is_shared: bool,
    /// The tools that the model has: our name, and the name that the model knows. `None` for all, under our names.
    pub tools: Option<Vec<(String, String)>>,
}

/// Which lines a read shows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReadOptions {
    /// The first line, from 1; from the end if negative.
    pub offset: Option<i64>,
    /// The number of lines.
    pub limit: Option<u32>,
    /// Several ranges, instead of `offset` and `limit`.
    pub ranges: Option<Vec<LineRange>>,
    /// Whether each line comes with its anchor.
    pub anchors: bool,
}

/// The changes to undo; by default, the last change of the session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UndoOptions {
    /// Undo the last change of this file.
    pub path: Option<String>,
    /// Undo the change with this id, in all its files.
    pub change: Option<String>,
    /// Undo all changes of the session.
    pub all: bool,
    /// Undo the last undo instead.
    pub redo: bool,
    /// Whether to overwrite later changes.
    pub force: bool,
}

/// One model's context window in a workspace. Any thread may use it.
#[derive(Debug)]
pub struct Session(Arc<SessionCell>);

#[derive(Debug)]
pub(crate) struct SessionCell {
    id: SessionId,
    process: OwnProcess,
    tools: OfferedTools,
    /// `None` once it is closed.
    engine: Mutex<Option<engine::Session>>,
    /// The edits that were permitted and not adopted yet. Its lock is never held during a call.
    running: Mutex<Vec<(u64, AllowedEdit)>>,
    permits: AtomicU64,
}

/// Limit of an id in bytes, because every table stores it.
const MOST_ID_BYTES: usize = 200;

impl Session {
    pub(crate) fn new(workspace: Arc<engine::Workspace>, options: &SessionOptions) -> Result<Self, SdkError> {
        let tools = OfferedTools::new(options.tools.as_deref())?;
        let mut engine = match (&options.id, options.is_shared) {
            (None, false) => engine::Session::new(workspace),
            (None, true) => return Err(SdkError::bad_argument("a shared session needs an id")),
            (Some(id), _) if id.is_empty() || id.len() > MOST_ID_BYTES || id.chars().any(char::is_control) => {
                let why = format!("the id of a session has 1 to {MOST_ID_BYTES} bytes and no control characters");
                return Err(SdkError::bad_argument(why));
            }
            (Some(id), false) => engine::Session::continued(workspace, SessionId(id.clone())),
            (Some(id), true) => engine::Session::shared(workspace, SessionId(id.clone())),
        };
        let id = engine.tracker().expect("every session of the SDK has a tracker").session().clone();
        let (engine, running, process) = (Mutex::new(Some(engine)), Mutex::default(), OwnProcess::this());
        Ok(Self(Arc::new(SessionCell { id, process, tools, engine, running, permits: AtomicU64::new(0) })))
    }

    pub(crate) fn downgrade(&self) -> Weak<SessionCell> {
        Arc::downgrade(&self.0)
    }

    /// Its id, under which it can be continued.
    pub fn id(&self) -> &str {
        &self.0.id.0
    }

    /// The tools to give to the model. [`Session::call`] takes their calls.
    pub fn tools(&self) -> Vec<ToolSpec> {
        self.0.tools.specs()
    }

    /// Carries out the call of a model. A refusal is in the reply, and its text is what the model must read.
    pub fn call(&self, tool: &str, arguments: Value) -> Result<Reply, SdkError> {
        let tool = self.0.tools.ours(tool);
        let outcome = self.0.run(|session| session.run_owned_tool(&CallProgress::default(), tool, arguments))?;
        Ok(Reply::of(&outcome, self.names()))
    }

    /// Reads a file. The lines that it shows count as read.
    pub fn read(&self, path: &str, options: &ReadOptions) -> Result<Reply, SdkError> {
        let ReadOptions { offset, limit, ranges, anchors } = options;
        let range = |range: &LineRange| json!({ "start": range.start, "end": range.end });
        let ranges = ranges.as_ref().map(|ranges| ranges.iter().map(range).collect::<Vec<_>>());
        let arguments = given([
            ("path", json!(path)),
            ("offset", json!(offset)),
            ("limit", json!(limit)),
            ("ranges", json!(ranges)),
            ("anchors", json!(anchors.then_some(true))),
        ]);
        self.done(self.0.run(|session| session.run_tool(&CallProgress::default(), "read_file", &arguments))?)
    }

    /// Judges an edit and makes it.
    pub fn edit(&self, edit: &Edit) -> Result<Reply, SdkError> {
        self.done(self.0.run(|session| session.edit(edit))?)
    }

    /// Takes back changes of this session.
    pub fn undo(&self, options: &UndoOptions) -> Result<Reply, SdkError> {
        let UndoOptions { path, change, all, redo, force } = options;
        let arguments = given([
            ("path", json!(path)),
            ("change", json!(change)),
            ("all", json!(all)),
            ("redo", json!(redo)),
            ("force", json!(force)),
        ]);
        self.done(self.0.run(|session| session.run_tool(&CallProgress::default(), "undo", &arguments))?)
    }

    /// Judges an edit that a tool of the program is about to make. Refuses it only if a file was not read, is stale,
    /// was deleted or was seen in part. The tool decides whether a text matches.
    pub fn judge(&self, edit: &Edit) -> Result<Permit, SdkError> {
        self.0.process.check()?;
        let running = self.0.running_edits(None);
        let judged = self.0.run_foreign(|tools| {
            let judged = tools.judge(edit, &running);
            if let Ok(permit) = &judged {
                tools.record_told(&permit.changed_before);
            }
            judged
        })?;
        let permit = judged.map_err(|outcome| SdkError::refused(&outcome, self.names()).expect("the gate has refused it"))?;
        let note = render::gone_before(&permit.gone_before) + &render::changed_before(&permit.changed_before, self.names());
        let number = self.0.permits.fetch_add(1, Ordering::Relaxed);
        self.0.edits().push((number, permit.edit.clone()));
        Ok(Permit { edit: permit.edit, number, session: self.downgrade(), note })
    }

    /// Records the edit of a permit after the tool of the program has made it. Returns a note for the model, which is
    /// often empty: that a file differs from the result of the edit, new instructions for its directory, and other
    /// files that have changed. If the files are as before, the edit was not made, and nothing is recorded.
    pub fn adopt(&self, permit: &Permit) -> Result<String, SdkError> {
        if !permit.session.ptr_eq(&self.downgrade()) {
            return Err(SdkError::bad_argument("the permit belongs to another session"));
        }
        self.0.process.check()?;
        let running = self.0.running_edits(Some(permit.number));
        let text = self.0.run_foreign(|tools| {
            let outcome = tools.adopt(&permit.edit, &running);
            let mut text = outcome.map(|outcome| render::text(&outcome, self.names())).unwrap_or_default();
            for path in permit.edit.edit.paths() {
                let instructions = tools.instructions(&path);
                text.extend(instructions.map(|new| render::instructions::instructions(&new, self.names())));
            }
            text + &render::changed_elsewhere(&tools.changed_elsewhere(&running))
        })?;
        self.0.end_edit(permit.number);
        Ok(text)
    }

    /// Records lines that a tool of the program has shown to the model, from this line number on. Only lines that are
    /// in the file count. Returns their number.
    pub fn shown(&self, path: &str, content: &str, start: u32) -> Result<usize, SdkError> {
        self.0.run_foreign(|tools| tools.record_shown(path, start, content))
    }

    /// Records that the model has lost these files from its context, or everything.
    pub fn forget(&self, paths: Option<&[String]>) -> Result<Reply, SdkError> {
        let arguments = given([("paths", json!(paths))]);
        self.done(self.0.run(|session| session.run_tool(&CallProgress::default(), "forget", &arguments))?)
    }

    /// Whether a file has changed since the session saw it. A file that it never saw counts as unchanged.
    pub fn changed_since_read(&self, path: &str) -> Result<bool, SdkError> {
        let changed = self.0.run(|session| {
            session.reload_if_shared();
            let workspace = session.workspace().clone();
            let tracker = session.tracker().expect("every session of the SDK has a tracker");
            tracker.has_been_modified_since_read(&workspace, path)
        })?;
        changed.map_err(|refusal| crate::tools::refused(refusal, self.names()))
    }

    /// The instructions of the repository (`AGENTS.md`) for a file or directory that this session has not been given
    /// yet, for a prompt.
    pub fn instructions_if_new(&self, path: &str) -> Result<Option<String>, SdkError> {
        let instructions = self.0.run(|session| session.instructions_if_new(path))?;
        Ok(instructions.map(|new| render::instructions::instructions(&new, self.names())))
    }

    /// The state of the repository, with the tasks that this session sees.
    pub fn repo_state(&self) -> Result<RepoState, SdkError> {
        let state = self.0.run(|session| session.snapshot())?;
        Ok(RepoState::new(state, self.names().clone()))
    }

    /// Whether it, or its workspace, was closed.
    pub fn is_closed(&self) -> bool {
        // A thread of the parent may hold the lock in a forked process.
        self.0.process.check().is_err() || self.0.engine.lock().is_ok_and(|session| session.is_none())
    }

    /// Ends the session after the call that is running. Its views stay in the store, for one that continues it.
    pub fn close(&self) {
        self.0.close();
    }

    fn names(&self) -> &ToolNames {
        &self.0.tools.names
    }

    fn done(&self, outcome: Outcome) -> Result<Reply, SdkError> {
        match SdkError::refused(&outcome, self.names()) {
            Some(refused) => Err(refused),
            None => Ok(Reply::of(&outcome, self.names())),
        }
    }
}

impl SessionCell {
    fn run<T>(&self, call: impl FnOnce(&mut engine::Session) -> T) -> Result<T, SdkError> {
        self.process.check()?;
        let mut session = self.engine.lock().map_err(|_| SdkError::Broken)?;
        Ok(call(session.as_mut().ok_or(SdkError::Closed { what: "session" })?))
    }

    fn run_foreign<T>(&self, call: impl FnOnce(&mut engine::ForeignTools<'_>) -> T) -> Result<T, SdkError> {
        self.run(|session| {
            session.reload_if_shared();
            let result = call(&mut session.foreign_tools());
            session.flush_if_shared();
            result
        })
    }

    fn edits(&self) -> MutexGuard<'_, Vec<(u64, AllowedEdit)>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The running edits, except for one.
    fn running_edits(&self, except: Option<u64>) -> Vec<AllowedEdit> {
        self.edits().iter().filter(|(number, _)| Some(*number) != except).map(|(_, edit)| edit.clone()).collect()
    }

    pub(crate) fn end_edit(&self, number: u64) {
        if self.process.check().is_err() {
            return;
        }
        self.edits().retain(|(running, _)| *running != number);
    }

    pub(crate) fn close(&self) {
        if self.process.check().is_err() {
            return;
        }
        self.engine.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}

impl Drop for SessionCell {
    fn drop(&mut self) {
        if self.process.check().is_err() {
            std::mem::forget(self.engine.get_mut().unwrap_or_else(PoisonError::into_inner).take());
        }
    }
}

/// The arguments that were given: those that are not null.
fn given<const N: usize>(arguments: [(&str, Value); N]) -> Value {
    let given = arguments.into_iter().filter(|(_, value)| !value.is_null());
    Value::Object(given.map(|(name, value)| (name.to_owned(), value)).collect())
}
