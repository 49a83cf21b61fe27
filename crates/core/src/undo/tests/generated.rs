//! Undo over generated histories: every line has an identity, so that it is known whose it is. Two authors change one file in turns, and
//! one of them takes changes back.

use proptest::prelude::*;

use super::*;

/// A line, which stays in the document when it is deleted.
#[derive(Debug, Clone)]
struct Line {
    id: usize,
    text: &'static str,
    /// The change that made it, if one did.
    made_by: Option<usize>,
    /// The changes that have deleted it.
    deleted_by: Vec<usize>,
}

/// A text with all lines that it ever had.
#[derive(Debug, Clone)]
struct Document {
    lines: Vec<Line>,
    next_id: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Author {
    Ann,
    Bob,
}

/// Replaces lines, in numbers that are fitted to the text.
#[derive(Debug, Clone)]
struct Splice {
    at: usize,
    removed: usize,
    added: Vec<&'static str>,
}

/// What is on record of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Record {
    /// Which line became which.
    Lines,
    /// The texts before and after it.
    Texts,
    /// Nothing.
    Nothing,
}

#[derive(Debug, Clone)]
struct Act {
    author: Author,
    splices: Vec<Splice>,
    record: Record,
}

/// A change of the history.
#[derive(Debug, Clone)]
struct Step {
    name: ChangeId,
    author: Author,
    before: Text,
    after: Text,
    lines: LineMap,
    record: Record,
    undone: Vec<UndonePart>,
}

/// A file and how it came to be what it is.
#[derive(Debug, Clone)]
struct Story {
    document: Document,
    steps: Vec<Step>,
    present: Text,
}

impl Document {
    fn is_there(line: &Line) -> bool {
        line.deleted_by.is_empty()
    }

    fn text(&self) -> Text {
        let there = self.lines.iter().filter(|line| Self::is_there(line));
        Text::of(there.map(|line| format!("{}\n", line.text)).collect()).unwrap()
    }

    /// The document as if an author had never been there.
    fn without(&self, steps: &[Step], author: Author) -> Document {
        let is_theirs = |change: &usize| steps[*change].author == author;
        let mut document = self.clone();
        document.lines.retain(|line| !line.made_by.as_ref().is_some_and(is_theirs));
        document.lines.iter_mut().for_each(|line| line.deleted_by.retain(|change| !is_theirs(change)));
        document
    }

    /// The lines that are there, by their identity.
    fn ids(&self) -> Vec<usize> {
        self.lines.iter().filter(|line| Self::is_there(line)).map(|line| line.id).collect()
    }

    /// The places of the lines that are there.
    fn there(&self) -> Vec<usize> {
        (0..self.lines.len()).filter(|place| Self::is_there(&self.lines[*place])).collect()
    }

    /// Replaces lines in a part of the text, given by the places of the lines that bound it.
    /// Where no record tells which line is which, none comes for which an equal one goes.
    fn splice(&mut self, change: usize, splice: &Splice, bounds: Range<usize>, record: Record) {
        let there: Vec<usize> = self.there().into_iter().filter(|place| bounds.contains(place)).collect();
        let at = splice.at % (there.len() + 1);
        let removed = &there[at..(at + splice.removed).min(there.len())];
        let gone: Vec<&str> = removed.iter().map(|place| self.lines[*place].text).collect();
        let added: Vec<&'static str> =
            splice.added.iter().filter(|text| record == Record::Lines || !gone.contains(text)).copied().collect();
        removed.iter().for_each(|place| self.lines[*place].deleted_by.push(change));
        // Right above the next line that is there, so below all that were deleted.
        let place = there.get(at).copied().unwrap_or(bounds.end);
        let first = self.next_id;
        self.next_id += added.len();
        let line = |(id, text)| Line { id, text, made_by: Some(change), deleted_by: Vec::new() };
        self.lines.splice(place..place, (first..).zip(added).map(line));
    }
}

impl Story {
    fn of(lines: &[&'static str]) -> Self {
        let line = |(id, text): (usize, &&'static str)| Line { id, text, made_by: None, deleted_by: Vec::new() };
        let document = Document { lines: lines.iter().enumerate().map(line).collect(), next_id: lines.len() };
        Self::with(document)
    }

    fn with(document: Document) -> Self {
        let present = document.text();
        Self { document, steps: Vec::new(), present }
    }

    /// Each author keeps to blocks of his own, which fixed lines divide, or nobody does.
    fn act(&mut self, act: &Act, has_own_blocks: bool) {
        let change = self.steps.len();
        let before = self.document.ids();
        // What no record tells must be one change, or contents may show it otherwise.
        let most = if act.record == Record::Lines { act.splices.len() } else { 1 };
        for splice in act.splices.iter().take(most) {
            let bounds = if has_own_blocks { self.block(act.author, splice.at) } else { 0..self.document.lines.len() };
            self.document.splice(change, splice, bounds, act.record);
        }
        let lines = lines_between(&before, &self.document.ids());
        self.take_step(act.author, self.document.text(), lines, act.record, Vec::new());
    }

    /// The lines between two of those that divide the document.
    fn block(&self, author: Author, number: usize) -> Range<usize> {
        let is_fixed =
            |place: &usize| self.document.lines[*place].made_by.is_none() && self.document.lines[*place].text == "fixed";
        let fixed: Vec<usize> = (0..self.document.lines.len()).filter(is_fixed).collect();
        let blocks = fixed.len() - 1;
        let block = number % blocks;
        let is_own = block.is_multiple_of(2) == (author == Author::Ann);
        let block = if is_own {
            block
        } else if block + 1 < blocks {
            block + 1
        } else {
            block - 1
        };
        fixed[block] + 1..fixed[block + 1]
    }

    fn take_step(&mut self, author: Author, after: Text, lines: LineMap, record: Record, undone: Vec<UndonePart>) {
        let name = ChangeId(self.steps.len().to_string());
        let before = std::mem::replace(&mut self.present, after.clone());
        self.steps.push(Step { name, author, before, after, lines, record, undone });
    }

    /// Takes these changes back, but for these hunks of each.
    fn undo(&self, is_undone: impl Fn(usize) -> bool, done: &[UndonePart]) -> UndoneText {
        let mut draft = UndoDraft::new(self.present.clone());
        for (index, step) in self.steps.iter().enumerate().rev() {
            draft.note_put_back(&step.undone);
            let lines = Some(&step.lines).filter(|_| step.record == Record::Lines);
            let text_step = TextStep { change: &step.name, before: &step.before, after: &step.after, lines };
            let done = done.iter().filter(|part| part.change == step.name).flat_map(|part| &part.hunks);
            let done: Vec<Hunk> = done.map(|undone| undone.hunk.clone()).collect();
            match step.record {
                _ if is_undone(index) => draft.take_back(&text_step, &done),
                Record::Lines => draft.pass(&step.name, &step.lines),
                Record::Texts | Record::Nothing => draft.pass_texts(&step.before, &step.after),
            }
        }
        draft.finish()
    }

    fn undo_author(&self, author: Author) -> UndoneText {
        self.undo(|index| self.steps[index].author == author && self.steps[index].undone.is_empty(), &[])
    }

    /// Takes changes back, and that is a change as well.
    fn take_undo(&mut self, undone: &UndoneText) {
        let lines = undone.lines.clone().unwrap();
        self.take_step(Author::Ann, undone.text.clone(), lines, Record::Lines, undone.undone.clone());
    }
}

/// Which line became which.
fn lines_between(before: &[usize], after: &[usize]) -> LineMap {
    let mut runs: Vec<LineRun> = Vec::new();
    for (line, id) in before.iter().enumerate() {
        let Some(to) = after.iter().position(|other| other == id) else { continue };
        match runs.last_mut().filter(|last| last.lines.end == line && last.end() == to) {
            Some(last) => last.lines.end = line + 1,
            None => runs.push(LineRun { lines: line..line + 1, to }),
        }
    }
    let runs = runs.into_iter().map(|run| (run.lines.clone(), run.to as i64 - run.lines.start as i64));
    LineMap::keeping(runs, before.len(), after.len())
}

const TEXTS: [&str; 7] = ["}", "", "    x();", "fn a() {", "fn b() {", "unique 1", "unique 2"];

fn added() -> impl Strategy<Value = Vec<&'static str>> {
    prop::collection::vec((0..TEXTS.len()).prop_map(|text| TEXTS[text]), 0..4)
}

fn splice() -> impl Strategy<Value = Splice> {
    (0usize..40, 0usize..4, added()).prop_map(|(at, removed, added)| Splice { at, removed, added })
}

fn act(records: &'static [Record]) -> impl Strategy<Value = Act> {
    let record = (0..records.len()).prop_map(|record| records[record]);
    let author = prop::bool::ANY.prop_map(|is_ann| if is_ann { Author::Ann } else { Author::Bob });
    (author, prop::collection::vec(splice(), 1..4), record).prop_map(|(author, splices, record)| Act { author, splices, record })
}

fn base() -> impl Strategy<Value = Vec<&'static str>> {
    prop::collection::vec((0..TEXTS.len()).prop_map(|text| TEXTS[text]), 0..20)
}

/// Blocks, of which each author has every other one. A fixed line divides them.
fn blocks() -> impl Strategy<Value = Vec<&'static str>> {
    prop::collection::vec(added(), 2..7).prop_map(|blocks| {
        let divided = blocks.into_iter().flat_map(|block| std::iter::once("fixed").chain(block));
        divided.chain(["fixed"]).collect()
    })
}

fn told(base: &[&'static str], acts: &[Act], has_own_blocks: bool) -> Story {
    let mut story = Story::of(base);
    acts.iter().for_each(|act| story.act(act, has_own_blocks));
    story
}

/// Only lines of an author have gone, and only lines that he had deleted have come.
fn assert_touches_only(story: &Story, author: Author, undone: &UndoneText) {
    let made = undone.lines.as_ref().unwrap();
    assert!(made.fits(&story.present, &undone.text));
    let is_of = |change: &usize| story.steps[*change].author == author;
    let there = story.document.there();
    for (line, place) in there.iter().enumerate() {
        let is_kept = made.new_place(LineNo::at_index(line)).is_some();
        let is_theirs = story.document.lines[*place].made_by.as_ref().is_some_and(is_of);
        assert!(is_kept || is_theirs, "line {} is not {author:?}'s\n{story:#?}", line + 1);
    }
    let mut come: Vec<&str> =
        made.hunks().iter().flat_map(|hunk| hunk.after.clone()).map(|line| undone.text.line(LineNo::at_index(line))).collect();
    for line in story.document.lines.iter().filter(|line| line.deleted_by.iter().any(is_of)) {
        come.iter().position(|text| *text == line.text).map(|at| come.swap_remove(at));
    }
    assert_eq!(come, [""; 0], "these were never there\n{story:#?}");
}

const EXACT: &[Record] = &[Record::Lines];
const ANY: &[Record] = &[Record::Lines, Record::Lines, Record::Texts, Record::Nothing];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    /// Where the authors keep apart and all is on record, nothing is left, and what remains is what the other one wrote.
    #[test]
    fn taking_one_author_back_leaves_the_other(base in blocks(), acts in prop::collection::vec(act(EXACT), 1..12)) {
        let story = told(&base, &acts, true);
        let undone = story.undo_author(Author::Ann);
        prop_assert_eq!(&undone.left, &[]);
        prop_assert_eq!(undone.text, story.document.without(&story.steps, Author::Ann).text());
    }

    /// The same where some changes are whole-file writes or on no record: what is proven is right, and the rest is left.
    #[test]
    fn without_a_record_it_is_right_or_left(base in blocks(), acts in prop::collection::vec(act(ANY), 1..8)) {
        let story = told(&base, &acts, true);
        let undone = story.undo_author(Author::Ann);
        if undone.left.is_empty() {
            prop_assert_eq!(undone.text, story.document.without(&story.steps, Author::Ann).text());
        }
    }

    /// Wherever the authors write, no line of the other one is lost or changed, and nothing comes that was not there.
    #[test]
    fn no_line_of_another_is_touched(base in base(), acts in prop::collection::vec(act(EXACT), 1..10)) {
        let story = told(&base, &acts, false);
        for author in [Author::Ann, Author::Bob] {
            assert_touches_only(&story, author, &story.undo_author(author));
        }
        // Nor by taking back one change only.
        for (index, step) in story.steps.iter().enumerate() {
            assert_touches_only(&story, step.author, &story.undo(|other| other == index, &[]));
        }
    }

    /// To take an undo back brings the same text, also where the other one goes on in between; and so does to undo it again.
    #[test]
    fn undo_and_redo_are_each_others_inverse(
        base in blocks(),
        acts in prop::collection::vec(act(EXACT), 1..8),
        later in prop::collection::vec(act(EXACT), 0..4),
    ) {
        let mut story = told(&base, &acts, true);
        let (document, first) = (story.document.clone(), story.steps.len());
        let undone = story.undo_author(Author::Ann);
        story.take_undo(&undone);
        prop_assert_eq!(&story.undo(|index| index == first, &[]).text, &document.text());
        // The other one's changes are the same with the undo and without it.
        let mut as_if_never = Story { document, steps: story.steps[..first].to_vec(), present: story.steps[first].before.clone() };
        let mut alone = Story::with(story.document.without(&story.steps[..first], Author::Ann));
        for act in later.iter().map(|act| Act { author: Author::Bob, ..act.clone() }) {
            as_if_never.act(&act, true);
            alone.act(&act, true);
            let step = alone.steps.last().unwrap();
            story.take_step(Author::Bob, step.after.clone(), step.lines.clone(), Record::Lines, Vec::new());
        }
        let redone = story.undo(|index| index == first, &[]);
        prop_assert_eq!(&redone.left, &[]);
        prop_assert_eq!(&redone.text, &as_if_never.present);
        story.take_undo(&redone);
        // Ann's changes once more: the way leads through the redo and the undo.
        let again = story.undo(|index| index < first && story.steps[index].author == Author::Ann, &[]);
        prop_assert_eq!(&again.left, &[]);
        prop_assert_eq!(again.text, alone.present);
    }

    /// What is taken back in two steps is taken back as in one.
    #[test]
    fn the_rest_comes_back_later(base in blocks(), acts in prop::collection::vec(act(EXACT), 1..8), hunk in 0usize..9) {
        let mut story = told(&base, &acts, true);
        let all = story.undo_author(Author::Ann);
        // Some of the hunks are said to have been taken back before, and so they are left.
        let mut some = all.undone.clone();
        some.iter_mut().for_each(|part| part.hunks.retain(|undone| (undone.hunk.before.start + hunk).is_multiple_of(2)));
        let is_open = |story: &Story, index: usize| story.steps[index].author == Author::Ann && story.steps[index].undone.is_empty();
        let first = story.undo(|index| is_open(&story, index), &some);
        if first.left.is_empty() {
            story.take_undo(&first);
            let second = story.undo(|index| is_open(&story, index), &first.undone);
            if second.left.is_empty() {
                prop_assert_eq!(second.text, all.text);
            }
        }
    }
}
