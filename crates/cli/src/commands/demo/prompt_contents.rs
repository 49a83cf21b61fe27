//! Parses what a prompt shows: the open tasks, the files, and their lines. The model knows nothing else.

use std::collections::BTreeMap;

use surehand_agent::model::{ChatMessage, Prompt};

use super::story;

#[derive(Debug, Default, PartialEq)]
pub(super) struct PromptContents<'a> {
    /// The open tasks, from the last list.
    pub tasks: Option<Vec<(u32, &'a str)>>,
    pub files: BTreeMap<&'static str, ShownFile<'a>>,
}

#[derive(Debug, Default, PartialEq)]
pub(super) struct ShownFile<'a> {
    /// Anchors and lines. If a line appears twice, the later one is current.
    pub rows: Vec<(&'a str, &'a str)>,
    pub is_whole: bool,
}

impl<'a> PromptContents<'a> {
    /// Parses a prompt. Later parts override earlier ones.
    pub(super) fn of(prompt: &'a Prompt) -> Self {
        let mut contents = Self::default();
        for message in &prompt.messages {
            match message {
                ChatMessage::User(text) | ChatMessage::Assistant { text, .. } => contents.look_at(text),
                ChatMessage::Results(results) => results.iter().for_each(|result| contents.look_at(&result.text)),
            }
        }
        contents
    }

    fn look_at(&mut self, text: &'a str) {
        let mut path = None;
        for line in text.lines() {
            self.see_tasks(line);
            match (row(line), path) {
                (Some(row), Some(path)) => self.files.entry(path).or_default().rows.extend(row),
                (Some(_), None) => {}
                (None, _) => path = self.see_file(line).or(path),
            }
        }
    }

    fn see_tasks(&mut self, line: &'a str) {
        let is_list = line.starts_with("Open tasks: ") || (line.contains(" open, ") && line.ends_with(" completed:"));
        if is_list || line.starts_with("All tasks are done") || line.starts_with("No task is open") {
            self.tasks = Some(Vec::new());
        } else if let (Some(tasks), Some(task)) = (&mut self.tasks, task(line)) {
            tasks.push(task);
        }
    }

    /// The file that a line names. A file that has changed since no longer counts as shown.
    fn see_file(&mut self, line: &'a str) -> Option<&'static str> {
        if let Some(changed) = line.strip_prefix("note: changed since you read ") {
            for path in changed.split([' ', ',']).filter_map(story::path_of) {
                self.files.insert(path, ShownFile::default());
            }
            return None;
        }
        let line = line.strip_prefix("refused: ").unwrap_or(line);
        let path = match line.strip_prefix("Error: ") {
            Some(error) => error.split(' ').find_map(story::path_of)?,
            None => line.split(' ').next().and_then(story::path_of)?,
        };
        let file = self.files.entry(path).or_default();
        if line[path.len()..].starts_with(" (") {
            *file = ShownFile { rows: Vec::new(), is_whole: !line.contains(" of ") };
        }
        Some(path)
    }
}

/// Parses `3. [pending] description`.
fn task(line: &str) -> Option<(u32, &str)> {
    let (number, rest) = line.split_once(". ")?;
    Some((number.parse().ok()?, rest.strip_prefix('[')?.split_once("] ")?.1))
}

/// Parses a line of a file with its anchor, `12#ab|text`; `Some(None)` for a removed line.
fn row(line: &str) -> Option<Option<(&str, &str)>> {
    let is_gone = line.starts_with('-');
    let (anchor, text) = line.strip_prefix(['+', '-', ' ']).unwrap_or(line).split_once('|')?;
    let (number, hash) = anchor.split_once('#').unwrap_or((anchor, ""));
    let is_row = number.parse::<u32>().is_ok() && (!hash.is_empty() || is_gone);
    is_row.then_some((!is_gone).then_some((anchor, text)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prompt(text: &str) -> Prompt {
        Prompt { messages: vec![ChatMessage::User(text.to_owned())], ..Prompt::default() }
    }

    /// A file, its lines, and whether these are all of its lines.
    type FileRows<'a> = (&'static str, &'a [(&'a str, &'a str)], bool);

    #[track_caller]
    fn check(text: &str, tasks: Option<&[(u32, &str)]>, files: &[FileRows<'_>]) {
        let prompt = prompt(text);
        let files: BTreeMap<_, _> =
            files.iter().map(|(path, rows, whole)| (*path, ShownFile { rows: rows.to_vec(), is_whole: *whole })).collect();
        assert_eq!(PromptContents::of(&prompt), PromptContents { tasks: tasks.map(<[_]>::to_vec), files });
    }

    #[test]
    fn nothing_is_known_but_what_is_shown() {
        check("", None, &[]);
        check("Write main.go, please.\nNo tasks.\nNo files.\n", None, &[]);
    }

    #[test]
    fn tasks_are_those_that_were_listed_last() {
        check("Open tasks: 2 (1 done)\n3. [pending] a: b\n7. [in_progress] c\n", Some(&[(3, "a: b"), (7, "c")]), &[]);
        check("Open tasks: 1 (1 done)\n1. id 3, pending: a\n1 task open, 2 completed:\n4. [pending] d\n", Some(&[(4, "d")]), &[]);
        check("Open tasks: 1 (1 done)\n1. id 3, pending: a\nNo task is open, 2 completed: go.\n", Some(&[]), &[]);
        check("All tasks are done (2 of 2): call `done`.\n", Some(&[]), &[]);
    }

    #[test]
    fn files_are_known_by_state_reply_and_refusal() {
        check("main.go 83e24e 120 bytes go, created\n", None, &[("main.go", &[], false)]);
        check("main.go created (12 lines, version 83e24e)\n", None, &[("main.go", &[], false)]);
        check("refused: Error: main.go was not read this session\n", None, &[("main.go", &[], false)]);
        check("Error: 1 anchor of main.go does not fit\n2#ab|x\n", None, &[("main.go", &[("2#ab", "x")], false)]);
    }

    #[test]
    fn lines_are_those_of_the_file_above_them() {
        check(
            "main.go (2 lines, version 83e24e)\n1#ab|x|y\n2#cd|\n",
            None,
            &[("main.go", &[("1#ab", "x|y"), ("2#cd", "")], true)],
        );
        check("main.go (lines 1-2 of 9, version 83e24e)\n1#ab|x\n", None, &[("main.go", &[("1#ab", "x")], false)]);
        check("main.go edited (+1 -1)\n 1#ab|x\n-2|y\n+2#cd|z\n", None, &[("main.go", &[("1#ab", "x"), ("2#cd", "z")], false)]);
        check("1#ab|of no file\n", None, &[]);
    }

    #[test]
    fn what_has_changed_since_is_not_shown() {
        let shown = "main.go (1 line, version 83e24e)\n1#ab|x\n";
        check(&format!("{shown}note: changed since you read it: main.go\n"), None, &[("main.go", &[], false)]);
        check(&format!("{shown}{shown}"), None, &[("main.go", &[("1#ab", "x")], true)]);
    }
}
