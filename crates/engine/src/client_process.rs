//! The process of the client that started this program, read from `/proc`. On systems other than Linux, none is found.

use std::{fs, process};

/// A process, identified by its number and its start, because numbers are reused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientProcess {
    number: u32,
    /// In clock ticks since boot.
    started: String,
    parent: u32,
    /// The letter of its state in `/proc/PID/stat`.
    state: String,
}

/// Whether a process runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProcessState {
    /// It runs, or waits for something.
    Alive,
    /// It was suspended, and does nothing until it is resumed.
    Suspended,
    /// It has ended, or its number belongs to another process now.
    Gone,
}

/// Programs that only start others.
const SHELLS: [&str; 8] = ["sh", "ash", "bash", "busybox", "dash", "fish", "ksh", "zsh"];

/// How many shells may be between a client and this process.
const MOST_SHELLS: usize = 4;

impl ClientProcess {
    /// The process with this number; `None` if it does not exist, or the system does not report it.
    pub fn find(number: u32) -> Option<Self> {
        let status = fs::read_to_string(format!("/proc/{number}/stat")).ok()?;
        // The program name, in parentheses, may contain any character.
        let mut fields = status.rsplit_once(')')?.1.split_whitespace();
        let state = fields.next()?.to_owned();
        let parent = fields.next()?.parse().ok()?;
        Some(Self { number, started: fields.nth(17)?.to_owned(), parent, state })
    }

    /// The nearest ancestor that is not a shell. If the client started this program through another program, this is
    /// that program, which matches no client.
    pub fn client() -> Option<Self> {
        let this = Self::find(process::id())?;
        std::iter::successors(Self::find(this.parent), |above| Self::find(above.parent))
            .take(MOST_SHELLS + 1)
            .find(|above| !above.is_shell())
    }

    /// Checks the executable, because the process name of a script is the name of the script.
    fn is_shell(&self) -> bool {
        let program = fs::read_link(format!("/proc/{}/exe", self.number)).ok();
        let name = program.as_ref().and_then(|program| program.file_name()?.to_str());
        name.is_some_and(|name| SHELLS.contains(&name))
    }

    /// A name that is unique until the next boot.
    pub fn name(&self) -> String {
        format!("{}-{}", self.number, self.started)
    }

    /// Whether the process with this name has not ended.
    pub fn is_alive(name: &str) -> bool {
        Self::state_of(name) != ProcessState::Gone
    }

    /// The present state of the process with this name.
    pub fn state_of(name: &str) -> ProcessState {
        let number = name.split('-').next().and_then(|number| number.parse().ok());
        match number.and_then(Self::find).filter(|process| process.name() == name) {
            Some(process) => match &*process.state {
                "T" | "t" => ProcessState::Suspended,
                // It has ended, but its parent has not collected its exit status.
                "Z" | "X" => ProcessState::Gone,
                _ => ProcessState::Alive,
            },
            None => ProcessState::Gone,
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::os::unix::process::CommandExt;

    use super::*;

    #[test]
    fn this_process_and_its_parent_are_found() {
        let this = ClientProcess::find(process::id()).unwrap();
        assert!(ClientProcess::is_alive(&this.name()), "{this:?}");
        assert!(ClientProcess::find(this.parent).is_some(), "{this:?}");
    }

    #[test]
    fn a_number_that_is_another_process_now_is_not_alive() {
        assert!(!ClientProcess::is_alive(&format!("{}-0", process::id())));
        assert!(!ClientProcess::is_alive("x"));
    }

    #[test]
    fn a_suspended_process_and_an_ended_one_are_distinguished() {
        let mut sleeper = process::Command::new("sleep").arg("60").spawn().unwrap();
        let name = ClientProcess::find(sleeper.id()).unwrap().name();
        let send = |signal| rustix::process::kill_process(rustix::process::Pid::from_child(&sleeper), signal).unwrap();
        assert_eq!(ClientProcess::state_of(&name), ProcessState::Alive);
        send(rustix::process::Signal::STOP);
        while ClientProcess::state_of(&name) == ProcessState::Alive {
            std::thread::yield_now();
        }
        assert_eq!(ClientProcess::state_of(&name), ProcessState::Suspended);
        send(rustix::process::Signal::KILL);
        sleeper.wait().unwrap();
        assert_eq!(ClientProcess::state_of(&name), ProcessState::Gone);
    }

    #[test]
    fn a_script_is_a_shell_whatever_it_is_called() {
        let mut shell = process::Command::new("sh")
            .args(["-c", "read wait; true"])
            .arg0("claude")
            .stdin(process::Stdio::piped())
            .spawn()
            .unwrap();
        let is_shell = ClientProcess::find(shell.id()).unwrap().is_shell();
        drop(shell.stdin.take());
        shell.wait().unwrap();
        assert!(is_shell);
        assert!(!ClientProcess::find(process::id()).unwrap().is_shell());
    }
}
