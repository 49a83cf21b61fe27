//! Checkpoints: the state of a workspace's files at one time, as the differences from the commit at HEAD.

use serde::{Deserialize, Serialize};
use surehand_core::{ContentHash, RelPath, SessionId, Stamp, string_ids};

use crate::Millis;

string_ids! {
    /// The id of a checkpoint.
    CheckpointId
}

/// The state of a workspace at one time: the files of the commit at HEAD, except those that are listed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checkpoint {
    /// The description in a list of checkpoints.
    pub info: CheckpointInfo,
    /// The files that differ from the commit, by path.
    pub files: Vec<CheckpointFile>,
}

/// The description of a checkpoint in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckpointInfo {
    /// The random id of the checkpoint.
    pub id: CheckpointId,
    /// The time when it was made.
    pub at: Millis,
    /// The last time when the files were found unchanged.
    pub until: Millis,
    /// The session for which it was made, if any.
    pub session: Option<SessionId>,
    /// The reason for the checkpoint, such as `command: make`.
    pub occasion: String,
    /// The name that a person gave it.
    pub name: Option<String>,
    /// The commit at HEAD. If `None`, the list has every file.
    pub commit: Option<String>,
    /// Whether every file is either listed or in the commit. If git could not help, unlisted files are unknown.
    pub is_whole: bool,
    /// The time for creating or confirming it, in milliseconds.
    pub took: u32,
    /// The number of listed files.
    pub files: usize,
    /// Files that were not kept, with the reasons.
    pub not_kept: Vec<NotKept>,
}

/// A file that was not kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotKept {
    /// The path, relative to the root of the workspace.
    pub path: String,
    /// Why it was not kept.
    pub why: String,
}

/// A file that differs from the commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckpointFile {
    /// The path, relative to the root of the workspace.
    pub path: RelPath,
    /// The state of the file at that path.
    #[serde(flatten)]
    pub state: FileState,
}

/// The state of a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum FileState {
    /// A regular file with its content.
    File {
        /// The place of the content.
        content: FileContent,
        /// The permissions, as a Unix mode.
        mode: u32,
        /// The metadata of the system.
        stamp: Stamp,
    },
    /// A symbolic link, to any target.
    Link {
        /// The target, as stored in the link.
        target: String,
    },
    /// A directory without any entries.
    Directory {
        /// The permissions, as a Unix mode.
        mode: u32,
    },
    /// The path does not exist, although the commit has a file there.
    Absent,
    /// A file that was not kept.
    NotKept,
}

/// The place where the content of a file is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileContent {
    /// In the store, under this version.
    Version(ContentHash),
    /// In git, as the blob with this id.
    Blob(String),
}

impl Checkpoint {
    /// The versions that the store must keep for this checkpoint.
    pub fn versions(&self) -> impl Iterator<Item = &ContentHash> {
        self.files.iter().filter_map(|file| match &file.state {
            FileState::File { content: FileContent::Version(version), .. } => Some(version),
            _ => None,
        })
    }

    /// Whether both checkpoints describe the same files, regardless of when they were made.
    pub fn says_the_same(&self, other: &Checkpoint) -> bool {
        let state = |file: &CheckpointFile| match file.state.clone() {
            FileState::File { content, mode, stamp } => {
                (content, mode, Some((stamp.device, stamp.inode, stamp.modified, stamp.changed)))
            }
            _ => (FileContent::Blob(String::new()), 0, None),
        };
        let is_same = |(one, other): (&CheckpointFile, &CheckpointFile)| match (&one.state, &other.state) {
            (FileState::File { .. }, FileState::File { .. }) => one.path == other.path && state(one) == state(other),
            _ => one == other,
        };
        (&self.info.commit, self.info.is_whole, &self.info.not_kept)
            == (&other.info.commit, other.info.is_whole, &other.info.not_kept)
            && self.files.len() == other.files.len()
            && self.files.iter().zip(&other.files).all(is_same)
    }
}
