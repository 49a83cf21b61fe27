//! The kinds of trouble that begin and end while a server runs.

use std::{
    fs::{self, File, Permissions},
    io::{self, Write},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Result, ensure};
use rustix::process::{Pid, Resource, Rlimit, geteuid, prlimit};
use surehand_testkit::{dice::Dice, state_of};

use crate::{Torture, mounts, scene::Scene, tree};

/// Nobody, who has no more rights than the modes give.
const NOBODY: u32 = 65_534;

/// A kind of trouble.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// No space is left, in the state directory neither.
    FullDisk,
    /// No file can be made.
    NoInodes,
    /// No file can grow.
    NoGrowth,
    /// The file system with the files is read-only.
    ReadOnly,
    /// Rights are taken from files, directories and the state.
    NoRights,
    /// The state directory is gone.
    NoState,
}

impl Kind {
    /// All of them.
    pub(super) const ALL: [Kind; 6] =
        [Kind::FullDisk, Kind::NoInodes, Kind::NoGrowth, Kind::ReadOnly, Kind::NoRights, Kind::NoState];

    /// For reports.
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

    /// Why it cannot be made here.
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

    /// Makes the workspace one that can get into this trouble.
    pub(super) fn prepare(self, scene: &mut Scene) -> Result<()> {
        match self {
            Kind::FullDisk => mounts::memory(&scene.root(), "size=4m")?,
            Kind::NoInodes => mounts::memory(&scene.root(), "size=16m,nr_inodes=400")?,
            Kind::ReadOnly => {
                let at = scene.root().join("mounted");
                fs::create_dir(&at)?;
                mounts::memory(&at, "size=16m")?;
            }
            Kind::NoGrowth => {
                // The signal that comes with the error would end the program.
                scene.wrapper = ["sh", "-c", "trap '' XFSZ; exec \"$0\" \"$@\""].map(str::to_owned).into();
            }
            Kind::NoRights if geteuid().is_root() => {
                let (first, rest) = as_nobody();
                scene.wrapper = [&[first][..], &rest].concat().into_iter().map(str::to_owned).collect();
            }
            Kind::NoRights | Kind::NoState => {}
        }
        Ok(())
    }

    /// Unmounts what was mounted. If something went wrong, a copy is left for whoever looks into it.
    pub(super) fn leave(self, scene: &Scene) -> Result<()> {
        let mounted = match self {
            Kind::FullDisk | Kind::NoInodes => scene.root(),
            Kind::ReadOnly => scene.root().join("mounted"),
            Kind::NoGrowth | Kind::NoRights | Kind::NoState => return Ok(()),
        };
        if scene.is_spoilt() {
            Command::new("cp").arg("-a").arg(&mounted).arg(scene.home().join("copy")).status()?;
        }
        Ok(mounts::leave(&mounted)?)
    }

    /// Gives the files to whom the server runs as.
    pub(super) fn hand_over(self, scene: &Scene) -> Result<()> {
        if self == Kind::NoRights && geteuid().is_root() {
            let owner = format!("{NOBODY}:{NOBODY}");
            ensure!(Command::new("chown").args(["-R", &owner]).arg(scene.home()).status()?.success(), "chown");
        }
        Ok(())
    }
}

fn as_nobody() -> (&'static str, [&'static str; 3]) {
    ("setpriv", ["--reuid=65534", "--regid=65534", "--clear-groups"])
}

/// Trouble that has begun, and how it ends.
pub(super) enum Trouble {
    /// Files that take up what there was.
    Filled(PathBuf),
    /// A process that may write again without limit.
    Limited(Pid),
    /// A file system that is writable again.
    Remounted(PathBuf),
    /// Something with the mode that it had.
    Changed(PathBuf, Permissions),
    /// Nothing is to be done.
    Passed,
}

impl Trouble {
    /// Makes trouble for a server. What cannot be made at this instant is an error, and nothing has changed.
    pub(super) fn begin(kind: Kind, scene: &Scene, server: Pid, dice: &mut Dice) -> io::Result<Self> {
        let root = scene.root();
        match kind {
            Kind::FullDisk => {
                let filler = root.join("filler");
                fill(&filler, dice)?;
                Ok(Self::Filled(filler))
            }
            Kind::NoInodes => {
                let filler = root.join("filler");
                fs::create_dir(&filler)?;
                while File::create(filler.join(count(&filler).to_string())).is_ok() {}
                for number in 0..*dice.pick(&[0, 1, 2, 5]) {
                    fs::remove_file(filler.join(number.to_string()))?;
                }
                Ok(Self::Filled(filler))
            }
            Kind::NoGrowth => {
                limit(server, Some(*dice.pick(&[0, 100, 4_096, 50_000])))?;
                Ok(Self::Limited(server))
            }
            Kind::ReadOnly => {
                let at = root.join("mounted");
                mounts::set_read_only(&at, true)?;
                Ok(Self::Remounted(at))
            }
            Kind::NoRights => take_rights(scene, dice),
            Kind::NoState => {
                let state = root.join(".git/surehand");
                let part = *dice.pick(&["", "checkouts", "state.db", "checkouts/main", "staged", "journal", "locks"]);
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

    /// Ends it.
    pub(super) fn end(self, scene: &Scene) -> io::Result<()> {
        match self {
            Self::Filled(filler) if filler.is_dir() => fs::remove_dir_all(filler),
            Self::Filled(filler) => fs::remove_file(filler),
            // A process that was killed meanwhile has no limits.
            Self::Limited(server) => limit(server, None).or(Ok(())),
            Self::Remounted(at) => mounts::set_read_only(&at, false),
            Self::Changed(path, mode) => {
                // A file may have been moved, with the mode that it had, or a directory removed that became empty.
                let _ = fs::set_permissions(path, mode);
                give_rights(&scene.root().join("ring"))
            }
            Self::Passed => Ok(()),
        }
    }
}

/// Writes until nothing more fits, then gives a little back.
fn fill(filler: &Path, dice: &mut Dice) -> io::Result<()> {
    let mut file = File::create(filler)?;
    let block = [b'x'; 4096];
    while file.write_all(&block).is_ok() {}
    let size = file.metadata()?.len();
    let spare = *dice.pick(&[0, 0, 4_096, 16_384, 65_536, 262_144]);
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

/// Takes the rights to a file, a directory or a part of the state.
fn take_rights(scene: &Scene, dice: &mut Dice) -> io::Result<Trouble> {
    let root = scene.root();
    let mut places: Vec<PathBuf> = ["", "staged", "journal", "locks"].map(|part| state_of(&root).join(part)).into();
    let files: Vec<PathBuf> = tree::files(&root, "ring").keys().map(|path| root.join(path)).collect();
    let directories: Vec<PathBuf> = tree::directories(&root, "ring").iter().map(|path| root.join(path)).collect();
    places.extend([root.join("ring"), dice.pick(&files).clone(), dice.pick(&files).clone(), dice.pick(&directories).clone()]);
    let place = dice.pick(&places).clone();
    let mode = fs::metadata(&place)?.permissions();
    fs::set_permissions(&place, Permissions::from_mode(*dice.pick(&[0o000, 0o444, 0o555])))?;
    Ok(Trouble::Changed(place, mode))
}

/// Gives the usual rights to everything in a directory.
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
