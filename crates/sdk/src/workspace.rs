//! The handle of an open workspace.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError, RwLock, Weak},
};

use serde_json::Value;
use surehand_engine::{self as engine, Config, StateHome, StoreChoice, ToolNames, WorkspaceOptions};

use crate::{
    environment::Environment,
    error::SdkError,
    repo_state::RepoState,
    session::{Session, SessionCell, SessionOptions},
};

/// How to open a workspace.
#[derive(Debug, Clone, Default)]
pub struct OpenOptions {
    /// The variables from which settings and the state directory come, besides the files of the user and the
    /// repository.
    pub environment: Environment,
    /// Settings by key, such as `policy.on_change`. They win over the environment.
    pub settings: BTreeMap<String, Value>,
    /// The directory for all state, which wins over every other source.
    pub state_dir: Option<PathBuf>,
    /// Where views and changes are stored.
    pub store: StoreKind,
    /// Whether the tree is watched, so that a reply names a changed file without a check of every file.
    pub watch: bool,
}

/// Where views and changes are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StoreKind {
    /// In the state directory, which all processes share.
    #[default]
    StateDirectory,
    /// In memory. It ends with the workspace, and other processes do not see it.
    InMemory,
}

/// An open workspace. Any thread may use it; one root may be open several times, in this process and in others.
#[derive(Debug)]
pub struct Workspace {
    path: PathBuf,
    process: OwnProcess,
    /// `None` once it is closed.
    engine: RwLock<Option<Arc<engine::Workspace>>>,
    sessions: Mutex<Vec<Weak<SessionCell>>>,
}

impl Workspace {
    /// Opens a workspace and its state, and completes or rolls back crashed commits.
    pub fn open(root: &Path, options: OpenOptions) -> Result<Self, SdkError> {
        let environment = options.environment;
        let mut config = Config::load(root, environment.texts())?;
        for (key, value) in &options.settings {
            config.set_key(key, value)?;
        }
        config.state = StateHome::of_environment(|name| environment.get(name))?;
        config.state.fixed = options.state_dir.or(config.state.fixed);
        let store = match options.store {
            StoreKind::StateDirectory => StoreChoice::StateDirectory,
            StoreKind::InMemory => StoreChoice::InMemory,
        };
        let engine = engine::Workspace::open_with(root, WorkspaceOptions { config, store, ..WorkspaceOptions::default() })?;
        if options.watch {
            engine.start_watching();
        }
        let (path, process) = (engine.path().to_owned(), OwnProcess::this());
        Ok(Self { path, process, engine: RwLock::new(Some(engine)), sessions: Mutex::default() })
    }

    /// The path of the root.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Begins a session, or continues one under its id.
    pub fn session(&self, options: SessionOptions) -> Result<Session, SdkError> {
        self.process.check()?;
        // Held while the session is listed, so that it cannot miss a close.
        let open = self.engine.read().unwrap_or_else(PoisonError::into_inner);
        let engine = open.as_ref().ok_or(CLOSED)?;
        let session = Session::new(engine.clone(), &options)?;
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.retain(|session| session.strong_count() > 0);
        sessions.push(session.downgrade());
        Ok(session)
    }

    /// The state of the repository, as a person sees it.
    pub fn repo_state(&self) -> Result<RepoState, SdkError> {
        self.process.check()?;
        let engine = self.engine.read().unwrap_or_else(PoisonError::into_inner).clone().ok_or(CLOSED)?;
        Ok(RepoState::new(engine.snapshot(), ToolNames::default()))
    }

    /// Whether it was closed.
    pub fn is_closed(&self) -> bool {
        self.process.check().is_err() || self.engine.read().unwrap_or_else(PoisonError::into_inner).is_none()
    }

    /// Ends all sessions, writes what is not yet stored, and releases the state. Waits for calls that are running;
    /// later ones fail. Closing it again does nothing.
    pub fn close(&self) {
        if self.process.check().is_err() {
            // Its locks may be held by threads of the parent, and its records are the parent's to write.
            return;
        }
        let engine = self.engine.write().unwrap_or_else(PoisonError::into_inner).take();
        let sessions = std::mem::take(&mut *self.sessions.lock().unwrap_or_else(PoisonError::into_inner));
        sessions.iter().filter_map(Weak::upgrade).for_each(|session| session.close());
        drop(engine);
    }
}

const CLOSED: SdkError = SdkError::Closed { what: "workspace" };

/// Its sessions go on: they hold what they need.
impl Drop for Workspace {
    fn drop(&mut self) {
        if self.process.check().is_err() {
            std::mem::forget(self.engine.get_mut().unwrap_or_else(PoisonError::into_inner).take());
        }
    }
}

/// The process that opened a workspace. A fork copies its memory but not its threads, so a call there could wait
/// forever.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OwnProcess(u32);

impl OwnProcess {
    pub(crate) fn this() -> Self {
        Self(std::process::id())
    }

    pub(crate) fn check(self) -> Result<(), SdkError> {
        if self.0 == std::process::id() { Ok(()) } else { Err(SdkError::Forked) }
    }
}
