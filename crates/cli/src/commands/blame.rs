//! `surehand blame`: who wrote each line of a file, and when.

use std::ops::Range;

use surehand_engine::{
    attribution::{Blame, BlameError, LineAuthor},
    core::LineNo,
    json,
    render::count,
    session_names::SessionNames,
    store::FileEvent,
};

use crate::{
    args::{BlameArgs, LineSpan},
    display::escape,
    local_paths::LocalPaths,
    output, pager, workspace,
};

pub(crate) fn run(args: &BlameArgs) -> anyhow::Result<()> {
    let workspace = workspace::open_read_only(&args.state.place)?;
    let local_paths = LocalPaths::to(workspace.path());
    let path = workspace.place_of(&local_paths.typed(&args.path))?;
    let path = path.ok_or_else(|| anyhow::anyhow!("{}: a directory has no lines", args.path))?;
    let shown = local_paths.shown(path.as_str());
    let blame = match workspace.blame(&path) {
        Err(BlameError::Renamed { to, .. }) => {
            let to = local_paths.shown(to.as_str());
            anyhow::bail!("{shown}: it was renamed to {to}\nhint: surehand blame {to}")
        }
        Err(BlameError::NotFound { .. }) => anyhow::bail!("{shown}: no such file"),
        found => found?,
    };
    let wanted = wanted_lines(&args.lines, blame.text.line_count(), &shown)?;
    if let Some(trouble) = &blame.git_trouble {
        anstream::eprintln!("note: git cannot say which commits wrote lines: {}", escape::one_line(trouble));
    }
    let names = workspace.session_names()?;
    let words = BlameWords { blame: &blame, names: &names, now: output::now() };
    if args.state.json {
        return output::print_json(&json::blame(&blame, &wanted, &names));
    }
    if let Some(by) = &blame.removed_by {
        let (id, who, when) = words.columns(by);
        let by = [who, id].into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(", ");
        anstream::eprintln!("note: {shown} was removed{} ({by}); these are its last lines", when_in_words(&when));
    }
    pager::print(&words.as_text(&wanted), &args.pager)
}

fn when_in_words(when: &str) -> String {
    if when.is_empty() { String::new() } else { format!(" {when}") }
}

/// The ranges of lines to show, as zero-based indexes, from top to bottom.
fn wanted_lines(typed: &[LineSpan], count_of_lines: usize, path: &str) -> anyhow::Result<Vec<Range<usize>>> {
    if typed.is_empty() {
        return Ok(std::iter::once(0..count_of_lines).collect());
    }
    let mut wanted: Vec<Range<usize>> = Vec::new();
    for span in typed {
        anyhow::ensure!(span.first <= count_of_lines, "{path} has only {}", count(count_of_lines, "line"));
        wanted.push(span.first - 1..span.last.unwrap_or(count_of_lines).min(count_of_lines));
    }
    wanted.sort_by_key(|lines| lines.start);
    wanted.dedup_by(|next, last| {
        let overlaps = next.start <= last.end;
        last.end = if overlaps { last.end.max(next.end) } else { last.end };
        overlaps
    });
    Ok(wanted)
}

/// Formats a blame as text.
struct BlameWords<'a> {
    blame: &'a Blame,
    names: &'a SessionNames,
    now: i64,
}

/// Longer author names are truncated.
const LONGEST_AUTHOR: usize = 32;

impl BlameWords<'_> {
    fn as_text(&self, wanted: &[Range<usize>]) -> String {
        let rows: Vec<_> = self.blame.runs(wanted).map(|(lines, by)| (lines, self.columns(by))).collect();
        let width = |text: &str| text.chars().count();
        let widest = rows.iter().map(|(_, (_, who, _))| width(who)).max().unwrap_or_default();
        let digits = rows.last().map_or(1, |(lines, _)| lines.end.to_string().len());
        let mut text = String::new();
        for (lines, (id, who, when)) in rows {
            let pad = " ".repeat(widest - width(&who));
            for line in lines {
                let content = escape::name(self.blame.text.line(LineNo::at_index(line))).replace("⇥   ", "\t");
                let number = line + 1;
                text.push_str(&format!("\x1b[33m{id:8}\x1b[0m {who}{pad} {when:>10} {number:>digits$}| {content}\n"));
            }
        }
        text
    }

    /// The three columns before a line: id, author and time.
    fn columns(&self, by: &LineAuthor) -> (String, String, String) {
        let ago = |at: i64| output::ago(self.now - at);
        let (id, who, when) = match by {
            LineAuthor::Session { session, tool, change, at } => {
                let command = tool.strip_prefix(FileEvent::COMMAND).map(|line| format!(": {line}")).unwrap_or_default();
                (change.0.clone(), format!("{}{command}", self.names.name(session)), ago(*at))
            }
            LineAuthor::Outside { by } => (String::new(), "outside".to_owned(), by.map(ago).unwrap_or_default()),
            LineAuthor::Commit(Some(commit)) => (commit.id.chars().take(8).collect(), commit.author.clone(), ago(commit.at)),
            LineAuthor::Commit(None) => (String::new(), "commit".to_owned(), String::new()),
        };
        let who = escape::one_line(&who);
        let is_long = who.chars().count() > LONGEST_AUTHOR;
        let who = if is_long { who.chars().take(LONGEST_AUTHOR - 1).chain(['…']).collect() } else { who };
        (id, who, when)
    }
}
