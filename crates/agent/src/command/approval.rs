//! Approval of commands: by a list, by a person, or not at all. The rules are the agent's own, because a wrong
//! match runs a command unasked; [`surehand_engine::core::shell`] decides what the list covers.

use std::collections::HashSet;

use surehand_engine::core::shell;

/// Decides which commands may run.
pub trait Approver {
    /// Decides whether this command may run.
    fn approve(&mut self, command: &str) -> Approval;
}

/// The decision about a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Approval {
    /// It may run this time.
    Yes,
    /// This exact command may run for the rest of the run.
    Always,
    /// It may not run, for this reason.
    No(Option<String>),
}

/// Which commands run without a question.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ApprovalRules {
    /// Commands that run without a question; see [`shell::covered`].
    pub allow: Vec<String>,
    /// What happens to all others.
    pub mode: ApprovalMode,
}

/// What happens to a command that the list does not cover.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ApprovalMode {
    /// Run it (`--yes`).
    All,
    /// Ask the approver behind the rules.
    #[default]
    Ask,
}

/// Applies the rules, and asks a person about the rest.
#[derive(Debug)]
pub struct RuleApprover<P> {
    rules: ApprovalRules,
    person: P,
    /// Commands that the person allowed for the rest of the run.
    always: HashSet<String>,
}

impl<P: Approver> RuleApprover<P> {
    /// An approver with these rules that asks `person`.
    pub fn new(rules: ApprovalRules, person: P) -> Self {
        Self { rules, person, always: HashSet::new() }
    }
}

impl<P: Approver> Approver for RuleApprover<P> {
    fn approve(&mut self, command: &str) -> Approval {
        if self.rules.mode == ApprovalMode::All || self.always.contains(command) || shell::covered(command, &self.rules.allow) {
            return Approval::Yes;
        }
        let approval = self.person.approve(command);
        if approval == Approval::Always {
            self.always.insert(command.to_owned());
        }
        approval
    }
}

/// Approves nothing: there is no one to ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoApprover;

impl Approver for NoApprover {
    /// The model reads this reason, and later the person who wonders why the run got stuck.
    fn approve(&mut self, _: &str) -> Approval {
        let why = "it is not in the list of allowed commands, and there is no one to ask. Go on without it. (The user can allow it in commands.allow of ~/.config/surehand/surehand.toml, or allow everything with --yes.)";
        Approval::No(Some(why.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A person with one answer, who counts the questions.
    struct Person(Approval, usize);

    impl Approver for Person {
        fn approve(&mut self, _: &str) -> Approval {
            self.1 += 1;
            self.0.clone()
        }
    }

    #[track_caller]
    fn check(mode: ApprovalMode, says: Approval, commands: &[&str], expected: &[Approval], asked: usize) {
        let rules = ApprovalRules { allow: vec!["cargo test".to_owned()], mode };
        let mut ruled = RuleApprover::new(rules, Person(says, 0));
        let verdicts: Vec<Approval> = commands.iter().map(|command| ruled.approve(command)).collect();
        assert_eq!((&verdicts[..], ruled.person.1), (expected, asked));
    }

    #[test]
    fn what_is_in_the_list_is_not_asked_about() {
        let no = Approval::No(Some("not now".to_owned()));
        check(ApprovalMode::Ask, no.clone(), &["cargo test -q", "rm a"], &[Approval::Yes, no.clone()], 1);
        check(ApprovalMode::All, no, &["cargo test -q", "rm a", "$(rm a)"], &[Approval::Yes, Approval::Yes, Approval::Yes], 0);
    }

    #[test]
    fn what_is_allowed_for_good_is_this_very_command() {
        let always = || Approval::Always;
        check(ApprovalMode::Ask, always(), &["make", "make", "make x"], &[always(), Approval::Yes, always()], 2);
        check(ApprovalMode::Ask, Approval::Yes, &["make", "make"], &[Approval::Yes, Approval::Yes], 2);
    }

    #[test]
    fn without_a_person_the_reason_names_the_settings() {
        let nobody = NoApprover.approve("make");
        let Approval::No(Some(why)) = &nobody else { panic!("{nobody:?}") };
        assert!(why.contains("--yes") && why.contains("commands.allow") && why.contains("surehand.toml"), "{why}");
        let rules = ApprovalRules { allow: vec!["cargo test".to_owned()], mode: ApprovalMode::Ask };
        let mut ruled = RuleApprover::new(rules, NoApprover);
        assert_eq!([ruled.approve("cargo test"), ruled.approve("make")], [Approval::Yes, nobody.clone()]);
    }
}
