//! Connects a workspace to the other checkouts of its repository: finds the user's helper, starts it, and for programs
//! that run longer than one call, keeps a copy of the board in memory.

use std::{
    env, io,
    path::Path,
    process::{Command, Stdio},
    sync::{Arc, Weak},
    thread,
    time::{Duration, Instant},
};

use surehand_board_postgres::{Patience, PostgresBoard};
use surehand_engine::{
    BoardConfig, SessionId, StateHome, Workspace,
    client_process::ClientProcess,
    fleet::{BoardCalls, CopyStamp, FleetLink},
    session_names::SessionNames,
    store::board::{Board, BoardAnswer, BoardCall, BoardError, RepositoryId},
};
use surehand_helper::{AgentReport, Helper, RemoteBoard, RuntimeDir, StartHelper, WorkspacePlace};
use surehand_ui::BoardAccess;

use crate::user_dirs;

pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

pub(crate) fn helper() -> anyhow::Result<Helper> {
    Ok(Helper::new(runtime_dir()?, VERSION, starter()))
}

pub(crate) fn runtime_dir() -> anyhow::Result<RuntimeDir> {
    let home = user_dirs::state_home()?;
    let runtime = user_dirs::variable("XDG_RUNTIME_DIR");
    let state = home.fixed.or(home.user);
    RuntimeDir::find(runtime.as_deref(), state.as_deref())
        .ok_or_else(|| anyhow::anyhow!("there is no directory for the helper: set XDG_RUNTIME_DIR or HOME"))
}

/// Starts the helper in the background: this program starts a process that starts the helper and ends, so that the
/// helper is no child of the caller.
fn starter() -> StartHelper {
    Box::new(|| {
        let mut launcher = background_command()?;
        let mut child = launcher.args(["helper", "--detach"]).spawn()?;
        // A long-lived caller must wait for the process, or it stays in the process table.
        thread::Builder::new().spawn(move || child.wait()).map(drop)
    })
}

/// The environment variables of the helper. They exclude everything that only an agent needs, such as the key of a
/// model.
const PASSED_ON: [&str; 11] = [
    "HOME",
    "LANG",
    "PATH",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "SUREHAND_STATE_DIR",
    "TZ",
    "USER",
    "XDG_CONFIG_HOME",
    "XDG_RUNTIME_DIR",
    "XDG_STATE_HOME",
];

/// A command that runs this program without a terminal, and not in the caller's directory.
pub(crate) fn background_command() -> io::Result<Command> {
    let mut command = Command::new(env::current_exe()?);
    command.env_clear().envs(PASSED_ON.iter().filter_map(|name| Some((name, env::var_os(name)?)))).current_dir("/");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    Ok(command)
}

/// Opens the board of a repository on a server.
pub(crate) fn connect(url: &str, repository: &RepositoryId) -> Result<Box<dyn Board>, BoardError> {
    Ok(Box::new(PostgresBoard::new(url, repository, Patience::default())?))
}

pub(crate) fn place(root: &Path, state: &StateHome, board: &BoardConfig) -> WorkspacePlace {
    WorkspacePlace { root: root.to_owned(), state: state.clone(), board: board.clone() }
}

pub(crate) fn place_of(workspace: &Workspace) -> WorkspacePlace {
    place(workspace.path(), &workspace.config().state, &workspace.config().board)
}

/// The connection of a process that runs longer than one call; `None` if the user has switched the board off.
pub(crate) fn link(root: &Path, state: &StateHome, board: &BoardConfig) -> Option<Arc<FleetLink>> {
    remote_board(root, state, board).map(|calls| Arc::new(FleetLink::kept(calls)))
}

/// The connection of a process that answers one call.
pub(crate) fn link_for_one_call(root: &Path, state: &StateHome, board: &BoardConfig) -> Option<Arc<FleetLink>> {
    remote_board(root, state, board).map(|calls| Arc::new(FleetLink::on_demand(calls)))
}

/// The board for the page; `None` if the user has switched the board off.
pub(crate) fn board_of_page(workspace: &Workspace) -> Option<Box<dyn BoardAccess>> {
    let config = workspace.config();
    let calls = remote_board(workspace.path(), &config.state, &config.board)?;
    Some(Box::new(BoardOfPage(calls)))
}

struct BoardOfPage(Box<RemoteBoard>);

impl BoardCalls for BoardOfPage {
    fn call(&self, call: &BoardCall) -> Result<BoardAnswer, BoardError> {
        self.0.call(call)
    }
}

impl BoardAccess for BoardOfPage {
    fn refresh(&self) -> Result<(), String> {
        self.0.helper.look(&self.0.place).map_err(|error| error.to_string())
    }
}

fn remote_board(root: &Path, state: &StateHome, board: &BoardConfig) -> Option<Box<RemoteBoard>> {
    let helper = board.enabled.then(helper)?.ok()?;
    Some(Box::new(RemoteBoard { helper: Arc::new(helper), place: place(root, state, board) }))
}

/// The interval at which the copy in memory is compared with the file, and new sessions are reported.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// The interval at which all sessions are reported, so that a killed helper is replaced.
const REPORT_EVERY: Duration = Duration::from_secs(5);

/// Keeps the copy of the board in memory current and reports the sessions of this process, on its own thread, as long
/// as the workspace is open.
pub(crate) fn follow(workspace: &Arc<Workspace>) {
    let Some(link) = workspace.fleet().cloned() else { return };
    let Ok(helper) = helper() else { return };
    let (place, workspace) = (place_of(workspace), Arc::downgrade(workspace));
    let process = ClientProcess::find(std::process::id()).map(|process| process.name());
    let follower = Follower { link, helper, place, process, workspace };
    // Without the thread, this process works without the board.
    let _ = thread::Builder::new().name("surehand-fleet".to_owned()).spawn(move || follower.run());
}

/// The state of the copy's files when they were last read.
#[derive(Default)]
struct SeenCopy {
    content: Option<CopyStamp>,
    age: Option<CopyStamp>,
}

struct Follower {
    link: Arc<FleetLink>,
    helper: Helper,
    place: WorkspacePlace,
    process: Option<String>,
    workspace: Weak<Workspace>,
}

impl Follower {
    fn run(self) {
        let (mut seen, mut reported, mut reported_at) = (SeenCopy::default(), Vec::new(), None::<Instant>);
        loop {
            let Some(workspace) = self.workspace.upgrade() else { return };
            self.take_newer_copy(&workspace, &mut seen);
            drop(workspace);
            let sessions = self.link.sessions();
            let is_due = reported_at.is_none_or(|at| at.elapsed() >= REPORT_EVERY);
            if !sessions.is_empty() && (is_due || sessions != reported) {
                let reports = sessions.iter().map(|(session, story)| self.report(session, story.clone())).collect();
                if self.helper.report(&self.place, reports).is_ok() {
                    (reported, reported_at) = (sessions, Some(Instant::now()));
                }
            }
            thread::sleep(LOOK_EVERY);
        }
    }

    /// Takes over a newer copy. If only its age is newer, the rest is not read again.
    fn take_newer_copy(&self, workspace: &Workspace, seen: &mut SeenCopy) {
        let now = SeenCopy { content: workspace.local_copy_stamp(), age: workspace.copy_age_stamp() };
        let is_same = now.content == seen.content;
        if is_same && now.age == seen.age {
            return;
        }
        let age = workspace.copy_age().ok().flatten();
        if is_same && age.is_none_or(|age| self.link.refresh_copy(age)) {
            *seen = now;
        } else if let Ok(Some(copy)) = workspace.local_copy() {
            // An edit must not have to compute this.
            workspace.fleet_checkout();
            self.link.set_copy(Arc::new(copy));
            *seen = now;
        }
    }

    fn report(&self, session: &SessionId, story: Option<String>) -> AgentReport {
        AgentReport {
            session: session.clone(),
            client: SessionNames::client(session).unwrap_or("mcp").to_owned(),
            process: self.process.clone(),
            story,
            is_over: false,
        }
    }
}

/// Reports the agent behind a hook. The hook has already answered, and only waits until the system has taken the
/// message.
pub(crate) fn report_hook(session: SessionId, client: &str, place: &WorkspacePlace) {
    if !place.board.enabled {
        return;
    }
    let process = ClientProcess::client().map(|client| client.name());
    let report = AgentReport { session, client: client.to_owned(), process, story: None, is_over: false };
    // If this fails, the next hook reports the same.
    let _ = helper().map(|helper| helper.report(place, vec![report]));
}

/// An id for a claim or a request, so that a repeated one is recognised.
pub(crate) fn random_id() -> anyhow::Result<String> {
    let mut random = [0_u8; 16];
    rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty())?;
    Ok(random.iter().map(|byte| format!("{byte:02x}")).collect())
}
