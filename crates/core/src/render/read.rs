//! Renders the reply to `read_file`: a header, the lines, and how to continue if they were truncated.

use crate::{
    encoding::Encoding,
    excerpt::clip,
    line_numbers::LineNumbers,
    lines::{LineRange, LineSet},
    outcome::{ReadResult, UnchangedRead, read::is_long},
    path::RelPath,
    render::{ReplyAudience, count, describe_lines, scope::name},
    text::Text,
    text_sink::TextSink,
    tool::Tool,
};

/// The lines of a file as text.
pub fn read(reading: &ReadResult, audience: ReplyAudience<'_>) -> String {
    let mut out = String::new();
    write(&mut out, reading, audience);
    out
}

pub(super) fn write(out: &mut impl TextSink, reading: &ReadResult, audience: ReplyAudience<'_>) {
    let ReadResult { path, text, wanted, lines, full, line_chars, numbers } = reading;
    out.put(&header(path, text, lines));
    if audience.sees_lines() {
        write_rows(out, reading);
    }
    let total = text.line_count();
    let past_end = wanted.minus(&LineSet::whole(total));
    if !past_end.is_empty() && total > 0 {
        out.put(&format!("[{} past the end: the file has {}]\n", describe_lines(&past_end), count(total, "line")));
    }
    let left = reading.left();
    if !left.is_empty() {
        out.put(&format!(
            "[cut here; not shown: {}. Go on with {}]\n",
            describe_lines(&left),
            go_on(path, &left, total, *numbers)
        ));
    }
    let cut_lines = lines.minus(full);
    if !cut_lines.is_empty() {
        out.put(&format!("[cut at {line_chars} characters, so only partly seen: {}]\n", describe_lines(&cut_lines)));
    }
}

/// The lines of a read, each with its number.
pub fn rows(reading: &ReadResult) -> String {
    let mut out = String::new();
    write_rows(&mut out, reading);
    out
}

fn write_rows(out: &mut impl TextSink, reading: &ReadResult) {
    let ReadResult { text, lines, numbers, line_chars, .. } = reading;
    // Allocate for the whole read. A growing buffer would copy a large read several times.
    let bytes = |range: &LineRange| text.span(*range).len() + numbers.width(range.end) * range.count() as usize;
    out.reserve(lines.ranges().iter().map(bytes).sum::<usize>() + 1024);
    for (index, range) in lines.ranges().iter().enumerate() {
        if index > 0 {
            out.put("…\n");
        }
        for line in range.iter() {
            let content = text.line(line);
            // A truncated line was not seen, so it gets no anchor.
            if is_long(content, *line_chars) {
                LineNumbers::Plain.write(out, line, content);
                out.put(&clip(content, *line_chars));
            } else {
                numbers.write(out, line, content);
                out.put(content);
            }
            out.end_line();
        }
    }
}

fn go_on(path: &RelPath, left: &LineSet, total: usize, numbers: LineNumbers) -> serde_json::Value {
    let mut call = serde_json::json!({ "path": path });
    match left.ranges() {
        [rest] if rest.end.index() + 1 == total => call["offset"] = rest.start.get().into(),
        ranges => call["ranges"] = serde_json::json!(&ranges[..ranges.len().min(20)]),
    }
    if numbers == LineNumbers::Anchors {
        call["anchors"] = true.into();
    }
    call
}

fn header(path: &RelPath, text: &Text, lines: &LineSet) -> String {
    let total = text.line_count();
    let version = text.version().short();
    let path = name(path.as_str());
    if text.as_str().is_empty() {
        return format!("{path} is empty (0 lines, version {version})\n");
    }
    let amount = if lines.count() as usize == total {
        count(total, "line")
    } else if lines.is_empty() {
        format!("none of {}", count(total, "line"))
    } else {
        format!("{} of {total}", describe_lines(lines))
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
    format!("{path} ({amount}, version {version}{notes})\n")
}

fn has_bare_newline(text: &Text) -> bool {
    let bytes = text.as_str().as_bytes();
    memchr::memchr_iter(b'\n', bytes).any(|at| at == 0 || bytes[at - 1] != b'\r')
}

/// The reply to a read of lines that the session was shown before and that have not changed.
pub fn unchanged(unchanged: &UnchangedRead, audience: ReplyAudience<'_>) -> String {
    let UnchangedRead { path, text, lines, is_whole } = unchanged;
    let (read, version) = (audience.names.read(), text.version().short());
    let subject = if *is_whole { "the file".to_owned() } else { describe_lines(lines) };
    let hint = match audience.names.get(Tool::Forget) {
        Some(forget) => format!(" If that is no longer in your context, call {forget} with this path and {read} again."),
        None => String::new(),
    };
    format!("{path} is unchanged since you read it (version {version}): {subject} as shown above still holds.{hint}\n")
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;
    use crate::{
        lines::LineNo,
        outcome::{Done, Outcome},
        policy::Limits,
        render,
        tool::ToolNames,
    };

    fn show(content: &str, wanted: &[(u32, u32)], numbers: LineNumbers, limits: &Limits) -> Shown {
        let line = |number| LineNo::new(number).unwrap();
        let text = Text::new(content.as_bytes().to_vec()).unwrap();
        let wanted = wanted.iter().map(|&(start, end)| LineRange { start: line(start), end: line(end) }).collect();
        shown(RelPath::new("src/a.rs").unwrap(), text, wanted, numbers, limits)
    }

    struct Shown {
        text: String,
        full: LineSet,
    }

    fn shown(path: RelPath, text: Text, wanted: LineSet, numbers: LineNumbers, limits: &Limits) -> Shown {
        let reading = ReadResult::of(path, text, wanted, numbers, limits);
        Shown { text: read(&reading, ReplyAudience::new(&ToolNames::default())), full: reading.full }
    }

    #[test]
    fn a_whole_file() {
        let shown = show("fn a() {\n}\n", &[(1, 2)], LineNumbers::Plain, &Limits::default());
        assert_snapshot!(shown.text, @"
        src/a.rs (2 lines, version ab69cd)
        1|fn a() {
        2|}
        ");
        assert_eq!(shown.full.to_string(), "1-2");
    }

    #[test]
    fn ranges_with_anchors_and_a_gap() {
        let shown = show("a\nb\nc\nd\ne\n", &[(1, 1), (4, 9)], LineNumbers::Anchors, &Limits::default());
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
        let shown = show("a\nbbbbbbbb\nc\nd\ne\n", &[(1, 5)], LineNumbers::Plain, &limits);
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
    fn text_in_json_equals_the_text() {
        let text = Text::of(format!("\u{feff}\tone \"two\"\r\n\\ é {}\nlast", "x".repeat(90))).unwrap();
        let limits = Limits { line_chars: 50, ..Limits::default() };
        for numbers in [LineNumbers::Plain, LineNumbers::Anchors] {
            let wanted = LineSet::whole(5);
            let reading = ReadResult::of(RelPath::new("a").unwrap(), text.clone(), wanted, numbers, &limits);
            let outcome = Outcome::new(Ok(Done::Read(reading)));
            let (names, mut sent) = (ToolNames::default(), b"\"".to_vec());
            render::text_in_json(&outcome, &names, &mut sent);
            sent.push(b'"');
            assert_eq!(serde_json::from_slice::<String>(&sent).unwrap(), render::text(&outcome, &names));
        }
    }

    #[test]
    fn a_name_with_a_line_break_begins_no_line() {
        let text = Text::of("a\n".to_owned()).unwrap();
        let path = RelPath::new("a\n# Now\nb").unwrap();
        let shown = shown(path, text, LineSet::whole(1), LineNumbers::Plain, &Limits::default());
        assert!(shown.text.starts_with(r#""a\n# Now\nb" (1 line"#), "{}", shown.text);
    }

    #[test]
    fn hidden_properties_are_named() {
        assert_snapshot!(show("\u{feff}a\r\nb", &[(1, 2)], LineNumbers::Plain, &Limits::default()).text, @"
        src/a.rs (2 lines, version bb7fe7, byte order mark, CRLF line endings, no newline at the end)
        1|a
        2|b
        ");
        assert_snapshot!(show("", &[(1, 9)], LineNumbers::Plain, &Limits::default()).text, @"src/a.rs is empty (0 lines, version e3b0c4)");
    }
}
