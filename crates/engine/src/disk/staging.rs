//! Writes staged files: complete before any other program can see them.

use std::{
    fs::File,
    io::{self, Write},
    os::fd::BorrowedFd,
};

use rustix::{
    fs::{self as sys, AtFlags, Mode, OFlags},
    io::Errno,
};

pub(crate) fn write_copy(dir: BorrowedFd<'_>, name: &str, content: &[u8]) -> io::Result<File> {
    let mut file = create_new(dir, name, Mode::RUSR | Mode::WUSR)?;
    file.write_all(content)?;
    Ok(file)
}

/// Creates a file without a name in this directory; it vanishes if the process dies. `None` if the file system does not
/// support that.
#[cfg(target_os = "linux")]
pub(crate) fn nameless(dir: BorrowedFd<'_>, content: &[u8]) -> io::Result<Option<File>> {
    let flags = OFlags::WRONLY | OFlags::TMPFILE | OFlags::CLOEXEC;
    let mut file = match sys::openat(dir, ".", flags, Mode::from_raw_mode(0o666)) {
        Ok(fd) => File::from(fd),
        Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::NOENT | Errno::INVAL) => return Ok(None),
        Err(errno) => return Err(errno.into()),
    };
    file.write_all(content)?;
    Ok(Some(file))
}

/// Other systems have no nameless files.
#[cfg(not(target_os = "linux"))]
pub(crate) fn nameless(_: BorrowedFd<'_>, _: &[u8]) -> io::Result<Option<File>> {
    Ok(None)
}

/// Gives a nameless file its name, unless something has that name already.
#[cfg(target_os = "linux")]
pub(crate) fn name_it(file: &File, dir: BorrowedFd<'_>, name: &str) -> rustix::io::Result<()> {
    use std::os::fd::AsRawFd;
    let by_number = format!("/proc/self/fd/{}", file.as_raw_fd());
    sys::linkat(sys::CWD, by_number, dir, name, AtFlags::SYMLINK_FOLLOW)
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn name_it(_: &File, _: BorrowedFd<'_>, _: &str) -> rustix::io::Result<()> {
    Err(Errno::OPNOTSUPP)
}

/// Removes a staged file of ours. Returns whether it is gone; one that was gone already counts.
pub(crate) fn remove(dir: BorrowedFd<'_>, name: &str) -> bool {
    matches!(sys::unlinkat(dir, name, AtFlags::empty()), Ok(()) | Err(Errno::NOENT))
}

pub(crate) fn create_new(dir: BorrowedFd<'_>, name: &str, mode: Mode) -> io::Result<File> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    Ok(File::from(sys::openat(dir, name, flags, mode)?))
}
