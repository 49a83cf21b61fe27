//! What a git repository remembers of its files.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use surehand_core::Text;

/// The versions of every file, newest first, as object names.
pub(crate) fn versions(repository: &Path) -> Result<BTreeMap<String, Vec<String>>> {
    let log = git(repository, &["log", "--no-merges", "--raw", "--no-abbrev", "--no-renames", "--diff-filter=AM", "--format="])?;
    let mut versions: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for line in String::from_utf8_lossy(&log).lines() {
        let Some((meta, path)) = line.split_once('\t') else { continue };
        let Some(id) = meta.split(' ').nth(3) else { continue };
        versions.entry(path.to_owned()).or_default().push(id.to_owned());
    }
    Ok(versions)
}

/// What an object holds; nothing if that is no text.
pub(crate) fn text(repository: &Path, id: &str) -> Result<Option<Text>> {
    Ok(Text::new(git(repository, &["cat-file", "blob", id])?).ok())
}

/// What git prints when it is asked this.
pub(crate) fn git(repository: &Path, words: &[&str]) -> Result<Vec<u8>> {
    let output = Command::new("git").arg("-C").arg(repository).args(words).output().context("git")?;
    ensure!(output.status.success(), "git {}: {}", words.join(" "), String::from_utf8_lossy(&output.stderr));
    Ok(output.stdout)
}
