//! The text that a command contains: the lines of its here-documents, of its quoted strings and of the patches in them.
//! The model wrote them, so it knows them. They count for a file that this command created or changed, and for no
//! other: the pattern of `grep -q 'text' file` is only a guess about the file.

use std::collections::HashSet;

use super::here_documents;
use crate::{
    line_map::LineMap,
    lines::{LineRange, LineSet},
    text::Text,
};

/// The lines that a command contains.
#[derive(Debug)]
pub struct OwnText(HashSet<String>);

/// A longer command is ignored.
const MOST_BYTES: usize = 1 << 20;

impl OwnText {
    /// Collects the lines of a command: as written, between quotes of any kind, with escapes decoded, and without the
    /// marks of a patch.
    pub fn of(command: &str) -> Self {
        let mut own = Self(HashSet::new());
        if command.len() > MOST_BYTES {
            return own;
        }
        let taken = here_documents::take(command);
        for text in taken.bodies.iter().chain([&taken.command]) {
            own.add(text);
            ['\'', '"', '`'].iter().for_each(|quote| text.split(*quote).for_each(|part| own.add(part)));
            echo_arguments(text).iter().for_each(|line| own.add(line));
            if is_patch(text) {
                text.lines().filter_map(|line| line.strip_prefix('+')).for_each(|line| own.add(line));
            }
        }
        own
    }

    fn add(&mut self, text: &str) {
        self.add_lines(text);
        if text.contains('\\') {
            self.add_lines(&decoded(text, is_any_escape));
            self.add_lines(&decoded(text, is_escape_of_here_documents));
        }
    }

    fn add_lines(&mut self, text: &str) {
        self.0.extend(text.split('\n').map(|line| line.strip_suffix('\r').unwrap_or(line).to_owned()));
    }

    /// The lines that the command wrote into a file and that its own text contains. `before` is the file before the
    /// command ran; `None` if it did not exist.
    ///
    /// ```
    /// use surehand_core::{Text, shell::own_text::OwnText};
    ///
    /// let text = |text: &str| Text::of(text.to_owned()).expect("valid text");
    /// let own = OwnText::of("cat >> a.rs <<'EOF'\nfn b() {\n}\nEOF");
    /// assert_eq!(own.written(Some(&text("fn a() {\n}\n")), &text("fn a() {\n}\nfn b() {\n}\n")).to_string(), "3-4");
    /// ```
    pub fn written(&self, before: Option<&Text>, after: &Text) -> LineSet {
        let new: Vec<LineRange> = match before {
            None => LineSet::whole(after.line_count()).ranges().to_vec(),
            Some(before) => {
                let map = LineMap::between(before, after);
                map.hunks().iter().filter_map(|hunk| LineRange::from_indexes(hunk.after.clone())).collect()
            }
        };
        new.into_iter().flat_map(|range| self.known_lines(after, range)).collect()
    }

    /// The known lines in a range. Lines without a word count beside a known line with a word, or if all lines are
    /// known.
    fn known_lines(&self, text: &Text, range: LineRange) -> Vec<LineRange> {
        let lines: Vec<_> = range.iter().filter(|line| self.0.contains(text.line(*line))).collect();
        let is_whole = lines.len() == range.count() as usize;
        let blocks = lines.chunk_by(|a, b| a.moved(1) == Some(*b));
        let has_words = |block: &&[_]| block.iter().any(|line| text.line(*line).chars().any(char::is_alphanumeric));
        let counting = blocks.filter(|block| is_whole || has_words(block));
        counting.filter_map(|block| LineRange::new(*block.first()?, *block.last()?)).collect()
    }
}

/// The text that `echo` prints: its words without quotes, separated by one blank, up to the end of the command or a
/// redirection.
fn echo_arguments(script: &str) -> Vec<String> {
    let mut lines = Vec::new();
    for rest in script.split("echo ").skip(1) {
        let mut line = String::new();
        let mut quote = None;
        for c in rest.chars() {
            match (quote, c) {
                (None, '>' | '|' | ';' | '&' | '\n' | ')') => break,
                (None, '\'' | '"') => quote = Some(c),
                (Some(open), _) if c == open => quote = None,
                (None, ' ' | '\t') if line.is_empty() || line.ends_with(' ') => {}
                _ => line.push(c),
            }
        }
        lines.push(line.trim_end_matches(' ').to_owned());
    }
    lines
}

fn is_patch(text: &str) -> bool {
    ["*** Begin Patch", "+++ ", "@@"].iter().any(|mark| text.contains(mark))
}

/// Escapes that programs and languages use for other characters.
fn is_any_escape(c: char) -> Option<char> {
    match c {
        'n' => Some('\n'),
        't' => Some('\t'),
        'r' => Some('\r'),
        '\\' | '\'' | '"' | '`' | '$' => Some(c),
        _ => None,
    }
}

/// Characters that the shell unescapes in a here-document whose delimiter is not quoted.
fn is_escape_of_here_documents(c: char) -> Option<char> {
    matches!(c, '\\' | '`' | '$').then_some(c)
}

fn decoded(text: &str, escaped: fn(char) -> Option<char>) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match chars.peek().copied().and_then(escaped).filter(|_| c == '\\') {
            Some(meant) => {
                plain.push(meant);
                chars.next();
            }
            None => plain.push(c),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(command: &str, before: Option<&str>, after: &str, expected: &str) {
        let text = |text: &str| Text::of(text.to_owned()).unwrap();
        assert_eq!(OwnText::of(command).written(before.map(text).as_ref(), &text(after)).to_string(), expected, "{command}");
    }

    #[test]
    fn a_here_document_is_known_as_a_whole() {
        check("cat > a <<'EOF'\nfn a() {\n\n}\nEOF", None, "fn a() {\n\n}\n", "1-3");
        check("cat <<-E > a\n\tone\n\t\ttwo\n\tE", None, "one\ntwo\n", "1-2");
        check("tee a <<E\ncost: \\$5\n$HOME\nE", None, "cost: $5\n/root\n", "1");
        check("mkdir -p x && cat > x/a <<E && cat > b <<F\none\nE\ntwo\nF\n", None, "two\n", "1");
    }

    #[test]
    fn quoted_texts_are_known_with_their_escapes() {
        check("printf 'one\\n\\ttwo\\n' > a", None, "one\n\ttwo\n", "1-2");
        check("echo \"it is\" >> a", Some("x\n"), "x\nit is\n", "2");
        check("echo 1 > a; echo it's  'a b' c>>a", None, "1\nits  a b c\n", "1");
        check("echo one  two | tee a && echo 'x  y' z >> a", None, "one two\nx  y z\n", "1-2");
        check("python3 - <<'E'\nopen('a','w').write(\"one\\n\\n}\\n\")\nE", None, "one\n\n}\n", "1-3");
        check("python3 - <<'E'\nopen('a','w').write('''one\ntwo\n''')\nE", None, "one\ntwo\n", "1-2");
    }

    #[test]
    fn patches_say_what_they_add() {
        let patch = "apply_patch <<'E'\n*** Begin Patch\n*** Update File: a\n@@\n-one\n+ONE\n+\n*** End Patch\nE";
        check(patch, Some("one\ntwo\n"), "ONE\n\ntwo\n", "1-2");
        check("patch -p1 <<E\n--- a/a\n+++ b/a\n@@ -1 +1 @@\n-one\n+1\nE", Some("one\n"), "1\n", "1");
    }

    #[test]
    fn lines_that_were_there_are_not_written() {
        check("echo '}' >> a", Some("{\n}\n"), "{\n}\n}\n", "3");
        check("sed -i 's/one/two/' a", Some("one x\n}\n"), "two x\n}\n", "");
        check("make a # }", None, "{\n}\n}\n", "");
    }
}
