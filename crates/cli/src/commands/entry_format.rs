//! Formats entries of the log, sessions and paths of a workspace for people.

use std::path::PathBuf;

use surehand_engine::{
    Workspace,
    activity::Activity,
    change_log::{LoggedChange, what_happened_to},
    core::RelPath,
    render::count,
    rescued::{Rescue, RescuePlace},
    session_names::SessionNames,
    store::{Incident, IncidentKind},
};

use super::checkpoint;
use crate::{local_paths::LocalPaths, output};

/// Short names of the sessions, paths as seen from the current directory, and the time that ages count from.
pub(super) struct EntryFormat {
    pub names: SessionNames,
    pub local_paths: LocalPaths,
    /// In milliseconds since the Unix epoch.
    pub now: i64,
}

impl EntryFormat {
    pub(super) fn of(workspace: &Workspace) -> anyhow::Result<Self> {
        let (names, local_paths) = (workspace.session_names()?, LocalPaths::to(workspace.path()));
        Ok(Self { names, local_paths, now: output::now() })
    }

    /// An entry, with a line for each of its files.
    pub(super) fn entry(&self, root: Option<&PathBuf>, entry: &Activity) -> String {
        let (what, details) = match entry {
            Activity::Change(change) => self.change(change),
            Activity::Checkpoint(checkpoint) => (checkpoint::summary(checkpoint), checkpoint::not_kept(checkpoint)),
            Activity::Incident(incident) => (self.incident(incident), String::new()),
            Activity::Rescue(rescue) => (self.rescue(rescue), String::new()),
        };
        let by = entry.session().map(|session| format!("by {}", self.names.name(session)));
        let elsewhere = root.map(|root| format!("in {}", root.display()));
        let notes: Vec<String> = by.into_iter().chain(elsewhere).collect();
        let notes = if notes.is_empty() { String::new() } else { format!("  \x1b[2m{}\x1b[0m", notes.join("  ")) };
        let ago = output::ago(self.now - entry.at());
        format!("\x1b[33m{}\x1b[0m {ago:>9}  {what}{notes}\n{details}", entry.id())
    }

    fn change(&self, change: &LoggedChange) -> (String, String) {
        let undone = if change.is_undone { " (undone)" } else { "" };
        let shown = |path: &RelPath| self.local_paths.shown(path.as_str());
        let details = change.files.iter().map(|file| format!("    {}\n", what_happened_to(file, shown))).collect();
        (format!("{}{undone}", change.tool), details)
    }

    fn incident(&self, incident: &Incident) -> String {
        let path = incident.path.as_ref().map(|path| self.local_paths.shown(path.as_str()));
        match &incident.kind {
            IncidentKind::Refused { tool, code, repeat } => {
                let of = path.map(|path| format!(" of {path}")).unwrap_or_default();
                let again = if *repeat > 1 { format!(", {repeat} times in a row") } else { String::new() };
                format!("refused: {tool}{of}, {}{again}", why_refused(code))
            }
            IncidentKind::Outside { before, after } => {
                let what = match (before, after) {
                    (_, None) => "deleted",
                    (None, _) => "created",
                    _ => "changed",
                };
                format!("{what} by another program: {}", path.unwrap_or_default())
            }
            IncidentKind::RescueDropped { .. } => {
                format!("rescued file applied or dropped{}", path.map(|path| format!(": {path}")).unwrap_or_default())
            }
        }
    }

    pub(super) fn rescue(&self, rescue: &Rescue) -> String {
        let path = rescue.path.as_ref().map_or_else(|| "a file".to_owned(), |path| self.local_paths.shown(path.as_str()));
        match &rescue.place {
            RescuePlace::File { size, .. } => {
                let size = count(usize::try_from(*size).unwrap_or(usize::MAX), "byte");
                format!("rescued: {size} that another program wrote to {path} while it was replaced")
            }
            RescuePlace::Store(_) => format!("rescued, and applied or dropped: {path}"),
        }
    }
}

fn why_refused(code: &str) -> String {
    match code {
        "unread" => "it had not been read".to_owned(),
        "stale" => "it had changed since it was read".to_owned(),
        "deleted" => "it was gone".to_owned(),
        "partial" => "it had not been read as a whole".to_owned(),
        "not_found" => "the file or text was not there".to_owned(),
        other => other.replace('_', " "),
    }
}
