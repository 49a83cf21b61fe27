//! Runs a shell command in a session of its own, reads its output, and ends it together with every process that
//! it started. [`super::output`] formats the output; [`super::process_tree`] knows which processes belong to the
//! command.

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
    CommandLimits, CommandWatch,
    confinement::Confinement,
    output::{CommandOutput, ShownOutput},
    process_tree::{ProcessTree, Subreaper},
};
use crate::{model::KEY_VARIABLES, secrets::Secrets};

/// A command that has ended.
#[derive(Debug)]
pub struct FinishedCommand {
    /// Exit code, signal or reason for which we ended it.
    pub ended: CommandEnd,
    /// Its output, shortened and redacted.
    pub output: ShownOutput,
    /// Processes that it left behind.
    pub left: LeftProcesses,
}

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommandEnd {
    /// By itself, with this exit code.
    Code(i32),
    /// By a signal that we did not send.
    Signal(i32),
    /// By us, after this time limit.
    TimedOut(Duration),
    /// By us, because the run was cancelled.
    Cancelled,
}

/// Processes that outlived the shell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeftProcesses {
    /// No process outlived the shell.
    Nothing,
    /// Some did, and we ended them.
    Ended,
    /// Some could not be ended, because they run as another user or wait for a broken disk. Or a process still holds
    /// the output open.
    Running,
}

/// Keeps programs from using colours, pagers and prompts.
const SETTINGS: [(&str, &str); 5] =
    [("TERM", "dumb"), ("NO_COLOR", "1"), ("PAGER", "cat"), ("GIT_PAGER", "cat"), ("GIT_TERMINAL_PROMPT", "0")];

/// How often deadline and cancellation are checked while there is no output.
const TICK: Duration = Duration::from_millis(20);

/// How long to sleep once the output is closed; the command usually ends at once.
const NAP: Duration = Duration::from_millis(2);

const REAP: Duration = Duration::from_secs(1);

pub(super) struct ShellLine<'a> {
    pub(super) line: &'a str,
    pub(super) directory: &'a Path,
    pub(super) confinement: Option<Confinement>,
}

pub(super) fn run_shell(
    shell: &ShellLine<'_>,
    time: Duration,
    limits: &CommandLimits,
    secrets: &Secrets,
    watch: &mut CommandWatch<'_>,
) -> io::Result<FinishedCommand> {
    let reaper = Subreaper::begin();
    let mut running = ShellProcess::start(shell, secrets, CommandOutput::new(limits, secrets), reaper)?;
    let ended = running.watch(time, watch)?;
    let left = running.end_leftovers(limits)?;
    Ok(FinishedCommand { ended, left, output: running.finish() })
}

fn command_end(status: &WaitIdStatus) -> CommandEnd {
    match status.exit_status() {
        Some(code) => CommandEnd::Code(code),
        None => CommandEnd::Signal(status.terminating_signal().expect("a process without an exit code was ended by a signal")),
    }
}

struct ShellProcess {
    child: Child,
    tree: ProcessTree,
    pieces: Receiver<Vec<u8>>,
    /// Whether a process still has the output open.
    is_open: bool,
    output: CommandOutput,
    /// How the shell ended. It is reaped last, so that no other process gets its id meanwhile.
    ended: Option<CommandEnd>,
    reaped: Instant,
}

impl ShellProcess {
    fn start(shell: &ShellLine<'_>, secrets: &Secrets, output: CommandOutput, reaper: Subreaper) -> io::Result<Self> {
        // stdout and stderr share a pipe, as they share a terminal, which keeps their order.
        let (reader, writer) = io::pipe()?;
        let mut command = shell_command(shell, secrets);
        command.stdout(writer.try_clone()?).stderr(writer);
        let child = match &shell.confinement {
            None => command.spawn()?,
            Some(confinement) => confinement.spawn(&mut command)?,
        };
        // It holds the write end of the pipe.
        drop(command);
        let tree = ProcessTree::new(Pid::from_child(&child), reaper);
        Ok(Self { child, tree, pieces: read_in_background(reader), is_open: true, output, ended: None, reaped: Instant::now() })
    }

    /// Waits until the shell ends or has to be stopped.
    fn watch(&mut self, time: Duration, watch: &mut CommandWatch<'_>) -> io::Result<CommandEnd> {
        let deadline = Instant::now() + time;
        loop {
            if watch.cancel.is_cancelled() {
                return Ok(CommandEnd::Cancelled);
            }
            self.step()?;
            watch.show(&self.output.take_news());
            if let Some(ended) = self.ended {
                return Ok(ended);
            }
            if Instant::now() >= deadline {
                return Ok(CommandEnd::TimedOut(time));
            }
        }
    }

    /// Waits briefly for output, and records the exit of the shell.
    fn step(&mut self) -> io::Result<()> {
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
            let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
            self.ended = waitid(WaitId::Pid(Pid::from_child(&self.child)), options)?.as_ref().map(command_end);
            if self.ended.is_some() && !self.tree.is_visible() {
                // Without `/proc` the zombie would count as a living process of its group.
                self.child.wait()?;
            }
        }
        if self.reaped.elapsed() >= REAP {
            self.tree.reap();
            self.reaped = Instant::now();
        }
        Ok(())
    }

    /// Ends all processes that the command left behind, including those in the background.
    ///
    /// A process that outlives its command could change files later, when the change can no longer be attributed to
    /// the command, reported or undone. And a finished run should leave nothing running. A server can be started and
    /// used within one command.
    fn end_leftovers(&mut self, limits: &CommandLimits) -> io::Result<LeftProcesses> {
        if self.ended.is_some() {
            // Output written before the end may still be in the pipe.
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

    /// Sends SIGTERM, and after the grace period SIGKILL. Returns whether any process is left.
    fn end(&mut self, limits: &CommandLimits) -> io::Result<bool> {
        self.tree.signal(Signal::TERM);
        // A stopped process, for example one that tried to read from the terminal, must continue to receive SIGTERM.
        self.tree.signal(Signal::CONT);
        self.step_for(limits.grace, |running| !running.tree.is_alive())?;
        let is_left = !self.kill()?;
        self.step_for(limits.linger, |running| !running.is_open)?;
        Ok(is_left)
    }

    /// Kills in rounds until no process is left, because a process may start others meanwhile. Returns whether that
    /// succeeded.
    fn kill(&mut self) -> io::Result<bool> {
        // After this time only processes that wait for a broken disk or belong to another user are left.
        const DYING: Duration = Duration::from_secs(5);
        let until = Instant::now() + DYING;
        loop {
            // A process that was just being forked may be missed by the first round.
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

impl Drop for ShellProcess {
    fn drop(&mut self) {
        if self.ended.is_none() {
            // We got here through an error of our own.
            self.tree.kill();
        }
        let _ = self.child.try_wait();
    }
}

fn shell_command(ShellLine { line, directory, confinement }: &ShellLine<'_>, secrets: &Secrets) -> Command {
    let mut shell = Command::new("sh");
    shell.args(["-c", "--", line]).current_dir(directory).stdin(Stdio::null());
    // A command does not need our keys, and its output goes to a provider and into logs.
    let is_secret = |name: &OsStr, value: &OsStr| KEY_VARIABLES.iter().any(|key| name == *key) || secrets.are_in(value);
    for (name, _) in env::vars_os().filter(|(name, value)| is_secret(name, value)) {
        shell.env_remove(name);
    }
    shell.envs(SETTINGS);
    prepare_exec(&mut shell, confinement.is_some());
    shell
}

/// Gives the shell a session of its own (see [`ProcessTree`]) and takes its right to read our memory. If root is
/// confined, it keeps the rights over files and its own processes only.
#[expect(unsafe_code, reason = "code between fork and exec is inherently unsafe")]
fn prepare_exec(shell: &mut Command, is_confined: bool) {
    let prepare = move || {
        setsid()?;
        give_up_capabilities(is_confined);
        Ok(())
    };
    // SAFETY: After a fork in a process with threads only async-signal-safe functions may be called. These are plain
    // system calls that allocate nothing and take no lock.
    unsafe { shell.pre_exec(prepare) };
}

/// With `CAP_SYS_PTRACE` a process can read the memory of any other, including ours, which holds the key. At exec
/// root gets whatever is in the bounding or the inheritable set, so it must be in neither. Errors mean that we do
/// not have the capability, which is as good.
#[cfg(target_os = "linux")]
fn give_up_capabilities(is_confined: bool) {
    use rustix::thread::{CapabilitySet, capabilities, remove_capability_from_bounding_set, set_capabilities};
    /// The capabilities that a build as root needs.
    const KEPT: CapabilitySet = CapabilitySet::CHOWN
        .union(CapabilitySet::DAC_OVERRIDE)
        .union(CapabilitySet::DAC_READ_SEARCH)
        .union(CapabilitySet::FOWNER)
        .union(CapabilitySet::FSETID)
        .union(CapabilitySet::KILL)
        .union(CapabilitySet::SETGID)
        .union(CapabilitySet::SETUID);
    let given_up = if is_confined { KEPT.complement() } else { CapabilitySet::SYS_PTRACE };
    for capability in given_up.iter() {
        let _ = remove_capability_from_bounding_set(capability);
    }
    if let Ok(mut sets) = capabilities(None) {
        for set in [&mut sets.effective, &mut sets.permitted, &mut sets.inheritable] {
            set.remove(given_up);
        }
        let _ = set_capabilities(None, sets);
    }
}

#[cfg(not(target_os = "linux"))]
fn give_up_capabilities(_: bool) {}

/// Reads the pipe on a thread, which ends when no process has the write end open or the receiver is gone. A
/// process that escaped and keeps the pipe open keeps the thread waiting, which costs nothing else.
fn read_in_background(mut reader: PipeReader) -> Receiver<Vec<u8>> {
    // A short queue slows down a fast writer instead of filling memory.
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
