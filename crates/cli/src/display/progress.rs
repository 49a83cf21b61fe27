//! The progress of a run, collected from its events.

use surehand_agent::{
    RunEvent,
    event::{ContextMode, PlannedTask, RunPhase},
    model::TokenUsage,
};

use super::{
    command_output::LiveOutput,
    plan,
    status_line::{StatusActivity, StatusLine},
    stream::TextStream,
};

#[derive(Debug, Default)]
pub(super) struct RunProgress {
    pub session: String,
    /// The turn after which a resumed run continued, else 0.
    pub after_turn: u32,
    pub turn: u32,
    /// The tokens and cost of all turns so far.
    pub total: TokenUsage,
    /// The tasks as last shown.
    pub plan: Vec<PlannedTask>,
    /// The phase and task as last shown.
    pub shown_work: Option<(RunPhase, Option<String>)>,
    /// The current activity; `None` between turns.
    pub status: Option<StatusLine>,
    /// The text of the model.
    pub stream: TextStream,
    /// The id of the call that was shown last.
    pub call: Option<String>,
    /// Whether the user can type during the run.
    pub listens: bool,
    /// Whether the user was just asked about the current edit, and so has seen its diff.
    pub is_diff_seen: bool,
    /// The output of the current command.
    pub output: LiveOutput,
}

impl RunProgress {
    /// Updates the progress by an event. The model's text is tracked where it is written.
    pub(super) fn note(&mut self, event: &RunEvent) {
        match event {
            RunEvent::Started { session, after_turn, .. } => {
                session.clone_into(&mut self.session);
                self.after_turn = *after_turn;
                self.turn = *after_turn;
            }
            RunEvent::Turn { turn, phase, task, open, completed, prompt_tokens } => {
                self.turn = *turn;
                self.shown_work = Some((*phase, task.clone()));
                self.status = Some(StatusLine {
                    turn: *turn,
                    phase: *phase,
                    doing: StatusActivity::Thinking,
                    task: task.clone(),
                    open: *open,
                    completed: *completed,
                    prompt_tokens: *prompt_tokens,
                    total: self.total,
                    output: None,
                });
            }
            RunEvent::Calling { tool } => self.doing(StatusActivity::Writing(tool.clone())),
            RunEvent::Again { .. } => self.doing(StatusActivity::Waiting),
            RunEvent::Call { id, tool, .. } => {
                self.call = Some(id.clone());
                self.doing(StatusActivity::Running(tool.clone()));
            }
            RunEvent::Result { .. } => {
                self.is_diff_seen = false;
                self.doing(StatusActivity::Thinking);
            }
            RunEvent::Plan { tasks } => self.note_plan(tasks),
            RunEvent::TurnEnded { total, .. } => {
                self.total = *total;
                self.status = None;
            }
            RunEvent::Stopped { .. } => self.status = None,
            // After a retry, the first text shows that the model answers.
            RunEvent::Text { .. } => self.doing(StatusActivity::Thinking),
            RunEvent::Output { text, .. } => self.note_output(text),
            RunEvent::Reasoned { .. }
            | RunEvent::User { .. }
            | RunEvent::Said { .. }
            | RunEvent::Cut { .. }
            | RunEvent::Note { .. }
            | RunEvent::Left { .. }
            | RunEvent::Folded { .. } => {}
        }
    }

    fn doing(&mut self, doing: StatusActivity) {
        if let Some(status) = &mut self.status {
            status.doing = doing;
            status.output = None;
        }
    }

    fn note_output(&mut self, text: &str) {
        if let (Some(status), Some(line)) = (&mut self.status, text.lines().rfind(|line| !line.trim().is_empty())) {
            status.output = Some(line.to_owned());
        }
    }

    fn note_plan(&mut self, tasks: &[PlannedTask]) {
        tasks.clone_into(&mut self.plan);
        if let Some(status) = &mut self.status {
            status.open = tasks.iter().filter(|task| plan::is_open(task.status)).count();
            status.completed = tasks.len() - status.open;
        }
    }
}

pub(super) fn mode(mode: ContextMode) -> &'static str {
    match mode {
        ContextMode::Snapshot => "snapshot",
        ContextMode::History => "history",
    }
}
