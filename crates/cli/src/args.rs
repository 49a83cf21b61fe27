//! What can be typed.

use std::path::PathBuf;

use clap::{Args as Arguments, Parser, Subcommand};

/// The file-state layer for coding agents: knows what a model has seen of each file, and keeps everybody's changes safe.
#[derive(Parser)]
#[command(name = "surehand", version, max_term_width = 100)]
pub struct Args {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Subcommand)]
pub enum Command {
    /// Serve the file tools to an MCP client over standard input and output.
    Mcp(McpArgs),
    /// Call one tool from a shell or script; exit code 1 when it is refused.
    Call(CallArgs),
    /// Show what is there, what changed outside, and what is left to do.
    Status(StateArgs),
    /// Print the state of the repository as a model gets it.
    Snapshot(StateArgs),
    /// List the tasks, or add and change them.
    Tasks(TasksArgs),
    /// List the changes that were made, newest first.
    Log(LogArgs),
    /// Show what a change did: the last one, the last one of a file, a named one, or all of a session.
    Diff(DiffArgs),
    /// Take a change back: the last one, the last one of a file, a named one, or all of a session.
    Undo(UndoArgs),
    /// Walk the whole workspace and say what was created, modified and deleted since the last scan.
    Scan(ScanArgs),
    /// Play a story through the real tools and print what a model would see. Needs no key, no network.
    Demo(DemoArgs),
}

#[derive(Arguments)]
pub struct McpArgs {
    #[command(flatten)]
    pub place: PlaceArgs,
}

#[derive(Arguments)]
pub struct CallArgs {
    #[arg(help = tools())]
    pub tool: String,
    /// Its arguments as a JSON object; `-` reads them from standard input.
    #[arg(default_value = "{}")]
    pub arguments: String,
    /// Whose call it is: what was read counts for calls with the same name.
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
    let names: Vec<&str> = surehand_engine::tools::TABLE.iter().map(|tool| tool.name).collect();
    format!("The tool: {}", names.join(", "))
}

#[derive(Arguments)]
pub struct StateArgs {
    /// Print a JSON object.
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub place: PlaceArgs,
}

#[derive(Arguments)]
pub struct TasksArgs {
    #[command(subcommand)]
    pub act: Option<TasksAct>,
    /// Print a JSON object.
    #[arg(long, global = true)]
    pub json: bool,
    #[command(flatten)]
    pub place: PlaceArgs,
}

#[derive(Subcommand)]
pub enum TasksAct {
    /// Add a task.
    Add {
        /// What is to be done.
        description: String,
        /// 1 comes first; without it the task comes last.
        #[arg(long, value_name = "N")]
        priority: Option<u32>,
    },
    /// Say that a task is begun.
    Start {
        /// Its number.
        id: u32,
    },
    /// Say that a task is completed.
    Complete {
        /// Its number.
        id: u32,
    },
    /// Say that a task is still to be done.
    Reopen {
        /// Its number.
        id: u32,
    },
    /// Change the words or the priority of a task.
    Edit {
        /// Its number.
        id: u32,
        /// What is to be done.
        description: Option<String>,
        /// 1 comes first.
        #[arg(long, value_name = "N")]
        priority: Option<u32>,
    },
    /// Say what the work is about.
    Story {
        /// The name or number of a story or ticket.
        id: String,
    },
}

#[derive(Arguments)]
pub struct LogArgs {
    /// Only changes of this file.
    pub path: Option<String>,
    /// Only changes of this session.
    #[arg(long, value_name = "ID")]
    pub session: Option<String>,
    /// At most this many changes.
    #[arg(long, short = 'n', value_name = "N", default_value_t = 20)]
    pub limit: usize,
    /// Print a JSON array of changes.
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub place: PlaceArgs,
}

#[derive(Arguments)]
pub struct DiffArgs {
    #[command(flatten)]
    pub selection: SelectionArgs,
    /// Print a JSON array of files, each with its diff.
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub place: PlaceArgs,
}

#[derive(Arguments)]
pub struct UndoArgs {
    #[command(flatten)]
    pub selection: SelectionArgs,
    /// Overwrite what has been done since. It can be brought back in turn.
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
pub struct SelectionArgs {
    /// A file, for its last change, or the name of a change as `surehand log` shows it; without it, the last change.
    #[arg(value_name = "PATH|CHANGE", conflicts_with = "session")]
    pub what: Option<String>,
    /// Everything that this session changed.
    #[arg(long, value_name = "ID")]
    pub session: Option<String>,
}

#[derive(Arguments)]
pub struct ScanArgs {
    /// Print one JSON object.
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub place: PlaceArgs,
}

#[derive(Arguments)]
pub struct DemoArgs {
    /// Print one JSON object per step instead of a story.
    #[arg(long)]
    pub json: bool,
}

#[derive(Arguments)]
pub struct PlaceArgs {
    /// The workspace; by default the nearest parent with .surehand or .git, else the current directory.
    #[arg(long, value_name = "DIR", global = true)]
    pub root: Option<PathBuf>,
}
