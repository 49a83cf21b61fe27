//! A command as processes: started in a session of their own, listened to, and ended with all they have started. What the output
//! looks like is left to [`super::output`], whose a process is to [`super::process_tree`].

use std::{
    env,
    ffi::OsStr,
    io::{self, PipeReader, Read},
    os::unix::process::CommandExt,
    path::Path,
    process::{Child, Command, Stdio},
    sync::mpsc::{Receiver, RecvTimeoutError, sync_channel},
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, WaitIdStatus, setsid, waitid};

use super::{
    CommandLimits,
    output::{CommandOutput, ShownOutput},
    process_tree::{ProcessTree, Subreaper},
};
use crate::{cancel::CancelToken, model::KEY_VARIABLES, secrets::Secrets};

/// A command that has run.
#[derive(Debug)]
pub(super) struct FinishedCommand {
    pub ended: CommandEnd,
    pub output: ShownOutput,
    pub left: LeftProcesses,
    pub took: Duration,
}

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CommandEnd {
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
pub(super) enum LeftProcesses {
    /// Nothing.
    Nothing,
    /// Processes in the background, which were ended.
    Ended,
    /// Processes that we may not end, because they run as another user, or cannot, because they wait for a broken disk; or somebody
    /// who still holds its output open.
    Running,
}

/// What makes programs behave where nobody watches: no colours, no pagers, no questions.
const SETTINGS: [(&str, &str); 5] =
    [("TERM", "dumb"), ("NO_COLOR", "1"), ("PAGER", "cat"), ("GIT_PAGER", "cat"), ("GIT_TERMINAL_PROMPT", "0")];

/// How often the clock and the wish to stop are looked at while nothing comes.
const TICK: Duration = Duration::from_millis(20);

/// How long we sleep where there is nothing to listen to any more: it will be over in a moment.
const NAP: Duration = Duration::from_millis(2);

/// How often orphans that have ended are reaped while the command runs.
const REAP: Duration = Duration::from_secs(1);

/// Runs a command line in a directory, for so long at most.
pub(super) fn run_shell(
    line: &str,
    directory: &Path,
    time: Duration,
    limits: &CommandLimits,
    secrets: &Secrets,
    cancel: &CancelToken,
) -> io::Result<FinishedCommand> {
    let reaper = Subreaper::begin();
    let start = Instant::now();
    let mut running =
        RunningCommand::start(shell_command(line, directory, secrets), CommandOutput::new(limits, secrets), reaper)?;
    let stopped = running.watch(start + time, cancel)?;
    let ended = match (stopped, running.ended) {
        (None, Some(ended)) => ended,
        (Some(StopCause::ByUser), _) => CommandEnd::Cancelled,
        (Some(StopCause::ByTime) | None, _) => CommandEnd::TimedOut(time),
    };
    let left = running.end_leftovers(limits)?;
    Ok(FinishedCommand { ended, left, took: start.elapsed(), output: running.finish() })
}

fn command_end(status: &WaitIdStatus) -> CommandEnd {
    match status.exit_status() {
        Some(code) => CommandEnd::Code(code),
        None => CommandEnd::Signal(status.terminating_signal().expect("what has no code was ended by a signal")),
    }
}

/// Why we end a command.
#[derive(Clone, Copy)]
enum StopCause {
    ByTime,
    ByUser,
}

struct RunningCommand {
    child: Child,
    tree: ProcessTree,
    pieces: Receiver<Vec<u8>>,
    /// Whether somebody can still write to us.
    is_open: bool,
    output: CommandOutput,
    /// How the shell has ended, if it has. It is reaped last, so that nobody else gets its number meanwhile.
    ended: Option<CommandEnd>,
    /// When orphans were reaped last.
    reaped: Instant,
}

impl RunningCommand {
    fn start(mut shell: Command, output: CommandOutput, reaper: Subreaper) -> io::Result<Self> {
        // Output and errors share a pipe, as they share a terminal, so that they come in the order in which they were written.
        let (reader, writer) = io::pipe()?;
        let child = shell.stdout(writer.try_clone()?).stderr(writer).spawn()?;
        // It holds the other end of the pipe.
        drop(shell);
        let tree = ProcessTree::new(Pid::from_child(&child), reaper);
        Ok(Self { child, tree, pieces: read_in_background(reader), is_open: true, output, ended: None, reaped: Instant::now() })
    }

    /// Waits until the shell has ended or must be.
    fn watch(&mut self, deadline: Instant, cancel: &CancelToken) -> io::Result<Option<StopCause>> {
        loop {
            if cancel.is_cancelled() {
                return Ok(Some(StopCause::ByUser));
            }
            if self.step()? {
                return Ok(None);
            }
            if Instant::now() >= deadline {
                return Ok(Some(StopCause::ByTime));
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
        if self.ended.is_none() {
            let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
            self.ended = waitid(WaitId::Pid(Pid::from_child(&self.child)), look)?.as_ref().map(command_end);
            if self.ended.is_some() && !self.tree.is_visible() {
                // Else it would count as a living process of its group.
                self.child.wait()?;
            }
        }
        if self.reaped.elapsed() >= REAP {
            self.tree.reap();
            self.reaped = Instant::now();
        }
        Ok(self.ended.is_some())
    }

    /// Ends what is left of the command.
    ///
    /// That is also what it has put into the background. A process that outlives its command goes on changing files when nobody
    /// counts that as the command's doing any more, so that it could neither be told nor undone; and a run that is over should
    /// leave nothing behind. Whoever wants a server runs and uses it in one command.
    fn end_leftovers(&mut self, limits: &CommandLimits) -> io::Result<LeftProcesses> {
        if self.ended.is_some() {
            // What was written before the end may still be on its way.
            self.step_for(limits.linger, |running| !running.is_open)?;
        }
        let lived = self.tree.is_alive();
        let is_left = lived && self.end(limits)?;
        self.tree.reap();
        Ok(match (is_left || self.is_open, lived && self.ended.is_some()) {
            (true, _) => LeftProcesses::Running,
            (false, true) => LeftProcesses::Ended,
            (false, false) => LeftProcesses::Nothing,
        })
    }

    /// Asks all processes to end, and kills those that have not after a while. Says whether any is left.
    fn end(&mut self, limits: &CommandLimits) -> io::Result<bool> {
        self.tree.signal(Signal::TERM);
        // Who is stopped, because of a read from the terminal say, hears nothing else.
        self.tree.signal(Signal::CONT);
        self.step_for(limits.grace, |running| !running.tree.is_alive())?;
        let is_left = !self.kill()?;
        self.step_for(limits.linger, |running| !running.is_open)?;
        Ok(is_left)
    }

    /// Kills in rounds until none is left: a process may start others while it is being killed. Says whether that came to an end.
    fn kill(&mut self) -> io::Result<bool> {
        // Only a process that waits for a broken disk, or one of another user, is there after that, and we do not wait with it.
        const DYING: Duration = Duration::from_secs(5);
        let until = Instant::now() + DYING;
        loop {
            // One that was just being made may have been missed in the first look.
            if !self.tree.kill() && !self.tree.kill() {
                return Ok(true);
            }
            if Instant::now() >= until {
                return Ok(false);
            }
            self.tree.reap();
            self.step()?;
        }
    }

    fn step_for(&mut self, time: Duration, is_over: impl Fn(&Self) -> bool) -> io::Result<()> {
        let until = Instant::now() + time;
        while !is_over(self) && Instant::now() < until {
            self.step()?;
        }
        Ok(())
    }

    fn finish(mut self) -> ShownOutput {
        std::mem::take(&mut self.output).finish()
    }
}

impl Drop for RunningCommand {
    fn drop(&mut self) {
        if self.ended.is_none() {
            // Only after an error of ours.
            self.tree.kill();
        }
        let _ = self.child.try_wait();
    }
}

fn shell_command(line: &str, directory: &Path, secrets: &Secrets) -> Command {
    let mut shell = Command::new("sh");
    shell.args(["-c", "--", line]).current_dir(directory).stdin(Stdio::null());
    // A command has no need of our keys, and what it prints goes to a provider and into logs.
    let is_secret = |name: &OsStr, value: &OsStr| KEY_VARIABLES.iter().any(|key| name == *key) || secrets.are_in(value);
    for (name, _) in env::vars_os().filter(|(name, value)| is_secret(name, value)) {
        shell.env_remove(name);
    }
    shell.envs(SETTINGS);
    prepare_exec(&mut shell);
    shell
}

/// Gives the shell a session of its own, see [`ProcessTree`], and takes from it the right to look into our memory.
#[expect(unsafe_code, reason = "what is done between fork and exec is unsafe by its nature")]
fn prepare_exec(shell: &mut Command) {
    let prepare = || {
        setsid()?;
        give_up_ptrace();
        Ok(())
    };
    // SAFETY: After a fork of a process with threads only what is async-signal-safe may be called. These are plain system calls: nothing
    // is allocated, and no lock is taken.
    unsafe { shell.pre_exec(prepare) };
}

/// With `CAP_SYS_PTRACE` a process reads the memory of any other one, also of ours, which holds the key. Root gets at exec whatever
/// is in the bounding set or inheritable, so that it must be in neither. Who does not have it cannot give it up, and need not.
#[cfg(target_os = "linux")]
fn give_up_ptrace() {
    use rustix::thread::{CapabilitySet, capabilities, remove_capability_from_bounding_set, set_capabilities};
    let _ = remove_capability_from_bounding_set(CapabilitySet::SYS_PTRACE);
    if let Ok(mut sets) = capabilities(None) {
        for set in [&mut sets.effective, &mut sets.permitted, &mut sets.inheritable] {
            set.remove(CapabilitySet::SYS_PTRACE);
        }
        let _ = set_capabilities(None, sets);
    }
}

#[cfg(not(target_os = "linux"))]
fn give_up_ptrace() {}

/// What comes through the pipe. The thread ends when nobody writes or nobody listens any more; a process that made itself
/// independent and holds the pipe may keep it waiting, for nothing but a write.
fn read_in_background(mut reader: PipeReader) -> Receiver<Vec<u8>> {
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
