//! Finds the candidates that a printed path matches, and the one that a heading above a row names.

use std::{cmp::Reverse, collections::HashMap};

use super::{Candidate, rows::OutputRows};

/// The candidates by the last component of their paths.
pub(super) struct CandidateNames<'a> {
    candidates: &'a [Candidate<'a>],
    by_base: HashMap<&'a str, Vec<usize>>,
}

/// The number of separators of a row that are tried as the end of a path. A path that contains more of them is not
/// found.
const MOST_SEPARATORS: usize = 12;

/// A longer row is not a heading.
const LONGEST_HEADING: usize = 300;

impl<'a> CandidateNames<'a> {
    pub(super) fn of(candidates: &'a [Candidate<'a>]) -> Self {
        let mut by_base: HashMap<&str, Vec<usize>> = HashMap::new();
        for (index, candidate) in candidates.iter().enumerate() {
            by_base.entry(base_of(candidate.path)).or_default().push(index);
        }
        Self { candidates, by_base }
    }

    /// The candidates that a printed path may mean, an exact match first. Programs print paths as they were given, so
    /// the path may start above or below the root of the workspace.
    pub(super) fn meant_by(&self, printed: &str) -> Vec<usize> {
        let printed = printed.trim_start_matches("./");
        let Some(same_base) = self.by_base.get(base_of(printed)) else { return Vec::new() };
        let is_meant = |index: &&usize| is_end_of(printed, self.candidates[**index].path);
        let mut meant: Vec<usize> = same_base.iter().filter(is_meant).copied().collect();
        meant.sort_by_key(|index| (self.candidates[*index].path != printed, Reverse(self.candidates[*index].path.len())));
        meant
    }

    /// The longest path at the start of a row, and the rest including the separator: `a.rs:12:text`, `a.rs-text`.
    pub(super) fn in_front<'r>(&self, row: &'r str) -> Option<(Vec<usize>, &'r str)> {
        let separators = row.char_indices().filter(|(_, c)| matches!(c, ':' | '-' | '='));
        let ends: Vec<usize> = separators.map(|(at, _)| at).take(MOST_SEPARATORS).collect();
        ends.into_iter().rev().find_map(|at| {
            let meant = self.meant_by(&row[..at]);
            (!meant.is_empty()).then_some((meant, &row[at..]))
        })
    }

    /// For each row, the candidates that the nearest heading at or above it names.
    pub(super) fn headings(&self, rows: &OutputRows) -> Vec<Option<usize>> {
        let mut current = None;
        let mut heading_at = |row: &str| {
            if let Some(named) = self.heading(row) {
                current = Some(named);
            }
            current
        };
        rows.iter().map(&mut heading_at).collect()
    }

    /// The candidate of a row that only names a file: `==> a.rs <==`, `--- a.rs`, ` --> a.rs:3:7`, `a.rs`.
    pub(super) fn heading(&self, row: &str) -> Option<usize> {
        const MOST_WORDS: usize = 5;
        if row.is_empty() || row.len() > LONGEST_HEADING {
            return None;
        }
        let whole = self.meant_by(row.trim());
        if let Some(named) = whole.first() {
            return Some(*named);
        }
        let words: Vec<&str> = row.split_whitespace().take(MOST_WORDS + 1).collect();
        if words.len() > MOST_WORDS {
            return None;
        }
        words.into_iter().find_map(|word| {
            let word = word.trim_matches(|c: char| "=:#*<>\"'`()[],".contains(c));
            let word = word.split_once(':').map_or(word, |(path, _)| path);
            self.meant_by(word).first().copied()
        })
    }
}

fn base_of(path: &str) -> &str {
    path.rsplit_once('/').map_or(path, |(_, base)| base)
}

/// Whether one path equals the other or its last components.
fn is_end_of(one: &str, other: &str) -> bool {
    let (longer, shorter) = if one.len() >= other.len() { (one, other) } else { (other, one) };
    longer.strip_suffix(shorter).is_some_and(|front| front.is_empty() || front.ends_with('/'))
}

#[cfg(test)]
mod tests {
    use super::{super::CandidateRank, *};
    use crate::text::Text;

    fn with_names(paths: &[&str], check: impl Fn(&CandidateNames<'_>)) {
        let text = Text::of(String::new()).unwrap();
        let candidates: Vec<Candidate<'_>> =
            paths.iter().map(|path| Candidate { path, text: &text, rank: CandidateRank::Named }).collect();
        check(&CandidateNames::of(&candidates));
    }

    #[test]
    fn paths_are_met_from_anywhere() {
        with_names(&["src/a.rs", "a.rs", "b/a-1"], |names| {
            assert_eq!(names.meant_by("a.rs"), [1, 0]);
            assert_eq!(names.meant_by("./src/a.rs"), [0, 1]);
            assert_eq!(names.meant_by("/home/x/src/a.rs"), [0, 1]);
            assert_eq!(names.meant_by("xa.rs"), [0; 0]);
        });
    }

    #[test]
    fn the_longest_path_in_front_is_meant() {
        with_names(&["a", "a-1", "we:ird.py"], |names| {
            assert_eq!(names.in_front("a-1:2:x"), Some((vec![1], ":2:x")));
            assert_eq!(names.in_front("a-2-x"), Some((vec![0], "-2-x")));
            assert_eq!(names.in_front("we:ird.py:2:value"), Some((vec![2], ":2:value")));
            assert_eq!(names.in_front("b:2:x"), None);
        });
    }

    #[test]
    fn headings_name_a_file() {
        with_names(&["src/a.rs", "b c.txt"], |names| {
            for row in ["==> src/a.rs <==", "--- src/a.rs", "  --> src/a.rs:3:7", "src/a.rs", "# a.rs", "    at f (src/a.rs:3:9)"]
            {
                assert_eq!(names.heading(row), Some(0), "{row}");
            }
            assert_eq!(names.heading("b c.txt"), Some(1));
            assert_eq!(names.heading("this row says something else about src/a.rs"), None);
        });
    }
}
