//! Another program changes the mode, group or attributes of a file at any instant of an edit. Both the edit and that
//! change must survive, even if the server is killed.

use std::{
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::Path,
    thread::{self, sleep},
    time::{Duration, Instant},
};

use anyhow::Result;
use rustix::fs::XattrFlags;
use serde_json::json;
use surehand_testkit::rng::Rng;

use crate::{
    Torture,
    client::Reply,
    report::{PartOutcome, Tally},
    test_workspace::{Settings, TestWorkspace},
};

/// The number of edits in one workspace.
const PAIRS: usize = 100;
/// How long a late change may take: it is carried over when the old file is checked again.
const PATIENCE: Duration = Duration::from_secs(20);
const FILE: &str = "a.txt";

pub(crate) fn run(torture: &Torture, name: &str) -> Result<PartOutcome> {
    torture.rounds(name, |round, rng, outcome| {
        let workspace = TestWorkspace::set(torture, name, round)?;
        fs::write(workspace.root().join(FILE), "count 0\n")?;
        let mut count = 0;
        while count < PAIRS && !workspace.is_spoilt() {
            count = live(&workspace, count, rng, &mut outcome.tally)?;
        }
        workspace.close(outcome);
        Ok(())
    })
}

/// Lets a server make edits until it is killed or has made enough. Returns the number of the last edit that is in the
/// file.
fn live(workspace: &TestWorkspace, mut count: usize, rng: &mut Rng, tally: &mut Tally) -> Result<usize> {
    let path = workspace.root().join(FILE);
    let settings = Settings::any(rng);
    let mut client = workspace.server(settings)?;
    client.call("read_file", &json!({ "path": FILE }));
    while count < PAIRS && !workspace.is_spoilt() {
        let change = Change::any(count, rng);
        let edit =
            json!({ "path": FILE, "old_string": format!("count {count}\n"), "new_string": format!("count {}\n", count + 1) });
        let (before, kill_after) = (wait(rng), rng.percent(5).then(|| wait(rng)));
        tally.foreign += 1;
        let reply = thread::scope(|scope| {
            scope.spawn(|| {
                sleep(before);
                change.make(&path);
            });
            match kill_after {
                Some(time) => client.call_and_kill("edit_file", &edit, || sleep(time)),
                None => client.call("edit_file", &edit),
            }
        });
        match &reply {
            Reply::Done(_) => tally.acknowledged += 1,
            Reply::Refused(answer) => workspace.violation(format!("an edit was refused beside {change:?}: {}", answer.text)),
            Reply::Unknown => tally.unanswered += 1,
        }
        if kill_after.is_some() {
            tally.kills += 1;
            workspace.clean_start(settings)?;
        }
        if !change.stays(&path) {
            workspace.violation(format!("lost beside edit {count} ({reply:?}): {change:?}"));
        }
        count = fs::read_to_string(&path)?.trim().trim_start_matches("count ").parse()?;
        if kill_after.is_some() {
            return Ok(count);
        }
    }
    client.end();
    Ok(count)
}

fn wait(rng: &mut Rng) -> Duration {
    Duration::from_micros(rng.within(0..4_000) as u64)
}

/// The act of the other program.
#[derive(Debug, Clone, Copy)]
enum Change {
    Mode(u32),
    Group(u32),
    Attribute(usize),
}

impl Change {
    /// Each change differs from the previous one, so that a lost change shows.
    fn any(number: usize, rng: &mut Rng) -> Self {
        let changes = [
            Self::Mode([0o644, 0o755, 0o600, 0o640][number % 4]),
            Self::Attribute(number),
            // Only root may choose any group.
            Self::Group(1000 + number as u32 % 7),
        ];
        *rng.pick(&changes[..if rustix::process::geteuid().is_root() { 3 } else { 2 }])
    }

    fn make(self, path: &Path) {
        // By name, as programs do it.
        match self {
            Self::Mode(mode) => drop(fs::set_permissions(path, fs::Permissions::from_mode(mode))),
            Self::Group(group) => drop(std::os::unix::fs::chown(path, None, Some(group))),
            Self::Attribute(value) => {
                let _ = rustix::fs::setxattr(path, "user.torture", value.to_string().as_bytes(), XattrFlags::empty());
            }
        }
    }

    fn stays(self, path: &Path) -> bool {
        let until = Instant::now() + PATIENCE;
        loop {
            let is_there = match self {
                Self::Mode(mode) => fs::metadata(path).is_ok_and(|now| now.mode() & 0o777 == mode),
                Self::Group(group) => fs::metadata(path).is_ok_and(|now| now.gid() == group),
                Self::Attribute(value) => attribute(path).is_none_or(|now| now == value.to_string().as_bytes()),
            };
            if is_there || Instant::now() > until {
                return is_there;
            }
            sleep(Duration::from_millis(5));
        }
    }
}

/// The value of the attribute; `None` if the file does not have it.
fn attribute(path: &Path) -> Option<Vec<u8>> {
    let mut value = vec![0; 32];
    match rustix::fs::getxattr(path, "user.torture", &mut value[..]) {
        Ok(length) => value.truncate(length),
        Err(rustix::io::Errno::OPNOTSUPP) => return None,
        Err(_) => value.clear(),
    }
    Some(value)
}
