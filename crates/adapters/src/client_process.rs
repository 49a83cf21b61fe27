//! The processes that this one descends from, as far as the system tells: elsewhere than on Linux there are none.

use std::{fs, process};

/// A process: its number alone may have been another's before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ClientProcess {
    number: u32,
    /// When it began, in ticks of the system.
    begun: String,
    parent: u32,
}

/// Who starts others for somebody else.
const SHELLS: [&str; 8] = ["sh", "ash", "bash", "busybox", "dash", "fish", "ksh", "zsh"];

/// So many shells may stand between a client and what it starts.
const MOST_SHELLS: usize = 4;

impl ClientProcess {
    /// The process of this number, if it is there.
    pub(crate) fn find(number: u32) -> Option<Self> {
        let status = fs::read_to_string(format!("/proc/{number}/stat")).ok()?;
        // The name of the program, in brackets, may hold anything.
        let mut fields = status.rsplit_once(')')?.1.split_whitespace();
        let parent = fields.nth(1)?.parse().ok()?;
        Some(Self { number, begun: fields.nth(17)?.to_owned(), parent })
    }

    /// Who has started this program, or had a shell start it. Where another program stands between, it is that one: then it is nobody whom
    /// others know, and nothing is taken for what it is not.
    pub(crate) fn client() -> Option<Self> {
        let this = Self::find(process::id())?;
        std::iter::successors(Self::find(this.parent), |above| Self::find(above.parent))
            .take(MOST_SHELLS + 1)
            .find(|above| !above.is_shell())
    }

    /// Goes by the program and not by the name of the process: for a script, that is the script's.
    fn is_shell(&self) -> bool {
        let program = fs::read_link(format!("/proc/{}/exe", self.number)).ok();
        let name = program.as_ref().and_then(|program| program.file_name()?.to_str());
        name.is_some_and(|name| SHELLS.contains(&name))
    }

    /// A name that no other process has or had.
    pub(crate) fn name(&self) -> String {
        format!("{}-{}", self.number, self.begun)
    }

    pub(crate) fn is_alive(name: &str) -> bool {
        let number = name.split('-').next().and_then(|number| number.parse().ok());
        number.and_then(Self::find).is_some_and(|process| process.name() == name)
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::os::unix::process::CommandExt;

    use super::*;

    #[test]
    fn this_process_is_there_and_has_a_parent_that_is_there() {
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
