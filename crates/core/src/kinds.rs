//! What a file is, by its name.

use crate::path::RelPath;

/// What a file is.
pub fn kind_of(path: &RelPath) -> &'static str {
    if path.name().ends_with(".rs") { "rust source" } else { "file" }
}
