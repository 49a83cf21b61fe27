//! A command as processes: started in a group of their own, listened to, and ended with all they have started. What the output
//! looks like is left to [`super::output`].

use std::{
    fs,
    io::{self, PipeReader, Read},
    os::unix::process::{CommandExt, ExitStatusExt},
    path::Path,
    process::{Child, Command, ExitStatus, Stdio},
    sync::mpsc::{Receiver, RecvTimeoutError, sync_channel},
    thread,
    time::{Duration, Instant},
};

use rustix::{
    io::Errno,
    process::{Pid, Signal, kill_process_group, test_kill_process_group},
};

use super::{
    Limits,
    output::{Output, Shown},
};
use crate::cancel::Cancel;

/// A command that has run.
pub(super) struct Ran {
    pub ended: Ended,
    pub output: Shown,
    pub left: Left,
    pub took: Duration,
}

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ended {
    /// By itself, with this code.
    Code(i32),
    /// By a signal that was not ours.
    Signal(i32),
    /// By us, because it took longer than this.
    TimedOut(Duration),
    /// By us, because somebody wanted to stop.
    Cancelled,
}

/// What was left of a command after its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Left {
    /// Nothing.
    Nothing,
    /// Processes in the background, which were ended.
    Ended,
    /// Processes that have made themselves independent, and still hold its output open.
    Running,
}

/// Variables with our keys. A command has no need of them, and what it prints goes to a provider and into logs. This keeps them
/// from showing up by accident; it is no wall against a program that looks into our process.
const KEYS: [&str; 3] = ["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "SUREHAND_API_KEY"];

/// What makes programs behave where nobody watches: no colours, no pagers, no questions.
const SETTINGS: [(&str, &str); 5] =
    [("TERM", "dumb"), ("NO_COLOR", "1"), ("PAGER", "cat"), ("GIT_PAGER", "cat"), ("GIT_TERMINAL_PROMPT", "0")];

/// How often the clock and the wish to stop are looked at while nothing comes.
const TICK: Duration = Duration::from_millis(20);

/// How long we sleep where there is nothing to listen to any more: it will be over in a moment.
const NAP: Duration = Duration::from_millis(2);

/// Runs a command line in a directory, for so long at most.
pub(super) fn run(line: &str, directory: &Path, time: Duration, limits: &Limits, cancel: &Cancel) -> io::Result<Ran> {
    let start = Instant::now();
    let mut running = Running::start(line, directory, limits)?;
    let stopped = running.watch(start + time, cancel)?;
    let ended = match (stopped, running.status) {
        (None, Some(status)) => how(status),
        (Some(Stopped::ByUser), _) => Ended::Cancelled,
        (Some(Stopped::ByTime) | None, _) => Ended::TimedOut(time),
    };
    let left = running.clear_up(limits)?;
    Ok(Ran { ended, left, took: start.elapsed(), output: running.finish() })
}

fn how(status: ExitStatus) -> Ended {
    match status.code() {
        Some(code) => Ended::Code(code),
        None => Ended::Signal(status.signal().expect("what has no code was ended by a signal")),
    }
}

/// Why we end a command.
#[derive(Clone, Copy)]
enum Stopped {
    ByTime,
    ByUser,
}

struct Running {
    child: Child,
    group: Pid,
    pieces: Receiver<Vec<u8>>,
    /// Whether somebody can still write to us.
    is_open: bool,
    output: Output,
    /// How the shell has ended, if it has.
    status: Option<ExitStatus>,
}

impl Running {
    fn start(line: &str, directory: &Path, limits: &Limits) -> io::Result<Self> {
        // Output and errors share a pipe, as they share a terminal, so that they come in the order in which they were written.
        let (reader, writer) = io::pipe()?;
        let child = shell(line, directory).stdout(writer.try_clone()?).stderr(writer).spawn()?;
        let group = Pid::from_child(&child);
        let output = Output::new(limits.head_bytes, limits.tail_bytes);
        Ok(Self { child, group, pieces: listen(reader), is_open: true, output, status: None })
    }

    /// Waits until the shell has ended or must be.
    fn watch(&mut self, deadline: Instant, cancel: &Cancel) -> io::Result<Option<Stopped>> {
        loop {
            if cancel.is_set() {
                return Ok(Some(Stopped::ByUser));
            }
            if self.step()? {
                return Ok(None);
            }
            if Instant::now() >= deadline {
                return Ok(Some(Stopped::ByTime));
            }
        }
    }

    /// Takes in what comes next, or a moment of nothing. Says whether the shell has ended.
    fn step(&mut self) -> io::Result<bool> {
        if !self.is_open {
            thread::sleep(NAP);
        } else {
            match self.pieces.recv_timeout(TICK) {
                Ok(piece) => self.output.push(&piece),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => self.is_open = false,
            }
        }
        if self.status.is_none() {
            self.status = self.child.try_wait()?;
        }
        Ok(self.status.is_some())
    }

    /// Ends what is left of the command.
    ///
    /// That is also what it has put into the background. A process that outlives its command goes on changing files when nobody
    /// counts that as the command's doing any more, so that it could neither be told nor undone; and a run that is over should
    /// leave nothing behind. Whoever wants a server runs and uses it in one command.
    fn clear_up(&mut self, limits: &Limits) -> io::Result<Left> {
        if self.status.is_some() {
            // What was written before the end may still be on its way.
            self.step_for(limits.linger, |running| !running.is_open)?;
        }
        let lived = self.status.is_some() && self.lives();
        if self.lives() {
            self.end(limits)?;
        }
        Ok(match (lived, self.is_open) {
            (_, true) => Left::Running,
            (true, false) => Left::Ended,
            (false, false) => Left::Nothing,
        })
    }

    /// Asks the whole group to end; what has not after a while is not asked again.
    fn end(&mut self, limits: &Limits) -> io::Result<()> {
        self.signal(Signal::TERM);
        // Who is stopped, because of a read from the terminal say, hears nothing else.
        self.signal(Signal::CONT);
        self.step_for(limits.grace, |running| !running.lives())?;
        if self.exists() {
            self.signal(Signal::KILL);
        }
        // Only a process that waits for a broken disk is there after that, and we do not wait with it.
        const DYING: Duration = Duration::from_secs(5);
        self.step_for(DYING, |running| !running.lives())?;
        self.step_for(limits.linger, |running| !running.is_open)
    }

    fn step_for(&mut self, time: Duration, is_over: impl Fn(&Self) -> bool) -> io::Result<()> {
        let until = Instant::now() + time;
        while !is_over(self) && Instant::now() < until {
            self.step()?;
        }
        Ok(())
    }

    /// Whether any process of the group is there, be it dead. As long as one is, no other group gets its number.
    fn exists(&self) -> bool {
        self.status.is_none() || !matches!(test_kill_process_group(self.group), Err(Errno::SRCH))
    }

    /// Whether any process of the group is alive.
    fn lives(&self) -> bool {
        self.status.is_none() || self.exists() && has_living(self.group)
    }

    fn signal(&self, signal: Signal) {
        // Whoever is gone by now needs none.
        let _ = kill_process_group(self.group, signal);
    }

    fn finish(mut self) -> Shown {
        std::mem::replace(&mut self.output, Output::new(0, 0)).finish()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Only after an error of ours.
        if self.status.is_none() {
            self.signal(Signal::KILL);
            let _ = self.child.try_wait();
        }
    }
}

/// Whether a process of a group is more than a dead one of which nobody has taken note. Where the first process of the system
/// does not do that, as in many containers, those stay for good and would be waited for. Where the system does not show its
/// processes, all of them count.
fn has_living(group: Pid) -> bool {
    let Ok(entries) = fs::read_dir("/proc") else { return true };
    if !Path::new("/proc/self/stat").exists() {
        return true;
    }
    entries.flatten().any(|entry| {
        // After the name, which may hold anything, come state, parent and group.
        let stat = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        let mut fields = stat.rsplit(')').next().unwrap_or_default().split_ascii_whitespace();
        let is_dead = matches!(fields.next(), None | Some("Z" | "X"));
        !is_dead && fields.nth(1).is_some_and(|field| field == group.to_string())
    })
}

fn shell(line: &str, directory: &Path) -> Command {
    let mut shell = Command::new("sh");
    shell.args(["-c", "--", line]).current_dir(directory).stdin(Stdio::null()).process_group(0);
    for key in KEYS {
        shell.env_remove(key);
    }
    shell.envs(SETTINGS);
    shell
}

/// What comes through the pipe. The thread ends when nobody writes or nobody listens any more; a process that made itself
/// independent and holds the pipe may keep it waiting, for nothing but a write.
fn listen(mut reader: PipeReader) -> Receiver<Vec<u8>> {
    // Few pieces wait, so that whoever writes faster than we read is slowed down instead of filling memory.
    let (sender, pieces) = sync_channel(4);
    thread::spawn(move || {
        let mut buffer = vec![0; 64 * 1024];
        loop {
            let read = match reader.read(&mut buffer) {
                Ok(0) => return,
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => return,
            };
            if sender.send(buffer[..read].to_vec()).is_err() {
                return;
            }
        }
    });
    pieces
}
