//! Who allows a command: a list, a person, or nobody. What the list covers is decided in [`surehand_engine::core::shell`].

use std::collections::HashSet;

use surehand_engine::core::shell;

/// Somebody who may allow commands.
pub trait Permission {
    /// Whether this command may run.
    fn may_run(&mut self, command: &str) -> Verdict;
}

impl<P: Permission + ?Sized> Permission for Box<P> {
    fn may_run(&mut self, command: &str) -> Verdict {
        (**self).may_run(command)
    }
}

/// Whether a command may run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// This time.
    Yes,
    /// This very command, from now on in this run.
    Always,
    /// It may not; with what was said instead.
    No(Option<String>),
}

/// What the owner has laid down.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rules {
    /// Commands that run unasked; see [`shell::covered`].
    pub allow: Vec<String>,
    /// What happens to the others.
    pub mode: Mode,
}

/// What happens to a command that is not in the list.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Mode {
    /// It runs (`--yes`).
    All,
    /// A person is asked.
    Ask,
    /// It does not run: nobody is there.
    #[default]
    None,
}

/// The rules, and a person for what they leave open.
#[derive(Debug)]
pub struct Ruled<P> {
    rules: Rules,
    person: P,
    /// What the person has allowed for good.
    always: HashSet<String>,
}

impl<P: Permission> Ruled<P> {
    /// Follows these rules, and asks this person where they say so.
    pub fn new(rules: Rules, person: P) -> Self {
        Self { rules, person, always: HashSet::new() }
    }
}

impl<P: Permission> Permission for Ruled<P> {
    fn may_run(&mut self, command: &str) -> Verdict {
        if self.rules.mode == Mode::All || self.always.contains(command) || shell::covered(command, &self.rules.allow) {
            return Verdict::Yes;
        }
        let verdict = match self.rules.mode {
            Mode::All | Mode::Ask => self.person.may_run(command),
            Mode::None => Nobody.may_run(command),
        };
        if verdict == Verdict::Always {
            self.always.insert(command.to_owned());
        }
        verdict
    }
}

/// Nobody is there to be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Nobody;

impl Permission for Nobody {
    /// The model reads this, and the person who finds out why the run did not get on.
    fn may_run(&mut self, _: &str) -> Verdict {
        let why = "it is not in the list of allowed commands, and nobody is there to ask. Go on without it. (Whoever started the run can allow it in commands.allow of ~/.config/surehand/surehand.toml, or everything with --yes.)";
        Verdict::No(Some(why.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A person with one answer, who counts the questions.
    struct Person(Verdict, usize);

    impl Permission for Person {
        fn may_run(&mut self, _: &str) -> Verdict {
            self.1 += 1;
            self.0.clone()
        }
    }

    #[track_caller]
    fn check(mode: Mode, says: Verdict, commands: &[&str], expected: &[Verdict], asked: usize) {
        let rules = Rules { allow: vec!["cargo test".to_owned()], mode };
        let mut ruled = Ruled::new(rules, Person(says, 0));
        let verdicts: Vec<Verdict> = commands.iter().map(|command| ruled.may_run(command)).collect();
        assert_eq!((&verdicts[..], ruled.person.1), (expected, asked));
    }

    #[test]
    fn what_is_in_the_list_is_not_asked_about() {
        let no = Verdict::No(Some("not now".to_owned()));
        check(Mode::Ask, no.clone(), &["cargo test -q", "rm a"], &[Verdict::Yes, no.clone()], 1);
        check(Mode::All, no, &["cargo test -q", "rm a", "$(rm a)"], &[Verdict::Yes, Verdict::Yes, Verdict::Yes], 0);
    }

    #[test]
    fn what_is_allowed_for_good_is_this_very_command() {
        let always = || Verdict::Always;
        check(Mode::Ask, always(), &["make", "make", "make x"], &[always(), Verdict::Yes, always()], 2);
        check(Mode::Ask, Verdict::Yes, &["make", "make"], &[Verdict::Yes, Verdict::Yes], 2);
    }

    #[test]
    fn where_nobody_is_there_the_way_out_is_told() {
        let nobody = Nobody.may_run("make");
        let Verdict::No(Some(why)) = &nobody else { panic!("{nobody:?}") };
        assert!(why.contains("--yes") && why.contains("commands.allow") && why.contains("surehand.toml"), "{why}");
        check(Mode::None, Verdict::Yes, &["cargo test", "make"], &[Verdict::Yes, nobody.clone()], 0);
    }
}
