//! `surehand mcp`: the MCP server.

use std::process::ExitCode;

use anyhow::Context;
use surehand_engine::Session;

use crate::{args::McpArgs, place};

pub fn run(args: &McpArgs) -> anyhow::Result<ExitCode> {
    let workspace = place::open(&args.place)?;
    workspace.start_watching();
    surehand_adapters::mcp::serve_stdio(Session::new(workspace)).context("the connection failed")?;
    Ok(ExitCode::SUCCESS)
}
