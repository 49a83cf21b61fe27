//! Calls that arrive in pieces. All protocols end them alike: with a name, a unique id, and arguments.

use super::{ModelCall, StreamEvent, StreamListener, request_error::RequestError};

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct PartialCall {
    pub id: String,
    pub name: String,
    pub arguments: String,
    is_announced: bool,
}

impl PartialCall {
    pub(super) fn new(id: String, name: String) -> Self {
        Self { id, name, ..Self::default() }
    }

    /// Reports once that the call has begun, when its name is complete.
    pub(super) fn announce(&mut self, hear: StreamListener<'_>) {
        if !self.name.is_empty() && !std::mem::replace(&mut self.is_announced, true) {
            hear(StreamEvent::Calling(&self.name));
        }
    }
}

/// The calls of a complete answer. `is_cut` says that the last one may be incomplete.
pub(super) fn finish_calls(mut partials: Vec<PartialCall>, is_cut: bool) -> Result<Vec<ModelCall>, RequestError> {
    // An answer can be cut off in the middle of a name.
    partials.pop_if(|last| is_cut && last.name.is_empty());
    let mut calls: Vec<ModelCall> = Vec::new();
    for PartialCall { mut id, name, arguments, .. } in partials {
        if name.is_empty() {
            return Err(RequestError::malformed("a call has no name"));
        }
        if id.is_empty() || calls.iter().any(|call| call.id == id) {
            id = random_call_id()?;
        }
        let arguments = if arguments.trim().is_empty() { "{}".to_owned() } else { arguments };
        calls.push(ModelCall { id, name, arguments });
    }
    if let Some(last) = calls.last_mut().filter(|_| is_cut) {
        last.doubt_arguments();
    }
    Ok(calls)
}

/// A random id for a call without one. It must be unique in the conversation, which is not known here.
fn random_call_id() -> Result<String, RequestError> {
    let mut random = [0; 8];
    rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty())
        .map_err(|error| RequestError::malformed(format!("a call has no id, and there is no randomness for one: {error}")))?;
    Ok(format!("call_{:016x}", u64::from_ne_bytes(random)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn partial(id: &str, name: &str, arguments: &str) -> PartialCall {
        PartialCall { arguments: arguments.to_owned(), ..PartialCall::new(id.to_owned(), name.to_owned()) }
    }

    #[track_caller]
    fn check(partials: &[PartialCall], is_cut: bool, expected: &[(&str, &str)]) {
        let calls = finish_calls(partials.to_vec(), is_cut).unwrap();
        let found: Vec<_> = calls.iter().map(|call| (call.name.as_str(), call.arguments.as_str())).collect();
        assert_eq!(found, expected);
        for (at, call) in calls.iter().enumerate() {
            assert!(!call.id.is_empty() && calls[..at].iter().all(|other| other.id != call.id), "{calls:?}");
        }
    }

    #[test]
    fn ids_are_made_unique_and_no_arguments_are_an_empty_object() {
        check(
            &[partial("a", "read", ""), partial("a", "list", " \n"), partial("", "x", "{")],
            false,
            &[("read", "{}"), ("list", "{}"), ("x", "{")],
        );
    }

    #[test]
    fn the_last_call_of_a_cut_answer_may_have_lost_its_name_or_its_arguments() {
        check(&[partial("a", "read", ""), partial("b", "", "")], true, &[("read", "")]);
        check(&[partial("a", "read", ""), partial("b", "list", "{\"x\"")], true, &[("read", "{}"), ("list", "{\"x\"")]);
        check(&[], true, &[]);
    }

    #[test]
    fn a_whole_call_has_a_name() {
        let error = finish_calls(vec![partial("a", "", "{}"), partial("b", "read", "{}")], true).unwrap_err();
        assert_eq!(error, RequestError::malformed("a call has no name"));
    }
}
