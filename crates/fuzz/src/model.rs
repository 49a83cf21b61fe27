//! Texts whose lines have identities, so that a test can check whether an edit changed the intended line or only an
//! equal one.

use std::collections::HashMap;

use surehand_core::{LineNo, Text, text::LineEnding};

use crate::source::Source;

/// Few lines, so that many are equal, and some that are easily confused with others.
const LINES: &[&str] = &[
    "",
    "}",
    "a",
    "b",
    "    x = 1;",
    "fn f() {",
    "\tif a {",
    "é",
    "a b",
    "A",
    "日本",
    " ",
    "x\ry",
    "@@ a",
    "--- a",
    "+++ b",
    "*** End Patch",
    "\\ No newline at end of file",
    "12#ab|x",
    "\u{200b}a",
    "“a”",
    "-",
    "+",
    "class A:",
    "    def f(self):",
    "c",
    "d",
    "e",
];

/// A line with its identity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Line {
    /// Equal for lines with the same identity, even if their text differs.
    pub id: u32,
    /// Without the line ending.
    pub text: String,
    pub ending: LineEnding,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Page {
    /// From top to bottom.
    pub lines: Vec<Line>,
    /// The next unused identity.
    next: u32,
}

/// The line endings of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Endings {
    /// Every line ends with `\n`.
    Lf,
    /// Every line ends with `\r\n`.
    CrLf,
    /// Each line has its own.
    Mixed,
}

impl Endings {
    pub(crate) fn draw(source: &mut Source<'_>) -> Self {
        source.pick(&[Endings::Lf, Endings::Lf, Endings::CrLf, Endings::Mixed])
    }

    fn one(self, source: &mut Source<'_>) -> LineEnding {
        match self {
            Endings::Lf => LineEnding::Lf,
            Endings::CrLf => LineEnding::CrLf,
            Endings::Mixed => source.pick(&[LineEnding::Lf, LineEnding::CrLf]),
        }
    }
}

/// One of the few lines, or a random one.
pub(crate) fn line(source: &mut Source<'_>) -> String {
    let byte = source.byte();
    match LINES.get(usize::from(byte) % 64) {
        Some(line) => (*line).to_owned(),
        None => format!("line {}", byte % 64),
    }
}

/// Lines joined with random endings.
pub(crate) fn written(source: &mut Source<'_>, most: usize) -> String {
    let lines: Vec<String> = (0..source.below(most + 1)).map(|_| line(source)).collect();
    let end = if source.flag() { "\n" } else { "" };
    lines.join("\n") + if lines.is_empty() { "" } else { end }
}

impl Page {
    /// A page of at most this many lines. The last one may have no ending.
    pub(crate) fn draw(source: &mut Source<'_>, most: usize, endings: Endings) -> Self {
        let mut page = Self { lines: Vec::new(), next: 0 };
        for _ in 0..source.below(most + 1) {
            let text = line(source);
            let ending = endings.one(source);
            page.push(text, ending);
        }
        if source.flag() {
            page.open();
        }
        page
    }

    fn push(&mut self, text: String, ending: LineEnding) {
        self.lines.push(Line { id: self.next, text, ending });
        self.next += 1;
    }

    /// Removes the last ending, if the last line is still recognisable.
    fn open(&mut self) {
        if let Some(last) = self.lines.last_mut().filter(|last| !last.text.is_empty()) {
            last.ending = LineEnding::None;
        }
    }

    pub(crate) fn text(&self) -> Text {
        Text::of(self.content()).expect("lines of text are text")
    }

    pub(crate) fn content(&self) -> String {
        self.lines.iter().flat_map(|line| [line.text.as_str(), line.ending.as_str()]).collect()
    }

    /// The lines without endings.
    pub(crate) fn words(&self) -> Vec<&str> {
        self.lines.iter().map(|line| line.text.as_str()).collect()
    }

    /// The index of a line.
    pub(crate) fn place(&self, id: u32) -> Option<usize> {
        self.lines.iter().position(|line| line.id == id)
    }

    /// Replaces lines by new ones. Equal lines at the edges keep their identity.
    pub(crate) fn replace(&mut self, range: std::ops::Range<usize>, with: &[&str]) {
        let old = &self.lines[range.clone()];
        let same = |(line, new): &(&Line, &&str)| line.text == **new;
        // Of several equal lines, the last one is the old one.
        let tail = old.iter().rev().zip(with.iter().rev()).take_while(same).count();
        let most = old.len().min(with.len()) - tail;
        let head = old.iter().zip(with).take(most).take_while(same).count();
        let ending = self.lines.get(range.end.saturating_sub(1)).map_or(LineEnding::Lf, |line| line.ending);
        let new: Vec<Line> = with[head..with.len() - tail]
            .iter()
            .zip(self.next..)
            .map(|(text, id)| Line { id, text: (*text).to_owned(), ending })
            .collect();
        self.next += new.len() as u32;
        self.lines.splice(range.start + head..range.end - tail, new);
    }

    /// The page after another writer's changes: in a few places lines are removed, added or replaced.
    pub(crate) fn changed(&self, source: &mut Source<'_>) -> Self {
        let mut page = self.clone();
        for _ in 0..=source.below(3) {
            let start = source.below(page.lines.len() + 1);
            let end = (start + source.below(4)).min(page.lines.len());
            let new: Vec<String> = (0..source.below(4)).map(|_| line(source)).collect();
            page.replace(start..end, &new.iter().map(String::as_str).collect::<Vec<_>>());
        }
        let usual = self.lines.first().map_or(LineEnding::Lf, |line| line.ending);
        let count = page.lines.len();
        for (index, line) in page.lines.iter_mut().enumerate() {
            if line.ending == LineEnding::None && index + 1 < count {
                line.ending = if usual == LineEnding::None { LineEnding::Lf } else { usual };
            }
        }
        if let Some(last) = page.lines.last_mut().filter(|last| last.text.is_empty() && last.ending == LineEnding::None) {
            // An empty line without an ending is not a line.
            last.ending = LineEnding::Lf;
        }
        page.recognise(self);
        page
    }

    /// Gives lines the identity of lines of an older page if nothing distinguishes them: lines that occur once in both
    /// pages, and equal runs between two such lines (or the edges of the file).
    pub(crate) fn recognise(&mut self, old: &Page) {
        let once = |page: &Page| {
            let mut counts: HashMap<String, (usize, usize)> = HashMap::new();
            for (index, line) in page.lines.iter().enumerate() {
                let entry = counts.entry(line.text.clone()).or_insert((0, index));
                entry.0 += 1;
            }
            counts
        };
        let (before, after) = (once(old), once(self));
        let mut pairs: Vec<(i64, i64)> = vec![(-1, -1)];
        for (index, line) in old.lines.iter().enumerate() {
            if let (Some((1, _)), Some((1, place))) = (before.get(&line.text), after.get(&line.text)) {
                pairs.push((index as i64, *place as i64));
            }
        }
        pairs.push((old.lines.len() as i64, self.lines.len() as i64));
        let mut known: Vec<Option<u32>> = vec![None; self.lines.len()];
        for (from, to) in &pairs {
            if let (Some(line), Some(place)) = (old.lines.get(*from as usize), known.get_mut(*to as usize)) {
                *place = Some(line.id);
            }
        }
        for pair in pairs.windows(2) {
            let ((from, to), (from_end, to_end)) = (pair[0], pair[1]);
            if to_end - to != from_end - from {
                continue;
            }
            let old_run = &old.lines[(from + 1) as usize..from_end as usize];
            let new_run = (to + 1) as usize..to_end as usize;
            if old_run.iter().zip(&self.lines[new_run.clone()]).all(|(a, b)| a.text == b.text) {
                new_run.zip(old_run).for_each(|(place, line)| known[place] = Some(line.id));
            }
        }
        self.take(&known);
    }

    /// Gives recognised lines their old identity, which no other line may have.
    fn take(&mut self, known: &[Option<u32>]) {
        for (line, own) in self.lines.iter_mut().zip(known) {
            match own {
                Some(id) => line.id = *id,
                None if known.contains(&Some(line.id)) => {
                    line.id = self.next;
                    self.next += 1;
                }
                None => {}
            }
        }
    }
}

/// The lines of a text without endings. A lone carriage return at the end of a line may have been part of an ending.
pub(crate) fn words_of(text: &Text) -> Vec<&str> {
    text.lines().map(|(_, line)| line.trim_end_matches('\r')).collect()
}

pub(crate) fn number(index: usize) -> LineNo {
    LineNo::at_index(index)
}
