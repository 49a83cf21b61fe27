//! Shortens text to a number of tokens, and says how much it leaves out.

use std::borrow::Cow;

use crate::tokens::estimate;

/// Replaces each run of white space and control characters by one blank.
pub fn on_one_line(text: &str) -> String {
    let words = text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join(" ")
}

/// Shortens a text to at most `tokens` by leaving out its middle.
pub fn shorten(text: &str, tokens: usize) -> Cow<'_, str> {
    fitted(text, tokens, |keep, length| {
        let (head, tail) = (at(text, keep / 3), at(text, length - (keep - keep / 3)));
        format!("{}…{}", &text[..head], &text[tail..])
    })
}

/// Shortens a text to at most `tokens` by leaving out its end.
pub fn cut(text: &str, tokens: usize) -> Cow<'_, str> {
    fitted(text, tokens, |keep, length| format!("{}…[+{} chars]", &text[..at(text, keep)], length - keep))
}

/// The text, or the result of `make` for the largest number of characters that fits into `tokens`, but at least a few.
fn fitted(text: &str, tokens: usize, make: impl Fn(usize, usize) -> String) -> Cow<'_, str> {
    const FEWEST: usize = 4;
    // Few longer texts fit, and the estimate must not scan a text of any length.
    let longest = tokens * 8;
    if text.len() <= longest && estimate(text) <= tokens {
        return Cow::Borrowed(text);
    }
    let length = text.chars().count();
    let mut keep = length.saturating_sub(1).min(longest);
    loop {
        let made = make(keep, length);
        let found = estimate(&made);
        if keep <= FEWEST || found <= tokens {
            return Cow::Owned(made);
        }
        keep = (keep * tokens / found).min(keep - 1).max(FEWEST);
    }
}

/// The byte offset of a character.
fn at(text: &str, character: usize) -> usize {
    text.char_indices().nth(character).map_or(text.len(), |(at, _)| at)
}

/// Shortens a text to about `tokens` by keeping whole lines of its start and end. A line between them counts the
/// omitted lines.
pub fn ends(text: &str, tokens: usize) -> Cow<'_, str> {
    let longest = tokens * 8;
    if text.len() <= longest && estimate(text) <= tokens {
        return Cow::Borrowed(text);
    }
    let lines: Vec<&str> = text.lines().collect();
    let half = tokens.saturating_sub(20) / 2;
    let take = |lines: &mut dyn Iterator<Item = &&str>| {
        let mut room = half;
        let fits = |line: &&&str| {
            // The estimate must not scan a line of any length.
            let cost = if line.len() > longest { usize::MAX } else { estimate(line) + 1 };
            let fits = cost <= room;
            room = room.saturating_sub(cost);
            fits
        };
        lines.take_while(fits).count()
    };
    let head = take(&mut lines.iter());
    let tail = take(&mut lines[head..].iter().rev());
    if head + tail == 0 {
        return cut(text, tokens);
    }
    let left = lines.len() - head - tail;
    let part = |lines: &[&str]| lines.iter().map(|line| format!("{line}\n")).collect::<String>();
    Cow::Owned(format!(
        "{}[… {} left out …]\n{}",
        part(&lines[..head]),
        super::count(left, "line"),
        part(&lines[lines.len() - tail..])
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_long_text_both_ends_stay() {
        let text: String = (1..=500).map(|n| format!("line {n}\n")).collect();
        let short = ends(&text, 60);
        assert!(short.starts_with("line 1\nline 2\n"), "{short}");
        assert!(short.ends_with("line 499\nline 500\n"), "{short}");
        assert!(short.contains(" lines left out …]\n"), "{short}");
        assert!(estimate(&short) <= 60, "{}", estimate(&short));
        assert_eq!(ends("a\nb", 10), "a\nb");
        assert!(estimate(&ends(&"word ".repeat(10_000), 60)) <= 60);
    }
}
