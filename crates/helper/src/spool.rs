//! Reports that were made while no helper was listening: one file for each session and workspace, in the directory of
//! the socket. The next helper takes them, so a hook need not wait for its start.

use std::{
    fs::File,
    io::{self, Read, Write},
};

use rustix::fs::{self as sys, AtFlags, Dir, Mode, OFlags};
use surehand_engine::core::ContentHash;

use crate::protocol::{MAX_MESSAGE, Message, Request};

const PREFIX: &str = "report-";

/// Writes a report. A later report of the same sessions replaces it.
pub(crate) fn leave(dir: &File, message: &Message) -> io::Result<()> {
    let Request::Report { place, agents } = &message.request else { return Ok(()) };
    let sessions: Vec<&str> = agents.iter().map(|agent| &*agent.session.0).collect();
    let subject = format!("{} {}", place.root.display(), sessions.join(" "));
    let name = format!("{PREFIX}{}", ContentHash::of(subject.as_bytes()));
    let new = format!("{name}.{}", std::process::id());
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut file = File::from(sys::openat(dir, &new, flags, Mode::from_raw_mode(0o600))?);
    file.write_all(&serde_json::to_vec(message)?)?;
    Ok(sys::renameat(dir, &new, dir, &name)?)
}

/// Calls a function with each report that was left, and removes it.
pub(crate) fn take(dir: &File, mut act: impl FnMut(serde_json::Value)) -> io::Result<()> {
    for entry in Dir::read_from(dir)? {
        let entry = entry?;
        let Some(name) = entry.file_name().to_str().ok().filter(|name| name.starts_with(PREFIX)) else { continue };
        // A report that is still being written has another name.
        if name.contains('.') {
            continue;
        }
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let mut text = Vec::new();
        File::from(sys::openat(dir, name, flags, Mode::empty())?).take(MAX_MESSAGE).read_to_end(&mut text)?;
        if let Ok(message) = serde_json::from_slice(&text) {
            act(message);
        }
        sys::unlinkat(dir, name, AtFlags::empty())?;
    }
    Ok(())
}
