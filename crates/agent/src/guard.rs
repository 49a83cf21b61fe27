//! Notices when a run goes round in circles: it is said to the model, and when that does not help the run stops.

use std::collections::HashSet;

use surehand_engine::Reply;

use crate::command;

/// How long a run may get nowhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// How often the same call may be refused.
    pub refusals: u64,
    /// How many turns in a row may call nothing, or nothing but what is refused or changes nothing.
    pub empty_turns: u32,
    /// How many turns in a row may only look.
    pub looking_turns: u32,
    /// How often a file may be written over with nearly what it holds.
    pub rewrites: u64,
}

impl Default for Patience {
    fn default() -> Self {
        Self { refusals: 5, empty_turns: 6, looking_turns: 40, rewrites: 6 }
    }
}

/// What has come of a run lately.
#[derive(Debug, Default)]
pub struct Guard {
    patience: Patience,
    empty: u32,
    looking: u32,
    /// What commands printed since something last changed: the same again tells nothing.
    printed: HashSet<String>,
    turn: Turn,
    stop: Option<String>,
}

/// What one turn came to.
#[derive(Debug, Default)]
struct Turn {
    changed: bool,
    looked: bool,
}

/// What is to be done about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Advice {
    /// Nothing.
    GoOn,
    /// The model should be told this.
    Say(String),
    /// The run should stop for this.
    Stop(String),
}

impl Guard {
    /// With so much patience.
    pub fn new(patience: Patience) -> Self {
        Self { patience, ..Self::default() }
    }

    /// A call has come to this.
    pub fn saw(&mut self, tool: &str, reply: &Reply) {
        let result = &reply.result;
        let refusal = &result["refusal"];
        if refusal["repeat"].as_u64().is_some_and(|times| times >= self.patience.refusals) {
            let (code, times) = (refusal["code"].as_str().unwrap_or("refused"), self.patience.refusals);
            self.stop = Some(format!("the same call of {tool} was refused {times} times ({code})"));
        }
        if result["rewrites"].as_u64().is_some_and(|times| times >= self.patience.rewrites) {
            let path = result["path"].as_str().unwrap_or("a file");
            self.stop = Some(format!("{path} was written over {} times with nearly what it held", self.patience.rewrites));
        }
        if reply.is_error || result["noop"] == true {
            return;
        }
        match tool {
            "read_file" | "search_files" | "list_files" | "repo_state" | "forget" => self.turn.looked = true,
            command::NAME => self.turn.changed |= self.printed.insert(reply.text.clone()),
            _ => {
                self.turn.changed = true;
                self.printed.clear();
            }
        }
    }

    /// A turn is over.
    pub fn turn_ended(&mut self) -> Advice {
        let turn = std::mem::take(&mut self.turn);
        if let Some(why) = self.stop.take() {
            return Advice::Stop(why);
        }
        self.empty = if turn.changed || turn.looked { 0 } else { self.empty + 1 };
        self.looking = if turn.changed { 0 } else { self.looking + 1 };
        let Patience { empty_turns, looking_turns, .. } = self.patience;
        if self.empty >= empty_turns {
            return Advice::Stop(format!("{empty_turns} turns in a row came to nothing"));
        }
        if self.looking >= looking_turns {
            return Advice::Stop(format!("{looking_turns} turns in a row only looked at files"));
        }
        if self.empty >= 2 && self.empty >= empty_turns / 2 {
            let left = empty_turns - self.empty;
            return Advice::Say(format!(
                "The last {} turns came to nothing. Do something else; after {left} more the run stops.",
                self.empty
            ));
        }
        if self.looking >= 2 && self.looking == looking_turns / 2 {
            return Advice::Say(format!("The last {} turns only looked at files. Go on with the first open task.", self.looking));
        }
        Advice::GoOn
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn saw(guard: &mut Guard, tool: &str, is_error: bool, result: Value) {
        guard.saw(tool, &Reply { text: "the same".to_owned(), is_error, result });
    }

    #[test]
    fn turns_that_come_to_nothing_are_said_and_then_end_the_run() {
        let mut guard = Guard::default();
        let advice: Vec<Advice> = (0..6).map(|_| guard.turn_ended()).collect();
        assert_eq!(advice[..2], [Advice::GoOn, Advice::GoOn]);
        assert!(
            matches!(&advice[2], Advice::Say(text) if text.contains("3 turns") && text.contains("after 3 more")),
            "{advice:?}"
        );
        assert!(matches!(&advice[5], Advice::Stop(_)), "{advice:?}");
    }

    #[test]
    fn a_change_makes_up_for_it() {
        let mut guard = Guard::default();
        for _ in 0..50 {
            guard.turn_ended();
            guard.turn_ended();
            saw(&mut guard, "edit_file", false, json!({ "success": true }));
            assert_eq!(guard.turn_ended(), Advice::GoOn);
        }
    }

    #[test]
    fn the_same_command_with_the_same_output_is_nothing_new() {
        let mut guard = Guard::default();
        let mut stops = 0;
        for _ in 0..20 {
            saw(&mut guard, "run_command", false, json!({ "success": true }));
            stops += usize::from(matches!(guard.turn_ended(), Advice::Stop(_)));
        }
        assert!(stops > 0);
        saw(&mut guard, "edit_file", false, json!({ "success": true }));
        guard.turn_ended();
        saw(&mut guard, "run_command", false, json!({ "success": true }));
        assert_eq!(guard.turn_ended(), Advice::GoOn);
    }

    #[test]
    fn only_looking_ends_as_well() {
        let mut guard = Guard::default();
        let mut turns = 0;
        loop {
            saw(&mut guard, "read_file", false, json!({ "success": true }));
            turns += 1;
            if let Advice::Stop(why) = guard.turn_ended() {
                assert!(why.contains("only looked"), "{why}");
                break;
            }
        }
        assert_eq!(turns, 40);
    }

    #[test]
    fn the_same_refusal_and_the_same_rewrite_end_it() {
        let mut guard = Guard::default();
        saw(&mut guard, "edit_file", true, json!({ "refusal": { "code": "stale", "repeat": 5 } }));
        assert_eq!(guard.turn_ended(), Advice::Stop("the same call of edit_file was refused 5 times (stale)".to_owned()));
        saw(&mut guard, "write_file", false, json!({ "path": "a", "rewrites": 6 }));
        assert_eq!(guard.turn_ended(), Advice::Stop("a was written over 6 times with nearly what it held".to_owned()));
    }
}
