//! `surehand diff`: what a change did.

use std::process::ExitCode;

use serde_json::{Value, json};
use surehand_engine::{Session, changes::net};

use crate::{args::DiffArgs, output, place};

pub fn run(args: &DiffArgs) -> anyhow::Result<ExitCode> {
    let workspace = place::open(&args.place)?;
    let session = Session::untracked(workspace.clone());
    let selection = place::selection(&args.selection, &session)?;
    let events = workspace.select(&selection)?;
    anyhow::ensure!(!events.is_empty(), "there is no such change");
    let mut files = Vec::new();
    for file in net(&events).into_iter().filter(|file| !file.is_nothing()) {
        let Some(diff) = workspace.diff(&file) else {
            anyhow::bail!("{}: what it was is no longer kept", file.path_before);
        };
        if args.json {
            let (before, after) = (file.before, file.after);
            files.push(
                json!({ "path": file.path_after, "from": file.path_before, "before": before, "after": after, "diff": diff }),
            );
        } else {
            output::print(&coloured(&diff))?;
        }
    }
    if args.json {
        output::print(&format!("{:#}\n", Value::Array(files)))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Removed lines red, added lines green, places blue. Taken off again where it is not a terminal.
pub fn coloured(diff: &str) -> String {
    let colour = |line: &str| match line.as_bytes().first() {
        _ if line.starts_with("---") || line.starts_with("+++") || line.starts_with("diff ") => "1",
        Some(b'-') => "31",
        Some(b'+') => "32",
        Some(b'@') => "36",
        _ => "",
    };
    let line = |line: &str| match colour(line) {
        "" => line.to_owned(),
        colour => format!("\x1b[{colour}m{}\x1b[0m\n", line.trim_end_matches('\n')),
    };
    diff.split_inclusive('\n').map(line).collect()
}
