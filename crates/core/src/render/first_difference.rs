//! Describes the first difference between a text that was not found and the file. Invisible characters are named, and
//! made visible in the quote if they matter.

use crate::{
    confusables::{Appearance, fold, is_mark, looks, name},
    excerpt::clip,
    refusal::{Divergence, HiddenDifference, LinePiece},
    render::describe_lines,
};

/// The first difference in one sentence.
pub(super) fn first_difference(diverges: &Divergence) -> String {
    match diverges {
        Divergence::Line { line, column, expected, found } => {
            let difference = describe_difference(DifferingLine::of(expected), DifferingLine::of(found));
            format!("First difference on line {line}, column {column}: {difference}.")
        }
        Divergence::LeftOut { lines } => {
            let lines_left_out = describe_lines(&[*lines].into_iter().collect());
            format!("First difference: the file has {lines_left_out} in between, which you left out.")
        }
        Divergence::Extra { expected, before } => {
            let place = before.map_or("after these lines".to_owned(), |line| format!("before line {line}"));
            let given = if expected.trim().is_empty() { "an empty line".to_owned() } else { format!("`{}`", clip(expected, 80)) };
            format!("First difference: you gave {given} {place}, the file has no such line there.")
        }
        Divergence::NoFinalNewline => {
            "The only difference: you gave a newline at the end, and the file ends without one.".to_owned()
        }
    }
}

/// `white space and look-alike characters`
pub(super) fn name_differences(ways: &[HiddenDifference]) -> String {
    let word = |way: &HiddenDifference| match way {
        HiddenDifference::WhiteSpace => "white space",
        HiddenDifference::Invisible => "invisible characters",
        HiddenDifference::LookAlike => "characters that look alike",
        HiddenDifference::NormalForm => "Unicode normal form",
    };
    ways.iter().map(word).collect::<Vec<_>>().join(" and ")
}

/// One of two lines, and the characters in it that differ.
#[derive(Clone)]
struct DifferingLine {
    line: Vec<char>,
    from: usize,
    to: usize,
}

/// Describes a difference: white space and look-alike characters by name, anything else as a quote.
fn describe_difference(given: DifferingLine, found: DifferingLine) -> String {
    let back = given.blanks_before();
    let (given_run, found_run) = (given.blank_run(back), found.blank_run(back));
    if !(given_run.is_empty() && found_run.is_empty()) && given_run.next() == found_run.next() {
        let place = if given_run.next().is_none() { " at the end of the line" } else { "" };
        let (blanks, other_blanks) = (given_run.blanks_named(), found_run.blanks_named());
        let (quoted, other_quoted) = (given_run.quoted(), found_run.quoted());
        return format!(
            "you gave {blanks}{place} in {quoted}, the file has {other_blanks} in {other_quoted}{}",
            found_run.in_json()
        );
    }
    let is_inside_letter = [&given, &found].iter().any(|side| side.next().is_some_and(is_mark));
    let back = usize::from(is_inside_letter && given.from > 0);
    let (letter, other) = (given.letter_with_marks(back), found.letter_with_marks(back));
    let has_look_alike = letter.has_look_alike() || other.has_look_alike();
    if letter.folded() == other.folded() && !letter.folded().is_empty() && !has_look_alike {
        let (spelt, other_spelt, json) = (letter.code_points(), other.code_points(), other.in_json());
        let letter: String = letter.chars().iter().collect();
        return format!(
            "you gave {letter} as {spelt}, the file has it as {other_spelt}, the same letter in another Unicode normal form{json}"
        );
    }
    let (one, other) = (given.one(), found.one());
    if one.is_invisible() && one.next() == found.next() {
        return describe_by_name(&one, &found);
    }
    if other.is_invisible() && other.next() == given.next() {
        return describe_by_name(&given, &other);
    }
    if one.looks_like(&other) || one.is_hidden() || other.is_hidden() {
        return describe_by_name(&one, &other);
    }
    match (given.next(), found.next()) {
        (None, _) => format!("your line ends there ({}), the file goes on ({})", given.quoted(), found.quoted()),
        (_, None) => format!("the line of the file ends there ({}), yours goes on ({})", found.quoted(), given.quoted()),
        _ => format!("you gave {}, the file has {}", given.quoted(), found.quoted()),
    }
}

fn describe_by_name(given: &DifferingLine, found: &DifferingLine) -> String {
    let (name, quoted, escaped) = (found.named(), found.quoted(), found.in_json());
    format!("you gave {} in {}, the file has {name} in {quoted}{escaped}", given.named(), given.quoted())
}

impl DifferingLine {
    fn of(piece: &LinePiece) -> Self {
        let line: Vec<char> = piece.text.chars().collect();
        let at = piece.at.min(line.len());
        Self { line, from: at, to: at }
    }

    fn with(&self, from: usize, to: usize) -> Self {
        Self { line: self.line.clone(), from, to }
    }

    fn chars(&self) -> &[char] {
        &self.line[self.from..self.to]
    }

    fn is_empty(&self) -> bool {
        self.from == self.to
    }

    /// The character after the difference; `None` at the end of the line.
    fn next(&self) -> Option<char> {
        self.line.get(self.to).copied()
    }

    fn blanks_before(&self) -> usize {
        self.line[..self.from].iter().rev().take_while(|c| c.is_whitespace()).count()
    }

    /// The white space at the difference, starting `back` characters earlier.
    fn blank_run(&self, back: usize) -> Self {
        let more = self.line[self.from..].iter().take_while(|c| c.is_whitespace()).count();
        self.with(self.from - back, self.from + more)
    }

    /// A letter with its combining marks, starting `back` characters earlier.
    fn letter_with_marks(&self, back: usize) -> Self {
        let from = self.from - back;
        let marks = self.line.iter().skip(from + 1).take_while(|c| is_mark(**c)).count();
        self.with(from, (from + 1 + marks).min(self.line.len()))
    }

    fn one(&self) -> Self {
        self.with(self.from, (self.from + 1).min(self.line.len()))
    }

    fn folded(&self) -> String {
        let mut folded = String::new();
        self.chars().iter().for_each(|c| fold(*c, &mut folded));
        folded
    }

    fn has_look_alike(&self) -> bool {
        self.chars().iter().any(|c| matches!(looks(*c), Appearance::Like(_)))
    }

    fn looks_like(&self, other: &DifferingLine) -> bool {
        let (a, b) = (self.folded(), other.folded());
        !a.is_empty() && !b.is_empty() && (a.starts_with(&b) || b.starts_with(&a))
    }

    fn is_invisible(&self) -> bool {
        !self.is_empty() && self.chars().iter().all(|c| looks(*c) == Appearance::Invisible)
    }

    fn is_hidden(&self) -> bool {
        self.chars().iter().any(|c| is_hidden(*c))
    }

    /// `a TAB`, `4 spaces`, `a TAB and 2 spaces`
    fn blanks_named(&self) -> String {
        if self.is_empty() {
            return if self.next().is_none() { "nothing" } else { "no white space" }.to_owned();
        }
        let runs = self.chars().chunk_by(|a, b| a == b).map(|run| match (run[0], run.len()) {
            (' ', 1) => "a space".to_owned(),
            (' ', count) => format!("{count} spaces"),
            ('\t', 1) => "a TAB".to_owned(),
            ('\t', count) => format!("{count} TABs"),
            (c, 1) => called(c),
            (c, count) => format!("{count} times {}", called(c)),
        });
        let runs: Vec<String> = runs.collect();
        if runs.len() > 4 { "mixed white space".to_owned() } else { runs.join(" and ") }
    }

    fn named(&self) -> String {
        match self.chars() {
            [] if self.next().is_none() => "the end of the line".to_owned(),
            [] => "nothing at that place".to_owned(),
            chars => chars.iter().map(|c| called(*c)).collect::<Vec<_>>().join(" and "),
        }
    }

    /// The difference as a JSON escape, because invisible characters are easily lost in a copy.
    fn in_json(&self) -> String {
        let escaped = |c: &char| if c.is_ascii() { c.to_string() } else { format!("\\u{:04x}", u32::from(*c)) };
        match self.chars().iter().all(char::is_ascii) {
            true => String::new(),
            false => format!(" (in JSON: `{}`)", self.chars().iter().map(escaped).collect::<String>()),
        }
    }

    fn code_points(&self) -> String {
        let one = |c: &char| match name(*c) {
            Some(name) => format!("U+{:04X} ({name})", u32::from(*c)),
            None => format!("U+{:04X}", u32::from(*c)),
        };
        self.chars().iter().map(one).collect::<Vec<_>>().join(" and ")
    }

    /// The line around the difference, with invisible characters made visible if they matter.
    fn quoted(&self) -> String {
        let start = if self.from <= 30 { 0 } else { self.from - 20 };
        let end = self.line.len().min(self.to + 30).min(start + 100);
        let mut quoted = String::from("`");
        for (at, c) in self.line[start..end].iter().enumerate() {
            let matters = (self.from..self.to).contains(&(start + at));
            match c {
                ' ' if matters => quoted.push('·'),
                '\t' if matters => quoted.push('→'),
                '\t' => quoted.push('\t'),
                c if c.is_control() || matters && is_hidden(*c) => quoted.push_str(&format!("⟨U+{:04X}⟩", u32::from(*c))),
                c => quoted.push(*c),
            }
        }
        quoted.push('`');
        quoted
    }
}

/// Whether a reader cannot see this character, or takes it for another one.
fn is_hidden(c: char) -> bool {
    c.is_control() || looks(c) != Appearance::Itself && c != ' '
}

/// `U+2019 (right single quotation mark)`, `x (U+0078)`
fn called(c: char) -> String {
    match name(c) {
        Some(name) => format!("U+{:04X} ({name})", u32::from(c)),
        None => format!("{c} (U+{:04X})", u32::from(c)),
    }
}
