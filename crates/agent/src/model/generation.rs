//! Settings of an answer: sampling and effort, each with its field in the protocols. A setting without a value is not
//! sent, because many models refuse parameters that they do not know.

use serde_json::{Value, json};

/// Sampling and effort of an answer. `None` leaves a setting to the provider.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct GenerationSettings {
    /// Sampling temperature; a higher one makes answers more random.
    pub temperature: Option<f64>,
    /// Nucleus sampling: the model chooses among the most likely tokens with this total probability.
    pub top_p: Option<f64>,
    /// How much reasoning the model may use.
    pub effort: Option<ReasoningEffort>,
}

/// How much reasoning a model may use. Not every model supports every effort.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReasoningEffort {
    /// No reasoning.
    None,
    /// Less than `Low`, where a model supports it.
    Minimal,
    /// Little reasoning, for simple work.
    Low,
    /// The default of most models.
    Medium,
    /// Much reasoning, for hard work.
    High,
    /// More than `High`, where a model supports it.
    XHigh,
    /// The most reasoning, where a model supports it.
    Max,
}

impl ReasoningEffort {
    /// All efforts, each with its word in settings and requests.
    pub const WORDS: [(&str, Self); 7] = [
        ("none", Self::None),
        ("minimal", Self::Minimal),
        ("low", Self::Low),
        ("medium", Self::Medium),
        ("high", Self::High),
        ("xhigh", Self::XHigh),
        ("max", Self::Max),
    ];

    /// The effort with this word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::WORDS.iter().find(|(known, _)| *known == word).map(|(_, effort)| *effort)
    }

    /// The word of this effort; see [`Self::WORDS`].
    pub fn word(self) -> &'static str {
        Self::WORDS.iter().find(|(_, effort)| *effort == self).map_or("", |(word, _)| *word)
    }
}

/// How a request of the Anthropic protocol asks for thinking.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum ThinkingStyle {
    /// With an effort: the models since 2026.
    #[default]
    Effort,
    /// With a budget of tokens: the earlier models.
    Tokens,
}

impl GenerationSettings {
    /// Adds the fields that chat completions and responses have under the same names.
    pub(super) fn add_sampling(&self, body: &mut Value) {
        for (name, value) in [("temperature", self.temperature), ("top_p", self.top_p)] {
            if let Some(value) = value {
                body[name] = json!(value);
            }
        }
    }

    /// Adds the effort to an Anthropic request. `max_tokens` limits the whole answer, thinking included.
    pub(super) fn add_thinking(&self, body: &mut Value, style: ThinkingStyle, max_tokens: u32) {
        /// The protocol accepts no less.
        const LEAST_THINKING: u32 = 1024;
        let Some(effort) = self.effort.filter(|effort| *effort != ReasoningEffort::None) else { return };
        match style {
            ThinkingStyle::Effort => {
                let word = if effort == ReasoningEffort::Minimal { ReasoningEffort::Low.word() } else { effort.word() };
                body["thinking"] = json!({ "type": "adaptive" });
                body["output_config"] = json!({ "effort": word });
            }
            ThinkingStyle::Tokens => {
                let eighths = match effort {
                    ReasoningEffort::None => 0,
                    ReasoningEffort::Minimal | ReasoningEffort::Low => 1,
                    ReasoningEffort::Medium => 2,
                    ReasoningEffort::High => 4,
                    ReasoningEffort::XHigh | ReasoningEffort::Max => 6,
                };
                let tokens = (max_tokens / 8 * eighths).max(LEAST_THINKING);
                // If there is no room for both, text and calls take precedence over thinking.
                if tokens < max_tokens {
                    body["thinking"] = json!({ "type": "enabled", "budget_tokens": tokens });
                }
            }
        }
    }

    /// The settings that the message of a refusal names.
    pub(super) fn named_in(&self, words: &str) -> Vec<&'static str> {
        let words = words.to_lowercase();
        let settings = [
            ("model.temperature", self.temperature.is_some(), &["temperature"][..]),
            ("model.top_p", self.top_p.is_some(), &["top_p"]),
            ("model.effort", self.effort.is_some(), &["effort", "reasoning", "thinking"]),
        ];
        let is_named = |(_, is_set, signs): &(_, bool, &[&str])| *is_set && signs.iter().any(|sign| words.contains(sign));
        settings.into_iter().filter(is_named).map(|(name, ..)| name).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_effort_is_its_word() {
        for (word, effort) in ReasoningEffort::WORDS {
            assert_eq!((ReasoningEffort::parse(word), effort.word()), (Some(effort), word));
        }
        assert_eq!(ReasoningEffort::parse("hard"), None);
    }

    #[track_caller]
    fn thinks(effort: ReasoningEffort, style: ThinkingStyle, max_tokens: u32, expected: Value) {
        let mut body = json!({});
        GenerationSettings { effort: Some(effort), ..GenerationSettings::default() }.add_thinking(&mut body, style, max_tokens);
        assert_eq!(body, expected);
    }

    #[test]
    fn thinking_is_limited_by_an_effort_or_by_a_share_of_the_answer() {
        use ReasoningEffort::{High, Low, Max, Minimal, None, XHigh};
        let by_effort = |word: &str| json!({ "thinking": { "type": "adaptive" }, "output_config": { "effort": word } });
        thinks(None, ThinkingStyle::Effort, 16_384, json!({}));
        thinks(Minimal, ThinkingStyle::Effort, 16_384, by_effort("low"));
        thinks(XHigh, ThinkingStyle::Effort, 16_384, by_effort("xhigh"));
        let by_tokens = |tokens: u32| json!({ "thinking": { "type": "enabled", "budget_tokens": tokens } });
        thinks(None, ThinkingStyle::Tokens, 16_384, json!({}));
        thinks(Low, ThinkingStyle::Tokens, 16_384, by_tokens(2048));
        thinks(High, ThinkingStyle::Tokens, 16_384, by_tokens(8192));
        thinks(Max, ThinkingStyle::Tokens, 16_384, by_tokens(12_288));
        thinks(Low, ThinkingStyle::Tokens, 2000, by_tokens(1024));
        thinks(High, ThinkingStyle::Tokens, 1024, json!({}));
        thinks(Max, ThinkingStyle::Tokens, u32::MAX, by_tokens(u32::MAX / 8 * 6));
    }

    #[test]
    fn a_refusal_names_what_is_set() {
        let all = GenerationSettings { temperature: Some(0.5), top_p: Some(0.9), effort: Some(ReasoningEffort::Low) };
        let temperature = "Unsupported value: 'temperature' does not support 0.5 with this model.";
        assert_eq!(all.named_in(temperature), ["model.temperature"]);
        assert_eq!(all.named_in("`Top_p` must be unset when thinking is enabled"), ["model.top_p", "model.effort"]);
        assert_eq!(GenerationSettings::default().named_in(temperature), [""; 0]);
    }
}
