//! Laws that hold for any input. A target turns bytes into a situation, and panics if a law is broken.
//!
//! The inputs come from `tests/replay.rs` (the corpus and mutations of it) and from `cargo fuzz` in `fuzz/` (by
//! coverage).
#![allow(clippy::disallowed_methods, reason = "targets play the other programs, in directories of their own")]

pub mod corpus;
mod json;
mod model;
mod sandbox;
mod source;
mod targets;

pub use targets::{TARGETS, Target, find};
