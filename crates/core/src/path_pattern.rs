//! Patterns for paths that an agent claims: `*` and `?` match within a name, `**` matches any number of directories.
//!
//! Two claims must not be given to two agents if any file could match both, whether it exists or not. So a pattern can
//! be compared with another one, which is why sets (`[ab]`) and alternatives (`{a,b}`) are left out.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::path::{BadPath, RelPath};

/// A pattern that matches paths of a workspace. `src` alone does not match the files below that directory; `src/**`
/// matches them and the directory itself.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PathPattern(String);

/// The reason why a text is not a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadPattern {
    /// The text is not a valid path.
    #[error(transparent)]
    Path(#[from] BadPath),
    /// `**` is only a part of a name.
    #[error("`**` stands for directories and must be a whole name, as in `src/**` or `**/*.rs`")]
    PartOfName,
    /// The pattern is longer than a comparison allows.
    #[error("the pattern has more than {MAX_CHARS} characters")]
    TooLong,
}

/// Comparing two patterns takes time in proportion to the product of their lengths.
const MAX_CHARS: usize = 500;

impl PathPattern {
    /// Parses a pattern. `./`, doubled slashes and a slash at the end are dropped; a path is a pattern that matches
    /// itself.
    pub fn new(text: &str) -> Result<Self, BadPattern> {
        if text.chars().count() > MAX_CHARS {
            return Err(BadPattern::TooLong);
        }
        let path = RelPath::new(text)?;
        let is_part = |name: &str| name.contains("**") && name != "**";
        if path.as_str().split('/').any(is_part) {
            return Err(BadPattern::PartOfName);
        }
        Ok(Self(path.into()))
    }

    /// The pattern as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether the pattern matches this path.
    pub fn matches(&self, path: &RelPath) -> bool {
        let name_matches =
            |pattern: &str, name: &str| meets(&name_steps(pattern), &name.chars().map(Step::Is).collect::<Vec<_>>());
        meets_with(&self.steps(), &path.as_str().split('/').map(Step::Is).collect::<Vec<_>>(), &name_matches)
    }

    /// Whether a path can exist that both patterns match.
    pub fn overlaps(&self, other: &Self) -> bool {
        let names_meet = |one: &str, other: &str| meets(&name_steps(one), &name_steps(other));
        meets_with(&self.steps(), &other.steps(), &names_meet)
    }

    fn steps(&self) -> Vec<Step<&str>> {
        self.0.split('/').map(|name| if name == "**" { Step::AnyNumber } else { Step::Is(name) }).collect()
    }
}

impl fmt::Display for PathPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<PathPattern> for String {
    fn from(pattern: PathPattern) -> Self {
        pattern.0
    }
}

impl TryFrom<String> for PathPattern {
    type Error = BadPattern;

    fn try_from(text: String) -> Result<Self, BadPattern> {
        Self::new(&text)
    }
}

/// One step of a pattern, for names in a path and for characters in a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step<T> {
    /// Exactly this item.
    Is(T),
    /// Any single item.
    AnyOne,
    /// Any number of items, including none.
    AnyNumber,
}

fn name_steps(name: &str) -> Vec<Step<char>> {
    let step = |character| match character {
        '*' => Step::AnyNumber,
        '?' => Step::AnyOne,
        character => Step::Is(character),
    };
    name.chars().map(step).collect()
}

fn meets(one: &[Step<char>], other: &[Step<char>]) -> bool {
    meets_with(one, other, &|one, other| one == other)
}

/// Whether some sequence matches both patterns, if two items can be the same one according to `equal`.
fn meets_with<T: Copy>(one: &[Step<T>], other: &[Step<T>], equal: &dyn Fn(T, T) -> bool) -> bool {
    // `reached[j]`: some sequence matches the steps of `one` so far, and the first `j` steps of the other.
    let mut reached = vec![false; other.len() + 1];
    reached[0] = true;
    let skip = |reached: &mut Vec<bool>, is_any: bool| {
        for at in 0..other.len() {
            // An `AnyNumber` of `one` matches each step of the other; an `AnyNumber` of the other may match no item.
            reached[at + 1] |= reached[at] && (is_any || matches!(other[at], Step::AnyNumber));
        }
    };
    skip(&mut reached, false);
    for step in one {
        if matches!(step, Step::AnyNumber) {
            skip(&mut reached, true);
            continue;
        }
        let mut next = vec![false; other.len() + 1];
        for at in 0..other.len() {
            let can_be_same = match (step, &other[at]) {
                (Step::Is(one), Step::Is(other)) => equal(*one, *other),
                _ => true,
            };
            match other[at] {
                Step::AnyNumber => next[at] |= reached[at],
                _ => next[at + 1] |= reached[at] && can_be_same,
            }
        }
        skip(&mut next, false);
        reached = next;
    }
    reached[other.len()]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn pattern(text: &str) -> PathPattern {
        PathPattern::new(text).unwrap()
    }

    fn path(text: &str) -> RelPath {
        RelPath::new(text).unwrap()
    }

    #[test]
    fn a_pattern_matches_names_and_directories() {
        for (text, yes, no) in [
            ("src/main.rs", "src/main.rs", "src/main.rs/x"),
            ("src/**", "src/a/b/c", "srcs/a"),
            ("src/**", "src", "a/src/b"),
            ("**/*.rs", "a.rs", "a.rs/b"),
            ("**/*.rs", "a/b/c.rs", "a/b/c.rsx"),
            ("a/*/c", "a/b/c", "a/c"),
            ("a/**/c", "a/c", "a/d"),
            ("?.txt", "ä.txt", "ab.txt"),
            ("*", "x", "x/y"),
            ("./a//b/", "a/b", "a"),
        ] {
            assert!(pattern(text).matches(&path(yes)), "{text} {yes}");
            assert!(!pattern(text).matches(&path(no)), "{text} {no}");
        }
    }

    #[test]
    fn patterns_overlap_if_a_file_could_match_both() {
        for (one, other, expected) in [
            ("src/**", "src/a.rs", true),
            ("src/**", "**/*.rs", true),
            ("src/*.rs", "src/*.py", false),
            ("src/*", "src/*/x", false),
            ("a*b", "*ab*", true),
            ("a?", "?b", true),
            ("a?", "b?", false),
            ("**/a", "b/**/c", false),
            ("**/a/**", "b/**", true),
            ("a", "a/**", true),
            ("**", "anything/at/all", true),
        ] {
            assert_eq!(pattern(one).overlaps(&pattern(other)), expected, "{one} {other}");
            assert_eq!(pattern(other).overlaps(&pattern(one)), expected, "{other} {one}");
        }
    }

    #[test]
    fn invalid_patterns_are_refused() {
        assert_eq!(PathPattern::new("a**/b"), Err(BadPattern::PartOfName));
        assert_eq!(PathPattern::new("../a"), Err(BadPattern::Path(BadPath::Outside)));
        assert_eq!(PathPattern::new(""), Err(BadPattern::Path(BadPath::Empty)));
        assert_eq!(PathPattern::new(&"a".repeat(501)), Err(BadPattern::TooLong));
    }

    proptest! {
        /// Two patterns that match one path overlap. A pattern without wildcards overlaps with exactly the patterns
        /// that match it.
        #[test]
        fn overlapping_agrees_with_matching(
            one in "(\\*\\*|[ab*?]{1,3})(/(\\*\\*|[ab*?]{1,3})){0,3}",
            other in "(\\*\\*|[ab*?]{1,3})(/(\\*\\*|[ab*?]{1,3})){0,3}",
            file in "[ab]{1,3}(/[ab]{1,3}){0,3}",
        ) {
            let (Ok(one), Ok(other)) = (PathPattern::new(&one), PathPattern::new(&other)) else { return Ok(()) };
            let file_path = path(&file);
            prop_assert_eq!(one.matches(&file_path), one.overlaps(&pattern(&file)));
            if one.matches(&file_path) && other.matches(&file_path) {
                prop_assert!(one.overlaps(&other));
            }
        }
    }
}
