//! A scripted model that works through a long story: it plans, then for each task searches, reads, edits, runs
//! commands, makes the mistakes that models make, and continues. It knows of a file only what its prompt shows, as a
//! real model does; if the prompt does not show a file, it reads it first.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};
use surehand_agent::model::{ChatMessage, ModelCall, Prompt};

use super::sources::{Area, Language, NOUNS, VERBS};
use surehand_testkit::rng::Rng;

/// The number of turns before there are tasks.
const PLANNING: usize = 5;
/// The turns of a task, about.
const TURNS_OF_A_TASK: usize = 20;

/// The fewest turns that make a story.
pub(crate) const FEWEST_TURNS: usize = PLANNING + 5;

/// The text and the calls of the model.
pub(super) struct Reply {
    pub text: String,
    pub calls: Vec<ModelCall>,
}

/// A story on its way.
pub(super) struct Story {
    root: PathBuf,
    areas: Vec<Area>,
    rng: Rng,
    turns: usize,
    turn: usize,
    tasks: Vec<Task>,
    /// Files that it has made.
    made: Vec<String>,
    last_edited: Option<String>,
}

struct Task {
    area: usize,
    noun: &'static str,
    verb: &'static str,
    /// The files that it is about.
    files: Vec<String>,
}

/// The parts of files that the prompt shows.
enum Known {
    /// Lines by file.
    Lines(HashMap<String, Vec<String>>),
    /// Files that were read at some time.
    Files(HashSet<String>),
}

type Act = (&'static str, Value);

impl Story {
    /// A story of this many turns about the files of these areas.
    pub(super) fn new(root: PathBuf, areas: Vec<Area>, turns: usize, mut rng: Rng) -> Self {
        let number = (turns / TURNS_OF_A_TASK).max(1);
        let tasks = (0..number).map(|_| Task::new(&areas, &mut rng)).collect();
        Self { root, areas, rng, turns, turn: 0, tasks, made: Vec::new(), last_edited: None }
    }

    /// The number of tasks.
    pub(super) fn tasks(&self) -> usize {
        self.tasks.len()
    }

    /// The story, for the prompt.
    pub(super) fn text() -> &'static str {
        "Customers pay in several currencies, and some of them in several parts. Carry the currency of an order through billing, the ledger, \
         the gateway, the reports and the web checkout, so that no amount is added to one of another currency, refunds go back in the \
         currency that was paid, and the monthly statements show both. Keep the old fields readable for one release. Each part gets its tests \
         and its page in the guide."
    }

    /// The answer to the next prompt.
    pub(super) fn answer(&mut self, prompt: &Prompt) -> Reply {
        self.turn += 1;
        let acts = match self.turn {
            turn if turn <= PLANNING => self.plan(turn),
            turn if turn >= self.turns => vec![("done", json!({ "summary": "Every amount has its currency now." }))],
            turn => self.work(turn - PLANNING - 1, &Known::of(prompt)),
        };
        let calls = acts.iter().zip(1..).map(|((tool, arguments), number)| ModelCall {
            id: format!("call_{}_{number}", self.turn),
            name: (*tool).to_owned(),
            arguments: arguments.to_string(),
        });
        Reply { calls: calls.collect(), text: self.say(&acts) }
    }

    fn say(&mut self, acts: &[Act]) -> String {
        let what =
            acts.first().and_then(|(_, arguments)| ["path", "from", "pattern"].iter().find_map(|name| arguments[name].as_str()));
        let (what, noun) = (what.unwrap_or("the tests"), *self.rng.pick(&NOUNS));
        let sentences = [
            format!("The {noun} is handled in {what}; looking at how it gets its currency."),
            format!("{what} still adds amounts without asking for the {noun}. I change that place first and then its callers."),
            format!("Next is {what}."),
            String::new(),
        ];
        self.rng.pick(&sentences).clone()
    }

    fn plan(&mut self, turn: usize) -> Vec<Act> {
        let path = self.rng.pick(&self.tasks[0].files).clone();
        match turn {
            1 => vec![("list_files", json!({})), ("read_file", json!({ "path": "README.md" }))],
            2 => vec![("search_files", json!({ "pattern": "currency", "limit": 20 }))],
            3 => vec![("read_file", json!({ "path": path, "limit": 60 }))],
            4 => vec![("search_files", json!({ "pattern": "amount", "path": "crates", "limit": 15 }))],
            _ => {
                let add: Vec<Value> =
                    self.tasks.iter().map(|task| json!({ "description": task.description(&self.areas) })).collect();
                vec![("update_tasks", json!({ "story": "Currencies", "add": add }))]
            }
        }
    }

    /// A turn of a task; the last one of each completes it.
    fn work(&mut self, turn: usize, known: &Known) -> Vec<Act> {
        let each = ((self.turns - 1 - PLANNING) / self.tasks.len()).max(1);
        let task = (turn / each).min(self.tasks.len() - 1);
        let is_last = task + 1 == self.tasks.len();
        let place = turn - task * each;
        let set = |status: &str| ("update_tasks", json!({ "set": [{ "id": task + 1, "status": status }] }));
        if (!is_last && place + 1 == each) || turn + PLANNING + 2 == self.turns {
            return vec![set("completed")];
        }
        self.look_around(task);
        match place {
            0 => vec![set("in_progress"), self.search(task)],
            1 => self.tasks[task].files.clone().iter().take(self.rng.within(1..3)).map(|path| self.read(path)).collect(),
            _ => self.step(task, known),
        }
    }

    /// Files that are gone, because they were deleted or a move was refused, are worked on no more.
    fn look_around(&mut self, task: usize) {
        let root = &self.root;
        let Task { area, files, .. } = &mut self.tasks[task];
        files.retain(|path| root.join(path).is_file());
        self.areas[*area].files.retain(|path| root.join(path).is_file());
        if files.is_empty() {
            files.push(self.rng.pick(&self.areas[*area].files).clone());
        }
    }

    fn step(&mut self, task: usize, known: &Known) -> Vec<Act> {
        match self.rng.within(0..100) {
            0..46 => self.edit(task, known),
            46..60 => vec![self.read_some(task)],
            60..67 => vec![self.search(task)],
            67..77 => vec![self.command()],
            77..82 => vec![self.write(task)],
            82..85 => self.rewrite(task, known),
            85..87 => self.move_one(task, known),
            87..89 => self.last_edited.iter().map(|path| ("undo", json!({ "path": path }))).collect(),
            89..90 => self.made.pop().iter().map(|path| ("delete_file", json!({ "path": path }))).collect(),
            90..92 => vec![("list_files", json!({ "path": self.areas[self.tasks[task].area].directory }))],
            92..94 => vec![self.follow_up(task)],
            _ => self.blunder(task, known),
        }
    }

    fn search(&mut self, task: usize) -> Act {
        let Task { area, noun, verb, .. } = self.tasks[task];
        let pattern = if self.rng.percent(50) { format!("{verb}_{noun}") } else { format!(r"\b{noun}\b") };
        let context = self.rng.within(0..3);
        ("search_files", json!({ "pattern": pattern, "path": self.areas[area].directory, "limit": 12, "context": context }))
    }

    fn read_some(&mut self, task: usize) -> Act {
        let path = match self.rng.percent(75) {
            true => self.rng.pick(&self.tasks[task].files).clone(),
            false => self.rng.pick(&self.areas[self.tasks[task].area].files).clone(),
        };
        self.read(&path)
    }

    /// A read of a file: of a long one mostly a part.
    fn read(&mut self, path: &str) -> Act {
        let lines = self.content(path).lines().count();
        if lines <= 120 || self.rng.percent(20) {
            return ("read_file", json!({ "path": path }));
        }
        let limit = self.rng.within(40..100);
        ("read_file", json!({ "path": path, "offset": self.rng.within(1..lines - 30), "limit": limit }))
    }

    /// Edits the files of a task. A file that is not known is read.
    fn edit(&mut self, task: usize, known: &Known) -> Vec<Act> {
        let number = if self.rng.percent(20) { 2 } else { 1 };
        (0..number).map(|_| self.edit_one(task, known)).collect()
    }

    fn edit_one(&mut self, task: usize, known: &Known) -> Act {
        let path = self.rng.pick(&self.tasks[task].files).clone();
        let content = self.content(&path);
        let is_fit = |line: &&str| line.trim().len() > 12 && content.matches(*line).count() == 1;
        let lines: Vec<&str> = match known {
            Known::Lines(lines) => lines.get(&path).into_iter().flatten().map(String::as_str).filter(is_fit).collect(),
            Known::Files(files) if files.contains(&path) => content.lines().filter(is_fit).collect(),
            Known::Files(_) => Vec::new(),
        };
        if lines.is_empty() {
            return self.read(&path);
        }
        let old = *self.rng.pick(&lines);
        let new = self.changed(old, self.areas[self.tasks[task].area].language);
        self.last_edited = Some(path.clone());
        ("edit_file", json!({ "path": path, "old_string": old, "new_string": new }))
    }

    fn changed(&mut self, line: &str, language: Language) -> String {
        let (noun, number) = (*self.rng.pick(&NOUNS), self.rng.within(1..1000));
        let indent: String = line.chars().take_while(|c| c.is_whitespace()).collect();
        match self.rng.within(0..100) {
            0..50 => format!("{indent}{noun}_{number} = {}", line.trim_start()),
            50..80 => format!("{line}\n{indent}{noun}_{number}.{}(currency)", self.rng.pick(&VERBS)),
            80..90 => format!("{line}\n{}", language.block(&mut self.rng).trim_end()),
            _ => String::new(),
        }
    }

    fn command(&mut self) -> Act {
        let (tests, noun) = (self.rng.within(5..60), *self.rng.pick(&NOUNS));
        let line = format!(
            "for n in $(seq {tests}); do echo \"test {noun}::keeps_its_currency_$n ... ok\"; done; echo \"{tests} passed\""
        );
        ("run_command", json!({ "command": line }))
    }

    fn write(&mut self, task: usize) -> Act {
        let Area { directory, language, .. } = self.areas[self.tasks[task].area];
        let path = format!("{directory}/{}", language.file_name(10_000 + self.turn, &mut self.rng));
        let lines = self.rng.within(15..80);
        self.made.push(path.clone());
        self.tasks[task].files.push(path.clone());
        ("write_file", json!({ "path": path, "content": language.source(lines, &mut self.rng) }))
    }

    /// Writes a short file anew.
    fn rewrite(&mut self, task: usize, known: &Known) -> Vec<Act> {
        let is_short = |path: &&String| (1..80).contains(&self.content(path).lines().count());
        let Some(path) = self.tasks[task].files.iter().find(is_short).cloned() else { return vec![self.read_some(task)] };
        if !known.has(&path) {
            return vec![("read_file", json!({ "path": path }))];
        }
        let language = self.areas[self.tasks[task].area].language;
        let content = self.content(&path) + &language.block(&mut self.rng);
        vec![("write_file", json!({ "path": path, "content": content }))]
    }

    fn move_one(&mut self, task: usize, known: &Known) -> Vec<Act> {
        let Some(place) = self.tasks[task].files.iter().position(|path| known.has(path)) else {
            return vec![self.read_some(task)];
        };
        let from = self.tasks[task].files[place].clone();
        let area = &mut self.areas[self.tasks[task].area];
        let to = format!("{}/{}", area.directory, area.language.file_name(20_000 + self.turn, &mut self.rng));
        area.files.retain(|path| *path != from);
        area.files.push(to.clone());
        self.tasks[task].files[place].clone_from(&to);
        vec![("move_file", json!({ "from": from, "to": to }))]
    }

    fn follow_up(&mut self, task: usize) -> Act {
        let noun = *self.rng.pick(&NOUNS);
        let description = format!("{} (and the {noun} that comes with it)", self.tasks[task].description(&self.areas));
        ("update_tasks", json!({ "set": [{ "id": task + 1, "description": description }] }))
    }

    /// A typical mistake of a model.
    fn blunder(&mut self, task: usize, known: &Known) -> Vec<Act> {
        let area = self.tasks[task].area;
        let path = self.rng.pick(&self.areas[area].files).clone();
        match self.rng.within(0..5) {
            0 if !known.has(&path) => {
                let old = self.content(&path).lines().next().unwrap_or_default().to_owned();
                vec![("edit_file", json!({ "path": path, "old_string": old, "new_string": "changed unseen" }))]
            }
            1 => vec![("edit_file", json!({ "path": path, "old_string": format!("let x = {};", self.turn), "new_string": "y" }))],
            2 => vec![("read_file", json!({ "path": format!("{}/mod_{}.rs", self.areas[area].directory, self.turn) }))],
            3 => vec![("done", json!({ "summary": "I think that is all." }))],
            _ => Vec::new(),
        }
    }

    fn content(&self, path: &str) -> String {
        fs::read_to_string(self.root.join(path)).unwrap_or_default()
    }
}

impl Task {
    fn new(areas: &[Area], rng: &mut Rng) -> Self {
        let area = rng.within(0..areas.len());
        let files = (0..rng.within(2..6)).map(|_| rng.pick(&areas[area].files).clone()).collect();
        Self { area, noun: *rng.pick(&NOUNS), verb: *rng.pick(&VERBS), files }
    }

    fn description(&self, areas: &[Area]) -> String {
        format!("{} the {} with its currency in {}", self.verb, self.noun, areas[self.area].directory)
    }
}

impl Known {
    fn of(prompt: &Prompt) -> Self {
        match prompt.messages.as_slice() {
            [ChatMessage::User(text)] => match open_files(text) {
                Some(lines) => Self::Lines(lines),
                None => Self::Files(HashSet::new()),
            },
            messages => Self::Files(read_files(messages)),
        }
    }

    fn has(&self, path: &str) -> bool {
        match self {
            Self::Lines(lines) => lines.contains_key(path),
            Self::Files(files) => files.contains(path),
        }
    }
}

/// The lines of the files that a snapshot shows; nothing if it is none, or shows none.
fn open_files(text: &str) -> Option<HashMap<String, Vec<String>>> {
    let (_, open) = text.split_once("# Open files, as they are now\n")?;
    let open = open.split("\n# ").next().unwrap_or(open);
    let mut files: HashMap<String, Vec<String>> = HashMap::new();
    let mut path = String::new();
    for line in open.lines() {
        match line.split_once('|') {
            Some((number, row)) if number.bytes().all(|byte| byte.is_ascii_digit()) => {
                files.entry(path.clone()).or_default().push(row.to_owned());
            }
            _ if line.starts_with(['…', '[']) => {}
            _ => path = line.split(" (").next().unwrap_or(line).to_owned(),
        }
    }
    Some(files)
}

/// The files that a conversation has reads of, and those that it wrote.
fn read_files(messages: &[ChatMessage]) -> HashSet<String> {
    let calls = messages.iter().filter_map(|message| match message {
        ChatMessage::Assistant { calls, .. } => Some(calls),
        ChatMessage::User(_) | ChatMessage::Results(_) => None,
    });
    let reads = calls.flatten().filter(|call| matches!(call.name.as_str(), "read_file" | "write_file" | "move_file"));
    let path = |call: &ModelCall| {
        let arguments: Value = serde_json::from_str(&call.arguments).ok()?;
        ["path", "to"].iter().find_map(|name| arguments[name].as_str()).map(str::to_owned)
    };
    reads.filter_map(path).collect()
}
