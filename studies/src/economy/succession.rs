//! The versions of files: from the commits of a git repository, or from directories with one release of a package each.
//! Includes only files that people write and that can be shown as they are: no lock files, no minified code, no lines
//! that a read would cut.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use surehand_core::{Limits, Text};

use crate::git;

/// Files of one project, each in its versions.
pub(super) struct Succession {
    /// The name in the report.
    pub name: String,
    /// The path of each file, and its contents, oldest first.
    pub files: Vec<(String, Vec<Text>)>,
}

/// The endings of files that people write.
const WRITTEN: [&str; 14] = ["rs", "js", "mjs", "cjs", "ts", "tsx", "py", "md", "toml", "yml", "yaml", "sh", "html", "css"];
/// Parts of paths that programs make.
const MADE: [&str; 5] = ["dist", "node_modules", "vendor", "snapshots", "Cargo.toml"];

impl Succession {
    /// The commits of a repository.
    pub(super) fn of_repository(name: String, repository: &Path) -> Result<Self> {
        let mut files = Vec::new();
        let mut objects = git::Objects::open(repository)?;
        for (path, ids) in git::versions(repository)? {
            // A file with a single commit was never edited.
            if !is_written(&path) || ids.len() < 2 {
                continue;
            }
            let texts = ids.iter().rev().map(|id| objects.text(id)).collect::<Result<Vec<_>>>()?;
            files.push((path, texts.into_iter().flatten().collect()));
        }
        Ok(Self { name, files: files.into_iter().filter_map(with_versions).collect() })
    }

    /// Releases of a package, oldest first, each in a directory.
    pub(super) fn of_releases(name: String, releases: &[PathBuf]) -> Result<Self> {
        let mut files: BTreeMap<String, Vec<Text>> = BTreeMap::new();
        for release in releases {
            for path in files_below(release)? {
                let name = path.strip_prefix(release).expect("it was found there").to_string_lossy().into_owned();
                if is_written(&name) {
                    let bytes = fs::read(&path).with_context(|| path.display().to_string())?;
                    files.entry(name).or_default().extend(Text::new(bytes).ok());
                }
            }
        }
        Ok(Self { name, files: files.into_iter().filter_map(with_versions).collect() })
    }
}

/// Removes versions that equal the previous one or cannot be used; `None` if no change is left.
fn with_versions((path, texts): (String, Vec<Text>)) -> Option<(String, Vec<Text>)> {
    let mut texts: Vec<Text> = texts.into_iter().filter(is_plain).collect();
    texts.dedup();
    (texts.len() > 1).then_some((path, texts))
}

fn is_written(path: &str) -> bool {
    let ending = path.rsplit_once('.').map_or("", |(_, ending)| ending);
    WRITTEN.contains(&ending) && !path.contains(".min.") && !path.split('/').any(|part| MADE.contains(&part))
}

/// Whether a read shows the content completely. Other line endings, or a last line without one, would be special cases
/// in every dialect.
pub(crate) fn is_plain(text: &Text) -> bool {
    let content = text.as_str();
    let is_long = |line: &str| line.chars().nth(Limits::default().line_chars).is_some();
    content.ends_with('\n') && !content.contains('\r') && !text.has_bom() && !content.lines().any(is_long)
}

fn files_below(directory: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut directories = vec![directory.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(&directory).with_context(|| directory.display().to_string())? {
            let entry = entry?;
            match entry.file_type()? {
                kind if kind.is_dir() => directories.push(entry.path()),
                kind if kind.is_file() => files.push(entry.path()),
                _ => {}
            }
        }
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(path: &str, expected: bool) {
        assert_eq!(is_written(path), expected, "{path}");
    }

    #[test]
    fn what_programs_make_is_left_out() {
        check("src/main.rs", true);
        check("README.md", true);
        check("lib/core.ts", true);
        check("Cargo.lock", false);
        check("dist/ajv.js", false);
        check("lib/ajv.min.js", false);
        check("logo.png", false);
    }

    #[test]
    fn releases_are_the_versions_of_their_files() {
        let directory = tempfile::tempdir().unwrap();
        let releases: Vec<PathBuf> = ["1", "2", "3"].map(|release| directory.path().join(release)).into();
        for (release, content) in releases.iter().zip(["a\n", "a\n", "b\n"]) {
            fs::create_dir_all(release.join("src")).unwrap();
            fs::write(release.join("src/a.rs"), content).unwrap();
            fs::write(release.join("src/same.rs"), "same\n").unwrap();
        }
        let found = Succession::of_releases("p".to_owned(), &releases).unwrap();
        let versions = |content: &str| Text::of(content.to_owned()).unwrap();
        assert_eq!(found.files, [("src/a.rs".to_owned(), vec![versions("a\n"), versions("b\n")])]);
    }
}
