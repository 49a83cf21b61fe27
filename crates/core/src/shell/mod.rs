//! Analyses shell commands without running them:
//!
//! - which lines of files their output shows ([`printed`]), decided from the output and the files, not from the
//!   command;
//! - which files they may be about ([`mentions`]);
//! - which text they contain, as in a here-document ([`own_text`]);
//! - whether they only read ([`only_reads`]), whether they may delete or overwrite other files ([`may_destroy`]), and
//!   whether a list allows them ([`covered`]).

mod allow_list;
mod here_documents;
mod may_destroy;
pub mod mentions;
pub mod own_text;
pub mod printed;
mod read_only;
mod side_effects;
mod words;

pub use allow_list::{covered, is_entry};
pub use may_destroy::may_destroy;
pub use read_only::{only_reads, only_reads_here};
