//! Anchors. An accepted edit changes exactly the lines that were last shown under the numbers it names, whatever was
//! read, edited and changed by others in between. An equal line is never mistaken for one of them.

use std::collections::HashMap;

use surehand_core::{
    Anchor, Cause, Limits, LineNo, LineRange, LineSet, OnChange, Planned, Policy, Present, Refusal, RelPath, Target, View,
    edit::lines::LineEdit, gate::Tracking, plan, text::LineEnding,
};

use crate::{
    model::{Endings, Line, Page, line, number, words_of},
    source::Source,
};

pub(super) fn run(data: &[u8]) {
    let mut source = Source::new(data);
    let text = String::from_utf8_lossy(source.clone().take(12)).into_owned();
    if let Ok(anchor) = text.parse::<Anchor>() {
        assert_eq!(anchor.to_string().parse(), Ok(anchor), "{text:?}");
    }
    let on_change = source.pick(&[OnChange::Refuse, OnChange::Rebase]);
    // All endings are equal: if equal lines differed only in their endings, an edit could keep either of them.
    let endings = source.pick(&[Endings::Lf, Endings::Lf, Endings::CrLf, Endings::CrLf]);
    let mut reader = Reader::of(Page::draw(&mut source, 14, endings), on_change);
    for _ in 0..20 {
        if source.is_empty() {
            break;
        }
        match source.below(4) {
            0 => reader.read(&mut source),
            1 => reader.disturb(&mut source),
            _ => reader.edit(&mut source),
        }
    }
}

/// A session with the lines that it was really shown.
struct Reader {
    now: Page,
    /// The file when the view was made.
    seen: Page,
    view: View,
    /// The line last shown under each number, with its text.
    shown: HashMap<u32, Line>,
    on_change: OnChange,
    /// A log for the person who investigates a failure.
    story: String,
}

impl Reader {
    fn of(page: Page, on_change: OnChange) -> Self {
        let view = View::of(&page.text());
        Self { now: page.clone(), seen: page, view, shown: HashMap::new(), on_change, story: String::new() }
    }

    /// Another program changes the file.
    fn disturb(&mut self, source: &mut Source<'_>) {
        let before = self.now.content();
        self.now = self.now.changed(source);
        // Lines that were added and removed unseen cannot be distinguished.
        self.now.recognise(&self.seen);
        self.story.push_str(&format!("changed by another program: {before:?} -> {:?}\n", self.now.content()));
    }

    /// A read of some lines, as the engine records it.
    fn read(&mut self, source: &mut Source<'_>) {
        let text = self.now.text();
        if self.view.version() != text.version() {
            let seen = self.seen.text();
            self.view = self.view.carried(&seen, &surehand_core::LineMap::between(&seen, &text), &text);
            self.view.know_again();
            self.seen = self.now.clone();
        }
        let start = source.below(self.now.lines.len() + 1);
        let end = (start + 1 + source.below(8)).min(self.now.lines.len());
        if let Some(range) = LineRange::from_indexes(start..end) {
            self.story.push_str(&format!("read {range} of {:?}\n", self.now.content()));
            self.view.show(range);
            self.was_shown(&[range].into_iter().collect());
        }
    }

    fn was_shown(&mut self, lines: &LineSet) {
        for line in lines.iter() {
            self.shown.insert(line.get(), self.seen.lines[line.index()].clone());
        }
    }

    fn edit(&mut self, source: &mut Source<'_>) {
        let orders: Vec<Order> = (0..=source.below(3)).map(|_| Order::draw(source, self)).collect();
        let edits: Vec<LineEdit> = orders.iter().map(Order::edit).collect();
        let (now, seen) = (self.now.text(), self.seen.text());
        match self.plan(&edits) {
            Ok(planned) => self.check_done(&orders, &planned),
            Err(refused) => {
                self.story.push_str(&format!("refused {edits:?}: {}", refused));
                assert!(refused.to_string().len() < 40_000, "a refusal is bounded");
                if let Some(view) = refused.view_after.clone() {
                    let is_of = |page: &surehand_core::Text| view.version() == page.version();
                    assert!(is_of(&now) || is_of(&seen), "a view of what was there");
                    if is_of(&now) {
                        self.seen = self.now.clone();
                    }
                    self.view = view;
                    self.was_shown(&shown_lines(&refused));
                }
            }
        }
    }

    fn plan(&self, edits: &[LineEdit]) -> Result<Planned, Refusal> {
        let (path, limits, present) = (RelPath::new("a").expect("a name"), Limits::default(), Present::Text(self.now.text()));
        let policy = Policy { on_change: self.on_change, ..Policy::default() };
        let seen = self.seen.text();
        let tracking = Tracking::Seen { view: &self.view, text: Some(&seen), provenance: None };
        plan::edit_lines(&Target { path: &path, tracking, present: &present, policy: &policy, limits: &limits }, edits)
    }

    /// Makes the edits by the identities of lines, from the bottom up, and compares.
    fn check_done(&mut self, orders: &[Order], planned: &Planned) {
        let mut placed: Vec<(usize, usize, usize, &Order)> = orders
            .iter()
            .enumerate()
            .map(|(number, order)| {
                let (start, end) = order.lines(self);
                (start, end, number, order)
            })
            .collect();
        placed.sort_by_key(|(start, end, number, _)| (*start, *end, *number));
        let placed = self.with_one_end(&placed);
        // If edits touch each other, none restores what another one removes.
        let mut expected = self.now.clone();
        for (index, (start, end, new)) in placed.iter().enumerate().rev() {
            let is_below = index.checked_sub(1).is_none_or(|above| placed[above].1 < *start);
            let is_alone = is_below && placed.get(index + 1).is_none_or(|below| *end < below.0);
            if is_alone {
                expected.replace(*start..*end, new);
            } else {
                expected.replace(*start..*end, &[]);
                expected.replace(*start..*start, new);
            }
        }
        let made = planned.text().expect("a text");
        let edits: Vec<LineEdit> = orders.iter().map(Order::edit).collect();
        self.story.push_str(&format!("edited by {edits:?}: {:?} -> {:?}\n", self.now.content(), made.as_str()));
        let wanted: Vec<&str> = expected.words().iter().map(|line| line.trim_end_matches('\r')).collect();
        assert_eq!(words_of(made), wanted, "another line was edited\n{}", self.story);
        self.view = planned.view_after().expect("a session that is tracked").clone();
        assert_eq!(self.view.version(), made.version());
        for (line, text) in expected.lines.iter_mut().zip(0..) {
            line.ending = made.ending(number(text));
            line.text = made.line(number(text)).to_owned();
        }
        self.now = expected.clone();
        self.seen = expected;
        if let Some(rebased) = planned.rebased() {
            self.was_shown(&rebased.fresh.shown);
        }
    }

    /// The edits. At the end of a file without a final newline, edits that concern its last line are combined.
    fn with_one_end<'a>(&self, placed: &[(usize, usize, usize, &'a Order)]) -> Vec<(usize, usize, Vec<&'a str>)> {
        let count = self.now.lines.len();
        let mut from = placed.len();
        if self.now.lines.last().is_some_and(|last| last.ending == LineEnding::None) {
            let mut start = count;
            while let Some((above, _, _, _)) = from.checked_sub(1).map(|index| placed[index]).filter(|edit| edit.1 == start) {
                start = above;
                from -= 1;
            }
            let comes = |edits: &[(usize, usize, usize, &Order)]| edits.iter().any(|edit| !edit.3.new_lines().is_empty());
            while placed.get(from).is_some_and(|edit| edit.0 == edit.1 && edit.1 < count) && comes(&placed[from + 1..]) {
                from += 1;
            }
        }
        let mut edits: Vec<_> = placed[..from].iter().map(|(start, end, _, order)| (*start, *end, order.new_lines())).collect();
        if let Some(first) = placed.get(from) {
            edits.push((first.0, count, placed[from..].iter().flat_map(|edit| edit.3.new_lines()).collect()));
        }
        edits
    }

    /// The line that an anchor means: the one last shown under this number. If that one has another text, it is the
    /// line that has the number now, as counted by a session that inserted lines above it.
    fn meant(&self, anchor: Anchor) -> usize {
        let shown = self.shown.get(&anchor.line.get()).filter(|line| Anchor::of(anchor.line, &line.text) == anchor);
        let id = shown.unwrap_or_else(|| &self.seen.lines[anchor.line.index()]).id;
        self.now.place(id).unwrap_or_else(|| panic!("{anchor}: the line that was shown is gone\n{}", self.story))
    }
}

fn shown_lines(refused: &Refusal) -> LineSet {
    let (mut lines, remaps) = match &refused.cause {
        Cause::Stale { fresh, remaps, .. } | Cause::AnchorMismatch { fresh, remaps, .. } => {
            (fresh.shown.clone(), remaps.as_slice())
        }
        Cause::Partial { fresh, .. } => (fresh.shown.clone(), [].as_slice()),
        _ => (LineSet::new(), [].as_slice()),
    };
    remaps.iter().for_each(|remap| lines.insert(LineRange::line(remap.to.line)));
    lines
}

/// An edit that a model might send.
struct Order {
    what: What,
    at: Anchor,
    to: Anchor,
    text: String,
}

#[derive(Clone, Copy)]
enum What {
    Replace,
    Delete,
    Before,
    After,
    Append,
    Prepend,
}

impl Order {
    fn draw(source: &mut Source<'_>, reader: &Reader) -> Self {
        let what = source.pick(&[What::Replace, What::Delete, What::Before, What::After, What::Append, What::Prepend]);
        let at = anchor(source, reader);
        let to = if source.flag() { anchor(source, reader) } else { at };
        let text: Vec<String> = (0..=source.below(3)).map(|_| line(source)).collect();
        Self { what, at, to, text: text.join("\n") }
    }

    fn edit(&self) -> LineEdit {
        let (at, to, text) = (self.at, self.to, self.text.clone());
        match self.what {
            What::Replace => LineEdit::Replace { at, to, text },
            What::Delete => LineEdit::Delete { at, to },
            What::Before => LineEdit::InsertBefore { at, text },
            What::After => LineEdit::InsertAfter { at, text },
            What::Append => LineEdit::Append { text },
            What::Prepend => LineEdit::Prepend { text },
        }
    }

    /// The lines of the file that it replaces, if the anchors mean the lines shown.
    fn lines(&self, reader: &Reader) -> (usize, usize) {
        let count = reader.now.lines.len();
        match self.what {
            What::Replace | What::Delete => (reader.meant(self.at), reader.meant(self.to) + 1),
            What::Before => (reader.meant(self.at), reader.meant(self.at)),
            What::After => (reader.meant(self.at) + 1, reader.meant(self.at) + 1),
            What::Append => (count, count),
            What::Prepend => (0, 0),
        }
    }

    fn new_lines(&self) -> Vec<&str> {
        let new = self.text.strip_suffix('\n').unwrap_or(&self.text);
        if matches!(self.what, What::Delete) { Vec::new() } else { new.split('\n').collect() }
    }
}

/// An anchor that a model may remember: of a line as it is, as it was seen, or as it was shown under a number.
fn anchor(source: &mut Source<'_>, reader: &Reader) -> Anchor {
    let page = if source.flag() { &reader.now } else { &reader.seen };
    let index = source.below(page.lines.len().max(1));
    let line = source.below(page.lines.len().max(1));
    let text = page.lines.get(if source.below(4) == 3 { line } else { index }).map_or("", |line| line.text.as_str());
    Anchor::of(LineNo::at_index(index), text)
}
