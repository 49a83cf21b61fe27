//! Reads git's index to answer one question: does git track anything below a directory? A library for the whole format
//! would be a large dependency for that.

use std::{fs, io::Read, path::Path};

use super::work_tree::open_plain;

/// A larger index is not read. It would belong to a repository of some ten million files.
pub(super) const MAX_INDEX: u64 = 1 << 30;

/// The bytes of an index that are read first.
const BEGINNING: u64 = 256 * 1024;

/// Whether git tracks a file below this directory of a work tree. `git_dir` is the one of this checkout.
///
/// If the index cannot be parsed, the answer is yes.
pub(crate) fn tracks(git_dir: &Path, directory: &str) -> bool {
    let Ok(mut file) = open_plain(&git_dir.join("index")) else {
        // Nothing has been added yet.
        return false;
    };
    if !file.metadata().is_ok_and(|meta| meta.is_file() && meta.len() <= MAX_INDEX) {
        return true;
    }
    // Names are sorted, and ours comes early, so the beginning is usually enough.
    let mut index = Vec::new();
    for limit in [BEGINNING, MAX_INDEX] {
        if (&mut file).take(limit).read_to_end(&mut index).is_err() {
            return true;
        }
        // Hashes have 20 bytes or, in some repositories, 32.
        let has_entry = [20, 32].into_iter().find_map(|hash| has_entry_below(&index, directory.as_bytes(), hash));
        if let Some(has_entry) = has_entry {
            return has_entry || is_split(git_dir);
        }
    }
    true
}

/// Searches the entries of an index of version 2, 3 or 4 with hashes of this length. `None` if it is malformed.
fn has_entry_below(index: &[u8], directory: &[u8], hash: usize) -> Option<bool> {
    const HEADER: usize = 12;
    let number = |at: usize| Some(u32::from_be_bytes(index.get(at..at + 4)?.try_into().ok()?));
    let (version, count) = (number(4)?, number(8)?);
    if !index.starts_with(b"DIRC") || !(2..=4).contains(&version) {
        return None;
    }
    let is_below = |name: &[u8]| name.strip_prefix(directory).is_some_and(|rest| rest.is_empty() || rest[0] == b'/');
    let (mut at, mut name) = (HEADER, Vec::new());
    for _ in 0..count {
        let entry = at;
        let start = name_at(index, entry, hash)?;
        at = if version == 4 { read_packed_name(index, start, &mut name)? } else { read_name(index, entry, start, &mut name)? };
        // Each entry has the length of its name. The largest value means "this long or longer".
        let length = u16::from_be_bytes(index.get(entry + 40 + hash..entry + 42 + hash)?.try_into().ok()?) & 0x0fff;
        if usize::from(length) != name.len().min(0x0fff) {
            return None;
        }
        if is_below(&name) {
            return Some(true);
        }
        // Entries are sorted by name.
        if name.as_slice() > directory && !name.starts_with(directory) {
            break;
        }
    }
    Some(false)
}

/// Whether most entries may be in a second file (a split index).
fn is_split(git_dir: &Path) -> bool {
    let is_shared = |entry: fs::DirEntry| entry.file_name().as_encoded_bytes().starts_with(b"sharedindex.");
    fs::read_dir(git_dir).map_or(true, |entries| entries.flatten().any(is_shared))
}

/// Where the name of an entry starts: after the metadata, and two more bytes if a flag says so.
pub(super) fn name_at(index: &[u8], entry: usize, hash: usize) -> Option<usize> {
    const EXTENDED: u8 = 0x40;
    let fixed = 42 + hash;
    let flags = index.get(entry + fixed - 2)?;
    Some(entry + if flags & EXTENDED == 0 { fixed } else { fixed + 2 })
}

/// Reads a name and returns where the next entry starts. Entries are padded with zeros to a multiple of eight bytes.
pub(super) fn read_name(index: &[u8], entry: usize, start: usize, name: &mut Vec<u8>) -> Option<usize> {
    let length = memchr::memchr(0, index.get(start..)?)?;
    name.clear();
    name.extend_from_slice(&index[start..start + length]);
    Some(entry + (start + length - entry + 8) / 8 * 8)
}

/// A name in version 4: the number of bytes to drop from the previous name, then the rest of the new one.
pub(super) fn read_packed_name(index: &[u8], start: usize, name: &mut Vec<u8>) -> Option<usize> {
    let mut at = start;
    let mut dropped = 0_usize;
    loop {
        let byte = *index.get(at)?;
        at += 1;
        dropped = (dropped << 7) | usize::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            break;
        }
        dropped = dropped.checked_add(1).filter(|dropped| *dropped < 1 << 40)?;
    }
    let length = memchr::memchr(0, index.get(at..)?)?;
    name.truncate(name.len().checked_sub(dropped)?);
    name.extend_from_slice(&index[at..at + length]);
    Some(at + length + 1)
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests lay out repositories")]
mod tests {
    use std::process::Command;

    use super::*;

    /// A repository with these files, created by git.
    fn index_of(format: &str, version: &str, files: &[&str]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        let git = |arguments: &[&str]| {
            let mut git = Command::new("git");
            git.env_remove("GIT_DIR").env_remove("GIT_INDEX_FILE").env_remove("GIT_WORK_TREE");
            let output = git.current_dir(dir.path()).args(arguments).output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        };
        git(&["init", "-q", &format!("--object-format={format}")]);
        for file in files {
            let path = dir.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, file).unwrap();
        }
        git(&["-c", &format!("index.version={version}"), "add", "-f", "."]);
        git(&["update-index", "--index-version", version]);
        dir
    }

    #[track_caller]
    fn check(files: &[&str], expected: bool) {
        for (format, version) in [("sha1", "2"), ("sha1", "4"), ("sha256", "2"), ("sha256", "4")] {
            let dir = index_of(format, version, files);
            assert_eq!(tracks(&dir.path().join(".git"), ".surehand"), expected, "{format}, version {version}");
        }
    }

    #[test]
    fn an_entry_below_the_directory_is_found() {
        check(&[".surehand/repostate.json"], true);
        check(&[".github/x", ".surehand.x", ".surehand/a", "z"], true);
        check(&["a", ".a", ".surehand-not/x", ".surehandy", "src/.surehand/x"], false);
        check(&[".surehand.d/x", ".surehane"], false);
    }

    #[test]
    fn without_an_index_nothing_is_tracked_and_a_strange_one_may_track_anything() {
        let dir = tempfile::tempdir().unwrap();
        assert!(!tracks(dir.path(), ".surehand"));
        for strange in ["", "DIRC", "hello, this is no index at all", "DIRC\0\0\0\x02\0\0\0\x05short"] {
            fs::write(dir.path().join("index"), strange).unwrap();
            assert!(tracks(dir.path(), ".surehand"), "{strange:?}");
        }
    }
}
