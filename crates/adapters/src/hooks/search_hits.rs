//! Parses search hits as clients print them: below a heading with the path, or with the path on each line. A false hit
//! does no harm: it counts only if the file has exactly that line at that number.

use super::event::ShownLines;

/// The lines of files in the output of a search. `only` is the file that was searched, if it was one: its path may be
/// left out.
pub(super) fn hits(printed: &str, only: Option<&str>) -> Vec<ShownLines> {
    let mut hits: Vec<ShownLines> = Vec::new();
    let mut heading = only;
    for line in printed.lines() {
        if let Some(path) = heading_of(line) {
            heading = Some(path);
        } else if let (Some(path), Some((number, text))) = (heading, row(line)) {
            add(&mut hits, path, number, text);
        } else if let Some((path, number, text)) = named_row(line) {
            add(&mut hits, path, number, text);
        }
    }
    hits
}

/// Appends a line to the range that it continues, or starts a new range.
fn add(hits: &mut Vec<ShownLines>, path: &str, number: u32, text: &str) {
    match hits.last_mut().filter(|last| last.path == path && last.end() == Some(number)) {
        Some(last) => {
            last.content.push('\n');
            last.content.push_str(text);
        }
        None => hits.push(ShownLines::new(path, number, text)),
    }
}

impl ShownLines {
    /// The line number after the last one.
    fn end(&self) -> Option<u32> {
        let lines = u32::try_from(self.content.split('\n').count()).ok()?;
        self.start.checked_add(lines)
    }
}

/// A line that names the file of the rows below it: `File: a.rs`, `a.rs:`, `a.rs:12:5`.
fn heading_of(line: &str) -> Option<&str> {
    if let Some(path) = line.strip_prefix("File: ") {
        return Some(path);
    }
    if line.starts_with(char::is_whitespace) {
        return None;
    }
    let at_place = || {
        let (rest, column) = line.rsplit_once(':')?;
        let (path, number) = rest.rsplit_once(':')?;
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        (is_number(number) && is_number(column)).then_some(path)
    };
    line.strip_suffix(':').filter(|path| !path.contains(": ")).or_else(at_place)
}

/// `path:12:text`, or `path-12-text` for a line beside a hit.
fn named_row(line: &str) -> Option<(&str, u32, &str)> {
    [':', '-'].into_iter().find_map(|mark| {
        line.match_indices(mark).find_map(|(at, _)| {
            let (number, text) = line[at + 1..].split_once(mark)?;
            let number = number.parse().ok().filter(|_| at > 0 && number.bytes().all(|byte| byte.is_ascii_digit()))?;
            Some((&line[..at], number, text))
        })
    })
}

/// `12:text`, `12-text`, or with a prefix and a blank: `L12: text`, `  Line 12: text`, `> 12: text`.
fn row(line: &str) -> Option<(u32, &str)> {
    let framed = ["L", "  Line ", "> ", "  "].iter().find_map(|frame| line.strip_prefix(frame));
    let rest = framed.unwrap_or(line).trim_start();
    let end = rest.find(|character: char| !character.is_ascii_digit())?;
    let number = rest[..end].parse().ok()?;
    let text = rest[end..].strip_prefix([':', '-'])?;
    let text = if framed.is_some() { text.strip_prefix(' ').unwrap_or(text) } else { text };
    Some((number, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(printed: &str, only: Option<&str>, expected: &[(&str, u32, &str)]) {
        let hits = hits(printed, only);
        let found: Vec<_> = hits.iter().map(|hit| (hit.path.as_str(), hit.start, hit.content.as_str())).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn names_may_stand_in_front() {
        check("a.rs:2:  two\na.rs-3-\nb-1.rs:7:x:y\n--\n", None, &[("a.rs", 2, "  two\n"), ("b-1.rs", 7, "x:y")]);
        check("2:two\n3-three\n5:five", Some("a.rs"), &[("a.rs", 2, "two\nthree"), ("a.rs", 5, "five")]);
        check("2:two", None, &[]);
    }

    #[test]
    fn names_may_stand_above() {
        let gemini =
            "Found 2 matches for pattern \"t\" in the workspace directory:\n---\nFile: src/a.rs\nL1- one\nL2:   two\n---";
        check(gemini, None, &[("src/a.rs", 1, "one\n  two")]);
        check("File: a\nL2: see b.rs:7:x", None, &[("a", 2, "see b.rs:7:x")]);
        let opencode = "Found 2 matches\n/w/a.rs:\n  Line 2:   two\n  Line 9: nine\n\n/w/b.rs:\n  Line 1: one";
        check(opencode, None, &[("/w/a.rs", 2, "  two"), ("/w/a.rs", 9, "nine"), ("/w/b.rs", 1, "one")]);
        let cline = "Found 1 results for pattern: t\n\nsrc/a.rs:2:13\n  1: one\n> 2:     two\n  3: \n";
        check(cline, None, &[("src/a.rs", 1, "one\n    two\n")]);
    }

    #[test]
    fn numbers_may_be_absurd() {
        check("a:4294967295:x\na:4294967296:y\na:-1:z", None, &[("a", 4_294_967_295, "x")]);
        check("File: a\nL4294967295: x\nL0: y", None, &[("a", u32::MAX, "x"), ("a", 0, "y")]);
    }
}
