//! The processes of a command: which of all running processes belong to it, and how to signal and reap them. This
//! is done by hand because no library finds processes that left their session; [`super::process`] decides when to
//! end them.

use std::{
    collections::{HashMap, HashSet},
    fs,
    sync::{Mutex, MutexGuard, PoisonError},
};

use rustix::{
    io::Errno,
    process::{Pid, Signal, WaitOptions, getpid, kill_process, kill_process_group, test_kill_process_group, waitpid},
};

/// The processes of one command, from its shell down.
///
/// A process can leave its parent (by a double fork), its group and its session (by `setsid`), ignore signals and clear
/// its environment, so none of these alone identifies it. Two facts do. First, we are the subreaper while a command
/// runs: a process that loses its parent becomes our child, not init's. Second, the shell starts a session of its own,
/// and a session can be left but never joined: no process started by the command is ever in our session. So a process
/// belongs to the command if one of its ancestors is the shell, or a child of ours that is new and in another session
/// than ours, or if it shares a session with such a process. Other children of a program that uses this library are in
/// its session, or existed before. Commands run one at a time, because an orphan does not reveal which of two commands
/// it came from. One case is ambiguous: a child that the program itself starts in a new session while a command runs
/// counts as the command's. Processes started by another service on behalf of the command (cron, systemd, a container
/// engine) do not belong to it and live on.
pub(super) struct ProcessTree {
    shell: Pid,
    reaper: Subreaper,
}

/// A process, as shown in `/proc`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ProcessInfo {
    pid: Pid,
    parent: i32,
    group: i32,
    session: i32,
    /// In ticks since boot. Ids are reused; id and start time together identify a process.
    started: u64,
    is_alive: bool,
}

/// Only one command runs at a time in this process.
static TURN: Mutex<()> = Mutex::new(());

/// While this value lives, orphaned descendants become children of this process.
pub(super) struct Subreaper {
    children_before: HashSet<(Pid, u64)>,
    was_subreaper: bool,
    _turn: MutexGuard<'static, ()>,
}

impl Subreaper {
    /// Waits until no other command runs. To be called before the shell is started.
    pub(super) fn begin() -> Self {
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let was_subreaper = become_subreaper();
        let ours = getpid().as_raw_pid();
        let children = processes().into_iter().flatten().filter(|process| process.parent == ours);
        let children_before = children.map(|process| (process.pid, process.started)).collect();
        Self { children_before, was_subreaper, _turn: turn }
    }

    /// Whether a child of ours did not exist before the command.
    fn is_new(&self, child: &ProcessInfo) -> bool {
        !self.children_before.contains(&(child.pid, child.started))
    }
}

impl Drop for Subreaper {
    fn drop(&mut self) {
        if !self.was_subreaper {
            resign_as_subreaper();
        }
    }
}

/// Returns whether we were a subreaper already. Systems without subreapers find orphans only by group and
/// session.
#[cfg(target_os = "linux")]
fn become_subreaper() -> bool {
    let was_subreaper = rustix::process::child_subreaper().is_ok_and(|reaper| reaper.is_some());
    let _ = rustix::process::set_child_subreaper(Some(getpid()));
    was_subreaper
}

#[cfg(target_os = "linux")]
fn resign_as_subreaper() {
    let _ = rustix::process::set_child_subreaper(None);
}

#[cfg(not(target_os = "linux"))]
fn become_subreaper() -> bool {
    true
}

#[cfg(not(target_os = "linux"))]
fn resign_as_subreaper() {}

impl ProcessTree {
    /// The tree below a shell. Unless processes are invisible, the shell must not be reaped while this is used,
    /// because its id could be reused.
    pub(super) fn new(shell: Pid, reaper: Subreaper) -> Self {
        Self { shell, reaper }
    }

    /// Whether `/proc` shows processes. If not, everything in the shell's group counts, dead or alive.
    pub(super) fn is_visible(&self) -> bool {
        ProcessInfo::read(getpid()).is_some()
    }

    pub(super) fn is_alive(&self) -> bool {
        match self.members() {
            Some(members) => members.iter().any(|member| member.is_alive),
            None => !matches!(test_kill_process_group(self.shell), Err(Errno::SRCH)),
        }
    }

    /// Sends a signal to every process of the command that is alive now. Returns whether there was one.
    ///
    /// The signal goes to whole groups, the oldest first. A group gets it at once, including children that are just
    /// being forked; otherwise a shell could go on with its next command because the current one has ended. A group
    /// lies within one session, so all of it belongs to the command.
    pub(super) fn signal(&self, signal: Signal) -> bool {
        let Some(mut members) = self.members() else {
            // A process that is gone by now needs no signal.
            return kill_process_group(self.shell, signal).is_ok();
        };
        members.retain(|member| member.is_alive);
        members.sort_by_key(|member| member.started);
        let mut done = HashSet::new();
        for member in &members {
            if !done.contains(&member.group)
                && let Some(group) = Pid::from_raw(member.group).filter(|_| member.is_same_process())
            {
                // We may lack the permission.
                let _ = kill_process_group(group, signal);
                done.insert(member.group);
            }
        }
        !members.is_empty()
    }

    /// Kills every process of the command that is alive now. Returns whether there was one; processes started
    /// meanwhile are left to the next round.
    pub(super) fn kill(&self) -> bool {
        let lived = self.signal(Signal::KILL);
        self.kill_orphans();
        lived
    }

    /// Kills orphans as fast as they reach us. A process that keeps starting a successor in a new session and ending
    /// is gone before a scan of all processes is over. But each successor becomes our child, and the list of our
    /// children is read at once.
    fn kill_orphans(&self) {
        /// Then scan the other processes again.
        const LOOKS: usize = 1000;
        let pid = getpid();
        let our_session = ProcessInfo::read(pid).map(|ours| ours.session);
        // The kernel gives orphans to the first thread.
        let list = format!("/proc/self/task/{pid}/children");
        for _ in 0..LOOKS {
            let children = fs::read_to_string(&list).unwrap_or_default();
            let pids = children.split_ascii_whitespace().rev().filter_map(|pid| Pid::from_raw(pid.parse().ok()?));
            let children = pids.filter(|pid| *pid != self.shell).filter_map(ProcessInfo::read);
            let orphans = children.filter(|child| Some(child.session) != our_session && self.reaper.is_new(child));
            let mut is_clear = true;
            for orphan in orphans {
                is_clear = false;
                // The id of a child is not reused before we reap it.
                let _ = kill_process(orphan.pid, Signal::KILL);
                let _ = waitpid(Some(orphan.pid), WaitOptions::NOHANG);
            }
            if is_clear {
                break;
            }
        }
    }

    /// Reaps the orphans that have ended. The shell is left to its owner.
    pub(super) fn reap(&self) {
        let ours = getpid().as_raw_pid();
        let orphans = self.members().into_iter().flatten().filter(|member| member.parent == ours && member.pid != self.shell);
        for orphan in orphans.filter(|orphan| !orphan.is_alive) {
            let _ = waitpid(Some(orphan.pid), WaitOptions::NOHANG);
        }
    }

    /// The processes of the command, including zombies; `None` if the system does not show processes.
    fn members(&self) -> Option<Vec<ProcessInfo>> {
        let all = processes()?;
        let ours = getpid();
        let our_session = all.iter().find(|process| process.pid == ours)?.session;
        let is_adopted = |process: &ProcessInfo| process.parent == ours.as_raw_pid() && self.reaper.is_new(process);
        let shell = self.shell.as_raw_pid();
        let (mut pids, mut sessions) = (HashSet::from([shell]), HashSet::from([shell]));
        let mut rest: Vec<ProcessInfo> = all.into_iter().filter(|process| process.session != our_session).collect();
        let mut members = Vec::new();
        loop {
            let (found, others): (Vec<_>, Vec<_>) = rest.into_iter().partition(|process| {
                is_adopted(process) || pids.contains(&process.parent) || sessions.contains(&process.session)
            });
            if found.is_empty() {
                return Some(members);
            }
            pids.extend(found.iter().map(|process| process.pid.as_raw_pid()));
            sessions.extend(found.iter().map(|process| process.session));
            members.extend(found);
            rest = others;
        }
    }
}

impl ProcessInfo {
    fn read(pid: Pid) -> Option<Self> {
        let stat = fs::read(format!("/proc/{}/stat", pid.as_raw_pid())).ok()?;
        Self::parse(pid, &String::from_utf8_lossy(&stat))
    }

    /// Parses `/proc/PID/stat`. The name in parentheses may contain anything; state, parent, group and session follow
    /// it.
    fn parse(pid: Pid, stat: &str) -> Option<Self> {
        let fields: Vec<&str> = stat.rsplit(')').next()?.split_ascii_whitespace().collect();
        let number = |at: usize| fields.get(at).and_then(|field| field.parse().ok());
        let is_dead = matches!(*fields.first()?, "Z" | "X");
        // The first thread may have ended before others.
        let threads: i32 = number(17)?;
        Some(Self {
            pid,
            parent: number(1)?,
            group: number(2)?,
            session: number(3)?,
            started: fields.get(19)?.parse().ok()?,
            is_alive: !is_dead || threads > 1,
        })
    }

    /// Whether the id still belongs to this process.
    fn is_same_process(&self) -> bool {
        Self::read(self.pid).is_some_and(|now| now.started == self.started)
    }
}

/// All processes; `None` if the system does not show them.
///
/// A process may start another and end while the list is being read, so the list is read again until nothing new
/// is in it.
fn processes() -> Option<Vec<ProcessInfo>> {
    /// On a busy machine there is always something new.
    const LOOKS: usize = 20;
    let mut known: HashMap<Pid, Option<ProcessInfo>> = HashMap::new();
    for _ in 0..LOOKS {
        let entries = fs::read_dir("/proc").ok()?.flatten();
        let pids = entries.filter_map(|entry| Pid::from_raw(entry.file_name().to_str()?.parse().ok()?));
        let new: Vec<Pid> = pids.filter(|pid| !known.contains_key(pid)).collect();
        if new.is_empty() {
            break;
        }
        known.extend(new.into_iter().map(|pid| (pid, ProcessInfo::read(pid))));
    }
    let all: Vec<ProcessInfo> = known.into_values().flatten().collect();
    (!all.is_empty()).then_some(all)
}

#[cfg(test)]
mod tests {
    use std::{
        io::Read,
        process::{Child, Command, Stdio},
    };

    use super::*;

    #[track_caller]
    fn check(stat: &str, expected: Option<(i32, i32, i32, u64, bool)>) {
        let process = ProcessInfo::parse(getpid(), stat);
        let found = process.map(|found| (found.parent, found.group, found.session, found.started, found.is_alive));
        assert_eq!(found, expected, "{stat}");
    }

    #[test]
    fn a_line_of_the_system_is_understood() {
        let rest = "4194560 1 0 0 0 2 3 0 0 20 0 1 0 777 8 9";
        check(&format!("10 (sh) S 1 10 10 0 -1 {rest}"), Some((1, 10, 10, 777, true)));
        check(&format!("10 (a) Z 9 9 9) R 2 3 4 0 -1 {rest}"), Some((2, 3, 4, 777, true)));
        check(&format!("10 (sh) Z 1 10 10 0 -1 {rest}"), Some((1, 10, 10, 777, false)));
        // The first thread has ended, but another one has not.
        check(&format!("10 (sh) Z 1 10 10 0 -1 {}", rest.replace("20 0 1 0", "20 0 2 0")), Some((1, 10, 10, 777, true)));
        check("10 (sh) S 1", None);
        check("", None);
    }

    #[test]
    fn a_number_that_came_again_is_another_process() {
        let ours = ProcessInfo::read(getpid()).unwrap();
        assert!(ours.is_alive && ours.is_same_process());
        let another = ProcessInfo { started: ours.started + 1, ..ours };
        assert!(!another.is_same_process());
    }

    #[test]
    fn other_children_are_not_of_the_command() {
        let start = |words: &[&str]| Command::new(words[0]).args(&words[1..]).stdout(Stdio::piped()).spawn().unwrap();
        let started = |child: &mut Child| child.stdout.take().unwrap().read_exact(&mut [0]).unwrap();
        let mut before = start(&["setsid", "sh", "-c", "echo; exec sleep 60"]);
        started(&mut before);
        let reaper = Subreaper::begin();
        let mut plain = start(&["sh", "-c", "echo; exec sleep 60"]);
        let mut shell = start(&["setsid", "sh", "-c", "setsid -f sh -c 'echo; exec sleep 60'; exec sleep 60"]);
        started(&mut plain);
        started(&mut shell);
        let tree = ProcessTree::new(Pid::from_child(&shell), reaper);
        let members: Vec<Pid> = tree.members().unwrap().iter().map(|member| member.pid).collect();
        let is_member = |child: &Child| members.contains(&Pid::from_child(child));
        assert_eq!([&before, &plain, &shell].map(is_member), [false, false, true]);
        assert!(members.len() >= 2, "its daemon belongs to it: {members:?}");
        while tree.kill() {}
        assert_eq!([before.try_wait().unwrap(), plain.try_wait().unwrap()], [None, None]);
        for child in [&mut before, &mut plain, &mut shell] {
            let _ = child.kill();
            child.wait().unwrap();
        }
    }
}
