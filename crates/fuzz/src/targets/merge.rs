//! A merge and a forecast agree, whatever is known of the other side, and differences from others are never trusted.

use surehand_core::{
    Forecast, Hunk,
    forecast::{UnknownForecast, Version, VersionHunk, apply, forecast},
    merge3::{Conflict, MarkerNames, hunks, is_binary, merge3},
};

use crate::source::Source;

pub(super) const WORDS: &[&str] = &["a\n", "b\n", "\n", "}\n", "\r\n", "a\nb\nc\n", "line\n", "x"];

const NAMES: MarkerNames<'_> = MarkerNames { mine: "mine", theirs: "theirs" };

pub(super) fn run(data: &[u8]) {
    let mut source = Source::new(data);
    let foreign = foreign_hunks(source.until_zero(60));
    let [base, mine, theirs] = [(); 3].map(|()| source.until_zero(400));
    if [base, mine, theirs].into_iter().any(is_binary) {
        return;
    }
    let merge = merge3(base, mine, theirs).expect("it is short");
    let conflicts = merge.conflicts();
    assert_eq!(merge.is_clean(), conflicts.is_empty());
    conflicts.iter().for_each(|conflict| check_lines(conflict, mine, theirs));
    assert_eq!(merge.is_clean(), merge3(base, theirs, mine).expect("it is short").is_clean(), "the sides are equal");
    assert_eq!(merge3(base, base, theirs).expect("it is short").text(NAMES), theirs);
    assert_eq!(merge3(base, mine, base).expect("it is short").text(NAMES), mine);

    let whole = forecast(base, &Version::Content(mine), &Version::Content(theirs));
    assert_eq!(whole == Forecast::Clean, merge.is_clean());
    let differences = hunks(base, theirs).expect("it is short");
    if let Ok(theirs) = str::from_utf8(theirs) {
        let known = with_text(&differences, theirs);
        assert_eq!(apply(base, &known).expect("it is from this base").expect("all text is known"), theirs.as_bytes());
        assert_eq!(forecast(base, &Version::Content(mine), &Version::Hunks(known)), whole);
    }
    let hidden = differences.into_iter().map(|lines| VersionHunk { lines, text: None }).collect();
    match forecast(base, &Version::Content(mine), &Version::Hunks(hidden)) {
        Forecast::Clean => assert!(merge.is_clean()),
        Forecast::SameLines(_) => assert!(!merge.is_clean()),
        Forecast::Unknown(UnknownForecast::NotShared(_)) => {}
        other => panic!("{other:?}"),
    }
    // They may come from another base, or from nowhere.
    forecast(base, &Version::Content(mine), &Version::Hunks(foreign));
}

fn check_lines(conflict: &Conflict, mine: &[u8], theirs: &[u8]) {
    let count = |text: &[u8]| text.split_inclusive(|byte| *byte == b'\n').count();
    for (lines, text) in
        [(&conflict.mine, mine), (&conflict.my_change, mine), (&conflict.their_change, mine), (&conflict.theirs, theirs)]
    {
        assert!(lines.start <= lines.end && lines.end <= count(text), "{conflict:?}");
    }
}

fn with_text<'a>(differences: &[Hunk], text: &'a str) -> Vec<VersionHunk<'a>> {
    let ends = text.split_inclusive('\n').scan(0, |end, line| {
        *end += line.len();
        Some(*end)
    });
    let starts: Vec<usize> = std::iter::once(0).chain(ends).collect();
    let hunk = |lines: &Hunk| VersionHunk {
        lines: lines.clone(),
        text: Some(&text[starts[lines.after.start]..starts[lines.after.end]]),
    };
    differences.iter().map(hunk).collect()
}

/// Hunks as another machine may send them.
fn foreign_hunks(bytes: &[u8]) -> Vec<VersionHunk<'static>> {
    let number = |byte: u8| if byte == u8::MAX { u32::MAX as usize } else { usize::from(byte) };
    let hunk = |bytes: &[u8; 5]| VersionHunk {
        lines: Hunk { before: number(bytes[0])..number(bytes[1]), after: number(bytes[2])..number(bytes[3]) },
        text: [None, Some("x\n"), Some(""), Some("a\nb")][usize::from(bytes[4] % 4)],
    };
    bytes.as_chunks().0.iter().map(hunk).collect()
}
