//! A report of a session as one HTML file: the lines it has seen, its actions, and the changes of its files meanwhile.
//! The file has no script and loads nothing, so it can be opened anywhere.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    sync::Arc,
};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use surehand_engine::{
    SessionId, Workspace,
    activity::{Activity, ActivityFilter, ActivityKind},
    change_log::what_happened,
    core::{ContentHash, RelPath, file_diff::FileDiff, file_diff::RowKind, render::count, visible},
    repo_state::rfc3339,
    session_list::{ListedSession, SessionLister},
    session_names::SessionNames,
    store::{Incident, IncidentKind, StoreError},
};

const STYLE: &str = include_str!("../page/report.css");

const MOST_ENTRIES: usize = 2000;

/// The most rows of all diffs of a report.
const MOST_ROWS: usize = 50_000;

/// The longest line of a diff, in characters.
const LONGEST: usize = 2000;

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReportError {
    /// The workspace has no record of the session.
    #[error("there is no record of session {0} here")]
    Unknown(SessionId),
    /// The store cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The report of a session.
pub fn report(workspace: &Arc<Workspace>, session: &SessionId) -> Result<String, ReportError> {
    let mut listed = SessionLister::new(workspace.clone()).list()?;
    let listed = listed.iter().position(|listed| listed.session.id == *session).map(|at| listed.swap_remove(at));
    let listed = listed.ok_or_else(|| ReportError::Unknown(session.clone()))?;
    let all = workspace.activity(&ActivityFilter::default(), usize::MAX)?;
    let seen: BTreeSet<&RelPath> = listed.files.iter().map(|file| &file.path).collect();
    let is_part = |entry: &Activity| match entry.kind() {
        ActivityKind::Outside | ActivityKind::Rescue => paths(entry).iter().any(|path| seen.contains(path)),
        _ => entry.session() == Some(session),
    };
    let mut entries: Vec<Activity> = all.entries.into_iter().filter(is_part).collect();
    let left = entries.len().saturating_sub(MOST_ENTRIES);
    entries.truncate(MOST_ENTRIES);
    entries.reverse();
    let names = workspace.session_names()?;
    let mut page = Page { html: String::new(), rows: MOST_ROWS };
    page.head(workspace, &listed);
    page.files(&listed, &entries);
    page.entries(workspace, &names, &entries, left);
    page.html.push_str("</main>\n</body>\n</html>\n");
    Ok(page.html)
}

fn paths(entry: &Activity) -> Vec<&RelPath> {
    match entry {
        Activity::Change(change) => change.files.iter().map(|file| file.name_after()).collect(),
        Activity::Checkpoint(_) => Vec::new(),
        Activity::Incident(incident) => incident.path.iter().collect(),
        Activity::Rescue(rescue) => rescue.path.iter().collect(),
    }
}

struct Page {
    html: String,
    /// How many more rows of diffs fit.
    rows: usize,
}

impl Page {
    fn put(&mut self, text: std::fmt::Arguments<'_>) {
        self.html.write_fmt(text).expect("a string takes everything");
    }

    fn head(&mut self, workspace: &Workspace, listed: &ListedSession) {
        let style = BASE64_STANDARD.encode(ContentHash::of(STYLE.as_bytes()).as_bytes());
        let (name, root) = (escape(&listed.name), escape(&workspace.path().display().to_string()));
        let active = listed.session.last_active.map(rfc3339).unwrap_or_default();
        let stale = listed.files.iter().filter(|file| file.is_stale).count();
        let facts = [
            ("Workspace", root),
            ("Session", escape(&listed.session.id.0)),
            ("Last active", escape(&active)),
            ("Files seen", format!("{}, {stale} of them changed since", listed.files.len())),
            ("Changes", listed.session.changes.to_string()),
        ];
        let facts: String = facts.iter().map(|(name, value)| format!("<dt>{name}</dt><dd>{value}</dd>")).collect();
        let version = env!("CARGO_PKG_VERSION");
        self.put(
            format_args!(
                "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
                 <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'sha256-{style}'; base-uri 'none'; \
                 form-action 'none'\">\n<meta name=\"referrer\" content=\"no-referrer\">\n\
                 <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{name} · Surehand</title>\n\
                 <style>{STYLE}</style>\n</head>\n<body>\n<main>\n<h1>Session {name}</h1>\n<dl>{facts}</dl>\n\
                 <p class=\"quiet\">Written by Surehand {version}. The report has contents of files.</p>\n"
            ),
        );
    }

    fn files(&mut self, listed: &ListedSession, entries: &[Activity]) {
        let mut edits: BTreeMap<&RelPath, usize> = BTreeMap::new();
        let changes = entries.iter().filter(|entry| matches!(entry, Activity::Change(_)));
        changes.flat_map(paths).for_each(|path| *edits.entry(path).or_default() += 1);
        self.html.push_str("<h2>What it has seen</h2>\n");
        if listed.files.is_empty() {
            self.html.push_str("<p>It has seen no file, or forgot them all.</p>\n");
            return;
        }
        self.html.push_str(
            "<table>\n<thead><tr><th scope=\"col\">File</th><th scope=\"col\">State</th>\
             <th scope=\"col\">Lines seen</th><th scope=\"col\">Changes</th></tr></thead>\n<tbody>\n",
        );
        for file in &listed.files {
            let (class, state) = match file {
                file if file.is_stale => ("stale", "▲ changed since it was seen"),
                file if file.seen_lines < file.total_lines => ("seen", "◐ seen in part"),
                _ => ("seen", "● seen as it is now"),
            };
            let edits = edits.get(&file.path).map(ToString::to_string).unwrap_or_default();
            self.put(
                format_args!(
                    "<tr><th scope=\"row\"><bdi>{}</bdi></th><td class=\"{class}\">{state}</td><td>{} of {}</td><td>{edits}</td></tr>\n",
                    name(file.path.as_str()),
                    file.seen_lines,
                    file.total_lines,
                ),
            );
        }
        self.html.push_str("</tbody>\n</table>\n");
    }

    fn entries(&mut self, workspace: &Workspace, names: &SessionNames, entries: &[Activity], left: usize) {
        self.html.push_str("<h2>What happened</h2>\n");
        if entries.is_empty() {
            self.html.push_str("<p>It has changed nothing.</p>\n");
        }
        if left > 0 {
            self.put(format_args!("<p class=\"quiet\">{} older are left out.</p>\n", count(left, "entry")));
        }
        for entry in entries {
            let by = entry.session().map(|session| format!(", <bdi>{}</bdi>", escape(&names.name(session)))).unwrap_or_default();
            self.put(format_args!(
                "<article>\n<h3><span class=\"kind {kind}\">{kind}</span> <bdi>{}</bdi></h3>\n\
                     <p class=\"quiet\">{}{by}, <code>{}</code></p>\n",
                name(&in_words(entry)),
                escape(&rfc3339(entry.at())),
                escape(entry.id()),
                kind = entry.kind().name(),
            ));
            // If the versions are no longer stored, the report has no diff.
            for (path, diff) in workspace.diffs_of(entry).unwrap_or_default() {
                self.diff(&path, diff.as_ref());
            }
            self.html.push_str("</article>\n");
        }
    }

    fn diff(&mut self, path: &RelPath, diff: Option<&FileDiff>) {
        let shown = name(path.as_str());
        let rows = diff.map_or(0, |diff| diff.hunks().iter().map(|hunk| hunk.rows.len()).sum());
        let (Some(diff), true) = (diff, rows <= self.rows) else {
            let why = if diff.is_some() { "its diff is too long for a report" } else { "a version of it is no longer kept" };
            self.put(format_args!("<p class=\"quiet\"><bdi>{shown}</bdi>: {why}</p>\n"));
            return;
        };
        self.rows -= rows;
        let (added, removed) = (diff.added(), diff.removed());
        self.put(format_args!("<details open>\n<summary><bdi>{shown}</bdi> +{added} −{removed}</summary>\n<pre tabindex=\"0\">"));
        for hunk in diff.hunks() {
            self.put(format_args!("<span class=\"hunk\">{}</span>\n", escape(&hunk.heading())));
            for row in &hunk.rows {
                let class = match row.kind {
                    RowKind::Same => "same",
                    RowKind::Added => "added",
                    RowKind::Removed => "removed",
                };
                let text: String = row.text.chars().take(LONGEST).collect();
                let cut = if text.len() < row.text.len() { " …" } else { "" };
                self.put(format_args!("<span class=\"{class}\">{}{}{cut}</span>\n", row.kind.sign(), escape(&text)));
            }
        }
        self.html.push_str("</pre>\n</details>\n");
    }
}

fn in_words(entry: &Activity) -> String {
    match entry {
        Activity::Change(change) => {
            let files: Vec<String> = change.files.iter().map(what_happened).collect();
            let undone = if change.is_undone { " (undone)" } else { "" };
            format!("{}: {}{undone}", change.tool, files.join(", "))
        }
        Activity::Checkpoint(checkpoint) => checkpoint.occasion.clone(),
        Activity::Incident(Incident { path, kind, .. }) => {
            let path = path.as_ref().map(ToString::to_string).unwrap_or_default();
            match kind {
                IncidentKind::Refused { tool, code, .. } => format!("{tool} of {path}: {}", code.replace('_', " ")),
                IncidentKind::Outside { .. } => format!("{path} changed by another program"),
                IncidentKind::RescueDropped { .. } => format!("{path}, applied or dropped"),
            }
        }
        Activity::Rescue(rescue) => {
            let path = rescue.path.as_ref().map_or_else(|| "a file".to_owned(), ToString::to_string);
            format!("what another program wrote to {path} while it was replaced")
        }
    }
}

/// Escapes text of several lines, and shows characters that hide or reorder other characters.
fn escape(text: &str) -> String {
    without_markup(&visible::prose(text))
}

/// Escapes a name, which becomes one line.
fn name(text: &str) -> String {
    without_markup(&visible::name(text))
}

fn without_markup(text: &str) -> String {
    let mut html = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => html.push_str("&amp;"),
            '<' => html.push_str("&lt;"),
            '>' => html.push_str("&gt;"),
            '"' => html.push_str("&quot;"),
            '\'' => html.push_str("&#39;"),
            character => html.push(character),
        }
    }
    html
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_end_what_it_is_in() {
        assert_eq!(name("</title><script>x&'\""), "&lt;/title&gt;&lt;script&gt;x&amp;&#39;&quot;");
        assert_eq!(name("a\u{202e}b\nc"), "a&lt;U+202E&gt;b&lt;U+000A&gt;c");
    }
}
