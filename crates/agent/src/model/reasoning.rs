//! The reasoning of an answer in the form in which its provider wants it back: signed, encrypted, or not shown to us.
//! It is not interpreted, only kept in its place and returned.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::ModelCall;

/// The reasoning of one answer.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct KeptReasoning {
    /// Protocol, host and model. Another model could not read it, and would refuse it.
    pub origin: String,
    /// An upper bound of its tokens in a prompt.
    pub tokens: u64,
    /// The parts, in order.
    pub items: Vec<ReasoningItem>,
}

/// A part of the reasoning, with its place in the answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReasoningItem {
    /// Bytes of the text before it.
    pub text_before: usize,
    /// Number of calls before it.
    pub calls_before: usize,
    /// The provider's JSON, unchanged.
    pub data: Value,
}

impl KeptReasoning {
    pub(super) fn new(items: Vec<ReasoningItem>) -> Option<Self> {
        (!items.is_empty()).then(|| Self { items, ..Self::default() })
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum AnswerPart<'a> {
    Reasoning(&'a Value),
    Text(&'a str),
    Call(&'a ModelCall),
}

/// The parts of an answer in their original order. Blank text is left out, because providers refuse it.
pub(super) fn in_order<'a>(text: &'a str, calls: &'a [ModelCall], items: &'a [ReasoningItem]) -> Vec<AnswerPart<'a>> {
    let mut parts = Vec::new();
    let (mut text_done, mut calls_done) = (0, 0);
    for item in items {
        let text_end = if item.calls_before > 0 { text.len() } else { text.floor_char_boundary(item.text_before) };
        parts.extend(text.get(text_done..text_end).map(AnswerPart::Text));
        text_done = text_end.max(text_done);
        let calls_end = item.calls_before.clamp(calls_done, calls.len());
        parts.extend(calls[calls_done..calls_end].iter().map(AnswerPart::Call));
        calls_done = calls_end;
        parts.push(AnswerPart::Reasoning(&item.data));
    }
    parts.push(AnswerPart::Text(&text[text_done..]));
    parts.extend(calls[calls_done..].iter().map(AnswerPart::Call));
    parts.retain(|part| !matches!(part, AnswerPart::Text(text) if text.trim().is_empty()));
    parts
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(text: &str, calls: &[&str], items: &[(usize, usize)], expected: &str) {
        let call = |name: &&str| ModelCall { id: (*name).into(), name: (*name).into(), arguments: "{}".into() };
        let calls: Vec<ModelCall> = calls.iter().map(call).collect();
        let item = |(at, (text_before, calls_before)): (usize, &(usize, usize))| ReasoningItem {
            text_before: *text_before,
            calls_before: *calls_before,
            data: json!(at),
        };
        let items: Vec<ReasoningItem> = items.iter().enumerate().map(item).collect();
        let parts = in_order(text, &calls, &items).into_iter().map(|part| match part {
            AnswerPart::Reasoning(data) => format!("<{data}>"),
            AnswerPart::Text(text) => text.to_owned(),
            AnswerPart::Call(call) => format!("[{}]", call.name),
        });
        assert_eq!(parts.collect::<Vec<_>>().join(" "), expected);
    }

    #[test]
    fn reasoning_stands_where_it_stood() {
        check("text", &["a", "b"], &[], "text [a] [b]");
        check("text", &["a", "b"], &[(0, 0)], "<0> text [a] [b]");
        check("onetwo", &["a", "b"], &[(0, 0), (3, 0), (6, 0), (6, 1)], "<0> one <1> two <2> [a] <3> [b]");
        check("", &["a"], &[(0, 0), (0, 1)], "<0> [a] <1>");
        check("  ", &["a"], &[(0, 0)], "<0> [a]");
    }

    #[test]
    fn a_place_that_does_not_exist_is_the_next_one_that_does() {
        check("é", &["a"], &[(1, 0), (99, 0), (0, 99), (0, 0)], "<0> é <1> [a] <2> <3>");
        check("text", &[], &[(4, 7)], "text <0>");
    }
}
