//! Which lines of which files an output shows. The command is not parsed: its output is compared with the files that it can be
//! about. Whatever is not proven counts as unseen. A line that was shown and does not count costs another read; the other mistake
//! is an edit of what nobody has seen.
//!
//! The rules, in the order in which they are tried. A row of the output is used once.
//!
//! 1. Colours and other control sequences of a terminal are removed, and a carriage return at the end of a row. Whole lines are compared, byte for byte:
//!    a line that was cut, indented anew or wrapped is another line.
//! 2. `rg --json` gives path, number and text (`json`).
//! 3. A hunk of a unified diff has its place in its header. If nine in ten lines of a side are the lines of the file at that place, the
//!    side shows the file as it is. A removed line proves nothing (`hunks`).
//! 4. Runs of rows that are lines of a file (`runs`, `matching`): a run counts if it is the whole file, if it holds a line that the file has once, or
//!    if the file has the block once. Longer runs first. A run may go backwards (`tac`).
//! 5. Rows with a number in front count if that line of the file has the text after the number (`numbered`).
//! 6. Runs in a decoration: a number that means something else, the marks of a diff, `< ` and `> `, `cat -A`, a path in front.
//! 7. A line that the file has several times counts if it was printed as often: all of them.
//! 8. A block that fits several places counts if exactly one of these is where a number in the command says, at the first line, or at the
//!    end if the command speaks of it (`tail`, `$`).
//! 9. Short pieces of a file out of order do not count: the output was sorted, and tells nothing of places.
//! 10. If a row that nothing explains stands between two lines that are neighbours in the file, these two do not count: the output is
//!     another version of the file, and has a line there that is gone (`seams`).
//!
//! Equal text in several files counts for the file that a heading above names. Without a heading it counts for all files that the
//! command names, because the reader knows it either way, and for none of several others.

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
use self::{file_lines::wordiness, matching::OutputMatching};
use crate::{lines::LineSet, text::Text};

/// A file that an output can be about.
#[derive(Debug, Clone, Copy)]
pub struct Candidate<'a> {
    /// Its path, relative to the root of its workspace.
    pub path: &'a str,
    /// What it says.
    pub text: &'a Text,
    /// Why it is one.
    pub rank: Rank,
}

/// Why a file is a candidate, from the best reason to the weakest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rank {
    /// The command or the output has its path.
    Named,
    /// A glob, a directory or a base name in the command may mean it.
    Possible,
    /// The session has had to do with it lately.
    Recent,
}

/// An output, and how much of it is accounted for.
#[derive(Debug)]
pub struct Printed {
    rows: OutputRows,
    used: Vec<bool>,
    hints: CommandHints,
}

/// What a command says about places in files, whatever its programs are.
#[derive(Debug)]
struct CommandHints {
    line: String,
    /// The numbers in it.
    numbers: Vec<usize>,
    /// Whether it speaks of the end of a file.
    reaches_end: bool,
    /// Whether it prints texts of its own.
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

impl Printed {
    /// What a command printed, as the model got it.
    ///
    /// ```
    /// use surehand_core::{Text, shell::printed::{Candidate, Printed, Rank}};
    ///
    /// let text = Text::of("fn a() {\n    one();\n}\n".to_owned()).expect("it is text");
    /// let mut printed = Printed::new("cat -n a.rs | tail -2", "     2\t    one();\n     3\t}\n");
    /// let shown = printed.lines_of(&[Candidate { path: "a.rs", text: &text, rank: Rank::Named }]);
    /// assert_eq!(shown[0].to_string(), "2-3");
    /// assert!(printed.is_accounted_for());
    /// ```
    pub fn new(command: &str, output: &str) -> Self {
        let rows = OutputRows::of(output);
        Self { used: vec![false; rows.len()], rows, hints: CommandHints::of(command) }
    }

    /// Whether it shows nothing at all.
    pub fn is_blank(&self) -> bool {
        self.rows.iter().all(|row| row.trim().is_empty())
    }

    /// Whether no row with a word in it is left over: then no other file need be looked at.
    pub fn is_accounted_for(&self) -> bool {
        self.rows.iter().zip(&self.used).all(|(row, used)| *used || wordiness(row) < 2)
    }

    /// The lines of each of these files that are shown in full by what is left over.
    pub fn lines_of(&mut self, candidates: &[Candidate<'_>]) -> Vec<LineSet> {
        OutputMatching::new(&self.rows, &mut self.used, &self.hints, candidates).lines()
    }
}

#[cfg(test)]
mod tests;
