//! Our words in the words of a client: a refusal that says "read_file first" must name a tool that the model has.

use surehand_engine::core::render::row;

/// What a client's tools are called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Names {
    /// What reads files.
    pub read: &'static str,
    /// What edits them.
    pub edit: &'static str,
    /// What writes whole files.
    pub write: &'static str,
}

impl Names {
    /// A text of ours with the names of the client's tools. Lines and names of files stay as they are.
    pub fn put_into(&self, text: &str) -> String {
        let line = |line: &str| if is_row(line) { line.to_owned() } else { self.replace(line) };
        text.split_inclusive('\n').map(line).collect()
    }

    fn replace(&self, line: &str) -> String {
        let mut replaced = String::new();
        let mut rest = line;
        while let Some(start) = rest.find(is_of_a_name) {
            let end = rest[start..].find(|c| !is_of_a_name(c)).map_or(rest.len(), |end| start + end);
            // A full stop ends a sentence more often than a name.
            let word = rest[start..end].trim_end_matches('.');
            replaced.push_str(&rest[..start]);
            replaced.push_str(self.of(word).unwrap_or(word));
            rest = &rest[start + word.len()..];
            let stops = rest.len() - rest.trim_start_matches('.').len();
            replaced.push_str(&rest[..stops]);
            rest = &rest[stops..];
        }
        replaced + rest
    }

    /// What the client has instead of a tool of ours.
    fn of(&self, ours: &str) -> Option<&'static str> {
        match ours {
            "read_file" => Some(self.read),
            "edit_file" | "multi_edit" | "edit_lines" | "apply_patch" => Some(self.edit),
            "write_file" => Some(self.write),
            _ => None,
        }
    }
}

/// Whether a character may stand in the name of a tool or of a file.
fn is_of_a_name(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/')
}

/// Whether a line shows one of a file: `12|`, `12#ab|`, perhaps with a sign in front.
fn is_row(line: &str) -> bool {
    row(line.trim_start_matches(' ')).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(Names { read: "Read", edit: "Edit", write: "Write" }.put_into(text), expected);
    }

    #[test]
    fn names_of_tools_change() {
        check("call read_file first, then write_file\nnote: apply_patch", "call Read first, then Write\nnote: Edit");
        check("to create it, use write_file.\n(multi_edit)…", "to create it, use Write.\n(Edit)…");
    }

    #[test]
    fn lines_of_files_do_not() {
        check("12|read_file(x)\n+3#ab|edit_file\n  -4|write_file\n", "12|read_file(x)\n+3#ab|edit_file\n  -4|write_file\n");
    }

    #[test]
    fn names_of_files_do_not() {
        check("src/read_file.rs was not read", "src/read_file.rs was not read");
        check("write_file/a ..read_file my_read_file", "write_file/a ..read_file my_read_file");
    }
}
