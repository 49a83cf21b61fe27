//! An agent with tools of its own, guarded by the gate.
//!
//! The agent reads and writes files itself. It reports to a session what its tools have shown, and asks before an edit
//! is made: an edit of a file that the model has not seen, or that has changed since, is refused, and the refusal shows
//! the model what it needs.
//!
//! Run it: `cargo run -p surehand-engine --example own_tools`
#![expect(clippy::disallowed_methods, clippy::print_stdout, reason = "an example prints, and plays other programs")]

use std::{error::Error, fs};

use surehand_engine::{
    Config, Edit, Session, StateHome, Tool, ToolNames, Workspace,
    core::edit::{UndoRequest, UndoTarget, WhoseChanges},
    render,
};

/// Runs the example.
pub fn main() -> Result<(), Box<dyn Error>> {
    let dir = tempfile::tempdir()?;
    let file = dir.path().join("project/main.rs");
    fs::create_dir(dir.path().join("project"))?;
    fs::write(&file, "fn main() {\n    println!(\"hello\");\n}\n")?;

    // In a git repository the state is kept in `.git/surehand`; here there is none, so it gets a place of its own.
    let state = StateHome { user: Some(dir.path().join("state")), ..StateHome::default() };
    let workspace = Workspace::open(&dir.path().join("project"), Config { state, ..Config::default() })?;
    let mut session = Session::new(workspace);
    // The model's names for its tools: every text that it reads uses these.
    let names = ToolNames::reading_with("cat").with(Tool::EditFile, "sed").with(Tool::WriteFile, "tee");

    // The model has not read the file.
    let edit = Edit::replace("main.rs", "hello", "good morning");
    let refused = session.foreign_tools().judge(&edit, &[]).err().ok_or("it was never read")?;
    println!("{}", render::text(&refused, &names));

    // The agent's own tool shows it, and says so.
    let content = fs::read_to_string(&file)?;
    session.foreign_tools().record_shown("main.rs", 1, &content);
    assert!(session.foreign_tools().judge(&edit, &[]).is_ok(), "now it may be edited");

    // Before the edit is made, a person saves the file. The refusal shows the lines that changed, and they count as
    // read.
    fs::write(&file, content.replace("hello", "hello, world"))?;
    let refused = session.foreign_tools().judge(&edit, &[]).err().ok_or("it has changed")?;
    println!("{}", render::text(&refused, &names));

    // The model has seen them now. The agent's own tool makes the edit, and the session records it as one that can be
    // undone.
    let allowed = session.foreign_tools().judge(&edit, &[]).map_err(|_| "the model knows the file")?;
    fs::write(&file, fs::read_to_string(&file)?.replace("hello", "good morning"))?;
    session.foreign_tools().adopt(&allowed.edit, &[]);
    let undone = session.edit(&Edit::Undo(UndoRequest { which: UndoTarget::Last, by: WhoseChanges::Mine, force: false }));
    println!("{}", render::text(&undone, &names));
    assert_eq!(fs::read_to_string(&file)?, "fn main() {\n    println!(\"hello, world\");\n}\n");
    Ok(())
}
