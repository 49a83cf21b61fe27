//! The activity of a workspace in one list: changes, undos, restores, checkpoints, changes from outside, refusals and
//! rescues.

use surehand_core::{RelPath, file_diff::FileDiff};
use surehand_store::{CheckpointInfo, EventFilter, Incident, IncidentKind, Millis, SessionId, StoreError};

use crate::{
    change_log::{ChangeSelection, LoggedChange},
    rescued::{Rescue, RescueError},
    restore::RestoreError,
    session_names::{IdError, IdKind, find_id},
    workspace::Workspace,
};

/// The kind of an activity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ActivityKind {
    /// Files were changed.
    Change,
    /// A change was undone or redone.
    Undo,
    /// Files were restored.
    Restore,
    /// A checkpoint was taken.
    Checkpoint,
    /// A file was changed by another program.
    Outside,
    /// A call was refused.
    Refusal,
    /// Content that another program wrote during a commit was rescued.
    Rescue,
}

impl ActivityKind {
    /// All kinds with their names, as `surehand log --kind` takes them.
    pub const NAMES: [(&str, Self); 7] = [
        ("change", Self::Change),
        ("undo", Self::Undo),
        ("restore", Self::Restore),
        ("checkpoint", Self::Checkpoint),
        ("outside", Self::Outside),
        ("refusal", Self::Refusal),
        ("rescue", Self::Rescue),
    ];

    /// The name in [`Self::NAMES`].
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(_, kind)| *kind == self).expect("every kind is listed").0
    }
}

/// An entry in the list of activities.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Activity {
    /// A change, an undo or a restore.
    Change(Box<LoggedChange>),
    /// A checkpoint.
    Checkpoint(Box<CheckpointInfo>),
    /// A change from outside, a refusal, or the end of a rescue.
    Incident(Incident),
    /// A rescued file that has neither been applied nor dropped.
    Rescue(Rescue),
}

/// Selects entries that match all given fields.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ActivityFilter {
    /// Entries about this file or directory. Checkpoints concern all files and are left out.
    pub path: Option<RelPath>,
    /// Entries of this session.
    pub session: Option<SessionId>,
    /// Entries of these kinds; an empty list means all.
    pub kinds: Vec<ActivityKind>,
}

/// A part of the list, newest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ActivityList {
    /// Newest first.
    pub entries: Vec<Activity>,
    /// Whether there are older entries.
    pub is_cut: bool,
}

/// Why the diffs of an entry are not available.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ShowError {
    /// The files of a checkpoint could not be read.
    #[error(transparent)]
    Checkpoint(#[from] RestoreError),
    /// A rescued file could not be read.
    #[error(transparent)]
    Rescue(#[from] RescueError),
    /// A rescued file no longer exists.
    #[error(transparent)]
    Id(#[from] IdError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Activity {
    /// When it happened or was noticed, in milliseconds since the Unix epoch.
    pub fn at(&self) -> Millis {
        match self {
            Self::Change(change) => change.at,
            Self::Checkpoint(checkpoint) => checkpoint.at,
            Self::Incident(incident) => incident.at,
            Self::Rescue(rescue) => rescue.at,
        }
    }

    /// The id of the change, checkpoint, incident or rescued file.
    pub fn id(&self) -> &str {
        match self {
            Self::Change(change) => &change.change.0,
            Self::Checkpoint(checkpoint) => &checkpoint.id.0,
            Self::Incident(Incident { kind: IncidentKind::RescueDropped { rescue, .. }, .. }) => rescue,
            Self::Incident(incident) => &incident.id.0,
            Self::Rescue(rescue) => &rescue.id,
        }
    }

    /// The kind, by the tool for changes.
    pub fn kind(&self) -> ActivityKind {
        match self {
            Self::Change(change) => match change.tool.as_str() {
                "undo" | "redo" => ActivityKind::Undo,
                "restore" => ActivityKind::Restore,
                _ => ActivityKind::Change,
            },
            Self::Checkpoint(_) => ActivityKind::Checkpoint,
            Self::Incident(Incident { kind, .. }) => match kind {
                IncidentKind::Refused { .. } => ActivityKind::Refusal,
                IncidentKind::Outside { .. } => ActivityKind::Outside,
                IncidentKind::RescueDropped { .. } => ActivityKind::Rescue,
            },
            Self::Rescue(_) => ActivityKind::Rescue,
        }
    }

    /// The session that caused it; `None` for other programs and unknown authors.
    pub fn session(&self) -> Option<&SessionId> {
        match self {
            Self::Change(change) => Some(&change.session),
            Self::Checkpoint(checkpoint) => checkpoint.session.as_ref(),
            // The author is unknown.
            Self::Incident(Incident { kind: IncidentKind::Outside { .. }, .. }) | Self::Rescue(_) => None,
            Self::Incident(incident) => Some(&incident.session),
        }
    }

    fn is_about(&self, place: &RelPath) -> bool {
        let is_in = |path: &RelPath| path == place || path.relative_to(place).is_some();
        match self {
            Self::Change(change) => change.files.iter().any(|file| is_in(&file.path) || is_in(file.name_after())),
            Self::Checkpoint(_) => false,
            Self::Incident(incident) => incident.path.as_ref().is_some_and(is_in),
            Self::Rescue(rescue) => rescue.path.as_ref().is_some_and(is_in),
        }
    }
}

impl ActivityFilter {
    fn fits(&self, activity: &Activity) -> bool {
        self.path.as_ref().is_none_or(|path| activity.is_about(path))
            && self.session.as_ref().is_none_or(|session| activity.session() == Some(session))
            && (self.kinds.is_empty() || self.kinds.contains(&activity.kind()))
    }
}

impl ActivityList {
    /// Merges several lists into one with at most `limit` entries.
    pub fn merged(lists: impl IntoIterator<Item = Self>, limit: usize) -> Self {
        let mut all = Self::default();
        for list in lists {
            all.entries.extend(list.entries);
            all.is_cut |= list.is_cut;
        }
        // At equal times, the checkpoint comes before the change that it was taken for.
        all.entries.sort_by_key(|activity| (std::cmp::Reverse(activity.at()), matches!(activity, Activity::Checkpoint(_))));
        all.is_cut |= all.entries.len() > limit;
        all.entries.truncate(limit);
        all
    }
}

impl Workspace {
    /// The latest entries, newest first.
    pub fn activity(&self, filter: &ActivityFilter, limit: usize) -> Result<ActivityList, StoreError> {
        let entries = self.all_activity()?.into_iter().filter(|activity| filter.fits(activity)).collect();
        Ok(ActivityList::merged([ActivityList { entries, is_cut: false }], limit))
    }

    /// The entry whose id a person typed, in full or in part. The name of a checkpoint takes precedence.
    pub fn find_activity(&self, typed: &str) -> Result<Activity, IdError> {
        let mut all = self.all_activity()?;
        let is_named = |activity: &Activity| match activity {
            Activity::Checkpoint(checkpoint) => checkpoint.name.as_deref() == Some(typed.trim()),
            _ => false,
        };
        if let Some(named) = all.iter().position(is_named) {
            return Ok(all.swap_remove(named));
        }
        find_id(IdKind::LogEntry, typed, all.into_iter().map(|activity| (activity.id().to_owned(), activity)))
    }

    /// The effect of an entry on each file. The diff is `None` if one of the versions is no longer kept.
    pub fn diffs_of(&self, entry: &Activity) -> Result<Vec<(RelPath, Option<FileDiff>)>, ShowError> {
        let of_rescue = |rescue: &Rescue| -> Result<_, ShowError> {
            let diff = self.rescue_diff(rescue)?;
            Ok(vec![(diff.path_after().clone(), Some(diff))])
        };
        Ok(match entry {
            Activity::Change(change) => {
                let nets = self.net_changes(&ChangeSelection::Change(change.change.clone()))?.unwrap_or_default();
                nets.into_iter().map(|net| (net.path_after.clone(), self.diff(&net))).collect()
            }
            Activity::Checkpoint(checkpoint) => {
                self.kept_work(&checkpoint.id)?.into_iter().map(|kept| (kept.path, kept.diff)).collect()
            }
            Activity::Incident(Incident { path: Some(path), kind: IncidentKind::Outside { before, after }, .. }) => {
                vec![(path.clone(), self.diff_of_versions(path, *before, *after))]
            }
            Activity::Incident(Incident { kind: IncidentKind::RescueDropped { rescue, .. }, .. }) => {
                of_rescue(&self.find_rescue(rescue)?)?
            }
            Activity::Incident(_) => Vec::new(),
            Activity::Rescue(rescue) => of_rescue(rescue)?,
        })
    }

    fn all_activity(&self) -> Result<Vec<Activity>, StoreError> {
        let changes = self.log(&EventFilter::default(), usize::MAX)?;
        let (checkpoints, mut incidents) =
            self.ask(|store| Ok((store.checkpoints(usize::MAX)?, store.incidents(usize::MAX)?)))?;
        incidents.retain(|incident| !is_explained(incident, &changes));
        let mut all: Vec<Activity> = changes.into_iter().map(|change| Activity::Change(Box::new(change))).collect();
        all.extend(checkpoints.into_iter().map(|checkpoint| Activity::Checkpoint(Box::new(checkpoint))));
        all.extend(incidents.into_iter().map(Activity::Incident));
        all.extend(self.rescues().into_iter().map(Activity::Rescue));
        Ok(all)
    }
}

/// Whether a later record explains an incident that a session took for an outside change: another agent's hook reports
/// an edit only after it was made.
fn is_explained(incident: &Incident, changes: &[LoggedChange]) -> bool {
    let IncidentKind::Outside { before, after } = &incident.kind else { return false };
    let later = changes.iter().take_while(|change| change.at >= incident.at);
    later.flat_map(|change| &change.files).any(|file| {
        Some(&file.path) == incident.path.as_ref() && file.moved_to.is_none() && (file.before, file.after) == (*before, *after)
    })
}
