//! A longer story through the real loop, while another program changes the same files. The prompt must equal the disk
//! and the lines that the gate accepts, must never exceed its budget, and must name everything that it drops.
#![expect(clippy::disallowed_methods, reason = "tests lay out files, and play the other program")]

use std::{
    cell::RefCell,
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    rc::Rc,
};

use serde_json::{Value, json};
use surehand_agent::{
    AgentRun, CancelToken, NoPerson, Ports, RunEvent, RunSettings,
    command::NoApprover,
    event::StopReason,
    model::{ChatModel, ModelAnswer, ModelCall, ModelError, Prompt, StreamEvent},
};
use surehand_engine::{
    Config, Durability, Workspace,
    core::{Anchor, EditDialect, LineNo},
};

use super::prompt_text;

const TURNS: u32 = 150;
const FILES: usize = 60;
const DIRECTORIES: [&str; 5] = ["", "src/", "src/billing/", "web/pages/", "docs/"];

/// The lines of the open files in a prompt, by number.
type Open = BTreeMap<String, BTreeMap<u32, String>>;

/// Pseudorandom numbers, the same in every run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % end as u64) as usize
    }

    fn pick<T: Clone>(&mut self, from: &[T]) -> Option<T> {
        if from.is_empty() { None } else { Some(from[self.below(from.len())].clone()) }
    }
}

/// The required outcome of a call.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Expected {
    Passes,
    Unread,
    Refused,
    Anything,
}

/// Counts of events: a story without them would test nothing.
#[derive(Debug, Default)]
struct Tally {
    passed: usize,
    unread: usize,
    unseen: usize,
    left: usize,
    outside: usize,
}

/// A model that checks its prompt, and does something to some file.
struct Checker {
    dir: PathBuf,
    dice: Dice,
    dialect: EditDialect,
    /// The events of each turn, starting with the request.
    events: Rc<RefCell<Vec<RunEvent>>>,
    turn: usize,
    open: Open,
    /// The content of the open files when the prompt was made.
    contents: BTreeMap<String, String>,
    expected: Expected,
    tally: Tally,
}

impl ChatModel for Checker {
    fn name(&self) -> &str {
        "checker"
    }

    fn ask(&mut self, prompt: &Prompt, _: &CancelToken, _: &mut dyn FnMut(StreamEvent<'_>)) -> Result<ModelAnswer, ModelError> {
        self.turn += 1;
        let tokens = tokens(prompt);
        assert!(tokens < 5000, "turn {}: {tokens}", self.turn);
        let events = std::mem::take(&mut *self.events.borrow_mut());
        self.check_outcome(&events);
        let text = prompt_text(prompt);
        let open = open_files(&text);
        self.check_rows(&open, &text);
        self.check_left(&open, &events, &text);
        self.contents = open.keys().map(|path| (path.clone(), self.content(path))).collect();
        self.open = open;
        let (expected, tool, arguments) = self.act();
        self.expected = expected;
        let call = ModelCall { id: format!("call_{}", self.turn), name: tool.to_owned(), arguments: arguments.to_string() };
        Ok(ModelAnswer { calls: vec![call], ..ModelAnswer::default() })
    }
}

/// The size of a prompt by a real tokenizer, with the tools as they are sent.
fn tokens(prompt: &Prompt) -> usize {
    let tool = |tool: &surehand_agent::model::ToolSpec| json!({ "type": "function", "function": { "name": tool.name, "description": tool.description, "parameters": tool.schema } });
    let tools = Value::Array(prompt.tools.iter().map(tool).collect());
    bpe_openai::o200k_base().count(tools.to_string().as_str()) + bpe_openai::o200k_base().count(prompt_text(prompt).as_str())
}

/// The lines in the part about open files.
fn open_files(prompt: &str) -> Open {
    let mut open = Open::new();
    let Some((_, part)) = prompt.split_once("# Open files, as they are now\n") else { return open };
    let mut path = String::new();
    for line in part.split("\n# ").next().unwrap().lines() {
        let number = |row: &str| row.split('#').next().unwrap().parse::<u32>().ok();
        match line.split_once('|').and_then(|(mark, text)| Some((number(mark)?, text))) {
            Some((number, text)) => drop(open.get_mut(&path).unwrap().insert(number, text.to_owned())),
            None if line == "…" => {}
            None => {
                path = line.split(" (").next().unwrap().trim_end_matches(" is empty").to_owned();
                open.insert(path.clone(), BTreeMap::new());
            }
        }
    }
    open
}

/// The lines of a file that `left` names: `a.rs lines 1-3, 7`.
fn named(left: &[String], path: &str, line: u32) -> bool {
    left.iter().filter_map(|left| left.strip_prefix(path)?.strip_prefix(" line")).any(|lines| {
        // Of very many ranges, only the total extent of the last ones is shown.
        if let Some((_, end)) = lines.split_once(" more ranges up to ") {
            return line <= end.parse().unwrap();
        }
        lines.trim_start_matches('s').trim().split(", ").any(|range| {
            let (start, end) = range.split_once('-').unwrap_or((range, range));
            (start.parse::<u32>().unwrap()..=end.parse().unwrap()).contains(&line)
        })
    })
}

impl Checker {
    fn content(&self, path: &str) -> String {
        fs::read_to_string(self.dir.join(path)).unwrap_or_default()
    }

    /// The prompt shows only content of the disk.
    fn check_rows(&self, open: &Open, prompt: &str) {
        for (path, rows) in open {
            let content = self.content(path);
            let lines: Vec<&str> = content.lines().collect();
            for (number, row) in rows {
                assert_eq!(lines.get(*number as usize - 1), Some(&row.as_str()), "turn {}, {path}:{number}\n{prompt}", self.turn);
            }
        }
    }

    /// Lines that were open or have been read since are still open, or were named.
    fn check_left(&mut self, open: &Open, events: &[RunEvent], prompt: &str) {
        let left = events.iter().filter_map(|event| match event {
            RunEvent::Left { what } => Some(what.clone()),
            _ => None,
        });
        let left: Vec<String> = left.flatten().collect();
        self.tally.left += left.len();
        let notes = prompt.split("\n# Notes\n").nth(1).unwrap_or_default();
        let is_named =
            |path: &str| left.iter().any(|left| left == path || left.starts_with(&format!("{path} "))) || notes.contains(path);
        let read = events.iter().filter_map(|event| match event {
            RunEvent::Call { tool, arguments, .. } if tool == "read_file" => arguments["path"].as_str(),
            _ => None,
        });
        for path in read.chain(self.open.keys().map(String::as_str)) {
            assert!(
                open.contains_key(path) || is_named(path),
                "turn {}: {path} has left unnamed, it was {:?}, left {left:?}\n{prompt}",
                self.turn,
                self.open.get(path)
            );
        }
        for (path, rows) in self.open.iter().filter(|(path, _)| self.contents[*path] == self.content(path)) {
            let now = open.get(path);
            let gone = rows.keys().filter(|line| !now.is_some_and(|now| now.contains_key(line)));
            for line in gone {
                assert!(named(&left, path, *line), "turn {}: {path}:{line} has left unnamed\n{left:?}", self.turn);
            }
        }
    }

    fn check_outcome(&mut self, events: &[RunEvent]) {
        let result = events.iter().find_map(|event| match event {
            RunEvent::Result { is_error, text, .. } => Some((*is_error, text.as_str())),
            _ => None,
        });
        let Some((is_error, text)) = result else { return };
        match self.expected {
            Expected::Passes => {
                assert!(!is_error, "turn {}: {text}", self.turn);
                self.tally.passed += 1;
            }
            Expected::Unread => {
                assert!(is_error && text.contains("was not read this session"), "turn {}: {text}", self.turn);
                self.tally.unread += 1;
            }
            Expected::Refused => {
                assert!(is_error, "turn {}: {text}", self.turn);
                self.tally.unseen += 1;
            }
            Expected::Anything => {}
        }
    }

    fn act(&mut self) -> (Expected, &'static str, Value) {
        if self.turn == 1 {
            return (Expected::Passes, "update_tasks", json!({ "add": [{ "description": "go on" }] }));
        }
        match self.dice.below(100) {
            0..40 => self.edit_shown(),
            40..50 => self.edit_closed(),
            50..55 => self.edit_unseen(),
            55..80 => self.read(),
            80..88 => {
                (Expected::Passes, "search_files", json!({ "pattern": format!("value_{}\\b", self.dice.below(80)), "limit": 8 }))
            }
            88..93 => {
                let path = format!("src/new_{}.rs", self.turn);
                (Expected::Passes, "write_file", json!({ "path": path, "content": content(100 + self.turn, 12) }))
            }
            93..96 => match self.any_open() {
                Some(from) => (Expected::Passes, "move_file", json!({ "from": from, "to": format!("moved/{}.txt", self.turn) })),
                None => self.read(),
            },
            96..98 => match self.any_open() {
                Some(path) => (Expected::Passes, "delete_file", json!({ "path": path })),
                None => self.read(),
            },
            _ => (Expected::Anything, "undo", json!({})),
        }
    }

    fn any_open(&mut self) -> Option<String> {
        let paths: Vec<String> = self.open.keys().cloned().collect();
        self.dice.pick(&paths)
    }

    fn read(&mut self) -> (Expected, &'static str, Value) {
        let path = self.dice.pick(&files(&self.dir)).unwrap();
        match self.dice.below(3) {
            0 => (Expected::Passes, "read_file", json!({ "path": path })),
            _ => {
                let offset = 1 + self.dice.below(self.content(&path).lines().count());
                (Expected::Passes, "read_file", json!({ "path": path, "offset": offset, "limit": 40 }))
            }
        }
    }

    /// A line in the prompt.
    fn edit_shown(&mut self) -> (Expected, &'static str, Value) {
        let rows =
            self.open.iter().flat_map(|(path, rows)| rows.iter().map(|(number, row)| (path.clone(), *number, row.clone())));
        let is_fit = |(path, _, row): &(String, u32, String)| self.contents[path].matches(row.as_str()).count() == 1;
        let rows: Vec<_> = rows.filter(is_fit).collect();
        match self.dice.pick(&rows) {
            Some((path, number, row)) => (Expected::Passes, self.tool(), self.edit(&path, number, &row)),
            None => self.read(),
        }
    }

    /// A line of a file that is not in the prompt.
    fn edit_closed(&mut self) -> (Expected, &'static str, Value) {
        let closed: Vec<String> = files(&self.dir).into_iter().filter(|path| !self.open.contains_key(path)).collect();
        let Some(path) = self.dice.pick(&closed) else { return self.read() };
        let first = self.content(&path).lines().next().unwrap_or_default().to_owned();
        (Expected::Unread, self.tool(), self.edit(&path, 1, &first))
    }

    /// A line that is not in the prompt, of a file that is there in part. It may be edited by its text, but not by its
    /// number.
    fn edit_unseen(&mut self) -> (Expected, &'static str, Value) {
        let Some(path) = self.any_open().filter(|_| self.dialect == EditDialect::Lines) else { return self.edit_closed() };
        let content = self.content(&path);
        let unseen = (1..).zip(content.lines()).filter(|(number, _)| !self.open[&path].contains_key(number));
        let unseen: Vec<(u32, String)> = unseen.map(|(number, line)| (number, line.to_owned())).collect();
        match self.dice.pick(&unseen) {
            Some((number, line)) => (Expected::Refused, self.tool(), self.edit(&path, number, &line)),
            None => self.read(),
        }
    }

    fn tool(&self) -> &'static str {
        if self.dialect == EditDialect::Lines { "edit_lines" } else { "edit_file" }
    }

    fn edit(&mut self, path: &str, number: u32, line: &str) -> Value {
        let new: Vec<String> = (0..1 + self.dice.below(3)).map(|n| format!("let turn_{}_{n} = {};", self.turn, number)).collect();
        let new = new.join("\n");
        match self.dialect {
            EditDialect::Lines => {
                let at = Anchor::of(LineNo::new(number).unwrap(), line).to_string();
                json!({ "path": path, "edits": [{ "op": "replace", "at": at, "text": new }] })
            }
            _ => json!({ "path": path, "old_string": line, "new_string": new }),
        }
    }
}

fn content(seed: usize, lines: usize) -> String {
    let line = |n: usize| match n % 7 {
        0 => format!("// Größe {n} von {seed}: 金額と通貨 — {}", "·".repeat(n % 5)),
        3 => format!("    if total_{seed}_{n} > {} {{ return Err(Error::Limit {{ found: {n} }}); }}", n * seed),
        _ => format!("    let value_{n} = compute(\"{seed}\", {n})?;"),
    };
    (1..=lines).map(|n| line(n) + "\n").collect()
}

fn lay_out(dir: &Path, dice: &mut Dice) {
    for directory in DIRECTORIES.iter().chain(&["moved/"]) {
        fs::create_dir_all(dir.join(directory)).unwrap();
    }
    fs::write(dir.join("AGENTS.md"), "Write tests.\n").unwrap();
    fs::write(dir.join("src/billing/AGENTS.md"), "Amounts have a currency.\n".repeat(8)).unwrap();
    for file in 0..FILES {
        let path = format!("{}file_{file}.rs", DIRECTORIES[file % DIRECTORIES.len()]);
        fs::write(dir.join(path), content(file, 10 + dice.below(30) * dice.below(12))).unwrap();
    }
}

/// All source files, by path.
fn files(dir: &Path) -> Vec<String> {
    let inside = |directory: &&str| {
        let entries = fs::read_dir(dir.join(directory)).unwrap().map(|entry| entry.unwrap());
        let files = entries.filter(|entry| entry.file_type().unwrap().is_file());
        files.map(|file| format!("{directory}{}", file.file_name().to_str().unwrap())).collect::<Vec<_>>()
    };
    let mut files: Vec<String> = DIRECTORIES.iter().chain(&["moved/"]).flat_map(inside).collect();
    files.retain(|path| !path.ends_with("AGENTS.md") && !fs::read_to_string(dir.join(path)).unwrap().is_empty());
    files.sort();
    files
}

/// Another program changes one of the open files, or any file.
fn meddle(dir: &Path, recent: &[String], dice: &mut Dice) {
    let recent: Vec<String> = recent.iter().filter(|path| dir.join(path).is_file()).cloned().collect();
    let path = dice.pick(&recent).or_else(|| dice.pick(&files(dir))).unwrap();
    let content = fs::read_to_string(dir.join(&path)).unwrap();
    let mut lines: Vec<&str> = content.lines().collect();
    let at = dice.below(lines.len().max(1)).min(lines.len());
    let new = format!("// seen by another program, {}", dice.below(100_000));
    match dice.below(10) {
        0 => return fs::remove_file(dir.join(&path)).unwrap(),
        1..5 => lines.insert(at, &new),
        5..8 if at < lines.len() => lines[at] = &new,
        _ => lines.truncate(at),
    }
    fs::write(dir.join(&path), lines.iter().map(|line| format!("{line}\n")).collect::<String>()).unwrap();
}

fn play(dialect: EditDialect, seed: u64) -> Tally {
    let dir = surehand_testkit::repository();
    let mut dice = Dice(seed);
    lay_out(dir.path(), &mut dice);
    let events = Rc::new(RefCell::new(Vec::new()));
    let mut checker = Checker {
        dir: dir.path().to_owned(),
        dice: Dice(seed + 1),
        dialect,
        events: events.clone(),
        turn: 0,
        open: Open::new(),
        contents: BTreeMap::new(),
        expected: Expected::Anything,
        tally: Tally::default(),
    };
    let mut recent = Vec::new();
    let mut outside = 0;
    let mut listener = |event: &RunEvent| {
        if let RunEvent::Call { arguments, .. } = event {
            recent.extend(arguments["path"].as_str().map(str::to_owned));
        }
        if matches!(event, RunEvent::TurnEnded { .. }) && dice.below(100) < 30 {
            meddle(dir.path(), &recent[recent.len().saturating_sub(6)..], &mut dice);
            outside += 1;
        }
        events.borrow_mut().push(event.clone());
    };
    let workspace = Workspace::open(dir.path(), Config { durability: Durability::Fast, ..Config::default() }).unwrap();
    let mut settings = RunSettings { dialect: Some(dialect), ..RunSettings::for_workspace(&workspace) };
    settings.limits.turns = Some(TURNS);
    let ports = Ports {
        model: &mut checker,
        permission: &mut NoApprover,
        person: &mut NoPerson,
        listener: &mut listener,
        cancel: CancelToken::default(),
    };
    let outcome = AgentRun::new(workspace, "Make it work.", settings, ports).unwrap().run().unwrap();
    assert_eq!((outcome.stop, outcome.turns), (StopReason::Budget, TURNS), "{}", outcome.text);
    Tally { outside, ..checker.tally }
}

/// Plays a story in which every kind of event happens often enough.
#[track_caller]
fn holds(dialect: EditDialect, seed: u64) -> Tally {
    let tally = play(dialect, seed);
    assert!(tally.passed > 80 && tally.unread > 8 && tally.left > 30 && tally.outside > 20, "{tally:?}");
    tally
}

#[test]
fn what_is_shown_is_on_the_disk_and_can_be_edited_by_its_text() {
    holds(EditDialect::Text, 7);
}

#[test]
fn what_is_shown_is_on_the_disk_and_can_be_edited_by_its_number_and_nothing_else_can() {
    let tally = holds(EditDialect::Lines, 8);
    assert!(tally.unseen > 2, "{tally:?}");
}
