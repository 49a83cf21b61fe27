//! The working set: the lines that a model has open. They stand in its prompt as they are now, and only as long as they stand
//! there the model knows them. What was used longest ago leaves first.

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

/// The files that a model has open, those that have not changed for longest first: so a prompt that begins with them stays the
/// same for longest.
#[derive(Debug, Clone, Default)]
pub struct WorkingSet {
    files: Vec<OpenFile>,
    clock: u64,
}

#[derive(Debug, Clone)]
struct OpenFile {
    path: RelPath,
    text: Text,
    /// In order, apart from each other.
    uses: Vec<LineUse>,
    /// When the file itself was used last; an empty one has no lines.
    at: u64,
}

/// Lines that were used together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct LineUse {
    lines: LineRange,
    at: u64,
}

/// The working set as a prompt shows it.
#[derive(Debug, Clone, Default)]
pub struct FittedFiles {
    /// For the model.
    pub text: String,
    /// What is shown in full: this is what the model knows.
    pub shown: Vec<KnownLines>,
    /// What was open and did not fit; of an empty file no lines.
    pub left: Vec<KnownLines>,
}

/// What is open, without the texts: enough to open it again.
pub type OpenLines = Vec<(RelPath, LineSet)>;

impl WorkingSet {
    /// The model was shown these lines of a file, or wrote them. Where nothing comes of that which was not open already, the file
    /// keeps its place.
    pub fn used(&mut self, path: &RelPath, text: &Text, lines: &LineSet) {
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

    /// A file is this now. What is open of it follows, with what somebody put in between; what is gone closes, and with its last line
    /// the file.
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

    /// Everything leaves.
    pub fn clear(&mut self) {
        self.files.clear();
    }

    /// The files that are open.
    pub fn paths(&self) -> Vec<RelPath> {
        self.files.iter().map(|open| open.path.clone()).collect()
    }

    /// What is open, in the order in which it is shown.
    pub fn places(&self) -> OpenLines {
        self.files.iter().map(|open| (open.path.clone(), open.lines())).collect()
    }

    /// The version of a file that is open.
    pub fn version(&self, path: &RelPath) -> Option<ContentHash> {
        self.files.iter().find(|open| open.path == *path).map(|open| open.text.version())
    }

    /// Shows what fits into so many tokens; the rest leaves.
    ///
    /// When something has to leave, a little more does: else every line that comes would drive out another, and a prompt that
    /// begins with these files would be a new one in every turn.
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
            // The headers and gaps took more than was set aside for them.
            room = room.saturating_sub((taken - tokens).max(room / 50 + 1));
        }
    }

    /// Keeps what was used last, as far as it takes about so many tokens. Gives what leaves.
    fn keep(&mut self, tokens: usize, numbers: LineNumbers, limits: &Limits) -> Vec<KnownLines> {
        let mut budget = TokenBudget { room: tokens, begun: HashMap::new(), kept: vec![LineSet::new(); self.files.len()] };
        let parts = self.latest_first();
        // One long read does not drive out everything else, unless there is nothing else.
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

    /// The parts of files, those that were used last first.
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

/// Tokens that are given out.
struct TokenBudget {
    room: usize,
    /// How much each file has taken that has any.
    begun: HashMap<usize, usize>,
    kept: Vec<LineSet>,
}

impl TokenBudget {
    /// Takes as many lines of a part as there is room for, as long as its file has no more than `most`.
    fn take(
        &mut self,
        file: usize,
        open: &OpenFile,
        part: Option<LineRange>,
        most: usize,
        cost: impl Fn(&Text, LineNo) -> usize,
    ) {
        let goes_on = part.and_then(|part| part.start.moved(-1)).is_some_and(|line| self.kept[file].contains(line));
        let start = match self.begun.contains_key(&file) {
            false => header_cost(&open.path),
            true if goes_on => 0,
            // A gap, and a range more in the header.
            true => 6,
        };
        if !self.pay(file, start, most) {
            return;
        }
        for line in part.into_iter().flat_map(LineRange::iter) {
            if self.kept[file].contains(line) {
                continue;
            }
            if !self.pay(file, cost(&open.text, line), most) {
                return;
            }
            self.kept[file].insert(LineRange::line(line));
        }
    }

    fn pay(&mut self, file: usize, cost: usize, most: usize) -> bool {
        let taken = self.begun.get(&file).copied().unwrap_or_default();
        if cost > self.room || taken + cost > most {
            return false;
        }
        self.room -= cost;
        self.begun.insert(file, taken + cost);
        true
    }
}

/// About what the header of a file takes, and more for a long path.
fn header_cost(path: &RelPath) -> usize {
    estimate(path.as_str()) + 24
}

/// The tokens of a row. It begins with a digit, at which every tokenizer cuts, so those of several rows are the sum.
fn row_cost(text: &Text, line: LineNo, numbers: LineNumbers, limits: &Limits) -> usize {
    let content = text.line(line);
    let mut row = String::with_capacity(content.len().min(limits.line_chars) + 16);
    match content.char_indices().nth(limits.line_chars) {
        Some((end, _)) => {
            LineNumbers::Plain.write(&mut row, line, content);
            row.push_str(&content[..end]);
            // How much was cut is said, there and once below the file.
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

    /// Itself, unless it has lines and none of them is open: who knows nothing of a file does not have it open.
    fn if_any(self) -> Option<Self> {
        (!self.uses.is_empty() || self.text.line_count() == 0).then_some(self)
    }

    fn lines(&self) -> LineSet {
        self.uses.iter().map(|part| part.lines).collect()
    }

    /// These lines were used now.
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

    /// Only these lines of it.
    fn only(self, lines: &LineSet) -> Self {
        let inside = |part: &LineUse| {
            let within = LineSet::from_iter([part.lines]);
            let kept = within.minus(&within.minus(lines));
            kept.ranges().iter().map(|lines| LineUse { lines: *lines, at: part.at }).collect::<Vec<_>>()
        };
        Self { uses: self.uses.iter().flat_map(inside).collect(), ..self }
    }

    /// The same of another version. Of a file of which something was open something stays open, or it would be there without a
    /// line: what is now where its lines were, or what came into an empty file.
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
            open.put(&followed(&map, part.lines), part.at);
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

/// Where a range is in the new text: what is left of its lines, and what came in their place or between them.
fn followed(map: &LineMap, lines: LineRange) -> LineSet {
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

/// The lines before and after the place where a range was that is gone.
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

    /// What is open of a file whose lines are words, when it has become another.
    #[track_caller]
    fn follows(before: &str, open: &[(u32, u32)], after: &str, expected: &str) {
        let split =
            |words: &str| text(&words.split(' ').filter(|w| !w.is_empty()).map(|word| format!("{word}\n")).collect::<String>());
        let mut set = WorkingSet::default();
        set.used(&path("a"), &split(before), &lines(open));
        let now = split(after);
        set.refresh(&path("a"), Some(&now));
        let shown: Vec<&str> = set.places().iter().flat_map(|(_, lines)| lines.iter()).map(|line| now.line(line)).collect();
        assert_eq!(shown.join(" "), expected);
    }

    #[test]
    fn what_is_open_follows_its_lines() {
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
    fn what_was_used_longest_ago_leaves_first() {
        let mut set = WorkingSet::default();
        let file = numbered(40);
        for name in ["a.rs", "b.rs", "c.rs"] {
            set.used(&path(name), &file, &lines(&[(1, 10)]));
        }
        set.used(&path("a.rs"), &file, &lines(&[(1, 10)]));
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
        set.used(&path("a.rs"), &file, &lines(&[(1, 400)]));
        set.used(&path("a.rs"), &file, &lines(&[(300, 305)]));
        let fitted = fit(&mut set, 200);
        assert!(fitted.text.contains("\n300|let value_300"), "{}", fitted.text);
        assert!(fitted.text.contains("\n1|let value_1 "), "{}", fitted.text);
        assert!(estimate(&fitted.text) <= 200);
        assert_eq!(fitted.shown[0].lines.count() + fitted.left[0].lines.count(), 400);
    }

    #[test]
    fn an_empty_file_is_open_as_well() {
        let mut set = WorkingSet::default();
        set.used(&path("a"), &text(""), &LineSet::new());
        let fitted = fit(&mut set, 100);
        assert!(fitted.text.starts_with("a is empty"), "{}", fitted.text);
        assert_eq!(fitted.shown.len(), 1);
        let none = fit(&mut set, 5);
        assert_eq!((none.shown.len(), none.left.len()), (0, 1), "it is named as well");
    }

    #[test]
    fn a_file_that_does_not_change_keeps_its_place() {
        let mut set = WorkingSet::default();
        for name in ["a", "b", "c"] {
            set.used(&path(name), &numbered(3), &lines(&[(1, 3)]));
        }
        set.refresh(&path("a"), Some(&numbered(4)));
        set.refresh(&path("b"), Some(&numbered(3)));
        assert_eq!(set.paths(), [path("b"), path("c"), path("a")]);
        set.refresh(&path("c"), None);
        assert_eq!(set.paths(), [path("b"), path("a")]);
        set.used(&path("b"), &numbered(3), &lines(&[(2, 3)]));
        assert_eq!(set.paths(), [path("b"), path("a")]);
        set.used(&path("b"), &numbered(5), &lines(&[(2, 3)]));
        assert_eq!(set.paths(), [path("a"), path("b")]);
    }

    #[test]
    fn after_something_has_left_there_is_room_for_a_little() {
        let mut set = WorkingSet::default();
        set.used(&path("a.rs"), &numbered(100), &lines(&[(1, 100)]));
        assert!(!fit(&mut set, 600).left.is_empty());
        for line in 90..95 {
            set.used(&path("a.rs"), &numbered(100), &lines(&[(line, line)]));
            assert!(fit(&mut set, 600).left.is_empty(), "line {line}");
        }
    }

    #[test]
    fn a_line_that_is_cut_is_not_known() {
        let mut set = WorkingSet::default();
        let file = text(&format!("short\n{}\n", "long ".repeat(1000)));
        set.used(&path("a"), &file, &lines(&[(1, 2)]));
        let fitted = fit(&mut set, 4000);
        assert_eq!(fitted.shown[0].lines, lines(&[(1, 1)]));
    }

    proptest! {
        #[test]
        fn it_never_takes_more_than_it_may_and_nothing_goes_unnamed(
            uses in vec((0..4_usize, 1_u32..60, 0_u32..60, 0..3_usize), 1..12),
            tokens in 0_usize..900,
        ) {
            let names = ["src/main.rs", "b", "docs/a long name with words.md", "c/d/e/f.txt"];
            let mut set = WorkingSet::default();
            let versions = [numbered(120), text("one\ntwo\n中文中文中文\n"), numbered(70)];
            for (file, start, more, version) in uses {
                set.used(&path(names[file]), &versions[version], &lines(&[(start, start + more)]));
            }
            let before: u32 = set.places().iter().map(|(_, lines)| lines.count()).sum();
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
