//! Paths for people, relative to the current directory. Inside Surehand and in JSON, paths are relative to the root of
//! the workspace.

use std::path::{Path, PathBuf};

use surehand_engine::core::render::scope::name;

/// Converts paths between the current directory and the root of a workspace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct LocalPaths {
    /// The current directory relative to the root, as its parts. Empty if it is outside; then paths are relative to the
    /// root.
    below: Vec<String>,
}

impl LocalPaths {
    pub(crate) fn to(root: &Path) -> Self {
        let here = std::env::current_dir().unwrap_or_default();
        let below = here
            .strip_prefix(root)
            .map(Path::to_owned)
            .or_else(|_| settled(&here).strip_prefix(settled(root)).map(Path::to_owned));
        let parts = below.unwrap_or_default();
        // None of our paths is below a name that is not UTF-8.
        let parts: Option<Vec<String>> = parts.iter().map(|part| part.to_str().map(str::to_owned)).collect();
        Self { below: parts.unwrap_or_default() }
    }

    /// Makes a typed path relative to the root. An absolute path stays as it is.
    pub(crate) fn typed(&self, path: &str) -> String {
        match self.below.is_empty() || path.starts_with('/') || path.is_empty() {
            true => path.to_owned(),
            false => format!("{}/{path}", self.below.join("/")),
        }
    }

    /// Makes a path of the workspace relative to the current directory.
    pub(crate) fn shown(&self, path: impl AsRef<str>) -> String {
        name(&self.relative(path.as_ref())).into_owned()
    }

    fn relative(&self, path: &str) -> String {
        let parts: Vec<&str> = path.split('/').collect();
        let (_, directories) = parts.split_last().expect("a split gives one part at least");
        let shared = self.below.iter().zip(directories).take_while(|(here, there)| here == there).count();
        let up = std::iter::repeat_n("..", self.below.len() - shared);
        up.chain(parts[shared..].iter().copied()).collect::<Vec<_>>().join("/")
    }
}

fn settled(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from(below: &str) -> LocalPaths {
        LocalPaths { below: below.split('/').filter(|part| !part.is_empty()).map(str::to_owned).collect() }
    }

    #[test]
    fn a_path_is_typed_relative_to_the_current_directory() {
        assert_eq!(from("src").typed("mod.rs"), "src/mod.rs");
        assert_eq!(from("src/deep").typed("../mod.rs"), "src/deep/../mod.rs");
        assert_eq!(from("src").typed("/p/mod.rs"), "/p/mod.rs");
        assert_eq!(from("").typed("mod.rs"), "mod.rs");
        assert_eq!(from("src").typed(""), "");
    }

    #[track_caller]
    fn check_shown(below: &str, path: &str, expected: &str) {
        assert_eq!(from(below).shown(path), expected);
    }

    #[test]
    fn a_path_is_shown_as_it_would_be_typed() {
        check_shown("", "src/mod.rs", "src/mod.rs");
        check_shown("src", "src/mod.rs", "mod.rs");
        check_shown("src", "mod.rs", "../mod.rs");
        check_shown("src/a", "src/b/mod.rs", "../b/mod.rs");
        check_shown("src/a", "src/a", "../a");
        check_shown("src", "src2/mod.rs", "../src2/mod.rs");
        check_shown("src", "src/a\nb", "\"a\\nb\"");
    }
}
