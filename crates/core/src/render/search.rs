//! The answer to `search_files`: for each file its matching lines in the form of a read, and counts for what is not shown.

use std::ops::Range;

use crate::{
    lines::{LineNo, LineRange, LineSet},
    path::RelPath,
    policy::Limits,
    refusal::clip,
    render::{
        Numbers, Quote, count,
        scope::{Area, IGNORED, LeftOut, Scope, is, name, some},
        which,
    },
    text::Text,
};

/// A line that matches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hit {
    /// The line.
    pub line: LineNo,
    /// The bytes of the line that match first.
    pub at: Range<usize>,
}

/// How hits are shown.
#[derive(Debug, Clone, Copy)]
pub struct Show<'a> {
    /// How lines are numbered.
    pub numbers: Numbers,
    /// How many lines before and after each hit.
    pub context: usize,
    /// How many hits.
    pub limit: usize,
    /// How many rows and bytes, and how much of one line.
    pub limits: &'a Limits,
}

/// The lines of a file that are in the answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shown {
    /// All of them, also those that are cut.
    pub lines: LineSet,
    /// Those that are there in full: these were seen.
    pub full: LineSet,
}

/// What was looked at in vain or otherwise.
#[derive(Debug, Clone, Copy)]
pub struct Looked<'a> {
    /// As it was asked for.
    pub pattern: &'a str,
    /// Where.
    pub scope: Scope<'a>,
    /// How many files were searched.
    pub files: usize,
    /// How many were passed over because they are not text.
    pub binary: usize,
    /// What could not be searched or shown.
    pub left_out: &'a LeftOut,
}

/// An answer in the making: files are added in order until it is full, the others are counted.
#[derive(Debug)]
pub struct Answer<'a> {
    show: Show<'a>,
    text: String,
    rows: usize,
    is_full: bool,
    shown: Count,
    all: Count,
    left: Vec<(RelPath, usize)>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Count {
    hits: usize,
    files: usize,
}

impl<'a> Answer<'a> {
    /// An answer without any file.
    pub fn new(show: Show<'a>) -> Self {
        let (text, left) = (String::new(), Vec::new());
        Self { show, text, rows: 0, is_full: false, shown: Count::default(), all: Count::default(), left }
    }

    /// Whether nothing more will be shown.
    pub fn is_full(&self) -> bool {
        self.is_full || self.shown.hits >= self.show.limit
    }

    /// How many lines match, shown or not.
    pub fn hits(&self) -> usize {
        self.all.hits
    }

    /// In how many files.
    pub fn files(&self) -> usize {
        self.all.files
    }

    /// Whether some of them are not shown.
    pub fn is_cut(&self) -> bool {
        !self.left.is_empty()
    }

    /// Adds the hits of a file, which are in order, as far as there is room for them. Without hits nothing happens.
    pub fn add(&mut self, path: &RelPath, text: &Text, hits: &[Hit]) -> Shown {
        let written = self.rows_of(text, hits);
        let shown = hits.iter().filter(|hit| written.shown.lines.contains(hit.line)).count();
        if shown < hits.len() {
            self.left.push((path.clone(), hits.len() - shown));
        }
        self.all.hits += hits.len();
        self.all.files += usize::from(!hits.is_empty());
        if shown == 0 {
            return Shown { lines: LineSet::new(), full: LineSet::new() };
        }
        self.shown.hits += shown;
        self.shown.files += 1;
        self.text.push_str(&self.header(path, hits, &written.shown.lines, shown));
        self.text.push_str(&written.rows);
        let cut = written.shown.lines.minus(&written.shown.full);
        if !cut.is_empty() {
            let chars = self.show.limits.line_chars;
            self.text.push_str(&format!("[cut at {chars} characters, so only partly seen: {}]\n", which(&cut)));
        }
        written.shown
    }

    /// Counts the hits of a file that is not shown.
    pub fn leave(&mut self, path: &RelPath, hits: usize) {
        self.all.hits += hits;
        self.all.files += 1;
        self.left.push((path.clone(), hits));
    }

    /// The whole answer.
    pub fn finish(self, looked: &Looked<'_>) -> String {
        if self.all.hits == 0 {
            return nothing(looked);
        }
        let Count { hits, files } = self.all;
        let mut text = format!("{} in {}", matches(hits), count(files, "file"));
        if self.is_cut() {
            text.push_str(&format!(", {} shown", self.shown.hits));
        }
        format!("{text}\n{}{}{}", self.text, rest(&self.left), looked.left_out.notes())
    }

    /// `src/a.rs (3 matches)`. With other lines around them, the numbers of those that match.
    fn header(&self, path: &RelPath, hits: &[Hit], lines: &LineSet, shown: usize) -> String {
        let some = if shown < hits.len() { format!(", {shown} shown") } else { String::new() };
        let on = if self.show.context > 0 {
            let matching: LineSet =
                hits.iter().filter(|hit| lines.contains(hit.line)).map(|hit| LineRange::line(hit.line)).collect();
            format!(": {}", which(&matching))
        } else {
            String::new()
        };
        format!("{} ({}{some}{on})\n", name(path.as_str()), matches(hits.len()))
    }

    /// The rows of a file, as far as there is room.
    fn rows_of(&mut self, text: &Text, hits: &[Hit]) -> Rows {
        let limits = self.show.limits;
        let room = self.show.limit.saturating_sub(self.shown.hits);
        let mut written = Rows { rows: String::new(), shown: Shown { lines: LineSet::new(), full: LineSet::new() } };
        let mut last: Option<LineNo> = None;
        for line in self.around(&hits[..hits.len().min(room)], text).iter() {
            let content = text.line(line);
            let hit = hits.binary_search_by_key(&line, |hit| hit.line).ok().map_or(0..0, |index| hits[index].at.clone());
            let cut = cut_around(content, hit, limits.line_chars);
            let row = cut.as_deref().unwrap_or(content);
            let bytes = self.text.len() + written.rows.len() + row.len();
            if self.rows == limits.read_lines || (self.rows > 0 && bytes > limits.read_bytes) {
                self.is_full = true;
                break;
            }
            let is_gap = last.is_some_and(|last| last.moved(1) != Some(line));
            if is_gap && self.show.context > 0 {
                written.rows.push_str("…\n");
            }
            written.push(line, content, cut.as_deref(), self.show.numbers);
            self.rows += 1;
            last = Some(line);
        }
        written
    }

    /// The lines of these hits with those around them.
    fn around(&self, hits: &[Hit], text: &Text) -> LineSet {
        let context = self.show.context;
        let around = |hit: &Hit| {
            let index = hit.line.index();
            LineRange::from_indexes(index.saturating_sub(context)..index.saturating_add(context).saturating_add(1))
        };
        hits.iter().filter_map(around).collect::<LineSet>().clipped(text.line_count())
    }
}

/// What is said when no line matches.
fn nothing(looked: &Looked<'_>) -> String {
    let Looked { pattern, scope, files, binary, left_out } = looked;
    if let Area::File(_) = scope.area {
        return format!("No matches for {} {scope}.\n", Quote(pattern));
    }
    let none = if left_out.not_shown.is_empty() { "No matches" } else { "No matches that can be shown" };
    let searched = count(*files, "file");
    let binary = if *binary > 0 { format!(" ({binary} more {} not text)", is(*binary)) } else { String::new() };
    format!("{none} for {} {scope}: searched {searched}{binary}. {IGNORED}\n{}", Quote(pattern), left_out.notes())
}

/// The rows of one file.
struct Rows {
    rows: String,
    shown: Shown,
}

impl Rows {
    fn push(&mut self, line: LineNo, content: &str, cut: Option<&str>, numbers: Numbers) {
        // A line that is cut was not seen, so it gets no anchor.
        let numbers = if cut.is_some() { Numbers::Plain } else { numbers };
        numbers.write(&mut self.rows, line, content);
        self.rows.push_str(cut.unwrap_or(content));
        self.rows.push('\n');
        self.shown.lines.insert(LineRange::line(line));
        if cut.is_none() {
            self.shown.full.insert(LineRange::line(line));
        }
    }
}

/// A line that is too long, cut so that what matches can be seen; `None` for one that is not.
fn cut_around(line: &str, hit: Range<usize>, chars: usize) -> Option<String> {
    if line.len() <= chars || line.chars().nth(chars).is_none() {
        return None;
    }
    let (from, to) = (line.floor_char_boundary(hit.start), line.floor_char_boundary(hit.end));
    let before = line[..from].chars().count();
    if before + line[from..to.max(from)].chars().count() <= chars {
        return Some(clip(line, chars));
    }
    let skipped = before.saturating_sub(chars / 4).min(line.chars().count() - chars);
    let start = line.char_indices().nth(skipped).map_or(0, |(at, _)| at);
    Some(format!("[+{skipped} chars]…{}", clip(&line[start..], chars)))
}

fn rest(left: &[(RelPath, usize)]) -> String {
    if left.is_empty() {
        return String::new();
    }
    let hits = left.iter().map(|(_, hits)| hits).sum();
    let list = some(left.iter().map(|(path, hits)| format!("{} ({hits})", name(path.as_str()))), "more files");
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

    fn text(content: &str) -> Text {
        Text::new(content.as_bytes().to_vec()).unwrap()
    }

    /// The lines in which a word is.
    fn hits(text: &Text, word: &str) -> Vec<Hit> {
        let hit = |(line, content): (LineNo, &str)| content.find(word).map(|at| Hit { line, at: at..at + word.len() });
        text.lines().filter_map(hit).collect()
    }

    fn path(name: &str) -> RelPath {
        RelPath::new(name).unwrap()
    }

    /// The answer to a search for `x`.
    fn search(show: Show<'_>, files: &[(&str, &str)]) -> (String, Vec<Shown>) {
        let mut answer = Answer::new(show);
        let mut shown = Vec::new();
        for (name, content) in files {
            let text = text(content);
            let hits = hits(&text, "x");
            if answer.is_full() {
                answer.leave(&path(name), hits.len());
            } else {
                shown.push(answer.add(&path(name), &text, &hits));
            }
        }
        let scope = Scope { area: Area::Workspace, glob: None };
        let left_out = LeftOut::default();
        let looked = Looked { pattern: "x", scope, files: files.len(), binary: 1, left_out: &left_out };
        (answer.finish(&looked), shown)
    }

    fn show(limits: &Limits) -> Show<'_> {
        Show { numbers: Numbers::Plain, context: 0, limit: 100, limits }
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
    fn context_is_told_from_matches_by_the_header() {
        let limits = Limits::default();
        let show = Show { context: 1, numbers: Numbers::Anchors, ..show(&limits) };
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
    fn what_is_over_the_limit_is_counted_by_file() {
        let limits = Limits::default();
        let many: Vec<(String, String)> = (10..40).map(|n| (format!("f{n}"), "x\n".repeat(n))).collect();
        let files: Vec<(&str, &str)> = many.iter().map(|(name, content)| (&**name, &**content)).collect();
        let (text, shown) = search(Show { limit: 12, ..show(&limits) }, &files);
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
    fn a_long_line_is_cut_around_what_matches_and_is_not_seen() {
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
            let mut answer = Answer::new(Show { context, limit, ..show(&limits) });
            let shown = answer.add(&path("a"), &text, &hits);
            let row = |line: LineNo| format!("{line}|{}", text.line(line));
            let rows: Vec<&str> = answer.text.lines().collect();
            for line in shown.full.iter() {
                prop_assert!(rows.contains(&&*row(line)));
            }
            prop_assert!(shown.full.minus(&shown.lines).is_empty());
            let in_rows = rows.iter().filter(|row| row.split_once('|').is_some_and(|(n, _)| n.parse::<u32>().is_ok())).count();
            prop_assert_eq!(in_rows, shown.lines.count() as usize);
            prop_assert!(context > 0 || in_rows <= limit);
        }
    }
}
