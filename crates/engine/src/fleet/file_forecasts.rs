//! The forecasts of one file against all other checkouts on the board.

use std::path::Path;

use surehand_core::{Collision, Forecast, RelPath};
use surehand_store::board::{CheckoutId, FileChange};

use super::{Forecaster, ForkPointError, LocalCopy, host};
use crate::{
    checkpoint::{lstat, read_file},
    time::now,
    workspace::Workspace,
};

/// A larger file has no forecast.
const MOST_BYTES: u64 = 16 << 20;

/// A forecast other than a clean merge.
pub(super) struct FoundCollision {
    pub collision: Collision,
    /// Identifies the collision. Another revision of the other change is another collision.
    pub key: String,
}

impl Forecaster {
    pub(super) fn of(workspace: &Workspace) -> Result<Self, ForkPointError> {
        Self::new(workspace, &workspace.fork_point()?)
    }

    /// The collisions of a file with this content; `None` if it is deleted. The path is one of the work tree.
    pub(super) fn collisions(
        &self,
        path: &RelPath,
        content: Option<&[u8]>,
        copy: &LocalCopy,
        here: &CheckoutId,
    ) -> Vec<FoundCollision> {
        let others = copy.board.changes_elsewhere(path, here);
        let found = |(checkout, theirs): (&CheckoutId, &FileChange)| {
            let forecast = self.forecast(content, theirs, self.head_of(checkout, copy).as_deref());
            let is_bad = match &forecast {
                Forecast::Clean => false,
                // A forecast that cannot be computed is not reported.
                Forecast::Unknown(_) => !forecast.conflicts().is_empty(),
                Forecast::SameLines(_) | Forecast::Deleted { .. } | Forecast::Binary => true,
            };
            is_bad.then(|| FoundCollision {
                collision: collision(path, theirs, forecast, (checkout, copy)),
                key: format!("collision {path} {checkout} {}", theirs.revision),
            })
        };
        others.filter_map(found).collect()
    }

    /// The commit at HEAD of another worktree of this repository on this machine. If the branch here was made from the
    /// branch there, its commits are part of this branch, and are not changes to be merged.
    fn head_of(&self, checkout: &CheckoutId, copy: &LocalCopy) -> Option<String> {
        let known = copy.board.checkouts.get(checkout).filter(|known| known.host == host())?;
        self.head_at(Path::new(&known.path))
    }
}

fn collision(path: &RelPath, theirs: &FileChange, forecast: Forecast, (checkout, copy): (&CheckoutId, &LocalCopy)) -> Collision {
    let agent = theirs.by.as_ref().map(|by| copy.name_of(by));
    let branch =
        copy.board.agents.values().find(|presence| {
            presence.agent.checkout == *checkout && theirs.by.as_ref().is_none_or(|by| *by == presence.agent.id)
        });
    let place = copy.board.checkouts.get(checkout).map(|checkout| format!("{}:{}", checkout.host, checkout.path));
    Collision {
        agent: agent.or(place),
        branch: branch.and_then(|presence| presence.agent.branch.clone()),
        path: path.clone(),
        // A revision is the time of the report, by the clock of the board.
        seconds_ago: u64::try_from((copy.board_time(now()) - theirs.revision) / 1000).ok(),
        forecast,
    }
}

impl Workspace {
    /// The content of a file, by its path in the work tree. `Some(None)` if there is no file, `None` if it cannot be
    /// read.
    pub(super) fn content_in_tree(&self, path: &RelPath) -> Option<Option<Vec<u8>>> {
        let path = self.copy.in_root(path)?;
        match lstat(self, &path) {
            Ok(_) => read_file(self, &path, MOST_BYTES).ok().flatten().map(Some),
            Err(rustix::io::Errno::NOENT | rustix::io::Errno::NOTDIR) => Some(None),
            Err(_) => None,
        }
    }
}
