//! The stored inputs: some for each kind of situation, and those that once broke a law.

use std::{fs, path::PathBuf};

use crate::Target;

/// The directory of a target's inputs.
pub fn dir(target: &Target) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target.name)
}

/// All inputs of a target with their names, sorted by name.
pub fn inputs(target: &Target) -> Vec<(String, Vec<u8>)> {
    let entries = fs::read_dir(dir(target)).into_iter().flatten().flatten();
    let mut inputs: Vec<(String, Vec<u8>)> =
        entries.filter_map(|entry| Some((entry.file_name().into_string().ok()?, fs::read(entry.path()).ok()?))).collect();
    inputs.sort();
    inputs
}
