//! The directory with the helper's socket, which only its owner can enter.

use std::{
    fs::File,
    io,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
};

use rustix::fs::{self as sys, Mode, OFlags};

/// The directory in which the helper of a user listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuntimeDir {
    path: PathBuf,
}

impl RuntimeDir {
    /// `surehand` in `$XDG_RUNTIME_DIR`, or else `run` in the user's own state directory; `None` without either.
    pub fn find(runtime: Option<&Path>, state: Option<&Path>) -> Option<Self> {
        let path = runtime.map(|dir| dir.join("surehand")).or_else(|| Some(state?.join("run")))?;
        Some(Self { path })
    }

    /// The path of the directory, which may not exist yet.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Opens the directory. Returns an error if another user owns it or may enter it.
    pub(crate) fn open(&self) -> io::Result<File> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let dir = File::from(sys::open(&self.path, flags, Mode::empty())?);
        let stat = sys::fstat(&dir)?;
        if stat.st_uid != rustix::process::geteuid().as_raw() || stat.st_mode & 0o077 != 0 {
            let why = format!("{}: not private: another user owns or may enter this directory", self.path.display());
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
        }
        Ok(dir)
    }

    /// Opens the directory, and creates it if it does not exist.
    pub(crate) fn make(&self) -> io::Result<File> {
        match self.open() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.path)?;
                self.open()
            }
            opened => opened,
        }
    }
}
