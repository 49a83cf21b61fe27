//! The context in history mode: the whole conversation, folded into a snapshot of the state when it nears the
//! window.

use surehand_engine::core::RepoState;

use crate::{
    model::{CallResult, ChatMessage, ModelAnswer, Prompt},
    prompt::{message_tokens, state_text, system_text, tools_tokens, turn_request},
    snapshot_context::{RenderedPrompt, TurnInput},
};

#[derive(Debug, Default)]
pub(crate) struct HistoryContext {
    messages: Vec<(ChatMessage, usize)>,
    window: usize,
    /// Calls of the last turn that changed nothing. They are dropped once the model has seen their results.
    noops: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FoldedHistory {
    /// Number of messages folded.
    pub messages: usize,
    pub is_last_kept: bool,
}

impl HistoryContext {
    pub(crate) fn new(window: usize, messages: Vec<ChatMessage>) -> Self {
        let mut history = Self { window, ..Self::default() };
        messages.into_iter().for_each(|message| history.push(message));
        history
    }

    fn push(&mut self, message: ChatMessage) {
        let tokens = message_tokens(&message);
        self.messages.push((message, tokens));
    }

    pub(crate) fn add_user_message(&mut self, text: impl Into<String>) {
        self.push(ChatMessage::User(text.into()));
    }

    pub(crate) fn end_turn(&mut self, answer: &ModelAnswer, results: Vec<CallResult>, noops: Vec<String>) {
        let old = std::mem::replace(&mut self.noops, noops);
        self.drop_calls(&old);
        let ModelAnswer { text, calls, reasoning, .. } = answer.clone();
        self.push(ChatMessage::Assistant { text, calls, reasoning });
        if !results.is_empty() {
            self.push(ChatMessage::Results(results));
        }
    }

    /// Removes calls and their results from the conversation. A provider refuses reasoning without the calls that it
    /// led to, so the reasoning is removed with them. A message whose calls would be removed only in part keeps all of
    /// them.
    fn drop_calls(&mut self, ids: &[String]) {
        let is_split = |message: &ChatMessage| match message {
            ChatMessage::Assistant { calls, reasoning: Some(_), .. } => !calls.iter().all(|call| ids.contains(&call.id)),
            _ => false,
        };
        let calls_of = |message: &ChatMessage| match message {
            ChatMessage::Assistant { calls, .. } => calls.iter().map(|call| call.id.clone()).collect(),
            _ => Vec::new(),
        };
        let kept: Vec<String> =
            self.messages.iter().map(|(message, _)| message).filter(|message| is_split(message)).flat_map(calls_of).collect();
        let is_gone = |id: &String| ids.contains(id) && !kept.contains(id);
        if ids.iter().all(|id| !is_gone(id)) {
            return;
        }
        for (message, tokens) in &mut self.messages {
            match message {
                ChatMessage::User(_) => continue,
                ChatMessage::Assistant { calls, reasoning, .. } => {
                    let before = calls.len();
                    calls.retain(|call| !is_gone(&call.id));
                    reasoning.take_if(|_| calls.len() < before);
                }
                ChatMessage::Results(results) => results.retain(|result| !is_gone(&result.id)),
            }
            *tokens = message_tokens(message);
        }
        self.messages.retain(|(message, _)| match message {
            ChatMessage::User(_) => true,
            ChatMessage::Assistant { text, calls, .. } => !text.is_empty() || !calls.is_empty(),
            ChatMessage::Results(results) => !results.is_empty(),
        });
    }

    /// Whether the conversation is near its window and folding would make it shorter.
    pub(crate) fn is_full(&self, input: &TurnInput<'_>) -> bool {
        let tokens = self.tokens(input);
        tokens > self.window * 4 / 5 && self.last_answer() > 1 || tokens > self.window && self.messages.len() > 1
    }

    fn tokens(&self, input: &TurnInput<'_>) -> usize {
        let fixed = surehand_engine::core::tokens::estimate(&system_text(input.template)) + tools_tokens(input.tools);
        fixed + self.messages.iter().map(|(_, tokens)| tokens).sum::<usize>()
    }

    /// Index of the last answer, with which the last exchange begins.
    fn last_answer(&self) -> usize {
        let is_answer = |(message, _): &(ChatMessage, usize)| matches!(message, ChatMessage::Assistant { .. });
        self.messages.iter().rposition(is_answer).unwrap_or(self.messages.len())
    }

    /// Folds the conversation into the state. The last exchange stays, because the model has not seen its results yet,
    /// unless it alone exceeds the window. The caller must reset the session, because the lines that were read before
    /// are no longer shown.
    pub(crate) fn fold(&mut self, state: &RepoState, input: &TurnInput<'_>) -> FoldedHistory {
        let request = turn_request(state, input.phase);
        let state = state_text(state, input.phase);
        let words = match input.user_messages.text(self.window / 8) {
            words if words.is_empty() => words,
            words => format!("# What the user has said besides\n{words}\n\n"),
        };
        let text = |folded: usize, more: &str| {
            format!(
                "The conversation so far ({folded} messages) was folded into this state. What you had read is no longer in your context: read \
                 again what you want to edit. Do not do again what is done.{more}\n\n{words}{state}\n{request}"
            )
        };
        let last = self.messages.split_off(self.last_answer());
        let before = std::mem::take(&mut self.messages);
        self.add_user_message(text(before.len(), ""));
        self.messages.extend(last);
        if self.tokens(input) <= self.window {
            return FoldedHistory { messages: before.len(), is_last_kept: true };
        }
        let messages = before.len() + self.messages.len() - 1;
        self.messages.clear();
        self.noops.clear();
        self.add_user_message(text(messages, " What came of your last calls was too long: ask for less at once."));
        FoldedHistory { messages, is_last_kept: false }
    }

    pub(crate) fn render(&mut self, input: &TurnInput<'_>) -> RenderedPrompt {
        // A conversation must begin with a user message, even a resumed one.
        if !matches!(self.messages.first(), Some((ChatMessage::User(_), _))) {
            let text = format!("{}\n{}", state_text(input.state, input.phase), turn_request(input.state, input.phase));
            let message = ChatMessage::User(text);
            let tokens = message_tokens(&message);
            self.messages.insert(0, (message, tokens));
        }
        let tokens = self.tokens(input);
        let messages = self.messages.iter().map(|(message, _)| message.clone()).collect();
        let prompt = Prompt { system: system_text(input.template), messages, tools: input.tools.to_vec(), is_conversation: true };
        RenderedPrompt { prompt, tokens, left: Vec::new() }
    }
}
