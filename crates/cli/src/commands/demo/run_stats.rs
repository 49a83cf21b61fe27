//! Statistics of a run, from its events.

use std::{collections::BTreeMap, time::Duration};

use serde_json::{Value, json};
use surehand_agent::RunEvent;
use surehand_engine::Tool;

use super::{other_programs::KeptChanges, tool_call::ToolCall};

#[derive(Debug, Default)]
pub(super) struct RunStats {
    pub prompts: Vec<usize>,
    /// Number of whole-file writes, by path.
    pub writes: BTreeMap<String, usize>,
    pub reads: usize,
    pub refusals: usize,
    /// Refused edits that the loop repaired and made.
    pub repairs: usize,
    pub folds: usize,
}

#[derive(Debug)]
pub(super) struct PlayedRun {
    pub stats: RunStats,
    /// Whether the model finished the story.
    pub is_done: bool,
    pub kept: KeptChanges,
    pub time: Duration,
}

impl RunStats {
    pub(super) fn hear(&mut self, event: &RunEvent) {
        match event {
            RunEvent::Turn { prompt_tokens, .. } => self.prompts.push(*prompt_tokens),
            RunEvent::Folded { .. } => self.folds += 1,
            _ => {}
        }
    }

    pub(super) fn count(&mut self, tool_call: &ToolCall, is_error: bool) {
        match (Tool::named(&tool_call.tool), tool_call.is_repair, is_error) {
            (_, false, true) => self.refusals += 1,
            (Some(Tool::WriteFile), _, false) => *self.writes.entry(tool_call.path.clone()).or_default() += 1,
            (Some(Tool::ReadFile), false, false) => self.reads += 1,
            (Some(Tool::EditLines), true, false) => self.repairs += 1,
            _ => {}
        }
    }

    /// The average number of writes per written file.
    pub(super) fn writes_per_file(&self) -> f64 {
        self.writes.values().sum::<usize>() as f64 / self.writes.len().max(1) as f64
    }

    /// The median number of tokens of a prompt.
    pub(super) fn median(&self) -> usize {
        let mut sorted = self.prompts.clone();
        sorted.sort_unstable();
        sorted.get(sorted.len() / 2).copied().unwrap_or_default()
    }

    pub(super) fn longest(&self) -> usize {
        self.prompts.iter().copied().max().unwrap_or_default()
    }
}

impl PlayedRun {
    pub(super) fn as_json(&self) -> Value {
        let RunStats { prompts, writes, refusals, repairs, .. } = &self.stats;
        let turns: Vec<Value> =
            prompts.iter().zip(1..).map(|(tokens, turn)| json!({ "turn": turn, "prompt_tokens": tokens })).collect();
        json!({
            "turns": turns,
            "writes_per_file": writes,
            "refusals": refusals,
            "repairs": repairs,
            "lost_updates": self.kept.lost,
            "seconds": self.time.as_secs_f64(),
        })
    }
}
