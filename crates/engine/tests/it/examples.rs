//! The examples do what they say.
#![allow(unreachable_pub, reason = "an example is a program of its own")]

#[path = "../../examples/anchored_edits.rs"]
mod anchored_edits;
#[path = "../../examples/directory_instructions.rs"]
mod directory_instructions;
#[path = "../../examples/own_tools.rs"]
mod own_tools;
#[path = "../../examples/repository_state.rs"]
mod repository_state;

#[test]
fn a_tracker_and_a_gate_around_own_tools() {
    own_tools::main().unwrap();
}

#[test]
fn the_state_of_a_repository_for_a_prompt() {
    repository_state::main().unwrap();
}

#[test]
fn anchored_edits_with_repair() {
    anchored_edits::main().unwrap();
}

#[test]
fn instructions_of_directories() {
    directory_instructions::main().unwrap();
}
