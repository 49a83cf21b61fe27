//! Events in a workspace that no call asked for, each reported once.

use serde::Serialize;

use crate::path::RelPath;

/// Something to tell with the next reply.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Notice {
    /// Somebody wrote into a file that had just been replaced. Their bytes are kept.
    Rescued {
        /// The file they meant.
        path: RelPath,
        /// Where their bytes are.
        to: String,
    },
    /// A commit that a crash had interrupted turned out to be complete.
    Completed {
        /// Its files.
        paths: Vec<RelPath>,
    },
    /// A commit that a crash had interrupted was taken back.
    TakenBack {
        /// Its files.
        paths: Vec<RelPath>,
        /// Those of them that somebody has changed since; they stayed as they are.
        kept: Vec<RelPath>,
    },
    /// What a crash left could not be settled; it is left for a later start.
    NotRecovered {
        /// Why.
        why: String,
    },
    /// Files that a session has seen are not what it saw any more.
    ChangedOutside {
        /// Each once for what it has become.
        files: Vec<ChangedFile>,
    },
    /// Changes of files are found out by looking at them, not by being told: slower, and as sure.
    NotWatching {
        /// Why.
        why: String,
    },
    /// The state directory was removed while it was in use, and made anew.
    StateLost,
    /// The root of the workspace was removed and made again.
    RootReplaced,
    /// The state was damaged and begun anew.
    StateSetAside {
        /// Where the damaged file is.
        to: String,
    },
    /// The record of what was done to files was lost, and the list of files was made anew from those that are there.
    RepoStateRebuilt,
    /// What was done could not be remembered.
    NotRemembered {
        /// Why.
        why: String,
    },
}

/// A file that is not what a session saw.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ChangedFile {
    /// Which.
    pub path: RelPath,
    /// Whether it is gone.
    pub deleted: bool,
    /// Who did it.
    pub by: ChangeAuthor,
}

/// Who changed a file, as far as that is known. Nobody is named on suspicion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeAuthor {
    /// A command that this session ran.
    Command,
    /// Another session, with our tools.
    AnotherSession,
    /// A command that another session ran.
    CommandOfAnotherSession,
    /// Nobody knows.
    Unknown,
}
