//! A model behind HTTP: sends the request, decodes the answer as it arrives, and adds a remedy to errors. The protocols
//! encode prompts and assemble answers.

use std::time::{Duration, Instant};

use serde_json::Value;

use super::{
    ChatMessage, ChatModel, ModelAnswer, ModelError, Prompt, StreamEvent, StreamListener, TokenUsage,
    anthropic::{self, AnthropicReader},
    api_key::{ApiKey, FoundKey},
    connection::{ModelProtocol, TokenPrices},
    http_client::{HttpClient, HttpResponse},
    openai::{self, OpenAiReader},
    partial_calls::{PartialCall, finish_calls},
    reasoning::{KeptReasoning, ReasoningItem},
    request_error::{ProviderMessage, RequestError, TransientKind, is_too_long},
    request_options::RequestOptions,
    responses::{self, ResponsesReader},
    retry::{self, GivenUp, RetryPolicy, retry_transient},
    sse,
    surrogates::{self, StreamJoiner},
};
use crate::{cancel::CancelToken, prompt::message_tokens};

pub(super) trait AnswerReader {
    fn read_event(&mut self, event: &sse::SseEvent, hear: StreamListener<'_>) -> Result<AnswerProgress, RequestError>;

    /// Takes an answer that was not streamed.
    fn read_whole(&mut self, body: &Value, hear: StreamListener<'_>) -> Result<(), RequestError>;

    /// Bytes of text, reasoning and calls read so far. Keep-alive data of the server does not count.
    fn content_bytes(&self) -> usize;

    /// Ends the answer at this point, because it is too long.
    fn cut(&mut self);

    /// The answer, if it is complete.
    fn finish(self: Box<Self>) -> Result<CompleteAnswer, RequestError>;
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum AnswerProgress {
    #[default]
    Open,
    /// The answer is complete; its usage may follow.
    Whole,
    Ended,
}

#[derive(Debug, Default, PartialEq)]
pub(super) struct CompleteAnswer {
    pub answer: ModelAnswer,
    /// Input tokens that were written to the provider's cache.
    pub cache_written: u64,
    pub content_bytes: usize,
    /// Whether we stopped reading, so that the provider's last counts are missing.
    pub is_cut_by_us: bool,
}

impl CompleteAnswer {
    /// Assembles the parts of an answer. If it `is_cut`, the last call may be incomplete.
    pub(super) fn new(
        text: String,
        calls: Vec<PartialCall>,
        reasoning: Vec<ReasoningItem>,
        usage: TokenUsage,
        is_cut: bool,
    ) -> Result<Self, RequestError> {
        let calls = finish_calls(calls, is_cut)?;
        let answer = ModelAnswer { text, calls, usage, is_cut, reasoning: KeptReasoning::new(reasoning) };
        Ok(Self { answer, ..Self::default() })
    }
}

/// How long to wait for the usage after a complete answer: some servers send nothing more and keep the connection
/// open.
const EPILOGUE: Duration = Duration::from_secs(5);

/// At most this many bytes of an error body are read.
const LONGEST_REFUSAL: usize = 64 * 1024;

/// At most this many characters of a provider's message are passed on.
const LONGEST_WORDS: usize = 600;

pub(super) struct HttpModel {
    pub options: RequestOptions,
    pub client: HttpClient,
    pub protocol: ModelProtocol,
    pub limit: AnswerLimit,
    pub key: Option<FoundKey>,
    /// The key and all other credentials that no message may show.
    pub secrets: Vec<ApiKey>,
    /// The variable to name if a key is missing.
    pub key_variable: &'static str,
    pub retry: RetryPolicy,
    pub prices: TokenPrices,
}

/// The lengths at which we stop reading an answer, in case the server ignores the limit in the request.
#[derive(Debug, Clone, Copy)]
pub(super) struct AnswerLimit {
    /// Bytes of text, reasoning and calls.
    content: usize,
    /// Bytes of the body, which include the framing of events.
    body: usize,
}

impl AnswerLimit {
    pub(super) fn for_tokens(tokens: u32) -> Self {
        // A token has about four bytes, and an answer with more than eight on average is useless.
        const BYTES_OF_TOKEN: usize = 8;
        // A server may send an event for each token, and other data before the first one.
        const BYTES_OF_EVENT: usize = 2048;
        const BYTES_AROUND: usize = 1024 * 1024;
        let tokens = tokens as usize;
        Self {
            content: tokens.saturating_mul(BYTES_OF_TOKEN),
            body: tokens.saturating_mul(BYTES_OF_EVENT).saturating_add(BYTES_AROUND),
        }
    }
}

impl ChatModel for HttpModel {
    fn name(&self) -> &str {
        &self.options.model
    }

    fn secrets(&self) -> &[ApiKey] {
        &self.secrets
    }

    fn ask(&mut self, prompt: &Prompt, cancel: &CancelToken, hear: StreamListener<'_>) -> Result<ModelAnswer, ModelError> {
        loop {
            let body = match self.protocol {
                ModelProtocol::OpenAi => openai::request_body(&self.options, prompt),
                ModelProtocol::Anthropic => anthropic::request_body(&self.options, prompt),
                ModelProtocol::Responses => responses::request_body(&self.options, prompt),
            };
            let body = body.to_string().into_bytes();
            let outcome = retry_transient(&self.retry, cancel, hear, |hear| {
                self.attempt(body.clone(), cancel, hear).map_err(|error| self.sanitized(error))
            });
            match outcome {
                Ok(complete) => return Ok(self.with_usage(complete, prompt)),
                Err(GivenUp { error: RequestError::Refused { status: 400 | 422, why }, .. }) if self.options.adapt(&why) => {
                    hear(StreamEvent::Retry { why: &why, seconds: 0.0 });
                }
                Err(given_up) => return Err(self.model_error(given_up)),
            }
        }
    }
}

impl HttpModel {
    fn attempt(&self, body: Vec<u8>, cancel: &CancelToken, hear: StreamListener<'_>) -> Result<CompleteAnswer, RequestError> {
        let response = self.client.post(body, cancel)?;
        if (200..300).contains(&response.status) {
            self.read_answer(response, cancel, hear)
        } else {
            Err(self.read_refusal(response, cancel))
        }
    }

    fn read_answer(
        &self,
        mut response: HttpResponse,
        cancel: &CancelToken,
        hear: StreamListener<'_>,
    ) -> Result<CompleteAnswer, RequestError> {
        let reader: Box<dyn AnswerReader> = match self.protocol {
            ModelProtocol::OpenAi => Box::new(OpenAiReader::default()),
            ModelProtocol::Anthropic => Box::new(AnthropicReader::default()),
            ModelProtocol::Responses => Box::new(ResponsesReader::default()),
        };
        if let Some(encoding) = response.unknown_encoding() {
            let why = format!("the answer is compressed ({encoding}), although the request allows no compression");
            return Err(RequestError::Permanent(why));
        }
        let mut reading = AnswerDecoder::new(reader, self.limit);
        let mut last_content = Instant::now();
        while reading.progress != AnswerProgress::Ended {
            let idle = match reading.progress {
                AnswerProgress::Whole => EPILOGUE.min(self.retry.idle),
                AnswerProgress::Open | AnswerProgress::Ended => self.retry.idle,
            };
            let before = (reading.content_bytes(), reading.progress);
            match response.next_bytes(cancel, idle.saturating_sub(last_content.elapsed())) {
                Ok(Some(bytes)) => reading.take(&bytes, hear)?,
                Ok(None) => break,
                Err(RequestError::Transient { .. }) if reading.progress == AnswerProgress::Whole => break,
                Err(RequestError::Transient { kind: TransientKind::Silent, .. }) => return Err(reading.silent(idle)),
                Err(error) => return Err(error),
            }
            if (reading.content_bytes(), reading.progress) != before {
                last_content = Instant::now();
            }
            if reading.progress == AnswerProgress::Open && reading.is_too_long() {
                return reading.cut(hear);
            }
        }
        reading.finish(hear)
    }

    fn read_refusal(&self, mut response: HttpResponse, cancel: &CancelToken) -> RequestError {
        let mut body = Vec::new();
        while body.len() < LONGEST_REFUSAL && response.unknown_encoding().is_none() {
            match response.next_bytes(cancel, self.retry.idle) {
                Ok(Some(bytes)) => body.extend_from_slice(&bytes),
                Err(RequestError::Cancelled) => return RequestError::Cancelled,
                // The status says enough without a message.
                Ok(None) | Err(_) => break,
            }
        }
        let mut words = ProviderMessage::from_body(&body);
        if let Some(target) = response.header("location").filter(|_| (300..400).contains(&response.status)) {
            words.text = format!("it has moved to {target}");
        }
        let milliseconds =
            response.header("retry-after-ms").and_then(|value| value.trim().parse().ok()).map(Duration::from_millis);
        let wait = || retry::retry_after(response.header("retry-after")?, jiff::Timestamp::now());
        RequestError::from_status(response.status, words, milliseconds.or_else(wait))
    }

    /// The error with a text that is safe to show: without the key, without control characters, and of bounded
    /// length.
    fn sanitized(&self, mut error: RequestError) -> RequestError {
        let clean = |why: String| {
            let why = self.secrets.iter().fold(why, |why, secret| secret.redact(&why));
            let mut text: String =
                why.chars().take(LONGEST_WORDS).map(|c| if c.is_control() && c != '\n' { ' ' } else { c }).collect();
            if text.len() < why.len() {
                text.push('…');
            }
            text
        };
        match &mut error {
            RequestError::Cancelled => {}
            RequestError::Transient { why, .. } | RequestError::Refused { why, .. } | RequestError::Permanent(why) => {
                *why = clean(std::mem::take(why));
            }
        }
        error
    }

    fn model_error(&self, given_up: GivenUp) -> ModelError {
        let (model, attempts) = (self.options.model.clone(), given_up.attempts);
        let (problem, why) = match given_up.error {
            RequestError::Cancelled => return ModelError::Cancelled,
            RequestError::Refused { status, why } => {
                let remedy = self.remedy(status, &why).map(|remedy| format!("\n{remedy}")).unwrap_or_default();
                return ModelError::Refused { model, status, why: why + &remedy };
            }
            RequestError::Transient { kind, why, .. } => {
                (kind.problem(), format!("{why}\n{}", kind.remedy(&self.client.shown_url())))
            }
            RequestError::Permanent(why) => ("gave no answer", why),
        };
        ModelError::Unavailable { model, problem, attempts, why }
    }

    fn remedy(&self, status: u16, why: &str) -> Option<String> {
        if is_too_long(status, why) {
            return Some(format!(
                "the prompt is too long for {}: give a smaller --budget, or use a model with a larger context",
                self.options.model
            ));
        }
        let variable = self.key.as_ref().map_or(self.key_variable, |found| found.source);
        let url = self.client.shown_url();
        match status {
            300..=399 => Some("use that address if you trust it: keys do not follow redirects".to_owned()),
            401 if self.key.is_none() => Some(format!("set {variable} to a key for {url}")),
            401 => Some(format!("check the key in {variable}")),
            402 | 429 => Some(format!("the account of the key in {variable} has no credit left")),
            403 => Some(format!("the key in {variable} may not use {}, or not from here", self.options.model)),
            404 | 405 => Some(format!("check the name of the model, {}, and the address, {url}", self.options.model)),
            400 | 422 => self.setting_remedy(why),
            _ => None,
        }
    }

    /// The remedy if a refusal names one of the user's settings.
    fn setting_remedy(&self, why: &str) -> Option<String> {
        let named = self.options.generation.named_in(why).join(" and ");
        let model = &self.options.model;
        (!named.is_empty()).then(|| format!("{named} may not fit {model}: set another value, or none"))
    }

    /// Fills in the counts that the server did not report. Estimates of tokens are never too low, so that budgets hold.
    fn with_usage(&self, complete: CompleteAnswer, prompt: &Prompt) -> ModelAnswer {
        let CompleteAnswer { mut answer, cache_written, content_bytes, is_cut_by_us } = complete;
        let ModelAnswer { text, calls, usage, reasoning, is_cut } = &mut answer;
        if usage.input == 0 {
            usage.input = prompt.tokens() as u64;
        }
        usage.cached = usage.cached.min(usage.input);
        if usage.output == 0 || is_cut_by_us {
            let shown = message_tokens(&ChatMessage::Assistant { text: text.clone(), calls: calls.clone(), reasoning: None });
            // Reasoning is not part of the answer, but it is billed.
            usage.output = usage.output.max(shown.max(content_bytes / 4) as u64);
        }
        // The reasoning of an answer that was cut off may be incomplete.
        *reasoning = reasoning.take().filter(|_| prompt.is_conversation && self.options.keeps_reasoning && !*is_cut);
        if let Some(kept) = reasoning {
            kept.origin.clone_from(&self.options.origin);
            let is_sent = self.options.returns_thoughts == Some(true) || !kept.items.iter().all(openai::is_thought);
            kept.tokens = if is_sent { usage.output } else { 0 };
        }
        usage.cost = usage.cost.or_else(|| self.prices.cost_of(usage, cache_written));
        answer
    }
}

struct AnswerDecoder {
    reader: Box<dyn AnswerReader>,
    limit: AnswerLimit,
    form: BodyForm,
    /// Joins characters that the server has split into two halves.
    joiner: StreamJoiner,
    has_halves: bool,
    progress: AnswerProgress,
    has_events: bool,
    /// Length of the body so far.
    length: usize,
    /// The start of the body, to quote if it cannot be parsed as an answer.
    start: Vec<u8>,
}

/// The form of a body. Its first byte decides, because an event stream cannot begin like a JSON value, and some
/// servers send a wrong content type.
enum BodyForm {
    Unknown,
    Events(sse::SseParser),
    Whole(Vec<u8>),
}

impl AnswerDecoder {
    fn new(reader: Box<dyn AnswerReader>, limit: AnswerLimit) -> Self {
        Self {
            reader,
            limit,
            form: BodyForm::Unknown,
            joiner: StreamJoiner::default(),
            has_halves: false,
            progress: AnswerProgress::Open,
            has_events: false,
            length: 0,
            start: Vec::new(),
        }
    }

    /// Bytes of content. In a body that is not a stream, every byte counts.
    fn content_bytes(&self) -> usize {
        match &self.form {
            BodyForm::Whole(body) => body.len(),
            BodyForm::Unknown | BodyForm::Events(_) => self.reader.content_bytes(),
        }
    }

    fn is_too_long(&self) -> bool {
        self.length > self.limit.body || self.reader.content_bytes() > self.limit.content
    }

    /// Ends an answer that is too long and keeps the part received so far. It is not requested again, because that
    /// would cost as much again.
    fn cut(mut self, hear: StreamListener<'_>) -> Result<CompleteAnswer, RequestError> {
        if self.reader.content_bytes() == 0 {
            let why = format!("{} bytes were received, but no answer could be read from them", self.length);
            return Err(RequestError::Permanent(why));
        }
        self.form = BodyForm::Events(sse::SseParser::default());
        self.reader.cut();
        let complete = self.finish(hear)?;
        Ok(CompleteAnswer { is_cut_by_us: true, ..complete })
    }

    fn silent(&self, idle: Duration) -> RequestError {
        let seconds = idle.as_secs_f64();
        let silence = if self.length > 0 { "nothing of an answer came" } else { "nothing came" };
        RequestError::transient(TransientKind::Silent, format!("{silence} for {seconds} seconds"))
    }

    fn take(&mut self, bytes: &[u8], hear: StreamListener<'_>) -> Result<(), RequestError> {
        self.length += bytes.len();
        self.start.extend(bytes.iter().take((LONGEST_WORDS * 4).saturating_sub(self.start.len())));
        if matches!(self.form, BodyForm::Unknown) {
            self.form = match bytes.iter().find(|byte| !byte.is_ascii_whitespace()) {
                None => BodyForm::Unknown,
                Some(b'{' | b'[') => BodyForm::Whole(Vec::new()),
                Some(_) => BodyForm::Events(sse::SseParser::default()),
            };
        }
        match &mut self.form {
            BodyForm::Unknown => Ok(()),
            BodyForm::Whole(body) => {
                body.extend_from_slice(bytes);
                Ok(())
            }
            BodyForm::Events(parser) => {
                let mut events = Vec::new();
                let fed = parser.feed(bytes, &mut events);
                self.take_events(events, hear)?;
                fed.map_err(|sse::EventTooLong| {
                    RequestError::malformed(format!("an event is longer than {} MB", sse::LONGEST >> 20))
                })
            }
        }
    }

    fn take_events(&mut self, events: Vec<sse::SseEvent>, hear: StreamListener<'_>) -> Result<(), RequestError> {
        self.has_events |= !events.is_empty();
        for mut event in events {
            if self.progress == AnswerProgress::Ended || self.is_too_long() {
                break;
            }
            if let Some(data) = surrogates::without_halves(&event.data) {
                event.data = data;
                self.has_halves = true;
            }
            let joiner = Some(&mut self.joiner).filter(|_| self.has_halves);
            self.progress = match joiner {
                Some(joiner) => self.reader.read_event(&event, &mut |heard| joiner.pass(heard, hear))?,
                None => self.reader.read_event(&event, hear)?,
            };
        }
        Ok(())
    }

    fn finish(mut self, hear: StreamListener<'_>) -> Result<CompleteAnswer, RequestError> {
        match std::mem::replace(&mut self.form, BodyForm::Unknown) {
            BodyForm::Unknown => return Err(RequestError::malformed("the answer is empty")),
            BodyForm::Whole(body) => {
                let text = String::from_utf8_lossy(&body);
                let repaired = surrogates::without_halves(&text);
                self.has_halves = repaired.is_some();
                let body = serde_json::from_str(repaired.as_deref().unwrap_or(&text));
                let body = body.map_err(|error: serde_json::Error| self.unreadable(&error.to_string()))?;
                self.reader.read_whole(&body, hear)?;
            }
            BodyForm::Events(parser) => {
                let mut events = Vec::new();
                parser.finish(&mut events);
                self.take_events(events, hear)?;
                if !self.has_events {
                    return Err(self.unreadable("no event in it"));
                }
            }
        }
        let content_bytes = self.reader.content_bytes();
        let mut complete = self.reader.finish()?;
        if self.has_halves {
            let ModelAnswer { text, calls, .. } = &mut complete.answer;
            *text = surrogates::joined(text).into_owned();
            for call in calls {
                call.arguments = surrogates::joined(&call.arguments).into_owned();
            }
        }
        Ok(CompleteAnswer { content_bytes, ..complete })
    }

    fn unreadable(&self, why: &str) -> RequestError {
        RequestError::malformed(format!("the answer cannot be read ({why}): {}", String::from_utf8_lossy(&self.start).trim()))
    }
}
