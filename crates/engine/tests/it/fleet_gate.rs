//! The gate and the board: claims of other agents, and changes in other checkouts that an edit will conflict with.

use std::{
    path::{Path, PathBuf},
    process::Command,
    sync::{Arc, Mutex},
    time::Duration,
};

use surehand_engine::{
    Call, Config, Edit, Outcome, ReadCall, Session, SessionId, StateHome, ToolNames, Workspace, WorkspaceOptions,
    core::{OnOverlap, PathPattern, Policy, RefusalCode, RelPath},
    fleet::{BranchChanges, FleetLink, LocalCopy, LostClaim, LostThing},
    render,
    store::board::{
        Agent, AgentId, Board, BoardCopy, BoardTaskId, Checkout, ClaimId, ContentChange, Fence, FileChange, Heartbeat,
        PathClaimRequest, SqliteBoard,
    },
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
        for arguments in ["-C mine add .", "-C mine commit -q -m first", "-C mine remote add origin ../origin.git"] {
            clones.git(arguments);
        }
        clones.git("-C mine push -q origin main");
        clones.git("clone -q origin.git theirs");
        clones
    }

    fn at(&self, name: &str) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join(name)
    }

    fn git(&self, arguments: &str) {
        let identity = ["-c", "user.name=n", "-c", "user.email=e@example.org"];
        let done = Command::new("git").current_dir(self.dir.path()).args(identity).args(arguments.split(' ')).output().unwrap();
        assert!(done.status.success(), "git {arguments}: {}", String::from_utf8_lossy(&done.stderr));
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
        self.report("theirs", revision);
    }

    /// Puts the changes of another checkout on the board, with this revision.
    fn report(&mut self, name: &str, revision: i64) {
        let workspace = self.open(name, Policy::default());
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

    /// Puts another checkout on the board, with an agent, a claim and changed files.
    fn add_others(&mut self, number: u64) {
        let checkout = Checkout { host: "elsewhere".to_owned(), device: 1, inode: number, path: format!("/home/{number}") };
        self.board.join(&checkout).unwrap();
        let (id, minute) = (AgentId(format!("codex-{number:04x}")), Duration::from_secs(60));
        let agent = Agent {
            id: id.clone(),
            session: SessionId(id.0.clone()),
            client: "codex".to_owned(),
            host: checkout.host.clone(),
            checkout: checkout.id(),
            branch: None,
            story: None,
        };
        self.board.heartbeat(&[Heartbeat { agent, alive_for: minute, lease: minute }]).unwrap();
        let change = |file: u64| FileChange {
            path: RelPath::new(&format!("d{number}/{file}.txt")).unwrap(),
            fork_point: "f".repeat(40),
            base: None,
            change: ContentChange::Deleted,
            by: Some(id.clone()),
            revision: 1,
        };
        self.board.report_changes(&checkout.id(), &(0..20).map(change).collect::<Vec<_>>()).unwrap();
        let pattern = PathPattern::new(&format!("d{number}/**")).unwrap();
        let request = PathClaimRequest { id: ClaimId(format!("c{number}")), by: id.clone(), pattern, lease: minute };
        self.board.claim_paths(&request).unwrap();
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

fn rendered(outcome: &Outcome) -> String {
    render::text(outcome, &ToolNames::default())
}

#[test]
fn an_edit_that_will_conflict_is_made_with_one_warning() {
    let mut clones = Clones::new();
    write(&clones.at("theirs/src/a.txt"), &text(7, "theirs"));
    clones.report_theirs(1);
    let mut session = clones.session(Policy::default());
    let other = edit(&mut session, "src/a.txt", 15, "fifteen");
    assert!(!rendered(&other).contains("codex"), "other lines: {}", rendered(&other));
    let same = edit(&mut session, "src/a.txt", 7, "seven");
    let text_of_same = rendered(&same);
    assert!(text_of_same.contains("codex 71c0 on branch b changed line 7 of src/a.txt"), "{text_of_same}");
    assert!(text_of_same.contains("your edit of line 7 will conflict"), "{text_of_same}");
    let again = edit(&mut session, "src/a.txt", 6, "six\nseven again");
    assert!(!rendered(&again).contains("codex"), "it was reported: {}", rendered(&again));
    // Another revision of their change is reported again.
    write(&clones.at("theirs/src/a.txt"), &text(7, "other"));
    clones.report_theirs(2);
    clones.refresh(&session);
    assert!(rendered(&edit(&mut session, "src/a.txt", 8, "eight")).contains("codex 71c0"));
}

#[test]
fn the_same_change_is_no_conflict() {
    let mut clones = Clones::new();
    write(&clones.at("theirs/src/a.txt"), &text(7, "seven"));
    clones.report_theirs(1);
    let mut session = clones.session(Policy::default());
    let made = edit(&mut session, "src/a.txt", 7, "seven");
    assert!(!rendered(&made).contains("codex"), "{}", rendered(&made));
}

#[test]
fn by_policy_an_edit_that_will_conflict_is_refused() {
    let mut clones = Clones::new();
    write(&clones.at("theirs/src/a.txt"), &text(7, "theirs"));
    clones.report_theirs(1);
    let mut session = clones.session(Policy { collisions: OnOverlap::Refuse, ..Policy::default() });
    let refused = edit(&mut session, "src/a.txt", 7, "seven");
    assert_eq!(refused.refusal().map(|refusal| refusal.code()), Some(RefusalCode::Collision), "{}", rendered(&refused));
    assert_eq!(std::fs::read_to_string(clones.at("mine/src/a.txt")).unwrap(), text(0, ""));
    assert!(!edit(&mut session, "src/a.txt", 15, "fifteen").is_refused());
}

#[test]
fn a_claim_is_reported_and_by_policy_enforced() {
    let mut clones = Clones::new();
    clones.report_theirs(1);
    clones.claim("src/**");
    let mut session = clones.session(Policy::default());
    let text = rendered(&edit(&mut session, "src/a.txt", 7, "seven"));
    assert!(text.contains("codex 71c0 has claimed src/**"), "{text}");
    assert!(!rendered(&edit(&mut session, "b.txt", 7, "seven")).contains("codex"));
    let mut strict = clones.session(Policy { claims: OnOverlap::Refuse, ..Policy::default() });
    let refused = edit(&mut strict, "src/a.txt", 9, "nine");
    assert_eq!(refused.refusal().map(|refusal| refusal.code()), Some(RefusalCode::Claimed), "{}", rendered(&refused));
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
fn a_hook_gets_the_conflicts_of_an_edit_before_and_after_it() {
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
    assert_eq!(after.iter().map(|warning| &warning.key).collect::<Vec<_>>(), [&permit.warnings[0].key], "the key is the same");
    assert_eq!(session.foreign_tools().check_made(&Edit::replace("b.txt", "1", "one")), []);
}

#[test]
fn branches_made_from_each_other_are_not_forecast_against_shared_commits() {
    let mut clones = Clones::new();
    clones.git("-C mine worktree add -q -b base ../base");
    write(&clones.at("base/src/a.txt"), &text(7, "of base"));
    clones.git("-C base commit -q -a -m base");
    clones.git("-C mine switch -q -c stacked base");
    clones.report("base", 1);
    let mut session = clones.session(Policy::default());
    let onward = session.edit(&Edit::replace("src/a.txt", "of base\n", "onward\n"));
    assert!(!onward.is_refused() && !rendered(&onward).contains("codex"), "{}", rendered(&onward));
    // Further changes of the other branch count.
    write(&clones.at("base/src/a.txt"), &text(9, "nine of base").replace("\n7\n", "\nof base\n"));
    clones.report("base", 2);
    clones.refresh(&session);
    let same = edit(&mut session, "src/a.txt", 9, "nine");
    assert!(rendered(&same).contains("your edit of line 9 will conflict"), "{}", rendered(&same));
}

#[test]
fn a_session_learns_once_that_it_has_lost_a_claim() {
    let mut clones = Clones::new();
    clones.report_theirs(1);
    let mut session = clones.session(Policy::default());
    let lose = |session: &Session, what: LostThing, by: Option<&str>| {
        let (agent, fence) = (AgentId("claude-1".to_owned()), Fence { timeline: 1, counter: 5 });
        let taken_by = by.map(|by| AgentId(by.to_owned()));
        let lost = vec![LostClaim { agent, what, fence, taken_by }];
        session.workspace().fleet().unwrap().set_copy(Arc::new(LocalCopy { lost, ..LocalCopy::default() }));
    };
    lose(&session, LostThing::Task(BoardTaskId(3)), Some("codex-71c0"));
    let first = rendered(&edit(&mut session, "b.txt", 3, "three"));
    assert!(first.contains("note: shared task 3 is no longer yours, codex 71c0 has taken it over"), "{first}");
    assert!(!rendered(&edit(&mut session, "b.txt", 5, "five")).contains("shared task"));
    lose(&session, LostThing::Paths(PathPattern::new("src/**").unwrap()), None);
    let paths = rendered(&edit(&mut session, "b.txt", 7, "seven"));
    assert!(paths.contains("your claim on src/** has ended; claim it again"), "{paths}");
}

/// Compares the entries that a hook reads of a board with this many other checkouts, each with a claim and 20 changed
/// files, with those of the complete copy. The number of bytes read is constant.
#[test]
fn a_hook_reads_no_more_of_a_large_board_than_of_a_small_one() {
    let mut clones = Clones::new();
    write(&clones.at("theirs/src/a.txt"), &text(7, "theirs"));
    clones.report_theirs(1);
    clones.claim("src/**");
    let read_of = |clones: &mut Clones, others: u64| {
        for other in 0..others {
            clones.add_others(other);
        }
        let mut board = BoardCopy::default();
        board.apply(clones.board.news(None).unwrap());
        let complete = LocalCopy { read_at: Some(board.now), board, ..LocalCopy::default() };
        let workspace = clones.open("mine", Policy::default());
        workspace.write_local_copy(&complete).unwrap();
        let path = RelPath::new("src/a.txt").unwrap();
        let before = bytes_read();
        let part = workspace.board_about(std::slice::from_ref(&path)).unwrap().unwrap();
        let read = bytes_read() - before;
        let here = workspace.checkout().unwrap().id();
        let changes =
            |copy: &LocalCopy| copy.board.changes_elsewhere(&path, &here).map(|(_, change)| change.clone()).collect::<Vec<_>>();
        assert_eq!(changes(&part), changes(&complete));
        assert_eq!(changes(&part).len(), 1);
        let (me, now) = (AgentId("claude-1".to_owned()), complete.board.now);
        let claim = complete.board.claim_of_another(&path, &me, now).unwrap();
        assert_eq!(part.board.claim_of_another(&path, &me, now), Some(claim));
        assert_eq!(part.name_of(&claim.by), complete.name_of(&claim.by));
        assert_eq!(part.board.agents.len(), 1, "the agents of other files are not read");
        read
    };
    let small = read_of(&mut clones, 0);
    let large = read_of(&mut clones, 200);
    // A slot may be shared with another record.
    assert!(large < small + 8192, "{small} bytes of a small board, {large} of a large one");
}

/// The bytes that this thread has read with system calls.
fn bytes_read() -> u64 {
    let counters = std::fs::read_to_string("/proc/thread-self/io").unwrap();
    counters.lines().find_map(|line| line.strip_prefix("rchar: ")).unwrap().parse().unwrap()
}

#[test]
fn a_hook_finds_the_claims_that_its_session_has_lost() {
    let clones = Clones::new();
    let state = StateHome { user: Some(clones.at("state/surehand")), ..StateHome::default() };
    let calls: Mutex<Box<dyn Board>> = Mutex::new(Box::new(SqliteBoard::in_memory().unwrap()));
    let fleet = Some(Arc::new(FleetLink::on_demand(Box::new(calls))));
    let config = Config { state, ..Config::default() };
    let workspace =
        Workspace::open_with(&clones.at("mine"), WorkspaceOptions { config, fleet, ..WorkspaceOptions::default() }).unwrap();
    let lost = |agent: &str, task: i64| LostClaim {
        agent: AgentId(agent.to_owned()),
        what: LostThing::Task(BoardTaskId(task)),
        fence: Fence { timeline: 1, counter: task },
        taken_by: None,
    };
    let copy = LocalCopy { lost: vec![lost("claude-1", 3), lost("claude-2", 4)], ..LocalCopy::default() };
    workspace.write_local_copy(&copy).unwrap();
    let mut session = Session::continued(workspace, SessionId("claude-1".to_owned()));
    let notices: Vec<String> =
        session.foreign_tools().lost_claims().iter().map(|lost| render::notice::notice(&lost.notice)).collect();
    assert_eq!(notices, ["shared task 3 is no longer yours, it was taken back or closed; stop working on it"]);
}

#[test]
fn a_clone_with_other_history_conflicts_with_no_edit() {
    let mut clones = Clones::new();
    clones.git("init -q -b main stranger");
    std::fs::create_dir(clones.at("stranger/src")).unwrap();
    write(&clones.at("stranger/src/a.txt"), &text(0, ""));
    clones.git("-C stranger add .");
    clones.git("-C stranger commit -q -m other");
    write(&clones.at("stranger/src/a.txt"), &text(7, "of a stranger"));
    clones.report("stranger", 1);
    let mut session = clones.session(Policy { collisions: OnOverlap::Refuse, ..Policy::default() });
    let made = edit(&mut session, "src/a.txt", 7, "seven");
    assert!(!made.is_refused() && !rendered(&made).contains("codex"), "{}", rendered(&made));
}
