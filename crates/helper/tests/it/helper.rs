//! The view that agents of several checkouts have of each other, through a helper that is killed, replaced and cut off.
#![expect(clippy::disallowed_methods, reason = "the tests play a person")]

use std::{
    path::{Path, PathBuf},
    process::{Child, Command},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use surehand_engine::{
    BoardConfig, Config, Edit, Session, SessionId, StateHome, Workspace,
    client_process::ClientProcess,
    fleet::{FleetOverview, LocalCopy},
    store::board::{
        AgentId, Board, BoardAnswer, BoardCall, BoardError, ClaimId, NewTask, SqliteBoard, TaskChoice, TaskClaimRequest, TaskEnd,
    },
};
use surehand_helper::{AgentReport, Helper, HelperError, RuntimeDir, ServeError, ServeOptions, WorkspacePlace, serve};
use tempfile::TempDir;

/// A machine with a user, two clones of a repository, and a worktree.
struct Machine {
    dir: TempDir,
    /// Whether the server can be reached, for boards with a URL.
    is_server_up: Arc<AtomicBool>,
}

struct RunningHelper {
    helper: Helper,
    thread: JoinHandle<Result<(), ServeError>>,
}

impl Machine {
    fn new() -> Self {
        let machine = Self { dir: tempfile::tempdir().unwrap(), is_server_up: Arc::new(AtomicBool::new(true)) };
        for words in ["init -q --bare -b main origin.git", "init -q -b main one", "-C one remote add origin ../origin.git"] {
            machine.git(words);
        }
        machine.git("-C one commit -q --allow-empty -m first");
        machine.git("-C one push -q origin main");
        machine.git("-C one worktree add -q ../beside");
        machine.git("clone -q origin.git two");
        machine
    }

    fn git(&self, words: &str) {
        let identity = ["-c", "user.name=n", "-c", "user.email=e@example.org"];
        let done = Command::new("git").current_dir(self.dir.path()).args(identity).args(words.split(' ')).output().unwrap();
        assert!(done.status.success(), "git {words}: {}", String::from_utf8_lossy(&done.stderr));
    }

    fn at(&self, name: &str) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join(name)
    }

    fn home(&self) -> StateHome {
        StateHome { user: Some(self.at("state/surehand")), ..StateHome::default() }
    }

    fn place(&self, name: &str, url: Option<&str>) -> WorkspacePlace {
        let board = BoardConfig { url: url.map(str::to_owned), ..BoardConfig::default() };
        WorkspacePlace { root: self.at(name), state: self.home(), board }
    }

    fn open(&self, name: &str) -> Arc<Workspace> {
        Workspace::open(&self.at(name), Config { state: self.home(), ..Config::default() }).unwrap()
    }

    fn runtime(&self) -> RuntimeDir {
        RuntimeDir::find(Some(&self.at("run")), None).unwrap()
    }

    /// The local copy of the board with this URL.
    fn copy(&self, url: Option<&str>) -> LocalCopy {
        let WorkspacePlace { root, state, board } = self.place("one", url);
        let workspace = Workspace::open(&root, Config { state, board, ..Config::default() }).unwrap();
        workspace.local_copy().unwrap().unwrap_or_default()
    }

    /// A helper that does not start.
    fn caller(&self, program: &str) -> Helper {
        Helper::new(self.runtime(), program, Box::new(|| Ok(())))
    }

    /// A board with a URL is in a file as well, but cannot be reached while the server is down.
    fn options(&self, program: &str, idle: Duration) -> ServeOptions {
        let (file, is_up) = (self.at("server.db"), self.is_server_up.clone());
        let connect = move |_: &str, _: &_| match is_up.load(Ordering::SeqCst) {
            true => Ok(Box::new(Outage { board: SqliteBoard::open(&file)?, is_up: is_up.clone() }) as Box<dyn Board>),
            false => Err(unreachable()),
        };
        ServeOptions { dir: self.runtime(), program: program.to_owned(), idle, connect: Arc::new(connect) }
    }

    fn start(&self) -> RunningHelper {
        let options = self.options("1.0.0", Duration::from_secs(600));
        let thread = thread::spawn(|| serve(options));
        let helper = self.caller("1.0.0");
        until("the helper listens", || matches!(helper.status(), Ok(Some(_))));
        RunningHelper { helper, thread }
    }

    fn overview(&self, name: &str) -> FleetOverview {
        let workspace = self.open(name);
        workspace.repository_id().unwrap();
        workspace.fleet_overview().unwrap().unwrap()
    }
}

impl RunningHelper {
    fn stop(self) {
        assert!(self.helper.stop().unwrap());
        self.thread.join().unwrap().unwrap();
    }
}

fn unreachable() -> BoardError {
    BoardError::Unreachable { place: "the server".to_owned(), why: "it is down".to_owned() }
}

fn report(session: &str, process: Option<&Child>) -> AgentReport {
    AgentReport {
        session: SessionId(session.to_owned()),
        client: "codex".to_owned(),
        process: process.map(|process| ClientProcess::find(process.id()).unwrap().name()),
        story: None,
        is_over: false,
    }
}

#[track_caller]
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(60), "{what}");
        thread::sleep(Duration::from_millis(10));
    }
}

fn living(board: &FleetOverview) -> Vec<&str> {
    let mut names: Vec<&str> = board.agents.iter().filter(|agent| agent.alive).map(|agent| &*agent.session.0).collect();
    names.sort_unstable();
    names
}

fn sleeper() -> Child {
    Command::new("sleep").arg("600").spawn().unwrap()
}

fn claim(id: &str, by: &str) -> BoardCall {
    let choice = TaskChoice::NextOf("s".to_owned());
    let lease = Duration::from_secs(60);
    BoardCall::ClaimTask(TaskClaimRequest { id: ClaimId(id.to_owned()), by: AgentId(by.to_owned()), choice, lease })
}

#[test]
fn agents_of_worktrees_and_clones_see_each_other_and_who_ended() {
    let machine = Machine::new();
    let running = machine.start();
    let (mut one, mut two) = (sleeper(), sleeper());
    running.helper.report(&machine.place("one", None), vec![report("a", Some(&one))]).unwrap();
    running.helper.report(&machine.place("beside", None), vec![report("b", Some(&two))]).unwrap();
    running.helper.report(&machine.place("two", None), vec![report("c", None)]).unwrap();
    for name in ["one", "beside", "two"] {
        until("all three are alive", || living(&machine.overview(name)) == ["a", "b", "c"]);
    }
    let board = machine.overview("two");
    let root_of = |name: &str| board.agents.iter().find(|agent| agent.session.0 == name).unwrap().root.clone();
    assert_eq!(
        (root_of("a"), root_of("b")),
        (machine.at("one").display().to_string(), machine.at("beside").display().to_string())
    );
    assert_eq!(board.agents.iter().filter(|agent| agent.here).count(), 1);
    assert!(board.agents.iter().any(|agent| agent.branch.as_deref() == Some("beside")));
    // One agent is killed, and one ends regularly.
    one.kill().unwrap();
    one.wait().unwrap();
    running.helper.report(&machine.place("two", None), vec![AgentReport { is_over: true, ..report("c", None) }]).unwrap();
    until("only one is alive", || living(&machine.overview("one")) == ["b"]);
    two.kill().unwrap();
    two.wait().unwrap();
    running.stop();
}

#[test]
fn what_an_agent_changed_is_a_headline_once_through_any_number_of_helpers() {
    let machine = Machine::new();
    let workspace = machine.open("one");
    let mut session = Session::continued(workspace.clone(), SessionId("a".to_owned()));
    for round in 0..3 {
        session.edit(&Edit::Write { path: format!("{round}.txt"), content: "x\n".to_owned() }).result.unwrap();
        workspace.flush();
        let running = machine.start();
        running.helper.report(&machine.place("two", None), vec![report("b", None)]).unwrap();
        running.helper.report(&machine.place("one", None), vec![report("a", None)]).unwrap();
        until("the change is known in the other clone", || machine.overview("two").headlines.len() > round);
        running.stop();
    }
    let headlines: Vec<String> = machine.overview("two").headlines.into_iter().map(|posted| posted.headline.summary).collect();
    assert_eq!(headlines, ["created 0.txt", "created 1.txt", "created 2.txt"]);
}

#[test]
fn a_helper_that_was_killed_is_replaced_and_knows_the_agents_of_the_one_before() {
    let machine = Machine::new();
    let first = machine.start();
    first.helper.report(&machine.place("one", None), vec![report("quiet", None)]).unwrap();
    until("it is known", || living(&machine.overview("one")) == ["quiet"]);
    first.stop();
    let second = machine.start();
    second.helper.report(&machine.place("beside", None), vec![report("other", None)]).unwrap();
    // The second helper opens the directory of the first agent only when it gets a report from there.
    second.helper.look(&machine.place("one", None)).unwrap();
    let status = || second.helper.status().unwrap().unwrap();
    until("both are kept alive", || status().boards.iter().map(|board| board.agents).sum::<usize>() == 2);
    second.stop();
}

#[test]
fn two_agents_never_get_one_task_and_a_late_end_is_refused() {
    let machine = Machine::new();
    let running = machine.start();
    let (one, two) = (machine.place("one", None), machine.place("two", None));
    let task = NewTask { key: "k".to_owned(), description: "do it".to_owned(), priority: 1 };
    running.helper.call(&one, &BoardCall::AddTasks { story: "s".to_owned(), tasks: vec![task] }).unwrap();
    let BoardAnswer::Tasks(first) = running.helper.call(&one, &claim("1", "a")).unwrap() else { panic!() };
    assert_eq!(running.helper.call(&two, &claim("2", "b")).unwrap(), BoardAnswer::Tasks(vec![]));
    // The agent ends without a report, and the other one takes over.
    running.helper.call(&one, &BoardCall::Leave(AgentId("a".to_owned()))).unwrap();
    let BoardAnswer::Tasks(second) = running.helper.call(&two, &claim("3", "b")).unwrap() else { panic!() };
    let fence = |tasks: &[surehand_engine::store::board::BoardTask]| tasks[0].claim.as_ref().unwrap().fence;
    assert!(fence(&second) > fence(&first));
    let late = BoardCall::EndTask { task: first[0].id, fence: fence(&first), end: TaskEnd::Complete };
    let refused = running.helper.call(&one, &late).unwrap_err();
    assert!(matches!(refused, HelperError::Board(BoardError::LostClaim { .. })), "{refused}");
    running.helper.look(&one).unwrap();
    let board = machine.overview("one");
    assert_eq!(board.stories[0].tasks[0].by.as_deref(), Some("b"));
    running.stop();
}

#[test]
fn an_outage_is_said_and_what_happened_meanwhile_is_delivered() {
    let machine = Machine::new();
    let url = Some("postgresql://server/boards");
    machine.is_server_up.store(false, Ordering::SeqCst);
    let running = machine.start();
    running.helper.report(&machine.place("one", url), vec![report("a", None)]).unwrap();
    let copy = || machine.copy(url);
    let agents = || copy().board.agents.values().map(|presence| presence.agent.id.0.clone()).collect::<Vec<_>>();
    until("the outage is said", || copy().trouble.is_some());
    let LocalCopy { read_at, place, .. } = copy();
    assert_eq!((read_at, &*place), (None, "server/boards"));
    let refused = running.helper.call(&machine.place("one", url), &claim("1", "a")).unwrap_err();
    assert!(matches!(refused, HelperError::Board(BoardError::Unreachable { .. })), "{refused}");
    machine.is_server_up.store(true, Ordering::SeqCst);
    until("it is delivered", || copy().trouble.is_none() && agents() == ["a"]);
    // The server disappears during the operation.
    machine.is_server_up.store(false, Ordering::SeqCst);
    until("the second outage is said", || copy().trouble.is_some());
    assert_eq!(agents(), ["a"], "what is known stays known");
    running.stop();
}

#[test]
fn a_helper_that_starts_during_an_outage_keeps_the_last_copy_and_its_age() {
    let machine = Machine::new();
    let url = Some("postgresql://server/boards");
    let running = machine.start();
    running.helper.report(&machine.place("one", url), vec![report("a", None)]).unwrap();
    until("the agent is known", || machine.copy(url).board.agents.len() == 1);
    running.stop();
    let last = machine.copy(url);
    machine.is_server_up.store(false, Ordering::SeqCst);
    let running = machine.start();
    assert!(running.helper.look(&machine.place("one", url)).is_err());
    let copy = machine.copy(url);
    assert_eq!((copy.read_at, &copy.board.agents), (last.read_at, &last.board.agents));
    assert!(copy.trouble.is_some());
    // A program with other settings uses another board, which has its own copy.
    let other = Some("postgresql://other/boards");
    assert!(running.helper.look(&machine.place("one", other)).is_err());
    assert_eq!((machine.copy(other).read_at, machine.copy(other).board.agents.len()), (None, 0));
    running.helper.look(&machine.place("one", None)).unwrap();
    assert!(machine.copy(None).trouble.is_none() && machine.copy(other).trouble.is_some());
    assert_eq!(machine.copy(url).read_at, last.read_at);
    running.stop();
}

#[test]
fn a_copy_without_news_is_refreshed_but_not_written_again() {
    let machine = Machine::new();
    let running = machine.start();
    let place = machine.place("one", None);
    running.helper.look(&place).unwrap();
    let workspace = machine.open("one");
    let first = machine.copy(None);
    let stamp = workspace.local_copy_stamp().unwrap();
    // The helper reads the board each second, and the second time on its own.
    for _ in 0..2 {
        let before = machine.copy(None).read_at;
        until("the board was read again", || machine.copy(None).read_at > before);
    }
    let later = machine.copy(None);
    assert_eq!((workspace.local_copy_stamp(), later.version), (Some(stamp), first.version));
    // A removed copy is written again, although there is no news.
    std::fs::remove_file(machine.at("one/.git/surehand/board.json")).unwrap();
    until("the copy is back", || machine.copy(None).read_at > later.read_at);
    let stamp = workspace.local_copy_stamp();
    running.helper.report(&place, vec![report("a", None)]).unwrap();
    until("the agent is known", || machine.copy(None).board.agents.len() == 1);
    assert_ne!(workspace.local_copy_stamp(), stamp, "a page learns of it");
    running.stop();
}

#[test]
fn a_heartbeat_alone_does_not_write_the_copy_again() {
    let machine = Machine::new();
    let url = Some("postgresql://server/boards");
    let running = machine.start();
    // With a short lease heartbeats are frequent.
    let place = machine.place("one", url);
    let place = WorkspacePlace { board: BoardConfig { lease: 2, ..place.board }, ..place };
    running.helper.report(&place, vec![report("a", None)]).unwrap();
    until("the agent is known", || machine.copy(url).board.agents.len() == 1);
    let mut board = SqliteBoard::open(&machine.at("server.db")).unwrap();
    let id = AgentId("a".to_owned());
    let mut on_board = || board.news(None).unwrap().agents.into_iter().find(|presence| presence.agent.id == id).unwrap();
    let mut last = on_board();
    until("a copy that is newer than a heartbeat is without it", || {
        let copy = machine.copy(url);
        let known = &copy.board.agents[&id];
        assert!(known.is_alive(copy.board.now), "{known:?}");
        let is_without = known.seen < last.seen && copy.read_at > Some(last.seen);
        last = on_board();
        is_without
    });
    running.stop();
}

#[test]
fn a_report_without_a_helper_is_taken_by_the_next_one() {
    let machine = Machine::new();
    for session in ["a", "b", "a"] {
        machine.caller("1.0.0").report(&machine.place("one", None), vec![report(session, None)]).unwrap();
    }
    let left = || {
        std::fs::read_dir(machine.at("run/surehand"))
            .unwrap()
            .flatten()
            .filter(|entry| entry.file_name().to_string_lossy().starts_with("report-"))
            .count()
    };
    assert_eq!(left(), 2, "one for each session");
    let running = machine.start();
    until("both are alive", || living(&machine.overview("one")) == ["a", "b"]);
    until("nothing is left", || left() == 0);
    running.stop();
}

#[test]
fn there_is_one_helper_and_it_gives_way_to_a_newer_program() {
    let machine = Machine::new();
    let running = machine.start();
    assert!(matches!(serve(machine.options("1.0.0", Duration::ZERO)), Err(ServeError::RunsAlready)));
    assert!(machine.caller("0.9.0").status().unwrap().is_some(), "an older program is served");
    assert!(machine.caller("1.1.0").status().is_err());
    running.thread.join().unwrap().unwrap();
    assert_eq!(machine.caller("1.1.0").status().unwrap(), None);
}

#[test]
fn it_ends_when_it_is_idle_or_its_socket_is_gone() {
    let machine = Machine::new();
    serve(machine.options("1.0.0", Duration::ZERO)).unwrap();
    let running = machine.start();
    std::fs::remove_dir_all(machine.at("run")).unwrap();
    running.thread.join().unwrap().unwrap();
}

#[test]
fn a_directory_that_others_may_enter_is_not_used() {
    use std::os::unix::fs::PermissionsExt;
    let machine = Machine::new();
    let open_to_all = machine.at("run/surehand");
    std::fs::create_dir_all(&open_to_all).unwrap();
    std::fs::set_permissions(&open_to_all, std::fs::Permissions::from_mode(0o755)).unwrap();
    assert!(serve(machine.options("1.0.0", Duration::ZERO)).is_err());
    assert_eq!(std::fs::read_dir(&open_to_all).unwrap().count(), 0);
    assert!(machine.caller("1.0.0").report(&machine.place("one", None), vec![report("a", None)]).is_err());
}

#[test]
fn a_repository_that_is_removed_takes_its_agents_along() {
    let machine = Machine::new();
    let running = machine.start();
    running.helper.report(&machine.place("one", None), vec![report("a", None)]).unwrap();
    running.helper.report(&machine.place("two", None), vec![report("b", None)]).unwrap();
    until("both are alive", || living(&machine.overview("one")) == ["a", "b"]);
    std::fs::remove_dir_all(machine.at("two")).unwrap();
    until("one is gone", || living(&machine.overview("one")) == ["a"]);
    running.stop();
}

#[test]
fn garbage_ends_one_connection_and_not_the_helper() {
    use std::io::{Read, Write};
    let machine = Machine::new();
    let running = machine.start();
    for garbage in
        [&b"\n"[..], b"{}\n", b"[]\n", b"null\n", b"\xff\xfe\n", b"{\"format\":1,\"program\":\"1.0.0\",\"request\":7}\n", b"{"]
    {
        let mut stream = std::os::unix::net::UnixStream::connect(socket_of(&machine.at("run"))).unwrap();
        stream.write_all(garbage).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer);
        assert!(!answer.contains("ending"), "{answer}");
    }
    assert!(running.helper.status().unwrap().is_some());
    running.stop();
}

fn socket_of(runtime: &Path) -> PathBuf {
    runtime.join("surehand/helper.sock")
}

/// A board whose server may disappear at any time.
struct Outage {
    board: SqliteBoard,
    is_up: Arc<AtomicBool>,
}

macro_rules! with_outages {
    ($(fn $name:ident(&mut self $(, $argument:ident: $type:ty)*) -> $result:ty;)*) => {
        impl surehand_engine::store::board::Board for Outage {
            $(fn $name(&mut self $(, $argument: $type)*) -> Result<$result, BoardError> {
                match self.is_up.load(Ordering::SeqCst) {
                    true => self.board.$name($($argument),*),
                    false => Err(unreachable()),
                }
            })*
        }
    };
}

use surehand_engine::store::board as b;

with_outages! {
    fn join(&mut self, checkout: &b::Checkout) -> ();
    fn heartbeat(&mut self, beats: &[b::Heartbeat]) -> Vec<b::Holdings>;
    fn leave(&mut self, agent: &AgentId) -> ();
    fn add_tasks(&mut self, story: &str, tasks: &[NewTask]) -> Vec<b::BoardTaskId>;
    fn edit_task(&mut self, edit: &b::TaskEdit) -> b::BoardTask;
    fn tasks(&mut self, story: &str) -> Vec<b::BoardTask>;
    fn claim_task(&mut self, request: &TaskClaimRequest) -> Option<b::BoardTask>;
    fn end_task(&mut self, task: b::BoardTaskId, fence: b::Fence, end: TaskEnd) -> ();
    fn claim_paths(&mut self, request: &b::PathClaimRequest) -> b::PathClaim;
    fn release_paths(&mut self, claim: &ClaimId) -> ();
    fn report_changes(&mut self, checkout: &b::CheckoutId, changes: &[b::FileChange]) -> ();
    fn post(&mut self, headlines: &[b::Headline]) -> ();
    fn news(&mut self, since: Option<&b::Cursor>) -> b::News;
    fn wait(&mut self, timeout: Duration) -> bool;
    fn prune(&mut self, bounds: &b::BoardBounds) -> bool;
}

#[test]
fn changed_lines_are_known_in_the_other_clone_which_forecasts_the_conflict() {
    let machine = Machine::new();
    let text = |changed: &str, line: usize| -> String {
        (1..=20).map(|number| if number == line { format!("{changed}\n") } else { format!("{number}\n") }).collect()
    };
    let write = |place: &str, content: &str| std::fs::write(machine.at(place).join("a.txt"), content).unwrap();
    write("one", &text("", 0));
    machine.git("-C one add a.txt");
    machine.git("-C one commit -q -m second");
    machine.git("-C one push -q origin main");
    machine.git("-C two pull -q");
    let running = machine.start();
    let places = [machine.place("one", None), machine.place("two", None)];
    // One change is by a person, the other one by an agent.
    write("one", &text("mine", 5));
    let workspace = machine.open("two");
    let mut session = Session::continued(workspace.clone(), SessionId("b".to_owned()));
    drop(session.run(&surehand_engine::Call::Read(surehand_engine::ReadCall::whole("a.txt"))));
    session.edit(&Edit::replace("a.txt", "\n15\n", "\nother\n")).result.unwrap();
    workspace.flush();
    running.helper.report(&places[1], vec![report("b", None)]).unwrap();
    running.helper.report(&places[0], vec![report("a", None)]).unwrap();
    let changes = |name: &str| {
        let board = machine.overview(name);
        let line = |change: &surehand_engine::fleet::ChangeEntry| (change.here, change.lines[0].start.get(), change.by.clone());
        board.changes.iter().map(line).collect::<Vec<_>>()
    };
    until("both changes are known", || changes("one") == [(true, 5, None), (false, 15, Some("b".to_owned()))]);
    assert_eq!(machine.overview("one").forecasts, [], "different lines do not conflict");
    session.edit(&Edit::replace("a.txt", "\n5\n", "\ntheirs\n")).result.unwrap();
    workspace.flush();
    until("the conflict is forecast", || machine.overview("one").forecasts.len() == 1);
    // The person reverts the change.
    write("one", &text("", 0));
    until("the change is gone", || machine.overview("two").changes.iter().all(|change| change.here));
    assert_eq!(machine.overview("two").forecasts, []);
    running.stop();
}
