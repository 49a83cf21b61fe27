//! `surehand helper`: the process that connects agents to the boards of their repositories.

use std::{sync::Arc, time::Duration};

use anyhow::Context;
use serde_json::json;
use surehand_engine::render::count;
use surehand_helper::{ServeError, ServeOptions, serve};

use crate::{args::HelperArgs, fleet, output};

/// How long the helper runs without agents.
const IDLE: Duration = Duration::from_secs(10 * 60);

pub(crate) fn run(args: &HelperArgs) -> anyhow::Result<()> {
    match () {
        () if args.detach => detach(),
        () if args.status => show_status(args.json),
        () if args.stop => stop(args.json),
        () => {
            // Its own session, so that it outlives the terminal and the process group of the caller that needed it
            // first.
            let _ = rustix::process::setsid();
            let connect = Arc::new(fleet::connect);
            let options = ServeOptions { dir: fleet::runtime_dir()?, program: fleet::VERSION.to_owned(), idle: IDLE, connect };
            match serve(options) {
                // Two callers may start it at once.
                Ok(()) | Err(ServeError::RunsAlready) => Ok(()),
                Err(error) => Err(error.into()),
            }
        }
    }
}

/// Starts the helper and ends, so that process 1 becomes the parent of the helper.
fn detach() -> anyhow::Result<()> {
    let _ = rustix::process::setsid();
    fleet::background_command()?.arg("helper").spawn().context("cannot start the helper")?;
    Ok(())
}

fn show_status(json: bool) -> anyhow::Result<()> {
    let status = fleet::helper()?.status()?;
    if json {
        return output::print_json(&json!({ "running": status.is_some(), "helper": status }));
    }
    let Some(status) = status else { return output::print("The helper does not run. It starts when an agent needs it.\n") };
    let mut text = format!("The helper runs as process {}, of surehand {}.\n", status.process, status.program);
    for board in &status.boards {
        let roots: Vec<String> = board.roots.iter().map(|root| root.display().to_string()).collect();
        text.push_str(&format!("{}: {} in {}\n", board.place, count(board.agents, "agent"), roots.join(", ")));
        text.extend(board.trouble.iter().map(|trouble| format!("    {trouble}\n")));
    }
    output::print(&text)
}

fn stop(json: bool) -> anyhow::Result<()> {
    let was_running = fleet::helper()?.stop()?;
    if json {
        return output::print_json(&json!({ "stopped": was_running }));
    }
    output::print(if was_running { "The helper has ended.\n" } else { "The helper did not run.\n" })
}
