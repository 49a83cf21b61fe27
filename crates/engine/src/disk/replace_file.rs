//! Replaces a small file atomically: a reader sees the old or the new content, never a part.

use std::{fs::File, io, os::unix::fs::FileExt};

use rustix::{
    fs::{self as sys, AtFlags, FileType, Mode, OFlags, RenameFlags, Stat},
    io::Errno,
};

use super::lease::{self, Lease};
use crate::user::effective_user;

/// Replaces a file with this content, which is first written under another name. It is not synced.
pub(crate) fn put(new: (&File, &str), place: (&File, &str), content: &[u8]) -> io::Result<()> {
    let FreeFile { file, size } = fresh_or_free(new.0, new.1)?;
    file.write_all_at(content, 0)?;
    if size > content.len() as u64 {
        file.set_len(content.len() as u64)?;
    }
    lease::give_back(&file);
    // The old file is reused for the next write. A rename would make some systems flush the new file first.
    match sys::renameat_with(new.0, new.1, place.0, place.1, RenameFlags::EXCHANGE) {
        Err(Errno::NOENT | Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => sys::renameat(new.0, new.1, place.0, place.1)?,
        exchanged => {
            exchanged?;
            // An exchange accepts anything: unlike a rename, it does not refuse a directory that was made meanwhile.
            let taken = sys::statat(new.0, new.1, AtFlags::SYMLINK_NOFOLLOW)?;
            if FileType::from_raw_mode(taken.st_mode) == FileType::Directory {
                sys::renameat_with(new.0, new.1, place.0, place.1, RenameFlags::EXCHANGE)?;
                return Err(Errno::ISDIR.into());
            }
            if !is_reusable(&taken) {
                sys::unlinkat(new.0, new.1, AtFlags::empty())?;
            }
        }
    }
    Ok(())
}

struct FreeFile {
    file: File,
    size: u64,
}

/// A file that no process is reading: the previous one if it is free, else a new one.
fn fresh_or_free(dir: &File, name: &str) -> io::Result<FreeFile> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let open = |flags| sys::openat(dir, name, flags, Mode::from_raw_mode(0o600)).map(File::from);
    if let Ok(file) = open(flags)
        && Lease::take(&file).is_ok()
        && let Ok(stat) = sys::fstat(&file)
        && is_reusable(&stat)
    {
        return Ok(FreeFile { file, size: u64::try_from(stat.st_size).unwrap_or_default() });
    }
    match sys::unlinkat(dir, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => Ok(FreeFile { file: open(flags | OFlags::EXCL)?, size: 0 }),
        Err(errno) => Err(errno.into()),
    }
}

/// Whether a file may be written over: a regular file of ours, with one name, that only we may read.
fn is_reusable(stat: &Stat) -> bool {
    let is_plain = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile && stat.st_nlink == 1;
    is_plain && stat.st_uid == effective_user() && stat.st_mode & 0o777 == 0o600
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_stays_where_it_is() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("state/inner")).unwrap();
        let handle = File::open(dir.path()).unwrap();
        let refused = put((&handle, "new"), (&handle, "state"), b"content").unwrap_err();
        assert_eq!(Errno::from_io_error(&refused), Some(Errno::ISDIR));
        assert!(dir.path().join("state/inner").is_dir());
        std::fs::remove_dir_all(dir.path().join("state")).unwrap();
        put((&handle, "new"), (&handle, "state"), b"content").unwrap();
        assert_eq!(std::fs::read(dir.path().join("state")).unwrap(), b"content");
    }

    #[test]
    fn readers_see_whole_contents() {
        let dir = tempfile::tempdir().unwrap();
        let content = |number: usize| format!("{number};").repeat(5000);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let dir = File::open(dir.path()).unwrap();
                for round in 0..400 {
                    put((&dir, "new"), (&dir, "state"), content(round).as_bytes()).unwrap();
                }
            });
            scope.spawn(|| {
                for _ in 0..500 {
                    let Ok(seen) = std::fs::read_to_string(dir.path().join("state")) else { continue };
                    let number = seen.split(';').next().unwrap().parse().unwrap();
                    assert_eq!(seen, content(number), "a part of a file was read");
                }
            });
        });
    }
}
