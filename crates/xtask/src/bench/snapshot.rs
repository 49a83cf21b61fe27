//! The state of a large repository as a model gets it: the time to render it, and its tokens.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use bpe_openai::o200k_base;
use serde_json::json;

use crate::bench::scan::{keep, path};
use crate::bench::tool_dialect::Edit;
use crate::bench::{Bench, Contender};
use crate::measurement::Summary;

/// Files that are read, and the part of them that is edited, so that the state has content.
const READ: usize = 40;
const EDITED: usize = 10;

pub(crate) struct Snapshot {
    /// Round trips of `repo_state`.
    pub call: Summary,
    /// Runs of `surehand snapshot`, from the start of the process to its end.
    pub command: Summary,
    /// Tokens by the tokenizer o200k.
    pub tokens: usize,
}

/// Measures in the tree of the scan.
pub(super) fn measure(bench: &Bench, root: &Path) -> Result<Snapshot> {
    let launch = &bench.fast.surehand;
    let mut contender = Contender::start(launch, root)?;
    for file in 0..READ {
        contender.read(&path(file))?;
    }
    for file in 0..EDITED {
        contender.edit(&Edit { path: path(file), from: 0, to: 1 })?;
    }
    let (mut calls, mut commands) = (Vec::<Duration>::new(), Vec::<Duration>::new());
    let mut text = String::new();
    for _ in 0..bench.pace.pick(10, 40) {
        let answer = contender.client.call("repo_state", json!({}))?;
        calls.push(answer.took());
        text = answer.text;
        let output = keep(&mut commands, || {
            Command::new(launch.program()).args(["snapshot", "--root"]).arg(root).output().context("surehand snapshot")
        })?;
        ensure!(output.status.success(), "surehand snapshot: {}", String::from_utf8_lossy(&output.stderr));
    }
    let tokens = o200k_base().count(text.as_str());
    Ok(Snapshot { call: Summary::of(&calls), command: Summary::of(&commands), tokens })
}
