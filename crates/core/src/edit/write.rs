//! `write_file`: keeps line endings and a byte order mark, which a reader does not see.

use crate::{
    line_map::LineMap,
    lines::LineNo,
    text::{LineEnding, Text},
};

/// The content to write over `base`. A session sees neither carriage returns nor a byte order mark, so content without
/// them keeps those of the file: unchanged lines keep their ending, new lines get the usual one.
pub(crate) fn kept_endings(base: &Text, content: &str) -> String {
    let bom = if base.has_bom() && !content.starts_with('\u{feff}') { "\u{feff}" } else { "" };
    if content.contains('\r') || !base.has_crlf() {
        return format!("{bom}{content}");
    }
    let old: Vec<&str> = base.lines().map(|(_, line)| line).collect();
    let new: Vec<&str> = content.split_inclusive('\n').map(|line| line.strip_suffix('\n').unwrap_or(line)).collect();
    let mut endings = vec![base.usual_ending(); new.len()];
    for (run, shift) in LineMap::of_lines(&old, &new).kept() {
        for index in run {
            let ending = base.ending(LineNo::at_index(index));
            if ending != LineEnding::None {
                endings[(index as i64 + shift) as usize] = ending;
            }
        }
    }
    let mut written = String::with_capacity(content.len() + new.len() + bom.len());
    written.push_str(bom);
    for (index, (line, ending)) in new.iter().zip(&endings).enumerate() {
        written.push_str(line);
        if index + 1 < new.len() || content.ends_with('\n') {
            written.push_str(ending.as_str());
        }
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(base: &str, content: &str, written: &str) {
        assert_eq!(kept_endings(&Text::new(base.as_bytes().to_vec()).unwrap(), content), written);
    }

    #[test]
    fn hidden_line_endings_and_marks_are_kept() {
        check("a\nb\n", "b\n", "b\n");
        check("a\r\nb\r\n", "a\nc\n", "a\r\nc\r\n");
        check("a\r\nb\n", "a\nb\nc\n", "a\r\nb\nc\n");
        check("a\r\nb\r\nc\n", "x\na\nb\nc\n", "x\r\na\r\nb\r\nc\n");
        check("a\r\nb", "a\nb", "a\r\nb");
        check("\u{feff}a\n", "b\n", "\u{feff}b\n");
        check("\u{feff}a\r\n", "a\nb", "\u{feff}a\r\nb");
    }

    #[test]
    fn given_carriage_returns_are_intended() {
        check("a\nb\n", "a\r\nb\r\n", "a\r\nb\r\n");
        check("a\r\nb\r\n", "a\r\nb\n", "a\r\nb\n");
    }
}
