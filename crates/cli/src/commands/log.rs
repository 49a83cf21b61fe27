//! `surehand log`: everything that happened, newest first.

use std::path::PathBuf;

use serde_json::Value;
use surehand_engine::{
    Workspace,
    activity::{Activity, ActivityFilter, ActivityList},
    change_log::{LoggedChange, what_happened_to},
    core::RelPath,
    json,
    render::count,
    rescued::{Rescue, RescuePlace},
    session_names::SessionNames,
    store::{Incident, IncidentKind},
};

use super::checkpoint;
use crate::{args::LogArgs, local_paths::LocalPaths, output, pager, workspace};

pub(crate) fn run(args: &LogArgs) -> anyhow::Result<()> {
    let log = Log::read(args)?;
    match args.list.json {
        true => output::print_json(&log.as_json()),
        false => pager::print(&log.as_text(args.list.limit), &args.pager),
    }
}

/// A part of the log of one or more workspaces.
struct Log {
    /// With the root of the workspace, unless it is the current one.
    entries: Vec<(Option<PathBuf>, Activity)>,
    is_cut: bool,
    is_filtered: bool,
    words: EntryFormat,
}

impl Log {
    fn read(args: &LogArgs) -> anyhow::Result<Self> {
        let workspace = workspace::open_read_only(&args.list.place)?;
        let words = EntryFormat::of(&workspace)?;
        let path = args.path.as_deref().map(|path| workspace.place_of(&words.local_paths.typed(path))).transpose()?.flatten();
        let session = args.session.as_ref().map(|typed| workspace::find_session(&workspace, typed)).transpose()?;
        let filter = ActivityFilter { path, session, kinds: args.kind.clone() };
        let mut lists = vec![(None, workspace.activity(&filter, args.list.limit)?)];
        // A session may have worked in other workspaces, too.
        if let (Some(session), None) = (&filter.session, &filter.path) {
            for root in workspace::other_roots(session, workspace.path())? {
                let list = workspace::open_read_only(&workspace::at(&root))?.activity(&filter, args.list.limit)?;
                lists.push((Some(root), list));
            }
        }
        let mut is_cut = lists.iter().any(|(_, list)| list.is_cut);
        let of_root = |(root, list): (Option<PathBuf>, ActivityList)| {
            list.entries.into_iter().map(move |entry| (root.clone(), entry)).collect::<Vec<_>>()
        };
        let mut entries: Vec<(Option<PathBuf>, Activity)> = lists.into_iter().flat_map(of_root).collect();
        entries.sort_by_key(|(_, entry)| std::cmp::Reverse(entry.at()));
        is_cut |= entries.len() > args.list.limit;
        entries.truncate(args.list.limit);
        let is_filtered = filter != ActivityFilter::default();
        Ok(Self { entries, is_cut, is_filtered, words })
    }

    fn as_text(&self, limit: usize) -> String {
        if self.entries.is_empty() {
            return if self.is_filtered { "There is no such entry in the log.\n" } else { "There is nothing in the log.\n" }
                .to_owned();
        }
        let mut text: String = self.entries.iter().map(|(root, entry)| self.words.entry(root.as_ref(), entry)).collect();
        if self.is_cut {
            text.push_str(&format!("There are older entries: surehand log -n {} shows more.\n", limit.saturating_mul(5).max(1)));
        }
        text
    }

    fn as_json(&self) -> Value {
        let entry = |(root, entry): &(Option<PathBuf>, Activity)| {
            let mut object = json::activity(entry);
            if let Some(root) = root {
                object["workspace"] = root.to_string_lossy().into();
            }
            object
        };
        Value::Array(self.entries.iter().map(entry).collect())
    }
}

/// Formats the state of a workspace for people.
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
