//! The working set: the lines that a model has open. A prompt shows their current text, and the model knows them only
//! as long as they are shown. If space runs out, the least recently used lines are dropped.

use std::collections::HashMap;

use crate::{
    excerpt::KnownLines,
    hash::ContentHash,
    line_map::LineMap,
    line_numbers::LineNumbers,
    lines::{LineNo, LineRange, LineSet},
    outcome::ReadResult,
    path::RelPath,
    policy::Limits,
    render::{self, ReplyAudience},
    text::Text,
    tokens::estimate,
    tool::ToolNames,
};

/// The files that a model has open. The file that has not changed for the longest time comes first, so that the
/// beginning of the prompt stays the same for as long as possible.
#[derive(Debug, Clone, Default)]
pub struct WorkingSet {
    files: Vec<OpenFile>,
    clock: u64,
}

#[derive(Debug, Clone)]
struct OpenFile {
    path: RelPath,
    text: Text,
    /// The open lines, sorted and not adjacent.
    uses: Vec<LineUse>,
    /// The time of the last use of the file itself, because an empty file has no lines.
    at: u64,
}

/// Lines that were used together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct LineUse {
    lines: LineRange,
    at: u64,
}

/// The part of the working set that fits into a prompt.
#[derive(Debug, Clone, Default)]
pub struct FittedFiles {
    /// The text for the model.
    pub text: String,
    /// The lines that are shown in full, which the model knows.
    pub shown: Vec<KnownLines>,
    /// The lines that were open and did not fit; empty for an empty file.
    pub left: Vec<KnownLines>,
}

/// The open lines without their text, enough to open them again.
pub type OpenLines = Vec<(RelPath, LineSet)>;

impl WorkingSet {
    /// Records that the model was shown these lines of a file, or wrote them. If all of them were open already, the
    /// file keeps its position.
    pub fn record_shown(&mut self, path: &RelPath, text: &Text, lines: &LineSet) {
        self.clock += 1;
        let at = self.clock;
        let place = self.files.iter().position(|open| open.path == *path);
        let before = place.map(|place| self.files.remove(place));
        let is_as_before =
            before.as_ref().is_some_and(|open| open.text.version() == text.version() && lines.minus(&open.lines()).is_empty());
        let mut open = before.map_or_else(|| OpenFile::new(path, text), |open| open.carried(text));
        open.put(lines, at);
        open.at = at;
        match place {
            Some(place) if is_as_before => self.files.insert(place, open),
            _ => self.files.extend(open.if_any()),
        }
    }

    /// Updates a file to its current text. Open lines move with it, together with lines inserted among them. Removed
    /// lines are closed, and the file is closed with its last line.
    pub fn refresh(&mut self, path: &RelPath, now: Option<&Text>) {
        let Some(place) = self.files.iter().position(|open| open.path == *path) else { return };
        match now {
            Some(text) if text.version() == self.files[place].text.version() => {}
            Some(text) => {
                let open = self.files.remove(place).carried(text);
                self.files.extend(open.if_any());
            }
            None => drop(self.files.remove(place)),
        }
    }

    /// The open lines, in the order in which they are shown.
    pub fn open_lines(&self) -> OpenLines {
        self.files.iter().map(|open| (open.path.clone(), open.lines())).collect()
    }

    /// The version of an open file; `None` if it is not open.
    pub fn version(&self, path: &RelPath) -> Option<ContentHash> {
        self.files.iter().find(|open| open.path == *path).map(|open| open.text.version())
    }

    /// Shows the lines that fit into this many tokens, and drops the rest.
    ///
    /// If something must be dropped, a little more is dropped than necessary. Otherwise each new line would displace
    /// another, and the beginning of the prompt would change every turn.
    pub fn fit(&mut self, tokens: usize, numbers: LineNumbers, limits: &Limits) -> FittedFiles {
        let mut room = tokens;
        loop {
            let mut kept = self.clone();
            let left = kept.keep(room, numbers, limits);
            if room == tokens && !left.is_empty() && !kept.files.is_empty() {
                room -= tokens.div_ceil(6);
                continue;
            }
            let (text, shown) = kept.show(numbers, limits);
            let taken = estimate(&text);
            if taken <= tokens || kept.files.is_empty() {
                *self = kept;
                return FittedFiles { text, shown, left };
            }
            // The headers and gaps took more than was reserved for them.
            room = room.saturating_sub((taken - tokens).max(room / 50 + 1));
        }
    }

    /// Keeps the most recently used lines that fit into about this many tokens. Returns the dropped ones.
    fn keep(&mut self, tokens: usize, numbers: LineNumbers, limits: &Limits) -> Vec<KnownLines> {
        let mut budget = TokenBudget { room: tokens, begun: HashMap::new(), kept: vec![LineSet::new(); self.files.len()] };
        let parts = self.latest_first();
        // One long read does not displace everything else, unless it is the only one.
        for most in [tokens * 2 / 3, tokens] {
            for (file, part) in &parts {
                budget.take(*file, &self.files[*file], *part, most, |text, line| row_cost(text, line, numbers, limits));
            }
        }
        let TokenBudget { begun, kept, .. } = budget;
        let mut left = Vec::new();
        let mut files = Vec::with_capacity(self.files.len());
        for (file, open) in self.files.drain(..).enumerate() {
            let lines = open.lines().minus(&kept[file]);
            let has_nothing = open.uses.is_empty() && !begun.contains_key(&file);
            if !lines.is_empty() || has_nothing {
                left.push(KnownLines { path: open.path.clone(), text: open.text.clone(), lines });
            }
            let is_shown_empty = open.text.line_count() == 0 && begun.contains_key(&file);
            if !kept[file].is_empty() || is_shown_empty {
                files.push(open.only(&kept[file]));
            }
        }
        self.files = files;
        left
    }

    /// The parts of files, most recently used first.
    fn latest_first(&self) -> Vec<(usize, Option<LineRange>)> {
        let mut parts: Vec<(u64, usize, Option<LineRange>)> = Vec::new();
        for (file, open) in self.files.iter().enumerate() {
            if open.uses.is_empty() {
                parts.push((open.at, file, None));
            }
            parts.extend(open.uses.iter().map(|part| (part.at, file, Some(part.lines))));
        }
        parts.sort_by_key(|(at, file, lines)| (std::cmp::Reverse(*at), *file, lines.map(|lines| lines.start)));
        parts.into_iter().map(|(_, file, lines)| (file, lines)).collect()
    }

    fn show(&self, numbers: LineNumbers, limits: &Limits) -> (String, Vec<KnownLines>) {
        let unbounded = Limits { read_lines: usize::MAX, read_bytes: usize::MAX, ..*limits };
        let names = ToolNames::default();
        let mut text = String::new();
        let mut shown = Vec::new();
        for open in &self.files {
            let reading = ReadResult::of(open.path.clone(), open.text.clone(), open.lines(), numbers, &unbounded);
            text.push_str(&render::read::read(&reading, ReplyAudience::new(&names)));
            shown.push(KnownLines { path: open.path.clone(), text: open.text.clone(), lines: reading.full });
        }
        (text, shown)
    }
}

struct TokenBudget {
    room: usize,
    /// The number of tokens that each file has used.
    begun: HashMap<usize, usize>,
    kept: Vec<LineSet>,
}

impl TokenBudget {
    /// Takes as many lines of a part as fit, while its file uses no more than `most`.
    fn take(
        &mut self,
        file: usize,
        open: &OpenFile,
        part: Option<LineRange>,
        most: usize,
        cost: impl Fn(&Text, LineNo) -> usize,
    ) {
        let continues = part.and_then(|part| part.start.moved(-1)).is_some_and(|line| self.kept[file].contains(line));
        let start = match self.begun.contains_key(&file) {
            false => header_cost(&open.path),
            true if continues => 0,
            // The cost of a gap, and of another range in the header.
            true => 6,
        };
        if !self.take_room(file, start, most) {
            return;
        }
        for line in part.into_iter().flat_map(LineRange::iter) {
            if self.kept[file].contains(line) {
                continue;
            }
            if !self.take_room(file, cost(&open.text, line), most) {
                return;
            }
            self.kept[file].insert(LineRange::line(line));
        }
    }

    fn take_room(&mut self, file: usize, cost: usize, most: usize) -> bool {
        let taken = self.begun.get(&file).copied().unwrap_or_default();
        if cost > self.room || taken + cost > most {
            return false;
        }
        self.room -= cost;
        self.begun.insert(file, taken + cost);
        true
    }
}

/// The approximate number of tokens in the header of a file.
fn header_cost(path: &RelPath) -> usize {
    estimate(path.as_str()) + 24
}

/// The tokens of a row. A row begins with a digit, where every tokenizer splits, so the costs of rows add up.
fn row_cost(text: &Text, line: LineNo, numbers: LineNumbers, limits: &Limits) -> usize {
    let content = text.line(line);
    let mut row = String::with_capacity(content.len().min(limits.line_chars) + 16);
    match content.char_indices().nth(limits.line_chars) {
        Some((end, _)) => {
            LineNumbers::Plain.write(&mut row, line, content);
            row.push_str(&content[..end]);
            // A cut is reported in the row and once below the file.
            row.push_str("…[+99999 chars], [only partly seen: line 99999]");
        }
        None => {
            numbers.write(&mut row, line, content);
            row.push_str(content);
        }
    }
    row.push('\n');
    estimate(&row)
}

impl OpenFile {
    fn new(path: &RelPath, text: &Text) -> Self {
        Self { path: path.clone(), text: text.clone(), uses: Vec::new(), at: 0 }
    }

    /// The file, unless it has lines and none of them is open.
    fn if_any(self) -> Option<Self> {
        (!self.uses.is_empty() || self.text.line_count() == 0).then_some(self)
    }

    fn lines(&self) -> LineSet {
        self.uses.iter().map(|part| part.lines).collect()
    }

    /// Records a use of these lines.
    fn put(&mut self, lines: &LineSet, at: u64) {
        let earlier = self.uses.drain(..).flat_map(|part| {
            let rest = LineSet::from_iter([part.lines]).minus(lines);
            rest.ranges().iter().map(|lines| LineUse { lines: *lines, at: part.at }).collect::<Vec<_>>()
        });
        let mut uses: Vec<LineUse> = earlier.collect();
        uses.extend(lines.clipped(self.text.line_count()).ranges().iter().map(|lines| LineUse { lines: *lines, at }));
        uses.sort_by_key(|part| part.lines.start);
        self.uses = uses;
    }

    /// The file with only these lines.
    fn only(self, lines: &LineSet) -> Self {
        let inside = |part: &LineUse| {
            let within = LineSet::from_iter([part.lines]);
            let kept = within.minus(&within.minus(lines));
            kept.ranges().iter().map(|lines| LineUse { lines: *lines, at: part.at }).collect::<Vec<_>>()
        };
        Self { uses: self.uses.iter().flat_map(inside).collect(), ..self }
    }

    /// The open lines in another version. If none of them remains, the lines in their place are opened, so that the
    /// file does not stay open without a line.
    fn carried(self, text: &Text) -> Self {
        if text.version() == self.text.version() {
            return self;
        }
        let map = LineMap::between(&self.text, text);
        let was_empty = self.text.line_count() == 0;
        let mut open = Self { text: text.clone(), uses: Vec::new(), ..self };
        let mut uses = self.uses;
        uses.sort_by_key(|part| part.at);
        for part in &uses {
            open.put(&lines_after(&map, part.lines), part.at);
        }
        if open.uses.is_empty() {
            uses.iter().for_each(|part| open.put(&beside(&map, part.lines), part.at));
        }
        if was_empty {
            open.put(&LineSet::whole(text.line_count()), open.at);
        }
        open
    }
}

/// The place of a range in the new text: the rest of its lines, and the lines that replaced them or were inserted
/// between them.
fn lines_after(map: &LineMap, lines: LineRange) -> LineSet {
    let (start, end) = (lines.start.index(), lines.end.index() + 1);
    let kept = map.kept().filter_map(|(run, moved)| {
        let (from, to) = (run.start.max(start), run.end.min(end));
        let new = |index: usize| (index as i64 + moved) as usize;
        if from < to { LineRange::from_indexes(new(from)..new(to)) } else { None }
    });
    let put_in = map.hunks().iter().filter_map(|hunk| {
        let replaced = hunk.before.start < end && hunk.before.end > start;
        let between = hunk.before.is_empty() && hunk.before.start > start && hunk.before.start < end;
        if replaced || between { LineRange::from_indexes(hunk.after.clone()) } else { None }
    });
    kept.chain(put_in).collect()
}

/// The lines before and after the place of a removed range.
fn beside(map: &LineMap, lines: LineRange) -> LineSet {
    let start = lines.start.index();
    let place = map.hunks().iter().find(|hunk| hunk.before.contains(&start)).map_or(0, |hunk| hunk.after.start);
    LineRange::from_indexes(place.saturating_sub(1)..place + 1).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::*;

    fn path(name: &str) -> RelPath {
        RelPath::new(name).unwrap()
    }

    fn text(content: &str) -> Text {
        Text::of(content.to_owned()).unwrap()
    }

    fn lines(ranges: &[(u32, u32)]) -> LineSet {
        ranges.iter().map(|(a, b)| LineRange::new(LineNo::new(*a).unwrap(), LineNo::new(*b).unwrap()).unwrap()).collect()
    }

    fn numbered(number: usize) -> Text {
        text(&(1..=number).map(|n| format!("let value_{n} = {n};\n")).collect::<String>())
    }

    fn fit(set: &mut WorkingSet, tokens: usize) -> FittedFiles {
        set.fit(tokens, LineNumbers::Plain, &Limits::default())
    }

    /// Checks which words are open after a file whose lines are words has changed.
    #[track_caller]
    fn follows(before: &str, open: &[(u32, u32)], after: &str, expected: &str) {
        let split =
            |words: &str| text(&words.split(' ').filter(|w| !w.is_empty()).map(|word| format!("{word}\n")).collect::<String>());
        let mut set = WorkingSet::default();
        set.record_shown(&path("a"), &split(before), &lines(open));
        let now = split(after);
        set.refresh(&path("a"), Some(&now));
        let shown: Vec<&str> = set.open_lines().iter().flat_map(|(_, lines)| lines.iter()).map(|line| now.line(line)).collect();
        assert_eq!(shown.join(" "), expected);
    }

    #[test]
    fn open_lines_move_with_the_file() {
        follows("a b c d e", &[(2, 3)], "x y a b c d e", "b c");
        follows("a b c d e", &[(2, 3)], "a b new c d e", "b new c");
        follows("a b c d e", &[(2, 3)], "a B c d e", "B c");
        follows("a b c d e", &[(2, 3)], "a b new", "b new");
        follows("a b c d e", &[(2, 2), (4, 4)], "a b c new d e", "b d");
        follows("a b c", &[(1, 3)], "", "");
    }

    #[test]
    fn where_its_lines_are_gone_a_file_stays_open_at_their_place() {
        follows("a b c d e", &[(2, 3)], "a d e", "a d");
        follows("a b c d e", &[(1, 2)], "c d e", "c");
        follows("a b c d e", &[(4, 5)], "a b c", "c");
        follows("a b c d e", &[(2, 2), (4, 4)], "a c e", "a c e");
        follows("a b c d e", &[(2, 2), (4, 4)], "a c d e", "d");
        follows("", &[], "a b", "a b");
    }

    #[test]
    fn the_least_recently_used_lines_are_dropped_first() {
        let mut set = WorkingSet::default();
        let file = numbered(40);
        for name in ["a.rs", "b.rs", "c.rs"] {
            set.record_shown(&path(name), &file, &lines(&[(1, 10)]));
        }
        set.record_shown(&path("a.rs"), &file, &lines(&[(1, 10)]));
        let fitted = fit(&mut set, 320);
        let names = |parts: &[KnownLines]| {
            parts.iter().map(|part| format!("{} {}", part.path, part.lines)).collect::<Vec<_>>().join("; ")
        };
        assert_eq!(names(&fitted.shown), "a.rs 1-10; c.rs 1-10");
        assert_eq!(names(&fitted.left), "b.rs 1-10");
        assert!(fit(&mut set, 320).left.is_empty(), "what has left does not leave again");
    }

    #[test]
    fn of_a_file_the_lines_that_were_used_last_stay() {
        let mut set = WorkingSet::default();
        let file = numbered(400);
        set.record_shown(&path("a.rs"), &file, &lines(&[(1, 400)]));
        set.record_shown(&path("a.rs"), &file, &lines(&[(300, 305)]));
        let fitted = fit(&mut set, 200);
        assert!(fitted.text.contains("\n300|let value_300"), "{}", fitted.text);
        assert!(fitted.text.contains("\n1|let value_1 "), "{}", fitted.text);
        assert!(estimate(&fitted.text) <= 200);
        assert_eq!(fitted.shown[0].lines.count() + fitted.left[0].lines.count(), 400);
    }

    #[test]
    fn an_empty_file_is_open_as_well() {
        let mut set = WorkingSet::default();
        set.record_shown(&path("a"), &text(""), &LineSet::new());
        let fitted = fit(&mut set, 100);
        assert!(fitted.text.starts_with("a is empty"), "{}", fitted.text);
        assert_eq!(fitted.shown.len(), 1);
        let none = fit(&mut set, 5);
        assert_eq!((none.shown.len(), none.left.len()), (0, 1), "it is named as well");
    }

    fn paths(set: &WorkingSet) -> Vec<RelPath> {
        set.files.iter().map(|open| open.path.clone()).collect()
    }

    #[test]
    fn a_file_that_does_not_change_keeps_its_place() {
        let mut set = WorkingSet::default();
        for name in ["a", "b", "c"] {
            set.record_shown(&path(name), &numbered(3), &lines(&[(1, 3)]));
        }
        set.refresh(&path("a"), Some(&numbered(4)));
        set.refresh(&path("b"), Some(&numbered(3)));
        assert_eq!(paths(&set), [path("b"), path("c"), path("a")]);
        set.refresh(&path("c"), None);
        assert_eq!(paths(&set), [path("b"), path("a")]);
        set.record_shown(&path("b"), &numbered(3), &lines(&[(2, 3)]));
        assert_eq!(paths(&set), [path("b"), path("a")]);
        set.record_shown(&path("b"), &numbered(5), &lines(&[(2, 3)]));
        assert_eq!(paths(&set), [path("a"), path("b")]);
    }

    #[test]
    fn after_something_has_left_there_is_room_for_a_little() {
        let mut set = WorkingSet::default();
        set.record_shown(&path("a.rs"), &numbered(100), &lines(&[(1, 100)]));
        assert!(!fit(&mut set, 600).left.is_empty());
        for line in 90..95 {
            set.record_shown(&path("a.rs"), &numbered(100), &lines(&[(line, line)]));
            assert!(fit(&mut set, 600).left.is_empty(), "line {line}");
        }
    }

    #[test]
    fn a_line_that_is_cut_is_not_known() {
        let mut set = WorkingSet::default();
        let file = text(&format!("short\n{}\n", "long ".repeat(1000)));
        set.record_shown(&path("a"), &file, &lines(&[(1, 2)]));
        let fitted = fit(&mut set, 4000);
        assert_eq!(fitted.shown[0].lines, lines(&[(1, 1)]));
    }

    proptest! {
        #[test]
        fn the_budget_holds_and_every_dropped_line_is_reported(
            uses in vec((0..4_usize, 1_u32..60, 0_u32..60, 0..3_usize), 1..12),
            tokens in 0_usize..900,
        ) {
            let names = ["src/main.rs", "b", "docs/a long name with words.md", "c/d/e/f.txt"];
            let mut set = WorkingSet::default();
            let versions = [numbered(120), text("one\ntwo\n中文中文中文\n"), numbered(70)];
            for (file, start, more, version) in uses {
                set.record_shown(&path(names[file]), &versions[version], &lines(&[(start, start + more)]));
            }
            let before: u32 = set.open_lines().iter().map(|(_, lines)| lines.count()).sum();
            let fitted = fit(&mut set, tokens);
            prop_assert!(estimate(&fitted.text) <= tokens);
            let count = |parts: &[KnownLines]| parts.iter().map(|part| part.lines.count()).sum::<u32>();
            prop_assert_eq!(count(&fitted.shown) + count(&fitted.left), before);
            let again = fit(&mut set, tokens);
            prop_assert!(again.left.is_empty());
            prop_assert_eq!(again.text, fitted.text);
        }
    }
}
