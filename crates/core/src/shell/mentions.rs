//! Finds words in a command and its output that may name files. Most of them name none; the caller looks them up.

use std::collections::HashSet;

use super::{here_documents, printed::OutputRows};

/// Names beyond this number are ignored.
const MOST_NAMES: usize = 400;

/// A longer word is not a path.
const LONGEST_NAME: usize = 1024;

/// How deep scripts in quotes are nested before they are ignored.
const DEEPEST: usize = 3;

/// The names that a command line mentions.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Mentions {
    /// Words that may be paths, relative to the current directory or to one of `directories`.
    pub paths: Vec<String>,
    /// Directories that the command enters (`cd`, `-C`), in order, relative to the current one.
    pub directories: Vec<String>,
    /// Words that may match several paths: `src/*.rs`.
    pub globs: Vec<String>,
}

/// The names that a command line mentions: its words without quotes, the words of quoted scripts and of here-documents,
/// and the paths in `REV:path`, `path:12`, `x=path` and `--option=path`.
///
/// ```
/// let mentions = surehand_core::shell::mentions::in_command("cd src && git show HEAD:a.rs | grep -n 'x y' *.toml");
/// assert!(mentions.paths.contains(&"a.rs".to_owned()));
/// assert_eq!(mentions.directories, ["src"]);
/// assert_eq!(mentions.globs, ["*.toml"]);
/// ```
pub fn in_command(command: &str) -> Mentions {
    let taken = here_documents::take(command);
    let (mut mentions, mut paths) = (Mentions::default(), MentionedNames::default());
    let mut inner = Vec::new();
    collect_mentions(&taken.command, 0, &mut mentions, &mut paths, &mut inner);
    inner.extend(taken.bodies);
    inner.iter().for_each(|text| loose_words(text).for_each(|word| paths.add(word)));
    mentions.paths = paths.in_order;
    mentions
}

/// Unique names in the order in which they were found.
#[derive(Default)]
struct MentionedNames {
    in_order: Vec<String>,
    known: HashSet<String>,
}

impl MentionedNames {
    fn add(&mut self, name: &str) {
        let is_name =
            !name.is_empty() && name.len() <= LONGEST_NAME && !name.contains(['\n', '\0']) && name != "." && name != "..";
        if is_name && self.in_order.len() < MOST_NAMES && !self.known.contains(name) {
            self.known.insert(name.to_owned());
            self.in_order.push(name.to_owned());
        }
    }
}

/// Collects the words of a script. Texts that may contain further names go to `inner`.
fn collect_mentions(text: &str, depth: usize, mentions: &mut Mentions, paths: &mut MentionedNames, inner: &mut Vec<String>) {
    let words = words(text);
    let mut current = String::new();
    for (at, word) in words.iter().enumerate() {
        let before = at.checked_sub(1).map_or("", |before| words[before].as_str());
        if matches!(before, "cd" | "pushd" | "-C" | "--cwd" | "--directory") && !word.starts_with('-') {
            let place = join_path(&current, word);
            if matches!(before, "cd" | "pushd") {
                current.clone_from(&place);
            }
            if !mentions.directories.contains(&place) {
                mentions.directories.push(place);
            }
        }
        if word.contains([' ', '\n', '\'', '"', '(']) {
            if depth < DEEPEST {
                collect_mentions(word, depth + 1, mentions, paths, inner);
            }
            inner.push(word.clone());
        }
        if word.contains(['*', '?', '[', '{']) && !word.contains([' ', '\n', '(']) && mentions.globs.len() < MOST_NAMES {
            mentions.globs.push(word.clone());
        }
        parts(word).for_each(|part| paths.add(part));
    }
}

/// A word, and the parts of it that may be a path.
fn parts(word: &str) -> impl Iterator<Item = &str> {
    let after = |separator: char| word.split_once(separator).map(|(_, after)| after);
    let before = word.split_once(':').map(|(before, _)| before);
    let attached = word.strip_prefix('-').and_then(|option| option.get(1..)).filter(|value| !value.starts_with('-'));
    let whole = (!word.starts_with('-')).then_some(word);
    [whole, after('='), after(':'), before, attached].into_iter().flatten()
}

fn join_path(directory: &str, path: &str) -> String {
    if directory.is_empty() || path.starts_with('/') { path.to_owned() } else { format!("{directory}/{path}") }
}

/// The words of a script without quotes. An unclosed quote ends at the end of the script.
fn words(script: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut chars = script.chars();
    while let Some(c) = chars.next() {
        match c {
            '\'' | '"' => {
                let word = word.get_or_insert_default();
                while let Some(quoted) = chars.next().filter(|quoted| *quoted != c) {
                    match quoted {
                        '\\' if c == '"' => word.extend(chars.next()),
                        quoted => word.push(quoted),
                    }
                }
            }
            '\\' => match chars.next() {
                Some('\n') | None => {}
                Some(escaped) => word.get_or_insert_default().push(escaped),
            },
            ' ' | '\t' | '\n' | '\r' | ';' | '|' | '&' | '(' | ')' | '<' | '>' | '`' => words.extend(word.take()),
            plain => word.get_or_insert_default().push(plain),
        }
    }
    words.extend(word);
    words
}

/// The words of any text that look like paths.
fn loose_words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| c.is_whitespace() || "'\"`()[]{},;|&<>=:$".contains(c)).filter(|word| looks_like_a_path(word))
}

fn looks_like_a_path(word: &str) -> bool {
    let is_path = |c: char| c.is_alphanumeric() || "/._-+@~#%".contains(c);
    word.chars().any(char::is_alphanumeric) && word.chars().all(is_path) && word.len() <= LONGEST_NAME
}

/// The paths that an output mentions before rows, in headings, in diff headers and in messages; the most certain first.
pub fn in_output(output: &str) -> Vec<String> {
    let (mut sure, mut likely, mut possible) = (MentionedNames::default(), MentionedNames::default(), MentionedNames::default());
    for row in OutputRows::of(output).iter() {
        if row.len() <= LONGEST_NAME {
            paths_in_header(row).for_each(|path| sure.add(path));
            if is_likely(row.trim()) {
                likely.add(row.trim());
            }
            let words =
                row.split(|c: char| c.is_whitespace() || "'\"()[]<>,".contains(c)).filter(|word| word.contains(['/', '.']));
            words.for_each(|word| possible.add(word.split_once(':').map_or(word, |(path, _)| path).trim_end_matches('.')));
        }
        for (at, _) in row.match_indices(':').take(3) {
            let is_numbered = row[at + 1..].starts_with(|c: char| c.is_ascii_digit());
            if is_numbered {
                sure.add(row[..at].trim_start());
            } else if is_likely(&row[..at]) {
                likely.add(&row[..at]);
            }
        }
    }
    let mut all = sure;
    likely.in_order.iter().chain(&possible.in_order).for_each(|name| all.add(name));
    all.in_order
}

/// Paths in rows whose only purpose is to name one.
fn paths_in_header(row: &str) -> impl Iterator<Item = &str> {
    let header = ["--- ", "+++ ", "==> ", "== ", "rename from ", "rename to "].iter().find_map(|start| row.strip_prefix(start));
    let path = header.map(|rest| rest.split('\t').next().unwrap_or(rest).trim_end_matches(" <==").trim_matches('"'));
    let of_git = path.and_then(|path| path.strip_prefix("a/").or_else(|| path.strip_prefix("b/")));
    let of_json = row.strip_prefix("{\"type\":\"").and_then(|row| row.split_once("\"path\":{\"text\":\"")).map(|(_, rest)| rest);
    let of_json = of_json.and_then(|rest| rest.split('"').next());
    [path, of_git, of_json].into_iter().flatten()
}

fn is_likely(text: &str) -> bool {
    !text.is_empty() && !text.contains([' ', '\t']) || text.contains('/') && !text.contains("  ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(command: &str, paths: &[&str]) {
        let found = in_command(command).paths;
        for path in paths {
            assert!(found.iter().any(|name| name == path), "{command}: {path} is not in {found:?}");
        }
    }

    #[test]
    fn words_of_a_command_may_be_paths() {
        check("cat 'a b' \"c d\" e\\ f ./g", &["a b", "c d", "e f", "./g"]);
        check("git show HEAD:src/a.rs; FILE=b.txt; cat $FILE; x --out=c.txt", &["src/a.rs", "b.txt", "c.txt"]);
        check("cat<a.txt>b.txt|(cat c.txt)&&cat `d.txt`", &["a.txt", "b.txt", "c.txt", "d.txt"]);
        check("bash -lc 'cat \"a b\" && sed -n 1p c.txt'", &["a b", "c.txt"]);
        check("python3 -c \"print(open('src/x.py').read())\"", &["src/x.py"]);
        check("python3 - <<'X'\nprint(open('y.py').read())\nX", &["y.py"]);
        check("patch -p1 <<E\n--- a/z.rs\n+++ b/z.rs\nE", &["b/z.rs"]);
        check("vim we:ird.py a.rs:12", &["we:ird.py", "a.rs"]);
        check("echo it's; cat a.txt", &["a.txt"]);
    }

    #[test]
    fn directories_are_gone_to_one_after_the_other() {
        assert_eq!(in_command("cd a && cd b; git -C c log").directories, ["a", "a/b", "a/b/c"]);
        assert_eq!(in_command("bash -c 'cd /x && ls'").directories, ["/x"]);
    }

    #[test]
    fn outputs_name_files_in_many_ways() {
        let output = "src/a.rs:12:x\n==> b.txt <==\n--- a/c.rs\n+++ b/c.rs\nd/e.py\n --> f.rs:2:16\n    at g (h.js:3:9)\nwe:ird.py:2:v\n\
                      i.txt:text\n{\"type\":\"match\",\"data\":{\"path\":{\"text\":\"j.rs\"}}}\n";
        let found = in_output(output);
        for path in ["src/a.rs", "b.txt", "c.rs", "d/e.py", "f.rs", "h.js", "we:ird.py", "i.txt", "j.rs"] {
            assert!(found.iter().any(|name| name == path), "{path} is not in {found:?}");
        }
    }

    #[test]
    fn there_is_an_end_to_names() {
        let many: String = (0..5000).map(|number| format!("n{number}.rs ")).collect();
        assert_eq!(in_command(&many).paths.len(), MOST_NAMES);
        assert_eq!(in_output(&many.replace(' ', "\n")).len(), MOST_NAMES);
    }
}
