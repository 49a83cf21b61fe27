//! The `*** Begin Patch` envelope: files under `***` headers, chunks that are found by their lines, not by numbers.

use std::borrow::Cow;

use super::{
    BadPatch, FilePatch, PatchChunk,
    parse::{ChunkEnd, ChunkHeader, ChunkOpening, ChunkRows, PatchLine, PatchLines},
};

pub(super) const BEGIN: &str = "*** Begin Patch";
const END: &str = "*** End Patch";
const ADD: &str = "*** Add File:";
const DELETE: &str = "*** Delete File:";
const UPDATE: &str = "*** Update File:";
const MOVE: &str = "*** Move to:";
const END_OF_FILE: &str = "*** End of File";

/// The files in the headers of a patch, whatever else it contains.
pub(super) fn named_files(patch: &str) -> Vec<String> {
    let marks = [ADD, DELETE, UPDATE, MOVE, "+++ b/"];
    let names = patch.lines().filter_map(|line| marks.iter().find_map(|mark| line.strip_prefix(mark)));
    names.map(|name| name.trim().to_owned()).collect()
}

/// Parses the patch from its first line.
pub(super) fn files<'a>(lines: &mut PatchLines<'a>) -> Result<Vec<FilePatch<'a>>, BadPatch> {
    lines.take();
    let mut files = Vec::new();
    loop {
        lines.skip_blank();
        let Some(line) = lines.take() else { return Err(lines.bad(format!("expected `{END}` at the end of the patch"))) };
        if line.text.trim_end() == END {
            check_nothing_follows(lines)?;
            return if files.is_empty() { Err(line.bad("the patch changes no file")) } else { Ok(files) };
        }
        files.push(file(line, lines)?);
    }
}

/// Checks that only blank lines follow. A closing fence that was not opened is ignored, too.
fn check_nothing_follows(lines: &mut PatchLines<'_>) -> Result<(), BadPatch> {
    lines.skip_blank();
    if lines.peek().is_some_and(|line| line.text.trim_end() == "```") {
        lines.take();
        lines.skip_blank();
    }
    if lines.peek().is_some() { Err(lines.bad(format!("expected nothing after `{END}`"))) } else { Ok(()) }
}

fn file<'a>(line: PatchLine<'a>, lines: &mut PatchLines<'a>) -> Result<FilePatch<'a>, BadPatch> {
    if let Some(path) = line.after(ADD) {
        let path = named(line, path)?;
        return Ok(FilePatch::Add { path, content: content(lines)? });
    }
    if let Some(path) = line.after(DELETE) {
        return Ok(FilePatch::Delete { path: named(line, path)? });
    }
    if let Some(path) = line.after(UPDATE) {
        return update(line, named(line, path)?, lines);
    }
    Err(line.bad(format!("expected `{ADD} path`, `{UPDATE} path`, `{DELETE} path` or `{END}`")))
}

fn named<'a>(line: PatchLine<'a>, path: &'a str) -> Result<Cow<'a, str>, BadPatch> {
    if path.is_empty() {
        Err(line.bad("the header names no file: expected a path after the colon"))
    } else {
        Ok(Cow::Borrowed(path))
    }
}

/// The lines of a new file. An empty line may lack its `+`, if another `+` line follows.
fn content(lines: &mut PatchLines<'_>) -> Result<String, BadPatch> {
    let mut content = String::new();
    let mut empty_lines = String::new();
    while let Some(line) = lines.peek() {
        if let Some(text) = line.text.strip_prefix('+') {
            content.push_str(&std::mem::take(&mut empty_lines));
            content.push_str(text);
            content.push('\n');
        } else if line.is_empty() {
            empty_lines.push_str(line.text);
            empty_lines.push('\n');
        } else if line.text.starts_with("*** ") {
            break;
        } else {
            return Err(line.bad("expected a line of the new file, which begins with '+', or a *** header"));
        }
        lines.take();
    }
    Ok(content)
}

fn update<'a>(line: PatchLine<'a>, path: Cow<'a, str>, lines: &mut PatchLines<'a>) -> Result<FilePatch<'a>, BadPatch> {
    let start = lines.place();
    lines.skip_blank();
    let move_to = match lines.take_after(MOVE) {
        Some((line, path)) => Some(named(line, path)?),
        None => {
            lines.go_back(start);
            None
        }
    };
    let mut chunks = Vec::new();
    while let Some(chunk) = chunk(lines)? {
        chunks.push(chunk);
    }
    if chunks.is_empty() && move_to.is_none() {
        return Err(
            line.bad(format!("nothing follows `{UPDATE}`: expected lines that begin with ' ', '+' or '-', or `{MOVE} path`"))
        );
    }
    Ok(FilePatch::Update { path, move_to, chunks })
}

/// The next chunk of this file; `None` before the next file or the end.
fn chunk<'a>(lines: &mut PatchLines<'a>) -> Result<Option<PatchChunk<'a>>, BadPatch> {
    let Some(first) = lines.peek() else { return Ok(None) };
    let mut opening: Option<ChunkOpening<'a>> = None;
    let mut rows = ChunkRows::default();
    let mut ends = ChunkEnd::Anywhere;
    while let Some(line) = lines.peek() {
        if let Some(header) = ChunkHeader::of(line) {
            if !rows.is_empty() {
                break;
            }
            // Empty lines between two headers are not lines of the file.
            rows = ChunkRows::default();
            opening.get_or_insert_with(|| ChunkOpening::at(line)).add(header);
        } else if line.text.trim_end() == END_OF_FILE && !rows.is_empty() {
            lines.take();
            ends = ChunkEnd::AtEndOfFile;
            break;
        } else if line.text.starts_with("***") {
            break;
        } else if line.is_empty() {
            rows.push_empty_line();
        } else if line.is_newline_mark() {
            rows.push_newline_mark(line)?;
        } else if let Some(row) = line.row() {
            rows.push(row);
        } else {
            return Err(line.bad("expected a line that begins with ' ', '+' or '-', or a *** header"));
        }
        lines.take();
    }
    if opening.is_none() && rows.is_empty() {
        return Ok(None);
    }
    rows.into_chunk(opening.unwrap_or_else(|| ChunkOpening::at(first)), ends).map(Some)
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use crate::edit::patch::tests::{check_patch, fault, said};

    #[test]
    fn every_kind_of_file() {
        check_patch(
            "*** Begin Patch\n*** Add File: a.txt\n+one\n+\n+two\n*** Delete File: dir/b.txt\n*** Update File: c d.txt\n@@\n-x\n+y\n*** End Patch",
            "add a.txt \"one\\n\\ntwo\\n\"\ndelete dir/b.txt\nupdate c d.txt\n  chunk\n    -x\n    +y\n",
        );
        check_patch("*** Begin Patch\n*** Add File: a\n*** End Patch", "add a \"\"\n");
    }

    #[test]
    fn chunks_with_and_without_headers() {
        assert_snapshot!(said(
            "*** Begin Patch\n*** Update File: a.py\n first\n-x\n@@ class A:\n@@     def f(self):\n-y\n+z\n*** End of File\n@@\n+w\n*** End Patch\n"
        ), @r"
        update a.py
          chunk
             first
            -x
          chunk EndOfFile
            @ class A:
            @ def f(self):
            -y
            +z
          chunk
            +w
        ");
    }

    #[test]
    fn a_move_with_and_without_chunks() {
        check_patch("*** Begin Patch\n*** Update File: a\n*** Move to: b\n*** End Patch", "update a -> b\n");
        check_patch(
            "*** Begin Patch\n*** Update File: a\n*** Move to: b\n@@\n-x\n*** End Patch",
            "update a -> b\n  chunk\n    -x\n",
        );
        check_patch(
            "*** Begin Patch\n*** Update File: a\n-x\n*** Update File: a\n-y\n*** End Patch",
            "update a\n  chunk\n    -x\nupdate a\n  chunk\n    -y\n",
        );
    }

    #[test]
    fn rows_may_look_like_headers() {
        check_patch(
            "*** Begin Patch\n*** Update File: a\n *** End Patch\n--- a\n+++ b\n+@@ c\n-\n+ \n*** End Patch",
            "update a\n  chunk\n     *** End Patch\n    --- a\n    +++ b\n    +@@ c\n    -\n    + \n",
        );
        check_patch("*** Begin Patch\n*** Add File: a\n+*** End Patch\n*** End Patch", "add a \"*** End Patch\\n\"\n");
    }

    #[test]
    fn slips_without_a_doubt_are_forgiven() {
        let update = "update a\n  chunk\n    -x\n    +y\n";
        check_patch("\n\n  *** Begin Patch  \n\n*** Update File:a \n\n@@\n-x\n+y\n\n\n*** End Patch \n\n", update);
        check_patch("```diff\n*** Begin Patch\n*** Update File: a\n-x\n+y\n*** End Patch\n```\n", update);
        check_patch("*** Begin Patch\n*** Update File: a\n-x\n+y\n*** End Patch\n```\n", update);
        check_patch("apply_patch <<'EOF'\n*** Begin Patch\n*** Update File: a\n-x\n+y\n*** End Patch\nEOF\n", update);
        check_patch("<<EOF\n*** Begin Patch\n*** Update File: a\n-x\n+y\n*** End Patch\nEOF", update);
        check_patch("```sh\napply_patch << \"P\"\n*** Begin Patch\n*** Update File: a\n-x\n+y\n*** End Patch\nP\n```", update);
        check_patch("*** Begin Patch\r\n*** Update File: a\r\n@@\r\n-x\r\n+y\r\n*** End Patch\r\n", update);
        check_patch("*** Begin Patch\n*** Update File: a\n@@ ... @@\n-x\r\n+y\r\n*** End Patch\n", update);
        // Line numbers belong to the other format.
        check_patch(
            "*** Begin Patch\n*** Update File: a\n@@ -3,1 +3,1 @@ fn f()\n-x\n+y\n*** End Patch",
            "update a\n  chunk At(LineNo(3))\n    -x\n    +y\n",
        );
    }

    #[test]
    fn an_empty_line_is_a_context_line_inside_a_chunk_only() {
        check_patch(
            "*** Begin Patch\n*** Update File: a\n\n@@ f\n\n@@ g\n\n-x\n\n y\n\n\n@@\n-z\n\n*** End Patch",
            "update a\n  chunk\n    @ f\n    @ g\n     \n    -x\n     \n     y\n  chunk\n    -z\n",
        );
        check_patch("*** Begin Patch\n*** Add File: a\n+x\n\n+y\n\n*** End Patch", "add a \"x\\n\\ny\\n\"\n");
    }

    #[test]
    fn carriage_returns_of_a_new_file_are_meant_unless_all_lines_have_them() {
        check_patch("*** Begin Patch\n*** Add File: a\n+x\r\n+y\r\n*** End Patch", "add a \"x\\r\\ny\\r\\n\"\n");
        check_patch("*** Begin Patch\r\n*** Add File: a\r\n+x\r\n*** End Patch", "add a \"x\\n\"\n");
    }

    #[test]
    fn an_error_has_its_line() {
        let begin = "*** Begin Patch\n";
        assert_snapshot!(fault(&format!("{begin}*** Update File: a\n-x\n")), @"3: expected `*** End Patch` at the end of the patch");
        assert_snapshot!(fault(&format!("{begin}*** End Patch\n")), @"2: the patch changes no file");
        assert_snapshot!(
            fault(&format!("{begin}*** Delete File: a\n*** End Patch\nDone!\n")),
            @"4: expected nothing after `*** End Patch`"
        );
        assert_snapshot!(
            fault(&format!("{begin}*** Delete File: a\n-x\n*** End Patch\n")),
            @"3: expected `*** Add File: path`, `*** Update File: path`, `*** Delete File: path` or `*** End Patch`"
        );
        assert_snapshot!(
            fault(&format!("{begin}*** Update File: a\n*** End Patch\n")),
            @"2: nothing follows `*** Update File:`: expected lines that begin with ' ', '+' or '-', or `*** Move to: path`"
        );
        assert_snapshot!(
            fault(&format!("{begin}*** Update File: a\n-x\nfoo\n*** End Patch\n")),
            @"4: expected a line that begins with ' ', '+' or '-', or a *** header"
        );
        assert_snapshot!(
            fault(&format!("{begin}*** Add File: a\nx\n*** End Patch\n")),
            @"3: expected a line of the new file, which begins with '+', or a *** header"
        );
        assert_snapshot!(
            fault(&format!("{begin}*** Add File:\n+x\n*** End Patch\n")),
            @"2: the header names no file: expected a path after the colon"
        );
        assert_snapshot!(
            fault(&format!("{begin}*** Update File: a\n-x\n@@ f\n*** End Patch\n")),
            @"4: the chunk is empty: expected lines that begin with ' ', '+' or '-' below it"
        );
        assert_snapshot!(
            fault(&format!("{begin}*** Update File: a\n*** End of File\n*** End Patch\n")),
            @"2: nothing follows `*** Update File:`: expected lines that begin with ' ', '+' or '-', or `*** Move to: path`"
        );
        assert_snapshot!(
            fault(&format!("{begin}*** Rename File: a\n*** End Patch\n")),
            @"2: expected `*** Add File: path`, `*** Update File: path`, `*** Delete File: path` or `*** End Patch`"
        );
    }
}
