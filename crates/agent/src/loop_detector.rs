//! Loop detection: warns the model when a run makes no progress, and stops the run if that does not help. Progress is
//! judged by its effect, not by a tool's answer:
//!
//! - an edit that brings the files to a new state, unless it only changes numbers in a line or keeps editing one line
//! - a new state of the task list
//! - lines of files that were not shown before
//! - a command or a listing that is new in this state, with a new answer
//!
//! A repeated command with another answer counts only a few times: clocks and durations always differ.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    hash::{DefaultHasher, Hash, Hasher},
};

use serde_json::Value;
use surehand_engine::{
    core::{ContentHash, Done, FileStatus, KnownLines, LineSet, RelPath, RepoState, Task, TaskList, TaskStatus, ToolKind},
    render::count,
};

use self::edits::{EditEffects, EditPlace};
use crate::{
    call_outcome::{CallOutcome, CallOutcomeKind},
    tool::AgentTool,
};

mod edits;

/// How often the same call may be refused.
const REFUSALS: u32 = 5;
/// How many turns in a row may have no effect: they make no call, or only calls that are refused, change nothing, or
/// repeat earlier ones.
const EMPTY_TURNS: u32 = 6;
/// How many turns in a row may change no file and complete no task, but only change the task list otherwise.
const TASK_TURNS: u32 = 10;
/// How many turns in a row may only read files or run commands that change none.
const LOOKING_TURNS: u32 = 100;
/// How often a file may be overwritten with nearly the same content.
const REWRITES: u32 = 6;

/// How many turns since the last progress may count although they brought only weak news; see [`Novelty::Weak`].
const WEAK_NEWS: u32 = 3;

/// How many edits in a row may replace the same line.
const SAME_PLACE: u32 = 4;

/// The hash of a state, a call or an output.
type Fingerprint = u64;

#[derive(Debug, Default)]
pub(crate) struct LoopDetector {
    /// The states of the files so far.
    files: HashSet<Fingerprint>,
    /// The states of the task list so far.
    tasks: HashSet<Fingerprint>,
    /// The most tasks that were completed or cancelled at the same time.
    most_closed: usize,
    /// Reads and commands, each with the state in which it was called.
    calls: HashSet<(Fingerprint, Fingerprint)>,
    /// Answers, each with the state in which it was given.
    answers: HashSet<(Fingerprint, Fingerprint)>,
    /// The lines that were shown, by file and version.
    shown: HashMap<(RelPath, ContentHash), LineSet>,
    /// The edits so far, without numbers.
    edits: HashSet<Fingerprint>,
    /// The place of the last edit, and how many edits in a row were there.
    place: Option<(EditPlace, u32)>,
    /// The present state. Changes made only by a command do not count: a command that writes the time into a file would
    /// be in a new state each time.
    state: Option<Fingerprint>,
    /// Turns with only weak news since the last progress.
    weak: u32,
    /// The calls of the turns in a row that had no effect.
    idle: Vec<Vec<IdleCall>>,
    /// Turns in a row that only changed the task list.
    planning: u32,
    /// Turns in a row that only read files or ran commands.
    looking: u32,
    turn: TurnProgress,
    stop: Option<String>,
}

#[derive(Debug, Default)]
struct TurnProgress {
    news: Novelty,
    /// Whether an edit did something new.
    has_edited: bool,
    /// Whether a command did something new in this state.
    has_run: bool,
    /// Whether an edit or a command repeated an earlier one.
    has_repeated: bool,
    /// Whether only commands can have changed files.
    has_only_run: bool,
    calls: Vec<IdleCall>,
}

/// How much new information a call gave.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Novelty {
    #[default]
    None,
    /// Another answer to an earlier call, or no hits for a new search.
    Weak,
    Strong,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct IdleCall {
    tool: String,
    refused: Option<&'static str>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LoopAdvice {
    Continue,
    /// A note for the model.
    Warn(String),
    /// Stop the run for this reason.
    Stop(String),
}

impl LoopDetector {
    pub(crate) fn observe(&mut self, tool: &str, arguments: &Value, result: &CallOutcome) {
        let refusal = result.refusal();
        if let Some((code, repeat)) = refusal
            && repeat >= REFUSALS
        {
            self.stop = Some(format!("the same call of {tool} was refused {REFUSALS} times ({code})"));
        }
        if let Some((path, times)) = result.outcome().and_then(|outcome| outcome.rewrites())
            && times >= REWRITES
        {
            self.stop = Some(format!("{path} was overwritten {REWRITES} times with nearly the same content"));
        }
        self.turn.calls.push(IdleCall { tool: tool.to_owned(), refused: refusal.map(|(code, _)| code) });
        if !result.is_error() && !result.is_noop() {
            self.turn.news = self.turn.news.max(self.news(tool, arguments, result));
        }
    }

    /// How much new information a call gave. Records the effect of an edit.
    fn news(&mut self, tool: &str, arguments: &Value, result: &CallOutcome) -> Novelty {
        match (&result.kind, AgentTool::named(tool)) {
            (CallOutcomeKind::Command { .. }, _) => {
                self.turn.has_only_run |= !self.turn.has_edited;
                let news = self.answer_news(tool, arguments, result);
                self.turn.has_run |= news == Novelty::Strong;
                self.turn.has_repeated |= news != Novelty::Strong;
                news
            }
            (CallOutcomeKind::Outcome(outcome), Some(AgentTool::Workspace(tool_kind))) => {
                match (&outcome.result, tool_kind.kind()) {
                    (Ok(Done::Changed(changed)), _) => {
                        self.note_edit(&EditEffects::of(changed));
                        Novelty::None
                    }
                    (Ok(Done::Found(found)), _) if found.hits == 0 => {
                        self.answer_news(tool, arguments, result).min(Novelty::Weak)
                    }
                    (_, ToolKind::Reads | ToolKind::Forgets) => {
                        let shown = result.shown();
                        if shown.is_empty() { self.answer_news(tool, arguments, result) } else { self.shown_news(shown) }
                    }
                    _ => Novelty::None,
                }
            }
            _ => Novelty::None,
        }
    }

    /// The news of an answer that shows no lines of files.
    fn answer_news(&mut self, tool: &str, arguments: &Value, result: &CallOutcome) -> Novelty {
        let state = self.state.unwrap_or_default();
        let is_new_call = self.calls.insert((state, fingerprint(&(tool, arguments.to_string()))));
        let is_new_answer = self.answers.insert((state, fingerprint(&without_numbers(&result.text, arguments))));
        match (is_new_call, is_new_answer) {
            (true, true) => Novelty::Strong,
            (false, false) => Novelty::None,
            _ => Novelty::Weak,
        }
    }

    /// The news of lines that a call shows.
    fn shown_news(&mut self, shown: Vec<KnownLines>) -> Novelty {
        let mut news = Novelty::None;
        for lines in shown {
            let known = self.shown.entry((lines.path, lines.text.version())).or_default();
            if !lines.lines.minus(known).is_empty() {
                lines.lines.ranges().iter().for_each(|range| known.insert(*range));
                news = Novelty::Strong;
            }
        }
        news
    }

    fn note_edit(&mut self, effects: &EditEffects) {
        let in_a_row = match &self.place {
            Some((place, times)) if effects.place.as_ref() == Some(place) => times + 1,
            _ => 1,
        };
        self.place = effects.place.clone().map(|place| (place, in_a_row));
        let is_new = effects.signatures.iter().fold(false, |is_new, edit| self.edits.insert(fingerprint(edit)) | is_new);
        let is_new = is_new && in_a_row <= SAME_PLACE;
        self.turn.has_edited |= is_new;
        self.turn.has_repeated |= !is_new;
        self.turn.has_only_run = false;
    }

    /// Ends the previous turn with the state that it led to, and judges the progress so far.
    pub(crate) fn judge(&mut self, state: &RepoState) -> LoopAdvice {
        let turn = std::mem::take(&mut self.turn);
        let (files, tasks) = (files_fingerprint(state), tasks_fingerprint(&state.tasks));
        let (are_files_new, are_tasks_new) = (self.files.insert(files), self.tasks.insert(tasks));
        let closed = closed(&state.tasks);
        let has_closed = closed > self.most_closed;
        self.most_closed = self.most_closed.max(closed);
        let is_first = self.state.is_none();
        if is_first || are_tasks_new || !turn.has_only_run {
            self.state = Some(fingerprint(&(files, tasks)));
        }
        if is_first {
            return LoopAdvice::Continue;
        }
        if let Some(why) = self.stop.take() {
            return LoopAdvice::Stop(why);
        }
        if turn.news == Novelty::Strong {
            // What the model reads between two edits may be a reason to edit the same line again.
            self.place = None;
        }
        if turn.news == Novelty::Weak {
            self.weak += 1;
        }
        let has_weak_news = turn.news == Novelty::Weak && self.weak <= WEAK_NEWS;
        let is_work = turn.has_edited || turn.has_run || !turn.has_repeated;
        if has_closed || are_files_new && is_work {
            self.start_over();
        } else if are_tasks_new {
            (self.planning, self.looking) = (self.planning + 1, 0);
            self.idle.clear();
        } else {
            self.looking += 1;
            if turn.news == Novelty::Strong {
                self.idle.clear();
            } else if !has_weak_news {
                self.idle.push(turn.calls);
            }
        }
        self.advice()
    }

    /// Starts over after new instructions: earlier turns are no sign of a loop.
    pub(crate) fn start_over(&mut self) {
        (self.planning, self.looking, self.weak) = (0, 0, 0);
        self.idle.clear();
    }

    /// Forgets reads that are no longer in the context, so that the model may read again.
    pub(crate) fn forget_reads(&mut self) {
        self.calls.clear();
        self.answers.clear();
        self.shown.clear();
    }

    fn advice(&self) -> LoopAdvice {
        let idle = self.idle.len() as u32;
        if idle >= EMPTY_TURNS {
            return LoopAdvice::Stop(describe(&self.idle));
        }
        if self.planning >= TASK_TURNS {
            return LoopAdvice::Stop(format!("{TASK_TURNS} turns changed only the list of tasks, and completed none"));
        }
        if self.looking >= LOOKING_TURNS {
            return LoopAdvice::Stop(format!(
                "{LOOKING_TURNS} turns in a row only read files or ran commands, and changed nothing"
            ));
        }
        if idle >= EMPTY_TURNS / 2 {
            let (left, reason) = (EMPTY_TURNS - idle, describe(&self.idle));
            return LoopAdvice::Warn(format!(
                "The last {idle} turns had no effect: {reason}. Try something else: after {left} more the run stops."
            ));
        }
        if self.planning == TASK_TURNS / 2 {
            let planning = self.planning;
            return LoopAdvice::Warn(format!(
                "{planning} turns changed only the list of tasks. Do not add more: work on the first open task."
            ));
        }
        if self.looking == LOOKING_TURNS / 2 {
            let looking = self.looking;
            return LoopAdvice::Warn(format!("The last {looking} turns only looked around. Continue with the first open task."));
        }
        LoopAdvice::Continue
    }
}

/// Describes what turns without an effect have in common.
fn describe(turns: &[Vec<IdleCall>]) -> String {
    let calls: Vec<&IdleCall> = turns.iter().flatten().collect();
    let tools: BTreeSet<&str> = calls.iter().map(|call| call.tool.as_str()).collect();
    let codes: BTreeSet<&str> = calls.iter().filter_map(|call| call.refused).collect();
    let names = tools.into_iter().collect::<Vec<_>>().join(", ");
    let length = count(turns.len(), "turn");
    match calls.len() {
        0 => format!("{length} in a row called no tool"),
        _ if calls.iter().all(|call| call.refused.is_some()) => {
            let codes = codes.into_iter().collect::<Vec<_>>().join(", ");
            format!("in {length} in a row every call was refused: {names} ({codes})")
        }
        _ => format!("{length} in a row repeated calls that change nothing: {names}"),
    }
}

fn files_fingerprint(state: &RepoState) -> Fingerprint {
    let mut hasher = DefaultHasher::new();
    // The list also has files that were only read.
    for file in state.files.iter().filter(|file| file.status != FileStatus::Unchanged || file.changed_outside) {
        (&file.path, file.hash.as_bytes(), file.status == FileStatus::Deleted).hash(&mut hasher);
    }
    hasher.finish()
}

/// The tasks and their progress. Tasks with equal descriptions are one task, and their order does not count.
fn tasks_fingerprint(tasks: &TaskList) -> Fingerprint {
    let progress = |task: &Task| (words(task), task.is_open(), task.status == TaskStatus::InProgress);
    fingerprint(&tasks.tasks.iter().map(progress).collect::<BTreeSet<_>>())
}

/// Number of different tasks that are completed or cancelled.
fn closed(tasks: &TaskList) -> usize {
    tasks.tasks.iter().filter(|task| !task.is_open()).map(words).collect::<BTreeSet<_>>().len()
}

fn words(task: &Task) -> String {
    task.description.split_whitespace().map(str::to_lowercase).collect::<Vec<_>>().join(" ")
}

/// An answer without the texts of the arguments and without words that contain digits: often only times, counts and ids
/// differ.
fn without_numbers(text: &str, arguments: &Value) -> String {
    let asked = arguments.as_object().into_iter().flat_map(|fields| fields.values()).filter_map(Value::as_str);
    let text = asked.filter(|asked| asked.len() > 2).fold(text.to_owned(), |text, asked| text.replace(asked, ""));
    let is_plain = |word: &&str| !word.contains(|c: char| c.is_ascii_digit());
    text.split_whitespace().filter(is_plain).collect::<Vec<_>>().join(" ")
}

fn fingerprint(value: &impl Hash) -> Fingerprint {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;
    use surehand_engine::{
        Done, Outcome, Refusal, ToolNames,
        core::{
            Cause, ContentHash, FileState, RelPath, Text,
            outcome::{Forgotten, RefusedOutcome, SameContent},
        },
    };

    use super::*;

    /// A workspace with one changed file and these tasks.
    fn state(content: &str, tasks: &[(&str, TaskStatus)]) -> RepoState {
        let file = FileState {
            path: RelPath::new("a").unwrap(),
            hash: ContentHash::of(content.as_bytes()),
            size: 1,
            modified: 0,
            status: FileStatus::Modified,
            changed_outside: false,
        };
        let task = |(id, (description, status)): (u32, &(&str, TaskStatus))| Task {
            id,
            description: (*description).to_owned(),
            status: *status,
            priority: id,
            story: String::new(),
            owner: None,
        };
        RepoState {
            work_dir: "/w".to_owned(),
            files: Arc::new(vec![file].into()),
            tasks: TaskList::of("", (1..).zip(tasks).map(task).collect(), None),
            last_updated: 0,
        }
    }

    fn same() -> RepoState {
        state("x", &[])
    }

    fn begun() -> LoopDetector {
        let mut detector = LoopDetector::default();
        assert_eq!(detector.judge(&same()), LoopAdvice::Continue);
        detector
    }

    fn read(detector: &mut LoopDetector, path: &str) {
        let outcome = CallOutcome::from_outcome(Outcome::new(Ok(Done::Forgotten(Forgotten::Everything))), &ToolNames::default());
        detector.observe("read_file", &json!({ "path": path }), &outcome);
    }

    /// A read of something else each time.
    fn look(detector: &mut LoopDetector, what: &str) {
        let kind = CallOutcomeKind::Command { succeeded: true, ending: String::new(), read: Vec::new() };
        let arguments = json!({ "command": format!("cat {what}") });
        detector.observe("run_command", &arguments, &CallOutcome::new(format!("it holds {what}y"), kind));
    }

    fn ran(detector: &mut LoopDetector, output: &str) {
        let kind = CallOutcomeKind::Command { succeeded: true, ending: String::new(), read: Vec::new() };
        detector.observe("run_command", &json!({ "command": "test" }), &CallOutcome::new(output.to_owned(), kind));
    }

    /// The number of turns until a run with these turns stops, and the reason.
    fn stops(mut detector: LoopDetector, turn: impl Fn(&mut LoopDetector, usize) -> RepoState) -> (usize, String) {
        for number in 1..200 {
            let state = turn(&mut detector, number);
            if let LoopAdvice::Stop(why) = detector.judge(&state) {
                return (number, why);
            }
        }
        panic!("it goes on for ever");
    }

    #[test]
    fn turns_without_effect_are_said_and_then_end_the_run() {
        let mut detector = begun();
        let advice: Vec<LoopAdvice> = (0..6).map(|_| detector.judge(&same())).collect();
        assert_eq!(advice[..2], [LoopAdvice::Continue, LoopAdvice::Continue]);
        assert!(
            matches!(&advice[2], LoopAdvice::Warn(text) if text.contains("3 turns") && text.contains("after 3 more")),
            "{advice:?}"
        );
        assert_eq!(advice[5], LoopAdvice::Stop("6 turns in a row called no tool".to_owned()));
    }

    #[test]
    fn a_change_makes_up_for_turns_without_effect() {
        let mut detector = begun();
        for number in 0..50 {
            detector.judge(&same());
            detector.judge(&same());
            assert_eq!(detector.judge(&state(&number.to_string(), &[])), LoopAdvice::Continue);
            assert_eq!(detector.judge(&state("y", &[])), LoopAdvice::Continue);
        }
    }

    #[test]
    fn files_that_go_back_and_forth_are_no_change() {
        let (turns, why) = stops(begun(), |detector, number| {
            detector.observe(
                "edit_file",
                &json!({}),
                &CallOutcome::new(String::new(), CallOutcomeKind::Finished { summary: String::new() }),
            );
            state(if number % 2 == 0 { "x" } else { "y" }, &[])
        });
        assert_eq!((turns, why.as_str()), (7, "6 turns in a row repeated calls that change nothing: edit_file"));
    }

    #[test]
    fn the_same_command_in_the_same_state_is_nothing_new_whatever_it_prints() {
        for printed in ["the same", "took N s", "word"] {
            let (turns, _) = stops(begun(), |detector, number| {
                let output = match printed {
                    "word" => "y".repeat(number),
                    printed => printed.replace('N', &format!("0.{number}")),
                };
                ran(detector, &output);
                same()
            });
            assert!(turns <= 10, "{printed}: {turns}");
        }
        let mut detector = begun();
        for number in 0..50 {
            let changed = state(&number.to_string(), &[]);
            assert_eq!(detector.judge(&changed), LoopAdvice::Continue);
            ran(&mut detector, "the same");
            assert_eq!(detector.judge(&changed), LoopAdvice::Continue, "another state is another test");
        }
    }

    #[test]
    fn reading_the_same_again_stops_and_reading_something_else_may_take_longer() {
        assert_eq!(
            stops(begun(), |detector, _| {
                read(detector, "a");
                same()
            })
            .0,
            7
        );
        let (turns, why) = stops(begun(), |detector, number| {
            look(detector, &"x".repeat(number + 1));
            same()
        });
        assert_eq!(turns, 100);
        assert!(why.contains("only read files"), "{why}");
        let mut detector = begun();
        for _ in 0..15 {
            read(&mut detector, "a");
            assert_eq!(detector.judge(&same()), LoopAdvice::Continue);
            detector.forget_reads();
        }
    }

    #[test]
    fn tasks_that_only_grow_or_toggle_are_no_progress() {
        use TaskStatus::{Completed, InProgress, Pending};
        let twice = stops(begun(), |_, number| state("x", &vec![("Write  it", Pending); number]));
        assert_eq!(twice.0, 7, "a task that is added again is the same task");
        let more = stops(begun(), |_, number| {
            let names: Vec<String> = (0..number).map(|id| format!("task {id}")).collect();
            state("x", &names.iter().map(|name| (name.as_str(), Pending)).collect::<Vec<_>>())
        });
        assert_eq!((more.0, more.1.as_str()), (10, "10 turns changed only the list of tasks, and completed none"));
        let toggled = stops(begun(), |_, number| state("x", &[("a", [Pending, InProgress, Completed][number % 3])]));
        assert!(toggled.0 <= 10, "{toggled:?}");
        let mut detector = begun();
        for number in 0..30 {
            let list: Vec<String> = (0..number).map(|id| format!("task {id}")).collect();
            let list: Vec<_> = list.iter().map(|name| (name.as_str(), Completed)).collect();
            assert!(!matches!(detector.judge(&state("x", &list)), LoopAdvice::Stop(_)), "each turn completes a task");
        }
    }

    #[test]
    fn what_is_refused_again_and_again_is_named() {
        let (turns, why) = stops(begun(), |detector, number| {
            detector.observe("done", &json!({ "summary": number }), &CallOutcome::refused("open_tasks", "no"));
            same()
        });
        assert_eq!((turns, why.as_str()), (6, "in 6 turns in a row every call was refused: done (open_tasks)"));
    }

    #[test]
    fn the_same_refusal_and_the_same_rewrite_end_it() {
        let mut detector = begun();
        let observe = |detector: &mut LoopDetector, tool: &str, outcome| {
            detector.observe(tool, &json!({}), &CallOutcome::from_outcome(outcome, &ToolNames::default()));
        };
        let refusal = Box::new(Refusal::of_call(Cause::Invalidated));
        observe(&mut detector, "edit_file", Outcome::new(Err(RefusedOutcome { refusal, repeat: 5, text: None })));
        let expected = LoopAdvice::Stop("the same call of edit_file was refused 5 times (stale)".to_owned());
        assert_eq!(detector.judge(&same()), expected);
        let (path, text) = (RelPath::new("a").unwrap(), Text::of("a\n".to_owned()).unwrap());
        observe(&mut detector, "write_file", Outcome::new(Ok(Done::SameContent(SameContent { path, text, rewrites: 6 }))));
        let expected = LoopAdvice::Stop("a was overwritten 6 times with nearly the same content".to_owned());
        assert_eq!(detector.judge(&same()), expected);
    }
}
