//! What can be typed.

use std::{ffi::OsString, path::PathBuf};

use clap::{Args as Arguments, Parser, Subcommand, ValueEnum};

use crate::commands::init;

/// The file-state layer for coding agents: tracks what a model has seen, and keeps every change safe.
#[derive(Parser)]
#[command(name = "surehand", version, max_term_width = 100)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub command: CliCommand,
}

#[derive(Subcommand)]
pub(crate) enum CliCommand {
    /// Work on a story with a model: plan, change files, run commands, until it is done.
    Run(RunArgs),
    /// Serve the file tools to MCP clients, over standard input and output or over HTTP.
    Mcp(McpArgs),
    /// Answer an agent's hook, with its event on standard input. `surehand init` sets it up.
    Hook(HookArgs),
    /// Set up the installed clients: show what will be written, ask, and keep what is there.
    Init(InitArgs),
    /// Check the program, the workspace and every client, and say how to fix what is wrong.
    Doctor(StateArgs),
    /// Call one tool from a shell or script; exit code 1 means a refusal.
    Call(CallArgs),
    /// Show changed files, sessions and open tasks.
    Status(StateArgs),
    /// Print the state of the repository, as a model gets it.
    Snapshot(StateArgs),
    /// List, add and change tasks.
    Tasks(TasksArgs),
    /// List changes and checkpoints, newest first.
    Log(LogArgs),
    /// Show a change: the last one, the last one of a file, a named one, or all of a session.
    Diff(DiffArgs),
    /// Undo a change: the last one, the last one of a file, a named one, or all of a session.
    Undo(UndoArgs),
    /// Keep the state of all files, to be restored later. Hooks do this before commands.
    Checkpoint(CheckpointArgs),
    /// Restore files to a time, a change or a checkpoint, after showing what will change.
    Restore(RestoreArgs),
    /// Scan the whole workspace for files created, modified and deleted since the last scan.
    Scan(ScanArgs),
    /// Compare both modes and a plain loop on one story. Needs no key and no network.
    Demo(DemoArgs),
    /// Print the completion script for a shell.
    Completions(CompletionsArgs),
    /// Print the manual page, or write the pages of all commands to a directory.
    Man(ManArgs),
}

impl CliCommand {
    /// Whether what is printed is to be JSON.
    pub(crate) fn json(&self) -> bool {
        match self {
            CliCommand::Run(args) => args.json,
            CliCommand::Init(args) => args.json,
            CliCommand::Call(args) => args.json,
            CliCommand::Status(args) | CliCommand::Snapshot(args) | CliCommand::Doctor(args) => args.json,
            CliCommand::Tasks(args) => args.json,
            CliCommand::Log(args) => args.json,
            CliCommand::Diff(args) => args.json,
            CliCommand::Undo(args) => args.json,
            CliCommand::Checkpoint(args) => args.json,
            CliCommand::Restore(args) => args.json,
            CliCommand::Scan(args) => args.json,
            CliCommand::Demo(args) => args.json,
            CliCommand::Mcp(_) | CliCommand::Hook(_) | CliCommand::Completions(_) | CliCommand::Man(_) => false,
        }
    }
}

#[derive(Arguments)]
pub(crate) struct RunArgs {
    /// The story to work on; `-` reads it from standard input.
    #[arg(required_unless_present = "resume")]
    pub story: Option<String>,
    /// The model, by its provider's name. Its key comes from SUREHAND_API_KEY, model.key_command, model.key_file, or the provider's own
    /// variable.
    #[arg(long, short, value_name = "NAME")]
    pub model: Option<String>,
    /// The address of the model's server, for local servers and other providers: http://localhost:11434/v1
    #[arg(long, value_name = "URL")]
    pub url: Option<String>,
    /// The model's protocol; by default it follows from the name.
    #[arg(long, value_enum)]
    pub protocol: Option<ProtocolArg>,
    /// Follow a script instead of asking a model: a file of JSON lines, one per turn.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["model", "url", "protocol"])]
    pub script: Option<PathBuf>,
    /// What the prompt contains: the current state, or the whole conversation.
    #[arg(long, value_enum)]
    pub mode: Option<ModeArg>,
    /// Limit in tokens for a whole prompt in snapshot mode.
    #[arg(long, value_name = "TOKENS")]
    pub budget: Option<usize>,
    /// How the model edits: by text, by anchored lines, or by patches; by default what suits the model.
    #[arg(long, value_enum)]
    pub dialect: Option<DialectArg>,
    /// Run every command without asking.
    #[arg(long, short)]
    pub yes: bool,
    /// Resume a run: the last one that is not done, or this one.
    #[arg(long, value_name = "RUN", num_args = 0..=1, require_equals = true, default_missing_value = "", conflicts_with = "story")]
    pub resume: Option<String>,
    /// Stop after this many turns in total.
    #[arg(long, value_name = "N", default_value_t = 500)]
    pub max_turns: u32,
    /// Stop after this many tokens, in and out.
    #[arg(long, value_name = "N")]
    pub max_tokens: Option<u64>,
    /// Stop after this many dollars. Needs a provider that reports cost, or model.price_input and model.price_output.
    #[arg(long, value_name = "DOLLARS")]
    pub max_cost: Option<f64>,
    /// Print each event as a line of JSON.
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub place: PlaceArgs,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum ProtocolArg {
    Openai,
    Anthropic,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum ModeArg {
    Snapshot,
    History,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum DialectArg {
    #[value(alias = "replace")]
    Text,
    Lines,
    Patch,
}

#[derive(Arguments)]
pub(crate) struct McpArgs {
    /// Serve over HTTP, at /mcp of this address, instead of standard input and output; 127.0.0.1:7873 by default. Without a token, it
    /// serves only processes of the same user on this machine.
    #[arg(long, value_name = "ADDR:PORT", num_args = 0..=1, default_missing_value = "")]
    pub http: Option<String>,
    /// Create a token that clients must send, and print it. If SUREHAND_MCP_TOKEN is set, it is the token, even without this option. Other
    /// users, containers and other machines need it.
    #[arg(long, requires = "http")]
    pub token: bool,
    /// Take the token from another environment variable.
    #[arg(long, value_name = "NAME", requires = "http", conflicts_with = "token")]
    pub token_env: Option<String>,
    /// Allow web pages of this origin to call; may be repeated.
    #[arg(long, value_name = "ORIGIN", requires = "http")]
    pub allow_origin: Vec<String>,
    /// The editing tools to offer: by text, by anchored lines, by patches; by default all.
    #[arg(long, value_enum, value_delimiter = ',', value_name = "DIALECTS")]
    pub dialects: Option<Vec<DialectArg>>,
    #[command(flatten)]
    pub place: PlaceArgs,
}

#[derive(Arguments)]
pub(crate) struct HookArgs {
    /// The client that runs the hook.
    #[arg(value_name = "CLIENT")]
    pub client: String,
    /// The event, for clients that do not send it.
    pub event: Option<String>,
}

impl HookArgs {
    /// `hook CLIENT [EVENT]` without any option, which is how agents call it all the time. To build the whole command line for that
    /// takes as long as the answer.
    pub(crate) fn plain(words: impl Iterator<Item = OsString>) -> Option<Self> {
        let words: Vec<String> = words.skip(1).take(4).map(|word| word.into_string().ok()).collect::<Option<_>>()?;
        let (hook, words) = words.split_first()?;
        let is_plain = hook == "hook" && words.iter().all(|word| !word.starts_with('-'));
        match words {
            [client] if is_plain => Some(Self { client: client.clone(), event: None }),
            [client, event] if is_plain => Some(Self { client: client.clone(), event: Some(event.clone()) }),
            _ => None,
        }
    }
}

#[derive(Arguments)]
pub(crate) struct InitArgs {
    /// Clients: claude, codex, gemini, cursor, opencode, qwen, copilot, goose, cline, reasonix, continue, vscode; by default
    /// those that are installed, or with --remove those that are set up.
    #[arg(value_enum, value_name = "CLIENT", hide_possible_values = true)]
    pub clients: Vec<init::clients::InitClient>,
    /// `me`: you in this project, in files that git ignores. `everywhere`: you in all projects. `project`: everyone in this
    /// project, in files to commit. By default where the client is already set up, else `me`.
    #[arg(long, value_enum, value_name = "SCOPE", hide_possible_values = true)]
    pub scope: Option<init::config_dirs::ConfigScope>,
    /// Add the MCP server as well. Clients without hooks always get it, except in the scope `project`.
    #[arg(long, conflicts_with = "remove")]
    pub mcp: bool,
    /// Remove what init has written, and nothing else.
    #[arg(long)]
    pub remove: bool,
    /// Show each change as a diff.
    #[arg(long)]
    pub diff: bool,
    /// Write without asking.
    #[arg(long, short)]
    pub yes: bool,
    /// Print what would be written, and write nothing.
    #[arg(long)]
    pub dry_run: bool,
    /// The former name of `--scope everywhere`.
    #[arg(long, hide = true, conflicts_with_all = ["project", "scope"])]
    pub user: bool,
    /// The former name of `--scope project`.
    #[arg(long, hide = true, conflicts_with = "scope")]
    pub project: bool,
    /// Print a JSON object. Does not ask, so it writes nothing without --yes.
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub place: PlaceArgs,
}

impl InitArgs {
    /// The scope that was asked for.
    pub(crate) fn scope(&self) -> Option<init::config_dirs::ConfigScope> {
        use init::config_dirs::ConfigScope;
        self.scope.or(self.user.then_some(ConfigScope::Everywhere)).or(self.project.then_some(ConfigScope::Project))
    }
}

#[derive(Arguments)]
pub(crate) struct CompletionsArgs {
    /// The shell.
    pub shell: clap_complete::Shell,
}

#[derive(Arguments)]
pub(crate) struct ManArgs {
    /// Write a page for each command into this directory.
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
}

#[derive(Arguments)]
pub(crate) struct CallArgs {
    #[arg(help = tools())]
    pub tool: String,
    /// Its arguments as a JSON object; `-` reads them from standard input.
    #[arg(default_value = "{}")]
    pub arguments: String,
    /// The session of the call: reads count for later calls of the same session.
    #[arg(long, value_name = "ID", default_value = "cli", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub session: String,
    /// Print the result object, with the text in it.
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub place: PlaceArgs,
}

/// What is said about the tools: their names.
fn tools() -> String {
    let names: Vec<&str> = surehand_engine::Tool::ALL.iter().map(|tool| tool.name()).collect();
    format!("The tool: {}", names.join(", "))
}

#[derive(Arguments)]
pub(crate) struct StateArgs {
    /// Print a JSON object.
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub place: PlaceArgs,
}

#[derive(Arguments)]
pub(crate) struct TasksArgs {
    #[command(subcommand)]
    pub act: Option<TasksAct>,
    /// Show this story, or add to it; by default the current one.
    #[arg(long, global = true, value_name = "NAME")]
    pub story: Option<String>,
    /// Print a JSON object.
    #[arg(long, global = true)]
    pub json: bool,
    #[command(flatten)]
    pub place: PlaceArgs,
}

#[derive(Arguments)]
pub(crate) struct TaskIds {
    /// Numbers of the tasks.
    #[arg(required = true, value_name = "ID")]
    pub ids: Vec<u32>,
}

#[derive(Subcommand)]
pub(crate) enum TasksAct {
    /// Add a task.
    Add {
        /// What to do.
        description: String,
        /// 1 comes first; by default the task comes last.
        #[arg(long, value_name = "N")]
        priority: Option<u32>,
    },
    /// Mark tasks as in progress.
    Start(TaskIds),
    /// Mark tasks as completed.
    Complete(TaskIds),
    /// Mark tasks as cancelled.
    Cancel(TaskIds),
    /// Mark tasks as pending again.
    Reopen(TaskIds),
    /// Remove tasks from the list.
    Remove(TaskIds),
    /// Change the description or the priority of a task.
    Edit {
        /// Number of the task.
        id: u32,
        /// What to do.
        description: Option<String>,
        /// 1 comes first.
        #[arg(long, value_name = "N")]
        priority: Option<u32>,
    },
    /// Start another story, or resume one. Each has its own list.
    Story {
        /// The name or number of a story or ticket.
        id: String,
    },
}

#[derive(Arguments)]
pub(crate) struct LogArgs {
    /// Only changes of this file; checkpoints are left out.
    pub path: Option<String>,
    /// Only changes and checkpoints of this session.
    #[arg(long, value_name = "ID")]
    pub session: Option<String>,
    /// At most this many changes and checkpoints.
    #[arg(long, short = 'n', value_name = "N", default_value_t = 20)]
    pub limit: usize,
    /// Print a JSON array of changes and checkpoints.
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub place: PlaceArgs,
}

#[derive(Arguments)]
pub(crate) struct DiffArgs {
    #[command(flatten)]
    pub selection: SelectionArgs,
    /// Print a JSON array of files, each with its diff.
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub place: PlaceArgs,
}

#[derive(Arguments)]
pub(crate) struct UndoArgs {
    #[command(flatten)]
    pub selection: SelectionArgs,
    /// Overwrite later changes. You can undo that as well.
    #[arg(long)]
    pub force: bool,
    /// Print the result object.
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub place: PlaceArgs,
}

/// Which changes are meant.
#[derive(Arguments)]
pub(crate) struct SelectionArgs {
    /// A file, for its last change, or the name of a change from `surehand log`; by default the last change.
    #[arg(value_name = "PATH|CHANGE", conflicts_with = "session")]
    pub what: Option<String>,
    /// Everything that this session changed.
    #[arg(long, value_name = "ID")]
    pub session: Option<String>,
}

#[derive(Arguments)]
pub(crate) struct CheckpointArgs {
    /// A name for it, by which `restore --to` finds it.
    pub name: Option<String>,
    /// Print a JSON object.
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub place: PlaceArgs,
}

#[derive(Arguments)]
pub(crate) struct RestoreArgs {
    /// Files and directories; without any, everything in the workspace.
    #[arg(value_name = "PATH")]
    pub paths: Vec<String>,
    /// To what: a time (10m ago, 14:05, 2026-01-31T14:05:00Z), or a change or checkpoint as `surehand log` shows it; the beginning of its
    /// name is enough.
    #[arg(long, value_name = "TIME|CHANGE|CHECKPOINT")]
    pub to: String,
    /// Restore without asking.
    #[arg(long, short)]
    pub yes: bool,
    /// Say what would be done, and do nothing.
    #[arg(long, conflicts_with = "yes")]
    pub dry_run: bool,
    /// Print a JSON object. Nobody is asked then, so nothing is restored without --yes.
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub place: PlaceArgs,
}

#[derive(Arguments)]
pub(crate) struct ScanArgs {
    /// Print one JSON object.
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub place: PlaceArgs,
}

#[derive(Arguments)]
pub(crate) struct DemoArgs {
    /// Print one JSON object with the counts.
    #[arg(long)]
    pub json: bool,
}

#[derive(Arguments)]
pub(crate) struct PlaceArgs {
    /// The workspace; by default the work tree around the current directory, else that directory. Surehand touches nothing outside.
    #[arg(long, value_name = "DIR", global = true)]
    pub root: Option<PathBuf>,
}
