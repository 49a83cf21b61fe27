//! The disk as values: the files of a workspace with their bytes, its directories, and the contents of its state
//! directory.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    path::Path,
};

/// Files by their path relative to the workspace, with their bytes.
pub(crate) type Files = BTreeMap<String, Vec<u8>>;

/// The directory with Surehand's export for other programs.
const EXPORT: &str = ".surehand";

/// Whether a file is a temporary file of Surehand.
pub(crate) fn is_ours(path: &str) -> bool {
    path.rsplit('/').next().is_some_and(|name| name.starts_with(".surehand"))
}

/// The files below a directory of the workspace, without the state directory and `.git`. Files that vanish during the
/// walk are left out.
pub(crate) fn files(root: &Path, below: &str) -> Files {
    let mut found = Files::new();
    walk(root, below, &mut |path, kind| {
        if let (Kind::File, Ok(bytes)) = (kind, fs::read(root.join(path))) {
            found.insert(path.to_owned(), bytes);
        }
    });
    found
}

/// The directories below a directory of the workspace.
pub(crate) fn directories(root: &Path, below: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    walk(root, below, &mut |path, kind| {
        if kind == Kind::Directory {
            found.insert(path.to_owned());
        }
    });
    found
}

/// The entries of a subdirectory of the state directory, or none if it does not exist.
pub(crate) fn state_part(root: &Path, part: &str) -> Files {
    let mut found = Files::new();
    for entry in fs::read_dir(surehand_testkit::state_of(root).join(part)).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if let (false, Ok(bytes)) = (is_of_file_system(&name), fs::read(entry.path())) {
            found.insert(name, bytes);
        }
    }
    found
}

/// FUSE renames an open file that is removed to a hidden name until it is closed.
fn is_of_file_system(name: &str) -> bool {
    name.starts_with(".fuse_hidden")
}

/// Whether the file system keeps such a hidden file in a directory, which then cannot be removed.
pub(crate) fn is_held_by_file_system(directory: &Path) -> bool {
    fs::read_dir(directory).into_iter().flatten().flatten().any(|entry| {
        is_of_file_system(&entry.file_name().to_string_lossy()) || entry.path().is_dir() && is_held_by_file_system(&entry.path())
    })
}

/// Writes new files and their directories.
pub(crate) fn lay_out(root: &Path, files: &Files) -> io::Result<()> {
    for (path, bytes) in files {
        let path = root.join(path);
        fs::create_dir_all(path.parent().expect("a file in the root"))?;
        fs::write(path, bytes)?;
    }
    Ok(())
}

/// Describes a few of the differences between two sets of files.
pub(crate) fn difference(found: &Files, expected: &Files) -> String {
    let paths: BTreeSet<&String> = found.keys().chain(expected.keys()).collect();
    let differing = paths.into_iter().filter(|path| found.get(*path) != expected.get(*path));
    let said: Vec<String> = differing
        .take(6)
        .map(|path| format!("{path}: {} instead of {}", glimpse(found.get(path)), glimpse(expected.get(path))))
        .collect();
    said.join("; ")
}

fn glimpse(bytes: Option<&Vec<u8>>) -> String {
    let Some(bytes) = bytes else { return "nothing".to_owned() };
    let start = String::from_utf8_lossy(&bytes[..bytes.len().min(80)]).into_owned();
    format!("{} bytes {start:?}", bytes.len())
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    File,
    Directory,
}

fn walk(root: &Path, below: &str, visit: &mut impl FnMut(&str, Kind)) {
    for entry in fs::read_dir(root.join(below)).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let Ok(kind) = entry.file_type() else { continue };
        if is_of_file_system(&name) {
            continue;
        }
        if below.is_empty() && [EXPORT, ".git"].contains(&name.as_str()) {
            continue;
        }
        let path = if below.is_empty() { name } else { format!("{below}/{name}") };
        if kind.is_dir() {
            visit(&path, Kind::Directory);
            walk(root, &path, visit);
        } else if kind.is_file() {
            visit(&path, Kind::File);
        }
    }
}
