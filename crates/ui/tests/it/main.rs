//! The tests of this crate that use its public interface, in one binary.

mod board;
mod served;
mod server;
mod strangers;
