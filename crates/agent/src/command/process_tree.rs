//! The processes of a command: which of all that run are its own, and how they are signalled and reaped. When they are to end is left
//! to [`super::process`].

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
/// A process may leave its parent (by a double fork), its group and its session (by `setsid`), ignore signals and clear its
/// environment; so none of these alone tells whose it is. Two things hold. First, we are the subreaper while a command runs: what
/// loses its parent becomes our child, not init's. Second, the shell begins a session of its own, and a session can be left but never
/// joined: nothing that the command starts is ever in our session again. So a process belongs to the command if one of its ancestors
/// is the shell, or a child of ours that was not there before and is in another session than ours, or if it shares a session with
/// such a process. Other children of a program that uses this library are in its session, or were there before. Commands take turns,
/// because an orphan does not tell which of two it comes from. What this cannot tell apart is a child that such a program itself
/// starts in a new session while a command runs: it counts as the command's. What a command asks another service to start (cron,
/// systemd, a container engine) is not its process and lives on.
pub(super) struct ProcessTree {
    shell: Pid,
    reaper: Subreaper,
}

/// One process as the system shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ProcessInfo {
    pid: Pid,
    parent: i32,
    group: i32,
    session: i32,
    /// In ticks since the system started. With the number it names a process for good: numbers come again.
    started: u64,
    is_alive: bool,
}

/// Only one command runs in a process at a time.
static TURN: Mutex<()> = Mutex::new(());

/// This process while orphans become its children.
pub(super) struct Subreaper {
    children_before: HashSet<(Pid, u64)>,
    was_subreaper: bool,
    _turn: MutexGuard<'static, ()>,
}

impl Subreaper {
    /// Waits for the turn of this command. Must be there before the shell is started.
    pub(super) fn begin() -> Self {
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let was_subreaper = become_subreaper();
        let ours = getpid().as_raw_pid();
        let children = processes().into_iter().flatten().filter(|process| process.parent == ours);
        let children_before = children.map(|process| (process.pid, process.started)).collect();
        Self { children_before, was_subreaper, _turn: turn }
    }

    /// Whether a child of ours was not there before the command.
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

/// Gives whether we were one already. Where there is no such thing, orphans of a command are only found in its group and session.
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
    /// The tree of a shell, which must not be reaped as long as this is used, unless processes are not shown: its number would be free for
    /// others.
    pub(super) fn new(shell: Pid, reaper: Subreaper) -> Self {
        Self { shell, reaper }
    }

    /// Whether the system shows its processes. Where it does not, all that is in the group of the shell counts, dead or alive.
    pub(super) fn is_visible(&self) -> bool {
        ProcessInfo::read(getpid()).is_some()
    }

    /// Whether any process of the command is alive.
    pub(super) fn is_alive(&self) -> bool {
        match self.members() {
            Some(members) => members.iter().any(|member| member.is_alive),
            None => !matches!(test_kill_process_group(self.shell), Err(Errno::SRCH)),
        }
    }

    /// Sends a signal to every living process of the command that there is now. Says whether there was one.
    ///
    /// It goes to whole groups, the oldest first. A group gets it at once, with the children that its processes are just making; else a shell
    /// could go on with its next command because the present one has ended. All of a group is in one session, so all of it is the command's.
    pub(super) fn signal(&self, signal: Signal) -> bool {
        let Some(mut members) = self.members() else {
            // Whoever is gone by now needs none.
            return kill_process_group(self.shell, signal).is_ok();
        };
        members.retain(|member| member.is_alive);
        members.sort_by_key(|member| member.started);
        let mut done = HashSet::new();
        for member in &members {
            if !done.contains(&member.group)
                && let Some(group) = Pid::from_raw(member.group).filter(|_| member.is_same_process())
            {
                // Whoever is not ours to signal gets none.
                let _ = kill_process_group(group, signal);
                done.insert(member.group);
            }
        }
        !members.is_empty()
    }

    /// Kills every living process of the command that there is now. Says whether there was one; what they have started meanwhile is
    /// for the next round.
    pub(super) fn kill(&self) -> bool {
        let lived = self.signal(Signal::KILL);
        self.kill_orphans();
        lived
    }

    /// Kills orphans as fast as they come to us. A process that starts another one and ends, again and again, each time in a new session,
    /// is gone before a look at all processes is over; but each time it is our child that is alive, and we know our children at once.
    fn kill_orphans(&self) {
        /// Then it is time for a look at the others.
        const LOOKS: usize = 1000;
        let pid = getpid();
        let our_session = ProcessInfo::read(pid).map(|ours| ours.session);
        // Orphans go to the first thread.
        let list = format!("/proc/self/task/{pid}/children");
        for _ in 0..LOOKS {
            let children = fs::read_to_string(&list).unwrap_or_default();
            let pids = children.split_ascii_whitespace().rev().filter_map(|pid| Pid::from_raw(pid.parse().ok()?));
            let children = pids.filter(|pid| *pid != self.shell).filter_map(ProcessInfo::read);
            let orphans = children.filter(|child| Some(child.session) != our_session && self.reaper.is_new(child));
            let mut is_clear = true;
            for orphan in orphans {
                is_clear = false;
                // Nobody else gets the number of a child of ours before it is reaped.
                let _ = kill_process(orphan.pid, Signal::KILL);
                let _ = waitpid(Some(orphan.pid), WaitOptions::NOHANG);
            }
            if is_clear {
                break;
            }
        }
    }

    /// Takes note of the orphans that have ended. The shell is for whoever started it.
    pub(super) fn reap(&self) {
        let ours = getpid().as_raw_pid();
        let orphans = self.members().into_iter().flatten().filter(|member| member.parent == ours && member.pid != self.shell);
        for orphan in orphans.filter(|orphan| !orphan.is_alive) {
            let _ = waitpid(Some(orphan.pid), WaitOptions::NOHANG);
        }
    }

    /// The processes of the command, dead ones included; `None` where the system does not show them.
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

    /// From the line of `/proc/PID/stat`. After the name, which may hold anything, come state, parent, group and session.
    fn parse(pid: Pid, stat: &str) -> Option<Self> {
        let fields: Vec<&str> = stat.rsplit(')').next()?.split_ascii_whitespace().collect();
        let number = |at: usize| fields.get(at).and_then(|field| field.parse().ok());
        let is_dead = matches!(*fields.first()?, "Z" | "X");
        // The first thread may have ended while others go on.
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

    /// Whether it is still this process that has the number.
    fn is_same_process(&self) -> bool {
        Self::read(self.pid).is_some_and(|now| now.started == self.started)
    }
}

/// All processes, or `None` where the system does not show them.
///
/// The list of numbers is of one moment. Until the last of them is looked at, a process may have started another one and ended; so the list
/// is read again until there is nobody new in it.
fn processes() -> Option<Vec<ProcessInfo>> {
    /// On a busy machine there is always somebody new.
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
        // The first thread has ended, another one has not.
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
