//! Our words in the words of a client: a refusal that says "read_file first" must name a tool that the model has.

/// What a client's tools are called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Names {
    /// The tool that reads files.
    pub read: &'static str,
    /// The tool that edits them.
    pub edit: &'static str,
    /// The tool that writes whole files.
    pub write: &'static str,
}

impl Names {
    /// A text of ours with the names of the client's tools. Lines of files stay as they are.
    pub fn put_into(&self, text: &str) -> String {
        let line = |line: &str| if is_row(line) { line.to_owned() } else { self.replace(line) };
        text.split_inclusive('\n').map(line).collect()
    }

    fn replace(&self, line: &str) -> String {
        let names = [
            ("read_file", self.read),
            ("edit_file", self.edit),
            ("multi_edit", self.edit),
            ("edit_lines", self.edit),
            ("apply_patch", self.edit),
            ("write_file", self.write),
        ];
        names.iter().fold(line.to_owned(), |line, (ours, theirs)| line.replace(ours, theirs))
    }
}

/// Whether a line shows one of a file: `12|`, `12#ab|`, perhaps with a sign in front.
fn is_row(line: &str) -> bool {
    let line = line.strip_prefix(['+', '-', ' ']).unwrap_or(line);
    let end = line.find(|c: char| !c.is_ascii_digit()).unwrap_or(line.len());
    let rest = &line[end..];
    let rest = rest.strip_prefix('#').map_or(rest, |rest| rest.trim_start_matches(|c: char| c.is_ascii_alphanumeric()));
    end > 0 && rest.starts_with('|')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_change_and_lines_of_files_do_not() {
        let names = Names { read: "Read", edit: "Edit", write: "Write" };
        let text = "call read_file first, then write_file\n12|read_file(x)\n+3#ab|edit_file\nnote: apply_patch\n";
        assert_eq!(names.put_into(text), "call Read first, then Write\n12|read_file(x)\n+3#ab|edit_file\nnote: Edit\n");
    }
}
