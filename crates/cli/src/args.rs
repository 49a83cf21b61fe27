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
    /// The tool: read_file, edit_file, multi_edit, edit_lines, write_file, forget.
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

#[derive(Arguments)]
pub struct DemoArgs {
    /// Print one JSON object per step instead of a story.
    #[arg(long)]
    pub json: bool,
}

#[derive(Arguments)]
pub struct PlaceArgs {
    /// The workspace; by default the nearest parent with .surehand or .git, else the current directory.
    #[arg(long, value_name = "DIR")]
    pub root: Option<PathBuf>,
}
