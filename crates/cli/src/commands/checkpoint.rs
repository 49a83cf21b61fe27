//! `surehand checkpoint`: saves the current state of the files.

use jiff::Zoned;
use surehand_engine::{
    checkpoint::CheckpointRequest,
    core::render::count,
    json,
    restore::reads_as_time,
    store::{CheckpointInfo, NotKept},
};

use crate::{args::CheckpointArgs, output, workspace};

pub(crate) fn run(args: &CheckpointArgs) -> anyhow::Result<()> {
    let is_time = |name: &&String| reads_as_time(name, &Zoned::now());
    if let Some(name) = args.name.as_ref().filter(is_time) {
        anyhow::bail!("{name}: `surehand restore --to` takes this for a time; choose another name");
    }
    let workspace = workspace::open(&args.state.place)?;
    let name = args.name.as_ref().map(|name| name.trim().to_owned()).filter(|name| !name.is_empty());
    let request = CheckpointRequest { session: None, occasion: "surehand checkpoint".to_owned(), name };
    let checkpoint = workspace.checkpoint(&request)?;
    match args.state.json {
        true => output::print_json(&json::checkpoint(&checkpoint)),
        false => {
            let (summary, not_kept) = (summary(&checkpoint), not_kept(&checkpoint));
            let ago = output::ago(output::now() - checkpoint.at);
            output::print(&format!("\x1b[33m{}\x1b[0m {ago:>9}  {summary}\n{not_kept}", checkpoint.id))
        }
    }
}

pub(super) fn summary(checkpoint: &CheckpointInfo) -> String {
    let name = checkpoint.name.as_ref().map(|name| format!(" {name}")).unwrap_or_default();
    format!("checkpoint{name} ({}): {}", checkpoint.occasion, count(checkpoint.files, "file") + " not as committed")
}

/// The files that the checkpoint does not contain, with the reasons.
pub(super) fn not_kept(checkpoint: &CheckpointInfo) -> String {
    const MOST: usize = 5;
    let line = |left: &NotKept| format!("    {} not kept: {}\n", left.path, left.why);
    output::listed(&checkpoint.not_kept, MOST, line, |more| format!("    {more} more not kept (--json lists them)\n"))
}
