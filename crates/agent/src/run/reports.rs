//! The events of a run: redacted, written to the transcript and passed to the listener.

use serde_json::Value;
use surehand_engine::{
    SessionId,
    change_log::{ChangeSelection, NetChange},
    core::{
        RepoState, TaskList,
        file_diff::{DiffKind, FileDiff},
        outcome::ChangeOutcome,
    },
};

use super::{AgentRun, RunError};
use crate::{
    call_outcome::CallOutcome,
    event::{FileChangeWord, FileTotal, PlannedTask, RunEvent, RunTotals},
    transcript::SavedRun,
};

impl AgentRun<'_> {
    pub(super) fn report_turn(&mut self, turn: u32, state: &RepoState, prompt_tokens: usize) -> Result<(), RunError> {
        let open = state.tasks.open();
        let event = RunEvent::Turn {
            turn,
            phase: self.saved.phase,
            task: open.first().map(|task| task.description.clone()),
            open: open.len(),
            completed: state.tasks.tasks.len() - open.len(),
            prompt_tokens,
        };
        self.report(event)
    }

    /// Reports the tasks if they have changed since the last report.
    pub(super) fn report_plan(&mut self, tasks: &TaskList) -> Result<(), RunError> {
        let planned = tasks.tasks.iter().map(|task| PlannedTask {
            id: task.id,
            description: task.description.clone(),
            status: task.status,
        });
        let tasks: Vec<PlannedTask> = planned.collect();
        if self.plan == tasks {
            return Ok(());
        }
        self.plan.clone_from(&tasks);
        self.report(RunEvent::Plan { tasks })
    }

    /// The totals of the run so far. If the store cannot be read, they name no files.
    pub(super) fn totals(&self) -> RunTotals {
        let SavedRun { turn, calls, refused, usage, seconds, .. } = self.saved;
        let workspace = self.session.workspace();
        let session = ChangeSelection::Session(SessionId(self.saved.session.clone()));
        let changes = workspace.net_changes(&session).ok().flatten().unwrap_or_default();
        let total = |net: &NetChange| match workspace.diff(net) {
            Some(diff) => FileTotal::of(&diff),
            None => Some(FileTotal {
                path: net.path_after.to_string(),
                from: None,
                change: FileChangeWord::Edited,
                added: None,
                removed: None,
            }),
        };
        let mut files: Vec<FileTotal> = changes.iter().filter_map(total).collect();
        files.sort_by(|a, b| a.path.cmp(&b.path));
        RunTotals { turns: turn, calls, refused, usage, seconds, files }
    }

    pub(super) fn report_call(&mut self, id: &str, tool: &str, arguments: Value, repair: bool) -> Result<(), RunError> {
        self.report(RunEvent::Call { id: id.to_owned(), tool: tool.to_owned(), arguments, repair })
    }

    pub(super) fn report_result(&mut self, id: &str, tool: &str, result: &CallOutcome) -> Result<(), RunError> {
        let changed = result.outcome().and_then(|outcome| outcome.changed());
        let diff = changed.map(|changed| self.redacted_diffs(changed)).unwrap_or_default();
        let (id, tool, is_error) = (id.to_owned(), tool.to_owned(), result.is_error());
        // `report` redacts by a round trip through JSON, in which a diff would be lost. So text and diff are redacted
        // here, which leaves it nothing to replace.
        let text = self.settings.secrets.redact(&result.text).into_owned();
        self.report(RunEvent::Result { id, tool, is_error, text, diff })
    }

    fn redacted_diffs(&self, changed: &ChangeOutcome) -> Vec<FileDiff> {
        let diffs = changed.described_files().map(|file| file.unified_diff()).filter(|diff| diff.kind() != DiffKind::Unchanged);
        diffs.map(|diff| diff.redacted(|text| self.settings.secrets.redact(text))).collect()
    }

    /// Writes an event to the transcript and passes it to the listener, redacted. Events of a streamed answer go
    /// through [`Self::ask_model`] instead.
    pub(super) fn report(&mut self, event: RunEvent) -> Result<(), RunError> {
        let event = self.settings.secrets.redact_in(event);
        self.transcript.append(&event)?;
        (self.ports.listener)(&event);
        Ok(())
    }
}
