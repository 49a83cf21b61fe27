//! Hooks: what an agent's own tools are about to do is judged, what they did is recorded. A hook is a process that is told one thing and
//! answers at once; all it knows is in the state of the workspace. If anything of ours fails, the agent goes on as if we were not there.

mod claude;
mod decide;
mod pending;
mod words;

use std::{path::Path, sync::Arc};

use serde_json::Value;
use surehand_engine::{Session, SessionId, Workspace};

use self::{decide::Verdict, words::Names};

/// An agent that has hooks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Client {
    /// Claude Code.
    Claude,
}

/// What a hook prints and how it ends.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Answer {
    /// For the client; nothing lets everything pass.
    pub stdout: String,
    /// What went wrong with us, for the log.
    pub failed: Option<String>,
}

/// What a client tells a hook, in our words.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Heard {
    /// The client's name of its conversation.
    pub session: String,
    /// Of a part of it that has a context of its own.
    pub agent: Option<String>,
    /// Where it works.
    pub directory: String,
    /// What happens.
    pub what: What,
}

/// What happens.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum What {
    /// A conversation begins or goes on.
    Begins(Beginning),
    /// The context is about to be made shorter.
    Compacts,
    /// The person has said something.
    Prompted,
    /// A tool is about to run.
    Before(Use),
    /// A tool has run.
    After(Use, Shown),
}

/// How a conversation begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Beginning {
    /// From nothing.
    New,
    /// With all that was in the context.
    Resumed,
    /// With an empty context.
    Cleared,
    /// With a summary of what was in the context.
    Compacted,
}

/// What a tool is used for.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Use {
    /// To read a file.
    Read {
        /// Which.
        path: String,
    },
    /// To change files; told as a call of ours.
    Change {
        /// Our tool.
        tool: &'static str,
        /// Its arguments.
        arguments: Value,
        /// The files that it is about.
        paths: Vec<String>,
    },
    /// To run a command.
    Shell {
        /// As it is given to the shell.
        command: String,
    },
}

/// What a tool has shown.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Shown {
    /// These lines of the file, from this number on.
    Lines {
        /// The first.
        start: u32,
        /// All of them.
        content: String,
    },
    /// What a command printed.
    Output(String),
    /// Nothing that counts.
    Nothing,
}

impl Client {
    /// All of them.
    pub const ALL: &[Client] = &[Client::Claude];

    /// As it is called on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Client::Claude => "claude",
        }
    }

    fn hear(self, _event: Option<&str>, input: &Value) -> Option<Heard> {
        match self {
            Client::Claude => claude::hear(input),
        }
    }

    fn say(self, _event: Option<&str>, input: &Value, verdict: &Verdict) -> Value {
        match self {
            Client::Claude => claude::say(input, verdict),
        }
    }

    /// What its tools are called.
    fn names(self) -> Names {
        match self {
            Client::Claude => claude::NAMES,
        }
    }

    /// How many characters of context it takes.
    fn room(self) -> usize {
        match self {
            Client::Claude => 9_500,
        }
    }
}

/// Answers a hook. `open` opens the workspace of a directory; where there is none, everything passes.
pub fn answer(
    client: Client,
    event: Option<&str>,
    input: &str,
    open: impl FnOnce(&Path) -> Result<Arc<Workspace>, String>,
) -> Answer {
    let input: Value = match serde_json::from_str(input) {
        Ok(input) => input,
        Err(error) => return Answer::failed(format!("the input is no JSON: {error}")),
    };
    let Some(heard) = client.hear(event, &input) else { return Answer::default() };
    let workspace = match open(Path::new(&heard.directory)) {
        Ok(workspace) => workspace,
        Err(why) => return Answer::failed(why),
    };
    let agent = heard.agent.as_ref().map(|agent| format!("-{agent}")).unwrap_or_default();
    let id = SessionId(format!("{}-{}{agent}", client.name(), heard.session));
    let mut session = Session::continued(workspace.clone(), id);
    let verdict = decide::decide(&mut session, &heard, client.room());
    workspace.flush();
    let verdict = verdict.in_words_of(&client.names());
    match client.say(event, &input, &verdict) {
        Value::Null => Answer::default(),
        said => Answer { stdout: format!("{said}\n"), failed: None },
    }
}

impl Answer {
    fn failed(why: String) -> Self {
        Self { stdout: String::new(), failed: Some(why) }
    }
}
