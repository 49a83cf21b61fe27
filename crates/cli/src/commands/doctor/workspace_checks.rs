//! Checks the settings, the state and the file system of the workspace.

use std::{
    fs::{self, File},
    io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use rustix::fs::{CWD, RenameFlags, renameat_with, statvfs};
use surehand_agent::command::{ConfinementSupport, confinement_support};
use surehand_engine::{
    EXPORT_DIR, PassedOver, RESCUED, StatePaths, WatchTrouble, Workspace,
    core::render::{count, notice::notice},
    fleet::board_place,
    try_watching,
};

use super::{Check, CheckState};
use crate::{fleet, output, workspace};

/// The name of the settings check. If it fails, hooks still work.
pub(super) const SETTINGS: &str = "settings";

/// `doctor` warns if fewer bytes than this are free.
const ROOM: u64 = 100 << 20;

pub(super) fn check(root: &Path) -> Vec<Check> {
    let mut checks = vec![Check::new("workspace", CheckState::Ok, root.display().to_string())];
    checks.extend(settings(root));
    checks.extend(state(root));
    checks.extend(not_ours(root));
    checks.push(room(root));
    checks.push(watching(root));
    checks.push(board(root));
    checks.extend(commands(root));
    checks
}

/// Errors in the user's settings, and ignored settings of the repository.
fn settings(root: &Path) -> Vec<Check> {
    let config = match workspace::settings(root) {
        Ok(config) => config,
        Err(error) => {
            let check = Check::new(SETTINGS, CheckState::Fail, format!("{error:#}"));
            return vec![check.remedy("correct it; until then hooks use the defaults, and the MCP server does not start")];
        }
    };
    if config.ignored.is_empty() {
        let has_file = root.join("surehand.toml").exists();
        let what = if has_file { "surehand.toml is valid" } else { "the defaults; there is no surehand.toml" };
        return vec![Check::new(SETTINGS, CheckState::Ok, what)];
    }
    let remedy = "correct it there, or set it in ~/.config/surehand/surehand.toml or in the environment";
    let warn = |what| Check::new(SETTINGS, CheckState::Warn, what).remedy(remedy);
    workspace::ignored_settings(&config).into_iter().map(warn).collect()
}

/// Opens the state, which recovers from crashes. Does not create it.
fn state(root: &Path) -> Vec<Check> {
    let settings = match workspace::settings_of_hooks(root) {
        Ok((settings, _)) => settings,
        Err(error) => return vec![Check::new("state", CheckState::Fail, format!("{error:#}"))],
    };
    let workspace = match Workspace::open_read_only(root, settings) {
        Ok(workspace) => workspace,
        Err(error) => {
            let remedy = "see above; state that is damaged may be removed when nothing runs, and everything is read again";
            return vec![Check::new("state", CheckState::Fail, error.to_string()).remedy(remedy)];
        }
    };
    let mut checks = Vec::new();
    let report = workspace.state_report();
    if let Some(PassedOver { path, why }) = report.passed_over {
        let what = format!("{} {why}; it is not used", path.display());
        checks.push(
            Check::new("state", CheckState::Warn, what)
                .remedy(format!("fix that, or remove {} if it is not needed", path.display())),
        );
    }
    let Some(state) = report.paths else {
        checks.push(match report.why_not_made {
            None => Check::new("state", CheckState::Ok, "none yet; created when first needed"),
            Some(why) => Check::new("state", CheckState::Fail, why)
                .remedy("make it writable for your user, or set SUREHAND_STATE_DIR; until then hooks let everything pass"),
        });
        return checks;
    };
    if report.is_read_only {
        let what = format!("{} cannot be written", state.repository.display());
        let remedy =
            "make it writable for your user; until then nothing can be changed through Surehand, and hooks let everything pass";
        checks.push(Check::new("state", CheckState::Fail, what).remedy(remedy));
        return checks;
    }
    let size = fs::metadata(state.repository.join("state.db")).map_or(0, |file| file.len());
    let what = format!("{} opens, for its owner only ({:.1} MB)", state.repository.display(), size as f64 / 1e6);
    checks.push(Check::new("state", CheckState::Ok, what));
    checks.extend(workspace.take_notices().iter().map(|taken| Check::new("state", CheckState::Warn, notice(taken))));
    if let Some(why) = report.export_trouble {
        let what = format!("{EXPORT_DIR} {why}; repostate.json is not written there");
        checks.push(
            Check::new("export", CheckState::Warn, what)
                .remedy(format!("remove {EXPORT_DIR}, also from git, if it is not needed")),
        );
    }
    checks.push(exchange(&staging_directory(&state, workspace.path())));
    checks.extend(leftovers(&state));
    checks
}

/// Checks whether the board can be reached, and how old the local copy is. Nothing waits for a board, so this is never
/// a failure.
fn board(root: &Path) -> Check {
    let check = |state, what: String| Check::new("board", state, what);
    let Ok((settings, _)) = workspace::settings_of_hooks(root) else {
        return check(CheckState::Note, "its settings cannot be read".to_owned());
    };
    if !settings.board.enabled {
        return check(CheckState::Note, "switched off: board.enabled is false".to_owned());
    }
    let place = board_place(&settings.board);
    let copy = Workspace::open_read_only(root, settings).ok().and_then(|workspace| workspace.local_copy().ok().flatten());
    let Some(copy) = copy else {
        return check(CheckState::Ok, format!("on {place}; no agent has used it yet"));
    };
    let status =
        fleet::helper().map_err(|error| error.to_string()).and_then(|helper| helper.status().map_err(|error| error.to_string()));
    let age = copy.age(output::now()).map_or("was never read".to_owned(), |age| format!("was last read {}", output::ago(age)));
    match (copy.trouble, status) {
        (Some(trouble), Ok(Some(_))) => check(CheckState::Warn, format!("on {place}, {age}: {trouble}"))
            .remedy("check board.url and the server; until then agents work on, and what they do is delivered later"),
        (_, Err(why)) => check(CheckState::Warn, format!("on {place}, {age}; the helper does not answer: {why}"))
            .remedy("surehand helper --stop, and the next agent starts it again"),
        (_, Ok(None)) => check(CheckState::Ok, format!("on {place}, {age}; the helper starts with the next agent")),
        (None, Ok(Some(_))) => check(CheckState::Ok, format!("on {place}, {age}")),
    }
}

/// Finds state of release 0.1 in `.surehand`, or files that came with the repository.
fn not_ours(root: &Path) -> Option<Check> {
    const KEPT: [&str; 9] = ["state.db", "journal", "staged", "locks", "outbox", "index", "hooks", "runs", "rescued"];
    let dir = root.join(EXPORT_DIR);
    let found: Vec<&str> = KEPT.into_iter().filter(|name| dir.join(name).symlink_metadata().is_ok()).collect();
    if found.is_empty() {
        return None;
    }
    let what = format!(
        "{EXPORT_DIR} has {} of release 0.1, or they came with the repository: they are not read, and nothing in them is carried out",
        found.join(", ")
    );
    let remedy = format!("check {EXPORT_DIR}/rescued if it exists, then remove {EXPORT_DIR}");
    Some(Check::new("old state", CheckState::Warn, what).remedy(remedy))
}

/// A Surehand directory on the file system of the project. The state may be on another one.
fn staging_directory(state: &StatePaths, root: &Path) -> PathBuf {
    let device = |path: &Path| fs::metadata(path).map(|file| file.dev()).ok();
    let (staged, in_tree) = (state.checkout.join("staged"), root.join(EXPORT_DIR));
    if device(&staged) != device(root) && device(&in_tree) == device(root) { in_tree } else { staged }
}

/// Tries to exchange two files in one step.
fn exchange(directory: &Path) -> Check {
    let tried = || {
        let [one, other] = [tempfile::NamedTempFile::new_in(directory)?, tempfile::NamedTempFile::new_in(directory)?];
        renameat_with(CWD, one.path(), CWD, other.path(), RenameFlags::EXCHANGE).map_err(io::Error::from)
    };
    match tried() {
        Ok(()) => Check::new("exchange", CheckState::Ok, "the file system can exchange two files in one step"),
        Err(error) => Check::new("exchange", CheckState::Warn, format!("the file system cannot exchange two files: {error}"))
            .remedy("nothing, or move the project; files are renamed over instead, and each reply says so"),
    }
}

fn leftovers(state: &StatePaths) -> Vec<Check> {
    let mut checks = Vec::new();
    let rescued = state.checkout.join(RESCUED);
    let count_rescued = names(&rescued).len();
    if count_rescued > 0 {
        let what =
            format!("{} with text that other programs wrote while a file was replaced", count(count_rescued, "rescued file"));
        let remedy = format!("look at {}, take what you need, and delete the rest", rescued.display());
        checks.push(Check::new("leftovers", CheckState::Warn, what).remedy(remedy));
    }
    let damaged = names(&state.repository).into_iter().filter(|path| path.to_string_lossy().contains(".damaged-")).count();
    if damaged > 0 {
        let what = format!("{} set aside as {}/state.db.damaged-…", count(damaged, "damaged state"), state.repository.display());
        checks.push(Check::new("leftovers", CheckState::Note, what));
    }
    // The journals of living processes are locked.
    let is_dead = |path: &PathBuf| {
        let is_file = path.symlink_metadata().is_ok_and(|journal| journal.is_file());
        is_file && File::open(path).is_ok_and(|journal| journal.try_lock().is_ok())
    };
    let journals = names(&state.checkout.join("journal")).iter().filter(|path| is_dead(path)).count();
    if journals > 0 {
        let what = format!("{} of processes that died, with files that could not be settled", count(journals, "journal"));
        checks.push(
            Check::new("leftovers", CheckState::Warn, what)
                .remedy("close the programs that have those files open, and run this again"),
        );
    }
    if checks.is_empty() {
        checks.push(Check::new("leftovers", CheckState::Ok, "none"));
    }
    checks
}

fn names(directory: &Path) -> Vec<PathBuf> {
    fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

fn room(root: &Path) -> Check {
    let free = statvfs(root).map(|system| system.f_bavail.saturating_mul(system.f_frsize));
    match free {
        Err(error) => Check::new("room", CheckState::Note, format!("unknown: {}", io::Error::from(error))),
        Ok(free) if free < ROOM => {
            Check::new("room", CheckState::Warn, format!("{} MB free", free >> 20)).remedy("make room on the disk")
        }
        Ok(_) => Check::new("room", CheckState::Ok, "enough on the disk"),
    }
}

fn watching(root: &Path) -> Check {
    let Some(trouble) = try_watching(root) else {
        return Check::new("watching", CheckState::Ok, "the system reports file changes");
    };
    let check = Check::new("watching", CheckState::Note, format!("{trouble}; files are checked at each call instead"));
    match trouble {
        WatchTrouble::NoWatchLeft => {
            Check { state: CheckState::Warn, ..check }.remedy("sysctl fs.inotify.max_user_watches=524288")
        }
        WatchTrouble::NoWatcherLeft => {
            Check { state: CheckState::Warn, ..check }.remedy("sysctl fs.inotify.max_user_instances=512")
        }
        _ => check,
    }
}

/// How the commands of `commands.allow` run; `None` if there are none.
fn commands(root: &Path) -> Option<Check> {
    const COMMANDS: &str = "commands";
    let config = workspace::settings(root).ok().filter(|config| !config.commands.allow.is_empty())?;
    let cannot = |why: &str| {
        let what =
            format!("allowed commands cannot be confined: {why}; surehand run asks about all but those known only to read");
        Check::new(COMMANDS, CheckState::Warn, what)
    };
    let not_covered = match confinement_support() {
        ConfinementSupport::InForce { not_covered } => not_covered,
        ConfinementSupport::Missing { why } => {
            return Some(cannot(why).remedy("Linux 6.2 or newer with Landlock (lsm=landlock); or answer the questions"));
        }
    };
    if let Err(error) = Workspace::open_read_only(root, config.clone()).map(|workspace| workspace.protected_paths()).ok()? {
        return Some(cannot(&format!("the submodules are not known ({error})")));
    }
    let network = if config.commands.network { "with" } else { "without" };
    let mut what = format!("allowed commands run confined, {network} network");
    if !not_covered.is_empty() {
        what.push_str(&format!("; this kernel does not refuse {}", not_covered.join(" and ")));
    }
    Some(Check::new(COMMANDS, CheckState::Ok, what))
}
