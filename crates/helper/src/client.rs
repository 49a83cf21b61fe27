//! The caller's side of the helper: starts it when needed, and sends it reports and requests.

use std::{
    fs::File,
    io::{self, BufReader},
    os::unix::net::UnixStream,
    thread,
    time::{Duration, Instant, SystemTime},
};

use rustix::fs::{self as sys, Mode, OFlags};
use surehand_engine::store::board::{BoardAnswer, BoardCall, BoardError};

use crate::{
    protocol::{AgentReport, FORMAT, HelperStatus, Message, Reply, Request, WorkspacePlace},
    runtime_dir::RuntimeDir,
    socket::{self, connect},
    spool,
};

/// Starts the process of the helper in the background.
pub type StartHelper = Box<dyn Fn() -> io::Result<()> + Send + Sync>;

/// The helper of this user, as its callers see it.
pub struct Helper {
    dir: RuntimeDir,
    program: String,
    start: StartHelper,
}

/// Why the helper gave no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HelperError {
    /// The helper does not run and cannot be started, or the connection failed.
    #[error("the helper cannot be reached: {0}")]
    Io(#[from] io::Error),
    /// The helper does not understand this program.
    #[error("the helper rejected the request: {0}")]
    Rejected(String),
    /// The board refused or failed.
    #[error(transparent)]
    Board(#[from] BoardError),
}

/// The time limit for an answer. It exceeds that for connecting to a slow server.
const LONGEST_ANSWER: Duration = Duration::from_secs(30);

/// The time limit for a helper to start listening.
const LONGEST_START: Duration = Duration::from_secs(5);

/// A helper that was just started is not started again.
const JUST_STARTED: Duration = Duration::from_secs(2);

/// The file whose time records the last start of the helper.
const STARTED: &str = "helper.started";

impl Helper {
    /// The helper that listens in this directory. `program` is the version of this program.
    pub fn new(dir: RuntimeDir, program: &str, start: StartHelper) -> Self {
        Self { dir, program: program.to_owned(), start }
    }

    /// Reports that agents are at work. Waits 2 ms at most. If no helper listens, the report is left for the next one,
    /// which is started.
    pub fn report(&self, place: &WorkspacePlace, agents: Vec<AgentReport>) -> io::Result<()> {
        let message = self.message(Request::Report { place: place.clone(), agents });
        if let Ok(stream) = connect(&self.dir)
            && socket::send(&stream, &message).is_ok()
        {
            return Ok(());
        }
        spool::leave(&self.dir.make()?, &message)?;
        self.start_unless_started()
    }

    /// Carries out an operation of the board.
    pub fn call(&self, place: &WorkspacePlace, call: &BoardCall) -> Result<BoardAnswer, HelperError> {
        match self.ask(Request::Call { place: place.clone(), call: call.clone() })? {
            Reply::Answer(answer) => Ok(answer),
            other => Err(unexpected(other)),
        }
    }

    /// Makes the local copy of a workspace current.
    pub fn look(&self, place: &WorkspacePlace) -> Result<(), HelperError> {
        match self.ask(Request::Look { place: place.clone() })? {
            Reply::Current => Ok(()),
            other => Err(unexpected(other)),
        }
    }

    /// The status of the helper; `None` if it does not run.
    pub fn status(&self) -> Result<Option<HelperStatus>, HelperError> {
        let Ok(stream) = connect(&self.dir) else { return Ok(None) };
        match self.ask_over(&stream, &Request::Status) {
            Ok(Some(Reply::Status(status))) => Ok(Some(status)),
            Ok(Some(other)) => Err(unexpected(other)),
            Ok(None) => Ok(None),
            // It ended during the request.
            Err(HelperError::Io(error)) if is_hang_up(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Ends the helper. Returns whether there was one.
    pub fn stop(&self) -> Result<bool, HelperError> {
        let Ok(stream) = connect(&self.dir) else { return Ok(false) };
        match self.ask_over(&stream, &Request::Stop) {
            Err(HelperError::Io(error)) if is_hang_up(&error) => Ok(false),
            stopped => Ok(stopped?.is_some()),
        }
    }

    /// Sends a request, and repeats it if the helper ends before it has answered: every request may be repeated.
    fn ask(&self, request: Request) -> Result<Reply, HelperError> {
        const ATTEMPTS: usize = 3;
        for _ in 0..ATTEMPTS {
            match self.ask_over(&self.connect_or_start()?, &request) {
                Ok(Some(Reply::Ending) | None) => {}
                Ok(Some(reply)) => return Ok(reply),
                // The helper was killed.
                Err(HelperError::Io(error)) if is_hang_up(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Err(HelperError::Rejected("it ended repeatedly without an answer".to_owned()))
    }

    fn ask_over(&self, stream: &UnixStream, request: &Request) -> Result<Option<Reply>, HelperError> {
        stream.set_write_timeout(Some(LONGEST_ANSWER))?;
        stream.set_read_timeout(Some(LONGEST_ANSWER))?;
        socket::send(stream, &self.message(request.clone()))?;
        Ok(socket::receive(&mut BufReader::new(stream))?)
    }

    fn message(&self, request: Request) -> Message {
        Message { format: FORMAT, program: self.program.clone(), request }
    }

    fn connect_or_start(&self) -> io::Result<UnixStream> {
        let until = Instant::now() + LONGEST_START;
        loop {
            let error = match connect(&self.dir) {
                Ok(stream) => return Ok(stream),
                Err(error) if Instant::now() > until => return Err(error),
                Err(error) => error,
            };
            if error.kind() == io::ErrorKind::PermissionDenied {
                return Err(error);
            }
            self.start_unless_started()?;
            thread::sleep(Duration::from_millis(5));
        }
    }

    fn start_unless_started(&self) -> io::Result<()> {
        let dir = self.dir.make()?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let open = |flags| sys::openat(&dir, STARTED, flags, Mode::from_raw_mode(0o600)).map(File::from);
        match open(flags | OFlags::EXCL) {
            Ok(_) => return (self.start)(),
            Err(rustix::io::Errno::EXIST) => {}
            Err(errno) => return Err(errno.into()),
        }
        let marker = open(flags)?;
        let age = SystemTime::now().duration_since(marker.metadata()?.modified()?);
        // A time in the future means that the clock was set back.
        if age.is_ok_and(|age| age < JUST_STARTED) || marker.try_lock().is_err() {
            return Ok(());
        }
        marker.set_modified(SystemTime::now())?;
        (self.start)()
    }
}

fn unexpected(reply: Reply) -> HelperError {
    match reply {
        Reply::Failed(failure) => HelperError::Board(failure),
        Reply::Rejected { why } => HelperError::Rejected(why),
        other => HelperError::Rejected(format!("unexpected reply: {other:?}")),
    }
}

fn is_hang_up(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset | io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidData
    )
}
