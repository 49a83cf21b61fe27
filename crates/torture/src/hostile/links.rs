//! A directory that becomes a link to somewhere outside, and a directory again, as fast as it can, while a server works in it.
//! Nothing outside is read or written, and the system itself is the witness: it tells who opens anything there.

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
use surehand_testkit::dice::Dice;

use super::Patient;
use crate::{
    account::Outcome,
    client::{Client, Reply},
    ring::Ring,
    scene::{Scene, Settings},
    tree,
};

/// What is in the files outside, and must not be in any answer.
const SECRET: &str = "what-is-outside";

/// Runs it.
pub(super) fn run(scene: Scene, dice: &mut Dice, length: Duration, outcome: &mut Outcome) -> Result<()> {
    let ring = Ring::lay_out(&scene.root(), "ring", dice).with_context(|| scene.root().display().to_string())?;
    let outside = Outside::lay_out(&scene, &ring)?;
    let swapper = Swapper::new(&scene)?;
    let mut patient = Patient { scene: &scene, ring, dice, tally: &mut outcome.tally };
    scope(|threads| {
        threads.spawn(|| swapper.live());
        let worked = work(&mut patient, &swapper, Instant::now() + length);
        swapper.over.store(true, Ordering::Relaxed);
        worked
    })?;
    outcome.tally.foreign += swapper.times.into_inner().expect("nobody panics while counting");
    outside.check(&scene)?;
    scene.close(outcome);
    Ok(())
}

/// Reads, searches and changes, with the links coming and going.
fn work(patient: &mut Patient<'_>, swapper: &Swapper, until: Instant) -> Result<()> {
    let mut client = patient.scene.server(Settings::any(patient.dice))?;
    while Instant::now() < until && !patient.scene.is_spoilt() {
        let turn = {
            let _still = swapper.hold_still()?;
            patient.ready(&mut client)
        };
        let Some(turn) = turn else { break };
        for (tool, arguments) in looks() {
            look(patient.scene, &mut client, tool, &arguments);
        }
        let reply = client.call(turn.tool, &turn.arguments);
        if let Reply::Done(answer) | Reply::Refused(answer) = &reply {
            check_answer(patient.scene, turn.tool, &answer.text);
        }
        let _still = swapper.hold_still()?;
        patient.compare(&turn, &reply);
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

fn look(scene: &Scene, client: &mut Client<'_>, tool: &str, arguments: &Value) {
    if let Reply::Done(answer) | Reply::Refused(answer) = client.call(tool, arguments) {
        // A search that finds nothing repeats what was sought.
        let is_search = tool == "search_files" && !answer.text.contains(".txt");
        if !is_search {
            check_answer(scene, tool, &answer.text);
        }
    }
}

fn check_answer(scene: &Scene, tool: &str, text: &str) {
    if text.contains(&format!("{SECRET} ")) || text.contains("secret.txt\n") {
        scene.violation(format!("{tool} read outside of the root: {text}"));
    }
}

/// A directory outside of the workspace with the same names in it, and a witness of all that is done there.
struct Outside {
    files: tree::Files,
    path: PathBuf,
    witness: OwnedFd,
}

impl Outside {
    fn lay_out(scene: &Scene, ring: &Ring) -> Result<Self> {
        let path = scene.home().join("outside");
        let names = ring.files.keys().filter_map(|path| path.strip_prefix("ring/")).chain(["secret.txt"]);
        let files = names.map(|name| (name.to_owned(), format!("{SECRET} of {name}\ncount 0\n").into_bytes())).collect();
        tree::lay_out(&path, &files)?;
        let watched = tree::directories(&path, "");
        let witness = inotify::init(inotify::CreateFlags::NONBLOCK | inotify::CreateFlags::CLOEXEC)?;
        // Not of closing: a process that is being started elsewhere in this program may hold for an instant what we wrote here.
        let closing = inotify::WatchFlags::CLOSE_WRITE | inotify::WatchFlags::CLOSE_NOWRITE;
        let events = inotify::WatchFlags::ALL_EVENTS - closing;
        for directory in watched.iter().map(|directory| path.join(directory)).chain([path.clone()]) {
            inotify::add_watch(&witness, directory, events)?;
        }
        Ok(Self { files, path, witness })
    }

    /// Nobody has opened, read or changed anything.
    fn check(&self, scene: &Scene) -> io::Result<()> {
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut events = inotify::Reader::new(&self.witness, &mut buffer);
        match events.next() {
            Ok(event) => scene.violation(format!("outside of the root: {:?} of {:?}", event.events(), event.file_name())),
            Err(rustix::io::Errno::AGAIN) => {}
            Err(errno) => return Err(errno.into()),
        }
        let found = tree::files(&self.path, "");
        if found != self.files {
            scene.violation(format!("outside of the root: {}", tree::difference(&found, &self.files)));
        }
        Ok(())
    }
}

/// Exchanges the directory and a link to the outside.
struct Swapper {
    directory: PathBuf,
    link: PathBuf,
    /// Held while an exchange is made, or while none may be.
    turn: Mutex<()>,
    over: AtomicBool,
    times: Mutex<u64>,
}

impl Swapper {
    fn new(scene: &Scene) -> io::Result<Self> {
        let (directory, link) = (scene.root().join("ring"), scene.root().join("link"));
        symlink(scene.home().join("outside"), &link)?;
        Ok(Self { directory, link, turn: Mutex::default(), over: AtomicBool::new(false), times: Mutex::default() })
    }

    fn live(&self) {
        while !self.over.load(Ordering::Relaxed) {
            {
                let _turn = self.turn.lock().expect("nobody panics while it is held");
                if self.exchange().is_ok() {
                    *self.times.lock().expect("nobody panics while counting") += 1;
                }
            }
            sleep(Duration::from_micros(50));
        }
    }

    fn exchange(&self) -> io::Result<()> {
        Ok(renameat_with(CWD, &self.directory, CWD, &self.link, RenameFlags::EXCHANGE)?)
    }

    /// The directory is where it belongs, and stays there while this is held.
    fn hold_still(&self) -> io::Result<std::sync::MutexGuard<'_, ()>> {
        let turn = self.turn.lock().expect("nobody panics while it is held");
        if fs::symlink_metadata(&self.directory)?.is_symlink() {
            self.exchange()?;
        }
        Ok(turn)
    }
}
