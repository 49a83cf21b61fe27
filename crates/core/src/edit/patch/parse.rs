//! What both formats of patches have in common: lines, what may be wrapped around them, `@@` headers and rows. Slips that leave
//! no doubt are forgiven here; whatever could mean two things is not.

use super::{BadPatch, Chunk, LastNewline, Patch, Row, Stated, envelope, unified};
use crate::lines::LineNo;

/// Reads a patch in either format: `*** Begin Patch` … `*** End Patch`, or a unified diff.
///
/// A Markdown fence, a here-document or blank lines around it are left out.
pub fn parse(patch: &str) -> Result<Patch<'_>, BadPatch> {
    let mut lines = Lines::of(patch);
    lines.skip_blank();
    let files = match lines.peek() {
        Some(line) if line.text.trim() == envelope::BEGIN => envelope::files(&mut lines)?,
        Some(line) if unified::opens(line) => unified::files(&mut lines)?,
        _ => {
            let formats = "a patch is either `*** Begin Patch` … `*** End Patch`, or a unified diff with `--- ` and `+++ ` lines";
            return Err(lines.bad(format!("{formats}; this begins like neither")));
        }
    };
    Ok(Patch { files })
}

/// A line of the patch, without its newline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Line<'a> {
    /// From 1.
    pub(super) number: usize,
    /// In a patch whose lines end with `\n`, a carriage return is text, and here.
    pub(super) text: &'a str,
}

impl<'a> Line<'a> {
    /// Whether there is nothing in it at all, as in an empty context line whose blank somebody trimmed.
    pub(super) fn is_empty(self) -> bool {
        self.text.is_empty() || self.text == "\r"
    }

    fn is_blank(self) -> bool {
        self.text.trim().is_empty()
    }

    /// The row that it is, if it begins like one.
    pub(super) fn row(self) -> Option<Row<'a>> {
        let (kind, text) = self.text.split_at_checked(1)?;
        match kind {
            " " => Some(Row::Keep(text)),
            "-" => Some(Row::Remove(text)),
            "+" => Some(Row::Add(text)),
            _ => None,
        }
    }

    /// What follows `key`, without white space around it.
    pub(super) fn after(self, key: &str) -> Option<&'a str> {
        self.text.strip_prefix(key).map(str::trim)
    }

    /// Whether it is `\ No newline at end of file`, in whatever language.
    pub(super) fn is_newline_mark(self) -> bool {
        self.text.starts_with("\\ ")
    }

    /// An error about this line.
    pub(super) fn bad(self, why: impl Into<String>) -> BadPatch {
        BadPatch { line: self.number, why: why.into() }
    }
}

/// The lines of a patch, and how far they have been read.
#[derive(Debug)]
pub(super) struct Lines<'a> {
    lines: Vec<Line<'a>>,
    next: usize,
}

impl<'a> Lines<'a> {
    fn of(patch: &'a str) -> Self {
        // Where the first line has a carriage return, the patch as a whole was written so, and it says nothing about the files.
        let with_returns = patch.split('\n').next().is_some_and(|first| first.ends_with('\r'));
        let text = |line: &'a str| {
            let line = line.strip_suffix('\n').unwrap_or(line);
            if with_returns { line.strip_suffix('\r').unwrap_or(line) } else { line }
        };
        let all = patch.split_inclusive('\n').enumerate();
        let lines: Vec<Line<'a>> = all.map(|(index, line)| Line { number: index + 1, text: text(line) }).collect();
        // A here-document may be inside a fence.
        let lines = unwrapped(unwrapped(&lines)).to_vec();
        Self { lines, next: 0 }
    }

    /// The next line, which stays.
    pub(super) fn peek(&self) -> Option<Line<'a>> {
        self.lines.get(self.next).copied()
    }

    /// The line after the next.
    pub(super) fn peek_second(&self) -> Option<Line<'a>> {
        self.lines.get(self.next + 1).copied()
    }

    /// The next line.
    pub(super) fn take(&mut self) -> Option<Line<'a>> {
        let line = self.peek()?;
        self.next += 1;
        Some(line)
    }

    /// The next line, if it begins with `key`.
    pub(super) fn take_after(&mut self, key: &str) -> Option<(Line<'a>, &'a str)> {
        let line = self.peek()?;
        let value = line.after(key)?;
        self.next += 1;
        Some((line, value))
    }

    /// Goes on to the next line with something in it.
    pub(super) fn skip_blank(&mut self) {
        while self.peek().is_some_and(Line::is_blank) {
            self.next += 1;
        }
    }

    /// Where the reading is.
    pub(super) fn place(&self) -> usize {
        self.next
    }

    /// Reads again from an earlier place.
    pub(super) fn go_back(&mut self, place: usize) {
        self.next = place;
    }

    /// An error about the next line, or about the last one where there is none.
    pub(super) fn bad(&self, why: impl Into<String>) -> BadPatch {
        let line = self.peek().or(self.lines.last().copied()).map_or(1, |line| line.number);
        BadPatch { line, why: why.into() }
    }
}

/// The lines without a fence or a here-document around them.
fn unwrapped<'p, 'a>(lines: &'p [Line<'a>]) -> &'p [Line<'a>] {
    let Some(first) = lines.iter().position(|line| !line.is_blank()) else { return lines };
    let Some(close) = closing_line(lines[first].text.trim()) else { return lines };
    let inner = &lines[first + 1..];
    match inner.iter().rposition(|line| !line.is_blank()) {
        Some(last) if inner[last].text.trim_end() == close => &inner[..last],
        _ => inner,
    }
}

/// The line that closes what this line opens.
fn closing_line(open: &str) -> Option<&str> {
    let begins_patch = ["*** ", "--- ", "diff "].iter().any(|begin| open.starts_with(begin));
    if begins_patch {
        return None;
    }
    for mark in ['`', '~'] {
        let (fence, language) = open.split_at(open.len() - open.trim_start_matches(mark).len());
        if fence.len() >= 3 {
            return (!language.contains(mark)).then_some(fence);
        }
    }
    let (_, word) = open.rsplit_once("<<")?;
    let word = word.strip_prefix('-').unwrap_or(word).trim();
    let word = word.trim_matches(['\'', '"']);
    let is_word = !word.is_empty() && word.chars().all(|char| char.is_alphanumeric() || char == '_');
    is_word.then_some(word)
}

/// What a line with `@@` says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Header<'a> {
    /// That another chunk begins.
    Bare,
    /// A line above the chunk.
    Names(&'a str),
    /// Line numbers, as in a unified diff.
    Counts(Counts),
}

/// The numbers of `@@ -start,old +start,new @@`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) start: u32,
    pub(super) old: u32,
    pub(super) new: u32,
}

impl<'a> Header<'a> {
    /// What this line says, if it has `@@`.
    pub(super) fn of(line: Line<'a>) -> Option<Self> {
        let text = line.after("@@")?;
        if let Some(counts) = Counts::of(text) {
            return Some(Header::Counts(counts));
        }
        let name = text.strip_suffix("@@").unwrap_or(text).trim();
        Some(if ["", "...", "…"].contains(&name) { Header::Bare } else { Header::Names(name) })
    }
}

impl Counts {
    fn of(text: &str) -> Option<Self> {
        let ranges = text.split_once("@@").map_or(text, |(ranges, _)| ranges);
        let (old, new) = ranges.trim().split_once(' ')?;
        let range = |range: &str| match range.split_once(',') {
            Some((start, count)) => Some((start.parse().ok()?, count.parse().ok()?)),
            None => Some((range.parse().ok()?, 1)),
        };
        let (start, old) = range(old.strip_prefix('-')?)?;
        let (_, new): (u32, u32) = range(new.trim_start().strip_prefix('+')?)?;
        Some(Self { start, old, new })
    }
}

/// How a chunk begins.
#[derive(Debug, Clone)]
pub(super) struct Opening<'a> {
    /// The first line that is about it.
    pub(super) line: Line<'a>,
    pub(super) headers: Vec<&'a str>,
    pub(super) counts: Option<Counts>,
}

impl<'a> Opening<'a> {
    /// A chunk that begins at this line without any header.
    pub(super) fn at(line: Line<'a>) -> Self {
        Self { line, headers: Vec::new(), counts: None }
    }

    /// One more header of the same chunk.
    pub(super) fn add(&mut self, header: Header<'a>) {
        match header {
            Header::Bare => {}
            Header::Names(name) => self.headers.push(name),
            Header::Counts(counts) => self.counts = Some(counts),
        }
    }
}

/// Whether `*** End of File` followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ends {
    Anywhere,
    AtEndOfFile,
}

/// The rows of a chunk as they are read.
#[derive(Debug, Default)]
pub(super) struct Rows<'a> {
    rows: Vec<Row<'a>>,
    /// Empty lines that are rows only if another row follows.
    empty_lines: usize,
    /// `\ No newline at end of file` after this many rows, for the old and for the new text.
    old_mark: Option<(usize, Line<'a>)>,
    new_mark: Option<(usize, Line<'a>)>,
}

impl<'a> Rows<'a> {
    pub(super) fn push(&mut self, row: Row<'a>) {
        let before = std::mem::take(&mut self.empty_lines);
        self.rows.extend(std::iter::repeat_n(Row::Keep(""), before));
        self.rows.push(row);
    }

    pub(super) fn push_empty_line(&mut self) {
        self.empty_lines += 1;
    }

    /// The mark speaks of the row above it.
    pub(super) fn push_newline_mark(&mut self, line: Line<'a>) -> Result<(), BadPatch> {
        let Some(last) = self.rows.last() else {
            return Err(line.bad("`\\ No newline at end of file` belongs below the line that it speaks of"));
        };
        let mark = Some((self.rows.len(), line));
        if last.before().is_some() {
            self.old_mark = mark;
        }
        if last.after().is_some() {
            self.new_mark = mark;
        }
        Ok(())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    pub(super) fn rows(&self) -> &[Row<'a>] {
        &self.rows
    }

    /// What the marks say; they must stand below the last line of their side.
    pub(super) fn last_newline(&self) -> Result<LastNewline, BadPatch> {
        let misplaced = |line: Line<'a>| line.bad("`\\ No newline at end of file` belongs below the last line of the file");
        if let Some((_, line)) = self.old_mark.filter(|(after, _)| self.rows[*after..].iter().any(|row| row.before().is_some())) {
            return Err(misplaced(line));
        }
        if let Some((_, line)) = self.new_mark.filter(|(after, _)| self.rows[*after..].iter().any(|row| row.after().is_some())) {
            return Err(misplaced(line));
        }
        Ok(match (self.old_mark, self.new_mark) {
            (None, None) => LastNewline::Unsaid,
            (Some(_), Some(_)) => LastNewline::Absent,
            (Some(_), None) => LastNewline::Added,
            (None, Some(_)) => LastNewline::Removed,
        })
    }

    /// The chunk of these rows. What ends their lines is a matter of the file, so carriage returns are left out.
    pub(super) fn into_chunk(self, opening: Opening<'a>, ends: Ends) -> Result<Chunk<'a>, BadPatch> {
        if self.rows.is_empty() {
            return Err(opening.line.bad("the chunk is empty: expected lines that begin with ' ', '+' or '-' below it"));
        }
        let last_newline = self.last_newline()?;
        let has_old = self.rows.iter().any(|row| row.before().is_some());
        let stated = match (ends, opening.counts) {
            (Ends::AtEndOfFile, _) => Stated::EndOfFile,
            (Ends::Anywhere, None) => Stated::Nowhere,
            (Ends::Anywhere, Some(counts)) if has_old => stated_line(counts),
            (Ends::Anywhere, Some(Counts { start, old: 0, .. })) => Stated::After(start as usize),
            (Ends::Anywhere, Some(Counts { old, .. })) => {
                let why =
                    format!("the header counts {old} old lines, but there are none: give the lines above and below with ' '");
                return Err(opening.line.bad(why));
            }
        };
        let rows = self.rows.into_iter().map(without_return).collect();
        Ok(Chunk { headers: opening.headers, rows, stated, last_newline })
    }
}

/// The first old line. A header that counts no old lines means the line above them, so its number cannot be used for any.
fn stated_line(counts: Counts) -> Stated {
    LineNo::new(counts.start).filter(|_| counts.old > 0).map_or(Stated::Nowhere, Stated::At)
}

fn without_return(row: Row<'_>) -> Row<'_> {
    fn cut(line: &str) -> &str {
        line.strip_suffix('\r').unwrap_or(line)
    }
    match row {
        Row::Keep(line) => Row::Keep(cut(line)),
        Row::Remove(line) => Row::Remove(cut(line)),
        Row::Add(line) => Row::Add(cut(line)),
    }
}
