//! Commands of a shell, as far as something can be said about them without running them:
//!
//! - what their output shows of files ([`printed`]), which is decided by the output and the files, not by the command;
//! - which files they may be about ([`mentions`]);
//! - what they say themselves, as in a here-document ([`own_text`]);
//! - whether they only read ([`only_reads`]), whether they may delete or overwrite other files ([`may_destroy`]), and whether a
//!   list allows them ([`covered`]).

mod allow_list;
mod here_documents;
mod may_destroy;
pub mod mentions;
pub mod own_text;
pub mod printed;
mod read_only;
mod words;

pub use allow_list::{covered, is_entry};
pub use may_destroy::may_destroy;
pub use read_only::only_reads;
