//! The instructions that a repository has for a directory (`AGENTS.md`), each given to a model once.
//!
//! Run it: `cargo run -p surehand-engine --example directory_instructions`
#![expect(clippy::disallowed_methods, clippy::print_stdout, reason = "an example prints, and plays other programs")]

use std::{error::Error, fs};

use surehand_engine::{Call, Config, ListCall, Session, StateHome, ToolNames, Workspace, render};

/// Runs the example.
pub fn main() -> Result<(), Box<dyn Error>> {
    let dir = tempfile::tempdir()?;
    fs::create_dir_all(dir.path().join("web/src"))?;
    fs::write(dir.path().join("AGENTS.md"), "Run the tests before you are done.\n")?;
    fs::write(dir.path().join("web/AGENTS.md"), "Indent with two spaces.\n")?;
    fs::write(dir.path().join("web/src/app.ts"), "export {};\n")?;
    let state = StateHome { user: Some(dir.path().join(".state")), ..StateHome::default() };
    let workspace = Workspace::open(dir.path(), Config { state, ..Config::default() })?;
    let mut session = Session::new(workspace);

    // Before the model works on a file: the instructions that apply there, parents first.
    let told = session.agents_md_if_new("web/src/app.ts").ok_or("there are two files")?;
    println!("{told}");
    assert!(told.find("Run the tests") < told.find("two spaces"));
    assert_eq!(session.agents_md_if_new("web/src/app.ts"), None, "it has them now");

    // Otherwise the outcome of a call about the directory has them, once they have changed.
    fs::write(dir.path().join("web/AGENTS.md"), "Indent with tabs.\n")?;
    let outcome = session.run(&Call::List(ListCall { path: Some("web".to_owned()), ..ListCall::default() }));
    println!("{}", render::text(&outcome, &ToolNames::default()));
    let changed = outcome.notes.instructions.ok_or("one of them has changed")?;
    assert_eq!(changed.paths().len(), 1);
    Ok(())
}
