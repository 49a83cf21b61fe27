//! Finds the lines of files that an output shows. The command is not parsed: its output is compared with the files that
//! it may be about. Anything that is not proven counts as unseen. If a shown line does not count, the model has to read
//! again; if a line counts that was not shown, the model could edit text it has never seen.
//!
//! The rules, in the order in which they are applied. A row of the output is used once.
//!
//! 1. Colours and other terminal control sequences are removed, and a carriage return at the end of a row. Whole lines
//!    are compared byte for byte: a line that was truncated, reindented or wrapped is a different line.
//! 2. `rg --json` gives path, number and text (`json`).
//! 3. A hunk of a unified diff has its place in its header. If nine in ten lines of a side are the lines of the file at
//!    that place, the side shows the current file. A removed line proves nothing (`hunks`).
//! 4. Runs of rows that are lines of a file (`runs`, `matching`): a run counts if it is the whole file, if it contains
//!    a line that the file has once, or if the file has the whole run once. Longer runs come first. A run may be
//!    reversed (`tac`).
//! 5. Rows with a number count if the file has the text after the number in that line (`numbered`).
//! 6. Decorated runs: numbers that are not line numbers, diff marks, `< ` and `> `, `cat -A`, a path before the line.
//! 7. A line that the file has several times counts if it was printed as often; then all of them count.
//! 8. A block that fits in several places counts if a number in the command selects exactly one of them: as its first
//!    line, or as its end if the command mentions the end (`tail`, `$`).
//! 9. Short pieces of a file out of order do not count, because the output was sorted and does not show their places.
//! 10. If an unexplained row lies between two lines that are adjacent in the file, these two do not count: the output
//!     shows another version of the file, which has a line there (`seams`).
//!
//! Text that occurs in several files counts for the file that a heading above it names. Without a heading it counts for
//! all files that the command names, because the reader knows the text in either case, and for none of several other
//! files.

mod file_lines;
mod hunks;
mod json;
mod matching;
mod names;
mod numbered;
mod rows;
mod runs;
mod seams;

pub(super) use self::rows::OutputRows;
use self::{file_lines::count_word_chars, matching::OutputMatching};
use crate::{lines::LineSet, text::Text};

/// A file that an output may be about.
#[derive(Debug, Clone, Copy)]
pub struct Candidate<'a> {
    /// The path, relative to the root of its workspace.
    pub path: &'a str,
    /// The current content of the file.
    pub text: &'a Text,
    /// Why the file is a candidate.
    pub rank: CandidateRank,
}

/// Why a file is a candidate, from the strongest reason to the weakest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CandidateRank {
    /// The command or the output contains its path.
    Named,
    /// A glob, a directory or a base name in the command may mean it.
    Possible,
    /// The session used it recently.
    Recent,
}

/// An output, and the rows of it that are still unexplained.
#[derive(Debug)]
pub struct PrintedOutput {
    rows: OutputRows,
    used: Vec<bool>,
    hints: CommandHints,
}

/// The positions in files that a command mentions, whatever its programs are.
#[derive(Debug)]
struct CommandHints {
    line: String,
    numbers: Vec<usize>,
    /// Whether the command mentions the end of a file.
    reaches_end: bool,
    /// Whether the command itself contains texts that it prints.
    echoes: bool,
}

impl CommandHints {
    fn of(command: &str) -> Self {
        const MOST_NUMBERS: usize = 32;
        let digits = command.split(|c: char| !c.is_ascii_digit()).filter(|digits| (1..=7).contains(&digits.len()));
        let mut numbers: Vec<usize> = digits.filter_map(|digits| digits.parse().ok()).take(MOST_NUMBERS).collect();
        numbers.sort_unstable();
        numbers.dedup();
        let has = |words: &[&str]| words.iter().any(|word| command.contains(word));
        let (reaches_end, echoes) = (has(&["tail", ",$", "$p"]), has(&["echo", "printf", "print("]));
        Self { line: command.to_owned(), numbers, reaches_end, echoes }
    }

    fn has(&self, number: usize) -> bool {
        self.numbers.binary_search(&number).is_ok()
    }
}

impl PrintedOutput {
    /// The output of a command, as the model received it.
    ///
    /// ```
    /// use surehand_core::{Text, shell::printed::{Candidate, CandidateRank, PrintedOutput}};
    ///
    /// let text = Text::of("fn a() {\n    one();\n}\n".to_owned()).expect("valid text");
    /// let mut printed = PrintedOutput::new("cat -n a.rs | tail -2", "     2\t    one();\n     3\t}\n");
    /// let shown = printed.lines_of(&[Candidate { path: "a.rs", text: &text, rank: CandidateRank::Named }]);
    /// assert_eq!(shown[0].to_string(), "2-3");
    /// assert!(printed.is_accounted_for());
    /// ```
    pub fn new(command: &str, output: &str) -> Self {
        let rows = OutputRows::of(output);
        Self { used: vec![false; rows.len()], rows, hints: CommandHints::of(command) }
    }

    /// Whether the output has only white space.
    pub fn is_blank(&self) -> bool {
        self.rows.iter().all(|row| row.trim().is_empty())
    }

    /// Whether every row with a word is explained, so that no other file needs to be compared.
    pub fn is_accounted_for(&self) -> bool {
        self.rows.iter().zip(&self.used).all(|(row, used)| *used || count_word_chars(row) < 2)
    }

    /// For each file, the lines that the remaining rows show in full.
    pub fn lines_of(&mut self, candidates: &[Candidate<'_>]) -> Vec<LineSet> {
        OutputMatching::new(&self.rows, &mut self.used, &self.hints, candidates).lines()
    }
}

#[cfg(test)]
mod tests;
