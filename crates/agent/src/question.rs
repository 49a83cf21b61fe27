//! Finds the question in an answer without a call. A question that ends a text is meant for the user; one in the middle
//! of it is not.

/// How many paragraphs from the end may hold the question, lists not counted: "Which one? Let me know."
const PARAGRAPHS: usize = 2;

/// The question at the end of a text, with the list that may follow it.
pub(crate) fn find_question(text: &str) -> Option<&str> {
    let mut left = PARAGRAPHS;
    for start in paragraph_starts(text).into_iter().rev() {
        let paragraph = text[start..].split("\n\n").next().unwrap_or_default();
        let prose: Vec<&str> = paragraph.lines().filter(|line| !is_list_item(line)).collect();
        if prose.iter().all(|line| line.trim().is_empty()) {
            continue;
        }
        if prose.iter().any(|line| asks(line)) {
            return Some(text[start..].trim());
        }
        left -= 1;
        if left == 0 {
            break;
        }
    }
    None
}

/// Where the paragraphs outside of code blocks begin.
fn paragraph_starts(text: &str) -> Vec<usize> {
    let (mut starts, mut at) = (Vec::new(), 0);
    let (mut is_code, mut is_between) = (false, true);
    for line in text.split_inclusive('\n') {
        let is_fence = line.trim_start().starts_with("```");
        if line.trim().is_empty() || is_fence {
            is_between = true;
        } else if !is_code && is_between {
            starts.push(at);
            is_between = false;
        }
        is_code ^= is_fence;
        at += line.len();
    }
    starts
}

/// `- one`, `* one`, `1. one`, `b) one`
fn is_list_item(line: &str) -> bool {
    let line = line.trim_start();
    let (mark, rest) = line.split_once(' ').unwrap_or((line, ""));
    let label = mark.trim_end_matches(['.', ')', ':']);
    let is_label = label.len() < mark.len() && (label.len() == 1 || label.chars().all(|c| c.is_ascii_digit()));
    !rest.is_empty() && (matches!(mark, "-" | "*" | "+" | "•") || is_label)
}

/// Whether a sentence of this line ends with a question mark. Question marks in code and in URLs do not count.
fn asks(line: &str) -> bool {
    let prose: String = line.split('`').step_by(2).collect::<Vec<_>>().join("x");
    prose.split_whitespace().any(|word| {
        let word = word.trim_end_matches(['"', '\'', '*', '_', ')', '”', '’', '»', '!']);
        word.ends_with(['?', '？', '؟']) && !word.contains("://")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Option<&str>) {
        assert_eq!(find_question(text), expected);
    }

    #[test]
    fn a_question_is_at_the_end() {
        check("Which database should I use?", Some("Which database should I use?"));
        check("I have read it.\n\n**Tabs or spaces?**\n", Some("**Tabs or spaces?**"));
        check("Tabs or spaces? I would take tabs.", Some("Tabs or spaces? I would take tabs."));
        check("Which one?\n\nLet me know, and I go on.", Some("Which one?\n\nLet me know, and I go on."));
        check("どちらにしますか？", Some("どちらにしますか？"));
    }

    #[test]
    fn choices_may_follow_it() {
        for choices in ["1. SQLite\n2. Postgres", "- SQLite\n- Postgres", "a) SQLite\nb) Postgres"] {
            for gap in ["\n", "\n\n"] {
                let text = format!("Which database?{gap}{choices}");
                check(&text, Some(&text));
            }
        }
    }

    #[test]
    fn a_question_on_the_way_is_not_for_the_user() {
        check("What is in it? A list.\n\nSo I change it.\n\nThen I test it.", None);
        check("I look at the files now.", None);
        check("", None);
    }

    #[test]
    fn code_and_addresses_ask_nothing() {
        check("```rust\nlet x = f()?\n```", None);
        check("I add `f()?` there.", None);
        check("It is at https://example.org/?", None);
        check("It is a `Result`: is `x?` wanted?", Some("It is a `Result`: is `x?` wanted?"));
    }
}
