//! The gate and the board: claims of other agents, and changes in other checkouts that an edit will conflict with.

use std::{
    path::{Path, PathBuf},
    process::Command,
    sync::{Arc, Mutex},
    time::Duration,
};

use surehand_engine::{
    Call, Config, Edit, Outcome, ReadCall, Session, SessionId, StateHome, ToolNames, Workspace, WorkspaceOptions,
    core::{OnOverlap, PathPattern, Policy, RefusalCode},
    fleet::{BranchChanges, FleetLink, LocalCopy},
    render,
    store::board::{Agent, AgentId, Board, BoardCopy, ClaimId, FileChange, Heartbeat, PathClaimRequest, SqliteBoard},
};
use tempfile::TempDir;

/// Two clones of a repository, each with a file of twenty lines.
struct Clones {
    dir: TempDir,
    board: SqliteBoard,
}

impl Clones {
    fn new() -> Self {
        let clones = Self { dir: tempfile::tempdir().unwrap(), board: SqliteBoard::in_memory().unwrap() };
        clones.git("init -q --bare -b main origin.git");
        clones.git("init -q -b main mine");
        std::fs::create_dir(clones.at("mine/src")).unwrap();
        write(&clones.at("mine/src/a.txt"), &text(0, ""));
        write(&clones.at("mine/b.txt"), &text(0, ""));
        for words in ["-C mine add .", "-C mine commit -q -m first", "-C mine remote add origin ../origin.git"] {
            clones.git(words);
        }
        clones.git("-C mine push -q origin main");
        clones.git("clone -q origin.git theirs");
        clones
    }

    fn at(&self, name: &str) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join(name)
    }

    fn git(&self, words: &str) {
        let identity = ["-c", "user.name=n", "-c", "user.email=e@example.org"];
        let done = Command::new("git").current_dir(self.dir.path()).args(identity).args(words.split(' ')).output().unwrap();
        assert!(done.status.success(), "git {words}: {}", String::from_utf8_lossy(&done.stderr));
    }

    fn open(&self, name: &str, policy: Policy) -> Arc<Workspace> {
        let state = StateHome { user: Some(self.at("state/surehand")), ..StateHome::default() };
        let calls: Mutex<Box<dyn Board>> = Mutex::new(Box::new(SqliteBoard::in_memory().unwrap()));
        let config = Config { state, policy, ..Config::default() };
        let options =
            WorkspaceOptions { config, fleet: Some(Arc::new(FleetLink::kept(Box::new(calls)))), ..WorkspaceOptions::default() };
        Workspace::open_with(&self.at(name), options).unwrap()
    }

    /// Puts the changes of the other clone on the board, with this revision.
    fn report_theirs(&mut self, revision: i64) {
        let workspace = self.open("theirs", Policy::default());
        let checkout = workspace.checkout().unwrap();
        self.board.join(&checkout).unwrap();
        let agent = Agent {
            id: AgentId("codex-71c0".to_owned()),
            session: SessionId("codex-71c0".to_owned()),
            client: "codex".to_owned(),
            host: checkout.host.clone(),
            checkout: checkout.id(),
            branch: Some("b".to_owned()),
            story: None,
        };
        let (by, minute) = (Some(agent.id.clone()), Duration::from_secs(60));
        self.board.heartbeat(&[Heartbeat { agent, alive_for: minute, lease: minute }]).unwrap();
        let found = BranchChanges::find(&workspace).unwrap();
        let changes: Vec<FileChange> =
            found.files().map(|change| FileChange { revision, by: by.clone(), ..change.clone() }).collect();
        self.board.report_changes(&checkout.id(), &changes).unwrap();
    }

    fn claim(&mut self, pattern: &str) {
        let pattern = PathPattern::new(pattern).unwrap();
        let (id, by) = (ClaimId("1".to_owned()), AgentId("codex-71c0".to_owned()));
        self.board.claim_paths(&PathClaimRequest { id, by, pattern, lease: Duration::from_secs(60) }).unwrap();
    }

    /// Gives a session the present board.
    fn refresh(&mut self, session: &Session) {
        let mut board = BoardCopy::default();
        board.apply(self.board.news(None).unwrap());
        let copy = LocalCopy { read_at: Some(board.now), board, ..LocalCopy::default() };
        session.workspace().fleet().unwrap().set_copy(Arc::new(copy));
    }

    fn session(&mut self, policy: Policy) -> Session {
        let mut session = Session::continued(self.open("mine", policy), SessionId("claude-1".to_owned()));
        for path in ["src/a.txt", "b.txt"] {
            session.run(&Call::Read(ReadCall::whole(path))).result.unwrap();
        }
        self.refresh(&session);
        session
    }
}

#[expect(clippy::disallowed_methods, reason = "the test plays another program")]
fn write(path: &Path, content: &str) {
    std::fs::write(path, content).unwrap();
}

/// Twenty lines, of which one is changed.
fn text(changed: usize, to: &str) -> String {
    (1..=20).map(|number| if number == changed { format!("{to}\n") } else { format!("{number}\n") }).collect()
}

fn edit(session: &mut Session, path: &str, line: usize, to: &str) -> Outcome {
    session.edit(&Edit::replace(path, format!("\n{line}\n"), format!("\n{to}\n")))
}

fn said(outcome: &Outcome) -> String {
    render::text(outcome, &ToolNames::default())
}

#[test]
fn an_edit_that_will_conflict_is_made_and_told_once() {
    let mut clones = Clones::new();
    write(&clones.at("theirs/src/a.txt"), &text(7, "theirs"));
    clones.report_theirs(1);
    let mut session = clones.session(Policy::default());
    let other = edit(&mut session, "src/a.txt", 15, "fifteen");
    assert!(!said(&other).contains("codex"), "other lines: {}", said(&other));
    let same = edit(&mut session, "src/a.txt", 7, "seven");
    let text_of_same = said(&same);
    assert!(text_of_same.contains("codex 71c0 on branch b changed line 7 of src/a.txt"), "{text_of_same}");
    assert!(text_of_same.contains("your edit of line 7 will conflict"), "{text_of_same}");
    let again = edit(&mut session, "src/a.txt", 6, "six\nseven again");
    assert!(!said(&again).contains("codex"), "it was told: {}", said(&again));
    // Another revision of their change is news.
    write(&clones.at("theirs/src/a.txt"), &text(7, "other"));
    clones.report_theirs(2);
    clones.refresh(&session);
    assert!(said(&edit(&mut session, "src/a.txt", 8, "eight")).contains("codex 71c0"));
}

#[test]
fn the_same_change_is_no_conflict() {
    let mut clones = Clones::new();
    write(&clones.at("theirs/src/a.txt"), &text(7, "seven"));
    clones.report_theirs(1);
    let mut session = clones.session(Policy::default());
    let made = edit(&mut session, "src/a.txt", 7, "seven");
    assert!(!said(&made).contains("codex"), "{}", said(&made));
}

#[test]
fn by_policy_an_edit_that_will_conflict_is_refused() {
    let mut clones = Clones::new();
    write(&clones.at("theirs/src/a.txt"), &text(7, "theirs"));
    clones.report_theirs(1);
    let mut session = clones.session(Policy { collisions: OnOverlap::Refuse, ..Policy::default() });
    let refused = edit(&mut session, "src/a.txt", 7, "seven");
    assert_eq!(refused.refusal().map(|refusal| refusal.code()), Some(RefusalCode::Collision), "{}", said(&refused));
    assert_eq!(std::fs::read_to_string(clones.at("mine/src/a.txt")).unwrap(), text(0, ""));
    assert!(!edit(&mut session, "src/a.txt", 15, "fifteen").is_refused());
}

#[test]
fn a_claim_is_told_and_by_policy_kept() {
    let mut clones = Clones::new();
    clones.report_theirs(1);
    clones.claim("src/**");
    let mut session = clones.session(Policy::default());
    let told = said(&edit(&mut session, "src/a.txt", 7, "seven"));
    assert!(told.contains("codex 71c0 has claimed src/**"), "{told}");
    assert!(!said(&edit(&mut session, "b.txt", 7, "seven")).contains("codex"));
    let mut strict = clones.session(Policy { claims: OnOverlap::Refuse, ..Policy::default() });
    let refused = edit(&mut strict, "src/a.txt", 9, "nine");
    assert_eq!(refused.refusal().map(|refusal| refusal.code()), Some(RefusalCode::Claimed), "{}", said(&refused));
    let moved = strict.edit(&Edit::Move { from: "b.txt".to_owned(), to: "src/b.txt".to_owned() });
    assert!(moved.is_refused(), "into claimed paths");
    // The tools of another agent are judged in the same way.
    let foreign = strict.foreign_tools().judge(&Edit::replace("src/a.txt", "\n9\n", "\nnine\n"), &[]);
    assert_eq!(foreign.unwrap_err().refusal().map(|refusal| refusal.code()), Some(RefusalCode::Claimed));
    clones.board.release_paths(&ClaimId("1".to_owned())).unwrap();
    clones.refresh(&strict);
    assert!(!edit(&mut strict, "src/a.txt", 9, "nine").is_refused());
}

#[test]
fn a_hook_learns_what_stands_against_an_edit_before_and_after_it() {
    let mut clones = Clones::new();
    write(&clones.at("theirs/src/a.txt"), &text(7, "theirs"));
    clones.report_theirs(1);
    let mut session = clones.session(Policy::default());
    let replace = Edit::replace("src/a.txt", "\n7\n", "\nseven\n");
    let permit = session.foreign_tools().judge(&replace, &[]).unwrap();
    assert_eq!(permit.warnings.len(), 1);
    write(&clones.at("mine/src/a.txt"), &text(7, "seven"));
    session.foreign_tools().adopt(&permit.edit, &[]);
    let after = session.foreign_tools().check_made(&replace);
    assert_eq!(after.iter().map(|warning| &warning.key).collect::<Vec<_>>(), [&permit.warnings[0].key], "it is told once");
    assert_eq!(session.foreign_tools().check_made(&Edit::replace("b.txt", "1", "one")), []);
}
