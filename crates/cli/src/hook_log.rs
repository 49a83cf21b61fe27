//! The log of failed hooks, in the user's state directory. A failed hook must not disturb its client; `surehand doctor`
//! reads the log.

use std::{fs, io::Write, os::unix::fs::DirBuilderExt, path::PathBuf};

use rustix::fs::{self as sys, Mode, OFlags};

use crate::user_dirs;

/// Limit in bytes; a longer log is truncated.
const MOST_BYTES: u64 = 256 * 1024;

/// Returns `None` without a home directory.
pub(crate) fn path() -> Option<PathBuf> {
    Some(user_dirs::state_dir()?.join("hooks.log"))
}

/// The size of the log in bytes.
pub(crate) fn size() -> u64 {
    path().and_then(|path| path.metadata().ok()).map_or(0, |log| log.len())
}

/// Appends a line. Errors are ignored, because there is no other place to report them.
pub(crate) fn append(client: &str, why: &str) {
    let Some(path) = path() else { return };
    if let Some(directory) = path.parent() {
        // State may be kept beside the log, which only its owner may read.
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
