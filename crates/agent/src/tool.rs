//! The tools of a run: those of the workspace, `run_command` and `done`.

use surehand_engine::{
    Tool, ToolNames,
    core::{EditDialect, ToolKind},
};

use crate::{command, event::RunPhase, prompt::PromptDetail};

/// The name of the tool that ends a run.
pub const DONE: &str = "done";

/// A tool that the model of a run can call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AgentTool {
    /// A tool of the workspace, which the session runs.
    Workspace(Tool),
    /// `run_command`, which the run carries out after approval.
    RunCommand,
    /// `done`, which ends the run if no task is open.
    Done,
}

impl AgentTool {
    /// The tool with this name, whether or not it is offered now.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            command::NAME => Some(AgentTool::RunCommand),
            DONE => Some(AgentTool::Done),
            name => Tool::named(name).map(AgentTool::Workspace),
        }
    }

    /// Whether it may be called during planning.
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

/// The workspace tools offered to the model.
pub fn offered_tools(phase: RunPhase, dialect: EditDialect, detail: PromptDetail) -> impl Iterator<Item = Tool> {
    let is_offered = move |tool: &Tool| match tool {
        Tool::ReadFile | Tool::ListFiles | Tool::SearchFiles | Tool::UpdateTasks => true,
        Tool::EditFile | Tool::EditLines | Tool::ApplyPatch => tool.dialect() == Some(dialect),
        Tool::WriteFile => true,
        Tool::DeleteFile | Tool::MoveFile | Tool::Undo | Tool::Restore => detail == PromptDetail::Full,
        // A model that can call several tools at once needs no `multi_edit`. The prompt already holds the state and
        // everything the model knows.
        Tool::MultiEdit | Tool::RepoState | Tool::Forget => false,
    };
    let is_for_phase = move |tool: &Tool| phase != RunPhase::Planning || AgentTool::Workspace(*tool).is_for_planning();
    Tool::ALL.into_iter().filter(is_offered).filter(is_for_phase)
}

/// The names of all tools offered to the model.
pub fn tool_names(phase: RunPhase, dialect: EditDialect, detail: PromptDetail) -> ToolNames {
    ToolNames::offering(offered_tools(phase, dialect, detail)).with_other(command::NAME).with_done(DONE)
}
