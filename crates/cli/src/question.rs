//! Questions to the user.

use std::io::{self, IsTerminal};

use surehand_agent::CancelToken;

use crate::{display::Keyboard, output};

/// Asks whether to do something. If nobody can answer, prints how to do it without a question, and the answer is no.
pub(crate) fn ask(question: &str, json: bool) -> anyhow::Result<bool> {
    if json {
        return Ok(false);
    }
    let keyboard = if io::stdin().is_terminal() && io::stdout().is_terminal() { Keyboard::find() } else { None };
    let Some(keyboard) = keyboard else {
        output::print("Nothing was done; --yes does it without asking.\n")?;
        return Ok(false);
    };
    ask_at(&keyboard, question)
}

/// Asks at a keyboard until the answer is clear. The end of the input is a no.
pub(crate) fn ask_at(keyboard: &Keyboard, question: &str) -> anyhow::Result<bool> {
    keyboard.forget();
    loop {
        output::print(&format!("{question} \x1b[1my\x1b[0m yes, \x1b[1mn\x1b[0m no > "))?;
        let Some(typed) = keyboard.line(&CancelToken::default())? else { return Ok(false) };
        match typed.trim().to_lowercase().as_str() {
            "y" | "yes" => return Ok(true),
            "n" | "no" => return Ok(false),
            _ => {}
        }
    }
}
