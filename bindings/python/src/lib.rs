//! The native module of the Python package `surehand-sdk`. It takes and returns plain values; the public classes
//! are in `python/surehand`. Every call releases the GIL.

use std::{collections::BTreeMap, path::PathBuf};

use pyo3::{exceptions::PyValueError, prelude::*};
use serde_json::Value;
use surehand_sdk::{
    Edit, Environment, LineRange, OpenOptions, ReadOptions, RefusalReport, SdkError, SessionOptions, StoreKind, UndoOptions,
    edit_of_tool,
};

/// Text for the model, JSON for the program, and the exception of a refusal.
type ReplyParts = (String, String, Option<Py<PyAny>>);

/// An open workspace.
#[pyclass(frozen, module = "surehand._native")]
struct Workspace(surehand_sdk::Workspace);

/// A session of a workspace.
#[pyclass(frozen, module = "surehand._native")]
struct Session(surehand_sdk::Session);

/// The permission for an edit.
#[pyclass(frozen, module = "surehand._native")]
struct Permit(surehand_sdk::Permit);

/// The state of a repository.
#[pyclass(frozen, module = "surehand._native")]
struct RepoState(surehand_sdk::RepoState);

#[pymethods]
impl Workspace {
    #[new]
    fn open(
        py: Python<'_>,
        root: PathBuf,
        settings: &str,
        state_dir: Option<PathBuf>,
        in_memory: bool,
        watch: bool,
    ) -> PyResult<Self> {
        let settings: BTreeMap<String, Value> = parse("settings", settings)?;
        let store = if in_memory { StoreKind::InMemory } else { StoreKind::StateDirectory };
        // Read while the GIL is held: Python changes the environment under it.
        let options = OpenOptions { environment: Environment::of_process(), settings, state_dir, store, watch };
        py.detach(|| surehand_sdk::Workspace::open(&root, options)).map(Self).map_err(|error| raised(py, error))
    }

    #[getter]
    fn path(&self) -> PathBuf {
        self.0.path().to_owned()
    }

    #[getter]
    fn closed(&self, py: Python<'_>) -> bool {
        py.detach(|| self.0.is_closed())
    }

    fn session(
        &self,
        py: Python<'_>,
        id: Option<String>,
        shared: bool,
        tools: Option<Vec<(String, String)>>,
    ) -> PyResult<Session> {
        let options = SessionOptions { id, is_shared: shared, tools };
        py.detach(|| self.0.session(options)).map(Session).map_err(|error| raised(py, error))
    }

    fn repo_state(&self, py: Python<'_>) -> PyResult<RepoState> {
        py.detach(|| self.0.repo_state()).map(RepoState).map_err(|error| raised(py, error))
    }

    fn close(&self, py: Python<'_>) {
        py.detach(|| self.0.close());
    }
}

#[pymethods]
impl Session {
    #[getter]
    fn id(&self) -> &str {
        self.0.id()
    }

    #[getter]
    fn closed(&self, py: Python<'_>) -> bool {
        py.detach(|| self.0.is_closed())
    }

    /// Name, description and JSON schema of each tool.
    fn tools(&self, py: Python<'_>) -> Vec<(String, String, String)> {
        let specs = py.detach(|| self.0.tools());
        specs.into_iter().map(|tool| (tool.name, tool.description, Value::Object(tool.input_schema).to_string())).collect()
    }

    fn call(&self, py: Python<'_>, tool: &str, arguments: &str) -> PyResult<ReplyParts> {
        let arguments: Value = parse("arguments", arguments)?;
        self.reply(py, |session| session.call(tool, arguments))
    }

    fn read(
        &self,
        py: Python<'_>,
        path: &str,
        offset: Option<i64>,
        limit: Option<u32>,
        ranges: Option<Vec<(u32, u32)>>,
        anchors: bool,
    ) -> PyResult<ReplyParts> {
        let ranges = ranges.map(|ranges| ranges.into_iter().map(|(start, end)| LineRange { start, end }).collect());
        self.reply(py, |session| session.read(path, &ReadOptions { offset, limit, ranges, anchors }))
    }

    fn edit(&self, py: Python<'_>, tool: &str, arguments: &str) -> PyResult<ReplyParts> {
        let edit = edit(py, tool, arguments)?;
        self.reply(py, |session| session.edit(&edit))
    }

    fn undo(
        &self,
        py: Python<'_>,
        path: Option<String>,
        change: Option<String>,
        all: bool,
        redo: bool,
        force: bool,
    ) -> PyResult<ReplyParts> {
        self.reply(py, |session| session.undo(&UndoOptions { path, change, all, redo, force }))
    }

    fn judge(&self, py: Python<'_>, tool: &str, arguments: &str) -> PyResult<Permit> {
        let edit = edit(py, tool, arguments)?;
        py.detach(|| self.0.judge(&edit)).map(Permit).map_err(|error| raised(py, error))
    }

    fn adopt(&self, py: Python<'_>, permit: &Permit) -> PyResult<String> {
        py.detach(|| self.0.adopt(&permit.0)).map_err(|error| raised(py, error))
    }

    fn shown(&self, py: Python<'_>, path: &str, content: &str, start: u32) -> PyResult<usize> {
        py.detach(|| self.0.shown(path, content, start)).map_err(|error| raised(py, error))
    }

    fn forget(&self, py: Python<'_>, paths: Option<Vec<String>>) -> PyResult<ReplyParts> {
        self.reply(py, |session| session.forget(paths.as_deref()))
    }

    fn changed_since_read(&self, py: Python<'_>, path: &str) -> PyResult<bool> {
        py.detach(|| self.0.changed_since_read(path)).map_err(|error| raised(py, error))
    }

    fn instructions_if_new(&self, py: Python<'_>, path: &str) -> PyResult<Option<String>> {
        py.detach(|| self.0.instructions_if_new(path)).map_err(|error| raised(py, error))
    }

    fn repo_state(&self, py: Python<'_>) -> PyResult<RepoState> {
        py.detach(|| self.0.repo_state()).map(RepoState).map_err(|error| raised(py, error))
    }

    fn close(&self, py: Python<'_>) {
        py.detach(|| self.0.close());
    }
}

impl Session {
    fn reply(
        &self,
        py: Python<'_>,
        call: impl FnOnce(&surehand_sdk::Session) -> Result<surehand_sdk::Reply, SdkError> + Send,
    ) -> PyResult<ReplyParts> {
        let replied = py.detach(|| {
            call(&self.0).map(|reply| {
                let result = reply.result.to_string();
                (reply.text, result, reply.refusal)
            })
        });
        let (text, result, refusal) = replied.map_err(|error| raised(py, error))?;
        let refusal = refusal.map(|report| exception(py, &report)).transpose()?;
        Ok((text, result, refusal.map(Bound::unbind)))
    }
}

#[pymethods]
impl Permit {
    #[getter]
    fn note(&self) -> &str {
        &self.0.note
    }
}

#[pymethods]
impl RepoState {
    fn format_for_prompt(&self, py: Python<'_>) -> String {
        py.detach(|| self.0.format_for_prompt())
    }

    fn to_json(&self, py: Python<'_>) -> String {
        py.detach(|| self.0.to_json())
    }
}

fn edit(py: Python<'_>, tool: &str, arguments: &str) -> PyResult<Edit> {
    let arguments: Value = parse("arguments", arguments)?;
    edit_of_tool(tool, &arguments).map_err(|error| raised(py, error))
}

fn parse<T: serde::de::DeserializeOwned>(what: &str, json: &str) -> PyResult<T> {
    serde_json::from_str(json).map_err(|error| PyValueError::new_err(format!("{what}: {error}")))
}

/// The Python exception for an error. `surehand._errors` has a class for each code.
fn raised(py: Python<'_>, error: SdkError) -> PyErr {
    let made = match &error {
        SdkError::Refused(report) => exception(py, report),
        error => {
            py.import("surehand._errors").and_then(|errors| errors.getattr("of_error")?.call1((error.code(), error.to_string())))
        }
    };
    made.map_or_else(|error| error, PyErr::from_value)
}

fn exception<'py>(py: Python<'py>, report: &RefusalReport) -> PyResult<Bound<'py, PyAny>> {
    let RefusalReport { code, path, affected_ranges, remaps, remedy, repeat, text, details } = report;
    let ranges: Vec<(u32, u32)> = affected_ranges.iter().map(|range| (range.start, range.end)).collect();
    let of_refusal = py.import("surehand._errors")?.getattr("of_refusal")?;
    of_refusal.call1((*code, path.as_deref(), ranges, remaps, remedy.as_str(), *repeat, text.as_str(), details.to_string()))
}

#[pymodule]
mod _native {
    #[pymodule_export]
    use super::{Permit, RepoState, Session, Workspace};

    #[pymodule_export]
    const VERSION: &str = env!("CARGO_PKG_VERSION");
}
