//! The tool `run_command`: one command line in a shell, if somebody allows it, within limits. What it showed counts as read and
//! what it changed is named; that is the work of [`Session::command_begins`] and [`Session::command_ended`].

mod output;
mod permission;
mod process;
mod tree;

use std::{sync::Arc, time::Duration};

use serde::Deserialize;
use serde_json::{Value, json};
use surehand_engine::{
    Command, Commands, Reply, Session,
    core::{Cause, ContentHash, Refusal, render},
    tools,
};

pub use self::permission::{Mode, Nobody, Permission, Ruled, Rules, Verdict};
use self::process::{Ended, Left, Ran, run};
use crate::{cancel::Cancel, model::ToolSpec, secrets::Secrets};

/// The name of the tool.
pub const NAME: &str = "run_command";

/// How far a command may go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// How long it may take, if the call says nothing.
    pub time: Duration,
    /// How long it may take, whatever the call says.
    pub most_time: Duration,
    /// How much is shown of the beginning of its output.
    pub head_bytes: usize,
    /// How much is shown of the end of its output.
    pub tail_bytes: usize,
    /// How long it has to end by itself once it is asked to.
    pub grace: Duration,
    /// How long output is waited for that may still be on its way after the end.
    pub linger: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self::from(&Commands::default())
    }
}

impl From<&Commands> for Limits {
    fn from(settings: &Commands) -> Self {
        let time = Duration::from_secs(settings.seconds);
        Self {
            time,
            most_time: time.max(Duration::from_secs(600)),
            head_bytes: settings.output_bytes / 2,
            tail_bytes: settings.output_bytes.div_ceil(2),
            grace: Duration::from_secs(2),
            linger: Duration::from_millis(200),
        }
    }
}

/// The tool as the model is told about it.
pub fn spec() -> ToolSpec {
    let schema = json!({
        "type": "object",
        "properties": {
            "command": { "type": "string", "description": "The command line, for sh." },
            "timeout": { "type": "integer", "minimum": 1, "description": "Seconds until it is stopped, 600 at most." },
        },
        "required": ["command"],
        "additionalProperties": false,
    });
    let description = "Run a shell command in the workspace root: tests, builds, git. It has no input, is stopped at a time limit \
                       (timeout sets another), and nothing of it runs on in the background. Long output is cut in the middle. \
                       It may be declined. Use the other tools to read and change files.";
    let Value::Object(schema) = schema else { unreachable!("an object was written above") };
    ToolSpec { name: NAME.to_owned(), description: description.to_owned(), schema }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    command: String,
    timeout: Option<f64>,
}

/// Carries out a call of the tool. A command that fails is not refused: what came of it is in the text and in `exit_code`. It does not get
/// variables that hold a secret, and a secret that it prints is redacted.
pub fn run_command(
    session: &mut Session,
    arguments: &Value,
    permission: &mut dyn Permission,
    limits: &Limits,
    secrets: &Secrets,
    cancel: &Cancel,
) -> Reply {
    let (command, time) = match understand(arguments, limits) {
        Ok(understood) => understood,
        Err(refusal) => return refuse(session, arguments, &refusal),
    };
    if cancel.is_set() {
        return not_begun();
    }
    match permission.may_run(&command) {
        Verdict::Yes | Verdict::Always => {}
        Verdict::No(said) => return decline(session, arguments, said),
    }
    if cancel.is_set() {
        return not_begun();
    }
    let root = session.workspace().root().path().to_owned();
    let begun = session.command_begins();
    let ran = match run(&command, &root, time, limits, secrets, cancel) {
        Ok(ran) => ran,
        Err(error) => {
            let why = format!("the command could not be started: {error}");
            return refuse(session, arguments, &Refusal::of_call(Cause::Io { why }));
        }
    };
    let directory = root.to_string_lossy();
    let told = session.command_ended(begun, &Command { line: &command, directory: &directory, output: &ran.output.text });
    say(&ran, told, limits)
}

/// The command and its time.
fn understand(arguments: &Value, limits: &Limits) -> Result<(String, Duration), Refusal> {
    let bad = |why: &str| Refusal::of_call(Cause::BadArguments { why: format!("{NAME}: {why}") });
    let Arguments { command, timeout } = tools::arguments(NAME, arguments)?;
    if command.trim().is_empty() {
        return Err(bad("command is empty"));
    }
    if command.contains('\0') {
        return Err(bad("command has a NUL character in it"));
    }
    let time = match timeout {
        None => limits.time,
        Some(seconds) if seconds > 0.0 => Duration::try_from_secs_f64(seconds).unwrap_or(limits.most_time),
        Some(_) => return Err(bad("timeout must be more than 0 seconds")),
    };
    Ok((command, time.min(limits.most_time)))
}

/// What came of a command: first how it ended, then what it printed, then what else there is to know.
fn say(ran: &Ran, told: Reply, limits: &Limits) -> Reply {
    let mut text = ending(ran.ended, limits);
    text.push('\n');
    text.push_str(if ran.output.text.is_empty() { "(no output)" } else { &ran.output.text });
    if !text.ends_with('\n') {
        text.push('\n');
    }
    match ran.left {
        Left::Nothing => {}
        Left::Ended => text.push_str("note: it had left something running in the background, which was ended with it\n"),
        Left::Running => text.push_str("note: something it started could not be ended and still runs\n"),
    }
    text.push_str(&told.text);
    let mut result = told.result;
    result["success"] = json!(ran.ended == Ended::Code(0));
    match ran.ended {
        Ended::Code(code) => result["exit_code"] = json!(code),
        Ended::Signal(signal) => result["signal"] = json!(signal),
        Ended::TimedOut(_) | Ended::Cancelled => {}
    }
    result["timed_out"] = json!(matches!(ran.ended, Ended::TimedOut(_)));
    result["cancelled"] = json!(ran.ended == Ended::Cancelled);
    result["cut"] = json!(ran.output.cut.map(|cut| json!({ "bytes": cut.bytes, "lines": cut.lines })));
    result["left_running"] = json!(ran.left != Left::Nothing);
    result["seconds"] = json!((ran.took.as_secs_f64() * 1000.0).round() / 1000.0);
    Reply { text, is_error: false, result }
}

fn ending(ended: Ended, limits: &Limits) -> String {
    match ended {
        Ended::Code(code) => format!("exit code {code}"),
        Ended::Signal(signal) => format!("ended by signal {signal}"),
        Ended::Cancelled => "stopped before its end: the run was interrupted".to_owned(),
        Ended::TimedOut(time) if time < limits.most_time => format!(
            "stopped after {} s, its time limit: run less, or set timeout (up to {} s)",
            time.as_secs_f64(),
            limits.most_time.as_secs_f64()
        ),
        Ended::TimedOut(time) => format!("stopped after {} s, the longest time there is: run less", time.as_secs_f64()),
    }
}

/// The same words and the same object as for other tools.
fn refuse(session: &mut Session, arguments: &Value, refusal: &Refusal) -> Reply {
    let repeat = count(session, arguments);
    let result = refused(refusal.code(), repeat, render::refusal::remedy(refusal));
    Reply { text: render::refusal::refusal(refusal, repeat), is_error: true, result }
}

fn decline(session: &mut Session, arguments: &Value, said: Option<String>) -> Reply {
    let repeat = count(session, arguments);
    let mut text = match &said {
        Some(said) => format!("Error: the command was declined: {}\n", said.trim()),
        None => "Error: the command was declined by the person. Go on without it, or in another way.\n".to_owned(),
    };
    if repeat > 1 {
        text.push_str(&format!("This is refusal {repeat} of the same call: do not send it again.\n"));
    }
    let mut result = refused("declined", repeat, "go on without this command");
    result["refusal"]["said"] = json!(said);
    Reply { text, is_error: true, result }
}

fn not_begun() -> Reply {
    let text = "Error: the command was not run: the run was interrupted.\n".to_owned();
    Reply { text, is_error: true, result: refused("cancelled", 1, "go on when the run does") }
}

fn refused(code: &str, repeat: u32, remedy: &str) -> Value {
    let refusal = json!({
        "code": code, "path": null, "affected_ranges": [], "remaps": [], "repeat": repeat, "remedy": remedy
    });
    json!({ "success": false, "refusal": refusal })
}

/// How often this very call has been refused, this time included.
fn count(session: &mut Session, arguments: &Value) -> u32 {
    let workspace = Arc::clone(session.workspace());
    let call = ContentHash::of(format!("{NAME} {arguments}").as_bytes());
    session.tracker().map_or(1, |tracker| tracker.count_refusal(&workspace, call, None))
}
