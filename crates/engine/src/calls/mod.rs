//! Calls are what a session can do, as values. [`crate::tools`] parses them from a model's JSON; programs that use the
//! library build them directly.

mod forget;
mod list;
mod read;
mod search;
mod state;
mod tasks;

use serde::Serialize;
use surehand_core::{Done, Edit, Outcome, Refusal, Tool};

pub use self::{
    forget::ForgetCall,
    list::ListCall,
    read::{ReadCall, WantedLines},
    search::SearchCall,
    state::StateFormat,
    tasks::{NewTask, SetTask, TasksCall},
};
use crate::{call_progress::CallProgress, session::Session};

/// A call of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Call {
    /// Show lines of a file.
    Read(ReadCall),
    /// List files.
    List(ListCall),
    /// Search files.
    Search(SearchCall),
    /// Change files.
    Edit(Edit),
    /// Show the state of the repository.
    State(StateFormat),
    /// Change the list of tasks.
    Tasks(TasksCall),
    /// Forget what was read.
    Forget(ForgetCall),
}

impl Call {
    /// The tool of ours that it is a call of.
    pub fn tool(&self) -> Tool {
        match self {
            Call::Read(_) => Tool::ReadFile,
            Call::List(_) => Tool::ListFiles,
            Call::Search(_) => Tool::SearchFiles,
            Call::Edit(edit) => edit.tool(),
            Call::State(_) => Tool::RepoState,
            Call::Tasks(_) => Tool::UpdateTasks,
            Call::Forget(_) => Tool::Forget,
        }
    }
}

impl Session {
    /// Carries out a call. Whatever it asks for, this answers.
    pub fn run(&mut self, call: &Call) -> Outcome {
        self.run_with(&CallProgress::default(), call)
    }

    /// [`Session::run`] for a call that another thread follows and may cancel.
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
            Call::State(format) => Ok(state::state(self, *format)),
            Call::Tasks(tasks) => tasks::update(self, tasks),
            Call::Forget(forget) => forget::forget(self, forget),
        }
    }
}
