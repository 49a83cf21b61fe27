//! The tests of this crate that use its public interface, in one binary.

mod hook_protocol;
mod hooks;
