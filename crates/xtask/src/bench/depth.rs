//! Further work of an edit of a large file: moving it to the current place of its lines, and undoing it.

use std::fs;

use anyhow::{Context, Result, ensure};
use serde_json::json;

use crate::bench::Bench;
use crate::bench::client::Client;
use crate::files::create;
use crate::machine;
use crate::measurement::Summary;

/// Lines of the file.
pub(super) const LINES: usize = 10_000;

/// The line that is edited, somewhere in the middle.
const EDITED: usize = LINES / 2;

pub(crate) struct Depth {
    /// The kinds of calls with their times.
    pub rows: Vec<(&'static str, Summary)>,
}

/// Measures edits of a file without other writers, edits of a file that another program changes before each, and undos.
pub(super) fn measure(bench: &Bench) -> Result<Depth> {
    let root = bench.workspace()?;
    let lines: String =
        (1..=LINES).map(|line| if line == EDITED { "value 0\n".to_owned() } else { format!("line {line} of it\n") }).collect();
    create(&root, "large.txt", &lines)?;
    machine::settle();
    let rebasing = bench.fast.surehand.with_setting("SUREHAND_POLICY_ON_CHANGE", "rebase");
    let mut client = Client::start(&rebasing, &root)?;
    let around = json!([{ "start": EDITED - 5, "end": EDITED + 5 }]);
    client.call("read_file", json!({ "path": "large.txt", "ranges": around }))?;
    let (mut plain, mut rebased, mut undone) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..bench.pace.pick(40, 200) {
        let edit = |from: usize| {
            let (old, new) = (format!("value {from}\n"), format!("value {}\n", from + 1));
            json!({ "path": "large.txt", "old_string": old, "new_string": new })
        };
        plain.push(client.call("edit_file", edit(round))?.took());
        undone.push(client.call("undo", json!({}))?.took());
        let path = root.join("large.txt");
        let now = fs::read_to_string(&path).context("large.txt")?;
        create(&root, "large.txt", &format!("somebody's line {round}\n{now}"))?;
        let answer = client.call("edit_file", edit(round))?;
        ensure!(answer.text.contains("made at their new place"), "not rebased: {}", answer.text);
        rebased.push(answer.took());
    }
    let rows = [("edit", plain), ("edit, rebased", rebased), ("undo", undone)];
    Ok(Depth { rows: rows.map(|(label, times)| (label, Summary::of(&times))).into() })
}
