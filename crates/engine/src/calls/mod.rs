//! Calls are what a session can do, as values. [`crate::tools`] parses them from a model's JSON; programs that use the
//! library build them directly.

mod forget;
mod list;
mod read;
mod restore;
mod search;
mod shared_tasks;
mod state;
mod tasks;

use serde::Serialize;
use surehand_core::{Done, Edit, Outcome, Refusal, Tool};

pub use self::{
    forget::ForgetCall,
    list::ListCall,
    read::{ReadCall, WantedLines},
    restore::RestoreCall,
    search::SearchCall,
    state::StateFormat,
    tasks::{ClaimTarget, NewTask, SetTask, TasksCall},
};
use crate::{
    call_progress::CallProgress,
    session::{RequestedCall, Session},
};

/// A request to a session; each variant corresponds to one tool or a group of tools.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Call {
    /// Shows lines of a file.
    Read(ReadCall),
    /// Lists the files of a directory.
    List(ListCall),
    /// Searches files for a pattern.
    Search(SearchCall),
    /// Changes files, also by undo.
    Edit(Edit),
    /// Restores files to an earlier state.
    Restore(RestoreCall),
    /// Shows the state of the repository.
    State(StateFormat),
    /// Updates the task list, or tasks and claims on the board.
    Tasks(TasksCall),
    /// Drops views, as if the files had not been read.
    Forget(ForgetCall),
}

impl Call {
    /// The corresponding tool.
    pub fn tool(&self) -> Tool {
        match self {
            Call::Read(_) => Tool::ReadFile,
            Call::List(_) => Tool::ListFiles,
            Call::Search(_) => Tool::SearchFiles,
            Call::Edit(edit) => edit.tool(),
            Call::Restore(_) => Tool::Restore,
            Call::State(_) => Tool::RepoState,
            Call::Tasks(_) => Tool::UpdateTasks,
            Call::Forget(_) => Tool::Forget,
        }
    }
}

impl RequestedCall for Call {
    fn tool(&self) -> Option<Tool> {
        Some(self.tool())
    }
}

impl Session {
    /// Carries out a call. Every failure is a refusal in the outcome.
    pub fn run(&mut self, call: &Call) -> Outcome {
        self.run_with(&CallProgress::default(), call)
    }

    /// [`Session::run`] for a call that another thread observes and may cancel.
    pub(crate) fn run_with(&mut self, progress: &CallProgress, call: &Call) -> Outcome {
        self.begin_call(progress);
        let result = self.carry_out(call);
        match call {
            Call::Edit(edit) => self.finish_call(edit, result),
            call => self.finish_call(call, result),
        }
    }

    fn carry_out(&mut self, call: &Call) -> Result<Done, Refusal> {
        match call {
            Call::Read(read) => read::read(self, read),
            Call::List(list) => list::list(self, list),
            Call::Search(search) => search::search(self, search),
            Call::Edit(edit) => self.change(edit),
            Call::Restore(wanted) => restore::restore(self, wanted),
            Call::State(format) => Ok(state::state(self, *format)),
            Call::Tasks(tasks) => tasks::update(self, tasks),
            Call::Forget(forget) => forget::forget(self, forget),
        }
    }
}
