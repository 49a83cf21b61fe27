//! The age of the local copy, in a small file of its own. While a board is quiet, its content and index are not written
//! again, so confirming that they are current costs the same for a thousand agents as for one. An age names the version
//! of the content that it is valid for, so no content is taken for younger than it is.

use std::{fs::File, io, os::unix::fs::FileExt};

use surehand_core::timestamp::Millis;

use super::{
    board_index,
    local_copy::{self, CopyStamp},
};
use crate::{
    disk::replace_file,
    fleet_link::{CopyAge, CopyVersion, LocalCopy},
    state_dir,
    workspace::Workspace,
};

/// The first bytes of the file. They end with the number of the format.
const FORMAT: u64 = u64::from_be_bytes(*b"SHBAGE01");

const BYTES: usize = 4 * 8;

impl Workspace {
    /// Records that the copy is current as of its `read_at`, without writing its content again. Returns `false` if the
    /// state directory has other content or none, so that it must be written. Only one process at a time may call this.
    pub fn refresh_local_copy(&self, copy: &LocalCopy) -> io::Result<bool> {
        if !self.has_written(copy.version)? {
            return Ok(false);
        }
        match copy.age_record() {
            Some(age) if self.copy_age()? != Some(age) => self.write_copy_age(age)?,
            _ => {}
        }
        Ok(true)
    }

    /// The last age that was written; `None` if there is none, or the file has another format.
    pub fn copy_age(&self) -> io::Result<Option<CopyAge>> {
        let mut bytes = [0; BYTES];
        if !self.read_beginning("age", &mut bytes)? {
            return Ok(None);
        }
        let [format, version, read_at, now] = board_index::numbers(&bytes);
        let age = CopyAge { version: CopyVersion(version), read_at: read_at as Millis, now: now as Millis };
        Ok((format == FORMAT).then_some(age))
    }

    /// Identifies the present age file; `None` if there is none.
    pub fn copy_age_stamp(&self) -> Option<CopyStamp> {
        self.stamp_of("age")
    }

    pub(super) fn write_copy_age(&self, age: CopyAge) -> io::Result<()> {
        let numbers = [FORMAT, age.version.0, age.read_at as u64, age.now as u64];
        let content: Vec<u8> = numbers.into_iter().flat_map(u64::to_le_bytes).collect();
        self.write_copy_file("age", &content)
    }

    pub(super) fn write_copy_file(&self, kind: &str, content: &[u8]) -> io::Result<()> {
        let (dir, name) = (self.repository_dir()?, self.copy_file(kind));
        replace_file::put((&dir, &format!("{name}.new")), (&dir, &name), content)
    }

    /// Whether the content and the index in the state directory have this version.
    fn has_written(&self, version: CopyVersion) -> io::Result<bool> {
        let mut head = [0; board_index::HEAD];
        let is_index = self.read_beginning("index", &mut head)? && board_index::version_in(&head) == Some(version);
        Ok(is_index && self.copy_version()? == Some(version))
    }

    /// The version of the content in the state directory; `None` if there is none, or the file has another format.
    pub(super) fn copy_version(&self) -> io::Result<Option<CopyVersion>> {
        let mut head = [0; local_copy::HEAD];
        Ok(if self.read_beginning("json", &mut head)? { local_copy::version_in(&head) } else { None })
    }

    /// Opens a file of the copy; `None` if there is none.
    pub(super) fn open_copy_file(&self, kind: &str, most_bytes: u64) -> io::Result<Option<File>> {
        let dir = match self.repository_dir() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            dir => dir?,
        };
        match state_dir::open_file(&dir, &self.copy_file(kind), most_bytes) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            file => file.map(Some),
        }
    }

    /// Reads the first bytes of a file of the copy. Returns `false` if the file is shorter.
    fn read_beginning(&self, kind: &str, bytes: &mut [u8]) -> io::Result<bool> {
        let Some(file) = self.open_copy_file(kind, u64::MAX)? else { return Ok(false) };
        match file.read_exact_at(bytes, 0) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
            read => read.map(|()| true),
        }
    }
}
