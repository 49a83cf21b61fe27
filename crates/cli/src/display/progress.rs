//! The progress of a run, collected from its events.

use surehand_agent::{
    RunEvent,
    event::{ContextMode, RunPhase},
    model::TokenUsage,
};
use surehand_engine::core::file_diff::FileDiff;

use super::{
    diff::DiffStat,
    status_line::{Doing, StatusLine},
    stream::TextStream,
    style,
};

#[derive(Debug, Default)]
pub(super) struct RunProgress {
    pub session: String,
    /// The turn after which a resumed run continued, else 0.
    pub after_turn: u32,
    pub turn: u32,
    /// What all turns took.
    pub total: TokenUsage,
    /// How long the turns took that were seen.
    pub seconds: f64,
    /// The changed files, in the order of their first change.
    pub files: Vec<DiffStat>,
    /// The phase and task that were shown last.
    pub told: Option<(RunPhase, Option<String>)>,
    /// What is going on, during a turn.
    pub status: Option<StatusLine>,
    /// What the model says.
    pub stream: TextStream,
    /// The call that was shown last.
    pub call: Option<String>,
}

impl RunProgress {
    /// Takes in an event. The model's text is tracked where it is written.
    pub(super) fn note(&mut self, event: &RunEvent) {
        match event {
            RunEvent::Started { session, after_turn, .. } => {
                session.clone_into(&mut self.session);
                self.after_turn = *after_turn;
                self.turn = *after_turn;
            }
            RunEvent::Turn { turn, phase, task, open, completed, prompt_tokens } => {
                self.turn = *turn;
                self.told = Some((*phase, task.clone()));
                self.status = Some(StatusLine {
                    turn: *turn,
                    phase: *phase,
                    doing: Doing::Thinking,
                    task: task.clone(),
                    open: *open,
                    completed: *completed,
                    prompt_tokens: *prompt_tokens,
                    total: self.total,
                });
            }
            RunEvent::Calling { tool } => self.doing(Doing::Writing(tool.clone())),
            RunEvent::Again { .. } => self.doing(Doing::Waiting),
            RunEvent::Call { id, tool, .. } => {
                self.call = Some(id.clone());
                self.doing(Doing::Running(tool.clone()));
            }
            RunEvent::Result { diff, .. } => {
                self.add(diff);
                self.doing(Doing::Thinking);
            }
            RunEvent::TurnEnded { total, seconds, .. } => {
                self.total = *total;
                self.seconds += style::duration(*seconds).as_secs_f64();
                self.status = None;
            }
            RunEvent::Stopped { .. } => self.status = None,
            // After a retry, the first text shows that the model answers.
            RunEvent::Text { .. } => self.doing(Doing::Thinking),
            RunEvent::Said { .. } | RunEvent::Left { .. } | RunEvent::Folded { .. } => {}
        }
    }

    fn doing(&mut self, doing: Doing) {
        if let Some(status) = &mut self.status {
            status.doing = doing;
        }
    }

    fn add(&mut self, diffs: &[FileDiff]) {
        for file in diffs.iter().map(DiffStat::of) {
            match self.files.iter_mut().find(|known| known.path == file.path) {
                Some(known) => known.and_then(&file),
                None => self.files.push(file),
            }
        }
    }
}

pub(super) fn mode(mode: ContextMode) -> &'static str {
    match mode {
        ContextMode::Snapshot => "snapshot",
        ContextMode::History => "history",
    }
}
