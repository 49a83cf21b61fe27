//! The opening of the demo: a stale edit that is refused and repaired, and a late save that is rescued. Both really
//! happen, in a temporary directory.

use std::{fs, path::Path, sync::Arc};

use anyhow::{Context, ensure};
use surehand_engine::{Call, Edit, ReadCall, Session, ToolNames, Workspace, render};

use super::{
    other_programs::{save, save_into_open_file},
    play::open_workspace,
};
use crate::display::wrap::wrap_words;

const FILE: &str = "greet.py";
const BEFORE: &str = "def greet(name):\n    print('hello', name)\n";
const SAVED: &str = "def greet(name):\n    name = name.strip()\n    print('hello', name)\n";
/// The line that the late save adds.
const LATE: &str = "greet('you')\n";

/// Plays both, and returns the text that describes them.
pub(super) fn play() -> anyhow::Result<String> {
    let (tree, state) = (tempfile::tempdir().context("a temporary directory")?, tempfile::tempdir()?);
    let open = || open_workspace(tree.path(), state.path());
    let refused = play_refusal(tree.path(), open()?)?;
    let rescued = play_rescue(tree.path(), &open)?;
    Ok(format!("{refused}\n{rescued}"))
}

fn play_refusal(root: &Path, workspace: Arc<Workspace>) -> anyhow::Result<String> {
    let file = root.join(FILE);
    save(&file, BEFORE)?;
    let mut session = Session::new(workspace);
    session.run(&Call::Read(ReadCall::whole(FILE))).result?;
    save(&file, SAVED)?;
    let edit = Edit::replace(FILE, "'hello'", "'hi'");
    let refused = session.edit(&edit);
    ensure!(refused.is_refused(), "a stale edit was not refused");
    let refusal = render::text(&refused, &ToolNames::default());
    session.edit(&edit).result?;
    ensure!(fs::read_to_string(&file)?.contains("strip"), "the saved line was lost");
    Ok(format!(
        "1. A stale edit is refused\n\n{}\n\n  → edit_file {FILE}: 'hello' becomes 'hi'\n{}\n{}\n",
        paragraph(&format!(
            "A model has read {FILE}. Then you save a new line 2 in your editor, and the model edits what it remembers."
        )),
        indented(&refusal),
        paragraph("The model now knows your line and sends the edit again. It passes, and your line is still there."),
    ))
}

fn play_rescue(root: &Path, open: &dyn Fn() -> anyhow::Result<Arc<Workspace>>) -> anyhow::Result<String> {
    let file = root.join(FILE);
    let mut session = Session::new(open()?);
    session.run(&Call::Read(ReadCall::whole(FILE))).result?;
    save_into_open_file(&file, LATE, || {
        session.edit(&Edit::replace(FILE, "'hi'", "'good morning'")).result?;
        anyhow::Ok(())
    })?;
    // Displaced files are checked once no process has them open, or at the end at the latest.
    drop(session);
    let workspace = open()?;
    let rescues = workspace.rescues();
    let rescue = rescues.first().context("the late save was not rescued")?;
    let kept = String::from_utf8(workspace.rescued_content(rescue)?)?;
    ensure!(kept.ends_with(LATE), "the late save was not rescued");
    ensure!(fs::read_to_string(&file)?.contains("good morning"), "the edit was lost");
    Ok(format!(
        "2. A late save is rescued\n\n{}\n\n  $ surehand rescued\n  {}  {FILE}  {} bytes, with the line {}\n",
        paragraph(
            "Another program still has the old file open and saves into it, after the model's edit has replaced it. \
             The edit stands, and so does the save:"
        ),
        rescue.id,
        kept.len(),
        LATE.trim_end(),
    ))
}

/// Width of the text, for terminals that are no wider.
const WIDTH: usize = 79;

fn paragraph(text: &str) -> String {
    wrap_words(text, WIDTH).join("\n")
}

fn indented(text: &str) -> String {
    let lines = text.trim_end().lines().flat_map(|line| wrap_words(line, WIDTH - 4));
    lines.map(|line| format!("    {line}\n")).collect()
}
