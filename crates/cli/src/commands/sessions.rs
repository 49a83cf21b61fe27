//! `surehand sessions`: the sessions of the workspace, what each has seen, and which of those files have changed since.

use std::sync::Arc;

use serde_json::Value;
use surehand_engine::{
    Workspace, core::RelPath, json, render::count, session_names::SessionNames, stale_files, store::KnownSession,
};

use super::entry_format::EntryFormat;
use crate::{args::SessionsArgs, output, workspace};

pub(crate) fn run(args: &SessionsArgs) -> anyhow::Result<()> {
    let workspace = workspace::open_read_only(&args.list.place)?;
    let format = EntryFormat::of(&workspace)?;
    let mut known = workspace.ask(|store| store.known_sessions())?;
    known.sort_by_key(|session| std::cmp::Reverse(session.last_active));
    if let Some(typed) = &args.session {
        let meant = workspace::find_session(&workspace, typed)?;
        known.retain(|session| session.id == meant);
    }
    let all = known.len();
    known.truncate(args.list.limit);
    let rows: Vec<Row> =
        known.into_iter().map(|session| Row::read(&workspace, &format.names, session)).collect::<Result<_, _>>()?;
    if args.list.json {
        let as_json = |row: &Row| json::session(&row.session, &row.name, &row.seen, &row.stale);
        return output::print_json(&Value::Array(rows.iter().map(as_json).collect()));
    }
    let mut text = if rows.is_empty() { "There are no sessions.\n".to_owned() } else { String::new() };
    for row in &rows {
        text.push_str(&row.as_text(&format));
        if args.session.is_some() {
            row.seen.iter().for_each(|path| text.push_str(&row.seen_line(path, &format)));
        }
    }
    text.push_str(&output::unlisted("session", all - rows.len(), all));
    output::print(&text)
}

struct Row {
    session: KnownSession,
    name: String,
    /// Sorted by path.
    seen: Vec<RelPath>,
    stale: Vec<RelPath>,
}

impl Row {
    fn read(workspace: &Arc<Workspace>, names: &SessionNames, session: KnownSession) -> anyhow::Result<Self> {
        let seen = workspace.ask(|store| store.viewed_paths(&session.id))?;
        Ok(Self { name: names.name(&session.id), stale: stale_files(workspace, &session.id), seen, session })
    }

    fn as_text(&self, format: &EntryFormat) -> String {
        const MOST: usize = 3;
        let active = self.session.last_active.map(|at| format!("active {}, ", output::ago(format.now - at))).unwrap_or_default();
        let mut text = format!(
            "\x1b[33m{}\x1b[0m  {active}{}, {} seen",
            self.name,
            count(self.session.changes, "change"),
            count(self.seen.len(), "file")
        );
        if !self.stale.is_empty() {
            let stale: Vec<String> = self.stale.iter().map(|path| format.local_paths.shown(path.as_str())).collect();
            text.push_str(&format!(", of them changed since: {}", output::first_names(&stale, MOST)));
        }
        if self.stale.len() > MOST {
            text.push_str(&format!(" (surehand sessions \"{}\" lists them)", self.name));
        }
        text + "\n"
    }

    fn seen_line(&self, path: &RelPath, format: &EntryFormat) -> String {
        let stale = if self.stale.contains(path) { " (changed since)" } else { "" };
        format!("    {}{stale}\n", format.local_paths.shown(path.as_str()))
    }
}
