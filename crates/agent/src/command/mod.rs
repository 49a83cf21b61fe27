//! The tool `run_command`: runs one command line in a shell, after approval and within limits.
//! [`Session::command_begins`] and [`Session::command_ended`] find out which file lines the command printed, which
//! count as read, and which files the command changed.

mod approval;
mod confinement;
mod output;
mod process;
mod process_tree;

use std::{io, sync::Arc, time::Duration};

use serde::Deserialize;
use serde_json::{Value, json};
use surehand_engine::{
    CommandConfig, Session, ShellCommand, ToolNames,
    core::{Cause, ContentHash, Refusal, outcome::CommandEffects},
    render::{self, ReplyAudience},
    tools,
};

pub use self::{
    approval::{
        Approval, ApprovalMode, ApprovalRules, Approver, AskedBecause, CommandRequest, NoApprover, RuleApprover, UnaskedCommands,
    },
    confinement::{ConfinementSupport, confinement_support},
};
use self::{
    confinement::Confinement,
    process::{ShellLine, run_shell},
};
pub use self::{
    output::{MUTED, OmittedOutput, ShownOutput},
    process::{CommandEnd, FinishedCommand, LeftProcesses},
};
use crate::{
    call_outcome::{CallOutcome, CallOutcomeKind},
    cancel::CancelToken,
    model::ToolSpec,
    secrets::Secrets,
};

/// The name of the tool.
pub const NAME: &str = "run_command";

/// Limits of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CommandLimits {
    /// The time limit if the call names none.
    pub time: Duration,
    /// The highest time limit that a call can set.
    pub most_time: Duration,
    /// Bytes shown from the start of the output.
    pub head_bytes: usize,
    /// Bytes shown from the end of the output.
    pub tail_bytes: usize,
    /// Time between SIGTERM and SIGKILL.
    pub grace: Duration,
    /// Time to wait for pending output after the shell has ended.
    pub linger: Duration,
}

impl From<&CommandConfig> for CommandLimits {
    fn from(settings: &CommandConfig) -> Self {
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

/// The tool's description for the model.
pub fn tool_spec() -> ToolSpec {
    let schema = json!({
        "type": "object",
        "properties": {
            "command": { "type": "string" },
            "timeout": { "type": "integer" },
            "unconfined": { "type": "boolean", "description": "Only if it failed because it was confined" },
        },
        "required": ["command"],
    });
    let description = "Run a shell command in the workspace root: tests, builds, git. It has no input, is stopped at a time limit \
                       (timeout sets another), and nothing of it runs on in the background. Long output is cut in the middle. \
                       It may be declined. Use the other tools to read and change files.";
    ToolSpec::new(NAME, description, schema)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CommandArguments {
    command: String,
    timeout: Option<f64>,
    #[serde(default)]
    unconfined: bool,
}

/// The outcome of a call.
#[derive(Debug)]
pub enum CommandOutcome {
    /// The command ran, whatever its exit code.
    Ran(Box<CommandRun>),
    /// The command did not run.
    NotRun {
        /// The reason, which the reply states.
        why: NotRun,
        /// How often this call was refused, including now.
        repeat: u32,
    },
}

/// A command that ran.
#[derive(Debug)]
pub struct CommandRun {
    /// How it ended, and its output.
    pub ran: FinishedCommand,
    /// The files that it changed, and the file lines that it printed.
    pub effects: CommandEffects,
    /// Whether it ran confined, because it ran without a question.
    pub is_confined: bool,
    limits: CommandLimits,
}

/// Why a command did not run.
#[derive(Debug)]
pub enum NotRun {
    /// The call is invalid, or the shell could not be started.
    Refused(Box<Refusal>),
    /// It was not approved, for the reason given.
    Declined(Option<String>),
    /// The run was cancelled.
    Interrupted,
}

/// The observers of a running command.
pub struct CommandWatch<'a> {
    /// Ends the command when cancelled.
    pub cancel: &'a CancelToken,
    /// Receives the output in pieces as it arrives: readable, redacted, and no more than is kept of all of it.
    pub output: Option<&'a mut dyn FnMut(&str)>,
}

impl CommandWatch<'_> {
    fn show(&mut self, news: &str) {
        if let Some(output) = self.output.as_mut().filter(|_| !news.is_empty()) {
            output(news);
        }
    }
}

/// Carries out a call. A command that fails is an outcome, not a refusal. The command does not get environment
/// variables that contain a secret, and a secret in its output is redacted.
pub fn run_command(
    session: &mut Session,
    arguments: &Value,
    permission: &mut dyn Approver,
    limits: &CommandLimits,
    secrets: &Secrets,
    mut watch: CommandWatch<'_>,
) -> CommandOutcome {
    let mut run = || -> Result<CommandRun, NotRun> {
        let CommandCall { line, time, why } = parse_arguments(arguments, limits)?;
        let cancel = watch.cancel;
        let check_cancelled = || if cancel.is_cancelled() { Err(NotRun::Interrupted) } else { Ok(()) };
        check_cancelled()?;
        let is_confined = match permission.approve(&CommandRequest { line: &line, why }) {
            Approval::No(said) => return Err(NotRun::Declined(said)),
            Approval::Confined => true,
            Approval::Yes | Approval::Always => false,
        };
        check_cancelled()?;
        let failed = |step: &str, error: io::Error| {
            Refusal::of_call(Cause::Io { why: format!("the command could not be {step}: {error}") })
        };
        let root = session.workspace().path().to_owned();
        let directory = root.to_string_lossy();
        let mut command = ShellCommand { line: &line, directory: &directory, output: "" };
        session.checkpoint_before(&line);
        let confinement = is_confined.then(|| Confinement::of(session.workspace())).transpose();
        let shell =
            ShellLine { line: &line, directory: &root, confinement: confinement.map_err(|error| failed("confined", error))? };
        let begun = session.command_begins(&command);
        let ran = run_shell(&shell, time, limits, secrets, &mut watch).map_err(|error| failed("started", error))?;
        command.output = &ran.output.text;
        let effects = session.command_ended(begun, &command);
        Ok(CommandRun { ran, effects, is_confined, limits: *limits })
    };
    match run() {
        Ok(run) => CommandOutcome::Ran(Box::new(run)),
        Err(NotRun::Interrupted) => CommandOutcome::NotRun { why: NotRun::Interrupted, repeat: 1 },
        Err(why) => CommandOutcome::NotRun { why, repeat: count_refusal(session, NAME, arguments) },
    }
}

struct CommandCall {
    line: String,
    time: Duration,
    why: AskedBecause,
}

fn parse_arguments(arguments: &Value, limits: &CommandLimits) -> Result<CommandCall, Refusal> {
    let bad = |why: &str| Refusal::of_call(Cause::BadArguments { why: format!("{NAME}: {why}") });
    let CommandArguments { command, timeout, unconfined } = tools::arguments(NAME, arguments)?;
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
    let why = if unconfined { AskedBecause::Unconfined } else { AskedBecause::NotAllowed };
    Ok(CommandCall { line: command, time: time.min(limits.most_time), why })
}

impl CommandOutcome {
    /// The reply, for a model that knows its tools by these names.
    pub fn text(&self, names: &ToolNames) -> String {
        match self {
            CommandOutcome::Ran(run) => run.text(),
            CommandOutcome::NotRun { why: NotRun::Refused(refusal), repeat } => {
                render::refusal::refusal(refusal, *repeat, ReplyAudience::new(names))
            }
            CommandOutcome::NotRun { why: NotRun::Declined(said), repeat } => declined_text(said.as_deref(), *repeat),
            CommandOutcome::NotRun { why: NotRun::Interrupted, .. } => {
                "Error: the command was not run: the run was interrupted.\n".to_owned()
            }
        }
    }

    pub(crate) fn into_result(self, names: &ToolNames) -> CallOutcome {
        let text = self.text(names);
        let kind = match self {
            CommandOutcome::Ran(run) => CallOutcomeKind::Command {
                succeeded: run.has_succeeded(),
                ending: ending_text(run.ran.ended, &run.limits),
                read: run.effects.read,
            },
            CommandOutcome::NotRun { why, repeat } => CallOutcomeKind::Refused { code: why.code(), repeat },
        };
        CallOutcome::new(text, kind)
    }
}

impl From<Refusal> for NotRun {
    fn from(refusal: Refusal) -> Self {
        NotRun::Refused(Box::new(refusal))
    }
}

impl NotRun {
    /// The code of the refusal.
    pub fn code(&self) -> &'static str {
        match self {
            NotRun::Refused(refusal) => refusal.code().as_str(),
            NotRun::Declined(_) => "declined",
            NotRun::Interrupted => "cancelled",
        }
    }
}

impl CommandRun {
    fn has_succeeded(&self) -> bool {
        self.ran.ended == CommandEnd::Code(0)
    }

    /// The end of the command, then its output, then notes.
    fn text(&self) -> String {
        let ran = &self.ran;
        let mut text = ending_text(ran.ended, &self.limits);
        text.push('\n');
        text.push_str(if ran.output.text.is_empty() { "(no output)" } else { &ran.output.text });
        if !text.ends_with('\n') {
            text.push('\n');
        }
        match ran.left {
            LeftProcesses::Nothing => {}
            LeftProcesses::Ended => text.push_str("note: it left processes running in the background, which were ended\n"),
            LeftProcesses::Running => text.push_str("note: a process that it started could not be ended and still runs\n"),
        }
        if self.is_confined && !self.has_succeeded() && names_a_restriction(&ran.output.text) {
            text.push_str(CONFINED);
        }
        text.push_str(&render::command(&self.effects));
        text
    }
}

/// Explains a failure that the model cannot understand otherwise.
const CONFINED: &str = "note: it ran confined: it can write in the directories of the workspace, but can neither create, rename nor \
    remove anything in the root itself, nor write into .git or elsewhere, and it may have no network. If it failed because of that, \
    call it again with unconfined = true; the user is asked then\n";

/// Whether the output has an error that confinement may have caused.
fn names_a_restriction(output: &str) -> bool {
    const COMPLAINTS: [&str; 9] = [
        "permission denied",
        "operation not permitted",
        "not permitted",
        "access denied",
        "read-only",
        "eacces",
        "eperm",
        "cross-device",
        "resolv",
    ];
    let output = output.to_lowercase();
    COMPLAINTS.iter().any(|complaint| output.contains(complaint))
}

fn ending_text(ended: CommandEnd, limits: &CommandLimits) -> String {
    match ended {
        CommandEnd::Code(code) => format!("exit code {code}"),
        CommandEnd::Signal(signal) => format!("ended by signal {signal}"),
        CommandEnd::Cancelled => "stopped: the run was interrupted".to_owned(),
        CommandEnd::TimedOut(time) if time < limits.most_time => format!(
            "stopped after {} s, its time limit: run less, or set timeout (up to {} s)",
            time.as_secs_f64(),
            limits.most_time.as_secs_f64()
        ),
        CommandEnd::TimedOut(time) => format!("stopped after {} s, the longest time there is: run less", time.as_secs_f64()),
    }
}

fn declined_text(said: Option<&str>, repeat: u32) -> String {
    let mut text = match said {
        Some(said) => format!("Error: the command was declined: {}\n", said.trim()),
        None => "Error: the user declined the command. Go on without it, or find another way.\n".to_owned(),
    };
    if repeat > 1 {
        text.push_str(&format!("This is refusal {repeat} of the same call: do not send it again.\n"));
    }
    text
}

/// Counts a declined call. Returns how often it was declined, including now.
pub(crate) fn count_refusal(session: &mut Session, tool: &str, arguments: &Value) -> u32 {
    let workspace = Arc::clone(session.workspace());
    let call = ContentHash::of(format!("{tool} {arguments}").as_bytes());
    session.tracker().map_or(1, |tracker| tracker.count_refusal(&workspace, call, None))
}
