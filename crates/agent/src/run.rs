//! The agent loop: render a prompt, ask the model, carry out its calls, and repeat until the model is done or a
//! limit is reached. The session, not the loop, decides what may happen to files.

use std::{io, sync::Arc, time::Instant};

use serde_json::{Value, json};
use surehand_engine::{
    Call as EngineCall, CallProgress, Edit, Outcome, Session, SessionId, Tool, ToolNames, Workspace,
    core::{
        ContextMode, Done, EditDialect, KnownLines, RepoState, TaskOwner,
        file_diff::{DiffKind, FileDiff},
        outcome::ChangeOutcome,
        render::cut::cut,
    },
    render,
    store::{StoreError, TaskUpdate},
    tools,
};

use crate::{
    call_outcome::{CallOutcome, CallOutcomeKind},
    cancel::CancelToken,
    command::{self, Approver},
    event::{RunEvent, RunPhase, StopReason},
    history_context::HistoryContext,
    loop_detector::{LoopAdvice, LoopDetector, LoopLimits},
    model::{CallResult, ChatModel, ModelAnswer, ModelCall, ModelError, StreamEvent, TokenUsage, ToolSpec},
    prompt::{self, PromptTemplate},
    repair::plan_repair,
    secrets::Secrets,
    snapshot_context::{PastCall, RenderedPrompt, RunMemory, SnapshotContext, TurnInput},
    tool::{self, AgentTool},
    transcript::{self, ResumeError, RunTranscript, SavedRun},
    unseen_results::UnseenResults,
};

/// How a run works, and its limits.
#[derive(Debug, Clone, PartialEq)]
pub struct RunSettings {
    /// Whether each prompt is a snapshot of the present or the whole conversation.
    pub mode: ContextMode,
    /// Size of a prompt in snapshot mode, in tokens.
    pub budget: usize,
    /// Size of the conversation in history mode, in tokens.
    pub window: usize,
    /// The model's edit tool; `None` chooses one by the model's name.
    pub dialect: Option<EditDialect>,
    /// What the whole run may use.
    pub limits: RunLimits,
    /// When a run without progress stops.
    pub loop_limits: LoopLimits,
    /// Redacted in prompts, the transcript, events and the environment of commands.
    pub secrets: Secrets,
}

/// What a whole run may use; `None` means no limit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RunLimits {
    /// Number of turns.
    pub turns: Option<u32>,
    /// Input and output tokens together.
    pub tokens: Option<u64>,
    /// Cost in dollars.
    pub cost: Option<f64>,
}

impl RunSettings {
    /// The settings of a workspace, with the default limits.
    pub fn for_workspace(workspace: &Workspace) -> Self {
        let context = workspace.config().context;
        Self {
            mode: context.mode,
            budget: context.budget,
            window: context.window,
            dialect: None,
            limits: RunLimits { turns: Some(500), tokens: None, cost: None },
            loop_limits: LoopLimits::default(),
            secrets: Secrets::default(),
        }
    }
}

/// What to do after a run has stopped.
const RESUME: &str = "to continue: surehand run --resume";

/// Why a run cannot start or continue.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// There is no run to resume.
    #[error(transparent)]
    Resume(#[from] ResumeError),
    /// The fixed parts of the prompt alone exceed the budget.
    #[error("context.budget = {budget} is too small: rules, tools and state take {needed} tokens; set at least {needed}")]
    BudgetTooSmall {
        /// The configured budget.
        budget: usize,
        /// The smallest budget that works.
        needed: usize,
    },
    /// The task list cannot be stored.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The transcript cannot be read or written.
    #[error("cannot access the transcript of the run: {0}")]
    Record(#[from] io::Error),
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq)]
pub struct RunOutcome {
    /// The id of the run.
    pub run: String,
    /// Why the run stopped.
    pub stop: StopReason,
    /// The model's summary, or what to do next.
    pub text: String,
    /// Tokens and cost of all turns.
    pub usage: TokenUsage,
    /// Number of turns, including those before a resume.
    pub turns: u32,
}

/// The outside world of a run.
pub struct Ports<'a> {
    /// Answers the prompts.
    pub model: &'a mut dyn ChatModel,
    /// Decides which commands may run.
    pub permission: &'a mut dyn Approver,
    /// Receives every event, with secrets redacted.
    pub listener: &'a mut dyn FnMut(&RunEvent),
    /// Stops the run when cancelled.
    pub cancel: CancelToken,
}

/// A run of the agent: one story, from planning until it is done or stopped.
pub struct AgentRun<'a> {
    session: Session,
    ports: Ports<'a>,
    settings: RunSettings,
    dialect: EditDialect,
    saved: SavedRun,
    transcript: RunTranscript,
    context: RunContext,
    /// File lines that the results of the last turn show.
    shown: Vec<KnownLines>,
    loop_detector: LoopDetector,
    commands: command::CommandLimits,
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
            phase: RunPhase::Planning,
            has_plan: false,
            turn: 0,
            usage: TokenUsage::default(),
            stop: None,
            memory: RunMemory::default(),
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
        let mut session = Session::continued(workspace, SessionId(saved.session.clone()));
        // The files may have changed since, and instructions given after the last save are lost. So everything is read
        // again.
        session.reset();
        let was_killed = saved.stop.is_none();
        let memory = RunMemory { instructions: Vec::new(), ..saved.memory };
        let saved = SavedRun { stop: None, model: ports.model.name().to_owned(), mode: settings.mode, memory, ..saved };
        let mut run = Self::start(session, saved, settings, ports)?;
        if was_killed {
            // The interrupted turn was not saved, but its changes to files and tasks were made.
            run.saved.has_plan = true;
            run.update_phase();
            run.tell_model(prompt::KILLED);
        }
        Ok(run)
    }

    fn start(mut session: Session, saved: SavedRun, settings: RunSettings, ports: Ports<'a>) -> Result<Self, RunError> {
        let workspace = session.workspace().clone();
        workspace.start_watching();
        let dialect = settings.dialect.unwrap_or_else(|| prompt::dialect_for_model(ports.model.name()));
        let transcript = RunTranscript::open(&workspace, &saved.run).map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock => RunError::Resume(ResumeError::Busy(saved.run.clone())),
            _ => RunError::Record(error),
        })?;
        let context = match settings.mode {
            ContextMode::Snapshot => {
                check_budget(settings.budget, dialect)?;
                let memory = saved.memory.clone();
                RunContext::Snapshot(Box::new(SnapshotContext::new(memory, settings.budget, dialect, &mut session)))
            }
            ContextMode::History => {
                let mut history = HistoryContext::new(settings.window, transcript::read_messages(&workspace, &saved.run)?);
                if saved.turn > 0 {
                    history.add_user_message(prompt::GOES_ON);
                }
                RunContext::History(history)
            }
        };
        let loop_detector = LoopDetector::new(settings.loop_limits);
        let commands = command::CommandLimits::from(&workspace.config().commands);
        session.works_for_run(&saved.run);
        Ok(Self { session, ports, settings, dialect, saved, transcript, context, shown: Vec::new(), loop_detector, commands })
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
        self.saved.stop = Some(stop);
        self.save()?;
        let text = self.settings.secrets.redact(&text).into_owned();
        self.report(RunEvent::Stopped { stop, text: text.clone() })?;
        let SavedRun { run, usage, turn, .. } = self.saved;
        Ok(RunOutcome { run, stop, text, usage, turns: turn })
    }

    /// Tasks that people add from now on belong to this run. A failed file count is ignored: the model can list files
    /// itself.
    fn begin_story(&self) -> Result<(), RunError> {
        let (by, story) = (Some(TaskOwner::Run(self.saved.run.clone())), Some(self.saved.run.clone()));
        let workspace = self.session.workspace();
        workspace.update_tasks(&TaskUpdate { by, story, begins_story: true, ..TaskUpdate::default() })?;
        drop(workspace.count_files());
        Ok(())
    }

    fn used_up_limit(&self) -> Option<(StopReason, String)> {
        let RunLimits { turns, tokens, cost } = self.settings.limits;
        let usage = self.saved.usage;
        let taken = usage.input + usage.output;
        let used_up = |what: String| Some((StopReason::Budget, format!("{what}; {RESUME}")));
        if self.ports.cancel.is_cancelled() {
            return Some((StopReason::Cancelled, format!("stopped; {RESUME}")));
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

    /// Runs one turn. Returns the reason and a message if the run is over.
    fn run_turn(&mut self) -> Result<Option<(StopReason, String)>, RunError> {
        let started = Instant::now();
        let turn = self.saved.turn + 1;
        let state = self.session.snapshot();
        let rendered = self.render_prompt(&state)?;
        self.report_turn(turn, &state, rendered.tokens)?;
        if !rendered.left.is_empty() {
            self.report(RunEvent::Left { what: rendered.left.clone() })?;
        }
        let answer = match self.ask_model(&rendered) {
            Ok(answer) => answer,
            Err(ModelError::Cancelled) => {
                return Ok(Some((StopReason::Cancelled, format!("stopped; {RESUME}"))));
            }
            Err(error) => return Ok(Some((StopReason::Model, error.to_string()))),
        };
        if let RunContext::Snapshot(context) = &mut self.context {
            context.calibrate(rendered.tokens, answer.usage.input);
        }
        self.report(RunEvent::Said { text: answer.text.clone() })?;
        let over = self.carry_out_calls(turn, &answer)?;
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
        Ok(match self.loop_detector.end_turn() {
            LoopAdvice::Continue => None,
            LoopAdvice::Warn(note) => {
                self.tell_model(note);
                None
            }
            LoopAdvice::Stop(why) => Some((StopReason::Stuck, format!("{why}; {RESUME}"))),
        })
    }

    fn render_prompt(&mut self, state: &RepoState) -> Result<RenderedPrompt, RunError> {
        let template = self.template();
        let tools = self.tool_specs();
        let input = TurnInput { template: &template, state, phase: self.saved.phase, tools: &tools };
        match &mut self.context {
            RunContext::Snapshot(context) => {
                if let Some(told) = self.session.instructions_if_new(".") {
                    context.add_instructions(told);
                }
                Ok(context.render(&mut self.session, &input))
            }
            RunContext::History(history) => {
                let folded = history.is_full(&input).then(|| history.fold(state, &input));
                let rendered = history.render(&input);
                if let Some(folded) = folded {
                    self.session.reset();
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
        PromptTemplate { rules: prompt::rules(self.settings.mode, self.dialect), story, instructions: String::new() }
    }

    fn tool_specs(&self) -> Vec<ToolSpec> {
        prompt::tool_specs(self.saved.phase, self.dialect)
    }

    fn report_turn(&mut self, turn: u32, state: &RepoState, prompt_tokens: usize) -> Result<(), RunError> {
        let open = state.tasks.open();
        let event = RunEvent::Turn {
            turn,
            phase: self.saved.phase,
            task: open.first().map(|task| task.description.clone()),
            open: open.len(),
            completed: state.tasks.tasks.len() - open.len(),
            prompt_tokens,
        };
        self.report(event)
    }

    /// Asks the model. Secrets are redacted in the prompt, and also in the answer, from which they would reach files,
    /// commands and the next prompt.
    fn ask_model(&mut self, rendered: &RenderedPrompt) -> Result<ModelAnswer, ModelError> {
        let Ports { model, listener, cancel, .. } = &mut self.ports;
        let secrets = &self.settings.secrets;
        let mut redactor = secrets.redactor();
        let mut tell = |event: RunEvent| {
            if !matches!(&event, RunEvent::Text { text } if text.is_empty()) {
                listener(&secrets.redact_in(event));
            }
        };
        let answer = model.ask(&secrets.redact_in(rendered.prompt.clone()), cancel, &mut |heard| match heard {
            StreamEvent::Text(text) => tell(RunEvent::Text { text: redactor.push(text).into_owned() }),
            StreamEvent::Calling(tool) => {
                tell(RunEvent::Text { text: redactor.finish() });
                tell(RunEvent::Calling { tool: tool.to_owned() });
            }
            StreamEvent::Retry { why, seconds } => {
                redactor = secrets.redactor();
                tell(RunEvent::Again { why: why.to_owned(), seconds });
            }
        })?;
        tell(RunEvent::Text { text: redactor.finish() });
        Ok(secrets.redact_in(answer))
    }

    /// Carries out the model's calls in order. Returns its summary if one of them was an accepted `done`.
    fn carry_out_calls(&mut self, turn: u32, answer: &ModelAnswer) -> Result<Option<String>, RunError> {
        let mut over = None;
        let mut unseen = UnseenResults::before_answer(&mut self.session, &answer.calls);
        let (mut did, mut results) = (Vec::new(), Vec::new());
        self.shown.clear();
        for call in &answer.calls {
            let (arguments, result) = if self.ports.cancel.is_cancelled() {
                (json!({}), CallOutcome::refused("cancelled", "not carried out: the run was stopped"))
            } else {
                self.carry_out_call(call, answer.is_cut, &mut unseen)?
            };
            unseen.observe(&mut self.session, &result);
            self.loop_detector.observe(&call.name, &result);
            self.saved.has_plan |= matches!(result.outcome().map(|outcome| &outcome.result), Some(Ok(Done::Tasks(_))));
            let (tool, is_error, is_noop) = (call.name.clone(), result.is_error(), result.is_noop());
            let mut ended = None;
            match result.kind {
                CallOutcomeKind::Command { ending, .. } => ended = Some(ending),
                CallOutcomeKind::Finished { summary } => over = over.or(Some(summary)),
                CallOutcomeKind::Outcome(_) | CallOutcomeKind::Refused { .. } => {}
            }
            results.push(CallResult { id: call.id.clone(), text: result.text, is_error });
            did.push(PastCall { tool, arguments, outcome: result.text_beside_files, ended, is_error, is_noop });
        }
        match &mut self.context {
            RunContext::Snapshot(context) => {
                context.open_lines(std::mem::take(&mut self.shown));
                context.end_turn(turn, &answer.text, did);
            }
            RunContext::History(history) => {
                let noops = did.iter().zip(&answer.calls).filter(|(did, _)| did.is_noop).map(|(_, call)| call.id.clone());
                history.end_turn(&answer.text, answer.calls.clone(), results, noops.collect());
            }
        }
        if answer.calls.is_empty() {
            self.tell_model(if answer.is_cut { prompt::CUT.to_owned() } else { prompt::no_call_note() });
        }
        Ok(over)
    }

    /// Carries out and reports one call, and repairs a refused edit if possible.
    fn carry_out_call(
        &mut self,
        call: &ModelCall,
        is_cut: bool,
        unseen: &mut UnseenResults,
    ) -> Result<(Value, CallOutcome), RunError> {
        let parsed: Result<Value, String> = match serde_json::from_str(&call.arguments) {
            Ok(arguments @ Value::Object(_)) => Ok(arguments),
            Ok(_) => Err("the arguments must be a JSON object".to_owned()),
            Err(error) if is_cut => {
                Err(format!("the answer was cut off before the call was complete ({error}); make it shorter"))
            }
            Err(error) => Err(format!("the arguments are not JSON: {error}")),
        };
        let shown = parsed.clone().unwrap_or_else(|_| Value::String(call.arguments.clone()));
        self.report_call(&call.id, &call.name, shown.clone(), false)?;
        let arguments = match parsed {
            Ok(arguments) => arguments,
            Err(why) => {
                let refused = CallOutcome::refused("bad_arguments", &format!("{}: {why}", call.name));
                self.report_result(&call.id, &call.name, &refused)?;
                return Ok((shown, refused));
            }
        };
        let understood = Tool::named(&call.name).and_then(|tool| tools::parse(tool, &arguments).ok());
        let mut outcome = self.call_tool(&call.name, &arguments, understood.as_ref(), unseen);
        self.report_result(&call.id, &call.name, &outcome)?;
        if let Some(EngineCall::Edit(edit)) = &understood {
            outcome = self.repair_edit(call, edit, outcome)?;
        }
        Ok((shown, outcome))
    }

    /// Calls a tool. `understood` is the parsed call if it is a valid call of a workspace tool.
    fn call_tool(
        &mut self,
        name: &str,
        arguments: &Value,
        understood: Option<&EngineCall>,
        unseen: &mut UnseenResults,
    ) -> CallOutcome {
        let tool = AgentTool::named(name);
        if self.saved.phase == RunPhase::Planning && tool.is_some_and(|tool| !tool.is_for_planning()) {
            let tasks = Tool::UpdateTasks.name();
            let why = format!("{name} is for later: first write the tasks with {tasks}. Nothing was changed.");
            return CallOutcome::refused("planning", &why);
        }
        if let Some(EngineCall::Edit(edit)) = understood
            && let Some(why) = unseen.objection(&mut self.session, edit)
        {
            return CallOutcome::refused("unseen", &why);
        }
        match tool {
            Some(AgentTool::Done) => self.finish(arguments, unseen),
            Some(AgentTool::RunCommand) => {
                let names = self.tool_names();
                let Ports { permission, cancel, .. } = &mut self.ports;
                let (session, secrets) = (&mut self.session, &self.settings.secrets);
                let outcome = command::run_command(session, arguments, &mut **permission, &self.commands, secrets, cancel);
                self.note_shown(outcome.into_result(&names))
            }
            Some(AgentTool::Workspace(_)) | None => {
                let outcome = match understood {
                    Some(call) => self.session.run(call),
                    None => self.session.run_tool(&CallProgress::default(), name, arguments),
                };
                self.accept(outcome)
            }
        }
    }

    fn tool_names(&self) -> ToolNames {
        tool::tool_names(self.saved.phase, self.dialect)
    }

    /// Turns an outcome of the workspace into the result of a call. In snapshot mode instructions go into their own
    /// part of the prompt instead.
    fn accept(&mut self, mut outcome: Outcome) -> CallOutcome {
        if let RunContext::Snapshot(context) = &mut self.context
            && let Some(told) = outcome.notes.instructions.take()
        {
            context.add_instructions(told);
        }
        let result = CallOutcome::from_outcome(outcome, &self.tool_names());
        self.note_shown(result)
    }

    fn note_shown(&mut self, result: CallOutcome) -> CallOutcome {
        self.shown.extend(result.shown());
        result
    }

    fn finish(&mut self, arguments: &Value, unseen: &UnseenResults) -> CallOutcome {
        if let Some(why) = unseen.is_done_too_early() {
            return CallOutcome::refused("failed_calls", &why);
        }
        let state = self.session.snapshot();
        let open = state.tasks.open();
        if !open.is_empty() {
            let tasks: Vec<String> = open.iter().take(5).map(|task| format!("{} ({})", task.id, task.description)).collect();
            let more = if open.len() > 5 { format!(" and {} more", open.len() - 5) } else { String::new() };
            let why = format!(
                "Not done: {} open: {}{more}. Complete them, or set those that are done to completed with {}, then call {}.",
                render::count(open.len(), "task"),
                tasks.join(", "),
                Tool::UpdateTasks.name(),
                tool::DONE
            );
            return CallOutcome::refused("open_tasks", &why);
        }
        let summary = arguments["summary"].as_str().unwrap_or_default().to_owned();
        CallOutcome::new("Done.\n".to_owned(), CallOutcomeKind::Finished { summary })
    }

    /// After a refused edit, reads the affected lines again, and retries the edit once if it is proven which lines
    /// the model meant.
    ///
    /// The proof holds for the version named by the refusal. If the file has changed again since, the edit is left to
    /// the model, because a fresh anchor could match a different line with the same text.
    fn repair_edit(&mut self, call: &ModelCall, edit: &Edit, mut refused: CallOutcome) -> Result<CallOutcome, RunError> {
        let Some(refusal) = refused.outcome().and_then(|outcome| outcome.refusal()) else { return Ok(refused) };
        let Some(repair) = plan_repair(edit, refusal) else { return Ok(refused) };
        let proven = refusal.view_after.as_ref().map(|view| view.version());
        let read = Tool::ReadFile.name();
        let again = EngineCall::Read(repair.read);
        self.report_call(&call.id, read, tools::written_arguments(&again), true)?;
        let fresh = self.session.run(&again);
        let reading = match &fresh.result {
            Ok(Done::Read(reading)) => Some(reading.clone()),
            _ => None,
        };
        let fresh = self.accept(fresh);
        self.report_result(&call.id, read, &fresh)?;
        let is_proven = reading.as_ref().is_some_and(|reading| Some(reading.text.version()) == proven);
        let Some(retry) = repair.retry.filter(|_| is_proven) else {
            refused.text.push_str(&fresh.text);
            refused.text_beside_files.push_str(&fresh.text_beside_files);
            return Ok(refused);
        };
        let retry = EngineCall::Edit(retry);
        self.report_call(&call.id, &call.name, tools::written_arguments(&retry), true)?;
        let again = self.session.run(&retry);
        let mut again = self.accept(again);
        if !again.is_error() {
            let proven = "The lines you meant were found by proof, and the edit was made there. What had changed before";
            let rows = reading.as_ref().map(render::read::rows).unwrap_or_default();
            again.text = format!("{proven}:\n{rows}{}", again.text);
            again.text_beside_files = format!("{proven}: (see the open files)\n{}", again.text_beside_files);
            again.is_repaired = true;
        }
        self.report_result(&call.id, &call.name, &again)?;
        // The lines it shows count as read, so the model must get this result even if it is a refusal.
        Ok(again)
    }

    fn tell_model(&mut self, note: impl Into<String>) {
        match &mut self.context {
            RunContext::Snapshot(context) => context.add_note(note),
            RunContext::History(history) => history.add_user_message(note),
        }
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
        Ok(self.transcript.save(&self.settings.secrets.redact_in(self.saved.clone()))?)
    }

    fn report_call(&mut self, id: &str, tool: &str, arguments: Value, repair: bool) -> Result<(), RunError> {
        self.report(RunEvent::Call { id: id.to_owned(), tool: tool.to_owned(), arguments, repair })
    }

    fn report_result(&mut self, id: &str, tool: &str, result: &CallOutcome) -> Result<(), RunError> {
        let changed = result.outcome().and_then(|outcome| outcome.changed());
        let diff = changed.map(|changed| self.redacted_diffs(changed)).unwrap_or_default();
        let (id, tool, is_error) = (id.to_owned(), tool.to_owned(), result.is_error());
        // `report` redacts by a round trip through JSON, in which a diff would be lost. So text and diff are redacted
        // here, which leaves it nothing to replace.
        let text = self.settings.secrets.redact(&result.text).into_owned();
        self.report(RunEvent::Result { id, tool, is_error, text, diff })
    }

    fn redacted_diffs(&self, changed: &ChangeOutcome) -> Vec<FileDiff> {
        let diffs = changed.told().map(|file| file.unified_diff()).filter(|diff| diff.kind() != DiffKind::Unchanged);
        diffs.map(|diff| diff.redacted(|text| self.settings.secrets.redact(text))).collect()
    }

    /// Writes an event to the transcript and passes it to the listener, redacted. Events of a streamed answer go
    /// through [`Self::ask_model`] instead.
    fn report(&mut self, event: RunEvent) -> Result<(), RunError> {
        let event = self.settings.secrets.redact_in(event);
        self.transcript.append(&event)?;
        (self.ports.listener)(&event);
        Ok(())
    }
}

fn check_budget(budget: usize, dialect: EditDialect) -> Result<(), RunError> {
    use surehand_engine::core::{render::snapshot::MOST_TOKENS, tokens::estimate};
    let tools = prompt::tools_tokens(&prompt::tool_specs(RunPhase::Coding, dialect));
    let needed = tools + estimate(&prompt::rules(ContextMode::Snapshot, dialect)) + MOST_TOKENS + 1000;
    if budget < needed { Err(RunError::BudgetTooSmall { budget, needed }) } else { Ok(()) }
}
