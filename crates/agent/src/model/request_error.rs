//! Errors of a request, and which of them are transient. Derived from HTTP statuses and from the errors that
//! providers put into bodies and streams.

use std::time::Duration;

use serde_json::Value;

#[derive(Debug, Clone, PartialEq)]
pub(super) enum RequestError {
    Cancelled,
    /// A retry may succeed.
    Transient {
        kind: TransientKind,
        why: String,
        /// The pause that the provider asks for.
        wait: Option<Duration>,
    },
    Refused {
        /// The HTTP status, or the one that matches an error in the stream.
        status: u16,
        why: String,
    },
    /// There is no answer, and a retry would not help.
    Permanent(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TransientKind {
    Unreached,
    /// The server was silent for too long.
    Silent,
    /// The provider is overloaded or has failed.
    Busy,
    /// The answer is incomplete or cannot be read.
    Broken,
}

impl TransientKind {
    /// The predicate of the error message, after the model's name.
    pub(super) fn problem(self) -> &'static str {
        match self {
            Self::Unreached => "could not be reached",
            Self::Silent => "was silent",
            Self::Busy => "failed",
            Self::Broken => "gave no complete answer",
        }
    }

    /// The remedy if retries do not help.
    pub(super) fn remedy(self, url: &str) -> String {
        match self {
            Self::Unreached => format!("check the network, the proxy if there is one, and that a server answers at {url}"),
            Self::Silent => "a slow model needs more time: set model.seconds in ~/.config/surehand/surehand.toml".to_owned(),
            Self::Busy => "try again later, or with another model".to_owned(),
            Self::Broken => format!("check that {url} is the address of a model, in the right protocol"),
        }
    }
}

impl RequestError {
    pub(super) fn malformed(why: impl Into<String>) -> Self {
        Self::transient(TransientKind::Broken, why)
    }

    /// A transient error without a requested pause.
    pub(super) fn transient(kind: TransientKind, why: impl Into<String>) -> Self {
        Self::Transient { kind, why: why.into(), wait: None }
    }

    /// The provider withholds an answer, although the HTTP status was a success.
    pub(super) fn withheld(why: &str) -> Self {
        Self::Refused { status: 200, why: why.to_owned() }
    }

    pub(super) fn from_status(status: u16, words: ProviderMessage, wait: Option<Duration>) -> Self {
        let why = words.text;
        // An empty account is reported with the status of a rate limit, but waiting does not help.
        if is_transient(status) && !words.kind.contains("insufficient_quota") {
            return Self::Transient { kind: TransientKind::Busy, why: format!("{status}: {why}"), wait };
        }
        Self::Refused { status, why }
    }

    /// An error inside a stream whose status was 200.
    pub(super) fn from_stream_error(error: &Value) -> Self {
        let words = ProviderMessage::from_error(error);
        match status_of(error, &words.kind) {
            Some(status) => Self::from_status(status, words, None),
            None => Self::transient(TransientKind::Busy, words.text),
        }
    }
}

/// The error in an object, which may be the object itself.
pub(super) fn error_in(value: &Value) -> &Value {
    Some(&value["error"]).filter(|error| !error.is_null()).unwrap_or(value)
}

/// 409 means that another request held a lock at the provider.
fn is_transient(status: u16) -> bool {
    matches!(status, 408 | 409 | 425 | 429 | 500..=599)
}

/// The HTTP status that matches an error in a stream. Some providers send the number, others a word.
fn status_of(error: &Value, kind: &str) -> Option<u16> {
    let number = error["code"].as_u64().or_else(|| error["status"].as_u64()).or_else(|| error["code"].as_str()?.parse().ok());
    if let Some(status) = number.and_then(|number| u16::try_from(number).ok()).filter(|status| (400..600).contains(status)) {
        return Some(status);
    }
    let known = [
        ("insufficient_quota", 429),
        ("rate_limit", 429),
        ("overloaded", 529),
        ("context_length_exceeded", 400),
        ("exceed_context_size", 400),
        ("invalid_request", 400),
        ("invalid_prompt", 400),
        ("authentication", 401),
        ("invalid_api_key", 401),
        ("billing", 402),
        ("permission", 403),
        ("not_found", 404),
        ("request_too_large", 413),
    ];
    known.iter().find(|(word, _)| kind.contains(word)).map(|(_, status)| *status)
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ProviderMessage {
    pub text: String,
    /// The error's type and code, as the provider names them.
    pub kind: String,
}

impl ProviderMessage {
    /// The message in the body of an error.
    pub(super) fn from_body(body: &[u8]) -> Self {
        let Ok(value) = serde_json::from_slice::<Value>(body) else {
            let text = String::from_utf8_lossy(body).trim().to_owned();
            let is_page = text.starts_with('<');
            return Self { text: if text.is_empty() || is_page { "no message".to_owned() } else { text }, kind: String::new() };
        };
        // Some gateways wrap the object in a list.
        let value = value.as_array().and_then(|list| list.first()).unwrap_or(&value);
        Self::from_error(error_in(value))
    }

    /// The message of an error, which is an object or the text itself.
    pub(super) fn from_error(error: &Value) -> Self {
        if let Some(text) = error.as_str() {
            return Self { text: text.to_owned(), kind: String::new() };
        }
        let message = ["message", "detail", "error", "msg"].iter().map(|name| &error[*name]).find(|value| !value.is_null());
        let mut text = message
            .map_or_else(|| error.to_string(), |message| message.as_str().map_or_else(|| message.to_string(), str::to_owned));
        // A router adds the message of the provider behind it here.
        if let Some(raw) = error["metadata"]["raw"].as_str() {
            text = format!("{text}: {raw}");
        }
        let kind = ["type", "code", "status"].iter().filter_map(|name| error[*name].as_str()).collect::<Vec<_>>().join(" ");
        Self { text, kind }
    }
}

/// Whether an error means that the prompt is too long.
pub(super) fn is_too_long(status: u16, words: &str) -> bool {
    let words = words.to_lowercase();
    let signs =
        ["context_length_exceeded", "context length", "context window", "context size", "prompt is too long", "too many tokens"];
    status == 413 || (matches!(status, 400 | 422) && signs.iter().any(|sign| words.contains(sign)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn says(body: &str, expected: &str) {
        assert_eq!(ProviderMessage::from_body(body.as_bytes()).text, expected);
    }

    #[test]
    fn words_are_found_wherever_a_provider_puts_them() {
        says(r#"{"error":{"message":"no such model","type":"invalid_request_error"}}"#, "no such model");
        says(r#"{"type":"error","error":{"type":"not_found_error","message":"model: x"}}"#, "model: x");
        says(r#"{"error":"model 'x' not found"}"#, "model 'x' not found");
        says(r#"{"object":"error","message":"too long","code":400}"#, "too long");
        says(r#"{"detail":"Not Found"}"#, "Not Found");
        says(r#"{"detail":[{"msg":"field required"}]}"#, r#"[{"msg":"field required"}]"#);
        says(r#"[{"error":{"code":400,"message":"bad"}}]"#, "bad");
        says(
            r#"{"error":{"message":"Provider returned error","code":502,"metadata":{"raw":"cuda"}}}"#,
            "Provider returned error: cuda",
        );
        says("upstream is down\n", "upstream is down");
        says("<html><body>502</body></html>", "no message");
        says("", "no message");
    }

    #[track_caller]
    fn passes(error: &Value, expected: bool) {
        assert_eq!(matches!(RequestError::from_stream_error(error), RequestError::Transient { .. }), expected, "{error}");
    }

    #[test]
    fn an_error_in_a_stream_passes_unless_it_is_about_the_request() {
        passes(&json!({ "type": "overloaded_error", "message": "Overloaded" }), true);
        passes(&json!({ "type": "api_error", "message": "Internal" }), true);
        passes(&json!({ "type": "rate_limit_error", "message": "slow down" }), true);
        passes(&json!({ "type": "server_error", "message": "oops" }), true);
        passes(&json!({ "code": 502, "message": "provider" }), true);
        passes(&json!({ "code": "429", "message": "provider" }), true);
        passes(&json!("something"), true);
        passes(&json!({ "type": "invalid_request_error", "message": "no" }), false);
        passes(&json!({ "type": "authentication_error", "message": "no" }), false);
        passes(&json!({ "type": "insufficient_quota", "code": "insufficient_quota", "message": "no" }), false);
        passes(&json!({ "code": 400, "message": "no" }), false);
    }

    #[test]
    fn a_status_passes_or_not() {
        for (status, expected) in [
            (400, false),
            (401, false),
            (402, false),
            (403, false),
            (404, false),
            (408, true),
            (409, true),
            (413, false),
            (422, false),
            (429, true),
            (500, true),
            (502, true),
            (503, true),
            (529, true),
            (302, false),
        ] {
            let error = RequestError::from_status(status, ProviderMessage::default(), None);
            assert_eq!(matches!(error, RequestError::Transient { .. }), expected, "{status}");
        }
    }

    #[test]
    fn a_prompt_that_does_not_fit_is_known_by_status_or_words() {
        assert!(is_too_long(413, "request entity too large"));
        assert!(is_too_long(400, "This model's maximum context length is 128000 tokens."));
        assert!(is_too_long(400, "prompt is too long: 210000 tokens > 200000 maximum"));
        assert!(is_too_long(400, "the request exceeds the available context size"));
        assert!(!is_too_long(400, "unknown field"));
        assert!(!is_too_long(401, "context length"));
    }
}
