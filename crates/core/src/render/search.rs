//! Renders the reply to `search_files`: the matching lines of each file in the form of a read, and counts for the files
//! that are not shown.

use crate::{
    line_numbers::LineNumbers,
    outcome::{
        SearchArea, SearchResult,
        search::{CutLine, FileMatches},
    },
    path::RelPath,
    render::{
        Quote, ReplyAudience, count,
        cut::{cut, shorten},
        describe_lines, join_first,
        scope::{IGNORED, MOST_NAMED, in_scope, is, left_out, name},
    },
};

/// The result of a search as text.
pub fn search(found: &SearchResult, audience: ReplyAudience<'_>) -> String {
    if found.hits == 0 {
        return no_matches(found);
    }
    let mut text = format!("{} in {}", matches(found.hits), count(found.files_with_hits, "file"));
    if !found.left.is_empty() {
        text.push_str(&format!(", {} shown", found.shown()));
    }
    text.push('\n');
    for file in &found.files {
        write_file(&mut text, found, file, audience);
    }
    text.push_str(&rest(&found.left));
    text.push_str(&left_out(&found.left_out));
    text
}

fn write_file(out: &mut String, found: &SearchResult, file: &FileMatches, audience: ReplyAudience<'_>) {
    out.push_str(&header(found, file));
    if audience.sees_lines() {
        write_rows(out, found, file);
    } else {
        write_pieces(out, file);
    }
    let cut = file.lines.minus(&file.full);
    if !cut.is_empty() {
        out.push_str(&format!("[cut at {} characters, so only partly seen: {}]\n", found.line_chars, describe_lines(&cut)));
    }
}

fn write_rows(out: &mut String, found: &SearchResult, file: &FileMatches) {
    let mut last = None;
    for row in &file.rows {
        let is_gap = last.is_some_and(|last: crate::lines::LineNo| last.moved(1) != Some(row.line));
        if is_gap && found.has_context {
            out.push_str("…\n");
        }
        let content = file.text.line(row.line);
        // A truncated line was not seen, so it gets no anchor.
        let numbers = if row.cut.is_some() { LineNumbers::Plain } else { found.numbers };
        numbers.write(out, row.line, content);
        out.push_str(row.cut.as_ref().map_or(content, |cut| &cut.text));
        out.push('\n');
        last = Some(row.line);
    }
}

/// The matches that a prompt with open files does not show, because it shows only the start of a long line.
fn write_pieces(out: &mut String, file: &FileMatches) {
    const LONGEST: usize = 300;
    for row in &file.rows {
        let Some(CutLine { text, is_inside: true, goes_on }) = &row.cut else { continue };
        let mut line = String::new();
        LineNumbers::Plain.write(&mut line, row.line, text);
        line.push_str(text);
        // The match is near the start, unless the line ends soon after it.
        out.push_str(&if *goes_on { cut(&line, LONGEST) } else { shorten(&line, LONGEST) });
        out.push('\n');
    }
}

/// `src/a.rs (3 matches)`. With context, it also lists the matching line numbers.
fn header(found: &SearchResult, file: &FileMatches) -> String {
    let shown = file.shown_matches.count() as usize;
    let some = if shown < file.matches { format!(", {shown} shown") } else { String::new() };
    let on = if found.has_context { format!(": {}", describe_lines(&file.shown_matches)) } else { String::new() };
    format!("{} ({}{some}{on})\n", name(file.found_at.as_str()), matches(file.matches))
}

fn no_matches(found: &SearchResult) -> String {
    let SearchResult { pattern, scope, searched, binary, left_out: missing, .. } = found;
    let place = in_scope(scope);
    if let SearchArea::File(_) = scope.area {
        return format!("No matches for {} {place}.\n", Quote(pattern));
    }
    let none = if missing.not_shown.is_empty() { "No matches" } else { "No matches that can be shown" };
    let searched = count(*searched, "file");
    let binary = if *binary > 0 { format!(" ({binary} more {} not text)", is(*binary)) } else { String::new() };
    format!("{none} for {} {place}: searched {searched}{binary}. {IGNORED}\n{}", Quote(pattern), left_out(missing))
}

fn rest(left: &[(RelPath, usize)]) -> String {
    if left.is_empty() {
        return String::new();
    }
    let hits = left.iter().map(|(_, hits)| hits).sum();
    let list = join_first(left.iter().map(|(path, hits)| format!("{} ({hits})", name(path.as_str()))), MOST_NAMED, "more files");
    let files = count(left.len(), "file");
    format!("[not shown: {} in {files}: {list}. Narrow pattern, path or glob, or raise limit]\n", matches(hits))
}

/// `1 match`, `2 matches`.
fn matches(number: usize) -> String {
    if number == 1 { "1 match".to_owned() } else { format!("{number} matches") }
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use proptest::prelude::*;

    use super::*;
    use crate::{
        lines::LineNo,
        outcome::{
            SearchScope,
            search::{MatchCollector, SearchDisplay, SearchHit},
        },
        policy::Limits,
        text::Text,
        tool::ToolNames,
    };

    fn text(content: &str) -> Text {
        Text::new(content.as_bytes().to_vec()).unwrap()
    }

    /// The lines that contain a word.
    fn hits(text: &Text, word: &str) -> Vec<SearchHit> {
        let hit = |(line, content): (LineNo, &str)| content.find(word).map(|at| SearchHit { line, at: at..at + word.len() });
        text.lines().filter_map(hit).collect()
    }

    fn path(name: &str) -> RelPath {
        RelPath::new(name).unwrap()
    }

    /// The reply to a search for `x`.
    fn search(show: SearchDisplay<'_>, files: &[(&str, &str)]) -> (String, Vec<FileMatches>) {
        let scope = SearchScope { area: SearchArea::Workspace, glob: None };
        let mut found = MatchCollector::new(show, "x".to_owned(), scope);
        for (name, content) in files {
            let (path, text) = (path(name), text(content));
            let hits = hits(&text, "x");
            if found.is_full() {
                found.leave(&path, hits.len());
            } else {
                found.add(&path, &path, &text, &hits);
            }
        }
        let found = SearchResult { searched: files.len(), binary: 1, ..found.finish() };
        (super::search(&found, ReplyAudience::new(&ToolNames::default())), found.files)
    }

    fn show(limits: &Limits) -> SearchDisplay<'_> {
        SearchDisplay { numbers: LineNumbers::Plain, context: 0, limit: 100, limits }
    }

    #[test]
    fn matching_lines_read_like_a_read() {
        let (text, shown) = search(show(&Limits::default()), &[("a.rs", "x 1\n2\nx 3\n"), ("src/b.rs", "\n  x\n")]);
        assert_snapshot!(text, @"
        3 matches in 2 files
        a.rs (2 matches)
        1|x 1
        3|x 3
        src/b.rs (1 match)
        2|  x
        ");
        assert_eq!(shown[0].full.to_string(), "1, 3");
    }

    #[test]
    fn the_header_distinguishes_matches_from_context() {
        let limits = Limits::default();
        let show = SearchDisplay { context: 1, numbers: LineNumbers::Anchors, ..show(&limits) };
        let (text, shown) = search(show, &[("a.rs", "x\nb\nc\nd\nx\nx\n")]);
        assert_snapshot!(text, @"
        3 matches in 1 file
        a.rs (3 matches: lines 1, 5-6)
        1#nj|x
        2#cf|b
        …
        4#dn|d
        5#nj|x
        6#nj|x
        ");
        assert_eq!(shown[0].full.to_string(), "1-2, 4-6");
    }

    #[test]
    fn matches_over_the_limit_are_counted_by_file() {
        let limits = Limits::default();
        let many: Vec<(String, String)> = (10..40).map(|n| (format!("f{n}"), "x\n".repeat(n))).collect();
        let files: Vec<(&str, &str)> = many.iter().map(|(name, content)| (&**name, &**content)).collect();
        let (text, shown) = search(SearchDisplay { limit: 12, ..show(&limits) }, &files);
        assert_snapshot!(text, @"
        735 matches in 30 files, 12 shown
        f10 (10 matches)
        1|x
        2|x
        3|x
        4|x
        5|x
        6|x
        7|x
        8|x
        9|x
        10|x
        f11 (11 matches, 2 shown)
        1|x
        2|x
        [not shown: 723 matches in 29 files: f11 (9), f12 (12), f13 (13), f14 (14), f15 (15), f16 (16), f17 (17), f18 (18), f19 (19), f20 (20), f21 (21), f22 (22), f23 (23), f24 (24), f25 (25), f26 (26), f27 (27), f28 (28), f29 (29), f30 (30) and 9 more files. Narrow pattern, path or glob, or raise limit]
        ");
        assert_eq!(shown[1].full.to_string(), "1-2");
    }

    #[test]
    fn a_long_line_is_cut_around_the_match_and_is_not_seen() {
        let limits = Limits { line_chars: 8, ..Limits::default() };
        let far = format!("{}x{}\nshort x\nx{}\n", "é".repeat(20), "b".repeat(20), "c".repeat(20));
        let (text, shown) = search(show(&limits), &[("a.rs", &far)]);
        assert_snapshot!(text, @"
        3 matches in 1 file
        a.rs (3 matches)
        1|[+18 chars]…ééxbbbbb…[+15 chars]
        2|short x
        3|xccccccc…[+13 chars]
        [cut at 8 characters, so only partly seen: lines 1, 3]
        ");
        assert_eq!(shown[0].full.to_string(), "2");
    }

    #[test]
    fn bytes_and_rows_are_limited_too() {
        let limits = Limits { read_bytes: 20, ..Limits::default() };
        let files = [("a.rs", "x23456\nx23456\nx23456\nx23456\n"), ("b.rs", "x\n")];
        assert_snapshot!(search(show(&limits), &files).0, @"
        5 matches in 2 files, 2 shown
        a.rs (4 matches, 2 shown)
        1|x23456
        2|x23456
        [not shown: 3 matches in 2 files: a.rs (2), b.rs (1). Narrow pattern, path or glob, or raise limit]
        ");
        let limits = Limits { read_lines: 1, ..Limits::default() };
        assert!(search(show(&limits), &files).0.starts_with("5 matches in 2 files, 1 shown\n"));
    }

    #[test]
    fn nothing_says_what_was_searched() {
        assert_snapshot!(search(show(&Limits::default()), &[("a.rs", "y")]).0, @r#"No matches for "x" in the workspace: searched 1 file (1 more is not text). Files that .gitignore or .ignore names are left out unless path names them; .git and .surehand always."#);
    }

    proptest! {
        #[test]
        fn rows_are_the_lines_that_count_as_seen(
            lines in prop::collection::vec("[xy]{0,12}", 0..30),
            (context, limit) in (0_usize..4, 1_usize..12),
            (line_chars, read_bytes) in (4_usize..12, 10_usize..200),
        ) {
            let limits = Limits { line_chars, read_bytes, ..Limits::default() };
            let content = lines.join("\n");
            let text = text(&content);
            let hits = hits(&text, "x");
            let (reply, shown) = search(SearchDisplay { context, limit, ..show(&limits) }, &[("a", &content)]);
            let (shown, full) = shown.first().map(|file| (file.lines.clone(), file.full.clone())).unwrap_or_default();
            prop_assert_eq!(hits.is_empty(), reply.starts_with("No matches"));
            let row = |line: LineNo| format!("{line}|{}", text.line(line));
            let rows: Vec<&str> = reply.lines().collect();
            for line in full.iter() {
                prop_assert!(rows.contains(&&*row(line)));
            }
            prop_assert!(full.minus(&shown).is_empty());
            let in_rows = rows.iter().filter(|row| row.split_once('|').is_some_and(|(n, _)| n.parse::<u32>().is_ok())).count();
            prop_assert_eq!(in_rows, shown.count() as usize);
            prop_assert!(context > 0 || in_rows <= limit);
        }
    }
}
