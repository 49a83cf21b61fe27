//! Forecasts from whole versions, and from their differences alone.

use proptest::prelude::*;
use surehand_core::{
    forecast::{Forecast, Side, UnknownForecast, Version, VersionHunk, apply, forecast, in_line_endings_of},
    merge3::{hunks, merge3},
};

fn content(text: &str) -> Version<'_> {
    Version::Content(text.as_bytes())
}

/// A version as its differences from the base, with or without their text.
fn differences<'a>(base: &str, text: &'a str, has_text: bool) -> Version<'a> {
    let starts: Vec<usize> = std::iter::once(0)
        .chain(text.split_inclusive('\n').scan(0, |end, line| {
            *end += line.len();
            Some(*end)
        }))
        .collect();
    let hunks = hunks(base.as_bytes(), text.as_bytes()).unwrap().into_iter();
    Version::Hunks(
        hunks
            .map(|lines| {
                let text = has_text.then(|| &text[starts[lines.after.start]..starts[lines.after.end]]);
                VersionHunk { lines, text }
            })
            .collect(),
    )
}

const BASE: &str = "a\nb\nc\nd\ne\nf\n";

#[test]
fn different_lines_are_nothing_and_the_same_lines_are_a_conflict() {
    let (mine, apart, near) = (content("a\nb\nC\nd\ne\nf\n"), content("A\nb\nc\nd\ne\nf\n"), content("a\nb\nc\nX\ne\nf\n"));
    assert_eq!(forecast(BASE.as_bytes(), &mine, &apart), Forecast::Clean);
    let Forecast::SameLines(conflicts) = forecast(BASE.as_bytes(), &mine, &near) else { panic!("adjacent lines conflict") };
    let [conflict] = &conflicts[..] else { panic!("there is one conflict") };
    assert_eq!((conflict.my_lines().to_string(), conflict.their_lines().to_string()), ("3".to_owned(), "4".to_owned()));
    assert_eq!((conflict.mine.clone(), conflict.theirs.clone()), (2..4, 2..4));
}

#[test]
fn their_lines_are_given_in_my_numbers() {
    let mine = content("0\n1\na\nb\nc\nD\ne\nf\n");
    let theirs = content("a\nb\nc\n1\n2\n3\nf\n");
    let Forecast::SameLines(conflicts) = forecast(BASE.as_bytes(), &mine, &theirs) else { panic!("it is a conflict") };
    assert_eq!(conflicts[0].my_lines().to_string(), "6");
    assert_eq!(conflicts[0].their_lines().to_string(), "6-7");
}

#[test]
fn an_insertion_and_a_removal_have_neighbours_for_lines() {
    let (mine, theirs) = (content("a\nb\ne\nf\n"), content("a\nb\nc\nX\nd\ne\nf\n"));
    let Forecast::SameLines(conflicts) = forecast(BASE.as_bytes(), &mine, &theirs) else { panic!("it is a conflict") };
    assert_eq!(conflicts[0].my_lines().to_string(), "2-3");
}

#[test]
fn a_side_that_is_the_base_conflicts_with_nothing() {
    for other in [content("x\n"), Version::Deleted, Version::Binary] {
        assert_eq!(forecast(BASE.as_bytes(), &content(BASE), &other), Forecast::Clean);
        assert_eq!(forecast(BASE.as_bytes(), &other, &Version::Hunks(Vec::new())), Forecast::Clean);
    }
}

#[test]
fn a_deleted_file_conflicts_with_a_changed_one() {
    let changed = content("x\n");
    assert_eq!(forecast(BASE.as_bytes(), &changed, &Version::Deleted), Forecast::Deleted { by: Side::Theirs });
    assert_eq!(forecast(BASE.as_bytes(), &Version::Deleted, &changed), Forecast::Deleted { by: Side::Mine });
    assert_eq!(forecast(BASE.as_bytes(), &Version::Deleted, &Version::Deleted), Forecast::Clean);
}

#[test]
fn binary_files_conflict_unless_they_are_the_same() {
    let (mine, theirs) = (content("a\0b"), content("a\0c"));
    assert_eq!(forecast(b"a\0", &mine, &theirs), Forecast::Binary);
    assert_eq!(forecast(b"a\0", &mine, &mine), Forecast::Clean);
    assert_eq!(forecast(b"a\0", &mine, &Version::Binary), Forecast::Unknown(UnknownForecast::NotShared(Vec::new())));
}

#[test]
fn without_their_text_an_overlap_of_equal_size_is_not_known() {
    let mine = content("a\nb\nC\nd\ne\nf\n");
    let of = |theirs: &str| forecast(BASE.as_bytes(), &mine, &differences(BASE, theirs, false));
    assert!(matches!(of("a\nb\nC\nd\ne\nf\n"), Forecast::Unknown(UnknownForecast::NotShared(overlaps)) if overlaps.len() == 1));
    assert!(matches!(of("a\nb\nX\nd\ne\nf\n"), Forecast::Unknown(UnknownForecast::NotShared(_))));
    assert!(matches!(of("a\nb\nX\nX\nd\ne\nf\n"), Forecast::SameLines(_)));
    assert_eq!(of("A\nb\nc\nd\ne\nf\n"), Forecast::Clean);
}

#[test]
fn differences_from_another_base_are_not_used() {
    let (mine, theirs) = (content("a\nB\n"), differences(BASE, "a\nb\nc\nd\ne\nF\n", true));
    assert_eq!(forecast(b"a\nb\n", &mine, &theirs), Forecast::Unknown(UnknownForecast::OtherBase));
    let Version::Hunks(mut hunks) = theirs else { unreachable!() };
    for shift in [1, 100] {
        hunks[0].lines.after = hunks[0].lines.after.start + shift..hunks[0].lines.after.end + shift;
        assert_eq!(apply(BASE.as_bytes(), &hunks), Err(UnknownForecast::OtherBase));
    }
}

#[test]
fn line_endings_are_those_of_the_base_only_if_all_of_them_differ() {
    let check = |base: &str, content: &str, expected: &str| {
        assert_eq!(in_line_endings_of(base.as_bytes(), content.as_bytes()), expected.as_bytes(), "{base:?} {content:?}");
    };
    check("a\nb\n", "a\r\nB\r\n", "a\nB\n");
    check("a\nb\n", "a\r\nB", "a\nB");
    check("a\nb\n", "a\r\nB\n", "a\r\nB\n");
    check("a\r\nb\n", "a\r\nB\r\n", "a\r\nB\r\n");
    check("", "a\r\n", "a\r\n");
    check("a", "a\r\n", "a\r\n");
    check("a\n", "a\rb", "a\rb");
}

#[test]
fn a_forecast_can_be_limited_to_the_lines_of_an_edit() {
    let (mine, theirs) = (content("A\nb\nc\nd\ne\nF\n"), content("1\nb\nc\nd\ne\n2\n"));
    let whole = forecast(BASE.as_bytes(), &mine, &theirs);
    let line = |number: usize| surehand_core::LineRange::from_indexes(number - 1..number).into_iter().collect();
    assert_eq!(whole.conflicts().len(), 2);
    assert_eq!(whole.on_lines(&line(6)).conflicts(), &whole.conflicts()[1..]);
    assert_eq!(whole.on_lines(&line(3)), Forecast::Clean);
}

fn text() -> impl Strategy<Value = String> {
    (prop::collection::vec(0_usize..7, 0..14), prop::bool::weighted(0.9)).prop_map(|(lines, has_end)| {
        let text: String = lines.iter().map(|line| ["a\n", "b\n", "c\n", "\n", "dd\r\n", "}\n", "e\n"][*line]).collect();
        if has_end { text } else { text.trim_end_matches('\n').to_owned() }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]
    #[test]
    fn differences_say_what_whole_versions_say(base in text(), mine in text(), theirs in text()) {
        let whole = forecast(base.as_bytes(), &content(&mine), &content(&theirs));
        let with_text = differences(&base, &theirs, true);
        let Version::Hunks(hunks) = &with_text else { unreachable!() };
        prop_assert_eq!(apply(base.as_bytes(), hunks).unwrap().unwrap(), theirs.as_bytes());
        prop_assert_eq!(forecast(base.as_bytes(), &content(&mine), &with_text), whole.clone());

        let merge = merge3(base.as_bytes(), mine.as_bytes(), theirs.as_bytes()).unwrap();
        prop_assert_eq!(whole == Forecast::Clean, merge.is_clean());
        match forecast(base.as_bytes(), &content(&mine), &differences(&base, &theirs, false)) {
            Forecast::Clean => prop_assert!(merge.is_clean()),
            Forecast::SameLines(_) => prop_assert!(!merge.is_clean()),
            Forecast::Unknown(UnknownForecast::NotShared(_)) => {}
            other => prop_assert!(false, "{:?}", other),
        }
        for conflict in merge.conflicts() {
            for (range, text) in [(&conflict.mine, &mine), (&conflict.my_change, &mine), (&conflict.their_change, &mine), (&conflict.theirs, &theirs)] {
                prop_assert!(range.start <= range.end && range.end <= text.split_inclusive('\n').count());
            }
        }
    }
}
