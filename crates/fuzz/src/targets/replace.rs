//! Replacing text. If exactly one place has the text, it is replaced and every other byte stays. Otherwise nothing
//! happens, and everything that the refusal says about the file is true.

use surehand_core::{
    Cause, Limits, Planned, Policy, Present, Refusal, RelPath, Target, Text, View, edit::replace::Replace, gate::Tracking, plan,
};

use crate::{
    model::{Endings, Page, written},
    source::Source,
};

pub(super) const WORDS: &[&str] =
    &["\r\n", "\n", "\u{feff}", "\u{a0}", "\u{200b}", "’", "é", "e\u{301}", "    ", "\t", "12|", "12#ab|", "日本"];

pub(super) fn run(data: &[u8]) {
    let mut source = Source::new(data);
    let content = content(&mut source);
    let Ok(text) = Text::of(content.clone()) else { return };
    let (old, new) = (old(&mut source, &text), new(&mut source));
    let all = source.flag();
    let edit = Replace { old: &old, new: &new, all };
    let body = &text.as_str()[text.body_start()..];
    match planned(&text, &edit) {
        Ok(planned) => check_made(&text, &edit, planned.text().expect("a text")),
        Err(refused) => check_refused(&text, &edit, body, &refused),
    }
}

fn content(source: &mut Source<'_>) -> String {
    let bom = if source.below(8) == 7 { "\u{feff}" } else { "" };
    let content = match source.flag() {
        false => {
            let endings = Endings::draw(source);
            Page::draw(source, 16, endings).content()
        }
        true => String::from_utf8_lossy(source.until_zero(120)).into_owned(),
    };
    format!("{bom}{content}")
}

/// A part of the file as it is or as it is shown, perhaps with a typo, or another text.
fn old(source: &mut Source<'_>, text: &Text) -> String {
    let content = text.as_str();
    let cut = |at: usize| (0..=at.min(content.len())).rev().find(|at| content.is_char_boundary(*at)).unwrap_or(0);
    let kind = source.below(5);
    if kind == 4 {
        return written(source, 4);
    }
    let start = cut(source.below(256) * content.len() / 256);
    let end = cut(start + source.below(64)).max(start);
    let part = &content[start..end];
    match kind {
        0 => part.to_owned(),
        1 => part.replace("\r\n", "\n"),
        2 => part.replace('\n', "\r\n"),
        _ => {
            let at = part.char_indices().map(|(at, _)| at).nth(source.below(8)).unwrap_or(0);
            format!("{}{}{}", &part[..at], source.pick(&[" ", "x", "\n", "\t", "\u{a0}", ""]), &part[at..])
        }
    }
}

fn new(source: &mut Source<'_>) -> String {
    let new = written(source, 3);
    if source.flag() { new.replace('\n', "\r\n") } else { new }
}

fn planned(text: &Text, edit: &Replace<'_>) -> Result<Planned, Refusal> {
    let (path, limits, policy, present) =
        (RelPath::new("a").expect("a name"), Limits::default(), Policy::default(), Present::Text(text.clone()));
    let view = View::whole(text);
    let tracking = Tracking::Seen { view: &view, text: Some(text), provenance: None };
    plan::edit_file(&Target { path: &path, tracking, present: &present, policy: &policy, limits: &limits }, edit)
}

fn plain(text: &str) -> String {
    text.replace("\r\n", "\n")
}

fn check_made(text: &Text, edit: &Replace<'_>, made: &Text) {
    if edit.old.is_empty() {
        assert!(text.as_str().is_empty(), "only an empty file is filled");
        return;
    }
    let (before, after) = (text.as_str(), made.as_str());
    assert!(made.has_bom() || !text.has_bom(), "the byte order mark");
    if edit.all {
        return;
    }
    let places = places(text, edit.old);
    let fits = |(start, end): &(usize, usize)| {
        let middle = after.len().checked_sub(start + before.len() - end);
        middle.is_some_and(|length| {
            after.starts_with(&before[..*start]) && after.ends_with(&before[*end..]) && {
                let middle = after.get(*start..start + length);
                middle.is_some_and(|middle| plain(middle) == plain(edit.new))
            }
        })
    };
    assert!(places.iter().any(fits), "{before:?} {edit:?} {after:?}");
}

/// Every place with this text, ignoring the kind of line endings.
fn places(text: &Text, old: &str) -> Vec<(usize, usize)> {
    let (content, wanted) = (text.as_str(), plain(old));
    let is_place = |start: usize, end: usize| content.get(start..end).is_some_and(|part| plain(part) == wanted);
    let starts = text.body_start()..content.len();
    // A line break in the file has at most one byte more than in the text.
    let (length, breaks) = (wanted.len(), wanted.matches('\n').count());
    starts
        .flat_map(|start| (0..=breaks).map(move |more| (start, start + length + more)))
        .filter(|(start, end)| is_place(*start, *end))
        .collect()
}

fn check_refused(text: &Text, edit: &Replace<'_>, body: &str, refused: &Refusal) {
    assert!(refused.to_string().len() < 40_000, "a refusal is bounded");
    match &refused.cause {
        Cause::NotFound { nearest, .. } => {
            assert!(!body.contains(edit.old), "it is there: {:?} {edit:?}", text.as_str());
            let shown = nearest.iter().flat_map(|nearest| nearest.fresh.shown.iter());
            shown.for_each(|line| assert!(text.has_line(line), "a line of the file"));
            if let Some(nearest) = nearest {
                for (line, row) in &nearest.fresh.rows {
                    let full = text.line(*line);
                    assert!(row == full || !nearest.fresh.shown.contains(*line), "what is shown is what is there");
                }
            }
        }
        Cause::Ambiguous { lines } => {
            assert!(!edit.all && lines.len() > 1, "{lines:?}");
            lines.iter().for_each(|line| assert!(text.has_line(*line)));
        }
        _ => {}
    }
    if let Some(view) = &refused.view_after {
        assert_eq!(view.version(), text.version());
    }
}
