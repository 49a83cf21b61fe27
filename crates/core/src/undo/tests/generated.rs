//! Undo over generated histories. Every line has an identity, so the test knows its author. Two authors change one file
//! in turns, and one of them undoes changes.

use proptest::prelude::*;

use super::*;

/// A line, which stays in the document after it is deleted.
#[derive(Debug, Clone)]
struct Line {
    id: usize,
    text: &'static str,
    /// The change that inserted it, if any.
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

/// Replaces lines, in numbers that are scaled to the text.
#[derive(Debug, Clone)]
struct Splice {
    at: usize,
    removed: usize,
    added: Vec<&'static str>,
}

/// The part of a change that is recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Record {
    /// The line map.
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

/// A file with its history.
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

    /// The document without the changes of an author.
    fn without(&self, steps: &[Step], author: Author) -> Document {
        let is_theirs = |change: &usize| steps[*change].author == author;
        let mut document = self.clone();
        document.lines.retain(|line| !line.made_by.as_ref().is_some_and(is_theirs));
        document.lines.iter_mut().for_each(|line| line.deleted_by.retain(|change| !is_theirs(change)));
        document
    }

    /// The identities of the present lines.
    fn ids(&self) -> Vec<usize> {
        self.lines.iter().filter(|line| Self::is_there(line)).map(|line| line.id).collect()
    }

    /// The places of the present lines.
    fn there(&self) -> Vec<usize> {
        (0..self.lines.len()).filter(|place| Self::is_there(&self.lines[*place])).collect()
    }

    /// Replaces lines in a part of the text, given by the places of the lines around it. If the line map is not
    /// recorded, no line is inserted for which an equal one is removed.
    fn splice(&mut self, change: usize, splice: &Splice, bounds: Range<usize>, record: Record) {
        let there: Vec<usize> = self.there().into_iter().filter(|place| bounds.contains(place)).collect();
        let at = splice.at % (there.len() + 1);
        let removed = &there[at..(at + splice.removed).min(there.len())];
        let gone: Vec<&str> = removed.iter().map(|place| self.lines[*place].text).collect();
        let added: Vec<&'static str> =
            splice.added.iter().filter(|text| record == Record::Lines || !gone.contains(text)).copied().collect();
        removed.iter().for_each(|place| self.lines[*place].deleted_by.push(change));
        // Directly above the next present line, so below all deleted ones.
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

    /// Each author changes only his own blocks, which fixed lines separate, or both authors change every block.
    fn act(&mut self, act: &Act, has_own_blocks: bool) {
        let change = self.steps.len();
        let before = self.document.ids();
        // Without a recorded line map, this must be a single change, or the contents may suggest another one.
        let most = if act.record == Record::Lines { act.splices.len() } else { 1 };
        for splice in act.splices.iter().take(most) {
            let bounds = if has_own_blocks { self.block(act.author, splice.at) } else { 0..self.document.lines.len() };
            self.document.splice(change, splice, bounds, act.record);
        }
        let lines = lines_between(&before, &self.document.ids());
        self.take_step(act.author, self.document.text(), lines, act.record, Vec::new());
    }

    /// The lines between two fixed lines.
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

    /// Undoes these changes, except for these hunks of each.
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

    /// Undoes changes, which is a change as well.
    fn take_undo(&mut self, undone: &UndoneText) {
        let lines = undone.lines.clone().unwrap();
        self.take_step(Author::Ann, undone.text.clone(), lines, Record::Lines, undone.undone.clone());
    }
}

/// The line map between two lists of identities.
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

/// Blocks that belong to the authors in turn, separated by fixed lines.
fn blocks() -> impl Strategy<Value = Vec<&'static str>> {
    prop::collection::vec(added(), 2..7).prop_map(|blocks| {
        let divided = blocks.into_iter().flat_map(|block| std::iter::once("fixed").chain(block));
        divided.chain(["fixed"]).collect()
    })
}

fn story_of(base: &[&'static str], acts: &[Act], has_own_blocks: bool) -> Story {
    let mut story = Story::of(base);
    acts.iter().for_each(|act| story.act(act, has_own_blocks));
    story
}

/// Checks that only lines of this author were removed, and only lines that he had deleted were inserted.
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

    /// If the authors keep apart and everything is recorded, no hunk is left, and the result is what the other author
    /// wrote.
    #[test]
    fn taking_one_author_back_leaves_the_other(base in blocks(), acts in prop::collection::vec(act(EXACT), 1..12)) {
        let story = story_of(&base, &acts, true);
        let undone = story.undo_author(Author::Ann);
        prop_assert_eq!(&undone.left, &[]);
        prop_assert_eq!(undone.text, story.document.without(&story.steps, Author::Ann).text());
    }

    /// As above, but some changes are whole-file writes or not recorded: the proven part is right, and the rest is
    /// left.
    #[test]
    fn without_a_record_it_is_right_or_left(base in blocks(), acts in prop::collection::vec(act(ANY), 1..8)) {
        let story = story_of(&base, &acts, true);
        let undone = story.undo_author(Author::Ann);
        if undone.left.is_empty() {
            prop_assert_eq!(undone.text, story.document.without(&story.steps, Author::Ann).text());
        }
    }

    /// Wherever the authors write, no line of the other one is lost or changed, and no line appears that was not there
    /// before.
    #[test]
    fn undo_touches_no_line_of_another_author(base in base(), acts in prop::collection::vec(act(EXACT), 1..10)) {
        let story = story_of(&base, &acts, false);
        for author in [Author::Ann, Author::Bob] {
            assert_touches_only(&story, author, &story.undo_author(author));
        }
        // Undoing a single change does no such harm either.
        for (index, step) in story.steps.iter().enumerate() {
            assert_touches_only(&story, step.author, &story.undo(|other| other == index, &[]));
        }
    }

    /// Undoing an undo restores the same text, even if the other author goes on in between; and so does undoing that
    /// again.
    #[test]
    fn undo_and_redo_are_each_others_inverse(
        base in blocks(),
        acts in prop::collection::vec(act(EXACT), 1..8),
        later in prop::collection::vec(act(EXACT), 0..4),
    ) {
        let mut story = story_of(&base, &acts, true);
        let (document, first) = (story.document.clone(), story.steps.len());
        let undone = story.undo_author(Author::Ann);
        story.take_undo(&undone);
        prop_assert_eq!(&story.undo(|index| index == first, &[]).text, &document.text());
        // The other author's changes are the same with and without the undo.
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
        // Undo Ann's changes once more: the map leads through the redo and the undo.
        let again = story.undo(|index| index < first && story.steps[index].author == Author::Ann, &[]);
        prop_assert_eq!(&again.left, &[]);
        prop_assert_eq!(again.text, alone.present);
    }

    /// Undoing in two steps has the same result as undoing in one.
    #[test]
    fn the_rest_can_be_undone_later(base in blocks(), acts in prop::collection::vec(act(EXACT), 1..8), hunk in 0usize..9) {
        let mut story = story_of(&base, &acts, true);
        let all = story.undo_author(Author::Ann);
        // Some hunks are reported as undone before, so they are left.
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
