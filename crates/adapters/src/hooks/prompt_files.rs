//! Files that the person named with `@` in a prompt. Gemini CLI and its forks append their text to the prompt that
//! hooks get.

use super::event::ShownLines;

const ABOVE: &str = "\n--- Content from referenced files ---\n";
const BELOW: &str = "\n--- End of content ---";
const NAME: &str = "Content from ";

pub(super) fn referenced(prompt: &str) -> Vec<ShownLines> {
    let Some((_, block)) = prompt.split_once(ABOVE) else { return Vec::new() };
    let block = block.rsplit_once(BELOW).map_or(block, |(block, _)| block);
    let name = |line: &str| Some(line.strip_prefix(NAME)?.strip_suffix(':')?.trim_start_matches('@').to_owned());
    split_files(block, name).into_iter().map(part).collect()
}

/// Splits a text at the lines in which `name` finds the name of a file. A file that contains such a line counts up to
/// there.
pub(super) fn split_files(text: &str, name: impl Fn(&str) -> Option<String>) -> Vec<ShownLines> {
    let mut files: Vec<ShownLines> = Vec::new();
    for line in text.split_inclusive('\n') {
        match (name(line.trim_end()), files.last_mut()) {
            (Some(name), _) => files.push(ShownLines::new(name, 1, "")),
            (None, Some(file)) => file.content.push_str(line),
            (None, None) => {}
        }
    }
    files
}

/// A header above a part of a file has its line numbers.
fn part(file: ShownLines) -> ShownLines {
    const LINES: &str = "Showing lines ";
    const RULE: &str = "\n---\n";
    let part = file.content.strip_prefix(LINES).and_then(|rest| {
        let (above, content) = rest.split_once(RULE)?;
        Some((above.split_once('-')?.0.parse().ok()?, content.to_owned()))
    });
    match part {
        Some((start, content)) => ShownLines::new(file.path, start, content),
        None => file,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(prompt: &str, expected: &[(&str, u32, &str)]) {
        let files = referenced(prompt);
        let found: Vec<_> = files.iter().map(|file| (file.path.as_str(), file.start, file.content.as_str())).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn files_stand_below_the_prompt() {
        check("Do it.", &[]);
        check("Content from a.txt:\nno", &[]);
        let gemini =
            "See @a.txt\n--- Content from referenced files ---\nContent from @a.txt:\nalpha\nbeta\n--- End of content ---";
        check(gemini, &[("a.txt", 1, "alpha\nbeta")]);
        let two = "See\n--- Content from referenced files ---\nContent from a.txt:\nalpha\n\nContent from src/b.txt:\none\n\n--- End of content ---";
        check(two, &[("a.txt", 1, "alpha\n\n"), ("src/b.txt", 1, "one\n")]);
        let part = "See\n--- Content from referenced files ---\nContent from a.txt:\nShowing lines 3-4 of 9 total lines.\n---\nc\nd\n--- End of content ---";
        check(part, &[("a.txt", 3, "c\nd")]);
    }
}
