//! A model behind HTTP: makes the request, reads the answer as it comes, and says what to do when there is none. How prompts and
//! answers are written is left to the protocols.

use std::time::Duration;

use serde_json::Value;

use super::{
    Answer, Heard, Message, Model, ModelError, Prompt,
    api_key::{Found, Key},
    connection::Prices,
    http_client::{Client, Response},
    request_error::{Fault, Words, is_too_long},
    retry::{self, GivenUp, Settings, persist},
    sse,
};
use crate::{cancel::Cancel, prompt::message_tokens};

/// How a provider wants to be asked, and how it answers.
pub(super) trait Dialect {
    /// The body of a request.
    fn body(&self, model: &str, prompt: &Prompt) -> Value;

    /// Somebody who reads one answer.
    fn reader(&self) -> Box<dyn Reader>;

    /// Learns from a refusal. Whether the next request will be another one.
    fn learn(&mut self, _words: &str) -> bool {
        false
    }
}

/// Puts an answer together.
pub(super) trait Reader {
    /// Takes the next event of a stream.
    fn event(&mut self, event: &sse::Event, hear: &mut dyn FnMut(Heard<'_>)) -> Result<Progress, Fault>;

    /// Takes an answer that came in one piece.
    fn whole(&mut self, body: &Value, hear: &mut dyn FnMut(Heard<'_>)) -> Result<(), Fault>;

    /// The answer, if it came to its end.
    fn finish(self: Box<Self>) -> Result<Complete, Fault>;
}

/// How far a stream is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Progress {
    /// There is more to come.
    #[default]
    Open,
    /// The answer is whole; what it took may follow.
    Whole,
    /// That was the end.
    Ended,
}

/// An answer that came to its end.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Complete {
    /// The answer.
    pub answer: Answer,
    /// Tokens of the prompt that were put into the provider's cache.
    pub cache_written: u64,
}

/// How long to wait for what a whole answer took: some servers say nothing more and keep the line open.
const EPILOGUE: Duration = Duration::from_secs(5);

/// The longest body of a refusal that is read.
const LONGEST_REFUSAL: usize = 64 * 1024;

/// The longest words of a provider that are passed on, in characters.
const LONGEST_WORDS: usize = 600;

/// A model behind HTTP.
pub(super) struct Remote {
    /// Its name, as the user gave it.
    pub model: String,
    /// To whom requests go.
    pub client: Client,
    /// How the provider speaks.
    pub dialect: Box<dyn Dialect>,
    /// The key, if there is one.
    pub key: Option<Found>,
    /// Where a key is looked for.
    pub key_variable: &'static str,
    /// How patient we are.
    pub settings: Settings,
    /// What tokens cost.
    pub prices: Prices,
}

impl Model for Remote {
    fn name(&self) -> &str {
        &self.model
    }

    fn key(&self) -> Option<&Key> {
        self.key.as_ref().map(|found| &found.key)
    }

    fn ask(&mut self, prompt: &Prompt, cancel: &Cancel, hear: &mut dyn FnMut(Heard<'_>)) -> Result<Answer, ModelError> {
        loop {
            let body = self.dialect.body(&self.model, prompt).to_string().into_bytes();
            let outcome = persist(&self.settings, cancel, hear, |hear| {
                self.attempt(body.clone(), cancel, hear).map_err(|fault| self.cleaned(fault))
            });
            match outcome {
                Ok(complete) => return Ok(self.priced(counted(complete, prompt))),
                Err(GivenUp { fault: Fault::Refused { status: 400 | 422, why }, .. }) if self.dialect.learn(&why) => {
                    hear(Heard::Again { why: &why, seconds: 0.0 });
                }
                Err(given_up) => return Err(self.error(given_up)),
            }
        }
    }
}

impl Remote {
    fn attempt(&self, body: Vec<u8>, cancel: &Cancel, hear: &mut dyn FnMut(Heard<'_>)) -> Result<Complete, Fault> {
        let response = self.client.post(body, cancel)?;
        if (200..300).contains(&response.status) {
            self.read(response, cancel, hear)
        } else {
            Err(self.refusal(response, cancel))
        }
    }

    fn read(&self, mut response: Response, cancel: &Cancel, hear: &mut dyn FnMut(Heard<'_>)) -> Result<Complete, Fault> {
        let mut reading = Reading::new(self.dialect.reader());
        while reading.progress != Progress::Ended {
            let idle = match reading.progress {
                Progress::Whole => EPILOGUE.min(self.settings.idle),
                Progress::Open | Progress::Ended => self.settings.idle,
            };
            match response.next(cancel, idle) {
                Ok(Some(bytes)) => reading.take(&bytes, hear)?,
                Ok(None) => break,
                Err(Fault::Passing { .. }) if reading.progress == Progress::Whole => break,
                Err(fault) => return Err(fault),
            }
        }
        reading.finish(hear)
    }

    /// What an answer with another status than success says.
    fn refusal(&self, mut response: Response, cancel: &Cancel) -> Fault {
        let mut body = Vec::new();
        while body.len() < LONGEST_REFUSAL {
            match response.next(cancel, self.settings.idle) {
                Ok(Some(bytes)) => body.extend_from_slice(&bytes),
                Err(Fault::Cancelled) => return Fault::Cancelled,
                // The status says enough where the words are missing.
                Ok(None) | Err(_) => break,
            }
        }
        let mut words = Words::in_body(&body);
        if let Some(target) = response.header("location").filter(|_| (300..400).contains(&response.status)) {
            words.text = format!("it has moved to {target}");
        }
        let milliseconds =
            response.header("retry-after-ms").and_then(|value| value.trim().parse().ok()).map(Duration::from_millis);
        let wait = || retry::retry_after(response.header("retry-after")?, jiff::Timestamp::now());
        Fault::of_status(response.status, words, milliseconds.or_else(wait))
    }

    /// The fault in words that may be shown: without the key, of bounded length, and without what a terminal would obey.
    fn cleaned(&self, fault: Fault) -> Fault {
        let clean = |why: String| {
            let why = self.key.as_ref().map_or_else(|| why.clone(), |found| found.key.hide(&why));
            let mut text: String =
                why.chars().take(LONGEST_WORDS).map(|c| if c.is_control() && c != '\n' { ' ' } else { c }).collect();
            if text.len() < why.len() {
                text.push('…');
            }
            text
        };
        match fault {
            Fault::Cancelled => fault,
            Fault::Passing { trouble, why, wait } => Fault::Passing { trouble, why: clean(why), wait },
            Fault::Refused { status, why } => Fault::Refused { status, why: clean(why) },
            Fault::Hopeless(why) => Fault::Hopeless(clean(why)),
        }
    }

    fn error(&self, given_up: GivenUp) -> ModelError {
        let (model, attempts) = (self.model.clone(), given_up.attempts);
        match given_up.fault {
            Fault::Cancelled => ModelError::Cancelled,
            Fault::Passing { trouble, why, .. } => {
                let remedy = trouble.remedy(&self.client.url().to_string());
                ModelError::Unavailable { model, attempts, why: format!("{why}\n{remedy}") }
            }
            Fault::Hopeless(why) => ModelError::Unavailable { model, attempts, why },
            Fault::Refused { status, why } => {
                let remedy = self.remedy(status, &why).map(|remedy| format!("\n{remedy}")).unwrap_or_default();
                ModelError::Refused { model, status, why: format!("{why}{remedy}") }
            }
        }
    }

    /// What to do about a refusal, where we know it.
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
            300..=399 => Some("use that address, if you trust it: keys are not sent on".to_owned()),
            401 if self.key.is_none() => Some(format!("set {variable} to a key for {url}")),
            401 => Some(format!("check the key in {variable}")),
            402 | 429 => Some(format!("the account of the key in {variable} has no credit left")),
            403 => Some(format!("the key in {variable} may not use {}, or not from here", self.model)),
            404 | 405 => Some(format!("check the name of the model, {}, and the address, {url}", self.model)),
            _ => None,
        }
    }

    fn priced(&self, complete: Complete) -> Answer {
        let Complete { mut answer, cache_written } = complete;
        answer.usage.cost = answer.usage.cost.or_else(|| self.prices.of(&answer.usage, cache_written));
        answer
    }
}

/// The answer with what it took. Not all servers count; where one does not we estimate, never too little, so that a budget holds there too.
fn counted(mut complete: Complete, prompt: &Prompt) -> Complete {
    let Answer { text, calls, usage, .. } = &mut complete.answer;
    if usage.input == 0 {
        usage.input = prompt.tokens() as u64;
    }
    if usage.output == 0 {
        usage.output = message_tokens(&Message::Assistant { text: text.clone(), calls: calls.clone() }) as u64;
    }
    complete
}

/// An answer that is being read.
struct Reading {
    reader: Box<dyn Reader>,
    form: Form,
    progress: Progress,
    has_events: bool,
    /// How the body begins, for what is no answer at all.
    start: Vec<u8>,
}

/// In which form an answer comes. Its first byte decides: a stream of events cannot begin as an object does, and not all servers
/// say rightly what they send.
enum Form {
    Unknown,
    Events(sse::Parser),
    Whole(Vec<u8>),
}

impl Reading {
    fn new(reader: Box<dyn Reader>) -> Self {
        Self { reader, form: Form::Unknown, progress: Progress::Open, has_events: false, start: Vec::new() }
    }

    fn take(&mut self, bytes: &[u8], hear: &mut dyn FnMut(Heard<'_>)) -> Result<(), Fault> {
        self.start.extend(bytes.iter().take((LONGEST_WORDS * 4).saturating_sub(self.start.len())));
        if matches!(self.form, Form::Unknown) {
            self.form = match bytes.iter().find(|byte| !byte.is_ascii_whitespace()) {
                None => Form::Unknown,
                Some(b'{' | b'[') => Form::Whole(Vec::new()),
                Some(_) => Form::Events(sse::Parser::default()),
            };
        }
        match &mut self.form {
            Form::Unknown => Ok(()),
            Form::Whole(body) => {
                body.extend_from_slice(bytes);
                Ok(())
            }
            Form::Events(parser) => {
                let mut events = Vec::new();
                let fed = parser.feed(bytes, &mut events);
                self.take_events(&events, hear)?;
                fed.map_err(|sse::TooLong| Fault::broken(format!("an event is longer than {} MB", sse::LONGEST >> 20)))
            }
        }
    }

    fn take_events(&mut self, events: &[sse::Event], hear: &mut dyn FnMut(Heard<'_>)) -> Result<(), Fault> {
        self.has_events |= !events.is_empty();
        for event in events {
            if self.progress == Progress::Ended {
                break;
            }
            self.progress = self.reader.event(event, hear)?;
        }
        Ok(())
    }

    fn finish(mut self, hear: &mut dyn FnMut(Heard<'_>)) -> Result<Complete, Fault> {
        match std::mem::replace(&mut self.form, Form::Unknown) {
            Form::Unknown => return Err(Fault::broken("the answer is empty")),
            Form::Whole(body) => {
                let body = serde_json::from_slice(&body).map_err(|error| self.no_answer(&error.to_string()))?;
                self.reader.whole(&body, hear)?;
            }
            Form::Events(parser) => {
                let mut events = Vec::new();
                parser.finish(&mut events);
                self.take_events(&events, hear)?;
                if !self.has_events {
                    return Err(self.no_answer("no event in it"));
                }
            }
        }
        self.reader.finish()
    }

    fn no_answer(&self, why: &str) -> Fault {
        Fault::broken(format!("the answer cannot be read ({why}): {}", String::from_utf8_lossy(&self.start).trim()))
    }
}
