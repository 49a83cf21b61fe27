//! The agent loop: render a prompt, ask the model, carry out its calls, and repeat until the model is done or a
//! limit is reached. The session, not the loop, decides what may happen to files.

mod calls;
mod conversation;
mod reports;
mod settings;

use std::{
    io,
    sync::Arc,
    time::{Duration, Instant},
};

use surehand_engine::{
    Session, SessionId, Workspace,
    core::{ContextMode, EditDialect, KnownLines, RepoState, TaskOwner, render::cut::cut},
    store::TaskUpdate,
};

use self::settings::fitting_detail;
pub use self::settings::{Ports, RunError, RunLimits, RunOutcome, RunSettings};
use crate::{
    command,
    event::{PlannedTask, RunEvent, RunPhase, StopReason},
    history_context::HistoryContext,
    loop_detector::{LoopAdvice, LoopDetector},
    model::ModelError,
    prompt::{self, PromptDetail, PromptTemplate},
    snapshot_context::{RenderedPrompt, RunMemory, SnapshotContext, TurnInput},
    transcript::{self, ResumeError, RunTranscript, SavedRun},
    user_messages::UserMessages,
};

const RESUME: &str = "to continue: surehand run --resume";

/// A run of the agent: one story, from planning until it is done or stopped.
pub struct AgentRun<'a> {
    session: Session,
    ports: Ports<'a>,
    settings: RunSettings,
    dialect: EditDialect,
    detail: PromptDetail,
    saved: SavedRun,
    transcript: RunTranscript,
    context: RunContext,
    /// File lines that the results of the last turn show.
    shown: Vec<KnownLines>,
    /// The tasks of the last report.
    plan: Vec<PlannedTask>,
    /// The text of the last answer, as the model wrote it.
    last_text: String,
    /// The user's input besides the story.
    user_messages: UserMessages,
    /// The part of that input that is not in the conversation yet.
    new_messages: Vec<String>,
    /// Whether the user has approved every further edit.
    approves_edits: bool,
    loop_detector: LoopDetector,
    commands: command::CommandLimits,
    started: Instant,
    /// Seconds that the run took in earlier processes.
    seconds_before: f64,
}

enum RunContext {
    Snapshot(Box<SnapshotContext>),
    History(HistoryContext),
}

impl<'a> AgentRun<'a> {
    /// Starts a new run.
    pub fn new(workspace: Arc<Workspace>, story: &str, settings: RunSettings, ports: Ports<'a>) -> Result<Self, RunError> {
        let mut session = Session::new(workspace);
        let id = session.tracker().map(|tracker| tracker.session().0.clone()).unwrap_or_default();
        let saved = SavedRun {
            run: id.clone(),
            story: settings.secrets.redact(story).into_owned(),
            session: id,
            model: ports.model.name().to_owned(),
            mode: settings.mode,
            ..SavedRun::default()
        };
        Self::start(session, saved, settings, ports)
    }

    /// Continues the run with this id, or else the latest one that is not done.
    pub fn resume(
        workspace: Arc<Workspace>,
        run: Option<&str>,
        settings: RunSettings,
        ports: Ports<'a>,
    ) -> Result<Self, RunError> {
        let saved = transcript::find_resumable(&workspace, run)?;
        let was_killed = saved.stop.is_none();
        let mut run = Self::reopen(workspace, saved, settings, ports)?;
        if was_killed {
            // The interrupted turn was not saved, but its changes to files and tasks were made.
            run.saved.has_plan = true;
            run.update_phase();
            run.note_for_model(prompt::KILLED);
        }
        Ok(run)
    }

    /// Continues the run with this id, or else the latest one, with a further story. The run may be done. It keeps its
    /// memory, the former story and its tasks, but the new story begins with its own list of tasks.
    pub fn tell_further_story(
        workspace: Arc<Workspace>,
        run: Option<&str>,
        story: &str,
        settings: RunSettings,
        ports: Ports<'a>,
    ) -> Result<Self, RunError> {
        let saved = transcript::find_for_story(&workspace, run)?;
        let saved = saved.with_story(settings.secrets.redact(story).into_owned());
        Self::reopen(workspace, saved, settings, ports)
    }

    fn reopen(workspace: Arc<Workspace>, saved: SavedRun, settings: RunSettings, ports: Ports<'a>) -> Result<Self, RunError> {
        let mut session = Session::continued(workspace, SessionId(saved.session.clone()));
        // The files may have changed since, and instructions given after the last save are lost, so everything is read
        // again.
        session.reset();
        let memory = RunMemory { instructions: Vec::new(), ..saved.memory };
        let saved = SavedRun { stop: None, model: ports.model.name().to_owned(), mode: settings.mode, memory, ..saved };
        Self::start(session, saved, settings, ports)
    }

    fn start(mut session: Session, saved: SavedRun, settings: RunSettings, mut ports: Ports<'a>) -> Result<Self, RunError> {
        let (started, seconds_before) = (Instant::now(), saved.seconds);
        if settings.ask_edits && !ports.person.is_there() {
            return Err(RunError::NobodyToAsk);
        }
        if let Some(deadline) = settings.limits.minutes.and_then(|minutes| deadline(started, minutes * 60.0 - seconds_before)) {
            ports.cancel = ports.cancel.with_deadline(deadline);
        }
        let workspace = session.workspace().clone();
        workspace.start_watching();
        let dialect = settings.dialect.unwrap_or_else(|| prompt::dialect_for_model(ports.model.name()));
        let transcript = RunTranscript::open(&workspace, &saved.run).map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock => RunError::Resume(ResumeError::Busy(saved.run.clone())),
            _ => RunError::Record(error),
        })?;
        let detail = fitting_detail(&settings, dialect)?;
        let events = transcript::read_events(&workspace, &saved.run)?;
        let mut user_messages = UserMessages::from_events(&events);
        let is_further_story = saved.former_stories > 0 && saved.story_turn == saved.turn;
        if let Some(former) = transcript::last_story(&events).filter(|former| is_further_story && *former != saved.story) {
            user_messages.end_story(saved.turn, former);
        }
        let context = match settings.mode {
            ContextMode::Snapshot => {
                let (memory, style) = (saved.memory.clone(), (dialect, detail));
                RunContext::Snapshot(Box::new(SnapshotContext::new(memory, settings.budget, style, &mut session)))
            }
            ContextMode::History => {
                let mut history = HistoryContext::new(settings.window, transcript::messages(events));
                match saved.turn {
                    0 => {}
                    _ if is_further_story => history.add_user_message(prompt::FURTHER_STORY),
                    _ => history.add_user_message(prompt::GOES_ON),
                }
                RunContext::History(history)
            }
        };
        let commands = command::CommandLimits::from(&workspace.config().commands);
        session.works_for_run(&saved.run, &saved.story_id());
        Ok(Self {
            session,
            ports,
            settings,
            dialect,
            detail,
            saved,
            transcript,
            context,
            shown: Vec::new(),
            plan: Vec::new(),
            last_text: String::new(),
            user_messages,
            new_messages: Vec::new(),
            approves_edits: false,
            loop_detector: LoopDetector::default(),
            commands,
            started,
            seconds_before,
        })
    }

    /// Works on the story until it is done or the run stops.
    pub fn run(mut self) -> Result<RunOutcome, RunError> {
        // Save first, so that the run can be resumed even if its first turn never ends.
        self.save()?;
        self.begin_story()?;
        self.report(RunEvent::Started {
            run: self.saved.run.clone(),
            story: self.saved.story.clone(),
            model: self.saved.model.clone(),
            mode: self.settings.mode,
            session: self.saved.session.clone(),
            after_turn: self.saved.turn,
        })?;
        let (stop, text) = loop {
            if let Some(stop) = self.used_up_limit() {
                break stop;
            }
            if let Some(stop) = self.run_turn()? {
                break stop;
            }
        };
        // Input that comes too late is for the next process.
        self.hear_user()?;
        self.saved.stop = Some(stop);
        self.save()?;
        let text = self.settings.secrets.redact(&text).into_owned();
        let totals = self.totals();
        self.report(RunEvent::Stopped { stop, text: text.clone(), totals })?;
        let SavedRun { run, usage, turn, .. } = self.saved;
        Ok(RunOutcome { run, stop, text, usage, turns: turn })
    }

    /// Tasks that people add from now on belong to this run. A failed file count is ignored: the model can list files
    /// itself.
    fn begin_story(&self) -> Result<(), RunError> {
        let (by, story) = (Some(TaskOwner::Run(self.saved.run.clone())), Some(self.saved.story_id()));
        let workspace = self.session.workspace();
        workspace.update_tasks(&TaskUpdate { by, story, begins_story: true, ..TaskUpdate::default() })?;
        drop(workspace.count_files());
        Ok(())
    }

    fn used_up_limit(&self) -> Option<(StopReason, String)> {
        let RunLimits { turns, tokens, cost, minutes: _ } = self.settings.limits;
        let usage = self.saved.usage;
        let taken = usage.input.saturating_add(usage.output);
        let used_up = |limit: String| Some((StopReason::Budget, format!("{limit}; {RESUME}")));
        if self.ports.cancel.is_cancelled() {
            return Some(self.cancelled());
        }
        if let Some(turns) = turns.filter(|turns| self.saved.turn >= *turns) {
            return used_up(format!("{turns} turns are used up"));
        }
        if let Some(tokens) = tokens.filter(|tokens| taken >= *tokens) {
            return used_up(format!("{taken} of {tokens} tokens are used up"));
        }
        match (cost, usage.cost) {
            (Some(most), Some(cost)) if cost >= most => used_up(format!("${cost:.4} of ${most:.4} are used up")),
            (Some(_), None) if self.saved.turn > 0 => used_up(
                "the cost is unknown: set model.price_input and model.price_output in ~/.config/surehand/surehand.toml"
                    .to_owned(),
            ),
            _ => None,
        }
    }

    /// Why a run whose token is cancelled stops.
    fn cancelled(&self) -> (StopReason, String) {
        match self.settings.limits.minutes.filter(|_| self.ports.cancel.is_out_of_time()) {
            Some(minutes) => (StopReason::Budget, format!("{minutes} minutes are used up; {RESUME}")),
            None => (StopReason::Cancelled, format!("stopped; {RESUME}")),
        }
    }

    /// Runs one turn. Returns the reason and a message if the run is over.
    fn run_turn(&mut self) -> Result<Option<(StopReason, String)>, RunError> {
        let started = Instant::now();
        let turn = self.saved.turn + 1;
        self.hear_user()?;
        self.place_new_messages();
        let state = self.session.snapshot();
        match self.loop_detector.judge(&state) {
            LoopAdvice::Continue => {}
            LoopAdvice::Warn(note) => self.tell_model(note)?,
            LoopAdvice::Stop(why) => return Ok(Some((StopReason::Stuck, format!("{why}; {RESUME}")))),
        }
        let mut rendered = self.render_prompt(&state)?;
        rendered.prompt = self.settings.secrets.redact_in(rendered.prompt);
        self.report_turn(turn, &state, rendered.tokens)?;
        self.report_plan(&state.tasks)?;
        if !rendered.left.is_empty() {
            self.report(RunEvent::Left { what: rendered.left.clone() })?;
        }
        if self.settings.record_prompts {
            self.transcript.record_prompt(turn, &rendered.prompt)?;
        }
        let answer = match self.ask_model(&rendered) {
            Ok(answer) => answer,
            Err(ModelError::Cancelled) => return Ok(Some(self.cancelled())),
            Err(error) => return Ok(Some((StopReason::Model, error.to_string()))),
        };
        if let RunContext::Snapshot(context) = &mut self.context {
            context.calibrate(rendered.tokens, answer.usage.input);
        }
        let (answer, misunderstood) = self.read_text_calls(turn, answer, &rendered.prompt);
        if let Some(kept) = &answer.reasoning {
            self.report(RunEvent::Reasoned { kept: kept.clone() })?;
        }
        self.report(RunEvent::Said { text: answer.text.clone() })?;
        if answer.is_cut {
            self.report(RunEvent::Cut { tokens: answer.usage.output })?;
        }
        let over = self.carry_out_calls(turn, &answer)?;
        if answer.is_cut {
            self.note_for_model(prompt::CUT);
        } else if answer.calls.is_empty() {
            self.reply_to_talk(&answer.text, misunderstood)?;
        }
        self.saved.turn = turn;
        self.saved.usage = self.saved.usage.plus(answer.usage);
        let seconds = started.elapsed().as_secs_f64();
        self.report(RunEvent::TurnEnded { turn, usage: answer.usage, total: self.saved.usage, seconds })?;
        self.update_phase();
        self.save()?;
        if let Some(summary) = over {
            self.saved.phase = RunPhase::Done;
            return Ok(Some((StopReason::Done, summary)));
        }
        Ok(None)
    }

    fn render_prompt(&mut self, state: &RepoState) -> Result<RenderedPrompt, RunError> {
        let template = self.template();
        let tools = prompt::tool_specs(self.saved.phase, self.dialect, self.detail);
        let input =
            TurnInput { template: &template, state, phase: self.saved.phase, tools: &tools, user_messages: &self.user_messages };
        match &mut self.context {
            RunContext::Snapshot(context) => {
                if let Some(instructions) = self.session.instructions_if_new(".") {
                    context.add_instructions(instructions);
                }
                Ok(context.render(&mut self.session, &input))
            }
            RunContext::History(history) => {
                let folded = history.is_full(&input).then(|| history.fold(state, &input));
                let rendered = history.render(&input);
                if let Some(folded) = folded {
                    self.session.reset();
                    self.loop_detector.forget_reads();
                    if folded.is_last_kept {
                        self.session.prompt_views().show_only(&self.shown);
                    }
                    self.report(RunEvent::Folded { messages: folded.messages })?;
                }
                Ok(rendered)
            }
        }
    }

    /// In snapshot mode the context gives the story its share of the budget. In history mode a quarter of the window
    /// is its limit.
    fn template(&self) -> PromptTemplate {
        let story = match self.settings.mode {
            ContextMode::Snapshot => self.saved.story.clone(),
            ContextMode::History => cut(&self.saved.story, self.settings.window / 4).into_owned(),
        };
        let mut rules = prompt::rules(self.settings.mode, self.dialect, self.detail);
        if self.ports.person.is_there() {
            rules.push_str(prompt::ASK);
        }
        PromptTemplate { rules, story, ..PromptTemplate::default() }
    }

    /// Planning ends when the model has written tasks in this run and one of them is open.
    fn update_phase(&mut self) {
        if self.saved.phase == RunPhase::Planning && self.saved.has_plan && !self.session.snapshot().tasks.open().is_empty() {
            self.saved.phase = RunPhase::Coding;
        }
    }

    fn save(&mut self) -> Result<(), RunError> {
        if let RunContext::Snapshot(context) = &self.context {
            self.saved.memory = context.memory();
        }
        self.saved.seconds = self.seconds_before + self.started.elapsed().as_secs_f64();
        Ok(self.transcript.save(&self.settings.secrets.redact_in(self.saved.clone()))?)
    }
}

/// The time this many seconds after `start`, at least `start` itself; `None` if it is too far away to represent.
fn deadline(start: Instant, seconds: f64) -> Option<Instant> {
    start.checked_add(Duration::try_from_secs_f64(seconds.max(0.0)).ok()?)
}
