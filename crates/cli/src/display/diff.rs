//! Formats diffs for people: the files, the numbers of lines, and the first lines in colour.

use surehand_engine::{
    core::file_diff::{DiffHunk, DiffKind, DiffRow, FileDiff, NO_NEWLINE, RowKind},
    render::count,
};

use super::{
    escape,
    style::{Colours, Painter, Style},
    wrap,
};

/// The lines of diffs in git's format, without colours and without the `diff --git` lines; at most `most` lines.
pub(crate) fn plain(diffs: &str, most: usize) -> Vec<String> {
    let lines: Vec<&str> = diffs.lines().filter(|line| !line.starts_with("diff --git ")).collect();
    let mut shown: Vec<String> = lines.iter().take(most).map(|line| escape::name(line)).collect();
    if lines.len() > most {
        shown.push(format!("… {}", count(lines.len() - most, "more line")));
    }
    shown
}

/// A summary of the diff of one file, without its lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DiffStat {
    /// For a moved file, the old and the new path.
    pub path: String,
    /// `new`, `deleted`, `binary`, or usually empty.
    pub note: &'static str,
    pub added: usize,
    pub removed: usize,
}

impl DiffStat {
    pub(crate) fn of(diff: &FileDiff) -> Self {
        let path = match diff.kind() {
            DiffKind::Renamed => format!("{} → {}", diff.path_before(), diff.path_after()),
            DiffKind::Unchanged | DiffKind::Edited | DiffKind::Created | DiffKind::Deleted => diff.path_after().to_string(),
        };
        let note = match diff.kind() {
            _ if diff.is_binary() => "binary",
            DiffKind::Created => "new",
            DiffKind::Deleted => "deleted",
            DiffKind::Unchanged | DiffKind::Edited | DiffKind::Renamed => "",
        };
        Self { path, note, added: diff.added(), removed: diff.removed() }
    }
}

/// A whole diff for a terminal, in colour.
pub(crate) fn coloured(diff: &FileDiff) -> String {
    let headings = diff.headings().iter().map(|heading| coloured_line(Some(Style::Bold), heading)).collect::<String>();
    headings + &coloured_hunks(diff.hunks())
}

/// Like [`coloured`], but without the lines that name the file.
pub(crate) fn coloured_hunks(hunks: &[DiffHunk]) -> String {
    let mut out = String::new();
    for hunk in hunks {
        out.push_str(&coloured_line(Some(PLACE), &hunk.heading()));
        for row in &hunk.rows {
            out.push_str(&coloured_line(style(row.kind), &row.to_string()));
            if !row.has_newline {
                out.push_str(&coloured_line(None, NO_NEWLINE));
            }
        }
    }
    out
}

fn coloured_line(style: Option<Style>, line: &str) -> String {
    let painter = Painter { width: usize::MAX, colours: Colours::On };
    painted(style, &escape::prose(line), painter) + "\n"
}

pub(super) const PLACE: Style = Style::Cyan;

pub(super) fn style(kind: RowKind) -> Option<Style> {
    match kind {
        RowKind::Same => None,
        RowKind::Added => Some(Style::Green),
        RowKind::Removed => Some(Style::Red),
    }
}

fn painted(style: Option<Style>, text: &str, painter: Painter) -> String {
    style.map_or_else(|| text.to_owned(), |style| painter.paint(style, text))
}

/// Diffs in colour: the name and numbers of each file, and at most `most` lines in total.
pub(crate) fn shown(files: &[FileDiff], most: usize, painter: Painter) -> String {
    let mut out = String::new();
    let (mut left, mut all) = (most, 0);
    for file in files {
        out.push_str(&format!("    {}\n", title(&DiffStat::of(file), painter)));
        for hunk in file.hunks() {
            let lines = std::iter::once(place(hunk, painter)).chain(hunk.rows.iter().map(|line| row(line, painter)));
            lines.take(left).for_each(|line| out.push_str(&format!("    {line}\n")));
            let length = 1 + hunk.rows.len();
            left = left.saturating_sub(length);
            all += length;
        }
    }
    if all > most {
        out.push_str(&format!("    {}\n", painter.paint(Style::Dim, &format!("… {}", count(all - most, "more line")))));
    }
    out
}

/// Formats `src/a.rs (new) +3 -0`.
pub(crate) fn title(file: &DiffStat, painter: Painter) -> String {
    let note = if file.note.is_empty() { String::new() } else { format!(" ({})", file.note) };
    let (added, removed) = (format!("+{}", file.added), format!("-{}", file.removed));
    let room = painter.room(6 + note.len() + added.len() + removed.len());
    let path = painter.paint(Style::Bold, &wrap::truncate(&escape::name(&file.path), room));
    format!("{path}{note} {} {}", painter.paint(Style::Green, &added), painter.paint(Style::Red, &removed))
}

fn place(hunk: &DiffHunk, painter: Painter) -> String {
    painter.paint(PLACE, &wrap::truncate(&hunk.heading(), painter.room(4)))
}

fn row(row: &DiffRow, painter: Painter) -> String {
    let text = wrap::truncate(&escape::name(&row.to_string().replace('\t', "    ")), painter.room(4));
    painted(style(row.kind), &text, painter)
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;
    use crate::display::tests::{diff, edit};

    const PLAIN: Painter = Painter { width: 40, colours: Colours::Off };

    fn two() -> [FileDiff; 2] {
        [edit("src/a.rs", "one\ntwo\nthree\n", "one\nzwei\nthree\n"), diff(("b.txt", None), ("b.txt", Some("a\nb")))]
    }

    #[track_caller]
    fn check(diff: &FileDiff, expected: (&str, &str, usize, usize)) {
        let stat = DiffStat::of(diff);
        assert_eq!((stat.path.as_str(), stat.note, stat.added, stat.removed), expected);
    }

    #[test]
    fn lines_are_counted() {
        let [edited, created] = &two();
        check(edited, ("src/a.rs", "", 1, 1));
        check(created, ("b.txt", "new", 2, 0));
        check(&edit("y", "a\n", ""), ("y", "", 0, 1));
    }

    #[test]
    fn a_file_may_be_new_and_empty_moved_deleted_or_binary() {
        check(&diff(("a b.txt", None), ("a b.txt", Some(""))), ("a b.txt", "new", 0, 0));
        check(&diff(("a", Some("x\n")), ("b", Some("y\n"))), ("a → b", "", 1, 1));
        check(&diff(("a", Some("x\n")), ("b", Some("x\n"))), ("a → b", "", 0, 0));
        check(&diff(("a", Some("a\n")), ("a", None)), ("a", "deleted", 0, 1));
        check(&edit("a", "a\n", "\0"), ("a", "binary", 0, 0));
        check(&diff(("a", None), ("a", Some("\0"))), ("a", "binary", 0, 0));
    }

    #[test]
    fn a_file_that_came_or_went_under_another_name_has_its_last_name() {
        check(&diff(("a", None), ("b", Some("x\n"))), ("b", "new", 1, 0));
        check(&diff(("é", Some("x\n")), ("ü", None)), ("ü", "deleted", 0, 1));
    }

    #[test]
    fn plain_lines_have_a_bound_and_no_commands() {
        let both: String = two().iter().map(ToString::to_string).collect();
        let lines = plain(&both, 5);
        assert_eq!(lines, ["--- a/src/a.rs", "+++ b/src/a.rs", "@@ -1,3 +1,3 @@", " one", "-two", "… 9 more lines"]);
        assert_eq!(plain(&edit("a", "", "\x1b[2J").to_string(), 9).last().unwrap(), "\\ No newline at end of file");
        assert!(plain(&edit("a", "", "\x1b[2J").to_string(), 9).concat().contains("+<U+001B>[2J"));
        assert!(plain("", 5).is_empty());
    }

    #[test]
    fn text_that_looks_like_a_heading_is_text() {
        check(&edit("a", "-- x\n@@ -1 +1 @@\n", "++ b/y\ndiff --git a/z b/z\n"), ("a", "", 2, 2));
    }

    #[test]
    fn a_whole_diff_is_coloured_by_what_its_lines_are() {
        let diff = edit("a.sql", "-- a comment\n\x1b[2J", "++ a comment\n\x1b[2J");
        let expected = "\x1b[1mdiff --git a/a.sql b/a.sql\x1b[0m\n\x1b[1m--- a/a.sql\x1b[0m\n\x1b[1m+++ b/a.sql\x1b[0m\n\
                        \x1b[36m@@ -1,2 +1,2 @@\x1b[0m\n\x1b[31m--- a comment\x1b[0m\n\x1b[32m+++ a comment\x1b[0m\n \
                        <U+001B>[2J\n\\ No newline at end of file\n";
        assert_eq!(coloured(&diff), expected);
        assert_eq!(coloured_hunks(diff.hunks()), expected.split_inclusive('\n').skip(3).collect::<String>());
    }

    #[test]
    fn a_name_is_coloured_and_not_obeyed() {
        let shown = coloured(&diff(("\x1b[2J\n@@ -1 +1 @@\n+x", Some("")), ("b", Some(""))));
        let expected = "\x1b[1mdiff --git a/<U+001B>[2J\n@@ -1 +1 @@\n+x b/b\x1b[0m\n\
                        \x1b[1mrename from <U+001B>[2J\n@@ -1 +1 @@\n+x\x1b[0m\n\x1b[1mrename to b\x1b[0m\n";
        assert_eq!(shown, expected);
    }

    #[test]
    fn a_file_as_before_is_not_shown() {
        assert_eq!(coloured(&edit("a", "x\n", "x\n")), "");
    }

    #[test]
    fn a_diff_is_shown_with_its_numbers() {
        assert_snapshot!(shown(&two(), 20, PLAIN), @r"
            src/a.rs +1 -1
            @@ -1,3 +1,3 @@
             one
            -two
            +zwei
             three
            b.txt (new) +2 -0
            @@ -0,0 +1,2 @@
            +a
            +b
        ");
    }

    #[test]
    fn a_long_diff_is_bounded() {
        assert_snapshot!(shown(&two(), 3, PLAIN), @r"
            src/a.rs +1 -1
            @@ -1,3 +1,3 @@
             one
            -two
            b.txt (new) +2 -0
            … 5 more lines
        ");
        let long = edit("x", "a\n", &format!("{}\n", "b".repeat(1000)));
        assert!(shown(&[long], 20, PLAIN).lines().all(|line| wrap::width(line) < 40));
    }

    #[test]
    fn a_diff_paints_only_what_we_paint() {
        let diff = edit("x\x1b[2J", "a\x1b[2J\r\n", "b\tc\n");
        let shown = shown(&[diff], 20, Painter { width: 60, colours: Colours::On });
        let expected = "    \x1b[1mx<U+001B>[2J\x1b[0m \x1b[32m+1\x1b[0m \x1b[31m-1\x1b[0m\n    \x1b[36m@@ -1,1 +1,1 @@\x1b[0m\n    \
                        \x1b[31m-a<U+001B>[2J<U+000D>\x1b[0m\n    \x1b[32m+b    c\x1b[0m\n";
        assert_eq!(shown, expected);
    }
}
