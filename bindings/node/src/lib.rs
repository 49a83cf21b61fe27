//! The native module of the npm package `@surehand/sdk`. It takes and returns JSON; the public classes are in
//! `index.js`. Every call that may touch the disk runs on its own thread, so the event loop continues.

use std::{
    collections::BTreeMap,
    panic::{AssertUnwindSafe, catch_unwind},
    path::PathBuf,
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

use napi::{Env, Task, bindgen_prelude::AsyncTask};
use napi_derive::napi;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};
use surehand_sdk::{
    Edit, Environment, LineRange, OpenOptions, ReadOptions, RefusalReport, Reply, SdkError, SessionOptions, StoreKind,
    UndoOptions, edit_of_tool,
};

/// A call that runs off the event loop. Its answer is JSON: an object with `ok`, `refused` or `error`.
pub struct Work(Option<Box<dyn FnOnce() -> Result<Value, SdkError> + Send>>);

impl Work {
    fn run(call: impl FnOnce() -> Result<Value, SdkError> + Send + 'static) -> AsyncTask<Self> {
        AsyncTask::new(Self(Some(Box::new(call))))
    }
}

impl Task for Work {
    type Output = String;
    type JsValue = String;

    fn compute(&mut self) -> napi::Result<String> {
        let call = self.0.take().expect("a task runs once");
        // A panic must not unwind into Node.
        let answered = catch_unwind(AssertUnwindSafe(call)).unwrap_or(Err(SdkError::Broken));
        Ok(answer(answered).to_string())
    }

    fn resolve(&mut self, _: Env, answer: String) -> napi::Result<String> {
        Ok(answer)
    }
}

/// The handle of a workspace.
#[napi]
#[derive(Default)]
pub struct NativeWorkspace(Arc<OnceLock<surehand_sdk::Workspace>>);

/// The handle of a session.
#[napi]
#[derive(Default)]
pub struct NativeSession(Arc<OnceLock<surehand_sdk::Session>>);

/// The handle of a permit.
#[napi]
#[derive(Default)]
pub struct NativePermit(Arc<Mutex<Option<surehand_sdk::Permit>>>);

/// How to open a workspace.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct WorkspaceArguments {
    root: PathBuf,
    #[serde(default)]
    settings: BTreeMap<String, Value>,
    state_dir: Option<PathBuf>,
    #[serde(default)]
    in_memory: bool,
    #[serde(default)]
    watch: bool,
}

/// How to begin a session.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SessionArguments {
    id: Option<String>,
    #[serde(default)]
    shared: bool,
    tools: Option<Vec<(String, String)>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReadArguments {
    path: String,
    offset: Option<i64>,
    limit: Option<u32>,
    ranges: Option<Vec<RangeArguments>>,
    #[serde(default)]
    anchors: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RangeArguments {
    start: u32,
    end: u32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct UndoArguments {
    path: Option<String>,
    change: Option<String>,
    #[serde(default)]
    all: bool,
    #[serde(default)]
    redo: bool,
    #[serde(default)]
    force: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ToolCall {
    tool: String,
    arguments: Value,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ShownArguments {
    path: String,
    content: String,
    start: u32,
}

#[napi]
impl NativeWorkspace {
    /// An empty handle.
    #[napi(constructor)]
    pub fn new() -> Self {
        Self::default()
    }

    /// Opens the workspace.
    #[napi]
    pub fn open(&self, arguments: String) -> AsyncTask<Work> {
        let cell = self.0.clone();
        // Read here: the environment changes on the thread of the event loop only.
        let environment = Environment::of_process();
        Work::run(move || {
            let WorkspaceArguments { root, settings, state_dir, in_memory, watch } = parse(&arguments)?;
            let store = if in_memory { StoreKind::InMemory } else { StoreKind::StateDirectory };
            let options = OpenOptions { environment, settings, state_dir, store, watch };
            let opened = surehand_sdk::Workspace::open(&root, options)?;
            Ok(json!(cell.get_or_init(|| opened).path()))
        })
    }

    /// Begins a session in an empty handle. This touches no file, so the answer is there at once.
    #[napi]
    pub fn session(&self, session: &NativeSession, arguments: String) -> String {
        let begin = || {
            let SessionArguments { id, shared, tools } = parse(&arguments)?;
            let opened = of(&self.0, "workspace")?.session(SessionOptions { id, is_shared: shared, tools })?;
            Ok(json!(session.0.get_or_init(|| opened).id()))
        };
        answer(begin()).to_string()
    }

    /// The state of the repository.
    #[napi]
    pub fn repo_state(&self) -> AsyncTask<Work> {
        let cell = self.0.clone();
        Work::run(move || Ok(repo_state(&of(&cell, "workspace")?.repo_state()?)))
    }

    /// Closes the workspace.
    #[napi]
    pub fn close(&self) -> AsyncTask<Work> {
        let cell = self.0.clone();
        Work::run(move || {
            cell.get().inspect(|workspace| workspace.close());
            Ok(Value::Null)
        })
    }

    /// Closes the workspace on this thread, for the end of the process.
    #[napi]
    pub fn close_now(&self) {
        self.0.get().inspect(|workspace| workspace.close());
    }
}

#[napi]
impl NativeSession {
    /// An empty handle.
    #[napi(constructor)]
    pub fn new() -> Self {
        Self::default()
    }

    /// The tools for the model.
    #[napi]
    pub fn tools(&self) -> String {
        let tools = of(&self.0, "session").map(|session| {
            let spec = |tool: surehand_sdk::ToolSpec| {
                json!({ "name": tool.name, "description": tool.description, "inputSchema": tool.input_schema })
            };
            Value::Array(session.tools().into_iter().map(spec).collect())
        });
        answer(tools).to_string()
    }

    /// Carries out the call of a model.
    #[napi]
    pub fn call(&self, arguments: String) -> AsyncTask<Work> {
        self.work(move |session| {
            let ToolCall { tool, arguments } = parse(&arguments)?;
            Ok(reply(session.call(&tool, arguments)?))
        })
    }

    /// Reads a file.
    #[napi]
    pub fn read(&self, arguments: String) -> AsyncTask<Work> {
        self.work(move |session| {
            let ReadArguments { path, offset, limit, ranges, anchors } = parse(&arguments)?;
            let range = |range: RangeArguments| LineRange { start: range.start, end: range.end };
            let ranges = ranges.map(|ranges| ranges.into_iter().map(range).collect());
            Ok(reply(session.read(&path, &ReadOptions { offset, limit, ranges, anchors })?))
        })
    }

    /// Makes an edit.
    #[napi]
    pub fn edit(&self, arguments: String) -> AsyncTask<Work> {
        self.work(move |session| Ok(reply(session.edit(&edit(&arguments)?)?)))
    }

    /// Takes back changes.
    #[napi]
    pub fn undo(&self, arguments: String) -> AsyncTask<Work> {
        self.work(move |session| {
            let UndoArguments { path, change, all, redo, force } = parse(&arguments)?;
            Ok(reply(session.undo(&UndoOptions { path, change, all, redo, force })?))
        })
    }

    /// Judges an edit, and puts the permit into an empty handle.
    #[napi]
    pub fn judge(&self, permit: &NativePermit, arguments: String) -> AsyncTask<Work> {
        let slot = permit.0.clone();
        self.work(move |session| {
            let permit = session.judge(&edit(&arguments)?)?;
            let note = json!(permit.note);
            *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(permit);
            Ok(note)
        })
    }

    /// Records the edit of a permit.
    #[napi]
    pub fn adopt(&self, permit: &NativePermit) -> AsyncTask<Work> {
        let slot = permit.0.clone();
        self.work(move |session| {
            let permit = slot.lock().unwrap_or_else(PoisonError::into_inner);
            let why = || SdkError::BadArgument { why: "the permit was not given by judge".to_owned() };
            Ok(json!(session.adopt(permit.as_ref().ok_or_else(why)?)?))
        })
    }

    /// Records lines that the program has shown.
    #[napi]
    pub fn shown(&self, arguments: String) -> AsyncTask<Work> {
        self.work(move |session| {
            let ShownArguments { path, content, start } = parse(&arguments)?;
            Ok(json!(session.shown(&path, &content, start)?))
        })
    }

    /// Forgets files, or everything.
    #[napi]
    pub fn forget(&self, arguments: String) -> AsyncTask<Work> {
        self.work(move |session| {
            let paths: Option<Vec<String>> = parse(&arguments)?;
            Ok(reply(session.forget(paths.as_deref())?))
        })
    }

    /// Whether a file has changed since it was read.
    #[napi]
    pub fn changed_since_read(&self, arguments: String) -> AsyncTask<Work> {
        self.work(move |session| Ok(json!(session.changed_since_read(&parse::<String>(&arguments)?)?)))
    }

    /// The instructions for a path.
    #[napi]
    pub fn instructions_if_new(&self, arguments: String) -> AsyncTask<Work> {
        self.work(move |session| Ok(json!(session.instructions_if_new(&parse::<String>(&arguments)?)?)))
    }

    /// The state of the repository.
    #[napi]
    pub fn repo_state(&self) -> AsyncTask<Work> {
        self.work(move |session| Ok(repo_state(&session.repo_state()?)))
    }

    /// Ends the session.
    #[napi]
    pub fn close(&self) -> AsyncTask<Work> {
        self.work(move |session| {
            session.close();
            Ok(Value::Null)
        })
    }

    fn work(&self, call: impl FnOnce(&surehand_sdk::Session) -> Result<Value, SdkError> + Send + 'static) -> AsyncTask<Work> {
        let cell = self.0.clone();
        Work::run(move || call(of(&cell, "session")?))
    }
}

#[napi]
impl NativePermit {
    /// An empty handle.
    #[napi(constructor)]
    pub fn new() -> Self {
        Self::default()
    }
}

/// The version of the SDK.
#[napi]
pub fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}

/// The object of a handle. An empty handle counts as closed.
fn of<'a, T>(cell: &'a OnceLock<T>, what: &'static str) -> Result<&'a T, SdkError> {
    cell.get().ok_or(SdkError::Closed { what })
}

fn edit(arguments: &str) -> Result<Edit, SdkError> {
    let ToolCall { tool, arguments } = parse(arguments)?;
    edit_of_tool(&tool, &arguments)
}

fn parse<T: DeserializeOwned>(json: &str) -> Result<T, SdkError> {
    serde_json::from_str(json).map_err(|error| SdkError::BadArgument { why: error.to_string() })
}

fn answer(answered: Result<Value, SdkError>) -> Value {
    match answered {
        Ok(value) => json!({ "ok": value }),
        Err(SdkError::Refused(report)) => json!({ "refused": refusal(&report) }),
        Err(error) => json!({ "error": { "code": error.code(), "message": error.to_string() } }),
    }
}

fn reply(reply: Reply) -> Value {
    let Reply { text, result, refusal: refused } = reply;
    json!({ "text": text, "result": result, "refusal": refused.as_ref().map(refusal) })
}

fn refusal(report: &RefusalReport) -> Value {
    let RefusalReport { code, path, affected_ranges, remaps, remedy, repeat, text, details } = report;
    let ranges: Vec<Value> = affected_ranges.iter().map(|range| json!({ "start": range.start, "end": range.end })).collect();
    json!({
        "code": code,
        "path": path,
        "affectedRanges": ranges,
        "remaps": remaps,
        "remedy": remedy,
        "repeat": repeat,
        "text": text,
        "details": details,
    })
}

fn repo_state(state: &surehand_sdk::RepoState) -> Value {
    json!({ "prompt": state.format_for_prompt(), "json": state.to_json() })
}
