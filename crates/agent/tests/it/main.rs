//! The tests of this crate that use its public interface, in one binary. `commands` is separate, because it measures
//! its process.

mod attended;
mod context;
mod hostile_servers;
mod loops;
mod models;
mod person;
mod run;
mod shown;

use surehand_agent::model::{ChatMessage, Prompt};

/// The whole prompt in one text: everything that a model reads.
fn prompt_text(prompt: &Prompt) -> String {
    let mut text = prompt.system.clone();
    for message in &prompt.messages {
        match message {
            ChatMessage::User(said) => text.push_str(said),
            ChatMessage::Assistant { text: said, calls, .. } => {
                text.push_str(said);
                calls.iter().for_each(|call| text.push_str(&format!("{} {}\n", call.name, call.arguments)));
            }
            ChatMessage::Results(results) => results.iter().for_each(|result| text.push_str(&result.text)),
        }
    }
    text
}
