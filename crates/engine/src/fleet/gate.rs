//! Checks an edit against the board: claims of other agents, and changes that the edit will conflict with. It uses only
//! the local copy, so it never waits for a server.

use std::sync::Arc;

use surehand_core::{
    Cause, Collision, Content, FileAction, Forecast, LineRange, LineSet, LostClaimOn, Notice, OnOverlap, Planned, Refusal,
    RelPath, merge3,
};
use surehand_store::board::CheckoutId;

use super::{Forecaster, LocalCopy, LostClaim, LostThing, agent_of, file_forecasts::FoundCollision};
use crate::{file_cache::PlannedFile, session::Session, time::now};

/// A conflict with the board that does not prevent an edit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FleetWarning {
    /// Identifies the warning, so that a model sees it once.
    pub key: String,
    /// The text for the model.
    pub notice: Notice,
}

impl Session {
    /// Checks a planned change. Depending on the user's settings, a conflict is a warning or a refusal.
    pub(crate) fn check_fleet(&self, files: &[PlannedFile]) -> Result<Vec<FleetWarning>, Refusal> {
        let in_tree = |path: &RelPath| self.workspace.copy.in_tree(path);
        let paths = files.iter().flat_map(|file| [Some(file.planned.path()), file.planned.moved_to()]);
        let paths: Vec<RelPath> = paths.flatten().map(in_tree).collect();
        let Some(copy) = self.workspace.fleet_copy_about(&paths) else { return Ok(Vec::new()) };
        if copy.board.claims.is_empty() && copy.board.changes.is_empty() {
            return Ok(Vec::new());
        }
        let mut warnings = Vec::new();
        for file in files {
            for path in [Some(file.planned.path()), file.planned.moved_to()].into_iter().flatten() {
                warnings.extend(self.check_claims(&self.workspace.copy.in_tree(path), path, &copy)?);
            }
        }
        warnings.extend(self.check_collisions(files, &copy)?);
        Ok(warnings)
    }

    /// Checks the claims on these files, for an edit whose plan is not known.
    pub(crate) fn check_claimed(&self, paths: &[String]) -> Result<Vec<FleetWarning>, Refusal> {
        let paths = self.in_tree(paths);
        let Some(copy) = self.copy_about(&paths) else { return Ok(Vec::new()) };
        let found = paths.iter().map(|(in_tree, path)| self.check_claims(in_tree, path, &copy));
        Ok(found.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
    }

    /// The collisions of the present content of these files.
    pub(crate) fn check_made(&self, paths: &[String]) -> Vec<FleetWarning> {
        let paths = self.in_tree(paths);
        let Some(copy) = self.copy_about(&paths).filter(|copy| !copy.board.changes.is_empty()) else {
            return Vec::new();
        };
        let Some(here) = self.workspace.fleet_checkout() else { return Vec::new() };
        let changed: Vec<_> =
            paths.into_iter().filter(|(in_tree, _)| copy.board.changes_elsewhere(in_tree, &here).next().is_some()).collect();
        if changed.is_empty() {
            return Vec::new();
        }
        let Ok(forecasts) = Forecaster::of(&self.workspace) else { return Vec::new() };
        let of_file = |(in_tree, path): &(RelPath, RelPath)| {
            let content = self.workspace.content_in_tree(in_tree)?;
            let warning = |found: FoundCollision| {
                let collision = Box::new(Collision { path: path.clone(), ..found.collision });
                FleetWarning { key: found.key, notice: Notice::Collides { collision } }
            };
            Some(forecasts.collisions(in_tree, content.as_deref(), &copy, &here).into_iter().map(warning).collect::<Vec<_>>())
        };
        changed.iter().filter_map(of_file).flatten().collect()
    }

    /// The claims that this session has lost without releasing them.
    pub(crate) fn lost_claims(&self) -> Vec<FleetWarning> {
        let Some(fleet) = self.workspace.fleet() else { return Vec::new() };
        let copy = match fleet.keeps_copy() {
            true => fleet.kept_copy(),
            false => self.workspace.board_about_session(&self.id()).ok().flatten().map(Arc::new),
        };
        let Some(copy) = copy.filter(|copy| !copy.lost.is_empty()) else { return Vec::new() };
        let agent = agent_of(&self.id());
        copy.lost.iter().filter(|lost| lost.agent == agent).map(|lost| warning(lost, &copy)).collect()
    }

    /// The named paths, in the work tree and in the workspace.
    fn in_tree(&self, paths: &[String]) -> Vec<(RelPath, RelPath)> {
        let paths = paths.iter().filter_map(|path| self.path_of(path).ok());
        paths.map(|path| (self.workspace.copy.in_tree(&path), path)).collect()
    }

    fn copy_about(&self, paths: &[(RelPath, RelPath)]) -> Option<Arc<LocalCopy>> {
        let in_tree: Vec<RelPath> = paths.iter().map(|(in_tree, _)| in_tree.clone()).collect();
        self.workspace.fleet_copy_about(&in_tree)
    }

    fn check_claims(&self, in_tree: &RelPath, path: &RelPath, copy: &LocalCopy) -> Result<Option<FleetWarning>, Refusal> {
        let claim = copy.board.claim_of_another(in_tree, &agent_of(&self.id()), copy.board_time(now()));
        let Some(claim) = claim else { return Ok(None) };
        let (pattern, by) = (claim.pattern.to_string(), copy.name_of(&claim.by));
        match self.policy().claims {
            OnOverlap::Refuse => Err(Refusal::of(path, Cause::Claimed { pattern, by })),
            OnOverlap::Warn => Ok(Some(FleetWarning {
                key: format!("claim {in_tree} {} {}", claim.id, claim.fence),
                notice: Notice::Claimed { path: path.clone(), pattern, by },
            })),
        }
    }

    fn check_collisions(&self, files: &[PlannedFile], copy: &LocalCopy) -> Result<Vec<FleetWarning>, Refusal> {
        let mut warnings = Vec::new();
        let Some(here) = self.workspace.fleet_checkout() else { return Ok(warnings) };
        let planned = files.iter().map(|file| &file.planned);
        let changed: Vec<&Planned> = planned.filter(|planned| self.is_changed_elsewhere(planned, copy, &here)).collect();
        // Finding the fork point reads git's files, so it is done only if another checkout has changed one of these.
        if changed.is_empty() {
            return Ok(warnings);
        }
        let Ok(forecasts) = Forecaster::of(&self.workspace) else { return Ok(warnings) };
        for planned in changed {
            let in_tree = self.workspace.copy.in_tree(planned.path());
            let after = planned.after().filter(|_| !matches!(planned.act(), FileAction::Move { .. })).map(Content::bytes);
            let edited = edited_lines(planned);
            for found in forecasts.collisions(&in_tree, after, copy, &here) {
                let forecast = found.collision.forecast.on_lines(&edited);
                if forecast == Forecast::Clean {
                    continue;
                }
                let collision = Box::new(Collision { forecast, path: planned.path().clone(), ..found.collision });
                let is_certain = !matches!(collision.forecast, Forecast::Unknown(_));
                if is_certain && self.policy().collisions == OnOverlap::Refuse {
                    return Err(Refusal::of(planned.path(), Cause::Collides { collision }));
                }
                warnings.push(FleetWarning { key: found.key, notice: Notice::Collides { collision } });
            }
        }
        Ok(warnings)
    }

    fn is_changed_elsewhere(&self, planned: &Planned, copy: &LocalCopy, here: &CheckoutId) -> bool {
        let in_tree = self.workspace.copy.in_tree(planned.path());
        copy.board.changes_elsewhere(&in_tree, here).next().is_some()
    }

    /// Keeps warnings for the next reply, unless an earlier reply contained them.
    pub(crate) fn queue_fleet_warnings(&mut self, warnings: Vec<FleetWarning>) {
        for warning in warnings {
            if self.reported_fleet_warnings.insert(warning.key) {
                self.fleet_notices.push(warning.notice);
            }
        }
    }
}

fn warning(lost: &LostClaim, copy: &LocalCopy) -> FleetWarning {
    let by = lost.taken_by.as_ref().map(|by| copy.name_of(by));
    let thing = match &lost.what {
        LostThing::Task(task) => LostClaimOn::Task(task.0),
        LostThing::Paths(pattern) => LostClaimOn::Paths(pattern.to_string()),
    };
    FleetWarning { key: format!("lost {thing:?} {}", lost.fence), notice: Notice::ClaimLost { what: thing, by } }
}

/// The lines that a planned change edits, by their new numbers; for removed lines, their neighbours.
fn edited_lines(planned: &Planned) -> LineSet {
    let before = planned.base().map(Content::bytes).unwrap_or_default();
    let Some(after) = planned.after().map(Content::bytes) else { return LineSet::new() };
    let range = |lines: std::ops::Range<usize>| {
        let around = lines.start.saturating_sub(1)..lines.start + 1;
        LineRange::from_indexes(lines).or(LineRange::from_indexes(around))
    };
    let hunks = merge3::hunks(before, after).unwrap_or_default();
    hunks.into_iter().filter_map(|hunk| range(hunk.after)).collect()
}
