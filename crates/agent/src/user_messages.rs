//! The user's input during a run besides its story: between turns, as an answer, or as a former story. The transcript
//! stores it, so it survives a resume.

use surehand_engine::core::{
    render::cut::{cut, on_one_line},
    tokens::estimate,
};

use crate::event::RunEvent;

/// Tokens of a question or a former story in the prompt.
const SHORT: usize = 60;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct UserMessages(Vec<UserMessage>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct UserMessage {
    /// The number of turns that were complete by then.
    after_turn: u32,
    text: String,
    kind: MessageKind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum MessageKind {
    Said,
    /// The answer to this question.
    Answer(String),
    FormerStory,
}

impl UserMessages {
    /// Collects the user's input from the events of a run.
    pub(crate) fn from_events<'a>(events: impl IntoIterator<Item = &'a RunEvent>) -> Self {
        let (mut words, mut story, mut turn) = (Self::default(), None, 0);
        for event in events {
            match event {
                RunEvent::Started { story: now, after_turn, .. } => {
                    if let Some(former) = story.replace(now).filter(|former| *former != now) {
                        words.end_story(*after_turn, former);
                    }
                }
                RunEvent::TurnEnded { turn: ended, .. } => turn = *ended,
                RunEvent::User { text, answers } => words.add(turn, text, answers.as_deref()),
                _ => {}
            }
        }
        words
    }

    /// Adds input of the user: an answer if there is a `question`.
    pub(crate) fn add(&mut self, after_turn: u32, text: &str, question: Option<&str>) {
        let kind = question.map_or(MessageKind::Said, |question| MessageKind::Answer(question.to_owned()));
        self.0.push(UserMessage { after_turn, text: text.to_owned(), kind });
    }

    /// Ends the current story, because the user has given another one.
    pub(crate) fn end_story(&mut self, after_turn: u32, story: &str) {
        self.0.push(UserMessage { after_turn, text: story.to_owned(), kind: MessageKind::FormerStory });
    }

    /// One line for each input, oldest first, within a number of tokens. If there is no room for all, the oldest are
    /// left out and counted.
    pub(crate) fn text(&self, tokens: usize) -> String {
        const LEFT_OUT: usize = 16;
        let mut room = tokens.saturating_sub(LEFT_OUT);
        let mut lines = Vec::new();
        for word in self.0.iter().rev() {
            // The last one is the most important: it is cut rather than left out.
            let line = if lines.is_empty() { cut(&word.line(), room).into_owned() } else { word.line() };
            let cost = estimate(&line) + 1;
            if cost > room {
                break;
            }
            room -= cost;
            lines.push(line);
        }
        let left = self.0.len() - lines.len();
        if left > 0 {
            lines.push(format!("({left} before that left out: no room)"));
        }
        lines.reverse();
        lines.join("\n")
    }
}

impl UserMessage {
    fn line(&self) -> String {
        let (turn, text) = (self.after_turn, on_one_line(self.text.trim()));
        match &self.kind {
            MessageKind::Said => format!("After turn {turn}: {text}"),
            MessageKind::Answer(question) => {
                format!("After turn {turn}, asked \"{}\": {text}", cut(&on_one_line(question.trim()), SHORT))
            }
            MessageKind::FormerStory => format!("Until turn {turn}, as the story, which is over: {}", cut(&text, SHORT)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{event::ContextMode, model::TokenUsage};

    fn started(story: &str, after_turn: u32) -> RunEvent {
        let text = String::new;
        let mode = ContextMode::Snapshot;
        RunEvent::Started { run: text(), story: story.to_owned(), model: text(), mode, session: text(), after_turn }
    }

    fn user(text: &str, answers: Option<&str>) -> RunEvent {
        RunEvent::User { text: text.to_owned(), answers: answers.map(str::to_owned) }
    }

    fn ended(turn: u32) -> RunEvent {
        let usage = TokenUsage::default();
        RunEvent::TurnEnded { turn, usage, total: usage, seconds: 0.0 }
    }

    #[test]
    fn inputs_are_listed_in_order() {
        let events = [
            started("Make two\na number.", 0),
            ended(1),
            user("use\ntabs", None),
            started("Make two\na number.", 1),
            ended(2),
            user("sqlite", Some("Which database?\n1. a\n2. b")),
            ended(3),
            started("Now test it.", 3),
        ];
        let expected = [
            "After turn 1: use tabs",
            "After turn 2, asked \"Which database? 1. a 2. b\": sqlite",
            "Until turn 3, as the story, which is over: Make two a number.",
        ];
        assert_eq!(UserMessages::from_events(&events).text(500), expected.join("\n"));
    }

    #[test]
    fn the_oldest_have_no_room_and_the_last_one_has() {
        let mut words = UserMessages::default();
        (1..=40).for_each(|turn| words.add(turn, "use four spaces, not tabs, in every file", None));
        for tokens in [40, 100, 400] {
            let text = words.text(tokens);
            assert!(estimate(&text) <= tokens, "{tokens}: {text}");
            assert!(text.starts_with('(') && text.lines().last().unwrap().starts_with("After turn 40"), "{text}");
        }
        words.add(41, &"word ".repeat(1000), None);
        assert!(estimate(&words.text(100)) <= 100, "{}", words.text(100));
        assert_eq!(UserMessages::default().text(100), "");
    }
}
