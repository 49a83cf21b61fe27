//! The tests of this crate that use its public interface, in one binary. `commands` is separate, because it measures
//! its process.

mod attended;
mod context;
mod hostile_servers;
mod loops;
mod models;
mod person;
mod run;
mod shown;
