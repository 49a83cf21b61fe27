//! The ways to say what to change. Each turns its arguments into splices of bytes, or a cause to refuse them; none of them
//! decides who may do it.

pub mod find;
pub mod lines;
mod looks;
mod nearest;
pub mod patch;
mod region;
pub mod replace;
pub mod write;
