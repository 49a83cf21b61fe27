//! `surehand log`: everything that happened, newest first.

use std::path::PathBuf;

use serde_json::Value;
use surehand_engine::{
    activity::{Activity, ActivityFilter, ActivityList},
    json,
};

use super::entry_format::EntryFormat;
use crate::{args::LogArgs, output, pager, workspace};

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
    format: EntryFormat,
}

impl Log {
    fn read(args: &LogArgs) -> anyhow::Result<Self> {
        let workspace = workspace::open_read_only(&args.list.place)?;
        let format = EntryFormat::of(&workspace)?;
        let path = args.path.as_deref().map(|path| workspace.place_of(&format.local_paths.typed(path))).transpose()?.flatten();
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
        Ok(Self { entries, is_cut, is_filtered, format })
    }

    fn as_text(&self, limit: usize) -> String {
        if self.entries.is_empty() {
            return if self.is_filtered { "There is no such entry in the log.\n" } else { "There is nothing in the log.\n" }
                .to_owned();
        }
        let mut text: String = self.entries.iter().map(|(root, entry)| self.format.entry(root.as_ref(), entry)).collect();
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
