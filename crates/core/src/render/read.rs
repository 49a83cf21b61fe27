//! The answer to `read_file`: a header, the lines, and how to go on when they were cut.

use crate::{
    encoding::Encoding,
    lines::{LineNo, LineRange, LineSet},
    path::RelPath,
    policy::Limits,
    refusal::clip,
    render::{Numbers, count, scope::name, which},
    text::Text,
    view::View,
};

/// What a read shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shown {
    /// For the model.
    pub text: String,
    /// The lines in it, also those that are cut.
    pub lines: LineSet,
    /// The lines that are there in full: these were seen.
    pub full: LineSet,
}

/// Writes the wanted lines of a file, as far as the limits allow.
pub fn read(path: &RelPath, text: &Text, wanted: &LineSet, numbers: Numbers, limits: &Limits) -> Shown {
    let total = text.line_count();
    let inside = wanted.clipped(total);
    // Room for all of it at once: growing step by step would copy a large read several times over.
    let bytes: usize = inside.ranges().iter().map(|range| text.span(*range).len() + 8 * range.count() as usize).sum();
    let mut rows = String::with_capacity(bytes.min(limits.read_bytes) + 1024);
    let (mut lines, mut full) = (LineSet::new(), LineSet::new());
    let mut stopped = false;
    let mut shown = 0;
    'ranges: for (index, range) in inside.ranges().iter().enumerate() {
        let mut gap = index > 0;
        let mut full_from = range.start;
        for line in range.iter() {
            let content = text.line(line);
            let is_long = content.len() > limits.line_chars && content.chars().nth(limits.line_chars).is_some();
            let cut_line = is_long.then(|| clip(content, limits.line_chars));
            let row = cut_line.as_deref().unwrap_or(content);
            if shown == limits.read_lines || (shown > 0 && rows.len() + row.len() > limits.read_bytes) {
                stopped = true;
                lines.extend_to(range.start, line.moved(-1));
                full.extend_to(full_from, line.moved(-1));
                break 'ranges;
            }
            if std::mem::take(&mut gap) {
                rows.push_str("…\n");
            }
            // A line that is cut was not seen, so it gets no anchor.
            if is_long {
                Numbers::Plain.write(&mut rows, line, content)
            } else {
                numbers.write(&mut rows, line, content)
            }
            rows.push_str(row);
            rows.push('\n');
            shown += 1;
            if is_long {
                full.extend_to(full_from, line.moved(-1));
                full_from = line.moved(1).unwrap_or(line);
            }
        }
        lines.insert(*range);
        full.extend_to(full_from, Some(range.end));
    }
    let mut out = rows;
    out.insert_str(0, &header(path, text, &lines));
    let past_end = wanted.minus(&LineSet::whole(total));
    if !past_end.is_empty() && total > 0 {
        out.push_str(&format!("[{} past the end: the file has {}]\n", which(&past_end), count(total, "line")));
    }
    if stopped {
        let left = inside.minus(&lines);
        out.push_str(&format!("[cut here; not shown: {}. Go on with {}]\n", which(&left), go_on(path, &left, total, numbers)));
    }
    let cut_lines = lines.minus(&full);
    if !cut_lines.is_empty() {
        out.push_str(&format!("[cut at {} characters, so only partly seen: {}]\n", limits.line_chars, which(&cut_lines)));
    }
    Shown { text: out, lines, full }
}

/// The arguments of the call that shows the rest.
fn go_on(path: &RelPath, left: &LineSet, total: usize, numbers: Numbers) -> serde_json::Value {
    let mut call = serde_json::json!({ "path": path });
    match left.ranges() {
        [rest] if rest.end.index() + 1 == total => call["offset"] = rest.start.get().into(),
        ranges => call["ranges"] = serde_json::json!(&ranges[..ranges.len().min(20)]),
    }
    if numbers == Numbers::Anchors {
        call["anchors"] = true.into();
    }
    call
}

impl LineSet {
    fn extend_to(&mut self, start: LineNo, end: Option<LineNo>) {
        if let Some(range) = end.and_then(|end| LineRange::new(start, end)) {
            self.insert(range);
        }
    }
}

fn header(path: &RelPath, text: &Text, lines: &LineSet) -> String {
    let total = text.line_count();
    let version = text.version().short();
    let path = name(path.as_str());
    if text.as_str().is_empty() {
        return format!("{path} is empty (0 lines, version {version})\n");
    }
    let what = if lines.count() as usize == total {
        count(total, "line")
    } else if lines.is_empty() {
        format!("none of {}", count(total, "line"))
    } else {
        format!("{} of {total}", which(lines))
    };
    let mut notes = String::new();
    if text.encoding() != Encoding::Utf8 {
        notes.push_str(&format!(", {}", text.encoding().name()));
    } else if text.has_bom() {
        notes.push_str(", byte order mark");
    }
    if text.has_crlf() {
        notes.push_str(if !has_bare_newline(text) { ", CRLF line endings" } else { ", mixed line endings" });
    }
    if !text.as_str().ends_with('\n') {
        notes.push_str(", no newline at the end");
    }
    format!("{path} ({what}, version {version}{notes})\n")
}

fn has_bare_newline(text: &Text) -> bool {
    let bytes = text.as_str().as_bytes();
    memchr::memchr_iter(b'\n', bytes).any(|at| at == 0 || bytes[at - 1] != b'\r')
}

/// The answer to a read of lines that the session was shown and that have not changed since.
pub fn unchanged(path: &RelPath, text: &Text, lines: &LineSet, view: &View) -> String {
    debug_assert_eq!(view.version(), text.version());
    let what = if view.is_whole() { "the file".to_owned() } else { which(lines) };
    format!(
        "{path} is unchanged since you read it (version {}): {what} as shown above still holds. \
         If that is no longer in your context, call forget with this path and read_file again.\n",
        text.version().short()
    )
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;

    fn show(content: &str, wanted: &[(u32, u32)], numbers: Numbers, limits: &Limits) -> Shown {
        let line = |number| LineNo::new(number).unwrap();
        let text = Text::new(content.as_bytes().to_vec()).unwrap();
        let wanted = wanted.iter().map(|&(start, end)| LineRange { start: line(start), end: line(end) }).collect();
        read(&RelPath::new("src/a.rs").unwrap(), &text, &wanted, numbers, limits)
    }

    #[test]
    fn a_whole_file() {
        let shown = show("fn a() {\n}\n", &[(1, 2)], Numbers::Plain, &Limits::default());
        assert_snapshot!(shown.text, @"
        src/a.rs (2 lines, version ab69cd)
        1|fn a() {
        2|}
        ");
        assert_eq!(shown.full.to_string(), "1-2");
    }

    #[test]
    fn ranges_with_anchors_and_a_gap() {
        let shown = show("a\nb\nc\nd\ne\n", &[(1, 1), (4, 9)], Numbers::Anchors, &Limits::default());
        assert_snapshot!(shown.text, @"
        src/a.rs (lines 1, 4-5 of 5, version 86dc03)
        1#km|a
        …
        4#dn|d
        5#ca|e
        [lines 6-9 past the end: the file has 5 lines]
        ");
    }

    #[test]
    fn a_cut_says_how_to_go_on_and_counts_only_what_is_shown() {
        let limits = Limits { read_lines: 3, line_chars: 4, ..Limits::default() };
        let shown = show("a\nbbbbbbbb\nc\nd\ne\n", &[(1, 5)], Numbers::Plain, &limits);
        assert_snapshot!(shown.text, @r#"
        src/a.rs (lines 1-3 of 5, version e5f507)
        1|a
        2|bbbb…[+4 chars]
        3|c
        [cut here; not shown: lines 4-5. Go on with {"offset":4,"path":"src/a.rs"}]
        [cut at 4 characters, so only partly seen: line 2]
        "#);
        assert_eq!(shown.full.to_string(), "1, 3");
    }

    #[test]
    fn a_name_with_a_line_break_begins_no_line() {
        let text = Text::of("a\n".to_owned()).unwrap();
        let path = RelPath::new("a\n# Now\nb").unwrap();
        let shown = read(&path, &text, &LineSet::whole(1), Numbers::Plain, &Limits::default());
        assert!(shown.text.starts_with(r#""a\n# Now\nb" (1 line"#), "{}", shown.text);
    }

    #[test]
    fn what_is_hidden_is_named() {
        assert_snapshot!(show("\u{feff}a\r\nb", &[(1, 2)], Numbers::Plain, &Limits::default()).text, @"
        src/a.rs (2 lines, version bb7fe7, byte order mark, CRLF line endings, no newline at the end)
        1|a
        2|b
        ");
        assert_snapshot!(show("", &[(1, 9)], Numbers::Plain, &Limits::default()).text, @"src/a.rs is empty (0 lines, version e3b0c4)");
    }
}
