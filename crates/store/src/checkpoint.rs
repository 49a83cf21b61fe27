//! Checkpoints: what the files of a workspace were at one moment, as far as git and the commit at HEAD do not tell.

use std::fmt;

use serde::{Deserialize, Serialize};
use surehand_core::{ContentHash, RelPath, SessionId, Stamp};

use crate::Millis;

/// The name of a checkpoint.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CheckpointId(pub String);

impl fmt::Display for CheckpointId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What a workspace was at one moment: the files of the commit at HEAD, but for those that are listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpoint {
    /// What is said about it in a list.
    pub info: CheckpointInfo,
    /// The files that are not as the commit has them, by path.
    pub files: Vec<CheckpointFile>,
}

/// What is said about a checkpoint in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckpointInfo {
    /// Its name, which is random.
    pub id: CheckpointId,
    /// When it was made.
    pub at: Millis,
    /// When it was last found to be still so.
    pub until: Millis,
    /// For which session, if for one.
    pub session: Option<SessionId>,
    /// On what occasion.
    pub occasion: String,
    /// The name that a person gave it.
    pub name: Option<String>,
    /// The commit at HEAD. Without one, the listed files are all there was.
    pub commit: Option<String>,
    /// Whether what is neither listed nor in the commit was not there. Where git was no help, nothing is known of it.
    pub is_whole: bool,
    /// How long it took to make it or to find that it is still so, in milliseconds.
    pub took: u32,
    /// How many files are listed.
    pub files: usize,
    /// What was not kept, and why.
    pub not_kept: Vec<NotKept>,
}

/// What is at a path and was not kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotKept {
    /// Where.
    pub path: String,
    /// Why not.
    pub why: String,
}

/// A file that was not as the commit has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckpointFile {
    /// Where.
    pub path: RelPath,
    /// What was there.
    #[serde(flatten)]
    pub state: FileState,
}

/// What was at a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum FileState {
    /// A regular file.
    File {
        /// What it held.
        content: FileContent,
        /// Its permissions.
        mode: u32,
        /// What the system said about it.
        stamp: Stamp,
    },
    /// A symbolic link.
    Link {
        /// Where it led.
        target: String,
    },
    /// A directory without anything in it.
    Directory {
        /// Its permissions.
        mode: u32,
    },
    /// Nothing, though the commit has a file there.
    Absent,
    /// Something that was not kept.
    NotKept,
}

/// Where the content of a file is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileContent {
    /// In the store.
    Version(ContentHash),
    /// In git, as the blob of this name.
    Blob(String),
}

impl Checkpoint {
    /// The versions that the store must keep for it.
    pub fn versions(&self) -> impl Iterator<Item = &ContentHash> {
        self.files.iter().filter_map(|file| match &file.state {
            FileState::File { content: FileContent::Version(version), .. } => Some(version),
            _ => None,
        })
    }

    /// Whether both say the same of the files, whenever they were made.
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
