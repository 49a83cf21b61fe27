//! The prompt of a turn from the present: the files that the model has open as they are now, the state of the repository, the last
//! exchange. Every part has its budget, and what the session knows is what the prompt shows.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use surehand_engine::{
    Session,
    core::{
        EditDialect, LineSet, Lines, RelPath, RepoState, WorkingSet,
        instructions::ToldInstructions,
        render::{
            self, Numbers,
            cut::{cut, on_one_line, shorten},
            which,
        },
        tokens::estimate,
        working_set::Places,
    },
};

use crate::{
    event::RunPhase,
    model::{Prompt, ToolSpec},
    prompt::{self, PromptExtra, PromptTemplate, build_snapshot_prompt},
    tool,
};

/// What a run knows besides what is on the disk, as it is written down after each turn.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RunMemory {
    /// What the model has open.
    pub open: Places,
    /// What it said last.
    pub said: String,
    /// What it called last, and what came of it.
    pub did: Vec<PastCall>,
    /// The turns before, one line each.
    pub earlier: VecDeque<String>,
    /// Instructions of the repository that it was given.
    pub instructions: Vec<GivenInstructions>,
}

/// A call and what came of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PastCall {
    /// The tool.
    pub tool: String,
    /// Its arguments, or as a string what is no JSON.
    pub arguments: Value,
    /// What came of it, without the lines of files.
    pub outcome: String,
    /// How it ended, if it was a command.
    #[serde(default)]
    pub ended: Option<String>,
    /// Whether it was refused.
    pub is_error: bool,
    /// Whether it changed nothing because there was nothing to change: that is kept in no context.
    pub is_noop: bool,
}

/// Instructions that the model was given.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GivenInstructions {
    /// The files.
    pub paths: Vec<RelPath>,
    /// What they say.
    pub text: String,
}

/// The context of a run in snapshot mode.
#[derive(Debug)]
pub struct SnapshotContext {
    open: WorkingSet,
    memory: RunMemory,
    notes: Vec<String>,
    budget: usize,
    /// How many tokens more than ours the provider counted last.
    over: usize,
    dialect: EditDialect,
}

/// A prompt, and what is no longer in it.
#[derive(Debug)]
pub struct RenderedPrompt {
    /// The prompt.
    pub prompt: Prompt,
    /// Its tokens, estimated, at most.
    pub tokens: usize,
    /// What left the context, in words.
    pub left: Vec<String>,
}

/// What a turn is made from besides what the context remembers.
pub struct TurnInput<'a> {
    /// The rules and the story.
    pub template: &'a PromptTemplate,
    /// The state of the repository.
    pub state: &'a RepoState,
    /// Where the run is.
    pub phase: RunPhase,
    /// The tools of the phase.
    pub tools: &'a [ToolSpec],
}

impl SnapshotContext {
    /// A context that goes on from what is remembered.
    pub fn new(memory: RunMemory, budget: usize, dialect: EditDialect, session: &mut Session) -> Self {
        let mut open = WorkingSet::default();
        for (path, lines) in &memory.open {
            if let Some(text) = session.prompt_views().present(path) {
                open.used(path, &text, lines);
            }
        }
        let told: Vec<ToldInstructions> =
            memory.open.iter().filter_map(|(path, _)| session.instructions_if_new(path.as_str())).collect();
        let mut context = Self { open, memory, notes: Vec::new(), budget, over: 0, dialect };
        told.into_iter().for_each(|told| context.add_instructions(told));
        context
    }

    /// What is to be written down.
    pub fn memory(&self) -> RunMemory {
        RunMemory { open: self.open.places(), ..self.memory.clone() }
    }

    /// Says something to the model with the next prompt.
    pub fn add_note(&mut self, note: impl Into<String>) {
        self.notes.push(note.into());
    }

    /// The provider counted so many tokens where we estimated so many: the next prompts are made for its count, as far as that leaves
    /// room for work.
    pub fn calibrate(&mut self, estimated: usize, counted: u64) {
        self.over = (counted as usize).saturating_sub(estimated).min(self.budget / 5);
    }

    /// Instructions have come that the model is to be given.
    pub fn add_instructions(&mut self, told: ToldInstructions) {
        // What changed takes the place of what it was.
        let paths = told.paths();
        self.memory.instructions.retain(|given| !given.paths.iter().all(|path| paths.contains(path)));
        let text = render::instructions::instructions(&told, &tool::tool_names(RunPhase::Coding, self.dialect));
        self.memory.instructions.push(GivenInstructions { paths, text });
    }

    /// Lines were shown to the model, or it wrote them.
    pub fn open_lines(&mut self, shown: Vec<Lines>) {
        for lines in shown {
            self.open.used(&lines.path, &lines.text, &lines.lines);
        }
    }

    /// A turn is over.
    pub fn end_turn(&mut self, turn: u32, said: &str, did: Vec<PastCall>) {
        const TURNS: usize = 12;
        let line = turn_line(turn.saturating_sub(1), &self.memory.did);
        self.memory.earlier.extend(line);
        while self.memory.earlier.len() > TURNS {
            self.memory.earlier.pop_front();
        }
        self.memory.said = said.to_owned();
        self.memory.did = did;
    }

    /// The prompt of the next turn. From here on the session knows what it shows, and nothing else.
    pub fn render(&mut self, session: &mut Session, input: &TurnInput<'_>) -> RenderedPrompt {
        self.refresh(session);
        let budget = self.budget - self.over;
        let free = budget.saturating_sub(fixed_tokens(input));
        let template = self.template(session, input, free);
        let notes_room = free / 16;
        let mut extra = PromptExtra {
            open_files: String::new(),
            earlier: self.earlier_turns(free / 16),
            last_turn: self.last_turn(free / 4),
            notes: String::new(),
            phase: input.phase,
        };
        let mut prompt = build_snapshot_prompt(&template, input.state, &extra);
        prompt.tools = input.tools.to_vec();
        // The titles of the two parts that are still to come.
        let room = budget.saturating_sub(prompt.tokens() + notes_room + 24);
        let limits = session.workspace().config().limits.clone();
        let fitted = self.open.fit(room, Numbers::with_anchors(self.dialect == EditDialect::Lines), &limits);
        session.prompt_views().show_only(&fitted.shown);
        let left: Vec<String> = fitted.left.iter().map(describe_lines).collect();
        extra.open_files = fitted.text;
        extra.notes = notes_text(std::mem::take(&mut self.notes), &left, notes_room);
        let tools = prompt.tools;
        let prompt = Prompt { tools, ..build_snapshot_prompt(&template, input.state, &extra) };
        RenderedPrompt { tokens: prompt.tokens(), prompt, left }
    }

    /// Looks at the open files again. What somebody else made of them is shown, and said.
    fn refresh(&mut self, session: &mut Session) {
        let places = self.open.places();
        for (path, lines) in places {
            let now = session.prompt_views().present(&path);
            let was: LineSet = lines;
            let before = self.open.version(&path);
            self.open.refresh(&path, now.as_ref());
            match now {
                None => self.notes.push(format!("{path} is gone; you had {} open.", which(&was))),
                Some(text) if before.is_some_and(|before| before != text.version()) => {
                    self.notes
                        .push(format!("{path} was changed by somebody else, or by your command; it is shown as it is now."));
                }
                Some(_) => {}
            }
        }
    }

    /// Rules, story and instructions, each within its share of what is free. All shares together leave an eighth of it.
    fn template(&mut self, session: &mut Session, input: &TurnInput<'_>, free: usize) -> PromptTemplate {
        // Who plans needs the whole story; who works on a task has that.
        let share = if input.phase == RunPhase::Planning { 3 } else { 6 };
        let story = cut(&input.template.story, free / share).into_owned();
        let room = free / 6;
        while self.memory.instructions.len() > 1 && instructions_tokens(&self.memory.instructions) > room {
            // The first one is the root's, which holds everywhere; the next one was needed longest ago. It comes again when it is.
            let gone = self.memory.instructions.remove(1);
            let files: Vec<&str> = gone.paths.iter().map(RelPath::as_str).collect();
            self.notes.push(format!("No room for the instructions in {}; they come again with work there.", files.join(", ")));
            let workspace = session.workspace().clone();
            if let Some(tracker) = session.tracker() {
                tracker.forget(&workspace, &gone.paths);
            }
        }
        let all: String = self.memory.instructions.iter().map(|given| given.text.as_str()).collect();
        PromptTemplate { rules: input.template.rules.clone(), story, instructions: cut(&all, room).into_owned() }
    }

    fn earlier_turns(&self, tokens: usize) -> String {
        let mut room = tokens;
        let mut lines: Vec<&str> = Vec::new();
        for line in self.memory.earlier.iter().rev() {
            let cost = estimate(line) + 1;
            if cost > room {
                break;
            }
            room -= cost;
            lines.push(line);
        }
        lines.reverse();
        lines.join("\n")
    }

    fn last_turn(&self, tokens: usize) -> String {
        let mut text = String::new();
        let mut room = tokens;
        if !self.memory.said.trim().is_empty() {
            let said = prompt::within(&self.memory.said, tokens / 4);
            room = room.saturating_sub(estimate(&said) + 8);
            text.push_str(&format!("You said: {said}\n"));
        }
        let mut calls: Vec<String> = self.memory.did.iter().map(|did| prompt::call_line(&did.tool, &did.arguments, 60)).collect();
        let costs: Vec<usize> = self.memory.did.iter().map(|did| estimate(&did.outcome)).collect();
        let heads: usize = calls.iter().map(|call| estimate(call) + 4).sum();
        if heads > room / 2 {
            calls = self.memory.did.iter().map(|did| did.tool.clone()).collect();
        }
        let shares = split_budget(&costs, room.saturating_sub(calls.iter().map(|call| estimate(call) + 4).sum()));
        for ((call, did), share) in calls.iter().zip(&self.memory.did).zip(shares) {
            let outcome = prompt::within(&did.outcome, share);
            let refused = if did.is_error { "refused: " } else { "" };
            text.push_str(&format!("{call} →\n{refused}{outcome}\n"));
        }
        // With hundreds of calls in one turn not even their names have room.
        prompt::within(&text, tokens)
    }
}

/// What a prompt takes in which nothing stands that could be shortened, with the titles of all parts.
fn fixed_tokens(input: &TurnInput<'_>) -> usize {
    const TITLES: usize = 64;
    let template = PromptTemplate { rules: input.template.rules.clone(), ..PromptTemplate::default() };
    let extra = PromptExtra { phase: input.phase, ..PromptExtra::default() };
    build_snapshot_prompt(&template, input.state, &extra).tokens() + prompt::tools_tokens(input.tools) + TITLES
}

/// What leaves, in words; an empty file has no lines.
fn describe_lines(left: &Lines) -> String {
    if left.lines.is_empty() { left.path.to_string() } else { format!("{} {}", left.path, which(&left.lines)) }
}

/// How many tokens each text gets of so many in all: those that need little get it, the others share the rest.
fn split_budget(costs: &[usize], tokens: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..costs.len()).collect();
    order.sort_by_key(|index| costs[*index]);
    let mut shares = vec![0; costs.len()];
    let (mut room, mut left) = (tokens, costs.len());
    for index in order {
        shares[index] = costs[index].min(room / left.max(1));
        room -= shares[index];
        left -= 1;
    }
    shares
}

fn instructions_tokens(given: &[GivenInstructions]) -> usize {
    given.iter().map(|given| estimate(&given.text)).sum()
}

/// What the model should know besides, within so many tokens: first what left, which it must know.
fn notes_text(notes: Vec<String>, left: &[String], tokens: usize) -> String {
    let mut text = String::new();
    if !left.is_empty() {
        let all = format!("No room for: {}", left.join("; "));
        text = format!("{}. Read what you need, a range if it is long.\n", cut(&all, tokens * 2 / 3));
    }
    let room = tokens.saturating_sub(estimate(&text) + 4);
    text.push_str(&prompt::within(&notes.join("\n"), room));
    text
}

/// What a turn did, in a line. What came to nothing is not told again.
fn turn_line(turn: u32, did: &[PastCall]) -> Option<String> {
    const LONG: usize = 14;
    let parts: Vec<String> = did
        .iter()
        .filter(|did| !did.is_noop)
        .map(|did| {
            let what = ["pattern", "path", "from", "command"].iter().find_map(|name| did.arguments.get(name)?.as_str());
            let outcome = match (did.is_error, &did.ended) {
                (true, _) => ": refused".to_owned(),
                (false, Some(ended)) => format!(": {}", cut(&on_one_line(ended), LONG)),
                (false, None) => String::new(),
            };
            let what = on_one_line(what.unwrap_or_default());
            // Of a path the end says most.
            format!("{} {}", did.tool, shorten(&what, LONG)).trim_end().to_owned() + &outcome
        })
        .collect();
    let line = parts.join("; ");
    (!parts.is_empty()).then(|| format!("{turn}. {}", cut(&line, 60)))
}
