//! Standard output. It may be closed or full; that is an error like any other, not a reason to panic.

use std::io::{self, Write};

use anyhow::Context;

/// Prints text. Colours are left out where nobody sees them.
pub fn print(text: &str) -> anyhow::Result<()> {
    let mut out = anstream::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).context("standard output")
}

/// Whether the reader of our output has gone away.
pub fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}
