//! Kills and races on every file system available on this machine: images on loop devices, tmpfs, an overlay, and FUSE
//! file systems, which support fewer operations. Unavailable file systems are reported with the reason.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result};
use tempfile::TempDir;

use crate::{
    Torture, kill, mounts, race,
    report::{PartOutcome, Violation},
};

/// A file system to try.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Ext4,
    Xfs,
    Btrfs,
    Tmpfs,
    Overlay,
    Bindfs,
    Fuse2fs,
}

impl Kind {
    const ALL: [Kind; 7] = [Kind::Ext4, Kind::Xfs, Kind::Btrfs, Kind::Tmpfs, Kind::Overlay, Kind::Bindfs, Kind::Fuse2fs];

    fn name(self) -> &'static str {
        match self {
            Kind::Ext4 => "ext4",
            Kind::Xfs => "xfs",
            Kind::Btrfs => "btrfs",
            Kind::Tmpfs => "tmpfs",
            Kind::Overlay => "overlay",
            Kind::Bindfs => "bindfs (FUSE)",
            Kind::Fuse2fs => "fuse2fs (FUSE)",
        }
    }

    /// Mounts the file system at `at`. Its image or lower directories are beside `at`.
    fn mount(self, at: &Path) -> Result<(), String> {
        let beside = |name: &str| at.with_file_name(name);
        let mounted = at.display().to_string();
        match self {
            Kind::Ext4 => mount_image(at, "mkfs.ext4", &["-q", "-F"]),
            Kind::Xfs => mount_image(at, "mkfs.xfs", &["-q"]),
            Kind::Btrfs => mount_image(at, "mkfs.btrfs", &["-q"]),
            Kind::Tmpfs => mounts::memory(at, "size=512m").map_err(|error| error.to_string()),
            Kind::Overlay => {
                let [lower, upper, work] = ["lower", "upper", "work"].map(beside);
                for directory in [&lower, &upper, &work] {
                    fs::create_dir(directory).map_err(|error| error.to_string())?;
                }
                let layers = format!("lowerdir={},upperdir={},workdir={}", lower.display(), upper.display(), work.display());
                mounts::tool("mount", &["-t", "overlay", "overlay", "-o", &layers, &mounted])
            }
            Kind::Bindfs => {
                let behind = beside("behind");
                fs::create_dir(&behind).map_err(|error| error.to_string())?;
                mounts::tool("bindfs", &[&behind.display().to_string(), &mounted])
            }
            Kind::Fuse2fs => {
                let image = make_image(at, "mkfs.ext4", &["-q", "-F"])?;
                mounts::tool("fuse2fs", &[&image.display().to_string(), &mounted, "-o", "fakeroot,rw"])
            }
        }
    }
}

/// Makes an image beside the directory, with a file system in it.
fn make_image(at: &Path, program: &str, arguments: &[&str]) -> Result<PathBuf, String> {
    let image = at.with_file_name("image");
    let file = File::create(&image).map_err(|error| error.to_string())?;
    // A sparse file, which takes only the space that is written. This is the smallest size that xfs allows.
    file.set_len(512 << 20).map_err(|error| error.to_string())?;
    mounts::tool(program, &[arguments, &[&image.display().to_string()]].concat())?;
    Ok(image)
}

fn mount_image(at: &Path, program: &str, arguments: &[&str]) -> Result<(), String> {
    let image = make_image(at, program, arguments)?;
    mounts::tool("mount", &["-o", "loop", &image.display().to_string(), &at.display().to_string()])
}

pub(crate) fn run(torture: &Torture, name: &str) -> Result<Vec<PartOutcome>> {
    let mut outcomes = Vec::new();
    for kind in Kind::ALL {
        let tried = mounts::in_private(|may_mount| try_out(torture, kind, may_mount))?;
        outcomes.extend(tried.unwrap_or_else(|why| {
            let mut outcome = PartOutcome::new(&format!("{name}: {}", kind.name()));
            outcome.skip(why);
            vec![outcome]
        }));
    }
    Ok(outcomes)
}

/// Kills and races on one file system, or reports why it is unavailable.
fn try_out(torture: &Torture, kind: Kind, may_mount: Result<(), String>) -> Result<Result<Vec<PartOutcome>, String>> {
    if let Err(why) = may_mount {
        return Ok(Err(why));
    }
    let home = tempfile::Builder::new().prefix("surehand-torture-mount-").tempdir_in(&torture.dir);
    let home = home.with_context(|| torture.dir.display().to_string())?;
    let at = home.path().join("mounted");
    fs::create_dir(&at).with_context(|| at.display().to_string())?;
    if let Err(why) = kind.mount(&at) {
        return Ok(Err(why));
    }
    let time = torture.time / (2 * Kind::ALL.len() as u32);
    let there = Torture { dir: at.clone(), time, ..torture.clone() };
    let outcomes = kill::run(&there, &format!("kill on {}", kind.name())).and_then(|killed| {
        let raced = race::run(&there, &format!("race on {}", kind.name()))?;
        Ok(vec![killed, raced])
    });
    let outcomes = outcomes.map(|mut outcomes| {
        let violations = outcomes.iter_mut().flat_map(|outcome| &mut outcome.violations);
        violations.for_each(|violation| bring_out(violation, &torture.dir));
        outcomes
    });
    mounts::leave(&at).with_context(|| at.display().to_string())?;
    remove(home);
    outcomes.map(Ok)
}

/// Copies the workspace of a violation out of the mount.
fn bring_out(violation: &mut Violation, dir: &Path) {
    let to = dir.join(violation.kept.file_name().unwrap_or_default());
    if to.exists() || Command::new("cp").arg("-a").arg(&violation.kept).arg(&to).status().is_ok_and(|status| status.success()) {
        violation.kept = to;
    }
}

/// Removes the files beside the mount, with retries: a FUSE daemon may hold them for a moment.
fn remove(home: TempDir) {
    let path = home.keep();
    for _ in 0..50 {
        if fs::remove_dir_all(&path).is_ok() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}
