//! The context in snapshot mode: each prompt is rendered from the open files as they are now, the state of the
//! repository and the last turn. Every part has its share of the budget, and after rendering the session's views
//! equal what the prompt shows. The last turn is plain text, not tool-call messages, so that no stale content of a file
//! can stay in the prompt.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use surehand_engine::{
    Session,
    core::{
        EditDialect, KnownLines, RelPath, RepoState, WorkingSet,
        instructions::ToldInstructions,
        render::{
            self, LineNumbers,
            cut::{cut, on_one_line, shorten},
            describe_lines,
        },
        tokens::estimate,
        working_set::OpenLines,
    },
};

use crate::{
    event::RunPhase,
    model::{Prompt, ToolSpec},
    prompt::{self, PromptDetail, PromptExtra, PromptTemplate, build_snapshot_prompt},
    tool,
    user_messages::UserMessages,
};

/// The memory of a run besides the files and the task list. Saved after each turn.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RunMemory {
    /// The lines that the model has open.
    pub open: OpenLines,
    /// The model's text in the last turn.
    pub said: String,
    /// The calls of the last turn.
    pub did: Vec<PastCall>,
    /// One line for each turn before that.
    pub earlier: VecDeque<String>,
    /// Instructions of the repository (`AGENTS.md`) given to the model.
    pub instructions: Vec<GivenInstructions>,
}

/// A call of the last turn and its outcome.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PastCall {
    pub tool: String,
    /// A string if the model did not write JSON.
    pub arguments: Value,
    /// The reply without file lines.
    pub outcome: String,
    /// The exit code or signal of a command, as text; `None` for other tools.
    #[serde(default)]
    pub ended: Option<String>,
    pub is_error: bool,
    /// Whether nothing changed because nothing had to. Such calls are not kept in `earlier`.
    pub is_noop: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GivenInstructions {
    pub paths: Vec<RelPath>,
    pub text: String,
}

#[derive(Debug)]
pub(crate) struct SnapshotContext {
    open: WorkingSet,
    memory: RunMemory,
    notes: Vec<String>,
    budget: usize,
    /// By how many tokens the provider's last count exceeded our estimate.
    over: usize,
    dialect: EditDialect,
    detail: PromptDetail,
}

#[derive(Debug)]
pub(crate) struct RenderedPrompt {
    pub prompt: Prompt,
    /// Estimated; never an underestimate.
    pub tokens: usize,
    /// Files with line ranges that left the prompt for lack of room.
    pub left: Vec<String>,
}

/// The parts of a prompt that a context does not keep itself.
pub(crate) struct TurnInput<'a> {
    pub template: &'a PromptTemplate,
    pub state: &'a RepoState,
    pub phase: RunPhase,
    pub tools: &'a [ToolSpec],
    /// The user's input besides the story.
    pub user_messages: &'a UserMessages,
}

impl SnapshotContext {
    /// Restores the context of a saved run, or starts an empty one.
    pub(crate) fn new(
        memory: RunMemory,
        budget: usize,
        (dialect, detail): (EditDialect, PromptDetail),
        session: &mut Session,
    ) -> Self {
        let mut open = WorkingSet::default();
        for (path, lines) in &memory.open {
            if let Some(text) = session.prompt_views().present(path) {
                open.record_shown(path, &text, lines);
            }
        }
        let instructions: Vec<ToldInstructions> =
            memory.open.iter().filter_map(|(path, _)| session.instructions_if_new(path.as_str())).collect();
        let mut context = Self { open, memory, notes: Vec::new(), budget, over: 0, dialect, detail };
        instructions.into_iter().for_each(|given| context.add_instructions(given));
        context
    }

    pub(crate) fn memory(&self) -> RunMemory {
        RunMemory { open: self.open.open_lines(), ..self.memory.clone() }
    }

    pub(crate) fn add_note(&mut self, note: impl Into<String>) {
        self.notes.push(note.into());
    }

    /// Shrinks later prompts by the tokens that the provider counted beyond our estimate, up to a fifth of the budget.
    pub(crate) fn calibrate(&mut self, estimated: usize, counted: u64) {
        self.over = (counted as usize).saturating_sub(estimated).min(self.budget / 5);
    }

    pub(crate) fn add_instructions(&mut self, given: ToldInstructions) {
        // New versions of the same files replace the old ones.
        let paths = given.paths();
        self.memory.instructions.retain(|known| !known.paths.iter().all(|path| paths.contains(path)));
        let text = render::instructions::instructions(&given, &tool::tool_names(RunPhase::Coding, self.dialect, self.detail));
        self.memory.instructions.push(GivenInstructions { paths, text });
    }

    /// Opens lines that the model was shown or has written.
    pub(crate) fn open_lines(&mut self, shown: Vec<KnownLines>) {
        for lines in shown {
            self.open.record_shown(&lines.path, &lines.text, &lines.lines);
        }
    }

    /// Stores the model's text and calls of a turn for the next prompt.
    pub(crate) fn end_turn(&mut self, turn: u32, said: &str, did: Vec<PastCall>) {
        const TURNS: usize = 12;
        let line = turn_line(turn.saturating_sub(1), &self.memory.did);
        self.memory.earlier.extend(line);
        while self.memory.earlier.len() > TURNS {
            self.memory.earlier.pop_front();
        }
        self.memory.said = said.to_owned();
        self.memory.did = did;
    }

    /// Renders the prompt of the next turn. From then on the session's views hold exactly the lines it shows.
    pub(crate) fn render(&mut self, session: &mut Session, input: &TurnInput<'_>) -> RenderedPrompt {
        self.refresh(session);
        let budget = self.budget - self.over;
        let free = budget.saturating_sub(fixed_tokens(input, self.detail));
        let template = self.template(session, input, free);
        let notes_room = free / 16;
        let mut extra = PromptExtra {
            earlier: self.earlier_turns(free / 16),
            last_turn: self.last_turn(free / 4),
            phase: input.phase,
            detail: self.detail,
            ..PromptExtra::default()
        };
        let mut prompt = build_snapshot_prompt(&template, input.state, &extra);
        prompt.tools = input.tools.to_vec();
        // 24 tokens for the titles of the two parts added below.
        let room = budget.saturating_sub(prompt.tokens() + notes_room + 24);
        let limits = session.workspace().config().limits.clone();
        let fitted = self.open.fit(room, LineNumbers::with_anchors(self.dialect == EditDialect::Lines), &limits);
        session.prompt_views().show_only(&fitted.shown);
        let left: Vec<String> = fitted.left.iter().map(describe_left).collect();
        extra.open_files = fitted.text;
        extra.notes = notes_text(std::mem::take(&mut self.notes), &left, notes_room);
        let tools = prompt.tools;
        let prompt = Prompt { tools, ..build_snapshot_prompt(&template, input.state, &extra) };
        RenderedPrompt { tokens: prompt.tokens(), prompt, left }
    }

    /// Reads the open files again, and notes those that changed or are gone.
    fn refresh(&mut self, session: &mut Session) {
        for (path, lines) in self.open.open_lines() {
            let present = session.prompt_views().present(&path);
            let before = self.open.version(&path);
            self.open.refresh(&path, present.as_ref());
            match present {
                None => self.notes.push(format!("{path} is gone; you had {} open.", describe_lines(&lines))),
                Some(text) if before.is_some_and(|before| before != text.version()) => {
                    self.notes
                        .push(format!("{path} was changed by someone else or by your command; its current content is shown."));
                }
                Some(_) => {}
            }
        }
    }

    /// Cuts story and instructions to their shares of the free tokens. All shares together leave an eighth of them.
    fn template(&mut self, session: &mut Session, input: &TurnInput<'_>, free: usize) -> PromptTemplate {
        // Planning needs more of the story than working on a task does.
        let share = if input.phase == RunPhase::Planning { 3 } else { 6 };
        // The user's other input takes at most half of the story's share.
        let words = input.user_messages.text(free / share / 2);
        let story = cut(&input.template.story, (free / share).saturating_sub(estimate(&words))).into_owned();
        let room = free / 6;
        while self.memory.instructions.len() > 1 && instructions_tokens(&self.memory.instructions) > room {
            // Keep the first, which belongs to the root and applies everywhere. The next was used least recently, and
            // returns when it is needed.
            let gone = self.memory.instructions.remove(1);
            let files: Vec<&str> = gone.paths.iter().map(RelPath::as_str).collect();
            self.notes.push(format!("No room for the instructions in {}; they return when you work there.", files.join(", ")));
            let workspace = session.workspace().clone();
            if let Some(tracker) = session.tracker() {
                tracker.forget(&workspace, &gone.paths);
            }
        }
        let all: String = self.memory.instructions.iter().map(|given| given.text.as_str()).collect();
        PromptTemplate { rules: input.template.rules.clone(), story, words, instructions: cut(&all, room).into_owned() }
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
        // With hundreds of calls in one turn even their names may not fit.
        prompt::within(&text, tokens)
    }
}

/// The tokens of a prompt without its variable parts, but with all their titles.
fn fixed_tokens(input: &TurnInput<'_>, detail: PromptDetail) -> usize {
    const TITLES: usize = 64;
    let template = PromptTemplate { rules: input.template.rules.clone(), ..PromptTemplate::default() };
    let extra = PromptExtra { phase: input.phase, detail, ..PromptExtra::default() };
    build_snapshot_prompt(&template, input.state, &extra).tokens() + prompt::tools_tokens(input.tools) + TITLES
}

fn describe_left(left: &KnownLines) -> String {
    if left.lines.is_empty() { left.path.to_string() } else { format!("{} {}", left.path, describe_lines(&left.lines)) }
}

/// Splits a budget among texts: short ones get their full cost, and long ones share the rest equally.
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

/// The notes within a token limit. Removed lines come first, because the model must know about them.
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

/// One line for a past turn, without calls that changed nothing.
fn turn_line(turn: u32, did: &[PastCall]) -> Option<String> {
    const LONG: usize = 14;
    let parts: Vec<String> = did
        .iter()
        .filter(|did| !did.is_noop)
        .map(|did| {
            let subject = ["pattern", "path", "from", "command"].iter().find_map(|name| did.arguments.get(name)?.as_str());
            let outcome = match (did.is_error, &did.ended) {
                (true, _) => ": refused".to_owned(),
                (false, Some(ended)) => format!(": {}", cut(&on_one_line(ended), LONG)),
                (false, None) => String::new(),
            };
            let subject = on_one_line(subject.unwrap_or_default());
            // `shorten` keeps the end, which says most about a path.
            format!("{} {}", did.tool, shorten(&subject, LONG)).trim_end().to_owned() + &outcome
        })
        .collect();
    let line = parts.join("; ");
    (!parts.is_empty()).then(|| format!("{turn}. {}", cut(&line, 60)))
}
