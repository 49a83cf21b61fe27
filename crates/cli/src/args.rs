//! The command line: the commands, their arguments, and the help texts.

use std::{ffi::OsString, path::PathBuf, time::Duration};

use clap::{
    Args as Arguments, Parser, Subcommand,
    builder::{PossibleValuesParser, TypedValueParser},
};
use surehand_agent::model::ModelProtocol;
use surehand_engine::{
    activity::ActivityKind,
    core::{ContextMode, EditDialect},
};

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
    /// List everything that happened, newest first, and who did it.
    Log(LogArgs),
    /// Show a change, a checkpoint, a rescued file or any other log entry: author, time, files and diff. For a run of
    /// the agent, show its events, or one turn with prompt, answer and calls.
    Show(ShowArgs),
    /// List the runs of the agent, latest first: story, state, turns, tokens. `show` shows one.
    Runs(ListArgs),
    /// List the sessions: what each has seen, which of those files have changed since, and its changes.
    Sessions(SessionsArgs),
    /// List, show, apply or drop text that other programs wrote into a file while it was being replaced.
    Rescued(RescuedArgs),
    /// Show who wrote each line of a file, and when: a session, a command, another program or a commit.
    Blame(BlameArgs),
    /// Show a change: the last one, the last one of a file, a named one, or exactly the lines of a session.
    Diff(DiffArgs),
    /// Undo a change: the last one, the last one of a file, a named one, or all of a session.
    Undo(UndoArgs),
    /// Redo the last undone change. Repeat it to redo earlier ones.
    Redo(RedoArgs),
    /// Commit exactly the lines of a session, and leave everything else as it is.
    Commit(CommitArgs),
    /// Save the state of all files so that it can be restored later. Hooks do this before commands.
    Checkpoint(CheckpointArgs),
    /// Restore files to a time, a change or a checkpoint, after showing what will change.
    Restore(RestoreArgs),
    /// Scan the whole workspace for files created, modified and deleted since the last scan.
    Scan(StateArgs),
    /// Show what all checkouts of this repository share: agents, tasks, claims, and who changes what.
    Board(BoardArgs),
    /// Run the process that connects agents to the board. It starts by itself when needed.
    Helper(HelperArgs),
    /// Show what Surehand stores, and how much space it takes.
    Usage(UsageArgs),
    /// Remove stored data that is no longer wanted, after showing what will be removed.
    Clean(CleanArgs),
    /// Show everything in a browser: sessions and what they have seen, the log, files, rescued work, tasks and runs.
    /// Changes can be undone there.
    Ui(UiArgs),
    /// Compare both modes and a plain loop on one story. Needs no key and no network.
    Demo(DemoArgs),
    /// Print the completion script for a shell.
    Completions(CompletionsArgs),
    /// Print the manual page, or write the pages of all commands to a directory.
    Man(ManArgs),
    /// Show the version, how it was installed, and how to update or remove it.
    #[command(name = "self")]
    SelfInfo(SelfArgs),
}

#[derive(Arguments)]
pub(crate) struct RunArgs {
    /// The story to work on; `-` reads it from standard input. With --resume, another story for that run.
    #[arg(required_unless_present = "resume")]
    pub story: Option<String>,
    /// The model, by its provider's name for it. The key comes from SUREHAND_API_KEY, model.key_command,
    /// model.key_file, or the provider's own variable.
    #[arg(long, short, value_name = "NAME")]
    pub model: Option<String>,
    /// The URL of the model's server, for local servers and other providers: http://localhost:11434/v1
    #[arg(long, value_name = "URL")]
    pub url: Option<String>,
    /// The model's protocol; by default derived from the name.
    #[arg(long, value_parser = choice(&PROTOCOLS))]
    pub protocol: Option<ModelProtocol>,
    /// Follow a script instead of asking a model: a file of JSON lines, one per turn.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["model", "url", "protocol"])]
    pub script: Option<PathBuf>,
    /// What the prompt contains: the current state, or the whole conversation.
    #[arg(long, value_parser = choice(&[("snapshot", ContextMode::Snapshot), ("history", ContextMode::History)]))]
    pub mode: Option<ContextMode>,
    /// Token limit for the whole prompt in snapshot mode.
    #[arg(long, value_name = "TOKENS")]
    pub budget: Option<usize>,
    /// How the model edits: by text, by anchored lines, or by patches; by default whatever suits the model.
    #[arg(long, value_parser = choice(&DIALECTS))]
    pub dialect: Option<EditDialect>,
    /// Run every command without asking.
    #[arg(long, short)]
    pub yes: bool,
    /// Show each edit and ask before making it.
    #[arg(long)]
    pub ask_edits: bool,
    /// Resume a run: this one, or by default the last one that is not done. With a story, continue this run, or by
    /// default the last one, with that story, even if it is done.
    #[arg(long, value_name = "RUN", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    pub resume: Option<String>,
    /// Work on the shared tasks of this story on the board, one after another, until none is free. `surehand board add`
    /// adds tasks.
    #[arg(long, conflicts_with = "resume")]
    pub fleet: bool,
    /// Record every prompt, for `surehand show RUN TURN`.
    #[arg(long)]
    pub record_prompts: bool,
    /// Stop after this many turns in total.
    #[arg(long, value_name = "N", default_value_t = 500)]
    pub max_turns: u32,
    /// Stop after this many tokens, input and output together.
    #[arg(long, value_name = "N")]
    pub max_tokens: Option<u64>,
    /// Stop after this many minutes in total, even in the middle of an answer or a command.
    #[arg(long, visible_alias = "minutes", value_name = "N", value_parser = minutes)]
    pub max_minutes: Option<f64>,
    /// Stop after this many dollars. Needs a provider that reports cost, or model.price_input and model.price_output.
    #[arg(long, value_name = "DOLLARS")]
    pub max_cost: Option<f64>,
    /// Print each event as a line of JSON.
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub place: PlaceArgs,
}

fn minutes(text: &str) -> Result<f64, String> {
    let minutes = text.parse().ok().filter(|minutes: &f64| minutes.is_finite() && *minutes > 0.0);
    minutes.ok_or_else(|| "must be a number above 0".to_owned())
}

const PROTOCOLS: [(&str, ModelProtocol); 3] =
    [("openai", ModelProtocol::OpenAi), ("anthropic", ModelProtocol::Anthropic), ("responses", ModelProtocol::Responses)];

const DIALECTS: [(&str, EditDialect); 3] =
    [("text", EditDialect::Text), ("lines", EditDialect::Lines), ("patch", EditDialect::Patch)];

/// Parses one of these words into its value.
fn choice<T: Copy + Send + Sync>(words: &'static [(&'static str, T)]) -> impl TypedValueParser<Value = T> {
    let value = |typed: String| words.iter().find(|(word, _)| *word == typed).expect("clap has checked the word").1;
    PossibleValuesParser::new(words.iter().map(|(word, _)| *word)).map(value)
}

#[derive(Arguments)]
pub(crate) struct McpArgs {
    /// Serve over HTTP, at /mcp of this address, instead of standard input and output; 127.0.0.1:7873 by default.
    /// Without a token, it serves only processes of the same user on this machine.
    #[arg(long, value_name = "ADDR:PORT", num_args = 0..=1, default_missing_value = "")]
    pub http: Option<String>,
    /// Create a token that clients must send, and print it. If SUREHAND_MCP_TOKEN is set, that is the token, even
    /// without this option. Other users, containers and other machines need it.
    #[arg(long, requires = "http")]
    pub token: bool,
    /// Take the token from another environment variable.
    #[arg(long, value_name = "NAME", requires = "http", conflicts_with = "token")]
    pub token_env: Option<String>,
    /// Allow web pages of this origin to call; may be repeated.
    #[arg(long, value_name = "ORIGIN", requires = "http")]
    pub allow_origin: Vec<String>,
    /// The editing tools to offer: by text, by anchored lines, by patches; by default all.
    #[arg(long, value_parser = choice(&DIALECTS), value_delimiter = ',', value_name = "DIALECTS")]
    pub dialects: Option<Vec<EditDialect>>,
    #[command(flatten)]
    pub place: PlaceArgs,
}

#[derive(Arguments)]
pub(crate) struct HookArgs {
    /// The client that runs the hook.
    #[arg(value_name = "CLIENT")]
    pub client: String,
    /// The event, for clients that do not send it in the input.
    pub event: Option<String>,
}

impl HookArgs {
    /// Parses `hook CLIENT [EVENT]` without options, the form that agents call all the time. Building the whole clap
    /// command for it would take as long as the answer.
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

fn clients_help() -> String {
    let names: Vec<&str> = init::clients::InitClient::all().map(|client| client.name()).collect();
    let names = names.join(", ");
    format!("Clients: {names}; by default those that are installed, or with --remove those that are set up")
}

#[derive(Arguments)]
pub(crate) struct InitArgs {
    #[arg(value_enum, value_name = "CLIENT", hide_possible_values = true, help = clients_help())]
    pub clients: Vec<init::clients::InitClient>,
    /// `me`: you in this project, in files that git ignores. `everywhere`: you in all projects. `project`: everyone in
    /// this project, in files to commit. By default the scope in which the client is already set up, else `me`.
    #[arg(long, value_enum, value_name = "SCOPE", hide_possible_values = true)]
    pub scope: Option<init::config_dirs::ConfigScope>,
    /// Add the MCP server as well. Clients without hooks always get it, except in the scope `project`.
    #[arg(long, conflicts_with = "remove")]
    pub mcp: bool,
    /// Remove what init wrote, and nothing else.
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
    /// The requested scope, also by its former option names.
    pub(crate) fn scope(&self) -> Option<init::config_dirs::ConfigScope> {
        use init::config_dirs::ConfigScope;
        self.scope.or(self.user.then_some(ConfigScope::Everywhere)).or(self.project.then_some(ConfigScope::Project))
    }
}

#[derive(Arguments)]
pub(crate) struct CompletionsArgs {
    /// The shell to complete in.
    pub shell: clap_complete::Shell,
}

#[derive(Arguments)]
pub(crate) struct ManArgs {
    /// Write a page for each command into this directory.
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
}

#[derive(Arguments)]
pub(crate) struct SelfArgs {
    /// Print a JSON object.
    #[arg(long)]
    pub json: bool,
}

#[derive(Arguments)]
pub(crate) struct CallArgs {
    #[arg(help = tools_help())]
    pub tool: String,
    /// Its arguments as a JSON object; `-` reads them from standard input.
    #[arg(default_value = "{}")]
    pub arguments: String,
    /// The session of the call: reads count for later calls of the same session.
    #[arg(long, value_name = "ID", default_value = "cli", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub session: String,
    /// Print the result object, including the text.
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub place: PlaceArgs,
}

fn tools_help() -> String {
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
pub(crate) struct BoardArgs {
    #[command(subcommand)]
    pub act: Option<BoardAct>,
    /// Show it again whenever it changes, until Ctrl-C.
    #[arg(long, short)]
    pub watch: bool,
    /// Print a JSON object.
    #[arg(long, global = true)]
    pub json: bool,
    #[command(flatten)]
    pub place: PlaceArgs,
}

#[derive(Subcommand)]
pub(crate) enum BoardAct {
    /// Give this repository, with all its worktrees, this id. For clones without a remote or with only part of the
    /// history.
    Join {
        /// The id, as `surehand board` prints it in the other clone.
        #[arg(value_name = "ID")]
        id: String,
    },
    /// Claim paths, so that no other agent changes them.
    Claim {
        /// A path or a pattern: `src/**` is a directory and everything below it.
        #[arg(value_name = "GLOB")]
        pattern: String,
        /// How long the claim lasts unless it is released.
        #[arg(long = "for", value_name = "TIME", default_value = "1h", value_parser = time_span)]
        lasts: Duration,
    },
    /// Release a claim on paths, even one that an agent holds.
    Release {
        /// The pattern of the claim.
        #[arg(value_name = "GLOB")]
        pattern: String,
    },
    /// Add a task that any agent of any checkout can claim.
    Add {
        /// What to do.
        description: String,
        /// The story that the task belongs to.
        #[arg(long, value_name = "NAME", default_value = "")]
        story: String,
        /// 1 comes first.
        #[arg(long, value_name = "N", default_value_t = 100)]
        priority: u32,
    },
    /// Take tasks back from the agents that hold them, and offer them again.
    Reopen(TaskIds),
    /// Mark tasks as completed.
    Complete(TaskIds),
    /// Mark tasks as cancelled.
    Cancel(TaskIds),
}

/// Parses `30m`, `12h`, `7d`, `2w`.
fn time_span(text: &str) -> Result<Duration, String> {
    let wrong = || "give a number and a unit, as in 30m, 12h, 7d or 2w".to_owned();
    let (number, unit) = text.split_at_checked(text.len().saturating_sub(1)).ok_or_else(wrong)?;
    let seconds = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => 86_400,
        "w" => 7 * 86_400,
        _ => return Err(wrong()),
    };
    let number: u32 = number.parse().map_err(|_| wrong())?;
    Ok(Duration::from_secs(u64::from(number) * seconds))
}

#[derive(Arguments)]
pub(crate) struct HelperArgs {
    /// Start the helper in the background.
    #[arg(long, conflicts_with_all = ["status", "stop"])]
    pub detach: bool,
    /// Show what the helper is doing.
    #[arg(long, conflicts_with = "stop")]
    pub status: bool,
    /// Stop the helper.
    #[arg(long)]
    pub stop: bool,
    /// Print a JSON object.
    #[arg(long)]
    pub json: bool,
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
    /// Only entries about this file, or about files in this directory; checkpoints are left out.
    pub path: Option<String>,
    /// Only entries of this session.
    #[arg(long, value_name = "SESSION")]
    pub session: Option<String>,
    /// Only these kinds, separated by commas.
    #[arg(long, value_parser = choice(&ActivityKind::NAMES), value_delimiter = ',', value_name = "KINDS")]
    pub kind: Vec<ActivityKind>,
    #[command(flatten)]
    pub list: ListArgs,
    #[command(flatten)]
    pub pager: PagerArgs,
}

#[derive(Arguments)]
pub(crate) struct ListArgs {
    /// At most this many, the latest ones.
    #[arg(long, short = 'n', value_name = "N", default_value_t = 20)]
    pub limit: usize,
    /// Print a JSON array.
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub place: PlaceArgs,
}

#[derive(Arguments)]
pub(crate) struct ShowArgs {
    /// The id of an entry in `surehand log`, `surehand rescued` or `surehand runs`, or the beginning of it; a
    /// checkpoint also by the name that you gave it.
    pub id: String,
    /// For a run: only this turn, with the answer, each call and its result, and the whole prompt if it was recorded.
    pub turn: Option<u32>,
    #[command(flatten)]
    pub pager: PagerArgs,
    #[command(flatten)]
    pub state: StateArgs,
}

#[derive(Arguments)]
pub(crate) struct SessionsArgs {
    /// Only this session, with all files that it has seen.
    #[arg(value_name = "SESSION")]
    pub session: Option<String>,
    #[command(flatten)]
    pub list: ListArgs,
}

#[derive(Arguments)]
pub(crate) struct RescuedArgs {
    #[command(subcommand)]
    pub act: Option<RescuedAct>,
    /// Print a JSON object, or without a command an array.
    #[arg(long, global = true)]
    pub json: bool,
    #[command(flatten)]
    pub place: PlaceArgs,
}

#[derive(Subcommand)]
pub(crate) enum RescuedAct {
    /// Show it as a diff against the current file.
    Show {
        /// Its id, or the beginning of it.
        id: String,
    },
    /// Write it to the file that it was meant for. `undo` takes that back.
    Apply {
        /// Its id, or the beginning of it.
        id: String,
        /// Write it to this file instead.
        #[arg(long, value_name = "PATH")]
        to: Option<String>,
        /// Overwrite existing content without asking.
        #[arg(long, short)]
        yes: bool,
    },
    /// Drop it. `apply` still finds it as long as its content is kept.
    Drop {
        /// Their ids, or the beginnings of them.
        #[arg(required = true, value_name = "ID")]
        ids: Vec<String>,
        /// Drop without asking.
        #[arg(long, short)]
        yes: bool,
    },
}

#[derive(Arguments)]
pub(crate) struct PagerArgs {
    /// Do not use a pager. On a terminal, long output goes to SUREHAND_PAGER, PAGER or `less -FRX`.
    #[arg(long)]
    pub no_pager: bool,
}

#[derive(Arguments)]
pub(crate) struct BlameArgs {
    /// The file; a removed file shows its last lines.
    #[arg(value_name = "FILE")]
    pub path: String,
    /// Only these lines: `10,20`, `10,+5`, `10,` to the end, `,20` from the top, or `10` to the end. May be repeated.
    #[arg(short = 'L', value_name = "START,END", value_parser = LineSpan::parse)]
    pub lines: Vec<LineSpan>,
    #[command(flatten)]
    pub pager: PagerArgs,
    #[command(flatten)]
    pub state: StateArgs,
}

/// Lines as typed, counted from 1, with the last one included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LineSpan {
    pub first: usize,
    /// `None` means the last line of the file.
    pub last: Option<usize>,
}

impl LineSpan {
    fn parse(typed: &str) -> Result<Self, String> {
        let (start, end) = typed.split_once(',').unwrap_or((typed, ""));
        let number = |typed: &str| match typed.parse::<usize>() {
            Ok(0) => Err("lines are counted from 1".to_owned()),
            Ok(number) => Ok(number),
            Err(_) => {
                Err(format!("{typed:?} is not the number of a line; write START,END like 10,20 or START,+COUNT like 10,+5"))
            }
        };
        let first = if start.is_empty() && !end.is_empty() { 1 } else { number(start)? };
        let last = match end.strip_prefix('+') {
            Some(count) => Some(first.saturating_add(number(count)? - 1)),
            None if end.is_empty() => None,
            None => Some(number(end)?),
        };
        match last {
            Some(last) if last < first => Err(format!("line {last} is above line {first}")),
            _ => Ok(Self { first, last }),
        }
    }
}

#[derive(Arguments)]
pub(crate) struct DiffArgs {
    #[command(flatten)]
    pub selection: SelectionArgs,
    /// For a session: also the lines that are committed. Compares with what the session found, not with the commit at
    /// HEAD.
    #[arg(long)]
    pub committed: bool,
    /// Print a patch for `git apply`: with modes, renames and binary files, and paths from the top of the work tree.
    #[arg(long, conflicts_with = "json")]
    pub patch: bool,
    /// Print a JSON array of files, each with its diff.
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub pager: PagerArgs,
    #[command(flatten)]
    pub place: PlaceArgs,
}

#[derive(Arguments)]
pub(crate) struct UndoArgs {
    #[command(flatten)]
    pub selection: SelectionArgs,
    #[command(flatten)]
    pub result: UndoResultArgs,
}

#[derive(Arguments)]
pub(crate) struct UndoResultArgs {
    /// Overwrite later changes. You can undo that as well.
    #[arg(long)]
    pub force: bool,
    /// Print the result object.
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub place: PlaceArgs,
}

#[derive(Arguments)]
pub(crate) struct RedoArgs {
    /// The last undo by this session. By default, the last one by anyone.
    #[arg(long, value_name = "ID")]
    pub session: Option<String>,
    #[command(flatten)]
    pub result: UndoResultArgs,
}

#[derive(Arguments)]
pub(crate) struct SelectionArgs {
    /// A file, to select its last change, or the id of a change from `surehand log`; by default the last change.
    #[arg(value_name = "PATH|CHANGE", conflicts_with = "session")]
    pub what: Option<String>,
    /// All changes of this session.
    #[arg(long, value_name = "ID")]
    pub session: Option<String>,
}

#[derive(Arguments)]
pub(crate) struct CommitArgs {
    /// The session whose lines are committed.
    #[arg(long, value_name = "SESSION")]
    pub session: String,
    /// The commit message. May be repeated, one paragraph each.
    #[arg(short = 'm', long = "message", value_name = "MESSAGE", required_unless_present = "dry_run")]
    pub messages: Vec<String>,
    /// Only these files, and the files in these directories.
    #[arg(value_name = "PATH")]
    pub paths: Vec<String>,
    /// Print what would be committed, as a patch, and commit nothing.
    #[arg(long)]
    pub dry_run: bool,
    #[command(flatten)]
    pub state: StateArgs,
}

#[derive(Arguments)]
pub(crate) struct CheckpointArgs {
    /// A name for it, which `restore --to` accepts.
    pub name: Option<String>,
    #[command(flatten)]
    pub state: StateArgs,
}

#[derive(Arguments)]
pub(crate) struct RestoreArgs {
    /// Files and directories; without any, everything in the workspace.
    #[arg(value_name = "PATH")]
    pub paths: Vec<String>,
    /// The target: a time (10m ago, 14:05, 2026-01-31T14:05:00Z), or the id of a change or checkpoint from `surehand
    /// log`, or the beginning of one.
    #[arg(long, value_name = "TIME|CHANGE|CHECKPOINT")]
    pub to: String,
    #[command(flatten)]
    pub consent: ConsentArgs,
}

#[derive(Arguments)]
pub(crate) struct ConsentArgs {
    /// Do it without asking.
    #[arg(long, short)]
    pub yes: bool,
    /// Print what would be done, and do nothing.
    #[arg(long, conflicts_with = "yes")]
    pub dry_run: bool,
    /// Print a JSON object. Does not ask, so it does nothing without --yes.
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub place: PlaceArgs,
}

#[derive(Arguments)]
pub(crate) struct UsageArgs {
    /// Everything that is stored for you, including repositories that are gone.
    #[arg(long, conflicts_with = "root")]
    pub all: bool,
    #[command(flatten)]
    pub state: StateArgs,
}

#[derive(Arguments)]
#[group(id = "kind", required = true, multiple = true, args = ["sessions", "versions", "runs", "rescued", "gone"])]
pub(crate) struct CleanArgs {
    /// What sessions have seen, except sessions that were active in the last 30 minutes. Their changes stay.
    #[arg(long)]
    pub sessions: bool,
    /// The history behind `undo`, `restore`, `log` and `diff`: versions, changes, checkpoints and other log entries.
    #[arg(long, requires = "older_than")]
    pub versions: bool,
    /// Runs of `surehand run`, except those that a process is still working on.
    #[arg(long)]
    pub runs: bool,
    /// Rescued files, except those that a program has open.
    #[arg(long)]
    pub rescued: bool,
    /// Everything stored for work trees that are gone: of this repository, and of all your directories and
    /// repositories.
    #[arg(long)]
    pub gone: bool,
    /// Only data older than this: 30m, 12h, 7d, 2w. Does not apply to --gone.
    #[arg(long, value_name = "AGE", value_parser = time_span)]
    pub older_than: Option<Duration>,
    #[command(flatten)]
    pub consent: ConsentArgs,
}

impl CleanArgs {
    /// Whether anything is to be removed that belongs to one repository.
    pub(crate) fn is_about_a_workspace(&self) -> bool {
        self.sessions || self.versions || self.runs || self.rescued
    }
}

#[derive(Arguments)]
pub(crate) struct PageArgs {
    /// Open the page in the browser.
    #[arg(long)]
    pub open: bool,
    /// Listen on this port of 127.0.0.1; by default any free one.
    #[arg(long, value_name = "PORT", default_value_t = 0, hide_default_value = true)]
    pub port: u16,
}

#[derive(Arguments)]
pub(crate) struct UiArgs {
    #[command(flatten)]
    pub page: PageArgs,
    /// Write a report of a session to this new file instead, which needs no server; `-` prints it.
    #[arg(long, value_name = "FILE.html", conflicts_with_all = ["open", "port"])]
    pub export: Option<PathBuf>,
    /// The session of the report; by default the one that was active last.
    #[arg(long, value_name = "SESSION", requires = "export")]
    pub session: Option<String>,
    /// Print a JSON object: the address, or the file that was written.
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub place: PlaceArgs,
}

#[derive(Arguments)]
pub(crate) struct DemoArgs {
    /// Play another story and show it in the browser while it happens: stale edits are refused and repaired, and
    /// another program's text is rescued.
    #[arg(long)]
    pub ui: bool,
    #[command(flatten)]
    pub page: PageArgs,
    /// Print one JSON object with the counts; with --ui, the address.
    #[arg(long)]
    pub json: bool,
}

#[derive(Arguments)]
pub(crate) struct PlaceArgs {
    /// The workspace; by default the work tree around the current directory, else that directory. Surehand changes
    /// nothing outside it.
    #[arg(long, value_name = "DIR", global = true)]
    pub root: Option<PathBuf>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_is_a_number_and_a_unit() {
        for (text, seconds) in [("0s", 0), ("30m", 1800), ("12h", 43_200), ("7d", 604_800), ("2w", 1_209_600)] {
            assert_eq!(time_span(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        for text in ["", "d", "7", "-1d", "1.5h", "7 d", "7y", "99999999999d", "é"] {
            assert!(time_span(text).is_err(), "{text}");
        }
    }
}
