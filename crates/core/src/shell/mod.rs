//! Reads that went through a shell: which lines of which files a plain `cat`, `head`, `tail`, `sed -n`, `nl`, `grep` or `rg` has
//! shown. [`reads`] understands the command, [`seen`] holds it against the files and the output. Whatever is not certain counts
//! as nothing: a line that was shown and does not count costs another read, the other mistake an edit of what nobody has seen.
//!
//! Also whether a command is one of those that somebody has allowed: [`covered`].

mod allow;
mod options;
mod programs;
mod search;
mod seen;
mod words;

pub use allow::{covered, is_entry};
pub use programs::reads;
pub use seen::seen;

/// One program of a command that prints lines of files and does nothing else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reading {
    /// Where it runs, if a `cd` came first: relative to where the command was started, or absolute.
    pub directory: Option<String>,
    /// The files as they were named, in order.
    pub paths: Vec<String>,
    /// Which of their lines it prints, and how.
    pub what: What,
}

impl Reading {
    /// A path of this reading as seen from where the command was started.
    pub fn located(&self, path: &str) -> String {
        match &self.directory {
            Some(directory) => join(directory, path),
            None => path.to_owned(),
        }
    }
}

fn join(directory: &str, path: &str) -> String {
    if path.starts_with('/') {
        return path.to_owned();
    }
    format!("{}/{path}", directory.strip_suffix('/').unwrap_or(directory))
}

/// What a program prints of its files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    /// `cat`: all lines of one file after the other.
    Cat(Numbering),
    /// `nl`: the same, each line ended.
    Nl(Numbering),
    /// `head`, `tail`: a part of each file.
    Part {
        /// Which part.
        part: Part,
        /// Whether a line `==> path <==` stands above each.
        headers: bool,
    },
    /// `sed -n`: lines by number; all files are one text.
    Sed(Vec<Step>),
    /// `grep`, `rg`: the lines that fit a pattern. Which these are is left to the output.
    Search(Search),
}

/// Which lines have a number in front. The numbers run on from file to file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Numbering {
    /// No line.
    None,
    /// Every line.
    All,
    /// The lines that are not empty.
    NotEmpty,
}

/// A part of a file at its start or its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// That many lines from the start.
    First(usize),
    /// All lines but that many at the end.
    AllButLast(usize),
    /// That many lines before the end.
    Last(usize),
    /// From the line with this number on.
    From(usize),
}

/// A command of a `sed` script, done for each line from `from` to `to`; for the line `from` in any case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// The first line.
    pub from: Address,
    /// The last line.
    pub to: Address,
    /// What is done.
    pub act: Act,
}

/// A line in a `sed` script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Address {
    /// The line with this number.
    Line(usize),
    /// The last line.
    Last,
}

/// What a command of a `sed` script does with a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act {
    /// `p`
    Print,
    /// `q`: nothing after this.
    Quit,
}

/// How the lines that a search found are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Search {
    /// Whether each line has its number in front.
    pub numbers: bool,
    /// Where the path stands.
    pub names: Names,
    /// Whether lines around a match are printed too, with `--` between the groups.
    pub context: bool,
}

/// Where a search prints the path of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Names {
    /// Nowhere.
    Hidden,
    /// In front of each line.
    InFront,
    /// On a line of its own above the lines of the file.
    Above,
}
