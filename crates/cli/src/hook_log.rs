//! What went wrong in hooks, which may not disturb anybody: a file in the user's state directory that `surehand doctor` reads.

use std::{fs, io::Write, os::unix::fs::DirBuilderExt, path::PathBuf};

use rustix::fs::{self as sys, Mode, OFlags};

use crate::user_dirs;

/// Longer than this it begins anew.
const MOST_BYTES: u64 = 256 * 1024;

/// Where it is; nothing without a home.
pub(crate) fn path() -> Option<PathBuf> {
    Some(user_dirs::state_dir()?.join("hooks.log"))
}

/// Adds a line. If even that fails there is nobody left to tell.
pub(crate) fn append(client: &str, why: &str) {
    let Some(path) = path() else { return };
    if let Some(directory) = path.parent() {
        // State may be kept beside it, which is for its owner's eyes only.
        let _ = fs::DirBuilder::new().recursive(true).mode(0o700).create(directory);
    }
    let line: String = why.lines().next().unwrap_or_default().chars().take(500).collect();
    let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE | OFlags::CLOEXEC;
    if let Ok(log) = sys::open(&path, flags, Mode::from_raw_mode(0o600)) {
        let mut log = fs::File::from(log);
        if log.metadata().is_ok_and(|log| log.len() > MOST_BYTES) {
            let _ = log.set_len(0);
        }
        let _ = writeln!(log, "{} {client}: {line}", jiff::Timestamp::now());
    }
}

/// The last lines, newest last.
pub(crate) fn last_lines(lines: usize) -> Vec<String> {
    let content = path().and_then(|path| fs::read_to_string(path).ok()).unwrap_or_default();
    let all: Vec<&str> = content.lines().collect();
    all[all.len().saturating_sub(lines)..].iter().map(|line| (*line).to_owned()).collect()
}
