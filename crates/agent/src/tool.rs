//! The tools that the model of a run has: those of the workspace, and two of its own.

use surehand_engine::{
    Tool, ToolNames,
    core::{EditDialect, ToolKind},
};

use crate::{command, event::RunPhase};

/// What says that the story is done.
pub const DONE: &str = "done";

/// A tool of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AgentTool {
    /// One of the workspace.
    Workspace(Tool),
    /// Runs a command in a shell.
    RunCommand,
    /// Says that the story is done.
    Done,
}

impl AgentTool {
    /// The tool of this name, offered or not.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            command::NAME => Some(AgentTool::RunCommand),
            DONE => Some(AgentTool::Done),
            name => Tool::named(name).map(AgentTool::Workspace),
        }
    }

    /// Whether it may be called while the tasks are not written yet.
    pub fn is_for_planning(self) -> bool {
        match self {
            AgentTool::Workspace(tool) => match tool.kind() {
                ToolKind::Reads | ToolKind::Tasks | ToolKind::Forgets => true,
                ToolKind::Edits => false,
            },
            AgentTool::RunCommand | AgentTool::Done => true,
        }
    }
}

/// The tools of the workspace that are offered to a model.
pub fn offered_tools(phase: RunPhase, dialect: EditDialect) -> impl Iterator<Item = Tool> {
    let is_offered = move |tool: &Tool| match tool {
        Tool::ReadFile | Tool::ListFiles | Tool::SearchFiles | Tool::UpdateTasks => true,
        Tool::EditFile | Tool::EditLines | Tool::ApplyPatch => tool.dialect() == Some(dialect),
        Tool::WriteFile | Tool::DeleteFile | Tool::MoveFile | Tool::Undo => true,
        // One edit at a time is enough for who can call several tools at once. The state is in the prompt, and so is all that the
        // model knows.
        Tool::MultiEdit | Tool::RepoState | Tool::Forget => false,
    };
    let is_for_phase = move |tool: &Tool| phase != RunPhase::Planning || AgentTool::Workspace(*tool).is_for_planning();
    Tool::ALL.into_iter().filter(is_offered).filter(is_for_phase)
}

/// The names of all tools that are offered to a model.
pub fn tool_names(phase: RunPhase, dialect: EditDialect) -> ToolNames {
    ToolNames::offering(offered_tools(phase, dialect)).with_other(command::NAME).with_done(DONE)
}
