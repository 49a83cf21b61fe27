//! The process of the helper: accepts callers, and starts a thread for each board.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{self, BufReader},
    os::unix::net::{UnixListener, UnixStream},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
        mpsc::{Sender, channel, sync_channel},
    },
    thread,
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::{self as sys, Mode, OFlags},
};
use surehand_engine::{
    BoardConfig, Config, StateHome, Workspace, WorkspaceOptions,
    store::board::{Board, BoardError, RepositoryId},
};

use crate::{
    board_worker::{BoardWorker, WorkerCommand},
    protocol::{AgentReport, FORMAT, HelperStatus, Message, Reply, Request, WorkspacePlace},
    runtime_dir::RuntimeDir,
    socket::{check_peer, listen, receive, send, socket_inode},
    spool,
};

/// Opens the board of a repository on the server with this URL.
pub type ConnectServer = dyn Fn(&str, &RepositoryId) -> Result<Box<dyn Board>, BoardError> + Send + Sync;

/// The settings of the helper process.
pub struct ServeOptions {
    /// The directory of its socket.
    pub dir: RuntimeDir,
    /// The version of its program.
    pub program: String,
    /// It ends after this time without agents and callers.
    pub idle: Duration,
    /// Opens a board on a server.
    pub connect: Arc<ConnectServer>,
}

/// Why the helper cannot run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// Another helper of this user is running.
    #[error("the helper runs already")]
    RunsAlready,
    /// The socket cannot be created or used.
    #[error("the socket of the helper cannot be used: {0}")]
    Io(#[from] io::Error),
}

/// The lock that one helper of a user holds.
const LOCK: &str = "helper.lock";

const CHECK_EVERY: Duration = Duration::from_millis(500);

/// The most callers that are served at once; further callers wait.
const MOST_CALLERS: usize = 256;

/// A caller that is silent for this long is disconnected.
const LONGEST_SILENCE: Duration = Duration::from_secs(60);

/// Runs the helper until it has been idle for long enough, a newer program wants to replace it, or its socket is gone.
pub fn serve(options: ServeOptions) -> Result<(), ServeError> {
    let dir = options.dir.make()?;
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let lock = File::from(sys::openat(&dir, LOCK, flags, Mode::from_raw_mode(0o600)).map_err(io::Error::from)?);
    if lock.try_lock().is_err() {
        return Err(ServeError::RunsAlready);
    }
    let listener = listen(&options.dir, &dir)?;
    let server = Arc::new(Server::new(options));
    server.accept(&listener, &dir)?;
    Ok(())
}

struct Server {
    options: ServeOptions,
    workspaces: Mutex<BTreeMap<WorkspacePlace, KnownWorkspace>>,
    workers: Mutex<BTreeMap<WorkerKey, Worker>>,
    callers: AtomicUsize,
    last_caller: Mutex<Instant>,
    is_ending: AtomicBool,
}

/// A board, and how to reach it.
type WorkerKey = (RepositoryId, BoardConfig, StateHome);

struct KnownWorkspace {
    workspace: Arc<Workspace>,
    repository: RepositoryId,
}

#[derive(Clone)]
struct Worker {
    commands: Sender<WorkerCommand>,
    agents: Arc<AtomicUsize>,
}

impl Server {
    fn new(options: ServeOptions) -> Self {
        Self {
            options,
            workspaces: Mutex::default(),
            workers: Mutex::default(),
            callers: AtomicUsize::new(0),
            last_caller: Mutex::new(Instant::now()),
            is_ending: AtomicBool::new(false),
        }
    }

    fn accept(self: &Arc<Self>, listener: &UnixListener, dir: &File) -> io::Result<()> {
        let own_socket = socket_inode(dir);
        let pause = Timespec { tv_sec: 0, tv_nsec: CHECK_EVERY.subsec_nanos().into() };
        loop {
            let is_ready = poll(&mut [PollFd::new(listener, PollFlags::IN)], Some(&pause));
            if self.is_ending.load(Ordering::Acquire) || socket_inode(dir) != own_socket || self.is_idle() {
                return Ok(());
            }
            self.take_spooled(dir);
            match is_ready {
                Ok(0) | Err(rustix::io::Errno::INTR) => continue,
                Ok(_) => {}
                Err(errno) => return Err(errno.into()),
            }
            if self.callers.load(Ordering::Acquire) >= MOST_CALLERS {
                thread::sleep(Duration::from_millis(1));
                continue;
            }
            // The caller may have disconnected already.
            let Ok((stream, _)) = listener.accept() else { continue };
            self.callers.fetch_add(1, Ordering::AcqRel);
            let server = self.clone();
            thread::Builder::new().name("surehand-caller".to_owned()).spawn(move || {
                let _ = server.attend(&stream);
                *lock(&server.last_caller) = Instant::now();
                server.callers.fetch_sub(1, Ordering::AcqRel);
            })?;
        }
    }

    /// Takes the reports that were left while no helper listened.
    fn take_spooled(&self, dir: &File) {
        // A report that cannot be read stays for the next check.
        let _ = spool::take(dir, |message| {
            if let Ok(request @ Request::Report { .. }) = self.understand(message) {
                drop(self.carry_out(request));
            }
        });
    }

    fn is_idle(&self) -> bool {
        let has_agents = || lock(&self.workers).values().any(|worker| worker.agents.load(Ordering::Relaxed) > 0);
        if self.callers.load(Ordering::Acquire) > 0 || has_agents() {
            *lock(&self.last_caller) = Instant::now();
        }
        lock(&self.last_caller).elapsed() >= self.options.idle
    }

    /// Serves one caller until it hangs up.
    fn attend(&self, stream: &UnixStream) -> io::Result<()> {
        check_peer(stream)?;
        stream.set_read_timeout(Some(LONGEST_SILENCE))?;
        stream.set_write_timeout(Some(LONGEST_SILENCE))?;
        let mut reader = BufReader::new(stream);
        while let Some(message) = receive::<serde_json::Value>(&mut reader)? {
            let reply = match self.understand(message) {
                Ok(request) => self.carry_out(request),
                Err(reply) => Some(reply),
            };
            let is_ending = matches!(reply, Some(Reply::Ending));
            if let Some(reply) = reply {
                send(stream, &reply)?;
            }
            if is_ending {
                self.is_ending.store(true, Ordering::Release);
                return Ok(());
            }
        }
        Ok(())
    }

    fn understand(&self, message: serde_json::Value) -> Result<Request, Reply> {
        let format = message["format"].as_u64().unwrap_or_default();
        let program = message["program"].as_str().unwrap_or_default();
        if format > u64::from(FORMAT) || is_newer(program, &self.options.program) {
            return Err(Reply::Ending);
        }
        if format < u64::from(FORMAT) {
            return Err(Reply::Rejected { why: "the helper belongs to a newer version of surehand".to_owned() });
        }
        let message = serde_json::from_value::<Message>(message);
        message.map(|message| message.request).map_err(|error| Reply::Rejected { why: error.to_string() })
    }

    fn carry_out(&self, request: Request) -> Option<Reply> {
        match request {
            Request::Report { place, agents } => {
                // The caller has left, so an error has no recipient.
                let _ = self.report(&place, agents);
                None
            }
            Request::Call { place, call } => {
                Some(self.ask(&place, |_, reply| WorkerCommand::Call { call, reply }, Reply::Answer))
            }
            Request::Look { place } => {
                Some(self.ask(&place, |workspace, reply| WorkerCommand::Look { workspace, reply }, |()| Reply::Current))
            }
            Request::Status => Some(Reply::Status(self.status())),
            Request::Stop => Some(Reply::Ending),
        }
    }

    fn report(&self, place: &WorkspacePlace, agents: Vec<AgentReport>) -> Result<(), String> {
        let (workspace, worker) = self.worker_for(place)?;
        worker.commands.send(WorkerCommand::Report { workspace, agents }).map_err(|error| error.to_string())
    }

    fn ask<T>(
        &self,
        place: &WorkspacePlace,
        command: impl FnOnce(Arc<Workspace>, std::sync::mpsc::SyncSender<Result<T, BoardError>>) -> WorkerCommand,
        answer: impl FnOnce(T) -> Reply,
    ) -> Reply {
        let (sender, receiver) = sync_channel(1);
        let asked = self
            .worker_for(place)
            .and_then(|(workspace, worker)| worker.commands.send(command(workspace, sender)).map_err(|error| error.to_string()));
        if let Err(why) = asked {
            return Reply::Rejected { why };
        }
        match receiver.recv() {
            Ok(Ok(done)) => answer(done),
            Ok(Err(failure)) => Reply::Failed(failure.for_another_process()),
            Err(_) => Reply::Rejected { why: "the thread of the board has ended".to_owned() },
        }
    }

    /// The thread that serves the board of a workspace.
    fn worker_for(&self, place: &WorkspacePlace) -> Result<(Arc<Workspace>, Worker), String> {
        let workspace = self.workspace(place)?;
        // It may have joined another repository meanwhile.
        let repository = workspace.repository_id().map_err(|error| error.to_string())?.id;
        let known = lock(&self.workspaces)
            .insert(place.clone(), KnownWorkspace { workspace: workspace.clone(), repository: repository.clone() });
        let key = |repository: RepositoryId| (repository, place.board.clone(), place.state.clone());
        let mut workers = lock(&self.workers);
        if let Some(before) = known.filter(|known| known.repository != repository)
            && let Some(worker) = workers.get(&key(before.repository))
        {
            let _ = worker.commands.send(WorkerCommand::Forget(place.root.clone()));
        }
        if let Some(worker) = workers.get(&key(repository.clone())) {
            return Ok((workspace, worker.clone()));
        }
        let (commands, received) = channel();
        let agents = Arc::new(AtomicUsize::new(0));
        let (config, state, connect) = (place.board.clone(), place.state.clone(), self.options.connect.clone());
        let board = BoardWorker::new(repository.clone(), config, state, connect, agents.clone());
        let spawned = thread::Builder::new().name("surehand-board".to_owned()).spawn(move || board.run(&received));
        spawned.map_err(|error| error.to_string())?;
        let worker = Worker { commands, agents };
        workers.insert(key(repository), worker.clone());
        Ok((workspace, worker))
    }

    fn workspace(&self, place: &WorkspacePlace) -> Result<Arc<Workspace>, String> {
        if let Some(known) = lock(&self.workspaces).get(place)
            && known.workspace.is_there()
        {
            return Ok(known.workspace.clone());
        }
        let config = Config { state: place.state.clone(), board: place.board.clone(), ..Config::default() };
        let options = WorkspaceOptions { config, is_for_one_call: true, ..WorkspaceOptions::default() };
        Workspace::open_with(&place.root, options).map_err(|error| error.to_string())
    }

    fn status(&self) -> HelperStatus {
        let workers: Vec<Worker> = lock(&self.workers).values().cloned().collect();
        let status = |worker: Worker| {
            let (sender, receiver) = sync_channel(1);
            worker.commands.send(WorkerCommand::Status(sender)).ok()?;
            receiver.recv_timeout(Duration::from_secs(1)).ok()
        };
        let boards = workers.into_iter().filter_map(status).collect();
        HelperStatus { process: std::process::id(), program: self.options.program.clone(), boards }
    }
}

/// Whether one version is newer than another.
fn is_newer(one: &str, other: &str) -> bool {
    let numbers = |version: &str| -> Vec<u64> { version.split(['.', '-', '+']).map_while(|part| part.parse().ok()).collect() };
    numbers(one) > numbers(other)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
