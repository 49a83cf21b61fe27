//! The state of a repository for a prompt: what is open, what was done, what others have changed.
//!
//! Run it: `cargo run -p surehand-engine --example repository_state`
#![expect(clippy::disallowed_methods, clippy::print_stdout, reason = "an example prints, and plays other programs")]

use std::{error::Error, fs};

use surehand_engine::{
    Call, Config, Edit, NewTask, ReadCall, Session, StoreChoice, TasksCall, ToolNames, Workspace, WorkspaceOptions,
    core::tokens::estimate, render::snapshot::format_for_prompt,
};

/// Runs the example.
pub fn main() -> Result<(), Box<dyn Error>> {
    let dir = tempfile::tempdir()?;
    fs::write(dir.path().join("notes.md"), "# Notes\n")?;

    // The state need not outlive the process.
    let state = surehand_engine::StateHome { user: Some(dir.path().join(".state")), ..Default::default() };
    let config = Config { state, ..Config::default() };
    let options = WorkspaceOptions { config, store: StoreChoice::InMemory, ..WorkspaceOptions::default() };
    let workspace = Workspace::open_with(dir.path(), options)?;
    let mut session = Session::new(workspace.clone());

    let task = |description: &str| NewTask { description: description.to_owned(), priority: None };
    let add = vec![task("write the parser"), task("write its tests")];
    session.run(&Call::Tasks(TasksCall { add, story: Some("S-12".to_owned()), ..TasksCall::default() })).result?;
    session.run(&Call::Read(ReadCall::whole("notes.md"))).result?;
    session.edit(&Edit::write("src/parser.rs", "pub fn parse() {}\n")).result?;
    // Another program changes a file that the session has read.
    fs::write(dir.path().join("notes.md"), "# Notes\n\nUse a table.\n")?;

    let state = workspace.snapshot();
    let text = format_for_prompt(&state, &ToolNames::default());
    println!("{text}\n({} tokens at most)", estimate(&text));
    assert!(text.contains("write the parser") && text.contains("notes.md") && estimate(&text) < 500);
    Ok(())
}
