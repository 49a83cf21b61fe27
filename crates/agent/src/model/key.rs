//! The key to a provider: where it comes from, and that nobody sees it.

use std::fmt;

use super::connect::Protocol;

/// A secret of the user. It is shown nowhere: what is told to anybody goes through [`Key::hide`] first.
#[derive(Clone, PartialEq, Eq)]
pub struct Key(String);

/// What is shorter is nobody's secret, and hiding it would blot out harmless words.
const SHORTEST_SECRET: usize = 4;

impl Key {
    /// A key as the user wrote it; nothing, if that is blank.
    pub fn new(text: &str) -> Option<Self> {
        let text = text.trim();
        (!text.is_empty()).then(|| Self(text.to_owned()))
    }

    /// The secret itself, for the header that carries it.
    pub(super) fn reveal(&self) -> &str {
        &self.0
    }

    /// The text without the key, for words of a provider that echo it.
    pub fn hide(&self, text: &str) -> String {
        if self.0.len() < SHORTEST_SECRET { text.to_owned() } else { text.replace(&self.0, "…") }
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Key(…)")
    }
}

/// A key that was found, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The key.
    pub key: Key,
    /// The environment variable that holds it.
    pub variable: &'static str,
}

/// The variable that holds a key for whatever model is asked. It is named for us, so whoever sets it means us.
pub const OUR_VARIABLE: &str = "SUREHAND_API_KEY";

/// The variable in which a provider's users keep their key.
pub fn variable_of(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::OpenAi => "OPENAI_API_KEY",
        Protocol::Anthropic => "ANTHROPIC_API_KEY",
    }
}

/// The first of these variables that holds a key.
pub fn find(variables: &[&'static str], env: &dyn Fn(&str) -> Option<String>) -> Option<Found> {
    variables.iter().find_map(|&variable| Some(Found { key: Key::new(&env(variable)?)?, variable }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(set: &[(&str, &str)], protocol: Protocol, expected: Option<(&str, &'static str)>) {
        let env = |name: &str| set.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
        let found = find(&[OUR_VARIABLE, variable_of(protocol)], &env);
        assert_eq!(found.as_ref().map(|found| (found.key.reveal(), found.variable)), expected);
    }

    #[test]
    fn each_provider_has_its_variable_and_ours_comes_first() {
        check(&[], Protocol::OpenAi, None);
        check(&[("OPENAI_API_KEY", "abc")], Protocol::OpenAi, Some(("abc", "OPENAI_API_KEY")));
        check(&[("OPENAI_API_KEY", "abc")], Protocol::Anthropic, None);
        check(&[("ANTHROPIC_API_KEY", "abc")], Protocol::Anthropic, Some(("abc", "ANTHROPIC_API_KEY")));
        let both = [("OPENAI_API_KEY", "abc"), ("SUREHAND_API_KEY", "ours")];
        check(&both, Protocol::OpenAi, Some(("ours", "SUREHAND_API_KEY")));
    }

    #[test]
    fn blank_is_no_key() {
        check(&[("SUREHAND_API_KEY", " "), ("OPENAI_API_KEY", " abc\n")], Protocol::OpenAi, Some(("abc", "OPENAI_API_KEY")));
    }

    #[test]
    fn a_key_is_never_shown() {
        let key = Key::new("sk-secret").unwrap();
        assert_eq!(format!("{key:?} {:?}", Some(&key)), "Key(…) Some(Key(…))");
        assert_eq!(key.hide("wrong key sk-secret, sk-secret"), "wrong key …, …");
    }
}
