//! Forecasts between checkouts, from the changes that another checkout has put on the board and the blobs in git.

use std::{borrow::Cow, cell::RefCell, collections::HashMap, path::Path};

use surehand_core::{
    Forecast, Hunk,
    forecast::{UnknownForecast, Version, VersionHunk, apply, forecast, in_line_endings_of},
};
use surehand_store::board::{ContentChange, FileChange, SharedHunk};

use super::fork_point::{ForkPoint, ForkPointError};
use crate::{
    git::{self, CannotTell, GitDirs, History, ObjectId, Objects, TreeEntry},
    workspace::Workspace,
};

/// Predicts whether files of this checkout will conflict with those of other checkouts.
///
/// It keeps git's packs open, so create one for each call.
pub struct Forecaster {
    git: GitDirs,
    objects: Objects,
    mine: ForkPoint,
    bases: RefCell<HashMap<(ObjectId, ObjectId), Vec<ObjectId>>>,
}

/// A larger file has no forecast.
const MOST_BYTES: usize = 16 << 20;

impl Forecaster {
    /// A forecaster for the checkout of this workspace, whose fork point is `mine`.
    pub fn new(workspace: &Workspace, mine: &ForkPoint) -> Result<Self, ForkPointError> {
        let git = workspace.git_dirs().ok_or(ForkPointError::NoRepository)?;
        Ok(Self { objects: Objects::of(&git.common), git, mine: mine.clone(), bases: RefCell::default() })
    }

    /// Predicts whether my version of a file will conflict with theirs. `mine` is the present or planned content;
    /// `None` if the file is deleted.
    ///
    /// The base is the merge base of both fork points. If `their_head` is known, the commit at HEAD of their checkout,
    /// the base is the merge base of both HEADs. This also works for branches that were made from each other.
    pub fn forecast(&self, mine: Option<&[u8]>, theirs: &FileChange, their_head: Option<&str>) -> Forecast {
        self.try_forecast(mine, theirs, their_head).unwrap_or_else(Forecast::Unknown)
    }

    /// The commit at HEAD of another checkout of this repository, by the path of its root; `None` if the path is not
    /// such a checkout.
    pub fn head_at(&self, root: &Path) -> Option<String> {
        let git = git::checkout_at(&self.git.common, root)?;
        Some(git::reference(&git, "HEAD").ok()?.commit?.to_string())
    }

    fn try_forecast(
        &self,
        mine: Option<&[u8]>,
        theirs: &FileChange,
        their_head: Option<&str>,
    ) -> Result<Forecast, UnknownForecast> {
        let base = self.base(theirs, their_head)?;
        let content = base.map_or(Ok(Vec::new()), |base| self.blob(&base.id))?;
        let their_base = theirs.base.as_deref().map(|id| ObjectId::from_hex(id).ok_or(UnknownForecast::OtherBase)).transpose()?;
        let their_content;
        let their_version = match &theirs.change {
            ContentChange::Deleted => Version::Deleted,
            ContentChange::Binary => Version::Binary,
            ContentChange::Lines(hunks) if their_base == base.map(|base| base.id) => Version::Hunks(version_hunks(hunks)),
            // Their hunks belong to another version of the file than the base.
            ContentChange::Lines(hunks) => {
                let content = their_base.map_or(Ok(Vec::new()), |id| self.blob(&id))?;
                their_content = apply(&content, &version_hunks(hunks))?.ok_or(UnknownForecast::OtherBase)?;
                Version::Content(&their_content)
            }
            ContentChange::Same => match their_base {
                None => Version::Deleted,
                Some(id) => {
                    their_content = self.blob(&id)?;
                    Version::Content(&their_content)
                }
            },
        };
        let mine: Option<Cow<'_, [u8]>> = mine.map(|mine| in_line_endings_of(&content, mine));
        if base.is_none() && (mine.is_none() || their_version == Version::Deleted) {
            return Ok(Forecast::Clean);
        }
        let mine = mine.as_deref().map_or(Version::Deleted, Version::Content);
        Ok(forecast(&content, &mine, &their_version))
    }

    /// The file in the commit that both sides start from.
    fn base(&self, theirs: &FileChange, their_head: Option<&str>) -> Result<Option<TreeEntry>, UnknownForecast> {
        let id = |hex: &str| ObjectId::from_hex(hex).ok_or(UnknownForecast::NoBase);
        let (one, other) = match their_head {
            Some(head) => (self.mine.branches.head, id(head)?),
            None => (self.mine.commit, id(&theirs.fork_point)?),
        };
        let bases = self.merge_bases(one, other).map_err(|_| UnknownForecast::NoBase)?;
        let entry = |commit: &ObjectId| -> Result<Option<TreeEntry>, CannotTell> {
            let tree = if *commit == self.mine.commit {
                self.mine.tree
            } else {
                History::of(&self.git, &self.objects)?.commit(commit)?.tree
            };
            git::entry_at(&self.objects, &tree, theirs.path.as_str())
        };
        let entries: Vec<Option<TreeEntry>> =
            bases.iter().map(entry).collect::<Result<_, _>>().map_err(|_| UnknownForecast::NoBase)?;
        // After criss-cross merges, git constructs a virtual base, unless the file is equal in all bases.
        let (first, others) = entries.split_first().ok_or(UnknownForecast::NoBase)?;
        if others.iter().all(|other| other == first) { Ok(*first) } else { Err(UnknownForecast::NoBase) }
    }

    fn merge_bases(&self, one: ObjectId, other: ObjectId) -> Result<Vec<ObjectId>, CannotTell> {
        if one == other {
            return Ok(vec![one]);
        }
        if let Some(known) = self.bases.borrow().get(&(one, other)) {
            return Ok(known.clone());
        }
        let bases = History::of(&self.git, &self.objects)?.merge_bases(&one, &other)?;
        self.bases.borrow_mut().insert((one, other), bases.clone());
        Ok(bases)
    }

    fn blob(&self, id: &ObjectId) -> Result<Vec<u8>, UnknownForecast> {
        self.objects.blob(id, MOST_BYTES).ok().flatten().ok_or(UnknownForecast::NoBase)
    }
}

fn version_hunks(hunks: &[SharedHunk]) -> Vec<VersionHunk<'_>> {
    let lines = |hunk: &SharedHunk| Hunk {
        before: hunk.before.start as usize..hunk.before.end as usize,
        after: hunk.after.start as usize..hunk.after.end as usize,
    };
    hunks.iter().map(|hunk| VersionHunk { lines: lines(hunk), text: hunk.text.as_deref() }).collect()
}
