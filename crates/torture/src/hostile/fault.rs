//! Faults that begin and end while a server runs.

use std::{
    fs::{self, File, Permissions},
    io::{self, Write},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Result, ensure};
use rustix::process::{Pid, Resource, Rlimit, geteuid, prlimit};
use surehand_testkit::{rng::Rng, state_of};

use crate::{Torture, mounts, test_workspace::TestWorkspace, tree};

/// The user `nobody`, who is bound by file modes.
const NOBODY: u32 = 65_534;

/// A kind of fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// No space is left, not even for the state directory.
    FullDisk,
    /// No file can be created.
    NoInodes,
    /// No file can grow.
    NoGrowth,
    /// The file system with the files is read-only.
    ReadOnly,
    /// Permissions of files, directories and the state are revoked.
    NoRights,
    /// The state directory is removed.
    NoState,
}

impl Kind {
    pub(super) const ALL: [Kind; 6] =
        [Kind::FullDisk, Kind::NoInodes, Kind::NoGrowth, Kind::ReadOnly, Kind::NoRights, Kind::NoState];

    /// The name in reports.
    pub(super) fn name(self) -> &'static str {
        match self {
            Kind::FullDisk => "full disk",
            Kind::NoInodes => "no inodes",
            Kind::NoGrowth => "no growth",
            Kind::ReadOnly => "read-only",
            Kind::NoRights => "no rights",
            Kind::NoState => "no state",
        }
    }

    /// Why this machine cannot produce the fault.
    pub(super) fn obstacle(self, may_mount: &Result<(), String>, torture: &Torture) -> Option<String> {
        match self {
            Kind::FullDisk | Kind::NoInodes | Kind::ReadOnly => may_mount.as_ref().err().cloned(),
            Kind::NoRights if geteuid().is_root() => {
                let (first, rest) = as_nobody();
                let version = Command::new(first).args(rest).arg(&torture.program).arg("--version").output();
                let runs = version.is_ok_and(|output| output.status.success());
                (!runs).then(|| "the program cannot be run as nobody, and root has all rights".to_owned())
            }
            Kind::NoGrowth | Kind::NoRights | Kind::NoState => None,
        }
    }

    /// Where the files are.
    pub(super) fn directory(self) -> &'static str {
        if self == Kind::ReadOnly { "mounted/ring" } else { "ring" }
    }

    /// Prepares the workspace for the fault.
    pub(super) fn prepare(self, workspace: &mut TestWorkspace) -> Result<()> {
        match self {
            Kind::FullDisk => mounts::memory(&workspace.root(), "size=4m")?,
            Kind::NoInodes => mounts::memory(&workspace.root(), "size=16m,nr_inodes=400")?,
            Kind::ReadOnly => {
                let at = workspace.root().join("mounted");
                fs::create_dir(&at)?;
                mounts::memory(&at, "size=16m")?;
            }
            Kind::NoGrowth => {
                // The signal that accompanies the error would end the program.
                workspace.wrapper = ["sh", "-c", "trap '' XFSZ; exec \"$0\" \"$@\""].map(str::to_owned).into();
            }
            Kind::NoRights if geteuid().is_root() => {
                let (first, rest) = as_nobody();
                workspace.wrapper = [&[first][..], &rest].concat().into_iter().map(str::to_owned).collect();
            }
            Kind::NoRights | Kind::NoState => {}
        }
        Ok(())
    }

    /// Unmounts the mounted file systems. If there is a violation, a copy of the files is kept.
    pub(super) fn leave(self, workspace: &TestWorkspace) -> Result<()> {
        let mounted = match self {
            Kind::FullDisk | Kind::NoInodes => workspace.root(),
            Kind::ReadOnly => workspace.root().join("mounted"),
            Kind::NoGrowth | Kind::NoRights | Kind::NoState => return Ok(()),
        };
        if workspace.is_spoilt() {
            Command::new("cp").arg("-a").arg(&mounted).arg(workspace.home().join("copy")).status()?;
        }
        Ok(mounts::leave(&mounted)?)
    }

    /// Gives the files to the user that the server runs as.
    pub(super) fn hand_over(self, workspace: &TestWorkspace) -> Result<()> {
        if self == Kind::NoRights && geteuid().is_root() {
            let owner = format!("{NOBODY}:{NOBODY}");
            ensure!(Command::new("chown").args(["-R", &owner]).arg(workspace.home()).status()?.success(), "chown");
        }
        Ok(())
    }
}

fn as_nobody() -> (&'static str, [&'static str; 3]) {
    ("setpriv", ["--reuid=65534", "--regid=65534", "--clear-groups"])
}

/// A fault in progress, with the data to end it.
pub(super) enum Fault {
    /// Files that fill the space.
    Filled(PathBuf),
    /// A process whose limit is lifted at the end.
    Limited(Pid),
    /// A file system that becomes writable again.
    Remounted(PathBuf),
    /// A path that gets its mode back.
    Changed(PathBuf, Permissions),
    /// Nothing has to be undone.
    Passed,
}

impl Fault {
    /// Begins a fault. On an error nothing has changed.
    pub(super) fn begin(kind: Kind, workspace: &TestWorkspace, server: Pid, rng: &mut Rng) -> io::Result<Self> {
        let root = workspace.root();
        match kind {
            Kind::FullDisk => {
                let filler = root.join("filler");
                fill(&filler, rng)?;
                Ok(Self::Filled(filler))
            }
            Kind::NoInodes => {
                let filler = root.join("filler");
                fs::create_dir(&filler)?;
                while File::create(filler.join(count(&filler).to_string())).is_ok() {}
                for number in 0..*rng.pick(&[0, 1, 2, 5]) {
                    fs::remove_file(filler.join(number.to_string()))?;
                }
                Ok(Self::Filled(filler))
            }
            Kind::NoGrowth => {
                limit(server, Some(*rng.pick(&[0, 100, 4_096, 50_000])))?;
                Ok(Self::Limited(server))
            }
            Kind::ReadOnly => {
                let at = root.join("mounted");
                mounts::set_read_only(&at, true)?;
                Ok(Self::Remounted(at))
            }
            Kind::NoRights => take_rights(workspace, rng),
            Kind::NoState => {
                let state = root.join(".git/surehand");
                let part = *rng.pick(&["", "checkouts", "state.db", "checkouts/main", "staged", "journal", "locks"]);
                let is_part = ["staged", "journal", "locks"].contains(&part);
                let gone = if is_part { state_of(&root).join(part) } else { state.join(part) };
                if gone.is_dir() {
                    fs::remove_dir_all(gone)?
                } else {
                    fs::remove_file(gone)?
                }
                Ok(Self::Passed)
            }
        }
    }

    pub(super) fn end(self, workspace: &TestWorkspace) -> io::Result<()> {
        match self {
            Self::Filled(filler) if filler.is_dir() => fs::remove_dir_all(filler),
            Self::Filled(filler) => fs::remove_file(filler),
            // A process that was killed meanwhile has no limits.
            Self::Limited(server) => limit(server, None).or(Ok(())),
            Self::Remounted(at) => mounts::set_read_only(&at, false),
            Self::Changed(path, mode) => {
                // A file may have been moved with its mode, or an empty directory removed.
                let _ = fs::set_permissions(path, mode);
                give_rights(&workspace.root().join("ring"))
            }
            Self::Passed => Ok(()),
        }
    }
}

/// Writes until nothing more fits, then frees a little space.
fn fill(filler: &Path, rng: &mut Rng) -> io::Result<()> {
    let mut file = File::create(filler)?;
    let block = [b'x'; 4096];
    while file.write_all(&block).is_ok() {}
    let size = file.metadata()?.len();
    let spare = *rng.pick(&[0, 0, 4_096, 16_384, 65_536, 262_144]);
    file.set_len(size.saturating_sub(spare))
}

fn count(directory: &Path) -> usize {
    fs::read_dir(directory).map_or(0, Iterator::count)
}

fn limit(server: Pid, bytes: Option<u64>) -> io::Result<()> {
    let maximum = rustix::process::getrlimit(Resource::Fsize).maximum;
    prlimit(Some(server), Resource::Fsize, Rlimit { current: bytes.or(maximum), maximum })?;
    Ok(())
}

/// Revokes the permissions of a random file, directory or part of the state.
fn take_rights(workspace: &TestWorkspace, rng: &mut Rng) -> io::Result<Fault> {
    let root = workspace.root();
    let mut places: Vec<PathBuf> = ["", "staged", "journal", "locks"].map(|part| state_of(&root).join(part)).into();
    let files: Vec<PathBuf> = tree::files(&root, "ring").keys().map(|path| root.join(path)).collect();
    let directories: Vec<PathBuf> = tree::directories(&root, "ring").iter().map(|path| root.join(path)).collect();
    places.extend([root.join("ring"), rng.pick(&files).clone(), rng.pick(&files).clone(), rng.pick(&directories).clone()]);
    let place = rng.pick(&places).clone();
    let mode = fs::metadata(&place)?.permissions();
    fs::set_permissions(&place, Permissions::from_mode(*rng.pick(&[0o000, 0o444, 0o555])))?;
    Ok(Fault::Changed(place, mode))
}

/// Restores the usual permissions of everything in a directory.
fn give_rights(directory: &Path) -> io::Result<()> {
    fs::set_permissions(directory, Permissions::from_mode(0o755))?;
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            give_rights(&entry.path())?;
        } else {
            fs::set_permissions(entry.path(), Permissions::from_mode(0o644))?;
        }
    }
    Ok(())
}
