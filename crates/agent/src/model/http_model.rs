//! A model behind HTTP: sends the request, decodes the answer as it arrives, and says what to do if there is
//! none. The protocols encode prompts and assemble answers.

use std::time::Duration;

use serde_json::Value;

use super::{
    ChatMessage, ChatModel, ModelAnswer, ModelError, Prompt, StreamEvent, StreamListener,
    anthropic::{self, AnthropicReader},
    api_key::{ApiKey, FoundKey},
    connection::{ModelProtocol, TokenPrices},
    http_client::{HttpClient, HttpResponse},
    openai::{self, OpenAiReader},
    request_error::{ProviderMessage, RequestError, is_too_long},
    retry::{self, GivenUp, RetryPolicy, retry_transient},
    sse,
};
use crate::{cancel::CancelToken, prompt::message_tokens};

/// Assembles one answer.
pub(super) trait AnswerReader {
    fn read_event(&mut self, event: &sse::SseEvent, hear: StreamListener<'_>) -> Result<AnswerProgress, RequestError>;

    /// Takes an answer that was not streamed.
    fn read_whole(&mut self, body: &Value, hear: StreamListener<'_>) -> Result<(), RequestError>;

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
}

/// How long to wait for the usage after a complete answer: some servers send nothing more and keep the connection
/// open.
const EPILOGUE: Duration = Duration::from_secs(5);

/// How much of an error body is read.
const LONGEST_REFUSAL: usize = 64 * 1024;

/// How much of a provider's message is passed on, in characters.
const LONGEST_WORDS: usize = 600;

pub(super) struct HttpModel {
    pub model: String,
    pub client: HttpClient,
    pub protocol: ModelProtocol,
    /// Whether to request usage, which some servers reject.
    pub wants_usage: bool,
    pub key: Option<FoundKey>,
    /// The variable to name if a key is missing.
    pub key_variable: &'static str,
    pub retry: RetryPolicy,
    pub prices: TokenPrices,
}

impl ChatModel for HttpModel {
    fn name(&self) -> &str {
        &self.model
    }

    fn key(&self) -> Option<&ApiKey> {
        self.key.as_ref().map(|found| &found.key)
    }

    fn ask(&mut self, prompt: &Prompt, cancel: &CancelToken, hear: StreamListener<'_>) -> Result<ModelAnswer, ModelError> {
        loop {
            let body = match self.protocol {
                ModelProtocol::OpenAi => openai::request_body(&self.model, prompt, self.wants_usage),
                ModelProtocol::Anthropic => anthropic::request_body(&self.model, prompt),
            };
            let body = body.to_string().into_bytes();
            let outcome = retry_transient(&self.retry, cancel, hear, |hear| {
                self.attempt(body.clone(), cancel, hear).map_err(|error| self.sanitized(error))
            });
            match outcome {
                Ok(complete) => return Ok(self.with_usage(complete, prompt)),
                Err(GivenUp { error: RequestError::Refused { status: 400 | 422, why }, .. })
                    if self.wants_usage && why.contains("stream_options") =>
                {
                    self.wants_usage = false;
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
        };
        let mut reading = AnswerDecoder::new(reader);
        while reading.progress != AnswerProgress::Ended {
            let idle = match reading.progress {
                AnswerProgress::Whole => EPILOGUE.min(self.retry.idle),
                AnswerProgress::Open | AnswerProgress::Ended => self.retry.idle,
            };
            match response.next_bytes(cancel, idle) {
                Ok(Some(bytes)) => reading.take(&bytes, hear)?,
                Ok(None) => break,
                Err(RequestError::Transient { .. }) if reading.progress == AnswerProgress::Whole => break,
                Err(error) => return Err(error),
            }
        }
        reading.finish(hear)
    }

    /// Reads an answer whose status is not success.
    fn read_refusal(&self, mut response: HttpResponse, cancel: &CancelToken) -> RequestError {
        let mut body = Vec::new();
        while body.len() < LONGEST_REFUSAL {
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
    fn sanitized(&self, error: RequestError) -> RequestError {
        let clean = |why: String| {
            let why = self.key.as_ref().map_or_else(|| why.clone(), |found| found.key.redact(&why));
            let mut text: String =
                why.chars().take(LONGEST_WORDS).map(|c| if c.is_control() && c != '\n' { ' ' } else { c }).collect();
            if text.len() < why.len() {
                text.push('…');
            }
            text
        };
        match error {
            RequestError::Cancelled => error,
            RequestError::Transient { kind, why, wait } => RequestError::Transient { kind, why: clean(why), wait },
            RequestError::Refused { status, why } => RequestError::Refused { status, why: clean(why) },
            RequestError::Permanent(why) => RequestError::Permanent(clean(why)),
        }
    }

    fn model_error(&self, given_up: GivenUp) -> ModelError {
        let (model, attempts) = (self.model.clone(), given_up.attempts);
        match given_up.error {
            RequestError::Cancelled => ModelError::Cancelled,
            RequestError::Transient { kind, why, .. } => {
                let remedy = kind.remedy(&self.client.url().to_string());
                ModelError::Unavailable { model, attempts, why: format!("{why}\n{remedy}") }
            }
            RequestError::Permanent(why) => ModelError::Unavailable { model, attempts, why },
            RequestError::Refused { status, why } => {
                let remedy = self.remedy(status, &why).map(|remedy| format!("\n{remedy}")).unwrap_or_default();
                ModelError::Refused { model, status, why: format!("{why}{remedy}") }
            }
        }
    }

    fn remedy(&self, status: u16, why: &str) -> Option<String> {
        if is_too_long(status, why) {
            return Some(format!(
                "the prompt is too long for {}: put less into it, or use a model with a larger context",
                self.model
            ));
        }
        let variable = self.key.as_ref().map_or(self.key_variable, |found| found.source);
        let url = self.client.url();
        match status {
            300..=399 => Some("use that address if you trust it: keys do not follow redirects".to_owned()),
            401 if self.key.is_none() => Some(format!("set {variable} to a key for {url}")),
            401 => Some(format!("check the key in {variable}")),
            402 | 429 => Some(format!("the account of the key in {variable} has no credit left")),
            403 => Some(format!("the key in {variable} may not use {}, or not from here", self.model)),
            404 | 405 => Some(format!("check the name of the model, {}, and the address, {url}", self.model)),
            _ => None,
        }
    }

    /// Fills in what the server does not report. The estimate of tokens is never too low, so that budgets hold.
    fn with_usage(&self, complete: CompleteAnswer, prompt: &Prompt) -> ModelAnswer {
        let CompleteAnswer { mut answer, cache_written } = complete;
        let ModelAnswer { text, calls, usage, .. } = &mut answer;
        if usage.input == 0 {
            usage.input = prompt.tokens() as u64;
        }
        if usage.output == 0 {
            usage.output = message_tokens(&ChatMessage::Assistant { text: text.clone(), calls: calls.clone() }) as u64;
        }
        usage.cost = usage.cost.or_else(|| self.prices.cost_of(usage, cache_written));
        answer
    }
}

struct AnswerDecoder {
    reader: Box<dyn AnswerReader>,
    form: BodyForm,
    progress: AnswerProgress,
    has_events: bool,
    /// The start of the body, to quote if it is not an answer.
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
    fn new(reader: Box<dyn AnswerReader>) -> Self {
        Self { reader, form: BodyForm::Unknown, progress: AnswerProgress::Open, has_events: false, start: Vec::new() }
    }

    fn take(&mut self, bytes: &[u8], hear: StreamListener<'_>) -> Result<(), RequestError> {
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
                self.take_events(&events, hear)?;
                fed.map_err(|sse::EventTooLong| {
                    RequestError::malformed(format!("an event is longer than {} MB", sse::LONGEST >> 20))
                })
            }
        }
    }

    fn take_events(&mut self, events: &[sse::SseEvent], hear: StreamListener<'_>) -> Result<(), RequestError> {
        self.has_events |= !events.is_empty();
        for event in events {
            if self.progress == AnswerProgress::Ended {
                break;
            }
            self.progress = self.reader.read_event(event, hear)?;
        }
        Ok(())
    }

    fn finish(mut self, hear: StreamListener<'_>) -> Result<CompleteAnswer, RequestError> {
        match std::mem::replace(&mut self.form, BodyForm::Unknown) {
            BodyForm::Unknown => return Err(RequestError::malformed("the answer is empty")),
            BodyForm::Whole(body) => {
                let body = serde_json::from_slice(&body).map_err(|error| self.unreadable(&error.to_string()))?;
                self.reader.read_whole(&body, hear)?;
            }
            BodyForm::Events(parser) => {
                let mut events = Vec::new();
                parser.finish(&mut events);
                self.take_events(&events, hear)?;
                if !self.has_events {
                    return Err(self.unreadable("no event in it"));
                }
            }
        }
        self.reader.finish()
    }

    fn unreadable(&self, why: &str) -> RequestError {
        RequestError::malformed(format!("the answer cannot be read ({why}): {}", String::from_utf8_lossy(&self.start).trim()))
    }
}
