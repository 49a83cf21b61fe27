//! The options of a request, and how to adapt them after a refusal: servers differ in the fields that they know and in
//! the longest answer that they accept.

use super::{
    generation::{GenerationSettings, ThinkingStyle},
    reasoning::{KeptReasoning, ReasoningItem},
};

/// The options of a request besides the prompt.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct RequestOptions {
    pub model: String,
    /// The limit of an answer in tokens; `None` if the server does not accept one. Surehand stops reading there in any
    /// case.
    pub max_output_tokens: Option<u32>,
    /// Whether chat completions name this limit as OpenAI does today. Most other servers know only the old name.
    pub has_new_limit_name: bool,
    /// Whether to request usage, which some servers reject.
    pub wants_usage: bool,
    pub generation: GenerationSettings,
    pub thinking: ThinkingStyle,
    /// The origin (protocol, host and model) that reasoning must have to be sent back to this model.
    pub origin: String,
    /// Whether signed and encrypted reasoning is sent back.
    pub keeps_reasoning: bool,
    /// Whether plain reasoning is sent back. `None` until a server asks for it: most ignore it or do not want it.
    pub returns_thoughts: Option<bool>,
    /// Whether calls without a signature get a placeholder that Gemini accepts.
    pub fills_signatures: bool,
}

/// The field for the longest answer: the old and the new name in chat completions, and the one of responses.
const LIMIT_FIELDS: [&str; 3] = ["max_tokens", "max_completion_tokens", "max_output_tokens"];

/// A number below this is not the limit of a server.
const LEAST_LIMIT: u32 = 1024;

impl RequestOptions {
    /// The options that any server should accept.
    pub(super) fn new(model: &str, max_output_tokens: u32) -> Self {
        let max_output_tokens = Some(max_output_tokens);
        Self {
            model: model.to_owned(),
            max_output_tokens,
            has_new_limit_name: false,
            wants_usage: true,
            generation: GenerationSettings::default(),
            thinking: ThinkingStyle::default(),
            origin: String::new(),
            keeps_reasoning: true,
            returns_thoughts: None,
            fills_signatures: false,
        }
    }

    /// The name of the limit in chat completions.
    pub(super) fn chat_limit_field(&self) -> &'static str {
        if self.has_new_limit_name { LIMIT_FIELDS[1] } else { LIMIT_FIELDS[0] }
    }

    /// Leaves out or lowers what a refusal with these words is about. Returns `false` if it is about something else.
    pub(super) fn adapt(&mut self, words: &str) -> bool {
        if self.wants_usage && words.contains("stream_options") {
            self.wants_usage = false;
            return true;
        }
        self.adapt_reasoning(&words.to_lowercase()) || self.adapt_thinking(words) || self.adapt_limit(words)
    }

    /// The reasoning of an earlier answer that is sent back. Reasoning of another model is not.
    pub(super) fn returned<'a>(&self, reasoning: Option<&'a KeptReasoning>) -> &'a [ReasoningItem] {
        reasoning.filter(|kept| self.keeps_reasoning && kept.origin == self.origin).map_or(&[], |kept| &kept.items)
    }

    fn adapt_reasoning(&mut self, words: &str) -> bool {
        // "Missing `reasoning_content` field in the assistant message", or a server that does not know the field.
        if words.contains("reasoning_content") && self.returns_thoughts != Some(false) {
            self.returns_thoughts = Some(self.returns_thoughts.is_none());
            return true;
        }
        // "Function call is missing a thought_signature": another model has made the call.
        if words.contains("thought_signature") && !self.fills_signatures {
            self.fills_signatures = true;
            return true;
        }
        // "Invalid `signature` in `thinking` block", "The encrypted content could not be verified", "Encrypted content
        // is not supported with this model", "Item 'rs_1' of type 'reasoning' was provided without its required
        // following item".
        let signs = ["signature", "encrypted content", "encrypted_content", "reasoning_details", "`thinking`", "'reasoning'"];
        let is_about_reasoning = signs.iter().any(|sign| words.contains(sign));
        is_about_reasoning && std::mem::replace(&mut self.keeps_reasoning, false)
    }

    /// "adaptive thinking is not supported on this model", "This model does not support the effort parameter."
    fn adapt_thinking(&mut self, words: &str) -> bool {
        // Chat completions have a different field of that name.
        let is_about_effort = !words.contains("reasoning_effort")
            && ["adaptive", "effort", "output_config"].iter().any(|sign| words.contains(sign));
        let adapts = is_about_effort && self.generation.effort.is_some() && self.thinking == ThinkingStyle::Effort;
        if adapts {
            self.thinking = ThinkingStyle::Tokens;
        }
        adapts
    }

    fn adapt_limit(&mut self, words: &str) -> bool {
        let Some(limit) = self.max_output_tokens.filter(|_| LIMIT_FIELDS.iter().any(|field| words.contains(field))) else {
            return false;
        };
        // Smaller numbers are about something else, such as a status.
        let accepted = numbers(words).filter(|number| (LEAST_LIMIT..limit).contains(number)).max();
        let other = LIMIT_FIELDS[usize::from(!self.has_new_limit_name)];
        match accepted {
            Some(accepted) => self.max_output_tokens = Some(accepted),
            // "'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
            None if words.contains(other) && !self.has_new_limit_name => self.has_new_limit_name = true,
            None => self.max_output_tokens = None,
        }
        true
    }
}

/// The whole numbers in a text that fit into a `u32`.
fn numbers(text: &str) -> impl Iterator<Item = u32> + '_ {
    // A number that is part of a name, as in `gpt-4o` or `claude-3-5`, is not a count.
    let words = text.split(|char: char| !char.is_alphanumeric() && !matches!(char, '-' | '_' | '.' | '/' | ','));
    words.filter_map(|word| word.trim_end_matches(['.', ',']).replace(',', "").parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options() -> RequestOptions {
        RequestOptions::new("m", 16_384)
    }

    #[track_caller]
    fn adapts(words: &str, expected: RequestOptions) {
        let mut adapted = options();
        assert!(adapted.adapt(words), "{words}");
        assert_eq!(adapted, expected, "{words}");
    }

    #[test]
    fn a_limit_that_is_too_high_is_lowered_to_the_highest_that_is_named() {
        let lowered = |tokens| RequestOptions { max_output_tokens: Some(tokens), ..options() };
        adapts(
            "max_tokens: 16384 > 8192, which is the maximum allowed number of output tokens for claude-3-5-haiku-20241022",
            lowered(8192),
        );
        adapts("max_tokens is too large: 16384. This model supports at most 4096 completion tokens.", lowered(4096));
        adapts("Error code: 400 - max_tokens must be at most 8,192.", lowered(8192));
        adapts(
            "'max_tokens' or 'max_completion_tokens' is too large: 16384. This model's maximum context length is 8192 tokens and \
             your request has 3000 input tokens (16384 > 8192 - 3000).",
            lowered(8192),
        );
    }

    #[test]
    fn a_field_that_a_server_does_not_know_is_renamed_or_left_out() {
        let renamed = RequestOptions { has_new_limit_name: true, ..options() };
        adapts(
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
            renamed,
        );
        adapts("Extra inputs are not permitted: max_tokens", RequestOptions { max_output_tokens: None, ..options() });
        adapts("Extra inputs are not permitted: stream_options", RequestOptions { wants_usage: false, ..options() });
    }

    #[test]
    fn reasoning_is_sent_back_unless_a_server_does_not_want_it() {
        let thoughts = |asked| RequestOptions { returns_thoughts: asked, ..options() };
        let missing = "Missing `reasoning_content` field in the assistant message at message index 2";
        adapts(missing, thoughts(Some(true)));
        let mut adapted = thoughts(Some(true));
        assert!(adapted.adapt(missing) && adapted == thoughts(Some(false)) && !adapted.adapt(missing));
        let dropped = RequestOptions { keeps_reasoning: false, ..options() };
        for words in [
            "messages.1.content.0: Invalid `signature` in `thinking` block",
            "Encrypted content is not supported with this model.",
            "The encrypted content gAAA could not be verified.",
            "Item 'rs_1' of type 'reasoning' was provided without its required following item.",
        ] {
            adapts(words, dropped.clone());
        }
        adapts("Function call is missing a thought_signature", RequestOptions { fills_signatures: true, ..options() });
    }

    #[test]
    fn a_refusal_for_another_reason_changes_nothing() {
        for words in ["bad schema", "maximum context length is 8192 tokens", ""] {
            let mut adapted = options();
            assert!(!adapted.adapt(words), "{words}");
            assert_eq!(adapted, options());
        }
    }

    #[test]
    fn adapting_comes_to_an_end() {
        let mut adapted = options();
        let words = "max_tokens is too large (16384 > 8192 - 3000 - 400), max_completion_tokens, stream_options";
        let times = (0..100).take_while(|_| adapted.adapt(words)).count();
        assert_eq!((times, adapted.max_output_tokens), (5, None));
    }
}
