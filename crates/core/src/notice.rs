//! Events in a workspace that no call asked for, each reported once.

use serde::Serialize;

use crate::{forecast::Collision, path::RelPath};

/// An event to be reported with the next reply.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Notice {
    /// Another program wrote into a file that had just been replaced. Its bytes are kept.
    Rescued {
        /// The file that the other program meant to write.
        path: RelPath,
        /// Where its bytes are kept, relative to the root or absolute.
        to: String,
    },
    /// A commit that a crash had interrupted was found to be complete.
    Completed {
        /// The files of the commit.
        paths: Vec<RelPath>,
    },
    /// A commit that a crash had interrupted was rolled back.
    TakenBack {
        /// The files of the commit.
        paths: Vec<RelPath>,
        /// The files that others have changed since, which were left unchanged.
        kept: Vec<RelPath>,
    },
    /// Recovery after a crash failed, and will be tried again at a later start.
    NotRecovered {
        /// Why recovery failed, as an error message.
        why: String,
    },
    /// Files that a session has seen have changed.
    ChangedOutside {
        /// Each file, once for each state.
        files: Vec<ChangedFile>,
    },
    /// Files cannot be watched, so changes are found by comparing them: slower, but just as certain.
    NotWatching {
        /// Why files cannot be watched.
        why: String,
    },
    /// The state directory was removed while it was in use, and was created again.
    StateLost,
    /// The root of the workspace was removed and created again.
    RootReplaced,
    /// The state was damaged, and a new one was started.
    StateSetAside {
        /// Path of the damaged file.
        to: String,
    },
    /// The record of changes was lost, and the list of files was rebuilt from the disk.
    RepoStateRebuilt,
    /// A change could not be recorded.
    NotRemembered {
        /// Why the state could not be written.
        why: String,
    },
    /// Another agent has claimed the paths of an edit that was made.
    Claimed {
        /// The file that was edited.
        path: RelPath,
        /// The pattern of the claimed paths.
        pattern: String,
        /// The short name of the other agent.
        by: String,
    },
    /// A claim of this session has ended without its doing.
    ClaimLost {
        /// The claimed task or paths.
        what: LostClaimOn,
        /// The short name of the agent that has it now.
        by: Option<String>,
    },
    /// An edit will conflict with a change in another checkout.
    Collides {
        /// The other checkout's change, and the forecast of the merge.
        collision: Box<Collision>,
    },
}

/// The object of a claim.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LostClaimOn {
    /// A shared task, by its number.
    Task(i64),
    /// Paths, by their pattern.
    Paths(String),
}

/// A file that differs from what a session saw.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ChangedFile {
    /// The path, relative to the root.
    pub path: RelPath,
    /// Whether the file was deleted.
    pub deleted: bool,
    /// The author of the change.
    pub by: ChangeAuthor,
}

/// The author of a change, if that is known for certain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeAuthor {
    /// A command that this session ran.
    Command,
    /// Another session, with Surehand's tools.
    AnotherSession,
    /// A command that another session ran.
    CommandOfAnotherSession,
    /// The author is not known.
    Unknown,
}
