//! Loop detection: warns the model when a run makes no progress, and stops the run if that does not help.

use std::collections::HashSet;

use surehand_engine::core::ToolKind;

use crate::{
    call_outcome::{CallOutcome, CallOutcomeKind},
    tool::AgentTool,
};

/// When a run without progress is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoopLimits {
    /// How often the same call may be refused before the run stops.
    pub refusals: u32,
    /// How many turns in a row may make no call, or only calls that are refused or change nothing.
    pub empty_turns: u32,
    /// How many turns in a row may only read.
    pub looking_turns: u32,
    /// How often a file may be overwritten with nearly the same content.
    pub rewrites: u32,
}

impl Default for LoopLimits {
    fn default() -> Self {
        Self { refusals: 5, empty_turns: 6, looking_turns: 40, rewrites: 6 }
    }
}

#[derive(Debug, Default)]
pub(crate) struct LoopDetector {
    limits: LoopLimits,
    empty: u32,
    looking: u32,
    /// Results of commands since the last change. The same result again is no progress.
    printed: HashSet<String>,
    turn: TurnProgress,
    stop: Option<String>,
}

#[derive(Debug, Default)]
struct TurnProgress {
    changed: bool,
    looked: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LoopAdvice {
    Continue,
    /// Tell the model.
    Warn(String),
    /// Stop the run for this reason.
    Stop(String),
}

impl LoopDetector {
    pub(crate) fn new(limits: LoopLimits) -> Self {
        Self { limits, ..Self::default() }
    }

    /// Records the outcome of a call.
    pub(crate) fn observe(&mut self, tool: &str, result: &CallOutcome) {
        let LoopLimits { refusals, rewrites, .. } = self.limits;
        if let Some((code, repeat)) = result.refusal()
            && repeat >= refusals
        {
            self.stop = Some(format!("the same call of {tool} was refused {refusals} times ({code})"));
        }
        if let Some((path, times)) = result.outcome().and_then(|outcome| outcome.rewrites())
            && times >= rewrites
        {
            self.stop = Some(format!("{path} was overwritten {rewrites} times with nearly the same content"));
        }
        if result.is_error() || result.is_noop() {
            return;
        }
        match (&result.kind, AgentTool::named(tool)) {
            (CallOutcomeKind::Command { .. }, _) => self.turn.changed |= self.printed.insert(result.text.clone()),
            (_, Some(AgentTool::Workspace(tool))) if matches!(tool.kind(), ToolKind::Reads | ToolKind::Forgets) => {
                self.turn.looked = true;
            }
            _ => {
                self.turn.changed = true;
                self.printed.clear();
            }
        }
    }

    /// Ends a turn and judges the progress so far.
    pub(crate) fn end_turn(&mut self) -> LoopAdvice {
        let turn = std::mem::take(&mut self.turn);
        if let Some(why) = self.stop.take() {
            return LoopAdvice::Stop(why);
        }
        self.empty = if turn.changed || turn.looked { 0 } else { self.empty + 1 };
        self.looking = if turn.changed { 0 } else { self.looking + 1 };
        let LoopLimits { empty_turns, looking_turns, .. } = self.limits;
        if self.empty >= empty_turns {
            return LoopAdvice::Stop(format!("{empty_turns} turns in a row had no effect"));
        }
        if self.looking >= looking_turns {
            return LoopAdvice::Stop(format!("{looking_turns} turns in a row only read files"));
        }
        if self.empty >= 2 && self.empty >= empty_turns / 2 {
            let left = empty_turns - self.empty;
            return LoopAdvice::Warn(format!(
                "The last {} turns had no effect. Try something else: after {left} more the run stops.",
                self.empty
            ));
        }
        if self.looking >= 2 && self.looking == looking_turns / 2 {
            return LoopAdvice::Warn(format!(
                "The last {} turns only read files. Continue with the first open task.",
                self.looking
            ));
        }
        LoopAdvice::Continue
    }
}

#[cfg(test)]
mod tests {
    use surehand_engine::{
        Done, Outcome, Refusal, ToolNames,
        core::{
            Cause, RelPath, TaskList, Text,
            outcome::{RefusedOutcome, SameContent},
        },
    };

    use super::*;

    /// A call that came to something.
    fn did(detector: &mut LoopDetector, tool: &str) {
        detector
            .observe(tool, &CallOutcome::from_outcome(Outcome::new(Ok(Done::Tasks(TaskList::default()))), &ToolNames::default()));
    }

    fn ran(detector: &mut LoopDetector) {
        let kind = CallOutcomeKind::Command { succeeded: true, ending: String::new(), read: Vec::new() };
        detector.observe("run_command", &CallOutcome::new("the same".to_owned(), kind));
    }

    #[test]
    fn turns_that_come_to_nothing_are_said_and_then_end_the_run() {
        let mut detector = LoopDetector::default();
        let advice: Vec<LoopAdvice> = (0..6).map(|_| detector.end_turn()).collect();
        assert_eq!(advice[..2], [LoopAdvice::Continue, LoopAdvice::Continue]);
        assert!(
            matches!(&advice[2], LoopAdvice::Warn(text) if text.contains("3 turns") && text.contains("after 3 more")),
            "{advice:?}"
        );
        assert!(matches!(&advice[5], LoopAdvice::Stop(_)), "{advice:?}");
    }

    #[test]
    fn a_change_makes_up_for_it() {
        let mut detector = LoopDetector::default();
        for _ in 0..50 {
            detector.end_turn();
            detector.end_turn();
            did(&mut detector, "edit_file");
            assert_eq!(detector.end_turn(), LoopAdvice::Continue);
        }
    }

    #[test]
    fn the_same_command_with_the_same_output_is_nothing_new() {
        let mut detector = LoopDetector::default();
        let mut stops = 0;
        for _ in 0..20 {
            ran(&mut detector);
            stops += usize::from(matches!(detector.end_turn(), LoopAdvice::Stop(_)));
        }
        assert!(stops > 0);
        did(&mut detector, "edit_file");
        detector.end_turn();
        ran(&mut detector);
        assert_eq!(detector.end_turn(), LoopAdvice::Continue);
    }

    #[test]
    fn only_looking_ends_as_well() {
        let mut detector = LoopDetector::default();
        let mut turns = 0;
        loop {
            did(&mut detector, "read_file");
            turns += 1;
            if let LoopAdvice::Stop(why) = detector.end_turn() {
                assert!(why.contains("only read"), "{why}");
                break;
            }
        }
        assert_eq!(turns, 40);
    }

    #[test]
    fn the_same_refusal_and_the_same_rewrite_end_it() {
        let mut detector = LoopDetector::default();
        let observe = |detector: &mut LoopDetector, tool: &str, outcome| {
            detector.observe(tool, &CallOutcome::from_outcome(outcome, &ToolNames::default()))
        };
        let refusal = Box::new(Refusal::of_call(Cause::Invalidated));
        observe(&mut detector, "edit_file", Outcome::new(Err(RefusedOutcome { refusal, repeat: 5, text: None })));
        assert_eq!(detector.end_turn(), LoopAdvice::Stop("the same call of edit_file was refused 5 times (stale)".to_owned()));
        let (path, text) = (RelPath::new("a").unwrap(), Text::of("a\n".to_owned()).unwrap());
        observe(&mut detector, "write_file", Outcome::new(Ok(Done::SameContent(SameContent { path, text, rewrites: 6 }))));
        assert_eq!(detector.end_turn(), LoopAdvice::Stop("a was overwritten 6 times with nearly the same content".to_owned()));
    }
}
