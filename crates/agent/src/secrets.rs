//! Redaction of the user's secrets, in whole values and in streamed text. Only the literal text of a secret is found,
//! not an encoding of it.

use std::{borrow::Cow, ffi::OsStr, fmt, os::unix::ffi::OsStrExt};

use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use crate::model::ApiKey;

/// Texts that must not reach the model, the transcript, the terminal or a command.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secrets(Vec<String>);

const REDACTED: &str = "…";

/// Shorter texts may be ordinary words, which must not be redacted everywhere.
const SHORTEST: usize = 8;

/// Values that the manuals of local servers suggest for clients that insist on a key.
const PLACEHOLDERS: [&str; 6] =
    ["lm-studio", "no-key-required", "not-needed", "not-required", "placeholder", "sk-no-key-required"];

impl Secrets {
    /// Adds a secret, unless it is too short or a known placeholder.
    pub fn add(&mut self, text: &str) {
        let text = text.trim();
        if text.len() < SHORTEST || PLACEHOLDERS.contains(&text) || self.0.iter().any(|known| known == text) {
            return;
        }
        self.0.push(text.to_owned());
        // If two secrets have the same beginning, the longer one must be found first.
        self.0.sort_by_key(|known| std::cmp::Reverse(known.len()));
    }

    /// Adds the key of a model.
    pub fn add_key(&mut self, key: &ApiKey) {
        self.add(key.reveal());
    }

    /// Whether a value, for example of an environment variable, contains a secret.
    pub fn are_in(&self, value: &OsStr) -> bool {
        let value = value.as_bytes();
        self.0.iter().any(|secret| value.windows(secret.len()).any(|window| window == secret.as_bytes()))
    }

    /// The text with all secrets redacted.
    pub fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
        if self.first_in(text).is_none() {
            return Cow::Borrowed(text);
        }
        let mut redactor = self.redactor();
        let shown = redactor.push(text).into_owned();
        Cow::Owned(shown + &redactor.finish())
    }

    /// The value with all secrets redacted in every string, including keys of maps.
    pub fn redact_in<T: Serialize + DeserializeOwned>(&self, value: T) -> T {
        if self.0.is_empty() {
            return value;
        }
        let Ok(mut json) = serde_json::to_value(&value) else { return value };
        if !self.redact_json(&mut json) {
            return value;
        }
        // This fails only if a keyword of our own format was redacted, and such a word is not a secret.
        serde_json::from_value(json).unwrap_or(value)
    }

    /// Returns whether anything was redacted.
    fn redact_json(&self, json: &mut Value) -> bool {
        match json {
            Value::Null | Value::Bool(_) | Value::Number(_) => false,
            Value::String(text) => match self.redact(text) {
                Cow::Borrowed(_) => false,
                Cow::Owned(hidden) => {
                    *text = hidden;
                    true
                }
            },
            Value::Array(items) => items.iter_mut().fold(false, |found, item| self.redact_json(item) | found),
            Value::Object(fields) => {
                let mut found = fields.values_mut().fold(false, |found, field| self.redact_json(field) | found);
                if fields.keys().any(|name| self.first_in(name).is_some()) {
                    let renamed =
                        std::mem::take(fields).into_iter().map(|(name, field)| (self.redact(&name).into_owned(), field));
                    *fields = renamed.collect();
                    found = true;
                }
                found
            }
        }
    }

    /// A redactor for streamed text.
    pub fn redactor(&self) -> Redactor {
        Redactor { secrets: self.clone(), held: String::new() }
    }

    /// Start and end of the first secret in a text.
    fn first_in(&self, text: &str) -> Option<(usize, usize)> {
        let found = self.0.iter().filter_map(|secret| text.find(secret.as_str()).map(|start| (start, start + secret.len())));
        // Of secrets at the same place `min_by_key` takes the first in the list, which is the longest.
        found.min_by_key(|(start, _)| *start)
    }

    /// Where an incomplete secret may begin at the end of the text.
    fn first_unfinished_in(&self, text: &str) -> Option<usize> {
        let longest = self.0.first()?.len();
        let from = text.ceil_char_boundary(text.len().saturating_sub(longest - 1));
        let may_begin = |rest: &str| self.0.iter().any(|secret| secret.len() > rest.len() && secret.starts_with(rest));
        text[from..].char_indices().map(|(at, _)| from + at).find(|at| may_begin(&text[*at..]))
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Secrets({})", self.0.len())
    }
}

/// Redacts streamed text. A possible beginning of a secret is held back until the next piece decides.
#[derive(Debug, Clone, Default)]
pub struct Redactor {
    secrets: Secrets,
    held: String,
}

impl Redactor {
    /// Takes the next piece and returns the text that is decided by now.
    pub fn push<'a>(&mut self, piece: &'a str) -> Cow<'a, str> {
        if self.secrets.0.is_empty() {
            return Cow::Borrowed(piece);
        }
        let text = std::mem::take(&mut self.held) + piece;
        let (mut shown, mut rest) = (String::with_capacity(text.len()), text.as_str());
        loop {
            match (self.secrets.first_in(rest), self.secrets.first_unfinished_in(rest)) {
                (Some((start, end)), unfinished) if unfinished.is_none_or(|at| start < at) => {
                    shown.push_str(&rest[..start]);
                    shown.push_str(REDACTED);
                    rest = &rest[end..];
                }
                (_, Some(at)) => {
                    shown.push_str(&rest[..at]);
                    rest[at..].clone_into(&mut self.held);
                    return Cow::Owned(shown);
                }
                (_, None) => return Cow::Owned(shown + rest),
            }
        }
    }

    /// Returns the held-back text, at the end of the text.
    pub fn finish(&mut self) -> String {
        let mut rest = std::mem::take(&mut self.held);
        while let Some((start, end)) = self.secrets.first_in(&rest) {
            rest.replace_range(start..end, REDACTED);
        }
        rest
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn secrets(texts: &[&str]) -> Secrets {
        let mut secrets = Secrets::default();
        texts.iter().for_each(|text| secrets.add(text));
        secrets
    }

    #[track_caller]
    fn check(texts: &[&str], text: &str, expected: &str) {
        let secrets = secrets(texts);
        assert_eq!(secrets.redact(text), expected);
        let mut redactor = secrets.redactor();
        let pieces: String = text.chars().map(|c| redactor.push(&c.to_string()).into_owned()).collect();
        assert_eq!(pieces + &redactor.finish(), expected, "character by character");
    }

    #[test]
    fn a_secret_is_redacted_wherever_it_is() {
        check(&["sk-12345"], "", "");
        check(&["sk-12345"], "sk-12345", "…");
        check(&["sk-12345"], "a sk-12345 b sk-12345sk-12345", "a … b ……");
        check(&["sk-12345"], "sk-1234 sk-sk-12345 sk-", "sk-1234 sk-… sk-");
        check(&["abcabcabc"], "abcabcabcabc abcabc", "…abc abcabc");
        check(&["schlüssel"], "der schlüssel, schlü", "der …, schlü");
    }

    #[test]
    fn of_several_secrets_the_longest_is_redacted() {
        check(&["sk-12345", "sk-1234567"], "sk-12345 sk-1234567 sk-123456", "… … …6");
        check(&["12345678", "a1234567"], "a12345678", "…8");
    }

    #[test]
    fn a_word_is_no_secret() {
        assert_eq!(secrets(&["", "EMPTY", "ollama ", "lm-studio", "sk-1234"]), Secrets::default());
        assert_eq!(secrets(&["sk-12345", " sk-12345\n"]).0, ["sk-12345"]);
    }

    #[test]
    fn secrets_are_not_printed() {
        assert_eq!(format!("{:?}", secrets(&["sk-12345"])), "Secrets(1)");
    }

    #[test]
    fn every_string_of_a_value_is_searched() {
        let value = json!({ "a": ["sk-12345", 1, null], "b": { "x sk-12345": "y" }, "c": "sk-12345\"" });
        let hidden = json!({ "a": ["…", 1, null], "b": { "x …": "y" }, "c": "…\"" });
        assert_eq!(secrets(&["sk-12345"]).redact_in(value.clone()), hidden);
        assert_eq!(secrets(&["sk-\\12345\""]).redact_in(json!(["a sk-\\12345\""])), json!(["a …"]));
        assert_eq!(Secrets::default().redact_in(value.clone()), value);
    }

    #[test]
    fn a_value_of_the_environment_need_not_be_text() {
        let secrets = secrets(&["sk-12345"]);
        assert!(secrets.are_in(OsStr::from_bytes(b"Bearer sk-12345\xff")));
        assert!(!secrets.are_in(OsStr::from_bytes(b"sk-1234\xff")) && !secrets.are_in(OsStr::new("")));
    }

    proptest! {
        #[test]
        fn how_it_comes_in_pieces_makes_no_difference(text in "[ab ]{0,60}", size in 1usize..9) {
            let secrets = secrets(&["abababab", "aabbaabba", "bbbbbbbb"]);
            let whole = secrets.redact(&text).into_owned();
            prop_assert!(!secrets.are_in(OsStr::new(&whole)));
            let mut redactor = secrets.redactor();
            let pieces = text.as_bytes().chunks(size).map(|piece| std::str::from_utf8(piece).unwrap());
            let pieces: String = pieces.map(|piece| redactor.push(piece)).collect();
            prop_assert_eq!(pieces + &redactor.finish(), whole);
        }
    }
}
