//! Unified diffs, with or without the headers of git.

use std::borrow::Cow;

use super::{
    BadPatch, FilePatch, LastNewline, PatchChunk, PatchRow,
    parse::{ChunkEnd, ChunkHeader, ChunkOpening, ChunkRows, HunkCounts, PatchLine, PatchLines},
};

const GIT: &str = "diff --git ";
const OLD: &str = "--- ";
const NEW: &str = "+++ ";
const NOTHING: &str = "/dev/null";
const HUNK: &str = "`@@ -line,count +line,count @@`";

/// Whether a diff may begin with this line.
pub(super) fn begins_diff(line: PatchLine<'_>) -> bool {
    line.text.starts_with(GIT) || line.text.starts_with(OLD)
}

/// Parses the whole patch, from its first line.
pub(super) fn files<'a>(lines: &mut PatchLines<'a>) -> Result<Vec<FilePatch<'a>>, BadPatch> {
    let mut files = Vec::new();
    lines.skip_blank();
    while let Some(line) = lines.peek() {
        if !begins_diff(line) {
            let why = format!(
                "expected a line that begins with ' ', '+' or '-', {HUNK}, or the `--- ` and `+++ ` lines of the next file"
            );
            return Err(line.bad(why));
        }
        files.push(file(line, lines)?);
        lines.skip_blank();
    }
    Ok(files)
}

/// The lines between `diff --git` and `---`.
#[derive(Default)]
struct GitHead<'a> {
    /// The name in `diff --git`, if both sides have the same.
    name: Option<Cow<'a, str>>,
    is_new: bool,
    is_deleted: bool,
    rename_from: Option<Cow<'a, str>>,
    rename_to: Option<Cow<'a, str>>,
}

/// The name on one side of a diff; `None` for `/dev/null`.
type DiffSide<'a> = Option<Cow<'a, str>>;

struct UnifiedHunk<'a> {
    opening: ChunkOpening<'a>,
    rows: ChunkRows<'a>,
}

fn file<'a>(line: PatchLine<'a>, lines: &mut PatchLines<'a>) -> Result<FilePatch<'a>, BadPatch> {
    let git = git_head(lines)?;
    let names = names(lines)?;
    let mut hunks = Vec::new();
    while let Some(hunk) = hunk(lines)? {
        hunks.push(hunk);
    }
    file_patch(line, git, names, hunks)
}

/// `names` are those after `---` and `+++`, if present.
fn file_patch<'a>(
    line: PatchLine<'a>,
    git: GitHead<'a>,
    names: Option<(DiffSide<'a>, DiffSide<'a>)>,
    hunks: Vec<UnifiedHunk<'a>>,
) -> Result<FilePatch<'a>, BadPatch> {
    match (git.rename_from, git.rename_to) {
        (Some(from), Some(to)) => return updated(line, from, Some(to), hunks),
        (None, None) => {}
        _ => return Err(line.bad("expected both `rename from` and `rename to`")),
    }
    let (old, new) = match (names, git.name) {
        (Some(names), _) => names,
        (None, Some(name)) => (Some(name.clone()), Some(name)),
        (None, None) => return Err(line.bad("the name of the file is missing: expected `--- ` and `+++ ` lines")),
    };
    match (old, new) {
        (None, None) => Err(line.bad("both sides are /dev/null: one must name a file")),
        (None, Some(path)) => added(path, &hunks),
        (Some(path), None) => deleted(path, &hunks),
        (Some(_), Some(path)) if git.is_new => added(path, &hunks),
        (Some(path), Some(_)) if git.is_deleted => deleted(path, &hunks),
        (Some(old), Some(new)) if old == new => updated(line, old, None, hunks),
        (Some(old), Some(new)) => {
            Err(line.bad(format!("the names differ ({old}, {new}): give the same name twice, or `rename from` and `rename to`")))
        }
    }
}

fn updated<'a>(
    line: PatchLine<'a>,
    path: Cow<'a, str>,
    move_to: Option<Cow<'a, str>>,
    hunks: Vec<UnifiedHunk<'a>>,
) -> Result<FilePatch<'a>, BadPatch> {
    if hunks.is_empty() && move_to.is_none() {
        return Err(line.bad(format!("the diff changes nothing in {path}: expected a hunk, {HUNK}")));
    }
    let chunks: Result<Vec<PatchChunk<'a>>, BadPatch> =
        hunks.into_iter().map(|hunk| hunk.rows.into_chunk(hunk.opening, ChunkEnd::Anywhere)).collect();
    Ok(FilePatch::Update { path, move_to, chunks: chunks? })
}

fn added<'a>(path: Cow<'a, str>, hunks: &[UnifiedHunk<'a>]) -> Result<FilePatch<'a>, BadPatch> {
    let mut content = String::new();
    if let Some(second) = hunks.get(1) {
        return Err(second.opening.line.bad("a new file has one hunk with all of its lines"));
    }
    for hunk in hunks {
        for row in hunk.rows.rows() {
            match row {
                // An empty line that lacks its `+`.
                PatchRow::Add(text) | PatchRow::Keep(text @ ("" | "\r")) => content.extend([text, "\n"]),
                PatchRow::Keep(_) | PatchRow::Remove(_) => {
                    return Err(hunk.opening.line.bad("a new file has only lines that begin with '+'"));
                }
            }
        }
        if hunk.rows.last_newline()? != LastNewline::Unsaid {
            content.pop();
        }
    }
    Ok(FilePatch::Add { path, content })
}

fn deleted<'a>(path: Cow<'a, str>, hunks: &[UnifiedHunk<'a>]) -> Result<FilePatch<'a>, BadPatch> {
    let adds = |hunk: &&UnifiedHunk<'a>| hunk.rows.rows().iter().any(|row| matches!(row, PatchRow::Add(_)));
    match hunks.iter().find(adds) {
        Some(hunk) => Err(hunk.opening.line.bad("a deleted file has only lines that begin with '-'")),
        None => Ok(FilePatch::Delete { path }),
    }
}

/// Parses the header lines of git, if present. Changes of modes are not supported, so they are an error, not ignored.
fn git_head<'a>(lines: &mut PatchLines<'a>) -> Result<GitHead<'a>, BadPatch> {
    let mut head = GitHead::default();
    let Some((line, names)) = lines.take_after(GIT) else { return Ok(head) };
    head.name = common_name(line, names)?;
    while let Some(line) = lines.peek() {
        let begins = |keys: &[&str]| keys.iter().any(|key| line.text.starts_with(key));
        if let Some(mode) = line.after("new file mode ") {
            head.is_new = true;
            if mode != "100644" {
                return Err(line.bad(format!("a new file gets the mode 100644, not {mode}: modes cannot be set by a patch")));
            }
        } else if begins(&["deleted file mode "]) {
            head.is_deleted = true;
        } else if let Some(path) = line.after("rename from ") {
            head.rename_from = Some(unquoted(line, path)?);
        } else if let Some(path) = line.after("rename to ") {
            head.rename_to = Some(unquoted(line, path)?);
        } else if begins(&["old mode ", "new mode "]) {
            return Err(line.bad("modes of files cannot be changed by a patch: leave them out"));
        } else if begins(&["copy from ", "copy to "]) {
            return Err(line.bad("a patch cannot copy a file: add the copy as a new file"));
        } else if begins(&["GIT binary patch", "Binary files "]) {
            return Err(line.bad("binary patches cannot be applied: these tools write text only"));
        } else if !begins(&["index ", "similarity index ", "dissimilarity index "]) {
            break;
        }
        lines.take();
    }
    Ok(head)
}

/// The name in `a/name b/name`, if both sides have the same. Otherwise, the following lines give the names.
fn common_name<'a>(line: PatchLine<'a>, names: &'a str) -> Result<Option<Cow<'a, str>>, BadPatch> {
    let (old, new) = if let Some(quoted) = names.strip_prefix('"') {
        let Some((old, new)) = quoted.split_once("\" ") else { return Ok(None) };
        (&names[..old.len() + 2], new.trim())
    } else {
        let middle = names.len() / 2;
        match (names.get(..middle), names.get(middle..).and_then(|rest| rest.strip_prefix(' '))) {
            (Some(old), Some(new)) => (old, new),
            _ => return Ok(None),
        }
    };
    let sides = without_prefixes(Some(unquoted(line, old)?), Some(unquoted(line, new)?));
    Ok(if sides.0 == sides.1 { sides.0 } else { None })
}

fn names<'a>(lines: &mut PatchLines<'a>) -> Result<Option<(DiffSide<'a>, DiffSide<'a>)>, BadPatch> {
    let Some(old) = lines.peek().filter(|line| line.text.starts_with(OLD)) else { return Ok(None) };
    lines.take();
    let Some(new) = lines.peek().filter(|line| line.text.starts_with(NEW)) else {
        return Err(lines.bad("expected a `+++ ` line below the `--- ` line"));
    };
    lines.take();
    let (old, new) = (parse_side(old, &old.text[OLD.len()..])?, parse_side(new, &new.text[NEW.len()..])?);
    Ok(Some(without_prefixes(old, new)))
}

/// Parses a name, which may be followed by a tab and a time.
fn parse_side<'a>(line: PatchLine<'a>, name: &'a str) -> Result<DiffSide<'a>, BadPatch> {
    let name = name.split('\t').next().unwrap_or(name).trim();
    if name == NOTHING {
        return Ok(None);
    }
    let name = unquoted(line, name)?;
    if name.is_empty() { Err(line.bad("the line names no file: expected a path")) } else { Ok(Some(name)) }
}

/// Removes git's `a/` and `b/` from the names, if both have them.
fn without_prefixes<'a>(old: DiffSide<'a>, new: DiffSide<'a>) -> (DiffSide<'a>, DiffSide<'a>) {
    let has = |side: &DiffSide<'a>, prefix: &str| {
        side.as_ref().is_none_or(|name| name.starts_with(prefix) && name.len() > prefix.len())
    };
    let cut = |name: Cow<'a, str>| match name {
        Cow::Borrowed(name) => Cow::Borrowed(&name[2..]),
        Cow::Owned(name) => Cow::Owned(name[2..].to_owned()),
    };
    if has(&old, "a/") && has(&new, "b/") { (old.map(cut), new.map(cut)) } else { (old, new) }
}

/// Undoes git's quoting: git writes unusual names in quotes, with C escapes for their bytes.
fn unquoted<'a>(line: PatchLine<'a>, name: &'a str) -> Result<Cow<'a, str>, BadPatch> {
    let Some(quoted) = name.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) else { return Ok(Cow::Borrowed(name)) };
    let bytes = unescaped(quoted.as_bytes()).and_then(|bytes| String::from_utf8(bytes).ok());
    bytes
        .map(Cow::Owned)
        .ok_or_else(|| line.bad("the quoted name cannot be read: expected \"…\" with \\\" \\\\ \\t \\n or \\303\\251 (UTF-8)"))
}

fn unescaped(quoted: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(quoted.len());
    let mut rest = quoted;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        let (&kind, after) = rest.split_first()?;
        rest = after;
        bytes.push(match kind {
            b'a' => 7,
            b'b' => 8,
            b't' => b'\t',
            b'n' => b'\n',
            b'v' => 11,
            b'f' => 12,
            b'r' => b'\r',
            b'"' | b'\\' => kind,
            b'0'..=b'3' => {
                let (low, after) = rest.split_at_checked(2)?;
                rest = after;
                let digits =
                    std::str::from_utf8(low).ok().filter(|low| low.bytes().all(|digit| (b'0'..=b'7').contains(&digit)))?;
                (kind - b'0') * 64 + u8::from_str_radix(digits, 8).ok()?
            }
            _ => return None,
        });
    }
    Some(bytes)
}

/// The next hunk of this file; `None` before the next file or the end.
fn hunk<'a>(lines: &mut PatchLines<'a>) -> Result<Option<UnifiedHunk<'a>>, BadPatch> {
    lines.skip_blank();
    let Some((line, header)) = lines.peek().and_then(|line| Some((line, ChunkHeader::of(line)?))) else { return Ok(None) };
    lines.take();
    let mut opening = ChunkOpening::at(line);
    opening.add(header);
    let start = lines.place();
    if let Some(counts) = opening.counts {
        if let Some(rows) = counted_rows(lines, counts)? {
            return Ok(Some(UnifiedHunk { opening, rows }));
        }
        lines.go_back(start);
    }
    Ok(Some(UnifiedHunk { opening, rows: uncounted_rows(lines)? }))
}

/// The rows of a hunk whose header has the right counts, else `None`. Only the counts can distinguish a removed line
/// `-- a` from the name of the next file.
fn counted_rows<'a>(lines: &mut PatchLines<'a>, counts: HunkCounts) -> Result<Option<ChunkRows<'a>>, BadPatch> {
    let mut rows = ChunkRows::default();
    let (mut old, mut new) = (counts.old, counts.new);
    while old > 0 || new > 0 {
        let Some(line) = lines.take() else { return Ok(None) };
        if line.is_newline_mark() {
            rows.push_newline_mark(line)?;
            continue;
        }
        let Some(row) = line.row().or_else(|| line.is_empty().then_some(PatchRow::Keep(""))) else { return Ok(None) };
        for (left, is_there) in [(&mut old, row.before().is_some()), (&mut new, row.after().is_some())] {
            let Some(less) = left.checked_sub(u32::from(is_there)) else { return Ok(None) };
            *left = less;
        }
        rows.push(row);
    }
    if took_names(lines, &rows) {
        return Ok(None);
    }
    if let Some(line) = lines.peek().filter(|line| line.is_newline_mark()) {
        rows.push_newline_mark(line)?;
        lines.take();
    }
    lines.skip_blank();
    let continues = !ends_hunk(lines) && lines.peek().is_some_and(|line| line.row().is_some());
    Ok((!continues).then_some(rows))
}

/// Whether the last two rows are in fact the names of the next file, because the header counts one line too many.
///
/// That is so if they have the same name and a hunk follows. As rows, they would be a change without a line below it.
/// In a diff with context, such a change occurs only at the end of the file, where no hunk can follow.
fn took_names(lines: &mut PatchLines<'_>, rows: &ChunkRows<'_>) -> bool {
    let [rows @ .., PatchRow::Remove(_), PatchRow::Add(_)] = rows.rows() else { return false };
    let has_context = rows.iter().any(|row| matches!(row, PatchRow::Keep(_)));
    if !has_context || lines.peek().and_then(ChunkHeader::of).is_none() {
        return false;
    }
    let end = lines.place();
    lines.go_back(end - 2);
    let names = names(lines);
    lines.go_back(end);
    matches!(names, Ok(Some((old, new))) if old == new || old.is_none() || new.is_none())
}

/// The rows up to the next line that cannot be a row.
fn uncounted_rows<'a>(lines: &mut PatchLines<'a>) -> Result<ChunkRows<'a>, BadPatch> {
    let mut rows = ChunkRows::default();
    while let Some(line) = lines.peek().filter(|_| !ends_hunk(lines)) {
        if line.is_newline_mark() {
            rows.push_newline_mark(line)?;
        } else if line.is_empty() {
            rows.push_empty_line();
        } else if let Some(row) = line.row() {
            rows.push(row);
        } else {
            break;
        }
        lines.take();
    }
    Ok(rows)
}

/// Whether the next line begins another hunk or another file.
fn ends_hunk(lines: &PatchLines<'_>) -> bool {
    let begins = |line: Option<PatchLine<'_>>, key: &str| line.is_some_and(|line| line.text.starts_with(key));
    let next = lines.peek();
    begins(next, "@@") || begins(next, GIT) || (begins(next, OLD) && begins(lines.peek_second(), NEW))
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use crate::edit::patch::tests::{check_patch, fault, said};

    #[test]
    fn every_kind_of_file() {
        assert_snapshot!(said(
            "diff --git a/src/a.rs b/src/a.rs\nindex 1234567..89abcde 100644\n--- a/src/a.rs\n+++ b/src/a.rs\n@@ -3,2 +3,2 @@ fn main() {\n \
             x\n-y\n+z\n@@ -9 +9,0 @@\n-w\ndiff --git a/new b/new\nnew file mode 100644\nindex 0000000..1234567\n--- /dev/null\n+++ b/new\n\
             @@ -0,0 +1,2 @@\n+one\n+two\ndiff --git a/old b/old\ndeleted file mode 100755\nindex 1234567..0000000\n--- a/old\n+++ /dev/null\n\
             @@ -1 +0,0 @@\n-gone\ndiff --git a/from b/to\nsimilarity index 100%\nrename from from\nrename to to\n"
        ), @r#"
        update src/a.rs
          chunk At(LineNo(3))
             x
            -y
            +z
          chunk At(LineNo(9))
            -w
        add new "one\ntwo\n"
        delete old
        update from -> to
        "#);
    }

    #[test]
    fn plain_diffs_without_git() {
        check_patch(
            "--- a.txt\t2024-01-01 10:00:00\n+++ a.txt\t2024-01-01 10:01:00\n@@ -1 +1 @@\n-x\n+y\n",
            "update a.txt\n  chunk At(LineNo(1))\n    -x\n    +y\n",
        );
        check_patch("--- /dev/null\n+++ new.txt\n@@ -0,0 +1 @@\n+x\n", "add new.txt \"x\\n\"\n");
        check_patch("--- a/x\n+++ /dev/null\n", "delete x\n");
        check_patch("--- a/x\n+++ a/x\n@@ -2,0 +3 @@\n+y\n", "update a/x\n  chunk After(2)\n    +y\n");
        check_patch("```diff\n--- x\n+++ x\n@@ -1 +1 @@\n-x\n+y\n```\n", "update x\n  chunk At(LineNo(1))\n    -x\n    +y\n");
    }

    #[test]
    fn names_are_read_as_git_writes_them() {
        check_patch(
            "--- \"a/caf\\303\\251\"\n+++ \"b/caf\\303\\251\"\n@@ -1 +0,0 @@\n-x\n",
            "update café\n  chunk At(LineNo(1))\n    -x\n",
        );
        check_patch("diff --git \"a/t\\ta\" \"b/t\\ta\"\ndeleted file mode 100644\n", "delete t\ta\n");
        check_patch("diff --git a/a b b/a b\nnew file mode 100644\nindex 0000000..e69de29\n", "add a b \"\"\n");
        check_patch(
            "diff --git a/x b/y\nsimilarity index 90%\nrename from x\nrename to y\n--- a/x\n+++ b/y\n@@ -1 +1 @@\n-x\n+y\n",
            "update x -> y\n  chunk At(LineNo(1))\n    -x\n    +y\n",
        );
    }

    #[test]
    fn the_counts_decide_what_is_a_row() {
        // A removed line `-- b` and an added line `++ b`, then the next file.
        check_patch(
            "--- a\n+++ a\n@@ -1,2 +1,2 @@\n--- b\n+++ b\n x\n--- c\n+++ c\n@@ -1 +0,0 @@\n-y\n",
            "update a\n  chunk At(LineNo(1))\n    --- b\n    +++ b\n     x\nupdate c\n  chunk At(LineNo(1))\n    -y\n",
        );
        // A context line whose blank was trimmed, at the very end.
        check_patch("--- a\n+++ a\n@@ -1,2 +1,2 @@\n-x\n+y\n\n", "update a\n  chunk At(LineNo(1))\n    -x\n    +y\n     \n");
    }

    #[test]
    fn wrong_counts_are_tolerated() {
        let read = "update a\n  chunk At(LineNo(1))\n     x\n    -y\n    +z\n  chunk At(LineNo(9))\n    -w\nupdate b\n  chunk At(LineNo(1))\n    -v\n";
        for counts in ["-1,1 +1,1", "-1,2 +1,2", "-1,30 +1,30", "-1,9 +1,1"] {
            check_patch(
                &format!("--- a\n+++ a\n@@ {counts} @@\n x\n-y\n+z\n\n@@ -9,2 +8,2 @@\n-w\n--- b\n+++ b\n@@ -1 +0,0 @@\n-v\n"),
                read,
            );
        }
        // The count is one too high, so that the names of the next file could be rows.
        check_patch(
            "--- a/a\n+++ b/a\n@@ -1,3 +1,3 @@\n x\n-y\n+z\n--- a/b\n+++ b/b\n@@ -1 +0,0 @@\n-v\n",
            "update a\n  chunk At(LineNo(1))\n     x\n    -y\n    +z\nupdate b\n  chunk At(LineNo(1))\n    -v\n",
        );
        check_patch("--- a\n+++ a\n@@\n-y\n+z\n", "update a\n  chunk\n    -y\n    +z\n");
        check_patch("--- a\n+++ a\n@@ fn f() {\n-y\n+z\n", "update a\n  chunk\n    @ fn f() {\n    -y\n    +z\n");
    }

    #[test]
    fn a_missing_final_newline_is_read() {
        let mark = "\\ No newline at end of file\n";
        check_patch(
            &format!("--- a\n+++ a\n@@ -1 +1 @@\n-x\n{mark}+x\n"),
            "update a\n  chunk At(LineNo(1)) Added\n    -x\n    +x\n",
        );
        check_patch(
            &format!("--- a\n+++ a\n@@ -1 +1 @@\n-x\n+x\n{mark}"),
            "update a\n  chunk At(LineNo(1)) Removed\n    -x\n    +x\n",
        );
        check_patch(
            &format!("--- a\n+++ a\n@@ -1 +1,2 @@\n+x\n y\n{mark}"),
            "update a\n  chunk At(LineNo(1)) Absent\n    +x\n     y\n",
        );
        check_patch(&format!("--- /dev/null\n+++ a\n@@ -0,0 +1,2 @@\n+x\n+y\n{mark}"), "add a \"x\\ny\"\n");
        assert_snapshot!(
            fault(&format!("--- a\n+++ a\n@@ -1,2 +1,2 @@\n-x\n{mark}-z\n+y\n w\n")),
            @r"5: `\ No newline at end of file` belongs below the last line of the file"
        );
        assert_snapshot!(
            fault(&format!("--- a\n+++ a\n@@ -1,2 +1,2 @@\n{mark}-x\n")),
            @r"4: `\ No newline at end of file` belongs below the line that it speaks of"
        );
    }

    #[test]
    fn carriage_returns_are_a_matter_of_the_file() {
        check_patch("--- a\n+++ a\n@@ -1 +1 @@\n-x\r\n+y\r\n", "update a\n  chunk At(LineNo(1))\n    -x\n    +y\n");
        check_patch("--- a\r\n+++ a\r\n@@ -1 +1 @@\r\n-x\r\n+y\r\n", "update a\n  chunk At(LineNo(1))\n    -x\n    +y\n");
        check_patch("--- /dev/null\n+++ a\n@@ -0,0 +1 @@\n+x\r\n", "add a \"x\\r\\n\"\n");
    }

    #[test]
    fn unsupported_headers_are_errors() {
        let git = "diff --git a/x b/x\n";
        assert_snapshot!(fault(&format!("{git}old mode 100644\nnew mode 100755\n")), @"2: modes of files cannot be changed by a patch: leave them out");
        assert_snapshot!(
            fault(&format!("{git}new file mode 120000\n--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+y\n")),
            @"2: a new file gets the mode 100644, not 120000: modes cannot be set by a patch"
        );
        assert_snapshot!(
            fault("diff --git a/x b/y\nsimilarity index 100%\ncopy from x\ncopy to y\n"),
            @"3: a patch cannot copy a file: add the copy as a new file"
        );
        assert_snapshot!(
            fault(&format!("{git}index 1234567..89abcde 100644\nBinary files a/x and b/x differ\n")),
            @"3: binary patches cannot be applied: these tools write text only"
        );
        assert_snapshot!(
            fault(&format!("{git}GIT binary patch\nliteral 3\n")),
            @"2: binary patches cannot be applied: these tools write text only"
        );
    }

    #[test]
    fn an_error_has_its_line() {
        assert_snapshot!(fault("--- a\n@@ -1 +1 @@\n-x\n"), @"2: expected a `+++ ` line below the `--- ` line");
        assert_snapshot!(
            fault("--- a\n+++ a\n"),
            @"1: the diff changes nothing in a: expected a hunk, `@@ -line,count +line,count @@`"
        );
        assert_snapshot!(
            fault("--- a\n+++ b\n@@ -1 +1 @@\n-x\n+y\n"),
            @"1: the names differ (a, b): give the same name twice, or `rename from` and `rename to`"
        );
        assert_snapshot!(fault("--- /dev/null\n+++ /dev/null\n"), @"1: both sides are /dev/null: one must name a file");
        assert_snapshot!(
            fault("--- a\n+++ a\n@@ -1 +1 @@\n-x\n+y\nfoo\n"),
            @"6: expected a line that begins with ' ', '+' or '-', `@@ -line,count +line,count @@`, or the `--- ` and `+++ ` lines of the next file"
        );
        assert_snapshot!(
            fault("--- a\n+++ a\n@@ -5,3 +5,4 @@\n+y\n"),
            @"3: the header counts 3 old lines, but there are none: give the lines above and below with ' '"
        );
        assert_snapshot!(
            fault("--- a\n+++ a\n@@ -5,3 +5,4 @@\n"),
            @"3: the chunk is empty: expected lines that begin with ' ', '+' or '-' below it"
        );
        assert_snapshot!(
            fault("--- /dev/null\n+++ a\n@@ -0,0 +1,2 @@\n+y\n x\n"),
            @"3: a new file has only lines that begin with '+'"
        );
        assert_snapshot!(
            fault("--- a\n+++ /dev/null\n@@ -1 +1 @@\n-x\n+y\n"),
            @"3: a deleted file has only lines that begin with '-'"
        );
        assert_snapshot!(
            fault("--- \"a\\9\"\n+++ a\n@@ -1 +1 @@\n-x\n"),
            @r#"1: the quoted name cannot be read: expected "…" with \" \\ \t \n or \303\251 (UTF-8)"#
        );
        assert_snapshot!(fault("diff --git a/x b/y\n"), @"1: the name of the file is missing: expected `--- ` and `+++ ` lines");
        assert_snapshot!(fault("diff --git a/x b/y\nrename from x\n"), @"1: expected both `rename from` and `rename to`");
    }
}
