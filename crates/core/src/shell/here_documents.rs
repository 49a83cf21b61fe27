//! Separates here-documents from the command that contains them.

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Taken {
    /// The command without the here-documents.
    pub command: String,
    /// The bodies, before anything in them is expanded.
    pub bodies: Vec<String>,
}

/// Separates a command from its here-documents.
pub(super) fn take(command: &str) -> Taken {
    let mut taken = Taken::default();
    let mut lines = command.split_inclusive('\n');
    while let Some(line) = lines.next() {
        taken.command.push_str(line);
        for document in starts(line) {
            let body: String =
                lines.by_ref().take_while(|line| !document.ends_at(line)).map(|line| document.line(line)).collect();
            taken.bodies.push(body);
        }
    }
    taken
}

struct HereDocumentStart<'a> {
    delimiter: &'a str,
    /// Whether leading tabs are removed (`<<-`).
    drops_tabs: bool,
}

impl HereDocumentStart<'_> {
    fn line<'l>(&self, line: &'l str) -> &'l str {
        if self.drops_tabs { line.trim_start_matches('\t') } else { line }
    }

    fn ends_at(&self, line: &str) -> bool {
        self.line(line).trim_end_matches(['\n', '\r']) == self.delimiter
    }
}

/// The here-documents that start in a line. `<<<` does not start one.
fn starts(line: &str) -> Vec<HereDocumentStart<'_>> {
    let mut starts = Vec::new();
    let mut rest = line;
    while let Some((_, after)) = rest.split_once("<<") {
        rest = after;
        if let Some(after) = rest.strip_prefix('<') {
            rest = after;
            continue;
        }
        let word = rest.strip_prefix('-').unwrap_or(rest);
        let drops_tabs = word.len() < rest.len();
        let word = word.trim_start_matches([' ', '\t']);
        let delimiter = match word.chars().next() {
            Some(quote @ ('\'' | '"')) => word[1..].split(quote).next().unwrap_or_default(),
            _ => word
                .trim_start_matches('\\')
                .split(|c: char| c.is_whitespace() || ";|&<>()".contains(c))
                .next()
                .unwrap_or_default(),
        };
        // `1 << 3` in a script is not a here-document: a delimiter starts with a letter.
        if delimiter.starts_with(|c: char| c.is_alphabetic() || c == '_') {
            starts.push(HereDocumentStart { delimiter, drops_tabs });
        }
    }
    starts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(command: &str, left: &str, bodies: &[&str]) {
        let expected = Taken { command: left.to_owned(), bodies: bodies.iter().map(|body| (*body).to_owned()).collect() };
        assert_eq!(take(command), expected);
    }

    #[test]
    fn bodies_are_taken_out() {
        check("cat > a <<'EOF'\none\n  two\nEOF\nls", "cat > a <<'EOF'\nls", &["one\n  two\n"]);
        check("cat <<-E > a\n\tone\n\t\ttwo\n\tE\n", "cat <<-E > a\n", &["one\ntwo\n"]);
        check("a <<A; b << \"B C\"\n1\nA\n2\nB C\n", "a <<A; b << \"B C\"\n", &["1\n", "2\n"]);
        check("cat <<\\EOF\nit's\n", "cat <<\\EOF\n", &["it's\n"]);
        check("cat <<< word; echo $((1 << 3))\nls", "cat <<< word; echo $((1 << 3))\nls", &[]);
    }
}
