//! The files that are measured on: text that looks like code, different in every file, with one unique token in the
//! middle.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

/// The token for the state `n`. All tokens have the same length, so that an edit keeps the size of the file.
pub(crate) fn token(n: usize) -> String {
    format!("token_{n:08}")
}

/// The line that has the token, without its end.
pub(crate) fn token_line(n: usize) -> String {
    format!("    let state = \"{}\";", token(n))
}

/// At least `size` bytes in lines of about 40 characters, with `token(0)` in the middle; `seed` makes it differ from
/// other files.
pub(crate) fn content(seed: usize, size: usize) -> String {
    content_with(seed, size, &[0])
}

/// Like `content`, with these tokens, spread evenly.
pub(crate) fn content_with(seed: usize, size: usize, tokens: &[usize]) -> String {
    let mut text = String::with_capacity(size + 60 * (tokens.len() + 1));
    let mut line = 0;
    let mut places = (1..).map(|part| part * size / (tokens.len() + 1)).zip(tokens).peekable();
    while text.len() < size {
        if let Some((_, &token)) = places.next_if(|(place, _)| text.len() >= *place) {
            text.push_str(&token_line(token));
            text.push('\n');
        }
        // JSON escapes quotes; about as many lines have them as in code.
        let value = if line % 4 == 0 { "map[\"key\"]" } else { "map[index]" };
        text.push_str(&format!("    let {} = {value} + 1;\n", name(seed, line)));
        line += 1;
    }
    text.push_str(&last_line(seed));
    text
}

/// Whether a server showed the whole file, in any format: its first line, its last line, and no less text.
pub(crate) fn is_whole(shown: &str, seed: usize, size: usize) -> bool {
    shown.len() >= size && shown.contains(&name(seed, 0)) && shown.contains(last_line(seed).trim_end())
}

/// The variable of a line.
fn name(seed: usize, line: usize) -> String {
    format!("v{seed:05}_{line:05}")
}

fn last_line(seed: usize) -> String {
    format!("// end of {seed:05}\n")
}

/// Writes a file and the directories above it.
pub(crate) fn create(root: &Path, path: &str, content: &str) -> Result<()> {
    let path = root.join(path);
    let directory = path.parent().expect("a path below the root has a parent");
    fs::create_dir_all(directory).with_context(|| directory.display().to_string())?;
    fs::write(&path, content).with_context(|| path.display().to_string())
}

/// The text of a file.
pub(crate) fn text(root: &Path, path: &str) -> Result<String> {
    let path = root.join(path);
    fs::read_to_string(&path).with_context(|| path.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_its_size_and_one_token() {
        for size in [200, 1024, 100 * 1024] {
            let text = content(3, size);
            assert!((size..size + 120).contains(&text.len()), "{} bytes for {size}", text.len());
            assert_eq!(text.matches(&token_line(0)).count(), 1);
        }
    }

    #[test]
    fn tokens_are_spread_over_the_file() {
        let text = content_with(3, 10_000, &[7, 8, 9]);
        let places = [7, 8, 9].map(|n| text.find(&token_line(n)).unwrap() / 1_000);
        assert_eq!(places, [2, 5, 7]);
    }

    #[test]
    fn a_part_of_a_file_is_not_the_whole() {
        let text = content(3, 1024);
        let (begin, end) = (&text[..1000], &text[40..]);
        assert!(is_whole(&text, 3, 1024));
        assert!(!is_whole(&text, 4, 1024));
        assert!(!is_whole(begin, 3, 900));
        assert!(!is_whole(end, 3, 900));
    }
}
