//! Approval of commands: by a list of allowed commands, by a person, or for all of them. A wrong match would run a
//! command unasked, so [`surehand_engine::core::shell::covered`] decides what the list covers.

use std::{
    collections::HashSet,
    env,
    path::{Path, PathBuf},
};

use surehand_engine::{Workspace, core::shell};

use super::confinement::{ConfinementSupport, confinement_support};

/// Decides which commands may run.
pub trait Approver {
    /// Decides whether this command may run.
    fn approve(&mut self, request: &CommandRequest<'_>) -> Approval;
}

/// A command that the model wants to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CommandRequest<'a> {
    /// The command line, as the model wrote it.
    pub line: &'a str,
    /// Why the list of allowed commands does not decide it.
    pub why: AskedBecause,
}

/// Why a command needs approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AskedBecause {
    /// The list does not cover it, or is empty.
    NotAllowed,
    /// The model wants it to run without confinement.
    Unconfined,
    /// The list covers it, but this system cannot confine it, and it may do more than read.
    CannotBeConfined,
}

/// The decision about a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Approval {
    /// It may run this time, but confined, because no one was asked.
    Confined,
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
    /// The decision about all other commands.
    pub mode: ApprovalMode,
    /// How commands of the list run.
    pub unasked: UnaskedCommands,
}

/// The decision about a command that the list does not cover.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ApprovalMode {
    /// Run it (`--yes`). Commands of the list then run without confinement as well.
    All,
    /// Ask the approver behind the rules.
    #[default]
    Ask,
}

/// How a command runs if no one is asked about it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum UnaskedCommands {
    /// It does not: this system cannot confine it, and `PATH` has a directory into which the model can put programs.
    #[default]
    Never,
    /// Only if it is known only to read, because this system cannot confine it.
    OnlyReaders,
    /// In the confinement of [`confinement_support`].
    Confined,
}

impl UnaskedCommands {
    /// The best mode that this system supports for this workspace.
    pub fn here(workspace: &Workspace) -> Self {
        if matches!(confinement_support(), ConfinementSupport::InForce { .. }) && workspace.protected_paths().is_ok() {
            return Self::Confined;
        }
        let path = env::var_os("PATH").unwrap_or_default();
        match env::split_paths(&path).all(|dir| holds_trusted_programs(&dir, workspace.path())) {
            true => Self::OnlyReaders,
            false => Self::Never,
        }
    }
}

fn holds_trusted_programs(dir: &Path, root: &Path) -> bool {
    let real: PathBuf = dir.canonicalize().unwrap_or_else(|_| dir.to_owned());
    dir.is_absolute() && !dir.starts_with(root) && !real.starts_with(root)
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

    fn decide_by_list(&self, request: &CommandRequest<'_>) -> Result<Approval, AskedBecause> {
        if !shell::covered(request.line, &self.rules.allow) {
            return Err(AskedBecause::NotAllowed);
        }
        match self.rules.unasked {
            UnaskedCommands::Confined if request.why == AskedBecause::Unconfined => Err(AskedBecause::Unconfined),
            UnaskedCommands::Confined => Ok(Approval::Confined),
            UnaskedCommands::OnlyReaders if shell::only_reads_here(request.line) => Ok(Approval::Yes),
            UnaskedCommands::OnlyReaders | UnaskedCommands::Never => Err(AskedBecause::CannotBeConfined),
        }
    }
}

impl<P: Approver> Approver for RuleApprover<P> {
    fn approve(&mut self, request: &CommandRequest<'_>) -> Approval {
        if self.rules.mode == ApprovalMode::All || self.always.contains(request.line) {
            return Approval::Yes;
        }
        let why = match self.decide_by_list(request) {
            Ok(approval) => return approval,
            Err(why) => why,
        };
        let approval = self.person.approve(&CommandRequest { why, ..*request });
        if approval == Approval::Always {
            self.always.insert(request.line.to_owned());
        }
        approval
    }
}

/// Approves nothing. Used where there is no one to ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoApprover;

impl Approver for NoApprover {
    /// Both the model and the person who wonders why the run got stuck read this reason.
    fn approve(&mut self, request: &CommandRequest<'_>) -> Approval {
        let why = match request.why {
            AskedBecause::NotAllowed => {
                "it is not in the list of allowed commands, and there is no one to ask. Go on without it. (The user can allow it in commands.allow of ~/.config/surehand/surehand.toml, or allow everything with --yes.)"
            }
            AskedBecause::Unconfined => {
                "it may run only confined, and there is no one to ask. Go on without it. (The user can set commands.writable or commands.network in ~/.config/surehand/surehand.toml, or allow everything with --yes.)"
            }
            AskedBecause::CannotBeConfined => {
                "this system cannot confine it, as allowed commands must be that do more than read, and there is no one to ask. Go on without it. (The user can allow everything with --yes; `surehand doctor` says what is missing.)"
            }
        };
        Approval::No(Some(why.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A person with one answer, who records the questions.
    struct Person(Approval, Vec<AskedBecause>);

    impl Approver for Person {
        fn approve(&mut self, request: &CommandRequest<'_>) -> Approval {
            self.1.push(request.why);
            self.0.clone()
        }
    }

    fn rules(mode: ApprovalMode, unasked: UnaskedCommands) -> ApprovalRules {
        ApprovalRules {
            allow: vec!["cargo test".to_owned(), "cat".to_owned(), "cd".to_owned(), "git status".to_owned()],
            mode,
            unasked,
        }
    }

    fn request(line: &str) -> CommandRequest<'_> {
        CommandRequest { line, why: AskedBecause::NotAllowed }
    }

    #[track_caller]
    fn check(rules: ApprovalRules, says: Approval, commands: &[&str], expected: &[Approval], asked: &[AskedBecause]) {
        let mut ruled = RuleApprover::new(rules, Person(says, Vec::new()));
        let verdicts: Vec<Approval> = commands.iter().map(|command| ruled.approve(&request(command))).collect();
        assert_eq!((&verdicts[..], &ruled.person.1[..]), (expected, asked));
    }

    #[test]
    fn what_is_in_the_list_is_not_asked_about_and_runs_confined() {
        let no = Approval::No(Some("not now".to_owned()));
        let ask = rules(ApprovalMode::Ask, UnaskedCommands::Confined);
        check(ask, no.clone(), &["cargo test -q", "rm a"], &[Approval::Confined, no.clone()], &[AskedBecause::NotAllowed]);
        let all = rules(ApprovalMode::All, UnaskedCommands::Confined);
        check(all, no, &["cargo test -q", "rm a", "$(rm a)"], &[Approval::Yes, Approval::Yes, Approval::Yes], &[]);
    }

    #[test]
    fn where_nothing_can_be_confined_only_readers_run_unasked() {
        let no = || Approval::No(None);
        let cannot = AskedBecause::CannotBeConfined;
        let readers = rules(ApprovalMode::Ask, UnaskedCommands::OnlyReaders);
        check(readers, no(), &["cat a", "git status", "cargo test"], &[Approval::Yes, Approval::Yes, no()], &[cannot]);
        // Git runs commands that the configuration of a bare repository names.
        let readers = rules(ApprovalMode::Ask, UnaskedCommands::OnlyReaders);
        check(readers, no(), &["cd sub && git status", "cd sub; cat a"], &[no(), Approval::Yes], &[cannot]);
        check(rules(ApprovalMode::Ask, UnaskedCommands::Never), no(), &["cat a"], &[no()], &[cannot]);
    }

    #[test]
    fn without_confinement_a_command_of_the_list_is_asked_about() {
        let mut ruled = RuleApprover::new(rules(ApprovalMode::Ask, UnaskedCommands::Confined), Person(Approval::Yes, Vec::new()));
        let unconfined = CommandRequest { line: "cargo test", why: AskedBecause::Unconfined };
        assert_eq!(ruled.approve(&unconfined), Approval::Yes);
        assert_eq!(ruled.approve(&request("cargo test")), Approval::Confined);
        let other = CommandRequest { line: "make", why: AskedBecause::Unconfined };
        assert_eq!(ruled.approve(&other), Approval::Yes);
        assert_eq!(ruled.person.1, [AskedBecause::Unconfined, AskedBecause::NotAllowed]);
    }

    #[test]
    fn what_is_allowed_for_good_is_this_very_command() {
        let always = || Approval::Always;
        let asked = [AskedBecause::NotAllowed; 2];
        let ask = || rules(ApprovalMode::Ask, UnaskedCommands::Confined);
        check(ask(), always(), &["make", "make", "make x"], &[always(), Approval::Yes, always()], &asked);
        check(ask(), Approval::Yes, &["make", "make"], &[Approval::Yes, Approval::Yes], &asked);
    }

    #[test]
    fn without_a_person_the_reason_names_the_settings() {
        let refusal = NoApprover.approve(&request("make"));
        let Approval::No(Some(why)) = &refusal else { panic!("{refusal:?}") };
        assert!(why.contains("--yes") && why.contains("commands.allow") && why.contains("surehand.toml"), "{why}");
        let mut ruled = RuleApprover::new(rules(ApprovalMode::Ask, UnaskedCommands::Confined), NoApprover);
        assert_eq!(
            [ruled.approve(&request("cargo test")), ruled.approve(&request("make"))],
            [Approval::Confined, refusal.clone()]
        );
    }

    #[test]
    fn programs_of_the_workspace_are_not_trusted() {
        let root = Path::new("/w");
        let trusted = ["/usr/bin", "bin", "", "/w/bin", "/ww/bin"].map(|dir| holds_trusted_programs(Path::new(dir), root));
        assert_eq!(trusted, [true, false, false, false, true]);
    }
}
