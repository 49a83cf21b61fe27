//! The difference of one file as people and other programs read it. [`FileDiff`] is the value that is counted, coloured
//! and cut; its `Display` is a unified diff as `git diff` would print it. The short diff for the model is in
//! [`crate::short_diff`].

use std::{borrow::Cow, fmt, ops::Range};

use crate::{
    content::Content,
    line_map::{Hunk, LineMap},
    lines::LineNo,
    path::RelPath,
    text::{LineEnding, Text},
};

const CONTEXT: usize = 3;

/// One file before and after.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileDiff {
    path_before: RelPath,
    path_after: RelPath,
    kind: DiffKind,
    /// The modes before and after, as git writes them.
    modes: (Option<u32>, Option<u32>),
    body: DiffBody,
}

/// The change of a file as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiffKind {
    /// Path and content are the same.
    Unchanged,
    /// The content differs, the path is the same.
    Edited,
    /// The file is new.
    Created,
    /// The file was removed.
    Deleted,
    /// The path differs, and perhaps the content.
    Renamed,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum DiffBody {
    /// Has no hunks if no line differs: an empty file was created or deleted, the file was only renamed, or only its
    /// encoding changed.
    Text(Vec<DiffHunk>),
    Binary,
}

/// Lines that changed, with the lines around them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiffHunk {
    /// The 0-based index of its first line in the old text.
    pub start_before: usize,
    /// The 0-based index of its first line in the new text.
    pub start_after: usize,
    /// The lines of the hunk, from top to bottom.
    pub rows: Vec<DiffRow>,
}

/// A line of a hunk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiffRow {
    /// The side that has the line.
    pub kind: RowKind,
    /// The line without its newline. The carriage return of a CRLF ending is part of it.
    pub text: String,
    /// Whether it ends with a newline; only the last line of a file may not.
    pub has_newline: bool,
}

/// Which side of a diff has a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowKind {
    /// A line of both texts.
    Same,
    /// A line of the new text only.
    Added,
    /// A line of the old text only.
    Removed,
}

/// The line under a row that does not end with a newline.
pub const NO_NEWLINE: &str = "\\ No newline at end of file";

impl FileDiff {
    /// Compares a file before and after. Each side is given by its path and its content; the content is `None` if the
    /// file does not exist.
    pub fn between(before: (&RelPath, Option<&Content>), after: (&RelPath, Option<&Content>)) -> Self {
        let kind = match (before.1, after.1) {
            _ if before == after => DiffKind::Unchanged,
            (None, _) => DiffKind::Created,
            (_, None) => DiffKind::Deleted,
            _ if before.0 != after.0 => DiffKind::Renamed,
            _ => DiffKind::Edited,
        };
        let body = compare(before.1, after.1);
        Self { path_before: before.0.clone(), path_after: after.0.clone(), kind, modes: (None, None), body }
    }

    /// This diff with the modes of the file, as git writes them (`100644`). A file whose mode alone differs counts as
    /// edited.
    #[must_use]
    pub fn with_modes(mut self, before: Option<u32>, after: Option<u32>) -> Self {
        self.modes = (before, after);
        if self.kind == DiffKind::Unchanged && self.changed_modes().is_some() {
            self.kind = DiffKind::Edited;
        }
        self
    }

    fn changed_modes(&self) -> Option<(u32, u32)> {
        let (before, after) = (self.modes.0?, self.modes.1?);
        (before != after).then_some((before, after))
    }

    /// The path before the change; for a created file, its path.
    pub fn path_before(&self) -> &RelPath {
        &self.path_before
    }

    /// The path after the change; for a deleted file, its path.
    pub fn path_after(&self) -> &RelPath {
        &self.path_after
    }

    /// The change of the file as a whole.
    pub fn kind(&self) -> DiffKind {
        self.kind
    }

    /// Whether its contents differ and one of them is binary. Then there are no hunks.
    pub fn is_binary(&self) -> bool {
        self.body == DiffBody::Binary
    }

    /// The changed lines with their context, from top to bottom.
    pub fn hunks(&self) -> &[DiffHunk] {
        match &self.body {
            DiffBody::Text(hunks) => hunks,
            DiffBody::Binary => &[],
        }
    }

    /// The number of added lines.
    pub fn added(&self) -> usize {
        self.count(RowKind::Added)
    }

    /// The number of removed lines.
    pub fn removed(&self) -> usize {
        self.count(RowKind::Removed)
    }

    fn count(&self, kind: RowKind) -> usize {
        self.hunks().iter().flat_map(|hunk| &hunk.rows).filter(|row| row.kind == kind).count()
    }

    /// The lines above the hunks, without newlines (except those in a path).
    pub fn headings(&self) -> Vec<String> {
        if self.kind == DiffKind::Unchanged {
            return Vec::new();
        }
        let (before, after) = (&self.path_before, &self.path_after);
        let mut headings = vec![format!("diff --git a/{before} b/{after}")];
        if let Some((old, new)) = self.changed_modes() {
            headings.extend([format!("old mode {old:o}"), format!("new mode {new:o}")]);
        }
        match self.kind {
            DiffKind::Created => headings.push(format!("new file mode {:o}", self.modes.1.unwrap_or(0o100_644))),
            DiffKind::Deleted => headings.push(format!("deleted file mode {:o}", self.modes.0.unwrap_or(0o100_644))),
            DiffKind::Renamed => headings.extend([format!("rename from {before}"), format!("rename to {after}")]),
            DiffKind::Unchanged | DiffKind::Edited => {}
        }
        let absent = || "/dev/null".to_owned();
        let old = if self.kind == DiffKind::Created { absent() } else { format!("a/{before}") };
        let new = if self.kind == DiffKind::Deleted { absent() } else { format!("b/{after}") };
        match &self.body {
            DiffBody::Binary => headings.push(format!("Binary files {old} and {new} differ")),
            DiffBody::Text(hunks) if hunks.is_empty() => {}
            DiffBody::Text(_) => headings.extend([format!("--- {old}"), format!("+++ {new}")]),
        }
        headings
    }

    /// This diff with `redact` applied to its paths and to the text of each row. `redact` must not add newlines. A path
    /// stays as it is if the redacted one is not valid.
    #[must_use]
    pub fn redacted<'a>(&'a self, redact: impl Fn(&'a str) -> Cow<'a, str>) -> Self {
        let path = |path: &'a RelPath| RelPath::new(&redact(path.as_str())).unwrap_or_else(|_| path.clone());
        let row = |row: &'a DiffRow| DiffRow { text: redact(&row.text).into_owned(), ..*row };
        let hunk = |hunk: &'a DiffHunk| DiffHunk { rows: hunk.rows.iter().map(row).collect(), ..*hunk };
        let body = match &self.body {
            DiffBody::Text(hunks) => DiffBody::Text(hunks.iter().map(hunk).collect()),
            DiffBody::Binary => DiffBody::Binary,
        };
        let (path_before, path_after) = (path(&self.path_before), path(&self.path_after));
        Self { path_before, path_after, kind: self.kind, modes: self.modes, body }
    }
}

impl DiffHunk {
    /// `@@ -3,7 +3,8 @@`
    pub fn heading(&self) -> String {
        let range = |start: usize, other_side: RowKind| {
            let length = self.rows.iter().filter(|row| row.kind != other_side).count();
            // A side without lines is named by the line above it.
            let at = if length > 0 { start + 1 } else { start };
            format!("{at},{length}")
        };
        format!("@@ -{} +{} @@", range(self.start_before, RowKind::Added), range(self.start_after, RowKind::Removed))
    }
}

impl RowKind {
    /// The character in front of the line.
    pub fn sign(self) -> char {
        match self {
            RowKind::Same => ' ',
            RowKind::Added => '+',
            RowKind::Removed => '-',
        }
    }
}

/// A unified diff; empty for an unchanged file.
impl fmt::Display for FileDiff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.headings().iter().try_for_each(|heading| writeln!(f, "{heading}"))?;
        self.hunks().iter().try_for_each(|hunk| write!(f, "{hunk}"))
    }
}

impl fmt::Display for DiffHunk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.heading())?;
        for row in &self.rows {
            writeln!(f, "{row}")?;
            if !row.has_newline {
                writeln!(f, "{NO_NEWLINE}")?;
            }
        }
        Ok(())
    }
}

/// The line with its sign in front, without a newline.
impl fmt::Display for DiffRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.kind.sign(), self.text)
    }
}

fn compare(before: Option<&Content>, after: Option<&Content>) -> DiffBody {
    if before == after {
        return DiffBody::Text(Vec::new());
    }
    let empty = Text::of(String::new()).expect("an empty string is text");
    let text = |content: Option<&Content>| content.map_or(Some(empty.clone()), |content| content.text().cloned());
    let (Some(old), Some(new)) = (text(before), text(after)) else { return DiffBody::Binary };
    let map = LineMap::between(&old, &new);
    DiffBody::Text(groups(map.hunks()).into_iter().map(|group| hunk(&old, &new, group)).collect())
}

/// Changes whose context would touch are shown together.
fn groups(changes: &[Hunk]) -> Vec<&[Hunk]> {
    changes.chunk_by(|change, next| next.before.start - change.before.end <= 2 * CONTEXT).collect()
}

fn hunk(old: &Text, new: &Text, changes: &[Hunk]) -> DiffHunk {
    let (first, last) = (&changes[0], &changes[changes.len() - 1]);
    let lead = first.before.start.min(CONTEXT);
    let trail = (old.line_count() - last.before.end).min(CONTEXT);
    let (start_before, start_after) = (first.before.start - lead, first.after.start - lead);
    let mut rows = Vec::new();
    let mut at = start_before;
    for change in changes {
        push_rows(&mut rows, RowKind::Same, old, at..change.before.start);
        push_rows(&mut rows, RowKind::Removed, old, change.before.clone());
        push_rows(&mut rows, RowKind::Added, new, change.after.clone());
        at = change.before.end;
    }
    push_rows(&mut rows, RowKind::Same, old, at..at + trail);
    DiffHunk { start_before, start_after, rows }
}

fn push_rows(rows: &mut Vec<DiffRow>, kind: RowKind, text: &Text, lines: Range<usize>) {
    rows.extend(lines.map(LineNo::at_index).map(|line| {
        let full = text.full_line(line);
        let has_newline = text.ending(line) != LineEnding::None;
        DiffRow { kind, text: full.strip_suffix('\n').unwrap_or(full).to_owned(), has_newline }
    }));
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use proptest::prelude::*;

    use super::*;
    use crate::edit::patch;

    fn content(text: &str) -> Content {
        Content::Text(Text::of(text.to_owned()).unwrap())
    }

    fn diff(before: Option<&str>, after: Option<&str>) -> String {
        let path = RelPath::new("src/a.txt").unwrap();
        let (before, after) = (before.map(content), after.map(content));
        FileDiff::between((&path, before.as_ref()), (&path, after.as_ref())).to_string()
    }

    #[test]
    fn another_mode_is_shown_as_git_does() {
        let (path, text) = (RelPath::new("run.sh").unwrap(), content("go\n"));
        let same = || FileDiff::between((&path, Some(&text)), (&path, Some(&text)));
        assert_snapshot!(same().with_modes(Some(0o100_644), Some(0o100_755)), @r"
        diff --git a/run.sh b/run.sh
        old mode 100644
        new mode 100755
        ");
        assert_eq!(same().with_modes(Some(0o100_644), Some(0o100_644)).to_string(), "");
        assert_eq!(same().with_modes(None, Some(0o100_755)).kind(), DiffKind::Unchanged);
        let created = FileDiff::between((&path, None), (&path, Some(&text))).with_modes(None, Some(0o100_755));
        assert!(created.to_string().contains("\nnew file mode 100755\n"), "{created}");
    }

    #[test]
    fn changes_are_shown_with_three_lines_of_context() {
        let old: String = (1..=12).map(|line| format!("{line}\n")).collect();
        assert_snapshot!(diff(Some(&old), Some(&old.replace("6\n", "six\nand a half\n"))), @r"
        diff --git a/src/a.txt b/src/a.txt
        --- a/src/a.txt
        +++ b/src/a.txt
        @@ -3,7 +3,8 @@
         3
         4
         5
        -6
        +six
        +and a half
         7
         8
         9
        ");
        assert_snapshot!(diff(None, Some("a\nb")), @r"
        diff --git a/src/a.txt b/src/a.txt
        new file mode 100644
        --- /dev/null
        +++ b/src/a.txt
        @@ -0,0 +1,2 @@
        +a
        +b
        \ No newline at end of file
        ");
        assert_snapshot!(diff(Some("a\n"), None), @r"
        diff --git a/src/a.txt b/src/a.txt
        deleted file mode 100644
        --- a/src/a.txt
        +++ /dev/null
        @@ -1,1 +0,0 @@
        -a
        ");
        assert_eq!(diff(Some("a\n"), Some("a\n")), "");
    }

    fn between(before: (&str, Option<&[u8]>), after: (&str, Option<&[u8]>)) -> FileDiff {
        let path = |path| RelPath::new(path).unwrap();
        let content = |bytes: Option<&[u8]>| bytes.map(|bytes| Content::new(bytes.to_vec()));
        FileDiff::between((&path(before.0), content(before.1).as_ref()), (&path(after.0), content(after.1).as_ref()))
    }

    #[test]
    fn a_file_may_be_renamed_or_binary() {
        let renamed = between(("a", Some(b"x\n")), ("b", Some(b"x\n")));
        assert_eq!((renamed.kind(), renamed.hunks()), (DiffKind::Renamed, &[][..]));
        assert_snapshot!(renamed, @r"
        diff --git a/a b/b
        rename from a
        rename to b
        ");
        let binary = between(("a", Some(b"x\n")), ("b", Some(b"\0")));
        assert_eq!((binary.kind(), binary.is_binary()), (DiffKind::Renamed, true));
        assert_snapshot!(binary, @r"
        diff --git a/a b/b
        rename from a
        rename to b
        Binary files a/a and b/b differ
        ");
        assert_snapshot!(between(("a", None), ("b", Some(b"\0"))), @r"
        diff --git a/a b/b
        new file mode 100644
        Binary files /dev/null and b/b differ
        ");
        assert_eq!(between(("a", Some(b"\0")), ("a", Some(b"\0"))).kind(), DiffKind::Unchanged);
    }

    #[test]
    fn a_file_without_lines_has_no_hunks() {
        assert_eq!(between(("a", None), ("a", Some(b""))).to_string(), "diff --git a/a b/a\nnew file mode 100644\n");
        assert_eq!(between(("a", Some(b"")), ("a", None)).to_string(), "diff --git a/a b/a\ndeleted file mode 100644\n");
        let marked = between(("a", Some(b"x\n")), ("a", Some(b"\xef\xbb\xbfx\n")));
        assert_eq!((marked.kind(), marked.to_string().as_str()), (DiffKind::Edited, "diff --git a/a b/a\n"));
    }

    #[test]
    fn rows_that_look_like_marks_are_counted_by_their_kind() {
        let diff = between(("a", Some(b"-- x\n@@ -1 +1 @@\n=\n")), ("a", Some(b"++ b/y\ndiff --git a/z b/z\n=\r\n\\ x")));
        assert_eq!((diff.added(), diff.removed()), (4, 3));
        assert_snapshot!(diff.to_string().replace('\r', "<CR>"), @r"
        diff --git a/a b/a
        --- a/a
        +++ b/a
        @@ -1,3 +1,4 @@
        --- x
        -@@ -1 +1 @@
        -=
        +++ b/y
        +diff --git a/z b/z
        +=<CR>
        +\ x
        \ No newline at end of file
        ");
    }

    #[test]
    fn a_redacted_diff_has_the_same_shape() {
        let diff = between(("secret/a", Some(b"secret\r\nx\n")), ("b", Some(b"my secret\r\nx\n")));
        let expected = between(("*/a", Some(b"*\r\nx\n")), ("b", Some(b"my *\r\nx\n")));
        assert_eq!(diff.redacted(|text| text.replace("secret", "*").into()), expected);
        assert_eq!(diff.redacted(|text| text.replace("secret", "..").into()).path_before(), diff.path_before(), "no path");
    }

    proptest! {
        /// A printed diff can be parsed again, at least by Surehand.
        #[test]
        fn a_shown_difference_is_a_patch(before in "([a-c]{1,2}\n){1,15}", after in "([a-c]{1,2}\n){1,15}") {
            prop_assume!(before != after);
            let shown = diff(Some(&before), Some(&after));
            let parsed = patch::parse(&shown).unwrap();
            let patch::FilePatch::Update { chunks, .. } = &parsed.files[0] else { panic!("an update") };
            let text = Text::of(before).unwrap();
            if let Ok(splices) = patch::patch_splices(&text, chunks) {
                prop_assert_eq!(crate::line_map::splice(&text, &splices).0, after);
            }
        }
    }
}
