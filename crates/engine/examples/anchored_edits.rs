//! Edits of lines by their anchors, and the repair of one that came too late.
//!
//! Run it: `cargo run -p surehand-engine --example anchored_edits`
#![expect(clippy::disallowed_methods, clippy::print_stdout, reason = "an example prints, and plays other programs")]

use std::{error::Error, fs};

use surehand_engine::{
    Call, Config, Done, Edit, ReadCall, Session, StateHome, ToolNames, Workspace,
    core::{Anchor, LineNo, edit::lines::LineEdit},
    render,
};

/// Runs the example.
pub fn main() -> Result<(), Box<dyn Error>> {
    let dir = tempfile::tempdir()?;
    let file = dir.path().join("list.txt");
    fs::write(&file, "apples\nbread\ncheese\n")?;
    let state = StateHome { user: Some(dir.path().join(".state")), ..StateHome::default() };
    let workspace = Workspace::open(dir.path(), Config { state, ..Config::default() })?;
    let mut session = Session::new(workspace);

    // The model reads the lines with their anchors.
    let read = session.run(&Call::Read(ReadCall::whole("list.txt").with_anchors()));
    println!("{}", render::text(&read, &ToolNames::default()));
    let Ok(Done::Read(reading)) = &read.result else { return Err("it can be read".into()) };
    let line = LineNo::new(2).ok_or("lines are counted from 1")?;
    let bread = Anchor::of(line, reading.text.line(line));

    // Meanwhile another program adds a line above: the second line is the third now.
    fs::write(&file, "milk\napples\nbread\ncheese\n")?;

    // The edit is refused, because a number alone would have meant another line. The refusal says where the line is
    // now.
    let edit = |at: Anchor| Edit::Lines {
        path: "list.txt".to_owned(),
        edits: vec![LineEdit::Replace { at, to: at, text: "dark bread".to_owned() }],
    };
    let refused = session.edit(&edit(bread)).result.expect_err("the file has changed");
    println!("{refused}\n");
    let remap = refused.refusal.remaps().first().ok_or("the line is still there")?;

    // The same edit under the anchor that the line has now is proven to mean the same line, so no model need be asked.
    let outcome = session.edit(&edit(remap.to));
    println!("{}", render::text(&outcome, &ToolNames::default()));
    outcome.result?;
    assert_eq!(fs::read_to_string(&file)?, "milk\napples\ndark bread\ncheese\n");
    Ok(())
}
