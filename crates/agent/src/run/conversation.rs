//! The exchange between a run and its model. Both the prompt and every piece of the answer are
//! redacted.

use serde_json::Value;

use super::{AgentRun, RunContext, RunError, settings::Ports};
use crate::{
    event::RunEvent,
    model::{ModelAnswer, ModelCall, ModelError, Prompt, StreamEvent},
    prompt,
    question::find_question,
    snapshot_context::RenderedPrompt,
    text_calls::{TextCall, TextCalls, find_calls},
};

impl AgentRun<'_> {
    /// Asks the model. The prompt is redacted already. Secrets in the answer are redacted, too; otherwise they would
    /// reach files, commands and the next prompt.
    pub(super) fn ask_model(&mut self, rendered: &RenderedPrompt) -> Result<ModelAnswer, ModelError> {
        let Ports { model, listener, cancel, .. } = &mut self.ports;
        let secrets = &self.settings.secrets;
        let mut redactor = secrets.redactor();
        let mut report = |event: RunEvent| {
            if !matches!(&event, RunEvent::Text { text } if text.is_empty()) {
                listener(&secrets.redact_in(event));
            }
        };
        let answer = model.ask(&rendered.prompt, cancel, &mut |heard| match heard {
            StreamEvent::Text(text) => report(RunEvent::Text { text: redactor.push(text).into_owned() }),
            StreamEvent::Calling(tool) => {
                report(RunEvent::Text { text: redactor.finish() });
                report(RunEvent::Calling { tool: tool.to_owned() });
            }
            StreamEvent::Retry { why, seconds } => {
                redactor = secrets.redactor();
                report(RunEvent::Again { why: why.to_owned(), seconds });
            }
        })?;
        report(RunEvent::Text { text: redactor.finish() });
        let mut redacted = secrets.redact_in(answer.clone());
        // Providers refuse reasoning that was changed after it was signed.
        redacted.reasoning.take_if(|kept| Some(&*kept) != answer.reasoning.as_ref());
        Ok(redacted)
    }

    /// Turns calls that the model wrote into its text into real ones. Returns a note for the model if a part of the
    /// text is probably meant as a call, but is unclear.
    pub(super) fn read_text_calls(
        &mut self,
        turn: u32,
        mut answer: ModelAnswer,
        prompt: &Prompt,
    ) -> (ModelAnswer, Option<String>) {
        let said_before = std::mem::replace(&mut self.last_text, answer.text.clone());
        if !answer.calls.is_empty() || answer.is_cut {
            return (answer, None);
        }
        match find_calls(&answer.text, prompt, &said_before) {
            TextCalls::None => (answer, None),
            TextCalls::Found { text, calls } => {
                let call = |(call, number): (TextCall, u32)| ModelCall {
                    id: format!("text_{turn}_{number}"),
                    name: call.name,
                    arguments: Value::Object(call.arguments).to_string(),
                };
                answer.calls = calls.into_iter().zip(1..).map(call).collect();
                answer.text = text;
                // The provider knows it as part of an answer without these calls.
                answer.reasoning = None;
                (answer, None)
            }
            TextCalls::Unclear(why) => (answer, Some(prompt::text_call_note(&why, &self.tool_names()))),
        }
    }

    /// Takes the user's input since the last call. Returns whether there was any.
    pub(super) fn hear_user(&mut self) -> Result<bool, RunError> {
        let said = self.ports.person.take_words();
        for text in &said {
            self.hear(text, None)?;
        }
        Ok(!said.is_empty())
    }

    /// Records input of the user, which is in the next prompt and in all later ones.
    fn hear(&mut self, text: &str, question: Option<&str>) -> Result<(), RunError> {
        let text = self.settings.secrets.redact(text.trim()).into_owned();
        self.user_messages.add(self.saved.turn, &text, question);
        self.new_messages.push(text.clone());
        self.loop_detector.start_over();
        self.report(RunEvent::User { text, answers: question.map(str::to_owned) })
    }

    /// Adds the user's new input to the conversation at the end of a turn. A snapshot has all input in each prompt.
    pub(super) fn place_new_messages(&mut self) {
        let new = std::mem::take(&mut self.new_messages);
        if let RunContext::History(history) = &mut self.context {
            new.into_iter().for_each(|text| history.add_user_message(text));
        }
    }

    /// Replies to an answer without a call. If it is a question, the user answers it.
    pub(super) fn reply_to_talk(&mut self, text: &str, misunderstood: Option<String>) -> Result<(), RunError> {
        let question = find_question(text).filter(|_| misunderstood.is_none());
        let Some(question) = question else {
            return self.tell_model(misunderstood.unwrap_or_else(prompt::no_call_note));
        };
        if !self.ports.person.is_there() {
            return self.tell_model(prompt::NOBODY_ANSWERS);
        }
        match self.ports.person.answer(question).filter(|answer| !answer.trim().is_empty()) {
            Some(answer) => self.hear(&answer, Some(question)),
            None => self.tell_model(prompt::UNANSWERED),
        }
    }

    /// Adds a note to the next prompt and reports it.
    pub(super) fn tell_model(&mut self, note: impl Into<String>) -> Result<(), RunError> {
        let text = note.into();
        self.note_for_model(&*text);
        self.report(RunEvent::Note { text })
    }

    pub(super) fn note_for_model(&mut self, note: impl Into<String>) {
        match &mut self.context {
            RunContext::Snapshot(context) => context.add_note(note),
            RunContext::History(history) => history.add_user_message(note),
        }
    }
}
