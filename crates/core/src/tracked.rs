//! The rule by which the record of a file changes when the file is touched. Memory and store apply the same rule, also
//! to touches that arrive late.

use crate::{hash::ContentHash, path::RelPath, repo_state::FileStatus, timestamp::Millis, view::OutsideState};

/// The record of a file that sessions have touched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileRecord {
    /// The current version; for a deleted file the last one.
    pub version: ContentHash,
    /// The change since the file was first tracked.
    pub status: FileStatus,
    /// Whether another writer has changed it since a session last saw it.
    pub changed_outside: bool,
    /// The time of the last touch.
    pub at: Millis,
}

/// An event that affects the record of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Touch {
    /// A session read this version.
    Read(ContentHash),
    /// A session created the file, with this version.
    Created(ContentHash),
    /// A session changed the file.
    Modified {
        /// The version before the change, if known.
        from: Option<ContentHash>,
        /// The version after the change.
        to: ContentHash,
    },
    /// A session moved another file to this path.
    Moved {
        /// The path before the move.
        from: RelPath,
        /// The version, before and after the move.
        to: ContentHash,
    },
    /// A session deleted the file.
    Deleted {
        /// The last version before it was deleted, if known.
        was: Option<ContentHash>,
    },
    /// Another writer changed the file. If it has no record yet, this is simply its state.
    Outside(OutsideState),
}

impl Touch {
    /// Whether a session has changed the file.
    pub fn is_change(&self) -> bool {
        !matches!(self, Self::Read(_) | Self::Outside(_))
    }
}

impl FileRecord {
    /// The record after a touch; `None` if the touch does not change it.
    ///
    /// Touches may arrive late, because each process records its own. A touch that is older than the last one is
    /// ignored, unless it starts at the known version. `other` returns the record of another file.
    pub fn after(known: Option<Self>, touch: &Touch, at: Millis, other: impl FnOnce(&RelPath) -> Option<Self>) -> Option<Self> {
        let is_late = known.is_some_and(|known| at < known.at && !touch.follows(known));
        let next = match *touch {
            Touch::Outside(now) => Self::found(known, now, at)?,
            Touch::Deleted { was } => {
                let version = known.map(|known| known.version).or(was)?;
                Self { version, status: FileStatus::Deleted, changed_outside: false, at }
            }
            Touch::Read(version) => Self::put(known, version, FileStatus::Unchanged, at),
            Touch::Created(version) => Self::put(known, version, FileStatus::Created, at),
            Touch::Modified { to, .. } => Self::put(known, to, FileStatus::Modified, at),
            Touch::Moved { ref from, to } => {
                let was_created = other(from).is_some_and(|other| other.status == FileStatus::Created);
                Self::put(known, to, if was_created { FileStatus::Created } else { FileStatus::Modified }, at)
            }
        };
        let is_same = |known: Self| Self { at: known.at, ..next } == known;
        (!is_late && !known.is_some_and(is_same)).then_some(next)
    }

    /// The record after a session has seen or written this version.
    fn put(known: Option<Self>, version: ContentHash, status: FileStatus, at: Millis) -> Self {
        let status = match known {
            Some(Self { status: FileStatus::Created, .. }) => FileStatus::Created,
            Some(Self { status: FileStatus::Modified | FileStatus::Deleted, .. }) => FileStatus::Modified,
            Some(known) if status == FileStatus::Unchanged && known.version != version => FileStatus::Modified,
            _ => status,
        };
        Self { version, status, changed_outside: false, at: known.map_or(at, |known| at.max(known.at)) }
    }

    /// The record after the file was found in this state.
    fn found(known: Option<Self>, now: OutsideState, at: Millis) -> Option<Self> {
        let is_deleted = known.is_some_and(|known| known.status == FileStatus::Deleted);
        match (known, now) {
            (None, OutsideState::Version(version)) => Some(Self::put(None, version, FileStatus::Unchanged, at)),
            (None, OutsideState::Gone) => None,
            (Some(_), OutsideState::Gone) if is_deleted => None,
            (Some(known), OutsideState::Gone) => Some(Self { status: FileStatus::Deleted, changed_outside: true, at, ..known }),
            (Some(known), OutsideState::Version(version)) if known.version == version && !is_deleted => None,
            (Some(known), OutsideState::Version(version)) => Some(Self {
                changed_outside: true,
                ..Self::put(Some(Self { version, ..known }), version, FileStatus::Modified, at)
            }),
        }
    }
}

impl Touch {
    /// Whether a late touch still applies: it starts at the known version, or shows which session wrote or saw it.
    fn follows(&self, known: FileRecord) -> bool {
        let version = Some(known.version);
        let belongs = match self {
            Self::Modified { from, to } => *from == version || Some(*to) == version,
            Self::Read(to) | Self::Created(to) | Self::Moved { to, .. } => Some(*to) == version,
            Self::Deleted { .. } | Self::Outside(_) => false,
        };
        belongs && known.status != FileStatus::Deleted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(name: &str) -> ContentHash {
        ContentHash::of(name.as_bytes())
    }

    fn modified(from: &str, to: &str) -> Touch {
        Touch::Modified { from: Some(version(from)), to: version(to) }
    }

    /// The record after these touches, each with its time.
    fn after(touches: &[(Touch, Millis)]) -> Option<(ContentHash, FileStatus, bool)> {
        let step = |known, (touch, at): &(Touch, Millis)| FileRecord::after(known, touch, *at, |_| None).or(known);
        touches.iter().fold(None, step).map(|known| (known.version, known.status, known.changed_outside))
    }

    #[track_caller]
    fn check(touches: &[(Touch, Millis)], of: &str, status: FileStatus, changed_outside: bool) {
        assert_eq!(after(touches), Some((version(of), status, changed_outside)));
    }

    #[test]
    fn a_status_describes_the_change_since_a_file_is_tracked() {
        let (read, created) = (|of| Touch::Read(version(of)), |of| Touch::Created(version(of)));
        let deleted = Touch::Deleted { was: Some(version("a")) };
        check(&[(read("a"), 1)], "a", FileStatus::Unchanged, false);
        check(&[(read("a"), 1), (read("b"), 2)], "b", FileStatus::Modified, false);
        check(&[(created("a"), 1), (modified("a", "b"), 2), (read("b"), 3)], "b", FileStatus::Created, false);
        check(&[(read("a"), 1), (modified("a", "b"), 2)], "b", FileStatus::Modified, false);
        check(&[(created("a"), 1), (deleted.clone(), 2)], "a", FileStatus::Deleted, false);
        check(&[(deleted.clone(), 1), (created("b"), 2)], "b", FileStatus::Modified, false);
        assert_eq!(after(&[(Touch::Deleted { was: None }, 1)]), None);
        let moved = Touch::Moved { from: RelPath::new("old").unwrap(), to: version("a") };
        let of = |status| FileRecord { version: version("a"), status, changed_outside: false, at: 1 };
        for (before, now) in [(FileStatus::Created, FileStatus::Created), (FileStatus::Unchanged, FileStatus::Modified)] {
            assert_eq!(FileRecord::after(None, &moved, 2, |_| Some(of(before))).unwrap().status, now);
        }
    }

    #[test]
    fn an_outside_change_is_marked_until_a_session_has_seen_it() {
        let (read, outside) = (|of| Touch::Read(version(of)), |of| Touch::Outside(OutsideState::Version(version(of))));
        let gone = Touch::Outside(OutsideState::Gone);
        check(&[(read("a"), 1), (outside("b"), 2)], "b", FileStatus::Modified, true);
        check(&[(read("a"), 1), (outside("b"), 2), (read("b"), 3)], "b", FileStatus::Modified, false);
        check(&[(read("a"), 1), (outside("a"), 2)], "a", FileStatus::Unchanged, false);
        check(&[(read("a"), 1), (gone.clone(), 2)], "a", FileStatus::Deleted, true);
        check(&[(read("a"), 1), (gone.clone(), 2), (outside("a"), 3)], "a", FileStatus::Modified, true);
        check(&[(outside("a"), 1)], "a", FileStatus::Unchanged, false);
        assert_eq!(after(&[(gone, 1)]), None);
    }

    #[test]
    fn a_late_touch_does_not_undo_a_newer_one() {
        let (read, outside) = (|of| Touch::Read(version(of)), |of| Touch::Outside(OutsideState::Version(version(of))));
        // Two processes changed it one after the other, and the first one's record arrives second.
        check(&[(read("a"), 1), (modified("b", "c"), 3), (modified("a", "b"), 2)], "c", FileStatus::Modified, false);
        check(&[(modified("a", "b"), 3), (read("a"), 2)], "b", FileStatus::Modified, false);
        // Another session saw the change before its own process recorded it. So a session made it, not an outside
        // program.
        check(&[(read("a"), 1), (outside("b"), 3), (modified("a", "b"), 2)], "b", FileStatus::Modified, false);
        check(&[(read("a"), 1), (outside("b"), 3), (read("b"), 2)], "b", FileStatus::Modified, false);
        check(&[(Touch::Deleted { was: Some(version("b")) }, 3), (modified("a", "b"), 2)], "b", FileStatus::Deleted, false);
        // A clock was set back.
        check(&[(modified("a", "b"), 9), (modified("b", "c"), 2)], "c", FileStatus::Modified, false);
        check(&[(read("a"), 9), (read("a"), 2)], "a", FileStatus::Unchanged, false);
    }

    #[test]
    fn a_touch_that_says_nothing_new_is_nothing() {
        let known = FileRecord::after(None, &Touch::Read(version("a")), 1, |_| None);
        assert_eq!(FileRecord::after(known, &Touch::Read(version("a")), 2, |_| None), None);
    }
}
