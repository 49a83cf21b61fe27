//! Mounts in a private mount namespace: no other process sees them, and they vanish with the thread that made them,
//! even if it panics.

use std::{io, panic::resume_unwind, path::Path, process::Command, thread};

use anyhow::Result;
use rustix::{
    mount::{MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_change, mount_remount, unmount},
    thread::{UnshareFlags, unshare_unsafe},
};

/// Runs `act` on a thread with its own mount namespace. `act` gets an error if this thread may not mount.
pub(crate) fn in_private<T: Send>(act: impl FnOnce(Result<(), String>) -> T + Send) -> T {
    thread::scope(|scope| {
        let acting = scope.spawn(|| act(leave_shared()));
        acting.join().unwrap_or_else(|panic| resume_unwind(panic))
    })
}

fn leave_shared() -> Result<(), String> {
    // SAFETY: only the mounts are left, and this thread shares no open directory by number with another one.
    #[expect(unsafe_code, reason = "leaving shared file descriptors would not be safe; we leave mounts only")]
    let left = unsafe { unshare_unsafe(UnshareFlags::NEWNS) };
    left.and_then(|()| mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC))
        .map_err(|errno| format!("no right to mount: {}", io::Error::from(errno)))
}

pub(crate) fn memory(at: &Path, options: &str) -> io::Result<()> {
    let options = std::ffi::CString::new(options).expect("options without a zero byte");
    Ok(mount("torture", at, "tmpfs", MountFlags::empty(), Some(options.as_c_str()))?)
}

/// Unmounts a file system, lazily if it is in use.
pub(crate) fn leave(at: &Path) -> io::Result<()> {
    Ok(unmount(at, UnmountFlags::DETACH)?)
}

/// Makes a mounted file system read-only, or writable again.
pub(crate) fn set_read_only(at: &Path, read_only: bool) -> io::Result<()> {
    let flags = if read_only { MountFlags::RDONLY } else { MountFlags::empty() };
    Ok(mount_remount(at, flags, c"")?)
}

/// Runs a command that mounts or creates a file system. Its output is the error.
pub(crate) fn tool(program: &str, arguments: &[&str]) -> Result<(), String> {
    let output = Command::new(program).args(arguments).output().map_err(|error| format!("{program}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let last = said.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default();
    Err(format!("{program}: {}", last.trim()))
}
