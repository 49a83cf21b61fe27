//! The data of a workspace that the helper reports on the board.

use std::io::{self, Read};

use serde::{Deserialize, Serialize};
use surehand_store::{EventFilter, FileEvent, StoreError, board::AgentId};

use crate::{
    SessionId,
    disk::{change_counter::ChangeCounter, replace_file},
    git, state_dir,
    workspace::Workspace,
};

impl Workspace {
    /// A number that rises with every change that any process records.
    pub fn change_count(&self) -> u64 {
        self.state().dir().map(|dir| ChangeCounter::load(&dir).changed).unwrap_or_default()
    }

    /// The latest events of all processes, newest first.
    pub fn last_events(&self, most: usize) -> Result<Vec<FileEvent>, StoreError> {
        self.store.import_outboxes();
        self.ask(|store| store.events(&EventFilter::default(), most))
    }

    /// The branch that is checked out; `None` without git, or with a detached HEAD.
    pub fn branch(&self) -> Option<String> {
        let head = git::reference(&self.git_dirs()?, "HEAD").ok()?;
        head.name.strip_prefix("refs/heads/").map(str::to_owned)
    }

    /// Whether the directory of the workspace still exists.
    pub fn is_there(&self) -> bool {
        self.root_now() == crate::RootStatus::Same
    }
}

/// The agents of a repository that a helper saves for the next helper.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedReports(pub Vec<serde_json::Value>);

const REPORTS: &str = "agents.json";
const MAX_REPORTS: u64 = 4 << 20;

impl Workspace {
    /// Saves the reports of agents in the state of the repository.
    pub fn save_reports(&self, reports: &SavedReports) -> io::Result<()> {
        let dir = self.repository_dir()?;
        replace_file::put((&dir, &format!("{REPORTS}.new")), (&dir, REPORTS), &serde_json::to_vec(reports)?)
    }

    /// The reports that an earlier helper saved.
    pub fn saved_reports(&self) -> SavedReports {
        let read = || -> io::Result<SavedReports> {
            let mut text = Vec::new();
            state_dir::open_file(&*self.repository_dir()?, REPORTS, MAX_REPORTS)?.read_to_end(&mut text)?;
            Ok(serde_json::from_slice(&text)?)
        };
        read().unwrap_or_default()
    }
}

/// The name of a session on a board. Session ids are unique on all machines.
pub fn agent_of(session: &SessionId) -> AgentId {
    AgentId(session.0.clone())
}
