//! The ways to say what to change. Each turns its arguments into splices of bytes, or a cause to refuse them; none of them
//! decides who may do it.

pub mod find;
pub mod lines;
pub mod patch;
pub mod replace;
pub mod write;
