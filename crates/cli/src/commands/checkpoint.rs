//! `surehand checkpoint`: keeps the state of the files as it is now.

use std::process::ExitCode;

use serde_json::{Value, json};
use surehand_engine::{checkpoint::CheckpointRequest, core::render::count, repo_state::rfc3339, store::CheckpointInfo};

use crate::{args::CheckpointArgs, output, workspace};

pub(crate) fn run(args: &CheckpointArgs) -> anyhow::Result<ExitCode> {
    let workspace = workspace::open(&args.place)?;
    let name = args.name.as_ref().map(|name| name.trim().to_owned()).filter(|name| !name.is_empty());
    let request = CheckpointRequest { session: None, occasion: "surehand checkpoint".to_owned(), name };
    let checkpoint = workspace.checkpoint(&request)?;
    match args.json {
        true => output::print(&format!("{:#}\n", as_json(&checkpoint)))?,
        false => output::print(&as_text(&checkpoint, output::now()))?,
    }
    Ok(ExitCode::SUCCESS)
}

/// A checkpoint as the log has it.
pub(crate) fn as_text(checkpoint: &CheckpointInfo, now: i64) -> String {
    const MOST: usize = 5;
    let name = checkpoint.name.as_ref().map(|name| format!(" {name}")).unwrap_or_default();
    let session = checkpoint.session.as_ref().map(|session| format!("  \x1b[2msession {session}\x1b[0m")).unwrap_or_default();
    let mut text = format!(
        "\x1b[33m{}\x1b[0m {:>9}  checkpoint{name} ({}): {}{session}\n",
        checkpoint.id,
        output::ago(now - checkpoint.at),
        checkpoint.occasion,
        count(checkpoint.files, "file") + " not as committed",
    );
    for left in checkpoint.not_kept.iter().take(MOST) {
        text.push_str(&format!("    {} not kept: {}\n", left.path, left.why));
    }
    if checkpoint.not_kept.len() > MOST {
        text.push_str(&format!("    {} more not kept (--json lists them)\n", checkpoint.not_kept.len() - MOST));
    }
    text
}

/// The same for programs.
pub(crate) fn as_json(checkpoint: &CheckpointInfo) -> Value {
    json!({
        "checkpoint": checkpoint.id,
        "name": checkpoint.name,
        "at": rfc3339(checkpoint.at),
        "until": rfc3339(checkpoint.until),
        "session": checkpoint.session,
        "occasion": checkpoint.occasion,
        "commit": checkpoint.commit,
        "files": checkpoint.files,
        "took_ms": checkpoint.took,
        "not_kept": checkpoint.not_kept,
    })
}
