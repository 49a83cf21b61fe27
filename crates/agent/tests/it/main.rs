//! The tests of this crate that use its public interface, in one binary. `commands` is another one: it measures its process.

mod context;
mod models;
mod run;
mod shown;
