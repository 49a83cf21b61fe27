//! What both patch formats have in common: lines, wrapping, `@@` headers and rows. Slips that leave no doubt are
//! accepted; ambiguous input is not.

use super::{BadPatch, LastNewline, Patch, PatchChunk, PatchRow, StatedPlace, envelope, unified};
use crate::lines::LineNo;

/// Parses a patch in either format: `*** Begin Patch` … `*** End Patch`, or a unified diff.
///
/// A Markdown fence, a here-document or blank lines around it are ignored.
pub fn parse(patch: &str) -> Result<Patch<'_>, BadPatch> {
    let mut lines = PatchLines::of(patch);
    lines.skip_blank();
    let files = match lines.peek() {
        Some(line) if line.text.trim() == envelope::BEGIN => envelope::files(&mut lines)?,
        Some(line) if unified::begins_diff(line) => unified::files(&mut lines)?,
        _ => {
            let formats = "a patch is either `*** Begin Patch` … `*** End Patch`, or a unified diff with `--- ` and `+++ ` lines";
            return Err(lines.bad(format!("{formats}; this begins like neither")));
        }
    };
    Ok(Patch { files })
}

/// A line of the patch, without its newline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PatchLine<'a> {
    pub(super) number: usize,
    /// The text as written. In a patch whose lines end with `\n`, a carriage return is part of it.
    pub(super) text: &'a str,
}

impl<'a> PatchLine<'a> {
    /// Whether the line is empty, as a context line whose blank was trimmed.
    pub(super) fn is_empty(self) -> bool {
        self.text.is_empty() || self.text == "\r"
    }

    fn is_blank(self) -> bool {
        self.text.trim().is_empty()
    }

    /// The row, if the line begins like one.
    pub(super) fn row(self) -> Option<PatchRow<'a>> {
        let (kind, text) = self.text.split_at_checked(1)?;
        match kind {
            " " => Some(PatchRow::Keep(text)),
            "-" => Some(PatchRow::Remove(text)),
            "+" => Some(PatchRow::Add(text)),
            _ => None,
        }
    }

    /// The text after `key`, trimmed; `None` if the line does not begin with `key`.
    pub(super) fn after(self, key: &str) -> Option<&'a str> {
        self.text.strip_prefix(key).map(str::trim)
    }

    /// Whether the line is `\ No newline at end of file`, in any language.
    pub(super) fn is_newline_mark(self) -> bool {
        self.text.starts_with("\\ ")
    }

    pub(super) fn bad(self, why: impl Into<String>) -> BadPatch {
        BadPatch { line: self.number, why: why.into() }
    }
}

/// The lines of a patch with a reading position.
#[derive(Debug)]
pub(super) struct PatchLines<'a> {
    lines: Vec<PatchLine<'a>>,
    next: usize,
}

impl<'a> PatchLines<'a> {
    fn of(patch: &'a str) -> Self {
        // If the first line has a carriage return, the whole patch was written that way, so its returns say nothing
        // about the files.
        let with_returns = patch.split('\n').next().is_some_and(|first| first.ends_with('\r'));
        let text = |line: &'a str| {
            let line = line.strip_suffix('\n').unwrap_or(line);
            if with_returns { line.strip_suffix('\r').unwrap_or(line) } else { line }
        };
        let all = patch.split_inclusive('\n').enumerate();
        let lines: Vec<PatchLine<'a>> = all.map(|(index, line)| PatchLine { number: index + 1, text: text(line) }).collect();
        // A here-document may be inside a fence.
        let lines = unwrapped(unwrapped(&lines)).to_vec();
        Self { lines, next: 0 }
    }

    pub(super) fn peek(&self) -> Option<PatchLine<'a>> {
        self.lines.get(self.next).copied()
    }

    /// The line after the next.
    pub(super) fn peek_second(&self) -> Option<PatchLine<'a>> {
        self.lines.get(self.next + 1).copied()
    }

    pub(super) fn take(&mut self) -> Option<PatchLine<'a>> {
        let line = self.peek()?;
        self.next += 1;
        Some(line)
    }

    /// The next line, if it begins with `key`.
    pub(super) fn take_after(&mut self, key: &str) -> Option<(PatchLine<'a>, &'a str)> {
        let line = self.peek()?;
        let value = line.after(key)?;
        self.next += 1;
        Some((line, value))
    }

    pub(super) fn skip_blank(&mut self) {
        while self.peek().is_some_and(PatchLine::is_blank) {
            self.next += 1;
        }
    }

    pub(super) fn place(&self) -> usize {
        self.next
    }

    /// Goes back to an earlier position.
    pub(super) fn go_back(&mut self, place: usize) {
        self.next = place;
    }

    /// An error about the next line, or about the last one if no line is left.
    pub(super) fn bad(&self, why: impl Into<String>) -> BadPatch {
        let line = self.peek().or(self.lines.last().copied()).map_or(1, |line| line.number);
        BadPatch { line, why: why.into() }
    }
}

/// The lines without a fence or a here-document around them.
fn unwrapped<'p, 'a>(lines: &'p [PatchLine<'a>]) -> &'p [PatchLine<'a>] {
    let Some(first) = lines.iter().position(|line| !line.is_blank()) else { return lines };
    let Some(close) = closing_line(lines[first].text.trim()) else { return lines };
    let inner = &lines[first + 1..];
    match inner.iter().rposition(|line| !line.is_blank()) {
        Some(last) if inner[last].text.trim_end() == close => &inner[..last],
        _ => inner,
    }
}

/// The closing line for a fence or a here-document that this line opens.
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

/// The content of a line that begins with `@@`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ChunkHeader<'a> {
    /// The start of another chunk.
    Bare,
    /// A line above the chunk, such as the head of its function.
    Names(&'a str),
    /// Line numbers, as in a unified diff.
    Counts(HunkCounts),
}

/// The numbers of `@@ -start,old +start,new @@`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct HunkCounts {
    pub(super) start: u32,
    pub(super) old: u32,
    pub(super) new: u32,
}

impl<'a> ChunkHeader<'a> {
    /// Parses the line, if it has `@@`.
    pub(super) fn of(line: PatchLine<'a>) -> Option<Self> {
        let text = line.after("@@")?;
        if let Some(counts) = HunkCounts::of(text) {
            return Some(ChunkHeader::Counts(counts));
        }
        let name = text.strip_suffix("@@").unwrap_or(text).trim();
        Some(if ["", "...", "…"].contains(&name) { ChunkHeader::Bare } else { ChunkHeader::Names(name) })
    }
}

impl HunkCounts {
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

/// The header of a chunk, which may have several lines.
#[derive(Debug, Clone)]
pub(super) struct ChunkOpening<'a> {
    /// The first line of the header.
    pub(super) line: PatchLine<'a>,
    pub(super) headers: Vec<&'a str>,
    pub(super) counts: Option<HunkCounts>,
}

impl<'a> ChunkOpening<'a> {
    /// A chunk that begins at this line without a header.
    pub(super) fn at(line: PatchLine<'a>) -> Self {
        Self { line, headers: Vec::new(), counts: None }
    }

    /// Adds a header of the same chunk.
    pub(super) fn add(&mut self, header: ChunkHeader<'a>) {
        match header {
            ChunkHeader::Bare => {}
            ChunkHeader::Names(name) => self.headers.push(name),
            ChunkHeader::Counts(counts) => self.counts = Some(counts),
        }
    }
}

/// Whether `*** End of File` follows the chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ChunkEnd {
    Anywhere,
    AtEndOfFile,
}

/// The rows of a chunk as they are read.
#[derive(Debug, Default)]
pub(super) struct ChunkRows<'a> {
    rows: Vec<PatchRow<'a>>,
    /// Empty lines that count as rows only if another row follows.
    empty_lines: usize,
    /// The last row above a `\ No newline at end of file`, as a count of rows, for the old and for the new text.
    old_mark: Option<(usize, PatchLine<'a>)>,
    new_mark: Option<(usize, PatchLine<'a>)>,
}

impl<'a> ChunkRows<'a> {
    pub(super) fn push(&mut self, row: PatchRow<'a>) {
        let before = std::mem::take(&mut self.empty_lines);
        self.rows.extend(std::iter::repeat_n(PatchRow::Keep(""), before));
        self.rows.push(row);
    }

    pub(super) fn push_empty_line(&mut self) {
        self.empty_lines += 1;
    }

    /// The mark refers to the row above it.
    pub(super) fn push_newline_mark(&mut self, line: PatchLine<'a>) -> Result<(), BadPatch> {
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

    pub(super) fn rows(&self) -> &[PatchRow<'a>] {
        &self.rows
    }

    /// The meaning of the newline marks, which must be below the last line of their side.
    pub(super) fn last_newline(&self) -> Result<LastNewline, BadPatch> {
        let misplaced = |line: PatchLine<'a>| line.bad("`\\ No newline at end of file` belongs below the last line of the file");
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

    /// The chunk with these rows. Line endings are up to the file, so carriage returns are dropped.
    pub(super) fn into_chunk(self, opening: ChunkOpening<'a>, ends: ChunkEnd) -> Result<PatchChunk<'a>, BadPatch> {
        if self.rows.is_empty() {
            return Err(opening.line.bad("the chunk is empty: expected lines that begin with ' ', '+' or '-' below it"));
        }
        let last_newline = self.last_newline()?;
        let has_old = self.rows.iter().any(|row| row.before().is_some());
        let stated = match (ends, opening.counts) {
            (ChunkEnd::AtEndOfFile, _) => StatedPlace::EndOfFile,
            (ChunkEnd::Anywhere, None) => StatedPlace::Nowhere,
            (ChunkEnd::Anywhere, Some(counts)) if has_old => stated_line(counts),
            (ChunkEnd::Anywhere, Some(HunkCounts { start, old: 0, .. })) => StatedPlace::After(start as usize),
            (ChunkEnd::Anywhere, Some(HunkCounts { old, .. })) => {
                let why =
                    format!("the header counts {old} old lines, but there are none: give the lines above and below with ' '");
                return Err(opening.line.bad(why));
            }
        };
        let rows = self.rows.into_iter().map(without_return).collect();
        Ok(PatchChunk { headers: opening.headers, rows, stated, last_newline })
    }
}

/// The first old line. A header that counts no old lines gives the line above them, so its number cannot be used for
/// the old lines.
fn stated_line(counts: HunkCounts) -> StatedPlace {
    LineNo::new(counts.start).filter(|_| counts.old > 0).map_or(StatedPlace::Nowhere, StatedPlace::At)
}

fn without_return(row: PatchRow<'_>) -> PatchRow<'_> {
    fn cut(line: &str) -> &str {
        line.strip_suffix('\r').unwrap_or(line)
    }
    match row {
        PatchRow::Keep(line) => PatchRow::Keep(cut(line)),
        PatchRow::Remove(line) => PatchRow::Remove(cut(line)),
        PatchRow::Add(line) => PatchRow::Add(cut(line)),
    }
}
