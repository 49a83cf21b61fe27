//! Things that happened to a workspace without anybody asking, to be told once.

use crate::path::RelPath;

/// Something to tell with the next reply.
#[derive(Debug, Clone, PartialEq, Eq)]
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
    /// The state directory was removed while it was in use, and made anew.
    StateLost,
    /// The state was damaged and begun anew.
    StateSetAside {
        /// Where the damaged file is.
        to: String,
    },
    /// What was done could not be remembered.
    NotRemembered {
        /// Why.
        why: String,
    },
}
