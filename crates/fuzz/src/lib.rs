//! Laws that must hold whatever bytes come in. A target takes bytes, makes a situation of them and panics if a law is broken; it says nothing
//! about who makes the bytes. That is the test beside it (the corpus and some mutations of it), `cargo xtask fuzz`, or `cargo fuzz` in `fuzz/`.
#![allow(clippy::disallowed_methods, reason = "targets play the other programs, in directories of their own")]

pub mod corpus;
mod json;
mod model;
pub mod mutate;
mod place;
mod source;
mod targets;

pub use targets::{TARGETS, Target, find};
