//! Paths in a workspace, with one spelling for each file name.

use std::{borrow::Borrow, fmt, sync::Arc};

use serde::{Deserialize, Serialize};

/// A path relative to the workspace root, with `/` between its parts and no `.`, `..`, empty or doubled parts.
///
/// Two spellings of one name give equal values. Links are not resolved here, because that needs the disk. Clones share
/// the text: a session keeps the path of each file in half a dozen places.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RelPath(Arc<str>);

/// A path that cannot name a file in the workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadPath {
    /// An empty path, or the root itself.
    #[error("the path is empty")]
    Empty,
    /// A path above the root.
    #[error("the path leads outside the workspace")]
    Outside,
    /// A path with a NUL byte, which no file name has.
    #[error("the path has a NUL character")]
    Nul,
    /// A path longer than any system accepts.
    #[error("the path is longer than 4096 bytes")]
    TooLong,
}

impl TryFrom<String> for RelPath {
    type Error = BadPath;

    fn try_from(path: String) -> Result<Self, BadPath> {
        Self::new(&path)
    }
}

impl From<RelPath> for String {
    fn from(path: RelPath) -> Self {
        path.as_str().to_owned()
    }
}

impl RelPath {
    /// Normalises a relative path lexically.
    pub fn new(path: &str) -> Result<Self, BadPath> {
        if path.len() > 4096 {
            return Err(BadPath::TooLong);
        }
        if path.contains('\0') {
            return Err(BadPath::Nul);
        }
        let mut parts: Vec<&str> = Vec::new();
        for part in path.split('/') {
            match part {
                "" | "." => {}
                ".." => {
                    parts.pop().ok_or(BadPath::Outside)?;
                }
                name => parts.push(name),
            }
        }
        if parts.is_empty() { Err(BadPath::Empty) } else { Ok(Self(parts.join("/").into())) }
    }

    /// The path as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The last part of the path: the name of the file.
    pub fn name(&self) -> &str {
        self.0.rsplit_once('/').map_or(&self.0, |(_, name)| name)
    }

    /// The path of the same file from the root that `directory` is relative to.
    pub fn in_directory(&self, directory: Option<&RelPath>) -> RelPath {
        match directory {
            None => self.clone(),
            // Both are normalised, so the joined path is, too.
            Some(directory) => Self(format!("{directory}/{self}").into()),
        }
    }

    /// The path relative to `directory`; `None` if it is not below it.
    pub fn relative_to(&self, directory: &RelPath) -> Option<RelPath> {
        self.0.strip_prefix(directory.as_str())?.strip_prefix('/').map(|path| Self(path.into()))
    }

    /// The directory that contains it; `None` for a path directly below the root.
    pub fn parent(&self) -> Option<RelPath> {
        self.0.rsplit_once('/').map(|(parent, _)| Self(parent.into()))
    }
}

impl fmt::Display for RelPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Borrow<str> for RelPath {
    fn borrow(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_moved_between_a_directory_and_what_is_above_it() {
        let path = |path: &str| RelPath::new(path).unwrap();
        assert_eq!(path("a/b").in_directory(Some(&path("x/y"))), path("x/y/a/b"));
        assert_eq!(path("a/b").in_directory(None), path("a/b"));
        assert_eq!(path("x/y/a").relative_to(&path("x/y")), Some(path("a")));
        for outside in ["x/y", "x/yz/a", "x", "a"] {
            assert_eq!(path(outside).relative_to(&path("x/y")), None, "{outside}");
        }
    }

    #[test]
    fn spellings_of_one_file_are_one_path() {
        for spelling in ["src/a.rs", "./src/a.rs", "src//a.rs", "src/./a.rs", "src/x/../a.rs", "src/a.rs/"] {
            assert_eq!(RelPath::new(spelling).unwrap().as_str(), "src/a.rs", "{spelling}");
        }
    }

    #[test]
    fn empty_paths_and_paths_outside_are_refused() {
        for (path, why) in [
            ("..", BadPath::Outside),
            ("a/../../b", BadPath::Outside),
            ("", BadPath::Empty),
            ("a/..", BadPath::Empty),
            ("a\0b", BadPath::Nul),
        ] {
            assert_eq!(RelPath::new(path), Err(why), "{path:?}");
        }
        assert_eq!(RelPath::new(&"a".repeat(5000)), Err(BadPath::TooLong));
    }

    #[test]
    fn parents_and_names() {
        let path = RelPath::new("a/b/c").unwrap();
        assert_eq!((path.name(), path.parent().unwrap().as_str()), ("c", "a/b"));
        assert_eq!(RelPath::new("a").unwrap().parent(), None);
    }
}
