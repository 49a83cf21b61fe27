//! The prompts of a run, recorded if the user wants that. Each turn has a line with only the difference from the line
//! before, so a growing conversation takes the space of its last prompt.

use std::{
    collections::HashMap,
    fs::File,
    io::{self, Write},
    os::fd::OwnedFd,
};

use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};

use crate::{
    model::{ChatMessage, Prompt, ToolSpec},
    run_files::{PROMPTS, drop_torn_line, open_file, read_file},
};

#[derive(Debug)]
pub(crate) struct PromptRecorder {
    file: File,
    /// The prompt recorded last by this process.
    last: Option<Prompt>,
}

/// A prompt, stored as its difference from the one before.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct PromptRecord {
    turn: u32,
    /// Whether it is complete and needs no prompt before it.
    #[serde(default)]
    is_whole: bool,
    /// `None` if it equals the one before.
    system: Option<String>,
    /// `None` if they equal those before.
    tools: Option<Vec<ToolSpec>>,
    /// Number of messages that it shares with the start of the prompt before.
    kept: usize,
    /// The messages after these.
    messages: Vec<ChatMessage>,
}

impl PromptRecorder {
    pub(crate) fn open(dir: &OwnedFd) -> io::Result<Self> {
        let mut file = open_file(dir, PROMPTS, OFlags::RDWR | OFlags::APPEND | OFlags::CREATE)?;
        drop_torn_line(&mut file)?;
        Ok(Self { file, last: None })
    }

    pub(crate) fn record(&mut self, turn: u32, prompt: &Prompt) -> io::Result<()> {
        let record = PromptRecord::after(self.last.as_ref(), turn, prompt);
        let mut line = serde_json::to_vec(&record).map_err(io::Error::other)?;
        line.push(b'\n');
        self.file.write_all(&line)?;
        self.last = Some(prompt.clone());
        Ok(())
    }
}

impl PromptRecord {
    fn after(before: Option<&Prompt>, turn: u32, prompt: &Prompt) -> Self {
        let Some(before) = before else {
            let Prompt { system, messages, tools, .. } = prompt.clone();
            return Self { turn, is_whole: true, system: Some(system), tools: Some(tools), kept: 0, messages };
        };
        let kept = before.messages.iter().zip(&prompt.messages).take_while(|(before, now)| before == now).count();
        Self {
            turn,
            is_whole: false,
            system: (prompt.system != before.system).then(|| prompt.system.clone()),
            tools: (prompt.tools != before.tools).then(|| prompt.tools.clone()),
            kept,
            messages: prompt.messages[kept..].to_vec(),
        }
    }

    /// The prompt; `None` if the one before is needed and missing.
    fn apply(self, before: Option<Prompt>) -> Option<Prompt> {
        let mut prompt = if self.is_whole { Prompt::default() } else { before? };
        if prompt.messages.len() < self.kept {
            return None;
        }
        prompt.messages.truncate(self.kept);
        prompt.messages.extend(self.messages);
        prompt.system = self.system.unwrap_or(prompt.system);
        prompt.tools = self.tools.unwrap_or(prompt.tools);
        Some(prompt)
    }
}

/// The recorded prompts of a run by turn. A prompt that depends on a damaged line is missing.
pub(crate) fn read_prompts(dir: &OwnedFd) -> io::Result<HashMap<u32, Prompt>> {
    Ok(prompts(&read_file(dir, PROMPTS)?.unwrap_or_default()))
}

fn prompts(lines: &str) -> HashMap<u32, Prompt> {
    let (mut prompts, mut last) = (HashMap::new(), None);
    for line in lines.lines() {
        let record = serde_json::from_str::<PromptRecord>(line).ok();
        last = record.and_then(|record| {
            let turn = record.turn;
            let prompt = record.apply(last.take())?;
            // A turn that was interrupted has been asked again.
            prompts.insert(turn, prompt.clone());
            Some(prompt)
        });
    }
    prompts
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn prompt(system: &str, messages: &[&str], tools: &[&str]) -> Prompt {
        let message = |text: &&str| ChatMessage::User((*text).to_owned());
        let tool = |name: &&str| ToolSpec::new(name, "", json!({}));
        Prompt {
            system: system.to_owned(),
            messages: messages.iter().map(message).collect(),
            tools: tools.iter().map(tool).collect(),
            ..Prompt::default()
        }
    }

    fn lines(prompts: &[Prompt]) -> Vec<String> {
        let mut last = None;
        let line = |(turn, prompt): (u32, &Prompt)| {
            let record = PromptRecord::after(last.replace(prompt.clone()).as_ref(), turn, prompt);
            serde_json::to_string(&record).unwrap()
        };
        (1..).zip(prompts).map(line).collect()
    }

    #[test]
    fn a_prompt_is_read_as_it_was_recorded() {
        let all = [
            prompt("s", &["a"], &["x"]),
            prompt("s", &["a", "b", "c"], &["x"]),
            prompt("s", &["folded"], &["x", "y"]),
            prompt("t", &[], &[]),
            prompt("t", &["a"], &[]),
        ];
        let read = prompts(&lines(&all).join("\n"));
        assert_eq!((1..=5).map(|turn| read[&turn].clone()).collect::<Vec<_>>(), all);
    }

    #[test]
    fn a_conversation_takes_the_room_of_its_last_prompt() {
        let all: Vec<Prompt> = (1..50).map(|length| prompt("s", &vec!["a message"; length], &["x"])).collect();
        assert!(lines(&all).iter().skip(1).all(|line| line.matches("a message").count() == 1));
    }

    #[test]
    fn a_damaged_line_costs_what_follows_until_a_whole_prompt() {
        let first = lines(&[prompt("s", &["a"], &[]), prompt("s", &["a", "b"], &[]), prompt("s", &["a", "b", "c"], &[])]);
        let second = lines(&[prompt("s", &["again"], &[])]);
        let read = prompts(&[&first[0], "{\"turn\": 2, \"sys", &first[2], &second[0].replace(":1,", ":4,")].join("\n"));
        let mut turns: Vec<_> = read.into_iter().collect();
        turns.sort_by_key(|(turn, _)| *turn);
        assert_eq!(turns, [(1, prompt("s", &["a"], &[])), (4, prompt("s", &["again"], &[]))]);
    }
}
