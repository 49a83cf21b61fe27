//! Rebase. An edit of a file that others have changed has the result of an edit by a session that saw their change. An
//! edit of the lines that they changed is refused.

use surehand_core::{
    Anchor, Limits, LineRange, OnChange, Planned, Policy, Present, Refusal, RelPath, Target, Text, View,
    edit::{lines::LineEdit, replace::Replace},
    gate::Tracking,
    plan,
};

use crate::{
    model::{Endings, Page, line, number, words_of},
    source::Source,
};

pub(super) fn run(data: &[u8]) {
    let mut source = Source::new(data);
    let endings = Endings::draw(&mut source);
    let seen = Page::draw(&mut source, 16, endings);
    let now = seen.changed(&mut source);
    if seen.lines.is_empty() || seen.content() == now.content() {
        return;
    }
    let start = source.below(seen.lines.len());
    let end = (start + 1 + source.below(3)).min(seen.lines.len());
    let view = view(&mut source, &seen);
    let case = Case { seen: &seen, now: &now, view: &view, start, end };
    let new: Vec<String> = (0..source.below(4)).map(|_| line(&mut source)).collect();
    let new: Vec<&str> = new.iter().map(String::as_str).collect();
    case.by_lines(&new);
    case.by_text(&mut source, &new);
}

/// A view of all lines or of a part.
fn view(source: &mut Source<'_>, page: &Page) -> View {
    let text = page.text();
    if !source.flag() {
        return View::whole(&text);
    }
    let mut view = View::of(&text);
    let start = source.below(page.lines.len());
    let end = (start + 1 + source.below(12)).min(page.lines.len());
    view.show(LineRange::from_indexes(start..end).expect("at least one line"));
    view
}

struct Case<'a> {
    seen: &'a Page,
    now: &'a Page,
    view: &'a View,
    start: usize,
    end: usize,
}

impl Case<'_> {
    /// Replaces the lines by their anchors.
    fn by_lines(&self, new: &[&str]) {
        let anchor = |index: usize| Anchor::of(number(index), &self.seen.lines[index].text);
        let (at, to, text) = (anchor(self.start), anchor(self.end - 1), new.join("\n"));
        let edit = if new.is_empty() { LineEdit::Delete { at, to } } else { LineEdit::Replace { at, to, text: text.clone() } };
        let Ok(planned) = self.planned(|target| plan::edit_lines(target, &[edit])) else { return };
        // A newline at the end belongs to the last line and does not start another one.
        let lines = text.strip_suffix('\n').unwrap_or(&text);
        let new: Vec<&str> = if new.is_empty() { Vec::new() } else { lines.split('\n').collect() };
        assert_eq!(words_of(planned.text().expect("a text")), self.expected(&new), "{:?}", self.parts());
    }

    /// Replaces whole lines or a part of them by exact text.
    fn by_text(&self, source: &mut Source<'_>, new: &[&str]) {
        let words = self.seen.words();
        let mut old = words[self.start..self.end].join("\n");
        let mut new = new.join("\n");
        let with_newline = source.flag();
        if with_newline {
            old.push('\n');
            new.push('\n');
        }
        if old.is_empty() {
            return;
        }
        let edit = Replace { old: &old, new: &new, all: source.flag() };
        let Ok(planned) = self.planned(|target| plan::edit_file(target, &edit)) else { return };
        let text = self.now.text();
        let known = planned_on(&text, &text, &View::whole(&text), |target| plan::edit_file(target, &edit));
        let known = known.unwrap_or_else(|no| panic!("refused to who saw the change: {} {:?} {old:?}", no.code(), self.parts()));
        // With mixed endings, the usual one may differ for a session that saw the change.
        let is_mixed = |text: &Text| text.has_crlf() && text.as_str().replace("\r\n", "").contains('\n');
        let is_mixed = is_mixed(&text) || is_mixed(&self.seen.text()) || text.has_crlf() != self.seen.text().has_crlf();
        let content = |planned: &Planned| {
            let content = planned.text().map(|text| text.as_str().to_owned());
            if is_mixed { content.map(|content| content.replace("\r\n", "\n")) } else { content }
        };
        assert_eq!(content(&planned), content(&known), "not the result of who saw the change: {:?} {edit:?}", self.parts());
        // Without its newline, an empty line has no text.
        let has_last = with_newline || !words[self.end - 1].is_empty();
        if !edit.all && has_last && once(&self.seen.text(), &old) == Some(self.seen.text().start_of(self.start)) {
            self.check_untouched();
        }
    }

    /// The edited lines are still there, and adjacent.
    fn check_untouched(&self) {
        self.expected(&[]);
    }

    fn expected(&self, new: &[&str]) -> Vec<String> {
        let place = |index: usize| {
            let place = self.now.place(self.seen.lines[index].id);
            place.unwrap_or_else(|| panic!("line {} was changed, and edited all the same: {:?}", index + 1, self.parts()))
        };
        let (start, end) = (place(self.start), place(self.end - 1) + 1);
        assert_eq!(start + self.end - self.start, end, "lines that were parted are edited: {:?}", self.parts());
        let words = self.now.words();
        [&words[..start], new, &words[end..]].concat().into_iter().map(|line| line.trim_end_matches('\r').to_owned()).collect()
    }

    fn parts(&self) -> (String, String, usize, usize) {
        (self.seen.content(), self.now.content(), self.start + 1, self.end)
    }

    fn planned(&self, plan: impl FnOnce(&Target<'_>) -> Result<Planned, Refusal>) -> Result<Planned, Refusal> {
        planned_on(&self.seen.text(), &self.now.text(), self.view, plan)
    }
}

fn once(text: &Text, part: &str) -> Option<usize> {
    let mut places = text.as_str().match_indices(part).map(|(at, _)| at);
    places.next().filter(|_| places.next().is_none())
}

fn planned_on(
    seen: &Text,
    now: &Text,
    view: &View,
    plan: impl FnOnce(&Target<'_>) -> Result<Planned, Refusal>,
) -> Result<Planned, Refusal> {
    let (path, limits, present) = (RelPath::new("a").expect("a name"), Limits::default(), Present::Text(now.clone()));
    let policy = Policy { on_change: OnChange::Rebase, ..Policy::default() };
    let tracking = Tracking::Seen { view, text: Some(seen), provenance: None };
    plan(&Target { path: &path, tracking, present: &present, policy: &policy, limits: &limits })
}
