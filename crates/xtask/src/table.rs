//! Markdown tables and wrapped prose. The studies use this file too.

/// A Markdown table whose columns are also aligned as plain text. The first `left` columns are words, the others
/// numbers.
pub(crate) fn table<S: AsRef<str>>(
    left: usize,
    header: impl AsRef<[S]>,
    rows: impl IntoIterator<Item = impl AsRef<[String]>>,
) -> String {
    let header: Vec<&str> = header.as_ref().iter().map(AsRef::as_ref).collect();
    let rows: Vec<_> = rows.into_iter().collect();
    let cells: Vec<Vec<&str>> = rows.iter().map(|row| row.as_ref().iter().map(String::as_str).collect()).collect();
    let widths: Vec<usize> = (0..header.len())
        .map(|column| cells.iter().chain([&header]).map(|row| row[column].chars().count()).max().unwrap_or(0))
        .collect();
    let line = |cells: &Vec<&str>| {
        let padded: Vec<_> = (cells.iter().zip(&widths).enumerate())
            .map(|(column, (cell, width))| if column < left { format!("{cell:<width$}") } else { format!("{cell:>width$}") })
            .collect();
        format!("| {} |", padded.join(" | "))
    };
    let rule: Vec<_> = (widths.iter().enumerate())
        .map(|(column, &width)| format!("-{}{}", "-".repeat(width), if column < left { '-' } else { ':' }))
        .collect();
    let mut lines = vec![line(&header), format!("|{}|", rule.join("|"))];
    lines.extend(cells.iter().map(line));
    lines.join("\n")
}

/// Breaks prose at 120 columns. Tables, headings and code stay as they are.
pub(crate) fn wrap(text: &str) -> String {
    const WIDTH: usize = 120;
    let is_prose = |block: &str| !block.starts_with(['|', '#']) && !block.starts_with("```");
    let fill = |block: &str| {
        let mut lines = vec![String::new()];
        for word in block.split_whitespace() {
            let line = lines.last_mut().expect("there is always a line");
            if line.is_empty() {
                *line = word.to_owned();
            } else if line.chars().count() + 1 + word.chars().count() <= WIDTH {
                *line = format!("{line} {word}");
            } else {
                lines.push(word.to_owned());
            }
        }
        lines.join("\n")
    };
    let blocks = text.split("\n\n").map(|block| if is_prose(block) { fill(block) } else { block.to_owned() });
    blocks.collect::<Vec<_>>().join("\n\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_prose_is_wrapped() {
        let words = "word ".repeat(40);
        let table = format!("| {words}|");
        let [first, second] = ["word ".repeat(24), "word ".repeat(16)].map(|line| line.trim().to_owned());
        assert_eq!(wrap(&format!("# {words}\n\n{words}\n\n{table}")), format!("# {words}\n\n{first}\n{second}\n\n{table}"));
    }

    #[test]
    fn a_table_lines_up_words_left_and_numbers_right() {
        let rows = [["read".into(), "7".into()], ["edit, synced".into(), "1234567".into()]];
        let expected = "\
| call         |     p50 |
|--------------|--------:|
| read         |       7 |
| edit, synced | 1234567 |";
        assert_eq!(table(1, ["call", "p50"], rows), expected);
    }
}
