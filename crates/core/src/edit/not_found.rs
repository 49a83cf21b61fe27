//! Explains why a text is not in a file: the most similar lines, their first difference, whether the edit was made
//! already, and whether the text has the line prefixes of a read. All of this is for the refusal; nothing is edited.

use super::{
    find::{Match, Overlaps, find},
    look_alikes,
    similar_lines::{self, LineStep},
};
use crate::{
    excerpt::Excerpt,
    hash::Anchor,
    lines::{LineNo, LineRange, LineSet},
    refusal::{Cause, Divergence, LinePiece, NearestLines, PrefixedText, SameLooks},
    text::{LineEnding, Text},
};

/// Explains why a text was not found.
pub fn nearest(text: &Text, old: &str, new: &str) -> Cause {
    let Some(plain) = without_prefixes(old) else {
        let nearest = nearest_lines(text, old);
        let already_at = already_at(text, old, new, nearest.as_ref());
        return Cause::NotFound { nearest: nearest.map(Box::new), already_at, prefixed: None };
    };
    let found = if plain.is_empty() { Vec::new() } else { find(text, &plain, Overlaps::Count) };
    let places: Vec<LineRange> = found.iter().map(|place| lines_of(text, place)).collect();
    let nearest = if places.is_empty() { nearest_lines(text, &plain) } else { None };
    Cause::NotFound {
        nearest: nearest.map(Box::new),
        already_at: None,
        prefixed: Some(PrefixedText { places, also_new: without_prefixes(new).is_some() }),
    }
}

fn lines_of(text: &Text, place: &Match) -> LineRange {
    let (start, end) = (text.line_at(place.start), text.line_at(place.end.saturating_sub(1)));
    LineRange { start, end: end.max(start) }
}

/// The text without `12|` or `12#ab|` in front of each line; `None` if a line has no prefix, or the numbers are not in
/// order.
fn without_prefixes(text: &str) -> Option<String> {
    let mut plain = String::with_capacity(text.len());
    let mut last = 0;
    for line in text.split_inclusive('\n') {
        let (prefix, rest) = line.split_once('|')?;
        let prefix = prefix.trim_start_matches([' ', '+', '-']);
        let number: u32 = match prefix.contains('#') {
            true => prefix.parse::<Anchor>().ok()?.line.get(),
            false => prefix.parse().ok()?,
        };
        if number < last.max(1) {
            return None;
        }
        last = number;
        plain.push_str(rest);
    }
    (last > 0).then_some(plain)
}

/// The line where the replacement is already present. A few letters occur by chance, so they count only as a whole line
/// in the right place; text that is part of the old one does not count.
fn already_at(text: &Text, old: &str, new: &str, nearest: Option<&NearestLines>) -> Option<LineNo> {
    const SOME: usize = 6;
    const MANY: usize = 12;
    let letters = new.chars().filter(|c| c.is_alphanumeric()).count();
    if letters == 0 || old.contains(new.trim()) {
        return None;
    }
    let places = find(text, new, Overlaps::Count);
    let is_near = |place: &&Match| nearest.is_some_and(|nearest| nearest.lines.contains(text.line_at(place.start)));
    let is_all_of_its_lines = |place: &&Match| {
        let lines = lines_of(text, place);
        text.as_str()[text.span(lines)].trim() == new.trim()
    };
    let is_distinctive = letters >= MANY || letters >= SOME && places.len() == 1;
    let nearby = places.iter().find(|place| is_near(place) && (is_distinctive || is_all_of_its_lines(place)));
    nearby.or_else(|| places.first().filter(|_| is_distinctive)).map(|place| text.line_at(place.start))
}

fn nearest_lines(text: &Text, old: &str) -> Option<NearestLines> {
    let wanted: Vec<&str> = old.lines().collect();
    if old.trim().is_empty() || text.line_count() == 0 {
        return None;
    }
    let places = look_alikes::places(text, old);
    if let Some(place) = best_place(text, old, &places) {
        return Some(same_looks(text, old, &wanted, place, places.len() - 1));
    }
    let steps = similar_lines::find(text, &wanted)?;
    let on_line = |step: &LineStep| match *step {
        LineStep::Pair { line, .. } | LineStep::LeftOut { line } => Some(line),
        LineStep::Extra { .. } => None,
    };
    let (first, last) = (steps.iter().find_map(on_line)?, steps.iter().rev().find_map(on_line)?);
    let lines = LineRange::from_indexes(first..last + 1)?;
    let diverges = first_divergence(text, old, &wanted, &steps, None);
    let fresh = Excerpt::of(text, &around(lines, diverges.as_ref()));
    Some(NearestLines { lines, fresh, same_looks: None, diverges })
}

/// The first place with as many line breaks as the text, else the first place.
fn best_place<'a>(text: &Text, old: &str, places: &'a [Match]) -> Option<&'a Match> {
    let breaks = old.matches('\n').count();
    places.iter().find(|place| text.as_str()[(*place).clone()].matches('\n').count() == breaks).or(places.first())
}

fn same_looks(text: &Text, old: &str, wanted: &[&str], place: &Match, others: usize) -> NearestLines {
    const MOST_CHARS: usize = 4000;
    let exact = text.as_str()[place.clone()].replace("\r\n", "\n");
    let lines = lines_of(text, place);
    let steps = similar_lines::steps_within(text, wanted, lines.indexes());
    let column = text.as_str()[text.span(LineRange::line(lines.start)).start..place.start].chars().count();
    let diverges = first_divergence(text, old, wanted, &steps, Some(column));
    let is_short = exact.len() <= MOST_CHARS;
    let shown = if is_short { whole_lines(text, place, lines) } else { around(lines, diverges.as_ref()) };
    let differs_in = look_alikes::differs_in(old, &exact);
    let same_looks = SameLooks { exact: is_short.then_some(exact), differs_in, others };
    NearestLines { lines, fresh: Excerpt::of(text, &shown), same_looks: Some(same_looks), diverges }
}

/// The lines that the place covers completely.
fn whole_lines(text: &Text, place: &Match, lines: LineRange) -> LineSet {
    let is_whole = |line: &LineNo| {
        let start = text.span(LineRange::line(*line)).start;
        place.start <= start && start + text.line(*line).len() <= place.end
    };
    lines.iter().filter(is_whole).collect()
}

/// The lines to show: all if they are few, else those around the first difference.
fn around(lines: LineRange, diverges: Option<&Divergence>) -> LineSet {
    const FEW: u32 = 30;
    if lines.count() <= FEW {
        return [lines].into_iter().collect();
    }
    let centre = diverges.and_then(Divergence::line).unwrap_or(lines.start);
    let start = centre.moved(-10).unwrap_or(LineNo::FIRST).max(lines.start);
    let end = centre.moved(20).unwrap_or(centre).min(lines.end);
    LineRange::new(start, end).into_iter().collect()
}

/// The first difference between the wanted lines and those of the file. `column` is where the text starts in its first
/// line, if known.
fn first_divergence(text: &Text, old: &str, wanted: &[&str], steps: &[LineStep], column: Option<usize>) -> Option<Divergence> {
    let last = wanted.len() - 1;
    for (at, step) in steps.iter().enumerate() {
        match *step {
            LineStep::LeftOut { line } => {
                let more = steps[at + 1..].iter().take_while(|step| matches!(step, LineStep::LeftOut { .. })).count();
                return LineRange::from_indexes(line..line + more + 1).map(|lines| Divergence::LeftOut { lines });
            }
            LineStep::Extra { wanted: index } => {
                let next = steps[at..].iter().find_map(|step| match step {
                    LineStep::Pair { line, .. } | LineStep::LeftOut { line } => Some(LineNo::at_index(*line)),
                    LineStep::Extra { .. } => None,
                });
                return Some(Divergence::Extra { expected: wanted[index].to_owned(), before: next });
            }
            LineStep::Pair { wanted: index, line } => {
                let line = LineNo::at_index(line);
                let (want, have) = (wanted[index], text.line(line));
                let is_open = index == last && !old.ends_with('\n');
                let fits = match (index, is_open) {
                    (0, true) => have.contains(want),
                    (0, false) => have.ends_with(want),
                    (_, true) => have.starts_with(want),
                    (_, false) => have == want,
                };
                if !fits {
                    return Some(line_divergence(line, want, have, if index == 0 { column } else { Some(0) }));
                }
                if index == last && !is_open && text.ending(line) == LineEnding::None {
                    return Some(Divergence::NoFinalNewline);
                }
            }
        }
    }
    None
}

/// The first difference between two lines. A text may start anywhere in a line: without a `start`, the best position is
/// used.
fn line_divergence(line: LineNo, expected: &str, found: &str, start: Option<usize>) -> Divergence {
    let start = start.unwrap_or_else(|| best_start(expected, found));
    let same = expected.chars().zip(found.chars().skip(start)).take_while(|(a, b)| a == b).count();
    let (expected, found) = (LinePiece::of(expected, same), LinePiece::of(found, start + same));
    Divergence::Line { line, column: start + same + 1, expected, found }
}

/// The position in a line where the longest prefix of the text fits; only the start of a very long line is searched.
fn best_start(expected: &str, found: &str) -> usize {
    let have: Vec<char> = found.chars().take(2000).collect();
    let fits_from = |start: usize| expected.chars().zip(&have[start..]).take_while(|(a, b)| a == *b).count();
    // Of several best positions the first, so that lines that differ from their start are compared from their start.
    let best = (0..=have.len()).rev().max_by_key(|start| fits_from(*start)).unwrap_or_default();
    if fits_from(best) >= 4 { best } else { 0 }
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use proptest::prelude::*;

    use super::*;
    use crate::{path::RelPath, refusal::Refusal};

    fn text(content: &str) -> Text {
        Text::new(content.as_bytes().to_vec()).unwrap()
    }

    /// The refusal's text if `old` is to be replaced by `new`.
    fn explanation(content: &str, old: &str, new: &str) -> String {
        let text = text(content);
        assert!(find(&text, old, Overlaps::Count).is_empty(), "it is there");
        let refusal = Refusal::of(&RelPath::new("a.rs").unwrap(), nearest(&text, old, new));
        format!("{refusal}\n").replace("old_string is not in a.rs; nothing was written. ", "")
    }

    #[test]
    fn white_space_is_not_guessed_but_shown() {
        assert_snapshot!(explanation("x\n\tif a {\n", "    if a {", "y"), @"
        It differs from line 2 only in white space. The exact text to use:
        	if a {
        First difference on line 2, column 1: you gave 4 spaces in `····if a {`, the file has a TAB in `→if a {`.
        ");
        assert_snapshot!(explanation("f(a, b);\n", "f(a,  b)", "y"), @"
        It differs from line 1 only in white space. The exact text to use:
        f(a, b)
        First difference on line 1, column 6: you gave 2 spaces in `f(a,··b)`, the file has a space in `f(a,·b);`.
        ");
        assert_snapshot!(explanation("a = 1;  \nb = 2;\n", "a = 1;\nb = 2;", "y"), @"
        It differs from lines 1-2 only in white space. The exact text to use:
        a = 1;  
        b = 2;
        First difference on line 1, column 7: you gave nothing at the end of the line in `a = 1;`, the file has 2 spaces in `a = 1;··`.
        ");
        assert_snapshot!(explanation("first();\n\nsecond();\n", "first();\nsecond();", "y"), @"
        It differs from lines 1-3 only in white space. The exact text to use:
        first();

        second();
        First difference: the file has line 2 in between, which you left out.
        ");
        assert_snapshot!(explanation("call(one,\n     two);\n", "call(one, two);", "y"), @"
        It differs from lines 1-2 only in white space. The exact text to use:
        call(one,
             two);
        First difference on line 1, column 10: the line of the file ends there (`call(one,`), yours goes on (`call(one, two);`).
        ");
        assert_snapshot!(explanation("last line", "last line\n", "y"), @"
        It differs from line 1 only in white space. The exact text to use:
        last line
        The only difference: you gave a newline at the end, and the file ends without one.
        ");
        assert_snapshot!(explanation("\t \tx = 1\n\tx = 1\n", "  x = 1", "y"), @"
        It differs from line 1 (and 1 other place: add lines around it to name one) only in white space. The exact text to use:
        	 	x = 1
        First difference on line 1, column 1: you gave 2 spaces in `··x = 1`, the file has a TAB and a space and a TAB in `→·→x = 1`.
        ");
    }

    #[test]
    fn confusable_characters_are_named() {
        assert_snapshot!(explanation("it's here\n", "it\u{2019}s here", "y"), @"
        It differs from line 1 only in characters that look alike. The exact text to use:
        it's here
        First difference on line 1, column 3: you gave U+2019 (right single quotation mark) in `it⟨U+2019⟩s here`, the file has ' (U+0027) in `it's here`.
        ");
        assert_snapshot!(explanation("say \u{201c}hi\u{201d}\n", "say \"hi\"", "y"), @r#"
        It differs from line 1 only in characters that look alike. The exact text to use:
        say “hi”
        First difference on line 1, column 5: you gave " (U+0022) in `say "hi"`, the file has U+201C (left double quotation mark) in `say ⟨U+201C⟩hi”` (in JSON: `\u201c`).
        "#);
        assert_snapshot!(explanation("a\u{a0}b\n", "a b", "y"), @r"
        It differs from line 1 only in white space. The exact text to use:
        a b
        First difference on line 1, column 2: you gave a space in `a·b`, the file has U+00A0 (no-break space) in `a⟨U+00A0⟩b` (in JSON: `\u00a0`).
        ");
        assert_snapshot!(explanation("user\u{200b}name\n", "username", "y").replace('\u{200b}', "(zero width)"), @r"
        It differs from line 1 only in invisible characters. The exact text to use:
        user(zero width)name
        First difference on line 1, column 5: you gave nothing at that place in `username`, the file has U+200B (zero width space) in `user⟨U+200B⟩name` (in JSON: `\u200b`).
        ");
        assert_snapshot!(explanation("wait;\n", "wait\u{37e}", "y"), @"
        It differs from line 1 only in characters that look alike. The exact text to use:
        wait;
        First difference on line 1, column 5: you gave U+037E (Greek question mark) in `wait⟨U+037E⟩`, the file has ; (U+003B) in `wait;`.
        ");
        assert_snapshot!(explanation("and so on...\n", "and so on\u{2026}", "y"), @"
        It differs from line 1 only in characters that look alike. The exact text to use:
        and so on...
        First difference on line 1, column 10: you gave U+2026 (horizontal ellipsis) in `and so on⟨U+2026⟩`, the file has . (U+002E) in `and so on...`.
        ");
        assert_snapshot!(explanation("sc\u{43e}pe = 1\n", "scope = 1", "y"), @r"
        It differs from line 1 only in characters that look alike. The exact text to use:
        scоpe = 1
        First difference on line 1, column 3: you gave o (U+006F) in `scope = 1`, the file has U+043E (a Cyrillic letter that looks like o) in `sc⟨U+043E⟩pe = 1` (in JSON: `\u043e`).
        ");
        assert_snapshot!(explanation("caf\u{e9} = 1\n", "cafe\u{301} = 1", "y"), @r"
        It differs from line 1 only in Unicode normal form. The exact text to use:
        café = 1
        First difference on line 1, column 4: you gave é as U+0065 and U+0301 (combining acute accent), the file has it as U+00E9, the same letter in another Unicode normal form (in JSON: `\u00e9`).
        ");
        assert_snapshot!(explanation("nai\u{308}ve\n", "na\u{ef}ve", "y"), @r"
        It differs from line 1 only in Unicode normal form. The exact text to use:
        naïve
        First difference on line 1, column 3: you gave ï as U+00EF, the file has it as U+0069 and U+0308 (combining diaeresis), the same letter in another Unicode normal form (in JSON: `i\u0308`).
        ");
    }

    #[test]
    fn the_first_divergence_is_named() {
        assert_snapshot!(explanation("fn a() {\n    let total = 1;\n}\n", "fn a() {\n    let totel = 1;\n}", ""), @"
        Nearest: lines 1-3:
        1|fn a() {
        2|    let total = 1;
        3|}
        First difference on line 2, column 12: you gave `    let totel = 1;`, the file has `    let total = 1;`.
        ");
        assert_snapshot!(explanation("let x = compute(a, b);\n", "compute(a, c)", ""), @"
        Nearest: line 1:
        1|let x = compute(a, b);
        First difference on line 1, column 20: you gave `compute(a, c)`, the file has `let x = compute(a, b);`.
        ");
        assert_snapshot!(explanation("one two\nthree four\n", "one two\nthree four five\n", ""), @"
        Nearest: lines 1-2:
        1|one two
        2|three four
        First difference on line 2, column 11: the line of the file ends there (`three four`), yours goes on (`three four five`).
        ");
        assert_snapshot!(explanation("one two three\nfour five six\n", "one two\nfour five six\n", ""), @"
        Nearest: lines 1-2:
        1|one two three
        2|four five six
        First difference on line 1, column 8: your line ends there (`one two`), the file goes on (`one two three`).
        ");
        assert_snapshot!(explanation("alpha one\nbeta two\ngamma three\n", "alpha one\ngamma three", ""), @"
        Nearest: lines 1-3:
        1|alpha one
        2|beta two
        3|gamma three
        First difference: the file has line 2 in between, which you left out.
        ");
        assert_snapshot!(explanation("alpha one\ngamma three\n", "alpha one\nbeta two\ngamma three", ""), @"
        Nearest: lines 1-2:
        1|alpha one
        2|gamma three
        First difference: you gave `beta two` before line 2, the file has no such line there.
        ");
        assert_snapshot!(explanation("alpha one\n", "alpha one\nbeta", ""), @"
        Nearest: line 1:
        1|alpha one
        First difference: you gave `beta` after these lines, the file has no such line there.
        ");
    }

    #[test]
    fn ordinary_text_is_quoted_as_it_is() {
        assert_snapshot!(explanation("\tprint(\"it\u{2019}s\\t\", a)\n", "\tprint(\"it\u{2019}s\\t\", b)", ""), @r#"
        Nearest: line 1:
        1|	print("it’s\t", a)
        First difference on line 1, column 18: you gave `	print("it’s\t", b)`, the file has `	print("it’s\t", a)`.
        "#);
    }

    #[test]
    fn of_a_long_region_the_lines_around_the_difference_are_shown() {
        let content: String = (1..=100).map(|line| format!("line number {line}\n")).collect();
        let old = content.replace("number 60\n", "number sixty\n");
        let shown = explanation(&content, &old, "");
        assert!(shown.starts_with("Nearest: lines 1-100; around the first difference:\n50|line number 50\n"), "{shown}");
        assert!(shown.ends_with("80|line number 80\nFirst difference on line 60, column 13: you gave `line number sixty`, the file has `line number 60`.\n"), "{shown}");
    }

    #[test]
    fn only_lines_that_are_shown_in_full_count_as_seen() {
        let shown = |content: &str, old: &str| match nearest(&text(content), old, "") {
            Cause::NotFound { nearest: Some(nearest), .. } => nearest.fresh.shown.to_string(),
            other => panic!("{other:?}"),
        };
        assert_eq!(shown("x\n\tif a {\n", "    if a {"), "2");
        assert_eq!(shown("    let x = f(a, b);\n", "f(a,  b)"), "");
        assert_eq!(shown("    let x = f(a,\n  b,\nc) + 1;\n", "f(a,\nb,\nc)"), "2");
    }

    #[track_caller]
    fn check_already(content: &str, old: &str, new: &str, expected: Option<u32>) {
        let Cause::NotFound { already_at, .. } = nearest(&text(content), old, new) else { panic!() };
        assert_eq!(already_at.map(LineNo::get), expected);
    }

    #[test]
    fn an_edit_that_was_made_already_is_recognised() {
        check_already("a\nnew text\n", "old", "new text", Some(2));
        check_already("a\n  count = 2;\ncount = 2; y\n", "count = 1;", "count = 2;", Some(2));
        check_already("call_of_something(1)\ncall_of_something(1)\n", "call_of_nothing()", "call_of_something(1)", Some(1));
    }

    #[test]
    fn common_text_does_not_mean_that_the_edit_was_made() {
        check_already("fn a() {\n}\n", "fn b() {\n}", "}", None);
        check_already("a\n\nb\n", "old", "", None);
        check_already("a\n\nb\n", "old", "\n\n", None);
        check_already("return\nx\nreturn\n", "something else", "return", None);
        check_already("foo(baz)\n", "foo(bar)", "foo", None);
        check_already("let total = sum(items);\nnext();\n", "let total = sum(items);\nlast();", "let total = sum(items);", None);
    }

    #[test]
    fn prefixes_of_a_read_are_recognised() {
        assert_snapshot!(explanation("fn a() {\n    one();\n}\n", "1|fn a() {\n2|    one();", "x"), @"It has the LINE| prefixes of a read in front, which are not in the file. Without them it is on lines 1-2: send it without the LINE| prefix.");
        assert_snapshot!(explanation("fn a() {\n    one();\n}\n", "2#ab|    one();", "2#ab|    two();"), @"It has the LINE| prefixes of a read in front, which are not in the file. Without them it is on line 2: send old_string and new_string without the LINE| prefix.");
        assert_snapshot!(explanation("one();\none();\n", "1|one();", "x"), @"It has the LINE| prefixes of a read in front, which are not in the file. Without them it is there 2 times, starting on lines 1-2: send it without the LINE| prefix, with lines around to name one.");
        assert_snapshot!(explanation("fn a() {\n    one();\n}\n", "2|    ome();", "x"), @"
        It has the LINE| prefixes of a read in front, which are not in the file. Give it without the LINE| prefix; yet that is not there either. Nearest: line 2:
        2|    one();
        First difference on line 2, column 6: you gave `    ome();`, the file has `    one();`.
        ");
    }

    #[test]
    fn a_bar_alone_is_no_prefix() {
        let check = |text: &str, expected: Option<&str>| assert_eq!(without_prefixes(text).as_deref(), expected);
        check("a|b", None);
        check("1|a\nb", None);
        check("2|a\n1|b", None);
        check("1#a|x", None);
        check("0|x", None);
        check("", None);
        check(" 9|a\n+10|b\n", Some("a\nb\n"));
    }

    #[test]
    fn nothing_is_near_nothing() {
        assert_snapshot!(explanation("alpha\n", "\n\n", "y"), @"No line like it was found. Copy the text to replace from read_file, without the LINE| prefix.");
        assert_snapshot!(explanation("", "alpha", "y"), @"No line like it was found. Copy the text to replace from read_file, without the LINE| prefix.");
        assert_snapshot!(explanation("alpha\n", "zwei", "y"), @"No line like it was found. Copy the text to replace from read_file, without the LINE| prefix.");
    }

    proptest! {
        /// Every search has an answer that can be rendered, and a text that is reported as the exact one is in the
        /// file.
        #[test]
        fn the_exact_text_is_in_the_file(
            content in "([ab \t'\u{2019}\u{e9}\u{301}\u{200b}\u{2026}.]|\n|\r\n){0,40}", old in "([ab \t'\u{e9}e\u{301}.]|\n|\r\n|1\\|){1,12}", new in "[ab\n]{0,4}",
        ) {
            let text = text(&content);
            if !find(&text, &old, Overlaps::Count).is_empty() {
                return Ok(());
            }
            let cause = nearest(&text, &old, &new);
            if let Cause::NotFound { nearest: Some(nearest), .. } = &cause
                && let Some(SameLooks { exact: Some(exact), differs_in, .. }) = &nearest.same_looks
            {
                prop_assert!(!find(&text, exact, Overlaps::Count).is_empty(), "{:?}", exact);
                prop_assert!(!differs_in.is_empty());
            }
            let _ = Refusal::of_call(cause).to_string();
        }

        /// A made-up line does not hide the place of the others.
        #[test]
        fn a_place_is_found_by_most_of_its_lines(from in 0usize..40, count in 3usize..10, changed in 0usize..10) {
            let lines: Vec<String> = (0..60).map(|line| format!("    call_number_{line}(argument_{});\n", line * 7 % 60)).collect();
            let to = from + count;
            let mut old: Vec<String> = lines[from..to].to_vec();
            old[changed % count] = "something else\n".to_owned();
            let Cause::NotFound { nearest: Some(nearest), .. } = nearest(&text(&lines.concat()), &old.concat(), "") else { panic!() };
            let inside = |line: usize| nearest.lines.contains(LineNo::at_index(line));
            prop_assert!((from + 1..to - 1).all(inside), "{} for {}-{}", nearest.lines, from + 1, to);
        }
    }
}
