//! Attribution of lines: to the sessions, commands and other programs in the log, and to commits of git.

mod blame;
mod committed;
mod history;
mod session_commit;
mod session_file;
mod session_work;
mod steps;

pub use blame::{Blame, BlameError, BlamedLines, LineAuthor};
pub use session_commit::{SessionCommit, SessionCommitError, SessionCommitPlan, SessionCommitRequest};
pub use session_work::{LeftWhy, LeftWork, PatchError, SessionFile, SessionWork, SessionWorkError, WorkBase, WorkSide};

pub use crate::git::{blame::CommitInfo, program::GitError};
