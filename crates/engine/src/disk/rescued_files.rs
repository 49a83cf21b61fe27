//! The files in `rescued/`, and the notes that say where each came from.

use std::{
    fs::File,
    io::{self, Read},
    os::fd::AsFd,
};

use rustix::{
    fs::{self as sys, AtFlags, Dir, FileType},
    io::Errno,
};
use serde::{Deserialize, Serialize};
use surehand_core::RelPath;
use surehand_store::Millis;

use super::{
    lease::{Lease, NoLease},
    read_file::open_at,
    rescue::RESCUED,
    staging,
};
use crate::state_dir::{make_dir, open_dir_if_any, open_file};

/// The directory of the notes. A note has the name of its file.
const NOTES: &str = "rescue-notes";

/// A longer note is not one of ours.
const MAX_NOTE: u64 = 1 << 16;

/// Where a rescued file came from.
#[derive(Debug, Serialize, Deserialize)]
struct RescueNote {
    /// Relative to the work tree.
    path: RelPath,
    at: Millis,
}

#[derive(Debug)]
pub(crate) struct RescuedEntry {
    pub name: String,
    /// The original path, relative to the work tree, if it is known.
    pub path: Option<RelPath>,
    pub at: Millis,
    pub size: u64,
}

/// Records where a rescued file came from. Without a note, the file is still listed by its name.
pub(crate) fn write_note(checkout: &File, name: &str, path: &RelPath, at: Millis) {
    let Ok(notes) = make_dir(checkout, NOTES) else { return };
    let note = serde_json::to_vec(&RescueNote { path: path.clone(), at }).expect("a note is plain data");
    // A note that is left over belongs to a file that is gone.
    staging::remove(notes.as_fd(), name);
    let _ = staging::write_copy(notes.as_fd(), name, &note);
}

/// All rescued files, by name.
pub(crate) fn list(checkout: &File) -> io::Result<Vec<RescuedEntry>> {
    let Some(rescued) = open_dir_if_any(checkout, RESCUED)? else { return Ok(Vec::new()) };
    let notes = open_dir_if_any(checkout, NOTES)?;
    let mut entries = Vec::new();
    for entry in Dir::read_from(&rescued)? {
        let entry = entry?;
        let Ok(name) = entry.file_name().to_str() else { continue };
        let Ok(stat) = sys::statat(&rescued, name, AtFlags::SYMLINK_NOFOLLOW) else { continue };
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            continue;
        }
        let note = notes.as_ref().and_then(|notes| read_note(notes, name));
        let at = note.as_ref().map_or(stat.st_mtime.saturating_mul(1000), |note| note.at);
        let size = u64::try_from(stat.st_size).unwrap_or_default();
        entries.push(RescuedEntry { name: name.to_owned(), path: note.map(|note| note.path), at, size });
    }
    entries.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(entries)
}

pub(crate) fn read(checkout: &File, name: &str) -> io::Result<Vec<u8>> {
    let rescued = open_dir_if_any(checkout, RESCUED)?.ok_or(Errno::NOENT)?;
    let mut content = Vec::new();
    open_at(&rescued, name)?.read_to_end(&mut content)?;
    Ok(content)
}

/// Deletes a rescued file and its note.
pub(crate) fn discard(checkout: &File, name: &str) -> io::Result<()> {
    let rescued = open_dir_if_any(checkout, RESCUED)?.ok_or(Errno::NOENT)?;
    sys::unlinkat(&rescued, name, AtFlags::empty())?;
    if let Some(notes) = open_dir_if_any(checkout, NOTES)? {
        staging::remove(notes.as_fd(), name);
    }
    Ok(())
}

/// Deletes a rescued file and its note, unless a program has the file open: it may still write to it.
pub(crate) fn discard_unless_open(checkout: &File, name: &str) -> io::Result<bool> {
    let rescued = open_dir_if_any(checkout, RESCUED)?.ok_or(Errno::NOENT)?;
    // The lease lasts as long as its file is open, so until the name is gone.
    let file = open_at(&rescued, name)?;
    if let Err(NoLease::IsOpen) = Lease::take_patiently(&file) {
        return Ok(false);
    }
    discard(checkout, name).map(|()| true)
}

fn read_note(notes: &File, name: &str) -> Option<RescueNote> {
    let mut content = Vec::new();
    open_file(notes, name, MAX_NOTE).ok()?.read_to_end(&mut content).ok()?;
    serde_json::from_slice(&content).ok()
}
