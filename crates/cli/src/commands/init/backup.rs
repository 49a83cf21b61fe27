//! Reads and writes the configuration files of clients. A backup is kept beside each file. A file is replaced as a
//! whole, and only if its content is still what the user was shown.

use std::{
    fs,
    io::{self, ErrorKind, Read, Write},
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
};

use anyhow::{Context, ensure};
use rustix::fs::{Mode, OFlags};
use tempfile::NamedTempFile;

use super::changes::ConfigChange;

pub(super) const BACKUP: &str = ".surehand-backup";

/// Reads a file; `None` if it does not exist.
pub(crate) fn read(path: &Path) -> anyhow::Result<Option<String>> {
    match read_file(path) {
        Ok(bytes) => {
            let text = String::from_utf8(bytes).ok();
            Ok(Some(text.with_context(|| format!("{}: not UTF-8; nothing was written", path.display()))?))
        }
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            ensure!(!path.is_symlink(), "{}: a broken link; nothing was written", path.display());
            Ok(None)
        }
        Err(error) => Err(error).with_context(|| format!("{}: cannot be read", path.display())),
    }
}

/// Reads a regular file. A clone may contain a link to a device, and an archive may contain a pipe, whose content would
/// never end.
fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    const MOST_BYTES: u64 = 16 << 20;
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = fs::File::from(rustix::fs::open(path, flags, Mode::empty())?);
    let meta = file.metadata()?;
    if meta.is_dir() {
        return Err(rustix::io::Errno::ISDIR.into());
    }
    if !meta.is_file() || meta.len() > MOST_BYTES {
        return Err(io::Error::other("not a regular file of a usual size"));
    }
    let mut bytes = Vec::new();
    file.take(MOST_BYTES).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The backups of a file, oldest first.
pub(crate) fn backups(path: &Path) -> Vec<(PathBuf, String)> {
    let all = (1..).map(|number| backup_path(path, number)).map_while(|backup| {
        let text = String::from_utf8(read_file(&backup).ok()?).ok()?;
        Some((backup, text))
    });
    all.collect()
}

fn backup_path(path: &Path, number: usize) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(BACKUP);
    if number > 1 {
        name.push(format!("-{number}"));
    }
    PathBuf::from(name)
}

/// Replaces the text that the user was shown. Returns the path of the backup, if one was kept.
pub(crate) fn replace(change: &ConfigChange, after: &str) -> anyhow::Result<Option<PathBuf>> {
    let path = change.path.as_path();
    let what = || format!("{}: cannot be written", path.display());
    let Some(before) = change.before.as_deref() else {
        let directory = parent(path);
        fs::create_dir_all(directory).with_context(|| format!("{}: cannot be created", directory.display()))?;
        let mode = if change.is_program { 0o777 } else { 0o666 };
        let file = written(path, after, FileAttributes::Mode(mode)).with_context(what)?;
        return match file.persist_noclobber(path) {
            Ok(_) => Ok(None),
            Err(failed) if failed.error.kind() == ErrorKind::AlreadyExists => anyhow::bail!(changed(path)),
            Err(failed) => Err(failed.error).with_context(what),
        };
    };
    // The target of a link is replaced, not the link.
    let real = path.canonicalize().with_context(what)?;
    let existing = fs::metadata(&real).with_context(what)?;
    rustix::fs::access(&real, rustix::fs::Access::WRITE_OK).map_err(std::io::Error::from).with_context(what)?;
    let file = written(&real, after, FileAttributes::File(&existing)).with_context(what)?;
    let backup = change.keeps_copy.then(|| keep(path, before, &existing)).transpose().with_context(what)?;
    ensure!(read(&real)?.as_deref() == Some(before), changed(path));
    file.persist(&real).map_err(|failed| failed.error).with_context(what)?;
    Ok(backup)
}

/// Removes a file that `init` created, and its parent directories as far as they are empty, up to `top`.
#[expect(clippy::disallowed_methods, reason = "a file that init has made, not one of the workspace's")]
pub(crate) fn remove(path: &Path, before: &str, top: &Path) -> anyhow::Result<()> {
    ensure!(read(path)?.as_deref() == Some(before), changed(path));
    fs::remove_file(path).with_context(|| format!("{}: cannot be removed", path.display()))?;
    for directory in path.ancestors().skip(1).take_while(|directory| *directory != top && directory.starts_with(top)) {
        if fs::remove_dir(directory).is_err() {
            break;
        }
    }
    Ok(())
}

/// Removes a backup that is no longer needed.
#[expect(clippy::disallowed_methods, reason = "a copy that init has made")]
pub(crate) fn forget(backup: &Path) {
    // A backup that cannot be removed does no harm.
    let _ = fs::remove_file(backup);
}

fn changed(path: &Path) -> String {
    format!("{}: another program changed it just now; nothing was written; try again", path.display())
}

fn parent(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

enum FileAttributes<'a> {
    /// A new file with this mode, minus the umask.
    Mode(u32),
    /// The mode and owner of this file.
    File(&'a fs::Metadata),
}

/// Writes a temporary file beside the target.
fn written(path: &Path, text: &str, like: FileAttributes<'_>) -> std::io::Result<NamedTempFile> {
    let mode = match like {
        FileAttributes::Mode(mode) => mode,
        FileAttributes::File(file) => file.mode() & 0o7777,
    };
    let mut builder = tempfile::Builder::new();
    let mut file = builder.prefix(".surehand-").permissions(fs::Permissions::from_mode(mode)).tempfile_in(parent(path))?;
    if let FileAttributes::File(like) = like {
        // Only root can change the owner; for other users it is already right.
        let _ = std::os::unix::fs::fchown(file.as_file(), Some(like.uid()), Some(like.gid()));
        file.as_file().set_permissions(fs::Permissions::from_mode(mode))?;
    }
    file.write_all(text.as_bytes())?;
    file.as_file().sync_all()?;
    Ok(file)
}

/// Writes a backup. Existing backups with other content are kept.
fn keep(path: &Path, text: &str, like: &fs::Metadata) -> std::io::Result<PathBuf> {
    let mut number = 1;
    loop {
        let backup = backup_path(path, number);
        match fs::read(&backup) {
            Ok(there) if there == text.as_bytes() => return Ok(backup),
            Ok(_) => number += 1,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return match written(path, text, FileAttributes::File(like))?.persist_noclobber(&backup) {
                    Ok(_) => Ok(backup),
                    Err(failed) => Err(failed.error),
                };
            }
            Err(error) => return Err(error),
        }
    }
}
