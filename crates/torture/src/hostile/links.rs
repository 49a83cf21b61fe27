//! Swaps a directory with a symbolic link to the outside, back and forth as fast as possible, while a server works in
//! it. Nothing outside may be read or written: inotify reports every access there.

use std::{
    fs, io,
    mem::MaybeUninit,
    os::{fd::OwnedFd, unix::fs::symlink},
    path::PathBuf,
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread::{scope, sleep},
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use rustix::fs::{CWD, RenameFlags, inotify, renameat_with};
use serde_json::{Value, json};
use surehand_testkit::rng::Rng;

use super::Patient;
use crate::{
    client::{Client, Reply},
    file_set::FileSet,
    report::PartOutcome,
    test_workspace::{Settings, TestWorkspace},
    tree,
};

/// The content of the files outside, which no answer may contain.
const SECRET: &str = "what-is-outside";

pub(super) fn run(workspace: TestWorkspace, rng: &mut Rng, length: Duration, outcome: &mut PartOutcome) -> Result<()> {
    let file_set = FileSet::lay_out(&workspace.root(), "ring", rng).with_context(|| workspace.root().display().to_string())?;
    let outside = Outside::lay_out(&workspace, &file_set)?;
    let swapper = Swapper::new(&workspace)?;
    let mut patient = Patient { workspace: &workspace, file_set, rng, tally: &mut outcome.tally };
    scope(|threads| {
        threads.spawn(|| swapper.live());
        let worked = work(&mut patient, &swapper, Instant::now() + length);
        swapper.over.store(true, Ordering::Relaxed);
        worked
    })?;
    outcome.tally.foreign += swapper.times.into_inner().expect("no holder of the lock panics");
    outside.check(&workspace)?;
    workspace.close(outcome);
    Ok(())
}

/// Reads, searches and changes files while the links are swapped.
fn work(patient: &mut Patient<'_>, swapper: &Swapper, until: Instant) -> Result<()> {
    let mut client = patient.workspace.server(Settings::any(patient.rng))?;
    while Instant::now() < until && !patient.workspace.is_spoilt() {
        let change = {
            let _still = swapper.hold_still()?;
            patient.ready(&mut client)
        };
        let Some(change) = change else { break };
        for (tool, arguments) in looks() {
            look(patient.workspace, &mut client, tool, &arguments);
        }
        let reply = client.call(change.tool, &change.arguments);
        if let Reply::Done(answer) | Reply::Refused(answer) = &reply {
            check_answer(patient.workspace, change.tool, &answer.text);
        }
        let _still = swapper.hold_still()?;
        patient.compare(&change, &reply);
    }
    client.end();
    Ok(())
}

fn looks() -> [(&'static str, Value); 5] {
    [
        ("read_file", json!({ "path": "ring/u.txt" })),
        ("read_file", json!({ "path": "ring/secret.txt" })),
        ("search_files", json!({ "pattern": SECRET })),
        ("search_files", json!({ "pattern": "outside", "path": "ring" })),
        ("list_files", json!({})),
    ]
}

fn look(workspace: &TestWorkspace, client: &mut Client<'_>, tool: &str, arguments: &Value) {
    if let Reply::Done(answer) | Reply::Refused(answer) = client.call(tool, arguments) {
        // A search without results repeats its pattern.
        let is_search = tool == "search_files" && !answer.text.contains(".txt");
        if !is_search {
            check_answer(workspace, tool, &answer.text);
        }
    }
}

fn check_answer(workspace: &TestWorkspace, tool: &str, text: &str) {
    if text.contains(&format!("{SECRET} ")) || text.contains("secret.txt\n") {
        workspace.violation(format!("{tool} read outside of the root: {text}"));
    }
}

/// A directory outside the workspace with the same file names, and a watch on all accesses to it.
struct Outside {
    files: tree::Files,
    path: PathBuf,
    witness: OwnedFd,
}

impl Outside {
    fn lay_out(workspace: &TestWorkspace, file_set: &FileSet) -> Result<Self> {
        let path = workspace.home().join("outside");
        let names = file_set.files.keys().filter_map(|path| path.strip_prefix("ring/")).chain(["secret.txt"]);
        let files = names.map(|name| (name.to_owned(), format!("{SECRET} of {name}\ncount 0\n").into_bytes())).collect();
        tree::lay_out(&path, &files)?;
        let watched = tree::directories(&path, "");
        let witness = inotify::init(inotify::CreateFlags::NONBLOCK | inotify::CreateFlags::CLOEXEC)?;
        // Closing is not watched: a process that is being started elsewhere in this program may briefly hold our files
        // open.
        let closing = inotify::WatchFlags::CLOSE_WRITE | inotify::WatchFlags::CLOSE_NOWRITE;
        let events = inotify::WatchFlags::ALL_EVENTS - closing;
        for directory in watched.iter().map(|directory| path.join(directory)).chain([path.clone()]) {
            inotify::add_watch(&witness, directory, events)?;
        }
        Ok(Self { files, path, witness })
    }

    /// Checks that nothing was opened, read or changed.
    fn check(&self, workspace: &TestWorkspace) -> io::Result<()> {
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut events = inotify::Reader::new(&self.witness, &mut buffer);
        match events.next() {
            Ok(event) => workspace.violation(format!("outside of the root: {:?} of {:?}", event.events(), event.file_name())),
            Err(rustix::io::Errno::AGAIN) => {}
            Err(errno) => return Err(errno.into()),
        }
        let found = tree::files(&self.path, "");
        if found != self.files {
            workspace.violation(format!("outside of the root: {}", tree::difference(&found, &self.files)));
        }
        Ok(())
    }
}

/// Swaps the directory with a link to the outside.
struct Swapper {
    directory: PathBuf,
    link: PathBuf,
    /// Held during a swap, and while no swap may happen.
    turn: Mutex<()>,
    over: AtomicBool,
    times: Mutex<u64>,
}

impl Swapper {
    fn new(workspace: &TestWorkspace) -> io::Result<Self> {
        let (directory, link) = (workspace.root().join("ring"), workspace.root().join("link"));
        symlink(workspace.home().join("outside"), &link)?;
        Ok(Self { directory, link, turn: Mutex::default(), over: AtomicBool::new(false), times: Mutex::default() })
    }

    fn live(&self) {
        while !self.over.load(Ordering::Relaxed) {
            {
                let _turn = self.turn.lock().expect("no holder of the lock panics");
                if self.exchange().is_ok() {
                    *self.times.lock().expect("no holder of the lock panics") += 1;
                }
            }
            sleep(Duration::from_micros(50));
        }
    }

    fn exchange(&self) -> io::Result<()> {
        Ok(renameat_with(CWD, &self.directory, CWD, &self.link, RenameFlags::EXCHANGE)?)
    }

    /// Puts the directory in its place, where it stays while the guard is held.
    fn hold_still(&self) -> io::Result<std::sync::MutexGuard<'_, ()>> {
        let turn = self.turn.lock().expect("no holder of the lock panics");
        if fs::symlink_metadata(&self.directory)?.is_symlink() {
            self.exchange()?;
        }
        Ok(turn)
    }
}
