//! Carries out the calls of an answer, and repairs refused edits.

use serde_json::{Value, json};
use surehand_engine::{
    Call as EngineCall, CallProgress, Edit, Outcome, Tool, ToolNames,
    core::{Done, ToolKind, file_diff::FileDiff},
    render, tools,
};

use super::{AgentRun, RunContext, RunError, settings::Ports};
use crate::{
    call_outcome::{CallOutcome, CallOutcomeKind},
    command::{self, CommandWatch},
    event::{RunEvent, RunPhase},
    model::{CallResult, ModelAnswer, ModelCall},
    person::{EditApproval, EditRequest},
    prompt,
    repair::plan_repair,
    snapshot_context::PastCall,
    tool::{self, AgentTool},
    unseen_results::UnseenResults,
};

impl AgentRun<'_> {
    /// Carries out the model's calls in order. Returns its summary if one of them was an accepted `done`.
    pub(super) fn carry_out_calls(&mut self, turn: u32, answer: &ModelAnswer) -> Result<Option<String>, RunError> {
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
            self.loop_detector.observe(&call.name, &arguments, &result);
            self.saved.calls = self.saved.calls.saturating_add(1);
            self.saved.refused = self.saved.refused.saturating_add(u32::from(result.is_error()));
            if matches!(result.outcome().map(|outcome| &outcome.result), Some(Ok(Done::Tasks(_)))) {
                self.saved.has_plan = true;
                let tasks = self.session.snapshot().tasks.clone();
                self.report_plan(&tasks)?;
            }
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
                history.end_turn(answer, results, noops.collect());
            }
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
        let mut outcome = self.call_tool(call, &arguments, understood.as_ref(), unseen)?;
        self.report_result(&call.id, &call.name, &outcome)?;
        if let Some(EngineCall::Edit(edit)) = &understood {
            outcome = self.repair_edit(call, edit, outcome)?;
        }
        Ok((shown, outcome))
    }

    /// Calls a tool. `understood` is the parsed call if it is a valid call of a workspace tool.
    fn call_tool(
        &mut self,
        call: &ModelCall,
        arguments: &Value,
        understood: Option<&EngineCall>,
        unseen: &mut UnseenResults,
    ) -> Result<CallOutcome, RunError> {
        let name = call.name.as_str();
        let tool = AgentTool::named(name);
        if self.saved.phase == RunPhase::Planning && tool.is_some_and(|tool| !tool.is_for_planning()) {
            let tasks = Tool::UpdateTasks.name();
            let why = format!("{name} is for later: first write the tasks with {tasks}. Nothing was changed.");
            return Ok(CallOutcome::refused("planning", &why));
        }
        if let Some(EngineCall::Edit(edit)) = understood
            && let Some(why) = unseen.objection(&mut self.session, edit)
        {
            return Ok(CallOutcome::refused("unseen", &why));
        }
        Ok(match (tool, understood) {
            (Some(AgentTool::Done), _) => self.finish(arguments, unseen)?,
            (Some(AgentTool::RunCommand), _) => self.run_command(&call.id, arguments),
            (Some(AgentTool::Workspace(_)) | None, Some(EngineCall::Edit(edit))) => self.make_edit(edit),
            (Some(AgentTool::Workspace(_)) | None, Some(call)) => {
                // The user cannot approve a change that has no diff beforehand.
                if call.tool().kind() == ToolKind::Edits && self.settings.ask_edits && !self.approves_edits {
                    let why = format!(
                        "{name} is not possible while the user approves each edit; nothing was changed. Use edits or undo."
                    );
                    return Ok(CallOutcome::refused("declined", &why));
                }
                let outcome = self.session.run(call);
                self.accept(outcome)
            }
            (Some(AgentTool::Workspace(_)) | None, None) => {
                let outcome = self.session.run_tool(&CallProgress::default(), name, arguments);
                self.accept(outcome)
            }
        })
    }

    /// Makes an edit, after the user has approved it if they want to be asked. An edit that is not approved is dropped
    /// before anything is written.
    fn make_edit(&mut self, edit: &Edit) -> CallOutcome {
        let mut approved: Option<Vec<FileDiff>> = None;
        while self.settings.ask_edits && !self.approves_edits {
            let plan = match self.session.plan(edit) {
                Ok(plan) => plan,
                Err(refusal) => {
                    let outcome = self.session.refused(edit, refusal);
                    return self.accept(outcome);
                }
            };
            let redact = |diff: FileDiff| diff.redacted(|text| self.settings.secrets.redact(text));
            let diffs: Vec<FileDiff> = plan.diffs().into_iter().map(redact).collect();
            // A file may have changed while the user was thinking.
            if diffs.is_empty() || approved.as_ref() == Some(&diffs) {
                let outcome = self.session.commit(plan);
                return self.accept(outcome);
            }
            let request = EditRequest { diffs: &diffs, has_changed: approved.is_some() };
            match self.ports.person.approve_edit(&request) {
                _ if self.ports.cancel.is_cancelled() => {
                    return CallOutcome::refused("cancelled", "not carried out: the run was stopped");
                }
                EditApproval::Yes => approved = Some(diffs),
                EditApproval::Always => self.approves_edits = true,
                EditApproval::No(words) => return self.decline_edit(edit, words.as_deref()),
            }
        }
        let outcome = self.session.run(&EngineCall::Edit(edit.clone()));
        self.accept(outcome)
    }

    fn decline_edit(&mut self, edit: &Edit, words: Option<&str>) -> CallOutcome {
        let said = words.map(|words| format!(": {}", words.trim())).unwrap_or_default();
        let mut why = format!("Error: the user declined the edit, and nothing was written{said}");
        if words.is_some() {
            // The user's reason is a new instruction.
            self.loop_detector.start_over();
        }
        let repeat = command::count_refusal(&mut self.session, edit.tool().name(), &json!(edit));
        if repeat > 1 {
            why.push_str(&format!("\nThis is refusal {repeat} of the same call: do not send it again."));
        }
        CallOutcome::new(format!("{why}\n"), CallOutcomeKind::Refused { code: "declined", repeat })
    }

    fn run_command(&mut self, id: &str, arguments: &Value) -> CallOutcome {
        let names = self.tool_names();
        let Ports { permission, listener, cancel, .. } = &mut self.ports;
        // The output is redacted already.
        let mut report = |text: &str| listener(&RunEvent::Output { id: id.to_owned(), text: text.to_owned() });
        let watch = CommandWatch { cancel, output: Some(&mut report) };
        let (session, secrets) = (&mut self.session, &self.settings.secrets);
        let outcome = command::run_command(session, arguments, &mut **permission, &self.commands, secrets, watch);
        self.note_shown(outcome.into_result(&names))
    }

    pub(super) fn tool_names(&self) -> ToolNames {
        tool::tool_names(self.saved.phase, self.dialect, self.detail)
    }

    /// Turns an outcome of the workspace into the result of a call. In snapshot mode, instructions get their own part
    /// of the prompt instead.
    fn accept(&mut self, mut outcome: Outcome) -> CallOutcome {
        if let RunContext::Snapshot(context) = &mut self.context
            && let Some(instructions) = outcome.notes.instructions.take()
        {
            context.add_instructions(instructions);
        }
        let result = CallOutcome::from_outcome(outcome, &self.tool_names());
        self.note_shown(result)
    }

    fn note_shown(&mut self, result: CallOutcome) -> CallOutcome {
        self.shown.extend(result.shown());
        result
    }

    fn finish(&mut self, arguments: &Value, unseen: &UnseenResults) -> Result<CallOutcome, RunError> {
        if self.hear_user()? {
            return Ok(CallOutcome::refused("user_spoke", prompt::USER_SPOKE));
        }
        if let Some(why) = unseen.is_done_too_early() {
            return Ok(CallOutcome::refused("failed_calls", &why));
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
            return Ok(CallOutcome::refused("open_tasks", &why));
        }
        let summary = arguments["summary"].as_str().unwrap_or_default().to_owned();
        Ok(CallOutcome::new("Done.\n".to_owned(), CallOutcomeKind::Finished { summary }))
    }

    /// After a refused edit, reads the affected lines again. If it is proven which lines the model meant, retries the
    /// edit once.
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
        self.report_call(&call.id, &call.name, tools::written_arguments(&EngineCall::Edit(retry.clone())), true)?;
        let mut again = self.make_edit(&retry);
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
}
