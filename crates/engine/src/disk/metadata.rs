//! The metadata of a file: mode, owner, and extended attributes, which include access control lists. A replacement gets
//! all of it; changes that other programs make in the meantime are carried over.

use std::{fs::File, os::fd::AsFd};

use rustix::{
    fs::{self as sys, Gid, Mode, Stat, Uid, XattrFlags},
    io::Errno,
};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Metadata {
    mode: u32,
    owner: (u32, u32),
    #[serde(default, skip_serializing_if = "Attributes::is_empty")]
    attributes: Attributes,
}

/// Names and values, sorted by name. A list, because names need not be UTF-8 and keys of JSON must be.
type Attributes = Vec<(Vec<u8>, Vec<u8>)>;

/// Metadata with more bytes of attributes is not written to the journal.
const MOST_IN_JOURNAL: usize = 4096;

/// The difference between the metadata of a file at two moments, or of two files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MetadataChange {
    mode: Option<u32>,
    owner: Option<(u32, u32)>,
    /// Values that were set; `None` if the attribute was removed.
    attributes: Vec<(Vec<u8>, Option<Vec<u8>>)>,
}

/// The bits of a mode that can be set.
const MODE_BITS: u32 = 0o7777;

impl Metadata {
    /// The metadata of an open file, of which this is the status.
    pub(crate) fn of(file: &File, stat: &Stat) -> rustix::io::Result<Self> {
        Ok(Self { mode: stat.st_mode & MODE_BITS, owner: (stat.st_uid, stat.st_gid), attributes: read_attributes(file)? })
    }

    /// The change that turns `from` into this; `None` if they are equal.
    pub(crate) fn change_from(&self, from: &Self) -> Option<MetadataChange> {
        if self == from {
            return None;
        }
        let owner = (self.owner != from.owner).then_some(self.owner);
        // The system clears special bits when the owner changes.
        let mode = (self.mode != from.mode || owner.is_some()).then_some(self.mode);
        let set = self.attributes.iter().filter(|attribute| !from.attributes.contains(attribute));
        let is_here = |name: &Vec<u8>| self.attributes.iter().any(|(other, _)| other == name);
        let removed = from.attributes.iter().filter(|(name, _)| !is_here(name));
        let attributes = removed
            .map(|(name, _)| (name.clone(), None))
            .chain(set.map(|(name, value)| (name.clone(), Some(value.clone()))))
            .collect();
        Some(MetadataChange { mode, owner, attributes })
    }

    /// The metadata, if it is short enough for the journal. If it is not, changes by other programs are not carried
    /// over after a crash.
    pub(crate) fn for_journal(&self) -> Option<Self> {
        let bytes: usize = self.attributes.iter().map(|(name, value)| name.len() + value.len()).sum();
        (bytes <= MOST_IN_JOURNAL).then(|| self.clone())
    }

    /// The metadata without security labels, which the system assigns to new files itself.
    pub(crate) fn without_labels(mut self) -> Self {
        self.attributes.retain(|(name, _)| !is_label(name));
        self
    }
}

impl MetadataChange {
    /// Applies the change to a file. Security labels that we may not set are skipped, because the system assigns them;
    /// everything else must succeed.
    pub(crate) fn apply(&self, file: &File) -> rustix::io::Result<()> {
        if let Some((user, group)) = self.owner {
            sys::fchown(file, Some(Uid::from_raw(user)), Some(Gid::from_raw(group)))?;
        }
        for (name, value) in &self.attributes {
            let done = match value {
                Some(value) => sys::fsetxattr(file, &name[..], value, XattrFlags::empty()),
                None => sys::fremovexattr(file, &name[..]),
            };
            match done {
                Err(Errno::PERM | Errno::ACCESS | Errno::OPNOTSUPP) if is_label(name) => {}
                // Removed already.
                Err(Errno::NODATA) => {}
                done => done?,
            }
        }
        // Last: a change of owner or of the access control list also changes the mode.
        match self.mode {
            Some(mode) => sys::fchmod(file, Mode::from_raw_mode(mode)),
            None => Ok(()),
        }
    }
}

/// Whether an attribute is one that the system sets by itself.
fn is_label(name: &[u8]) -> bool {
    name.starts_with(b"security.")
}

/// The extended attributes of a file. One that is removed meanwhile is left out.
fn read_attributes(file: &File) -> rustix::io::Result<Attributes> {
    let names = match read_growing(|buffer| sys::flistxattr(file.as_fd(), buffer), || sys::flistxattr_query(file.as_fd())) {
        Err(Errno::OPNOTSUPP) => return Ok(Attributes::new()),
        names => names?,
    };
    let mut attributes = Attributes::new();
    for name in names.split(|byte| *byte == 0).filter(|name| !name.is_empty()) {
        match read_attribute(file, name) {
            Ok(value) => attributes.push((name.to_vec(), value)),
            Err(Errno::NODATA | Errno::OPNOTSUPP) => {}
            Err(errno) => return Err(errno),
        }
    }
    attributes.sort();
    Ok(attributes)
}

fn read_attribute(file: &File, name: &[u8]) -> rustix::io::Result<Vec<u8>> {
    read_growing(|buffer| sys::fgetxattr(file.as_fd(), name, buffer), || sys::fgetxattr_query(file.as_fd(), name))
}

/// Asks for the size first, and again if the value has grown meanwhile.
fn read_growing(
    read: impl Fn(&mut [u8]) -> rustix::io::Result<usize>,
    size: impl Fn() -> rustix::io::Result<usize>,
) -> rustix::io::Result<Vec<u8>> {
    loop {
        let mut buffer = vec![0; size()?];
        if buffer.is_empty() {
            return Ok(buffer);
        }
        match read(&mut buffer) {
            Err(Errno::RANGE) => {}
            read => {
                buffer.truncate(read?);
                return Ok(buffer);
            }
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn now(file: &File) -> Metadata {
        Metadata::of(file, &sys::fstat(file).unwrap()).unwrap()
    }

    fn set(file: &File, name: &str, value: &str) -> bool {
        sys::fsetxattr(file, name, value.as_bytes(), XattrFlags::empty()).is_ok()
    }

    #[test]
    fn a_change_is_carried_over_and_nothing_else() {
        let (one, other) = (tempfile::tempfile().unwrap(), tempfile::tempfile().unwrap());
        if !set(&one, "user.kept", "1") {
            eprintln!("no extended attributes here");
            return;
        }
        set(&one, "user.gone", "2");
        let before = now(&one);
        assert_eq!(now(&one).change_from(&before), None);
        before.change_from(&now(&other)).unwrap().apply(&other).unwrap();
        assert_eq!(now(&other), before);

        // Both files change in different ways; the changes of the first are carried over to the second.
        one.set_permissions(PermissionsExt::from_mode(0o750)).unwrap();
        sys::fremovexattr(&one, "user.gone").unwrap();
        set(&one, "user.new", "3");
        set(&other, "user.other", "4");
        now(&one).change_from(&before).unwrap().apply(&other).unwrap();
        let after = now(&other).without_labels();
        let names: Vec<&str> = after.attributes.iter().map(|(name, _)| str::from_utf8(name).unwrap()).collect();
        assert_eq!(names, ["user.kept", "user.new", "user.other"]);
        assert_eq!(after.mode, 0o750);
    }
}
