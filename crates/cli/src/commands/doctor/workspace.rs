//! The workspace: its settings, its state, and what the system gives it.

use std::{
    fs::{self, File},
    io,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
};

use rustix::fs::{Access, CWD, RenameFlags, access, renameat_with, statvfs};
use surehand_engine::{
    Trouble, Watch, Workspace,
    core::render::{count, notice::notice},
};

use super::{Check, State};
use crate::place;

/// Less room than this is too little for comfort.
const ROOM: u64 = 100 << 20;

pub fn check(root: &Path) -> Vec<Check> {
    let mut checks = vec![Check::new("workspace", State::Ok, root.display().to_string())];
    checks.extend(settings(root));
    let state = root.join(".surehand");
    if state.is_dir() {
        checks.push(permissions(&state));
        checks.extend(opens(root, &state));
    } else {
        checks.push(not_yet(root));
    }
    checks.push(room(root));
    checks.push(watching(root));
    checks
}

/// What is wrong with the user's settings, or what the repository's file says in vain.
fn settings(root: &Path) -> Vec<Check> {
    let config = match place::settings(root) {
        Ok(config) => config,
        Err(error) => {
            let check = Check::new("settings", State::Fail, format!("{error:#}"));
            return vec![check.remedy("correct it; nothing works until then")];
        }
    };
    if config.ignored.is_empty() {
        let has_file = root.join("surehand.toml").exists();
        let what = if has_file { "surehand.toml is valid" } else { "the defaults; there is no surehand.toml" };
        return vec![Check::new("settings", State::Ok, what)];
    }
    let remedy = "correct it there, or set it in ~/.config/surehand/surehand.toml or in the environment";
    let warn = |what| Check::new("settings", State::Warn, what).remedy(remedy);
    place::ignored_settings(&config).into_iter().map(warn).collect()
}

fn not_yet(root: &Path) -> Check {
    match access(root, Access::WRITE_OK) {
        Ok(()) => Check::new("state", State::Ok, "none yet; .surehand is made when it is first needed"),
        Err(error) => Check::new("state", State::Fail, format!(".surehand cannot be made: {}", io::Error::from(error)))
            .remedy(format!("make {} writable", root.display())),
    }
}

fn permissions(state: &Path) -> Check {
    let Ok(there) = fs::metadata(state) else { return Check::new("permissions", State::Fail, ".surehand cannot be looked at") };
    let mode = there.permissions().mode() & 0o777;
    if there.uid() != rustix::process::geteuid().as_raw() {
        let what = format!(".surehand belongs to user {}", there.uid());
        return Check::new("permissions", State::Warn, what).remedy("work as that user, or remove .surehand when nothing runs");
    }
    match mode & 0o077 {
        0 => Check::new("permissions", State::Ok, ".surehand is for its owner only"),
        _ => Check::new("permissions", State::Warn, format!("others can look into .surehand (mode {mode:o})"))
            .remedy(format!("chmod 700 {}", state.display())),
    }
}

/// Opens the state, which puts in order what a crash has left.
fn opens(root: &Path, state: &Path) -> Vec<Check> {
    let workspace = match place::open_above(root) {
        Ok(workspace) => workspace,
        Err(error) => {
            let remedy = "see above; if .surehand is damaged it may be removed when nothing runs, and everything is read again";
            return vec![Check::new("state", State::Fail, format!("{error:#}")).remedy(remedy)];
        }
    };
    let size = fs::metadata(state.join("state.db")).map_or(0, |file| file.len());
    let mut checks = vec![Check::new("state", State::Ok, format!("opens ({:.1} MB)", size as f64 / 1e6))];
    checks.extend(workspace.take_notices().iter().map(|told| Check::new("state", State::Warn, notice(told))));
    checks.push(exchange(&state.join("staged")));
    checks.extend(leftovers(&workspace, state));
    checks
}

/// Whether two files can change places in one step, tried out.
fn exchange(directory: &Path) -> Check {
    let tried = || {
        let [one, other] = [tempfile::NamedTempFile::new_in(directory)?, tempfile::NamedTempFile::new_in(directory)?];
        renameat_with(CWD, one.path(), CWD, other.path(), RenameFlags::EXCHANGE).map_err(io::Error::from)
    };
    match tried() {
        Ok(()) => Check::new("exchange", State::Ok, "the file system can exchange two files in one step"),
        Err(error) => Check::new("exchange", State::Warn, format!("the file system cannot exchange two files: {error}"))
            .remedy("nothing, or move the project; files are renamed over instead, and each reply says so"),
    }
}

fn leftovers(workspace: &Workspace, state: &Path) -> Vec<Check> {
    let mut checks = Vec::new();
    let rescued = names(&state.join("rescued"));
    if !rescued.is_empty() {
        let what = format!("{} with what others wrote into a file while it was replaced", count(rescued.len(), "rescued file"));
        checks.push(
            Check::new("leftovers", State::Warn, what)
                .remedy("look at .surehand/rescued, take what you need, and delete the rest"),
        );
    }
    let damaged = names(state).into_iter().filter(|path| path.to_string_lossy().contains(".damaged-")).count();
    if damaged > 0 {
        let what = format!("{} set aside as .surehand/state.db.damaged-…", count(damaged, "damaged state"));
        checks.push(Check::new("leftovers", State::Note, what));
    }
    // The one of this process, if it has any, is locked like those of others that live.
    let is_dead = |path: &PathBuf| File::open(path).is_ok_and(|journal| journal.try_lock().is_ok());
    let journals = names(&state.join("journal")).iter().filter(|path| is_dead(path)).count();
    if journals > 0 {
        let what = format!("{} of processes that died, with files that could not be settled", count(journals, "journal"));
        checks.push(
            Check::new("leftovers", State::Warn, what)
                .remedy("close the programs that have those files open, and run this again"),
        );
    }
    if checks.is_empty() {
        checks.push(Check::new("leftovers", State::Ok, format!("none in {}/.surehand", workspace.root().path().display())));
    }
    checks
}

fn names(directory: &Path) -> Vec<PathBuf> {
    fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

fn room(root: &Path) -> Check {
    let free = statvfs(root).map(|system| system.f_bavail.saturating_mul(system.f_frsize));
    match free {
        Err(error) => Check::new("room", State::Note, format!("unknown: {}", io::Error::from(error))),
        Ok(free) if free < ROOM => {
            Check::new("room", State::Warn, format!("{} MB free", free >> 20)).remedy("make room on the disk")
        }
        Ok(_) => Check::new("room", State::Ok, "enough on the disk"),
    }
}

/// Whether changes can be watched, tried out.
fn watching(root: &Path) -> Check {
    let watch = Watch::start(root);
    watch.wait();
    let Some(trouble) = watch.trouble() else { return Check::new("watching", State::Ok, "changes of files are heard of") };
    let check = Check::new("watching", State::Note, format!("{trouble}; files are looked at call by call instead"));
    match trouble {
        Trouble::NoWatchLeft => Check { state: State::Warn, ..check }.remedy("sysctl fs.inotify.max_user_watches=524288"),
        Trouble::NoWatcherLeft => Check { state: State::Warn, ..check }.remedy("sysctl fs.inotify.max_user_instances=512"),
        _ => check,
    }
}
