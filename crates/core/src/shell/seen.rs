//! Which lines an output shows. What a reading would print is worked out from the files, row by row, and a line counts only
//! where the output has that row. Searches are the exception: which lines they find only the output can tell.

use std::{borrow::Cow, collections::HashMap};

use super::{
    Act, Address, Numbering, Part, Reading, Step, What,
    search::{Found, found},
};
use crate::{
    lines::{LineNo, LineRange, LineSet},
    text::{Ending, Text},
};

/// The lines of each file that the output shows in full, by the path as seen from where the command was started. `text_of` gives
/// the file at such a path, or `None` for what is no text or not there. Files of which nothing counts are left out.
///
/// An output that was cut counts up to the cut. After it, lines count where numbers or headers tell which they are, or where the
/// output ends as the command would.
pub fn seen(readings: &[Reading], text_of: &mut dyn FnMut(&str) -> Option<Text>, output: &str) -> Vec<(String, LineSet)> {
    let files = Files::gather(readings, text_of);
    let rows = expected(readings, &files);
    let shown: Vec<&str> = output.split_inclusive('\n').map(|line| line.strip_suffix('\n').unwrap_or(line)).collect();
    let placed = place(&rows, &shown);
    let of_rows = placed.iter().flatten().filter_map(|row| rows[*row].source);
    let rest: Vec<Option<&str>> = shown.iter().zip(&placed).map(|(line, row)| row.is_none().then_some(*line)).collect();
    let of_searches = found(readings, &files, &rest);
    let mut sets = vec![LineSet::new(); files.0.len()];
    for Found { file, line } in of_rows.chain(of_searches) {
        sets[file].insert(LineRange::line(line));
    }
    files.0.into_iter().zip(sets).filter(|(_, set)| !set.is_empty()).map(|((path, _), set)| (path, set)).collect()
}

/// The files of all readings, each once.
pub(super) struct Files(Vec<(String, Option<Text>)>);

impl Files {
    fn gather(readings: &[Reading], text_of: &mut dyn FnMut(&str) -> Option<Text>) -> Self {
        let mut files: Vec<(String, Option<Text>)> = Vec::new();
        for path in readings.iter().flat_map(|reading| reading.paths.iter().map(|path| reading.located(path))) {
            if !files.iter().any(|(known, _)| *known == path) {
                let text = text_of(&path);
                files.push((path, text));
            }
        }
        Self(files)
    }

    /// The files of one reading, in its order: an index, and the text if there is one.
    pub(super) fn of<'a>(&'a self, reading: &'a Reading) -> impl Iterator<Item = (usize, Option<&'a Text>)> {
        reading.paths.iter().map(|path| {
            let located = reading.located(path);
            let file = self.0.iter().position(|(known, _)| *known == located).expect("the paths of all readings were gathered");
            (file, self.0[file].1.as_ref())
        })
    }
}

/// A line of the output as the command would print it.
struct Row<'a> {
    mark: Mark,
    body: Cow<'a, str>,
    /// How the line ends in the file. Its carriage return may be missing in the output.
    ending: Ending,
    /// Whether a byte order mark may be in front.
    bom: bool,
    /// The line of a file that it shows.
    source: Option<Found>,
}

/// What stands in front of a row, or instead of one.
#[derive(Clone, Copy, PartialEq)]
enum Mark {
    None,
    Number(usize),
    /// Blanks, where other lines have their number.
    NoNumber,
    /// The row is a header.
    Header,
    /// No row: here something is printed that we know nothing of.
    Gap,
}

impl<'a> Row<'a> {
    fn of(text: &'a Text, file: usize, line: LineNo) -> Self {
        let bom = line == LineNo::FIRST && text.has_bom();
        let body = Cow::Borrowed(text.line(line));
        Self { mark: Mark::None, body, ending: text.ending(line), bom, source: Some(Found { file, line }) }
    }

    fn other(mark: Mark, body: impl Into<Cow<'a, str>>) -> Self {
        Self { mark, body: body.into(), ending: Ending::Lf, bom: false, source: None }
    }

    fn agrees(&self, shown: &str) -> bool {
        let shown = match self.mark {
            Mark::Gap => return false,
            Mark::None | Mark::Header => shown,
            Mark::NoNumber => shown.trim_start_matches(' '),
            Mark::Number(number) => match numbered(shown) {
                Some((shown_number, rest)) if shown_number == number => rest,
                _ => return false,
            },
        };
        reads_so(shown, &self.body, self.ending, self.bom)
    }
}

/// The number in front of a line of `cat -n` or `nl`, and the line.
fn numbered(shown: &str) -> Option<(usize, &str)> {
    let (number, rest) = shown.split_once('\t')?;
    Some((number.trim_start_matches(' ').parse().ok()?, rest))
}

/// Whether a line of the output is this line of a file, byte for byte. Only a carriage return before the newline may be missing,
/// and a byte order mark.
pub(super) fn reads_so(shown: &str, body: &str, ending: Ending, bom: bool) -> bool {
    let shown = if bom { shown.strip_prefix('\u{feff}').unwrap_or(shown) } else { shown };
    shown == body || ending == Ending::CrLf && shown.strip_suffix('\r') == Some(body)
}

/// The rows that all readings print, one after the other.
fn expected<'a>(readings: &'a [Reading], files: &'a Files) -> Vec<Row<'a>> {
    let mut stream = Stream { rows: Vec::new(), open: false };
    for reading in readings {
        let texts: Vec<(usize, Option<&Text>)> = files.of(reading).collect();
        match &reading.what {
            What::Cat(Numbering::None) => stream.cat(&texts),
            What::Cat(numbering) => stream.numbered(&texts, *numbering, Ends::AsInTheFile),
            What::Nl(numbering) => stream.nl(&texts, *numbering),
            What::Part { part, headers } => stream.parts(&texts, *part, headers.then_some(&reading.paths)),
            What::Sed(steps) => stream.sed(&texts, steps),
            What::Search(_) => stream.gap(),
        }
    }
    stream.rows
}

/// Rows as they come. The last one is open as long as its line has no end: what comes next is glued to it.
struct Stream<'a> {
    rows: Vec<Row<'a>>,
    open: bool,
}

/// What becomes of a last line that has no end.
#[derive(Clone, Copy, PartialEq)]
enum Ends {
    AsInTheFile,
    Always,
}

impl<'a> Stream<'a> {
    fn push(&mut self, row: Row<'a>) {
        let open = row.ending == Ending::None;
        match self.rows.last_mut().filter(|_| self.open) {
            // A newline alone ends the open row and takes nothing from it.
            Some(last) if row.body.is_empty() => last.ending = row.ending,
            Some(last) => {
                // Two lines in one row: nobody can tell where one ends.
                last.body.to_mut().push_str(&row.body);
                last.ending = row.ending;
                last.source = None;
            }
            None => self.rows.push(row),
        }
        self.open = open;
    }

    fn gap(&mut self) {
        self.rows.push(Row::other(Mark::Gap, ""));
        self.open = false;
    }

    fn cat(&mut self, texts: &[(usize, Option<&'a Text>)]) {
        for (file, text) in texts {
            let Some(text) = text else {
                self.gap();
                continue;
            };
            text.lines().for_each(|(line, _)| self.push(Row::of(text, *file, line)));
        }
    }

    /// Numbers run on from file to file, so that after an unknown one they are unknown.
    fn numbered(&mut self, texts: &[(usize, Option<&'a Text>)], numbering: Numbering, ends: Ends) {
        let mut next = 1;
        let first_row = self.rows.len();
        for (file, text) in texts {
            let Some(text) = text else { return self.gap() };
            for (line, _) in text.lines() {
                let row = Row::of(text, *file, line);
                let has_number = numbering == Numbering::All || !["", "\n"].contains(&text.full_line(line));
                let is_glued = self.open && self.rows.len() > first_row;
                let mark = if has_number { Mark::Number(next) } else { Mark::NoNumber };
                next += usize::from(has_number && !is_glued);
                self.push(Row { mark, ..row });
                self.open &= ends == Ends::AsInTheFile;
            }
        }
    }

    fn nl(&mut self, texts: &[(usize, Option<&'a Text>)], numbering: Numbering) {
        // These lines divide a text into pages for nl, and it does not print them.
        let divides = |text: &Text| text.lines().any(|(_, line)| ["\\:", "\\:\\:", "\\:\\:\\:"].contains(&line));
        let understood = |(file, text): &(usize, Option<&'a Text>)| (*file, text.filter(|text| !divides(text)));
        let texts: Vec<(usize, Option<&Text>)> = texts.iter().map(understood).collect();
        self.numbered(&texts, numbering, Ends::Always);
    }

    fn parts(&mut self, texts: &[(usize, Option<&'a Text>)], part: Part, headers: Option<&'a Vec<String>>) {
        for (index, (file, text)) in texts.iter().enumerate() {
            let Some(text) = text else {
                self.gap();
                continue;
            };
            if let Some(paths) = headers {
                if index > 0 {
                    self.push(Row::other(Mark::None, ""));
                }
                self.push(Row::other(Mark::Header, format!("==> {} <==", paths[index])));
            }
            let total = text.line_count();
            let lines = match part {
                Part::First(count) => 0..count.min(total),
                Part::AllButLast(count) => 0..total.saturating_sub(count),
                Part::Last(count) => total.saturating_sub(count)..total,
                Part::From(line) => line.max(1) - 1..total,
            };
            lines.for_each(|index| self.push(Row::of(text, *file, LineNo::at_index(index))));
        }
    }

    fn sed(&mut self, texts: &[(usize, Option<&'a Text>)], steps: &[Step]) {
        // Without one of the files all line numbers, and which line is the last, are unknown.
        let Some(texts) = texts.iter().map(|(file, text)| text.map(|text| (*file, text))).collect::<Option<Vec<_>>>() else {
            return self.gap();
        };
        let total = texts.iter().map(|(_, text)| text.line_count()).sum();
        let lines = texts.iter().flat_map(|(file, text)| text.lines().map(move |(line, _)| (*file, *text, line)));
        let mut printed = false;
        for (number, (file, text, line)) in (1..).zip(lines) {
            for step in steps.iter().filter(|step| applies(step, number, total)) {
                if step.act == Act::Quit {
                    return;
                }
                // sed ends a line that has no end before it prints another.
                self.open &= !printed;
                printed = true;
                self.push(Row::of(text, file, line));
            }
        }
    }
}

fn applies(step: &Step, number: usize, total: usize) -> bool {
    let line = |address| match address {
        Address::Line(line) => line,
        Address::Last => total,
    };
    let (from, to) = (line(step.from), line(step.to));
    number == from || (from..=to).contains(&number)
}

/// For each line of the output, the row that it is.
fn place(rows: &[Row<'_>], shown: &[&str]) -> Vec<Option<usize>> {
    let told = Told::of(rows);
    let mut placed = vec![None; shown.len()];
    // Rows before `from` are behind us; `next` is the row that must come, unless the place was lost.
    let (mut from, mut next) = (0, Some(0));
    for (line, row) in shown.iter().zip(&mut placed) {
        let expected = next.filter(|next| rows.get(*next).is_some_and(|row| row.agrees(line)));
        *row = expected.or_else(|| told.only_row(rows, line, from));
        next = row.map(|row| row + 1);
        from = next.unwrap_or(from);
    }
    place_end(rows, shown, from, &mut placed);
    placed
}

/// The rows that say themselves which they are.
struct Told {
    by_number: HashMap<usize, Vec<usize>>,
    headers: Vec<usize>,
}

impl Told {
    fn of(rows: &[Row<'_>]) -> Self {
        let mut told = Self { by_number: HashMap::new(), headers: Vec::new() };
        for (index, row) in rows.iter().enumerate() {
            match row.mark {
                Mark::Number(number) => told.by_number.entry(number).or_default().push(index),
                Mark::Header => told.headers.push(index),
                Mark::None | Mark::NoNumber | Mark::Gap => {}
            }
        }
        told
    }

    /// The one row from `from` on that this line must be.
    fn only_row(&self, rows: &[Row<'_>], shown: &str, from: usize) -> Option<usize> {
        let numbered = numbered(shown).and_then(|(number, _)| self.by_number.get(&number));
        let candidates = numbered.into_iter().flatten().chain(&self.headers);
        let mut fitting = candidates.copied().filter(|row| *row >= from && rows[*row].agrees(shown));
        let only = fitting.next()?;
        fitting.next().is_none().then_some(only)
    }
}

/// Where the place was lost, the end of the output may be the end of what was to be printed: after a cut in the middle, or
/// behind a file that we do not know. One of its lines must be in one place only, else it could be another piece.
fn place_end(rows: &[Row<'_>], shown: &[&str], from: usize, placed: &mut [Option<usize>]) {
    let free = placed.iter().rev().take_while(|row| row.is_none()).count();
    let room = rows.len() - from;
    let run = (0..free.min(room)).take_while(|back| rows[rows.len() - 1 - back].agrees(shown[shown.len() - 1 - back])).count();
    if run == 0 {
        return;
    }
    let mut times: HashMap<&str, usize> = HashMap::new();
    for row in rows {
        *times.entry(&row.body).or_default() += 1;
    }
    let is_certain = rows[rows.len() - run..].iter().any(|row| !row.body.trim().is_empty() && times[&*row.body] == 1);
    if is_certain {
        for back in 0..run {
            placed[shown.len() - 1 - back] = Some(rows.len() - 1 - back);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::shell::reads;

    const A: &str = "fn a() {\n    one();\n\n    two();\n}\nfn b() {\n    one();\n}\n";
    const B: &str = "alpha\nbeta\ngamma";

    /// What `command` counts for with this output, given the files `a`, `b` and those named.
    fn counted(command: &str, output: &str, others: &[(&str, &str)]) -> String {
        let files = [("a", A), ("b", B)].into_iter().chain(others.iter().copied()).collect::<Vec<_>>();
        let mut text_of = |path: &str| {
            let content = files.iter().rev().find(|(name, _)| *name == path)?.1;
            Some(Text::new(content.as_bytes().to_vec()).unwrap())
        };
        let readings = reads(command).expect("a plain read");
        let seen = seen(&readings, &mut text_of, output);
        seen.iter().map(|(path, lines)| format!("{path} {lines}")).collect::<Vec<_>>().join("; ")
    }

    #[track_caller]
    fn check(command: &str, output: &str, expected: &str) {
        assert_eq!(counted(command, output, &[]), expected);
    }

    #[test]
    fn what_is_printed_counts() {
        check("cat a", A, "a 1-8");
        check("cat a", A.trim_end(), "a 1-8");
        check("cat b", B, "b 1-3");
        check("head -n 2 a", "fn a() {\n    one();\n", "a 1-2");
        check("head -n -6 a", "fn a() {\n    one();\n", "a 1-2");
        check("tail -n 2 a", "    one();\n}\n", "a 7-8");
        check("tail -n +7 a", "    one();\n}\n", "a 7-8");
        check("sed -n '2p;4,5p' a", "    one();\n    two();\n}\n", "a 2, 4-5");
        check("sed -n '7,$p' a", "    one();\n}\n", "a 7-8");
        check("sed -n '2,4p;2q' a", "    one();\n", "a 2");
        check("sed -n '7,100p' a", "    one();\n}\n", "a 7-8");
    }

    #[test]
    fn numbers_in_front_are_part_of_the_proof() {
        check("cat -n b", "     1\talpha\n     2\tbeta\n     3\tgamma", "b 1-3");
        check("nl b", "     1\talpha\n     2\tbeta\n     3\tgamma\n", "b 1-3");
        check("nl a", "     1\tfn a() {\n     2\t    one();\n       \n     3\t    two();\n", "a 1-4");
        check("cat -b a", "     1\tfn a() {\n     2\t    one();\n\n     3\t    two();\n", "a 1-4");
        check("cat -n b", "1\talpha\n     3\tgamma\n", "b 1, 3");
        check("cat -n b", "     2\talpha\n     1\tbeta\n", "");
        check("cat -n b", "alpha\nbeta\n", "");
        check("cat b", "     1\talpha\n", "");
    }

    #[test]
    fn a_cut_output_counts_up_to_the_cut() {
        check("cat a", "fn a() {\n    one();\n[... 6 lines omitted ...]\n", "a 1-2");
        check("cat a", "fn a() {\n    one(... truncated", "a 1");
        check("cat a", "fn a() {\n    on", "a 1");
        check("cat a", "", "");
        // The end is certain if one of its lines is nowhere else.
        check("cat a", "fn a() {\n[...]\nfn b() {\n    one();\n}\n", "a 1, 6-8");
        check("cat a", "fn a() {\n[...]\n    one();\n}\n", "a 1");
        check("cat a", "fn a() {\n[...]\nfn b() {\n    one();\n", "a 1");
        // Numbers are certain anywhere.
        check("cat -n b", "     1\talpha\n[...]\n     3\tgamma", "b 1, 3");
        check("nl -ba a", "[...]\n     3\t\n     4\t    two();\n[...]\n", "a 3-4");
    }

    #[test]
    fn another_output_than_expected_does_not_count() {
        check("cat a", "cat: a: Permission denied\n", "");
        check("cat b", "alpha\nBETA\ngamma\n", "b 1, 3");
        check("sed -n '2,3p' b", "alpha\nbeta\n", "");
        check("cat b", "alpha \nbeta\t\n", "");
        check("head -n 1 a", "fn a() {\n    one();\n", "a 1");
        check("cat missing", "alpha\n", "");
    }

    #[test]
    fn several_files_are_told_apart() {
        check("head -n 1 a b", "==> a <==\nfn a() {\n\n==> b <==\nalpha\n", "a 1; b 1");
        check("tail -n 1 b a", "==> b <==\ngamma\n==> a <==\n}\n", "b 3; a 8");
        check("head -n 2 a b", "==> a <==\nfn a() {\n[...]\n==> b <==\nalpha\nbeta\n", "a 1; b 1-2");
        check("head -n 1 missing b", "==> b <==\nalpha\n", "b 1");
        check("cat a b", &format!("{A}{B}"), "a 1-8; b 1-3");
        // Where no newline is between them, a line of each is half of a row.
        check("cat b a", &format!("{B}{A}"), "b 1-2; a 2-8");
        check("cat -n b a", "     1\talpha\n     2\tbeta\n     3\tgammafn a() {\n     4\t    one();\n", "b 1-2; a 2");
        check("cat missing b", "cat: missing: No such file\nalpha\nbeta\ngamma", "b 1-3");
        check("sed -n '8,9p' a b", "}\nalpha\n", "a 8; b 1");
        check("sed -n '3,4p' b a", "gamma\nfn a() {\n", "b 3; a 1");
        check("sed -n '1p' missing b", "alpha\n", "");
        // nl ends the last line of each file.
        check("nl b b", "     1\talpha\n     2\tbeta\n     3\tgamma\n     4\talpha\n", "b 1-3");
        check("nl b && cat b", "     1\talpha\n     2\tbeta\n     3\tgamma\nalpha\nbeta\ngamma", "b 1-3");
        check("head -n 1 a && tail -n 1 b", "fn a() {\ngamma", "a 1; b 3");
    }

    #[test]
    fn a_search_with_numbers_counts_where_they_agree() {
        check("grep -n one a", "2:    one();\n7:    one();\n", "a 2, 7");
        check("grep -n one a", "2:    one();\n8:    one();\n9:x\n", "a 2");
        check("grep -n -A1 one a", "2:    one();\n3-\n--\n7:    one();\n8-}\n", "a 2-3, 7-8");
        check("grep -n one a b", "a:2:    one();\na:7:    one();\nb:2:beta\n", "a 2, 7; b 2");
        check("rg --heading -n e a b", "a\n2:    one();\n\nb\n2:beta\n", "a 2; b 2");
        check("grep -n one a", "[...]\n7:    one();\n", "a 7");
        check("grep -hn a a b", "1:fn a() {\n1:alpha\n3:gamma\n", "a 1; b 1, 3");
        check("grep -n one a && sed -n '1p' b", "2:    one();\n7:    one();\nalpha\n", "a 2, 7; b 1");
    }

    #[test]
    fn a_search_without_numbers_counts_whole_lines() {
        check("grep one a", "    one();\n    one();\n", "a 2, 7");
        check("grep two a", "    two();\n", "a 4");
        check("grep two a", "two();\n", "");
        check("grep -e a -e two a b", "a:    two();\nb:alpha\nb:beta\nb:gamma\nb:delta\n", "a 4; b 1-3");
        check("grep a a", "\n[...]\n\nfn a() {\n", "a 1");
        // Lines around a match may be in many places: only the whole group says where it is.
        check("grep -A1 'a()' a", "fn a() {\n    one();\n", "a 1-2");
        check("grep -B1 -A1 two a", "\n    two();\n}\n", "a 3-5");
        check("grep -A1 one a", "    one();\n\n--\n    one();\n}\n", "a 2-3, 7-8");
        check("grep -A1 x a", "}\n", "");
        // Without numbers and names, nobody knows which program printed it.
        check("grep two a && cat missing", "    two();\n", "");
    }

    #[test]
    fn names_that_begin_alike_are_told_apart() {
        let counted = counted("grep -C0 -n x p p-1", "p-1:1:x\n", &[("p", "x\n"), ("p-1", "x\n")]);
        assert_eq!(counted, "p-1 1");
    }

    #[test]
    fn bytes_at_the_end_of_a_line_count_but_for_a_lost_return() {
        let check = |output: &str, expected: &str| {
            assert_eq!(counted("cat w", output, &[("w", "\u{feff}a\r\nb\nc  \n")]), expected);
        };
        check("\u{feff}a\r\nb\nc  \n", "w 1-3");
        check("a\nb\nc  \n", "w 1-3");
        check("a\r\nb\r\nc\n", "w 1");
        check("a\nb\nc\n", "w 1-2");
        assert_eq!(counted("grep -n b w", "1:a\r\n2:b\n3:c\n", &[("w", "\u{feff}a\r\nb\nc  \n")]), "w 1-2");
        assert_eq!(counted("grep a w", "a\r\na\n", &[("w", "a\r\na\n")]), "w 1-2");
        assert_eq!(counted("grep b w", "\u{feff}a\r\nb\r\n", &[("w", "\u{feff}a\r\nb\n")]), "w 1");
    }

    #[test]
    fn a_directory_is_part_of_the_path() {
        assert_eq!(counted("cd src && cat c /d", "x\ny\n", &[("src/c", "x\n"), ("/d", "y\n")]), "src/c 1; /d 1");
    }

    #[test]
    fn lines_that_divide_pages_for_nl_are_not_understood() {
        assert_eq!(counted("nl -ba w", "     1\tx\n\n     1\ty\n", &[("w", "x\n\\:\\:\ny\n")]), "");
    }

    /// A command, what it prints for a text, and which lines that is: worked out from the bytes, not from rows.
    fn played(program: usize, from: usize, count: usize, content: &str) -> (String, String, LineSet) {
        let lines: Vec<&str> = content.split_inclusive('\n').collect();
        let total = lines.len();
        let numbered = |is_numbered: &dyn Fn(&str) -> bool, blank: &str, ended: bool| -> String {
            let mut number = 0;
            let print = |line: &&str| {
                let end = if ended && !line.ends_with('\n') { "\n" } else { "" };
                number += usize::from(is_numbered(line));
                if is_numbered(line) { format!("{number:6}\t{line}{end}") } else { format!("{blank}{line}{end}") }
            };
            lines.iter().map(print).collect()
        };
        let (to, end) = (from + count, (from + count).min(total));
        let (command, output, range) = match program {
            0 => ("cat f".to_owned(), content.to_owned(), 0..total),
            1 => (format!("head -n {count} f"), lines[..count.min(total)].concat(), 0..count.min(total)),
            2 => (format!("tail -n {count} f"), lines[total - count.min(total)..].concat(), total - count.min(total)..total),
            3 => (format!("tail -n +{from} f"), lines[(from - 1).min(total)..].concat(), (from - 1).min(total)..total),
            4 => (format!("sed -n '{from},{to}p' f"), lines[(from - 1).min(total)..end].concat(), (from - 1).min(total)..end),
            5 => ("cat -n f".to_owned(), numbered(&|_| true, "", false), 0..total),
            6 => ("nl -ba f".to_owned(), numbered(&|_| true, "", true), 0..total),
            _ => ("nl f".to_owned(), numbered(&|line| line != "\n", "       ", true), 0..total),
        };
        (command, output, LineRange::from_indexes(range).into_iter().collect())
    }

    fn seen_of(command: &str, content: &str, output: &str) -> LineSet {
        let text = Text::new(content.as_bytes().to_vec()).unwrap();
        let seen = seen(&reads(command).expect("a plain read"), &mut |_| Some(text.clone()), output);
        seen.into_iter().next().map(|(_, lines)| lines).unwrap_or_default()
    }

    proptest! {
        #[test]
        fn what_a_program_prints_is_what_counts(content in "(([ab }]{0,3})(\n|\r\n)){0,12}[ab]{0,2}", program in 0usize..8, from in 1usize..14, count in 0usize..14) {
            let (command, output, lines) = played(program, from, count, &content);
            prop_assert_eq!(seen_of(&command, &content, &output).to_string(), lines.to_string(), "{} {:?}", command, output);
        }

        /// However an output was garbled: no line counts more often than it is there.
        #[test]
        fn what_is_not_in_the_output_does_not_count(
            content in "([ab}]{0,2}\n){0,12}", program in 0usize..8, from in 1usize..14, count in 0usize..14,
            changes in prop::collection::vec((0usize..14, prop::option::of("[ab}]{0,2}")), 1..6),
        ) {
            let (command, output, _) = played(program, from, count, &content);
            let mut rows: Vec<String> = output.lines().map(str::to_owned).collect();
            for (at, change) in changes {
                if at < rows.len() {
                    match change {
                        Some(other) => rows[at] = other,
                        None => drop(rows.remove(at)),
                    }
                }
            }
            let seen = seen_of(&command, &content, &rows.iter().map(|row| format!("{row}\n")).collect::<String>());
            let plain = |row: &String| row.rsplit('\t').next().unwrap_or_default().trim().to_owned();
            let mut left: Vec<String> = rows.iter().map(plain).collect();
            let text = Text::new(content.into_bytes()).unwrap();
            for line in seen.iter() {
                let at = left.iter().position(|row| row == text.line(line));
                prop_assert!(at.is_some(), "{} counted line {} of {:?}", command, line, rows);
                left.swap_remove(at.unwrap());
            }
        }
    }
}
