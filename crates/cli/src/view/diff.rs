//! A unified diff as people want to see it pass by: which files, how many lines, the first of them in colour.

use surehand_engine::core::render::count;

use super::{
    fit,
    look::{Colours, Look, Style},
    safe,
};

/// What a diff says about a file.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct FileDiff {
    /// The file; of one that was moved, from where to where.
    pub path: String,
    /// What else happened to it: `new`, `deleted`, `binary`; mostly nothing.
    pub note: &'static str,
    /// How many lines came.
    pub added: usize,
    /// How many went.
    pub removed: usize,
    rows: Vec<Row>,
}

#[derive(Debug, PartialEq, Eq)]
struct Row {
    kind: Kind,
    text: String,
}

/// What a line of a diff is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Heading,
    Place,
    Same,
    Added,
    Removed,
    /// `\ No newline at end of file`
    Aside,
}

/// Tells the lines of a diff apart. What looks like a heading in the text of a file is known by the lengths that its hunk announces.
#[derive(Debug, Default)]
struct Hunk {
    /// Lines of the old file that are still to come.
    old: usize,
    /// Lines of the new one.
    new: usize,
}

impl Hunk {
    fn kind(&mut self, line: &str) -> Kind {
        if line.starts_with('\\') {
            return Kind::Aside;
        }
        if self.old + self.new == 0 {
            let Some(lengths) = hunk_lengths(line) else { return Kind::Heading };
            (self.old, self.new) = lengths;
            return Kind::Place;
        }
        let kind = match line.as_bytes().first() {
            Some(b'+') => Kind::Added,
            Some(b'-') => Kind::Removed,
            _ => Kind::Same,
        };
        self.old = self.old.saturating_sub(usize::from(kind != Kind::Added));
        self.new = self.new.saturating_sub(usize::from(kind != Kind::Removed));
        kind
    }
}

/// The files of a diff.
pub fn files(diff: &str) -> Vec<FileDiff> {
    let mut files: Vec<FileDiff> = Vec::new();
    let mut hunk = Hunk::default();
    for line in diff.split_terminator('\n') {
        match hunk.kind(line) {
            Kind::Heading => heading(&mut files, line),
            Kind::Aside => {}
            kind => files.last_mut().into_iter().for_each(|file| file.take(kind, line)),
        }
    }
    files
}

/// A whole diff as people read it in a terminal: removed lines red, added ones green, places blue.
pub fn coloured(diff: &str) -> String {
    let look = Look { width: usize::MAX, colours: Colours::On };
    let mut hunk = Hunk::default();
    let line = |line: &str| {
        let text = safe::prose(line);
        let painted = match hunk.kind(line) {
            Kind::Heading => look.paint(Style::Bold, &text),
            Kind::Place => look.paint(Style::Cyan, &text),
            Kind::Added => look.paint(Style::Green, &text),
            Kind::Removed => look.paint(Style::Red, &text),
            Kind::Same | Kind::Aside => text,
        };
        painted + "\n"
    };
    diff.split_terminator('\n').map(line).collect()
}

impl FileDiff {
    /// Adds the numbers of a later diff of the same file. Its lines are not kept.
    pub fn and_then(&mut self, later: &FileDiff) {
        self.added += later.added;
        self.removed += later.removed;
        // A file that came and was edited is still a new one.
        if !later.note.is_empty() {
            self.note = later.note;
        }
    }

    /// The numbers without the lines.
    pub fn numbers(self) -> Self {
        Self { rows: Vec::new(), ..self }
    }

    /// Takes a line of a hunk.
    fn take(&mut self, kind: Kind, line: &str) {
        self.added += usize::from(kind == Kind::Added);
        self.removed += usize::from(kind == Kind::Removed);
        self.rows.push(Row { kind, text: line.to_owned() });
    }
}

fn heading(files: &mut Vec<FileDiff>, line: &str) {
    if let Some(names) = line.strip_prefix("diff --git a/") {
        files.push(FileDiff { path: both(names).to_owned(), ..FileDiff::default() });
        return;
    }
    if let Some(name) = line.strip_prefix("--- ") {
        // Not every diff has a line for git.
        if files.last().is_none_or(|file| !file.rows.is_empty()) {
            files.push(FileDiff { path: name.strip_prefix("a/").unwrap_or(name).to_owned(), ..FileDiff::default() });
        }
        return;
    }
    let Some(file) = files.last_mut() else { return };
    if let Some(name) = line.strip_prefix("+++ b/") {
        let is_move = file.path.contains(" → ");
        if !is_move {
            name.clone_into(&mut file.path);
        }
    } else if let Some(name) = line.strip_prefix("rename from ") {
        name.clone_into(&mut file.path);
    } else if let Some(name) = line.strip_prefix("rename to ") {
        file.path = format!("{} → {name}", file.path);
    } else if line.starts_with("new file") {
        file.note = "new";
    } else if line.starts_with("deleted file") {
        file.note = "deleted";
    } else if line.starts_with("Binary files ") {
        file.note = "binary";
    }
}

/// The name in `x b/x`; where the two differ other lines will tell.
fn both(names: &str) -> &str {
    let half = names.len().saturating_sub(" b/".len()) / 2;
    match names.split_at_checked(half) {
        Some((name, rest)) if rest.strip_prefix(" b/") == Some(name) => name,
        _ => names.rsplit_once(" b/").map_or(names, |(_, name)| name),
    }
}

/// The two lengths in `@@ -3,7 +3,8 @@`.
fn hunk_lengths(line: &str) -> Option<(usize, usize)> {
    let (old, rest) = line.strip_prefix("@@ -")?.split_once(" +")?;
    let (new, _) = rest.split_once(" @@")?;
    let length = |range: &str| range.split_once(',').map_or(Some(1), |(_, length)| length.parse().ok());
    Some((length(old)?, length(new)?))
}

/// A diff in colour: for each file its name and numbers, and in all at most so many lines of them.
pub fn shown(files: &[FileDiff], most: usize, look: Look) -> String {
    let mut out = String::new();
    let mut left = most;
    for file in files {
        out.push_str(&format!("    {}\n", title(file, look)));
        for row in file.rows.iter().take(left) {
            out.push_str(&format!("    {}\n", painted(row, look)));
        }
        left = left.saturating_sub(file.rows.len());
    }
    let all: usize = files.iter().map(|file| file.rows.len()).sum();
    if all > most {
        out.push_str(&format!("    {}\n", look.paint(Style::Dim, &format!("… {}", count(all - most, "more line")))));
    }
    out
}

/// `src/a.rs (new) +3 -0`
pub fn title(file: &FileDiff, look: Look) -> String {
    let note = if file.note.is_empty() { String::new() } else { format!(" ({})", file.note) };
    let (added, removed) = (format!("+{}", file.added), format!("-{}", file.removed));
    let room = look.room(6 + note.len() + added.len() + removed.len());
    let path = look.paint(Style::Bold, &fit::cut(&safe::name(&file.path), room));
    format!("{path}{note} {} {}", look.paint(Style::Green, &added), look.paint(Style::Red, &removed))
}

fn painted(row: &Row, look: Look) -> String {
    let text = fit::cut(&safe::name(&row.text.replace('\t', "    ")), look.room(4));
    match row.kind {
        Kind::Place => look.paint(Style::Cyan, &text),
        Kind::Added => look.paint(Style::Green, &text),
        Kind::Removed => look.paint(Style::Red, &text),
        Kind::Same | Kind::Heading | Kind::Aside => text,
    }
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;
    const PLAIN: Look = Look { width: 40, colours: Colours::Off };

    const TWO: &str = "diff --git a/src/a.rs b/src/a.rs\n--- a/src/a.rs\n+++ b/src/a.rs\n@@ -1,3 +1,3 @@\n one\n-two\n+zwei\n three\n\
                       diff --git a/b.txt b/b.txt\nnew file mode 100644\n--- /dev/null\n+++ b/b.txt\n@@ -0,0 +1,2 @@\n+a\n+b\n\\ No newline at end of file\n";

    #[track_caller]
    fn check(diff: &str, expected: &[(&str, &str, usize, usize)]) {
        let found = files(diff);
        let found: Vec<_> = found.iter().map(|file| (file.path.as_str(), file.note, file.added, file.removed)).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn files_and_lines_are_counted() {
        check("", &[]);
        check(TWO, &[("src/a.rs", "", 1, 1), ("b.txt", "new", 2, 0)]);
        check(
            "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n--- a/y\n+++ b/y\n@@ -1 +0,0 @@\n-a\n",
            &[("x", "", 1, 1), ("y", "", 0, 1)],
        );
    }

    #[test]
    fn a_file_may_be_new_and_empty_moved_deleted_or_binary() {
        check("diff --git a/a b.txt b/a b.txt\nnew file mode 100644\n", &[("a b.txt", "new", 0, 0)]);
        check("diff --git a/a b/b\nrename from a\nrename to b\n--- a/a\n+++ b/b\n@@ -1 +1 @@\n-x\n+y\n", &[("a → b", "", 1, 1)]);
        check(
            "diff --git a/a b/a\ndeleted file mode 100644\n--- a/a\n+++ /dev/null\n@@ -1,1 +0,0 @@\n-a\n",
            &[("a", "deleted", 0, 1)],
        );
        check("diff --git a/a b/a\nBinary files a/a and b/a differ\n", &[("a", "binary", 0, 0)]);
    }

    #[test]
    fn text_that_looks_like_a_heading_is_text() {
        check(
            "diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1,2 +1,2 @@\n--- x\n-@@ -1 +1 @@\n+++ b/y\n+diff --git a/z b/z\n",
            &[("a", "", 2, 2)],
        );
    }

    #[test]
    fn a_whole_diff_is_coloured_by_what_its_lines_are() {
        let diff =
            "--- a/a.sql\n+++ b/a.sql\n@@ -1,2 +1,2 @@\n--- a comment\n+++ a comment\n \u{1b}[2J\n\\ No newline at end of file\n";
        let expected = "\u{1b}[1m--- a/a.sql\u{1b}[0m\n\u{1b}[1m+++ b/a.sql\u{1b}[0m\n\u{1b}[36m@@ -1,2 +1,2 @@\u{1b}[0m\n\
                        \u{1b}[31m--- a comment\u{1b}[0m\n\u{1b}[32m+++ a comment\u{1b}[0m\n <U+001B>[2J\n\\ No newline at end of file\n";
        assert_eq!(coloured(diff), expected);
    }

    #[test]
    fn what_is_no_diff_does_no_harm() {
        check("hello\n@@ -1,9 +1,9 @@\n+x\n", &[]);
        check("@@ -1,99999999999999999999999 +1 @@\n", &[]);
        check("diff --git a/é b/ü\n", &[("ü", "", 0, 0)]);
        check("diff --git a/\n", &[("", "", 0, 0)]);
    }

    #[test]
    fn a_diff_is_shown_with_its_numbers() {
        assert_snapshot!(shown(&files(TWO), 20, PLAIN), @r"
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
        assert_snapshot!(shown(&files(TWO), 3, PLAIN), @r"
            src/a.rs +1 -1
            @@ -1,3 +1,3 @@
             one
            -two
            b.txt (new) +2 -0
            … 5 more lines
        ");
        let long = format!("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+{}\n", "b".repeat(1000));
        assert!(shown(&files(&long), 20, PLAIN).lines().all(|line| fit::width(line) < 40));
    }

    #[test]
    fn a_diff_paints_only_what_we_paint() {
        let diff = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\x1b[2J\r\n+b\tc\n";
        let shown = shown(&files(diff), 20, Look { width: 60, colours: Colours::On });
        let expected = "    \x1b[1mx\x1b[0m \x1b[32m+1\x1b[0m \x1b[31m-1\x1b[0m\n    \x1b[36m@@ -1 +1 @@\x1b[0m\n    \
                        \x1b[31m-a<U+001B>[2J<U+000D>\x1b[0m\n    \x1b[32m+b    c\x1b[0m\n";
        assert_eq!(shown, expected);
    }
}
